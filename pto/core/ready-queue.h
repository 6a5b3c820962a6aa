/* ready-queue.h: which tasks can run now?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A bounded first-in first-out queue for any number of producers and consumers, after Vyukov: every
 * cell carries a turn that says whether it is free or filled in which lap. Unlike his, a push is
 * one compare-exchange of the cell itself, and the head only a hint at where to begin: nobody waits
 * for a push that is half done, and it is a full fence for what the producer looks at next. Zeroed
 * memory is an empty queue: making one touches nothing.
 */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pto_ready_queue
{
  /* The turn below, the item above. Turn: 2 * lap = free for that lap's push, 2 * lap + 1 = filled.
   * W: producers by compare-exchange (seq_cst: see pto_engine_ring(); acquire pairs with the
   * release of the pop a lap ago), the consumer that the tail gave it to (release). */
  _Atomic uint64_t *cells;
  uint32_t capacity; /* a power of two */
  uint32_t shift;    /* log2 of it */
  /* Where the next push looks first: never beyond it. W: producers, relaxed, also out of order */
  alignas (64) _Atomic uint64_t head;
  alignas (64) _Atomic uint64_t tail; /* next pop; W: consumers by compare-exchange */
};

bool pto_ready_queue_init (struct pto_ready_queue *queue, uint32_t capacity);
/* Empty, nobody pushes, and no other thread than one pops: begins at the first cell again and gives
 * memory back, if it has got far. */
void pto_ready_queue_restart (struct pto_ready_queue *queue);
void pto_ready_queue_destroy (struct pto_ready_queue *queue);
/* false: full. Never waits. */
bool pto_ready_queue_push (struct pto_ready_queue *queue, uint32_t item);
/* Takes the oldest ones, at most so many; gives how many. Never waits. */
uint32_t pto_ready_queue_pop (struct pto_ready_queue *queue, uint32_t *items, uint32_t max);
/* Is there something to pop? A hint for other threads' pushes, exact for the caller's own. */
bool pto_ready_queue_has_items (struct pto_ready_queue *queue);
/* How many there are, about. */
uint64_t pto_ready_queue_count (const struct pto_ready_queue *queue);
