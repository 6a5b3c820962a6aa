/* call-foreign.h: how are functions of the program called that may be C++?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/* Is it C or C++, whose frames can be dropped? What another language has for a function of its own
 * lies in no object. Not in the child of a fork before it has resolved what it runs: asks the
 * linker, under its lock. */
gboolean pto_function_is_native (GCallback func);
/* Calls a native function. An exception of C++ that leaves it, or the end of the thread, comes out
 * as an error that begins with what was called; nothing else that it does is held. failure: where
 * the function leaves its own error, which a copy of the process says before it ends. */
gboolean pto_call_native (void (*func) (gpointer data), gpointer data, const char *what,
                          GError *const *failure, GError **error);
/* Calls a function of another language, or one that may load code: the thread's floating-point
 * environment is as it was when it returns. A copy of the process in which the function returns
 * ends, as with pto_call_native(): fork() made it inside of the function. */
void pto_call_other (void (*func) (gpointer data), gpointer data, const char *what);

G_END_DECLS
