/* element.h: how does a number become an element of a tensor, and an element a number?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

/* The bits of a number as an element, the nearest there is of floating point. FALSE: no number, or
 * none that the type has: PTO_ERROR_INVALID_ARGS, with what begins the sentence. */
gboolean pto_element_from_value (PtoDtype dtype, const GValue *value, const char *what,
                                 guint64 *bits, GError **error);
/* The number that an element is, in a value that is zeroed: a gboolean of a bool, a gint64 or a
 * guint64 of an integer, a double of floating point, which holds all of them. FALSE: there is no
 * such type. */
gboolean pto_element_to_value (PtoDtype dtype, guint64 bits, GValue *value);

G_END_DECLS
