/* run.c: does an example compute what its reference expects, and how fast?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A parameter of the runtime is taken from, the later the stronger: the default, the case in the
 * manifest, the environment, the command line.
 */
#include "config.h"

#include "manifest.h"
#include "reference.h"
#include "tool.h"

#include <glib/gi18n.h>
#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define LEVEL_CHIP 2

static char *option_case;
static char *option_platform;
static char *option_backend;
static char *option_seed;
static char *option_check;
static char **option_set;
static char *option_repeat;
static char *option_trace;
static char *option_svg;
static char *option_report;
static char *option_dump;
static char *option_dump_filter;
static gboolean option_json;
static gboolean option_no_isolate;

static const GOptionEntry entries[] = {
  { "case", 'c', 0, G_OPTION_ARG_STRING, &option_case,
    N_ ("The case to run (default: the manifest's)"), N_ ("NAME") },
  { "platform", 'p', 0, G_OPTION_ARG_STRING, &option_platform,
    N_ ("The chip to simulate, or a file that describes one (default: a2a3sim)"),
    N_ ("NAME|FILE") },
  { "backend", 'b', 0, G_OPTION_ARG_STRING, &option_backend,
    N_ ("How to run it: par (fast), det (virtual clock, reproducible) or threads"), N_ ("NAME") },
  { "seed", 0, 0, G_OPTION_ARG_STRING, &option_seed, N_ ("The seed of the back end det"),
    N_ ("NUMBER") },
  { "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &option_set,
    N_ ("Set a parameter of the runtime (pto info lists them); may be given more than once"),
    N_ ("NAME=VALUE") },
  { "repeat", 'n', 0, G_OPTION_ARG_STRING, &option_repeat,
    N_ ("Run it so many times and tell the median"), N_ ("NUMBER") },
  { "trace", 0, 0, G_OPTION_ARG_FILENAME, &option_trace,
    N_ ("Save the trace: .ptotrace for `pto trace`, .json for ui.perfetto.dev"), N_ ("FILE") },
  { "svg", 0, 0, G_OPTION_ARG_FILENAME, &option_svg, N_ ("Save a picture of the run"),
    N_ ("FILE.svg") },
  { "report", 0, 0, G_OPTION_ARG_FILENAME, &option_report,
    N_ ("Save a report of the run: a page for a browser, which needs nothing else"),
    N_ ("FILE.html") },
  { "dump", 0, 0, G_OPTION_ARG_FILENAME, &option_dump,
    N_ ("Save what each task reads and writes as .npy files, and PREFIXdump.json, which lists them"),
    N_ ("PREFIX") },
  { "dump-filter", 0, 0, G_OPTION_ARG_STRING, &option_dump_filter,
    N_ ("Of these tasks and arguments only: QK,1:17,SF.2"), N_ ("TERMS") },
  { "check", 0, 0, G_OPTION_ARG_STRING, &option_check,
    N_ ("access: also check what kernels read and write against their tasks' arguments, and that "
        "tasks which touch the same bytes are in an order"),
    N_ ("access") },
  { "no-isolate", 0, 0, G_OPTION_ARG_NONE, &option_no_isolate,
    N_ ("Run in this process, for debuggers: a kernel that crashes may end it"), NULL },
  { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("Print one JSON object, not a table"),
    NULL },
  G_OPTION_ENTRY_NULL
};

/* What a run gave, over all repetitions. */
typedef struct
{
  PtoRunStatistics *statistics; /* of the last repetition */
  PtoTrace *trace;              /* of the last repetition; NULL: not recorded */
  const char *trace_file;       /* where it was saved; NULL: nowhere */
  const char *svg_file;         /* where its picture was */
  const char *report_file;      /* where its report was */
  char *dump_file;              /* the list of what was dumped */
  GArray *run_ns;               /* guint64, one per repetition, ascending */
  double max_abs_error;
  gboolean not_a_number;
  guint64 n_bad; /* in the first repetition that had any */
  guint64 n_compared;
  double build_seconds;
  guint n_built; /* objects that the compiler had to make: kernels and orchestration */
  char *first_bad;
  char *first_writer; /* the task that has written it last; NULL: not known */
  char *bad_lines;
  char *lies; /* what kernels touched and must not, of the first repetition that had any; NULL */
} Outcome;

GOptionContext *
tool_run_get_options (void)
{
  GOptionContext *context = g_option_context_new (_ ("DIR"));

  g_option_context_set_summary (
      context, _ ("Builds the example in DIR (its pto.ini says of what), runs it on a "
                  "simulated chip and\nchecks the results against its reference."));
  g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  return context;
}

static void
outcome_clear (Outcome *outcome)
{
  g_clear_pointer (&outcome->statistics, pto_run_statistics_free);
  g_clear_object (&outcome->trace);
  g_clear_pointer (&outcome->run_ns, g_array_unref);
  g_clear_pointer (&outcome->dump_file, g_free);
  g_clear_pointer (&outcome->first_bad, g_free);
  g_clear_pointer (&outcome->first_writer, g_free);
  g_clear_pointer (&outcome->bad_lines, g_free);
  g_clear_pointer (&outcome->lies, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Outcome, outcome_clear)

static gint
compare_u64 (gconstpointer a, gconstpointer b)
{
  guint64 x = *(const guint64 *) a;
  guint64 y = *(const guint64 *) b;

  return x < y ? -1 : x > y;
}

static guint64
median_ns (const Outcome *outcome)
{
  guint n = outcome->run_ns->len;
  guint64 upper = g_array_index (outcome->run_ns, guint64, n / 2);

  if (n % 2 == 1)
    return upper;
  return (g_array_index (outcome->run_ns, guint64, n / 2 - 1) + upper) / 2;
}

static gboolean
parse_number (const char *option, const char *text, guint64 least, guint64 most, guint64 *value,
              GError **error)
{
  if (g_ascii_string_to_unsigned (text, 10, least, most, value, NULL))
    return TRUE;
  g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
               _ ("--%s %s: a number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT " wanted"),
               option, text, least, most);
  return FALSE;
}

static gboolean
is_in_environment (const char *parameter)
{
  const char *variable = pto_worker_get_parameter_variable (parameter);
  g_autofree char *upper = g_ascii_strup (parameter, -1);
  g_autofree char *own = g_strdup_printf ("PTO_%s", g_strdelimit (upper, "-", '_'));

  return (variable != NULL && g_getenv (variable) != NULL) || g_getenv (own) != NULL;
}

/* From the command line: what is refused there was typed wrong. */
static gboolean
set_option (PtoWorker *worker, const char *option, const char *name, const char *value,
            GError **error)
{
  g_autoptr (GError) local = NULL;

  if (pto_worker_set_parameter (worker, name, value, &local))
    return TRUE;
  g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE, "--%s: %s", option, local->message);
  return FALSE;
}

static gboolean
was_set (const char *parameter)
{
  for (guint i = 0; option_set != NULL && option_set[i] != NULL; i++)
    {
      gsize length = strlen (parameter);

      if (strncmp (option_set[i], parameter, length) == 0 && option_set[i][length] == '=')
        return TRUE;
    }
  return FALSE;
}

/* Of the record of the run. */
static gboolean
is_file_wanted (void)
{
  return option_trace != NULL || option_svg != NULL || option_report != NULL;
}

static gboolean
is_record (const char *path)
{
  g_autofree char *lower = g_ascii_strdown (path, -1);

  return g_str_has_suffix (lower, ".ptotrace");
}

/* What is typed and comes to nothing with the rest of what is typed. */
static gboolean
check_effect (PtoWorker *worker, const char *backend, GError **error)
{
  g_autofree char *trace = pto_worker_dup_parameter (worker, "trace", NULL);
  gboolean recorded = g_strcmp0 (trace, "1") == 0 || is_file_wanted ()
                      || (option_json && strcmp (backend, "det") == 0);
  const char *option = option_seed != NULL ? "seed" : "set seed";

  if ((option_seed != NULL || was_set ("seed")) && strcmp (backend, "det") != 0)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                 _ ("--%s has no effect on the back end %s: add --backend det"), option, backend);
  else if (option_no_isolate && was_set ("isolate"))
    g_set_error (
        error, TOOL_ERROR, TOOL_ERROR_USAGE,
        _ ("--no-isolate and --set isolate say the same or contradict each other: give one"));
  else if (was_set ("carriers") && strcmp (backend, "par") != 0)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                 _ ("--set carriers has no effect on the back end %s, only on par"), backend);
  else if (was_set ("utilization") && strcmp (backend, "det") == 0)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                 _ ("--set utilization has no effect on the back end det, which always knows it"));
  else if (was_set ("jitter") && strcmp (backend, "det") != 0)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                 _ ("--set jitter has no effect on the back end %s: add --backend det"), backend);
  else if (was_set ("trace-records") && !recorded)
    g_set_error (
        error, TOOL_ERROR, TOOL_ERROR_USAGE,
        _ ("--set trace-records has no effect on a run that is not recorded: add --report, "
           "--trace or --svg"));
  else
    return TRUE;
  return FALSE;
}

static gboolean
checks_accesses (PtoWorker *worker)
{
  g_autofree char *check = pto_worker_dup_parameter (worker, "check", NULL);

  return g_strcmp0 (check, "access") == 0;
}

static gboolean
set_parameters (PtoWorker *worker, Manifest *manifest, const ManifestCase *item, GError **error)
{
  g_autofree char *backend = NULL;
  gboolean deterministic;

  /* Unless somebody says otherwise: whatever a kernel does ends in a message. Who has written what
   * is known in the chip's process only. */
  if ((option_no_isolate || !is_in_environment ("isolate"))
      && !pto_worker_set_parameter (worker, "isolate",
                                    option_no_isolate || option_check != NULL ? "0" : "1", error))
    return FALSE;
  for (guint i = 0; i < item->parameters->len; i += 2)
    {
      const char *name = g_ptr_array_index (item->parameters, i);
      const char *value = g_ptr_array_index (item->parameters, i + 1);
      g_autoptr (GError) local = NULL;

      if (!is_in_environment (name) && !pto_worker_set_parameter (worker, name, value, &local))
        {
          g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, _ ("%s: case \"%s\": %s"),
                       manifest->file, item->name, local->message);
          return FALSE;
        }
    }

  /* How busy the cores were is worth two looks at the clock a task, unless somebody says otherwise.
   */
  if (!is_in_environment ("utilization")
      && !pto_worker_set_parameter (worker, "utilization", "1", error))
    return FALSE;
  for (guint i = 0; option_set != NULL && option_set[i] != NULL; i++)
    {
      const char *equal = strchr (option_set[i], '=');
      g_autofree char *name = NULL;

      if (equal == NULL || equal == option_set[i])
        {
          g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE, _ ("--set %s: NAME=VALUE wanted"),
                       option_set[i]);
          return FALSE;
        }
      name = g_strndup (option_set[i], (gsize) (equal - option_set[i]));
      if (!set_option (worker, "set", name, equal + 1, error))
        return FALSE;
    }
  if (option_backend != NULL && !set_option (worker, "backend", "backend", option_backend, error))
    return FALSE;
  if (option_seed != NULL && !set_option (worker, "seed", "seed", option_seed, error))
    return FALSE;
  if (option_check != NULL && !set_option (worker, "check", "check", option_check, error))
    return FALSE;

  backend = pto_worker_dup_parameter (worker, "backend", error);
  if (backend == NULL || !check_effect (worker, backend, error))
    return FALSE;

  /* Two runs are compared by their traces: on det the digest is part of the result. */
  deterministic = option_json && strcmp (backend, "det") == 0 && !was_set ("trace");
  if ((is_file_wanted () || deterministic)
      && !pto_worker_set_parameter (worker, "trace", "1", error))
    return FALSE;
  /* What is asked of it later is not known now. */
  return (option_report == NULL && (option_trace == NULL || !is_record (option_trace)))
         || was_set ("trace-level") || pto_worker_set_parameter (worker, "trace-level", "4", error);
}

/* An array's buffer on the device, and its tensor among the arguments; NULL with an error. */
static PtoBuffer *
add_array (PtoWorker *worker, const ReferenceArgument *argument, PtoTaskArgs *args, GError **error)
{
  g_autoptr (PtoBuffer) buffer = pto_worker_alloc_buffer (worker, argument->n_bytes, error);
  g_autoptr (PtoTensor) tensor = NULL;

  if (buffer == NULL
      || !pto_worker_copy_to_address (worker, pto_buffer_get_address (buffer),
                                      (guintptr) argument->data, argument->n_bytes, error))
    return NULL;
  tensor = pto_tensor_new_for_buffer (buffer, 0, (PtoDtype) argument->dtype, argument->n_dims,
                                      argument->shape, error);
  if (tensor == NULL)
    return NULL;
  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_INOUT);
  return g_steal_pointer (&buffer);
}

/* Makes the arguments on the device, runs, and compares every output. */
static gboolean
run_once (PtoWorker *worker, PtoCallableHandle *handle, Manifest *manifest,
          const ManifestCase *item, Reference *reference, Outcome *outcome, GError **error)
{
  guint n = reference_get_n_arguments (reference);
  g_autofree PtoBuffer **buffers = g_new0 (PtoBuffer *, MAX (n, 1));
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoCallConfig) config = NULL;
  g_autoptr (GError) local = NULL;
  gboolean good = TRUE;
  guint64 ns;

  /* Of the first repetition: the others do the same. */
  if (option_dump != NULL && outcome->run_ns->len == 0)
    {
      config = pto_call_config_new ();
      pto_call_config_set_enable_dump_tensor (config, 1);
      pto_call_config_set_dump_filter (config, option_dump_filter);
      pto_call_config_set_output_prefix (config, option_dump);
    }

  for (guint i = 0; i < n && good; i++)
    {
      const ReferenceArgument *argument = reference_get_argument (reference, i);

      if (argument->is_scalar)
        {
          pto_task_args_add_scalar (args, argument->value);
          continue;
        }
      buffers[i] = add_array (worker, argument, args, &local);
      good = buffers[i] != NULL;
    }
  good = good
         && pto_worker_run_callable (worker, handle, args, config, tool_get_cancellable (), &local);
  /* The tasks have run, and what they gave can be looked at. */
  if (g_error_matches (local, PTO_ERROR, PTO_ERROR_ACCESS))
    {
      if (outcome->lies == NULL)
        outcome->lies = g_strdup (local->message);
      g_clear_error (&local);
      good = TRUE;
    }

  if (good && config != NULL)
    outcome->dump_file = g_strconcat (option_dump, "dump.json", NULL);
  if (good)
    {
      g_clear_pointer (&outcome->statistics, pto_run_statistics_free);
      outcome->statistics = pto_worker_dup_statistics (worker);
      ns = pto_run_statistics_get_run_ns (outcome->statistics);
      g_array_append_val (outcome->run_ns, ns);
    }
  for (guint i = 0; i < n && good; i++)
    {
      const ReferenceArgument *argument = reference_get_argument (reference, i);
      g_autoptr (GBytes) bytes = NULL;
      Comparison comparison;

      if (!argument->is_output)
        continue;
      bytes = pto_buffer_read (buffers[i], 0, argument->n_bytes, &local);
      good = bytes != NULL;
      if (!good)
        break;
      reference_compare (argument, g_bytes_get_data (bytes, NULL), item->rtol, item->atol,
                         &comparison);
      outcome->max_abs_error = MAX (outcome->max_abs_error, comparison.max_abs_error);
      outcome->not_a_number = outcome->not_a_number || comparison.not_a_number;
      if (comparison.n_bad > 0 && outcome->first_bad == NULL)
        {
          outcome->n_bad = comparison.n_bad;
          outcome->n_compared = argument->n_elements;
          outcome->first_bad = g_steal_pointer (&comparison.first_bad);
          outcome->first_writer = pto_worker_dup_last_writer (
              worker, pto_buffer_get_address (buffers[i])
                          + comparison.first_index * (argument->n_bytes / argument->n_elements));
          outcome->bad_lines = g_steal_pointer (&comparison.bad_lines);
        }
      comparison_clear (&comparison);
    }
  for (guint i = 0; i < n; i++)
    g_clear_pointer (&buffers[i], pto_buffer_unref);
  if (!good)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, _ ("%s: case \"%s\": %s"), manifest->name,
                 item->name, local->message);
  return good;
}

static double
tasks_per_second (const Outcome *outcome)
{
  guint64 ns = median_ns (outcome);

  return ns > 0 ? (double) pto_run_statistics_get_tasks (outcome->statistics) * 1e9 / (double) ns
                : 0;
}

static void
add_string (JsonBuilder *builder, const char *name, const char *value)
{
  json_builder_set_member_name (builder, name);
  if (value != NULL)
    json_builder_add_string_value (builder, value);
  else
    json_builder_add_null_value (builder);
}

static void
add_int (JsonBuilder *builder, const char *name, guint64 value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_int_value (builder, (gint64) value);
}

static void
add_double (JsonBuilder *builder, const char *name, double value)
{
  json_builder_set_member_name (builder, name);
  if (isfinite (value))
    json_builder_add_double_value (builder, value);
  else
    json_builder_add_null_value (builder);
}

static void
print_json (PtoWorker *worker, Manifest *manifest, const ManifestCase *item, const Outcome *outcome)
{
  JsonBuilder *builder = json_builder_new ();
  const PtoRunStatistics *statistics = outcome->statistics;
  g_autofree char *backend = pto_worker_dup_parameter (worker, "backend", NULL);
  g_autofree char *seed = pto_worker_dup_parameter (worker, "seed", NULL);
  gboolean deterministic = g_strcmp0 (backend, "det") == 0;
  guint64 seed_value = 0;

  json_builder_begin_object (builder);
  add_string (builder, "example", manifest->name);
  add_string (builder, "case", item->name);
  add_string (builder, "platform", pto_worker_get_platform (worker));
  add_string (builder, "backend", backend);
  if (seed != NULL
      && g_ascii_string_to_unsigned (seed, 10, 0, (guint64) G_MAXINT64, &seed_value, NULL))
    add_int (builder, "seed", seed_value);
  else
    add_string (builder, "seed", seed);
  add_int (builder, "tasks", pto_run_statistics_get_tasks (statistics));
  add_int (builder, "edges", pto_run_statistics_get_edges (statistics));
  json_builder_set_member_name (builder, "passed");
  json_builder_add_boolean_value (builder, outcome->n_bad == 0);
  add_double (builder, "max_abs_error",
              outcome->not_a_number ? (double) INFINITY : outcome->max_abs_error);
  add_string (builder, "first_bad", outcome->first_bad);
  if (checks_accesses (worker))
    {
      add_string (builder, "first_bad_writer", outcome->first_writer);
      add_string (builder, "accesses", outcome->lies);
    }
  add_int (builder, "repeats", outcome->run_ns->len);
  add_double (builder, "run_seconds", (double) median_ns (outcome) / 1e9);
  add_double (builder, "tasks_per_second", tasks_per_second (outcome));
  json_builder_set_member_name (builder, "virtual_ns");
  if (deterministic)
    json_builder_add_int_value (builder, (gint64) pto_run_statistics_get_virtual_ns (statistics));
  else
    json_builder_add_null_value (builder);
  add_string (builder, "trace_sha256",
              deterministic && outcome->trace != NULL ? pto_trace_get_sha256 (outcome->trace)
                                                      : NULL);
  add_double (builder, "aic_utilization",
              pto_run_statistics_get_utilization (statistics, PTO_CORE_AIC));
  add_double (builder, "aiv_utilization",
              pto_run_statistics_get_utilization (statistics, PTO_CORE_AIV));
  add_int (builder, "aic_cores", pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIC));
  add_int (builder, "aiv_cores", pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIV));
  add_int (builder, "peak_live_tasks", pto_run_statistics_get_peak_live_tasks (statistics));
  add_int (builder, "recycled", pto_run_statistics_get_recycled (statistics));
  add_int (builder, "stalls", pto_run_statistics_get_stalls (statistics));
  json_builder_set_member_name (builder, "last_task_alive");
  json_builder_begin_array (builder);
  for (guint r = 0; r < PTO_N_RINGS; r++)
    json_builder_add_int_value (builder,
                                (gint64) pto_run_statistics_get_last_task_alive (statistics, r));
  json_builder_end_array (builder);
  if (outcome->trace != NULL)
    add_int (builder, "trace_dropped", pto_trace_get_dropped (outcome->trace));
  add_string (builder, "trace", outcome->trace_file);
  add_string (builder, "svg", outcome->svg_file);
  add_string (builder, "report", outcome->report_file);
  add_string (builder, "dump", outcome->dump_file);
  json_builder_end_object (builder);
  tool_print_json (builder);
}

static void
print_row (const char *name, const char *value)
{
  /* Padded by characters: a translated name may have more bytes. */
  g_print ("  %s%*s%s\n", name, MAX (14 - (int) g_utf8_strlen (name, -1), 1), "", value);
}

G_GNUC_PRINTF (2, 3)
static void
print_row_printf (const char *name, const char *format, ...)
{
  g_autofree char *value = NULL;
  va_list args;

  va_start (args, format);
  value = g_strdup_vprintf (format, args);
  va_end (args);
  print_row (name, value);
}

/* Where a file went: whole, when `meson devenv` has put the program into a directory of its own. */
static char *
shown_path (const char *path)
{
  return g_getenv ("MESON_DEVENV") != NULL ? g_canonicalize_filename (path, NULL) : g_strdup (path);
}

static char *
format_duration (guint64 ns)
{
  if (ns < 1000000)
    return g_strdup_printf (_ ("%.1f us"), (double) ns / 1e3);
  if (ns < 1000000000)
    return g_strdup_printf (_ ("%.2f ms"), (double) ns / 1e6);
  return g_strdup_printf (_ ("%.3f s"), (double) ns / 1e9);
}

static void
print_table (PtoWorker *worker, const PtoPlatform *platform, Manifest *manifest,
             const ManifestCase *item, const Outcome *outcome)
{
  const PtoRunStatistics *statistics = outcome->statistics;
  g_autofree char *backend = pto_worker_dup_parameter (worker, "backend", NULL);
  g_autofree char *seed = pto_worker_dup_parameter (worker, "seed", NULL);
  g_autofree char *threads = pto_worker_dup_parameter (worker, "aicpu-threads", NULL);
  g_autofree char *tasks = tool_group_digits (pto_run_statistics_get_tasks (statistics));
  g_autofree char *edges = tool_group_digits (pto_run_statistics_get_edges (statistics));
  g_autofree char *peak = tool_group_digits (pto_run_statistics_get_peak_live_tasks (statistics));
  g_autofree char *recycled = tool_group_digits (pto_run_statistics_get_recycled (statistics));
  g_autofree char *rate = tool_group_digits ((guint64) tasks_per_second (outcome));
  g_autofree char *duration = format_duration (median_ns (outcome));
  g_autofree char *schedulers = NULL;
  g_autoptr (GString) kernels = g_string_new (NULL);
  guint64 n_threads = threads != NULL ? g_ascii_strtoull (threads, NULL, 10) : 0;

  if (n_threads == 0)
    n_threads = pto_platform_get_n_aicpu_threads (platform);
  schedulers = tool_count_schedulers ((guint) n_threads - 1);
  g_print (_ ("%s on %s: %u AIC + %u AIV, %s + 1 orchestrator\n"), manifest->name,
           pto_worker_get_platform (worker),
           pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIC),
           pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIV), schedulers);
  if (item->title != NULL)
    print_row_printf (_ ("case"), "%s: %s", item->name, item->title);
  else
    print_row (_ ("case"), item->name);
  for (guint i = 0;
       i < pto_chip_orchestration_get_n_kernels (PTO_CHIP_ORCHESTRATION (manifest->chip)); i++)
    if (pto_chip_orchestration_get_kernel_name (PTO_CHIP_ORCHESTRATION (manifest->chip), i) != NULL)
      g_string_append_printf (
          kernels, "%s%s", kernels->len > 0 ? " " : "",
          pto_chip_orchestration_get_kernel_name (PTO_CHIP_ORCHESTRATION (manifest->chip), i));
  if (kernels->len == 0)
    print_row (_ ("kernels"), _ ("none"));
  else if (outcome->n_built > 0)
    print_row_printf (_ ("kernels"), _ ("%s (built in %.1f s)"), kernels->str,
                      outcome->build_seconds);
  else
    print_row_printf (_ ("kernels"), _ ("%s (cached)"), kernels->str);
  print_row (_ ("tasks"), tasks);
  print_row (_ ("edges"), edges);
  if (g_strcmp0 (backend, "det") == 0)
    print_row_printf (_ ("back end"), _ ("%s, seed %s"), backend, seed);
  else
    print_row (_ ("back end"), backend);
  if (outcome->n_bad == 0)
    print_row_printf (_ ("result"), _ ("PASS  max error %.2g"), outcome->max_abs_error);
  else if (outcome->not_a_number)
    print_row_printf (_ ("result"), _ ("FAIL  not a number"));
  else
    print_row_printf (_ ("result"), _ ("FAIL  max error %.2g"), outcome->max_abs_error);
  if (outcome->bad_lines != NULL)
    {
      g_auto (GStrv) lines = g_strsplit (outcome->bad_lines, "\n", -1);

      for (guint i = 0; lines[i] != NULL; i++)
        print_row ("", lines[i]);
    }
  if (outcome->first_writer != NULL)
    print_row_printf (_ ("written by"), "%s", outcome->first_writer);
  if (checks_accesses (worker))
    print_row (_ ("accesses"), outcome->lies == NULL ? _ ("as declared") : _ ("not as declared"));
  if (outcome->run_ns->len > 1)
    print_row_printf (_ ("run time"), _ ("%s, %s tasks/s (median of %u)"), duration, rate,
                      outcome->run_ns->len);
  else
    print_row_printf (_ ("run time"), _ ("%s, %s tasks/s"), duration, rate);
  if (pto_run_statistics_get_virtual_ns (statistics) > 0)
    {
      g_autofree char *on_chip = format_duration (pto_run_statistics_get_virtual_ns (statistics));

      print_row_printf (_ ("virtual time"), "%s", on_chip);
    }
  print_row_printf (_ ("chip busy"), _ ("AIC %.0f %%  AIV %.0f %%"),
                    100 * pto_run_statistics_get_utilization (statistics, PTO_CORE_AIC),
                    100 * pto_run_statistics_get_utilization (statistics, PTO_CORE_AIV));
  print_row_printf (_ ("slots"), _ ("%s in use at most, recycled %s times"), peak, recycled);
  if (outcome->trace != NULL && pto_trace_get_dropped (outcome->trace) > 0)
    print_row_printf (_ ("dropped"),
                      _ ("%" G_GUINT64_FORMAT " records of the trace: set trace-records higher"),
                      pto_trace_get_dropped (outcome->trace));
  if (outcome->trace_file != NULL)
    {
      g_autofree char *path = shown_path (outcome->trace_file);

      print_row_printf (_ ("trace"),
                        is_record (outcome->trace_file) ? _ ("%s (ask it: pto trace)")
                                                        : _ ("%s (open in ui.perfetto.dev)"),
                        path);
    }
  if (outcome->svg_file != NULL)
    {
      g_autofree char *path = shown_path (outcome->svg_file);

      print_row (_ ("picture"), path);
    }
  if (outcome->report_file != NULL)
    {
      g_autofree char *path = shown_path (outcome->report_file);

      print_row_printf (_ ("report"), _ ("%s (open in a browser)"), path);
    }
  if (outcome->dump_file != NULL)
    {
      g_autofree char *path = shown_path (outcome->dump_file);

      print_row (_ ("tensors"), path);
    }
}

/* What was measured is shown all the same, and so is one file without the other. */
static void
save (Outcome *outcome, GError **failures)
{
  GError *failure = NULL;

  if (!is_file_wanted ())
    return;
  if (outcome->trace == NULL)
    {
      g_set_error (failures, TOOL_ERROR, TOOL_ERROR_FAILED,
                   _ ("there is no trace: the run was not recorded"));
      return;
    }
  /* A device may have any name. */
  if (option_trace != NULL
      && (is_record (option_trace) ? pto_trace_save (outcome->trace, option_trace, &failure)
                                   : pto_trace_save_json (outcome->trace, option_trace, &failure)))
    outcome->trace_file = option_trace;
  tool_add_failure (failures, g_steal_pointer (&failure));
  if (option_svg != NULL && pto_trace_save_svg (outcome->trace, option_svg, &failure))
    outcome->svg_file = option_svg;
  tool_add_failure (failures, g_steal_pointer (&failure));
  if (option_report != NULL && pto_trace_save_html (outcome->trace, option_report, &failure))
    outcome->report_file = option_report;
  tool_add_failure (failures, failure);
}

/* While the library builds; on a terminal it is told. */
static void
on_progress (PtoWorker *worker, guint done, guint total, const char *name, gboolean cached,
             gpointer data)
{
  Outcome *outcome = data;

  outcome->n_built += !cached;
  if (isatty (STDERR_FILENO) == 1)
    g_printerr (_ ("\rpto: building: %u of %u (%s)\033[K"), done, total, name);
}

/* A chip that can not be had is no matter of the manifest's: parameters come from elsewhere, too,
 * and so do limits of the system. */
static void
set_not_ready (const Manifest *manifest, const ManifestCase *item, PtoWorker *worker,
               const GError *failure, GError **error)
{
  if (pto_worker_get_state (worker) == PTO_WORKER_STATE_NEW
      || g_error_matches (failure, PTO_ERROR, PTO_ERROR_SYSTEM)
      || g_error_matches (failure, PTO_ERROR, PTO_ERROR_NO_MEMORY))
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, _ ("%s: case \"%s\": %s"), manifest->name,
                 item->name, failure->message);
  else
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, "%s: %s", manifest->file, failure->message);
}

static gboolean
run_example (const char *directory, guint repeat, GError **error)
{
  const char *platform = option_platform != NULL ? option_platform : "a2a3sim";
  g_autoptr (Manifest) manifest = NULL;
  g_autoptr (PtoWorker) worker = NULL;
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (Reference) reference = NULL;
  g_autoptr (PtoPlatform) known = NULL;
  g_autoptr (GError) local = NULL;
  g_autofree char *title = NULL;
  g_autofree char *unread = NULL;
  g_auto (Outcome) outcome = { 0 };
  GError *failures = NULL;
  const ManifestCase *item;
  gint64 build_start;

  known = pto_platform_lookup (platform, &local);
  if (known == NULL)
    {
      g_set_error (error, TOOL_ERROR,
                   strpbrk (platform, "/.") != NULL ? TOOL_ERROR_FAILED : TOOL_ERROR_USAGE,
                   "--platform: %s", local->message);
      return FALSE;
    }
  manifest = manifest_load (directory, error);
  item = manifest != NULL ? manifest_find_case (manifest, option_case, error) : NULL;
  if (item == NULL)
    return FALSE;

  worker = pto_worker_new (LEVEL_CHIP, platform, error);
  if (worker == NULL || !set_parameters (worker, manifest, item, error))
    return FALSE;
  /* A registration keeps the name that it was made with: the title of the trace. */
  title
      = g_strdup_printf ("%s: %s", manifest->name, item->title != NULL ? item->title : item->name);
  pto_callable_set_name (manifest->chip, title);

  build_start = g_get_monotonic_time ();
  g_signal_connect (worker, "progress", G_CALLBACK (on_progress), &outcome);
  if (pto_worker_start (worker, tool_get_cancellable (), &local))
    handle = pto_worker_register (worker, manifest->chip, tool_get_cancellable (), &local);
  outcome.build_seconds = (double) (g_get_monotonic_time () - build_start) / 1e6;
  g_signal_handlers_disconnect_by_data (worker, &outcome);
  if (handle != NULL)
    reference = reference_new (manifest, item, error);
  if (isatty (STDERR_FILENO) == 1)
    g_printerr ("\r\033[K");
  if (handle == NULL)
    {
      set_not_ready (manifest, item, worker, local, error);
      return FALSE;
    }
  if (reference == NULL)
    return FALSE;
  unread = reference_list_unread_keys (reference);
  if (unread != NULL)
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
                   _ ("%s: case \"%s\": nobody reads %s: neither a parameter of the runtime nor a "
                      "key of the reference"),
                   manifest->file, item->name, unread);
      return FALSE;
    }

  outcome.run_ns = g_array_new (FALSE, FALSE, sizeof (guint64));
  for (guint i = 0; i < repeat; i++)
    if (!run_once (worker, handle, manifest, item, reference, &outcome, error))
      return FALSE;
  g_array_sort (outcome.run_ns, compare_u64);
  outcome.trace = pto_worker_ref_trace (worker);
  save (&outcome, &failures);

  if (option_json)
    print_json (worker, manifest, item, &outcome);
  else
    print_table (worker, known, manifest, item, &outcome);
  if (outcome.n_bad > 0)
    tool_add_failure (&failures,
                      g_error_new (TOOL_ERROR, TOOL_ERROR_FAILED,
                                   _ ("%s: case \"%s\": %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                                      " elements are wrong, the first is %s"),
                                   manifest->name, item->name, outcome.n_bad, outcome.n_compared,
                                   outcome.first_bad));
  if (outcome.lies != NULL)
    tool_add_failure (&failures,
                      g_error_new (TOOL_ERROR, TOOL_ERROR_FAILED, _ ("%s: case \"%s\": %s"),
                                   manifest->name, item->name, outcome.lies));
  if (failures == NULL)
    return TRUE;
  g_propagate_error (error, failures);
  return FALSE;
}

gboolean
tool_run (char **words, GError **error)
{
  g_auto (GStrv) rest = g_strdupv (words);
  guint64 repeat = 1, seed;

  if (!tool_parse_options (tool_run_get_options (), &rest, error))
    return FALSE;
  if (rest[1] == NULL)
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                   _ ("which example? pto run DIR (see pto help run)"));
      return FALSE;
    }
  if (rest[2] != NULL)
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                   _ ("one directory at a time, not \"%s\" too"), rest[2]);
      return FALSE;
    }
  if (option_repeat != NULL && !parse_number ("repeat", option_repeat, 1, 1000000, &repeat, error))
    return FALSE;
  if (option_seed != NULL && !parse_number ("seed", option_seed, 0, G_MAXUINT64, &seed, error))
    return FALSE;
  if (option_dump_filter != NULL && option_dump == NULL)
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                   _ ("--dump-filter has no effect without --dump PREFIX"));
      return FALSE;
    }
  if (option_dump != NULL && option_dump[0] == '\0')
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                   _ ("--dump needs what the names of its files begin with, such as out/"));
      return FALSE;
    }
  if (!tool_check_output ("trace", option_trace,
                          option_trace != NULL && is_record (option_trace) ? ".ptotrace" : ".json",
                          error)
      || !tool_check_output ("svg", option_svg, ".svg", error)
      || !tool_check_output ("report", option_report, ".html", error))
    return FALSE;
  return run_example (rest[1], (guint) repeat, error);
}
