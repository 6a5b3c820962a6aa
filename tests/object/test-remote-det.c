/* test-remote-det.c: do remote workers give the right numbers, or the right error, whatever their
 * connections do and whoever dies?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The code of both ends as it is, with engine, scheduler and pool above, in one process and in
 * virtual time (det-world.h). A seed makes a graph of tasks that read and write overlapping parts
 * of a board, says how slow each connection is, what is cut, stands still or dies when, and who
 * runs next. Each task knows what it must read, and says so when it reads anything else; what
 * becomes of each is compared with what was done to it:
 *
 * - one that ended well ran once, and what it wrote is on the board;
 * - one that failed was to fail, or was lost with a child to which something had been done;
 * - one that never ran would have used what such a one should have written, or was cancelled;
 * - nobody of whom nothing is heard, or who has hung up, is given a task; nobody outlives the
 * lease; all ends, and nothing is left.
 *
 * In half of the seeds what is written is left where it was written as long as that can be, and is
 * on the board when the run has ended; or was lost with a child, and then somebody says so.
 *
 * In some seeds what is written arrives damaged. Then numbers mean nothing, and the rest still
 * holds.
 */
#include "../../pto/process/pool-private.h"
#include "../process/pool-test.h"
#include "det-ends.h"
#include "det-world.h"

#include "../../pto/core/progress.h"
#include "../../pto/core/run.h"
#include "../../pto/core/tensor_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C (1000000000)
#define REMOTES_MAX 4u
#define CHILDREN_MAX (REMOTES_MAX + 1) /* the last shares our memory */
#define WINDOW 64u
#define TASKS_MAX 96u
#define ARGS_MAX 4u
#define BOARD 768u /* elements */
/* And behind them, where there are large tensors: of more bytes than go in one message. */
#define LARGE 200000u
#define LIVES_MAX 512u
#define PAGE 4096u
#define TICK_NS (10 * MS)
#define PATROL_NS (500 * US)
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define SEEDS 1000u
#define assert_no_leaks() g_assert_cmpint (__lsan_do_recoverable_leak_check (), ==, 0)
#else
#define SEEDS 10000u
#define assert_no_leaks()
#endif
/* Seeds of as many kinds; to the first nothing is done. */
#define KINDS 8u
/* Nothing takes as long. */
#define TOO_LONG (300 * SECOND)

enum use
{
  USE_READ,
  USE_UPDATE, /* what is read is written */
  USE_WRITE   /* all of it, whatever was there */
};

/* What a task is to do there. */
enum plan
{
  PLAN_WELL,
  PLAN_FAIL,
  PLAN_CRASH, /* once */
};

struct arg
{
  enum use use;
  uint32_t first, n;
};

struct task
{
  uint32_t run;
  uint32_t n_args;
  struct arg args[ARGS_MAX];
  enum plan plan;
  uint32_t worker;
  uint64_t takes;
  uint64_t sum; /* of what it is to read */
  /* What became of it: where it ran, and for the pool. */
  uint32_t n_begun;
  uint32_t n_again; /* it was lost so often when it had begun, and is run once more */
  bool has_worked;
  bool is_over;
  bool has_failed;
  enum pto_failure_kind kind;
  bool may_be_lost; /* something was done to who had it */
};

/* A process that serves child's mailbox, or the far end of one. */
struct life
{
  uint32_t child;
  struct process *process;
  struct bridge *bridge; /* NULL: it is the local one */
  struct link *link;
  struct far *far;
  struct process *far_process;
  uint64_t frozen_at; /* 0: it is not */
  uint64_t thawed_at;
  bool is_touched; /* something was done from which it may die */
  bool is_found;   /* dead */
};

/* What a seed does. */
struct profile
{
  uint32_t n_remotes;
  uint32_t n_tasks;
  uint32_t faults; /* at most */
  bool cuts, freezes, kills, crashes;
  uint32_t fails; /* of so many tasks one; 0: none */
  bool cancels;
  bool idles; /* nothing is to be done for a while, and some tasks take long */
  bool large;
  bool damages; /* what is said is not what is heard: numbers mean nothing */
  uint32_t retries;
  uint64_t leaves; /* what has so many bytes is left there; 0: nothing is */
  struct ends_config ends;
  struct link_config link;
};

static struct
{
  uint32_t seed;
  struct pool_test own;
  struct pto_writes *writes;
  struct profile profile;
  enum pto_pace pace;
  struct life lives[LIVES_MAX];
  uint32_t n_lives;
  struct life *current[CHILDREN_MAX];
  struct task tasks[2 * TASKS_MAX];
  uint32_t n_tasks;
  uint32_t run;
  uint32_t first_of_run;
  bool is_cancelled;
  bool stops; /* who looks after things */
  bool closes;
  bool calms; /* nothing is done to anybody any more */
  uint64_t n_failed;
} test;

static uint64_t board[BOARD + LARGE];
static uint64_t model[BOARD + LARGE];
/* Elements that were left with somebody who is lost, and that nobody has written since. */
static bool gone[BOARD + LARGE];

/* What all seeds came to. */
static struct
{
  uint64_t tasks, failed, lost, again, never, lives, faults, cancelled, silences, left, gone;
} total;

#define fail_seed(...)                                                                             \
  G_STMT_START                                                                                     \
  {                                                                                                \
    g_autofree char *text_ = g_strdup_printf (__VA_ARGS__);                                        \
    g_error ("seed %u, at %" G_GUINT64_FORMAT " us: %s (%s)", test.seed, world_now () / US, text_, \
             world_last_line ());                                                                  \
  }                                                                                                \
  G_STMT_END

/* --- what a task does --- */

static uint64_t
mix (uint64_t a, uint64_t b)
{
  uint64_t z = (a ^ (b + UINT64_C (0x9e3779b97f4a7c15) + (a << 6) + (a >> 2)))
               * UINT64_C (0xff51afd7ed558ccd);

  return z ^ (z >> 32);
}

/* Of all that it reads; at: where each argument is. */
static uint64_t
sum_up (uint32_t number, uint64_t *const at[ARGS_MAX])
{
  const struct task *task = &test.tasks[number];
  uint64_t sum = mix (number, test.seed);

  for (uint32_t a = 0; a < task->n_args; a++)
    for (uint32_t i = 0; task->args[a].use != USE_WRITE && i < task->args[a].n; i++)
      sum = mix (sum, at[a][i]);
  return sum;
}

static void
write_all (uint32_t number, uint64_t sum, uint64_t *const at[ARGS_MAX])
{
  const struct task *task = &test.tasks[number];

  for (uint32_t a = 0; a < task->n_args; a++)
    for (uint32_t i = 0; task->args[a].use != USE_READ && i < task->args[a].n; i++)
      at[a][i] = mix (sum, a * (BOARD + LARGE) + i);
}

/* Whatever it is, its memory is there. */
static uint32_t
run_anything (const struct pto_call *call, struct pto_failure *failure)
{
  uint64_t sum = 0;

  world_step (world_random (200000));
  for (int32_t i = 0; i < call->args.tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &call->args.tensors[i];
      uint64_t bytes = (uint64_t) pto_dtype_size ((DataType) tensor->dtype);
      uint8_t *data = (uint8_t *) (uintptr_t) tensor->data;

      for (uint32_t d = 0; d < tensor->ndims; d++)
        bytes *= tensor->shapes[d];
      for (uint64_t b = 0; b < bytes; b++)
        if ((tensor->access & PTO_WIRE_WRITE) != 0)
          data[b] = (uint8_t) b;
        else
          sum += data[b];
    }
  if (sum % 16 != 1)
    return 0;
  pto_failure_set (failure, PTO_STATUS_TASK_FAILED, NULL, "planned");
  return PTO_STATUS_TASK_FAILED;
}

/* Where it runs. */
static uint32_t
run_task (struct life *life, const struct pto_call *call, struct pto_failure *failure)
{
  uint64_t *at[ARGS_MAX];
  uint32_t number;
  struct task *task;

  if (test.profile.damages)
    return run_anything (call, failure);
  if (call->args.scalar_count != 1 || call->args.scalars[0] >= test.n_tasks)
    fail_seed ("a task that is none");
  number = (uint32_t) call->args.scalars[0];
  task = &test.tasks[number];
  if ((uint32_t) call->args.tensor_count != task->n_args)
    fail_seed ("task %u has %d arguments", number, call->args.tensor_count);
  for (uint32_t a = 0; a < task->n_args; a++)
    {
      if (call->args.tensors[a].shapes[0] != task->args[a].n)
        fail_seed ("argument %u of task %u has %u elements", a, number,
                   call->args.tensors[a].shapes[0]);
      at[a] = (uint64_t *) (uintptr_t) call->args.tensors[a].data;
    }
  if (task->n_begun++ > task->n_again)
    fail_seed ("task %u is run twice", number);
  if (sum_up (number, at) != task->sum)
    fail_seed ("task %u reads what it should not", number);
  for (uint64_t left = task->takes; left > 0;)
    {
      uint64_t some = 1 + world_random (300000);

      some = MIN (some, left);
      world_step (some);
      left -= some;
      if (call->mailbox != NULL)
        pto_call_beat (call);
      if (pto_call_is_cancelled (call))
        {
          pto_failure_set (failure, PTO_STATUS_CANCELLED, NULL, "cancelled");
          return PTO_STATUS_CANCELLED;
        }
    }
  if (sum_up (number, at) != task->sum)
    fail_seed ("what task %u reads is written meanwhile", number);
  if (task->plan == PLAN_CRASH)
    {
      life->is_touched = true;
      process_kill (process_current ());
      world_step (0);
    }
  if (task->plan == PLAN_FAIL)
    {
      /* Half of it. */
      for (uint32_t a = 0; a < task->n_args; a++)
        for (uint32_t i = 0; task->args[a].use != USE_READ && i < task->args[a].n; i += 2)
          at[a][i] = number;
      pto_failure_set (failure, PTO_STATUS_TASK_FAILED, NULL, "planned %u", number);
      return PTO_STATUS_TASK_FAILED;
    }
  write_all (number, task->sum, at);
  task->has_worked = true;
  return 0;
}

static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  if (call->request == PTO_REQUEST_TASK)
    return run_task (data, call, failure);
  world_step (world_random (200000));
  return 0;
}

/* --- lives --- */

static struct life *
add_life (uint32_t child)
{
  struct life *life = &test.lives[test.n_lives];

  if (++test.n_lives == LIVES_MAX)
    fail_seed ("it does not come to an end");
  total.lives++;
  *life = (struct life){ .child = child, .is_touched = test.profile.damages };
  test.current[child] = life;
  return life;
}

static void
live (void *data)
{
  struct life *life = data;
  struct pto_child *child = &test.own.children[life->child];
  struct pto_server server = { .serve = serve, .data = life };

  if (life->bridge != NULL)
    bridge_get_server (life->bridge, &server);
  server.probe = NULL;
  pto_mailbox_serve (test.own.exec, pto_mailbox_of (&child->link), test.own.hub, life->child, false,
                     &server);
}

static void
begin_life (uint32_t child)
{
  struct life *life = add_life (child);

  if (child < test.profile.n_remotes)
    life->bridge = bridge_new (child, test.writes);
  life->process = process_new (child < test.profile.n_remotes ? "bridge" : "local", live, life);
}

struct bridge *
test_get_bridge (void)
{
  return ((struct life *) process_data (process_current ()))->bridge;
}

bool
test_launch (int *near_end, int *pid)
{
  struct life *life = process_data (process_current ());
  struct link_config config = test.profile.link;

  *pid = 0;
  if (test.profile.kills && !test.calms && world_chance (20))
    {
      life->is_touched = true;
      return false;
    }
  if (test.profile.cuts && !test.calms && world_chance (4))
    {
      config.cut_after = world_random (20000);
      life->is_touched = true;
    }
  life->far = far_new (serve, life);
  life->far_process = process_new ("far", far_main, life->far);
  life->link = link_new (&config, life->process, life->far_process, near_end);
  if (world_chance (2))
    *pid = process_pid (life->far_process);
  return true;
}

static void
free_life (struct life *life)
{
  if (life->bridge != NULL)
    bridge_free (life->bridge);
  if (life->far != NULL)
    {
      far_free (life->far, life->far_process);
      process_free (life->far_process);
    }
  process_free (life->process);
  if (life->link != NULL)
    link_free (life->link);
}

/* --- children, to the pool --- */

static void
describe (const struct pto_child *child, char *text, size_t size, char *words, size_t words_size)
{
  snprintf (text, size, "died");
  if (words != NULL)
    snprintf (words, words_size, "ouch");
}

static void
kill_child (struct pto_child *child, const char *why)
{
  struct life *life = test.current[child->index];

  if (!life->is_touched && !test.is_cancelled)
    fail_seed ("child %u is killed, to which nothing was done: %s", child->index, why);
  life->is_touched = true;
  process_kill (life->process);
}

static void
refused (struct pto_child *child, const struct pto_failure *failure)
{
  if (!test.current[child->index]->is_touched)
    fail_seed ("child %u does not start: %s", child->index, failure->text);
}

static void
changed (struct pto_child *child)
{
}

static bool
begin (struct pto_child *child)
{
  begin_life (child->index);
  return true;
}

static const struct pto_child_ops child_ops = { .describe = describe,
                                                .kill = kill_child,
                                                .refused = refused,
                                                .changed = changed,
                                                .begin = begin };

static void
set_pace (void *data, enum pto_pace pace)
{
  test.pace = pace;
}

/* What the pool says of a task's end, which is final. */

static struct task *
task_of (const struct pto_slot *slot)
{
  const struct pto_level_task *task = pto_payload_extra (slot->payload);

  return &test.tasks[slot->payload->args[task->n_tensors]];
}

void __real_pto_pool_end_writing (struct pto_pool *pool, const struct pto_station *station,
                                  const struct pto_slot *slot, bool failed);
void __wrap_pto_pool_end_writing (struct pto_pool *pool, const struct pto_station *station,
                                  const struct pto_slot *slot, bool failed);
void
__wrap_pto_pool_end_writing (struct pto_pool *pool, const struct pto_station *station,
                             const struct pto_slot *slot, bool failed)
{
  struct task *task = task_of (slot);

  /* What it has left may be lost as it comes here. */
  if (task->is_over && !(failed && test.profile.leaves > 0))
    fail_seed ("task %u ends twice", (uint32_t) (task - test.tasks));
  task->is_over = true;
  for (uint32_t a = 0; !failed && a < task->n_args; a++)
    if (task->args[a].use != USE_READ)
      memset (&gone[task->args[a].first], 0, task->args[a].n * sizeof gone[0]);
  if (!failed && !task->has_worked && !test.profile.damages)
    fail_seed ("task %u is said to have ended well", (uint32_t) (task - test.tasks));
  if (failed != task->has_failed)
    fail_seed ("task %u is said to have failed in one place only", (uint32_t) (task - test.tasks));
  __real_pto_pool_end_writing (pool, station, slot, failed);
}

static bool
is_ever_touched (uint32_t child)
{
  for (uint32_t i = 0; i < test.n_lives; i++)
    if (test.lives[i].child == child && test.lives[i].is_touched)
      return true;
  return false;
}

void __real_pto_left_lose (struct pto_left *left, uint32_t child);
void __wrap_pto_left_lose (struct pto_left *left, uint32_t child);
void
__wrap_pto_left_lose (struct pto_left *left, uint32_t child)
{
  uint32_t n = atomic_load (&left->n);

  for (uint32_t i = 0; i < n; i++)
    {
      const struct pto_left_span *span = &left->spans[i];

      if (span->child != child)
        continue;
      if (!is_ever_touched (child) && !test.is_cancelled)
        fail_seed ("what child %u has is lost, and nothing was done to it", child);
      for (uint64_t at = span->begin; at < span->end; at += sizeof board[0])
        gone[(uint64_t *) (uintptr_t) at - board] = true;
      total.gone++;
    }
  __real_pto_left_lose (left, child);
}

bool __real_pto_left_add (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t child);
bool __wrap_pto_left_add (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t child);
bool
__wrap_pto_left_add (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t child)
{
  total.left++;
  return __real_pto_left_add (left, begin, end, child);
}

void __real_pto_pool_note_failure (struct pto_pool *pool, struct pto_slot *slot,
                                   enum pto_failure_kind kind, const struct pto_child *child);
void __wrap_pto_pool_note_failure (struct pto_pool *pool, struct pto_slot *slot,
                                   enum pto_failure_kind kind, const struct pto_child *child);
void
__wrap_pto_pool_note_failure (struct pto_pool *pool, struct pto_slot *slot,
                              enum pto_failure_kind kind, const struct pto_child *child)
{
  struct task *task = task_of (slot);
  struct life *life = test.current[child->index];

  task->has_failed = true;
  task->kind = kind;
  task->may_be_lost = kind == PTO_FAILURE_LEFT ? is_ever_touched (child->index) : life->is_touched;
  test.n_failed++;
  __real_pto_pool_note_failure (pool, slot, kind, child);
}

void __real_pto_call_set_silent (const struct pto_call *call, bool silent);
void __wrap_pto_call_set_silent (const struct pto_call *call, bool silent);
void
__wrap_pto_call_set_silent (const struct pto_call *call, bool silent)
{
  if ((atomic_load (&call->mailbox->silent) != 0) == silent)
    fail_seed ("that nothing is heard, or something is, is said twice");
  __real_pto_call_set_silent (call, silent);
}

bool __real_pto_pool_runs_again (struct pto_pool *pool, struct pto_slot *slot,
                                 const struct pto_child *child, bool has_begun);
bool __wrap_pto_pool_runs_again (struct pto_pool *pool, struct pto_slot *slot,
                                 const struct pto_child *child, bool has_begun);
bool
__wrap_pto_pool_runs_again (struct pto_pool *pool, struct pto_slot *slot,
                            const struct pto_child *child, bool has_begun)
{
  struct task *task = task_of (slot);
  bool is_again;

  if (!has_begun && task->n_begun > task->n_again)
    fail_seed ("a task that has begun there is said not to have");
  is_again = __real_pto_pool_runs_again (pool, slot, child, has_begun);
  task->n_again += is_again && has_begun;
  total.again += is_again;
  if (is_again)
    task->has_worked = false;
  return is_again;
}

void __real_pto_link_post (struct pto_exec *exec, struct pto_link *link,
                           const struct pto_letter *letter);
void __wrap_pto_link_post (struct pto_exec *exec, struct pto_link *link,
                           const struct pto_letter *letter);
void
__wrap_pto_link_post (struct pto_exec *exec, struct pto_link *link, const struct pto_letter *letter)
{
  const struct ends_config *ends = &test.profile.ends;
  bool is_task = letter->request == PTO_REQUEST_TASK || letter->request == PTO_REQUEST_TASKS;

  if (is_task && pto_link_is_silent (link))
    fail_seed ("who is suspect is given a task");
  for (uint32_t c = 0; is_task && c < test.profile.n_remotes; c++)
    {
      const struct life *life = test.current[c];

      /* Two looks until it is asked, and two until that was too long ago. */
      if (&test.own.children[c].link == link && life->frozen_at != 0
          && world_now () - life->frozen_at > 2 * (ends->ping + ends->suspect) * MS)
        fail_seed ("who was silent for long is given a task");
      if (&test.own.children[c].link == link && !process_is_dead (life->process)
          && link_has_hung_up (life->link, 5 * MS) && world_now () - life->thawed_at > 5 * MS)
        fail_seed ("who speaks for nobody any more is given a task");
    }
  __real_pto_link_post (exec, link, letter);
}

/* --- who looks after things --- */

static void
tick (void *data)
{
  while (!test.stops)
    {
      world_sleep (TICK_NS);
      if (test.pace != PTO_PACE_IDLE)
        pto_pool_tick (test.own.pool, TICK_NS);
    }
}

/* Finds the dead, a little later. */
static void
patrol (void *data)
{
  while (!test.stops)
    {
      world_sleep (PATROL_NS);
      for (uint32_t c = 0; c < test.own.n_children; c++)
        {
          struct life *life = test.current[c];

          if (life == NULL || life->is_found || !process_is_over (life->process))
            continue;
          life->is_found = true;
          pto_child_found_dead (&test.own.children[c]);
          pto_hub_mark (test.own.exec, test.own.hub, c);
        }
    }
}

/* So much longer than the lease nobody is there any more: what is under way there has been given a
 * moment to end. */
#define GRACE (300 * MS)

/* Less than that. */
static uint64_t
random_time (uint64_t ns)
{
  return world_random ((uint32_t) (ns / US)) * US + world_random ((uint32_t) US);
}

/* Short of what makes anybody suspect, short of the lease, beyond it, or until both must have given
 * up. Who has just stood still may not have been heard of since. */
static void
freeze (struct life *life)
{
  uint64_t suspect = test.profile.ends.suspect * MS;
  uint64_t lease = test.profile.ends.lease * MS;
  uint64_t time[] = { 1 + random_time (suspect), suspect + random_time (lease / 3),
                      lease / 2 + random_time (2 * lease), 3 * lease + GRACE };
  uint32_t kind = world_random (G_N_ELEMENTS (time));
  enum pto_life before = pto_child_life (&test.own.children[life->child]);
  /* Begin and end have limits of their own. */
  bool works = before == PTO_LIFE_IDLE || before == PTO_LIFE_BUSY;

  if (kind >= 2 || (life->thawed_at > 0 && world_now () - life->thawed_at < lease))
    life->is_touched = true;
  link_freeze (life->link, true);
  life->frozen_at = world_now ();
  world_sleep (time[kind]);
  if (kind == 3 && works && !test.closes
      && !(process_is_dead (life->process) && process_is_dead (life->far_process)))
    fail_seed ("somebody outlives the lease");
  link_freeze (life->link, false);
  life->frozen_at = 0;
  life->thawed_at = world_now ();
}

static void
do_something (struct life *life)
{
  bool is_far = life->link != NULL && !link_is_over (life->link);

  switch (world_random (4))
    {
    case 0:
      if (test.profile.cuts && is_far)
        {
          life->is_touched = true;
          total.faults++;
          link_cut (life->link);
        }
      break;
    case 1:
      if (test.profile.freezes && is_far)
        {
          total.faults++;
          freeze (life);
        }
      break;
    case 2:
      if (test.profile.kills && is_far)
        {
          life->is_touched = true;
          total.faults++;
          process_kill (life->far_process);
        }
      break;
    default:
      if (test.profile.kills)
        {
          life->is_touched = true;
          total.faults++;
          process_kill (life->process);
        }
    }
}

static void
harm (void *data)
{
  for (uint32_t i = 0; i < test.profile.faults && !test.calms; i++)
    {
      struct life *life;

      world_sleep (world_random ((uint32_t) (8 * MS)));
      life = test.current[world_random (test.own.n_children)];
      if (!test.calms && life != NULL && !process_is_dead (life->process))
        do_something (life);
    }
}

/* --- the program --- */

static void
make_task (struct task *task)
{
  static const enum use uses[] = { USE_READ, USE_READ, USE_UPDATE, USE_WRITE };
  uint32_t n_starts = 12;

  *task = (struct task){ .run = test.run,
                         .n_args = 1 + world_random (ARGS_MAX),
                         .worker = PTO_WORKER_ANY };
  for (uint32_t a = 0; a < task->n_args; a++)
    {
      struct arg *arg = &task->args[a];

      arg->use = uses[world_random (G_N_ELEMENTS (uses))];
      /* Mostly whole parts, so that copies are used again; some overlap. */
      arg->first = world_random (n_starts) * (BOARD / n_starts);
      arg->n = BOARD / n_starts;
      if (world_chance (4))
        {
          arg->first += world_random (arg->n);
          arg->n = 1 + world_random (MIN (2 * arg->n, BOARD - arg->first));
        }
    }
  if (test.profile.large && world_chance (3))
    {
      struct arg *arg = &task->args[0];

      arg->first = BOARD + (world_chance (2) ? 0 : world_random (LARGE / 4));
      arg->n = LARGE - (world_chance (2) ? LARGE / 4 : world_random (LARGE / 2))
               - (arg->first - BOARD);
    }
  if (test.profile.idles && world_chance (24))
    task->takes = world_random ((uint32_t) (300 * MS));
  else
    task->takes = world_chance (12) ? world_random ((uint32_t) (15 * MS)) : world_random (200000);
  if (test.profile.fails > 0 && world_chance (test.profile.fails))
    task->plan = PLAN_FAIL;
  else if (test.profile.crashes && world_chance (24))
    task->plan = PLAN_CRASH;
  /* What is read by those who name where it was written, can be left there. */
  if (test.profile.leaves > 0 && !world_chance (4))
    task->worker = world_chance (3) ? 1 : 0;
  else if (world_chance (4))
    task->worker = world_random (test.own.n_children);
}

static void
submit (void)
{
  static const uint8_t digest[PTO_DIGEST_BYTES];
  static const PTOParamType types[]
      = { PTO_PARAM_INPUT, PTO_PARAM_INOUT, PTO_PARAM_OUTPUT_EXISTING };
  static const uint8_t access[] = { PTO_WIRE_READ, PTO_WIRE_READ | PTO_WIRE_WRITE, PTO_WIRE_WRITE };
  uint8_t extra[PTO_LEVEL_TASK_BYTES (sizeof (struct pto_call_config)) + sizeof (struct pto_member)
                + ARGS_MAX] __attribute__ ((aligned (8)));
  struct pto_level_task *to = (struct pto_level_task *) extra;
  uint32_t number = test.n_tasks++;
  struct task *task = &test.tasks[number];
  struct pto_member *member;
  struct pto_need need;
  struct pto_wish wish = { .cohort = PTO_COHORT_NONE, .n_members = 1, .members = &need };
  struct pto_report report = { 0 };
  PTOParam params[ARGS_MAX + 1];
  uint64_t *at[ARGS_MAX];
  uint8_t *bytes;

  make_task (task);
  memset (extra, 0, sizeof extra);
  to->digest = digest;
  to->name = "task";
  to->n_members = 1;
  to->n_tensors = task->n_args;
  to->idempotent = world_chance (2);
  to->kind = PTO_CHILD_SUB;
  to->config_bytes = offsetof (struct pto_call_config, output_prefix) + 1;
  member = (struct pto_member *) (extra + PTO_LEVEL_TASK_BYTES (to->config_bytes));
  *member = (struct pto_member){ .n_tensors = (uint16_t) task->n_args,
                                 .n_scalars = 1,
                                 .worker = task->worker };
  bytes = (uint8_t *) (member + 1);
  for (uint32_t a = 0; a < task->n_args; a++)
    {
      const struct arg *arg = &task->args[a];
      Tensor tensor
          = make_tensor_external (&board[arg->first], (uint64_t[]){ arg->n }, 1, PTO_DTYPE_UINT64);

      params[a] = pto2_make_param (types[arg->use], &tensor);
      bytes[a] = access[arg->use];
      at[a] = &model[arg->first];
    }
  params[task->n_args] = make_scalar_param (number);
  /* As if all went well, one after the other. */
  task->sum = sum_up (number, at);
  write_all (number, task->sum, at);
  g_assert_cmpint (pto_pool_place (test.own.pool, to, member,
                                   pto_blob_size ((int32_t) task->n_args, 1), 0, &need, &report),
                   ==, PTO_OK);
  pto_engine_submit (test.own.engine,
                     &(struct pto_submit){ .queue = need.queue,
                                           .params = params,
                                           .n_params = task->n_args + 1,
                                           .extra = extra,
                                           .extra_bytes = sizeof extra,
                                           .wish = task->worker == PTO_WORKER_ANY ? NULL : &wish });
}

static void
wait_a_moment (uint64_t ns)
{
  world_sleep (ns);
  pto_pool_begin_lost (test.own.pool);
  if (world_now () > TOO_LONG)
    fail_seed ("it hangs: %" G_GUINT64_FORMAT " of %u tasks are done",
               pto_engine_completed (test.own.engine), test.n_tasks - test.first_of_run);
}

static bool
overlap (const struct arg *a, const struct arg *b)
{
  return a->first < b->first + b->n && b->first < a->first + a->n;
}

/* Does it come after somebody who has not ended well? */
static bool
is_poisoned (uint32_t number)
{
  const struct task *task = &test.tasks[number];

  for (uint32_t other = test.first_of_run; other < number; other++)
    {
      const struct task *before = &test.tasks[other];

      if (before->is_over && !before->has_failed)
        continue;
      for (uint32_t a = 0; a < task->n_args; a++)
        for (uint32_t b = 0; b < before->n_args; b++)
          if ((before->args[b].use != USE_READ || task->args[a].use != USE_READ)
              && overlap (&task->args[a], &before->args[b]))
            return true;
    }
  return false;
}

static void
check_task (uint32_t number)
{
  const struct task *task = &test.tasks[number];

  total.tasks++;
  if (!task->is_over && !task->has_failed)
    {
      total.never++;
      if (!test.is_cancelled && !is_poisoned (number))
        fail_seed ("task %u was never run", number);
      return;
    }
  if (!task->has_failed)
    {
      if ((task->n_begun == 0 || !task->has_worked) && !test.profile.damages)
        fail_seed ("task %u ended well without having been run", number);
      return;
    }
  total.failed++;
  switch (task->kind)
    {
    case PTO_FAILURE_ANSWERED:
      if (task->plan != PLAN_FAIL && !test.is_cancelled && !test.profile.damages)
        fail_seed ("task %u fails, and was not to", number);
      break;
    case PTO_FAILURE_LOST:
    case PTO_FAILURE_LOST_BEFORE:
      total.lost += !test.is_cancelled;
      if (!task->may_be_lost && !test.is_cancelled)
        fail_seed ("task %u is lost with a child to which nothing was done", number);
      break;
    case PTO_FAILURE_LEFT:
      if (test.profile.leaves == 0 || (!task->may_be_lost && !test.is_cancelled))
        fail_seed ("task %u needs what is said to be lost", number);
      break;
    case PTO_FAILURE_NO_WORKER:
      if (!task->may_be_lost && !test.is_cancelled)
        fail_seed ("task %u has no worker", number);
    }
}

/* Who wrote last, if it ended well, is who is read. */
static void
check_board (void)
{
  static uint32_t last[BOARD + LARGE];
  uint32_t n = test.profile.large ? BOARD + LARGE : BOARD;

  memset (last, 0xff, n * sizeof last[0]);
  for (uint32_t number = test.first_of_run; number < test.n_tasks; number++)
    {
      const struct task *task = &test.tasks[number];

      for (uint32_t a = 0; a < task->n_args; a++)
        for (uint32_t i = 0; task->args[a].use != USE_READ && i < task->args[a].n; i++)
          last[task->args[a].first + i] = number;
    }
  for (uint32_t i = 0; i < n; i++)
    {
      const struct task *task = last[i] != UINT32_MAX ? &test.tasks[last[i]] : NULL;

      if (gone[i] || (task != NULL && (!task->is_over || task->has_failed)))
        continue;
      if (board[i] != model[i])
        fail_seed ("element %u is not what task %u has written", i, last[i]);
    }
}

static bool
go_on_waiting (void *data)
{
  pto_pool_begin_lost (test.own.pool);
  if (world_now () > TOO_LONG)
    fail_seed ("what is left does not come");
  return false;
}

/* What is left comes, or is lost, and then somebody has said so. */
static void
bring_back (void)
{
  struct pto_report report = { 0 };
  enum pto_status status = pto_pool_bring_back (test.own.pool, go_on_waiting, NULL, &report);
  bool is_lost = false;

  for (uint32_t i = 0; i < BOARD + LARGE; i++)
    is_lost = is_lost || gone[i];
  if (status == PTO_OK && is_lost && test.n_failed == 0)
    fail_seed ("nobody says that something was lost");
  if (status != PTO_OK && (!is_lost || status != (enum pto_status) PTO_STATUS_WORKER_LOST))
    fail_seed ("what was left does not come: %s", report.message);
  if (!pto_left_is_empty (&test.own.pool->left))
    fail_seed ("something is left");
}

static void
run (void)
{
  uint32_t n = test.profile.n_tasks / 2 + world_random (test.profile.n_tasks / 2);
  uint32_t cancel_at = test.profile.cancels && world_chance (2) ? world_random (n) : UINT32_MAX;
  struct pto_report report = { 0 };
  const struct pto_first_failure *first = pto_pool_first_failure (test.own.pool);
  enum pto_status status;

  test.run++;
  test.first_of_run = test.n_tasks;
  test.n_failed = 0;
  test.is_cancelled = false;
  /* The program writes its arrays between two runs, and nobody is told. */
  for (uint32_t i = 0; i < (test.profile.large ? BOARD + LARGE : BOARD); i++)
    model[i] = board[i] = world_chance (3) ? world_random (1000000) : board[i];
  memset (gone, 0, sizeof gone);
  pto_pool_begin_lost (test.own.pool);
  pto_pool_begin_run (test.own.pool);
  pto_writes_add_all (test.writes);
  pto_engine_begin (test.own.engine);
  for (uint32_t i = 0; i < n; i++)
    {
      submit ();
      while (world_chance (3))
        wait_a_moment (world_random (400000));
      if (test.profile.idles && world_chance (12))
        for (uint32_t ms = world_random (500); ms > 0; ms--)
          wait_a_moment (MS);
      if (i == cancel_at)
        {
          total.cancelled++;
          test.is_cancelled = true;
          pto_engine_cancel (test.own.engine);
          pto_pool_cancel (test.own.pool, 20 * MS + world_random ((uint32_t) (20 * MS)));
          n = i + 1;
        }
    }
  while (pto_engine_completed (test.own.engine) < n)
    wait_a_moment (100 * US);
  status = pto_engine_end (test.own.engine, &report);
  if (status != (test.is_cancelled ? (enum pto_status) PTO_STATUS_CANCELLED : PTO_OK))
    fail_seed ("the run comes to %d: %s", (int) status, report.message);
  if (test.is_cancelled)
    pto_pool_forget_left (test.own.pool, 0, UINT64_MAX);
  else
    bring_back ();
  for (uint32_t number = test.first_of_run; number < test.n_tasks; number++)
    check_task (number);
  if (!test.profile.damages && !(test.is_cancelled && test.profile.leaves > 0))
    check_board ();
  if (!test.is_cancelled && first->roots != test.n_failed)
    fail_seed ("%" G_GUINT64_FORMAT " tasks are said to have failed, not %" G_GUINT64_FORMAT,
               first->roots, test.n_failed);
  if (first->kind == PTO_FAILURE_ANSWERED && first->roots > 0 && !test.profile.damages
      && !g_str_has_prefix (first->failure.text, "planned "))
    fail_seed ("the first failure is \"%s\"", first->failure.text);
}

/* --- a seed --- */

static void
choose_profile (void)
{
  struct profile *profile = &test.profile;
  uint32_t kind = test.seed % KINDS;

  *profile = (struct profile){
    .n_remotes = 2 + world_random (REMOTES_MAX - 1),
    .n_tasks = 12 + world_random (24),
    .fails = world_chance (2) ? 12 : 0,
    .cancels = world_chance (6),
    .ends = { .ping = 10, .suspect = 30, .lease = 120, .arena = (6 + world_random (20)) * PAGE },
    .link = { .delay = world_chance (4) ? world_random ((uint32_t) (3 * MS)) : world_random (50000),
              .jitter = world_random (world_chance (2) ? (uint32_t) MS : 20000),
              .capacity = 8192 + world_random (60000),
              .cut_after = UINT64_MAX },
  };
  /* Messages that come late, many at once, where there is hardly room for a task: what was recalled
   * may be refused. Who does not hear of a cancel in time is killed, which is another kind. */
  if (kind == 0 && world_chance (2))
    {
      profile->n_remotes = 2;
      profile->cancels = false;
      profile->ends = (struct ends_config){
        .ping = 100, .suspect = 300, .lease = 1200, .arena = (6 + world_random (3)) * PAGE
      };
      profile->link.jitter = (uint32_t) (40 * MS);
    }
  /* Three leases are more than 32 bits hold. */
  if (kind == 3 && world_chance (4))
    profile->ends = (struct ends_config){
      .ping = 100, .suspect = 300, .lease = 1500, .arena = profile->ends.arena
    };
  profile->cuts = kind == 1 || kind >= 5;
  profile->freezes = kind == 2 || kind == 3 || kind >= 6;
  profile->kills = kind == 4 || kind >= 5;
  profile->crashes = kind == 7;
  profile->faults = kind == 0 ? 0 : 1 + world_random (5);
  profile->retries = world_random (3);
  profile->leaves = world_chance (2) ? sizeof board[0] * (1 + world_random (BOARD / 8)) : 0;
  /* Room for a task, and not for all that is left. */
  if (profile->leaves > 0 && world_chance (3))
    profile->ends.arena = (5 + world_random (2)) * PAGE;
  profile->idles = world_chance (6);
  profile->damages = kind != 0 && world_chance (8);
  if (world_chance (64))
    {
      profile->large = true;
      profile->ends.arena += 4 * 2 * LARGE * sizeof board[0];
      profile->link.capacity += 256 << 10;
    }
}

static void
spawn (const char *name, void (*fn) (void *), void *data)
{
  char error[256] = "";

  g_assert_cmpint (pto_exec_spawn (test.own.exec, 0, name, fn, data, error, sizeof error), ==, 0);
}

/* As a level comes up. */
static void
start (void)
{
  pto_exec_enter (test.own.exec);
  spawn ("scheduler", pto_scheduler_main, test.own.scheduler);
  spawn ("pump", pto_pool_pump, test.own.pool);
  spawn ("tick", tick, NULL);
  spawn ("patrol", patrol, NULL);
  test.calms = true;
  for (uint32_t c = 0; c < test.own.n_children; c++)
    begin_life (c);
  while (pto_pool_starting (test.own.pool) > 0)
    wait_a_moment (100 * US);
  g_assert_null (pto_pool_start_failed (test.own.pool));
  test.calms = false;
  if (test.profile.damages)
    world_damage (20 + world_random (200));
  spawn ("harm", harm, NULL);
}

static void
close_children (void)
{
  struct pto_control *control = pto_control_new (PTO_REQUEST_CLOSE, NULL, NULL, 0);
  bool is_left = true;

  memset (control->targets, 0xff, sizeof control->targets);
  control->last = true;
  test.closes = true;
  test.is_cancelled = true;
  pto_pool_control (test.own.pool, control);
  while (is_left || pto_word_get (&control->done) == 0)
    {
      world_sleep (100 * US);
      is_left = false;
      for (uint32_t c = 0; c < test.own.n_children; c++)
        is_left = is_left || !test.current[c]->is_found;
      if (world_now () > TOO_LONG)
        fail_seed ("children do not end");
    }
  pto_control_unref (control);
}

static void
play (uint32_t seed)
{
  struct pto_pool_config config = {
    .pace = set_pace,
    .limits
    = { .task_ns = 2 * SECOND, .start_ns = 5 * SECOND, .close_ns = 2 * SECOND, .stop_ns = SECOND },
    .group_ns = SECOND,
  };

  memset (&test, 0, sizeof test);
  memset (board, 0, BOARD * sizeof board[0]);
  test.seed = seed;
  world_begin (seed);
  choose_profile ();
  ends_begin (test.profile.n_remotes, &test.profile.ends);
  pool_test_init (&test.own, seed, 128 << 10, WINDOW, 1024, test.profile.n_remotes + 1, &child_ops,
                  NULL, true);
  test.own.engine->config.hazards = PTO_HAZARD_RAW | PTO_HAZARD_WAW | PTO_HAZARD_WAR;
  pto_map_set_hazards (test.own.engine->map, test.own.engine->config.hazards);
  test.writes = pto_writes_new ();
  config.writes = test.writes;
  config.retries = test.profile.retries;
  for (uint32_t c = 0; c < test.own.n_children; c++)
    {
      test.own.children[c].far = c < test.profile.n_remotes;
      test.own.children[c].leave_bytes = test.own.children[c].far ? test.profile.leaves : 0;
      pto_child_post_start (&test.own.children[c]);
    }
  test.pace = PTO_PACE_SLOW;
  pool_test_add_pool (&test.own, &config);
  world_enter (test.own.exec);
  start ();
  for (uint32_t i = 0; i < 2; i++)
    run ();
  test.calms = world_chance (2);
  close_children ();
  world_damage (0);
  test.calms = test.stops = true;
  pto_pool_stop (test.own.pool);
  pto_scheduler_stop (test.own.scheduler);
  pto_exec_join (test.own.exec);
  g_assert_cmpuint (pto_exec_live (test.own.exec), ==, 0);
  for (uint32_t i = 0; i < test.n_lives; i++)
    free_life (&test.lives[i]);
  for (uint32_t c = 0; c < test.profile.n_remotes; c++)
    total.silences += atomic_load (&pto_writes_traffic (test.writes, c)->silences);
  pto_exec_leave (test.own.exec);
  world_end ();
  pool_test_clear (&test.own);
  pto_writes_free (test.writes);
}

static uint64_t
get_number (const char *name, uint64_t usual)
{
  const char *text = g_getenv (name);

  return text != NULL ? g_ascii_strtoull (text, NULL, 10) : usual;
}

/* Of all seeds, or of those that the environment names, the ones to which something is done, or
 * nothing. */
static void
play_all (bool is_quiet)
{
  uint32_t from = (uint32_t) get_number ("PTO_TEST_SEED", 0);
  uint32_t n
      = (uint32_t) get_number ("PTO_TEST_SEEDS", g_getenv ("PTO_TEST_SEED") != NULL ? 1 : SEEDS);

  memset (&total, 0, sizeof total);
  for (uint32_t seed = from; seed < from + n; seed++)
    if ((seed % KINDS == 0) == is_quiet)
      play (seed);
  ends_end ();
  g_test_message ("%" G_GUINT64_FORMAT " tasks, of which %" G_GUINT64_FORMAT
                  " failed, %" G_GUINT64_FORMAT " of them lost, %" G_GUINT64_FORMAT
                  " were run once more, %" G_GUINT64_FORMAT " never run; %" G_GUINT64_FORMAT
                  " lives, %" G_GUINT64_FORMAT " faults, %" G_GUINT64_FORMAT
                  " cancelled runs, %" G_GUINT64_FORMAT " silences; %" G_GUINT64_FORMAT
                  " results left, %" G_GUINT64_FORMAT " lost",
                  total.tasks, total.failed, total.lost, total.again, total.never, total.lives,
                  total.faults, total.cancelled, total.silences, total.left, total.gone);
}

#ifdef __SANITIZE_ADDRESS__
/* What lies on the stacks of who is killed, is nobody's. */
static bool is_anybody_killed;

int __lsan_is_turned_off (void);
int
__lsan_is_turned_off (void)
{
  return is_anybody_killed;
}
#endif

/* Connections that are slow, and nothing else: nobody is lost, and all that was had is given back.
 */
static void
test_slow (void)
{
  play_all (true);
  g_assert_cmpuint (total.lost, ==, 0);
  assert_no_leaks ();
}

static void
test_harmed (void)
{
#ifdef __SANITIZE_ADDRESS__
  is_anybody_killed = true;
#endif
  play_all (false);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/remote-det/slow", test_slow);
  g_test_add_func ("/pto/remote-det/harmed", test_harmed);
  return g_test_run ();
}
