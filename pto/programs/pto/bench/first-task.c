/* first-task.c: how long is it from `pto run` to its first task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bench.h"
#include "tool.h"

#include <glib/gstdio.h>

/* Around the kernel of `pto new`: the first one tells when it began, on the clock that this program
 * reads too. */
static const char before[] = "#define kernel_entry scale\n";
static const char after[]
    = "#undef kernel_entry\n"
      "#include <stdio.h>\n"
      "#include <time.h>\n"
      "void\n"
      "kernel_entry (int64_t *args)\n"
      "{\n"
      "  struct timespec now;\n"
      "  FILE *file;\n"
      "  clock_gettime (CLOCK_MONOTONIC, &now);\n"
      "  file = fopen (\"stamp\", \"wx\");\n"
      "  if (file != NULL)\n"
      "    {\n"
      "      fprintf (file, \"%lld\", (long long) now.tv_sec * 1000000 + now.tv_nsec / 1000);\n"
      "      fclose (file);\n"
      "    }\n"
      "  scale (args);\n"
      "}\n";

static gboolean
write_files (const char *directory, GError **error)
{
  for (const ToolFile *file = tool_new_files; file->name != NULL; file++)
    {
      gboolean is_kernel = g_str_equal (file->name, "scale.c");
      g_autofree char *path = g_build_filename (directory, file->name, NULL);
      g_autofree char *text
          = g_strconcat (is_kernel ? before : "", file->text, is_kernel ? after : NULL, NULL);

      if (!g_file_set_contents (path, text, -1, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
measure_in (BenchResults *results, const BenchFigure *figure, const char *directory, guint reps,
            GError **error)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", error);
  g_autofree char *stamp = g_build_filename (directory, "stamp", NULL);
  const char *words[] = { program, "run", ".", NULL };

  if (program == NULL || !write_files (directory, error))
    return FALSE;
  /* The first run builds the kernels. */
  for (guint i = 0; i < reps + 1; i++)
    {
      g_autofree char *output = NULL;
      g_autofree char *text = NULL;
      gint64 begin;

      bench_show_progress (figure->name, bench_runtimes[BENCH_PTO].name, i, reps + 1);
      begin = g_get_monotonic_time ();
      output = bench_run_program (words, directory, error);
      if (output == NULL || !g_file_get_contents (stamp, &text, NULL, error))
        return FALSE;
      g_unlink (stamp);
      if (i > 0)
        bench_results_add (results, figure->name, bench_runtimes[BENCH_PTO].name, "time",
                           (double) (g_ascii_strtoll (text, NULL, 10) - begin) / 1e3, "ms");
    }
  return TRUE;
}

void
bench_measure_first_task (BenchResults *results, const BenchFigure *figure, guint reps)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = g_dir_make_tmp ("pto-bench-XXXXXX", &error);
  g_autofree char *stamp = NULL;

  if (directory == NULL || !measure_in (results, figure, directory, reps, &error))
    bench_results_add_gap (results, bench_runtimes[BENCH_PTO].name, figure->name, "time",
                           g_strdup (error->message));
  if (directory == NULL)
    return;
  stamp = g_build_filename (directory, "stamp", NULL);
  g_unlink (stamp);
  for (const ToolFile *file = tool_new_files; file->name != NULL; file++)
    {
      g_autofree char *path = g_build_filename (directory, file->name, NULL);

      g_unlink (path);
    }
  g_rmdir (directory);
}
