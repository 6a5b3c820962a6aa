/* await.c: how does the submitter wait for one of its tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "exec/translate.h"
#include "completion.h"
#include "manual-tasks.h"
#include "run-inline.h"
#include "submit.h"

bool
pto_engine_await (struct pto_engine *engine, pto_task_id id)
{
  struct pto_slot *slot;
  uint64_t patience;
  uint64_t begin;
  bool is_done;

  if (id == PTO_TASK_NONE || (engine->by_hand && pto_added_refuse_wait (engine)))
    {
      engine->deadlock.heard = true;
      return false;
    }
  if (engine->witness != NULL)
    engine->witness->wait (engine->witness->data, engine->by_hand ? PTO_TASK_NONE : id);
  if (pto_task_is_retired (engine->tails, id) && !engine->by_hand)
    return !pto_task_set_has (&engine->failed, id);
  slot = pto_ring_slot (&engine->rings[PTO_TASK_RING (id)], PTO_TASK_LOCAL (id));
  is_done = engine->by_hand ? pto_engine_completed (engine) == engine->submitted
                            : pto_engine_slot_is_done (slot, PTO_TAKEN_ANY);
  patience = engine->by_hand ? engine->config.end_patience_ns : engine->config.ring_patience_ns;
  if (!is_done)
    {
      pto_engine_leave_direct (engine);
      begin = pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH) ? pto_engine_stamp (engine) : 0;
      is_done = pto_engine_wait_for (engine, engine->by_hand ? NULL : slot, PTO_TAKEN_ANY);
      engine->stats.stalls++;
      if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
        pto_trace_add (engine->trace, PTO_TRACE_STALL, begin, PTO_TASK_NONE, PTO_STALL_ELEMENT << 8,
                       pto_engine_stamp (engine));
      if (!is_done)
        return pto_engine_fail (
            engine, PTO_STATUS_SCHEDULER_TIMEOUT,
            _ ("task %u of ring %u (%s) is waited for, and no task has finished for "
               "%" PRIu64 " ms (timeout %" PRIu64 " ms)"),
            PTO_TASK_LOCAL (id), PTO_TASK_RING (id), pto_engine_kernel_name (engine, slot->kernel),
            patience / 1000000, engine->config.timeout_ns / 1000000);
    }
  /* Acquire: what it and those before it have written is the caller's to read; all of them:
   * pto_engine_completed(). */
  return pto_load_acquire (&slot->state) == PTO_TASK_COMPLETED && !pto_engine_has_failed (engine);
}
