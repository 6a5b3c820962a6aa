/* check-test.c: what do the tests of the access check share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-test.h"

#include "../../sim/check-connect.h"

#include <string.h>

/* Not checked: what it touches is what its arguments say. */
static void
plain (int64_t *args)
{
  ((uint8_t *) sim_data (args, 0))[0] = 5;
}

/* Not checked either, so that the shadow says nothing of what they leave out: all bytes, one byte a
 * block, and what is there. */
static void
stain (int64_t *args)
{
  memset (sim_data (args, 0), 0x11, MADE);
}

static void
dot (int64_t *args)
{
  ((uint8_t *) sim_data (args, 0))[get_block_idx (args)] = 0x22;
}

static void
show (int64_t *args)
{
  memcpy (sim_data (args, 1), sim_data (args, 0), MADE);
}

static const struct pto_kernel kernels[]
    = { { "one", check_touch_1, PTO_CORE_TYPE_AIV, { .base_ns = 1000 }, .instrumented = true },
        { "two", check_touch_2, PTO_CORE_TYPE_AIV, { .base_ns = 3000 }, .instrumented = true },
        { "three", check_touch_3, PTO_CORE_TYPE_AIV, { .base_ns = 500 }, .instrumented = true },
        { "plain", plain, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "cube", check_touch_1, PTO_CORE_TYPE_AIC, { .base_ns = 1000 }, .instrumented = true },
        { "wait",
          check_wait_1,
          PTO_CORE_TYPE_AIV,
          { .base_ns = 1000 },
          .instrumented = true,
          .talks = true },
        { "wait-two",
          check_wait_2,
          PTO_CORE_TYPE_AIV,
          { .base_ns = 1000 },
          .instrumented = true,
          .talks = true },
        { "wait-cube",
          check_wait_1,
          PTO_CORE_TYPE_AIC,
          { .base_ns = 1000 },
          .instrumented = true,
          .talks = true },
        { "stain", stain, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "dot", dot, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "show", show, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "hides",
          check_touch_1,
          PTO_CORE_TYPE_AIV,
          { .base_ns = 1000 },
          .instrumented = true,
          .hides_stores = true } };
const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

/* Memory of the program: bytes in one dimension, and a square of them. */
_Alignas(1024) uint8_t memory[8 * SIDE * SIDE];
_Alignas(1024) uint8_t square[SIDE * SIDE];

Tensor
bytes_of (uint8_t *from, uint64_t n)
{
  return make_tensor_external (from, &n, 1, PTO_DTYPE_UINT8);
}

/* A part of memory whose buffer is all of it. */
Tensor
part (uint64_t from, uint64_t n)
{
  Tensor all = bytes_of (memory, sizeof memory);

  return pto2_tensor_view (&all, &n, &from);
}

Tensor
tile (uint64_t row, uint64_t column, uint64_t rows, uint64_t columns)
{
  const uint64_t shape[2] = { SIDE, SIDE };
  const uint64_t shapes[2] = { rows, columns };
  const uint64_t offsets[2] = { row, column };
  Tensor all = make_tensor_external (square, shape, 2, PTO_DTYPE_UINT8);

  return pto2_tensor_view (&all, shapes, offsets);
}

struct pto_chip *
chip_of (enum pto_backend backend, const char *more)
{
  g_autofree char *settings = g_strdup_printf ("check=access %s", more != NULL ? more : "");

  return sim_chip (backend, settings);
}

enum pto_backend check_backend;
const char *check_settings;

void
passes (SimOrchestration orchestrate, void *data)
{
  struct pto_chip *chip = chip_of (check_backend, check_settings);

  sim_run (chip, &program, orchestrate, data, NULL);
  pto_chip_free (chip);
}

/* The whole message but for what stands between " at " and the line. */
void
fails (SimOrchestration orchestrate, void *data, const char *expected)
{
  struct pto_chip *chip = chip_of (check_backend, check_settings);
  struct pto_report report = { 0 };
  struct pto_run_stats stats;
  g_autoptr (GRegex) place = g_regex_new (" at [^ ]*check[-a-z]*\\.c:[0-9]+", 0, 0, NULL);
  g_autofree char *found = NULL;

  g_assert_cmpint (pto_chip_run (chip, &program, NULL, orchestrate, data, &stats, &report), ==,
                   PTO_STATUS_ACCESS);
  g_assert_cmpint (report.status, ==, PTO_STATUS_ACCESS);
  found = g_regex_replace_literal (place, report.message, -1, 0, "", 0, NULL);
  g_assert_cmpstr (found, ==, expected);
  /* The run itself went well. */
  g_assert_cmpuint (stats.completed, ==, stats.tasks);
  g_assert_cmpuint (stats.failed, ==, 0);
  pto_chip_free (chip);
}

/* The message has these words. */
void
fails_saying (SimOrchestration orchestrate, void *data, const char *expected)
{
  struct pto_chip *chip = chip_of (check_backend, check_settings);
  struct pto_report report = { 0 };

  g_assert_cmpint (pto_chip_run (chip, &program, NULL, orchestrate, data, NULL, &report), ==,
                   PTO_STATUS_ACCESS);
  sim_assert_says (&report, PTO_STATUS_ACCESS, expected, NULL);
  pto_chip_free (chip);
}

int
write_input (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_input_param (part (64, 64)), S (DO (DO_READ, 0, 0, 64)),
          S (DO (DO_WRITE, 0, 63, 1)));
  return 0;
}

/* By one byte; many tasks come between them, which have retired before the second one comes. */
int
hide_long_ago (PTO2Runtime *rt, void *data)
{
  PTO2_SCOPE (rt)
  SUBMIT (rt, TOUCH_1, make_output_existing_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));
  for (int i = 0; i < 100; i++)
    PTO2_SCOPE (rt)
  SUBMIT (rt, TOUCH_1, make_inout_param (part (200, 8)), S (DO (DO_WRITE, 0, 0, 8)));
  PTO2_SCOPE (rt)
  SUBMIT (rt, TOUCH_1, make_no_dep_param (part (60, 64)), S (DO (DO_READ, 0, 3, 4)));
  return 0;
}

/* The same in order, by the last of those between them. */
int
follow_long_ago (PTO2Runtime *rt, void *data)
{
  PTO2_SCOPE (rt)
  SUBMIT (rt, TOUCH_2, make_output_existing_param (part (0, 64)), make_inout_param (part (200, 8)),
          S (DO (DO_WRITE, 0, 0, 64)), S (DO (DO_READ, 1, 0, 1)));
  for (int i = 0; i < 100; i++)
    PTO2_SCOPE (rt)
  SUBMIT (rt, TOUCH_1, make_inout_param (part (200, 8)), S (DO (DO_WRITE, 0, 0, 8)));
  PTO2_SCOPE (rt)
  SUBMIT (rt, TOUCH_2, make_no_dep_param (part (60, 64)), make_input_param (part (200, 8)),
          S (DO (DO_READ, 0, 3, 4)));
  return 0;
}

int
use_rings (PTO2Runtime *rt, void *data)
{
  const uint64_t shape[1] = { 3000 };

  for (int i = 0; i < 50; i++)
    PTO2_SCOPE (rt)
    {
      Tensor a = pto2_rt_make_tensor (rt, shape, 1, PTO_DTYPE_UINT8);
      Tensor b = pto2_rt_make_tensor (rt, shape, 1, PTO_DTYPE_UINT8);

      SUBMIT (rt, TOUCH_1, make_output_param (a), S (DO (DO_WRITE, 0, 0, 3000)));
      SUBMIT (rt, TOUCH_3, make_input_param (a), make_output_param (b),
              make_scratch_param (shape, 1, PTO_DTYPE_UINT8), S (DO (DO_READ, 0, 0, 3000)),
              S (DO (DO_WRITE, 1, 0, 3000)), S (DO (DO_WRITE, 2, 0, 3000)),
              S (DO (DO_READ, 2, 0, 3000)));
      SUBMIT (rt, TOUCH_1, make_inout_param (b), S (DO (DO_WRITE, 0, 0, 10)));
    }
  return 0;
}

int
take_turns (PTO2Runtime *rt, void *data)
{
  for (int i = 0; i < 10; i++)
    SUBMIT (rt, TOUCH_1, make_commutative_param (part (0, 64)), S (DO (DO_READ, 0, 0, 64)),
            S (DO (DO_WRITE, 0, 0, 64)));
  SUBMIT (rt, TOUCH_1, make_inout_param (part (0, 128)), S (DO (DO_WRITE, 0, 0, 128)));
  for (int i = 0; i < 3; i++)
    SUBMIT (rt, TOUCH_1, make_commutative_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));
  return 0;
}

int
reduce (PTO2Runtime *rt, void *data)
{
  const uint64_t n = 64;
  Tensor sum = make_tensor_external (memory, &n, 1, PTO_DTYPE_INT32);
  const int32_t nothing = 0;

  for (int i = 0; i < 10; i++)
    SUBMIT (rt, TOUCH_1, make_reduction_param (sum, PTO2_KERNEL_SUM, &nothing),
            S (DO (DO_READ, 0, 0, 256)), S (DO (DO_WRITE, 0, 0, 256)));
  SUBMIT (rt, TOUCH_1, make_input_param (sum), S (DO (DO_READ, 0, 0, 256)));
  return 0;
}

/* Each block writes a piece, all meet, and each reads what all have written. */
int
meet (PTO2Runtime *rt, void *data)
{
  const uint64_t n = 4 * 16;
  Tensor all = pto2_rt_make_tensor (rt, &n, 1, PTO_DTYPE_UINT8);
  PTOParam params[] = { make_output_param (all), S (DO_BY_BLOCK (DO_WRITE, 0, 16)),
                        S (DO (DO_SYNC, 0, 0, 0)), S (DO (DO_READ, 0, 0, 64)), S (0) };

  pto2_rt_submit_sync_task (rt, TOUCH_1, AIV, params, 5, 4);
  return 0;
}

int
launch (PTO2Runtime *rt, void *graph)
{
  pto_chip_launch (rt, graph, NULL);
  return 0;
}
