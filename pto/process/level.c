/* level.c: how are engine, scheduler, pool, processes and keeper put together, and in which order
 * do they begin and end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Three threads may be at work: the guest (who runs), the keeper, and any that registers or
 * cancels. Locks, outer first: guest_lock (who may be the executor's guest), the executor's token,
 * process_lock (what is known of processes: descriptors, last words). Nobody waits for the token
 * with process_lock held.
 *
 * A child's phase says whose it is: the carrier's (STARTING, UP), the guest's (LOST: it will begin
 * it again), nobody's (GONE).
 */
#include "level.h"

#include "../core/progress.h"
#include "../core/run.h"
#include "../exec/os_thread.h"
#include "../exec/pto_atomic.h"
#include "arena.h"
#include "pool.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C (1000000)
/* Where somebody waits who can be cancelled but not woken for that. */
#define CANCEL_POLL_NS (10 * MS)
#define CLOSE_NS (2000 * MS)
/* A child that has been asked to stop because its run was cancelled. */
#define CANCEL_NS (30 * MS)
/* The same when the run has failed: of the time without progress. */
#define FAILED_PART 8u
#define TICK_SLOW_NS (100 * MS)
#define TICK_FAST_NS (10 * MS)
#define TICK_MIN_NS (5 * MS)
/* Looks in the shortest of the time limits. */
#define TICKS 4u
/* A child that dies so often in a row before it has started is given up; one of which there is no
 * process at all has not been tried yet, and has a second or two for that. */
#define STARTS_MAX 3u
#define FORKS_MAX 10u
/* Children that die without having done anything are begun again at once, after this, after twice
 * this, and so on. */
#define BACK_OFF_NS (10 * MS)
#define BACK_OFF_MAX_NS (1000 * MS)
/* It was not for nothing that it lived. */
#define GOOD_LIFE_NS (5000 * MS)
#define SPIN_NS 20000u

enum phase
{
  PHASE_STARTING,
  PHASE_UP,
  PHASE_LOST,
  PHASE_GONE
};

struct level_child
{
  struct pto_level *level;
  uint32_t index;
  struct pto_child_config config;
  struct pto_process process; /* under process_lock */
  char begin_error[256];      /* under process_lock: why it could not be begun again; "" */
  pthread_t thread;
  bool has_thread;

  /* enum phase. W: carrier, and the guest from LOST on; release, after what is said of it below; R:
   * anybody, acquire. */
  _Atomic uint32_t phase;
  /* Lives begun. W: guest, release behind pto_pool_begin_child(); R: anybody, acquire: a request
   * that follows reaches this life. */
  _Atomic uint32_t lives;
  uint64_t begun_at; /* W: guest, before phase; R: carrier, pto_wall_clock() */

  /* --- the carrier's --- */
  bool was_up;       /* has answered START some time */
  bool anyway;       /* ended because its run was cancelled */
  uint64_t begin_at; /* not begun again before. R: guest, behind phase */
  bool refused;      /* START; then: */
  struct pto_failure failure;
};

struct pto_level
{
  struct pto_level_config config;
  struct pto_params params;
  uint32_t generation; /* of the process that it belongs to */
  struct pto_engine engine;
  struct pto_scheduler scheduler;
  struct pto_exec *exec;
  struct pto_pool *pool;
  struct pto_control *closer; /* CLOSE to all: the end needs no memory any more */
  struct PTO2Runtime runtime; /* first member is the table of calls */
  struct pto_recorder recorder;
  uint32_t n_recorded; /* runs */
  bool has_scheduler;
  bool has_arena;
  bool runs; /* actors and keeper are there */

  int event;       /* of the bell; what children can write is not asked */
  uint8_t *shared; /* hub and mailboxes */
  size_t shared_size;
  struct pto_hub *hub;
  struct pto_shared_map *map;
  uint64_t arena;
  uint64_t arena_size;
  uint32_t n_children;
  uint32_t n_processes;
  struct pto_child *pool_children;
  struct level_child *children;
  bool has_processes[PTO_N_CHILD_KINDS];
  uint32_t n_kind[PTO_N_CHILD_KINDS];

  pthread_mutex_t guest_lock;
  pthread_mutex_t process_lock;
  pthread_cond_t phase_changed; /* with process_lock; for those that are no actors */

  /* --- the keeper --- */
  pthread_t keeper;
  bool has_keeper;
  struct pollfd *watched;
  struct pto_words words;
  uint64_t tick_ns;
  /* enum pto_pace that is wanted. W: carrier; R: keeper. seq_cst against resting: either the keeper
   * sees it, or the carrier sees what the keeper has settled for, and wakes it. */
  _Atomic uint32_t pace;
  _Atomic uint32_t resting;
  _Atomic uint32_t stop;

  /* --- what the carrier tells --- */
  /* Index + 1 of the first child that could not start. W: carrier, once, release. */
  _Atomic uint32_t start_failed;
  /* Children that wait for the guest to begin them again: a hint. */
  _Atomic uint32_t n_lost;
  /* The end has begun: who dies is not begun again. W: owner; R: carrier. Relaxed: a ring follows.
   */
  _Atomic uint32_t closing;

  /* --- of the current run; the guest's --- */
  bool (*cancelled) (void *data);
  void *cancelled_data;
  uint32_t restarts;
  /* pthread_self() of who runs, or 0. W: guest; R: who cancels or registers. */
  _Atomic uint64_t guest;
};

static uint64_t
param (const struct pto_level *level, enum pto_param index)
{
  return level->params.values[index];
}

static const char *
path_of (const struct pto_level *level, uint32_t index)
{
  return level->pool_children[index].path;
}

static struct pto_sender *
sender_of (const struct pto_level *level, uint32_t index)
{
  return &level->pool_children[index].sender;
}

/* --- what the pool asks; the carrier --- */

static void
describe (void *data, const struct pto_child *child, char *text, size_t size, char *words,
          size_t words_size)
{
  struct pto_level *level = data;
  struct level_child *own = &level->children[child->index];

  pthread_mutex_lock (&level->process_lock);
  if (own->begin_error[0] != '\0')
    snprintf (text, size, "%s", own->begin_error);
  else if (own->refused)
    snprintf (text, size, "could not be started again: %.*s", (int) (size - 32), own->failure.text);
  else
    pto_process_describe (&own->process, text, size);
  if (words != NULL)
    pto_process_last_line (&own->process, words, words_size);
  pthread_mutex_unlock (&level->process_lock);
}

static void
kill_child (void *data, struct pto_child *child, const char *why)
{
  struct pto_level *level = data;
  struct level_child *own = &level->children[child->index];

  own->anyway = child->cancelled;
  pthread_mutex_lock (&level->process_lock);
  pto_process_kill (&own->process, why);
  pthread_mutex_unlock (&level->process_lock);
}

static void
set_phase (struct level_child *own, enum phase phase)
{
  struct pto_level *level = own->level;

  pthread_mutex_lock (&level->process_lock);
  pto_store_release (&own->phase, (uint32_t) phase);
  pthread_cond_broadcast (&level->phase_changed);
  pthread_mutex_unlock (&level->process_lock);
}

static void
started (void *data, struct pto_child *child)
{
  struct pto_level *level = data;

  level->children[child->index].was_up = true;
  set_phase (&level->children[child->index], PHASE_UP);
}

static void
note_start_failure (struct pto_level *level, uint32_t index)
{
  uint32_t none = 0;

  pto_cas_acq_rel (&level->start_failed, &none, index + 1);
}

static void
refused (void *data, struct pto_child *child, const struct pto_failure *failure)
{
  struct pto_level *level = data;
  struct level_child *own = &level->children[child->index];

  own->refused = true;
  own->failure = *failure;
  note_start_failure (level, child->index);
}

/* What dies again and again is begun again ever more slowly. */
static uint64_t
back_off (struct level_child *own, struct pto_child *child)
{
  uint64_t now = pto_wall_clock ();
  uint64_t ns = BACK_OFF_NS;

  if (child->deaths > 1 && now - own->begun_at >= GOOD_LIFE_NS)
    child->deaths = 1;
  if (child->deaths <= 1)
    return 0;
  for (uint32_t i = 2; i < child->deaths && ns < BACK_OFF_MAX_NS; i++)
    ns *= 2;
  return now + (ns < BACK_OFF_MAX_NS ? ns : BACK_OFF_MAX_NS);
}

/* Is there still hope that it comes up? */
static bool
may_start (struct level_child *own, const struct pto_child *child)
{
  struct pto_level *level = own->level;
  bool has_begun;

  pthread_mutex_lock (&level->process_lock);
  has_begun = own->begin_error[0] == '\0';
  pthread_mutex_unlock (&level->process_lock);
  return child->failed_starts < (has_begun ? STARTS_MAX : FORKS_MAX);
}

static bool
lost (void *data, struct pto_child *child)
{
  struct pto_level *level = data;
  struct level_child *own = &level->children[child->index];
  /* Who has never been up keeps the level from coming up. */
  bool again = !own->config.thread && pto_load_relaxed (&level->closing) == 0
               && (child->caught
                   || (own->was_up && may_start (own, child)
                       && (child->renewed || own->anyway || level->config.restart)));

  if (!own->was_up && !again)
    note_start_failure (level, child->index);
  own->begin_at = again ? back_off (own, child) : 0;
  if (again)
    pto_fetch_add_acq_rel (&level->n_lost, 1);
  set_phase (own, again ? PHASE_LOST : PHASE_GONE);
  /* The guest, should it wait for tasks, is the one to begin it again. */
  pto_fetch_add_acq_rel (&level->engine.progress.value, 1);
  pto_unpark (level->exec, &level->engine.progress);
  return again;
}

static void
set_pace (void *data, enum pto_pace pace)
{
  struct pto_level *level = data;

  atomic_store_explicit (&level->pace, (uint32_t) pace, memory_order_seq_cst);
  if (atomic_load_explicit (&level->resting, memory_order_seq_cst) < (uint32_t) pace)
    eventfd_write (level->event, 1);
}

/* --- children, as they begin --- */

/* Children that look for a while before they sleep: with the parent one for each CPU. */
static bool
may_spin (uint32_t index)
{
  cpu_set_t cpus;

  return sched_getaffinity (0, sizeof cpus, &cpus) == 0 && index + 1 < (uint32_t) CPU_COUNT (&cpus);
}

static int
process_main (void *data)
{
  const struct level_child *own = data;
  struct pto_level *level = own->level;
  struct pto_server server = own->config.server;

  server.is_orphan = pto_process_is_orphan;
  if (server.probe != NULL)
    server.probe (server.data);
  return pto_mailbox_serve (NULL, sender_of (level, own->index)->mailbox, level->hub, own->index,
                            may_spin (own->index), &server)
             ? 0
             : PTO_EXIT_ORPHAN;
}

static void
thread_main (void *data)
{
  const struct level_child *own = data;
  struct pto_level *level = own->level;

  pto_mailbox_serve (NULL, sender_of (level, own->index)->mailbox, level->hub, own->index,
                     may_spin (own->index), &own->config.server);
}

static void
post_start (struct pto_sender *sender)
{
  struct pto_mailbox *mailbox = sender->mailbox;

  mailbox->request = PTO_REQUEST_START;
  mailbox->bytes = 0;
  mailbox->far_body = 0;
  pto_sender_post (NULL, sender);
}

/* Native stack. START is posted. */
static enum pto_status
begin_process (struct pto_level *level, struct level_child *own, struct pto_report *report)
{
  struct pto_process_config config = { .fork = level->config.fork,
                                       .fork_data = level->config.fork_data,
                                       .main = process_main,
                                       .data = own,
                                       .inherit_stderr = level->config.inherit_stderr };

  own->begun_at = pto_wall_clock ();
  pto_fetch_add_acq_rel (&own->lives, 1);
  return pto_process_begin (&own->process, &config, report);
}

/* Guest, native stack, not parked: begins again those that wait for it. */
static void
begin_lost (struct pto_level *level)
{
  if (pto_load_acquire (&level->n_lost) == 0)
    return;
  for (uint32_t i = 0; i < level->n_children; i++)
    {
      struct level_child *own = &level->children[i];
      struct pto_child *child = &level->pool_children[i];
      struct pto_report report = { 0 };
      bool failed;

      if (pto_load_acquire (&own->phase) != PHASE_LOST
          || (own->begin_at != 0 && pto_wall_clock () < own->begin_at))
        continue;
      pto_fetch_sub_acq_rel (&level->n_lost, 1);
      own->anyway = own->refused = false;
      set_phase (own, PHASE_STARTING);
      pto_pool_begin_child (child);
      /* While there is no process: a new one may die, and be found dead, at any moment. */
      pto_store_relaxed (&child->stopped, 0);
      pto_store_release (&child->dead, 0);
      pto_sender_reset (sender_of (level, i));
      post_start (sender_of (level, i));
      /* The child must not be born with the keeper inside of the executor, or of what it knows of
       * processes. */
      pto_exec_hold (level->exec);
      pthread_mutex_lock (&level->process_lock);
      own->begin_error[0] = '\0';
      failed = begin_process (level, own, &report) != PTO_OK;
      if (failed)
        snprintf (own->begin_error, sizeof own->begin_error, "could not be begun again (%.200s)",
                  report.message);
      pthread_mutex_unlock (&level->process_lock);
      pto_exec_unhold (level->exec);
      level->restarts += !child->caught;
      /* Who could not be begun dies at once, and takes the way of all the dead. */
      if (failed)
        pto_store_release (&child->dead, 1);
      pto_pool_revive (level->pool, child);
      /* The keeper watches it from now on. */
      eventfd_write (level->event, 1);
    }
}

/* --- the keeper --- */

static void
bury (struct pto_level *level, uint32_t index)
{
  struct level_child *own = &level->children[index];
  bool dead;

  pthread_mutex_lock (&level->process_lock);
  dead = pto_process_reap (&own->process);
  if (dead)
    pto_process_take_words (&own->process, &level->words);
  pthread_mutex_unlock (&level->process_lock);
  if (!dead)
    return;
  /* Release: what describe() reads. */
  pto_store_release (&level->pool_children[index].dead, 1);
  pto_hub_mark (NULL, level->hub, index);
}

static void
tick (struct pto_level *level, uint64_t ns)
{
  for (uint32_t i = 0; i < level->n_children; i++)
    if (!level->children[i].config.thread)
      {
        pthread_mutex_lock (&level->process_lock);
        pto_store_relaxed (&level->pool_children[i].stopped,
                           pto_process_look (&level->children[i].process));
        pthread_mutex_unlock (&level->process_lock);
      }
  pto_pool_tick (level->pool, ns);
}

/* Descriptors are read under the lock; they may be closed, and their numbers be others', by the
 * time poll() sees them: then a look at the child finds nothing. */
static nfds_t
watch (struct pto_level *level)
{
  nfds_t n = 0;

  level->watched[n++] = (struct pollfd){ .fd = level->event, .events = POLLIN };
  pthread_mutex_lock (&level->process_lock);
  for (uint32_t i = 0; i < level->n_children; i++)
    {
      const struct pto_process *process = &level->children[i].process;

      level->watched[n++]
          = (struct pollfd){ .fd = process->dead ? -1 : process->pidfd, .events = POLLIN };
      level->watched[n++] = (struct pollfd){ .fd = process->words, .events = POLLIN };
    }
  pthread_mutex_unlock (&level->process_lock);
  return n;
}

static void
look_at_children (struct pto_level *level)
{
  for (uint32_t i = 0; i < level->n_children; i++)
    {
      bool says = level->watched[2 + 2 * i].revents != 0;
      bool ends = level->watched[1 + 2 * i].revents != 0;

      if (says)
        {
          pthread_mutex_lock (&level->process_lock);
          pto_process_take_words (&level->children[i].process, &level->words);
          pthread_mutex_unlock (&level->process_lock);
        }
      if (ends)
        bury (level, i);
      /* Whoever reads them may take their time. */
      if (says || ends)
        pto_words_pass_on (&level->words);
    }
}

static void
keeper_main (void *data)
{
  struct pto_level *level = data;
  uint64_t ticked = pto_wall_clock ();
  uint32_t settled = PTO_PACE_SLOW;

  while (pto_load_acquire (&level->stop) == 0)
    {
      uint32_t pace = atomic_load_explicit (&level->pace, memory_order_seq_cst);
      uint64_t now = pto_wall_clock ();
      uint64_t period;
      nfds_t n;

      if (pace > settled)
        {
          /* What was before is nothing that anybody has been waiting for. */
          ticked = now;
          settled = pace;
        }
      period = settled == PTO_PACE_FAST ? TICK_FAST_NS : level->tick_ns;
      if (now - ticked >= period)
        {
          /* Twice the period at most: a machine, or a process, that did not run did not wait. */
          if (pace != PTO_PACE_IDLE)
            tick (level, now - ticked < 2 * period ? now - ticked : 2 * period);
          ticked = now;
          /* Only after a period in which nothing was asked of it: arming is one store till then. */
          settled = pace;
          period = settled == PTO_PACE_FAST ? TICK_FAST_NS : level->tick_ns;
        }
      atomic_store_explicit (&level->resting, settled, memory_order_seq_cst);
      pto_exec_keep (level->exec);
      n = watch (level);
      /* Once more: the event that came with it may have been read by now. */
      if (atomic_load_explicit (&level->pace, memory_order_seq_cst) > settled
          || pto_load_acquire (&level->stop) != 0)
        continue;
      poll (level->watched, n,
            settled == PTO_PACE_IDLE ? -1 : (int) ((ticked + period - now) / MS + 1));
      look_at_children (level);
    }
}

/* --- making --- */

static void begin_scope (PTO2Runtime *rt, const char *file, int32_t line);
static void end_scope (PTO2Runtime *rt);
static void submit_kernel (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type,
                           PTOParam *params, int32_t n_params);
static void ignore (PTO2Runtime *rt);
static PTO2Buffer *new_buffer (PTO2Runtime *rt, uint64_t bytes, uint32_t *generation);
static void log_message (PTO2Runtime *rt, int32_t severity, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

static const PTO2RuntimeOps runtime_ops = {
  .size = sizeof (PTO2RuntimeOps),
  .submit_task = submit_kernel,
  .scope_begin = begin_scope,
  .scope_end = end_scope,
  .orchestration_done = ignore,
  .init_tensor_pool = ignore,
  .new_buffer = new_buffer,
  .log = log_message,
};

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

static uint32_t
power_of_two_at_least (uint64_t value)
{
  uint32_t power = 1;

  while (power < value)
    power *= 2;
  return power;
}

static bool
make_engine (struct pto_level *level, struct pto_report *report)
{
  static const char *const queue_names[] = { "tasks" };
  struct pto_engine_config config = {
    .ring = { .window = (uint32_t) param (level, PTO_PARAMETER_TASK_WINDOW),
              .edge_pool = power_of_two_at_least (param (level, PTO_PARAMETER_DEP_POOL)),
              .heap = param (level, PTO_PARAMETER_HEAP) },
    .map_pool = (uint32_t) param (level, PTO_PARAMETER_MAP_POOL),
    .hazards = (uint32_t) param (level, PTO_PARAMETER_HAZARDS),
    .n_queues = 1,
    .n_shards = 1,
    .n_schedulers = 1,
    .timeout_ns = param (level, PTO_PARAMETER_TIMEOUT) * MS,
    .ring_patience_ns = param (level, PTO_PARAMETER_TIMEOUT) * MS,
    .end_patience_ns = PTO_NEVER,
    .beats = beats,
    .beats_data = level,
    .queue_names = queue_names,
    .kernel_name = callable_name,
    .kernel_name_data = level,
  };
  struct pto_exec_config exec_config = { .backend = PTO_BACKEND_HOST,
                                         .domains = 1,
                                         .seed = param (level, PTO_PARAMETER_SEED),
                                         .bell = &level->hub->bell };
  struct pto_report inner = { 0 };
  char error[256] = "";

  level->exec = pto_exec_new (&exec_config, error, sizeof error);
  if (level->exec == NULL)
    {
      pto_report_set (report, PTO_STATUS_SYSTEM, "%s can not be started: %s", level->config.path,
                      error);
      return false;
    }
  if (pto_engine_init (&level->engine, level->exec, &config, &inner) == PTO_OK)
    return true;
  /* Nothing of it is left. */
  memset (&level->engine, 0, sizeof level->engine);
  pto_report_set (report, inner.status,
                  "%s can not be started: %s: set heap (heap-ring-size) to less",
                  level->config.path, inner.message);
  return false;
}

static bool
make_children (struct pto_level *level, struct pto_report *report)
{
  uint32_t n = level->n_children;

  level->children = calloc (n + 1, sizeof *level->children);
  level->pool_children = calloc (n + 1, sizeof *level->pool_children);
  level->watched = calloc (1 + 2 * (size_t) n, sizeof *level->watched);
  level->shared_size = 4096 + (size_t) n * PTO_MAILBOX_BYTES;
  level->shared = mmap (NULL, level->shared_size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (level->shared == MAP_FAILED)
    level->shared = NULL;
  if (level->children == NULL || level->pool_children == NULL || level->watched == NULL
      || level->shared == NULL)
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, "no memory for the %u children of %s", n,
                      level->config.path);
      level->n_children = 0;
      return false;
    }
  level->hub = (struct pto_hub *) level->shared;
  for (uint32_t i = 0; i < n; i++)
    {
      const struct pto_child_config *config = &level->config.children[i];
      struct pto_child *child = &level->pool_children[i];
      struct level_child *own = &level->children[i];

      struct pto_mailbox *mailbox
          = (struct pto_mailbox *) (level->shared + 4096 + (size_t) i * PTO_MAILBOX_BYTES);

      pto_mailbox_guard (mailbox);
      pto_sender_init (&child->sender, mailbox);
      child->index = i;
      child->kind = config->kind;
      child->level = config->level;
      child->thread = config->thread;
      child->number = level->n_kind[config->kind]++;
      if (config->kind == PTO_CHILD_SUB)
        snprintf (child->path, sizeof child->path, "%s/sub%u", level->config.path, child->number);
      else
        snprintf (child->path, sizeof child->path, "%s/L%u/%u", level->config.path, config->level,
                  child->number);
      own->level = level;
      own->index = i;
      own->config = *config;
      pto_process_init (&own->process, child->path);
      level->n_processes += !config->thread;
      level->has_processes[config->kind] = level->has_processes[config->kind] || !config->thread;
    }
  return true;
}

static uint64_t
milliseconds_or_never (uint64_t ms)
{
  return ms == 0 ? PTO_NEVER : ms * MS;
}

static bool
make_pool (struct pto_level *level, struct pto_report *report)
{
  struct pto_pool_config config
      = { .path = level->config.path,
          .hub = level->hub,
          .children = level->pool_children,
          .n_children = level->n_children,
          .describe = describe,
          .kill = kill_child,
          .started = started,
          .refused = refused,
          .lost = lost,
          .pace = set_pace,
          .data = level,
          .task_ns = milliseconds_or_never (param (level, PTO_PARAMETER_TASK_TIMEOUT)),
          .start_ns = param (level, PTO_PARAMETER_TIMEOUT) * MS,
          .close_ns = CLOSE_NS,
          .stop_ns = milliseconds_or_never (param (level, PTO_PARAMETER_STOP_TIMEOUT)),
          .group_ns = param (level, PTO_PARAMETER_TIMEOUT) * MS };
  struct pto_scheduler_config scheduler = { .index = 0 };
  uint64_t shortest = TICK_SLOW_NS * TICKS;

  level->closer = pto_control_new (PTO_REQUEST_CLOSE, NULL, NULL, 0);
  level->pool = pto_pool_new (&level->engine, level->exec, &config);
  if (level->pool != NULL && level->closer != NULL)
    {
      scheduler.endpoints = pto_pool_endpoints (level->pool, &scheduler.n_endpoints);
      level->has_scheduler = pto_scheduler_init (&level->scheduler, &level->engine, &scheduler);
    }
  if (!level->has_scheduler)
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, "no memory for the seats of %s",
                      level->config.path);
      return false;
    }
  if (config.task_ns < shortest)
    shortest = config.task_ns;
  if (config.stop_ns < shortest)
    shortest = config.stop_ns;
  if (config.start_ns < shortest)
    shortest = config.start_ns;
  level->tick_ns = shortest / TICKS > TICK_MIN_NS ? shortest / TICKS : TICK_MIN_NS;
  atomic_init (&level->pace, level->n_children > 0 ? PTO_PACE_SLOW : PTO_PACE_IDLE);
  atomic_init (&level->resting, PTO_PACE_SLOW);
  return true;
}

struct pto_level *
pto_level_new (const struct pto_level_config *config, struct pto_report *report)
{
  struct pto_level *level = NULL;

  if (config->n_children > PTO_CHILDREN_MAX)
    {
      pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                      "%s has %u children; a worker has at most %u", config->path,
                      config->n_children, PTO_CHILDREN_MAX);
      return NULL;
    }
  if (posix_memalign ((void **) &level, 64, (sizeof *level + 63) & ~(size_t) 63) != 0)
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, "no memory for %s", config->path);
      return NULL;
    }
  memset (level, 0, sizeof *level);
  level->event = -1;
  level->config = *config;
  level->params = *config->params;
  level->config.params = &level->params;
  level->n_children = config->n_children;
  level->generation = pto_process_generation ();
  level->runtime.ops = &runtime_ops;
  pthread_mutex_init (&level->guest_lock, NULL);
  pthread_mutex_init (&level->process_lock, NULL);
  pthread_cond_init (&level->phase_changed, NULL);
  if (!make_children (level, report))
    {
      pto_level_free (level);
      return NULL;
    }
  /* Children are given copies of what the caller holds. */
  level->config.children = NULL;
  level->event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  pto_bell_init (&level->hub->bell, level->event);
  if (level->event < 0)
    pto_report_set (report, PTO_STATUS_SYSTEM, "%s can not be started: no event descriptor: %s",
                    config->path, strerror (errno));
  if (level->event < 0 || !make_engine (level, report) || !make_pool (level, report))
    {
      pto_level_free (level);
      return NULL;
    }
  if (level->n_processes > 0)
    {
      if (pto_arena_acquire (param (level, PTO_PARAMETER_ARENA), report) != PTO_OK)
        {
          pto_level_free (level);
          return NULL;
        }
      level->has_arena = true;
      pto_arena_range (&level->arena, &level->arena_size);
    }
  return level;
}

/* What only this process works on: no page tables of it are copied. */
static void
keep_from_children (struct pto_level *level)
{
  for (uint32_t i = 0; i < PTO_RINGS; i++)
    {
      struct pto_ring *ring = &level->engine.rings[i];

      madvise (ring->shared, ring->shared_size, MADV_DONTFORK);
      madvise (ring->storage.base, ring->storage.size, MADV_DONTFORK);
    }
}

enum pto_status
pto_level_fork (struct pto_level *level, struct pto_report *report)
{
  enum pto_status status = PTO_OK;
  struct pto_report inner = { 0 };

  for (uint32_t i = 0; i < level->n_children; i++)
    post_start (sender_of (level, i));
  if (level->n_processes > 0)
    {
      pto_process_hygiene_once ();
      level->map = pto_shared_map_new (&inner);
      if (level->map == NULL)
        return pto_report_set (report, inner.status, "%s", inner.message);
      keep_from_children (level);
    }
  for (uint32_t i = 0; i < level->n_children && status == PTO_OK; i++)
    if (!level->children[i].config.thread)
      status = begin_process (level, &level->children[i], report);
  for (uint32_t i = 0; i < level->n_children && status == PTO_OK; i++)
    if (level->children[i].config.thread && level->children[i].config.fork != NULL)
      status = level->children[i].config.fork (level->children[i].config.server.data, report);
  return status;
}

/* The words for the child that kept the level from coming up. */
static enum pto_status
report_start_failure (struct pto_level *level, uint32_t index, struct pto_report *report)
{
  struct level_child *own = &level->children[index];
  const char *path = path_of (level, index);
  char text[512];
  char words[256];

  if (own->refused)
    {
      bool named = strncmp (own->failure.text, path, strlen (path)) == 0;
      enum pto_status status = (enum pto_status) own->failure.code;

      if (own->failure.domain[0] != '\0' || status == PTO_OK)
        status = PTO_STATUS_SYSTEM;
      /* What fails deeper down names its place itself. */
      return pto_report_set (report, status, "%s%s%s", named ? "" : path,
                             named ? "" : " can not be started: ", own->failure.text);
    }
  describe (level, &level->pool_children[index], text, sizeof text, words, sizeof words);
  return pto_report_set (
      report, (enum pto_status) PTO_STATUS_WORKER_LOST, "%s can not be started: it %s%s%s%s", path,
      text, words[0] != '\0' ? ". Its last words: \"" : "", words, words[0] != '\0' ? "\"" : "");
}

static enum pto_status
start_actors (struct pto_level *level, struct pto_report *report)
{
  char error[256] = "";
  bool ok;

  pto_exec_enter (level->exec);
  ok = pto_exec_spawn (level->exec, 0, "scheduler", pto_scheduler_main, &level->scheduler, error,
                       sizeof error)
       == 0;
  if (ok
      && pto_exec_spawn (level->exec, 0, "pump", pto_pool_pump, level->pool, error, sizeof error)
             != 0)
    {
      ok = false;
      pto_scheduler_stop (&level->scheduler);
      pto_exec_join (level->exec);
    }
  pto_exec_leave (level->exec);
  level->runs = ok;
  if (ok)
    {
      ok = pto_os_thread_start (&level->keeper, "pto-keeper", NULL, keeper_main, level, error,
                                sizeof error)
           == 0;
      level->has_keeper = ok;
    }
  for (uint32_t i = 0; i < level->n_children && ok; i++)
    if (level->children[i].config.thread)
      {
        struct level_child *own = &level->children[i];
        const char *name = strrchr (path_of (level, i), '/');
        char text[16];

        snprintf (text, sizeof text, "pto-%.11s", name != NULL ? name + 1 : "child");
        pto_store_relaxed (&own->lives, 1);
        ok = pto_os_thread_start (&own->thread, text, NULL, thread_main, own, error, sizeof error)
             == 0;
        own->has_thread = ok;
      }
  if (ok)
    return PTO_OK;
  return pto_report_set (report, PTO_STATUS_SYSTEM, "%s can not be started: %s", level->config.path,
                         error);
}

/* Is there a child whose end is still to come? */
static bool
somebody_is_left (const struct pto_level *level)
{
  for (uint32_t i = 0; i < level->n_children; i++)
    {
      const struct level_child *own = &level->children[i];
      uint32_t phase = pto_load_acquire (&own->phase);

      if ((own->config.thread ? own->has_thread : own->process.pid != 0) && phase != PHASE_GONE
          && phase != PHASE_LOST)
        return true;
    }
  return false;
}

/* CLOSE to all; who has not ended in time is killed by the pump. at_once: they have nothing worth
 * closing. */
static void
close_children (struct pto_level *level, bool at_once)
{
  struct pto_control *control = level->closer;

  level->closer = NULL;
  control->last = true;
  pto_store_release (&level->closing, 1);
  for (uint32_t i = 0; i < level->n_children; i++)
    {
      struct level_child *own = &level->children[i];

      if (own->config.thread && !own->has_thread)
        {
          /* Never begun, and asked to start all the same. */
          pto_store_release (&level->pool_children[i].dead, 1);
          pto_hub_mark (NULL, level->hub, i);
        }
      else
        control->targets[i / 64] |= UINT64_C (1) << (i % 64);
      if (!at_once)
        continue;
      pto_sender_cancel (sender_of (level, i));
      pthread_mutex_lock (&level->process_lock);
      pto_process_kill (&own->process, "the start was given up");
      pthread_mutex_unlock (&level->process_lock);
    }
  pto_exec_enter (level->exec);
  pto_pool_control (level->pool, control);
  for (;;)
    {
      uint32_t seen = pto_word_get (pto_pool_news (level->pool));

      if (!somebody_is_left (level) && pto_word_get (&control->done) != 0)
        break;
      pto_park (level->exec, pto_pool_news (level->pool), seen,
                pto_now (level->exec) + CANCEL_POLL_NS);
    }
  pto_control_unref (control);
  pto_pool_stop (level->pool);
  pto_scheduler_stop (&level->scheduler);
  pto_exec_join (level->exec);
  pto_exec_leave (level->exec);
}

/* Ends everybody, in whatever state they are. */
static void
take_down (struct pto_level *level, bool at_once)
{
  if (level->runs && level->has_keeper)
    close_children (level, at_once);
  else if (level->runs)
    {
      /* The pump waits for children, whom nobody watches: what it has is dropped with its stack. */
      pto_exec_enter (level->exec);
      pto_scheduler_stop (&level->scheduler);
      pto_exec_leave (level->exec);
    }
  if (level->has_keeper)
    {
      pto_store_release (&level->stop, 1);
      eventfd_write (level->event, 1);
      pto_os_thread_join (level->keeper);
    }
  level->has_keeper = level->runs = false;
  for (uint32_t i = 0; i < level->n_children; i++)
    {
      struct level_child *own = &level->children[i];

      pto_process_end (&own->process);
      if (own->has_thread)
        pto_os_thread_join (own->thread);
      own->has_thread = false;
      if (own->config.close != NULL)
        own->config.close (own->config.server.data);
      own->config.close = NULL;
    }
}

enum pto_status
pto_level_start (struct pto_level *level, bool (*cancelled) (void *data), void *data,
                 struct pto_report *report)
{
  enum pto_status status = start_actors (level, report);
  uint32_t failed;

  if (status == PTO_OK)
    {
      pthread_mutex_lock (&level->guest_lock);
      pto_exec_enter (level->exec);
      for (;;)
        {
          uint32_t seen = pto_word_get (pto_pool_news (level->pool));
          /* Before the look for the lost: who is not among those that start is among these. */
          bool starting = pto_pool_starting (level->pool) != 0;

          failed = pto_load_acquire (&level->start_failed);
          if (failed != 0)
            break;
          if (pto_load_acquire (&level->n_lost) != 0)
            begin_lost (level);
          else if (!starting)
            break;
          if (cancelled != NULL && cancelled (data))
            {
              status = pto_report_set (report, PTO_STATUS_CANCELLED,
                                       "the start of %s was cancelled", level->config.path);
              break;
            }
          pto_park (level->exec, pto_pool_news (level->pool), seen,
                    cancelled != NULL ? pto_now (level->exec) + CANCEL_POLL_NS : PTO_NEVER);
        }
      pto_exec_leave (level->exec);
      pthread_mutex_unlock (&level->guest_lock);
      if (status == PTO_OK && failed != 0)
        status = report_start_failure (level, failed - 1, report);
    }
  if (status != PTO_OK)
    take_down (level, true);
  return status;
}

void
pto_level_take_heaps (struct pto_level *level, struct pto_level_heaps *heaps)
{
  _Static_assert(sizeof heaps->rings / sizeof heaps->rings[0] == PTO_RINGS, "one of each ring");

  for (uint32_t i = 0; i < PTO_RINGS; i++)
    {
      struct pto_circle *heap = &level->engine.rings[i].heap;

      heaps->rings[i].base = heap->base;
      heaps->rings[i].size = heap->size;
      heap->base = NULL;
    }
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
  pto_engine_destroy (&level->engine);
  pto_recorder_clear (&level->recorder);
  pto_exec_free (level->exec);
  pto_shared_map_free (level->map);
  if (level->has_arena)
    pto_arena_release ();
  if (level->event >= 0)
    close (level->event);
  if (level->shared != NULL)
    munmap (level->shared, level->shared_size);
  free (level->children);
  free (level->pool_children);
  free (level->watched);
  pthread_mutex_destroy (&level->guest_lock);
  pthread_mutex_destroy (&level->process_lock);
  pthread_cond_destroy (&level->phase_changed);
  free (level);
}

/* --- a run --- */

/* Asked by the engine wherever the guest waits, and now and then while it submits. */
static bool
is_cancelled (void *data)
{
  struct pto_level *level = data;

  begin_lost (level);
  if (level->cancelled == NULL || !level->cancelled (level->cancelled_data))
    return false;
  pto_pool_cancel (level->pool, CANCEL_NS);
  return true;
}

static void
gather (const struct pto_level *level, struct pto_level_stats *stats, uint64_t wall_ns)
{
  const struct pto_engine *engine = &level->engine;
  uint64_t roots = pto_pool_first_failure (level->pool)->roots;

  memset (stats, 0, sizeof *stats);
  stats->tasks = engine->submitted;
  stats->completed = pto_engine_completed (engine);
  stats->failed = pto_engine_failures (engine);
  stats->poisoned = stats->failed > roots ? stats->failed - roots : 0;
  stats->edges = engine->stats.edges;
  stats->run_ns = wall_ns;
  stats->peak_live_tasks = engine->stats.peak_live;
  stats->recycled = pto_engine_recycled (engine);
  stats->stalls = engine->stats.stalls;
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    {
      stats->ring_tasks[ring] = engine->rings[ring].head;
      stats->last_task_alive[ring] = engine->tails[ring];
      stats->heap_peak[ring] = engine->rings[ring].heap.peak;
    }
  stats->restarts = level->restarts;
}

static void
name_task (pto_task_id task, char *text, size_t size)
{
  if (PTO_TASK_RING (task) == 0)
    snprintf (text, size, "task %u", PTO_TASK_LOCAL (task));
  else
    snprintf (text, size, "task %u of ring %u", PTO_TASK_LOCAL (task), PTO_TASK_RING (task));
}

/* "; task 12 failed, 3 tasks that needed it did not run, 40 others finished" */
static void
tell_consequences (const struct pto_level_stats *stats, const char *task, uint64_t roots,
                   char *text, size_t size)
{
  uint64_t finished = stats->completed - stats->failed;
  int used = snprintf (text, size, "; %s failed", task);

  if (roots > 1)
    used += snprintf (text + used, size - (size_t) used, ", as did %" PRIu64 " more", roots - 1);
  if (stats->poisoned > 0)
    used += snprintf (text + used, size - (size_t) used,
                      ", %" PRIu64 " task%s that needed %s did not run", stats->poisoned,
                      stats->poisoned > 1 ? "s" : "", roots > 1 ? "them" : "it");
  snprintf (text + used, size - (size_t) used, ", %" PRIu64 " other%s finished", finished,
            finished == 1 ? "" : "s");
}

/* The run's error is its first task that failed by itself. */
static enum pto_status
report_task (struct pto_level *level, const struct pto_level_stats *stats,
             struct pto_failure *failure, struct pto_report *report)
{
  const struct pto_first_failure *first = pto_pool_first_failure (level->pool);
  char task[48];
  char rest[200];
  char words[300] = "";

  name_task (first->task, task, sizeof task);
  tell_consequences (stats, task, first->roots, rest, sizeof rest);
  if (first->words[0] != '\0')
    snprintf (words, sizeof words, ". Its last words: \"%s\"", first->words);
  switch (first->kind)
    {
    case PTO_FAILURE_ANSWERED:
      pto_failure_set (failure, first->failure.code, first->failure.domain,
                       "%s (\"%s\") on %s failed%s%s", task, first->name, first->path,
                       first->failure.bytes > 0 ? ": " : "", first->failure.text);
      break;
    case PTO_FAILURE_LOST:
    case PTO_FAILURE_LOST_BEFORE:
      pto_failure_set (failure, PTO_STATUS_WORKER_LOST, NULL, "%s %s %s \"%s\"%s%s%s", first->path,
                       first->failure.text,
                       first->kind == PTO_FAILURE_LOST ? "while running" : "before it began with",
                       first->name, rest, words,
                       level->config.restart ? ""
                                             : " (restart is never: set restart to on-failure to "
                                               "start it again)");
      break;
    case PTO_FAILURE_NO_WORKER:
      pto_failure_set (failure, PTO_STATUS_WORKER_LOST, NULL,
                       "%s (\"%s\") has nobody to run it: %s %s before%s%s%s", task, first->name,
                       first->path, first->failure.text, rest, words,
                       level->config.restart ? ""
                                             : " (restart is never: set restart to on-failure to "
                                               "start it again)");
      break;
    }
  return pto_report_set (report, first->status, "%s", failure->text);
}

/* Orchestrator, scheduler, children: the last two are written by whoever carries. */
static enum pto_status
choose_recording (struct pto_level *level, bool record, struct pto_report *report)
{
  struct pto_trace *before = level->recorder.trace;
  enum pto_status status = pto_recorder_choose (&level->recorder, record, 2 + level->n_children,
                                                param (level, PTO_PARAMETER_TRACE_RECORDS), report);

  if (status != PTO_OK)
    return status;
  /* As in keep_from_children(): of those that are begun again. */
  if (level->recorder.trace != before)
    for (uint32_t b = 0; b < level->recorder.trace->n_buffers; b++)
      madvise (level->recorder.trace->buffers[b].records,
               level->recorder.trace->buffers[b].capacity * sizeof (struct pto_trace_record),
               MADV_DONTFORK);
  level->engine.trace = pto_recorder_buffer (&level->recorder, 0);
  level->scheduler.trace = pto_recorder_buffer (&level->recorder, 1);
  /* Never 0, which says that nothing is. */
  level->n_recorded = level->n_recorded == UINT32_MAX ? 1 : level->n_recorded + 1;
  pto_pool_record (level->pool, level->scheduler.trace, pto_recorder_buffer (&level->recorder, 2),
                   level->n_recorded);
  return PTO_OK;
}

const struct pto_trace *
pto_level_trace (struct pto_level *level)
{
  return pto_recorder_trace (&level->recorder);
}

void
pto_level_trace_topology (const struct pto_level *level, struct pto_trace_topology *topology)
{
  *topology = (struct pto_trace_topology){ .n_schedulers = 1,
                                           .n_cores = level->n_children,
                                           .level = level->config.level,
                                           .n_workers = level->n_kind[PTO_CHILD_NEXT] };
  pto_recorder_tell_clock (&level->recorder, topology);
}

enum pto_status
pto_level_run (struct pto_level *level, bool record, bool (*cancelled) (void *data),
               void *cancelled_data, int (*orchestrate) (PTO2Runtime *rt, void *data), void *data,
               struct pto_level_stats *stats, struct pto_failure *failure,
               struct pto_report *report)
{
  struct pto_level_stats own_stats;
  struct pto_failure own_failure;
  enum pto_status status;
  uint64_t wall;
  int result;

  if (stats == NULL)
    stats = &own_stats;
  if (failure == NULL)
    failure = &own_failure;
  pthread_mutex_lock (&level->guest_lock);
  pto_exec_enter (level->exec);
  level->cancelled = cancelled;
  level->cancelled_data = cancelled_data;
  level->engine.cancelled = is_cancelled;
  level->engine.cancelled_data = level;
  status = choose_recording (level, record || param (level, PTO_PARAMETER_TRACE) != 0, report);
  if (status != PTO_OK)
    {
      memset (stats, 0, sizeof *stats);
      pto_failure_set (failure, (int32_t) status, NULL, "%s",
                       report != NULL ? report->message : "");
      goto out;
    }
  begin_lost (level);
  if (level->map != NULL)
    pto_shared_map_look_again (level->map);
  pto_pool_begin_run (level->pool);
  pto_engine_begin (&level->engine);
  pto_recorder_begin (&level->recorder, &level->engine);
  pto_store_release (&level->guest, (uint64_t) pthread_self ());
  wall = pto_wall_clock ();
  result = orchestrate (&level->runtime, data);
  if (result != 0)
    pto_engine_fail (&level->engine, PTO_STATUS_EXPLICIT, "the orchestration returned %d", result);
  if (pto_engine_has_failed (&level->engine))
    pto_pool_cancel (level->pool, level->engine.config.timeout_ns / FAILED_PART);
  status = pto_engine_end (&level->engine, report);
  pto_recorder_end (&level->recorder, &level->engine);
  wall = pto_wall_clock () - wall;
  pto_store_release (&level->guest, 0);
  gather (level, stats, wall);
  if (status != PTO_OK)
    pto_failure_set (failure, (int32_t) status, NULL, "%s", report != NULL ? report->message : "");
  else if (pto_pool_first_failure (level->pool)->task != PTO_TASK_NONE)
    status = report_task (level, stats, failure, report);
out:
  level->engine.cancelled = NULL;
  level->cancelled = NULL;
  pto_exec_leave (level->exec);
  pthread_mutex_unlock (&level->guest_lock);
  return status;
}

void
pto_level_cancel (struct pto_level *level)
{
  if (pto_engine_cancel (&level->engine))
    pto_pool_cancel (level->pool, CANCEL_NS);
}

/* --- inside an orchestration --- */

struct pto_level *
pto_level_of_runtime (PTO2Runtime *rt)
{
  return (struct pto_level *) ((char *) rt - offsetof (struct pto_level, runtime));
}

bool
pto_level_has_failed (PTO2Runtime *rt)
{
  return pto_engine_has_failed (&pto_level_of_runtime (rt)->engine);
}

void
pto_level_fail (PTO2Runtime *rt, enum pto_status status, const char *format, ...)
{
  char message[1500];
  va_list args;

  va_start (args, format);
  vsnprintf (message, sizeof message, format, args);
  va_end (args);
  pto_engine_fail (&pto_level_of_runtime (rt)->engine, status, "%s", message);
}

static void
begin_scope (PTO2Runtime *rt, const char *file, int32_t line)
{
  pto_engine_scope_begin (&pto_level_of_runtime (rt)->engine, file, line);
}

static void
end_scope (PTO2Runtime *rt)
{
  pto_engine_scope_end (&pto_level_of_runtime (rt)->engine);
}

static void
submit_kernel (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type, PTOParam *params,
               int32_t n_params)
{
  struct pto_level *level = pto_level_of_runtime (rt);

  pto_engine_fail (
      &level->engine, (enum pto_status) PTO_STATUS_NOT_SUPPORTED,
      "kernel %d was submitted to %s, which is of level %u: its tasks are run by workers, "
      "not by cores",
      kernel_id, level->config.path, level->config.level);
}

static void
ignore (PTO2Runtime *rt)
{
}

static PTO2Buffer *
new_buffer (PTO2Runtime *rt, uint64_t bytes, uint32_t *generation)
{
  return pto_engine_new_buffer (&pto_level_of_runtime (rt)->engine, bytes, generation);
}

static void
log_message (PTO2Runtime *rt, int32_t severity, const char *format, ...)
{
  char message[1024];
  va_list args;

  va_start (args, format);
  vsnprintf (message, sizeof message, format, args);
  va_end (args);
  if (severity <= PTO2_LOG_WARN)
    fprintf (stderr, "pto: %s: %s\n", severity == PTO2_LOG_ERROR ? "error" : "warning", message);
}

static enum pto_visibility
look_up (const struct pto_level *level, uint64_t address, uint64_t bytes, bool write)
{
  if (address - level->arena < level->arena_size
      && bytes <= level->arena_size - (address - level->arena))
    return PTO_VISIBLE;
  for (uint32_t i = 0; i < PTO_RINGS; i++)
    {
      const struct pto_circle *heap = &level->engine.rings[i].heap;
      uint64_t offset = address - (uint64_t) (uintptr_t) heap->base;

      if (offset < heap->size && bytes <= heap->size - offset)
        return PTO_VISIBLE;
    }
  return pto_shared_map_check (level->map, address, bytes, write);
}

static enum pto_status
refuse_address (const struct pto_level_task *task, uint32_t argument, uint64_t address,
                enum pto_visibility visibility, struct pto_report *report)
{
  const char *where = "no memory";
  const char *what = "a child process would not see it";

  if (visibility == PTO_VISIBLE_PRIVATE)
    {
      where = "private memory";
      what = "a child process would see a copy of it, and write into that";
    }
  else if (visibility == PTO_VISIBLE_TOO_LATE)
    where = "memory that was shared after init()";
  else if (visibility == PTO_VISIBLE_READ_ONLY)
    {
      where = "memory that is shared to be read";
      what = "a child process could not write there";
    }
  return pto_report_set (report, (enum pto_status) PTO_STATUS_NOT_SHARED,
                         "task of \"%s\": argument %u lies in %s (0x%" PRIx64
                         "): %s: use a buffer, alloc(), or memory that was shared before init()",
                         task->name, argument, where, address, what);
}

/* What the wire can not carry, or children not reach. */
static enum pto_status
check_tensor (const struct pto_level *level, const struct pto_level_task *task, uint32_t argument,
              const PTOParam *given, struct pto_report *report)
{
  const Tensor *tensor = &given->tensor;
  uint64_t size = pto_dtype_size (tensor->dtype);
  enum pto_visibility visibility;
  uint64_t address = tensor->buffer.addr;

  /* The engine has words for it. */
  if (tensor->status != PTO2_TENSOR_OK)
    return PTO_OK;
  if (!pto2_tensor_is_contiguous (tensor))
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           "task of \"%s\": argument %u is not contiguous: copy the part that is "
                           "meant, workers get tensors without strides",
                           task->name, argument);
  for (uint32_t d = 0; d < tensor->ndims; d++)
    if (tensor->shapes[d] > UINT32_MAX)
      return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                             "task of \"%s\": argument %u has %" PRIu64
                             " elements in dimension %u; at most %u go to a worker",
                             task->name, argument, tensor->shapes[d], d, UINT32_MAX);
  /* Of the rings, by the engine. */
  if (tensor->storage != NULL || !level->has_processes[task->kind]
      || (address == 0 && given->type == PTO_PARAM_OUTPUT))
    return PTO_OK;
  address += tensor->start_offset * size;
  visibility = look_up (level, address, pto2_tensor_numel (tensor) * size,
                        given->type != PTO_PARAM_INPUT && given->type != PTO_PARAM_NO_DEP);
  if (visibility == PTO_VISIBLE)
    return PTO_OK;
  return refuse_address (task, argument, address, visibility, report);
}

/* After every submit: what it made runnable runs here and now. */
static enum pto_status
after_submit (struct pto_level *level, struct pto_report *report)
{
  pto_exec_help (level->exec);
  if (!pto_engine_has_failed (&level->engine))
    {
      begin_lost (level);
      return PTO_OK;
    }
  pto_pool_cancel (level->pool, level->engine.config.timeout_ns / FAILED_PART);
  return pto_engine_tell (&level->engine, report);
}

enum pto_status
pto_level_submit (struct pto_level *level, uint32_t callable, const struct pto_level_task *task,
                  PTOParam *params, uint32_t n_params, struct pto_report *report)
{
  uint8_t extra[PTO_LEVEL_TASK_BYTES (sizeof (struct pto_call_config))
                + PTO_CHILDREN_MAX * sizeof (struct pto_member) + PTO_ARGS_MAX]
      __attribute__ ((aligned (8)));
  struct pto_level_task *copy = (struct pto_level_task *) extra;
  uint64_t largest = 0;
  uint32_t n_scalars = 0;
  uint32_t bytes;
  enum pto_status status;

  if (pto_engine_has_failed (&level->engine))
    {
      /* After a deadlock it goes on to count. */
      if (level->engine.deadlock.what != PTO_OK)
        pto_engine_submit (
            &level->engine,
            &(struct pto_submit){ .kernel = callable, .params = params, .n_params = n_params });
      return after_submit (level, report);
    }
  if (task->n_members < 1 || task->n_members > PTO_CHILDREN_MAX)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS, "a group of %u: it has 1 to %u members",
                           task->n_members, PTO_CHILDREN_MAX);
  for (uint32_t m = 0; m < task->n_members; m++)
    {
      const struct pto_member *member = &task->members[m];
      uint64_t own = pto_blob_size (member->n_tensors, member->n_scalars)
                     + (task->kinds != NULL ? member->n_scalars : 0);

      largest = own > largest ? own : largest;
    }
  status = pto_pool_check (level->pool, task, task->members, largest, report);
  if (status == PTO_OK && n_params > PTO_ARGS_MAX)
    status = pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                             "task of \"%s\": %u arguments, all members' together; a task takes at "
                             "most %u",
                             task->name, n_params, PTO_ARGS_MAX);
  for (uint32_t i = 0; i < n_params && status == PTO_OK; i++)
    if (params[i].type != PTO_PARAM_SCALAR)
      status = check_tensor (level, task, i, &params[i], report);
    else
      n_scalars++;
  if (status != PTO_OK)
    return status;
  memcpy (copy, task, offsetof (struct pto_level_task, config));
  copy->config_bytes = pto_wire_config_bytes (&task->config);
  pto_wire_config_copy (&copy->config, &task->config);
  copy->members = NULL;
  copy->behind = NULL;
  copy->called = false;
  bytes = (uint32_t) PTO_LEVEL_TASK_BYTES (copy->config_bytes);
  memcpy (extra + bytes, task->members, task->n_members * sizeof *task->members);
  bytes += (uint32_t) (task->n_members * sizeof *task->members);
  if (task->kinds != NULL)
    {
      memcpy (extra + bytes, task->kinds, n_scalars);
      bytes += n_scalars;
    }
  pto_engine_submit (&level->engine, &(struct pto_submit){ .kernel = callable,
                                                           .params = params,
                                                           .n_params = n_params,
                                                           .extra = extra,
                                                           .extra_bytes = bytes });
  return after_submit (level, report);
}

enum pto_status
pto_level_alloc (struct pto_level *level, Tensor *tensor, struct pto_report *report)
{
  PTOParam output;

  if (tensor->storage == NULL && tensor->status == PTO2_TENSOR_OK)
    tensor->storage
        = pto_engine_new_buffer (&level->engine, tensor->buffer.size, &tensor->generation);
  output = pto2_make_param (PTO_PARAM_OUTPUT, tensor);
  pto_engine_submit (
      &level->engine,
      &(struct pto_submit){ .kernel = PTO_KERNEL_NONE, .params = &output, .n_params = 1 });
  if (tensor->storage != NULL)
    tensor->buffer.addr = tensor->storage->addr;
  return after_submit (level, report);
}

/* --- any thread --- */

/* Begins children again where nobody else does: the caller runs, or no run is under way. */
static void
begin_lost_here (struct pto_level *level)
{
  if (pto_load_acquire (&level->n_lost) == 0)
    return;
  if (pto_load_acquire (&level->guest) == (uint64_t) pthread_self ())
    begin_lost (level);
  else if (pthread_mutex_trylock (&level->guest_lock) == 0)
    {
      pto_exec_enter (level->exec);
      begin_lost (level);
      pto_exec_leave (level->exec);
      pthread_mutex_unlock (&level->guest_lock);
    }
}

/* Waits for a control request; false: it was cancelled, and goes on without us. */
static bool
await (struct pto_level *level, struct pto_control *control, bool (*cancelled) (void *data),
       void *data)
{
  while (pto_word_get (&control->done) == 0)
    {
      begin_lost_here (level);
      if (cancelled != NULL && cancelled (data))
        {
          pto_store_release (&control->cancel, 1);
          pto_bell_ring (NULL, &level->hub->bell);
          return false;
        }
      pto_shared_park (NULL, &control->done, 0, SPIN_NS, pto_wall_clock () + CANCEL_POLL_NS);
    }
  return true;
}

/* Waits until the child has begun a life after the given one, or will have none (PHASE_GONE);
 * anything else: cancelled. */
static enum phase
await_life (struct pto_level *level, struct level_child *own, uint32_t life,
            bool (*cancelled) (void *data), void *data)
{
  for (;;)
    {
      enum phase phase;
      struct timespec until;

      begin_lost_here (level);
      if (cancelled != NULL && cancelled (data))
        return PHASE_LOST;
      pthread_mutex_lock (&level->process_lock);
      phase = (enum phase) pto_load_acquire (&own->phase);
      if (phase == PHASE_GONE || (phase == PHASE_UP && pto_load_acquire (&own->lives) != life))
        {
          pthread_mutex_unlock (&level->process_lock);
          return phase;
        }
      /* Whose turn it is to begin children may change without a word: a run ends. */
      clock_gettime (CLOCK_REALTIME, &until);
      until.tv_nsec += (long) CANCEL_POLL_NS;
      if (until.tv_nsec >= 1000000000)
        {
          until.tv_nsec -= 1000000000;
          until.tv_sec++;
        }
      pthread_cond_timedwait (&level->phase_changed, &level->process_lock, &until);
      pthread_mutex_unlock (&level->process_lock);
    }
}

static bool
is_target (const struct pto_level *level, uint32_t index, enum pto_child_kind kind, uint32_t serves)
{
  const struct pto_child *child = &level->pool_children[index];

  return child->kind == kind && (serves == 0 || child->level == serves);
}

static void
free_from_arena (void *body, uint64_t bytes)
{
  pto_arena_free ((uint64_t) (uintptr_t) body, bytes);
}

static void
free_from_heap (void *body, uint64_t bytes)
{
  free (body);
}

/* A body that no mailbox takes, to where children see it. */
static bool
place_body (const struct pto_level *level, struct pto_control *control, enum pto_child_kind kind,
            const void *body)
{
  if (control->bytes <= PTO_MAILBOX_BODY)
    return true;
  control->far = true;
  /* Thread children see everything. */
  if (level->has_processes[kind])
    {
      control->body = (void *) (uintptr_t) pto_arena_alloc (control->bytes);
      control->free_body = free_from_arena;
    }
  else
    {
      control->body = malloc (control->bytes);
      control->free_body = free_from_heap;
    }
  if (control->body == NULL)
    {
      control->free_body = NULL;
      return false;
    }
  memcpy (control->body, body, control->bytes);
  return true;
}

/* Sends it; NULL: there was no memory for it. */
static struct pto_control *
send_control (struct pto_level *level, enum pto_request request, enum pto_child_kind kind,
              uint32_t serves, const uint8_t *digest, const void *body, uint64_t bytes,
              struct pto_report *report)
{
  struct pto_control *control = pto_control_new (request, digest, body, bytes);

  if (control == NULL || !place_body (level, control, kind, body))
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY,
                      "no room for the %" PRIu64 " bytes of a registration: set arena to more",
                      bytes);
      if (control != NULL)
        pto_control_unref (control);
      return NULL;
    }
  for (uint32_t i = 0; i < level->n_children; i++)
    if (is_target (level, i, kind, serves))
      control->targets[i / 64] |= UINT64_C (1) << (i % 64);
  pto_pool_control (level->pool, control);
  return control;
}

static enum pto_status
report_refusal (const struct pto_level *level, const struct pto_control *control,
                struct pto_report *report)
{
  const char *path;

  if (control->refused == UINT32_MAX)
    return PTO_OK;
  path = path_of (level, control->refused);
  if (control->lost)
    return pto_report_set (report, (enum pto_status) PTO_STATUS_WORKER_LOST,
                           "%s %s while it registered it; nothing was registered", path,
                           control->failure.text);
  return pto_report_set (report, control->status,
                         "registration on %s refused: %s; nothing was registered", path,
                         control->failure.text);
}

enum pto_status
pto_level_control (struct pto_level *level, enum pto_request request, enum pto_child_kind kind,
                   uint32_t serves, const uint8_t *digest, const void *body, uint64_t bytes,
                   bool (*cancelled) (void *data), void *data, struct pto_report *report)
{
  struct pto_control *control
      = send_control (level, request, kind, serves, digest, body, bytes, report);
  enum pto_status status = PTO_OK;
  struct pto_report ignored = { 0 };

  if (control == NULL)
    return PTO_STATUS_NO_MEMORY;
  if (request == PTO_REQUEST_REGISTER)
    status = await (level, control, cancelled, data)
                 ? report_refusal (level, control, report)
                 : pto_report_set (report, PTO_STATUS_CANCELLED, "the registration was cancelled");
  else if (request == PTO_REQUEST_TRACE && !await (level, control, cancelled, data))
    status = PTO_STATUS_CANCELLED;
  pto_control_unref (control);
  if (request == PTO_REQUEST_TRACE)
    return status;
  if (status != PTO_OK)
    pto_level_control (level, PTO_REQUEST_UNREGISTER, kind, serves, digest, NULL, 0, NULL, NULL,
                       &ignored);
  return status;
}

enum pto_status
pto_level_renew (struct pto_level *level, enum pto_child_kind kind, uint32_t serves,
                 bool (*cancelled) (void *data), void *data, struct pto_report *report)
{
  struct pto_control *control = pto_control_new (PTO_REQUEST_CLOSE, NULL, NULL, 0);
  uint32_t lives[PTO_CHILDREN_MAX];
  bool unwanted;

  if (control == NULL)
    return pto_report_set (report, PTO_STATUS_NO_MEMORY, "no memory to begin children of %s again",
                           level->config.path);
  for (uint32_t i = 0; i < level->n_children; i++)
    if (is_target (level, i, kind, serves) && !level->children[i].config.thread
        && pto_load_acquire (&level->children[i].phase) != PHASE_GONE)
      {
        /* Before the request: a life that it does not reach comes after this one. */
        lives[i] = pto_load_acquire (&level->children[i].lives);
        control->targets[i / 64] |= UINT64_C (1) << (i % 64);
      }
    else
      lives[i] = UINT32_MAX;
  pto_pool_control (level->pool, control);
  unwanted = !await (level, control, cancelled, data);
  pto_control_unref (control);
  for (uint32_t i = 0; i < level->n_children && !unwanted; i++)
    if (lives[i] != UINT32_MAX)
      {
        enum phase phase = await_life (level, &level->children[i], lives[i], cancelled, data);

        if (phase == PHASE_GONE)
          return report_start_failure (level, i, report);
        unwanted = phase != PHASE_UP;
      }
  return unwanted ? pto_report_set (report, PTO_STATUS_CANCELLED, "the registration was cancelled")
                  : PTO_OK;
}

uint64_t
pto_level_progress (const struct pto_level *level)
{
  return pto_engine_completed (&level->engine) + pto_pool_beats (level->pool);
}

uint32_t
pto_level_n_children (const struct pto_level *level, enum pto_child_kind kind)
{
  return level->n_kind[kind];
}
