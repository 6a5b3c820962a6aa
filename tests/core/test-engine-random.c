/* test-engine-random.c: do random programs give what a sequential interpreter gives?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A program opens and ends scopes, makes tensors and submits tasks on views of them with all tags.
 * Every task reads its inputs into a checksum, lets others run, and writes its outputs from the
 * checksum. The interpreter does the same on memory of its own at once, in program order, and tells
 * each task the checksum it must find. Windows and pools are so small that everything wraps and
 * stalls. Tasks also name producers, tasks that have retired among them. Where that is a deadlock,
 * the message's setting is taken and the same program is run again.
 *
 * Some programs also add tasks, which others name as producers, and publish them later.
 * PTO_TEST_TIMES multiplies how many of those are run.
 */
#include "engine-test.h"

#include "../../pto/core/manual-tasks.h"
#include "../../pto/core/manual-build.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXTERNALS 6u
#define EXTERNAL_BYTES 96u
#define TENSORS_MAX 64u
#define PARAMS_MAX 5u
#define STEPS_MAX 170u
#define NAMED_MAX 3u /* producers that a submit names */

/* A tensor of the program and the interpreter's memory for it. */
struct pair
{
  Tensor tensor;
  uint8_t *mirror; /* of the whole buffer */
  uint64_t bytes;
  bool written;
  uint32_t depth; /* the scope it was made in */
};

/* A task that was added and is not published. */
struct added
{
  uint32_t number;
  uint32_t depth; /* of its scope */
};

struct world
{
  struct machine *machine;
  uint64_t random;
  uint8_t memory[EXTERNALS][EXTERNAL_BYTES];
  uint8_t mirror[EXTERNALS][EXTERNAL_BYTES];
  struct pair pairs[TENSORS_MAX];
  uint32_t n_pairs;
  pto_task_id ids[STEPS_MAX];
  uint32_t n_tasks;
  struct added added[STEPS_MAX];
  uint32_t n_added;
};

/* What a run has come to. */
struct result
{
  uint8_t memory[EXTERNALS][EXTERNAL_BYTES];
  uint64_t n_tasks;
  uint64_t digest; /* of all that tasks have read */
};

/* How to run a program, and what it comes to, if that is asked for. */
struct way
{
  bool direct;  /* each task within its submit */
  bool by_hand; /* also with tasks that are added */
  struct result *result;
};

/* What tasks tell, from any thread. */
static _Atomic uint64_t ran;
static _Atomic uint64_t wrong;
static _Atomic uint64_t digest;
static _Atomic uint32_t done[STEPS_MAX];
/* Which tasks, by number, each must come after. */
static uint32_t producers_of[STEPS_MAX][NAMED_MAX];
static uint32_t n_producers_of[STEPS_MAX];
/* Do they let others run? */
static bool polite;

/* --- what a task does, in the machine and in the interpreter --- */

/* A byte of a view, by row-major number. */
static uint64_t
place_of (const TensorData *data, uint64_t i)
{
  uint64_t offset = data->start_offset;

  for (uint32_t d = data->ndims; d-- > 0;)
    {
      offset += i % data->shapes[d] * data->strides[d];
      i /= data->shapes[d];
    }
  return offset;
}

static uint64_t
size_of (const TensorData *data)
{
  uint64_t n = 1;

  for (uint32_t d = 0; d < data->ndims; d++)
    n *= data->shapes[d];
  return n;
}

static uint64_t
read_view (const TensorData *data, const uint8_t *base, uint64_t sum)
{
  uint64_t n = size_of (data);

  for (uint64_t i = 0; i < n; i++)
    sum = (sum ^ base[place_of (data, i)]) * UINT64_C (0x100000001b3);
  return sum;
}

static void
write_view (const TensorData *data, uint8_t *base, uint64_t sum)
{
  uint64_t n = size_of (data);

  for (uint64_t i = 0; i < n; i++)
    base[place_of (data, i)] = (uint8_t) (sum >> (i % 7 * 8)) ^ (uint8_t) i;
}

/* The last arguments: which arguments are read, which are written, the checksum to be found, the
 * task's number. */
static void
kernel_step (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  uint32_t n = slot->payload->n_args - 4;
  uint64_t reads = (uint64_t) args[n];
  uint64_t writes = (uint64_t) args[n + 1];
  uint32_t number = (uint32_t) args[n + 3];
  uint64_t sum = 0;

  for (uint32_t i = 0; i < n_producers_of[number]; i++)
    if (atomic_load_explicit (&done[producers_of[number][i]], memory_order_relaxed) == 0)
      atomic_fetch_add (&wrong, 1);
  for (uint32_t i = 0; i < n; i++)
    if ((reads >> i & 1) != 0)
      {
        const TensorData *data = (const TensorData *) (uintptr_t) args[i];

        sum = read_view (data, (const uint8_t *) (uintptr_t) data->buffer.addr, sum);
        if (polite)
          pto_yield (machine->exec);
      }
  if (sum != (uint64_t) args[n + 2])
    atomic_fetch_add (&wrong, 1);
  /* Whatever the order of tasks. */
  atomic_fetch_add (&digest, (sum ^ (uint64_t) args[n + 3]) * UINT64_C (0x9e3779b97f4a7c15));
  for (uint32_t i = 0; i < n; i++)
    if ((writes >> i & 1) != 0)
      {
        const TensorData *data = (const TensorData *) (uintptr_t) args[i];

        write_view (data, (uint8_t *) (uintptr_t) data->buffer.addr, sum + i);
        if (polite)
          pto_yield (machine->exec);
      }
  atomic_store_explicit (&done[number], 1, memory_order_relaxed);
  atomic_fetch_add (&ran, 1);
}

static const machine_kernel kernels[] = { kernel_step };

/* --- the program --- */

static Tensor
random_view (struct world *world, const Tensor *whole)
{
  Tensor view = *whole;
  uint64_t n = whole->shapes[0];
  uint32_t kind = machine_below (&world->random, 4);

  if (kind == 0)
    return view;
  if (kind >= 2 && n % 4 == 0 && n > 4)
    {
      uint64_t shape[2] = { 4, n / 4 };
      uint64_t part[2] = { 1 + machine_below (&world->random, 4),
                           1 + machine_below (&world->random, (uint32_t) n / 4) };
      uint64_t offset[2] = { machine_below (&world->random, (uint32_t) (5 - part[0])),
                             machine_below (&world->random, (uint32_t) (n / 4 + 1 - part[1])) };

      view = pto2_tensor_reshape (&view, shape, 2);
      view = pto2_tensor_view (&view, part, offset);
      if (kind == 3)
        view = pto2_tensor_transpose (&view, 0, 1);
      return view;
    }
  {
    uint64_t part = 1 + machine_below (&world->random, (uint32_t) n);

    return machine_part (&view, machine_below (&world->random, (uint32_t) (n + 1 - part)), part);
  }
}

/* The same part as memory of the program, from the buffer's first byte on or from its own. */
static void
name_by_address (Tensor *view, bool begins)
{
  view->buffer.addr = view->storage->addr;
  if (begins)
    {
      view->buffer.addr += view->start_offset;
      view->start_offset = 0;
    }
  view->storage = NULL;
  view->generation = 0;
}

static TensorData
data_of (const Tensor *tensor)
{
  TensorData data
      = { .start_offset = tensor->start_offset, .ndims = tensor->ndims, .dtype = tensor->dtype };

  memcpy (data.shapes, tensor->shapes, sizeof data.shapes);
  memcpy (data.strides, tensor->strides, sizeof data.strides);
  return data;
}

static void
submit_step (struct world *world, PTOParam *params, uint32_t n_params, bool added)
{
  uint32_t number = world->n_tasks++;
  pto_task_id producers[NAMED_MAX];
  uint32_t n = 0;

  if (number > 0 && machine_below (&world->random, 3) == 0)
    for (n = 0; n < 1 + number % NAMED_MAX; n++)
      {
        producers_of[number][n] = machine_below (&world->random, number);
        producers[n] = world->ids[producers_of[number][n]];
      }
  n_producers_of[number] = n;
  atomic_store (&done[number], 0);
  if (added)
    {
      world->added[world->n_added++]
          = (struct added){ .number = number, .depth = world->machine->engine->depth };
      pto_added_begin (world->machine->engine);
    }
  world->ids[number] = pto_engine_submit (
      world->machine->engine,
      &(struct pto_submit){ .kernel = KERNEL_OWN,
                            .queue = machine_below (&world->random, world->machine->config.queues),
                            .params = params,
                            .n_params = n_params,
                            .producers = producers,
                            .n_producers = n });
  if (added)
    pto_added_end (world->machine->engine);
}

/* Nothing that it accesses is looked up: it outputs memory that no other task uses. */
static void
submit_added (struct world *world)
{
  PTOParam params[5];
  uint32_t n = machine_below (&world->random, 2);

  if (n > 0)
    {
      Tensor tensor
          = machine_tensor (world->machine, 4 * (1 + machine_below (&world->random, 300)));

      params[0] = output (&tensor);
    }
  params[n] = make_scalar_param (0);
  params[n + 1] = make_scalar_param (n);
  params[n + 2] = make_scalar_param (0);
  params[n + 3] = make_scalar_param (world->n_tasks);
  submit_step (world, params, n + 4, true);
}

/* Perhaps with one more task that it comes after: where the end of its scope publishes it, it may
 * have run, and producers are named when it is added. */
static void
publish (struct world *world, uint32_t i)
{
  struct pto_engine *engine = world->machine->engine;
  uint32_t number = world->added[i].number;

  if (number > 0 && n_producers_of[number] < NAMED_MAX && machine_below (&world->random, 2) == 0)
    {
      uint32_t producer = machine_below (&world->random, number);

      if (!world->machine->config.build_first)
        {
          producers_of[number][n_producers_of[number]++] = producer;
          pto_build_add_successor (engine, world->ids[producer], world->ids[number]);
        }
    }
  pto_build_publish (engine, world->ids[number]);
  world->added[i] = world->added[--world->n_added];
}

static void
publish_scope (struct world *world)
{
  for (uint32_t i = world->n_added; i-- > 0;)
    if (world->added[i].depth == world->machine->engine->depth)
      publish (world, i);
}

static void
submit_random (struct world *world)
{
  uint32_t n = 1 + machine_below (&world->random, PARAMS_MAX);
  PTOParam params[PARAMS_MAX + 4];
  struct pair *named[PARAMS_MAX];
  uint8_t *mirrors[PARAMS_MAX];
  TensorData views[PARAMS_MAX];
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t sum = 0;

  for (uint32_t i = 0; i < n; i++)
    {
      struct pair *pair = &world->pairs[machine_below (&world->random, world->n_pairs)];
      PTOParamType type;

      type = !pair->written
                 ? PTO_PARAM_OUTPUT
                 : ((const PTOParamType[]){ PTO_PARAM_INPUT, PTO_PARAM_INPUT, PTO_PARAM_OUTPUT,
                                            PTO_PARAM_INOUT, PTO_PARAM_OUTPUT_EXISTING,
                                            PTO_PARAM_NO_DEP })[machine_below (&world->random, 6)];
      {
        Tensor view = pair->written ? random_view (world, &pair->tensor) : pair->tensor;

        views[i] = data_of (&view);
        if (pair->written && view.storage != NULL && machine_below (&world->random, 4) == 0)
          name_by_address (&view, machine_below (&world->random, 2) == 0);
        params[i] = pto2_make_param (type, &view);
      }
      mirrors[i] = pair->mirror;
      if (type == PTO_PARAM_INPUT || type == PTO_PARAM_INOUT)
        reads |= 1u << i;
      if (type == PTO_PARAM_OUTPUT || type == PTO_PARAM_INOUT || type == PTO_PARAM_OUTPUT_EXISTING)
        writes |= 1u << i;
      named[i] = pair;
    }
  /* Only now: a task does not read what it is to bring into being. */
  for (uint32_t i = 0; i < n; i++)
    named[i]->written = true;
  for (uint32_t i = 0; i < n; i++)
    if ((reads >> i & 1) != 0)
      sum = read_view (&views[i], mirrors[i], sum);
  for (uint32_t i = 0; i < n; i++)
    if ((writes >> i & 1) != 0)
      write_view (&views[i], mirrors[i], sum + i);
  params[n] = make_scalar_param (reads);
  params[n + 1] = make_scalar_param (writes);
  params[n + 2] = make_scalar_param (sum);
  params[n + 3] = make_scalar_param (world->n_tasks);
  submit_step (world, params, n + 4, false);
}

static void
add_tensor (struct world *world)
{
  struct pair *pair = &world->pairs[world->n_pairs];

  if (world->n_pairs == TENSORS_MAX)
    return;
  pair->bytes = 4 * (1 + machine_below (&world->random, 300));
  pair->tensor = machine_tensor (world->machine, pair->bytes);
  pair->mirror = g_malloc0 (pair->bytes);
  pair->written = false;
  pair->depth = world->machine->engine->depth;
  world->n_pairs++;
}

static void
end_scope (struct world *world)
{
  uint32_t depth = world->machine->engine->depth;

  while (world->n_pairs > EXTERNALS && world->pairs[world->n_pairs - 1].depth == depth)
    g_free (world->pairs[--world->n_pairs].mirror);
  publish_scope (world);
  pto_engine_scope_end (world->machine->engine);
}

static enum pto_status
run (struct machine_config *config, uint64_t seed, const struct way *way, const char **message)
{
  struct world world = { .random = seed };
  uint32_t steps = 20 + machine_below (&world.random, STEPS_MAX - 20);
  uint32_t depth_max = 1 + machine_below (&world.random, 7);
  enum pto_status status;
  bool same = true;

  atomic_store (&ran, 0);
  atomic_store (&wrong, 0);
  atomic_store (&digest, 0);
  polite = !config->immediate && !way->direct;
  world.machine = machine_new (config);
  for (uint32_t i = 0; i < EXTERNALS; i++)
    {
      for (uint32_t b = 0; b < EXTERNAL_BYTES; b++)
        world.memory[i][b] = world.mirror[i][b] = (uint8_t) (i * 31 + b);
      world.pairs[i] = (struct pair){ .tensor = machine_external (world.memory[i], EXTERNAL_BYTES),
                                      .mirror = world.mirror[i],
                                      .bytes = EXTERNAL_BYTES,
                                      .written = true };
    }
  /* Two that lie in each other. */
  world.pairs[1].tensor = machine_external (world.memory[0] + 40, 48);
  world.pairs[1].mirror = world.mirror[0] + 40;
  world.n_pairs = EXTERNALS;

  machine_begin (world.machine);
  if (way->direct)
    machine_go_direct (world.machine);
  for (uint32_t step = 0; step < steps; step++)
    switch (way->by_hand ? machine_below (&world.random, 15) : machine_below (&world.random, 10))
      {
      case 0:
        if (world.machine->engine->depth < depth_max)
          pto_engine_scope_begin (world.machine->engine, "random.c", (int32_t) step);
        break;
      case 1:
        if (world.machine->engine->depth > 1)
          end_scope (&world);
        break;
      case 2:
      case 3:
        add_tensor (&world);
        break;
      default:
        submit_random (&world);
        break;
      case 10:
      case 11:
      case 12:
        submit_added (&world);
        break;
      case 13:
      case 14:
        if (world.n_added > 0)
          publish (&world, machine_below (&world.random, world.n_added));
        break;
      }
  while (world.machine->engine->depth > 1 && way->by_hand)
    end_scope (&world);
  publish_scope (&world);
  if (way->direct && !pto_engine_has_failed (world.machine->engine))
    g_assert_true (world.machine->engine->direct);
  status = machine_end (world.machine, message);
  while (world.n_pairs > EXTERNALS)
    g_free (world.pairs[--world.n_pairs].mirror);
  for (uint32_t i = 0; i < EXTERNALS; i++)
    same = same && memcmp (world.memory[i], world.mirror[i], EXTERNAL_BYTES) == 0;
  if (status == PTO_OK)
    {
      g_assert_cmpuint (wrong, ==, 0);
      g_assert_cmpuint (ran, ==, world.n_tasks);
      g_assert_true (same);
      for (uint32_t r = 0; r < PTO_RINGS; r++)
        g_assert_cmpuint (world.machine->engine->tails[r], ==,
                          world.machine->engine->rings[r].head);
    }
  g_assert_false (pto_engine_is_lost (world.machine->engine));
  if (way->result != NULL)
    {
      memcpy (way->result->memory, world.memory, sizeof world.memory);
      way->result->n_tasks = world.n_tasks;
      way->result->digest = digest;
    }
  machine_free (world.machine);
  return status;
}

/* Takes the message's setting; false when that is no more than there was. A window or a heap is
 * right at the first time: *given remembers which were. What pools need is an estimate. */
static bool
take_advice (struct machine_config *config, const char *message, uint32_t *given)
{
  static const char *const knobs[] = { "task-window", "heap", "dep-pool", "map-pool" };

  for (uint32_t i = 0; i < G_N_ELEMENTS (knobs); i++)
    {
      uint64_t value = machine_advice (message, knobs[i]);
      uint64_t before = i == 0   ? config->window
                        : i == 1 ? config->heap
                        : i == 2 ? config->edge_pool
                                 : config->map_pool;

      if (value == 0)
        continue;
      if (i < 2 && (*given & (1u << i)) != 0)
        return false;
      *given |= 1u << i;
      return machine_follow (config, message, knobs[i]) > before;
    }
  return false;
}

static void
random_program (enum pto_backend backend, uint64_t seed, const struct way *way)
{
  uint64_t random = seed * 7919;
  struct machine_config config = { .backend = backend,
                                   .seed = seed,
                                   .schedulers = 1 + machine_below (&random, 3),
                                   .endpoints = 1 + machine_below (&random, 3),
                                   .queues = 1 + machine_below (&random, 2),
                                   .immediate = machine_below (&random, 4) == 0,
                                   .far = seed % 2 == 0,
                                   .window = 4u << machine_below (&random, 5),
                                   .heap = 4096u << machine_below (&random, 6),
                                   .edge_pool = 16u << machine_below (&random, 4),
                                   .map_pool = 16u << machine_below (&random, 4),
                                   .guard_bytes = 64 * machine_below (&random, 2),
                                   .build_first = way->by_hand && machine_below (&random, 3) == 0,
                                   .kernels = kernels };
  const char *message;
  uint32_t given = 0;

  /* Such endpoints are never carried by the submitter. */
  config.immediate = config.immediate && !way->direct;
  g_test_message ("seed %" G_GUINT64_FORMAT, seed);
  for (uint32_t attempt = 0; run (&config, seed, way, &message) != PTO_OK; attempt++)
    {
      g_test_message ("%s", message);
      g_assert_true (take_advice (&config, message, &given));
      g_assert_cmpuint (attempt, <, 12);
    }
}

static void
test_random_programs (gconstpointer backend)
{
  enum pto_backend kind = (enum pto_backend) GPOINTER_TO_INT (backend);
  uint64_t seeds = SCALE (kind == PTO_BACKEND_DET ? 1000 : kind == PTO_BACKEND_PAR ? 200 : 100);

  for (uint64_t seed = 1; seed <= seeds; seed++)
    random_program (kind, seed, &(struct way){ .direct = false });
}

/* Whatever waits for room ends, with the setting that helps where nothing can run any more. */
static void
test_added (gconstpointer backend)
{
  enum pto_backend kind = (enum pto_backend) GPOINTER_TO_INT (backend);
  const char *text = g_getenv ("PTO_TEST_TIMES");
  uint64_t times = text != NULL ? g_ascii_strtoull (text, NULL, 10) : 1;
  uint64_t seeds = times
                   * SCALE (kind == PTO_BACKEND_DET   ? 1000
                            : kind == PTO_BACKEND_PAR ? 200
                                                      : 100);

  alarm ((unsigned) (times * WATCHDOG_S));
  for (uint64_t seed = 1; seed <= seeds; seed++)
    random_program (kind, seed, &(struct way){ .by_hand = true });
}

/* One program, many orders. */
static void
test_many_orders (void)
{
  for (uint64_t seed = 1; seed <= SCALE (500); seed++)
    {
      struct machine_config config = { .backend = PTO_BACKEND_DET,
                                       .seed = seed,
                                       .schedulers = 2,
                                       .endpoints = 3,
                                       .queues = 2,
                                       .window = 1024,
                                       .kernels = kernels };
      const char *message;

      g_assert_cmpint (run (&config, 4711, &(struct way){ .direct = false }, &message), ==, PTO_OK);
    }
}

/* Tasks that are run as they are submitted come to the same, bit for bit, as in any other order. */
static void
test_direct_agrees (void)
{
  for (uint64_t seed = 1; seed <= SCALE (2000); seed++)
    {
      struct result det;
      struct result direct;

      random_program (PTO_BACKEND_DET, seed, &(struct way){ .result = &det });
      random_program (PTO_BACKEND_PAR, seed, &(struct way){ .direct = true, .result = &direct });
      g_assert_cmpuint (direct.n_tasks, ==, det.n_tasks);
      g_assert_cmphex (direct.digest, ==, det.digest);
      g_assert_cmpmem (direct.memory, sizeof direct.memory, det.memory, sizeof det.memory);
    }
}

static void
add_tests (void)
{
  machine_add ("engine-random", "programs", test_random_programs);
  machine_add ("engine-random", "added", test_added);
  if (!SHOWS_NOTHING (PTO_BACKEND_DET))
    g_test_add_func ("/pto/engine-random/many-orders", test_many_orders);
  g_test_add_func ("/pto/engine-random/direct-agrees", test_direct_agrees);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
