/* test-begin.c: how do children begin, and begin again, when something is in the way?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "deeds.h"

#include "../../pto/process/mailbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* --- starting --- */

static uint32_t
refuse_start (struct rig *rig, uint32_t index, const struct pto_call *call,
              struct pto_failure *failure)
{
  if (call->request != PTO_REQUEST_START || index != 2)
    return 0;
  pto_failure_set (failure, PTO_STATUS_NO_MEMORY, NULL, "no address space for ring 0");
  return PTO_STATUS_NO_MEMORY;
}

static uint32_t
die_at_start (struct rig *rig, uint32_t index, const struct pto_call *call,
              struct pto_failure *failure)
{
  if (call->request == PTO_REQUEST_START && index == 2)
    _exit (4);
  return 0;
}

static uint32_t
hang_at_start (struct rig *rig, uint32_t index, const struct pto_call *call,
               struct pto_failure *failure)
{
  while (call->request == PTO_REQUEST_START && index == 2)
    pause ();
  return 0;
}

/* More often than anything happens while five children start. */
static bool
at_fortieth (void *data)
{
  uint32_t *n = data;

  return ++*n >= 40;
}

static void
test_start (void)
{
  static const char *const parameters[] = { "timeout", "200", NULL };
  static const char *const patient[] = { "timeout", "30000", NULL };
  uint32_t n_asked = 0;
  struct holdings before = holdings_now ();
  struct rig_config config = { .chips = 1, .subs = 4, .functions = deeds, .restart = true };
  struct pto_report report = { 0 };

  config.serve = refuse_start;
  g_assert_null (rig_try (&config, NULL, NULL, &report));
  g_assert_cmpint (report.status, ==, PTO_STATUS_NO_MEMORY);
  g_assert_cmpstr (report.message, ==, "L3/0/sub1 can not be started: no address space for ring 0");
  holdings_assert (&before);
  config.threads = true;
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, NULL, NULL, &report));
  g_assert_cmpstr (report.message, ==, "L3/0/sub1 can not be started: no address space for ring 0");
  holdings_assert (&before);
  config.threads = false;

  config.serve = die_at_start;
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, NULL, NULL, &report));
  g_assert_cmpint (report.status, ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpstr (report.message, ==, "L3/0/sub1 can not be started: it exited with status 4");
  holdings_assert (&before);

  config.serve = hang_at_start;
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, always, NULL, &report));
  g_assert_cmpint (report.status, ==, PTO_STATUS_CANCELLED);
  holdings_assert (&before);
  /* Asked again and again, though nobody has news. */
  config.parameters = patient;
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, at_fortieth, &n_asked, &report));
  g_assert_cmpint (report.status, ==, PTO_STATUS_CANCELLED);
  g_assert_cmpuint (n_asked, ==, 40);
  holdings_assert (&before);
  config.parameters = parameters;
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, NULL, NULL, &report));
  g_assert_cmpstr (report.message, ==,
                   "L3/0/sub1 can not be started: it was ended: did not answer for 200 ms");
  holdings_assert (&before);
}

/* The thread sanitizer has its own pthread_create(), in whose place this one would stand. */
#ifndef __SANITIZE_THREAD__
/* The nth thread from now on can not be made; 0: all can. */
static int threads_left;

int
pthread_create (pthread_t *thread, const pthread_attr_t *attr, void *(*func) (void *data),
                void *data)
{
  int (*real) (pthread_t *, const pthread_attr_t *, void *(*) (void *), void *)
      = (int (*) (pthread_t *, const pthread_attr_t *, void *(*) (void *), void *)) dlsym (
          RTLD_NEXT, "pthread_create");

  return threads_left > 0 && --threads_left == 0 ? EAGAIN : real (thread, attr, func, data);
}

/* The keeper, or a child: nobody waits for one that is not there. */
static void
test_no_thread (void)
{
  struct holdings before = holdings_now ();

  for (int n = 1; n <= 4; n++)
    {
      struct pto_report report = { 0 };

      threads_left = n;
      g_assert_null (
          rig_try (&(struct rig_config){ .subs = 3, .threads = true, .functions = deeds }, NULL,
                   NULL, &report));
      g_assert_cmpint (threads_left, ==, 0);
      g_assert_cmpint (report.status, ==, PTO_STATUS_SYSTEM);
      assert_says (report.message, "L3/0 can not be started: ");
      holdings_assert (&before);
    }
}
#endif

/* --- caught by a lock --- */

/* A lock that somebody in the parent holds at some of the forks, and that each child needs first.
 * Who is not caught, but gets no CPU for as long, is forked again, too: there may be more forks
 * than are caught, and not more children that come up. */
static struct
{
  GMutex lock;
  uint64_t caught; /* bits of forks that find it held */
  uint32_t forks;
} trap;

static pid_t
fork_into_trap (void *data)
{
  bool held = trap.forks < 64 && (trap.caught >> trap.forks & 1) != 0;
  pid_t pid;

  trap.forks++;
  if (held)
    g_mutex_lock (&trap.lock);
  pid = fork ();
  if (held && pid != 0)
    g_mutex_unlock (&trap.lock);
  return pid;
}

static void
step_into_trap (struct rig *rig, uint32_t index)
{
  g_mutex_lock (&trap.lock);
  g_mutex_unlock (&trap.lock);
}

static void
set_trap (uint64_t caught)
{
  trap.caught = caught;
  trap.forks = 0;
}

#define CAME_UP 21

static uint32_t
come_up (struct rig *rig, uint32_t index, const struct pto_call *call, struct pto_failure *failure)
{
  if (call->request == PTO_REQUEST_START)
    atomic_fetch_add (&rig->board->counters[CAME_UP], 1);
  return 0;
}

static const struct rig_config trapped = { .chips = 1,
                                           .subs = 3,
                                           .functions = deeds,
                                           .serve = come_up,
                                           .fork = fork_into_trap,
                                           .probe = step_into_trap };

/* At the start, whatever restart says: it works, and nobody hears of it. */
static void
test_caught_at_start (void)
{
  /* Forks that are caught, and how many there are: 4 children, each caught one is forked again. */
  static const struct
  {
    uint32_t caught, forks;
  } cases[] = { { 0, 4 }, { 0x2, 5 }, { 0xf, 8 }, { 0x1e, 8 } };
  struct holdings before = holdings_now ();

  for (uint32_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      struct rig *rig;

      set_trap (cases[i].caught);
      rig = rig_new (&trapped);
      g_assert_cmpuint (trap.forks, >=, cases[i].forks);
      rig_run_ok (rig, forty_tasks, NULL);
      g_assert_cmpuint (rig->stats.restarts, ==, 0);
      g_assert_cmpuint (counter (rig, CAME_UP), ==, 4);
      rig_free (rig);
      holdings_assert (&before);
    }
}

/* 32 times is bad luck, 33 times is reported. */
static void
test_caught_again_and_again (void)
{
  static const char *const parameters[] = { "timeout", "200", NULL };
  struct holdings before = holdings_now ();
  struct rig_config config = trapped;
  struct pto_report report = { 0 };
  struct rig *rig;

  config.chips = 0;
  config.subs = 1;
  /* The last life is given as long as a start may take. */
  set_trap (UINT32_MAX);
  rig = rig_new (&config);
  g_assert_cmpuint (trap.forks, ==, 33);
  rig_run_ok (rig, forty_tasks, NULL);
  g_assert_cmpuint (counter (rig, CAME_UP), ==, 1);
  rig_free (rig);
  holdings_assert (&before);

  config.parameters = parameters;
  set_trap (UINT64_MAX);
  g_assert_null (rig_try (&config, NULL, NULL, &report));
  g_assert_cmpuint (trap.forks, ==, 33);
  g_assert_cmpint (report.status, ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpstr (report.message, ==,
                   "L3/0/sub0 can not be started: it was ended: did not come up: 33 times caught "
                   "by a lock that another thread held when it was forked, the last time for "
                   "200 ms");
  holdings_assert (&before);

  /* Who does not wait is not kept waiting. */
  set_trap (UINT64_MAX);
  report = (struct pto_report){ 0 };
  g_assert_null (rig_try (&config, always, NULL, &report));
  g_assert_cmpint (report.status, ==, PTO_STATUS_CANCELLED);
  holdings_assert (&before);
}

/* When a child is begun again, in a run and between runs. */
static void
test_caught_at_restart (void)
{
  struct holdings before = holdings_now ();
  struct rig_config config = trapped;
  struct pto_report report = { 0 };
  struct rig *rig;

  config.chips = 0;
  config.subs = 1;
  config.restart = true;
  set_trap (0);
  rig = rig_new (&config);
  /* The second life and the third are caught. */
  set_trap (0x3);
  g_assert_cmpint (rig_run (rig, die_then_work, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpuint (trap.forks, >=, 3);
  g_assert_cmpuint (counter (rig, CAME_UP), ==, 2);
  g_assert_cmpuint (counter (rig, 0), >, 0);
  g_assert_cmpuint (rig->stats.restarts, ==, 1);
  set_trap (0x1);
  g_assert_cmpint (pto_level_renew (rig->level, rig_subs (rig), NULL, NULL, &report), ==, PTO_OK);
  g_assert_cmpuint (trap.forks, >=, 2);
  g_assert_cmpuint (counter (rig, CAME_UP), ==, 3);
  rig_run_ok (rig, forty_tasks, NULL);
  g_assert_cmpuint (rig->stats.restarts, ==, 2);
  rig_free (rig);
  holdings_assert (&before);
}

/* Starts well once, never again: it is given up, and nothing hangs. */
static uint32_t
start_once (struct rig *rig, uint32_t index, const struct pto_call *call,
            struct pto_failure *failure)
{
  if (call->request == PTO_REQUEST_START && atomic_fetch_add (&rig->board->counters[20], 1) > 0)
    _exit (5);
  return 0;
}

static void
test_start_again_fails (void)
{
  struct rig *rig = rig_new (
      &(struct rig_config){ .subs = 1, .restart = true, .serve = start_once, .functions = deeds });

  g_assert_cmpint (rig_run (rig, die_then_work, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpuint (counter (rig, 0), ==, 0);
  g_assert_cmpuint (counter (rig, 20), ==, 4);
  g_assert_cmpint (rig_run (rig, forty_tasks, NULL), ==, PTO_STATUS_WORKER_LOST);
  assert_says (rig->report.message, "has nobody to run it: L3/0/sub0 exited with status 5 before");
  rig_free (rig);
}

/* --- children that can not be begun at once --- */

static struct
{
  uint32_t n; /* so many forks fail, from now on */
  uint32_t refused;
} shortage;

static pid_t
fork_in_shortage (void *data)
{
  if (shortage.refused == shortage.n)
    return fork ();
  shortage.refused++;
  errno = EAGAIN;
  return -1;
}

/* A while without processes costs the task its time, and not more. Where there are none for good it
 * fails. The shortage comes when the child is up: one that was forked while another thread was
 * inside of the allocator may be begun once more before. */
static void
test_no_process (void)
{
  struct holdings before = holdings_now ();
  struct rig_config config
      = { .subs = 1, .restart = true, .functions = deeds, .fork = fork_in_shortage };
  struct rig *rig;

  shortage.n = shortage.refused = 0;
  rig = rig_new (&config);
  shortage.n = 5;
  g_assert_cmpint (rig_run (rig, die_then_work, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpuint (counter (rig, 0), >, 0);
  g_assert_cmpuint (shortage.refused, ==, 5);
  rig_run_ok (rig, forty_tasks, NULL);
  rig_free (rig);

  shortage.n = shortage.refused = 0;
  rig = rig_new (&config);
  shortage.n = UINT32_MAX;
  g_assert_cmpint (rig_run (rig, die_then_work, NULL), ==, PTO_STATUS_WORKER_LOST);
  g_assert_cmpuint (counter (rig, 0), ==, 0);
  g_assert_cmpuint (shortage.refused, ==, 10);
  g_assert_cmpint (rig_run (rig, forty_tasks, NULL), ==, PTO_STATUS_WORKER_LOST);
  assert_says (rig->report.message, "could not be begun again");
  rig_free (rig);
  holdings_assert (&before);
}

static uint32_t
note_life (struct rig *rig, uint32_t index, const struct pto_call *call,
           struct pto_failure *failure)
{
  if (call->request == PTO_REQUEST_START && index == 0)
    {
      rig->board->words[0] = (uint64_t) (uintptr_t) call->mailbox;
      atomic_fetch_add (&rig->board->counters[20], 1);
    }
  return 0;
}

/* Each comes up, and dies when nobody waits for anything of it. */
static void
nine_lives (struct rig *rig, void *data)
{
  for (uint64_t life = 1; life <= 9; life++)
    {
      struct pto_mailbox *mailbox;

      while (counter (rig, 20) < life)
        {
          pto2_rt_scope_begin (rig->rt);
          SUB (rig, COUNT, 1, scalar (0));
          pto2_rt_scope_end (rig->rt);
        }
      mailbox = (struct pto_mailbox *) (uintptr_t) rig->board->words[0];
      while (atomic_load (&mailbox->reply) != 2 * pto_word_get (&mailbox->post))
        g_usleep (100);
      if (life < 9)
        kill (atomic_load (&rig->board->pids[0]), SIGKILL);
    }
}

/* It is not forked as often as it dies. */
static void
test_come_and_go (void)
{
  struct rig *rig = rig_new (
      &(struct rig_config){ .subs = 2, .restart = true, .serve = note_life, .functions = deeds });
  uint64_t begin = pto_wall_clock ();

  rig_run_ok (rig, nine_lives, NULL);
  /* The first at once, the others after 10, 20, 40, 80, 160, 320 and 640 ms at least. */
  g_assert_cmpuint (pto_wall_clock () - begin, >=, 1270 * MS);
  rig_free (rig);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/begin/start", test_start);
#ifndef __SANITIZE_THREAD__
  g_test_add_func ("/pto/begin/no-thread", test_no_thread);
#endif
  g_test_add_func ("/pto/begin/start-again", test_start_again_fails);
  g_test_add_func ("/pto/begin/caught/start", test_caught_at_start);
  g_test_add_func ("/pto/begin/caught/again-and-again", test_caught_again_and_again);
  g_test_add_func ("/pto/begin/caught/restart", test_caught_at_restart);
  g_test_add_func ("/pto/begin/no-process", test_no_process);
  g_test_add_func ("/pto/begin/come-and-go", test_come_and_go);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
