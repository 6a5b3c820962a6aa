/* shrink.h: which of many things does it take?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Does it still happen with these, ascending, alone? */
typedef gboolean (*ShrinkTest) (const guint *items, guint n, gpointer data);

/* It happens with all of 0 ... n - 1. Gives those of a part with which it still does, ascending,
 * and not without any one of them: minimizing delta debugging (Zeller and Hildebrandt 2002), so
 * about n log n tests where few are needed, n * n at worst. is_over: asked before each test; TRUE:
 * what was found by then is given, of which more could perhaps go. May be NULL. */
GArray *shrink (guint n, ShrinkTest test, gboolean (*is_over) (gpointer data), gpointer data);

G_END_DECLS
