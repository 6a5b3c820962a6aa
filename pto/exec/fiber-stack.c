/* fiber-stack.c: where do fibers get their stacks, and how do they begin and end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "fiber.h"

#include <errno.h>
#ifdef PTO_FIBER_UCONTEXT
#include <fenv.h>
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

static size_t
room_below_a_stack (void)
{
  struct rlimit limit;
  size_t room = PTO_STACK_ROOM;

  if (getrlimit (RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
      && limit.rlim_cur / PTO_STACK_ROOM_PART < room)
    room = (size_t) limit.rlim_cur / PTO_STACK_ROOM_PART;
  return room > PTO_STACK_ROOM_MIN ? room : PTO_STACK_ROOM_MIN;
}

int
pto_stack_map (struct pto_stack *stack, size_t size)
{
  size_t page = (size_t) sysconf (_SC_PAGESIZE);
  size_t guard = (room_below_a_stack () + page - 1) & ~(page - 1);
  char *base;

  size = (size + page - 1) & ~(page - 1);
  /* Stacks lie side by side. An odd number of pages from one to the next spreads what is in use of
   * them over all sets of a TLB; with 65 MiB, say, all of them would share one. */
  if ((guard + size) / page % 2 == 0)
    guard += page;
  base = mmap (NULL, guard + size, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED)
    return -1;
  if (mprotect (base + guard, size, PROT_READ | PROT_WRITE) != 0)
    {
      int saved = errno;

      munmap (base, guard + size);
      errno = saved;
      return -1;
    }
#ifdef MADV_NOHUGEPAGE
  /* One touched byte must not commit two megabytes. */
  if (size >= ((size_t) 2 << 20))
    (void) madvise (base + guard, size, MADV_NOHUGEPAGE);
#endif
  stack->base = base;
  stack->guard = guard;
  stack->size = size;
  stack->valgrind_id = 0;
#ifdef VALGRIND_STACK_REGISTER
  stack->valgrind_id
      = (unsigned int) VALGRIND_STACK_REGISTER (base + guard, base + guard + size - 1);
#endif
  return 0;
}

void
pto_stack_unmap (struct pto_stack *stack)
{
  if (stack->base == NULL)
    return;
#ifdef VALGRIND_STACK_DEREGISTER
  VALGRIND_STACK_DEREGISTER (stack->valgrind_id);
#endif
#ifdef PTO_ASAN
  /* The next mapping at this place must not inherit the poison of frames that never returned. */
  __asan_unpoison_memory_region (stack->base + stack->guard, stack->size);
#endif
  munmap (stack->base, stack->guard + stack->size);
  stack->base = NULL;
}

/* First C function of every fiber, called by the assembly (or makecontext) trampoline. */
_Noreturn void pto_fiber_main (struct pto_fiber *fiber);

_Noreturn void
pto_fiber_main (struct pto_fiber *fiber)
{
#ifdef PTO_ASAN
  __sanitizer_finish_switch_fiber (NULL, NULL, NULL);
#endif
  fiber->entry (fiber->arg);
  __builtin_trap ();
}

#ifdef PTO_FIBER_UCONTEXT

static void
ucontext_main (unsigned int high, unsigned int low)
{
  pto_fiber_main ((struct pto_fiber *) (uintptr_t) (((uint64_t) high << 32) | low));
}

#else

void pto_fiber_start (void); /* the trampoline in assembly; never called from C */

#endif

void
pto_fiber_make (struct pto_fiber *fiber, const struct pto_stack *stack, uint32_t colour,
                void (*entry) (void *arg), void *arg)
{
  char *low = stack->base + stack->guard;
  char *high = low + stack->size - ((size_t) (colour % 13) * 320 & ~(size_t) 63);

  fiber->entry = entry;
  fiber->arg = arg;
#ifdef PTO_ASAN
  __asan_unpoison_memory_region (low, stack->size);
  fiber->fake_stack = NULL;
  fiber->bottom = low;
  fiber->size = stack->size;
#endif
#ifdef PTO_TSAN
  fiber->tsan = __tsan_create_fiber (0);
#endif
#ifdef PTO_FIBER_UCONTEXT
  {
    /* The new fiber begins with the control words of the ABI, whatever its maker has set. */
    fenv_t environment;

    fegetenv (&environment);
    fesetenv (FE_DFL_ENV);
    getcontext (&fiber->context);
    fesetenv (&environment);
  }
  fiber->context.uc_stack.ss_sp = low;
  fiber->context.uc_stack.ss_size = (size_t) (high - low);
  fiber->context.uc_link = NULL;
  makecontext (&fiber->context, (void (*) (void)) (void *) ucontext_main, 2,
               (unsigned int) ((uint64_t) (uintptr_t) fiber >> 32),
               (unsigned int) (uintptr_t) fiber);
#ifdef PTO_ASAN
  /* Or the sanitizer clears what it notes of the whole stack at every switch to it, six system
   * calls each; it is told of switches by us. */
  fiber->context.uc_stack.ss_size = 0;
#endif
#elif defined(__x86_64__)
  {
    /* The frame that pto_fiber_swap() pops: control words, r15 r14 r13 r12 rbx rbp, return address.
     * The new fiber begins with the control words of the ABI, whatever its maker has set. */
    uint64_t *frame = (uint64_t *) (high - 128);

    memset (frame, 0, 128);
    frame[0] = 0x1f80u | ((uint64_t) 0x037f << 32);
    frame[4] = (uint64_t) (uintptr_t) fiber; /* r12 */
    frame[7] = (uint64_t) (uintptr_t) pto_fiber_start;
    fiber->sp = frame;
  }
#elif defined(__aarch64__)
  {
    /* The frame that pto_fiber_swap() pops: x19..x30, d8..d15, fpcr. */
    uint64_t *frame = (uint64_t *) (high - 192);

    memset (frame, 0, 192);
    frame[0] = (uint64_t) (uintptr_t) fiber;            /* x19 */
    frame[11] = (uint64_t) (uintptr_t) pto_fiber_start; /* x30 */
    fiber->sp = frame;
  }
#endif
}

void
pto_fiber_clear (struct pto_fiber *fiber)
{
#ifdef PTO_TSAN
  if (fiber->tsan != NULL)
    __tsan_destroy_fiber (fiber->tsan);
  fiber->tsan = NULL;
#endif
  fiber->sp = NULL;
}

/* Not inlined: thread-local variables need a function without a switch. */
__attribute__ ((noinline)) void
pto_fiber_adopt (struct pto_fiber *fiber)
{
  memset (fiber, 0, sizeof *fiber);
#ifdef PTO_ASAN
  {
    /* A thread has one stack, and asking for it reads the list of all mappings. */
    static _Thread_local void *low;
    static _Thread_local size_t size;
    pthread_attr_t attr;

    if (size == 0 && pthread_getattr_np (pthread_self (), &attr) == 0)
      {
        pthread_attr_getstack (&attr, &low, &size);
        pthread_attr_destroy (&attr);
      }
    fiber->bottom = low;
    fiber->size = size;
  }
#endif
#ifdef PTO_TSAN
  fiber->tsan = __tsan_get_current_fiber ();
#endif
}

_Noreturn void
pto_fiber_end (struct pto_fiber *from, struct pto_fiber *to)
{
#ifdef PTO_ASAN
  __sanitizer_start_switch_fiber (NULL, to->bottom, to->size);
#endif
#ifdef PTO_TSAN
  __tsan_switch_to_fiber (to->tsan, 0);
#endif
#ifdef PTO_FIBER_UCONTEXT
  (void) from;
  setcontext (&to->context);
#else
  pto_fiber_swap (&from->sp, to->sp);
#endif
  __builtin_trap ();
}
