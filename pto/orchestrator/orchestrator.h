/* orchestrator.h: how does a worker lend its runtime to an orchestration function?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "api/pto_orchestration_api.h"

#include "machine/machine.h"
#include "function-thread.h"
#include "pto-orchestrator.h"

G_BEGIN_DECLS

/* Kernels whose numbers are found without asking the worker, a power of two. */
#define PTO_RECENT_KERNELS 16
#define PTO_CORE_TYPES 2 /* PtoCoreType */

struct _PtoOrchestrator
{
  GObject parent_instance;

  PtoTreeNode *node;   /* the worker's; function's thread; NULL once the run is over */
  PtoMachine *machine; /* the worker's; used on the thread that runs it */
  PtoGate *gate;       /* NULL: the function runs on the thread that runs the machine */
  guint64 run;
  PtoGraph *captured; /* not owned; what is submitted is written down there; NULL: it is run */
  bool (*is_cancelled) (void *data);
  gpointer data;
  guint forks;            /* pto_count_forks() where it was made */
  guint scopes;           /* opened here and still open */
  struct pto_terms terms; /* of the tasks that are submitted now */
  gboolean checks;        /* kernels are to say what they touch */
  gboolean is_waiting;    /* function's thread: in the midst of a call, its main loop may run */
  gboolean is_telling;    /* function's thread: in the midst of a call, those who listen are told */
  guint64 last_task;      /* function's thread; PTO2_TASK_NONE: none was submitted */
  /* Where the program submits next, or opens a scope; NULL: nobody has said so. Interned. */
  const char *file;
  guint line;
  /* How many clusters the chip has in this run, 0: nobody has asked yet; cores of each of them; and
   * by their numbers which were allocated here, with how many scopes open, + 1; 0: it is not. */
  guint n_clusters;
  guint n_cores[PTO_CORE_TYPES];
  guint *clusters;
  /* Tensors whose memory belongs to somebody: a task may come to its turn when the program has let
   * go of what it was given. NULL: none was submitted. */
  GHashTable *kept;
  /* A number stays good for the run, also when the kernel is unregistered meanwhile. */
  struct
  {
    PtoCallable *kernel; /* owned, so that no other one has its address */
    gint32 id;
  } recent[PTO_RECENT_KERNELS];
  GThread
      *thread; /* atomic; W: the function's thread, before the function; NULL before and after it */
  PTO2Runtime *rt; /* atomic; W: the function's thread; NULL once the run is over */
};

/* A call on the thread that runs the machine; the first thing in what it is given. */
typedef struct
{
  PtoOrchestrator *self;
  gboolean failed;
  GError *error; /* why nothing was done, in a run that has not failed */
} PtoOrchestratorCall;

/* gate: NULL when the function runs on the thread that runs the machine. run: its serial number,
 * not 0. is_cancelled is asked on the thread that runs the machine, until pto_orchestrator_end().
 */
PtoOrchestrator *pto_orchestrator_new (PtoTreeNode *node, PtoGate *gate, guint64 run,
                                       bool (*is_cancelled) (void *data), gpointer data);
/* Function's thread, around the function. */
void pto_orchestrator_begin (PtoOrchestrator *orchestrator, PTO2Runtime *rt);
/* Gives the number of scopes that were left open. */
guint pto_orchestrator_end (PtoOrchestrator *orchestrator);
/* What the run has been given and still needs, once the function has returned; NULL: nothing. To be
 * let go of when all tasks are done, where the function is at home. */
GHashTable *pto_orchestrator_steal_kept (PtoOrchestrator *orchestrator);
/* Any thread: is this the thread that the function runs on? */
gboolean pto_orchestrator_is_own_thread (PtoOrchestrator *orchestrator);
/* Thread that runs the machine, while the function is under way. */
gboolean pto_orchestrator_is_cancelled (PtoOrchestrator *orchestrator);
/* Function's thread: makes a call on the thread that runs the machine. */
void pto_orchestrator_call (PtoOrchestrator *orchestrator, void (*call) (gpointer data),
                            gpointer data);

/* May this thread call it now? */
gboolean pto_orchestrator_check_usable (PtoOrchestrator *orchestrator, GError **error);
/* Makes a call from that place; why it came to nothing is its own error, or that the run has
 * failed. */
gboolean pto_orchestrator_make_call (PtoOrchestrator *orchestrator, void (*func) (gpointer data),
                                     PtoOrchestratorCall *call, GError **error);
/* Does the machine run kernels? PTO_ERROR_NOT_SUPPORTED, with what a task is there. */
gboolean pto_orchestrator_check_kernels (PtoOrchestrator *orchestrator, GError **error);
/* n_clusters and n_cores are there, then. */
gboolean pto_orchestrator_ask_clusters (PtoOrchestrator *orchestrator, GError **error);
/* Is that one allocated, by this function? name: of the kernel that is for it. */
gboolean pto_orchestrator_check_cluster (PtoOrchestrator *orchestrator, const char *name,
                                         int cluster, GError **error);
/* Inside a call: has the run failed, or been cancelled? The machine asks for cancellation where it
 * waits; a function that never makes it wait is ended here. */
gboolean pto_orchestrator_has_failed (PtoOrchestrator *orchestrator);

G_END_DECLS
