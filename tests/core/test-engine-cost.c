/* test-engine-cost.c: what do an engine and its runs cost?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t
resident_pages (const void *memory, uint64_t bytes)
{
  uint64_t page = (uint64_t) sysconf (_SC_PAGESIZE);
  uint64_t n = (bytes + page - 1) / page;
  uint8_t *map = g_malloc (n);
  uint64_t count = 0;

  if (mincore ((void *) (uintptr_t) memory, bytes, map) != 0)
    g_error ("mincore (%p, %" G_GUINT64_FORMAT "): %s", memory, bytes, g_strerror (errno));
  for (uint64_t i = 0; i < n; i++)
    count += map[i] & 1;
  g_free (map);
  return count;
}

static uint64_t
resident_of (struct machine *machine)
{
  uint64_t sum = 0;

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      struct pto_ring *ring = &machine->engine->rings[r];

      sum += resident_pages (ring->shared, ring->shared_size)
             + resident_pages (ring->storage.base, ring->storage.size)
             + resident_pages (ring->heap.base, ring->heap.size);
    }
  for (uint32_t shard = 0; shard < machine->engine->config.n_shards; shard++)
    sum += resident_pages (machine->engine->ready[0][shard].cells,
                           (uint64_t) machine->engine->ready[0][shard].capacity
                               * sizeof (uint64_t));
  return sum;
}

/* Pages that one engine of that size has touched after some small runs. */
static uint64_t
touched (uint32_t window, uint64_t heap)
{
  struct machine *machine = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_DET,
                                                                   .seed = 1,
                                                                   .immediate = true,
                                                                   .window = window,
                                                                   .heap = heap,
                                                                   .edge_pool = window });
  uint64_t pages;

  /* Before the first submit nothing but the headers. */
  machine_begin (machine);
  pages = resident_of (machine);
  machine_end_ok (machine);
  g_assert_cmpuint (pages, <=, PTO_RINGS);
  for (uint32_t round = 0; round < 100; round++)
    {
      Tensor tensor;

      machine_begin (machine);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, 100);
      SUBMIT (machine, KERNEL_FILL, output (&tensor), byte (1));
      SUBMIT (machine, KERNEL_NOTHING, input (&tensor));
      pto_engine_scope_end (machine->engine);
      machine_end_ok (machine);
    }
  pages = resident_of (machine);
  machine_free (machine);
  return pages;
}

static void
test_set_up_does_not_grow (void)
{
  uint64_t small = touched (64, 1u << 20);
  uint64_t large = touched (1u << 20, UINT64_C (1) << 30);

  g_test_message ("%" G_GUINT64_FORMAT " pages with a small window, %" G_GUINT64_FORMAT
                  " with a large one",
                  small, large);
  g_assert_cmpuint (small, <=, 16);
  g_assert_cmpuint (large, <=, small);
}

static uint64_t
resident_process (void)
{
  FILE *file = fopen ("/proc/self/statm", "r");
  unsigned long size = 0;
  unsigned long resident = 0;

  g_assert_nonnull (file);
  g_assert_cmpint (fscanf (file, "%lu %lu", &size, &resident), ==, 2);
  fclose (file);
  return resident * (uint64_t) sysconf (_SC_PAGESIZE);
}

static void
flow (struct machine *machine, uint32_t n, _Atomic uint32_t *ran)
{
  static uint8_t memory[64];

  for (uint32_t i = 0; i < n; i += 4)
    {
      Tensor tensor;
      Tensor external = machine_external (memory + i % 64, 1);

      pto_engine_scope_begin (machine->engine, NULL, 0);
      tensor = machine_tensor (machine, 1000);
      SUBMIT (machine, KERNEL_COUNT, output (&tensor), scalar (ran));
      SUBMIT (machine, KERNEL_COUNT, inout (&tensor), scalar (ran));
      SUBMIT (machine, KERNEL_COUNT, input (&tensor), scalar (ran));
      SUBMIT (machine, KERNEL_COUNT, input (&tensor), existing (&external), scalar (ran));
      pto_engine_scope_end (machine->engine);
    }
}

static void
test_a_million_tasks_stay_flat (gconstpointer backend)
{
  struct machine *machine = machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .immediate = true, .window = 64, .heap = 65536 });
  _Atomic uint32_t ran = 0;
  uint32_t warm = 10000;
  uint32_t n = SCALE (1000000);
  uint64_t before;

  machine_begin (machine);
  flow (machine, warm, &ran);
  before = resident_process ();
  flow (machine, n, &ran);
  g_assert_cmpuint (resident_process (), <, before + (SCALE (20) == 20 ? 1u : 64u) * 512 * 1024);
  machine_end_ok (machine);
  g_assert_cmpuint (ran, ==, warm + n);
  g_assert_cmpuint (pto_engine_recycled (machine->engine), >=, n - n / 10);
  machine_free (machine);
}

/* What a scheduler that attends to its endpoints learns of tasks, it learns of those that it has
 * seen end: nothing of a task that still runs. */
static void
test_cost_of_tasks_is_learnt (void)
{
  for (uint32_t n = 1; n <= 100; n *= 10)
    {
      struct machine *machine = machine_new (&(struct machine_config){ .backend = PTO_BACKEND_PAR,
                                                                       .seed = 1,
                                                                       .immediate = true,
                                                                       .attends = true,
                                                                       .window = 256 });
      _Atomic uint32_t ran = 0;

      machine_begin (machine);
      g_assert_cmpuint (machine->engine->task_ns, ==, 0);
      for (uint32_t i = 0; i < n; i++)
        SUBMIT (machine, KERNEL_COUNT, byte (0), scalar (&ran));
      machine_end_ok (machine);
      g_assert_cmpuint (ran, ==, n);
      g_assert_cmpuint (machine->engine->task_ns, >, 0);
      machine_free (machine);
    }
  for (uint32_t round = 0; round < 3; round++)
    {
      struct machine *machine = machine_new (
          &(struct machine_config){ .backend = PTO_BACKEND_DET, .seed = 1, .attends = true });
      struct gate gate;

      gate_init (&gate);
      machine_begin (machine);
      SUBMIT (machine, KERNEL_GATE, byte (0), scalar (&gate));
      gate_wait_reached (machine, &gate);
      while (pto_exec_help (machine->exec))
        ;
      g_assert_cmpuint (machine->engine->task_ns, ==, 0);
      gate_open (machine, &gate);
      machine_end_ok (machine);
      machine_free (machine);
    }
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/engine-cost/set-up-does-not-grow", test_set_up_does_not_grow);
  machine_add ("engine-cost", "a-million-tasks-stay-flat", test_a_million_tasks_stay_flat);
  g_test_add_func ("/pto/engine-cost/cost-of-tasks-is-learnt", test_cost_of_tasks_is_learnt);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
