/* test-exec.c: do actors find each other again on every back end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "exec-test.h"
#include "still.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* --- ping-pong --- */

struct pair
{
  struct pto_exec *exec;
  struct pto_word ping, pong;
  uint32_t rounds;
  uint32_t seen; /* plain: handed over with the words, so that TSan checks that they order */
};

static void
ping_main (void *arg)
{
  struct pair *pair = arg;

  for (uint32_t i = 1; i <= pair->rounds; i++)
    {
      pair->seen++;
      pto_word_set (pair->exec, &pair->ping, i);
      wait_for (pair->exec, &pair->pong, i);
    }
}

static void
pong_main (void *arg)
{
  struct pair *pair = arg;

  for (uint32_t i = 1; i <= pair->rounds; i++)
    {
      wait_for (pair->exec, &pair->ping, i);
      pair->seen++;
      pto_word_set (pair->exec, &pair->pong, i);
    }
}

static void
pair_init (struct pair *pair, struct pto_exec *exec, bool local, uint32_t rounds)
{
  pair->exec = exec;
  pair->rounds = rounds;
  pair->seen = 0;
  pto_word_init (&pair->ping, 0, local);
  pto_word_init (&pair->pong, 0, local);
}

static void
ping_pong (enum pto_backend backend, bool one_domain, bool local, uint32_t rounds)
{
  struct pto_exec *exec = new_exec (backend, 4, 7);
  struct pair pair;

  pair_init (&pair, exec, local, rounds);
  pto_exec_enter (exec);
  spawn (exec, 1, ping_main, &pair);
  spawn (exec, one_domain ? 1 : 2, pong_main, &pair);
  pto_exec_join (exec);
  pto_exec_leave (exec);
  g_assert_cmpuint (pair.seen, ==, 2 * rounds);
  g_assert_cmpuint (pto_exec_live (exec), ==, 0);
  pto_exec_free (exec);
}

static void
test_ping_pong_local (gconstpointer backend)
{
  ping_pong (GPOINTER_TO_INT (backend), true, true, SCALE (100000));
}

static void
test_ping_pong_shared (gconstpointer backend)
{
  ping_pong (GPOINTER_TO_INT (backend), true, false, SCALE (100000));
}

/* 10^6 hand-offs in lock step: one lost wake-up and it stands still. On threads each is two system
 * calls and a sleep. */
static void
test_wake_races (gconstpointer backend)
{
  bool all = g_test_slow () || GPOINTER_TO_INT (backend) != PTO_BACKEND_THREADS;

  ping_pong (GPOINTER_TO_INT (backend), false, false, all ? SCALE (500000) : SCALE (50000));
}

/* The guest is one end. */
static void
test_ping_pong_guest (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 1, 7);
  struct pair pair;

  pair_init (&pair, exec, false, SCALE (100000));
  spawn (exec, 0, pong_main, &pair);
  pto_exec_enter (exec);
  ping_main (&pair);
  pto_exec_join (exec);
  pto_exec_leave (exec);
  g_assert_cmpuint (pair.seen, ==, 2 * pair.rounds);
  pto_exec_free (exec);
}

/* A thread that is no actor wakes an actor; the guest only waits. */
static void *
outside_main (void *arg)
{
  struct pair *pair = arg;

  g_assert_null (pto_actor_name ());
  for (uint32_t i = 1; i <= pair->rounds; i++)
    {
      pair->seen++;
      pto_word_set (pair->exec, &pair->ping, i);
      while (pto_word_get (&pair->pong) != i)
        sched_yield ();
    }
  return NULL;
}

static void
test_outside (gconstpointer backend)
{
  struct pto_exec *exec;
  struct pair pair;
  pthread_t thread;

  /* det proves deadlocks: with nothing but an outside thread to wait for there is one. See
   * /outside-det. */
  if (GPOINTER_TO_INT (backend) == PTO_BACKEND_DET)
    {
      g_test_skip ("there an outside thread is not waited for");
      return;
    }
  exec = new_exec (GPOINTER_TO_INT (backend), 2, 7);
  pair_init (&pair, exec, false, SCALE (50000));
  spawn (exec, 1, pong_main, &pair);
  g_assert_cmpint (pthread_create (&thread, NULL, outside_main, &pair), ==, 0);
  pto_exec_join (exec);
  pthread_join (thread, NULL);
  g_assert_cmpuint (pair.seen, ==, 2 * pair.rounds);
  pto_exec_free (exec);
}

static void
ticker_main (void *arg)
{
  struct pair *pair = arg;

  while (pto_word_get (&pair->pong) != pair->rounds)
    pto_charge (pair->exec, 10);
}

static void
test_outside_det (void)
{
  struct pto_exec *exec = new_exec (PTO_BACKEND_DET, 2, 7);
  struct pair pair;
  pthread_t thread;

  /* The guest never sleeps, so that on one CPU each round costs time slices. */
  pair_init (&pair, exec, false, 400);
  spawn (exec, 1, pong_main, &pair);
  spawn (exec, 1, ticker_main, &pair); /* somebody can always run */
  g_assert_cmpint (pthread_create (&thread, NULL, outside_main, &pair), ==, 0);
  pto_exec_join (exec);
  pthread_join (thread, NULL);
  g_assert_cmpuint (pair.seen, ==, 2 * pair.rounds);
  g_assert_cmpuint (pto_exec_live (exec), ==, 0);
  pto_exec_free (exec);
}

/* The same in lock step, with both sides out of step by some nanoseconds: a change just before,
 * between and after the two looks that a parker takes at its word. */
static void
dawdle (uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  for (volatile uint32_t i = (uint32_t) (*state >> 33) % 150; i > 0; i--)
    ;
}

static void
jitter_pong_main (void *arg)
{
  struct pair *pair = arg;
  uint64_t state = 1;

  for (uint32_t i = 1; i <= pair->rounds; i++)
    {
      wait_for (pair->exec, &pair->ping, i);
      dawdle (&state);
      pto_word_set (pair->exec, &pair->pong, i);
    }
}

static void
jitter_ping_main (void *arg)
{
  struct pair *pair = arg;
  uint64_t state = 2;

  for (uint32_t i = 1; i <= pair->rounds; i++)
    {
      pto_word_set (pair->exec, &pair->ping, i);
      dawdle (&state);
      wait_for (pair->exec, &pair->pong, i);
    }
}

static void
test_jitter (gconstpointer backend)
{
  for (int guest = 0; guest < 2; guest++)
    {
      struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 2, 7);
      struct pair pair;

      pair_init (&pair, exec, false, SCALE (100000));
      spawn (exec, 0, jitter_pong_main, &pair);
      pto_exec_enter (exec);
      if (guest)
        {
          /* While the other end is held by the pool's carrier. */
          uint64_t state = 2;

          for (uint32_t i = 1; i <= pair.rounds; i++)
            {
              pto_word_set (exec, &pair.ping, i);
              dawdle (&state);
              wait_for (exec, &pair.pong, i);
            }
        }
      else
        spawn (exec, 1, jitter_ping_main, &pair);
      pto_exec_join (exec);
      pto_exec_leave (exec);
      g_assert_cmpuint (pair.pong.value, ==, pair.rounds);
      pto_exec_free (exec);
    }
}

/* --- many actors round a ring, over all domains --- */

#define RING 76

struct ring
{
  struct pto_exec *exec;
  struct pto_word words[RING];
  uint32_t laps;
  uint64_t steps;
};

struct ring_place
{
  struct ring *ring;
  uint32_t i;
};

static void
ring_main (void *arg)
{
  struct ring_place *place = arg;
  struct ring *ring = place->ring;

  for (uint32_t lap = 1; lap <= ring->laps; lap++)
    {
      wait_for (ring->exec, &ring->words[place->i], lap);
      ring->steps++;
      pto_word_set (ring->exec, &ring->words[(place->i + 1) % RING],
                    place->i + 1 < RING ? lap : lap + 1);
    }
}

static void
run_ring (enum pto_backend backend, uint32_t laps)
{
  struct pto_exec *exec = new_exec (backend, 4, 3);
  struct ring ring = { .exec = exec, .laps = laps };
  struct ring_place places[RING];

  for (uint32_t i = 0; i < RING; i++)
    {
      pto_word_init (&ring.words[i], 0, false);
      places[i] = (struct ring_place){ &ring, i };
    }
  for (uint32_t i = 0; i < RING; i++)
    spawn (exec, i % 4, ring_main, &places[i]);
  pto_exec_enter (exec);
  pto_word_set (exec, &ring.words[0], 1);
  pto_exec_join (exec);
  pto_exec_leave (exec);
  g_assert_cmpuint (ring.steps, ==, (uint64_t) RING * laps);
  pto_exec_free (exec);
}

static void
test_ring (gconstpointer backend)
{
  run_ring (GPOINTER_TO_INT (backend), SCALE (400));
}

static void *
ring_thread (void *arg)
{
  run_ring (GPOINTER_TO_INT (arg), SCALE (100));
  return NULL;
}

static void
test_eight_executors (gconstpointer backend)
{
  pthread_t threads[8];

  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    g_assert_cmpint (pthread_create (&threads[i], NULL, ring_thread, (void *) backend), ==, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    pthread_join (threads[i], NULL);
}

/* --- free-running wakers: every interleaving of store, park and unpark that timing gives --- */

struct storm
{
  struct pto_exec *exec;
  struct pto_word word;
  uint32_t wakers;
  uint32_t each;
};

static void
storm_waker (void *arg)
{
  struct storm *storm = arg;

  for (uint32_t i = 0; i < storm->each; i++)
    {
      atomic_fetch_add_explicit (&storm->word.value, 1, memory_order_release);
      pto_unpark (storm->exec, &storm->word);
      if (i % 64 == 0)
        pto_yield (storm->exec);
    }
}

static void
storm_sleeper (void *arg)
{
  struct storm *storm = arg;

  wait_for (storm->exec, &storm->word, storm->wakers * storm->each);
}

static void
test_storm (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 4, 3);
  struct storm storm = { .exec = exec, .wakers = 3, .each = SCALE (100000) };

  pto_word_init (&storm.word, 0, false);
  spawn (exec, 0, storm_sleeper, &storm);
  for (uint32_t i = 0; i < storm.wakers; i++)
    spawn (exec, 1 + i, storm_waker, &storm);
  pto_exec_join (exec);
  g_assert_cmpuint (pto_exec_live (exec), ==, 0);
  pto_exec_free (exec);
}

/* --- deadlines --- */

struct sleeper
{
  struct pto_exec *exec;
  struct pto_word word;
  uint64_t delay;
  enum pto_park_result result;
  bool early;
};

static void
sleeper_main (void *arg)
{
  struct sleeper *sleeper = arg;
  uint64_t deadline = pto_now (sleeper->exec) + sleeper->delay;

  do
    sleeper->result = pto_park (sleeper->exec, &sleeper->word, 0, deadline);
  while (sleeper->result == PTO_PARK_WOKEN && pto_word_get (&sleeper->word) == 0);
  sleeper->early = sleeper->result == PTO_PARK_TIMEOUT && pto_now (sleeper->exec) < deadline;
}

static void
test_deadlines (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 4, 3);
  struct sleeper sleepers[40];
  struct pto_word own;
  uint64_t deadline;

  for (uint32_t i = 0; i < G_N_ELEMENTS (sleepers); i++)
    {
      sleepers[i]
          = (struct sleeper){ .exec = exec, .delay = 100000u * ((i * 7) % 40), .early = true };
      pto_word_init (&sleepers[i].word, 0, i % 2 == 0);
      spawn (exec, i % 4, sleeper_main, &sleepers[i]);
    }
  pto_exec_enter (exec);
  pto_word_init (&own, 0, false);
  deadline = pto_now (exec) + 3000000;
  while (pto_park (exec, &own, 0, deadline) != PTO_PARK_TIMEOUT)
    ;
  g_assert_cmpuint (pto_now (exec), >=, deadline);
  /* One that has passed. */
  g_assert_cmpint (pto_park (exec, &own, 0, deadline), ==, PTO_PARK_TIMEOUT);
  g_assert_cmpint (pto_park (exec, &own, 1, deadline), ==, PTO_PARK_WOKEN);
  pto_exec_join (exec);
  pto_exec_leave (exec);
  for (uint32_t i = 0; i < G_N_ELEMENTS (sleepers); i++)
    {
      g_assert_cmpint (sleepers[i].result, ==, PTO_PARK_TIMEOUT);
      g_assert_false (sleepers[i].early);
    }
  pto_exec_free (exec);
}

/* Woken long before the deadline, and the deadline of one park does not end a later one. */
static void
test_woken_before_deadline (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 2, 3);
  struct sleeper sleepers[20];

  for (uint32_t i = 0; i < G_N_ELEMENTS (sleepers); i++)
    {
      sleepers[i] = (struct sleeper){ .exec = exec, .delay = (uint64_t) 3600 * 1000000000u };
      pto_word_init (&sleepers[i].word, 0, false);
      spawn (exec, i % 2, sleeper_main, &sleepers[i]);
    }
  pto_exec_enter (exec);
  pto_yield (exec);
  for (uint32_t i = 0; i < G_N_ELEMENTS (sleepers); i++)
    pto_word_set (exec, &sleepers[i].word, 1);
  pto_exec_join (exec);
  pto_exec_leave (exec);
  for (uint32_t i = 0; i < G_N_ELEMENTS (sleepers); i++)
    g_assert_cmpint (sleepers[i].result, ==, PTO_PARK_WOKEN);
  pto_exec_free (exec);
}

/* Deadlines that come just when somebody wakes: each park ends exactly once, and the loops come to
 * their ends. */
struct duel
{
  struct pto_exec *exec;
  struct pto_word word;
  struct pto_word done;
  uint32_t rounds;
};

static void
duel_sleeper (void *arg)
{
  struct duel *duel = arg;

  for (uint32_t i = 0; i < duel->rounds; i++)
    {
      uint32_t seen = pto_word_get (&duel->word);

      pto_park (duel->exec, &duel->word, seen, pto_now (duel->exec) + pto_rand (duel->exec) % 3000);
      pto_charge (duel->exec, 100);
    }
  pto_word_set (duel->exec, &duel->done, 1);
}

static void
duel_waker (void *arg)
{
  struct duel *duel = arg;

  while (pto_word_get (&duel->done) == 0)
    {
      atomic_fetch_add_explicit (&duel->word.value, 1, memory_order_release);
      pto_unpark (duel->exec, &duel->word);
      pto_charge (duel->exec, pto_rand (duel->exec) % 3000 + 1);
      pto_yield (duel->exec);
    }
}

static void
test_deadline_races (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 3, 5);
  struct duel duels[2];

  for (int i = 0; i < 2; i++)
    {
      duels[i].exec = exec;
      duels[i].rounds = SCALE (20000);
      pto_word_init (&duels[i].word, 0, false);
      pto_word_init (&duels[i].done, 0, false);
    }
  spawn (exec, 0, duel_sleeper, &duels[0]);
  spawn (exec, 1, duel_waker, &duels[0]);
  spawn (exec, 2, duel_sleeper, &duels[1]);
  pto_exec_enter (exec);
  duel_waker (&duels[1]);
  pto_exec_join (exec);
  pto_exec_leave (exec);
  pto_exec_free (exec);
}

/* --- random numbers --- */

struct draw
{
  struct pto_exec *exec;
  uint64_t numbers[4];
};

static void
draw (void *arg)
{
  struct draw *draw = arg;

  for (uint32_t i = 0; i < G_N_ELEMENTS (draw->numbers); i++)
    draw->numbers[i] = pto_rand (draw->exec);
}

/* Every actor has numbers of its own, the same again with the same seed. */
static void
test_random_numbers (gconstpointer backend)
{
  struct draw draws[2][8];

  for (uint32_t round = 0; round < 2; round++)
    {
      struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 1, 5);

      for (uint32_t i = 0; i < G_N_ELEMENTS (draws[round]); i++)
        {
          draws[round][i].exec = exec;
          spawn (exec, 0, draw, &draws[round][i]);
        }
      pto_exec_join (exec);
      pto_exec_free (exec);
    }
  for (uint32_t i = 0; i < G_N_ELEMENTS (draws[0]); i++)
    {
      g_assert_cmpmem (draws[0][i].numbers, sizeof draws[0][i].numbers, draws[1][i].numbers,
                       sizeof draws[1][i].numbers);
      for (uint32_t other = 0; other < i; other++)
        g_assert_cmpuint (draws[0][i].numbers[0], !=, draws[0][other].numbers[0]);
    }
}

/* --- par: who carries what --- */

static void
flag_waiter (void *arg)
{
  _Atomic int *flag = arg;

  /* Deliberately without parking: holds its carrier. */
  while (atomic_load_explicit (flag, memory_order_acquire) == 0)
    sched_yield ();
}

static void
flag_setter (void *arg)
{
  _Atomic int *flag = arg;

  atomic_store_explicit (flag, 1, memory_order_release);
}

static void
test_guest_carries (void)
{
  struct pto_exec_config config = { .backend = PTO_BACKEND_PAR, .domains = 2, .carriers = 1 };
  char error[256];

  for (int i = 0; i < 200; i++)
    {
      struct pto_exec *exec = pto_exec_new (&config, error, sizeof error);
      _Atomic int flag = 0;

      g_assert_nonnull (exec);
      spawn (exec, 0, flag_waiter, &flag);
      spawn (exec, 1, flag_setter, &flag);
      pto_exec_join (exec);
      pto_exec_free (exec);
    }
}

/* Woken by a thread outside, at any moment of the carriers' going to sleep: one actor that holds
 * its carrier until another has run (or until another's timer has come). Whoever is awake must see
 * to it that somebody serves the other. */
struct relay
{
  struct pto_exec *exec;
  struct pto_word holder, runner;
  bool timer; /* the other waits for time, not for a word */
  uint32_t rounds;
  _Atomic uint32_t about, held, ran;
};

static void
relay_holder (void *arg)
{
  struct relay *relay = arg;

  for (uint32_t i = 1; i <= relay->rounds; i++)
    {
      wait_for (relay->exec, &relay->holder, i);
      while (atomic_load (&relay->ran) != i)
        sched_yield ();
      atomic_store (&relay->held, i);
    }
}

static void
relay_runner (void *arg)
{
  struct relay *relay = arg;

  for (uint32_t i = 1; i <= relay->rounds; i++)
    {
      wait_for (relay->exec, &relay->runner, relay->timer ? i - 1 : i);
      if (relay->timer)
        {
          uint64_t deadline = pto_now (relay->exec) + 200000;

          atomic_store (&relay->about, i);
          while (pto_park (relay->exec, &relay->runner, i - 1, deadline) != PTO_PARK_TIMEOUT)
            ;
          atomic_store (&relay->ran, i);
          wait_for (relay->exec, &relay->runner, i);
        }
      atomic_store (&relay->ran, i);
    }
}

static void *
relay_outside (void *arg)
{
  struct relay *relay = arg;
  uint64_t state = 3;

  for (uint32_t i = 1; i <= relay->rounds; i++)
    {
      while (relay->timer && atomic_load (&relay->about) != i)
        sched_yield ();
      for (int j = (int) (i % 64); j > 0; j--)
        dawdle (&state);
      pto_word_set (relay->exec, &relay->holder, i);
      if (!relay->timer)
        pto_word_set (relay->exec, &relay->runner, i);
      while (atomic_load (&relay->held) != i)
        sched_yield ();
      if (relay->timer)
        pto_word_set (relay->exec, &relay->runner, i);
    }
  return NULL;
}

static void
run_relay (bool timer, uint32_t rounds)
{
  struct pto_exec_config config = { .backend = PTO_BACKEND_PAR, .domains = 2, .carriers = 1 };
  char error[256];
  struct relay relay
      = { .exec = pto_exec_new (&config, error, sizeof error), .timer = timer, .rounds = rounds };
  pthread_t thread;

  g_assert_nonnull (relay.exec);
  pto_word_init (&relay.holder, 0, false);
  pto_word_init (&relay.runner, 0, false);
  spawn (relay.exec, 0, relay_holder, &relay);
  spawn (relay.exec, 1, relay_runner, &relay);
  g_assert_cmpint (pthread_create (&thread, NULL, relay_outside, &relay), ==, 0);
  pto_exec_join (relay.exec);
  pthread_join (thread, NULL);
  pto_exec_free (relay.exec);
}

static void
test_relay (void)
{
  run_relay (false, SCALE (10000));
}

static void
test_relay_timer (void)
{
  run_relay (true, SCALE (1000));
}

static void
yield_main (void *arg)
{
  struct pto_exec *exec = arg;

  for (int i = 0; i < 100000; i++)
    pto_yield (exec);
}

/* While one carrier is held, the guest helps slice by slice and comes back each time. */
static void
test_help (void)
{
  struct pto_exec_config config = { .backend = PTO_BACKEND_PAR, .domains = 2, .carriers = 1 };
  char error[256];
  struct pto_exec *exec = pto_exec_new (&config, error, sizeof error);
  _Atomic int flag = 0;
  unsigned int slices = 0;

  pto_exec_enter (exec);
  g_assert_cmpstr (pto_actor_name (), ==, "guest");
  spawn (exec, 0, flag_waiter, &flag);
  spawn (exec, 1, yield_main, exec);
  while (pto_exec_live (exec) > 1)
    if (pto_exec_help (exec))
      {
        g_assert_cmpstr (pto_actor_name (), ==, "guest");
        slices++;
        /* The guest itself may have taken the one that waits for the flag, before the carrier was
         * awake. */
        atomic_store_explicit (&flag, 1, memory_order_release);
      }
    else
      {
        atomic_store_explicit (&flag, 1, memory_order_release);
        sched_yield ();
      }
  pto_exec_join (exec);
  g_assert_false (pto_exec_help (exec));
  pto_exec_leave (exec);
  g_test_message ("%u slices", slices);
  pto_exec_free (exec);
}

struct chat
{
  struct pto_exec *exec;
  _Atomic uint32_t held, over;
  uint32_t yields;
};

static void
hold_main (void *arg)
{
  struct chat *chat = arg;

  atomic_store (&chat->held, 1);
  while (atomic_load (&chat->over) == 0)
    sched_yield ();
}

static void
chat_main (void *arg)
{
  struct chat *chat = arg;

  while (atomic_load (&chat->over) == 0 && chat->yields < 100000)
    {
      chat->yields++;
      pto_yield (chat->exec);
    }
}

/* One slice, though nobody else has anything to do: the guest has something of its own. */
static void
test_help_is_short (void)
{
  struct pto_exec_config config = { .backend = PTO_BACKEND_PAR, .domains = 2, .carriers = 1 };
  char error[256];
  struct pto_exec *exec = pto_exec_new (&config, error, sizeof error);
  struct chat chat = { .exec = exec };

  pto_exec_enter (exec);
  spawn (exec, 0, hold_main, &chat);
  /* Nobody but the guest runs the other domain from here on. */
  while (atomic_load (&chat.held) == 0)
    sched_yield ();
  spawn (exec, 1, chat_main, &chat);
  while (!pto_exec_help (exec))
    sched_yield ();
  g_assert_cmpuint (chat.yields, >, 0);
  g_assert_cmpuint (chat.yields, <, 100000);
  atomic_store (&chat.over, 1);
  pto_exec_join (exec);
  pto_exec_leave (exec);
  pto_exec_free (exec);
}

/* No domain starves behind others that always have something to do. */
struct starve
{
  struct pto_exec *exec;
  _Atomic uint32_t stop;
};

static void
busy_main (void *arg)
{
  struct starve *starve = arg;

  while (atomic_load_explicit (&starve->stop, memory_order_relaxed) == 0)
    pto_yield (starve->exec);
}

static void
stopper_main (void *arg)
{
  struct starve *starve = arg;

  for (int i = 0; i < 1000; i++)
    pto_yield (starve->exec);
  atomic_store_explicit (&starve->stop, 1, memory_order_relaxed);
}

static void
test_starvation (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 64, 3);
  struct starve starve = { .exec = exec };

  for (uint32_t i = 0; i < 63; i++)
    spawn (exec, i, busy_main, &starve);
  spawn (exec, 63, stopper_main, &starve);
  pto_exec_join (exec);
  pto_exec_free (exec);
}

/* --- cost of doing nothing --- */

static uint64_t
cpu_ns (void)
{
  struct rusage usage;

  getrusage (RUSAGE_SELF, &usage);
  return (uint64_t) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u
         + (uint64_t) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

static void
parked_main (void *arg)
{
  struct pair *pair = arg;

  wait_for (pair->exec, &pair->ping, 1);
}

static void
test_idle (gconstpointer data)
{
  enum pto_backend backend = GPOINTER_TO_INT (data);
  struct pto_exec *exec = new_exec (backend, 4, 3);
  struct pair pairs[RING];
  struct pto_word own;
  pid_t process = getpid ();

  for (uint32_t i = 0; i < RING; i++)
    {
      pair_init (&pairs[i], exec, false, 1);
      spawn (exec, i % 4, parked_main, &pairs[i]);
    }
  pto_exec_enter (exec);
  pto_word_init (&own, 0, false);
  while (pto_park (exec, &own, 0, pto_now (exec) + 20000000) != PTO_PARK_TIMEOUT)
    ;
  pto_exec_leave (exec);

  /* Nobody inside. */
  still_wait (&process, 1);

  /* The guest waits for what does not come. All sleep for nearly all of that; where the machine
   * took part of it away, they are asked once more. */
  if (backend != PTO_BACKEND_DET)
    {
      uint64_t used, rounds = 0;

      pto_exec_enter (exec);
      do
        {
          uint64_t before = cpu_ns ();
          uint64_t deadline = clock_ns () + 200000000;

          g_assert_cmpuint (rounds++, <, 100);
          while (pto_park (exec, &own, 0, deadline) != PTO_PARK_TIMEOUT)
            ;
          used = cpu_ns () - before;
        }
      while (used >= 5000000);
      pto_exec_leave (exec);
    }

  pto_exec_enter (exec);
  for (uint32_t i = 0; i < RING; i++)
    pto_word_set (exec, &pairs[i].ping, 1);
  pto_exec_join (exec);
  pto_exec_leave (exec);
  pto_exec_free (exec);
}

static unsigned int
entries (const char *path)
{
  DIR *dir = opendir (path);
  unsigned int count = 0;

  g_assert_nonnull (dir);
  while (readdir (dir) != NULL)
    count++;
  closedir (dir);
  return count;
}

static unsigned int
mappings (void)
{
  FILE *file = fopen ("/proc/self/maps", "r");
  unsigned int count = 0;
  int c;

  g_assert_nonnull (file);
  while ((c = getc (file)) != EOF)
    count += c == '\n';
  fclose (file);
  return count;
}

static void
count_main (void *arg)
{
  atomic_fetch_add_explicit ((_Atomic uint32_t *) arg, 1, memory_order_relaxed);
}

static void
spawn_and_join (enum pto_backend backend, uint32_t total)
{
  struct pto_exec *exec = new_exec (backend, 4, 3);
  _Atomic uint32_t count = 0;

  pto_exec_enter (exec);
  for (uint32_t i = 0; i < total; i += 50)
    {
      for (uint32_t j = 0; j < 50; j++)
        spawn (exec, j % 4, count_main, (void *) &count);
      pto_exec_join (exec);
    }
  pto_exec_leave (exec);
  g_assert_cmpuint (count, ==, total);
  pto_exec_free (exec);
}

static void
test_no_leaks (gconstpointer backend)
{
  unsigned int maps, files, threads;
  uint64_t limit = clock_ns () + (uint64_t) 10 * 1000000000u;

  /* What allocators and libc keep for themselves is there after the first time. */
  spawn_and_join (GPOINTER_TO_INT (backend), 200);
  maps = mappings ();
  files = entries ("/proc/self/fd");
  threads = entries ("/proc/self/task");
  spawn_and_join (GPOINTER_TO_INT (backend), SCALE (10000));
  g_assert_cmpuint (entries ("/proc/self/fd"), ==, files);
  /* A joined thread may be listed for a moment. */
  while (entries ("/proc/self/task") > threads && clock_ns () < limit)
    sched_yield ();
  g_assert_cmpuint (entries ("/proc/self/task"), <=, threads);
  /* Sanitizers map memory for themselves. */
#if !defined(PTO_ASAN) && !defined(PTO_TSAN)
  g_assert_cmpuint (mappings (), <=, maps + 8);
#else
  (void) maps;
#endif
}

/* --- the rest of the contract --- */

static void
name_main (void *arg)
{
  *(const char **) arg = pto_actor_name ();
}

static void
test_names (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 1, 3);
  const char *name = NULL;
  char error[256] = "";

  g_assert_cmpint (pto_exec_backend (exec), ==, GPOINTER_TO_INT (backend));
  g_assert_null (pto_actor_name ());
  g_assert_cmpint (pto_exec_spawn (exec, 0, "core 17", name_main, &name, error, sizeof error), ==,
                   0);
  pto_exec_join (exec);
  g_assert_cmpstr (name, ==, "core 17");
  g_assert_cmpint (pto_exec_spawn (exec, 1, "nowhere", name_main, &name, error, sizeof error), ==,
                   -1);
  g_assert_cmpstr (error, ==, "Domain 1 of 1 does not exist");
  g_assert_null (pto_actor_name ());
  pto_exec_free (exec);
}

static void
spawner_main (void *arg)
{
  struct ring_place *place = arg;
  struct ring_place *child = place + 1;

  place->ring->steps++;
  if (place->i > 0)
    {
      child->ring = place->ring;
      child->i = place->i - 1;
      spawn (place->ring->exec, place->i % 4, spawner_main, child);
    }
}

static void
test_actors_spawn (gconstpointer backend)
{
  struct ring ring = { .exec = new_exec (GPOINTER_TO_INT (backend), 4, 3) };
  struct ring_place places[101] = { { &ring, 100 } };

  spawn (ring.exec, 0, spawner_main, &places[0]);
  pto_exec_join (ring.exec);
  g_assert_cmpuint (ring.steps, ==, 101);
  pto_exec_free (ring.exec);
}

/* Actors outlive guests: what one guest began, the next finishes, on another thread. */
static void *
second_guest (void *arg)
{
  struct pair *pair = arg;

  pto_exec_enter (pair->exec);
  wait_for (pair->exec, &pair->pong, 10);
  for (uint32_t i = 11; i <= pair->rounds; i++)
    {
      pto_word_set (pair->exec, &pair->ping, i);
      wait_for (pair->exec, &pair->pong, i);
    }
  pto_exec_join (pair->exec);
  pto_exec_leave (pair->exec);
  return NULL;
}

static void
test_two_guests (gconstpointer backend)
{
  struct pto_exec *exec = new_exec (GPOINTER_TO_INT (backend), 2, 3);
  struct pair pair;
  pthread_t thread;

  pair_init (&pair, exec, false, 20);
  spawn (exec, 1, pong_main, &pair);
  pto_exec_enter (exec);
  for (uint32_t i = 1; i <= 9; i++)
    {
      pto_word_set (exec, &pair.ping, i);
      wait_for (exec, &pair.pong, i);
    }
  pto_word_set (exec, &pair.ping, 10);
  pto_exec_leave (exec);
  g_assert_cmpint (pthread_create (&thread, NULL, second_guest, &pair), ==, 0);
  pthread_join (thread, NULL);
  g_assert_cmpuint (pto_exec_live (exec), ==, 0);
  pto_exec_free (exec);
}

static void
test_refusals (void)
{
  struct pto_exec_config config = { .backend = PTO_BACKEND_PAR, .domains = 65 };
  char error[256] = "";

  g_assert_null (pto_exec_new (&config, error, sizeof error));
  g_assert_cmpstr (error, ==, "65 domains asked for, 1 to 64 are possible");
  config = (struct pto_exec_config){ .backend = 9, .domains = 1 };
  g_assert_null (pto_exec_new (&config, error, sizeof error));
  g_assert_cmpstr (error, ==, "There is no execution back end 9");
  /* No address space for such a stack. */
  config = (struct pto_exec_config){ .backend = PTO_BACKEND_DET,
                                     .domains = 1,
                                     .stack_size = (size_t) 1 << 50 };
  {
    struct pto_exec *exec = pto_exec_new (&config, error, sizeof error);

    g_assert_nonnull (exec);
    g_assert_cmpint (pto_exec_spawn (exec, 0, "big", name_main, NULL, error, sizeof error), ==, -1);
    g_assert_true (g_str_has_prefix (error, "No stack of "));
    g_assert_cmpuint (pto_exec_live (exec), ==, 0);
    pto_exec_free (exec);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  add_for_backends ("names", test_names);
  add_for_backends ("ping-pong-local", test_ping_pong_local);
  add_for_backends ("ping-pong-shared", test_ping_pong_shared);
  add_for_backends ("ping-pong-guest", test_ping_pong_guest);
  add_for_backends ("wake-races", test_wake_races);
  add_for_backends ("jitter", test_jitter);
  add_for_backends ("storm", test_storm);
  add_for_backends ("outside", test_outside);
  g_test_add_func ("/pto/exec/det/outside-det", test_outside_det);
  add_for_backends ("ring", test_ring);
  add_for_backends ("eight-executors", test_eight_executors);
  add_for_deadlines ("deadlines", test_deadlines);
  add_for_deadlines ("woken-before-deadline", test_woken_before_deadline);
  add_for_deadlines ("deadline-races", test_deadline_races);
  add_for_backends ("starvation", test_starvation);
  add_for_backends ("random-numbers", test_random_numbers);
  g_test_add_func ("/pto/exec/par/guest-carries", test_guest_carries);
  g_test_add_func ("/pto/exec/par/relay", test_relay);
  g_test_add_func ("/pto/exec/par/relay-timer", test_relay_timer);
  g_test_add_func ("/pto/exec/par/help", test_help);
  g_test_add_func ("/pto/exec/par/help-is-short", test_help_is_short);
  add_for_backends ("idle", test_idle);
  add_for_backends ("no-leaks", test_no_leaks);
  add_for_backends ("actors-spawn", test_actors_spawn);
  add_for_backends ("two-guests", test_two_guests);
  g_test_add_func ("/pto/exec/refusals", test_refusals);
  return g_test_run ();
}
