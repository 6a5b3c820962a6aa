/* tracks.h: what do the two files that ui.perfetto.dev opens have in common?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One process for the control threads, one for every cluster, one thread for each core. A level is
 * one process, of control threads and children; the workers below it come after it.
 */
#pragma once

#include "trace/model/trace.h"

G_BEGIN_DECLS

enum
{
  PID_CONTROL = 1,
  PID_CLUSTER = 10, /* + cluster */
  TID_ORCHESTRATOR = 1,
  TID_STALLS = 2,
  TID_SCHEDULER = 10, /* + scheduler */
  TID_CORE = 1000,    /* + core */
  TID_TENSORS = 9000, /* + child: what travels to it and back */
  /* From one worker's numbers to the next one's: more than any chip has of either. */
  PID_STRIDE = 4096,
  TID_STRIDE = 16384
};

/* The process of a core, or child, among those of its worker. */
guint pto_track_get_pid (PtoTrace *trace, guint core);
/* What processes are called: that of the control threads, and a cluster. Callers free. */
char *pto_track_dup_control_name (const PtoTracePart *part);
char *pto_track_dup_cluster_name (const PtoTracePart *part, guint cluster);

/* A counter, and what it counts: "bytes"; steps: PtoTraceStep, maybe none. */
typedef void (*PtoTrackCounterFunc) (gpointer data, const char *name, const char *unit,
                                     const GArray *steps);
void pto_track_each_counter (PtoTrace *trace, PtoTrackCounterFunc func, gpointer data);

G_END_DECLS
