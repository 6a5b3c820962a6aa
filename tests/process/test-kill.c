/* test-kill.c: is there a step at which the end of a child, whatever its cause, leaves a hang, a
 * wrong error, or something behind?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A matrix: ways to end, steps of the protocol, kinds of requests. A child ends itself at a given
 * step (it sees which one it is at), or is ended from outside at a moment that the seed draws.
 * After each round the process holds what it held before, the error is the right one, and the work
 * that did not need the dead is finished.
 *
 * Every cell once; then PTO_TEST_ROUNDS random rounds (40 unless told, PTO_TEST_TIMES as many),
 * beginning with the seed PTO_TEST_SEED.
 */
#include "../short.h"
#include "level-test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUBS 4u
#define ROUNDS 40u

enum way
{
  KILL,
  SEGV,
  STOP,
  EXIT,
  ABORT,
  N_WAYS
};

static const char *const way_names[N_WAYS] = { "kill", "segv", "stop", "exit", "abort" };
static const char *const way_words[N_WAYS]
    = { "died (signal 9, Killed)", "died (signal 11, Segmentation fault)",
        "was ended: stopped for 100 ms", "exited with status 3", "died (signal 6, Aborted)" };

/* Where in its life a child ends. */
enum step
{
  AT_START,    /* before START is answered */
  IDLE,        /* nothing is asked of it */
  BEFORE_TAKE, /* something is posted that it has not taken */
  RUNNING,     /* taken, not answered */
  ANSWERED,    /* after the answer, before the next request */
  N_STEPS
};

static const char *const step_names[N_STEPS]
    = { "start", "idle", "before-take", "running", "answered" };

enum what
{
  TASK,
  GROUP,
  REGISTER,
  CLOSE,
  N_WHATS
};

static const char *const what_names[N_WHATS] = { "task", "group", "register", "close" };

enum
{
  COUNT, /* scalars: counter, - */
  VICTIM /* scalars: -, member: the child with the mark ends itself */
};

/* Counters of the board. */
enum
{
  DONE,
  WAY, /* + 1 */
  STEP,
  WHAT,
  LIVES, /* of the child that is meant */
  READ_DONE,
  MEETING
};

static void
end_this_process (enum way way)
{
  switch (way)
    {
    case KILL:
      raise (SIGKILL);
      break;
    case SEGV:
      signal (SIGSEGV, SIG_DFL);
      raise (SIGSEGV);
      break;
    case STOP:
      raise (SIGSTOP);
      break;
    case EXIT:
      exit (3);
    case ABORT:
      abort ();
    default:
      break;
    }
}

static bool
is_meant (struct rig *rig, enum step step, enum what what)
{
  const _Atomic uint64_t *counters = rig->board->counters;

  return counters[WAY] > 0 && counters[STEP] == (uint64_t) step
         && (step == AT_START || counters[WHAT] == (uint64_t) what);
}

static uint32_t
count (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  atomic_fetch_add (&rig->board->counters[call_scalar (call, 0)], 1);
  return 0;
}

static uint32_t
victim (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  enum what what = (enum what) call_scalar (call, 0);
  bool is_first = call_scalar (call, 1) == 0;

  if (is_first && is_meant (rig, RUNNING, what))
    end_this_process ((enum way) (rig->board->counters[WAY] - 1));
  /* The others of a group wait for the first one, as collective work does. */
  while (what == GROUP && !is_first && is_meant (rig, RUNNING, what)
         && !pto_call_is_cancelled (call))
    g_usleep (100);
  return 0;
}

static const rig_function functions[] = { count, victim };

static uint32_t
serve (struct rig *rig, uint32_t index, const struct pto_call *call, struct pto_failure *failure)
{
  enum way way = (enum way) (rig->board->counters[WAY] - 1);

  if (index != 0)
    return 0;
  if (call->request == PTO_REQUEST_START
      && atomic_fetch_add (&rig->board->counters[LIVES], 1) == rig->board->counters[MEETING]
      && is_meant (rig, AT_START, TASK))
    end_this_process (way);
  if (call->request == PTO_REQUEST_REGISTER && is_meant (rig, RUNNING, REGISTER))
    end_this_process (way);
  if (call->request == PTO_REQUEST_CLOSE && is_meant (rig, RUNNING, CLOSE))
    end_this_process (way);
  return 0;
}

static PTOParam
scalar (uint64_t value)
{
  return make_scalar_param (value);
}

struct round
{
  enum way way;
  enum step step;
  enum what what;
};

/* From outside. A stopped child is one that takes nothing any more. */
static void
strike (struct rig *rig, enum way way)
{
  static const int signals[N_WAYS] = { SIGKILL, SIGSEGV, SIGSTOP, SIGTERM, SIGABRT };

  kill (atomic_load (&rig->board->pids[0]), signals[way]);
}

/* Ten tasks for others, and one that child 0 is to run, with two that need it. */
static void
graph (struct rig *rig, void *data)
{
  const struct round *round = data;
  static const uint32_t workers[] = { 0, 2, 1 };
  Tensor tensor = rig_words (rig, 0, 8);
  PTOParam output = make_output_existing_param (tensor);

  for (uint32_t i = 0; i < 5; i++)
    SUB (rig, COUNT, 1 + i % (SUBS - 1), scalar (DONE));
  if (round->what == GROUP)
    rig_group (rig, VICTIM, 3, workers, &output, GROUP);
  else
    SUB (rig, VICTIM, 0, output, scalar (TASK), scalar (0));
  for (int i = 0; i < 2; i++)
    SUB (rig, COUNT, 3, make_input_param (tensor), scalar (READ_DONE));
  for (uint32_t i = 0; i < 5; i++)
    SUB (rig, COUNT, 1 + i % (SUBS - 1), scalar (DONE));
}

static void
others (struct rig *rig, void *data)
{
  for (uint32_t i = 0; i < 20; i++)
    SUB (rig, COUNT, i % 2 == 0 ? ANY : i % SUBS, scalar (DONE));
}

static struct rig *
new_rig (void)
{
  static const char *const parameters[] = { "stop-timeout", "100", NULL };

  return rig_new (&(struct rig_config){ .subs = SUBS,
                                        .restart = true,
                                        .parameters = parameters,
                                        .serve = serve,
                                        .functions = functions });
}

static void
mark (struct rig *rig, const struct round *round)
{
  rig->board->counters[STEP] = (uint64_t) round->step;
  rig->board->counters[WHAT] = (uint64_t) round->what;
  rig->board->counters[WAY] = (uint64_t) round->way + 1;
}

static enum pto_status
do_register (struct rig *rig, struct pto_report *report)
{
  static const uint8_t digest[PTO_DIGEST_BYTES] = { 9 };

  return pto_level_control (rig->level, PTO_REQUEST_REGISTER, rig_subs (rig), digest, "body", 4,
                            NULL, NULL, report);
}

/* What the dead did is lost, nothing else is, and everything goes on afterwards. */
static void
check_run (struct rig *rig, const struct round *round, enum pto_status status, bool must_fail)
{
  uint64_t done = atomic_load (&rig->board->counters[DONE]);

  g_assert_cmpuint (done, ==, 10);
  if (status == PTO_OK)
    {
      g_assert_false (must_fail);
      g_assert_cmpuint (atomic_load (&rig->board->counters[READ_DONE]), ==, 2);
      return;
    }
  g_assert_cmpint (status, ==, PTO_STATUS_WORKER_LOST);
  assert_says (rig->report.message, "L3/0/sub0 ");
  if (must_fail)
    {
      assert_says (rig->report.message, way_words[round->way]);
      assert_says (rig->report.message, "while running \"f1\"");
    }
  assert_says (rig->report.message, "task 5 failed, 2 tasks that needed it did not run, 10 others "
                                    "finished");
  g_assert_cmpuint (rig->stats.failed, ==, 3);
  g_assert_cmpuint (atomic_load (&rig->board->counters[READ_DONE]), ==, 0);
}

static void
after (struct rig *rig)
{
  /* One that stands still and was not asked for anything is found by the first that asks. */
  rig->board->counters[WAY] = 0;
  for (int i = 0; i < 2; i++)
    if (rig_run (rig, others, NULL) == PTO_OK)
      break;
  rig_run_ok (rig, others, NULL);
}

static void
play (const struct round *round)
{
  struct holdings before = holdings_now ();
  struct rig *rig = new_rig ();
  struct pto_report report = { 0 };
  enum pto_status status;

  switch (round->step)
    {
    case AT_START:
      /* Of its second life. */
      rig->board->counters[MEETING] = 1;
      mark (rig, round);
      strike (rig, KILL);
      rig_run (rig, graph, (void *) round);
      g_assert_cmpuint (atomic_load (&rig->board->counters[DONE]), ==, 10);
      break;
    case IDLE:
    case ANSWERED:
      if (round->step == ANSWERED)
        rig_run_ok (rig, graph, (void *) round);
      atomic_store (&rig->board->counters[DONE], 0);
      atomic_store (&rig->board->counters[READ_DONE], 0);
      strike (rig, round->way);
      status = rig_run (rig, graph, (void *) round);
      if (round->way != EXIT)
        check_run (rig, round, status, false);
      break;
    case BEFORE_TAKE:
      kill (atomic_load (&rig->board->pids[0]), SIGSTOP);
      if (round->way != STOP)
        strike (rig, round->way);
      if (round->what == REGISTER)
        {
          if (round->way != STOP)
            kill (atomic_load (&rig->board->pids[0]), SIGCONT);
          status = do_register (rig, &report);
          if (status != PTO_OK)
            {
              g_assert_cmpint (status, ==, PTO_STATUS_WORKER_LOST);
              assert_says (report.message, "L3/0/sub0 ");
            }
          break;
        }
      if (round->what == CLOSE)
        break;
      if (round->way != STOP)
        kill (atomic_load (&rig->board->pids[0]), SIGCONT);
      status = rig_run (rig, graph, (void *) round);
      check_run (rig, round, status, false);
      break;
    default:
      mark (rig, round);
      if (round->what == REGISTER)
        {
          g_assert_cmpint (do_register (rig, &report), ==, PTO_STATUS_WORKER_LOST);
          assert_says (report.message, "L3/0/sub0 ");
          assert_says (report.message, way_words[round->way]);
        }
      else if (round->what != CLOSE)
        {
          status = rig_run (rig, graph, (void *) round);
          check_run (rig, round, status, true);
        }
      break;
    }
  if (round->what != CLOSE)
    after (rig);
  rig_free (rig);
  holdings_assert (&before);
}

static void
test_cell (gconstpointer data)
{
  uint32_t cell = GPOINTER_TO_UINT (data);
  struct round round = { (enum way) (cell % N_WAYS), (enum step) (cell / N_WAYS % N_STEPS),
                         (enum what) (cell / N_WAYS / N_STEPS) };

  play (&round);
}

/* --- at any moment --- */

struct striker
{
  struct rig *rig;
  uint64_t random;
  uint32_t strikes;
  _Atomic uint32_t end;
};

static uint32_t
draw (uint64_t *random, uint32_t n)
{
  *random = *random * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
  return (uint32_t) ((*random >> 33) % n);
}

static gpointer
strike_at_random (gpointer data)
{
  struct striker *striker = data;

  for (uint32_t i = 0; i < striker->strikes && atomic_load (&striker->end) == 0; i++)
    {
      uint64_t until = pto_wall_clock () + draw (&striker->random, 2000) * 1000;
      static const int signals[] = { SIGKILL, SIGSEGV, SIGSTOP, SIGABRT, SIGTERM };
      int pid = atomic_load (&striker->rig->board->pids[draw (&striker->random, SUBS)]);
      int signal = signals[draw (&striker->random, G_N_ELEMENTS (signals))];

      while (pto_wall_clock () < until)
        g_thread_yield ();
      /* It may be gone already, but its number is not given away while it is not reaped; and soon
       * after that nobody in this container takes it. */
      if (pid > 0)
        kill (pid, signal);
    }
  return NULL;
}

static void
random_graph (struct rig *rig, void *data)
{
  uint64_t *random = data;

  for (uint32_t i = 0; i < 60; i++)
    {
      Tensor from = rig_words (rig, draw (random, 8) * 8, 8);
      Tensor to = rig_words (rig, 64 + draw (random, 8) * 8, 8);
      uint32_t worker = draw (random, 2) == 0 ? ANY : draw (random, SUBS);
      PTOParam output = make_output_existing_param (to);

      if (draw (random, 6) == 0)
        rig_group (rig, COUNT, 1 + draw (random, SUBS), NULL, &output, DONE);
      else
        SUB (rig, COUNT, worker, make_input_param (from), output, scalar (DONE));
    }
}

static uint64_t
number (const char *variable, uint64_t fallback)
{
  const char *text = g_getenv (variable);

  return text != NULL ? g_ascii_strtoull (text, NULL, 10) : fallback;
}

static void
test_random (void)
{
  uint64_t first = number ("PTO_TEST_SEED", 1);
  uint64_t n = number ("PTO_TEST_ROUNDS", SCALE_SHORT (ROUNDS)) * number ("PTO_TEST_TIMES", 1);

  for (uint64_t seed = first; seed < first + n; seed++)
    {
      struct holdings before = holdings_now ();
      struct rig *rig = new_rig ();
      struct striker striker = { .rig = rig, .random = seed, .strikes = 1 + seed % 4 };
      uint64_t random = seed * 77;
      GThread *thread;

      g_test_message ("seed %" G_GUINT64_FORMAT, seed);
      thread = g_thread_new ("striker", strike_at_random, &striker);
      for (int run = 0; run < 3; run++)
        {
          struct pto_report report = { 0 };
          enum pto_status status = rig_run (rig, random_graph, &random);

          if (status != PTO_OK)
            g_assert_cmpint (status, ==, PTO_STATUS_WORKER_LOST);
          g_assert_cmpuint (rig->stats.tasks, ==, 60);
          if (draw (&random, 3) == 0 && do_register (rig, &report) != PTO_OK)
            g_assert_cmpint (report.status, ==, PTO_STATUS_WORKER_LOST);
        }
      g_thread_join (thread);
      if (seed % 3 != 0)
        {
          /* Each run that fails finds at least one that stood still, or died unseen. */
          for (uint32_t i = 0; i < striker.strikes; i++)
            if (rig_run (rig, others, NULL) == PTO_OK)
              break;
        }
      rig_free (rig);
      holdings_assert (&before);
    }
}

static void
add_tests (void)
{
  /* The stress run is about what chance finds. */
  if (g_getenv ("PTO_TEST_ROUNDS") == NULL)
    for (uint32_t cell = 0; cell < N_WAYS * N_STEPS * N_WHATS; cell++)
      {
        uint32_t step = cell / N_WAYS % N_STEPS;
        uint32_t what = cell / N_WAYS / N_STEPS;
        char *path;

        /* What is asked next makes no difference at these. */
        if ((step == AT_START && what != TASK)
            || (step == ANSWERED && what != TASK && what != GROUP)
            || (step == IDLE && what == REGISTER))
          continue;
        path = g_strdup_printf ("/pto/kill/%s/%s/%s", what_names[what], step_names[step],
                                way_names[cell % N_WAYS]);
        g_test_add_data_func (path, GUINT_TO_POINTER (cell), test_cell);
        g_free (path);
      }
  g_test_add_func ("/pto/kill/random", test_random);
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
  alarm (1700);
  add_tests ();
  result = g_test_run ();
  return result;
}
