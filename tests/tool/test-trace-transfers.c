/* test-trace-transfers.c: do answers, pictures and exports say what of tensors travelled?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Records by hand: what a level with two remote workers would have recorded.
 */
#include "config.h"

#include "pto-trace-items.h"
#include "pto-trace-topics.h"
#include "synthetic-trace.h"

#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

#define SECOND G_GUINT64_CONSTANT (1000000000)
#define MILLION G_GUINT64_CONSTANT (1000000)

typedef struct
{
  struct pto_trace_record records[32];
  guint n;
} Buffer;

static void
run (Buffer *buffer, guint64 start, guint64 end, guint64 task, guint core)
{
  buffer->records[buffer->n++] = (struct pto_trace_record){ start, task, PTO_TRACE_RUN, core, end };
}

/* way: 0, or PTO_TRACE_TRANSFER_BACK. */
static void
transfer (Buffer *buffer, guint64 start, guint64 end, guint64 task, guint core, guint32 way,
          guint64 bytes, guint64 saved)
{
  buffer->records[buffer->n++]
      = (struct pto_trace_record){ start, task, PTO_TRACE_TRANSFER, core | way, end };
  buffer->records[buffer->n++]
      = (struct pto_trace_record){ bytes, task, PTO_TRACE_BYTES, way, saved };
}

/* The first record is at 1 us. Tasks 0 and 1 ran on L3/0, task 2 on both, 3 on none of them; what
 * goes last to L3/0 is for nobody alone. more: of that buffer. */
static PtoTrace *
make_trace (guint64 bytes, void (*more) (Buffer *buffer))
{
  static const char *const names[] = { "step", "sum" };
  static const char *const rows[] = { "L3/0", "L3/1", "sub0", NULL };
  struct pto_trace_topology topology = { .n_schedulers = 1,
                                         .n_cores = 3,
                                         .level = 4,
                                         .n_workers = 2,
                                         .recorded = PTO_TRACE_LEVEL_GRAPH,
                                         .begin_ns = 100 * SECOND,
                                         .end_ns = 100 * SECOND + MILLION,
                                         .run_ns = MILLION };
  Buffer of[5] = { 0 };
  struct pto_trace_buffer buffers[5] = { 0 };
  struct pto_trace records = { buffers, 5 };
  PtoTrace *trace;

  for (guint i = 0; i < 4; i++)
    of[0].records[of[0].n++] = (struct pto_trace_record){ 1000, i, PTO_TRACE_SUBMIT, i == 3, 0 };
  transfer (&of[2], 11000, 21000, 0, 0, 0, bytes, 0);
  run (&of[2], 21000, 31000, 0, 0);
  transfer (&of[2], 41000, 46000, 0, 0, PTO_TRACE_TRANSFER_BACK, 500, 0);
  transfer (&of[2], 11000, 21000, 1, 0, 0, 0, 64);
  run (&of[2], 31000, 41000, 1, 0);
  transfer (&of[2], 51000, 53000, 2, 0, 0, 30, 7);
  run (&of[2], 53000, 61000, 2, 0);
  transfer (&of[3], 51000, 55000, 2, 1, 0, 40, 0);
  run (&of[3], 55000, 71000, 2, 1);
  transfer (&of[3], 71000, 81000, 2, 1, PTO_TRACE_TRANSFER_BACK, 4, 0);
  transfer (&of[2], 81000, 101000, PTO_TASK_NONE, 0, PTO_TRACE_TRANSFER_BACK, 9000, 0);
  run (&of[4], 81000, 91000, 3, 2);
  if (more != NULL)
    more (&of[2]);
  for (guint i = 0; i < 5; i++)
    {
      buffers[i].records = of[i].records;
      buffers[i].count = of[i].n;
    }
  trace = pto_trace_new_from_run (&records, &topology, names, 2, "moved");
  pto_trace_take_names (trace, g_strdup ("L4/0"), g_strdupv ((char **) rows));
  return trace;
}

static void
assert_sums (PtoTrace *trace)
{
  g_autoptr (GListModel) tasks = pto_trace_list_tasks (trace);
  g_autoptr (GListModel) cores = pto_trace_list_cores (trace);
  static const guint64 of_tasks[][3]
      = { { 1000, 500, 0 }, { 0, 0, 64 }, { 40, 4, 0 }, { 0, 0, 0 } };
  static const guint64 of_cores[][3] = { { 1030, 9500, 71 }, { 40, 4, 0 }, { 0, 0, 0 } };

  g_assert_cmpuint (pto_trace_get_bytes_sent (trace), ==, 1070);
  g_assert_cmpuint (pto_trace_get_bytes_received (trace), ==, 9504);
  g_assert_cmpuint (pto_trace_get_bytes_saved (trace), ==, 71);
  for (guint i = 0; i < 4; i++)
    {
      g_autoptr (PtoTraceTask) task = g_list_model_get_item (tasks, i);

      g_assert_cmpuint (pto_trace_task_get_bytes_sent (task), ==, of_tasks[i][0]);
      g_assert_cmpuint (pto_trace_task_get_bytes_received (task), ==, of_tasks[i][1]);
      g_assert_cmpuint (pto_trace_task_get_bytes_saved (task), ==, of_tasks[i][2]);
      if (i == 2)
        {
          g_autoptr (GListModel) members = pto_trace_task_list_members (task);
          g_autoptr (PtoTraceTask) other = g_list_model_get_item (members, 1);

          g_assert_cmpint (pto_trace_task_get_core (other), ==, 0);
          g_assert_cmpuint (pto_trace_task_get_bytes_sent (other), ==, 30);
          g_assert_cmpuint (pto_trace_task_get_bytes_saved (other), ==, 7);
        }
    }
  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (PtoTraceCore) core = g_list_model_get_item (cores, i);

      g_assert_cmpuint (pto_trace_core_get_bytes_sent (core), ==, of_cores[i][0]);
      g_assert_cmpuint (pto_trace_core_get_bytes_received (core), ==, of_cores[i][1]);
      g_assert_cmpuint (pto_trace_core_get_bytes_saved (core), ==, of_cores[i][2]);
    }
}

static void
test_sums (void)
{
  g_autoptr (PtoTrace) trace = make_trace (1000, NULL);

  assert_sums (trace);
}

/* What travels last is a part of the run, and time counts from its first record. */
static void
test_time (void)
{
  g_autoptr (PtoTrace) trace = make_trace (1000, NULL);

  g_assert_cmpuint (pto_trace_get_analysis (trace)->last, ==, 100000);
  g_assert_cmpuint (pto_trace_get_elapsed_ns (trace), ==, 90000);
}

static void
test_file (void)
{
  g_autoptr (PtoTrace) trace = make_trace (1000, NULL);
  g_autoptr (PtoTrace) other = make_trace (1001, NULL);
  g_autoptr (PtoTrace) back = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *path = NULL;
  int fd = g_file_open_tmp ("XXXXXX.ptotrace", &path, &error);

  g_assert_no_error (error);
  g_close (fd, NULL);
  g_assert_true (pto_trace_save (trace, path, &error));
  back = pto_trace_new_from_file (path, &error);
  g_assert_no_error (error);
  g_remove (path);
  assert_sums (back);
  g_assert_cmpstr (pto_trace_get_sha256 (back), ==, pto_trace_get_sha256 (trace));
  g_assert_cmpstr (pto_trace_get_sha256 (back), !=, pto_trace_get_sha256 (other));
}

/* What is cut off, ends before it begins, or is of no child is left out; nothing else is. */
static void
add_broken (Buffer *buffer)
{
  transfer (buffer, 30000, 20000, 0, 0, 0, 5, 5);
  transfer (buffer, 30000, 40000, 0, 3, 0, 5, 5);
  transfer (buffer, 30000, 40000, 0, 77, PTO_TRACE_TRANSFER_BACK, 5, 5);
  buffer->records[buffer->n++] = (struct pto_trace_record){ 5, 0, PTO_TRACE_BYTES, 0, 5 };
  buffer->records[buffer->n++]
      = (struct pto_trace_record){ 30000, 0, PTO_TRACE_TRANSFER, 0, 40000 };
}

static void
test_broken (void)
{
  g_autoptr (PtoTrace) trace = make_trace (1000, add_broken);
  g_autofree char *svg = pto_trace_to_svg (trace);

  assert_sums (trace);
}

static void
assert_line (const char *text, const char *line)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  gboolean is_there = g_strv_contains ((const char *const *) lines, line);

  if (!is_there)
    g_test_message ("%s", text);
  g_assert_true (is_there);
}

static JsonObject *
parse (JsonParser *parser, const char *text)
{
  g_assert_true (json_parser_load_from_data (parser, text, -1, NULL));
  return json_node_get_object (json_parser_get_root (parser));
}

static void
test_answers (void)
{
  g_autoptr (PtoTrace) trace = make_trace (1000, NULL);
  g_autoptr (PtoTrace) other = make_trace (1500, NULL);
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autofree char *summary = pto_trace_summarize (trace);
  g_autofree char *summary_json = pto_trace_describe_json (trace, PTO_TRACE_TOPIC_SUMMARY);
  g_autofree char *why = pto_trace_explain (trace, "2", NULL);
  g_autofree char *why_json = pto_trace_explain_json (trace, "2", NULL);
  g_autofree char *counters = pto_trace_describe_json (trace, PTO_TRACE_TOPIC_COUNTERS);
  g_autofree char *difference = pto_trace_compare (trace, other);
  g_autofree char *same = pto_trace_compare (trace, trace);
  JsonObject *object;
  JsonArray *list;

  assert_line (summary, "L3/0: 1030 bytes sent, 9500 received, 71 were there already");
  assert_line (summary, "L3/1: 40 bytes sent, 4 received, 0 were there already");
  object = parse (parser, summary_json);
  g_assert_cmpint (json_object_get_int_member (object, "bytes_sent"), ==, 1070);
  g_assert_cmpint (json_object_get_int_member (object, "bytes_received"), ==, 9504);
  g_assert_cmpint (json_object_get_int_member (object, "bytes_saved"), ==, 71);

  assert_line (why, "30 bytes sent to L3/0 from 50.000 us on, in 2.000 us; 7 were there already");
  assert_line (why, "40 bytes sent to L3/1 from 50.000 us on, in 4.000 us; 0 were there already");
  assert_line (why, "4 bytes received from L3/1 from 70.000 us on, in 10.000 us");
  list = json_object_get_array_member (parse (parser, why_json), "transfers");
  g_assert_cmpuint (json_array_get_length (list), ==, 3);
  object = json_array_get_object_element (list, 2);
  g_assert_cmpstr (json_object_get_string_member (object, "core"), ==, "L3/1");
  g_assert_cmpstr (json_object_get_string_member (object, "way"), ==, "received");
  g_assert_cmpint (json_object_get_int_member (object, "bytes"), ==, 4);
  g_assert_cmpint (json_object_get_int_member (object, "start_ns"), ==, 70000);
  g_assert_cmpint (json_object_get_int_member (object, "end_ns"), ==, 80000);
  g_assert_false (json_object_has_member (object, "saved"));

  object = parse (parser, counters);
  list = json_object_get_array_member (object, "tasks");
  /* A task of several has what all of them have. */
  g_assert_cmpint (
      json_object_get_int_member (json_array_get_object_element (list, 2), "bytes_sent"), ==, 70);
  g_assert_cmpint (
      json_object_get_int_member (json_array_get_object_element (list, 2), "bytes_saved"), ==, 7);
  list = json_object_get_array_member (object, "cores");
  g_assert_cmpint (
      json_object_get_int_member (json_array_get_object_element (list, 0), "bytes_received"), ==,
      9500);

  assert_line (difference, "bytes sent: 1070, then 1570");
  g_assert_null (strstr (difference, "bytes received"));
  assert_line (same, "nothing differs");
}

/* A run in which nothing travelled says nothing of it. */
static void
test_none (void)
{
  struct pto_trace_topology topology;
  struct pto_trace_buffer buffers[5] = { 0 };
  struct pto_trace records = { buffers, 5 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree char *text = NULL;
  g_autofree char *counters = NULL;

  synthetic_topology (&topology, 1);
  trace = pto_trace_new_from_run (&records, &topology, NULL, 0, "none");
  text = pto_trace_to_svg (trace);
  counters = pto_trace_describe_json (trace, PTO_TRACE_TOPIC_COUNTERS);
  g_assert_null (strstr (text, "tensors"));
  g_assert_null (strstr (counters, "bytes_sent"));
  g_assert_cmpuint (pto_trace_get_bytes_sent (trace), ==, 0);
}

/* Each on the row of its worker, and what they add up to. */
static void
test_events (void)
{
  g_autoptr (PtoTrace) trace = make_trace (1000, NULL);
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autofree char *text = pto_trace_to_json (trace);
  JsonArray *events = json_object_get_array_member (parse (parser, text), "traceEvents");
  g_autoptr (GHashTable) rows = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  g_autoptr (GString) seen = g_string_new (NULL);
  gint64 sums[3] = { 0 };

  for (guint i = 0; i < json_array_get_length (events); i++)
    {
      JsonObject *event = json_array_get_object_element (events, i);
      const char *name = json_object_get_string_member_with_default (event, "name", "");
      JsonObject *args = json_object_has_member (event, "args")
                             ? json_object_get_object_member (event, "args")
                             : NULL;

      if (strcmp (name, "thread_name") == 0)
        g_hash_table_insert (rows,
                             GINT_TO_POINTER ((gint) json_object_get_int_member (event, "tid")),
                             g_strdup (json_object_get_string_member (args, "name")));
      else if (g_strcmp0 (json_object_get_string_member_with_default (event, "cat", ""), "transfer")
               == 0)
        g_string_append_printf (
            seen, "%s %s %.3f %.3f %d %d %s\n",
            (char *) g_hash_table_lookup (
                rows, GINT_TO_POINTER ((gint) json_object_get_int_member (event, "tid"))),
            name, json_object_get_double_member (event, "ts"),
            json_object_get_double_member (event, "dur"),
            (gint) json_object_get_int_member (args, "bytes"),
            (gint) json_object_get_int_member_with_default (args, "saved", -1),
            json_object_get_string_member_with_default (args, "task", "-"));
      else if (strcmp (name, "bytes sent") == 0)
        sums[0] = json_object_get_int_member (args, "bytes");
      else if (strcmp (name, "bytes received") == 0)
        sums[1] = json_object_get_int_member (args, "bytes");
      else if (strcmp (name, "bytes saved") == 0)
        sums[2] = json_object_get_int_member (args, "bytes");
    }
  g_assert_cmpstr (seen->str, ==,
                   "L3/0: tensors sent 10.000 10.000 1000 0 0\n"
                   "L3/0: tensors sent 10.000 10.000 0 64 1\n"
                   "L3/0: tensors received 40.000 5.000 500 -1 0\n"
                   "L3/0: tensors sent 50.000 2.000 30 7 2\n"
                   "L3/0: tensors received 80.000 20.000 9000 -1 -\n"
                   "L3/1: tensors sent 50.000 4.000 40 0 2\n"
                   "L3/1: tensors received 70.000 10.000 4 -1 2\n");
  g_assert_cmpint (sums[0], ==, 1070);
  g_assert_cmpint (sums[1], ==, 9504);
  g_assert_cmpint (sums[2], ==, 71);
}

static double
get_attribute (const char *element, const char *name)
{
  g_autofree char *start = g_strdup_printf (" %s=\"", name);
  const char *at = strstr (element, start);

  g_assert_nonnull (at);
  return g_ascii_strtod (at + strlen (start), NULL);
}

/* Where a bar of that class with that title is: start and end in ns, and its y. */
static double
find_bar (const char *svg, const char *class, const char *title, double last)
{
  g_auto (GStrv) elements = g_strsplit (svg, "<rect", -1);
  g_autofree char *start = g_strdup_printf (" class=\"%s\"", class);
  g_autofree char *whole = g_strdup_printf ("<title>%s", title);
  double begin, end;

  for (guint i = 0; elements[i] != NULL; i++)
    if (strstr (elements[i], start) != NULL && strstr (elements[i], whole) != NULL)
      {
        const char *times = strstr (elements[i], whole) + strlen (whole) + 1;
        /* The plot is what is between its margins: all of the run. */
        double left = 28 + 116, right = 1800 - 28 - 84;

        begin = g_ascii_strtod (times, NULL) * 1000;
        end = g_ascii_strtod (strstr (times, " to ") + 4, NULL) * 1000;
        g_assert_cmpfloat_with_epsilon (get_attribute (elements[i], "x"),
                                        left + begin / last * (right - left), 0.02);
        g_assert_cmpfloat_with_epsilon (get_attribute (elements[i], "width"),
                                        (end - begin) / last * (right - left), 0.02);
        return get_attribute (elements[i], "y");
      }
  g_test_message ("%s: %s", title, svg);
  g_assert_not_reached ();
}

static void
test_picture (void)
{
  g_autoptr (PtoTrace) trace = make_trace (1000, NULL);
  g_autofree char *svg = pto_trace_to_svg (trace);
  g_auto (GStrv) parts = g_strsplit (svg, "class=\"sent\"", -1);
  double sent = find_bar (svg, "sent", "1\342\200\211000 bytes sent to L3/0 for task 0", 100000);
  double back = find_bar (svg, "received", "500 bytes received from L3/0 for task 0", 100000);

  /* The upper and the lower half of one row. */
  g_assert_cmpfloat (back, >, sent + 4);
  g_assert_cmpfloat (back, <, sent + 16);
  g_assert_cmpfloat_with_epsilon (
      find_bar (svg, "sent", "30 bytes sent to L3/0 for task 2", 100000), sent, 0.01);
  g_assert_cmpfloat (find_bar (svg, "sent", "40 bytes sent to L3/1 for task 2", 100000), >, back);
  g_assert_cmpfloat_with_epsilon (
      find_bar (svg, "received", "9\342\200\211000 bytes received from L3/0", 100000), back, 0.01);
  /* One in the legend; what was there already has none. */
  g_assert_cmpuint (g_strv_length (parts) - 1, ==, 3 + 1);
  g_assert_nonnull (strstr (svg, "tensors: 1\342\200\211070 bytes sent, 9\342\200\211504 received, "
                                 "71 were there already"));
  g_assert_nonnull (strstr (svg, "tensors: sent above, received below"));
  g_assert_nonnull (strstr (svg, "0 bytes sent, 0 received, 64 were there already"));
}

/* As many as there are take no more than other bars. */
static void
test_large_picture (void)
{
  static const char *const rows[] = { "L3/0", NULL };
  enum
  {
    N = 40000
  };
  struct pto_trace_topology topology
      = { .n_schedulers = 1, .n_cores = 1, .level = 4, .n_workers = 1, .run_ns = N * 1000 };
  g_autofree struct pto_trace_record *records = g_new0 (struct pto_trace_record, 2 * N);
  struct pto_trace_buffer buffers[3] = { 0 };
  struct pto_trace all = { buffers, 3 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree char *svg = NULL;
  guint64 sum = 0;

  for (guint i = 0; i < N; i++)
    {
      records[2 * i]
          = (struct pto_trace_record){ 1000 * i, i, PTO_TRACE_TRANSFER, 0, 1000 * i + 500 };
      records[2 * i + 1] = (struct pto_trace_record){ 1 + i % 3, i, PTO_TRACE_BYTES, 0, 0 };
    }
  buffers[2].records = records;
  buffers[2].count = 2 * N;
  trace = pto_trace_new_from_run (&all, &topology, NULL, 0, "many");
  pto_trace_take_names (trace, g_strdup ("L4/0"), g_strdupv ((char **) rows));
  svg = pto_trace_to_svg (trace);
  g_assert_cmpuint (strlen (svg), <, 3000000);
  /* All of them are in some bar. */
  for (const char *at = svg; (at = strstr (at, " times\n")) != NULL; at++)
    {
      const char *from = at;

      while (from[-1] >= '0' && from[-1] <= '9')
        from--;
      sum += g_ascii_strtoull (from, NULL, 10);
    }
  g_assert_cmpuint (sum, ==, N);
}

static void
test_report (void)
{
  g_autoptr (PtoTrace) trace = make_trace (1000, NULL);
  g_autofree char *html = pto_trace_to_html (trace);
  g_autoptr (JsonParser) parser = json_parser_new ();
  static const char mark[] = "<script type=\"application/json\" id=\"data\">";
  const char *data = strstr (html, mark) + strlen (mark);
  g_autofree char *text = g_strndup (data, (gsize) (strstr (data, "</script>") - data));
  JsonObject *object = json_object_get_object_member (parse (parser, text), "transfers");
  static const struct
  {
    const char *column;
    gint64 values[7];
  } columns[] = {
    { "row", { 0, 0, 0, 0, 0, 1, 1 } },
    { "start", { 10000, 10000, 40000, 50000, 80000, 50000, 70000 } },
    { "length", { 10000, 10000, 5000, 2000, 20000, 4000, 10000 } },
    { "bytes", { 1000, 0, 500, 30, 9000, 40, 4 } },
    { "saved", { 0, 64, 0, 7, 0, 0, 0 } },
    /* The fifth entry is the member that did not end last. */
    { "entry", { 0, 1, 0, 4, -1, 2, 2 } },
    { "is_back", { 0, 0, 1, 0, 1, 0, 1 } },
  };

  g_assert_cmpint (json_object_get_int_member (object, "n"), ==, 7);
  for (guint c = 0; c < G_N_ELEMENTS (columns); c++)
    for (guint i = 0; i < 7; i++)
      g_assert_cmpint (
          json_array_get_int_element (json_object_get_array_member (object, columns[c].column), i),
          ==, columns[c].values[i]);
  g_assert_nonnull (strstr (text, "\"kind\":\"moved\",\"name\":\"received\""));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/trace-transfers/sums", test_sums);
  g_test_add_func ("/trace-transfers/time", test_time);
  g_test_add_func ("/trace-transfers/file", test_file);
  g_test_add_func ("/trace-transfers/broken", test_broken);
  g_test_add_func ("/trace-transfers/answers", test_answers);
  g_test_add_func ("/trace-transfers/none", test_none);
  g_test_add_func ("/trace-transfers/events", test_events);
  g_test_add_func ("/trace-transfers/picture", test_picture);
  g_test_add_func ("/trace-transfers/large-picture", test_large_picture);
  g_test_add_func ("/trace-transfers/report", test_report);
  return g_test_run ();
}
