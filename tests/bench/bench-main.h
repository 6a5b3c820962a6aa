/* bench-main.h: what does a runtime have to offer to be measured?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every executable is bench-main.c, workloads.c and one runtime, which defines bench_runtime. Valid
 * C17 and C++17.
 */
#pragma once

#include "workloads.h"

#include <time.h>

#ifdef __cplusplus
extern "C"
{
#endif

  /* A figure that only one runtime has; it prints its values with bench_print(). */
  struct bench_figure
  {
    const char *name;
    const char *metric;
    const char *unit;
    uint32_t number; /* whatever tells figures with one measure function apart */
    /* brief: only to see that it works. false: it could not be measured, and said why on standard
     * error. */
    bool (*measure) (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                     bool brief);
  };

  /* Without run: figures only, and none of the functions. */
  struct bench_runtime
  {
    const char *name;
    /* false: not possible here, said why on standard error. */
    bool (*start) (uint32_t workers);
    /* What is made once for many runs and belongs to the user's data: not timed. */
    void (*prepare) (const struct bench_workload *workload);
    /* Runs the workload; every task calls bench_work(). Gives the ns from before the first submit
     * until all are done; 0 when it failed. */
    uint64_t (*run) (const struct bench_workload *workload);
    void (*release) (const struct bench_workload *workload);
    void (*stop) (void);
    const struct bench_figure *figures; /* up to one without a name; NULL: none */
  };

  extern const struct bench_runtime bench_runtime;

  /* W: main, before a run; R: tasks. */
  struct bench_body
  {
    uint64_t loops;
    struct bench_check *check; /* NULL: not now */
  };
  extern struct bench_body bench_body;

  void bench_spin (uint64_t loops);
  /* So many loops take so long. */
  uint64_t bench_loops (double ns);

  /* What a task does. */
  static inline void
  bench_work (uint32_t index)
  {
    if (bench_body.check != NULL)
      bench_check_execute (bench_body.check, index);
    else if (bench_body.loops > 0)
      bench_spin (bench_body.loops);
  }

  static inline uint64_t
  bench_now (void)
  {
    struct timespec now;

    clock_gettime (CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
  }

  /* A figure can not be measured here, for that reason: to be returned by its measure(). */
  bool bench_skip (const char *reason);
  /* Sorts them. */
  double bench_median (double *values, uint32_t n);
  /* One repetition's value, as a line of JSON. */
  void bench_print (const char *workload, const char *metric, double value, const char *unit);

#ifdef __cplusplus
}
#endif
