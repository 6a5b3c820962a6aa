/* machine.h: what does a worker of any level ask of the machine behind it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * PtoWorker (worker/worker.c and its sisters) is life, locking, runs and their threads; it never
 * asks for its level. A machine is a chip (machine-chip.c: sim/), a chip in a process of its own
 * (machine-isolated.c) or a level (machine-level.c: pto/process/). It is made and freed
 * with its worker; prepare and start bring it up, stop ends it.
 *
 * Calls are serialized by the worker, which has taken the machine, except those that say any
 * thread. No lock of the worker is held.
 */
#pragma once

#include "api/pto_orchestration_api.h"

#include "core/inspect.h"
#include "core/parameters.h"
#include "core/runtime.h"
#include "core/submission.h"

#include <json-glib/json-glib.h>

#include "graph/graph.h"
#include "values/task-args.h"
#include "pto-run-statistics.h"
#include "pto-trace.h"
#include "tree-node.h"

G_BEGIN_DECLS

struct pto_plan;          /* ../core/graph-plan.h */
struct pto_chip_arg;      /* sim/chip.h */
struct pto_core_note;     /* sim/core-note.h */
struct pto_device_memory; /* sim/device-memory.h */

/* One run, as the machine sees it. */
typedef struct
{
  PtoRegistration *registration; /* of kind CHIP; NULL: a function submits the tasks */
  PtoTaskArgs *args;             /* of registration; NULL for none */
  /* Of registration, instead of args: as somebody else has made them. NULL: nobody has. */
  const struct pto_chip_arg *given;
  guint n_given;
  /* What is submitted is written there, and args are what that is launched with; NULL: it runs. */
  struct pto_plan *capture;
  gboolean is_launch;          /* args are those of a launch */
  PtoGraphTag *tag;            /* of what is launched; who keeps a copy of that knows it by this */
  const PtoCallConfig *config; /* NULL: the default of everything */
  /* Submits the tasks, on the thread that run() was called on; gives 0, or another value to fail
   * the run. */
  int (*orchestrate) (PTO2Runtime *rt, void *data);
  /* Asked at every wait of that thread and, of a machine that runs kernels, by another one. */
  bool (*is_cancelled) (void *data);
  /* The same under a lock of the machine's: nobody is called back. */
  bool (*is_unwanted) (void *data);
  gpointer data; /* for all of them */
  const char *title;
  guint64 number; /* of the runs of this process */
  const char *
      schedule; /* in which order its tasks run (../core/forced-order-text.h); NULL: as they come */
  guint record; /* at least so much (enum pto_trace_level), whatever parameter and config say */
  /* Ends compilers that the run has begun; NULL: nobody does. */
  GCancellable *cancellable;
} PtoMachineRun;

/* One task for children: a callable and its arguments, once or, for a group, several times. */
typedef struct
{
  const PtoRegistration *registration;
  PtoTaskArgs *const *args; /* of each member; an element may be NULL */
  guint n_members;
  const int *workers; /* of each member, -1 for any; NULL: any for all */
  const PtoCallConfig *config;
  guint64 run;
  struct pto_submit submit; /* what it comes after, and its terms */
  guint64 id;               /* the result: what it is called */
} PtoMachineTask;

/* How far a run is, in tasks. */
typedef struct pto_look_counts PtoMachineCounts;

/* One use of device memory. */
typedef struct
{
  enum
  {
    PTO_MEMORY_MALLOC,
    PTO_MEMORY_FREE,
    PTO_MEMORY_RELEASE, /* from now on it is the caller's, who calls give (device, size) */
    /* Only of a machine whose children have it: in which life is that child, and is that range
     * still there, with whoever has it? */
    PTO_MEMORY_LIFE,
    PTO_MEMORY_CHECK,
    PTO_MEMORY_COPY_TO,
    PTO_MEMORY_COPY_FROM,
    PTO_MEMORY_COPY /* from one to another; only of a machine whose children have it */
  } what;
  guint64 device; /* address; the result of MALLOC */
  guint64 target; /* the same, of what COPY writes */
  gpointer host;
  guint64 size; /* a result of RELEASE */
  guint32 life; /* a result of LIFE, and of MALLOC: of the child that has it */
  gboolean
      is_in_run; /* FREE: tasks may still use it: it is given back after the run, at the latest */
  guint child;   /* of a machine that has children: whose memory; G_MAXUINT: the address says it */
  /* Of the same, asked while it is waited for: is it not wanted any more? NULL: it is. */
  bool (*is_unwanted) (void *data);
  gpointer unwanted_data;
  void (*give) (guint64 device, guint64 size); /* another one */
} PtoMachineMemory;

typedef struct
{
  /* Can a callable of this kind be registered on it? Any thread. */
  gboolean (*accepts) (PtoMachine *machine, PtoCallable *callable, GError **error);

  /* Two phases, so that all forks of a tree come before the first thread. prepare: maps and forks;
   * native stack; NULL: there is nothing to do. start: threads, waits until the tree is up. A
   * failure of either leaves the machine as it was before prepare. */
  gboolean (*prepare) (PtoMachine *machine, GError **error);
  gboolean (*start) (PtoMachine *machine, GCancellable *cancellable, GError **error);
  /* Ends what prepare and start made. Registrations are still there, and are removed next. */
  void (*stop) (PtoMachine *machine);
  /* Also in a process that is not the owner: then it touches nobody. */
  void (*free) (PtoMachine *machine);

  gboolean (*run) (PtoMachine *machine, const PtoMachineRun *run, GError **error);
  /* Any thread, while somebody has taken the machine: is_cancelled() of the run under way, if there
   * is one by now, says something else now. It is asked now and then, too, for nobody may know. */
  void (*cancel) (PtoMachine *machine);
  /* Inside orchestrate: runs the entry of run->registration. NULL for a machine that runs none. */
  gboolean (*enter) (PtoMachine *machine, const PtoMachineRun *run, PTO2Runtime *rt,
                     GError **error);
  /* Inside orchestrate, of a run that is a launch: submits the tasks of a graph, whose kernels are
   * the worker's of these numbers, or callables, of a machine that has children. */
  void (*launch) (PtoMachine *machine, PTO2Runtime *rt, const struct pto_plan *plan,
                  const guint32 *kernels);
  /* Inside orchestrate: waits until the machine has seen all that was submitted. NULL: it has. */
  void (*catch_up) (PTO2Runtime *rt);
  /* Inside orchestrate: has the run failed already? Fail it; the first error wins. */
  gboolean (*has_failed) (PTO2Runtime *rt);
  /* Of a run that has: why, as far as that is known by now. Also on its function's thread. */
  char *(*dup_failure) (PTO2Runtime *rt);
  void (*fail) (PTO2Runtime *rt, enum pto_status status, const char *message);

  /* Inside orchestrate, of a machine that has children; NULL otherwise: it runs kernels. FALSE with
   * an error: refused, and the run goes on; FALSE without one: the run has failed. */
  gboolean (*submit) (PtoMachine *machine, PTO2Runtime *rt, PtoMachineTask *task, GError **error);
  /* A task that runs nowhere; PTO2_TASK_NONE: the run has failed. */
  guint64 (*order) (PtoMachine *machine, const struct pto_submit *submit);
  /* Gives a tensor of the run an address, in the heaps, by a task that outputs it. FALSE without an
   * error: the run has failed. */
  gboolean (*alloc) (PtoMachine *machine, PTO2Runtime *rt, Tensor *tensor, GError **error);
  /* Inside orchestrate, of a machine that runs kernels; NULL otherwise. Waits until an element may
   * be read, or written, and copies it from or to value, which has 8 bytes. FALSE: the run has
   * failed. */
  gboolean (*element) (PtoMachine *machine, PTO2Runtime *rt, const Tensor *tensor,
                       const guint64 *index, gboolean write, gpointer value);
  /* Any thread, during a run: grows while it gets on. NULL: never below another worker. */
  guint64 (*get_progress) (PtoMachine *machine);

  /* Any thread. add: of the first registration of a digest, before anybody can find it; remove:
   * after the last one, when no run uses it any more. The registry counts in between. */
  gboolean (*add) (PtoMachine *machine, PtoRegistration *registration, GCancellable *cancellable,
                   GError **error);
  void (*remove) (PtoMachine *machine, PtoRegistration *registration);
  /* Only some of those below it are to have a callable: those that are named by their ids, of SUB
   * workers their numbers; add() does that, if targets of the registration say so. FALSE: there are
   * none such. And: more of those below are to have what is registered already, those targets, or
   * all. NULL for a machine with nobody below it. */
  gboolean (*name_targets) (PtoMachine *machine, PtoCallable *callable, const int *workers,
                            gsize n_workers, PtoTargets *targets, GError **error);
  gboolean (*extend) (PtoMachine *machine, PtoRegistration *registration, const PtoTargets *targets,
                      GCancellable *cancellable, GError **error);

  /* Inside orchestrate, of a run whose accesses are checked, on the function's thread: tasks are
   * about to name that kernel, which says what it touches from now on, if it has a source. NULL for
   * a machine that runs none. */
  gboolean (*instrument) (PtoMachine *machine, PtoRegistration *registration,
                          GCancellable *cancellable, GError **error);

  /* Also on the thread of a run that is under way. NULL for a machine without device memory. Takes
   * no lock. */
  gboolean (*use_memory) (PtoMachine *machine, PtoMachineMemory *memory, GError **error);

  /* Any thread; of the last run. NULL: there was none, nothing was recorded. */
  PtoTrace *(*get_trace) (PtoMachine *machine);
  /* Likewise, of a machine that can check accesses in this process; NULL: of any other. What has
   * written a byte last; NULL: nobody, or nobody knows. */
  char *(*dup_writer) (PtoMachine *machine, guint64 address);
  /* Any thread, while the machine is shown: adds to an object what it does just now
   * (machine-state.h). Waits for nobody who runs. */
  void (*tell) (PtoMachine *machine, JsonBuilder *json);
  /* The same way: how far is the run under way? is_inside: whoever asks is its thread, which it
   * does not end under. FALSE: there is none, or that is not known just now. */
  gboolean (*count) (PtoMachine *machine, gboolean is_inside, PtoMachineCounts *counts);
} PtoMachineOps;

/* Is given what orchestrations log, and what the engine has to say of a run, on their thread. */
typedef void (*PtoMachineLog) (GLogLevelFlags flags, const char *context, const char *message,
                               gpointer data);

struct _PtoHeaps;
struct _PtoMachine
{
  const PtoMachineOps *ops;
  PtoTreeNode *node;               /* of its worker; not owned */
  const struct pto_params *params; /* the worker's; does not change from prepare on */

  /* W: before start. */
  PtoMachineLog log; /* NULL: g_log() */
  gpointer log_data;
  /* W: who has taken the machine, with the lock; R: he, and who has the lock. NULL: no run yet. */
  char *log_context;

  guint n_visitors; /* who ask it something just now; machine.c's */

  struct _PtoHeaps *heaps; /* W: prepare or start, stop; NULL: none. machine.c's */

  /* Guards all below and what the kinds of machines say that it does; innermost. */
  GMutex lock;
  gboolean has_statistics;
  struct pto_run_stats statistics;
};

PtoMachine *pto_machine_new_chip (PtoTreeNode *node, const struct pto_params *params);
PtoMachine *pto_machine_new_isolated (PtoTreeNode *node, const struct pto_params *params);
PtoMachine *pto_machine_new_level (PtoTreeNode *node, const struct pto_params *params);

/* --- what all of them have alike: machine.c --- */

/* First and last in the life of each. */
void pto_machine_set_up (PtoMachine *machine, const PtoMachineOps *ops, PtoTreeNode *node,
                         const struct pto_params *params);
void pto_machine_take_down (PtoMachine *machine);
/* From start to stop, in the process that has started it: it can be asked what it does. hide waits
 * for who asks just now, a moment. */
void pto_machine_show (PtoMachine *machine);
void pto_machine_hide (PtoMachine *machine);
/* Calls it for each that is shown, the first that was shown first, or, if one is named, for just
 * that. No lock is held, and the machine stays until it returns. Any thread. */
void pto_machine_visit (PtoMachine *only, void (*visit) (PtoMachine *machine, gpointer data),
                        gpointer data);
/* What the run under way, or the last one, is called; NULL: nobody knows. */
char *pto_machine_dup_title (PtoMachine *machine);
/* A run begins: what is logged from now on is of that. */
void pto_machine_note_title (PtoMachine *machine, const char *title);
/* How much of the run is recorded (enum pto_trace_level); 0: nothing. */
guint pto_machine_get_recording_level (const PtoMachine *machine, const PtoMachineRun *run);
/* Are the accesses of its kernels, or of those of chips below, checked? */
gboolean pto_machine_checks (const PtoMachine *machine, const PtoMachineRun *run);
/* As sim/ and process/ log: severity is PTO2_LOG_*. machine: a PtoMachine. */
void pto_machine_log (gpointer machine, int32_t severity, const char *message);
/* As the machine's functions has_failed, dup_failure and fail, where the engine is in this process.
 */
gboolean pto_machine_run_has_failed (PTO2Runtime *rt);
char *pto_machine_dup_failure (PTO2Runtime *rt);
void pto_machine_fail_run (PTO2Runtime *rt, enum pto_status status, const char *message);
/* Of the last run, for any thread. dup: NULL: there was none. */
void pto_machine_keep_statistics (PtoMachine *machine, const struct pto_run_stats *statistics);
PtoRunStatistics *pto_machine_dup_statistics (PtoMachine *machine);
/* Heaps in which tensors of orchestration functions lie from the start, and which stay mapped as
 * long as those, also when the worker has been closed. make: with what has them; peek: where to put
 * them before that is freed; release: behind it. map: before what is to have them, of the sizes
 * that the parameters say; those that were there are let go of unless they are such. */
void pto_machine_make_heaps (PtoMachine *machine);
gboolean pto_machine_map_heaps (PtoMachine *machine, GError **error);
gboolean pto_machine_has_such_heaps (PtoMachine *machine);
struct pto_heaps *pto_machine_peek_heaps (PtoMachine *machine);
void pto_machine_release_heaps (PtoMachine *machine);
/* For one tensor; release: to be called with what this gives. */
gpointer pto_machine_hold_heaps (PtoMachine *machine, GDestroyNotify *release);
/* As the machine's function use_memory. */
gboolean pto_machine_use_device_memory (struct pto_device_memory *memory, PtoMachineMemory *call,
                                        GError **error);

/* --- of chips --- */

/* As a chip's accepts(), wherever it is. */
gboolean pto_machine_chip_accepts (PtoMachine *machine, PtoCallable *callable, GError **error);
/* Of a chip, before start: it works in these heaps (sim/chip.h), its runs are counted there, and
 * its cores keep notes there (sim/core-note.h). All of it stays. */
void pto_machine_chip_use (PtoMachine *machine, const struct pto_heaps *heaps,
                           struct pto_machine_totals *totals, struct pto_core_note *notes,
                           guint n_notes);
/* Arguments as an orchestration in a shared object gets them. NULL: one has no memory, or is an
 * output that can not be written. */
struct pto_chip_arg *pto_machine_make_chip_args (PtoTaskArgs *args, const char *name,
                                                 PtoArgsUse use, guint *n, GError **error);

G_END_DECLS
