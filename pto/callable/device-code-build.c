/* device-code-build.c: how is it compiled before a worker has it, and of what?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "device-code.h"

#include "base/error.h"
#include "base/locks.h"
#include "base/task-thread.h"
#include "compile/loaded-object.h"
#include "compile/object-file.h"
#include "chip-orchestration.h"
#include "identity.h"

/* What is built: as the callable was when it was asked for. */
typedef struct
{
  PtoDeviceCode *code; /* has the paths that the jobs name */
  PtoCompilerJob *jobs;
  guint n_jobs;
  GPtrArray *parts;   /* PtoDeviceCode, of each */
  GPtrArray *symbols; /* the function that is wanted of each */
} Build;

static void
build_free (gpointer data)
{
  Build *build = data;

  pto_registration_free_jobs (build->jobs, build->n_jobs);
  g_ptr_array_unref (build->parts);
  g_ptr_array_unref (build->symbols);
  g_object_unref (build->code);
  g_free (build);
}

static void
note_symbols (Build *build)
{
  GArray *kernels = PTO_IS_CHIP_ORCHESTRATION (build->code)
                        ? PTO_CHIP_ORCHESTRATION (build->code)->kernels
                        : NULL;

  g_ptr_array_add (build->symbols, g_strdup (build->code->symbol));
  for (guint i = 0; kernels != NULL && i < kernels->len; i++)
    {
      PtoDeviceCode *kernel = PTO_DEVICE_CODE (g_array_index (kernels, PtoChipKernel, i).kernel);

      g_ptr_array_add (build->symbols, g_strdup (kernel->symbol));
    }
}

static Build *
build_new (PtoDeviceCode *code, GError **error)
{
  Build *build;

  if (!pto_callable_check_made (PTO_CALLABLE (code), error))
    return NULL;
  build = g_new0 (Build, 1);
  build->code = g_object_ref (code);
  build->parts = g_ptr_array_new_with_free_func (g_object_unref);
  build->symbols = g_ptr_array_new_with_free_func (g_free);
  build->jobs = pto_device_code_make_jobs (code, &build->n_jobs);
  note_symbols (build);
  for (guint i = 0; i < build->n_jobs; i++)
    g_ptr_array_add (build->parts, g_object_ref (pto_device_code_get_part (code, i)));
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
  gboolean is_kernel = PTO_IS_KERNEL (build->code);

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
  if (!pto_compiler_build (build->jobs, build->n_jobs, NULL, NULL, cancellable, error))
    return FALSE;
  for (guint i = 0; i < build->n_jobs; i++)
    pto_device_code_keep_files (g_ptr_array_index (build->parts, i), &build->jobs[i]);
  return check_symbols (build, error);
}

/**
 * pto_device_code_build:
 * @code: a kernel, or the orchestration of a chip
 * @cancellable: (nullable): ends the compilers
 * @error: where to say why not
 *
 * Compiles what it is made of, several sources at once, into the user's cache: a worker
 * that it is registered on finds it there.
 *
 * Of a shared object there is nothing to compile. Fails with %PTO_ERROR_COMPILE (with the
 * compiler's own text), %PTO_ERROR_LOAD (also when what was built exports no function of that
 * name), %PTO_ERROR_NOT_FOUND, %PTO_ERROR_SYSTEM, or %G_IO_ERROR_CANCELLED. Thread safety: one
 * thread at a time.
 *
 * Returns: %TRUE if all of it is built
 *
 * Since: 0.1
 */
gboolean
pto_device_code_build (PtoDeviceCode *code, GCancellable *cancellable, GError **error)
{
  Build *build;
  gboolean ok;

  g_return_val_if_fail (PTO_IS_DEVICE_CODE (code), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  build = build_new (code, error);
  if (build == NULL)
    return FALSE;
  ok = build_run (build, cancellable, error);
  build_free (build);
  return ok;
}

static void
build_in_thread (GTask *task)
{
  GError *error = NULL;

  if (build_run (g_task_get_task_data (task), g_task_get_cancellable (task), &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * pto_device_code_build_async:
 * @code: a kernel, or the orchestration of a chip
 * @cancellable: (nullable): ends the compilers
 * @callback: (scope async) (closure user_data) (nullable): called when it has ended, in the main
 * context that is this thread's default
 * @user_data: for @callback
 *
 * Like [method@Pto.DeviceCode.build], without waiting.
 *
 * What is changed in @code meanwhile is not in it. A cancelled build ends when its compilers
 * have been ended, or at once if it waits for its turn: ten run at one time. Thread safety: one
 * thread at a time.
 *
 * Since: 0.1
 */
void
pto_device_code_build_async (PtoDeviceCode *code, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;
  Build *build;

  g_return_if_fail (PTO_IS_DEVICE_CODE (code));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));

  task = g_task_new (code, cancellable, callback, user_data);
  g_task_set_source_tag (task, pto_device_code_build_async);
  /* A compiler that was ended is told of by what ended it. */
  g_task_set_check_cancellable (task, FALSE);
  build = build_new (code, &error);
  if (build == NULL)
    {
      g_task_return_error (task, error);
      return;
    }
  g_task_set_task_data (task, build, build_free);
  pto_task_run (task, build_in_thread);
}

/**
 * pto_device_code_build_finish:
 * @code: a kernel, or the orchestration of a chip
 * @result: what the callback was given
 * @error: where to say why not
 *
 * Ends [method@Pto.DeviceCode.build_async]. Thread safety: the thread of the callback.
 *
 * Returns: %TRUE if all of it is built
 *
 * Since: 0.1
 */
gboolean
pto_device_code_build_finish (PtoDeviceCode *code, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (PTO_IS_DEVICE_CODE (code), FALSE);
  g_return_val_if_fail (g_task_is_valid (result, code), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return g_task_propagate_boolean (G_TASK (result), error);
}

/* --- what it was compiled from --- */

static PtoSourceFiles *
ref_files (PtoDeviceCode *part)
{
  PtoSourceFiles *files;

  pto_lock (PTO_LOCK_SOURCES);
  files = part->files != NULL ? pto_source_files_ref (part->files) : NULL;
  pto_unlock (PTO_LOCK_SOURCES);
  return files;
}

void
pto_device_code_keep_files (PtoDeviceCode *part, const PtoCompilerJob *job)
{
  PtoSourceFiles *before = ref_files (part);
  PtoSourceFiles *dropped = NULL;

  /* One that was compiled of two states of its source is not what it was, wherever the first of
   * them is still run. */
  if (job->files != NULL
      && (before == NULL || pto_source_files_look (before) != PTO_SOURCE_FILES_EDITED))
    {
      pto_lock (PTO_LOCK_SOURCES);
      dropped = part->files;
      part->files = pto_source_files_ref (job->files);
      pto_unlock (PTO_LOCK_SOURCES);
    }
  g_clear_pointer (&dropped, pto_source_files_unref);
  g_clear_pointer (&before, pto_source_files_unref);
}

static guint
count_parts (PtoDeviceCode *code)
{
  return PTO_IS_CHIP_ORCHESTRATION (code) ? 1 + PTO_CHIP_ORCHESTRATION (code)->kernels->len : 1;
}

/**
 * pto_device_code_dup_files:
 * @code: a kernel, or the orchestration of a chip
 *
 * Lists the files that it was compiled from: its source, the headers that this includes, directly
 * or not, but for those of the system, and the same of its kernels.
 *
 * They are known once it has been compiled in this process, by [method@Pto.DeviceCode.build] or for
 * a worker. What a source has the assembler read is not among them. Thread safety: one thread at a
 * time, whatever workers do.
 *
 * Returns: (transfer full) (array zero-terminated=1) (element-type filename): absolute paths, each
 * once; none where nothing was compiled
 *
 * Since: 0.1
 */
char **
pto_device_code_dup_files (PtoDeviceCode *code)
{
  g_autoptr (GPtrArray) names = NULL;
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  GPtrArray *once;

  g_return_val_if_fail (PTO_IS_DEVICE_CODE (code), NULL);

  names = g_ptr_array_new_with_free_func (g_free);
  once = g_ptr_array_new ();
  for (guint i = 0; i < count_parts (code); i++)
    {
      PtoSourceFiles *files = ref_files (pto_device_code_get_part (code, i));

      if (files != NULL)
        pto_source_files_list (files, names);
      g_clear_pointer (&files, pto_source_files_unref);
    }
  for (guint i = 0; i < names->len; i++)
    if (g_hash_table_add (seen, g_ptr_array_index (names, i)))
      g_ptr_array_add (once, g_strdup (g_ptr_array_index (names, i)));
  g_ptr_array_add (once, NULL);
  return (char **) g_ptr_array_free (once, FALSE);
}

/**
 * pto_device_code_is_edited:
 * @code: a kernel, or the orchestration of a chip
 *
 * Says whether one of the files that it was compiled from ([method@Pto.DeviceCode.dup_files]) has
 * been written, replaced or removed since.
 *
 * A worker runs what it has: another object of the same source is what makes an edited one run.
 * Where that cannot be known, since a file was written or replaced while the compiler read it, or
 * its owner, mode or times have been changed, the answer is %TRUE: what is made anew comes from the
 * cache. A new file that would be found in place of one of
 * these is not seen. Thread safety: one thread at a time, whatever workers do.
 *
 * Returns: %FALSE if nothing has changed, or nothing was compiled
 *
 * Since: 0.1
 */
gboolean
pto_device_code_is_edited (PtoDeviceCode *code)
{
  gboolean is_edited = FALSE;

  g_return_val_if_fail (PTO_IS_DEVICE_CODE (code), FALSE);

  for (guint i = 0; i < count_parts (code) && !is_edited; i++)
    {
      PtoSourceFiles *files = ref_files (pto_device_code_get_part (code, i));

      is_edited = files != NULL && pto_source_files_look (files) != PTO_SOURCE_FILES_SAME;
      g_clear_pointer (&files, pto_source_files_unref);
    }
  return is_edited;
}
