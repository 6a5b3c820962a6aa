/* test-check-task.c: what is found of one task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-test.h"

#include <string.h>

static void
test_input (enum pto_backend on)
{
  check_backend = on;
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
  check_backend = on;
  fails (read_output, NULL,
         "task 0 of ring 0 (two), submitted, read bytes 8 to 9 of its argument 0 (OUTPUT_EXISTING, "
         "uint8, from element 8) before it had written there: give it as INOUT, or write it first");
}

/* Memory of one task, that it has not written to. */
static int
read_scratch (PTO2Runtime *rt, void *data)
{
  const int how = *(const int *) data;
  const uint64_t n = 64;
  PTOParam scratch = make_scratch_param (&n, 1, PTO_DTYPE_UINT8);
  PTOParam blocks[] = { scratch, S (DO_BY_BLOCK (DO_WRITE, 0, 16)), S (DO (DO_SYNC, 0, 0, 0)),
                        S (DO (DO_READ, 0, 0, 64)), S (0) };

  if (how < 2)
    SUBMIT (rt, TOUCH_2, make_output_existing_param (part (0, 16)), scratch,
            S (DO (DO_WRITE, 1, 0, 40)), S (DO (DO_LIBRARY, 1, 44, 20)),
            S (DO (DO_READ, 1, how == 0 ? 44 : 40, 20)));
  else
    pto2_rt_submit_sync_task (rt, TOUCH_1, AIV, blocks, 5, 4);
  return 0;
}

static void
test_scratch (enum pto_backend on)
{
  static const int written = 0, hole = 1, by_blocks = 2;

  check_backend = on;
  passes (read_scratch, (void *) &written);
  passes (read_scratch, (void *) &by_blocks);
  fails (
      read_scratch, (void *) &hole,
      "task 0 of ring 0 (two), submitted, read bytes 40 to 43 of its argument 1 (SCRATCH, uint8, "
      "from element 40) before it had written there: write it first");
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

  check_backend = on;
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

/* Memory of other tasks is checked. A kernel's own memory and unknown memory are not. */
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
          S (DO (DO_WRITE, 0, 8000, 4)));
  SUBMIT (rt, PLAIN, make_inout_param (bytes_of (memory + 100, 10)));
  return 0;
}

static void
test_elsewhere (enum pto_backend on)
{
  struct pto_chip *chip;
  struct pto_report report = { 0 };

  check_backend = on;
  passes (go_home, NULL);
  chip = chip_of (on, NULL);
  g_assert_cmpint (pto_chip_run (chip, &program, NULL, go_elsewhere, NULL, NULL, &report), ==,
                   PTO_STATUS_ACCESS);
  sim_assert_says (&report, PTO_STATUS_ACCESS, "task 0 of ring 0 (one), submitted at",
                   "wrote to 4 bytes at 0x", ", which are no argument of its", NULL);
  pto_chip_free (chip);
}

/* Memory that the run knows nothing about, close to a view. */
static int
go_past (PTO2Runtime *rt, void *data)
{
  uint64_t what = *(uint64_t *) data;

  SUBMIT (rt, TOUCH_1, make_inout_param (bytes_of (memory + 4000, 64)), S (DO (DO_OWN, 0, 0, 0)),
          S (what));
  return 0;
}

static void
test_past (enum pto_backend on)
{
  static const struct
  {
    uint64_t what;
    const char *expected;
  } cases[] = {
    { DO (DO_WRITE, 0, 64, 4), "wrote to bytes 64 to 67 of" },
    { DO (DO_READ, 0, 64, 4), "read bytes 64 to 67 of" },
    { DO (DO_READ, 0, 0, 65), "read byte 64 of" },
    { DO (DO_WRITE, 0, -4, 4), "wrote to 4 bytes before" },
    { DO (DO_READ, 0, -1, 1), "read 1 byte before" },
    { DO (DO_READ, 0, 64 + 1000, 64), "read bytes 1064 to 1127 of" },
    { DO (DO_READ, 0, 0, 64), NULL },
    { DO (DO_READ, 0, -4000, 8), "read 4000 bytes before" },
  };

  check_backend = on;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *expected = g_strdup_printf (
          "task 0 of ring 0 (one), submitted, %s the memory of its argument 0 (INOUT), whose view "
          "has only bytes 0 to 63: give the task a view that has them, or mend the kernel",
          cases[i].expected);

      if (cases[i].expected == NULL)
        passes (go_past, (void *) &cases[i].what);
      else
        fails (go_past, (void *) &cases[i].what, expected);
    }
}

/* Past memory that a ring makes: what is there is the ring's, or another task's. */
static int
go_past_new (PTO2Runtime *rt, void *data)
{
  const uint64_t n = 64;

  for (int i = 0; i < 3; i++)
    {
      Tensor x = pto2_rt_make_tensor (rt, &n, 1, PTO_DTYPE_UINT8);

      SUBMIT (rt, TOUCH_2, make_input_param (part (0, 8)), make_output_param (x),
              S (DO (DO_WRITE, 1, 0, 64)), S (i == 1 ? *(uint64_t *) data : DO (DO_OWN, 0, 0, 0)));
    }
  return 0;
}

static void
test_past_new (enum pto_backend on)
{
  static const struct
  {
    uint64_t what;
    const char *expected;
  } cases[] = {
    { DO (DO_READ, 1, 64, 4), "read bytes 64 to 67 of the memory of its argument 1 (OUTPUT)" },
    { DO (DO_READ, 1, 70, 1), "read byte 70 of the memory of its argument 1 (OUTPUT)" },
    { DO (DO_READ, 1, 0, 300), "read bytes 64 to 299 of the memory of its argument 1 (OUTPUT)" },
    { DO (DO_READ, 1, 1024, 4),
      "read bytes 1024 to 1027 of the memory of its argument 1 (OUTPUT)" },
    { DO (DO_READ, 1, -4, 4), "read 4 bytes before the memory of its argument 1 (OUTPUT)" },
    { DO (DO_READ, 1, -100, 4), "read 100 bytes before the memory of its argument 1 (OUTPUT)" },
  };

  check_backend = on;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *expected = g_strdup_printf (
          "%s, whose view has only bytes 0 to 63: give the task a view that has them, or mend the "
          "kernel",
          cases[i].expected);

      fails_saying (go_past_new, (void *) &cases[i].what, expected);
    }
}

/* Two arrays of the program with little between them: what goes past one of them reaches the other.
 */
static int
go_across (PTO2Runtime *rt, void *data)
{
  const int how = *(const int *) data;
  Tensor x = bytes_of (memory + 64, 32), y = bytes_of (memory + 112, 64);
  const uint64_t n = 32, from = 16;

  if (how < 2)
    SUBMIT (rt, TOUCH_2, make_input_param (x), make_output_existing_param (y),
            S (DO (DO_READ, 0, how == 0 ? 32 : 0, 64)), S (DO (DO_WRITE, 1, 0, 64)));
  else if (how == 2)
    SUBMIT (rt, TOUCH_2, make_output_existing_param (x), make_input_param (y),
            S (DO (DO_WRITE, 0, 0, 64)));
  else if (how == 3)
    SUBMIT (rt, TOUCH_2, make_input_param (x),
            make_output_existing_param (pto2_tensor_view (&y, &n, &from)),
            S (DO (DO_READ, 0, 0, 60)));
  else
    SUBMIT (rt, TOUCH_2, make_output_existing_param (x), make_input_param (y),
            S (DO (DO_READ, 1, -16, 16)));
  return 0;
}

static void
test_across (enum pto_backend on)
{
  static const char *const says[] = {
    "read bytes 32 to 95 of the memory of its argument 0 (INPUT), whose view has only bytes 0 to "
    "31",
    "read bytes 32 to 63 of the memory of its argument 0 (INPUT), whose view has only bytes 0 to "
    "31",
    "wrote to bytes 32 to 63 of the memory of its argument 0 (OUTPUT_EXISTING), whose view has "
    "only bytes 0 to 31",
    "read bytes 32 to 59 of the memory of its argument 0 (INPUT), whose view has only bytes 0 to "
    "31",
    "read 16 bytes before the memory of its argument 1 (INPUT), whose view has only bytes 0 to 63",
  };

  check_backend = on;
  for (int how = 0; how < (int) G_N_ELEMENTS (says); how++)
    {
      g_autofree char *expected
          = g_strdup_printf ("task 0 of ring 0 (two), submitted, %s: give the task a view that has "
                             "them, or mend the kernel",
                             says[how]);

      fails (go_across, &how, expected);
    }
}

/* Two views of a buffer, one beside the other, of one task. what: of the first and of the second.
 */
struct neighbours
{
  PTOParamType types[2];
  uint64_t what[4];
  const char *says; /* NULL: all is well */
};

static int
visit_neighbours (PTO2Runtime *rt, void *data)
{
  const struct neighbours *neighbours = data;
  PTOParam params[7] = { { .type = neighbours->types[0], .tensor = part (256, 32) },
                         { .type = neighbours->types[1], .tensor = part (288, 32) } };
  int32_t n = 2;

  for (uint32_t i = 0; i < G_N_ELEMENTS (neighbours->what) && neighbours->what[i] != 0; i++)
    params[n++] = S (neighbours->what[i]);
  params[n++] = S (0);
  memset (memory + 256, 0x33, 64);
  pto2_rt_submit_block_task (rt, TOUCH_2, AIV, params, n, 2);
  return 0;
}

static void
test_neighbours (enum pto_backend on)
{
  static const struct neighbours cases[] = {
    { { PTO_PARAM_INPUT, PTO_PARAM_INPUT },
      { DO_ONLY (1, DO (DO_READ, 0, 0, 40)) },
      "read bytes 288 to 295 of the memory of its argument 0 (INPUT), whose view has only bytes "
      "256 to 287" },
    { { PTO_PARAM_INPUT, PTO_PARAM_INPUT },
      { DO_ONLY (0, DO (DO_READ, 1, -4, 8)) },
      "read bytes 284 to 287 of the memory of its argument 1 (INPUT), whose view has only bytes "
      "288 to 319" },
    /* Past what it has written itself. */
    { { PTO_PARAM_INPUT, PTO_PARAM_OUTPUT_EXISTING },
      { DO_ONLY (0, DO (DO_WRITE, 1, 0, 32)), DO_ONLY (0, DO (DO_READ, 0, 0, 33)) },
      "read byte 288 of the memory of its argument 0 (INPUT), whose view has only bytes 256 to "
      "287" },
    { { PTO_PARAM_OUTPUT_EXISTING, PTO_PARAM_INOUT },
      { DO_ONLY (1, DO (DO_SET, 0, 0, 34)) },
      "wrote to bytes 288 to 289 of the memory of its argument 0 (OUTPUT_EXISTING), whose view "
      "has only bytes 256 to 287" },
    { { PTO_PARAM_INOUT, PTO_PARAM_INPUT },
      { DO_ONLY (0, DO (DO_WRITE, 0, 30, 4)) },
      "wrote to bytes 288 to 289 of the memory of its argument 0 (INOUT), whose view has only "
      "bytes 256 to 287" },
    { { PTO_PARAM_INPUT, PTO_PARAM_INOUT },
      { DO (DO_READ, 0, 0, 32), DO_BY_BLOCK (DO_WRITE, 1, 16) },
      NULL },
    { { PTO_PARAM_INOUT, PTO_PARAM_OUTPUT_EXISTING },
      { DO_BY_BLOCK (DO_SET, 0, 16), DO_ONLY (0, DO (DO_LIBRARY, 1, 0, 20)) },
      NULL },
  };

  check_backend = on;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *expected = g_strdup_printf (
          "task 0 of ring 0 (two), submitted, %s: give the task a view that has them, or mend the "
          "kernel",
          cases[i].says);

      if (cases[i].says == NULL)
        passes (visit_neighbours, (void *) &cases[i]);
      else
        fails (visit_neighbours, (void *) &cases[i], expected);
    }
  /* The views hold what was written, and otherwise what they held. */
  for (guint i = 0; i < 64; i++)
    g_assert_cmphex (memory[256 + i], ==,
                     i < 32   ? 3
                     : i < 52 ? ((i - 32) % 3 == 0 ? 0xa5 : 0x77)
                              : 0x33);
  passes (visit_neighbours, (void *) &cases[5]);
  for (guint i = 0; i < 64; i++)
    g_assert_cmphex (memory[256 + i], ==, i < 32 ? 0x33 : i % 16);
}

/* The same of tiles: the first bytes of a row, and the next ones. */
static int
visit_tiles (PTO2Runtime *rt, void *data)
{
  const uint64_t *what = data;

  memset (square, 0x33, sizeof square);
  SUBMIT (rt, TOUCH_2, make_inout_param (tile (0, 0, 4, 8)), make_inout_param (tile (0, 8, 4, 8)),
          S (DO (DO_WRITE, 0, (int64_t) SIDE, 8)), S (DO (DO_WRITE, 1, 3 * (int64_t) SIDE, 8)),
          S (what[0]));
  return 0;
}

static void
test_tiles (enum pto_backend on)
{
  uint64_t what[] = { DO (DO_READ, 0, 0, 8) };

  check_backend = on;
  passes (visit_tiles, what);
  for (guint i = 0; i < sizeof square; i++)
    g_assert_cmphex (
        square[i], ==,
        (i / SIDE == 1 && i % SIDE < 8) || (i / SIDE == 3 && i % SIDE / 8 == 1) ? i % 8 : 0x33);
  what[0] = DO (DO_READ, 0, 0, 9);
  fails_saying (visit_tiles, what, "read byte 8 of the memory of its argument 0 (INOUT)");
  /* From the second row, to the left. */
  what[0] = DO (DO_SET, 1, (int64_t) SIDE - 1, 2);
  fails_saying (visit_tiles, what, "wrote to byte 39 of the memory of its argument 1 (INOUT)");
}

/* The first memory that a ring makes, in a scope of so many inside of each other. */
struct ring_case
{
  int ring;
  uint64_t what;
};

static int
go_before (PTO2Runtime *rt, void *data)
{
  const struct ring_case *which = data;
  const uint64_t n = 64;

  for (int i = 0; i < which->ring; i++)
    pto2_rt_scope_begin (rt);
  for (int i = 0; i < 3; i++)
    {
      Tensor x = pto2_rt_make_tensor (rt, &n, 1, PTO_DTYPE_UINT8);

      SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_WRITE, 0, 0, 64)),
              S (i == 0 ? which->what : DO (DO_OWN, 0, 0, 0)));
    }
  for (int i = 0; i < which->ring; i++)
    pto2_rt_scope_end (rt);
  return 0;
}

/* Before the memory is another mapping, or none. Then the kernel crashes as well. */
static void
fails_before (int ring, int at, const char *expected)
{
  struct pto_chip *chip = chip_of (check_backend, check_settings);
  struct ring_case which = { ring, DO (DO_READ, 0, -at, 1) };
  struct pto_report report = { 0 };
  enum pto_status status = pto_chip_run (chip, &program, NULL, go_before, &which, NULL, &report);

  if (status != PTO_STATUS_KERNEL_FAULT)
    g_assert_cmpint (status, ==, PTO_STATUS_ACCESS);
  sim_assert_says (&report, status, expected, NULL);
  pto_chip_free (chip);
}

static void
test_before_rings (enum pto_backend on)
{
  static const char *const windows[]
      = { "", "task-window=4", "task-window=16 heap=16K", "task-window=1024", "task-window=65536" };

  check_backend = on;
  for (guint w = 0; w < G_N_ELEMENTS (windows); w++)
    for (int ring = 0; ring < (int) PTO_RINGS; ring++)
      for (int at = 1; at <= 1000; at *= 10)
        {
          g_autofree char *expected = g_strdup_printf (
              "read %d byte%s before the memory of its "
              "argument 0 (OUTPUT), whose view has only bytes 0 to 63: give the task a view that "
              "has them, or mend the kernel",
              at, at == 1 ? "" : "s");

          check_settings = windows[w];
          passes (go_before, &(struct ring_case){ ring, DO (DO_READ, 0, 0, 64) });
          fails_before (ring, at, expected);
        }
  check_settings = NULL;
}

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

  check_backend = on;
  passes (use_tile, &more);
  more = 1;
  fails (use_tile, &more,
         "task 0 of ring 0 (one), submitted, read byte 172 of the memory of its argument 0 "
         "(INOUT), not of its view: give the task a view that has them, or mend the kernel");
}

/* The same bytes given twice. */
static int
give_twice (PTO2Runtime *rt, void *data)
{
  const int how = *(const int *) data;
  Tensor x = part (0, 16);

  if (how <= 1)
    SUBMIT (rt, TOUCH_2, make_input_param (x), make_output_existing_param (x),
            S (DO (DO_READ, 0, 0, 8)), S (DO (DO_WRITE, 1, 0, 8)),
            S (DO (DO_READ, 0, how == 1 ? 7 : 8, 8)), S (DO (DO_WRITE, 1, 8, 8)));
  else
    SUBMIT (rt, TOUCH_2, make_input_param (x), make_no_dep_param (x), S (DO (DO_READ, 0, 0, 16)),
            S (DO (how == 2 ? DO_READ : DO_WRITE, 1, 3, 1)));
  return 0;
}

static void
test_twice (enum pto_backend on)
{
  static const int in_place = 0, overwrites = 1, reads = 2, writes = 3;

  check_backend = on;
  passes (give_twice, (void *) &in_place);
  fails (give_twice, (void *) &overwrites,
         "task 0 of ring 0 (two), submitted, read byte 7 of its argument 0 (INPUT, uint8, from "
         "element 7) after it had written there as its argument 1: give the bytes once, as INOUT, "
         "or write elsewhere");
  passes (give_twice, (void *) &reads);
  fails (give_twice, (void *) &writes,
         "task 0 of ring 0 (two), submitted, wrote to byte 3 of its argument 0 (INPUT, uint8, from "
         "element 3): give it as INOUT, or as OUTPUT_EXISTING if it is not read");
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

void
check_add_task_tests (void)
{
  sim_add ("check/input-written", test_input);
  sim_add ("check/output-read-first", test_output);
  sim_add ("check/scratch", test_scratch);
  sim_add ("check/outside-of-views", test_outside);
  sim_add ("check/elsewhere", test_elsewhere);
  sim_add ("check/past-a-view", test_past);
  sim_add ("check/neighbours", test_neighbours);
  sim_add ("check/tiles", test_tiles);
  sim_add ("check/past-new-memory", test_past_new);
  sim_add ("check/across-arrays", test_across);
  sim_add ("check/before-rings", test_before_rings);
  sim_add ("check/strides", test_strides);
  sim_add ("check/given-twice", test_twice);
  sim_add ("check/many", test_many);
}
