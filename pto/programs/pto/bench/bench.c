/* bench.c: how fast is this runtime here, and how fast are the others? (the command)
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What it tells is the median and the spread of all repetitions. A program that is not there is
 * left out and named.
 */
#include "config.h"

#include "bench.h"
#include "terminal.h"
#include "tool.h"

#include "common/stdout.h"

#include <glib/gi18n.h>
#include <string.h>

static gboolean option_json;
static gboolean option_quick;
static char *option_only;
static char *option_svg;
static char *option_markdown;

static const GOptionEntry entries[]
    = { { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("Print one JSON array, not tables"),
          NULL },
        { "only", 0, 0, G_OPTION_ARG_STRING, &option_only,
          N_ ("Measure only these, apart by commas"), N_ ("MEASURE[,MEASURE...]") },
        { "quick", 0, 0, G_OPTION_ARG_NONE, &option_quick, N_ ("Fewer repetitions"), NULL },
        { "svg", 0, 0, G_OPTION_ARG_FILENAME, &option_svg, N_ ("Save a chart"), N_ ("FILE.svg") },
        { "markdown", 0, 0, G_OPTION_ARG_FILENAME, &option_markdown,
          N_ ("Save the tables and the machine"), N_ ("FILE.md") },
        G_OPTION_ENTRY_NULL };

static gboolean
is_wanted (char **only, const char *name)
{
  return only == NULL || g_strv_contains ((const char *const *) only, name);
}

static gboolean
check_names (char **only, GError **error)
{
  for (guint k = 0; only != NULL && (k == 0 || only[k] != NULL); k++)
    {
      const char *name = only[k] != NULL ? only[k] : "";
      gboolean known = bench_find_figure (name) != NULL;

      for (guint i = 0; i < BENCH_N_WORKLOADS; i++)
        known = known || strcmp (name, bench_workloads[i].name) == 0;
      if (!known)
        return tool_refuse (error, _ ("--only: there is no \"%s\" (see pto help bench)"), name);
    }
  return TRUE;
}

static void
measure_all (BenchResults *results, BenchPrograms *programs, char **only)
{
  for (guint i = 0; i < BENCH_N_WORKLOADS; i++)
    if (is_wanted (only, bench_workloads[i].name))
      bench_programs_measure (programs, bench_workloads[i].name, "ns_per_task",
                              option_quick ? 3 : 7, option_quick ? 2 : 3, TRUE);
  for (guint i = 0; i < BENCH_N_WORKLOADS; i++)
    if (is_wanted (only, bench_workloads[i].name))
      bench_programs_measure (programs, bench_workloads[i].name, "metg50_us", option_quick ? 1 : 3,
                              1, FALSE);
  for (const BenchFigure *figure = bench_figures; figure->name != NULL; figure++)
    if (!is_wanted (only, figure->name))
      continue;
    else if (figure->means == BENCH_BY_RUN)
      bench_measure_first_task (results, figure, option_quick ? 5 : 15);
    else if (figure->once)
      bench_programs_measure_figure (programs, figure, 1, 1);
    else
      bench_programs_measure_figure (programs, figure, option_quick ? 1 : 3, option_quick ? 5 : 7);
  terminal_hide_line ();
  bench_results_sort (results);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BenchResults, bench_results_clear)

static gboolean
tool_bench (char **words, GError **error)
{
  g_auto (GStrv) only = NULL;
  g_auto (BenchResults) results = { 0 };
  g_autoptr (BenchPrograms) programs = NULL;
  GError *failures = NULL;
  GError *failure = NULL;

  if (option_only != NULL)
    only = g_strsplit (option_only, ",", -1);
  if (!tool_check_output ("--svg", option_svg, ".svg", error)
      || !tool_check_output ("--markdown", option_markdown, ".md", error))
    return FALSE;
  bench_results_init (&results);
  if (!check_names (only, error) || (programs = bench_programs_new (&results, error)) == NULL)
    return FALSE;

  measure_all (&results, programs, only);
  if (option_json)
    {
      bench_results_print_json (&results);
      for (guint i = 0; i < results.gaps->len && !pto_stdout_is_cut (); i++)
        {
          g_autofree char *gap = bench_gap_dup_text (g_ptr_array_index (results.gaps, i));

          g_printerr (_ ("left out: %s\n"), gap);
        }
    }
  else
    bench_print_text (&results);
  if (option_svg != NULL)
    bench_save_chart (&results, option_svg, &failures);
  if (option_markdown != NULL)
    bench_save_markdown (&results, option_markdown, &failure);
  tool_add_failure (&failures, failure);
  if (results.failed)
    tool_add_failure (&failures, g_error_new_literal (TOOL_ERROR, TOOL_ERROR_TROUBLE,
                                                      _ ("not all could be measured")));
  if (failures == NULL)
    return TRUE;
  g_propagate_error (error, failures);
  return FALSE;
}

static void
add_words (GArray *words)
{
  for (guint i = 0; i < BENCH_N_WORKLOADS; i++)
    g_array_append_vals (
        words,
        &(ToolWord){ .name = bench_workloads[i].name, .purpose = bench_workloads[i].description },
        1);
  for (const BenchFigure *figure = bench_figures; figure->name != NULL; figure++)
    g_array_append_vals (words, &(ToolWord){ .name = figure->name, .purpose = figure->description },
                         1);
}

const ToolCommand tool_bench_command = {
  .name = "bench",
  .purpose = N_ ("measure this runtime and others on this machine"),
  .summary
  = N_ ("Measures this runtime, and those other task runtimes that were built with it, on the "
        "same graphs\nwith 2 workers each. A quiet machine needs about ten minutes, with --quick "
        "two."),
  .entries = entries,
  .words_title = N_ ("What is measured"),
  .words_name = "MEASURE",
  .add_words = add_words,
  .run = tool_bench,
};
