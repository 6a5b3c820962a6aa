/* pto-machine-level-known.c: what do the children of a level have, and how do they come to it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What children have been told is kept here, not in the worker's registry: a callable whose last
 * registration is taken back while tasks of it are under way stays until they are done, and may be
 * registered again meanwhile.
 */
#include "config.h"

#include "pto-machine-level-private.h"

#include "pto-callable-private.h"
#include "pto-error-private.h"
#include "pto-function-private.h"
#include "pto-orchestrator-private.h"
#include "pto-text-private.h"
#include "pto-worker-private.h"

#include <string.h>

/* A callable that children have. */
typedef struct
{
  PtoRegistration *registration;
  guint count;      /* registrations of that digest that are to be removed some time; 0: it was
                     * dropped, and who is starting may have it still */
  gboolean telling; /* a thread is telling the children: others wait for changed */
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
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
          _ ("\"%s\" is a function of JavaScript, which no SUB worker can call, be it a process "
             "or a thread: a function of a C library can be one "
             "(Pto.ImportedFunction.new_for_symbol()), and so can a task of a chip"),
          callable->name);
      return FALSE;
    }
  if (callable->kind != PTO_CALLABLE_KERNEL)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
               _ ("\"%s\" is a kernel, and a worker of level %u has no cores: register an "
                  "orchestration that submits it, made by pto_chip_orchestration_new()"),
               callable->name, machine->worker->level);
  return FALSE;
}

/* With the lock. */
static GPtrArray *
list_known (LevelMachine *self)
{
  GPtrArray *list = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_registration_unref);
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->known);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      Known *known = value;

      if (known->count > 0)
        g_ptr_array_add (list, pto_registration_ref (known->registration));
    }
  return list;
}

GPtrArray *
pto_machine_level_list_known (PtoMachine *machine)
{
  LevelMachine *self = (LevelMachine *) machine;
  GPtrArray *list;

  g_mutex_lock (&self->parent.lock);
  list = list_known (self);
  g_mutex_unlock (&self->parent.lock);
  return list;
}

const char *
pto_machine_level_get_name (void *data, uint32_t index)
{
  LevelMachine *self = data;
  const char *name = NULL;

  g_mutex_lock (&self->parent.lock);
  if (index < self->names->len)
    name = g_ptr_array_index (self->names, index);
  g_mutex_unlock (&self->parent.lock);
  return name;
}

/* Levels of the children that run orchestrations, each once, as bits. */
guint64
pto_machine_level_get_worker_levels (LevelMachine *self)
{
  guint64 levels = 0;
  guint n = pto_worker_get_n_workers (self->parent.worker);

  for (guint i = 0; i < n; i++)
    {
      guint level = pto_worker_get_child (self->parent.worker, i)->level;

      if (level > 2)
        levels |= G_GUINT64_CONSTANT (1) << level;
    }
  return levels;
}

/* The children that can run it. */
static struct pto_level_targets
find_targets (LevelMachine *self, struct pto_level *level, const PtoRegistration *registration)
{
  struct pto_level_targets targets = { 0 };
  guint64 levels;

  if (registration->callable->kind == PTO_CALLABLE_SUB)
    pto_level_add_targets (level, PTO_CHILD_SUB, 0, &targets);
  else if (registration->callable->kind == PTO_CALLABLE_CHIP)
    pto_level_add_targets (level, PTO_CHILD_NEXT, 2, &targets);
  else
    {
      levels = pto_machine_level_get_worker_levels (self);
      for (guint serves = 3; serves <= PTO_MAX_LEVEL; serves++)
        if ((levels >> serves & 1) != 0)
          pto_level_add_targets (level, PTO_CHILD_NEXT, serves, &targets);
    }
  return targets;
}

/* A registration under way. */
typedef struct
{
  LevelMachine *self;
  PtoRegistration *registration;
  GCancellable *cancellable;
  PtoOrchestrator *orchestrator; /* whose function makes it; or NULL */
  GError *error;
  gboolean added;
} Adding;

static bool
is_unwanted (void *data)
{
  const Adding *adding = data;

  return g_cancellable_is_cancelled (adding->cancellable)
         || (adding->orchestrator != NULL && pto_orchestrator_is_cancelled (adding->orchestrator));
}

/* Tells every child that can run it: all of them have it afterwards, or none, but for one that was
 * begun meanwhile. */
static gboolean
tell (Adding *adding, struct pto_level *level)
{
  const PtoRegistration *registration = adding->registration;
  g_autoptr (GBytes) body
      = pto_child_pack_registration (registration->descriptor, registration->sources);
  struct pto_report report = { 0 };
  struct pto_level_targets targets = find_targets (adding->self, level, registration);
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
      status = pto_level_renew (level, &targets, is_unwanted, adding, &report);
    }
  if (status != PTO_OK)
    pto_error_set_from_report (&adding->error, status, &report);
  return status == PTO_OK;
}

/* Who does not have it takes no notice. */
static void
untell (LevelMachine *self, struct pto_level *level, const PtoRegistration *registration)
{
  struct pto_report ignored = { 0 };
  struct pto_level_targets targets = find_targets (self, level, registration);

  pto_level_control (level, PTO_REQUEST_UNREGISTER, &targets, registration->digest, NULL, 0, NULL,
                     NULL, &ignored);
}

/* With the lock: no child is to have it any more. Those that are starting are told by end_start().
 */
static void
drop_known (LevelMachine *self, Known *known)
{
  struct pto_level *level = self->level;

  /* From here on no child is born with it. */
  known->count = 0;
  known->telling = !self->starting;
  if (self->starting)
    return;
  if (level != NULL)
    {
      self->users++;
      g_mutex_unlock (&self->parent.lock);
      untell (self, level, known->registration);
      g_mutex_lock (&self->parent.lock);
      self->users--;
    }
  g_hash_table_remove (self->known, known->registration->digest);
}

/* With the lock. Another thread may be telling: only until the cancellable is cancelled. */
static Known *
find_known (LevelMachine *self, const guint8 *digest, GCancellable *cancellable)
{
  Known *known;

  while ((known = g_hash_table_lookup (self->known, digest)) != NULL && known->telling
         && !g_cancellable_is_cancelled (cancellable))
    g_cond_wait (&self->changed, &self->parent.lock);
  return known;
}

/* With the lock: known before the children are told, so that one that is forked from here on has it
 * from birth. */
static void
add_known (Adding *adding)
{
  LevelMachine *self = adding->self;
  Known *known = g_new0 (Known, 1);
  struct pto_level *level;

  known->registration = pto_registration_ref (adding->registration);
  known->count = 1;
  known->telling = TRUE;
  g_hash_table_replace (self->known, known->registration->digest, known);
  while (self->starting && !g_cancellable_is_cancelled (adding->cancellable))
    g_cond_wait (&self->changed, &self->parent.lock);
  level = self->level;
  adding->added = !pto_error_set_if_cancelled (adding->cancellable, &adding->error);
  if (adding->added && level != NULL)
    {
      self->users++;
      g_mutex_unlock (&self->parent.lock);
      adding->added = tell (adding, level);
      g_mutex_lock (&self->parent.lock);
      self->users--;
    }
  known->telling = FALSE;
  if (!adding->added)
    drop_known (self, known);
}

static void
wake_waiters (GCancellable *cancellable, gpointer data)
{
  LevelMachine *self = data;

  g_mutex_lock (&self->parent.lock);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->parent.lock);
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
  known = find_known (self, registration->digest, adding->cancellable);
  if (!pto_error_set_if_cancelled (adding->cancellable, &adding->error))
    {
      if (self->names->len <= registration->index)
        g_ptr_array_set_size (self->names, (int) registration->index + 1);
      g_ptr_array_index (self->names, registration->index)
          = (gpointer) g_intern_string (registration->callable->name);
      adding->added = known != NULL && known->count > 0;
      if (adding->added)
        known->count++;
      else
        add_known (adding);
    }
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->parent.lock);
  g_cancellable_disconnect (adding->cancellable, handler);
}

gboolean
pto_machine_level_add (PtoMachine *machine, PtoRegistration *registration,
                       GCancellable *cancellable, GError **error)
{
  Adding adding = { .self = (LevelMachine *) machine,
                    .registration = registration,
                    .cancellable = cancellable,
                    .orchestrator = pto_worker_get_own_orchestrator (machine->worker) };

  /* While a run is under way only the thread that runs it begins children again. */
  if (adding.orchestrator != NULL)
    pto_orchestrator_call (adding.orchestrator, add, &adding);
  else
    add (&adding);
  if (!adding.added)
    g_propagate_error (error, adding.error);
  return adding.added;
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
  GPtrArray *list;
  GPtrArray *before;

  g_mutex_lock (&self->parent.lock);
  list = list_known (self);
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
pto_machine_level_list (gpointer data)
{
  LevelMachine *self = data;

  return self->snapshot != NULL ? g_ptr_array_ref (self->snapshot)
                                : g_ptr_array_new_with_free_func (NULL);
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
