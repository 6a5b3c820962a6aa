/* test-host-explore.c: is no ring lost and nothing carried twice, whichever way guest, keeper and
 * ringers interleave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The host back end and the bell are built once more with a switch point at every atomic operation,
 * and with the kernel (futex, eventfd, clock) played by this program. Guest, keeper, children and
 * other threads are actors of det, whose steps are explored as explorer.h says, in a build with
 * sequentially consistent interleavings and in one where every load may give what the orders in the
 * source allow it to. The fibers and their switches are real.
 *
 * The back end is included, for each path ends with a look at its words.
 */
#ifdef PTO_WEAK
/* What runs is another object, compiled with the machine's instrumentation. */
#define pto_host_ops host_ops_not_run
#endif
#include "../../pto/exec/exec-host.c"
#undef pto_host_ops

#include "../weak/explorer.h"
#include "../weak/sides.h"

#include <glib.h>

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WATCHDOG_S 290
#define EVENT 77 /* looks like a descriptor */

/* The address sanitizer takes ten times as long: some paths of each scenario are enough for it. */
#ifdef PTO_ASAN
#define BOUND(n) ((n) -2)
#define AT_LEAST(n) 1u
#elif defined(PTO_WEAK)
/* An old value stands for a preemption. */
#define BOUND(n) ((n) -1)
#define AT_LEAST(n) ((n) / 100)
#else
#define BOUND(n) (n)
#define AT_LEAST(n) (n)
#endif

/* --- the world --- */

/* What the actors say to each other. Atomic where it is not handed over under the token or by a
 * word that is tested. Executor, bell and fibers last for all schedules of a scenario. */
struct world
{
  struct pto_exec *exec;
  struct pto_bell bell;
  uint32_t mails; /* before this schedule */
  uint32_t ordered;

  uint32_t others; /* all but the keeper */
  uint32_t ended;  /* of them */

  uint64_t event; /* of the eventfd */
  struct pto_word poll;
  uint32_t writes; /* of the event, ever */
  uint32_t sleeps; /* of the guest, ever */

  _Atomic uint32_t mail;   /* answers by children; the bell says that there are some */
  uint32_t served;         /* of them, by the pump */
  struct pto_word clerk;   /* local: the pump runs the clerk */
  uint32_t filed;          /* by the clerk */
  struct pto_word done;    /* the pump to the guest */
  struct pto_word orders;  /* the guest or another thread to the scheduler */
  uint32_t handled;        /* of them */
  struct pto_word message; /* another thread to the guest */
  bool busy;               /* a fiber is in the middle of something */
  bool held;               /* the guest keeps all from carrying */
};

static struct world world;
/* --- the kernel --- */

long
syscall (long number, ...)
{
  _Atomic uint32_t *word;
  const struct timespec *limit;
  uint32_t value;
  va_list list;
  int operation, error;

  g_assert_cmpint (number, ==, SYS_futex);
  va_start (list, number);
  word = va_arg (list, _Atomic uint32_t *);
  operation = va_arg (list, int);
  value = va_arg (list, uint32_t);
  limit = va_arg (list, const struct timespec *);
  va_end (list);
  if (operation == FUTEX_WAKE)
    {
      explorer_futex_wake (word);
      return 0;
    }
  g_assert_cmpint (operation, ==, FUTEX_WAIT_BITSET);
  world.sleeps += word == &world.bell.word.value;
  error = explorer_futex_wait (word, value,
                               limit != NULL ? (uint64_t) limit->tv_sec * 1000000000u
                                                   + (uint64_t) limit->tv_nsec
                                             : PTO_NEVER);
  errno = error;
  return error != 0 ? -1 : 0;
}

int
eventfd_write (int fd, eventfd_t value)
{
  g_assert_cmpint (fd, ==, EVENT);
  explorer_point ();
  world.event += value;
  world.writes++;
  pto_unpark (explorer.exec, &world.poll);
  atomic_fetch_add (&world.poll.value, 1);
  pto_unpark (explorer.exec, &world.poll);
  return 0;
}

int
eventfd_read (int fd, eventfd_t *value)
{
  g_assert_cmpint (fd, ==, EVENT);
  explorer_point ();
  *value = world.event;
  world.event = 0;
  return *value != 0 ? 0 : -1;
}

/* The keeper's poll(): true when the event is readable, false when the others have ended and it is
 * not. So the end of a schedule wakes nobody who ought to have been woken by a ring. */
static bool
poll_event (void)
{
  for (;;)
    {
      uint32_t seen = pto_word_get (&world.poll);

      explorer_point ();
      if (world.event != 0)
        return true;
      if (world.ended == world.others)
        return false;
      pto_park (explorer.exec, &world.poll, seen, PTO_NEVER);
    }
}

/* --- fibers --- */

static enum pto_park_result
park (struct pto_word *word, uint32_t seen, uint64_t deadline)
{
  struct pto_actor *self = explorer_thread_self ()->current;

  return self->exec->ops->park (self, word, seen, deadline);
}

static void
wait_for (struct pto_word *word, uint32_t value)
{
  uint32_t seen;

  while ((seen = weak_word_get (word)) < value)
    park (word, seen, PTO_NEVER);
}

/* One at a time, and none while the guest holds the token. */
static void
work (void)
{
  g_assert_false (world.busy);
  g_assert_false (world.held);
  world.busy = true;
  explorer_point ();
  explorer_point ();
  g_assert_false (world.held);
  world.busy = false;
}

/* The keeper goes on with nothing once the guest wants the token. */
static void
yield (void)
{
  struct host *host = (struct host *) world.exec;
  bool wanted = (atomic_load (&host->token) & WANTED) != 0;

  world.exec->ops->yield (explorer_thread_self ()->current);
#ifdef PTO_WEAK
  /* It may see that late. */
  (void) wanted;
#else
  if (wanted)
    g_assert_true (explorer_thread_self () == world.exec->thread);
#endif
}

static void
pump_main (void *arg)
{
  (void) arg;
  for (;;)
    {
      uint32_t seen = weak_word_get (&world.bell.word);
      uint32_t mail = weak_load (&world.mail);

      if (world.served == mail)
        {
          g_assert_cmpint (park (&world.bell.word, seen, PTO_NEVER), ==, PTO_PARK_WOKEN);
          continue;
        }
      work ();
      world.served = mail;
      pto_word_run (world.exec, &world.clerk, mail);
      /* It ran at once. */
      g_assert_cmpuint (world.filed, ==, mail);
      weak_word_set (world.exec, &world.done, mail);
    }
}

static void
clerk_main (void *arg)
{
  (void) arg;
  for (;;)
    {
      wait_for (&world.clerk, world.filed + 1);
      world.filed = weak_word_get (&world.clerk);
    }
}

static void
scheduler_main (void *arg)
{
  (void) arg;
  for (;;)
    {
      wait_for (&world.orders, world.handled + 1);
      work ();
      yield ();
      world.handled = weak_word_get (&world.orders);
    }
}

/* --- sides --- */

static void
enter (void)
{
  struct pto_thread *place = explorer_thread_self ();

  place->current = &world.exec->guest;
  world.exec->thread = place;
  world.exec->ops->enter (world.exec, place);
}

static void
leave_exec (void)
{
  world.exec->ops->leave (world.exec);
  explorer_thread_self ()->current = NULL;
  world.exec->thread = NULL;
}

/* The guest's code goes on and on: it counts on nothing that leaving would do. */
static void
stay (void)
{
  explorer_thread_self ()->current = NULL;
  world.exec->thread = NULL;
}

static void
keeper (void)
{
  do
    world.exec->ops->keep (world.exec);
  while (poll_event ());
}

static void
child (void)
{
  weak_add (&world.mail, 1);
  pto_bell_ring (NULL, &world.bell);
}

static void
child_twice (void)
{
  child ();
  child ();
}

/* Another thread of the parent. */
static void
orderer (void)
{
  weak_word_set (world.exec, &world.orders, world.ordered + 1);
}

static void
orderer_twice (void)
{
  weak_word_set (world.exec, &world.orders, world.ordered + 1);
  weak_word_set (world.exec, &world.orders, world.ordered + 2);
}

static void
messenger (void)
{
  weak_word_set (world.exec, &world.message, 1);
}

static void
timer (void)
{
  explorer_point ();
  sides_pass ((uint64_t) 2000 * SIDES_STEP_NS);
}

static void
guest_comes_and_goes (void)
{
  enter ();
  explorer_point ();
  leave_exec ();
}

static void
guest_waits_for_one (void)
{
  enter ();
  wait_for (&world.done, world.mails + 1);
  leave_exec ();
}

static void
guest_waits_and_stays (void)
{
  enter ();
  wait_for (&world.done, world.mails + 1);
  stay ();
}

static void
guest_waits_for_two (void)
{
  enter ();
  wait_for (&world.done, world.mails + 2);
  leave_exec ();
}

static void
guest_orders_and_helps (void)
{
  enter ();
  weak_word_set (world.exec, &world.orders, world.ordered + 1);
  world.exec->ops->help (world.exec);
  stay ();
}

static void
guest_orders_and_leaves (void)
{
  enter ();
  weak_word_set (world.exec, &world.orders, world.ordered + 1);
  leave_exec ();
}

/* The keeper may be at it. */
static void
guest_orders_and_waits (void)
{
  enter ();
  weak_word_set (world.exec, &world.orders, world.ordered + 1);
  wait_for (&world.done, world.mails + 1);
  leave_exec ();
}

static void
guest_waits_for_message (void)
{
  enter ();
  wait_for (&world.message, 1);
  leave_exec ();
}

static uint64_t in_time, too_late;

static void
guest_waits_with_deadline (void)
{
  uint64_t deadline = sides_clock + (uint64_t) 1000 * SIDES_STEP_NS;
  enum pto_park_result result;

  enter ();
  do
    result = park (&world.message, 0, deadline);
  while (result == PTO_PARK_WOKEN && weak_word_get (&world.message) == 0);
  if (result == PTO_PARK_TIMEOUT)
    {
      g_assert_cmpuint (sides_clock, >=, deadline);
      too_late++;
    }
  else
    in_time++;
  /* Neither the deadline nor a late waker's wake-up is in the way of the next wait. */
  wait_for (&world.message, 1);
  wait_for (&world.done, world.mails + 1);
  g_assert_null (atomic_load (&world.message.waiter));
  leave_exec ();
}

static void
guest_holds (void)
{
  enter ();
  world.exec->ops->hold (world.exec, true);
  g_assert_false (world.busy);
  world.held = true;
  explorer_point ();
  explorer_point ();
  world.held = false;
  world.exec->ops->hold (world.exec, false);
  leave_exec ();
}

static void
begin_side (void *arg)
{
  void (*fn) (void) = *(void (*const *) (void)) arg;

  fn ();
  if (fn == keeper)
    return;
  world.ended++;
  atomic_fetch_add (&world.poll.value, 1);
  pto_unpark (explorer.exec, &world.poll);
}

/* --- schedules --- */

struct scenario
{
  uint32_t bound;
  uint64_t at_least; /* schedules */
  void (*sides[SIDES_MAX]) (void);
  /* What there must be at the end. */
  uint32_t mail, orders;
};

static void
spawn (const char *name, void (*fn) (void *))
{
  char error[256] = "";

  if (pto_exec_spawn (world.exec, 0, name, fn, NULL, error, sizeof error) != 0)
    g_error ("%s", error);
}

static void
world_init (const struct scenario *scenario)
{
  struct pto_exec_config config
      = { .backend = PTO_BACKEND_HOST, .domains = 1, .stack_size = 32768, .bell = &world.bell };
  bool kept = false;
  uint32_t n = 0;
  char error[256];

  memset (&world, 0, sizeof world);
  for (uint32_t i = 0; i < SIDES_MAX && scenario->sides[i] != NULL; i++)
    {
      n++;
      kept |= scenario->sides[i] == keeper;
    }
  world.others = n - kept;
  pto_bell_init (&world.bell, kept ? EVENT : -1);
  pto_word_init (&world.clerk, 0, true);
  pto_word_init (&world.done, 0, false);
  pto_word_init (&world.orders, 0, false);
  world.exec = pto_exec_new (&config, error, sizeof error);
  g_assert_nonnull (world.exec);
  spawn ("clerk", clerk_main);
  spawn ("scheduler", scheduler_main);
  spawn ("pump", pump_main);
}

/* As after world_init(), but for numbers that grow. */
static void
world_begin (const void *data)
{
  const struct scenario *scenario = data;

  /* All fibers are parked when it begins, and no ring is left over. */
  enter ();
  world.exec->ops->help (world.exec);
  leave_exec ();
  world.mails = world.served;
  world.ordered = world.handled;
  world.ended = 0;
  world.event = 0;
  atomic_store (&world.bell.asleep, 0);
  pto_word_init (&world.poll, 0, false);
  pto_word_init (&world.message, 0, false);
  for (uint32_t i = 0; i < SIDES_MAX && scenario->sides[i] != NULL; i++)
    sides_start (begin_side, (void *) &scenario->sides[i]);
}

static void
check_world (const void *data)
{
  const struct scenario *scenario = data;
  struct host *host = (struct host *) world.exec;

  if (pto_exec_live (explorer.exec) != 0)
    g_error ("schedule %" G_GUINT64_FORMAT ": somebody sleeps for ever (served %u, handled %u)",
             explorer.schedules, world.served, world.handled);
  if (world.served - world.mails != scenario->mail
      || world.handled - world.ordered != scenario->orders)
    g_error ("schedule %" G_GUINT64_FORMAT ": served %u of %u, handled %u of %u",
             explorer.schedules, world.served - world.mails, scenario->mail,
             world.handled - world.ordered, scenario->orders);
  g_assert_cmpuint (world.filed, ==, world.served);
  g_assert_cmpuint (host->token, ==, 0);
  g_assert_null (host->inbox);
  g_assert_null (host->head);
  g_assert_nonnull (host->listener);
  /* Without a keeper, a ring that comes when the guest has left waits for the next guest. */
  if (world.bell.event >= 0)
    g_assert_cmpuint (host->heard, ==, world.bell.word.value);
  g_assert_cmpuint (world.bell.asleep, ==, world.bell.event >= 0 ? PTO_BELL_KEEPER : 0);
}

static void
explore (const struct scenario *scenario)
{
#ifdef PTO_TSAN
  g_test_skip ("one thread, whose stacks the sanitizer would mix up");
  return;
#endif
  world_init (scenario);
  sides_explore (&(struct sides_paths){ .bound = BOUND (scenario->bound),
                                        .stale_bound = 1,
                                        .at_least = AT_LEAST (scenario->at_least),
                                        .begin = world_begin,
                                        .end = check_world },
                 scenario);
  g_test_message ("%u writes of the event, %u sleeps of the guest", world.writes, world.sleeps);
  pto_exec_free (world.exec);
}

/* --- scenarios --- */

/* Nobody is ever in run(). */
static void
test_keeper_alone (void)
{
  explore (&(struct scenario){
      .bound = 4, .at_least = 20000, .sides = { keeper, child_twice }, .mail = 2 });
  explore (&(struct scenario){
      .bound = 3, .at_least = 50000, .sides = { keeper, child, orderer }, .mail = 1, .orders = 1 });
  explore (&(struct scenario){
      .bound = 4, .at_least = 10000, .sides = { keeper, orderer_twice }, .orders = 2 });
}

static void
test_guest_alone (void)
{
  explore (&(struct scenario){
      .bound = 4, .at_least = 2000, .sides = { guest_waits_for_one, child }, .mail = 1 });
  explore (&(struct scenario){
      .bound = 3, .at_least = 50000, .sides = { guest_waits_for_two, child, child }, .mail = 2 });
}

static void
test_guest_and_keeper (void)
{
  explore (&(struct scenario){
      .bound = 3, .at_least = 200000, .sides = { guest_waits_for_one, keeper, child }, .mail = 1 });
}

/* An answer while the guest computes, comes, goes: the keeper's. */
static void
test_away (void)
{
  explore (&(struct scenario){
      .bound = 3, .at_least = 50000, .sides = { guest_comes_and_goes, keeper, child }, .mail = 1 });
  /* The second answer comes when the guest has ended its wait, or nearly. */
  explore (&(struct scenario){ .bound = 3,
                               .at_least = 100000,
                               .sides = { guest_waits_and_stays, keeper, child_twice },
                               .mail = 2 });
}

static void
test_two_children (void)
{
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 100000,
                               .sides = { guest_waits_for_two, keeper, child, child },
                               .mail = 2 });
}

/* What the guest wakes it carries itself, unless the keeper is at it: then that one does. */
static void
test_help (void)
{
  explore (&(struct scenario){ .bound = 3,
                               .at_least = 100000,
                               .sides = { guest_orders_and_helps, keeper, child },
                               .mail = 1,
                               .orders = 1 });
  explore (&(struct scenario){ .bound = 3,
                               .at_least = 100000,
                               .sides = { guest_orders_and_leaves, keeper, child },
                               .mail = 1,
                               .orders = 1 });
  explore (&(struct scenario){ .bound = 3,
                               .at_least = 100000,
                               .sides = { guest_orders_and_waits, keeper, child },
                               .mail = 1,
                               .orders = 1 });
}

/* Woken by another thread, not by a fiber. */
static void
test_message (void)
{
  explore (&(struct scenario){
      .bound = 4, .at_least = 2000, .sides = { guest_waits_for_message, messenger } });
  explore (&(struct scenario){
      .bound = 3, .at_least = 100000, .sides = { guest_waits_for_message, keeper, messenger } });
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 100000,
                               .sides = { guest_waits_for_message, keeper, messenger, orderer },
                               .orders = 1 });
}

/* A deadline that comes before, while and after the guest is woken. */
static void
test_deadline (void)
{
  in_time = too_late = 0;
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 50000,
                               .sides = { guest_waits_with_deadline, timer, messenger, child },
                               .mail = 1 });
#if !defined(PTO_TSAN) && !defined(PTO_ASAN)
  explorer_assert_cmpuint (in_time, >, AT_LEAST (1000));
  explorer_assert_cmpuint (too_late, >, AT_LEAST (1000));
#endif
}

/* The guest keeps everybody out, and nothing that came meanwhile is forgotten. */
static void
test_hold (void)
{
  explore (&(struct scenario){
      .bound = 3, .at_least = 100000, .sides = { guest_holds, keeper, child }, .mail = 1 });
}

/* --- words without an executor --- */

static struct pto_word question, answer;

static void
asker (void)
{
  for (uint32_t i = 1; i <= 2; i++)
    {
      pto_shared_set (NULL, &question, i);
      while (weak_word_get (&answer) != i)
        pto_shared_park (NULL, &answer, i - 1, i, PTO_NEVER);
    }
}

static void
answerer (void)
{
  for (uint32_t i = 1; i <= 2; i++)
    {
      while (weak_word_get (&question) != i)
        pto_shared_park (NULL, &question, i - 1, 0, PTO_NEVER);
      pto_shared_set (NULL, &answer, i);
    }
  /* for the next schedule */
  pto_word_init (&question, 0, false);
}

static void
late_reader (void)
{
  asker ();
  pto_word_init (&answer, 0, false);
}

static void
test_words (void)
{
  pto_word_init (&question, 0, false);
  pto_word_init (&answer, 0, false);
  explore (
      &(struct scenario){ .bound = 4, .at_least = 100000, .sides = { late_reader, answerer } });
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/host-explore/words", test_words);
  g_test_add_func ("/pto/host-explore/keeper-alone", test_keeper_alone);
  g_test_add_func ("/pto/host-explore/guest-alone", test_guest_alone);
  g_test_add_func ("/pto/host-explore/guest-and-keeper", test_guest_and_keeper);
  g_test_add_func ("/pto/host-explore/away", test_away);
  g_test_add_func ("/pto/host-explore/two-children", test_two_children);
  g_test_add_func ("/pto/host-explore/help", test_help);
  g_test_add_func ("/pto/host-explore/message", test_message);
  g_test_add_func ("/pto/host-explore/deadline", test_deadline);
  g_test_add_func ("/pto/host-explore/hold", test_hold);
  return g_test_run ();
}
