/* reduction-operators.h: which operators does a chip have of its own, for what tasks reduce?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto/api/tensor.h"

enum pto_operator
{
  PTO_OPERATOR_SUM,
  PTO_OPERATOR_PROD,
  PTO_OPERATOR_MIN,
  PTO_OPERATOR_MAX,
  PTO_N_OPERATORS
};

/* Are there elements of that type that can be combined so? */
bool pto_combine_knows (enum pto_operator operation, DataType dtype);
/* Takes each element of a tensor into that of another one of the same shape and type, which there
 * is such an operator for. Integers wrap around; what is no number stays none. */
void pto_combine (enum pto_operator operation, const TensorData *to, const TensorData *from);
