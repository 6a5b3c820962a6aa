/* test-host.c: does a parent of processes hear every answer, whoever is awake?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What host shares with the other back ends is tested in test-exec.c, every interleaving of its
 * token and its bell in test-host-explore.c. Here are real processes, a real keeper and real sleep.
 */
#include "exec-test.h"
#include "../../pto/exec/shared-wait.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* What children and parent share. */
struct hub
{
  struct pto_bell bell;
  _Atomic uint32_t answers; /* W: children, before their ring; R: the pump */
  _Atomic uint32_t heard;   /* of them, by the pump */
  struct pto_word start;    /* for one child that sleeps */
};

struct parent
{
  struct hub *hub;
  struct pto_exec *exec;
  int event;
  pthread_t keeper;
  _Atomic uint32_t stop;  /* the keeper's */
  _Atomic uint32_t turns; /* of the keeper's poll() */
  _Atomic uint32_t held;

  struct pto_word served;     /* answers that the pump has seen */
  _Atomic uint32_t in_keeper; /* of its turns, carried by the keeper */
  _Atomic uint32_t in_guest;  /* and by the guest */
  _Atomic uint32_t ended;     /* the pump leaves */
  pthread_t guest;
};

/* --- children --- */

static pid_t
child_new (void (*fn) (struct hub *hub), struct hub *hub)
{
  pid_t parent = getpid ();
  pid_t pid = fork ();

  g_assert_cmpint (pid, >=, 0);
  if (pid != 0)
    return pid;
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  if (getppid () != parent)
    _exit (1);
  fn (hub);
  _exit (0);
}

static void
child_join (pid_t pid)
{
  int status;

  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
}

static void
answer (struct hub *hub)
{
  atomic_fetch_add_explicit (&hub->answers, 1, memory_order_release);
  pto_bell_ring (NULL, &hub->bell);
}

/* One answer, when it is told to. */
static void
answer_once_main (struct hub *hub)
{
  while (pto_word_get (&hub->start) == 0)
    pto_shared_park (NULL, &hub->start, 0, 0, PTO_NEVER);
  answer (hub);
}

#define STORM_CHILDREN 3
#define STORM_ANSWERS SCALE (100000)

static void
dawdle (uint64_t *state, uint32_t most)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  for (volatile uint32_t i = (uint32_t) (*state >> 33) % most; i > 0; i--)
    ;
}

static void
storm_main (struct hub *hub)
{
  uint64_t state = (uint64_t) getpid ();

  for (uint32_t i = 0; i < STORM_ANSWERS; i++)
    {
      answer (hub);
      /* As a child that gets its next task when the parent has seen its answer. */
      while (atomic_load (&hub->answers) - atomic_load (&hub->heard) >= STORM_CHILDREN)
        sched_yield ();
      dawdle (&state, i % 64 == 0 ? 100000 : 300);
    }
}

/* --- the parent --- */

static void
pump_main (void *arg)
{
  struct parent *parent = arg;

  for (;;)
    {
      uint32_t seen = pto_word_get (&parent->hub->bell.word);
      uint32_t answers = atomic_load_explicit (&parent->hub->answers, memory_order_acquire);

      g_assert_cmpuint (atomic_load (&parent->held), ==, 0);
      if (pto_word_get (&parent->served) != answers)
        {
          atomic_fetch_add (pthread_equal (pthread_self (), parent->guest) ? &parent->in_guest
                                                                           : &parent->in_keeper,
                            1);
          atomic_store (&parent->hub->heard, answers);
          pto_word_set (parent->exec, &parent->served, answers);
        }
      else if (atomic_load (&parent->ended) != 0)
        break;
      else
        pto_park (parent->exec, &parent->hub->bell.word, seen, PTO_NEVER);
    }
}

static void *
keeper_main (void *arg)
{
  struct parent *parent = arg;
  struct pollfd pollfd = { .fd = parent->event, .events = POLLIN };

  for (;;)
    {
      pto_exec_keep (parent->exec);
      atomic_fetch_add (&parent->turns, 1);
      /* Behind what may have taken the event that was written for it. */
      if (atomic_load (&parent->stop) != 0)
        return NULL;
      g_assert_cmpint (poll (&pollfd, 1, -1), ==, 1);
    }
}

/* The hub comes first: children are forked when there is no thread yet. */
static void
parent_init (struct parent *parent)
{
  memset (parent, 0, sizeof *parent);
  parent->hub
      = mmap (NULL, sizeof *parent->hub, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  g_assert_true (parent->hub != MAP_FAILED);
  parent->event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  g_assert_cmpint (parent->event, >=, 0);
  pto_bell_init (&parent->hub->bell, parent->event);
  pto_word_init (&parent->hub->start, 0, false);
  pto_word_init (&parent->served, 0, false);
  parent->guest = pthread_self ();
}

static void
parent_start (struct parent *parent)
{
  struct pto_exec_config config
      = { .backend = PTO_BACKEND_HOST, .domains = 1, .bell = &parent->hub->bell };
  char error[256] = "";

  parent->exec = pto_exec_new (&config, error, sizeof error);
  g_assert_cmpstr (error, ==, "");
  spawn (parent->exec, 0, pump_main, parent);
}

static void
parent_keep (struct parent *parent)
{
  g_assert_cmpint (pthread_create (&parent->keeper, NULL, keeper_main, parent), ==, 0);
}

static void
parent_clear (struct parent *parent)
{
  atomic_store (&parent->ended, 1);
  pto_bell_ring (NULL, &parent->hub->bell);
  pto_exec_join (parent->exec);
  g_assert_cmpuint (pto_exec_live (parent->exec), ==, 0);
  if (parent->keeper != 0)
    {
      atomic_store (&parent->stop, 1);
      g_assert_cmpint (eventfd_write (parent->event, 1), ==, 0);
      pthread_join (parent->keeper, NULL);
    }
  pto_exec_free (parent->exec);
  close (parent->event);
  g_assert_cmpint (munmap (parent->hub, sizeof *parent->hub), ==, 0);
}

/* Until the keeper's next step is poll(): it has said so and every ring writes the event. Its turns
 * so far. */
static uint32_t
await_keeper (struct parent *parent)
{
  uint32_t turns;

  while ((turns = atomic_load (&parent->turns)) == 0)
    sched_yield ();
  g_assert_cmphex (atomic_load (&parent->hub->bell.asleep), ==, PTO_BELL_KEEPER);
  return turns;
}

/* --- who carries --- */

/* The guest computes; the answer is the keeper's. */
static void
test_guest_computes (void)
{
  struct parent parent;
  pid_t pid;

  parent_init (&parent);
  pid = child_new (answer_once_main, parent.hub);
  parent_start (&parent);
  parent_keep (&parent);
  pto_exec_enter (parent.exec);
  await_keeper (&parent);
  pto_shared_set (NULL, &parent.hub->start, 1);
  while (pto_word_get (&parent.served) != 1)
    sched_yield ();
  g_assert_cmpuint (parent.in_keeper, ==, 1);
  g_assert_cmpuint (parent.in_guest, ==, 0);
  pto_exec_leave (parent.exec);
  child_join (pid);
  parent_clear (&parent);
}

static void
starter_main (void *arg)
{
  struct parent *parent = arg;

  pto_shared_set (NULL, &parent->hub->start, 1);
}

/* The guest waits: it carries, and the keeper is left in peace. */
static void
test_guest_waits (void)
{
  struct parent parent;
  uint32_t turns;
  pid_t pid;

  parent_init (&parent);
  pid = child_new (answer_once_main, parent.hub);
  parent_start (&parent);
  parent_keep (&parent);
  pto_exec_enter (parent.exec);
  turns = await_keeper (&parent);
  /* Nobody is woken for it: it runs when the guest has begun to wait, so the answer comes later. */
  spawn (parent.exec, 0, starter_main, &parent);
  wait_for (parent.exec, &parent.served, 1);
  g_assert_cmpuint (parent.in_guest, ==, 1);
  g_assert_cmpuint (parent.in_keeper, ==, 0);
  g_assert_cmpuint (atomic_load (&parent.turns), ==, turns);
  pto_exec_leave (parent.exec);
  child_join (pid);
  parent_clear (&parent);
}

/* Nobody is ever inside. */
static void
test_nobody_inside (void)
{
  struct parent parent;
  pid_t pid;

  parent_init (&parent);
  pid = child_new (answer_once_main, parent.hub);
  parent_start (&parent);
  parent_keep (&parent);
  await_keeper (&parent);
  pto_shared_set (NULL, &parent.hub->start, 1);
  while (pto_word_get (&parent.served) != 1)
    sched_yield ();
  g_assert_cmpuint (parent.in_keeper, ==, 1);
  child_join (pid);
  parent_clear (&parent);
}

/* Without a keeper the guest is all there is; it sleeps until the ring. */
static void
test_no_keeper (void)
{
  struct parent parent;
  pid_t pid;

  parent_init (&parent);
  parent.hub->bell.event = -1;
  pid = child_new (answer_once_main, parent.hub);
  parent_start (&parent);
  pto_exec_enter (parent.exec);
  pto_shared_set (NULL, &parent.hub->start, 1);
  wait_for (parent.exec, &parent.served, 1);
  pto_exec_leave (parent.exec);
  g_assert_cmpuint (parent.in_guest, ==, 1);
  child_join (pid);
  /* Any thread may carry now and then. */
  answer (parent.hub);
  pto_exec_keep (parent.exec);
  g_assert_cmpuint (pto_word_get (&parent.served), ==, 2);
  parent_clear (&parent);
}

/* A guest in a keeper's wait, a keeper in a guest's: three processes answer all the time while the
 * guest waits, helps, computes, holds, comes and goes. */
static void
storm (uint32_t *in_guest, uint32_t *in_keeper)
{
  struct parent parent;
  pid_t pids[STORM_CHILDREN];
  uint32_t total = STORM_CHILDREN * STORM_ANSWERS, seen, turns = 0;
  uint64_t state = 5;

  parent_init (&parent);
  for (gsize i = 0; i < STORM_CHILDREN; i++)
    pids[i] = child_new (storm_main, parent.hub);
  parent_start (&parent);
  parent_keep (&parent);
  pto_exec_enter (parent.exec);
  while ((seen = pto_word_get (&parent.served)) != total)
    switch (turns++ % 8)
      {
      case 0:
      case 1:
        pto_park (parent.exec, &parent.served, seen, PTO_NEVER);
        break;
      case 2:
        pto_park (parent.exec, &parent.served, seen, pto_now (parent.exec) + turns % 3000);
        break;
      case 3:
      case 4:
        pto_exec_help (parent.exec);
        break;
      case 5:
        pto_exec_leave (parent.exec);
        dawdle (&state, 2000);
        pto_exec_enter (parent.exec);
        break;
      case 6:
        pto_exec_hold (parent.exec);
        atomic_store (&parent.held, 1);
        dawdle (&state, 300);
        atomic_store (&parent.held, 0);
        pto_exec_unhold (parent.exec);
        break;
      default:
        /* Computes until somebody else has heard something. */
        while (turns % 64 == 8 && pto_word_get (&parent.served) == seen)
          sched_yield ();
        dawdle (&state, 5000);
      }
  pto_exec_leave (parent.exec);
  for (gsize i = 0; i < STORM_CHILDREN; i++)
    child_join (pids[i]);
  g_test_message ("%u turns of the guest, %u of the keeper; served by them: %u, %u", turns,
                  parent.turns, parent.in_guest, parent.in_keeper);
  *in_guest += parent.in_guest;
  *in_keeper += parent.in_keeper;
  parent_clear (&parent);
}

static void
test_storm (void)
{
  uint32_t in_guest = 0, in_keeper = 0;

  /* Mostly once: who is how fast is not ours to say. */
  for (uint32_t i = 0; i < 100 && (in_guest == 0 || in_keeper == 0); i++)
    storm (&in_guest, &in_keeper);
  g_assert_cmpuint (in_guest, >, 0);
  g_assert_cmpuint (in_keeper, >, 0);
}

/* --- budgets --- */

struct yields
{
  struct pto_exec *exec;
  uint32_t left;
  bool done;
};

static void
yields_main (void *arg)
{
  struct yields *yields = arg;

  while (yields->left-- > 0)
    pto_yield (yields->exec);
  yields->done = true;
}

/* A guest that helps comes back though there is always something to run, and the next one who
 * carries goes on. */
static void
test_help_ends (void)
{
  struct pto_exec *exec = new_exec (PTO_BACKEND_HOST, 1, 3);
  struct yields yields = { exec, 100000, false };
  uint32_t rounds = 0;

  pto_exec_enter (exec);
  g_assert_false (pto_exec_help (exec)); /* nothing there */
  spawn (exec, 0, yields_main, &yields);
  while (pto_exec_help (exec))
    {
      g_assert_cmpstr (pto_actor_name (), ==, "guest");
      rounds++;
    }
  g_assert_true (yields.done);
  g_assert_cmpuint (rounds, >, 100);
  g_assert_cmpuint (rounds, <, 1000);
  g_assert_cmpuint (pto_exec_live (exec), ==, 0);
  pto_exec_leave (exec);
  pto_exec_free (exec);
}

struct until
{
  struct pto_exec *exec;
  _Atomic uint32_t stop;
  _Atomic uint32_t turns;
};

static void
until_main (void *arg)
{
  struct until *until = arg;

  while (atomic_load (&until->stop) == 0)
    {
      atomic_fetch_add (&until->turns, 1);
      pto_yield (until->exec);
    }
}

/* What the helping guest leaves undone the keeper does; and it gives way when the guest comes, and
 * looks at its descriptors in between. */
static void
test_keeper_goes_on (void)
{
  struct parent parent;
  struct until until = { 0 };
  uint32_t turns;

  parent_init (&parent);
  parent_start (&parent);
  parent_keep (&parent);
  until.exec = parent.exec;
  pto_exec_enter (parent.exec);
  await_keeper (&parent);
  spawn (parent.exec, 0, until_main, &until);
  pto_exec_help (parent.exec);
  turns = atomic_load (&until.turns);
  g_assert_cmpuint (turns, >, 0);
  /* The guest computes. */
  while (atomic_load (&until.turns) < turns + 10000)
    sched_yield ();
  turns = atomic_load (&parent.turns);
  while (atomic_load (&parent.turns) < turns + 2)
    sched_yield ();
  /* It waits, though the keeper has enough to do: answers are served as before. */
  answer (parent.hub);
  wait_for (parent.exec, &parent.served, 1);
  atomic_store (&until.stop, 1);
  pto_exec_leave (parent.exec);
  parent_clear (&parent);
}

/* --- direct hand-over --- */

struct chain
{
  struct pto_exec *exec;
  struct pto_word word;
  GString *trace;
};

static void
callee_main (void *arg)
{
  struct chain *chain = arg;

  for (uint32_t i = 0; i < 3; i++)
    {
      pto_park (chain->exec, &chain->word, i, PTO_NEVER);
      g_string_append_c (chain->trace, (char) ('x' + i));
    }
}

static void
caller_main (void *arg)
{
  struct chain *chain = arg;

  for (uint32_t i = 1; i <= 3; i++)
    {
      g_string_append_c (chain->trace, (char) ('0' + i));
      pto_word_run (chain->exec, &chain->word, i);
    }
  g_string_append_c (chain->trace, '.');
}

static void
bystander_main (void *arg)
{
  struct chain *chain = arg;

  g_string_append_c (chain->trace, 'b');
}

/* Whoever waits runs at once, and the caller goes on before the others. */
static void
test_run (void)
{
  struct chain chain = { new_exec (PTO_BACKEND_HOST, 1, 3), .trace = g_string_new (NULL) };

  pto_word_init (&chain.word, 0, true);
  spawn (chain.exec, 0, callee_main, &chain);
  spawn (chain.exec, 0, caller_main, &chain);
  spawn (chain.exec, 0, bystander_main, &chain);
  pto_exec_join (chain.exec);
  g_assert_cmpstr (chain.trace->str, ==, "1x2y3z.b");
  g_string_free (chain.trace, TRUE);
  pto_exec_free (chain.exec);
}

/* --- around it --- */

/* The guest of another executor has a level of its own. */
static void
test_nested (gconstpointer backend)
{
  struct pto_exec *outer = new_exec (GPOINTER_TO_INT (backend), 1, 3);
  struct pto_exec *inner = new_exec (PTO_BACKEND_HOST, 1, 3);
  struct yields yields = { inner, 10, false };

  pto_exec_enter (outer);
  spawn (inner, 0, yields_main, &yields);
  pto_exec_join (inner);
  g_assert_true (yields.done);
  pto_exec_leave (outer);
  pto_exec_free (inner);
  pto_exec_free (outer);
}

static unsigned int
entries (const char *path)
{
  DIR *dir = opendir (path);
  unsigned int count = 0;

  g_assert_nonnull (dir);
  while (readdir (dir) != NULL)
    count++;
  closedir (dir);
  return count;
}

/* The executor makes no thread and no descriptor of its own. */
static void
test_no_threads (void)
{
  unsigned int threads = entries ("/proc/self/task");
  unsigned int files = entries ("/proc/self/fd");
  struct pto_exec *exec = new_exec (PTO_BACKEND_HOST, 1, 3);
  struct yields yields = { exec, 10, false };

  spawn (exec, 0, yields_main, &yields);
  pto_exec_join (exec);
  g_assert_true (SAME_THREADS (entries ("/proc/self/task"), threads));
  g_assert_cmpuint (entries ("/proc/self/fd"), ==, files);
  pto_exec_free (exec);
}

/* Guest and keeper asleep, nothing under way: nobody wakes up. */
static void
test_idle (void)
{
  struct parent parent;
  struct pto_word never;
  uint64_t deadline;
  uint32_t turns;

  parent_init (&parent);
  parent_start (&parent);
  parent_keep (&parent);
  pto_exec_enter (parent.exec);
  turns = await_keeper (&parent);
  pto_word_init (&never, 0, false);
  deadline = pto_now (parent.exec) + 50000000;
  while (pto_park (parent.exec, &never, 0, deadline) != PTO_PARK_TIMEOUT)
    ;
  g_assert_cmpuint (atomic_load (&parent.turns), ==, turns);
  pto_exec_leave (parent.exec);
  parent_clear (&parent);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/host/no-threads", test_no_threads);
  g_test_add_func ("/pto/host/run", test_run);
  g_test_add_func ("/pto/host/help-ends", test_help_ends);
  g_test_add_func ("/pto/host/no-keeper", test_no_keeper);
  g_test_add_func ("/pto/host/nobody-inside", test_nobody_inside);
  g_test_add_func ("/pto/host/guest-computes", test_guest_computes);
  g_test_add_func ("/pto/host/guest-waits", test_guest_waits);
  g_test_add_func ("/pto/host/keeper-goes-on", test_keeper_goes_on);
  g_test_add_func ("/pto/host/idle", test_idle);
  g_test_add_func ("/pto/host/storm", test_storm);
  add_for_backends ("host-inside", test_nested);
  return g_test_run ();
}
