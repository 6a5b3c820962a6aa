/* new.h: what does `pto new` write?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct
{
  const char *name;
  const char *text;
} NewFile;

/* The example of doc/own.md, which the build takes from there; up to one without a name. */
extern const NewFile new_files[];

G_END_DECLS
