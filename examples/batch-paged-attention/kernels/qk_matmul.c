/* qk_matmul.c: how well do the queries of several requests match one block of each? sij = q k^T.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../paged-attention/kernels/attention.h"

/* args: query [requests, tile, head_dim]; key_cache [blocks, block_size, kv_heads, head_dim];
 *       block_table [requests, table_width]; context_lens [requests];
 *       sij [requests * tile, block_size]: float32, written, 0 after the end of a request;
 *       block: which one of each request; first_head: of the tile; group: heads per kv head. */
void
kernel_entry (int64_t *args)
{
  const TensorData *tq = attention_tensor (args[0]);
  const TensorData *tk = attention_tensor (args[1]);
  const TensorData *tt = attention_tensor (args[2]);
  const int32_t *table = (const int32_t *) attention_at (tt, 0);
  const int32_t *lengths = (const int32_t *) attention_at (attention_tensor (args[3]), 0);
  float *scores = attention_floats (attention_tensor (args[4]));
  uint64_t block = (uint64_t) args[5];
  uint64_t first_head = (uint64_t) args[6];
  uint64_t group = (uint64_t) args[7];
  uint64_t tile = tq->shapes[1];
  uint64_t dim = tq->shapes[2];
  uint64_t block_size = tk->shapes[1];
  float queries[ATTENTION_MAX_QUERY];
  float scratch[ATTENTION_MAX_DIM];

  for (uint64_t r = 0; r < tq->shapes[0]; r++, scores += tile * block_size)
    {
      uint64_t tokens = attention_tokens_in_block (lengths[r], block, block_size);
      uint64_t first;

      memset (scores, 0, tile * block_size * sizeof *scores);
      if (tokens == 0)
        continue;
      first = (uint64_t) table[r * tt->strides[0] + block] * tk->strides[0];
      for (uint64_t h = 0; h < tile; h++)
        memcpy (queries + h * dim,
                attention_row (tq, r * tq->strides[0] + h * tq->strides[1], dim, scratch),
                dim * sizeof *queries);
      for (uint64_t t = 0; t < tokens; t++)
        {
          const float *key = NULL;
          uint64_t kv_head = UINT64_MAX;

          for (uint64_t h = 0; h < tile; h++)
            {
              if (key == NULL || kv_head != (first_head + h) / group)
                {
                  kv_head = (first_head + h) / group;
                  key = attention_row (tk, first + t * tk->strides[1] + kv_head * tk->strides[2],
                                       dim, scratch);
                }
              scores[h * block_size + t] = attention_dot (queries + h * dim, key, dim);
            }
        }
    }
}
