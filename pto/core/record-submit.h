/* record-submit.h: what does the record of a run say of the submitter's doings?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Called where the engine's trace is not NULL; each function looks itself whether that much is
 * recorded. Apart from what it observes, so that a run without a record pays for one test.
 */
#pragma once

#include "engine.h"
#include "memory-observer.h"

/* The slot is filled, with its parts, and nobody else has seen it. Its arguments; types: of each,
 * PTO_PARAM_*. */
void pto_observe_args (struct pto_engine *engine, const struct pto_slot *slot,
                       const uint8_t *types);
/* And what it says of itself, with what it waits for: engine->deps. makes: memory. */
void pto_observe_submit (struct pto_engine *engine, const struct pto_slot *slot, uint32_t ring,
                         uint32_t n_deps, bool makes);
/* Behind it: the slot has claims. */
void pto_observe_claims (struct pto_engine *engine, const struct pto_slot *slot);
/* Behind it: the task belongs to a set of those that reduce; role: PTO_TRACE_REDUCE_*. */
void pto_observe_reduce (struct pto_engine *engine, pto_task_id id, uint32_t role, uint32_t set,
                         uint64_t what);
/* Behind pto_observe_submit(): it waits for one more. */
void pto_observe_link (struct pto_engine *engine, pto_task_id consumer, pto_task_id producer);
/* Before pto_observe_args(), of the same submit: it comes after a task that has retired. kinds: as
 * in pto_dep. */
static inline void
pto_observe_past (struct pto_engine *engine, pto_task_id producer, uint32_t kinds)
{
  if (engine->witness != NULL && (kinds & ~PTO_DEP_RETAIN) != 0)
    engine->witness->edge (engine->witness->data, PTO_TASK_NONE, producer);
}
/* It waits for nothing; has_waited: not any more, since its submit. */
void pto_observe_ready (struct pto_engine *engine, const struct pto_slot *slot, bool has_waited);
/* n tasks of a ring, from position first on. */
void pto_observe_retire (struct pto_engine *engine, uint32_t ring, uint32_t first, uint32_t n);
/* What the ring and the TensorMap hold now. */
void pto_observe_occupancy (struct pto_engine *engine, uint32_t ring);
void pto_observe_scope (struct pto_engine *engine, uint32_t depth, bool begins);
/* A cohort is the orchestration's own, or not any more. */
void pto_observe_hold (struct pto_engine *engine, uint32_t cohort, bool held);

/* Before the run: what a step of the machine's own takes, PTO_TRACE_COST_*, in ns. */
void pto_observe_cost (struct pto_engine *engine, uint32_t step, uint64_t ns);

/* --- who watches; see memory-observer.h for by whom and when --- */

static inline void
pto_observe_begin (const struct pto_engine *engine, const struct pto_slot *slot)
{
  if (__builtin_expect (engine->watch != NULL, 0))
    engine->watch->begins (engine->watch, slot->id);
}

static inline void
pto_observe_end (const struct pto_engine *engine, const struct pto_slot *slot, bool failed)
{
  if (__builtin_expect (engine->watch != NULL, 0))
    engine->watch->ended (engine->watch, slot->id, failed);
}
