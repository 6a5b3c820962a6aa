/* test-threads.c: can several threads use one worker at once?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Registering, running, device memory, figures and closing, all at the same time. What is right is
 * asserted here; that nothing races is what the thread sanitizer says of the same program.
 */
#include "object-test.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define THREADS 4u
#define N 32u

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 5u
#else
#define ROUNDS 10u
#endif

typedef struct
{
  PtoWorker *worker;
  PtoCallable *kernel; /* of all threads */
  PtoCallable *chip;
  gboolean closes; /* the worker is closed meanwhile */
  int started;     /* atomic: threads that have finished a round */
} Shared;

typedef struct
{
  Shared *shared;
  guint number;
  PtoBuffer *buffer;
  PtoTensor *tensor;
  guint64 value;
} Thread;

/* Good, or ended or refused because the worker is closed. */
static gboolean
check (Thread *thread, gboolean ok, GError **error)
{
  if (!ok && thread->shared->closes && g_error_matches (*error, PTO_ERROR, PTO_ERROR_CLOSED))
    {
      g_clear_error (error);
      return FALSE;
    }
  g_assert_no_error (*error);
  g_assert_true (ok);
  return TRUE;
}

static void
assert_filled (Thread *thread, float value)
{
  const float *floats = object_test_floats (thread->buffer);

  for (guint i = 0; i < N; i++)
    g_assert_cmpfloat (floats[i], ==, value);
}

static guint64
float_bits (float value)
{
  guint32 bits;

  memcpy (&bits, &value, sizeof bits);
  return bits;
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Thread *thread = data;
  g_autoptr (PtoTaskArgs) kernel_args = pto_task_args_new ();

  pto_task_args_add_tensor (kernel_args, thread->tensor, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (kernel_args, thread->value);
  return pto_orchestrator_submit (orchestrator, thread->shared->kernel, kernel_args, error);
}

static gboolean
use_memory (Thread *thread, PtoWorker *worker)
{
  g_autoptr (GBytes) in = g_bytes_new (&thread->number, sizeof thread->number);
  g_autoptr (GBytes) out = NULL;
  GError *error = NULL;
  guint64 address = pto_worker_malloc (worker, sizeof thread->number, &error);

  if (!check (thread, address != 0, &error)
      || !check (thread, pto_worker_copy_to (worker, address, in, &error), &error))
    return FALSE;
  out = pto_worker_copy_from (worker, address, sizeof thread->number, &error);
  if (!check (thread, out != NULL, &error))
    return FALSE;
  g_assert_true (g_bytes_equal (in, out));
  return check (thread, pto_worker_free (worker, address, &error), &error);
}

static gboolean
use_callable (Thread *thread, PtoWorker *worker)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoCallableHandle) handle = NULL;
  GError *error = NULL;

  handle = pto_worker_register (worker, thread->shared->chip, NULL, &error);
  if (!check (thread, handle != NULL, &error))
    return FALSE;
  pto_task_args_add_tensor (args, thread->tensor, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (args, N);
  if (!check (thread, pto_worker_run_callable (worker, handle, args, NULL, NULL, &error), &error))
    return FALSE;
  assert_filled (thread, 7);
  return check (thread, pto_worker_unregister (worker, handle, &error), &error);
}

static gboolean
use (Thread *thread, guint round)
{
  PtoWorker *worker = thread->shared->worker;
  g_autoptr (PtoRunStatistics) statistics = NULL;
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree char *backend = NULL;
  GError *error = NULL;

  thread->value = float_bits ((float) (100 * thread->number + round));
  if (!check (thread, pto_worker_run (worker, graph, thread, NULL, NULL, NULL, &error), &error))
    return FALSE;
  assert_filled (thread, (float) (100 * thread->number + round));
  statistics = pto_worker_dup_statistics (worker);
  g_assert_nonnull (statistics);
  /* They are of the last run. The close may have ended another thread's run before its task was
   * submitted. */
  if (!thread->shared->closes)
    g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 1);
  else
    g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), <=, 1);
  trace = pto_worker_ref_trace (worker);
  backend = pto_worker_dup_parameter (worker, "backend", &error);
  g_assert_no_error (error);
  g_assert_nonnull (backend);
  g_assert_cmpint (pto_worker_get_state (worker), !=, PTO_WORKER_STATE_NEW);
  return use_memory (thread, worker) && use_callable (thread, worker);
}

static gpointer
run_thread (gpointer data)
{
  Thread *thread = data;

  for (guint round = 0; round < ROUNDS || thread->shared->closes; round++)
    {
      if (!use (thread, round))
        break;
      if (round == 0)
        g_atomic_int_inc (&thread->shared->started);
    }
  return NULL;
}

static void
test (const char *backend, gboolean closes)
{
  char *dir = object_test_make_dir ();
  g_autofree char *path = object_test_write (dir, "orch.c", object_test_orchestration);
  GError *error = NULL;
  Shared shared = { .closes = closes };
  Thread threads[THREADS];
  GThread *handles[THREADS];

  shared.kernel = object_test_kernel (dir, "fill.c", object_test_fill);
  shared.chip = pto_chip_orchestration_new (path, NULL, &error);
  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (shared.chip), 0, "fill", shared.kernel,
                                     &error);
  g_assert_no_error (error);
  shared.worker = pto_worker_new_chip (NULL, &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (shared.worker, "backend", backend, &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (shared.worker, "trace", "1", &error);
  g_assert_no_error (error);
  pto_worker_start (shared.worker, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < THREADS; i++)
    {
      threads[i] = (Thread){ .shared = &shared, .number = i };
      threads[i].buffer = pto_buffer_new (N * sizeof (float), &error);
      g_assert_no_error (error);
      threads[i].tensor = object_test_vector (threads[i].buffer);
      handles[i] = g_thread_new ("test", run_thread, &threads[i]);
    }
  if (closes)
    {
      while (g_atomic_int_get (&shared.started) < (int) THREADS)
        g_thread_yield ();
      pto_worker_close (shared.worker);
      g_assert_cmpint (pto_worker_get_state (shared.worker), ==, PTO_WORKER_STATE_CLOSED);
    }
  for (guint i = 0; i < THREADS; i++)
    {
      g_thread_join (handles[i]);
      pto_tensor_unref (threads[i].tensor);
      pto_buffer_unref (threads[i].buffer);
    }
  pto_worker_close (shared.worker);
  /* Signals from other threads, which hold it, come in this one's context. */
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_finalize_object (shared.worker);
  g_assert_finalize_object (shared.chip);
  g_assert_finalize_object (shared.kernel);
  object_test_remove_dir (dir);
}

static void
test_use (gconstpointer backend)
{
  test (backend, FALSE);
}

static void
test_close (gconstpointer backend)
{
  test (backend, TRUE);
}

/* --- a chip that is lost is replaced while somebody cancels --- */

/* args: a word. No signal ends it before the word says so. */
static const char deaf_kernel[]
    = "#include \"tensor.h\"\n"
      "#include <sys/syscall.h>\n"
      "#include <unistd.h>\n"
      "void kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *tensor = (const TensorData *) args[0];\n"
      "  uint32_t *words = (uint32_t *) tensor->buffer.addr;\n"
      "  uint64_t all = ~0ull;\n"
      "  syscall (SYS_rt_sigprocmask, 0, &all, (void *) 0, sizeof all);\n"
      "  while (__atomic_load_n (&words[0], __ATOMIC_SEQ_CST) == 0)\n"
      "    usleep (1000);\n"
      "  __atomic_store_n (&words[1], 1, __ATOMIC_SEQ_CST);\n"
      "}\n";

/* All relaxed: they are not to order what they are about. */
typedef struct
{
  GCancellable *cancellable;
  _Atomic gboolean is_running; /* the orchestration of the run that is cancelled */
  _Atomic gboolean is_over;    /* the call that cancels */
} Cancel;

static gpointer
cancel_when_running (gpointer data)
{
  Cancel *cancel = data;

  while (!atomic_load_explicit (&cancel->is_running, memory_order_relaxed))
    sched_yield ();
  g_cancellable_cancel (cancel->cancellable);
  atomic_store_explicit (&cancel->is_over, TRUE, memory_order_relaxed);
  return NULL;
}

static gboolean
wait_for_cancel (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  Cancel *cancel = data;

  atomic_store_explicit (&cancel->is_running, TRUE, memory_order_relaxed);
  while (!atomic_load_explicit (&cancel->is_over, memory_order_relaxed))
    sched_yield ();
  return TRUE;
}

static void
test_lost (void)
{
  char *dir = object_test_make_dir ();
  g_autofree char *path = object_test_write (dir, "orch.c", object_test_orchestration);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoBuffer) buffer = NULL;
  g_autoptr (PtoTensor) tensor = NULL;
  g_autoptr (PtoCallable) kernel = object_test_kernel (dir, "deaf.c", deaf_kernel);
  g_autoptr (PtoCallable) chip = NULL;
  g_autoptr (PtoCallableHandle) handle = NULL;
  PtoWorker *worker;
  GError *error = NULL;
  int *words;

  chip = pto_chip_orchestration_new (path, NULL, &error);
  g_assert_no_error (error);
  pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "deaf", kernel, &error);
  g_assert_no_error (error);
  /* On this back end no kernel is run by the thread that waits for it. */
  worker = pto_worker_new_chip (NULL, &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (worker, "backend", "threads", &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (worker, "timeout", "50", &error);
  g_assert_no_error (error);
  /* A lost chip leaves its threads. A leak checker looks through all of them at the end. */
  pto_worker_set_parameter (worker, "clusters", "1", &error);
  g_assert_no_error (error);
  /* A process that has lost its chip is ended. */
  pto_worker_set_parameter (worker, "isolate", "0", &error);
  g_assert_no_error (error);
  pto_worker_start (worker, NULL, &error);
  g_assert_no_error (error);
  handle = pto_worker_register (worker, chip, NULL, &error);
  g_assert_no_error (error);
  buffer = pto_buffer_new (N * sizeof (float), &error);
  g_assert_no_error (error);
  tensor = object_test_vector (buffer);
  words = (int *) object_test_floats (buffer);
  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (args, N);

  for (guint i = 0; i < 3; i++)
    {
      Cancel cancel = { .cancellable = g_cancellable_new () };
      GThread *thread;

      memset (words, 0, 2 * sizeof *words);
      g_assert_false (pto_worker_run_callable (worker, handle, args, NULL, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_SCHEDULER_TIMEOUT);
      g_clear_error (&error);
      thread = g_thread_new ("cancel", cancel_when_running, &cancel);
      g_assert_false (pto_worker_run (worker, wait_for_cancel, &cancel, NULL, NULL,
                                      cancel.cancellable, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_clear_error (&error);
      g_thread_join (thread);
      g_assert_true (atomic_load (&cancel.is_running));
      g_object_unref (cancel.cancellable);
      /* The buffer goes on being its until it has ended. */
      g_atomic_int_set (&words[0], 1);
      while (g_atomic_int_get (&words[1]) == 0)
        g_thread_yield ();
    }
  pto_worker_close (worker);
  g_assert_finalize_object (worker);
  object_test_remove_dir (dir);
}

int
main (int argc, char **argv)
{
  static const char *const backends[] = { "par", "det", "threads" };

  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (backends); i++)
    {
      g_autofree char *use_path = g_strconcat ("/pto/threads/use/", backends[i], NULL);
      g_autofree char *close_path = g_strconcat ("/pto/threads/close/", backends[i], NULL);

      g_test_add_data_func (use_path, backends[i], test_use);
      g_test_add_data_func (close_path, backends[i], test_close);
    }
  g_test_add_func ("/pto/threads/lost", test_lost);
  return g_test_run ();
}
