/* test-shared.c: do processes find each other on a word, and does a ring reach who listens?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "exec-test.h"
#include "../../pto/exec/shared-wait.h"

#include <fcntl.h>
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

/* What the processes share. */
struct page
{
  struct pto_word ping, pong;
  struct pto_bell bell;
  uint32_t rounds;
  uint64_t spin_ns;
  bool jitter;
  uint32_t seen; /* plain: handed over with the words */
};

static struct page *
page_new (void)
{
  struct page *page
      = mmap (NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  g_assert_true (page != MAP_FAILED);
  pto_word_init (&page->ping, 0, false);
  pto_word_init (&page->pong, 0, false);
  pto_bell_init (&page->bell, -1);
  return page;
}

static void
page_free (struct page *page)
{
  g_assert_cmpint (munmap (page, sizeof *page), ==, 0);
}

/* A child that does fn and ends; it does not outlive the test. */
static pid_t
child_new (void (*fn) (struct page *page), struct page *page)
{
  pid_t parent = getpid ();
  pid_t pid = fork ();

  g_assert_cmpint (pid, >=, 0);
  if (pid != 0)
    return pid;
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  if (getppid () != parent)
    _exit (1);
  fn (page);
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

/* Until the process has gone to sleep in the kernel. */
static void
await_sleep (pid_t pid)
{
  char path[64], state = 0;

  g_snprintf (path, sizeof path, "/proc/%d/stat", (int) pid);
  while (state != 'S')
    {
      FILE *file = fopen (path, "r");

      g_assert_nonnull (file);
      g_assert_cmpint (fscanf (file, "%*d (%*[^)]) %c", &state), ==, 1);
      fclose (file);
      sched_yield ();
    }
}

static void
await_parked (struct pto_word *word, pid_t pid)
{
  while (atomic_load (&word->parked) == 0)
    sched_yield ();
  await_sleep (pid);
}

static void
shared_wait (struct page *page, struct pto_word *word, uint32_t value)
{
  uint32_t seen;

  while ((seen = pto_word_get (word)) != value)
    pto_shared_park (NULL, word, seen, page->spin_ns, PTO_NEVER);
}

static void
dawdle (const struct page *page, uint64_t *state)
{
  if (!page->jitter)
    return;
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  for (volatile uint32_t i = (uint32_t) (*state >> 33) % 150; i > 0; i--)
    ;
}

/* --- words --- */

static void
pong_main (struct page *page)
{
  uint64_t state = 1;

  for (uint32_t i = 1; i <= page->rounds; i++)
    {
      shared_wait (page, &page->ping, i);
      page->seen++;
      dawdle (page, &state);
      pto_shared_set (NULL, &page->pong, i);
    }
}

static void
ping_pong (uint64_t spin_ns, bool jitter, uint32_t rounds)
{
  struct page *page = page_new ();
  uint64_t state = 2;
  pid_t pid;

  page->rounds = rounds;
  page->spin_ns = spin_ns;
  page->jitter = jitter;
  pid = child_new (pong_main, page);
  for (uint32_t i = 1; i <= rounds; i++)
    {
      page->seen++;
      pto_shared_set (NULL, &page->ping, i);
      dawdle (page, &state);
      shared_wait (page, &page->pong, i);
    }
  child_join (pid);
  g_assert_cmpuint (page->seen, ==, 2 * rounds);
  page_free (page);
}

static void
test_ping_pong (void)
{
  ping_pong (0, false, SCALE (20000));
  ping_pong (20000, false, SCALE (20000));
}

/* A change just before, between and after the two looks that a parker takes at its word. */
static void
test_jitter (void)
{
  ping_pong (0, true, SCALE (50000));
  ping_pong (300, true, SCALE (50000));
}

static void
park_main (struct page *page)
{
  shared_wait (page, &page->ping, 1);
}

/* Asleep for certain, and woken. */
static void
test_sleeper (void)
{
  struct page *page = page_new ();
  pid_t pid = child_new (park_main, page);

  await_parked (&page->ping, pid);
  pto_shared_set (NULL, &page->ping, 1);
  child_join (pid);
  /* Back from its sleep it is parked no more, so that wakers are spared the kernel. */
  g_assert_cmpuint (page->ping.parked, ==, 0);
  page_free (page);
}

/* Who is killed while it sleeps leaves nothing that the next one stumbles over. */
static void
test_killed_sleeper (void)
{
  struct page *page = page_new ();
  pid_t pid = child_new (park_main, page);
  int status;

  await_parked (&page->ping, pid);
  g_assert_cmpint (kill (pid, SIGKILL), ==, 0);
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpuint (page->ping.parked, ==, 1);
  pto_shared_set (NULL, &page->ping, 2); /* for nobody */
  pid = child_new (park_main, page);
  await_parked (&page->ping, pid);
  pto_shared_set (NULL, &page->ping, 1);
  child_join (pid);
  page_free (page);
}

static void
test_deadline (void)
{
  struct page *page = page_new ();
  uint64_t now = pto_wall_clock ();
  uint64_t spins[] = { 0, 100000, 60 * (uint64_t) 1000000000u };

  g_assert_cmpint (pto_shared_park (NULL, &page->ping, 1, 0, PTO_NEVER), ==, PTO_PARK_WOKEN);
  g_assert_cmpint (pto_shared_park (NULL, &page->ping, 0, 0, now), ==, PTO_PARK_TIMEOUT);
  /* Nobody spins beyond the deadline. */
  for (gsize i = 0; i < G_N_ELEMENTS (spins); i++)
    {
      uint64_t deadline = pto_wall_clock () + 1000000;

      while (pto_shared_park (NULL, &page->ping, 0, spins[i], deadline) != PTO_PARK_TIMEOUT)
        ;
      g_assert_cmpuint (pto_wall_clock (), >=, deadline);
    }
  g_assert_cmpuint (page->ping.parked, ==, 0);
  page_free (page);
}

/* A signal is no wake-up that anybody misses: the caller looks again. */
static void
nothing (int signo)
{
}

static void
interrupted_main (struct page *page)
{
  struct sigaction action = { .sa_handler = nothing };

  sigaction (SIGUSR1, &action, NULL);
  if (pto_shared_park (NULL, &page->ping, 0, 0, PTO_NEVER) != PTO_PARK_WOKEN)
    _exit (2);
  if (pto_word_get (&page->ping) != 0)
    _exit (3);
  shared_wait (page, &page->ping, 1);
}

static void
test_signal (void)
{
  struct page *page = page_new ();
  pid_t pid = child_new (interrupted_main, page);

  await_parked (&page->ping, pid);
  atomic_store (&page->ping.parked, 0);
  kill (pid, SIGUSR1);
  await_parked (&page->ping, pid);
  pto_shared_set (NULL, &page->ping, 1);
  child_join (pid);
  page_free (page);
}

/* --- the same words among actors --- */

struct actors
{
  struct pto_exec *exec;
  struct page *page;
};

static void
actor_pong_main (void *arg)
{
  struct actors *actors = arg;

  for (uint32_t i = 1; i <= actors->page->rounds; i++)
    {
      while (pto_word_get (&actors->page->ping) != i)
        pto_shared_park (actors->exec, &actors->page->ping, i - 1, 1000, PTO_NEVER);
      actors->page->seen++;
      pto_shared_set (actors->exec, &actors->page->pong, i);
    }
}

static void
test_actors (gconstpointer backend)
{
  struct page *page = page_new ();
  struct actors actors = { new_exec (GPOINTER_TO_INT (backend), 2, 3), page };

  page->rounds = SCALE (20000);
  pto_exec_enter (actors.exec);
  spawn (actors.exec, 1, actor_pong_main, &actors);
  for (uint32_t i = 1; i <= page->rounds; i++)
    {
      page->seen++;
      pto_shared_set (actors.exec, &page->ping, i);
      while (pto_word_get (&page->pong) != i)
        pto_shared_park (actors.exec, &page->pong, i - 1, 1000, PTO_NEVER);
    }
  pto_exec_join (actors.exec);
  pto_exec_leave (actors.exec);
  g_assert_cmpuint (page->seen, ==, 2 * page->rounds);
  pto_exec_free (actors.exec);
  page_free (page);
}

/* An actor sets, another process waits: one call reaches it. */
static void
setter_main (void *arg)
{
  struct actors *actors = arg;

  for (uint32_t i = 1; i <= actors->page->rounds; i++)
    {
      pto_shared_set (actors->exec, &actors->page->ping, i);
      while (pto_word_get (&actors->page->pong) != i)
        sched_yield ();
    }
}

static void
test_actor_and_process (gconstpointer backend)
{
  struct page *page = page_new ();
  struct actors actors;
  pid_t pid;

  page->rounds = SCALE (2000);
  pid = child_new (pong_main, page); /* before there are threads */
  actors = (struct actors){ new_exec (GPOINTER_TO_INT (backend), 1, 3), page };
  spawn (actors.exec, 0, setter_main, &actors);
  pto_exec_join (actors.exec);
  pto_exec_free (actors.exec);
  child_join (pid);
  g_assert_cmpuint (page->seen, ==, page->rounds);
  page_free (page);
}

/* --- the bell --- */

static void
ringer_main (struct page *page)
{
  uint64_t state = (uint64_t) getpid ();

  for (uint32_t i = 0; i < page->rounds; i++)
    {
      pto_bell_ring (NULL, &page->bell);
      dawdle (page, &state);
    }
}

/* The guest's side of pto/exec/exec-host.c, alone: every ring is heard, also the last. */
static void
test_ring_sleeper (void)
{
  struct page *page = page_new ();
  pid_t pids[3];
  uint32_t seen;

  page->rounds = SCALE (50000);
  page->jitter = true;
  atomic_fetch_or (&page->bell.asleep, PTO_BELL_LISTENS);
  for (gsize i = 0; i < G_N_ELEMENTS (pids); i++)
    pids[i] = child_new (ringer_main, page);
  while ((seen = pto_word_get (&page->bell.word)) != G_N_ELEMENTS (pids) * page->rounds)
    pto_bell_sleep (&page->bell, seen, PTO_NEVER);
  for (gsize i = 0; i < G_N_ELEMENTS (pids); i++)
    child_join (pids[i]);
  g_assert_cmpuint (page->bell.asleep, ==, PTO_BELL_LISTENS);
  page_free (page);
}

static void
bell_main (struct page *page)
{
  atomic_fetch_or (&page->bell.asleep, PTO_BELL_LISTENS);
  pto_bell_sleep (&page->bell, 0, PTO_NEVER);
}

/* Asleep for certain, in another process. */
static void
test_ring_wakes (void)
{
  struct page *page = page_new ();
  pid_t pid = child_new (bell_main, page);

  while ((atomic_load (&page->bell.asleep) & PTO_BELL_SLEEPS) == 0)
    sched_yield ();
  await_sleep (pid);
  pto_bell_ring (NULL, &page->bell);
  child_join (pid);
  g_assert_cmpuint (page->bell.asleep, ==, PTO_BELL_LISTENS);
  page_free (page);
}

static bool
is_readable (int fd)
{
  struct pollfd pollfd = { .fd = fd, .events = POLLIN };

  return poll (&pollfd, 1, 0) == 1;
}

/* The event is for a keeper that sleeps while no guest listens, and for nobody else. */
static void
test_ring_keeper (void)
{
  struct pto_bell bell;
  int event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);

  g_assert_cmpint (event, >=, 0);
  pto_bell_init (&bell, event);
  pto_bell_ring (NULL, &bell);
  g_assert_false (is_readable (event));
  atomic_store (&bell.asleep, PTO_BELL_KEEPER | PTO_BELL_LISTENS);
  pto_bell_ring (NULL, &bell);
  g_assert_false (is_readable (event));
  atomic_store (&bell.asleep, PTO_BELL_KEEPER);
  pto_bell_ring (NULL, &bell);
  g_assert_true (is_readable (event));
  pto_bell_ring (NULL, &bell);
  pto_bell_quiet (event);
  g_assert_false (is_readable (event));
  pto_bell_quiet (event); /* does not block */
  /* Nor does a ring that the event has no room for. */
  g_assert_cmpint (eventfd_write (event, UINT64_MAX - 1), ==, 0);
  pto_bell_ring (NULL, &bell);
  g_assert_true (is_readable (event));
  g_assert_cmpuint (pto_word_get (&bell.word), ==, 5);
  close (event);
}

/* Who rings has closed what it does not know; its own file has the number now. */
static void
test_ring_event_closed (void)
{
  int event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK), other, file;
  int listeners = fcntl (event, F_DUPFD_CLOEXEC, 0);
  struct pto_bell bell;

  pto_bell_init (&bell, event);
  g_assert_cmpint (bell.event_id, >=, 0);
  atomic_store (&bell.asleep, PTO_BELL_KEEPER);
  close (event);
  pto_bell_ring (NULL, &bell);
  file = memfd_create ("own", MFD_CLOEXEC);
  g_assert_cmpint (dup2 (file, event), ==, event);
  pto_bell_ring (NULL, &bell);
  g_assert_cmpint (lseek (event, 0, SEEK_END), ==, 0);
  other = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  g_assert_cmpint (dup2 (other, event), ==, event);
  pto_bell_ring (NULL, &bell);
  g_assert_false (is_readable (other));
  g_assert_cmpint (dup2 (listeners, event), ==, event);
  pto_bell_ring (NULL, &bell);
  g_assert_true (is_readable (listeners));
  g_assert_cmpuint (pto_word_get (&bell.word), ==, 4);
  close (event);
  close (other);
  close (listeners);
  if (file != event)
    close (file);
}

/* Another process writes the event that this one polls. */
static void
test_ring_event (void)
{
  struct page *page = page_new ();
  int event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct pollfd pollfd = { .fd = event, .events = POLLIN };
  pid_t pid;

  pto_bell_init (&page->bell, event);
  atomic_store (&page->bell.asleep, PTO_BELL_KEEPER);
  page->rounds = 1;
  pid = child_new (ringer_main, page);
  g_assert_cmpint (poll (&pollfd, 1, -1), ==, 1);
  g_assert_cmpuint (pto_word_get (&page->bell.word), ==, 1);
  child_join (pid);
  close (event);
  page_free (page);
}

/* On det the listener is an actor, parked on the bell's word. */
static void
listener_main (void *arg)
{
  struct actors *actors = arg;

  while (actors->page->seen < actors->page->rounds)
    {
      pto_shared_park (actors->exec, &actors->page->bell.word, actors->page->seen, 0, PTO_NEVER);
      actors->page->seen = pto_word_get (&actors->page->bell.word);
    }
}

static void
actor_ringer_main (void *arg)
{
  struct actors *actors = arg;

  for (uint32_t i = 0; i < actors->page->rounds / 2; i++)
    {
      pto_bell_ring (actors->exec, &actors->page->bell);
      pto_yield (actors->exec);
    }
}

static void
test_ring_actor (void)
{
  struct page *page = page_new ();
  struct actors actors = { new_exec (PTO_BACKEND_DET, 1, 5), page };

  page->rounds = 1000;
  spawn (actors.exec, 0, listener_main, &actors);
  spawn (actors.exec, 0, actor_ringer_main, &actors);
  spawn (actors.exec, 0, actor_ringer_main, &actors);
  pto_exec_join (actors.exec);
  g_assert_cmpuint (pto_exec_live (actors.exec), ==, 0);
  g_assert_cmpuint (page->seen, ==, 1000);
  pto_exec_free (actors.exec);
  page_free (page);
}

static void
test_layout (void)
{
  /* Ringers of other CPUs share the line of word and asleep with nothing else. */
  g_assert_cmpuint (sizeof (struct pto_bell), ==, 64);
  g_assert_cmpuint (_Alignof(struct pto_bell), ==, 64);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/shared/layout", test_layout);
  g_test_add_func ("/pto/shared/ping-pong", test_ping_pong);
  g_test_add_func ("/pto/shared/jitter", test_jitter);
  g_test_add_func ("/pto/shared/sleeper", test_sleeper);
  g_test_add_func ("/pto/shared/killed-sleeper", test_killed_sleeper);
  g_test_add_func ("/pto/shared/deadline", test_deadline);
  g_test_add_func ("/pto/shared/signal", test_signal);
  g_test_add_func ("/pto/shared/ring/sleeper", test_ring_sleeper);
  g_test_add_func ("/pto/shared/ring/wakes", test_ring_wakes);
  g_test_add_func ("/pto/shared/ring/keeper", test_ring_keeper);
  g_test_add_func ("/pto/shared/ring/event", test_ring_event);
  g_test_add_func ("/pto/shared/ring/event-closed", test_ring_event_closed);
  g_test_add_func ("/pto/shared/ring/actor", test_ring_actor);
  add_for_backend ("shared/process", PTO_BACKEND_HOST, test_actor_and_process);
  add_for_backend ("shared/process", PTO_BACKEND_DET, test_actor_and_process);
  add_for_backend ("shared/process", PTO_BACKEND_THREADS, test_actor_and_process);
  add_for_backend ("shared/process", PTO_BACKEND_PAR, test_actor_and_process);
  add_for_backends ("shared/actors", test_actors);
  return g_test_run ();
}
