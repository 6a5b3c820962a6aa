/* run-inline.c: which tasks does the submitter run itself?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "run-inline.h"

#include "completion.h"
#include "ready.h"
#include "scheduler.h"

#define AHEAD 192u /* for each thread that runs tasks */
/* It runs each task at once as long as they cost less than this on average, in ns:
 * bringing one to another CPU and its slot back costs more. That is tried when all tasks are
 * complete, after so many times 32 submits, unless tasks are long even for what they cost
 * elsewhere. */
#define DIRECT_NS 250u
#define DIRECT_SAMPLE 8u /* one in so many is timed */
#define DIRECT_MEAN 8u   /* of so many of these */
#define DIRECT_TRY_EVERY 32u
#define DIRECT_TRY_NS 500u
#define DIRECT_TRIES 64u

/* Runs some ready tasks right here. false: every scheduler is run by somebody else. */
static bool
carry (struct pto_engine *engine)
{
  uint32_t n = engine->config.n_schedulers;

  for (uint32_t i = 0; i < n; i++)
    {
      if (pto_exec_carry (engine->exec, engine->carry, &engine->words[engine->carry]->bell))
        {
          /* It has gone to wait however much it left: others, or itself elsewhere, must know. */
          pto_engine_ring_all (engine);
          return true;
        }
      engine->carry = engine->carry + 1 < n ? engine->carry + 1 : 0;
    }
  return false;
}

void
pto_engine_begin_direct (struct pto_engine *engine)
{
  engine->unshared = 0;
  /* A machine of another geometry has fewer. */
  if (engine->carry >= engine->config.n_schedulers)
    engine->carry = 0;
  engine->direct_limit = pto_ticks_per_us () * DIRECT_NS * DIRECT_MEAN / 1000;
}

/* All tasks are complete, or nearly: from now on each is run as it is submitted. */
static void
try_direct (struct pto_engine *engine)
{
  engine->indirect = 0;
  if (pto_engine_failures (engine) > 0)
    return;
  for (uint32_t i = 0; i < DIRECT_TRIES && pto_engine_completed (engine) != engine->submitted; i++)
    if (!carry (engine))
      return;
  if (pto_engine_completed (engine) != engine->submitted || engine->direct_limit == 0)
    return;
  if (!pto_exec_claim (engine->exec, engine->carry))
    {
      /* Somebody carries that one and may stay; the next time another. */
      engine->carry = (engine->carry + 1) % engine->config.n_schedulers;
      return;
    }
  engine->direct = true;
  engine->direct_ticks = 0;
}

void
pto_engine_resume_direct (struct pto_engine *engine)
{
  engine->resume = false;
  try_direct (engine);
}

void
pto_engine_leave_direct (struct pto_engine *engine)
{
  engine->resume = engine->direct && engine->direct_ticks <= engine->direct_limit;
  if (!engine->direct)
    return;
  engine->direct = false;
  pto_exec_release (engine->exec, engine->carry);
}

void
pto_engine_take_part (struct pto_engine *engine)
{
  engine->unshared = 0;
  if (++engine->indirect >= DIRECT_TRY_EVERY && pto_load_relaxed (&engine->task_ns) < DIRECT_TRY_NS)
    try_direct (engine);
  else
    /* Others find something, too. */
    while (engine->submitted - pto_engine_completed (engine) > AHEAD * engine->config.n_carriers
           && pto_engine_backlog (engine) > engine->config.n_schedulers && carry (engine))
      ;
}

extern inline void
pto_engine_run_direct (struct pto_engine *engine, struct pto_slot *slot)
{
  /* Scattered, so that a program's own period can not hide its long tasks: by the top bits, for
   * lower ones have a period of their own. */
  bool timed = engine->submitted * UINT64_C (0x9e3779b97f4a7c15) < UINT64_MAX / DIRECT_SAMPLE;
  uint64_t ticks = timed ? pto_ticks () : 0;

  /* Making room may have ended it: then its producers are still done. */
  if (!engine->direct || !pto_scheduler_run (engine->schedulers[engine->carry], slot))
    {
      uint32_t queue = slot->queue;

      pto_engine_leave_direct (engine);
      pto_engine_push_ready (engine, slot, engine->next_shard++);
      pto_engine_ring (engine, queue);
      return;
    }
  if (timed)
    engine->direct_ticks += pto_ticks () - ticks - engine->direct_ticks / DIRECT_MEAN;
  if (PTO_UNLIKELY (engine->direct_ticks > engine->direct_limit)
      /* It waits for something, and whoever carries its domain will see to it; or it has failed,
       * and whoever depends on it is not run. */
      || PTO_UNLIKELY (pto_load_relaxed (&slot->state) != PTO_TASK_COMPLETED))
    pto_engine_leave_direct (engine);
}
