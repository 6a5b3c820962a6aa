/* test-check.c: is it found what kernels touch and must not?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../pto/core/plan.h"
#include "../../sim/check-connect.h"
#include "check-kernels.h"

#include <string.h>

#define SIDE 32u

enum
{
  TOUCH_1,
  TOUCH_2,
  TOUCH_3,
  PLAIN,
  CUBE
};

extern PTO2AccessTable pto2_access_table;

/* Not checked: what it touches is what its arguments say. */
static void
plain (int64_t *args)
{
  ((uint8_t *) sim_data (args, 0))[0] = 5;
}

static const struct pto_kernel kernels[]
    = { { "one", check_touch_1, PTO_CORE_TYPE_AIV, { .base_ns = 1000 }, .instrumented = true },
        { "two", check_touch_2, PTO_CORE_TYPE_AIV, { .base_ns = 3000 }, .instrumented = true },
        { "three", check_touch_3, PTO_CORE_TYPE_AIV, { .base_ns = 500 }, .instrumented = true },
        { "plain", plain, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "cube", check_touch_1, PTO_CORE_TYPE_AIC, { .base_ns = 1000 }, .instrumented = true } };
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

/* Memory of the program: bytes in one dimension, and a square of them. */
static _Alignas(1024) uint8_t memory[8 * SIDE * SIDE];
static _Alignas(1024) uint8_t square[SIDE * SIDE];

static Tensor
bytes_of (uint8_t *from, uint64_t n)
{
  return make_tensor_external (from, &n, 1, PTO_DTYPE_UINT8);
}

/* A part of memory whose buffer is all of it. */
static Tensor
part (uint64_t from, uint64_t n)
{
  Tensor all = bytes_of (memory, sizeof memory);

  return pto2_tensor_view (&all, &n, &from);
}

static Tensor
tile (uint64_t row, uint64_t column, uint64_t rows, uint64_t columns)
{
  const uint64_t shape[2] = { SIDE, SIDE };
  const uint64_t shapes[2] = { rows, columns };
  const uint64_t offsets[2] = { row, column };
  Tensor all = make_tensor_external (square, shape, 2, PTO_DTYPE_UINT8);

  return pto2_tensor_view (&all, shapes, offsets);
}

#define S(word) make_scalar_param (word)
#define COUNT(...) ((int32_t) (sizeof ((PTOParam[]){ __VA_ARGS__ }) / sizeof (PTOParam)))
/* One line, so that messages are known. */
#define SUBMIT(rt, kernel, ...)                                      \
  pto2_rt_submit_task ((rt), (kernel), (kernel) == CUBE ? AIC : AIV, \
                       ((PTOParam[]){ __VA_ARGS__, S (0) }), COUNT (__VA_ARGS__) + 1)
#define AFTER(rt, kernel, task, ...)                                                    \
  pto2_rt_submit_task_after ((rt), (kernel), AIV, ((PTOParam[]){ __VA_ARGS__, S (0) }), \
                             COUNT (__VA_ARGS__) + 1, &(PTO2TaskId){ task }, 1)

static struct pto_chip *
chip_of (enum pto_backend backend, const char *more)
{
  g_autofree char *settings = g_strdup_printf ("check=access %s", more != NULL ? more : "");

  return sim_chip (backend, settings);
}

static enum pto_backend backend;
static const char *settings;

static void
passes (SimOrchestration orchestrate, void *data)
{
  struct pto_chip *chip = chip_of (backend, settings);

  sim_run (chip, &program, orchestrate, data, NULL);
  pto_chip_free (chip);
}

/* The whole message but for what stands between " at " and the line. */
static void
fails (SimOrchestration orchestrate, void *data, const char *expected)
{
  struct pto_chip *chip = chip_of (backend, settings);
  struct pto_report report = { 0 };
  struct pto_run_stats stats;
  g_autoptr (GRegex) place = g_regex_new (" at [^ ]*test-check\\.c:[0-9]+", 0, 0, NULL);
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

/* --- one task --- */

static int
write_input (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_input_param (part (64, 64)), S (DO (DO_READ, 0, 0, 64)),
          S (DO (DO_WRITE, 0, 63, 1)));
  return 0;
}

static void
test_input (enum pto_backend on)
{
  backend = on;
  fails (
      write_input, NULL,
      "task 0 of ring 0 (one), submitted, wrote to byte 63 of its argument 0 (INPUT, uint8, from "
      "element 63): give it as INOUT, or as OUTPUT_EXISTING if it is not read");
}

static int
read_output (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_2, make_output_existing_param (part (0, 16)), make_output_param (part (32, 16)),
          S (DO (DO_WRITE, 0, 0, 8)), S (DO (DO_READ, 0, 0, 10)), S (DO (DO_WRITE, 0, 8, 8)),
          S (DO (DO_WRITE, 1, 0, 16)), S (DO (DO_READ, 1, 0, 16)));
  return 0;
}

static void
test_output (enum pto_backend on)
{
  backend = on;
  fails (read_output, NULL,
         "task 0 of ring 0 (two), submitted, read bytes 8 to 9 of its argument 0 (OUTPUT_EXISTING, "
         "uint8, from element 8) before it had written there: give it as INOUT, or write it first");
}

static int
go_outside (PTO2Runtime *rt, void *data)
{
  uint64_t what = *(uint64_t *) data;

  SUBMIT (rt, TOUCH_1, make_inout_param (part (64, 64)), S (DO (DO_READ, 0, 0, 64)),
          S (DO (DO_WRITE, 0, 0, 64)), S (what));
  return 0;
}

static void
test_outside (enum pto_backend on)
{
  static const struct
  {
    uint64_t what;
    const char *expected;
  } cases[] = {
    { DO (DO_WRITE, 0, 64, 1), "wrote to byte 128 of the memory" },
    { DO (DO_READ, 0, -1, 1), "read byte 63 of the memory" },
    { DO (DO_COPY_OUT, 0, 60, 8), "read bytes 128 to 131 of the memory" },
    { DO (DO_COPY_IN, 0, -3, 6), "wrote to bytes 61 to 63 of the memory" },
    { DO (DO_SET, 0, 64, 100), "wrote to bytes 128 to 227 of the memory" },
    { DO (DO_ATOMIC, 0, 64, 0), "wrote to bytes 128 to 131 of the memory" },
    { DO (DO_READ, 0, 960, 2000), "read bytes 1024 to 3023 of the memory" },
  };

  backend = on;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *expected = g_strdup_printf (
          "task 0 of ring 0 (one), submitted, %s of its argument 0 (INOUT), whose "
          "view has only bytes 64 to 127: give the task a view that has them, or "
          "mend the kernel",
          cases[i].expected);

      fails (go_outside, (void *) &cases[i].what, expected);
    }
}

/* Memory of others; what is the kernel's own, and what nobody knows, is nobody's business. */
static int
go_elsewhere (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_inout_param (bytes_of (memory, 8)), S (DO (DO_WRITE, 0, 100, 4)));
  SUBMIT (rt, TOUCH_1, make_inout_param (bytes_of (memory + 100, 10)), S (DO (DO_OWN, 0, 0, 0)));
  return 0;
}

static int
go_home (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_inout_param (bytes_of (memory, 8)), S (DO (DO_OWN, 0, 0, 0)),
          S (DO (DO_WRITE, 0, 200, 4)));
  SUBMIT (rt, PLAIN, make_inout_param (bytes_of (memory + 100, 10)));
  return 0;
}

static void
test_elsewhere (enum pto_backend on)
{
  struct pto_chip *chip;
  struct pto_report report = { 0 };

  backend = on;
  passes (go_home, NULL);
  chip = chip_of (on, NULL);
  g_assert_cmpint (pto_chip_run (chip, &program, NULL, go_elsewhere, NULL, NULL, &report), ==,
                   PTO_STATUS_ACCESS);
  sim_assert_says (&report, PTO_STATUS_ACCESS, "task 0 of ring 0 (one), submitted at",
                   "wrote to 4 bytes at 0x", ", which are no argument of its", NULL);
  pto_chip_free (chip);
}

/* --- pieces --- */

/* All of a tile, row by row. */
static int
use_tile (PTO2Runtime *rt, void *data)
{
  int more = *(int *) data;
  Tensor whole = tile (3, 5, 3, 7);

  SUBMIT (rt, TOUCH_1, make_inout_param (whole), S (DO (DO_WRITE, 0, 0, 7)),
          S (DO (DO_COPY_IN, 0, SIDE, 7)), S (DO (DO_READ, 0, 2 * SIDE, 7 + more)));
  return 0;
}

static void
test_strides (enum pto_backend on)
{
  int more = 0;

  backend = on;
  passes (use_tile, &more);
  more = 1;
  fails (use_tile, &more,
         "task 0 of ring 0 (one), submitted, read byte 172 of the memory of its argument 0 "
         "(INOUT), not of its view: give the task a view that has them, or mend the kernel");
}

/* --- two tasks --- */

static int
hide (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_no_dep_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));
  SUBMIT (rt, TOUCH_1, make_input_param (part (63, 64)), S (DO (DO_READ, 0, 0, 64)));
  return 0;
}

static int
hide_but_say (PTO2Runtime *rt, void *data)
{
  PTO2TaskId task
      = SUBMIT (rt, TOUCH_1, make_no_dep_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));

  AFTER (rt, TOUCH_1, task, make_input_param (part (63, 64)), S (DO (DO_READ, 0, 0, 64)));
  return 0;
}

/* By one byte; many tasks come between them, which have retired before the second one comes. */
static int
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
static int
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

static void
test_pair (enum pto_backend on)
{
  static const char *const windows[] = { "", "task-window=4", "clusters=1 aicpu-threads=2" };

  backend = on;
  for (guint i = 0; i < G_N_ELEMENTS (windows); i++)
    {
      settings = windows[i];
      fails (hide, NULL,
             "task 0 of ring 0 (one), submitted, and task 1 of ring 0 (one), submitted, are in no "
             "order and touch the same bytes: the first writes byte 63 of its argument 0 (NO_DEP, "
             "uint8, from element 63), the second reads byte 0 of its argument 0 (INPUT, uint8, "
             "from element 0): give argument 0 of task 0 as INOUT (OUTPUT_EXISTING if it is not "
             "read)");
      fails (
          hide_long_ago, NULL,
          "task 0 of ring 1 (one), submitted, and task 101 of ring 1 (one), submitted, are in no "
          "order and touch the same bytes: the first writes byte 63 of its argument 0 "
          "(OUTPUT_EXISTING, uint8, from element 63), the second reads byte 3 of its argument 0 "
          "(NO_DEP, uint8, from element 3): give argument 0 of task 101 as INPUT");
      passes (hide_but_say, NULL);
      passes (follow_long_ago, NULL);
    }
  settings = NULL;
}

static int
by_hand (PTO2Runtime *rt, void *data)
{
  bool says = *(bool *) data;

  PTO2_MANUAL_SCOPE (rt)
  {
    PTO2TaskId task = SUBMIT (rt, TOUCH_1, make_output_existing_param (part (0, 8)),
                              S (DO (DO_WRITE, 0, 0, 8)));

    if (says)
      AFTER (rt, TOUCH_1, task, make_inout_param (part (4, 8)), S (DO (DO_WRITE, 0, 0, 8)));
    else
      SUBMIT (rt, TOUCH_1, make_inout_param (part (4, 8)), S (DO (DO_WRITE, 0, 0, 8)));
  }
  return 0;
}

static void
test_manual (enum pto_backend on)
{
  bool says = true;

  backend = on;
  passes (by_hand, &says);
  says = false;
  fails (
      by_hand, &says,
      "task 0 of ring 1 (one), submitted, and task 1 of ring 1 (one), submitted, are in no order "
      "and touch the same bytes: the first writes bytes 4 to 7 of its argument 0 "
      "(OUTPUT_EXISTING, uint8, from element 4), the second writes bytes 0 to 3 of its argument "
      "0 (INOUT, uint8, from element 0): name task 0 among those that task 1 comes after");
}

static int
read_then_write (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_input_param (tile (0, 0, 4, 4)), S (DO (DO_READ, 0, 0, 4)),
          S (DO (DO_READ, 0, SIDE, 4)));
  SUBMIT (rt, TOUCH_1, make_output_existing_param (tile (1, 0, 1, 4)), S (DO (DO_SET, 0, 0, 4)));
  return 0;
}

static void
test_hazards (enum pto_backend on)
{
  backend = on;
  passes (read_then_write, NULL);
  settings = "hazards=raw,waw";
  fails (
      read_then_write, NULL,
      "task 0 of ring 0 (one), submitted, and task 1 of ring 0 (one), submitted, are in no order "
      "and touch the same bytes: the first reads bytes 32 to 35 of its argument 0 (INPUT, uint8), "
      "the second writes bytes 0 to 3 of its argument 0 (OUTPUT_EXISTING, uint8, from element "
      "0): set hazards to raw,waw,war, or name task 0 among those that task 1 comes after");
  settings = NULL;
}

/* The orchestration waits for the first one. */
static int
ask_between (PTO2Runtime *rt, void *data)
{
  const uint64_t at[1] = { 0 };
  Tensor flag = part (512, 1);
  uint8_t value;

  SUBMIT (rt, TOUCH_2, make_no_dep_param (part (0, 64)), make_output_existing_param (flag),
          S (DO (DO_WRITE, 0, 0, 64)), S (DO (DO_WRITE, 1, 0, 1)));
  if (*(bool *) data)
    pto2_rt_get_element (rt, &flag, at, &value);
  SUBMIT (rt, TOUCH_1, make_no_dep_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));
  return 0;
}

static void
test_waits (enum pto_backend on)
{
  bool asks = true;
  struct pto_chip *chip;
  struct pto_report report = { 0 };

  backend = on;
  passes (ask_between, &asks);
  asks = false;
  chip = chip_of (on, NULL);
  g_assert_cmpint (pto_chip_run (chip, &program, NULL, ask_between, &asks, NULL, &report), ==,
                   PTO_STATUS_ACCESS);
  sim_assert_says (
      &report, PTO_STATUS_ACCESS, "are in no order",
      "give argument 0 of task 0 as INOUT (OUTPUT_EXISTING if it is not read), and give "
      "argument 0 of task 1 as INOUT",
      NULL);
  pto_chip_free (chip);
}

/* --- memory of the runtime, and everything that is as it should be --- */

static int
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
              S (DO (DO_WRITE, 1, 0, 3000)), S (DO (DO_READ, 2, 0, 3000)),
              S (DO (DO_WRITE, 2, 0, 3000)));
      SUBMIT (rt, TOUCH_1, make_inout_param (b), S (DO (DO_WRITE, 0, 0, 10)));
    }
  return 0;
}

static int
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

static int
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

static void
test_well (enum pto_backend on)
{
  static const SimOrchestration all[] = { use_rings, take_turns, reduce };
  static const char *const windows[]
      = { "", "task-window=16 heap=16K", "clusters=1 aicpu-threads=2" };

  backend = on;
  for (guint w = 0; w < G_N_ELEMENTS (windows); w++)
    for (guint i = 0; i < G_N_ELEMENTS (all); i++)
      if (all[i] != reduce || w != 1)
        {
          settings = windows[w];
          passes (all[i], NULL);
        }
  settings = NULL;
}

/* Somebody reads what others update in turns, and says nothing of it. */
static int
look_between (PTO2Runtime *rt, void *data)
{
  for (int i = 0; i < 2; i++)
    SUBMIT (rt, TOUCH_1, make_commutative_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));
  SUBMIT (rt, TOUCH_1, make_no_dep_param (part (0, 64)), S (DO (DO_READ, 0, 9, 1)));
  return 0;
}

static void
test_turns (enum pto_backend on)
{
  struct pto_chip *chip = chip_of (on, NULL);
  struct pto_report report = { 0 };

  pto_chip_run (chip, &program, NULL, look_between, NULL, NULL, &report);
  sim_assert_says (&report, PTO_STATUS_ACCESS, "task 1 of ring 0 (one), submitted at",
                   "\ntask 0 of ring 0 (one), submitted at",
                   "the second reads byte 9 of its argument 0 (NO_DEP", NULL);
  g_assert_cmpuint (strlen (report.message), <, 1200);
  pto_chip_free (chip);
}

/* --- parts --- */

/* Each block writes a piece, all meet, and each reads what all have written. */
static int
meet (PTO2Runtime *rt, void *data)
{
  const uint64_t n = 4 * 16;
  Tensor all = pto2_rt_make_tensor (rt, &n, 1, PTO_DTYPE_UINT8);
  PTOParam params[] = { make_output_param (all), S (DO_BY_BLOCK (DO_WRITE, 0, 16)),
                        S (DO (DO_SYNC, 0, 0, 0)), S (DO (DO_READ, 0, 0, 64)), S (0) };

  pto2_rt_submit_sync_task (rt, TOUCH_1, AIV, params, 5, 4);
  return 0;
}

/* The third block is beyond its task's view. */
static int
go_beyond (PTO2Runtime *rt, void *data)
{
  PTOParam params[]
      = { make_output_existing_param (part (0, 32)), S (DO_BY_BLOCK (DO_WRITE, 0, 16)), S (0) };

  pto2_rt_submit_block_task (rt, TOUCH_1, AIV, params, 3, 3);
  return 0;
}

static int
mix (PTO2Runtime *rt, void *data)
{
  PTOParam params[] = { make_inout_param (part (0, 32)), S (DO (DO_READ, 0, 32, 1)), S (0) };

  pto2_rt_submit_mixed_task (rt, CUBE, TOUCH_1, TOUCH_1, params, 3, 1);
  return 0;
}

static int
group (PTO2Runtime *rt, void *data)
{
  static const int32_t both[] = { TOUCH_1, CUBE };
  PTOParam params[] = { make_input_param (part (0, 32)), S (DO (DO_WRITE, 0, 0, 4)), S (0) };

  pto2_rt_submit_group_task (rt, both, 2, params, 3);
  return 0;
}

static void
test_parts (enum pto_backend on)
{
  backend = on;
  passes (meet, NULL);
  fails (
      go_beyond, NULL,
      "task 0 of ring 0 (one), submitted, wrote to bytes 32 to 47 of the memory of its argument 0 "
      "(OUTPUT_EXISTING), whose view has only bytes 0 to 31: give the task a view that has them, "
      "or mend the kernel");
  {
    struct pto_chip *chip = chip_of (on, NULL);
    struct pto_report report = { 0 };

    pto_chip_run (chip, &program, NULL, mix, NULL, NULL, &report);
    sim_assert_says (&report, PTO_STATUS_ACCESS, "read byte 32 of the memory of its argument 0",
                     NULL);
    memset (&report, 0, sizeof report);
    pto_chip_run (chip, &program, NULL, group, NULL, NULL, &report);
    sim_assert_says (&report, PTO_STATUS_ACCESS, "wrote to bytes 0 to 3 of its argument 0 (INPUT",
                     NULL);
    pto_chip_free (chip);
  }
}

/* --- graphs --- */

static int
launch (PTO2Runtime *rt, void *graph)
{
  pto_chip_launch (rt, graph, NULL);
  return 0;
}

static void
test_graph (enum pto_backend on)
{
  struct pto_chip *chip = chip_of (on, NULL);
  struct pto_chip_arg args[1] = { { .tensor = bytes_of (memory, sizeof memory) } };
  struct pto_run_config config = { .args = args, .n_args = 1 };
  /* Each but for the first two is well. */
  static const SimOrchestration all[]
      = { hide_long_ago, write_input, follow_long_ago, use_rings, take_turns, reduce, meet };
  static const char *const expected[] = {
    "the second reads byte 3 of its argument 0 (NO_DEP, uint8, from element 3): give argument 0 "
    "of task 101 as INPUT",
    "wrote to byte 63 of its argument 0 (INPUT, uint8, from element 63): give it as INOUT"
  };

  args[0].word = args[0].tensor.buffer.addr;
  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    {
      struct pto_plan *graph = pto_plan_new ();
      struct pto_report report = { 0 };

      config.capture = graph;
      g_assert_cmpint (pto_chip_run (chip, &program, &config, all[i], NULL, NULL, &report), ==,
                       PTO_OK);
      config.capture = NULL;
      for (guint again = 0; again < 2; again++)
        {
          memset (&report, 0, sizeof report);
          g_assert_cmpint (pto_chip_run (chip, &program, &config, launch, graph, NULL, &report), ==,
                           i < 2 ? PTO_STATUS_ACCESS : PTO_OK);
          g_assert_nonnull (strstr (report.message, i < 2 ? expected[i] : ""));
        }
      pto_plan_free (graph);
    }
  pto_chip_free (chip);
}

/* Built by hand: its edges are what was named, and not what tags say. */
static void
test_linked (enum pto_backend on)
{
  struct pto_chip *chip = chip_of (on, NULL);
  struct pto_chip_arg args[1] = { { .tensor = bytes_of (memory, sizeof memory) } };
  struct pto_run_config config = { .args = args, .n_args = 1 };
  struct pto_plan_param param = { .tensor = args[0].tensor };

  args[0].word = param.word = param.first = args[0].tensor.buffer.addr;
  param.extent = sizeof memory;
  for (guint named = 0; named < 2; named++)
    {
      struct pto_plan *graph = pto_plan_new ();
      struct pto_report report = { 0 };

      pto_plan_add_param (graph, &param);
      for (guint i = 0; i < 2; i++)
        {
          Tensor tensor = part (0, 64);

          pto_plan_add_task (graph, TOUCH_1, PTO_CORE_TYPE_AIV, false, 0);
          pto_plan_add_tensor (graph, 0, 0, &tensor, i == 0, i == 0);
          pto_plan_add_number (graph, i == 0 ? DO (DO_WRITE, 0, 0, 64) : DO (DO_READ, 0, 0, 1));
          pto_plan_add_number (graph, 0);
        }
      if (named == 1)
        pto_plan_add_edge (graph, 0, 1, PTO_HAZARD_EXPLICIT);
      g_assert_cmpint (pto_plan_complete (graph, &report), ==, PTO_OK);
      g_assert_cmpint (pto_chip_run (chip, &program, &config, launch, graph, NULL, &report), ==,
                       named == 1 ? PTO_OK : PTO_STATUS_ACCESS);
      if (named == 0)
        sim_assert_says (
            &report, PTO_STATUS_ACCESS,
            "the first writes byte 0 of its argument 0 (INOUT, uint8, from element 0), "
            "the second reads byte 0 of its argument 0 (INPUT, uint8, from element 0): "
            "add task 1 as a successor of task 0 to the graph",
            NULL);
      pto_plan_free (graph);
    }
  pto_chip_free (chip);
}

/* --- one run of many --- */

/* Only that which asks for it is checked, wherever it comes; the others are as if there were none,
 * also in what they leave in memory that is used again, and how long they take. */
static void
test_one_run (enum pto_backend on)
{
  static const char *const windows[] = { "", "task-window=16 heap=16K", "map-pool=64" };

  for (guint w = 0; w < G_N_ELEMENTS (windows); w++)
    {
      struct pto_chip *plain = sim_chip (on, windows[w]);
      struct pto_chip *chip = sim_chip (on, windows[w]);
      struct pto_run_config config = { .checks = true };
      struct pto_run_stats expected;
      struct pto_run_stats stats;
      char text[400];

      sim_run (plain, &program, use_rings, NULL, &expected);
      for (guint turn = 0; turn < 3; turn++)
        {
          struct pto_report report = { 0 };

          sim_run (chip, &program, hide_long_ago, NULL, NULL);
          g_assert_cmpint (
              pto_chip_run (chip, &program, &config, hide_long_ago, NULL, NULL, &report), ==,
              PTO_STATUS_ACCESS);
          sim_assert_says (&report, PTO_STATUS_ACCESS, "task 101 of ring 1", "are in no order",
                           NULL);
          pto_chip_describe_writer (chip, (uint64_t) (uintptr_t) memory, text, sizeof text);
          g_assert_true (g_str_has_prefix (text, "task 0 of ring 1 (one)"));
          memset (&report, 0, sizeof report);
          g_assert_cmpint (pto_chip_run (chip, &program, &config, use_rings, NULL, NULL, &report),
                           ==, PTO_OK);
          sim_run (chip, &program, use_rings, NULL, &stats);
          g_assert_cmpuint (stats.tasks, ==, expected.tasks);
          g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIV] > 0, ==,
                            expected.busy_ns[PTO_CORE_TYPE_AIV] > 0);
          if (on == PTO_BACKEND_DET)
            {
              g_assert_cmpuint (stats.virtual_ns, ==, expected.virtual_ns);
              g_assert_cmpuint (stats.edges, ==, expected.edges);
            }
          pto_chip_describe_writer (chip, (uint64_t) (uintptr_t) memory, text, sizeof text);
          g_assert_cmpstr (text, ==, "");
        }
      pto_chip_free (chip);
      pto_chip_free (plain);
    }
}

/* --- what is known afterwards --- */

static int
write_twice (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_inout_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));
  SUBMIT (rt, TOUCH_1, make_inout_param (part (32, 8)), S (DO (DO_WRITE, 0, 1, 2)));
  SUBMIT (rt, PLAIN, make_output_existing_param (part (100, 4)));
  return 0;
}

static void
test_writer (enum pto_backend on)
{
  static const struct
  {
    guint byte;
    const char *task;
  } cases[] = { { 0, "task 0 of ring 0 (one), submitted at " },
                { 32, "task 0 of ring 0 (one), submitted at " },
                { 33, "task 1 of ring 0 (one), submitted at " },
                { 34, "task 1 of ring 0 (one), submitted at " },
                { 35, "task 0 of ring 0 (one), submitted at " },
                { 64, "" },
                { 100, "task 2 of ring 0 (plain), submitted at " },
                { 103, "task 2 of ring 0 (plain), submitted at " },
                { 104, "" } };
  struct pto_chip *chip = chip_of (on, NULL);

  sim_run (chip, &program, write_twice, NULL, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      char text[400];

      pto_chip_describe_writer (chip, (uint64_t) (uintptr_t) memory + cases[i].byte, text,
                                sizeof text);
      g_assert_true (g_str_has_prefix (text, cases[i].task));
      g_assert_cmpint (text[0] == '\0', ==, cases[i].task[0] == '\0');
    }
  pto_chip_free (chip);
}

/* What was found stands behind the error of a run that failed otherwise; the chip is well. */
static int
lie_and_fail (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_input_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 1)),
          S (DO (DO_FAULT, 0, 0, 0)));
  return 0;
}

static void
test_failure (enum pto_backend on)
{
  struct pto_chip *chip = chip_of (on, NULL);
  struct pto_report report = { 0 };

  g_assert_cmpint (pto_chip_run (chip, &program, NULL, lie_and_fail, NULL, NULL, &report), ==,
                   PTO_STATUS_KERNEL_FAULT);
  sim_assert_says (&report, PTO_STATUS_KERNEL_FAULT, "\ntask 0 of ring 0 (one), submitted at",
                   "wrote to byte 0 of its argument 0", NULL);
  sim_run (chip, &program, use_rings, NULL, NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* More than is told is counted. */
static int
lie_often (PTO2Runtime *rt, void *data)
{
  for (int i = 0; i < 30; i++)
    SUBMIT (rt, TOUCH_1, make_input_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 1)));
  return 0;
}

static void
test_many (enum pto_backend on)
{
  struct pto_chip *chip = chip_of (on, NULL);
  struct pto_report report = { 0 };
  guint lines = 0;
  guint more = 0;

  pto_chip_run (chip, &program, NULL, lie_often, NULL, NULL, &report);
  for (const char *c = report.message; *c != '\0'; c++)
    lines += *c == '\n';
  g_assert_cmpint (sscanf (strstr (report.message, "\nand "), "\nand %u more", &more), ==, 1);
  /* 30 that write, and the 29 pairs of those that follow each other. */
  g_assert_cmpuint (lines + more, ==, 59);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  pto_check_connect (&pto2_access_table);
  sim_add ("check/input-written", test_input);
  sim_add ("check/output-read-first", test_output);
  sim_add ("check/outside-of-views", test_outside);
  sim_add ("check/elsewhere", test_elsewhere);
  sim_add ("check/strides", test_strides);
  sim_add ("check/pair", test_pair);
  sim_add ("check/manual-scope", test_manual);
  sim_add ("check/hazards-off", test_hazards);
  sim_add ("check/waits", test_waits);
  sim_add ("check/all-is-well", test_well);
  sim_add ("check/turns", test_turns);
  sim_add ("check/parts", test_parts);
  sim_add ("check/graph", test_graph);
  sim_add ("check/graph-by-hand", test_linked);
  sim_add ("check/one-run", test_one_run);
  sim_add ("check/last-writer", test_writer);
  sim_add ("check/with-a-failure", test_failure);
  sim_add ("check/many", test_many);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
