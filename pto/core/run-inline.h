/* run-inline.h: which tasks does the submitter run itself?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Bringing a tiny task to another CPU and its slot back costs more than the task. While tasks are
 * complete as soon as they are submitted, the submitter claims one scheduler's domain and runs
 * each through it at once. Nobody else knows such a task: it needs no edges but those that retain.
 */
#pragma once

#include "engine.h"

/* The task that was just submitted, in direct mode: run by the scheduler that is claimed, or pushed
 * if that one has no room. */
void pto_engine_run_direct (struct pto_engine *engine, struct pto_slot *slot);
/* As it was before a wait, or the end of the run before. */
void pto_engine_resume_direct (struct pto_engine *engine);
/* Gives a claimed scheduler back, if there is one. */
void pto_engine_leave_direct (struct pto_engine *engine);
/* A run begins. */
void pto_engine_begin_direct (struct pto_engine *engine);

/* par: after so many submits the submitter runs some tasks itself, if so many are not done: what it
 * writes is soon read then, while it is still in a cache. */
#define PTO_SHARE_EVERY 32u
void pto_engine_take_part (struct pto_engine *engine);

/* After each submit that was pushed. */
static inline void
pto_engine_share (struct pto_engine *engine)
{
  if (++engine->unshared >= PTO_SHARE_EVERY && engine->config.carry)
    pto_engine_take_part (engine);
}
