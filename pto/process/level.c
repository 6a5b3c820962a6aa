/* level.c: how are engine, scheduler, pool, children and keeper put together, in which order do
 * they begin and end, and what is one run of them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-private.h"

#include "core/completion.h"
#include "exec/os-thread.h"
#include "exec/translate.h"
#include "arena.h"
#include "write-log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define MS UINT64_C (1000000)
#define CLOSE_NS (2000 * MS)
/* A child that has been asked to stop because its run was cancelled. */
#define CANCEL_NS (30 * MS)
/* The same when the run has failed: of the time without progress. */
#define FAILED_PART 8u

static uint64_t
param (const struct pto_level *level, enum pto_param index)
{
  return level->params.values[index];
}

/* --- making --- */

static PTO2TaskId submit_kernel (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type,
                                 PTOParam *params, int32_t n_params);

static const PTO2RuntimeOps runtime_ops = { .submit_task = submit_kernel };

static const char *
callable_name (void *data, uint32_t callable)
{
  const struct pto_level *level = data;
  const char *name = NULL;

  if (level->config.callable_name != NULL)
    name = level->config.callable_name (level->config.callable_name_data, callable);
  return name != NULL ? name : "?";
}

static uint64_t
beats (void *data)
{
  const struct pto_level *level = data;

  return pto_pool_beats (level->pool);
}

/* Nobody has asked for all that a level has by default: where address space is limited, less does.
 * Gives what can be less, as bits. */
static uint32_t
make_less (struct pto_params *params, uint32_t of)
{
  static const enum pto_param large[]
      = { PTO_PARAMETER_TASK_WINDOW, PTO_PARAMETER_DEP_POOL, PTO_PARAMETER_MAP_POOL };
  struct pto_params most, least;
  uint32_t less = 0;

  pto_params_init (&most, 3);
  pto_params_init (&least, 2);
  for (uint32_t i = 0; i < sizeof large / sizeof large[0]; i++)
    {
      uint64_t *value = &params->values[large[i]];

      /* Somebody has. */
      if (pto_params_differ (params, large[i]))
        continue;
      if ((of & 1u << i) == 0 && (of != 0 || *value != most.values[large[i]]))
        continue;
      if (*value <= least.values[large[i]])
        continue;
      *value /= 2;
      less |= 1u << i;
    }
  return less;
}

static bool
make_machine (struct pto_level *level, struct pto_report *report)
{
  struct pto_engine_config config = {
    .n_queues = pto_pool_n_queues (level->family.children, level->family.n_children),
    .n_shards = 1,
    .n_schedulers = 1,
    .ring_patience_ns = param (level, PTO_PARAMETER_TIMEOUT) * MS,
    .end_patience_ns = PTO_NEVER,
    .beats = beats,
    .beats_data = level,
    .queue_names = level->queue_names,
    .other_bytes = param (level, PTO_PARAMETER_ARENA),
    .other_setting = "arena",
    .kernel_name = callable_name,
    .kernel_name_data = level,
  };
  struct pto_exec_config exec_config = { .backend = PTO_BACKEND_HOST,
                                         .domains = 1,
                                         .seed = param (level, PTO_PARAMETER_SEED),
                                         .bell = &level->family.hub->bell };
  struct pto_report inner = { 0 };
  char error[256] = "";
  uint32_t less = 0;
  struct pto_exec *exec = pto_exec_new (&exec_config, error, sizeof error);

  if (exec == NULL)
    {
      pto_report_set (report, PTO_STATUS_SYSTEM, _ ("%s can not be started: %s"),
                      level->config.path, error);
      return false;
    }
  for (uint32_t i = 0; i < PTO_QUEUES_MAX; i++)
    level->queue_names[i] = "workers";
  do
    {
      inner = (struct pto_report){ 0 };
      pto_machine_configure (&config, &level->params);
      if (pto_machine_init (&level->machine, exec, &config, &runtime_ops, &inner) == PTO_OK)
        {
          level->machine.log = level->config.log;
          level->machine.log_data = level->config.log_data;
          return true;
        }
      less = make_less (&level->params, less);
    }
  while (inner.status == PTO_STATUS_NO_MEMORY && less != 0);
  pto_exec_free (exec);
  pto_report_set (report, inner.status, _ ("%s can not be started: %s"), level->config.path,
                  inner.message);
  return false;
}

static uint64_t
milliseconds_or_never (uint64_t ms)
{
  return ms == 0 ? PTO_NEVER : ms * MS;
}

static bool
make_pool (struct pto_level *level, struct pto_report *report)
{
  struct pto_pool_config config = {
    .path = level->config.path,
    .hub = level->family.hub,
    .children = level->family.children,
    .n_children = level->family.n_children,
    .writes = level->writes,
    .pace = pto_keeper_set_pace,
    .data = &level->keeper,
    .limits = { .task_ns = milliseconds_or_never (param (level, PTO_PARAMETER_TASK_TIMEOUT)),
                .start_ns = param (level, PTO_PARAMETER_TIMEOUT) * MS,
                .close_ns = CLOSE_NS,
                .stop_ns = milliseconds_or_never (param (level, PTO_PARAMETER_STOP_TIMEOUT)) },
    .group_ns = param (level, PTO_PARAMETER_TIMEOUT) * MS,
    .retries = (uint32_t) param (level, PTO_PARAMETER_RETRIES),
  };
  struct pto_scheduler_config scheduler = { .index = 0, .sorted = true, .far = true };
  struct pto_keeper *keeper = &level->keeper;

  level->closer = pto_control_new (PTO_REQUEST_CLOSE, NULL, NULL, 0);
  level->pool = pto_pool_new (&level->machine.engine, level->machine.engine.exec, &config);
  if (level->pool != NULL && level->closer != NULL)
    {
      scheduler.endpoints = pto_pool_endpoints (level->pool, &scheduler.n_endpoints);
      level->has_scheduler
          = pto_scheduler_init (&level->scheduler, &level->machine.engine, &scheduler);
    }
  keeper->family = &level->family;
  keeper->pool = level->pool;
  keeper->exec = level->family.exec = level->machine.engine.exec;
  keeper->event = level->family.event = level->event;
  if (level->has_scheduler && pto_keeper_init (keeper, &config.limits))
    return true;
  pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for the children of %s"),
                  level->config.path);
  return false;
}

/* Returns false with a report; what was made by then is freed with the level. */
static bool
make_all (struct pto_level *level, const struct pto_level_config *config, struct pto_report *report)
{
  struct pto_family_config family = { .path = level->config.path,
                                      .children = config->children,
                                      .n_children = config->n_children,
                                      .restart = config->restart,
                                      .fork = config->fork,
                                      .fork_data = config->fork_data };
  bool copies = false;

  if (!pto_family_init (&level->family, &family, report))
    return false;
  /* Children are given copies of what the caller holds. */
  level->config.children = NULL;
  level->event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (level->event < 0)
    {
      pto_report_set (report, PTO_STATUS_SYSTEM, _ ("%s can not be started: eventfd: %s"),
                      config->path, strerror (errno));
      return false;
    }
  pto_bell_init (&level->family.hub->bell, level->event);
  for (uint32_t i = 0; i < config->n_children; i++)
    copies = copies || config->children[i].far;
  if (copies && (level->writes = pto_writes_new ()) == NULL)
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for %s"), config->path);
      return false;
    }
  if (!make_machine (level, report) || !make_pool (level, report))
    return false;
  if (level->family.n_processes > 0)
    {
      level->has_arena = pto_arena_acquire (param (level, PTO_PARAMETER_ARENA), report) == PTO_OK;
      pto_arena_range (&level->arena, &level->arena_size);
    }
  return level->has_arena || level->family.n_processes == 0;
}

struct pto_level *
pto_level_new (const struct pto_level_config *config, struct pto_report *report)
{
  struct pto_level *level = NULL;

  if (config->n_children > PTO_CHILDREN_MAX)
    {
      pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                      _ ("%s has %u children; a worker has at most %u"), config->path,
                      config->n_children, PTO_CHILDREN_MAX);
      return NULL;
    }
  if (posix_memalign ((void **) &level, 64, (sizeof *level + 63) & ~(size_t) 63) != 0)
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for %s"), config->path);
      return NULL;
    }
  memset (level, 0, sizeof *level);
  level->event = -1;
  level->config = *config;
  level->params = *config->params;
  level->config.params = &level->params;
  level->generation = pto_process_generation ();
  pthread_mutex_init (&level->guest_lock, NULL);
  if (make_all (level, config, report))
    return level;
  pto_level_free (level);
  return NULL;
}

/* What only this process works on: no page tables of it are copied. */
static void
keep_from_children (struct pto_level *level)
{
  for (uint32_t i = 0; i < PTO_RINGS; i++)
    {
      struct pto_ring *ring = &level->machine.engine.rings[i];

      madvise (ring->shared, ring->shared_size, MADV_DONTFORK);
      madvise (ring->storage.base, ring->storage.size, MADV_DONTFORK);
    }
}

enum pto_status
pto_level_fork (struct pto_level *level, struct pto_report *report)
{
  struct pto_report inner = { 0 };

  if (level->family.n_processes > 0)
    {
      pto_process_hygiene_once ();
      level->map = pto_shared_map_new (&inner);
      if (level->map == NULL)
        return pto_report_set (report, inner.status, "%s", inner.message);
      keep_from_children (level);
    }
  return pto_family_fork (&level->family, report);
}

static enum pto_status
start_actors (struct pto_level *level, struct pto_report *report)
{
  char error[256] = "";
  bool ok;

  pto_exec_enter (level->machine.engine.exec);
  ok = pto_exec_spawn (level->machine.engine.exec, 0, "scheduler", pto_scheduler_main,
                       &level->scheduler, error, sizeof error)
       == 0;
  if (ok
      && pto_exec_spawn (level->machine.engine.exec, 0, "pump", pto_pool_pump, level->pool, error,
                         sizeof error)
             != 0)
    {
      ok = false;
      pto_scheduler_stop (&level->scheduler);
      pto_exec_join (level->machine.engine.exec);
    }
  pto_exec_leave (level->machine.engine.exec);
  level->runs = ok;
  ok = ok && pto_keeper_start (&level->keeper, error, sizeof error) == 0
       && pto_family_start_threads (&level->family, error, sizeof error);
  if (ok)
    return PTO_OK;
  return pto_report_set (report, PTO_STATUS_SYSTEM, _ ("%s can not be started: %s"),
                         level->config.path, error);
}

/* CLOSE to all; who has not ended in time is killed by the pump. at_once: they have nothing worth
 * closing. */
static void
close_children (struct pto_level *level, bool at_once)
{
  struct pto_control *control = level->closer;

  level->closer = NULL;
  control->last = true;
  for (uint32_t i = 0; i < level->family.n_children; i++)
    if (pto_family_was_begun (&level->family, i))
      control->targets[i / 64] |= UINT64_C (1) << (i % 64);
    else
      {
        /* And asked to start all the same. */
        pto_child_found_dead (&level->family.children[i]);
        pto_hub_mark (NULL, level->family.hub, i);
      }
  if (at_once)
    pto_family_give_up (&level->family);
  pto_exec_enter (level->machine.engine.exec);
  pto_pool_control (level->pool, control);
  for (;;)
    {
      uint32_t seen = pto_word_get (&level->pool->news);

      if (!pto_family_is_left (&level->family) && pto_word_get (&control->done) != 0)
        break;
      pto_park (level->machine.engine.exec, &level->pool->news, seen,
                pto_now (level->machine.engine.exec) + PTO_LEVEL_POLL_NS);
    }
  pto_control_unref (control);
  pto_pool_stop (level->pool);
  pto_scheduler_stop (&level->scheduler);
  pto_exec_join (level->machine.engine.exec);
  pto_exec_leave (level->machine.engine.exec);
}

/* Ends everybody, in whatever state they are. */
static void
take_down (struct pto_level *level, bool at_once)
{
  if (level->runs && level->keeper.has_thread)
    close_children (level, at_once);
  else if (level->runs)
    {
      /* The pump waits for children, whom nobody watches: what it has is dropped with its stack. */
      pto_exec_enter (level->machine.engine.exec);
      pto_scheduler_stop (&level->scheduler);
      pto_exec_leave (level->machine.engine.exec);
    }
  level->runs = false;
  pto_keeper_stop (&level->keeper);
  pto_family_end (&level->family);
}

enum pto_status
pto_level_start (struct pto_level *level, bool (*cancelled) (void *data), void *data,
                 struct pto_report *report)
{
  enum pto_status status = start_actors (level, report);
  const struct pto_child *failed;

  if (status == PTO_OK)
    {
      pthread_mutex_lock (&level->guest_lock);
      pto_exec_enter (level->machine.engine.exec);
      for (;;)
        {
          uint32_t seen = pto_word_get (&level->pool->news);
          /* Before the look for the lost: who is not among those that start is among these. */
          bool starting = pto_pool_starting (level->pool) != 0;

          failed = pto_pool_start_failed (level->pool);
          if (failed != NULL)
            break;
          if (pto_pool_begin_lost (level->pool) == 0 && !starting
              && !pto_pool_has_lost (level->pool))
            break;
          if (cancelled != NULL && cancelled (data))
            {
              status = pto_report_set (report, PTO_STATUS_CANCELLED,
                                       _ ("the start of %s was cancelled"), level->config.path);
              break;
            }
          pto_park (level->machine.engine.exec, &level->pool->news, seen,
                    cancelled != NULL ? pto_now (level->machine.engine.exec) + PTO_LEVEL_POLL_NS
                                      : PTO_NEVER);
        }
      pto_exec_leave (level->machine.engine.exec);
      pthread_mutex_unlock (&level->guest_lock);
      if (status == PTO_OK && failed != NULL)
        status = pto_family_report_start (&level->family, failed, report);
    }
  return status;
}

void
pto_level_give_up_start (struct pto_level *level)
{
  take_down (level, true);
}

struct pto_writes *
pto_level_writes (const struct pto_level *level)
{
  return level->writes;
}

void
pto_level_take_heaps (struct pto_level *level, struct pto_heaps *heaps)
{
  pto_machine_take_heaps (&level->machine, heaps);
}

void
pto_level_free (struct pto_level *level)
{
  /* In a child: its mailbox, and the memory that it works on, are part of this. */
  if (level == NULL || level->generation != pto_process_generation ())
    return;
  take_down (level, false);
  if (level->has_scheduler)
    pto_scheduler_destroy (&level->scheduler);
  pto_pool_free (level->pool);
  if (level->closer != NULL)
    pto_control_unref (level->closer);
  pto_machine_clear (&level->machine);
  pto_exec_free (level->machine.engine.exec);
  pto_shared_map_free (level->map);
  pto_writes_free (level->writes);
  if (level->has_arena)
    pto_arena_release ();
  if (level->event >= 0)
    close (level->event);
  pto_keeper_clear (&level->keeper);
  pto_family_free (&level->family);
  pthread_mutex_destroy (&level->guest_lock);
  free (level);
}

/* --- a run --- */

/* Asked by the engine wherever the guest waits, and now and then while it submits. */
static bool
is_cancelled (void *data)
{
  struct pto_level *level = data;

  pto_pool_begin_lost (level->pool);
  if (level->cancelled == NULL || !level->cancelled (level->cancelled_data))
    return false;
  pto_pool_cancel (level->pool, CANCEL_NS);
  return true;
}

static void
name_task (pto_task_id task, char *text, size_t size)
{
  if (PTO_TASK_RING (task) == 0)
    snprintf (text, size, _ ("task %u"), PTO_TASK_LOCAL (task));
  else
    snprintf (text, size, _ ("task %u of ring %u"), PTO_TASK_LOCAL (task), PTO_TASK_RING (task));
}

/* "; task 12 failed, 3 tasks that needed it did not run, 40 others finished" */
static void
tell_consequences (const struct pto_run_stats *stats, const char *task,
                   const struct pto_first_failure *first, char *text, size_t size)
{
  uint64_t finished = stats->completed - stats->failed;
  uint64_t roots = first->roots;
  uint32_t n_lost = first->n_lost;
  int used = snprintf (text, size, _ ("; %s failed"), task);

  if (n_lost > 0)
    used += snprintf (text + used, size - (size_t) used,
                      P_ (", which was lost before, and run again %u time",
                          ", which was lost before, and run again %u times", n_lost),
                      n_lost);
  if (roots > 1)
    used
        += snprintf (text + used, size - (size_t) used, _ (", as did %" PRIu64 " more"), roots - 1);
  if (stats->poisoned > 0)
    used += snprintf (text + used, size - (size_t) used,
                      roots > 1
                          ? P_ (", %" PRIu64 " task that needed them did not run",
                                ", %" PRIu64 " tasks that needed them did not run", stats->poisoned)
                          : P_ (", %" PRIu64 " task that needed it did not run",
                                ", %" PRIu64 " tasks that needed it did not run", stats->poisoned),
                      stats->poisoned);
  snprintf (text + used, size - (size_t) used,
            P_ (", %" PRIu64 " other finished", ", %" PRIu64 " others finished", finished),
            finished);
}

/* The run's error is its first task that failed by itself. */
static enum pto_status
report_task (struct pto_level *level, const struct pto_run_stats *stats,
             struct pto_failure *failure, struct pto_report *report)
{
  const struct pto_first_failure *first = pto_pool_first_failure (level->pool);
  char task[48];
  char rest[280];
  char words[300] = "";

  name_task (first->task, task, sizeof task);
  tell_consequences (stats, task, first, rest, sizeof rest);
  if (first->words[0] != '\0')
    snprintf (words, sizeof words, _ (". Its last words: \"%s\""), first->words);
  switch (first->kind)
    {
    case PTO_FAILURE_ANSWERED:
      pto_failure_set (failure, first->failure.code, first->failure.domain,
                       _ ("%s (\"%s\")%s%s on %s failed%s%s"), task, first->name, first->place,
                       first->place[0] != '\0' ? "," : "", first->path,
                       first->failure.bytes > 0 ? ": " : "", first->failure.text);
      pto_failure_copy_detail (failure, &first->failure);
      break;
    case PTO_FAILURE_LOST:
    case PTO_FAILURE_LOST_BEFORE:
      pto_failure_set (
          failure, PTO_STATUS_WORKER_LOST, NULL,
          first->kind == PTO_FAILURE_LOST ? _ ("%s %s while running \"%s\"%s%s%s%s")
                                          : _ ("%s %s before it began with \"%s\"%s%s%s%s"),
          first->path, first->failure.text, first->name, first->place, rest, words,
          level->config.restart ? ""
                                : _ (" (restart is never: set restart to on-failure to "
                                     "start it again)"));
      break;
    case PTO_FAILURE_LEFT:
      pto_failure_set (failure, PTO_STATUS_WORKER_LOST, NULL,
                       _ ("%s %s, and with it what had been left there for \"%s\"%s%s: what is of "
                          "remote-leave bytes or more comes here when somebody needs it here"),
                       first->path, first->failure.text, first->name, first->place, rest);
      break;
    case PTO_FAILURE_NO_WORKER:
      pto_failure_set (failure, PTO_STATUS_WORKER_LOST, NULL,
                       _ ("%s (\"%s\")%s%s has nobody to run it: %s %s before%s%s%s"), task,
                       first->name, first->place, first->place[0] != '\0' ? "," : "", first->path,
                       first->failure.text, rest, words,
                       level->config.restart
                           ? ""
                           : _ (" (restart is never: set restart to on-failure to "
                                "start it again)"));
      break;
    }
  return pto_report_set (report, first->status, "%s", failure->text);
}

/* Orchestrator, scheduler, children: the last two are written by whoever carries. */
static enum pto_status
choose_recording (struct pto_level *level, uint32_t record, struct pto_watch *watch,
                  struct pto_report *report)
{
  struct pto_trace *before = level->machine.recorder.trace;
  enum pto_status status
      = pto_machine_record (&level->machine, record, level->family.n_children,
                            param (level, PTO_PARAMETER_TRACE_RECORDS), watch, report);

  if (status != PTO_OK)
    return status;
  /* As in keep_from_children(): of those that are begun again. */
  if (level->machine.recorder.trace != before)
    for (uint32_t b = 0; b < level->machine.recorder.trace->n_buffers; b++)
      madvise (level->machine.recorder.trace->buffers[b].records,
               level->machine.recorder.trace->buffers[b].capacity
                   * sizeof (struct pto_trace_record),
               MADV_DONTFORK);
  level->n_recorded++;
  pto_pool_record (level->pool, level->scheduler.trace, pto_machine_record_of (&level->machine, 0),
                   PTO_RECORD (level->n_recorded, record));
  return PTO_OK;
}

void
pto_level_check (struct pto_level *level, bool checks)
{
  pto_pool_check (level->pool, checks);
  level->machine.engine.fills = checks;
}

const struct pto_trace *
pto_level_trace (struct pto_level *level)
{
  return pto_recorder_trace (&level->machine.recorder);
}

void
pto_level_trace_topology (const struct pto_level *level, struct pto_trace_topology *topology)
{
  *topology = (struct pto_trace_topology){ .n_schedulers = 1,
                                           .n_cores = level->family.n_children,
                                           .level = level->config.level,
                                           .n_workers = level->family.n_kind[PTO_CHILD_NEXT] };
  pto_recorder_tell_clock (&level->machine.recorder, topology);
}

struct orchestration
{
  struct pto_level *level;
  int (*orchestrate) (PTO2Runtime *rt, void *data);
  void *data;
  int result;
  struct pto_moved moved; /* in the run */
};

static void
orchestrate_on_thread (void *data)
{
  struct orchestration *call = data;

  call->result = call->orchestrate (&call->level->machine.runtime, call->data);
}

/* Of a run that failed by then what children still do is not wanted. */
static int
orchestrate_for (PTO2Runtime *rt, void *data)
{
  struct orchestration *call = data;

  pto_store_release (&call->level->guest, (uint64_t) pthread_self ());
  pto_pool_begin_traffic (call->level->pool);
  /* Or its worker, and who waits for that, would be left with what the run holds. */
  if (!pto_os_thread_survives (orchestrate_on_thread, call))
    pto_runtime_fail (rt, PTO_STATUS_EXPLICIT,
                      _ ("the orchestration ended its thread (pthread_exit)"));
  if (call->result != 0 || pto_runtime_has_failed (rt))
    pto_level_give_up_run (call->level);
  return call->result;
}

/* Of a run that is not wanted any more, or whose tasks could not be ended, nobody waits for what it
 * has left. */
static enum pto_status
settle (void *data, enum pto_status status, struct pto_report *report)
{
  struct orchestration *call = data;
  struct pto_level *level = call->level;
  struct pto_report own = { 0 };
  enum pto_status settled = PTO_OK;

  if (!pto_pool_is_cancelled (level->pool) && !pto_engine_is_lost (&level->machine.engine))
    settled
        = pto_pool_bring_back (level->pool, is_cancelled, level, status == PTO_OK ? report : &own);
  call->moved = pto_pool_end_traffic (level->pool);
  return status == PTO_OK ? settled : status;
}

/* Of memory that tasks of the run that is over mention. */
static enum pto_status
check_mappings (const struct pto_level *level, struct pto_report *report)
{
  uint64_t address = 0;

  if (level->map == NULL || !pto_shared_map_has_changed (level->map, &address))
    return PTO_OK;
  return pto_report_set (
      report, (enum pto_status) PTO_STATUS_NOT_SHARED,
      _ ("memory at 0x%" PRIx64
         ", which tasks of this run mention, was mapped anew while the run lasted: child processes "
         "still have what was there before: use a buffer, alloc(), or map it anew between runs"),
      address);
}

enum pto_status
pto_level_run (struct pto_level *level, uint32_t record, struct pto_watch *watch,
               bool (*cancelled) (void *data), void *cancelled_data,
               int (*orchestrate) (PTO2Runtime *rt, void *data), void *data,
               struct pto_run_stats *stats, struct pto_failure *failure, struct pto_report *report)
{
  struct orchestration call = { .level = level, .orchestrate = orchestrate, .data = data };
  struct pto_run run = { .orchestrate = orchestrate_for,
                         .data = &call,
                         .cancelled = is_cancelled,
                         .cancelled_data = level,
                         .settle = settle };
  struct pto_run_stats own_stats;
  struct pto_failure own_failure;
  enum pto_status status;
  bool ended_well = false;

  if (stats == NULL)
    stats = &own_stats;
  if (failure == NULL)
    failure = &own_failure;
  pthread_mutex_lock (&level->guest_lock);
  pto_exec_enter (level->machine.engine.exec);
  level->cancelled = cancelled;
  level->cancelled_data = cancelled_data;
  status = choose_recording (
      level, record > 0 ? record : pto_params_recording (level->config.params), watch, report);
  if (status == PTO_OK)
    {
      uint64_t roots;

      pto_pool_begin_lost (level->pool);
      if (level->map != NULL)
        pto_shared_map_look_again (level->map);
      pto_pool_begin_run (level->pool);
      /* What the program has written since the last run, nobody has noted. */
      if (level->writes != NULL)
        pto_writes_add_all (level->writes);
      status = pto_machine_run (&level->machine, &run, stats, report);
      pto_pool_forget_left (level->pool, 0, UINT64_MAX);
      ended_well = status == PTO_OK;
      if (status == PTO_OK)
        status = check_mappings (level, report);
      pto_store_release (&level->guest, 0);
      roots = pto_pool_first_failure (level->pool)->roots;
      stats->poisoned = stats->failed > roots ? stats->failed - roots : 0;
      stats->restarts = level->pool->restarts;
      stats->retried = pto_pool_retried (level->pool);
      stats->bytes_sent = call.moved.sent;
      stats->bytes_received = call.moved.received;
      stats->bytes_saved = call.moved.saved;
    }
  else
    memset (stats, 0, sizeof *stats);
  if (status != PTO_OK)
    pto_failure_set (failure, (int32_t) status, NULL, "%s", report != NULL ? report->message : "");
  else if (pto_pool_first_failure (level->pool)->task != PTO_TASK_NONE)
    status = report_task (level, stats, failure, report);
  if (ended_well && status != PTO_OK)
    pto_machine_count_failed (level->machine.door.totals);
  level->cancelled = NULL;
  pto_exec_leave (level->machine.engine.exec);
  pthread_mutex_unlock (&level->guest_lock);
  return status;
}

void
pto_level_give_up_run (struct pto_level *level)
{
  pto_pool_cancel (level->pool, level->machine.engine.config.timeout_ns / FAILED_PART);
}

void
pto_level_cancel (struct pto_level *level)
{
  if (pto_engine_cancel (&level->machine.engine))
    pto_pool_cancel (level->pool, CANCEL_NS);
}

/* --- inside an orchestration --- */

static PTO2TaskId
submit_kernel (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type, PTOParam *params,
               int32_t n_params)
{
  struct pto_level *level
      = (struct pto_level *) ((char *) rt - offsetof (struct pto_level, machine.runtime));

  pto_engine_fail (
      &level->machine.engine, (enum pto_status) PTO_STATUS_NOT_SUPPORTED,
      _ ("kernel %d was submitted to %s, which is of level %u: its tasks are run by workers, "
         "not by cores"),
      kernel_id, level->config.path, level->config.level);
  return PTO2_TASK_NONE;
}

uint64_t
pto_level_progress (const struct pto_level *level)
{
  return pto_engine_completed (&level->machine.engine) + pto_pool_beats (level->pool);
}
