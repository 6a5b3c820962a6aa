/* by_hand.c: how does a program build a graph itself, and launch it with other arguments?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * f = (a + b + 1)(a + b + number): four tasks, of which the second and the third run side by side.
 * Its argument is the directory of kernels of another example. Build and run:
 *
 *   cc by_hand.c -o by_hand $(pkg-config --cflags --libs pto-1) && ./by_hand DIR/vector/kernels
 */
#include <pto/pto.h>

#include <stdio.h>

#define N 1024
#define LAUNCHES 3

/* Its number, or -1 with an error. A task that is given a number has that as its last argument. */
static int
add_task (PtoGraph *graph, PtoCallable *kernel, PtoTensor *x, PtoTensor *y, PtoTensor *out,
          PtoDirection direction, const float *number, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  pto_task_args_add_tensor (args, x, PTO_DIRECTION_INPUT);
  if (y != NULL)
    pto_task_args_add_tensor (args, y, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, out, direction);
  if (number != NULL)
    pto_task_args_add_scalar_float (args, *number);
  return pto_graph_add_task (graph, kernel, args, error);
}

/* Launched with a, b, f and the number. */
static PtoGraph *
build (PtoCallable *add, PtoCallable *add_scalar, PtoCallable *mul, GError **error)
{
  const guint64 shape[] = { N };
  const float one = 1;
  g_autoptr (PtoGraph) graph = pto_graph_new ();
  /* Stand for what each launch is given ... */
  g_autoptr (PtoTensor) a = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, error);
  g_autoptr (PtoTensor) b = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, NULL);
  g_autoptr (PtoTensor) f = pto_graph_add_argument (graph, PTO_DTYPE_FLOAT32, 1, shape, NULL);
  int number = pto_graph_add_scalar_argument (graph, NULL);
  /* ... and for memory that each launch has between its tasks. */
  g_autoptr (PtoTensor) sum = pto_graph_make_tensor (graph, PTO_DTYPE_FLOAT32, 1, shape, error);
  g_autoptr (PtoTensor) left = pto_graph_make_tensor (graph, PTO_DTYPE_FLOAT32, 1, shape, NULL);
  g_autoptr (PtoTensor) right = pto_graph_make_tensor (graph, PTO_DTYPE_FLOAT32, 1, shape, NULL);
  int tasks[4];

  tasks[0] = add_task (graph, add, a, b, sum, PTO_DIRECTION_OUTPUT, NULL, error);
  if (tasks[0] < 0)
    return NULL;
  tasks[1] = add_task (graph, add_scalar, sum, NULL, left, PTO_DIRECTION_OUTPUT, &one, error);
  if (tasks[1] < 0)
    return NULL;
  tasks[2] = add_task (graph, add_scalar, sum, NULL, right, PTO_DIRECTION_OUTPUT, &one, error);
  if (tasks[2] < 0)
    return NULL;
  tasks[3] = add_task (graph, mul, left, right, f, PTO_DIRECTION_OUTPUT_EXISTING, NULL, error);
  if (tasks[3] < 0)
    return NULL;
  /* The number of the third task is that of the launch: its argument 2. */
  if (!pto_graph_bind_scalar (graph, (guint) tasks[2], 2, (guint) number, error)
      || !pto_graph_add_successor (graph, (guint) tasks[0], (guint) tasks[1], error)
      || !pto_graph_add_successor (graph, (guint) tasks[0], (guint) tasks[2], error)
      || !pto_graph_add_successor (graph, (guint) tasks[1], (guint) tasks[3], error)
      || !pto_graph_add_successor (graph, (guint) tasks[2], (guint) tasks[3], error)
      || !pto_graph_complete (graph, error))
    return NULL;
  return g_steal_pointer (&graph);
}

static gboolean
launch (PtoWorker *worker, PtoGraph *graph, float number, gboolean *same, GError **error)
{
  const guint64 shape[] = { N };
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (3 * N * sizeof (float), error);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  float *all;

  if (buffer == NULL)
    return FALSE;
  all = (float *) (guintptr) pto_buffer_get_address (buffer);
  for (guint i = 0; i < 3 * N; i++)
    all[i] = (float) (i % 17);
  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (PtoTensor) tensor = pto_tensor_new_for_buffer (buffer, i * N * sizeof (float),
                                                                PTO_DTYPE_FLOAT32, 1, shape, error);

      if (tensor == NULL)
        return FALSE;
      pto_task_args_add_tensor (args, tensor,
                                i < 2 ? PTO_DIRECTION_INPUT : PTO_DIRECTION_OUTPUT_EXISTING);
    }
  pto_task_args_add_scalar_float (args, number);
  if (!pto_worker_run_graph (worker, graph, args, NULL, NULL, error))
    return FALSE;
  for (guint i = 0; i < N; i++)
    *same = *same && all[2 * N + i] == (all[i] + all[N + i] + 1) * (all[i] + all[N + i] + number);
  return TRUE;
}

static PtoCallable *
load (const char *directory, const char *name, GError **error)
{
  g_autofree char *path = g_build_filename (directory, name, NULL);

  return pto_kernel_new (PTO_CORE_AIV, path, NULL, error);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = pto_worker_new_chip ("a2a3sim", &error);
  g_autoptr (PtoCallable) add = NULL;
  g_autoptr (PtoCallable) add_scalar = NULL;
  g_autoptr (PtoCallable) mul = NULL;
  g_autoptr (PtoGraph) graph = NULL;
  gboolean same = TRUE;
  guint n = 0;

  if (argc == 2 && worker != NULL)
    add = load (argv[1], "add.c", &error);
  if (add != NULL)
    add_scalar = load (argv[1], "add_scalar.c", &error);
  if (add_scalar != NULL)
    mul = load (argv[1], "mul.c", &error);
  if (mul != NULL)
    graph = build (add, add_scalar, mul, &error);
  while (graph != NULL && n < LAUNCHES && launch (worker, graph, (float) (n + 2), &same, &error))
    n++;
  if (n == LAUNCHES)
    printf ("%u tasks, %u edges, built by hand, launched %u times: %s\n",
            pto_graph_get_n_tasks (graph), pto_graph_get_n_edges (graph), n,
            same ? "PASS" : "FAIL");
  if (worker != NULL)
    pto_worker_close (worker);
  if (argc != 2)
    fprintf (stderr, "usage: %s DIR/vector/kernels\n", argv[0]);
  if (error != NULL)
    fprintf (stderr, "%s\n", error->message);
  return n == LAUNCHES && same ? 0 : 1;
}
