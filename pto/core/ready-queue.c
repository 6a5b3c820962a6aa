/* ready-queue.c: which tasks can run now?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ready-queue.h"

#include "../exec/pto_atomic.h"

#include <string.h>
#include <sys/mman.h>

bool
pto_ready_queue_init (struct pto_ready_queue *queue, uint32_t capacity)
{
  void *memory = mmap (NULL, (uint64_t) capacity * sizeof (struct pto_ready_cell),
                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  memset (queue, 0, sizeof *queue);
  if (memory == MAP_FAILED)
    return false;
  queue->cells = memory;
  queue->capacity = capacity;
  queue->shift = (uint32_t) __builtin_ctz (capacity);
  return true;
}

void
pto_ready_queue_destroy (struct pto_ready_queue *queue)
{
  if (queue->cells != NULL)
    munmap (queue->cells, (uint64_t) queue->capacity * sizeof (struct pto_ready_cell));
  queue->cells = NULL;
}

bool
pto_ready_queue_push (struct pto_ready_queue *queue, uint32_t item)
{
  uint64_t position = pto_load_relaxed (&queue->head);

  for (;;)
    {
      struct pto_ready_cell *cell = &queue->cells[position & (queue->capacity - 1)];
      uint32_t free_turn = (uint32_t) (position >> queue->shift) * 2;
      int32_t difference = (int32_t) (pto_load_acquire (&cell->turn) - free_turn);

      if (difference == 0)
        {
          if (pto_cas_acq_rel (&queue->head, &position, position + 1))
            {
              cell->item = item;
              pto_store_release (&cell->turn, free_turn + 1);
              return true;
            }
        }
      else if (difference < 0)
        return false;
      else
        position = pto_load_relaxed (&queue->head);
    }
}

uint32_t
pto_ready_queue_pop (struct pto_ready_queue *queue, uint32_t *items, uint32_t max)
{
  uint64_t position = pto_load_relaxed (&queue->tail);

  for (;;)
    {
      uint32_t n = 0;
      int32_t difference = 0;

      /* Cells from the tail on that are filled: nobody empties one before the tail has passed it.
       */
      while (n < max)
        {
          uint64_t at = position + n;
          uint32_t filled_turn = (uint32_t) (at >> queue->shift) * 2 + 1;

          difference = (int32_t) (pto_load_acquire (&queue->cells[at & (queue->capacity - 1)].turn)
                                  - filled_turn);
          if (difference != 0)
            break;
          n++;
        }
      if (n > 0)
        {
          if (!pto_cas_acq_rel (&queue->tail, &position, position + n))
            continue;
          for (uint32_t i = 0; i < n; i++)
            {
              uint64_t at = position + i;
              struct pto_ready_cell *cell = &queue->cells[at & (queue->capacity - 1)];

              items[i] = cell->item;
              pto_store_release (&cell->turn, (uint32_t) (at >> queue->shift) * 2 + 2);
            }
          return n;
        }
      if (difference < 0)
        return 0;
      position = pto_load_relaxed (&queue->tail);
    }
}

bool
pto_ready_queue_has_items (struct pto_ready_queue *queue)
{
  uint64_t position = pto_load_relaxed (&queue->tail);
  struct pto_ready_cell *cell = &queue->cells[position & (queue->capacity - 1)];

  return (int32_t) (pto_load_acquire (&cell->turn)
                    - ((uint32_t) (position >> queue->shift) * 2 + 1))
         >= 0;
}

uint64_t
pto_ready_queue_count (const struct pto_ready_queue *queue)
{
  uint64_t tail = pto_load_relaxed (&queue->tail);
  uint64_t head = pto_load_relaxed (&queue->head);

  return (int64_t) (head - tail) > 0 ? head - tail : 0;
}
