/* deadlock.c: how is it told that a run can not go on, and what would have been enough?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The submitter proves it (room.c: the oldest task of a full ring is held by a scope that only
 * the submitter can end) and goes on with submits that only count; at the end of the run this file
 * writes the final words.
 */
#include "deadlock.h"

#include "../exec/pto_atomic.h"
#include "../exec/text.h"
#include "added.h"
#include "bits.h"

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
  pto_engine_fail (engine, what, _ ("deadlock in ring %u"), ring_index);
}

/* "task-window to 32": the setting that makes more of what is short. */
static void
describe_knob (const struct pto_engine *engine, enum pto_status what, const struct pto_ring *ring,
               uint32_t tail, char *text, size_t size)
{
  switch (what)
    {
    case PTO_STATUS_HEAP_RING:
      snprintf (text, size, _ ("heap to %" PRIu64), 2 * ring->heap.size);
      break;
    case PTO_STATUS_DEP_POOL:
      snprintf (text, size, _ ("dep-pool to %" PRIu64), 2 * (uint64_t) ring->edge_pool);
      break;
    case PTO_STATUS_MAP_OVERFLOW:
      snprintf (text, size, _ ("map-pool to %" PRIu64),
                2 * (uint64_t) pto_map_capacity (engine->map));
      break;
    default:
      /* Argument storage goes with the window, but for small ones. */
      snprintf (text, size, _ ("task-window to %" PRIu64),
                ring->head - tail == ring->window - 1
                    ? 2 * (uint64_t) ring->window
                    : 2 * ring->storage.size / PTO_STORAGE_PER_SLOT);
      break;
    }
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
      snprintf (shortage->knob, sizeof shortage->knob, "%s", _ (engine->config.more_places));
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
  describe_knob (engine, blocked->what, ring, tail, setting, sizeof setting);
  snprintf (shortage->knob, sizeof shortage->knob, _ ("set %s or more"), setting);
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
  char held_up[400];

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
  describe_knob (engine, what, ring, tail, knob, sizeof knob);
  pto_added_describe (engine, held_up, sizeof held_up);
  if (held_up[0] != '\0')
    {
      pto_engine_fail (engine, what,
                       P_ ("%s are held by %u task and none has finished meanwhile, since %s: "
                           "publish what others wait for first, or set %s or more",
                           "%s are held by %u tasks and none has finished meanwhile, since %s: "
                           "publish what others wait for first, or set %s or more",
                           held),
                       full, held, held_up, knob);
      return;
    }
  pto_engine_fail (
      engine, what,
      P_ ("%s are held by %u task and none has finished meanwhile; the oldest, task %u (%s), is "
          "%s: set %s or more, or timeout to more if it needs longer",
          "%s are held by %u tasks and none has finished meanwhile; the oldest, task %u (%s), is "
          "%s: set %s or more, or timeout to more if it needs longer",
          held),
      full, held, tail, pto_engine_kernel_name (engine, oldest->kernel),
      _ (pto_task_state_name ((enum pto_task_state) pto_load_relaxed (&oldest->state))), knob);
}

static void
describe_scope (const struct pto_engine *engine, char *text, size_t size)
{
  const struct pto_scope *scope = &engine->deadlock.scope;

  if (scope->file != NULL)
    {
      const char *slash = strrchr (scope->file, '/');

      snprintf (text, size, _ ("the scope opened at %s:%d"),
                slash != NULL ? slash + 1 : scope->file, scope->line);
    }
  else if (engine->deadlock.depth == 0)
    snprintf (text, size, _ ("the outermost scope (the orchestration itself)"));
  else
    snprintf (text, size, _ ("a scope %u deep"), engine->deadlock.depth);
}

void
pto_engine_note_peaks (struct pto_engine *engine)
{
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      struct pto_demand *demand = &engine->demand[r];

      if (demand->held > demand->peak_held)
        demand->peak_held = demand->held;
      if (demand->heap > demand->peak_heap)
        demand->peak_heap = demand->heap;
      if (demand->storage > demand->peak_storage)
        demand->peak_storage = demand->storage;
    }
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

  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      /* As with storage, where several outputs are held; a single one begins at the beginning. */
      uint64_t one = demand[r].peak_heap > demand[r].largest_heap ? demand[r].largest_heap : 0;

      if (demand[r].peak_heap + one > bytes)
        bytes = demand[r].peak_heap + one;
    }
  return align_up (bytes, 65536);
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

/* The final words, once the orchestration has been counted to its end. */
void
pto_engine_report_deadlock (struct pto_engine *engine)
{
  uint32_t r = engine->deadlock.ring;
  const struct pto_ring *ring = &engine->rings[r];
  const struct pto_demand *demand = &engine->demand[r];
  char scope[160];
  char holder[360];
  char oldest[160];
  char most[240];
  char *text = engine->report.message;
  size_t size = sizeof engine->report.message;

  describe_scope (engine, scope, sizeof scope);
  if (engine->deadlock.launched)
    snprintf (holder, sizeof holder,
              _ ("the graph, whose task %u%s is yet to come and uses the oldest one's memory"),
              engine->deadlock.user, engine->deadlock.place);
  else
    snprintf (holder, sizeof holder, _ ("%s, which is still open"), scope);
  snprintf (oldest, sizeof oldest, _ ("Oldest task %u (%s) is %s%s."),
            PTO_TASK_LOCAL (engine->deadlock.task),
            pto_engine_kernel_name (engine, engine->deadlock.kernel),
            engine->deadlock.added ? engine->config.build_first
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
      if (engine->deadlock.oversized > 0)
        snprintf (text, size,
                  _ ("task %" PRIu64 " needs %" PRIu64
                     " bytes for its outputs, heap ring %u has %" PRIu64 ": set heap to %" PRIu64
                     " or more %s"),
                  engine->submitted, engine->deadlock.oversized, r, ring->heap.size,
                  heap_needed (engine), most);
      else
        snprintf (
            text, size,
            _ ("deadlock in heap ring %u: %" PRIu64 " of %" PRIu64 " bytes are held by %s. %s "
               "Set heap to %" PRIu64 " or more %s."),
            r, engine->deadlock.heap, ring->heap.size, holder, oldest, heap_needed (engine), most);
      break;
    case PTO_STATUS_DEP_POOL:
      {
        /* Edges of tasks not yet submitted are not known. Four times as many a task as so far:
         * later tasks have more to depend on, and a pool that is not used costs nothing. */
        uint64_t edges = (uint64_t) engine->deadlock.used + engine->deadlock.need;
        uint64_t tasks = engine->deadlock.tasks > 0 ? engine->deadlock.tasks : 1;
        uint64_t all = 4 * (edges * (demand->peak_held + 1) + tasks - 1) / tasks;

        snprintf (
            text, size,
            _ ("deadlock in dependency pool %u: %u of %u edges are in use, %u more are needed, and all are held by %s. "
               "%s Set dep-pool to %u or more."),
            r, engine->deadlock.used, ring->edge_pool, engine->deadlock.need, holder, oldest,
            power_of_two_at_least (all + engine->deadlock.need > ring->edge_pool
                                       ? all + engine->deadlock.need
                                       : (uint64_t) ring->edge_pool + 1));
        break;
      }
    default:
      {
        uint64_t total = 0;
        /* Not 0: somebody has the nodes. */
        uint64_t tasks = engine->submitted;

        for (uint32_t i = 0; i < PTO_RINGS; i++)
          total += engine->demand[i].peak_held;
        snprintf (
            text, size,
            _ ("deadlock in the TensorMap: %u of %u nodes are in use, %u more are needed, and every task is held by an "
               "open scope (%s). %s Set map-pool to %u or more."),
            engine->deadlock.used, pto_map_capacity (engine->map), engine->deadlock.need, scope,
            oldest,
            power_of_two_at_least (2 * (engine->deadlock.used + engine->deadlock.need)
                                   * (total + tasks) / tasks));
        break;
      }
    }
}
