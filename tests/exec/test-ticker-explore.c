/* test-ticker-explore.c: does a ticker tick as long as it is armed and only then, whichever way its
 * steps and those of its owner interleave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The ticker runs on the machine of weak.h, with the kernel's futex and clock played: its thread
 * and its owner are sides (sides.h), whose steps are explored as explorer.h says. Time goes on when
 * nobody can go on otherwise.
 */
#include "../weak/explorer.h"
#include "../weak/sides.h"

#include "../../pto/exec/ticker.h"

#include <glib.h>

#include <unistd.h>

#define WATCHDOG_S 60
/* Four of them, and it parks after it was disarmed. */
#define PERIOD_NS UINT64_C (50000000)

static struct pto_ticker *ticker;
static struct side *thread_side, *owner;
static uint32_t letter; /* plain: goes with each arming */
static uint32_t n_ticks;
static bool may_tick;

static void
tick (void *data)
{
  g_assert_true (data == &letter);
  g_assert_true (may_tick);
  weak_read (&letter, sizeof letter);
  n_ticks++;
}

static void
arm (void)
{
  weak_write (&letter, sizeof letter);
  may_tick = true;
  pto_ticker_arm (ticker);
}

/* What does the thread wait for? */
static bool
is_asleep_till_a_tick (void)
{
  return thread_side->futex != NULL && thread_side->deadline != PTO_NEVER;
}

static bool
is_parked (void)
{
  return thread_side->futex != NULL && thread_side->deadline == PTO_NEVER;
}

static bool
has_ended (void)
{
  return thread_side->ended;
}

#define PATIENCE 100u

/* A period passes when the thread waits for it. */
static void
let_pass (void)
{
  if (is_asleep_till_a_tick ())
    sides_pass (2 * PERIOD_NS);
  else
    explorer_pause ();
}

static void
until_it_ticks (void)
{
  uint32_t before = n_ticks;

  for (uint32_t i = 0; i < PATIENCE && n_ticks == before; i++)
    let_pass ();
  g_assert_cmpuint (n_ticks, >, before);
}

static void
until_it_parks (void)
{
  for (uint32_t i = 0; i < PATIENCE && !is_parked (); i++)
    let_pass ();
  g_assert_true (is_parked ());
}

static void
owner_arms (void *arg)
{
  (void) arg;
  arm ();
}

static void
owner_arms_once_and_again (void *arg)
{
  (void) arg;
  arm ();
  until_it_ticks ();
  pto_ticker_disarm (ticker);
  /* It rests, or parks. */
  let_pass ();
  let_pass ();
  let_pass ();
  pto_ticker_arm (ticker);
}

static void
owner_disarms (void *arg)
{
  uint32_t before;

  (void) arg;
  arm ();
  until_it_ticks ();
  until_it_ticks ();
  pto_ticker_disarm (ticker);
  before = n_ticks;
  until_it_parks ();
  /* One that looked before, and one that has not heard of it. */
  g_assert_cmpuint (n_ticks, <=, before + 1 + explorer.stale_bound);
}

static void
owner_frees (void *arg)
{
  (void) arg;
  pto_ticker_free (ticker);
  ticker = NULL;
}

static void
owner_arms_and_frees (void *arg)
{
  (void) arg;
  arm ();
  pto_ticker_free (ticker);
  ticker = NULL;
}

struct scenario
{
  uint32_t bound;
  uint64_t at_least;
  void (*owner) (void *arg);
  bool (*is_right) (void); /* at the end */
};

static void
begin (const void *data)
{
  const struct scenario *scenario = data;
  char error[256];

  n_ticks = 0;
  may_tick = false;
  ticker = pto_ticker_new ("ticker", PERIOD_NS, tick, &letter, error, sizeof error);
  g_assert_nonnull (ticker);
  thread_side = &sides[0];
  owner = sides_start (scenario->owner, NULL);
}

static void
check (const void *data)
{
  const struct scenario *scenario = data;

  g_assert_true (owner->ended);
  if (!scenario->is_right ())
    g_error ("schedule %" G_GUINT64_FORMAT ": the thread waits for something else",
             explorer.schedules);
  if (ticker != NULL)
    pto_ticker_free (ticker);
}

static void
explore (const struct scenario *scenario)
{
  sides_explore (&(struct sides_paths){ .bound = scenario->bound,
                                        .stale_bound = 1,
                                        .at_least = scenario->at_least,
                                        .begin = begin,
                                        .end = check },
                 scenario);
}

static void
test_arm (void)
{
  explore (&(struct scenario){
      .bound = 3, .at_least = 50, .owner = owner_arms, .is_right = is_asleep_till_a_tick });
  explore (&(struct scenario){ .bound = 2,
                               .at_least = 50,
                               .owner = owner_arms_once_and_again,
                               .is_right = is_asleep_till_a_tick });
}

/* Parks after a while, and uses no CPU. */
static void
test_disarm (void)
{
  explore (&(struct scenario){
      .bound = 2, .at_least = 50, .owner = owner_disarms, .is_right = is_parked });
}

static void
test_free (void)
{
  explore (&(struct scenario){
      .bound = 3, .at_least = 20, .owner = owner_frees, .is_right = has_ended });
  explore (&(struct scenario){
      .bound = 3, .at_least = 50, .owner = owner_arms_and_frees, .is_right = has_ended });
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/ticker-explore/arm", test_arm);
  g_test_add_func ("/pto/ticker-explore/disarm", test_disarm);
  g_test_add_func ("/pto/ticker-explore/free", test_free);
  return g_test_run ();
}
