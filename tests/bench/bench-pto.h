/* bench-pto.h: what do the benchmarks of this library's runtime share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../../pto/exec/pto-exec.h"
#include "../../sim/chip.h"
#include "bench-main.h"

/* Tasks in one scope: enough to keep the chip busy, few against the window. */
#define BENCH_PIECE 1024u
/* Of a buffer: a cache line. */
#define BENCH_BUFFER 64u

enum bench_kernel
{
  BENCH_VECTOR, /* does bench_body.loops */
  BENCH_CUBE,
  BENCH_CHECK_VECTOR, /* argument 0: the task's index */
  BENCH_CHECK_CUBE,
  BENCH_PUSH, /* argument 0: so many entries, on a cube core */
  BENCH_POP,
  BENCH_HOLD,    /* holds its carrier until it is let go */
  BENCH_TAKE_IN, /* as BENCH_VECTOR: of two tensors, the second one is taken into the first */
  BENCH_N_KERNELS
};

/* How many tasks update one tensor. */
enum
{
  BENCH_CHAIN,
  BENCH_COMMUTE,
  BENCH_REDUCE
};

extern const struct pto_program bench_program;

/* BENCH_HOLD: what it holds on. */
struct bench_hold
{
  _Atomic bool holds; /* W: the kernel, release; R: the orchestration, acquire */
  _Atomic bool go;    /* W: the orchestration, release; R: the kernel, acquire */
};

/* a2a3sim as users get it but for what is given; NULL: said why. clusters 0: the platform's. */
struct pto_chip *bench_chip_new (uint32_t workers, uint32_t clusters, enum pto_backend backend);
/* ns of a run; 0: failed, said why. */
uint64_t bench_chip_run (struct pto_chip *chip, bool trace,
                         int (*orchestrate) (PTO2Runtime *rt, void *data), void *data);

/* The first kernel keeps the only carrier and the only scheduler, so that nobody but the submitter
 * is at work: what is measured is the submit alone, neither helped nor disturbed by the execution
 * of what it submits. For a chip of 2 workers and 1 cluster. */
void bench_hold (PTO2Runtime *rt, struct bench_hold *hold);
void bench_let_go (struct bench_hold *hold);

/* Of graphs: bench-pto-graph.c. */
bool bench_measure_capture (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                            bool brief);
bool bench_measure_launch (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                           bool brief);
bool bench_measure_decode_step (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                                bool brief);

/* A workload: its memory, and the orchestration that is given it. */
void bench_pto_prepare (const struct bench_workload *workload);
int bench_pto_orchestrate (PTO2Runtime *rt, void *workload);
void bench_pto_release (const struct bench_workload *workload);
/* All that is the caller's of it, as one tensor. */
Tensor bench_pto_memory (const struct bench_workload *workload);

static inline Tensor
bench_tensor (void *address)
{
  static const uint64_t shape[1] = { BENCH_BUFFER / 4 };

  return make_tensor_external (address, shape, 1, PTO_DTYPE_FLOAT32);
}

/* The same, of the runtime's own memory: it comes from a ring with the task that outputs it. */
static inline Tensor
bench_tensor_made (void)
{
  static const uint64_t shape[1] = { BENCH_BUFFER / 4 };

  return make_tensor (shape, 1, PTO_DTYPE_FLOAT32);
}

/* bench-pto-parts.c */
bool bench_measure_blocks (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                           bool brief);
bool bench_measure_expansion (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                              bool brief);
bool bench_measure_mixed (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                          bool brief);
bool bench_measure_clusters (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                             bool brief);
bool bench_measure_pipe (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                         bool brief);

/* bench-pto-updates.c; the number is how. */
bool bench_measure_updates (const struct bench_figure *figure, uint32_t workers, uint32_t reps,
                            bool brief);
bool bench_measure_virtual_updates (const struct bench_figure *figure, uint32_t workers,
                                    uint32_t reps, bool brief);

/* Up to one without a name. */
extern const struct bench_figure bench_pto_figures[];
