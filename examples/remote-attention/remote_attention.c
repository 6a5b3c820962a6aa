/* remote_attention.c: how do chips of two machines that share no memory split the heads of
 * attention?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each of two remote workers has two chips, each chip one head of every layer. The chips of a
 * worker add up their partial results there (steps/heads.c), the two workers' are added here: an
 * allreduce at each level, whose result the next layer begins with. The reference is in double
 * precision. Build and run:
 *
 *   cc remote_attention.c -o remote_attention $(pkg-config --cflags --libs pto-1) -lm
 *   cc -shared -fPIC steps/heads.c -o heads.so $(pkg-config --cflags --libs pto-1)
 *   ./remote_attention heads ../bgemm/kernels/gemm.c ./heads.so [ssh://one ssh://two]
 */
#include <pto/pto.h>

#include <math.h>
#include <stdio.h>

enum
{
  WORKERS = 2,
  CHIPS = 2,
  HEADS = WORKERS * CHIPS,
  LAYERS = 2,
  ROWS = 64,
  WIDTH = 48,
  HEAD = 16
};

/* Weights: of queries, keys, values, and of the result. Heads lie one below the other. */
enum
{
  Q,
  K,
  V,
  O,
  WEIGHTS
};

typedef struct Network
{
  PtoTensor *x;
  PtoTensor *w[LAYERS][WEIGHTS];
  PtoTensor *result[LAYERS][WORKERS];
  PtoCallableHandle *heads;
} Network;

static float *
floats (PtoTensor *tensor)
{
  return (float *) (guintptr) pto_tensor_get_address (tensor);
}

/* One worker's heads. */
static gboolean
submit_heads (PtoOrchestrator *orchestrator, const Network *network, guint layer, int worker,
              GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  PtoTensor *before = layer > 0 ? network->result[layer - 1][worker] : network->x;

  pto_task_args_add_tensor (args, before, PTO_DIRECTION_INPUT);
  for (guint i = 0; i < WEIGHTS; i++)
    {
      PtoTensor *all = network->w[layer][i];
      const guint64 *whole = pto_tensor_get_shape (all, NULL);
      const guint64 shape[] = { whole[0] / WORKERS, whole[1] };
      const guint64 offsets[] = { (guint64) worker * shape[0], 0 };
      g_autoptr (PtoTensor) own = pto_tensor_view (all, 2, shape, offsets, error);

      if (own == NULL)
        return FALSE;
      pto_task_args_add_tensor (args, own, PTO_DIRECTION_INPUT);
    }
  pto_task_args_add_tensor (args, network->result[layer][worker], PTO_DIRECTION_OUTPUT_EXISTING);
  return pto_orchestrator_submit_next_level (orchestrator, network->heads, args, NULL, worker,
                                             error);
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
       GError **error)
{
  const Network *network = user_data;

  for (guint layer = 0; layer < LAYERS; layer++)
    {
      for (int worker = 0; worker < WORKERS; worker++)
        if (!submit_heads (orchestrator, network, layer, worker, error))
          return FALSE;
      if (!pto_orchestrator_allreduce (orchestrator, network->result[layer], WORKERS,
                                       PTO_REDUCTION_SUM, error))
        return FALSE;
    }
  return TRUE;
}

/* Its elements are below `scale`. */
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
  g_autoptr (GRand) random = g_rand_new_with_seed (1);

  if ((network->x = new_matrix (ROWS, WIDTH, random, 0.5, error)) == NULL)
    return FALSE;
  for (guint layer = 0; layer < LAYERS; layer++)
    {
      for (guint i = 0; i < WEIGHTS; i++)
        if ((network->w[layer][i] = i == O ? new_matrix (HEADS * HEAD, WIDTH, random, 0.5, error)
                                           : new_matrix (HEADS * WIDTH, HEAD, random, 0.5, error))
            == NULL)
          return FALSE;
      for (guint worker = 0; worker < WORKERS; worker++)
        if ((network->result[layer][worker] = new_matrix (ROWS, WIDTH, random, 0, error)) == NULL)
          return FALSE;
    }
  return TRUE;
}

static void
free_tensors (Network *network)
{
  g_clear_pointer (&network->x, pto_tensor_unref);
  for (guint layer = 0; layer < LAYERS; layer++)
    {
      for (guint i = 0; i < WEIGHTS; i++)
        g_clear_pointer (&network->w[layer][i], pto_tensor_unref);
      for (guint worker = 0; worker < WORKERS; worker++)
        g_clear_pointer (&network->result[layer][worker], pto_tensor_unref);
    }
}

/* --- the reference --- */

/* made = x W, of one head. */
static void
project (const double x[ROWS][WIDTH], PtoTensor *w, guint head, double made[ROWS][HEAD])
{
  const float *own = floats (w) + head * WIDTH * HEAD;

  for (guint r = 0; r < ROWS; r++)
    for (guint c = 0; c < HEAD; c++)
      {
        made[r][c] = 0;
        for (guint i = 0; i < WIDTH; i++)
          made[r][c] += x[r][i] * (double) own[i * HEAD + c];
      }
}

/* What one head adds to the result. */
static void
expect_head (const Network *network, guint layer, guint head, const double x[ROWS][WIDTH],
             double result[ROWS][WIDTH])
{
  const float *wo = floats (network->w[layer][O]) + head * HEAD * WIDTH;
  double made[3][ROWS][HEAD];

  for (guint i = Q; i <= V; i++)
    project (x, network->w[layer][i], head, made[i]);
  for (guint r = 0; r < ROWS; r++)
    {
      double weights[ROWS];
      double sum = 0;

      for (guint i = 0; i < ROWS; i++)
        {
          double score = 0;

          for (guint c = 0; c < HEAD; c++)
            score += made[Q][r][c] * made[K][i][c];
          sum += weights[i] = exp (score / sqrt (HEAD));
        }
      for (guint c = 0; c < HEAD; c++)
        {
          double value = 0;

          for (guint i = 0; i < ROWS; i++)
            value += weights[i] / sum * made[V][i][c];
          for (guint i = 0; i < WIDTH; i++)
            result[r][i] += value * (double) wo[c * WIDTH + i];
        }
    }
}

/* The greatest error of both workers' results. */
static double
compare (const Network *network)
{
  double x[LAYERS + 1][ROWS][WIDTH] = { 0 };
  double greatest = 0;

  for (guint i = 0; i < ROWS * WIDTH; i++)
    x[0][i / WIDTH][i % WIDTH] = (double) floats (network->x)[i];
  for (guint layer = 0; layer < LAYERS; layer++)
    for (guint head = 0; head < HEADS; head++)
      expect_head (network, layer, head, x[layer], x[layer + 1]);
  for (guint worker = 0; worker < WORKERS; worker++)
    for (guint i = 0; i < ROWS * WIDTH; i++)
      greatest = fmax (greatest, fabs ((double) floats (network->result[LAYERS - 1][worker])[i]
                                       - x[LAYERS][i / WIDTH][i % WIDTH]));
  return greatest;
}

/* --- the workers --- */

/* What a chip runs: the orchestration and its two kernels. */
static PtoCallable *
make_head (const char *directory, const char *gemm_source, GError **error)
{
  g_autofree char *orchestration = g_build_filename (directory, "head_orch.c", NULL);
  g_autofree char *attend_source = g_build_filename (directory, "kernels", "attend.c", NULL);
  g_autoptr (PtoCallable) head = pto_chip_orchestration_new (orchestration, NULL, error);
  g_autoptr (PtoCallable) gemm = NULL;
  g_autoptr (PtoCallable) attend = NULL;

  if (head == NULL || (gemm = pto_kernel_new (PTO_CORE_AIC, gemm_source, NULL, error)) == NULL
      || (attend = pto_kernel_new (PTO_CORE_AIV, attend_source, NULL, error)) == NULL
      || !pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (head), 0, "gemm", gemm, error)
      || !pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (head), 1, "attend", attend,
                                             error))
    return NULL;
  return g_steal_pointer (&head);
}

static gboolean
add_remote (PtoWorker *root, const char *address, PtoCallable *head, GError **error)
{
  g_autoptr (PtoCallableHandle) handle = NULL;
  GVariantDict options;
  PtoWorker *remote;

  g_variant_dict_init (&options, NULL);
  g_variant_dict_insert (&options, "devices", "u", CHIPS);
  g_variant_dict_insert (&options, "sub-workers", "u", 1);
  remote = pto_worker_add_remote_worker (root, address, g_variant_dict_end (&options), error);
  return remote != NULL && (handle = pto_worker_register (remote, head, NULL, error)) != NULL;
}

static gboolean
run (Network *network, const char *const *words, gboolean *passed, GError **error)
{
  g_autoptr (PtoWorker) root = g_object_new (PTO_TYPE_WORKER, "level", 4, "n-sub-workers", 1, NULL);
  g_autofree char *symbol = g_strdup_printf ("%s:heads", words[2]);
  g_autoptr (PtoCallable) heads
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_ORCHESTRATION, symbol, error);
  g_autoptr (PtoCallable) head = heads != NULL ? make_head (words[0], words[1], error) : NULL;
  double greatest;

  if (head == NULL)
    return FALSE;
  for (guint worker = 0; worker < WORKERS; worker++)
    if (!add_remote (root, words[3 + worker], head, error))
      return FALSE;
  network->heads = pto_worker_register (root, heads, NULL, error);
  if (network->heads == NULL || !make_tensors (network, error)
      || !pto_worker_run (root, graph, network, NULL, NULL, NULL, error))
    return FALSE;

  greatest = compare (network);
  *passed = greatest <= 1e-4;
  printf (
      "%d layers of %d heads on %d remote workers with %d chips each, greatest error %.1e: %s\n",
      LAYERS, HEADS, WORKERS, CHIPS, greatest, *passed ? "PASS" : "FAIL");
  pto_worker_close (root);
  return TRUE;
}

int
main (int argc, char **argv)
{
  const char *words[] = { "examples/remote-attention/heads", "examples/bgemm/kernels/gemm.c",
                          "./heads.so", "local:", "local:" };
  g_autoptr (GError) error = NULL;
  Network network = { 0 };
  gboolean passed = FALSE;

  for (int i = 1; i < argc && i <= (int) G_N_ELEMENTS (words); i++)
    words[i - 1] = argv[i];
  if (!run (&network, words, &passed, &error))
    fprintf (stderr, "remote_attention: %s\n", error->message);
  g_clear_pointer (&network.heads, pto_callable_handle_unref);
  free_tensors (&network);
  return passed ? 0 : 1;
}
