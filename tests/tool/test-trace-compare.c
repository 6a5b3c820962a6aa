/* test-trace-compare.c: does a comparison of two runs say what differs, and add up?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Records by hand: an AIC and two AIVs, tasks on given cores at given times.
 */
#include "config.h"

#include "../../pto/trace/answer/compare.h"
#include "pto-trace-topics.h"

#include <json-glib/json-glib.h>
#include <string.h>

enum
{
  PRODUCE,
  CONSUME,
  FILTER,
  NO_DEP = -1
};

static const char *const names[] = { "produce", "consume", "filter" };

/* A task's times; what it waits for, by position. */
typedef struct
{
  guint kernel;
  guint core;
  guint64 submit;
  guint64 ready;
  guint64 dispatch;
  guint64 start;
  guint64 end;
  int dep;
} Task;

static const Task before_tasks[] = {
  { PRODUCE, 0, 0, 0, 10, 20, 120, NO_DEP },
  { CONSUME, 1, 5, 130, 140, 150, 250, 0 },
  { CONSUME, 2, 10, 10, 15, 20, 70, NO_DEP },
};
/* The producer takes longer, there is a filter between, and the submitter waits for room. */
static const Task after_tasks[] = {
  { PRODUCE, 0, 0, 0, 10, 20, 170, NO_DEP },
  { FILTER, 1, 4, 180, 190, 200, 230, 0 },
  { CONSUME, 1, 8, 240, 245, 250, 340, 1 },
  { CONSUME, 2, 20, 20, 25, 30, 80, NO_DEP },
};

static void
add (GArray *records, guint64 time, guint64 task, guint32 kind, guint32 detail, guint64 extra)
{
  struct pto_trace_record record = { time, task, kind, detail, extra };

  g_array_append_val (records, record);
}

static PtoTrace *
make_trace (const Task *tasks, guint n_tasks, gboolean stalls, const char *title)
{
  struct pto_trace_topology topology = { .n_schedulers = 1,
                                         .n_cores = 3,
                                         .n_clusters = 1,
                                         .aic_per_cluster = 1,
                                         .aiv_per_cluster = 2,
                                         .recorded = PTO_TRACE_LEVEL_FULL,
                                         .virtual_clock = true };
  struct pto_trace_buffer buffers[5] = { 0 };
  struct pto_trace records = { buffers, G_N_ELEMENTS (buffers),
                               .files = { .names = { (char *) "/src/graph.c" }, .n = 1 } };
  GArray *lists[G_N_ELEMENTS (buffers)];
  PtoTrace *trace;

  for (guint b = 0; b < G_N_ELEMENTS (buffers); b++)
    lists[b] = g_array_new (FALSE, FALSE, sizeof (struct pto_trace_record));
  for (guint i = 0; i < n_tasks; i++)
    {
      const Task *task = &tasks[i];

      if (stalls && i + 1 == n_tasks)
        add (lists[0], 10, PTO_TASK_NONE, PTO_TRACE_STALL, PTO_STALL_HEAP << 8, 15);
      add (lists[0], task->submit, i, PTO_TRACE_SUBMIT, task->kernel,
           (guint64) (10 + i) << 32 | 1 << 16 | (task->core > 0));
      if (task->dep != NO_DEP)
        add (lists[0], task->submit, i, PTO_TRACE_DEP, PTO_HAZARD_RAW, (guint64) task->dep);
      add (lists[1], task->ready, i, PTO_TRACE_READY, task->dep != NO_DEP,
           task->dep != NO_DEP ? (guint64) task->dep : 0);
      add (lists[1], task->dispatch, i, PTO_TRACE_DISPATCH, task->core, i);
      add (lists[2 + task->core], task->start, i, PTO_TRACE_RUN, task->core, task->end);
    }
  for (guint b = 0; b < G_N_ELEMENTS (buffers); b++)
    {
      buffers[b].records = (struct pto_trace_record *) (void *) lists[b]->data;
      buffers[b].count = lists[b]->len;
    }
  trace = pto_trace_new_from_run (&records, &topology, names, G_N_ELEMENTS (names), title);
  for (guint b = 0; b < G_N_ELEMENTS (buffers); b++)
    g_array_unref (lists[b]);
  return trace;
}

static PtoTrace *
make_before (void)
{
  return make_trace (before_tasks, G_N_ELEMENTS (before_tasks), FALSE, "first");
}

static PtoTrace *
make_after (void)
{
  return make_trace (after_tasks, G_N_ELEMENTS (after_tasks), TRUE, "second");
}

static JsonObject *
compare (PtoTrace *before, PtoTrace *after)
{
  g_autofree char *text = pto_trace_compare_json (before, after);
  g_autoptr (GError) error = NULL;
  JsonNode *root = json_from_string (text, &error);
  JsonObject *object;

  g_assert_no_error (error);
  object = json_object_ref (json_node_get_object (root));
  json_node_unref (root);
  return object;
}

static void
assert_both (JsonObject *object, const char *name, gint64 before, gint64 after)
{
  JsonObject *both = json_object_get_object_member (object, name);

  g_assert_cmpint (json_object_get_int_member (both, "before"), ==, before);
  g_assert_cmpint (json_object_get_int_member (both, "after"), ==, after);
  g_assert_cmpint (json_object_get_int_member (both, "change"), ==, after - before);
}

static gint64
get_change (JsonObject *object, const char *name)
{
  return json_object_get_int_member (json_object_get_object_member (object, name), "change");
}

static JsonObject *
find_kernel (JsonArray *kernels, const char *name, gint64 level)
{
  for (guint i = 0; i < json_array_get_length (kernels); i++)
    {
      JsonObject *kernel = json_array_get_object_element (kernels, i);

      if (strcmp (json_object_get_string_member (kernel, "kernel"), name) == 0
          && (level == 0 || json_object_get_int_member (kernel, "level") == level))
        return kernel;
    }
  g_error ("no kernel %s", name);
}

static void
test_kernels (void)
{
  g_autoptr (PtoTrace) before = make_before ();
  g_autoptr (PtoTrace) after = make_after ();
  g_autoptr (JsonObject) object = compare (before, after);
  JsonArray *kernels = json_object_get_array_member (object, "kernels");
  JsonObject *consume = find_kernel (kernels, "consume", 2);
  JsonObject *filter = find_kernel (kernels, "filter", 2);
  JsonObject *waits = json_object_get_object_member (consume, "waits");

  g_assert_false (json_object_get_boolean_member (object, "same"));
  assert_both (object, "elapsed_ns", 250, 340);
  assert_both (object, "tasks", 3, 4);
  assert_both (object, "edges", 1, 2);
  g_assert_cmpuint (json_array_get_length (kernels), ==, 3);
  assert_both (consume, "tasks", 2, 2);
  assert_both (consume, "median_ns", 75, 70);
  assert_both (consume, "busy_ns", 150, 140);
  assert_both (filter, "runs", 0, 1);
  assert_both (filter, "median_ns", 0, 30);
  assert_both (find_kernel (kernels, "produce", 2), "busy_ns", 100, 150);
  /* Since the submit of the task before. */
  assert_both (waits, "submitter_ns", 5 + 5, 4 + 7);
  assert_both (waits, "room_ns", 0, 5);
  assert_both (waits, "data_ns", 115, 222);
  assert_both (waits, "core_ns", 0, 0);
  assert_both (waits, "scheduler_ns", 30 + 10, 20 + 10);
}

/* The path of each is as long as its run, so the changes are the difference. */
static void
test_path (void)
{
  g_autoptr (PtoTrace) before = make_before ();
  g_autoptr (PtoTrace) after = make_after ();
  g_autoptr (JsonObject) object = compare (before, after);
  JsonObject *path = json_object_get_object_member (object, "critical_path");
  JsonArray *kernels = json_object_get_array_member (path, "kernels");
  gint64 sum = 0;

  assert_both (path, "tasks", 2, 3);
  assert_both (find_kernel (kernels, "produce", 0), "kernels_ns", 100, 150);
  assert_both (find_kernel (kernels, "filter", 0), "kernels_ns", 0, 30);
  assert_both (find_kernel (kernels, "consume", 0), "kernels_ns", 100, 90);
  assert_both (json_object_get_object_member (find_kernel (kernels, "filter", 0), "waits"),
               "scheduler_ns", 0, 30);
  assert_both (json_object_get_object_member (find_kernel (kernels, "consume", 0), "waits"),
               "scheduler_ns", 30, 20);
  for (guint i = 0; i < json_array_get_length (kernels); i++)
    sum += json_object_get_int_member (json_array_get_object_element (kernels, i), "change_ns");
  g_assert_cmpint (sum, ==, 340 - 250);
  g_assert_cmpint (json_object_get_int_member (path, "change_ns"), ==, 340 - 250);
}

static void
test_tasks (void)
{
  g_autoptr (PtoTrace) before = make_before ();
  g_autoptr (PtoTrace) after = make_after ();
  g_autoptr (JsonObject) object = compare (before, after);
  JsonObject *changed = json_object_get_object_member (object, "changed");
  JsonArray *tasks = json_object_get_array_member (changed, "tasks");
  JsonObject *rewired = json_object_get_object_member (object, "rewired");
  JsonObject *first = json_object_get_object_member (rewired, "first");
  JsonObject *only = json_object_get_object_member (object, "only_after");
  JsonObject *filter
      = json_array_get_object_element (json_object_get_array_member (only, "tasks"), 0);

  g_assert_cmpint (json_object_get_int_member (object, "matched"), ==, 3);
  g_assert_cmpint (json_object_get_int_member (object, "moved"), ==, 3);
  g_assert_cmpint (json_object_get_int_member (changed, "n"), ==, 2);
  assert_both (json_array_get_object_element (tasks, 0), "busy_ns", 100, 150);
  assert_both (json_array_get_object_element (tasks, 1), "busy_ns", 100, 90);
  g_assert_cmpstr (
      json_object_get_string_member (json_array_get_object_element (tasks, 1), "task_after"), ==,
      "2");
  g_assert_cmpint (
      json_object_get_int_member (json_object_get_object_member (object, "only_before"), "n"), ==,
      0);
  g_assert_cmpint (json_object_get_int_member (only, "n"), ==, 1);
  g_assert_cmpstr (json_object_get_string_member (filter, "task"), ==, "1");
  g_assert_cmpstr (json_object_get_string_member (filter, "submitted_at"), ==, "/src/graph.c:11");
  g_assert_cmpint (json_object_get_int_member (rewired, "n"), ==, 1);
  g_assert_cmpstr (json_object_get_string_member (first, "task"), ==, "1");
  g_assert_cmpstr (json_object_get_string_member (first, "task_after"), ==, "2");
  g_assert_cmpstr (
      json_array_get_string_element (json_object_get_array_member (first, "only_before"), 0), ==,
      "0");
  g_assert_cmpstr (
      json_array_get_string_element (json_object_get_array_member (first, "only_after"), 0), ==,
      "1");
}

static void
test_text (void)
{
  g_autoptr (PtoTrace) before = make_before ();
  g_autoptr (PtoTrace) after = make_after ();
  g_autofree char *text = pto_trace_compare (before, after);

  g_assert_cmpstr (
      text, ==,
      "before  first: 3 tasks, 1 edge, 0.250 us on the virtual clock\n"
      "after   second: 4 tasks, 2 edges, 0.340 us on the virtual clock\n"
      "took 0.090 us longer (36.0 %)\n"
      "1 AIC busy 40 %, then 1 AIC busy 44 %\n"
      "2 AIV busy 30 %, then 2 AIV busy 25 %\n"
      "critical path of 2 tasks, then 3: by which it is longer, in us\n"
      "            in kernels    submitter         room         data         core    scheduler       in all\n"
      "  consume       -0.010        0.000        0.000        0.000        0.000       -0.010       -0.020\n"
      "  produce       +0.050        0.000        0.000        0.000        0.000        0.000       +0.050\n"
      "  filter        +0.030        0.000        0.000        0.000        0.000       +0.030       +0.060\n"
      "  all           +0.070        0.000        0.000        0.000        0.000       +0.020       +0.090\n"
      "runs of kernels, before and after, the times in us\n"
      "              runs                median                    in all                    change\n"
      "  consume        2        2        0.075        0.070        0.150        0.140       -0.010\n"
      "  produce        1        1        0.100        0.150        0.100        0.150       +0.050\n"
      "  filter         0        1        0.000        0.030        0.000        0.030       +0.030\n"
      "what tasks waited for since the submit before theirs, by which it is longer, in us\n"
      "             submitter         room         data         core    scheduler\n"
      "  consume       +0.001       +0.005       +0.107        0.000       -0.010\n"
      "  filter        +0.004        0.000       +0.166        0.000       +0.030\n"
      "3 tasks in both: 2 took another time, 3 ran at another time or on another core\n"
      "       +0.050 us task 0 (produce), submitted at graph.c:10\n"
      "       -0.010 us task 1 (consume), submitted at graph.c:11\n"
      "only after: 1 task\n"
      "  task 1 (filter), submitted at graph.c:11\n"
      "1 of them waits for other tasks, first task 1 (consume), submitted at graph.c:11: for task 0 before, for task 1 after\n");
}

static void
test_same (void)
{
  g_autoptr (PtoTrace) trace = make_after ();
  g_autoptr (PtoTrace) again = make_after ();
  g_autoptr (PtoTrace) empty = g_object_new (PTO_TYPE_TRACE, NULL);
  g_autoptr (JsonObject) object = compare (trace, again);
  g_autofree char *text = pto_trace_compare (trace, trace);
  g_autofree char *nothing = pto_trace_compare (empty, empty);

  g_assert_true (json_object_get_boolean_member (object, "same"));
  g_assert_cmpstr (text, ==,
                   "before  second: 4 tasks, 2 edges, 0.340 us on the virtual clock\n"
                   "after   second: 4 tasks, 2 edges, 0.340 us on the virtual clock\n"
                   "nothing differs\n");
  g_assert_nonnull (strstr (nothing, "nothing differs\n"));
}

/* A run that is another one only in when it did things. */
static void
test_moved (void)
{
  Task tasks[G_N_ELEMENTS (before_tasks)];
  g_autoptr (PtoTrace) before = make_before ();
  g_autoptr (PtoTrace) after = NULL;
  g_autoptr (JsonObject) object = NULL;

  memcpy (tasks, before_tasks, sizeof tasks);
  tasks[2].start += 5;
  tasks[2].end += 5;
  tasks[2].dispatch += 5;
  after = make_trace (tasks, G_N_ELEMENTS (tasks), FALSE, "moved");
  object = compare (before, after);
  g_assert_false (json_object_get_boolean_member (object, "same"));
  g_assert_cmpint (get_change (object, "elapsed_ns"), ==, 0);
  g_assert_cmpint (json_object_get_int_member (object, "moved"), ==, 1);
  g_assert_cmpint (
      json_object_get_int_member (json_object_get_object_member (object, "changed"), "n"), ==, 0);
}

/* What one of the two did not record is not compared, and the path adds up all the same. */
static void
test_levels (void)
{
  for (guint side = 0; side < PTO_N_SIDES; side++)
    for (guint32 level = PTO_TRACE_LEVEL_RUNS; level <= PTO_TRACE_LEVEL_FULL; level++)
      {
        g_autoptr (PtoTrace) before = make_before ();
        g_autoptr (PtoTrace) after = make_after ();
        g_autoptr (JsonObject) object = NULL;
        g_autofree char *text = NULL;
        JsonObject *path, *kernel;

        (side == PTO_BEFORE ? before : after)->topology.recorded = level;
        object = compare (before, after);
        text = pto_trace_compare (before, after);
        path = json_object_get_object_member (object, "critical_path");
        kernel
            = json_array_get_object_element (json_object_get_array_member (object, "kernels"), 0);
        g_assert_cmpint (json_object_get_int_member (path, "change_ns"), ==, 340 - 250);
        g_assert_cmpint (json_object_has_member (path, "not_recorded_ns"), ==,
                         level == PTO_TRACE_LEVEL_RUNS);
        g_assert_cmpint (json_object_has_member (kernel, "waits"), ==,
                         level > PTO_TRACE_LEVEL_RUNS);
        g_assert_cmpint (json_object_has_member (object, "edges"), ==,
                         level >= PTO_TRACE_LEVEL_GRAPH);
        g_assert_cmpint (json_object_has_member (object, "rewired"), ==,
                         level >= PTO_TRACE_LEVEL_GRAPH);
        g_assert_cmpint (strstr (text, "trace-level was") != NULL, ==,
                         level < PTO_TRACE_LEVEL_GRAPH);
        if (level < PTO_TRACE_LEVEL_GRAPH)
          g_assert_nonnull (strstr (text, side == PTO_BEFORE ? "\nbefore, " : "\nafter, "));
      }
}

/* --- which task is which --- */

static PtoTrace *
make_list (const guint *kernels, guint n)
{
  g_autofree Task *tasks = g_new0 (Task, MAX (n, 1));

  for (guint i = 0; i < n; i++)
    tasks[i] = (Task){ kernels[i], 0, i, i, i, 10 + i, 11 + i, NO_DEP };
  return make_trace (tasks, n, FALSE, "list");
}

/* The longest list that both hold, the plain way. */
static guint
count_common (const guint *a, guint n, const guint *b, guint m)
{
  g_autofree guint *last = g_new0 (guint, m + 1);
  g_autofree guint *here = g_new0 (guint, m + 1);

  for (guint i = 0; i < n; i++)
    {
      for (guint j = 0; j < m; j++)
        here[j + 1] = a[i] == b[j] ? last[j] + 1 : MAX (last[j + 1], here[j]);
      memcpy (last, here, (m + 1) * sizeof *last);
    }
  return last[m];
}

static void
check_match (PtoTraceMatch *match, const guint *a, guint n, const guint *b, guint m,
             gboolean orders)
{
  guint n_matched = 0;
  guint32 last = 0;

  g_assert_cmpuint (match->n[PTO_BEFORE], ==, n);
  g_assert_cmpuint (match->n[PTO_AFTER], ==, m);
  for (guint i = 0; i < n; i++)
    {
      guint32 twin = match->twin[PTO_BEFORE][i];

      if (twin == PTO_TRACE_NOWHERE)
        continue;
      g_assert_cmpuint (twin, <, m);
      g_assert_cmpuint (a[i], ==, b[twin]);
      g_assert_cmpuint (match->twin[PTO_AFTER][twin], ==, i);
      g_assert_true (!orders || n_matched == 0 || twin > last);
      last = twin;
      n_matched++;
    }
  g_assert_cmpuint (match->n_matched, ==, n_matched);
}

static void
test_match (void)
{
  for (guint round = 0; round < 300; round++)
    {
      guint lists[PTO_N_SIDES][40];
      guint n[PTO_N_SIDES];
      guint n_kernels = (guint) g_test_rand_int_range (1, 4);
      g_autoptr (PtoTrace) before = NULL, after = NULL;
      g_autoptr (PtoTraceMatch) match = NULL;

      for (guint s = 0; s < PTO_N_SIDES; s++)
        {
          n[s] = (guint) g_test_rand_int_range (0, 40);
          for (guint i = 0; i < n[s]; i++)
            lists[s][i] = (guint) g_test_rand_int_range (0, (gint32) n_kernels);
        }
      before = make_list (lists[PTO_BEFORE], n[PTO_BEFORE]);
      after = make_list (lists[PTO_AFTER], n[PTO_AFTER]);
      match = pto_trace_match_new (before, after);
      check_match (match, lists[PTO_BEFORE], n[PTO_BEFORE], lists[PTO_AFTER], n[PTO_AFTER], TRUE);
      g_assert_cmpuint (
          match->n_matched, ==,
          count_common (lists[PTO_BEFORE], n[PTO_BEFORE], lists[PTO_AFTER], n[PTO_AFTER]));
    }
}

/* Two lists that have little in common: the n-th of a kernel is the n-th. */
static void
test_match_far (void)
{
  guint lists[PTO_N_SIDES][900];
  g_autoptr (PtoTrace) before = NULL, after = NULL;
  g_autoptr (PtoTraceMatch) match = NULL;

  for (guint i = 0; i < 900; i++)
    {
      lists[PTO_BEFORE][i] = i < 300 ? PRODUCE : i < 600 ? CONSUME : FILTER;
      lists[PTO_AFTER][i] = i < 300 ? FILTER : i < 600 ? CONSUME : PRODUCE;
    }
  before = make_list (lists[PTO_BEFORE], 900);
  after = make_list (lists[PTO_AFTER], 900);
  match = pto_trace_match_new (before, after);
  check_match (match, lists[PTO_BEFORE], 900, lists[PTO_AFTER], 900, FALSE);
  g_assert_cmpuint (match->n_matched, ==, 900);
  g_assert_cmpuint (match->twin[PTO_BEFORE][7], ==, 607);
}

/* --- workers of level 3 --- */

static PtoTrace *
make_level (guint64 chip_run_ns, guint n_pieces)
{
  static const char *const rows[] = { "L2/0", "sub0", NULL };
  static const char *const of_level[] = { "step" };
  struct pto_trace_topology topology = { .n_schedulers = 1,
                                         .n_cores = 2,
                                         .level = 3,
                                         .n_workers = 1,
                                         .recorded = PTO_TRACE_LEVEL_FULL,
                                         .run_ns = 2000 };
  struct pto_trace_record submits[]
      = { { 0, 0, PTO_TRACE_SUBMIT, 0, 0 }, { 10, 1, PTO_TRACE_SUBMIT, 0, 0 } };
  struct pto_trace_record runs[]
      = { { 100, 0, PTO_TRACE_RUN, 0, 900 }, { 1000, 1, PTO_TRACE_RUN, 0, 1900 } };
  struct pto_trace_buffer buffers[]
      = { { .records = submits, .count = 2 }, { 0 }, { .records = runs, .count = 2 }, { 0 } };
  struct pto_trace records = { buffers, G_N_ELEMENTS (buffers) };
  PtoTrace *trace = pto_trace_new_from_run (&records, &topology, of_level, 1, "level");

  pto_trace_take_names (trace, g_strdup ("L3/0"), g_strdupv ((char **) rows));
  for (guint i = 0; i < n_pieces; i++)
    {
      const Task inner[] = { { PRODUCE, 0, 0, 0, 5, 10, 10 + chip_run_ns, NO_DEP } };

      pto_trace_pieces_take (&trace->pieces, 0, i, make_trace (inner, 1, FALSE, "chip"));
    }
  pto_trace_settle (trace);
  return trace;
}

static void
test_workers (void)
{
  g_autoptr (PtoTrace) before = make_level (100, 2);
  g_autoptr (PtoTrace) after = make_level (130, 2);
  g_autoptr (JsonObject) object = compare (before, after);
  g_autoptr (JsonObject) same = compare (before, before);
  JsonArray *kernels = json_object_get_array_member (object, "kernels");
  JsonArray *workers = json_object_get_array_member (object, "workers");
  JsonObject *worker = json_array_get_object_element (workers, 0);
  g_autofree char *text = pto_trace_compare (before, after);

  g_assert_true (json_object_get_boolean_member (same, "same"));
  g_assert_false (json_object_get_boolean_member (object, "same"));
  g_assert_cmpint (get_change (object, "elapsed_ns"), ==, 0);
  assert_both (find_kernel (kernels, "step", 3), "busy_ns", 1700, 1700);
  assert_both (find_kernel (kernels, "produce", 2), "busy_ns", 200, 260);
  assert_both (find_kernel (kernels, "produce", 2), "median_ns", 100, 130);
  g_assert_cmpuint (json_array_get_length (workers), ==, 1);
  g_assert_cmpstr (json_object_get_string_member (worker, "worker"), ==, "L3/0/L2/0");
  assert_both (worker, "runs", 2, 2);
  assert_both (worker, "elapsed_ns", 2 * 110, 2 * 140);
  g_assert_nonnull (strstr (
      text, "  L3/0/L2/0  2 runs of 2 tasks in 0.220 us, then 2 runs of 2 tasks in 0.280 us\n"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/trace-compare/kernels", test_kernels);
  g_test_add_func ("/pto/trace-compare/path", test_path);
  g_test_add_func ("/pto/trace-compare/tasks", test_tasks);
  g_test_add_func ("/pto/trace-compare/text", test_text);
  g_test_add_func ("/pto/trace-compare/same", test_same);
  g_test_add_func ("/pto/trace-compare/moved", test_moved);
  g_test_add_func ("/pto/trace-compare/levels", test_levels);
  g_test_add_func ("/pto/trace-compare/match", test_match);
  g_test_add_func ("/pto/trace-compare/match-far", test_match_far);
  g_test_add_func ("/pto/trace-compare/workers", test_workers);
  return g_test_run ();
}
