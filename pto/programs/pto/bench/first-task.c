/* first-task.c: how long is it from `pto run` to its first task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bench.h"

#include <glib/gstdio.h>

/* The kernel tells when it began: on the clock that this program reads too. */
static const char manifest[]
    = "[example]\nname=first-task\ndescription=when does the first task begin?\n"
      "default-case=only\n\n"
      "[orchestration]\nsource=orchestration.c\n\n"
      "[kernel 0]\nname=stamp\nsource=stamp.c\ncore=aiv\ncost=linear:1000:0\n\n"
      "[reference]\nsource=reference.c\n\n"
      "[case only]\ntitle=one task\nrtol=0\natol=0\n";
static const char kernel[]
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
static const char orchestration[]
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
static const char reference[]
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
} files[] = {
  { "pto.ini", manifest },      { "stamp.c", kernel }, { "orchestration.c", orchestration },
  { "reference.c", reference }, { "stamp", NULL },
};

static gboolean
measure_in (BenchResults *results, const BenchFigure *figure, const char *directory, guint reps,
            GError **error)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", error);
  g_autofree char *stamp = g_build_filename (directory, "stamp", NULL);
  const char *words[] = { program, "run", ".", NULL };

  if (program == NULL)
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autofree char *path = g_build_filename (directory, files[i].name, NULL);

      if (files[i].text != NULL && !g_file_set_contents (path, files[i].text, -1, error))
        return FALSE;
    }
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

  if (directory == NULL || !measure_in (results, figure, directory, reps, &error))
    bench_results_add_gap (results, bench_runtimes[BENCH_PTO].name, figure->name, "time",
                           g_strdup (error->message));
  if (directory == NULL)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autofree char *path = g_build_filename (directory, files[i].name, NULL);

      g_unlink (path);
    }
  g_rmdir (directory);
}
