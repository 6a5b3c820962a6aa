/* loaded-object.h: how does a shared object get into this process, and is it the right one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of what was built the bytes are read once, compared with their digest, and loaded from a copy
 * that nobody else has and that can not change: whatever becomes of the file, now or later, what
 * runs is what was named. The same contents are loaded once in a process, stay there until it ends,
 * and share what is static.
 *
 * A library of the program is loaded from where it lies, and so is found by what else uses it, and
 * finds what lies beside it; it is compared with its digest afterwards.
 *
 * Thread safety: any thread.
 */
#pragma once

#include "compiler.h"

G_BEGIN_DECLS

typedef struct _PtoModule PtoModule;

/* The object of a job that is done. PTO_ERROR_TAMPERED, PTO_ERROR_LOAD, PTO_ERROR_SYSTEM. */
PtoModule *pto_module_load (const PtoCompilerJob *job, GError **error);
/* It stays loaded; only its descriptor is closed when no user is left. */
void pto_module_release (PtoModule *module);
/* Different objects that this process has loaded so far. */
guint pto_module_count_loaded (void);
/* NULL: it exports no such thing. */
gpointer pto_module_look_up (PtoModule *module, const char *symbol);
/* May a kernel of it write without saying so, though it says what it touches? */
gboolean pto_module_hides_stores (PtoModule *module);
/* May a kernel of it see what others write to memory while it runs, or tell them something? */
gboolean pto_module_talks (PtoModule *module);
/* Does it have, or use, thread-local variables, errno among them, or thread-specific data, so that
 * only a thread of the core can keep them for the core? */
gboolean pto_module_needs_thread (PtoModule *module);
/* The functions that are called, as messages name them. */
#define PTO_MODULE_KERNEL "(int64_t *)"
#define PTO_MODULE_ENTRY "(PTO2Runtime *, uint64_t *, int)"
#define PTO_MODULE_CONFIG "(uint64_t *, int)"
/* Exported by a kernel that says what it touches. */
#define PTO_MODULE_ACCESS_SYMBOL "pto2_access_table_2"
#define PTO_MODULE_CONFIG_SYMBOL "aicpu_orchestration_config"
/* Names file and symbol when it is not exported. */
gpointer pto_module_find_symbol (PtoModule *module, const PtoCompilerJob *job, const char *symbol,
                                 const char *signature, GError **error);
/* Of an object that nobody has loaded: the same words. */
void pto_module_set_missing (const PtoCompilerJob *job, const char *symbol, const char *signature,
                             GError **error);

/* After dlopen() of a library by its path: is what was loaded what had that digest? The file may
 * have been another one between the two; and the loader gives what it has under that name already.
 * PTO_ERROR_TAMPERED, PTO_ERROR_LOAD. */
gboolean pto_module_check_library (const char *path, const guint8 *digest, const char *name,
                                   gpointer library, GError **error);

G_END_DECLS
