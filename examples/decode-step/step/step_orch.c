/* step_orch.c: which tasks does a language model take for one more token?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * By shape only: layers of attention and a gated feed-forward net, cut into tiles, 546 tasks each.
 * args: hidden [4096] float32, updated; weights [layers]; cache [layers, heads, 128], updated.
 */
#include "pto_orchestration_api.h"

enum
{
  MATMUL,
  VECTOR
};

enum
{
  HEADS = 32,
  GATES = 64,
  TILE = 128
};

static void
submit (PTO2Runtime *rt, int32_t kernel, Tensor a, Tensor b, Tensor out, bool keeps)
{
  PTOParam params[]
      = { make_input_param (a), make_input_param (b),
          keeps ? make_inout_param (out) : make_output_param (out), make_scalar_param (keeps) };

  pto2_rt_submit_task (rt, kernel, kernel == MATMUL ? PTO2_WORKER_CUBE : PTO2_WORKER_VECTOR, params,
                       4);
}

static Tensor
make (uint64_t n)
{
  uint64_t shape[1] = { n };

  return make_tensor (shape, 1, PTO_DTYPE_FLOAT32);
}

static Tensor
tile_of (const Tensor *tensor, uint64_t tile)
{
  uint64_t shape[1] = { TILE }, offset[1] = { tile * TILE };

  return pto2_tensor_view (tensor, shape, offset);
}

/* hidden + what the tiles give, a tile at a time. */
static void
add_to_hidden (PTO2Runtime *rt, const Tensor *hidden, const Tensor *from, uint32_t n, Tensor weight)
{
  for (uint32_t t = 0; t < HEADS; t++)
    {
      Tensor out = make (TILE);

      submit (rt, MATMUL, from[t], from[n - 1 - t], out, false);
      submit (rt, VECTOR, out, weight, tile_of (hidden, t), true);
    }
}

static void
submit_layer (PTO2Runtime *rt, Tensor hidden, Tensor weight, Tensor cache, uint64_t layer)
{
  Tensor normed = make (HEADS * TILE), qkv[3 * HEADS], context[HEADS], gated[GATES];

  submit (rt, VECTOR, hidden, weight, normed, false);
  for (uint32_t t = 0; t < 3 * HEADS; t++)
    submit (rt, MATMUL, normed, weight, qkv[t] = make (TILE), false);
  for (uint32_t h = 0; h < HEADS; h++)
    {
      uint64_t shape[3] = { 1, 1, TILE }, offset[3] = { layer, h, 0 };
      Tensor keys = pto2_tensor_view (&cache, shape, offset);
      Tensor scores = make (TILE), weights = make (TILE);

      submit (rt, VECTOR, qkv[HEADS + h], weight, keys, true);
      submit (rt, MATMUL, qkv[h], keys, scores, false);
      submit (rt, VECTOR, scores, weight, weights, false);
      submit (rt, MATMUL, weights, qkv[2 * HEADS + h], context[h] = make (TILE), false);
    }
  add_to_hidden (rt, &hidden, context, HEADS, weight);
  submit (rt, VECTOR, hidden, weight, normed = make (HEADS * TILE), false);
  for (uint32_t t = 0; t < GATES; t++)
    {
      Tensor gate = make (TILE), up = make (TILE);

      submit (rt, MATMUL, normed, weight, gate, false);
      submit (rt, MATMUL, normed, weight, up, false);
      submit (rt, VECTOR, gate, up, gated[t] = make (TILE), false);
    }
  add_to_hidden (rt, &hidden, gated, GATES, weight);
}

PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  return (PTO2OrchestrationConfig){ 3 };
}

int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  Tensor hidden = pto2_rt_arg_tensor (rt, 0);
  Tensor weights = pto2_rt_arg_tensor (rt, 1);
  Tensor cache = pto2_rt_arg_tensor (rt, 2);

  for (uint64_t layer = 0; layer < weights.shapes[0]; layer++)
    PTO2_SCOPE (rt)
    {
      uint64_t one[1] = { 1 }, offset[1] = { layer };

      submit_layer (rt, hidden, pto2_tensor_view (&weights, one, offset), cache, layer);
    }
  return 0;
}
