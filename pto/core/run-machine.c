/* run-machine.c: what is a run, of a chip or of a level, from its begin to its end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * And what do the calls of pto_orchestration_api.h do, but for those that submit.
 */
#include "run-machine.h"

#include "exec/translate.h"
#include "completion.h"
#include "scheduler.h"

#include <stdarg.h>

#define MS UINT64_C (1000000)

/* --- the runtime --- */

static void
scope_begin (PTO2Runtime *rt, const char *file, int32_t line)
{
  struct pto_machine *machine = pto_machine_of_runtime (rt);
  struct pto_guard *guard;

  if (pto_machine_is_elsewhere (machine, "pto2_rt_scope_begin"))
    return;
  guard = pto_machine_come_in (machine);
  pto_engine_scope_begin (&machine->engine, file, line);
  pto_machine_go_out (machine, guard);
}

static void
manual_scope_begin (PTO2Runtime *rt, const char *file, int32_t line)
{
  struct pto_machine *machine = pto_machine_of_runtime (rt);
  struct pto_guard *guard;

  if (pto_machine_is_elsewhere (machine, "pto2_rt_manual_scope_begin"))
    return;
  guard = pto_machine_come_in (machine);
  pto_engine_manual_scope_begin (&machine->engine, file, line);
  pto_machine_go_out (machine, guard);
}

static void
scope_end (PTO2Runtime *rt)
{
  struct pto_machine *machine = pto_machine_of_runtime (rt);
  struct pto_guard *guard;

  if (pto_machine_is_elsewhere (machine, "pto2_rt_scope_end"))
    return;
  guard = pto_machine_come_in (machine);
  pto_engine_scope_end (&machine->engine);
  pto_machine_go_out (machine, guard);
}

static void
orchestration_done (PTO2Runtime *rt)
{
  struct pto_machine *machine = pto_machine_of_runtime (rt);

  if (!pto_machine_is_elsewhere (machine, "pto2_rt_orchestration_done"))
    machine->done = true;
}

/* Records come from the engine, scope by scope: there is nothing to set up. */
static void
init_tensor_pool (PTO2Runtime *rt)
{
  (void) rt;
}

static PTO2Buffer *
new_buffer (PTO2Runtime *rt, uint64_t bytes, uint32_t *generation)
{
  struct pto_machine *machine = pto_machine_of_runtime (rt);
  struct pto_guard *guard;
  PTO2Buffer *buffer;

  *generation = 0;
  if (pto_machine_is_elsewhere (machine, "make_tensor"))
    return NULL;
  guard = pto_machine_come_in (machine);
  buffer = pto_engine_new_buffer (&machine->engine, bytes, generation);
  pto_machine_go_out (machine, guard);
  return buffer;
}

static void
tell (struct pto_machine *machine, int32_t severity, const char *message)
{
  if (machine->log != NULL)
    machine->log (machine->log_data, severity, message);
  else if (severity <= PTO2_LOG_WARN)
    fprintf (stderr, "pto: %s: %s\n", severity == PTO2_LOG_ERROR ? "error" : "warning", message);
}

void
pto_machine_warn (void *machine, const char *message)
{
  tell (machine, PTO2_LOG_WARN, message);
}

static void log_message (PTO2Runtime *rt, int32_t severity, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

static void
log_message (PTO2Runtime *rt, int32_t severity, const char *format, ...)
{
  struct pto_machine *machine = pto_machine_of_runtime (rt);
  struct pto_guard *guard;
  char message[1024];
  va_list args;

  va_start (args, format);
  vsnprintf (message, sizeof message, format, args);
  va_end (args);
  /* Whoever has something to say may say it. */
  if (!pto_machine_is_here (machine))
    {
      tell (machine, severity, message);
      return;
    }
  guard = pto_machine_come_in (machine);
  tell (machine, severity, message);
  pto_machine_go_out (machine, guard);
}

bool
pto_runtime_has_failed (PTO2Runtime *rt)
{
  return pto_engine_has_failed (&pto_machine_of_runtime (rt)->engine);
}

const char *
pto_runtime_tell_failure (PTO2Runtime *rt)
{
  struct pto_engine *engine = &pto_machine_of_runtime (rt)->engine;

  engine->deadlock.heard = true;
  /* Acquire: pairs with the release behind the report. Nobody is waited for: of a run that can not
   * go on the report comes with its end. */
  return pto_load_acquire (&engine->verdict) == PTO_VERDICT_FAILED ? engine->report.message : NULL;
}

void
pto_runtime_fail (PTO2Runtime *rt, enum pto_status status, const char *format, ...)
{
  char message[1500];
  va_list args;

  va_start (args, format);
  vsnprintf (message, sizeof message, format, args);
  va_end (args);
  pto_engine_fail (&pto_machine_of_runtime (rt)->engine, status, "%s", message);
}

void
pto_machine_refuse_caller (struct pto_machine *machine, const char *call)
{
  if (machine->forks != pto_guard_forks)
    {
      char name[64];

      snprintf (name, sizeof name, "%s()", call);
      pto_guard_end_copy (name);
    }
  pto_engine_fail (
      &machine->engine, PTO_STATUS_INVALID_ARGS,
      _ ("%s() is called on another thread than the orchestration's: call it on the one "
         "on which the orchestration was called, one call after the other"),
      call);
}

/* --- making and ending --- */

void
pto_machine_configure (struct pto_engine_config *config, const struct pto_params *params)
{
  const uint64_t *values = params->values;

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      struct pto_ring_config *ring = &config->rings[r];

      ring->window = (uint32_t) pto_params_of_ring (params, PTO_PARAMETER_TASK_WINDOW, r);
      ring->edge_pool
          = power_of_two_at_least (pto_params_of_ring (params, PTO_PARAMETER_DEP_POOL, r));
      ring->heap = pto_params_of_ring (params, PTO_PARAMETER_HEAP, r);
    }
  config->map_pool = (uint32_t) values[PTO_PARAMETER_MAP_POOL];
  config->hazards = (uint32_t) values[PTO_PARAMETER_HAZARDS];
  config->rename = values[PTO_PARAMETER_RENAME] != 0;
  config->build_first = values[PTO_PARAMETER_BUILD_MODE] == 0;
  config->timeout_ns = values[PTO_PARAMETER_TIMEOUT] * MS;
  config->notice_ns = values[PTO_PARAMETER_BLOCKED_NOTICE] * MS;
}

enum pto_status
pto_machine_init (struct pto_machine *machine, struct pto_exec *exec,
                  const struct pto_engine_config *config, const PTO2RuntimeOps *own,
                  struct pto_report *report)
{
  enum pto_status status;

  memset (machine, 0, sizeof *machine);
  pthread_mutex_init (&machine->door.lock, NULL);
  machine->door.totals = &machine->door.own;
  machine->ops = *own;
  machine->ops.size = sizeof (PTO2RuntimeOps);
  machine->ops.scope_begin = scope_begin;
  machine->ops.manual_scope_begin = manual_scope_begin;
  machine->ops.scope_end = scope_end;
  machine->ops.orchestration_done = orchestration_done;
  machine->ops.init_tensor_pool = init_tensor_pool;
  machine->ops.new_buffer = new_buffer;
  machine->ops.log = log_message;
  machine->runtime.ops = &machine->ops;
  status = pto_engine_init (&machine->engine, exec, config, report);
  if (status != PTO_OK)
    {
      memset (&machine->engine, 0, sizeof machine->engine);
      pthread_mutex_destroy (&machine->door.lock);
    }
  else
    machine->engine.runtime = &machine->runtime;
  if (status == PTO_OK && config->notice_ns > 0)
    {
      machine->engine.config.notice = pto_machine_warn;
      machine->engine.config.notice_data = machine;
    }
  return status;
}

void
pto_machine_clear (struct pto_machine *machine)
{
  pto_engine_destroy (&machine->engine);
  pto_recorder_clear (&machine->recorder);
  pthread_mutex_destroy (&machine->door.lock);
}

void
pto_machine_take_heaps (struct pto_machine *machine, struct pto_heaps *heaps)
{
  for (uint32_t i = 0; i < PTO_RINGS; i++)
    {
      struct pto_circle *heap = &machine->engine.rings[i].heap;

      if (machine->engine.rings[i].heap_is_given)
        continue;
      heaps->rings[i].base = heap->base;
      heaps->rings[i].size = heap->size;
      heap->base = NULL;
    }
}

/* --- a run --- */

enum pto_status
pto_machine_record (struct pto_machine *machine, uint32_t level, uint32_t n_actors,
                    uint64_t capacity, struct pto_watch *watch, struct pto_report *report)
{
  struct pto_engine *engine = &machine->engine;
  uint32_t n_schedulers = engine->config.n_schedulers;
  enum pto_status status = pto_recorder_choose (&machine->recorder, level,
                                                1 + n_schedulers + n_actors, capacity, report);

  if (status != PTO_OK)
    return status;
  engine->trace = pto_recorder_buffer (&machine->recorder, 0);
  engine->files = level > 0 ? &machine->recorder.trace->files : NULL;
  engine->watch = level >= PTO_TRACE_LEVEL_FULL ? watch : NULL;
  engine->observed
      = engine->trace != NULL || engine->witness != NULL || engine->order != NULL || engine->fills;
  for (uint32_t s = 0; s < n_schedulers; s++)
    engine->schedulers[s]->trace = pto_recorder_buffer (&machine->recorder, 1 + s);
  return PTO_OK;
}

static void
gather (const struct pto_engine *engine, struct pto_run_stats *stats, uint64_t wall_ns)
{
  bool virtual_clock = pto_exec_backend (engine->exec) == PTO_BACKEND_DET;

  memset (stats, 0, sizeof *stats);
  stats->tasks = engine->submitted;
  stats->completed = pto_engine_completed (engine);
  stats->failed = pto_engine_failures (engine);
  stats->edges = engine->stats.edges;
  stats->run_ns = wall_ns;
  stats->virtual_ns = virtual_clock ? engine->run_ns : 0;
  stats->elapsed_ns = virtual_clock ? engine->run_ns : wall_ns;
  stats->peak_live_tasks = engine->stats.peak_live;
  stats->recycled = pto_engine_recycled (engine);
  stats->stalls = engine->stats.stalls;
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    {
      stats->last_task_alive[ring] = engine->tails[ring];
      stats->ring_tasks[ring] = engine->rings[ring].head;
      stats->heap_peak[ring] = engine->rings[ring].heap.peak;
    }
}

void
pto_machine_count_failed (struct pto_machine_totals *totals)
{
  atomic_fetch_add_explicit (&totals->failed_runs, 1, memory_order_relaxed);
}

void
pto_machine_set_totals (struct pto_machine *machine, struct pto_machine_totals *totals)
{
  machine->door.totals = totals;
}

void
pto_machine_inherit_totals (struct pto_machine *machine, const struct pto_machine *other)
{
  machine->door.own = other->door.own;
  if (other->door.totals != &other->door.own)
    machine->door.totals = other->door.totals;
}

/* From here on somebody may look. */
static void
open_door (struct pto_machine *machine, uint64_t now)
{
  struct pto_machine_door *door = &machine->door;

  pthread_mutex_lock (&door->lock);
  door->running = true;
  door->n_begun++;
  door->began = now;
  pthread_mutex_unlock (&door->lock);
}

/* Not any more; and what it did is counted where it can be seen from now on. */
static void
shut_door (struct pto_machine *machine, enum pto_status status, const struct pto_run_stats *stats)
{
  struct pto_machine_door *door = &machine->door;
  struct pto_machine_totals *totals = door->totals;

  pthread_mutex_lock (&door->lock);
  door->running = false;
  totals->runs++;
  if (status != PTO_OK)
    pto_machine_count_failed (totals);
  totals->submitted += stats->tasks;
  totals->completed += stats->completed;
  totals->failed += stats->failed;
  totals->edges += stats->edges;
  totals->stalls += stats->stalls;
  totals->run_ns += stats->run_ns;
  totals->peak_live = max_of (totals->peak_live, stats->peak_live_tasks);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    totals->heap_peak[r] = max_of (totals->heap_peak[r], stats->heap_peak[r]);
  pthread_mutex_unlock (&door->lock);
}

enum pto_status
pto_machine_run (struct pto_machine *machine, const struct pto_run *run,
                 struct pto_run_stats *stats, struct pto_report *report)
{
  struct pto_engine *engine = &machine->engine;
  enum pto_status status;
  uint64_t wall;
  int result;

  machine->done = false;
  machine->forks = pto_guard_forks;
  pto_store_relaxed (&machine->thread, (uintptr_t) pto_machine_this_thread () + pto_guard_forks);
  machine->runtime.line = 0;
  machine->runtime.file = NULL;
  engine->cancelled = run->cancelled;
  engine->cancelled_data = run->cancelled_data;
  pto_engine_begin (engine);
  pto_recorder_begin (&machine->recorder, engine);
  wall = pto_wall_clock ();
  open_door (machine, wall);
  result = run->orchestrate (&machine->runtime, run->data);
  if (result != 0)
    {
      engine->deadlock.heard = true;
      pto_engine_fail (engine, PTO_STATUS_EXPLICIT, _ ("the orchestration returned %d"), result);
    }
  else if (engine->depth > 1)
    pto_engine_refuse_open (engine);
  machine->done = true;
  status = pto_engine_end (engine, report);
  if (run->settle != NULL)
    {
      status = run->settle (run->data, status, report);
      pto_engine_mark_end (engine);
    }
  pto_recorder_end (&machine->recorder, engine);
  engine->cancelled = NULL;
  gather (engine, stats, pto_wall_clock () - wall);
  shut_door (machine, status, stats);
  return status;
}
