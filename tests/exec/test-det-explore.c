/* test-det-explore.c: does nothing that another thread does stay unseen by the back end det?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The back end runs on the machine of weak.h, in the place of par: its thread and others that
 * change words are sides (sides.h), whose steps are explored as explorer.h says. Its own choices
 * are always the first.
 */
#include "../weak/explorer.h"
#include "../weak/sides.h"

#include <glib.h>

#include <unistd.h>

#define WATCHDOG_S 60
#define CLERKS 2u
/* More often than the others have steps to do. */
#define PATIENCE 100u

static struct pto_exec *det;
static struct pto_word orders[CLERKS], done;
static uint32_t letters[CLERKS]; /* plain: one goes with each order */
static uint32_t n_done, n_alone;
static uint32_t n_wanted;

static uint32_t
first (void *data, uint32_t n)
{
  (void) data;
  (void) n;
  return 0;
}

static enum pto_park_result
park (struct pto_word *word, uint32_t seen)
{
  return det->ops->park (explorer_thread_self ()->current, word, seen, PTO_NEVER);
}

static void
clerk (void *arg)
{
  uint32_t i = *(const uint32_t *) arg;

  for (uint32_t seen = 0;;)
    {
      g_assert_cmpint (park (&orders[i], seen), ==, PTO_PARK_WOKEN);
      if (weak_word_get (&orders[i]) == seen)
        continue;
      seen = weak_word_get (&orders[i]);
      weak_read (&letters[i], sizeof letters[i]);
      n_done++;
      weak_word_set (det, &done, n_done);
    }
}

static void
enter (void)
{
  struct pto_thread *place = explorer_thread_self ();

  place->current = &det->guest;
  det->thread = place;
  det->ops->enter (det, place);
}

static void
leave (void)
{
  det->ops->leave (det);
  explorer_thread_self ()->current = NULL;
  det->thread = NULL;
}

/* That nobody can run is proved again and again, until another thread changes something. */
static void
guest (void *arg)
{
  uint32_t alone = 0;
  uint32_t seen;

  (void) arg;
  enter ();
  while ((seen = weak_word_get (&done)) < n_wanted)
    if (park (&done, seen) == PTO_PARK_DEADLOCK)
      {
        n_alone++;
        if (++alone > PATIENCE)
          g_error ("schedule %" G_GUINT64_FORMAT ": an order stays unseen", explorer.schedules);
        explorer_pause ();
      }
  leave ();
}

static void
order (uint32_t i)
{
  weak_write (&letters[i], sizeof letters[i]);
  weak_word_set (det, &orders[i], 1);
}

static void
orderer (void *arg)
{
  (void) arg;
  order (0);
}

static void
second_orderer (void *arg)
{
  (void) arg;
  order (1);
}

static void
teller (void *arg)
{
  (void) arg;
  weak_write (&letters[0], sizeof letters[0]);
  weak_word_set (det, &done, 1);
}

/* Begun by a thread that is none of the back end's. */
static void
latecomer (void *arg)
{
  (void) arg;
  weak_word_set (det, &done, 1);
}

static void
spawner (void *arg)
{
  char error[128];

  (void) arg;
  /* Locks are real here: who has this one goes on when we wait. */
  while (pthread_mutex_trylock (&det->lock) != 0)
    explorer_pause ();
  pthread_mutex_unlock (&det->lock);
  g_assert_cmpint (pto_exec_spawn (det, 0, "latecomer", latecomer, NULL, error, sizeof error), ==,
                   0);
}

static void
begin (const void *scenario)
{
  static const uint32_t numbers[CLERKS] = { 0, 1 };
  struct pto_exec_config config
      = { .backend = PTO_BACKEND_PAR, .domains = 1, .stack_size = 32768, .choose = first };
  char error[256];

  pto_word_init (&done, 0, false);
  n_done = 0;
  det = pto_exec_new (&config, error, sizeof error);
  g_assert_nonnull (det);
  for (uint32_t i = 0; i < CLERKS; i++)
    {
      pto_word_init (&orders[i], 0, false);
      g_assert_cmpint (
          pto_exec_spawn (det, 0, "clerk", clerk, (void *) &numbers[i], error, sizeof error), ==,
          0);
    }
  for (void (*const *fns) (void *) = scenario; *fns != NULL; fns++)
    sides_start (*fns, NULL);
}

static void
check (const void *scenario)
{
  (void) scenario;
  for (uint32_t i = 0; i < n_sides; i++)
    g_assert_true (sides[i].ended);
  pto_exec_free (det);
}

static void
explore (uint32_t bound, uint64_t at_least, void (*const *fns) (void *))
{
  n_alone = 0;
  sides_explore (
      &(struct sides_paths){
          .bound = bound, .stale_bound = 1, .at_least = at_least, .begin = begin, .end = check },
      fns);
  explorer_assert_cmpuint (n_alone, >, 0);
}

static void
test_orders (void)
{
  static void (*const one[]) (void *) = { guest, orderer, NULL };
  static void (*const two[]) (void *) = { guest, orderer, second_orderer, NULL };

  n_wanted = 1;
  explore (3, 100, one);
  n_wanted = 2;
  explore (2, 100, two);
}

/* The guest's own word. */
static void
test_told (void)
{
  static void (*const one[]) (void *) = { guest, teller, NULL };

  n_wanted = 1;
  explore (3, 100, one);
}

static void
test_spawned (void)
{
  static void (*const one[]) (void *) = { guest, spawner, NULL };

  n_wanted = 1;
  explore (3, 100, one);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/det-explore/orders", test_orders);
  g_test_add_func ("/pto/det-explore/spawned", test_spawned);
  g_test_add_func ("/pto/det-explore/told", test_told);
  return g_test_run ();
}
