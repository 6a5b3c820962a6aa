/* test-ready-queue.c: does every ready task come out once, oldest first?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/core/ready-queue.h"

#include <glib.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ITEMS 100000u
#define BATCH 11
#else
#define ITEMS 1000000u
#define BATCH 11
#endif

/* The queue as it stands after position pushes and as many pops. */
static void
queue_init_at (struct pto_ready_queue *queue, uint32_t capacity, uint64_t position)
{
  g_assert_true (pto_ready_queue_init (queue, capacity));
  for (uint64_t i = position; i != position + capacity; i++)
    queue->cells[i & (capacity - 1)] = (uint32_t) (i >> queue->shift) * 2;
  queue->head = queue->tail = position;
}

static uint32_t
pop (struct pto_ready_queue *queue)
{
  uint32_t item = UINT32_MAX;

  g_assert_true (pto_ready_queue_has_items (queue));
  g_assert_cmpuint (pto_ready_queue_pop (queue, &item, 1), ==, 1);
  return item;
}

static void
test_first_in_first_out (void)
{
  struct pto_ready_queue queue;
  uint32_t item;

  g_assert_true (pto_ready_queue_init (&queue, 8));
  g_assert_false (pto_ready_queue_has_items (&queue));
  g_assert_cmpuint (pto_ready_queue_pop (&queue, &item, 1), ==, 0);
  for (uint32_t round = 0; round < 100; round++)
    {
      for (uint32_t i = 0; i < 5; i++)
        g_assert_true (pto_ready_queue_push (&queue, round * 5 + i));
      for (uint32_t i = 0; i < 5; i++)
        g_assert_cmpuint (pop (&queue), ==, round * 5 + i);
      g_assert_false (pto_ready_queue_has_items (&queue));
      g_assert_cmpuint (pto_ready_queue_pop (&queue, &item, 1), ==, 0);
    }
  pto_ready_queue_destroy (&queue);
}

static void
test_full (void)
{
  for (uint32_t capacity = 1; capacity <= 64; capacity *= 2)
    {
      struct pto_ready_queue queue;

      g_assert_true (pto_ready_queue_init (&queue, capacity));
      for (uint32_t round = 0; round < 3; round++)
        {
          for (uint32_t i = 0; i < capacity; i++)
            g_assert_true (pto_ready_queue_push (&queue, i));
          g_assert_false (pto_ready_queue_push (&queue, 99));
          g_assert_cmpuint (pop (&queue), ==, 0);
          g_assert_true (pto_ready_queue_push (&queue, capacity));
          g_assert_false (pto_ready_queue_push (&queue, 99));
          for (uint32_t i = 1; i <= capacity; i++)
            g_assert_cmpuint (pop (&queue), ==, i);
        }
      pto_ready_queue_destroy (&queue);
    }
}

/* Positions wrap at 64 bits, turns at 32. */
static void
test_positions_wrap (void)
{
  const uint64_t turn_wrap = UINT64_C (1) << 31;

  for (uint32_t capacity = 1; capacity <= 16; capacity *= 4)
    {
      const uint64_t starts[]
          = { UINT64_MAX - 3 * capacity - 1, turn_wrap * capacity - 2 * capacity - 1,
              2 * turn_wrap * capacity - 2 * capacity - 1 };

      for (gsize s = 0; s < G_N_ELEMENTS (starts); s++)
        {
          struct pto_ready_queue queue;
          uint32_t item;

          queue_init_at (&queue, capacity, starts[s]);
          g_assert_false (pto_ready_queue_has_items (&queue));
          g_assert_cmpuint (pto_ready_queue_pop (&queue, &item, 1), ==, 0);
          for (uint32_t round = 0; round < 50; round++)
            {
              uint32_t n = 1 + round % capacity;

              for (uint32_t i = 0; i < n; i++)
                g_assert_true (pto_ready_queue_push (&queue, round * 100 + i));
              if (n == capacity)
                g_assert_false (pto_ready_queue_push (&queue, 9));
              for (uint32_t i = 0; i < n; i++)
                g_assert_cmpuint (pop (&queue), ==, round * 100 + i);
              g_assert_false (pto_ready_queue_has_items (&queue));
              g_assert_cmpuint (pto_ready_queue_pop (&queue, &item, 1), ==, 0);
            }
          pto_ready_queue_destroy (&queue);
        }
    }
}

struct crowd
{
  struct pto_ready_queue queue;
  uint32_t producers;
  _Atomic uint32_t next_producer;
  _Atomic uint32_t popped;
  _Atomic uint32_t disorder;
  _Atomic uint8_t *seen;
};

static void *
producer (void *data)
{
  struct crowd *crowd = data;
  uint32_t number = atomic_fetch_add (&crowd->next_producer, 1);

  for (uint32_t item = number; item < ITEMS; item += crowd->producers)
    while (!pto_ready_queue_push (&crowd->queue, item))
      sched_yield ();
  return NULL;
}

static void *
consumer (void *data)
{
  struct crowd *crowd = data;
  uint32_t last[8];
  uint32_t max = 1;

  for (uint32_t i = 0; i < 8; i++)
    last[i] = i;
  while (atomic_load (&crowd->popped) < ITEMS)
    {
      uint32_t items[BATCH];
      uint32_t n = pto_ready_queue_pop (&crowd->queue, items, max);

      g_assert_cmpuint (n, <=, max);
      max = max % BATCH + 1;
      if (n == 0)
        sched_yield ();
      for (uint32_t i = 0; i < n; i++)
        {
          uint32_t item = items[i];

          atomic_fetch_add (&crowd->seen[item], 1);
          /* One producer's items come in its order, as far as one consumer sees them. */
          if (item < last[item % crowd->producers])
            atomic_fetch_add (&crowd->disorder, 1);
          last[item % crowd->producers] = item;
        }
      atomic_fetch_add (&crowd->popped, n);
    }
  return NULL;
}

static void
many_threads (uint32_t producers, uint32_t consumers, uint32_t capacity, uint64_t start)
{
  struct crowd crowd = { .producers = producers };
  pthread_t threads[16];

  crowd.seen = calloc (ITEMS, 1);
  queue_init_at (&crowd.queue, capacity, start);
  for (uint32_t i = 0; i < producers + consumers; i++)
    g_assert_cmpint (
        pthread_create (&threads[i], NULL, i < producers ? producer : consumer, &crowd), ==, 0);
  for (uint32_t i = 0; i < producers + consumers; i++)
    g_assert_cmpint (pthread_join (threads[i], NULL), ==, 0);
  g_assert_cmpuint (crowd.popped, ==, ITEMS);
  g_assert_cmpuint (crowd.disorder, ==, 0);
  for (uint32_t i = 0; i < ITEMS; i++)
    g_assert_cmpuint (crowd.seen[i], ==, 1);
  g_assert_false (pto_ready_queue_has_items (&crowd.queue));
  free ((void *) crowd.seen);
  pto_ready_queue_destroy (&crowd.queue);
}

/* Several at one time: as many as there are, as many as asked for, across the end of the memory. */
static void
test_batches (void)
{
  struct pto_ready_queue queue;
  uint32_t items[BATCH] = { 0 };

  queue_init_at (&queue, 8, UINT64_MAX - 20);
  for (uint32_t round = 0; round < 50; round++)
    {
      for (uint32_t i = 0; i < 7; i++)
        g_assert_true (pto_ready_queue_push (&queue, 7 * round + i));
      g_assert_cmpuint (pto_ready_queue_pop (&queue, items, 3), ==, 3);
      for (uint32_t i = 0; i < 3; i++)
        g_assert_cmpuint (items[i], ==, 7 * round + i);
      g_assert_cmpuint (pto_ready_queue_count (&queue), ==, 4);
      g_assert_cmpuint (pto_ready_queue_pop (&queue, items, BATCH), ==, 4);
      for (uint32_t i = 0; i < 4; i++)
        g_assert_cmpuint (items[i], ==, 7 * round + 3 + i);
      g_assert_cmpuint (pto_ready_queue_pop (&queue, items, BATCH), ==, 0);
      g_assert_cmpuint (pto_ready_queue_count (&queue), ==, 0);
    }
  for (uint32_t i = 0; i < 8; i++)
    g_assert_true (pto_ready_queue_push (&queue, i));
  g_assert_false (pto_ready_queue_push (&queue, 8));
  g_assert_cmpuint (pto_ready_queue_pop (&queue, items, BATCH), ==, 8);
  pto_ready_queue_destroy (&queue);
}

static void
test_many_threads (void)
{
  many_threads (4, 4, 256, 0);
}

static void
test_many_threads_small (void)
{
  many_threads (3, 3, 2, UINT64_MAX - 10000);
}

static void
test_one_producer_many_consumers (void)
{
  many_threads (1, 4, 16, (UINT64_C (1) << 31) * 16 - 100000);
}

static void
test_making_one_touches_nothing (void)
{
  struct pto_ready_queue queue;
  uint32_t capacity = 1u << 20;
  uint64_t bytes = (uint64_t) capacity * sizeof (uint64_t);
  uint64_t n = bytes / (uint64_t) sysconf (_SC_PAGESIZE);
  uint8_t *map = g_malloc (n);
  uint32_t item;
  uint32_t touched = 0;

  g_assert_true (pto_ready_queue_init (&queue, capacity));
  g_assert_cmpint (mincore (queue.cells, bytes, map), ==, 0);
  for (uint64_t i = 0; i < n; i++)
    touched += map[i] & 1;
  g_assert_cmpuint (touched, ==, 0);
  g_assert_cmpuint (pto_ready_queue_pop (&queue, &item, 1), ==, 0);
  g_assert_true (pto_ready_queue_push (&queue, 5));
  g_assert_cmpuint (pop (&queue), ==, 5);
  pto_ready_queue_destroy (&queue);
  g_free (map);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (120);
  g_test_add_func ("/pto/ready-queue/first-in-first-out", test_first_in_first_out);
  g_test_add_func ("/pto/ready-queue/full", test_full);
  g_test_add_func ("/pto/ready-queue/positions-wrap", test_positions_wrap);
  g_test_add_func ("/pto/ready-queue/batches", test_batches);
  g_test_add_func ("/pto/ready-queue/many-threads", test_many_threads);
  g_test_add_func ("/pto/ready-queue/many-threads-small", test_many_threads_small);
  g_test_add_func ("/pto/ready-queue/one-producer-many-consumers",
                   test_one_producer_many_consumers);
  g_test_add_func ("/pto/ready-queue/making-one-touches-nothing", test_making_one_touches_nothing);
  return g_test_run ();
}
