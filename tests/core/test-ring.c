/* test-ring.c: is a ring's memory never given to two tasks, and never refused to one that fits?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/core/ring.h"

#include <glib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIB UINT64_C (1024)
#define MIB (1024 * KIB)

static uint64_t
next_random (uint64_t *state)
{
  uint64_t z = (*state += UINT64_C (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint32_t
below (uint64_t *state, uint32_t n)
{
  return (uint32_t) ((next_random (state) >> 32) * n >> 32);
}

/* --- tensors of several tasks --- */

/* Whoever looks may still read those that were too few. */
static void
test_shared_tensors_stay (void)
{
  struct pto_shared_tensors shared = { 0 };
  TensorData *first;

  g_assert_true (pto_shared_tensors_reserve (&shared, 3));
  g_assert_cmpuint (shared.n, ==, 3);
  first = shared.items;
  memset (first, 7, 3 * sizeof *first);
  g_assert_true (pto_shared_tensors_reserve (&shared, 2));
  g_assert_true (shared.items == first);
  g_assert_true (pto_shared_tensors_reserve (&shared, 4));
  g_assert_cmpuint (shared.n, ==, 6);
  g_assert_true (shared.items != first);
  memset (shared.items, 9, shared.n * sizeof *first);
  g_assert_true (pto_shared_tensors_reserve (&shared, 1000));
  g_assert_cmpuint (shared.n, ==, 1000);
  for (gsize i = 0; i < 3 * sizeof *first; i++)
    g_assert_cmpuint (((const guint8 *) first)[i], ==, 7);
  pto_shared_tensors_clear (&shared);
  g_assert_null (shared.items);
  g_assert_cmpuint (shared.n, ==, 0);
}

/* --- the circle --- */

struct piece
{
  uint64_t offset;
  uint64_t end;
  uint64_t taken;
};

static struct piece
take (struct pto_circle *circle, uint64_t bytes)
{
  struct piece piece;

  piece.offset = pto_circle_alloc (circle, bytes, false, &piece.taken);
  piece.end = circle->head;
  return piece;
}

static void
give (struct pto_circle *circle, struct piece piece)
{
  pto_circle_free (circle, piece.end, piece.taken);
}

static void
test_exact_fit_at_the_end (void)
{
  struct pto_circle circle = { .size = 4 * KIB };
  struct piece a = take (&circle, KIB);
  struct piece b = take (&circle, 3 * KIB);

  g_assert_cmpuint (a.offset, ==, 0);
  g_assert_cmpuint (b.offset, ==, KIB);
  g_assert_cmpuint (take (&circle, 1).offset, ==, PTO_CIRCLE_FULL);
  /* The whole of it, too. */
  give (&circle, a);
  give (&circle, b);
  g_assert_cmpuint (circle.used, ==, 0);
  g_assert_cmpuint (take (&circle, 4 * KIB).offset, ==, 0);
}

static void
test_exact_fit_up_to_the_tail (void)
{
  struct pto_circle circle = { .size = 4 * KIB };
  struct piece a = take (&circle, 2 * KIB);

  take (&circle, 2 * KIB);
  give (&circle, a);
  /* Head and tail would be the same as in an empty ring. */
  g_assert_cmpuint (take (&circle, 2 * KIB).offset, ==, PTO_CIRCLE_FULL);
  g_assert_cmpuint (take (&circle, KIB).offset, ==, 0);
  g_assert_cmpuint (take (&circle, KIB).offset, ==, PTO_CIRCLE_FULL);
  g_assert_cmpuint (take (&circle, KIB - 1).offset, ==, KIB);
}

static void
test_no_straddling (void)
{
  struct pto_circle circle = { .size = 4 * KIB };
  struct piece a = take (&circle, 3 * KIB);
  struct piece b = take (&circle, 512);
  struct piece c;

  give (&circle, a);
  c = take (&circle, KIB);
  g_assert_cmpuint (c.offset, ==, 0);
  /* What was skipped counts as in use until it comes back with c. */
  g_assert_cmpuint (c.taken, ==, KIB + 512);
  g_assert_cmpuint (circle.used, ==, 512 + KIB + 512);
  give (&circle, b);
  give (&circle, c);
  g_assert_cmpuint (circle.used, ==, 0);
}

/* Seed 000: a ring half as large again as one buffer passes any number of them. */
static void
test_rebase_when_empty (void)
{
  struct pto_circle circle = { .size = 3 * MIB / 2 };

  for (uint32_t i = 0; i < 1000; i++)
    {
      struct piece piece = take (&circle, MIB);

      g_assert_cmpuint (piece.offset, ==, 0);
      g_assert_cmpuint (take (&circle, MIB).offset, ==, PTO_CIRCLE_FULL);
      give (&circle, piece);
      g_assert_cmpuint (circle.used, ==, 0);
    }
  /* More than half behind a small one that is gone. */
  give (&circle, take (&circle, KIB));
  g_assert_cmpuint (take (&circle, 3 * MIB / 2).offset, ==, 0);
}

static void
test_nothing_takes_nothing (void)
{
  struct pto_circle circle = { .size = 4 * KIB };
  struct piece a = take (&circle, 4 * KIB);
  struct piece nothing = take (&circle, 0);

  g_assert_cmpuint (nothing.offset, !=, PTO_CIRCLE_FULL);
  g_assert_cmpuint (nothing.taken, ==, 0);
  give (&circle, a);
  give (&circle, nothing);
  g_assert_cmpuint (circle.used, ==, 0);
  g_assert_cmpuint (take (&circle, 4 * KIB).offset, ==, 0);
}

/* A short live piece moves through a large circle, 4 KiB at a time, until the circle turns. Gives
 * the piece before the turn, which is in use, and in *turned the one behind it. */
static struct piece
move_until_turn (struct pto_circle *circle, bool compact, struct piece *turned)
{
  struct piece before = take (circle, 4 * KIB);

  for (;;)
    {
      struct piece piece;

      piece.offset = pto_circle_alloc (circle, 4 * KIB, compact, &piece.taken);
      piece.end = circle->head;
      g_assert_cmpuint (piece.offset, !=, PTO_CIRCLE_FULL);
      if (piece.offset == 0)
        {
          *turned = piece;
          return before;
        }
      give (circle, before);
      before = piece;
    }
}

static void
test_compact_turns_early (void)
{
  struct pto_circle circle = { .size = 64 * MIB };
  struct piece turned;
  struct piece before = move_until_turn (&circle, true, &turned);

  g_assert_cmpuint (before.end, <, 32 * MIB);
  give (&circle, before);
  give (&circle, turned);
  g_assert_cmpuint (circle.used, ==, 0);
  /* Only where that is wanted. */
  before = move_until_turn (&circle, false, &turned);
  g_assert_cmpuint (before.end, ==, 64 * MIB);
}

/* An early turn costs nothing for long: with the piece before the turn gone all of the memory
 * behind it is free. */
static void
test_compact_gives_back_what_it_skipped (void)
{
  struct pto_circle circle = { .size = 64 * MIB };
  struct piece turned;
  struct piece before = move_until_turn (&circle, true, &turned);

  give (&circle, before);
  /* 4 KiB at the front are held, the rest is not. */
  g_assert_cmpuint (take (&circle, 32 * MIB).offset, ==, 4 * KIB);
  g_assert_cmpuint (take (&circle, 32 * MIB - 4 * KIB).offset, ==, 32 * MIB + 4 * KIB);
}

/* Not near the front, and not where as much was in use before: it would soon be needed again. */
static void
test_compact_waits (void)
{
  struct pto_circle circle = { .size = 64 * MIB };
  struct piece big = take (&circle, 8 * MIB);
  struct piece before = take (&circle, 4 * KIB);
  struct piece turned;

  give (&circle, big);
  give (&circle, before);
  before = move_until_turn (&circle, true, &turned);
  g_assert_cmpuint (before.end, >, 16 * MIB);
  circle = (struct pto_circle){ .size = 64 * MIB, .compact_from = 256 * KIB };
  before = move_until_turn (&circle, true, &turned);
  g_assert_cmpuint (before.end, >=, 256 * KIB);
}

static void
test_undo (void)
{
  struct pto_circle circle = { .size = 4 * KIB };
  struct piece a = take (&circle, 3 * KIB);
  struct piece b = take (&circle, 512);
  struct pto_circle before;
  struct piece c;

  before = circle;
  c = take (&circle, 512);
  pto_circle_undo (&circle, c.offset, 512, c.taken);
  g_assert_cmpuint (circle.head, ==, before.head);
  g_assert_cmpuint (circle.used, ==, before.used);
  give (&circle, a);
  before = circle;
  c = take (&circle, KIB);
  g_assert_cmpuint (c.offset, ==, 0);
  pto_circle_undo (&circle, c.offset, KIB, c.taken);
  g_assert_cmpuint (circle.head, ==, before.head);
  g_assert_cmpuint (circle.used, ==, before.used);
  g_assert_cmpuint (take (&circle, 512).offset, ==, 3 * KIB + 512);
  give (&circle, b);
}

/* --- the circle against one flag per byte --- */

#define ORACLE_SIZE 512u
#define ORACLE_LIVE 64u

struct oracle
{
  uint8_t used[ORACLE_SIZE];
  uint64_t offsets[ORACLE_LIVE];
  uint64_t lengths[ORACLE_LIVE]; /* in order of allocation */
  struct piece pieces[ORACLE_LIVE];
  uint32_t n;
};

static void
oracle_mark (struct oracle *oracle, uint32_t i, uint8_t value)
{
  for (uint64_t b = 0; b < oracle->lengths[i]; b++)
    {
      g_assert_cmpuint (oracle->used[oracle->offsets[i] + b], !=, value);
      oracle->used[oracle->offsets[i] + b] = value;
    }
}

/* Where the plain rule puts so many bytes: behind the newest piece, or at 0 before the oldest, or
 * nowhere. */
static uint64_t
oracle_place (const struct oracle *oracle, uint64_t bytes)
{
  uint32_t first = 0;
  uint64_t head;
  uint64_t tail;

  while (first < oracle->n && oracle->lengths[first] == 0)
    first++;
  if (first == oracle->n)
    return bytes <= ORACLE_SIZE ? 0 : PTO_CIRCLE_FULL;
  tail = oracle->offsets[first];
  head = 0;
  for (uint32_t i = first; i < oracle->n; i++)
    if (oracle->lengths[i] > 0)
      head = oracle->offsets[i] + oracle->lengths[i];
  if (head <= tail)
    return tail - head > bytes ? head : PTO_CIRCLE_FULL;
  if (ORACLE_SIZE - head >= bytes)
    return head;
  return tail > bytes ? 0 : PTO_CIRCLE_FULL;
}

/* Turns that the plain rule would not have made. */
static uint32_t n_early;

/* A unit is what one flag of the oracle stands for. */
static void
circle_against_oracle (uint64_t seed, uint64_t unit, bool may_compact)
{
  struct pto_circle circle = { .size = ORACLE_SIZE * unit };
  struct oracle oracle = { .n = 0 };
  uint64_t random = seed;
  uint32_t largest = 1 + below (&random, ORACLE_SIZE);
  uint32_t eager = 1 + below (&random, 8);
  /* A few small pieces at a time, so that a circle that may turn early does. */
  bool calm = may_compact && seed % 2 == 0;

  for (uint32_t step = 0; step < (calm ? 2000u : 400u); step++)
    if (calm ? oracle.n < 2 || (oracle.n < 4 && below (&random, 2) == 0)
             : oracle.n < ORACLE_LIVE && below (&random, 10) < eager)
      {
        uint64_t bytes = below (&random, 12) == 0          ? 0
                         : calm || below (&random, 4) == 0 ? 1 + below (&random, 8)
                                                           : 1 + below (&random, largest);
        uint64_t expected = bytes > 0 ? oracle_place (&oracle, bytes) : 0;
        bool compact = may_compact && below (&random, 2) == 0;
        struct piece piece;

        /* Now and then one that needs what an early turn has skipped. */
        if (calm && below (&random, 100) == 0)
          {
            bytes = 1 + below (&random, ORACLE_SIZE / 2);
            expected = oracle_place (&oracle, bytes);
            circle.peak = 0;
          }
        piece.offset = pto_circle_alloc (&circle, bytes * unit, compact, &piece.taken);
        piece.end = circle.head;
        if (piece.offset != PTO_CIRCLE_FULL)
          {
            g_assert_cmpuint (piece.offset % unit, ==, 0);
            piece.offset /= unit;
          }
        if (bytes == 0)
          g_assert_cmpuint (piece.taken, ==, 0);
        else
          {
            if (compact)
              {
                g_assert_cmpint (piece.offset == PTO_CIRCLE_FULL, ==, expected == PTO_CIRCLE_FULL);
                n_early += piece.offset != expected;
              }
            else
              g_assert_cmpuint (piece.offset, ==, expected);
            if (piece.offset == PTO_CIRCLE_FULL)
              continue;
            g_assert_cmpuint (piece.offset + bytes, <=, ORACLE_SIZE);
          }
        oracle.offsets[oracle.n] = piece.offset;
        oracle.lengths[oracle.n] = bytes;
        oracle.pieces[oracle.n] = piece;
        oracle_mark (&oracle, oracle.n++, 1);
      }
    else if (oracle.n > 0)
      {
        oracle_mark (&oracle, 0, 0);
        give (&circle, oracle.pieces[0]);
        oracle.n--;
        memmove (oracle.offsets, oracle.offsets + 1, oracle.n * sizeof *oracle.offsets);
        memmove (oracle.lengths, oracle.lengths + 1, oracle.n * sizeof *oracle.lengths);
        memmove (oracle.pieces, oracle.pieces + 1, oracle.n * sizeof *oracle.pieces);
        if (oracle.n == 0)
          g_assert_cmpuint (circle.used, ==, 0);
      }
}

static void
test_circle_property (void)
{
  for (uint64_t seed = 1; seed <= 3000; seed++)
    {
      g_test_message ("seed %" G_GUINT64_FORMAT, seed);
      circle_against_oracle (seed, 1, false);
    }
}

/* Pieces of at most so much, at most so much of them at one time, in any order. */
static bool
is_enough (uint64_t size, uint64_t most, uint64_t largest, uint64_t seed)
{
  struct pto_circle circle = { .size = size };
  struct piece pieces[ORACLE_LIVE];
  uint64_t lengths[ORACLE_LIVE];
  uint64_t random = seed;
  uint64_t held = 0;
  uint32_t n = 0;

  for (uint32_t step = 0; step < 300; step++)
    {
      uint64_t bytes = 1 + below (&random, (uint32_t) (seed % 2 == 0 ? 1 : largest));

      if (below (&random, 4) == 0)
        bytes = largest;
      while (held + bytes > most || n == ORACLE_LIVE)
        {
          give (&circle, pieces[0]);
          held -= lengths[0];
          n--;
          memmove (pieces, pieces + 1, n * sizeof *pieces);
          memmove (lengths, lengths + 1, n * sizeof *lengths);
        }
      lengths[n] = bytes;
      pieces[n] = take (&circle, bytes);
      if (pieces[n].offset == PTO_CIRCLE_FULL)
        return false;
      held += bytes;
      n++;
    }
  return true;
}

/* What the words of a deadlock advise: what is held at most, and the largest piece. Not less. */
static void
test_enough_property (void)
{
  for (uint64_t largest = 1; largest <= 6; largest++)
    for (uint64_t most = largest + 1; most <= 20; most++)
      {
        bool less = true;

        for (uint64_t seed = 1; seed <= 40; seed++)
          {
            g_assert_true (is_enough (most + largest, most, largest, seed));
            less = less && is_enough (most + largest - 1, most, largest, seed);
          }
        g_assert_false (less);
      }
}

static void
test_compact_property (void)
{
  for (uint64_t seed = 1; seed <= 3000; seed++)
    {
      g_test_message ("seed %" G_GUINT64_FORMAT, seed);
      circle_against_oracle (seed, 4 * KIB, true);
    }
  g_test_message ("%u early turns", n_early);
  g_assert_cmpuint (n_early, >, 100);
}

/* --- slots and edges --- */

static void
ring_init (struct pto_ring *ring, uint32_t window, uint32_t *tail, uint32_t start)
{
  struct pto_ring_config config = { .window = window, .edge_pool = 16, .heap = 64 * KIB };

  g_assert_true (pto_ring_init (ring, &config));
  pto_ring_reset (ring, tail);
  ring->head = ring->floor = *tail = start;
  ring->edge_head = ring->edge_tail = start;
}

/* A task with so many edges and bytes, as a submit would make it. */
static struct pto_slot *
submit (struct pto_ring *ring, uint32_t n_edges, uint64_t heap)
{
  struct pto_slot *slot = pto_ring_slot (ring, ring->head);

  slot->id = PTO_TASK_ID (0, ring->head);
  slot->taken = 0;
  slot->released = 0;
  slot->state = PTO_TASK_PENDING;
  slot->n_edges = n_edges;
  g_assert_cmpuint (pto_circle_alloc (&ring->heap, heap, false, &slot->heap_bytes), !=,
                    PTO_CIRCLE_FULL);
  slot->heap_end = ring->heap.head;
  g_assert_cmpuint (pto_circle_alloc (&ring->storage, 64, false, &slot->storage_bytes), !=,
                    PTO_CIRCLE_FULL);
  slot->storage_end = ring->storage.head;
  ring->edge_head += n_edges;
  ring->head++;
  return slot;
}

static void
test_reclaim_in_order (void)
{
  struct pto_ring ring;
  struct pto_slot *slots[3];
  uint32_t tail;

  ring_init (&ring, 4, &tail, 0);
  for (uint32_t i = 0; i < 3; i++)
    slots[i] = submit (&ring, 2, KIB);
  slots[1]->state = slots[2]->state = PTO_TASK_COMPLETED;
  ring.floor = ring.head;
  g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 0);
  slots[0]->state = PTO_TASK_RUNNING;
  g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 0);
  slots[0]->state = PTO_TASK_FAILED;
  g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 3);
  g_assert_cmpuint (tail, ==, 3);
  g_assert_cmpuint (ring.edge_tail, ==, 6);
  g_assert_cmpuint (ring.heap.used, ==, 0);
  g_assert_cmpuint (ring.storage.used, ==, 0);
  pto_ring_destroy (&ring);
}

static void
test_reclaim_waits_for_references (void)
{
  struct pto_ring ring;
  struct pto_slot *slot;
  uint32_t tail;

  ring_init (&ring, 4, &tail, 0);
  slot = submit (&ring, 0, KIB);
  ring.floor = ring.head;
  slot->state = PTO_TASK_COMPLETED;
  slot->taken = 2;
  g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 0);
  slot->released = 1;
  g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 0);
  slot->released = 2;
  g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 1);
  pto_ring_destroy (&ring);
}

static void
test_reclaim_stops_at_the_floor (void)
{
  struct pto_ring ring;
  uint32_t tail;

  ring_init (&ring, 8, &tail, 0);
  for (uint32_t i = 0; i < 5; i++)
    submit (&ring, 1, 0)->state = PTO_TASK_COMPLETED;
  g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 0);
  ring.floor = 3;
  g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 3);
  g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 0);
  ring.floor = 5;
  g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 2);
  pto_ring_destroy (&ring);
}

/* Slots, edges and 32-bit positions go round in every phase. */
static void
test_positions_wrap (void)
{
  for (uint32_t window = 4; window <= 16; window *= 2)
    for (uint32_t phase = 0; phase < window; phase++)
      {
        struct pto_ring ring;
        uint32_t tail;
        uint32_t start = UINT32_MAX - 3 * window - phase;
        uint64_t random = window * 1000 + phase;

        ring_init (&ring, window, &tail, start);
        for (uint32_t i = 0; i < 20 * window; i++)
          {
            while (ring.head - tail < 1 + below (&random, window - 1))
              {
                struct pto_slot *slot = submit (&ring, 1, KIB);

                g_assert_true (slot == &ring.slots[(ring.head - 1) % window]);
                slot->state = PTO_TASK_COMPLETED;
              }
            ring.floor = tail + 1 + below (&random, ring.head - tail);
            {
              uint32_t expected = ring.floor - tail;

              g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, expected);
            }
            g_assert_cmpuint (tail, ==, ring.floor);
            g_assert_cmpuint (ring.edge_head - ring.edge_tail, ==, ring.head - tail);
            g_assert_cmpuint (ring.heap.used, >=, (ring.head - tail) * KIB);
          }
        g_assert_cmpuint (tail, <, start);
        pto_ring_destroy (&ring);
      }
}

/* References of slots and edges keep ring and index apart, up to the largest there may be. */
static void
test_references (void)
{
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      const uint32_t indices[] = { 0, 1, PTO_WINDOW_MAX - 1, PTO_EDGE_POOL_MAX - 1 };

      for (gsize i = 0; i < G_N_ELEMENTS (indices); i++)
        {
          uint32_t edge = PTO_EDGE_REF (r, indices[i]);

          g_assert_cmpuint (edge, !=, 0);
          g_assert_cmpuint (edge, <, PTO_FANOUT_FAILED);
          g_assert_cmpuint ((edge - 1) >> PTO_EDGE_RING_SHIFT, ==, r);
          g_assert_cmpuint ((edge - 1) & ((1u << PTO_EDGE_RING_SHIFT) - 1), ==, indices[i]);
          if (indices[i] < PTO_WINDOW_MAX)
            {
              pto_slot_ref slot = PTO_SLOT_REF (r, indices[i]);

              g_assert_cmpuint (slot >> PTO_SLOT_RING_SHIFT, ==, r);
              g_assert_cmpuint (slot & ((1u << PTO_SLOT_RING_SHIFT) - 1), ==, indices[i]);
            }
        }
    }
}

static uint64_t
resident (const void *base, uint64_t bytes)
{
  uint64_t page = (uint64_t) sysconf (_SC_PAGESIZE);
  uint64_t first = (uint64_t) (uintptr_t) base / page * page;
  uint64_t n = ((uint64_t) (uintptr_t) base + bytes - first + page - 1) / page;
  g_autofree unsigned char *pages = g_malloc (n);
  uint64_t sum = 0;

  g_assert_cmpint (mincore ((void *) (uintptr_t) first, n * page, pages), ==, 0);
  for (uint64_t i = 0; i < n; i++)
    sum += pages[i] & 1;
  return sum * page;
}

/* Window after window goes through a large ring, a small part of it at a time. What is alive keeps
 * what it says, and what is behind it is not kept. */
static void
test_large_gives_back (void)
{
  struct pto_ring_config config = { .window = 1u << 20, .edge_pool = 1u << 22, .heap = 64 * KIB };
  uint64_t slots = config.window * sizeof (struct pto_slot);
  uint64_t edges = config.edge_pool * sizeof (struct pto_edge);
  struct pto_ring ring;
  uint32_t tail;

  g_assert_true (pto_ring_init (&ring, &config));
  pto_ring_reset (&ring, &tail);
  for (uint32_t i = 0; i < 3 * config.window; i++)
    {
      struct pto_slot *slot = submit (&ring, 4, 0);

      slot->state = PTO_TASK_COMPLETED;
      slot->mark = i;
      for (uint32_t e = ring.edge_head - 4; e != ring.edge_head; e++)
        ring.edges[e & (config.edge_pool - 1)].producer = e;
      if (ring.head - tail == 2000)
        {
          uint32_t before = tail, edge_tail = ring.edge_tail;

          ring.floor = ring.head - 1000;
          g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 1000);
          pto_ring_give_back (&ring, before, tail, edge_tail);
          for (uint32_t local = tail; local != ring.head; local++)
            g_assert_cmpuint (pto_ring_slot (&ring, local)->mark, ==, local);
          for (uint32_t e = ring.edge_tail; e != ring.edge_head; e++)
            g_assert_cmpuint (ring.edges[e & (config.edge_pool - 1)].producer, ==, e);
        }
    }
  g_assert_cmpuint (resident (ring.slots, slots), <, slots / 5);
  g_assert_cmpuint (resident (ring.edges, edges), <, edges / 3);
  pto_ring_destroy (&ring);
}

/* One that is nearly full has come around: nobody's memory goes. */
static void
test_full_gives_nothing_back (void)
{
  struct pto_ring_config config = { .window = 1u << 19, .edge_pool = 16, .heap = 64 * KIB };
  struct pto_ring ring;
  uint32_t tail;

  g_assert_true (pto_ring_init (&ring, &config));
  pto_ring_reset (&ring, &tail);
  for (uint32_t i = 0; i < 3 * config.window; i++)
    {
      struct pto_slot *slot = submit (&ring, 0, 0);

      slot->state = PTO_TASK_COMPLETED;
      slot->mark = i;
      if (ring.head - tail == config.window - 1)
        {
          uint32_t before = tail;

          ring.floor = tail + 50000;
          g_assert_cmpuint (pto_ring_reclaim (&ring, &tail), ==, 50000);
          pto_ring_give_back (&ring, before, tail, 0);
          for (uint32_t local = tail; local != ring.head; local++)
            if (pto_ring_slot (&ring, local)->mark != local)
              g_assert_cmpuint (pto_ring_slot (&ring, local)->mark, ==, local);
        }
    }
  pto_ring_destroy (&ring);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (60);
  g_test_add_func ("/pto/ring/exact-fit-at-the-end", test_exact_fit_at_the_end);
  g_test_add_func ("/pto/ring/exact-fit-up-to-the-tail", test_exact_fit_up_to_the_tail);
  g_test_add_func ("/pto/ring/no-straddling", test_no_straddling);
  g_test_add_func ("/pto/ring/rebase-when-empty", test_rebase_when_empty);
  g_test_add_func ("/pto/ring/nothing-takes-nothing", test_nothing_takes_nothing);
  g_test_add_func ("/pto/ring/compact-turns-early", test_compact_turns_early);
  g_test_add_func ("/pto/ring/compact-waits", test_compact_waits);
  g_test_add_func ("/pto/ring/compact-gives-back-what-it-skipped",
                   test_compact_gives_back_what_it_skipped);
  g_test_add_func ("/pto/ring/undo", test_undo);
  g_test_add_func ("/pto/ring/circle-property", test_circle_property);
  g_test_add_func ("/pto/ring/enough-property", test_enough_property);
  g_test_add_func ("/pto/ring/compact-property", test_compact_property);
  g_test_add_func ("/pto/ring/reclaim-in-order", test_reclaim_in_order);
  g_test_add_func ("/pto/ring/reclaim-waits-for-references", test_reclaim_waits_for_references);
  g_test_add_func ("/pto/ring/reclaim-stops-at-the-floor", test_reclaim_stops_at_the_floor);
  g_test_add_func ("/pto/ring/positions-wrap", test_positions_wrap);
  g_test_add_func ("/pto/ring/large-gives-back", test_large_gives_back);
  g_test_add_func ("/pto/ring/full-gives-nothing-back", test_full_gives_nothing_back);
  g_test_add_func ("/pto/ring/references", test_references);
  g_test_add_func ("/pto/ring/shared-tensors-stay", test_shared_tensors_stay);
  return g_test_run ();
}
