/* unwritten-memory.h: what do bytes hold that the runtime has made for a task and no kernel has
 * written?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * In a plain run they hold whatever the last task left in the ring. A run that looks for mistakes
 * fills them once a task, before any kernel can see them. A kernel that reads them computes a
 * number that is visibly wrong, and the same one in every run.
 */
#pragma once

#include "engine.h"

/* Fills the tensors of a slot that lie in the memory which was made for it: floats become NaN,
 * bytes of all other types 0xa5. Submitter thread; the slot is filled, and no other thread has seen
 * it. */
void pto_unwritten_fill (const struct pto_engine *engine, const struct pto_slot *slot);
/* What each byte of such a tensor holds. */
uint8_t pto_unwritten_byte (DataType dtype);
/* The same for memory of no type: floats in it are NaN, integers -1. */
void pto_unwritten_fill_bytes (void *memory, uint64_t bytes);
