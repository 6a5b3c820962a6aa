/* shard.c: what does a remote worker of this example do with its part of the rows?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * It is loaded there, by its contents. What was registered for the chips is found by its name.
 */
#include <pto/pto.h>

#include <string.h>

enum
{
  CHIPS = 2
};

#define RATE 1e-3f

#define EXPORT __attribute__ ((visibility ("default")))
EXPORT gboolean gradient (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                          gpointer user_data, GError **error);
EXPORT gboolean move (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                      gpointer user_data, GError **error);
EXPORT gboolean copy (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                      gpointer user_data, GError **error);

/* The rows of one chip. */
static gboolean
add_part (PtoTaskArgs *own, PtoTensor *all, guint64 chip, GError **error)
{
  gsize n_dims;
  const guint64 *whole = pto_tensor_get_shape (all, &n_dims);
  const guint64 shape[] = { whole[0] / CHIPS, n_dims > 1 ? whole[1] : 1 };
  const guint64 offsets[] = { chip * shape[0], 0 };
  g_autoptr (PtoTensor) part = pto_tensor_view (all, n_dims, shape, offsets, error);

  if (part == NULL)
    return FALSE;
  pto_task_args_add_tensor (own, part, PTO_DIRECTION_INPUT);
  return TRUE;
}

/* x, y, w, g: half of the rows for each of two chips, then their sum. */
gboolean
gradient (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
          gpointer user_data, GError **error)
{
  g_autoptr (PtoCallableHandle) on_chip
      = pto_worker_lookup (pto_orchestrator_get_worker (orchestrator), "gradient_orch", error);
  PtoTensor *w = pto_task_args_get_tensor (args, 2);
  PtoTensor *g = pto_task_args_get_tensor (args, 3);
  const guint64 columns = pto_tensor_get_n_elements (w);
  g_autoptr (PtoTensor) other
      = on_chip != NULL
            ? pto_orchestrator_alloc (orchestrator, PTO_DTYPE_FLOAT32, 1, &columns, error)
            : NULL;
  PtoTensor *parts[CHIPS] = { g, other };

  if (other == NULL)
    return FALSE;
  for (guint chip = 0; chip < CHIPS; chip++)
    {
      g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

      if (!add_part (own, pto_task_args_get_tensor (args, 0), chip, error)
          || !add_part (own, pto_task_args_get_tensor (args, 1), chip, error))
        return FALSE;
      pto_task_args_add_tensor (own, w, PTO_DIRECTION_INPUT);
      pto_task_args_add_tensor (own, parts[chip], PTO_DIRECTION_OUTPUT_EXISTING);
      if (!pto_orchestrator_submit_next_level (orchestrator, on_chip, own, NULL, (int) chip, error))
        return FALSE;
    }
  return pto_orchestrator_allreduce (orchestrator, parts, CHIPS, PTO_REDUCTION_SUM, error);
}

static float *
floats (PtoTaskArgs *args, guint index)
{
  return (float *) (guintptr) pto_tensor_get_address (pto_task_args_get_tensor (args, index));
}

/* g, w: where the weights stay at the workers, each moves its own. */
gboolean
move (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
      GError **error)
{
  guint64 n = pto_tensor_get_n_elements (pto_task_args_get_tensor (args, 1));

  for (guint64 i = 0; i < n; i++)
    floats (args, 1)[i] -= RATE * floats (args, 0)[i];
  return TRUE;
}

gboolean
copy (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
      GError **error)
{
  memcpy (floats (args, 1), floats (args, 0),
          pto_tensor_get_n_elements (pto_task_args_get_tensor (args, 1)) * sizeof (float));
  return TRUE;
}
