/* cohort.c: which cohorts has the orchestration for itself?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cohort.h"

#include "exec/translate.h"
#include "completion.h"
#include "early-release.h"
#include "graph-capture.h"
#include "manual-tasks.h"
#include "record-submit.h"
#include "run-inline.h"

void
pto_cohort_reset (struct pto_engine *engine)
{
  engine->line.next_cohort = 0;
  engine->line.n_held = 0;
  for (uint32_t c = 0; c < engine->line.n_cohorts; c++)
    {
      /* Nobody runs anything. */
      pto_store_relaxed (&engine->line.cohorts[c].open, 0);
      engine->line.cohorts[c].depth = 0;
    }
}

bool
pto_cohort_is_held (const struct pto_engine *engine, uint32_t cohort)
{
  return cohort < engine->line.n_cohorts && engine->line.cohorts[cohort].depth > 0;
}

void
pto_cohort_let_go (struct pto_engine *engine, uint32_t cohort)
{
  if (engine->capture != NULL)
    pto_plan_add_hold (engine->capture->graph, cohort, false);
  else if (engine->observed)
    pto_observe_hold (engine, cohort, false);
  engine->line.cohorts[cohort].depth = 0;
  engine->line.n_held--;
  pto_fetch_sub_acq_rel (&engine->line.cohorts[cohort].open, 1);
}

void
pto_cohort_let_go_of_scope (struct pto_engine *engine, uint32_t depth)
{
  for (uint32_t c = 0; c < engine->line.n_cohorts && engine->line.n_held > 0; c++)
    if (engine->line.cohorts[c].depth == depth)
      pto_cohort_let_go (engine, c);
}

/* In turn, so that work goes round. */
static uint32_t
find_free (const struct pto_engine *engine)
{
  const struct pto_line *line = &engine->line;

  for (uint32_t i = 0; i < line->n_cohorts; i++)
    {
      uint32_t c = (line->next_cohort + i) % line->n_cohorts;

      /* Acquire: pairs with the release of who ended its last task. */
      if (line->cohorts[c].of != NULL && pto_load_acquire (&line->cohorts[c].open) == 0)
        return c;
    }
  return PTO_COHORT_NONE;
}

/* The orchestration has them all, and would have to let one go while it waits here. */
static __attribute__ ((cold)) void
refuse (struct pto_engine *engine)
{
  const struct pto_line *line = &engine->line;
  char where[512] = "";

  for (uint32_t c = 0; c < line->n_cohorts && where[0] == '\0'; c++)
    if (line->cohorts[c].file != NULL)
      snprintf (where, sizeof where, _ (" (the first at %s:%d)"),
                pto_base_name (line->cohorts[c].file), line->cohorts[c].line);
  pto_engine_fail (engine, PTO_STATUS_SCOPE_DEADLOCK,
                   _ ("no %s is free, and none will be: all %u are held by open scopes%s; free one "
                      "before another is allocated, or %s"),
                   _ (pto_engine_cohort_name (engine)), line->n_held, where,
                   pto_engine_more_places (engine));
}

/* All that can run is done, and what is left for the taken ones waits for the orchestration. */
static __attribute__ ((cold)) void
refuse_unpublished (struct pto_engine *engine)
{
  char held_up[400];

  pto_added_describe (engine, held_up, sizeof held_up);
  pto_engine_fail (
      engine, PTO_STATUS_SCOPE_DEADLOCK,
      _ ("no %s is free, and none will be: %" PRIu64 " tasks are left, and none of them "
         "can run, for %s; publish what uses the others before another one is allocated"),
      _ (pto_engine_cohort_name (engine)), engine->build.n_blocked, held_up);
}

static void
wait_for_one (struct pto_engine *engine)
{
  struct pto_blocked *blocked = &engine->blocked;
  uint64_t begin
      = pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH) ? pto_engine_stamp (engine) : 0;

  pto_engine_leave_direct (engine);
  blocked->what = PTO_STATUS_SYNC_START;
  blocked->since = blocked->notice_ns != PTO_NEVER ? pto_now (engine->exec) : 0;
  blocked->told_at
      = blocked->notice_ns != PTO_NEVER ? blocked->since + blocked->notice_ns : PTO_NEVER;
  engine->build.n_blocked = pto_added_count_blocked (engine);
  pto_store_relaxed (&engine->wait_cohort, 1);
  if (!pto_engine_wait_for (engine, NULL, 0))
    {
      char held_up[400];

      pto_added_describe (engine, held_up, sizeof held_up);
      pto_engine_fail (
          engine, PTO_STATUS_SCHEDULER_TIMEOUT,
          _ ("no %s has become free for %" PRIu64 " ms, and no task has finished "
             "(timeout %" PRIu64 " ms)%s%s"),
          _ (pto_engine_cohort_name (engine)), engine->config.end_patience_ns / 1000000,
          engine->config.timeout_ns / 1000000, held_up[0] != '\0' ? ": " : "", held_up);
    }
  /* Who has ended the last task of a cohort has let go of that before. */
  else if (engine->build.n_blocked > 0 && !pto_engine_has_failed (engine)
           && pto_engine_completed (engine) + engine->build.n_blocked == engine->submitted
           && find_free (engine) == PTO_COHORT_NONE
           && !pto_early_let_one_go (engine, PTO_STATUS_SYNC_START))
    refuse_unpublished (engine);
  engine->build.n_blocked = 0;
  pto_store_relaxed (&engine->wait_cohort, 0);
  blocked->told_at = PTO_NEVER;
  blocked->what = PTO_OK;
  engine->stats.stalls++;
  if (pto_trace_has (engine->trace, PTO_TRACE_LEVEL_GRAPH))
    pto_trace_add (engine->trace, PTO_TRACE_STALL, begin, PTO_TASK_NONE, PTO_STALL_COHORT << 8,
                   pto_engine_stamp (engine));
}

uint32_t
pto_cohort_hold (struct pto_engine *engine, const char *file, int32_t line)
{
  struct pto_cohort *cohort;
  uint32_t c;

  if (pto_engine_has_failed (engine))
    {
      engine->deadlock.heard = true;
      return PTO_COHORT_NONE;
    }
  for (;;)
    {
      c = find_free (engine);
      if (c != PTO_COHORT_NONE)
        break;
      if (engine->line.n_held == engine->line.n_cohorts)
        refuse (engine);
      else
        wait_for_one (engine);
      if (pto_engine_has_failed (engine))
        return PTO_COHORT_NONE;
    }
  engine->line.next_cohort = c + 1;
  cohort = &engine->line.cohorts[c];
  pto_store_relaxed (&cohort->open, 1);
  cohort->depth = engine->depth;
  cohort->file = file;
  cohort->line = line;
  engine->line.n_held++;
  if (engine->capture != NULL)
    pto_plan_add_hold (engine->capture->graph, c, true);
  else if (engine->config.cohort_taken != NULL
           && !engine->config.cohort_taken (engine->config.cohort_taken_data, c))
    return PTO_COHORT_NONE;
  if (engine->observed && engine->capture == NULL)
    pto_observe_hold (engine, c, true);
  return c;
}
