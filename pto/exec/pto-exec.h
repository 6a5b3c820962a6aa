/* pto-exec.h: time and waiting. Everything that waits, spawns or asks for the time goes through
 * here.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An executor runs actors. Four back ends behind one interface:
 *
 * - par: fibers on a few carrier threads, wall clock. Actors are grouped in domains; one carrier
 * runs a domain at a time, so actors of one domain never run at the same time and may wake each
 * other without a fence.
 * - det: fibers on the guest's thread, seeded choice among runnable actors, virtual clock that
 * moves only when nobody can run. Same seed, same inputs: same order of everything.
 * - threads: one OS thread per actor, parked on futexes.
 * - host: fibers of one domain, carried by the guest while it waits or helps, else by whoever calls
 * pto_exec_keep(); wall clock; listens to a bell that other processes ring. Makes no thread.
 *
 * The thread that calls pto_exec_enter() is the guest: an actor on its own stack until
 * pto_exec_leave(). While it waits in pto_park() it carries fibers (par) or drives them all (det).
 * One guest at a time.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pto_backend
{
  PTO_BACKEND_PAR,
  PTO_BACKEND_DET,
  PTO_BACKEND_THREADS,
  PTO_BACKEND_HOST
};

#define PTO_NEVER UINT64_MAX /* a deadline that does not come */
#define PTO_MAX_DOMAINS 64u

struct pto_exec;
struct pto_actor;
struct pto_bell;
struct pto_guard;

/* What an executor begins with. */
struct pto_exec_head
{
  bool virtual_clock;
  uint32_t carriers; /* par: threads beside the guest's; 0 elsewhere */
  /* where the guest's guarded call is while foreign code runs in it; W: guest; R: its handlers */
  struct pto_guard **guest;
};

struct pto_exec_config
{
  enum pto_backend backend;
  uint32_t domains; /* 1 to PTO_MAX_DOMAINS */
  /* par: threads beside the guest; 0 = CPUs this process may use - 1, at least 1 */
  uint32_t carriers;
  uint64_t seed;     /* of pto_rand() and of det's choices */
  size_t stack_size; /* of a fiber; 0 = 1 MiB. Committed on touch, guard page below */
  /* det: replaces the seeded choice among n >= 2 runnable actors (ordered by the time they became
   * runnable), for exhaustive exploration. Answers with a number below n. */
  uint32_t (*choose) (void *data, uint32_t n);
  void *choose_data;
  struct pto_bell
      *bell; /* host: shared-wait.h; one actor may park on its word. Outlives the executor */
};

/* A word to wait on. One actor parks on a word at a time; any actor may change and unpark it.
 *
 * local: every actor that touches it is of one domain, so that on par no fence and no atomic
 * exchange is needed. The guest is of no domain: it neither parks on a local word nor unparks one
 * (par and host assert it). On the other back ends the flag means nothing.
 *
 * On par a fiber may go on on another thread after any call here that waits: no address of a
 * thread-local (errno is one) is kept across it. On det a loop that only yields stops the clock:
 * park or charge. */
struct pto_word
{
  _Atomic uint32_t value;
  bool local;
  _Atomic (struct pto_actor *) waiter; /* who is parked; threads: not used */
  _Atomic uint32_t parked;             /* threads, shared-wait.h: somebody is parked */
};

enum pto_park_result
{
  /* the value differs from the expected one, or somebody called unpark; look again */
  PTO_PARK_WOKEN,
  PTO_PARK_TIMEOUT, /* the deadline came */
  PTO_PARK_DEADLOCK /* det: nobody can run and no timer is set: proved, reported to the guest only
                     */
};

/* Makes an executor; NULL on failure with a sentence in error. */
struct pto_exec *pto_exec_new (const struct pto_exec_config *config, char *error,
                               size_t error_size);
/* All actors must have returned (pto_exec_join()), and no other thread may still be inside of a
 * call on it. Ends the threads it made. Fibers (not on threads) that are parked for ever are
 * dropped with their stacks. */
void pto_exec_free (struct pto_exec *exec);
/* det, between two uses: as a new one with that seed, which has the stacks already. false: an actor
 * has not returned, or it is another back end. */
bool pto_exec_restart (struct pto_exec *exec, uint64_t seed);
/* Actors that have not returned. After pto_exec_join() other than 0 only if det proved that they
 * never will. */
uint32_t pto_exec_live (const struct pto_exec *exec);
enum pto_backend pto_exec_backend (const struct pto_exec *exec);
/* par: threads beside the guest's that run actors; elsewhere 0. */
uint32_t pto_exec_carriers (const struct pto_exec *exec);

/* Starts an actor in a domain. The name must outlive it. Any thread. 0, or -1 when memory, a
 * mapping or a thread is not to be had (sentence in error). */
int pto_exec_spawn (struct pto_exec *exec, uint32_t domain, const char *name, void (*fn) (void *),
                    void *arg, char *error, size_t error_size);
/* The guest waits until every actor has returned. */
void pto_exec_join (struct pto_exec *exec);

/* The calling thread becomes the guest (waits for another guest to leave: callers serialize
 * themselves, this asserts). */
void pto_exec_enter (struct pto_exec *exec);
void pto_exec_leave (struct pto_exec *exec);
/* par: the guest carries one queued domain for one slice, if there is one. host: it carries what is
 * runnable, unless the keeper does; call it after waking actors, for nobody else does it. true if
 * it did. Others: yields. */
bool pto_exec_help (struct pto_exec *exec);
/* par: if nobody carries the domain, the guest adds 1 to the bell, which wakes the actor of that
 * domain that is parked on it and no other thread, and carries the domain until nothing is left to
 * run in it or a slice is over. false, and the bell is as it was: somebody carries it, or another
 * back end. */
bool pto_exec_carry (struct pto_exec *exec, uint32_t domain, struct pto_word *bell);
/* Called by an actor: does the guest carry it with pto_exec_carry(), and has something else to do?
 */
bool pto_exec_is_visited (struct pto_exec *exec);
/* par: if nobody carries the domain, it is the guest's until pto_exec_release(): none of its actors
 * runs, but for those that the guest runs with pto_word_run(). false: somebody carries it, or
 * another back end. The guest does not park meanwhile. */
bool pto_exec_claim (struct pto_exec *exec, uint32_t domain);
void pto_exec_release (struct pto_exec *exec, uint32_t domain);
/* host: no other thread carries from here on until pto_exec_unhold(): the guest forks, say. It
 * neither waits nor yields in between. Others: nothing. */
void pto_exec_hold (struct pto_exec *exec);
void pto_exec_unhold (struct pto_exec *exec);
/* host: what a thread beside the guest (the keeper) calls before each poll() of the bell's event,
 * the first one too. Reads the event empty, carries what is runnable if the guest is away (returns
 * without it if the guest is there), stays up for a moment if there was something, and sees to it
 * that a ring that the guest does not hear makes the event readable. One thread at a time. Others:
 * nothing. */
void pto_exec_keep (struct pto_exec *exec);

/* Nanoseconds: CLOCK_MONOTONIC, on det the virtual clock (begins at 0). */
uint64_t pto_now (struct pto_exec *exec);
/* CLOCK_MONOTONIC in ns on every back end: for figures about this machine, never for a decision. */
uint64_t pto_wall_clock (void);
/* The processor's counter: the cheapest clock there is. It runs at one rate on all CPUs. */
static inline uint64_t
pto_ticks (void)
{
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc ();
#elif defined(__aarch64__)
  uint64_t ticks;

  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return pto_wall_clock ();
#endif
}
/* Not before what stands before it, so that a time read after another thread's store is not less
 * than one that thread read before it. */
static inline uint64_t
pto_ticks_ordered (void)
{
#if defined(__x86_64__)
  unsigned int processor;

  return __builtin_ia32_rdtscp (&processor);
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
  return pto_ticks ();
#else
  return pto_ticks ();
#endif
}
/* Measured since the first executor of this process was made; 0 when that is too short ago. */
uint64_t pto_ticks_per_us (void);
/* Virtual ns that the current actor spends: moves its time on det, costs nothing elsewhere. */
void pto_charge_virtual (struct pto_exec *exec, uint64_t ns);
static inline void
pto_charge (struct pto_exec *exec, uint64_t ns)
{
  if (((const struct pto_exec_head *) exec)->virtual_clock && ns > 0)
    pto_charge_virtual (exec, ns);
}
/* Lets other runnable actors run. */
void pto_yield (struct pto_exec *exec);
/* A number of the executor's generator (xoshiro256**); on the others one generator per actor.
 */
uint64_t pto_rand (struct pto_exec *exec);

void pto_word_init (struct pto_word *word, uint32_t value, bool local);
/* Futex semantics: returns at once if word's value is not expected. deadline in pto_now() time, or
 * PTO_NEVER; on host only the guest has one. On par the guest looks at the clock between two
 * domains that it carries, not while one has work: what must not wait for that is told by an unpark
 * of what the work looks at. */
enum pto_park_result pto_park (struct pto_exec *exec, struct pto_word *word, uint32_t expected,
                               uint64_t deadline);
/* Call after changing the value. Free when nobody is parked. May be called by any thread (also one
 * that is no actor). */
void pto_unpark (struct pto_exec *exec, struct pto_word *word);

static inline uint32_t
pto_word_get (const struct pto_word *word)
{
  return atomic_load_explicit (&word->value, memory_order_acquire);
}

/* Store-release, then wake whoever is parked. */
static inline void
pto_word_set (struct pto_exec *exec, struct pto_word *word, uint32_t value)
{
  atomic_store_explicit (&word->value, value, memory_order_release);
  pto_unpark (exec, word);
}

/* pto_word_set() on a local word. par, host: whoever is parked on it runs at once, and the caller,
 * an actor of the same domain or the guest that has claimed it, goes on when that actor waits for
 * something else. An actor calls it with the floating-point control words that it began with. */
void pto_word_run (struct pto_exec *exec, struct pto_word *word, uint32_t value);
/* An actor's life: waits on a local word, which begins as 0, calls serve with each value that
 * differs from the one before, and returns when serve gives false. serve leaves the floating-point
 * control words as the actor began with them. */
void pto_word_serve (struct pto_exec *exec, struct pto_word *word,
                     bool (*serve) (void *data, uint32_t value), void *data);

/* The current actor is runnable for the whole process; its name, "guest" for the guest, NULL
 * outside. */
const char *pto_actor_name (void);

/* --- guarded calls: foreign code (kernels) that may crash or never return --- */

enum pto_fault_kind
{
  PTO_FAULT_NONE,
  /* SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS (code in signo, address in address)
   */
  PTO_FAULT_SIGNAL,
  PTO_FAULT_STACK_OVERFLOW, /* SIGSEGV in the room below its stack */
  PTO_FAULT_INTERRUPTED,    /* pto_guard_interrupt() */
  PTO_FAULT_EXCEPTION,      /* it threw: what, says the guard's text */
  PTO_FAULT_ENDED           /* it ended its thread or the process: how, says the guard's text */
};

struct pto_fault
{
  enum pto_fault_kind kind;
  int signo;
  bool
      has_address; /* it was about one; abort() is not, nor is an address that no memory can have */
  uint64_t address;
  /* PTO_FAULT_INTERRUPTED: it was inside the allocator or the loader, whose locks may stay held. */
  bool in_allocator;
};

/* The exceptions of a thread that a runtime of C++ keeps, as the Itanium C++ ABI lays them out. */
struct pto_exceptions
{
  void *caught; /* those that are handled, the last one first */
  unsigned int uncaught;
};

/* One per actor that makes guarded calls; memory of the caller, zeroed before first use but for
 * steady. */
struct pto_foreign_run;

struct pto_guard
{
  _Atomic uint64_t call; /* odd while a call runs; W: the owner; R: interrupter */
  /* the call that is to be ended; W: interrupter; R: the owner's signal handler */
  _Atomic uint64_t interrupt;
  _Atomic int tid; /* thread that runs the call */
  /* The call whose interrupt was put off last, since it was inside the allocator or the loader. W:
   * the owner's signal handler; R: interrupter; relaxed, no other memory goes with it. */
  _Atomic uint64_t put_off;
  /* The call that is to be ended even there. W: interrupter; R: the owner's signal handler;
   * relaxed: it is seen at the latest by the handler of the next signal, which is sent after it. */
  _Atomic uint64_t force;
  /* The actor itself never changes the floating-point control words: those that it had at the first
   * call are put back after each. */
  bool steady;
  /* Where the code that is called finds its thread-local variables (libc-hooks.h); NULL: where the
   * thread has them. W: the owner, before its first call. */
  struct pto_locals *locals;
  /* The call that has set the thread's signal mask. W, R: the thread. */
  uint64_t masked;
  int error;                   /* errno of the code that is called, while it is paused */
  void *registers[24];         /* saved context to continue at */
  char text[160];              /* of the last fault that has one; until the next call */
  struct pto_foreign_run *run; /* whose signal handlers the code changes; NULL: nothing notes it */
  /* Gives the thread's exceptions, from the first one of the call to its end; NULL: the call has
   * thrown none. This and all below: W, R: the owner. */
  struct pto_exceptions *(*get_exceptions) (void);
  struct pto_exceptions below; /* the thread's own, which are put back where the call leaves it */
  struct pto_exceptions away;  /* the call's, while it is paused */
  bool is_away;
  uint64_t sent;       /* signals that it has sent its thread and may be pending: bit signo - 1 */
  const char *sent_by; /* the function that sent the last one */
  struct pto_guard *outer; /* the call that one of these was made in; NULL: none */
};

/* Installs the process-wide signal handlers on first use (counted; handlers that were there are
 * chained to for signals that do not come from a guarded call). */
int pto_guard_init (void);
void pto_guard_shutdown (void);
/* Before a run, and now and then while it goes on: handlers that somebody has put in the place of
 * ours are chained to from now on, and every thread looks at its signal mask and alternate stack
 * before its next call. Any thread. */
void pto_guard_refresh (void);
/* The same for a run that may make no guarded call: handlers are looked at before the first one.
 * The guest, inside of its executor. */
void pto_guard_expect (void);
/* Calls fn(args). On a fault the call is given up: the kernel's frames are dropped and *fault says
 * why. */
void pto_guard_call (struct pto_guard *guard, void (*fn) (int64_t *), int64_t *args,
                     struct pto_fault *fault);
/* What the code that was called did, to go on "the kernel ...": "crashed: Floating point exception
 * (signal 8) at address 0x40", "threw std::range_error: no such row", "called exit(3)". */
void pto_guard_explain (const struct pto_guard *guard, const struct pto_fault *fault, char *text,
                        size_t size);
/* Forks between the first process with guarded calls and this one. What a chip or a level has made
 * in a process works there alone: it compares. W: the child of a fork, while it has one thread; R:
 * any thread. */
extern uintptr_t pto_guard_forks __attribute__ ((visibility ("hidden")));
/* Ends the process, a copy in which foreign code has called the engine. call: the name of what it
 * has called. */
_Noreturn void pto_guard_end_copy (const char *call);
/* Any thread: ends the given call if it is still running (call as read from guard->call, odd). A
 * call that is parked ends when its pto_park() returns: unpark what it waits for as well. */
void pto_guard_interrupt (struct pto_guard *guard, uint64_t call);
/* Was the last interrupt of that call put off, since the call was inside the allocator or the
 * loader? Then it may be asked for again, and ends the call once that is elsewhere. Any thread. */
bool pto_guard_is_put_off (struct pto_guard *guard, uint64_t call);
/* From now on an interrupt ends that call wherever it is, and the fault says so. Any thread. */
void pto_guard_force (struct pto_guard *guard, uint64_t call);

/* Code of the engine that a kernel calls stands between these two, so that errno and the exceptions
 * that are handled stay the kernel's and an interrupt cannot cut it in the middle (pto_park(),
 * pto_unpark(), pto_yield() and pto_charge() do it themselves); a fault between them is the
 * engine's own and goes to the handlers that were there before. pause returns what resume takes,
 * NULL when no guarded call runs. resume does not return if the call was interrupted meanwhile. */
struct pto_guard *pto_guard_pause (void);
void pto_guard_resume (struct pto_guard *guard);
/* In the place of resume: gives the call up as if this had happened to it. text: of one that has a
 * text. NULL: it returns, no guarded call runs. */
void pto_guard_end (struct pto_guard *guard, const struct pto_fault *fault, const char *text);

/* Does the guest run foreign code, in a guarded call? */
static inline bool
pto_guest_is_foreign (const struct pto_exec *exec)
{
  return *((const struct pto_exec_head *) exec)->guest != NULL;
}

/* The same as the two above for the guest, which stays on its thread. */
static inline struct pto_guard *
pto_guest_pause (struct pto_exec *exec)
{
  struct pto_guard **slot = ((const struct pto_exec_head *) exec)->guest;
  struct pto_guard *guard = *slot;

  *slot = NULL;
  atomic_signal_fence (memory_order_seq_cst);
  return guard;
}

static inline void
pto_guest_resume (struct pto_exec *exec, struct pto_guard *guard)
{
  struct pto_guard **slot = ((const struct pto_exec_head *) exec)->guest;

  *slot = guard;
  atomic_signal_fence (memory_order_seq_cst);
  /* seq_cst: pairs with pto_guard_interrupt(), as in pto_guard_resume(). */
  if (guard != NULL
      && atomic_load_explicit (&guard->interrupt, memory_order_seq_cst)
             == atomic_load_explicit (&guard->call, memory_order_relaxed))
    pto_guard_resume (guard);
}
