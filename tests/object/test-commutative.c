/* test-commutative.c: do tasks update the same memory one at a time, on chips and in children?
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
  g_test_add_func ("/pto/commutative/level", test_level);
  return g_test_run ();
}
