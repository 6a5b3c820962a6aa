/* test-isolate-graph.c: what becomes of graphs where the chip is in a process of its own, which may
 * die?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The tests of graphs run once more with the environment's PTO_ISOLATE; here is what they do not
 * ask.
 */
#include "object-test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N 4u
/* A sanitizer keeps memory that was freed. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define IS_SANITIZED TRUE
#else
#define IS_SANITIZED FALSE
#endif

/* f = a + scalar; what a begins with says what else. */
static const char mortal[]
    = "#define _GNU_SOURCE\n"
      "#include \"tensor.h\"\n"
      "#include <signal.h>\n"
      "#include <string.h>\n"
      "#include <unistd.h>\n"
      "void kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *a = (const TensorData *) args[0];\n"
      "  const TensorData *f = (const TensorData *) args[1];\n"
      "  const float *p = (const float *) a->buffer.addr + a->start_offset;\n"
      "  volatile float *r = (volatile float *) f->buffer.addr + f->start_offset;\n"
      "  sigset_t all;\n"
      "  float value;\n"
      "  memcpy (&value, &args[2], sizeof value);\n"
      "  if (p[0] < 0)\n"
      "    kill (getpid (), SIGKILL);\n"
      "  for (uint64_t i = 0; i < f->shapes[0]; i++)\n"
      "    r[i] = p[i] + value;\n"
      "  sigfillset (&all);\n"
      "  while (p[0] >= 1000)\n"
      "    {\n"
      "      sigprocmask (SIG_SETMASK, &all, 0);\n"
      "      pause ();\n"
      "    }\n"
      "}\n";

typedef struct
{
  char *dir;
  PtoWorker *worker;
  PtoCallable *add;
  PtoCallable *mortal;
  PtoGraph *graph; /* y = x + 1 + 2, the second by mortal */
  PtoBuffer *buffers[2];
  PtoTaskArgs *args; /* both */
} Fixture;

#define ARENA_BYTES ((gsize) 64 << 20)

static PtoWorker *
make_worker (gboolean isolate)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = g_object_new (PTO_TYPE_WORKER, "isolate", isolate, NULL);

  /* A chip in this process has none. */
  g_assert_true (!isolate || pto_worker_set_parameter (worker, "arena", "64M", &error));
  g_assert_true (pto_worker_start (worker, NULL, &error));
  g_assert_no_error (error);
  return worker;
}

static int
add_task (PtoGraph *graph, PtoCallable *kernel, PtoTensor *from, PtoTensor *to, float value)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  int task;

  pto_task_args_add_tensor (args, from, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, to, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar_float (args, value);
  task = pto_graph_add_task (graph, kernel, args, &error);
  g_assert_no_error (error);
  return task;
}

/* Tasks of add side by side, y = x + 1, then one that makes it 2 more. */
static PtoGraph *
make_graph (Fixture *fixture, guint n)
{
  const guint64 shape[1] = { N };
  g_autoptr (GError) error = NULL;
  PtoGraph *graph = pto_graph_new ();
  g_autoptr (PtoTensor) x = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTensor) y = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  int last;

  for (guint i = 0; i < n; i++)
    add_task (graph, fixture->add, x, y, 1);
  last = add_task (graph, fixture->mortal, y, y, 2);
  for (int i = 0; i < last; i++)
    {
      if (i > 0)
        pto_graph_add_successor (graph, (guint) i - 1, (guint) i, &error);
      pto_graph_add_successor (graph, (guint) i, (guint) last, &error);
    }
  g_assert_no_error (error);
  return graph;
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  fixture->dir = object_test_make_dir ();
  fixture->add = object_test_kernel (fixture->dir, "add.c", object_test_add_scalar);
  fixture->mortal = object_test_kernel (fixture->dir, "mortal.c", mortal);
  fixture->worker = make_worker (TRUE);
  fixture->args = pto_task_args_new ();
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (PtoTensor) tensor = NULL;

      fixture->buffers[i] = pto_buffer_new (N * sizeof (float), NULL);
      tensor = object_test_vector (fixture->buffers[i]);
      pto_task_args_add_tensor (fixture->args, tensor,
                                i == 0 ? PTO_DIRECTION_INPUT : PTO_DIRECTION_OUTPUT_EXISTING);
    }
  fixture->graph = make_graph (fixture, 1);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  pto_worker_close (fixture->worker);
  g_object_unref (fixture->worker);
  g_clear_object (&fixture->graph);
  g_object_unref (fixture->add);
  g_object_unref (fixture->mortal);
  pto_task_args_unref (fixture->args);
  for (guint i = 0; i < 2; i++)
    pto_buffer_unref (fixture->buffers[i]);
  object_test_remove_dir (fixture->dir);
}

static gboolean
launch (Fixture *fixture, PtoGraph *graph, float value, GCancellable *cancellable, GError **error)
{
  for (guint i = 0; i < N; i++)
    object_test_floats (fixture->buffers[0])[i] = value + (float) i;
  return pto_worker_run_graph (fixture->worker, graph, fixture->args, NULL, cancellable, error);
}

static void
check_launch (Fixture *fixture, PtoGraph *graph, float value)
{
  g_autoptr (GError) error = NULL;

  launch (fixture, graph, value, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N; i++)
    g_assert_cmpfloat (object_test_floats (fixture->buffers[1])[i], ==, value + (float) i + 3);
}

/* --- the child --- */

/* 0: there is none. */
static int
find_child (void)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/task/%d/children", (int) getpid ());
  g_autofree char *text = NULL;

  return g_file_get_contents (path, &text, NULL, NULL) ? atoi (text) : 0;
}

static guint64
count_resident (void)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/statm", find_child ());
  g_autofree char *text = NULL;
  g_auto (GStrv) numbers = NULL;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    g_error ("there is no %s", path);
  numbers = g_strsplit (text, " ", 3);
  return g_ascii_strtoull (numbers[1], NULL, 10) * (guint64) sysconf (_SC_PAGESIZE);
}

/* A graph is launched by a child that has not launched it before, again and again. */
static void
test_dies (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  int child;

  check_launch (fixture, fixture->graph, 5);
  for (guint i = 0; i < 3; i++)
    {
      child = find_child ();
      g_assert_false (launch (fixture, fixture->graph, -50, NULL, &error));
      g_test_message ("%s", error->message);
      g_assert_error (error, PTO_ERROR, PTO_ERROR_KERNEL_FAULT);
      object_test_assert_contains (error->message, "task 1 of ring 0 (mortal) on core AIV");
      g_clear_error (&error);
      check_launch (fixture, fixture->graph, (float) i);
      g_assert_cmpint (find_child (), !=, child);
      check_launch (fixture, fixture->graph, 100);
    }
}

static gpointer
cancel_when_written (gpointer data)
{
  gpointer *both = data;
  volatile float *written = both[0];

  while (*written < 1000)
    g_usleep (1000);
  g_cancellable_cancel (both[1]);
  return NULL;
}

static void
test_cancel (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  gpointer both[] = { object_test_floats (fixture->buffers[1]), cancellable };
  GThread *thread;

  check_launch (fixture, fixture->graph, 5);
  thread = g_thread_new ("cancel", cancel_when_written, both);
  g_assert_false (launch (fixture, fixture->graph, 2000, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_thread_join (thread);
  check_launch (fixture, fixture->graph, 6);
}

/* --- what goes to it --- */

/* All of the arena but less than 64 KiB in a row. What does not fit there any more is memory of its
 * own, of which no more is taken than the tools that look after the test can spare. */
static void
take_arena (GPtrArray *taken)
{
  for (gsize bytes = ARENA_BYTES; bytes >= 65536; bytes /= 2)
    for (guint i = 0; i < 4; i++)
      {
        PtoBuffer *buffer = pto_buffer_new (bytes, NULL);

        g_assert_nonnull (buffer);
        g_ptr_array_add (taken, buffer);
      }
}

/* Where nothing can go to the child any more, a graph that it has is launched. */
static void
test_sent_once (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoGraph) graph = make_graph (fixture, 1000);
  g_autoptr (PtoGraph) other = make_graph (fixture, 1000);
  g_autoptr (GPtrArray) taken = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_buffer_unref);
  g_autoptr (GError) error = NULL;

  check_launch (fixture, graph, 1);
  take_arena (taken);
  check_launch (fixture, graph, 2);
  g_assert_false (launch (fixture, other, 2, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY);
  object_test_assert_contains (error->message, "sending a graph of 1001 tasks: no room");
  object_test_assert_contains (error->message, "set arena to more");
  check_launch (fixture, graph, 3);
  g_ptr_array_set_size (taken, 0);
  check_launch (fixture, other, 4);
  check_launch (fixture, graph, 5);
}

/* Copies go with their graphs. */
static void
test_forgotten (Fixture *fixture, gconstpointer data)
{
  guint64 before = 0;

  if (IS_SANITIZED)
    {
      g_test_skip ("what is freed is kept");
      return;
    }
  for (guint i = 0; i < 40; i++)
    {
      PtoGraph *graph = make_graph (fixture, 10000);

      check_launch (fixture, graph, 1);
      g_assert_finalize_object (graph);
      if (i == 7)
        before = count_resident ();
    }
  /* Each takes more than a megabyte. */
  g_assert_cmpuint (count_resident (), <, before + ((guint64) 16 << 20));
}

/* --- captures --- */

/* y = x + 1 + 2, of tensors that the function makes itself. */
static gboolean
submit (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  Fixture *fixture = data;
  PtoTensor *x = pto_task_args_get_tensor (args, 0);
  PtoTensor *y = pto_task_args_get_tensor (args, 1);

  for (guint i = 0; i < 100; i++)
    {
      g_autoptr (PtoTensor) made = NULL;

      if (!pto_orchestrator_begin_scope (orchestrator, error))
        return FALSE;
      made = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_FLOAT32, 1,
                                           (const guint64[]){ N }, error);
      if (made == NULL
          || !pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (x),
                                            PTO_OUT (made), PTO_SCALAR_FLOAT (1), NULL)
          || !pto_orchestrator_submit_full (orchestrator, fixture->mortal, error, PTO_IN (made),
                                            PTO_OUT_EXISTING (y), PTO_SCALAR_FLOAT (2), NULL)
          || !pto_orchestrator_end_scope (orchestrator, error))
        return FALSE;
    }
  return TRUE;
}

/* On the virtual clock what is recorded of a launch is the same, byte by byte, wherever the graph
 * was captured and wherever it is launched. */
static void
test_same (Fixture *fixture, gconstpointer data)
{
  PtoGraph *graphs[2];
  char *sha = NULL;

  for (guint captured = 0; captured < 2; captured++)
    {
      g_autoptr (PtoWorker) worker = make_worker (captured != 0);
      g_autoptr (GError) error = NULL;

      graphs[captured]
          = pto_worker_capture (worker, submit, fixture, fixture->args, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (pto_graph_get_n_tasks (graphs[captured]), ==, 200);
      g_assert_cmpuint (pto_graph_get_n_edges (graphs[captured]), ==, 199);
      pto_worker_close (worker);
    }
  for (guint i = 0; i < 4; i++)
    {
      g_autoptr (PtoWorker) worker = g_object_new (PTO_TYPE_WORKER, "isolate", i / 2 == 1, NULL);
      g_autoptr (PtoRunStatistics) statistics = NULL;
      g_autoptr (PtoTrace) trace = NULL;
      g_autoptr (GError) error = NULL;

      g_assert_true (pto_worker_set_parameter (worker, "backend", "det", &error));
      g_assert_true (pto_worker_set_parameter (worker, "trace", "1", &error));
      object_test_floats (fixture->buffers[0])[3] = (float) i;
      pto_worker_run_graph (worker, graphs[i % 2], fixture->args, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (object_test_floats (fixture->buffers[1])[3], ==, (float) i + 3);
      statistics = pto_worker_dup_statistics (worker);
      g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 200);
      trace = pto_worker_ref_trace (worker);
      g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 200);
      if (sha == NULL)
        sha = g_strdup (pto_trace_get_sha256 (trace));
      g_assert_cmpstr (pto_trace_get_sha256 (trace), ==, sha);
      pto_worker_close (worker);
    }
  g_free (sha);
  g_object_unref (graphs[0]);
  g_object_unref (graphs[1]);
}

/* The address of an argument as a number. */
static gboolean
submit_address (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  Fixture *fixture = data;
  PtoTensor *x = pto_task_args_get_tensor (args, 0);

  return pto_orchestrator_submit_full (orchestrator, fixture->add, error, PTO_IN (x),
                                       PTO_OUT_EXISTING (pto_task_args_get_tensor (args, 1)),
                                       PTO_SCALAR (pto_tensor_get_address (x) + 4), NULL);
}

/* Of memory that the child sees, and of memory of which it has a copy; the next run is as if there
 * had been none. */
static void
test_address (Fixture *fixture, gconstpointer data)
{
  g_autofree float *array = g_new0 (float, N);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) tensor = pto_tensor_new_external (
      (guint64) (guintptr) array, PTO_DTYPE_FLOAT32, 1, (const guint64[]){ N });

  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, pto_task_args_get_tensor (fixture->args, 1),
                            PTO_DIRECTION_OUTPUT_EXISTING);
  for (guint i = 0; i < 4; i++)
    {
      g_autoptr (PtoWorker) worker = make_worker (i / 2 == 1);
      g_autoptr (GError) error = NULL;
      PtoGraph *graph = pto_worker_capture (worker, submit_address, fixture,
                                            i % 2 == 0 ? fixture->args : args, NULL, NULL, &error);

      g_assert_null (graph);
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message,
                                   "argument 2 is a number that points into memory of the graph");
      g_clear_error (&error);
      graph = pto_worker_capture (worker, submit, fixture, args, NULL, NULL, &error);
      g_assert_no_error (error);
      array[2] = 7;
      pto_worker_run_graph (worker, graph, args, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (object_test_floats (fixture->buffers[1])[2], ==, 10);
      g_object_unref (graph);
      pto_worker_close (worker);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, test) \
  g_test_add ("/pto/isolate-graph/" name, Fixture, NULL, set_up, test, tear_down)
  ADD ("dies", test_dies);
  ADD ("cancel", test_cancel);
  ADD ("sent-once", test_sent_once);
  ADD ("forgotten", test_forgotten);
  ADD ("same", test_same);
  ADD ("address", test_address);
  return g_test_run ();
}
