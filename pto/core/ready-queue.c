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

bool
pto_ready_queue_pop (struct pto_ready_queue *queue, uint32_t *item)
{
  uint64_t position = pto_load_relaxed (&queue->tail);

  for (;;)
    {
      struct pto_ready_cell *cell = &queue->cells[position & (queue->capacity - 1)];
      uint32_t filled_turn = (uint32_t) (position >> queue->shift) * 2 + 1;
      int32_t difference = (int32_t) (pto_load_acquire (&cell->turn) - filled_turn);

      if (difference == 0)
        {
          if (pto_cas_acq_rel (&queue->tail, &position, position + 1))
            {
              *item = cell->item;
              pto_store_release (&cell->turn, filled_turn + 1);
              return true;
            }
        }
      else if (difference < 0)
        return false;
      else
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
