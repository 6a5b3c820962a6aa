/* object-file.h: is a file a shared object for this machine, and of what?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Is it a whole one? Only what its head says is looked at. PTO_ERROR_LOAD. Any thread. */
gboolean pto_object_file_check (const char *path, GError **error);
/* Does it export this function? Read from its tables, without loading it: nothing of it runs. TRUE
 * where it has none that can be read. Any thread. */
gboolean pto_object_file_exports (const char *path, const char *symbol);
/* Was the object built with a sanitizer whose runtime cannot be loaded into this process any more?
 * Some end the process then. What to do, to go on "FILE: can not be loaded: "; NULL: load it. Any
 * thread. */
char *pto_object_file_explain_sanitizer (const char *data, gsize size);
/* Returns whether the object imports a function whose name is one. Any thread. */
gboolean pto_object_file_imports (const char *data, gsize size,
                                  gboolean (*is_one) (const char *function));

G_END_DECLS
