/* test-engine-orders.c: are tasks that reduce, update, read and write in the orders that follow
 * from bytes alone, and in no others?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A random program is captured, for then every edge is found and none left out. The oracle goes
 * through the same program cell by cell: who wrote it, or updates it in any order, and who has read
 * it since. Tasks that reduce into one tensor in the same way are a set: they come after nobody for
 * its sake, and whoever uses it next comes after the task that combines, which comes after all of
 * them. Scratch memory orders nothing.
 *
 * Whom a task comes after by the edges must be whom it comes after by the oracle. There may be more
 * in one case: a set may get the copies of one that was combined before, and its tasks come after
 * that.
 */
#include "engine-test.h"

#include "../../pto/core/graph-capture.h"
#include "../../pto/core/graph-plan.h"

#include <string.h>

#define CELLS 24u
#define TASKS 40u
#define NODES (2 * TASKS) /* and a task that combines for each set */

enum
{
  KERNEL_OF_FILL,
  KERNEL_COMBINE,
  KERNEL_LARGEST,
  KERNEL_USER
};

static void
kernel_none (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
}

static const machine_kernel kernels[] = { kernel_none, kernel_none, kernel_none, kernel_none };

static bool
find_reduction (void *data, const PTOParam *param, struct pto_reduction *reduction, char *why,
                size_t size)
{
  *reduction = (struct pto_reduction){ .fill = KERNEL_OF_FILL,
                                       .combine = KERNEL_COMBINE + (uint32_t) param->combine };
  return true;
}

/* --- the oracle --- */

/* Nodes, a bit each: user's tasks, then those that combine. */
typedef struct
{
  uint64_t words[2];
} Nodes;

static void
put (Nodes *nodes, uint32_t node)
{
  nodes->words[node / 64] |= UINT64_C (1) << node % 64;
}

static bool
has (const Nodes *nodes, uint32_t node)
{
  return (nodes->words[node / 64] >> node % 64 & 1) != 0;
}

static void
join (Nodes *nodes, const Nodes *others)
{
  nodes->words[0] |= others->words[0];
  nodes->words[1] |= others->words[1];
}

/* A part of the cells: as often a row as both. */
typedef struct
{
  uint32_t begin, n;
} Part;

static bool
overlap (Part a, Part b)
{
  return a.begin < b.begin + b.n && b.begin < a.begin + a.n;
}

typedef struct
{
  Part part;
  int how;
  uint32_t depth; /* of its scope */
  Nodes tasks;
  bool open;
} Set;

typedef struct
{
  Nodes writers;
  Nodes readers;
  Nodes before; /* whom those who update it come after */
  Part updated;
  bool open;
} Cell;

typedef struct
{
  Cell cells[CELLS];
  Set sets[TASKS];
  uint32_t n_sets;
  uint32_t n_nodes;
  Nodes after[NODES];    /* whom it comes after, and whom these come after */
  Nodes reusable[NODES]; /* whom it may come after besides */
  Nodes combined;        /* tasks that combine, by now */
} Oracle;

/* A node comes after those, and whoever they come after. */
static void
come_after (Oracle *oracle, uint32_t node, const Nodes *others)
{
  join (&oracle->after[node], others);
  for (uint32_t i = 0; i < oracle->n_nodes; i++)
    if (has (others, i))
      join (&oracle->after[node], &oracle->after[i]);
}

static void
use_part (Oracle *oracle, uint32_t node, Part part, PTOParamType type)
{
  for (uint32_t c = part.begin; c < part.begin + part.n; c++)
    {
      Cell *cell = &oracle->cells[c];
      bool joins = type == PTO_PARAM_COMMUTATIVE && cell->open && cell->updated.begin == part.begin
                   && cell->updated.n == part.n;

      if (joins)
        {
          come_after (oracle, node, &cell->before);
          put (&cell->writers, node);
          continue;
        }
      come_after (oracle, node, &cell->writers);
      if (type != PTO_PARAM_INPUT)
        come_after (oracle, node, &cell->readers);
      cell->open = type == PTO_PARAM_COMMUTATIVE;
      if (type == PTO_PARAM_INPUT)
        {
          put (&cell->readers, node);
          continue;
        }
      cell->before = cell->writers;
      join (&cell->before, &cell->readers);
      cell->updated = part;
      cell->writers = cell->readers = (Nodes){ 0 };
      put (&cell->writers, node);
    }
}

static void
close_set (Oracle *oracle, Set *set)
{
  uint32_t node = TASKS + (uint32_t) (set - oracle->sets);

  set->open = false;
  oracle->n_nodes = MAX (oracle->n_nodes, node + 1);
  come_after (oracle, node, &set->tasks);
  use_part (oracle, node, set->part, PTO_PARAM_INOUT);
  put (&oracle->combined, node);
}

/* Of a part that is accessed otherwise than by reducing so. */
static void
close_sets (Oracle *oracle, Part part, int how)
{
  for (uint32_t s = 0; s < oracle->n_sets; s++)
    {
      Set *set = &oracle->sets[s];
      bool joins
          = how >= 0 && set->how == how && set->part.begin == part.begin && set->part.n == part.n;

      if (set->open && !joins && overlap (set->part, part))
        close_set (oracle, set);
    }
}

static void
close_scope (Oracle *oracle, uint32_t depth)
{
  for (uint32_t s = 0; s < oracle->n_sets; s++)
    if (oracle->sets[s].open && oracle->sets[s].depth == depth)
      close_set (oracle, &oracle->sets[s]);
}

static void
reduce_part (Oracle *oracle, uint32_t node, Part part, int how, uint32_t depth)
{
  Set *set = NULL;

  for (uint32_t s = 0; s < oracle->n_sets && set == NULL; s++)
    if (oracle->sets[s].open && oracle->sets[s].how == how
        && oracle->sets[s].part.begin == part.begin && oracle->sets[s].part.n == part.n)
      set = &oracle->sets[s];
  if (set == NULL)
    {
      set = &oracle->sets[oracle->n_sets++];
      *set = (Set){ .part = part, .how = how, .depth = depth, .open = true };
    }
  put (&set->tasks, node);
  join (&oracle->reusable[node], &oracle->combined);
}

/* --- one program, said to both --- */

static uint64_t cells[CELLS];

/* Some of the cells, often the same ones. */
static Part
draw_part (uint64_t *random)
{
  uint32_t begin = machine_below (random, 4) * 6;

  switch (machine_below (random, 4))
    {
    case 0:
      return (Part){ machine_below (random, CELLS - 3), 3 };
    case 1:
      return (Part){ 0, CELLS };
    default:
      return (Part){ begin, 6 };
    }
}

static Tensor
tensor_of (Part part)
{
  Tensor whole = make_tensor_external (cells, (uint64_t[]){ CELLS }, 1, PTO_DTYPE_UINT64);

  return pto2_tensor_view (&whole, (uint64_t[]){ part.n }, (uint64_t[]){ part.begin });
}

static void
submit_program (struct machine *machine, Oracle *oracle, uint64_t *random)
{
  static const PTOParamType types[]
      = { PTO_PARAM_INPUT,       PTO_PARAM_INPUT,       PTO_PARAM_INOUT, PTO_PARAM_OUTPUT_EXISTING,
          PTO_PARAM_COMMUTATIVE, PTO_PARAM_COMMUTATIVE, PTO_PARAM_NO_DEP };
  uint32_t depth = 0;

  for (uint32_t t = 0; t < TASKS; t++)
    {
      uint32_t draw = machine_below (random, 20);
      PTOParam params[4];
      Part parts[2] = { draw_part (random), draw_part (random) };
      uint32_t n = 1 + machine_below (random, 2);
      uint32_t n_params = n;
      int how[2];

      if (draw == 0 && depth < 2)
        {
          pto_engine_scope_begin (machine->engine, NULL, 0);
          depth++;
        }
      else if (draw == 1 && depth > 0)
        {
          pto_engine_scope_end (machine->engine);
          close_scope (oracle, depth--);
        }
      /* One task does not reduce into what it uses otherwise. */
      if (n == 2 && overlap (parts[0], parts[1]))
        n = n_params = 1;
      oracle->n_nodes = MAX (oracle->n_nodes, t + 1);
      for (uint32_t i = 0; i < n; i++)
        {
          Tensor tensor = tensor_of (parts[i]);
          uint64_t zero = 0;

          how[i] = machine_below (random, 5) < 3 ? (int) (machine_below (random, 8) == 0) : -1;
          params[i] = how[i] >= 0 ? pto2_make_reduction_param (&tensor, how[i], &zero)
                                  : pto2_make_param (
                                      types[machine_below (random, G_N_ELEMENTS (types))], &tensor);
        }
      if (machine_below (random, 3) == 0)
        params[n_params++] = make_scratch_param ((uint64_t[]){ 8 }, 1, PTO_DTYPE_UINT64);
      machine_submit (machine, KERNEL_USER, 0, params, n_params);
      /* All sets that are in the way are closed before anything is looked up. */
      for (uint32_t i = 0; i < n; i++)
        if (params[i].type != PTO_PARAM_NO_DEP)
          close_sets (oracle, parts[i], how[i]);
      for (uint32_t i = 0; i < n; i++)
        if (how[i] >= 0)
          reduce_part (oracle, t, parts[i], how[i], depth);
        else if (params[i].type != PTO_PARAM_NO_DEP)
          use_part (oracle, t, parts[i], params[i].type);
    }
  for (; depth > 0; depth--)
    pto_engine_scope_end (machine->engine);
}

/* --- what the edges say --- */

/* Whom each of the user's tasks comes after, of these. */
static void
find_orders (const struct pto_plan *graph, uint64_t orders[TASKS])
{
  g_autofree uint64_t *reach = g_new0 (uint64_t, graph->n_tasks);
  uint32_t n = 0;

  for (uint32_t t = 0; t < graph->n_tasks; t++)
    {
      const struct pto_plan_task *task = &graph->tasks[t];

      for (uint32_t d = 0; d < task->n_deps; d++)
        {
          pto_task_id id = graph->deps[task->first_dep + d].task;
          uint32_t producer = graph->rings[PTO_TASK_RING (id)][PTO_TASK_LOCAL (id)];

          g_assert_cmpuint (producer, <, t);
          reach[t] |= reach[producer];
        }
      if (graph->kernels[task->kernel].kernel != KERNEL_USER)
        continue;
      g_assert_cmpuint (n, <, TASKS);
      orders[n] = reach[t];
      reach[t] |= UINT64_C (1) << n++;
    }
  g_assert_cmpuint (n, ==, TASKS);
}

static void
run_program (uint64_t seed)
{
  struct machine_config config = { .backend = PTO_BACKEND_DET,
                                   .seed = seed,
                                   .schedulers = 2,
                                   .endpoints = 3,
                                   .window = 1024,
                                   .kernels = kernels,
                                   .reduction = find_reduction };
  struct machine *machine = machine_new (&config);
  struct pto_capture capture = { .graph = pto_plan_new () };
  struct pto_report report = { 0 };
  Tensor whole = tensor_of ((Part){ 0, CELLS });
  g_autofree Oracle *oracle = g_new0 (Oracle, 1);
  uint64_t random = seed * 7919;
  uint64_t orders[TASKS];

  pto_plan_add_param (capture.graph,
                      &(struct pto_plan_param){ .tensor = whole,
                                                .first = whole.buffer.addr,
                                                .extent = pto_tensor_extent (&whole) });
  machine_begin (machine);
  g_assert_true (pto_capture_begin (machine->engine, &capture));
  submit_program (machine, oracle, &random);
  machine_end_ok (machine);
  pto_plan_complete (capture.graph, &report);
  g_assert_cmpstr (report.message, ==, "");
  find_orders (capture.graph, orders);
  for (uint32_t t = 0; t < TASKS; t++)
    {
      uint64_t must = oracle->after[t].words[0] & ((UINT64_C (1) << TASKS) - 1);
      Nodes may = oracle->after[t];

      /* Through copies that were others' before; and who comes after this one may, too. */
      for (uint32_t i = 0; i < NODES; i++)
        if (has (&oracle->reusable[t], i))
          join (&may, &oracle->after[i]);
      for (uint32_t i = 0; i < NODES; i++)
        if (has (&oracle->after[t], i))
          join (&may, &oracle->reusable[i]);
      oracle->reusable[t] = may;
      if ((must & ~orders[t]) != 0)
        g_error ("seed %" G_GUINT64_FORMAT ": task %u comes after %#" G_GINT64_MODIFIER
                 "x by bytes, and after %#" G_GINT64_MODIFIER "x by edges",
                 seed, t, must, orders[t]);
      if ((orders[t] & ~may.words[0]) != 0)
        g_error ("seed %" G_GUINT64_FORMAT ": task %u comes after %#" G_GINT64_MODIFIER
                 "x by edges, and after %#" G_GINT64_MODIFIER "x at most by bytes",
                 seed, t, orders[t], may.words[0]);
    }
  pto_plan_free (capture.graph);
  machine_free (machine);
}

static void
test_orders (void)
{
  for (uint64_t seed = 1; seed <= SCALE (2000); seed++)
    run_program (seed);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/engine-orders/random", test_orders);
}

int
main (int argc, char **argv)
{
  return machine_main (argc, argv, add_tests);
}
