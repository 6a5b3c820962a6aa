/* test-trace-topics.c: does a trace answer with what its records say, also from a file?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Five tasks on an AIC and two AIVs. D and E keep both AIVs; C waits for one of them, B for what A
 * writes; the submitter waits for a ring before A. The first record is at 50: all times are told
 * from there on.
 */
#include "config.h"

#include "../../pto/trace/model/trace.h"
#include "../../pto/trace/answer/trace-answers.h"
#include "pto-trace-topics.h"

#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

enum
{
  A,
  B,
  C,
  D,
  E
};

#define SUBMIT(time, task, kernel, type, line)                                  \
  {                                                                             \
    time, task, PTO_TRACE_SUBMIT, kernel, (guint64) line << 32 | 1 << 16 | type \
  }

#define SCOPE(time, depth, line, begins)                                                 \
  {                                                                                      \
    time, PTO_TASK_NONE, PTO_TRACE_SCOPE, depth, (guint64) line << 32 | 1 << 16 | begins \
  }

static struct pto_trace_record orchestrator[] = {
  { 50, PTO_TASK_NONE, PTO_TRACE_SCOPE, 0, 1 },
  SUBMIT (50, D, 1, PTO_CORE_TYPE_AIV, 20),
  { 50, D, PTO_TRACE_READY, 0, 0 },
  SUBMIT (60, E, 1, PTO_CORE_TYPE_AIV, 21),
  { 60, E, PTO_TRACE_READY, 0, 0 },
  SCOPE (60, 1, 5, 1),
  SCOPE (60, 1, 5, 0),
  SCOPE (60, 1, 9, 1),
  { 80, PTO_TASK_NONE, PTO_TRACE_STALL, PTO_STALL_HEAP << 8, 95 },
  { 0x1000, A, PTO_TRACE_ARG, 0, 2 << 16 | PTO_DTYPE_FLOAT32 << 8 | PTO_PARAM_OUTPUT },
  { G_GUINT64_CONSTANT (8) << 32 | 4, G_GUINT64_CONSTANT (1) << 32 | 8, PTO_TRACE_SHAPE, 0, 0 },
  SUBMIT (100, A, 0, PTO_CORE_TYPE_AIC, 10),
  { 100, A, PTO_TRACE_READY, 0, 0 },
  { 7, B, PTO_TRACE_ARG, 0, PTO_PARAM_SCALAR },
  { 0x1000 + 64, B, PTO_TRACE_ARG, 1, 2 << 16 | PTO_DTYPE_FLOAT32 << 8 | PTO_PARAM_INPUT },
  { 1, 8, PTO_TRACE_SHAPE_WIDE, 0, 0 },
  { 6, 1, PTO_TRACE_SHAPE_WIDE, 1, 0 },
  SUBMIT (200, B, 1, 2 << 28 | PTO_CORE_TYPE_AIV, 11), /* of priority 2 */
  { 200, B, PTO_TRACE_DEP, PTO_HAZARD_RAW, A },
  { 210, 4096, PTO_TRACE_OCCUPANCY, 1, G_GUINT64_CONSTANT (3) << 32 | 5 },
  SCOPE (300, 1, 9, 0),
  SUBMIT (300, C, 1, PTO_CORE_TYPE_AIV, 12),
  { 300, C, PTO_TRACE_READY, 0, 0 },
  { 1900, D, PTO_TRACE_RETIRE, 0, 0 },
  { 1900, 0, PTO_TRACE_OCCUPANCY, 1, 0 },
};
static struct pto_trace_record scheduler[] = {
  { 60, D, PTO_TRACE_DISPATCH, 1, 1 },   { 65, E, PTO_TRACE_DISPATCH, 2, 1 },
  { 120, A, PTO_TRACE_DISPATCH, 0, 1 },  { 905, D, PTO_TRACE_COMPLETE, 1, 0 },
  { 910, C, PTO_TRACE_DISPATCH, 1, 2 },  { 1005, E, PTO_TRACE_COMPLETE, 2, 0 },
  { 1105, C, PTO_TRACE_COMPLETE, 1, 0 }, { 1200, A, PTO_TRACE_COMPLETE, 0, 0 },
  { 1210, B, PTO_TRACE_READY, 1, A },    { 1220, B, PTO_TRACE_DISPATCH, 2, 2 },
  { 1740, B, PTO_TRACE_COMPLETE, 2, 0 },
};
static struct pto_trace_record aic0[] = { { 150, A, PTO_TRACE_RUN, 0, 1150 } };
static struct pto_trace_record aiv0[]
    = { { 70, D, PTO_TRACE_RUN, 1, 900 }, { 920, C, PTO_TRACE_RUN, 1, 1100 } };
static struct pto_trace_record aiv1[]
    = { { 75, E, PTO_TRACE_RUN, 2, 1000 }, { 1230, B, PTO_TRACE_RUN, 2, 1730 } };

static PtoTrace *
make_trace (void)
{
  static const char *const names[] = { "produce", "consume" };
  struct pto_trace_topology topology = { .n_schedulers = 1,
                                         .n_cores = 3,
                                         .n_clusters = 1,
                                         .aic_per_cluster = 1,
                                         .aiv_per_cluster = 2,
                                         .recorded = PTO_TRACE_LEVEL_FULL,
                                         .virtual_clock = true,
                                         .run_ns = 2000 };
  struct pto_trace_buffer buffers[]
      = { { .records = orchestrator, .count = G_N_ELEMENTS (orchestrator) },
          { .records = scheduler, .count = G_N_ELEMENTS (scheduler), .dropped = 3 },
          { .records = aic0, .count = G_N_ELEMENTS (aic0) },
          { .records = aiv0, .count = G_N_ELEMENTS (aiv0) },
          { .records = aiv1, .count = G_N_ELEMENTS (aiv1) } };
  struct pto_trace records = { buffers, G_N_ELEMENTS (buffers),
                               .files = { .names = { (char *) "/src/dir/graph.c" }, .n = 1 } };

  return pto_trace_new_from_run (&records, &topology, names, 2, "five tasks");
}

static JsonObject *
parse (char *text)
{
  g_autoptr (GError) error = NULL;
  JsonNode *root = json_from_string (text, &error);
  JsonObject *object;

  g_assert_no_error (error);
  object = json_object_ref (json_node_get_object (root));
  json_node_unref (root);
  g_free (text);
  return object;
}

static void
assert_waits (JsonObject *object, gint64 submitter, gint64 room, gint64 data, gint64 core,
              gint64 scheduler_ns)
{
  JsonObject *waits = json_object_get_object_member (object, "waits");

  g_assert_cmpint (json_object_get_int_member (waits, "submitter_ns"), ==, submitter);
  g_assert_cmpint (json_object_get_int_member (waits, "room_ns"), ==, room);
  g_assert_cmpint (json_object_get_int_member (waits, "data_ns"), ==, data);
  g_assert_cmpint (json_object_get_int_member (waits, "core_ns"), ==, core);
  g_assert_cmpint (json_object_get_int_member (waits, "scheduler_ns"), ==, scheduler_ns);
}

static void
test_why (void)
{
  g_autoptr (PtoTrace) trace = make_trace ();
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonObject) b = parse (pto_trace_explain_task_json (trace, B, NULL));
  g_autoptr (JsonObject) c = parse (pto_trace_explain_task_json (trace, C, NULL));
  JsonArray *producers = json_object_get_array_member (b, "producers");
  JsonObject *a;
  g_autofree char *text = NULL;

  assert_waits (b, 0, 0, 950, 0, 80);
  /* Both AIVs are taken from 65 on, the first is free again at 900. */
  assert_waits (c, 0, 0, 0, 600, 20);
  g_assert_cmpstr (json_object_get_string_member (b, "submitted_at"), ==, "/src/dir/graph.c:11");
  g_assert_cmpstr (json_object_get_string_member (b, "core"), ==, "AIV1");
  g_assert_cmpint (json_object_get_int_member (b, "start_ns"), ==, 1180);
  g_assert_false (json_object_has_member (b, "retire_ns"));
  g_assert_cmpuint (json_array_get_length (json_object_get_array_member (c, "producers")), ==, 0);
  g_assert_cmpuint (json_array_get_length (producers), ==, 1);
  g_assert_cmpint (json_object_get_int_member (b, "priority"), ==, 2);
  a = json_array_get_object_element (producers, 0);
  g_assert_cmpstr (json_object_get_string_member (a, "task"), ==, "0");
  g_assert_false (json_object_has_member (a, "priority"));
  g_assert_true (json_object_get_boolean_member (a, "last"));
  g_assert_cmpstr (json_array_get_string_element (json_object_get_array_member (a, "hazards"), 0),
                   ==, "RAW");
  g_assert_cmpint (json_object_get_int_member (a, "argument"), ==, 1);
  g_assert_cmpint (json_object_get_int_member (a, "producer_argument"), ==, 0);
  g_assert_cmpint (json_object_get_int_member (a, "from"), ==, 0);
  /* From element 16 to 22 of 32. */
  g_assert_cmpint (json_object_get_int_member (a, "bytes"), ==, 24);

  text = pto_trace_explain_task (trace, B, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (
      text, ==,
      "task 1 (consume on AIV1, priority 2), submitted at graph.c:11\n"
      "started at 1.180 us, 1.030 us after its submit:\n"
      "       0.950 us for data\n"
      "       0.080 us for the scheduler\n"
      "made ready by task 0 (produce on AIC0), over at 1.100 us: RAW, its argument 0 "
      "and 1 of this task share 24 bytes\n"
      "3 records were dropped, and what they said is not in this: set trace-records to more\n");
  g_assert_null (pto_trace_explain_task (trace, 77, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
  g_assert_cmpstr (
      error->message, ==,
      "task 77: no such task is in the trace, which has 5; some may have been dropped");
}

/* What was not recorded is not there, and never told as something else. */
static void
test_levels (void)
{
  g_autoptr (PtoTrace) schedule = make_trace ();
  g_autoptr (PtoTrace) runs = make_trace ();
  g_autoptr (JsonObject) b = NULL, none = NULL, scopes = NULL;
  g_autofree char *text = NULL;

  schedule->topology.recorded = PTO_TRACE_LEVEL_SCHEDULE;
  runs->topology.recorded = PTO_TRACE_LEVEL_RUNS;
  b = parse (pto_trace_explain_task_json (schedule, B, NULL));
  none = parse (pto_trace_explain_task_json (runs, B, NULL));
  scopes = parse (pto_trace_describe_json (schedule, PTO_TRACE_TOPIC_SCOPES));
  assert_waits (b, 0, 0, 1010, 0, 20);
  g_assert_false (json_object_has_member (none, "waits"));
  g_assert_cmpuint (json_array_get_length (json_object_get_array_member (scopes, "rings")), ==, 0);
  text = pto_trace_describe (runs, PTO_TRACE_TOPIC_OVERHEAD);
  g_assert_nonnull (strstr (text, "\nwaits were not recorded, nor dependencies: "));
}

static void
test_critical_path (void)
{
  g_autoptr (PtoTrace) trace = make_trace ();
  g_autoptr (JsonObject) object
      = parse (pto_trace_describe_json (trace, PTO_TRACE_TOPIC_CRITICAL_PATH));
  JsonArray *path = json_object_get_array_member (object, "path");
  g_autofree char *text = pto_trace_describe (trace, PTO_TRACE_TOPIC_CRITICAL_PATH);

  g_assert_cmpuint (json_array_get_length (path), ==, 2);
  assert_waits (json_array_get_object_element (path, 0), 35, 15, 0, 0, 50);
  assert_waits (json_array_get_object_element (path, 1), 0, 0, 0, 0, 80);
  g_assert_cmpstr (
      json_object_get_string_member (json_array_get_object_element (path, 0), "because"), ==,
      "submitter");
  g_assert_cmpstr (
      json_object_get_string_member (json_array_get_object_element (path, 1), "because"), ==,
      "data");
  /* All of it: from the first record to the end of the last kernel. */
  assert_waits (object, 35, 15, 0, 0, 130);
  g_assert_cmpint (json_object_get_int_member (object, "kernels_ns"), ==, 1500);
  g_assert_cmpint (json_object_get_int_member (object, "elapsed_ns"), ==, 35 + 15 + 130 + 1500);
  g_assert_cmpstr (
      text, ==,
      "         0.035 us until it was submitted\n"
      "         0.015 us while the submitter waited for room\n"
      "         0.050 us for the scheduler\n"
      "       1.000 us task 0 (produce on AIC0), submitted at graph.c:10\n"
      "         0.080 us for the scheduler\n"
      "       0.500 us task 1 (consume on AIV1, priority 2), submitted at graph.c:11\n"
      "2 tasks until 1.680 us, of which\n"
      "       1.500 us in kernels\n"
      "       0.035 us until it was submitted\n"
      "       0.015 us while the submitter waited for room\n"
      "       0.130 us for the scheduler\n"
      "3 records were dropped, and what they said is not in this: set trace-records to more\n");
}

static void
test_overhead (void)
{
  g_autoptr (PtoTrace) trace = make_trace ();
  g_autoptr (JsonObject) object = parse (pto_trace_describe_json (trace, PTO_TRACE_TOPIC_OVERHEAD));
  JsonArray *kernels = json_object_get_array_member (object, "kernels");
  JsonObject *consume = json_array_get_object_element (kernels, 0);
  g_autofree char *text = pto_trace_describe (trace, PTO_TRACE_TOPIC_OVERHEAD);

  g_assert_cmpuint (json_array_get_length (kernels), ==, 2);
  g_assert_cmpstr (json_object_get_string_member (consume, "kernel"), ==, "consume");
  g_assert_cmpint (json_object_get_int_member (consume, "runs"), ==, 4);
  g_assert_cmpint (json_object_get_int_member (consume, "busy_ns"), ==, 500 + 180 + 830 + 925);
  /* B, C, D and E. */
  assert_waits (consume, 0, 0, 950, 600, 80 + 20 + 20 + 15);
  assert_waits (json_array_get_object_element (kernels, 1), 0, 0, 0, 0, 50);
  assert_waits (object, 0, 0, 950, 600, 185);
  g_assert_cmpint (json_object_get_int_member (object, "busy_ns"), ==, 3435);
  g_assert_cmpstr (
      text, ==,
      "                runs     in kernels       for data     for a core  for scheduler\n"
      "  consume          4          2.435          0.950          0.600          0.135\n"
      "  produce          1          1.000          0.000          0.000          0.050\n"
      "  all                         3.435          0.950          0.600          0.185\n"
      "us in all, from the submit of each task on\n"
      "3 records were dropped, and what they said is not in this: set trace-records to more\n");
}

static void
assert_core (JsonArray *cores, guint index, const char *name, gint64 busy, gint64 scheduler_ns,
             gint64 data, gint64 submitter, gint64 nothing)
{
  JsonObject *core = json_array_get_object_element (cores, index);

  g_assert_cmpstr (json_object_get_string_member (core, "core"), ==, name);
  g_assert_cmpint (json_object_get_int_member (core, "busy_ns"), ==, busy);
  g_assert_cmpint (json_object_get_int_member (core, "stall_ns"), ==, 0);
  g_assert_cmpint (json_object_get_int_member (core, "scheduler_ns"), ==, scheduler_ns);
  g_assert_cmpint (json_object_get_int_member (core, "data_ns"), ==, data);
  g_assert_cmpint (json_object_get_int_member (core, "submitter_ns"), ==, submitter);
  g_assert_cmpint (json_object_get_int_member (core, "nothing_ns"), ==, nothing);
}

static void
test_counters (void)
{
  g_autoptr (PtoTrace) trace = make_trace ();
  g_autoptr (PtoTrace) runs = make_trace ();
  g_autoptr (JsonObject) object = parse (pto_trace_describe_json (trace, PTO_TRACE_TOPIC_COUNTERS));
  g_autoptr (JsonObject) memory = parse (pto_trace_count_json (trace, PTO_TRACE_COUNT_MEMORY));
  g_autoptr (JsonObject) pipes = parse (pto_trace_count_json (trace, PTO_TRACE_COUNT_PIPES));
  g_autoptr (JsonObject) low = NULL;
  JsonArray *cores = json_object_get_array_member (object, "cores");
  JsonArray *tasks = json_object_get_array_member (object, "tasks");
  JsonObject *b = json_array_get_object_element (tasks, 3);
  JsonObject *core;
  g_autofree char *text = pto_trace_describe (trace, PTO_TRACE_TOPIC_COUNTERS);

  g_assert_cmpint (json_object_get_int_member (object, "elapsed_ns"), ==, 1680);
  g_assert_cmpuint (json_array_get_length (cores), ==, 3);
  assert_core (cores, 0, "AIC0", 1000, 50, 0, 50, 580);
  /* While both are idle each has its half of what one task waits for. */
  assert_core (cores, 1, "AIV0", 1010, 15 + 20 + 10, 55, 5, 565);
  assert_core (cores, 2, "AIV1", 1425, 15 + 5 + 10, 155, 5, 65);
  g_assert_cmpuint (json_array_get_length (tasks), ==, 5);
  g_assert_cmpstr (json_object_get_string_member (b, "task"), ==, "1");
  g_assert_cmpint (json_object_get_int_member (b, "data_ns"), ==, 950);
  g_assert_cmpint (json_object_get_int_member (b, "scheduler_ns"), ==, 80);
  g_assert_cmpint (json_object_get_int_member (b, "bytes_in"), ==, 24);
  g_assert_cmpint (json_object_get_int_member (b, "bytes_out"), ==, 0);
  core = json_array_get_object_element (cores, 0);
  g_assert_cmpint (json_object_get_int_member (core, "bytes_out"), ==, 128);

  /* One event only. */
  core = json_array_get_object_element (json_object_get_array_member (memory, "cores"), 2);
  g_assert_cmpint (json_object_get_int_member (core, "bytes_in"), ==, 24);
  g_assert_false (json_object_has_member (core, "busy_ns"));
  core = json_array_get_object_element (json_object_get_array_member (pipes, "cores"), 2);
  g_assert_cmpint (json_object_get_int_member (core, "busy_ns"), ==, 1425);
  g_assert_false (json_object_has_member (core, "bytes_in"));
  g_assert_false (json_object_has_member (core, "data_ns"));

  /* What was not recorded is not there. */
  runs->topology.recorded = PTO_TRACE_LEVEL_RUNS;
  low = parse (pto_trace_describe_json (runs, PTO_TRACE_TOPIC_COUNTERS));
  core = json_array_get_object_element (json_object_get_array_member (low, "cores"), 1);
  g_assert_cmpint (json_object_get_int_member (core, "idle_ns"), ==, 670);
  g_assert_false (json_object_has_member (core, "data_ns"));
  g_assert_false (json_object_has_member (core, "bytes_in"));
  g_assert_cmpstr (
      text, ==,
      "  kernel           runs          busy       stalled      for data    for a core for scheduler"
      "      bytes in     bytes out\n"
      "  consume             4         2.435         0.000         0.950         0.600         0.135"
      "            24             0\n"
      "  produce             1         1.000         0.000         0.000         0.000         0.050"
      "             0           128\n"
      "  core          runs          busy       stalled      for data for scheduler for submitter"
      "  no task left      bytes in     bytes out\n"
      "  AIC0             1         1.000         0.000         0.000         0.050         0.050"
      "         0.580             0           128\n"
      "  AIV0             2         1.010         0.000         0.055         0.045         0.005"
      "         0.565             0             0\n"
      "  AIV1             2         1.425         0.000         0.155         0.030         0.005"
      "         0.065            24             0\n"
      "times in us; a kernel is stalled while it stands at a barrier or a pipe\n"
      "3 records were dropped, and what they said is not in this: set trace-records to more\n");
}

static void
test_summary (void)
{
  g_autoptr (PtoTrace) trace = make_trace ();
  g_autoptr (JsonObject) object = parse (pto_trace_describe_json (trace, PTO_TRACE_TOPIC_SUMMARY));
  g_autofree char *text = pto_trace_describe (trace, PTO_TRACE_TOPIC_SUMMARY);
  g_autofree char *summary = pto_trace_summarize (trace);
  JsonObject *aiv
      = json_array_get_object_element (json_object_get_array_member (object, "cores"), 1);

  g_assert_cmpstr (text, ==, summary);
  g_assert_cmpint (json_object_get_int_member (object, "tasks"), ==, 5);
  g_assert_cmpint (json_object_get_int_member (object, "edges"), ==, 1);
  g_assert_cmpint (json_object_get_int_member (object, "trace_level"), ==, 4);
  g_assert_cmpint (json_object_get_int_member (object, "elapsed_ns"), ==, 1680);
  g_assert_cmpint (json_object_get_int_member (object, "dropped"), ==, 3);
  g_assert_cmpint (json_object_get_int_member (object, "recorded"), ==,
                   G_N_ELEMENTS (orchestrator) + G_N_ELEMENTS (scheduler) + 5);
  g_assert_cmpstr (json_object_get_string_member (aiv, "type"), ==, "AIV");
  g_assert_cmpint (json_object_get_int_member (aiv, "n"), ==, 2);
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (aiv, "utilization"),
                                  (500 + 180 + 830 + 925) / (2 * 1680.0), 1e-9);
}

/* A scope that begins when one before it ends, and a task that is submitted then. */
static void
test_scopes (void)
{
  g_autoptr (PtoTrace) trace = make_trace ();
  g_autofree char *text = pto_trace_describe (trace, PTO_TRACE_TOPIC_SCOPES);
  g_autoptr (JsonObject) object = parse (pto_trace_describe_json (trace, PTO_TRACE_TOPIC_SCOPES));
  JsonObject *ring
      = json_array_get_object_element (json_object_get_array_member (object, "rings"), 0);

  g_assert_cmpint (json_object_get_int_member (ring, "tasks"), ==, 5);
  g_assert_cmpint (json_object_get_int_member (ring, "task_window"), ==, 8);
  g_assert_cmpint (json_object_get_int_member (object, "map_nodes"), ==, 5);
  g_assert_cmpstr (
      text, ==,
      "  opened at depth    times  submits held tasks   heap bytes dep entries\n"
      "  the run       0        1        3          5            0           0\n"
      "  graph.c:5     1        1        0          0            0           0\n"
      "  graph.c:9     1        1        2          0         4096           3\n"
      "ring 0: 5 tasks at most: task-window=8; 0 bytes of heap; 0 entries of the dependency pool: "
      "dep-pool=16 "
      "would do\n"
      "5 nodes of the TensorMap at most\n"
      "3 records were dropped, and what they said is not in this: set trace-records to more\n");
}

static void
test_deps (void)
{
  g_autoptr (PtoTrace) trace = make_trace ();
  g_autofree char *text = pto_trace_describe (trace, PTO_TRACE_TOPIC_DEPS);
  g_autoptr (JsonObject) object = parse (pto_trace_describe_json (trace, PTO_TRACE_TOPIC_DEPS));
  JsonArray *edges = json_object_get_array_member (object, "edges");

  g_assert_cmpuint (json_array_get_length (json_object_get_array_member (object, "tasks")), ==, 5);
  g_assert_cmpuint (json_array_get_length (edges), ==, 1);
  g_assert_cmpint (json_object_get_int_member (json_array_get_object_element (edges, 0), "bytes"),
                   ==, 24);
  g_assert_cmpstr (text, ==,
                   "digraph \"five tasks\" {\n"
                   "  rankdir=LR;\n"
                   "  node [shape=box, fontname=\"sans-serif\"];\n"
                   "  subgraph cluster_1 {\n"
                   "    color=gray;\n"
                   "    t3 [label=\"consume 3\"];\n"
                   "    t4 [label=\"consume 4\"];\n"
                   "    t2 [label=\"consume 2\"];\n"
                   "  }\n"
                   "  subgraph cluster_3 {\n"
                   "    color=gray;\n"
                   "    t0 [label=\"produce 0\", color=red, penwidth=2];\n"
                   "    t1 [label=\"consume 1\", color=red, penwidth=2];\n"
                   "  }\n"
                   "  t0 -> t1 [label=\"RAW\"];\n"
                   "}\n");
}

static void
test_occupancy (void)
{
  g_autoptr (PtoTrace) trace = make_trace ();
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  const PtoTraceStep *heap = (const PtoTraceStep *) (void *) analysis->heap[1]->data;

  g_assert_cmpuint (analysis->heap[0]->len, ==, 0);
  g_assert_cmpuint (analysis->heap[1]->len, ==, 2);
  g_assert_cmpuint (heap[0].time, ==, 160);
  g_assert_cmpuint (heap[0].value, ==, 4096);
  g_assert_cmpuint (heap[1].time, ==, 1850);
  g_assert_cmpuint (heap[1].value, ==, 0);
  g_assert_cmpuint (g_array_index (analysis->edges[1], PtoTraceStep, 0).value, ==, 3);
  g_assert_cmpuint (g_array_index (analysis->nodes, PtoTraceStep, 0).value, ==, 5);
}

/* --- as a file --- */

static void
assert_refused (const char *path, const char *bytes, gsize size, GIOErrorEnum code,
                const char *words)
{
  g_autoptr (GError) error = NULL;

  g_file_set_contents (path, bytes, (gssize) size, &error);
  g_assert_no_error (error);
  g_assert_null (pto_trace_new_from_file (path, &error));
  g_assert_error (error, G_IO_ERROR, (gint) code);
  g_assert_true (g_str_has_prefix (error->message, path));
  if (strstr (error->message, words) == NULL)
    g_error ("\"%s\" does not say \"%s\"", error->message, words);
}

static void
test_file (void)
{
  g_autoptr (PtoTrace) trace = make_trace ();
  g_autoptr (PtoTrace) again = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = g_dir_make_tmp ("pto-trace-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (directory, "run.ptotrace", NULL);
  g_autofree char *bytes = NULL, *json[2] = { NULL }, *why[2] = { NULL };
  gsize size;

  g_assert_true (pto_trace_save (trace, path, &error));
  g_assert_no_error (error);
  again = pto_trace_new_from_file (path, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (pto_trace_get_sha256 (again), ==, pto_trace_get_sha256 (trace));
  json[0] = pto_trace_to_json (trace);
  json[1] = pto_trace_to_json (again);
  g_assert_cmpstr (json[1], ==, json[0]);
  why[0] = pto_trace_explain_task (trace, B, NULL);
  why[1] = pto_trace_explain_task (again, B, NULL);
  g_assert_cmpstr (why[1], ==, why[0]);
  g_free (json[1]);
  g_free (why[1]);
  json[1] = why[1] = NULL;

  g_file_get_contents (path, &bytes, &size, &error);
  g_assert_no_error (error);
  g_assert_cmpint (strncmp (bytes, "PTOTRACE\2\0\0\0\40\0\0\0", 16), ==, 0);
  for (gsize n = 0; n < size; n += n < 40 ? 1 : 97)
    assert_refused (path, bytes, n, G_IO_ERROR_INVALID_DATA, n < 8 ? "not a trace" : "cut off");
  assert_refused (path, "hello", 5, G_IO_ERROR_INVALID_DATA, "not a trace");
  for (gsize at = 32; at < size; at += 31)
    {
      bytes[at] ^= 1;
      assert_refused (path, bytes, size, G_IO_ERROR_INVALID_DATA, "garbled");
      bytes[at] ^= 1;
    }
  bytes[8] = 3;
  assert_refused (path, bytes, size, G_IO_ERROR_NOT_SUPPORTED, "later version");
  bytes[8] = 0;
  assert_refused (path, bytes, size, G_IO_ERROR_INVALID_DATA, "garbled");
  /* Files of version 1 are read on. */
  bytes[8] = 1;
  g_assert_true (g_file_set_contents (path, bytes, (gssize) size, &error));
  g_clear_object (&again);
  again = pto_trace_new_from_file (path, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (pto_trace_get_sha256 (again), ==, pto_trace_get_sha256 (trace));
  g_unlink (path);
  g_assert_null (pto_trace_new_from_file (path, &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  g_rmdir (directory);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/trace-topics/why", test_why);
  g_test_add_func ("/pto/trace-topics/levels", test_levels);
  g_test_add_func ("/pto/trace-topics/critical-path", test_critical_path);
  g_test_add_func ("/pto/trace-topics/overhead", test_overhead);
  g_test_add_func ("/pto/trace-topics/counters", test_counters);
  g_test_add_func ("/pto/trace-topics/summary", test_summary);
  g_test_add_func ("/pto/trace-topics/scopes", test_scopes);
  g_test_add_func ("/pto/trace-topics/deps", test_deps);
  g_test_add_func ("/pto/trace-topics/occupancy", test_occupancy);
  g_test_add_func ("/pto/trace-topics/file", test_file);
  return g_test_run ();
}
