/* pto-trace-private.h: how is a trace made, and what do its exports share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. A trace is immutable once it is made; what is derived from the records is
 * derived once, on first use.
 */
#pragma once

#include "pto-trace.h"

#include "../sim/chip.h"

G_BEGIN_DECLS

/* A time that was never recorded. */
#define PTO_TRACE_NEVER G_MAXUINT64
/* The index of a task that was not recorded, and the core of a task that did not run. */
#define PTO_TRACE_NOWHERE G_MAXUINT32

/* Copies the records; the chip may overwrite its own afterwards. kernel_names[i] is the name of
 * function id i, NULL where there is none. title may be NULL. */
PtoTrace *pto_trace_new_from_chip (const struct pto_trace *records,
                                   const struct pto_trace_topology *topology,
                                   const char *const *kernel_names, guint n_kernel_names,
                                   const char *title);

/* A trace as bytes, for another process: how many, those, and back. NULL: they are none of a trace.
 */
gsize pto_trace_get_packed_size (PtoTrace *trace);
void pto_trace_pack (PtoTrace *trace, guint8 *bytes);
PtoTrace *pto_trace_new_from_packed (const guint8 *bytes, gsize size);

/* What is known of one task. Times are ns since the first record of the trace. */
typedef struct
{
  guint64 id;
  guint64 submit;
  guint64 submit_end; /* the last the orchestrator recorded about this submit */
  guint64 ready;
  guint64 dispatch;
  guint64 ack;
  guint64 start;
  guint64 end;
  guint64 complete;
  guint64 retire;
  guint32 kernel;
  guint32 core;      /* PTO_TRACE_NOWHERE: no core ran it */
  guint32 scheduler; /* who dispatched it, or PTO_TRACE_NOWHERE */
  guint32 first_dep; /* in PtoTraceAnalysis.deps */
  guint32 n_deps;
  guint8 core_type;
  guint8 failed;
  guint8 critical; /* on the critical path */
} PtoTraceTask;

typedef struct
{
  guint64 producer;       /* its id */
  guint32 producer_index; /* in PtoTraceAnalysis.tasks, or PTO_TRACE_NOWHERE when it was dropped */
  guint32 kinds;          /* PTO_HAZARD_* */
} PtoTraceDep;

/* A stretch of the orchestrator's time: an open scope or a wait for a ring. */
typedef struct
{
  guint64 start;
  guint64 end;
  guint32 what; /* a scope's depth; a stall's ring | resource << 8 */
} PtoTraceSpan;

/* A step chart: the value from this time on. Times ascend, none is there twice. */
typedef struct
{
  guint64 time;
  guint32 value;
} PtoTraceStep;

typedef struct
{
  PtoTraceTask *tasks; /* by order of submit */
  guint n_tasks;
  PtoTraceDep *deps;
  guint n_deps;
  guint n_cores;
  guint32 **core_runs; /* per core: the tasks it ran, by start */
  guint *n_core_runs;
  guint64 *core_busy;              /* per core: ns */
  GArray *scopes;                  /* PtoTraceSpan, by start, outer before inner */
  GArray *stalls;                  /* PtoTraceSpan, by start */
  GArray *ready[PTO_N_CORE_TYPES]; /* PtoTraceStep: tasks ready and not dispatched */
  GArray *live[PTO_RINGS];         /* PtoTraceStep: slots taken */
  GArray *depth;                   /* PtoTraceStep: scopes open */
  guint64 first;     /* the first record, as pto_now() gave it: time 0 of everything here */
  guint64 elapsed;   /* the last end of a kernel; the last record when no kernel ran */
  guint64 last;      /* the last record */
  guint32 *critical; /* tasks, by start */
  guint n_critical;
  guint64 critical_ns;     /* from the first start to the last end on the path */
  guint64 critical_submit; /* when its first task was submitted */
  guint64 critical_run_ns; /* of critical_ns, the time that kernels of the path ran */
  guint32 rings;           /* rings that had a task: highest + 1 */
  guint n_failed;
} PtoTraceAnalysis;

struct _PtoTrace
{
  GObject parent_instance;

  /* All immutable after pto_trace_new_from_chip(). */
  struct pto_trace_topology topology;
  struct pto_trace_record *records; /* all buffers, one after the other */
  guint64 *starts;                  /* n_buffers + 1 positions in records */
  guint64 *drops;                   /* per buffer */
  guint n_buffers;
  guint64 dropped;
  char **kernel_names; /* valid UTF-8, never NULL inside */
  guint n_kernel_names;
  char *title;

  /* Made on first use under g_once_init_enter(); read-only afterwards. */
  PtoTraceAnalysis *analysis;
  char *sha256;
};

PtoTraceAnalysis *pto_trace_analysis_new (PtoTrace *trace);
void pto_trace_analysis_free (PtoTraceAnalysis *analysis);
const PtoTraceAnalysis *pto_trace_get_analysis (PtoTrace *trace);

/* "QK"; "kernel 7" when it has no name; "no kernel" for a task that only orders. Caller frees. */
char *pto_trace_dup_kernel_name (PtoTrace *trace, guint32 kernel);
/* "3", or "3 of ring 1". Caller frees. */
char *pto_trace_dup_task_name (guint64 id);
/* Cluster of a core, its type, and its number among the cores of that type in the cluster. */
void pto_trace_locate_core (PtoTrace *trace, guint core, guint *cluster, guint *core_type,
                            guint *number);
/* Busy share of all cores of a type, 0 to 1. */
double pto_trace_get_type_utilization (PtoTrace *trace, guint core_type);
/* The words for a stall: "task ring 1". Caller frees. */
char *pto_trace_dup_stall_name (guint32 what);

/* Text that does not depend on the locale. */
void pto_trace_append_fixed (GString *text, double value, int decimals);
void pto_trace_append_us (GString *text, guint64 ns);

G_END_DECLS
