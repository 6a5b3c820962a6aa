/* level-test.c: what do the tests of workers with children share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <errno.h>
#include <sys/wait.h>

static guint
count_entries (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  guint n = 0;

  while (dir != NULL && g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

/* Threads of the library; GLib keeps some of its own. */
static guint
count_threads (void)
{
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/task", 0, NULL);
  const char *id;
  guint n = 0;

  while ((id = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_strconcat ("/proc/self/task/", id, "/comm", NULL);
      g_autofree char *name = NULL;

      /* One that has just ended has no name any more. */
      if (g_file_get_contents (path, &name, NULL, NULL) && g_str_has_prefix (name, "pto"))
        n++;
    }
  return n;
}

void
level_test_begin (LevelTestState *state)
{
  /* What GLib makes once, for its worker thread and its main context, is no leak. */
  g_autoptr (GSubprocess) process = g_subprocess_new (G_SUBPROCESS_FLAGS_NONE, NULL, "true", NULL);

  g_assert_true (g_subprocess_wait_check (process, NULL, NULL));
  g_assert_nonnull (g_main_context_default ());
  state->descriptors = count_entries ("/proc/self/fd");
  state->threads = count_threads ();
}

/* What is there too much, for a person. */
static void
list_descriptors (void)
{
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/fd", 0, NULL);
  const char *name;

  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename ("/proc/self/fd", name, NULL);
      g_autofree char *target = g_file_read_link (path, NULL);

      g_test_message ("descriptor %s: %s", name, target);
    }
}

void
level_test_end (const LevelTestState *state)
{
  g_assert_cmpint (waitpid (-1, NULL, WNOHANG), ==, -1);
  g_assert_cmpint (errno, ==, ECHILD);
  /* A thread that was joined can be seen for a moment more. */
  for (guint i = 0; i < 10000 && count_threads () > state->threads; i++)
    g_usleep (500);
  g_assert_cmpuint (count_threads (), <=, state->threads);
  if (count_entries ("/proc/self/fd") > state->descriptors)
    list_descriptors ();
  g_assert_cmpuint (count_entries ("/proc/self/fd"), <=, state->descriptors);
}

void
level_test_board_init (LevelTestBoard *board)
{
  g_autoptr (GError) error = NULL;
  guint64 shape = LEVEL_TEST_WORDS;

  board->buffer = pto_buffer_new (shape * sizeof (guint64), &error);
  g_assert_no_error (error);
  board->tensor = pto_tensor_new_for_buffer (board->buffer, 0, PTO_DTYPE_UINT64, 1, &shape, &error);
  g_assert_no_error (error);
  board->words = (_Atomic guint64 *) (guintptr) pto_buffer_get_address (board->buffer);
}

void
level_test_board_clear (LevelTestBoard *board)
{
  pto_tensor_unref (board->tensor);
  pto_buffer_unref (board->buffer);
}

_Atomic guint64 *
level_test_words (PtoTaskArgs *args, guint index)
{
  return (_Atomic guint64 *) (guintptr) pto_tensor_get_address (
      pto_task_args_get_tensor (args, index));
}

void
level_test_wait (_Atomic guint64 *word, guint64 value)
{
  while (atomic_load (word) != value)
    g_usleep (50);
}

gboolean
level_test_wait_in_task (PtoTaskArgs *args, _Atomic guint64 *word, guint64 value)
{
  while (atomic_load (word) != value)
    {
      if (pto_task_args_is_cancelled (args))
        return FALSE;
      g_usleep (50);
    }
  return TRUE;
}

PtoWorker *
level_test_host (guint level, guint n_devices, guint n_subs)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *host = pto_worker_new_host (level, n_devices, n_subs, NULL, &error);

  g_assert_no_error (error);
  g_assert_nonnull (host);
  return host;
}

PtoCallableHandle *
level_test_register (PtoWorker *worker, const char *name, PtoSubFunc func)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable = pto_sub_function_new (name, func, NULL, NULL);
  PtoCallableHandle *handle = pto_worker_register (worker, callable, NULL, &error);

  g_assert_no_error (error);
  g_assert_nonnull (handle);
  return handle;
}

static const char fill_kernel[]
    = "#include \"tensor.h\"\n"
      "void kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *out = (const TensorData *) args[0];\n"
      "  uint64_t *p = (uint64_t *) out->buffer.addr + out->start_offset;\n"
      "  for (uint64_t i = 0; i < out->shapes[0]; i++)\n"
      "    p[i] = (uint64_t) args[1];\n"
      "}\n";

static const char fill_orchestration[]
    = "#include \"pto_orchestration_api.h\"\n"
      "PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int n)\n"
      "{\n"
      "  return (PTO2OrchestrationConfig){ 3 };\n"
      "}\n"
      "int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n)\n"
      "{\n"
      "  Tensor f = make_tensor_external ((void *) args[0], &args[2], 1, PTO_DTYPE_UINT64);\n"
      "  PTOParam params[] = { make_output_param (f), make_scalar_param (args[1]) };\n"
      "  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);\n"
      "  return 0;\n"
      "}\n";

PtoCallable *
level_test_fill (const char *dir)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (dir, "fill_orch.c", fill_orchestration);
  g_autoptr (PtoCallable) kernel = object_test_kernel (dir, "fill.c", fill_kernel);
  PtoCallable *chip = pto_chip_orchestration_new (path, NULL, &error);

  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "fill", kernel, &error);
  g_assert_no_error (error);
  return chip;
}

gboolean
level_test_submit (PtoOrchestrator *orchestrator, PtoCallableHandle *handle, PtoTensor *tensor,
                   PtoDirection direction, guint64 number, int worker, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  gsize n_dims;

  if (tensor != NULL)
    pto_task_args_add_tensor (args, tensor, direction);
  pto_task_args_add_scalar (args, number);
  if (pto_callable_handle_get_kind (handle) == PTO_CALLABLE_SUB)
    return pto_orchestrator_submit_sub (orchestrator, handle, args, worker, error);
  if (pto_callable_handle_get_kind (handle) == PTO_CALLABLE_CHIP)
    pto_task_args_add_scalar (args, pto_tensor_get_shape (tensor, &n_dims)[0]);
  return pto_orchestrator_submit_next_level (orchestrator, handle, args, NULL, worker, error);
}

void
level_test_cancel_graph (PtoWorker *worker, PtoGraph *graph, PtoTaskArgs *args,
                         PtoOrchestrationFunc submit, gpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (PtoGraph) none = NULL;

  g_cancellable_cancel (cancellable);
  g_assert_false (pto_worker_run_graph (worker, graph, args, NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  none = pto_worker_capture (worker, submit, data, args, NULL, cancellable, &error);
  g_assert_null (none);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_true (pto_worker_run_graph (worker, graph, args, NULL, NULL, &error));
  g_assert_no_error (error);
}
