/* data_parallel.c: how is a model fitted by chips of two machines that share no memory?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each of two remote workers has half of the rows and two chips. A step is a task for each of them,
 * which gives the gradient of its rows (steps/shard.c), an allreduce of both, and a function here
 * that moves the weights. What waits for what follows from what each task reads and writes. Build
 * and run:
 *
 *   cc data_parallel.c -o data_parallel $(pkg-config --cflags --libs pto-1) -lm
 *   cc -shared -fPIC steps/shard.c -o shard.so $(pkg-config --cflags --libs pto-1)
 *   ./data_parallel [--job] gradient ./shard.so [ssh://one ssh://two | cluster.ini]
 *
 * With --job they are the ranks of one job of MPI: weights and gradients stay at them, MPI adds the
 * gradients up, and each moves its own weights.
 */
#include <pto/pto.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RATE 1e-3f

enum
{
  WORKERS = 2,
  CHIPS = 2,
  ROWS = 512,
  COLUMNS = 16,
  STEPS = 30
};

typedef struct Model
{
  PtoTensor *x, *y, *w;
  PtoTensor *g[WORKERS];
  PtoCallableHandle *gradient;
  PtoCallableHandle *move;
  /* Of a job. */
  PtoCallableHandle *move_there;
  PtoCallableHandle *copy;
} Model;

static float *
floats (PtoTensor *tensor)
{
  return (float *) (guintptr) pto_tensor_get_address (tensor);
}

/* Runs in the SUB worker: g, w. */
static gboolean
move (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  for (guint i = 0; i < COLUMNS; i++)
    floats (pto_task_args_get_tensor (args, 1))[i]
        -= RATE * floats (pto_task_args_get_tensor (args, 0))[i];
  return TRUE;
}

/* A worker's rows, after the weights of the step before. */
static gboolean
submit_gradient (PtoOrchestrator *orchestrator, const Model *model, PtoTensor *w, PtoTensor *g,
                 PtoDirection direction, int worker, GError **error)
{
  const guint64 shape[] = { ROWS / WORKERS, COLUMNS };
  const guint64 offsets[] = { (guint64) worker * shape[0], 0 };
  g_autoptr (PtoTensor) x = pto_tensor_view (model->x, 2, shape, offsets, error);
  g_autoptr (PtoTensor) y = x != NULL ? pto_tensor_view (model->y, 1, shape, offsets, error) : NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  if (y == NULL)
    return FALSE;
  pto_task_args_add_tensor (args, x, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, y, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, w, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, g, direction);
  return pto_orchestrator_submit_next_level (orchestrator, model->gradient, args, NULL, worker,
                                             error);
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
       GError **error)
{
  const Model *model = user_data;
  g_autoptr (PtoTaskArgs) both = pto_task_args_new ();

  pto_task_args_add_tensor (both, model->g[0], PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (both, model->w, PTO_DIRECTION_INOUT);
  for (guint step = 0; step < STEPS; step++)
    {
      for (int worker = 0; worker < WORKERS; worker++)
        if (!submit_gradient (orchestrator, model, model->w, model->g[worker],
                              PTO_DIRECTION_OUTPUT_EXISTING, worker, error))
          return FALSE;
      if (!pto_orchestrator_allreduce (orchestrator, model->g, WORKERS, PTO_REDUCTION_SUM, error)
          || !pto_orchestrator_submit_sub (orchestrator, model->move, both, -1, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
submit_there (PtoOrchestrator *orchestrator, PtoCallableHandle *handle, PtoTensor *from,
              PtoTensor *to, PtoDirection direction, int worker, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  pto_task_args_add_tensor (args, from, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, to, direction);
  return pto_orchestrator_submit_next_level (orchestrator, handle, args, NULL, worker, error);
}

/* One step of the ranks of a job: nothing of it comes here. */
static gboolean
submit_step (PtoOrchestrator *orchestrator, const Model *model, PtoTensor *const *w,
             PtoTensor *const *g, GError **error)
{
  for (int worker = 0; worker < WORKERS; worker++)
    if (!submit_gradient (orchestrator, model, w[worker], g[worker], PTO_DIRECTION_OUTPUT, worker,
                          error))
      return FALSE;
  if (!pto_orchestrator_allreduce (orchestrator, g, WORKERS, PTO_REDUCTION_SUM, error))
    return FALSE;
  for (int worker = 0; worker < WORKERS; worker++)
    if (!submit_there (orchestrator, model->move_there, g[worker], w[worker], PTO_DIRECTION_INOUT,
                       worker, error))
      return FALSE;
  return TRUE;
}

static gboolean
graph_of_job (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer user_data, GError **error)
{
  const guint64 columns = COLUMNS;
  const Model *model = user_data;
  PtoTensor *w[WORKERS] = { NULL };
  PtoTensor *g[WORKERS] = { NULL };
  gboolean ok = TRUE;

  for (int i = 0; ok && i < WORKERS; i++)
    ok = (w[i] = pto_orchestrator_make_tensor_at (orchestrator, i, PTO_DTYPE_FLOAT32, 1, &columns,
                                                  error))
             != NULL
         && (g[i] = pto_orchestrator_make_tensor_at (orchestrator, i, PTO_DTYPE_FLOAT32, 1,
                                                     &columns, error))
                != NULL
         && submit_there (orchestrator, model->copy, model->w, w[i], PTO_DIRECTION_OUTPUT, i,
                          error);
  for (guint step = 0; ok && step < STEPS; step++)
    ok = submit_step (orchestrator, model, w, g, error);
  ok = ok
       && submit_there (orchestrator, model->copy, w[WORKERS - 1], model->w,
                        PTO_DIRECTION_OUTPUT_EXISTING, WORKERS - 1, error);
  for (guint i = 0; i < WORKERS; i++)
    {
      g_clear_pointer (&w[i], pto_tensor_unref);
      g_clear_pointer (&g[i], pto_tensor_unref);
    }
  return ok;
}

static PtoTensor *
new_tensor (gsize n_dims, guint64 rows, guint64 columns, GError **error)
{
  const guint64 shape[] = { rows, columns };
  g_autoptr (PtoBuffer) buffer
      = pto_buffer_new (rows * (n_dims > 1 ? columns : 1) * sizeof (float), error);

  return buffer != NULL
             ? pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, n_dims, shape, error)
             : NULL;
}

/* Rows of a linear model without noise. */
static gboolean
make_tensors (Model *model, GError **error)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (1);
  float weights[COLUMNS];

  if ((model->x = new_tensor (2, ROWS, COLUMNS, error)) == NULL
      || (model->y = new_tensor (1, ROWS, 0, error)) == NULL
      || (model->w = new_tensor (1, COLUMNS, 0, error)) == NULL)
    return FALSE;
  for (guint i = 0; i < WORKERS; i++)
    if ((model->g[i] = new_tensor (1, COLUMNS, 0, error)) == NULL)
      return FALSE;
  for (guint i = 0; i < COLUMNS; i++)
    weights[i] = (float) g_rand_double_range (random, -1, 1);
  for (guint i = 0; i < ROWS * COLUMNS; i++)
    {
      floats (model->x)[i] = (float) g_rand_double_range (random, -1.7, 1.7);
      floats (model->y)[i / COLUMNS] += floats (model->x)[i] * weights[i % COLUMNS];
    }
  return TRUE;
}

static void
free_model (Model *model)
{
  g_clear_pointer (&model->x, pto_tensor_unref);
  g_clear_pointer (&model->y, pto_tensor_unref);
  g_clear_pointer (&model->w, pto_tensor_unref);
  for (guint i = 0; i < WORKERS; i++)
    g_clear_pointer (&model->g[i], pto_tensor_unref);
  g_clear_pointer (&model->gradient, pto_callable_handle_unref);
  g_clear_pointer (&model->move, pto_callable_handle_unref);
  g_clear_pointer (&model->move_there, pto_callable_handle_unref);
  g_clear_pointer (&model->copy, pto_callable_handle_unref);
}

static double
get_residual (const Model *model, const double *w, guint row)
{
  double residual = -(double) floats (model->y)[row];

  for (guint c = 0; c < COLUMNS; c++)
    residual += (double) floats (model->x)[row * COLUMNS + c] * w[c];
  return residual;
}

/* All steps in one process, in double precision; gives the greatest error of a weight. */
static double
compare (const Model *model, double *mean_squared)
{
  double expected[COLUMNS] = { 0 };
  double found[COLUMNS];
  double greatest = 0;

  for (guint step = 0; step < STEPS; step++)
    {
      double g[COLUMNS] = { 0 };

      for (guint r = 0; r < ROWS; r++)
        {
          double residual = get_residual (model, expected, r);

          for (guint c = 0; c < COLUMNS; c++)
            g[c] += (double) floats (model->x)[r * COLUMNS + c] * residual;
        }
      for (guint c = 0; c < COLUMNS; c++)
        expected[c] -= (double) RATE * g[c];
    }
  for (guint c = 0; c < COLUMNS; c++)
    {
      found[c] = (double) floats (model->w)[c];
      greatest = fmax (greatest, fabs (found[c] - expected[c]));
    }
  *mean_squared = 0;
  for (guint r = 0; r < ROWS; r++)
    *mean_squared += pow (get_residual (model, found, r), 2) / ROWS;
  return greatest;
}

static GVariant *
make_options (void)
{
  GVariantDict options;

  g_variant_dict_init (&options, NULL);
  g_variant_dict_insert (&options, "devices", "u", CHIPS);
  g_variant_dict_insert (&options, "sub-workers", "u", 1);
  return g_variant_dict_end (&options);
}

static gboolean
add_remotes (PtoWorker *root, const char *const *addresses, gboolean is_job, GError **error)
{
  g_autofree PtoWorker **ranks = NULL;

  if (is_job)
    {
      ranks = pto_worker_add_remote_job (root, addresses, make_options (), error);
      return ranks != NULL;
    }
  for (guint i = 0; i < WORKERS; i++)
    if (pto_worker_add_remote_worker (root, addresses[i], make_options (), error) == NULL)
      return FALSE;
  return TRUE;
}

/* At two addresses, or where a cluster file says; with what they submit themselves. */
static gboolean
add_workers (PtoWorker *root, const char *const *addresses, gboolean is_job, PtoCallable *on_chip,
             GError **error)
{
  if (g_str_has_suffix (addresses[0], ".ini"))
    {
      g_autoptr (PtoClusterFile) file = pto_cluster_file_new (addresses[0], error);

      if (file == NULL || !pto_worker_add_cluster (root, file, error))
        return FALSE;
    }
  else if (!add_remotes (root, addresses, is_job, error))
    return FALSE;
  for (guint i = 0; i < pto_worker_get_n_workers (root); i++)
    {
      g_autoptr (PtoCallableHandle) handle
          = pto_worker_register (pto_worker_get_child (root, i), on_chip, NULL, error);

      if (handle == NULL)
        return FALSE;
    }
  return TRUE;
}

/* What a chip runs: the orchestration and its two kernels. */
static PtoCallable *
make_chip_gradient (const char *directory, GError **error)
{
  static const char *const names[] = { "gradient", "add" };
  g_autofree char *orchestration = g_build_filename (directory, "gradient_orch.c", NULL);
  g_autoptr (PtoCallable) made = pto_chip_orchestration_new (orchestration, NULL, error);

  for (guint i = 0; made != NULL && i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *name = g_strdup_printf ("%s.c", names[i]);
      g_autofree char *source = g_build_filename (directory, "kernels", name, NULL);
      g_autoptr (PtoCallable) kernel = pto_kernel_new (PTO_CORE_AIV, source, NULL, error);

      if (kernel == NULL
          || !pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (made), i, names[i], kernel,
                                                 error))
        return NULL;
    }
  return g_steal_pointer (&made);
}

/* A function of the library that remote workers load. */
static PtoCallableHandle *
register_there (PtoWorker *root, const char *library, const char *name, GError **error)
{
  g_autofree char *symbol = g_strdup_printf ("%s:%s", library, name);
  g_autoptr (PtoCallable) callable
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_ORCHESTRATION, symbol, error);

  return callable != NULL ? pto_worker_register (root, callable, NULL, error) : NULL;
}

static gboolean
run (Model *model, const char *const *words, gboolean is_job, gboolean *passed, GError **error)
{
  g_autoptr (PtoWorker) root = g_object_new (PTO_TYPE_WORKER, "level", 4, "n-sub-workers", 1, NULL);
  g_autoptr (PtoCallable) update = pto_sub_function_new ("move", move, NULL, NULL);
  g_autoptr (PtoCallable) on_chip = make_chip_gradient (words[0], error);
  double mean_squared;

  if (on_chip == NULL || !add_workers (root, words + 2, is_job, on_chip, error))
    return FALSE;
  if ((model->gradient = register_there (root, words[1], "gradient", error)) == NULL
      || (model->move_there = register_there (root, words[1], "move", error)) == NULL
      || (model->copy = register_there (root, words[1], "copy", error)) == NULL
      || (model->move = pto_worker_register (root, update, NULL, error)) == NULL
      || !make_tensors (model, error)
      || !pto_worker_run (root, is_job ? graph_of_job : graph, model, NULL, NULL, NULL, error))
    return FALSE;

  *passed = compare (model, &mean_squared) <= 1e-4;
  printf ("%d steps on %d %s with %d chips each: the mean squared error is %.1e: %s\n", STEPS,
          WORKERS, is_job ? "ranks of a job" : "remote workers", CHIPS, mean_squared,
          *passed ? "PASS" : "FAIL");
  pto_worker_close (root);
  return TRUE;
}

int
main (int argc, char **argv)
{
  const char *words[]
      = { "examples/data-parallel/gradient", "./shard.so", "local:", "local:", NULL };
  gboolean is_job = argc > 1 && strcmp (argv[1], "--job") == 0;
  g_autoptr (GError) error = NULL;
  Model model = { 0 };
  gboolean passed = FALSE;

  for (int i = 1 + is_job, k = 0; i < argc && words[k] != NULL; i++, k++)
    words[k] = argv[i];
  if (!run (&model, words, is_job, &passed, &error))
    fprintf (stderr, "data_parallel: %s\n", error->message);
  free_model (&model);
  return passed ? 0 : 1;
}
