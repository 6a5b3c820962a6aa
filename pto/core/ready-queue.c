/* ready-queue.c: which tasks can run now?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ready-queue.h"

#include "exec/pto-atomic.h"
#include "arrays.h"

#include <string.h>

#define RESTART_AT (UINT64_C (1) << 18)

bool
pto_ready_queue_init (struct pto_ready_queue *queue, uint32_t capacity)
{
  memset (queue, 0, sizeof *queue);
  queue->cells = pto_pages_new ((uint64_t) capacity * sizeof *queue->cells, MAP_PRIVATE);
  queue->capacity = capacity;
  queue->shift = (uint32_t) __builtin_ctz (capacity);
  return queue->cells != NULL;
}

/* A consumer that has read the old tail finds a cell of zeros there, which is empty in every lap;
 * one that has read the new one finds the first cell, which is zeros by then. */
void
pto_ready_queue_restart (struct pto_ready_queue *queue)
{
  if (pto_load_relaxed (&queue->tail) < RESTART_AT)
    return;
  madvise (queue->cells, (uint64_t) queue->capacity * sizeof *queue->cells, MADV_DONTNEED);
  pto_store_relaxed (&queue->head, 0);
  /* Release: behind the zeros; pairs with the acquire of a cell, whose address comes from it. */
  pto_store_release (&queue->tail, 0);
}

void
pto_ready_queue_destroy (struct pto_ready_queue *queue)
{
  pto_pages_free (queue->cells, (uint64_t) queue->capacity * sizeof *queue->cells);
  queue->cells = NULL;
}

static inline uint32_t
free_turn (const struct pto_ready_queue *queue, uint64_t position)
{
  return (uint32_t) (position >> queue->shift) * 2;
}

static inline _Atomic uint64_t *
cell_at (const struct pto_ready_queue *queue, uint64_t position)
{
  return &queue->cells[position & (queue->capacity - 1)];
}

bool
pto_ready_queue_push (struct pto_ready_queue *queue, uint32_t item)
{
  uint64_t position = pto_load_relaxed (&queue->head);

  for (;;)
    {
      uint32_t turn = free_turn (queue, position);
      uint64_t cell = pto_load_relaxed (cell_at (queue, position));
      int32_t ahead = (int32_t) ((uint32_t) cell - turn);

      if (ahead < 0)
        return false;
      if (ahead == 0)
        {
          if (!pto_cas_seq_cst (cell_at (queue, position), &cell,
                                (uint64_t) item << 32 | (turn + 1)))
            continue;
          pto_store_relaxed (&queue->head, position + 1);
          return true;
        }
      /* Pushed already, and so was every lap before this one: the hint is old, and very old if its
       * writer was held up. */
      position += (uint64_t) ((ahead - 1) / 2) * queue->capacity + 1;
    }
}

uint32_t
pto_ready_queue_pop (struct pto_ready_queue *queue, uint32_t *items, uint32_t max)
{
  uint64_t position = pto_load_relaxed (&queue->tail);

  for (;;)
    {
      uint32_t n = 0;
      int32_t ahead = 0;

      /* Cells from the tail on that are filled: nobody empties one before the tail has passed it,
       * so the items are these if the tail is still there. */
      while (n < max)
        {
          /* Acquire: what the pusher did for the item, and to it; pairs with the push. */
          uint64_t cell = pto_load_acquire (cell_at (queue, position + n));

          ahead = (int32_t) ((uint32_t) cell - (free_turn (queue, position + n) + 1));
          if (ahead != 0)
            break;
          items[n++] = (uint32_t) (cell >> 32);
        }
      if (n > 0)
        {
          /* Relaxed, both: nothing goes with the tail or an empty cell, and who reads an old tail
           * does not get past this. */
          if (!pto_cas_relaxed (&queue->tail, &position, position + n))
            continue;
          for (uint32_t i = 0; i < n; i++)
            pto_store_relaxed (cell_at (queue, position + i), free_turn (queue, position + i) + 2);
          return n;
        }
      if (ahead < 0)
        return 0;
      position = pto_load_relaxed (&queue->tail);
    }
}

bool
pto_ready_queue_has_items (struct pto_ready_queue *queue)
{
  uint64_t position = pto_load_relaxed (&queue->tail);

  return (int32_t) ((uint32_t) pto_load_seq_cst (cell_at (queue, position))
                    - (free_turn (queue, position) + 1))
         >= 0;
}

uint64_t
pto_ready_queue_count (const struct pto_ready_queue *queue)
{
  uint64_t tail = pto_load_relaxed (&queue->tail);
  uint64_t head = pto_load_relaxed (&queue->head);

  return (int64_t) (head - tail) > 0 ? head - tail : 0;
}
