/* registry.h: which callables does a worker have, and how often?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Thread safety: any thread; lock order: worker > registry.
 */
#pragma once

#include "registration.h"

G_BEGIN_DECLS

typedef struct _PtoRegistry PtoRegistry;

/* owner: the serial number of the worker. */
PtoRegistry *pto_registry_new (guint64 owner);
void pto_registry_free (PtoRegistry *registry);

/* Counts the one that has the digest of fresh, or takes fresh in with count 1. Gives a reference on
 * the one that is there; *is_first: the caller has to add it to the machine and to commit. While it
 * is being added others with the same digest wait here, or, if they may not, are refused
 * (PTO_ERROR_BUSY). NULL: that, or cancelled. */
PtoRegistration *pto_registry_begin (PtoRegistry *registry, PtoRegistration *fresh,
                                     gboolean may_wait, GCancellable *cancellable,
                                     gboolean *is_first, GError **error);
/* The machine has added it, so that it can be found; or it has not, then it is out again. */
void pto_registry_commit (PtoRegistry *registry, PtoRegistration *registration, gboolean added);
/* One less. *is_last: nobody can find it any more; remove it from the machine once nothing uses it,
 * then forget it. PTO_ERROR_NOT_FOUND. Gives a reference. */
PtoRegistration *pto_registry_release (PtoRegistry *registry, PtoCallableHandle *handle,
                                       gboolean *is_last, GError **error);
/* Its index can be another's. */
void pto_registry_forget (PtoRegistry *registry, PtoRegistration *registration);
/* As if the last of every one were released; appends references to removed. */
void pto_registry_clear (PtoRegistry *registry, GPtrArray *removed);

/* A reference, or NULL with PTO_ERROR_NOT_FOUND. */
PtoRegistration *pto_registry_lookup (PtoRegistry *registry, PtoCallableHandle *handle,
                                      GError **error);
/* By a callable that was registered itself, not an equal one. */
gboolean pto_registry_find_callable (PtoRegistry *registry, PtoCallable *callable, guint *index);
/* The same: a reference; NULL: it is not there. */
PtoRegistration *pto_registry_ref_by_callable (PtoRegistry *registry, PtoCallable *callable);
/* Of one that may be gone. */
gboolean pto_registry_knows (PtoRegistry *registry, gconstpointer callable, guint64 serial);
/* What has that digest. Its index is good for the run of whoever has taken the machine. */
gboolean pto_registry_find_digest (PtoRegistry *registry, const guint8 *digest, guint *index);
/* The kernel that has that index: a reference, or NULL. */
PtoCallable *pto_registry_ref_kernel (PtoRegistry *registry, guint index);
/* What is registered under that name: a reference to its handle; NULL: nothing is, or several are.
 */
PtoCallableHandle *pto_registry_ref_by_name (PtoRegistry *registry, const char *name, guint *n);
/* Is nothing registered, and nobody registering? */
gboolean pto_registry_is_empty (PtoRegistry *registry);

G_END_DECLS
