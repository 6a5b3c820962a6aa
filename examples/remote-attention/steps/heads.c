/* heads.c: what does a remote worker of this example do with its heads?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * It is loaded there, by its contents. What was registered for the chips is found by its name.
 */
#include <pto/pto.h>

enum
{
  CHIPS = 2,
  WEIGHTS = 4
};

__attribute__ ((visibility ("default"))) gboolean heads (PtoOrchestrator *orchestrator,
                                                         PtoTaskArgs *args, PtoCallConfig *config,
                                                         gpointer user_data, GError **error);

/* The rows of one chip. */
static gboolean
add_part (PtoTaskArgs *own, PtoTensor *all, guint64 chip, GError **error)
{
  gsize n_dims;
  const guint64 *whole = pto_tensor_get_shape (all, &n_dims);
  const guint64 shape[] = { whole[0] / CHIPS, whole[1] };
  const guint64 offset[] = { chip * shape[0], 0 };
  g_autoptr (PtoTensor) part = pto_tensor_view (all, n_dims, shape, offset, error);

  if (part == NULL)
    return FALSE;
  pto_task_args_add_tensor (own, part, PTO_DIRECTION_INPUT);
  return TRUE;
}

/* x, wq, wk, wv, wo, out: a head for each chip, then the sum of both. */
gboolean
heads (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
       GError **error)
{
  g_autoptr (PtoCallableHandle) on_chip
      = pto_worker_lookup (pto_orchestrator_get_worker (orchestrator), "head_orch", error);
  PtoTensor *x = pto_task_args_get_tensor (args, 0);
  gsize n_dims;
  const guint64 *shape = pto_tensor_get_shape (x, &n_dims);
  g_autoptr (PtoTensor) other
      = on_chip != NULL
            ? pto_orchestrator_alloc (orchestrator, PTO_DTYPE_FLOAT32, n_dims, shape, error)
            : NULL;
  PtoTensor *parts[CHIPS] = { pto_task_args_get_tensor (args, 1 + WEIGHTS), other };

  if (other == NULL)
    return FALSE;
  for (guint chip = 0; chip < CHIPS; chip++)
    {
      g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

      pto_task_args_add_tensor (own, x, PTO_DIRECTION_INPUT);
      for (guint i = 0; i < WEIGHTS; i++)
        if (!add_part (own, pto_task_args_get_tensor (args, 1 + i), chip, error))
          return FALSE;
      pto_task_args_add_tensor (own, parts[chip], PTO_DIRECTION_OUTPUT_EXISTING);
      if (!pto_orchestrator_submit_next_level (orchestrator, on_chip, own, NULL, (int) chip, error))
        return FALSE;
    }
  return pto_orchestrator_allreduce (orchestrator, parts, CHIPS, PTO_REDUCTION_SUM, error);
}
