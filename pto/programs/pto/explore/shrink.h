/* shrink.h: which of many things does it take?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Does it still happen with these, in their order, alone? */
typedef gboolean (*ShrinkTest) (const GArray *items, gpointer data);

/* It happens with all of the items. Gives those of a part with which it still does, in their order,
 * and not without any one of it: minimizing delta debugging (Zeller and Hildebrandt 2002), so
 * about n log n tests where few are needed, n * n at worst. is_over: asked before each test; TRUE:
 * what was found by then is given, of which more could perhaps go. May be NULL. */
GArray *shrink (GArray *items, ShrinkTest test, gboolean (*is_over) (gpointer data), gpointer data);

G_END_DECLS
