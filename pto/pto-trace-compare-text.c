/* pto-trace-compare-text.c: how is a comparison of two traces told to people?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of all tables only the rows in which something differs.
 */
#include "config.h"

#include "pto-trace-compare-private.h"

#include <string.h>

enum
{
  WIDTH = 12 /* of a column of numbers */
};

static const char *const sides[] = { "before", "after" };

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
static void
append_change (GString *text, int width, gint64 ns)
{
  g_autoptr (GString) us = g_string_new (ns > 0 ? "+" : ns < 0 ? "-" : "");

  pto_trace_append_us (us, (guint64) ABS (ns));
  g_string_append_printf (text, " %*s", width, us->str);
}

static void
append_time (GString *text, int width, gint64 ns)
{
  g_autoptr (GString) us = g_string_new (NULL);

  pto_trace_append_us (us, (guint64) ns);
  g_string_append_printf (text, " %*s", width, us->str);
}

/* A name, and blanks up to a width in characters. */
static void
append_name (GString *text, const char *name, glong width)
{
  g_string_append_printf (text, "  %s%*s", name, (int) MAX (width - g_utf8_strlen (name, -1), 0),
                          "");
}

static glong
get_widest (JsonArray *rows, const char *member, glong widest)
{
  for (guint i = 0; i < json_array_get_length (rows); i++)
    {
      JsonObject *row = json_array_get_object_element (rows, i);

      widest = MAX (widest, g_utf8_strlen (json_object_get_string_member (row, member), -1));
    }
  return widest;
}

static void
append_task (GString *text, JsonObject *task)
{
  const char *place = json_object_get_string_member_with_default (task, "submitted_at", NULL);
  const char *file = place != NULL ? strrchr (place, '/') : NULL;
  guint64 id = g_ascii_strtoull (json_object_get_string_member (task, "task"), NULL, 10);
  g_autofree char *name = pto_trace_dup_task_name (id);

  g_string_append_printf (text, "task %s (%s)", name,
                          json_object_get_string_member (task, "kernel"));
  if (place != NULL)
    g_string_append_printf (text, ", submitted at %s", file != NULL ? file + 1 : place);
}

static void
append_head (GString *text, JsonObject *object)
{
  static const struct
  {
    const char *member;
    const char *one;
    const char *many;
  } counts[] = { { "tasks", "task", "tasks" }, { "edges", "edge", "edges" } };

  for (guint s = 0; s < PTO_N_SIDES; s++)
    {
      JsonObject *side = json_object_get_object_member (object, sides[s]);
      const char *title = json_object_get_string_member (side, "title");

      g_string_append_printf (text, "%-7s %s%s", sides[s], title, title[0] != '\0' ? ": " : "");
      for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
        if (json_object_has_member (object, counts[i].member))
          {
            gint64 n = get_both (object, counts[i].member, sides[s]);

            g_string_append_printf (text, "%" G_GINT64_FORMAT " %s, ", n,
                                    n == 1 ? counts[i].one : counts[i].many);
          }
      pto_trace_append_us (text, (guint64) get_both (object, "elapsed_ns", sides[s]));
      g_string_append_printf (text, " us on the %s clock\n",
                              json_object_get_string_member (side, "clock"));
    }
}

static void
append_elapsed (GString *text, JsonObject *object)
{
  gint64 before = get_both (object, "elapsed_ns", "before");
  gint64 change = get_change (object, "elapsed_ns");

  if (change == 0)
    {
      g_string_append (text, "took as long\n");
      return;
    }
  g_string_append (text, "took ");
  pto_trace_append_us (text, (guint64) ABS (change));
  g_string_append_printf (text, " us %s", change > 0 ? "longer" : "less");
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

      for (guint s = 0; s < PTO_N_SIDES; s++)
        {
          gint64 n = get_both (type, "n", sides[s]);
          gboolean is_word = g_ascii_islower (name[strlen (name) - 1]);

          g_string_append_printf (text, "%s%" G_GINT64_FORMAT " %s%s busy %.0f %%",
                                  s == 0 ? "" : ", then ", n, name, is_word && n != 1 ? "s" : "",
                                  100.0 * json_object_get_double_member (shares, sides[s]));
        }
      g_string_append_c (text, '\n');
    }
}

/* --- tables --- */

static gboolean
differ_waits (JsonObject *row)
{
  JsonObject *waits;

  if (!json_object_has_member (row, "waits"))
    return FALSE;
  waits = json_object_get_object_member (row, "waits");
  for (guint i = 0; i < PTO_TRACE_N_REASONS; i++)
    if (get_change (waits, pto_trace_reasons[i].name) != 0)
      return TRUE;
  return FALSE;
}

static void
append_wait_headings (GString *text, JsonObject *row)
{
  for (guint i = 0; json_object_has_member (row, "waits") && i < PTO_TRACE_N_REASONS; i++)
    g_string_append_printf (text, " %*s", WIDTH, pto_trace_reasons[i].heading);
}

static void
append_waits (GString *text, JsonObject *row)
{
  for (guint i = 0; json_object_has_member (row, "waits") && i < PTO_TRACE_N_REASONS; i++)
    append_change (
        text, WIDTH,
        get_change (json_object_get_object_member (row, "waits"), pto_trace_reasons[i].name));
}

static gboolean
differs_path (JsonObject *row)
{
  return get_change (row, "kernels_ns") != 0 || differ_waits (row)
         || (json_object_has_member (row, "not_recorded_ns")
             && get_change (row, "not_recorded_ns") != 0);
}

static void
append_path_row (GString *text, const char *name, glong width, JsonObject *row,
                 gboolean has_unknown)
{
  append_name (text, name, width);
  append_change (text, WIDTH, get_change (row, "kernels_ns"));
  append_waits (text, row);
  if (has_unknown)
    append_change (
        text, WIDTH,
        json_object_has_member (row, "not_recorded_ns") ? get_change (row, "not_recorded_ns") : 0);
  append_change (text, WIDTH, json_object_get_int_member (row, "change_ns"));
  g_string_append_c (text, '\n');
}

static void
append_path (GString *text, JsonObject *object)
{
  JsonObject *path = json_object_get_object_member (object, "critical_path");
  JsonArray *kernels = json_object_get_array_member (path, "kernels");
  gboolean has_unknown = json_object_has_member (path, "not_recorded_ns");
  glong width = get_widest (kernels, "kernel", (glong) strlen ("all"));
  gboolean differs = differs_path (path);

  for (guint i = 0; i < json_array_get_length (kernels); i++)
    differs |= differs_path (json_array_get_object_element (kernels, i));
  if (!differs)
    return;
  g_string_append_printf (text,
                          "critical path of %" G_GINT64_FORMAT " tasks, then %" G_GINT64_FORMAT
                          ": by which it is longer, in us\n",
                          get_both (path, "tasks", "before"), get_both (path, "tasks", "after"));
  g_string_append_printf (text, "  %*s %*s", (int) width, "", WIDTH, "in kernels");
  append_wait_headings (text, path);
  if (has_unknown)
    g_string_append_printf (text, " %*s", WIDTH, "not recorded");
  g_string_append_printf (text, " %*s\n", WIDTH, "in all");
  for (guint i = 0; i < json_array_get_length (kernels); i++)
    {
      JsonObject *row = json_array_get_object_element (kernels, i);

      if (differs_path (row))
        append_path_row (text, json_object_get_string_member (row, "kernel"), width, row,
                         has_unknown);
    }
  append_path_row (text, "all", width, path, has_unknown);
}

static void
append_kernels (GString *text, JsonObject *object)
{
  JsonArray *kernels = json_object_get_array_member (object, "kernels");
  glong width = get_widest (kernels, "kernel", 0);
  gboolean has_head = FALSE;

  for (guint i = 0; i < json_array_get_length (kernels); i++)
    {
      JsonObject *row = json_array_get_object_element (kernels, i);

      if (get_change (row, "tasks") == 0 && get_change (row, "runs") == 0
          && get_change (row, "median_ns") == 0 && get_change (row, "busy_ns") == 0)
        continue;
      if (!has_head)
        g_string_append_printf (text,
                                "runs of kernels, before and after, the times in us\n"
                                "  %*s %8s %8s %*s %*s %*s %*s %*s\n",
                                (int) width, "", "runs", "", WIDTH, "median", WIDTH, "", WIDTH,
                                "in all", WIDTH, "", WIDTH, "change");
      has_head = TRUE;
      append_name (text, json_object_get_string_member (row, "kernel"), width);
      for (guint s = 0; s < PTO_N_SIDES; s++)
        g_string_append_printf (text, " %8" G_GINT64_FORMAT, get_both (row, "runs", sides[s]));
      for (guint s = 0; s < PTO_N_SIDES; s++)
        append_time (text, WIDTH, get_both (row, "median_ns", sides[s]));
      for (guint s = 0; s < PTO_N_SIDES; s++)
        append_time (text, WIDTH, get_both (row, "busy_ns", sides[s]));
      append_change (text, WIDTH, get_change (row, "busy_ns"));
      g_string_append_c (text, '\n');
    }
}

static void
append_kernel_waits (GString *text, JsonObject *object)
{
  JsonArray *kernels = json_object_get_array_member (object, "kernels");
  glong width = get_widest (kernels, "kernel", 0);
  gboolean has_head = FALSE;

  for (guint i = 0; i < json_array_get_length (kernels); i++)
    {
      JsonObject *row = json_array_get_object_element (kernels, i);

      if (!differ_waits (row))
        continue;
      if (!has_head)
        {
          g_string_append_printf (text,
                                  "what tasks waited for since the submit before theirs, by which "
                                  "it is longer, in us\n  %*s",
                                  (int) width, "");
          append_wait_headings (text, row);
          g_string_append_c (text, '\n');
        }
      has_head = TRUE;
      append_name (text, json_object_get_string_member (row, "kernel"), width);
      append_waits (text, row);
      g_string_append_c (text, '\n');
    }
}

static void
append_workers (GString *text, JsonObject *object)
{
  JsonArray *workers;
  glong width;

  if (!json_object_has_member (object, "workers"))
    return;
  workers = json_object_get_array_member (object, "workers");
  width = get_widest (workers, "worker", 0);
  for (guint i = 0; i < json_array_get_length (workers); i++)
    {
      JsonObject *row = json_array_get_object_element (workers, i);

      if (get_change (row, "runs") == 0 && get_change (row, "tasks") == 0
          && get_change (row, "elapsed_ns") == 0)
        continue;
      append_name (text, json_object_get_string_member (row, "worker"), width);
      for (guint s = 0; s < PTO_N_SIDES; s++)
        {
          gint64 runs = get_both (row, "runs", sides[s]);
          gint64 tasks = get_both (row, "tasks", sides[s]);

          g_string_append_printf (
              text, "%s%" G_GINT64_FORMAT " run%s of %" G_GINT64_FORMAT " task%s in ",
              s == 0 ? "  " : ", then ", runs, runs == 1 ? "" : "s", tasks, tasks == 1 ? "" : "s");
          pto_trace_append_us (text, (guint64) get_both (row, "elapsed_ns", sides[s]));
          g_string_append (text, " us");
        }
      g_string_append_c (text, '\n');
    }
}

/* --- task by task --- */

static void
append_only (GString *text, JsonObject *object, const char *member, const char *side)
{
  JsonObject *only = json_object_get_object_member (object, member);
  JsonArray *tasks = json_object_get_array_member (only, "tasks");
  gint64 n = json_object_get_int_member (only, "n");

  if (n == 0)
    return;
  g_string_append_printf (text, "only %s: %" G_GINT64_FORMAT " task%s\n", side, n,
                          n == 1 ? "" : "s");
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
                          "%" G_GINT64_FORMAT " task%s in both: %" G_GINT64_FORMAT
                          " took another time, %" G_GINT64_FORMAT
                          " ran at another time or on another core\n",
                          matched, matched == 1 ? "" : "s", n, moved);
  for (guint i = 0; i < json_array_get_length (tasks); i++)
    {
      JsonObject *task = json_array_get_object_element (tasks, i);

      append_change (text, WIDTH, get_change (task, "busy_ns"));
      g_string_append (text, " us ");
      append_task (text, task);
      g_string_append_c (text, '\n');
    }
  if (n > (gint64) json_array_get_length (tasks))
    g_string_append_printf (text, " %*s\n", WIDTH, "...");
}

static void
append_producers (GString *text, JsonObject *first, const char *member, const char *side)
{
  JsonArray *ids = json_object_get_array_member (first, member);
  guint n = json_array_get_length (ids);

  if (n == 0)
    return;
  g_string_append_printf (text, "%s for ", text->str[text->len - 1] == ':' ? "" : ",");
  for (guint i = 0; i < MIN (n, 3); i++)
    {
      guint64 id = g_ascii_strtoull (json_array_get_string_element (ids, i), NULL, 10);
      g_autofree char *name = pto_trace_dup_task_name (id);

      g_string_append_printf (text, "%stask %s", i == 0 ? "" : ", ", name);
    }
  if (n > 3)
    g_string_append_printf (text, " and %u more", n - 3);
  g_string_append_printf (text, " %s", side);
}

static void
append_rewired (GString *text, JsonObject *object)
{
  JsonObject *rewired, *first;
  gint64 n;

  if (!json_object_has_member (object, "rewired"))
    return;
  rewired = json_object_get_object_member (object, "rewired");
  n = json_object_get_int_member (rewired, "n");
  if (n == 0)
    return;
  first = json_object_get_object_member (rewired, "first");
  g_string_append_printf (text, "%" G_GINT64_FORMAT " of them wait%s for other tasks, first ", n,
                          n == 1 ? "s" : "");
  append_task (text, first);
  g_string_append_c (text, ':');
  append_producers (text, first, "only_before", "before");
  append_producers (text, first, "only_after", "after");
  g_string_append_c (text, '\n');
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
            text, "%s, waits were not recorded, nor dependencies: trace-level was 1\n", sides[s]);
      else if (level == PTO_TRACE_LEVEL_SCHEDULE)
        g_string_append_printf (text, "%s, dependencies were not recorded: trace-level was 2\n",
                                sides[s]);
      if (dropped > 0)
        g_string_append_printf (text,
                                "%s, %" G_GUINT64_FORMAT
                                " records were dropped, and what they said is not in this: set "
                                "trace-records to more\n",
                                sides[s], dropped);
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
    g_string_append (text, "the clocks are not the same: times of one do not say what those of the "
                           "other would be\n");
  if (!have_same (object, "level"))
    g_string_append (text, "the workers are of different levels\n");
  if (json_object_get_boolean_member (object, "same"))
    {
      g_string_append (text, "nothing differs\n");
      append_limits (text, object);
      return;
    }
  append_elapsed (text, object);
  append_cores (text, object);
  append_path (text, object);
  append_kernels (text, object);
  append_kernel_waits (text, object);
  append_workers (text, object);
  append_changed (text, object);
  append_only (text, object, "only_before", "before");
  append_only (text, object, "only_after", "after");
  append_rewired (text, object);
  append_limits (text, object);
}
