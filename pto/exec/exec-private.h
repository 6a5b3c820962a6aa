/* exec-private.h: what do the back ends share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-exec.h"

#include "fiber.h"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#define PTO_LIKELY(x) __builtin_expect (!!(x), 1)
#define PTO_UNLIKELY(x) __builtin_expect (!!(x), 0)

/* Only its owner (the actor itself, or while it is parked whoever owns its domain) touches an
 * actor, except where a field says otherwise. */
struct pto_actor
{
  struct pto_exec *exec;
  /* the guarded call it is in; NULL while the engine runs on its behalf. R: signal handler */
  struct pto_guard *guard;
  struct pto_fiber fiber; /* not on threads; for det's guest the stack of its thread */
  /* par, host: run queue or inbox; everywhere: the free list. In one of them at a time */
  struct pto_actor *next;
  struct pto_word *word; /* parked on, NULL when runnable */
  uint32_t expected;
  uint32_t domain;
  enum pto_park_result result; /* what pto_park() will return */
  bool has_timer;              /* it is parked with a deadline */
  uint64_t deadline;
  struct pto_actor *timer_previous, *timer_next; /* par: the domain's timers, by deadline */
  uint64_t rng[4];

  const char *name;
  void (*fn) (void *arg);
  void *arg;
  struct pto_stack stack;
  pthread_t thread;                          /* threads */
  struct pto_actor *all_previous, *all_next; /* in spawn order; under exec->lock */
};

/* The thread's place in the engine. Kept small: it lives in the static TLS block, which libraries
 * share. */
struct pto_thread
{
  struct pto_actor *current; /* NULL outside of any executor, and while a carrier looks for work */
  struct pto_guard *guard;   /* the guarded call of a thread that is no actor */
  pid_t tid;
  uint32_t epoch; /* pto_guard_epoch when its mask and alternate stack were looked at */
  /* One to which these have not changed since, if that is not 0; W, R: the thread. */
  uint32_t prepared;
  /* The signals that somebody else's handler is called for, and was called for last. R: handlers */
  int chaining, chained;
  /* 1: a handler walks the stack that it has interrupted; the thread's own. */
  volatile int walking;
  void *alternate_stack;         /* ours, NULL when there was no need of one */
  const struct pto_stack *stack; /* of a thread that has one of ours and is no actor */
  struct pto_thread_end *end;    /* it has begun to end; NULL: it has not */
  /* The signal mask of the program, of a thread of the engine's, which blocks all; NULL: its own is
   * the program's. */
  const sigset_t *program_mask;
};

struct pto_backend_ops
{
  size_t size;
  int (*init) (struct pto_exec *exec, char *error, size_t error_size);
  void (*clear) (struct pto_exec *exec);
  void (*restart) (struct pto_exec *exec); /* NULL: it can not */
  int (*start) (struct pto_actor *actor, char *error, size_t error_size);
  void (*reap) (struct pto_exec *exec); /* after every actor has returned */
  void (*enter) (struct pto_exec *exec, struct pto_thread *thread);
  void (*leave) (struct pto_exec *exec);
  bool (*help) (struct pto_exec *exec);
  /* These may be NULL. */
  bool (*carry) (struct pto_exec *exec, uint32_t domain, struct pto_word *bell);
  bool (*is_visited) (struct pto_actor *self);
  bool (*claim) (struct pto_exec *exec, uint32_t domain);
  void (*release) (struct pto_exec *exec, uint32_t domain);
  void (*run) (struct pto_exec *exec, struct pto_word *word); /* NULL: unpark */
  void (*serve) (struct pto_actor *self, struct pto_word *word,
                 bool (*serve) (void *data, uint32_t value), void *data); /* NULL: park */
  void (*hold) (struct pto_exec *exec, bool hold);
  void (*keep) (struct pto_exec *exec);
  uint64_t (*now) (struct pto_exec *exec);
  void (*charge) (struct pto_actor *self, uint64_t ns);
  void (*yield) (struct pto_actor *self);
  enum pto_park_result (*park) (struct pto_actor *self, struct pto_word *word, uint32_t expected,
                                uint64_t deadline);
  void (*unpark) (struct pto_exec *exec, struct pto_word *word);
};

struct pto_exec
{
  struct pto_exec_head head;
  const struct pto_backend_ops *ops;
  struct pto_exec_config config;
  struct pto_actor guest; /* no stack, no function */
  /* the guest's, NULL when there is none. W: enter, leave; R: the guest and its fibers */
  struct pto_thread *thread;
  /* what the guest's thread was before it entered: the guest of another executor or NULL */
  struct pto_actor *outer;
  sigset_t mask;        /* the guest's, from before it entered */
  struct pto_word live; /* actors that have not returned; the last one unparks */
  /* the lists of actors below; innermost: nothing is locked under it */
  pthread_mutex_t lock;
  struct pto_actor *free_list; /* recycled with their stacks */
  uint32_t free_count;
  uint32_t spawned; /* ever: seeds generators, colours stacks */
  struct pto_actor *first, *last;
  uint64_t rng[4]; /* det */
};

extern const struct pto_backend_ops pto_par_ops;
extern const struct pto_backend_ops pto_det_ops;
extern const struct pto_backend_ops pto_threads_ops;
extern const struct pto_backend_ops pto_host_ops;

/* The calling thread's. Never inlined and never merged: a fiber may be on another thread after each
 * switch, and the compiler believes that a thread-local has one address per function. */
struct pto_thread *pto_thread_self (void);
/* guard-signals.c: makes the thread's id, signal mask and alternate stack as guarded calls need
 * them. Returns the mask from before. */
sigset_t pto_thread_prepare (struct pto_thread *thread);

/* The actor's function has returned and its stack is no longer in use (fibers: called from
 * another stack). */
void pto_actor_recycle (struct pto_actor *actor);
/* One actor less is alive. The last thing that is done for an actor. */
void pto_actor_gone (struct pto_exec *exec);

/* Asks what fences the system has: before the first thread that fences; heavy-fence.h. */
void pto_heavy_fence_init (void);
uint64_t pto_clock_ns (void);
uint64_t pto_rng_next (uint64_t state[4]);
/* Unbiased in 0 .. bound - 1 (Lemire). */
uint32_t pto_rng_below (uint64_t state[4], uint32_t bound);

/* The executor the thread is an actor of right now. */
static inline bool
pto_thread_is_inside (const struct pto_thread *thread, const struct pto_exec *exec)
{
  return thread->current != NULL && thread->current->exec == exec;
}

/* What a store-load pair needs between them that pto_word_set() (release store, then a look for a
 * waiter) and a parker (waiter stored, then a look at the value) cross with. */
static inline void
pto_full_fence (void)
{
#ifdef PTO_TSAN
  /* TSan does not model fences. Nothing depends on this one for the visibility of data (values
   * travel by release and acquire), so its own read-modify-write is the same to it. */
  static _Atomic uint32_t dummy;

  atomic_fetch_add_explicit (&dummy, 0, memory_order_seq_cst);
#else
  atomic_thread_fence (memory_order_seq_cst);
#endif
}

static inline void
pto_pause (void)
{
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause ();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#else
  __asm__ volatile("" ::: "memory");
#endif
}

/* Sleeps while *word is expected, until deadline (CLOCK_MONOTONIC ns or PTO_NEVER). 0, or errno as
 * futex(2) says. */
int pto_futex_wait (_Atomic uint32_t *word, uint32_t expected, uint64_t deadline);
void pto_futex_wake (_Atomic uint32_t *word);

/* pto-atomic.h declares it for explorer builds only; it is always there. */
void (pto_explore_point) (void);
