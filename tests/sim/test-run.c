/* test-run.c: are the numbers right, whatever runs a program, in however little room?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include <math.h>
#include <string.h>

/* --- the vector example --- */

struct edges
{
  uint32_t n;
  uint32_t seen[64][3]; /* producer, consumer, kinds */
};

static void
note_edge (const struct pto_trace_record *record, void *data)
{
  struct edges *edges = data;

  g_assert_cmpuint (edges->n, <, 64);
  g_assert_cmpuint (PTO_TASK_RING (record->task), ==, 0);
  g_assert_cmpuint (PTO_TASK_RING (record->extra), ==, 0);
  edges->seen[edges->n][0] = PTO_TASK_LOCAL (record->extra);
  edges->seen[edges->n][1] = PTO_TASK_LOCAL (record->task);
  edges->seen[edges->n][2] = record->detail;
  edges->n++;
}

static struct sim_vector *
new_vector (bool four)
{
  struct sim_vector *v = g_new0 (struct sim_vector, 1);

  v->four = four;
  for (int i = 0; i < SIM_VECTOR_N; i++)
    {
      v->a[i] = 2;
      v->b[i] = 3;
    }
  return v;
}

static void
assert_edges (const struct pto_trace *trace, const uint32_t expected[][2], uint32_t n)
{
  struct edges edges = { 0 };

  sim_trace_each (trace, PTO_TRACE_DEP, note_edge, &edges);
  g_assert_cmpuint (edges.n, ==, n);
  for (uint32_t i = 0; i < n; i++)
    {
      bool found = false;

      for (uint32_t k = 0; k < n; k++)
        if (edges.seen[k][0] == expected[i][0] && edges.seen[k][1] == expected[i][1])
          {
            g_assert_cmpuint (edges.seen[k][2], ==, PTO_HAZARD_RAW);
            found = true;
          }
      if (!found)
        g_error ("no edge t%u-t%u", expected[i][0], expected[i][1]);
    }
}

static void
test_vector (enum pto_backend backend)
{
  static const uint32_t expected[][2]
      = { { 0, 1 }, { 0, 2 }, { 0, 4 }, { 1, 3 }, { 2, 3 }, { 3, 4 } };
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct sim_vector *v = new_vector (false);
  struct pto_run_stats stats;
  const struct pto_trace *trace = sim_record (chip, &sim_vector_program, sim_vector, v, &stats);

  g_assert_cmpuint (stats.tasks, ==, 5);
  g_assert_cmpuint (stats.edges, ==, 6);
  assert_edges (trace, expected, 6);
  sim_assert_trace (chip, &stats);
  for (int i = 0; i < SIM_VECTOR_N; i++)
    g_assert_cmpfloat (v->f[i], ==, 47);
  g_free (v);
  pto_chip_free (chip);
}

static void
test_vector_four (enum pto_backend backend)
{
  static const uint32_t expected[][2] = { { 0, 1 }, { 0, 2 }, { 1, 3 }, { 2, 3 } };
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct sim_vector *v = new_vector (true);
  struct pto_run_stats stats;
  const struct pto_trace *trace = sim_record (chip, &sim_vector_program, sim_vector, v, &stats);

  g_assert_cmpuint (stats.tasks, ==, 4);
  g_assert_cmpuint (stats.edges, ==, 4);
  assert_edges (trace, expected, 4);
  for (int i = 0; i < SIM_VECTOR_N; i++)
    g_assert_cmpfloat (v->f[i], ==, 42);
  g_free (v);
  pto_chip_free (chip);
}

/* --- paged attention: chunks of 13 tasks, one scope a chunk ---
 * Of each chunk: clear the accumulator, then for each of 3 blocks of keys: scores (AIC), softmax of
 * the block (AIV), block times values (AIC), merge into the accumulator (AIV). */

enum
{
  CHUNKS = 16,
  QUERIES = 4, /* rows of a chunk */
  WIDTH = 8,   /* of a head */
  BLOCKS = 3,
  KEYS = 8, /* rows of a block */
  TASKS_PER_CHUNK = 1 + 4 * BLOCKS
};

struct attention
{
  float q[CHUNKS * QUERIES][WIDTH];
  float k[CHUNKS * BLOCKS * KEYS][WIDTH]; /* physical blocks */
  float v[CHUNKS * BLOCKS * KEYS][WIDTH];
  uint32_t table[CHUNKS][BLOCKS]; /* physical block of a chunk's logical block */
  float out[CHUNKS * QUERIES][WIDTH];
};

static void
kernel_clear (int64_t *args)
{
  float *o = sim_data (args, 0);
  float *m = sim_data (args, 1);
  float *l = sim_data (args, 2);

  memset (o, 0, QUERIES * WIDTH * sizeof *o);
  for (int r = 0; r < QUERIES; r++)
    {
      m[r] = -INFINITY;
      l[r] = 0;
    }
}

/* s = q k^T / sqrt (width) */
static void
kernel_scores (int64_t *args)
{
  const float *q = sim_data (args, 0);
  const float *k = sim_data (args, 1);
  float *s = sim_data (args, 2);

  for (int r = 0; r < QUERIES; r++)
    for (int c = 0; c < KEYS; c++)
      {
        float sum = 0;

        for (int w = 0; w < WIDTH; w++)
          sum += q[r * WIDTH + w] * k[c * WIDTH + w];
        s[r * KEYS + c] = sum / sqrtf (WIDTH);
      }
}

/* p = exp (s - max), block maximum, block sum */
static void
kernel_softmax (int64_t *args)
{
  const float *s = sim_data (args, 0);
  float *p = sim_data (args, 1);
  float *m = sim_data (args, 2);
  float *l = sim_data (args, 3);

  for (int r = 0; r < QUERIES; r++)
    {
      m[r] = s[r * KEYS];
      for (int c = 1; c < KEYS; c++)
        m[r] = fmaxf (m[r], s[r * KEYS + c]);
      l[r] = 0;
      for (int c = 0; c < KEYS; c++)
        l[r] += p[r * KEYS + c] = expf (s[r * KEYS + c] - m[r]);
    }
}

/* o = p v */
static void
kernel_values (int64_t *args)
{
  const float *p = sim_data (args, 0);
  const float *v = sim_data (args, 1);
  float *o = sim_data (args, 2);

  for (int r = 0; r < QUERIES; r++)
    for (int w = 0; w < WIDTH; w++)
      {
        o[r * WIDTH + w] = 0;
        for (int c = 0; c < KEYS; c++)
          o[r * WIDTH + w] += p[r * KEYS + c] * v[c * WIDTH + w];
      }
}

/* The accumulator takes a block in; the last one divides. */
static void
kernel_merge (int64_t *args)
{
  const float *block_o = sim_data (args, 0);
  const float *block_m = sim_data (args, 1);
  const float *block_l = sim_data (args, 2);
  float *o = sim_data (args, 3);
  float *m = sim_data (args, 4);
  float *l = sim_data (args, 5);
  float *out = sim_data (args, 6);

  for (int r = 0; r < QUERIES; r++)
    {
      float top = fmaxf (m[r], block_m[r]);
      float old = expf (m[r] - top);
      float new = expf (block_m[r] - top);

      m[r] = top;
      l[r] = l[r] * old + block_l[r] * new;
      for (int w = 0; w < WIDTH; w++)
        {
          o[r * WIDTH + w] = o[r * WIDTH + w] * old + block_o[r * WIDTH + w] * new;
          if (args[7] != 0)
            out[r * WIDTH + w] = o[r * WIDTH + w] / l[r];
        }
    }
}

static const struct pto_kernel attention_kernels[] = {
  { "clear", kernel_clear, PTO_CORE_TYPE_AIV, { .base_ns = 500 } },
  { "scores", kernel_scores, PTO_CORE_TYPE_AIC, { .base_ns = 4000 } },
  { "softmax", kernel_softmax, PTO_CORE_TYPE_AIV, { .base_ns = 2000 } },
  { "values", kernel_values, PTO_CORE_TYPE_AIC, { .base_ns = 4000 } },
  { "merge", kernel_merge, PTO_CORE_TYPE_AIV, { .base_ns = 1500 } },
};
static const struct pto_program attention_program
    = { attention_kernels, G_N_ELEMENTS (attention_kernels) };

static Tensor
rows (float (*matrix)[WIDTH], uint64_t all, uint64_t first, uint64_t n)
{
  uint64_t shape[] = { all, WIDTH };
  uint64_t part[] = { n, WIDTH };
  uint64_t offset[] = { first, 0 };
  Tensor whole = make_tensor_external (matrix, shape, 2, PTO_DTYPE_FLOAT32);

  return pto2_tensor_view (&whole, part, offset);
}

static Tensor
matrix (uint64_t n, uint64_t m)
{
  uint64_t shape[] = { n, m };

  return make_tensor (shape, 2, PTO_DTYPE_FLOAT32);
}

static int
attention (PTO2Runtime *rt, void *data)
{
  struct attention *a = data;
  const uint64_t all = CHUNKS * QUERIES;
  const uint64_t all_keys = CHUNKS * BLOCKS * KEYS;

  pto2_rt_init_tensor_pool (rt);
  for (uint64_t chunk = 0; chunk < CHUNKS; chunk++)
    PTO2_SCOPE (rt)
    {
      Tensor q = rows (a->q, all, chunk * QUERIES, QUERIES);
      Tensor out = rows (a->out, all, chunk * QUERIES, QUERIES);
      Tensor o = matrix (QUERIES, WIDTH);
      Tensor m = matrix (QUERIES, 1);
      Tensor l = matrix (QUERIES, 1);
      PTOParam clear[] = { make_output_param (o), make_output_param (m), make_output_param (l) };

      pto2_rt_submit_task (rt, 0, AIV, clear, 3);
      for (int b = 0; b < BLOCKS; b++)
        {
          uint64_t first = (uint64_t) a->table[chunk][b] * KEYS;
          Tensor s = matrix (QUERIES, KEYS);
          Tensor p = matrix (QUERIES, KEYS);
          Tensor bm = matrix (QUERIES, 1);
          Tensor bl = matrix (QUERIES, 1);
          Tensor bo = matrix (QUERIES, WIDTH);
          PTOParam qk[]
              = { make_input_param (q), make_input_param (rows (a->k, all_keys, first, KEYS)),
                  make_output_param (s) };
          PTOParam sf[] = { make_input_param (s), make_output_param (p), make_output_param (bm),
                            make_output_param (bl) };
          PTOParam pv[]
              = { make_input_param (p), make_input_param (rows (a->v, all_keys, first, KEYS)),
                  make_output_param (bo) };
          PTOParam up[] = { make_input_param (bo),  make_input_param (bm),
                            make_input_param (bl),  make_inout_param (o),
                            make_inout_param (m),   make_inout_param (l),
                            make_inout_param (out), make_scalar_param (b == BLOCKS - 1) };

          pto2_rt_submit_task (rt, 1, AIC, qk, 3);
          pto2_rt_submit_task (rt, 2, AIV, sf, 4);
          pto2_rt_submit_task (rt, 3, AIC, pv, 3);
          pto2_rt_submit_task (rt, 4, AIV, up, 8);
        }
    }
  return 0;
}

static struct attention *
new_attention (void)
{
  struct attention *a = g_new0 (struct attention, 1);
  GRand *rand = g_rand_new_with_seed (7);
  uint32_t blocks = CHUNKS * BLOCKS;

  for (int i = 0; i < CHUNKS * QUERIES; i++)
    for (int w = 0; w < WIDTH; w++)
      a->q[i][w] = (float) g_rand_double_range (rand, -2, 2);
  for (int i = 0; i < CHUNKS * BLOCKS * KEYS; i++)
    for (int w = 0; w < WIDTH; w++)
      {
        a->k[i][w] = (float) g_rand_double_range (rand, -2, 2);
        a->v[i][w] = (float) g_rand_double_range (rand, -2, 2);
      }
  /* A block table that goes all over the place: 17 has no common factor with the number of blocks.
   */
  for (uint32_t i = 0; i < blocks; i++)
    a->table[i / BLOCKS][i % BLOCKS] = i * 17 % blocks;
  g_rand_free (rand);
  return a;
}

/* softmax (q k^T / sqrt (width)) v, all keys of a chunk at once, in double. */
static void
assert_attention (const struct attention *a)
{
  for (int chunk = 0; chunk < CHUNKS; chunk++)
    for (int r = 0; r < QUERIES; r++)
      {
        const float *q = a->q[chunk * QUERIES + r];
        double sums[WIDTH] = { 0 };
        double total = 0;

        for (int key = 0; key < BLOCKS * KEYS; key++)
          {
            uint32_t row = a->table[chunk][key / KEYS] * KEYS + (uint32_t) key % KEYS;
            double s = 0;

            for (int w = 0; w < WIDTH; w++)
              s += (double) q[w] * (double) a->k[row][w];
            s = exp (s / sqrt (WIDTH));
            total += s;
            for (int w = 0; w < WIDTH; w++)
              sums[w] += s * (double) a->v[row][w];
          }
        for (int w = 0; w < WIDTH; w++)
          g_assert_cmpfloat_with_epsilon ((double) a->out[chunk * QUERIES + r][w], sums[w] / total,
                                          1e-5);
      }
}

struct slots
{
  uint32_t used[16];
  uint32_t ring;
};

static void
note_slot (const struct pto_trace_record *record, void *data)
{
  struct slots *slots = data;

  g_assert_cmpuint (PTO_TASK_RING (record->task), ==, slots->ring);
  slots->used[PTO_TASK_LOCAL (record->task) % 16]++;
}

/* A2 */
static void
test_attention_window_16 (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=16");
  struct attention *a = new_attention ();
  struct slots slots = { .ring = 1 };
  struct pto_run_stats stats;
  const struct pto_trace *trace = sim_record (chip, &attention_program, attention, a, &stats);

  assert_attention (a);
  g_assert_cmpuint (stats.tasks, ==, 208);
  g_assert_cmpuint (stats.ring_tasks[1], ==, 208);
  g_assert_cmpuint (stats.last_task_alive[1], ==, 208);
  g_assert_cmpuint (stats.recycled, ==, 208 - 16);
  g_assert_cmpuint (stats.peak_live_tasks, <=, 15);
  sim_trace_each (trace, PTO_TRACE_SUBMIT, note_slot, &slots);
  for (int i = 0; i < 16; i++)
    g_assert_cmpuint (slots.used[i], ==, 13);
  g_assert_cmpuint (sim_trace_count (trace, PTO_TRACE_RETIRE), ==, 208);
  sim_assert_trace (chip, &stats);
  g_free (a);
  pto_chip_free (chip);
}

/* A3 */
static void
test_attention_settings (enum pto_backend backend)
{
  static const char *const settings[]
      = { NULL, "task-window=64 heap=4M dep-pool=256", "task-window=16 heap=64K" };
  struct attention *reference = NULL;
  uint64_t edges = 0;

  for (gsize i = 0; i < G_N_ELEMENTS (settings); i++)
    {
      struct pto_chip *chip = sim_chip (backend, settings[i]);
      struct attention *a = new_attention ();
      struct pto_run_stats stats;

      sim_run (chip, &attention_program, attention, a, &stats);
      pto_chip_free (chip);
      if (reference == NULL)
        {
          assert_attention (a);
          reference = a;
          edges = stats.edges;
          continue;
        }
      g_assert_cmpmem (reference->out, sizeof reference->out, a->out, sizeof a->out);
      if (i == 1)
        g_assert_cmpuint (stats.edges, <=, edges);
      g_free (a);
    }
  g_free (reference);
}

/* --- random programs --- */

enum
{
  EXTERNALS = 4,
  SIDE = 8,
  MAX_TEMPS = 64,
  MAX_INPUTS = 3,
  MAX_OPS = 400
};

enum op_kind
{
  OP_TASK,
  OP_BEGIN,
  OP_END
};

/* A rectangle of a buffer, perhaps turned. */
struct patch
{
  uint32_t buffer; /* externals, then temporaries */
  uint32_t row, column;
  bool turned;
};

struct op
{
  enum op_kind kind;
  uint32_t kernel;
  PTOParamType type; /* of the target */
  uint32_t height, width;
  struct patch target;
  struct patch inputs[MAX_INPUTS];
  uint32_t n_inputs;
  uint64_t constant;
};

struct workload
{
  struct op ops[MAX_OPS];
  uint32_t n_ops;
  uint32_t n_temps;
};

typedef uint64_t Matrix[SIDE][SIDE];

static uint64_t
turn (uint64_t value, int bits)
{
  return value << bits | value >> (64 - bits);
}

/* Not commutative: the order of tasks shows. The two kernels differ, and run on different kinds of
 * cores. */
static uint64_t
mix (uint32_t kernel, uint64_t value, uint64_t input)
{
  return kernel == 0 ? (turn (value, 7) ^ input) * UINT64_C (0x9e3779b97f4a7c15) + 1
                     : turn (value * 5 + input, 23) - UINT64_C (0x2545f4914f6cdd1d);
}

/* args: kernel, fresh, constant, n_inputs, target, inputs ... */
static void
kernel_mix (int64_t *args)
{
  const TensorData *t = sim_tensor (args, 4);
  uint64_t *target = sim_data (args, 4);

  for (uint64_t i = 0; i < t->shapes[0]; i++)
    for (uint64_t j = 0; j < t->shapes[1]; j++)
      {
        uint64_t *at = &target[i * t->strides[0] + j * t->strides[1]];
        uint64_t value = args[1] != 0 ? (uint64_t) args[2] : *at ^ (uint64_t) args[2];

        for (int64_t n = 0; n < args[3]; n++)
          {
            const TensorData *s = sim_tensor (args, (int) (5 + n));
            const uint64_t *source = sim_data (args, (int) (5 + n));

            value = mix ((uint32_t) args[0], value, source[i * s->strides[0] + j * s->strides[1]]);
          }
        *at = value;
      }
}

static const struct pto_kernel mix_kernels[] = {
  { "mix0", kernel_mix, PTO_CORE_TYPE_AIC, { .base_ns = 700, .ns_per_byte = 0.5 } },
  { "mix1", kernel_mix, PTO_CORE_TYPE_AIV, { .base_ns = 300, .ns_per_byte = 1.5 } },
};
static const struct pto_program mix_program = { mix_kernels, G_N_ELEMENTS (mix_kernels) };

/* Where nothing takes any time everything happens at one instant, and the seed alone says in which
 * order. */
static const struct pto_kernel free_kernels[] = {
  { "mix0", kernel_mix, PTO_CORE_TYPE_AIC, { .base_ns = 0 } },
  { "mix1", kernel_mix, PTO_CORE_TYPE_AIV, { .base_ns = 0 } },
};
static const struct pto_program free_program = { free_kernels, G_N_ELEMENTS (free_kernels) };
static const struct pto_platform free_platform = {
  .name = "free",
  .description = "a2a3sim in no time",
  .clusters = 24,
  .aic_per_cluster = 1,
  .aiv_per_cluster = 2,
  .aicpu_threads = 4,
  .counter_hz = 50000000,
};

struct plan
{
  GRand *rand;
  struct workload *w;
  uint32_t depth;           /* open scopes beside the outermost */
  uint32_t held[PTO_RINGS]; /* tasks that open scopes hold */
  uint32_t temps_at[8];     /* temporaries known when the scope was opened */
  uint32_t n_live;          /* temporaries that may be named now */
  uint32_t live[MAX_TEMPS];
};

static uint32_t
below (struct plan *plan, uint32_t n)
{
  return (uint32_t) g_rand_int_range (plan->rand, 0, (gint32) n);
}

static struct patch
random_patch (struct plan *plan, uint32_t height, uint32_t width, bool may_turn)
{
  struct patch p;
  uint32_t n = below (plan, EXTERNALS + plan->n_live);

  p.buffer = n < EXTERNALS ? n : EXTERNALS + plan->live[n - EXTERNALS];
  p.turned = may_turn && below (plan, 3) == 0;
  p.row = below (plan, SIDE - (p.turned ? width : height) + 1);
  p.column = below (plan, SIDE - (p.turned ? height : width) + 1);
  return p;
}

static void
plan_task (struct plan *plan, struct op *op)
{
  uint32_t ring = MIN (plan->depth, PTO_RINGS - 1);
  bool fresh = plan->w->n_temps < MAX_TEMPS && below (plan, 4) == 0;

  op->kind = OP_TASK;
  op->kernel = below (plan, 2);
  op->constant = g_rand_int (plan->rand);
  op->height = fresh ? SIDE : 1 + below (plan, SIDE);
  op->width = fresh ? SIDE : 1 + below (plan, SIDE);
  op->n_inputs = below (plan, MAX_INPUTS + 1);
  for (uint32_t i = 0; i < op->n_inputs; i++)
    op->inputs[i] = random_patch (plan, op->height, op->width, true);
  if (fresh)
    {
      op->type = PTO_PARAM_OUTPUT;
      op->target = (struct patch){ .buffer = EXTERNALS + plan->w->n_temps };
      plan->live[plan->n_live++] = plan->w->n_temps++;
    }
  else
    {
      op->type = below (plan, 3) == 0 ? PTO_PARAM_OUTPUT_EXISTING : PTO_PARAM_INOUT;
      op->target = random_patch (plan, op->height, op->width, true);
    }
  plan->held[ring]++;
}

/* Scopes up to 5 deep; no ring ever has to hold more than 7 tasks at a time. */
static struct workload *
new_workload (uint32_t seed, uint32_t n_tasks)
{
  struct workload *w = g_new0 (struct workload, 1);
  struct plan plan = { .rand = g_rand_new_with_seed (seed), .w = w };

  while (w->n_ops < MAX_OPS - 8 && (n_tasks > 0 || plan.depth > 0))
    {
      uint32_t ring = MIN (plan.depth, PTO_RINGS - 1);
      uint32_t dice = below (&plan, 10);
      struct op *op = &w->ops[w->n_ops++];

      if (n_tasks > 0 && plan.held[ring] < (plan.depth == 0 ? 4 : 7) && dice < 6)
        {
          plan_task (&plan, op);
          n_tasks--;
        }
      else if (n_tasks > 0 && plan.depth < 5 && plan.held[MIN (plan.depth + 1, PTO_RINGS - 1)] < 7
               && (plan.depth == 0 || dice < 8))
        {
          op->kind = OP_BEGIN;
          plan.temps_at[plan.depth++] = plan.n_live;
        }
      else if (plan.depth > 0)
        {
          op->kind = OP_END;
          plan.n_live = plan.temps_at[--plan.depth];
          if (plan.depth + 1 < PTO_RINGS)
            plan.held[plan.depth + 1] = 0;
        }
      else
        w->n_ops--;
    }
  while (plan.depth-- > 0)
    w->ops[w->n_ops++].kind = OP_END;
  g_rand_free (plan.rand);
  return w;
}

static void
fill_externals (Matrix *externals, uint32_t seed)
{
  for (uint64_t e = 0; e < EXTERNALS; e++)
    for (uint64_t i = 0; i < SIDE; i++)
      for (uint64_t j = 0; j < SIDE; j++)
        externals[e][i][j] = (seed + 1) * (e * 1000 + i * 10 + j + 1);
}

/* One after the other, as the program says. */
static void
reference (const struct workload *w, Matrix *externals)
{
  Matrix *temps = g_new0 (Matrix, MAX_TEMPS);

  for (uint32_t n = 0; n < w->n_ops; n++)
    {
      const struct op *op = &w->ops[n];

      if (op->kind != OP_TASK)
        continue;
      for (uint32_t i = 0; i < op->height; i++)
        for (uint32_t j = 0; j < op->width; j++)
          {
            const struct patch *t = &op->target;
            Matrix *m
                = t->buffer < EXTERNALS ? &externals[t->buffer] : &temps[t->buffer - EXTERNALS];
            uint64_t *at = &(*m)[t->row + (t->turned ? j : i)][t->column + (t->turned ? i : j)];
            uint64_t value = op->type == PTO_PARAM_INOUT ? *at ^ op->constant : op->constant;

            for (uint32_t k = 0; k < op->n_inputs; k++)
              {
                const struct patch *s = &op->inputs[k];
                Matrix *in
                    = s->buffer < EXTERNALS ? &externals[s->buffer] : &temps[s->buffer - EXTERNALS];

                value = mix (op->kernel, value,
                             (*in)[s->row + (s->turned ? j : i)][s->column + (s->turned ? i : j)]);
              }
            *at = value;
          }
    }
  g_free (temps);
}

struct mixing
{
  const struct workload *w;
  Matrix *externals;
  Tensor temps[MAX_TEMPS];
};

static Tensor
patch_tensor (struct mixing *mixing, const struct op *op, const struct patch *p)
{
  static const uint64_t shape[] = { SIDE, SIDE };
  Tensor whole = p->buffer < EXTERNALS ? make_tensor_external (mixing->externals[p->buffer], shape,
                                                               2, PTO_DTYPE_UINT64)
                                       : mixing->temps[p->buffer - EXTERNALS];
  uint64_t part[] = { p->turned ? op->width : op->height, p->turned ? op->height : op->width };
  uint64_t offset[] = { p->row, p->column };
  Tensor view = pto2_tensor_view (&whole, part, offset);

  return p->turned ? pto2_tensor_transpose (&view, 0, 1) : view;
}

static int
mixed (PTO2Runtime *rt, void *data)
{
  static const uint64_t shape[] = { SIDE, SIDE };
  struct mixing *mixing = data;

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t n = 0; n < mixing->w->n_ops; n++)
    {
      const struct op *op = &mixing->w->ops[n];
      PTOParam params[5 + MAX_INPUTS];

      if (op->kind == OP_BEGIN)
        pto2_rt_scope_begin (rt);
      else if (op->kind == OP_END)
        pto2_rt_scope_end (rt);
      if (op->kind != OP_TASK)
        continue;
      if (op->type == PTO_PARAM_OUTPUT)
        mixing->temps[op->target.buffer - EXTERNALS] = make_tensor (shape, 2, PTO_DTYPE_UINT64);
      params[0] = make_scalar_param (op->kernel);
      params[1] = make_scalar_param (op->type != PTO_PARAM_INOUT);
      params[2] = make_scalar_param (op->constant);
      params[3] = make_scalar_param (op->n_inputs);
      params[4] = make_inout_param (patch_tensor (mixing, op, &op->target));
      params[4].type = op->type;
      for (uint32_t i = 0; i < op->n_inputs; i++)
        params[5 + i] = make_input_param (patch_tensor (mixing, op, &op->inputs[i]));
      pto2_rt_submit_task (rt, (int32_t) op->kernel, op->kernel == 0 ? AIC : AIV, params,
                           (int32_t) (5 + op->n_inputs));
    }
  return 0;
}

static void
run_mixed (struct pto_chip *chip, const struct pto_program *program, uint32_t seed,
           uint32_t n_tasks, bool record)
{
  struct workload *w = new_workload (seed, n_tasks);
  Matrix *expected = g_new0 (Matrix, EXTERNALS);
  Matrix *externals = g_new0 (Matrix, EXTERNALS);
  struct mixing *mixing = g_new0 (struct mixing, 1);
  struct pto_run_stats stats;

  fill_externals (expected, seed);
  fill_externals (externals, seed);
  reference (w, expected);
  mixing->w = w;
  mixing->externals = externals;
  if (record)
    {
      sim_record (chip, program, mixed, mixing, &stats);
      sim_assert_trace (chip, &stats);
    }
  else
    sim_run (chip, program, mixed, mixing, &stats);
  g_assert_cmpuint (stats.tasks, >, n_tasks / 2);
  if (memcmp (expected, externals, EXTERNALS * sizeof *expected) != 0)
    g_error ("workload %u: other numbers than one after the other", seed);
  g_free (mixing);
  g_free (externals);
  g_free (expected);
  g_free (w);
}

/* B27: a thousand seeds, of the program and of the choices, on four geometries and sizes, half of
 * them where time does not order anything. */
static void
test_thousand_seeds (enum pto_backend backend)
{
  static const char *const settings[] = { "task-window=8 clusters=1 aicpu-threads=2 heap=32K",
                                          "task-window=8 clusters=4 dep-pool=512",
                                          "clusters=3 ready-queue-shards=1 aicpu-threads=3",
                                          "task-window=16 clusters=6 map-pool=512 guard=0" };

  for (uint32_t seed = 0; seed < SCALE (1000); seed++)
    {
      char *text = g_strdup_printf ("%s seed=%u", settings[seed % G_N_ELEMENTS (settings)], seed);
      bool timeless = seed / G_N_ELEMENTS (settings) % 2 == 0;
      struct pto_chip *chip
          = sim_chip_on (timeless ? &free_platform : pto_platform_find ("a2a3sim"), backend, text);

      run_mixed (chip, timeless ? &free_program : &mix_program, seed, 60, seed % 10 == 0);
      g_free (text);
      pto_chip_free (chip);
    }
}

static void
test_mixed (enum pto_backend backend)
{
  static const char *const settings[]
      = { "task-window=8 heap=32K", "clusters=2 aicpu-threads=2", NULL };

  for (gsize s = 0; s < G_N_ELEMENTS (settings); s++)
    {
      struct pto_chip *chip = sim_chip (backend, settings[s]);

      for (uint32_t seed = 0; seed < SCALE (200); seed++)
        run_mixed (chip, &mix_program, 5000 + seed, 100, seed % 20 == 0);
      pto_chip_free (chip);
    }
}

/* B27: byte-equal traces. The second chip finds its buffers elsewhere and in another order. */
static void
test_det_repeats (enum pto_backend backend)
{
  struct workload *w = new_workload (42, 150);
  Matrix *matrices = g_new0 (Matrix, 2 * EXTERNALS + 1);
  struct mixing *mixing = g_new0 (struct mixing, 1);
  struct pto_chip *first = sim_chip (backend, "seed=9 task-window=16");
  struct pto_chip *second = sim_chip (backend, "seed=9 task-window=16");
  struct pto_run_stats stats;
  const struct pto_trace *a;
  const struct pto_trace *b;

  mixing->w = w;
  mixing->externals = matrices;
  a = sim_record (first, &mix_program, mixed, mixing, &stats);
  mixing->externals = matrices + EXTERNALS + 1;
  /* What a chip ran before does not matter. */
  sim_assert_well (second);
  b = sim_record (second, &mix_program, mixed, mixing, &stats);
  g_assert_cmpuint (sim_trace_count (a, PTO_TRACE_RUN), >, 100);
  g_assert_true (sim_trace_equal (a, b));
  for (int i = 0; i < 3; i++)
    {
      b = sim_record (second, &mix_program, mixed, mixing, &stats);
      g_assert_true (sim_trace_equal (a, b));
    }
  pto_chip_free (second);
  pto_chip_free (first);
  g_free (mixing);
  g_free (matrices);
  g_free (w);
}

static void
test_det_seeds_differ (enum pto_backend backend)
{
  struct workload *w = new_workload (42, 150);
  Matrix *matrices = g_new0 (Matrix, EXTERNALS);
  struct mixing *mixing = g_new0 (struct mixing, 1);
  struct pto_chip *chips[8];

  mixing->w = w;
  mixing->externals = matrices;
  for (unsigned int i = 0; i < G_N_ELEMENTS (chips); i++)
    {
      char *settings = g_strdup_printf ("seed=%u task-window=16", i + 1);
      struct pto_run_stats stats;

      chips[i] = sim_chip_on (&free_platform, backend, settings);
      sim_record (chips[i], &free_program, mixed, mixing, &stats);
      g_assert_cmpuint (stats.virtual_ns, ==, 0);
      for (unsigned int k = 0; k < i; k++)
        g_assert_false (sim_trace_equal (pto_chip_trace (chips[k]), pto_chip_trace (chips[i])));
      g_free (settings);
    }
  for (unsigned int i = 0; i < G_N_ELEMENTS (chips); i++)
    pto_chip_free (chips[i]);
  g_free (mixing);
  g_free (matrices);
  g_free (w);
}

/* B27: one orchestration, three back ends, the same bits. */
static void
test_backends_agree (enum pto_backend unused)
{
  struct attention *results[3];

  for (int backend = 0; backend < 3; backend++)
    {
      struct pto_chip *chip = sim_chip ((enum pto_backend) backend, NULL);

      results[backend] = new_attention ();
      sim_run (chip, &attention_program, attention, results[backend], NULL);
      pto_chip_free (chip);
    }
  for (int backend = 1; backend < 3; backend++)
    {
      g_assert_cmpmem (results[0]->out, sizeof results[0]->out, results[backend]->out,
                       sizeof results[backend]->out);
      g_free (results[backend]);
    }
  g_free (results[0]);
}

static void
add_tests (void)
{
  sim_add ("run/vector", test_vector);
  sim_add ("run/vector-four-tasks", test_vector_four);
  sim_add ("run/attention-window-16", test_attention_window_16);
  sim_add ("run/attention-settings", test_attention_settings);
  sim_add ("run/mixed", test_mixed);
  sim_add_once ("run/det-thousand-seeds", test_thousand_seeds);
  sim_add_once ("run/det-repeats", test_det_repeats);
  sim_add_once ("run/det-seeds-differ", test_det_seeds_differ);
  sim_add_once ("run/backends-agree", test_backends_agree);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
