/* unwritten-memory.c: what do bytes hold that the runtime has made for a task and no kernel has
 * written?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "unwritten-memory.h"

/* A NaN in floats of every size. */
#define FLOAT_BYTE 0xff
#define OTHER_BYTE 0xa5

uint8_t
pto_unwritten_byte (DataType dtype)
{
  return pto_dtype_is_float (dtype) ? FLOAT_BYTE : OTHER_BYTE;
}

void
pto_unwritten_fill (const struct pto_engine *engine, const struct pto_slot *slot)
{
  const struct pto_circle *heap = &engine->rings[PTO_TASK_RING (slot->id)].heap;
  uint64_t end = (uint64_t) (uintptr_t) heap->base + slot->heap_end;
  /* Bytes that were left free at the end of the heap count as the slot's. */
  uint64_t made = slot->heap_bytes < slot->heap_end ? slot->heap_bytes : slot->heap_end;
  const TensorData *tensor;
  uint32_t at = 0;

  while (made > 0
         && (tensor = pto_payload_next_tensor (slot->payload, &engine->shared, &at)) != NULL)
    if (end - tensor->buffer.addr - 1 < made)
      memset ((void *) (uintptr_t) tensor->buffer.addr, pto_unwritten_byte (tensor->dtype),
              tensor->buffer.size);
}

void
pto_unwritten_fill_bytes (void *memory, uint64_t bytes)
{
  memset (memory, FLOAT_BYTE, bytes);
}
