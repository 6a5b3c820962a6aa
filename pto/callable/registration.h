/* registration.h: what does a worker keep of a callable that it has?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the callable is named by and made of (identity.h), how often it was registered,
 * and what a machine has loaded of it. Thread safety: any thread, but for what says so.
 */
#pragma once

#include "compile/compiler.h"
#include "callable.h"
#include "pto-callable-handle.h"
#include "pto-function.h"

G_BEGIN_DECLS

/* Some of the workers below one, by their numbers: SUB workers of a SUB function, others of
 * anything else. Immutable once others see it. */
typedef struct
{
  guint64 bits[PTO_MAX_CHILDREN / 64];
} PtoTargets;

static inline gboolean
pto_targets_have (const PtoTargets *targets, guint number)
{
  return number < PTO_MAX_CHILDREN && (targets->bits[number / 64] >> (number % 64) & 1) != 0;
}

static inline void
pto_targets_add (PtoTargets *targets, guint number)
{
  if (number < PTO_MAX_CHILDREN)
    targets->bits[number / 64] |= G_GUINT64_CONSTANT (1) << (number % 64);
}

/* A callable that a worker has. Counted by g_atomic_rc_box; immutable but for what says so. */
typedef struct
{
  guint8 digest[PTO_DIGEST_SIZE];
  char *name; /* the callable's, when it was registered */
  GBytes *descriptor;
  GBytes *sources;
  GPtrArray *objects;   /* char *, the paths in sources */
  GByteArray *contents; /* a digest of each */
  PtoCallable *callable;
  PtoTargetNamespace target;

  /* Of the registry, under its lock; handle and index do not change once begin() has given it. */
  PtoCallableHandle *handle;
  guint index;    /* a private slot: what tasks of this worker's engine name it by */
  guint count;    /* registrations that have not been released */
  gboolean ready; /* it can be found */
  /* As the callable said when it was last registered. W: under the lock; R: any thread. Atomic. */
  gint idempotent;

  /* Who has it; NULL: all who can run it. Atomic; W: whoever has made the registration, then the
   * machine, release, when more have it; R: who submits, acquire. */
  PtoTargets *targets;
  GPtrArray
      *old_targets; /* that somebody may be reading; or NULL. W: the machine, under its lock */

  /* Of the machine: objects, entries. Written by add(), before anybody else can find it. */
  gpointer loaded;
  GDestroyNotify free_loaded;

  /* Of pto_registration_resolve(). */
  GCallback function; /* a PtoSubFunc or a PtoOrchestrationFunc; NULL: not found yet */
  gpointer function_data;
  gboolean is_native;    /* see pto_function_is_native() */
  gpointer module;       /* of a symbol */
  PtoCallable *imported; /* of an import path */
} PtoRegistration;

/* Consumes descriptor, sources, objects and contents. */
PtoRegistration *pto_registration_take (PtoCallable *callable, const char *name,
                                        PtoTargetNamespace target, GBytes *descriptor,
                                        GBytes *sources, GPtrArray *objects, GByteArray *contents);
/* NULL: all. */
static inline const PtoTargets *
pto_registration_peek_targets (const PtoRegistration *registration)
{
  return (const PtoTargets *) g_atomic_pointer_get (&((PtoRegistration *) registration)->targets);
}
/* targets: NULL, or copied. One thread at a time. */
void pto_registration_set_targets (PtoRegistration *registration, const PtoTargets *targets);
PtoRegistration *pto_registration_ref (PtoRegistration *registration);
void pto_registration_unref (PtoRegistration *registration);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoRegistration, pto_registration_unref)

/* Of kind SUB or ORCHESTRATION: finds the function in this process, where it is to run. importer
 * may be NULL. By one thread at a time; does nothing when it was found already. PTO_ERROR_LOAD,
 * PTO_ERROR_NOT_SUPPORTED (an import path without importer), or the importer's error. */
gboolean pto_registration_resolve (PtoRegistration *registration, PtoImportFunc importer,
                                   gpointer importer_data, GError **error);
/* Calls a resolved SUB function. A failure always has an error. */
gboolean pto_registration_call_sub (PtoRegistration *registration, PtoTaskArgs *args,
                                    GError **error);

G_END_DECLS
