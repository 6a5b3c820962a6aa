/* test-engine-reduce.c: do tasks that reduce into the same memory run at the same time, and is what
 * comes of it what they would have made of it one after the other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include <string.h>

#define CELLS 24u

/* Who combines adds, or takes the larger one, or adds once it has waited. */
enum
{
  SUM,
  LARGEST,
  SUM_LATER,
  UNKNOWN
};

static uint64_t cells[CELLS];
static _Atomic uint32_t wrong;
static _Atomic uint32_t ran;

/* --- what kernels do with 64-bit numbers --- */

static uint64_t *
at (const TensorData *tensor, uint64_t i)
{
  uint64_t offset = tensor->start_offset;

  for (uint32_t d = tensor->ndims; d-- > 0;)
    {
      offset += i % tensor->shapes[d] * tensor->strides[d];
      i /= tensor->shapes[d];
    }
  return (uint64_t *) (uintptr_t) tensor->buffer.addr + offset;
}

static uint64_t
count_of (const TensorData *tensor)
{
  uint64_t n = 1;

  for (uint32_t d = 0; d < tensor->ndims; d++)
    n *= tensor->shapes[d];
  return n;
}

static const TensorData *
tensor_at (const int64_t *args, uint32_t i)
{
  return (const TensorData *) (uintptr_t) args[i];
}

static void
kernel_fill (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  const TensorData *tensor = tensor_at (args, 0);

  for (uint64_t i = 0; i < count_of (tensor); i++)
    *at (tensor, i) = (uint64_t) args[1];
}

static void
combine (struct machine *machine, const TensorData *to, const TensorData *from, bool sum)
{
  if (count_of (to) != count_of (from))
    atomic_fetch_add (&wrong, 1);
  pto_yield (machine->exec);
  for (uint64_t i = 0; i < count_of (to); i++)
    {
      uint64_t value = *at (from, i);

      if (sum)
        *at (to, i) += value;
      else if (value > *at (to, i))
        *at (to, i) = value;
    }
}

static void
kernel_sum (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  combine (machine, tensor_at (args, 0), tensor_at (args, 1), true);
}

static void
kernel_sum_later (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  struct pto_word never;

  pto_word_init (&never, 0, false);
  pto_park (machine->exec, &never, 0, pto_now (machine->exec) + 100000);
  kernel_sum (machine, slot, args, failed);
}

static void
kernel_largest (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  combine (machine, tensor_at (args, 0), tensor_at (args, 1), false);
}

/* Adds args[1] + i to element i, slowly. Who else is there meanwhile spoils it. */
static void
kernel_add (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  const TensorData *tensor = tensor_at (args, 0);
  uint64_t n = count_of (tensor);

  for (uint64_t i = 0; i < n; i++)
    {
      uint64_t value = *at (tensor, i);

      if (i == n / 2)
        pto_yield (machine->exec);
      *at (tensor, i) = value + (uint64_t) args[1] + i;
    }
  atomic_fetch_add (&ran, 1);
}

/* The same with the larger one of the two. */
static void
kernel_raise (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  const TensorData *tensor = tensor_at (args, 0);

  for (uint64_t i = 0; i < count_of (tensor); i++)
    if ((uint64_t) args[1] + i > *at (tensor, i))
      *at (tensor, i) = (uint64_t) args[1] + i;
  atomic_fetch_add (&ran, 1);
}

static uint64_t
digest_of (const TensorData *tensor)
{
  uint64_t digest = 0;

  for (uint64_t i = 0; i < count_of (tensor); i++)
    digest = (digest ^ *at (tensor, i)) * UINT64_C (0x100000001b3);
  return digest;
}

/* The tensor is as args[1] says. */
static void
kernel_expect (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  if (digest_of (tensor_at (args, 0)) != (uint64_t) args[1])
    atomic_fetch_add (&wrong, 1);
  atomic_fetch_add (&ran, 1);
}

enum
{
  KERNEL_OF_FILL = KERNEL_OWN,
  KERNEL_SUM,
  KERNEL_LARGEST,
  KERNEL_SUM_LATER,
  KERNEL_ADD,
  KERNEL_RAISE,
  KERNEL_EXPECT
};

static const machine_kernel kernels[]
    = { kernel_fill, kernel_sum,   kernel_largest, kernel_sum_later,
        kernel_add,  kernel_raise, kernel_expect };

static bool
find_reduction (void *data, const PTOParam *param, struct pto_reduction *reduction, char *why,
                size_t size)
{
  g_strlcpy (why, "nobody combines so", size);
  *reduction = (struct pto_reduction){ .fill = KERNEL_OF_FILL,
                                       .combine = KERNEL_SUM + (uint32_t) param->combine };
  return param->combine < UNKNOWN;
}

/* --- machines and arguments --- */

static struct machine_config
config_of (enum pto_backend backend, uint64_t seed)
{
  return (struct machine_config){ .backend = backend,
                                  .seed = seed,
                                  .schedulers = 2,
                                  .endpoints = 2,
                                  .window = 256,
                                  .guard_bytes = 64,
                                  .kernels = kernels,
                                  .reduction = find_reduction };
}

static struct machine *
machine_of (gconstpointer backend)
{
  struct machine_config config = config_of (BACKEND (backend), 1);

  for (uint32_t i = 0; i < CELLS; i++)
    cells[i] = i;
  atomic_store (&wrong, 0);
  atomic_store (&ran, 0);
  return machine_new (&config);
}

static Tensor
all_cells (void)
{
  return make_tensor_external (cells, (uint64_t[]){ CELLS }, 1, PTO_DTYPE_UINT64);
}

static Tensor
part (uint64_t begin, uint64_t n)
{
  Tensor whole = all_cells ();

  return pto2_tensor_view (&whole, &n, &begin);
}

static PTOParam
reduces (const Tensor *tensor, int32_t how, uint64_t initial)
{
  return pto2_make_reduction_param (tensor, how, &initial);
}

static PTOParam
number (uint64_t value)
{
  return make_scalar_param (value);
}

/* The same elements of other memory. */
static TensorData
mirrored (const Tensor *tensor, const uint64_t *mirror)
{
  TensorData data;

  memcpy (&data, tensor, sizeof data);
  data.buffer.addr = (uint64_t) (uintptr_t) mirror;
  return data;
}

/* What it would be. */
static PTOParam
expectation (const Tensor *tensor, const uint64_t *mirror)
{
  TensorData data = mirrored (tensor, mirror);

  return number (digest_of (&data));
}

static void
assert_cells (const uint64_t *mirror)
{
  for (uint32_t i = 0; i < CELLS; i++)
    g_assert_cmpuint (cells[i], ==, mirror[i]);
}

/* --- one thing at a time --- */

/* What was there before takes part, runs go on with what came of those before, and whoever reads it
 * comes behind the combining. */
static void
test_sum (gconstpointer backend)
{
  struct machine *machine = machine_of (backend);
  Tensor whole = all_cells ();
  uint64_t mirror[CELLS];
  uint32_t n = 60;

  memcpy (mirror, cells, sizeof mirror);
  for (uint32_t round = 0; round < 5; round++)
    {
      machine_begin (machine);
      for (uint32_t i = 0; i < n; i++)
        {
          SUBMIT (machine, KERNEL_ADD, reduces (&whole, SUM, 0), number (i));
          for (uint32_t c = 0; c < CELLS; c++)
            mirror[c] += i + c;
          if (i % 30 == 29)
            SUBMIT (machine, KERNEL_EXPECT, input (&whole), expectation (&whole, mirror));
        }
      machine_end_ok (machine);
      assert_cells (mirror);
    }
  g_assert_cmpuint (wrong, ==, 0);
  g_assert_cmpuint (ran, ==, 5 * (n + 2));
  machine_free (machine);
}

/* All at once, while somebody still writes what they reduce into. */
static void
test_at_once (gconstpointer backend)
{
  struct machine *machine = machine_of (backend);
  Tensor whole = all_cells ();
  struct gate gates[4];

  machine_begin (machine);
  for (uint32_t i = 0; i < 4; i++)
    {
      gate_init (&gates[i]);
      SUBMIT (machine, KERNEL_GATE, i == 0 ? inout (&whole) : reduces (&whole, SUM, 0),
              scalar (&gates[i]));
    }
  for (uint32_t i = 0; i < 4; i++)
    gate_wait_reached (machine, &gates[i]);
  for (uint32_t i = 4; i-- > 0;)
    gate_open (machine, &gates[i]);
  machine_end_ok (machine);
  machine_free (machine);
}

/* Copies are filled, updated, combined in pairs, and with the tensor: everybody comes behind what
 * it takes in, and nobody behind anything else. */
static void
test_edges (gconstpointer backend)
{
  struct machine *machine = machine_of (backend);
  Tensor whole = all_cells ();
  const uint32_t both = PTO_HAZARD_RAW | PTO_HAZARD_WAW;

  machine_record (machine);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_NOTHING, inout (&whole));
  SUBMIT (machine, KERNEL_NOTHING, input (&whole));
  for (uint32_t i = 0; i < 5; i++)
    SUBMIT (machine, KERNEL_NOTHING, reduces (&whole, SUM, 0)); /* 3, 5, 7, 9; 10 shares with 3 */
  SUBMIT (machine, KERNEL_NOTHING, inout (&whole));             /* behind 11, 12, 13, 14 */
  g_assert_cmpuint (machine->engine->submitted, ==, 16);
  machine_end_ok (machine);
  for (uint32_t i = 0; i < 4; i++)
    g_assert_cmphex (machine_edge (machine, 3 + 2 * i, 2 + 2 * i), ==, both);
  g_assert_cmphex (machine_edge (machine, 10, 2), ==, both);
  g_assert_cmphex (machine_edge (machine, 11, 3), ==, both);
  g_assert_cmphex (machine_edge (machine, 11, 10), ==, both);
  g_assert_cmphex (machine_edge (machine, 11, 5), ==, PTO_HAZARD_RAW);
  g_assert_cmphex (machine_edge (machine, 12, 7), ==, both);
  g_assert_cmphex (machine_edge (machine, 12, 9), ==, PTO_HAZARD_RAW);
  g_assert_cmphex (machine_edge (machine, 13, 11), ==, both);
  g_assert_cmphex (machine_edge (machine, 13, 12), ==, PTO_HAZARD_RAW);
  g_assert_cmphex (machine_edge (machine, 14, 13), ==, PTO_HAZARD_RAW);
  g_assert_cmphex (machine_edge (machine, 14, 0), ==, both);
  g_assert_cmphex (machine_edge (machine, 14, 1), ==, PTO_HAZARD_WAR);
  g_assert_cmphex (machine_edge (machine, 15, 14), ==, both);
  g_assert_cmpuint (machine_n_edges (machine), ==, 1 + 5 + 3 + 2 + 2 + 3 + 1);
  machine_free (machine);
}

/* A scope's end is one of a set's; those within it are no end, and give it tasks and copies. */
static void
test_scopes (gconstpointer backend)
{
  struct machine *machine = machine_of (backend);
  Tensor whole = all_cells ();
  uint64_t mirror[CELLS];

  memcpy (mirror, cells, sizeof mirror);
  for (uint32_t c = 0; c < CELLS; c++)
    mirror[c] += 40 * (c + 1);
  machine_begin (machine);
  for (uint32_t i = 0; i < 20; i++)
    {
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_ADD, reduces (&whole, SUM, 0), number (1));
      pto_engine_scope_end (machine->engine);
      g_assert_cmpuint (machine->engine->submitted, ==, 3 * (i + 1));
    }
  SUBMIT (machine, KERNEL_ADD, reduces (&whole, SUM, 0), number (1));
  for (uint32_t i = 1; i < 20; i++)
    {
      for (uint32_t depth = 0; depth < 1 + i % 5; depth++)
        pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_ADD, reduces (&whole, SUM, 0), number (1));
      for (uint32_t depth = 0; depth < 1 + i % 5; depth++)
        pto_engine_scope_end (machine->engine);
    }
  /* Four copies, for there are four places. */
  g_assert_cmpuint (machine->engine->submitted, ==, 60 + 20 + 4);
  SUBMIT (machine, KERNEL_EXPECT, input (&whole), expectation (&whole, mirror));
  machine_end_ok (machine);
  assert_cells (mirror);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* What does not overlap, or is no access, lets a set be; what does, closes it, and so does the same
 * tensor by another kernel, from another value, or as another shape. */
static void
test_what_closes (gconstpointer backend)
{
  struct machine *machine = machine_of (backend);
  uint64_t shape[] = { 4, 6 };
  Tensor whole = all_cells ();
  Tensor matrix = pto2_tensor_reshape (&whole, shape, 2);
  Tensor half = pto2_tensor_view (&matrix, (uint64_t[]){ 4, 3 }, (uint64_t[]){ 0, 0 });
  Tensor other = pto2_tensor_view (&matrix, (uint64_t[]){ 4, 3 }, (uint64_t[]){ 0, 3 });
  Tensor corner = pto2_tensor_view (&matrix, (uint64_t[]){ 1, 1 }, (uint64_t[]){ 3, 2 });
  Tensor turned = pto2_tensor_transpose (&half, 0, 1);
  const PTOParam lets[]
      = { reduces (&other, SUM, 0), no_dep (&half), input (&other), reduces (&half, SUM, 0) };
  const PTOParam closes[] = { input (&corner),
                              inout (&whole),
                              reduces (&half, LARGEST, 0),
                              reduces (&half, SUM, 1),
                              reduces (&turned, SUM, 0),
                              reduces (&corner, SUM, 0),
                              existing (&corner),
                              pto2_make_param (PTO_PARAM_COMMUTATIVE, &corner) };

  machine_begin (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (lets) + G_N_ELEMENTS (closes); i++)
    {
      bool stays = i < G_N_ELEMENTS (lets);
      PTOParam param = stays ? lets[i] : closes[i - G_N_ELEMENTS (lets)];
      uint64_t before;
      uint32_t expected;

      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_NOTHING, reduces (&half, SUM, 0));
      before = machine->engine->submitted;
      SUBMIT (machine, KERNEL_NOTHING, param);
      expected = 1 + (param.type == PTO_PARAM_REDUCTION) + !stays;
      g_assert_cmpuint (machine->engine->submitted - before, ==, expected);
      pto_engine_scope_end (machine->engine);
    }
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_NOTHING, reduces (&half, SUM, 0));
  g_assert_cmpuint (machine->engine->sets != NULL, ==, true);
  pto_engine_manual_scope_begin (machine->engine, NULL, 0);
  g_assert_cmphex (machine->engine->before & PTO_BEFORE_SETS, ==, 0);
  pto_engine_scope_end (machine->engine);
  pto_engine_scope_end (machine->engine);
  machine_end_ok (machine);
  machine_free (machine);
}

/* A task reduces into several, also into one twice, and reads what was there before. */
static void
test_several (gconstpointer backend)
{
  struct machine *machine = machine_of (backend);
  Tensor first = part (0, 8);
  Tensor second = part (8, 8);
  uint64_t mirror[CELLS];

  memcpy (mirror, cells, sizeof mirror);
  machine_begin (machine);
  for (uint32_t i = 0; i < 6; i++)
    {
      SUBMIT (machine, KERNEL_ADD, reduces (&first, SUM, 0), number (i), reduces (&second, SUM, 0),
              reduces (&first, SUM, 0));
      for (uint32_t c = 0; c < 8; c++)
        mirror[c] += i + c;
    }
  SUBMIT (machine, KERNEL_EXPECT, input (&first), expectation (&first, mirror),
          reduces (&first, SUM, 0), reduces (&second, SUM, 0));
  SUBMIT (machine, KERNEL_ADD, reduces (&first, SUM, 0), number (7), input (&first));
  for (uint32_t c = 0; c < 8; c++)
    mirror[c] += 7 + c;
  SUBMIT (machine, KERNEL_EXPECT, input (&second), expectation (&second, mirror));
  machine_end_ok (machine);
  assert_cells (mirror);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* Into as many as are kept at a time: what other tasks began to reduce is combined before, whether
 * that was the first of all or not. With one more it is refused. */
static void
test_most (gconstpointer backend)
{
  enum
  {
    MOST = 64
  };
  struct machine *machine = machine_of (backend);
  static uint64_t others[MOST + 1];
  PTOParam params[MOST + 2];

  memset (others, 0, sizeof others);
  for (uint32_t i = 0; i <= MOST; i++)
    {
      Tensor other
          = make_tensor_external (&others[i], (const uint64_t[]){ 1 }, 1, PTO_DTYPE_UINT64);

      params[i < 1 ? i : i + 1] = reduces (&other, SUM, 0);
    }
  params[1] = number (5);
  machine_begin (machine);
  /* The last one is begun by another task. */
  SUBMIT (machine, KERNEL_ADD, params[MOST + 1], number (3));
  pto_engine_submit (
      machine->engine,
      &(struct pto_submit){ .kernel = KERNEL_ADD, .params = params, .n_params = MOST + 1 });
  machine_end_ok (machine);
  for (uint32_t i = 0; i <= MOST; i++)
    g_assert_cmpuint (others[i], ==, i == 0 ? 5 : i == MOST ? 3 : 0);
  machine_begin (machine);
  pto_engine_submit (
      machine->engine,
      &(struct pto_submit){ .kernel = KERNEL_ADD, .params = params, .n_params = MOST + 2 });
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "a task reduces into at most 64 tensors");
  machine_free (machine);
}

static void
test_refused (gconstpointer backend)
{
  struct machine *machine = machine_of (backend);
  struct machine_config config = config_of (BACKEND (backend), 1);
  Tensor whole = all_cells ();
  Tensor half = part (0, CELLS / 2);

  machine_begin (machine);
  SUBMIT (machine, KERNEL_ADD, reduces (&whole, UNKNOWN, 0), number (1));
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "argument 0: nobody combines so");
  machine_begin (machine);
  SUBMIT (machine, KERNEL_ADD, reduces (&half, SUM, 0), number (1), reduces (&whole, SUM, 0));
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "argument 2: it overlaps another");
  machine_begin (machine);
  pto_engine_manual_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_ADD, reduces (&whole, SUM, 0), number (1));
  pto_engine_scope_end (machine->engine);
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS,
                        "argument 0: nothing is reduced in a manual scope");
  machine_begin (machine);
  whole = machine_tensor (machine, 64);
  SUBMIT (machine, KERNEL_ADD, number (1), reduces (&whole, SUM, 0));
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "argument 1: the tensor has no memory");
  machine_begin (machine);
  half.status = PTO2_TENSOR_OUT_OF_BOUNDS;
  SUBMIT (machine, KERNEL_ADD, reduces (&half, SUM, 0), number (1));
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, "argument 0: the view reaches beyond");
  machine_free (machine);

  config.reduction = NULL;
  machine = machine_new (&config);
  machine_begin (machine);
  half = part (0, CELLS / 2);
  SUBMIT (machine, KERNEL_ADD, reduces (&half, SUM, 0), number (1));
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS,
                        "argument 0: what is reduced is combined");
  machine_free (machine);
}

/* A task that fails: who reads it does not run. A run that fails gives everything back. */
static void
test_failure (gconstpointer backend)
{
  struct machine *machine = machine_of (backend);
  Tensor whole = all_cells ();
  _Atomic uint32_t failures = 0;

  machine_begin (machine);
  SUBMIT (machine, KERNEL_ADD, reduces (&whole, SUM, 0), number (1));
  SUBMIT (machine, KERNEL_FAIL, reduces (&whole, SUM, 0), scalar (&failures));
  SUBMIT (machine, KERNEL_EXPECT, input (&whole), number (0));
  machine_end_ok (machine);
  g_assert_cmpuint (failures, ==, 1);
  g_assert_cmpuint (ran, ==, 1);
  machine_begin (machine);
  for (uint32_t i = 0; i < 20; i++)
    SUBMIT (machine, i == 5 ? KERNEL_FATAL : KERNEL_ADD, reduces (&whole, SUM, 0),
            scalar (&failures));
  machine_expect_error (machine, PTO_STATUS_KERNEL_FAULT, "crashed");
  machine_free (machine);
  machine = machine_of (backend);
  machine_begin (machine);
  SUBMIT (machine, KERNEL_ADD, reduces (&whole, SUM, 0), number (1));
  machine_end_ok (machine);
  g_assert_cmpuint (cells[5], ==, 5 + 1 + 5);
  machine_free (machine);
}

/* More than may be open, each several times, of memory that the runtime makes, in a heap that has
 * room for some copies only: they are used again. */
static void
test_many (gconstpointer backend)
{
  struct machine_config config = config_of (BACKEND (backend), 1);
  static Tensor tensors[150];
  struct machine *machine;
  uint64_t mirror[4] = { 5 + 6, 5 + 8, 5 + 10, 5 + 12 };

  config.heap = 500 * 1024;
  config.window = 2048;
  config.map_pool = 4096;
  config.edge_pool = 8192;
  machine = machine_new (&config);
  atomic_store (&wrong, 0);
  machine_begin (machine);
  for (uint32_t i = 0; i < G_N_ELEMENTS (tensors); i++)
    {
      uint32_t generation;

      tensors[i] = make_tensor_external (NULL, (uint64_t[]){ 4 }, 1, PTO_DTYPE_UINT64);
      tensors[i].storage = pto_engine_new_buffer (machine->engine, 32, &generation);
      tensors[i].generation = generation;
      SUBMIT (machine, KERNEL_OF_FILL, output (&tensors[i]), number (5));
    }
  for (uint32_t round = 0; round < 2; round++)
    for (uint32_t i = 0; i < G_N_ELEMENTS (tensors); i++)
      SUBMIT (machine, KERNEL_ADD, reduces (&tensors[i], SUM, 0), number (2 + round * 2));
  for (uint32_t i = 0; i < G_N_ELEMENTS (tensors); i++)
    SUBMIT (machine, KERNEL_EXPECT, input (&tensors[i]), number (0));
  machine_end_ok (machine);
  /* 6 + 2 i: not what nothing is. */
  g_assert_cmpuint (wrong, ==, G_N_ELEMENTS (tensors));
  atomic_store (&wrong, 0);
  machine_free (machine);
  /* One copy for each of them would be too much. */
  config.heap = 200 * 1024;
  machine = machine_new (&config);
  for (uint32_t again = 0; again < 2; again++)
    {
      Tensor tensor;
      uint32_t generation;

      machine_begin (machine);
      for (uint32_t i = 0; i < 100; i++)
        {
          tensor = make_tensor_external (NULL, (uint64_t[]){ 4 }, 1, PTO_DTYPE_UINT64);
          tensor.storage = pto_engine_new_buffer (machine->engine, 32, &generation);
          tensor.generation = generation;
          SUBMIT (machine, KERNEL_OF_FILL, output (&tensor), number (5));
          for (uint32_t k = 0; k < 2; k++)
            SUBMIT (machine, KERNEL_ADD, reduces (&tensor, SUM, 0), number (2 + k * 2));
          tensor.buffer.addr = (uint64_t) (uintptr_t) mirror;
          SUBMIT (machine, KERNEL_EXPECT, input (&tensor), expectation (&tensor, mirror));
        }
      machine_end_ok (machine);
    }
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* A set of an outer scope does not take what will be gone with the inner one. */
static void
test_outer_set (gconstpointer backend)
{
  struct machine_config config = config_of (BACKEND (backend), 1);
  Tensor first = part (0, 8);
  Tensor second = part (8, 8);
  struct machine *machine;
  Tensor large;
  uint64_t before;

  config.heap = 32 * 1024;
  machine = machine_new (&config);
  machine_begin (machine);
  large = machine_tensor (machine, 17 * 1024);
  SUBMIT (machine, KERNEL_NOTHING, output (&large));
  SUBMIT (machine, KERNEL_ADD, reduces (&first, SUM, 0), number (1));
  pto_engine_scope_begin (machine->engine, NULL, 0);
  SUBMIT (machine, KERNEL_ADD, reduces (&second, SUM, 0), number (1));
  SUBMIT (machine, KERNEL_NOTHING, input (&second));
  before = machine->engine->submitted;
  SUBMIT (machine, KERNEL_ADD, reduces (&first, SUM, 0), number (1));
  g_assert_cmpuint (machine->engine->submitted, ==, before + 1);
  /* One of the inner scope may have it again, when its ring is half full, too. */
  large = machine_tensor (machine, 17 * 1024);
  SUBMIT (machine, KERNEL_NOTHING, output (&large));
  SUBMIT (machine, KERNEL_ADD, reduces (&second, SUM, 0), number (1));
  g_assert_cmpuint (machine->engine->rings[1].heap.used, ==, 18 * 1024 + 1024);
  pto_engine_scope_end (machine->engine);
  machine_end_ok (machine);
  machine_free (machine);
}

/* A scope that is too small says with which setting the same program passes, copies and all. */
static void
test_advice (gconstpointer backend)
{
  static const char *const knobs[] = { "task-window", "heap" };

  for (uint32_t k = 0; k < 2; k++)
    {
      struct machine_config config = config_of (BACKEND (backend), 1);
      uint64_t mirror[CELLS];

      for (uint32_t i = 0; i < CELLS; i++)
        mirror[i] = cells[i] = i;
      for (uint32_t i = 0; i < 60; i++)
        for (uint32_t c = 0; c < CELLS; c++)
          mirror[c] += i + c;
      for (uint32_t attempt = 0; attempt < 2; attempt++)
        {
          struct machine *machine;
          Tensor whole = all_cells ();
          const char *message;
          Tensor kept;

          if (attempt == 0 && k == 0)
            config.window = 16;
          if (attempt == 0 && k == 1)
            config.heap = 16 * 1024;
          machine = machine_new (&config);
          machine_begin (machine);
          for (uint32_t i = 0; i < 60; i++)
            {
              SUBMIT (machine, KERNEL_ADD, reduces (&whole, SUM, 0), number (i));
              kept = machine_tensor (machine, 1);
              SUBMIT (machine, KERNEL_NOTHING, output (&kept));
            }
          if (attempt > 0)
            machine_end_ok (machine);
          else
            {
              machine_end (machine, &message);
              g_test_message ("%s", message);
              g_assert_cmpuint (machine_follow (&config, message, knobs[k]), >, 0);
              memset (cells, 0, sizeof cells);
              for (uint32_t i = 0; i < CELLS; i++)
                cells[i] = i;
            }
          machine_free (machine);
        }
      assert_cells (mirror);
    }
}

/* Each task as it is submitted, and these not. */
static void
test_direct (void)
{
  struct machine *machine = machine_of (GINT_TO_POINTER (PTO_BACKEND_PAR));
  Tensor whole = all_cells ();
  uint64_t mirror[CELLS];

  memcpy (mirror, cells, sizeof mirror);
  machine_begin (machine);
  for (uint32_t i = 0; i < 10; i++)
    {
      for (uint32_t c = 0; c < CELLS; c++)
        mirror[c] += 1 + c;
      machine_go_direct (machine);
      SUBMIT (machine, KERNEL_ADD, reduces (&whole, i % 2 == 0 ? SUM : SUM_LATER, 0), number (1));
      machine_go_direct (machine);
      SUBMIT (machine, KERNEL_EXPECT, input (&whole), expectation (&whole, mirror));
    }
  machine_end_ok (machine);
  assert_cells (mirror);
  g_assert_cmpuint (wrong, ==, 0);
  machine_free (machine);
}

/* --- at random --- */

/* What an interpreter makes of it, one after the other. */
static void
interpret (const Tensor *tensor, uint64_t *mirror, uint32_t what, uint64_t value)
{
  TensorData data = mirrored (tensor, mirror);

  for (uint64_t i = 0; i < count_of (&data); i++)
    switch (what)
      {
      case KERNEL_OF_FILL:
        *at (&data, i) = value;
        break;
      case KERNEL_ADD:
        *at (&data, i) += value + i;
        break;
      default:
        if (value + i > *at (&data, i))
          *at (&data, i) = value + i;
        break;
      }
}

static void
random_program (enum pto_backend backend, uint64_t seed)
{
  struct machine_config config = config_of (backend, seed);
  uint64_t random = seed * 7919;
  uint64_t mirror[CELLS];
  struct machine *machine;
  uint32_t n = 0;

  config.window = 64 << machine_below (&random, 2);
  config.heap = (UINT64_C (32) << machine_below (&random, 4)) * 1024;
  machine = machine_new (&config);
  atomic_store (&wrong, 0);
  atomic_store (&ran, 0);
  for (uint32_t i = 0; i < CELLS; i++)
    mirror[i] = cells[i] = i;
  machine_begin (machine);
  for (uint32_t s = 0; s < 6; s++)
    {
      uint32_t depth = 1 + machine_below (&random, 2);
      uint32_t left = depth;

      for (uint32_t d = 0; d < depth; d++)
        pto_engine_scope_begin (machine->engine, NULL, 0);
      for (uint32_t i = 0; i < 12; i++)
        {
          uint64_t shape[] = { 4, 6 };
          uint64_t begin[] = { machine_below (&random, 4), machine_below (&random, 6) / 3 * 3 };
          uint64_t extent[] = { 1 + machine_below (&random, 4 - (uint32_t) begin[0]), 3 };
          Tensor whole = all_cells ();
          Tensor matrix = pto2_tensor_reshape (&whole, shape, 2);
          Tensor view = machine_below (&random, 3) == 0 ? matrix
                                                        : pto2_tensor_view (&matrix, extent, begin);
          uint64_t value = machine_below (&random, 100);

          switch (machine_below (&random, 9))
            {
            case 0:
              SUBMIT (machine, KERNEL_OF_FILL, existing (&view), number (value));
              interpret (&view, mirror, KERNEL_OF_FILL, value);
              n--;
              break;
            case 1:
              SUBMIT (machine, KERNEL_EXPECT, input (&view), expectation (&view, mirror));
              break;
            case 2:
              SUBMIT (machine, KERNEL_ADD, pto2_make_param (PTO_PARAM_COMMUTATIVE, &view),
                      number (value));
              interpret (&view, mirror, KERNEL_ADD, value);
              break;
            case 3:
              SUBMIT (machine, KERNEL_RAISE, reduces (&view, LARGEST, 0), number (value));
              interpret (&view, mirror, KERNEL_RAISE, value);
              break;
            default:
              SUBMIT (machine, KERNEL_ADD, reduces (&view, SUM, 0), number (value));
              interpret (&view, mirror, KERNEL_ADD, value);
              break;
            }
          n++;
          if (left > 1 && i == 6)
            {
              pto_engine_scope_end (machine->engine);
              left--;
            }
        }
      for (; left > 0; left--)
        pto_engine_scope_end (machine->engine);
    }
  machine_end_ok (machine);
  assert_cells (mirror);
  g_assert_cmpuint (wrong, ==, 0);
  g_assert_cmpuint (ran, ==, n);
  machine_free (machine);
}

static void
test_random (gconstpointer backend)
{
  uint64_t seeds = SCALE (BACKEND (backend) == PTO_BACKEND_DET ? 2000 : 200);

  for (uint64_t seed = 1; seed <= seeds; seed++)
    {
      g_test_message ("seed %" G_GUINT64_FORMAT, seed);
      random_program (BACKEND (backend), seed);
    }
}

/* --- what was combined before a manual scope began --- */

enum before
{
  OPEN,     /* nobody has asked for it: the scope does */
  IN_SCOPE, /* it was combined at the end of the scope that it was reduced in */
  READ,     /* a task has read a part */
  MANY,     /* so were more others than are noted one by one */
  N_BEFORE
};

static void
reduce_before (struct machine *machine, enum before before, const Tensor *first)
{
  static uint64_t others[150];
  Tensor corner = part (0, 1);

  if (before == IN_SCOPE)
    pto_engine_scope_begin (machine->engine, NULL, 0);
  for (uint32_t i = 0; i < 6; i++)
    SUBMIT (machine, KERNEL_ADD, reduces (first, SUM_LATER, 0), number (i));
  if (before == IN_SCOPE)
    pto_engine_scope_end (machine->engine);
  if (before == READ || before == MANY)
    SUBMIT (machine, KERNEL_NOTHING, input (&corner));
  for (uint32_t i = 0; before == MANY && i < G_N_ELEMENTS (others); i++)
    {
      Tensor other = machine_external (&others[i], sizeof others[i]);
      uint64_t shape[] = { 1 };

      pto2_tensor_set_shape (&other, shape, 1, first->dtype);
      pto_engine_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_ADD, reduces (&other, SUM, 0), number (1));
      pto_engine_scope_end (machine->engine);
    }
}

static void
test_combined_before (gconstpointer backend)
{
  for (enum before before = OPEN; before < N_BEFORE; before++)
    {
      struct machine *machine = machine_of (backend);
      Tensor first = part (0, 8);
      uint64_t mirror[CELLS];

      memcpy (mirror, cells, sizeof mirror);
      machine_begin (machine);
      reduce_before (machine, before, &first);
      for (uint32_t i = 0; i < 6; i++)
        for (uint32_t c = 0; c < 8; c++)
          mirror[c] += i + c;
      pto_engine_manual_scope_begin (machine->engine, NULL, 0);
      SUBMIT (machine, KERNEL_EXPECT, input (&first), expectation (&first, mirror));
      pto_engine_scope_end (machine->engine);
      machine_end_ok (machine);
      g_assert_cmpuint (wrong, ==, 0);
      machine_free (machine);
    }
}

static void
add_tests (void)
{
  machine_add ("reduce", "combined-before", test_combined_before);
  machine_add ("reduce", "sum", test_sum);
  machine_add ("reduce", "at-once", test_at_once);
  machine_add ("reduce", "edges", test_edges);
  machine_add ("reduce", "scopes", test_scopes);
  machine_add ("reduce", "what-closes", test_what_closes);
  machine_add ("reduce", "several", test_several);
  machine_add ("reduce", "most", test_most);
  machine_add ("reduce", "refused", test_refused);
  machine_add ("reduce", "failure", test_failure);
  machine_add ("reduce", "many", test_many);
  machine_add ("reduce", "outer-set", test_outer_set);
  machine_add ("reduce", "advice", test_advice);
  machine_add ("reduce", "random", test_random);
  g_test_add_func ("/pto/reduce/par/direct", test_direct);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
