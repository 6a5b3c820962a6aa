/* synthetic-trace.h: how does a test get the records of a run without a run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A list of tasks is scheduled on paper, event by event, and the records are written that the chip
 * would write. Same graph, same records.
 */
#pragma once

#include <gio/gio.h>

#include "../../pto/trace/model/trace.h"

typedef struct _SyntheticGraph SyntheticGraph;

SyntheticGraph *synthetic_graph_new (void);
void synthetic_graph_free (SyntheticGraph *graph);
/* Opens a scope of that depth for the tasks to come, and closes those that are as deep or deeper.
 * The ring of a task follows from it. */
void synthetic_graph_set_depth (SyntheticGraph *graph, guint depth);
/* Gives the task's position. deps are positions of earlier tasks. */
guint synthetic_graph_add (SyntheticGraph *graph, guint kernel, guint core_type, guint64 cost_ns,
                           guint n_deps, ...);
guint synthetic_graph_length (SyntheticGraph *graph);
guint64 synthetic_graph_get_id (SyntheticGraph *graph, guint task);

/* Batch paged attention: chunks of a HUB and 3 blocks of QK, SF, PV, UP. 13 tasks a chunk. */
SyntheticGraph *synthetic_graph_new_attention (guint chunks, guint blocks);
extern const char *const synthetic_attention_kernels[5];

void synthetic_topology (struct pto_trace_topology *topology, guint n_clusters);
/* window: slots of a task ring. Free with synthetic_records_free(). */
struct pto_trace *synthetic_graph_run (SyntheticGraph *graph,
                                       const struct pto_trace_topology *topology, guint window);
void synthetic_records_free (struct pto_trace *records);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (SyntheticGraph, synthetic_graph_free)
