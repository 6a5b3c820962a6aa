/* worker-test.c: what do the tests of a worker and its refusals share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "worker-test.h"

#include <string.h>

void
worker_test_set_up (WorkerTest *fixture, gconstpointer data)
{
  fixture->dir = object_test_make_dir ();
  fixture->worker = object_test_worker ();
  fixture->add = object_test_kernel (fixture->dir, "add.c", object_test_add);
  fixture->add_scalar = object_test_kernel (fixture->dir, "add_scalar.c", object_test_add_scalar);
  fixture->fill = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  fixture->a = pto_buffer_new (1000 * sizeof (float), NULL);
  fixture->b = pto_buffer_new (1000 * sizeof (float), NULL);
  fixture->f = pto_buffer_new (1000 * sizeof (float), NULL);
  for (guint i = 0; i < 1000; i++)
    {
      object_test_floats (fixture->a)[i] = (float) i;
      object_test_floats (fixture->b)[i] = (float) (2 * i);
    }
}

void
worker_test_tear_down (WorkerTest *fixture, gconstpointer data)
{
  if (fixture->worker != NULL)
    {
      g_object_add_weak_pointer (G_OBJECT (fixture->worker), (gpointer *) &fixture->worker);
      g_object_unref (fixture->worker);
      g_assert_null (fixture->worker);
    }
  g_object_unref (fixture->add);
  g_object_unref (fixture->add_scalar);
  g_object_unref (fixture->fill);
  pto_buffer_unref (fixture->a);
  pto_buffer_unref (fixture->b);
  pto_buffer_unref (fixture->f);
  object_test_remove_dir (fixture->dir);
}

/* f = (a + b) + 1, with a tensor in between that the runtime allocates. */
gboolean
worker_test_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                   gpointer data, GError **error)
{
  WorkerTest *fixture = data;
  g_autoptr (PtoTensor) a = object_test_vector (fixture->a);
  g_autoptr (PtoTensor) b = object_test_vector (fixture->b);
  g_autoptr (PtoTensor) f = object_test_vector (fixture->f);
  g_autoptr (PtoTensor) c = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 1000 });
  float one = 1;
  guint32 bits;

  memcpy (&bits, &one, sizeof bits);
  g_assert_true (pto_orchestrator_is_valid (orchestrator));
  g_assert_true (pto_orchestrator_get_worker (orchestrator) == fixture->worker);
  return pto_orchestrator_begin_scope (orchestrator, error)
         && pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (a), PTO_IN (b),
                                          PTO_OUT (c), NULL)
         && pto_orchestrator_submit_full (orchestrator, fixture->add_scalar, error, PTO_IN (c),
                                          PTO_OUT_EXISTING (f), PTO_SCALAR (bits), NULL)
         && pto_orchestrator_end_scope (orchestrator, error);
}

void
worker_test_check_graph (WorkerTest *fixture)
{
  for (guint i = 0; i < 1000; i++)
    g_assert_cmpfloat (object_test_floats (fixture->f)[i], ==, (float) (3 * i + 1));
  memset (object_test_floats (fixture->f), 0, 1000 * sizeof (float));
}

PtoCallable *
worker_test_new_chip (WorkerTest *fixture, const char *name, const char *text, const char *function)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (fixture->dir, name, text);
  PtoCallable *chip = pto_chip_orchestration_new (path, function, &error);

  g_assert_no_error (error);
  g_assert_true (pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, NULL,
                                                    fixture->fill, &error));
  return chip;
}

PtoTaskArgs *
worker_test_chip_args (WorkerTest *fixture)
{
  PtoTaskArgs *args = pto_task_args_new ();
  g_autoptr (PtoTensor) f = object_test_vector (fixture->f);

  pto_task_args_add_tensor (args, f, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (args, 1000);
  return args;
}

gboolean
worker_test_fail_silently (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                           gpointer data, GError **error)
{
  return FALSE;
}
