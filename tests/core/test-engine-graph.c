/* test-engine-graph.c: does a graph that is launched do what its orchestration did?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-test.h"

#include "../../pto/core/graph-capture.h"
#include "../../pto/core/graph-launch.h"
#include "../../pto/core/graph-plan-pack.h"

#include <string.h>
#include <sys/resource.h>

#define BLOCKS 6u
#define BLOCK 32u

/* The last tensor, byte by byte: mixed with what the others hold. */
static void
kernel_mix (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  uint32_t n = slot->payload->n_args;
  const TensorData *last = (const TensorData *) (uintptr_t) args[n - 2];
  uint8_t *to = (uint8_t *) (uintptr_t) last->buffer.addr + last->start_offset;

  for (uint64_t b = 0; b < last->shapes[0]; b++)
    {
      /* An output begins with whatever was there; then the first argument is another tensor. */
      uint32_t sum = args[n - 1] < 0 ? to[b] : 0;

      for (uint32_t a = 0; a + 2 < n; a++)
        {
          const TensorData *data = (const TensorData *) (uintptr_t) args[a];
          const uint8_t *from = (const uint8_t *) (uintptr_t) data->buffer.addr;

          sum = 31 * sum + from[data->start_offset + b % data->shapes[0]];
        }
      to[b] = (uint8_t) (sum + (uint32_t) args[n - 1]);
    }
}

static const machine_kernel kernels[] = { kernel_mix };

static struct machine *
new_machine_with_edges (gconstpointer backend, uint32_t window, uint32_t edge_pool)
{
  return machine_new (&(struct machine_config){ .backend = BACKEND (backend),
                                                .seed = 1,
                                                .schedulers = 2,
                                                .endpoints = 4,
                                                .window = window,
                                                .heap = 256 * 1024,
                                                .edge_pool = edge_pool,
                                                .map_pool = 4096,
                                                .guard_bytes = 64,
                                                .kernels = kernels });
}

static struct machine *
new_machine (gconstpointer backend, uint32_t window)
{
  return new_machine_with_edges (backend, window, 16 * window);
}

/* --- capturing --- */

static char refusal[600];

static void
refuse (void *machine, const char *why)
{
  g_strlcpy (refusal, why, sizeof refusal);
  pto_engine_fail (((struct machine *) machine)->engine, PTO_STATUS_INVALID_ARGS, "%s", why);
}

static void
add_tensor_param (struct pto_plan *graph, const Tensor *tensor)
{
  pto_plan_add_param (graph, &(struct pto_plan_param){ .tensor = *tensor,
                                                       .first = tensor->buffer.addr,
                                                       .extent = pto_tensor_extent (tensor) });
}

/* From here to complete() submits are written down; its arguments are blocks of memory. */
static void
begin_capture (struct machine *machine, struct pto_capture *capture, uint8_t *memory, uint32_t n)
{
  *capture = (struct pto_capture){ .graph = pto_plan_new (), .refuse = refuse, .data = machine };
  for (uint32_t i = 0; i < n; i++)
    {
      Tensor tensor = machine_external (memory + i * BLOCK, BLOCK);

      add_tensor_param (capture->graph, &tensor);
    }
  refusal[0] = '\0';
  machine_begin (machine);
  g_assert_true (pto_capture_begin (machine->engine, capture));
}

static struct pto_plan *
complete (struct machine *machine, struct pto_capture *capture)
{
  struct pto_report report = { 0 };

  machine_end_ok (machine);
  pto_plan_complete (capture->graph, &report);
  g_assert_cmpstr (report.message, ==, "");
  return capture->graph;
}

static bool
launch (struct machine *machine, const struct pto_plan *graph, uint8_t *memory)
{
  uint64_t words[BLOCKS] = { 0 };
  Tensor tensors[BLOCKS];
  struct pto_plan_given given[BLOCKS];
  struct pto_report report = { 0 };

  for (uint32_t i = 0; i < graph->n_params; i++)
    {
      words[i] = (uint64_t) (uintptr_t) memory + i * BLOCK;
      tensors[i] = machine_external (memory + i * BLOCK, BLOCK);
      given[i] = (struct pto_plan_given){ .word = words[i], .tensor = &tensors[i] };
    }
  pto_plan_check (graph, given, graph->n_params, &report);
  g_assert_cmpstr (report.message, ==, "");
  return pto_engine_launch (machine->engine,
                            &(struct pto_launch){ .graph = graph, .words = words });
}

/* --- any program --- */

/* Blocks of the caller and of the runtime, whole and in parts, in scopes. */
static void
submit_program (struct machine *machine, uint8_t *memory, uint64_t seed, uint32_t n)
{
  Tensor made[8];
  uint32_t n_made = 0;
  uint32_t first_made[4] = { 0 };
  uint32_t depth = 0;
  Tensor blocks[BLOCKS];

  for (uint32_t b = 0; b < BLOCKS; b++)
    blocks[b] = machine_external (memory + b * BLOCK, BLOCK);
  for (uint32_t i = 0; i < n; i++)
    {
      PTOParam params[6];
      uint32_t n_params = machine_below (&seed, 4);
      uint32_t kind = machine_below (&seed, 8);
      uint32_t p;

      if (kind == 0 && depth < 3)
        {
          pto_engine_scope_begin (machine->engine, NULL, 0);
          first_made[++depth] = n_made;
        }
      else if (kind == 1 && depth > 0)
        {
          pto_engine_scope_end (machine->engine);
          n_made = first_made[depth--];
        }
      for (p = 0; p < n_params; p++)
        {
          uint32_t which = machine_below (&seed, BLOCKS + n_made);
          Tensor tensor = which < BLOCKS ? blocks[which] : made[which - BLOCKS];

          if (machine_below (&seed, 2) == 0)
            tensor = machine_part (&tensor, machine_below (&seed, BLOCK / 2), BLOCK / 2);
          params[p] = input (&tensor);
        }
      if (n_made < G_N_ELEMENTS (made) && depth > 0 && machine_below (&seed, 2) == 0)
        {
          made[n_made] = machine_tensor (machine, BLOCK);
          params[p++] = output (&made[n_made++]);
          params[p++] = make_signed_param ((int64_t) i);
        }
      else
        {
          uint32_t which = machine_below (&seed, BLOCKS + n_made);
          Tensor tensor = which < BLOCKS ? blocks[which] : made[which - BLOCKS];

          if (machine_below (&seed, 2) == 0)
            tensor = machine_part (&tensor, machine_below (&seed, BLOCK / 2), BLOCK / 2);
          params[p++] = inout (&tensor);
          params[p++] = make_signed_param (-(int64_t) i - 1);
        }
      machine_submit (machine, KERNEL_OWN, 0, params, p);
      if (pto_engine_has_failed (machine->engine))
        g_error ("%s", machine->engine->report.message);
      /* Tasks of a scope that stays open would fill the ring. */
      if (depth == 0)
        {
          pto_engine_scope_begin (machine->engine, NULL, 0);
          first_made[++depth] = n_made;
        }
      else if (i % 8 == 7)
        while (depth > 0)
          {
            pto_engine_scope_end (machine->engine);
            n_made = first_made[depth--];
          }
    }
  while (depth-- > 0)
    pto_engine_scope_end (machine->engine);
}

static void
fill_blocks (uint8_t *memory, uint32_t seed)
{
  for (uint32_t i = 0; i < BLOCKS * BLOCK; i++)
    memory[i] = (uint8_t) (seed * 37 + i * 11);
}

/* So few that a launch waits for them. */
#define FEW_EDGES 32u

static void
test_same_numbers (gconstpointer backend)
{
  struct machine *machine = new_machine (backend, 256);
  struct machine *narrow = new_machine (backend, 32);
  struct machine *poor = new_machine_with_edges (backend, 256, FEW_EDGES);
  uint32_t n_poor = 0;
  uint8_t live[BLOCKS * BLOCK];
  uint8_t unused[BLOCKS * BLOCK];
  uint8_t again[BLOCKS * BLOCK];

  for (uint64_t seed = 1; seed <= SCALE (200) + 5; seed++)
    {
      struct pto_capture capture;
      struct pto_plan *graph;
      uint32_t n = 20 + (uint32_t) seed % 150;

      memset (unused, 77, sizeof unused);
      begin_capture (machine, &capture, unused, BLOCKS);
      submit_program (machine, unused, seed, n);
      graph = complete (machine, &capture);
      g_assert_cmpuint (graph->n_tasks, ==, n);
      for (uint32_t i = 0; i < sizeof unused; i++)
        g_assert_cmpuint (unused[i], ==, 77); /* nothing ran */
      for (uint32_t run = 0; run < 3; run++)
        {
          struct machine *on = run == 1 ? narrow : machine;

          if (run == 2 && graph->max_deps <= FEW_EDGES)
            {
              on = poor;
              n_poor++;
            }
          fill_blocks (live, run);
          fill_blocks (again, run);
          machine_begin (machine);
          submit_program (machine, live, seed, n);
          machine_end_ok (machine);
          machine_begin (on);
          g_assert_true (launch (on, graph, again));
          machine_end_ok (on);
          g_assert_cmpuint (on->engine->submitted, ==, n);
          g_assert_cmpmem (again, sizeof again, live, sizeof live);
        }
      pto_plan_free (graph);
    }
  g_assert_cmpuint (n_poor, >, 0);
  machine_free (machine);
  machine_free (narrow);
  machine_free (poor);
}

/* --- what goes to another process --- */

static uint8_t *
pack (const struct pto_plan *graph, uint64_t *size)
{
  uint8_t *bytes;

  *size = pto_plan_packed_size (graph);
  bytes = (uint8_t *) g_malloc0 (*size);
  pto_plan_pack (graph, bytes);
  return bytes;
}

/* A copy is the same to the last byte, and so is what it does. */
static void
test_packed (gconstpointer backend)
{
  struct machine *machine = new_machine (backend, 256);
  uint8_t live[BLOCKS * BLOCK];
  uint8_t again[BLOCKS * BLOCK];

  for (uint64_t seed = 1; seed <= SCALE (40) + 5; seed++)
    {
      struct pto_plan *copy = pto_plan_new ();
      struct pto_report report = { .status = PTO_OK };
      struct pto_capture capture;
      struct pto_plan *graph;
      g_autofree uint8_t *packed = NULL;
      g_autofree uint8_t *repacked = NULL;
      uint64_t size;
      uint64_t resize;

      begin_capture (machine, &capture, live, BLOCKS);
      submit_program (machine, live, seed, 100);
      graph = complete (machine, &capture);
      packed = pack (graph, &size);
      pto_plan_unpack (copy, packed, size, &report);
      g_assert_cmpstr (report.message, ==, "");
      repacked = pack (copy, &resize);
      g_assert_cmpmem (packed, size, repacked, resize);
      g_assert_cmpuint (copy->n_deps, ==, graph->n_deps);
      for (uint32_t d = 0; d < graph->n_deps; d++)
        {
          g_assert_cmpuint (copy->deps[d].task, ==, graph->deps[d].task);
          g_assert_cmpuint (copy->deps[d].kinds, ==, graph->deps[d].kinds);
        }
      fill_blocks (live, 1);
      fill_blocks (again, 1);
      machine_begin (machine);
      g_assert_true (launch (machine, graph, live));
      machine_end_ok (machine);
      machine_begin (machine);
      g_assert_true (launch (machine, copy, again));
      machine_end_ok (machine);
      g_assert_cmpmem (again, sizeof again, live, sizeof live);
      pto_plan_free (graph);
      pto_plan_free (copy);
    }
  machine_free (machine);
}

/* Whatever the bytes are, it is a graph or none, and each of its numbers names something. */
static void
test_packed_damage (void)
{
  struct machine *machine = new_machine (GINT_TO_POINTER (PTO_BACKEND_DET), 256);
  uint8_t memory[BLOCKS * BLOCK];
  struct pto_capture capture;
  struct pto_plan *graph;
  g_autofree uint8_t *packed = NULL;
  uint64_t size;
  uint64_t random = 5;
  uint32_t n_whole = 0;

  begin_capture (machine, &capture, memory, BLOCKS);
  submit_program (machine, memory, 3, 60);
  graph = complete (machine, &capture);
  packed = pack (graph, &size);
  for (uint32_t i = 0; i < SCALE (20000) + 100; i++)
    {
      struct pto_plan *copy = pto_plan_new ();
      struct pto_report report = { .status = PTO_OK };
      uint64_t at = machine_below (&random, (uint32_t) size);
      uint8_t was = packed[at];
      /* Cut off, or one bit of it is another one; an exact block, for who reads behind it. */
      uint64_t left = i % 4 == 0 ? at : size;
      g_autofree uint8_t *bytes = NULL;

      packed[at] ^= (uint8_t) (1u << machine_below (&random, 8));
      bytes = (uint8_t *) g_memdup2 (packed, left);
      packed[at] = was;
      if (pto_plan_unpack (copy, bytes, left, &report) == PTO_OK)
        {
          g_assert_true (copy->complete);
          g_assert_cmpuint (left, ==, size);
          n_whole++;
        }
      else
        g_assert_cmpstr (report.message, !=, "");
      pto_plan_free (copy);
    }
  /* Most bytes are values, any of which will do. */
  g_assert_cmpuint (n_whole, >, 0);
  pto_plan_free (graph);
  machine_free (machine);
}

/* What single bits do not say. Of each task the first argument is a tensor. */
static void
lie (struct pto_plan *graph, uint32_t which)
{
  struct pto_plan_arg *arg = &graph->args[graph->tasks[1].first_arg];

  switch (which)
    {
    case 0: /* two tasks have one argument */
      graph->tasks[1].first_arg = graph->tasks[0].first_arg;
      break;
    case 1: /* a number is memory that is looked behind */
      *arg = (struct pto_plan_arg){ .index = 1u << 28, .what = PTO_PLAN_FENCED | PTO_PLAN_NUMBER };
      graph->tasks[1].n_fenced = 1;
      break;
    case 2: /* as a hold that is neither true nor false: lie_in_bytes() */
      graph->holds[0].held = false;
      break;
    case 3: /* a cohort is held once and again */
      graph->holds[1].held = true;
      break;
    case 4: /* a task is for a cohort that nobody holds */
      graph->holds[0].task = graph->n_tasks;
      graph->holds[1].task = graph->n_tasks;
      break;
    case 5: /* the order of tasks is not that in which cohorts are held */
      graph->deps[graph->tasks[1].first_dep].task = PTO_TASK_ID (0, 2);
      break;
    case 6: /* a tensor that several have, before one of them has it */
      arg->what |= PTO_PLAN_AGAIN;
      arg->start = 1u << 20;
      break;
    case 7: /* a task is submitted in a file that there is none of */
      graph->places[1].name = graph->n_names;
      break;
    case 8: /* the name of the last file goes on behind all of them */
      graph->names[graph->n_names - 1] = 'x';
      break;
    case 9: /* a tensor has the tag of a number */
      graph->types[graph->tasks[1].first_arg] = PTO_PARAM_SCALAR;
      break;
    case 10: /* an argument has a tag that there is not */
      graph->types[graph->tasks[1].first_arg] = PTO_PARAM_REDUCTION + 1;
      break;
    }
}

/* Whether the first hold is held: another byte than 0 and 1. */
static void
lie_in_bytes (struct pto_plan *graph, uint8_t *packed, uint64_t size)
{
  g_autofree uint8_t *other = NULL;
  uint64_t at = 0;

  graph->holds[0].held = true;
  other = pack (graph, &size);
  while (at < size && packed[at] == other[at])
    at++;
  g_assert_cmpuint (at, <, size);
  packed[at] = 2;
}

static void
test_packed_lies (void)
{
  uint8_t memory[BLOCKS * BLOCK];
  Tensor tensor = machine_external (memory, BLOCK);

  /* The last one is none. */
  for (uint32_t which = 0; which <= 11; which++)
    {
      struct pto_plan *copy = pto_plan_new ();
      struct pto_report report = { .status = PTO_OK };
      struct pto_need need = { .kernel = KERNEL_OWN };
      struct pto_wish wish = { .n_members = 1, .members = &need, .n_at_once = 1, .cohort = 0 };
      struct pto_plan *graph = pto_plan_new ();
      g_autofree uint8_t *packed = NULL;
      uint64_t size;

      graph->captured = true;
      for (uint32_t i = 0; i < BLOCKS; i++)
        {
          Tensor block = machine_external (memory + i * BLOCK, BLOCK);

          add_tensor_param (graph, &block);
        }
      for (uint32_t i = 0; i < 3; i++)
        {
          if (i == 1)
            pto_plan_add_hold (graph, 0, true);
          pto_plan_add_task (
              graph, &(struct pto_submit){ .kernel = KERNEL_OWN, .wish = i == 1 ? &wish : NULL },
              0);
          pto_plan_set_place (graph, "graph.c", i + 1);
          pto_plan_add_tensor (graph, 0, 0, &tensor, true, true);
          if (i > 0)
            pto_plan_add_edge (graph, i - 1, i, PTO_HAZARD_RAW | PTO_HAZARD_WAW);
        }
      pto_plan_add_hold (graph, 0, false);
      pto_plan_complete (graph, &report);
      g_assert_cmpstr (report.message, ==, "");
      lie (graph, which);
      packed = pack (graph, &size);
      if (which == 2)
        lie_in_bytes (graph, packed, size);
      g_assert_cmpint (pto_plan_unpack (copy, packed, size, &report), ==,
                       which < 11 ? PTO_STATUS_TAMPERED : PTO_OK);
      pto_plan_free (graph);
      pto_plan_free (copy);
    }
}

/* --- what is recorded of it --- */

static void
test_edges (gconstpointer backend)
{
  struct machine *machine = new_machine (backend, 64);
  uint8_t memory[3 * BLOCK] = { 0 };
  struct pto_capture capture;
  struct pto_plan *graph;
  Tensor a = machine_external (memory, BLOCK);
  Tensor b = machine_external (memory + BLOCK, BLOCK);
  Tensor c = machine_external (memory + 2 * BLOCK, BLOCK);
  static _Atomic uint32_t ran;
  Tensor made;
  pto_task_id first;

  machine_record (machine);
  begin_capture (machine, &capture, memory, 3);
  pto_engine_scope_begin (machine->engine, NULL, 0);
  made = machine_tensor (machine, BLOCK);
  first = SUBMIT (machine, KERNEL_OWN, input (&a), output (&made), make_scalar_param (1)); /* 0 */
  SUBMIT (machine, KERNEL_OWN, input (&made), existing (&b), make_scalar_param (2));       /* 1 */
  SUBMIT (machine, KERNEL_OWN, input (&b), inout (&made), make_scalar_param (3));          /* 2 */
  SUBMIT (machine, KERNEL_OWN, input (&made), inout (&a), make_scalar_param (4));          /* 3 */
  machine_submit_after (machine, &first, 1, &ran);                                         /* 4 */
  SUBMIT (machine, KERNEL_NOTHING, input (&c), no_dep (&b));                               /* 5 */
  pto_engine_scope_end (machine->engine);
  graph = complete (machine, &capture);
  machine_begin (machine);
  g_assert_true (launch (machine, graph, memory));
  g_assert_cmpuint (machine->engine->submitted, ==, 6);
  machine_end_ok (machine);
  for (uint32_t consumer = 0; consumer < 6; consumer++)
    for (uint32_t producer = 0; producer < 6; producer++)
      {
        static const struct
        {
          uint32_t consumer, producer, kinds;
        } edges[] = { { 1, 0, PTO_HAZARD_RAW },
                      { 2, 0, PTO_HAZARD_RAW | PTO_HAZARD_WAW },
                      { 2, 1, PTO_HAZARD_RAW | PTO_HAZARD_WAR },
                      { 3, 2, PTO_HAZARD_RAW },
                      { 3, 0, PTO_HAZARD_WAR },
                      { 4, 0, PTO_HAZARD_EXPLICIT } };
        uint32_t expected = 0;
        uint32_t found;

        for (uint32_t e = 0; e < G_N_ELEMENTS (edges); e++)
          if (edges[e].consumer == consumer && edges[e].producer == producer)
            expected = edges[e].kinds;
        found = 0;
        for (uint32_t d = 0; d < graph->tasks[consumer].n_deps; d++)
          if (graph->deps[graph->tasks[consumer].first_dep + d].task == PTO_TASK_ID (1, producer))
            found = graph->deps[graph->tasks[consumer].first_dep + d].kinds;
        g_assert_cmphex (found & ~PTO_DEP_RETAIN, ==, expected);
        /* On the clock of the machine some are over before others come: those are no edges. */
        if (machine_edge (machine, PTO_TASK_ID (1, consumer), PTO_TASK_ID (1, producer)) != 0)
          g_assert_cmphex (
              machine_edge (machine, PTO_TASK_ID (1, consumer), PTO_TASK_ID (1, producer)), ==,
              expected);
      }
  pto_plan_free (graph);
  machine_free (machine);
}

/* --- failures --- */

static void
test_poison (gconstpointer backend)
{
  struct machine *machine = new_machine (backend, 16);
  uint8_t memory[2 * BLOCK] = { 0 };
  struct pto_capture capture;
  struct pto_plan *graph;
  Tensor a = machine_external (memory, BLOCK);
  Tensor b = machine_external (memory + BLOCK, BLOCK);
  static _Atomic uint32_t failed, after, beside;

  failed = after = beside = 0;
  begin_capture (machine, &capture, memory, 2);
  SUBMIT (machine, KERNEL_FAIL, inout (&a), scalar (&failed));
  /* More than there are slots: the one that has failed is retired before they are all there. */
  for (uint32_t i = 0; i < 40; i++)
    {
      SUBMIT (machine, KERNEL_COUNT, inout (&b), scalar (&beside));
      SUBMIT (machine, KERNEL_COUNT, input (&a), scalar (&after));
    }
  graph = complete (machine, &capture);
  machine_begin (machine);
  g_assert_true (launch (machine, graph, memory));
  machine_end (machine, NULL);
  g_assert_cmpuint (failed, ==, 1);
  g_assert_cmpuint (after, ==, 0);
  g_assert_cmpuint (beside, ==, 40);
  pto_plan_free (graph);
  machine_free (machine);
}

static void
test_tasks_without_a_kernel_and_conditions (gconstpointer backend)
{
  struct machine *machine = new_machine (backend, 16);
  uint8_t memory[2 * BLOCK] = { 0 };
  struct pto_capture capture;
  struct pto_plan *graph;
  Tensor flag = machine_external (memory, BLOCK);
  Tensor data = machine_external (memory + BLOCK, BLOCK);
  Tensor element = machine_part (&flag, 0, 1);
  static _Atomic uint32_t ran;
  Tensor made;
  PTOParam params[3];

  begin_capture (machine, &capture, memory, 2);
  made = machine_tensor (machine, BLOCK);
  params[0] = output (&made);
  g_assert_cmphex (
      pto_engine_submit (
          machine->engine,
          &(struct pto_submit){ .kernel = PTO_KERNEL_NONE, .params = params, .n_params = 1 }),
      !=, PTO_TASK_NONE);
  SUBMIT (machine, KERNEL_FILL, inout (&made), byte (9));
  params[0] = inout (&data);
  params[1] = scalar (&ran);
  params[2] = input (&element);
  SUBMIT (machine, KERNEL_OWN, input (&made), inout (&data), make_scalar_param (1));
  g_assert_cmphex (
      pto_engine_submit (machine->engine, &(struct pto_submit){ .kernel = KERNEL_NOTHING,
                                                                .params = params,
                                                                .n_params = 3,
                                                                .conditional = true }),
      !=, PTO_TASK_NONE);
  graph = complete (machine, &capture);
  for (uint32_t run = 0; run < 2; run++)
    {
      memset (memory, 0, sizeof memory);
      memory[0] = (uint8_t) run;
      machine_begin (machine);
      g_assert_true (launch (machine, graph, memory));
      machine_end_ok (machine);
      g_assert_cmpuint (memory[BLOCK], ==, 10);
    }
  g_assert_true ((graph->tasks[3].kernel & PTO_PLAN_IF) != 0);
  pto_plan_free (graph);
  machine_free (machine);
}

/* --- room --- */

/* A chain of tasks whose first one's memory is used by the last one. */
static struct pto_plan *
make_long_use (struct machine *machine, uint32_t n)
{
  struct pto_plan *graph = pto_plan_new ();
  struct pto_report report = { 0 };
  Tensor tensor = machine_external (NULL, BLOCK);
  uint32_t memory = pto_plan_add_memory (graph, BLOCK);

  for (uint32_t t = 0; t < n; t++)
    {
      pto_plan_add_task (graph, &(struct pto_submit){ .kernel = KERNEL_NOTHING }, 0);
      if (t == 0)
        pto_plan_add_use (graph, memory, 0, &tensor, true, false, false);
      else
        pto_plan_add_edge (graph, t - 1, t, PTO_HAZARD_EXPLICIT);
      if (t == n - 1)
        pto_plan_add_use (graph, memory, 0, &tensor, false, false, false);
    }
  pto_plan_complete (graph, &report);
  g_assert_cmpstr (report.message, ==, "");
  return graph;
}

static void
test_deadlock_is_told (gconstpointer backend)
{
  static const uint32_t sizes[] = { 33, 40 };
  struct machine *machine = new_machine (backend, 16);
  struct pto_plan *graph = NULL;
  const char *message;

  for (uint32_t i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      char *task = g_strdup_printf ("task %u", sizes[i] - 1);
      char *most = g_strdup_printf ("holds at most %u tasks in that ring", sizes[i]);

      if (graph != NULL)
        pto_plan_free (graph);
      graph = make_long_use (machine, sizes[i]);
      machine_begin (machine);
      g_assert_false (launch (machine, graph, NULL));
      g_assert_cmpint (machine_end (machine, &message), ==, PTO_STATUS_TASK_RING);
      machine_assert_names (message, task);
      machine_assert_names (message, most);
      g_assert_cmpuint (machine_advice (message, "task-window"), ==, 64);
      g_free (task);
      g_free (most);
    }
  machine_free (machine);
  machine = new_machine (backend, 64);
  machine_begin (machine);
  g_assert_true (launch (machine, graph, NULL));
  machine_end_ok (machine);
  pto_plan_free (graph);
  machine_free (machine);
}

/* Many more tasks than slots, edges and bytes, none of them in a scope. */
static void
test_larger_than_the_rings (gconstpointer backend)
{
  struct machine *machine = new_machine (backend, 16);
  uint32_t n = SCALE (131072) + 200;
  struct pto_plan *graph = pto_plan_new ();
  struct pto_report report = { 0 };
  Tensor tensor = machine_external (NULL, BLOCK);
  uint8_t memory[BLOCK] = { 0 };
  Tensor result = machine_external (memory, BLOCK);

  add_tensor_param (graph, &result);
  for (uint32_t t = 0; t < n; t++)
    {
      uint32_t made = pto_plan_add_memory (graph, BLOCK);

      pto_plan_add_task (graph, &(struct pto_submit){ .kernel = KERNEL_OWN }, 0);
      if (t > 0)
        pto_plan_add_use (graph, made - 1, 0, &tensor, false, false, false);
      else
        pto_plan_add_tensor (graph, 0, 0, &result, false, false);
      if (t == n - 1)
        pto_plan_add_tensor (graph, 0, 0, &result, true, true);
      else
        pto_plan_add_use (graph, made, 0, &tensor, true, false, false);
      pto_plan_add_number (graph, 1);
      if (t > 0)
        pto_plan_add_edge (graph, t - 1, t, PTO_HAZARD_EXPLICIT);
    }
  pto_plan_complete (graph, &report);
  g_assert_cmpstr (report.message, ==, "");
  memory[3] = 5;
  machine_begin (machine);
  g_assert_true (launch (machine, graph, memory));
  machine_end_ok (machine);
  g_assert_cmpuint (memory[3], ==, (uint8_t) (5 + n));
  pto_plan_free (graph);
  machine_free (machine);
}

/* Far more shapes than the table of them begins with, each of two tasks' tensors. */
static void
test_many_shapes (gconstpointer backend)
{
  enum
  {
    N = 300
  };
  struct machine *machine = new_machine (backend, 64);
  struct pto_plan *graph = pto_plan_new ();
  struct pto_report report = { 0 };
  uint8_t *memory = g_malloc0 (N * (N + 1));
  uint64_t word = (uint64_t) (uintptr_t) memory;
  Tensor whole = machine_external (memory, N * (N + 1));
  uint64_t at = 0;

  add_tensor_param (graph, &whole);
  for (uint32_t t = 0; t < 2 * N; t++)
    {
      Tensor part = machine_external (NULL, 1 + t % N);

      pto_plan_add_task (graph, &(struct pto_submit){ .kernel = KERNEL_FILL }, 0);
      pto_plan_add_tensor (graph, 0, at, &part, true, true);
      pto_plan_add_number (graph, 1 + t % 251);
      at += 1 + t % N;
    }
  pto_plan_complete (graph, &report);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_cmpuint (graph->n_shapes, ==, N);
  machine_begin (machine);
  g_assert_true (
      pto_engine_launch (machine->engine, &(struct pto_launch){ .graph = graph, .words = &word }));
  machine_end_ok (machine);
  at = 0;
  for (uint32_t t = 0; t < 2 * N; t++)
    for (uint32_t i = 0; i < 1 + t % N; i++)
      g_assert_cmpuint (memory[at++], ==, 1 + t % 251);
  g_free (memory);
  pto_plan_free (graph);
  machine_free (machine);
}

/* --- by hand --- */

/* Each task adds to one block: the order shows. */
static struct pto_plan *
make_by_hand (const Tensor *block, const uint32_t edges[][2], uint32_t n_edges,
              struct pto_report *report)
{
  struct pto_plan *graph = pto_plan_new ();

  add_tensor_param (graph, block);
  for (uint32_t t = 0; t < 4; t++)
    {
      pto_plan_add_task (graph, &(struct pto_submit){ .kernel = KERNEL_OWN }, 0);
      pto_plan_add_tensor (graph, 0, 0, block, false, false);
      pto_plan_add_tensor (graph, 0, 0, block, true, true);
      pto_plan_add_number (graph, t + 1);
    }
  for (uint32_t e = 0; e < n_edges; e++)
    pto_plan_add_edge (graph, edges[e][0], edges[e][1], PTO_HAZARD_EXPLICIT);
  pto_plan_complete (graph, report);
  return graph;
}

static void
test_edges_in_any_direction (gconstpointer backend)
{
  /* 2, 3, 1, 0; one of them twice */
  static const uint32_t edges[][2] = { { 1, 0 }, { 2, 3 }, { 3, 1 }, { 2, 0 }, { 3, 1 } };
  struct machine *machine = new_machine (backend, 16);
  uint8_t memory[BLOCK] = { 0 };
  Tensor block = machine_external (memory, BLOCK);
  struct pto_report report = { 0 };
  struct pto_plan *graph = make_by_hand (&block, edges, G_N_ELEMENTS (edges), &report);

  g_assert_cmpstr (report.message, ==, "");
  g_assert_cmpuint (graph->n_deps, ==, 4);
  memory[0] = 2;
  machine_begin (machine);
  g_assert_true (launch (machine, graph, memory));
  machine_end_ok (machine);
  g_assert_cmpuint (memory[0], ==, 2 + 3 + 4 + 2 + 1);
  pto_plan_free (graph);
  machine_free (machine);
}

/* What others imply is not waited for twice, but memory is kept, and a record has all. */
static void
test_implied (gconstpointer backend)
{
  static const uint32_t edges[][2] = { { 0, 1 }, { 1, 2 }, { 0, 2 }, { 2, 3 }, { 0, 3 } };
  struct machine *machine = new_machine (backend, 16);
  uint8_t memory[BLOCK] = { 0 };
  Tensor block = machine_external (memory, BLOCK);
  struct pto_report report = { 0 };
  struct pto_plan *graph = make_by_hand (&block, edges, G_N_ELEMENTS (edges), &report);

  g_assert_cmpstr (report.message, ==, "");
  g_assert_cmpuint (graph->n_deps, ==, 5);
  g_assert_cmpuint (graph->tasks[1].n_needed, ==, 1);
  g_assert_cmpuint (graph->tasks[2].n_needed, ==, 1);
  g_assert_cmpuint (graph->deps[graph->tasks[2].first_dep].task, ==, 1);
  g_assert_cmpuint (graph->tasks[3].n_needed, ==, 1);
  for (uint32_t run = 0; run < 2; run++)
    {
      memory[0] = 0;
      machine_begin (machine);
      g_assert_true (launch (machine, graph, memory));
      machine_end_ok (machine);
      g_assert_cmpuint (memory[0], ==, 10);
      /* Those that are implied are counted, and not those of tasks that were over already. */
      g_assert_cmpuint (machine->engine->stats.edges, >=, 2);
      g_assert_cmpuint (machine->engine->stats.edges, <=, 5);
      if (run == 0)
        machine_record (machine);
    }
  g_assert_cmpuint (machine_n_edges (machine), ==, machine->engine->stats.edges);
  pto_plan_free (graph);
  machine_free (machine);
}

static void
test_refused_by_hand (void)
{
  static const uint32_t circle[][2] = { { 0, 1 }, { 1, 2 }, { 2, 1 } };
  uint8_t memory[BLOCK];
  Tensor block = machine_external (memory, BLOCK);
  struct pto_report report = { 0 };
  struct pto_plan *graph = make_by_hand (&block, circle, G_N_ELEMENTS (circle), &report);

  g_assert_cmpint (report.status, ==, PTO_STATUS_INVALID_ARGS);
  machine_assert_names (report.message, "task 1 of the graph comes after itself");
  pto_plan_free (graph);

  graph = pto_plan_new ();
  pto_plan_add_task (graph, &(struct pto_submit){ .kernel = KERNEL_NOTHING }, 0);
  pto_plan_add_use (graph, pto_plan_add_memory (graph, BLOCK), 0, &block, false, false, false);
  report = (struct pto_report){ 0 };
  g_assert_cmpint (pto_plan_complete (graph, &report), ==, PTO_STATUS_INVALID_ARGS);
  machine_assert_names (report.message, "task 0: argument 0 is a tensor that no task");
  pto_plan_free (graph);

  /* What the task itself outputs is there for the arguments behind it only. */
  for (uint32_t at = 0; at < 2; at++)
    {
      uint32_t made;

      graph = pto_plan_new ();
      made = pto_plan_add_memory (graph, BLOCK);
      pto_plan_add_task (graph, &(struct pto_submit){ .kernel = KERNEL_NOTHING }, 0);
      for (uint32_t a = 0; a < 2; a++)
        pto_plan_add_use (graph, made, 0, &block, a == at, false, false);
      report = (struct pto_report){ 0 };
      g_assert_cmpint (pto_plan_complete (graph, &report), ==,
                       at == 0 ? PTO_OK : PTO_STATUS_INVALID_ARGS);
      machine_assert_names (report.message,
                            at == 0 ? "" : "task 0: argument 0 is a tensor that the task itself");
      pto_plan_free (graph);
    }
}

/* Consumers behind their producers, and of those that may come next the one that was added first.
 */
static void
test_sorted (void)
{
  enum
  {
    N = 24
  };

  for (uint32_t round = 0; round < 300; round++)
    {
      struct pto_plan *graph = pto_plan_new ();
      struct pto_report report = { 0 };
      uint32_t n = (uint32_t) g_test_rand_int_range (1, N + 1), rank[N], waits[N] = { 0 };
      bool needs[N][N] = { { false } };

      for (uint32_t t = 0; t < n; t++)
        {
          uint32_t other = (uint32_t) g_test_rand_int_range (0, (gint32) t + 1);

          rank[t] = t;
          rank[t] = rank[other];
          rank[other] = t;
          pto_plan_add_task (graph, &(struct pto_submit){ .kernel = KERNEL_NOTHING }, 0);
          pto_plan_add_number (graph, t);
        }
      for (uint32_t i = round % 4 * n; i > 0; i--)
        {
          uint32_t a = (uint32_t) g_test_rand_int_range (0, (gint32) n);
          uint32_t b = (uint32_t) g_test_rand_int_range (0, (gint32) n);

          if (rank[a] >= rank[b])
            continue;
          pto_plan_add_edge (graph, a, b, PTO_HAZARD_EXPLICIT);
          waits[b] += !needs[b][a];
          needs[b][a] = true;
        }
      g_assert_cmpint (pto_plan_complete (graph, &report), ==, PTO_OK);
      for (uint32_t t = 0; t < n; t++)
        {
          uint32_t next = 0;

          while (waits[next] > 0)
            next++;
          g_assert_cmpuint (graph->args[graph->tasks[t].first_arg].value, ==, next);
          waits[next] = UINT32_MAX; /* it has come */
          for (uint32_t b = 0; b < n; b++)
            waits[b] -= needs[b][next];
        }
      pto_plan_free (graph);
    }
}

/* --- what is refused --- */

static void
check_capture_refused (void (*submit) (struct machine *machine, uint8_t *memory), const char *why)
{
  struct machine *machine = new_machine (GINT_TO_POINTER (PTO_BACKEND_DET), 16);
  uint8_t memory[BLOCKS * BLOCK] = { 0 }; /* of submit_program() */
  struct pto_capture capture;

  begin_capture (machine, &capture, memory, 2);
  submit (machine, memory);
  machine_expect_error (machine, PTO_STATUS_INVALID_ARGS, why);
  machine_assert_names (refusal, why);
  pto_plan_free (capture.graph);
  /* As if there had been none. */
  machine_begin (machine);
  submit_program (machine, memory, 3, 20);
  machine_end_ok (machine);
  machine_free (machine);
}

static void
submit_foreign (struct machine *machine, uint8_t *memory)
{
  Tensor other = machine_external (memory + 2 * BLOCK, BLOCK);

  g_assert_cmphex (SUBMIT (machine, KERNEL_NOTHING, input (&other)), ==, PTO_TASK_NONE);
}

static void
submit_behind (struct machine *machine, uint8_t *memory)
{
  Tensor other = machine_external (memory + 2 * BLOCK - 1, 2);

  g_assert_cmphex (SUBMIT (machine, KERNEL_NOTHING, input (&other)), ==, PTO_TASK_NONE);
}

static void
submit_number (struct machine *machine, uint8_t *memory)
{
  Tensor block = machine_external (memory, BLOCK);

  g_assert_cmphex (SUBMIT (machine, KERNEL_NOTHING, input (&block), scalar (memory + 40)), ==,
                   PTO_TASK_NONE);
}

static void
submit_made_address (struct machine *machine, uint8_t *memory)
{
  Tensor made = machine_tensor (machine, BLOCK);
  Tensor again;

  SUBMIT (machine, KERNEL_NOTHING, output (&made));
  again = machine_external (machine_address (&made), BLOCK);
  g_assert_cmphex (SUBMIT (machine, KERNEL_NOTHING, input (&again)), ==, PTO_TASK_NONE);
}

static void
test_captures_refused (void)
{
  check_capture_refused (submit_foreign, "argument 0 lies in memory that is no argument");
  check_capture_refused (submit_behind, "argument 0 lies in memory that is no argument");
  check_capture_refused (submit_number, "argument 1 is a number that points into memory");
  check_capture_refused (submit_made_address, "argument 0 is made of an address");
}

#ifndef MACHINE_SANITIZED
/* The region of a capture is address space, which may be limited: then no graph, but a run. */
static void
test_no_address_space (void)
{
  struct machine *machine = new_machine (GINT_TO_POINTER (PTO_BACKEND_DET), 16);
  uint8_t memory[BLOCKS * BLOCK] = { 0 };
  struct pto_capture capture = { .graph = pto_plan_new (), .refuse = refuse, .data = machine };
  struct rlimit limit, small;

  g_assert_cmpint (getrlimit (RLIMIT_AS, &limit), ==, 0);
  small = limit;
  small.rlim_cur = (rlim_t) 8 << 30;
  machine_begin (machine);
  g_assert_cmpint (setrlimit (RLIMIT_AS, &small), ==, 0);
  g_assert_false (pto_capture_begin (machine->engine, &capture));
  g_assert_cmpint (setrlimit (RLIMIT_AS, &limit), ==, 0);
  machine_expect_error (machine, PTO_STATUS_NO_MEMORY, "no address space to capture a graph");
  pto_plan_free (capture.graph);
  machine_begin (machine);
  submit_program (machine, memory, 3, 20);
  machine_end_ok (machine);
  machine_free (machine);
}
#endif

static void
check_refused (const struct pto_plan *graph, const struct pto_plan_given *given, uint32_t n,
               const char *why)
{
  struct pto_report report = { 0 };

  pto_plan_check (graph, given, n, &report);
  if (why == NULL)
    g_assert_cmpstr (report.message, ==, "");
  else
    {
      g_assert_cmpint (report.status, ==, PTO_STATUS_INVALID_ARGS);
      machine_assert_names (report.message, why);
    }
}

static void
test_launches_refused (void)
{
  uint8_t memory[4 * BLOCK];
  struct pto_plan *graph = pto_plan_new ();
  struct pto_report report = { 0 };
  Tensor a = machine_external (memory, BLOCK);
  Tensor b = machine_external (memory + BLOCK, BLOCK);
  Tensor longer = machine_external (memory, BLOCK + 1);
  Tensor other = machine_external (memory, BLOCK);
  struct pto_plan_given given[3];

  other.dtype = PTO_DTYPE_INT32;
  add_tensor_param (graph, &a);
  add_tensor_param (graph, &b);
  pto_plan_add_param (graph, &(struct pto_plan_param){ .word = 7, .fixed = true });
  pto_plan_add_task (graph, &(struct pto_submit){ .kernel = KERNEL_NOTHING }, 0);
  pto_plan_add_tensor (graph, 0, 0, &a, false, false);
  pto_plan_add_tensor (graph, 1, 0, &b, true, true);
  g_assert_cmpint (pto_plan_complete (graph, &report), ==, PTO_OK);

  given[0] = (struct pto_plan_given){ .word = a.buffer.addr, .tensor = &a };
  given[1] = (struct pto_plan_given){ .word = b.buffer.addr, .tensor = &b };
  given[2] = (struct pto_plan_given){ .word = 7 };
  check_refused (graph, given, 3, NULL);
  check_refused (graph, given, 2, "takes 3 arguments, but 2 are given");
  given[2].word = 8;
  check_refused (graph, given, 3, "argument 2 of the graph is the number 7");
  given[2].word = 7;
  given[0].tensor = NULL;
  check_refused (graph, given, 3, "argument 0 of the graph is a tensor, but a number");
  given[0].tensor = &longer;
  check_refused (graph, given, 3, "argument 0 of the graph is 32 uint8, but 33 uint8 is given");
  given[0].tensor = &other;
  check_refused (graph, given, 3, "argument 0 of the graph is 32 uint8, but 32 int32 is given");
  given[0].tensor = &a;
  given[0].read_only = true;
  check_refused (graph, given, 3, NULL);
  given[1].read_only = true;
  check_refused (graph, given, 3, "argument 1 of the graph is written, but its memory");
  given[1].read_only = false;
  given[1].word = a.buffer.addr + BLOCK - 1;
  check_refused (graph, given, 3, "arguments 0 and 1 of the graph overlap, and a task writes");

  /* The same with names, as far as there are some. */
  g_assert_true (pto_plan_name_param (graph, 1, "out"));
  check_refused (graph, given, 3, "arguments 0 and 1 (\"out\") of the graph overlap, and a task");
  given[1].read_only = true;
  check_refused (graph, given, 3, "argument 1 (\"out\") of the graph is written, but its memory");
  given[1].read_only = false;
  given[1].tensor = &longer;
  check_refused (graph, given, 3, "argument 1 (\"out\") of the graph is 32 uint8, but 33 uint8 is");
  check_refused (graph, given, 1, "3 arguments, but 1 is given: the next one is 1 (\"out\")");
  given[1].tensor = NULL;
  check_refused (graph, given, 3, "argument 1 (\"out\") of the graph is a tensor, but a number");
  pto_plan_free (graph);
}

/* Where tasks use memory that the graph keeps an argument is not moved to, if either is written. */
static void
test_kept (void)
{
  static uint8_t memory[8 * BLOCK];

  for (uint32_t written = 0; written < 4; written++)
    {
      struct pto_plan *graph = pto_plan_new ();
      struct pto_report report = { 0 };
      Tensor a = machine_external (memory, BLOCK);
      Tensor piece = machine_external (memory + 2 * BLOCK, 4 * BLOCK);
      Tensor part = machine_external (memory + 3 * BLOCK, BLOCK);
      struct pto_plan_given given[2] = { { .word = a.buffer.addr, .tensor = &a },
                                         { .word = piece.buffer.addr, .tensor = &piece } };
      const char *why
          = written > 0 ? "argument 0 of the graph overlaps memory that task 1 has" : NULL;
      uint64_t offset;

      add_tensor_param (graph, &a);
      pto_plan_add_kept (graph, &(struct pto_plan_param){ .tensor = piece,
                                                          .first = piece.buffer.addr,
                                                          .extent = 4 * BLOCK,
                                                          .owned = true });
      g_assert_cmpuint (pto_plan_n_given (graph), ==, 1);
      g_assert_cmpuint (pto_plan_find_param (graph, &part, &offset), ==, 1);
      g_assert_cmpuint (offset, ==, BLOCK);
      pto_plan_add_task (graph, &(struct pto_submit){ .kernel = KERNEL_NOTHING }, 0);
      pto_plan_add_tensor (graph, 0, 0, &a, (written & 1) != 0, false);
      for (uint32_t t = 0; t < 2; t++)
        {
          pto_plan_add_task (graph, &(struct pto_submit){ .kernel = KERNEL_NOTHING }, 0);
          pto_plan_add_tensor (graph, 1, offset, &part, (written & 2) != 0, false);
        }
      g_assert_cmpint (pto_plan_complete (graph, &report), ==, PTO_OK);
      check_refused (graph, given, 1, NULL);
      check_refused (graph, given, 2, "takes 1 argument, but 2 are given");
      given[0].word = piece.buffer.addr; /* in the piece, and beside what tasks use of it */
      check_refused (graph, given, 1, NULL);
      given[0].word = part.buffer.addr + BLOCK;
      check_refused (graph, given, 1, NULL);
      given[0].word = part.buffer.addr + BLOCK - 1;
      check_refused (graph, given, 1, why);
      given[0].word = part.buffer.addr - BLOCK + 1;
      check_refused (graph, given, 1, why);
      pto_plan_free (graph);
    }
}

static void
add_tests (void)
{
  machine_add ("engine-graph", "same-numbers", test_same_numbers);
  machine_add ("engine-graph", "packed", test_packed);
  machine_add ("engine-graph", "edges", test_edges);
  machine_add ("engine-graph", "poison", test_poison);
  machine_add ("engine-graph", "no-kernel-and-conditions",
               test_tasks_without_a_kernel_and_conditions);
  machine_add ("engine-graph", "deadlock-is-told", test_deadlock_is_told);
  machine_add ("engine-graph", "larger-than-the-rings", test_larger_than_the_rings);
  machine_add ("engine-graph", "many-shapes", test_many_shapes);
  machine_add ("engine-graph", "edges-in-any-direction", test_edges_in_any_direction);
  machine_add ("engine-graph", "implied", test_implied);
  g_test_add_func ("/pto/engine-graph/packed-damage", test_packed_damage);
  g_test_add_func ("/pto/engine-graph/packed-lies", test_packed_lies);
  g_test_add_func ("/pto/engine-graph/refused-by-hand", test_refused_by_hand);
  g_test_add_func ("/pto/engine-graph/sorted", test_sorted);
  g_test_add_func ("/pto/engine-graph/captures-refused", test_captures_refused);
#ifndef MACHINE_SANITIZED
  g_test_add_func ("/pto/engine-graph/no-address-space", test_no_address_space);
#endif
  g_test_add_func ("/pto/engine-graph/launches-refused", test_launches_refused);
  g_test_add_func ("/pto/engine-graph/kept", test_kept);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
