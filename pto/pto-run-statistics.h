/* pto-run-statistics.h: what did a run do, in numbers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_RUN_STATISTICS (pto_run_statistics_get_type ())

PTO_AVAILABLE_IN_0_1
GType pto_run_statistics_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoRunStatistics *pto_run_statistics_copy (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
void pto_run_statistics_free (PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_tasks (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_completed (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_failed (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_edges (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_run_ns (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_virtual_ns (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_elapsed_ns (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_peak_live_tasks (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_recycled (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_stalls (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_busy_ns (const PtoRunStatistics *statistics, PtoCoreType core_type);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_waited_ns (const PtoRunStatistics *statistics,
                                          PtoCoreType core_type);
PTO_AVAILABLE_IN_0_1
guint pto_run_statistics_get_n_cores (const PtoRunStatistics *statistics, PtoCoreType core_type);
PTO_AVAILABLE_IN_0_1
double pto_run_statistics_get_utilization (const PtoRunStatistics *statistics,
                                           PtoCoreType core_type);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_last_task_alive (const PtoRunStatistics *statistics, guint ring);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_ring_tasks (const PtoRunStatistics *statistics, guint ring);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_heap_peak (const PtoRunStatistics *statistics, guint ring);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_bytes_sent (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_bytes_received (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_retried (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_bytes_saved (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
guint64 pto_run_statistics_get_loaded_objects (const PtoRunStatistics *statistics);
PTO_AVAILABLE_IN_0_1
char *pto_run_statistics_to_string (const PtoRunStatistics *statistics);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoRunStatistics, pto_run_statistics_free)

G_END_DECLS
