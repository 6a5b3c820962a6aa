/* guarded-call.c: how does the engine get its thread back from foreign code that crashes or never
 * returns?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A guarded call saves the callee-saved registers. When a fault or the interrupt signal hits a
 * thread inside of one, the handler writes the continuation into the interrupted context and
 * returns: the kernel's return from the signal does the jump, signal mask and alternate stack come
 * right by themselves, and the frames below are dropped.
 *
 * What foreign code held when it was cut off stays held; there is no cure within a process. So an
 * interrupt that finds it inside the allocator or the loader, whose locks the whole process needs,
 * is put off until it is asked for again.
 */
#include "exec-private.h"
#include "guard-signals.h"
#include "guarded-call.h"
#include "inside-libc.h"
#include "sent-signals.h"
#include "thread-end.h"
#include "translate.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <setjmp.h>
#define GUARD_JUMP 1
#endif

#if defined(__clang__) || defined(__GNUC__)
#define NOT_SANITIZED \
  __attribute__ ((no_sanitize ("address"), no_sanitize ("thread"), no_sanitize ("undefined")))
#endif

/* What a frame without probes may reach beyond the pointer to a stack that is not ours. */
#define NEAR_STACK ((uintptr_t) 64 << 10)
/* Place in pto_guard.registers of the pointer to the call's frame. Those before it are the
 * assembly's, and PTO_GUARD_EXCEPTION. */
#define FRAME 23

/* On the stack of pto_guard_call(), above everything that is dropped. */
struct frame
{
  struct pto_guard *outer;
  struct pto_fault fault;
  uintptr_t sp; /* where the dropped frames end */
#ifdef GUARD_JUMP
  sigjmp_buf jump;
#endif
};

#ifndef GUARD_JUMP
_Noreturn void pto_guard_registers_continue (void **registers);
#endif
#ifdef __x86_64__
/* Where a function of the allocator or the loader returns to that was interrupted. */
void pto_guard_returned (void);
_Noreturn void pto_guard_end_returned (void);
#endif

/* Whom a signal is for when it has nothing to do with a guarded call. */
struct chain
{
  struct sigaction first; /* there before ours; does not change while ours is installed */
  /* Found in the place of ours later, and put under it. Two, so that a handler that reads one does
   * not meet the next. */
  struct sigaction later[2];
  /* W: under the mutex, release; R: handlers, acquire */
  _Atomic (struct sigaction *) now;
};

/* The only process-wide state of the engine. Under the mutex, except for what handlers read: now of
 * the chains and the number of the interrupt. */
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int guard_users;
static struct chain chains[PTO_GUARD_FAULTS + 1]; /* the last is the interrupt's */
static _Atomic int interrupt_signal;
uintptr_t pto_guard_forks;
/* Handlers are to be looked at before the next guarded call: as long as a look is wanted that none
 * which is over began after. W of wanted: pto_guard_expect(), before the epoch (release); R: who
 * finds another epoch (acquire), and who looks, before it does. W of done: who has looked, under
 * the mutex (release: the handlers are there); R: before a guarded call (acquire). */
static _Atomic uint32_t looks_wanted;
static _Atomic uint32_t looks_done;

/* --- the handler --- */

/* Where the running thread keeps its guarded call. */
static inline NOT_SANITIZED struct pto_guard **
guard_slot (struct pto_thread *thread)
{
  return thread->current != NULL ? &thread->current->guard : &thread->guard;
}

#ifdef PTO_TSAN

/* TSan defers handlers and gives them a copy of the context. This one must be the kernel's own. */
struct kernel_sigaction
{
  void (*handler) (int, siginfo_t *, void *);
  unsigned long flags;
  void (*restorer) (void);
  uint64_t mask;
};

#ifdef __x86_64__
void pto_guard_restorer (void);
#endif

static int
set_action (int signo, const struct sigaction *action, struct sigaction *old)
{
  struct kernel_sigaction raw_action, raw_old;

  if (action != NULL)
    {
      raw_action.handler = action->sa_sigaction;
      raw_action.flags = (unsigned long) action->sa_flags;
      raw_action.restorer = NULL;
      memcpy (&raw_action.mask, &action->sa_mask, sizeof raw_action.mask);
#ifdef __x86_64__
      raw_action.flags |= 0x04000000u; /* SA_RESTORER */
      raw_action.restorer = pto_guard_restorer;
#endif
    }
  if (syscall (SYS_rt_sigaction, signo, action != NULL ? &raw_action : NULL,
               old != NULL ? &raw_old : NULL, sizeof raw_action.mask)
      != 0)
    return -1;
  if (old != NULL)
    {
      memset (old, 0, sizeof *old);
      old->sa_sigaction = raw_old.handler;
      old->sa_flags = (int) (raw_old.flags & ~0x04000000ul);
      memcpy (&old->sa_mask, &raw_old.mask, sizeof raw_old.mask);
    }
  return 0;
}

#else

static int
set_action (int signo, const struct sigaction *action, struct sigaction *old)
{
  return sigaction (signo, action, old);
}

#endif

static NOT_SANITIZED uintptr_t
context_pc (const ucontext_t *context)
{
#if defined(__x86_64__)
  return (uintptr_t) context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return (uintptr_t) context->uc_mcontext.pc;
#else
  (void) context;
  return 0;
#endif
}

static NOT_SANITIZED uintptr_t
context_sp (const ucontext_t *context)
{
#if defined(__x86_64__)
  return (uintptr_t) context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
  return (uintptr_t) context->uc_mcontext.sp;
#else
  (void) context;
  return 0;
#endif
}

/* Makes the return from the handler continue after the guarded call. */
static NOT_SANITIZED void
give_up (struct pto_guard *guard, ucontext_t *context)
{
  struct frame *frame = guard->registers[FRAME];

  frame->sp = context_sp (context);
  /* What a call that does not return has opened on a thread of the engine (libc-hooks.c) is blocked
   * again. */
  if (pto_thread_self ()->program_mask != NULL)
    sigfillset (&context->uc_sigmask);
  /* What the interrupted code (a raise(), say) had blocked is open again, or the next fault would
   * kill the process. */
  pto_guard_unblock (&context->uc_sigmask);
#if defined(__x86_64__)
  context->uc_mcontext.gregs[REG_RDI] = (greg_t) (uintptr_t) guard->registers;
  context->uc_mcontext.gregs[REG_RSP] = (greg_t) (uintptr_t) guard->registers[6];
  context->uc_mcontext.gregs[REG_RIP] = (greg_t) (uintptr_t) pto_guard_registers_continue;
  /* Direction, alignment check and single step as the ABI wants them. */
  context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t) 0x40500;
#elif defined(__aarch64__)
  context->uc_mcontext.regs[0] = (uintptr_t) guard->registers;
  context->uc_mcontext.sp = (uintptr_t) guard->registers[12];
  context->uc_mcontext.pc = (uintptr_t) pto_guard_registers_continue;
#else
  siglongjmp (frame->jump, 1);
#endif
}

/* The handler that was there before, or the default action. */
static NOT_SANITIZED void
chain (size_t index, int signo, siginfo_t *info, void *context)
{
  struct sigaction *action = atomic_load_explicit (&chains[index].now, memory_order_acquire);
  bool synchronous = info->si_code > 0 && signo != SIGABRT;
  struct pto_thread *thread = pto_thread_self ();

  /* A handler that was put on top of ours calls ours, or puts ours back and raises the signal
   * again: that is for those who were there before. */
  if (thread->chaining == signo || (thread->chained == signo && !synchronous))
    action = &chains[index].first;
  if ((action->sa_flags & SA_SIGINFO) != 0
      || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN))
    {
      /* undone by the return from this handler */
      pthread_sigmask (SIG_BLOCK, &action->sa_mask, NULL);
      thread->chaining = thread->chained = signo;
      if ((action->sa_flags & SA_SIGINFO) != 0)
        action->sa_sigaction (signo, info, context);
      else
        action->sa_handler (signo);
      thread->chaining = 0;
      return;
    }
  if (index == PTO_GUARD_FAULTS || (action->sa_handler == SIG_IGN && !synchronous))
    return;
  {
    /* So that the core dump and the exit status are those of the fault: a fault happens again when
     * this returns. A signal that was sent is sent again and waits until then, and so is that of a
     * breakpoint or a refused system call, after which the code would go on. */
    struct sigaction fatal;

    memset (&fatal, 0, sizeof fatal);
    fatal.sa_handler = SIG_DFL;
    set_action (signo, &fatal, NULL);
    if (!synchronous || signo == SIGTRAP || signo == SIGSYS)
      syscall (SYS_tgkill, syscall (SYS_getpid), syscall (SYS_gettid), signo);
  }
}

static NOT_SANITIZED bool
is_interrupted (struct pto_guard *guard)
{
  /* seq_cst: after pto_guard_resume() has published where the call runs; pairs with
   * pto_guard_interrupt(). */
  return atomic_load_explicit (&guard->interrupt, memory_order_seq_cst)
         == atomic_load_explicit (&guard->call, memory_order_relaxed);
}

/* Where the stack is not ours, what lies about its pointer is there, unless it was used up. */
static NOT_SANITIZED bool
is_below_stack (const struct pto_thread *thread, uintptr_t address, uintptr_t sp)
{
  const struct pto_stack *stack = thread->current != NULL ? &thread->current->stack : thread->stack;

  if (stack != NULL && stack->base != NULL)
    return address - (uintptr_t) stack->base < stack->guard;
  return address + NEAR_STACK >= sp && address < sp + NEAR_STACK;
}

/* Inside the allocator or the loader? The walk may meet a stack that the code has spoilt: then the
 * handler is called for that, and ends the call. */
static NOT_SANITIZED bool
is_in_allocator (struct pto_thread *thread, struct pto_guard *guard, uintptr_t **slot)
{
  bool found;

  thread->walking = 1;
  atomic_signal_fence (memory_order_seq_cst);
  found = pto_inside_allocator ((uintptr_t) guard->registers[FRAME], slot);
  atomic_signal_fence (memory_order_seq_cst);
  thread->walking = 0;
  return found;
}

/* The interrupt of a call that runs on this thread. false: it is put off. */
static NOT_SANITIZED bool
may_end (struct pto_thread *thread, struct pto_guard *guard)
{
  struct frame *frame = guard->registers[FRAME];
  uint64_t call = atomic_load_explicit (&guard->call, memory_order_relaxed);
  uint64_t asked = call;
  uintptr_t *slot = NULL;

  frame->fault
      = (struct pto_fault){ .kind = PTO_FAULT_INTERRUPTED, .signo = pto_guard_interrupt_number () };
  frame->fault.in_allocator = is_in_allocator (thread, guard, &slot);
  if (!frame->fault.in_allocator
      || atomic_load_explicit (&guard->force, memory_order_relaxed) == call)
    return true;
  frame->fault = (struct pto_fault){ .kind = PTO_FAULT_NONE };
#ifdef __x86_64__
  /* It ends when it comes out. Elsewhere it has to be met between two calls. */
  if (slot != NULL)
    *slot = (uintptr_t) pto_guard_returned;
#endif
  atomic_store_explicit (&guard->put_off, call, memory_order_relaxed);
  /* Only now may it be asked for again. Relaxed: as where the queue of signals is full. */
  atomic_compare_exchange_strong_explicit (&guard->interrupt, &asked, 0, memory_order_relaxed,
                                           memory_order_relaxed);
  return false;
}

static NOT_SANITIZED void
handler (int signo, siginfo_t *info, void *data)
{
  int saved = errno;
  struct pto_thread *thread = pto_thread_self ();
  struct pto_guard *guard = *guard_slot (thread);
  struct frame *frame;
  size_t index = 0;
  bool is_sent;

  if (signo == atomic_load_explicit (&interrupt_signal, memory_order_relaxed))
    {
      if (thread->end != NULL)
        pto_thread_end_signal (thread, true, signo, info, context_pc (data), context_sp (data));
      else if (guard != NULL && is_interrupted (guard))
        {
          if (may_end (thread, guard))
            {
              *guard_slot (thread) = NULL;
              give_up (guard, data);
            }
        }
      else if (info->si_code != SI_TKILL)
        chain (PTO_GUARD_FAULTS, signo, info, data);
      errno = saved;
      return;
    }
  while (index < PTO_GUARD_FAULTS - 1 && pto_guard_get_signal (index) != signo)
    index++;
  /* A signal that another process sent has nothing to do with the kernel that happens to run. (When
   * the queue of signals is full, one that the thread sent to itself comes without a sender.) */
  is_sent = (info->si_code == SI_USER || info->si_code == SI_QUEUE) && info->si_pid != 0
            && info->si_pid != getpid ();
  if (thread->end != NULL && !is_sent)
    pto_thread_end_signal (thread, false, signo, info, context_pc (data), context_sp (data));
  if (guard == NULL || is_sent)
    {
      chain (index, signo, info, data);
      errno = saved;
      return;
    }
  frame = guard->registers[FRAME];
  if (thread->walking != 0)
    {
      /* may_end() has said why. */
      thread->walking = 0;
      *guard_slot (thread) = NULL;
      give_up (guard, data);
      errno = saved;
      return;
    }
  frame->fault = (struct pto_fault){ .kind = PTO_FAULT_SIGNAL, .signo = signo };
  /* SI_KERNEL: the kernel does not know, and says 0. */
  frame->fault.has_address = info->si_code > 0 && info->si_code != SI_KERNEL;
  if (frame->fault.has_address)
    frame->fault.address = (uint64_t) (uintptr_t) info->si_addr;
  if (signo == SIGSEGV && frame->fault.has_address
      && is_below_stack (thread, (uintptr_t) info->si_addr, context_sp (data)))
    frame->fault.kind = PTO_FAULT_STACK_OVERFLOW;
  *guard_slot (thread) = NULL;
  give_up (guard, data);
  errno = saved;
}

/* --- interface --- */

static struct pto_guard *put_aside (void);

/* A fork waits for the lock, so that what it guards is whole in the copy, and the copy can take it:
 * a child of the program's own makes chips, too. */
static void
before_fork (void)
{
  pthread_mutex_lock (&guard_lock);
}

static void
after_fork (void)
{
  pthread_mutex_unlock (&guard_lock);
}

/* A library that foreign code calls may have forked, without the pause of foreign_fork(). */
static void
after_fork_in_child (void)
{
  struct pto_guard *guard = put_aside ();

  if (guard != NULL)
    pto_guard_end_with_call (guard);
  after_fork ();
  pto_guard_forks++;
}

static void
watch_forks (void)
{
  pthread_atfork (before_fork, after_fork, after_fork_in_child);
}

void
pto_guard_end_copy (const char *call)
{
  dprintf (
      STDERR_FILENO,
      _ ("pto: %s is called in a copy of the process, which fork() has made: the cores and the "
         "scheduler are not in it, and it ends; call it in the process itself, or exec() "
         "another program after fork()\n"),
      call);
  _exit (EXIT_FAILURE);
}

static bool
is_ours (const struct sigaction *action)
{
  return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == handler;
}

static int
install (size_t index)
{
  struct sigaction action;

  memset (&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset (&action.sa_mask);
  /* A handler of ours is not cut by the interrupt; a fault in a handler that we chain to is that
   * handler's affair. */
  sigaddset (&action.sa_mask, pto_guard_interrupt_number ());
  return set_action (pto_guard_get_signal (index), &action, NULL);
}

int
pto_guard_init (void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  size_t i;

  pthread_once (&once, watch_forks);
  pthread_mutex_lock (&guard_lock);
  if (guard_users > 0)
    {
      guard_users++;
      pthread_mutex_unlock (&guard_lock);
      return 0;
    }
  pto_inside_init ();
  atomic_store_explicit (&interrupt_signal, pto_guard_interrupt_number (), memory_order_relaxed);
  for (i = 0; i <= PTO_GUARD_FAULTS; i++)
    {
      struct sigaction *first = &chains[i].first;

      /* Before ours is there: it may be called at once. */
      if (set_action (pto_guard_get_signal (i), NULL, first) != 0)
        break;
      /* Ours from an earlier use, left under somebody else's handler that was put on top and is
       * gone now. */
      if (is_ours (first))
        {
          memset (first, 0, sizeof *first);
          first->sa_handler = SIG_DFL;
        }
      atomic_store_explicit (&chains[i].now, first, memory_order_release);
      if (install (i) != 0)
        break;
    }
  if (i <= PTO_GUARD_FAULTS)
    {
      while (i-- > 0)
        set_action (pto_guard_get_signal (i), &chains[i].first, NULL);
      pthread_mutex_unlock (&guard_lock);
      return -1;
    }
  guard_users = 1;
  pthread_mutex_unlock (&guard_lock);
  return 0;
}

/* Under the lock. */
static void
look (void)
{
  struct sigaction found;
  /* Acquire: what is asked for from here on is another look. */
  uint32_t wanted = atomic_load_explicit (&looks_wanted, memory_order_acquire);

  for (size_t i = 0; i <= PTO_GUARD_FAULTS && guard_users > 0; i++)
    {
      struct chain *chain = &chains[i];
      struct sigaction *next = &chain->later[0];

      if (set_action (pto_guard_get_signal (i), NULL, &found) != 0 || is_ours (&found))
        continue;
      if (atomic_load_explicit (&chain->now, memory_order_relaxed) == next)
        next = &chain->later[1];
      *next = found;
      /* Release: pairs with chain(). */
      atomic_store_explicit (&chain->now, next, memory_order_release);
      install (i);
    }
  atomic_store_explicit (&looks_done, wanted, memory_order_release);
}

void
pto_guard_refresh (void)
{
  pthread_mutex_lock (&guard_lock);
  look ();
  pthread_mutex_unlock (&guard_lock);
  atomic_fetch_add_explicit (&pto_guard_epoch, 1, memory_order_release);
}

void
pto_guard_expect (void)
{
  struct pto_thread *thread = pto_thread_self ();
  uint32_t before;

  atomic_fetch_add_explicit (&looks_wanted, 1, memory_order_relaxed);
  before = atomic_fetch_add_explicit (&pto_guard_epoch, 1, memory_order_release);
  /* This thread has just looked at its own mask and stack. */
  if (thread->epoch == before)
    thread->prepared = before + 1;
}

static bool
is_look_due (void)
{
  return atomic_load_explicit (&looks_done, memory_order_acquire)
         != atomic_load_explicit (&looks_wanted, memory_order_relaxed);
}

/* Before a guarded call of a thread that has not made one since. */
static __attribute__ ((noinline, cold)) void
catch_up (struct pto_thread *thread)
{
  uint32_t epoch = atomic_load_explicit (&pto_guard_epoch, memory_order_acquire);

  if (is_look_due ())
    {
      /* Who comes second waits: no call is made before the handlers are there. */
      pthread_mutex_lock (&guard_lock);
      if (is_look_due ())
        look ();
      pthread_mutex_unlock (&guard_lock);
    }
  if (thread->epoch != 0 && thread->prepared == epoch)
    thread->epoch = epoch;
  else
    pto_thread_prepare (thread);
}

/* The handlers that are there without ours. Under the lock. */
static void
put_back (void)
{
  struct sigaction now, ignore;

  for (size_t i = 0; i <= PTO_GUARD_FAULTS; i++)
    {
      /* Somebody else's on top of ours calls ours: leave it, with what it chains to. */
      if (set_action (pto_guard_get_signal (i), NULL, &now) != 0 || !is_ours (&now))
        continue;
      if (i == PTO_GUARD_FAULTS)
        {
          /* An interrupt under way must not meet the default action, which ends the process. */
          memset (&ignore, 0, sizeof ignore);
          ignore.sa_handler = SIG_IGN;
          set_action (pto_guard_get_signal (i), &ignore, NULL);
        }
      set_action (pto_guard_get_signal (i),
                  atomic_load_explicit (&chains[i].now, memory_order_relaxed), NULL);
    }
}

void
pto_guard_shutdown (void)
{
  pthread_mutex_lock (&guard_lock);
  assert (guard_users > 0);
  if (--guard_users == 0)
    put_back ();
  pthread_mutex_unlock (&guard_lock);
}

void
pto_guard_after_fork (void)
{
  struct pto_thread *thread = pto_thread_self ();

  assert ((thread->current == NULL || thread->current == &thread->current->exec->guest)
          && "children are begun on a native stack");
  pthread_mutex_lock (&guard_lock);
  put_back ();
  guard_users = 0;
  pthread_mutex_unlock (&guard_lock);
  /* The executor that the thread is a guest of runs in the parent; here it is never touched again.
   * The alternate signal stack is a copy, in its place. */
  thread->current = NULL;
  thread->guard = NULL;
  thread->tid = (pid_t) syscall (SYS_gettid);
}

#ifdef GUARD_JUMP

static int
registers_call (struct frame *frame, void **registers, void (*fn) (int64_t *), int64_t *args)
{
  (void) registers;
  if (sigsetjmp (frame->jump, 1) != 0)
    return 1;
  fn (args);
  return 0;
}

static _Noreturn void
registers_continue (struct pto_guard *guard)
{
  siglongjmp (((struct frame *) guard->registers[FRAME])->jump, 1);
}

#else

static inline int
registers_call (struct frame *frame, void **registers, void (*fn) (int64_t *), int64_t *args)
{
  (void) frame;
  return pto_guard_registers_call (registers, fn, args);
}

static _Noreturn void
registers_continue (struct pto_guard *guard)
{
  pto_guard_registers_continue (guard->registers);
}

#endif

/* --- aside, and back --- */

static struct pto_guard *
put_aside (void)
{
  struct pto_guard **slot = guard_slot (pto_thread_self ());
  struct pto_guard *guard = *slot;

  *slot = NULL;
  atomic_signal_fence (memory_order_seq_cst);
  return guard;
}

/* Drops the frames of the call that the caller is in. */
static _Noreturn void
give_up_here (struct pto_guard *guard, struct pto_fault fault)
{
  struct frame *frame = guard->registers[FRAME];

  *guard_slot (pto_thread_self ()) = NULL;
  atomic_signal_fence (memory_order_seq_cst);
  frame->fault = fault;
  frame->sp = (uintptr_t) __builtin_frame_address (0) - 256;
  registers_continue (guard);
}

static void
go_on (struct pto_guard *guard)
{
  struct pto_thread *thread = pto_thread_self ();

  /* seq_cst: before the look at interrupt; pairs with pto_guard_interrupt(): either it sends its
   * signal here, or this sees what it wants. Where tid was this thread's before, the signal comes
   * here in any case, and in the handler the guard is there. */
  if (atomic_load_explicit (&guard->tid, memory_order_relaxed) != thread->tid)
    atomic_store_explicit (&guard->tid, thread->tid, memory_order_seq_cst);
  *guard_slot (thread) = guard;
  atomic_signal_fence (memory_order_seq_cst);
  if (is_interrupted (guard))
    give_up_here (guard, (struct pto_fault){ .kind = PTO_FAULT_INTERRUPTED,
                                             .signo = pto_guard_interrupt_number () });
}

/* --- calls --- */

/* What the assembly calls. From here on the registers are saved, so only now may the call be given
 * up; an interrupt that came since its number was published is seen by pto_guard_resume(). */
struct foreign
{
  struct pto_guard **slot;
  struct pto_guard *guard;
  void (*fn) (int64_t *);
  int64_t *args;
};

static void
call_foreign (int64_t *data)
{
  struct foreign *foreign = (struct foreign *) data;

  /* pto_guard_resume() on the thread that tid names already. */
  *foreign->slot = foreign->guard;
  atomic_signal_fence (memory_order_seq_cst);
  if (PTO_UNLIKELY (is_interrupted (foreign->guard)))
    go_on (foreign->guard);
  foreign->fn (foreign->args);
}

/* The call was given up, or unwound to here. */
static __attribute__ ((noinline, cold)) NOT_SANITIZED void
end_badly (struct foreign *foreign, struct frame *frame, int end)
{
  struct pto_guard *guard = foreign->guard;
  struct pto_unwound unwound;
  pto_guard_describer describe;

#ifdef PTO_ASAN
  /* The dropped frames have not cleaned up behind them. */
  if (frame->sp != 0 && frame->sp < (uintptr_t) frame)
    {
      struct pto_thread *thread = pto_thread_self ();
      uintptr_t low = frame->sp > 4096 ? frame->sp - 4096 : 0;

      if (thread->current != NULL && thread->current->stack.base != NULL
          && low < (uintptr_t) thread->current->stack.base + thread->current->stack.guard)
        low = (uintptr_t) thread->current->stack.base + thread->current->stack.guard;
      __asan_unpoison_memory_region ((void *) low, (uintptr_t) frame - low);
    }
  __asan_handle_no_return ();
#endif
  if (end == PTO_UNWOUND_BY_FORCE)
    {
      frame->fault = (struct pto_fault){ .kind = PTO_FAULT_ENDED };
      snprintf (guard->text, sizeof guard->text, "pthread_exit()");
    }
  else if (end == PTO_UNWOUND_BY_EXCEPTION)
    {
      put_aside ();
      describe = pto_guard_describe (guard->registers[PTO_GUARD_EXCEPTION], &unwound, guard->text,
                                     sizeof guard->text);
      foreign->fn = describe;
      foreign->args = (int64_t *) &unwound;
      foreign->slot = guard_slot (pto_thread_self ());
      /* Within the same call, so that it can be interrupted. Whatever becomes of it counts less
       * than that something was thrown. */
      if (describe != NULL)
        registers_call (frame, guard->registers, call_foreign, (int64_t *) foreign);
      frame->fault = (struct pto_fault){ .kind = PTO_FAULT_EXCEPTION };
    }
  /* What was done to signal mask and alternate stack is looked at before the next call. */
  pto_thread_self ()->epoch = 0;
}

/* Stands for the outer call of one in a copy of the process, which ends with that. */
static struct pto_guard copy;
/* Stands for the outer call of one whose end has more to do: leave_frame(). */
static struct pto_guard marked;

void
pto_guard_end_with_call (struct pto_guard *guard)
{
  struct frame *frame = guard->registers[FRAME];

  frame->outer = &copy;
}

/* The end of the call comes to leave_frame(). */
static void
mark (struct pto_guard *guard)
{
  struct frame *frame = guard->registers[FRAME];

  if (frame->outer == &copy || frame->outer == &marked)
    return;
  guard->outer = frame->outer;
  frame->outer = &marked;
}

void
pto_guard_note_sent (const char *function, int signo)
{
  struct pto_guard *guard = put_aside ();

  if (guard == NULL)
    return;
  mark (guard);
  guard->sent |= (uint64_t) 1 << (signo - 1);
  guard->sent_by = function;
  go_on (guard);
}

void
pto_guard_keep_exceptions (struct pto_exceptions *(*get) (void), bool is_counted)
{
  struct pto_guard *guard = put_aside ();
  struct frame *frame = guard != NULL ? guard->registers[FRAME] : NULL;
  struct pto_exceptions *now;

  if (guard == NULL)
    return;
  /* A copy has one thread, and nothing else runs on it. */
  if (guard->get_exceptions == NULL && frame->outer != &copy)
    {
      now = get ();
      guard->below = *now;
      if (is_counted && now->uncaught > 0)
        guard->below.uncaught--;
      *now = (struct pto_exceptions){ NULL, now->uncaught - guard->below.uncaught };
      guard->get_exceptions = get;
      mark (guard);
    }
  go_on (guard);
}

/* Not inlined, both: the function for the thread that the caller is on by now. */
static __attribute__ ((noinline, cold)) void
take_exceptions_away (struct pto_guard *guard)
{
  struct pto_exceptions *now = guard->get_exceptions ();

  guard->away = *now;
  guard->is_away = true;
  *now = guard->below;
}

static __attribute__ ((noinline, cold)) void
bring_exceptions_back (struct pto_guard *guard)
{
  struct pto_exceptions *now;

  /* The guest stays on its thread: pto_guest_pause() leaves them there. */
  if (!guard->is_away)
    return;
  now = guard->get_exceptions ();
  guard->below = *now;
  guard->is_away = false;
  *now = guard->away;
}

/* The end of a call in another one, of one in a copy, and of one that has thrown, or has sent
 * itself signals. */
static __attribute__ ((noinline, cold)) void
leave_frame (struct pto_guard *guard, const struct frame *frame, struct pto_fault *fault)
{
  struct pto_guard *outer = frame->outer;

  if (outer == &copy)
    _exit (frame->fault.kind == PTO_FAULT_NONE ? EXIT_SUCCESS : EXIT_FAILURE);
  if (outer == &marked)
    {
      if (guard->get_exceptions != NULL)
        *guard->get_exceptions () = guard->below;
      guard->get_exceptions = NULL;
      /* Before the thread's mask is put back, they would end the program. */
      if (pto_sent_take (guard, fault->kind == PTO_FAULT_NONE))
        *fault = (struct pto_fault){ .kind = PTO_FAULT_ENDED };
      outer = guard->outer;
    }
  if (outer != NULL)
    go_on (outer);
}

void
pto_guard_call (struct pto_guard *guard, void (*fn) (int64_t *), int64_t *args,
                struct pto_fault *fault)
{
  struct pto_thread *thread = pto_thread_self ();
  uint64_t call = atomic_load_explicit (&guard->call, memory_order_relaxed) + 1;
  struct pto_guard **slot = guard_slot (thread);
  struct foreign foreign = { slot, guard, fn, args };
  struct frame frame;

  int end;

  assert ((call & 1) != 0 && "a guard makes one call at a time");
  if (PTO_UNLIKELY (thread->epoch != atomic_load_explicit (&pto_guard_epoch, memory_order_relaxed)))
    catch_up (thread);
  frame.outer = *slot;
  *slot = NULL;
  atomic_signal_fence (memory_order_seq_cst);
  frame.fault = (struct pto_fault){ .kind = PTO_FAULT_NONE };
  frame.sp = 0;
  guard->registers[FRAME] = &frame;
#ifdef PTO_GUARD_WORDS
  if (!guard->steady)
    guard->registers[PTO_GUARD_WORDS] = NULL;
#endif
  atomic_store_explicit (&guard->tid, thread->tid, memory_order_relaxed);
  /* Release: whoever reads this call's number reads its thread. Pairs with pto_guard_interrupt().
   */
  atomic_store_explicit (&guard->call, call, memory_order_release);

  end = registers_call (&frame, guard->registers, call_foreign, (int64_t *) &foreign);
  if (PTO_UNLIKELY (end != 0))
    end_badly (&foreign, &frame, end);

  /* The call may have parked and come back on another thread: the slot is looked up again. */
  put_aside ();
  /* Release: what the call did, to an interrupter that finds it over. */
  atomic_store_explicit (&guard->call, call + 1, memory_order_release);
  *fault = frame.fault;
  if (PTO_UNLIKELY (frame.outer != NULL))
    leave_frame (guard, &frame, fault);
}

void
pto_guard_explain (const struct pto_guard *guard, const struct pto_fault *fault, char *text,
                   size_t size)
{
  int n;

  switch (fault->kind)
    {
    case PTO_FAULT_NONE:
      snprintf (text, size, "returned");
      break;
    case PTO_FAULT_SIGNAL:
      n = snprintf (text, size, _ ("crashed: %s (signal %d)"), strsignal (fault->signo),
                    fault->signo);
      if (fault->has_address && n > 0 && (size_t) n < size)
        snprintf (text + n, size - (size_t) n, _ (" at address 0x%" PRIx64), fault->address);
      break;
    case PTO_FAULT_STACK_OVERFLOW:
      snprintf (text, size, _ ("used up its stack"));
      break;
    case PTO_FAULT_INTERRUPTED:
      snprintf (text, size, _ ("did not return"));
      break;
    case PTO_FAULT_EXCEPTION:
      snprintf (text, size, _ ("threw %s"), guard->text);
      break;
    case PTO_FAULT_ENDED:
      snprintf (text, size, _ ("called %s"), guard->text);
      break;
    }
}

void
pto_guard_interrupt (struct pto_guard *guard, uint64_t call)
{
  uint64_t wanted = call;

  if ((call & 1) == 0)
    return;
  /* seq_cst: before the looks at call and tid; pairs with pto_guard_resume(), which writes tid and
   * then looks here. Asked for already: one signal is enough, and real-time signals would queue up.
   */
  if (atomic_exchange_explicit (&guard->interrupt, call, memory_order_seq_cst) == call
      || atomic_load_explicit (&guard->call, memory_order_seq_cst) != call)
    return;
  if (syscall (SYS_tgkill, getpid (), atomic_load_explicit (&guard->tid, memory_order_seq_cst),
               pto_guard_interrupt_number ())
      != 0)
    /* The queue of signals is full: who asks again tries again. Nothing is passed on: relaxed. */
    atomic_compare_exchange_strong_explicit (&guard->interrupt, &wanted, 0, memory_order_relaxed,
                                             memory_order_relaxed);
}

bool
pto_guard_is_put_off (struct pto_guard *guard, uint64_t call)
{
  return atomic_load_explicit (&guard->put_off, memory_order_relaxed) == call
         && atomic_load_explicit (&guard->call, memory_order_relaxed) == call;
}

void
pto_guard_force (struct pto_guard *guard, uint64_t call)
{
  atomic_store_explicit (&guard->force, call, memory_order_relaxed);
}

struct pto_guard *
pto_guard_pause (void)
{
  struct pto_guard *guard = put_aside ();

  if (guard != NULL)
    {
      guard->error = errno;
      if (PTO_UNLIKELY (guard->get_exceptions != NULL))
        take_exceptions_away (guard);
    }
  return guard;
}

/* Not inlined: errno is looked up here, on the thread that the caller is on by now. */
__attribute__ ((noinline)) void
pto_guard_resume (struct pto_guard *guard)
{
  if (guard == NULL)
    return;
  if (PTO_UNLIKELY (guard->get_exceptions != NULL))
    bring_exceptions_back (guard);
  errno = guard->error;
  go_on (guard);
}

#ifdef __x86_64__
/* The outermost function has returned, in the call that it was called in, and holds no lock any
 * more. */
_Noreturn void
pto_guard_end_returned (void)
{
  struct pto_guard *guard = *guard_slot (pto_thread_self ());

  /* A fork returns in the child: it was made while the interrupt was put off. */
  if (guard == NULL)
    _exit (EXIT_FAILURE);
  give_up_here (guard, (struct pto_fault){ .kind = PTO_FAULT_INTERRUPTED,
                                           .signo = pto_guard_interrupt_number () });
}
#endif

void
pto_guard_end (struct pto_guard *guard, const struct pto_fault *fault, const char *text)
{
  if (guard == NULL)
    return;
  snprintf (guard->text, sizeof guard->text, "%s", text);
  if (guard->get_exceptions != NULL)
    bring_exceptions_back (guard);
  give_up_here (guard, *fault);
}

bool
pto_guard_is_inside (void)
{
  return *guard_slot (pto_thread_self ()) != NULL || pto_thread_self ()->end != NULL;
}

/* Relaxed, both: the thread is the only writer of the call. */
void
pto_guard_note_mask (void)
{
  struct pto_guard *guard = *guard_slot (pto_thread_self ());

  if (guard != NULL)
    guard->masked = atomic_load_explicit (&guard->call, memory_order_relaxed);
}

struct pto_guard *
pto_guard_now (void)
{
  return *guard_slot (pto_thread_self ());
}

bool
pto_guard_has_mask (void)
{
  const struct pto_guard *guard = pto_guard_now ();

  return guard != NULL
         && guard->masked == atomic_load_explicit (&guard->call, memory_order_relaxed);
}

void
pto_guard_leave (const char *what)
{
  struct pto_guard *guard = put_aside ();

  if (pto_thread_self ()->end != NULL)
    pto_thread_end_leave (pto_thread_self (), what);
  if (guard == NULL)
    return;
  snprintf (guard->text, sizeof guard->text, "%s", what);
  give_up_here (guard, (struct pto_fault){ .kind = PTO_FAULT_ENDED });
}
