/* compare-text.c: how is a comparison of two traces told to people?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of all tables only the rows in which something differs.
 */
#include "config.h"

#include "compare.h"

#include "common/printable.h"
#include "common/text.h"

#include <string.h>

enum
{
  WIDTH = 12 /* of a column of numbers */
};

/* Members of an answer, which are words for people as well. */
static const char *const sides[] = { N_ ("before"), N_ ("after") };

static gint64
get_both (JsonObject *object, const char *name, const char *side)
{
  return json_object_get_int_member (json_object_get_object_member (object, name), side);
}

static gint64
get_change (JsonObject *object, const char *name)
{
  return get_both (object, name, "change");
}

/* "+1.250", "-0.500", "0.000" */
static char *
dup_change (gint64 ns)
{
  g_autofree char *us = pto_trace_dup_us ((guint64) ABS (ns));

  return g_strconcat (ns > 0 ? "+" : ns < 0 ? "-" : "", us, NULL);
}

static void
add_change (PtoAnswerTable *table, gint64 ns)
{
  g_autofree char *us = dup_change (ns);

  pto_answer_table_add (table, WIDTH, us);
}

/* Room for what all of them are called. */
static void
reserve (PtoAnswerTable *table, JsonArray *rows)
{
  for (guint i = 0; i < json_array_get_length (rows); i++)
    pto_answer_table_reserve (
        table, pto_answer_get_name (json_array_get_object_element (rows, i), "kernel"));
}

/* Its name, its kernel, and where it was submitted. */
static void
append_task (GString *text, JsonObject *task)
{
  g_autofree char *name = pto_answer_dup_task_name (task);

  g_string_append_printf (text, _ ("task %s (%s)"), name, pto_answer_get_name (task, "kernel"));
  pto_answer_append_place (text, task);
}

static void
append_head (GString *text, JsonObject *object)
{
  static const struct
  {
    const char *member;
    char *(*count) (guint64 n);
  } counts[] = { { "tasks", pto_trace_count_tasks }, { "edges", pto_trace_count_edges } };
  int width = (int) MAX (pto_count_columns (_ (sides[0])), pto_count_columns (_ (sides[1])));

  for (guint s = 0; s < PTO_N_SIDES; s++)
    {
      JsonObject *side = json_object_get_object_member (object, sides[s]);
      const char *title = json_object_get_string_member (side, "title");
      const char *clock = json_object_get_string_member (side, "clock");
      g_autofree char *elapsed = pto_trace_tell_elapsed (
          (guint64) get_both (object, "elapsed_ns", sides[s]), strcmp (clock, "virtual") == 0);

      pto_append_padded (text, _ (sides[s]), -MAX (width, 7));
      g_string_append_printf (text, " %s%s", title, title[0] != '\0' ? _ (": ") : "");
      for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
        if (json_object_has_member (object, counts[i].member))
          {
            g_autofree char *n
                = counts[i].count ((guint64) get_both (object, counts[i].member, sides[s]));

            g_string_append_printf (text, "%s%s", n, _ (", "));
          }
      g_string_append_printf (text, "%s\n", elapsed);
    }
}

static void
append_elapsed (GString *text, JsonObject *object)
{
  gint64 before = get_both (object, "elapsed_ns", "before");
  gint64 change = get_change (object, "elapsed_ns");
  g_autofree char *us = pto_trace_dup_us ((guint64) ABS (change));

  if (change == 0)
    {
      g_string_append (text, _ ("took as long\n"));
      return;
    }
  g_string_append_printf (text, change > 0 ? _ ("took %s us longer") : _ ("took %s us less"), us);
  if (before > 0)
    {
      g_string_append (text, " (");
      pto_trace_append_fixed (text, 100.0 * (double) ABS (change) / (double) before, 1);
      g_string_append (text, " %)");
    }
  g_string_append_c (text, '\n');
}

static void
append_cores (GString *text, JsonObject *object)
{
  JsonArray *cores = json_object_get_array_member (object, "cores");

  for (guint i = 0; i < json_array_get_length (cores); i++)
    {
      JsonObject *type = json_array_get_object_element (cores, i);
      JsonObject *shares = json_object_get_object_member (type, "utilization");
      const char *name = json_object_get_string_member (type, "type");
      g_autofree char *before
          = pto_trace_tell_busy (name, (guint) get_both (type, "n", "before"),
                                 json_object_get_double_member (shares, "before"));
      g_autofree char *after
          = pto_trace_tell_busy (name, (guint) get_both (type, "n", "after"),
                                 json_object_get_double_member (shares, "after"));

      g_string_append_printf (text, _ ("%s, then %s\n"), before, after);
    }
}

static void
append_moved (GString *text, JsonObject *object)
{
  static const char *const kinds[][2] = { { "bytes_sent", N_ ("bytes sent") },
                                          { "bytes_received", N_ ("bytes received") },
                                          { "bytes_saved", N_ ("bytes that were there already") } };

  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (json_object_has_member (object, kinds[i][0]) && get_change (object, kinds[i][0]) != 0)
      g_string_append_printf (text, _ ("%s: %" PRIi64 ", then %" PRIi64 "\n"), _ (kinds[i][1]),
                              get_both (object, kinds[i][0], "before"),
                              get_both (object, kinds[i][0], "after"));
}

/* --- tables --- */

static gboolean
differ_waits (JsonObject *row)
{
  JsonObject *waits;

  if (!json_object_has_member (row, "waits"))
    return FALSE;
  waits = json_object_get_object_member (row, "waits");
  for (guint i = 0; i < PTO_ANSWER_REASONS; i++)
    if (get_change (waits, pto_answer_reasons[i].name) != 0)
      return TRUE;
  return FALSE;
}

static void
add_wait_headings (PtoAnswerTable *table, JsonObject *row)
{
  for (guint i = 0; json_object_has_member (row, "waits") && i < PTO_ANSWER_REASONS; i++)
    pto_answer_table_add (table, WIDTH, _ (pto_answer_reasons[i].heading));
}

static void
add_waits (PtoAnswerTable *table, JsonObject *row)
{
  for (guint i = 0; json_object_has_member (row, "waits") && i < PTO_ANSWER_REASONS; i++)
    add_change (table, get_change (json_object_get_object_member (row, "waits"),
                                   pto_answer_reasons[i].name));
}

/* Of the path: 0 where all of it was recorded. */
static gint64
get_unknown (JsonObject *row)
{
  return json_object_has_member (row, "not_recorded_ns") ? get_change (row, "not_recorded_ns") : 0;
}

static gboolean
differs_path (JsonObject *row)
{
  return get_change (row, "kernels_ns") != 0 || differ_waits (row) || get_unknown (row) != 0;
}

static void
add_path_row (PtoAnswerTable *table, const char *name, JsonObject *row, gboolean has_unknown)
{
  pto_answer_table_begin_row (table, name);
  add_change (table, get_change (row, "kernels_ns"));
  add_waits (table, row);
  if (has_unknown)
    add_change (table, get_unknown (row));
  add_change (table, json_object_get_int_member (row, "change_ns"));
}

static void
append_path (GString *text, JsonObject *object)
{
  JsonObject *path = json_object_get_object_member (object, "critical_path");
  JsonArray *kernels = json_object_get_array_member (path, "kernels");
  gboolean has_unknown = json_object_has_member (path, "not_recorded_ns");
  gboolean differs = differs_path (path);
  PtoAnswerTable *table;

  for (guint i = 0; i < json_array_get_length (kernels); i++)
    differs |= differs_path (json_array_get_object_element (kernels, i));
  if (!differs)
    return;
  g_string_append_printf (
      text,
      _ ("critical path of %" PRIi64 " tasks, then %" PRIi64 ": by which it is longer, in us\n"),
      get_both (path, "tasks", "before"), get_both (path, "tasks", "after"));
  table = pto_answer_table_new ();
  reserve (table, kernels);
  pto_answer_table_begin_row (table, "");
  pto_answer_table_add (table, WIDTH, _ ("in kernels"));
  add_wait_headings (table, path);
  if (has_unknown)
    pto_answer_table_add (table, WIDTH, _ ("not recorded"));
  pto_answer_table_add (table, WIDTH, _ ("in all"));
  for (guint i = 0; i < json_array_get_length (kernels); i++)
    {
      JsonObject *row = json_array_get_object_element (kernels, i);

      if (differs_path (row))
        add_path_row (table, pto_answer_get_name (row, "kernel"), row, has_unknown);
    }
  add_path_row (table, _ ("all"), path, has_unknown);
  pto_answer_table_end (table, text);
}

static void
begin_kernels (GString *text, PtoAnswerTable *table)
{
  const char *const headings[] = { _ ("median"), "", _ ("in all"), "", _ ("change") };

  g_string_append (text, _ ("runs of kernels, before and after, the times in us\n"));
  pto_answer_table_begin_row (table, "");
  pto_answer_table_add (table, 8, C_ ("column", "runs"));
  pto_answer_table_add (table, 8, "");
  for (guint i = 0; i < G_N_ELEMENTS (headings); i++)
    pto_answer_table_add (table, WIDTH, headings[i]);
}

static void
append_kernels (GString *text, JsonObject *object)
{
  JsonArray *kernels = json_object_get_array_member (object, "kernels");
  PtoAnswerTable *table = pto_answer_table_new ();

  reserve (table, kernels);
  for (guint i = 0; i < json_array_get_length (kernels); i++)
    {
      JsonObject *row = json_array_get_object_element (kernels, i);

      if (get_change (row, "tasks") == 0 && get_change (row, "runs") == 0
          && get_change (row, "median_ns") == 0 && get_change (row, "busy_ns") == 0)
        continue;
      if (table->names->len == 0)
        begin_kernels (text, table);
      pto_answer_table_begin_row (table, pto_answer_get_name (row, "kernel"));
      for (guint s = 0; s < PTO_N_SIDES; s++)
        pto_answer_table_add_number (table, 8, (guint64) get_both (row, "runs", sides[s]));
      for (guint s = 0; s < PTO_N_SIDES; s++)
        pto_answer_table_add_us (table, WIDTH, (guint64) get_both (row, "median_ns", sides[s]));
      for (guint s = 0; s < PTO_N_SIDES; s++)
        pto_answer_table_add_us (table, WIDTH, (guint64) get_both (row, "busy_ns", sides[s]));
      add_change (table, get_change (row, "busy_ns"));
    }
  pto_answer_table_end (table, text);
}

static void
append_kernel_waits (GString *text, JsonObject *object)
{
  JsonArray *kernels = json_object_get_array_member (object, "kernels");
  PtoAnswerTable *table = pto_answer_table_new ();

  reserve (table, kernels);
  for (guint i = 0; i < json_array_get_length (kernels); i++)
    {
      JsonObject *row = json_array_get_object_element (kernels, i);

      if (!differ_waits (row))
        continue;
      if (table->names->len == 0)
        {
          g_string_append (text, _ ("what tasks waited for since the submit before theirs, by "
                                    "which it is longer, in us\n"));
          pto_answer_table_begin_row (table, "");
          add_wait_headings (table, row);
        }
      pto_answer_table_begin_row (table, pto_answer_get_name (row, "kernel"));
      add_waits (table, row);
    }
  pto_answer_table_end (table, text);
}

/* "2 runs of 5 tasks in 12.500 us" */
static char *
tell_worker (JsonObject *row, const char *side)
{
  g_autofree char *runs = pto_trace_count_runs ((guint64) get_both (row, "runs", side));
  g_autofree char *tasks = pto_trace_count_tasks ((guint64) get_both (row, "tasks", side));
  g_autofree char *us = pto_trace_dup_us ((guint64) get_both (row, "elapsed_ns", side));

  return g_strdup_printf (_ ("%s of %s in %s us"), runs, tasks, us);
}

static void
append_workers (GString *text, JsonObject *object)
{
  JsonArray *workers;
  PtoAnswerTable *table;

  if (!json_object_has_member (object, "workers"))
    return;
  workers = json_object_get_array_member (object, "workers");
  table = pto_answer_table_new ();
  for (guint i = 0; i < json_array_get_length (workers); i++)
    {
      JsonObject *row = json_array_get_object_element (workers, i);
      const char *name = json_object_get_string_member (row, "worker");
      g_autofree char *before = tell_worker (row, "before");
      g_autofree char *after = tell_worker (row, "after");
      g_autofree char *both = g_strdup_printf (_ ("%s, then %s\n"), before, after);

      pto_answer_table_reserve (table, name);
      if (get_change (row, "runs") == 0 && get_change (row, "tasks") == 0
          && get_change (row, "elapsed_ns") == 0)
        continue;
      pto_answer_table_begin_row (table, name);
      pto_answer_table_add (table, 0, "");
      pto_answer_table_add (table, 0, g_strchomp (both));
    }
  pto_answer_table_end (table, text);
}

/* --- task by task --- */

static void
append_only (GString *text, JsonObject *object, const char *member)
{
  JsonObject *only = json_object_get_object_member (object, member);
  JsonArray *tasks = json_object_get_array_member (only, "tasks");
  gint64 n = json_object_get_int_member (only, "n");

  if (n == 0)
    return;
  g_string_append_printf (
      text,
      strcmp (member, "only_before") == 0
          ? P_ ("only before: %" PRIi64 " task\n", "only before: %" PRIi64 " tasks\n", (gulong) n)
          : P_ ("only after: %" PRIi64 " task\n", "only after: %" PRIi64 " tasks\n", (gulong) n),
      n);
  for (guint i = 0; i < json_array_get_length (tasks); i++)
    {
      g_string_append (text, "  ");
      append_task (text, json_array_get_object_element (tasks, i));
      g_string_append_c (text, '\n');
    }
  if (n > (gint64) json_array_get_length (tasks))
    g_string_append (text, "  ...\n");
}

static void
append_changed (GString *text, JsonObject *object)
{
  JsonObject *changed = json_object_get_object_member (object, "changed");
  JsonArray *tasks = json_object_get_array_member (changed, "tasks");
  gint64 n = json_object_get_int_member (changed, "n");
  gint64 matched = json_object_get_int_member (object, "matched");
  gint64 moved = json_object_get_int_member (object, "moved");

  g_string_append_printf (text,
                          P_ ("%" PRIi64 " task in both: %" PRIi64 " took another time, %" PRIi64
                              " ran at another time or on another core\n",
                              "%" PRIi64 " tasks in both: %" PRIi64 " took another time, %" PRIi64
                              " ran at another time or on another core\n",
                              (gulong) matched),
                          matched, n, moved);
  for (guint i = 0; i < json_array_get_length (tasks); i++)
    {
      JsonObject *task = json_array_get_object_element (tasks, i);
      g_autofree char *us = dup_change (get_change (task, "busy_ns"));

      g_string_append_printf (text, " %*s us ", WIDTH, us);
      append_task (text, task);
      g_string_append_c (text, '\n');
    }
  if (n > (gint64) json_array_get_length (tasks))
    g_string_append_printf (text, " %*s\n", WIDTH, "...");
}

/* Adds those of one side to what is there of the other. */
static void
append_producers (GString *text, JsonObject *first, const char *member)
{
  JsonArray *ids = json_object_get_array_member (first, member);
  g_autoptr (GString) list = g_string_new (NULL);
  guint n = json_array_get_length (ids);

  if (n == 0)
    return;
  for (guint i = 0; i < MIN (n, 3); i++)
    {
      guint64 id = g_ascii_strtoull (json_array_get_string_element (ids, i), NULL, 10);
      g_autofree char *name = pto_trace_dup_task_name (id);

      g_string_append (list, i == 0 ? "" : _ (", "));
      g_string_append_printf (list, _ ("task %s"), name);
    }
  if (n > 3)
    g_string_append_printf (list, _ (" and %u more"), n - 3);
  g_string_append (text, text->len > 0 ? _ (", ") : "");
  g_string_append_printf (
      text, strcmp (member, "only_before") == 0 ? _ ("for %s before") : _ ("for %s after"),
      list->str);
}

static void
append_rewired (GString *text, JsonObject *object)
{
  g_autoptr (GString) task = g_string_new (NULL);
  g_autoptr (GString) producers = g_string_new (NULL);
  JsonObject *rewired, *first;
  gint64 n;

  if (!json_object_has_member (object, "rewired"))
    return;
  rewired = json_object_get_object_member (object, "rewired");
  n = json_object_get_int_member (rewired, "n");
  if (n == 0)
    return;
  first = json_object_get_object_member (rewired, "first");
  append_task (task, first);
  append_producers (producers, first, "only_before");
  append_producers (producers, first, "only_after");
  g_string_append_printf (text,
                          P_ ("%" PRIi64 " of them waits for other tasks, first %s: %s\n",
                              "%" PRIi64 " of them wait for other tasks, first %s: %s\n",
                              (gulong) n),
                          n, task->str, producers->str);
}

/* What is not compared for want of records. */
static void
append_limits (GString *text, JsonObject *object)
{
  for (guint s = 0; s < PTO_N_SIDES; s++)
    {
      JsonObject *side = json_object_get_object_member (object, sides[s]);
      guint64 level = pto_answer_get_number (side, "trace_level");
      guint64 dropped = pto_answer_get_number (side, "dropped");

      if (level == PTO_TRACE_LEVEL_RUNS)
        g_string_append_printf (
            text, _ ("%s, waits were not recorded, nor dependencies: trace-level was 1\n"),
            _ (sides[s]));
      else if (level == PTO_TRACE_LEVEL_SCHEDULE)
        g_string_append_printf (text, _ ("%s, dependencies were not recorded: trace-level was 2\n"),
                                _ (sides[s]));
      if (dropped > 0)
        g_string_append_printf (text,
                                _ ("%s, %" PRIu64 " records were dropped, and what they said is "
                                   "not in this: set trace-records to more\n"),
                                _ (sides[s]), dropped);
    }
}

static gboolean
have_same (JsonObject *object, const char *member)
{
  JsonObject *before = json_object_get_object_member (object, "before");
  JsonObject *after = json_object_get_object_member (object, "after");

  return json_node_equal (json_object_get_member (before, member),
                          json_object_get_member (after, member));
}

void
pto_trace_append_comparison (GString *text, JsonObject *object)
{
  append_head (text, object);
  if (!have_same (object, "clock"))
    g_string_append (text, _ ("the clocks are not the same: times of one do not say what those of "
                              "the other would be\n"));
  if (!have_same (object, "level"))
    g_string_append (text, _ ("the workers are of different levels\n"));
  if (json_object_get_boolean_member (object, "same"))
    {
      g_string_append (text, _ ("nothing differs\n"));
      append_limits (text, object);
      return;
    }
  append_elapsed (text, object);
  append_cores (text, object);
  append_moved (text, object);
  append_path (text, object);
  append_kernels (text, object);
  append_kernel_waits (text, object);
  append_workers (text, object);
  append_changed (text, object);
  append_only (text, object, "only_before");
  append_only (text, object, "only_after");
  append_rewired (text, object);
  append_limits (text, object);
}
