/* deadlock.c: how is it told that a run can not go on, and what would have been enough?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The submitter proves it (backpressure.c: the oldest task of a full ring is held by a scope that
 * only the submitter can end) and goes on with submits that only count; at the end of the run this
 * file writes the final words.
 */
#include "deadlock.h"

#include "exec/pto-atomic.h"
#include "exec/translate.h"
#include "bits.h"
#include "deadlock-demand.h"
#include "manual-tasks.h"
#include "parameters.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
describe_knob (const struct pto_engine *engine, enum pto_status what, const struct pto_ring *ring,
               uint32_t tail, char *text, size_t size)
{
  enum pto_param param;
  uint64_t now;
  uint64_t value;

  switch (what)
    {
    case PTO_STATUS_HEAP_RING:
      param = PTO_PARAMETER_HEAP;
      now = ring->heap.size;
      value = settle (param, now, now + 1, 2 * now);
      snprintf (text, size, _ ("heap to %" PRIu64), value);
      break;
    case PTO_STATUS_DEP_POOL:
      param = PTO_PARAMETER_DEP_POOL;
      now = ring->edge_pool;
      value = settle (param, now, now + 1, 2 * now);
      snprintf (text, size, _ ("dep-pool to %" PRIu64), value);
      break;
    case PTO_STATUS_MAP_OVERFLOW:
      param = PTO_PARAMETER_MAP_POOL;
      now = pto_map_capacity (engine->map);
      value = settle (param, now, now + 1, 2 * now);
      snprintf (text, size, _ ("map-pool to %" PRIu64), value);
      break;
    default:
      /* Argument storage goes with the window, but for small ones. */
      param = PTO_PARAMETER_TASK_WINDOW;
      now = ring->window;
      value = settle (param, now, now + 1,
                      ring->head - tail == ring->window - 1
                          ? 2 * now
                          : 2 * ring->storage.size / PTO_STORAGE_PER_SLOT);
      snprintf (text, size, _ ("task-window to %" PRIu64), value);
      break;
    }
  return value <= pto_param_most (param);
}

void
pto_engine_describe_knob (const struct pto_engine *engine, enum pto_status what,
                          uint32_t ring_index, char *text, size_t size)
{
  char setting[80];

  if (what == PTO_STATUS_SYNC_START)
    {
      snprintf (text, size, "%s", pto_engine_more_places (engine));
      return;
    }
  if (describe_knob (engine, what, &engine->rings[ring_index], engine->tails[ring_index], setting,
                     sizeof setting))
    snprintf (text, size, _ ("set %s or more"), setting);
  else
    snprintf (text, size, "%s", _ ("ask for less"));
}

void
pto_engine_describe_shortage (const struct pto_engine *engine, const struct pto_blocked *blocked,
                              const struct pto_ring *ring, uint32_t tail, uint32_t map_used,
                              uint32_t n_held, struct pto_shortage *shortage)
{
  uint32_t held = ring->head - tail;
  char *what = shortage->what;
  size_t size = sizeof shortage->what;
  char setting[60];

  shortage->used = held;
  shortage->all = ring->window - 1;
  switch (blocked->what)
    {
    case PTO_STATUS_HEAP_RING:
      shortage->used = ring->heap.used;
      shortage->all = ring->heap.size;
      snprintf (what, size,
                "[HeapRing] BLOCKED: ring=%u, requesting %" PRIu64 " bytes, available=%" PRIu64
                ", top=%" PRIu64 ", tail=%" PRIu64,
                blocked->ring, blocked->need, shortage->all - shortage->used, ring->heap.head,
                ring->heap.tail);
      break;
    case PTO_STATUS_DEP_POOL:
      shortage->used = ring->edge_head - ring->edge_tail;
      shortage->all = ring->edge_pool;
      snprintf (what, size,
                "[DepPool] BLOCKED: ring=%u, requesting %" PRIu64 " of %" PRIu64 " edges",
                blocked->ring, blocked->need, shortage->all);
      break;
    case PTO_STATUS_MAP_OVERFLOW:
      shortage->used = map_used;
      shortage->all = pto_map_capacity (engine->map);
      snprintf (what, size, "[TensorMap] BLOCKED: requesting %" PRIu64 " of %" PRIu64 " nodes",
                blocked->need, shortage->all);
      break;
    case PTO_STATUS_SYNC_START:
      shortage->used = shortage->all = engine->line.n_cohorts;
      snprintf (what, size, "[Cluster] BLOCKED: no free %s, held=%u",
                pto_engine_cohort_name (engine), n_held);
      snprintf (shortage->knob, sizeof shortage->knob, "%s", pto_engine_more_places (engine));
      return;
    default:
      if (held < shortage->all)
        {
          shortage->used = ring->storage.used;
          shortage->all = ring->storage.size;
          snprintf (what, size,
                    "[TaskRing] BLOCKED: ring=%u, requesting %" PRIu64 " bytes of arguments",
                    blocked->ring, blocked->need);
        }
      else
        snprintf (what, size,
                  "[TaskRing] BLOCKED (Flow Control): ring=%u, current=%u, last_alive=%u",
                  blocked->ring, ring->head, tail);
      break;
    }
  if (describe_knob (engine, blocked->what, ring, tail, setting, sizeof setting))
    snprintf (shortage->knob, sizeof shortage->knob, _ ("set %s or more"), setting);
  else
    snprintf (shortage->knob, sizeof shortage->knob, "%s", _ ("ask for less"));
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
  uint64_t ms = engine->config.ring_patience_ns / 1000000;
  char full[200];
  char knob[80];
  bool is_more;

  switch (what)
    {
    case PTO_STATUS_HEAP_RING:
      snprintf (
          full, sizeof full,
          _ ("heap ring %u has been full for %" PRIu64 " ms: %" PRIu64 " of %" PRIu64 " bytes"),
          ring_index, ms, ring->heap.used, ring->heap.size);
      break;
    case PTO_STATUS_DEP_POOL:
      snprintf (full, sizeof full,
                _ ("dependency pool %u has been full for %" PRIu64 " ms: %u of %u edges"),
                ring_index, ms, ring->edge_head - ring->edge_tail, ring->edge_pool);
      break;
    case PTO_STATUS_MAP_OVERFLOW:
      snprintf (full, sizeof full,
                _ ("the TensorMap has been full for %" PRIu64 " ms: %u of %u nodes"), ms,
                pto_map_used (engine->map), pto_map_capacity (engine->map));
      break;
    default:
      if (held == ring->window - 1)
        snprintf (full, sizeof full,
                  _ ("task ring %u has been full for %" PRIu64 " ms: %u of %u usable slots"),
                  ring_index, ms, held, held);
      else
        snprintf (full, sizeof full,
                  _ ("task ring %u has been full for %" PRIu64 " ms: %" PRIu64 " of %" PRIu64
                     " bytes of arguments"),
                  ring_index, ms, ring->storage.used, ring->storage.size);
      break;
    }
  is_more = describe_knob (engine, what, ring, tail, knob, sizeof knob);
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
      uint64_t storage = demand[r].peak_storage + demand[r].largest_storage;
      uint64_t for_storage = (storage + PTO_STORAGE_PER_SLOT - 1) / PTO_STORAGE_PER_SLOT;

      if (demand[r].peak_held + UINT64_C (1) > slots)
        slots = demand[r].peak_held + UINT64_C (1);
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
      uint64_t one = demand[r].peak_heap > demand[r].largest_heap ? demand[r].largest_heap : 0;

      if (demand[r].peak_heap + one > bytes)
        bytes = demand[r].peak_heap + one;
      if (demand[r].peak_heap > most)
        most = demand[r].peak_heap;
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
  const struct pto_demand *demand = &engine->demand[deadlock->ring];
  uint64_t pool = engine->rings[deadlock->ring].edge_pool;
  uint64_t edges = is_counted_in_part (engine) ? 2 * pool : pool + 1;

  if (deadlock->oversized > edges)
    edges = deadlock->oversized;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    if (engine->demand[r].peak_edges * (deadlock->exact ? 1 : 2) > edges)
      edges = engine->demand[r].peak_edges * (deadlock->exact ? 1 : 2);
  if ((deadlock->incomplete || !deadlock->exact) && deadlock->tasks > 0)
    {
      /* A task that was only counted did not find the tasks that have retired. It may depend on as
       * many of them as a submitted task did. Later tasks have more to depend on: where the count
       * had to stop, it is twice as many. */
      uint64_t so_far = (uint64_t) deadlock->used + deadlock->need;
      uint64_t all = deadlock->incomplete
                         ? 4 * (so_far * (demand->peak_held + 1) / deadlock->tasks + 1)
                         : 2 * (so_far * demand->peak_held / (deadlock->tasks + UINT64_C (1)) + 1);

      if (all > edges)
        edges = all;
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
    nodes += 2 * engine->demand[r].peak_nodes;
  return settle (PTO_PARAMETER_MAP_POOL, capacity,
                 engine->deadlock.oversized > capacity ? engine->deadlock.oversized : capacity + 1,
                 power_of_two_at_least (nodes > least ? nodes : least));
}

/* "(all that was submitted holds at most 20 tasks in that ring at one time)": what the setting is
 * for. */
static void
describe_held (const struct pto_engine *engine, uint64_t held, const char *what, char *text,
               size_t size)
{
  snprintf (
      text, size,
      is_counted_in_part (engine)
          ? _ ("(this run holds at least %" PRIu64
               " %s in that ring at one time; its orchestration was told of the failure, and "
               "what it would have submitted from there on is not known)")
          : _ ("(all that was submitted holds at most %" PRIu64 " %s in that ring at one time)"),
      held, what);
}

/* One task takes more than there is. */
static void
describe_oversized (const struct pto_engine *engine, char *text, size_t size)
{
  uint32_t r = engine->deadlock.ring;
  uint64_t need = engine->deadlock.oversized;
  uint32_t guard = engine->config.guard_bytes;
  char most[400];

  switch (engine->deadlock.what)
    {
    case PTO_STATUS_HEAP_RING:
      describe_held (engine, engine->demand[r].peak_heap, _ ("bytes"), most, sizeof most);
      if (guard > 0)
        snprintf (text, size,
                  _ ("task %" PRIu64 " needs %" PRIu64
                     " bytes for its outputs, each with a guard of %u bytes behind it and rounded "
                     "up to a multiple of %u; heap ring %u has %" PRIu64 ": set heap to %" PRIu64
                     " or more %s"),
                  engine->submitted, need, guard, (unsigned) PTO_HEAP_ALIGN, r,
                  engine->rings[r].heap.size, heap_needed (engine), most);
      else
        snprintf (
            text, size,
            _ ("task %" PRIu64 " needs %" PRIu64 " bytes for its outputs, heap ring %u has %" PRIu64
               ": set heap to %" PRIu64 " or more %s"),
            engine->submitted, need, r, engine->rings[r].heap.size, heap_needed (engine), most);
      break;
    case PTO_STATUS_DEP_POOL:
      snprintf (text, size,
                _ ("task %" PRIu64 " depends on %" PRIu64
                   " tasks, dependency pool %u has %u edges: set dep-pool to %" PRIu64 " or more"),
                engine->submitted, need, r, engine->rings[r].edge_pool, edges_needed (engine));
      break;
    default:
      snprintf (text, size,
                _ ("task %" PRIu64 " needs %" PRIu64
                   " nodes of the TensorMap, which has %u: set map-pool to %" PRIu64 " or more"),
                engine->submitted, need, pto_map_capacity (engine->map), nodes_needed (engine));
      break;
    }
}

/* Returns false if a setting is enough. */
static bool
describe_beyond (const struct pto_engine *engine, char *text, size_t size)
{
  const struct pto_deadlock *deadlock = &engine->deadlock;
  enum pto_param param;
  uint64_t needed;

  switch (deadlock->what)
    {
    case PTO_STATUS_TASK_RING:
      param = PTO_PARAMETER_TASK_WINDOW;
      needed = window_needed (engine->demand);
      break;
    case PTO_STATUS_HEAP_RING:
      param = PTO_PARAMETER_HEAP;
      needed = heap_needed (engine);
      break;
    case PTO_STATUS_DEP_POOL:
      param = PTO_PARAMETER_DEP_POOL;
      needed = edges_needed (engine);
      break;
    default:
      param = PTO_PARAMETER_MAP_POOL;
      needed = nodes_needed (engine);
      break;
    }
  if (needed <= pto_param_most (param))
    return false;
  if (deadlock->oversized > pto_param_most (param))
    snprintf (
        text, size,
        _ ("task %" PRIu64 " needs more than the largest %s, %" PRIu64 ": submit smaller tasks"),
        engine->submitted, pto_param_name (param), pto_param_most (param));
  else
    snprintf (text, size,
              _ ("ring %u: the run needs more than the largest %s, %" PRIu64
                 ": end scopes earlier, or submit less in each"),
              deadlock->ring, pto_param_name (param), pto_param_most (param));
  return true;
}

static void
describe_deadlock (const struct pto_engine *engine, char *text, size_t size)
{
  uint32_t r = engine->deadlock.ring;
  const struct pto_ring *ring = &engine->rings[r];
  const struct pto_demand *demand = &engine->demand[r];
  char scope[160];
  char holder[360];
  char oldest[560];
  char most[400];

  if (describe_beyond (engine, text, size))
    return;
  if (engine->deadlock.oversized > 0)
    {
      describe_oversized (engine, text, size);
      return;
    }
  describe_scope (engine, scope, sizeof scope);
  if (engine->deadlock.held_up[0] != '\0')
    snprintf (holder, sizeof holder, _ ("tasks that come after one that is not published"));
  else if (engine->deadlock.launched)
    snprintf (holder, sizeof holder,
              _ ("the graph, whose task %u%s is yet to come and uses the oldest one's memory"),
              engine->deadlock.user, engine->deadlock.place);
  else
    snprintf (holder, sizeof holder, _ ("%s, which is still open"), scope);
  if (engine->deadlock.held_up[0] != '\0')
    snprintf (
        oldest, sizeof oldest,
        _ ("Oldest task %u of ring %u (%s) cannot be freed, because %s: publish it earlier, or "
           "make room."),
        PTO_TASK_LOCAL (engine->deadlock.task), PTO_TASK_RING (engine->deadlock.task),
        pto_engine_kernel_name (engine, engine->deadlock.kernel), engine->deadlock.held_up);
  else
    snprintf (oldest, sizeof oldest, _ ("Oldest task %u of ring %u (%s) is %s%s."),
              PTO_TASK_LOCAL (engine->deadlock.task), PTO_TASK_RING (engine->deadlock.task),
              pto_engine_kernel_name (engine, engine->deadlock.kernel),
              engine->deadlock.added
                  ? engine->config.build_first
                        ? _ ("waiting for the end of its scope (build-mode is 0)")
                        : _ ("not published")
                  : _ (pto_task_state_name (engine->deadlock.state)),
              engine->deadlock.launched ? "" : _ ("; only that scope's end can free it"));
  switch (engine->deadlock.what)
    {
    case PTO_STATUS_TASK_RING:
      {
        uint32_t window = window_needed (engine->demand);

        if (engine->deadlock.tasks == ring->window - 1)
          {
            describe_held (engine, demand->peak_held, P_ ("task", "tasks", demand->peak_held), most,
                           sizeof most);
            snprintf (
                text, size,
                _ ("deadlock in task ring %u: all %u usable slots (window %u, tasks %u to %u) "
                   "are held by %s. %s Set task-window to %u or more %s."),
                r, ring->window - 1, ring->window, PTO_TASK_LOCAL (engine->deadlock.task),
                PTO_TASK_LOCAL (engine->deadlock.task) + engine->deadlock.tasks - 1, holder, oldest,
                window, most);
            break;
          }
        describe_held (engine, demand->peak_storage, _ ("bytes of arguments"), most, sizeof most);
        snprintf (
            text, size,
            _ ("deadlock in task ring %u: %" PRIu64 " of %" PRIu64
               " bytes for the arguments of its tasks (window %u, tasks %u to %u) are held by "
               "%s. %s Set task-window to %u or more %s."),
            r, engine->deadlock.storage, ring->storage.size, ring->window,
            PTO_TASK_LOCAL (engine->deadlock.task),
            PTO_TASK_LOCAL (engine->deadlock.task) + engine->deadlock.tasks - 1, holder, oldest,
            window, most);
        break;
      }
    case PTO_STATUS_HEAP_RING:
      describe_held (engine, demand->peak_heap, _ ("bytes"), most, sizeof most);
      snprintf (text, size,
                _ ("deadlock in heap ring %u: %" PRIu64 " of %" PRIu64 " bytes are held by %s. %s "
                   "Set heap to %" PRIu64 " or more %s."),
                r, engine->deadlock.heap, ring->heap.size, holder, oldest, heap_needed (engine),
                most);
      break;
    case PTO_STATUS_DEP_POOL:
      snprintf (
          text, size,
          _ ("deadlock in dependency pool %u: %u of %u edges are in use, %u more are needed, and all are held by %s. "
             "%s Set dep-pool to %" PRIu64 " or more."),
          r, engine->deadlock.used, ring->edge_pool, engine->deadlock.need, holder, oldest,
          edges_needed (engine));
      break;
    default:
      snprintf (
          text, size,
          engine->deadlock.held_up[0] != '\0'
              ? _ (
                  "deadlock in the TensorMap: %u of %u nodes are in use, %u more are needed, and all are held by %s. "
                  "%s Set map-pool to %" PRIu64 " or more.")
              : _ (
                  "deadlock in the TensorMap: %u of %u nodes are in use, %u more are needed, and every task is held by an "
                  "open scope (%s). %s Set map-pool to %" PRIu64 " or more."),
          engine->deadlock.used, pto_map_capacity (engine->map), engine->deadlock.need,
          engine->deadlock.held_up[0] != '\0' ? holder : scope, oldest, nodes_needed (engine));
      break;
    }
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
