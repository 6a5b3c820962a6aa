/* pto-identity-private.h: what is a callable's name, and how is it told to others?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A callable is named by the SHA-256 of its descriptor: canonical bytes that say kind, namespace,
 * platform, contents and signature. They are the same on every machine and in every run, except for
 * a closure, which is nobody else's. All numbers are little endian:
 *
 *   offset  0: "PTO1"
 *           4: u8 kind (PtoCallableKind)
 *           5: u8 source (PtoCallableSource)
 *           6: u8 namespace (PtoTargetNamespace)
 *           7: u8 0
 *           8: u32 number of fields
 *          12: the fields: u32 tag, u32 size, that many bytes; nothing between them, nothing behind
 *
 * Which fields there are follows from kind and source; they stand in ascending order of their tags:
 *
 *   KERNEL, OBJECT                NAME, PLATFORM, KERNEL (its function id is 0)
 *   CHIP, OBJECT                  NAME, PLATFORM, SYMBOL, CONTENT, one KERNEL each, ascending ids
 *   SUB, ORCHESTRATION: SYMBOL    NAME, SYMBOL, and CONTENT of a library that was named by its path
 *                                 or LIBRARY of one that the loader has to find
 *   SUB, ORCHESTRATION: CLOSURE   NAME, CLOSURE
 *   SUB, ORCHESTRATION: IMPORT    NAME, IMPORT
 *
 * Texts are UTF-8 without a 0 behind them. Contents are named by their own SHA-256, so a descriptor
 * is small; where the contents lie travels beside it, as its sources: u32 n, then n times u32 size
 * and an absolute path, in the order in which the descriptor names the contents. Who is given both
 * hashes everything again before it loads anything.
 *
 * Source: seed 001 section 2. Thread safety: any thread.
 */
#pragma once

#include "pto-callable-handle.h"
#include "pto-callable-private.h"
#include "pto-compiler-private.h"
#include "pto-module-private.h"
#include "pto-worker.h"

G_BEGIN_DECLS

enum
{
  PTO_FIELD_NAME = 1,
  PTO_FIELD_PLATFORM = 2, /* name of the platform that the contents are for */
  PTO_FIELD_SYMBOL = 3,   /* entry, or function */
  PTO_FIELD_CONTENT = 4,  /* 32 bytes: SHA-256 of a shared object */
  PTO_FIELD_LIBRARY = 5,  /* as given */
  PTO_FIELD_IMPORT = 6,   /* module:qualname */
  PTO_FIELD_CLOSURE = 7,  /* PTO_CLOSURE_SIZE random bytes, drawn when it was made */
  PTO_FIELD_KERNEL = 8    /* u32 function id, u32 core type (PtoCoreType), 32 content, then symbol,
                           * name and cost: u32 size and text each; then u32 n and n bytes
                           * (PtoDirection, or 255 in all when only n is known), n = 2^32 - 1 and
                           * no bytes: anything goes */
};

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

  /* Of the machine: objects, entries. Written by add(), before anybody else can find it. */
  gpointer loaded;
  GDestroyNotify free_loaded;

  /* Of pto_registration_resolve(). */
  GCallback function; /* a PtoSubFunc or a PtoOrchestrationFunc; NULL: not found yet */
  gpointer function_data;
  gpointer module;       /* of a symbol */
  PtoCallable *imported; /* of an import path */
} PtoRegistration;

/* --- identity --- */

/* Builds what must be built, hashes what it is made of, and names it. progress as in
 * pto_compiler_build(). */
PtoRegistration *pto_registration_new (PtoCallable *callable, const char *platform,
                                       PtoCompilerProgress progress, gpointer user_data,
                                       GCancellable *cancellable, GError **error);
/* Of what another process sent. Refuses a descriptor that does not hash to the digest and contents
 * that do not hash to what the descriptor says (PTO_ERROR_TAMPERED, naming which), a descriptor
 * that is not canonical (PTO_ERROR_INVALID_ARGS), another host's namespace
 * (PTO_ERROR_NOT_SUPPORTED), and a closure or a file that this process does not have
 * (PTO_ERROR_NOT_FOUND). */
PtoRegistration *pto_registration_new_from_bytes (const guint8 *digest, GBytes *descriptor,
                                                  GBytes *sources, GError **error);
PtoRegistration *pto_registration_ref (PtoRegistration *registration);
void pto_registration_unref (PtoRegistration *registration);

/* Of kind KERNEL or CHIP: a job that is done for each object, to be loaded; the callable's own is
 * the first. */
PtoCompilerJob *pto_registration_make_jobs (PtoRegistration *registration, guint *n_jobs);
/* A job that is to be done for each object of a callable of kind KERNEL or CHIP, which has to live
 * as long as they; what is added to it afterwards is not among them. */
PtoCompilerJob *pto_callable_make_jobs (PtoCallable *callable, guint *n_jobs);
void pto_registration_free_jobs (PtoCompilerJob *jobs, guint n_jobs);

/* Of kind SUB or ORCHESTRATION: finds the function in this process, where it is to run. importer
 * may be NULL. By one thread at a time; does nothing when it was found already. PTO_ERROR_LOAD,
 * PTO_ERROR_NOT_SUPPORTED (an import path without importer), or the importer's error. */
gboolean pto_registration_resolve (PtoRegistration *registration, PtoImportFunc importer,
                                   gpointer importer_data, GError **error);
/* Calls a resolved SUB function. A failure always has an error. */
gboolean pto_registration_call_sub (PtoRegistration *registration, PtoTaskArgs *args,
                                    GError **error);

/* For hash tables whose keys are digests. */
guint pto_digest_hash (gconstpointer key);
gboolean pto_digest_equal (gconstpointer a, gconstpointer b);

G_END_DECLS
