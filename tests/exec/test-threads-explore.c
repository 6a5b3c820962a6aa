/* test-threads-explore.c: is no wake-up of the back end threads lost, whichever way the steps of
 * waiters and wakers interleave?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The back end runs on the machine of weak.h, with the kernel's futex played: threads are sides
 * (sides.h), whose steps are explored as explorer.h says.
 */
#include "../weak/explorer.h"
#include "../weak/sides.h"

#include <glib.h>

#include <unistd.h>

#define WATCHDOG_S 60

static struct pto_exec *threads;
static struct pto_word question, answer;
static uint32_t letters[2]; /* plain */

static enum pto_park_result
park (struct pto_word *word, uint32_t seen, uint64_t deadline)
{
  return threads->ops->park (&threads->guest, word, seen, deadline);
}

static void
wait_for (struct pto_word *word, uint32_t value)
{
  uint32_t seen;

  while ((seen = weak_word_get (word)) < value)
    g_assert_cmpint (park (word, seen, PTO_NEVER), ==, PTO_PARK_WOKEN);
}

static void
asker (void *arg)
{
  (void) arg;
  for (uint32_t i = 1; i <= 2; i++)
    {
      weak_write (&letters[0], sizeof letters[0]);
      weak_word_set (threads, &question, i);
      wait_for (&answer, i);
      weak_read (&letters[1], sizeof letters[1]);
    }
}

static void
answerer (void *arg)
{
  (void) arg;
  for (uint32_t i = 1; i <= 2; i++)
    {
      wait_for (&question, i);
      weak_read (&letters[0], sizeof letters[0]);
      weak_write (&letters[1], sizeof letters[1]);
      weak_word_set (threads, &answer, i);
    }
}

/* Unparks for nothing, and says so much that the value must be looked at again. */
static void
disturber (void *arg)
{
  (void) arg;
  threads->ops->unpark (threads, &answer);
}

static uint64_t in_time, too_late, deadline;

static void
patient (void *arg)
{
  enum pto_park_result result = PTO_PARK_WOKEN;

  (void) arg;
  while (weak_word_get (&answer) == 0 && result != PTO_PARK_TIMEOUT)
    result = park (&answer, 0, deadline);
  if (result == PTO_PARK_TIMEOUT)
    {
      g_assert_cmpuint (sides_clock, >=, deadline);
      too_late++;
    }
  else
    in_time++;
}

static void
speaker (void *arg)
{
  (void) arg;
  weak_word_set (threads, &answer, 1);
}

static void
timer (void *arg)
{
  (void) arg;
  explorer_point ();
  sides_pass ((uint64_t) 2000 * SIDES_STEP_NS);
}

static void
begin (const void *scenario)
{
  pto_word_init (&question, 0, false);
  pto_word_init (&answer, 0, false);
  deadline = sides_clock + (uint64_t) 1000 * SIDES_STEP_NS;
  for (void (*const *fns) (void *) = scenario; *fns != NULL; fns++)
    sides_start (*fns, NULL);
}

static void
check (const void *scenario)
{
  (void) scenario;
  for (uint32_t i = 0; i < n_sides; i++)
    if (!sides[i].ended)
      g_error ("schedule %" G_GUINT64_FORMAT ": side %u sleeps for ever", explorer.schedules, i);
}

/* No actor is ever spawned on the back end: its waits are all that is explored. */
static void
explore (uint32_t bound, uint64_t at_least, void (*const *fns) (void *))
{
  struct pto_exec_config config = { .backend = PTO_BACKEND_THREADS, .domains = 1 };
  char error[256];

  threads = pto_exec_new (&config, error, sizeof error);
  g_assert_nonnull (threads);
  sides_explore (
      &(struct sides_paths){
          .bound = bound, .stale_bound = 1, .at_least = at_least, .begin = begin, .end = check },
      fns);
  pto_exec_free (threads);
}

static void
test_words (void)
{
  static void (*const two[]) (void *) = { asker, answerer, NULL };
  static void (*const three[]) (void *) = { asker, answerer, disturber, NULL };

  explore (3, 10000, two);
  explore (2, 10000, three);
}

static void
test_deadline (void)
{
  static void (*const all[]) (void *) = { patient, speaker, timer, NULL };

  explore (3, 100, all);
  explorer_assert_cmpuint (in_time, >, 10);
  explorer_assert_cmpuint (too_late, >, 10);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/threads-explore/words", test_words);
  g_test_add_func ("/pto/threads-explore/deadline", test_deadline);
  return g_test_run ();
}
