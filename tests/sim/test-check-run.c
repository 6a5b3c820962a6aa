/* test-check-run.c: which runs are checked, and what is known after one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-test.h"

#include <string.h>

static void
test_well (enum pto_backend on)
{
  static const SimOrchestration all[] = { use_rings, take_turns, reduce };
  static const char *const windows[]
      = { "", "task-window=16 heap=16K", "clusters=1 aicpu-threads=2" };

  check_backend = on;
  for (guint w = 0; w < G_N_ELEMENTS (windows); w++)
    for (guint i = 0; i < G_N_ELEMENTS (all); i++)
      if (all[i] != reduce || w != 1)
        {
          check_settings = windows[w];
          passes (all[i], NULL);
        }
  check_settings = NULL;
}

/* Only a run that asks for the check is checked. Other runs of the same chip leave the same bytes
 * in memory that is used again, and take as long, as without the check. */
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

/* Stores that are not seen: into memory of the program by a kernel that may hide them. */
static int
write_hidden (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_output_existing_param (part (0, 32)), S (DO (DO_WRITE, 0, 0, 32)));
  SUBMIT (rt, HIDES, make_inout_param (part (8, 48)), S (DO (DO_LIBRARY, 0, 0, 48)));
  SUBMIT (rt, HIDES, make_input_param (part (0, 64)), S (DO (DO_READ, 0, 0, 4)));
  SUBMIT (rt, TOUCH_1, make_inout_param (part (16, 8)), S (DO (DO_WRITE, 0, 0, 8)));
  return 0;
}

static void
test_hidden_writer (enum pto_backend on)
{
  static const struct
  {
    guint byte;
    const char *says[3];
  } cases[] = {
    { 7, { "task 0 of ring 0 (one)", "as byte 7 of its argument 0 (OUTPUT_EXISTING" } },
    { 8,
      { "task 0 of ring 0 (one)",
        "; perhaps by stores that are not seen of task 1 of ring 0 (hides)",
        "as byte 0 of its argument 0 (INOUT" } },
    { 16, { "task 3 of ring 0 (one)", "as byte 0 of its argument 0 (INOUT" } },
    { 40, { "perhaps by stores that are not seen of task 1 of ring 0 (hides)", "as byte 32 of" } },
    { 56, { NULL } },
  };
  struct pto_chip *chip = chip_of (on, NULL);

  sim_run (chip, &program, write_hidden, NULL, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      char text[800];

      pto_chip_describe_writer (chip, (uint64_t) (uintptr_t) memory + cases[i].byte, text,
                                sizeof text);
      if (cases[i].says[0] == NULL)
        g_assert_cmpstr (text, ==, "");
      else
        g_assert_true (g_str_has_prefix (text, cases[i].says[0]));
      for (guint w = 0; w < 3 && cases[i].says[w] != NULL; w++)
        g_assert_nonnull (strstr (text, cases[i].says[w]));
      g_assert_true ((strstr (text, "perhaps") != NULL) == (i == 1 || i == 3));
    }
  pto_chip_free (chip);
}

/* A run fails for another reason: its message ends with the findings, and the chip is well. */
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

void
check_add_run_tests (void)
{
  sim_add ("check/all-is-well", test_well);
  sim_add ("check/one-run", test_one_run);
  sim_add ("check/last-writer", test_writer);
  sim_add ("check/hidden-writer", test_hidden_writer);
  sim_add ("check/with-a-failure", test_failure);
}
