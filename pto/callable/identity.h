/* identity.h: what is a callable's name, and how is it told to others?
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
 * is small; where the contents lie travels beside it, as its sources: u32 n, then n times, in the
 * order in which the descriptor names the contents, two absolute paths, u32 size and path each: the
 * object, and what it was made of, which messages name; and how: u32 language (PtoLanguage), then
 * twice u32 n and so many words, u32 size and bytes each: the directories of its headers, and the
 * flags of its own. Who is given both hashes everything again before it loads anything.
 *
 * Source: seed 001 section 2. Thread safety: any thread.
 */
#pragma once

#include "device-code.h"
#include "registration.h"

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

/* Builds what must be built, hashes what it is made of, and names it. checks_access: kernels say
 * what they touch. progress as in pto_compiler_build(). */
PtoRegistration *pto_registration_new (PtoCallable *callable, const char *platform,
                                       gboolean checks_access, PtoCompilerProgress progress,
                                       gpointer user_data, GCancellable *cancellable,
                                       GError **error);
/* Of a kernel that has been compiled as it is. */
PtoRegistration *pto_registration_new_compiled (PtoCallable *kernel, const char *platform,
                                                const PtoCompilerJob *job);
/* Of what another process sent. Refuses a descriptor that does not hash to the digest and contents
 * that do not hash to what the descriptor says (PTO_ERROR_TAMPERED, naming which), a descriptor
 * that is not canonical (PTO_ERROR_INVALID_ARGS), another host's namespace
 * (PTO_ERROR_NOT_SUPPORTED), and a closure or a file that this process does not have
 * (PTO_ERROR_NOT_FOUND). */
PtoRegistration *pto_registration_new_from_bytes (const guint8 *digest, GBytes *descriptor,
                                                  GBytes *sources, GError **error);
/* Of a function that is known in this program only, and was perhaps made after this process? */
gboolean pto_descriptor_is_closure (GBytes *descriptor);
/* The digests of the contents that a descriptor names, one after the other, in the order of its
 * sources; it may be anybody's. */
GByteArray *pto_registration_list_contents (GBytes *descriptor, GError **error);
/* Sources that say the same, but for where the contents lie: objects, as many as there are of them,
 * absolute paths. */
GBytes *pto_registration_move_sources (GBytes *sources, GPtrArray *objects, GError **error);
/* Of kind KERNEL or CHIP: a job that is done for each object, to be loaded; the callable's own is
 * the first. */
PtoCompilerJob *pto_registration_make_jobs (PtoRegistration *registration, guint *n_jobs);
/* Likewise, a job to be done for each object: as it was compiled when it was registered. */
PtoCompilerJob *pto_registration_make_source_jobs (PtoRegistration *registration, guint *n_jobs);
/* A job that is to be done for each object of the code, which has to live as long as they; what is
 * added to it afterwards is not among them. */
PtoCompilerJob *pto_device_code_make_jobs (PtoDeviceCode *code, guint *n_jobs);
/* What one of them was made of. */
PtoDeviceCode *pto_device_code_get_part (PtoDeviceCode *code, guint object);
void pto_registration_free_jobs (PtoCompilerJob *jobs, guint n_jobs);

G_END_DECLS
