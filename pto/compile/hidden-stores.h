/* hidden-stores.h: what may a kernel do that says what it touches, without saying so?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Returns what to append to a preprocessed source: a definition if it has assembly, or functions of
 * the compiler for stores, and another one if it has what lets kernels talk while they run.
 * Otherwise "". own: the directory of libpto's headers. They are skipped, and so are those of the
 * system. Any thread. */
char *pto_hidden_stores_mark (const char *source, gsize size, const char *own);
/* What the definitions export. */
#define PTO_HIDDEN_STORES_SYMBOL "pto2_access_hides"
#define PTO_TALKS_SYMBOL "pto2_access_talks"

/* Returns whether a function that an object imports may write to memory of the caller, by its name.
 * Any thread. */
gboolean pto_hidden_stores_may_come_from (const char *function);
/* Returns whether a kernel that calls the function may see what others write meanwhile. */
gboolean pto_hidden_stores_may_talk (const char *function);

G_END_DECLS
