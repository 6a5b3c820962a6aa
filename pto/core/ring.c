/* ring.c: where do a task's slot, its memory and its edges live, and when are they free again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ring.h"

#include "exec/pto-atomic.h"

#include <errno.h>
#include <string.h>

/* A circle turns early only beyond this many bytes, and beyond PTO_CIRCLE_COMPACT times of what was
 * ever in use at one time: a turn puts the rest of it out of reach until everything before the turn
 * is freed.
 */
#define COMPACT_MIN (256u * 1024u)
/* What a large ring has left behind is given back in pieces of so many bytes. A small one comes
 * around soon, and keeps its memory. */
#define PIECE_BYTES (UINT64_C (8) << 20)
#define PIECES_MIN 4u
#define PAGE_MAX 65536u

/* Bytes of its shared memory. */
static uint64_t
shared_size (const struct pto_ring_config *config)
{
  return sizeof (struct pto_shared_header) + (uint64_t) config->window * sizeof (struct pto_slot)
         + ((uint64_t) config->edge_pool + 1) * sizeof (struct pto_edge);
}

bool
pto_ring_init (struct pto_ring *ring, const struct pto_ring_config *config)
{
  memset (ring, 0, sizeof *ring);
  ring->window = config->window;
  ring->mask = config->window - 1;
  ring->edge_pool = config->edge_pool;
  ring->heap.size = config->heap;
  ring->heap.compact_from = ring->storage.compact_from = COMPACT_MIN;
  ring->storage.size = (uint64_t) config->window * PTO_STORAGE_PER_SLOT;
  ring->storage.size = max_of (ring->storage.size, PTO_STORAGE_MIN);
  ring->shared_size = shared_size (config);
  ring->shared = pto_pages_new (ring->shared_size, MAP_PRIVATE);
  ring->storage.base = pto_pages_new (ring->storage.size, MAP_PRIVATE);
  ring->heap_is_given = config->heap_base != NULL;
  /* Shared, so that workers forked later see the outputs at the same addresses. */
  ring->heap.base
      = ring->heap_is_given ? config->heap_base : pto_pages_new (ring->heap.size, MAP_SHARED);
  if (ring->shared == NULL || ring->heap.base == NULL || ring->storage.base == NULL)
    {
      int saved = errno;

      pto_ring_destroy (ring);
      errno = saved;
      return false;
    }
  ring->slots = (struct pto_slot *) (ring->shared + 1);
  /* Entry 0 is the list's end: a reference to it is 0. */
  ring->edges = (struct pto_edge *) (ring->slots + config->window) + 1;
  ring->shared->task_window_size = config->window;
  ring->shared->dep_list_pool_size = config->edge_pool;
  ring->shared->heap_size = config->heap;
  return true;
}

void
pto_ring_destroy (struct pto_ring *ring)
{
  pto_pages_free (ring->shared, ring->shared_size);
  if (!ring->heap_is_given)
    pto_pages_free (ring->heap.base, ring->heap.size);
  pto_pages_free (ring->storage.base, ring->storage.size);
  memset (ring, 0, sizeof *ring);
}

static void
circle_reset (struct pto_circle *circle)
{
  circle->head = circle->tail = circle->used = circle->skipped = circle->peak = 0;
}

void
pto_ring_reset (struct pto_ring *ring, uint32_t *tail)
{
  ring->head = ring->floor = *tail = 0;
  ring->edge_head = ring->edge_tail = 0;
  circle_reset (&ring->heap);
  circle_reset (&ring->storage);
  atomic_store_explicit (&ring->shared->last_task_alive, 0, memory_order_relaxed);
  atomic_store_explicit (&ring->shared->heap_tail, 0, memory_order_relaxed);
  atomic_store_explicit (&ring->shared->orchestrator_done, 0, memory_order_relaxed);
  pto_ring_publish (ring);
}

uint64_t
pto_circle_alloc (struct pto_circle *circle, uint64_t bytes, bool compact, uint64_t *taken)
{
  bool turn;

  *taken = 0;
  if (bytes == 0)
    return circle->head;
  if (circle->used == 0)
    circle->head = circle->tail = circle->skipped = 0;
  turn = circle->head >= circle->tail
         && (circle->size - circle->head < bytes
             || (compact && circle->head >= circle->compact_from
                 && circle->head / PTO_CIRCLE_COMPACT > circle->peak + bytes
                 && circle->tail > bytes));
  if (turn ? circle->tail <= bytes
           : circle->head < circle->tail && circle->tail - circle->head <= bytes)
    return PTO_CIRCLE_FULL;
  *taken = bytes;
  if (turn)
    {
      circle->turn = circle->head;
      circle->skipped = circle->size - circle->head;
      circle->used += circle->skipped;
      circle->turned = bytes;
      circle->head = 0;
      *taken += circle->skipped;
    }
  return pto_circle_take (circle, bytes);
}

void
pto_circle_free (struct pto_circle *circle, uint64_t end, uint64_t taken)
{
  if (taken == 0)
    return;
  circle->used -= taken;
  if (circle->skipped > 0 && end == circle->turned)
    circle->skipped = 0;
  /* The last piece before the turn: nothing in use lies behind it, the next one begins at 0. */
  circle->tail = end == circle->turn && circle->head < end ? 0 : end;
}

void
pto_circle_undo (struct pto_circle *circle, uint64_t offset, uint64_t bytes, uint64_t taken)
{
  /* What was skipped at a turn comes back, too: the head stood that far before the end. */
  if (taken == bytes)
    circle->head = offset;
  else
    {
      circle->head = circle->turn;
      circle->skipped = 0;
    }
  circle->used -= taken;
}

uint32_t
pto_ring_reclaim (struct pto_ring *ring, uint32_t *tail)
{
  uint32_t local = *tail;
  uint32_t n = 0;

  while ((int32_t) (ring->floor - local) > 0)
    {
      struct pto_slot *slot = pto_ring_slot (ring, local);

      __builtin_prefetch (pto_ring_slot (ring, local + 4));
      /* Pairs with the release at the end of scheduler.c's complete(): whoever completed the task
       * is done with it. */
      if (pto_load_acquire (&slot->state) < PTO_TASK_COMPLETED)
        break;
      /* Pairs with the release of a consumer's completion: it reads this task's memory no more. */
      if (pto_load_acquire (&slot->released) != slot->taken)
        break;
      pto_circle_free (&ring->heap, slot->heap_end, slot->heap_bytes);
      pto_circle_free (&ring->storage, slot->storage_end, slot->storage_bytes);
      ring->edge_tail += slot->n_edges;
      local++;
      n++;
    }
  *tail = local;
  atomic_store_explicit (&ring->shared->heap_tail, ring->heap.tail, memory_order_relaxed);
  atomic_store_explicit (&ring->shared->last_task_alive, local, memory_order_relaxed);
  /* Before slots are written anew: who reads one of those from outside (inspect.c) finds it
   * retired.
   */
  atomic_thread_fence (memory_order_release);
  return n;
}

/* The memory of items that a circle of capacity has moved past, in whole pieces, unless somebody
 * has come around and works there. A piece is a power of two of items. */
static void
give_back (void *items, uint32_t size, uint32_t capacity, uint32_t from, uint32_t to, uint32_t head)
{
  uint32_t piece = (uint32_t) (PIECE_BYTES / size);
  uint32_t first = from & ~(piece - 1);
  uint32_t end = to & ~(piece - 1);

  if (first == end || capacity / piece < PIECES_MIN || head - first > capacity)
    return;
  for (; first != end; first += piece)
    {
      uint8_t *begin = (uint8_t *) items + (uint64_t) (first & (capacity - 1)) * size;
      uint64_t skipped = -(uint64_t) (uintptr_t) begin % PAGE_MAX;

      madvise (begin + skipped, PIECE_BYTES - PAGE_MAX, MADV_DONTNEED);
    }
}

void
pto_ring_give_back (struct pto_ring *ring, uint32_t tail, uint32_t new_tail, uint32_t edge_tail)
{
  give_back (ring->slots, sizeof *ring->slots, ring->window, tail, new_tail, ring->head);
  give_back (ring->edges, sizeof *ring->edges, ring->edge_pool, edge_tail, ring->edge_tail,
             ring->edge_head);
}

/* --- tensors of several tasks --- */

struct shared_block
{
  struct shared_block *before;
  TensorData items[];
};

/* What was too few is not given back: nothing runs, but whoever is asked what is being done
 * (sim/chip-inspect.c) may still read what an argument has pointed to. Each is twice the one
 * before. */
bool
pto_shared_tensors_reserve (struct pto_shared_tensors *shared, uint32_t n)
{
  struct shared_block *block;

  if (n <= shared->n)
    return true;
  if (shared->n <= UINT32_MAX / 2 && n < 2 * shared->n)
    n = 2 * shared->n;
  block = malloc (sizeof *block + n * sizeof *block->items);
  if (block == NULL)
    return false;
  block->before = shared->blocks;
  shared->blocks = block;
  shared->items = block->items;
  shared->n = n;
  return true;
}

void
pto_shared_tensors_clear (struct pto_shared_tensors *shared)
{
  struct shared_block *block = shared->blocks;

  while (block != NULL)
    {
      struct shared_block *before = block->before;

      free (block);
      block = before;
    }
  *shared = (struct pto_shared_tensors){ 0 };
}
