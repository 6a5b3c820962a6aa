/* inspect.c: what does a run do, and what does it wait for, as somebody sees it who has no part in
 * it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "inspect.h"

#include "completion.h"
#include "core-placement.h"
#include "deadlock.h"
#include "inspect-read.h"
#include "ready-queue.h"
#include "run-machine.h"

#include <time.h>

/* For 100 ms, about. */
#define LOCK_TRIES 1000u
#define LOCK_PAUSE_NS 100000
/* Of a producer's consumers: a list that is longer is believed to have the one in question. */
#define LIST_MAX 256u
/* Slots that are copied together. */
#define SLOTS 64u

_Static_assert(PTO_LOOK_QUEUES == PTO_QUEUES_MAX && PTO_LOOK_QUEUES == PTO_QUEUE_LINE,
               "as places have it");

bool
pto_look_take (pthread_mutex_t *lock)
{
  for (uint32_t i = 0; i < LOCK_TRIES; i++)
    {
      if (pthread_mutex_trylock (lock) == 0)
        return true;
      nanosleep (&(struct timespec){ .tv_nsec = LOCK_PAUSE_NS }, NULL);
    }
  return false;
}

bool
pto_look_begin (struct pto_machine *machine)
{
  return pto_look_take (&machine->door.lock);
}

void
pto_look_end (struct pto_machine *machine)
{
  pthread_mutex_unlock (&machine->door.lock);
}

static void
describe_task (const struct pto_engine *engine, const struct pto_slot *slot, uint32_t kernel,
               struct pto_look_task *task)
{
  task->id = slot->id;
  task->state = slot->state;
  task->state_name = pto_task_state_name ((enum pto_task_state) task->state);
  snprintf (task->kernel, sizeof task->kernel, "%s", pto_engine_kernel_name (engine, kernel));
}

/* --- slots --- */

static uint32_t
first_of (const struct pto_ring *ring)
{
  return atomic_load_explicit (&ring->shared->last_task_alive, memory_order_relaxed);
}

/* Acquire: pairs with pto_ring_publish(): what is before it is filled. */
static uint32_t
next_of (const struct pto_ring *ring)
{
  return atomic_load_explicit (&ring->shared->current_task_index, memory_order_acquire);
}

/* Behind the words of a slot: they are all of that task if it is alive still. */
static bool
is_alive (const struct pto_ring *ring, uint32_t local)
{
  atomic_thread_fence (memory_order_acquire);
  return (int32_t) (local - first_of (ring)) >= 0;
}

/* Of a party the first member's, which is the one that it is named by elsewhere. */
static uint32_t
kernel_of (const struct pto_slot *slot)
{
  if (slot->kernel == PTO_KERNEL_NONE)
    return PTO_KERNEL_NONE;
  if (slot->queue == PTO_QUEUE_LINE)
    return pto_peek (&slot->party->members[0].need.kernel);
  return slot->kernel & ~(PTO_KERNEL_IF | PTO_KERNEL_PARTS);
}

/* Is the party one of this ring's storage, as far as its members' head? It is not if the slot was
 * written anew meanwhile. */
static bool
is_in_storage (const struct pto_ring *ring, const void *at, uint64_t bytes)
{
  uint64_t offset = (uint64_t) ((const uint8_t *) at - ring->storage.base);

  return offset <= ring->storage.size && bytes <= ring->storage.size - offset;
}

static bool
has_sound_party (const struct pto_ring *ring, const struct pto_slot *slot)
{
  return slot->queue != PTO_QUEUE_LINE
         || is_in_storage (ring, slot->party,
                           sizeof (struct pto_party) + sizeof (struct pto_party_member));
}

bool
pto_look_at_task (const struct pto_engine *engine, pto_task_id id, struct pto_look_task *task)
{
  uint32_t r = PTO_TASK_RING (id);
  uint32_t local = PTO_TASK_LOCAL (id);
  const struct pto_ring *ring;
  struct pto_slot slot;
  uint32_t kernel;

  if (r >= PTO_RINGS)
    return false;
  ring = &engine->rings[r];
  if ((int32_t) (local - next_of (ring)) >= 0)
    return false;
  slot = pto_peek (pto_ring_slot (ring, local));
  if (!has_sound_party (ring, &slot))
    return false;
  kernel = kernel_of (&slot);
  if (!is_alive (ring, local) || slot.id != id)
    return false;
  describe_task (engine, &slot, kernel, task);
  return true;
}

/* Does that edge, of a task that has not begun, hang in the list of its producer's consumers? Then
 * the producer is not over. Whoever is in a list before it has not begun either, so all these edges
 * are theirs still, or the producer is over by the end. */
static bool
is_listed (const struct pto_engine *engine, const struct pto_slot *producer, uint32_t edge)
{
  uint32_t at = atomic_load_explicit (&producer->fanout, memory_order_acquire);

  for (uint32_t n = 0; at != 0 && n < LIST_MAX; n++)
    {
      uint32_t r = (at - 1) >> PTO_EDGE_RING_SHIFT;

      if (at >= PTO_FANOUT_FAILED || r >= PTO_RINGS
          || ((at - 1) & ((1u << PTO_EDGE_RING_SHIFT) - 1)) >= engine->rings[r].edge_pool)
        return false;
      if (at == edge)
        return true;
      at = pto_peek (&pto_engine_edge (engine, at)->next);
    }
  return at != 0;
}

static void
look_at_producers (const struct pto_engine *engine, uint32_t ring_index,
                   const struct pto_slot *slot, struct pto_look_waiting *waiting)
{
  const struct pto_ring *ring = &engine->rings[ring_index];

  for (uint32_t i = 0; i < slot->n_edges && i < ring->edge_pool; i++)
    {
      uint32_t place = (slot->first_edge + i) & (ring->edge_pool - 1);
      struct pto_edge edge = pto_peek (&ring->edges[place]);
      uint32_t r = edge.producer >> PTO_SLOT_RING_SHIFT;
      uint32_t index = edge.producer & ((1u << PTO_SLOT_RING_SHIFT) - 1);
      const struct pto_slot *producer;
      struct pto_look_task *cause;

      if ((edge.flags & PTO_EDGE_WAIT) == 0 || r >= PTO_RINGS || index >= engine->rings[r].window)
        continue;
      producer = &engine->rings[r].slots[index];
      if (!is_listed (engine, producer, PTO_EDGE_REF (ring_index, place)))
        continue;
      waiting->n_producers++;
      cause = &waiting->causes[waiting->n_causes];
      if (waiting->n_causes < PTO_LOOK_CAUSES
          && pto_look_at_task (engine, pto_peek (&producer->id), cause)
          && cause->state < PTO_TASK_COMPLETED)
        waiting->n_causes++;
    }
}

/* A task that has not begun. false: it is over by now. */
static bool
look_at_waiting (const struct pto_engine *engine, uint32_t ring_index, const struct pto_slot *slot,
                 struct pto_look_waiting *waiting)
{
  const struct pto_ring *ring = &engine->rings[ring_index];

  memset (waiting, 0, sizeof *waiting);
  waiting->queue = slot->queue;
  waiting->priority = slot->priority;
  if (!has_sound_party (ring, slot))
    return false;
  if (slot->queue == PTO_QUEUE_LINE)
    {
      waiting->n_places = pto_peek (&slot->party->n_members);
      waiting->n_kept = pto_peek (&slot->party->n_kept);
    }
  describe_task (engine, slot, kernel_of (slot), &waiting->task);
  if (waiting->task.state == PTO_TASK_PENDING)
    look_at_producers (engine, ring_index, slot, waiting);
  return is_alive (ring, PTO_TASK_LOCAL (slot->id));
}

static void
look_at_ring (const struct pto_engine *engine, uint32_t ring_index, struct pto_look *look)
{
  const struct pto_ring *ring = &engine->rings[ring_index];
  uint32_t next = next_of (ring);
  uint32_t first = first_of (ring);
  uint32_t told = 0;
  uint32_t n;

  if ((int32_t) (next - first) <= 0)
    return;
  n = next - first < PTO_LOOK_SLOTS ? next - first : PTO_LOOK_SLOTS;
  look->n_unseen += next - first - n;
  for (uint32_t i = 0; i < n; i++)
    {
      struct pto_slot slot;

      slot = pto_peek (pto_ring_slot (ring, first + i));
      if (!is_alive (ring, first + i) || slot.id != PTO_TASK_ID (ring_index, first + i))
        continue;
      look->n_pending += slot.state == PTO_TASK_PENDING;
      look->n_ready += slot.state == PTO_TASK_READY;
      look->n_running += slot.state == PTO_TASK_RUNNING;
      if ((slot.state == PTO_TASK_PENDING || slot.state == PTO_TASK_READY) && told < PTO_LOOK_TASKS
          && look_at_waiting (engine, ring_index, &slot, &look->waiting[look->n_waiting]))
        {
          told++;
          look->n_waiting++;
        }
    }
}

/* --- the rest --- */

static void
look_at_gauges (const struct pto_engine *engine, struct pto_look *look)
{
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      const struct pto_ring *ring = &engine->rings[r];

      look->rings[r] = (struct pto_look_ring){
        .window = ring->window,
        .first = first_of (ring),
        .next = next_of (ring),
        .edge_pool = ring->edge_pool,
        .edges = pto_peek (&ring->edge_head) - pto_peek (&ring->edge_tail),
        .heap = ring->heap.size,
        .heap_used = pto_peek (&ring->heap.used),
        .heap_peak = pto_peek (&ring->heap.peak),
        .storage = ring->storage.size,
        .storage_used = pto_peek (&ring->storage.used),
      };
      /* The two words of one gauge may be of two moments. */
      if (look->rings[r].edges > ring->edge_pool)
        look->rings[r].edges = 0;
    }
  look->map_used = pto_map_peek_used (engine->map);
  look->map_capacity = pto_map_capacity (engine->map);
  look->n_queues = engine->config.n_queues;
  for (uint32_t q = 0; q < engine->config.n_queues; q++)
    {
      for (uint32_t s = 0; s < engine->config.n_shards; s++)
        look->queued[q] += pto_ready_queue_count (&engine->ready[q][s]);
      for (uint32_t p = 0; p < PTO_MAX_PRIORITY; p++)
        look->queued[q] += pto_ready_queue_count (&engine->urgent[q][p]);
    }
}

static void
look_at_shortage (const struct pto_engine *engine, const struct pto_blocked *blocked,
                  struct pto_look_submitter *submitter)
{
  struct pto_ring ring;

  submitter->ring = blocked->ring < PTO_RINGS ? blocked->ring : 0;
  ring = pto_peek (&engine->rings[submitter->ring]);
  pto_engine_describe_shortage (engine, blocked, &ring, first_of (&ring),
                                pto_map_peek_used (engine->map), pto_peek (&engine->line.n_held),
                                &submitter->shortage);
}

/* It is parked since then. false: it is not any more. */
static bool
look_at_wait (const struct pto_engine *engine, uint64_t since, uint64_t now,
              struct pto_look_submitter *submitter)
{
  struct pto_blocked blocked = pto_peek (&engine->blocked);
  const struct pto_slot *slot = atomic_load_explicit (&engine->wait_slot, memory_order_relaxed);
  pto_task_id task = PTO_TASK_NONE;

  if (blocked.what == PTO_STATUS_SYNC_START)
    submitter->doing = PTO_DOING_COHORT;
  else if (blocked.what != PTO_OK)
    {
      submitter->doing = PTO_DOING_ROOM;
      if (blocked.ring < PTO_RINGS)
        task = PTO_TASK_ID (blocked.ring, first_of (&engine->rings[blocked.ring]));
    }
  else if (slot != NULL)
    {
      submitter->doing = PTO_DOING_AWAIT;
      task = pto_peek (&slot->id);
    }
  else
    submitter->doing = pto_peek (&engine->depth) == 0 ? PTO_DOING_END : PTO_DOING_AWAIT_ALL;
  if (blocked.what != PTO_OK)
    look_at_shortage (engine, &blocked, submitter);
  submitter->task.id = PTO_TASK_NONE;
  if (task != PTO_TASK_NONE && !pto_look_at_task (engine, task, &submitter->task))
    submitter->task.id = PTO_TASK_NONE;
  submitter->for_ns = now > since ? now - since : 0;
  atomic_thread_fence (memory_order_acquire);
  return atomic_load_explicit (&engine->wait_since, memory_order_relaxed) == since;
}

static void
look_at_submitter (const struct pto_machine *machine, uint64_t now,
                   struct pto_look_submitter *submitter)
{
  const struct pto_engine *engine = &machine->engine;
  /* Acquire: what it waits for is written. */
  uint64_t since = atomic_load_explicit (&engine->wait_since, memory_order_acquire);

  memset (submitter, 0, sizeof *submitter);
  if (since != 0 && look_at_wait (engine, since, now, submitter))
    return;
  memset (submitter, 0, sizeof *submitter);
  submitter->task.id = PTO_TASK_NONE;
  submitter->doing = pto_peek (&engine->direct)       ? PTO_DOING_TASK
                     : pto_peek (&engine->depth) == 0 ? PTO_DOING_END
                     : (atomic_load_explicit (&machine->steps, memory_order_relaxed) & 1) != 0
                         ? PTO_DOING_CALL
                         : PTO_DOING_ORCHESTRATION;
}

void
pto_look (struct pto_machine *machine, struct pto_look *look)
{
  const struct pto_engine *engine = &machine->engine;
  uint64_t now = pto_wall_clock ();

  memset (look, 0, sizeof *look);
  look->running = machine->door.running;
  look->totals = *machine->door.totals;
  look->submitter.task.id = PTO_TASK_NONE;
  look_at_gauges (engine, look);
  if (!look->running)
    return;
  look->for_ns = now > machine->door.began ? now - machine->door.began : 0;
  look->captures = pto_peek (&engine->capture) != NULL;
  look->failed = (enum pto_status) atomic_load_explicit (&engine->fatal, memory_order_relaxed);
  /* Before the submitted: no more are complete than were submitted. */
  look->completed = pto_engine_completed (engine);
  look->failures = pto_engine_failures (engine);
  look->submitted = pto_peek (&engine->submitted);
  look->edges = pto_peek (&engine->stats.edges);
  look->stalls = pto_peek (&engine->stats.stalls);
  look->peak_live = pto_peek (&engine->stats.peak_live);
  look_at_submitter (machine, now, &look->submitter);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    look_at_ring (engine, r, look);
}

void
pto_look_count (const struct pto_machine *machine, struct pto_look_counts *counts)
{
  const struct pto_engine *engine = &machine->engine;

  counts->completed = pto_engine_completed (engine);
  counts->failures = pto_engine_failures (engine);
  counts->submitted = pto_peek (&engine->submitted);
}

bool
pto_look_count_from_outside (struct pto_machine *machine, struct pto_look_counts *counts)
{
  bool running;

  if (!pto_look_begin (machine))
    return false;
  running = machine->door.running;
  if (running)
    pto_look_count (machine, counts);
  pto_look_end (machine);
  return running;
}
