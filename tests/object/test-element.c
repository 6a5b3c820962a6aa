/* test-element.c: does a function read and write an element when its tasks have, or may?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#define N 16

typedef struct
{
  PtoCallable *fill;
  PtoTensor *tensor;
} Chip;

static gboolean
submit_fill (PtoOrchestrator *orchestrator, Chip *chip, float value, GError **error)
{
  return pto_orchestrator_submit_full (orchestrator, chip->fill, error,
                                       PTO_OUT_EXISTING (chip->tensor), PTO_SCALAR_FLOAT (value),
                                       NULL);
}

static double
get (PtoOrchestrator *orchestrator, Chip *chip, guint64 index)
{
  g_auto (GValue) value = G_VALUE_INIT;
  g_autoptr (GError) error = NULL;

  pto_orchestrator_get_element (orchestrator, chip->tensor, 1, &index, &value, &error);
  g_assert_no_error (error);
  g_assert_true (G_VALUE_HOLDS_DOUBLE (&value));
  return g_value_get_double (&value);
}

static gboolean
fill_and_look (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer data, GError **error)
{
  static const guint64 index[2] = { N };
  static const guint64 shape[1] = { 4 };
  Chip *chip = data;
  g_auto (GValue) value = G_VALUE_INIT;
  g_auto (GValue) got = G_VALUE_INIT;
  g_autoptr (PtoTensor) half = pto_tensor_new (PTO_DTYPE_BFLOAT16, 1, shape);
  g_autoptr (PtoTensor) read_only = pto_tensor_as_read_only (chip->tensor);
  g_autoptr (GError) own = NULL;

  g_value_set_int (g_value_init (&value, G_TYPE_INT), 7);
  for (guint i = 0; i < 5; i++)
    {
      if (!submit_fill (orchestrator, chip, (float) i + 0.5f, error))
        return FALSE;
      g_assert_cmpfloat (get (orchestrator, chip, N - 1), ==, i + 0.5);
      if (!pto_orchestrator_set_element (orchestrator, chip->tensor, 1, &(guint64){ i }, &value,
                                         error))
        return FALSE;
      g_assert_cmpfloat (get (orchestrator, chip, i), ==, 7);
    }
  g_assert_false (pto_orchestrator_get_element (orchestrator, chip->tensor, 1, index, &got, &own));
  g_assert_error (own, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (own->message, "there is no element");
  g_clear_error (&own);
  g_value_unset (&got);
  g_assert_false (pto_orchestrator_get_element (orchestrator, chip->tensor, 2, index, &got, &own));
  g_assert_error (own, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&own);
  g_value_unset (&got);
  if (!pto_orchestrator_fill (orchestrator, half, &value, error)
      || !pto_orchestrator_get_element (orchestrator, half, 1, &index[1], &got, error))
    return FALSE;
  g_assert_cmpfloat (g_value_get_double (&got), ==, 7);
  g_assert_false (
      pto_orchestrator_set_element (orchestrator, read_only, 1, &index[1], &value, &own));
  g_assert_error (own, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (own->message, "can only be read");
  g_clear_error (&own);
  g_value_unset (&value);
  g_value_set_double (g_value_init (&value, G_TYPE_DOUBLE), 1e39);
  g_assert_false (
      pto_orchestrator_set_element (orchestrator, chip->tensor, 1, &index[1], &value, &own));
  g_assert_error (own, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (own->message, "is 1e+39, which float32 can not hold");
  for (guint i = 0; i < 4; i++)
    {
      const GValue *none = i % 2 == 0 ? NULL : &(GValue) G_VALUE_INIT;

      g_clear_error (&own);
      g_assert_false (i < 2 ? pto_orchestrator_fill (orchestrator, chip->tensor, none, &own)
                            : pto_orchestrator_set_element (orchestrator, chip->tensor, 1,
                                                            &index[1], none, &own));
      g_assert_error (own, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (own->message, "is not set, which is no number");
    }
  return TRUE;
}

static void
test_chip (gconstpointer data)
{
  g_auto (GStrv) words = g_strsplit (data, " ", 2);
  g_autofree char *dir = object_test_make_dir ();
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (N * sizeof (float), &error);
  g_autoptr (PtoTensor) tensor = object_test_vector (buffer);
  g_autoptr (PtoCallable) fill = object_test_kernel (dir, "fill.c", object_test_fill);
  g_autoptr (PtoWorker) worker = g_object_new (PTO_TYPE_WORKER, "isolate", words[1] != NULL, NULL);
  Chip chip = { fill, tensor };

  pto_worker_set_parameter (worker, "backend", words[0], &error);
  g_assert_no_error (error);
  for (guint round = 0; round < 2; round++)
    {
      pto_worker_run (worker, fill_and_look, &chip, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (object_test_floats (buffer)[4], ==, 7);
      g_assert_cmpfloat (object_test_floats (buffer)[5], ==, 4.5f);
    }
  pto_worker_close (worker);
  object_test_remove_dir (g_steal_pointer (&dir));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/pto/element/par", "par", test_chip);
  g_test_add_data_func ("/pto/element/det", "det", test_chip);
  g_test_add_data_func ("/pto/element/threads", "threads", test_chip);
  g_test_add_data_func ("/pto/element/isolated-par", "par isolated", test_chip);
  g_test_add_data_func ("/pto/element/isolated-det", "det isolated", test_chip);
  g_test_add_data_func ("/pto/element/isolated-threads", "threads isolated", test_chip);
  return g_test_run ();
}
