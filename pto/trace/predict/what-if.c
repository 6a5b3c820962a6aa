/* what-if.c: how long would a recorded run take with other settings?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each setting has one value or several; the answer has a point for each combination. It is made
 * once, as JSON; its text is made of that.
 */
#include "config.h"

#include "base/error.h"
#include "common/json.h"
#include "common/printable.h"
#include "common/text.h"
#include "trace/answer/trace-answers.h"
#include "pto-trace-topics.h"
#include "what-if.h"

#include <math.h>
#include <string.h>

enum
{
  MOST_POINTS = 4096,
  MOST_CLUSTERS = 1024,
  MOST_SCHEDULERS = 63, /* of a chip */
  /* Replays to find the order in which things happened that happened at one moment, and tasks that
   * these may have together. */
  MOST_DRAWS = 32,
  MOST_DRAWN_TASKS = 1000000
};

typedef struct
{
  char *name;     /* "clusters", "kernel QK" */
  char **values;  /* as they were given */
  guint32 kernel; /* of a kernel's: its number; otherwise PTO_TRACE_NOWHERE */
} Axis;

typedef struct
{
  PtoTrace *trace;
  PtoReplay *replay;
  GPtrArray *axes; /* Axis */
  double *factors;
  guint64 *times;
  guint draw; /* of PtoReplaySettings */
} Grid;

static void
axis_free (gpointer data)
{
  Axis *axis = data;

  g_free (axis->name);
  g_strfreev (axis->values);
  g_free (axis);
}

/* --- settings --- */

gboolean
pto_trace_refuse_setting (GError **error, const char *setting, const char *why)
{
  return pto_error_set (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "%s: %s", setting, why);
}

static gboolean
parse_count (const char *setting, const char *value, guint64 least, guint64 most, guint64 *count,
             GError **error)
{
  g_autofree char *why = NULL;

  if (g_ascii_string_to_unsigned (value, 10, least, most, count, NULL))
    return TRUE;
  why = g_strdup_printf (_ ("\"%s\" is no number from %" PRIu64 " to %" PRIu64), value, least,
                         most);
  return pto_trace_refuse_setting (error, setting, why);
}

/* "0.5x" of what was recorded, or "12.5us". */
static gboolean
parse_time (const char *setting, const char *value, double *factor, guint64 *time, GError **error)
{
  g_autofree char *why = NULL;
  char *end;
  double number = g_ascii_strtod (value, &end);

  *factor = 1;
  *time = PTO_TRACE_NEVER;
  if (end != value && isfinite (number) && number >= 0 && number <= 1e9)
    {
      if (strcmp (end, "x") == 0)
        {
          *factor = number;
          return TRUE;
        }
      if (strcmp (end, "us") == 0)
        {
          *time = (guint64) (number * 1000 + 0.5);
          return TRUE;
        }
    }
  why = g_strdup_printf (_ ("\"%s\" is neither a factor (0.5x) nor a time (12.5us)"), value);
  return pto_trace_refuse_setting (error, setting, why);
}

/* Says of one point what it is; also whether a value can be one. */
static gboolean
apply (Grid *grid, const Axis *axis, const char *value, PtoReplaySettings *settings, GError **error)
{
  guint64 count;

  if (axis->kernel != PTO_TRACE_NOWHERE)
    return parse_time (axis->name, value, &grid->factors[axis->kernel], &grid->times[axis->kernel],
                       error);
  if (strcmp (axis->name, "clusters") == 0)
    {
      if (!parse_count (axis->name, value, 1, MOST_CLUSTERS, &count, error))
        return FALSE;
      settings->clusters = (guint) count;
      return TRUE;
    }
  if (strcmp (axis->name, "schedulers") == 0)
    {
      if (!parse_count (axis->name, value, 1, MOST_SCHEDULERS, &count, error))
        return FALSE;
      settings->schedulers = (guint) count;
      return TRUE;
    }
  if (!parse_count (axis->name, value, 4, G_GUINT64_CONSTANT (1) << 31, &count, error))
    return FALSE;
  if ((count & (count - 1)) != 0)
    return pto_trace_refuse_setting (error, axis->name, _ ("it is a power of two"));
  for (guint r = 0; r < PTO_RINGS; r++)
    settings->windows[r] = (guint32) count;
  return TRUE;
}

static gboolean
find_kernel (Grid *grid, const char *name, guint32 *kernel)
{
  for (guint i = 0; i < grid->replay->n_runs; i++)
    {
      *kernel = grid->replay->runs[i].kernel;
      if (*kernel < grid->replay->n_kernels
          && strcmp (pto_trace_get_kernel_name (grid->trace, *kernel), name) == 0)
        return TRUE;
    }
  return FALSE;
}

/* "clusters=12,24", "kernel=QK=0.5x" */
static gboolean
add_axis (Grid *grid, const char *setting, GError **error)
{
  const char *equals = strchr (setting, '=');
  g_autofree char *name = equals != NULL ? g_strndup (setting, (gsize) (equals - setting)) : NULL;
  const char *values = equals != NULL ? equals + 1 : "";
  Axis *axis;

  if (name == NULL)
    return pto_trace_refuse_setting (error, setting, _ ("a setting is NAME=VALUE[,VALUE...]"));
  axis = g_new0 (Axis, 1);
  axis->kernel = PTO_TRACE_NOWHERE;
  axis->name = g_strdup (name);
  g_ptr_array_add (grid->axes, axis);
  if (strcmp (name, "kernel") == 0)
    {
      g_autofree char *of = NULL;

      equals = strrchr (values, '=');
      of = equals != NULL ? g_strndup (values, (gsize) (equals - values)) : g_strdup (values);
      g_free (axis->name);
      axis->name = g_strdup_printf ("kernel %s", of);
      if (equals == NULL)
        return pto_trace_refuse_setting (error, "kernel",
                                         _ ("it is given as NAME=0.5x, or NAME=12.5us"));
      if (!find_kernel (grid, of, &axis->kernel))
        return pto_trace_refuse_setting (error, axis->name, _ ("no task of the run has it"));
      values = equals + 1;
    }
  else if (strcmp (name, "clusters") != 0 && strcmp (name, "schedulers") != 0
           && strcmp (name, "task-window") != 0)
    return pto_trace_refuse_setting (
        error, name, _ ("no such setting; there are clusters, schedulers, task-window and kernel"));
  for (guint i = 0; i + 1 < grid->axes->len; i++)
    if (strcmp (((Axis *) g_ptr_array_index (grid->axes, i))->name, axis->name) == 0)
      return pto_trace_refuse_setting (
          error, axis->name, _ ("it is given twice: several values are separated by commas"));
  axis->values = g_strsplit (values, ",", -1);
  if (axis->values[0] == NULL)
    return pto_trace_refuse_setting (error, axis->name, _ ("its value is missing"));
  for (guint i = 0; axis->values[i] != NULL; i++)
    {
      PtoReplaySettings unused;

      if (!apply (grid, axis, axis->values[i], &unused, error))
        return FALSE;
    }
  return TRUE;
}

/* --- the answer --- */

/* What limits: the bound that comes next to the makespan; or what the submitter waited for, if that
 * is most of what no bound explains. */
static char *
dup_limit (const PtoReplayResult *result)
{
  const struct
  {
    const char *name;
    guint64 bound;
  } bounds[] = { { "critical path", result->critical_path },
                 { "AIC", result->work[PTO_CORE_TYPE_AIC] },
                 { "AIV", result->work[PTO_CORE_TYPE_AIV] },
                 { "submitter", result->submitter },
                 { "schedulers", result->scheduler } };
  guint best = 0;
  guint64 rest;

  for (guint i = 1; i < G_N_ELEMENTS (bounds); i++)
    if (bounds[i].bound > bounds[best].bound)
      best = i;
  rest = result->makespan - MIN (bounds[best].bound, result->makespan);
  for (guint r = 0; r < PTO_RINGS; r++)
    if (result->stalled[r] > rest / 2)
      return g_strdup_printf ("task ring %u", r);
  if (result->awaited > rest / 2)
    return pto_trace_dup_stall_name (result->awaited_what);
  return g_strdup (bounds[best].name);
}

static void
add_point (JsonBuilder *json, const PtoReplayResult *result, guint64 recorded)
{
  g_autofree char *limit = NULL;

  if (result->end != PTO_REPLAY_ENDS)
    {
      limit = result->end == PTO_REPLAY_NO_ROOM
                  ? g_strdup_printf ("task ring %u", result->stuck_ring)
                  : g_strdup (result->end == PTO_REPLAY_NO_CORES ? "cores" : "clusters");
      pto_json_add_boolean (json, "stuck", TRUE);
      pto_json_add_string (json, "limit", limit);
      return;
    }
  limit = dup_limit (result);
  pto_json_add_int (json, "makespan_ns", result->makespan);
  pto_json_add_double (json, "speedup",
                       result->makespan > 0 ? (double) recorded / (double) result->makespan : 1);
  pto_json_add_string (json, "limit", limit);
  pto_json_begin_object (json, "bounds");
  pto_json_add_int (json, "critical_path_ns", result->critical_path);
  pto_json_add_int (json, "aic_ns", result->work[PTO_CORE_TYPE_AIC]);
  pto_json_add_int (json, "aiv_ns", result->work[PTO_CORE_TYPE_AIV]);
  pto_json_add_int (json, "submitter_ns", result->submitter);
  pto_json_add_int (json, "schedulers_ns", result->scheduler);
  json_builder_end_object (json);
}

static void
init_settings (const Grid *grid, PtoReplaySettings *settings)
{
  settings->clusters = grid->trace->topology.n_clusters;
  settings->schedulers = grid->trace->topology.n_schedulers;
  memcpy (settings->windows, grid->replay->windows, sizeof settings->windows);
  settings->factors = grid->factors;
  settings->times = grid->times;
  settings->draw = grid->draw;
  for (guint k = 0; k < grid->replay->n_kernels; k++)
    {
      grid->factors[k] = 1;
      grid->times[k] = PTO_TRACE_NEVER;
    }
}

static gint
compare_results (gconstpointer a, gconstpointer b, gpointer data)
{
  const PtoReplayResult *x = a;
  const PtoReplayResult *y = b;

  (void) data;
  return x->makespan < y->makespan ? -1 : x->makespan > y->makespan;
}

/* Where kernels wait for each other, what happens first at one moment may change the whole run: of
 * three draws the one in the middle is told. */
static gboolean
replay_in_middle (Grid *grid, PtoReplaySettings *settings, PtoReplayResult *result, GError **error)
{
  PtoReplayResult results[3];
  guint n
      = grid->replay->meetings->len > 0 && grid->replay->n_tasks <= MOST_DRAWN_TASKS / MOST_DRAWS
            ? G_N_ELEMENTS (results)
            : 1;

  for (guint i = 0; i < n; i++, settings->draw++)
    if (!pto_replay_run (grid->replay, grid->trace, settings, &results[i], error))
      return FALSE;
  g_qsort_with_data (results, (gint) n, sizeof *results, compare_results, NULL);
  *result = results[n / 2];
  return TRUE;
}

/* The n-th combination, the last setting going round first. */
static gboolean
add_combination (Grid *grid, JsonBuilder *json, guint64 n, guint64 recorded, GError **error)
{
  PtoReplaySettings settings;
  PtoReplayResult result;

  init_settings (grid, &settings);
  json_builder_begin_object (json);
  pto_json_begin_object (json, "settings");
  for (guint i = grid->axes->len; i > 0; i--)
    {
      const Axis *axis = g_ptr_array_index (grid->axes, i - 1);
      guint n_values = g_strv_length (axis->values);
      const char *value = axis->values[n % n_values];

      n /= n_values;
      apply (grid, axis, value, &settings, NULL);
      pto_json_add_string (json, axis->name, value);
    }
  json_builder_end_object (json);
  if (!replay_in_middle (grid, &settings, &result, error))
    return FALSE;
  add_point (json, &result, recorded);
  json_builder_end_object (json);
  return TRUE;
}

static guint64
get_distance (const PtoReplayResult *result, guint64 recorded)
{
  return MAX (result->makespan, recorded) - MIN (result->makespan, recorded);
}

/* With the settings of the record. On the virtual clock what happens at one moment happens in an
 * order that the run has drawn, and of which little is recorded: the draw that comes next to it is
 * kept for what follows. */
static gboolean
replay_as_recorded (Grid *grid, PtoReplaySettings *settings, guint64 recorded,
                    PtoReplayResult *result, GError **error)
{
  guint n_draws = (guint) MIN (MOST_DRAWS, MOST_DRAWN_TASKS / grid->replay->n_tasks);

  init_settings (grid, settings);
  if (!pto_replay_run (grid->replay, grid->trace, settings, result, error))
    return FALSE;
  for (guint draw = 1; grid->trace->topology.virtual_clock && draw <= n_draws
                       && get_distance (result, recorded) > recorded / 1000;
       draw++)
    {
      PtoReplayResult other;

      settings->draw = draw;
      if (!pto_replay_run (grid->replay, grid->trace, settings, &other, error))
        return FALSE;
      if (other.end == PTO_REPLAY_ENDS
          && get_distance (&other, recorded) < get_distance (result, recorded))
        {
          *result = other;
          grid->draw = draw;
        }
    }
  settings->draw = grid->draw;
  return TRUE;
}

static JsonNode *
predict (PtoTrace *trace, const char *const *settings, GError **error)
{
  guint64 recorded = pto_trace_get_elapsed_ns (trace);
  g_autoptr (PtoReplay) replay = pto_replay_new (trace, error);
  g_autoptr (JsonBuilder) json = NULL;
  g_autoptr (GPtrArray) axes = g_ptr_array_new_with_free_func (axis_free);
  g_autofree double *factors = NULL;
  g_autofree guint64 *times = NULL;
  Grid grid = { .trace = trace, .replay = replay, .axes = axes };
  PtoReplaySettings as_recorded;
  PtoReplayResult result;
  guint64 n = 1;

  if (replay == NULL)
    return NULL;
  grid.factors = factors = g_new (double, MAX (replay->n_kernels, 1));
  grid.times = times = g_new (guint64, MAX (replay->n_kernels, 1));
  for (guint i = 0; settings != NULL && settings[i] != NULL; i++)
    {
      if (!add_axis (&grid, settings[i], error))
        return NULL;
      n *= g_strv_length (((Axis *) g_ptr_array_index (axes, i))->values);
      if (n > MOST_POINTS)
        {
          pto_trace_refuse_setting (error, ((Axis *) g_ptr_array_index (axes, i))->name,
                                    _ ("that makes more than 4096 combinations"));
          return NULL;
        }
    }
  json = json_builder_new_immutable ();
  json_builder_begin_object (json);
  pto_json_add_string (json, "title", trace->title);
  pto_json_add_string (json, "clock", trace->topology.virtual_clock ? "virtual" : "wall");
  pto_json_add_int (json, "tasks", replay->n_tasks);
  pto_json_add_int (json, "recorded_ns", recorded);
  pto_json_add_int (json, "commuting", replay->n_commuting);
  if (!replay_as_recorded (&grid, &as_recorded, recorded, &result, error))
    return NULL;
  pto_json_begin_object (json, "as_recorded");
  pto_json_add_int (json, "clusters", as_recorded.clusters);
  pto_json_add_int (json, "schedulers", as_recorded.schedulers);
  add_point (json, &result, recorded);
  json_builder_end_object (json);
  pto_json_begin_array (json, "points");
  for (guint64 i = 0; axes->len > 0 && i < n; i++)
    if (!add_combination (&grid, json, i, recorded, error))
      return NULL;
  json_builder_end_array (json);
  json_builder_end_object (json);
  return json_builder_get_root (json);
}

/* --- as text --- */

static char *
dup_settings (JsonObject *point)
{
  JsonObject *settings = json_object_get_object_member (point, "settings");
  g_autoptr (GList) names = json_object_get_members (settings);
  GString *text = g_string_new (NULL);

  for (GList *l = g_list_last (names); l != NULL; l = l->prev)
    g_string_append_printf (text, "%s%s=%s", text->len > 0 ? " " : "", (const char *) l->data,
                            json_object_get_string_member (settings, l->data));
  return g_string_free (text, FALSE);
}

static void
append_point (GString *text, const char *name, guint width, JsonObject *point)
{
  static const char *const bounds[]
      = { "critical_path_ns", "aic_ns", "aiv_ns", "submitter_ns", "schedulers_ns" };

  const char *limit = json_object_get_string_member (point, "limit");
  g_autofree char *words = pto_trace_tell_limit (limit);
  g_autofree char *makespan = NULL;
  g_autoptr (GString) speedup = g_string_new (NULL);

  g_string_append (text, "  ");
  pto_append_padded (text, name, -(int) width);
  if (json_object_has_member (point, "stuck"))
    {
      g_string_append_c (text, ' ');
      if (g_str_has_prefix (limit, "task ring"))
        g_string_append_printf (text, _ ("never ends: %s is too small for a scope\n"), words);
      else
        g_string_append (text, strcmp (limit, "cores") == 0
                                   ? _ ("never ends: there are too few cores for a task\n")
                                   : _ ("never ends: there are too few clusters for a scope\n"));
      return;
    }
  makespan = pto_trace_dup_us (pto_answer_get_number (point, "makespan_ns"));
  pto_trace_append_fixed (speedup, json_object_get_double_member (point, "speedup"), 2);
  g_string_append_printf (text, " %12s %8s", makespan, speedup->str);
  for (guint i = 0; i < G_N_ELEMENTS (bounds); i++)
    {
      g_autofree char *us = pto_trace_dup_us (
          pto_answer_get_number (json_object_get_object_member (point, "bounds"), bounds[i]));

      g_string_append_printf (text, " %12s", us);
    }
  g_string_append_printf (text, "  %s\n", words);
}

static void
append_prediction (GString *text, JsonObject *object)
{
  JsonArray *points = json_object_get_array_member (object, "points");
  const char *title = json_object_get_string_member (object, "title");
  const char *clock = json_object_get_string_member (object, "clock");
  const struct
  {
    const char *words;
    int width;
  } headings[] = {
    { "us", 12 },       { _ ("speed-up"), 8 },   { _ ("longest path"), 12 }, { _ ("AICs"), 12 },
    { _ ("AIVs"), 12 }, { _ ("submitter"), 12 }, { _ ("schedulers"), 12 }
  };
  g_autofree char *tasks = pto_trace_count_tasks (pto_answer_get_number (object, "tasks"));
  g_autofree char *recorded = pto_trace_tell_elapsed (pto_answer_get_number (object, "recorded_ns"),
                                                      strcmp (clock, "virtual") == 0);
  guint width = pto_count_columns (_ ("as recorded"));

  g_string_append_printf (text, "%s%s", title, title[0] != '\0' ? _ (": ") : "");
  g_string_append_printf (text, _ ("%s, recorded: %s\n"), tasks, recorded);
  for (guint i = 0; i < json_array_get_length (points); i++)
    {
      g_autofree char *name = dup_settings (json_array_get_object_element (points, i));

      width = MAX (width, pto_count_columns (name));
    }
  g_string_append_printf (text, "  %*s", (int) width, "");
  for (guint i = 0; i < G_N_ELEMENTS (headings); i++)
    {
      g_string_append_c (text, ' ');
      pto_append_padded (text, headings[i].words, headings[i].width);
    }
  g_string_append_printf (text, "  %s\n", _ ("limit"));
  append_point (text, _ ("as recorded"), width,
                json_object_get_object_member (object, "as_recorded"));
  for (guint i = 0; i < json_array_get_length (points); i++)
    {
      JsonObject *point = json_array_get_object_element (points, i);
      g_autofree char *name = dup_settings (point);

      append_point (text, name, width, point);
    }
}

/**
 * pto_trace_predict_json:
 * @self: a trace
 * @settings: (array zero-terminated=1) (nullable): see [method@Pto.Trace.predict]
 * @error: return location for an error
 *
 * Answers as JSON what [method@Pto.Trace.predict] answers as text.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): an object of JSON; %NULL with an error
 *
 * Since: 0.1
 */
char *
pto_trace_predict_json (PtoTrace *self, const char *const *settings, GError **error)
{
  g_autoptr (JsonNode) root = NULL;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  root = predict (self, settings, error);
  return root != NULL ? json_to_string (root, TRUE) : NULL;
}

/**
 * pto_trace_predict:
 * @self: the trace of a run of a chip, of trace level 3 or 4
 * @settings: (array zero-terminated=1) (nullable): what is to be another: `clusters=12,24`,
 *   `schedulers=4`, `task-window=64`, `kernel=QK=0.5x` or `kernel=QK=12.5us`
 * @error: return location for an error
 *
 * Runs the recorded graph again, without its kernels, for each combination of the values of all
 * settings: how long it would take, what bounds that, and what limits it. The time of each kernel,
 * what the orchestration does between two submits, and what a dispatch or a completion costs are
 * those of the record. A chip on the virtual clock schedules the tasks; those that reduce have as
 * many copies as it has cores for them.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): lines that end in a newline each; %NULL with %G_IO_ERROR_NOT_SUPPORTED
 *   when the record has not what this takes, %G_IO_ERROR_INVALID_ARGUMENT for a setting, or
 *   %PTO_ERROR_NO_MEMORY
 *
 * Since: 0.1
 */
char *
pto_trace_predict (PtoTrace *self, const char *const *settings, GError **error)
{
  g_autoptr (JsonNode) root = NULL;
  GString *text;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  root = predict (self, settings, error);
  if (root == NULL)
    return NULL;
  text = g_string_new (NULL);
  append_prediction (text, json_node_get_object (root));
  return g_string_free (text, FALSE);
}
