/* programs.c: how are the programs of tests/bench found, run and listened to?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One program per runtime, run in turns (A B C A B C ...), so that a machine that gets slower or
 * faster meanwhile does so for all of them.
 */
#include "config.h"

#include "bench.h"
#include "terminal.h"
#include "tool.h"

#include <glib/gi18n.h>
#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM_SECONDS 120 /* more than any program needs: then it is given up */
/* The exit status of one that can not measure that here, for the reason that it says. */
#define PROGRAM_SKIPS 77

/* Behind the runtimes: the program that measures workers with children. */
#define LEVEL BENCH_N_RUNTIMES
#define N_PROGRAMS (BENCH_N_RUNTIMES + 1)

struct BenchPrograms
{
  BenchResults *results;
  char *paths[N_PROGRAMS];            /* NULL: not there */
  gboolean dropped[BENCH_N_RUNTIMES]; /* it failed on a workload */
};

static const char *
program_name (guint program)
{
  return program == LEVEL ? "level" : bench_runtimes[program].name;
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

BenchPrograms *
bench_programs_new (BenchResults *results, GError **error)
{
  g_autoptr (BenchPrograms) programs = g_new0 (BenchPrograms, 1);
  g_autofree char *directory = dup_directory ();

  programs->results = results;
  for (guint i = 0; directory != NULL && i < N_PROGRAMS; i++)
    {
      g_autofree char *name = g_strdup_printf ("bench-%s", program_name (i));
      g_autofree char *path = g_build_filename (directory, name, NULL);

      if (g_file_test (path, G_FILE_TEST_IS_EXECUTABLE))
        programs->paths[i] = g_steal_pointer (&path);
      else
        bench_results_add_gap (results, program_name (i), NULL, NULL,
                               g_strdup (_ ("was not built (see the option bench-peers)")));
    }
  if (programs->paths[BENCH_PTO] != NULL)
    return g_steal_pointer (&programs);
  if (directory != NULL)
    tool_fail (error, _ ("%s: there is no bench-pto (PTO_BENCH_DIR)"), directory);
  else
    tool_fail (error, _ ("the benchmark programs are not built (meson configure -Dtests=enabled)"));
  return NULL;
}

void
bench_programs_free (BenchPrograms *programs)
{
  for (guint i = 0; i < N_PROGRAMS; i++)
    g_free (programs->paths[i]);
  g_free (programs);
}

void
bench_show_progress (const char *workload, const char *runtime, guint turn, guint n_turns)
{
  g_autofree char *line = g_strdup_printf ("%s %s %u/%u", workload, runtime, turn + 1, n_turns);

  terminal_show_line (line);
}

/* In the new process: it is given up after that. */
static void
set_alarm (gpointer data)
{
  alarm (PROGRAM_SECONDS);
}

char *
bench_run_program (const char *const *words, const char *directory, GError **error)
{
  g_auto (GStrv) environment = g_get_environ ();
  g_autofree char *own = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *output = NULL;
  g_autofree char *errors = NULL;
  int status;

  /* Who makes certificates for one that needs some. */
  if (own != NULL)
    environment = g_environ_setenv (environment, "PTO_PROGRAM", own, TRUE);
  if (!g_spawn_sync (directory, (char **) words, environment, G_SPAWN_DEFAULT, set_alarm, NULL,
                     &output, &errors, &status, error))
    return NULL;
  if (g_spawn_check_wait_status (status, NULL))
    return g_steal_pointer (&output);
  errors[strcspn (errors, "\n")] = '\0';
  if (WIFEXITED (status) && WEXITSTATUS (status) == PROGRAM_SKIPS)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, errors);
  else if (*errors != '\0')
    tool_fail (error, "%s", errors);
  else if (WIFSIGNALED (status))
    tool_fail (error, _ ("it ended with signal %d"), WTERMSIG (status));
  else
    tool_fail (error, _ ("it ended with status %d"), WEXITSTATUS (status));
  return NULL;
}

/* Takes the lines a program printed. */
static gboolean
take_lines (BenchResults *results, const char *output, const char *runtime, GError **error)
{
  g_auto (GStrv) lines = g_strsplit (output, "\n", -1);

  for (guint i = 0; lines[i] != NULL; i++)
    {
      g_autoptr (JsonNode) node = NULL;
      JsonObject *object;
      double value;

      if (lines[i][0] != '{')
        continue;
      node = json_from_string (lines[i], error);
      if (node == NULL)
        return FALSE;
      object = json_node_get_object (node);
      value = json_object_get_double_member_with_default (object, "value", NAN);
      if (!isfinite (value))
        return tool_fail (error, _ ("it gave no value: %s"), lines[i]);
      bench_results_add (results,
                         json_object_get_string_member_with_default (object, "workload", ""),
                         runtime, json_object_get_string_member_with_default (object, "metric", ""),
                         value, json_object_get_string_member_with_default (object, "unit", ""));
    }
  return TRUE;
}

/* One turn. FALSE after an error, which results have. */
static gboolean
run_turn (BenchPrograms *programs, guint program, const char *workload, const char *metric,
          guint reps, gboolean check)
{
  gboolean ours = program == BENCH_PTO || program == LEVEL;
  g_autoptr (GError) error = NULL;
  g_autofree char *reps_text = g_strdup_printf ("%u", reps);
  g_autofree char *workers = g_strdup_printf ("%u", BENCH_WORKERS);
  const char *words[] = { programs->paths[program],
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
  g_autofree char *output = bench_run_program (words, NULL, &error);

  if (output != NULL
      && take_lines (programs->results, output, bench_runtimes[ours ? BENCH_PTO : program].name,
                     &error))
    return TRUE;
  bench_results_add_gap (programs->results, program_name (program), workload, metric,
                         g_strdup (error->message));
  programs->results->failed
      = programs->results->failed
        || (ours && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED));
  return FALSE;
}

/* A turn may find no METG, so that there are fewer values than turns; when it is half of them or
 * more, there is no median. */
static void
look_for_metg (BenchResults *results, const char *workload, guint runtime, guint n_turns)
{
  const char *name = bench_runtimes[runtime].name;
  BenchRow *row = bench_results_find (results, workload, name, "metg50_us");
  guint found = row != NULL ? row->values->len : 0;

  if (found == n_turns)
    return;
  if (found * 2 > n_turns)
    {
      bench_results_add_gap (
          results, name, workload, "metg50_us",
          g_strdup_printf (
              _ ("in %u of %u turns no task is long enough to keep half of the workers' time"),
              n_turns - found, n_turns));
      return;
    }
  if (row != NULL)
    g_ptr_array_remove (results->rows, row);
  bench_results_add_gap (results, name, workload, "metg50_us",
                         g_strdup (_ ("no task is long enough to keep half of the workers' time")));
}

void
bench_programs_measure (BenchPrograms *programs, const char *workload, const char *metric,
                        guint n_turns, guint reps, gboolean check)
{
  for (guint turn = 0; turn < n_turns; turn++)
    for (guint i = 0; i < BENCH_N_RUNTIMES; i++)
      if (programs->paths[i] != NULL && !programs->dropped[i])
        {
          bench_show_progress (workload, bench_runtimes[i].name, turn, n_turns);
          /* A runtime that fails is left out from here on. */
          programs->dropped[i]
              = !run_turn (programs, i, workload, metric, reps, check && turn == 0);
        }
  if (strcmp (metric, "metg50_us") == 0)
    for (guint i = 0; i < BENCH_N_RUNTIMES; i++)
      if (programs->paths[i] != NULL && !programs->dropped[i])
        look_for_metg (programs->results, workload, i, n_turns * reps);
}

void
bench_programs_measure_figure (BenchPrograms *programs, const BenchFigure *figure, guint n_turns,
                               guint reps)
{
  guint program = figure->means == BENCH_BY_LEVEL ? LEVEL : BENCH_PTO;

  for (guint turn = 0; turn < n_turns && programs->paths[program] != NULL; turn++)
    {
      bench_show_progress (figure->name, bench_runtimes[BENCH_PTO].name, turn, n_turns);
      if (!run_turn (programs, program, figure->name, "ns_per_task", reps, FALSE))
        return;
    }
}
