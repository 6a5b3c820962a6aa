/* stacks.c: where do the fibers of so many schedules get their stacks from?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every schedule makes them anew. To map them costs as much as the schedule: they are kept. Linked
 * with --wrap=pto_stack_map,--wrap=pto_stack_unmap.
 */
#include "../../pto/exec/fiber.h"

#define SPARE_MAX 16u

static struct pto_stack spare[SPARE_MAX];

int __real_pto_stack_map (struct pto_stack *stack, size_t size);
void __real_pto_stack_unmap (struct pto_stack *stack);
int __wrap_pto_stack_map (struct pto_stack *stack, size_t size);
void __wrap_pto_stack_unmap (struct pto_stack *stack);

int
__wrap_pto_stack_map (struct pto_stack *stack, size_t size)
{
  for (uint32_t i = 0; i < SPARE_MAX; i++)
    if (spare[i].base != NULL && spare[i].size == size)
      {
        *stack = spare[i];
        spare[i].base = NULL;
        return 0;
      }
  return __real_pto_stack_map (stack, size);
}

void
__wrap_pto_stack_unmap (struct pto_stack *stack)
{
  for (uint32_t i = 0; i < SPARE_MAX && stack->base != NULL; i++)
    if (spare[i].base == NULL)
      {
        spare[i] = *stack;
        stack->base = NULL;
      }
  __real_pto_stack_unmap (stack);
}
