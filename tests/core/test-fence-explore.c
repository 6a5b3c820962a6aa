/* test-fence-explore.c: does a reader of the list of fences never believe what it saw of a change
 * that was under way?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Writer and reader run on the machine of weak.h, as sides (sides.h) whose steps are explored as
 * explorer.h says. The lock is played.
 */
#include "../../pto/core/memory-guards.h"

#include "../weak/explorer.h"
#include "../weak/sides.h"

#include <glib.h>

#include <pthread.h>
#include <unistd.h>

#define WATCHDOG_S 120
#define PIECES 3u
#define STEP 64u

static uint8_t memory[PIECES * STEP];
static bool locked;
static uint64_t n_there, n_not_there;

/* --- the lock --- */

int
pthread_mutex_lock (pthread_mutex_t *mutex)
{
  while (locked)
    explorer_pause ();
  locked = true;
  weak_acquire (mutex);
  return 0;
}

int
pthread_mutex_unlock (pthread_mutex_t *mutex)
{
  weak_release (mutex);
  locked = false;
  return 0;
}

/* --- the sides --- */

static struct pto_fence
piece (uint32_t n)
{
  return (struct pto_fence){ .address = (uint64_t) (uintptr_t) (memory + n * STEP),
                             .bytes = STEP - 8 * (n + 1),
                             .guard = 8 * (n + 1) };
}

/* Gives whether it is there. */
static bool
look_for (uint32_t n)
{
  struct pto_fence expected = piece (n);
  struct pto_fence found = { 0 };

  if (!pto_fence_find (expected.address + 3, &found))
    return false;
  if (found.address != expected.address || found.bytes != expected.bytes
      || found.guard != expected.guard)
    g_error ("schedule %" G_GUINT64_FORMAT ": piece %u is a mixture", explorer.schedules, n);
  return true;
}

static void
reader (void *arg)
{
  const uint32_t *changing = arg;

  for (uint32_t n = PIECES; n-- > 0;)
    if (n == *changing)
      look_for (n) ? n_there++ : n_not_there++;
    else if (!look_for (n))
      g_error ("schedule %" G_GUINT64_FORMAT ": piece %u was not found", explorer.schedules, n);
}

/* The list is as before when it is done. */
static void
writer (void *arg)
{
  const uint32_t *changing = arg;
  struct pto_fence fence = piece (*changing);

  pto_fence_remove (fence.address);
  g_assert_true (pto_fence_add (&fence));
}

static void
begin (const void *scenario)
{
  sides_start (writer, (void *) scenario);
  sides_start (reader, (void *) scenario);
}

static void
check (const void *scenario)
{
  for (uint32_t i = 0; i < n_sides; i++)
    g_assert_true (sides[i].ended);
  for (uint32_t n = 0; n < PIECES; n++)
    g_assert_true (look_for (n));
}

static void
test_changes (void)
{
  for (uint32_t n = 0; n < PIECES; n++)
    {
      struct pto_fence fence = piece (n);

      g_assert_true (pto_fence_add (&fence));
    }
  /* The one before all others, which move, and one between them. */
  for (uint32_t changing = 0; changing < 2; changing++)
    {
      n_there = n_not_there = 0;
      sides_explore (
          &(struct sides_paths){
              .bound = 2, .stale_bound = 2, .at_least = 10000, .begin = begin, .end = check },
          &changing);
      explorer_assert_cmpuint (n_there, >, 100);
      explorer_assert_cmpuint (n_not_there, >, 100);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/fence-explore/changes", test_changes);
  return g_test_run ();
}
