/* fiber.h: how does one thread hold many stacks and go from one to another?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A switch saves what the ABI calls callee-saved and the floating-point control words, nothing
 * else: about 10 ns. Built with PTO_FIBER_UCONTEXT (or on an architecture without assembly here) it
 * goes through swapcontext().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if !defined(PTO_FIBER_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define PTO_FIBER_UCONTEXT 1
#endif

#if defined(__SANITIZE_ADDRESS__)
#define PTO_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PTO_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define PTO_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PTO_TSAN 1
#endif
#endif

#ifdef PTO_FIBER_UCONTEXT
#include <ucontext.h>
#endif
#ifdef PTO_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef PTO_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* A kernel with a large frame steps over one page without touching it, so the guard is wider. */
#define PTO_STACK_GUARD ((size_t) 64 << 10)

/* An anonymous mapping: a guard without access at the bottom, then the stack, committed on touch.
 */
struct pto_stack
{
  char *base;   /* lowest address of the guard, NULL when there is no mapping */
  size_t guard; /* bytes without access */
  size_t size;  /* bytes above the guard */
  unsigned int valgrind_id;
};

int pto_stack_map (struct pto_stack *stack, size_t size);
void pto_stack_unmap (struct pto_stack *stack);

struct pto_fiber
{
  void *sp; /* where its registers lie while it does not run */
  void (*entry) (void *arg);
  void *arg;
#ifdef PTO_FIBER_UCONTEXT
  ucontext_t context;
#endif
#ifdef PTO_ASAN
  void *fake_stack;
  const void *bottom;
  size_t size;
#endif
#ifdef PTO_TSAN
  void *tsan;
#endif
};

/* Prepares entry(arg) on a stack; it starts at the first switch and must not return. The colour is
 * any number: it moves the top of the stack by some cache lines, since equally aligned stacks would
 * share a few cache sets. */
void pto_fiber_make (struct pto_fiber *fiber, const struct pto_stack *stack, uint32_t colour,
                     void (*entry) (void *arg), void *arg);
/* Gives back what pto_fiber_make() took beside the stack. Not while it runs. */
void pto_fiber_clear (struct pto_fiber *fiber);
/* Makes fiber stand for the stack the calling thread has, to be switched away from and back to. */
void pto_fiber_adopt (struct pto_fiber *fiber);
/* Like pto_fiber_switch() for a fiber that will never be switched to again. */
_Noreturn void pto_fiber_end (struct pto_fiber *from, struct pto_fiber *to);

#ifndef PTO_FIBER_UCONTEXT
void pto_fiber_swap (void **save, void *load);
#endif

/* Leaves from, continues to; returns when somebody switches to from, perhaps on another thread: the
 * caller must not keep the address of a thread-local across it. */
static inline __attribute__ ((always_inline)) void
pto_fiber_switch (struct pto_fiber *from, struct pto_fiber *to)
{
#ifdef PTO_ASAN
  __sanitizer_start_switch_fiber (&from->fake_stack, to->bottom, to->size);
#endif
#ifdef PTO_TSAN
  __tsan_switch_to_fiber (to->tsan, 0);
#endif
#ifdef PTO_FIBER_UCONTEXT
  swapcontext (&from->context, &to->context);
#else
  pto_fiber_swap (&from->sp, to->sp);
#endif
#ifdef PTO_ASAN
  __sanitizer_finish_switch_fiber (from->fake_stack, NULL, NULL);
#endif
}
