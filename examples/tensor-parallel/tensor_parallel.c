/* tensor_parallel.c: how do two chips share the layers of a feed-forward network?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Layer by layer: chip i computes max (x W[:, i], 0) V[i, :] with its half of the weights, then an
 * allreduce adds the two partial results, and the sum is what the next layer of both chips begins
 * with. The reference is the same without parts, in double precision. Build and run:
 *
 *   cc tensor_parallel.c -o tensor_parallel $(pkg-config --cflags --libs pto-1) -lm
 *   ./tensor_parallel DIR/tensor-parallel/feed-forward DIR/bgemm/kernels/gemm.c
 */
#include <pto/pto.h>

#include <math.h>
#include <stdio.h>

enum
{
  CHIPS = 2,
  LAYERS = 3,
  ROWS = 48,
  WIDTH = 64,
  HIDDEN = 256,
  SHARE = HIDDEN / CHIPS
};

typedef struct Network
{
  PtoTensor *x[CHIPS];         /* ROWS x WIDTH, the same for each */
  PtoTensor *w[LAYERS][CHIPS]; /* WIDTH x SHARE: columns of W */
  PtoTensor *v[LAYERS][CHIPS]; /* SHARE x WIDTH: rows of V */
  PtoTensor *out[CHIPS];
  PtoCallableHandle *layer;
  PtoCallableHandle *allreduce;
} Network;

static float *
floats (PtoTensor *tensor)
{
  return (float *) (guintptr) pto_tensor_get_address (tensor);
}

/* Runs in the SUB worker: every part becomes the sum of all. */
static gboolean
allreduce (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  guint n_parts = pto_task_args_get_n_tensors (args);

  for (guint i = 0; i < ROWS * WIDTH; i++)
    {
      float sum = 0;

      for (guint p = 0; p < n_parts; p++)
        sum += floats (pto_task_args_get_tensor (args, p))[i];
      for (guint p = 0; p < n_parts; p++)
        floats (pto_task_args_get_tensor (args, p))[i] = sum;
    }
  return TRUE;
}

/* One layer: a task for each chip, then the allreduce, which makes `parts` the layer's result. */
static gboolean
submit_layer (PtoOrchestrator *orchestrator, const Network *network, guint layer,
              PtoTensor *const *from, PtoTensor *const *parts, GError **error)
{
  g_autoptr (PtoTaskArgs) all = pto_task_args_new ();

  for (int chip = 0; chip < CHIPS; chip++)
    {
      g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

      pto_task_args_add_tensor (args, from[chip], PTO_DIRECTION_INPUT);
      pto_task_args_add_tensor (args, network->w[layer][chip], PTO_DIRECTION_INPUT);
      pto_task_args_add_tensor (args, network->v[layer][chip], PTO_DIRECTION_INPUT);
      pto_task_args_add_tensor (args, parts[chip], PTO_DIRECTION_OUTPUT);
      if (!pto_orchestrator_submit_next_level (orchestrator, network->layer, args, NULL, chip,
                                               error))
        return FALSE;
      pto_task_args_add_tensor (all, parts[chip], PTO_DIRECTION_INOUT);
    }
  return pto_orchestrator_submit_sub (orchestrator, network->allreduce, all, -1, error);
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
       GError **error)
{
  const Network *network = user_data;
  g_autoptr (GPtrArray) made = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_tensor_unref);
  PtoTensor *const *from = network->x;

  /* All at first: the array must not move while `from` points into it. */
  for (guint i = 0; i < (LAYERS - 1) * CHIPS; i++)
    {
      PtoTensor *part = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_FLOAT32, 2,
                                                      (guint64[]){ ROWS, WIDTH }, error);

      if (part == NULL)
        return FALSE;
      g_ptr_array_add (made, part);
    }
  for (guint layer = 0; layer < LAYERS; layer++)
    {
      PtoTensor *const *parts
          = layer + 1 < LAYERS ? (PtoTensor *const *) made->pdata + layer * CHIPS : network->out;

      if (!submit_layer (orchestrator, network, layer, from, parts, error))
        return FALSE;
      from = parts;
    }
  return TRUE;
}

/* A matrix where child processes see it; its elements are below `scale`. */
static PtoTensor *
new_matrix (guint64 rows, guint64 columns, GRand *random, double scale, GError **error)
{
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (rows * columns * sizeof (float), error);
  PtoTensor *tensor;

  if (buffer == NULL)
    return NULL;
  tensor = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, 2, (guint64[]){ rows, columns },
                                      error);
  for (guint64 i = 0; tensor != NULL && i < rows * columns; i++)
    floats (tensor)[i] = (float) g_rand_double_range (random, -scale, scale);
  return tensor;
}

static gboolean
make_tensors (Network *network, GError **error)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (2);

  for (int chip = 0; chip < CHIPS; chip++)
    {
      if ((network->x[chip] = new_matrix (ROWS, WIDTH, random, 1, error)) == NULL
          || (network->out[chip] = new_matrix (ROWS, WIDTH, random, 0, error)) == NULL)
        return FALSE;
      for (int i = 0; i < ROWS * WIDTH; i++)
        floats (network->x[chip])[i] = floats (network->x[0])[i];
      for (int layer = 0; layer < LAYERS; layer++)
        if ((network->w[layer][chip] = new_matrix (WIDTH, SHARE, random, 0.25, error)) == NULL
            || (network->v[layer][chip] = new_matrix (SHARE, WIDTH, random, 0.125, error)) == NULL)
          return FALSE;
    }
  return TRUE;
}

static void
free_tensors (Network *network)
{
  for (int chip = 0; chip < CHIPS; chip++)
    {
      g_clear_pointer (&network->x[chip], pto_tensor_unref);
      g_clear_pointer (&network->out[chip], pto_tensor_unref);
      for (int layer = 0; layer < LAYERS; layer++)
        {
          g_clear_pointer (&network->w[layer][chip], pto_tensor_unref);
          g_clear_pointer (&network->v[layer][chip], pto_tensor_unref);
        }
    }
}

/* One row through one layer, in place. */
static void
expect_layer (const Network *network, int layer, double *row)
{
  double result[WIDTH] = { 0 };

  for (int j = 0; j < HIDDEN; j++)
    {
      const float *w = floats (network->w[layer][j / SHARE]) + j % SHARE;
      const float *v = floats (network->v[layer][j / SHARE]) + j % SHARE * WIDTH;
      double hidden = 0;

      for (int i = 0; i < WIDTH; i++)
        hidden += row[i] * (double) w[i * SHARE];
      for (int i = 0; i < WIDTH && hidden > 0; i++)
        result[i] += hidden * (double) v[i];
    }
  for (int i = 0; i < WIDTH; i++)
    row[i] = result[i];
}

/* The greatest error of both chips' results. */
static double
compare (const Network *network)
{
  double greatest = 0;

  for (int r = 0; r < ROWS; r++)
    {
      double row[WIDTH];

      for (int i = 0; i < WIDTH; i++)
        row[i] = (double) floats (network->x[0])[r * WIDTH + i];
      for (int layer = 0; layer < LAYERS; layer++)
        expect_layer (network, layer, row);
      for (int i = 0; i < WIDTH; i++)
        for (int chip = 0; chip < CHIPS; chip++)
          greatest = fmax (greatest,
                           fabs ((double) floats (network->out[chip])[r * WIDTH + i] - row[i]));
    }
  return greatest;
}

/* What a chip runs: the orchestration and its two kernels. */
static PtoCallable *
make_layer (const char *directory, const char *gemm_source, GError **error)
{
  g_autofree char *orchestration = g_build_filename (directory, "feed_forward_orch.c", NULL);
  g_autofree char *relu_source = g_build_filename (directory, "kernels", "relu.c", NULL);
  g_autoptr (PtoCallable) layer = pto_chip_orchestration_new (orchestration, NULL, error);
  g_autoptr (PtoCallable) gemm = NULL;
  g_autoptr (PtoCallable) relu = NULL;

  if (layer == NULL || (gemm = pto_kernel_new (PTO_CORE_AIC, gemm_source, NULL, error)) == NULL
      || (relu = pto_kernel_new (PTO_CORE_AIV, relu_source, NULL, error)) == NULL
      || !pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (layer), 0, "gemm", gemm, error)
      || !pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (layer), 1, "relu", relu,
                                             error))
    return NULL;
  return g_steal_pointer (&layer);
}

static gboolean
run (Network *network, const char *directory, const char *gemm_source, gboolean *passed,
     GError **error)
{
  g_autoptr (PtoWorker) host = pto_worker_new_host (3, CHIPS, 1, "a2a3sim", error);
  g_autoptr (PtoCallable) layer = NULL;
  g_autoptr (PtoCallable) sum = pto_sub_function_new ("allreduce", allreduce, NULL, NULL);
  g_autoptr (PtoCallableHandle) h_layer = NULL;
  g_autoptr (PtoCallableHandle) h_sum = NULL;
  g_autoptr (PtoRunStatistics) statistics = NULL;
  double greatest;

  if (host == NULL || (layer = make_layer (directory, gemm_source, error)) == NULL
      || (h_layer = pto_worker_register (host, layer, NULL, error)) == NULL
      || (h_sum = pto_worker_register (host, sum, NULL, error)) == NULL
      || !make_tensors (network, error))
    return FALSE;
  network->layer = h_layer;
  network->allreduce = h_sum;
  if (!pto_worker_run (host, graph, network, NULL, NULL, NULL, error))
    return FALSE;

  greatest = compare (network);
  *passed = greatest <= 1e-4;
  statistics = pto_worker_dup_statistics (host);
  printf ("%d layers on %d chips, %" G_GUINT64_FORMAT " tasks, greatest error %.1e: %s\n", LAYERS,
          CHIPS, pto_run_statistics_get_tasks (statistics), greatest, *passed ? "PASS" : "FAIL");
  pto_worker_close (host);
  return TRUE;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  Network network = { 0 };
  gboolean passed = FALSE;

  if (!run (&network, argc > 1 ? argv[1] : "examples/tensor-parallel/feed-forward",
            argc > 2 ? argv[2] : "examples/bgemm/kernels/gemm.c", &passed, &error))
    fprintf (stderr, "tensor_parallel: %s\n", error->message);
  free_tensors (&network);
  return passed ? 0 : 1;
}
