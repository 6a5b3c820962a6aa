/* deadlock.c: how is it told that a run can not go on, and what would have been enough?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The submitter proves it (backpressure.c: the oldest task of a full ring is held by a scope that
 * only the submitter can end) and goes on with submits that only count; at the end of the run this
 * file writes the final words.
 */
#include "deadlock.h"

#include "exec/translate.h"
#include "deadlock-demand.h"
#include "manual-tasks.h"
#include "parameters.h"

/* As programs read it; a message translates it. */
const char *
pto_task_state_name (enum pto_task_state state)
{
  static const char *const names[] = { N_ ("free"),     N_ ("waiting for its producers"),
                                       N_ ("ready"),    N_ ("running"),
                                       N_ ("complete"), N_ ("failed"),
                                       N_ ("consumed") };

  return names[state];
}

static void tell_first (struct pto_engine *engine);

void
pto_engine_prove_deadlock (struct pto_engine *engine, enum pto_status what, uint32_t ring_index,
                           uint32_t need, uint32_t used)
{
  struct pto_ring *ring = &engine->rings[ring_index];
  uint32_t tail = engine->tails[ring_index];
  struct pto_slot *oldest = pto_ring_slot (ring, tail);
  uint32_t depth = ring_index;

  if (ring_index == PTO_RINGS - 1)
    while (depth + 1 < engine->depth && (int32_t) (engine->scopes[depth + 1].first - tail) <= 0)
      depth++;
  engine->deadlock.what = what;
  engine->deadlock.ring = ring_index;
  engine->deadlock.need = need;
  engine->deadlock.used = used;
  engine->deadlock.heap = ring->heap.used;
  engine->deadlock.storage = ring->storage.used;
  engine->deadlock.tasks = ring->head - tail;
  engine->deadlock.task = PTO_TASK_ID (ring_index, tail);
  engine->deadlock.kernel = oldest->kernel;
  engine->deadlock.state = (enum pto_task_state) pto_load_relaxed (&oldest->state);
  engine->deadlock.added = pto_added_is_held (engine, engine->deadlock.task);
  engine->deadlock.depth = depth;
  /* What a graph holds may be of deeper scopes than are open. */
  if (depth < engine->depth)
    engine->deadlock.scope = engine->scopes[depth];
  pto_engine_count_late (engine);
  tell_first (engine);
}

bool
pto_engine_prove_unpublished (struct pto_engine *engine, enum pto_status what, uint32_t ring_index,
                              uint32_t need, uint32_t used)
{
  const struct pto_slot *oldest
      = pto_ring_slot (&engine->rings[ring_index], engine->tails[ring_index]);

  pto_added_describe_obstacle (engine, oldest, engine->deadlock.held_up,
                               sizeof engine->deadlock.held_up);
  if (engine->deadlock.held_up[0] == '\0')
    return false;
  pto_engine_prove_deadlock (engine, what, ring_index, need, used);
  return true;
}

/* What a submit may be short of, and the setting that makes more of it. */
struct supply
{
  enum pto_param param;
  uint64_t setting;
  uint64_t wanted; /* a setting that may be enough */
  uint64_t used;
  uint64_t all;
};

/* map_used: nodes; the others are told by the ring. */
static struct supply
get_supply (const struct pto_engine *engine, enum pto_status what, const struct pto_ring *ring,
            uint32_t tail, uint32_t map_used)
{
  uint64_t n_nodes = pto_map_capacity (engine->map);
  uint32_t held = ring->head - tail;

  switch (what)
    {
    case PTO_STATUS_HEAP_RING:
      return (struct supply){ PTO_PARAMETER_HEAP, ring->heap.size, 2 * ring->heap.size,
                              ring->heap.used, ring->heap.size };
    case PTO_STATUS_DEP_POOL:
      return (struct supply){ PTO_PARAMETER_DEP_POOL, ring->edge_pool,
                              2 * (uint64_t) ring->edge_pool, ring->edge_head - ring->edge_tail,
                              ring->edge_pool };
    case PTO_STATUS_MAP_OVERFLOW:
      return (struct supply){ PTO_PARAMETER_MAP_POOL, n_nodes, 2 * n_nodes, map_used, n_nodes };
    default:
      if (held >= ring->window - 1)
        return (struct supply){ PTO_PARAMETER_TASK_WINDOW, ring->window,
                                2 * (uint64_t) ring->window, held, ring->window - 1 };
      /* Argument storage goes with the window, but for small ones. */
      return (struct supply){ PTO_PARAMETER_TASK_WINDOW, ring->window,
                              2 * ring->storage.size / PTO_STORAGE_PER_SLOT, ring->storage.used,
                              ring->storage.size };
    }
}

/* A setting that can be made: at least so much is needed, better as much as is wanted. More than
 * the most: none helps. */
static uint64_t
settle (enum pto_param param, uint64_t now, uint64_t least, uint64_t wanted)
{
  uint64_t most = pto_param_most (param);

  return wanted > most && least <= most && now < most ? most : wanted;
}

/* "task-window to 32": the setting that makes more of what is short. false: it is the most. */
static bool
describe_setting (const struct supply *supply, char *text, size_t size)
{
  uint64_t value = settle (supply->param, supply->setting, supply->setting + 1, supply->wanted);

  snprintf (text, size, _ ("%s to %" PRIu64), pto_param_name (supply->param), value);
  return value <= pto_param_most (supply->param);
}

static void
describe_knob (const struct supply *supply, char *text, size_t size)
{
  char setting[80];

  if (describe_setting (supply, setting, sizeof setting))
    snprintf (text, size, _ ("set %s or more"), setting);
  else
    snprintf (text, size, "%s", _ ("ask for less"));
}

void
pto_engine_describe_knob (const struct pto_engine *engine, enum pto_status what,
                          uint32_t ring_index, char *text, size_t size)
{
  struct supply supply
      = get_supply (engine, what, &engine->rings[ring_index], engine->tails[ring_index], 0);

  if (what == PTO_STATUS_SYNC_START)
    snprintf (text, size, "%s", pto_engine_more_places (engine));
  else
    describe_knob (&supply, text, size);
}

void
pto_engine_describe_shortage (const struct pto_engine *engine, const struct pto_blocked *blocked,
                              const struct pto_ring *ring, uint32_t tail, uint32_t map_used,
                              uint32_t n_held, struct pto_shortage *shortage)
{
  struct supply supply = get_supply (engine, blocked->what, ring, tail, map_used);
  char *what = shortage->what;
  size_t size = sizeof shortage->what;

  shortage->used = supply.used;
  shortage->all = supply.all;
  switch (blocked->what)
    {
    case PTO_STATUS_HEAP_RING:
      snprintf (what, size,
                "[HeapRing] BLOCKED: ring=%u, requesting %" PRIu64 " bytes, available=%" PRIu64
                ", top=%" PRIu64 ", tail=%" PRIu64,
                blocked->ring, blocked->need, supply.all - supply.used, ring->heap.head,
                ring->heap.tail);
      break;
    case PTO_STATUS_DEP_POOL:
      snprintf (what, size,
                "[DepPool] BLOCKED: ring=%u, requesting %" PRIu64 " of %" PRIu64 " edges",
                blocked->ring, blocked->need, supply.all);
      break;
    case PTO_STATUS_MAP_OVERFLOW:
      snprintf (what, size, "[TensorMap] BLOCKED: requesting %" PRIu64 " of %" PRIu64 " nodes",
                blocked->need, supply.all);
      break;
    case PTO_STATUS_SYNC_START:
      shortage->used = shortage->all = engine->line.n_cohorts;
      snprintf (what, size, "[Cluster] BLOCKED: no free %s, held=%u",
                pto_engine_cohort_name (engine), n_held);
      snprintf (shortage->knob, sizeof shortage->knob, "%s", pto_engine_more_places (engine));
      return;
    default:
      if (ring->head - tail < ring->window - 1)
        snprintf (what, size,
                  "[TaskRing] BLOCKED: ring=%u, requesting %" PRIu64 " bytes of arguments",
                  blocked->ring, blocked->need);
      else
        snprintf (what, size,
                  "[TaskRing] BLOCKED (Flow Control): ring=%u, current=%u, last_alive=%u",
                  blocked->ring, ring->head, tail);
      break;
    }
  describe_knob (&supply, shortage->knob, sizeof shortage->knob);
}

/* The lines of seed 000 section 4.5, with the ring and the setting that it leaves out. */
void
pto_engine_tell_blocked (struct pto_engine *engine)
{
  struct pto_blocked *blocked = &engine->blocked;
  uint64_t waited = pto_now (engine->exec) - blocked->since;
  struct pto_shortage shortage;
  char line[400];

  pto_engine_describe_shortage (engine, blocked, &engine->rings[blocked->ring],
                                engine->tails[blocked->ring], pto_map_used (engine->map),
                                engine->line.n_held, &shortage);
  snprintf (line, sizeof line,
            _ ("%s, active=%" PRIu64 "/%" PRIu64 " (%.1f%%), waited=%" PRIu64
               " ms: for submits to go on, %s"),
            shortage.what, shortage.used, shortage.all,
            100.0 * (double) shortage.used / (double) shortage.all, waited / 1000000,
            shortage.knob);
  while (blocked->notice_ns <= waited)
    blocked->notice_ns *= 2;
  blocked->told_at = blocked->since + blocked->notice_ns;
  engine->config.notice (engine->config.notice_data, line);
}

void
pto_engine_report_stuck (struct pto_engine *engine, enum pto_status what, uint32_t ring_index)
{
  const struct pto_ring *ring = &engine->rings[ring_index];
  uint32_t tail = engine->tails[ring_index];
  struct pto_slot *oldest = pto_ring_slot (ring, tail);
  uint32_t held = ring->head - tail;
  struct supply supply = get_supply (engine, what, ring, tail, pto_map_used (engine->map));
  uint64_t ms = engine->config.ring_patience_ns / 1000000;
  char full[200];
  char knob[80];
  bool is_more = describe_setting (&supply, knob, sizeof knob);

  if (what == PTO_STATUS_MAP_OVERFLOW)
    snprintf (
        full, sizeof full,
        _ ("the TensorMap has been full for %" PRIu64 " ms: %" PRIu64 " of %" PRIu64 " nodes"), ms,
        supply.used, supply.all);
  else
    snprintf (full, sizeof full,
              what == PTO_STATUS_HEAP_RING  ? _ ("heap ring %u has been full for %" PRIu64
                                                 " ms: %" PRIu64 " of %" PRIu64 " bytes")
              : what == PTO_STATUS_DEP_POOL ? _ ("dependency pool %u has been full for %" PRIu64
                                                 " ms: %" PRIu64 " of %" PRIu64 " edges")
              : held == ring->window - 1    ? _ ("task ring %u has been full for %" PRIu64
                                                 " ms: %" PRIu64 " of %" PRIu64 " usable slots")
                                            : _ ("task ring %u has been full for %" PRIu64
                                                 " ms: %" PRIu64 " of %" PRIu64 " bytes of arguments"),
              ring_index, ms, supply.used, supply.all);
  pto_engine_fail (
      engine, what,
      is_more
          ? P_ (
              "%s are held by %u task and none has finished meanwhile; the oldest, task %u of ring "
              "%u (%s), is %s: set %s or more, or timeout to more if it needs longer",
              "%s are held by %u tasks and none has finished meanwhile; the oldest, task %u of ring "
              "%u (%s), is %s: set %s or more, or timeout to more if it needs longer",
              held)
          : P_ (
              "%s are held by %u task and none has finished meanwhile; the oldest, task %u of ring "
              "%u (%s), is %s: set timeout to more if it needs longer",
              "%s are held by %u tasks and none has finished meanwhile; the oldest, task %u of ring "
              "%u (%s), is %s: set timeout to more if it needs longer",
              held),
      full, held, tail, ring_index, pto_engine_kernel_name (engine, oldest->kernel),
      _ (pto_task_state_name ((enum pto_task_state) pto_load_relaxed (&oldest->state))), knob);
}

static void
describe_scope (const struct pto_engine *engine, char *text, size_t size)
{
  const struct pto_scope *scope = &engine->deadlock.scope;

  if (scope->file != NULL)
    snprintf (text, size, _ ("the scope opened at %s:%d"), pto_base_name (scope->file),
              scope->line);
  else if (engine->deadlock.depth == 0)
    snprintf (text, size, _ ("the outermost scope (the orchestration itself)"));
  else
    snprintf (text, size, _ ("a scope %u deep"), engine->deadlock.depth);
}

/* Is there perhaps more to come than what was counted? A graph is counted as a whole. */
static bool
is_counted_in_part (const struct pto_engine *engine)
{
  return engine->deadlock.heard && !engine->deadlock.launched;
}

/* The settings are those of every ring: what the one that needs most needs. */
static uint32_t
window_needed (const struct pto_demand *demand)
{
  uint64_t slots = 0;

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      /* Argument storage goes with the window. Less than the largest piece of it is skipped at the
       * turn, and one unit stays free where the head has come round to the tail. */
      uint64_t storage = demand[r].peak[PTO_GOOD_STORAGE] + demand[r].largest[PTO_GOOD_STORAGE];
      uint64_t for_storage = (storage + PTO_STORAGE_PER_SLOT - 1) / PTO_STORAGE_PER_SLOT;

      slots = max_of (slots, demand[r].peak[PTO_GOOD_TASKS] + UINT64_C (1));
      if (storage > PTO_STORAGE_MIN && for_storage > slots)
        slots = for_storage;
    }
  return power_of_two_at_least (slots);
}

static uint64_t
heap_needed (const struct pto_engine *engine)
{
  const struct pto_demand *demand = engine->demand;
  /* Not a little more each time, where it is not known how much there is to come. */
  uint64_t bytes
      = is_counted_in_part (engine) ? 2 * engine->rings[engine->deadlock.ring].heap.size : 0;
  uint64_t most = 0;

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      /* As with storage, where several outputs are held; a single one begins at the beginning. */
      uint64_t peak = demand[r].peak[PTO_GOOD_HEAP];
      uint64_t one = peak > demand[r].largest[PTO_GOOD_HEAP] ? demand[r].largest[PTO_GOOD_HEAP] : 0;

      bytes = max_of (bytes, peak + one);
      most = max_of (most, peak);
    }
  /* Outputs get new memory up to half of what there is, however much that is. */
  if ((engine->before & PTO_BEFORE_RENAME) != 0)
    bytes *= 2;
  return settle (PTO_PARAMETER_HEAP, engine->rings[engine->deadlock.ring].heap.size,
                 engine->deadlock.oversized > most ? engine->deadlock.oversized : most,
                 align_up (bytes, 65536));
}

/* Dependencies on tasks that were retired by the time of a submit are not known: the next run may
 * find them. So it is twice what was counted, where there are such tasks. That is no bound: a run
 * that finds more fails again, and counts what it found. What depends on time
 * otherwise, whether outputs get new memory, has been counted as if it went either way. */
static uint64_t
edges_needed (const struct pto_engine *engine)
{
  const struct pto_deadlock *deadlock = &engine->deadlock;
  uint64_t n_tasks = engine->demand[deadlock->ring].peak[PTO_GOOD_TASKS];
  uint64_t pool = engine->rings[deadlock->ring].edge_pool;
  uint64_t edges = is_counted_in_part (engine) ? 2 * pool : pool + 1;

  edges = max_of (edges, deadlock->oversized);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    edges = max_of (edges, engine->demand[r].peak[PTO_GOOD_EDGES] * (deadlock->exact ? 1 : 2));
  if ((deadlock->incomplete || !deadlock->exact) && deadlock->tasks > 0)
    {
      /* A task that was only counted did not find the tasks that have retired. It may depend on as
       * many of them as a submitted task did. Later tasks have more to depend on: where the count
       * had to stop, it is twice as many. */
      uint64_t so_far = (uint64_t) deadlock->used + deadlock->need;
      uint64_t all = deadlock->incomplete
                         ? 4 * (so_far * (n_tasks + 1) / deadlock->tasks + 1)
                         : 2 * (so_far * n_tasks / (deadlock->tasks + UINT64_C (1)) + 1);

      edges = max_of (edges, all);
    }
  return settle (PTO_PARAMETER_DEP_POOL, pool,
                 deadlock->oversized > pool ? deadlock->oversized : pool + 1,
                 power_of_two_at_least (edges));
}

/* A task that is retired may leave a node behind for a reader that is not. */
static uint64_t
nodes_needed (const struct pto_engine *engine)
{
  uint64_t capacity = pto_map_capacity (engine->map);
  uint64_t least = is_counted_in_part (engine) ? 2 * capacity : capacity + 1;
  uint64_t nodes = 2 * (uint64_t) engine->deadlock.need + engine->deadlock.used;

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    nodes += 2 * engine->demand[r].peak[PTO_GOOD_NODES];
  return settle (PTO_PARAMETER_MAP_POOL, capacity,
                 engine->deadlock.oversized > capacity ? engine->deadlock.oversized : capacity + 1,
                 power_of_two_at_least (nodes > least ? nodes : least));
}

/* The setting that is enough. */
static uint64_t
setting_needed (const struct pto_engine *engine)
{
  switch (engine->deadlock.what)
    {
    case PTO_STATUS_TASK_RING:
      return window_needed (engine->demand);
    case PTO_STATUS_HEAP_RING:
      return heap_needed (engine);
    case PTO_STATUS_DEP_POOL:
      return edges_needed (engine);
    default:
      return nodes_needed (engine);
    }
}

/* " (all that was submitted holds at most 20 tasks in that ring at one time)": what the setting is
 * for; of edges and nodes nothing. */
static void
describe_held (const struct pto_engine *engine, char *text, size_t size)
{
  const struct pto_deadlock *deadlock = &engine->deadlock;
  const struct pto_demand *demand = &engine->demand[deadlock->ring];
  bool is_full = deadlock->tasks == engine->rings[deadlock->ring].window - 1;
  uint64_t held = deadlock->what == PTO_STATUS_HEAP_RING ? demand->peak[PTO_GOOD_HEAP]
                  : is_full                              ? demand->peak[PTO_GOOD_TASKS]
                                                         : demand->peak[PTO_GOOD_STORAGE];
  const char *what = deadlock->what == PTO_STATUS_HEAP_RING ? _ ("bytes")
                     : is_full                              ? P_ ("task", "tasks", held)
                                                            : _ ("bytes of arguments");

  text[0] = '\0';
  if (deadlock->what != PTO_STATUS_HEAP_RING && deadlock->what != PTO_STATUS_TASK_RING)
    return;
  snprintf (
      text, size,
      is_counted_in_part (engine)
          ? _ (" (this run holds at least %" PRIu64
               " %s in that ring at one time; its orchestration was told of the failure, and "
               "what it would have submitted from there on is not known)")
          : _ (" (all that was submitted holds at most %" PRIu64 " %s in that ring at one time)"),
      held, what);
}

/* One task takes more than there is. */
static void
describe_oversized (const struct pto_engine *engine, char *text, size_t size)
{
  uint32_t r = engine->deadlock.ring;
  const struct pto_ring *ring = &engine->rings[r];
  uint64_t need = engine->deadlock.oversized;
  uint32_t guard = engine->config.guard_bytes;

  switch (engine->deadlock.what)
    {
    case PTO_STATUS_HEAP_RING:
      if (guard > 0)
        snprintf (text, size,
                  _ ("task %" PRIu64 " needs %" PRIu64
                     " bytes for its outputs, each with a guard of %u bytes behind it and rounded "
                     "up to a multiple of %u; heap ring %u has %" PRIu64),
                  engine->submitted, need, guard, (unsigned) PTO_HEAP_ALIGN, r, ring->heap.size);
      else
        snprintf (text, size,
                  _ ("task %" PRIu64 " needs %" PRIu64
                     " bytes for its outputs, heap ring %u has %" PRIu64),
                  engine->submitted, need, r, ring->heap.size);
      break;
    case PTO_STATUS_DEP_POOL:
      snprintf (
          text, size,
          _ ("task %" PRIu64 " depends on %" PRIu64 " tasks, dependency pool %u has %u edges"),
          engine->submitted, need, r, ring->edge_pool);
      break;
    default:
      snprintf (text, size,
                _ ("task %" PRIu64 " needs %" PRIu64 " nodes of the TensorMap, which has %u"),
                engine->submitted, need, pto_map_capacity (engine->map));
      break;
    }
}

/* No setting is enough. */
static void
describe_beyond (const struct pto_engine *engine, enum pto_param param, char *text, size_t size)
{
  if (engine->deadlock.oversized > pto_param_most (param))
    snprintf (
        text, size,
        _ ("task %" PRIu64 " needs more than the largest %s, %" PRIu64 ": submit smaller tasks"),
        engine->submitted, pto_param_name (param), pto_param_most (param));
  else
    snprintf (text, size,
              _ ("ring %u: the run needs more than the largest %s, %" PRIu64
                 ": end scopes earlier, or submit less in each"),
              engine->deadlock.ring, pto_param_name (param), pto_param_most (param));
}

/* What keeps the ring's tasks. */
static void
describe_holder (const struct pto_engine *engine, const char *scope, char *text, size_t size)
{
  if (engine->deadlock.held_up[0] != '\0')
    snprintf (text, size, _ ("tasks that come after one that is not published"));
  else if (engine->deadlock.launched)
    snprintf (text, size,
              _ ("the graph, whose task %u%s is yet to come and uses the oldest one's memory"),
              engine->deadlock.user, engine->deadlock.place);
  else
    snprintf (text, size, _ ("%s, which is still open"), scope);
}

static void
describe_oldest (const struct pto_engine *engine, char *text, size_t size)
{
  const struct pto_deadlock *deadlock = &engine->deadlock;
  uint32_t local = PTO_TASK_LOCAL (deadlock->task);
  uint32_t ring = PTO_TASK_RING (deadlock->task);
  const char *kernel = pto_engine_kernel_name (engine, deadlock->kernel);

  if (deadlock->held_up[0] != '\0')
    snprintf (
        text, size,
        _ ("Oldest task %u of ring %u (%s) cannot be freed, because %s: publish it earlier, or "
           "make room."),
        local, ring, kernel, deadlock->held_up);
  else
    snprintf (text, size, _ ("Oldest task %u of ring %u (%s) is %s%s."), local, ring, kernel,
              !deadlock->added ? _ (pto_task_state_name (deadlock->state))
              : engine->config.build_first
                  ? _ ("waiting for the end of its scope (build-mode is 0)")
                  : _ ("not published"),
              deadlock->launched ? "" : _ ("; only that scope's end can free it"));
}

/* What is full, and of what. */
static void
describe_full (const struct pto_engine *engine, char *text, size_t size)
{
  const struct pto_deadlock *deadlock = &engine->deadlock;
  const struct pto_ring *ring = &engine->rings[deadlock->ring];
  uint32_t first = PTO_TASK_LOCAL (deadlock->task);
  uint32_t last = first + deadlock->tasks - 1;
  char scope[160];
  char holder[360];

  describe_scope (engine, scope, sizeof scope);
  describe_holder (engine, scope, holder, sizeof holder);
  switch (deadlock->what)
    {
    case PTO_STATUS_TASK_RING:
      if (deadlock->tasks == ring->window - 1)
        snprintf (text, size,
                  _ ("deadlock in task ring %u: all %u usable slots (window %u, tasks %u to %u) "
                     "are held by %s."),
                  deadlock->ring, ring->window - 1, ring->window, first, last, holder);
      else
        snprintf (
            text, size,
            _ ("deadlock in task ring %u: %" PRIu64 " of %" PRIu64
               " bytes for the arguments of its tasks (window %u, tasks %u to %u) are held by "
               "%s."),
            deadlock->ring, deadlock->storage, ring->storage.size, ring->window, first, last,
            holder);
      break;
    case PTO_STATUS_HEAP_RING:
      snprintf (text, size,
                _ ("deadlock in heap ring %u: %" PRIu64 " of %" PRIu64 " bytes are held by %s."),
                deadlock->ring, deadlock->heap, ring->heap.size, holder);
      break;
    case PTO_STATUS_DEP_POOL:
      snprintf (text, size,
                _ ("deadlock in dependency pool %u: %u of %u edges are in use, %u more are needed, "
                   "and all are held by %s."),
                deadlock->ring, deadlock->used, ring->edge_pool, deadlock->need, holder);
      break;
    default:
      snprintf (
          text, size,
          deadlock->held_up[0] != '\0'
              ? _ ("deadlock in the TensorMap: %u of %u nodes are in use, %u more are needed, and "
                   "all are held by %s.")
              : _ ("deadlock in the TensorMap: %u of %u nodes are in use, %u more are needed, and "
                   "every task is held by an open scope (%s)."),
          deadlock->used, pto_map_capacity (engine->map), deadlock->need,
          deadlock->held_up[0] != '\0' ? holder : scope);
      break;
    }
}

static void
describe_deadlock (const struct pto_engine *engine, char *text, size_t size)
{
  const struct pto_deadlock *deadlock = &engine->deadlock;
  const struct pto_ring *ring = &engine->rings[deadlock->ring];
  enum pto_param param = get_supply (engine, deadlock->what, ring, ring->head, 0).param;
  uint64_t needed = setting_needed (engine);
  char full[900];
  char oldest[560];
  char held[400];

  if (needed > pto_param_most (param))
    {
      describe_beyond (engine, param, text, size);
      return;
    }
  describe_held (engine, held, sizeof held);
  if (deadlock->oversized > 0)
    {
      describe_oversized (engine, full, sizeof full);
      snprintf (text, size, _ ("%s: set %s to %" PRIu64 " or more%s"), full, pto_param_name (param),
                needed, held);
      return;
    }
  describe_full (engine, full, sizeof full);
  describe_oldest (engine, oldest, sizeof oldest);
  snprintf (text, size, _ ("%s %s Set %s to %" PRIu64 " or more%s."), full, oldest,
            pto_param_name (param), needed, held);
}

/* The words of now, for an orchestration that asks before its end. */
static void
tell_first (struct pto_engine *engine)
{
  bool heard = engine->deadlock.heard;
  uint64_t held = 0;
  char text[sizeof engine->report.message];

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    held += engine->rings[r].head - engine->tails[r];
  engine->deadlock.exact = held == engine->submitted;
  pto_engine_note_peaks (engine);
  engine->deadlock.heard = true;
  describe_deadlock (engine, text, sizeof text);
  engine->deadlock.heard = heard;
  pto_engine_fail (engine, engine->deadlock.what, "%s", text);
}

void
pto_engine_prove_oversized (struct pto_engine *engine, enum pto_status what, uint32_t ring_index,
                            uint64_t need)
{
  engine->deadlock.what = what;
  engine->deadlock.ring = ring_index;
  engine->deadlock.oversized = need;
  tell_first (engine);
}

/* The final words, once the orchestration has been counted to its end. */
void
pto_engine_report_deadlock (struct pto_engine *engine)
{
  describe_deadlock (engine, engine->report.message, sizeof engine->report.message);
}
