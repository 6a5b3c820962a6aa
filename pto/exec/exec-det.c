/* exec-det.c: how do runs repeat themselves? One thread, a seeded choice among runnable actors, a
 * virtual clock.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every actor is in exactly one place: running, in ready[] (ordered by the time it became
 * runnable), parked on a word (and then perhaps in the timer heap too), or in the heap because it
 * spends virtual time. All of it belongs to the guest's thread. Other threads leave what they want
 * in incoming (spawned actors) and in the external flag (a word was changed); the next choice looks
 * there. Nothing in a decision depends on an address.
 */
#include "exec-private.h"
#include "translate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct timer
{
  uint64_t time;
  uint64_t sequence; /* orders equal times by arming */
  struct pto_actor *actor;
};

struct det
{
  struct pto_exec base;
  uint64_t now;
  /* an array, since the chosen one is taken from anywhere and the order is kept */
  struct pto_actor **ready;
  uint32_t ready_count;
  uint32_t heap_count;
  struct timer *heap;
  uint64_t sequence;
  uint32_t capacity; /* of ready and heap: one place for each actor and the guest */
  uint32_t members;  /* actors started and not returned, and the guest */
  /* W: any thread, exchange release; R: the guest's thread, exchange acquire */
  _Atomic (struct pto_actor *) incoming;
  /* W: any thread after it changed a word or incoming; R: the guest's thread at each choice */
  _Atomic uint32_t external;
  struct pto_actor *graveyard; /* returned; recycled when somebody else certainly runs */
};

static inline struct det *
det_of (struct pto_exec *exec)
{
  return (struct det *) exec;
}

/* --- the timer heap --- */

static inline bool
timer_before (const struct timer *a, const struct timer *b)
{
  return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

static void
heap_up (struct det *det, uint32_t i, struct timer timer)
{
  for (; i > 0 && timer_before (&timer, &det->heap[(i - 1) / 2]); i = (i - 1) / 2)
    det->heap[i] = det->heap[(i - 1) / 2];
  det->heap[i] = timer;
}

static void
heap_down (struct det *det, uint32_t i, struct timer timer)
{
  for (uint32_t child; (child = 2 * i + 1) < det->heap_count; i = child)
    {
      child
          += child + 1 < det->heap_count && timer_before (&det->heap[child + 1], &det->heap[child]);
      if (!timer_before (&det->heap[child], &timer))
        break;
      det->heap[i] = det->heap[child];
    }
  det->heap[i] = timer;
}

static void
heap_add (struct det *det, struct pto_actor *actor, uint64_t time)
{
  heap_up (det, det->heap_count++, (struct timer){ time, det->sequence++, actor });
}

static void
heap_remove (struct det *det, uint32_t i)
{
  struct timer last = det->heap[--det->heap_count];

  if (i == det->heap_count)
    return;
  if (i > 0 && timer_before (&last, &det->heap[(i - 1) / 2]))
    heap_up (det, i, last);
  else
    heap_down (det, i, last);
}

/* --- who is next --- */

static inline void
ready_add (struct det *det, struct pto_actor *actor)
{
  det->ready[det->ready_count++] = actor;
}

static void
wake (struct det *det, struct pto_actor *actor, enum pto_park_result result)
{
  atomic_store_explicit (&actor->word->waiter, NULL, memory_order_relaxed);
  actor->word = NULL;
  actor->result = result;
  if (PTO_UNLIKELY (actor->has_timer))
    {
      uint32_t i = 0;

      while (det->heap[i].actor != actor)
        i++;
      heap_remove (det, i);
      actor->has_timer = false;
    }
  ready_add (det, actor);
}

/* No memory for their places: they stay where they are and the next choice tries again. */
static void
put_back (struct det *det, struct pto_actor *queue)
{
  while (queue != NULL)
    {
      struct pto_actor *next = queue->next;

      queue->next = atomic_load_explicit (&det->incoming, memory_order_relaxed);
      while (!atomic_compare_exchange_weak_explicit (&det->incoming, &queue->next, queue,
                                                     memory_order_release, memory_order_relaxed))
        ;
      queue = next;
    }
  atomic_store_explicit (&det->external, 1, memory_order_relaxed);
}

static void
take_incoming (struct det *det)
{
  /* Acquire: pairs with the release of det_start(), for the actor's fields. */
  struct pto_actor *stack = atomic_exchange_explicit (&det->incoming, NULL, memory_order_acquire);
  struct pto_actor *queue = NULL;

  while (stack != NULL)
    {
      struct pto_actor *next = stack->next;

      stack->next = queue;
      queue = stack;
      stack = next;
    }
  while (queue != NULL)
    {
      struct pto_actor *next = queue->next;

      queue->next = NULL;
      if (det->members + 1 > det->capacity)
        {
          uint32_t capacity = det->capacity * 2;
          struct pto_actor **ready = realloc (det->ready, capacity * sizeof *ready);
          struct timer *heap = realloc (det->heap, capacity * sizeof *heap);

          if (ready != NULL)
            det->ready = ready;
          if (heap != NULL)
            det->heap = heap;
          if (ready == NULL || heap == NULL)
            {
              put_back (det, queue);
              return;
            }
          det->capacity = capacity;
        }
      det->members++;
      ready_add (det, queue);
      queue = next;
    }
}

/* Another thread spawned or changed a word. Which word it does not say (it may be gone by now);
 * those that actors are parked on are certainly there. In spawn order, so that equal worlds go on
 * equally. */
static void
take_external (struct det *det)
{
  struct pto_exec *exec = &det->base;

  /* Acquire: pairs with the exchange in det_unpark(); the values read below are not older than the
   * change. */
  atomic_exchange_explicit (&det->external, 0, memory_order_acquire);
  take_incoming (det);
  if (exec->guest.word != NULL && pto_word_get (exec->guest.word) != exec->guest.expected)
    wake (det, &exec->guest, PTO_PARK_WOKEN);
  pthread_mutex_lock (&exec->lock);
  for (struct pto_actor *a = exec->first; a != NULL; a = a->all_next)
    if (a->word != NULL && pto_word_get (a->word) != a->expected)
      wake (det, a, PTO_PARK_WOKEN);
  pthread_mutex_unlock (&exec->lock);
}

/* The clock is at a timer that was taken from the heap, and whose time has come: so has that of all
 * others of that time. */
static void
ring_timer (struct det *det, const struct timer *timer)
{
  struct timer next = *timer;

  det->now = next.time;
  for (;;)
    {
      if (PTO_UNLIKELY (next.actor->has_timer))
        {
          next.actor->has_timer = false;
          wake (det, next.actor, PTO_PARK_TIMEOUT);
        }
      else
        ready_add (det, next.actor);
      if (det->heap_count == 0 || det->heap[0].time > det->now)
        return;
      next = det->heap[0];
      heap_remove (det, 0);
    }
}

static void
advance (struct det *det)
{
  struct timer first = det->heap[0];

  heap_remove (det, 0);
  ring_timer (det, &first);
}

static inline struct pto_actor *
pick (struct det *det)
{
  struct pto_actor *actor;
  uint32_t i = 0;

  for (;;)
    {
      /* Relaxed, here and below: a change that is not seen now is seen at a later choice. What
       * happened before this is seen. */
      if (PTO_UNLIKELY (atomic_load_explicit (&det->external, memory_order_relaxed) != 0))
        take_external (det);
      if (PTO_LIKELY (det->ready_count > 0))
        break;
      if (det->heap_count > 0)
        advance (det);
      else if (atomic_load_explicit (&det->external, memory_order_relaxed) == 0)
        {
          /* Proved: nobody runs, nobody can be woken by time. The guest must be parked, or it would
           * be one of those. */
          assert (det->base.guest.word != NULL);
          wake (det, &det->base.guest, PTO_PARK_DEADLOCK);
        }
    }
  if (det->ready_count > 1)
    {
      if (det->base.config.choose == NULL)
        i = pto_rng_below (det->base.rng, det->ready_count);
      else
        {
          i = det->base.config.choose (det->base.config.choose_data, det->ready_count);
          assert (i < det->ready_count && "choose() answers with a number below n");
        }
    }
  actor = det->ready[i];
  det->ready_count--;
  if (i < det->ready_count)
    memmove (&det->ready[i], &det->ready[i + 1], (det->ready_count - i) * sizeof *det->ready);
  return actor;
}

static inline void
switch_away (struct det *det, struct pto_actor *self)
{
  struct pto_actor *next = pick (det);

  if (next == self)
    return;
  det->base.thread->current = next;
  pto_fiber_switch (&self->fiber, &next->fiber);
}

/* --- back end --- */

static int
det_init (struct pto_exec *exec, char *error, size_t error_size)
{
  struct det *det = det_of (exec);

  det->capacity = 128;
  det->members = 1;
  det->ready = malloc (det->capacity * sizeof *det->ready);
  det->heap = malloc (det->capacity * sizeof *det->heap);
  if (det->ready == NULL || det->heap == NULL)
    {
      free (det->ready);
      free (det->heap);
      snprintf (error, error_size, _ ("No memory for an executor"));
      return -1;
    }
  return 0;
}

static void
bury (struct det *det)
{
  while (det->graveyard != NULL)
    {
      struct pto_actor *actor = det->graveyard;

      det->graveyard = actor->next;
      actor->next = NULL;
      pto_actor_recycle (actor);
    }
}

static void
det_clear (struct pto_exec *exec)
{
  struct det *det = det_of (exec);

  bury (det);
  free (det->ready);
  free (det->heap);
}

static void
det_restart (struct pto_exec *exec)
{
  struct det *det = det_of (exec);

  assert (det->members == 1 && det->ready_count == 0 && det->heap_count == 0);
  det->now = 0;
  det->sequence = 0;
  /* Relaxed: nobody else is there. What was changed in the use before is of no interest. */
  atomic_store_explicit (&det->external, 0, memory_order_relaxed);
}

static void
det_main (void *arg)
{
  struct pto_actor *self = arg;
  struct det *det = det_of (self->exec);
  struct pto_actor *next;

  self->fn (self->arg);
  /* Nobody else runs before the switch below, so the one that joins does not find a stack in use.
   */
  self->next = det->graveyard;
  det->graveyard = self;
  det->members--;
  pto_actor_gone (&det->base);
  next = pick (det);
  det->base.thread->current = next;
  pto_fiber_end (&self->fiber, &next->fiber);
}

static int
det_start (struct pto_actor *actor, char *error, size_t error_size)
{
  struct det *det = det_of (actor->exec);
  struct pto_thread *thread = pto_thread_self ();

  (void) error;
  (void) error_size;
  pto_fiber_make (&actor->fiber, &actor->stack, actor->exec->spawned, det_main, actor);
  actor->next = atomic_load_explicit (&det->incoming, memory_order_relaxed);
  /* Release: pairs with the acquire in take_incoming(). */
  while (!atomic_compare_exchange_weak_explicit (&det->incoming, &actor->next, actor,
                                                 memory_order_release, memory_order_relaxed))
    ;
  if (pto_thread_is_inside (thread, actor->exec))
    {
      take_incoming (det);
      /* An actor spawns, so all in the graveyard have left their stacks. */
      bury (det);
    }
  else
    /* Release: as in det_unpark(). */
    atomic_exchange_explicit (&det->external, 1, memory_order_release);
  return 0;
}

static void
det_reap (struct pto_exec *exec)
{
  bury (det_of (exec));
}

static void
det_enter (struct pto_exec *exec, struct pto_thread *thread)
{
  (void) thread;
  pto_fiber_adopt (&exec->guest.fiber);
}

static void
det_leave (struct pto_exec *exec)
{
  bury (det_of (exec));
}

static void
det_yield (struct pto_actor *self)
{
  struct det *det = det_of (self->exec);

  if (det->ready_count == 0 && atomic_load_explicit (&det->external, memory_order_relaxed) == 0)
    return;
  ready_add (det, self);
  switch_away (det, self);
}

static bool
det_help (struct pto_exec *exec)
{
  struct det *det = det_of (exec);
  bool others;

  if (atomic_load_explicit (&det->external, memory_order_relaxed) != 0)
    take_external (det);
  others = det->ready_count > 0;
  det_yield (&exec->guest);
  return others;
}

static uint64_t
det_now (struct pto_exec *exec)
{
  return det_of (exec)->now;
}

static void
det_charge (struct pto_actor *self, uint64_t ns)
{
  struct det *det = det_of (self->exec);
  uint64_t time;

  if (__builtin_add_overflow (det->now, ns, &time))
    time = PTO_NEVER;
  if (det->ready_count > 0 || atomic_load_explicit (&det->external, memory_order_relaxed) != 0)
    heap_add (det, self, time);
  else if (det->heap_count == 0 || det->heap[0].time > time)
    {
      /* Nobody could run before that time: the clock may as well be there. */
      det->now = time;
      return;
    }
  else
    {
      /* The first timer goes, and this one comes, in one pass through the heap. */
      struct timer first = det->heap[0];

      heap_down (det, 0, (struct timer){ time, det->sequence++, self });
      ring_timer (det, &first);
    }
  switch_away (det, self);
}

static enum pto_park_result
det_park (struct pto_actor *self, struct pto_word *word, uint32_t expected, uint64_t deadline)
{
  struct det *det = det_of (self->exec);

  if (pto_word_get (word) != expected)
    return PTO_PARK_WOKEN;
  if (deadline <= det->now)
    return PTO_PARK_TIMEOUT;
  assert (atomic_load_explicit (&word->waiter, memory_order_relaxed) == NULL
          && "one actor parks on a word");
  atomic_store_explicit (&word->waiter, self, memory_order_relaxed);
  self->word = word;
  self->expected = expected;
  self->has_timer = deadline != PTO_NEVER;
  if (self->has_timer)
    heap_add (det, self, deadline);
  switch_away (det, self);
  return self->result;
}

static void
det_unpark (struct pto_exec *exec, struct pto_word *word)
{
  struct det *det = det_of (exec);
  struct pto_actor *waiter, *self = pto_thread_self ()->current;
  struct pto_guard *guard;

  if (PTO_UNLIKELY (self == NULL || self->exec != exec))
    {
      /* The parker's side is plain, so this thread cannot know whether somebody is parked.
       * Release: pairs with the exchange in take_external(), which then sees the changed value; an
       * exchange, so that it sees those of all who were here before. */
      atomic_exchange_explicit (&det->external, 1, memory_order_release);
      return;
    }
  waiter = atomic_load_explicit (&word->waiter, memory_order_relaxed);
  if (waiter == NULL)
    return;
  guard = PTO_UNLIKELY (self->guard != NULL) ? pto_guard_pause () : NULL;
  wake (det, waiter, PTO_PARK_WOKEN);
  if (PTO_UNLIKELY (guard != NULL))
    pto_guard_resume (guard);
}

const struct pto_backend_ops pto_det_ops = {
  .size = sizeof (struct det),
  .init = det_init,
  .clear = det_clear,
  .restart = det_restart,
  .start = det_start,
  .reap = det_reap,
  .enter = det_enter,
  .leave = det_leave,
  .help = det_help,
  .now = det_now,
  .charge = det_charge,
  .yield = det_yield,
  .park = det_park,
  .unpark = det_unpark,
};
