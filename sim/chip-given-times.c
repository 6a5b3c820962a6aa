/* chip-given-times.c: how does a run go whose times are all known before?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "chip-given-times.h"

#include "pto/core/graph-launch.h"
#include "pto/core/submit.h"
#include "pto/exec/pto-atomic.h"
#include "chip-private.h"
#include "kernel-sync.h"

/* --- cores --- */

static uint32_t
given_run_of (const struct pto_given *given, const struct pto_core *core)
{
  const struct pto_given_task *task = &given->tasks[core->payload.task->line - 1];
  uint32_t block = (uint32_t) (core->block & PTO_MAX_BLOCKS);

  if (core->parts == NULL)
    return task->first_run;
  if (core->party == NULL)
    return task->first_run + block;
  /* Members that begin at once have blocks of their own. */
  return task->first_run
         + block * core->party->block / core->party->n_members * core->party->n_members
         + core->endpoint.member;
}

/* Parks until all have begun. */
static void
given_wait (const struct pto_given_wait *wait, struct pto_core *core)
{
  pto_store_relaxed (&core->waits, PTO_WAIT_SYNC);
  while (wait->absent > 0 && !pto_engine_has_failed (core->engine))
    pto_park (core->engine->exec, &core->wake, pto_word_get (&core->wake), PTO_NEVER);
  pto_store_relaxed (&core->waits, PTO_WAIT_NOTHING);
}

/* Waits for the others of its meetings. Returns how much longer the kernel takes than it would if
 * all of them had come as they did when its time was taken. */
static uint64_t
given_meet (const struct pto_given *given, struct pto_core *core, uint32_t run)
{
  struct pto_given_begin *begin = &given->begins[run];
  uint64_t longer = 0;

  *begin = (struct pto_given_begin){ pto_now (core->engine->exec), core };
  for (uint32_t i = given->first_meet[run]; i < given->first_meet[run + 1]; i++)
    {
      uint32_t number = given->meets[given->run_meets[i]].meeting;
      const struct pto_given_meeting *meeting = &given->meetings[number];

      if (--given->waits[number].absent > 0)
        continue;
      given->waits[number].last = begin->time;
      for (uint32_t k = meeting->first; k < meeting->first + meeting->n; k++)
        pto_interconnect_wake (given->begins[given->meets[k].run].core);
    }
  for (uint32_t i = given->first_meet[run]; i < given->first_meet[run + 1]; i++)
    {
      const struct pto_given_meet *own = &given->meets[given->run_meets[i]];
      const struct pto_given_wait *wait = &given->waits[own->meeting];
      uint64_t later;

      if (!own->waits)
        continue;
      given_wait (wait, core);
      later = wait->last - begin->time + own->waited;
      if (later > own->before && later - own->before > longer)
        longer = later - own->before;
    }
  return longer;
}

uint64_t
pto_given_time (struct pto_core *core)
{
  struct pto_given *given = core->chip->given;
  uint32_t run = given_run_of (given, core);
  uint64_t now = pto_now (core->engine->exec);
  uint64_t end = now + given->run_ns[run];

  if (given->n_meetings > 0 && given->first_meet[run] < given->first_meet[run + 1])
    {
      end += given_meet (given, core, run);
      now = pto_now (core->engine->exec);
      end = end > now ? end : now;
    }
  if (end > given->makespan)
    given->makespan = end;
  return end - now;
}

/* --- the orchestration --- */

/* Since the end of what the orchestration did last it waited for that. */
static void
given_note_wait (struct pto_given *given, uint64_t *sum)
{
  uint64_t now = pto_now (given->chip->machine.engine.exec);

  *sum += now - given->until;
  given->until = now;
}

/* Waits for a task if the orchestration did before this submit. false: the run has failed. */
static bool
given_await (struct pto_given *given, const struct pto_given_task *task)
{
  const struct pto_plan_task *awaited;
  uint64_t before = given->awaited;

  if (task->awaits == PTO_GIVEN_NONE)
    return true;
  awaited = &given->graph->tasks[task->awaits];
  if (!pto_engine_await (
          &given->chip->machine.engine,
          PTO_TASK_ID (awaited->ring, given->base[awaited->ring] + awaited->position)))
    return false;
  given_note_wait (given, &given->awaited);
  if (given->awaited > before)
    given->why = task->why;
  return true;
}

static bool
given_pace (void *data, uint32_t number)
{
  struct pto_given *given = data;
  const struct pto_given_task *task = &given->tasks[number];
  const struct pto_plan *graph = given->graph;
  bool has_held = false;

  for (; given->n_holds < graph->n_holds && graph->holds[given->n_holds].task == number;
       given->n_holds++)
    has_held = has_held || graph->holds[given->n_holds].held;
  given_note_wait (given, has_held ? &given->stalled_clusters : &given->stalled[given->last_ring]);
  pto_charge (given->chip->machine.engine.exec, task->gap);
  given->until += task->gap;
  given->submitter += task->gap;
  given->last_ring = graph->tasks[number].ring;
  return given_await (given, task);
}

static int
given_orchestrate (PTO2Runtime *rt, void *data)
{
  static const int32_t never = 0; /* a condition */
  struct pto_given *given = data;
  struct pto_engine *engine = &given->chip->machine.engine;
  uint64_t word = (uint64_t) (uintptr_t) &never;

  (void) rt;
  given->until = pto_now (engine->exec);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    given->base[r] = engine->rings[r].head;
  if (!pto_engine_launch (
          engine, &(struct pto_launch){
                      .graph = given->graph, .words = &word, .pace = given_pace, .data = given }))
    return 1;
  given_note_wait (given, &given->stalled[given->last_ring]);
  return 0;
}

enum pto_status
pto_given_run (struct pto_chip *chip, struct pto_given *given, struct pto_report *report)
{
  static const struct pto_kernel kernels[PTO_N_CORE_TYPES]
      = { { .name = "AIC", .core_type = PTO_CORE_TYPE_AIC },
          { .name = "AIV", .core_type = PTO_CORE_TYPE_AIV } };
  static const struct pto_program program = { kernels, PTO_N_CORE_TYPES };
  const struct pto_run_config config
      = { .block_dim = given->clusters, .aicpu_threads = given->schedulers + 1 };
  enum pto_status status;

  chip->params.values[PTO_PARAMETER_SEED] = given->seed;
  chip->params.values[PTO_PARAMETER_CLUSTERS] = given->clusters;
  given->chip = chip;
  for (uint32_t m = 0; m < given->n_meetings; m++)
    given->waits[m] = (struct pto_given_wait){ .absent = given->meetings[m].n };
  chip->given = given;
  status = pto_chip_run (chip, &program, &config, given_orchestrate, given, NULL, report);
  chip->given = NULL;
  for (uint32_t s = 0; s < chip->n_schedulers; s++)
    if (chip->aicpus[s].scheduler.charged > given->scheduler)
      given->scheduler = chip->aicpus[s].scheduler.charged;
  return status;
}
