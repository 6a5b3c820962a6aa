/* sides.c: what stands for the threads of a program whose back end is explored, and for their
 * kernel?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sides.h"

#include "explorer.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

/* What is explored calls explorer_thread_self() by this name; here the real one is meant. */
#undef pto_thread_self
struct pto_thread *pto_thread_self (void);

struct side sides[SIDES_MAX];
uint32_t n_sides;
uint64_t sides_clock;

static struct side outside;

static void
side_main (void *arg)
{
  struct side *side = arg;

  side->fn (side->arg);
  weak_release (side);
  side->ended = true;
}

struct side *
sides_start (void (*fn) (void *arg), void *arg)
{
  struct side *side = &sides[n_sides++];
  char error[256] = "";

  g_assert_cmpuint (n_sides, <=, SIDES_MAX);
  memset (side, 0, sizeof *side);
  side->fn = fn;
  side->arg = arg;
  if (pto_exec_spawn (explorer.exec, 0, "side", side_main, side, error, sizeof error) != 0)
    g_error ("%s", error);
  return side;
}

struct side *
sides_current (void)
{
  struct pto_actor *self = pto_thread_self ()->current;

  return self != NULL && self != &explorer.exec->guest ? self->arg : &outside;
}

uint32_t
sides_self (void)
{
  const struct side *side = sides_current ();

  return side == &outside ? 0 : 1 + (uint32_t) (side - sides);
}

struct pto_thread *
explorer_thread_self (void)
{
  return &sides_current ()->place;
}

/* Far too fast for anybody to spin: every look is the last. */
uint64_t
explorer_clock_ns (void)
{
  return sides_clock += SIDES_STEP_NS;
}

int
explorer_sched_yield (void)
{
  explorer_point ();
  return 0;
}

int
explorer_futex_wait (_Atomic uint32_t *word, uint32_t expected, uint64_t deadline)
{
  struct side *side = sides_current ();

  explorer_point ();
  if (atomic_load (word) != expected)
    return EAGAIN;
  if (deadline <= sides_clock)
    {
      explorer_pause ();
      return ETIMEDOUT;
    }
  side->futex = word;
  side->deadline = deadline;
  side->expired = false;
  pto_word_init (&side->alarm, 0, false);
  while (pto_word_get (&side->alarm) == 0)
    pto_park (explorer.exec, &side->alarm, 0, PTO_NEVER);
  return side->expired ? ETIMEDOUT : 0;
}

static void
stir (struct side *side)
{
  side->futex = NULL;
  pto_word_set (explorer.exec, &side->alarm, 1);
}

void
explorer_futex_wake (_Atomic uint32_t *word)
{
  explorer_point ();
  for (uint32_t i = 0; i < n_sides; i++)
    if (sides[i].futex == word)
      stir (&sides[i]);
}

void
sides_pass (uint64_t ns)
{
  sides_clock += ns;
  for (uint32_t i = 0; i < n_sides; i++)
    if (sides[i].futex != NULL && sides[i].deadline <= sides_clock)
      {
        sides[i].expired = true;
        stir (&sides[i]);
      }
}

int
explorer_os_thread_start (pthread_t *thread, const char *name, const struct pto_stack *stack,
                          void (*fn) (void *arg), void *arg, char *error, size_t error_size)
{
  *thread = (pthread_t) (sides_start (fn, arg) - sides);
  return 0;
}

void
explorer_os_thread_join (pthread_t thread)
{
  const struct side *side = &sides[thread];

  if (sides_self () == 0)
    pto_exec_join (explorer.exec);
  else
    while (!side->ended)
      explorer_pause ();
  g_assert_true (side->ended);
  weak_acquire (side);
}

void
sides_explore (const struct sides_paths *paths, const void *scenario)
{
  struct pto_exec_config config = {
    .backend = PTO_BACKEND_DET, .domains = 1, .stack_size = 65536, .choose = explorer_choose
  };
  char error[256];

  explorer_init (paths->bound, paths->stale_bound);
  explorer.exec = pto_exec_new (&config, error, sizeof error);
  g_assert_nonnull (explorer.exec);
  do
    {
      n_sides = 0;
      paths->begin (scenario);
      explorer_start (sides_self);
      pto_exec_join (explorer.exec);
      explorer_stop ();
      paths->end (scenario);
      /* Nothing of the path is left over, or the runs differ by something else than the choices. */
      g_assert_cmpuint (explorer.depth, ==, explorer.length);
    }
  while (explorer_advance ());
  g_test_message ("%" G_GUINT64_FORMAT " schedules", explorer.schedules);
  explorer_assert_cmpuint (explorer.schedules, >=, paths->at_least);
  pto_exec_free (explorer.exec);
}
