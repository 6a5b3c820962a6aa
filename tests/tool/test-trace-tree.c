/* test-trace-tree.c: do the exports show the runs of workers inside of a level's, where they were?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Records by hand: what a level and its workers would have recorded.
 */
#include "config.h"

#include "../mutate.h"
#include "pto-trace-items.h"
#include "synthetic-trace.h"

#include <json-glib/json-glib.h>
#include <string.h>

#define SECOND G_GUINT64_CONSTANT (1000000000)

/* A level of two workers and a SUB worker. Its run began at 100 s; its first record is 1 us later.
 */
static PtoTrace *
make_level (const struct pto_trace_record *runs, guint n_runs)
{
  static const char *const names[] = { "part", "sum" };
  static const char *const rows[] = { "L2/0", "L2/1", "sub0", NULL };
  struct pto_trace_topology topology = { .n_schedulers = 1,
                                         .n_cores = 3,
                                         .level = 3,
                                         .n_workers = 2,
                                         .begin_ns = 100 * SECOND,
                                         .end_ns = 100 * SECOND + 100000,
                                         .run_ns = 100000 };
  struct pto_trace_record submits[16];
  struct pto_trace_record of_rows[3][16];
  struct pto_trace_buffer buffers[5] = { 0 };
  struct pto_trace records = { buffers, 5 };
  PtoTrace *trace;

  buffers[0].records = submits;
  for (guint c = 0; c < 3; c++)
    buffers[2 + c].records = of_rows[c];
  for (guint i = 0; i < n_runs; i++)
    {
      struct pto_trace_buffer *row = &buffers[2 + runs[i].detail];

      row->records[row->count++] = runs[i];
      if (i == 0 || runs[i].task != runs[i - 1].task)
        submits[buffers[0].count++]
            = (struct pto_trace_record){ 1000, runs[i].task, PTO_TRACE_SUBMIT, runs[i].detail == 2,
                                         0 };
    }
  trace = pto_trace_new_from_run (&records, &topology, names, 2, "level");
  pto_trace_take_names (trace, g_strdup ("L3/0"), g_strdupv ((char **) rows));
  return trace;
}

/* Of a chip of one cluster. */
static struct pto_trace_topology
chip_topology (guint64 begin_ns, guint64 end_ns, guint64 run_ns)
{
  return (struct pto_trace_topology){ .n_schedulers = 1,
                                      .n_cores = 3,
                                      .n_clusters = 1,
                                      .aic_per_cluster = 1,
                                      .aiv_per_cluster = 2,
                                      .level = 2,
                                      .begin_ns = begin_ns,
                                      .end_ns = end_ns,
                                      .run_ns = run_ns };
}

/* A chip that ran one kernel, from 100 to 300 ns of its run's 400 or more. */
static PtoTrace *
make_chip (guint64 begin_ns, guint64 end_ns, guint64 run_ns, gboolean is_virtual)
{
  static const char *const names[] = { "fill" };
  struct pto_trace_topology topology = chip_topology (begin_ns, end_ns, run_ns);
  struct pto_trace_record submit = { 50, 0, PTO_TRACE_SUBMIT, 0, PTO_CORE_TYPE_AIV };
  struct pto_trace_record run = { 100, 0, PTO_TRACE_RUN, 1, 300 };
  struct pto_trace_buffer buffers[5] = { 0 };
  struct pto_trace records = { buffers, 5 };

  topology.virtual_clock = is_virtual;
  buffers[0].records = &submit;
  buffers[3].records = &run;
  buffers[0].count = buffers[3].count = 1;
  buffers[3].dropped = 2;
  return pto_trace_new_from_run (&records, &topology, names, 1, "chip");
}

static const struct pto_trace_record three_runs[] = {
  { 11000, 0, PTO_TRACE_RUN, 0, 21000 },
  { 12000, 1, PTO_TRACE_RUN, 1, 22000 },
  { 31000, 2, PTO_TRACE_RUN, 0, 41000 },
  { 51000, 3, PTO_TRACE_RUN, 2, 52000 },
};

/* Three runs of chips: on the wall clock; on a virtual one, which took 10 times as long as it says;
 * and one whose clock says that it was not inside of its task. */
static PtoTrace *
make_tree (void)
{
  PtoTrace *trace = make_level (three_runs, G_N_ELEMENTS (three_runs));

  pto_trace_pieces_take (&trace->pieces, 0, 0,
                         make_chip (100 * SECOND + 12000, 100 * SECOND + 13000, 1000, FALSE));
  pto_trace_pieces_take (&trace->pieces, 1, 1,
                         make_chip (100 * SECOND + 13000, 100 * SECOND + 17000, 400, TRUE));
  pto_trace_pieces_take (&trace->pieces, 0, 2,
                         make_chip (100 * SECOND + 30000, 100 * SECOND + 30400, 400, FALSE));
  pto_trace_settle (trace);
  return trace;
}

/* Of slices: "process/thread name start duration". */
static GPtrArray *
list_slices (PtoTrace *trace)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autoptr (GHashTable) names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_autoptr (GHashTable) processes = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GHashTable) threads = g_hash_table_new (NULL, NULL);
  g_autofree char *text = pto_trace_to_json (trace);
  GPtrArray *slices = g_ptr_array_new_with_free_func (g_free);
  JsonArray *events;

  g_assert_true (json_parser_load_from_data (parser, text, -1, NULL));
  events = json_object_get_array_member (json_node_get_object (json_parser_get_root (parser)),
                                         "traceEvents");
  for (guint i = 0; i < json_array_get_length (events); i++)
    {
      JsonObject *event = json_array_get_object_element (events, i);
      const char *name = json_object_get_string_member_with_default (event, "name", "");
      gint64 pid = json_object_get_int_member (event, "pid");
      gint64 tid = json_object_get_int_member (event, "tid");

      if (g_str_has_suffix (name, "_name"))
        {
          const char *value = json_object_get_string_member (
              json_object_get_object_member (event, "args"), "name");

          g_assert_true (g_hash_table_insert (
              names, g_strdup_printf ("%s %" G_GINT64_FORMAT " %" G_GINT64_FORMAT, name, pid, tid),
              g_strdup (value)));
          /* What runs in one place is shown in one. */
          if (strcmp (name, "process_name") == 0)
            g_assert_true (g_hash_table_add (processes, g_strdup (value)));
          /* Two threads are two in every process. */
          else if (strcmp (name, "thread_name") == 0)
            g_assert_true (g_hash_table_add (threads, GINT_TO_POINTER ((gint) tid)));
        }
      else if (g_strcmp0 (json_object_get_string_member (event, "ph"), "X") == 0)
        {
          g_autofree char *process = g_strdup_printf ("process_name %" G_GINT64_FORMAT " 0", pid);
          g_autofree char *thread
              = g_strdup_printf ("thread_name %" G_GINT64_FORMAT " %" G_GINT64_FORMAT, pid, tid);

          g_assert_true (g_hash_table_contains (names, process));
          g_assert_true (g_hash_table_contains (names, thread));
          g_ptr_array_add (slices,
                           g_strdup_printf ("%s/%s %s %.3f %.3f",
                                            (char *) g_hash_table_lookup (names, process),
                                            (char *) g_hash_table_lookup (names, thread), name,
                                            json_object_get_double_member (event, "ts"),
                                            json_object_get_double_member (event, "dur")));
        }
    }
  return slices;
}

static void
assert_slice (GPtrArray *slices, const char *slice)
{
  guint n = 0;

  for (guint i = 0; i < slices->len; i++)
    n += strcmp (g_ptr_array_index (slices, i), slice) == 0;
  if (n != 1)
    for (guint i = 0; i < slices->len; i++)
      g_test_message ("%s", (char *) g_ptr_array_index (slices, i));
  g_assert_cmpuint (n, ==, 1);
}

static void
test_places (void)
{
  g_autoptr (PtoTrace) trace = make_tree ();
  g_autoptr (GPtrArray) slices = list_slices (trace);

  /* Time 0 is the level's first record, 1 us after its begin. */
  assert_slice (slices, "L3/0/L2/0 part 10.000 10.000");
  assert_slice (slices, "L3/0/L2/1 part 11.000 10.000");
  assert_slice (slices, "L3/0/L2/0 part 30.000 10.000");
  assert_slice (slices, "L3/0/sub0 sum 50.000 1.000");
  /* 12 us after the begin, and 100 ns into it. */
  assert_slice (slices, "L3/0/L2/0 cluster 0/AIV0 fill 11.100 0.200");
  assert_slice (slices, "L3/0/L2/0 AICPU/orchestrator fill 11.050 0.000");
  /* 400 ns in 4 us. */
  assert_slice (slices, "L3/0/L2/1 cluster 0/AIV0 fill 13.000 2.000");
  /* Before its task: moved to its begin, and as long as it was. */
  assert_slice (slices, "L3/0/L2/0 cluster 0/AIV0 fill 30.100 0.200");
  g_assert_cmpuint (slices->len, ==, 4 + 4 + 3 + 3);
}

/* A run that ends after its task by its own clock is moved to the task's end. A run that took
 * longer than its task is drawn as long as the task. */
static void
test_clocks (void)
{
  g_autoptr (PtoTrace) trace = make_level (three_runs, G_N_ELEMENTS (three_runs));
  g_autoptr (GPtrArray) slices = NULL;

  pto_trace_pieces_take (&trace->pieces, 0, 0,
                         make_chip (100 * SECOND + 20900, 100 * SECOND + 21300, 400, FALSE));
  pto_trace_pieces_take (&trace->pieces, 0, 2,
                         make_chip (100 * SECOND + 25000, 100 * SECOND + 45000, 20000, FALSE));
  pto_trace_settle (trace);
  slices = list_slices (trace);
  assert_slice (slices, "L3/0/L2/0 cluster 0/AIV0 fill 19.700 0.200");
  assert_slice (slices, "L3/0/L2/0 cluster 0/AIV0 fill 30.050 0.100");
}

/* A worker that waited in two of its runs has one row for that. */
static void
test_waits (void)
{
  g_autoptr (PtoTrace) trace = make_level (three_runs, G_N_ELEMENTS (three_runs));
  g_autoptr (GPtrArray) slices = NULL;

  for (guint i = 0; i < 2; i++)
    {
      guint64 begin = 100 * SECOND + (i == 0 ? 12000 : 32000);
      struct pto_trace_topology topology = { .n_schedulers = 1,
                                             .n_cores = 1,
                                             .n_clusters = 1,
                                             .aiv_per_cluster = 1,
                                             .level = 2,
                                             .begin_ns = begin,
                                             .end_ns = begin + 1000,
                                             .run_ns = 1000 };
      struct pto_trace_record stall
          = { 100, PTO_TASK_NONE, PTO_TRACE_STALL, PTO_STALL_HEAP << 8, 300 + 100 * i };
      struct pto_trace_buffer buffers[3] = { { .records = &stall, .count = 1 } };
      struct pto_trace records = { buffers, 3 };

      pto_trace_pieces_take (&trace->pieces, 0, 2 * i,
                             pto_trace_new_from_run (&records, &topology, NULL, 0, "chip"));
    }
  pto_trace_settle (trace);
  slices = list_slices (trace);
  assert_slice (slices, "L3/0/L2/0 AICPU/orchestrator: stalls wait for heap ring 0 11.100 0.200");
  assert_slice (slices, "L3/0/L2/0 AICPU/orchestrator: stalls wait for heap ring 0 31.100 0.300");
}

/* Three tasks, each after the one before it, on one core after the other; the last has a second
 * block where there is another core. */
static PtoTrace *
make_linked_chip (guint64 begin_ns, guint n_cores)
{
  struct pto_trace_topology topology = { .n_schedulers = 1,
                                         .n_cores = n_cores,
                                         .n_clusters = 1,
                                         .aic_per_cluster = 1,
                                         .aiv_per_cluster = n_cores - 1,
                                         .level = 2,
                                         .begin_ns = begin_ns,
                                         .end_ns = begin_ns + 1000,
                                         .run_ns = 1000 };
  struct pto_trace_record submits[5];
  struct pto_trace_record of_cores[3][6];
  struct pto_trace_buffer buffers[5] = { { .records = submits } };
  struct pto_trace records = { buffers, 2 + n_cores };

  for (guint c = 0; c < n_cores; c++)
    buffers[2 + c].records = of_cores[c];
  for (guint i = 0; i < 3; i++)
    {
      struct pto_trace_buffer *core = &buffers[2 + i % n_cores];
      guint64 start = 100 * (i + 1);

      submits[buffers[0].count++]
          = (struct pto_trace_record){ 0, i, PTO_TRACE_SUBMIT, 0, PTO_CORE_TYPE_AIC };
      if (i > 0)
        submits[buffers[0].count++]
            = (struct pto_trace_record){ 0, i, PTO_TRACE_DEP,
                                         i == 1 ? PTO_HAZARD_RAW : PTO_HAZARD_WAR, i - 1 };
      for (guint b = 0; b < (i == 2 ? MIN (n_cores, 2) : 1); b++)
        {
          core = &buffers[2 + (i - b) % n_cores];
          if (i == 2 && n_cores > 1)
            core->records[core->count++]
                = (struct pto_trace_record){ start, i, PTO_TRACE_PART, 0, b };
          core->records[core->count++]
              = (struct pto_trace_record){ start, i, PTO_TRACE_RUN, (i - b) % n_cores, start + 50 };
        }
    }
  return pto_trace_new_from_run (&records, &topology, NULL, 0, "linked");
}

/* Everything in a tree has one number: tasks and edges of one run behind those of another, and
 * cores once for each worker, of whose runs the largest counts. */
static void
test_lists (void)
{
  static const struct
  {
    const char *path, *name;
    guint64 busy;
  } cores[] = {
    { "L3/0", "L2/0", 20000 },    { "L3/0", "L2/1", 10000 },    { "L3/0", "sub0", 1000 },
    { "L3/0/L2/0", "AIC0", 200 }, { "L3/0/L2/0", "AIV0", 100 }, { "L3/0/L2/0", "AIV1", 50 },
  };
  g_autoptr (PtoTrace) trace = make_level (three_runs, G_N_ELEMENTS (three_runs));
  g_autoptr (GListModel) tasks = NULL;
  g_autoptr (GListModel) edges = NULL;
  g_autoptr (GListModel) list = NULL;

  pto_trace_pieces_take (&trace->pieces, 0, 0, make_linked_chip (100 * SECOND + 12000, 1));
  pto_trace_pieces_take (&trace->pieces, 0, 2, make_linked_chip (100 * SECOND + 32000, 3));
  pto_trace_settle (trace);
  tasks = pto_trace_list_tasks (trace);
  g_assert_cmpuint (g_list_model_get_n_items (tasks), ==, 4 + 3 + 3);
  edges = pto_trace_list_edges (trace);
  g_assert_cmpuint (g_list_model_get_n_items (edges), ==, 4);
  for (guint i = 0; i < 4; i++)
    {
      g_autoptr (PtoTraceEdge) edge = g_list_model_get_item (edges, i);
      guint first = 4 + 3 * (i / 2) + i % 2;

      g_assert_cmpint (pto_trace_edge_get_producer (edge), ==, first);
      g_assert_cmpuint (pto_trace_edge_get_consumer (edge), ==, first + 1);
      g_assert_cmpuint (pto_trace_edge_get_producer_id (edge), ==, i % 2);
      g_assert_cmpuint (pto_trace_edge_get_hazards (edge), ==,
                        i % 2 == 0 ? PTO_HAZARDS_RAW : PTO_HAZARDS_WAR);
    }
  list = pto_trace_list_cores (trace);
  g_assert_cmpuint (g_list_model_get_n_items (list), ==, G_N_ELEMENTS (cores));
  for (guint c = 0; c < G_N_ELEMENTS (cores); c++)
    {
      g_autoptr (PtoTraceCore) core = g_list_model_get_item (list, c);

      g_assert_cmpstr (pto_trace_core_get_path (core), ==, cores[c].path);
      g_assert_cmpstr (pto_trace_core_get_name (core), ==, cores[c].name);
      g_assert_cmpuint (pto_trace_core_get_busy_ns (core), ==, cores[c].busy);
    }
}

/* In the order of their numbers, whatever the order of the events. */
static void
test_row_order (void)
{
  static const char *const expected[] = { "orchestrator", "scheduler 0", "L2/0", "L2/1", "sub0" };
  g_autoptr (PtoTrace) trace = make_tree ();
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autofree char *text = pto_trace_to_json (trace);
  const char *rows[8] = { NULL };
  const char *names[8] = { NULL };
  JsonArray *events;

  g_assert_true (json_parser_load_from_data (parser, text, -1, NULL));
  events = json_object_get_array_member (json_node_get_object (json_parser_get_root (parser)),
                                         "traceEvents");
  /* The level's own threads come first, each with its name and then with its place. */
  for (guint i = 0, n = 0; n < G_N_ELEMENTS (expected); i++)
    {
      JsonObject *event = json_array_get_object_element (events, i);
      const char *what = json_object_get_string_member (event, "name");
      JsonObject *args = json_object_get_object_member (event, "args");

      if (strcmp (what, "thread_name") == 0)
        names[n] = json_object_get_string_member (args, "name");
      else if (strcmp (what, "thread_sort_index") == 0)
        {
          gint64 place = json_object_get_int_member (args, "sort_index");

          g_assert_cmpint (place, >=, 0);
          g_assert_cmpint (place, <, G_N_ELEMENTS (rows));
          g_assert_null (rows[place]);
          rows[place] = names[n++];
        }
    }
  for (guint place = 0, n = 0; place < G_N_ELEMENTS (rows); place++)
    if (rows[place] != NULL)
      g_assert_cmpstr (rows[place], ==, expected[n++]);
}

/* Of a level there is one kind of ready tasks, whatever a submit says of cores. */
static void
test_ready (void)
{
  struct pto_trace_topology topology = { .n_schedulers = 1,
                                         .n_cores = 1,
                                         .level = 3,
                                         .n_workers = 1,
                                         .begin_ns = 100 * SECOND,
                                         .end_ns = 100 * SECOND + 100000,
                                         .run_ns = 100000 };
  struct pto_trace_record of_level[]
      = { { 1000, 0, PTO_TRACE_SUBMIT, 0, PTO_CORE_TYPE_AIV }, { 2000, 0, PTO_TRACE_READY, 0, 0 } };
  struct pto_trace_record dispatch = { 5000, 0, PTO_TRACE_DISPATCH, 0, 0 };
  struct pto_trace_record run = { 6000, 0, PTO_TRACE_RUN, 0, 9000 };
  struct pto_trace_buffer buffers[3] = { 0 };
  struct pto_trace records = { buffers, 3 };
  static const char *const steps[]
      = { "\"ts\":1.000,\"name\":\"ready tasks\",\"args\":{\"tasks\":1}",
          "\"ts\":4.000,\"name\":\"ready tasks\",\"args\":{\"tasks\":0}" };
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree char *json = NULL;

  buffers[0].records = of_level;
  buffers[0].count = G_N_ELEMENTS (of_level);
  buffers[1].records = &dispatch;
  buffers[2].records = &run;
  buffers[1].count = buffers[2].count = 1;
  trace = pto_trace_new_from_run (&records, &topology, NULL, 0, "level");
  pto_trace_take_names (trace, g_strdup ("L3/0"),
                        g_strdupv ((char **) (const char *[]){ "L2/0", NULL }));
  json = pto_trace_to_json (trace);
  for (guint i = 0; i < G_N_ELEMENTS (steps); i++)
    g_assert_nonnull (strstr (json, steps[i]));
}

static void
test_numbers (void)
{
  g_autoptr (PtoTrace) trace = make_tree ();
  g_autofree char *summary = pto_trace_summarize (trace);

  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 4);
  g_assert_cmpuint (pto_trace_get_recorded (trace), ==, 8 + 3 * 2);
  g_assert_cmpuint (pto_trace_get_dropped (trace), ==, 3 * 2);
  g_assert_cmpuint (pto_trace_get_elapsed_ns (trace), ==, 51000);
  g_assert_cmpfloat_with_epsilon (pto_trace_get_core_utilization (trace, 0), 20.0 / 51, 1e-9);
  g_assert_nonnull (strstr (summary, "\n2 workers busy 29 %\n1 SUB worker busy 2 %\n"));
  g_assert_nonnull (strstr (summary, "\nL2/0: 2 runs, 2 tasks inside, cores busy "));
  g_assert_nonnull (strstr (summary, "\nL2/1: 1 run, 1 task inside, cores busy "));
  g_assert_null (strstr (summary, "own:"));
}

/* A chip that ran nothing was busy for no part of no time. */
static void
test_nothing_inside (void)
{
  static const char *const names[] = { "fill" };
  struct pto_trace_topology topology
      = chip_topology (100 * SECOND + 12000, 100 * SECOND + 13000, 1000);
  struct pto_trace_buffer buffers[5] = { 0 };
  struct pto_trace records = { buffers, 5 };
  g_autoptr (PtoTrace) trace = make_level (three_runs, G_N_ELEMENTS (three_runs));
  PtoTrace *chip = pto_trace_new_from_run (&records, &topology, names, 1, "chip");
  g_autofree char *summary = NULL;

  for (guint type = 0; type < 2; type++)
    g_assert_cmpfloat (pto_trace_get_type_utilization (chip, type), ==, 0);
  pto_trace_pieces_take (&trace->pieces, 0, 0, chip);
  pto_trace_settle (trace);
  summary = pto_trace_summarize (trace);
  g_assert_nonnull (strstr (summary, "\nL2/0: 1 run, 0 tasks inside, cores busy 0 %\n"));
}

/* Whatever is different in a tree is in its digest: who ran a piece, for which task, and what it
 * was. */
static void
test_digest (void)
{
  static const struct
  {
    guint child;
    guint64 task, end_ns;
    const char *rows[4];
  } pieces[] = {
    { 0, 0, 300, { "a", "bc", "d" } }, { 0, 0, 300, { "a", "bc", "d" } },
    { 1, 0, 300, { "a", "bc", "d" } }, { 0, 1, 300, { "a", "bc", "d" } },
    { 0, 0, 400, { "a", "bc", "d" } }, { 0, 0, 300, { "ab", "c", "d" } },
  };
  PtoTrace *traces[G_N_ELEMENTS (pieces)];

  for (guint i = 0; i < G_N_ELEMENTS (pieces); i++)
    {
      struct pto_trace_record run = { 100, 0, PTO_TRACE_RUN, 1, pieces[i].end_ns };
      struct pto_trace_topology topology
          = { .n_schedulers = 1, .n_cores = 1, .n_clusters = 1, .aiv_per_cluster = 1, .level = 2 };
      struct pto_trace_buffer buffers[3] = { 0 };
      struct pto_trace records = { buffers, 3 };

      buffers[2].records = &run;
      buffers[2].count = 1;
      traces[i] = make_level (three_runs, G_N_ELEMENTS (three_runs));
      g_strfreev (traces[i]->rows);
      traces[i]->rows = g_strdupv ((char **) (gpointer) pieces[i].rows);
      pto_trace_pieces_take (&traces[i]->pieces, pieces[i].child, pieces[i].task,
                             pto_trace_new_from_run (&records, &topology, NULL, 0, "chip"));
      pto_trace_settle (traces[i]);
    }
  for (guint i = 0; i < G_N_ELEMENTS (pieces); i++)
    for (guint k = 0; k < i; k++)
      g_assert_cmpint (
          g_strcmp0 (pto_trace_get_sha256 (traces[i]), pto_trace_get_sha256 (traces[k])) == 0, ==,
          i == 1 && k == 0);
  for (guint i = 0; i < G_N_ELEMENTS (pieces); i++)
    g_assert_finalize_object (traces[i]);
}

static void
test_missing (void)
{
  g_autoptr (PtoTrace) trace = make_level (three_runs, G_N_ELEMENTS (three_runs));
  g_autofree char *summary = NULL;

  pto_trace_pieces_take (&trace->pieces, 0, 0, make_chip (1, 2, 400, FALSE));
  trace->pieces.n_left_out = 1;
  trace->pieces.records_left_out = 77;
  pto_trace_settle (trace);
  summary = pto_trace_summarize (trace);
  g_assert_nonnull (strstr (summary, "\n1 run of workers left out, with 77 records: set "
                                     "trace-records to more\n"));
  g_assert_nonnull (strstr (summary, "\n1 run of workers without a record of its own: "));
  g_assert_cmpuint (pto_trace_get_dropped (trace), ==, 2 + 77);
}

/* One task of three members: the one that ends last is what others wait for. */
static void
test_group (void)
{
  static const struct pto_trace_record runs[] = { { 2000, 0, PTO_TRACE_RUN, 0, 5000 },
                                                  { 2000, 0, PTO_TRACE_RUN, 1, 9000 },
                                                  { 2000, 0, PTO_TRACE_RUN, 2, 4000 } };
  g_autoptr (PtoTrace) trace = make_level (runs, G_N_ELEMENTS (runs));
  g_autoptr (GPtrArray) slices = NULL;
  g_autofree char *summary = NULL;
  g_autofree guint64 *path = NULL;
  gsize n;

  pto_trace_pieces_take (&trace->pieces, 0, 0,
                         make_chip (100 * SECOND + 2000, 100 * SECOND + 2400, 400, FALSE));
  pto_trace_pieces_take (&trace->pieces, 1, 0,
                         make_chip (100 * SECOND + 8000, 100 * SECOND + 8400, 400, FALSE));
  slices = list_slices (trace);
  assert_slice (slices, "L3/0/L2/0 part 1.000 3.000");
  assert_slice (slices, "L3/0/L2/1 part 1.000 7.000");
  assert_slice (slices, "L3/0/sub0 part 1.000 2.000");
  assert_slice (slices, "L3/0/L2/0 cluster 0/AIV0 fill 1.100 0.200");
  assert_slice (slices, "L3/0/L2/1 cluster 0/AIV0 fill 7.100 0.200");
  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 1);
  g_assert_cmpuint (pto_trace_get_critical_path_ns (trace), ==, 7000);
  path = pto_trace_dup_critical_path (trace, &n);
  g_assert_cmpuint (n, ==, 1);
  summary = pto_trace_summarize (trace);
  g_assert_nonnull (strstr (summary, " 3 runs "));
}

/* --- as bytes --- */

static guint8 *
pack (PtoTrace *trace, gsize *size)
{
  guint8 *bytes;

  *size = pto_trace_get_packed_size (trace);
  g_assert_cmpuint (*size % 8, ==, 0);
  bytes = g_malloc (*size);
  pto_trace_pack (trace, bytes);
  return bytes;
}

static void
test_packed (void)
{
  g_autoptr (PtoTrace) trace = make_tree ();
  g_autoptr (PtoTrace) copy = NULL;
  g_autofree char *json[2] = { NULL };
  g_autofree char *svg[2] = { NULL };
  g_autofree guint8 *bytes = NULL;
  gsize size;

  bytes = pack (trace, &size);
  copy = pto_trace_new_from_packed (bytes, size);
  g_assert_nonnull (copy);
  g_assert_cmpstr (pto_trace_get_sha256 (copy), ==, pto_trace_get_sha256 (trace));
  g_assert_cmpuint (pto_trace_get_dropped (copy), ==, pto_trace_get_dropped (trace));
  json[0] = pto_trace_to_json (trace);
  json[1] = pto_trace_to_json (copy);
  g_assert_cmpstr (json[0], ==, json[1]);
  svg[0] = pto_trace_to_svg (trace);
  svg[1] = pto_trace_to_svg (copy);
  g_assert_cmpstr (svg[0], ==, svg[1]);
  g_free (json[1]);
  g_free (svg[1]);
  json[1] = svg[1] = NULL;
}

/* Whatever a child has written there: a trace that can be looked at, or none. */
static void
test_wild_bytes (void)
{
  g_autoptr (PtoTrace) trace = make_tree ();
  g_autofree guint8 *bytes = NULL;
  g_autofree guint8 *wild = NULL;
  GRand *random = g_rand_new_with_seed (g_test_rand_int () & 0x7fffffff);
  guint n = mutate_get_n (), n_none = 0;
  gsize size;

  bytes = pack (trace, &size);
  for (gsize left = 0; left < size; left++)
    {
      g_autofree guint8 *part = g_memdup2 (bytes, left);

      g_assert_null (pto_trace_new_from_packed (part, left));
    }
  for (guint round = 0; round < n; round++)
    {
      g_autoptr (PtoTrace) read = NULL;
      gsize left;

      g_free (wild);
      wild = g_memdup2 (bytes, size);
      left = mutate (random, wild, size);
      /* The copy has no room behind it, so that a sanitizer sees a read past its end. */
      wild = g_realloc (wild, MAX (left, 1));
      read = pto_trace_new_from_packed (wild, left);
      n_none += read == NULL;
      if (read != NULL && round % 10 == 0)
        {
          g_autofree char *json = pto_trace_to_json (read);
          g_autofree char *svg = pto_trace_to_svg (read);
          g_autofree char *summary = pto_trace_summarize (read);
        }
    }
  g_assert_cmpuint (n_none, >, n / 10);
  g_rand_free (random);
}

/* As deep as a tree of workers can be, and not deeper: nobody's stack is used up. */
static void
test_depth (void)
{
  PtoTrace *trace = make_level (three_runs, G_N_ELEMENTS (three_runs));

  for (guint depth = 1; depth <= 18; depth++)
    {
      g_autofree guint8 *bytes = NULL;
      g_autoptr (PtoTrace) copy = NULL;
      PtoTrace *around = make_level (three_runs, G_N_ELEMENTS (three_runs));
      PtoTracePieces pieces;
      gsize size;

      pto_trace_pieces_take (&around->pieces, 0, 0, trace);
      trace = around;
      bytes = pack (trace, &size);
      copy = pto_trace_new_from_packed (bytes, size);
      g_assert_cmpint (copy != NULL, ==, depth <= 16);
      g_free (bytes);
      /* What is inside of a trace is one deeper than that. */
      size = pto_trace_pieces_get_packed_size (&trace->pieces);
      bytes = g_malloc (size);
      pto_trace_pieces_pack (&trace->pieces, bytes);
      pto_trace_pieces_init (&pieces);
      g_assert_cmpint (pto_trace_pieces_unpack (&pieces, 0, bytes, size), ==, depth <= 16);
      pto_trace_pieces_clear (&pieces);
    }
  g_object_unref (trace);
}

/* --- size --- */

/* Where the rectangle with this title begins, and where it ends. */
static void
find_bar (const char *svg, const char *title, double *top, double *bottom)
{
  g_autofree char *escaped = g_regex_escape_string (title, -1);
  g_autofree char *pattern = g_strdup_printf (
      "<rect [^>]*\\by=\"([0-9.]+)\" [^>]*\\bheight=\"([0-9.]+)\"[^>]*><title>%s", escaped);
  g_autoptr (GRegex) regex = g_regex_new (pattern, 0, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  g_autofree char *y = NULL;
  g_autofree char *height = NULL;

  g_assert_true (g_regex_match (regex, svg, 0, &match));
  y = g_match_info_fetch (match, 1);
  height = g_match_info_fetch (match, 2);
  *top = g_ascii_strtod (y, NULL);
  *bottom = *top + g_ascii_strtod (height, NULL);
}

static void
test_picture (void)
{
  g_autoptr (PtoTrace) trace = make_tree ();
  g_autofree char *svg = pto_trace_to_svg (trace);
  g_autoptr (GRegex) regex = g_regex_new (
      "<rect class=\"band\"[^>]* y=\"([0-9.]+)\"[^>]* height=\"([0-9.]+)\"", 0, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  g_autofree char *band_top = NULL;
  g_autofree char *band_height = NULL;
  double worker_bottom, inner_top, inner_bottom, next_top, bottom, band_bottom;

  for (guint i = 0; i < 2; i++)
    g_assert_nonnull (strstr (svg, i == 0 ? ">L2/0</text>" : ">L2/1</text>"));
  g_assert_nonnull (strstr (svg, "<title>task fill 0 on AIV0\n13.000 to 15.000 \302\265s, of its "
                                 "virtual time 0.050 to 0.250</title>"));
  g_assert_nonnull (strstr (svg, "<title>task fill 0 on AIV0\n11.100 to 11.300 \302\265s</title>"));
  g_assert_nonnull (strstr (svg, "chips with a virtual clock: stretched"));
  g_assert_nonnull (strstr (svg, ">sum  \303\2271<"));
  g_assert_nonnull (strstr (svg, ">fill  \303\2273<"));
  g_assert_null (strstr (svg, "rows more"));
  /* What is inside of a worker is close to its row, and apart from the next one's. */
  find_bar (svg, "task part 0", &inner_top, &worker_bottom);
  find_bar (svg, "task fill 0 on AIV0\n11.100", &inner_top, &inner_bottom);
  find_bar (svg, "task part 1", &next_top, &bottom);
  g_assert_cmpfloat (inner_top, >=, worker_bottom);
  g_assert_cmpfloat (next_top - inner_bottom, >=, inner_top - worker_bottom + 2);
  /* The band of the workers ends below what is inside of the last one, before the SUB workers. */
  g_regex_match (regex, svg, 0, &match);
  g_assert_true (g_match_info_next (match, NULL));
  band_top = g_match_info_fetch (match, 1);
  band_height = g_match_info_fetch (match, 2);
  band_bottom = g_ascii_strtod (band_top, NULL) + g_ascii_strtod (band_height, NULL);
  find_bar (svg, "task fill 0 on AIV0\n13.000", &inner_top, &inner_bottom);
  find_bar (svg, "task sum 3", &next_top, &bottom);
  g_assert_cmpfloat (band_bottom, >=, inner_bottom);
  g_assert_cmpfloat (band_bottom, <=, next_top);
}

/* A chip whose cores run one task after another, in the level's time from 12 us on. */
static PtoTrace *
make_busy_chip (const struct pto_trace_record *runs, const guint32 *kernels, guint n,
                const char *const names[3])
{
  struct pto_trace_topology topology
      = chip_topology (100 * SECOND + 12000, 100 * SECOND + 20000, 8000);
  g_autofree struct pto_trace_record *submits = g_new0 (struct pto_trace_record, n);
  g_autofree struct pto_trace_record *of_cores = g_new0 (struct pto_trace_record, 3 * n);
  struct pto_trace_buffer buffers[5] = { 0 };
  struct pto_trace records = { buffers, 5 };

  for (guint c = 0; c < 3; c++)
    buffers[2 + c].records = of_cores + c * n;
  for (guint i = 0; i < n; i++)
    {
      struct pto_trace_buffer *core = &buffers[2 + runs[i].detail];

      submits[i]
          = (struct pto_trace_record){ 0, i, PTO_TRACE_SUBMIT, kernels[i], PTO_CORE_TYPE_AIV };
      core->records[core->count++] = runs[i];
    }
  buffers[0].records = submits;
  buffers[0].count = n;
  return pto_trace_new_from_run (&records, &topology, names, 3, "busy");
}

/* Nanoseconds that a unit of the picture is: the level's third task begins so long after its first.
 */
static double
find_scale (const char *svg)
{
  g_autoptr (GRegex) regex
      = g_regex_new ("<rect [^>]*\\bx=\"([0-9.]+)\"[^>]*><title>task part ([02])\\b", 0, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  double x[3] = { 0 };

  g_assert_true (g_regex_match (regex, svg, 0, &match));
  for (; g_match_info_matches (match); g_match_info_next (match, NULL))
    {
      g_autofree char *at = g_match_info_fetch (match, 1);
      g_autofree char *task = g_match_info_fetch (match, 2);

      x[*task - '0'] = g_ascii_strtod (at, NULL);
    }
  return 20000 / (x[2] - x[0]);
}

/* A bar of several, on a shade of this height: as high as what they took is a share of its width,
 * and of each kernel as much as that took. styles: what each is drawn with, as far as that is
 * known. */
static void
check_joined (const char *rects, const guint64 took[3], const guint64 weights[3], double width_ns,
              double height, char *const styles[3])
{
  g_autoptr (GRegex) regex
      = g_regex_new ("<rect class=\"(k[0-9]+)\"[^>]*\\bheight=\"([0-9.]+)\"/>", 0, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  double total = (double) (took[0] + took[1] + took[2]);
  double filled = CLAMP (total / width_ns * height, 1, height);
  double sum = 0;

  g_regex_match (regex, rects, 0, &match);
  for (; g_match_info_matches (match); g_match_info_next (match, NULL))
    {
      g_autofree char *style = g_match_info_fetch (match, 1);
      g_autofree char *part = g_match_info_fetch (match, 2);

      sum += g_ascii_strtod (part, NULL);
      for (guint k = 0; k < 3; k++)
        if (g_strcmp0 (style, styles[k]) == 0)
          g_assert_cmpfloat_with_epsilon (
              g_ascii_strtod (part, NULL),
              filled * (double) weights[k] / (double) (weights[0] + weights[1] + weights[2]), 0.02);
    }
  g_assert_cmpfloat_with_epsilon (sum, filled, 0.03);
}

/* What is narrower than a unit and at most two of them apart is one bar, of at most four. */
static void
test_inner_bars (void)
{
  static const char *const names[] = { "one", "two", "three" };
  enum
  {
    N = 40
  };
  guint n_joined = 0;

  for (guint round = 0; round < 30; round++)
    {
      g_autoptr (PtoTrace) trace = make_level (three_runs, G_N_ELEMENTS (three_runs));
      struct pto_trace_record runs[N];
      guint32 kernels[N];
      g_autoptr (GRegex) regex = g_regex_new (
          "<(?:rect class=\"(k[0-9]+)\"[^>]*\\bwidth=\"([0-9.]+)\"[^>]*|g)><title>([^<]*) on AIV0\n"
          "([0-9.]+ to [0-9.]+ \302\265s)([^<]*)</title>"
          "(?:<rect class=\"joined\"[^>]*\\bwidth=\"([0-9.]+)\" height=\"([0-9.]+)\"/>(.*)</g>)?",
          0, 0, NULL);
      g_autoptr (GMatchInfo) match = NULL;
      g_autofree char *svg = NULL;
      char *styles[3] = { NULL };
      guint64 now = 0;
      double unit;

      for (guint i = 0; i < N; i++)
        {
          guint64 start = now + (guint64) g_test_rand_int_range (0, 60);

          now = start + (guint64) g_test_rand_int_range (0, 100);
          runs[i] = (struct pto_trace_record){ start, i, PTO_TRACE_RUN, 1, now };
          kernels[i] = (guint32) g_test_rand_int_range (0, 3);
        }
      pto_trace_pieces_take (&trace->pieces, 0, 0, make_busy_chip (runs, kernels, N, names));
      pto_trace_settle (trace);
      svg = pto_trace_to_svg (trace);
      unit = find_scale (svg);
      g_regex_match (regex, svg, 0, &match);
      for (guint first = 0, n; first < N; first += n)
        {
          guint longest = first;
          guint64 begin = runs[first].time, end = runs[first].extra;
          guint64 took[3] = { 0 };
          guint64 weights[3] = { 0 }; /* what ran for no time, is there, too */
          g_autofree char *title = NULL;
          g_autofree char *times = NULL;
          g_autofree char *style = NULL;
          g_autofree char *width = NULL;
          g_autofree char *said = NULL;
          g_autofree char *said_times = NULL;
          g_autofree char *said_share = NULL;

          n = 1;
          if ((double) (end - begin) < unit)
            for (; first + n < N; n++)
              {
                const struct pto_trace_record *next = &runs[first + n];

                if ((double) (next->extra - next->time) >= unit
                    || (double) (next->time - end) > 2 * unit
                    || (double) (next->extra - begin) > 4 * unit)
                  break;
                end = next->extra;
                if (next->extra - next->time > runs[longest].extra - runs[longest].time)
                  longest = first + n;
              }
          for (guint i = first; i < first + n; i++)
            {
              took[kernels[i]] += runs[i].extra - runs[i].time;
              weights[kernels[i]] = MAX (took[kernels[i]], 1);
            }
          title = n == 1 ? g_strdup_printf ("task %s %u", names[kernels[first]], first)
                         : g_strdup_printf ("%u tasks, among them %s", n, names[kernels[longest]]);
          /* The level's time 0 is 1 us after its begin. */
          times = g_strdup_printf ("%.3f to %.3f \302\265s", (double) (11000 + begin) / 1000,
                                   (double) (11000 + end) / 1000);
          g_assert_true (g_match_info_matches (match));
          style = g_match_info_fetch (match, 1);
          width = g_match_info_fetch (match, n == 1 ? 2 : 6);
          said = g_match_info_fetch (match, 3);
          said_times = g_match_info_fetch (match, 4);
          said_share = g_match_info_fetch (match, 5);
          /* Half a unit can still be seen. */
          g_assert_cmpfloat_with_epsilon (g_ascii_strtod (width, NULL),
                                          MAX ((double) (end - begin) / unit, 0.5), 0.02);
          g_assert_cmpstr (said, ==, title);
          g_assert_cmpstr (said_times, ==, times);
          if (n == 1)
            {
              g_assert_cmpstr (said_share, ==, "");
              if (styles[kernels[first]] == NULL)
                styles[kernels[first]] = g_strdup (style);
              g_assert_cmpstr (style, ==, styles[kernels[first]]);
            }
          else
            {
              g_autofree char *height = g_match_info_fetch (match, 7);
              g_autofree char *rects = g_match_info_fetch (match, 8);
              g_autofree char *share = g_strdup_printf (
                  ", %.0f %% of it",
                  100.0 * (double) (took[0] + took[1] + took[2]) / (double) (end - begin));

              if (end > begin)
                g_assert_cmpstr (said_share, ==, share);
              check_joined (rects, took, weights, MAX ((double) (end - begin), 0.5 * unit),
                            g_ascii_strtod (height, NULL), styles);
              n_joined++;
            }
          g_match_info_next (match, NULL);
        }
      g_assert_false (g_match_info_matches (match));
      for (guint k = 0; k < G_N_ELEMENTS (styles); k++)
        if (styles[k] != NULL)
          g_assert_cmpstr (styles[k], !=, styles[(k + 1) % G_N_ELEMENTS (styles)]);
      for (guint k = 0; k < G_N_ELEMENTS (styles); k++)
        g_free (styles[k]);
    }
  g_assert_cmpuint (n_joined, >, 30);
}

/* Each core inside has a row, one below the other; a kernel of the level's name has its colour. */
static void
test_inner_rows (void)
{
  static const char *const names[3] = { "sum", "other", "part" };
  static const struct pto_trace_record runs[] = { { 0, 0, PTO_TRACE_RUN, 0, 3000 },
                                                  { 0, 1, PTO_TRACE_RUN, 1, 4000 },
                                                  { 0, 2, PTO_TRACE_RUN, 2, 5000 } };
  static const guint32 kernels[] = { 0, 1, 2 };
  static const char *const titles[]
      = { "task sum 0 on AIC0", "task other 1 on AIV0", "task part 2 on AIV1", "task sum 3 on sub0",
          "task part 0 on L2/0" };
  g_autoptr (PtoTrace) trace = make_level (three_runs, G_N_ELEMENTS (three_runs));
  g_autofree char *svg = NULL;
  char *styles[G_N_ELEMENTS (titles)];
  double top[3], bottom[3];

  pto_trace_pieces_take (&trace->pieces, 0, 0, make_busy_chip (runs, kernels, 3, names));
  pto_trace_settle (trace);
  svg = pto_trace_to_svg (trace);
  for (guint i = 0; i < 3; i++)
    {
      find_bar (svg, titles[i], &top[i], &bottom[i]);
      if (i > 0)
        g_assert_cmpfloat (top[i], >=, bottom[i - 1]);
    }
  g_assert_cmpfloat_with_epsilon (top[2] - top[1], top[1] - top[0], 0.01);
  for (guint i = 0; i < G_N_ELEMENTS (titles); i++)
    {
      g_autofree char *pattern = g_strdup_printf ("class=\"(k[0-9]+)\"[^>]*><title>%s", titles[i]);
      g_autoptr (GRegex) regex = g_regex_new (pattern, 0, 0, NULL);
      g_autoptr (GMatchInfo) match = NULL;

      g_assert_true (g_regex_match (regex, svg, 0, &match));
      styles[i] = g_match_info_fetch (match, 1);
    }
  g_assert_cmpstr (styles[0], ==, styles[3]);
  g_assert_cmpstr (styles[2], ==, styles[4]);
  g_assert_cmpstr (styles[0], !=, styles[2]);
  g_assert_cmpstr (styles[1], !=, styles[0]);
  g_assert_cmpstr (styles[1], !=, styles[2]);
  for (guint i = 0; i < G_N_ELEMENTS (styles); i++)
    g_free (styles[i]);
  g_assert_nonnull (strstr (svg, ">sum  \303\2272<"));
  g_assert_nonnull (strstr (svg, ">part  \303\2274<"));
}

/* A worker that was made anew with fewer cores: each run has the rows that it had cores for. */
static void
test_different_chips (void)
{
  g_autoptr (PtoTrace) trace = make_level (three_runs, G_N_ELEMENTS (three_runs));
  struct pto_trace_topology topology = { .n_schedulers = 1,
                                         .n_cores = 1,
                                         .n_clusters = 1,
                                         .aic_per_cluster = 1,
                                         .level = 2,
                                         .begin_ns = 100 * SECOND + 32000,
                                         .end_ns = 100 * SECOND + 32400,
                                         .run_ns = 400 };
  struct pto_trace_record run = { 100, 0, PTO_TRACE_RUN, 0, 300 };
  struct pto_trace_buffer buffers[3] = { 0 };
  struct pto_trace records = { buffers, 3 };
  g_autofree char *svg = NULL;
  g_autofree char *summary = NULL;
  PtoTrace *small;
  guint n_rows = 0;

  buffers[2].records = &run;
  buffers[2].count = 1;
  pto_trace_pieces_take (&trace->pieces, 0, 0,
                         make_chip (100 * SECOND + 12000, 100 * SECOND + 12400, 400, FALSE));
  small = pto_trace_new_from_run (&records, &topology, NULL, 0, "small");
  g_assert_cmpfloat (pto_trace_get_type_utilization (small, PTO_CORE_TYPE_AIC), ==, 1);
  g_assert_cmpfloat (pto_trace_get_type_utilization (small, PTO_CORE_TYPE_AIV), ==, 0);
  pto_trace_pieces_take (&trace->pieces, 0, 2, small);
  pto_trace_settle (trace);
  svg = pto_trace_to_svg (trace);
  for (const char *at = svg; (at = strstr (at, "font-size=\"7\"")) != NULL; at++)
    n_rows++;
  /* AIV0 of the one, AIC of the other. */
  g_assert_cmpuint (n_rows, ==, 2);
  g_assert_nonnull (strstr (svg, ">AIV0<"));
  g_assert_nonnull (strstr (svg, ">AIC0<"));
  /* 200 ns on one of three cores in 250 ns, and 200 in 200. */
  summary = pto_trace_summarize (trace);
  g_assert_nonnull (strstr (summary, "\nL2/0: 2 runs, 2 tasks inside, cores busy 59 %\n"));
}

/* What no document may hold is replaced, also at the end of the first plane. */
static void
test_characters (void)
{
  g_autoptr (PtoTrace) trace = make_level (three_runs, G_N_ELEMENTS (three_runs));
  g_autofree char *svg = NULL;

  g_free (trace->rows[0]);
  trace->rows[0] = g_strdup ("<\001\357\277\276\357\277\277>");
  svg = pto_trace_to_svg (trace);
  g_assert_nonnull (strstr (svg, ">&lt;\357\277\275\357\277\275\357\277\275&gt;</text>"));
  g_assert_null (strstr (svg, "\357\277\276"));
  g_assert_null (strstr (svg, "\357\277\277"));
}

/* As many children as there can be, each with a chip of 72 cores and 4 000 tasks: still a picture.
 */
static void
test_large_picture (void)
{
  enum
  {
    N = 256,
    CHUNKS = 300
  };
  g_autoptr (SyntheticGraph) graph = synthetic_graph_new_attention (CHUNKS, 3);
  struct pto_trace_topology inner, topology = { .n_schedulers = 1,
                                                .n_cores = N,
                                                .level = 3,
                                                .n_workers = N,
                                                .begin_ns = 100 * SECOND,
                                                .end_ns = 101 * SECOND,
                                                .run_ns = SECOND };
  g_autofree struct pto_trace_record *runs = g_new0 (struct pto_trace_record, N);
  g_autofree struct pto_trace_buffer *buffers = NULL;
  struct pto_trace records = { .n_buffers = 2 + N };
  struct pto_trace *of_chip;
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree char *svg = NULL;
  char **rows = g_new0 (char *, N + 1);
  g_autofree char *note = NULL;
  const PtoTraceAnalysis *first;
  guint n_small = 0, n_used = 0;

  buffers = g_new0 (struct pto_trace_buffer, 2 + N);
  records.buffers = buffers;
  for (guint c = 0; c < N; c++)
    {
      runs[c] = (struct pto_trace_record){ 1000, c, PTO_TRACE_RUN, c, SECOND };
      buffers[2 + c].records = &runs[c];
      buffers[2 + c].count = 1;
      rows[c] = g_strdup_printf ("L2/%u", c);
    }
  trace = pto_trace_new_from_run (&records, &topology, NULL, 0, NULL);
  pto_trace_take_names (trace, g_strdup ("L3/0"), rows);
  synthetic_topology (&inner, 24);
  of_chip = synthetic_graph_run (graph, &inner, 4096);
  inner.begin_ns = 100 * SECOND;
  inner.end_ns = 101 * SECOND;
  inner.run_ns = 4000000;
  for (guint c = 0; c < 8; c++)
    pto_trace_pieces_take (
        &trace->pieces, c, c,
        pto_trace_new_from_run (of_chip, &inner, synthetic_attention_kernels, 5, "attention"));
  synthetic_records_free (of_chip);
  pto_trace_settle (trace);
  svg = pto_trace_to_svg (trace);
  g_assert_cmpuint (strlen (svg), <, 4000000);
  for (const char *at = svg; (at = strstr (at, "font-size=\"7\"")) != NULL; at++)
    n_small++;
  g_assert_cmpuint (n_small, ==, 240);
  first = pto_trace_get_analysis (
      ((const PtoTracePiece *) g_ptr_array_index (trace->pieces.list, 0))->trace);
  for (guint c = 0; c < first->n_cores; c++)
    n_used += first->n_core_runs[c] > 0;
  g_assert_cmpuint (8 * n_used, >, 240);
  note = g_strdup_printf ("%u rows more inside of workers are in the JSON", 8 * n_used - 240);
  g_assert_nonnull (strstr (svg, note));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/trace-tree/places", test_places);
  g_test_add_func ("/pto/trace-tree/clocks", test_clocks);
  g_test_add_func ("/pto/trace-tree/waits", test_waits);
  g_test_add_func ("/pto/trace-tree/lists", test_lists);
  g_test_add_func ("/pto/trace-tree/row-order", test_row_order);
  g_test_add_func ("/pto/trace-tree/ready", test_ready);
  g_test_add_func ("/pto/trace-tree/numbers", test_numbers);
  g_test_add_func ("/pto/trace-tree/digest", test_digest);
  g_test_add_func ("/pto/trace-tree/missing", test_missing);
  g_test_add_func ("/pto/trace-tree/group", test_group);
  g_test_add_func ("/pto/trace-tree/nothing-inside", test_nothing_inside);
  g_test_add_func ("/pto/trace-tree/packed", test_packed);
  g_test_add_func ("/pto/trace-tree/depth", test_depth);
  g_test_add_func ("/pto/trace-tree/wild-bytes", test_wild_bytes);
  g_test_add_func ("/pto/trace-tree/picture", test_picture);
  g_test_add_func ("/pto/trace-tree/picture/inner-bars", test_inner_bars);
  g_test_add_func ("/pto/trace-tree/picture/inner-rows", test_inner_rows);
  g_test_add_func ("/pto/trace-tree/picture/different-chips", test_different_chips);
  g_test_add_func ("/pto/trace-tree/picture/characters", test_characters);
  g_test_add_func ("/pto/trace-tree/picture/large", test_large_picture);
  return g_test_run ();
}
