/* own-thread.c: how does foreign code keep its thread-local memory while its actor goes from thread
 * to thread?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Two sides take turns: the actor, on the thread that carries it, and the thread. turn says which
 * side may run. All other fields but guard belong to that side. A side that is done writes turn
 * (release) and wakes the other one, which sleeps until it reads its own name there (acquire). So
 * each turn hands over everything, and no field is read while the other side writes it. Only turn
 * is touched by both sides at one time: one side reads it, the other one writes it once.
 *
 * No wake-up is lost: a side that is about to sleep gives the value to the kernel, which compares
 * it under its own lock.
 *
 * guard.call has the number of the actor's own guarded call, so an interrupt names one call,
 * however late it comes. It comes from any thread. The interrupter writes guard.interrupt and then
 * reads guard.call (both seq_cst). The thread writes guard.call and then, after a fence, reads
 * guard.interrupt (pto_guard_resume() in begin()). One of the two sees the other.
 */
#include "own-thread.h"

#include "exec-private.h"
#include "guarded-call.h"
#include "os-thread.h"
#include "thread-end.h"
#include "translate.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum turn
{
  ACTOR,
  THREAD,
  END
};

/* Objects whose names are kept; further ones have none. */
#define NOTED_MAX 8u

struct noted
{
  const void *code;
  char name[48];
};

struct pto_own_thread
{
  _Atomic uint32_t turn;
  int tid;
  /* --- of the side whose turn it is --- */
  void (*fn) (int64_t *); /* what the thread is to call */
  int64_t *args;
  struct pto_fault fault;    /* of that call, when it is over */
  void (*asked) (int64_t *); /* what the actor is to call; NULL: the thread's call is over */
  int64_t *data;
  struct pto_fault answer; /* of that call */
  struct pto_guard relay;  /* the same */
  struct noted noted[NOTED_MAX];
  uint32_t n_noted;
  char name[16];
  /* --- the thread's; interrupt and call: any thread --- */
  struct pto_guard guard;
  struct pto_thread_end end; /* from turn END on */

  struct pto_stack stack;
  pthread_t pthread;
};

static void
give (struct pto_own_thread *own, enum turn side)
{
  /* Release: pairs with the acquire in wait_for(). */
  atomic_store_explicit (&own->turn, side, memory_order_release);
  pto_futex_wake (&own->turn);
}

/* Not inlined: an actor comes here on another thread than before. */
static __attribute__ ((noinline)) enum turn
wait_for (struct pto_own_thread *own, enum turn other)
{
  uint32_t turn;

  while ((turn = atomic_load_explicit (&own->turn, memory_order_acquire)) == other)
    pto_futex_wait (&own->turn, other, PTO_NEVER);
  return turn;
}

/* In the guarded call. */
static void
begin (int64_t *data)
{
  struct pto_own_thread *own = (struct pto_own_thread *) data;

  /* seq_cst: between the number of the call and the look at interrupt; above. */
  pto_full_fence ();
  pto_guard_resume (pto_guard_pause ());
  own->fn (own->args);
}

static void
own_thread_main (void *data)
{
  struct pto_own_thread *own = data;

  pto_thread_self ()->stack = &own->stack;
  own->tid = (int) gettid ();
  own->asked = NULL;
  give (own, ACTOR);
  while (wait_for (own, ACTOR) != END)
    {
      pto_guard_call (&own->guard, begin, (int64_t *) own, &own->fault);
      own->asked = NULL;
      give (own, ACTOR);
    }
  pto_thread_end_begin (&own->end);
}

struct pto_own_thread *
pto_own_thread_new (const char *name, size_t stack, char *error, size_t error_size)
{
  struct pto_own_thread *own = calloc (1, sizeof *own);
  long least = sysconf (_SC_THREAD_STACK_MIN);

  if (own == NULL)
    {
      snprintf (error, error_size, _ ("No memory for the thread %s"), name);
      return NULL;
    }
  /* What the system keeps of a thread lies on its stack. */
  if (least > 0)
    stack += (size_t) least;
  if (pto_stack_map (&own->stack, stack) != 0)
    {
      snprintf (error, error_size, _ ("No stack of %zu KiB for %s: %s"), stack >> 10, name,
                strerror (errno));
      free (own);
      return NULL;
    }
  snprintf (own->name, sizeof own->name, "%s", name);
  atomic_init (&own->turn, THREAD);
  if (pto_os_thread_start (&own->pthread, name, &own->stack, own_thread_main, own, error,
                           error_size)
      != 0)
    {
      pto_stack_unmap (&own->stack);
      free (own);
      return NULL;
    }
  wait_for (own, THREAD);
  return own;
}

void
pto_own_thread_renew (struct pto_own_thread *own)
{
  /* Relaxed: who interrupts calls is told of the new ones later. */
  atomic_store_explicit (&own->guard.interrupt, 0, memory_order_relaxed);
  atomic_store_explicit (&own->guard.put_off, 0, memory_order_relaxed);
  atomic_store_explicit (&own->guard.force, 0, memory_order_relaxed);
  own->guard.masked = 0;
}

void
pto_own_thread_note (struct pto_own_thread *own, const void *code, const char *name)
{
  struct noted *noted = own->noted;

  while (noted < own->noted + own->n_noted && noted->code != code)
    noted++;
  if (noted == own->noted + NOTED_MAX)
    return;
  if (noted == own->noted + own->n_noted)
    own->n_noted++;
  noted->code = code;
  snprintf (noted->name, sizeof noted->name, "%s", name);
}

void
pto_own_thread_end (struct pto_own_thread *own)
{
  give (own, END);
}

/* Writes the name of the object whose destructor was cut off. The thread has ended. A file without
 * a name (/proc/self/fd) says nothing. */
static void
describe_end (const struct pto_own_thread *own, char *text, size_t size)
{
  const void *base = NULL;
  const char *file = pto_thread_end_find_file (&own->end, &base);
  const char *name = own->n_noted == 1 ? own->noted[0].name : NULL;
  Dl_info info;

  for (uint32_t i = 0; i < own->n_noted && file != NULL; i++)
    if (dladdr (own->noted[i].code, &info) != 0 && info.dli_fbase == base)
      name = own->noted[i].name;
  if (file != NULL && strncmp (file, "/proc/", strlen ("/proc/")) == 0)
    file = NULL;
  if (name != NULL && file != NULL)
    snprintf (text, size, _ ("kernel %s (%s)"), name, file);
  else if (name != NULL)
    snprintf (text, size, _ ("kernel %s"), name);
  else if (file != NULL)
    snprintf (text, size, "%s", file);
  else
    snprintf (text, size, _ ("code that is not known"));
}

struct pto_fault
pto_own_thread_free (struct pto_own_thread *own, uint64_t patience, uint64_t *waited, bool *is_left,
                     char *why, size_t size)
{
  struct pto_fault fault = { .kind = PTO_FAULT_INTERRUPTED };
  char code[256], did[160];

  *is_left = !pto_thread_end_join (own->pthread, own->tid, &own->end, patience, waited);
  /* A thread that is left may still end, and write these. */
  if (!*is_left)
    {
      fault = own->end.fault;
      memcpy (own->guard.text, own->end.text, sizeof own->end.text);
    }
  if (fault.kind != PTO_FAULT_NONE)
    {
      if (*is_left)
        snprintf (code, sizeof code, _ ("kernel %s"),
                  own->n_noted > 0 ? own->noted[own->n_noted - 1].name : "?");
      else
        describe_end (own, code, sizeof code);
      pto_guard_explain (&own->guard, &fault, did, sizeof did);
      snprintf (why, size,
                _ ("a destructor of thread-local memory of %s, at the end of core %s, %s"), code,
                own->name, did);
    }
  if (!*is_left)
    {
      pto_stack_unmap (&own->stack);
      free (own);
    }
  return fault;
}

const struct pto_fault *
pto_own_thread_call (struct pto_own_thread *own, const struct pto_guard *guarded,
                     void (*fn) (int64_t *), int64_t *args, const char **text)
{
  /* Relaxed: the actor is its only writer. */
  uint64_t call = atomic_load_explicit (&guarded->call, memory_order_relaxed);

  own->fn = fn;
  own->args = args;
  own->guard.run = guarded->run;
  /* Relaxed: an earlier interrupt is seen in begin(). pto_guard_call() adds 1. */
  atomic_store_explicit (&own->guard.call, call - 1, memory_order_relaxed);
  for (;;)
    {
      give (own, THREAD);
      wait_for (own, THREAD);
      if (own->asked == NULL)
        break;
      pto_guard_call (&own->relay, own->asked, own->data, &own->answer);
    }
  *text = own->guard.text;
  return own->fault.kind != PTO_FAULT_NONE ? &own->fault : NULL;
}

void
pto_own_thread_ask (struct pto_own_thread *own, void (*fn) (int64_t *), int64_t *data)
{
  struct pto_guard *guard = pto_guard_pause ();

  own->asked = fn;
  own->data = data;
  give (own, ACTOR);
  wait_for (own, ACTOR);
  if (own->answer.kind != PTO_FAULT_NONE)
    pto_guard_end (guard, &own->answer, own->relay.text);
  pto_guard_resume (guard);
}

bool
pto_own_thread_is_here (const struct pto_own_thread *own)
{
  return pthread_equal (pthread_self (), own->pthread) != 0;
}

int
pto_own_thread_id (const struct pto_own_thread *own)
{
  return own->tid;
}

void
pto_own_thread_interrupt (struct pto_own_thread *own, uint64_t call, bool force)
{
  if (force)
    pto_guard_force (&own->guard, call);
  pto_guard_interrupt (&own->guard, call);
}

bool
pto_own_thread_is_put_off (struct pto_own_thread *own, uint64_t call)
{
  return pto_guard_is_put_off (&own->guard, call);
}
