/* staging.h: where does memory go that a child does not see?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For a run, private memory of this process is copied into the arena at its first mention, and what
 * the run may have written there is copied back at its end. Every byte has one place: a stand-in
 * keeps the distances of the mapping that the memory lies in, so that tensors which overlap overlap
 * there, too, whatever comes first. Address space is all that the rest of the mapping costs. What a
 * kernel writes past memory that it was given, where nothing else of the run lies, is found. What
 * it writes to memory that its task only reads is copied back, too.
 *
 * Thread safety: one thread at a time; the memory itself is the caller's to keep still meanwhile.
 */
#pragma once

#include "arena.h"

struct pto_stage;

/* guard: bytes that are looked at behind what is written; 0: none, PTO_FENCE_BYTES_MAX at most.
 * NULL: no memory. */
struct pto_stage *pto_stage_new (uint32_t guard);
void pto_stage_free (struct pto_stage *stage);
/* map: what the child sees besides the arena. */
void pto_stage_begin (struct pto_stage *stage, struct pto_shared_map *map);
/* The address at which the child finds these bytes: the same when it sees them, and when nobody
 * could read them. written: they are to be copied back; the
 * others are only if they have changed over there. 0 with a report: there is no room, or they
 * lie half in one and half in another stand-in. */
uint64_t pto_stage_place (struct pto_stage *stage, uint64_t address, uint64_t bytes, bool written,
                          struct pto_report *report);
/* Where the child finds that byte; where it has no copy, the address itself. */
uint64_t pto_stage_find (const struct pto_stage *stage, uint64_t address);
/* Has the child a copy of all of these bytes? */
bool pto_stage_has (const struct pto_stage *stage, uint64_t address, uint64_t bytes);
/* Nothing is placed any more in this run: what lies behind is fenced (core/memory-guards.h), so
 * that the task that writes there is found by the core that runs it. Where there is no room for
 * that it is found at the end. */
void pto_stage_fence (struct pto_stage *stage);
/* Copies back what has changed. Fails when that was memory which can not be written, and when
 * something was written behind it: then overrun says behind which bytes of this process, and how
 * far; it may be NULL. */
struct pto_overrun
{
  uint64_t begin, end;
  uint64_t bytes; /* 0: none */
};
enum pto_status pto_stage_end (struct pto_stage *stage, struct pto_overrun *overrun,
                               struct pto_report *report);
