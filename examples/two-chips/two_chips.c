/* two_chips.c: how do two chips and a C function share one sum?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each chip adds up half of a vector; a function in a process of its own adds the two results. That
 * it waits for both chips, and that they do not wait for each other, follows from what each task
 * reads and writes. Build and run:
 *
 *   cc two_chips.c -o two_chips $(pkg-config --cflags --libs pto-1) && ./two_chips DIR/partial-sum
 */
#include <pto/pto.h>

#include <math.h>
#include <stdio.h>

#define ELEMENTS 65536

typedef struct Handles
{
  PtoCallableHandle *part;
  PtoCallableHandle *total;
} Handles;

static float *
floats (PtoTensor *tensor)
{
  return (float *) (guintptr) pto_tensor_get_address (tensor);
}

/* Runs in the SUB worker, on memory that all processes share. */
static gboolean
add_parts (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  const float *a = floats (pto_task_args_get_tensor (args, 0));
  const float *b = floats (pto_task_args_get_tensor (args, 1));

  *floats (pto_task_args_get_tensor (args, 2)) = *a + *b;
  return TRUE;
}

/* One chip's part: which elements, and where to. */
static gboolean
submit_part (PtoOrchestrator *orchestrator, PtoCallableHandle *part, PtoTensor *x, guint64 from,
             PtoTensor *out, PtoCallConfig *config, int chip, GError **error)
{
  guint64 elements = ELEMENTS / 2;
  g_autoptr (PtoTensor) half = pto_tensor_view (x, 1, &elements, &from, error);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  if (half == NULL)
    return FALSE;
  pto_task_args_add_tensor (args, half, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, out, PTO_DIRECTION_OUTPUT);
  return pto_orchestrator_submit_next_level (orchestrator, part, args, config, chip, error);
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
       GError **error)
{
  const Handles *handles = user_data;
  PtoTensor *x = pto_task_args_get_tensor (args, 0);
  PtoTensor *out = pto_task_args_get_tensor (args, 1);
  guint64 one = 1;
  g_autoptr (PtoTensor) a
      = pto_orchestrator_alloc (orchestrator, PTO_DTYPE_FLOAT32, 1, &one, error);
  g_autoptr (PtoTensor) b = NULL;
  g_autoptr (PtoTaskArgs) both = pto_task_args_new ();

  if (a == NULL)
    return FALSE;
  b = pto_orchestrator_alloc (orchestrator, PTO_DTYPE_FLOAT32, 1, &one, error);
  if (b == NULL)
    return FALSE;
  pto_task_args_add_tensor (both, a, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (both, b, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (both, out, PTO_DIRECTION_OUTPUT_EXISTING);
  return submit_part (orchestrator, handles->part, x, 0, a, config, 0, error)
         && submit_part (orchestrator, handles->part, x, ELEMENTS / 2, b, config, 1, error)
         && pto_orchestrator_submit_sub (orchestrator, handles->total, both, -1, error);
}

/* The orchestration and its one kernel. */
static PtoCallable *
make_part (const char *directory, GError **error)
{
  g_autofree char *orchestration = g_build_filename (directory, "partial_sum_orch.c", NULL);
  g_autofree char *source = g_build_filename (directory, "kernels", "sum.c", NULL);
  g_autoptr (PtoCallable) part = pto_chip_orchestration_new (orchestration, NULL, error);
  g_autoptr (PtoCallable) kernel = NULL;

  if (part == NULL)
    return NULL;
  kernel = pto_kernel_new (PTO_CORE_AIV, source, NULL, error);
  if (kernel == NULL
      || !pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (part), 0, "sum", kernel,
                                             error))
    return NULL;
  return g_steal_pointer (&part);
}

static PtoTensor *
make_vector (guint64 elements, GError **error)
{
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (elements * sizeof (float), error);

  if (buffer == NULL)
    return NULL;
  return pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, 1, &elements, error);
}

static gboolean
two_chips (const char *directory, gboolean *passed, GError **error)
{
  g_autoptr (PtoWorker) host = pto_worker_new_host (3, 2, 1, "a2a3sim", error);
  g_autoptr (PtoCallable) part = NULL;
  g_autoptr (PtoCallable) total = pto_sub_function_new ("total", add_parts, NULL, NULL);
  g_autoptr (PtoCallableHandle) h_part = NULL;
  g_autoptr (PtoCallableHandle) h_total = NULL;
  g_autoptr (PtoTensor) x = NULL;
  g_autoptr (PtoTensor) out = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  Handles handles;
  double expected = 0;

  if (host == NULL || (part = make_part (directory, error)) == NULL
      || (h_part = pto_worker_register (host, part, NULL, error)) == NULL
      || (h_total = pto_worker_register (host, total, NULL, error)) == NULL
      || (x = make_vector (ELEMENTS, error)) == NULL || (out = make_vector (1, error)) == NULL)
    return FALSE;
  for (int i = 0; i < ELEMENTS; i++)
    {
      floats (x)[i] = (float) (i % 1000) / 1000;
      expected += floats (x)[i];
    }
  pto_task_args_add_tensor (args, x, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, out, PTO_DIRECTION_OUTPUT_EXISTING);
  handles.part = h_part;
  handles.total = h_total;
  if (!pto_worker_run (host, graph, &handles, args, NULL, NULL, error))
    return FALSE;
  *passed = fabs (*floats (out) - expected) <= 1e-5 * expected;
  printf ("two chips and a SUB worker: %.3f, expected %.3f: %s\n", (double) *floats (out), expected,
          *passed ? "PASS" : "FAIL");
  pto_worker_close (host);
  return TRUE;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  gboolean passed = FALSE;

  if (!two_chips (argc > 1 ? argv[1] : "examples/two-chips/partial-sum", &passed, &error))
    fprintf (stderr, "two_chips: %s\n", error->message);
  return passed ? 0 : 1;
}
