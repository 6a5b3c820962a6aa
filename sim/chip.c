/* chip.c: how is a simulated chip put together, and how does it run a program?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "builtin-kernels.h"
#include "chip-private.h"
#include "kernel-sync.h"

#include "pto/core/completion.h"
#include "pto/core/forced-order.h"
#include "pto/core/inspect-read.h"
#include "pto/core/record-submit.h"
#include "pto/core/run.h"
#include "pto/exec/libc-hooks.h"
#include "pto/exec/pto-atomic.h"
#include "pto/exec/translate.h"

#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(PTO_CORES_MAX <= PTO_ENDPOINTS_MAX, "one scheduler may have all cores");

/* Looks of the watcher in one timeout. What counts is time, not looks: they come late when CPUs are
 * scarce. */
#define TICKS 8u
/* When the run has failed already its results are not wanted any more: so much of the timeout for
 * kernels that run. */
#define FAILED_PART 8u
#define TICK_MIN_NS 1000000u
/* It also asks whether the run is cancelled: who submitted it may be in a kernel for long. */
#define TICK_MAX_NS 10000000u
/* Longer without a tick means that the process stood still, more than that a CPU was scarce. */
#define LATE_NS 200000000u
/* The watcher ends kernels that hang after one timeout. So many without any progress mean that it
 * could not: the run is given up with tasks still out. Generous, for machines that are overloaded.
 */
#define LOST_FACTOR 8u
/* Of the TensorMap of a chip whose accesses are checked; address space until they are used. */
#define WATCHED_NODES (1u << 24)
/* Kernels that a message names. */
#define NAMED_MAX 8u

static const char *const queue_names[PTO_N_CORE_TYPES] = { "AIC", "AIV" };

static uint64_t
param (const struct pto_chip *chip, enum pto_param index)
{
  return chip->params.values[index];
}

static const char *
kernel_name (void *data, uint32_t kernel)
{
  const struct pto_chip *chip = data;

  if (pto_kernel_is_builtin (kernel))
    return pto_builtin_name (kernel);
  if (chip->program == NULL || kernel >= chip->program->n_kernels
      || chip->program->kernels[kernel].name == NULL)
    return "?";
  return chip->program->kernels[kernel].name;
}

/* --- schedulers and cores --- */

/* The scheduler thread: waits until its cores are there, greets them, then schedules. */
static void
aicpu_main (void *data)
{
  struct pto_aicpu *aicpu = data;
  struct pto_chip *chip = aicpu->chip;
  struct pto_exec *exec = chip->machine.engine.exec;

  while (pto_word_get (&aicpu->go) == 0)
    pto_park (exec, &aicpu->go, 0, PTO_NEVER);
  for (uint32_t i = 0; i < aicpu->n_endpoints; i++)
    {
      struct pto_core *core = (struct pto_core *) aicpu->endpoints[i];

      pto_word_set (exec, &core->handshake.aicpu_ready, 1);
      while (pto_word_get (&core->handshake.aicore_done) == 0)
        pto_park (exec, &core->handshake.aicore_done, 0, PTO_NEVER);
    }
  pto_fetch_add_acq_rel (&chip->started.value, 1);
  pto_unpark (exec, &chip->started);
  pto_scheduler_main (&aicpu->scheduler);
}

static void
free_cores (struct pto_chip *chip)
{
  if (chip->aicpus != NULL)
    for (uint32_t s = 0; s < chip->n_schedulers; s++)
      {
        pto_scheduler_destroy (&chip->aicpus[s].scheduler);
        free (chip->aicpus[s].endpoints);
      }
  pto_interconnect_free (chip->interconnect);
  chip->interconnect = NULL;
  free (chip->aicpus);
  free (chip->cores);
  free (chip->watched);
  chip->aicpus = NULL;
  chip->cores = NULL;
  chip->watched = NULL;
  chip->n_cores = chip->n_schedulers = chip->clusters = 0;
}

/* Gives the executor that they have left; NULL: there were none. */
static struct pto_exec *
end_cores (struct pto_chip *chip)
{
  struct pto_exec *exec = chip->machine.engine.exec;

  if (exec == NULL)
    return NULL;
  pthread_mutex_lock (&chip->watch_lock);
  pto_exec_enter (exec);
  for (uint32_t s = 0; s < chip->n_schedulers; s++)
    pto_scheduler_stop (&chip->aicpus[s].scheduler);
  pto_exec_join (exec);
  pto_exec_leave (exec);
  chip->machine.engine.exec = NULL;
  free_cores (chip);
  pthread_mutex_unlock (&chip->watch_lock);
  return exec;
}

static void
stop_cores (struct pto_chip *chip)
{
  pto_exec_free (end_cores (chip));
}

static void *
allocate_lines (size_t n, size_t size)
{
  void *memory = NULL;

  if (posix_memalign (&memory, 64, n * size) != 0)
    return NULL;
  memset (memory, 0, n * size);
  return memory;
}

static bool
make_cores (struct pto_chip *chip, uint32_t clusters, uint32_t n_schedulers)
{
  uint32_t per_cluster = chip->platform->aic_per_cluster + chip->platform->aiv_per_cluster;
  enum pto_backend backend = (enum pto_backend) param (chip, PTO_PARAMETER_BACKEND);

  chip->clusters = clusters;
  chip->n_schedulers = n_schedulers;
  chip->n_cores = clusters * per_cluster;
  chip->cores = allocate_lines (chip->n_cores, sizeof *chip->cores);
  chip->aicpus = allocate_lines (n_schedulers, sizeof *chip->aicpus);
  chip->watched = calloc (chip->n_cores, sizeof *chip->watched);
  chip->interconnect
      = pto_interconnect_new (clusters, (uint32_t) param (chip, PTO_PARAMETER_PIPE_DEPTH));
  if (chip->cores == NULL || chip->aicpus == NULL || chip->watched == NULL
      || chip->interconnect == NULL)
    return false;
  for (uint32_t s = 0; s < n_schedulers; s++)
    {
      /* Clusters in equal parts; neighbours share a scheduler. */
      uint32_t first = clusters * s / n_schedulers;
      uint32_t end = clusters * (s + 1) / n_schedulers;
      struct pto_aicpu *aicpu = &chip->aicpus[s];
      struct pto_scheduler_config config = {
        .index = s,
        .concurrent = backend == PTO_BACKEND_THREADS,
        .attends = backend == PTO_BACKEND_PAR,
        .dispatch_cost = chip->platform->costs.dispatch,
        .poll_cost = chip->platform->costs.poll,
        .fanout_cost = chip->platform->costs.fanout,
      };

      aicpu->chip = chip;
      pto_word_init (&aicpu->go, 0, false);
      aicpu->n_endpoints = (end - first) * per_cluster;
      aicpu->endpoints = calloc (aicpu->n_endpoints, sizeof *aicpu->endpoints);
      snprintf (aicpu->name, sizeof aicpu->name, "scheduler%u", s);
      if (aicpu->endpoints == NULL)
        return false;
      for (uint32_t c = first; c < end; c++)
        for (uint32_t k = 0; k < per_cluster; k++)
          {
            bool is_aic = k < chip->platform->aic_per_cluster;
            uint32_t number = c * per_cluster + k;
            uint32_t of_type = is_aic ? c * chip->platform->aic_per_cluster + k
                                      : c * chip->platform->aiv_per_cluster + k
                                            - chip->platform->aic_per_cluster;
            struct pto_core *core = &chip->cores[number];

            pto_core_init (core, chip, &chip->machine.engine,
                           is_aic ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV, c, number, of_type);
            pto_core_set_note (core, number < chip->n_notes ? &chip->notes[number] : NULL);
            aicpu->endpoints[number - first * per_cluster] = &core->endpoint;
          }
      config.endpoints = aicpu->endpoints;
      config.n_endpoints = aicpu->n_endpoints;
      if (!pto_scheduler_init (&aicpu->scheduler, &chip->machine.engine, &config))
        return false;
    }
  return true;
}

/* On an executor that has become free, or a new one; NULL: none. Takes it. */
static enum pto_status
start_cores (struct pto_chip *chip, uint32_t clusters, uint32_t n_schedulers, struct pto_exec *exec,
             struct pto_report *report)
{
  struct pto_exec_config config = {
    .backend = (enum pto_backend) param (chip, PTO_PARAMETER_BACKEND),
    .domains = n_schedulers,
    .carriers = (uint32_t) param (chip, PTO_PARAMETER_CARRIERS),
    .seed = param (chip, PTO_PARAMETER_SEED),
    .stack_size = param (chip, PTO_PARAMETER_STACK),
  };
  char error[256] = "";
  bool ok;

  if (exec == NULL)
    exec = pto_exec_new (&config, error, sizeof error);
  if (exec == NULL)
    return pto_report_set (report, PTO_STATUS_SYSTEM, "%s", error);
  /* A tick of the run before may be late. */
  pthread_mutex_lock (&chip->watch_lock);
  chip->machine.engine.exec = exec;
  chip->machine.engine.config.n_schedulers = n_schedulers;
  chip->machine.engine.config.n_carriers = pto_exec_carriers (exec);
  /* The schedulers before announced themselves idle; they are gone, and there may be
   * fewer now. */
  for (uint32_t queue = 0; queue < PTO_QUEUES_MAX; queue++)
    pto_store_relaxed (&chip->machine.engine.hungry[queue], 0);
  pto_store_relaxed (&chip->machine.engine.turn, 0);
  pto_word_init (&chip->started, 0, false);
  ok = make_cores (chip, clusters, n_schedulers);
  if (!ok)
    {
      free_cores (chip);
      chip->machine.engine.exec = NULL;
    }
  pthread_mutex_unlock (&chip->watch_lock);
  if (!ok)
    {
      pto_exec_free (exec);
      return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                             _ ("no memory for a chip of %u clusters: set %s or clusters to less"),
                             clusters, pto_engine_largest_setting (&chip->machine.engine.config));
    }
  pto_exec_enter (exec);
  for (uint32_t s = 0; s < n_schedulers && ok; s++)
    {
      struct pto_aicpu *aicpu = &chip->aicpus[s];

      /* Before its cores, for nobody else may send them home: their words are its domain's. */
      ok = pto_exec_spawn (exec, s, aicpu->name, aicpu_main, aicpu, error, sizeof error) == 0;
      if (!ok)
        break;
      for (uint32_t i = 0; i < aicpu->n_endpoints && ok; i++)
        {
          struct pto_core *core = (struct pto_core *) aicpu->endpoints[i];

          ok = pto_exec_spawn (exec, s, core->name, pto_core_main, core, error, sizeof error) == 0;
          if (!ok)
            /* Its scheduler must not wait for it, nor for those after it. */
            aicpu->n_endpoints = aicpu->scheduler.config.n_endpoints = i;
        }
      pto_word_set (exec, &aicpu->go, 1);
      while (pto_word_get (&chip->started) == s)
        pto_park (exec, &chip->started, s, PTO_NEVER);
    }
  pto_exec_leave (exec);
  if (!ok)
    {
      stop_cores (chip);
      return pto_report_set (report, PTO_STATUS_SYSTEM,
                             _ ("a chip of %u clusters cannot be started: %s: set %s or clusters "
                                "to less"),
                             clusters, error,
                             pto_engine_largest_setting (&chip->machine.engine.config));
    }
  chip->used = false;
  return PTO_OK;
}

/* --- the watcher --- */

/* Asked for again so often at each tick, so long apart: a loop that mostly allocates is caught
 * between two calls all the same. */
#define END_TRIES 100u
#define END_TRY_NS 50000

/* Ends a call of foreign code, of a core or, for NULL, of the orchestration. One that is inside the
 * allocator or the loader has the timeout again to come out, since its locks would stay held. */
static void
end_call (struct pto_chip *chip, struct pto_core *core, struct pto_watched_call *seen)
{
  for (uint32_t i = 0; i <= END_TRIES; i++)
    {
      bool is_late = seen->put_off != 0
                     && chip->watch_ns - seen->put_off >= chip->machine.engine.config.timeout_ns;

      if (i > 0)
        nanosleep (&(struct timespec){ .tv_nsec = END_TRY_NS }, NULL);
      if (core != NULL)
        pto_core_interrupt (core, seen->call, is_late);
      else
        {
          if (is_late)
            pto_guard_force (&chip->guard, seen->call);
          pto_guard_interrupt (&chip->guard, seen->call);
        }
      if (!(core != NULL ? pto_core_is_put_off (core, seen->call)
                         : pto_guard_is_put_off (&chip->guard, seen->call)))
        return;
      if (seen->put_off == 0)
        seen->put_off = chip->watch_ns;
    }
}

/* An orchestration has not called the engine for as long as nothing else has happened, or goes on
 * after its run has failed, or was cancelled a tick ago. */
static void
watch_orchestration (struct pto_chip *chip, uint64_t timeout, uint64_t now)
{
  uint64_t call = pto_load_acquire (&chip->guard.call);
  uint64_t steps = pto_load_relaxed (&chip->machine.steps);
  struct pto_watched_call *seen = &chip->watched_orchestration;
  uint32_t fatal = pto_load_relaxed (&chip->machine.engine.fatal);
  bool is_over;

  /* Of another run: it has failed anew. */
  if (fatal == 0 || call != seen->call)
    chip->failed = 0;
  is_over = chip->failed != 0 && (fatal == PTO_STATUS_CANCELLED || now - chip->failed >= timeout);
  if (call != seen->call || steps != chip->watched_steps)
    {
      *seen = (struct pto_watched_call){ .call = call, .since = now };
      chip->watched_steps = steps;
    }
  if (fatal != 0 && chip->failed == 0)
    chip->failed = now;
  if ((call & 1) != 0
      && (is_over
          || ((steps & 1) == 0 && now - seen->since >= timeout
              && now - chip->progressed >= timeout)))
    end_call (chip, NULL, seen);
}

/* Nobody acts upon it: it is for who asks. */
static void
watch_submits (struct pto_chip *chip, uint64_t now)
{
  uint64_t n = pto_peek (&chip->machine.engine.submitted);

  if (n == chip->watched_submitted)
    return;
  chip->watched_submitted = n;
  chip->submitted = now;
}

/* Called by the ticker's thread: ends a run that is not wanted any more, and kernels that have not
 * returned for as long as nothing else has happened. */
static void
watch (void *data)
{
  struct pto_chip *chip = data;
  uint64_t wall = pto_wall_clock ();
  uint64_t now;
  uint64_t timeout;
  uint64_t completed;
  bool failed;

  /* Somebody may have taken the signals away. */
  pto_guard_refresh ();
  pthread_mutex_lock (&chip->watch_lock);
  chip->watch_ns += wall - chip->ticked < LATE_NS ? wall - chip->ticked : LATE_NS;
  chip->ticked = wall;
  now = chip->watch_ns;
  if (chip->cancelled != NULL && chip->cancelled (chip->cancelled_data))
    {
      pto_engine_cancel (&chip->machine.engine);
      chip->cancelled = NULL;
    }
  failed = pto_engine_has_failed (&chip->machine.engine);
  timeout = chip->machine.engine.config.timeout_ns / (failed ? FAILED_PART : 1);
  if (chip->machine.engine.exec != NULL && chip->watched != NULL)
    {
      completed = pto_engine_progress (&chip->machine.engine);
      if (completed != chip->watched_completed)
        {
          chip->watched_completed = completed;
          chip->progressed = now;
        }
      for (uint32_t c = 0; c < chip->n_cores; c++)
        {
          uint64_t call = pto_load_acquire (&chip->cores[c].guard.call);
          struct pto_watched_call *seen = &chip->watched[c];

          if (failed)
            pto_interconnect_wake (&chip->cores[c]);
          if (call != seen->call)
            *seen = (struct pto_watched_call){ .call = call, .since = now };
          else if ((call & 1) != 0 && now - seen->since >= timeout
                   && (failed || now - chip->progressed >= timeout)
                   && !pto_interconnect_report (&chip->cores[c]))
            end_call (chip, &chip->cores[c], seen);
        }
      pto_scheduler_watch (&chip->machine.engine);
      watch_orchestration (chip, chip->machine.engine.config.timeout_ns, now);
      watch_submits (chip, now);
    }
  pthread_mutex_unlock (&chip->watch_lock);
}

/* It is proved that nobody goes on who could wake those that wait for each other: they are given
 * up.
 */
static bool
unblock (void *data)
{
  struct pto_chip *chip = data;
  bool found = false;

  for (uint32_t c = 0; c < chip->n_cores; c++)
    found = pto_interconnect_report (&chip->cores[c]) || found;
  for (uint32_t c = 0; c < chip->n_cores; c++)
    pto_interconnect_wake (&chip->cores[c]);
  return found;
}

/* The setting that keeps the number of clusters down. */
static const char more_clusters[] = N_ ("set clusters to more");
static const char more_blocks[] = N_ ("set block_dim to more");

/* --- making and ending --- */

struct pto_chip *
pto_chip_new (const struct pto_platform *platform, const struct pto_params *params,
              struct pto_report *report)
{
  return pto_chip_new_in_heaps (platform, params, NULL, report);
}

struct pto_chip *
pto_chip_new_in_heaps (const struct pto_platform *platform, const struct pto_params *params,
                       const struct pto_heaps *heaps, struct pto_report *report)
{
  struct pto_chip *chip = allocate_lines (1, sizeof *chip);
  struct pto_engine_config config = {
    .n_queues = PTO_N_CORE_TYPES,
    .n_shards = (uint32_t) params->values[PTO_PARAMETER_READY_SHARDS],
    .guard_bytes = (uint32_t) params->values[PTO_PARAMETER_GUARD],
    .ring_patience_ns = LOST_FACTOR * params->values[PTO_PARAMETER_TIMEOUT] * 1000000,
    .end_patience_ns = LOST_FACTOR * params->values[PTO_PARAMETER_TIMEOUT] * 1000000,
    .queue_names = queue_names,
    .cohort_name = N_ ("cluster"),
    .cohort_taken = pto_chip_take_cluster,
    .cohort_taken_data = chip,
    .more_places = more_clusters,
    .most_cohorts
    = PTO_CORES_MAX / ((uint32_t) platform->aic_per_cluster + platform->aiv_per_cluster),
    .larger_cohorts = N_ ("choose a platform with larger clusters"),
    .reduction = pto_chip_find_reduction,
    .reduction_data = chip,
    .kernel_name = kernel_name,
    .kernel_name_data = chip,
    .services = chip != NULL ? &chip->services : NULL,
    .unblock = unblock,
    .unblock_data = chip,
    .submit_cost = platform->costs.submit,
    .argument_cost = platform->costs.submit_argument,
    .carry = params->values[PTO_PARAMETER_BACKEND] == PTO_BACKEND_PAR,
  };
  uint64_t tick = params->values[PTO_PARAMETER_TIMEOUT] * 1000000 / TICKS;
  uint64_t clusters = params->values[PTO_PARAMETER_CLUSTERS];
  uint64_t threads = params->values[PTO_PARAMETER_AICPU_THREADS];
  uint64_t cores = (uint64_t) platform->aic_per_cluster + platform->aiv_per_cluster;
  char error[256] = "";

  if (chip == NULL)
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for a chip"));
      return NULL;
    }
  chip->own_platform = *platform;
  chip->own_platform.name = chip->own_platform.description = NULL;
  chip->platform = &chip->own_platform;
  chip->params = *params;
  chip->heaps = heaps;
  chip->virtual_clock = params->values[PTO_PARAMETER_BACKEND] == PTO_BACKEND_DET;
  chip->jitter = (uint32_t) params->values[PTO_PARAMETER_JITTER];
  pto_device_memory_init (&chip->memory, config.guard_bytes, NULL, NULL);
  pto_device_memory_init (&chip->run_memory, config.guard_bytes, NULL, NULL);
  chip->memory.space_max = chip->run_memory.space_max = PTO_DEVICE_GONE_SPACE_MAX;
  chip->services = (struct pto_services){ { &pto_kernel_ops }, chip, NULL };
  chip->guard.run = &chip->foreign;
  chip->forks = pto_guard_forks;
  pthread_mutex_init (&chip->watch_lock, NULL);
  pthread_mutex_init (&chip->stray_lock, NULL);
  if (pto_guard_init () != 0)
    {
      pto_report_set (report, PTO_STATUS_SYSTEM, "sigaction: %s", strerror (errno));
      pthread_mutex_destroy (&chip->watch_lock);
      pthread_mutex_destroy (&chip->stray_lock);
      free (chip);
      return NULL;
    }
  pto_machine_configure (&config, params);
  for (uint32_t r = 0; heaps != NULL && r < PTO_RINGS; r++)
    config.rings[r].heap_base = heaps->rings[r].base;
  if (pto_machine_init (&chip->machine, NULL, &config, &pto_chip_runtime_ops, report) != PTO_OK)
    {
      pto_guard_shutdown ();
      pthread_mutex_destroy (&chip->watch_lock);
      pthread_mutex_destroy (&chip->stray_lock);
      free (chip);
      return NULL;
    }
  tick = tick < TICK_MIN_NS ? TICK_MIN_NS : tick > TICK_MAX_NS ? TICK_MAX_NS : tick;
  chip->ticker = pto_ticker_new ("pto-watch", tick, watch, chip, error, sizeof error);
  if (chip->ticker == NULL)
    {
      pto_report_set (report, PTO_STATUS_SYSTEM, "%s", error);
      pto_chip_free (chip);
      return NULL;
    }
  if (clusters == 0)
    clusters = platform->clusters;
  if (threads == 0)
    threads = platform->aicpu_threads < clusters + 1 ? platform->aicpu_threads : clusters + 1;
  if (clusters > PTO_CORES_MAX / cores)
    {
      pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                      _ ("clusters %" PRIu64 " of %" PRIu64 " cores are %" PRIu64
                         " cores: a chip has at most %u, so one of this platform 1 to %" PRIu64
                         " clusters"),
                      clusters, cores, clusters * cores, PTO_CORES_MAX, PTO_CORES_MAX / cores);
      pto_chip_free (chip);
      return NULL;
    }
  if (threads - 1 > clusters)
    {
      pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                      _ ("aicpu-threads %" PRIu64 " means %" PRIu64 " schedulers for %" PRIu64
                         " clusters; each needs at least one: set aicpu-threads to %" PRIu64
                         " or less, or clusters to %" PRIu64 " or more"),
                      threads, threads - 1, clusters, clusters + 1, threads - 1);
      pto_chip_free (chip);
      return NULL;
    }
  if (start_cores (chip, (uint32_t) clusters, (uint32_t) threads - 1, NULL, report) != PTO_OK)
    {
      pto_chip_free (chip);
      return NULL;
    }
  return chip;
}

/* The cores' own threads end, all at one time, with the destructors of what kernels keep there. */
static bool
end_own_threads (struct pto_chip *chip)
{
  uint64_t timeout = chip->params.values[PTO_PARAMETER_TIMEOUT];
  uint64_t waited = 0;
  uint32_t n = 0;
  bool is_any_left = false;
  char why[768], text[1200];

  for (uint32_t c = 0; c < PTO_CORES_MAX; c++)
    if (chip->own_threads[c] != NULL)
      {
        /* Handlers that the program has put in the place of ours. */
        if (n++ == 0)
          pto_guard_refresh ();
        pto_own_thread_end (chip->own_threads[c]);
      }
  n = 0;
  for (uint32_t c = 0; c < PTO_CORES_MAX; c++)
    if (chip->own_threads[c] != NULL)
      {
        bool is_left;
        struct pto_fault fault = pto_own_thread_free (chip->own_threads[c], timeout * 1000000,
                                                      &waited, &is_left, why, sizeof why);

        is_any_left = is_any_left || is_left;
        if (fault.kind == PTO_FAULT_NONE || n++ >= NAMED_MAX)
          continue;
        snprintf (text, sizeof text, "%s", why);
        if (fault.kind == PTO_FAULT_INTERRUPTED)
          snprintf (text, sizeof text,
                    is_left
                        ? _ ("%s within %" PRIu64 " ms, and could not be ended: its thread stays")
                        : _ ("%s within %" PRIu64
                             " ms, and was ended: set timeout to more if it needs longer"),
                    why, timeout);
        pto_chip_note_unsafe (chip, &fault, text, sizeof text);
        pto_machine_warn (&chip->machine, text);
      }
  if (n > NAMED_MAX)
    {
      snprintf (text, sizeof text,
                P_ ("the same on %" PRIu32 " other core", "the same on %" PRIu32 " other cores",
                    n - NAMED_MAX),
                n - NAMED_MAX);
      pto_machine_warn (&chip->machine, text);
    }
  return !is_any_left;
}

void
pto_chip_free (struct pto_chip *chip)
{
  bool are_handlers_free;

  if (chip == NULL)
    return;
  if (chip->lost)
    return; /* threads may still run in it */
  pto_ticker_free (chip->ticker);
  stop_cores (chip);
  are_handlers_free = end_own_threads (chip);
  for (uint32_t c = 0; c < PTO_CORES_MAX; c++)
    pto_locals_clear (&chip->locals[c]);
  pto_check_free (chip->check);
  pto_order_free (chip->order);
  pto_machine_clear (&chip->machine);
  pto_device_memory_clear (&chip->memory);
  pto_device_memory_clear (&chip->run_memory);
  if (are_handlers_free)
    pto_guard_shutdown ();
  pthread_mutex_destroy (&chip->watch_lock);
  pthread_mutex_destroy (&chip->stray_lock);
  free (chip);
}

void
pto_chip_take_heaps (struct pto_chip *chip, struct pto_heaps *heaps)
{
  if (!chip->lost)
    pto_machine_take_heaps (&chip->machine, heaps);
}

const struct pto_platform *
pto_chip_platform (const struct pto_chip *chip)
{
  return chip->platform;
}

struct pto_device_memory *
pto_chip_memory (struct pto_chip *chip)
{
  return &chip->memory;
}

void
pto_chip_set_log (struct pto_chip *chip,
                  void (*log) (void *data, int32_t level, const char *message), void *data)
{
  chip->machine.log = log;
  chip->machine.log_data = data;
}

void
pto_chip_set_totals (struct pto_chip *chip, struct pto_machine_totals *totals)
{
  pto_machine_set_totals (&chip->machine, totals);
}

void
pto_chip_set_notes (struct pto_chip *chip, struct pto_core_note *notes, uint32_t n)
{
  chip->notes = notes;
  chip->n_notes = notes != NULL ? n : 0;
  for (uint32_t c = 0; c < chip->n_cores; c++)
    pto_core_set_note (&chip->cores[c], c < chip->n_notes ? &notes[c] : NULL);
}

/* --- a run --- */

/* The geometry that a run asks for; cores of another one are taken down and made anew. */
static enum pto_status
fit_cores (struct pto_chip *chip, const struct pto_run_config *config, struct pto_report *report)
{
  uint32_t clusters = (uint32_t) param (chip, PTO_PARAMETER_CLUSTERS);
  uint32_t threads = (uint32_t) param (chip, PTO_PARAMETER_AICPU_THREADS);
  struct pto_exec *exec = NULL;

  if (clusters == 0)
    clusters = chip->platform->clusters;
  if (threads == 0)
    threads = chip->platform->aicpu_threads;
  if (config->block_dim > clusters)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           P_ ("block_dim %u: the chip has %u cluster",
                               "block_dim %u: the chip has %u clusters", clusters),
                           config->block_dim, clusters);
  chip->machine.engine.config.more_places
      = config->block_dim > 0 && config->block_dim < clusters ? more_blocks : more_clusters;
  if (config->aicpu_threads == 1 || config->aicpu_threads > PTO_MAX_DOMAINS)
    return pto_report_set (
        report, PTO_STATUS_INVALID_ARGS,
        _ ("aicpu_thread_num %u: a run needs the orchestrator and 1 to %u schedulers"),
        config->aicpu_threads, PTO_MAX_DOMAINS - 1);
  if (config->block_dim > 0)
    clusters = config->block_dim;
  if (config->aicpu_threads > 0)
    threads = config->aicpu_threads;
  if (threads - 1 > clusters)
    threads = clusters + 1;
  if (chip->machine.engine.exec != NULL && chip->clusters == clusters
      && chip->n_schedulers == threads - 1 && !(chip->virtual_clock && chip->used))
    return PTO_OK;
  /* A fresh machine may have the stacks of the one before. */
  if (chip->n_schedulers == threads - 1)
    exec = end_cores (chip);
  else
    stop_cores (chip);
  if (exec != NULL && !pto_exec_restart (exec, param (chip, PTO_PARAMETER_SEED)))
    {
      pto_exec_free (exec);
      exec = NULL;
    }
  return start_cores (chip, clusters, threads - 1, exec, report);
}

/* From here on, until the run is counted, its busy times are beside those of all before. */
static void
begin_busy (struct pto_chip *chip)
{
  pthread_mutex_lock (&chip->machine.door.lock);
  chip->timed = chip->n_cores > 0 && chip->cores[0].timed;
  chip->counted = !chip->timed;
  chip->timed_run = chip->machine.door.n_begun + 1;
  for (uint32_t c = 0; c < chip->n_cores; c++)
    chip->cores[c].busy = 0;
  pthread_mutex_unlock (&chip->machine.door.lock);
}

/* Whether the accesses of the run that begins are checked; before its recording is set. What that
 * needs is there from the first such run in a row to the last: the map is another one then, in
 * which nothing is forgotten before the run ends. */
static enum pto_status
set_checking (struct pto_chip *chip, const struct pto_run_config *config, struct pto_report *report)
{
  struct pto_engine *engine = &chip->machine.engine;
  bool checks = config->capture == NULL
                && (config->checks || param (chip, PTO_PARAMETER_CHECK) == PTO_CHECK_ACCESS);
  uint32_t pool = (uint32_t) param (chip, PTO_PARAMETER_MAP_POOL);
  bool ok = true;

  if (!checks && chip->check != NULL)
    {
      pto_check_free (chip->check);
      chip->check = NULL;
    }
  if (engine->config.watched != checks)
    {
      if (checks && pool < WATCHED_NODES)
        pool = WATCHED_NODES;
      /* Who looks from outside does so with this lock. */
      pthread_mutex_lock (&chip->watch_lock);
      ok = pto_engine_set_watched (engine, checks, pool);
      pthread_mutex_unlock (&chip->watch_lock);
    }
  if (ok && checks && chip->check == NULL)
    ok = (chip->check = pto_check_new (engine)) != NULL;
  if (!ok)
    return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                           checks ? _ ("no memory to check accesses with")
                                  : _ ("no memory for a TensorMap"));
  if (checks)
    pto_check_begin_run (chip->check);
  return PTO_OK;
}

/* What runs are played again with. */
static void
record_costs (struct pto_chip *chip)
{
  const struct pto_platform_costs *costs = &chip->platform->costs;
  const uint32_t ns[PTO_TRACE_N_COSTS] = {
    [PTO_TRACE_COST_DISPATCH] = costs->dispatch, [PTO_TRACE_COST_POLL] = costs->poll,
    [PTO_TRACE_COST_FANOUT] = costs->fanout,     [PTO_TRACE_COST_START] = costs->start,
    [PTO_TRACE_COST_FINISH] = costs->finish,
  };

  if (chip->virtual_clock)
    for (uint32_t step = 0; step < PTO_TRACE_N_COSTS; step++)
      pto_observe_cost (&chip->machine.engine, step, ns[step]);
}

/* Recording and timing: on the cores and schedulers this is read only with a task in hand, which
 * orders it. */
static enum pto_status
set_recording (struct pto_chip *chip, uint32_t level, struct pto_watch *watch, bool timed,
               struct pto_report *report)
{
  enum pto_status status;

  chip->machine.engine.fills = chip->check != NULL || chip->machine.engine.order != NULL;
  status = pto_machine_record (&chip->machine, level, chip->n_cores,
                               param (chip, PTO_PARAMETER_TRACE_RECORDS), watch, report);

  if (status != PTO_OK)
    return status;
  for (uint32_t c = 0; c < chip->n_cores; c++)
    {
      chip->cores[c].trace = pto_machine_record_of (&chip->machine, c);
      chip->cores[c].timed = timed || level > 0;
      chip->cores[c].check = chip->check;
      chip->cores[c].noted_file = NULL; /* a graph's may be gone */
      chip->cores[c].is_observed = chip->check != NULL || chip->machine.engine.order != NULL;
      chip->cores[c].waited = 0;
    }
  begin_busy (chip);
  record_costs (chip);
  return PTO_OK;
}

/* The order of the run that begins; before its recording is set. */
static enum pto_status
set_order (struct pto_chip *chip, const struct pto_run_config *config, struct pto_report *report)
{
  chip->machine.engine.order = NULL;
  if (config->schedule == NULL || config->capture != NULL)
    return PTO_OK;
  if (!chip->virtual_clock)
    return pto_report_set (
        report, PTO_STATUS_INVALID_ARGS,
        _ ("a run with a schedule needs the back end det, which alone knows when "
           "nothing else goes on"));
  if (chip->order == NULL)
    chip->order = pto_order_new ();
  if (chip->order == NULL)
    return pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for a schedule"));
  pto_order_begin (chip->order, config->schedule);
  chip->machine.engine.order = chip->order;
  return PTO_OK;
}

static void
count_busy (struct pto_chip *chip, const struct pto_scale *scale)
{
  if (!chip->timed)
    return;
  pthread_mutex_lock (&chip->machine.door.lock);
  for (uint32_t c = 0; c < chip->n_cores; c++)
    chip->cores[c].busy_before += pto_scale (chip->cores[c].busy, scale);
  chip->counted = true;
  pthread_mutex_unlock (&chip->machine.door.lock);
}

static void
gather (struct pto_chip *chip, struct pto_run_stats *stats)
{
  struct pto_scale scale
      = { .from = chip->machine.engine.run_ticks, .to = chip->machine.engine.run_ns };

  stats->cut_off = pto_load_relaxed (&chip->cut_off);
  pto_store_relaxed (&chip->cut_off, 0);
  for (uint32_t c = 0; c < chip->n_cores; c++)
    {
      stats->busy_ns[chip->cores[c].type] += pto_scale (chip->cores[c].busy, &scale);
      stats->waited_ns[chip->cores[c].type] += pto_scale (chip->cores[c].waited, &scale);
      stats->cores[chip->cores[c].type]++;
    }
  count_busy (chip, &scale);
}

static void
set_cancelled (struct pto_chip *chip, bool (*cancelled) (void *data), void *data)
{
  /* The watcher may be in a tick of another run. */
  pthread_mutex_lock (&chip->watch_lock);
  chip->cancelled = cancelled;
  chip->cancelled_data = data;
  pthread_mutex_unlock (&chip->watch_lock);
}

/* Which kernels have not let go of their cores? Behind what the report says already. */
static void
name_running (const struct pto_chip *chip, struct pto_report *report)
{
  uint32_t n = 0;

  for (uint32_t c = 0; c < chip->n_cores; c++)
    {
      char task[400];

      /* Acquire: pairs with the release in pto_guard_call(); its task stays while it runs. */
      if ((pto_load_acquire (&chip->cores[c].guard.call) & 1) == 0)
        continue;
      pto_core_describe_task (&chip->cores[c], task, sizeof task);
      if (n++ < NAMED_MAX)
        pto_report_append (report, "%s%s",
                           n == 1 ? _ ("; what did not return and could not be ended: ") : ", ",
                           task);
    }
  if (n > NAMED_MAX)
    pto_report_append (report, _ (" and %u others"), n - NAMED_MAX);
}

/* A kernel does not let go of its thread. The chip stays for it as it is, for ever, with a program
 * of its own, for the one that it runs may be gone soon. */
static void
lose (struct pto_chip *chip)
{
  struct pto_program *program = malloc (sizeof *program);
  struct pto_kernel *kernels = calloc (chip->program->n_kernels, sizeof *kernels);

  chip->lost = true;
  if (program == NULL || kernels == NULL)
    {
      free (program);
      free (kernels);
      return;
    }
  for (uint32_t k = 0; k < chip->program->n_kernels; k++)
    kernels[k].name = "?";
  *program = (struct pto_program){ kernels, chip->program->n_kernels };
  for (uint32_t c = 0; c < chip->n_cores; c++)
    chip->cores[c].payload.kernel = pto_program_kernel (program, chip->cores[c].payload.kernel_id);
  chip->program = program;
}

bool
pto_chip_is_lost (const struct pto_chip *chip)
{
  return chip->lost;
}

static enum pto_status
refuse_unsafe (struct pto_report *report)
{
  return pto_report_set (
      report, PTO_STATUS_SYSTEM,
      _ ("a kernel of an earlier run was ended inside malloc(), fork() or the loader, whose locks may be held "
         "since: this process is not safe to go on in; end it, or set isolate to 1 from the start"));
}

struct pto_chip *
pto_chip_renew (struct pto_chip *chip, struct pto_report *report)
{
  struct pto_chip *fresh = NULL;

  if (pto_load_relaxed (&chip->unsafe) != 0)
    refuse_unsafe (report);
  else
    fresh = pto_chip_new_in_heaps (chip->platform, &chip->params, chip->heaps, report);
  if (fresh == NULL)
    return NULL;
  fresh->memory = chip->memory;
  memset (&chip->memory, 0, sizeof chip->memory);
  pto_chip_set_log (fresh, chip->machine.log, chip->machine.log_data);
  pto_machine_inherit_totals (&fresh->machine, &chip->machine);
  return fresh;
}

/* What the orchestration had made for the run. Of a chip that is lost somebody may still use it. */
static enum pto_status
end_run_memory (struct pto_chip *chip, enum pto_status status, struct pto_report *report)
{
  struct pto_device_memory *memory = &chip->run_memory;
  enum pto_status damage = pto_device_memory_check (memory, report);

  if (!chip->lost)
    pto_device_memory_free_all (memory);
  return status == PTO_OK ? damage : status;
}

void
pto_chip_note_stray (struct pto_chip *chip, const struct pto_fence *fence, uint64_t n, bool before,
                     const char *what, const char *task)
{
  pthread_mutex_lock (&chip->stray_lock);
  if (chip->stray_bytes == 0)
    {
      chip->stray = *fence;
      chip->stray_bytes = n;
      chip->stray_before = before;
      snprintf (chip->stray_what, sizeof chip->stray_what, "%s", what);
      snprintf (chip->stray_task, sizeof chip->stray_task, "%s", task);
    }
  else if (chip->stray.address != fence->address)
    /* The run fails already; the next one is not to be blamed. */
    pto_fence_mend (fence);
  pthread_mutex_unlock (&chip->stray_lock);
}

void
pto_chip_note_damage (struct pto_chip *chip, const struct pto_report *damage)
{
  pthread_mutex_lock (&chip->stray_lock);
  if (chip->damage.status == PTO_OK)
    chip->damage = *damage;
  pthread_mutex_unlock (&chip->stray_lock);
}

/* Guards find what the check does not see. In a checked run it is one verdict. */
static enum pto_status
as_access (struct pto_report *report)
{
  if (report != NULL)
    report->status = PTO_STATUS_ACCESS;
  return PTO_STATUS_ACCESS;
}

/* What the cores found, behind what the check has found. */
static enum pto_status
tell_damage (struct pto_chip *chip, enum pto_status status, struct pto_report *report)
{
  if (chip->damage.status == PTO_OK)
    return status;
  if (status == PTO_OK)
    status = pto_report_set (report, chip->damage.status, "%s", chip->damage.message);
  else if (report != NULL)
    pto_report_append (report, "\n%s", chip->damage.message);
  chip->damage = (struct pto_report){ 0 };
  return status;
}

/* A guard was hurt by a kernel that was not given its memory, or by the program. */
static enum pto_status
check_stray (struct pto_chip *chip, enum pto_status status, struct pto_report *report)
{
  struct pto_fence fence;
  uint64_t n = chip->stray_bytes;

  chip->stray_bytes = 0;
  if (n == 0 || chip->lost)
    return status;
  /* The next run is not to be blamed. Memory of the runtime is not in the list. */
  if (pto_fence_find (chip->stray.address, &fence) && fence.address == chip->stray.address)
    pto_fence_mend (&fence);
  if (status != PTO_OK)
    return status;
  if (chip->stray_before)
    return pto_report_set (
        report, PTO_STATUS_OUT_OF_BOUNDS,
        P_ ("%s: before it ran, at least %" PRIu64 " byte before the buffer of %" PRIu64
            " bytes of %s had been overwritten, by the program or by a kernel that may not "
            "write to it%s",
            "%s: before it ran, at least %" PRIu64 " bytes before the buffer of %" PRIu64
            " bytes of %s had been overwritten, by the program or by a kernel that may not "
            "write to it%s",
            n),
        chip->stray_task, n, chip->stray.bytes, chip->stray_what,
        chip->check == NULL ? _ (": check=access names the kernel") : "");
  return pto_report_set (
      report, PTO_STATUS_OUT_OF_BOUNDS,
      P_ ("%s: before it ran, at least %" PRIu64 " byte past the buffer of %" PRIu64
          " bytes of %s had been overwritten, by the program or by a kernel that may not "
          "write to it%s",
          "%s: before it ran, at least %" PRIu64 " bytes past the buffer of %" PRIu64
          " bytes of %s had been overwritten, by the program or by a kernel that may not "
          "write to it%s",
          n),
      chip->stray_task, n, chip->stray.bytes, chip->stray_what,
      chip->check == NULL ? _ (": check=access names the kernel") : "");
}

static void
add_known (struct pto_check_range *known, uint32_t *n, uint64_t address, uint64_t bytes)
{
  for (; bytes > 0; (*n)++)
    {
      uint32_t piece = bytes < UINT32_MAX ? (uint32_t) bytes : UINT32_MAX;

      known[*n] = (struct pto_check_range){ .lo = address, .n = piece };
      address += piece;
      bytes -= piece;
    }
}

/* What was found of what tasks touched. Memory that the run knows, beside that of its tasks'
 * arguments: its own arguments, and the device's. */
static enum pto_status
check_accesses (struct pto_chip *chip, enum pto_status status, struct pto_report *report)
{
  const struct pto_device_memory *memories[] = { &chip->memory, &chip->run_memory };
  struct pto_check_range *known;
  uint64_t most = chip->n_args;
  uint32_t n = 0;

  for (uint32_t i = 0; i < chip->n_args; i++)
    most += chip->args[i].tensor.ndims > 0 ? chip->args[i].tensor.buffer.size / UINT32_MAX : 0;
  for (uint32_t m = 0; m < 2; m++)
    {
      for (uint32_t b = 0; b < memories[m]->n_blocks; b++)
        most += 1 + memories[m]->blocks[b].bytes / UINT32_MAX;
      for (uint32_t b = 0; b < memories[m]->n_leaving; b++)
        most += 1 + memories[m]->leaving[b].bytes / UINT32_MAX;
    }
  known = malloc ((most + 1) * sizeof *known);
  if (known == NULL)
    return pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory to check accesses with"));
  for (uint32_t i = 0; i < chip->n_args; i++)
    if (chip->args[i].tensor.ndims > 0)
      add_known (known, &n, chip->args[i].tensor.buffer.addr, chip->args[i].tensor.buffer.size);
  for (uint32_t m = 0; m < 2; m++)
    {
      for (uint32_t b = 0; b < memories[m]->n_blocks; b++)
        add_known (known, &n, memories[m]->blocks[b].address, memories[m]->blocks[b].bytes);
      for (uint32_t b = 0; b < memories[m]->n_leaving; b++)
        add_known (known, &n, memories[m]->leaving[b].address, memories[m]->leaving[b].bytes);
    }
  status = pto_check_report (chip->check, status, known, n, report);
  free (known);
  return status;
}

enum pto_status
pto_chip_run (struct pto_chip *chip, const struct pto_program *program,
              const struct pto_run_config *config, int (*orchestrate) (PTO2Runtime *rt, void *data),
              void *data, struct pto_run_stats *stats, struct pto_report *report)
{
  static const struct pto_run_config defaults = { 0 };
  struct pto_run run = { .orchestrate = orchestrate, .data = data };
  struct pto_chip_capture capture;
  struct pto_run_stats ignored;
  enum pto_status status;
  enum pto_status ended;
  enum pto_status damage;

  if (config == NULL)
    config = &defaults;
  if (stats == NULL)
    stats = &ignored;
  if (pto_load_relaxed (&chip->unsafe) != 0)
    return refuse_unsafe (report);
  if (chip->lost)
    return pto_report_set (report, PTO_STATUS_SYSTEM,
                           _ ("a task of an earlier run could not be ended: this chip is lost"));
  /* What does not begin leaves no record. */
  chip->machine.recorder.active = false;
  status = fit_cores (chip, config, report);
  if (status == PTO_OK)
    status = set_order (chip, config, report);
  if (status == PTO_OK)
    status = set_checking (chip, config, report);
  if (status == PTO_OK)
    status = set_recording (
        chip, config->record > 0 ? config->record : pto_params_recording (&chip->params),
        config->watch,
        chip->virtual_clock || param (chip, PTO_PARAMETER_UTILIZATION) != 0 || chip->check != NULL,
        report);
  if (status != PTO_OK)
    return status;
  chip->program = program;
  chip->args = config->args;
  chip->n_args = config->n_args;
  chip->has_read_only = false;
  for (uint32_t i = 0; i < config->n_args; i++)
    chip->has_read_only = chip->has_read_only || config->args[i].read_only > 0;
  if (config->capture != NULL)
    pto_chip_begin_capture (chip, &capture, config->capture, &run);
  chip->used = true;
  run.cancelled = config->cancelled;
  run.cancelled_data = config->cancelled_data;
  if (config->cancelled != NULL)
    set_cancelled (chip, config->cancelled, config->cancelled_data);
  pto_exec_enter (chip->machine.engine.exec);
  pto_guard_expect ();
  pto_interconnect_reset (chip->interconnect);
  pto_ticker_arm (chip->ticker);
  ended = status = pto_machine_run (&chip->machine, &run, stats, report);
  if (config->cancelled != NULL)
    set_cancelled (chip, NULL, NULL);
  pto_ticker_disarm (chip->ticker);
  if (pto_engine_is_lost (&chip->machine.engine))
    {
      if (status == PTO_STATUS_SCHEDULER_TIMEOUT && report != NULL)
        name_running (chip, report);
      lose (chip);
    }
  if (status == PTO_OK)
    status = pto_interconnect_check (chip->interconnect, report);
  gather (chip, stats);
  pto_exec_leave (chip->machine.engine.exec);
  pto_foreign_put_back (&chip->foreign);
  if (chip->check != NULL && !chip->lost)
    status = tell_damage (chip, check_accesses (chip, status, report), report);
  status = check_stray (chip, status, report);
  damage = pto_device_memory_check (&chip->memory, status == PTO_OK ? report : NULL);
  if (status == PTO_OK)
    status = damage;
  if (!chip->lost)
    pto_device_memory_settle (&chip->memory);
  if (chip->run_memory.n_blocks > 0)
    status = end_run_memory (chip, status, report);
  if (chip->check != NULL && status == PTO_STATUS_OUT_OF_BOUNDS)
    status = as_access (report);
  if (chip->machine.engine.order != NULL)
    status = pto_order_end (&chip->machine.engine, chip->order, status, report);
  if (status == PTO_OK && config->capture != NULL)
    status = pto_plan_complete (config->capture, report);
  if (ended == PTO_OK && status != PTO_OK)
    pto_machine_count_failed (chip->machine.door.totals);
  return status;
}

void
pto_chip_cancel (struct pto_chip *chip)
{
  pto_engine_cancel (&chip->machine.engine);
}

uint64_t
pto_chip_progress (const struct pto_chip *chip)
{
  return pto_engine_progress (&chip->machine.engine) + pto_load_relaxed (&chip->machine.steps);
}

bool
pto_chip_is_through (struct pto_chip *chip)
{
  return pto_engine_is_through (&chip->machine.engine);
}

void
pto_chip_describe_writer (struct pto_chip *chip, uint64_t address, char *text, size_t size)
{
  text[0] = '\0';
  if (chip->check != NULL && !chip->lost)
    pto_check_describe_writer (chip->check, address, text, size);
}

const struct pto_trace *
pto_chip_trace (struct pto_chip *chip)
{
  return pto_recorder_trace (&chip->machine.recorder);
}

void
pto_chip_trace_topology (const struct pto_chip *chip, struct pto_trace_topology *topology)
{
  *topology = (struct pto_trace_topology){ .n_schedulers = chip->n_schedulers,
                                           .n_cores = chip->n_cores,
                                           .n_clusters = chip->clusters,
                                           .aic_per_cluster = chip->platform->aic_per_cluster,
                                           .aiv_per_cluster = chip->platform->aiv_per_cluster,
                                           .level = 2,
                                           .virtual_clock = chip->virtual_clock,
                                           .counter_hz = chip->platform->counter_hz };
  pto_recorder_tell_clock (&chip->machine.recorder, topology);
}
