/* test-cancel.c: does a run end soon, and never say success, whoever cancels it, on every back end
 * and at every level?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tasks count themselves on a board and look there whether the call that cancels had returned
 * before they began.
 */
#include "level-test.h"

#include "../short.h"

#include <string.h>

enum
{
  WORD_BEGAN,
  WORD_LATE,
  WORD_CANCELLED,
  WORD_AT,     /* the task that waits until the cancel is about to come */
  WORD_COMES,  /* it is */
  WORD_SLEEPS, /* rather than work */
  N_WORDS
};

/* args: the board, and for how many us. */
static const char step_kernel[]
    = "#include \"tensor.h\"\n"
      "#include <sched.h>\n"
      "#include <time.h>\n"
      "static uint64_t now (void)\n"
      "{\n"
      "  struct timespec t;\n"
      "  clock_gettime (CLOCK_MONOTONIC, &t);\n"
      "  return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;\n"
      "}\n"
      "void kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *board = (const TensorData *) args[0];\n"
      "  uint64_t *words = (uint64_t *) board->buffer.addr + board->start_offset;\n"
      "  uint64_t end;\n"
      "  if (__atomic_load_n (&words[2], __ATOMIC_SEQ_CST) != 0)\n"
      "    __atomic_fetch_add (&words[1], 1, __ATOMIC_SEQ_CST);\n"
      "  if (__atomic_fetch_add (&words[0], 1, __ATOMIC_SEQ_CST) == words[3])\n"
      "    while (__atomic_load_n (&words[4], __ATOMIC_SEQ_CST) == 0)\n"
      "      sched_yield ();\n"
      "  if (words[5] != 0)\n"
      "    nanosleep (&(struct timespec){ .tv_nsec = args[1] * 1000 }, 0);\n"
      "  end = words[5] != 0 ? 0 : now () + (uint64_t) args[1];\n"
      "  while (now () < end)\n"
      "    ;\n"
      "}\n";

/* args: the board, number of words, how many steps, of how many us. */
static const char chain_orchestration[]
    = "#include \"pto_orchestration_api.h\"\n"
      "PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int n)\n"
      "{\n"
      "  return (PTO2OrchestrationConfig){ 4 };\n"
      "}\n"
      "int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n)\n"
      "{\n"
      "  Tensor board = make_tensor_external ((void *) args[0], &args[1], 1, PTO_DTYPE_UINT64);\n"
      "  for (uint64_t i = 0; i < args[2]; i++)\n"
      "    PTO2_SCOPE (rt)\n"
      "    {\n"
      "      PTOParam params[] = { make_inout_param (board), make_scalar_param (args[3]) };\n"
      "      pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);\n"
      "    }\n"
      "  return 0;\n"
      "}\n";

typedef struct
{
  LevelTestBoard board;
  char *dir;
  PtoCallable *kernel;
  PtoCallable *chain;
  PtoWorker *worker;
  PtoCallableHandle *handle; /* of what graph() submits; NULL: the kernel */
  guint n;
  guint us;
  GCancellable *cancellable; /* NULL: the worker is closed */
  guint64 began_then;        /* when the cancel was over */
} Test;

static void
test_init (Test *test)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = NULL;

  memset (test, 0, sizeof *test);
  level_test_board_init (&test->board);
  test->dir = object_test_make_dir ();
  test->kernel = object_test_kernel (test->dir, "step.c", step_kernel);
  path = object_test_write (test->dir, "chain.c", chain_orchestration);
  test->chain = pto_chip_orchestration_new (path, NULL, &error);
  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (test->chain), 0, "step", test->kernel,
                                     &error);
  g_assert_no_error (error);
}

static void
test_clear (Test *test)
{
  pto_worker_close (test->worker);
  g_clear_pointer (&test->handle, pto_callable_handle_unref);
  g_assert_finalize_object (test->worker);
  g_object_unref (test->chain);
  g_object_unref (test->kernel);
  object_test_remove_dir (test->dir);
  level_test_board_clear (&test->board);
}

static void
make_chip (Test *test, const char *backend)
{
  g_autoptr (GError) error = NULL;

  test->worker = pto_worker_new_chip ("a2a3sim", &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (test->worker, "backend", backend, &error);
  g_assert_no_error (error);
  pto_worker_start (test->worker, NULL, &error);
  g_assert_no_error (error);
}

static void
add_chain_args (Test *test, PtoTaskArgs *args)
{
  pto_task_args_add_tensor (args, test->board.tensor, PTO_DIRECTION_INOUT);
  pto_task_args_add_scalar (args, LEVEL_TEST_WORDS);
  pto_task_args_add_scalar (args, test->n);
  pto_task_args_add_scalar (args, test->us);
}

/* One after the other. */
static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Test *test = data;

  for (guint i = 0; i < test->n; i++)
    {
      g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

      if (test->handle != NULL)
        {
          if (!level_test_submit (orchestrator, test->handle, test->board.tensor,
                                  PTO_DIRECTION_INOUT, test->us, -1, error))
            return FALSE;
          continue;
        }
      pto_task_args_add_tensor (own, test->board.tensor, PTO_DIRECTION_INOUT);
      pto_task_args_add_scalar (own, test->us);
      if (!pto_orchestrator_submit (orchestrator, test->kernel, own, error))
        return FALSE;
    }
  return TRUE;
}

static gpointer
cancel_when_told (gpointer data)
{
  Test *test = data;
  _Atomic guint64 *words = test->board.words;

  while (atomic_load (&words[WORD_BEGAN]) <= atomic_load (&words[WORD_AT]))
    g_usleep (20);
  atomic_store (&words[WORD_COMES], 1);
  if (test->cancellable != NULL)
    g_cancellable_cancel (test->cancellable);
  else
    pto_worker_close (test->worker);
  atomic_store (&words[WORD_CANCELLED], 1);
  test->began_then = atomic_load (&words[WORD_BEGAN]);
  return NULL;
}

/* A run that is cancelled when task number at has begun. Cancelled before the last one began, it is
 * no success, and hardly any begins after it. */
static void
run_cancelled (Test *test, guint at, guint most_late, gboolean (*run) (Test *test, GError **error))
{
  g_autoptr (GError) error = NULL;
  GThread *thread;
  gboolean ok;

  for (guint i = 0; i < N_WORDS; i++)
    atomic_store (&test->board.words[i], 0);
  atomic_store (&test->board.words[WORD_AT], at);
  thread = g_thread_new ("cancel", cancel_when_told, test);
  ok = run (test, &error);
  g_thread_join (thread);
  if (test->began_then < test->n)
    g_assert_false (ok);
  if (ok)
    g_assert_cmpuint (atomic_load (&test->board.words[WORD_BEGAN]), ==, test->n);
  else if (test->cancellable != NULL)
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  else
    g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_assert_cmpuint (atomic_load (&test->board.words[WORD_LATE]), <=, most_late);
}

static void
run_well (Test *test, gboolean (*run) (Test *test, GError **error))
{
  g_autoptr (GError) error = NULL;
  guint n = test->n;

  for (guint i = 0; i < N_WORDS; i++)
    atomic_store (&test->board.words[i], 0);
  atomic_store (&test->board.words[WORD_COMES], 1);
  test->cancellable = NULL;
  test->n = 3;
  g_assert_true (run (test, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (atomic_load (&test->board.words[WORD_BEGAN]), ==, 3);
  test->n = n;
}

static gboolean
run_function (Test *test, GError **error)
{
  return pto_worker_run (test->worker, graph, test, NULL, NULL, test->cancellable, error);
}

static gboolean
run_callable (Test *test, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoCallableHandle) handle
      = pto_worker_register (test->worker, test->chain, NULL, error);

  g_assert_nonnull (handle);
  add_chain_args (test, args);
  return pto_worker_run_callable (test->worker, handle, args, NULL, test->cancellable, error);
}

static void
note_result (GObject *worker, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static gboolean
run_async (Test *test, GError **error)
{
  g_autoptr (GAsyncResult) result = NULL;

  pto_worker_run_async (test->worker, graph, test, NULL, NULL, NULL, test->cancellable, note_result,
                        &result);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return pto_worker_run_finish (test->worker, result, error);
}

/* --- a chip --- */

static void
test_chip (gconstpointer backend)
{
  static gboolean (*const ways[]) (Test * test, GError * *error)
      = { run_function, run_callable, run_async };
  GRand *random = g_rand_new_with_seed (45);
  Test test;

  test_init (&test);
  make_chip (&test, backend);
  test.n = 30;
  test.us = 20;
  for (guint round = 0; round < SCALE_SHORT (270u) + 30; round++)
    {
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();

      test.cancellable = cancellable;
      run_cancelled (&test, (guint) g_rand_int_range (random, 0, 29), 1, ways[round % 3]);
    }
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    run_well (&test, ways[i]);
  test_clear (&test);
  g_rand_free (random);
}

/* Seconds of tasks are left when another thread closes the worker. */
static void
test_close (gconstpointer backend)
{
  Test test;

  test_init (&test);
  make_chip (&test, backend);
  test.n = 3000;
  test.us = 1000;
  run_cancelled (&test, 5, 0, run_callable);
  g_assert_cmpuint (atomic_load (&test.board.words[WORD_BEGAN]), <, test.n);
  g_assert_cmpint (pto_worker_get_state (test.worker), ==, PTO_WORKER_STATE_CLOSED);
  test_clear (&test);
}

/* --- level 3 --- */

static gboolean
step (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);
  gint64 end;

  if (atomic_load (&words[WORD_CANCELLED]) != 0)
    atomic_fetch_add (&words[WORD_LATE], 1);
  if (atomic_fetch_add (&words[WORD_BEGAN], 1) == atomic_load (&words[WORD_AT])
      && !level_test_wait_in_task (args, &words[WORD_COMES], 1))
    return FALSE;
  end = g_get_monotonic_time () + (gint64) pto_task_args_get_scalar (args, 1);
  while (g_get_monotonic_time () < end)
    ;
  return TRUE;
}

/* Every child may have had a task in its mailbox. */
static void
test_level_3 (void)
{
  GRand *random = g_rand_new_with_seed (3);
  LevelTestState state;
  Test test;

  level_test_begin (&state);
  test_init (&test);
  test.worker = level_test_host (3, 0, 2);
  test.handle = level_test_register (test.worker, "step", step);
  test.n = 20;
  test.us = 100;
  run_well (&test, run_function);
  for (guint round = 0; round < SCALE_SHORT (100u) + 10; round++)
    {
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();

      test.cancellable = cancellable;
      run_cancelled (&test, (guint) g_rand_int_range (random, 0, 19), 2, run_function);
    }
  run_well (&test, run_function);
  test_clear (&test);
  level_test_end (&state);
  g_rand_free (random);
}

static gboolean
submit_chain (PtoOrchestrator *orchestrator, PtoTaskArgs *unused, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Test *test = data;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  add_chain_args (test, args);
  return pto_orchestrator_submit_next_level (orchestrator, test->handle, args, NULL, -1, error);
}

static gboolean
run_chain (Test *test, GError **error)
{
  return pto_worker_run (test->worker, submit_chain, test, NULL, NULL, test->cancellable, error);
}

/* The task of level 3 is the whole chain: its chip hears of the cancel from its mailbox only. */
static void
test_level_3_chip (gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  LevelTestState state;
  Test test;

  level_test_begin (&state);
  test_init (&test);
  test.worker = level_test_host (3, 1, 0);
  pto_worker_set_parameter (pto_worker_get_child (test.worker, 0), "backend", backend, &error);
  g_assert_no_error (error);
  test.handle = pto_worker_register (test.worker, test.chain, NULL, &error);
  g_assert_no_error (error);
  test.n = 3000;
  test.us = 1000;
  run_well (&test, run_chain);
  for (guint round = 0; round < 3; round++)
    {
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();

      test.cancellable = cancellable;
      run_cancelled (&test, 5, test.n, run_chain);
      g_assert_cmpuint (atomic_load (&test.board.words[WORD_BEGAN]), <, test.n);
      run_well (&test, run_chain);
    }
  test_clear (&test);
  level_test_end (&state);
}

/* --- level 4 --- */

static PtoCallableHandle *below; /* of the worker of level 3 */

static gboolean
walk (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
      GError **error)
{
  for (guint64 i = 0; i < pto_task_args_get_scalar (args, 2); i++)
    if (!level_test_submit (orchestrator, below, pto_task_args_get_tensor (args, 0),
                            PTO_DIRECTION_INOUT, pto_task_args_get_scalar (args, 3), -1, error))
      return FALSE;
  return TRUE;
}

static void
test_level_4 (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable = pto_orchestration_function_new ("walk", walk, NULL, NULL);
  g_autoptr (PtoWorker) child = NULL;
  LevelTestState state;
  Test test;

  level_test_begin (&state);
  test_init (&test);
  test.worker = level_test_host (4, 0, 0);
  child = level_test_host (3, 0, 2);
  below = level_test_register (child, "step", step);
  pto_worker_add_worker (test.worker, child, &error);
  g_assert_no_error (error);
  test.handle = pto_worker_register (test.worker, callable, NULL, &error);
  g_assert_no_error (error);
  test.n = 3000;
  test.us = 1000;
  run_well (&test, run_chain);
  for (guint round = 0; round < 5; round++)
    {
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();

      test.cancellable = cancellable;
      run_cancelled (&test, 5, test.n, run_chain);
      g_assert_cmpuint (atomic_load (&test.board.words[WORD_BEGAN]), <, test.n);
      run_well (&test, run_chain);
    }
  pto_worker_close (test.worker);
  g_clear_pointer (&below, pto_callable_handle_unref);
  g_clear_object (&child);
  test_clear (&test);
  level_test_end (&state);
}

/* --- nobody cancels --- */

static gboolean
pass_on (PtoOrchestrator *orchestrator, PtoTaskArgs *unused, PtoCallConfig *config, gpointer data,
         GError **error)
{
  Test *test = data;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  add_chain_args (test, args);
  return pto_orchestrator_submit_next_level (orchestrator, below, args, NULL, -1, error);
}

/* A task of a chip that lasts longer than a task may without progress gets on all the while, for
 * the level above it and for the one above that. */
static void
test_long_task (gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  LevelTestState state;
  Test test;
  g_autoptr (PtoCallable) callable
      = pto_orchestration_function_new ("pass-on", pass_on, &test, NULL);

  for (guint level = 3; level <= 4; level++)
    {
      g_autoptr (PtoWorker) child = level_test_host (3, 1, 0);

      level_test_begin (&state);
      test_init (&test);
      pto_worker_set_parameter (pto_worker_get_child (child, 0), "backend", backend, &error);
      g_assert_no_error (error);
      pto_worker_set_parameter (child, "task-timeout", "400", &error);
      g_assert_no_error (error);
      test.handle = pto_worker_register (child, test.chain, NULL, &error);
      g_assert_no_error (error);
      test.worker = child;
      if (level == 4)
        {
          below = g_steal_pointer (&test.handle);
          test.worker = level_test_host (4, 0, 0);
          pto_worker_set_parameter (test.worker, "task-timeout", "400", &error);
          g_assert_no_error (error);
          pto_worker_add_worker (test.worker, child, &error);
          g_assert_no_error (error);
          test.handle = pto_worker_register (test.worker, callable, NULL, &error);
          g_assert_no_error (error);
        }
      atomic_store (&test.board.words[WORD_SLEEPS], 1);
      atomic_store (&test.board.words[WORD_COMES], 1);
      test.n = 40;
      test.us = 20000;
      run_chain (&test, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (atomic_load (&test.board.words[WORD_BEGAN]), ==, test.n);
      pto_worker_close (test.worker);
      g_clear_pointer (&below, pto_callable_handle_unref);
      if (level == 4)
        g_clear_object (&child);
      else
        g_steal_pointer (&child);
      test_clear (&test);
      level_test_end (&state);
    }
}

int
main (int argc, char **argv)
{
  static const char *const backends[] = { "par", "det", "threads" };

  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (backends); i++)
    {
      g_autofree char *chip = g_strconcat ("/pto/cancel/chip/", backends[i], NULL);
      g_autofree char *closing = g_strconcat ("/pto/cancel/close/", backends[i], NULL);
      g_autofree char *child = g_strconcat ("/pto/cancel/level-3/chip/", backends[i], NULL);
      g_autofree char *lasting = g_strconcat ("/pto/cancel/long-task/", backends[i], NULL);

      g_test_add_data_func (chip, backends[i], test_chip);
      g_test_add_data_func (closing, backends[i], test_close);
      g_test_add_data_func (child, backends[i], test_level_3_chip);
      g_test_add_data_func (lasting, backends[i], test_long_task);
    }
  g_test_add_func ("/pto/cancel/level-3/sub", test_level_3);
  g_test_add_func ("/pto/cancel/level-4", test_level_4);
  return g_test_run ();
}
