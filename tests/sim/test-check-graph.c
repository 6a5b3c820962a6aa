/* test-check-graph.c: are the tasks of a graph checked as those of a run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-test.h"

#include <string.h>

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
    "of task 101 of ring 1 as INPUT",
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

          pto_plan_add_task (
              graph, &(struct pto_submit){ .kernel = TOUCH_1, .queue = PTO_CORE_TYPE_AIV }, 0);
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
            "add task 1 of ring 0 as a successor of task 0 of ring 0 to the graph",
            NULL);
      pto_plan_free (graph);
    }
  pto_chip_free (chip);
}

void
check_add_graph_tests (void)
{
  sim_add ("check/graph", test_graph);
  sim_add ("check/graph-by-hand", test_linked);
}
