/* whatif.c: how long would a recorded run take with other settings?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tool.h"

#include "common/printable.h"
#include "common/save-file.h"

#include <glib/gi18n.h>
#include <json-glib/json-glib.h>
#include <pto/pto.h>
#include <string.h>

static gboolean option_json;
static char *option_svg;
static char *option_clusters;
static char *option_schedulers;
static char *option_task_window;
static char **option_kernels;

static const GOptionEntry entries[] = {
  { "clusters", 0, 0, G_OPTION_ARG_STRING, &option_clusters, N_ ("Clusters of the chip"),
    N_ ("N[,N...]") },
  { "schedulers", 0, 0, G_OPTION_ARG_STRING, &option_schedulers, N_ ("Schedulers"),
    N_ ("N[,N...]") },
  { "task-window", 0, 0, G_OPTION_ARG_STRING, &option_task_window, N_ ("Slots of each task ring"),
    N_ ("N[,N...]") },
  { "kernel", 0, 0, G_OPTION_ARG_STRING_ARRAY, &option_kernels,
    N_ ("What a kernel takes: QK=0.5x of what was recorded, or QK=12.5us; once for each kernel"),
    N_ ("NAME=TIME[,TIME...]") },
  { "svg", 0, 0, G_OPTION_ARG_FILENAME, &option_svg, N_ ("Draw it"), N_ ("FILE.svg") },
  { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("Print one JSON object"), NULL },
  G_OPTION_ENTRY_NULL
};

/* --- the picture: in English, as all are --- */

#define CHART_WIDTH 980.0
#define CHART_TOP 78.0
#define CHART_ROW 24.0
#define CHART_RIGHT 170.0

static const struct
{
  const char *limit;
  const char *colour;
} colours[] = { { "critical path", "#4e79a7" },
                { "AIC", "#f28e2b" },
                { "AIV", "#e15759" },
                { "submitter", "#76b7b2" },
                { "schedulers", "#59a14f" },
                /* What the submitter waits for has one colour. */
                { "room", "#b07aa1" } };

static const char *
get_colour (const char *limit)
{
  for (guint i = 0; i < G_N_ELEMENTS (colours); i++)
    if (strcmp (limit, colours[i].limit) == 0)
      return colours[i].colour;
  return colours[G_N_ELEMENTS (colours) - 1].colour;
}

static void
append_text (GString *svg, const char *anchor, double x, double y, const char *text)
{
  g_autofree char *escaped = g_markup_escape_text (text, -1);

  g_string_append_printf (svg, "<text text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", anchor,
                          x, y, escaped);
}

static char *
dup_settings (JsonObject *point)
{
  JsonObject *settings;
  g_autoptr (GList) names = NULL;
  GString *text;

  if (!json_object_has_member (point, "settings"))
    return g_strdup ("as recorded");
  settings = json_object_get_object_member (point, "settings");
  names = json_object_get_members (settings);
  text = g_string_new (NULL);
  for (GList *l = g_list_last (names); l != NULL; l = l->prev)
    g_string_append_printf (text, "%s%s=%s", text->len > 0 ? " " : "", (const char *) l->data,
                            json_object_get_string_member (settings, l->data));
  return g_string_free (text, FALSE);
}

/* A bar for the time, as dark as the largest bound of it reaches. */
static void
append_bar (GString *svg, JsonObject *point, double y, double left, double us_width)
{
  g_autofree char *name = dup_settings (point);
  const char *limit = json_object_get_string_member (point, "limit");
  g_autofree char *label = NULL;
  double us = 0;

  append_text (svg, "end", left - 8, y + 15, name);
  if (json_object_has_member (point, "stuck"))
    label = g_strdup_printf (g_str_has_prefix (limit, "task ring") ? "never ends: %s is too small"
                                                                   : "never ends: too few %s",
                             limit);
  else
    {
      JsonObject *bounds = json_object_get_object_member (point, "bounds");
      g_autoptr (GList) members = json_object_get_members (bounds);
      double bound = 0;

      us = (double) json_object_get_int_member (point, "makespan_ns") / 1000;
      for (GList *l = members; l != NULL; l = l->next)
        bound = MAX (bound, (double) json_object_get_int_member (bounds, l->data) / 1000);
      label = g_strdup_printf ("%.3f us, %s", us, limit);
      g_string_append_printf (
          svg,
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" fill=\"%s\" "
          "fill-opacity=\"0.45\"/>\n"
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" fill=\"%s\"/>\n",
          left, y, us * us_width, get_colour (limit), left, y, MIN (bound, us) * us_width,
          get_colour (limit));
    }
  append_text (svg, "start", left + us * us_width + 6, y + 14, label);
}

static gboolean
save_chart (JsonObject *object, const char *path, GError **error)
{
  JsonArray *array = json_object_get_array_member (object, "points");
  g_autoptr (GPtrArray) points = g_ptr_array_new ();
  g_autoptr (GString) svg = g_string_new (NULL);
  g_autofree char *title = g_strdup_printf ("%s: predicted times, and in full colour what bounds "
                                            "them",
                                            json_object_get_string_member (object, "title"));
  double longest = 1;
  double left = 100;
  double height;

  g_ptr_array_add (points, json_object_get_object_member (object, "as_recorded"));
  for (guint i = 0; i < json_array_get_length (array); i++)
    g_ptr_array_add (points, json_array_get_object_element (array, i));
  for (guint i = 0; i < points->len; i++)
    {
      JsonObject *point = g_ptr_array_index (points, i);
      g_autofree char *name = dup_settings (point);

      left = MAX (left, 24 + 7.5 * (double) pto_count_columns (name));
      longest
          = MAX (longest,
                 (double) json_object_get_int_member_with_default (point, "makespan_ns", 0) / 1000);
    }
  height = CHART_TOP + points->len * CHART_ROW + 16;
  g_string_append_printf (svg,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                          "width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" "
                          "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" "
                          "fill=\"#fff\"/>\n",
                          CHART_WIDTH + left, height, CHART_WIDTH + left, height);
  append_text (svg, "start", 16, 28, title);
  for (guint i = 0; i < G_N_ELEMENTS (colours); i++)
    {
      g_string_append_printf (
          svg, "<rect x=\"%.1f\" y=\"42\" width=\"13\" height=\"13\" fill=\"%s\"/>\n",
          16.0 + i * 120, colours[i].colour);
      append_text (svg, "start", 34.0 + i * 120, 53, colours[i].limit);
    }
  for (guint i = 0; i < points->len; i++)
    append_bar (svg, g_ptr_array_index (points, i), CHART_TOP + i * CHART_ROW, left,
                (CHART_WIDTH - CHART_RIGHT) / longest);
  g_string_append (svg, "</svg>\n");
  return pto_save (path, svg->str, svg->len, 0666, error);
}

/* --- the command --- */

static void
add_setting (GStrvBuilder *settings, const char *name, const char *value)
{
  g_autofree char *setting = value != NULL ? g_strdup_printf ("%s=%s", name, value) : NULL;

  if (setting != NULL)
    g_strv_builder_add (settings, setting);
}

static gboolean
tool_whatif (char **words, GError **error)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_auto (GStrv) settings = NULL;
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (JsonNode) root = NULL;
  g_autofree char *json = NULL;
  g_autofree char *text = NULL;
  GError *failure = NULL;

  if (g_strv_length (words) != 2)
    return tool_refuse (error,
                        _ ("one trace is asked: pto whatif FILE.ptotrace (see pto help whatif)"));
  if (!tool_check_output ("--svg", option_svg, ".svg", error)
      || !tool_check_other ("--svg", option_svg, words[1], error))
    return FALSE;
  add_setting (builder, "clusters", option_clusters);
  add_setting (builder, "schedulers", option_schedulers);
  add_setting (builder, "task-window", option_task_window);
  for (guint i = 0; option_kernels != NULL && option_kernels[i] != NULL; i++)
    add_setting (builder, "kernel", option_kernels[i]);
  settings = g_strv_builder_end (builder);
  trace = pto_trace_new_from_file (words[1], error);
  if (trace == NULL)
    return FALSE;
  if (option_json || option_svg != NULL)
    json = pto_trace_predict_json (trace, (const char *const *) settings, &failure);
  if (!option_json && failure == NULL)
    text = pto_trace_predict (trace, (const char *const *) settings, &failure);
  if (failure != NULL)
    /* A setting that can not be is an option that can not be. */
    return tool_refuse_for (error, "--", failure);
  if (option_svg != NULL)
    {
      root = json_from_string (json, error);
      if (root == NULL || !save_chart (json_node_get_object (root), option_svg, error))
        return FALSE;
    }
  tool_print (option_json ? json : text, option_json);
  g_print ("%s", option_json ? "\n" : "");
  return TRUE;
}

const ToolCommand tool_whatif_command = {
  .name = "whatif",
  .purpose = N_ ("tell how long it would have taken with other settings, from its trace"),
  .operands = N_ ("FILE.ptotrace"),
  .summary
  = N_ ("Runs the graph of a trace again without its kernels, with other settings: how long would "
        "it\ntake, what bounds that, and what limits it?"),
  .notes = N_ ("An option with several values makes a point of each, with each of the other "
               "options. What is\nnot given is as it was recorded."),
  .entries = entries,
  .run = tool_whatif,
};
