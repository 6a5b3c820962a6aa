/* completion.c: what is done, and who waits for it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "completion.h"

#include "exec/translate.h"
#include "deadlock.h"
#include "manual-tasks.h"
#include "ready.h"

#define CANCEL_POLL_NS 10000000u

uint64_t
pto_engine_completed (const struct pto_engine *engine)
{
  uint64_t sum = pto_load_relaxed (&engine->passed);

  /* Acquire pairs with the release in scheduler.c's settle(). */
  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    sum += pto_load_acquire (&engine->words[i]->completed);
  return sum;
}

uint64_t
pto_engine_failures (const struct pto_engine *engine)
{
  uint64_t sum = 0;

  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    sum += pto_load_relaxed (&engine->words[i]->failed);
  return sum;
}

/* Relaxed: whoever retires the slot acquires what its task did, in pto_ring_reclaim(). */
bool
pto_engine_slot_is_done (struct pto_slot *slot, uint32_t taken)
{
  return pto_load_relaxed (&slot->state) >= PTO_TASK_COMPLETED
         && (taken == PTO_TAKEN_ANY || pto_load_relaxed (&slot->released) == taken);
}

bool
pto_engine_is_through (struct pto_engine *engine)
{
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    for (uint32_t local = engine->tails[r]; local != engine->rings[r].head; local++)
      /* Acquire: pairs with the release of the thread that completes it, as in pto_ring_reclaim().
       */
      if (pto_load_acquire (&pto_ring_slot (&engine->rings[r], local)->state) < PTO_TASK_COMPLETED)
        return false;
  return true;
}

/* Any thread. Fields may be of a wait that began just now: then its submitter looks itself, after
 * its fence. */
static bool
wait_is_over (struct pto_engine *engine)
{
  struct pto_slot *slot = pto_load_relaxed (&engine->wait_slot);

  if (pto_load_relaxed (&engine->wait_cohort) != 0)
    {
      /* Relaxed: whoever takes it acquires what was done there. */
      for (uint32_t c = 0; c < engine->line.n_cohorts; c++)
        if (engine->line.cohorts[c].of != NULL
            && pto_load_relaxed (&engine->line.cohorts[c].open) == 0)
          return true;
      if (pto_engine_has_failed (engine))
        return true;
      slot = NULL;
    }
  /* A run that has failed does not go on with what it waits for. Relaxed: a scheduler that fails a
   * run does so before the fence in pto_engine_tell_submitter() that follows the end of its task.
   */
  if (slot != NULL)
    return pto_engine_slot_is_done (slot, pto_load_relaxed (&engine->wait_taken))
           || pto_engine_has_failed (engine);
  return pto_engine_completed (engine) >= pto_load_relaxed (&engine->wait_total);
}

void
pto_engine_tell_submitter (struct pto_engine *engine)
{
  /* Between the completion and the look at waiting; pairs with the fence in wait_for(). */
  pto_fence_seq_cst ();
  if (pto_load_relaxed (&engine->waiting) == 0 || !wait_is_over (engine))
    return;
  /* Relaxed: what is over is read from the slots and counts. */
  pto_fetch_add_relaxed (&engine->progress.value, 1);
  pto_unpark (engine->exec, &engine->progress);
}

uint64_t
pto_engine_progress (const struct pto_engine *engine)
{
  uint64_t n = pto_engine_completed (engine);

  for (uint32_t i = 0; i < engine->config.n_schedulers; i++)
    n += pto_load_relaxed (&engine->words[i]->parts);
  return engine->config.beats != NULL ? n + engine->config.beats (engine->config.beats_data) : n;
}

static __attribute__ ((cold)) void
fail_stuck (struct pto_engine *engine)
{
  const struct pto_blocked *blocked = &engine->blocked;
  struct pto_shortage shortage;
  char held_up[400];

  if (blocked->what != PTO_OK)
    {
      pto_engine_describe_shortage (engine, blocked, &engine->rings[blocked->ring],
                                    engine->tails[blocked->ring], pto_map_used (engine->map),
                                    engine->line.n_held, &shortage);
      pto_engine_fail (engine, PTO_STATUS_SCHEDULER_TIMEOUT,
                       _ ("deadlock: %" PRIu64 " of %" PRIu64
                          " tasks are done and nothing can run any more, while a submit waits: %s, "
                          "active=%" PRIu64 "/%" PRIu64 ": for submits to go on, %s"),
                       pto_engine_completed (engine), engine->submitted, shortage.what,
                       shortage.used, shortage.all, shortage.knob);
      return;
    }
  pto_added_describe (engine, held_up, sizeof held_up);
  pto_engine_fail (
      engine, PTO_STATUS_SCHEDULER_TIMEOUT,
      _ ("deadlock: %" PRIu64 " of %" PRIu64 " tasks are done and nothing can run any more%s%s"),
      pto_engine_completed (engine), engine->submitted, held_up[0] != '\0' ? ": " : "", held_up);
}

bool
pto_engine_wait_for (struct pto_engine *engine, struct pto_slot *slot, uint32_t taken)
{
  bool virtual_clock = pto_exec_backend (engine->exec) == PTO_BACKEND_DET;
  uint64_t patience
      = slot != NULL ? engine->config.ring_patience_ns : engine->config.end_patience_ns;
  bool forever = virtual_clock || patience == PTO_NEVER;
  uint64_t mark = pto_engine_progress (engine);
  uint64_t limit = forever ? PTO_NEVER : pto_now (engine->exec) + patience;
  bool parked = false;
  bool ok = true;

  pto_store_relaxed (&engine->wait_slot, slot);
  pto_store_relaxed (&engine->wait_taken, taken);
  pto_store_relaxed (&engine->wait_total, engine->submitted - engine->build.n_blocked);
  pto_store_relaxed (&engine->waiting, 1);
  for (;;)
    {
      uint32_t seen = pto_word_get (&engine->progress);
      uint64_t deadline = limit;
      uint64_t now;

      /* Pairs with the fence in pto_engine_tell_submitter(): waiting and what is waited for come
       * before it, and the look after. */
      pto_fence_seq_cst ();
      if (wait_is_over (engine))
        break;
      /* Release: what is waited for is written. No word of a protocol: nobody acts upon it. */
      if (!parked)
        atomic_store_explicit (&engine->wait_since, pto_wall_clock (), memory_order_release);
      parked = true;
      if (!pto_engine_ask_cancelled (engine) && engine->cancelled != NULL && !virtual_clock
          && !pto_engine_has_failed (engine))
        deadline = pto_now (engine->exec) + CANCEL_POLL_NS;
      /* A virtual clock has no timer for this: it would stand in the way of proofs. */
      if (engine->blocked.told_at < deadline && !virtual_clock)
        deadline = engine->blocked.told_at;
      switch (pto_park (engine->exec, &engine->progress, seen, deadline))
        {
        case PTO_PARK_WOKEN:
          break;
        case PTO_PARK_TIMEOUT:
          if (pto_now (engine->exec) < limit)
            break;
          now = pto_engine_progress (engine);
          ok = now != mark;
          mark = now;
          limit = pto_now (engine->exec) + patience;
          break;
        case PTO_PARK_DEADLOCK:
          ok = wait_is_over (engine) || (engine->order != NULL && pto_engine_go_on (engine, true))
               || (engine->config.unblock != NULL
                   && engine->config.unblock (engine->config.unblock_data));
          if (!ok && engine->blocked.told_at != PTO_NEVER)
            pto_engine_tell_blocked (engine);
          if (!ok)
            fail_stuck (engine);
          break;
        }
      if (!ok)
        break;
      if (engine->blocked.told_at != PTO_NEVER && pto_now (engine->exec) >= engine->blocked.told_at)
        pto_engine_tell_blocked (engine);
    }
  pto_store_relaxed (&engine->waiting, 0);
  if (parked)
    {
      /* Before the words of the next wait: who reads one of those finds this changed. */
      atomic_store_explicit (&engine->wait_since, 0, memory_order_relaxed);
      atomic_thread_fence (memory_order_release);
    }
  return ok;
}

void
pto_engine_run_all (struct pto_engine *engine)
{
  do
    /* Nobody wakes the submitter, who waits for nothing: the executor does when nobody can run. */
    while (pto_park (engine->exec, &engine->progress, pto_word_get (&engine->progress), PTO_NEVER)
           != PTO_PARK_DEADLOCK)
      ;
  while (pto_engine_go_on (engine, false));
}
