/* bench-tbb-group.cpp: how fast is a oneTBB task_group whose tasks count down to their successors?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * TBB infers nothing: the edges were found before the clock started. The last predecessor of a task
 * spawns it: every task goes through the task_group.
 */
#include "bench-main.h"

#include <atomic>
#include <memory>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace
{

std::unique_ptr<tbb::global_control> control;
std::unique_ptr<tbb::task_arena> arena;
std::unique_ptr<std::atomic<uint32_t>[]> waits_for;
bench_graph *graph;

bool
start (uint32_t workers)
{
  control = std::make_unique<tbb::global_control> (tbb::global_control::max_allowed_parallelism,
                                                   workers);
  arena = std::make_unique<tbb::task_arena> (static_cast<int> (workers));
  return true;
}

void
prepare (const bench_workload *workload)
{
  graph = bench_graph_new (workload);
  waits_for = std::make_unique<std::atomic<uint32_t>[]> (graph->n_tasks);
}

void
release (const bench_workload *)
{
  waits_for.reset ();
  bench_graph_free (graph);
  graph = nullptr;
}

void
stop ()
{
  arena.reset ();
  control.reset ();
}

void
work (tbb::task_group &group, uint32_t index)
{
  bench_work (index);
  for (uint32_t e = graph->first_successor[index]; e < graph->first_successor[index + 1]; e++)
    {
      uint32_t successor = graph->successors[e];

      /* Releases what this task wrote, acquires what the other predecessors wrote. */
      if (waits_for[successor].fetch_sub (1, std::memory_order_acq_rel) == 1)
        group.run ([&group, successor] { work (group, successor); });
    }
}

uint64_t
run (const bench_workload *)
{
  uint64_t ns = 0;

  arena->execute ([&ns] {
    tbb::task_group group;
    uint64_t begin = bench_now ();

    for (uint32_t i = 0; i < graph->n_tasks; i++)
      waits_for[i].store (graph->n_predecessors[i], std::memory_order_relaxed);
    for (uint32_t i = 0; i < graph->n_tasks; i++)
      if (graph->n_predecessors[i] == 0)
        group.run ([&group, i] { work (group, i); });
    group.wait ();
    ns = bench_now () - begin;
  });
  return ns;
}

} // namespace

extern "C" const struct bench_runtime bench_runtime
    = { "tbb-group", start, prepare, run, release, stop, nullptr };
