/* qk_matmul.c: how well does each query of a tile match each token of a block? sij = q k^T.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "attention.h"

/* args: q [1, tile, head_dim]; k [1, tokens, 1, head_dim], a view of the key cache that ends with
 *       the request; sij [tile, block_size]: float32, its first `tokens` columns are written. */
void
kernel_entry (int64_t *args)
{
  const TensorData *tq = attention_tensor (args[0]);
  const TensorData *tk = attention_tensor (args[1]);
  const TensorData *ts = attention_tensor (args[2]);
  float *restrict scores = attention_floats (ts);
  uint64_t tile = tq->shapes[1];
  uint64_t dim = tq->shapes[2];
  uint64_t tokens = tk->shapes[1];
  uint64_t block_size = ts->shapes[1];
  float queries[ATTENTION_MAX_QUERY];
  float scratch[ATTENTION_MAX_DIM];

  for (uint64_t h = 0; h < tile; h++)
    memcpy (queries + h * dim, attention_row (tq, h * tq->strides[1], dim, scratch),
            dim * sizeof *queries);
  for (uint64_t t = 0; t < tokens; t++)
    {
      const float *key = attention_row (tk, t * tk->strides[1], dim, scratch);

      for (uint64_t h = 0; h < tile; h++)
        scores[h * block_size + t] = attention_dot (queries + h * dim, key, dim);
    }
}
