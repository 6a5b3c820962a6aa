/* exec-par.c: how do a few threads carry many actors without waking each other more than needed?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A domain is a strand: one carrier at a time runs it, going from fiber to fiber without coming
 * back to its own stack. What belongs to a domain (queue, timers, actors) is plain memory of
 * whoever runs it; handing the domain on goes through domain->state, which orders it. From outside,
 * an actor is woken through the domain's inbox.
 *
 * - IDLE -> QUEUED: notify(): somebody put an actor into the inbox, or a timer is due
 * - QUEUED -> RUNNING: the carrier that cleared the domain's bit in par->queued
 * - RUNNING -> NOTIFIED: notify() while it runs; the carrier looks into the inbox again before it
 * leaves
 * - RUNNING -> IDLE: nothing left to run
 * - RUNNING, NOTIFIED -> QUEUED: something left to run, but its carrier goes
 *
 * Carriers without work spin for a moment, then sleep, each on its own bell. par->idle counts the
 * spinning and names the sleeping. Whoever queues a domain wakes one sleeper, and only if nobody
 * spins; a spinner that finds work looks whether there is more and then wakes the next. The guest
 * is a carrier while it waits.
 *
 * The words queued, idle, state, inbox, earliest and the guest's woken flag follow each other in
 * store-then-look patterns (queue a domain, look for sleepers; declare oneself asleep, look for
 * queued domains), so one write and one look of each pattern are sequentially consistent: they are
 * off the path that fibers of one domain take among themselves. A domain itself goes from hand to
 * hand with queued, or with IDLE. Whoever has looked in vain with less looks again before it
 * sleeps.
 */
#include "exec-private.h"
#include "os-thread.h"
#include "translate.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE 256        /* switches after which a domain makes room for another that waits */
#define SPIN_NS 20000u   /* a wake-up of a sleeping CPU costs about as much */
#define CARRIERS_MAX 47u /* and the guest: bits of idle */
#define SPINNERS_MAX 2u  /* more would only take the CPU from those that work */

enum state
{
  IDLE,
  QUEUED,
  RUNNING,
  NOTIFIED
};

/* idle: bit i set while carrier i sleeps; above them the number of those that spin. */
#define SPIN_ONE ((uint64_t) 1 << 56)
#define SLEEPERS (((uint64_t) 1 << 48) - 1)

struct carrier
{
  struct pto_fiber native;   /* its own stack */
  struct pto_thread *thread; /* whose it is; the guest's changes */
  struct pto_actor *dead;    /* the actor that just left its stack for ever */
  /* set: leave the domain at the next switch (the guest was woken; the executor ends) */
  _Atomic uint32_t *poll;
  uint32_t index;
  uint32_t rotor; /* the domain carried last */
  bool single;    /* one slice only */
  bool visits;    /* the guest in pto_exec_carry() */
  bool announce;  /* it published an early deadline and has not slept on it itself */
  /* W: the waker that took the carrier's bit from idle; R: the carrier. Relaxed: it looks at idle
   * and for work afterwards, seq_cst */
  _Atomic uint32_t bell;
  /* it sleeps no longer than this. W: the carrier, before its bit in idle; R: hand_over() */
  _Atomic uint64_t until;
  struct par *par;
  pthread_t pthread;
};

struct domain
{
  _Alignas(64) struct pto_actor *head; /* run queue */
  struct pto_actor *tail;
  struct pto_actor *timers; /* by deadline */
  struct pto_actor *timers_tail;
  struct carrier *carrier;
  /* Who waits in pto_word_run() for the actor that runs: goes on as soon as that one does not. */
  struct pto_actor *caller;
  int32_t slice;

  _Alignas(64) _Atomic (struct pto_actor *) inbox; /* stack; W: wakers; R: the carrier */
  _Atomic uint32_t state;
  /* first timer of an idle domain. W: the carrier that leaves; R: par_expire() */
  _Atomic uint64_t deadline;
};

struct par
{
  struct pto_exec base;
  uint32_t domain_count;
  uint32_t carrier_count;
  struct carrier guest_carrier;
  struct carrier *carriers;

  _Alignas(64) _Atomic uint64_t queued; /* bit i: domain i waits for a carrier */
  _Atomic uint64_t earliest;            /* not later than any idle domain's deadline */
  _Alignas(64) _Atomic uint64_t idle;
  /* a guest is there: spinning may pay. W: guest; R: carriers; a hint, relaxed */
  _Atomic uint32_t inside;
  _Atomic uint32_t stop; /* W: pto_exec_free(), seq_cst; R: carriers */
  /* the guest's park is over. W: its waker, seq_cst; R: the guest, acquire */
  _Alignas(64) _Atomic uint32_t woken;

  struct domain domains[PTO_MAX_DOMAINS];
};

static inline struct par *
par_of (struct pto_exec *exec)
{
  return (struct par *) exec;
}

/* --- queues and timers of a domain; its carrier only --- */

static inline void
push (struct domain *domain, struct pto_actor *actor)
{
  actor->next = NULL;
  if (domain->head == NULL)
    domain->head = actor;
  else
    domain->tail->next = actor;
  domain->tail = actor;
}

static inline struct pto_actor *
pop (struct domain *domain)
{
  struct pto_actor *actor = domain->head;

  if (actor != NULL)
    domain->head = actor->next;
  return actor;
}

static void
timer_add (struct domain *domain, struct pto_actor *actor, uint64_t deadline)
{
  /* From the end: deadlines are mostly "so long from now". */
  struct pto_actor *before = domain->timers_tail;

  actor->deadline = deadline;
  actor->has_timer = true;
  while (before != NULL && before->deadline > deadline)
    before = before->timer_previous;
  actor->timer_previous = before;
  actor->timer_next = before != NULL ? before->timer_next : domain->timers;
  if (before != NULL)
    before->timer_next = actor;
  else
    domain->timers = actor;
  if (actor->timer_next != NULL)
    actor->timer_next->timer_previous = actor;
  else
    domain->timers_tail = actor;
}

static void
timer_remove (struct domain *domain, struct pto_actor *actor)
{
  actor->has_timer = false;
  if (actor->timer_previous != NULL)
    actor->timer_previous->timer_next = actor->timer_next;
  else
    domain->timers = actor->timer_next;
  if (actor->timer_next != NULL)
    actor->timer_next->timer_previous = actor->timer_previous;
  else
    domain->timers_tail = actor->timer_previous;
}

static inline void
make_runnable (struct domain *domain, struct pto_actor *actor)
{
  if (PTO_UNLIKELY (actor->has_timer))
    timer_remove (domain, actor);
  push (domain, actor);
}

static void
drain (struct domain *domain)
{
  struct pto_actor *stack, *queue = NULL;

  /* seq_cst: after the carrier's write of state, see notify(). Acquire pairs with the release of
   * the push. */
  if (atomic_load_explicit (&domain->inbox, memory_order_seq_cst) == NULL)
    return;
  stack = atomic_exchange_explicit (&domain->inbox, NULL, memory_order_acquire);
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

      make_runnable (domain, queue);
      queue = next;
    }
}

/* True when the caller, and nobody else, may make the actor runnable: it took it from the word. */
static inline bool
retract (struct pto_actor *actor)
{
  struct pto_word *word = actor->word;
  struct pto_actor *expected = actor;

  if (word->local)
    {
      atomic_store_explicit (&word->waiter, NULL, memory_order_relaxed);
      return true;
    }
  /* Nothing is passed on: relaxed. Wakers compete by their exchange on the same word. */
  return atomic_compare_exchange_strong_explicit (&word->waiter, &expected, NULL,
                                                  memory_order_relaxed, memory_order_relaxed);
}

static void
expire_timers (struct domain *domain)
{
  uint64_t now = pto_clock_ns ();

  while (domain->timers != NULL && domain->timers->deadline <= now)
    {
      struct pto_actor *actor = domain->timers;

      timer_remove (domain, actor);
      if (retract (actor))
        {
          actor->result = PTO_PARK_TIMEOUT;
          push (domain, actor);
        }
      /* Otherwise a waker has it, and it will come through the inbox. */
    }
}

/* --- who sleeps, who is woken --- */

static void
ring (struct carrier *carrier)
{
  /* Release: the last that a waker does with the carrier, but for an address that nobody reads;
   * pairs with the acquires in sleep_until(), behind which the carrier ends and is freed. */
  atomic_store_explicit (&carrier->bell, 1, memory_order_release);
  pto_futex_wake (&carrier->bell);
}

/* Wakes one sleeper, unless somebody spins and will see the work. Call after the work is visible
 * (seq_cst). */
static void
wake_one (struct par *par)
{
  /* seq_cst: after the caller's write of queued; pairs with a carrier's write of idle before its
   * look at queued. */
  uint64_t idle = atomic_load_explicit (&par->idle, memory_order_seq_cst);
  uint32_t i;

  do
    {
      if (idle >= SPIN_ONE || (idle & SLEEPERS) == 0)
        return;
      i = (uint32_t) __builtin_ctzll (idle & SLEEPERS);
      /* The woken one counts as spinning from now on, so that the next waker leaves the others
       * asleep. */
    }
  /* Acquire: the carrier's bell = 0 comes before its bit, and the ring after it. */
  while (!atomic_compare_exchange_weak_explicit (&par->idle, &idle,
                                                 (idle & ~((uint64_t) 1 << i)) + SPIN_ONE,
                                                 memory_order_acquire, memory_order_acquire));
  ring (i == par->carrier_count ? &par->guest_carrier : &par->carriers[i]);
}

/* Takes a certain carrier out of its sleep; false when it does not sleep (or somebody else is
 * waking it). */
static bool
wake_carrier (struct par *par, struct carrier *carrier)
{
  uint64_t bit = (uint64_t) 1 << carrier->index;
  uint64_t idle = atomic_load_explicit (&par->idle, memory_order_seq_cst);

  do
    if ((idle & bit) == 0)
      return false;
  while (!atomic_compare_exchange_weak_explicit (&par->idle, &idle, (idle & ~bit) + SPIN_ONE,
                                                 memory_order_acquire, memory_order_acquire));
  ring (carrier);
  return true;
}

static void
enqueue (struct par *par, struct domain *domain)
{
  /* seq_cst: before wake_one()'s look at idle. Also releases the domain to the carrier that takes
   * the bit. */
  atomic_fetch_or_explicit (&par->queued, (uint64_t) 1 << (domain - par->domains),
                            memory_order_seq_cst);
}

/* Something came into the domain's inbox, or its timers are due. */
static void
notify (struct par *par, struct domain *domain)
{
  /* seq_cst: after the push; pairs with the carrier's write of state before its look into the
   * inbox. */
  uint32_t state = atomic_load_explicit (&domain->state, memory_order_seq_cst);

  for (;;)
    if (state == IDLE)
      {
        /* Acquire: what the last carrier left; enqueue() passes it on. */
        if (atomic_compare_exchange_weak_explicit (&domain->state, &state, QUEUED,
                                                   memory_order_acquire, memory_order_relaxed))
          {
            enqueue (par, domain);
            wake_one (par);
            return;
          }
      }
    else if (state == RUNNING)
      {
        /* Relaxed: the carrier meets it, and writes state again before it looks. */
        if (atomic_compare_exchange_weak_explicit (&domain->state, &state, NOTIFIED,
                                                   memory_order_relaxed, memory_order_relaxed))
          return;
      }
    else
      return;
}

static void
wake (struct par *par, struct pto_actor *actor)
{
  struct pto_actor *self;
  struct domain *domain;

  if (actor == &par->base.guest)
    {
      /* seq_cst: before the look at idle; pairs with the guest's write of idle before its look at
       * woken. */
      atomic_store_explicit (&par->woken, 1, memory_order_seq_cst);
      wake_carrier (par, &par->guest_carrier);
      return;
    }
  domain = &par->domains[actor->domain];
  self = pto_thread_self ()->current;
  if (self != NULL && self->exec == &par->base && self->domain == actor->domain)
    {
      make_runnable (domain, actor);
      return;
    }
  actor->next = atomic_load_explicit (&domain->inbox, memory_order_relaxed);
  /* seq_cst: before the look at state in notify(); its release pairs with drain(). */
  while (!atomic_compare_exchange_weak_explicit (&domain->inbox, &actor->next, actor,
                                                 memory_order_seq_cst, memory_order_relaxed))
    ;
  notify (par, domain);
}

/* --- carrying a domain --- */

static __attribute__ ((noinline)) struct pto_actor *
next_slow (struct par *par, struct domain *domain)
{
  struct carrier *carrier = domain->carrier;

  if (atomic_load_explicit (carrier->poll, memory_order_relaxed) != 0)
    return NULL;
  drain (domain);
  if (domain->timers != NULL)
    expire_timers (domain);
  if (domain->slice <= 0)
    {
      /* Relaxed: a hint; who waits a slice longer loses nothing. */
      if (carrier->single || atomic_load_explicit (&par->queued, memory_order_relaxed) != 0)
        return NULL;
      domain->slice = SLICE;
    }
  return pop (domain);
}

/* Who runs next in this domain; NULL: back to the carrier's own stack. */
static inline struct pto_actor *
next_of (struct par *par, struct domain *domain)
{
  struct pto_actor *caller = domain->caller;

  if (caller != NULL)
    {
      domain->caller = NULL;
      return caller;
    }
  if (PTO_LIKELY (--domain->slice > 0 && domain->head != NULL
                  && atomic_load_explicit (domain->carrier->poll, memory_order_relaxed) == 0))
    return pop (domain);
  return next_slow (par, domain);
}

static inline void
switch_away (struct par *par, struct domain *domain, struct pto_actor *self, bool plain)
{
  struct pto_actor *next = next_of (par, domain);
  struct carrier *carrier = domain->carrier;

  if (PTO_UNLIKELY (next == self))
    return;
  carrier->thread->current = next;
  /* The guest's stack is its carrier's own. */
  pto_fiber_switch_from (&self->fiber,
                         next != NULL && next != &par->base.guest ? &next->fiber : &carrier->native,
                         plain);
}

static void
par_main (void *arg)
{
  struct pto_actor *self = arg;
  struct carrier *carrier;

  self->fn (self->arg);
  carrier = par_of (self->exec)->domains[self->domain].carrier;
  carrier->thread->current = NULL;
  /* Its stack is given back from the carrier's. */
  carrier->dead = self;
  pto_fiber_end (&self->fiber, &carrier->native);
}

/* Runs a domain whose bit the caller took from queued, until it is idle, its slice is over or the
 * carrier is called. */
static void
run (struct par *par, struct carrier *carrier, struct domain *domain)
{
  struct pto_actor *outer = carrier->thread->current;

  carrier->rotor = (uint32_t) (domain - par->domains);
  domain->carrier = carrier;
  domain->slice = SLICE;
  /* Relaxed: only to spare needless notifications of a domain that runs. */
  atomic_store_explicit (&domain->deadline, PTO_NEVER, memory_order_relaxed);
  for (;;)
    {
      struct pto_actor *actor;
      uint32_t state = RUNNING;
      uint64_t deadline;

      /* seq_cst: before the look into the inbox, see notify(). */
      atomic_exchange_explicit (&domain->state, RUNNING, memory_order_seq_cst);
      drain (domain);
      while ((actor = next_of (par, domain)) != NULL)
        {
          carrier->thread->current = actor;
          pto_fiber_switch (&carrier->native, &actor->fiber);
          if (carrier->dead != NULL)
            {
              actor = carrier->dead;
              carrier->dead = NULL;
              pto_actor_recycle (actor);
              pto_actor_gone (&par->base);
            }
        }
      carrier->thread->current = outer;
      if (domain->head != NULL)
        break;
      deadline = domain->timers != NULL ? domain->timers->deadline : PTO_NEVER;
      /* Before the state: who sees the domain idle may run it at once. */
      atomic_store_explicit (&domain->deadline, deadline, memory_order_seq_cst);
      /* Release: to notify() and claim(). */
      if (atomic_compare_exchange_strong_explicit (&domain->state, &state, IDLE,
                                                   memory_order_release, memory_order_relaxed))
        {
          /* seq_cst: after the deadline; pairs with the exchange in expire(). */
          uint64_t earliest = atomic_load_explicit (&par->earliest, memory_order_seq_cst);

          while (deadline < earliest)
            /* seq_cst: before the looks of hand_over(); pairs with sleep_until(). */
            if (atomic_compare_exchange_weak_explicit (&par->earliest, &earliest, deadline,
                                                       memory_order_seq_cst, memory_order_relaxed))
              {
                carrier->announce = true;
                break;
              }
          return;
        }
      if (atomic_load_explicit (carrier->poll, memory_order_relaxed) != 0
          || (domain->slice <= 0 && carrier->single))
        break;
    }
  carrier->thread->current = outer;
  /* No wake-up: a carrier that goes on takes the next domain now, and a guest that goes looks
   * around in hand_over(). NOTIFIED may be lost: the next carrier looks into the inbox. Relaxed:
   * enqueue() passes the domain on. */
  atomic_store_explicit (&domain->state, QUEUED, memory_order_relaxed);
  enqueue (par, domain);
}

/* Queues the idle domains whose timers are due. */
static void
expire (struct par *par)
{
  uint64_t now = pto_clock_ns ();

  if (now < atomic_load_explicit (&par->earliest, memory_order_relaxed))
    return;
  /* seq_cst: a deadline published before this is found below, one published after it lowers
   * earliest again. */
  atomic_exchange_explicit (&par->earliest, PTO_NEVER, memory_order_seq_cst);
  for (uint32_t i = 0; i < par->domain_count; i++)
    {
      uint64_t deadline = atomic_load_explicit (&par->domains[i].deadline, memory_order_seq_cst);

      if (deadline <= now)
        notify (par, &par->domains[i]);
      else if (deadline != PTO_NEVER)
        {
          uint64_t earliest = atomic_load_explicit (&par->earliest, memory_order_relaxed);

          while (deadline < earliest
                 && !atomic_compare_exchange_weak_explicit (&par->earliest, &earliest, deadline,
                                                            memory_order_seq_cst,
                                                            memory_order_relaxed))
            ;
        }
    }
}

/* A queued domain, now the caller's, beginning after the one it had last so that none starves. */
static struct domain *
take (struct par *par, struct carrier *carrier)
{
  uint64_t queued;

  if (atomic_load_explicit (&par->earliest, memory_order_relaxed) != PTO_NEVER)
    expire (par);
  queued = atomic_load_explicit (&par->queued, memory_order_relaxed);
  while (queued != 0)
    {
      uint32_t shift = carrier->rotor + 1 < 64 ? carrier->rotor + 1 : 0;
      uint64_t later = queued >> shift << shift;
      uint32_t i = (uint32_t) __builtin_ctzll (later != 0 ? later : queued);
      uint64_t bit = (uint64_t) 1 << i;

      /* Acquire of what was queued: pairs with enqueue(). */
      queued = atomic_fetch_and_explicit (&par->queued, ~bit, memory_order_acquire);
      if ((queued & bit) != 0)
        return &par->domains[i];
    }
  return NULL;
}

static inline bool
has_work (struct par *par, struct carrier *carrier)
{
  /* seq_cst: after the caller's write of idle; pairs with those who write one of these and then
   * look at idle. */
  return atomic_load_explicit (&par->queued, memory_order_seq_cst) != 0
         || atomic_load_explicit (carrier->poll, memory_order_seq_cst) != 0;
}

/* A spinning carrier goes to sleep, and is spinning again when this returns. */
static void
sleep_until (struct par *par, struct carrier *carrier, uint64_t deadline)
{
  uint64_t bit = (uint64_t) 1 << carrier->index;
  uint64_t earliest;

  /* nobody rings before the bit is set */
  atomic_store_explicit (&carrier->bell, 0, memory_order_relaxed);
  earliest = atomic_load_explicit (&par->earliest, memory_order_relaxed);
  if (earliest < deadline)
    deadline = earliest;
  atomic_store_explicit (&carrier->until, deadline, memory_order_relaxed);
  /* Sets the bit, one spinner less; seq_cst: before the looks that follow. Releases bell and until.
   */
  atomic_fetch_add_explicit (&par->idle, bit - SPIN_ONE, memory_order_seq_cst);
  carrier->announce = false;
  /* What foreign code left of the thread's signal state is looked at while there is time. */
  carrier->thread->epoch = 0;
  /* A timer published since: whoever did it may have counted on this carrier as a spinning one. */
  while (!has_work (par, carrier)
         && atomic_load_explicit (&par->earliest, memory_order_seq_cst) >= deadline)
    {
      int error;

      if (atomic_load_explicit (&carrier->bell, memory_order_acquire) != 0)
        return;
      error = pto_futex_wait (&carrier->bell, 0, deadline);
      if (error == ETIMEDOUT)
        break;
    }
  /* Awake by itself, unless a waker was faster: then it has counted this carrier as spinning, and
   * its ring is awaited so that it does not come in the middle of the next sleep. */
  {
    uint64_t idle = atomic_load_explicit (&par->idle, memory_order_relaxed);

    while ((idle & bit) != 0)
      if (atomic_compare_exchange_weak_explicit (&par->idle, &idle, (idle & ~bit) + SPIN_ONE,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    while (atomic_load_explicit (&carrier->bell, memory_order_acquire) == 0)
      pto_futex_wait (&carrier->bell, 0, PTO_NEVER);
  }
}

/* Waits until there may be something to do: a queued domain, a call (poll), a deadline. */
static void
idle (struct par *par, struct carrier *carrier, uint64_t deadline)
{
  /* Relaxed: sleep_until() is the one that looks again. */
  uint64_t before = atomic_fetch_add_explicit (&par->idle, SPIN_ONE, memory_order_relaxed);
  bool work = has_work (par, carrier);

  if (!work && before / SPIN_ONE < SPINNERS_MAX
      && atomic_load_explicit (&par->inside, memory_order_relaxed) != 0)
    {
      uint64_t end = pto_clock_ns () + SPIN_NS;

      do
        for (int i = 0; i < 32 && !work; i++)
          {
            pto_pause ();
            work = has_work (par, carrier);
          }
      while (!work && pto_clock_ns () < end);
    }
  if (!work)
    sleep_until (par, carrier, deadline);
  /* seq_cst: before the looks of whoever was counted on: hand_over(), or the next sleep's. */
  atomic_fetch_sub_explicit (&par->idle, SPIN_ONE, memory_order_seq_cst);
}

/* Somebody sleeps that will see to the earliest timer. */
static bool
timers_are_watched (struct par *par)
{
  uint64_t earliest = atomic_load_explicit (&par->earliest, memory_order_seq_cst);
  uint64_t sleepers;

  if (earliest == PTO_NEVER)
    return true;
  /* seq_cst: acquires until from the carrier that set its bit. */
  sleepers = atomic_load_explicit (&par->idle, memory_order_seq_cst) & SLEEPERS;
  for (; sleepers != 0; sleepers &= sleepers - 1)
    {
      uint32_t i = (uint32_t) __builtin_ctzll (sleepers);
      struct carrier *carrier = i == par->carrier_count ? &par->guest_carrier : &par->carriers[i];

      if (atomic_load_explicit (&carrier->until, memory_order_relaxed) <= earliest)
        return true;
    }
  return false;
}

/* The caller was idle or has published a timer, and turns to something else: what others left to it
 * (they wake nobody while it spins) goes to another carrier. */
static void
hand_over (struct par *par, struct carrier *carrier)
{
  carrier->announce = false;
  if (atomic_load_explicit (&par->queued, memory_order_seq_cst) != 0 || !timers_are_watched (par))
    wake_one (par);
}

static void
carrier_main (void *arg)
{
  struct carrier *carrier = arg;
  struct par *par = carrier->par;
  bool was_idle = true;

  carrier->thread = pto_thread_self ();
  pto_fiber_adopt (&carrier->native);
  while (atomic_load_explicit (&par->stop, memory_order_relaxed) == 0)
    {
      struct domain *domain = take (par, carrier);

      if (domain == NULL)
        {
          idle (par, carrier, PTO_NEVER);
          was_idle = true;
          continue;
        }
      if (was_idle || carrier->announce)
        hand_over (par, carrier);
      was_idle = false;
      run (par, carrier, domain);
    }
}

/* --- back end --- */

static int
par_init (struct pto_exec *exec, char *error, size_t error_size)
{
  struct par *par = par_of (exec);
  uint32_t count = exec->config.carriers;

  if (count == 0)
    {
      cpu_set_t cpus;

      count = sched_getaffinity (0, sizeof cpus, &cpus) == 0 ? (uint32_t) CPU_COUNT (&cpus) : 2;
      count = count > 2 ? count - 1 : 1;
    }
  if (count > exec->config.domains)
    count = exec->config.domains; /* more could never be busy */
  if (count > CARRIERS_MAX)
    count = CARRIERS_MAX;
  par->domain_count = exec->config.domains;
  par->carrier_count = count;
  exec->head.carriers = count;
  atomic_init (&par->earliest, PTO_NEVER);
  for (uint32_t i = 0; i < PTO_MAX_DOMAINS; i++)
    atomic_init (&par->domains[i].deadline, PTO_NEVER);
  par->carriers = aligned_alloc (64, (count * sizeof *par->carriers + 63) & ~(size_t) 63);
  if (par->carriers == NULL)
    {
      snprintf (error, error_size, _ ("No memory for %u carriers"), count);
      return -1;
    }
  memset (par->carriers, 0, count * sizeof *par->carriers);
  par->guest_carrier.par = par;
  par->guest_carrier.index = count;
  par->guest_carrier.poll = &par->woken;
  for (uint32_t i = 0; i < count; i++)
    {
      struct carrier *carrier = &par->carriers[i];

      carrier->par = par;
      carrier->index = i;
      carrier->poll = &par->stop;
      if (pto_os_thread_start (&carrier->pthread, "pto-carrier", NULL, carrier_main, carrier, error,
                               error_size)
          != 0)
        {
          par->carrier_count = i;
          exec->ops->clear (exec);
          return -1;
        }
    }
  return 0;
}

static void
par_clear (struct pto_exec *exec)
{
  struct par *par = par_of (exec);

  /* seq_cst: before the looks at idle; pairs with has_work() after a carrier declared itself
   * asleep. */
  atomic_store_explicit (&par->stop, 1, memory_order_seq_cst);
  for (uint32_t i = 0; i < par->carrier_count; i++)
    wake_carrier (par, &par->carriers[i]);
  for (uint32_t i = 0; i < par->carrier_count; i++)
    pto_os_thread_join (par->carriers[i].pthread);
  free (par->carriers);
}

static int
par_start (struct pto_actor *actor, char *error, size_t error_size)
{
  (void) error;
  (void) error_size;
  pto_fiber_make (&actor->fiber, &actor->stack, actor->exec->spawned, par_main, actor);
  wake (par_of (actor->exec), actor);
  return 0;
}

static void
par_reap (struct pto_exec *exec)
{
  (void) exec;
}

static void
par_enter (struct pto_exec *exec, struct pto_thread *thread)
{
  struct par *par = par_of (exec);

  par->guest_carrier.thread = thread;
  pto_fiber_adopt (&par->guest_carrier.native);
  atomic_store_explicit (&par->inside, 1, memory_order_relaxed);
}

static void
par_leave (struct pto_exec *exec)
{
  struct par *par = par_of (exec);

  atomic_store_explicit (&par->inside, 0, memory_order_relaxed);
}

static bool
par_help (struct pto_exec *exec)
{
  struct par *par = par_of (exec);
  struct carrier *carrier = &par->guest_carrier;
  struct domain *domain;

  /* Relaxed: the guest's own flag, left over from its last park. */
  atomic_store_explicit (&par->woken, 0, memory_order_relaxed);
  domain = take (par, carrier);
  if (domain == NULL)
    return false;
  carrier->single = true;
  run (par, carrier, domain);
  carrier->single = false;
  hand_over (par, carrier);
  return true;
}

/* An idle or queued domain, now the guest's; NULL when somebody carries it. */
static struct domain *
claim (struct par *par, uint32_t index)
{
  struct domain *domain = &par->domains[index];
  uint64_t bit = (uint64_t) 1 << index;
  uint32_t state = IDLE;

  /* Idle: QUEUED without its bit is in the hands of whoever made it so, as in notify(); those who
   * notify it now leave it to us. Queued: ours if we take the bit. Acquire, both: as in notify()
   * and take(). */
  if (!atomic_compare_exchange_strong_explicit (&domain->state, &state, QUEUED,
                                                memory_order_acquire, memory_order_relaxed)
      && (state != QUEUED
          || (atomic_fetch_and_explicit (&par->queued, ~bit, memory_order_acquire) & bit) == 0))
    return NULL;
  /* Relaxed: the guest's own flag, left over from its last park. */
  atomic_store_explicit (&par->woken, 0, memory_order_relaxed);
  return domain;
}

static bool
par_carry (struct pto_exec *exec, uint32_t index, struct pto_word *bell)
{
  struct par *par = par_of (exec);
  struct carrier *carrier = &par->guest_carrier;
  struct domain *domain = claim (par, index);

  if (domain == NULL)
    return false;
  /* Relaxed: who waits for it is of the domain that is run now. */
  atomic_fetch_add_explicit (&bell->value, 1, memory_order_relaxed);
  exec->ops->unpark (exec, bell);
  carrier->single = carrier->visits = true;
  run (par, carrier, domain);
  carrier->single = carrier->visits = false;
  hand_over (par, carrier);
  return true;
}

static bool
par_is_visited (struct pto_actor *self)
{
  return par_of (self->exec)->domains[self->domain].carrier->visits;
}

static bool
par_claim (struct pto_exec *exec, uint32_t index)
{
  struct par *par = par_of (exec);
  struct domain *domain = claim (par, index);

  if (domain == NULL)
    return false;
  domain->carrier = &par->guest_carrier;
  atomic_store_explicit (&domain->deadline, PTO_NEVER, memory_order_relaxed);
  /* Relaxed: par_release() is the one that looks. */
  atomic_store_explicit (&domain->state, RUNNING, memory_order_relaxed);
  return true;
}

static void
par_release (struct pto_exec *exec, uint32_t index)
{
  struct par *par = par_of (exec);
  struct domain *domain = &par->domains[index];
  uint32_t state;

  do
    {
      /* seq_cst: before the look into the inbox, see notify(). */
      atomic_exchange_explicit (&domain->state, RUNNING, memory_order_seq_cst);
      drain (domain);
      if (domain->head != NULL || domain->timers != NULL)
        {
          /* For a carrier, as at the end of run(). */
          atomic_store_explicit (&domain->state, QUEUED, memory_order_relaxed);
          enqueue (par, domain);
          wake_one (par);
          return;
        }
      state = RUNNING;
    }
  while (!atomic_compare_exchange_strong_explicit (&domain->state, &state, IDLE,
                                                   memory_order_release, memory_order_relaxed));
}

static uint64_t
par_now (struct pto_exec *exec)
{
  (void) exec;
  return pto_clock_ns ();
}

static void
par_yield (struct pto_actor *self)
{
  struct par *par = par_of (self->exec);

  if (self == &par->base.guest)
    {
      if (!par_help (&par->base))
        sched_yield ();
      return;
    }
  push (&par->domains[self->domain], self);
  switch_away (par, &par->domains[self->domain], self, false);
}

/* The guest waits: it carries domains meanwhile. */
static enum pto_park_result
guest_park (struct par *par, struct pto_word *word, uint32_t expected, uint64_t deadline)
{
  struct pto_actor *self = &par->base.guest;
  struct carrier *carrier = &par->guest_carrier;
  bool was_idle = false;

  assert (!word->local && "the guest is of no domain");
  /* nobody can set it before the exchange below */
  atomic_store_explicit (&par->woken, 0, memory_order_relaxed);
  self->word = word;
  /* seq_cst: before the second look at the value; pairs with the fence in par_unpark(). Releases
   * woken = 0. */
  atomic_exchange_explicit (&word->waiter, self, memory_order_seq_cst);
  if (atomic_load_explicit (&word->value, memory_order_seq_cst) != expected && retract (self))
    return PTO_PARK_WOKEN;
  for (;;)
    {
      struct domain *domain;

      /* Acquire: pairs with wake(). The word is free again, for the next wait. */
      if (atomic_load_explicit (&par->woken, memory_order_acquire) != 0)
        {
          self->result = PTO_PARK_WOKEN;
          break;
        }
      if (deadline != PTO_NEVER && pto_clock_ns () >= deadline && retract (self))
        {
          self->result = PTO_PARK_TIMEOUT;
          break;
        }
      domain = take (par, carrier);
      if (domain == NULL)
        {
          idle (par, carrier, deadline);
          was_idle = true;
          continue;
        }
      if (was_idle || carrier->announce)
        hand_over (par, carrier);
      was_idle = false;
      run (par, carrier, domain);
    }
  hand_over (par, carrier);
  return self->result;
}

static enum pto_park_result
par_park (struct pto_actor *self, struct pto_word *word, uint32_t expected, uint64_t deadline)
{
  struct par *par = par_of (self->exec);
  struct domain *domain;

  if (word->local)
    {
      if (atomic_load_explicit (&word->value, memory_order_relaxed) != expected)
        return PTO_PARK_WOKEN;
      assert (self != &par->base.guest && "the guest is of no domain");
      assert (atomic_load_explicit (&word->waiter, memory_order_relaxed) == NULL
              && "one actor parks on a word");
      domain = &par->domains[self->domain];
      /* Relaxed: all who touch it are of this domain. */
      atomic_store_explicit (&word->waiter, self, memory_order_relaxed);
      self->word = word;
      self->result = PTO_PARK_WOKEN;
      if (PTO_UNLIKELY (deadline != PTO_NEVER))
        timer_add (domain, self, deadline);
      switch_away (par, domain, self, false);
      return self->result;
    }

  if (pto_word_get (word) != expected)
    return PTO_PARK_WOKEN;
  assert (atomic_load_explicit (&word->waiter, memory_order_relaxed) == NULL
          && "one actor parks on a word");
  if (self == &par->base.guest)
    {
      /* Its code does not know that it carries. */
      int error = errno;
      enum pto_park_result result = guest_park (par, word, expected, deadline);

      errno = error;
      return result;
    }
  domain = &par->domains[self->domain];
  self->word = word;
  self->result = PTO_PARK_WOKEN;
  if (PTO_UNLIKELY (deadline != PTO_NEVER))
    timer_add (domain, self, deadline);
  /* seq_cst: before the second look at the value; pairs with the fence in par_unpark(): either the
   * waker sees the waiter, or this sees the waker's value. Releases the actor to the waker. */
  atomic_exchange_explicit (&word->waiter, self, memory_order_seq_cst);
  if (atomic_load_explicit (&word->value, memory_order_seq_cst) != expected && retract (self))
    {
      if (self->has_timer)
        timer_remove (domain, self);
      return PTO_PARK_WOKEN;
    }
  /* A waker that already has this actor puts it into the inbox, which only this carrier empties: no
   * hurry. */
  switch_away (par, domain, self, false);
  return self->result;
}

static void
par_unpark (struct pto_exec *exec, struct pto_word *word)
{
  struct par *par = par_of (exec);
  struct pto_actor *waiter, *self;
  struct pto_guard *guard;

  if (word->local)
    {
      waiter = atomic_load_explicit (&word->waiter, memory_order_relaxed);
      if (waiter == NULL)
        return;
      self = pto_thread_self ()->current;
      assert (self != NULL && self->exec == exec && self->domain == waiter->domain
              && "a local word stays in its domain");
      guard = PTO_UNLIKELY (self->guard != NULL) ? pto_guard_pause () : NULL;
      atomic_store_explicit (&word->waiter, NULL, memory_order_relaxed);
      make_runnable (&par->domains[waiter->domain], waiter);
      if (PTO_UNLIKELY (guard != NULL))
        pto_guard_resume (guard);
      return;
    }
  /* Pairs with the exchange in par_park(): value stored before, waiter read after. */
  pto_full_fence ();
  if (atomic_load_explicit (&word->waiter, memory_order_relaxed) == NULL)
    return;
  guard = pto_guard_pause ();
  /* Acquire: the waiter's fields, released by its exchange. */
  waiter = atomic_exchange_explicit (&word->waiter, NULL, memory_order_acquire);
  if (waiter != NULL)
    wake (par, waiter);
  pto_guard_resume (guard);
}

static void
par_run (struct pto_exec *exec, struct pto_word *word)
{
  struct pto_actor *waiter = atomic_load_explicit (&word->waiter, memory_order_relaxed);
  struct domain *domain;
  struct carrier *carrier;
  struct pto_actor *self;

  assert (word->local && "the caller and whoever waits are of one domain");
  if (waiter == NULL)
    return;
  domain = &par_of (exec)->domains[waiter->domain];
  carrier = domain->carrier;
  self = carrier->thread->current;
  assert (self != NULL && self->exec == exec && self->guard == NULL
          && (self == &exec->guest || self->domain == waiter->domain)
          && "the guest or an actor of that domain, not within a guarded call");
  /* Relaxed: all who touch it are of this domain, or have claimed it. */
  atomic_store_explicit (&word->waiter, NULL, memory_order_relaxed);
  if (PTO_UNLIKELY (waiter->has_timer))
    timer_remove (domain, waiter);
  assert (domain->caller == NULL && "one at a time waits for another");
  domain->caller = self;
  carrier->thread->current = waiter;
  if (self != &exec->guest)
    {
      pto_fiber_switch_from (&self->fiber, &waiter->fiber, true);
      return;
    }
  pto_fiber_switch (&carrier->native, &waiter->fiber);
  /* An actor that has returned comes here by itself, as to run(). */
  if (PTO_UNLIKELY (carrier->dead != NULL))
    {
      carrier->thread->current = self;
      domain->caller = NULL;
      pto_actor_recycle (carrier->dead);
      carrier->dead = NULL;
      pto_actor_gone (exec);
    }
}

static void
par_serve (struct pto_actor *self, struct pto_word *word,
           bool (*serve) (void *data, uint32_t value), void *data)
{
  struct par *par = par_of (self->exec);
  struct domain *domain = &par->domains[self->domain];
  uint32_t last = 0;

  self->word = word;
  for (;;)
    {
      /* Relaxed: a local word; what orders its writer and us is the domain, from hand to hand. */
      uint32_t value = atomic_load_explicit (&word->value, memory_order_relaxed);

      if (value != last)
        {
          last = value;
          if (!serve (data, value))
            return;
          self->word = word;
        }
      else
        {
          /* par_park() on a local word; here, so that nothing returns between two switches. */
          self->result = PTO_PARK_WOKEN;
          atomic_store_explicit (&word->waiter, self, memory_order_relaxed);
          switch_away (par, domain, self, true);
        }
    }
}

const struct pto_backend_ops pto_par_ops = {
  .size = sizeof (struct par),
  .init = par_init,
  .clear = par_clear,
  .start = par_start,
  .reap = par_reap,
  .enter = par_enter,
  .leave = par_leave,
  .help = par_help,
  .carry = par_carry,
  .is_visited = par_is_visited,
  .claim = par_claim,
  .release = par_release,
  .run = par_run,
  .serve = par_serve,
  .now = par_now,
  .yield = par_yield,
  .park = par_park,
  .unpark = par_unpark,
};
