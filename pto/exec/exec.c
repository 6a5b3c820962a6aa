/* exec.c: how does a call on an executor reach its back end, and what is the same for all of them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "exec-private.h"
#include "translate.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Recycled actors kept with their stacks; a chip has fewer, so its runs map no memory after the
 * first. */
#define FREE_LIST_MAX 256u
#define TICKS_MIN_NS 100000u /* below this the ratio of two clocks says little */
#define DEFAULT_STACK ((size_t) 1 << 20)
#define MINIMUM_STACK ((size_t) 32 << 10)

static _Thread_local struct pto_thread this_thread __attribute__ ((tls_model ("initial-exec")));

#if defined(__GNUC__) && !defined(__clang__)
__attribute__ ((noipa)) /* also where files are optimized together */
#else
__attribute__ ((noinline))
#endif
struct pto_thread *
pto_thread_self (void)
{
  /* Not a pure function: see the declaration. */
  __asm__ volatile("" ::: "memory");
  return &this_thread;
}

uint64_t
pto_clock_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

int
pto_futex_wait (_Atomic uint32_t *word, uint32_t expected, uint64_t deadline)
{
  struct timespec t, *limit = NULL;

  if (deadline != PTO_NEVER)
    {
      t.tv_sec = (time_t) (deadline / 1000000000u);
      t.tv_nsec = (long) (deadline % 1000000000u);
      limit = &t;
    }
  if (syscall (SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, limit, NULL,
               FUTEX_BITSET_MATCH_ANY)
      == 0)
    return 0;
  return errno;
}

void
pto_futex_wake (_Atomic uint32_t *word)
{
  syscall (SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* --- random numbers --- */

static uint64_t
splitmix64 (uint64_t *state)
{
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static void
rng_seed (uint64_t state[4], uint64_t seed, uint64_t stream)
{
  uint64_t s = seed;

  s = splitmix64 (&s) ^ (stream * 0xd1342543de82ef95u);
  for (int i = 0; i < 4; i++)
    state[i] = splitmix64 (&s);
}

static inline uint64_t
rotl (uint64_t x, int k)
{
  return (x << k) | (x >> (64 - k));
}

/* xoshiro256**, Blackman and Vigna. */
uint64_t
pto_rng_next (uint64_t s[4])
{
  uint64_t result = rotl (s[1] * 5, 7) * 9;
  uint64_t t = s[1] << 17;

  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotl (s[3], 45);
  return result;
}

uint32_t
pto_rng_below (uint64_t state[4], uint32_t bound)
{
  uint64_t m = (pto_rng_next (state) >> 32) * bound;

  if ((uint32_t) m < bound)
    {
      uint32_t threshold = -bound % bound;

      while ((uint32_t) m < threshold)
        m = (pto_rng_next (state) >> 32) * bound;
    }
  return (uint32_t) (m >> 32);
}

/* --- actors --- */

static void
actor_free (struct pto_actor *actor)
{
  pto_fiber_clear (&actor->fiber);
  pto_stack_unmap (&actor->stack);
  free (actor);
}

void
pto_actor_recycle (struct pto_actor *actor)
{
  struct pto_exec *exec = actor->exec;
  bool keep;

  pto_fiber_clear (&actor->fiber);
  pthread_mutex_lock (&exec->lock);
  if (actor->all_previous != NULL)
    actor->all_previous->all_next = actor->all_next;
  else
    exec->first = actor->all_next;
  if (actor->all_next != NULL)
    actor->all_next->all_previous = actor->all_previous;
  else
    exec->last = actor->all_previous;
  keep = exec->free_count < FREE_LIST_MAX;
  if (keep)
    {
      actor->next = exec->free_list;
      exec->free_list = actor;
      exec->free_count++;
    }
  pthread_mutex_unlock (&exec->lock);
  if (!keep)
    actor_free (actor);
}

void
pto_actor_gone (struct pto_exec *exec)
{
  /* Release what the actor did to whoever joins: pairs with the acquire in pto_exec_join(). */
  if (atomic_fetch_sub_explicit (&exec->live.value, 1, memory_order_acq_rel) == 1)
    exec->ops->unpark (exec, &exec->live);
}

/* --- ticks --- */

static pthread_once_t ticks_once = PTHREAD_ONCE_INIT;
static uint64_t first_ticks;
static uint64_t first_ns;

static void
begin_ticks (void)
{
  first_ns = pto_clock_ns ();
  first_ticks = pto_ticks ();
}

uint64_t
pto_ticks_per_us (void)
{
  uint64_t ns;

  pthread_once (&ticks_once, begin_ticks);
  ns = pto_clock_ns () - first_ns;
  return ns >= TICKS_MIN_NS ? (pto_ticks () - first_ticks) / (ns / 1000) : 0;
}

/* --- life --- */

static void
seed (struct pto_exec *exec, uint64_t number)
{
  exec->config.seed = number;
  rng_seed (exec->rng, number, 0);
  rng_seed (exec->guest.rng, number, 1);
}

struct pto_exec *
pto_exec_new (const struct pto_exec_config *config, char *error, size_t error_size)
{
  static const struct pto_backend_ops *const table[] = { [PTO_BACKEND_PAR] = &pto_par_ops,
                                                         [PTO_BACKEND_DET] = &pto_det_ops,
                                                         [PTO_BACKEND_THREADS] = &pto_threads_ops,
                                                         [PTO_BACKEND_HOST] = &pto_host_ops };
  const struct pto_backend_ops *ops;
  struct pto_exec *exec;

  if ((size_t) config->backend >= sizeof table / sizeof *table)
    {
      snprintf (error, error_size, _ ("There is no execution back end %d"), (int) config->backend);
      return NULL;
    }
  if (config->domains < 1 || config->domains > PTO_MAX_DOMAINS)
    {
      snprintf (error, error_size, _ ("%u domains asked for, 1 to %u are possible"),
                config->domains, PTO_MAX_DOMAINS);
      return NULL;
    }
  pthread_once (&ticks_once, begin_ticks);
  pto_heavy_fence_init ();
  ops = table[config->backend];
  exec = aligned_alloc (64, (ops->size + 63) & ~(size_t) 63);
  if (exec == NULL)
    {
      snprintf (error, error_size, _ ("No memory for an executor (%zu bytes)"), ops->size);
      return NULL;
    }
  memset (exec, 0, ops->size);
  exec->ops = ops;
  exec->head.virtual_clock = ops->charge != NULL;
  exec->config = *config;
  if (exec->config.stack_size == 0)
    exec->config.stack_size = DEFAULT_STACK;
  if (exec->config.stack_size < MINIMUM_STACK)
    exec->config.stack_size = MINIMUM_STACK;
  pthread_mutex_init (&exec->lock, NULL);
  pto_word_init (&exec->live, 0, false);
  exec->guest.exec = exec;
  exec->head.guest = &exec->guest.guard;
  exec->guest.name = "guest";
  exec->guest.has_timer = false;
  exec->guest.domain = UINT32_MAX;
  seed (exec, config->seed);
  if (ops->init (exec, error, error_size) != 0)
    {
      pthread_mutex_destroy (&exec->lock);
      free (exec);
      return NULL;
    }
  return exec;
}

void
pto_exec_free (struct pto_exec *exec)
{
  if (exec == NULL)
    return;
  assert (exec->thread == NULL && "the guest has left");
  assert ((exec->config.backend != PTO_BACKEND_THREADS || pto_exec_live (exec) == 0)
          && "every actor has returned");
  exec->ops->clear (exec);
  /* Fibers that are parked for ever (a deadlock that was reported) hold nothing but their stacks.
   */
  while (exec->first != NULL)
    {
      struct pto_actor *actor = exec->first;

      exec->first = actor->all_next;
      actor_free (actor);
    }
  while (exec->free_list != NULL)
    {
      struct pto_actor *actor = exec->free_list;

      exec->free_list = actor->next;
      actor_free (actor);
    }
  pthread_mutex_destroy (&exec->lock);
  free (exec);
}

bool
pto_exec_restart (struct pto_exec *exec, uint64_t number)
{
  assert (exec->thread == NULL && "the guest has left");
  if (exec->ops->restart == NULL || exec->first != NULL)
    return false;
  seed (exec, number);
  exec->spawned = 0;
  exec->ops->restart (exec);
  return true;
}

enum pto_backend
pto_exec_backend (const struct pto_exec *exec)
{
  return exec->config.backend;
}

uint32_t
pto_exec_carriers (const struct pto_exec *exec)
{
  return exec->head.carriers;
}

uint32_t
pto_exec_live (const struct pto_exec *exec)
{
  return pto_word_get (&exec->live);
}

int
pto_exec_spawn (struct pto_exec *exec, uint32_t domain, const char *name, void (*fn) (void *),
                void *arg, char *error, size_t error_size)
{
  struct pto_actor *actor;
  uint32_t number;

  if (domain >= exec->config.domains)
    {
      snprintf (error, error_size, _ ("Domain %u of %u does not exist"), domain,
                exec->config.domains);
      return -1;
    }
  pthread_mutex_lock (&exec->lock);
  actor = exec->free_list;
  if (actor != NULL)
    {
      exec->free_list = actor->next;
      exec->free_count--;
    }
  number = exec->spawned++;
  pthread_mutex_unlock (&exec->lock);

  if (actor == NULL)
    {
      struct pto_stack stack;

      if (pto_stack_map (&stack, exec->config.stack_size) != 0)
        {
          snprintf (error, error_size, _ ("No stack of %zu KiB for %s: %s"),
                    exec->config.stack_size >> 10, name, strerror (errno));
          return -1;
        }
      actor = aligned_alloc (64, (sizeof *actor + 63) & ~(size_t) 63);
      if (actor == NULL)
        {
          pto_stack_unmap (&stack);
          snprintf (error, error_size, _ ("No memory for the actor %s"), name);
          return -1;
        }
      memset (actor, 0, sizeof *actor);
      actor->stack = stack;
    }
  else
    {
      struct pto_stack stack = actor->stack;

      memset (actor, 0, sizeof *actor);
      actor->stack = stack;
    }
  actor->exec = exec;
  actor->domain = domain;
  actor->name = name;
  actor->fn = fn;
  actor->arg = arg;
  actor->has_timer = false;
  rng_seed (actor->rng, exec->config.seed, (uint64_t) number + 2);

  pthread_mutex_lock (&exec->lock);
  actor->all_previous = exec->last;
  if (exec->last != NULL)
    exec->last->all_next = actor;
  else
    exec->first = actor;
  exec->last = actor;
  pthread_mutex_unlock (&exec->lock);

  /* Relaxed: start() publishes the actor. */
  atomic_fetch_add_explicit (&exec->live.value, 1, memory_order_relaxed);
  if (exec->ops->start (actor, error, error_size) != 0)
    {
      pto_actor_recycle (actor);
      pto_actor_gone (exec);
      return -1;
    }
  return 0;
}

void
pto_exec_join (struct pto_exec *exec)
{
  bool enter = !pto_thread_is_inside (pto_thread_self (), exec);
  uint32_t live;

  if (enter)
    pto_exec_enter (exec);
  while ((live = pto_word_get (&exec->live)) != 0)
    if (pto_park (exec, &exec->live, live, PTO_NEVER) == PTO_PARK_DEADLOCK)
      break;
  if (live == 0)
    exec->ops->reap (exec);
  if (enter)
    pto_exec_leave (exec);
}

/* Are there guarded calls? Actors of the host call no foreign code, and its runs are short: each
 * would be a microsecond longer for the system calls. */
static inline bool
has_guards (const struct pto_exec *exec)
{
  return exec->config.backend != PTO_BACKEND_HOST;
}

void
pto_exec_enter (struct pto_exec *exec)
{
  struct pto_thread *thread = pto_thread_self ();

  assert (exec->thread == NULL && "one guest at a time");
  assert ((thread->current == NULL || thread->current == &thread->current->exec->guest)
          && "a fiber is nobody's guest");
  if (has_guards (exec))
    exec->mask = pto_thread_prepare (thread);
  exec->thread = thread;
  exec->outer = thread->current;
  thread->current = &exec->guest;
  exec->ops->enter (exec, thread);
}

void
pto_exec_leave (struct pto_exec *exec)
{
  struct pto_thread *thread = pto_thread_self ();

  assert (thread->current == &exec->guest && "only the guest leaves, the inner executor first");
  exec->ops->leave (exec);
  thread->current = exec->outer;
  exec->outer = NULL;
  exec->thread = NULL;
  if (has_guards (exec))
    pthread_sigmask (SIG_SETMASK, &exec->mask, NULL);
}

/* --- calls of actors --- */

/* Calls that kernels may come to (through a pipe or a barrier of the chip) put their guarded call
 * aside: an interrupt must not cut the engine's own work in two. */

bool
pto_exec_help (struct pto_exec *exec)
{
  assert (pto_thread_self ()->current == &exec->guest && "only the guest helps");
  return exec->ops->help (exec);
}

bool
pto_exec_carry (struct pto_exec *exec, uint32_t domain, struct pto_word *bell)
{
  assert (pto_thread_self ()->current == &exec->guest && "only the guest carries");
  return exec->ops->carry != NULL && exec->ops->carry (exec, domain, bell);
}

bool
pto_exec_is_visited (struct pto_exec *exec)
{
  return exec->ops->is_visited != NULL && exec->ops->is_visited (pto_thread_self ()->current);
}

bool
pto_exec_claim (struct pto_exec *exec, uint32_t domain)
{
  assert (pto_thread_self ()->current == &exec->guest && "only the guest claims");
  return exec->ops->claim != NULL && exec->ops->claim (exec, domain);
}

void
pto_exec_release (struct pto_exec *exec, uint32_t domain)
{
  exec->ops->release (exec, domain);
}

void
pto_exec_hold (struct pto_exec *exec)
{
  assert (pto_thread_self ()->current == &exec->guest && "only the guest holds");
  if (exec->ops->hold != NULL)
    exec->ops->hold (exec, true);
}

void
pto_exec_unhold (struct pto_exec *exec)
{
  assert (pto_thread_self ()->current == &exec->guest && "only the guest holds");
  if (exec->ops->hold != NULL)
    exec->ops->hold (exec, false);
}

void
pto_exec_keep (struct pto_exec *exec)
{
  assert (!pto_thread_is_inside (pto_thread_self (), exec) && "the guest carries while it waits");
  if (exec->ops->keep != NULL)
    exec->ops->keep (exec);
}

uint64_t
pto_wall_clock (void)
{
  return pto_clock_ns ();
}

uint64_t
pto_now (struct pto_exec *exec)
{
  return exec->ops->now (exec);
}

void
pto_charge_virtual (struct pto_exec *exec, uint64_t ns)
{
  struct pto_actor *self;
  struct pto_guard *guard;

  self = pto_thread_self ()->current;
  assert (self != NULL && self->exec == exec && "an actor of this executor");
  if (PTO_LIKELY (self->guard == NULL))
    {
      exec->ops->charge (self, ns);
      return;
    }
  guard = pto_guard_pause ();
  exec->ops->charge (self, ns);
  pto_guard_resume (guard);
}

void
pto_yield (struct pto_exec *exec)
{
  struct pto_actor *self = pto_thread_self ()->current;
  struct pto_guard *guard;

  assert (self != NULL && self->exec == exec && "an actor of this executor");
  if (PTO_LIKELY (self->guard == NULL))
    {
      exec->ops->yield (self);
      return;
    }
  guard = pto_guard_pause ();
  exec->ops->yield (self);
  pto_guard_resume (guard);
}

uint64_t
pto_rand (struct pto_exec *exec)
{
  struct pto_actor *self = pto_thread_self ()->current;

  assert (self != NULL && self->exec == exec && "an actor of this executor");
  return pto_rng_next (exec->config.backend == PTO_BACKEND_DET ? exec->rng : self->rng);
}

void
pto_word_init (struct pto_word *word, uint32_t value, bool local)
{
  atomic_init (&word->value, value);
  word->local = local;
  atomic_init (&word->waiter, NULL);
  atomic_init (&word->parked, 0);
}

enum pto_park_result
pto_park (struct pto_exec *exec, struct pto_word *word, uint32_t expected, uint64_t deadline)
{
  struct pto_actor *self = pto_thread_self ()->current;
  enum pto_park_result result;
  struct pto_guard *guard;

  assert (self != NULL && self->exec == exec && "an actor of this executor");
  if (PTO_LIKELY (self->guard == NULL))
    return exec->ops->park (self, word, expected, deadline);
  guard = pto_guard_pause ();
  result = exec->ops->park (self, word, expected, deadline);
  pto_guard_resume (guard);
  return result;
}

void
pto_unpark (struct pto_exec *exec, struct pto_word *word)
{
  exec->ops->unpark (exec, word);
}

void
pto_word_run (struct pto_exec *exec, struct pto_word *word, uint32_t value)
{
  atomic_store_explicit (&word->value, value, memory_order_release);
  if (exec->ops->run != NULL)
    exec->ops->run (exec, word);
  else
    exec->ops->unpark (exec, word);
}

void
pto_word_serve (struct pto_exec *exec, struct pto_word *word,
                bool (*serve) (void *data, uint32_t value), void *data)
{
  struct pto_actor *self = pto_thread_self ()->current;
  uint32_t last = 0;

  assert (self != NULL && self->exec == exec && word->local && "an actor of the word's domain");
  if (exec->ops->serve != NULL)
    {
      exec->ops->serve (self, word, serve, data);
      return;
    }
  for (;;)
    {
      uint32_t value = pto_word_get (word);

      if (value == last)
        {
          pto_park (exec, word, last, PTO_NEVER);
          continue;
        }
      last = value;
      if (!serve (data, value))
        return;
    }
}

const char *
pto_actor_name (void)
{
  struct pto_actor *self = pto_thread_self ()->current;

  return self != NULL ? self->name : NULL;
}

void
pto_explore_point (void)
{
  struct pto_actor *self = pto_thread_self ()->current;

  if (self != NULL && self->exec->config.backend == PTO_BACKEND_DET)
    pto_yield (self->exec);
}
