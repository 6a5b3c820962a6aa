/* decode_step.c: what does it save to write a graph down once that is run for every token?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A step of a language model of 40 layers, by shape only, is captured, and launched 100 times. The
 * first launch is compared with plain C, each launch with the same step as an orchestration.
 * Build and run:
 *
 *   cc decode_step.c -o decode_step $(pkg-config --cflags --libs pto-1) && ./decode_step DIR/step
 */
#include <pto/pto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 40
#define HEADS 32
#define TILE 128
#define STEPS 100

/* What a step updates: hidden state and cache, in one buffer. */
typedef struct State
{
  PtoBuffer *buffer;
  PtoTaskArgs *args;
} State;

static float *
floats (PtoBuffer *buffer)
{
  return (float *) (guintptr) pto_buffer_get_address (buffer);
}

static gboolean
state_init (State *state, PtoTensor *weights, GError **error)
{
  const guint64 hidden_shape[] = { HEADS * TILE };
  const guint64 cache_shape[] = { LAYERS, HEADS, TILE };
  const gsize hidden_bytes = HEADS * TILE * sizeof (float);
  g_autoptr (PtoTensor) hidden = NULL;
  g_autoptr (PtoTensor) cache = NULL;

  state->args = pto_task_args_new ();
  state->buffer = pto_buffer_new (hidden_bytes * (1 + LAYERS), error);
  if (state->buffer == NULL)
    return FALSE;
  hidden = pto_tensor_new_for_buffer (state->buffer, 0, PTO_DTYPE_FLOAT32, 1, hidden_shape, error);
  cache = pto_tensor_new_for_buffer (state->buffer, hidden_bytes, PTO_DTYPE_FLOAT32, 3, cache_shape,
                                     error);
  if (hidden == NULL || cache == NULL)
    return FALSE;
  pto_task_args_add_tensor (state->args, hidden, PTO_DIRECTION_INOUT);
  pto_task_args_add_tensor (state->args, weights, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (state->args, cache, PTO_DIRECTION_INOUT);
  return TRUE;
}

static void
state_clear (State *state)
{
  g_clear_pointer (&state->args, pto_task_args_unref);
  g_clear_pointer (&state->buffer, pto_buffer_unref);
}

/* The embedding of a token. */
static void
set_token (State *state, guint token)
{
  for (guint i = 0; i < HEADS * TILE; i++)
    floats (state->buffer)[i] = (float) ((token * 7 + i) % 1024);
}

static int
mix (float a, float b, float kept)
{
  return ((int) a + 2 * (int) b + 1 + (int) kept) % 1024;
}

/* The tiles that it is made of are all alike. */
static void
add_to_hidden (float *hidden, int value, float weight)
{
  float sum = (float) mix ((float) value, (float) value, 0);

  for (guint head = 0; head < HEADS; head++)
    hidden[head * TILE] = (float) mix (sum, weight, hidden[head * TILE]);
}

/* step/step_orch.c on the first number of each tile, with a cache of zeros: all others stay. */
static void
set_expected (State *state, const float *weights)
{
  float *hidden = floats (state->buffer);
  float *cache = hidden + HEADS * TILE;

  for (guint layer = 0; layer < LAYERS; layer++)
    {
      float weight = weights[layer];
      float qkv = (float) mix ((float) mix (hidden[0], weight, 0), weight, 0);
      float keys = (float) mix (qkv, weight, 0);
      float gate;

      for (guint head = 0; head < HEADS; head++)
        cache[(layer * HEADS + head) * TILE] = keys;
      add_to_hidden (hidden, mix ((float) mix ((float) mix (qkv, keys, 0), weight, 0), qkv, 0),
                     weight);
      gate = (float) mix ((float) mix (hidden[0], weight, 0), weight, 0);
      add_to_hidden (hidden, mix (gate, gate, 0), weight);
    }
}

static gboolean
are_same (State *x, State *y)
{
  return memcmp (floats (x->buffer), floats (y->buffer), pto_buffer_get_size (x->buffer)) == 0;
}

static int
compare_times (const void *a, const void *b)
{
  return (*(const gint64 *) a > *(const gint64 *) b) - (*(const gint64 *) a < *(const gint64 *) b);
}

static double
median_ms (gint64 *times, guint n)
{
  qsort (times, n, sizeof *times, compare_times);
  return (double) times[n / 2] / 1e3;
}

/* Each step launched and run side by side: the same numbers, after the first those of plain C. */
static gboolean
run (PtoWorker *worker, PtoCallableHandle *step, State *launched, State *plain, State *expected,
     GError **error)
{
  g_autoptr (PtoGraph) graph
      = pto_worker_capture_callable (worker, step, launched->args, NULL, NULL, error);
  gint64 graph_times[STEPS];
  gint64 plain_times[STEPS];
  gboolean same = TRUE;
  guint token;

  for (token = 0; graph != NULL && same && token < STEPS; token++)
    {
      gint64 begin = g_get_monotonic_time ();

      set_token (launched, token);
      set_token (plain, token);
      if (!pto_worker_run_graph (worker, graph, launched->args, NULL, NULL, error))
        return FALSE;
      graph_times[token] = g_get_monotonic_time () - begin;
      begin = g_get_monotonic_time ();
      if (!pto_worker_run_callable (worker, step, plain->args, NULL, NULL, error))
        return FALSE;
      plain_times[token] = g_get_monotonic_time () - begin;
      same = are_same (launched, plain) && (token > 0 || are_same (launched, expected));
    }
  if (graph == NULL)
    return FALSE;
  printf (
      "%d layers, %u tasks, %u edges, captured once, launched %u times: %.2f ms a step, %.2f as "
      "an orchestration: %s\n",
      LAYERS, pto_graph_get_n_tasks (graph), pto_graph_get_n_edges (graph), token,
      median_ms (graph_times, token), median_ms (plain_times, token), same ? "PASS" : "FAIL");
  return same;
}

int
main (int argc, char **argv)
{
  const guint64 weights_shape[] = { LAYERS };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = pto_worker_new_chip ("a2a3sim", &error);
  g_autoptr (PtoCallable) step = NULL;
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (PtoBuffer) buffer = NULL;
  g_autoptr (PtoTensor) weights = NULL;
  State states[3] = { { NULL, NULL } };
  gboolean ok = FALSE;

  if (argc == 2 && worker != NULL)
    step = pto_chip_orchestration_new_for_directory (argv[1], &error);
  if (step != NULL)
    handle = pto_worker_register (worker, step, NULL, &error);
  if (handle != NULL)
    buffer = pto_buffer_new (LAYERS * sizeof (float), &error);
  if (buffer != NULL)
    weights = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, 1, weights_shape, &error);
  if (weights != NULL)
    {
      for (guint i = 0; i < LAYERS; i++)
        floats (buffer)[i] = (float) (i + 1);
      ok = TRUE;
      for (guint i = 0; i < G_N_ELEMENTS (states); i++)
        ok = ok && state_init (&states[i], weights, &error);
      if (ok)
        {
          set_token (&states[2], 0);
          set_expected (&states[2], floats (buffer));
          ok = run (worker, handle, &states[0], &states[1], &states[2], &error);
        }
      for (guint i = 0; i < G_N_ELEMENTS (states); i++)
        state_clear (&states[i]);
    }
  if (worker != NULL)
    pto_worker_close (worker);
  if (argc != 2)
    fprintf (stderr, "usage: %s DIR/step\n", argv[0]);
  if (error != NULL)
    fprintf (stderr, "%s\n", error->message);
  return ok ? 0 : 1;
}
