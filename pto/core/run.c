/* run.c: how does a run begin and end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "run.h"

#include "exec/translate.h"
#include "cohort.h"
#include "completion.h"
#include "deadlock.h"
#include "graph-capture.h"
#include "manual-build.h"
#include "ready.h"
#include "reduce.h"
#include "retire.h"
#include "run-inline.h"

void
pto_engine_begin (struct pto_engine *engine)
{
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    pto_ring_reset (&engine->rings[ring], &engine->tails[ring]);
  pto_map_set_tails (engine->map, engine->config.watched ? engine->no_tails : engine->tails);
  pto_map_reset (engine->map);
  memset (&engine->stats, 0, sizeof engine->stats);
  memset (engine->demand, 0, sizeof engine->demand);
  engine->submitted = 0;
  engine->launched = NULL;
  engine->next_shard = 0;
  memset (&engine->deadlock, 0, sizeof engine->deadlock);
  engine->depth = 0;
  engine->by_hand = false;
  engine->failed.count = 0;
  engine->blocked.notice_ns = engine->config.notice != NULL ? engine->config.notice_ns : PTO_NEVER;
  engine->blocked.told_at = PTO_NEVER;
  engine->blocked.what = PTO_OK;
  engine->report.status = PTO_OK;
  pto_engine_begin_direct (engine);
  engine->unswept = engine->resume ? UINT32_MAX - 1 : 0;
  engine->counts_ticks = pto_exec_backend (engine->exec) != PTO_BACKEND_DET;
  engine->time_base = pto_now (engine->exec);
  engine->tick_base = pto_ticks_ordered ();
  /* Schedulers are idle: all tasks of the run before are complete, and a scheduler's count is its
   * last write of a batch. The bell that brings the next task orders these stores. */
  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    {
      pto_store_relaxed (&engine->words[i]->completed, 0);
      pto_store_relaxed (&engine->words[i]->failed, 0);
      pto_store_relaxed (&engine->words[i]->parts, 0);
    }
  pto_store_relaxed (&engine->passed, 0);
  pto_cohort_reset (engine);
  pto_reduce_begin (engine);
  pto_build_begin (engine);
  pto_engine_restart_ready (engine);
  pto_store_relaxed (&engine->fatal, 0);
  pto_store_release (&engine->verdict, PTO_VERDICT_OPEN);
  /* Before the look; pairs with the fence in pto_engine_cancel(). */
  pto_fence_seq_cst ();
  pto_engine_ask_cancelled (engine);
  pto_engine_scope_begin (engine, NULL, 0);
}

void
pto_engine_mark_end (struct pto_engine *engine)
{
  engine->run_ticks = pto_engine_stamp (engine);
  engine->run_ns = pto_now (engine->exec) - engine->time_base;
}

enum pto_status
pto_engine_end (struct pto_engine *engine, struct pto_report *report)
{
  pto_engine_note_live (engine);
  pto_engine_close_scopes (engine);
  pto_reduce_end (engine);
  if (engine->capture != NULL)
    pto_capture_end (engine);
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    pto_store_release (&engine->rings[ring].shared->orchestrator_done, 1);
  pto_engine_leave_direct (engine);
  if (pto_engine_wait_for (engine, NULL, 0))
    {
      pto_engine_retire_all (engine);
      pto_engine_ask_cancelled (engine);
    }
  else
    pto_engine_fail (engine, PTO_STATUS_SCHEDULER_TIMEOUT,
                     _ ("no task finished for %" PRIu64 " ms (timeout %" PRIu64 " ms): %" PRIu64
                        " of %" PRIu64 " tasks are done"),
                     engine->config.end_patience_ns / 1000000, engine->config.timeout_ns / 1000000,
                     pto_engine_completed (engine), engine->submitted);
  pto_engine_mark_end (engine);
  if (pto_engine_close_verdict (engine))
    return PTO_OK;
  /* Another error may have come first: then its words stay. */
  if (engine->deadlock.what != PTO_OK && engine->report.status == engine->deadlock.what)
    pto_engine_report_deadlock (engine);
  return pto_engine_tell (engine, report);
}
