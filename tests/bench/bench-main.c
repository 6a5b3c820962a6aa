/* bench-main.c: how is one runtime measured on one workload?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *   bench-X --workload W1 [--metric ns_per_task|metg50_us] [--reps N] [--workers N] [--body NS]
 *           [--no-check]
 *   bench-X --tap
 *
 * First the runtime proves on the whole workload that it keeps the order, then it runs once to warm
 * up, then it is timed: one line of JSON per repetition, {workload, metric, value, unit}. --tap
 * does the proofs in small, each figure once, and says so in the Test Anything Protocol. Exit
 * status: 0, 1 when something failed, 2 when the command was wrong.
 */
#include "bench-main.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REPS 1001
#define METG_EFFICIENCY 0.5
#define METG_STEPS 5 /* halvings of the last factor of 2: 2.2 % */
#define METG_LOWEST_NS 4.0
#define METG_LONG_NS 100000000 /* a run as long as this needs no second opinion */
#define METG_TOO_LONG_NS \
  2.5e9 /* a run as long as this, had it no overhead, is not tried: there is no answer here */

struct bench_body bench_body;

struct options
{
  const char *workload;
  const char *metric;
  uint32_t reps;
  uint32_t workers;
  double body;
  bool check;
  bool tap;
};

static double ns_per_loop;
static const char *line_prefix = "";

/* On its own line and never inlined: one loop, wherever it is called from. */
__attribute__ ((noinline, aligned (64))) void
bench_spin (uint64_t loops)
{
  for (; loops > 0; loops--)
    __asm__ volatile("" : "+r"(loops));
}

uint64_t
bench_loops (double ns)
{
  return ns_per_loop > 0 ? (uint64_t) (ns / ns_per_loop + 0.5) : 0;
}

/* The fastest of many: anything slower was disturbed. */
static void
calibrate (void)
{
  const uint64_t loops = 1000000;

  for (int i = 0; i < 25; i++)
    {
      uint64_t begin = bench_now ();
      double ns;

      bench_spin (loops);
      ns = (double) (bench_now () - begin) / (double) loops;
      if (i == 0 || ns < ns_per_loop)
        ns_per_loop = ns;
    }
}

void
bench_print (const char *workload, const char *metric, double value, const char *unit)
{
  printf ("%s{\"workload\": \"%s\", \"metric\": \"%s\", \"value\": %.10g, \"unit\": \"%s\"}\n",
          line_prefix, workload, metric, value, unit);
  fflush (stdout);
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

double
bench_median (double *values, uint32_t n)
{
  qsort (values, n, sizeof *values, compare);
  return values[n / 2];
}

/* The workload keeps its order on this runtime. */
static bool
prove (const struct bench_workload *workload, const char *name)
{
  char message[300];
  uint64_t ns;
  bool passed;

  bench_body.check = bench_check_new (workload);
  ns = bench_runtime.run (workload);
  passed = bench_check_passed (bench_body.check, message, sizeof message);
  if (ns == 0)
    fprintf (stderr, "bench: %s fails on %s\n", bench_runtime.name, name);
  else if (!passed)
    fprintf (stderr, "bench: %s does not keep the order of %s: %s\n", bench_runtime.name, name,
             message);
  bench_check_free (bench_body.check);
  bench_body.check = NULL;
  return ns > 0 && passed;
}

/* How much of the workers' time went into bodies; a graph that is a chain can not use more than one
 * worker. 0: failed. */
static double
efficiency (const struct bench_workload *workload, const struct bench_graph *graph,
            uint32_t workers, double body)
{
  double tasks_in_a_row = fmax ((double) workload->n_tasks / workers, graph->depth);
  double ns[3];
  uint32_t n = 0;

  bench_body.loops = bench_loops (body);
  while (n < 3)
    {
      ns[n] = (double) bench_runtime.run (workload);
      if (ns[n] <= 0)
        return 0;
      if (ns[n++] >= METG_LONG_NS)
        {
          ns[0] = ns[n - 1];
          n = 1;
          break;
        }
    }
  return tasks_in_a_row * body / bench_median (ns, n);
}

/* The smallest body, in ns, that keeps the workers busy half of the time. 0: none is long enough;
 * -1: failed. */
static double
find_metg (const struct bench_workload *workload, uint32_t workers)
{
  struct bench_graph *graph = bench_graph_new (workload);
  double highest = METG_TOO_LONG_NS / fmax ((double) workload->n_tasks / workers, graph->depth);
  double low, high, value, result;

  bench_body.loops = 0;
  high = fmax ((double) bench_runtime.run (workload) / workload->n_tasks, METG_LOWEST_NS);
  while ((value = efficiency (workload, graph, workers, high)) > 0 && value < METG_EFFICIENCY
         && high * 2 < highest)
    high *= 2;
  result = value > 0 ? 0 : -1;
  if (value >= METG_EFFICIENCY)
    {
      low = high / 2;
      while (low > METG_LOWEST_NS
             && (value = efficiency (workload, graph, workers, low)) >= METG_EFFICIENCY)
        {
          high = low;
          low /= 2;
        }
      for (int i = 0; i < METG_STEPS && value > 0; i++)
        {
          double middle = sqrt (low * high);

          value = efficiency (workload, graph, workers, middle);
          if (value >= METG_EFFICIENCY)
            high = middle;
          else
            low = middle;
        }
      result = value > 0 ? sqrt (low * high) : -1;
    }
  bench_body.loops = 0;
  bench_graph_free (graph);
  return result;
}

static bool
measure_workload (const struct options *options)
{
  struct bench_workload workload;
  bool metg = strcmp (options->metric, "metg50_us") == 0;
  bool ok = true;

  bench_workload_init (&workload, options->workload, false);
  if (!bench_runtime.start (options->workers))
    return false;
  bench_runtime.prepare (&workload);
  if (options->check)
    ok = prove (&workload, options->workload);
  bench_body.loops = bench_loops (options->body);
  ok = ok && bench_runtime.run (&workload) > 0;
  for (uint32_t i = 0; ok && i < options->reps; i++)
    {
      double value;

      if (metg)
        value = find_metg (&workload, options->workers) / 1e3;
      else
        value = (double) bench_runtime.run (&workload) / workload.n_tasks;
      ok = metg ? value >= 0 : value > 0;
      /* That no body is long enough (on a busy machine, say) is no failure, but no value either. */
      if (value > 0)
        bench_print (options->workload, options->metric, value, metg ? "us" : "ns");
    }
  bench_runtime.release (&workload);
  bench_runtime.stop ();
  if (!ok)
    fprintf (stderr, "bench: %s could not be measured on %s\n", bench_runtime.name,
             options->workload);
  return ok;
}

static uint32_t
count_figures (void)
{
  uint32_t n = 0;

  while (bench_runtime.figures != NULL && bench_runtime.figures[n].name != NULL)
    n++;
  return n;
}

static bool
tap_workloads (void)
{
  bool all = true;

  for (uint32_t i = 1; i <= BENCH_WORKLOADS; i++)
    {
      char name[3] = { 'W', (char) ('0' + i), '\0' };
      struct bench_workload workload;
      bool ok;

      bench_workload_init (&workload, name, true);
      bench_runtime.prepare (&workload);
      ok = prove (&workload, name) && bench_runtime.run (&workload) > 0;
      bench_body.loops = bench_loops (200);
      ok = ok && bench_runtime.run (&workload) > 0;
      bench_body.loops = 0;
      bench_runtime.release (&workload);
      printf ("%sok %u - /bench/%s/%s/keeps-order\n", ok ? "" : "not ", i, bench_runtime.name,
              name);
      fflush (stdout);
      all = all && ok;
    }
  return all;
}

/* Exit status of a program that can not tell a figure here. */
#define EXIT_SKIP 77

/* "": none was left out. */
static char skipped[256];

bool
bench_skip (const char *reason)
{
  snprintf (skipped, sizeof skipped, "%s", reason);
  return true;
}

static int
measure_figure (const struct bench_figure *figure, const struct options *options)
{
  if (!figure->measure (figure, options->workers, options->reps, false))
    return EXIT_FAILURE;
  if (*skipped == '\0')
    return EXIT_SUCCESS;
  fprintf (stderr, "%s\n", skipped);
  return EXIT_SKIP;
}

static bool
tap (const struct options *options)
{
  uint32_t n_workloads = bench_runtime.run != NULL ? BENCH_WORKLOADS : 0;
  uint32_t n_figures = count_figures ();
  bool all = true;

  line_prefix = "# ";
  printf ("TAP version 13\n1..%u\n", n_workloads + n_figures);
  if (n_workloads > 0)
    {
      if (!bench_runtime.start (options->workers))
        {
          printf ("Bail out! %s does not start\n", bench_runtime.name);
          return false;
        }
      all = tap_workloads ();
      bench_runtime.stop ();
    }
  for (uint32_t i = 0; i < n_figures; i++)
    {
      const struct bench_figure *figure = &bench_runtime.figures[i];
      bool ok = figure->measure (figure, options->workers, 1, true);

      printf ("%sok %u - /bench/%s/%s%s%s\n", ok ? "" : "not ", n_workloads + 1 + i,
              bench_runtime.name, figure->name, *skipped != '\0' ? " # SKIP " : "", skipped);
      *skipped = '\0';
      fflush (stdout);
      all = all && ok;
    }
  return all;
}

static bool
parse_number (const char *text, double lowest, double highest, double *value)
{
  char *end;

  errno = 0;
  *value = strtod (text, &end);
  return errno == 0 && end != text && *end == '\0' && *value >= lowest && *value <= highest;
}

static bool
parse (int argc, char **argv, struct options *options)
{
  for (int i = 1; i < argc; i++)
    {
      const char *name = argv[i];
      double value = 0;

      if (strcmp (name, "--no-check") == 0)
        options->check = false;
      else if (strcmp (name, "--tap") == 0)
        options->tap = true;
      else if (i + 1 == argc)
        return false;
      else if (strcmp (name, "--workload") == 0)
        options->workload = argv[++i];
      else if (strcmp (name, "--metric") == 0)
        options->metric = argv[++i];
      else if (strcmp (name, "--reps") == 0 && parse_number (argv[++i], 1, MAX_REPS, &value))
        options->reps = (uint32_t) value;
      else if (strcmp (name, "--workers") == 0 && parse_number (argv[++i], 1, 64, &value))
        options->workers = (uint32_t) value;
      else if (strcmp (name, "--body") == 0 && parse_number (argv[++i], 0, 1e9, &value))
        options->body = value;
      else
        return false;
    }
  return options->tap
         || (options->workload != NULL
             && (strcmp (options->metric, "ns_per_task") == 0
                 || strcmp (options->metric, "metg50_us") == 0));
}

int
main (int argc, char **argv)
{
  struct options options = { .metric = "ns_per_task", .reps = 5, .workers = 2, .check = true };
  struct bench_workload workload;

  if (!parse (argc, argv, &options))
    {
      fprintf (stderr,
               "Usage: bench-%s --workload NAME [--metric ns_per_task|metg50_us] [--reps N]\n"
               "       [--workers N] [--body NS] [--no-check]\n"
               "       bench-%s --tap\n",
               bench_runtime.name, bench_runtime.name);
      return 2;
    }
  calibrate ();
  if (options.tap)
    return tap (&options) ? EXIT_SUCCESS : EXIT_FAILURE;
  if (bench_runtime.run != NULL && bench_workload_init (&workload, options.workload, false))
    return measure_workload (&options) ? EXIT_SUCCESS : EXIT_FAILURE;
  for (uint32_t i = 0; i < count_figures (); i++)
    if (strcmp (bench_runtime.figures[i].name, options.workload) == 0)
      return measure_figure (&bench_runtime.figures[i], &options);
  fprintf (stderr, "bench: %s has no workload \"%s\"\n", bench_runtime.name, options.workload);
  return 2;
}
