/* test-level-graph.c: does a graph that a level launches do what its orchestration did?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include "../../pto/core/graph-capture.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 4u
#define BLOCK 64u
#define FAR 4096u /* where blocks of another launch are */

enum
{
  MIX,    /* tensors from, to; scalar */
  COPY,   /* the same, whatever is there */
  MEMBER, /* tensor, two scalars: adds what depends on the second to its part of that */
  DIE,    /* tensor, scalar: if that is the board's counter 1 */
  WHERE   /* scalar: number of a word for the process that runs it */
};

static uint32_t
mix (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  for (uint64_t i = 0; i < call->args.tensors[1].shapes[0]; i++)
    call_data (call, 1)[i] = 31 * call_data (call, 0)[i % call->args.tensors[0].shapes[0]]
                             + call_data (call, 1)[i] + call_scalar (call, 0);
  return 0;
}

static uint32_t
copy (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  for (uint64_t i = 0; i < call->args.tensors[1].shapes[0]; i++)
    call_data (call, 1)[i]
        = call_data (call, 0)[i % call->args.tensors[0].shapes[0]] + call_scalar (call, 0);
  return 0;
}

static uint32_t
add_member (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  uint64_t n = call->args.tensors[0].shapes[0];

  for (uint64_t i = call_scalar (call, 1); i < n; i += 2)
    call_data (call, 0)[i] = 7 * call_data (call, 0)[i] + call_scalar (call, 0);
  return 0;
}

static uint32_t
die (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  if (call_scalar (call, 0) == atomic_load (&rig->board->counters[1]))
    kill (getpid (), SIGKILL);
  call_data (call, 0)[0]++;
  return 0;
}

static uint32_t
tell_where (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  rig->board->words[call_scalar (call, 0)] = (uint64_t) getpid ();
  return 0;
}

static const rig_function functions[] = { mix, copy, add_member, die, tell_where };

static struct rig *
new_rig (gconstpointer threads, uint32_t chips, uint32_t subs)
{
  return rig_new (&(struct rig_config){ .chips = chips,
                                        .subs = subs,
                                        .threads = GPOINTER_TO_INT (threads) != 0,
                                        .restart = true,
                                        .quiet = true,
                                        .functions = functions });
}

static PTOParam
scalar (uint64_t value)
{
  return make_scalar_param (value);
}

/* --- capturing and launching --- */

struct graph
{
  void (*submit) (struct rig *rig, void *data);
  void *data;
  struct pto_plan *plan;
  uint32_t first; /* word of the first block that it is launched with */
};

static void
capture_blocks (struct rig *rig, void *data)
{
  struct graph *graph = data;

  for (uint32_t b = 0; b < BLOCKS; b++)
    {
      Tensor tensor = rig_words (rig, b * BLOCK, BLOCK);

      pto_plan_add_param (graph->plan,
                          &(struct pto_plan_param){ .tensor = tensor,
                                                    .first = tensor.buffer.addr,
                                                    .extent = pto_tensor_extent (&tensor) });
    }
  g_assert_true (pto_level_begin_capture (rig->level, graph->plan));
  graph->submit (rig, graph->data);
}

static void
capture (struct rig *rig, struct graph *graph)
{
  struct pto_report report = { 0 };

  graph->plan = pto_plan_new ();
  rig_run_ok (rig, capture_blocks, graph);
  pto_plan_complete (graph->plan, &report);
  g_assert_cmpstr (report.message, ==, "");
}

static void
launch (struct rig *rig, void *data)
{
  struct graph *graph = data;
  Tensor tensors[BLOCKS];
  struct pto_plan_given given[BLOCKS];
  uint32_t kernels[16];

  g_assert_cmpuint (graph->plan->n_kernels, <=, G_N_ELEMENTS (kernels));
  for (uint32_t k = 0; k < graph->plan->n_kernels; k++)
    kernels[k] = graph->plan->kernels[k].kernel;
  for (uint32_t b = 0; b < BLOCKS; b++)
    {
      tensors[b] = rig_words (rig, graph->first + b * BLOCK, BLOCK);
      given[b] = (struct pto_plan_given){ .word = tensors[b].buffer.addr, .tensor = &tensors[b] };
    }
  pto_level_launch (rig->level, graph->plan, given, BLOCKS, kernels);
}

/* --- any program --- */

struct program
{
  uint64_t seed;
  uint32_t n;
  bool has_chips;
};

static uint64_t
draw (uint64_t *seed)
{
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

static Tensor
part_of (struct rig *rig, uint64_t *seed)
{
  static const uint32_t lengths[] = { BLOCK, BLOCK, BLOCK / 2, 8 };
  uint32_t length = lengths[draw (seed) % G_N_ELEMENTS (lengths)];
  uint32_t first = (uint32_t) (draw (seed) % (BLOCK - length + 1));

  return rig_words (rig, (uint32_t) (draw (seed) % BLOCKS) * BLOCK + first, length);
}

/* Children of both kinds, any and named, groups, memory of the runtime in scopes, orders. */
static void
submit_program (struct rig *rig, void *data)
{
  struct program *program = data;
  uint64_t seed = program->seed;
  Tensor made[8];
  uint32_t n_made = 0;
  uint32_t first_made[4] = { 0 };
  uint32_t depth = 0;

  for (uint32_t i = 0; i < program->n; i++)
    {
      uint64_t what = draw (&seed) % 16;
      uint64_t number = draw (&seed) % 1000;
      uint32_t worker = draw (&seed) % 3 == 0 ? (uint32_t) (draw (&seed) % 2) : ANY;
      Tensor from = part_of (rig, &seed);
      Tensor to = part_of (rig, &seed);

      if (n_made > 0 && draw (&seed) % 2 == 0)
        from = made[draw (&seed) % n_made];
      if (n_made > 0 && draw (&seed) % 4 == 0)
        to = made[draw (&seed) % n_made];
      if (what < 6)
        SUB (rig, MIX, worker, make_input_param (from), make_inout_param (to), scalar (number));
      else if (what < 8 && program->has_chips)
        CHIP (rig, MIX, worker, make_input_param (from), make_inout_param (to), scalar (number));
      else if (what < 10)
        {
          PTOParam all = make_inout_param (to);

          /* Of one tensor each member has a part. */
          rig_group (rig, MEMBER, 2,
                     worker != ANY ? (const uint32_t[]){ worker, 1 - worker } : NULL, &all, number);
        }
      else if (what < 11)
        pto_level_order (rig->level,
                         &(struct pto_submit){ .params = (PTOParam[]){ make_input_param (from) },
                                               .n_params = 1 });
      else if (what < 13 && n_made < G_N_ELEMENTS (made))
        {
          made[n_made] = rig_tensor (rig, BLOCK);
          SUB (rig, COPY, worker, make_input_param (from), make_output_param (made[n_made]),
               scalar (number));
          n_made++;
        }
      else if (what < 14 && depth < G_N_ELEMENTS (first_made))
        {
          first_made[depth++] = n_made;
          pto2_rt_scope_begin (rig->rt);
        }
      else if (what < 15 && depth > 0)
        {
          n_made = first_made[--depth];
          pto2_rt_scope_end (rig->rt);
        }
    }
  while (depth-- > 0)
    pto2_rt_scope_end (rig->rt);
}

static void
fill (struct rig *rig, uint32_t first, uint64_t seed)
{
  for (uint32_t w = 0; w < BLOCKS * BLOCK; w++)
    rig->board->words[first + w] = draw (&seed);
}

/* The same bits, as many tasks, and with a record all that they wait for. */
static void
test_random (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 2, 3);
  uint64_t seed = g_test_rand_int ();

  for (uint32_t round = 0; round < 20; round++)
    {
      struct program program = { draw (&seed), 10 + (uint32_t) (draw (&seed) % 150), true };
      struct graph graph = { .submit = submit_program, .data = &program };

      rig->record = round % 2 == 0 ? PTO_TRACE_LEVEL_GRAPH : 0;
      fill (rig, 0, seed);
      fill (rig, FAR, seed);
      capture (rig, &graph);
      for (uint32_t l = 0; l < 3; l++)
        {
          struct pto_run_stats stats;

          rig_run_ok (rig, submit_program, &program);
          stats = rig->stats;
          graph.first = FAR;
          rig_run_ok (rig, launch, &graph);
          g_assert_cmpmem (&rig->board->words[FAR], BLOCKS * BLOCK * sizeof (uint64_t),
                           &rig->board->words[0], BLOCKS * BLOCK * sizeof (uint64_t));
          g_assert_cmpuint (rig->stats.tasks, ==, stats.tasks);
          g_assert_cmpuint (rig->stats.completed, ==, stats.tasks);
        }
      pto_plan_free (graph.plan);
    }
  rig_free (rig);
}

/* More tasks than are let go of together, and than children. */
static void
submit_many (struct rig *rig, void *data)
{
  for (uint32_t i = 0; i < 2000; i++)
    SUB (rig, MIX, ANY, make_input_param (rig_words (rig, i * 8 % (BLOCKS * BLOCK), 8)),
         make_inout_param (rig_words (rig, (i * 24 + 8) % (BLOCKS * BLOCK), 8)), scalar (i));
}

static void
test_many (gconstpointer threads)
{
  static const char *const parameters[] = { "task-window", "16", "dep-pool", "256", NULL };
  struct graph graph = { .submit = submit_many, .first = FAR };
  uint64_t words[BLOCKS * BLOCK] = { 0 };
  /* And than its ring holds. */
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 2,
                                                   .threads = GPOINTER_TO_INT (threads) != 0,
                                                   .parameters = parameters,
                                                   .functions = functions });

  capture (rig, &graph);
  g_assert_cmpuint (graph.plan->n_tasks, ==, 2000);
  rig_run_ok (rig, launch, &graph);
  g_assert_cmpuint (rig->stats.stalls, >, 0);
  /* The orchestration would hold all of them in its scope. */
  for (uint32_t i = 0; i < 2000; i++)
    for (uint32_t w = 0; w < 8; w++)
      words[(i * 24 + 8) % (BLOCKS * BLOCK) + w] += 31 * words[i * 8 % (BLOCKS * BLOCK) + w] + i;
  g_assert_cmpmem (&rig->board->words[FAR], sizeof words, words, sizeof words);
  pto_plan_free (graph.plan);
  rig_free (rig);
}

/* --- on another level --- */

static void
submit_named (struct rig *rig, void *data)
{
  SUB (rig, MIX, 2, make_input_param (rig_words (rig, 0, BLOCK)),
       make_inout_param (rig_words (rig, BLOCK, BLOCK)), scalar (1));
  CHIP (rig, MIX, 1, make_input_param (rig_words (rig, 0, BLOCK)),
        make_inout_param (rig_words (rig, BLOCK, BLOCK)), scalar (2));
  rig_group (rig, MEMBER, 2, (const uint32_t[]){ 2, 0 },
             (PTOParam[]){ make_inout_param (rig_words (rig, BLOCK, BLOCK)) }, 5);
  SUB (rig, WHERE, 2, scalar (FAR));
  CHIP (rig, WHERE, 1, scalar (FAR + 1));
}

/* Places have other numbers there; who has fewer says so before anything is submitted. */
static void
test_elsewhere (gconstpointer threads)
{
  static const uint32_t of[] = { MIX, MIX, MEMBER, WHERE, WHERE };
  struct rig *rig = new_rig (threads, 2, 3);
  struct graph graph = { .submit = submit_named };
  struct
  {
    uint32_t chips, subs;
    const char *why;
  } others[] = { { 3, 4, NULL },
                 { 2, 3, NULL },
                 { 2, 2, "task 0 of the graph: L3/0 has no SUB worker 2: they are 0 to 1" },
                 { 1, 3, "task 1 of the graph: L3/0 has no worker 1: there is only number 0" },
                 { 0, 3, "is for chips, and L3/0 has none" } };

  capture (rig, &graph);
  rig_free (rig);
  for (uint32_t i = 0; i < G_N_ELEMENTS (others); i++)
    {
      enum pto_status status;

      rig = new_rig (threads, others[i].chips, others[i].subs);
      /* What the tasks name is looked at where they run. */
      for (uint32_t t = 0; t < graph.plan->n_tasks; t++)
        ((struct pto_level_task *) &graph.plan->extra[graph.plan->tasks[t].first_extra])->digest
            = rig->digests[of[t]];
      fill (rig, 0, i);
      graph.submit = NULL;
      status = rig_run (rig, launch, &graph);
      if (others[i].why == NULL)
        {
          g_assert_cmpstr (rig->report.message, ==, "");
          g_assert_cmpuint (rig->stats.completed, ==, 5);
          for (uint32_t k = 0; k < 2 && threads == NULL; k++)
            g_assert_cmpuint (rig->board->words[FAR + k], ==,
                              atomic_load (&rig->board->pids[k == 0 ? others[i].chips + 2 : 1]));
        }
      else
        {
          g_assert_cmpint (status, !=, PTO_OK);
          assert_says (rig->report.message, others[i].why);
          g_assert_cmpuint (rig->stats.tasks, ==, 0);
        }
      rig_free (rig);
    }
  pto_plan_free (graph.plan);
}

/* --- a child dies --- */

static void
submit_deaths (struct rig *rig, void *data)
{
  for (uint32_t i = 0; i < 200; i++)
    SUB (rig, DIE, ANY, make_inout_param (rig_words (rig, 0, 1)), scalar (i));
}

static void
test_killed (void)
{
  struct rig *rig = new_rig (NULL, 0, 2);
  struct graph graph = { .submit = submit_deaths };

  atomic_store (&rig->board->counters[1], UINT64_MAX);
  capture (rig, &graph);
  for (uint32_t i = 0; i < 200; i += 67)
    {
      rig->board->words[0] = 0;
      atomic_store (&rig->board->counters[1], i);
      g_assert_cmpint (rig_run (rig, launch, &graph), !=, PTO_OK);
      assert_says (rig->report.message, "while running");
      g_assert_cmpuint (rig->board->words[0], ==, i);
      g_assert_cmpuint (rig->stats.tasks, ==, 200);
      g_assert_cmpuint (rig->stats.poisoned, ==, 199 - i);
      rig->board->words[0] = 0;
      atomic_store (&rig->board->counters[1], UINT64_MAX);
      rig_run_ok (rig, launch, &graph);
      g_assert_cmpuint (rig->board->words[0], ==, 200);
    }
  pto_plan_free (graph.plan);
  rig_free (rig);
}

static void
add_tests (void)
{
  static const char *const names[] = { "processes", "threads" };

  for (int threads = 0; threads < 2; threads++)
    {
      static const struct
      {
        const char *name;
        GTestDataFunc test;
      } tests[]
          = { { "random", test_random }, { "many", test_many }, { "elsewhere", test_elsewhere } };

      for (guint t = 0; t < G_N_ELEMENTS (tests); t++)
        {
          g_autofree char *path
              = g_strdup_printf ("/pto/level-graph/%s/%s", tests[t].name, names[threads]);

          g_test_add_data_func (path, GINT_TO_POINTER (threads), tests[t].test);
        }
    }
  g_test_add_func ("/pto/level-graph/killed", test_killed);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
