/* compiler.h: how do sources become shared objects, and what is in those?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "base/source-files.h"
#include "object-cache.h"
#include "pto-types.h"

G_BEGIN_DECLS

typedef enum
{
  PTO_LANGUAGE_C,
  PTO_LANGUAGE_CXX,
  PTO_LANGUAGE_OBJECT /* a shared object that somebody built */
} PtoLanguage;

/* One shared object to be had. The caller fills in the first part, pto_compiler_build() the second.
 */
typedef struct
{
  const char *path;  /* absolute */
  const char *label; /* begins a message: kernel "add" */
  PtoLanguage language;
  const char *entry; /* an orchestration's entry, to find out what it returns; NULL for a kernel */
  gboolean is_kernel;
  PtoCoreType core_type;  /* of a kernel */
  gboolean checks_access; /* a kernel that says what it touches (pto_access.h) */
  char **include_dirs;    /* absolute, or NULL; freed by pto_compiler_job_clear() */
  char **flags;           /* checked, or NULL; freed by pto_compiler_job_clear() */

  char *object;                   /* where the shared object is */
  guint8 digest[PTO_DIGEST_SIZE]; /* of its contents */
  gboolean was_cached;
  PtoSourceFiles *files; /* what it was made of; NULL: it was not, this time */
} PtoCompilerJob;

typedef void (*PtoCompilerProgress) (const PtoCompilerJob *job, guint done, guint total,
                                     gpointer user_data);

void pto_compiler_job_clear (PtoCompilerJob *job);

/* By the file's name; refuses other files, and files that are not what their names claim. */
gboolean pto_compiler_find_language (const char *path, PtoLanguage *language, GError **error);

/* Refuses words that are no flags, and those that make of a source something else than an object.
 * from: begins the message. */
gboolean pto_compiler_check_flags (const char *const *flags, const char *from, GError **error);
/* Code for the machine at hand. */
#define PTO_COMPILER_NATIVE "-march=native"

/* identity: of the compiler, which may know what code for the machine at hand is. command: has its
 * words; linked: gets those flags that name libraries. */
gboolean pto_compiler_add_flags (const PtoCompilerJob *job, const char *identity,
                                 gboolean knows_native, const char *api_dir, GPtrArray *command,
                                 GPtrArray *linked, GError **error);
/* Is it compiled as one that says what it touches? */
gboolean pto_compiler_says_accesses (const PtoCompilerJob *job);
/* What to do about a header that was not found, to be appended to the compiler's message; empty if
 * that says something else. */
char *pto_compiler_advise_on_header (const PtoCompilerJob *job, const char *message);

/* --- manifests: what was a source's key, if nothing that it is made from has changed? --- */

/* The name of a source's manifest. compiler: with its own words only. NULL: what decides cannot be
 * told without asking the compiler. */
char *pto_compiler_name_manifest (const PtoCompilerJob *job, GPtrArray *compiler,
                                  const char *api_dir);
/* The key in it, and the files that the source was made of. NULL: there is none, or a file has
 * changed. */
char *pto_compiler_recall_key (const char *cache_dir, const char *manifest, PtoSourceFiles **files);
/* command: with all its flags. Keeps nothing if a file may have changed since it was read. */
void pto_compiler_keep_key (const char *cache_dir, const char *manifest, const char *key,
                            PtoSourceFiles *files, GPtrArray *command);

/* --- */

/* Builds what the cache does not hold, several at once. The first error wins and ends the others.
 */
gboolean pto_compiler_build (PtoCompilerJob *jobs, guint n_jobs, PtoCompilerProgress progress,
                             gpointer user_data, GCancellable *cancellable, GError **error);

#define PTO_COMPILER_RETURNS_INT "pto2_entry_returns_int"

G_END_DECLS
