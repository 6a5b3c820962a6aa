/* pto-foreign-private.h: how are functions of the program called that may be C++?
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
 * as an error that begins with what was called; nothing else that it does is held. */
gboolean pto_call_native (void (*func) (gpointer data), gpointer data, const char *what,
                          GError **error);

G_END_DECLS
