/* source-place.h: how is a program's source named in records and errors?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>
#include <string.h>

G_BEGIN_DECLS

/* What is behind the last slash, interned; NULL of NULL. last: what this gave before, or NULL: a
 * program mostly goes on in one source, and need not look it up in the table of the process. Its
 * content is compared: a buffer may say something else the next time. Any thread. */
static inline const char *
pto_source_intern (const char *last, const char *file)
{
  const char *slash = file != NULL ? strrchr (file, '/') : NULL;
  const char *name = slash != NULL ? slash + 1 : file;

  if (name != NULL && last != NULL && strcmp (name, last) == 0)
    return last;
  return g_intern_string (name);
}

G_END_DECLS
