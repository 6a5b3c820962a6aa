/* trace.h: how is a trace made, and what do its exports share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. A trace is immutable once it is made; what is derived from the records is
 * derived once, on first use.
 */
#pragma once

#include "pto-trace.h"

#include "core/submission.h"
#include "sim/builtin-kernels.h"
#include "sim/chip.h"

G_BEGIN_DECLS

/* A public function that tells something of self, or, of what is no such object, or_else. */
#define PTO_TRACE_GETTER(type, name, Self, IS_SELF, or_else, value) \
  type name (Self *self)                                            \
  {                                                                 \
    g_return_val_if_fail (IS_SELF (self), or_else);                 \
                                                                    \
    return value;                                                   \
  }

/* A time that was never recorded. */
#define PTO_TRACE_NEVER G_MAXUINT64
/* The index of a task that was not recorded, and the core of a task that did not run. */
#define PTO_TRACE_NOWHERE G_MAXUINT32
/* The kernel of a task whose submit was not recorded. */
#define PTO_TRACE_UNKNOWN (G_MAXUINT32 - 2)

/* Copies the records; the chip, or level, may overwrite its own afterwards. kernel_names[i] is the
 * name of function id i, NULL where there is none. title may be NULL. */
PtoTrace *pto_trace_new_from_run (const struct pto_trace *records,
                                  const struct pto_trace_topology *topology,
                                  const char *const *kernel_names, guint n_kernel_names,
                                  const char *title);
/* Of a level, once: its own path, and a name for each child. Both are taken. */
void pto_trace_take_names (PtoTrace *trace, char *path, char **rows);

/* One run of a worker below a level: a task of the level's trace, from inside. */
typedef struct
{
  guint32 child; /* of the level */
  guint64 task;
  PtoTrace *trace;
} PtoTracePiece;

/* Such runs, by child and in the order that each had them in. */
typedef struct
{
  GPtrArray *list;    /* PtoTracePiece */
  guint64 n_left_out; /* runs that did not fit, and the records that they made */
  guint64 records_left_out;
} PtoTracePieces;

/* All pieces are there: what they have dropped counts. */
void pto_trace_settle (PtoTrace *trace);

void pto_trace_pieces_init (PtoTracePieces *pieces);
void pto_trace_pieces_clear (PtoTracePieces *pieces);
void pto_trace_pieces_take (PtoTracePieces *pieces, guint32 child, guint64 task, PtoTrace *trace);
/* They come from a machine whose clock is so many ns ahead. */
void pto_trace_pieces_set_back (PtoTracePieces *pieces, gint64 ahead);

gboolean pto_trace_save_file (PtoTrace *trace, const char *path, GError **error);

/* A trace as bytes, for another process: how many, those, and back. NULL: they are none of a trace.
 */
gsize pto_trace_get_packed_size (PtoTrace *trace);
void pto_trace_pack (PtoTrace *trace, guint8 *bytes);
PtoTrace *pto_trace_new_from_packed (const guint8 *bytes, gsize size);
/* The same of pieces. Unpacking adds to those that are there, as child's; FALSE: not all of them.
 */
gsize pto_trace_pieces_get_packed_size (const PtoTracePieces *pieces);
void pto_trace_pieces_pack (const PtoTracePieces *pieces, guint8 *bytes);
gboolean pto_trace_pieces_unpack (PtoTracePieces *pieces, guint32 child, const guint8 *bytes,
                                  gsize size);

/* For sorting. By several numbers: the sum of their orders, each of them twice the next one's. */
static inline gint
pto_trace_order (guint64 a, guint64 b)
{
  return a < b ? -1 : a > b;
}
/* By the guint64 that each item begins with. */
gint pto_trace_compare_times (gconstpointer a, gconstpointer b);

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
  guint64 waited; /* of end - start: for other kernels */
  guint32 kernel;
  guint32 core;      /* PTO_TRACE_NOWHERE: no core ran it */
  guint32 scheduler; /* who dispatched it, or PTO_TRACE_NOWHERE */
  guint32 first_dep; /* in PtoTraceAnalysis.deps */
  guint32 n_deps;
  guint32 first_arg; /* in PtoTraceAnalysis.args; of a record that has them */
  guint32 n_args;
  /* Of an entry of the critical path, what kept it from starting earlier: in
   * PtoTraceAnalysis.tasks; or PTO_TRACE_NOWHERE, the submitter. */
  guint32 cause;
  /* Whose end made it ready: in PtoTraceAnalysis.tasks; or PTO_TRACE_NOWHERE. */
  guint32 last_producer;
  guint32 file; /* of its submit: in PtoTrace.files; or PTO_TRACE_NOWHERE */
  guint32 line;
  guint32 scope;        /* the innermost that it was submitted in: 1 + its number; 0: none */
  guint32 first_member; /* in PtoTraceAnalysis.tasks: of a group, those that did not end last */
  guint32 n_members;
  guint32 block;  /* of a part of a task: which block of it; otherwise PTO_TRACE_NOWHERE */
  guint32 member; /* and which of those that it was dispatched with */
  struct pto_terms terms;
  guint8 core_type;
  guint8 failed;
  guint8 critical;        /* on the critical path */
  guint8 shares_dispatch; /* a part that another one of its range has the mark of */
} PtoTraceEntry;

/* An argument of a task. */
typedef struct
{
  guint64 word; /* a scalar; or where the first element of a tensor is */
  guint32 task; /* in PtoTraceAnalysis.tasks */
  guint32 index;
  guint8 type;   /* PTO_PARAM_* */
  guint8 dtype;  /* of a tensor, as all that follows */
  guint8 n_dims; /* of shape and strides, which are in elements */
  guint64 shape[PTO2_TENSOR_MAX_DIMS];
  guint64 strides[PTO2_TENSOR_MAX_DIMS];
} PtoTraceArg;

static inline gboolean
pto_trace_arg_writes (const PtoTraceArg *arg)
{
  return arg->type != PTO_PARAM_INPUT && arg->type != PTO_PARAM_SCALAR
         && arg->type != PTO_PARAM_NO_DEP;
}

static inline gboolean
pto_trace_arg_reads (const PtoTraceArg *arg)
{
  return arg->type == PTO_PARAM_INPUT || arg->type == PTO_PARAM_INOUT
         || arg->type == PTO_PARAM_COMMUTATIVE || arg->type == PTO_PARAM_REDUCTION;
}

/* Bytes of a tensor's elements. */
static inline guint64
pto_trace_arg_bytes (const PtoTraceArg *arg)
{
  guint64 bytes = pto_dtype_size ((DataType) arg->dtype);

  for (guint d = 0; d < arg->n_dims; d++)
    bytes *= arg->shape[d];
  return bytes;
}

typedef struct
{
  guint64 producer;       /* its id */
  guint32 consumer;       /* in PtoTraceAnalysis.tasks */
  guint32 producer_index; /* in PtoTraceAnalysis.tasks, or PTO_TRACE_NOWHERE when it was dropped */
  guint32 kinds;          /* PTO_HAZARD_* */
  /* Arguments of both, by index, that share memory: that which both touch for this reason begins at
   * from in the consumer's, in bytes, and has so many. PTO_TRACE_NOWHERE: not known. */
  guint32 consumer_arg;
  guint32 producer_arg;
  guint64 from;
  guint64 bytes;
} PtoTraceDep;

/* A stretch of the orchestrator's time: an open scope or a wait for a ring. */
typedef struct
{
  guint64 start;
  guint64 end;
  guint32 what;   /* a scope's depth; a stall's ring | resource << 8 */
  guint32 number; /* of a scope, by begin */
  guint32 file;   /* where a scope was opened: in PtoTrace.files; or PTO_TRACE_NOWHERE */
  guint32 line;
} PtoTraceSpan;

/* What travels: to a child that shares no memory with the run, back from it, or not at all, since
 * it was there already. */
enum
{
  PTO_TRACE_SENT,
  PTO_TRACE_RECEIVED,
  PTO_TRACE_SAVED,
  PTO_TRACE_N_MOVED
};

/* Contents of tensors on their way. */
typedef struct
{
  guint64 task; /* its id, or PTO_TASK_NONE: not for one alone */
  guint64 start;
  guint64 end;
  guint64 bytes;
  guint64 saved; /* of one there: were to travel, too, and were there already */
  guint32 core;
  gboolean is_back;
} PtoTraceTransfer;

/* A step chart: the value from this time on. Times ascend, none is there twice. */
typedef struct
{
  guint64 time;
  guint64 value;
} PtoTraceStep;

/* Something rises or falls by so much. Changes in any order become steps, which free them: at one
 * time what rises comes before what falls, so that a value never dips below 0 for an instant. */
void pto_trace_add_change (GArray *changes, guint64 time, gint change);
GArray *pto_trace_integrate (GArray *changes);
GArray *pto_trace_changes_new (void);
/* A value from a time on, which no step has a later time than. */
void pto_trace_add_step (GArray *steps, guint64 time, guint64 value);

/* A stretch of time in which no core of a type was free, and how long that was so before it. */
typedef struct
{
  guint64 start;
  guint64 end;
  guint64 before;
} PtoTraceFull;

/* What went by until a task started, in ns. */
typedef struct
{
  guint64 submitter; /* it was not submitted yet */
  guint64 room;      /* the same, while the submitter waited for a ring, a cluster or an element */
  guint64 data;      /* a producer was not over yet */
  guint64 core;      /* no core of its type was free */
  guint64 scheduler; /* all was there: until it was seen, decided and begun */
} PtoTraceWaits;

typedef struct
{
  /* By order of submit; behind them those members of groups that did not end last: each a copy of
   * its task with core, start and end of its own. */
  PtoTraceEntry *tasks;
  guint n_tasks;
  guint n_entries; /* with the members */
  PtoTraceDep *deps;
  guint n_deps;
  PtoTraceArg *args; /* by task, and of that by index */
  guint n_args;
  guint n_cores;
  guint32 **core_runs; /* per core: the entries it ran, by start */
  guint *n_core_runs;
  guint64 *core_busy;              /* per core: ns */
  GArray *scopes;                  /* PtoTraceSpan, by start, outer before inner */
  GArray *stalls;                  /* PtoTraceSpan, by start */
  GArray *ready[PTO_N_CORE_TYPES]; /* PtoTraceStep: tasks ready and not dispatched */
  GArray *live[PTO_RINGS];         /* PtoTraceStep: slots taken */
  GArray *depth;                   /* PtoTraceStep: scopes open */
  /* PtoTraceStep, of a record that has them: bytes of heaps, edges of pools, nodes of the
   * TensorMap. */
  GArray *heap[PTO_RINGS];
  GArray *edges[PTO_RINGS];
  GArray *nodes;
  GArray *transfers;                /* PtoTraceTransfer, by task, then core */
  GArray *moved[PTO_TRACE_N_MOVED]; /* PtoTraceStep: bytes until then */
  GArray *full[PTO_N_CORE_TYPES];   /* PtoTraceFull */
  guint64 first;     /* the first record, as pto_now() gave it: time 0 of everything here */
  guint64 elapsed;   /* the last end of a kernel; the last record when no kernel ran */
  guint64 last;      /* the last record */
  guint32 *critical; /* entries, by start */
  guint n_critical;
  guint n_critical_tasks;  /* of which several may be parts of one */
  guint64 critical_ns;     /* from the first start to the last end on the path */
  guint64 critical_submit; /* when its first task was submitted; 0: that was not recorded */
  guint64 critical_run_ns; /* of critical_ns, the time that kernels of the path ran */
  guint32 rings;           /* rings that had a task: highest + 1 */
  /* Of a level: the entry that each piece belongs to, or PTO_TRACE_NOWHERE; and runs of workers
   * that no piece belongs to. */
  guint32 *piece_entries;
  guint n_unseen;
  guint n_failed;
} PtoTraceAnalysis;

/* Of analysis: what travelled. */
void pto_trace_read_transfers (PtoTraceAnalysis *analysis, PtoTrace *trace);
/* Those for a task, or for none, to and from that core, or, of PTO_TRACE_NOWHERE, all cores: n from
 * the one given on, by core and start. */
const PtoTraceTransfer *pto_trace_find_transfers (const PtoTraceAnalysis *analysis, guint64 task,
                                                  guint core, guint *n);
/* "sent" or "received"; and what counters of such bytes are called: "bytes sent". */
const char *pto_trace_get_way (const PtoTraceTransfer *transfer);
const char *pto_trace_get_moved_name (guint which);
/* All those of a core, by start: of PtoTraceTransfer. */
GPtrArray *pto_trace_list_transfers (const PtoTraceAnalysis *analysis, guint core);
/* Bytes of those for the entry, where it ran; and of all of a core, or, of PTO_TRACE_NOWHERE, of
 * all. */
void pto_trace_sum_entry (const PtoTraceAnalysis *analysis, const PtoTraceEntry *entry,
                          guint64 sum[PTO_TRACE_N_MOVED]);
void pto_trace_sum_core (const PtoTraceAnalysis *analysis, guint core,
                         guint64 sum[PTO_TRACE_N_MOVED]);
/* Of analysis: when no core was free. */
void pto_trace_find_full (PtoTraceAnalysis *analysis, PtoTrace *trace);
/* When the last of its producers was over; 0: it has none that was recorded. */
guint64 pto_trace_get_data_ready (const PtoTraceAnalysis *analysis, const PtoTraceEntry *task);
/* What the time from that moment to the task's start went by with: their sum is that time. FALSE:
 * it is not known when it started, or that was before. */
gboolean pto_trace_get_waits (const PtoTraceAnalysis *analysis, PtoTrace *trace,
                              const PtoTraceEntry *task, guint64 from, PtoTraceWaits *waits);

/* Has another entry the mark of its dispatch? A member of a group was dispatched with its task. */
static inline gboolean
pto_trace_entry_shares_dispatch (const PtoTraceAnalysis *analysis, const PtoTraceEntry *entry)
{
  gboolean is_member = entry >= analysis->tasks + analysis->n_tasks;

  return entry->shares_dispatch || (is_member && entry->block == PTO_TRACE_NOWHERE);
}

/* The cores of all workers of a trace, as its lists go through them (trace-items.c). */
typedef struct _PtoTracePlaces PtoTracePlaces;

void pto_trace_places_free (PtoTracePlaces *places);

struct _PtoTrace
{
  GObject parent_instance;

  /* All immutable once it is made. */
  struct pto_trace_topology topology;
  struct pto_trace_record *records; /* all buffers, one after the other */
  guint64 *starts;                  /* n_buffers + 1 positions in records */
  guint64 *drops;                   /* per buffer */
  guint n_buffers;
  guint64 dropped;
  char **kernel_names; /* valid UTF-8, never NULL inside */
  guint n_kernel_names;
  char **files; /* source files, by number; valid UTF-8, never NULL inside */
  guint n_files;
  char *title;
  char *path;            /* of a level; NULL */
  char **rows;           /* of a level: n_cores names of its children; NULL */
  PtoTracePieces pieces; /* of a level: what its workers did inside of its tasks */

  /* Made on first use under g_once_init_enter(); read-only afterwards. */
  PtoTraceAnalysis *analysis;
  char *sha256;
  GPtrArray *parts; /* PtoTracePart */
  PtoTracePlaces *places;
};

PtoTraceAnalysis *pto_trace_analysis_new (PtoTrace *trace);
/* The position of a task by its id, of a table of those; PTO_TRACE_NOWHERE: it is not there. */
guint32 pto_trace_find_position (GHashTable *index, guint64 id);
/* Of it: the arguments of its tasks, and which of them are why one waits for another. index: the
 * position of a task by its id. */
void pto_trace_read_args (PtoTraceAnalysis *analysis, PtoTrace *trace, GHashTable *index);
/* Fills in the last two, when all else is there. */
void pto_trace_link_pieces (PtoTraceAnalysis *analysis, PtoTrace *trace);
void pto_trace_analysis_free (PtoTraceAnalysis *analysis);
const PtoTraceAnalysis *pto_trace_get_analysis (PtoTrace *trace);
/* Sets text to "0: input float32 [4, 8] strides [8, 1] at 0x1000", or to "1: 7". */
void pto_trace_print_argument (GString *text, const PtoTraceArg *arg);

/* Is it known when the critical path began? There is one. */
static inline gboolean
pto_trace_knows_critical_submit (const PtoTraceAnalysis *analysis)
{
  return analysis->tasks[analysis->critical[0]].submit != PTO_TRACE_NEVER;
}

static inline gboolean
pto_trace_is_level (PtoTrace *trace)
{
  return trace->topology.level > 2;
}

/* A run that a trace is made of: the trace itself, or a run of a worker below it. */
typedef struct _PtoTracePart PtoTracePart;
struct _PtoTracePart
{
  PtoTrace *trace;
  const PtoTraceAnalysis *analysis;
  const PtoTracePart *parent; /* NULL: it is the trace itself */
  char *path;                 /* of its worker, "L3/0/L2/1"; "": a chip that is below nobody */
  guint number;               /* among the parts */
  guint worker;               /* which worker ran it, in the order of appearance */
  guint piece;                /* and among those of the parent's trace */
  guint32 child;              /* of the parent's trace */
  guint32 task;               /* entry of all that it is inside of, or PTO_TRACE_NOWHERE */
  guint32 first_entry;        /* its first of all, as those that follow */
  guint32 first_task;
  guint32 first_edge;
  GPtrArray *inner; /* PtoTracePart: what ran inside of its tasks, by piece */
  /* Its run, from ns on its own clock, lies in the parent's trace from begin on and takes to ns. */
  guint64 from;
  guint64 begin;
  guint64 to;
};

/* PtoTracePart: the trace, and behind each part those inside of it. They stay. */
const GPtrArray *pto_trace_get_parts (PtoTrace *trace);

static inline const PtoTracePart *
pto_trace_get_part (PtoTrace *trace, guint number)
{
  return g_ptr_array_index (pto_trace_get_parts (trace), number);
}

/* A time of part->trace in the outermost trace; PTO_TRACE_NEVER stays that. */
guint64 pto_trace_part_time (const PtoTracePart *part, guint64 time);
/* "L3/0/L2/1": of a worker below a level, and of the worker that is number child of it. Caller
 * frees. */
char *pto_trace_dup_child_path (const char *path, PtoTrace *trace, guint child);

/* Cores, or children, of a type, and what they are called: "AIC", "SUB worker". */
guint pto_trace_get_n_of_type (PtoTrace *trace, guint core_type);
const char *pto_trace_get_type_name (PtoTrace *trace, guint core_type, guint n);
/* Records of the trace and of all runs below it. */
guint64 pto_trace_count_records (PtoTrace *trace);

/* "QK"; "kernel 7" when it has no name; "alloc" for a task that gives memory, "no kernel" for one
 * that only orders, and "unknown kernel" where nobody recorded it. It stays. */
const char *pto_trace_get_kernel_name (PtoTrace *trace, guint32 kernel);
/* The name of a kernel as lines for people have it: of none, and of one that nobody recorded, in
 * the reader's language. */
const char *pto_trace_tell_kernel (const char *name);
/* "3", or "3 of ring 1", in the reader's language. Caller frees. */
char *pto_trace_dup_task_name (guint64 id);
/* "3", or "1:3" of ring 1: what it is called in pictures and exports, and asked for. Caller frees.
 */
char *pto_trace_dup_task_label (guint64 id);
void pto_trace_append_task_label (GString *text, guint64 id);
/* Cluster of a core, in which those of type AIC come first, and its type. Of a level workers are
 * one cluster and one type, SUB workers the other. */
void pto_trace_locate_core (PtoTrace *trace, guint core, guint *cluster, guint *core_type);
/* Busy share of all cores of a type, 0 to 1. */
double pto_trace_get_type_utilization (PtoTrace *trace, guint core_type);
/* The words for a stall: "task ring 1". Caller frees. */
char *pto_trace_dup_stall_name (guint32 what);
/* The same, or another limit of a run, in the reader's language. Caller frees. */
char *pto_trace_tell_limit (const char *limit);

/* Counters of tasks and cores, as JSON. events: PTO_TRACE_COUNT_*. */
char *pto_trace_count_json (PtoTrace *trace, guint events);

/* Text that does not depend on the locale. */
void pto_trace_append_fixed (GString *text, double value, int decimals);
void pto_trace_append_us (GString *text, guint64 ns);
/* "12.500". Caller frees. */
char *pto_trace_dup_us (guint64 ns);

/* What several texts for people have, in the reader's language. Callers free. */
char *pto_trace_count_tasks (guint64 n);
char *pto_trace_count_edges (guint64 n);
char *pto_trace_count_runs (guint64 n);
/* "12.500 us on the virtual clock" */
char *pto_trace_tell_elapsed (guint64 ns, gboolean is_virtual);
/* "24 AIC busy 50 %", "1 worker busy 50 %"; type: as pto_trace_get_type_name() has it for one. */
char *pto_trace_tell_busy (const char *type, guint n, double share);

G_END_DECLS
