/* guard-signals.c: which signals are for guarded calls, and on which stack does a thread take them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "guard-signals.h"

#include "exec-private.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALTERNATE_STACK ((size_t) 64 << 10)

static const int fault_signals[PTO_GUARD_FAULTS]
    = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
_Atomic uint32_t pto_guard_epoch = 1;

int
pto_guard_interrupt_number (void)
{
  return SIGRTMIN + 5;
}

int
pto_guard_get_signal (size_t index)
{
  return index < PTO_GUARD_FAULTS ? fault_signals[index] : pto_guard_interrupt_number ();
}

void
pto_guard_signals (sigset_t *set)
{
  sigemptyset (set);
  for (size_t i = 0; i <= PTO_GUARD_FAULTS; i++)
    sigaddset (set, pto_guard_get_signal (i));
}

void
pto_guard_unblock (sigset_t *set)
{
  for (size_t i = 0; i <= PTO_GUARD_FAULTS; i++)
    sigdelset (set, pto_guard_get_signal (i));
}

/* --- threads --- */

static pthread_key_t alternate_key;
static pthread_once_t alternate_once = PTHREAD_ONCE_INIT;

static void
give_back_alternate (void *mapping)
{
  stack_t off = { .ss_flags = SS_DISABLE }, now;

  /* Somebody may have put another one in its place. */
  if (sigaltstack (NULL, &now) == 0 && now.ss_sp == mapping)
    sigaltstack (&off, NULL);
  munmap (mapping, ALTERNATE_STACK);
  pto_thread_self ()->alternate_stack = NULL;
  pto_thread_self ()->epoch = 0;
}

static void
make_alternate_key (void)
{
  pthread_key_create (&alternate_key, give_back_alternate);
}

static void
make_alternate (struct pto_thread *thread)
{
  stack_t stack = { .ss_sp = thread->alternate_stack, .ss_size = ALTERNATE_STACK };

  if (stack.ss_sp == NULL)
    {
      stack.ss_sp = mmap (NULL, ALTERNATE_STACK, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (stack.ss_sp == MAP_FAILED)
        return; /* everything works but the report of a stack overflow */
      pthread_once (&alternate_once, make_alternate_key);
      if (pthread_setspecific (alternate_key, stack.ss_sp) != 0)
        {
          munmap (stack.ss_sp, ALTERNATE_STACK);
          return;
        }
      thread->alternate_stack = stack.ss_sp;
    }
  sigaltstack (&stack, NULL);
}

void *
pto_thread_keep_alternate (struct pto_thread *thread)
{
  if (thread->alternate_stack != NULL)
    pthread_setspecific (alternate_key, NULL);
  return thread->alternate_stack;
}

void
pto_thread_unmap_alternate (void *alternate)
{
  if (alternate != NULL)
    munmap (alternate, ALTERNATE_STACK);
}

sigset_t
pto_thread_prepare (struct pto_thread *thread)
{
  stack_t stack;
  sigset_t set, before;

  thread->epoch = atomic_load_explicit (&pto_guard_epoch, memory_order_relaxed);
  /* Each time: a child of a fork has another one. */
  thread->tid = (pid_t) syscall (SYS_gettid);
  thread->chaining = thread->chained = 0;
  pto_guard_signals (&set);
  pthread_sigmask (SIG_UNBLOCK, &set, &before);
  if (sigaltstack (NULL, &stack) == 0 && (stack.ss_flags & SS_DISABLE) != 0)
    make_alternate (thread);
  return before;
}
