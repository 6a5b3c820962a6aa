/* test-commutative.c: do tasks update the same memory one at a time, or in copies, on chips and in
 * children?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#define N 40

static const char add_one[] = "#include \"tensor.h\"\n"
                              "void kernel_entry (int64_t *args)\n"
                              "{\n"
                              "  const TensorData *t = (const TensorData *) args[0];\n"
                              "  volatile float *x = (float *) (uintptr_t) t->buffer.addr;\n"
                              "  float before = *x;\n"
                              "  for (volatile int i = 0; i < 2000; i++)\n"
                              "    ;\n"
                              "  *x = before + 1;\n"
                              "}\n";

typedef struct
{
  PtoCallable *add;
  PtoTensor *tensor;
} Chip;

static gboolean
add_often (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
           GError **error)
{
  Chip *chip = data;

  for (guint i = 0; i < N; i++)
    if (!pto_orchestrator_submit_full (orchestrator, chip->add, error,
                                       PTO_COMMUTATIVE (chip->tensor), NULL))
      return FALSE;
  return TRUE;
}

static void
test_chip (gconstpointer data)
{
  g_autofree char *dir = object_test_make_dir ();
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (16, &error);
  g_autoptr (PtoTensor) tensor = object_test_vector (buffer);
  g_autoptr (PtoTensor) read_only = pto_tensor_as_read_only (tensor);
  g_autoptr (PtoCallable) add = object_test_kernel (dir, "add.c", add_one);
  g_autoptr (PtoWorker) worker = g_object_new (PTO_TYPE_WORKER, NULL);
  g_autoptr (PtoRunStatistics) statistics = NULL;
  Chip chip = { add, tensor };

  pto_worker_set_parameter (worker, "backend", data, &error);
  g_assert_no_error (error);
  pto_worker_run (worker, add_often, &chip, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (object_test_floats (buffer)[0], ==, N);
  statistics = pto_worker_dup_statistics (worker);
  g_assert_cmpuint (pto_run_statistics_get_edges (statistics), ==, 0);
  chip.tensor = read_only;
  g_assert_false (pto_worker_run (worker, add_often, &chip, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "a commutative update");
  pto_worker_close (worker);
  object_test_remove_dir (g_steal_pointer (&dir));
}

static const char take_in[] = "#include \"tensor.h\"\n"
                              "void kernel_entry (int64_t *args)\n"
                              "{\n"
                              "  const TensorData *to = (const TensorData *) args[0];\n"
                              "  const TensorData *from = (const TensorData *) args[1];\n"
                              "  *(float *) (uintptr_t) to->buffer.addr\n"
                              "      += *(const float *) (uintptr_t) from->buffer.addr;\n"
                              "}\n";

static const char reduce_often[]
    = "#include \"pto_orchestration_api.h\"\n"
      "PTO2OrchestrationConfig\n"
      "aicpu_orchestration_config (uint64_t *args, int arg_count)\n"
      "{\n"
      "  PTO2OrchestrationConfig config = { 1 };\n"
      "  return config;\n"
      "}\n"
      "int\n"
      "aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)\n"
      "{\n"
      "  const float nothing = 0;\n"
      "  Tensor x = pto2_rt_arg_tensor (rt, 0);\n"
      "  const uint64_t first[1] = { 0 };\n"
      "  PTOParam param = make_reduction_param (x, 1, &nothing);\n"
      "  PTO2TaskId before = PTO2_TASK_NONE;\n"
      "  float seen = 0;\n"
      "  for (int i = 0; i < 40; i++)\n"
      "    before = pto2_rt_submit_task_after (rt, 0, PTO2_WORKER_VECTOR, &param, 1, &before,\n"
      "                                        i % 10 == 9);\n"
      "  if (before == PTO2_TASK_NONE || !pto2_rt_get_element (rt, &x, first, &seen))\n"
      "    return 1;\n"
      "  return seen == 43 ? 0 : 2;\n"
      "}\n";

/* Its kernels come from the program, wherever the chip is. */
static void
test_reduction (gconstpointer data)
{
  for (guint isolate = 0; isolate < 2; isolate++)
    {
      g_autofree char *dir = object_test_make_dir ();
      g_autofree char *path = object_test_write (dir, "reduce.c", reduce_often);
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoBuffer) buffer = pto_buffer_new (16, &error);
      g_autoptr (PtoTensor) tensor = object_test_vector (buffer);
      g_autoptr (PtoCallable) add = object_test_kernel (dir, "add.c", add_one);
      g_autoptr (PtoCallable) combine = object_test_kernel (dir, "take_in.c", take_in);
      g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (path, NULL, &error);
      g_autoptr (PtoWorker) worker = g_object_new (PTO_TYPE_WORKER, "isolate", isolate, NULL);
      g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
      g_autoptr (PtoCallableHandle) handle = NULL;
      g_autoptr (PtoRunStatistics) statistics = NULL;

      g_assert_no_error (error);
      pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, NULL, add, &error);
      g_assert_no_error (error);
      pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 1, NULL, combine, &error);
      g_assert_no_error (error);
      pto_worker_set_parameter (worker, "backend", data, &error);
      g_assert_no_error (error);
      handle = pto_worker_register (worker, chip, NULL, &error);
      g_assert_no_error (error);
      pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_INOUT);
      object_test_floats (buffer)[0] = 3;
      pto_worker_run_callable (worker, handle, args, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (object_test_floats (buffer)[0], ==, 43);
      statistics = pto_worker_dup_statistics (worker);
      /* The last one is who looks at the element. */
      g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 40 + 2 * 40 + 1);
      pto_worker_close (worker);
      object_test_remove_dir (g_steal_pointer (&dir));
    }
}

/* The same from a function: an operator of the chip, then the kernel. */
typedef struct
{
  PtoCallable *add;
  PtoCallable *combine;
  PtoTensor *tensor;
} Reduce;

static gboolean
reduce_in_function (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                    gpointer data, GError **error)
{
  Reduce *reduce = data;
  g_autoptr (PtoTaskArgs) given = pto_task_args_new ();
  g_auto (GValue) nothing = G_VALUE_INIT;

  g_value_set_int (g_value_init (&nothing, G_TYPE_INT), 0);
  for (guint i = 0; i < N; i++)
    if (!pto_orchestrator_submit_full (orchestrator, reduce->add, error,
                                       PTO_REDUCE (reduce->tensor, PTO_REDUCTION_SUM), NULL))
      return FALSE;
  pto_task_args_add_reduction_kernel (given, reduce->tensor, reduce->combine, &nothing);
  g_assert_cmpint (pto_task_args_get_direction (given, 0), ==, PTO_DIRECTION_REDUCTION);
  g_assert_cmpuint (pto_task_args_get_scalar (given, 0), ==, 0);
  for (guint i = 0; i < N; i++)
    if (!pto_orchestrator_submit (orchestrator, reduce->add, given, error))
      return FALSE;
  return TRUE;
}

static void
test_reduction_in_function (gconstpointer data)
{
  for (guint isolate = 0; isolate < 2; isolate++)
    {
      g_autofree char *dir = object_test_make_dir ();
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoBuffer) buffer = pto_buffer_new (16, &error);
      g_autoptr (PtoTensor) tensor = object_test_vector (buffer);
      g_autoptr (PtoTensor) read_only = pto_tensor_as_read_only (tensor);
      g_autoptr (PtoCallable) add = object_test_kernel (dir, "add.c", add_one);
      g_autoptr (PtoCallable) combine = object_test_kernel (dir, "take_in.c", take_in);
      g_autoptr (PtoWorker) worker = g_object_new (PTO_TYPE_WORKER, "isolate", isolate, NULL);
      g_autoptr (PtoRunStatistics) statistics = NULL;
      Reduce reduce = { add, combine, tensor };

      pto_worker_set_parameter (worker, "backend", data, &error);
      g_assert_no_error (error);
      object_test_floats (buffer)[0] = 3;
      pto_worker_run (worker, reduce_in_function, &reduce, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (object_test_floats (buffer)[0], ==, 3 + 2 * N);
      statistics = pto_worker_dup_statistics (worker);
      g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 2 * 3 * N);
      reduce.tensor = read_only;
      g_assert_false (
          pto_worker_run (worker, reduce_in_function, &reduce, NULL, NULL, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "argument 0 is a reduction");
      pto_worker_close (worker);
      object_test_remove_dir (g_steal_pointer (&dir));
    }
}

typedef struct
{
  PtoCallableHandle *add;
  LevelTestBoard board;
} Level;

/* Nobody else does so meanwhile: words[0] is not added to at once. */
static gboolean
add_slowly (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);
  guint64 before = words[0];

  g_usleep (500);
  words[0] = before + 1;
  return TRUE;
}

static gboolean
add_in_children (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  Level *level = data;

  for (guint i = 0; i < N; i++)
    if (!level_test_submit (orchestrator, level->add, level->board.tensor,
                            PTO_DIRECTION_COMMUTATIVE, i, i % 3 == 0 ? 1 : -1, error))
      return FALSE;
  return TRUE;
}

static void
test_level (void)
{
  g_autoptr (PtoWorker) worker = level_test_host (3, 0, 3);
  g_autoptr (PtoRunStatistics) statistics = NULL;
  g_autoptr (GError) error = NULL;
  Level level = { 0 };

  level_test_board_init (&level.board);
  level.add = level_test_register (worker, "add", add_slowly);
  pto_worker_run (worker, add_in_children, &level, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (level.board.words[0], ==, N);
  statistics = pto_worker_dup_statistics (worker);
  g_assert_cmpuint (pto_run_statistics_get_edges (statistics), ==, 0);
  pto_worker_close (worker);
  pto_callable_handle_unref (level.add);
  level_test_board_clear (&level.board);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/pto/commutative/par", "par", test_chip);
  g_test_add_data_func ("/pto/commutative/det", "det", test_chip);
  g_test_add_data_func ("/pto/commutative/threads", "threads", test_chip);
  g_test_add_data_func ("/pto/commutative/reduction/par", "par", test_reduction);
  g_test_add_data_func ("/pto/commutative/reduction/det", "det", test_reduction);
  g_test_add_data_func ("/pto/commutative/reduction/threads", "threads", test_reduction);
  g_test_add_data_func ("/pto/commutative/function/par", "par", test_reduction_in_function);
  g_test_add_data_func ("/pto/commutative/function/det", "det", test_reduction_in_function);
  g_test_add_data_func ("/pto/commutative/function/threads", "threads", test_reduction_in_function);
  g_test_add_func ("/pto/commutative/level", test_level);
  return g_test_run ();
}
