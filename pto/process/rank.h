/* rank.h: what do a worker and the MPI process beside it say to each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A worker that is a rank of a job has a process of MPI beside it
 * (pto/programs/pto-mpi-rank/pto-mpi-rank.c), which maps the worker's memory and combines tensors
 * where they are. It connects to the worker by a name without a file, of a sequenced socket, so
 * each structure is one message. Both are of one machine and one version; nothing is answered by
 * nobody: who hangs up ends what is under way.
 *
 *   process: hello
 *   worker:  memory, with the descriptor of a file that is all of it
 *   worker:  request, process: answer, as often as it is wanted
 */
#pragma once

#include <stdint.h>

#define PTO_RANK_MAGIC UINT32_C (0x50524b31)

struct pto_rank_hello
{
  uint32_t magic;
  uint32_t rank;
  uint32_t n_ranks;
  uint32_t generation; /* which of the job's lives it is of */
};

struct pto_rank_memory
{
  uint64_t size; /* to be mapped */
};

enum pto_rank_what
{
  PTO_RANK_ALLREDUCE,
  PTO_RANK_BROADCAST,
  PTO_RANK_ALLTOALL,
  PTO_N_RANK_WHATS
};

/* Offsets are those of the memory. */
struct pto_rank_request
{
  uint32_t what;
  uint32_t dtype;     /* DataType */
  uint32_t operation; /* ALLREDUCE: enum pto_operator (sim/reduction-operators.h) */
  uint32_t root;      /* BROADCAST: a rank */
  uint64_t from;      /* ALLTOALL: what is read */
  uint64_t to;        /* what is written; of the others it is read, too */
  uint64_t n;         /* elements; ALLTOALL: in each part */
};

struct pto_rank_answer
{
  uint32_t failed;
  char text[252]; /* why; ends in 0 */
};
