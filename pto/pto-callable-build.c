/* pto-callable-build.c: how is a callable compiled: with what, and before a worker has it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-callable-private.h"

#include "pto-chip-orchestration-private.h"
#include "pto-error-private.h"
#include "pto-identity-private.h"
#include "pto-module-private.h"
#include "pto-object-file-private.h"

/* What is built: as the callable was when it was asked for. */
typedef struct
{
  PtoCallable *callable; /* has the paths that the jobs name */
  PtoCompilerJob *jobs;
  guint n_jobs;
  GPtrArray *symbols; /* the function that is wanted of each */
} Build;

static void
build_free (gpointer data)
{
  Build *build = data;

  pto_registration_free_jobs (build->jobs, build->n_jobs);
  g_ptr_array_unref (build->symbols);
  g_object_unref (build->callable);
  g_free (build);
}

static void
note_symbols (Build *build)
{
  GArray *kernels = build->callable->kind == PTO_CALLABLE_CHIP
                        ? PTO_CHIP_ORCHESTRATION (build->callable)->kernels
                        : NULL;

  g_ptr_array_add (build->symbols, g_strdup (build->callable->symbol));
  for (guint i = 0; kernels != NULL && i < kernels->len; i++)
    {
      PtoCallable *kernel = (PtoCallable *) g_array_index (kernels, PtoChipKernel, i).kernel;

      g_ptr_array_add (build->symbols, g_strdup (kernel->symbol));
    }
}

static Build *
build_new (PtoCallable *callable, GError **error)
{
  Build *build;

  if (!pto_callable_check_made (callable, error))
    return NULL;
  build = g_new0 (Build, 1);
  build->callable = g_object_ref (callable);
  build->symbols = g_ptr_array_new_with_free_func (g_free);
  /* There is nothing to compile of a function, and that is done. */
  if (callable->source == PTO_CALLABLE_SOURCE_OBJECT)
    {
      build->jobs = pto_callable_make_jobs (callable, &build->n_jobs);
      note_symbols (build);
    }
  return build;
}

static gboolean
check_symbol (const PtoCompilerJob *job, const char *symbol, const char *signature, GError **error)
{
  if (pto_object_file_exports (job->object, symbol))
    return TRUE;
  pto_module_set_missing (job, symbol, signature, error);
  return FALSE;
}

/* What a worker would look for in it. Nothing is loaded for that: it may be for another process. */
static gboolean
check_symbols (const Build *build, GError **error)
{
  gboolean is_kernel = build->callable->kind == PTO_CALLABLE_KERNEL;

  if (!is_kernel
      && (!check_symbol (&build->jobs[0], g_ptr_array_index (build->symbols, 0), PTO_MODULE_ENTRY,
                         error)
          || !check_symbol (&build->jobs[0], PTO_MODULE_CONFIG_SYMBOL, PTO_MODULE_CONFIG, error)))
    return FALSE;
  for (guint i = is_kernel ? 0 : 1; i < build->n_jobs; i++)
    if (!check_symbol (&build->jobs[i], g_ptr_array_index (build->symbols, i), PTO_MODULE_KERNEL,
                       error))
      return FALSE;
  return TRUE;
}

static gboolean
build_run (Build *build, GCancellable *cancellable, GError **error)
{
  if (build->n_jobs == 0)
    return !pto_error_set_if_cancelled (cancellable, error);
  return pto_compiler_build (build->jobs, build->n_jobs, NULL, NULL, cancellable, error)
         && check_symbols (build, error);
}

/* --- with what --- */

/* Nothing else is compiled. */
static gboolean
check_is_source (PtoCallable *callable, GError **error)
{
  if (callable->source == PTO_CALLABLE_SOURCE_OBJECT && callable->path != NULL
      && callable->language != PTO_LANGUAGE_OBJECT)
    return TRUE;
  pto_error_set (
      error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
      "\"%s\" is not made from a source: there is nothing to compile, and flags for that "
      "have no effect",
      callable->name);
  return FALSE;
}

/* NULL for an empty one. */
static char **
dup_words (const char *const *words)
{
  return words != NULL && words[0] != NULL ? g_strdupv ((char **) words) : NULL;
}

/**
 * pto_callable_set_include_dirs:
 * @callable: a callable
 * @dirs: (array zero-terminated=1) (element-type filename) (nullable): directories; %NULL: none
 * @error: where to say why not
 *
 * Says where the headers are that a source includes, in the order in which they are looked for:
 * behind the directory of the source itself, before libpto's own headers and those of
 * `PTO_ISA_ROOT`.
 *
 * For the kernels of an orchestration it says nothing: each has its own. Fails with
 * %PTO_ERROR_NOT_FOUND (no such directory) or %PTO_ERROR_INVALID_ARGS (not made from a source).
 * Thread safety: one thread at a time.
 *
 * Returns: %TRUE if it was set
 *
 * Since: 0.1
 */
gboolean
pto_callable_set_include_dirs (PtoCallable *callable, const char *const *dirs, GError **error)
{
  g_autoptr (GPtrArray) found = NULL;

  g_return_val_if_fail (PTO_IS_CALLABLE (callable), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_is_source (callable, error))
    return FALSE;
  found = g_ptr_array_new_null_terminated (0, g_free, TRUE);
  for (; dirs != NULL && *dirs != NULL; dirs++)
    {
      if (!g_file_test (*dirs, G_FILE_TEST_IS_DIR))
        {
          pto_error_set (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
                         "\"%s\": %s: there is no such directory to include from", callable->name,
                         *dirs);
          return FALSE;
        }
      g_ptr_array_add (found, g_canonicalize_filename (*dirs, NULL));
    }
  g_strfreev (callable->include_dirs);
  callable->include_dirs = dup_words ((const char *const *) found->pdata);
  return TRUE;
}

/**
 * pto_callable_get_include_dirs:
 * @callable: a callable
 *
 * Gives where the headers are that a source includes, as it was set.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (array zero-terminated=1) (element-type filename) (transfer none) (nullable): absolute
 * paths; %NULL: none
 *
 * Since: 0.1
 */
const char *const *
pto_callable_get_include_dirs (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);

  return (const char *const *) callable->include_dirs;
}

/**
 * pto_callable_set_compiler_flags:
 * @callable: a callable
 * @flags: (array zero-terminated=1) (nullable): flags, one a word, such as `-std=c++20` or
 * `-DTILE=64`; %NULL: none
 * @error: where to say why not
 *
 * Says with which flags of the compiler a source is compiled, behind libpto's own and those that
 * `CFLAGS` (for C) or `CXXFLAGS` (for C++) has: where two contradict each other, the later one
 * holds.
 *
 * For the kernels of an orchestration it says nothing: each has its own. What is compiled with
 * other flags is another object; with flags that name libraries (`-l`, `-L`, `-Wl,`) it is compiled
 * each time. Fails with %PTO_ERROR_INVALID_ARGS for what is no flag, for flags that say what is
 * made or where (such as `-c` and `-o`), and for what is not made from a source. Thread safety: one
 * thread at a time.
 *
 * Returns: %TRUE if it was set
 *
 * Since: 0.1
 */
gboolean
pto_callable_set_compiler_flags (PtoCallable *callable, const char *const *flags, GError **error)
{
  g_autofree char *from = NULL;

  g_return_val_if_fail (PTO_IS_CALLABLE (callable), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  from = g_strdup_printf ("\"%s\"", callable->name);
  if (!check_is_source (callable, error) || !pto_compiler_check_flags (flags, from, error))
    return FALSE;
  g_strfreev (callable->compiler_flags);
  callable->compiler_flags = dup_words (flags);
  return TRUE;
}

/**
 * pto_callable_get_compiler_flags:
 * @callable: a callable
 *
 * Gives with which flags a source is compiled, as it was set.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (array zero-terminated=1) (transfer none) (nullable): flags; %NULL: none
 *
 * Since: 0.1
 */
const char *const *
pto_callable_get_compiler_flags (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);

  return (const char *const *) callable->compiler_flags;
}

/* --- before a worker has it --- */

/**
 * pto_callable_build:
 * @callable: a callable
 * @cancellable: (nullable): ends the compilers
 * @error: where to say why not
 *
 * Compiles what a callable is made of, several sources at once, into the user's cache: a worker
 * that it is registered on finds it there.
 *
 * Of functions there is nothing to compile. Fails with %PTO_ERROR_COMPILE (with the compiler's own
 * text), %PTO_ERROR_LOAD (also when what was built exports no function of that name),
 * %PTO_ERROR_NOT_FOUND, %PTO_ERROR_SYSTEM, or %G_IO_ERROR_CANCELLED. Thread safety: one thread at a
 * time.
 *
 * Returns: %TRUE if all of it is built
 *
 * Since: 0.1
 */
gboolean
pto_callable_build (PtoCallable *callable, GCancellable *cancellable, GError **error)
{
  Build *build;
  gboolean ok;

  g_return_val_if_fail (PTO_IS_CALLABLE (callable), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  build = build_new (callable, error);
  if (build == NULL)
    return FALSE;
  ok = build_run (build, cancellable, error);
  build_free (build);
  return ok;
}

static void
build_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  GError *error = NULL;

  if (build_run (data, cancellable, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * pto_callable_build_async:
 * @callable: a callable
 * @cancellable: (nullable): ends the compilers
 * @callback: (scope async) (closure user_data) (nullable): called when it has ended, in the main
 * context that is this thread's default
 * @user_data: for @callback
 *
 * Like [method@Pto.Callable.build], without waiting.
 *
 * What is changed in @callable meanwhile is not in it. A cancelled build ends when its compilers
 * have been ended. Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_callable_build_async (PtoCallable *callable, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;
  Build *build;

  g_return_if_fail (PTO_IS_CALLABLE (callable));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));

  task = g_task_new (callable, cancellable, callback, user_data);
  g_task_set_source_tag (task, pto_callable_build_async);
  /* A compiler that was ended is told of by what ended it. */
  g_task_set_check_cancellable (task, FALSE);
  build = build_new (callable, &error);
  if (build == NULL)
    {
      g_task_return_error (task, error);
      return;
    }
  g_task_set_task_data (task, build, build_free);
  g_task_run_in_thread (task, build_in_thread);
}

/**
 * pto_callable_build_finish:
 * @callable: a callable
 * @result: what the callback was given
 * @error: where to say why not
 *
 * Ends [method@Pto.Callable.build_async]. Thread safety: the thread of the callback.
 *
 * Returns: %TRUE if all of it is built
 *
 * Since: 0.1
 */
gboolean
pto_callable_build_finish (PtoCallable *callable, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), FALSE);
  g_return_val_if_fail (g_task_is_valid (result, callable), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return g_task_propagate_boolean (G_TASK (result), error);
}
