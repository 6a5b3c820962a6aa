/* qk.c: how well does each query match each token? s = q k^T.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../../paged-attention/kernels/attention.h"

/* args: q [heads, dim], k [tokens, dim]: of one type; s [heads, tokens]: float32, written; whether
 * to compute, or to write one number only. */
void
kernel_entry (int64_t *args)
{
  const TensorData *tq = attention_tensor (args[0]);
  const TensorData *tk = attention_tensor (args[1]);
  float *restrict scores = attention_floats (attention_tensor (args[2]));
  uint64_t heads = tq->shapes[0];
  uint64_t dim = tq->shapes[1];
  uint64_t tokens = tk->shapes[0];
  float queries[ATTENTION_MAX_QUERY];
  float scratch[ATTENTION_MAX_DIM];

  if (args[3] == 0)
    {
      scores[0] = 1;
      return;
    }
  for (uint64_t h = 0; h < heads; h++)
    memcpy (queries + h * dim, attention_row (tq, h * dim, dim, scratch), dim * sizeof *queries);
  for (uint64_t t = 0; t < tokens; t++)
    {
      const float *key = attention_row (tk, t * dim, dim, scratch);

      for (uint64_t h = 0; h < heads; h++)
        scores[h * tokens + t] = attention_dot (queries + h * dim, key, dim);
    }
}
