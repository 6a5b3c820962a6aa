/* rename.c: when does an output get new memory?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "rename.h"

#include "backpressure.h"
#include "completion.h"

/* Does anybody still use what is there? What it finds is not kept. */
static bool
is_in_use (struct pto_engine *engine, struct PTO2Buffer *buffer, const Tensor *tensor)
{
  struct pto_deps *deps = &engine->deps;
  uint32_t before = deps->count;
  struct pto_access access;
  bool found = false;

  pto_access_init (&access, &buffer->space, tensor);
  /* Without memory for all that there are, the ones that are found. */
  pto_map_lookup (engine->map, &access, PTO_PARAM_OUTPUT, deps);
  for (uint32_t i = before; i < deps->count && !found; i++)
    found = !pto_task_is_retired (engine->tails, deps->items[i].task)
            && !pto_engine_slot_is_done (
                pto_ring_slot (&engine->rings[PTO_TASK_RING (deps->items[i].task)],
                               PTO_TASK_LOCAL (deps->items[i].task)),
                PTO_TAKEN_ANY);
  /* For the words of a deadlock: the next run may come when nobody uses it any more, so that these
   * are depended upon. */
  if (found)
    engine->demand[pto_engine_ring_of_depth (engine->depth - 1)].now[PTO_GOOD_EDGES]
        += deps->count - before;
  deps->count = before;
  return found;
}

bool
pto_rename_may (struct pto_engine *engine, const PTOParam *params, uint32_t n_params,
                const PTOParam *param, uint64_t heap)
{
  const struct pto_circle *circle
      = &engine->rings[pto_engine_ring_of_depth (engine->depth - 1)].heap;
  const Tensor *tensor = &param->tensor;
  struct PTO2Buffer *buffer = tensor->storage;

  if (buffer->space.pinned || buffer->depth != engine->depth || !pto2_tensor_is_contiguous (tensor)
      || pto2_tensor_numel (tensor) * pto_dtype_size (tensor->dtype) != buffer->bytes
      || circle->used + heap + pto_engine_output_bytes (engine, tensor->buffer.size)
             > circle->size / 2)
    return false;
  for (uint32_t i = 0; i < n_params; i++)
    if (&params[i] != param && params[i].type != PTO_PARAM_SCALAR
        && params[i].tensor.storage == buffer)
      return false;
  return is_in_use (engine, buffer, tensor);
}
