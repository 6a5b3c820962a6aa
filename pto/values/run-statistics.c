/* run-statistics.c: what did a run do, in numbers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "run-statistics.h"

/**
 * PtoRunStatistics:
 *
 * What a run did, in numbers.
 *
 * A value that never changes; [method@Pto.Worker.dup_statistics] gives that of the last run.
 *
 * Thread safety: any thread. A fork copies the value.
 *
 * Since: 0.1
 */
G_DEFINE_BOXED_TYPE (PtoRunStatistics, pto_run_statistics, pto_run_statistics_copy,
                     pto_run_statistics_free)

G_STATIC_ASSERT (PTO_N_RINGS == PTO_RINGS);

PtoRunStatistics *
pto_run_statistics_new (const struct pto_run_stats *stats)
{
  PtoRunStatistics *statistics = g_new (PtoRunStatistics, 1);

  statistics->stats = *stats;
  return statistics;
}

/**
 * pto_run_statistics_copy:
 * @statistics: statistics
 *
 * Makes a copy.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): statistics
 *
 * Since: 0.1
 */
PtoRunStatistics *
pto_run_statistics_copy (const PtoRunStatistics *statistics)
{
  g_return_val_if_fail (statistics != NULL, NULL);

  return pto_run_statistics_new (&statistics->stats);
}

/**
 * pto_run_statistics_free:
 * @statistics: (transfer full): statistics
 *
 * Frees statistics.
 *
 * Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_run_statistics_free (PtoRunStatistics *statistics)
{
  g_return_if_fail (statistics != NULL);

  g_free (statistics);
}

/* A function that gives a number, and one that gives the number of a type of core, or of a ring; 0
 * where there is none. */
#define DEFINE_GETTER(field)                                                  \
  guint64 pto_run_statistics_get_##field (const PtoRunStatistics *statistics) \
  {                                                                           \
    g_return_val_if_fail (statistics != NULL, 0);                             \
                                                                              \
    return statistics->stats.field;                                           \
  }
#define DEFINE_GETTER_BY(field, type, index)                                                       \
  guint64 pto_run_statistics_get_##field (const PtoRunStatistics *statistics, type index)          \
  {                                                                                                \
    g_return_val_if_fail (statistics != NULL, 0);                                                  \
                                                                                                   \
    return (guint) index < G_N_ELEMENTS (statistics->stats.field) ? statistics->stats.field[index] \
                                                                  : 0;                             \
  }

/**
 * pto_run_statistics_get_tasks:
 * @statistics: statistics
 *
 * Gives the number of tasks submitted.
 *
 * Thread safety: any thread.
 *
 * Returns: tasks
 *
 * Since: 0.1
 */
DEFINE_GETTER (tasks)

/**
 * pto_run_statistics_get_completed:
 * @statistics: statistics
 *
 * Gives the number of tasks completed.
 *
 * Thread safety: any thread.
 *
 * Returns: tasks
 *
 * Since: 0.1
 */
DEFINE_GETTER (completed)

/**
 * pto_run_statistics_get_failed:
 * @statistics: statistics
 *
 * Gives the number of tasks that failed or did not run because a producer failed.
 *
 * Thread safety: any thread.
 *
 * Returns: tasks
 *
 * Since: 0.1
 */
DEFINE_GETTER (failed)

/**
 * pto_run_statistics_get_edges:
 * @statistics: statistics
 *
 * Gives the number of dependencies between tasks: distinct pairs of producer and consumer that
 * order.
 *
 * Thread safety: any thread.
 *
 * Returns: pairs
 *
 * Since: 0.1
 */
DEFINE_GETTER (edges)

/**
 * pto_run_statistics_get_run_ns:
 * @statistics: statistics
 *
 * Gives the wall-clock time of the run.
 *
 * In a run of a function that includes what it costs to build and load a kernel that is submitted
 * for the first time on its worker: what is registered before is there already.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds, from the first submit to the end
 *
 * Since: 0.1
 */
DEFINE_GETTER (run_ns)

/**
 * pto_run_statistics_get_virtual_ns:
 * @statistics: statistics
 *
 * Gives the virtual time of the run.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds; 0 unless the back end is `det`
 *
 * Since: 0.1
 */
DEFINE_GETTER (virtual_ns)

/**
 * pto_run_statistics_get_elapsed_ns:
 * @statistics: statistics
 *
 * Gives the time that the busy times are to be held against.
 *
 * Thread safety: any thread.
 *
 * Returns: nanoseconds: virtual on the back end `det`, wall clock otherwise
 *
 * Since: 0.1
 */
DEFINE_GETTER (elapsed_ns)

/**
 * pto_run_statistics_get_peak_live_tasks:
 * @statistics: statistics
 *
 * Gives the most task slots that were taken at one time, in all rings together.
 *
 * Thread safety: any thread.
 *
 * Returns: tasks
 *
 * Since: 0.1
 */
DEFINE_GETTER (peak_live_tasks)

/**
 * pto_run_statistics_get_recycled:
 * @statistics: statistics
 *
 * Gives the number of submits that took a slot used before in the same run.
 *
 * Thread safety: any thread.
 *
 * Returns: submits
 *
 * Since: 0.1
 */
DEFINE_GETTER (recycled)

/**
 * pto_run_statistics_get_stalls:
 * @statistics: statistics
 *
 * Gives the number of times that the orchestrator had to wait: for a ring, a cluster or an element.
 *
 * Thread safety: any thread.
 *
 * Returns: times
 *
 * Since: 0.1
 */
DEFINE_GETTER (stalls)

/**
 * pto_run_statistics_get_busy_ns:
 * @statistics: statistics
 * @core_type: a type of core
 *
 * Gives the time that kernels ran, summed over the cores of a type, without that in which they
 * waited for each other.
 *
 * Measured when the parameter `utilization` is 1 or the back end is `det`. Thread safety: any
 * thread.
 *
 * Returns: nanoseconds; 0 for another type of core
 *
 * Since: 0.1
 */
DEFINE_GETTER_BY (busy_ns, PtoCoreType, core_type)

/**
 * pto_run_statistics_get_waited_ns:
 * @statistics: statistics
 * @core_type: a type of core
 *
 * Gives the time that kernels waited for others, at barriers (`pto_sync_all()`) and pipes, summed
 * over the cores of a type: a core that waits so is neither busy nor free.
 *
 * Measured when busy times are. Thread safety: any thread.
 *
 * Returns: nanoseconds; 0 for another type of core
 *
 * Since: 0.1
 */
DEFINE_GETTER_BY (waited_ns, PtoCoreType, core_type)

/**
 * pto_run_statistics_get_n_cores:
 * @statistics: statistics
 * @core_type: a type of core
 *
 * Gives the number of cores of a type that the run had.
 *
 * Thread safety: any thread.
 *
 * Returns: cores; 0 for another type of core
 *
 * Since: 0.1
 */
guint
pto_run_statistics_get_n_cores (const PtoRunStatistics *statistics, PtoCoreType core_type)
{
  g_return_val_if_fail (statistics != NULL, 0);

  return (guint) core_type < PTO_N_CORE_TYPES ? statistics->stats.cores[core_type] : 0;
}

/**
 * pto_run_statistics_get_utilization:
 * @statistics: statistics
 * @core_type: a type of core
 *
 * Gives the share of the run that the cores of a type spent in kernels that did not wait for
 * others.
 *
 * Thread safety: any thread.
 *
 * Returns: 0 to 1; 0 when busy times were not measured, and for another type of core
 *
 * Since: 0.1
 */
double
pto_run_statistics_get_utilization (const PtoRunStatistics *statistics, PtoCoreType core_type)
{
  double available;

  g_return_val_if_fail (statistics != NULL, 0);

  if ((guint) core_type >= PTO_N_CORE_TYPES)
    return 0;

  available = (double) statistics->stats.elapsed_ns * statistics->stats.cores[core_type];
  return available > 0 ? (double) statistics->stats.busy_ns[core_type] / available : 0;
}

/**
 * pto_run_statistics_get_last_task_alive:
 * @statistics: statistics
 * @ring: a ring, 0 to 3
 *
 * Gives how many tasks of a ring have given back their slots.
 *
 * Thread safety: any thread.
 *
 * Returns: tasks; 0 when there is no such ring
 *
 * Since: 0.1
 */
DEFINE_GETTER_BY (last_task_alive, guint, ring)

/**
 * pto_run_statistics_get_ring_tasks:
 * @statistics: statistics
 * @ring: a ring, 0 to 3
 *
 * Gives the number of tasks submitted to a ring.
 *
 * Thread safety: any thread.
 *
 * Returns: tasks; 0 when there is no such ring
 *
 * Since: 0.1
 */
DEFINE_GETTER_BY (ring_tasks, guint, ring)

/**
 * pto_run_statistics_get_heap_peak:
 * @statistics: statistics
 * @ring: a ring, 0 to 3
 *
 * Gives the most memory that was in use in the heap of a ring.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes; 0 when there is no such ring
 *
 * Since: 0.1
 */
DEFINE_GETTER_BY (heap_peak, guint, ring)

/**
 * pto_run_statistics_get_bytes_sent:
 * @statistics: statistics
 *
 * Gives how many bytes of tensors went to remote workers.
 *
 * Of all remote workers below the one that has run, not of those below another one.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes; 0 without remote workers
 *
 * Since: 0.1
 */
DEFINE_GETTER (bytes_sent)

/**
 * pto_run_statistics_get_bytes_received:
 * @statistics: statistics
 *
 * Gives how many bytes of tensors came back from remote workers.
 *
 * Of all remote workers below the one that has run, not of those below another one.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes; 0 without remote workers
 *
 * Since: 0.1
 */
DEFINE_GETTER (bytes_received)

/**
 * pto_run_statistics_get_bytes_saved:
 * @statistics: statistics
 *
 * Gives how many bytes of tensors remote workers had already, so that they were not sent again.
 *
 * What a task there reads is kept there until somebody else writes it, another run begins or there
 * is no room for it.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes; 0 without remote workers
 *
 * Since: 0.1
 */
DEFINE_GETTER (bytes_saved)

/**
 * pto_run_statistics_get_retried:
 * @statistics: statistics
 *
 * Gives how often tasks were lost with the child that ran them and run again
 * ([property@Pto.Callable:idempotent]).
 *
 * Thread safety: any thread.
 *
 * Returns: times; 0 below level 3
 *
 * Since: 0.1
 */
DEFINE_GETTER (retried)

/**
 * pto_run_statistics_get_loaded_objects:
 * @statistics: statistics
 *
 * Gives how many shared objects of kernels and orchestrations the chip's process has loaded so far.
 *
 * An object stays loaded until the process ends, once for each contents: threads or thread-specific
 * data of it may live longer than its worker. So loading the same contents again adds nothing, and
 * each edit of a source that is then loaded adds one.
 *
 * Thread safety: any thread.
 *
 * Returns: shared objects; 0 for a run of a worker of level 3 or up, whose chips have their own
 *
 * Since: 0.1
 */
DEFINE_GETTER (loaded_objects)

/**
 * pto_run_statistics_to_string:
 * @statistics: statistics
 *
 * Describes it in words, for a person: `208 tasks, 240 edges, 0 failed, 1830000 ns`.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
char *
pto_run_statistics_to_string (const PtoRunStatistics *statistics)
{
  const struct pto_run_stats *stats;

  g_return_val_if_fail (statistics != NULL, NULL);

  stats = &statistics->stats;
  return g_strdup_printf ("%" G_GUINT64_FORMAT " task%s, %" G_GUINT64_FORMAT
                          " edge%s, %" G_GUINT64_FORMAT " failed, %" G_GUINT64_FORMAT " ns",
                          (guint64) stats->tasks, stats->tasks == 1 ? "" : "s",
                          (guint64) stats->edges, stats->edges == 1 ? "" : "s",
                          (guint64) stats->failed, (guint64) stats->run_ns);
}
