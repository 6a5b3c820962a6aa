/* worker-tree.c: how is a worker made of other workers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Who is below whom, and what a worker needs to make processes of them. All of it is said while the
 * worker is new and stays as it is afterwards, so that whoever runs reads it without a lock.
 */
#include "config.h"

#include "worker.h"

#include "base/error.h"
#include "common/text.h"
#include "monitor/answer.h"
#include "orchestrator/orchestrator.h"
#include "remote/parent/bridge.h"
#include "child-server.h"
#include "pto-platform.h"

/* --- what it does for its machine --- */

/* Packs the parameters of its chips, as a remote worker is told them: aa{ss}. */
static GVariant *
pack_chips (PtoTreeNode *node)
{
  GVariantBuilder chips;

  g_variant_builder_init (&chips, G_VARIANT_TYPE ("aa{ss}"));
  for (guint i = 0; i < node->remote->n_devices; i++)
    g_variant_builder_add_value (
        &chips, pto_worker_pack_parameters (pto_tree_node_peek_child (node, i)->worker));
  return g_variant_builder_end (&chips);
}

static gpointer
make_child (PtoTreeNode *child, const char *path, const PtoChildParent *parent,
            struct pto_server *server, GDestroyNotify *destroy)
{
  gpointer made;

  if (child != NULL && child->remote != NULL)
    {
      PtoBridge *bridge = made = pto_bridge_new (
          child, path, parent, pto_worker_pack_parameters (child->worker), pack_chips (child));

      pto_bridge_get_server (bridge, server);
      *destroy = (GDestroyNotify) pto_bridge_free;
    }
  else
    {
      PtoChild *own = made = pto_child_new (child != NULL ? child->worker : NULL, path, parent);

      pto_child_get_server (own, server);
      *destroy = (GDestroyNotify) pto_child_free;
    }
  return made;
}

static gboolean
call_in_run (PtoWorker *self, void (*call) (gpointer data), gpointer data)
{
  PtoOrchestrator *orchestrator = pto_worker_get_own_orchestrator (self);

  if (orchestrator != NULL)
    pto_orchestrator_call (orchestrator, call, data);
  return orchestrator != NULL;
}

static const PtoWorkerOps ops = { .make_child = make_child,
                                  .call_in_run = call_in_run,
                                  .find_kernel = pto_worker_find_kernel,
                                  .instrument_kernel = pto_worker_instrument_kernel,
                                  .find_collective = pto_worker_find_collective,
                                  .begin_to_answer = pto_answer_start_if_wanted };

static void
unref_worker (gpointer node)
{
  g_object_unref (((PtoTreeNode *) node)->worker);
}

void
pto_worker_init_node (PtoWorker *self)
{
  static gsize serials; /* atomic */
  PtoTreeNode *node = &self->node;

  node->worker = self;
  node->ops = &ops;
  node->serial = (guint64) g_atomic_pointer_add (&serials, 1) + 1;
  node->params = &self->params;
  node->registry = pto_registry_new (node->serial);
  node->children = g_ptr_array_new_with_free_func (unref_worker);
}

/* --- the tree --- */

void
pto_worker_make_devices (PtoWorker *self)
{
  gsize n_devices = self->device_ids != NULL ? g_variant_n_children (self->device_ids) : 0;
  GVariantIter iter;
  guint32 device;

  if (n_devices > PTO_MAX_CHILDREN || self->node.n_sub_workers > PTO_MAX_CHILDREN - n_devices)
    {
      pto_worker_refuse_params (
          self, _ ("%zu devices and %u SUB workers are too many: a worker has at most %d below it"),
          n_devices, self->node.n_sub_workers, PTO_MAX_CHILDREN);
      return;
    }
  if (n_devices == 0)
    return;
  if (self->node.level != 3)
    {
      pto_worker_refuse_params (
          self, _ ("level %u has no devices of its own: %s"), self->node.level,
          self->node.level < 3 ? _ ("it is one") : _ ("add workers of level 3"));
      return;
    }
  g_variant_iter_init (&iter, self->device_ids);
  while (g_variant_iter_next (&iter, "u", &device))
    {
      PtoWorker *chip = g_object_new (PTO_TYPE_WORKER, "level", 2, "platform", self->node.platform,
                                      "device-id", device, NULL);

      chip->node.parent = &self->node;
      chip->node.id = chip->node.number = self->node.children->len;
      /* It is below another one, whatever the environment says of chips. */
      pto_worker_choose_machine (chip);
      g_ptr_array_add (self->node.children, &chip->node);
      g_list_store_append (self->model, chip);
    }
}

void
pto_worker_clear_tree (PtoWorker *self)
{
  pto_tree_node_clear (&self->node);
  g_clear_object (&self->shown);
  g_clear_object (&self->model);
  g_clear_pointer (&self->device_ids, g_variant_unref);
}

/* Owner's context. */
static void
update_model (PtoWorker *self)
{
  guint n_before = g_list_model_get_n_items (G_LIST_MODEL (self->model));
  g_autoptr (GPtrArray) added = g_ptr_array_new_with_free_func (g_object_unref);
  gboolean is_closed;

  g_mutex_lock (&self->lock);
  is_closed = self->state == PTO_WORKER_STATE_CLOSED;
  for (guint i = n_before; i < self->node.children->len; i++)
    g_ptr_array_add (added, g_object_ref (pto_worker_peek_child (self, i)));
  g_mutex_unlock (&self->lock);
  if (is_closed)
    g_list_store_remove_all (self->model);
  else
    g_list_store_splice (self->model, n_before, 0, added->pdata, added->len);
}

void
pto_worker_close_children (PtoWorker *self)
{
  for (guint i = 0; i < self->node.children->len; i++)
    pto_worker_close (pto_worker_peek_child (self, i));
  pto_worker_call_owner (self, update_model);
}

/**
 * pto_worker_new_host: (constructor)
 * @level: the level of the machine, 3 or more
 * @n_devices: chips below it, with the device ids 0, 1 and so on; on level 3 only
 * @n_sub_workers: workers for SUB functions below it
 * @platform: (nullable): the name of the chips' platform; `a2a3sim` when %NULL
 * @error: where to say why there is none
 *
 * Makes a worker that has others below it: several chips of a host, or, with
 * [method@Pto.Worker.add_worker], workers of lower levels.
 *
 * Fails like [ctor@Pto.Worker.new], and with %PTO_ERROR_INVALID_ARGS for devices on a level other
 * than 3. Source: seed 001, seed 003. Thread safety: any thread.
 *
 * Returns: (transfer full): a worker
 *
 * Since: 0.1
 */
PtoWorker *
pto_worker_new_host (guint level, guint n_devices, guint n_sub_workers, const char *platform,
                     GError **error)
{
  g_autoptr (PtoPlatform) description = NULL;
  GVariantBuilder ids;

  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (level < 3 || level > PTO_MAX_LEVEL)
    {
      pto_refuse (error, PTO_ERROR_NOT_SUPPORTED,
                  _ ("level %u is no host: that is 3 to %d; one chip is 2"), level, PTO_MAX_LEVEL);
      return NULL;
    }
  if (n_devices > PTO_MAX_CHILDREN || n_sub_workers > PTO_MAX_CHILDREN)
    {
      pto_refuse (
          error, PTO_ERROR_INVALID_ARGS,
          _ ("%u devices and %u SUB workers are too many: a worker has at most %d below it"),
          n_devices, n_sub_workers, PTO_MAX_CHILDREN);
      return NULL;
    }
  description = pto_platform_lookup (platform != NULL ? platform : PTO_DEFAULT_PLATFORM, error);
  if (description == NULL)
    return NULL;
  g_variant_builder_init (&ids, G_VARIANT_TYPE ("au"));
  for (guint i = 0; i < n_devices; i++)
    g_variant_builder_add (&ids, "u", i);
  return pto_worker_check_params (g_object_new (PTO_TYPE_WORKER, "level", level, "platform",
                                                pto_platform_get_name (description), "device-ids",
                                                g_variant_builder_end (&ids), "n-sub-workers",
                                                n_sub_workers, NULL),
                                  error);
}

static gboolean
refuse (GError **error, PtoError code, const char *why, PtoWorker *child)
{
  g_autofree char *path = pto_worker_dup_path (child);

  return pto_refuse (error, code, _ ("%s can not be added: %s"), path, why);
}

/**
 * pto_worker_add_worker:
 * @worker: a new worker of level 3 or more
 * @child: (transfer none): a new worker of a lower level
 * @error: where to say why not
 *
 * Puts a worker below this one. Its id is its place among those below: devices come first, then
 * workers in the order in which they were added. If others were given to some
 * ([method@Pto.Worker.add_remote_worker]) it is the lowest that nobody has.
 *
 * @child is brought up by [method@Pto.Worker.start] of @worker, in its own process, and is not used
 * in this one any more; callables can be registered on it before that.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for a level that is not lower or a worker that has been added
 * already, with %PTO_ERROR_BUSY when one of them has started, and with %PTO_ERROR_CLOSED when
 * @worker is closed. Source: seed 001 section 9. Thread safety: any thread.
 *
 * Returns: %TRUE if it was added
 *
 * Since: 0.1
 */
gboolean
pto_worker_add_worker (PtoWorker *worker, PtoWorker *child, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (PTO_IS_WORKER (child), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return pto_worker_add_workers (worker, &child, 1, error);
}

/* With the lock. */
static guint
find_free_id (PtoWorker *self)
{
  guint id = 0;
  guint number;

  while (pto_tree_node_find_child (&self->node, id, &number))
    id++;
  return id;
}

/* Can it be below that worker? What only the lock keeps so is looked at with it. */
static gboolean
check_child (PtoWorker *worker, PtoWorker *child, GError **error)
{
  /* Lower levels only, so that nothing is below itself. */
  if (worker->node.level < 3 || child->node.level >= worker->node.level)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("a worker of level %u can not be below one of level %u: a level is made of lower "
           "ones, from 3 on"),
        child->node.level, worker->node.level);
  if (pto_worker_get_state (child) == PTO_WORKER_STATE_CLOSED)
    return refuse (error, PTO_ERROR_CLOSED, _ ("it is closed"), child);
  if (pto_worker_get_state (child) != PTO_WORKER_STATE_NEW)
    return refuse (error, PTO_ERROR_BUSY, _ ("it has started already"), child);
  if (child->node.parent != NULL)
    return refuse (error, PTO_ERROR_INVALID_ARGS, _ ("it is below a worker already"), child);
  if (worker->node.remote != NULL)
    return refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("the worker above it would be a remote one, which has the chips that its option "
           "devices says"),
        child);
  if (child->isolate && worker->node.child_mode == PTO_CHILD_MODE_THREAD)
    return refuse (error, PTO_ERROR_INVALID_ARGS,
                   _ ("it is to be a process of its own, and those below that worker are threads"),
                   child);
  if (child->node.is_isolated && !pto_registry_is_empty (child->node.registry))
    return refuse (
        error, PTO_ERROR_BUSY,
        _ ("it has a process of its own since something was registered on it: add it before "
           "that, or without isolate"),
        child);
  return TRUE;
}

static gboolean
refuse_id (PtoWorker *worker, guint number, GError **error)
{
  PtoWorker *owner = pto_worker_peek_child (worker, number);
  g_autofree char *path = pto_worker_dup_path (owner);

  return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                     _ ("the id %u is that of %s already: each worker has one of its own"),
                     owner->node.id, path);
}

static gboolean
refuse_number (PtoWorker *child, GError **error)
{
  g_autofree char *why = g_strdup_printf (_ ("a worker has at most %d below it"), PTO_MAX_CHILDREN);

  return refuse (error, PTO_ERROR_INVALID_ARGS, why, child);
}

/* What was given to it; PTO_WORKER_ID_ANY: nothing. */
static gint64
get_wanted_id (PtoWorker *child)
{
  return child->node.remote != NULL ? child->node.remote->id : PTO_WORKER_ID_ANY;
}

/* With the lock. */
static void
put_below (PtoWorker *worker, PtoWorker *child)
{
  gint64 id = get_wanted_id (child);

  child->node.parent = &worker->node;
  child->node.id = id != PTO_WORKER_ID_ANY ? (guint) id : find_free_id (worker);
  child->node.number = worker->node.children->len;
  pto_worker_choose_machine (child);
  g_ptr_array_add (worker->node.children, &((PtoWorker *) g_object_ref (child))->node);
}

gboolean
pto_worker_add_workers (PtoWorker *worker, PtoWorker *const *children, guint n, GError **error)
{
  gboolean is_closed;
  gboolean is_made;
  gboolean is_full;
  gboolean is_taken = FALSE;
  guint number = 0;

  if (n == 0)
    return TRUE;
  for (guint i = 0; i < n; i++)
    if (!check_child (worker, children[i], error))
      return FALSE;
  is_made = pto_worker_is_made (worker);
  g_mutex_lock (&worker->lock);
  is_closed = worker->state == PTO_WORKER_STATE_CLOSED;
  is_made = is_made || worker->state != PTO_WORKER_STATE_NEW || worker->starting != NULL;
  is_full = worker->node.children->len + worker->node.n_sub_workers + n > PTO_MAX_CHILDREN;
  for (guint i = 0; !is_taken && i < n; i++)
    is_taken
        = get_wanted_id (children[i]) != PTO_WORKER_ID_ANY
          && pto_tree_node_find_child (&worker->node, (guint) get_wanted_id (children[i]), &number);
  for (guint i = 0; !is_made && !is_full && !is_taken && i < n; i++)
    put_below (worker, children[i]);
  g_mutex_unlock (&worker->lock);
  if (is_closed)
    return refuse (error, PTO_ERROR_CLOSED,
                   _ ("the worker above it is closed, and stays so: make a new one"), children[0]);
  if (is_made)
    return refuse (error, PTO_ERROR_BUSY,
                   _ ("the worker above it has started already: by start(), by its first run or by "
                      "memory that was asked for; add all of them before"),
                   children[0]);
  if (is_taken)
    return refuse_id (worker, number, error);
  if (is_full)
    return refuse_number (children[0], error);
  pto_worker_call_owner (worker, update_model);
  return TRUE;
}

/**
 * pto_worker_get_n_workers:
 * @worker: a worker
 *
 * Counts the workers below it that are not SUB workers: ids are 0 to this number less 1, unless
 * others were given to some ([method@Pto.Worker.get_id]).
 *
 * Thread safety: any thread.
 *
 * Returns: a number
 *
 * Since: 0.1
 */
guint
pto_worker_get_n_workers (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), 0);

  return worker->node.children->len;
}

PtoWorker *
pto_worker_peek_child (PtoWorker *self, guint number)
{
  return pto_tree_node_peek_child (&self->node, number)->worker;
}

/**
 * pto_worker_get_id:
 * @worker: a worker below another one
 *
 * Gives what it is called by a submit on the worker above it, and in its path: its place among the
 * others unless another one was given to it ([method@Pto.Worker.add_remote_worker]). That of a root
 * is 0.
 *
 * Thread safety: any thread.
 *
 * Returns: a number
 *
 * Since: 0.1
 */
guint
pto_worker_get_id (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), 0);

  return worker->node.id;
}

/**
 * pto_worker_get_child:
 * @worker: a worker
 * @id: of a worker below it
 *
 * Gives a worker below this one, for instance to set its parameters.
 *
 * What it does, it does in its own process: in this one its state is that of a new worker. Thread
 * safety: any thread.
 *
 * Returns: (transfer none) (nullable): a worker; %NULL when there is none with that id
 *
 * Since: 0.1
 */
PtoWorker *
pto_worker_get_child (PtoWorker *worker, guint id)
{
  guint number;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  return pto_tree_node_find_child (&worker->node, id, &number)
             ? pto_worker_peek_child (worker, number)
             : NULL;
}

/**
 * pto_worker_get_children: (get-property children)
 * @worker: a worker
 *
 * Gives a list of [class@Pto.Worker] that are below it: chips and others, in the order of their
 * ids.
 *
 * It can be looked at only. One that is added is told by [signal@Gio.ListModel::items-changed]; all
 * leave it, closed, when
 * @worker is closed. SUB workers are no objects: see [method@Pto.Worker.get_n_sub_workers]. Its
 * signals are emitted in the main context that was the thread's default when @worker was made, and
 * it is to be used there.
 *
 * Source: seed 001 section 9. Thread safety: any thread may ask for it.
 *
 * Returns: (transfer none): a list
 *
 * Since: 0.1
 */
GListModel *
pto_worker_get_children (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  return worker->shown;
}

/**
 * pto_worker_get_n_sub_workers: (get-property n-sub-workers)
 * @worker: a worker
 *
 * Counts its SUB workers.
 *
 * Thread safety: any thread.
 *
 * Returns: a number
 *
 * Since: 0.1
 */
guint
pto_worker_get_n_sub_workers (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), 0);

  return worker->node.n_sub_workers;
}

/**
 * pto_worker_get_heap_ring_size: (get-property heap-ring-size)
 * @worker: a worker
 *
 * Gives the size of each heap ring, where they differ of the largest.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
guint64
pto_worker_get_heap_ring_size (PtoWorker *worker)
{
  guint64 size;

  g_return_val_if_fail (PTO_IS_WORKER (worker), 0);

  g_mutex_lock (&worker->lock);
  size = worker->params.values[PTO_PARAMETER_HEAP];
  g_mutex_unlock (&worker->lock);
  return size;
}

/**
 * pto_worker_get_isolate: (get-property isolate)
 * @worker: a worker
 *
 * Asks whether its chip is a process of its own.
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if it is, or will be
 *
 * Since: 0.1
 */
gboolean
pto_worker_get_isolate (PtoWorker *worker)
{
  gboolean isolate;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);

  g_mutex_lock (&worker->lock);
  isolate = pto_worker_wants_isolation (worker);
  g_mutex_unlock (&worker->lock);
  return isolate;
}

/**
 * pto_worker_get_child_mode: (get-property child-mode)
 * @worker: a worker
 *
 * Asks whether its children are processes or threads.
 *
 * Thread safety: any thread.
 *
 * Returns: how its children run
 *
 * Since: 0.1
 */
PtoChildMode
pto_worker_get_child_mode (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), PTO_CHILD_MODE_PROCESS);

  return worker->node.child_mode;
}

/**
 * pto_worker_get_restart: (get-property restart)
 * @worker: a worker
 *
 * Asks what follows when a child has died.
 *
 * Thread safety: any thread.
 *
 * Returns: whether it is started again
 *
 * Since: 0.1
 */
PtoRestart
pto_worker_get_restart (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), PTO_RESTART_NEVER);

  return worker->node.restart;
}

/**
 * pto_worker_dup_path: (get-property path)
 * @worker: a worker
 *
 * Gives its place in the tree, as messages name it: `L4/0/L3/1`. The root is numbered by its device
 * id, all others by their id; a SUB worker is `sub0` behind the path of the one above it.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a path
 *
 * Since: 0.1
 */
char *
pto_worker_dup_path (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  return pto_tree_node_dup_path (&worker->node);
}

/* What belongs to a function that a new worker is given. FALSE: it has started. Lets go of the data
 * that is not its own any more, or never is. */
static gboolean
take_data (PtoWorker *worker, gpointer *place, GDestroyNotify *place_destroy, gpointer data,
           GDestroyNotify destroy)
{
  gpointer unused = data;
  GDestroyNotify free_unused = destroy;
  gboolean is_new;

  g_mutex_lock (&worker->lock);
  is_new = worker->state == PTO_WORKER_STATE_NEW;
  if (is_new)
    {
      unused = *place;
      free_unused = *place_destroy;
      *place = data;
      *place_destroy = destroy;
    }
  g_mutex_unlock (&worker->lock);
  if (free_unused != NULL)
    free_unused (unused);
  return is_new;
}

/**
 * pto_worker_set_fork_func:
 * @worker: a new worker
 * @func: (scope notified) (closure user_data) (destroy destroy) (nullable): makes child processes;
 *   %NULL for fork(2)
 * @user_data: for @func
 * @destroy: for @user_data
 *
 * Says how this worker, and those below it that have no function of their own, make processes.
 *
 * Does nothing once the worker has started. Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_worker_set_fork_func (PtoWorker *worker, PtoForkFunc func, gpointer user_data,
                          GDestroyNotify destroy)
{
  g_return_if_fail (PTO_IS_WORKER (worker));

  if (take_data (worker, &worker->node.fork_data, &worker->node.fork_destroy, user_data, destroy))
    worker->node.fork = func;
}

/**
 * pto_worker_set_import_func:
 * @worker: a new worker
 * @func: (scope notified) (closure user_data) (destroy destroy) (nullable): imports functions
 * @user_data: for @func
 * @destroy: for @user_data
 *
 * Says how processes of this worker, and of those below it that have no function of their own, find
 * what was registered as an import path.
 *
 * Does nothing once the worker has started. Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_worker_set_import_func (PtoWorker *worker, PtoImportFunc func, gpointer user_data,
                            GDestroyNotify destroy)
{
  g_return_if_fail (PTO_IS_WORKER (worker));

  if (take_data (worker, &worker->node.import_data, &worker->node.import_destroy, user_data,
                 destroy))
    worker->node.import = func;
}

/**
 * pto_worker_set_default_fork_func:
 * @func: (scope notified) (closure user_data) (destroy destroy): makes child processes
 * @user_data: for @func
 * @destroy: for @user_data
 *
 * Says how workers of this process make processes that were not told otherwise, neither they nor
 * those above them; otherwise that is fork(2).
 *
 * For the binding of a language whose interpreter must know of forks, which calls this once: when
 * there is a function already, it stays, and @destroy is called at once. Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_worker_set_default_fork_func (PtoForkFunc func, gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (func != NULL);

  pto_tree_node_set_default_fork (func, user_data, destroy);
}

/**
 * pto_worker_set_default_import_func:
 * @func: (scope notified) (closure user_data) (destroy destroy): imports functions
 * @user_data: for @func
 * @destroy: for @user_data
 *
 * Says how workers of this process find what was registered as an import path, if neither they nor
 * those above them were told otherwise.
 *
 * For the binding of a language, as [func@Pto.Worker.set_default_fork_func]. Thread safety: any
 * thread.
 *
 * Since: 0.1
 */
void
pto_worker_set_default_import_func (PtoImportFunc func, gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (func != NULL);

  pto_tree_node_set_default_import (func, user_data, destroy);
}
