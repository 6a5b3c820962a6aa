/* ring.h: where do a task's slot, its memory and its edges live, and when are they free again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A ring holds the tasks of one scope depth in the order of their submission: slots, argument
 * storage, output memory and edges, all taken by the submitter at submit and given back in the same
 * order. Only the submitter moves heads AND tails: schedulers say "completed" and "reference
 * released" in the slot, the submitter looks when it needs room. So no advance can be lost, and a
 * reference can be taken without a race: what the submitter has not retired is there. Source: seed
 * 000 sections 4 and 6; four rings by depth: seed 001 section 8.
 */
#pragma once

#include "memory-guards.h"
#include "submission.h"
#include "tensor-map.h"

#include <stdalign.h>
#include <stdatomic.h>

/* A slot of any ring in 32 bits. */
typedef uint32_t pto_slot_ref;
#define PTO_SLOT_RING_SHIFT 28
#define PTO_SLOT_REF(ring, index) (((uint32_t) (ring) << PTO_SLOT_RING_SHIFT) | (index))
#define PTO_WINDOW_MAX PTO_MAX_TASK_WINDOW

/* Argument storage reserved per slot of the window: 16 tensors and some scalars. Address space
 * only. */
#define PTO_STORAGE_PER_SLOT 2048u
#define PTO_STORAGE_MIN (256u * 1024u)

/* An edge of any ring in 32 bits; 0 ends a list. */
#define PTO_EDGE_RING_SHIFT 29
#define PTO_EDGE_REF(ring, index) ((((uint32_t) (ring) << PTO_EDGE_RING_SHIFT) | (index)) + 1u)
#define PTO_EDGE_POOL_MAX (1u << 28)

/* Values of a slot's fan-out that are no edge: the task is done, new consumers need not wait. */
#define PTO_FANOUT_CLOSED UINT32_MAX
#define PTO_FANOUT_FAILED (UINT32_MAX - 1u)

enum pto_task_state
{
  PTO_TASK_FREE = 0,
  PTO_TASK_PENDING,
  PTO_TASK_READY,
  PTO_TASK_RUNNING,
  PTO_TASK_COMPLETED,
  PTO_TASK_FAILED,
  PTO_TASK_CONSUMED /* derived: the ring's tail has passed it */
};

enum
{
  PTO_EDGE_WAIT = 1,  /* the consumer starts after the producer */
  PTO_EDGE_RETAIN = 2 /* the producer's memory stays until the consumer is done */
};

/* One dependency of a consumer. Taken by the consumer's submit, freed with the consumer's slot: it
 * outlives its place in the producer's fan-out list, since the producer walks that list before the
 * consumer can run. */
struct pto_edge
{
  /* in the producer's fan-out; W: submitter before the push; R: who closed the list */
  uint32_t next;
  pto_slot_ref consumer;
  pto_slot_ref producer;
  uint32_t flags;
};

/* In payload.guards: what lies behind that output was written when its task was submitted, for
 * others may write to the same memory before it begins. */
#define PTO_GUARD_WRITTEN (UINT64_C (1) << 63)
/* There as well: another task makes that memory, and has written the guard before this one begins.
 */
#define PTO_GUARD_OTHERS (UINT64_C (1) << 62)
#define PTO_GUARD_FLAGS (PTO_GUARD_WRITTEN | PTO_GUARD_OTHERS)

/* What a kernel gets, and what is around it. Written by the submitter before the task is ready;
 * read-only then. */
struct pto_payload
{
  uint32_t n_args;
  uint16_t n_guards;
  uint16_t n_fences; /* of other memory that it is given */
  uint64_t *guards;  /* end addresses of memory that the runtime makes; PTO_GUARD_* */
  /* Where it was submitted, for messages. Without a file: as its graph has it, of task line - 1; 0:
   * nobody knows. */
  const char *file;
  uint32_t line;
  struct pto_terms terms;
  /* What a kernel finds before its arguments (pto_block.h). Who runs a part of a task gives it a
   * copy with other words there. */
  const void *services;
  uint64_t block;
  int64_t args[]; /* n_args: pointers to TensorData, or scalars */
};
_Static_assert(offsetof (struct pto_payload, args) == sizeof (struct pto_payload),
               "what is before the arguments is right before them");

/* One task. The first line is handed over to the schedulers when the task is published; the second
 * stays with the submitter, so that the two never write one line at the same time for long. */
struct pto_slot
{
  /* Newest edge of the consumers' stack. W: submitter pushes by compare-exchange (release pairs
   * with the acquire of the exchange in scheduler.c's complete()), who completes exchanges it for
   * CLOSED or FAILED (release pairs with the acquire of a push that fails). */
  alignas (64) _Atomic uint32_t fanout;
  /* Producers still to come, + 1 held by the submit itself. W: submitter, schedulers (acq_rel: the
   * last one sees what every producer wrote). */
  _Atomic int32_t fanin;
  /* References given back. W: schedulers (release pairs with the acquire in pto_ring_reclaim()). */
  _Atomic uint32_t released;
  /* enum pto_task_state. COMPLETED and FAILED are the last write to the slot by whoever completes
   * it (release pairs with the acquire in pto_ring_reclaim()): from then on the slot may be taken
   * again. */
  _Atomic uint32_t state;
  /* Failed task that this one depends on, PTO_TASK_NONE if none. First one wins; ordered by fanin.
   */
  _Atomic uint64_t poison;
  pto_task_id id;
  struct pto_payload *payload;
  /* index into the ring's edges; those that retain come first (modulo the pool) */
  uint32_t first_edge;
  uint32_t n_retained;
  uint32_t kernel;
  /* which ready queue: core type, worker kind; or PTO_QUEUE_LINE; or, until then, PTO_QUEUE_TURN;
   * or, until that, PTO_QUEUE_ORDER */
  uint16_t queue;
  uint8_t priority;
  bool has_turn; /* and lets others have theirs at its end. Ordered by the lock in commutative.c */
  union
  {
    struct pto_parts *parts; /* of it, if it has any (task-parts.h) */
    struct pto_party *party; /* then: its members (core-placement.h), and parts */
    struct pto_slot *behind; /* no kernel: which of those that one scheduler completes comes next */
  };

  /* --- the submitter's line --- */
  /* number of the submit that met this slot last (merging of double edges) */
  alignas (64) uint64_t mark;
  uint32_t mark_edge; /* index of that edge among the submit's */
  uint32_t taken;     /* references */
  uint32_t n_edges;
  uint32_t due; /* in a run with an order (forced-order.h): its queue, once it is let go */
  /* heap and argument storage behind this task: position and bytes since the one before */
  uint64_t heap_end;
  uint64_t heap_bytes;
  uint64_t storage_end;
  uint64_t storage_bytes;
  uint64_t number; /* with an order: of the tasks with kernels, from 0 */
};
_Static_assert(sizeof (struct pto_slot) == 128, "two lines");

/* Memory in a circle, freed in the order of allocation. */
struct pto_circle
{
  uint8_t *base;
  uint64_t size;
  uint64_t head;
  uint64_t tail;
  uint64_t used; /* bytes between tail and head, what was skipped at the turn included */
  /* where the head last went back to 0: with the piece that ends there the tail goes back, too */
  uint64_t turn;
  uint64_t skipped;      /* behind it, until the piece that turned is freed */
  uint64_t turned;       /* where that piece ends */
  uint64_t peak;         /* most bytes in use at one time, without what was skipped */
  uint64_t compact_from; /* no early turn before this */
};

#define PTO_CIRCLE_FULL UINT64_MAX

/* The head of a ring's shared memory, as the orchestrator publishes it: [header][slots][entry 0 =
 * none, edges], each part aligned to 64 bytes (seed 000 section 3). Only the orchestrator writes;
 * anybody may look, with acquire where a release is named. */
struct pto_shared_header
{
  /* next task (release: what is before it is submitted) */
  alignas (64) _Atomic uint32_t current_task_index;
  _Atomic uint32_t last_task_alive; /* oldest task that is not retired */
  _Atomic uint64_t heap_top;        /* bytes from the heap's base */
  _Atomic uint64_t heap_tail;
  _Atomic uint32_t orchestrator_done; /* release: no task comes after current_task_index */
  uint32_t task_window_size;
  uint32_t dep_list_pool_size;
  uint64_t heap_size;
};
_Static_assert(sizeof (struct pto_shared_header) == 64, "one line, written by one thread");

struct pto_ring
{
  /* --- immutable: every completion reads it, while the submitter writes the lines below --- */
  alignas (64) struct pto_shared_header *shared;
  uint64_t shared_size;
  struct pto_slot *slots;
  struct pto_edge *edges;
  uint32_t window; /* slots; window - 1 are usable, so that full and empty differ */
  uint32_t mask;
  uint32_t edge_pool;
  bool heap_is_given; /* by whoever configured it */

  /* --- the submitter's --- */
  alignas (64) uint32_t edge_head; /* free running; edge_pool is a power of two */
  uint32_t edge_tail;
  uint32_t head;  /* next task; free running */
  uint32_t floor; /* tasks from here on are held by an open scope */
  struct pto_circle heap;
  struct pto_circle storage;
};

struct pto_ring_config
{
  uint32_t window;
  uint32_t edge_pool;
  uint64_t heap;
  void *heap_base; /* that many bytes of whoever has made them; NULL: they are mapped here */
};

/* Maps the ring's memory; touches none of it. false: no address space. */
bool pto_ring_init (struct pto_ring *ring, const struct pto_ring_config *config);
void pto_ring_destroy (struct pto_ring *ring);
/* Between runs: every task is retired. O(1). */
void pto_ring_reset (struct pto_ring *ring, uint32_t *tail);

/* So many times of what was ever in use at one time a circle goes through before it turns early, to
 * memory that the cache still knows. */
#define PTO_CIRCLE_COMPACT 4u

/* Takes bytes (a multiple of align's unit is the caller's business). The offset, or
 * PTO_CIRCLE_FULL. *taken is what pto_circle_free() must give back. compact: nothing in use is held
 * by an open scope, so the circle may turn early to stay in cache. */
uint64_t pto_circle_alloc (struct pto_circle *circle, uint64_t bytes, bool compact,
                           uint64_t *taken);
/* Is there room right behind what is in use, and no reason to turn? Then pto_circle_take() is
 * pto_circle_alloc(). false says nothing. */
static inline bool
pto_circle_has_room (const struct pto_circle *circle, uint64_t bytes, bool compact)
{
  if (circle->head < circle->tail)
    return circle->tail - circle->head > bytes;
  return circle->used != 0 && circle->size - circle->head >= bytes
         && (!compact || circle->head < circle->compact_from
             || circle->head / PTO_CIRCLE_COMPACT <= circle->peak + bytes);
}
static inline uint64_t
pto_circle_take (struct pto_circle *circle, uint64_t bytes)
{
  uint64_t offset = circle->head;

  circle->head = offset + bytes;
  circle->used += bytes;
  if (circle->used - circle->skipped > circle->peak)
    circle->peak = circle->used - circle->skipped;
  return offset;
}
void pto_circle_free (struct pto_circle *circle, uint64_t end, uint64_t taken);
/* Takes back the last allocation. */
void pto_circle_undo (struct pto_circle *circle, uint64_t offset, uint64_t bytes, uint64_t taken);

/* Descriptions of tensors that arguments of several tasks point to. W: whoever submits, before the
 * first of those is ready. */
struct pto_shared_tensors
{
  TensorData *items;
  uint32_t n;
  void *blocks; /* the items, and those that were too few */
};

/* So many at least, of which none is kept, while nothing runs. false: there is no memory. */
bool pto_shared_tensors_reserve (struct pto_shared_tensors *shared, uint32_t n);
void pto_shared_tensors_clear (struct pto_shared_tensors *shared);

/* Those that are a task's own stand between its arguments and its guards. */
static inline const TensorData *
pto_payload_tensors (const struct pto_payload *payload, uint32_t *n)
{
  const TensorData *tensors = (const TensorData *) (payload->args + payload->n_args);

  *n = (uint32_t) ((const TensorData *) payload->guards - tensors);
  return tensors;
}

/* The next one of all its tensors. at: 0 for the first; NULL: there are no more. */
static inline const TensorData *
pto_payload_next_tensor (const struct pto_payload *payload, const struct pto_shared_tensors *shared,
                         uint32_t *at)
{
  uint32_t n;
  const TensorData *own = pto_payload_tensors (payload, &n);

  if (*at < n)
    return &own[(*at)++];
  while (shared->n > 0 && *at < n + payload->n_args)
    {
      uint64_t offset
          = (uint64_t) payload->args[(*at)++ - n] - (uint64_t) (uintptr_t) shared->items;

      if (offset < shared->n * sizeof *shared->items && offset % sizeof *shared->items == 0)
        return (const TensorData *) ((const uint8_t *) shared->items + offset);
    }
  return NULL;
}

static inline struct pto_slot *
pto_ring_slot (const struct pto_ring *ring, uint32_t local)
{
  return &ring->slots[local & ring->mask];
}

/* They stand between its guards and what the submit gave besides. */
static inline const struct pto_fence *
pto_payload_fences (const struct pto_payload *payload)
{
  return (const struct pto_fence *) (payload->guards + payload->n_guards);
}

/* What the submit gave besides, 8-byte aligned. */
static inline void *
pto_payload_extra (const struct pto_payload *payload)
{
  return (struct pto_fence *) (payload->guards + payload->n_guards) + payload->n_fences;
}

/* Makes the ring's heads visible in its shared header. */
static inline void
pto_ring_publish (struct pto_ring *ring)
{
  atomic_store_explicit (&ring->shared->heap_top, ring->heap.head, memory_order_relaxed);
  atomic_store_explicit (&ring->shared->current_task_index, ring->head, memory_order_release);
}

/* Retires tasks from the tail as far as they are completed, released and out of scope. Gives how
 * many. */
uint32_t pto_ring_reclaim (struct pto_ring *ring, uint32_t *tail);
/* Behind it, with the tails from before: what a large ring will not need for long goes back to the
 * system, so that a run that goes on and on does not touch all of it. Retired slots are zeros. */
void pto_ring_give_back (struct pto_ring *ring, uint32_t tail, uint32_t new_tail,
                         uint32_t edge_tail);
