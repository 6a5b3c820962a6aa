/* device-code.h: what have kernels and the orchestrations of chips that functions have
 * not?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "compile/compiler.h"
#include "callable.h"
#include "pto-device-code.h"

G_BEGIN_DECLS

struct _PtoDeviceCode
{
  PtoCallable parent_instance;

  PtoLanguage language;
  char *origin; /* absolute: what the object at the path was made of, in another process; or NULL */
  char *symbol; /* of the kernel, of the orchestration's entry; NULL: not made by a constructor */
  /* Of a source, what it is compiled with; or NULL. Written with PTO_LOCK_KERNELS, as its name is.
   */
  char **include_dirs; /* absolute */
  char **compiler_flags;
  guint revision;        /* counts changes of the two above */
  PtoSourceFiles *files; /* what it was compiled from; NULL: not yet; PTO_LOCK_SOURCES */
};

struct _PtoDeviceCodeClass
{
  PtoCallableClass parent_class;
};

/* Of a source or a shared object. */
PtoCallable *pto_device_code_new_for_file (GType type, PtoCallableKind kind, const char *path,
                                           const char *symbol, GError **error);
/* What is to be compiled of it, itself or a kernel: all but the path is the job's own. */
void pto_device_code_set_job (PtoDeviceCode *part, const char *name, PtoCompilerJob *job);
/* What a part of it, itself or a kernel, was compiled from: any thread. */
void pto_device_code_keep_files (PtoDeviceCode *part, const PtoCompilerJob *job);

G_END_DECLS
