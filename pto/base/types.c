/* types.c: what is known of the values of the shared enumerations?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "api/tensor.h"

#include "pto-types.h"

/**
 * pto_dtype_get_size:
 * @dtype: a type of elements
 *
 * Gives the size of one element.
 *
 * Source: seed 000 section 11. Thread safety: any thread.
 *
 * Returns: bytes; 0 for a value that is no type
 *
 * Since: 0.1
 */
guint
pto_dtype_get_size (PtoDtype dtype)
{
  return pto_dtype_size ((DataType) dtype);
}
