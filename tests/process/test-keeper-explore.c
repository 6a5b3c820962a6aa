/* test-keeper-explore.c: does the keeper never sleep through what is wanted of it, whichever way
 * its steps and those of a carrier interleave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The keeper runs on the machine of weak.h, with its family, its pool and poll() played: its thread
 * and the carrier are sides (sides.h), whose steps are explored as explorer.h says.
 */
#include "../../pto/process/level-thread.h"

#include "../weak/explorer.h"
#include "../weak/sides.h"

#include <glib.h>

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WATCHDOG_S 60
#define EVENT 77 /* looks like a descriptor */
/* More often than the keeper has steps to do before it ticks or sleeps. */
#define PATIENCE 200u

static struct pto_family family;
static struct pto_keeper keeper;
static struct pto_word news; /* the carrier to a keeper in poll() */
static uint64_t event;       /* of the eventfd */
static bool is_asleep;       /* until there is an event */
static uint32_t n_ticks;

/* --- the world of the keeper --- */

int
eventfd_write (int fd, eventfd_t value)
{
  g_assert_cmpint (fd, ==, EVENT);
  explorer_point ();
  event += value;
  pto_word_set (explorer.exec, &news, pto_word_get (&news) + 1);
  return 0;
}

/* Carries what there is to carry, and reads the event. */
void
pto_exec_keep (struct pto_exec *exec)
{
  explorer_point ();
  event = 0;
}

int
poll (struct pollfd *watched, nfds_t n, int timeout_ms)
{
  /* It asks whether there is a poll() before it has a thread. */
  if (n == 0)
    {
      g_assert_null (watched);
      g_assert_cmpint (timeout_ms, ==, 0);
      g_assert_false (keeper.has_thread);
      return 0;
    }
  g_assert_cmpuint (n, ==, 1);
  explorer_point ();
  if (event == 0 && timeout_ms >= 0)
    {
      sides_clock += (uint64_t) timeout_ms * 1000000;
      explorer_pause ();
    }
  while (event == 0 && timeout_ms < 0)
    {
      uint32_t seen = pto_word_get (&news);

      is_asleep = true;
      pto_park (explorer.exec, &news, seen, PTO_NEVER);
      is_asleep = false;
    }
  return event != 0;
}

void
pto_pool_tick (struct pto_pool *pool, uint64_t ns)
{
  n_ticks++;
}

void
pto_family_look_who_is_stopped (struct pto_family *all)
{
  g_assert_true (all == &family);
}

void
pto_family_watch (struct pto_family *all, struct pollfd *watched)
{
}

void
pto_family_look (struct pto_family *all, const struct pollfd *watched, struct pto_words *words)
{
}

/* --- a carrier --- */

static void
until_it_ticks (void)
{
  uint32_t before = n_ticks;

  for (uint32_t i = 0; n_ticks == before; i++)
    {
      if (i == PATIENCE)
        g_error ("schedule %" G_GUINT64_FORMAT ": nobody ticks%s", explorer.schedules,
                 is_asleep ? ", the keeper sleeps" : "");
      explorer_pause ();
    }
}

static void
until_it_sleeps (void)
{
  for (uint32_t i = 0; !is_asleep; i++)
    {
      g_assert_cmpuint (i, <, PATIENCE);
      explorer_pause ();
    }
}

/* Something is under way twice, the second time when the keeper may be on its way to sleep. */
static void
carrier (void *pace)
{
  enum pto_pace wanted = (enum pto_pace) GPOINTER_TO_INT (pace);

  pto_keeper_set_pace (&keeper, wanted);
  until_it_ticks ();
  pto_keeper_set_pace (&keeper, PTO_PACE_IDLE);
  pto_keeper_set_pace (&keeper, wanted);
  until_it_ticks ();
  pto_keeper_set_pace (&keeper, PTO_PACE_IDLE);
  until_it_sleeps ();
  pto_keeper_set_pace (&keeper, wanted);
  until_it_ticks ();
  pto_keeper_stop (&keeper);
}

static void
begin (const void *pace)
{
  static const struct pto_child_limits limits
      = { .task_ns = PTO_NEVER, .start_ns = PTO_NEVER, .stop_ns = PTO_NEVER };
  char error[256];

  memset (&keeper, 0, sizeof keeper);
  keeper.family = &family;
  keeper.event = EVENT;
  event = n_ticks = 0;
  is_asleep = false;
  pto_word_init (&news, 0, false);
  g_assert_true (pto_keeper_init (&keeper, &limits));
  g_assert_cmpint (pto_keeper_start (&keeper, error, sizeof error), ==, 0);
  sides_start (carrier, (void *) pace);
}

static void
check (const void *pace)
{
  for (uint32_t i = 0; i < n_sides; i++)
    if (!sides[i].ended)
      g_error ("schedule %" G_GUINT64_FORMAT ": side %u sleeps for ever", explorer.schedules, i);
  pto_keeper_clear (&keeper);
}

static void
explore (enum pto_pace pace)
{
  sides_explore (
      &(struct sides_paths){
          .bound = 2, .stale_bound = 1, .at_least = 20000, .begin = begin, .end = check },
      GINT_TO_POINTER (pace));
}

static void
test_slow (void)
{
  explore (PTO_PACE_SLOW);
}

static void
test_fast (void)
{
  explore (PTO_PACE_FAST);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/keeper-explore/slow", test_slow);
  g_test_add_func ("/pto/keeper-explore/fast", test_fast);
  return g_test_run ();
}
