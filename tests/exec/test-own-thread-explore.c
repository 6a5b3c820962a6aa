/* test-own-thread-explore.c: do an actor and its own thread take turns, whichever way their steps
 * interleave, and does each turn hand over everything?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * pto/exec/own-thread.c runs on the machine of weak.h, with the kernel's futex played (sides.h).
 * Guarded calls are played here: they are not what is explored.
 */
#include "../weak/explorer.h"
#include "../weak/sides.h"

#include "../../pto/exec/own-thread.h"
#include "../../pto/exec/thread-end.h"

#include <glib.h>

#include <unistd.h>

#define WATCHDOG_S 60
#define CALLS 2
#define QUESTIONS 2

static struct pto_own_thread *own;
static uint32_t letters[3]; /* plain: of the actor's, the thread's and the questions' turns */
static uint32_t n_calls, n_answers, n_ends;
static int64_t seen[CALLS * QUESTIONS];

void played_guard_call (struct pto_guard *guard, void (*fn) (int64_t *), int64_t *args,
                        struct pto_fault *fault);
struct pto_guard *played_guard_pause (void);
void played_guard_resume (struct pto_guard *guard);
void played_guard_end (struct pto_guard *guard, const struct pto_fault *fault, const char *text);
void played_thread_end_begin (struct pto_thread_end *end);
bool played_thread_end_join (pthread_t thread, int tid, struct pto_thread_end *end,
                             uint64_t patience, uint64_t *waited);

void
played_guard_call (struct pto_guard *guard, void (*fn) (int64_t *), int64_t *args,
                   struct pto_fault *fault)
{
  (void) guard;
  weak_write (fault, sizeof *fault);
  *fault = (struct pto_fault){ .kind = PTO_FAULT_NONE };
  fn (args);
}

struct pto_guard *
played_guard_pause (void)
{
  return NULL;
}

void
played_guard_resume (struct pto_guard *guard)
{
  (void) guard;
}

void
played_guard_end (struct pto_guard *guard, const struct pto_fault *fault, const char *text)
{
  (void) guard;
  (void) fault;
  (void) text;
  n_ends++;
}

/* No destructor is played. */
void
played_thread_end_begin (struct pto_thread_end *end)
{
  (void) end;
}

bool
played_thread_end_join (pthread_t thread, int tid, struct pto_thread_end *end, uint64_t patience,
                        uint64_t *waited)
{
  (void) tid;
  (void) end;
  (void) patience;
  (void) waited;
  explorer_os_thread_join (thread);
  return true;
}

/* By the actor. */
static void
answer (int64_t *data)
{
  weak_read (&letters[1], sizeof letters[1]);
  weak_write (&letters[2], sizeof letters[2]);
  seen[n_answers++] = *data;
  explorer_point ();
}

/* By the thread. */
static void
kernel (int64_t *args)
{
  weak_read (&letters[0], sizeof letters[0]);
  g_assert_true (pto_own_thread_id (own) != 0);
  for (int64_t q = 0; q < QUESTIONS; q++)
    {
      int64_t question = 10 * *args + q;

      weak_write (&letters[1], sizeof letters[1]);
      pto_own_thread_ask (own, answer, &question);
      weak_read (&letters[2], sizeof letters[2]);
      g_assert_cmpint (n_answers, ==, *args * QUESTIONS + q + 1);
    }
  n_calls++;
  weak_write (&letters[1], sizeof letters[1]);
}

static void
actor (void *arg)
{
  static struct pto_guard guarded;
  struct pto_fault fault;
  uint64_t waited = 0;
  bool is_left;
  char error[160];
  const char *text;

  (void) arg;
  own = pto_own_thread_new ("own", 1 << 16, error, sizeof error);
  g_assert_nonnull (own);
  for (int64_t call = 0; call < CALLS; call++)
    {
      weak_write (&letters[0], sizeof letters[0]);
      atomic_store_explicit (&guarded.call, (uint64_t) call * 2 + 1, memory_order_relaxed);
      g_assert_null (pto_own_thread_call (own, &guarded, kernel, &call, &text));
      weak_read (&letters[1], sizeof letters[1]);
      g_assert_cmpint (n_calls, ==, call + 1);
    }
  pto_own_thread_end (own);
  fault = pto_own_thread_free (own, 1, &waited, &is_left, error, sizeof error);
  g_assert_cmpint (fault.kind, ==, PTO_FAULT_NONE);
  g_assert_false (is_left);
}

static void
begin (const void *scenario)
{
  (void) scenario;
  n_calls = n_answers = n_ends = 0;
  sides_start (actor, NULL);
}

static void
check (const void *scenario)
{
  (void) scenario;
  for (uint32_t i = 0; i < n_sides; i++)
    if (!sides[i].ended)
      g_error ("schedule %" G_GUINT64_FORMAT ": side %u sleeps for ever", explorer.schedules, i);
  g_assert_cmpuint (n_sides, ==, 2);
  g_assert_cmpuint (n_calls, ==, CALLS);
  g_assert_cmpuint (n_ends, ==, 0);
  for (int64_t i = 0; i < CALLS * QUESTIONS; i++)
    g_assert_cmpint (seen[i], ==, i / QUESTIONS * 10 + i % QUESTIONS);
}

static void
test_turns (void)
{
  sides_explore (
      &(struct sides_paths){
          .bound = 3, .stale_bound = 1, .at_least = 7000, .begin = begin, .end = check },
      NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/own-thread-explore/turns", test_turns);
  return g_test_run ();
}
