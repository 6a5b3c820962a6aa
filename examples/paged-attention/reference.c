/* reference.c: what do the attention examples get, and what must come out?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Keys of a case: batch, heads, kv-heads, head-dim, block-size, tile (query heads per task),
 * in-core-batch (requests per task), dtype (float32, float16, bfloat16), priorities (1: the longest
 * chain goes first), and the lengths of the contexts: either context-lens, a comma-separated list
 * that is repeated as often as the batch needs, or context-min and context-max. The environment
 * variable PA_SEQ_LEN, a list too, overrides both.
 *
 * What is expected is the plain softmax over all tokens of a request, in double, straight from the
 * values that the caches hold; nothing of the online algorithm is used. Arguments:
 * attention-config.h.
 */
#include "attention-config.h"

#include "pto_reference.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Problem
{
  uint64_t batch, heads, kv_heads, dim, block_size, blocks, table_width, tile, in_core_batch;
  bool priorities;
  DataType dtype;
  int32_t *lengths;
} Problem;

static uint64_t
next_random (uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static float
random_between (uint64_t *state, float low, float high)
{
  return low + (high - low) * ((float) (next_random (state) >> 40) / 16777216.0f);
}

/* To half, nearest even; the values here are far from overflow. */
static uint16_t
to_half (float value)
{
  uint32_t bits, mantissa, shift, rest, half;
  uint16_t sign;
  int exponent;

  memcpy (&bits, &value, sizeof bits);
  sign = (uint16_t) (bits >> 16 & 0x8000);
  exponent = (int) (bits >> 23 & 0xff) - 127 + 15;
  mantissa = (bits & 0x7fffff) | 0x800000;
  if (exponent < -10)
    return sign;
  shift = exponent > 0 ? 13 : (uint32_t) (14 - exponent);
  half = exponent > 0 ? (uint32_t) exponent << 10 | (mantissa >> 13 & 0x3ff) : mantissa >> shift;
  rest = mantissa & ((1u << shift) - 1);
  if (rest > 1u << (shift - 1) || (rest == 1u << (shift - 1) && (half & 1) != 0))
    half++;
  return (uint16_t) (sign | half);
}

static uint16_t
to_bfloat16 (float value)
{
  uint32_t bits;

  memcpy (&bits, &value, sizeof bits);
  return (uint16_t) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void
store (void *data, DataType dtype, uint64_t index, float value)
{
  if (dtype == (DataType) PTO_DTYPE_FLOAT32)
    ((float *) data)[index] = value;
  else if (dtype == (DataType) PTO_DTYPE_FLOAT16)
    ((uint16_t *) data)[index] = to_half (value);
  else
    ((uint16_t *) data)[index] = to_bfloat16 (value);
}

static double
load (const void *data, DataType dtype, uint64_t index)
{
  uint16_t raw;
  int exponent;
  double magnitude;

  if (dtype == (DataType) PTO_DTYPE_FLOAT32)
    return ((const float *) data)[index];
  raw = ((const uint16_t *) data)[index];
  if (dtype == (DataType) PTO_DTYPE_BFLOAT16)
    {
      uint32_t bits = (uint32_t) raw << 16;
      float value;

      memcpy (&value, &bits, sizeof value);
      return value;
    }
  exponent = raw >> 10 & 0x1f;
  magnitude
      = exponent == 0 ? ldexp (raw & 0x3ff, -24) : ldexp ((raw & 0x3ff) | 0x400, exponent - 25);
  return (raw & 0x8000) != 0 ? -magnitude : magnitude;
}

/* Reads a list of lengths; gives how many, 0 when the text is no such list. */
static uint64_t
parse_lengths (const char *text, int32_t *lengths, uint64_t max)
{
  uint64_t count = 0;

  for (;;)
    {
      char *end;
      long value;

      errno = 0;
      value = strtol (text, &end, 10);
      if (end == text || errno != 0 || value < 1 || value > 1 << 24 || count == max)
        return 0;
      lengths[count++] = (int32_t) value;
      end += strspn (end, " ");
      if (*end == '\0')
        return count;
      if (*end != ',')
        return 0;
      text = end + 1;
    }
}

static int
choose_lengths (PTO2Case *c, Problem *problem)
{
  const char *override = getenv ("PA_SEQ_LEN");
  bool overridden = override != NULL && *override != '\0';
  /* All of the case's own keys are read, overridden or not: the program warns of those that nobody
   * reads. */
  const char *lengths = c->ops->text (c, "context-lens");
  int64_t low = c->ops->integer (c, "context-min", 1);
  int64_t high = c->ops->integer (c, "context-max", low);
  const char *text = overridden ? override : lengths;

  if (text != NULL)
    {
      uint64_t count = parse_lengths (text, problem->lengths, problem->batch);

      if (count == 0)
        return pto_case_fail (c, overridden ? "PA_SEQ_LEN: wanted are lengths from 1 up, separated "
                                              "by commas, no more than the batch has requests"
                                            : "context-lens: wanted are lengths from 1 up, "
                                              "separated by commas, no more than the batch");
      for (uint64_t i = count; i < problem->batch; i++)
        problem->lengths[i] = problem->lengths[i - count];
    }
  else
    {
      uint64_t state = 7;

      if (low < 1 || high < low || high > 1 << 24)
        return pto_case_fail (c, "context-min and context-max: wanted is 1 <= min <= max");
      for (uint64_t i = 0; i < problem->batch; i++)
        problem->lengths[i]
            = (int32_t) (low + (int64_t) (next_random (&state) % (uint64_t) (high - low + 1)));
      problem->lengths[0] = (int32_t) high;
    }
  return 0;
}

static int
read_problem (PTO2Case *c, Problem *problem)
{
  const char *dtype = c->ops->text (c, "dtype");
  int64_t batch = c->ops->integer (c, "batch", 1);
  int64_t heads = c->ops->integer (c, "heads", 1);
  int64_t kv_heads = c->ops->integer (c, "kv-heads", 1);
  int64_t dim = c->ops->integer (c, "head-dim", 64);
  int64_t block_size = c->ops->integer (c, "block-size", 16);
  int64_t tile = c->ops->integer (c, "tile", heads);
  int64_t in_core_batch = c->ops->integer (c, "in-core-batch", 16);

  if (batch < 1 || heads < 1 || kv_heads < 1 || block_size < 1 || tile < 1 || in_core_batch < 1)
    return pto_case_fail (c,
                          "batch, heads, kv-heads, block-size, tile and in-core-batch begin at 1");
  if (heads % kv_heads != 0 || heads % tile != 0)
    return pto_case_fail (c, "heads must be a multiple of kv-heads and of tile");
  if (dim < 1 || dim > 512 || tile * dim > 16384)
    return pto_case_fail (c, "head-dim is at most 512, tile x head-dim at most 16384");
  if (dtype == NULL || strcmp (dtype, "float32") == 0)
    problem->dtype = (DataType) PTO_DTYPE_FLOAT32;
  else if (strcmp (dtype, "float16") == 0)
    problem->dtype = (DataType) PTO_DTYPE_FLOAT16;
  else if (strcmp (dtype, "bfloat16") == 0)
    problem->dtype = (DataType) PTO_DTYPE_BFLOAT16;
  else
    return pto_case_fail (c, "dtype: float32, float16 or bfloat16 wanted");

  problem->batch = (uint64_t) batch;
  problem->heads = (uint64_t) heads;
  problem->kv_heads = (uint64_t) kv_heads;
  problem->dim = (uint64_t) dim;
  problem->block_size = (uint64_t) block_size;
  problem->tile = (uint64_t) tile;
  problem->in_core_batch = (uint64_t) in_core_batch;
  problem->priorities = c->ops->integer (c, "priorities", 0) != 0;
  problem->lengths = (int32_t *) calloc (problem->batch, sizeof *problem->lengths);
  if (problem->lengths == NULL)
    return pto_case_fail (c, "no memory for the lengths");
  if (choose_lengths (c, problem) != 0)
    {
      free (problem->lengths);
      return -1;
    }
  problem->blocks = 0;
  problem->table_width = 0;
  for (uint64_t i = 0; i < problem->batch; i++)
    {
      uint64_t length = (uint64_t) problem->lengths[i];
      uint64_t blocks = (length + problem->block_size - 1) / problem->block_size;

      problem->blocks += blocks;
      if (blocks > problem->table_width)
        problem->table_width = blocks;
    }
  return 0;
}

/* Blocks in random order, as a cache looks after some time of service; -1 where a request has none.
 */
static int
fill_block_table (const Problem *problem, int32_t *table, uint64_t *state)
{
  int32_t *free_blocks = (int32_t *) malloc (problem->blocks * sizeof *free_blocks);
  uint64_t next = 0;

  if (free_blocks == NULL)
    return -1;
  for (uint64_t i = 0; i < problem->blocks; i++)
    {
      uint64_t j = next_random (state) % (i + 1);

      free_blocks[i] = free_blocks[j];
      free_blocks[j] = (int32_t) i;
    }
  for (uint64_t i = 0; i < problem->batch; i++)
    for (uint64_t j = 0; j < problem->table_width; j++)
      table[i * problem->table_width + j]
          = j * problem->block_size < (uint64_t) problem->lengths[i] ? free_blocks[next++] : -1;
  free (free_blocks);
  return 0;
}

static void
fill_config (const Problem *problem, int64_t *config)
{
  float scale = (float) (1.0 / sqrt ((double) problem->dim));
  uint32_t bits;

  memcpy (&bits, &scale, sizeof bits);
  config[CONFIG_BATCH] = (int64_t) problem->batch;
  config[CONFIG_HEADS] = (int64_t) problem->heads;
  config[CONFIG_KV_HEADS] = (int64_t) problem->kv_heads;
  config[CONFIG_HEAD_DIM] = (int64_t) problem->dim;
  config[CONFIG_BLOCK_SIZE] = (int64_t) problem->block_size;
  config[CONFIG_BLOCKS] = (int64_t) problem->blocks;
  config[CONFIG_TABLE_WIDTH] = (int64_t) problem->table_width;
  config[CONFIG_TILE] = (int64_t) problem->tile;
  config[CONFIG_IN_CORE_BATCH] = (int64_t) problem->in_core_batch;
  config[CONFIG_DTYPE] = (int64_t) problem->dtype;
  config[CONFIG_SCALE] = (int64_t) bits;
  config[CONFIG_PRIORITIES] = problem->priorities ? 1 : 0;
}

static int
declare_inputs (PTO2Case *c, const Problem *problem)
{
  uint64_t query_shape[3] = { problem->batch, problem->heads, problem->dim };
  uint64_t cache_shape[4]
      = { problem->blocks, problem->block_size, problem->kv_heads, problem->dim };
  uint64_t table_shape[2] = { problem->batch, problem->table_width };
  uint64_t lengths_shape[1] = { problem->batch };
  uint64_t config_shape[1] = { CONFIG_COUNT };
  uint64_t cache_size = problem->blocks * problem->block_size * problem->kv_heads * problem->dim;
  DataType int32 = (DataType) PTO_DTYPE_INT32;
  DataType int64 = (DataType) PTO_DTYPE_INT64;
  DataType float32 = (DataType) PTO_DTYPE_FLOAT32;
  uint64_t state = 42;
  void *query, *key_cache, *value_cache;
  int32_t *table, *lengths;
  int64_t *config;

  query = c->ops->array (c, "query", problem->dtype, 3, query_shape, false);
  key_cache = c->ops->array (c, "key_cache", problem->dtype, 4, cache_shape, false);
  value_cache = c->ops->array (c, "value_cache", problem->dtype, 4, cache_shape, false);
  table = (int32_t *) c->ops->array (c, "block_table", int32, 2, table_shape, false);
  lengths = (int32_t *) c->ops->array (c, "context_lens", int32, 1, lengths_shape, false);
  if (c->ops->array (c, "out", float32, 3, query_shape, true) == NULL || query == NULL
      || key_cache == NULL || value_cache == NULL || table == NULL || lengths == NULL)
    return pto_case_fail (c, "no memory for query, caches, block table, lengths or output");
  config = (int64_t *) c->ops->array (c, "config", int64, 1, config_shape, false);
  if (config == NULL || fill_block_table (problem, table, &state) != 0)
    return pto_case_fail (c, "no memory for the block table or the configuration");

  for (uint64_t i = 0; i < problem->batch * problem->heads * problem->dim; i++)
    store (query, problem->dtype, i, random_between (&state, -4, 4));
  for (uint64_t i = 0; i < cache_size; i++)
    store (key_cache, problem->dtype, i, random_between (&state, -1, 1));
  for (uint64_t i = 0; i < cache_size; i++)
    store (value_cache, problem->dtype, i, random_between (&state, -1, 1));
  memcpy (lengths, problem->lengths, problem->batch * sizeof *lengths);
  fill_config (problem, config);
  return 0;
}

int
pto_reference_inputs (PTO2Case *c)
{
  Problem problem;
  int result;

  if (read_problem (c, &problem) != 0)
    return -1;
  result = declare_inputs (c, &problem);
  free (problem.lengths);
  return result;
}

/* What the cache holds for one token and one kv head. */
static void
load_token (const int64_t *config, const void *cache, const int32_t *table, uint64_t token,
            uint64_t kv_head, double *row)
{
  uint64_t dim = (uint64_t) config[CONFIG_HEAD_DIM];
  uint64_t block_size = (uint64_t) config[CONFIG_BLOCK_SIZE];
  uint64_t place = (uint64_t) table[token / block_size] * block_size + token % block_size;
  uint64_t first = (place * (uint64_t) config[CONFIG_KV_HEADS] + kv_head) * dim;

  for (uint64_t d = 0; d < dim; d++)
    row[d] = load (cache, (DataType) config[CONFIG_DTYPE], first + d);
}

/* out[h] = sum over t of softmax (scale * query[h] . key[t]) * value[t], for the heads of one kv
 * head. `work` has room for (length + 3 * dim) * group numbers. */
static void
attend (const int64_t *config, const double *query, const void *key_cache, const void *value_cache,
        const int32_t *table, uint64_t length, uint64_t kv_head, float *out, double *work)
{
  uint64_t dim = (uint64_t) config[CONFIG_HEAD_DIM];
  uint64_t group = (uint64_t) (config[CONFIG_HEADS] / config[CONFIG_KV_HEADS]);
  double scale = 1.0 / sqrt ((double) dim);
  double *weights = work;
  double *sums = weights + length * group;
  double *row = sums + dim * group;

  for (uint64_t t = 0; t < length; t++)
    {
      load_token (config, key_cache, table, t, kv_head, row);
      for (uint64_t h = 0; h < group; h++)
        {
          double dot = 0;

          for (uint64_t d = 0; d < dim; d++)
            dot += query[h * dim + d] * row[d];
          weights[h * length + t] = dot * scale;
        }
    }
  for (uint64_t h = 0; h < group; h++)
    {
      double top = weights[h * length];
      double total = 0;

      for (uint64_t t = 1; t < length; t++)
        top = fmax (top, weights[h * length + t]);
      for (uint64_t t = 0; t < length; t++)
        total += weights[h * length + t] = exp (weights[h * length + t] - top);
      for (uint64_t t = 0; t < length; t++)
        weights[h * length + t] /= total;
    }
  memset (sums, 0, dim * group * sizeof *sums);
  for (uint64_t t = 0; t < length; t++)
    {
      load_token (config, value_cache, table, t, kv_head, row);
      for (uint64_t h = 0; h < group; h++)
        for (uint64_t d = 0; d < dim; d++)
          sums[h * dim + d] += weights[h * length + t] * row[d];
    }
  for (uint64_t i = 0; i < dim * group; i++)
    out[i] = (float) sums[i];
}

int
pto_reference_compute (PTO2Case *c)
{
  const void *query = c->ops->input (c, "query");
  const void *key_cache = c->ops->input (c, "key_cache");
  const void *value_cache = c->ops->input (c, "value_cache");
  const int32_t *table = (const int32_t *) c->ops->input (c, "block_table");
  const int32_t *lengths = (const int32_t *) c->ops->input (c, "context_lens");
  const int64_t *config = (const int64_t *) c->ops->input (c, "config");
  float *out = (float *) c->ops->expected (c, "out");
  uint64_t batch, dim, kv_heads, group, table_width, longest;
  double *work, *queries;

  if (query == NULL || key_cache == NULL || value_cache == NULL || table == NULL || lengths == NULL
      || config == NULL || out == NULL)
    return pto_case_fail (c, "the arrays can not be had");
  batch = (uint64_t) config[CONFIG_BATCH];
  dim = (uint64_t) config[CONFIG_HEAD_DIM];
  kv_heads = (uint64_t) config[CONFIG_KV_HEADS];
  group = (uint64_t) config[CONFIG_HEADS] / kv_heads;
  table_width = (uint64_t) config[CONFIG_TABLE_WIDTH];
  longest = table_width * (uint64_t) config[CONFIG_BLOCK_SIZE];
  work = (double *) malloc ((longest + 3 * dim) * group * sizeof *work);
  queries = (double *) malloc (dim * group * sizeof *queries);
  if (work == NULL || queries == NULL)
    {
      free (work);
      free (queries);
      return pto_case_fail (c, "no memory for the reference");
    }
  for (uint64_t i = 0; i < batch; i++)
    for (uint64_t kv_head = 0; kv_head < kv_heads; kv_head++)
      {
        uint64_t first = (i * kv_heads + kv_head) * group * dim;

        for (uint64_t d = 0; d < group * dim; d++)
          queries[d] = load (query, (DataType) config[CONFIG_DTYPE], first + d);
        attend (config, queries, key_cache, value_cache, table + i * table_width,
                (uint64_t) lengths[i], kv_head, out + first, work);
      }
  free (work);
  free (queries);
  return 0;
}
