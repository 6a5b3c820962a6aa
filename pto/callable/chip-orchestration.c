/* chip-orchestration.c: which kernels does the orchestration of a chip have?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "chip-orchestration.h"

#include "base/error.h"
#include "common/text.h"

#define DEFAULT_ENTRY "aicpu_orchestration_entry"

/**
 * PtoChipOrchestration:
 *
 * An orchestration for one chip, in a C or C++ source or in a shared object, with the kernels that
 * it submits by their numbers.
 *
 * Made by [ctor@Pto.ChipOrchestration.new] or [ctor@Pto.ChipOrchestration.new_for_directory].
 * Source: seed 000 section 11. Thread safety: as [class@Pto.Callable].
 *
 * Since: 0.1
 */
G_DEFINE_FINAL_TYPE (PtoChipOrchestration, pto_chip_orchestration, PTO_TYPE_DEVICE_CODE)

static void
clear_chip_kernel (gpointer data)
{
  PtoChipKernel *kernel = data;

  g_free (kernel->name);
  g_object_unref (kernel->kernel);
}

static const char *
get_path (PtoChipOrchestration *self)
{
  return PTO_CALLABLE (self)->path;
}

static void
pto_chip_orchestration_finalize (GObject *object)
{
  PtoChipOrchestration *self = PTO_CHIP_ORCHESTRATION (object);

  g_array_unref (self->kernels);
  G_OBJECT_CLASS (pto_chip_orchestration_parent_class)->finalize (object);
}

static void
pto_chip_orchestration_class_init (PtoChipOrchestrationClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_chip_orchestration_finalize;
}

static void
pto_chip_orchestration_init (PtoChipOrchestration *self)
{
  self->kernels = g_array_new (FALSE, FALSE, sizeof (PtoChipKernel));
  g_array_set_clear_func (self->kernels, clear_chip_kernel);
}

/**
 * pto_chip_orchestration_new: (constructor)
 * @path: (type filename): the orchestration: a C (`.c`) or C++ (`.cc`, `.cpp`, `.cxx`) source, or a
 * shared object (`.so`)
 * @function: (nullable): its entry; `aicpu_orchestration_entry` when %NULL
 * @error: where to say why there is none
 *
 * Names an orchestration for one chip; its kernels are added with
 * [method@Pto.ChipOrchestration.add_kernel].
 *
 * Fails like [ctor@Pto.Kernel.new]. Source: seed 000 section 11, seed 003. Thread safety:
 * any thread.
 *
 * Returns: (transfer full): an orchestration
 *
 * Since: 0.1
 */
PtoCallable *
pto_chip_orchestration_new (const char *path, const char *function, GError **error)
{
  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return pto_device_code_new_for_file (
      PTO_TYPE_CHIP_ORCHESTRATION, PTO_CALLABLE_CHIP, path,
      function != NULL && function[0] != '\0' ? function : DEFAULT_ENTRY, error);
}

static PtoChipKernel *
find_kernel (PtoChipOrchestration *chip, guint func_id)
{
  for (guint i = 0; i < chip->kernels->len; i++)
    {
      PtoChipKernel *kernel = &g_array_index (chip->kernels, PtoChipKernel, i);

      if (kernel->func_id == func_id)
        return kernel;
    }
  return NULL;
}

/**
 * pto_chip_orchestration_add_kernel:
 * @chip: an orchestration
 * @func_id: the number that the orchestration submits it by, 0 to 4095
 * @name: (nullable): what messages and traces call it; the kernel's own name when %NULL
 * @kernel: a kernel
 * @error: where to say why not
 *
 * Gives an orchestration one of its kernels.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the number is taken or too large, or when @kernel is
 * none. Source: seed 000 section 11. Thread safety: one thread at a time.
 *
 * Returns: %TRUE if it was added
 *
 * Since: 0.1
 */
gboolean
pto_chip_orchestration_add_kernel (PtoChipOrchestration *chip, guint func_id, const char *name,
                                   PtoCallable *kernel, GError **error)
{
  PtoChipKernel entry;
  PtoChipKernel *other;
  guint i;

  g_return_val_if_fail (PTO_IS_CHIP_ORCHESTRATION (chip), FALSE);
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!PTO_IS_KERNEL (kernel))
    {
      g_autofree char *what = pto_callable_to_string (kernel);

      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("%s: %s can not be submitted as a kernel"), get_path (chip), what);
      return FALSE;
    }
  if (func_id >= PTO_MAX_KERNELS)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("%s: function id %u is too large: at most %u"), get_path (chip), func_id,
                   PTO_MAX_KERNELS - 1);
      return FALSE;
    }
  other = find_kernel (chip, func_id);
  if (other != NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("%s: function id %u is taken by kernel \"%s\""), get_path (chip), func_id,
                   other->name);
      return FALSE;
    }
  for (i = 0; i < chip->kernels->len; i++)
    if (g_array_index (chip->kernels, PtoChipKernel, i).func_id > func_id)
      break;
  entry.func_id = func_id;
  entry.name = g_utf8_make_valid (
      name != NULL && name[0] != '\0' ? name : pto_callable_get_name (kernel), -1);
  entry.kernel = g_object_ref (kernel);
  g_array_insert_val (chip->kernels, i, entry);
  return TRUE;
}

/**
 * pto_chip_orchestration_get_n_kernels:
 * @chip: an orchestration
 *
 * Gives one more than the largest function id of an orchestration's kernels.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 for an orchestration without kernels
 *
 * Since: 0.1
 */
guint
pto_chip_orchestration_get_n_kernels (PtoChipOrchestration *chip)
{
  g_return_val_if_fail (PTO_IS_CHIP_ORCHESTRATION (chip), 0);

  if (chip->kernels->len == 0)
    return 0;
  return g_array_index (chip->kernels, PtoChipKernel, chip->kernels->len - 1).func_id + 1;
}

/**
 * pto_chip_orchestration_get_kernel:
 * @chip: an orchestration
 * @func_id: a function id
 *
 * Gives an orchestration's kernel of a number.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none) (nullable): a kernel; %NULL when the number is not taken
 *
 * Since: 0.1
 */
PtoCallable *
pto_chip_orchestration_get_kernel (PtoChipOrchestration *chip, guint func_id)
{
  PtoChipKernel *kernel;

  g_return_val_if_fail (PTO_IS_CHIP_ORCHESTRATION (chip), NULL);

  kernel = find_kernel (chip, func_id);
  return kernel != NULL ? kernel->kernel : NULL;
}

/**
 * pto_chip_orchestration_get_kernel_name:
 * @chip: an orchestration
 * @func_id: a function id
 *
 * Gives the name of an orchestration's kernel of a number.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none) (nullable): a name; %NULL when the number is not taken
 *
 * Since: 0.1
 */
const char *
pto_chip_orchestration_get_kernel_name (PtoChipOrchestration *chip, guint func_id)
{
  PtoChipKernel *kernel;

  g_return_val_if_fail (PTO_IS_CHIP_ORCHESTRATION (chip), NULL);

  kernel = find_kernel (chip, func_id);
  return kernel != NULL ? kernel->name : NULL;
}
