/* progress.h: what is done, and who waits for it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

/* Tasks completed so far in this run, by all schedulers; a progress mark. */
uint64_t pto_engine_completed (const struct pto_engine *engine);
/* Grows with everything that gets on: blocks of a task, too. */
uint64_t pto_engine_progress (const struct pto_engine *engine);
static inline bool
pto_engine_is_lost (const struct pto_engine *engine)
{
  return pto_engine_completed (engine) < engine->submitted;
}

/* Tasks of this run that did not run to their end. */
uint64_t pto_engine_failures (const struct pto_engine *engine);
/* Completed, and so many references given back; or however many. */
#define PTO_TAKEN_ANY UINT32_MAX
bool pto_engine_slot_is_done (struct pto_slot *slot, uint32_t taken);
/* The submitter, not in direct mode: waits until a slot is done or, without one, until everything
 * is. false: the executor has proved that this will not happen, and the run has failed; or patience
 * is at its end, which is the caller's to report. */
bool pto_engine_wait_for (struct pto_engine *engine, struct pto_slot *slot, uint32_t taken);
/* With an order: all that can run before the next submit has run, one task after the other. The
 * submitter. */
void pto_engine_run_all (struct pto_engine *engine);
/* Wakes the submitter if it waits and what it waits for is there. After a batch of completions. */
void pto_engine_tell_submitter (struct pto_engine *engine);
