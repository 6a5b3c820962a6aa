/* test-graph.c: can a program keep a graph, build one, and launch it on several workers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include "../short.h"

#include <string.h>

#define N 4u

typedef struct
{
  char *dir;
  PtoCallable *add_scalar; /* f = a + scalar */
  PtoBuffer *buffers[3];
  PtoTensor *tensors[3];
  PtoTaskArgs *args; /* of a launch: the first two */
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  fixture->dir = object_test_make_dir ();
  fixture->add_scalar = object_test_kernel (fixture->dir, "add-scalar.c", object_test_add_scalar);
  fixture->args = pto_task_args_new ();
  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (GError) error = NULL;

      fixture->buffers[i] = pto_buffer_new (N * sizeof (float), &error);
      g_assert_no_error (error);
      fixture->tensors[i] = object_test_vector (fixture->buffers[i]);
    }
  pto_task_args_add_tensor (fixture->args, fixture->tensors[0], PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (fixture->args, fixture->tensors[1], PTO_DIRECTION_OUTPUT_EXISTING);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  for (guint i = 0; i < 3; i++)
    {
      pto_tensor_unref (fixture->tensors[i]);
      pto_buffer_unref (fixture->buffers[i]);
    }
  pto_task_args_unref (fixture->args);
  g_object_unref (fixture->add_scalar);
  object_test_remove_dir (fixture->dir);
}

/* [1] = [0] + 1 + 2 */
static gboolean
submit (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  Fixture *fixture = data;
  const guint64 shape[1] = { N };
  g_autoptr (PtoTensor) made
      = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_FLOAT32, 1, shape, error);

  return made != NULL
         && pto_orchestrator_submit_full (orchestrator, fixture->add_scalar, error,
                                          PTO_IN (pto_task_args_get_tensor (args, 0)),
                                          PTO_OUT (made), PTO_SCALAR_FLOAT (1), NULL)
         && pto_orchestrator_submit_full (orchestrator, fixture->add_scalar, error, PTO_IN (made),
                                          PTO_OUT_EXISTING (pto_task_args_get_tensor (args, 1)),
                                          PTO_SCALAR_FLOAT (2), NULL);
}

static PtoGraph *
capture (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = object_test_worker ();
  PtoGraph *graph = pto_worker_capture (worker, submit, fixture, fixture->args, NULL, NULL, &error);

  g_assert_no_error (error);
  /* It needs neither the worker nor the memory that it was captured with. */
  pto_worker_close (worker);
  g_assert_finalize_object (worker);
  return graph;
}

/* --- several at the same time --- */

typedef struct
{
  PtoGraph *graph;
  PtoWorker *worker;
  GThread *thread;
} Launcher;

static gpointer
launch_often (gpointer data)
{
  Launcher *launcher = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  PtoBuffer *buffers[2];

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (PtoTensor) tensor = NULL;

      buffers[i] = pto_buffer_new (N * sizeof (float), &error);
      g_assert_no_error (error);
      tensor = object_test_vector (buffers[i]);
      pto_task_args_add_tensor (args, tensor,
                                i == 0 ? PTO_DIRECTION_INPUT : PTO_DIRECTION_OUTPUT_EXISTING);
    }
  for (guint i = 0; i < 20; i++)
    {
      object_test_floats (buffers[0])[3] = (float) i;
      pto_worker_run_graph (launcher->worker, launcher->graph, args, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (object_test_floats (buffers[1])[3], ==, (float) (i + 3));
    }
  pto_worker_close (launcher->worker);
  g_object_unref (launcher->worker);
  for (guint i = 0; i < 2; i++)
    pto_buffer_unref (buffers[i]);
  return NULL;
}

static void
test_several_workers (Fixture *fixture, gconstpointer data)
{
  PtoGraph *graph = capture (fixture);
  Launcher launchers[3];

  g_assert_cmpuint (pto_graph_get_n_tasks (graph), ==, 2);
  g_assert_cmpuint (pto_graph_get_n_arguments (graph), ==, 2);
  /* Started while nobody else is at work: a child of a process whose other thread was inside of an
   * address sanitizer's allocator could not allocate. */
  for (guint i = 0; i < G_N_ELEMENTS (launchers); i++)
    launchers[i].worker = object_test_worker ();
  for (guint i = 0; i < G_N_ELEMENTS (launchers); i++)
    {
      launchers[i].graph = graph;
      launchers[i].thread = g_thread_new ("launcher", launch_often, &launchers[i]);
    }
  for (guint i = 0; i < G_N_ELEMENTS (launchers); i++)
    g_thread_join (launchers[i].thread);
  g_assert_finalize_object (graph);
}

/* --- a launch is a run --- */

static void
test_cancelled (Fixture *fixture, gconstpointer data)
{
  PtoWorker *worker = object_test_worker ();
  g_autoptr (PtoGraph) graph = capture (fixture);

  level_test_cancel_graph (worker, graph, fixture->args, submit, fixture);
  pto_worker_close (worker);
  g_object_unref (worker);
}

/* This one is of kernels. */
static void
test_level (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = g_object_new (PTO_TYPE_WORKER, "level", 3, NULL);
  g_autoptr (PtoGraph) graph = capture (fixture);
  g_autoptr (PtoGraph) none = NULL;

  g_assert_false (pto_worker_run_graph (worker, graph, fixture->args, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
  object_test_assert_contains (error->message,
                               "the tasks of this graph are kernels (\"add-scalar\"), which run on "
                               "a chip, and L3/0 has no cores: launch it on a worker of level 2");
  g_clear_error (&error);
  none = pto_worker_capture (worker, submit, fixture, fixture->args, NULL, NULL, &error);
  g_assert_null (none);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
  object_test_assert_contains (error->message, "a task of level 3 runs a registered callable");
  pto_worker_close (worker);
  g_object_unref (worker);
}

static void
test_recorded (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = pto_worker_new_chip ("a2a3sim", &error);
  g_autoptr (PtoGraph) graph = capture (fixture);
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (PtoRunStatistics) statistics = NULL;

  g_assert_no_error (error);
  pto_worker_set_parameter (worker, "trace", "1", &error);
  pto_worker_run_graph (worker, graph, fixture->args, NULL, NULL, &error);
  g_assert_no_error (error);
  trace = pto_worker_ref_trace (worker);
  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 2);
  statistics = pto_worker_dup_statistics (worker);
  g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 2);
  /* One that was refused is a run, of nothing. */
  g_assert_false (pto_worker_run_graph (worker, graph, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  pto_run_statistics_free (statistics);
  statistics = pto_worker_dup_statistics (worker);
  g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 0);
  g_clear_object (&trace);
  trace = pto_worker_ref_trace (worker);
  g_assert_true (trace == NULL || pto_trace_get_n_tasks (trace) == 0);
  pto_worker_close (worker);
  g_object_unref (worker);
}

/* --- by hand --- */

/* Task and argument are named. */
static void
test_refused (Fixture *fixture, gconstpointer data)
{
  const guint64 shape[1] = { N };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoGraph) graph = pto_graph_new ();
  g_autoptr (PtoTensor) x = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  pto_task_args_add_tensor (args, x, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, x, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar_float (args, 1);
  g_assert_cmpint (pto_graph_add_task (graph, fixture->add_scalar, args, &error), ==, 0);
  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, x, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, fixture->tensors[1], PTO_DIRECTION_OUTPUT_EXISTING);
  g_assert_cmpint (pto_graph_add_task (graph, fixture->add_scalar, args, &error), ==, -1);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "task 1: kernel \"add-scalar\": argument 1 is no "
                                               "tensor of this graph");
  g_clear_error (&error);
  g_assert_false (pto_graph_add_successor (graph, 0, 1, &error));
  object_test_assert_contains (error->message, "the graph has no task 1: it has 1");
}

/* Updates take turns, whoever comes first. */
static void
test_updates (Fixture *fixture, gconstpointer data)
{
  static const char count[] = "#include \"tensor.h\"\n"
                              "void kernel_entry (int64_t *args)\n"
                              "{\n"
                              "  const TensorData *x = (const TensorData *) args[0];\n"
                              "  volatile float *to = (volatile float *) x->buffer.addr;\n"
                              "  float value = *to;\n"
                              "  for (volatile int i = 0; i < 50000; i++)\n"
                              "    ;\n"
                              "  *to = value + 1;\n"
                              "}\n";
  static const char *const backends[] = { "par", "det", "threads" };
  const guint64 shape[1] = { N };
  char *dir = object_test_make_dir ();
  g_autoptr (PtoCallable) kernel = object_test_kernel (dir, "count.c", count);

  for (guint isolate = 0; isolate < 2; isolate++)
    for (guint b = 0; b < G_N_ELEMENTS (backends); b++)
      {
        g_autoptr (GError) error = NULL;
        g_autoptr (PtoWorker) worker
            = g_object_new (PTO_TYPE_WORKER, "isolate", isolate != 0, NULL);
        g_autoptr (PtoGraph) graph = pto_graph_new ();
        g_autoptr (PtoTensor) x
            = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
        g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
        g_autoptr (PtoTaskArgs) given = pto_task_args_new ();

        pto_worker_set_parameter (worker, "backend", backends[b], &error);
        g_assert_no_error (error);
        pto_task_args_add_tensor (args, x, PTO_DIRECTION_COMMUTATIVE);
        for (int i = 0; i < 40; i++)
          g_assert_cmpint (pto_graph_add_task (graph, kernel, args, &error), ==, i);
        pto_task_args_add_tensor (given, fixture->tensors[0], PTO_DIRECTION_INOUT);
        object_test_floats (fixture->buffers[0])[0] = 2;
        pto_worker_run_graph (worker, graph, given, NULL, NULL, &error);
        g_assert_no_error (error);
        g_assert_cmpfloat (object_test_floats (fixture->buffers[0])[0], ==, 42);
        pto_worker_close (worker);
      }
  object_test_remove_dir (dir);
}

/* --- reductions by hand --- */

/* How the builder below gets on. */
typedef struct
{
  PtoGraph *graph;
  PtoCallable *add; /* x += number */
  PtoCallable *copy;
} Builder;

static guint
add_one (Builder *builder, PtoTensor *x, gboolean reduces, float number)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  int task;

  if (reduces)
    pto_task_args_add_reduction (args, x, PTO_REDUCTION_SUM);
  else
    pto_task_args_add_tensor (args, x, PTO_DIRECTION_COMMUTATIVE);
  pto_task_args_add_scalar_float (args, number);
  task = pto_graph_add_task (builder->graph, builder->add, args, &error);
  g_assert_no_error (error);
  return (guint) task;
}

/* to = from + number */
static guint
add_copy (Builder *builder, PtoTensor *from, PtoTensor *to, PtoDirection direction, float number)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  int task;

  pto_task_args_add_tensor (args, from, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, to, direction);
  pto_task_args_add_scalar_float (args, number);
  task = pto_graph_add_task (builder->graph, builder->copy, args, &error);
  g_assert_no_error (error);
  return (guint) task;
}

static void
follow (Builder *builder, guint task, guint successor)
{
  g_autoptr (GError) error = NULL;

  pto_graph_add_successor (builder->graph, task, successor, &error);
  g_assert_no_error (error);
}

/* More of them than there are copies, of memory of the graph; y has what came of it. 32 copies are
 * filled, 31 times two are one, and the last is combined with the tensor. */
static void
build_many (Builder *builder, PtoTensor *x, PtoTensor *y)
{
  const guint64 shape[1] = { N };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoTensor) made
      = pto_graph_make_tensor (builder->graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  guint last = add_copy (builder, made, y, PTO_DIRECTION_OUTPUT_EXISTING, 1000);
  guint first = add_copy (builder, x, made, PTO_DIRECTION_OUTPUT, 10);

  for (guint i = 0; i < 100; i++)
    {
      guint task = add_one (builder, made, TRUE, (float) i);

      follow (builder, first, task);
      follow (builder, task, last);
    }
  g_assert_true (pto_graph_complete (builder->graph, &error));
  g_assert_cmpuint (pto_graph_get_n_tasks (builder->graph), ==, 102 + 32 + 31 + 1);
}

/* In between somebody looks: what came before is combined by then, and what comes after is another
 * reduction. One that goes on with it does not end it. */
static void
build_two (Builder *builder, PtoTensor *x, PtoTensor *y)
{
  g_autoptr (GError) error = NULL;
  guint a = add_one (builder, x, TRUE, 1);
  guint b = add_one (builder, x, TRUE, 2);
  guint look = add_copy (builder, x, y, PTO_DIRECTION_OUTPUT_EXISTING, 0);
  guint c = add_one (builder, x, TRUE, 4);

  follow (builder, a, b);
  follow (builder, b, look);
  follow (builder, look, c);
  /* In whichever order. */
  add_one (builder, x, FALSE, 8);
  g_assert_true (pto_graph_complete (builder->graph, &error));
  g_assert_cmpuint (pto_graph_get_n_tasks (builder->graph), ==, 5 + (2 + 2) + (1 + 1));
}

/* Each of two reductions has a task before one of the other: neither may wait for both. */
static void
build_crossing (Builder *builder, PtoTensor *x, PtoTensor *y)
{
  g_autoptr (GError) error = NULL;
  guint a = add_one (builder, x, TRUE, 1);
  guint c = add_one (builder, y, TRUE, 2);
  guint b = add_one (builder, y, TRUE, 4);
  guint d = add_one (builder, x, TRUE, 8);

  follow (builder, a, b);
  follow (builder, c, d);
  g_assert_true (pto_graph_complete (builder->graph, &error));
}

static void
test_reduced (Fixture *fixture, gconstpointer data)
{
  static const char add[] = "#include \"tensor.h\"\n"
                            "#include <string.h>\n"
                            "void kernel_entry (int64_t *args)\n"
                            "{\n"
                            "  const TensorData *x = (const TensorData *) args[0];\n"
                            "  float *to = (float *) x->buffer.addr;\n"
                            "  float value;\n"
                            "  memcpy (&value, &args[1], sizeof value);\n"
                            "  for (uint64_t i = 0; i < x->shapes[0]; i++)\n"
                            "    to[i] += value;\n"
                            "}\n";
  static void (*const builds[]) (Builder * builder, PtoTensor * x, PtoTensor * y)
      = { build_many, build_two, build_crossing };
  static const float expected[][2] = { { 3, 3 + 10 + 4950 + 1000 }, { 18, -1 }, { 12, 26 } };
  static const char *const backends[] = { "par", "det", "threads" };
  const guint64 shape[1] = { N };
  char *dir = object_test_make_dir ();
  g_autoptr (PtoCallable) kernel = object_test_kernel (dir, "add.c", add);

  for (guint g = 0; g < G_N_ELEMENTS (builds); g++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoGraph) graph = pto_graph_new ();
      g_autoptr (PtoTensor) x = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
      g_autoptr (PtoTensor) y = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
      Builder builder = { .graph = graph, .add = kernel, .copy = fixture->add_scalar };

      builds[g](&builder, x, y);
      for (guint isolate = 0; isolate < 2; isolate++)
        for (guint b = 0; b < G_N_ELEMENTS (backends); b++)
          {
            g_autoptr (PtoWorker) worker
                = g_object_new (PTO_TYPE_WORKER, "isolate", isolate != 0, NULL);
            float *in = object_test_floats (fixture->buffers[0]);
            float *out = object_test_floats (fixture->buffers[1]);

            pto_worker_set_parameter (worker, "backend", backends[b], &error);
            g_assert_no_error (error);
            for (guint launch = 0; launch < 2; launch++)
              {
                for (guint i = 0; i < N; i++)
                  {
                    in[i] = 3;
                    out[i] = 20;
                  }
                pto_worker_run_graph (worker, graph, fixture->args, NULL, NULL, &error);
                g_assert_no_error (error);
                for (guint i = 0; i < N; i++)
                  {
                    g_assert_cmpfloat (in[i], ==, expected[g][0]);
                    /* 8 is added before the look or after it. */
                    if (g == 1)
                      g_assert_true (out[i] == 6 || out[i] == 14);
                    else
                      g_assert_cmpfloat (out[i], ==, expected[g][1]);
                  }
              }
            pto_worker_close (worker);
          }
    }
  object_test_remove_dir (dir);
}

static void
test_reductions_refused (Fixture *fixture, gconstpointer data)
{
  const guint64 shape[1] = { N };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoGraph) graph = pto_graph_new ();
  g_autoptr (PtoTensor) x = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTensor) made = pto_graph_make_tensor (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  pto_task_args_add_reduction (args, x, PTO_REDUCTION_SUM);
  pto_task_args_add_reduction (args, x, PTO_REDUCTION_MAX);
  g_assert_cmpint (pto_graph_add_task (graph, fixture->add_scalar, args, &error), ==, -1);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message,
                               "task 0: kernel \"add-scalar\": argument 1 overlaps argument 0, "
                               "which the task reduces into in another way");
  g_clear_error (&error);
  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, x, PTO_DIRECTION_REDUCTION);
  g_assert_cmpint (pto_graph_add_task (graph, fixture->add_scalar, args, &error), ==, -1);
  object_test_assert_contains (error->message, "argument 0 is reduced, but nothing says how");
  g_clear_error (&error);
  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, x, PTO_DIRECTION_INPUT);
  pto_task_args_add_reduction (args, made, PTO_REDUCTION_SUM);
  pto_task_args_add_scalar_float (args, 1);
  g_assert_cmpint (pto_graph_add_task (graph, fixture->add_scalar, args, &error), ==, 0);
  g_assert_false (pto_graph_complete (graph, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (
      error->message, "task 0 of the graph reduces into a tensor that no task of it outputs");
}

static void
test_by_hand (Fixture *fixture, gconstpointer data)
{
  const guint64 shape[1] = { N };
  const guint64 wrong[1] = { 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoGraph) graph = pto_graph_new ();
  g_autoptr (PtoTensor) x = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTensor) y = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTensor) made = pto_graph_make_tensor (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoTensor) none = NULL;
  g_autofree char *text = NULL;
  PtoWorker *worker = object_test_worker ();
  int last, first, number;

  none = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, wrong, &error);
  g_assert_null (none);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  pto_task_args_add_tensor (args, made, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, y, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar_float (args, 0);
  last = pto_graph_add_task (graph, fixture->add_scalar, args, &error);
  g_assert_cmpint (last, ==, 0);
  pto_task_args_reset (args);
  pto_task_args_add_tensor (args, x, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, made, PTO_DIRECTION_OUTPUT);
  pto_task_args_add_scalar_float (args, 5);
  first = pto_graph_add_task (graph, fixture->add_scalar, args, &error);
  g_assert_cmpint (first, ==, 1);
  number = pto_graph_add_scalar_argument (graph, &error);
  g_assert_cmpint (number, ==, 2);
  g_assert_false (pto_graph_bind_scalar (graph, 0, 1, 2, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_false (pto_graph_bind_scalar (graph, 0, 2, 1, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_true (pto_graph_bind_scalar (graph, 0, 2, 2, &error));
  g_assert_false (pto_graph_add_successor (graph, 1, 1, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_true (pto_graph_add_successor (graph, 1, 0, &error));
  text = pto_graph_to_string (graph);
  g_assert_cmpstr (text, ==, "2 tasks of 1 kernel, 3 arguments, not complete");
  pto_task_args_add_scalar_float (fixture->args, 10);
  object_test_floats (fixture->buffers[0])[2] = 1;
  pto_worker_run_graph (worker, graph, fixture->args, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (object_test_floats (fixture->buffers[1])[2], ==, 16);
  pto_worker_close (worker);
  g_object_unref (worker);
}

/* As many tasks as the founding documents ask for: each adds 1 to what the one before has made. */
static void
test_many (Fixture *fixture, gconstpointer data)
{
  const guint64 shape[1] = { N };
  const int n_tasks = RUN_SHORT ? 16384 : 131072;
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoGraph) graph = pto_graph_new ();
  g_autoptr (PtoTensor) x = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTensor) y = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  PtoWorker *worker = object_test_worker ();

  for (int i = 0; i < n_tasks; i++)
    {
      pto_task_args_reset (args);
      pto_task_args_add_tensor (args, i % 2 == 0 ? x : y, PTO_DIRECTION_INPUT);
      pto_task_args_add_tensor (args, i % 2 == 0 ? y : x, PTO_DIRECTION_OUTPUT_EXISTING);
      pto_task_args_add_scalar_float (args, 1);
      g_assert_cmpint (pto_graph_add_task (graph, fixture->add_scalar, args, &error), ==, i);
      if (i > 0)
        g_assert_true (pto_graph_add_successor (graph, i - 1, i, &error));
    }
  g_assert_true (pto_graph_complete (graph, &error));
  g_assert_cmpuint (pto_graph_get_n_tasks (graph), ==, n_tasks);
  g_assert_cmpuint (pto_graph_get_n_edges (graph), ==, n_tasks - 1);
  for (int i = 0; i < 2; i++)
    {
      object_test_floats (fixture->buffers[0])[2] = 3;
      pto_worker_run_graph (worker, graph, fixture->args, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (object_test_floats (fixture->buffers[0])[2], ==, 3 + n_tasks);
    }
  pto_worker_close (worker);
  g_object_unref (worker);
}

static void
take_result (GObject *source, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static gboolean
finish (PtoWorker *worker, GAsyncResult **result, GError **error)
{
  gboolean ok;

  while (*result == NULL)
    g_main_context_iteration (NULL, TRUE);
  ok = pto_worker_run_graph_finish (worker, *result, error);
  g_clear_object (result);
  return ok;
}

/* Tensors that a graph is built of have no memory, nor has one that is captured. */
static gboolean
submit_stand_ins (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                  gpointer data, GError **error)
{
  PtoTensor **stand_ins = data;

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (PtoTaskArgs) only = pto_task_args_new ();
      g_autoptr (GError) own = NULL;

      pto_task_args_add_tensor (only, stand_ins[i], PTO_DIRECTION_INOUT);
      g_assert_false (pto_orchestrator_submit_order (orchestrator, only, &own));
      g_assert_error (own, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (own->message, "has no memory of its own");
    }
  return TRUE;
}

static gboolean
submit_alloc (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  const guint64 shape[1] = { N };
  g_autoptr (PtoTensor) tensor
      = pto_orchestrator_alloc (orchestrator, PTO_DTYPE_FLOAT32, 1, shape, error);

  if (tensor != NULL)
    memset ((gpointer) (guintptr) pto_tensor_get_address (tensor), 0, N * sizeof (float));
  return tensor != NULL;
}

static void
test_without_memory (Fixture *fixture, gconstpointer data)
{
  const guint64 shape[1] = { N };
  g_autoptr (PtoGraph) graph = pto_graph_new ();
  PtoTensor *stand_ins[] = { pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, NULL),
                             pto_graph_make_tensor (graph, PTO_DTYPE_FLOAT32, 1, shape, NULL) };

  for (guint isolate = 0; isolate < 2; isolate++)
    {
      g_autoptr (PtoWorker) worker
          = g_object_new (PTO_TYPE_WORKER, "level", 2, "isolate", (gboolean) isolate, NULL);
      g_autoptr (GError) error = NULL;

      pto_worker_run (worker, submit_stand_ins, stand_ins, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      pto_worker_run (worker, submit_alloc, NULL, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_null (pto_worker_capture (worker, submit_alloc, NULL, NULL, NULL, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "alloc() gives memory at once");
      pto_worker_close (worker);
    }
  for (guint i = 0; i < 2; i++)
    {
      g_assert_cmpuint (pto_tensor_get_address (stand_ins[i]), ==, 0);
      pto_tensor_unref (stand_ins[i]);
    }
}

/* One that is not complete is completed; several runs are one after the other; what is wrong is
 * told where the result is asked for. */
static void
test_asynchronous (Fixture *fixture, gconstpointer data)
{
  const guint64 shape[1] = { N };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoGraph) graph = pto_graph_new ();
  g_autoptr (PtoTensor) x = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTensor) y = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, &error);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (PtoGraph) circle = pto_graph_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  PtoWorker *worker = object_test_worker ();
  GAsyncResult *results[3] = { NULL };

  pto_task_args_add_tensor (args, x, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, y, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar_float (args, 5);
  g_assert_cmpint (pto_graph_add_task (graph, fixture->add_scalar, args, &error), ==, 0);
  object_test_floats (fixture->buffers[0])[2] = 1;
  for (guint i = 0; i < 3; i++)
    pto_worker_run_graph_async (worker, graph, fixture->args, NULL, NULL, take_result, &results[i]);
  for (guint i = 0; i < 3; i++)
    {
      g_assert_true (finish (worker, &results[i], &error));
      g_assert_no_error (error);
    }
  g_assert_cmpfloat (object_test_floats (fixture->buffers[1])[2], ==, 6);

  pto_worker_run_graph_async (worker, graph, NULL, NULL, NULL, take_result, &results[0]);
  g_assert_false (finish (worker, &results[0], &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);

  g_cancellable_cancel (cancellable);
  pto_worker_run_graph_async (worker, graph, fixture->args, NULL, cancellable, take_result,
                              &results[0]);
  g_assert_false (finish (worker, &results[0], &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);

  {
    g_autoptr (PtoTensor) z = pto_graph_add_argument (circle, PTO_DTYPE_FLOAT32, 1, shape, &error);

    pto_task_args_reset (args);
    pto_task_args_add_tensor (args, z, PTO_DIRECTION_INPUT);
    pto_task_args_add_tensor (args, z, PTO_DIRECTION_OUTPUT_EXISTING);
    pto_task_args_add_scalar_float (args, 5);
  }
  for (int i = 0; i < 2; i++)
    g_assert_cmpint (pto_graph_add_task (circle, fixture->add_scalar, args, &error), ==, i);
  g_assert_true (pto_graph_add_successor (circle, 0, 1, &error));
  g_assert_true (pto_graph_add_successor (circle, 1, 0, &error));
  pto_worker_run_graph_async (worker, circle, NULL, NULL, NULL, take_result, &results[0]);
  g_assert_false (finish (worker, &results[0], &error));
  object_test_assert_contains (error->message, "comes after itself");
  pto_worker_close (worker);
  g_object_unref (worker);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, test) g_test_add ("/pto/graph/" name, Fixture, NULL, set_up, test, tear_down)
  ADD ("several-workers", test_several_workers);
  ADD ("cancelled", test_cancelled);
  ADD ("level", test_level);
  ADD ("recorded", test_recorded);
  ADD ("refused", test_refused);
  ADD ("by-hand", test_by_hand);
  ADD ("many", test_many);
  ADD ("updates", test_updates);
  ADD ("reduced", test_reduced);
  ADD ("reductions-refused", test_reductions_refused);
  ADD ("asynchronous", test_asynchronous);
  ADD ("without-memory", test_without_memory);
  return g_test_run ();
}
