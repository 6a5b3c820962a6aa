/* check-looks.c: which reads of a kernel wait for what another one writes?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-context.h"

#include <stdlib.h>

/* The reads that were looks are done: what the kernel does from here on comes after what they saw.
 */
void
pto_check_settle_looks (struct pto_check_context *context)
{
  uint64_t now;

  if (context->n_pending == 0)
    return;
  now = pto_check_tick (context->check);
  for (uint32_t l = 0; l < context->n_looks; l++)
    if (context->looks[l].time == PTO_CHECK_PENDING)
      context->looks[l].time = now;
  context->n_pending = 0;
  if (!context->has_others)
    context->begin = now;
}

/* It becomes a new part's first access, or one of several. */
void
pto_check_add_look (struct pto_check_context *context, const struct pto_check_look *look)
{
  uint32_t l = 0;

  if (context->has_others)
    {
      pto_check_end_part (context);
      pto_check_begin_part (context);
    }
  while (l < context->n_looks
         && (context->looks[l].address != look->address || context->looks[l].pc != look->pc))
    l++;
  if (l == context->looks_capacity)
    {
      uint32_t capacity = l > 0 ? l * 2 : 8;
      struct pto_check_look *looks = realloc (context->looks, capacity * sizeof *looks);

      if (looks == NULL)
        {
          pto_check_lose (context);
          return;
        }
      context->looks = looks;
      context->looks_capacity = capacity;
    }
  if (l == context->n_looks)
    context->looks[context->n_looks++] = *look;
  else
    {
      context->looks[l].is_sure = context->looks[l].is_sure || look->is_sure;
      if (look->time != PTO_CHECK_PENDING || context->looks[l].time != PTO_CHECK_PENDING)
        context->looks[l].time = look->time;
      else
        return;
    }
  if (look->time == PTO_CHECK_PENDING)
    context->n_pending++;
  else
    context->begin = look->time;
}

/* The read there before the kernel called pto_relax() and came back. NULL: there was none. */
static const struct pto_check_read *
find_earlier (const struct pto_check_context *context, uintptr_t address)
{
  for (uint32_t i = 0; i < PTO_CHECK_RECENT_READS; i++)
    if (context->earlier[i].address == address)
      return &context->earlier[i];
  return NULL;
}

/* Numbers have 32 bits. */
static void
add_sure (struct pto_check *check, uintptr_t pc)
{
  struct pto_check_numbers *sure = &check->sure;
  bool is_there = false;

  pthread_mutex_lock (&check->lock);
  for (uint32_t i = 0; i < sure->n && !is_there; i += 2)
    is_there = sure->items[i] == (uint32_t) pc && sure->items[i + 1] == (uint32_t) (pc >> 32);
  if (!is_there)
    check->lost = !pto_check_append (sure, (uint32_t) pc)
                  || !pto_check_append (sure, (uint32_t) (pc >> 32)) || check->lost;
  pthread_mutex_unlock (&check->lock);
}

/* A read that is no atomic operation: to see whether something has been written? */
void
pto_check_look_there (struct pto_check_context *context, uintptr_t address, size_t size,
                      uint32_t what, uintptr_t pc)
{
  const struct pto_check_read *earlier = find_earlier (context, address);
  bool is_sure = earlier != NULL;

  context->recent[context->n_recent++ % PTO_CHECK_RECENT_READS]
      = (struct pto_check_read){ address, pc };
  /* The compiler may have made two reads of one in the source: before the loop, and in it. */
  if (is_sure)
    {
      add_sure (context->check, earlier->pc);
      add_sure (context->check, pc);
    }
  if (is_sure || (what & PTO2_ACCESS_NEAR) != 0)
    pto_check_add_look (context, &(struct pto_check_look){ .address = address,
                                                           .n = (uint32_t) size,
                                                           .is_sure = is_sure,
                                                           .pc = pc,
                                                           .time = PTO_CHECK_PENDING });
  else
    context->has_others = true;
}

void
pto_check_relax (struct pto_check_context *context)
{
  if (context == NULL || !context->call.instrumented)
    return;
  pto_check_resume (context);
  memcpy (context->earlier, context->recent, sizeof context->earlier);
  memset (context->recent, 0, sizeof context->recent);
  context->n_recent = 0;
}
