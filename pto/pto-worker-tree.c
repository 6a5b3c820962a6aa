/* pto-worker-tree.c: how is a worker made of other workers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Who is below whom, and what a worker needs to make processes of them. All of it is said while the
 * worker is new and stays as it is afterwards, so that whoever runs reads it without a lock.
 */
#include "config.h"

#include "pto-worker-private.h"

#include "pto-error-private.h"
#include "pto-lock-private.h"
#include "pto-platform.h"
#include "pto-text-private.h"

#include <unistd.h>

/* As many of its workers are named by a message. */
#define IDS_SHOWN 16

void
pto_worker_make_devices (PtoWorker *self)
{
  gsize n_devices = self->device_ids != NULL ? g_variant_n_children (self->device_ids) : 0;
  GVariantIter iter;
  guint32 device;

  if (n_devices > PTO_MAX_CHILDREN || self->n_sub_workers > PTO_MAX_CHILDREN - n_devices)
    {
      if (self->params_error == NULL)
        g_set_error (
            &self->params_error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
            _ ("%zu devices and %u SUB workers are too many: a worker has at most %d below it"),
            n_devices, self->n_sub_workers, PTO_MAX_CHILDREN);
      return;
    }
  if (n_devices == 0)
    return;
  if (self->level != 3)
    {
      if (self->params_error == NULL)
        g_set_error (&self->params_error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("level %u has no devices of its own: %s"), self->level,
                     self->level < 3 ? _ ("it is one") : _ ("add workers of level 3"));
      return;
    }
  g_variant_iter_init (&iter, self->device_ids);
  while (g_variant_iter_next (&iter, "u", &device))
    {
      PtoWorker *chip = g_object_new (PTO_TYPE_WORKER, "level", 2, "platform", self->platform,
                                      "device-id", device, NULL);

      chip->parent = self;
      chip->id = chip->number = self->children->len;
      /* It is below another one, whatever the environment says of chips. */
      pto_worker_choose_machine (chip);
      g_ptr_array_add (self->children, chip);
      g_list_store_append (self->model, chip);
    }
}

void
pto_worker_clear_tree (PtoWorker *self)
{
  for (guint i = 0; i < self->children->len; i++)
    ((PtoWorker *) g_ptr_array_index (self->children, i))->parent = NULL;
  g_clear_pointer (&self->children, g_ptr_array_unref);
  g_clear_object (&self->shown);
  g_clear_object (&self->model);
  g_clear_pointer (&self->device_ids, g_variant_unref);
  g_clear_pointer (&self->remote, pto_remote_spec_free);
  g_free (self->path);
  if (self->fork_destroy != NULL)
    self->fork_destroy (self->fork_data);
  if (self->import_destroy != NULL)
    self->import_destroy (self->import_data);
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
  for (guint i = n_before; i < self->children->len; i++)
    g_ptr_array_add (added, g_object_ref (g_ptr_array_index (self->children, i)));
  g_mutex_unlock (&self->lock);
  if (is_closed)
    g_list_store_remove_all (self->model);
  else
    g_list_store_splice (self->model, n_before, 0, added->pdata, added->len);
}

void
pto_worker_close_children (PtoWorker *self)
{
  for (guint i = 0; i < self->children->len; i++)
    pto_worker_close (g_ptr_array_index (self->children, i));
  pto_worker_call_owner (self, update_model);
}

/* A language's way of doing something, of which a process has one at most. */
typedef struct
{
  gpointer func; /* atomic; W: once, under PTO_LOCK_DEFAULTS, behind user_data */
  gpointer user_data;
} Default;

static Default default_fork;
static Default default_import;

static void
set_default (Default *way, gpointer func, gpointer user_data, GDestroyNotify destroy)
{
  gboolean is_first;

  pto_lock (PTO_LOCK_DEFAULTS);
  is_first = way->func == NULL;
  if (is_first)
    {
      way->user_data = user_data;
      /* seq_cst: behind user_data; pairs with the load of whoever calls it. */
      g_atomic_pointer_set (&way->func, func);
    }
  pto_unlock (PTO_LOCK_DEFAULTS);
  if (!is_first && destroy != NULL)
    destroy (user_data);
}

pid_t
pto_worker_fork (PtoWorker *self)
{
  PtoForkFunc func;

  while (self->fork == NULL && self->parent != NULL)
    self = self->parent;
  if (self->fork != NULL)
    return self->fork (self->fork_data);
  func = (PtoForkFunc) g_atomic_pointer_get (&default_fork.func);
  return func != NULL ? func (default_fork.user_data) : fork ();
}

PtoCallable *
pto_worker_import (PtoWorker *self, PtoCallableKind kind, const char *path, GError **error)
{
  PtoImportFunc func;

  while (self->import == NULL && self->parent != NULL)
    self = self->parent;
  if (self->import != NULL)
    return self->import (kind, path, self->import_data, error);
  func = (PtoImportFunc) g_atomic_pointer_get (&default_import.func);
  if (func != NULL)
    return func (kind, path, default_import.user_data, error);
  g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
               _ ("\"%s\" can not be imported: no interpreter has said how, see "
                  "pto_worker_set_import_func()"),
               path);
  return NULL;
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
  g_autoptr (PtoWorker) self = NULL;
  g_autoptr (PtoPlatform) description = NULL;
  GVariantBuilder ids;

  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (level < 3 || level > PTO_MAX_LEVEL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                   _ ("level %u is no host: that is 3 to %d; one chip is 2"), level, PTO_MAX_LEVEL);
      return NULL;
    }
  if (n_devices > PTO_MAX_CHILDREN || n_sub_workers > PTO_MAX_CHILDREN)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
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
  self = g_object_new (PTO_TYPE_WORKER, "level", level, "platform",
                       pto_platform_get_name (description), "device-ids",
                       g_variant_builder_end (&ids), "n-sub-workers", n_sub_workers, NULL);
  if (self->params_error != NULL)
    {
      g_propagate_error (error, g_error_copy (self->params_error));
      return NULL;
    }
  return g_steal_pointer (&self);
}

static gboolean
refuse (GError **error, PtoError code, const char *why, PtoWorker *child)
{
  g_autofree char *path = pto_worker_dup_path (child);

  g_set_error (error, PTO_ERROR, code, _ ("%s can not be added: %s"), path, why);
  return FALSE;
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

  while (pto_worker_find_child (self, id, &number))
    id++;
  return id;
}

/* Can it be below that worker? What only the lock keeps so is looked at with it. */
static gboolean
check_child (PtoWorker *worker, PtoWorker *child, GError **error)
{
  /* Lower levels only, so that nothing is below itself. */
  if (worker->level < 3 || child->level >= worker->level)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("a worker of level %u can not be below one of level %u: a level is made of lower "
             "ones, from 3 on"),
          child->level, worker->level);
      return FALSE;
    }
  if (pto_worker_get_state (child) == PTO_WORKER_STATE_CLOSED)
    return refuse (error, PTO_ERROR_CLOSED, _ ("it is closed"), child);
  if (pto_worker_get_state (child) != PTO_WORKER_STATE_NEW)
    return refuse (error, PTO_ERROR_BUSY, _ ("it has started already"), child);
  if (child->parent != NULL)
    return refuse (error, PTO_ERROR_INVALID_ARGS, _ ("it is below a worker already"), child);
  if (worker->remote != NULL)
    return refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("the worker above it would be a remote one, which has the chips that its option "
           "devices says"),
        child);
  if (child->isolate && worker->child_mode == PTO_CHILD_MODE_THREAD)
    return refuse (error, PTO_ERROR_INVALID_ARGS,
                   _ ("it is to be a process of its own, and those below that worker are threads"),
                   child);
  if (child->is_isolated && !pto_registry_is_empty (child->registry))
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

  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               _ ("the id %u is that of %s already: each worker has one of its own"), owner->id,
               path);
  return FALSE;
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
  return child->remote != NULL ? child->remote->id : PTO_WORKER_ID_ANY;
}

/* With the lock. */
static void
put_below (PtoWorker *worker, PtoWorker *child)
{
  gint64 id = get_wanted_id (child);

  child->parent = worker;
  child->id = id != PTO_WORKER_ID_ANY ? (guint) id : find_free_id (worker);
  child->number = worker->children->len;
  pto_worker_choose_machine (child);
  g_ptr_array_add (worker->children, g_object_ref (child));
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
  is_full = worker->children->len + worker->n_sub_workers + n > PTO_MAX_CHILDREN;
  for (guint i = 0; !is_taken && i < n; i++)
    is_taken = get_wanted_id (children[i]) != PTO_WORKER_ID_ANY
               && pto_worker_find_child (worker, (guint) get_wanted_id (children[i]), &number);
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

  return worker->children->len;
}

PtoWorker *
pto_worker_peek_child (PtoWorker *self, guint number)
{
  return g_ptr_array_index (self->children, number);
}

gboolean
pto_worker_find_child (PtoWorker *self, guint id, guint *number)
{
  /* Its place, as a rule. */
  *number = id;
  if (id < self->children->len && pto_worker_peek_child (self, id)->id == id)
    return TRUE;
  for (*number = 0; *number < self->children->len; ++*number)
    if (pto_worker_peek_child (self, *number)->id == id)
      return TRUE;
  return FALSE;
}

char *
pto_worker_describe_ids (PtoWorker *self)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < self->children->len && i < IDS_SHOWN; i++)
    g_string_append_printf (text, "%s%u", i > 0 ? ", " : "", pto_worker_peek_child (self, i)->id);
  if (self->children->len > IDS_SHOWN)
    g_string_append (text, ", ...");
  return g_string_free (text, FALSE);
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

  return worker->id;
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

  return pto_worker_find_child (worker, id, &number) ? g_ptr_array_index (worker->children, number)
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

  return worker->n_sub_workers;
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

  return worker->child_mode;
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

  return worker->restart;
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
  g_autofree char *above = NULL;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  if (worker->path != NULL)
    return g_strdup (worker->path);
  if (worker->parent == NULL)
    return g_strdup_printf ("L%u/%u", worker->level, worker->device_id);
  above = pto_worker_dup_path (worker->parent);
  return g_strdup_printf ("%s/L%u/%u", above, worker->level, worker->id);
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
  GDestroyNotify before = NULL;
  gpointer data = user_data;

  g_return_if_fail (PTO_IS_WORKER (worker));

  g_mutex_lock (&worker->lock);
  if (worker->state == PTO_WORKER_STATE_NEW)
    {
      before = worker->fork_destroy;
      data = worker->fork_data;
      worker->fork = func;
      worker->fork_data = user_data;
      worker->fork_destroy = destroy;
    }
  else
    before = destroy;
  g_mutex_unlock (&worker->lock);
  if (before != NULL)
    before (data);
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
  GDestroyNotify before = NULL;
  gpointer data = user_data;

  g_return_if_fail (PTO_IS_WORKER (worker));

  g_mutex_lock (&worker->lock);
  if (worker->state == PTO_WORKER_STATE_NEW)
    {
      before = worker->import_destroy;
      data = worker->import_data;
      worker->import = func;
      worker->import_data = user_data;
      worker->import_destroy = destroy;
    }
  else
    before = destroy;
  g_mutex_unlock (&worker->lock);
  if (before != NULL)
    before (data);
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

  set_default (&default_fork, (gpointer) func, user_data, destroy);
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

  set_default (&default_import, (gpointer) func, user_data, destroy);
}
