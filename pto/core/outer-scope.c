/* outer-scope.c: how does a task reach the scopes around its own, and their tensors?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "outer-scope.h"

uint32_t
pto_engine_step_out (struct pto_engine *engine, uint32_t depth)
{
  uint32_t from = engine->depth;

  /* The scopes in between that share its ring hold its tasks, too. */
  for (uint32_t inner = depth; inner < from && depth >= PTO_RINGS; inner++)
    engine->scopes[inner].held++;
  engine->depth = depth;
  return from;
}

struct PTO2Buffer *
pto_engine_find_buffer (struct pto_engine *engine, uint64_t address)
{
  for (uint32_t i = engine->n_buffers; i > 0; i--)
    {
      struct PTO2Buffer *buffer = pto_engine_buffer_at (engine, i - 1);

      /* A byte for one without elements. */
      if (buffer->addr != 0 && address - buffer->addr < buffer->bytes + (buffer->bytes == 0))
        return buffer;
    }
  return NULL;
}
