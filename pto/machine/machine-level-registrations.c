/* machine-level-registrations.c: what do the children of a level have, and how do they come to it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What children have been told is kept here, not in the worker's registry: a callable whose last
 * registration is taken back while tasks of it are under way stays until they are done, and may be
 * registered again meanwhile.
 */
#include "config.h"

#include "machine-level.h"

#include "base/error.h"
#include "callable/callable.h"
#include "callable/function.h"
#include "common/text.h"

#include <string.h>

/* So often who waits for another thread that registers looks for what is his to do. */
#define LOOK_MS 10

/* A callable that children have. */
typedef struct
{
  PtoRegistration *registration;
  PtoTargets targets;  /* who is to have it, if not all who can run it */
  gboolean is_partial; /* not all */
  guint count;         /* registrations of that digest that are to be removed some time; 0: it was
                        * dropped, and who is starting may have it still */
  gboolean telling;    /* a thread is telling the children: others wait for changed */
} Known;

static void
known_free (gpointer data)
{
  Known *known = data;

  pto_registration_unref (known->registration);
  g_free (known);
}

gboolean
pto_machine_level_accepts (PtoMachine *machine, PtoCallable *callable, GError **error)
{
  /* GJS calls no function on a thread that it does not know, and its collector waits for ever in a
   * forked process, for threads that are not there. */
  if (callable->kind == PTO_CALLABLE_SUB && pto_callable_is_javascript (callable))
    return pto_refuse (
        error, PTO_ERROR_NOT_SUPPORTED,
        _ ("\"%s\" is a function of JavaScript, which no SUB worker can call, be it a process "
           "or a thread: a function of a C library can be one "
           "(Pto.ImportedFunction.new_for_symbol()), and so can a task of a chip"),
        callable->name);
  if (callable->kind != PTO_CALLABLE_KERNEL)
    return TRUE;
  return pto_refuse (error, PTO_ERROR_NOT_SUPPORTED,
                     _ ("\"%s\" is a kernel, and a worker of level %u has no cores: register an "
                        "orchestration that submits it, made by pto_chip_orchestration_new()"),
                     callable->name, machine->node->level);
}

const char *
pto_machine_level_get_name (void *data, uint32_t index)
{
  LevelMachine *self = data;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->parent.lock);

  return index < self->names->len ? g_ptr_array_index (self->names, index) : NULL;
}

/* Can that one run it, of SUB workers or of others? */
static gboolean
can_run (const PtoTreeNode *node, PtoCallableKind kind, guint number)
{
  return kind == PTO_CALLABLE_SUB
         || (kind == PTO_CALLABLE_CHIP) == (pto_tree_node_peek_child (node, number)->level == 2);
}

/* The children that can run it, or those of them. */
static struct pto_level_targets
find_targets (LevelMachine *self, const PtoRegistration *registration, const PtoTargets *only)
{
  const PtoTreeNode *node = self->parent.node;
  PtoCallableKind kind = registration->callable->kind;
  guint n = kind == PTO_CALLABLE_SUB ? node->n_sub_workers : node->children->len;
  struct pto_level_targets targets = { { 0 } };

  for (guint i = 0; i < n; i++)
    if (can_run (node, kind, i) && (only == NULL || pto_targets_have (only, i)))
      pto_level_add_target (&targets, kind == PTO_CALLABLE_SUB ? node->children->len + i : i);
  return targets;
}

/* A registration under way. */
typedef struct
{
  LevelMachine *self;
  PtoRegistration *registration;
  const PtoTargets *targets; /* NULL: all */
  gboolean extends;          /* it is registered already, but not there */
  GCancellable *cancellable;
  const PtoMachineRun *run; /* whose function makes it; or NULL */
  GError *error;
  gboolean added;
} Adding;

static bool
is_unwanted (void *data)
{
  const Adding *adding = data;

  return g_cancellable_is_cancelled (adding->cancellable)
         || (adding->run != NULL && adding->run->is_cancelled (adding->run->data));
}

static gboolean
can_be_sent (PtoCallable *callable, const PtoTreeNode *child)
{
  const PtoClosure *closure = pto_callable_get_closure (callable);

  return child->remote == NULL || closure == NULL
         || (closure->import_path != NULL
             && (child->remote->sends_serialized
                 || !g_str_has_prefix (closure->import_path, PTO_SERIALIZED_PYTHON)));
}

/* No other life would have it, and that would be without all that is kept there. */
static void
leave_out_others (LevelMachine *self, PtoCallable *callable, struct pto_level_targets *targets)
{
  for (guint i = 0; i < self->parent.node->children->len; i++)
    if (!can_be_sent (callable, pto_tree_node_peek_child (self->parent.node, i)))
      targets->bits[i / 64] &= ~(G_GUINT64_CONSTANT (1) << (i % 64));
}

/* Tells every child that is to have it: all of them have it afterwards, or none, but for one that
 * was begun meanwhile. */
static gboolean
tell (Adding *adding, struct pto_level *level, const PtoTargets *only)
{
  const PtoRegistration *registration = adding->registration;
  g_autoptr (GBytes) body = pto_child_pack_registration (
      registration->descriptor, registration->sources, adding->targets != NULL);
  struct pto_report report = { 0 };
  struct pto_level_targets targets = find_targets (adding->self, registration, only);
  gsize size;
  gconstpointer data = g_bytes_get_data (body, &size);
  enum pto_status status
      = pto_level_control (level, PTO_REQUEST_REGISTER, &targets, registration->digest, data, size,
                           is_unwanted, adding, &report);

  if ((int) status == PTO_ERROR_NOT_FOUND
      && registration->callable->source == PTO_CALLABLE_SOURCE_CLOSURE)
    {
      /* Its function was made after those processes: they have it when they are forked again. */
      memset (&report, 0, sizeof report);
      leave_out_others (adding->self, registration->callable, &targets);
      status = pto_level_renew (level, &targets, is_unwanted, adding, &report);
    }
  return pto_error_set_from_report (&adding->error, status, &report);
}

/* With the lock, which is let go of between the two: level stays meanwhile. */
static void
begin_use (LevelMachine *self)
{
  self->users++;
  g_mutex_unlock (&self->parent.lock);
}

static void
end_use (LevelMachine *self)
{
  g_mutex_lock (&self->parent.lock);
  if (--self->users == 0)
    g_cond_broadcast (&self->changed);
}

/* With the lock. Who does not have it takes no notice. */
static void
untell (LevelMachine *self, Known *known, const PtoTargets *only)
{
  struct pto_report ignored = { 0 };
  struct pto_level_targets targets = find_targets (self, known->registration, only);
  struct pto_level *level = self->level;

  if (level == NULL)
    return;
  known->telling = TRUE;
  begin_use (self);
  pto_level_control (level, PTO_REQUEST_UNREGISTER, &targets, known->registration->digest, NULL, 0,
                     NULL, NULL, &ignored);
  end_use (self);
  known->telling = FALSE;
}

/* With the lock: no child is to have it any more. Those that are starting are told by end_start().
 */
static void
drop_known (LevelMachine *self, Known *known)
{
  /* From here on no child is born with it. */
  known->count = 0;
  if (self->starting)
    return;
  untell (self, known, known->is_partial ? &known->targets : NULL);
  g_hash_table_remove (self->known, known->registration->digest);
}

/* With the lock. Another thread may be telling: only as long as this is wanted. Whoever it tells
 * may be lost, and be for the caller to begin again. */
static Known *
find_known (LevelMachine *self, const guint8 *digest, const Adding *adding)
{
  Known *known;

  while ((known = g_hash_table_lookup (self->known, digest)) != NULL && known->telling
         && !(adding != NULL && is_unwanted ((void *) adding)))
    {
      struct pto_level *level = self->level;

      if (level != NULL)
        {
          begin_use (self);
          pto_level_begin_lost (level);
          end_use (self);
        }
      g_cond_wait_until (&self->changed, &self->parent.lock,
                         g_get_monotonic_time () + LOOK_MS * G_TIME_SPAN_MILLISECOND);
    }
  return known;
}

/* With the lock: known before the children are told, so that one that is forked from here on has it
 * from birth. */
static void
tell_known (Adding *adding, Known *known, const PtoTargets *only)
{
  LevelMachine *self = adding->self;
  struct pto_level *level;

  known->telling = TRUE;
  while (self->starting && !g_cancellable_is_cancelled (adding->cancellable))
    g_cond_wait (&self->changed, &self->parent.lock);
  level = self->level;
  adding->added = !pto_error_set_if_cancelled (adding->cancellable, &adding->error);
  if (adding->added && level != NULL)
    {
      begin_use (self);
      adding->added = tell (adding, level, only);
      end_use (self);
    }
  known->telling = FALSE;
}

/* With the lock. */
static void
add_known (Adding *adding)
{
  Known *known = g_new0 (Known, 1);

  known->registration = pto_registration_ref (adding->registration);
  known->count = 1;
  known->is_partial = adding->targets != NULL;
  if (known->is_partial)
    known->targets = *adding->targets;
  g_hash_table_replace (adding->self->known, known->registration->digest, known);
  tell_known (adding, known, adding->targets);
  if (!adding->added)
    drop_known (adding->self, known);
}

/* With the lock: who is to have it has it already? fresh: who has not. NULL: all. */
static gboolean
have_all (const Known *known, const PtoTargets *wanted, PtoTargets *fresh)
{
  gboolean all = TRUE;

  for (guint i = 0; i < G_N_ELEMENTS (fresh->bits); i++)
    {
      fresh->bits[i]
          = (wanted != NULL ? wanted->bits[i] : ~G_GUINT64_CONSTANT (0)) & ~known->targets.bits[i];
      all = all && fresh->bits[i] == 0;
    }
  return all || !known->is_partial;
}

/* With the lock: more are to have it, and have it all, or none of them. As with the first ones,
 * those that are forked meanwhile have it from birth, and whoever was born with it is told when it
 * is taken back. */
static void
extend_known (Adding *adding, Known *known)
{
  LevelMachine *self = adding->self;
  const Known before = *known;
  PtoTargets fresh;

  adding->added = have_all (known, adding->targets, &fresh);
  if (adding->added)
    return;
  known->is_partial = adding->targets != NULL;
  for (guint i = 0; i < G_N_ELEMENTS (fresh.bits); i++)
    known->targets.bits[i] |= fresh.bits[i];
  /* Who has it already says yes to that, and would forget it if it were taken back: it is not
   * asked.
   */
  tell_known (adding, known, &fresh);
  if (adding->added)
    return;
  known->is_partial = before.is_partial;
  known->targets = before.targets;
  untell (self, known, &fresh);
}

static void
wake_waiters (GCancellable *cancellable, gpointer data)
{
  LevelMachine *self = data;

  g_mutex_lock (&self->parent.lock);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->parent.lock);
}

/* With the lock: who submits from here on finds them. */
static void
publish (Adding *adding, const Known *known)
{
  const PtoTargets *own = pto_registration_peek_targets (adding->registration);
  PtoTargets all;

  if (own == NULL)
    return;
  all = *own;
  for (guint i = 0; adding->targets != NULL && i < G_N_ELEMENTS (all.bits); i++)
    all.bits[i] |= adding->targets->bits[i];
  pto_registration_set_targets (adding->registration, adding->targets != NULL ? &all : NULL);
  /* What a worker that is brought up elsewhere is told (list_known()). */
  if (known->registration != adding->registration)
    pto_registration_set_targets (known->registration, known->is_partial ? &known->targets : NULL);
}

static void
add (gpointer data)
{
  Adding *adding = data;
  LevelMachine *self = adding->self;
  PtoRegistration *registration = adding->registration;
  gulong handler = 0;
  Known *known;

  if (adding->cancellable != NULL)
    handler = g_cancellable_connect (adding->cancellable, G_CALLBACK (wake_waiters), self, NULL);
  g_mutex_lock (&self->parent.lock);
  known = find_known (self, registration->digest, adding);
  if (!pto_error_set_if_cancelled (adding->cancellable, &adding->error) && known != NULL
      && known->telling)
    g_set_error_literal (&adding->error, G_IO_ERROR, G_IO_ERROR_CANCELLED,
                         _ ("the registration was cancelled"));
  if (adding->error == NULL)
    {
      if (self->names->len <= registration->index)
        g_ptr_array_set_size (self->names, (int) registration->index + 1);
      g_ptr_array_index (self->names, registration->index)
          = (gpointer) g_intern_string (registration->callable->name);
      if (known == NULL || known->count == 0)
        add_known (adding);
      else
        {
          extend_known (adding, known);
          known->count += adding->added && !adding->extends;
        }
      if (adding->added && adding->extends)
        publish (adding, known);
    }
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->parent.lock);
  g_cancellable_disconnect (adding->cancellable, handler);
}

static void
add_in_run (gpointer data)
{
  Adding *adding = data;

  adding->run = adding->self->run;
  add (adding);
}

static gboolean
add_or_extend (Adding *adding, GError **error)
{
  const PtoTreeNode *node = adding->self->parent.node;

  /* While a run is under way only the thread that runs it begins children again. */
  if (!node->ops->call_in_run (node->worker, add_in_run, adding))
    add (adding);
  if (!adding->added)
    g_propagate_error (error, adding->error);
  return adding->added;
}

gboolean
pto_machine_level_add (PtoMachine *machine, PtoRegistration *registration,
                       GCancellable *cancellable, GError **error)
{
  Adding adding = { .self = (LevelMachine *) machine,
                    .registration = registration,
                    .targets = pto_registration_peek_targets (registration),
                    .cancellable = cancellable };

  return add_or_extend (&adding, error);
}

gboolean
pto_machine_level_extend (PtoMachine *machine, PtoRegistration *registration,
                          const PtoTargets *targets, GCancellable *cancellable, GError **error)
{
  Adding adding = { .self = (LevelMachine *) machine,
                    .registration = registration,
                    .targets = targets,
                    .extends = TRUE,
                    .cancellable = cancellable };

  return add_or_extend (&adding, error);
}

/* A function of this process that is nowhere else is told so at once, before anybody is started. */
static gboolean
check_can_be_sent (PtoCallable *callable, const PtoTreeNode *child, GError **error)
{
  if (can_be_sent (callable, child))
    return TRUE;
  g_propagate_error (error, pto_remote_spec_make_refusal (child->remote, callable->name));
  return FALSE;
}

static gboolean
name_worker (LevelMachine *self, PtoCallable *callable, int id, guint *number, GError **error)
{
  const PtoTreeNode *node = self->parent.node;
  g_autofree char *ids = NULL;
  const PtoTreeNode *child;

  if (id >= 0 && pto_tree_node_find_child (node, (guint) id, number))
    {
      child = pto_tree_node_peek_child (node, *number);
      if (can_run (node, callable->kind, *number))
        return check_can_be_sent (callable, child, error);
      return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                         _ ("\"%s\" is %s, worker %d of %s is of level %u"), callable->name,
                         pto_machine_level_describe_kind (callable->kind), id,
                         pto_tree_node_get_path (node).text, child->level);
    }
  ids = pto_tree_node_describe_ids (node);
  return pto_refuse (error, PTO_ERROR_NOT_FOUND,
                     _ ("%s has no worker %d: the ids of its workers are %s"),
                     pto_tree_node_get_path (node).text, id, ids[0] != '\0' ? ids : _ ("none"));
}

gboolean
pto_machine_level_name_targets (PtoMachine *machine, PtoCallable *callable, const int *workers,
                                gsize n_workers, PtoTargets *targets, GError **error)
{
  LevelMachine *self = (LevelMachine *) machine;
  guint n_subs = machine->node->n_sub_workers;

  memset (targets, 0, sizeof *targets);
  for (gsize i = 0; i < n_workers; i++)
    {
      guint number = (guint) workers[i];

      if (callable->kind != PTO_CALLABLE_SUB)
        {
          if (!name_worker (self, callable, workers[i], &number, error))
            return FALSE;
        }
      else if (workers[i] < 0 || number >= n_subs)
        return pto_refuse (error, PTO_ERROR_NOT_FOUND,
                           _ ("%s has no SUB worker %d: it has %u, which count from 0"),
                           pto_tree_node_get_path (machine->node).text, workers[i], n_subs);
      pto_targets_add (targets, number);
    }
  return TRUE;
}

const PtoTargets *
pto_machine_level_find_targets (LevelMachine *self, const guint8 *digest, PtoTargets *copy)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->parent.lock);
  const Known *known = g_hash_table_lookup (self->known, digest);

  if (known == NULL || !known->is_partial)
    return NULL;
  *copy = known->targets;
  return copy;
}

void
pto_machine_level_remove (PtoMachine *machine, PtoRegistration *registration)
{
  LevelMachine *self = (LevelMachine *) machine;
  Known *known;

  g_mutex_lock (&self->parent.lock);
  known = find_known (self, registration->digest, NULL);
  if (known != NULL && --known->count == 0)
    drop_known (self, known);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->parent.lock);
}

void
pto_machine_level_end_start (LevelMachine *self)
{
  GHashTableIter iter;
  gpointer value;

  g_mutex_lock (&self->parent.lock);
  self->starting = FALSE;
  g_hash_table_iter_init (&iter, self->known);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (((Known *) value)->count == 0 && !((Known *) value)->telling)
      {
        drop_known (self, value);
        g_hash_table_iter_init (&iter, self->known);
      }
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->parent.lock);
}

void
pto_machine_level_take_snapshot (LevelMachine *self)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (known_free);
  GPtrArray *before;
  GHashTableIter iter;
  gpointer value;

  g_mutex_lock (&self->parent.lock);
  g_hash_table_iter_init (&iter, self->known);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (((Known *) value)->count > 0)
      {
        Known *known = g_memdup2 (value, sizeof *known);

        pto_registration_ref (known->registration);
        g_ptr_array_add (list, known);
      }
  before = self->snapshot;
  self->snapshot = list;
  g_mutex_unlock (&self->parent.lock);
  g_clear_pointer (&before, g_ptr_array_unref);
}

void
pto_machine_level_drop_snapshot (LevelMachine *self)
{
  GPtrArray *list;

  g_mutex_lock (&self->parent.lock);
  list = g_steal_pointer (&self->snapshot);
  g_mutex_unlock (&self->parent.lock);
  g_clear_pointer (&list, g_ptr_array_unref);
}

GPtrArray *
pto_machine_level_list (gpointer data, guint child)
{
  LevelMachine *self = data;
  GPtrArray *list = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_registration_unref);
  guint n_workers = self->parent.node->children->len;

  for (guint i = 0; self->snapshot != NULL && i < self->snapshot->len; i++)
    {
      const Known *known = g_ptr_array_index (self->snapshot, i);
      gboolean is_sub = known->registration->callable->kind == PTO_CALLABLE_SUB;

      if (!known->is_partial || child == G_MAXUINT
          || (is_sub == (child >= n_workers)
              && pto_targets_have (&known->targets, is_sub ? child - n_workers : child)))
        g_ptr_array_add (list, pto_registration_ref (known->registration));
    }
  return list;
}

void
pto_machine_level_init_known (LevelMachine *self)
{
  self->known = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, NULL, known_free);
  self->names = g_ptr_array_new ();
}

void
pto_machine_level_clear_known (LevelMachine *self)
{
  g_hash_table_unref (self->known);
  g_ptr_array_unref (self->names);
  g_clear_pointer (&self->snapshot, g_ptr_array_unref);
}
