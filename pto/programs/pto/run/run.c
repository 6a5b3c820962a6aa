/* run.c: does an example compute what its reference expects, and how fast?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "top/progress.h"
#include "example.h"
#include "tool.h"

#include "common/json.h"
#include "common/save-file.h"
#include "common/stdout.h"

#include <glib/gi18n.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static char *option_case;
static char *option_platform;
static char *option_backend;
static char *option_seed;
static char *option_check;
static char *option_schedule;
static char *option_costs;
static char **option_set;
static char *option_repeat;
static char *option_trace;
static char *option_svg;
static char *option_report;
static char *option_metrics;
static char *option_dump;
static char *option_dump_filter;
static gboolean option_json;
static gboolean option_no_isolate;

static const GOptionEntry entries[] = {
  { "case", 'c', 0, G_OPTION_ARG_STRING, &option_case,
    N_ ("The case to run (default: the manifest's)"), N_ ("CASE") },
  { "platform", 'p', 0, G_OPTION_ARG_STRING, &option_platform,
    N_ ("The chip to simulate, or a file that describes one (default: a2a3sim)"),
    N_ ("PLATFORM|FILE") },
  { "backend", 'b', 0, G_OPTION_ARG_STRING, &option_backend,
    N_ ("How to run it: par (fast), det (virtual clock, reproducible) or threads"),
    N_ ("par|det|threads") },
  { "seed", 0, 0, G_OPTION_ARG_STRING, &option_seed, N_ ("The seed of the back end det"),
    N_ ("NUMBER") },
  { "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &option_set,
    N_ ("Set a parameter of the runtime (pto info lists them); may be given more than once"),
    N_ ("PARAMETER=VALUE") },
  { "repeat", 'n', 0, G_OPTION_ARG_STRING, &option_repeat,
    N_ ("Run it so many times and tell the median"), N_ ("NUMBER") },
  { "trace", 0, 0, G_OPTION_ARG_FILENAME, &option_trace,
    N_ ("Save the trace: .ptotrace for `pto trace`, .json for ui.perfetto.dev"),
    N_ ("FILE.ptotrace|FILE.json") },
  { "svg", 0, 0, G_OPTION_ARG_FILENAME, &option_svg, N_ ("Save a picture of the run"),
    N_ ("FILE.svg") },
  { "report", 0, 0, G_OPTION_ARG_FILENAME, &option_report,
    N_ ("Save a report of the run: a page for a browser, which needs nothing else"),
    N_ ("FILE.html") },
  { "metrics", 0, 0, G_OPTION_ARG_FILENAME, &option_metrics,
    N_ ("Save what the run has counted, as OpenMetrics text"), N_ ("FILE") },
  { "dump", 0, 0, G_OPTION_ARG_FILENAME, &option_dump,
    N_ ("Save what each task reads and writes as .npy files, and PREFIXdump.json, which lists them"),
    N_ ("PREFIX") },
  { "dump-filter", 0, 0, G_OPTION_ARG_STRING, &option_dump_filter,
    N_ ("Of these tasks and arguments only: QK,1:17,SF.2"), N_ ("TERMS") },
  { "check", 0, 0, G_OPTION_ARG_STRING, &option_check,
    N_ ("access: also check what kernels read and write against their tasks' arguments, and that "
        "tasks which touch the same bytes are in an order"),
    N_ ("access") },
  { "schedule", 0, 0, G_OPTION_ARG_STRING, &option_schedule,
    N_ ("Run one task after the other, in an order that pto explore has printed: 1:0-after-1:3 "
        "(on the back end det)"),
    N_ ("STRING") },
  { "costs", 0, 0, G_OPTION_ARG_STRING, &option_costs,
    N_ ("What kernels take on the virtual clock: own (as they say), or as measured on the clock "
        "chip, cpu or virtual (pto calibrate)"),
    N_ ("own|chip|cpu|virtual") },
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
  const char *metrics_file;     /* where what was counted was */
  char *dump_file;              /* the list of what was dumped */
  GArray *run_ns;               /* guint64, one per repetition, ascending */
  double max_abs_error;         /* of finite elements */
  double max_rel_error;
  NotFinite differing; /* of the repetition that has most, as n_allowed */
  guint64 n_allowed;   /* wrong elements of outputs that have passed all the same */
  guint64 n_bad;       /* in the first repetition that had any */
  guint64 n_compared;
  char *first_bad;
  char *first_writer; /* the task that has written it last; NULL: not known */
  char *bad_lines;
  char *lies; /* what kernels touched and must not, of the first repetition that had any; NULL */
} Outcome;

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
  /* Of the back end det alone. */
  const struct
  {
    const char *name;
    const char *set;
    const char *option; /* NULL: there is no such option, but --set */
  } of_det[] = { { "seed", "set seed", option_seed },
                 { "jitter", "set jitter", NULL },
                 { "costs", "set costs", option_costs } };
  g_autofree char *trace = pto_worker_dup_parameter (worker, "trace", NULL);
  gboolean is_det = strcmp (backend, "det") == 0;
  gboolean recorded = g_strcmp0 (trace, "1") == 0 || is_file_wanted () || (option_json && is_det);

  for (guint i = 0; i < G_N_ELEMENTS (of_det); i++)
    if (!is_det && (of_det[i].option != NULL || example_was_set (option_set, of_det[i].name)))
      return tool_refuse (error, _ ("--%s has no effect on the back end %s: add --backend det"),
                          of_det[i].option != NULL ? of_det[i].name : of_det[i].set, backend);
  if (option_no_isolate && example_was_set (option_set, "isolate"))
    return tool_refuse (
        error,
        _ ("--no-isolate and --set isolate say the same or contradict each other: give one"));
  if (example_was_set (option_set, "carriers") && strcmp (backend, "par") != 0)
    return tool_refuse (error, _ ("--set carriers has no effect on the back end %s, only on par"),
                        backend);
  if (example_was_set (option_set, "utilization") && is_det)
    return tool_refuse (
        error, _ ("--set utilization has no effect on the back end det, which always knows it"));
  if ((option_schedule != NULL || example_was_set (option_set, "schedule")) && !is_det)
    return tool_refuse (
        error, _ ("--%s needs the back end det, not %s: no other knows when nothing else goes on"),
        option_schedule != NULL ? "schedule" : "set schedule", backend);
  return !example_was_set (option_set, "trace-records") || recorded
         || tool_refuse (
             error,
             _ ("--set trace-records has no effect on a run that is not recorded: add --report, "
                "--trace or --svg"));
}

static gboolean
is_set_to (PtoWorker *worker, const char *parameter, const char *value)
{
  g_autofree char *found = pto_worker_dup_parameter (worker, parameter, NULL);

  return g_strcmp0 (found, value) == 0;
}

/* The last writer of an element: a task may have written some bytes of it only. */
static char *
dup_writer (PtoWorker *worker, PtoBuffer *buffer, guint64 index, guint64 n_bytes)
{
  char *writer = NULL;

  for (guint64 i = 0; i < n_bytes && writer == NULL; i++)
    writer = pto_worker_dup_last_writer (worker,
                                         pto_buffer_get_address (buffer) + index * n_bytes + i);
  return writer;
}

static gboolean
set_parameters (Example *example, GError **error)
{
  PtoWorker *worker = example->worker;
  g_autofree char *backend = NULL;
  gboolean deterministic;

  /* Unless somebody says otherwise: whatever a kernel does ends in a message. Who has written what
   * is known in the chip's process only. */
  if ((option_no_isolate || !example_is_in_environment ("isolate"))
      && !pto_worker_set_parameter (worker, "isolate",
                                    option_no_isolate || option_check != NULL ? "0" : "1", error))
    return FALSE;
  if (!example_set_case (example, error))
    return FALSE;

  /* How busy the cores were is worth two looks at the clock a task, unless somebody says otherwise.
   */
  if (!example_is_in_environment ("utilization")
      && !pto_worker_set_parameter (worker, "utilization", "1", error))
    return FALSE;
  if (!example_set_options (example, option_set, error)
      || !example_set_option (example, "backend", option_backend, error))
    return FALSE;
  /* No other has one. */
  if (option_schedule != NULL && option_backend == NULL && !example_was_set (option_set, "backend")
      && !pto_worker_set_parameter (worker, "backend", "det", error))
    return FALSE;
  if (!example_set_schedule (example, option_schedule, error)
      || !example_set_option (example, "seed", option_seed, error)
      || !example_set_option (example, "check", option_check, error)
      || !example_set_option (example, "costs", option_costs, error))
    return FALSE;

  backend = pto_worker_dup_parameter (worker, "backend", error);
  if (backend == NULL || !check_effect (worker, backend, error))
    return FALSE;

  /* Two runs are compared by their traces: on det the digest is part of the result. */
  deterministic
      = option_json && strcmp (backend, "det") == 0 && !example_was_set (option_set, "trace");
  if ((is_file_wanted () || deterministic)
      && !pto_worker_set_parameter (worker, "trace", "1", error))
    return FALSE;
  /* What is asked of it later is not known now. */
  return (option_report == NULL && (option_trace == NULL || !is_record (option_trace)))
         || example_was_set (option_set, "trace-level")
         || pto_worker_set_parameter (worker, "trace-level", "4", error);
}

/* Compares all outputs. */
static gboolean
compare_outputs (const Example *example, const GPtrArray *buffers, Outcome *outcome, GError **error)
{
  NotFinite differing = { 0 };
  guint64 n_allowed = 0;

  for (guint i = 0; i < buffers->len; i++)
    {
      const ReferenceArgument *argument = reference_get_argument (example->reference, i);
      PtoBuffer *buffer = g_ptr_array_index (buffers, i);
      g_autoptr (GBytes) bytes = NULL;
      Comparison comparison;

      if (!argument->is_output)
        continue;
      bytes = pto_buffer_read (buffer, 0, argument->n_bytes, error);
      if (bytes == NULL)
        return FALSE;
      reference_compare (argument, g_bytes_get_data (bytes, NULL), &example->item->tolerance,
                         &comparison);
      outcome->max_abs_error = MAX (outcome->max_abs_error, comparison.max_abs_error);
      outcome->max_rel_error = MAX (outcome->max_rel_error, comparison.max_rel_error);
      not_finite_add (&differing, &comparison.differing);
      n_allowed += comparison.passed ? comparison.n_bad : 0;
      if (!comparison.passed && outcome->first_bad == NULL)
        {
          outcome->n_bad = comparison.n_bad;
          outcome->n_compared = argument->n_elements;
          outcome->first_bad = g_steal_pointer (&comparison.first_bad);
          outcome->first_writer = dup_writer (example->worker, buffer, comparison.first_index,
                                              argument->n_bytes / argument->n_elements);
          outcome->bad_lines = g_steal_pointer (&comparison.bad_lines);
        }
      comparison_clear (&comparison);
    }
  outcome->n_allowed = MAX (outcome->n_allowed, n_allowed);
  if (differing.n_nan + differing.n_infinite
      > outcome->differing.n_nan + outcome->differing.n_infinite)
    outcome->differing = differing;
  return TRUE;
}

/* Of the first repetition: the others do the same. NULL: nothing is dumped. */
static PtoCallConfig *
make_config (const Outcome *outcome)
{
  PtoCallConfig *config;

  if (option_dump == NULL || outcome->run_ns->len > 0)
    return NULL;
  config = pto_call_config_new ();
  pto_call_config_set_enable_dump_tensor (config, 1);
  pto_call_config_set_dump_filter (config, option_dump_filter);
  pto_call_config_set_output_prefix (config, option_dump);
  return config;
}

/* Makes the arguments on the device, runs, and compares every output. */
static gboolean
run_once (const Example *example, Outcome *outcome, GError **error)
{
  PtoWorker *worker = example->worker;
  g_autoptr (GPtrArray) buffers = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoCallConfig) config = make_config (outcome);
  guint64 ns;

  buffers = example_add_arguments (example, args, error);
  if (buffers == NULL)
    return FALSE;
  if (!pto_worker_run_callable (worker, example->handle, args, config, tool_get_cancellable (),
                                error))
    {
      /* The tasks have run, and what they gave can be looked at. */
      if (!g_error_matches (*error, PTO_ERROR, PTO_ERROR_ACCESS))
        return FALSE;
      if (outcome->lies == NULL)
        outcome->lies = g_strdup ((*error)->message);
      g_clear_error (error);
    }
  if (config != NULL)
    outcome->dump_file = g_strconcat (option_dump, "dump.json", NULL);
  g_clear_pointer (&outcome->statistics, pto_run_statistics_free);
  outcome->statistics = pto_worker_dup_statistics (worker);
  ns = pto_run_statistics_get_run_ns (outcome->statistics);
  g_array_append_val (outcome->run_ns, ns);
  return compare_outputs (example, buffers, outcome, error);
}

static double
tasks_per_second (const Outcome *outcome)
{
  guint64 ns = median_ns (outcome);

  return ns > 0 ? (double) pto_run_statistics_get_tasks (outcome->statistics) * 1e9 / (double) ns
                : 0;
}

static void
print_json (const Example *example, const Outcome *outcome)
{
  PtoWorker *worker = example->worker;
  JsonBuilder *builder = json_builder_new ();
  const PtoRunStatistics *statistics = outcome->statistics;
  g_autofree char *backend = pto_worker_dup_parameter (worker, "backend", NULL);
  g_autofree char *seed = pto_worker_dup_parameter (worker, "seed", NULL);
  g_autofree char *schedule = pto_worker_dup_parameter (worker, "schedule", NULL);
  gboolean deterministic = g_strcmp0 (backend, "det") == 0;
  guint64 seed_value = 0;

  json_builder_begin_object (builder);
  pto_json_add_string (builder, "example", example->manifest->name);
  pto_json_add_string (builder, "case", example->item->name);
  pto_json_add_string (builder, "platform", pto_worker_get_platform (worker));
  pto_json_add_string (builder, "backend", backend);
  if (seed != NULL
      && g_ascii_string_to_unsigned (seed, 10, 0, (guint64) G_MAXINT64, &seed_value, NULL))
    pto_json_add_int (builder, "seed", seed_value);
  else
    pto_json_add_string (builder, "seed", seed);
  if (schedule != NULL && schedule[0] != '\0')
    pto_json_add_string (builder, "schedule", schedule);
  pto_json_add_int (builder, "tasks", pto_run_statistics_get_tasks (statistics));
  pto_json_add_int (builder, "edges", pto_run_statistics_get_edges (statistics));
  pto_json_add_boolean (builder, "passed", outcome->n_bad == 0);
  /* JSON has neither NaN nor infinity: null, and a count says which. */
  pto_json_add_double (builder, "max_abs_error",
                       not_finite_max_error (&outcome->differing, outcome->max_abs_error));
  pto_json_add_double (builder, "max_rel_error",
                       not_finite_max_error (&outcome->differing, outcome->max_rel_error));
  pto_json_add_int (builder, "mismatches_nan", outcome->differing.n_nan);
  pto_json_add_int (builder, "mismatches_infinite", outcome->differing.n_infinite);
  pto_json_add_int (builder, "mismatches_allowed", outcome->n_allowed);
  pto_json_add_string (builder, "first_bad", outcome->first_bad);
  if (is_set_to (worker, "check", "access"))
    {
      pto_json_add_string (builder, "first_bad_writer", outcome->first_writer);
      pto_json_add_string (builder, "accesses", outcome->lies);
    }
  pto_json_add_int (builder, "repeats", outcome->run_ns->len);
  pto_json_add_double (builder, "run_seconds", (double) median_ns (outcome) / 1e9);
  pto_json_add_double (builder, "tasks_per_second", tasks_per_second (outcome));
  json_builder_set_member_name (builder, "virtual_ns");
  if (deterministic)
    json_builder_add_int_value (builder, (gint64) pto_run_statistics_get_virtual_ns (statistics));
  else
    json_builder_add_null_value (builder);
  pto_json_add_string (
      builder, "trace_sha256",
      deterministic && outcome->trace != NULL ? pto_trace_get_sha256 (outcome->trace) : NULL);
  pto_json_add_double (builder, "aic_utilization",
                       pto_run_statistics_get_utilization (statistics, PTO_CORE_AIC));
  pto_json_add_double (builder, "aiv_utilization",
                       pto_run_statistics_get_utilization (statistics, PTO_CORE_AIV));
  pto_json_add_int (builder, "aic_cores",
                    pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIC));
  pto_json_add_int (builder, "aiv_cores",
                    pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIV));
  pto_json_add_int (builder, "peak_live_tasks",
                    pto_run_statistics_get_peak_live_tasks (statistics));
  pto_json_add_int (builder, "recycled", pto_run_statistics_get_recycled (statistics));
  pto_json_add_int (builder, "stalls", pto_run_statistics_get_stalls (statistics));
  pto_json_begin_array (builder, "last_task_alive");
  for (guint r = 0; r < PTO_N_RINGS; r++)
    json_builder_add_int_value (builder,
                                (gint64) pto_run_statistics_get_last_task_alive (statistics, r));
  json_builder_end_array (builder);
  if (outcome->trace != NULL)
    pto_json_add_int (builder, "trace_dropped", pto_trace_get_dropped (outcome->trace));
  pto_json_add_string (builder, "trace", outcome->trace_file);
  pto_json_add_string (builder, "svg", outcome->svg_file);
  pto_json_add_string (builder, "report", outcome->report_file);
  pto_json_add_string (builder, "dump", outcome->dump_file);
  pto_json_add_string (builder, "metrics", outcome->metrics_file);
  json_builder_end_object (builder);
  tool_print_json (builder);
}

/* Where a file went, or NULL: whole, when `meson devenv` has put the program into a directory of
 * its own. */
static char *
shown_path (const char *path)
{
  return path != NULL && g_getenv ("MESON_DEVENV") != NULL ? g_canonicalize_filename (path, NULL)
                                                           : g_strdup (path);
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
print_files (const Outcome *outcome)
{
  g_autofree char *trace = shown_path (outcome->trace_file);
  g_autofree char *svg = shown_path (outcome->svg_file);
  g_autofree char *report = shown_path (outcome->report_file);
  g_autofree char *dump = shown_path (outcome->dump_file);
  g_autofree char *metrics = shown_path (outcome->metrics_file);

  if (trace != NULL)
    tool_print_row_printf (_ ("trace"),
                           is_record (trace) ? _ ("%s (ask it: pto trace)")
                                             : _ ("%s (open in ui.perfetto.dev)"),
                           trace);
  tool_print_row (_ ("picture"), svg);
  if (report != NULL)
    tool_print_row_printf (_ ("report"), _ ("%s (open in a browser)"), report);
  tool_print_row (_ ("tensors"), dump);
  tool_print_row (_ ("metrics"), metrics);
}

static void
print_kernels (const Example *example)
{
  PtoChipOrchestration *chip = PTO_CHIP_ORCHESTRATION (example->manifest->chip);
  g_autoptr (GString) kernels = g_string_new (NULL);

  for (guint i = 0; i < pto_chip_orchestration_get_n_kernels (chip); i++)
    if (pto_chip_orchestration_get_kernel_name (chip, i) != NULL)
      g_string_append_printf (kernels, "%s%s", kernels->len > 0 ? " " : "",
                              pto_chip_orchestration_get_kernel_name (chip, i));
  if (kernels->len == 0)
    tool_print_row (_ ("kernels"), _ ("none"));
  else if (example->n_built > 0)
    tool_print_row_printf (_ ("kernels"), _ ("%s (built in %.1f s)"), kernels->str,
                           example->build_seconds);
  else
    tool_print_row_printf (_ ("kernels"), _ ("%s (cached)"), kernels->str);
}

static void
print_table (const Example *example, const Outcome *outcome)
{
  PtoWorker *worker = example->worker;
  const PtoRunStatistics *statistics = outcome->statistics;
  g_autofree char *backend = pto_worker_dup_parameter (worker, "backend", NULL);
  g_autofree char *seed = pto_worker_dup_parameter (worker, "seed", NULL);
  g_autofree char *schedule = pto_worker_dup_parameter (worker, "schedule", NULL);
  g_autofree char *threads = pto_worker_dup_parameter (worker, "aicpu-threads", NULL);
  g_autofree char *tasks = tool_group_digits (pto_run_statistics_get_tasks (statistics));
  g_autofree char *edges = tool_group_digits (pto_run_statistics_get_edges (statistics));
  g_autofree char *peak = tool_group_digits (pto_run_statistics_get_peak_live_tasks (statistics));
  g_autofree char *recycled = tool_group_digits (pto_run_statistics_get_recycled (statistics));
  double per_second = tasks_per_second (outcome);
  g_autofree char *rate = per_second < 10 ? g_strdup_printf ("%.1f", per_second)
                                          : tool_group_digits ((guint64) per_second);
  g_autofree char *duration = format_duration (median_ns (outcome));
  g_autofree char *schedulers = NULL;
  g_autofree char *verdict = NULL;
  guint64 n_threads = threads != NULL ? g_ascii_strtoull (threads, NULL, 10) : 0;

  if (n_threads == 0)
    n_threads = pto_platform_get_n_aicpu_threads (example->platform);
  schedulers = tool_count_schedulers ((guint) n_threads - 1);
  g_print (_ ("%s on %s: %u AIC + %u AIV, %s + 1 orchestrator\n"), example->manifest->name,
           pto_worker_get_platform (worker),
           pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIC),
           pto_run_statistics_get_n_cores (statistics, PTO_CORE_AIV), schedulers);
  example_print_case (example);
  print_kernels (example);
  tool_print_row (_ ("tasks"), tasks);
  tool_print_row (_ ("edges"), edges);
  if (g_strcmp0 (backend, "det") == 0)
    tool_print_row_printf (_ ("back end"), _ ("%s, seed %s"), backend, seed);
  else
    tool_print_row (_ ("back end"), backend);
  if (schedule != NULL && schedule[0] != '\0')
    tool_print_row (_ ("schedule"), schedule);
  if (outcome->differing.n_nan > 0 && outcome->n_bad > 0)
    verdict = g_strdup (_ ("FAIL  not a number"));
  else
    verdict = g_strdup_printf (outcome->n_bad == 0 ? _ ("PASS  max error %.2g")
                                                   : _ ("FAIL  max error %.2g"),
                               not_finite_max_error (&outcome->differing, outcome->max_abs_error));
  tool_print_verdict (_ ("result"), outcome->n_bad == 0, verdict);
  if (outcome->differing.n_nan + outcome->differing.n_infinite > 0)
    tool_print_row_printf (_ ("not finite"),
                           _ ("elements that differ: %" PRIu64 " of NaN, %" PRIu64
                              " of infinity; max error of the others: %.2g"),
                           outcome->differing.n_nan, outcome->differing.n_infinite,
                           outcome->max_abs_error);
  if (outcome->n_allowed > 0)
    tool_print_row_printf (_ ("allowed"), _ ("wrong elements: %" PRIu64 " (mismatch-share=%g)"),
                           outcome->n_allowed, example->item->tolerance.mismatch_share);
  if (outcome->n_allowed > 0 || outcome->n_bad > 0)
    tool_print_row_printf (_ ("relative"), _ ("max error %.2g of what is expected"),
                           not_finite_max_error (&outcome->differing, outcome->max_rel_error));
  if (outcome->bad_lines != NULL)
    tool_print_lines ("", outcome->bad_lines);
  if (outcome->first_writer != NULL)
    tool_print_row (_ ("written by"), outcome->first_writer);
  else if (outcome->first_bad != NULL && is_set_to (worker, "check", "access"))
    tool_print_row (_ ("written by"), is_set_to (worker, "isolate", "1")
                                          ? _ ("not known of a process of its own: --no-isolate")
                                          : _ ("no task of the run"));
  if (is_set_to (worker, "check", "access"))
    tool_print_row (_ ("accesses"),
                    outcome->lies == NULL ? _ ("as declared") : _ ("not as declared"));
  if (outcome->run_ns->len > 1)
    tool_print_row_printf (_ ("run time"), _ ("%s, %s tasks/s (median of %u)"), duration, rate,
                           outcome->run_ns->len);
  else
    tool_print_row_printf (_ ("run time"), _ ("%s, %s tasks/s"), duration, rate);
  if (pto_run_statistics_get_virtual_ns (statistics) > 0)
    {
      g_autofree char *on_chip = format_duration (pto_run_statistics_get_virtual_ns (statistics));

      tool_print_row (_ ("virtual time"), on_chip);
    }
  tool_print_row_printf (_ ("chip busy"), _ ("AIC %.0f %%  AIV %.0f %%"),
                         100 * pto_run_statistics_get_utilization (statistics, PTO_CORE_AIC),
                         100 * pto_run_statistics_get_utilization (statistics, PTO_CORE_AIV));
  tool_print_row_printf (_ ("slots"), _ ("%s in use at most, recycled %s times"), peak, recycled);
  if (outcome->trace != NULL && pto_trace_get_dropped (outcome->trace) > 0)
    tool_print_row_printf (_ ("dropped"),
                           _ ("%" PRIu64 " records of the trace: set trace-records higher"),
                           pto_trace_get_dropped (outcome->trace));
  print_files (outcome);
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
      tool_fail (failures, _ ("there is no trace: the run was not recorded"));
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

/* Of all repetitions; of a run that has failed, too. */
static void
save_metrics (PtoWorker *worker, Outcome *outcome, GError **failures)
{
  g_autofree char *metrics = option_metrics != NULL ? pto_worker_dup_metrics (worker) : NULL;
  GError *failure = NULL;

  if (metrics != NULL && pto_save (option_metrics, metrics, strlen (metrics), 0666, &failure))
    outcome->metrics_file = option_metrics;
  tool_add_failure (failures, failure);
}

static gboolean
run_example (const char *directory, guint repeat, GError **error)
{
  g_auto (Example) example = { 0 };
  g_auto (Outcome) outcome = { 0 };
  g_autoptr (Progress) progress = NULL;
  g_autoptr (GError) local = NULL;
  GError *failures = NULL;
  gboolean ok = TRUE;

  if (!example_open (&example, directory, option_case, option_platform, error)
      || !set_parameters (&example, error) || !example_start (&example, error))
    return FALSE;
  outcome.run_ns = g_array_new (FALSE, FALSE, sizeof (guint64));
  progress = progress_begin (example.worker);
  for (guint i = 0; ok && i < repeat; i++)
    ok = run_once (&example, &outcome, &local);
  if (!ok)
    {
      tool_fail (&failures, _ ("%s: case \"%s\": %s"), example.manifest->name, example.item->name,
                 local->message);
      save_metrics (example.worker, &outcome, &failures);
      g_propagate_error (error, failures);
      return FALSE;
    }
  g_clear_pointer (&progress, progress_end);
  g_array_sort (outcome.run_ns, compare_u64);
  outcome.trace = pto_worker_ref_trace (example.worker);
  save (&outcome, &failures);
  save_metrics (example.worker, &outcome, &failures);

  if (option_json)
    print_json (&example, &outcome);
  else
    print_table (&example, &outcome);
  if (outcome.n_bad > 0)
    tool_add_failure (&failures,
                      g_error_new (TOOL_ERROR, TOOL_ERROR_FAILED,
                                   _ ("%s: case \"%s\": %" PRIu64 " of %" PRIu64
                                      " elements are wrong, the first is %s"),
                                   example.manifest->name, example.item->name, outcome.n_bad,
                                   outcome.n_compared, outcome.first_bad));
  if (outcome.lies != NULL)
    tool_add_failure (&failures,
                      g_error_new (TOOL_ERROR, TOOL_ERROR_FAILED, _ ("%s: case \"%s\": %s"),
                                   example.manifest->name, example.item->name, outcome.lies));
  if (failures == NULL)
    return TRUE;
  g_propagate_error (error, failures);
  return FALSE;
}

/* Each is of its kind, and none is written over another one, or over what is read. */
static gboolean
check_outputs (const char *directory, GError **error)
{
  g_autofree char *manifest = g_build_filename (directory, "pto.ini", NULL);
  const struct
  {
    const char *option;
    const char *path;
    const char *suffix;
  } outputs[] = { { "--trace", option_trace,
                    option_trace != NULL && is_record (option_trace) ? ".ptotrace" : ".json" },
                  { "--svg", option_svg, ".svg" },
                  { "--report", option_report, ".html" },
                  { "--metrics", option_metrics, "" } };

  for (guint i = 0; i < G_N_ELEMENTS (outputs); i++)
    {
      if (!tool_check_output (outputs[i].option, outputs[i].path, outputs[i].suffix, error)
          || !tool_check_other (outputs[i].option, outputs[i].path, manifest, error)
          || !tool_check_other (outputs[i].option, outputs[i].path, option_platform, error))
        return FALSE;
      for (guint k = 0; k < i; k++)
        if (!tool_check_other (outputs[i].option, outputs[i].path, outputs[k].path, error))
          return FALSE;
    }
  return TRUE;
}

static gboolean
tool_run (char **words, GError **error)
{
  guint64 repeat = 1, seed;

  /* What kernels print is no part of it. */
  if (option_json)
    pto_stdout_divert ();
  if (!tool_parse_number ("repeat", option_repeat, 1, 1000000, &repeat, error)
      || !tool_parse_number ("seed", option_seed, 0, G_MAXUINT64, &seed, error))
    return FALSE;
  if (option_dump_filter != NULL && option_dump == NULL)
    return tool_refuse (error, _ ("--dump-filter has no effect without --dump PREFIX"));
  if (option_dump != NULL && option_dump[0] == '\0')
    return tool_refuse (error,
                        _ ("--dump needs what the names of its files begin with, such as out/"));
  if (!check_outputs (words[1], error))
    return FALSE;
  tool_listen ();
  return run_example (words[1], (guint) repeat, error);
}

const ToolCommand tool_run_command = {
  .name = "run",
  .purpose = N_ ("build an example, run it on a simulated chip and check what it computes"),
  .operands = N_ ("DIR"),
  .missing = N_ ("which example? pto run DIR (see pto help run)"),
  .summary = N_ ("Builds the example in DIR (its pto.ini says of what), runs it on a "
                 "simulated chip and\nchecks the results against its reference."),
  .entries = entries,
  .run = tool_run,
};
