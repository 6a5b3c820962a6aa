/* bench.h: what do the parts of `pto bench` share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* --- what can be measured: catalogue.c --- */

#define BENCH_WORKERS 2
#define BENCH_PTO 0 /* the runtime that this is about; the others are its peers */
#define BENCH_N_RUNTIMES 7
#define BENCH_N_WORKLOADS 6

typedef struct
{
  const char *name;
  gboolean infers; /* finds dependencies by itself */
  const char *colour;
} BenchRuntime;

/* A graph that every runtime runs. */
typedef struct
{
  const char *name;
  const char *description;
} BenchWorkload;

/* Who measures it. */
typedef enum
{
  BENCH_BY_CHIP,  /* bench-pto */
  BENCH_BY_LEVEL, /* bench-level */
  BENCH_BY_RUN    /* pto run */
} BenchMeans;

/* What only this runtime has. */
typedef struct
{
  const char *name;
  const char *description;
  BenchMeans means;
  guint workers;
  gboolean once; /* takes long and hardly varies */
} BenchFigure;

extern const BenchRuntime bench_runtimes[BENCH_N_RUNTIMES];
extern const BenchWorkload bench_workloads[BENCH_N_WORKLOADS];
extern const BenchFigure bench_figures[]; /* up to one without a name */

/* NULL: it is none. */
const BenchFigure *bench_find_figure (const char *name);

/* --- what was measured: results.c --- */

typedef struct
{
  char *workload;
  const char *runtime;
  char *metric;
  char *unit;
  GArray *values; /* double; ascending once all are there */
} BenchRow;

/* Why a row is not there. */
typedef struct
{
  const char *runtime;
  const char *workload; /* NULL: all of them */
  const char *metric;
  char *reason;
} BenchGap;

typedef struct
{
  GPtrArray *rows;
  GPtrArray *gaps;
  gboolean failed; /* this runtime did, at something */
} BenchResults;

void bench_results_init (BenchResults *results);
void bench_results_clear (BenchResults *results);
void bench_results_add (BenchResults *results, const char *workload, const char *runtime,
                        const char *metric, double value, const char *unit);
/* Takes the reason. */
void bench_results_add_gap (BenchResults *results, const char *runtime, const char *workload,
                            const char *metric, char *reason);
/* No values come any more. */
void bench_results_sort (BenchResults *results);
/* The first; NULL stands for any workload, runtime, metric. Figures are no workloads. */
BenchRow *bench_results_find (const BenchResults *results, const char *workload,
                              const char *runtime, const char *metric);
void bench_results_print_json (const BenchResults *results);
/* A sentence. */
char *bench_gap_dup_text (const BenchGap *gap);

double bench_row_min (const BenchRow *row);
double bench_row_max (const BenchRow *row);
double bench_row_median (const BenchRow *row);
/* Three digits that tell something: 0.0712, 0.83, 12.3, 742, 3042 */
char *bench_dup_number (double value);

/* --- how it is measured: programs.c, first-task.c --- */

typedef struct BenchPrograms BenchPrograms;

/* Finds the programs; who is not there is told to results. */
BenchPrograms *bench_programs_new (BenchResults *results, GError **error);
void bench_programs_free (BenchPrograms *programs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchPrograms, bench_programs_free)
/* One workload on all runtimes, in turns, reps values a turn; check: the first proves the order. */
void bench_programs_measure (BenchPrograms *programs, const char *workload, const char *metric,
                             guint n_turns, guint reps, gboolean check);
void bench_programs_measure_figure (BenchPrograms *programs, const BenchFigure *figure,
                                    guint n_turns, guint reps);
void bench_measure_first_task (BenchResults *results, const BenchFigure *figure, guint reps);

/* What a program printed; NULL after an error, which begins with what the program said:
 * G_IO_ERROR_NOT_SUPPORTED if that can not be measured here. */
char *bench_run_program (const char *const *words, const char *directory, GError **error);

/* On a terminal. */
void bench_show_progress (const char *workload, const char *runtime, guint turn, guint n_turns);

/* --- how it is told: tables.c, chart.c, machine.c --- */

void bench_print_text (const BenchResults *results);
gboolean bench_save_markdown (const BenchResults *results, const char *file, GError **error);
gboolean bench_save_chart (const BenchResults *results, const char *file, GError **error);
/* One line that tells where the figures come from. */
char *bench_dup_machine (void);

G_END_DECLS
