/* test-tensor-map-random.c: does the TensorMap answer random programs as the oracle does?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "map-test.h"

#include <stdlib.h>
#include <string.h>

/* Random programs. A task accesses up to 3 tensors; tasks complete in any order that the oracle
 * allows and retire in order on each of the rings.
 *
 * Two things must hold. The entries: what is found is what the rules of the map, told by bytes and
 * without any index, say, less what has retired. And the order: with every hazard on, the order of
 * tasks that follows from the edges is the order that follows from bytes alone (each byte's last
 * writer, or those who update it in any order, and its readers since). More edges are found than by
 * bytes, because an entry overwritten in part stays whole, but they are implied: the byte that both
 * tasks touch has seen every write in between, each ordered after the one before. A task that was
 * complete at the submit needs no order any more, and may have it. */
#define MAX_TASKS 64u

struct program
{
  uint32_t n_tasks;
  uint32_t pool;
  uint32_t hazards;
  enum oracle_shapes shapes;
  bool external;   /* every tensor is the caller's own memory */
  uint32_t retire; /* percent of submits after which tasks complete */
};

struct access
{
  Tensor tensor;
  PTOParamType type;
  struct oracle_bytes bytes;
  struct pto_access access;
};

/* A byte's last writer, or those who update it now in any order, and its readers since. */
struct history
{
  uint64_t writers;
  uint64_t readers;
  uint64_t before; /* whom those who update it come after */
  struct pto_region updated;
  bool open; /* nobody else has accessed it since: another one of this region may come among them */
};

static bool
joins (const struct history *history, const struct access *access)
{
  return access->type == PTO_PARAM_COMMUTATIVE && history->open
         && pto_region_equal (&history->updated, &access->access.region);
}

static uint64_t
come_after (const struct history *history, const struct access *access)
{
  if (access->type == PTO_PARAM_NO_DEP)
    return 0;
  if (joins (history, access))
    return history->before;
  return history->writers | (access->type == PTO_PARAM_INPUT ? 0 : history->readers);
}

static void
note (struct history *history, const struct access *access, uint64_t task)
{
  if (access->type == PTO_PARAM_NO_DEP)
    return;
  if (joins (history, access))
    {
      history->writers |= task;
      return;
    }
  history->open = access->type == PTO_PARAM_COMMUTATIVE;
  if (access->type == PTO_PARAM_INPUT)
    {
      history->readers |= task;
      return;
    }
  history->before = history->writers | history->readers;
  history->updated = access->access.region;
  history->writers = task;
  history->readers = 0;
}

static void
run_program (const struct program *program, struct oracle_random *random)
{
  static struct history histories[ORACLE_BYTES];
  uint64_t found_order[MAX_TASKS], true_order[MAX_TASKS];
  pto_task_id ids[MAX_TASKS];
  uint32_t next_local[PTO_RINGS] = { 0 };
  struct oracle_map oracle = { .hazards = program->hazards };
  struct pto_deps expected = { 0 };
  uint64_t complete = 0;
  Tensor popular[2];
  MapFixture fixture;

  for (uint32_t i = 0; i < 2; i++)
    popular[i] = oracle_tensor (random, BASE, program->shapes);
  map_set_up_pool (&fixture, program->pool, program->hazards);
  memset (histories, 0, sizeof histories);
  for (uint32_t t = 0; t < program->n_tasks; t++)
    {
      uint32_t ring = oracle_below (random, PTO_RINGS);
      uint32_t n = 1 + oracle_below (random, 3);
      struct access accesses[3];
      uint64_t found = 0, direct = 0;

      ids[t] = PTO_TASK_ID (ring, next_local[ring]++);
      g_assert_true (
          pto_map_reserve (fixture.map, n * (PTO_MAP_INSERT_NODES + PTO_MAP_GROUP_NODES)));
      for (uint32_t i = 0; i < n; i++)
        {
          struct access *access = &accesses[i];

          access->tensor = oracle_tensor (random, BASE, program->shapes);
          access->type = oracle_below (random, 8);
          if (access->type > PTO_PARAM_NO_DEP)
            access->type = PTO_PARAM_COMMUTATIVE;
          /* Somebody updates what another one does. */
          if (access->type == PTO_PARAM_COMMUTATIVE && oracle_below (random, 4) > 0)
            access->tensor = popular[oracle_below (random, 2)];
          g_assert_true (oracle_touch (&access->bytes, &access->tensor, BASE));
        }
      fixture.deps.count = 0;
      expected.count = 0;
      for (uint32_t i = 0; i < n; i++)
        {
          struct pto_space *space
              = program->external ? pto_map_external_space (
                    fixture.map, accesses[i].tensor.buffer.addr, accesses[i].tensor.buffer.size)
                                  : &fixture.space;

          g_assert_nonnull (space);
          pto_access_init (&accesses[i].access, space, &accesses[i].tensor);
          g_assert_true (
              pto_map_lookup (fixture.map, &accesses[i].access, accesses[i].type, &fixture.deps));
          oracle_map_lookup (&oracle, &accesses[i].bytes, accesses[i].type, &expected);
          for (uint32_t b = 0; b < ORACLE_BYTES; b++)
            if ((accesses[i].bytes.words[b / 64] >> b % 64 & 1) != 0)
              direct |= come_after (&histories[b], &accesses[i]);
        }
      oracle_normalize (&fixture.deps, NULL);
      oracle_normalize (&expected, fixture.tails);
      for (uint32_t i = 0; i < fixture.deps.count; i++)
        {
          uint32_t d = 0;

          g_assert_false (pto_task_is_retired (fixture.tails, fixture.deps.items[i].task));
          while (d < t && ids[d] != fixture.deps.items[i].task)
            d++;
          g_assert_cmpuint (d, <, t);
          found |= UINT64_C (1) << d;
        }
      /* Strides that overlap themselves may hide that a write covers an entry: then edges are left
       * that the order implies. */
      if (program->shapes != ORACLE_ANY)
        {
          g_assert_cmpuint (fixture.deps.count, ==, expected.count);
          for (uint32_t i = 0; i < expected.count; i++)
            {
              g_assert_cmphex (fixture.deps.items[i].task, ==, expected.items[i].task);
              g_assert_cmphex (fixture.deps.items[i].kinds, ==, expected.items[i].kinds);
            }
        }
      else
        for (uint32_t i = 0, j = 0; i < expected.count; i++, j++)
          {
            while (j < fixture.deps.count && fixture.deps.items[j].task != expected.items[i].task)
              j++;
            g_assert_cmpuint (j, <, fixture.deps.count);
            g_assert_cmphex (fixture.deps.items[j].kinds & expected.items[i].kinds, ==,
                             expected.items[i].kinds);
          }
      found_order[t] = found;
      true_order[t] = direct;
      for (uint32_t d = 0; d < t; d++)
        {
          if ((found >> d & 1) != 0)
            found_order[t] |= found_order[d];
          if ((direct >> d & 1) != 0)
            true_order[t] |= true_order[d];
        }
      if (program->hazards == ALL)
        {
          g_assert_cmphex (found_order[t] & ~true_order[t], ==, 0);
          g_assert_cmphex (true_order[t] & ~found_order[t] & ~complete, ==, 0);
        }

      for (uint32_t i = 0; i < n; i++)
        {
          pto_map_insert (fixture.map, &accesses[i].access, accesses[i].type, ids[t]);
          oracle_map_insert (&oracle, &accesses[i].bytes, accesses[i].type, ids[t]);
          for (uint32_t b = 0; b < ORACLE_BYTES; b++)
            if ((accesses[i].bytes.words[b / 64] >> b % 64 & 1) != 0)
              note (&histories[b], &accesses[i], UINT64_C (1) << t);
        }
      for (uint32_t d = 0; d <= t && oracle_below (random, 100) < program->retire; d++)
        if ((true_order[d] & ~complete) == 0 && (found_order[d] & ~complete) == 0
            && oracle_below (random, 3) > 0)
          complete |= UINT64_C (1) << d;
      for (uint32_t d = 0; d <= t; d++)
        if ((complete >> d & 1) != 0
            && fixture.tails[PTO_TASK_RING (ids[d])] == PTO_TASK_LOCAL (ids[d]))
          {
            fixture.tails[PTO_TASK_RING (ids[d])]++;
            pto_map_retired (fixture.map, 1 + oracle_below (random, 40));
          }
    }
  oracle_map_clear (&oracle);
  free (expected.items);
  map_tear_down (&fixture, NULL);
}

static void
run_programs (uint32_t hazards, enum oracle_shapes shapes, bool external)
{
  uint32_t seed = (uint32_t) g_test_rand_int ();
  struct oracle_random random = { seed };
  uint32_t n = g_test_slow () ? 30000 : RUN_SHORT ? 100 : 1500;

  g_test_message ("seed %u", seed);
  for (uint32_t i = 0; i < n; i++)
    {
      struct program program
          = { 2 + oracle_below (&random, MAX_TASKS - 1),   1024, hazards, shapes, external,
              i % 2 == 0 ? 0 : oracle_below (&random, 101) };

      run_program (&program, &random);
    }
}

static void
test_random_views (void)
{
  run_programs (ALL, ORACLE_VIEWS, false);
}

static void
test_random_external (void)
{
  run_programs (ALL, ORACLE_EXTERNAL, true);
}

static void
test_random_strides (void)
{
  run_programs (ALL, ORACLE_ANY, false);
  run_programs (ALL, ORACLE_ANY, true);
}

static void
test_random_seeds_edges (void)
{
  run_programs (SEEDS, ORACLE_VIEWS, false);
  run_programs (SEEDS, ORACLE_EXTERNAL, true);
}

/* 10^5 pairs of views: an edge where a byte is common and a write is among the two, and none else.
 */
static void
test_random_pairs (void)
{
  uint32_t seed = (uint32_t) g_test_rand_int ();
  struct oracle_random random = { seed };
  uint32_t n = RUN_SHORT ? 5000 : 100000;
  MapFixture fixture;

  g_test_message ("seed %u", seed);
  map_set_up_pool (&fixture, 64, ALL);
  for (uint32_t i = 0; i < n; i++)
    {
      enum oracle_shapes shapes = oracle_below (&random, 3);
      Tensor a = oracle_tensor (&random, BASE, shapes);
      Tensor b = oracle_tensor (&random, BASE, shapes);
      PTOParamType type_a = oracle_below (&random, 4), type_b = oracle_below (&random, 4);
      bool writes = type_a != PTO_PARAM_INPUT || type_b != PTO_PARAM_INPUT;
      struct oracle_bytes x, y;
      struct pto_space *space_a = &fixture.space, *space_b = &fixture.space;

      g_assert_true (oracle_touch (&x, &a, BASE));
      g_assert_true (oracle_touch (&y, &b, BASE));
      if (i % 2 == 0)
        {
          space_a = pto_map_external_space (fixture.map, a.buffer.addr, a.buffer.size);
          space_b = pto_map_external_space (fixture.map, b.buffer.addr, b.buffer.size);
        }
      map_insert (fixture.map, space_a, &a, type_a, i);
      fixture.deps.count = 0;
      g_assert_true (map_lookup (fixture.map, space_b, &b, type_b, &fixture.deps));
      g_assert_cmpuint (fixture.deps.count, ==, writes && oracle_overlap (&x, &y) ? 1 : 0);
      if (fixture.deps.count != 0)
        g_assert_cmphex (fixture.deps.items[0].task, ==, i);
      map_insert (fixture.map, space_b, &b, type_b, PTO_TASK_ID (1, i));
      if (shapes != ORACLE_ANY)
        g_assert_cmpuint (
            pto_map_used (fixture.map), ==,
            oracle_same (&x, &y) || (type_b != PTO_PARAM_INPUT && oracle_covers (&y, &x)) ? 1 : 2);
      if (i % 16 == 0)
        pto_map_reset (fixture.map);
      else
        {
          pto_map_drop (fixture.map, space_a);
          pto_map_drop (fixture.map, space_b);
        }
      g_assert_cmpuint (pto_map_used (fixture.map), ==, 0);
    }
  map_tear_down (&fixture, NULL);
}

/* Thousands of tasks on hundreds of small views of one tensor: the index grows, learns, and is
 * cleaned under way. */
static void
run_crowd (struct oracle_random *random, uint32_t kind)
{
  uint64_t shape[4] = { 8, 4, 8, 4 };
  struct oracle_map oracle = { .hazards = ALL };
  struct pto_deps expected = { 0 };
  uint32_t n = RUN_SHORT ? 300 : 3000, lag = 1 + oracle_below (random, 400);
  uint32_t pool = 2048, most = 0;
  MapFixture fixture;
  Tensor whole;

  map_set_up_pool (&fixture, pool, ALL);
  whole = oracle_make (BASE, shape, 4, PTO_DTYPE_INT8);
  for (uint32_t t = 0; t < n; t++)
    {
      uint64_t extent[4], offset[4];
      Tensor tensor = whole;
      struct pto_space *space = &fixture.space;
      PTOParamType type = oracle_below (random, 4);
      struct oracle_bytes bytes;

      for (uint32_t i = 0; i < 4; i++)
        {
          uint32_t most_here = kind == 0   ? 2
                               : kind == 1 ? (i % 2 == 0 ? 2 : 4)
                                           : (uint32_t) shape[i];

          extent[i] = 1 + oracle_below (random, most_here);
          offset[i] = oracle_below (random, (uint32_t) (shape[i] - extent[i]) + 1);
        }
      if (kind == 3 && oracle_below (random, 8) != 0)
        {
          uint64_t from = oracle_below (random, 1000);
          uint64_t row[1] = { 1 + oracle_below (random, 20) };

          tensor = oracle_make (BASE + from, row, 1, PTO_DTYPE_INT8);
        }
      else
        tensor = pto2_tensor_view (&tensor, extent, offset);
      if (kind == 4)
        {
          /* Begins anywhere, so that the index has to reach below its origin. */
          uint64_t rows[2] = { 1 + oracle_below (random, 6), 1 + oracle_below (random, 5) };
          uint64_t from = oracle_below (random, 900);

          tensor = oracle_make (BASE + from, rows, 2, PTO_DTYPE_INT8);
          tensor.strides[0] = 20;
          tensor.buffer.size = (rows[0] - 1) * 20 + rows[1];
          space = pto_map_external_space (fixture.map, tensor.buffer.addr, tensor.buffer.size);
          g_assert_nonnull (space);
        }
      if (kind == 4 && !oracle_touch (&bytes, &tensor, BASE))
        continue;
      g_assert_true (oracle_touch (&bytes, &tensor, BASE));
      g_assert_true (pto_map_reserve (fixture.map, 1));
      fixture.deps.count = 0;
      expected.count = 0;
      g_assert_true (map_lookup (fixture.map, space, &tensor, type, &fixture.deps));
      oracle_map_lookup (&oracle, &bytes, type, &expected);
      for (uint32_t i = 1; i < fixture.deps.count; i++)
        g_assert_cmphex (fixture.deps.items[i - 1].task, <=, fixture.deps.items[i].task);
      oracle_normalize (&fixture.deps, NULL);
      oracle_normalize (&expected, fixture.tails);
      g_assert_cmpuint (fixture.deps.count, ==, expected.count);
      for (uint32_t i = 0; i < expected.count; i++)
        {
          g_assert_cmphex (fixture.deps.items[i].task, ==, expected.items[i].task);
          g_assert_cmphex (fixture.deps.items[i].kinds, ==, expected.items[i].kinds);
        }
      map_insert (fixture.map, space, &tensor, type, PTO_TASK_ID (0, t));
      oracle_map_insert (&oracle, &bytes, type, PTO_TASK_ID (0, t));
      most = MAX (most, pto_map_used (fixture.map));
      if (t >= lag)
        {
          fixture.tails[0] = t - lag + 1;
          pto_map_retired (fixture.map, 1);
        }
    }
  g_assert_cmpuint (most, <=, 2 * lag + 3 * 64);
  oracle_map_clear (&oracle);
  free (expected.items);
  map_tear_down (&fixture, NULL);
}

static void
test_random_crowd (void)
{
  uint32_t seed = (uint32_t) g_test_rand_int ();
  struct oracle_random random = { seed };
  uint32_t n = g_test_slow () ? 200 : RUN_SHORT ? 1 : 4;

  g_test_message ("seed %u", seed);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t kind = 0; kind < 5; kind++)
      run_crowd (&random, kind);
}

/* One program at two places, among other buffers: the same results in the same order. */
static void
record_order (uint64_t base, uint64_t other_base, uint32_t seed, GArray *order)
{
  struct oracle_random random = { seed };
  struct oracle_random noise = { base ^ other_base };
  MapFixture fixture;

  map_set_up_pool (&fixture, 4096, ALL);
  for (uint32_t t = 0; t < 400; t++)
    {
      Tensor tensor = oracle_tensor (&random, base, ORACLE_EXTERNAL);
      PTOParamType type = oracle_below (&random, 4);
      bool own = oracle_below (&random, 2) == 0;
      struct pto_space *space
          = own ? &fixture.space
                : pto_map_external_space (fixture.map, tensor.buffer.addr, tensor.buffer.size);
      Tensor unrelated
          = oracle_tensor (&noise, other_base + 4096 * oracle_below (&noise, 50), ORACLE_EXTERNAL);

      fixture.deps.count = 0;
      g_assert_true (map_lookup (fixture.map, space, &tensor, type, &fixture.deps));
      g_array_append_vals (order, fixture.deps.items, fixture.deps.count);
      map_insert (fixture.map, space, &tensor, type, PTO_TASK_ID (0, t));
      space = pto_map_external_space (fixture.map, unrelated.buffer.addr, unrelated.buffer.size);
      map_insert (fixture.map, space, &unrelated, PTO_PARAM_INOUT, PTO_TASK_ID (1, t));
      if (t > 100)
        fixture.tails[0] = t - 100;
    }
  map_tear_down (&fixture, NULL);
}

static void
test_determinism (void)
{
  uint32_t seed = (uint32_t) g_test_rand_int ();

  g_test_message ("seed %u", seed);
  for (uint32_t i = 0; i < 10; i++)
    {
      GArray *a = g_array_new (FALSE, FALSE, sizeof (struct pto_dep));
      GArray *b = g_array_new (FALSE, FALSE, sizeof (struct pto_dep));

      record_order (BASE, UINT64_C (0x800000), seed + i, a);
      record_order (UINT64_C (0x7f1234567040), UINT64_C (0x7f0000000000), seed + i, b);
      g_assert_cmpuint (a->len, >, 0);
      g_assert_cmpuint (a->len, ==, b->len);
      for (uint32_t k = 0; k < a->len; k++)
        {
          g_assert_cmphex (g_array_index (a, struct pto_dep, k).task, ==,
                           g_array_index (b, struct pto_dep, k).task);
          g_assert_cmphex (g_array_index (a, struct pto_dep, k).kinds, ==,
                           g_array_index (b, struct pto_dep, k).kinds);
        }
      g_array_unref (a);
      g_array_unref (b);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/tensor-map-random/pairs", test_random_pairs);
  g_test_add_func ("/pto/tensor-map-random/views", test_random_views);
  g_test_add_func ("/pto/tensor-map-random/external", test_random_external);
  g_test_add_func ("/pto/tensor-map-random/strides", test_random_strides);
  g_test_add_func ("/pto/tensor-map-random/seeds-edges", test_random_seeds_edges);
  g_test_add_func ("/pto/tensor-map-random/crowd", test_random_crowd);
  g_test_add_func ("/pto/tensor-map-random/determinism", test_determinism);
  return g_test_run ();
}
