/* graph-launch.c: how is a whole graph submitted?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each task as pto_engine_submit() would have done it, without what the graph knows already: what
 * it depends on, what its tensors look like, and how long its memory is used.
 */
#include "graph-launch.h"

#include "exec/translate.h"
#include "cohort.h"
#include "commutative.h"
#include "completion.h"
#include "core-placement.h"
#include "deadlock-demand.h"
#include "forced-order.h"
#include "ready.h"
#include "record-submit.h"
#include "run-inline.h"
#include "submit.h"
#include "unwritten-memory.h"

/* Tasks that are let go together: nobody knows them before, so that they are linked to each other
 * without atomic operations. */
#define HELD_MAX 64u

/* A task that waits for none of those that are held. */
struct held
{
  struct pto_slot *slot;
  uint32_t queue;
  uint32_t n_wait;
  uint32_t done;
};

/* One launch under way. */
struct launch
{
  struct pto_engine *engine;
  const struct pto_plan *graph;
  const uint64_t *words;
  const struct pto_launch *asked;
  struct pto_plan_kernel *kernels; /* the graph's, as a submit names them */
  struct pto_need *members;        /* the graph's, with those */
  const uint64_t *extra;           /* of its tasks */
  uint32_t n_shared;               /* of the engine's shared tensors that are described */
  uint64_t *made;                  /* where the memory of the graph is, once it has been made */
  uint32_t *cohorts;               /* which is held for one of the graph's */
  uint32_t n_holds;                /* done by now */
  uint32_t base[PTO_RINGS];
  /* From these positions on tasks are linked and not let go; and those that have to be. */
  uint32_t first_held[PTO_RINGS];
  uint32_t n_linked;
  uint32_t n_held;
  struct held held[HELD_MAX];
};

static void
let_all_go (struct launch *launch)
{
  struct pto_engine *engine = launch->engine;

  for (uint32_t i = 0; i < launch->n_held; i++)
    pto_engine_let_go (engine, launch->held[i].slot, launch->held[i].queue, launch->held[i].n_wait,
                       launch->held[i].done, false);
  engine->unswept += launch->n_linked;
  engine->unshared += launch->n_linked;
  launch->n_linked = 0;
  launch->n_held = 0;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    launch->first_held[r] = engine->rings[r].head;
  if (PTO_UNLIKELY (engine->order != NULL))
    pto_engine_run_all (engine);
  if (launch->asked->progress != NULL)
    launch->asked->progress (launch->asked->data);
}

/* Lists what the task depends on and is not long gone. Gives how many it waits for. */
static __attribute__ ((noinline)) uint32_t
list_dependencies (struct launch *launch, const struct pto_plan_task *task, uint32_t *n_retained)
{
  struct pto_engine *engine = launch->engine;
  const struct pto_dep *dep = &launch->graph->deps[task->first_dep];
  const struct pto_dep *end = dep + (engine->observed ? task->n_deps : task->n_needed);
  struct pto_dep *to = engine->deps.items;
  uint32_t without = engine->order != NULL ? pto_order_without (engine->order) : 0;
  uint32_t n_wait = 0;
  uint32_t retained = 0;

  for (; dep < end; dep++)
    {
      uint32_t ring = PTO_TASK_RING (dep->task);
      uint32_t local = PTO_TASK_LOCAL (dep->task) + launch->base[ring];
      pto_task_id id = PTO_TASK_ID (ring, local);
      uint32_t kinds = pto_order_reduce (dep->kinds, without);
      bool waits = (kinds & ~PTO_DEP_RETAIN) != 0;

      if (kinds == 0)
        continue;
      if (pto_task_is_retired (engine->tails, id))
        {
          pto_observe_past (engine, id, kinds);
          if (PTO_UNLIKELY (engine->failed.count > 0) && pto_task_set_has (&engine->failed, id))
            engine->poisoned_by = id;
          continue;
        }
      n_wait += waits;
      retained += kinds / PTO_DEP_RETAIN;
      *to++ = (struct pto_dep){ id, kinds };
    }
  engine->deps.count = (uint32_t) (to - engine->deps.items);
  *n_retained = retained;
  return n_wait;
}

static inline const TensorData *
shape_of (const struct launch *launch, const struct pto_plan_arg *arg)
{
  return &launch->graph->shapes[PTO_PLAN_SHAPE (arg->what)];
}

/* Where a tensor's memory begins that is there. */
static inline uint64_t
locate (const struct launch *launch, const struct pto_plan_arg *arg)
{
  return (PTO_PLAN_SOURCE (arg->what) == PTO_PLAN_TENSOR ? launch->words[arg->index]
                                                         : launch->made[arg->index])
         + arg->value;
}

static __attribute__ ((noinline)) uint32_t
note_fences (struct launch *launch, const struct pto_plan_task *task)
{
  struct pto_engine *engine = launch->engine;
  const struct pto_plan_arg *args = &launch->graph->args[task->first_arg];
  uint32_t guard = engine->config.guard_bytes;
  bool fenced = pto_fence_any ();
  uint32_t n = 0;

  if (guard == 0)
    return 0;
  for (uint32_t a = 0; a < task->n_args; a++)
    if ((args[a].what & PTO_PLAN_FENCED) == 0)
      continue;
    else if (PTO_PLAN_SOURCE (args[a].what) == PTO_PLAN_TENSOR)
      n += fenced ? pto_engine_find_fence (engine, locate (launch, &args[a]), n) : 0;
    else if ((args[a].what & PTO_PLAN_PERHAPS) != 0)
      engine->fences[n++] = (struct pto_fence){ .address = launch->made[args[a].index],
                                                .bytes = launch->graph->sizes[args[a].index],
                                                .guard = guard | PTO_FENCE_PERHAPS };
  return n;
}

static inline uint64_t
heap_bytes (const struct pto_engine *engine, const struct pto_plan *graph,
            const struct pto_plan_task *task)
{
  const struct pto_plan_arg *arg = &graph->args[task->first_arg];
  uint64_t bytes = 0;

  for (uint32_t left = task->n_made; left > 0; arg++)
    if (PTO_PLAN_SOURCE (arg->what) == PTO_PLAN_MADE)
      {
        bytes += pto_engine_output_bytes (engine, graph->sizes[arg->index]);
        left--;
      }
  return bytes;
}

/* As submit.c's fill_payload(). */
static inline void
fill (struct launch *launch, struct pto_slot *slot, const struct pto_plan_task *task,
      const struct pto_needs *needs, const struct pto_room *room)
{
  struct pto_engine *engine = launch->engine;
  const struct pto_plan_arg *from = &launch->graph->args[task->first_arg];
  const struct pto_plan_arg *end = from + task->n_args;
  struct pto_payload *payload = (struct pto_payload *) room->storage;
  int64_t *args = payload->args;
  TensorData *tensors = (TensorData *) (args + task->n_args);
  uint64_t *guards = (uint64_t *) (tensors + task->n_tensors);
  uint64_t heap = (uint64_t) (uintptr_t) room->heap;
  bool others = needs->n_guards > task->n_made;
  int64_t *arg = args;
  uint32_t n_guards = 0;

  for (; from < end; from++)
    {
      enum pto_plan_source source = PTO_PLAN_SOURCE (from->what);
      const TensorData *shape;
      TensorData *to;

      if (source < PTO_PLAN_TENSOR)
        {
          *arg++ = (int64_t) (source == PTO_PLAN_NUMBER ? from->value : launch->words[from->index]);
          continue;
        }
      if (others && source == PTO_PLAN_USED
          && (from->what & (PTO_PLAN_FENCED | PTO_PLAN_PERHAPS)) == PTO_PLAN_FENCED)
        guards[n_guards++]
            = (launch->made[from->index] + launch->graph->sizes[from->index]) | PTO_GUARD_OTHERS;
      if ((from->what & PTO_PLAN_AGAIN) != 0)
        {
          *arg++ = (int64_t) (uintptr_t) &engine->shared.items[from->start];
          continue;
        }
      to = (from->what & PTO_PLAN_FIRST) != 0 ? &engine->shared.items[launch->n_shared++]
                                              : tensors++;
      shape = shape_of (launch, from);
      if (source == PTO_PLAN_MADE)
        {
          uint64_t bytes = launch->graph->sizes[from->index];

          launch->made[from->index] = heap;
          if (engine->config.guard_bytes > 0)
            {
              guards[n_guards] = heap + bytes;
              /* Written before the kernel runs, which is soon. */
              __builtin_prefetch ((const void *) (uintptr_t) guards[n_guards], 1);
              if (PTO_UNLIKELY ((from->what & PTO_PLAN_PART) != 0))
                {
                  pto_fence_write (guards[n_guards], engine->config.guard_bytes);
                  guards[n_guards] |= PTO_GUARD_WRITTEN;
                }
              n_guards++;
            }
          heap += pto_engine_output_bytes (engine, bytes);
        }
      memcpy (to, shape, sizeof *to);
      to->buffer.addr = locate (launch, from);
      to->start_offset = from->start;
      *arg++ = (int64_t) (uintptr_t) to;
    }
  payload->n_args = task->n_args;
  payload->n_guards = (uint16_t) n_guards;
  payload->n_fences = (uint16_t) needs->n_fences;
  payload->guards = guards;
  payload->file = NULL;
  payload->line = (uint32_t) (task - launch->graph->tasks) + 1;
  payload->terms = task->terms;
  payload->services = engine->config.services;
  payload->block = PTO_BLOCK_ALONE;
  if (PTO_UNLIKELY (needs->n_fences > 0))
    pto_fence_copy ((struct pto_fence *) (guards + n_guards), engine->fences, needs->n_fences);
  if (task->extra_bytes > 0)
    memcpy (pto_payload_extra (payload), &launch->extra[task->first_extra], task->extra_bytes);
  slot->payload = payload;
}

/* Where it was submitted when the graph was made: for a record, and for what is refused. */
static void
note_place (struct launch *launch, uint32_t number)
{
  PTO2Runtime *runtime = launch->engine->runtime;
  uint32_t line;

  if (runtime == NULL)
    return;
  runtime->file = pto_plan_get_place (launch->graph, number, &line);
  runtime->line = (int32_t) line;
}

static __attribute__ ((noinline)) void
observe_args (const struct launch *launch, const struct pto_slot *slot,
              const struct pto_plan_task *task)
{
  const uint8_t *types = &launch->graph->types[task->first_arg];
  const struct pto_witness *witness = launch->engine->witness;

  if (launch->engine->fills)
    pto_unwritten_fill (launch->engine, slot);
  if (witness != NULL)
    witness->task (witness->data, slot, types, !launch->graph->captured);
  pto_observe_args (launch->engine, slot, types);
}

/* Bytes that go with its arguments, but for its claims. */
static inline uint32_t
extra_bytes (const struct pto_plan *graph, const struct pto_plan_task *task)
{
  return task->extra_bytes
         + (PTO_LIKELY (task->parts == 0)
                ? 0
                : pto_parts_bytes (task->extra_bytes,
                                   graph->parts[task->parts - 1].wish.n_members));
}

/* What a task with parts asks for. false: there can never be such places, and the run has failed.
 */
static __attribute__ ((noinline)) bool
admit_parts (struct launch *launch, uint32_t number, struct pto_wish *wish)
{
  const struct pto_plan_task *task = &launch->graph->tasks[number];
  const struct pto_plan_parts *parts = &launch->graph->parts[task->parts - 1];

  note_place (launch, number);
  *wish = parts->wish;
  wish->members = &launch->members[parts->first_member];
  if (wish->cohort != PTO_COHORT_NONE)
    wish->cohort = launch->cohorts[wish->cohort];
  return wish->n_members == 0
         || pto_place_admit (launch->engine, launch->kernels[task->kernel & ~PTO_PLAN_IF].kernel,
                             wish, parts->n_blocks);
}

/* The slot of a task; where there is no room, those that are held go first. */
static struct pto_slot *
take_slot (struct launch *launch, const struct pto_plan_task *task, const struct pto_needs *needs,
           bool in_line, uint32_t n_wait, struct pto_room *room)
{
  struct pto_engine *engine = launch->engine;
  uint32_t number = task->kernel & ~PTO_PLAN_IF;
  uint32_t kernel
      = launch->kernels[number].kernel | ((task->kernel & PTO_PLAN_IF) != 0 ? PTO_KERNEL_IF : 0);
  uint32_t queue = in_line ? PTO_QUEUE_LINE : launch->kernels[number].queue;
  struct pto_slot *slot = pto_engine_take_slot (engine, needs, kernel, queue, task->terms.priority,
                                                n_wait, launch->n_linked == 0, room);

  if (PTO_LIKELY (slot != NULL) || launch->n_linked == 0)
    return slot;
  let_all_go (launch);
  return pto_engine_take_slot (engine, needs, kernel, queue, task->terms.priority, n_wait, true,
                               room);
}

/* It is linked. What waits for one that is held needs no count of its own: that one will bring it
 * to 0. */
static inline void
hold (struct launch *launch, struct pto_slot *slot, uint32_t queue, uint32_t n_wait,
      uint32_t n_held, uint32_t done)
{
  if (n_held == 0)
    launch->held[launch->n_held++] = (struct held){ slot, queue, done < n_wait ? n_wait : 0, done };
  else if (n_held + done == n_wait)
    pto_store_relaxed (&slot->fanin, (int32_t) n_held);
  else
    pto_fetch_sub_acq_rel (&slot->fanin, (int32_t) done + 1);
  if (++launch->n_linked < HELD_MAX)
    return;
  let_all_go (launch);
  /* Here, where no task is under way: from now on the submitter may run each itself. */
  pto_engine_share (launch->engine);
}

/* Cohorts that are held and let go of before that task. false: one is not free, and will not be. */
static __attribute__ ((noinline)) bool
hold_cohorts (struct launch *launch, uint32_t number)
{
  const struct pto_plan *graph = launch->graph;

  for (; launch->n_holds < graph->n_holds && graph->holds[launch->n_holds].task == number;
       launch->n_holds++)
    {
      const struct pto_plan_hold *hold = &graph->holds[launch->n_holds];
      uint32_t *cohort = &launch->cohorts[hold->cohort];

      if (!hold->held)
        {
          pto_cohort_let_go (launch->engine, *cohort);
          continue;
        }
      /* Who has one may be among those that are held. */
      let_all_go (launch);
      *cohort = pto_cohort_hold (launch->engine, NULL, 0);
      if (*cohort == PTO_COHORT_NONE)
        return false;
    }
  return true;
}

static bool
launch_task (struct launch *launch, uint32_t number)
{
  struct pto_engine *engine = launch->engine;
  const struct pto_plan_task *task = &launch->graph->tasks[number];
  struct pto_needs needs
      = { .n_tensors = 0, .n_outputs = task->n_made, .ring = task->ring }; /* none for the map */
  struct pto_wish wish;                                                    /* of one with parts */
  struct pto_ring *ring = &engine->rings[task->ring];
  struct pto_room room;
  struct pto_links links;
  struct pto_slot *slot;
  bool direct;
  uint32_t n_wait;
  uint32_t n_retained;
  uint32_t queue;
  uint32_t done;

  wish.n_members = 0;
  if (PTO_UNLIKELY (pto_engine_has_failed (engine))
      || (launch->n_linked == 0 && !pto_engine_may_submit (engine))
      || (PTO_UNLIKELY (task->terms.priority != 0)
          && !pto_engine_use_priority (engine, launch->kernels[task->kernel & ~PTO_PLAN_IF].kernel,
                                       task->terms.priority))
      || (PTO_UNLIKELY (task->parts > 0) && !admit_parts (launch, number, &wish)))
    return false;
  /* Nothing is held then: it begins when all that was submitted is complete. */
  direct = engine->direct;
  /* What comes next may reuse what nobody will use any more. */
  ring->floor = launch->base[task->ring] + task->floor;
  engine->poisoned_by = PTO_TASK_NONE;
  links = (struct pto_links){ .deps = &launch->graph->deps[task->first_dep],
                              .n_deps = task->n_needed,
                              .base = launch->base };
  n_wait = needs.n_edges = task->n_needed;
  /* A record has all of them, and whoever is run as it is submitted waits for none. */
  if (direct || PTO_UNLIKELY (engine->observed))
    {
      if (PTO_UNLIKELY (engine->observed))
        note_place (launch, number);
      n_wait = list_dependencies (launch, task, &n_retained);
      links = (struct pto_links){ .deps = engine->deps.items, .n_deps = engine->deps.count };
      needs.n_edges = direct ? n_retained : engine->deps.count;
    }
  if (task->n_fenced > 0 && (task->perhaps != 0 || pto_fence_any ()))
    needs.n_fences = note_fences (launch, task);
  needs.n_guards = task->n_made + (engine->config.guard_bytes > 0 ? task->n_fenced : 0);
  if (task->n_made > 0)
    needs.heap = heap_bytes (engine, launch->graph, task);
  needs.claims = pto_claims_size (task->n_tokens);
  needs.storage
      = pto_engine_storage_bytes (task->n_args, task->n_tensors, needs.n_guards, needs.n_fences,
                                  extra_bytes (launch->graph, task) + (uint32_t) needs.claims);
  slot = take_slot (launch, task, &needs, wish.n_members > 0, n_wait, &room);
  if (slot == NULL)
    return false;
  queue = slot->queue;
  fill (launch, slot, task, &needs, &room);
  if (PTO_UNLIKELY (task->parts > 0))
    pto_engine_add_parts (engine, slot, task->extra_bytes, wish.n_members > 0 ? &wish : NULL,
                          launch->graph->parts[task->parts - 1].n_blocks);
  if (PTO_UNLIKELY (engine->observed))
    observe_args (launch, slot, task);
  if (launch->n_linked > 0)
    links.held = launch->first_held;
  if (PTO_LIKELY (links.base != NULL))
    done = pto_engine_link_planned (engine, slot, &needs, &links);
  else
    done = pto_engine_link_slot (engine, slot, &needs, n_wait, direct, &links);
  if (!engine->observed)
    engine->stats.edges += task->n_deps - task->n_needed;
  if (PTO_UNLIKELY (task->n_tokens > 0))
    {
      pto_turn_claim (slot, &launch->graph->tokens[task->first_token], task->n_tokens);
      if (engine->observed)
        pto_observe_claims (engine, slot);
    }
  if (PTO_UNLIKELY (engine->order != NULL) && slot->kernel != PTO_KERNEL_NONE)
    pto_order_take (engine, slot);
  if (direct)
    {
      pto_engine_let_go (engine, slot, queue, n_wait, done, true);
      launch->first_held[task->ring] = engine->rings[task->ring].head;
    }
  else
    hold (launch, slot, queue, n_wait, links.n_held, done + links.n_kept);
  return true;
}

static bool
keep_pace (struct launch *launch, uint32_t number)
{
  let_all_go (launch);
  return launch->asked->pace (launch->asked->data, number);
}

/* What one of its tasks takes, for the words of a deadlock. */
static __attribute__ ((cold)) void
get_demand (const struct pto_engine *engine, const struct pto_plan *graph, uint32_t number,
            uint64_t goods[PTO_N_GOODS])
{
  const struct pto_plan_task *task = &graph->tasks[number];

  goods[PTO_GOOD_TASKS] = 1;
  goods[PTO_GOOD_HEAP] = heap_bytes (engine, graph, task);
  goods[PTO_GOOD_STORAGE] = pto_engine_storage_bytes (
      task->n_args, task->n_tensors, task->n_made + task->n_fenced, task->n_fenced,
      extra_bytes (graph, task) + (uint32_t) pto_claims_size (task->n_tokens));
  goods[PTO_GOOD_EDGES] = task->n_deps;
  goods[PTO_GOOD_NODES] = 0;
}

/* What the graph holds at one time; nothing else is held then. */
static __attribute__ ((cold)) void
count_demand (struct pto_engine *engine, const struct pto_plan *graph)
{
  uint32_t let_go[PTO_RINGS] = { 0 };
  uint64_t goods[PTO_N_GOODS];

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    memset (engine->demand[r].now, 0, sizeof engine->demand[r].now);
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    {
      const struct pto_plan_task *task = &graph->tasks[t];
      struct pto_demand *demand = &engine->demand[task->ring];

      for (; let_go[task->ring] < task->floor; let_go[task->ring]++)
        {
          get_demand (engine, graph, graph->rings[task->ring][let_go[task->ring]], goods);
          for (uint32_t i = 0; i < PTO_N_GOODS; i++)
            demand->now[i] -= goods[i];
        }
      get_demand (engine, graph, t, goods);
      for (uint32_t i = 0; i < PTO_N_GOODS; i++)
        {
          demand->now[i] += goods[i];
          demand->largest[i] = max_of (demand->largest[i], goods[i]);
        }
      pto_engine_note_peaks (engine);
    }
}

/* The same where nothing goes before a task is published, for those that are not submitted yet. */
static __attribute__ ((cold)) void
count_held_up (struct pto_engine *engine, const struct pto_plan *graph, uint32_t first)
{
  uint64_t goods[PTO_N_GOODS];

  for (uint32_t t = first; t < graph->n_tasks; t++)
    {
      get_demand (engine, graph, t, goods);
      for (uint32_t i = 0; i < PTO_GOOD_EDGES; i++)
        engine->demand[graph->tasks[t].ring].late[i] += goods[i];
    }
  pto_engine_note_peaks (engine);
}

/* " (submitted at x.c:12)", or nothing. */
static void
describe_place (const struct pto_plan *graph, uint32_t task, char *text, size_t size)
{
  uint32_t line;
  const char *file = pto_plan_get_place (graph, task, &line);

  text[0] = '\0';
  if (file != NULL)
    snprintf (text, size, _ (" (submitted at %s:%" PRIu32 ")"), pto_base_name (file), line);
}

const char *
pto_engine_get_place (const struct pto_engine *engine, const struct pto_payload *payload,
                      uint32_t *line)
{
  *line = payload->line;
  if (payload->file == NULL && payload->line > 0 && engine->launched != NULL)
    return pto_plan_get_place (engine->launched, payload->line - 1, line);
  return payload->file;
}

void
pto_engine_describe_submit (const struct pto_engine *engine, const struct pto_payload *payload,
                            char *text, size_t size)
{
  uint32_t line;
  const char *file = pto_engine_get_place (engine, payload, &line);

  text[0] = '\0';
  if (file != NULL)
    snprintf (text, size, _ (", submitted at %s:%" PRIu32), pto_base_name (file), line);
}

bool
pto_engine_launch (struct pto_engine *engine, const struct pto_launch *asked)
{
  const struct pto_plan *graph = asked->graph;
  struct launch launch = { .engine = engine,
                           .graph = graph,
                           .words = asked->words,
                           .extra = asked->extra != NULL ? asked->extra : graph->extra,
                           .asked = asked };
  uint32_t n = 0;

  engine->launched = graph;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    launch.first_held[r] = launch.base[r] = engine->rings[r].head;
  launch.made = malloc (((size_t) graph->n_memory + 1) * sizeof *launch.made);
  launch.kernels = malloc (((size_t) graph->n_kernels + 1) * sizeof *launch.kernels);
  launch.members = malloc (((size_t) graph->n_members + 1) * sizeof *launch.members);
  launch.cohorts = malloc (((size_t) graph->n_cohorts + 1) * sizeof *launch.cohorts);
  if (launch.made == NULL || launch.kernels == NULL || launch.members == NULL
      || launch.cohorts == NULL
      || !pto_array_has_room (engine->deps.items, graph->max_deps, engine->deps.capacity)
      || !pto_shared_tensors_reserve (&engine->shared, graph->n_shared))
    pto_engine_fail (engine, PTO_STATUS_NO_MEMORY,
                     _ ("no memory to launch a graph of %" PRIu32 " tasks"), graph->n_tasks);
  else
    {
      for (uint32_t k = 0; k < graph->n_kernels; k++)
        {
          launch.kernels[k] = graph->kernels[k];
          if (asked->kernels != NULL)
            launch.kernels[k].kernel = asked->kernels[k];
          if (asked->queues != NULL)
            launch.kernels[k].queue = asked->queues[k];
        }
      for (uint32_t m = 0; m < graph->n_members; m++)
        {
          launch.members[m] = asked->members != NULL ? asked->members[m] : graph->members[m];
          launch.members[m].kernel = launch.kernels[graph->members[m].kernel].kernel;
        }
      while (n < graph->n_tasks
             && (PTO_LIKELY (launch.n_holds == graph->n_holds) || hold_cohorts (&launch, n))
             && (PTO_LIKELY (asked->pace == NULL) || keep_pace (&launch, n))
             && launch_task (&launch, n))
        n++;
      if (n == graph->n_tasks)
        hold_cohorts (&launch, n);
      /* Also in a run that has failed: whoever waits for its end waits for them. */
      let_all_go (&launch);
    }
  if (n == graph->n_tasks)
    for (uint32_t r = 0; r < PTO_RINGS; r++)
      engine->rings[r].floor = engine->rings[r].head;
  else if (engine->deadlock.what != PTO_OK)
    {
      const struct pto_plan_task *task = &graph->tasks[n];

      engine->deadlock.launched = engine->deadlock.held_up[0] == '\0';
      engine->deadlock.user = graph->tasks[graph->rings[task->ring][task->floor]].last_use;
      describe_place (graph, engine->deadlock.user, engine->deadlock.place,
                      sizeof engine->deadlock.place);
      if (engine->deadlock.unpublished > 0)
        count_held_up (engine, graph, n);
      else
        count_demand (engine, graph);
    }
  if (engine->runtime != NULL)
    engine->runtime->line = 0;
  free (launch.made);
  free (launch.kernels);
  free (launch.members);
  free (launch.cohorts);
  return n == graph->n_tasks && !pto_engine_has_failed (engine);
}
