/* workloads.h: which task graphs does every runtime run, and how is it known that it kept their
 * order?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A workload is a stream of tasks in sequential order, each with the buffers it reads and writes.
 * It is described once, generated while it is submitted (a few ns a task, the same for every
 * runtime) and stored nowhere.
 *
 *   W1  independent tasks, one output each
 *   W2  one chain through one buffer that every task updates
 *   W3  rounds of 1 producer, 64 readers, 1 reducer
 *   W4  3-point stencil, width 16, double buffered
 *   W5  Cholesky factorization by tiles: potrf, trsm, syrk, gemm
 *   W6  the shape of paged attention: groups of HUB -> 8 x (QK -> SF -> PV -> UP), UP updates
 * accumulators
 *
 * Valid C17 and C++17, for some runtimes speak only the latter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

#define BENCH_WORKLOADS 6
#define BENCH_MAX_ACCESSES 66

  enum bench_mode
  {
    BENCH_IN,
    BENCH_OUT,  /* writes all of it, reads nothing */
    BENCH_INOUT /* reads, then writes */
  };

  struct bench_access
  {
    uint32_t buffer; /* below n_buffers */
    uint32_t mode;   /* enum bench_mode */
  };

  struct bench_task
  {
    uint32_t index;    /* 0, 1, 2, ... */
    uint32_t n_inputs; /* accesses[0 .. n_inputs) are BENCH_IN, the others are not */
    uint32_t n_accesses;
    bool cube; /* multiplies matrices: belongs on an AIC */
    const struct bench_access *accesses;
  };

  struct bench_workload
  {
    uint32_t id;   /* 1 to BENCH_WORKLOADS */
    uint32_t size; /* tasks, rounds, steps, tiles a side, or groups */
    uint32_t n_tasks;
    uint32_t n_buffers;
  };

  typedef void (*bench_submit) (void *data, const struct bench_task *task);

  /* "W1" to "W6"; small: a graph of a few hundred tasks instead of the measured one. false: no such
   * workload. */
  bool bench_workload_init (struct bench_workload *workload, const char *name, bool small);
  /* The same with another size. */
  void bench_workload_resize (struct bench_workload *workload, uint32_t size);
  void bench_workload_generate (const struct bench_workload *workload, bench_submit submit,
                                void *data);

  /* The edges, for runtimes that must be told: who must be done before whom. Redundant pairs are
   * left out only when they are the same pair. */
  struct bench_graph
  {
    uint32_t n_tasks;
    uint32_t depth;            /* tasks on the longest path */
    uint32_t *first_successor; /* n_tasks + 1 positions in successors */
    uint32_t *successors;
    uint32_t *n_predecessors;
  };

  struct bench_graph *bench_graph_new (const struct bench_workload *workload);
  void bench_graph_free (struct bench_graph *graph);

  /* The order check: every buffer has a version, which its writers raise, and a count of those who
   * read that version. A task that meets another version than sequential order implies, that writes
   * before all readers of the version are done, or that meets somebody who writes while it works,
   * ran out of order. Some tasks take their time, so that those who ought to wait have the chance
   * not to. */
  struct bench_check;

  struct bench_check *bench_check_new (const struct bench_workload *workload);
  void bench_check_free (struct bench_check *check);
  /* What task index does instead of its work. Any thread. */
  void bench_check_execute (struct bench_check *check, uint32_t index);
  /* All tasks ran once and in order; otherwise message tells the first that did not. */
  bool bench_check_passed (const struct bench_check *check, char *message, uint32_t size);

#ifdef __cplusplus
}
#endif
