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
#include "det-test.h"

#include "../../pto/core/completion.h"
#include "../../pto/core/run.h"
#include "../../pto/core/tensor-map.h"

#include <stddef.h>
#include <string.h>

#define WINDOW 64u
#define PAGE 4096u
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define SEEDS 300u
#define assert_no_leaks() g_assert_cmpint (__lsan_do_recoverable_leak_check (), ==, 0)
#else
#define SEEDS 2000u
#define assert_no_leaks()
#endif
/* Seeds of as many kinds; to the first nothing is done. */
#define KINDS 8u
/* Nothing takes as long. */
#define TOO_LONG (300 * SECOND)

struct det_test test;
uint64_t board[BOARD + LARGE];
uint64_t model[BOARD + LARGE];
bool gone[BOARD + LARGE];
struct det_total total;

/* --- the program --- */

static void
set_pace (void *data, enum pto_pace pace)
{
  test.pace = pace;
}

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
  pool_test_init (&test.own, seed, 128 << 10, WINDOW, 1024, test.profile.n_remotes + 1,
                  &det_child_ops, NULL, true);
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
      = (uint32_t) get_number ("PTO_TEST_SEEDS", g_getenv ("PTO_TEST_SEED") != NULL ? 1 : SEEDS)
        * (uint32_t) get_number ("PTO_TEST_TIMES", 1);

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
