/* test-det.c: does a run repeat itself, and can all runs be listed?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "exec-test.h"

#include "../../pto/exec/exec-private.h"

#include <string.h>

/* --- a little world with every kind of event --- */

#define ACTORS 9
#define STEPS 40

struct world
{
  struct pto_exec *exec;
  struct pto_word words[ACTORS];
  uint64_t hash;
  uint64_t events;
};

struct citizen
{
  struct world *world;
  uint32_t i;
};

static void
note (struct world *world, uint64_t what)
{
  world->hash = (world->hash ^ what) * 0x100000001b3u;
  world->hash = (world->hash ^ pto_now (world->exec)) * 0x100000001b3u;
  world->events++;
}

static void
citizen_main (void *arg)
{
  struct citizen *citizen = arg;
  struct world *world = citizen->world;
  struct pto_word *mine = &world->words[citizen->i];

  for (uint32_t step = 0; step < STEPS; step++)
    {
      struct pto_word *other = &world->words[pto_rand (world->exec) % ACTORS];

      note (world, citizen->i);
      switch (pto_rand (world->exec) % 4)
        {
        case 0:
          pto_charge (world->exec, pto_rand (world->exec) % 5);
          break;
        case 1:
          pto_yield (world->exec);
          break;
        case 2:
          pto_word_set (world->exec, other, pto_word_get (other) + 1);
          break;
        default:
          note (world, 100
                           + pto_park (world->exec, mine, pto_word_get (mine),
                                       pto_now (world->exec) + pto_rand (world->exec) % 20));
          break;
        }
    }
  note (world, 1000 + citizen->i);
}

/* What happens in the world that begins on a new executor. */
static uint64_t
run_world (struct pto_exec *exec)
{
  struct world *world = g_new0 (struct world, 1);
  struct citizen citizens[ACTORS];
  uint64_t hash;

  world->exec = exec;
  for (uint32_t i = 0; i < ACTORS; i++)
    {
      pto_word_init (&world->words[i], 0, false);
      citizens[i] = (struct citizen){ world, i };
      spawn (world->exec, i % 3, citizen_main, &citizens[i]);
    }
  pto_exec_join (world->exec);
  g_assert_cmpuint (pto_exec_live (world->exec), ==, 0);
  g_assert_cmpuint (world->events, >=, ACTORS * (STEPS + 1));
  hash = world->hash;
  g_free (world);
  return hash;
}

static uint64_t
world_hash (uint64_t seed)
{
  struct pto_exec *exec = new_exec (PTO_BACKEND_DET, 3, seed);
  uint64_t hash = run_world (exec);

  pto_exec_free (exec);
  return hash;
}

static void
test_same_seed (void)
{
  for (uint64_t seed = 1; seed <= 20; seed++)
    {
      uint64_t first = world_hash (seed);
      /* Addresses differ the second time. */
      void *ballast = g_malloc (12345 * seed);

      g_assert_cmphex (world_hash (seed), ==, first);
      g_free (ballast);
    }
}

/* One that is restarted is as good as new, whatever it did before; it has its stacks. */
static void
test_restart (void)
{
  struct pto_exec *exec = new_exec (PTO_BACKEND_DET, 3, 1);

  run_world (exec);
  for (uint64_t seed = 1; seed <= 5; seed++)
    {
      g_assert_true (pto_exec_restart (exec, seed));
      g_assert_cmpuint (pto_now (exec), ==, 0);
      g_assert_cmphex (run_world (exec), ==, world_hash (seed));
      g_assert_cmpuint (pto_exec_live (exec), ==, 0);
    }
  pto_exec_free (exec);
}

static uint32_t
choose_first (void *data, uint32_t n)
{
  (void) data;
  (void) n;
  return 0;
}

static void
nothing_main (void *arg)
{
  (void) arg;
}

/* The same world on actors whose addresses are in another order: the second set is recycled, last
 * in, first out. */
static void
test_addresses (void)
{
  uint64_t hashes[2];

  for (int recycled = 0; recycled < 2; recycled++)
    {
      struct pto_exec_config config
          = { .backend = PTO_BACKEND_DET, .domains = 3, .seed = 9, .choose = choose_first };
      struct world *world = g_new0 (struct world, 1);
      struct citizen citizens[ACTORS];
      char error[256];

      world->exec = pto_exec_new (&config, error, sizeof error);
      for (uint32_t i = 0; recycled && i < ACTORS; i++)
        spawn (world->exec, 0, nothing_main, NULL);
      pto_exec_join (world->exec);
      for (uint32_t i = 0; i < ACTORS; i++)
        {
          pto_word_init (&world->words[i], 0, false);
          citizens[i] = (struct citizen){ world, i };
          spawn (world->exec, i % 3, citizen_main, &citizens[i]);
        }
      pto_exec_join (world->exec);
      hashes[recycled] = world->hash;
      pto_exec_free (world->exec);
      g_free (world);
    }
  g_assert_cmphex (hashes[0], ==, hashes[1]);
}

/* Whose time comes together goes on in the order in which they began to wait. */
struct queue
{
  struct pto_exec *exec;
  uint64_t n_armed;
  uint64_t last_time;
  uint64_t last_armed;
};

static void
queuer_main (void *arg)
{
  struct queue *queue = arg;

  for (uint32_t round = 0; round < 50; round++)
    {
      uint64_t armed = ++queue->n_armed;
      uint64_t now;

      pto_charge (queue->exec, 10 * (1 + pto_rand (queue->exec) % 3));
      now = pto_now (queue->exec);
      g_assert_true (now > queue->last_time || armed > queue->last_armed);
      queue->last_time = now;
      queue->last_armed = armed;
    }
}

static void
test_equal_times (void)
{
  for (uint64_t seed = 0; seed < 20; seed++)
    {
      struct pto_exec_config config
          = { .backend = PTO_BACKEND_DET, .domains = 1, .seed = seed, .choose = choose_first };
      struct queue queue = { .n_armed = 0 };
      char error[256];

      queue.exec = pto_exec_new (&config, error, sizeof error);
      for (uint32_t i = 0; i < 12; i++)
        spawn (queue.exec, 0, queuer_main, &queue);
      pto_exec_join (queue.exec);
      g_assert_cmpuint (queue.n_armed, ==, 12 * 50);
      pto_exec_free (queue.exec);
    }
}

static void
test_seeds_differ (void)
{
  GHashTable *seen = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);

  for (uint64_t seed = 1; seed <= SCALE (1000); seed++)
    {
      gint64 *hash = g_new (gint64, 1);

      *hash = (gint64) world_hash (seed);
      g_hash_table_add (seen, hash);
    }
  g_assert_cmpuint (g_hash_table_size (seen), >, SCALE (1000) * 9 / 10);
  g_hash_table_unref (seen);
}

/* --- exact virtual times --- */

struct timed
{
  struct pto_exec *exec;
  struct pto_word word;
  uint64_t times[8];
  enum pto_park_result results[8];
};

static void
timed_sleeper (void *arg)
{
  struct timed *t = arg;

  t->results[0] = pto_park (t->exec, &t->word, 0, 50);
  t->times[0] = pto_now (t->exec);
  t->results[1] = pto_park (t->exec, &t->word, 0, PTO_NEVER);
  t->times[1] = pto_now (t->exec);
  pto_charge (t->exec, 1000);
  t->times[2] = pto_now (t->exec);
  t->results[3] = pto_park (t->exec, &t->word, 1, 1500);
  t->times[3] = pto_now (t->exec);
  t->results[4] = pto_park (t->exec, &t->word, 1, 1500);
  t->times[4] = pto_now (t->exec);
}

static void
timed_waker (void *arg)
{
  struct timed *t = arg;

  pto_charge (t->exec, 120);
  pto_charge (t->exec, 3);
  pto_word_set (t->exec, &t->word, 1);
  pto_charge (t->exec, 40);
  t->times[7] = pto_now (t->exec);
}

static void
test_exact_times (void)
{
  for (uint64_t seed = 0; seed < 20; seed++)
    {
      struct timed t = { .exec = new_exec (PTO_BACKEND_DET, 1, seed) };
      struct pto_word own;

      pto_word_init (&t.word, 0, false);
      pto_word_init (&own, 0, false);
      g_assert_cmpuint (pto_now (t.exec), ==, 0);
      spawn (t.exec, 0, timed_sleeper, &t);
      spawn (t.exec, 0, timed_waker, &t);
      pto_exec_enter (t.exec);
      g_assert_cmpint (pto_park (t.exec, &own, 0, 77), ==, PTO_PARK_TIMEOUT);
      g_assert_cmpuint (pto_now (t.exec), ==, 77);
      pto_charge (t.exec, 0);
      g_assert_cmpuint (pto_now (t.exec), ==, 77);
      pto_exec_join (t.exec);
      pto_exec_leave (t.exec);
      g_assert_cmpint (t.results[0], ==, PTO_PARK_TIMEOUT);
      g_assert_cmpuint (t.times[0], ==, 50);
      g_assert_cmpint (t.results[1], ==, PTO_PARK_WOKEN);
      g_assert_cmpuint (t.times[1], ==, 123);
      g_assert_cmpuint (t.times[2], ==, 1123);
      g_assert_cmpint (t.results[3], ==, PTO_PARK_TIMEOUT);
      g_assert_cmpuint (t.times[3], ==, 1500);
      g_assert_cmpint (t.results[4], ==, PTO_PARK_TIMEOUT);
      g_assert_cmpuint (t.times[4], ==, 1500);
      g_assert_cmpuint (t.times[7], ==, 163);
      g_assert_cmpuint (pto_now (t.exec), ==, 1500);
      pto_exec_free (t.exec);
    }
}

/* The clock stands still while somebody can run. */
static void
polite_main (void *arg)
{
  struct timed *t = arg;

  for (int i = 0; i < 100; i++)
    {
      g_assert_cmpuint (pto_now (t->exec), ==, 0);
      pto_yield (t->exec);
    }
}

static void
test_clock_stands (void)
{
  struct timed t = { .exec = new_exec (PTO_BACKEND_DET, 1, 5) };

  pto_word_init (&t.word, 1, false);
  spawn (t.exec, 0, timed_waker, &t);
  spawn (t.exec, 0, polite_main, &t);
  spawn (t.exec, 0, polite_main, &t);
  pto_exec_join (t.exec);
  g_assert_cmpuint (pto_now (t.exec), ==, 163);
  pto_exec_free (t.exec);
}

/* --- deadlock --- */

struct knot
{
  struct pto_exec *exec;
  struct pto_word a, b;
};

static void
knot_a (void *arg)
{
  struct knot *knot = arg;

  pto_charge (knot->exec, 10);
  wait_for (knot->exec, &knot->a, 1);
  pto_word_set (knot->exec, &knot->b, 1);
}

static void
knot_b (void *arg)
{
  struct knot *knot = arg;

  wait_for (knot->exec, &knot->b, 1);
  pto_word_set (knot->exec, &knot->a, 1);
}

static void
test_deadlock (void)
{
  struct knot knot = { .exec = new_exec (PTO_BACKEND_DET, 1, 5) };
  struct pto_word own;

  pto_word_init (&knot.a, 0, false);
  pto_word_init (&knot.b, 0, false);
  pto_word_init (&own, 0, false);
  spawn (knot.exec, 0, knot_a, &knot);
  spawn (knot.exec, 0, knot_b, &knot);
  pto_exec_enter (knot.exec);
  g_assert_cmpint (pto_park (knot.exec, &own, 0, PTO_NEVER), ==, PTO_PARK_DEADLOCK);
  g_assert_cmpuint (pto_now (knot.exec), ==, 10);
  /* A deadline is something to wait for. */
  g_assert_cmpint (pto_park (knot.exec, &own, 0, 500), ==, PTO_PARK_TIMEOUT);
  g_assert_cmpuint (pto_now (knot.exec), ==, 500);
  pto_exec_join (knot.exec);
  g_assert_cmpuint (pto_exec_live (knot.exec), ==, 2);
  /* The guest can cut the knot. */
  pto_word_set (knot.exec, &knot.a, 1);
  pto_exec_join (knot.exec);
  g_assert_cmpuint (pto_exec_live (knot.exec), ==, 0);
  pto_exec_leave (knot.exec);
  pto_exec_free (knot.exec);
}

/* Those that are parked for ever are dropped with the executor. */
static void
test_deadlock_dropped (void)
{
  struct knot knot = { .exec = new_exec (PTO_BACKEND_DET, 1, 5) };

  pto_word_init (&knot.a, 0, false);
  pto_word_init (&knot.b, 0, false);
  spawn (knot.exec, 0, knot_a, &knot);
  spawn (knot.exec, 0, knot_b, &knot);
  pto_exec_join (knot.exec);
  g_assert_cmpuint (pto_exec_live (knot.exec), ==, 2);
  g_assert_false (pto_exec_restart (knot.exec, 5));
  pto_exec_free (knot.exec);
}

/* --- all interleavings --- */

struct explorer
{
  uint32_t trail[64]; /* choices to repeat, then zeros */
  uint32_t width[64];
  uint32_t depth;
  GString *trace;
  struct pto_exec *exec;
};

static uint32_t
explorer_choose (void *data, uint32_t n)
{
  struct explorer *e = data;

  g_assert_cmpuint (n, >=, 2);
  g_assert_cmpuint (e->depth, <, G_N_ELEMENTS (e->trail));
  e->width[e->depth] = n;
  return e->trail[e->depth++];
}

/* The next trail in depth-first order, or FALSE. */
static gboolean
explorer_next (struct explorer *e)
{
  uint32_t i = e->depth;

  while (i > 0)
    {
      i--;
      if (++e->trail[i] < e->width[i])
        {
          memset (&e->trail[i + 1], 0, (G_N_ELEMENTS (e->trail) - i - 1) * sizeof e->trail[0]);
          return TRUE;
        }
    }
  return FALSE;
}

struct letter
{
  struct explorer *explorer;
  char name;
  int steps;
};

static void
letter_main (void *arg)
{
  struct letter *letter = arg;

  for (int i = 0; i < letter->steps; i++)
    {
      if (i > 0)
        pto_yield (letter->explorer->exec);
      g_string_append_c (letter->explorer->trace, letter->name);
    }
}

static guint
count_interleavings (int actors, int steps)
{
  struct explorer explorer = { .depth = 0 };
  GHashTable *seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  guint count;

  do
    {
      struct pto_exec_config config = { .backend = PTO_BACKEND_DET,
                                        .domains = 1,
                                        .choose = explorer_choose,
                                        .choose_data = &explorer };
      struct letter letters[4];
      char error[256];

      explorer.depth = 0;
      explorer.trace = g_string_new (NULL);
      explorer.exec = pto_exec_new (&config, error, sizeof error);
      for (int i = 0; i < actors; i++)
        {
          letters[i] = (struct letter){ &explorer, (char) ('a' + i), steps };
          spawn (explorer.exec, 0, letter_main, &letters[i]);
        }
      pto_exec_join (explorer.exec);
      pto_exec_free (explorer.exec);
      g_hash_table_add (seen, g_string_free (explorer.trace, FALSE));
    }
  while (explorer_next (&explorer));
  count = g_hash_table_size (seen);
  g_hash_table_unref (seen);
  return count;
}

static void
test_all_interleavings (void)
{
  g_assert_cmpuint (count_interleavings (2, 2), ==, 6);    /* 4! / (2! 2!) */
  g_assert_cmpuint (count_interleavings (2, 4), ==, 70);   /* 8! / (4! 4!) */
  g_assert_cmpuint (count_interleavings (3, 2), ==, 90);   /* 6! / (2! 2! 2!) */
  g_assert_cmpuint (count_interleavings (3, 3), ==, 1680); /* 9! / (3! 3! 3!) */
}

/* The explorer's points in the engine's atomics are switches, too. */
void pto_explore_point (void);

static void
racy_main (void *arg)
{
  struct letter *letter = arg;

  for (int i = 0; i < letter->steps; i++)
    {
      pto_explore_point ();
      g_string_append_c (letter->explorer->trace, letter->name);
    }
}

static void
test_explore_point (void)
{
  struct explorer explorer = { .trace = g_string_new (NULL) };
  struct letter letters[2] = { { &explorer, 'a', 3 }, { &explorer, 'b', 3 } };
  struct pto_exec_config config = {
    .backend = PTO_BACKEND_DET, .domains = 1, .choose = explorer_choose, .choose_data = &explorer
  };
  char error[256];

  pto_explore_point (); /* outside of everything: nothing */
  explorer.exec = pto_exec_new (&config, error, sizeof error);
  spawn (explorer.exec, 0, racy_main, &letters[0]);
  spawn (explorer.exec, 0, racy_main, &letters[1]);
  pto_exec_join (explorer.exec);
  /* Always the one that has waited longest. */
  g_assert_cmpstr (explorer.trace->str, ==, "ababab");
  g_string_free (explorer.trace, TRUE);
  pto_exec_free (explorer.exec);
}

/* The first numbers of xoshiro256** from the state 1, 2, 3, 4, as its authors' program gives them:
 * a seed means the same for ever. */
static void
test_generator (void)
{
  static const uint64_t expected[] = { 11520, 0, 1509978240, UINT64_C (1215971899390074240) };
  uint64_t state[4] = { 1, 2, 3, 4 };

  for (uint32_t i = 0; i < G_N_ELEMENTS (expected); i++)
    g_assert_cmpuint (pto_rng_next (state), ==, expected[i]);
}

/* --- from outside --- */

struct news
{
  struct pto_exec *exec;
  struct pto_word word;
  gboolean heard;
};

static void
news_listen (void *arg)
{
  struct news *news = arg;

  wait_for (news->exec, &news->word, 1);
  news->heard = TRUE;
}

static gpointer
news_bring (gpointer arg)
{
  struct news *news = arg;

  pto_word_set (news->exec, &news->word, 1);
  return NULL;
}

/* Has somebody ready beside it from here on. */
static void
news_chatter (void *arg)
{
  struct news *news = arg;

  for (guint i = 0; i < 100; i++)
    pto_yield (news->exec);
  g_thread_join (g_thread_new ("bring", news_bring, news));
  for (guint i = 0; i < 100; i++)
    pto_yield (news->exec);
  g_assert_true (news->heard);
}

static void
news_idle (void *arg)
{
  struct news *news = arg;

  for (guint i = 0; i < 1000; i++)
    pto_yield (news->exec);
}

/* What another thread says is heard though there is always somebody else to run. */
static void
test_news (void)
{
  struct pto_exec *exec = new_exec (PTO_BACKEND_DET, 1, 1);
  struct news news = { .exec = exec };

  pto_word_init (&news.word, 0, false);
  spawn (exec, 0, news_listen, &news);
  spawn (exec, 0, news_chatter, &news);
  spawn (exec, 0, news_idle, &news);
  pto_exec_join (exec);
  g_assert_true (news.heard);
  pto_exec_free (exec);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/det/generator", test_generator);
  g_test_add_func ("/pto/det/same-seed", test_same_seed);
  g_test_add_func ("/pto/det/restart", test_restart);
  g_test_add_func ("/pto/det/addresses", test_addresses);
  g_test_add_func ("/pto/det/equal-times", test_equal_times);
  g_test_add_func ("/pto/det/seeds-differ", test_seeds_differ);
  g_test_add_func ("/pto/det/exact-times", test_exact_times);
  g_test_add_func ("/pto/det/clock-stands", test_clock_stands);
  g_test_add_func ("/pto/det/news", test_news);
  g_test_add_func ("/pto/det/deadlock", test_deadlock);
  g_test_add_func ("/pto/det/deadlock-dropped", test_deadlock_dropped);
  g_test_add_func ("/pto/det/all-interleavings", test_all_interleavings);
  g_test_add_func ("/pto/det/explore-point", test_explore_point);
  return g_test_run ();
}
