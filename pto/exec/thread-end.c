/* thread-end.c: what if a destructor of foreign code crashes or hangs while its thread ends?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "thread-end.h"

#include "exec-private.h"
#include "guard-signals.h"
#include "inside-libc.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS 2000000
/* What a slice may count for: the process may have been stopped meanwhile. */
#define SLICE_MAX_NS UINT64_C (100000000)

#if defined(__clang__) || defined(__GNUC__)
#define NOT_SANITIZED \
  __attribute__ ((no_sanitize ("address"), no_sanitize ("thread"), no_sanitize ("undefined")))
#endif

void
pto_thread_end_begin (struct pto_thread_end *end)
{
  struct pto_thread *thread = pto_thread_self ();

  /* Its mask and alternate stack may be what foreign code has made of them. */
  pto_thread_prepare (thread);
  end->alternate = pto_thread_keep_alternate (thread);
  thread->end = end;
  atomic_signal_fence (memory_order_seq_cst);
}

/* The kernel clears the thread's id, which is what the joiner waits for. */
static _Noreturn NOT_SANITIZED void
leave (void)
{
  for (;;)
    syscall (SYS_exit, 0);
}

NOT_SANITIZED void
pto_thread_end_signal (struct pto_thread *thread, bool is_interrupt, int signo,
                       const siginfo_t *info, uintptr_t pc, uintptr_t sp)
{
  struct pto_thread_end *end = thread->end;
  uint32_t wanted = atomic_load_explicit (&end->wanted, memory_order_relaxed);
  struct pto_fault fault = { .kind = PTO_FAULT_SIGNAL, .signo = signo };
  const struct pto_stack *stack = thread->stack;
  sigset_t ours;

  if (thread->walking != 0)
    {
      /* The walk below has met a stack that the code has spoilt. */
      if (end->fault.kind == PTO_FAULT_NONE)
        end->fault.kind = PTO_FAULT_INTERRUPTED;
      leave ();
    }
  if (is_interrupt && wanted == 0)
    return;
  if (is_interrupt)
    fault.kind = PTO_FAULT_INTERRUPTED;
  else
    {
      fault.has_address = info->si_code > 0 && info->si_code != SI_KERNEL;
      fault.address = fault.has_address ? (uint64_t) (uintptr_t) info->si_addr : 0;
      if (stack != NULL && fault.has_address
          && fault.address - (uintptr_t) stack->base < stack->guard)
        fault.kind = PTO_FAULT_STACK_OVERFLOW;
      end->fault = fault;
    }
  /* Where it has jumped to nowhere, the walk finds nothing. */
  end->callers[0] = pc;
  end->n_callers = 1;
  if (stack != NULL && sp - (uintptr_t) stack->base - stack->guard < stack->size)
    end->callers[end->n_callers++] = *(const uintptr_t *) sp;
  thread->walking = 1;
  /* A fault of the walk is to come here, not to end the process. */
  pto_guard_signals (&ours);
  pthread_sigmask (SIG_UNBLOCK, &ours, NULL);
  fault.in_allocator = pto_inside_callers (end->callers, &end->n_callers, PTO_THREAD_END_CALLERS);
  if (is_interrupt && fault.in_allocator && wanted < 2)
    {
      /* Its locks would stay held: it is asked again. The mask comes right with the return. */
      thread->walking = 0;
      return;
    }
  fault.in_allocator = is_interrupt && fault.in_allocator;
  end->fault = fault;
  leave ();
}

void
pto_thread_end_leave (struct pto_thread *thread, const char *what)
{
  snprintf (thread->end->text, sizeof thread->end->text, "%s", what);
  thread->end->fault = (struct pto_fault){ .kind = PTO_FAULT_ENDED };
  leave ();
}

bool
pto_thread_end_join (pthread_t thread, int tid, struct pto_thread_end *end, uint64_t patience,
                     uint64_t *waited)
{
  uint64_t before = pto_wall_clock ();
  struct timespec until;

  for (;;)
    {
      uint64_t now;

      clock_gettime (CLOCK_REALTIME, &until);
      until.tv_nsec += SLICE_NS;
      if (until.tv_nsec >= 1000000000)
        {
          until.tv_nsec -= 1000000000;
          until.tv_sec++;
        }
      if (pthread_timedjoin_np (thread, NULL, &until) == 0)
        break;
      now = pto_wall_clock ();
      *waited += now - before < SLICE_MAX_NS ? now - before : SLICE_MAX_NS;
      before = now;
      if (*waited < patience)
        continue;
      if (*waited >= 3 * patience)
        return false;
      atomic_store_explicit (&end->wanted, *waited < 2 * patience ? 1 : 2, memory_order_relaxed);
      syscall (SYS_tgkill, getpid (), tid, pto_guard_interrupt_number ());
    }
  pto_thread_unmap_alternate (end->alternate);
  return true;
}

/* What foreign code is called through, or calls. */
static bool
is_system (const char *path)
{
  static const char *const names[]
      = { "libc.so", "ld-", "libpthread", "libstdc++", "libc++", "libgcc_s", "libm.so" };
  const char *name = strrchr (path, '/');

  name = name != NULL ? name + 1 : path;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp (name, names[i], strlen (names[i])) == 0)
      return true;
  return false;
}

const char *
pto_thread_end_find_file (const struct pto_thread_end *end, const void **base)
{
  Dl_info own, info;

  if (dladdr (is_system, &own) == 0)
    own.dli_fbase = NULL;
  for (uint32_t i = 0; i < end->n_callers; i++)
    if (dladdr ((const void *) end->callers[i], &info) != 0 && info.dli_fbase != own.dli_fbase
        && !is_system (info.dli_fname))
      {
        *base = info.dli_fbase;
        return info.dli_fname;
      }
  return NULL;
}
