/* outer-scope.h: how does a task reach the scopes around its own, and their tensors?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

#define PTO_BUFFERS_PER_CHUNK 256u

/* Tasks are of that open scope until the caller sets engine->depth to what this returns. */
uint32_t pto_engine_step_out (struct pto_engine *engine, uint32_t depth);
/* The tensor of an open scope that has the byte at this address, the newest first; NULL: none. */
struct PTO2Buffer *pto_engine_find_buffer (struct pto_engine *engine, uint64_t address);

static inline struct PTO2Buffer *
pto_engine_buffer_at (struct pto_engine *engine, uint32_t index)
{
  return &engine->buffer_chunks[index / PTO_BUFFERS_PER_CHUNK][index % PTO_BUFFERS_PER_CHUNK];
}
