/* products.c: what does the cube core of a block do? Scores = queries keys^T, and, with the weights
 * that the vector cores make of them, out = weights values.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * It is LAG rows ahead with the scores, so that the vector cores work meanwhile; less than a pipe
 * holds, or both sides would wait for each other.
 */
#include "../attention.h"

#define LAG 4u

static void
send_scores (const int64_t *args, uint64_t query, uint32_t sub)
{
  uint64_t n_keys = tensor_of (args, ARG_KEYS)->shapes[0];
  uint64_t width = tensor_of (args, ARG_KEYS)->shapes[1];
  const float *q = floats_of (args, ARG_QUERIES) + query * width;
  const float *keys = floats_of (args, ARG_KEYS);
  float row[KEYS_MAX];

  for (uint64_t k = 0; k < n_keys; k++)
    {
      float sum = 0;

      for (uint64_t i = 0; i < width; i++)
        sum += q[i] * keys[k * width + i];
      row[k] = sum;
    }
  TPUSH (args, PIPE_SCORES + sub, row, n_keys * sizeof *row);
}

static void
receive_weights (const int64_t *args, uint64_t query, uint32_t sub)
{
  uint64_t n_keys = tensor_of (args, ARG_KEYS)->shapes[0];
  uint64_t width = tensor_of (args, ARG_KEYS)->shapes[1];
  const float *values = floats_of (args, ARG_VALUES);
  float *out = floats_of (args, ARG_OUT) + query * width;
  float row[KEYS_MAX];

  TPOP (args, PIPE_WEIGHTS + sub, row, n_keys * sizeof *row);
  for (uint64_t i = 0; i < width; i++)
    out[i] = 0;
  for (uint64_t k = 0; k < n_keys; k++)
    for (uint64_t i = 0; i < width; i++)
      out[i] += row[k] * values[k * width + i];
}

void
kernel_entry (int64_t *args)
{
  uint64_t first = (uint64_t) get_block_idx (args) * QUERIES;

  for (uint32_t r = 0; r < HALF + LAG; r++)
    for (uint32_t sub = 0; sub < 2; sub++)
      {
        if (r < HALF)
          send_scores (args, first + sub * HALF + r, sub);
        if (r >= LAG)
          receive_weights (args, first + sub * HALF + r - LAG, sub);
      }
}
