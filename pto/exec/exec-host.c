/* exec-host.c: how does a parent of processes work without a thread of its own?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All fibers are one strand, whatever their domain, and there is one token: who holds it carries
 * them on its own CPU, with no hand-over. The guest holds it for as long as it waits, or for a
 * moment when it helps; a keeper holds it while the guest is away. What belongs to the strand (run
 * queue, fibers, who listens to the bell) is plain memory of the token's holder.
 *
 * Work comes from outside in two ways, an actor in the inbox or a ring of the bell, and pending()
 * looks for both. The rule that loses nothing: whoever lets go of the token looks again after that,
 * and comes back for what it finds. So who tries for the token and does not get it may go away: its
 * work was there before it tried, hence before the holder's last look. All words of this pattern
 * (token, inbox, the bell's value and asleep) are sequentially consistent.
 *
 * Who is woken when nobody carries is said by the bits of pto_bell.asleep, each with one writer:
 *
 * - the guest sets LISTENS when it begins to wait and takes it back before its last look; SLEEPS
 * while it is in the kernel.
 * - the keeper sets KEEPER before its last look and takes it back when it is up.
 *
 * Rings that come between two looks of somebody who is awake cost no system call. The guest's own
 * wake-ups (it submits, then helps or waits) ring nothing at all.
 */
#include "exec-private.h"
#include "pto-atomic.h"
#include "shared-wait.h"

#include <assert.h>
#include <sched.h>

#define SLICE 256         /* switches after which a helper looks whether it should go */
#define SPIN_NS 20000u    /* a wake-up of a sleeping CPU costs about as much */
#define BURST_NS 100000u  /* a ring seldom comes alone: the keeper stays up so long after one */
#define STAY_NS 10000000u /* the keeper has other things to look after, too */

/* The token. */
enum
{
  HELD = 1,
  WANTED = 2 /* the guest waits for it; set by the guest only */
};

struct host
{
  struct pto_exec base;

  /* --- the holder's --- */
  struct pto_actor *head; /* run queue */
  struct pto_actor *tail;
  struct pto_actor *listener; /* parked on the bell until its value is not listener->expected */
  struct pto_actor *dead;     /* the actor that just left its stack for ever */
  struct pto_fiber *native;   /* the holder's own stack */
  struct pto_thread *thread;  /* and place */
  int32_t budget;             /* switches left */

  /* --- the guest's --- */
  struct pto_fiber guest_native;
  bool holding; /* pto_exec_hold() */
  uint64_t spin_ns;

  struct pto_fiber keeper_native; /* the holder's, when that is no guest */
  struct pto_bell *bell;
  struct pto_bell own; /* when none is given */
  int event;           /* the bell's; its own may be written over */

  /* W: all; R: all. seq_cst */
  _Alignas(64) _Atomic uint32_t token;
  /* The bell's value at the holder's last look. W: the holder; R: pending(). A late value costs a
   * look. */
  _Atomic uint32_t heard;
  _Alignas(64) _Atomic (struct pto_actor *) inbox; /* stack; W: wakers; R: the holder */
  /* the guest's park is over. W: its waker, release; R: the guest, acquire */
  _Atomic uint32_t woken;
};

static inline struct host *
host_of (struct pto_exec *exec)
{
  return (struct host *) exec;
}

/* --- the token --- */

static bool
take (struct host *host)
{
  /* seq_cst: a refusal comes before the holder's look behind give_back(). Acquire: what the last
   * holder left. */
  return (pto_fetch_or_seq_cst (&host->token, HELD) & HELD) == 0;
}

/* True when the guest waits for it, who will look itself. */
static bool
give_back (struct host *host)
{
  /* seq_cst: before the caller's look at inbox and bell. Releases the strand. */
  if ((pto_exchange_seq_cst (&host->token, 0) & WANTED) == 0)
    return false;
  pto_futex_wake (&host->token);
  return true;
}

/* The guest only: waits for the keeper, who leaves at its next switch. */
static void
take_and_wait (struct host *host)
{
  uint64_t end;

  if (take (host))
    return;
  end = pto_clock_ns () + host->spin_ns;
  for (;;)
    {
      uint32_t token = pto_fetch_or_seq_cst (&host->token, WANTED) | WANTED;

      while ((token & HELD) != 0 && pto_clock_ns () < end)
        {
          pto_pause ();
          token = pto_load_relaxed (&host->token);
        }
      if ((token & HELD) != 0)
        pto_futex_wait (&host->token, HELD | WANTED, PTO_NEVER);
      if (take (host))
        break;
    }
  /* Relaxed: only the guest sets it, and reads it again. */
  pto_fetch_and_relaxed (&host->token, ~(uint32_t) WANTED);
}

/* Is there something that the last holder has not seen? */
static bool
pending (struct host *host)
{
  /* seq_cst: after the caller's give_back(), or after it has set its bit in asleep. */
  return pto_load_seq_cst (&host->bell->word.value) != pto_load_relaxed (&host->heard)
         || pto_load_seq_cst (&host->inbox) != NULL;
}

/* --- the run queue; the holder only --- */

static inline void
push (struct host *host, struct pto_actor *actor)
{
  actor->next = NULL;
  if (host->head == NULL)
    host->head = actor;
  else
    host->tail->next = actor;
  host->tail = actor;
}

/* Makes runnable what was woken from outside. */
static void
look (struct host *host)
{
  struct pto_actor *stack, *queue = NULL;
  /* Before the inbox and, in guest_park(), before woken: what comes there later comes with a later
   * ring. Acquire: what the ring is about. */
  uint32_t value = pto_load_seq_cst (&host->bell->word.value);

  pto_store_relaxed (&host->heard, value);
  if (host->listener != NULL && value != host->listener->expected)
    {
      push (host, host->listener);
      host->listener = NULL;
    }
  if (pto_load_seq_cst (&host->inbox) == NULL)
    return;
  /* Acquire: pairs with the push in wake(). */
  stack = pto_exchange_seq_cst (&host->inbox, NULL);
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

      push (host, queue);
      queue = next;
    }
}

/* Who runs next; NULL: back to the holder's own stack. */
static struct pto_actor *
next_of (struct host *host)
{
  struct pto_actor *actor;

  /* Relaxed: a hint, the guest has time until the next switch. */
  if (--host->budget < 0 || (pto_load_relaxed (&host->token) & WANTED) != 0)
    return NULL;
  if (host->head == NULL)
    look (host);
  actor = host->head;
  if (actor != NULL)
    host->head = actor->next;
  return actor;
}

static inline void
switch_away (struct host *host, struct pto_actor *self)
{
  struct pto_actor *next = next_of (host);

  if (next == self)
    return;
  host->thread->current = next;
  pto_fiber_switch (&self->fiber, next != NULL ? &next->fiber : host->native);
}

static void
host_main (void *arg)
{
  struct pto_actor *self = arg;
  struct host *host = host_of (self->exec);

  self->fn (self->arg);
  host->thread->current = NULL;
  /* Its stack is given back from the holder's. */
  host->dead = self;
  pto_fiber_end (&self->fiber, host->native);
}

/* The holder runs fibers until nothing is runnable, its budget is spent or the guest wants the
 * token. True if it ran any. */
static bool
carry (struct host *host, struct pto_fiber *native, struct pto_thread *thread)
{
  struct pto_actor *actor, *outer = thread->current;
  bool carried = false;

  host->native = native;
  host->thread = thread;
  look (host);
  while ((actor = next_of (host)) != NULL)
    {
      thread->current = actor;
      pto_fiber_switch (native, &actor->fiber);
      thread->current = outer;
      carried = true;
      if (host->dead != NULL)
        {
          actor = host->dead;
          host->dead = NULL;
          pto_actor_recycle (actor);
          pto_actor_gone (&host->base);
        }
    }
  return carried;
}

/* Lets go of the token, and comes back for what came meanwhile as long as there is budget. */
static void
leave (struct host *host, struct pto_fiber *native, struct pto_thread *thread)
{
  for (;;)
    {
      bool more = host->head != NULL;
      bool spent = host->budget <= 0;

      if (give_back (host) || (!more && !pending (host)))
        return;
      if (spent)
        {
          /* The keeper's; without one, whoever carries next finds the bell changed. */
          pto_bell_ring (NULL, host->bell);
          return;
        }
      if (!take (host))
        return;
      carry (host, native, thread);
    }
}

/* --- waking --- */

static void
wake (struct host *host, struct pto_actor *actor)
{
  struct pto_actor *self = pto_thread_self ()->current;
  bool inside = self != NULL && self->exec == &host->base;

  if (actor == &host->base.guest)
    {
      /* Release: what the waker did; pairs with the guest's acquire. */
      pto_store_release (&host->woken, 1);
      /* A fiber's holder is the guest itself, or keeps the token from it: it looks when it has it.
       */
      if (!inside)
        pto_bell_ring (NULL, host->bell);
      return;
    }
  if (inside && self != &host->base.guest)
    {
      push (host, actor);
      return;
    }
  pto_explore_point ();
  actor->next = atomic_load_explicit (&host->inbox, memory_order_relaxed);
  /* seq_cst: before the ring, or the guest's try for the token. Releases the actor to look(). */
  while (!atomic_compare_exchange_weak_explicit (&host->inbox, &actor->next, actor,
                                                 memory_order_seq_cst, memory_order_relaxed))
    ;
  if (!inside)
    pto_bell_ring (NULL, host->bell);
}

/* True when the caller, and nobody else, may end the actor's park: it took it from the word. */
static inline bool
retract (struct pto_actor *actor)
{
  struct pto_actor *expected = actor;

  /* Nothing is passed on: relaxed. Wakers compete by their exchange on the same word. */
  return pto_cas_relaxed (&actor->word->waiter, &expected, NULL);
}

/* --- back end --- */

static int
host_init (struct pto_exec *exec, char *error, size_t error_size)
{
  struct host *host = host_of (exec);
  cpu_set_t cpus;

  (void) error;
  (void) error_size;
  pto_bell_init (&host->own, -1);
  host->bell = exec->config.bell != NULL ? exec->config.bell : &host->own;
  host->event = host->bell->event;
  atomic_init (&host->heard, pto_word_get (&host->bell->word));
  /* With one CPU, who looks keeps those from it whom it looks for. */
  if (sched_getaffinity (0, sizeof cpus, &cpus) != 0 || CPU_COUNT (&cpus) > 1)
    host->spin_ns = SPIN_NS;
  return 0;
}

static void
host_clear (struct pto_exec *exec)
{
  (void) exec;
}

static int
host_start (struct pto_actor *actor, char *error, size_t error_size)
{
  (void) error;
  (void) error_size;
  pto_fiber_make (&actor->fiber, &actor->stack, actor->exec->spawned, host_main, actor);
  wake (host_of (actor->exec), actor);
  return 0;
}

static void
host_reap (struct pto_exec *exec)
{
  (void) exec;
}

static void
host_enter (struct pto_exec *exec, struct pto_thread *thread)
{
  (void) thread;
  pto_fiber_adopt (&host_of (exec)->guest_native);
}

static bool
host_help (struct pto_exec *exec)
{
  struct host *host = host_of (exec);
  bool carried;

  if (!pending (host) || !take (host))
    return false;
  host->budget = SLICE;
  carried = carry (host, &host->guest_native, exec->thread);
  leave (host, &host->guest_native, exec->thread);
  return carried;
}

static void
host_leave (struct pto_exec *exec)
{
  /* What the guest woke and did not wait for. */
  host_help (exec);
}

static void
host_hold (struct pto_exec *exec, bool hold)
{
  struct host *host = host_of (exec);

  assert (host->holding != hold && "held once");
  host->holding = hold;
  if (hold)
    {
      take_and_wait (host);
      return;
    }
  host->budget = SLICE;
  leave (host, &host->guest_native, exec->thread);
}

/* The guest looks at everything that came until it takes LISTENS back, or comes now. */
static inline bool
guest_listens (struct host *host)
{
  /* seq_cst: a ring that this thread was to hear was before the guest's bit, hence before its first
   * look; or the ringer saw the bit, and the guest's last look is after it. */
  return (pto_load_seq_cst (&host->bell->asleep) & PTO_BELL_LISTENS) != 0;
}

/* Carries what is pending; true if there was something. Not the guest. */
static bool
serve (struct host *host)
{
  bool carried = false;

  while (!guest_listens (host) && pending (host) && take (host))
    {
      bool more;

      pto_fiber_adopt (&host->keeper_native);
      host->budget = SLICE;
      carried |= carry (host, &host->keeper_native, pto_thread_self ());
      more = host->head != NULL;
      if (give_back (host))
        break;
      if (more)
        {
          pto_bell_ring (NULL, host->bell);
          break;
        }
    }
  return carried;
}

static void
host_keep (struct pto_exec *exec)
{
  struct host *host = host_of (exec);
  struct pto_bell *bell = host->bell;
  uint64_t begin, now, end;

  /* Relaxed: who still sees the bit writes, and poll() returns once more; who does not is seen by
   * the last look. */
  pto_fetch_and_relaxed (&bell->asleep, ~(uint32_t) PTO_BELL_KEEPER);
  if (host->event >= 0)
    pto_bell_quiet (host->event);
  if (serve (host) && host->event >= 0)
    {
      begin = now = pto_clock_ns ();
      end = begin + BURST_NS;
      /* Between looks the CPU is for those that are waited for. */
      while (now < end && now - begin < STAY_NS && !guest_listens (host))
        {
          bool carried = serve (host);

          if (!carried)
            sched_yield ();
          now = pto_clock_ns ();
          if (carried)
            end = now + BURST_NS;
        }
    }
  if (host->event < 0)
    return;
  /* seq_cst: before the last look; pairs with pto_bell_ring(). */
  pto_fetch_or_seq_cst (&bell->asleep, PTO_BELL_KEEPER);
  serve (host);
}

static uint64_t
host_now (struct pto_exec *exec)
{
  (void) exec;
  return pto_clock_ns ();
}

static void
host_yield (struct pto_actor *self)
{
  struct host *host = host_of (self->exec);

  if (self == &host->base.guest)
    {
      if (!host_help (&host->base))
        sched_yield ();
      return;
    }
  push (host, self);
  switch_away (host, self);
}

/* The guest holds the token and nothing is runnable: until the next ring. */
static void
idle (struct host *host, uint64_t deadline)
{
  struct pto_bell *bell = host->bell;
  uint32_t seen = pto_load_relaxed (&host->heard);
  uint64_t end = pto_clock_ns () + host->spin_ns;

  if (end > deadline)
    end = deadline;
  while (host->spin_ns > 0 && pto_clock_ns () < end)
    for (int i = 0; i < 32; i++)
      {
        /* Relaxed: look() takes it. */
        if (pto_load_relaxed (&bell->word.value) != seen)
          return;
        pto_pause ();
      }
  pto_bell_sleep (bell, seen, deadline);
}

/* The guest waits: it carries meanwhile. */
static enum pto_park_result
guest_park (struct host *host, struct pto_word *word, uint32_t expected, uint64_t deadline)
{
  struct pto_actor *self = &host->base.guest;
  struct pto_thread *thread = host->base.thread;

  assert (!word->local && "the guest is of no domain");
  assert (!host->holding && "who holds does not wait");
  /* nobody can set it before the exchange below */
  pto_store_relaxed (&host->woken, 0);
  self->word = word;
  /* seq_cst: before the second look at the value; pairs with the fence in host_unpark(). Releases
   * woken = 0. */
  pto_exchange_seq_cst (&word->waiter, self);
  if (pto_load_seq_cst (&word->value) != expected && retract (self))
    return PTO_PARK_WOKEN;
  /* Rings are for this thread now. */
  pto_fetch_or_seq_cst (&host->bell->asleep, PTO_BELL_LISTENS);
  take_and_wait (host);
  for (;;)
    {
      host->budget = SLICE;
      carry (host, &host->guest_native, thread);
      /* Acquire: pairs with wake(). */
      if (pto_load_acquire (&host->woken) != 0)
        {
          self->result = PTO_PARK_WOKEN;
          break;
        }
      if (deadline != PTO_NEVER && pto_clock_ns () >= deadline && retract (self))
        {
          self->result = PTO_PARK_TIMEOUT;
          break;
        }
      if (host->head == NULL)
        idle (host, deadline);
    }
  /* Rings are the keeper's again; seq_cst: before the look in leave(). */
  pto_fetch_and_seq_cst (&host->bell->asleep, ~(uint32_t) PTO_BELL_LISTENS);
  host->budget = SLICE;
  leave (host, &host->guest_native, thread);
  return self->result;
}

static enum pto_park_result
host_park (struct pto_actor *self, struct pto_word *word, uint32_t expected, uint64_t deadline)
{
  struct host *host = host_of (self->exec);

  /* Acquire: what came before the change. */
  if (pto_load_acquire (&word->value) != expected)
    return PTO_PARK_WOKEN;
  if (self == &host->base.guest)
    {
      assert (word != &host->bell->word && "a fiber listens to the bell, not the guest");
      assert (atomic_load_explicit (&word->waiter, memory_order_relaxed) == NULL
              && "one actor parks on a word");
      return guest_park (host, word, expected, deadline);
    }
  assert (deadline == PTO_NEVER && "only the guest has deadlines");
  self->result = PTO_PARK_WOKEN;
  if (word == &host->bell->word)
    {
      /* The next look() sees a ring that came since. */
      assert (host->listener == NULL && "one actor listens to the bell");
      self->expected = expected;
      host->listener = self;
      switch_away (host, self);
      return self->result;
    }
  assert (atomic_load_explicit (&word->waiter, memory_order_relaxed) == NULL
          && "one actor parks on a word");
  self->word = word;
  if (word->local)
    /* Relaxed: all who touch it hold the token. */
    atomic_store_explicit (&word->waiter, self, memory_order_relaxed);
  else
    {
      /* seq_cst: before the second look at the value; pairs with the fence in host_unpark(): either
       * the waker sees the waiter, or this sees the waker's value. Releases the actor. */
      pto_exchange_seq_cst (&word->waiter, self);
      if (pto_load_seq_cst (&word->value) != expected && retract (self))
        return PTO_PARK_WOKEN;
      /* A waker that already has this actor puts it into the inbox, which only the holder empties:
       * no hurry. */
    }
  switch_away (host, self);
  return self->result;
}

static void
host_unpark (struct pto_exec *exec, struct pto_word *word)
{
  struct host *host = host_of (exec);
  struct pto_actor *waiter;
  struct pto_guard *guard;

  /* Its ring has said everything. */
  if (word == &host->bell->word)
    return;
  if (word->local)
    {
      waiter = atomic_load_explicit (&word->waiter, memory_order_relaxed);
      if (waiter == NULL)
        return;
      guard = pto_guard_pause ();
      assert (host->thread->current != NULL && host->thread->current->exec == exec
              && host->thread->current != &exec->guest && "a local word stays among the fibers");
      atomic_store_explicit (&word->waiter, NULL, memory_order_relaxed);
      push (host, waiter);
      pto_guard_resume (guard);
      return;
    }
  pto_explore_point ();
  /* Pairs with the exchange in host_park(): value stored before, waiter read after. */
  pto_full_fence ();
  if (pto_load_relaxed (&word->waiter) == NULL)
    return;
  guard = pto_guard_pause ();
  /* Acquire: the waiter's fields, released by its exchange. */
  waiter = pto_exchange_acq_rel (&word->waiter, NULL);
  if (waiter != NULL)
    wake (host, waiter);
  pto_guard_resume (guard);
}

static void
host_run (struct pto_exec *exec, struct pto_word *word)
{
  struct host *host = host_of (exec);
  struct pto_actor *waiter = atomic_load_explicit (&word->waiter, memory_order_relaxed);
  struct pto_actor *self;

  assert (word->local && "the caller and whoever waits are fibers");
  if (waiter == NULL)
    return;
  self = host->thread->current;
  assert (self != NULL && self->exec == exec && self != &exec->guest && self->guard == NULL
          && "a fiber, not within a guarded call");
  /* Relaxed: all who touch it hold the token. */
  atomic_store_explicit (&word->waiter, NULL, memory_order_relaxed);
  self->next = host->head;
  if (host->head == NULL)
    host->tail = self;
  host->head = self;
  host->thread->current = waiter;
  pto_fiber_switch (&self->fiber, &waiter->fiber);
}

const struct pto_backend_ops pto_host_ops = {
  .size = sizeof (struct host),
  .init = host_init,
  .clear = host_clear,
  .start = host_start,
  .reap = host_reap,
  .enter = host_enter,
  .leave = host_leave,
  .help = host_help,
  .hold = host_hold,
  .keep = host_keep,
  .run = host_run,
  .now = host_now,
  .yield = host_yield,
  .park = host_park,
  .unpark = host_unpark,
};
