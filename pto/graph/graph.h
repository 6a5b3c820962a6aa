/* graph.h: what do workers see of a graph?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "core/graph-plan.h"

#include "callable/registration.h"
#include "pto-graph.h"

G_BEGIN_DECLS

/* What copies of a graph, which others keep, are known by. Outlives it: released with
 * g_atomic_rc_box_release(). */
typedef struct
{
  guint64 id; /* of no other graph of this process */
  int gone;   /* atomic; the graph is */
} PtoGraphTag;

PtoCallable *pto_graph_get_kernel (PtoGraph *graph, guint index);
/* Of one that is captured, which nobody else has yet: which callable each of its kernels is, NULL
 * for those that are none. find gives a reference. */
gboolean pto_graph_name_kernels (PtoGraph *graph,
                                 PtoCallable *(*find) (guint number, gpointer data), gpointer data,
                                 GError **error);

/* The same of one whose tasks are for workers: what they name their callable by must live as long,
 * so each is kept when it is submitted. */
void pto_graph_keep_registration (PtoGraph *graph, PtoRegistration *registration);
void pto_graph_name_registrations (PtoGraph *graph);
/* And memory of remote workers that it keeps: tensors of it among those that its tasks were given,
 * or NULL. */
void pto_graph_keep_memory (PtoGraph *graph, GHashTable *tensors);
/* NULL: it is no callable for workers. */
PtoRegistration *pto_graph_get_registration (PtoGraph *graph, guint index);

/* --- of the files of this module --- */

/* A tensor that a task of the graph outputs. */
typedef struct
{
  guint64 address;
  guint64 bytes;
  guint32 memory; /* the plan's */
} PtoGraphMade;

/* A region that tasks update in any order, or, without bytes, a copy of what they reduce. Those
 * that overlap have one token. */
typedef struct
{
  guint64 begin, end;
  guint32 token;
} PtoGraphTurn;

struct _PtoGraph
{
  GObject parent_instance;

  PtoGraphTag *tag;
  /* Where a capture is written; then complete: the number of each of its kernels is an index of one
   * of these two, or of one that is no callable. */
  struct pto_plan *plan;
  GPtrArray *kernels;       /* PtoKernel */
  GPtrArray *registrations; /* PtoRegistration, of tasks for workers */
  GPtrArray *memory;        /* PtoTensor, in memory that it keeps */

  /* By hand. */
  gpointer region; /* NULL: none yet */
  guint64 used;
  const char *file; /* where the program adds next, interned; NULL: nobody has said so */
  guint line;
  GArray *made;           /* PtoGraphMade, ascending */
  GArray *turns;          /* PtoGraphTurn */
  struct pto_terms terms; /* of tasks that are added next */

  GMutex lock; /* of whoever completes it */
};

/* FALSE with an error: it is complete. */
gboolean pto_graph_check_open (PtoGraph *self, GError **error);

G_END_DECLS
