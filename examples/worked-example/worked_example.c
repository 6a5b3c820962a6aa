/* worked_example.c: which way does one task take, from a C function to a chip's cores?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A worker of level 3 with one chip below it, and an orchestration that hands its own arguments on
 * to the chip, whose orchestration makes a task of each tile. Build and run:
 *
 *   cc worked_example.c -o worked_example $(pkg-config --cflags --libs pto-1)
 *   ./worked_example DIR/worked-example/add DIR/vector/kernels/add.c
 */
#include <pto/pto.h>

#include <stdio.h>

#define ELEMENTS 10000

static float *
floats (PtoTensor *tensor)
{
  return (float *) (guintptr) pto_tensor_get_address (tensor);
}

static gboolean
my_orch (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
         gpointer user_data, GError **error)
{
  PtoCallableHandle *chip_kernel = user_data;
  g_autoptr (PtoTaskArgs) chip_args = pto_task_args_new ();

  for (guint i = 0; i < pto_task_args_get_n_tensors (args); i++)
    pto_task_args_add_tensor (chip_args, pto_task_args_get_tensor (args, i),
                              i < 2 ? PTO_DIRECTION_INPUT : PTO_DIRECTION_OUTPUT);
  return pto_orchestrator_submit_next_level (orchestrator, chip_kernel, chip_args, config, -1,
                                             error);
}

static PtoCallable *
make_add (const char *directory, const char *kernel_source, GError **error)
{
  g_autofree char *orchestration = g_build_filename (directory, "add_orch.c", NULL);
  g_autoptr (PtoCallable) add = pto_chip_orchestration_new (orchestration, NULL, error);
  g_autoptr (PtoCallable) kernel = NULL;

  if (add == NULL)
    return NULL;
  kernel = pto_kernel_new (PTO_CORE_AIV, kernel_source, NULL, error);
  if (kernel == NULL
      || !pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (add), 0, "add", kernel, error))
    return NULL;
  return g_steal_pointer (&add);
}

static PtoTensor *
add_vector (PtoTaskArgs *args, PtoDirection direction, GError **error)
{
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (ELEMENTS * sizeof (float), error);
  g_autoptr (PtoTensor) tensor = NULL;

  if (buffer == NULL)
    return NULL;
  tensor
      = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, 1, (guint64[]){ ELEMENTS }, error);
  if (tensor != NULL)
    pto_task_args_add_tensor (args, tensor, direction);
  return g_steal_pointer (&tensor);
}

static gboolean
run (const char *directory, const char *kernel_source, gboolean *passed, GError **error)
{
  g_autoptr (PtoWorker) w3 = pto_worker_new_host (3, 0, 0, "a2a3sim", error);
  g_autoptr (PtoWorker) chip = NULL;
  g_autoptr (PtoCallable) add = NULL;
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoCallConfig) config = pto_call_config_new ();
  g_autoptr (PtoTensor) a = NULL;
  g_autoptr (PtoTensor) b = NULL;
  g_autoptr (PtoTensor) c = NULL;

  if (w3 == NULL || (chip = pto_worker_new_chip ("a2a3sim", error)) == NULL
      || (add = make_add (directory, kernel_source, error)) == NULL
      || (handle = pto_worker_register (w3, add, NULL, error)) == NULL
      || (a = add_vector (args, PTO_DIRECTION_INPUT, error)) == NULL
      || (b = add_vector (args, PTO_DIRECTION_INPUT, error)) == NULL
      || (c = add_vector (args, PTO_DIRECTION_OUTPUT_EXISTING, error)) == NULL)
    return FALSE;
  for (int i = 0; i < ELEMENTS; i++)
    {
      floats (a)[i] = (float) i;
      floats (b)[i] = (float) (i % 17);
    }
  pto_call_config_set_block_dim (config, 3);

  if (!pto_worker_add_worker (w3, chip, error) || !pto_worker_start (w3, NULL, error)
      || !pto_worker_run (w3, my_orch, handle, args, config, NULL, error))
    return FALSE;
  pto_worker_close (w3);

  *passed = TRUE;
  for (int i = 0; i < ELEMENTS; i++)
    if (floats (c)[i] != floats (a)[i] + floats (b)[i])
      *passed = FALSE;
  printf ("c = a + b on chip 0, 3 clusters of it: %s\n", *passed ? "PASS" : "FAIL");
  return TRUE;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  gboolean passed = FALSE;

  if (!run (argc > 1 ? argv[1] : "examples/worked-example/add",
            argc > 2 ? argv[2] : "examples/vector/kernels/add.c", &passed, &error))
    fprintf (stderr, "worked_example: %s\n", error->message);
  return passed ? 0 : 1;
}
