/* bench-tbb-flow.cpp: how fast is a oneTBB flow graph that is built, run and waited for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One continue_node a task. TBB infers nothing: it is told the edges, which were found before the
 * clock started; making nodes and edges is part of the run.
 */
#include "bench-main.h"

#include <memory>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <vector>

namespace
{

using node = tbb::flow::continue_node<tbb::flow::continue_msg>;

std::unique_ptr<tbb::global_control> control;
std::unique_ptr<tbb::task_arena> arena;
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
}

void
release (const bench_workload *)
{
  bench_graph_free (graph);
  graph = nullptr;
}

void
stop ()
{
  arena.reset ();
  control.reset ();
}

uint64_t
run (const bench_workload *)
{
  uint64_t ns = 0;

  arena->execute ([&ns] {
    tbb::flow::graph flow;
    std::vector<std::unique_ptr<node>> nodes (graph->n_tasks);
    uint64_t begin = bench_now ();

    for (uint32_t i = 0; i < graph->n_tasks; i++)
      nodes[i] = std::make_unique<node> (flow,
                                         [i] (const tbb::flow::continue_msg &) { bench_work (i); });
    for (uint32_t i = 0; i < graph->n_tasks; i++)
      for (uint32_t e = graph->first_successor[i]; e < graph->first_successor[i + 1]; e++)
        tbb::flow::make_edge (*nodes[i], *nodes[graph->successors[e]]);
    for (uint32_t i = 0; i < graph->n_tasks; i++)
      if (graph->n_predecessors[i] == 0)
        nodes[i]->try_put (tbb::flow::continue_msg ());
    flow.wait_for_all ();
    ns = bench_now () - begin;
  });
  return ns;
}

} // namespace

extern "C" const struct bench_runtime bench_runtime
    = { "tbb-flow", start, prepare, run, release, stop, nullptr };
