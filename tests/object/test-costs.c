/* test-costs.c: is what was measured of a kernel told as the cost that it is, and kept?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void
add (PtoCosts *costs, const char *kernel, PtoClock clock, guint64 bytes, double ns)
{
  g_autoptr (GError) error = NULL;

  pto_costs_add_time (costs, kernel, clock, bytes, ns, &error);
  g_assert_no_error (error);
}

static void
assert_cost (PtoCosts *costs, const char *kernel, PtoClock clock, const char *expected)
{
  g_autofree char *cost = pto_costs_dup_cost (costs, kernel, clock);

  g_assert_cmpstr (cost, ==, expected);
}

/* The object of a kernel in the answer of which there is one. */
static JsonNode *
describe (PtoCosts *costs)
{
  g_autofree char *text = pto_costs_describe_json (costs);
  g_autoptr (GError) error = NULL;
  JsonNode *node = json_from_string (text, &error);

  g_assert_no_error (error);
  return node;
}

static JsonObject *
get_kernel (JsonNode *answer, guint i)
{
  return json_array_get_object_element (
      json_object_get_array_member (json_node_get_object (answer), "kernels"), i);
}

/* --- fits --- */

static void
test_models (void)
{
  g_autoptr (PtoCosts) costs = pto_costs_new ();

  assert_cost (costs, "none", PTO_CLOCK_CHIP, NULL);
  /* One size. */
  add (costs, "one", PTO_CLOCK_CHIP, 4096, 100);
  add (costs, "one", PTO_CLOCK_CHIP, 4096, 300);
  add (costs, "one", PTO_CLOCK_CHIP, 4096, 110);
  assert_cost (costs, "one", PTO_CLOCK_CHIP, "constant:110");
  /* The same at all sizes, but for 1 %. */
  add (costs, "flat", PTO_CLOCK_CHIP, 64, 1000);
  add (costs, "flat", PTO_CLOCK_CHIP, 65536, 1010);
  assert_cost (costs, "flat", PTO_CLOCK_CHIP, "constant:1005");
  for (guint64 bytes = 1024; bytes <= 8192; bytes += 1024)
    {
      /* A line, of which one size is far off. */
      add (costs, "line", PTO_CLOCK_CHIP, bytes,
           500 + 0.25 * (double) bytes + (bytes == 4096 ? 700 : 0));
      /* What no line is near. */
      add (costs, "steps", PTO_CLOCK_CHIP, bytes, bytes <= 4096 ? 100 : 900);
      /* A line that would take less than nothing at the beginning. */
      add (costs, "late", PTO_CLOCK_CHIP, bytes, 2.0 * (double) bytes - 10);
    }
  assert_cost (costs, "line", PTO_CLOCK_CHIP, "linear:500:0.25");
  assert_cost (costs, "steps", PTO_CLOCK_CHIP,
               "table:1024:100,2048:100,3072:100,4096:100,5120:900,6144:900,"
               "7168:900,8192:900");
  {
    g_autofree char *late = pto_costs_dup_cost (costs, "late", PTO_CLOCK_CHIP);

    g_assert_true (g_str_has_prefix (late, "linear:0:1.99"));
  }
  /* What falls is no line. */
  add (costs, "falls", PTO_CLOCK_CHIP, 10, 200);
  add (costs, "falls", PTO_CLOCK_CHIP, 20, 100);
  assert_cost (costs, "falls", PTO_CLOCK_CHIP, "table:10:200,20:100");
}

static void
test_clocks (void)
{
  g_autoptr (PtoCosts) costs = pto_costs_new ();
  g_autoptr (JsonNode) answer = NULL;
  g_autofree char *text = NULL;
  g_autofree char *line = NULL;
  g_auto (GStrv) kernels = NULL;

  add (costs, "b", PTO_CLOCK_VIRTUAL, 8, 3);
  add (costs, "b", PTO_CLOCK_CHIP, 8, 1);
  add (costs, "b", PTO_CLOCK_CPU, 8, 2);
  add (costs, "a", PTO_CLOCK_CPU, 8, 4);
  assert_cost (costs, "b", PTO_CLOCK_CHIP, "constant:1");
  assert_cost (costs, "b", PTO_CLOCK_CPU, "constant:2");
  assert_cost (costs, "b", PTO_CLOCK_VIRTUAL, "constant:3");
  assert_cost (costs, "a", PTO_CLOCK_CHIP, NULL);
  kernels = pto_costs_list_kernels (costs);
  g_assert_cmpuint (g_strv_length (kernels), ==, 2);
  g_assert_cmpstr (kernels[0], ==, "a");
  g_assert_cmpstr (kernels[1], ==, "b");
  answer = describe (costs);
  for (guint i = 0; i < 4; i++)
    {
      static const char *const clocks[] = { "cpu", "chip", "cpu", "virtual" };

      g_assert_cmpstr (json_object_get_string_member (get_kernel (answer, i), "clock"), ==,
                       clocks[i]);
    }
  line = pto_costs_to_string (costs);
  g_assert_cmpstr (line, ==, "the times of 2 kernels");
  text = pto_costs_describe (costs);
  g_assert_cmpstr (text, ==,
                   "kernel  clock    model     sizes   samples    error  time\n"
                   "a       cpu      constant      1         1    0.0 %  4.0 ns\n"
                   "b       chip     constant      1         1    0.0 %  1.0 ns\n"
                   "b       cpu      constant      1         1    0.0 %  2.0 ns\n"
                   "b       virtual  constant      1         1    0.0 %  3.0 ns\n");
}

/* Errors are those of single times, in the median, and of sizes, the worst. */
static void
test_errors (void)
{
  g_autoptr (PtoCosts) costs = pto_costs_new ();
  g_autoptr (JsonNode) answer = NULL;
  JsonObject *line;

  for (guint64 bytes = 1000; bytes <= 4000; bytes += 1000)
    for (gint i = -1; i <= 1; i++)
      add (costs, "line", PTO_CLOCK_CHIP, bytes, (double) bytes * (1 + 0.1 * i));
  answer = describe (costs);
  line = get_kernel (answer, 0);
  g_assert_cmpstr (json_object_get_string_member (line, "model"), ==, "linear");
  g_assert_cmpfloat (json_object_get_double_member (line, "base_ns"), ==, 0);
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (line, "ns_per_byte"), 1, 1e-12);
  g_assert_cmpint (json_object_get_int_member (line, "samples"), ==, 12);
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (line, "worst_error"), 0, 1e-12);
  /* A third each is off by nothing, by 0.1 of 1.1, and by 0.1 of 0.9. */
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (line, "median_error"), 0.1 / 1.1,
                                  1e-12);
}

static void
test_refused (void)
{
  g_autoptr (PtoCosts) costs = pto_costs_new ();
  static const double bad[] = { 0, -1, 1e16, G_MAXDOUBLE };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (pto_costs_add_time (costs, "k", PTO_CLOCK_CHIP, 1, bad[i], &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "kernel \"k\"");
    }
  assert_cost (costs, "k", PTO_CLOCK_CHIP, NULL);
}

/* --- the history --- */

static void
forget_all (void)
{
  g_autoptr (PtoCosts) costs = pto_costs_new ();
  g_autoptr (GError) error = NULL;

  pto_costs_forget (costs, NULL, &error);
  g_assert_no_error (error);
}

static PtoCosts *
load (void)
{
  g_autoptr (GError) error = NULL;
  PtoCosts *costs = pto_costs_new_from_history (&error);

  g_assert_no_error (error);
  return costs;
}

static void
test_history (void)
{
  g_autoptr (PtoCosts) costs = pto_costs_new ();
  g_autoptr (PtoCosts) more = pto_costs_new ();
  g_autoptr (PtoCosts) kept = NULL;
  g_autoptr (PtoCosts) left = NULL;
  g_autoptr (GError) error = NULL;

  forget_all ();
  add (costs, "k", PTO_CLOCK_CHIP, 8, 100);
  add (costs, "l", PTO_CLOCK_CPU, 8, 0.1 + 0.2);
  g_assert_true (pto_costs_keep (costs, &error));
  /* What was kept is not kept again. */
  g_assert_true (pto_costs_keep (costs, &error));
  add (more, "k", PTO_CLOCK_CHIP, 8, 300);
  g_assert_true (pto_costs_keep (more, &error));
  assert_cost (more, "k", PTO_CLOCK_CHIP, "constant:200");
  assert_cost (more, "l", PTO_CLOCK_CPU, "constant:0.3");
  kept = load ();
  assert_cost (kept, "k", PTO_CLOCK_CHIP, "constant:200");
  /* What is not kept yet stays where something is forgotten. */
  add (kept, "k", PTO_CLOCK_CHIP, 8, 700);
  g_assert_true (pto_costs_forget (kept, "k", &error));
  assert_cost (kept, "k", PTO_CLOCK_CHIP, "constant:700");
  assert_cost (kept, "l", PTO_CLOCK_CPU, "constant:0.3");
  left = load ();
  assert_cost (left, "k", PTO_CLOCK_CHIP, NULL);
  assert_cost (left, "l", PTO_CLOCK_CPU, "constant:0.3");
  g_assert_false (pto_costs_forget (left, "k", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (error->message, "no times of a kernel \"k\"");
}

/* However much is added, it does not grow without end; the last times count. */
static void
test_bounded (void)
{
  g_autoptr (PtoCosts) costs = pto_costs_new ();
  g_autoptr (JsonNode) answer = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *path = NULL;
  g_autofree char *text = NULL;
  JsonObject *kernel;
  gsize length;

  forget_all ();
  for (guint i = 0; i < 1000; i++)
    add (costs, "k", PTO_CLOCK_CHIP, 8, i < 900 ? 1 : 2);
  for (guint i = 0; i < 1000; i++)
    add (costs, "sizes", PTO_CLOCK_CHIP, i, 7);
  g_assert_true (pto_costs_keep (costs, &error));
  g_assert_no_error (error);
  assert_cost (costs, "k", PTO_CLOCK_CHIP, "constant:2");
  answer = describe (costs);
  kernel = get_kernel (answer, 0);
  g_assert_cmpint (json_object_get_int_member (kernel, "samples"), ==, 1000);
  kernel = get_kernel (answer, 1);
  g_assert_cmpuint (json_array_get_length (json_object_get_array_member (kernel, "sizes")), ==,
                    256);
  path = pto_costs_dup_history_path (&error);
  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (path, &text, &length, &error));
  g_assert_cmpuint (length, <, 16384);
}

/* Processes that keep something at the same time lose nothing. */
static void
test_at_once (void)
{
  enum
  {
    PROCESSES = 4,
    TIMES = 25
  };
  g_autoptr (PtoCosts) costs = NULL;
  g_autoptr (JsonNode) answer = NULL;

  forget_all ();
  for (guint p = 0; p < PROCESSES; p++)
    {
      pid_t child = fork ();

      g_assert_cmpint (child, >=, 0);
      if (child != 0)
        continue;
      for (guint i = 0; i < TIMES; i++)
        {
          g_autoptr (PtoCosts) own = pto_costs_new ();

          if (!pto_costs_add_time (own, "k", PTO_CLOCK_CPU, 64 * p, 5, NULL)
              || !pto_costs_keep (own, NULL))
            _exit (1);
        }
      _exit (0);
    }
  for (guint p = 0; p < PROCESSES; p++)
    {
      int status = -1;

      g_assert_cmpint (wait (&status), >, 0);
      g_assert_cmpint (status, ==, 0);
    }
  costs = load ();
  answer = describe (costs);
  g_assert_cmpint (json_object_get_int_member (get_kernel (answer, 0), "samples"), ==,
                   PROCESSES * TIMES);
  g_assert_cmpuint (
      json_array_get_length (json_object_get_array_member (get_kernel (answer, 0), "sizes")), ==,
      PROCESSES);
}

static void
test_bad_history (void)
{
  static const struct
  {
    const char *text;
    PtoError code;
    const char *part;
  } bad[] = {
    { "", PTO_ERROR_INVALID_ARGS, "it says something else" },
    { "{\"kernels\":", PTO_ERROR_INVALID_ARGS, "it is not JSON" },
    { "[]", PTO_ERROR_INVALID_ARGS, "it says something else" },
    { "{\"format\":\"libpto costs\",\"version\":2,\"kernels\":[]}", PTO_ERROR_NOT_SUPPORTED,
      "of version 2, but this libpto knows 1" },
    { "{\"format\":\"libpto costs\",\"version\":1,\"kernels\":[{}]}", PTO_ERROR_INVALID_ARGS,
      "kernel 0 of it is not as it was written" },
    { "{\"format\":\"libpto costs\",\"version\":1,\"kernels\":[{\"kernel\":\"k\",\"clock\":\"cpu\","
      "\"sizes\":[{\"bytes\":1,\"seen\":1,\"ns\":[-1]}]}]}",
      PTO_ERROR_INVALID_ARGS, "kernel 0 of it is not as it was written" },
  };
  g_autoptr (GError) local = NULL;
  g_autofree char *path = pto_costs_dup_history_path (&local);

  g_assert_no_error (local);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (PtoCosts) costs = pto_costs_new ();
      g_autoptr (GError) error = NULL;
      g_autofree char *after = NULL;

      g_assert_true (g_file_set_contents (path, bad[i].text, -1, &error));
      g_assert_null (pto_costs_new_from_history (&error));
      g_assert_error (error, PTO_ERROR, (gint) bad[i].code);
      object_test_assert_contains (error->message, path);
      object_test_assert_contains (error->message, bad[i].part);
      g_clear_error (&error);
      add (costs, "k", PTO_CLOCK_CHIP, 1, 1);
      g_assert_false (pto_costs_keep (costs, &error));
      g_assert_error (error, PTO_ERROR, (gint) bad[i].code);
      g_assert_true (g_file_get_contents (path, &after, NULL, NULL));
      g_assert_cmpstr (after, ==, bad[i].text);
    }
  forget_all ();
}

/* --- what a worker makes of it --- */

static guint64
run_fill (const char *dir, const char *of, guint64 n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = pto_worker_new (2, NULL, &error);
  g_autoptr (PtoCallable) kernel = NULL;
  g_autoptr (PtoCallable) orchestration = NULL;
  g_autofree char *source = object_test_write (dir, "orch.c", object_test_orchestration);
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoBuffer) buffer = NULL;
  g_autoptr (PtoRunStatistics) statistics = NULL;

  g_assert_no_error (error);
  kernel = object_test_kernel (dir, "fill.c", object_test_fill);
  orchestration = pto_chip_orchestration_new (source, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (pto_kernel_set_cost (PTO_KERNEL (kernel), "constant:5000", &error));
  g_assert_true (pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (orchestration), 0,
                                                    "fill", kernel, &error));
  g_assert_no_error (error);
  g_assert_true (pto_worker_set_parameter (worker, "backend", "det", &error));
  g_assert_true (pto_worker_set_parameter (worker, "costs", of, &error));
  handle = pto_worker_register (worker, orchestration, NULL, &error);
  g_assert_no_error (error);
  buffer = pto_worker_alloc_buffer (worker, n * sizeof (float), &error);
  g_assert_no_error (error);
  pto_task_args_add_scalar (args, pto_buffer_get_address (buffer));
  pto_task_args_add_scalar (args, n);
  g_assert_true (pto_worker_run_callable (worker, handle, args, NULL, NULL, &error));
  g_assert_no_error (error);
  statistics = pto_worker_dup_statistics (worker);
  return pto_run_statistics_get_virtual_ns (statistics);
}

/* A kernel's time on the virtual clock is what was measured of its name, exactly. */
static void
test_worker (void)
{
  g_autoptr (PtoCosts) costs = pto_costs_new ();
  g_autoptr (GError) error = NULL;
  char *dir = object_test_make_dir ();
  guint64 own, chip, cpu;

  forget_all ();
  add (costs, "fill", PTO_CLOCK_CHIP, 64, 10000);
  add (costs, "fill", PTO_CLOCK_CHIP, 1024, 19600);
  add (costs, "fill", PTO_CLOCK_CPU, 64, 7000);
  g_assert_true (pto_costs_keep (costs, &error));
  g_assert_no_error (error);
  own = run_fill (dir, "own", 16);
  chip = run_fill (dir, "chip", 16);
  cpu = run_fill (dir, "cpu", 16);
  g_assert_cmpuint (chip - own, ==, 5000);
  g_assert_cmpuint (cpu - own, ==, 2000);
  g_assert_cmpuint (run_fill (dir, "chip", 256) - chip, ==, 9600);
  /* Nothing is known there: it says so, and takes what it says. */
  g_test_expect_message (
      "Pto", G_LOG_LEVEL_MESSAGE,
      "*kernel \"fill\": no time of it is known on the clock \"virtual\": it takes "
      "constant:5000, as it says itself*");
  g_assert_cmpuint (run_fill (dir, "virtual", 16), ==, own);
  g_test_assert_expected_messages ();
  forget_all ();
  object_test_remove_dir (dir);
}

int
main (int argc, char **argv)
{
  char *cache = object_test_make_dir ();
  int result;

  /* Before anybody asks for it: a history of the test's own. */
  g_setenv ("XDG_CACHE_HOME", cache, TRUE);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/costs/models", test_models);
  g_test_add_func ("/pto/costs/clocks", test_clocks);
  g_test_add_func ("/pto/costs/errors", test_errors);
  g_test_add_func ("/pto/costs/refused", test_refused);
  g_test_add_func ("/pto/costs/history", test_history);
  g_test_add_func ("/pto/costs/bounded", test_bounded);
  g_test_add_func ("/pto/costs/at-once", test_at_once);
  g_test_add_func ("/pto/costs/bad-history", test_bad_history);
  g_test_add_func ("/pto/costs/worker", test_worker);
  result = g_test_run ();
  object_test_remove_dir (g_build_filename (cache, "libpto", NULL));
  object_test_remove_dir (cache);
  return result;
}
