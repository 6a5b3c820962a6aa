/* deadlock.h: how is it told that a run can not go on, and what would have been enough?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

/* The submitter needs room in a ring, and nobody will ever make any. Latches the error. */
void pto_engine_prove_deadlock (struct pto_engine *engine, enum pto_status what,
                                uint32_t ring_index, uint32_t need, uint32_t used);
/* The same where the ring's oldest task cannot be retired before the submitter publishes one.
 * False: it can be. */
bool pto_engine_prove_unpublished (struct pto_engine *engine, enum pto_status what,
                                   uint32_t ring_index, uint32_t need, uint32_t used);
/* "set task-window to 32 or more": what makes more of what is short. */
void pto_engine_describe_knob (const struct pto_engine *engine, enum pto_status what,
                               uint32_t ring_index, char *text, size_t size);
/* One task needs more than there is: bytes of a heap, edges or nodes. Latches the error. */
void pto_engine_prove_oversized (struct pto_engine *engine, enum pto_status what,
                                 uint32_t ring_index, uint64_t need);
/* The submitter waits for room in a ring whose tasks may end, but none does. Latches the error. */
void pto_engine_report_stuck (struct pto_engine *engine, enum pto_status what, uint32_t ring_index);
/* What a submit lacks that waits for room. ring: the engine's that blocked names, or a copy;
 * map_used and n_held: as they are in it. So it is told by the submitter, and by whoever has read
 * these words from outside (inspect.h). */
void pto_engine_describe_shortage (const struct pto_engine *engine,
                                   const struct pto_blocked *blocked, const struct pto_ring *ring,
                                   uint32_t tail, uint32_t map_used, uint32_t n_held,
                                   struct pto_shortage *shortage);
/* "running", "waiting for its producers" */
const char *pto_task_state_name (enum pto_task_state state);
/* The submitter waits for room (engine->blocked), and it is time that somebody hears of it. */
void pto_engine_tell_blocked (struct pto_engine *engine);
/* Replaces its text by the final one, once the orchestration has been counted to its end. */
void pto_engine_report_deadlock (struct pto_engine *engine);
