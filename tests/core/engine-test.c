/* engine-test.c: what do the tests of the engine share? A machine: an engine, schedulers and small
 * endpoints.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include "../../pto/exec/pto-atomic.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORDER_EXIT UINT32_MAX
#define RECORDS 200000u
#define MINUTE (60 * UINT64_C (1000000000))
#define GATE_DEADLINE_NS UINT64_C (20000000000)

const char *const machine_backend_names[3] = { "par", "det", "threads" };

static const char *const queue_names[PTO_QUEUES_MAX] = { "first", "second", "third", "fourth" };

/* --- kernels --- */

static void
kernel_nothing (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
}

static _Atomic uint32_t *
counter_of (const struct pto_slot *slot, int64_t *args)
{
  return (_Atomic uint32_t *) (uintptr_t) args[slot->payload->n_args - 1];
}

static void
kernel_count (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  atomic_fetch_add (counter_of (slot, args), 1);
}

static void
kernel_gate (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  struct gate *gate = (struct gate *) (uintptr_t) args[slot->payload->n_args - 1];

  atomic_store (&gate->reached, 1);
  while (pto_word_get (&gate->open) == 0)
    pto_park (machine->exec, &gate->open, 0, PTO_NEVER);
}

static void
kernel_fail (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  atomic_fetch_add (counter_of (slot, args), 1);
  *failed = true;
}

static void
kernel_fatal (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  atomic_fetch_add (counter_of (slot, args), 1);
  pto_engine_fail (machine->engine, PTO_STATUS_KERNEL_FAULT, "task %u of ring %u crashed",
                   PTO_TASK_LOCAL (slot->id), PTO_TASK_RING (slot->id));
  *failed = true;
}

static uint8_t *
bytes_of (const TensorData *data)
{
  return (uint8_t *) (uintptr_t) data->buffer.addr + data->start_offset;
}

static void
kernel_fill (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  const TensorData *data = (const TensorData *) (uintptr_t) args[0];

  memset (bytes_of (data), (int) args[slot->payload->n_args - 1], data->shapes[0]);
}

static void
kernel_check (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  const TensorData *data = (const TensorData *) (uintptr_t) args[0];
  const uint8_t *bytes = bytes_of (data);
  struct expectation *expectation
      = (struct expectation *) (uintptr_t) args[slot->payload->n_args - 1];
  bool right = true;

  for (uint64_t i = 0; i < data->shapes[0]; i++)
    right = right && bytes[i] == expectation->byte;
  atomic_fetch_add (right ? &expectation->right : &expectation->wrong, 1);
}

static const machine_kernel common_kernels[KERNEL_OWN]
    = { kernel_nothing, kernel_count, kernel_gate, kernel_fail,
        kernel_fatal,   kernel_fill,  kernel_check };

static const char *
kernel_name (void *data, uint32_t kernel)
{
  static const char *const names[]
      = { "nothing", "count", "gate", "fail", "fatal", "fill", "check", "own" };

  return names[MIN (kernel, KERNEL_OWN)];
}

/* --- endpoints --- */

static struct machine_endpoint *
endpoint_of (struct pto_endpoint *endpoint)
{
  return (struct machine_endpoint *) endpoint;
}

static _Thread_local const struct pto_endpoint *here;

/* Not inlined, these two: a kernel may continue on another thread, so run() must not keep the
 * variable's address. */
__attribute__ ((noinline)) const struct pto_endpoint *
machine_here (void)
{
  return here;
}

static __attribute__ ((noinline)) void
set_here (const struct pto_endpoint *endpoint)
{
  here = endpoint;
}

static void
run (struct machine_endpoint *endpoint)
{
  struct pto_slot *slot = endpoint->slot;
  uint32_t id = pto_slot_kernel (slot, endpoint->endpoint.member);
  machine_kernel kernel
      = id < KERNEL_OWN ? common_kernels[id] : endpoint->machine->config.kernels[id - KERNEL_OWN];

  uint32_t n = pto_slot_has_parts (slot) ? endpoint->endpoint.n_blocks : 1;

  endpoint->failed = endpoint->gone;
  for (uint32_t b = 0; b < n && !endpoint->failed; b++)
    {
      set_here (&endpoint->endpoint);
      kernel (endpoint->machine, slot, slot->payload->args, &endpoint->failed);
    }
}

static void
dispatch_immediate (struct pto_endpoint *base, struct pto_slot *slot)
{
  struct machine_endpoint *endpoint = endpoint_of (base);

  endpoint->slot = slot;
  run (endpoint);
  pto_scheduler_signal (base->scheduler, base->index);
}

static bool
poll_immediate (struct pto_endpoint *base, struct pto_outcome *outcome)
{
  outcome->failed = endpoint_of (base)->failed;
  return true;
}

static void
close_immediate (struct pto_endpoint *base)
{
}

static const struct pto_endpoint_ops immediate_ops
    = { .dispatch = dispatch_immediate, .poll = poll_immediate, .close = close_immediate };

static void
dispatch_actor (struct pto_endpoint *base, struct pto_slot *slot)
{
  struct machine_endpoint *endpoint = endpoint_of (base);

  endpoint->slot = slot;
  if (base->attended)
    pto_word_run (endpoint->machine->exec, &endpoint->order, pto_word_get (&endpoint->order) + 1);
  else
    pto_word_set (endpoint->machine->exec, &endpoint->order, pto_word_get (&endpoint->order) + 1);
}

static bool
poll_actor (struct pto_endpoint *base, struct pto_outcome *outcome)
{
  struct machine_endpoint *endpoint = endpoint_of (base);

  if (atomic_load_explicit (&endpoint->done, memory_order_acquire)
      != pto_word_get (&endpoint->order))
    return false;
  outcome->failed = endpoint->failed;
  return true;
}

static void
close_actor (struct pto_endpoint *base)
{
  struct machine_endpoint *endpoint = endpoint_of (base);

  pto_word_set (endpoint->machine->exec, &endpoint->order, ORDER_EXIT);
}

static void
refuse_actor (struct pto_endpoint *base, struct pto_slot *slot)
{
  struct machine_endpoint *endpoint = endpoint_of (base);

  g_assert_true (endpoint->gone);
  endpoint->refused++;
}

static const struct pto_endpoint_ops actor_ops = { .dispatch = dispatch_actor,
                                                   .poll = poll_actor,
                                                   .close = close_actor,
                                                   .refuse = refuse_actor };

static bool
serve (void *data, uint32_t order)
{
  struct machine_endpoint *endpoint = data;

  if (order == ORDER_EXIT)
    return false;
  run (endpoint);
  atomic_store_explicit (&endpoint->done, order, memory_order_release);
  if (!endpoint->endpoint.attended)
    pto_scheduler_signal (endpoint->endpoint.scheduler, endpoint->endpoint.index);
  return true;
}

static void
endpoint_main (void *data)
{
  struct machine_endpoint *endpoint = data;

  pto_word_serve (endpoint->machine->exec, &endpoint->order, serve, endpoint);
}

/* --- the machine --- */

static void *
allocate_lines (size_t size)
{
  void *memory = NULL;

  g_assert_cmpint (posix_memalign (&memory, 64, (size + 63) / 64 * 64), ==, 0);
  memset (memory, 0, size);
  return memory;
}

static void
spawn (struct machine *machine, uint32_t domain, void (*fn) (void *), void *arg)
{
  char error[256] = "";
  int status = pto_exec_spawn (machine->exec, domain, "actor", fn, arg, error, sizeof error);

  g_assert_cmpstr (error, ==, "");
  g_assert_cmpint (status, ==, 0);
}

static uint32_t
or_default (uint32_t value, uint32_t fallback)
{
  return value != 0 ? value : fallback;
}

struct machine *
machine_new (const struct machine_config *given)
{
  struct machine *machine = g_new0 (struct machine, 1);
  struct machine_config *config = &machine->config;
  struct pto_report report = { 0 };
  struct pto_ring_config ring = { 0 };
  bool attends = given->attends || (given->backend == PTO_BACKEND_PAR && !given->immediate);
  char error[256] = "";

  *config = *given;
  config->schedulers = or_default (config->schedulers, 1);
  config->endpoints = or_default (config->endpoints, 2);
  config->queues = or_default (config->queues, 1);
  config->window = or_default (config->window, 64);
  config->heap = config->heap != 0 ? config->heap : 1u << 20;
  config->edge_pool = or_default (config->edge_pool, 1024);
  config->map_pool = or_default (config->map_pool, 1024);
  config->hazards = or_default (config->hazards, PTO_HAZARD_RAW | PTO_HAZARD_WAW | PTO_HAZARD_WAR);
  config->timeout_ns = config->timeout_ns != 0 ? config->timeout_ns : MINUTE;
  config->ring_patience_ns
      = config->ring_patience_ns != 0 ? config->ring_patience_ns : 8 * config->timeout_ns;
  machine->n_endpoints = config->endpoints * config->queues;
  g_assert_cmpuint (config->schedulers, <=, MACHINE_SCHEDULERS_MAX);
  g_assert_cmpuint (machine->n_endpoints, <=, MACHINE_ENDPOINTS_MAX);

  machine->exec = pto_exec_new (&(struct pto_exec_config){ .backend = config->backend,
                                                           .domains = config->schedulers,
                                                           .carriers = config->carriers,
                                                           .seed = config->seed,
                                                           .choose = config->choose,
                                                           .choose_data = config->choose_data },
                                error, sizeof error);
  g_assert_cmpstr (error, ==, "");
  ring.window = config->window;
  ring.edge_pool = config->edge_pool;
  ring.heap = config->heap;
  machine->engine = allocate_lines (sizeof *machine->engine);
  pto_engine_init (machine->engine, machine->exec,
                   &(struct pto_engine_config){ .rings = { ring, ring, ring, ring },
                                                .map_pool = config->map_pool,
                                                .hazards = config->hazards,
                                                .n_queues = config->queues,
                                                .n_shards = or_default (config->shards, 2),
                                                .n_schedulers = config->schedulers,
                                                .guard_bytes = config->guard_bytes,
                                                .timeout_ns = config->timeout_ns,
                                                .build_first = config->build_first,
                                                .ring_patience_ns = config->ring_patience_ns,
                                                .end_patience_ns = 8 * config->timeout_ns,
                                                .queue_names = queue_names,
                                                .reduction = config->reduction,
                                                .kernel_name = kernel_name,
                                                .submit_cost = config->submit_cost,
                                                .carry = config->backend == PTO_BACKEND_PAR
                                                         && !config->immediate,
                                                .n_carriers = pto_exec_carriers (machine->exec) },
                   &report);
  g_assert_cmpstr (report.message, ==, "");
  for (uint32_t s = 0; s < config->schedulers; s++)
    {
      for (uint32_t e = 0; e < machine->n_endpoints; e++)
        {
          struct machine_endpoint *endpoint = allocate_lines (sizeof *endpoint);

          endpoint->endpoint.ops = config->immediate ? &immediate_ops : &actor_ops;
          endpoint->endpoint.queue = e / config->endpoints;
          endpoint->endpoint.number = s * machine->n_endpoints + e;
          endpoint->endpoint.cohort
              = config->cohorts > 0 ? s * config->cohorts + e % config->cohorts : PTO_COHORT_NONE;
          endpoint->machine = machine;
          pto_word_init (&endpoint->order, 0, true);
          machine->endpoints[s][e] = endpoint;
          machine->pointers[s][e] = &endpoint->endpoint;
        }
      machine->schedulers[s] = allocate_lines (sizeof **machine->schedulers);
      g_assert_true (pto_scheduler_init (
          machine->schedulers[s], machine->engine,
          &(struct pto_scheduler_config){ .index = s,
                                          .n_endpoints = machine->n_endpoints,
                                          .endpoints = machine->pointers[s],
                                          .concurrent = config->backend == PTO_BACKEND_THREADS,
                                          .fanout_cost = config->fanout_cost,
                                          .attends = attends,
                                          .far = config->far && !attends }));
    }
  pto_exec_enter (machine->exec);
  for (uint32_t s = 0; s < config->schedulers; s++)
    {
      if (!config->immediate)
        for (uint32_t e = 0; e < machine->n_endpoints; e++)
          spawn (machine, s, endpoint_main, machine->endpoints[s][e]);
      spawn (machine, s, pto_scheduler_main, machine->schedulers[s]);
    }
  pto_exec_leave (machine->exec);
  return machine;
}

struct machine *
machine_new_for (gconstpointer backend)
{
  return machine_new (&(struct machine_config){
      .backend = BACKEND (backend), .seed = 1, .schedulers = 2, .endpoints = 4 });
}

void
machine_free (struct machine *machine)
{
  g_assert_false (machine->inside);
  pto_exec_enter (machine->exec);
  for (uint32_t s = 0; s < machine->config.schedulers; s++)
    pto_scheduler_stop (machine->schedulers[s]);
  pto_exec_join (machine->exec);
  pto_exec_leave (machine->exec);
  pto_exec_free (machine->exec);
  pto_engine_destroy (machine->engine);
  pto_trace_free (machine->trace);
  for (uint32_t s = 0; s < machine->config.schedulers; s++)
    {
      pto_scheduler_destroy (machine->schedulers[s]);
      free (machine->schedulers[s]);
      for (uint32_t e = 0; e < machine->n_endpoints; e++)
        free (machine->endpoints[s][e]);
    }
  free (machine->engine);
  g_free (machine);
}

void
machine_begin (struct machine *machine)
{
  if (machine->trace != NULL)
    pto_trace_clear (machine->trace);
  pto_exec_enter (machine->exec);
  machine->inside = true;
  pto_engine_begin (machine->engine);
}

enum pto_status
machine_end (struct machine *machine, const char **message)
{
  static struct pto_report report;
  enum pto_status status;

  report = (struct pto_report){ 0 };
  status = pto_engine_end (machine->engine, &report);
  pto_exec_leave (machine->exec);
  machine->inside = false;
  g_assert_cmpint (report.status, ==, status);
  g_assert_cmpuint (machine->engine->depth, ==, 0);
  g_assert_cmpuint (machine->engine->n_buffers, ==, 0);
  if (message != NULL)
    *message = report.message;
  return status;
}

void
machine_end_ok (struct machine *machine)
{
  const char *message;
  enum pto_status status = machine_end (machine, &message);
  struct pto_engine *engine = machine->engine;

  g_assert_cmpstr (message, ==, "");
  g_assert_cmpint (status, ==, PTO_OK);
  g_assert_false (pto_engine_is_lost (engine));
  g_assert_cmpuint (pto_engine_completed (engine), ==, engine->submitted);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      g_assert_cmpuint (engine->tails[r], ==, engine->rings[r].head);
      g_assert_cmpuint (engine->rings[r].edge_tail, ==, engine->rings[r].edge_head);
      g_assert_cmpuint (engine->rings[r].heap.used, ==, 0);
      g_assert_cmpuint (engine->rings[r].storage.used, ==, 0);
    }
}

void
machine_expect_error (struct machine *machine, enum pto_status expected, const char *text)
{
  const char *message;
  enum pto_status status = machine_end (machine, &message);

  g_assert_cmpint (status, ==, expected);
  machine_assert_names (message, text);
}

void
machine_wait_completed (struct machine *machine, uint64_t n)
{
  while (pto_engine_completed (machine->engine) < n)
    pto_exec_help (machine->exec);
}

/* Waits until every scheduler sleeps: none of them is in the hands of another thread then. */
static void
wait_asleep (struct machine *machine)
{
  struct pto_engine *engine = machine->engine;
  uint64_t all = (UINT64_C (1) << engine->config.n_schedulers) - 1;

  while (pto_engine_completed (engine) < engine->submitted || atomic_load (&engine->lingering) > 0
         || (atomic_load (&engine->hungry[0]) & all) != all)
    if (!pto_exec_help (machine->exec))
      sched_yield ();
}

void
machine_go_direct (struct machine *machine)
{
  struct pto_engine *engine = machine->engine;

  engine->direct_limit = UINT64_MAX;
  while (!engine->direct)
    {
      wait_asleep (machine);
      /* As a run that begins so; what it submits first is run by others if one is still falling
       * asleep. */
      engine->resume = true;
      engine->unswept = UINT32_MAX - 1;
      pto_engine_scope_begin (engine, NULL, 0);
      SUBMIT (machine, KERNEL_NOTHING, make_scalar_param (0));
      pto_engine_scope_end (engine);
      g_assert_false (pto_engine_has_failed (engine));
    }
  g_assert_cmpuint (pto_engine_completed (engine), ==, engine->submitted);
}

void
machine_record (struct machine *machine)
{
  machine->trace = pto_trace_new (1, RECORDS);
  g_assert_nonnull (machine->trace);
  machine->trace->buffers[0].level = PTO_TRACE_LEVEL_FULL;
  machine->engine->trace = &machine->trace->buffers[0];
  machine->engine->observed = true;
  machine->engine->files = &machine->trace->files;
}

uint32_t
machine_edge (const struct machine *machine, pto_task_id consumer, pto_task_id producer)
{
  const struct pto_trace_buffer *buffer = &machine->trace->buffers[0];

  for (uint64_t i = 0; i < buffer->count; i++)
    if (buffer->records[i].kind == PTO_TRACE_DEP && buffer->records[i].task == consumer
        && buffer->records[i].extra == producer)
      return buffer->records[i].detail;
  return 0;
}

uint32_t
machine_n_edges (const struct machine *machine)
{
  const struct pto_trace_buffer *buffer = &machine->trace->buffers[0];
  uint32_t n = 0;

  g_assert_cmpuint (buffer->dropped, ==, 0);
  for (uint64_t i = 0; i < buffer->count; i++)
    n += buffer->records[i].kind == PTO_TRACE_DEP;
  return n;
}

/* --- gates --- */

void
gate_init (struct gate *gate)
{
  pto_word_init (&gate->open, 0, false);
  atomic_store (&gate->reached, 0);
}

void
gate_open (struct machine *machine, struct gate *gate)
{
  pto_word_set (machine->exec, &gate->open, 1);
}

void
gate_wait_reached (struct machine *machine, struct gate *gate)
{
  uint64_t deadline = pto_wall_clock () + GATE_DEADLINE_NS;

  while (atomic_load (&gate->reached) == 0)
    {
      bool others = pto_exec_help (machine->exec);

      if (!others && machine->config.backend == PTO_BACKEND_DET
          && atomic_load (&gate->reached) == 0)
        g_error ("the task does not start: nobody can run any more");
      if (pto_wall_clock () > deadline)
        g_error ("the task does not start");
    }
}

/* --- tensors and submits --- */

Tensor
machine_external (void *memory, uint64_t n)
{
  return make_tensor_external (memory, (uint64_t[]){ n }, 1, PTO_DTYPE_UINT8);
}

Tensor
machine_tensor (struct machine *machine, uint64_t n)
{
  Tensor tensor = machine_external (NULL, n);

  tensor.storage = pto_engine_new_buffer (machine->engine, n, &tensor.generation);
  g_assert_nonnull (tensor.storage);
  return tensor;
}

Tensor
machine_part (const Tensor *tensor, uint64_t begin, uint64_t n)
{
  Tensor part = pto2_tensor_view (tensor, (uint64_t[]){ n }, (uint64_t[]){ begin });

  g_assert_cmpuint (part.status, ==, PTO2_TENSOR_OK);
  return part;
}

void *
machine_address (const Tensor *tensor)
{
  return (void *) (uintptr_t) (tensor->storage != NULL ? tensor->storage->addr
                                                       : tensor->buffer.addr);
}

pto_task_id
machine_submit (struct machine *machine, uint32_t kernel, uint32_t queue, PTOParam *params,
                uint32_t n_params)
{
  return pto_engine_submit (machine->engine, &(struct pto_submit){ .kernel = kernel,
                                                                   .queue = queue,
                                                                   .params = params,
                                                                   .n_params = n_params });
}

pto_task_id
machine_submit_after (struct machine *machine, const pto_task_id *producers, uint32_t n_producers,
                      _Atomic uint32_t *ran)
{
  PTOParam param = scalar (ran);

  return pto_engine_submit (machine->engine, &(struct pto_submit){ .kernel = KERNEL_COUNT,
                                                                   .params = &param,
                                                                   .n_params = 1,
                                                                   .producers = producers,
                                                                   .n_producers = n_producers });
}

/* --- messages --- */

uint64_t
machine_advice (const char *message, const char *knob)
{
  char *text = g_strdup_printf ("et %s to ", knob);
  const char *found = strstr (message, text);
  uint64_t value = found != NULL ? g_ascii_strtoull (found + strlen (text), NULL, 10) : 0;

  g_free (text);
  return value;
}

uint64_t
machine_follow (struct machine_config *config, const char *message, const char *knob)
{
  uint64_t value = machine_advice (message, knob);

  if (strcmp (knob, "task-window") == 0)
    config->window = (uint32_t) value;
  else if (strcmp (knob, "heap") == 0)
    config->heap = value;
  else if (strcmp (knob, "dep-pool") == 0)
    config->edge_pool = (uint32_t) value;
  else if (strcmp (knob, "map-pool") == 0)
    config->map_pool = (uint32_t) value;
  else
    g_assert_not_reached ();
  return value;
}

void
machine_assert_names (const char *message, const char *text)
{
  if (strstr (message, text) == NULL)
    g_error ("\"%s\" does not say \"%s\"", message, text);
}

/* --- programs --- */

void
machine_add (const char *file, const char *behaviour, void (*test) (gconstpointer backend))
{
  for (gsize i = 0; i < G_N_ELEMENTS (machine_backend_names); i++)
    if (!SHOWS_NOTHING (i))
      {
        char *path = g_strdup_printf ("/pto/%s/%s/%s", file, machine_backend_names[i], behaviour);

        g_test_add_data_func (path, GSIZE_TO_POINTER (i), test);
        g_free (path);
      }
}

uint64_t
machine_random (uint64_t *state)
{
  uint64_t z = (*state += UINT64_C (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

uint32_t
machine_below (uint64_t *state, uint32_t n)
{
  return (uint32_t) ((machine_random (state) >> 32) * n >> 32);
}

int
machine_main (int argc, char **argv, void (*add_tests) (void))
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  add_tests ();
  return g_test_run ();
}
