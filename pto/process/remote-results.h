/* remote-results.h: which memory has been written and is nowhere but with the child that wrote it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A child that speaks for somebody far away leaves there what is large, until somebody needs it
 * here. A span is memory here that has not the contents that belong there; its child has them. It
 * goes when they have come, and when the memory is written anew:
 *
 *     LEFT ---- somebody needs it: WANTED ---- the child is asked: ASKED ---- it has come: gone
 *     the child is dead: LOST, until the memory is written anew
 *
 * Thread safety: any thread. All but pto_left_remove() are the carrier's, and the guest's when all
 * tasks are over; that is the guest's, too, when it is given memory by the runtime, of which no
 * task knows any more. So nobody waits for the lock for long, and without a span nobody takes it:
 * one that concerns the memory was added, or was not, before the guest was given that.
 */
#pragma once

#include "spans.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PTO_LEFT_NOBODY UINT32_MAX

enum pto_left_state
{
  PTO_LEFT_LEFT,
  PTO_LEFT_WANTED,
  PTO_LEFT_ASKED,
  PTO_LEFT_LOST
};

/* What FETCH names; in its body one behind the other. */
struct pto_left_range
{
  uint64_t begin, end;
};

struct pto_left
{
  pthread_mutex_t lock;
  struct pto_spans spans; /* tag: the child, above two bits of its state */
  /* Of them. W: under the lock; R: anybody, relaxed: above. */
  _Atomic uint32_t n;
};

static inline uint32_t
pto_left_child (const struct pto_span *span)
{
  return (uint32_t) (span->tag >> 2);
}

void pto_left_init (struct pto_left *left);
void pto_left_destroy (struct pto_left *left);
static inline bool
pto_left_is_empty (const struct pto_left *left)
{
  return atomic_load_explicit (&left->n, memory_order_relaxed) == 0;
}

/* The child alone has the range. false: there is no memory to note that, and nothing has changed.
 */
bool pto_left_add (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t child);
/* The range is written anew; but: unless that child has it (or PTO_LEFT_NOBODY). What is on its way
 * is not removed before it has come, since it is written here until then: true, some of it is. */
bool pto_left_remove (struct pto_left *left, uint64_t begin, uint64_t end, uint32_t but);

/* How is the range, to a task of that child? */
enum pto_left_where
{
  PTO_LEFT_HERE,      /* all of it is here */
  PTO_LEFT_THERE,     /* all of it is with that child */
  PTO_LEFT_SOMEWHERE, /* some of it is with somebody */
  PTO_LEFT_GONE       /* some of it is lost; *who had it */
};
enum pto_left_where pto_left_find (struct pto_left *left, uint64_t begin, uint64_t end,
                                   uint32_t child, uint32_t *who);
/* Has somebody been asked for some of it? */
bool pto_left_is_asked (struct pto_left *left, uint64_t begin, uint64_t end);
/* Is some of it, of all that there is, on its way, or about to be? */
bool pto_left_is_awaited (struct pto_left *left);
/* It is needed here: which children have some of it, as bits, is added to who. */
void pto_left_want (struct pto_left *left, uint64_t begin, uint64_t end, uint64_t *who);
/* The same of all that a child has. */
void pto_left_want_all (struct pto_left *left, uint32_t child);
/* What of the child is wanted, as far as there is room: it is being asked. Gives how many. */
uint32_t pto_left_ask (struct pto_left *left, uint32_t child, struct pto_left_range *ranges,
                       uint32_t max);
/* What it was asked for has come. */
void pto_left_come (struct pto_left *left, uint32_t child);
/* It is dead. */
void pto_left_lose (struct pto_left *left, uint32_t child);
