/* machine-level.h: what do the parts of a machine that is a level know of each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * They say in bytes what pto/process/ does not know: which child serves what, what a callable is,
 * and how arguments of the object layer become those of a task.
 */
#pragma once

#include "process/level.h"

#include "sim/chip.h"

#include "machine.h"
#include "tensor-dump.h"

G_BEGIN_DECLS

/* What serves one of them. */
typedef struct
{
  gpointer server;
  GDestroyNotify destroy;
} LevelChild;

typedef struct
{
  PtoMachine parent;

  struct pto_level *level; /* W: prepare, stop; used by who has taken the machine, and under lock */
  struct pto_writes *writes; /* of level. W: prepare, before the fork */
  LevelChild *children;
  guint n_children;
  guint32 *bound; /* of each child: tasks of the run under way that were given to it by its name,
                   * or because not all have what they run; the thread in run() */
  gboolean has_given_ids; /* not all of its workers are called by their places */
  guint n_tasks;      /* of the run under way, in the order of their submits; the thread in run() */
  gboolean passed_on; /* one of them was given choices of its own */
  guint recording;    /* that run: how much of it; 0: nothing */
  const PtoMachineRun *run;         /* the same; NULL: none is */
  const struct pto_chip_arg *given; /* what a capture, or a launch, is given; NULL: it is neither */
  guint n_given;
  const PtoDump *dump; /* of the run under way; NULL: tensors are not dumped */
  gboolean warned;     /* of a child's parameter that has no effect */
  gint64 quiet_until;  /* the thread that forks: not waiting for others any more from then on */

  /* --- under the parent's lock, and level for other threads --- */
  GCond changed;       /* users, starting or some telling has changed */
  guint users;         /* other threads that use level just now */
  gboolean starting;   /* between prepare and the end of start: wait, then tell */
  pid_t process;       /* that prepared it */
  GHashTable *known;   /* digest -> Known */
  GPtrArray *names;    /* by the registry's index: interned text */
  GArray *memory;      /* Memory, by address: of remote workers, that the program has */
  GArray *leaving;     /* Memory, to be given back after the run; of its thread alone */
  GPtrArray *snapshot; /* Known: what known held just before the last fork */
  PtoTrace *trace;     /* of the last run; NULL: it was not recorded, or one is under way */
} LevelMachine;

/* --- machine-level-registrations.c --- */

void pto_machine_level_init_known (LevelMachine *self);
void pto_machine_level_clear_known (LevelMachine *self);
/* As the machine's functions of these names. */
gboolean pto_machine_level_accepts (PtoMachine *machine, PtoCallable *callable, GError **error);
gboolean pto_machine_level_add (PtoMachine *machine, PtoRegistration *registration,
                                GCancellable *cancellable, GError **error);
void pto_machine_level_remove (PtoMachine *machine, PtoRegistration *registration);
gboolean pto_machine_level_name_targets (PtoMachine *machine, PtoCallable *callable,
                                         const int *workers, gsize n_workers, PtoTargets *targets,
                                         GError **error);
gboolean pto_machine_level_extend (PtoMachine *machine, PtoRegistration *registration,
                                   const PtoTargets *targets, GCancellable *cancellable,
                                   GError **error);
/* Of a digest that children have; NULL: all who can run it do. In copy. */
const PtoTargets *pto_machine_level_find_targets (LevelMachine *self, const guint8 *digest,
                                                  PtoTargets *copy);
/* As the level asks: of a callable, by its index; any thread. */
const char *pto_machine_level_get_name (void *self, uint32_t index);
/* The start has ended, well or not: who waits for it goes on. */
void pto_machine_level_end_start (LevelMachine *self);
/* The thread that forks, just before it. */
void pto_machine_level_take_snapshot (LevelMachine *self);
/* When no child will be forked any more: what was known then need not live on. */
void pto_machine_level_drop_snapshot (LevelMachine *self);
/* Of PtoRegistration: in a process child what the snapshot of its fork has for that one, or for all
 * (G_MAXUINT). In a thread child there may be none. */
GPtrArray *pto_machine_level_list (gpointer self, guint child);

/* --- machine-level-remote-memory.c --- */

void pto_machine_level_init_memory (LevelMachine *self);
/* When there is no level any more. */
void pto_machine_level_clear_memory (LevelMachine *self);
/* After a run: what it has given back is used by no task any more. */
void pto_machine_level_settle_memory (LevelMachine *self);
/* Of memory that is known by an address (pto_remote_range_has()): can a task of the worker with
 * that id, or of any (-1), use it? */
gboolean pto_machine_level_check_memory (LevelMachine *self, guint64 address, guint64 bytes,
                                         guint argument, int id, GError **error);
/* Has the graph that is captured keep the memory of a task's tensor, which was checked, unless an
 * argument of the graph has it. */
void pto_machine_level_keep_memory (LevelMachine *self, const Tensor *tensor,
                                    struct pto_plan *plan);
/* Says which params of a graph are such memory in this launch. FALSE: a task does not go to the
 * worker that has it. given: of all params; n_given: so many the program has given. */
gboolean pto_machine_level_find_owned (LevelMachine *self, const struct pto_plan *plan,
                                       struct pto_plan_given *given, guint n_given, GError **error);
/* As the machine's function of this name. */
gboolean pto_machine_level_use_memory (PtoMachine *machine, PtoMachineMemory *use, GError **error);

/* --- machine-level-trace.c --- */

/* Who has taken the machine, after a recorded run. */
PtoTrace *pto_machine_level_make_trace (LevelMachine *self, const PtoMachineRun *run);
/* Is that worker below another one in a process of its own? */
gboolean pto_machine_level_child_is_apart (const PtoTreeNode *node, guint number);

/* --- machine-level-graph.c --- */

/* In place of a run's orchestration, which it calls: data is the machine. */
int pto_machine_level_capture (PTO2Runtime *rt, void *data);
/* As the machine's function launch. */
void pto_machine_level_launch (PtoMachine *machine, PTO2Runtime *rt, const struct pto_plan *plan,
                               const guint32 *kernels);

/* --- machine-level-submit.c: as the machine's functions submit and alloc --- */

/* Is what a task is to record seen somewhere? */
gboolean pto_machine_level_check_switches (LevelMachine *self, const char *name,
                                           gboolean is_for_chips, const PtoCallConfig *config,
                                           GError **error);
const char *pto_machine_level_describe_kind (PtoCallableKind kind);
gboolean pto_machine_level_submit (PtoMachine *machine, PTO2Runtime *rt, PtoMachineTask *submit,
                                   GError **error);
guint64 pto_machine_level_order (PtoMachine *machine, const struct pto_submit *submit);
gboolean pto_machine_level_alloc (PtoMachine *machine, PTO2Runtime *rt, Tensor *tensor,
                                  GError **error);

G_END_DECLS
