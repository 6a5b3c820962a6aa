/* bench-openmp.c: how fast are OpenMP tasks with depend clauses?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Compiled twice: by gcc for libgomp and by clang for LLVM's libomp. A thread of the team submits
 * and takes part in the end. A clause for each number of accesses that occurs often is faster than
 * iterators, which do the rest. In OpenMP out and inout mean the same.
 */
#include "bench-main.h"

#include <omp.h>
#include <stdlib.h>

/* Dependencies are addresses: one of each buffer, on lines of their own as real buffers would be.
 */
static char (*buffers)[64];
static uint32_t n_workers;

static bool
start (uint32_t workers)
{
  n_workers = workers;
  omp_set_dynamic (0);
  omp_set_num_threads ((int) workers);
  return true;
}

static void
prepare (const struct bench_workload *workload)
{
  buffers = aligned_alloc (64, (size_t) workload->n_buffers * sizeof *buffers);
  if (buffers == NULL)
    abort ();
}

static void
release (const struct bench_workload *workload)
{
  (void) workload;
  free (buffers);
  buffers = NULL;
}

static void
stop (void)
{
}

#define BUFFER(i) (buffers[accesses[i].buffer][0])

static void
submit (void *data, const struct bench_task *task)
{
  const struct bench_access *accesses = task->accesses;
  uint32_t index = task->index;
  uint32_t n_inputs = task->n_inputs;
  uint32_t n = task->n_accesses;

  (void) data;
  /* The formatter does not know these clauses. */
  /* clang-format off */
  switch (n_inputs << 8 | (n - n_inputs))
    {
    case 0x0001:
#pragma omp task firstprivate(index) depend(inout : BUFFER (0))
      bench_work (index);
      break;
    case 0x0003:
#pragma omp task firstprivate(index) depend(inout : BUFFER (0), BUFFER (1), BUFFER (2))
      bench_work (index);
      break;
    case 0x0101:
#pragma omp task firstprivate(index) depend(in : BUFFER (0)) depend(inout : BUFFER (1))
      bench_work (index);
      break;
    case 0x0103:
#pragma omp task firstprivate(index) depend(in : BUFFER (0)) \
    depend(inout : BUFFER (1), BUFFER (2), BUFFER (3))
      bench_work (index);
      break;
    case 0x0201:
#pragma omp task firstprivate(index) depend(in : BUFFER (0), BUFFER (1)) depend(inout : BUFFER (2))
      bench_work (index);
      break;
    case 0x0301:
#pragma omp task firstprivate(index) depend(in : BUFFER (0), BUFFER (1), BUFFER (2)) \
    depend(inout : BUFFER (3))
      bench_work (index);
      break;
    case 0x0303:
#pragma omp task firstprivate(index) depend(in : BUFFER (0), BUFFER (1), BUFFER (2)) \
    depend(inout : BUFFER (3), BUFFER (4), BUFFER (5))
      bench_work (index);
      break;
    default:
#pragma omp task firstprivate(index) depend(iterator(unsigned i = 0 : n_inputs), in : BUFFER (i)) \
    depend(iterator(unsigned i = n_inputs : n), inout : BUFFER (i))
      bench_work (index);
      break;
    }
  /* clang-format on */
}

static uint64_t
run (const struct bench_workload *workload)
{
  uint64_t ns = 0;

#pragma omp parallel num_threads(n_workers)
#pragma omp single
  {
    uint64_t begin = bench_now ();

    bench_workload_generate (workload, submit, NULL);
#pragma omp taskwait
    ns = bench_now () - begin;
  }
  return ns;
}

const struct bench_runtime bench_runtime = {
#ifdef __clang__
  .name = "libomp",
#else
  .name = "libgomp",
#endif
  .start = start,
  .prepare = prepare,
  .run = run,
  .release = release,
  .stop = stop,
};
