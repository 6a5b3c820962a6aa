/* test-shelf-explore.c: does each task that stands on a shelf go one way, and only one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The owner and its thieves run on the machine of weak.h, as sides (sides.h) whose steps are
 * explored as explorer.h says. The queues are played.
 */
#include "shelf-owner.h"

#include "../weak/explorer.h"
#include "../weak/sides.h"

#include <glib.h>

#include <unistd.h>

#define WATCHDOG_S 240
#define BATCHES 2u
#define BATCH 3u

struct scenario
{
  uint32_t thieves;
  uint32_t bound;
};

static struct pto_shelf shelf;
static struct pto_slot slots[BATCHES * BATCH];
static uint32_t n_begun[BATCHES * BATCH], n_pushed[BATCHES * BATCH];
static uint64_t all_begun, all_pushed;

/* --- the queues, and who yields --- */

void
pto_engine_push_ready (struct pto_engine *engine, struct pto_slot *slot, uint32_t shard)
{
  n_pushed[slot - slots]++;
}

void
pto_yield (struct pto_exec *exec)
{
  explorer_pause ();
}

/* --- the sides --- */

static void
count (struct pto_slot *slot)
{
  n_begun[slot - slots]++;
}

static void
owner (void *arg)
{
  for (uint32_t b = 0; b < BATCHES; b++)
    {
      uint32_t n = shelf_owner_run (&shelf, &slots[b * BATCH], BATCH, count);

      /* What was taken back is what was left. */
      for (uint32_t i = 0; i < BATCH; i++)
        g_assert_cmpuint (n_begun[b * BATCH + i], ==, i < n);
    }
}

static void
thief (void *arg)
{
  g_assert_cmpuint (pto_shelf_take_back (&shelf, NULL, 0), <, BATCH);
}

static void
begin (const void *data)
{
  const struct scenario *scenario = data;

  memset (&shelf, 0, sizeof shelf);
  memset (n_begun, 0, sizeof n_begun);
  memset (n_pushed, 0, sizeof n_pushed);
  sides_start (owner, NULL);
  for (uint32_t i = 0; i < scenario->thieves; i++)
    sides_start (thief, NULL);
}

static void
check (const void *data)
{
  for (uint32_t i = 0; i < n_sides; i++)
    g_assert_true (sides[i].ended);
  for (uint32_t i = 0; i < BATCHES * BATCH; i++)
    {
      if (n_begun[i] + n_pushed[i] != 1)
        g_error ("schedule %" G_GUINT64_FORMAT ": task %u was begun %u times and put back %u times",
                 explorer.schedules, i, n_begun[i], n_pushed[i]);
      /* The first of a batch is never asked for. */
      if (i % BATCH == 0)
        g_assert_cmpuint (n_begun[i], ==, 1);
      all_begun += n_begun[i];
      all_pushed += n_pushed[i];
    }
}

static void
test_once (const void *data)
{
  const struct scenario *scenario = data;

  all_begun = all_pushed = 0;
  sides_explore (&(struct sides_paths){ .bound = scenario->bound,
                                        .stale_bound = 2,
                                        .at_least = 1000,
                                        .begin = begin,
                                        .end = check },
                 scenario);
  g_test_message ("%" G_GUINT64_FORMAT " paths: %" G_GUINT64_FORMAT " begun, %" G_GUINT64_FORMAT
                  " put back",
                  explorer.schedules, all_begun, all_pushed);
  explorer_assert_cmpuint (all_begun, >, 1000);
  explorer_assert_cmpuint (all_pushed, >, 1000);
}

int
main (int argc, char **argv)
{
  static const struct scenario one = { .thieves = 1, .bound = 3 };
  static const struct scenario two = { .thieves = 2, .bound = 2 };

  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_data_func ("/pto/shelf-explore/a-thief", &one, test_once);
  g_test_add_data_func ("/pto/shelf-explore/two-thieves", &two, test_once);
  return g_test_run ();
}
