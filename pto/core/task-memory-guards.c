/* task-memory-guards.c: behind which memory that was there before is looked once a task has run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "submit.h"

uint32_t
pto_engine_find_fence (struct pto_engine *engine, uint64_t address, uint32_t n)
{
  uint64_t version = pto_fence_version ();

  if (version != engine->fence_version || address - engine->fence.address >= engine->fence.bytes)
    {
      struct pto_fence fence;

      if (!pto_fence_find (address, &fence))
        return 0;
      engine->fence = fence;
      engine->fence.guard |= (version & PTO_FENCE_VERSION_MASK) << PTO_FENCE_VERSION_SHIFT;
      engine->fence_version = version;
    }
  for (uint32_t i = 0; i < n; i++)
    if (engine->fences[i].address == engine->fence.address)
      return 0;
  engine->fences[n] = engine->fence;
  return 1;
}

uint32_t
pto_engine_note_fences (struct pto_engine *engine, const PTOParam *params, uint32_t n_params)
{
  uint32_t guard = engine->config.guard_bytes;
  bool fenced = pto_fence_any ();
  uint32_t n = 0;

  if (guard == 0)
    return 0;
  for (const PTOParam *param = params; param < params + n_params; param++)
    {
      const struct PTO2Buffer *buffer;

      if (param->type == PTO_PARAM_SCALAR || param->tensor.buffer.addr == 0)
        continue;
      buffer = param->tensor.storage;
      if (buffer == NULL)
        n += fenced ? pto_engine_find_fence (engine, param->tensor.buffer.addr, n) : 0;
      else if (!pto_engine_finds_guard (engine, param->type))
        engine->fences[n++] = (struct pto_fence){ .address = buffer->addr,
                                                  .bytes = buffer->bytes,
                                                  .guard = guard | PTO_FENCE_PERHAPS };
    }
  return n;
}
