/* registry.c: which callables does a worker have, and how often?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "registry.h"

#include "base/error.h"
#include "common/text.h"
#include "callable-handle.h"

/* A callable that was registered itself. The table does not keep it: a program may make another one
 * of the same kernel for each run. */
typedef struct
{
  GWeakRef callable;
  guint64 serial; /* of the callable; another one may be at its address by now */
  PtoRegistration *registration;
} Known;

struct _PtoRegistry
{
  guint64 owner; /* immutable */

  GMutex lock;             /* guards all below, and what a registration says is the registry's */
  GCond ended;             /* a registration was committed, or a waiter was cancelled */
  GHashTable *by_digest;   /* its digest -> PtoRegistration, owned */
  GHashTable *by_callable; /* PtoCallable, maybe gone -> Known */
  guint tidy_at;           /* as many entries: those of callables that are gone are removed */
  /* By index: what was begun and is not forgotten, or NULL; not owned. Kernels have a numbering of
   * their own, which a chip limits. */
  GPtrArray *functions;
  GPtrArray *kernels;
};

static void
known_free (gpointer data)
{
  Known *known = data;

  g_weak_ref_clear (&known->callable);
  g_free (known);
}

PtoRegistry *
pto_registry_new (guint64 owner)
{
  PtoRegistry *registry = g_new0 (PtoRegistry, 1);

  registry->owner = owner;
  g_mutex_init (&registry->lock);
  g_cond_init (&registry->ended);
  registry->by_digest = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, NULL,
                                               (GDestroyNotify) pto_registration_unref);
  registry->by_callable = g_hash_table_new_full (NULL, NULL, NULL, known_free);
  registry->tidy_at = 64;
  registry->functions = g_ptr_array_new ();
  registry->kernels = g_ptr_array_new ();
  return registry;
}

void
pto_registry_free (PtoRegistry *registry)
{
  g_hash_table_unref (registry->by_callable);
  g_hash_table_unref (registry->by_digest);
  g_ptr_array_unref (registry->functions);
  g_ptr_array_unref (registry->kernels);
  g_cond_clear (&registry->ended);
  g_mutex_clear (&registry->lock);
  g_free (registry);
}

static GPtrArray *
find_slots (PtoRegistry *registry, const PtoRegistration *registration)
{
  return registration->callable->kind == PTO_CALLABLE_KERNEL ? registry->kernels
                                                             : registry->functions;
}

/* With the lock: the lowest index that is free. */
static void
give_index (PtoRegistry *registry, PtoRegistration *registration)
{
  GPtrArray *slots = find_slots (registry, registration);
  guint i = 0;

  while (i < slots->len && g_ptr_array_index (slots, i) != NULL)
    i++;
  if (i == slots->len)
    g_ptr_array_add (slots, NULL);
  g_ptr_array_index (slots, i) = registration;
  registration->index = i;
}

/* With the lock. */
static void
free_index (PtoRegistry *registry, PtoRegistration *registration)
{
  g_ptr_array_index (find_slots (registry, registration), registration->index) = NULL;
}

/* With the lock, which the last reference to a callable must not be given up with: to_unref takes
 * those that the look at them has made. */
static void
remove_gone (PtoRegistry *registry, GPtrArray *to_unref)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, registry->by_callable);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      gpointer callable = g_weak_ref_get (&((Known *) value)->callable);

      if (callable != NULL)
        g_ptr_array_add (to_unref, callable);
      else
        g_hash_table_iter_remove (&iter);
    }
}

/* With the lock. */
static void
know (PtoRegistry *registry, PtoCallable *callable, PtoRegistration *registration,
      GPtrArray *to_unref)
{
  Known *known = g_new0 (Known, 1);

  g_weak_ref_init (&known->callable, callable);
  known->serial = callable->serial;
  known->registration = registration;
  g_hash_table_replace (registry->by_callable, callable, known);
  if (g_hash_table_size (registry->by_callable) < registry->tidy_at)
    return;
  remove_gone (registry, to_unref);
  registry->tidy_at = MAX (64, 2 * g_hash_table_size (registry->by_callable));
}

static void
wake_waiters (GCancellable *cancellable, gpointer data)
{
  PtoRegistry *registry = data;

  g_mutex_lock (&registry->lock);
  g_cond_broadcast (&registry->ended);
  g_mutex_unlock (&registry->lock);
}

PtoRegistration *
pto_registry_begin (PtoRegistry *registry, PtoRegistration *fresh, gboolean may_wait,
                    GCancellable *cancellable, gboolean *is_first, GError **error)
{
  g_autoptr (GPtrArray) to_unref = g_ptr_array_new_with_free_func (g_object_unref);
  PtoRegistration *known;
  gulong handler = 0;

  *is_first = FALSE;
  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (wake_waiters), registry, NULL);
  g_mutex_lock (&registry->lock);
  for (;;)
    {
      known = g_hash_table_lookup (registry->by_digest, fresh->digest);
      if (known == NULL || known->ready || pto_error_set_if_cancelled (cancellable, error))
        break;
      if (!may_wait)
        {
          g_set_error (
              error, PTO_ERROR, PTO_ERROR_BUSY,
              _ ("another thread is registering \"%s\" just now, which may take until this "
                 "orchestration function goes on: register it before the run"),
              known->name);
          break;
        }
      g_cond_wait (&registry->ended, &registry->lock);
    }
  if (known == NULL)
    {
      known = fresh;
      known->handle = pto_callable_handle_new (registry->owner, known->callable, known->digest);
      known->count = 1;
      give_index (registry, known);
      g_hash_table_insert (registry->by_digest, known->digest, pto_registration_ref (known));
      *is_first = TRUE;
    }
  else if (known->ready)
    {
      known->count++;
      know (registry, fresh->callable, known, to_unref);
    }
  else
    known = NULL;
  if (known != NULL)
    {
      g_atomic_int_set (&known->idempotent, fresh->callable->idempotent);
      pto_registration_ref (known);
    }
  g_mutex_unlock (&registry->lock);
  g_cancellable_disconnect (cancellable, handler);
  return known;
}

void
pto_registry_commit (PtoRegistry *registry, PtoRegistration *registration, gboolean added)
{
  g_autoptr (GPtrArray) to_unref = g_ptr_array_new_with_free_func (g_object_unref);

  g_mutex_lock (&registry->lock);
  if (added)
    {
      registration->ready = TRUE;
      know (registry, registration->callable, registration, to_unref);
    }
  else
    {
      free_index (registry, registration);
      /* The caller has a reference. */
      g_hash_table_remove (registry->by_digest, registration->digest);
    }
  g_cond_broadcast (&registry->ended);
  g_mutex_unlock (&registry->lock);
}

/* With the lock. */
static PtoRegistration *
lookup (PtoRegistry *registry, PtoCallableHandle *handle, GError **error)
{
  gboolean is_own = pto_callable_handle_get_owner (handle) == registry->owner;
  PtoRegistration *registration = NULL;

  if (is_own)
    registration = g_hash_table_lookup (registry->by_digest, pto_callable_handle_peek (handle));
  if (registration != NULL && registration->ready)
    return registration;
  g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
               _ ("\"%s\" is not registered on this worker%s"),
               pto_callable_get_name (pto_callable_handle_get_callable (handle)),
               is_own ? _ (" any more") : _ (": its handle is of another worker"));
  return NULL;
}

static gboolean
is_registration (gpointer key, gpointer value, gpointer user_data)
{
  return ((Known *) value)->registration == user_data;
}

PtoRegistration *
pto_registry_release (PtoRegistry *registry, PtoCallableHandle *handle, gboolean *is_last,
                      GError **error)
{
  PtoRegistration *registration;

  g_mutex_lock (&registry->lock);
  registration = lookup (registry, handle, error);
  if (registration != NULL)
    pto_registration_ref (registration);
  *is_last = registration != NULL && --registration->count == 0;
  if (*is_last)
    {
      registration->ready = FALSE;
      g_hash_table_foreach_remove (registry->by_callable, is_registration, registration);
      g_hash_table_remove (registry->by_digest, registration->digest);
    }
  g_mutex_unlock (&registry->lock);
  return registration;
}

void
pto_registry_forget (PtoRegistry *registry, PtoRegistration *registration)
{
  g_mutex_lock (&registry->lock);
  free_index (registry, registration);
  g_mutex_unlock (&registry->lock);
}

void
pto_registry_clear (PtoRegistry *registry, GPtrArray *removed)
{
  GHashTableIter iter;
  gpointer value;

  g_mutex_lock (&registry->lock);
  g_hash_table_remove_all (registry->by_callable);
  g_hash_table_iter_init (&iter, registry->by_digest);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      PtoRegistration *registration = value;

      /* One that is being added is its caller's, who will find the worker closed. */
      if (!registration->ready)
        continue;
      registration->ready = FALSE;
      registration->count = 0;
      g_ptr_array_add (removed, pto_registration_ref (registration));
      g_hash_table_iter_remove (&iter);
    }
  g_mutex_unlock (&registry->lock);
}

PtoRegistration *
pto_registry_lookup (PtoRegistry *registry, PtoCallableHandle *handle, GError **error)
{
  PtoRegistration *registration;

  g_mutex_lock (&registry->lock);
  registration = lookup (registry, handle, error);
  if (registration != NULL)
    pto_registration_ref (registration);
  g_mutex_unlock (&registry->lock);
  return registration;
}

/* With the lock. */
static PtoRegistration *
find_by_callable (PtoRegistry *registry, gconstpointer callable, guint64 serial)
{
  Known *known = g_hash_table_lookup (registry->by_callable, callable);

  return known != NULL && known->serial == serial ? known->registration : NULL;
}

gboolean
pto_registry_find_callable (PtoRegistry *registry, PtoCallable *callable, guint *index)
{
  PtoRegistration *registration;

  g_mutex_lock (&registry->lock);
  registration = find_by_callable (registry, callable, callable->serial);
  if (registration != NULL)
    *index = registration->index;
  g_mutex_unlock (&registry->lock);
  return registration != NULL;
}

gboolean
pto_registry_knows (PtoRegistry *registry, gconstpointer callable, guint64 serial)
{
  gboolean is_known;

  g_mutex_lock (&registry->lock);
  is_known = find_by_callable (registry, callable, serial) != NULL;
  g_mutex_unlock (&registry->lock);
  return is_known;
}

PtoRegistration *
pto_registry_ref_by_callable (PtoRegistry *registry, PtoCallable *callable)
{
  PtoRegistration *registration;

  g_mutex_lock (&registry->lock);
  registration = find_by_callable (registry, callable, callable->serial);
  if (registration != NULL)
    pto_registration_ref (registration);
  g_mutex_unlock (&registry->lock);
  return registration;
}

gboolean
pto_registry_find_digest (PtoRegistry *registry, const guint8 *digest, guint *index)
{
  PtoRegistration *registration;
  gboolean is_there;

  g_mutex_lock (&registry->lock);
  registration = g_hash_table_lookup (registry->by_digest, digest);
  is_there = registration != NULL && registration->ready;
  if (is_there)
    *index = registration->index;
  g_mutex_unlock (&registry->lock);
  return is_there;
}

PtoCallable *
pto_registry_ref_kernel (PtoRegistry *registry, guint index)
{
  PtoCallable *found = NULL;
  GHashTableIter iter;
  gpointer value;

  g_mutex_lock (&registry->lock);
  g_hash_table_iter_init (&iter, registry->by_digest);
  while (found == NULL && g_hash_table_iter_next (&iter, NULL, &value))
    {
      PtoRegistration *registration = value;

      if (registration->index == index && registration->callable->kind == PTO_CALLABLE_KERNEL)
        found = g_object_ref (registration->callable);
    }
  g_mutex_unlock (&registry->lock);
  return found;
}

PtoCallableHandle *
pto_registry_ref_by_name (PtoRegistry *registry, const char *name, guint *n)
{
  PtoCallableHandle *found = NULL;
  GHashTableIter iter;
  gpointer value;

  *n = 0;
  g_mutex_lock (&registry->lock);
  g_hash_table_iter_init (&iter, registry->by_digest);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      PtoRegistration *registration = value;

      if (registration->ready && g_strcmp0 (registration->name, name) == 0 && ++*n == 1)
        found = pto_callable_handle_ref (registration->handle);
    }
  g_mutex_unlock (&registry->lock);
  if (*n > 1)
    g_clear_pointer (&found, pto_callable_handle_unref);
  return found;
}

gboolean
pto_registry_is_empty (PtoRegistry *registry)
{
  gboolean is_empty;

  g_mutex_lock (&registry->lock);
  is_empty = g_hash_table_size (registry->by_digest) == 0;
  g_mutex_unlock (&registry->lock);
  return is_empty;
}
