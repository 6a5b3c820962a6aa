/* softmax.c: what does a vector core of a block do? It makes weights of each row of scores.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../attention.h"

#include <math.h>

void
kernel_entry (int64_t *args)
{
  uint64_t n_keys = tensor_of (args, ARG_KEYS)->shapes[0];
  float scale = 1.0f / sqrtf ((float) tensor_of (args, ARG_KEYS)->shapes[1]);
  uint32_t sub = get_sub_block_id (args);
  float row[KEYS_MAX];

  for (uint32_t r = 0; r < HALF; r++)
    {
      float most = -INFINITY;
      float sum = 0;

      TPOP (args, PIPE_SCORES + sub, row, n_keys * sizeof *row);
      for (uint64_t k = 0; k < n_keys; k++)
        most = fmaxf (most, row[k] * scale);
      for (uint64_t k = 0; k < n_keys; k++)
        sum += row[k] = expf (row[k] * scale - most);
      for (uint64_t k = 0; k < n_keys; k++)
        row[k] /= sum;
      TPUSH (args, PIPE_WEIGHTS + sub, row, n_keys * sizeof *row);
    }
}
