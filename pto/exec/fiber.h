/* fiber.h: how does one thread hold many stacks and go from one to another?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A switch saves what the ABI calls callee-saved and the floating-point control words, nothing
 * else: about 10 ns. Built with PTO_FIBER_UCONTEXT (or on an architecture without assembly here) it
 * goes through swapcontext().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(PTO_FIBER_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define PTO_FIBER_UCONTEXT 1
#endif

/* GCC tells of sanitizers by macros, clang by features. GCC 14 has the features as well, and they
 * stay when -U has taken the macro away, as for the machine of weak orders. */
#if defined(__SANITIZE_ADDRESS__)
#define PTO_ASAN 1
#elif defined(__clang__) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PTO_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define PTO_TSAN 1
#elif defined(__clang__) && defined(__has_feature)
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

/* Room without access below a stack. A function that was built without stack probes steps over as
 * many bytes as its frame has without touching them; what it then touches is to be no neighbour's.
 * It costs address space only. Where that is limited (RLIMIT_AS) the room is a part of the limit,
 * so that many stacks take no more than a fraction of it. */
#ifdef PTO_ASAN
/* Which writes its shadow of all of it whenever a stack comes or goes. */
#define PTO_STACK_ROOM ((size_t) 1 << 20)
#else
#define PTO_STACK_ROOM ((size_t) 64 << 20)
#endif
#define PTO_STACK_ROOM_MIN ((size_t) 64 << 10)
#define PTO_STACK_ROOM_PART 2048u

/* An anonymous mapping: room without access at the bottom, then the stack, committed on touch. */
struct pto_stack
{
  char *base;   /* lowest address of the room, NULL when there is no mapping */
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

#if defined(__x86_64__) && !defined(PTO_FIBER_UCONTEXT)
#ifdef __AVX512F__
#define PTO_FIBER_CLOBBERS                                                                      \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
      "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", \
      "k7"
#else
#define PTO_FIBER_CLOBBERS
#endif
/* pto_fiber_swap() in the caller's own code. A call that is left by a jump puts the processor's
 * return stack out of step, and every return behind it is mispredicted: where two fibers go back
 * and forth without returning in between, this keeps both predicted. words: saves the control words
 * and has them in eax and dx. */
#define PTO_FIBER_SWAP(save, load, words)                                                        \
  __asm__ volatile("leaq -128(%%rsp), %%rsp\n\t" /* the red zone */                              \
                   "leaq 1f(%%rip), %%rcx\n\t"                                                   \
                   "pushq %%rcx\n\t"                                                             \
                   "pushq %%rbp\n\t"                                                             \
                   "subq $48, %%rsp\n\t" /* rbx, r12 to r15: the compiler keeps what it needs */ \
                   words "movq %%rsp, (%%rdi)\n\t"                                               \
                   "movq %%rsi, %%rsp\n\t"                                                       \
                   "xorl (%%rsp), %%eax\n\t"                                                     \
                   "xorw 4(%%rsp), %%dx\n\t"                                                     \
                   "andl $0xffc0, %%eax\n\t"                                                     \
                   "orl %%edx, %%eax\n\t"                                                        \
                   "jne 3f\n\t"                                                                  \
                   "2:\n\t"                                                                      \
                   "addq $8, %%rsp\n\t"                                                          \
                   "popq %%r15\n\t"                                                              \
                   "popq %%r14\n\t"                                                              \
                   "popq %%r13\n\t"                                                              \
                   "popq %%r12\n\t"                                                              \
                   "popq %%rbx\n\t"                                                              \
                   "popq %%rbp\n\t"                                                              \
                   "popq %%rcx\n\t"                                                              \
                   "jmp *%%rcx\n\t"                                                              \
                   "3:\n\t"                                                                      \
                   "ldmxcsr (%%rsp)\n\t"                                                         \
                   "fldcw 4(%%rsp)\n\t"                                                          \
                   "jmp 2b\n\t"                                                                  \
                   "1:\n\t"                                                                      \
                   "leaq 128(%%rsp), %%rsp"                                                      \
                   : "+D"(save), "+S"(load)                                                      \
                   :                                                                             \
                   : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",  \
                     "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",      \
                     "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",       \
                     "memory", "cc" PTO_FIBER_CLOBBERS)

static inline __attribute__ ((always_inline)) void
pto_fiber_swap_inline (void **save, void *load)
{
  PTO_FIBER_SWAP (save, load,
                  "stmxcsr (%%rsp)\n\t"
                  "fnstcw 4(%%rsp)\n\t"
                  "movl (%%rsp), %%eax\n\t"
                  "movzwl 4(%%rsp), %%edx\n\t");
}

/* From a fiber that has the control words of the ABI, as it began: reading mxcsr waits for all that
 * is under way in the processor. */
static inline __attribute__ ((always_inline)) void
pto_fiber_swap_plain (void **save, void *load)
{
  PTO_FIBER_SWAP (save, load,
                  "movabsq $0x037f00001f80, %%rax\n\t"
                  "movq %%rax, (%%rsp)\n\t"
                  "movl $0x037f, %%edx\n\t");
}
#elif !defined(PTO_FIBER_UCONTEXT)
#define pto_fiber_swap_inline pto_fiber_swap
#define pto_fiber_swap_plain pto_fiber_swap
#endif

/* Leaves from, continues to; returns when somebody switches to from, perhaps on another thread: the
 * caller must not keep the address of a thread-local across it. plain: from has the control words
 * of the ABI. */
static inline __attribute__ ((always_inline)) void
pto_fiber_switch_from (struct pto_fiber *from, struct pto_fiber *to, bool plain)
{
#ifdef PTO_ASAN
  __sanitizer_start_switch_fiber (&from->fake_stack, to->bottom, to->size);
#endif
#ifdef PTO_TSAN
  __tsan_switch_to_fiber (to->tsan, 0);
#endif
#ifdef PTO_FIBER_UCONTEXT
  (void) plain;
  swapcontext (&from->context, &to->context);
#else
  if (plain)
    pto_fiber_swap_plain (&from->sp, to->sp);
  else
    pto_fiber_swap_inline (&from->sp, to->sp);
#endif
#ifdef PTO_ASAN
  __sanitizer_finish_switch_fiber (from->fake_stack, NULL, NULL);
#endif
}

static inline __attribute__ ((always_inline)) void
pto_fiber_switch (struct pto_fiber *from, struct pto_fiber *to)
{
  pto_fiber_switch_from (from, to, false);
}
