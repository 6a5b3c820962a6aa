/* test-priorities.c: do tasks run by the priority that an orchestrator gives them, at every level?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#define N 12

static guint
priority_of (guint number)
{
  return number * 5 / 2 % (PTO_MAX_PRIORITY + 1);
}

/* The number that is the nth to run. */
static guint
expected (guint nth)
{
  for (guint p = PTO_MAX_PRIORITY + 1; p-- > 0;)
    for (guint number = 0; number < N; number++)
      if (priority_of (number) == p && nth-- == 0)
        return number;
  g_assert_not_reached ();
}

/* --- a chip --- */

typedef struct
{
  PtoCallable *fill;
  PtoTensor *tensor;
} Chip;

static gboolean
submit_fill (PtoOrchestrator *orchestrator, Chip *chip, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  pto_task_args_add_tensor (args, chip->tensor, PTO_DIRECTION_NO_DEP);
  pto_task_args_add_scalar_float (args, 1);
  return pto_orchestrator_submit (orchestrator, chip->fill, args, error);
}

/* On det tasks take so long that all are submitted while the first two run. */
static gboolean
fill_by_priority (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                  gpointer data, GError **error)
{
  g_autoptr (GError) own = NULL;

  g_assert_false (pto_orchestrator_set_priority (orchestrator, PTO_MAX_PRIORITY + 1, &own));
  g_assert_error (own, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (own->message, "there is no priority 4");
  g_assert_cmpuint (pto_orchestrator_get_priority (orchestrator), ==, 0);
  if (!submit_fill (orchestrator, data, error) || !submit_fill (orchestrator, data, error))
    return FALSE;
  for (guint i = 0; i < N; i++)
    if (!pto_orchestrator_set_priority (orchestrator, priority_of (i), error)
        || !submit_fill (orchestrator, data, error))
      return FALSE;
  g_assert_cmpuint (pto_orchestrator_get_priority (orchestrator), ==, priority_of (N - 1));
  return TRUE;
}

static void
test_chip (gconstpointer data)
{
  g_autofree char *dir = object_test_make_dir ();
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (16, &error);
  g_autoptr (PtoTensor) tensor = object_test_vector (buffer);
  g_autoptr (PtoCallable) fill = object_test_kernel (dir, "fill.c", object_test_fill);
  g_autoptr (PtoWorker) worker
      = g_object_new (PTO_TYPE_WORKER, "isolate", GPOINTER_TO_INT (data), NULL);
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (GListModel) tasks = NULL;
  gint64 started[N];
  Chip chip = { fill, tensor };

  g_assert_true (pto_kernel_set_cost (PTO_KERNEL (fill), "constant:1000000", &error));
  pto_worker_set_parameter (worker, "backend", "det", &error);
  pto_worker_set_parameter (worker, "clusters", "1", &error);
  pto_worker_set_parameter (worker, "aicpu-threads", "2", &error);
  pto_worker_set_parameter (worker, "trace", "1", &error);
  g_assert_no_error (error);
  pto_worker_run (worker, fill_by_priority, &chip, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  trace = pto_worker_ref_trace (worker);
  tasks = pto_trace_list_tasks (trace);
  g_assert_cmpuint (g_list_model_get_n_items (tasks), ==, N + 2);
  for (guint i = 0; i < N; i++)
    {
      g_autoptr (PtoTraceTask) task = g_list_model_get_item (tasks, i + 2);

      started[i] = pto_trace_task_get_start_ns (task);
    }
  /* Two vector cores: each pair of tasks begins at about one time. */
  for (guint i = 2; i < N; i++)
    g_assert_cmpint (started[expected (i - 2)], <, started[expected (i)]);
  pto_worker_close (worker);
  object_test_remove_dir (g_steal_pointer (&dir));
}

/* --- level 3 --- */

typedef struct
{
  PtoCallableHandle *note;
  LevelTestBoard board;
  int worker;
} Level;

/* words[0]: all is submitted; words[1]: how many have run; then the number of each. */
static gboolean
note (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);

  if (!level_test_wait_in_task (args, &words[0], 1))
    return TRUE;
  words[2 + atomic_fetch_add (&words[1], 1)] = pto_task_args_get_scalar (args, 1);
  return TRUE;
}

static gboolean
note_by_priority (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                  gpointer data, GError **error)
{
  Level *level = data;

  if (!level_test_submit (orchestrator, level->note, level->board.tensor, PTO_DIRECTION_NO_DEP, N,
                          level->worker, error))
    return FALSE;
  for (guint i = 0; i < N; i++)
    if (!pto_orchestrator_set_priority (orchestrator, priority_of (i), error)
        || !level_test_submit (orchestrator, level->note, level->board.tensor, PTO_DIRECTION_NO_DEP,
                               i, level->worker, error))
      return FALSE;
  level->board.words[0] = 1;
  return TRUE;
}

static void
test_level (gconstpointer data)
{
  g_autoptr (PtoWorker) worker = level_test_host (3, 0, 1);
  g_autoptr (GError) error = NULL;
  Level level = { .worker = GPOINTER_TO_INT (data) };

  level_test_board_init (&level.board);
  level.note = level_test_register (worker, "note", note);
  for (guint round = 0; round < 2; round++)
    {
      memset ((void *) level.board.words, 0, LEVEL_TEST_WORDS * sizeof (guint64));
      pto_worker_run (worker, note_by_priority, &level, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (level.board.words[1], ==, N + 1);
      g_assert_cmpuint (level.board.words[2], ==, N);
      for (guint i = 0; i < N; i++)
        g_assert_cmpuint (level.board.words[3 + i], ==, expected (i));
    }
  pto_worker_close (worker);
  pto_callable_handle_unref (level.note);
  level_test_board_clear (&level.board);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/pto/priorities/chip", GINT_TO_POINTER (FALSE), test_chip);
  g_test_add_data_func ("/pto/priorities/isolated", GINT_TO_POINTER (TRUE), test_chip);
  g_test_add_data_func ("/pto/priorities/any-worker", GINT_TO_POINTER (-1), test_level);
  g_test_add_data_func ("/pto/priorities/named-worker", GINT_TO_POINTER (0), test_level);
  return g_test_run ();
}
