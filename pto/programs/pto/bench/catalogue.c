/* catalogue.c: which runtimes, graphs and figures does `pto bench` know?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bench.h"

#include <glib/gi18n.h>
#include <string.h>

/* Colours that colour-blind readers can tell apart. */
const BenchRuntime bench_runtimes[BENCH_N_RUNTIMES] = {
  { "pto", TRUE, "#d55e00" },          { "libgomp", TRUE, "#0072b2" },
  { "libomp", TRUE, "#56b4e9" },       { "starpu", TRUE, "#009e73" },
  { "tbb-flow", FALSE, "#cc79a7" },    { "tbb-group", FALSE, "#e0c000" },
  { "gthreadpool", FALSE, "#8a8a8a" },
};

const BenchWorkload bench_workloads[BENCH_N_WORKLOADS] = {
  { "W1", N_ ("independent") }, { "W2", N_ ("chain") },    { "W3", N_ ("1-64-1 rounds") },
  { "W4", N_ ("stencil") },     { "W5", N_ ("Cholesky") }, { "W6", N_ ("attention") },
};

#define CHIP BENCH_BY_CHIP, BENCH_WORKERS
#define LEVEL(n_children) BENCH_BY_LEVEL, n_children

const BenchFigure bench_figures[] = {
  { "floor_72", N_ ("warm run of an empty orchestration, 72 cores"), CHIP },
  { "independent_72", N_ ("10 000 independent tasks, 72 cores"), CHIP },
  { "chain_72", N_ ("chain of 10 000 tasks, 72 cores"), CHIP },
  { "chain_1152", N_ ("chain of 10 000 tasks, 1152 cores"), CHIP },
  { "cores_3", N_ ("10 000 independent tasks, a task, 3 cores"), CHIP },
  { "cores_24", N_ ("the same, 24 cores"), CHIP },
  { "cores_72", N_ ("the same, 72 cores"), CHIP },
  { "cores_288", N_ ("the same, 288 cores"), CHIP },
  { "cores_1152", N_ ("the same, 1152 cores"), CHIP },
  { "submit_arg1", N_ ("submit with 1 tensor argument"), CHIP },
  { "submit_arg2", N_ ("submit with 2 tensor arguments"), CHIP },
  { "submit_arg4", N_ ("submit with 4 tensor arguments"), CHIP },
  { "submit_arg8", N_ ("submit with 8 tensor arguments"), CHIP },
  { "submit_views1", N_ ("submit on the only view of a buffer"), CHIP },
  { "submit_views16", N_ ("submit on one of 16 live views of a buffer"), CHIP },
  { "submit_views1024", N_ ("submit on one of 1024 live views of a buffer"), CHIP },
  { "blocks_1", N_ ("run of one task of 1 block"), CHIP },
  { "blocks_100", N_ ("run of one task of 100 blocks"), CHIP },
  { "blocks_1000", N_ ("run of one task of 1000 blocks"), CHIP },
  { "expansion_1", N_ ("the same as 1 task"), CHIP },
  { "expansion_100", N_ ("the same as 100 tasks"), CHIP },
  { "expansion_1000", N_ ("the same as 1000 tasks"), CHIP },
  { "mixed_1000", N_ ("run of one mixed task of 1000 blocks, 3 kernels each"), CHIP },
  { "cluster", N_ ("a cluster allocated, a task in it, and free again"), CHIP },
  { "pipe_entry", N_ ("an entry of 64 bytes through a pipe of a cluster"), CHIP },
  { "updates_chain", N_ ("1000 tasks of 10 us add to one tensor, in a chain"), CHIP },
  { "updates_commutative", N_ ("the same, one at a time in any order"), CHIP },
  { "updates_reduction", N_ ("the same, each in a copy; the copies are combined"), CHIP },
  { "virtual_chain", N_ ("such a chain of 1 us kernels on the virtual clock, 48 cores"), CHIP },
  { "virtual_commutative", N_ ("the same, in any order"), CHIP },
  { "virtual_reduction", N_ ("the same, in copies"), CHIP },
  { "capture_W6", N_ ("write W6 down as a graph, a task"), CHIP },
  { "launch_W3", N_ ("submit a task of W3 as a graph"), CHIP },
  { "launch_W4", N_ ("the same, W4"), CHIP },
  { "launch_W5", N_ ("the same, W5"), CHIP },
  { "launch_W6", N_ ("the same, W6"), CHIP },
  { "decode_step", N_ ("21 840 tasks of a decode step, launched as a graph"), CHIP },
  { "decode_step_plain", N_ ("the same as an orchestration"), CHIP },
  { "memory_10m", N_ ("10 million tasks: memory above start; growth since a tenth of them"), CHIP,
    TRUE },
  { "idle", N_ ("CPU time of an idle chip in 500 ms"), CHIP },
  { "det", N_ ("simulated tasks per second on the virtual clock (W6)"), CHIP },
  { "trace_overhead", N_ ("tasks of 1 us take longer when recorded, percent"), CHIP },
  { "first_task", N_ ("from `pto run` to its first task, kernels built before"), BENCH_BY_RUN,
    BENCH_WORKERS },
  { "mailbox_awake", N_ ("a request to a child process and its answer, both awake"), LEVEL (1) },
  { "mailbox_parked", N_ ("the same, the child asleep and its CPU idle"), LEVEL (1) },
  { "sub_fixed", N_ ("run of SUB tasks without the tasks, right after another run"), LEVEL (1) },
  { "sub_fixed_parked", N_ ("the same, the child asleep and its CPU idle"), LEVEL (1) },
  { "sub_task", N_ ("each task of a run of independent SUB tasks"), LEVEL (1) },
  { "sub_task_chain", N_ ("each task of a run of SUB tasks in a chain"), LEVEL (1) },
  { "sub_launch", N_ ("each of independent SUB tasks that are launched as a graph"), LEVEL (1) },
  { "sub_launch_chain", N_ ("the same, in a chain"), LEVEL (1) },
  { "children_64_idle", N_ ("CPU time of 64 idle children and their parent in 500 ms"),
    LEVEL (64) },
  { "remote_bulk", N_ ("16 MiB to a remote worker on this machine and back, both ways together"),
    LEVEL (1) },
  { "stream_bulk", N_ ("the same through such a connection alone, nothing behind it"), LEVEL (1) },
  { "remote_bulk_tcp",
    N_ ("16 MiB to a remote worker of this machine and back by UCX over TCP, a trusted fabric"),
    LEVEL (1) },
  { "remote_bulk_shm", N_ ("the same by UCX through shared memory"), LEVEL (1) },
  { "remote_bulk_tls",
    N_ ("16 MiB to a remote worker that listens at a port of this machine with TLS, and back"),
    LEVEL (1) },
  { "tls_bulk", N_ ("the same through TLS of GIO alone, nothing behind it"), LEVEL (1) },
  { "remote_task",
    N_ ("each task of a run of small ones in a chain, on a remote worker of this machine"),
    LEVEL (1) },
  { "remote_control", N_ ("a call with the same bytes over GDBus alone, from process to process"),
    LEVEL (1) },
  { "remote_raw", N_ ("the same bytes there and back through such a connection alone"), LEVEL (1) },
  { "remote_task_tls",
    N_ ("each task of a chain of small ones, on a remote worker that listens with TLS"),
    LEVEL (1) },
  { "tls_raw", N_ ("the same bytes there and back through TLS of GIO alone"), LEVEL (1) },
  { "remote_batch", N_ ("independent small tasks in a second, on 4 remote workers of this machine"),
    LEVEL (4) },
  { "job_allreduce_4k",
    N_ ("a task and an allreduce of 4 KiB by the ranks of a job of MPI, 4 remote workers of this machine"),
    LEVEL (4) },
  { "remote_allreduce_4k", N_ ("the same of 4 KiB in the program"), LEVEL (4) },
  { "job_allreduce_64k", N_ ("the same of 64 KiB by the ranks of a job"), LEVEL (4) },
  { "remote_allreduce_64k", N_ ("the same of 64 KiB in the program"), LEVEL (4) },
  { "job_allreduce_1m", N_ ("the same of 1 MiB by the ranks of a job"), LEVEL (4) },
  { "remote_allreduce_1m", N_ ("the same of 1 MiB in the program"), LEVEL (4) },
  { "job_allreduce_16m", N_ ("the same of 16 MiB by the ranks of a job"), LEVEL (4) },
  { "remote_allreduce_16m", N_ ("the same of 16 MiB in the program"), LEVEL (4) },
  { "start_1_8", N_ ("start of a tree of 1 + 8 processes: SUB workers"), LEVEL (8) },
  { "start_1_8_chips", N_ ("the same: chips"), LEVEL (8) },
  { "parent_killed", N_ ("from a parent's SIGKILL until the last of 8 children is gone"),
    LEVEL (8) },
  { NULL },
};

const BenchFigure *
bench_find_figure (const char *name)
{
  for (const BenchFigure *figure = bench_figures; figure->name != NULL; figure++)
    if (strcmp (figure->name, name) == 0)
      return figure;
  return NULL;
}
