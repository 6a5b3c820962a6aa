/* test-par-explore.c: is nothing lost and nothing run twice, whichever way carriers, guest and
 * wakers interleave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The back end par runs on the machine of weak.h, with the kernel played: carriers, the guest and
 * other threads are sides (sides.h), whose steps are explored as explorer.h says. The fibers and
 * their switches are real.
 *
 * The back end is included, for each path ends with a look at its words. What runs is another
 * object, compiled with the machine's instrumentation.
 */
#define pto_par_ops par_ops_not_run
#include "../../pto/exec/exec-par.c"
#undef pto_par_ops

#include "../weak/explorer.h"
#include "../weak/sides.h"

#include <glib.h>

#define WATCHDOG_S 290
#define OTHERS_MAX 4u
#define DOMAINS 2u
#define PATIENCE 1000u /* far more than all others take to do all that they have to */

/* --- the world --- */

/* A clerk sits in each domain: it gets orders from outside and passes a part of the first one's on
 * to the second. */
struct world
{
  struct pto_exec *exec;
  struct pto_word orders[DOMAINS];
  uint32_t handled[DOMAINS];
  uint32_t letters[DOMAINS][3]; /* plain: one goes with each order */
  bool busy[DOMAINS];
  bool passes_on;
  bool holds_on;
  struct pto_word done;
  struct pto_word message;
  struct pto_word local[DOMAINS];
  uint64_t naps[DOMAINS]; /* until then the second actor of a domain waits */
  uint32_t naps_over;
  uint32_t n_others;
  struct side *others[OTHERS_MAX];
};

static struct world world;

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

static void
order (uint32_t domain, uint32_t number)
{
  weak_write (&world.letters[domain][number], sizeof world.letters[domain][number]);
  weak_word_set (world.exec, &world.orders[domain], number);
}

/* One actor of a domain at a time. */
static void
work (uint32_t domain)
{
  g_assert_false (world.busy[domain]);
  world.busy[domain] = true;
  explorer_point ();
  world.busy[domain] = false;
}

static void
clerk (uint32_t domain)
{
  for (;;)
    {
      uint32_t number;

      wait_for (&world.orders[domain], world.handled[domain] + 1);
      number = weak_word_get (&world.orders[domain]);
      for (uint32_t n = world.handled[domain] + 1; n <= number; n++)
        weak_read (&world.letters[domain][n], sizeof world.letters[domain][n]);
      work (domain);
      /* Its carrier has no time for anybody else. */
      for (uint32_t looks = 0; world.holds_on && domain == 1 && world.naps_over == 0; looks++)
        {
          g_assert_cmpuint (looks, <, PATIENCE);
          explorer_pause ();
        }
      world.handled[domain] = number;
      if (domain == 0 && world.passes_on)
        order (1, number);
      else
        {
          weak_add (&world.done.value, 1);
          world.exec->ops->unpark (world.exec, &world.done);
        }
    }
}

static void
clerk_main (void *arg)
{
  clerk (*(const uint32_t *) arg);
}

/* Waits for a moment, and then for ever. */
static void
napper_main (void *arg)
{
  uint32_t domain = *(const uint32_t *) arg;

  g_assert_cmpint (park (&world.local[domain], 0, world.naps[domain]), ==, PTO_PARK_TIMEOUT);
  world.naps_over++;
  weak_add (&world.done.value, 1);
  world.exec->ops->unpark (world.exec, &world.done);
  for (;;)
    park (&world.local[domain], 0, PTO_NEVER);
}

/* --- the others: what is not a carrier --- */

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

static void
orderer (void *arg)
{
  (void) arg;
  order (0, 1);
}

static void
orderer_twice (void *arg)
{
  (void) arg;
  order (0, 1);
  order (0, 2);
}

static void
second_orderer (void *arg)
{
  (void) arg;
  order (1, 1);
}

static void
messenger (void *arg)
{
  (void) arg;
  weak_word_set (world.exec, &world.message, 1);
}

static void
timer (void *arg)
{
  (void) arg;
  explorer_point ();
  sides_pass ((uint64_t) 2000 * SIDES_STEP_NS);
}

static void
guest_waits_for_one (void *arg)
{
  (void) arg;
  enter ();
  wait_for (&world.done, 1);
  leave_exec ();
}

static void
guest_waits_for_two (void *arg)
{
  (void) arg;
  enter ();
  wait_for (&world.done, 2);
  leave_exec ();
}

static void
guest_orders_and_waits (void *arg)
{
  (void) arg;
  enter ();
  order (0, 1);
  wait_for (&world.done, 1);
  leave_exec ();
}

/* The message may come while it carries the clerk, and the clerk's work is another's then. */
static void
guest_waits_for_message (void *arg)
{
  (void) arg;
  enter ();
  wait_for (&world.message, 1);
  leave_exec ();
}

static void
guest_helps (void *arg)
{
  (void) arg;
  enter ();
  order (0, 1);
  world.exec->ops->help (world.exec);
  leave_exec ();
}

/* Orders come while it has the domain, and nobody else runs it. */
static void
guest_claims (void *arg)
{
  (void) arg;
  enter ();
  if (world.exec->ops->claim (world.exec, 0))
    {
      g_assert_false (world.busy[0]);
      world.busy[0] = true;
      explorer_point ();
      world.busy[0] = false;
      world.exec->ops->release (world.exec, 0);
    }
  leave_exec ();
}

static uint64_t carried, not_carried;

static void
guest_carries (void *arg)
{
  (void) arg;
  enter ();
  /* The order is the bell. */
  weak_write (&world.letters[0][1], sizeof world.letters[0][1]);
  if (world.exec->ops->carry (world.exec, 0, &world.orders[0]))
    carried++;
  else
    {
      g_assert_cmpuint (weak_word_get (&world.orders[0]), ==, 0);
      order (0, 1);
      not_carried++;
    }
  leave_exec ();
}

static void
guest_ends_all (void *arg)
{
  struct pto_exec *exec = world.exec;

  (void) arg;
  enter ();
  wait_for (&world.done, 1);
  leave_exec ();
  world.exec = NULL;
  pto_exec_free (exec);
}

static uint64_t in_time, too_late;

static void
guest_waits_with_deadline (void *arg)
{
  uint64_t deadline = sides_clock + (uint64_t) 1000 * SIDES_STEP_NS;
  enum pto_park_result result;

  (void) arg;
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
  g_assert_null (atomic_load (&world.message.waiter));
  leave_exec ();
}

/* --- schedules --- */

struct scenario
{
  uint32_t bound;
  uint64_t at_least; /* schedules */
  uint32_t carriers;
  bool passes_on;
  bool holds_on;    /* the second domain's clerk, until a nap is over */
  uint32_t nappers; /* one in each domain, the last one's nap is the shortest */
  void (*others[OTHERS_MAX]) (void *arg);
  /* What there must be at the end. */
  uint32_t handled[DOMAINS];
};

static void
spawn (uint32_t domain, const char *name, void (*fn) (void *), const void *arg)
{
  char error[256] = "";

  if (pto_exec_spawn (world.exec, domain, name, fn, (void *) arg, error, sizeof error) != 0)
    g_error ("%s", error);
}

static void
world_begin (const void *data)
{
  const struct scenario *scenario = data;
  static const uint32_t domains[DOMAINS] = { 0, 1 };
  struct pto_exec_config config = { .backend = PTO_BACKEND_PAR,
                                    .domains = DOMAINS,
                                    .carriers = scenario->carriers,
                                    .stack_size = 32768 };
  char error[256];

  memset (&world, 0, sizeof world);
  world.passes_on = scenario->passes_on;
  world.holds_on = scenario->holds_on;
  for (uint32_t d = 0; d < DOMAINS; d++)
    {
      pto_word_init (&world.orders[d], 0, false);
      pto_word_init (&world.local[d], 0, true);
      world.naps[d] = sides_clock + (uint64_t) (1000 - 500 * d) * SIDES_STEP_NS;
    }
  pto_word_init (&world.done, 0, false);
  pto_word_init (&world.message, 0, false);
  world.exec = pto_exec_new (&config, error, sizeof error);
  g_assert_nonnull (world.exec);
  for (uint32_t d = 0; d < DOMAINS; d++)
    spawn (d, "clerk", clerk_main, &domains[d]);
  /* Everybody waits: the clerks for orders, the carriers for work. */
  pto_exec_join (explorer.exec);
  for (uint32_t d = scenario->nappers; d-- > 0;)
    spawn (d, "napper", napper_main, &domains[d]);
  for (uint32_t i = 0; i < OTHERS_MAX && scenario->others[i] != NULL; i++)
    world.others[world.n_others++] = sides_start (scenario->others[i], NULL);
}

static void
check_world (const void *data)
{
  const struct scenario *scenario = data;
  struct par *par = (struct par *) world.exec;

  for (uint32_t i = 0; i < world.n_others; i++)
    if (!world.others[i]->ended)
      g_error ("schedule %" G_GUINT64_FORMAT ": somebody sleeps for ever (handled %u, %u)",
               explorer.schedules, world.handled[0], world.handled[1]);
  for (uint32_t d = 0; d < DOMAINS; d++)
    if (world.handled[d] != scenario->handled[d])
      g_error ("schedule %" G_GUINT64_FORMAT ": domain %u handled order %u, not %u",
               explorer.schedules, d, world.handled[d], scenario->handled[d]);
  if (world.naps_over != scenario->nappers)
    g_error ("schedule %" G_GUINT64_FORMAT ": %u of %u naps are over", explorer.schedules,
             world.naps_over, scenario->nappers);
  if (par == NULL)
    {
      g_assert_cmpuint (pto_exec_live (explorer.exec), ==, 0);
      return;
    }
  g_assert_cmpuint (par->queued, ==, 0);
  /* All carriers sleep, and nobody counts as spinning. */
  g_assert_cmphex (par->idle, ==, (UINT64_C (1) << par->carrier_count) - 1);
  for (uint32_t d = 0; d < DOMAINS; d++)
    {
      g_assert_cmpuint (par->domains[d].state, ==, IDLE);
      g_assert_null (par->domains[d].inbox);
      g_assert_null (par->domains[d].head);
    }
  pto_exec_free (world.exec);
  g_assert_cmpuint (pto_exec_live (explorer.exec), ==, 0);
}

static void
explore (const struct scenario *scenario)
{
  sides_explore (&(struct sides_paths){ .bound = scenario->bound,
                                        .stale_bound = 1,
                                        .at_least = scenario->at_least,
                                        .begin = world_begin,
                                        .end = check_world },
                 scenario);
}

/* --- scenarios --- */

/* Nobody is ever in run(). */
static void
test_carrier_alone (void)
{
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 300,
                               .carriers = 1,
                               .others = { orderer_twice },
                               .handled = { 2, 0 } });
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 7500,
                               .carriers = 1,
                               .others = { orderer, second_orderer },
                               .handled = { 1, 1 } });
}

static void
test_two_carriers (void)
{
  explore (&(struct scenario){ .bound = 1,
                               .at_least = 750,
                               .carriers = 2,
                               .others = { orderer, second_orderer },
                               .handled = { 1, 1 } });
}

static void
test_guest_waits (void)
{
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 30000,
                               .carriers = 1,
                               .others = { guest_waits_for_one, orderer },
                               .handled = { 1, 0 } });
  explore (&(struct scenario){ .bound = 1,
                               .at_least = 20000,
                               .carriers = 1,
                               .others = { guest_waits_for_two, orderer, second_orderer },
                               .handled = { 1, 1 } });
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 3500,
                               .carriers = 1,
                               .others = { guest_orders_and_waits },
                               .handled = { 1, 0 } });
}

/* From domain to domain. */
static void
test_passes_on (void)
{
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 3500,
                               .carriers = 2,
                               .passes_on = true,
                               .others = { orderer },
                               .handled = { 1, 1 } });
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 9500,
                               .carriers = 1,
                               .passes_on = true,
                               .others = { guest_orders_and_waits },
                               .handled = { 1, 1 } });
}

static void
test_message (void)
{
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 750,
                               .carriers = 1,
                               .others = { guest_waits_for_message, messenger } });
  explore (&(struct scenario){ .bound = 1,
                               .at_least = 6000,
                               .carriers = 1,
                               .others = { guest_waits_for_message, messenger, orderer },
                               .handled = { 1, 0 } });
}

static void
test_help (void)
{
  explore (&(struct scenario){ .bound = 1,
                               .at_least = 600,
                               .carriers = 1,
                               .others = { guest_helps, second_orderer },
                               .handled = { 1, 1 } });
}

static void
test_claim (void)
{
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 5000,
                               .carriers = 1,
                               .others = { guest_claims, orderer },
                               .handled = { 1, 0 } });
}

static void
test_carry (void)
{
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 20000,
                               .carriers = 1,
                               .others = { guest_carries, second_orderer },
                               .handled = { 1, 1 } });
  /* Somebody else may have the domain. */
  carried = not_carried = 0;
  explore (&(struct scenario){ .bound = 1,
                               .at_least = 900,
                               .carriers = 1,
                               .nappers = 1,
                               .others = { guest_carries, timer },
                               .handled = { 1, 0 } });
  explorer_assert_cmpuint (carried, >, 0);
  explorer_assert_cmpuint (not_carried, >, 0);
}

/* A deadline that comes before, while and after the guest is woken; and one of a fiber, for which
 * some carrier must wake by itself. */
static void
test_deadlines (void)
{
  in_time = too_late = 0;
  explore (&(struct scenario){ .bound = 1,
                               .at_least = 450,
                               .carriers = 1,
                               .others = { guest_waits_with_deadline, timer, messenger } });
  explorer_assert_cmpuint (in_time, >, 0);
  explorer_assert_cmpuint (too_late, >, 0);
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 12500,
                               .carriers = 1,
                               .nappers = 1,
                               .others = { timer, orderer },
                               .handled = { 1, 0 } });
  explore (&(struct scenario){ .bound = 1,
                               .at_least = 6500,
                               .carriers = 1,
                               .nappers = 1,
                               .others = { guest_waits_for_one, timer } });
}

/* One timer is published while the one before it expires: either who publishes or who expires sees
 * the other. */
static void
test_two_timers (void)
{
  explore (&(struct scenario){
      .bound = 1, .at_least = 6500, .carriers = 2, .nappers = 2, .others = { timer } });
}

/* Who has published a timer is busy with something else: another one sees to it. */
static void
test_timer_of_the_busy (void)
{
  explore (&(struct scenario){ .bound = 1,
                               .at_least = 3500,
                               .carriers = 2,
                               .holds_on = true,
                               .nappers = 1,
                               .others = { timer, second_orderer },
                               .handled = { 0, 1 } });
}

static void
test_end (void)
{
  explore (&(struct scenario){ .bound = 1,
                               .at_least = 3500,
                               .carriers = 2,
                               .others = { guest_ends_all, orderer },
                               .handled = { 1, 0 } });
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/par-explore/carrier-alone", test_carrier_alone);
  g_test_add_func ("/pto/par-explore/two-carriers", test_two_carriers);
  g_test_add_func ("/pto/par-explore/guest-waits", test_guest_waits);
  g_test_add_func ("/pto/par-explore/passes-on", test_passes_on);
  g_test_add_func ("/pto/par-explore/message", test_message);
  g_test_add_func ("/pto/par-explore/help", test_help);
  g_test_add_func ("/pto/par-explore/claim", test_claim);
  g_test_add_func ("/pto/par-explore/carry", test_carry);
  g_test_add_func ("/pto/par-explore/deadlines", test_deadlines);
  g_test_add_func ("/pto/par-explore/two-timers", test_two_timers);
  g_test_add_func ("/pto/par-explore/timer-of-the-busy", test_timer_of_the_busy);
  g_test_add_func ("/pto/par-explore/end", test_end);
  return g_test_run ();
}
