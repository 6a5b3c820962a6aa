/* test-trace.c: do the exports of a trace say what the records say?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-trace-items.h"
#include "synthetic-trace.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Records by hand: one cluster (AIC0, AIV0, AIV1), one scheduler. */
typedef struct
{
  struct pto_trace_topology topology;
  GArray *buffers[5]; /* orchestrator, scheduler, three cores */
  struct pto_trace_buffer views[5];
  struct pto_trace records;
} Hand;

enum
{
  EPOCH = 5000,
  AIC0 = 0,
  AIV0 = 1,
  AIV1 = 2
};

static void
hand_init (Hand *hand)
{
  hand->topology = (struct pto_trace_topology){ .n_schedulers = 1,
                                                .n_cores = 3,
                                                .n_clusters = 1,
                                                .aic_per_cluster = 1,
                                                .aiv_per_cluster = 2,
                                                .virtual_clock = true,
                                                .counter_hz = 50000000 };
  for (guint b = 0; b < G_N_ELEMENTS (hand->buffers); b++)
    hand->buffers[b] = g_array_new (FALSE, FALSE, sizeof (struct pto_trace_record));
}

static void
hand_clear (Hand *hand)
{
  for (guint b = 0; b < G_N_ELEMENTS (hand->buffers); b++)
    g_array_unref (hand->buffers[b]);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Hand, hand_clear)

static void
hand_add (Hand *hand, guint buffer, guint32 kind, guint64 time, guint64 task, guint32 detail,
          guint64 extra)
{
  struct pto_trace_record record = { EPOCH + time, task, kind, detail, extra };

  g_array_append_val (hand->buffers[buffer], record);
}

static void
hand_submit (Hand *hand, guint64 time, guint64 task, guint32 kernel, guint core_type)
{
  hand_add (hand, 0, PTO_TRACE_SUBMIT, time, task, kernel,
            (guint64) PTO_TASK_RING (task) << 8 | core_type);
}

static void
hand_dep (Hand *hand, guint64 consumer, guint64 producer, guint32 hazard)
{
  hand_add (hand, 0, PTO_TRACE_DEP, 0, consumer, hazard, producer);
}

static void
hand_run (Hand *hand, guint core, guint64 task, guint64 start, guint64 end)
{
  hand_add (hand, 1, PTO_TRACE_DISPATCH, start, task, core, 1);
  hand_add (hand, 2 + core, PTO_TRACE_RUN, start, task, core, EPOCH + end);
  hand_add (hand, 1, PTO_TRACE_COMPLETE, end, task, core, 0);
}

static PtoTrace *
hand_trace (Hand *hand, const char *const *names, guint n_names, const char *title)
{
  for (guint b = 0; b < G_N_ELEMENTS (hand->buffers); b++)
    {
      hand->views[b].records = (struct pto_trace_record *) (void *) hand->buffers[b]->data;
      hand->views[b].count = hand->views[b].capacity = hand->buffers[b]->len;
    }
  hand->records.buffers = hand->views;
  hand->records.n_buffers = G_N_ELEMENTS (hand->views);
  return pto_trace_new_from_run (&hand->records, &hand->topology, names, n_names, title);
}

static PtoTrace *
attention_trace (guint chunks, guint n_clusters, guint window)
{
  g_autoptr (SyntheticGraph) graph = synthetic_graph_new_attention (chunks, 3);
  struct pto_trace_topology topology;
  struct pto_trace *records;
  PtoTrace *trace;

  synthetic_topology (&topology, n_clusters);
  records = synthetic_graph_run (graph, &topology, window);
  trace = pto_trace_new_from_run (records, &topology, synthetic_attention_kernels,
                                  G_N_ELEMENTS (synthetic_attention_kernels), "attention");
  synthetic_records_free (records);
  return trace;
}

/* Two paths of equal shape; the third task waits for a core, not for a producer. */
static void
fill_known (Hand *hand)
{
  for (guint i = 0; i < 5; i++)
    hand_submit (hand, i, i, i == 0 ? 0 : 1, i == 0 ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV);
  hand_dep (hand, 2, 0, PTO_HAZARD_RAW);
  hand_dep (hand, 2, 1, PTO_HAZARD_RAW);
  hand_dep (hand, 3, 1, PTO_HAZARD_WAR);
  hand_dep (hand, 4, 3, PTO_HAZARD_WAW);
  hand_run (hand, AIC0, 0, 10, 110);
  hand_run (hand, AIV0, 1, 10, 60);
  hand_run (hand, AIV0, 2, 120, 210);
  hand_run (hand, AIV1, 3, 70, 160);
  hand_run (hand, AIV0, 4, 220, 310);
}

static const char *const known_names[] = { "mul", "add" };

static void
test_counts (void)
{
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;

  hand_init (&hand);
  fill_known (&hand);
  hand_dep (&hand, 2, 0, PTO_HAZARD_WAW); /* the same edge for another reason */
  trace = hand_trace (&hand, known_names, 2, "known");

  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 5);
  g_assert_cmpuint (pto_trace_get_n_edges (trace), ==, 4);
  g_assert_cmpuint (pto_trace_get_recorded (trace), ==, 5 + 5 + 15);
  g_assert_cmpuint (pto_trace_get_dropped (trace), ==, 0);
  g_assert_cmpuint (pto_trace_get_elapsed_ns (trace), ==, 310);
  g_assert_cmpstr (pto_trace_get_title (trace), ==, "known");
  g_assert_true (pto_trace_is_virtual (trace));
}

static void
test_critical_path (void)
{
  static const guint64 expected[] = { 0, 2, 4 };
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree guint64 *path = NULL;
  gsize n;

  hand_init (&hand);
  fill_known (&hand);
  trace = hand_trace (&hand, known_names, 2, NULL);
  path = pto_trace_dup_critical_path (trace, &n);

  /* 4 waited for its producer until 160, and for its core until 210. */
  g_assert_cmpmem (path, n * sizeof *path, expected, sizeof expected);
  g_assert_cmpuint (pto_trace_get_critical_path_ns (trace), ==, 300);
}

/* Through tasks that ran nothing and were over with their producers: 2 and 3. */
static void
test_critical_path_through_order (void)
{
  static const guint64 expected[] = { 0, 4 };
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree guint64 *path = NULL;
  gsize n;

  hand_init (&hand);
  for (guint i = 0; i < 5; i++)
    hand_submit (&hand, i, i, i == 2 || i == 3 ? UINT32_MAX : 0, PTO_CORE_TYPE_AIV);
  hand_dep (&hand, 2, 0, PTO_HAZARD_RAW);
  hand_dep (&hand, 3, 1, PTO_HAZARD_EXPLICIT);
  hand_dep (&hand, 3, 2, PTO_HAZARD_RAW);
  hand_dep (&hand, 4, 3, PTO_HAZARD_EXPLICIT);
  hand_run (&hand, AIV0, 0, 10, 110);
  hand_run (&hand, AIV1, 1, 10, 50);
  hand_run (&hand, AIV1, 4, 120, 210);
  trace = hand_trace (&hand, known_names, 2, NULL);
  path = pto_trace_dup_critical_path (trace, &n);
  g_assert_cmpmem (path, n * sizeof *path, expected, sizeof expected);
  g_assert_cmpuint (pto_trace_get_critical_path_ns (trace), ==, 200);
}

static void
test_critical_path_attention (void)
{
  /* One chunk on an empty chip: QK, SF, PV of the first block, then the updates of all three. */
  static const guint32 expected[] = { 1, 2, 3, 4, 8, 12 };
  g_autoptr (PtoTrace) trace = attention_trace (1, 24, 64);
  g_autofree guint64 *path = NULL;
  gsize n;

  path = pto_trace_dup_critical_path (trace, &n);
  g_assert_cmpuint (n, ==, G_N_ELEMENTS (expected));
  for (guint i = 0; i < n; i++)
    g_assert_cmpuint (path[i], ==, PTO_TASK_ID (1, expected[i]));
}

static void
test_utilization (void)
{
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree char *first = NULL;
  g_autofree char *last = NULL;

  hand_init (&hand);
  fill_known (&hand);
  trace = hand_trace (&hand, known_names, 2, NULL);
  first = pto_trace_dup_core_name (trace, 0);
  last = pto_trace_dup_core_name (trace, 2);

  g_assert_cmpuint (pto_trace_get_n_cores (trace), ==, 3);
  g_assert_null (pto_trace_dup_core_name (trace, 3));
  g_assert_cmpfloat (pto_trace_get_core_utilization (trace, 3), ==, 0);
  g_assert_cmpstr (first, ==, "AIC0");
  g_assert_cmpstr (last, ==, "AIV1");
  g_assert_cmpfloat_with_epsilon (pto_trace_get_core_utilization (trace, AIC0), 100.0 / 310, 1e-9);
  g_assert_cmpfloat_with_epsilon (pto_trace_get_core_utilization (trace, AIV0), 230.0 / 310, 1e-9);
  g_assert_cmpfloat_with_epsilon (pto_trace_get_core_utilization (trace, AIV1), 90.0 / 310, 1e-9);
}

/* One task on two cores: both were busy with it. */
static void
test_members (void)
{
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree char *json = NULL;
  guint n = 0;

  hand_init (&hand);
  hand_submit (&hand, 0, 0, 0, PTO_CORE_TYPE_AIC);
  hand_run (&hand, AIC0, 0, 10, 60);
  hand_run (&hand, AIV1, 0, 10, 110);
  trace = hand_trace (&hand, known_names, 2, "members");
  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 1);
  g_assert_cmpfloat_with_epsilon (pto_trace_get_core_utilization (trace, AIC0), 50.0 / 110, 1e-9);
  g_assert_cmpfloat_with_epsilon (pto_trace_get_core_utilization (trace, AIV1), 100.0 / 110, 1e-9);
  g_assert_cmpuint (pto_trace_get_critical_path_ns (trace), ==, 100);
  json = pto_trace_to_json (trace);
  for (const char *at = json; (at = strstr (at, "\"ph\":\"X\"")) != NULL; at++)
    n++;
  g_assert_cmpuint (n, ==, 3); /* the submit and both runs */
}

static void
test_sha256 (void)
{
  g_autoptr (PtoTrace) one = attention_trace (16, 24, 64);
  g_autoptr (PtoTrace) same = attention_trace (16, 24, 64);
  g_autoptr (PtoTrace) other = attention_trace (16, 24, 16);

  g_assert_cmpuint (strlen (pto_trace_get_sha256 (one)), ==, 64);
  g_assert_cmpstr (pto_trace_get_sha256 (one), ==, pto_trace_get_sha256 (same));
  g_assert_cmpstr (pto_trace_get_sha256 (one), !=, pto_trace_get_sha256 (other));
}

/* The clock of a worker goes on from run to run, the title is the caller's: neither is in the
 * digest. One nanosecond is. */
static void
test_sha256_origin (void)
{
  PtoTrace *traces[3] = { NULL };

  for (guint i = 0; i < G_N_ELEMENTS (traces); i++)
    {
      g_auto (Hand) hand = { 0 };

      hand_init (&hand);
      fill_known (&hand);
      for (guint b = 0; i == 1 && b < G_N_ELEMENTS (hand.buffers); b++)
        for (guint k = 0; k < hand.buffers[b]->len; k++)
          {
            struct pto_trace_record *record
                = &g_array_index (hand.buffers[b], struct pto_trace_record, k);

            record->time += 777;
            if (record->kind == PTO_TRACE_RUN)
              record->extra += 777;
          }
      if (i == 2)
        g_array_index (hand.buffers[2], struct pto_trace_record, 0).extra += 1;
      traces[i] = hand_trace (&hand, known_names, 2, i == 1 ? "later" : "sooner");
    }
  g_assert_cmpstr (pto_trace_get_sha256 (traces[0]), ==, pto_trace_get_sha256 (traces[1]));
  g_assert_cmpstr (pto_trace_get_sha256 (traces[0]), !=, pto_trace_get_sha256 (traces[2]));
  for (guint i = 0; i < G_N_ELEMENTS (traces); i++)
    g_assert_finalize_object (traces[i]);
}

static JsonObject *
parse (JsonParser *parser, PtoTrace *trace)
{
  g_autofree char *text = pto_trace_to_json (trace);
  g_autoptr (GError) error = NULL;

  g_assert_true (g_utf8_validate (text, -1, NULL));
  json_parser_load_from_data (parser, text, -1, &error);
  g_assert_no_error (error);
  return json_node_get_object (json_parser_get_root (parser));
}

static void
test_dropped (void)
{
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autofree char *svg = NULL;
  g_autofree char *summary = NULL;
  JsonObject *metadata;

  hand_init (&hand);
  fill_known (&hand);
  /* The scheduler's buffer was full after 4 records, AIV0's after 1: of task 4 only the submit is
   * known. */
  g_array_set_size (hand.buffers[1], 4);
  g_array_set_size (hand.buffers[3], 1);
  hand.views[1].dropped = 11;
  hand.views[3].dropped = 2;
  trace = hand_trace (&hand, known_names, 2, NULL);
  svg = pto_trace_to_svg (trace);
  summary = pto_trace_summarize (trace);
  metadata = json_object_get_object_member (parse (parser, trace), "metadata");

  g_assert_cmpuint (pto_trace_get_dropped (trace), ==, 13);
  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 5);
  g_assert_cmpint (json_object_get_int_member (metadata, "dropped"), ==, 13);
  g_assert_nonnull (strstr (svg, "13 records dropped"));
  g_assert_nonnull (strstr (summary, "13 records were dropped"));
}

static gboolean
is_event (JsonObject *event, const char *phase, const char *category)
{
  if (strcmp (json_object_get_string_member (event, "ph"), phase) != 0)
    return FALSE;
  return category == NULL
         || (json_object_has_member (event, "cat")
             && strcmp (json_object_get_string_member (event, "cat"), category) == 0);
}

static JsonObject *
find_event (JsonArray *events, const char *phase, const char *category, const char *task)
{
  for (guint i = 0; i < json_array_get_length (events); i++)
    {
      JsonObject *event = json_array_get_object_element (events, i);

      if (is_event (event, phase, category)
          && strcmp (json_object_get_string_member (json_object_get_object_member (event, "args"),
                                                    "task"),
                     task)
                 == 0)
        return event;
    }
  return NULL;
}

static guint
count_events (JsonArray *events, const char *phase, const char *category)
{
  guint n = 0;

  for (guint i = 0; i < json_array_get_length (events); i++)
    n += is_event (json_array_get_object_element (events, i), phase, category);
  return n;
}

static void
test_json_events (void)
{
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (JsonParser) parser = json_parser_new ();
  JsonObject *root, *event, *args, *metadata;
  JsonArray *events, *waited;
  guint64 deep = PTO_TASK_ID (2, 7);

  hand_init (&hand);
  fill_known (&hand);
  hand_submit (&hand, 20, deep, 1, PTO_CORE_TYPE_AIV);
  hand_run (&hand, AIV1, deep, 1234567, 1234570);
  hand_add (&hand, 0, PTO_TRACE_READY, 30, deep, 0, 0);
  hand_add (&hand, 0, PTO_TRACE_STALL, 40, PTO_TASK_NONE, 1 | 1 << 8, EPOCH + 90);
  hand_add (&hand, 0, PTO_TRACE_SCOPE, 5, PTO_TASK_NONE, 1, 1);
  hand_add (&hand, 0, PTO_TRACE_SCOPE, 300, PTO_TASK_NONE, 1, 0);
  trace = hand_trace (&hand, known_names, 2, "known");
  root = parse (parser, trace);
  events = json_object_get_array_member (root, "traceEvents");
  metadata = json_object_get_object_member (root, "metadata");

  g_assert_cmpstr (json_object_get_string_member (root, "displayTimeUnit"), ==, "ns");
  g_assert_cmpstr (json_object_get_string_member (metadata, "clock"), ==, "virtual");
  g_assert_cmpstr (json_object_get_string_member (metadata, "sha256"), ==,
                   pto_trace_get_sha256 (trace));
  g_assert_cmpuint (count_events (events, "X", "kernel"), ==, 6);
  g_assert_cmpuint (count_events (events, "X", "submit"), ==, 6);
  g_assert_cmpuint (count_events (events, "X", "scope"), ==, 1);
  g_assert_cmpuint (count_events (events, "X", "stall"), ==, 1);
  g_assert_cmpuint (count_events (events, "s", "dep"), ==, 4);
  g_assert_cmpuint (count_events (events, "f", "dep"), ==, 4);
  g_assert_cmpuint (count_events (events, "i", "scheduler"), ==, 12);
  g_assert_cmpuint (count_events (events, "C", NULL), >, 0);

  event = find_event (events, "X", "kernel", "2");
  g_assert_cmpstr (json_object_get_string_member (event, "name"), ==, "add");
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (event, "ts"), 0.120, 1e-9);
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (event, "dur"), 0.090, 1e-9);
  args = json_object_get_object_member (event, "args");
  waited = json_object_get_array_member (args, "waited_for");
  g_assert_cmpuint (json_array_get_length (waited), ==, 2);
  g_assert_cmpstr (json_array_get_string_element (waited, 0), ==, "0");
  g_assert_cmpstr (json_array_get_string_element (waited, 1), ==, "1");

  /* A task of another ring is named as in a picture; times keep their nanoseconds. */
  event = find_event (events, "X", "kernel", "2:7");
  g_assert_nonnull (event);
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (event, "ts"), 1234.567, 1e-9);
  args = json_object_get_object_member (event, "args");
  g_assert_cmpint (json_object_get_int_member (args, "ring"), ==, 2);
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (args, "ready_us"), 0.030, 1e-9);
  g_assert_cmpfloat_with_epsilon (json_object_get_double_member (args, "submit_us"), 0.020, 1e-9);
}

/* So many lines as a path of that class is drawn with. */
static guint
count_ticks (const char *svg, const char *class)
{
  g_autofree char *pattern = g_strdup_printf ("<path class=\"%s\" d=\"([^\"]*)\"", class);
  g_autoptr (GRegex) regex = g_regex_new (pattern, 0, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  guint n = 0;

  for (g_regex_match (regex, svg, 0, &match); g_match_info_matches (match);
       g_match_info_next (match, NULL))
    {
      g_autofree char *path = g_match_info_fetch (match, 1);

      for (const char *at = path; (at = strchr (at, 'M')) != NULL; at++)
        n++;
    }
  return n;
}

static void
hand_block (Hand *hand, guint core, guint64 task, guint block, guint64 start, guint64 end)
{
  hand_add (hand, 2 + core, PTO_TRACE_PART, start, task, 1, block);
  hand_add (hand, 2 + core, PTO_TRACE_RUN, start, task, core, EPOCH + end);
}

/* What a kernel has waited for others is no part of its core's time: 10 and 30 of 100 ns of one
 * core, more than there was of the other. */
static void
test_waits (void)
{
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autofree char *summary = NULL;
  JsonArray *events;
  guint n = 0;

  hand_init (&hand);
  hand_submit (&hand, 0, 0, 0, PTO_CORE_TYPE_AIV);
  for (guint i = 0; i < 3; i++)
    {
      const guint cores[] = { AIV0, AIV0, AIV1 };
      const guint64 starts[] = { 0, 50, 0 }, waits[] = { 10, 30, 1000 };

      hand_add (&hand, 2 + cores[i], PTO_TRACE_PART, starts[i], 0, 1, i);
      hand_add (&hand, 2 + cores[i], PTO_TRACE_WAIT, starts[i], 0, cores[i], waits[i]);
      hand_add (&hand, 2 + cores[i], PTO_TRACE_RUN, starts[i], 0, cores[i], EPOCH + starts[i] + 50);
    }
  trace = hand_trace (&hand, known_names, 2, "waits");
  g_assert_cmpfloat_with_epsilon (pto_trace_get_core_utilization (trace, AIV0), 0.6, 1e-9);
  g_assert_cmpfloat_with_epsilon (pto_trace_get_core_utilization (trace, AIV1), 0, 1e-9);
  g_assert_cmpfloat_with_epsilon (pto_trace_get_type_utilization (trace, PTO_CORE_TYPE_AIV), 0.3,
                                  1e-9);
  events = json_object_get_array_member (parse (parser, trace), "traceEvents");
  for (guint i = 0; i < json_array_get_length (events); i++)
    {
      JsonObject *event = json_array_get_object_element (events, i);
      JsonObject *args;

      if (!is_event (event, "X", "kernel"))
        continue;
      args = json_object_get_object_member (event, "args");
      n += (guint) (json_object_get_double_member (args, "waited_us") * 1000 + 0.5);
    }
  g_assert_cmpuint (n, ==, 10 + 30 + 50);
}

/* A task's blocks are given to a core range by range, and complete together. What is known of no
 * range is not guessed. */
static void
test_blocks (void)
{
  static const guint64 starts[] = { 30, 60, 40, 55, 75 };
  static const guint64 ends[] = { 60, 90, 55, 70, 80 };
  static const guint cores[] = { AIV0, AIV0, AIV1, AIV1, AIV1 };
  /* Of the ranges { 0, 1 }, { 2, 3 } and { 4 }; 0: not recorded; late: after its blocks began. */
  static const struct
  {
    guint64 dispatches[3];
    guint n_known;
  } cases[] = {
    { { 10, 20, 72 }, 3 }, { { 10, 20, 0 }, 2 }, { { 0, 0, 0 }, 0 },
    { { 99, 0, 0 }, 0 },   { { 0, 20, 72 }, 2 },
  };

  for (guint c = 0; c < G_N_ELEMENTS (cases); c++)
    {
      g_auto (Hand) hand = { 0 };
      g_autoptr (PtoTrace) trace = NULL;
      g_autoptr (JsonParser) parser = json_parser_new ();
      g_autofree char *svg = NULL;
      JsonArray *events;
      guint n = 0, n_shown = 0;

      hand_init (&hand);
      hand_submit (&hand, 0, 0, 0, PTO_CORE_TYPE_AIV);
      for (guint i = 0; i < 3; i++)
        if (cases[c].dispatches[i] != 0)
          {
            hand_add (&hand, 1, PTO_TRACE_DISPATCH, cases[c].dispatches[i], 0, i == 0 ? AIV0 : AIV1,
                      1);
            n_shown = 1; /* its end, by the scheduler that is known then */
          }
      for (guint i = 0; i < G_N_ELEMENTS (starts); i++)
        hand_block (&hand, cores[i], 0, i, starts[i], ends[i]);
      hand_add (&hand, 1, PTO_TRACE_COMPLETE, 95, 0, AIV0, 0);
      trace = hand_trace (&hand, known_names, 2, "blocks");
      events = json_object_get_array_member (parse (parser, trace), "traceEvents");
      for (guint i = 0; i < json_array_get_length (events); i++)
        {
          JsonObject *event = json_array_get_object_element (events, i);
          const char *name = json_object_get_string_member (event, "name");
          gboolean is_complete = strcmp (name, "complete") == 0;
          gint64 ns;

          if (!is_event (event, "i", "scheduler"))
            continue;
          ns = (gint64) (json_object_get_double_member (event, "ts") * 1000 + 0.5);
          g_assert_true (is_complete ? ns == 95 : ns == 10 || ns == 20 || ns == 72);
          n++;
        }
      g_assert_cmpuint (n, ==, cases[c].n_known + n_shown);
      g_assert_cmpuint (count_events (events, "X", "kernel"), ==, G_N_ELEMENTS (starts));
      svg = pto_trace_to_svg (trace);
      /* One of each is in the legend. */
      g_assert_cmpuint (count_ticks (svg, "dispatch"), ==, cases[c].n_known + 1);
      g_assert_cmpuint (count_ticks (svg, "complete"), ==, n_shown + 1);
    }
}

/* Of a task's blocks the one that ended last comes first, for it is the task's; the others as they
 * began, wherever that was. */
static void
test_order_of_blocks (void)
{
  static const guint64 starts[] = { 20, 70, 10, 40, 20, 30 };
  static const guint64 expected[] = { 70, 10, 20, 20, 30, 40 };
  static const guint cores[] = { AIV0, AIV0, AIV1, AIV1, AIC0, AIC0 };
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (GListModel) tasks = NULL;
  g_autoptr (GListModel) members = NULL;
  g_autoptr (PtoTraceTask) task = NULL;

  hand_init (&hand);
  hand_submit (&hand, 0, 0, 0, PTO_CORE_TYPE_AIV);
  for (guint i = 0; i < G_N_ELEMENTS (starts); i++)
    hand_block (&hand, cores[i], 0, i, starts[i], starts[i] + 5);
  trace = hand_trace (&hand, known_names, 2, "blocks");
  tasks = pto_trace_list_tasks (trace);
  g_assert_cmpuint (g_list_model_get_n_items (tasks), ==, 1);
  task = g_list_model_get_item (tasks, 0);
  members = pto_trace_task_list_members (task);
  g_assert_cmpuint (g_list_model_get_n_items (members), ==, G_N_ELEMENTS (expected));
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    {
      g_autoptr (PtoTraceTask) member = g_list_model_get_item (members, i);

      g_autoptr (GListModel) own = pto_trace_task_list_members (member);

      g_assert_cmpint (pto_trace_task_get_start_ns (member), ==, expected[i]);
      /* Only the task itself has members beside it. */
      g_assert_cmpuint (g_list_model_get_n_items (own), ==, i == 0 ? G_N_ELEMENTS (expected) : 1);
    }
}

/* A wait can be the last thing that is known: what is still open lasts as long as that. */
static void
test_wait_at_the_end (void)
{
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree char *json = NULL;

  hand_init (&hand);
  hand_add (&hand, 0, PTO_TRACE_SCOPE, 10, PTO_TASK_NONE, 1, 1);
  hand_submit (&hand, 20, 0, 0, PTO_CORE_TYPE_AIV);
  hand_add (&hand, 0, PTO_TRACE_STALL, 40, PTO_TASK_NONE, 1 | 1 << 8, EPOCH + 90);
  trace = hand_trace (&hand, known_names, 2, "wait");
  g_assert_cmpuint (pto_trace_get_elapsed_ns (trace), ==, 80);
  json = pto_trace_to_json (trace);
  g_assert_nonnull (strstr (json, "\"ts\":0.000,\"dur\":0.080,\"name\":\"scope\""));
}

/* The more cores, the lower their rows, but at 6 and at 24 they are as high as with one. */
static void
test_row_heights (void)
{
  double last = 100;

  for (guint n_clusters = 1; n_clusters <= 30; n_clusters++)
    {
      g_autoptr (PtoTrace) trace = attention_trace (3 * n_clusters, n_clusters, 512);
      g_autofree char *svg = pto_trace_to_svg (trace);
      g_autoptr (GRegex) regex = g_regex_new (
          "<rect class=\"k[0-9]+[^>]*\\bheight=\"([0-9.]+)\"[^>]*><title>task", 0, 0, NULL);
      g_autoptr (GMatchInfo) match = NULL;
      g_autofree char *height = NULL;
      guint n_cores = 3 * n_clusters;
      gboolean is_lower = n_cores == 9 || n_cores == 27 || n_cores == 51;

      g_assert_true (g_regex_match (regex, svg, 0, &match));
      height = g_match_info_fetch (match, 1);
      if (is_lower)
        g_assert_cmpfloat (g_ascii_strtod (height, NULL), <, last);
      else if (n_clusters > 1)
        g_assert_cmpfloat (g_ascii_strtod (height, NULL), ==, last);
      last = g_ascii_strtod (height, NULL);
    }
}

static void
test_json_rows (void)
{
  g_autoptr (PtoTrace) trace = attention_trace (16, 24, 64);
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autoptr (GHashTable) threads = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  JsonArray *events = json_object_get_array_member (parse (parser, trace), "traceEvents");
  guint processes = 0;

  for (guint i = 0; i < json_array_get_length (events); i++)
    {
      JsonObject *event = json_array_get_object_element (events, i);
      const char *name = json_object_get_string_member (event, "name");

      if (strcmp (name, "process_name") == 0)
        processes++;
      else if (strcmp (name, "thread_name") == 0)
        g_assert_true (g_hash_table_add (
            threads, g_strdup (json_object_get_string_member (
                         json_object_get_object_member (event, "args"), "name"))));
    }
  g_assert_cmpuint (processes, ==, 1 + 24);
  g_assert_true (g_hash_table_contains (threads, "orchestrator"));
  g_assert_true (g_hash_table_contains (threads, "scheduler 2"));
  g_assert_true (g_hash_table_contains (threads, "AIC23"));
  g_assert_true (g_hash_table_contains (threads, "AIV47"));
  g_assert_cmpuint (count_events (events, "X", "kernel"), ==, 208);
}

static void
test_json_is_deterministic (void)
{
  g_autoptr (PtoTrace) one = attention_trace (16, 24, 64);
  g_autoptr (PtoTrace) same = attention_trace (16, 24, 64);
  g_autofree char *first = pto_trace_to_json (one);
  g_autofree char *second = pto_trace_to_json (same);

  g_assert_cmpstr (first, ==, second);
}

static void
start_element (GMarkupParseContext *context, const char *name, const char **attributes,
               const char **values, gpointer data, GError **error)
{
  GHashTable *count = data;
  char *key = g_strdup (name);

  g_hash_table_replace (
      count, key, GUINT_TO_POINTER (GPOINTER_TO_UINT (g_hash_table_lookup (count, name)) + 1));
  for (guint i = 0; attributes[i] != NULL; i++)
    if (strcmp (attributes[i], "class") == 0 && values[i][0] == 'k')
      {
        key = g_strconcat (".", values[i], NULL);
        g_hash_table_replace (
            count, key, GUINT_TO_POINTER (GPOINTER_TO_UINT (g_hash_table_lookup (count, key)) + 1));
      }
}

static void
character_data (GMarkupParseContext *context, const char *text, gsize length, gpointer data,
                GError **error)
{
  GHashTable *count = data;

  g_hash_table_add (count, g_strdup_printf ("=%.*s", (int) length, text));
}

/* Counts elements ("rect"), bars of a kernel (".k0") and notes texts ("=AIC0"). */
static GHashTable *
read_svg (const char *text)
{
  static const GMarkupParser parser = { .start_element = start_element, .text = character_data };
  GHashTable *count = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GMarkupParseContext) context = g_markup_parse_context_new (&parser, 0, count, NULL);
  g_autoptr (GError) error = NULL;

  g_markup_parse_context_parse (context, text, -1, &error);
  g_assert_no_error (error);
  g_markup_parse_context_end_parse (context, &error);
  g_assert_no_error (error);
  return count;
}

static void
test_svg_rows (void)
{
  g_autoptr (PtoTrace) trace = attention_trace (16, 24, 64);
  g_autofree char *text = pto_trace_to_svg (trace);
  g_autoptr (GHashTable) count = read_svg (text);
  g_autofree char *folded = NULL;
  guint n_folded = 0;

  /* A cluster has the rows of all its cores, or, where nothing ran in it, none. */
  for (guint c = 0; c < 72; c++)
    {
      const guint *n_runs = pto_trace_get_analysis (trace)->n_core_runs + c - c % 3;
      gboolean has_work = n_runs[0] + n_runs[1] + n_runs[2] > 0;
      g_autofree char *name = pto_trace_dup_core_name (trace, c);
      g_autofree char *key = g_strconcat ("=", name, NULL);

      g_assert_true (g_hash_table_contains (count, key) == has_work);
      n_folded += c % 3 == 0 && !has_work;
    }
  g_assert_cmpuint (n_folded, >, 1);
  folded = g_strdup_printf (">%u clusters without work: ", n_folded);
  g_assert_nonnull (strstr (text, folded));
  g_assert_true (g_hash_table_contains (count, "=orchestrator"));
  g_assert_true (g_hash_table_contains (count, "=scheduler 2"));
  g_assert_true (g_hash_table_contains (count, "=QK  \303\22748"));
  g_assert_true (g_hash_table_contains (count, "=HUB  \303\22716"));
  /* Every run has its bar, and every kernel a swatch in the legend. */
  g_assert_cmpuint (GPOINTER_TO_UINT (g_hash_table_lookup (count, ".k0")), ==, 48 + 1);
  g_assert_cmpuint (GPOINTER_TO_UINT (g_hash_table_lookup (count, ".k4")), ==, 16 + 1);
  g_assert_nonnull (strstr (text, "virtual clock"));
  g_assert_nonnull (strstr (text, "class=\"critical\""));
}

static void
test_svg_size (void)
{
  g_autoptr (PtoTrace) middle = attention_trace (316, 24, 512);
  g_autoptr (PtoTrace) large = attention_trace (1600, 24, 512);
  g_autofree char *first = pto_trace_to_svg (middle);
  g_autofree char *second = pto_trace_to_svg (large);
  g_autoptr (GHashTable) one = read_svg (first);
  g_autoptr (GHashTable) two = read_svg (second);

  g_assert_cmpuint (g_hash_table_size (one), >, 0);
  g_assert_cmpuint (g_hash_table_size (two), >, 0);
  g_assert_cmpuint (strlen (first), <, 3000000);
  g_assert_cmpuint (strlen (second), <, 3000000);
}

/* Names are the user's: every byte there is. */
static void
test_wild_names (void)
{
  static const char *const names[]
      = { "a<b>&\"c'\\", "\001\037\t\n\177tail\377\376", NULL, "\357\277\277" };
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autofree char *svg = NULL;
  g_autoptr (GHashTable) count = NULL;
  JsonArray *events;

  hand_init (&hand);
  for (guint i = 0; i < 5; i++)
    {
      hand_submit (&hand, i, i, i, PTO_CORE_TYPE_AIV);
      hand_run (&hand, AIV0, i, 100 * i, 100 * i + 90);
    }
  trace = hand_trace (&hand, names, G_N_ELEMENTS (names), "<&\001\">\377");
  events = json_object_get_array_member (parse (parser, trace), "traceEvents");
  svg = pto_trace_to_svg (trace);
  count = read_svg (svg);

  g_assert_cmpstr (json_object_get_string_member (find_event (events, "X", "kernel", "0"), "name"),
                   ==, "a<b>&\"c'\\");
  g_assert_cmpstr (json_object_get_string_member (find_event (events, "X", "kernel", "2"), "name"),
                   ==, "kernel 2");
  g_assert_cmpstr (json_object_get_string_member (find_event (events, "X", "kernel", "4"), "name"),
                   ==, "kernel 4");
  for (const char *c = svg; *c != '\0'; c++)
    g_assert_true ((guchar) *c >= 0x20 || *c == '\n' || *c == '\t');
  g_assert_cmpuint (GPOINTER_TO_UINT (g_hash_table_lookup (count, "svg")), ==, 1);
}

static void
test_empty (void)
{
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (PtoTrace) bare = g_object_new (PTO_TYPE_TRACE, NULL);
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autofree char *svg = NULL;
  g_autofree char *bare_svg = NULL;
  g_autoptr (GHashTable) count = NULL;
  gsize n;

  hand_init (&hand);
  trace = hand_trace (&hand, NULL, 0, NULL);
  svg = pto_trace_to_svg (trace);
  bare_svg = pto_trace_to_svg (bare);
  count = read_svg (svg);
  g_hash_table_unref (read_svg (bare_svg));

  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 0);
  g_assert_cmpuint (pto_trace_get_elapsed_ns (trace), ==, 0);
  g_assert_null (pto_trace_dup_critical_path (trace, &n));
  g_assert_cmpuint (n, ==, 0);
  g_assert_true (g_hash_table_contains (count, "=1 cluster without work: 0"));
  g_assert_nonnull (parse (parser, trace));
}

static void
test_summary (void)
{
  g_autoptr (PtoTrace) trace = attention_trace (16, 24, 64);
  g_autofree char *summary = pto_trace_summarize (trace);

  g_assert_nonnull (strstr (summary, "attention\n208 tasks, 240 edges, "));
  g_assert_nonnull (strstr (summary, "us on the virtual clock\n"));
  g_assert_nonnull (strstr (summary, "24 AIC busy"));
  g_assert_nonnull (strstr (summary, "critical path: "));
  g_assert_nonnull (strstr (summary, "HUB"));
}

static guint
count_files (const char *directory)
{
  g_autoptr (GDir) dir = g_dir_open (directory, 0, NULL);
  guint n = 0;

  g_assert_nonnull (dir);
  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

static void
test_save (void)
{
  g_autoptr (PtoTrace) trace = attention_trace (2, 1, 64);
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = g_dir_make_tmp ("pto-trace-XXXXXX", &error);
  g_autofree char *json = NULL;
  g_autofree char *svg = NULL;
  g_autofree char *html = NULL;
  g_autofree char *page = NULL;
  g_autofree char *expected_page = pto_trace_to_html (trace);
  g_autofree char *other = NULL;
  g_autofree char *missing = NULL;
  g_autofree char *text = NULL;
  g_autofree char *expected = pto_trace_to_json (trace);
  mode_t mask = umask (0);
  GStatBuf status;

  g_assert_no_error (error);
  json = g_build_filename (directory, "run.json", NULL);
  svg = g_build_filename (directory, "run.SVG", NULL);
  html = g_build_filename (directory, "run.html", NULL);
  other = g_build_filename (directory, "run.png", NULL);
  missing = g_build_filename (directory, "nowhere", "run.json", NULL);

  g_assert_true (pto_trace_save (trace, json, &error));
  g_assert_no_error (error);
  g_assert_true (pto_trace_save (trace, svg, &error));
  g_assert_no_error (error);
  g_assert_true (pto_trace_save (trace, html, &error));
  g_assert_no_error (error);
  g_file_get_contents (json, &text, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (text, ==, expected);
  g_file_get_contents (html, &page, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (page, ==, expected_page);
  g_assert_cmpuint (count_files (directory), ==, 3);
  /* As any file that a program writes. */
  g_assert_cmpint (g_stat (json, &status), ==, 0);
  g_assert_cmphex (status.st_mode & 0777, ==, 0666);
  g_assert_cmpint (g_stat (svg, &status), ==, 0);
  g_assert_cmphex (status.st_mode & 0777, ==, 0666);
  umask (mask);

  g_assert_false (pto_trace_save (trace, other, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT);
  g_assert_nonnull (strstr (error->message, other));
  g_clear_error (&error);
  g_assert_false (pto_trace_save (trace, missing, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
  g_assert_nonnull (strstr (error->message, missing));
  g_assert_null (strchr (error->message, '\n'));
  g_clear_error (&error);
  g_assert_false (pto_trace_save_json (trace, directory, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_IS_DIRECTORY);
  g_assert_cmpuint (count_files (directory), ==, 3);

  g_unlink (json);
  g_unlink (svg);
  g_unlink (html);
  g_rmdir (directory);
}

/* A link keeps pointing; a pipe (or a device) is written to, never replaced. */
static void
test_save_special (void)
{
  g_autoptr (PtoTrace) trace = attention_trace (2, 1, 64);
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = g_dir_make_tmp ("pto-trace-XXXXXX", &error);
  g_autofree char *file = g_build_filename (directory, "file", NULL);
  g_autofree char *link = g_build_filename (directory, "link.json", NULL);
  g_autofree char *pipe = g_build_filename (directory, "pipe", NULL);
  g_autoptr (GFile) target = g_file_new_for_path (link);
  char head[5];
  int reader;

  g_assert_no_error (error);
  g_file_set_contents (file, "old", -1, &error);
  g_assert_no_error (error);
  g_file_make_symbolic_link (target, "file", NULL, &error);
  g_assert_no_error (error);
  g_assert_true (pto_trace_save (trace, link, &error));
  g_assert_no_error (error);
  g_assert_true (g_file_test (link, G_FILE_TEST_IS_SYMLINK));
  g_assert_cmpuint (count_files (directory), ==, 2);

  g_assert_cmpint (mkfifo (pipe, 0600), ==, 0);
  reader = open (pipe, O_RDONLY | O_NONBLOCK);
  g_assert_cmpint (reader, >=, 0);
  g_assert_true (pto_trace_save_svg (trace, pipe, &error));
  g_assert_no_error (error);
  g_assert_false (g_file_test (pipe, G_FILE_TEST_IS_REGULAR));
  g_assert_cmpint (read (reader, head, sizeof head), ==, sizeof head);
  g_assert_cmpmem (head, sizeof head, "<?xml", 5);
  close (reader);

  g_unlink (pipe);
  g_unlink (link);
  g_unlink (file);
  g_rmdir (directory);
}

/* No room: an error, no signal, the old file as it was, and nothing beside it. */
static void
test_save_no_room (void)
{
  g_autoptr (PtoTrace) trace = attention_trace (2, 1, 64);
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = g_dir_make_tmp ("pto-trace-XXXXXX", &error);
  g_autofree char *file = g_build_filename (directory, "run.json", NULL);
  g_autofree char *text = NULL;
  struct rlimit before, limit;
  sigset_t pending;

  g_assert_no_error (error);
  g_file_set_contents (file, "old", -1, &error);
  g_assert_no_error (error);
  getrlimit (RLIMIT_FSIZE, &before);
  limit = (struct rlimit){ .rlim_cur = 1024, .rlim_max = before.rlim_max };
  setrlimit (RLIMIT_FSIZE, &limit);
  g_assert_false (pto_trace_save (trace, file, &error));
  setrlimit (RLIMIT_FSIZE, &before);
  g_assert_nonnull (error);
  g_assert_true (g_str_has_prefix (error->message, file));
  g_assert_nonnull (strstr (error->message, g_strerror (EFBIG)));
  g_clear_error (&error);

  g_assert_false (pto_trace_save_svg (trace, "/dev/full", &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE);
  g_clear_error (&error);

  if (geteuid () == 0 || g_chmod (directory, 0500) != 0)
    g_test_message ("root may write everywhere");
  else
    {
      g_assert_false (pto_trace_save (trace, file, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED);
      g_clear_error (&error);
      g_chmod (directory, 0700);
    }
  sigpending (&pending);
  g_assert_cmpint (sigismember (&pending, SIGXFSZ), ==, 0);
  g_file_get_contents (file, &text, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (text, ==, "old");
  g_assert_cmpuint (count_files (directory), ==, 1);
  g_assert_false (g_file_test ("/dev/full", G_FILE_TEST_IS_REGULAR));

  g_unlink (file);
  g_rmdir (directory);
}

/* A trace outlives the records it was made from. */
static void
test_is_a_copy (void)
{
  g_auto (Hand) hand = { 0 };
  g_autoptr (PtoTrace) trace = NULL;
  char name[] = "mul";
  const char *names[] = { name, "add" };

  hand_init (&hand);
  fill_known (&hand);
  trace = hand_trace (&hand, names, 2, NULL);
  name[0] = 'X';
  for (guint b = 0; b < G_N_ELEMENTS (hand.buffers); b++)
    memset (hand.buffers[b]->data, 0, hand.buffers[b]->len * sizeof (struct pto_trace_record));
  {
    g_autofree char *summary = pto_trace_summarize (trace);

    g_assert_nonnull (strstr (summary, "  mul "));
  }
  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 5);
}

/* --- from another process --- */

static guint8 *
pack (PtoTrace *trace, gsize *size)
{
  guint8 *bytes;

  *size = pto_trace_get_packed_size (trace);
  /* One more, that nobody may touch. */
  bytes = g_malloc (*size + 1);
  bytes[*size] = 0xa5;
  pto_trace_pack (trace, bytes);
  g_assert_cmpuint (bytes[*size], ==, 0xa5);
  return bytes;
}

static PtoTrace *
packed_trace (void)
{
  g_auto (Hand) hand = { 0 };

  hand_init (&hand);
  fill_known (&hand);
  hand.views[0].dropped = 3;
  hand.views[4].dropped = 4;
  return hand_trace (&hand, known_names, 2, "packed");
}

static void
test_packed (void)
{
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (PtoTrace) trace = i == 0 ? packed_trace () : attention_trace (16, 6, 64);
      gsize size;
      g_autofree guint8 *bytes = pack (trace, &size);
      g_autoptr (PtoTrace) again = pto_trace_new_from_packed (bytes, size);
      g_autofree char *json = pto_trace_to_json (trace), *svg = pto_trace_to_svg (trace);
      g_autofree char *json_again = NULL, *svg_again = NULL;
      g_autofree guint8 *bytes_again = NULL;
      gsize size_again;

      g_assert_nonnull (again);
      json_again = pto_trace_to_json (again);
      svg_again = pto_trace_to_svg (again);
      g_assert_cmpstr (json_again, ==, json);
      g_assert_cmpstr (svg_again, ==, svg);
      g_assert_cmpstr (pto_trace_get_sha256 (again), ==, pto_trace_get_sha256 (trace));
      g_assert_cmpstr (pto_trace_get_title (again), ==, pto_trace_get_title (trace));
      g_assert_cmpuint (pto_trace_get_dropped (again), ==, i == 0 ? 7 : 0);
      g_assert_cmpuint (pto_trace_get_dropped (trace), ==, i == 0 ? 7 : 0);
      bytes_again = pack (again, &size_again);
      g_assert_cmpmem (bytes_again, size_again, bytes, size);
    }
}

/* Whatever the bytes say, they are refused, or are a record that can be shown. */
static gboolean
show (const guint8 *bytes, gsize size)
{
  g_autoptr (PtoTrace) trace = pto_trace_new_from_packed (bytes, size);
  g_autofree char *json = NULL, *svg = NULL, *text = NULL;

  if (trace == NULL)
    return FALSE;
  json = pto_trace_to_json (trace);
  svg = pto_trace_to_svg (trace);
  text = pto_trace_summarize (trace);
  g_assert_cmpuint (strlen (pto_trace_get_sha256 (trace)), ==, 64);
  return TRUE;
}

static void
test_packed_badly (void)
{
  g_autoptr (PtoTrace) trace = packed_trace ();
  gsize size;
  g_autofree guint8 *bytes = pack (trace, &size);
  const gsize head = 20 * sizeof (guint64);
  /* What everything behind it rests on: schedulers, cores, buffers, records. */
  const gsize lengths[] = { 0, 8, 13 * 8, 16 * 8 };
  const guint64 values[] = { 0, 1, 2, 7, G_MAXUINT32, G_MAXUINT64, G_GUINT64_CONSTANT (1) << 63 };

  for (gsize n = 0; n < size; n++)
    {
      /* Of that size, so that a byte too much is found. */
      g_autofree guint8 *part = g_memdup2 (bytes, n);

      g_assert_null (pto_trace_new_from_packed (part, n));
    }
  /* Every word of what is not a record, some of the others. */
  for (gsize at = 0; at + 4 <= size; at += at < head + 11 * sizeof (guint64) ? 4 : 12)
    for (guint v = 0; v < G_N_ELEMENTS (values) + 2; v++)
      {
        g_autofree guint8 *part = g_memdup2 (bytes, size);
        gboolean is_shown;
        guint32 value;

        memcpy (&value, part + at, sizeof value);
        value = v < G_N_ELEMENTS (values)    ? (guint32) values[v]
                : v == G_N_ELEMENTS (values) ? value + 1
                                             : value - 1;
        memcpy (part + at, &value, sizeof value);
        /* Wide ones as well, where there is room. */
        if (v < G_N_ELEMENTS (values) && at % 8 == 0 && at + 8 <= size)
          memcpy (part + at, &values[v], sizeof values[v]);
        is_shown = show (part, size);
        for (guint i = 0; i < G_N_ELEMENTS (lengths); i++)
          g_assert_false (is_shown && at == lengths[i] && memcmp (part, bytes, size) != 0);
      }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/trace/counts", test_counts);
  g_test_add_func ("/pto/trace/critical-path", test_critical_path);
  g_test_add_func ("/pto/trace/critical-path/through-order", test_critical_path_through_order);
  g_test_add_func ("/pto/trace/critical-path/attention", test_critical_path_attention);
  g_test_add_func ("/pto/trace/utilization", test_utilization);
  g_test_add_func ("/pto/trace/members", test_members);
  g_test_add_func ("/pto/trace/sha256", test_sha256);
  g_test_add_func ("/pto/trace/sha256/origin", test_sha256_origin);
  g_test_add_func ("/pto/trace/dropped", test_dropped);
  g_test_add_func ("/pto/trace/blocks", test_blocks);
  g_test_add_func ("/pto/trace/waits", test_waits);
  g_test_add_func ("/pto/trace/order-of-blocks", test_order_of_blocks);
  g_test_add_func ("/pto/trace/wait-at-the-end", test_wait_at_the_end);
  g_test_add_func ("/pto/trace/row-heights", test_row_heights);
  g_test_add_func ("/pto/trace/json/events", test_json_events);
  g_test_add_func ("/pto/trace/json/rows", test_json_rows);
  g_test_add_func ("/pto/trace/json/deterministic", test_json_is_deterministic);
  g_test_add_func ("/pto/trace/svg/rows", test_svg_rows);
  g_test_add_func ("/pto/trace/svg/size", test_svg_size);
  g_test_add_func ("/pto/trace/wild-names", test_wild_names);
  g_test_add_func ("/pto/trace/empty", test_empty);
  g_test_add_func ("/pto/trace/summary", test_summary);
  g_test_add_func ("/pto/trace/save", test_save);
  g_test_add_func ("/pto/trace/save/special", test_save_special);
  g_test_add_func ("/pto/trace/save/no-room", test_save_no_room);
  g_test_add_func ("/pto/trace/is-a-copy", test_is_a_copy);
  g_test_add_func ("/pto/trace/packed", test_packed);
  g_test_add_func ("/pto/trace/packed-badly", test_packed_badly);
  return g_test_run ();
}
