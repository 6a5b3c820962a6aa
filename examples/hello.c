/* hello.c: how does a C program run a task graph of its own on a simulated chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Computes (a + b) * (a + b) with two kernels of the vector example. Build and run:
 *
 *   cc hello.c -o hello $(pkg-config --cflags --libs pto-1) && ./hello DIR/vector/kernels
 */
#include <pto/pto.h>

#include <stdio.h>

#define ELEMENTS 1024

typedef struct Kernels
{
  PtoCallable *add;
  PtoCallable *mul;
} Kernels;

/* The graph: two tasks; that the second waits for the first follows from `sum`. */
static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
       GError **error)
{
  const Kernels *kernels = user_data;
  PtoTensor *a = pto_task_args_get_tensor (args, 0);
  PtoTensor *b = pto_task_args_get_tensor (args, 1);
  PtoTensor *f = pto_task_args_get_tensor (args, 2);
  g_autoptr (PtoTensor) sum = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_FLOAT32, 1,
                                                            (guint64[]){ ELEMENTS }, error);

  if (sum == NULL)
    return FALSE;
  if (!pto_orchestrator_submit_full (orchestrator, kernels->add, error, PTO_IN (a), PTO_IN (b),
                                     PTO_OUT (sum), NULL))
    return FALSE;
  return pto_orchestrator_submit_full (orchestrator, kernels->mul, error, PTO_IN (sum),
                                       PTO_IN (sum), PTO_OUT (f), NULL);
}

/* A tensor in the chip's memory, every element `value`; it keeps the memory. */
static PtoTensor *
filled (PtoWorker *chip, float value, GError **error)
{
  float numbers[ELEMENTS];
  g_autoptr (PtoBuffer) buffer = NULL;
  g_autoptr (GBytes) bytes = NULL;

  for (int i = 0; i < ELEMENTS; i++)
    numbers[i] = value;
  bytes = g_bytes_new (numbers, sizeof numbers);
  buffer = pto_worker_alloc_buffer (chip, sizeof numbers, error);
  if (buffer == NULL || !pto_buffer_write (buffer, 0, bytes, error))
    return NULL;
  return pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, 1, (guint64[]){ ELEMENTS },
                                    error);
}

static gboolean
hello (const char *directory, GError **error)
{
  g_autofree char *add_path = g_build_filename (directory, "add.c", NULL);
  g_autofree char *mul_path = g_build_filename (directory, "mul.c", NULL);
  g_autoptr (PtoWorker) chip = NULL;
  g_autoptr (PtoCallable) add = NULL;
  g_autoptr (PtoCallable) mul = NULL;
  g_autoptr (PtoTensor) a = NULL;
  g_autoptr (PtoTensor) b = NULL;
  g_autoptr (PtoTensor) f = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (GBytes) result = NULL;
  Kernels kernels;

  chip = pto_worker_new_chip ("a2a3sim", error);
  if (chip == NULL || !pto_worker_start (chip, NULL, error))
    return FALSE;
  add = pto_kernel_new (PTO_CORE_AIV, add_path, "kernel_entry", error);
  if (add == NULL)
    return FALSE;
  mul = pto_kernel_new (PTO_CORE_AIV, mul_path, "kernel_entry", error);
  if (mul == NULL)
    return FALSE;
  if ((a = filled (chip, 2, error)) == NULL || (b = filled (chip, 3, error)) == NULL
      || (f = filled (chip, 0, error)) == NULL)
    return FALSE;

  pto_task_args_add_tensor (args, a, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, b, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, f, PTO_DIRECTION_OUTPUT_EXISTING);
  kernels.add = add;
  kernels.mul = mul;
  if (!pto_worker_run (chip, graph, &kernels, args, NULL, NULL, error))
    return FALSE;

  result
      = pto_worker_copy_from (chip, pto_tensor_get_address (f), pto_tensor_get_n_bytes (f), error);
  if (result == NULL)
    return FALSE;
  printf ("(2 + 3) * (2 + 3) = %g\n", *(const float *) g_bytes_get_data (result, NULL));
  pto_worker_close (chip);
  return TRUE;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;

  if (!hello (argc > 1 ? argv[1] : "examples/vector/kernels", &error))
    {
      fprintf (stderr, "hello: %s\n", error->message);
      return 1;
    }
  return 0;
}
