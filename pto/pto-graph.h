/* pto-graph.h: how does a program hold a task graph that is built first and launched many times?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_GRAPH (pto_graph_get_type ())

PTO_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (PtoGraph, pto_graph, PTO, GRAPH, GObject)

PTO_AVAILABLE_IN_0_1
PtoGraph *pto_graph_new (void);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_graph_add_argument (PtoGraph *graph, PtoDtype dtype, gsize n_dims,
                                   const guint64 *shape, GError **error);
PTO_AVAILABLE_IN_0_1
int pto_graph_add_scalar_argument (PtoGraph *graph, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_graph_set_argument_name (PtoGraph *graph, guint argument, const char *name,
                                      GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_graph_dup_argument_name (PtoGraph *graph, guint argument);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_graph_make_tensor (PtoGraph *graph, PtoDtype dtype, gsize n_dims,
                                  const guint64 *shape, GError **error);
PTO_AVAILABLE_IN_0_1
void pto_graph_set_place (PtoGraph *graph, const char *file, guint line);
PTO_AVAILABLE_IN_0_1
int pto_graph_add_task (PtoGraph *graph, PtoCallable *kernel, PtoTaskArgs *args, GError **error);
PTO_AVAILABLE_IN_0_1
int pto_graph_add_mixed (PtoGraph *graph, PtoCallable *aic, PtoCallable *aiv0, PtoCallable *aiv1,
                         PtoTaskArgs *args, GError **error);
PTO_AVAILABLE_IN_0_1
int pto_graph_add_group (PtoGraph *graph, PtoCallable *const *kernels, gsize n_kernels,
                         PtoTaskArgs *const *args_list, gsize n_args, GError **error);
PTO_AVAILABLE_IN_0_1
int pto_graph_add_order (PtoGraph *graph, PtoTaskArgs *args, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_graph_set_priority (PtoGraph *graph, guint priority, GError **error);
PTO_AVAILABLE_IN_0_1
guint pto_graph_get_priority (PtoGraph *graph);
PTO_AVAILABLE_IN_0_1
gboolean pto_graph_bind_scalar (PtoGraph *graph, guint task, guint index, guint argument,
                                GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_graph_add_successor (PtoGraph *graph, guint task, guint successor, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_graph_complete (PtoGraph *graph, GError **error);
PTO_AVAILABLE_IN_0_1
guint pto_graph_get_n_tasks (PtoGraph *graph);
PTO_AVAILABLE_IN_0_1
guint pto_graph_get_n_edges (PtoGraph *graph);
PTO_AVAILABLE_IN_0_1
guint pto_graph_get_n_arguments (PtoGraph *graph);
PTO_AVAILABLE_IN_0_1
char *pto_graph_to_string (PtoGraph *graph);

#ifndef __GI_SCANNER__
#ifndef PTO_COMPILATION

static inline PtoGraph *
pto_graph_at (PtoGraph *graph, const char *file, guint line)
{
  if (graph != NULL)
    pto_graph_set_place (graph, file, line);
  return graph;
}

/* These note their place. A name without parentheses behind it is the function above. */
#define pto_graph_add_task(graph, ...) \
  (pto_graph_add_task) (pto_graph_at ((graph), __FILE__, __LINE__), __VA_ARGS__)
#define pto_graph_add_mixed(graph, ...) \
  (pto_graph_add_mixed) (pto_graph_at ((graph), __FILE__, __LINE__), __VA_ARGS__)
#define pto_graph_add_group(graph, ...) \
  (pto_graph_add_group) (pto_graph_at ((graph), __FILE__, __LINE__), __VA_ARGS__)
#define pto_graph_add_order(graph, ...) \
  (pto_graph_add_order) (pto_graph_at ((graph), __FILE__, __LINE__), __VA_ARGS__)

#endif
#endif

G_END_DECLS
