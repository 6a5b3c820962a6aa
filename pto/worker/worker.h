/* worker.h: what do the parts of a worker know of each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * worker.c: properties and signals. -life.c: when there is a machine, and who has taken it.
 * -parameters.c: parameters. -register.c: registrations. -run.c: runs. -async.c: what has a
 * callback. -memory.c: device memory. -tree.c: workers below it.
 *
 * A machine is used by one thread at a time. Whoever needs it takes it in pto_worker_take() and
 * gives it back in pto_worker_give_back(); in between the worker's lock is not held.
 *
 * Lock order: worker > registry > gate; worker > machine's own.
 */
#pragma once

#include "core/parameters.h"

#include "machine/machine.h"
#include "machine/tree-node.h"
#include "orchestrator/collective.h"
#include "orchestrator/function-thread.h"
#include "values/memory-token.h"
#include "pto-error.h"
#include "pto-worker.h"

G_BEGIN_DECLS

#define PTO_DEFAULT_PLATFORM "a2a3sim"

struct _PtoWorker
{
  GObject parent_instance;

  PtoTreeNode node; /* its place among others; set while the worker is new, immutable afterwards */

  /* Immutable once constructed. */
  GMainContext *context; /* where signals belong */
  GThread *owner;        /* whose default context that was */
  /* NULL: none was submitted yet. Atomic; W: the thread of a run, once; R: the same, and finalize.
   */
  PtoCallableHandle *collectives[PTO_N_COLLECTIVES];

  /* --- under lock while the worker is new, immutable afterwards --- */
  GListStore *model; /* of its children, until it is closed; W, and its signals: owner's context */
  GListModel *shown; /* the same, which nobody else can change */
  GVariant *device_ids;   /* "au"; NULL: none */
  guint64 heap_ring_size; /* as it was given; 0: the parameter */
  gboolean isolate;       /* as it was given; FALSE: the parameter */
  gboolean serves;        /* in a child: its parent has brought it up */

  /* That has brought it up, a pid: in a copy that a fork made it can not be used. 0: none. Atomic.
   */
  int process;

  GMutex lock; /* guards all below unless it says otherwise */
  GCond idle;  /* the machine was given back, is up, or the worker is being closed */
  PtoWorkerState state;
  /* Of the thread that starts the machine just now, which does not hold the lock: for close().
   * NULL: none does. */
  GCancellable *starting;
  gboolean is_down; /* the end of close() was reached */
  int progress_ms;  /* atomic; at least 1 */
  int closing;      /* atomic; also read by the machine at every wait */
  gboolean close_when_idle;
  gboolean in_use;
  GThread *user;             /* who has taken the machine */
  GCancellable *cancellable; /* of the run under way; NULL: none */
  PtoOrchestrator *current;  /* of the orchestration function under way */
  PtoGate *gate;             /* of the asynchronous orchestration function under way */
  guint waiting_functions;   /* asynchronous orchestration functions that are queued or under way */
  struct pto_params params;  /* W: before start only, but for the schedule's */
  char *schedule;            /* of the runs that begin; NULL: they have none */
  GError *params_error;      /* of the environment, told by start */
  GHashTable *blocks;        /* of device memory, by address: of buffers that are alive */
  guint64 n_blocks;          /* that there were so far */
  PtoTokenSeal *seal;        /* of what was exported; NULL: nothing was yet */
  GArray *unused_blocks;     /* addresses, of buffers that are not: freed when it is given back */
  GPtrArray *retired;        /* PtoRegistration: removed when the machine is idle */
  GPtrArray *ahead;          /* of a run: PtoExpectedKernel that were compiled before it; or NULL */
  guint64 youngest_kernel;   /* of those that were; whoever has the machine */

  GThread *thread; /* of asynchronous runs; made by the first */
  GAsyncQueue *queue;
};

/* Says why a worker that is being made can not be, for who starts it: the first one is kept. */
void pto_worker_refuse_params (PtoWorker *worker, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* Takes one that was just made: NULL with an error if it was refused. */
PtoWorker *pto_worker_check_params (PtoWorker *worker, GError **error);

/* The machine, or why it can not be had. is_asynchronous: on the thread of asynchronous runs. */
gboolean pto_worker_take (PtoWorker *worker, gboolean is_asynchronous, GCancellable *cancellable,
                          GError **error);
void pto_worker_give_back (PtoWorker *worker);
/* Device memory of buffers. With the lock, the machine taken, and running. The second: what buffers
 * have is theirs from now on; before the machine is stopped. */
void pto_worker_free_unused_blocks (PtoWorker *worker);
void pto_worker_release_blocks (PtoWorker *worker);
#define PTO_WORKER_OWN_RUN "an orchestration function can not use its own worker for another run"
/* That of the function that this thread is in; NULL: in none of this worker. */
PtoOrchestrator *pto_worker_get_own_orchestrator (PtoWorker *worker);
/* In the process that has brought it up, or not brought up? To be asked before a lock is taken:
 * another thread of the parent may have held it during the fork. */
gboolean pto_worker_check_process (PtoWorker *worker, GError **error);
gboolean pto_worker_check_level (guint level, GError **error);
/* With the lock: not closed, and not about to be? */
gboolean pto_worker_check_open (PtoWorker *worker, GError **error);
/* Ends the thread of asynchronous runs, which may be the caller's. */
void pto_worker_end_jobs (PtoWorker *worker, GThread *thread);

/* -1: there is none of that name. */
int pto_worker_find_parameter (const char *name);
/* With the lock: has it no schedule, or the back end that one needs? */
gboolean pto_worker_check_schedule (PtoWorker *worker, GError **error);
/* All that have an effect on its level, a{ss}; and back, on a new worker that is to be the same. */
GVariant *pto_worker_pack_parameters (PtoWorker *worker);
gboolean pto_worker_unpack_parameters (PtoWorker *worker, GVariant *values, GError **error);
/* Is the chip to be a process of its own? */
gboolean pto_worker_wants_isolation (PtoWorker *worker);
/* Gives a worker the machine that its level and parameters ask for; FALSE: it needs another one
 * than it has, and something was registered already. With the lock, or while nobody else has the
 * worker.
 */
gboolean pto_worker_choose_machine (PtoWorker *worker);
/* In a copy that a fork made of a worker that was up? Then nothing of it is touched. */
gboolean pto_worker_is_foreign (PtoWorker *worker);
/* Has it started, or whoever it is brought up by? Then it is what it was then. No lock is held. */
gboolean pto_worker_is_made (PtoWorker *worker);
/* The same of a worker that has a parent: by that, in the child. */
gboolean pto_worker_bring_up (PtoWorker *worker, GError **error);
/* Ends it: closed, or as new after bring_up. and_children: also those below it, to which somebody
 * else may have references. */
void pto_worker_take_down (PtoWorker *worker, PtoWorkerState state, gboolean and_children);
/* pto_worker_close(), and waits for another thread that does it, or for the orchestration function
 * that has done it. */
void pto_worker_close_wholly (PtoWorker *worker);
void pto_worker_notify_state (PtoWorker *worker);
/* Calls it in the context of the owner, with a reference to the worker: at once on the owner's
 * thread. Not at all in a child, where nobody listens: handlers and their context are its parent's.
 */
void pto_worker_call_owner (PtoWorker *worker, void (*call) (PtoWorker *worker));
#define PTO_REMOTE_LEVEL 3 /* of any remote worker */
/* A remote worker that is below nobody yet; puts such below one that may have them, all or none. */
PtoWorker *pto_worker_new_remote (const char *address, GVariant *options, GError **error);
gboolean pto_worker_add_remotes (PtoWorker *worker, PtoWorker *const *remotes, guint n,
                                 GError **error);
/* Registers what another process, or its parent, has described. A reference. */
PtoCallableHandle *pto_worker_adopt (PtoWorker *worker, PtoRegistration *registration,
                                     GError **error);
/* Runs what its parent asks for: an orchestration of a chip, by its handle, or a function.
 * record: at least so much of it, 0 to 4. is_cancelled is asked at every wait. */
gboolean pto_worker_run_for_parent (PtoWorker *worker, PtoCallableHandle *handle,
                                    const PtoRegistration *registration, PtoTaskArgs *args,
                                    PtoCallConfig *config, guint record,
                                    bool (*is_cancelled) (void *data), gpointer data,
                                    GError **error);

/* A run on the thread of runs. */
typedef struct
{
  PtoOrchestrationFunc func; /* NULL: a handle says what runs */
  gpointer data;
  PtoGate *gate; /* of func, which is called in context */
  GMainContext *context;
  int priority;
  GHashTable *kept; /* out: what its tasks were given, to be let go of in context */
  PtoGraph *graph;  /* instead of a function or a handle */
} PtoRunApart;
gboolean pto_worker_run_apart (PtoWorker *worker, PtoCallableHandle *handle, PtoRunApart *run,
                               PtoTaskArgs *args, PtoCallConfig *config, GCancellable *cancellable,
                               GError **error);

/* worker-progress.c: who listens to one run. All by the thread that runs the machine, but that
 * a look may be anybody's, and is in vain then, until that has run. */
typedef struct _PtoTeller PtoTeller;

/* context: of a run that goes on by itself; NULL: handlers are called on this thread. NULL: nobody
 * listens. */
PtoTeller *pto_teller_new (PtoWorker *worker, GMainContext *context, int priority);
/* Tells if it is time. orchestrator: of the run's function, or NULL. */
void pto_teller_look (PtoTeller *teller, PtoOrchestrator *orchestrator);
/* Frees it. has_run: tells last how far the run came. */
void pto_teller_end (PtoTeller *teller, gboolean has_run);

/* Tells the owner that an object is built; a PtoCompilerProgress. */
void pto_worker_report_progress (const PtoCompilerJob *job, guint done, guint total,
                                 gpointer worker);

/* worker-register.c */

/* With the lock: the registrations that can go now, to be removed without it. */
GPtrArray *pto_worker_steal_retired (PtoWorker *worker);
/* Nothing uses them any more. Consumes retired. */
void pto_worker_remove_retired (PtoWorker *worker, GPtrArray *retired);

/* compile-ahead.c */

/* Before a function or a graph runs: the kernels that it may submit; and after it. */
void pto_worker_compile_ahead (PtoWorker *worker, GCancellable *cancellable);
void pto_worker_forget_ahead (PtoWorker *worker);
/* What has come of that; NULL: nothing. */
PtoRegistration *pto_worker_register_ahead (PtoWorker *worker, PtoCallable *callable);

/* worker-tree.c */

/* Sets up the node of a worker that is being made. */
void pto_worker_init_node (PtoWorker *worker);
/* Makes its devices, when its level is known. Says what is wrong in params_error. */
void pto_worker_make_devices (PtoWorker *worker);
void pto_worker_clear_tree (PtoWorker *worker);
#define PTO_WORKER_ID_ANY (-1)
/* As pto_worker_add_worker(), all of them or none; remote ones by the ids that were given to them.
 */
gboolean pto_worker_add_workers (PtoWorker *worker, PtoWorker *const *children, guint n,
                                 GError **error);
/* NULL: it is the root. */
static inline PtoWorker *
pto_worker_peek_parent (PtoWorker *worker)
{
  return worker->node.parent != NULL ? worker->node.parent->worker : NULL;
}

/* By its place. */
PtoWorker *pto_worker_peek_child (PtoWorker *worker, guint number);
/* It was closed, and so are those below it. No lock is held. */
void pto_worker_close_children (PtoWorker *worker);

/* As PtoWorkerOps has them. */
gboolean pto_worker_find_kernel (PtoWorker *worker, PtoCallable *kernel, gint32 *id,
                                 GError **error);
gboolean pto_worker_instrument_kernel (PtoWorker *worker, PtoCallable *kernel, GError **error);
PtoCallableHandle *pto_worker_find_collective (PtoWorker *worker, guint which,
                                               PtoCallable *function, GError **error);

G_END_DECLS
