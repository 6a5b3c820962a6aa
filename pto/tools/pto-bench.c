/* pto-bench.c: how fast is this runtime here, and how fast are the others?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Runs the programs of tests/bench, one per runtime, in turns (A B C A B C ...), so that a machine
 * that gets slower or faster meanwhile does so for all of them. What it tells is the median and the
 * spread of all repetitions. A program that is not there is left out and named.
 */
#include "config.h"

#include "pto-bench.h"
#include "tool.h"

#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <math.h>
#include <pto/pto.h>
#include <sched.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define WORKERS 2
#define PROGRAM_SECONDS 120 /* more than any program needs */

static gboolean option_json;
static gboolean option_quick;
static char *option_only;
static char *option_svg;
static char *option_markdown;

static const GOptionEntry entries[]
    = { { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("Print one JSON array, not tables"),
          NULL },
        { "only", 0, 0, G_OPTION_ARG_STRING, &option_only,
          N_ ("Measure only these, apart by commas"), N_ ("NAMES") },
        { "quick", 0, 0, G_OPTION_ARG_NONE, &option_quick, N_ ("Fewer repetitions"), NULL },
        { "svg", 0, 0, G_OPTION_ARG_FILENAME, &option_svg, N_ ("Save a chart"), N_ ("FILE.svg") },
        { "markdown", 0, 0, G_OPTION_ARG_FILENAME, &option_markdown,
          N_ ("Save the tables and the machine"), N_ ("FILE.md") },
        G_OPTION_ENTRY_NULL };

typedef struct
{
  const char *name;
  const char *description;
  gboolean infers; /* finds dependencies by itself */
  const char *colour;
} Runtime;

/* Colours that colour-blind readers can tell apart. */
static const Runtime runtimes[] = {
  { "pto", N_ ("libpto, simulated chip a2a3sim with its defaults"), TRUE, "#d55e00" },
  { "libgomp", N_ ("OpenMP tasks, GNU"), TRUE, "#0072b2" },
  { "libomp", N_ ("OpenMP tasks, LLVM"), TRUE, "#56b4e9" },
  { "starpu", N_ ("StarPU, scheduler lws"), TRUE, "#009e73" },
  { "tbb-flow", N_ ("oneTBB flow graph"), FALSE, "#cc79a7" },
  { "tbb-group", N_ ("oneTBB task_group"), FALSE, "#e0c000" },
  { "gthreadpool", N_ ("GThreadPool"), FALSE, "#8a8a8a" },
};

#define PTO 0
#define N_RUNTIMES G_N_ELEMENTS (runtimes)

static const struct
{
  const char *name;
  const char *description;
} workloads[] = {
  { "W1", N_ ("independent") }, { "W2", N_ ("chain") },    { "W3", N_ ("1-64-1 rounds") },
  { "W4", N_ ("stencil") },     { "W5", N_ ("Cholesky") }, { "W6", N_ ("attention") },
};

#define N_WORKLOADS G_N_ELEMENTS (workloads)

static const struct
{
  const char *name;
  const char *description;
  gboolean once; /* takes long and hardly varies */
} figures[] = {
  { "floor_72", N_ ("warm run of an empty orchestration, 72 cores"), FALSE },
  { "independent_72", N_ ("10 000 independent tasks, 72 cores"), FALSE },
  { "chain_72", N_ ("chain of 10 000 tasks, 72 cores"), FALSE },
  { "chain_1152", N_ ("chain of 10 000 tasks, 1152 cores"), FALSE },
  { "cores_3", N_ ("10 000 independent tasks, a task, 3 cores"), FALSE },
  { "cores_24", N_ ("the same, 24 cores"), FALSE },
  { "cores_72", N_ ("the same, 72 cores"), FALSE },
  { "cores_288", N_ ("the same, 288 cores"), FALSE },
  { "cores_1152", N_ ("the same, 1152 cores"), FALSE },
  { "submit_arg1", N_ ("submit with 1 tensor argument"), FALSE },
  { "submit_arg2", N_ ("submit with 2 tensor arguments"), FALSE },
  { "submit_arg4", N_ ("submit with 4 tensor arguments"), FALSE },
  { "submit_arg8", N_ ("submit with 8 tensor arguments"), FALSE },
  { "submit_views1", N_ ("submit on the only view of a buffer"), FALSE },
  { "submit_views16", N_ ("submit on one of 16 live views of a buffer"), FALSE },
  { "submit_views1024", N_ ("submit on one of 1024 live views of a buffer"), FALSE },
  { "memory_10m", N_ ("10 million tasks: memory above start; growth since a tenth of them"), TRUE },
  { "idle", N_ ("CPU time of an idle chip in 500 ms"), FALSE },
  { "det", N_ ("simulated tasks per second on the virtual clock (W6)"), FALSE },
  { "trace_overhead", N_ ("tasks of 1 us take longer when recorded, percent"), FALSE },
};

#define N_FIGURES G_N_ELEMENTS (figures)
/* This one needs no program of its own. */
#define FIRST_TASK "first_task"
#define FIRST_TASK_DESCRIPTION N_ ("from `pto run` to its first task, kernels built before")

typedef struct
{
  char *workload;
  const char *runtime;
  char *metric;
  char *unit;
  GArray *values; /* double; ascending once all are there */
} Row;

typedef struct
{
  char *directory;
  char *programs[N_RUNTIMES]; /* NULL: not there, or it failed */
  GPtrArray *left_out;        /* sentences */
  GPtrArray *rows;
  gboolean show_progress;
  gboolean failed; /* our own program did */
} Bench;

static void
row_free (gpointer data)
{
  Row *row = data;

  g_free (row->workload);
  g_free (row->metric);
  g_free (row->unit);
  g_array_unref (row->values);
  g_free (row);
}

GOptionContext *
tool_bench_get_options (void)
{
  GOptionContext *context = g_option_context_new (NULL);
  g_autoptr (GString) names = g_string_new (NULL);

  g_option_context_set_summary (
      context,
      _ ("Measures this runtime, and those other task runtimes that were found when it was built, "
         "on the same "
         "graphs with 2 workers each. A quiet machine needs about ten minutes, with --quick two."));
  for (guint i = 0; i < N_WORKLOADS; i++)
    g_string_append_printf (names, "  %-18s%s\n", workloads[i].name, _ (workloads[i].description));
  for (guint i = 0; i < N_FIGURES; i++)
    g_string_append_printf (names, "  %-18s%s\n", figures[i].name, _ (figures[i].description));
  g_string_append_printf (names, "  %-18s%s", FIRST_TASK, _ (FIRST_TASK_DESCRIPTION));
  g_option_context_set_description (context, names->str);
  g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  return context;
}

static Row *
find_row (Bench *bench, const char *workload, const char *runtime, const char *metric)
{
  for (guint i = 0; i < bench->rows->len; i++)
    {
      Row *row = g_ptr_array_index (bench->rows, i);

      if (strcmp (row->workload, workload) == 0 && strcmp (row->runtime, runtime) == 0
          && strcmp (row->metric, metric) == 0)
        return row;
    }
  return NULL;
}

static void
add_value (Bench *bench, const char *workload, const char *runtime, const char *metric,
           double value, const char *unit)
{
  Row *row = find_row (bench, workload, runtime, metric);

  if (row == NULL)
    {
      row = g_new (Row, 1);
      row->workload = g_strdup (workload);
      row->runtime = runtime;
      row->metric = g_strdup (metric);
      row->unit = g_strdup (unit);
      row->values = g_array_new (FALSE, FALSE, sizeof (double));
      g_ptr_array_add (bench->rows, row);
    }
  g_array_append_val (row->values, value);
}

static int
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static double
row_min (const Row *row)
{
  return g_array_index (row->values, double, 0);
}

static double
row_max (const Row *row)
{
  return g_array_index (row->values, double, row->values->len - 1);
}

static double
row_median (const Row *row)
{
  guint n = row->values->len;

  return (g_array_index (row->values, double, (n - 1) / 2)
          + g_array_index (row->values, double, n / 2))
         / 2;
}

/* Beside the program: in a build tree, or installed. */
static char *
dup_directory (void)
{
  const char *told = g_getenv ("PTO_BENCH_DIR");
  static const char *const places[] = { "../../tests/bench", "../libexec/pto/bench" };
  g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *beside = program != NULL ? g_path_get_dirname (program) : NULL;

  if (told != NULL && *told != '\0')
    return g_strdup (told);
  for (guint i = 0; beside != NULL && i < G_N_ELEMENTS (places); i++)
    {
      g_autofree char *directory = g_canonicalize_filename (places[i], beside);
      g_autofree char *bench = g_build_filename (directory, "bench-pto", NULL);

      if (g_file_test (bench, G_FILE_TEST_IS_EXECUTABLE))
        return g_steal_pointer (&directory);
    }
  return NULL;
}

static gboolean
find_programs (Bench *bench, GError **error)
{
  bench->directory = dup_directory ();
  for (guint i = 0; bench->directory != NULL && i < N_RUNTIMES; i++)
    {
      g_autofree char *name = g_strdup_printf ("bench-%s", runtimes[i].name);
      g_autofree char *path = g_build_filename (bench->directory, name, NULL);

      if (g_file_test (path, G_FILE_TEST_IS_EXECUTABLE))
        bench->programs[i] = g_steal_pointer (&path);
      else
        g_ptr_array_add (
            bench->left_out,
            g_strdup_printf (_ ("%s: was not found when this was built"), runtimes[i].name));
    }
  if (bench->programs[PTO] != NULL)
    return TRUE;
  if (bench->directory != NULL)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
                 _ ("%s: there is no bench-pto (PTO_BENCH_DIR)"), bench->directory);
  else
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
                 _ ("the benchmark programs are not built (meson configure -Dtests=enabled)"));
  return FALSE;
}

static void
show (Bench *bench, const char *workload, const char *runtime, guint round, guint n_rounds)
{
  if (bench->show_progress)
    g_printerr ("\r\033[K%s %s %u/%u", workload, runtime, round + 1, n_rounds);
}

static void
hide (Bench *bench)
{
  if (bench->show_progress)
    g_printerr ("\r\033[K");
}

/* What a program may take before it is given up. */
static gboolean
give_up (gpointer data)
{
  g_subprocess_force_exit (data);
  return G_SOURCE_REMOVE;
}

typedef struct
{
  GMainLoop *loop;
  char *output;
  char *errors;
  GError *error;
} Talk;

static void
on_communicated (GObject *object, GAsyncResult *result, gpointer data)
{
  Talk *talk = data;

  g_subprocess_communicate_utf8_finish (G_SUBPROCESS (object), result, &talk->output, &talk->errors,
                                        &talk->error);
  g_main_loop_quit (talk->loop);
}

/* What the program printed; NULL after an error, which begins with what the program said. */
static char *
run_program (const char *const *words, const char *directory, GError **error)
{
  g_autoptr (GSubprocessLauncher) launcher
      = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
  g_autoptr (GMainContext) context = g_main_context_new ();
  g_autoptr (GMainLoop) loop = g_main_loop_new (context, FALSE);
  g_autoptr (GSubprocess) process = NULL;
  g_autoptr (GSource) alarm = g_timeout_source_new_seconds (PROGRAM_SECONDS);
  Talk talk = { .loop = loop };

  if (directory != NULL)
    g_subprocess_launcher_set_cwd (launcher, directory);
  process = g_subprocess_launcher_spawnv (launcher, words, error);
  if (process == NULL)
    return NULL;
  g_main_context_push_thread_default (context);
  g_source_set_callback (alarm, give_up, process, NULL);
  g_source_attach (alarm, context);
  g_subprocess_communicate_utf8_async (process, NULL, NULL, on_communicated, &talk);
  g_main_loop_run (loop);
  g_source_destroy (alarm);
  g_main_context_pop_thread_default (context);

  if (talk.error != NULL)
    {
      g_propagate_error (error, talk.error);
      g_clear_pointer (&talk.output, g_free);
    }
  else if (!g_subprocess_get_successful (process))
    {
      char *end = talk.errors != NULL ? strchr (talk.errors, '\n') : NULL;

      if (end != NULL)
        *end = '\0';
      if (talk.errors != NULL && *talk.errors != '\0')
        g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, "%s", talk.errors);
      else if (g_subprocess_get_if_signaled (process))
        g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, _ ("it ended with signal %d"),
                     g_subprocess_get_term_sig (process));
      else
        g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, _ ("it ended with status %d"),
                     g_subprocess_get_exit_status (process));
      g_clear_pointer (&talk.output, g_free);
    }
  g_free (talk.errors);
  return talk.output;
}

/* Takes the lines a program printed. */
static gboolean
take_lines (Bench *bench, const char *output, const char *runtime, GError **error)
{
  g_auto (GStrv) lines = g_strsplit (output, "\n", -1);

  for (guint i = 0; lines[i] != NULL; i++)
    {
      g_autoptr (JsonNode) node = NULL;
      JsonObject *object;

      if (lines[i][0] != '{')
        continue;
      node = json_from_string (lines[i], error);
      if (node == NULL)
        return FALSE;
      object = json_node_get_object (node);
      add_value (bench, json_object_get_string_member_with_default (object, "workload", ""),
                 runtime, json_object_get_string_member_with_default (object, "metric", ""),
                 json_object_get_double_member_with_default (object, "value", NAN),
                 json_object_get_string_member_with_default (object, "unit", ""));
    }
  return TRUE;
}

/* A runtime that fails is left out from here on. */
static void
drop_program (Bench *bench, guint runtime, const char *workload, GError *error)
{
  g_ptr_array_add (bench->left_out, g_strdup_printf ("%s: %s: %s", runtimes[runtime].name, workload,
                                                     error->message));
  g_clear_pointer (&bench->programs[runtime], g_free);
  if (runtime == PTO)
    bench->failed = TRUE;
}

static void
measure_with (Bench *bench, guint runtime, const char *workload, const char *metric, guint reps,
              gboolean check)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *reps_text = g_strdup_printf ("%u", reps);
  g_autofree char *workers = g_strdup_printf ("%u", WORKERS);
  guint n_rows = bench->rows->len;
  const char *words[] = { bench->programs[runtime],
                          "--workload",
                          workload,
                          "--metric",
                          metric,
                          "--reps",
                          reps_text,
                          "--workers",
                          workers,
                          check ? NULL : "--no-check",
                          NULL };
  g_autofree char *output = NULL;

  output = run_program (words, NULL, &error);
  if (output == NULL || !take_lines (bench, output, runtimes[runtime].name, &error))
    drop_program (bench, runtime, workload, error);
  else if (bench->rows->len == n_rows && strcmp (metric, "metg50_us") == 0
           && find_row (bench, workload, runtimes[runtime].name, metric) == NULL)
    g_ptr_array_add (
        bench->left_out,
        g_strdup_printf (_ ("%s: %s: no task is long enough to keep half of the workers' time"),
                         runtimes[runtime].name, workload));
}

/* One workload on all runtimes, in turns. The first turn proves the order. */
static void
measure_workload (Bench *bench, const char *workload, const char *metric, guint n_rounds,
                  guint reps, gboolean check)
{
  for (guint round = 0; round < n_rounds; round++)
    for (guint i = 0; i < N_RUNTIMES; i++)
      if (bench->programs[i] != NULL)
        {
          show (bench, workload, runtimes[i].name, round, n_rounds);
          measure_with (bench, i, workload, metric, reps, check && round == 0);
        }
}

/* The kernel tells when it began: on the clock that this program reads too. */
static const char first_task_manifest[]
    = "[example]\nname=first-task\ndescription=when does the first task begin?\n"
      "default-case=only\n\n"
      "[orchestration]\nsource=orchestration.c\n\n"
      "[kernel 0]\nname=stamp\nsource=stamp.c\ncore=aiv\ncost=linear:1000:0\n\n"
      "[reference]\nsource=reference.c\n\n"
      "[case only]\ntitle=one task\nrtol=0\natol=0\n";
static const char first_task_kernel[]
    = "#include \"tensor.h\"\n"
      "#include <stdio.h>\n"
      "#include <stdlib.h>\n"
      "#include <time.h>\n"
      "void kernel_entry (int64_t *args);\n"
      "void\n"
      "kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *out = (const TensorData *) (intptr_t) args[0];\n"
      "  struct timespec now;\n"
      "  FILE *file;\n"
      "  clock_gettime (CLOCK_MONOTONIC, &now);\n"
      "  *(float *) (uintptr_t) out->buffer.addr = 1.0f;\n"
      "  file = fopen (\"stamp\", \"w\");\n"
      "  if (file == NULL)\n"
      "    return;\n"
      "  fprintf (file, \"%lld\", (long long) now.tv_sec * 1000000 + now.tv_nsec / 1000);\n"
      "  fclose (file);\n"
      "}\n";
static const char first_task_orchestration[]
    = "#include \"pto_orchestration_api.h\"\n"
      "PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count);\n"
      "int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count);\n"
      "PTO2OrchestrationConfig\n"
      "aicpu_orchestration_config (uint64_t *args, int arg_count)\n"
      "{\n"
      "  PTO2OrchestrationConfig config = { 1 };\n"
      "  (void) args;\n"
      "  (void) arg_count;\n"
      "  return config;\n"
      "}\n"
      "int\n"
      "aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)\n"
      "{\n"
      "  uint64_t shape[1] = { 1 };\n"
      "  PTOParam param = make_output_param (make_tensor_external ((void *) (uintptr_t) args[0], shape, 1,\n"
      "                                                            (DataType) PTO_DTYPE_FLOAT32));\n"
      "  (void) arg_count;\n"
      "  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, &param, 1);\n"
      "  return 0;\n"
      "}\n";
static const char first_task_reference[]
    = "#include \"pto_reference.h\"\n"
      "int pto_reference_inputs (PTO2Case *c);\n"
      "int pto_reference_compute (PTO2Case *c);\n"
      "int\n"
      "pto_reference_inputs (PTO2Case *c)\n"
      "{\n"
      "  uint64_t shape[1] = { 1 };\n"
      "  return c->ops->array (c, \"x\", (DataType) PTO_DTYPE_FLOAT32, 1, shape, true) == NULL;\n"
      "}\n"
      "int\n"
      "pto_reference_compute (PTO2Case *c)\n"
      "{\n"
      "  float *x = (float *) c->ops->expected (c, \"x\");\n"
      "  if (x == NULL)\n"
      "    return pto_case_fail (c, \"no x\");\n"
      "  x[0] = 1.0f;\n"
      "  return 0;\n"
      "}\n";

static const struct
{
  const char *name;
  const char *text;
} first_task_files[] = {
  { "pto.ini", first_task_manifest },
  { "stamp.c", first_task_kernel },
  { "orchestration.c", first_task_orchestration },
  { "reference.c", first_task_reference },
  { "stamp", NULL },
};

static gboolean
measure_first_task_in (Bench *bench, const char *directory, guint reps, GError **error)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", error);
  g_autofree char *stamp = g_build_filename (directory, "stamp", NULL);
  const char *words[] = { program, "run", ".", NULL };

  if (program == NULL)
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (first_task_files); i++)
    {
      g_autofree char *path = g_build_filename (directory, first_task_files[i].name, NULL);

      if (first_task_files[i].text != NULL
          && !g_file_set_contents (path, first_task_files[i].text, -1, error))
        return FALSE;
    }
  /* The first run builds the kernels. */
  for (guint i = 0; i < reps + 1; i++)
    {
      gint64 begin = g_get_monotonic_time ();
      g_autofree char *output = run_program (words, directory, error);
      g_autofree char *text = NULL;

      show (bench, FIRST_TASK, "pto", i, reps + 1);
      if (output == NULL || !g_file_get_contents (stamp, &text, NULL, error))
        return FALSE;
      if (i > 0)
        add_value (bench, FIRST_TASK, "pto", "time",
                   (double) (g_ascii_strtoll (text, NULL, 10) - begin) / 1e3, "ms");
    }
  return TRUE;
}

static void
measure_first_task (Bench *bench, guint reps)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = g_dir_make_tmp ("pto-bench-XXXXXX", &error);

  if (directory == NULL || !measure_first_task_in (bench, directory, reps, &error))
    {
      hide (bench);
      g_ptr_array_add (bench->left_out, g_strdup_printf ("%s: %s", FIRST_TASK, error->message));
    }
  if (directory == NULL)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (first_task_files); i++)
    {
      g_autofree char *path = g_build_filename (directory, first_task_files[i].name, NULL);

      g_unlink (path);
    }
  g_rmdir (directory);
}

static gboolean
is_wanted (char **only, const char *name)
{
  return only == NULL || g_strv_contains ((const char *const *) only, name);
}

static gboolean
check_names (char **only, GError **error)
{
  for (guint k = 0; only != NULL && only[k] != NULL; k++)
    {
      gboolean known = strcmp (only[k], FIRST_TASK) == 0;

      for (guint i = 0; i < N_WORKLOADS; i++)
        known = known || strcmp (only[k], workloads[i].name) == 0;
      for (guint i = 0; i < N_FIGURES; i++)
        known = known || strcmp (only[k], figures[i].name) == 0;
      if (!known)
        {
          g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                       _ ("--only: there is no \"%s\" (see pto help bench)"), only[k]);
          return FALSE;
        }
    }
  return TRUE;
}

static void
measure_all (Bench *bench, char **only)
{
  for (guint i = 0; i < N_WORKLOADS; i++)
    if (is_wanted (only, workloads[i].name))
      measure_workload (bench, workloads[i].name, "ns_per_task", option_quick ? 3 : 7,
                        option_quick ? 2 : 3, TRUE);
  for (guint i = 0; i < N_WORKLOADS; i++)
    if (is_wanted (only, workloads[i].name))
      measure_workload (bench, workloads[i].name, "metg50_us", option_quick ? 1 : 3, 1, FALSE);
  for (guint i = 0; i < N_FIGURES; i++)
    if (is_wanted (only, figures[i].name) && bench->programs[PTO] != NULL)
      for (guint round = 0;
           round < (option_quick || figures[i].once ? 1u : 3u) && bench->programs[PTO] != NULL;
           round++)
        {
          show (bench, figures[i].name, "pto", round, 3);
          measure_with (bench, PTO, figures[i].name, "ns_per_task",
                        figures[i].once ? 1
                        : option_quick  ? 5
                                        : 7,
                        FALSE);
        }
  if (is_wanted (only, FIRST_TASK))
    measure_first_task (bench, option_quick ? 5 : 15);
  hide (bench);
  for (guint i = 0; i < bench->rows->len; i++)
    {
      Row *row = g_ptr_array_index (bench->rows, i);

      g_array_sort (row->values, compare_doubles);
    }
}

/* Three digits that tell something: 0.0712, 0.83, 12.3, 742, 3042 */
static char *
dup_number (double value)
{
  double size = fabs (value);
  int decimals = size == 0 || size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3;

  return g_strdup_printf ("%.*f", decimals, value);
}

static char *
dup_value (double value, const char *unit)
{
  if (strcmp (unit, "bytes") == 0)
    return g_strdup_printf ("%.1f MiB", value / (1 << 20));
  if (fabs (value) >= 10000)
    {
      g_autofree char *digits = tool_group_digits ((guint64) fabs (value));

      return g_strdup_printf ("%s%s%s%s", value < 0 ? "-" : "", digits, *unit != '\0' ? " " : "",
                              unit);
    }
  else
    {
      g_autofree char *number = dup_number (value);

      return g_strdup_printf ("%s%s%s", number, *unit != '\0' ? " " : "", unit);
    }
}

static void
add_member (JsonBuilder *builder, const char *name, const char *value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, value);
}

static void
add_number (JsonBuilder *builder, const char *name, double value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_double_value (builder, value);
}

static void
print_json (Bench *bench)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_array (builder);
  for (guint i = 0; i < bench->rows->len; i++)
    {
      const Row *row = g_ptr_array_index (bench->rows, i);

      json_builder_begin_object (builder);
      add_member (builder, "workload", row->workload);
      add_member (builder, "runtime", row->runtime);
      json_builder_set_member_name (builder, "workers");
      json_builder_add_int_value (builder, WORKERS);
      add_member (builder, "metric", row->metric);
      add_number (builder, "median", row_median (row));
      add_number (builder, "min", row_min (row));
      add_number (builder, "max", row_max (row));
      add_member (builder, "unit", row->unit);
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);
  tool_print_json (builder);
}

/* The geometric mean over W1 to W6 of the medians; 0 when one is missing. */
static double
geometric_mean (Bench *bench, const char *runtime, const char *metric)
{
  double sum = 0;

  for (guint w = 0; w < N_WORKLOADS; w++)
    {
      const Row *row = find_row (bench, workloads[w].name, runtime, metric);

      if (row == NULL)
        return 0;
      sum += log (row_median (row));
    }
  return exp (sum / N_WORKLOADS);
}

/* The fastest other runtime that infers dependencies. */
static const Row *
best_peer (Bench *bench, const char *workload, const char *metric)
{
  const Row *best = NULL;

  for (guint i = PTO + 1; i < N_RUNTIMES; i++)
    {
      const Row *row
          = runtimes[i].infers ? find_row (bench, workload, runtimes[i].name, metric) : NULL;

      if (row != NULL && (best == NULL || row_median (row) < row_median (best)))
        best = row;
    }
  return best;
}

/* A table of one metric, W1 to W6 against the runtimes: rows of cells, each a new string; NULL when
 * nothing was measured. */
static GPtrArray *
make_table (Bench *bench, const char *metric, gboolean with_spread)
{
  g_autoptr (GPtrArray) table = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  GPtrArray *cells = g_ptr_array_new_with_free_func (g_free);
  double product = 1;
  guint n_ratios = 0;
  gboolean any = FALSE;

  g_ptr_array_add (cells, g_strdup (""));
  for (guint w = 0; w < N_WORKLOADS; w++)
    g_ptr_array_add (cells,
                     g_strdup_printf ("%s %s", workloads[w].name, _ (workloads[w].description)));
  g_ptr_array_add (cells, g_strdup (_ ("geometric mean")));
  g_ptr_array_add (table, cells);

  for (guint i = 0; i < N_RUNTIMES; i++)
    {
      double mean = geometric_mean (bench, runtimes[i].name, metric);
      gboolean measured = FALSE;

      cells = g_ptr_array_new_with_free_func (g_free);
      g_ptr_array_add (cells,
                       g_strdup_printf ("%s%s", runtimes[i].name, runtimes[i].infers ? "" : " *"));
      for (guint w = 0; w < N_WORKLOADS; w++)
        {
          const Row *row = find_row (bench, workloads[w].name, runtimes[i].name, metric);
          g_autofree char *median = row != NULL ? dup_number (row_median (row)) : g_strdup ("-");

          measured = measured || row != NULL;
          if (row != NULL && with_spread)
            {
              g_autofree char *min = dup_number (row_min (row));
              g_autofree char *max = dup_number (row_max (row));

              g_ptr_array_add (cells, g_strdup_printf ("%s (%s to %s)", median, min, max));
            }
          else
            g_ptr_array_add (cells, g_steal_pointer (&median));
        }
      g_ptr_array_add (cells, mean > 0 ? dup_number (mean) : g_strdup ("-"));
      any = any || measured;
      if (measured)
        g_ptr_array_add (table, cells);
      else
        g_ptr_array_unref (cells);
    }

  cells = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (cells, g_strdup (_ ("pto / best inferring")));
  for (guint w = 0; w < N_WORKLOADS; w++)
    {
      const Row *ours = find_row (bench, workloads[w].name, runtimes[PTO].name, metric);
      const Row *best = best_peer (bench, workloads[w].name, metric);

      if (ours != NULL && best != NULL)
        {
          double ratio = row_median (ours) / row_median (best);

          product *= ratio;
          n_ratios++;
          g_ptr_array_add (cells, g_strdup_printf ("%.2f %s", ratio, best->runtime));
        }
      else
        g_ptr_array_add (cells, g_strdup ("-"));
    }
  g_ptr_array_add (cells, n_ratios == N_WORKLOADS
                              ? g_strdup_printf ("%.2f", pow (product, 1.0 / N_WORKLOADS))
                              : g_strdup ("-"));
  if (n_ratios > 0)
    g_ptr_array_add (table, cells);
  else
    g_ptr_array_unref (cells);
  return any ? g_steal_pointer (&table) : NULL;
}

static const char *
describe (const char *name)
{
  for (guint i = 0; i < N_FIGURES; i++)
    if (strcmp (figures[i].name, name) == 0)
      return _ (figures[i].description);
  return strcmp (name, FIRST_TASK) == 0 ? _ (FIRST_TASK_DESCRIPTION) : NULL;
}

/* The figures that only this runtime has; NULL when none was measured. */
static GPtrArray *
make_figures (Bench *bench)
{
  g_autoptr (GPtrArray) table = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  GPtrArray *cells = g_ptr_array_new_with_free_func (g_free);

  g_ptr_array_add (cells, g_strdup (""));
  g_ptr_array_add (cells, g_strdup (_ ("median")));
  g_ptr_array_add (cells, g_strdup (_ ("min")));
  g_ptr_array_add (cells, g_strdup (_ ("max")));
  g_ptr_array_add (cells, g_strdup (_ ("what")));
  g_ptr_array_add (table, cells);
  for (guint i = 0; i < bench->rows->len; i++)
    {
      const Row *row = g_ptr_array_index (bench->rows, i);
      const char *description = describe (row->workload);

      if (description == NULL)
        continue;
      cells = g_ptr_array_new_with_free_func (g_free);
      if (strcmp (row->metric, "growth") == 0)
        g_ptr_array_add (cells, g_strdup_printf ("%s, %s", row->workload, _ ("growth")));
      else
        g_ptr_array_add (cells, g_strdup (row->workload));
      g_ptr_array_add (cells, dup_value (row_median (row), row->unit));
      g_ptr_array_add (cells, dup_value (row_min (row), row->unit));
      g_ptr_array_add (cells, dup_value (row_max (row), row->unit));
      g_ptr_array_add (cells, g_strdup (description));
      g_ptr_array_add (table, cells);
    }
  return table->len > 1 ? g_steal_pointer (&table) : NULL;
}

static void
print_table (GPtrArray *table, gboolean last_is_text)
{
  GPtrArray *head = g_ptr_array_index (table, 0);
  g_autofree guint *widths = g_new0 (guint, head->len);

  for (guint r = 0; r < table->len; r++)
    {
      GPtrArray *cells = g_ptr_array_index (table, r);

      for (guint c = 0; c < cells->len; c++)
        widths[c] = MAX (widths[c], (guint) g_utf8_strlen (g_ptr_array_index (cells, c), -1));
    }
  for (guint r = 0; r < table->len; r++)
    {
      GPtrArray *cells = g_ptr_array_index (table, r);

      for (guint c = 0; c < cells->len; c++)
        {
          const char *cell = g_ptr_array_index (cells, c);
          guint padding = widths[c] - (guint) g_utf8_strlen (cell, -1);

          if (c == 0)
            g_print ("  %s%*s", cell, (int) padding, "");
          else if (last_is_text && c + 1 == cells->len)
            g_print ("  %s", cell);
          else
            g_print ("  %*s%s", (int) padding, "", cell);
        }
      g_print ("\n");
    }
}

static void
print_text (Bench *bench)
{
  g_autoptr (GPtrArray) times = make_table (bench, "ns_per_task", FALSE);
  g_autoptr (GPtrArray) metg = make_table (bench, "metg50_us", FALSE);
  g_autoptr (GPtrArray) own = make_figures (bench);

  if (times != NULL)
    {
      g_print (_ ("ns per task, empty bodies, %d workers, median\n"), WORKERS);
      print_table (times, FALSE);
      g_print ("\n");
    }
  if (metg != NULL)
    {
      g_print (
          _ ("METG(50%%): the smallest task, in us, that keeps %d workers half busy, median\n"),
          WORKERS);
      print_table (metg, FALSE);
      g_print ("\n");
    }
  if (times != NULL || metg != NULL)
    g_print (_ ("* is told the edges, which were found before the clock started\n\n"));
  if (own != NULL)
    {
      g_print ("pto\n");
      print_table (own, TRUE);
      g_print ("\n");
    }
  for (guint i = 0; i < bench->left_out->len; i++)
    g_print (_ ("left out: %s\n"), (const char *) g_ptr_array_index (bench->left_out, i));
}

/* "name: value" of a file like /proc/cpuinfo, or of one like /etc/os-release. */
static char *
dup_field (const char *file, const char *name, char separator)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;

  if (!g_file_get_contents (file, &text, NULL, NULL))
    return NULL;
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    {
      char *value = strchr (lines[i], separator);

      if (value == NULL)
        continue;
      *value++ = '\0';
      if (strcmp (g_strstrip (lines[i]), name) != 0)
        continue;
      value = g_strstrip (value);
      if (*value == '"' && strlen (value) > 1)
        {
          value[strlen (value) - 1] = '\0';
          value++;
        }
      return g_strdup (value);
    }
  return NULL;
}

/* One line that tells where the figures come from. */
static char *
dup_machine (void)
{
  g_autofree char *model = dup_field ("/proc/cpuinfo", "model name", ':');
  g_autofree char *distribution = dup_field ("/etc/os-release", "PRETTY_NAME", '=');
  guint64 bytes = (guint64) sysconf (_SC_PHYS_PAGES) * (guint64) sysconf (_SC_PAGESIZE);
  struct utsname system = { 0 };
  guint n_cpus = g_get_num_processors ();
  cpu_set_t set;

  uname (&system);
  system.release[strcspn (system.release, "-")] = '\0';
  if (sched_getaffinity (0, sizeof set, &set) == 0)
    n_cpus = (guint) CPU_COUNT (&set);
  return g_strdup_printf (_ ("%u CPUs (%s), %.0f GiB, %s, %s %s"), n_cpus,
                          model != NULL ? model : system.machine, (double) bytes / (1 << 30),
                          distribution != NULL ? distribution : "?", system.sysname,
                          system.release);
}

static void
append_table (GString *text, GPtrArray *table, gboolean last_is_text)
{
  for (guint r = 0; r < table->len; r++)
    {
      GPtrArray *cells = g_ptr_array_index (table, r);

      for (guint c = 0; c < cells->len; c++)
        g_string_append_printf (text, "| %s ", (const char *) g_ptr_array_index (cells, c));
      g_string_append (text, "|\n");
      for (guint c = 0; r == 0 && c < cells->len; c++)
        g_string_append (text, c == 0 || (last_is_text && c + 1 == cells->len) ? "|---" : "|---:");
      if (r == 0)
        g_string_append (text, "|\n");
    }
}

static gboolean
save_markdown (Bench *bench, const char *file, GError **error)
{
  g_autoptr (GPtrArray) times = make_table (bench, "ns_per_task", TRUE);
  g_autoptr (GPtrArray) metg = make_table (bench, "metg50_us", TRUE);
  g_autoptr (GPtrArray) own = make_figures (bench);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *machine = dup_machine ();

  g_string_append_printf (text, _ ("Measured on: %s. Medians, in parentheses the spread.\n"),
                          machine);
  if (times != NULL)
    {
      g_string_append_printf (text, _ ("\n**ns per task**, empty bodies, %d workers\n\n"), WORKERS);
      append_table (text, times, FALSE);
    }
  if (metg != NULL)
    {
      g_string_append_printf (
          text,
          _ ("\n**METG(50%%)**: the smallest task, in us, that keeps %d workers half busy\n\n"),
          WORKERS);
      append_table (text, metg, FALSE);
    }
  if (times != NULL || metg != NULL)
    g_string_append (text,
                     _ ("\n\\* is told the edges, which were found before the clock started.\n"));
  if (own != NULL)
    {
      g_string_append (text, _ ("\n**This runtime on its own**\n\n"));
      append_table (text, own, TRUE);
    }
  for (guint i = 0; i < bench->left_out->len; i++)
    g_string_append_printf (text, _ ("\nLeft out: %s.\n"),
                            (const char *) g_ptr_array_index (bench->left_out, i));
  return g_file_set_contents (file, text->str, (gssize) text->len, error);
}

#define CHART_WIDTH 1240.0
#define CHART_LEFT 64.0
#define CHART_RIGHT 20.0
#define PANEL_TOP 118.0
#define PANEL_HEIGHT 270.0
#define PANEL_PITCH 358.0

static void
append_text (GString *svg, const char *style, double x, double y, const char *text)
{
  g_autofree char *escaped = g_markup_escape_text (text, -1);

  g_string_append_printf (svg, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", style, x, y,
                          escaped);
}

/* Short enough to stand above a bar. */
static char *
dup_label (double value)
{
  if (value >= 9950)
    return g_strdup_printf ("%.0fk", value / 1e3);
  if (value >= 999.5)
    return g_strdup_printf ("%.1fk", value / 1e3);
  if (value >= 9.95)
    return g_strdup_printf ("%.0f", value);
  return g_strdup_printf (value >= 0.995 ? "%.1f" : value >= 0.00995 ? "%.2f" : "%.3f", value);
}

/* One metric: a group of bars for each workload, on a logarithmic scale. */
static void
append_panel (Bench *bench, GString *svg, const char *metric, const char *title, double top)
{
  double lowest = INFINITY, highest = 0, bottom = top + PANEL_HEIGHT;
  double group = (CHART_WIDTH - CHART_LEFT - CHART_RIGHT) / N_WORKLOADS;
  double bar = (group - 22) / N_RUNTIMES;
  double low, decades;

  for (guint i = 0; i < bench->rows->len; i++)
    {
      const Row *row = g_ptr_array_index (bench->rows, i);

      if (strcmp (row->metric, metric) != 0 || row->workload[0] != 'W')
        continue;
      lowest = MIN (lowest, row_min (row));
      highest = MAX (highest, row_max (row));
    }
  low = floor (log10 (lowest));
  decades = MAX (ceil (log10 (highest)) - low, 1);
#define Y(value) (bottom - CLAMP ((log10 (value) - low) / decades, 0, 1) * PANEL_HEIGHT)

  append_text (svg, "head", CHART_LEFT, top - 14, title);
  for (double decade = low; decade <= low + decades; decade++)
    {
      g_autofree char *label = decade >= 3 ? g_strdup_printf ("%.0fk", pow (10, decade - 3))
                                           : g_strdup_printf ("%g", pow (10, decade));

      for (int k = 2; k < 10 && decade < low + decades; k++)
        g_string_append_printf (svg, "<path class=\"minor\" d=\"M%.1f %.1fH%.1f\"/>\n", CHART_LEFT,
                                Y (k * pow (10, decade)), CHART_WIDTH - CHART_RIGHT);
      g_string_append_printf (svg, "<path class=\"major\" d=\"M%.1f %.1fH%.1f\"/>\n", CHART_LEFT,
                              Y (pow (10, decade)), CHART_WIDTH - CHART_RIGHT);
      append_text (svg, "tick", CHART_LEFT - 8, Y (pow (10, decade)) + 4, label);
    }
  for (guint w = 0; w < N_WORKLOADS; w++)
    {
      g_autofree char *name
          = g_strdup_printf ("%s %s", workloads[w].name, _ (workloads[w].description));
      double left = CHART_LEFT + w * group + 11;

      append_text (svg, "group", left + (group - 22) / 2, bottom + 20, name);
      for (guint i = 0; i < N_RUNTIMES; i++)
        {
          const Row *row = find_row (bench, workloads[w].name, runtimes[i].name, metric);
          double x = left + i * bar;
          double centre = x + bar / 2;
          g_autofree char *label = NULL;
          g_autofree char *median = NULL;
          g_autofree char *min = NULL;
          g_autofree char *max = NULL;

          if (row == NULL)
            continue;
          label = dup_label (row_median (row));
          median = dup_number (row_median (row));
          min = dup_number (row_min (row));
          max = dup_number (row_max (row));
          g_string_append_printf (
              svg,
              "<g><title>%s, %s: %s %s (%s to %s)</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
              "height=\"%.1f\" fill=\"%s\"/>",
              workloads[w].name, runtimes[i].name, median, row->unit, min, max, x + 1,
              Y (row_median (row)), bar - 2, bottom - Y (row_median (row)), runtimes[i].colour);
          if (!runtimes[i].infers)
            g_string_append_printf (
                svg,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"url(#told)\"/>",
                x + 1, Y (row_median (row)), bar - 2, bottom - Y (row_median (row)));
          g_string_append_printf (svg, "<path class=\"spread\" d=\"M%.1f %.1fV%.1f\"/></g>\n",
                                  centre, Y (row_min (row)), Y (row_max (row)));
          append_text (svg, i == PTO ? "value ours" : "value", centre, Y (row_max (row)) - 4,
                       label);
        }
    }
#undef Y
}

static gboolean
save_svg (Bench *bench, const char *file, GError **error)
{
  static const struct
  {
    const char *metric;
    const char *title;
  } panels[] = {
    { "ns_per_task", N_ ("ns per task, empty bodies (less is better)") },
    { "metg50_us",
      N_ ("METG(50%): the smallest task, in us, that keeps the workers half busy (less is better)") },
  };
  g_autoptr (GString) svg = g_string_new (NULL);
  g_autofree char *machine = dup_machine ();
  g_autofree char *title
      = g_strdup_printf (_ ("Task runtimes on the same graphs, %d workers each"), WORKERS);
  double top = PANEL_TOP;
  double x = CHART_LEFT;
  double height;
  guint n_panels = 0;

  for (guint p = 0; p < G_N_ELEMENTS (panels); p++)
    for (guint i = 0; i < bench->rows->len; i++)
      {
        const Row *row = g_ptr_array_index (bench->rows, i);

        if (strcmp (row->metric, panels[p].metric) == 0 && row->workload[0] == 'W')
          {
            n_panels++;
            break;
          }
      }
  if (n_panels == 0)
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, _ ("%s: a chart needs one of W1 to W6"),
                   file);
      return FALSE;
    }
  height = PANEL_TOP + n_panels * PANEL_PITCH - 40;
  g_string_append_printf (
      svg,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"sans-serif\">\n<title>%s</title>\n",
      CHART_WIDTH, height, CHART_WIDTH, height, title);
  g_string_append (
      svg,
      "<style>\n"
      ".title{font-size:19px;font-weight:bold}.note{font-size:12px;fill:#555}\n"
      ".head{font-size:14px;font-weight:bold}.legend{font-size:13px}\n"
      ".tick{font-size:11px;text-anchor:end;fill:#555}.group{font-size:13px;text-anchor:middle}\n"
      ".value{font-size:10px;text-anchor:middle;fill:#333;stroke:#fff;stroke-width:2.5;"
      "paint-order:stroke}.ours{font-weight:bold;fill:#000}\n"
      ".major{stroke:#c4c4c4;stroke-width:1}.minor{stroke:#ededed;stroke-width:1}\n"
      ".spread{stroke:#222;stroke-width:1.2}\n"
      "</style>\n"
      "<defs><pattern id=\"told\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
      "<path d=\"M-1.5 1.5L1.5 -1.5M0 6L6 0M4.5 7.5L7.5 4.5\" stroke=\"#fff\" stroke-width=\"1.6\"/>"
      "</pattern></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
  append_text (svg, "title", CHART_LEFT, 30, title);
  append_text (svg, "note", CHART_LEFT, 49, machine);
  for (guint i = 0; i < N_RUNTIMES; i++)
    {
      gboolean present = FALSE;

      for (guint k = 0; k < bench->rows->len && !present; k++)
        {
          const Row *row = g_ptr_array_index (bench->rows, k);

          present = strcmp (row->runtime, runtimes[i].name) == 0 && row->workload[0] == 'W';
        }
      if (!present)
        continue;
      g_string_append_printf (
          svg, "<rect x=\"%.1f\" y=\"62\" width=\"13\" height=\"13\" fill=\"%s\"/>\n", x,
          runtimes[i].colour);
      if (!runtimes[i].infers)
        g_string_append_printf (
            svg, "<rect x=\"%.1f\" y=\"62\" width=\"13\" height=\"13\" fill=\"url(#told)\"/>\n", x);
      append_text (svg, "legend", x + 18, 73, runtimes[i].name);
      x += 18 + 8.2 * strlen (runtimes[i].name) + 20;
    }
  append_text (svg, "note", x + 6, 73, _ ("hatched: is told the edges; line: min to max"));

  for (guint p = 0; p < G_N_ELEMENTS (panels); p++)
    for (guint i = 0; i < bench->rows->len; i++)
      {
        const Row *row = g_ptr_array_index (bench->rows, i);

        if (strcmp (row->metric, panels[p].metric) == 0 && row->workload[0] == 'W')
          {
            append_panel (bench, svg, panels[p].metric, _ (panels[p].title), top);
            top += PANEL_PITCH;
            break;
          }
      }
  g_string_append (svg, "</svg>\n");
  return g_file_set_contents (file, svg->str, (gssize) svg->len, error);
}

static void
bench_clear (Bench *bench)
{
  g_free (bench->directory);
  for (guint i = 0; i < N_RUNTIMES; i++)
    g_free (bench->programs[i]);
  g_ptr_array_unref (bench->left_out);
  g_ptr_array_unref (bench->rows);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Bench, bench_clear)

gboolean
tool_bench (char **words, GError **error)
{
  g_auto (GStrv) rest = g_strdupv (words);
  g_auto (GStrv) only = NULL;
  g_auto (Bench) bench = { .left_out = g_ptr_array_new_with_free_func (g_free),
                           .rows = g_ptr_array_new_with_free_func (row_free),
                           .show_progress = isatty (STDERR_FILENO) };

  if (!tool_parse_options (tool_bench_get_options (), &rest, error))
    return FALSE;
  if (rest[1] != NULL)
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                   _ ("bench takes no \"%s\" (see pto help bench)"), rest[1]);
      return FALSE;
    }
  if (option_only != NULL)
    only = g_strsplit (option_only, ",", -1);
  if (!check_names (only, error) || !find_programs (&bench, error))
    return FALSE;

  measure_all (&bench, only);
  if (option_json)
    print_json (&bench);
  else
    print_text (&bench);
  if (option_json)
    for (guint i = 0; i < bench.left_out->len; i++)
      g_printerr (_ ("left out: %s\n"), (const char *) g_ptr_array_index (bench.left_out, i));
  if ((option_svg != NULL && !save_svg (&bench, option_svg, error))
      || (option_markdown != NULL && !save_markdown (&bench, option_markdown, error)))
    return FALSE;
  if (bench.failed)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, _ ("not all could be measured"));
  return !bench.failed;
}
