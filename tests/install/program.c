/* program.c: can a program be built with `pkg-config pto-1` alone, and run? The argument is the
 * kernel's source.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <pto/pto.h>

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  PtoTensor *out = pto_task_args_get_tensor (args, 0);

  (void) config;
  return pto_orchestrator_submit_full (orchestrator, data, error, PTO_OUT_EXISTING (out),
                                       PTO_SCALAR (0x422a0000), NULL);
}

int
main (int argc, char **argv)
{
  const guint64 shape[] = { 4 };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) chip = pto_worker_new_chip ("a2a3sim", &error);
  g_autoptr (PtoCallable) kernel = NULL;
  g_autoptr (PtoBuffer) buffer = NULL;
  g_autoptr (PtoTensor) out = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  const float *values;

  if (argc != 2 || chip == NULL || !pto_worker_start (chip, NULL, &error)
      || (kernel = pto_kernel_new (PTO_CORE_AIV, argv[1], NULL, &error)) == NULL
      || (buffer = pto_buffer_new (16, &error)) == NULL
      || (out = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, 1, shape, &error)) == NULL)
    {
      g_printerr ("%s\n", error != NULL ? error->message : "one argument: a kernel");
      return 1;
    }
  pto_task_args_add_tensor (args, out, PTO_DIRECTION_OUTPUT_EXISTING);
  if (!pto_worker_run (chip, graph, kernel, args, NULL, NULL, &error))
    {
      g_printerr ("%s\n", error->message);
      return 1;
    }
  values = (const float *) (guintptr) pto_buffer_get_address (buffer);
  g_print ("%.1f %.1f %.1f %.1f\n", values[0], values[1], values[2], values[3]);
  return 0;
}
