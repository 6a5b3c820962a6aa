/* test-stress.c: does anything grow, wrap or wear out over very many tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * "--thousands N" says how many: 400 unless told; the slow suite runs PTO_TEST_TIMES as many.
 */
#include "sim-test.h"

#include "../../sim/chip-private.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint32_t thousands = 400;
static _Atomic uint64_t runs;

static void
kernel_count (int64_t *args)
{
  uint64_t *word = sim_data (args, 0);

  *word += 1;
  /* Relaxed: read after the run. */
  atomic_fetch_add_explicit (&runs, 1, memory_order_relaxed);
}

static const struct pto_kernel kernels[]
    = { { "count", kernel_count, PTO_CORE_TYPE_AIV, { .base_ns = 500 } } };
static const struct pto_program program = { kernels, 1 };

#define WORDS 40

struct flow
{
  struct pto_chip *chip;
  uint64_t words[WORDS];
  uint64_t n;
  bool outputs;
  uint64_t half;    /* resident bytes, half way */
  uint64_t highest; /* since then */
};

static uint64_t
resident_of_circle (const struct pto_circle *circle)
{
  uint64_t page = (uint64_t) sysconf (_SC_PAGESIZE);
  uint64_t n = circle->size / page;
  unsigned char *pages = g_malloc (n);
  uint64_t resident = 0;

  g_assert_cmpint (mincore (circle->base, circle->size, pages), ==, 0);
  for (uint64_t i = 0; i < n; i++)
    resident += pages[i] & 1;
  g_free (pages);
  return resident * page;
}

/* Without what heap and argument storage hold: these stay below their sizes, and how much of them
 * is used depends on how far the submitter is ahead. */
static uint64_t
resident_without_circles (const struct pto_chip *chip)
{
  uint64_t resident = sim_resident_bytes ();

  for (int ring = 0; ring < 2; ring++)
    resident -= resident_of_circle (&chip->machine.engine.rings[ring].heap)
                + resident_of_circle (&chip->machine.engine.rings[ring].storage);
  return resident;
}

static int
flow (PTO2Runtime *rt, void *data)
{
  static const uint64_t one[] = { 1 }, many[] = { 16 };
  struct flow *f = data;

  pto2_rt_init_tensor_pool (rt);
  for (uint64_t i = 0; i < f->n;)
    {
      PTO2_SCOPE (rt)
      {
        for (uint32_t k = 0; k < 1000 && i < f->n; k++, i++)
          {
            Tensor word = make_tensor_external (&f->words[i % WORDS], one, 1, PTO_DTYPE_UINT64);
            PTOParam params[] = { make_inout_param (word), make_scalar_param (0) };

            if (f->outputs)
              params[1] = make_output_param (make_tensor (many, 1, PTO_DTYPE_UINT64));
            pto2_rt_submit_task (rt, 0, AIV, params, 2);
          }
      }
      if (i % (f->n / 20) == 0 && i >= f->n / 2)
        {
          uint64_t resident = resident_without_circles (f->chip);

          if (f->half == 0)
            f->half = resident;
          f->highest = MAX (f->highest, resident);
        }
    }
  return 0;
}

static void
run_flow (enum pto_backend backend, const char *settings, bool outputs)
{
  struct pto_chip *chip = sim_chip (backend, settings);
  struct flow *f = g_new0 (struct flow, 1);
  struct pto_run_stats stats;

  f->n = (uint64_t) SCALE (thousands) * 1000;
  f->chip = chip;
  f->outputs = outputs;
  atomic_store (&runs, 0);
  sim_run (chip, &program, flow, f, &stats);
  g_assert_cmpuint (stats.tasks, ==, f->n);
  g_assert_cmpuint (atomic_load (&runs), ==, f->n);
  g_assert_cmpuint (stats.recycled, ==, f->n > 65536 ? f->n - 65536 : 0);
  for (int i = 0; i < WORDS; i++)
    g_assert_cmpuint (f->words[i], ==, f->n / WORDS);
  g_test_message ("%" G_GUINT64_FORMAT " tasks, resident %" G_GUINT64_FORMAT
                  " KiB half way, %" G_GUINT64_FORMAT " KiB at most",
                  f->n, f->half / 1024, f->highest / 1024);
#ifndef SIM_SANITIZED
  g_assert_cmpuint (f->half, >, 0);
  g_assert_cmpint ((gint64) (f->highest - f->half), <, 4 * 1024 * 1024);
#endif
  g_free (f);
  pto_chip_free (chip);
}

/* A16. Half way, every slot has been used seven times. */
static void
test_flow (enum pto_backend backend)
{
  run_flow (backend, "heap=64M", false);
}

static void
test_flow_of_outputs (enum pto_backend backend)
{
  run_flow (backend, "heap=64M", true);
}

static void
add_tests (void)
{
  sim_add ("stress/flow", test_flow);
  sim_add ("stress/flow-of-outputs", test_flow_of_outputs);
}

int
main (int argc, char **argv)
{
  for (int i = 1; i + 1 < argc; i++)
    if (g_str_equal (argv[i], "--thousands"))
      {
        const char *times = g_getenv ("PTO_TEST_TIMES");

        thousands = (uint32_t) atoi (argv[i + 1]) * (times != NULL ? (uint32_t) atoi (times) : 1);
        memmove (&argv[i], &argv[i + 2], (size_t) (argc - i - 1) * sizeof *argv);
        argc -= 2;
        break;
      }
  return sim_main (argc, argv, add_tests);
}
