/* test-fiber.c: does a fiber find its registers again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "exec-test.h"

#include <fenv.h>
#include <string.h>

#define COUNT 8
#define ROUNDS 1000

static struct pto_fiber native, fibers[COUNT];
static struct pto_stack stacks[COUNT];
static unsigned int finished;

static void
make (unsigned int i, void (*entry) (void *))
{
  g_assert_cmpint (pto_stack_map (&stacks[i], 64 << 10), ==, 0);
  pto_fiber_make (&fibers[i], &stacks[i], i, entry, GUINT_TO_POINTER (i));
}

static void
destroy (unsigned int i)
{
  pto_fiber_clear (&fibers[i]);
  pto_stack_unmap (&stacks[i]);
}

static void
rounding_main (void *arg)
{
  static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
  unsigned int i = GPOINTER_TO_UINT (arg);
  int mode = modes[i % 4];

  /* A fiber begins with the words of the ABI, not with its maker's. */
  g_assert_cmpint (fegetround (), ==, FE_TONEAREST);
  fesetround (mode);
  for (unsigned int round = 0; round < ROUNDS; round++)
    {
      volatile double one = 1.0, three = 3.0;
      volatile long double lone = 1.0L, lthree = 3.0L;
      double before = one / three;
      long double lbefore = lone / lthree;

      pto_fiber_switch (&fibers[i], i + 1 < COUNT ? &fibers[i + 1] : &native);
      g_assert_cmpint (fegetround (), ==, mode);
      g_assert_true (before == one / three);
      g_assert_true (lbefore == lone / lthree);
    }
  finished++;
  pto_fiber_end (&fibers[i], i + 1 < COUNT ? &fibers[i + 1] : &native);
}

static void
test_control_words (void)
{
  finished = 0;
  pto_fiber_adopt (&native);
  fesetround (FE_UPWARD);
  for (unsigned int i = 0; i < COUNT; i++)
    make (i, rounding_main);
  while (finished < COUNT)
    {
      pto_fiber_switch (&native, &fibers[0]);
      g_assert_cmpint (fegetround (), ==, FE_UPWARD);
    }
  fesetround (FE_TONEAREST);
  for (unsigned int i = 0; i < COUNT; i++)
    destroy (i);
}

/* Fills the callee-saved registers, switches, and reports what they hold afterwards. */
#if defined(__x86_64__) && !defined(PTO_FIBER_UCONTEXT) && !defined(PTO_ASAN) && !defined(PTO_TSAN)
#define HAVE_REGISTERS 6

static void
switch_with_registers (struct pto_fiber *from, struct pto_fiber *to,
                       uint64_t registers[HAVE_REGISTERS])
{
  /* Below the red zone; rbx last, for it holds the array. */
  __asm__ volatile("leaq -128(%%rsp), %%rsp\n\t"
                   "pushq %%rbp\n\t"
                   "pushq %%rbx\n\t"
                   "pushq %%rax\n\t"
                   "movq 8(%%rax), %%rbp\n\t"
                   "movq 16(%%rax), %%r12\n\t"
                   "movq 24(%%rax), %%r13\n\t"
                   "movq 32(%%rax), %%r14\n\t"
                   "movq 40(%%rax), %%r15\n\t"
                   "movq 0(%%rax), %%rbx\n\t"
                   "call pto_fiber_swap\n\t"
                   "popq %%rax\n\t"
                   "movq %%rbx, 0(%%rax)\n\t"
                   "movq %%rbp, 8(%%rax)\n\t"
                   "movq %%r12, 16(%%rax)\n\t"
                   "movq %%r13, 24(%%rax)\n\t"
                   "movq %%r14, 32(%%rax)\n\t"
                   "movq %%r15, 40(%%rax)\n\t"
                   "popq %%rbx\n\t"
                   "popq %%rbp\n\t"
                   "leaq 128(%%rsp), %%rsp\n\t"
                   : "+a"(registers), "+D"(from), "+S"(to)
                   :
                   : "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",
                     "cc");
}

static void
check_registers (struct pto_fiber *from, struct pto_fiber *to, uint64_t seed)
{
  uint64_t registers[HAVE_REGISTERS];

  for (unsigned int i = 0; i < HAVE_REGISTERS; i++)
    registers[i] = seed * 0x9e3779b97f4a7c15u + i;
  /* Where the assembly takes the stack pointers from. */
  switch_with_registers ((struct pto_fiber *) &from->sp, to->sp, registers);
  for (unsigned int i = 0; i < HAVE_REGISTERS; i++)
    g_assert_cmphex (registers[i], ==, seed * 0x9e3779b97f4a7c15u + i);
}

static void
registers_main (void *arg)
{
  unsigned int i = GPOINTER_TO_UINT (arg);

  for (uint64_t round = 0;; round++)
    check_registers (&fibers[i], &native, 1000 * i + round);
}

static void
test_registers (void)
{
  pto_fiber_adopt (&native);
  make (0, registers_main);
  make (1, registers_main);
  for (uint64_t round = 0; round < ROUNDS; round++)
    check_registers (&native, &fibers[round & 1], ~round);
  destroy (0);
  destroy (1);
}
#endif

/* Locals of every type live across switches, whatever the architecture. */
static void
locals_main (void *arg)
{
  unsigned int i = GPOINTER_TO_UINT (arg);
  uint64_t a = i, b = i + 1, c = i + 2, d = i + 3, e = i + 4, f = i + 5, g = i + 6;
  double x = i, y = i + 0.5, z = i + 0.25;

  for (unsigned int round = 0; round < ROUNDS; round++)
    {
      pto_fiber_switch (&fibers[i], i + 1 < COUNT ? &fibers[i + 1] : &native);
      a += 1, b += 2, c += 3, d += 4, e += 5, f += 6, g += 7;
      x += 1, y += 2, z += 3;
    }
  g_assert_cmpuint (a + b + c + d + e + f + g, ==, 7 * i + 21 + ROUNDS * 28);
  g_assert_cmpfloat (x + y + z, ==, 3 * i + 0.75 + ROUNDS * 6);
  finished++;
  pto_fiber_end (&fibers[i], i + 1 < COUNT ? &fibers[i + 1] : &native);
}

static void
test_locals (void)
{
  finished = 0;
  pto_fiber_adopt (&native);
  for (unsigned int i = 0; i < COUNT; i++)
    make (i, locals_main);
  while (finished < COUNT)
    pto_fiber_switch (&native, &fibers[0]);
  for (unsigned int i = 0; i < COUNT; i++)
    destroy (i);
}

static void
deep_main (void *arg)
{
  volatile char buffer[40 << 10];

  (void) arg;
  for (gsize i = 0; i < sizeof buffer; i += 512)
    buffer[i] = (char) i;
  pto_fiber_switch (&fibers[0], &native);
  for (gsize i = 0; i < sizeof buffer; i += 512)
    g_assert_cmpint (buffer[i], ==, (char) i);
  pto_fiber_end (&fibers[0], &native);
}

static void
test_stack (void)
{
  pto_fiber_adopt (&native);
  /* A second use of a stack finds it as new. */
  for (int i = 0; i < 3; i++)
    {
      make (0, deep_main);
      g_assert_cmpuint (stacks[0].guard, >=, 4096);
      pto_fiber_switch (&native, &fibers[0]);
      pto_fiber_switch (&native, &fibers[0]);
      destroy (0);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/fiber/control-words", test_control_words);
  g_test_add_func ("/pto/fiber/locals", test_locals);
  g_test_add_func ("/pto/fiber/stack", test_stack);
#ifdef HAVE_REGISTERS
  g_test_add_func ("/pto/fiber/registers", test_registers);
#endif
  return g_test_run ();
}
