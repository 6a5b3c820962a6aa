/* tree-node.h: where in its tree is a worker, and what is it made of?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each worker has one (PtoWorker embeds it). Its machine, the bridge to a remote worker, its
 * orchestration functions and monitors read it; they know nothing else of the worker. It is set
 * while the worker is new and stays as it is afterwards, so that it is read without a lock.
 */
#pragma once

#include "core/parameters.h"
#include "process/service.h"

#include "callable/registry.h"
#include "remote/launch/remote-launch.h"
#include "child-protocol.h"
#include "pto-worker.h"

G_BEGIN_DECLS

typedef struct _PtoMachine PtoMachine;
typedef struct _PtoTreeNode PtoTreeNode;

/* What a worker does for its machine and for its orchestration functions. */
typedef struct
{
  /* Makes what serves a child, before the fork. child: NULL for a SUB worker. path: for messages.
   * is_orphan of the server is left to the level. Returns what destroy frees. */
  gpointer (*make_child) (PtoTreeNode *child, const char *path, const PtoChildParent *parent,
                          struct pto_server *server, GDestroyNotify *destroy);
  /* Calls it on the thread that runs the machine, if this is the thread of the function of its run.
   * FALSE: it is not. */
  gboolean (*call_in_run) (PtoWorker *worker, void (*call) (gpointer data), gpointer data);
  /* Gives the number by which tasks of a running orchestration function name a kernel; builds and
   * loads it on first use. */
  gboolean (*find_kernel) (PtoWorker *worker, PtoCallable *kernel, gint32 *id, GError **error);
  /* Has a kernel that was found say what it touches, for a run whose accesses are checked. */
  gboolean (*instrument_kernel) (PtoWorker *worker, PtoCallable *kernel, GError **error);
  /* Gives the worker's own handle of a collective; registers it on first use. Transfer none. */
  PtoCallableHandle *(*find_collective) (PtoWorker *worker, guint which, PtoCallable *function,
                                         GError **error);
  /* Begins to answer, if processes are to: in a process of the machine that is up. */
  void (*begin_to_answer) (void);
} PtoWorkerOps;

struct _PtoTreeNode
{
  PtoWorker *worker; /* whose it is; not owned */
  const PtoWorkerOps *ops;

  guint level;
  char *platform;
  guint device_id;
  guint64 serial;
  const struct pto_params *params; /* the worker's, which change before start only */
  PtoRegistry *registry;           /* has a lock of its own */
  /* NULL: there is no such level. W: construction, and while the worker is new and nothing was
   * registered (pto_worker_choose_machine()). */
  PtoMachine *machine;
  gboolean is_isolated; /* what machine is. W: as machine */

  /* --- the tree; under the worker's lock while that is new --- */
  PtoTreeNode *parent; /* NULL: this is the root */
  guint id;            /* what it is called among the parent's workers */
  guint number;        /* its place among them */
  GPtrArray
      *children; /* PtoTreeNode, whose workers are owned: devices, then those that were added */
  guint n_sub_workers;
  PtoChildMode child_mode;
  PtoRestart restart;
  PtoForkFunc fork;
  gpointer fork_data;
  GDestroyNotify fork_destroy;
  PtoRemoteSpec *remote; /* where it is; NULL: a child of this process */
  char *path;            /* of a worker that a remote one is; NULL: as the tree says */
  PtoImportFunc import;
  gpointer import_data;
  GDestroyNotify import_destroy;
};

/* Frees what it has, and lets go of its children, which are roots from then on. */
void pto_tree_node_clear (PtoTreeNode *node);

char *pto_tree_node_dup_path (const PtoTreeNode *node);
/* The same as a value, for messages; cut to fit. */
typedef struct
{
  char text[256];
} PtoNodePath;
PtoNodePath pto_tree_node_get_path (const PtoTreeNode *node);
/* By its place. */
PtoTreeNode *pto_tree_node_peek_child (const PtoTreeNode *node, guint number);
/* The place of the one with that id; FALSE: there is none. */
gboolean pto_tree_node_find_child (const PtoTreeNode *node, guint id, guint *number);
/* "0, 1, 7": for messages. */
char *pto_tree_node_describe_ids (const PtoTreeNode *node);

/* With the function of the worker, or of the nearest above it that has one. */
pid_t pto_tree_node_fork (const PtoTreeNode *node);
PtoCallable *pto_tree_node_import (const PtoTreeNode *node, PtoCallableKind kind, const char *path,
                                   GError **error);
/* As pto_worker_set_default_fork_func() and pto_worker_set_default_import_func(). */
void pto_tree_node_set_default_fork (PtoForkFunc func, gpointer user_data, GDestroyNotify destroy);
void pto_tree_node_set_default_import (PtoImportFunc func, gpointer user_data,
                                       GDestroyNotify destroy);

G_END_DECLS
