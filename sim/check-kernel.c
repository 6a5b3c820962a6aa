/* check-kernel.c: what does a kernel say while it runs, and where does it meet others?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-context.h"

#include "check-connect.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local PTO2Access *current __attribute__ ((tls_model ("initial-exec")));

static void
ask_atomic (struct pto_check_context *context, uintptr_t address, size_t size, uint32_t what,
            uintptr_t here)
{
  if ((what & PTO2_ACCESS_ACQUIRE) != 0)
    pto_check_add_look (context,
                        &(struct pto_check_look){ .address = address,
                                                  .n = (uint32_t) size,
                                                  .is_atomic = true,
                                                  .time = pto_check_tick (context->check) });
  pto_check_touch (context, address, size, what, here);
  if ((what & PTO2_ACCESS_RELEASE) == 0)
    return;
  context->released = address;
  pto_check_end_part (context);
  pto_check_begin_part (context);
}

static void
add_owned (struct pto_check_context *context, uint64_t address, uint64_t bytes)
{
  struct pto_check *check = context->check;
  bool ok = true;

  pthread_mutex_lock (&check->lock);
  if (check->n_owned == check->owned_capacity)
    {
      uint32_t capacity = check->n_owned > 0 ? check->n_owned * 2 : 64;
      struct pto_check_piece *owned = realloc (check->owned, capacity * sizeof *owned);

      ok = owned != NULL;
      if (ok)
        {
          check->owned = owned;
          check->owned_capacity = capacity;
        }
    }
  if (ok)
    check->owned[check->n_owned++] = (struct pto_check_piece){ address, address + bytes };
  check->lost = check->lost || !ok;
  pthread_mutex_unlock (&check->lock);
}

static void
ask (PTO2Access *access, uintptr_t address, size_t size, int what, uintptr_t pc)
{
  struct pto_check_context *context = (struct pto_check_context *) access;
  uintptr_t here = (uintptr_t) __builtin_frame_address (0);

  if ((what & PTO2_ACCESS_ALL) != 0)
    {
      context->writes_all = true;
      return;
    }
  if ((what & PTO2_ACCESS_OWNS) != 0)
    {
      add_owned (context, address, size);
      return;
    }
  pto_check_settle_looks (context);
  if (pto_check_find_block (context, address, here) == &context->nobody)
    return;
  if ((what & PTO2_ACCESS_EXACT) != 0 && !context->is_exact)
    {
      context->is_exact = true;
      memset (context->public.entries, 0xff, sizeof context->public.entries);
    }
  if ((what & PTO2_ACCESS_ATOMIC) != 0)
    {
      ask_atomic (context, address, size, (uint32_t) what, here);
      return;
    }
  if (context->is_exact && (what & PTO2_ACCESS_WRITE) == 0)
    pto_check_look_there (context, address, size, (uint32_t) what, pc);
  else
    context->has_others = true;
  pto_check_touch (context, address, size, (uint32_t) what, here);
}

__attribute__ ((noinline)) void
pto_check_connect (void *data)
{
  PTO2AccessTable *table = data;
  uintptr_t thread;

#if defined(__x86_64__)
  __asm__("movq %%fs:0, %0" : "=r"(thread));
#elif defined(__aarch64__)
  __asm__("mrs %0, tpidr_el0" : "=r"(thread));
#else
  thread = (uintptr_t) __builtin_thread_pointer ();
#endif
  table->current = (intptr_t) ((uintptr_t) &current - thread);
  table->ask = ask;
}

/* Under the lock. */
static void
note_owner (struct pto_check_task *task, const struct pto_check_call *call)
{
  for (uint32_t a = 0; a < task->n_args; a++)
    if (task->args[a].index - call->first_arg < call->n_args)
      {
        task->args[a].owner = (uint16_t) (call->owner + 1);
        task->args[a].first = (uint16_t) call->first_arg;
      }
}

/* Not inlined, these two: a thread-local variable needs a function without a switch. */
__attribute__ ((noinline)) struct pto_check_context *
pto_check_enter (struct pto_check *check, const struct pto_check_call *call)
{
  uint32_t number = pto_check_number (check, call->task);
  struct pto_check_context *context;

  if (number == PTO_CHECK_NONE)
    return NULL;
  pthread_mutex_lock (&check->lock);
  context = check->idle;
  if (context != NULL)
    check->idle = context->idle;
  else
    {
      context = pto_check_context_new (check);
      check->lost = check->lost || context == NULL;
    }
  if (check->tasks[number].n_blocks == 0)
    {
      pto_check_begin_unseen (check, &check->tasks[number]);
      if (!call->talks)
        pto_check_begin_apart (check, &check->tasks[number], call->n_kernels);
    }
  check->tasks[number].n_blocks = call->n_blocks;
  check->tasks[number].has_kernels = call->has_kernels;
  check->tasks[number].at_once = call->at_once;
  check->tasks[number].hides_stores = check->tasks[number].hides_stores || call->hides_stores;
  if (call->n_args != UINT32_MAX)
    note_owner (&check->tasks[number], call);
  pthread_mutex_unlock (&check->lock);
  if (context == NULL)
    return NULL;
  context->number = number;
  context->task = &check->tasks[number];
  context->call = *call;
  context->round = 0;
  context->begin = pto_check_tick (check);
  context->last = NULL;
  context->n_after = context->n_looks = context->n_pending = context->n_recent = 0;
  context->released = 0;
  context->has_others = context->is_exact = context->writes_all = false;
  memset (context->recent, 0, sizeof context->recent);
  memset (context->earlier, 0, sizeof context->earlier);
  context->frame = (uintptr_t) __builtin_frame_address (0);
  if (call->instrumented)
    current = &context->public;
  return context;
}

__attribute__ ((noinline)) void
pto_check_resume (struct pto_check_context *context)
{
  current = context != NULL && context->call.instrumented ? &context->public : NULL;
}

__attribute__ ((noinline)) void
pto_check_go_on_here (struct pto_check_context *context)
{
  if (context != NULL)
    context->frame = (uintptr_t) __builtin_frame_address (0);
  pto_check_resume (context);
}

void
pto_check_note (struct pto_check_context *context, const void *data, uint64_t bytes, bool writes)
{
  if (context != NULL && context->call.instrumented)
    {
      context->has_others = true;
      pto_check_touch (context, (uintptr_t) data, bytes, writes ? PTO2_ACCESS_WRITE : 0,
                       (uintptr_t) __builtin_frame_address (0));
    }
}

void
pto_check_release (struct pto_check_context *context, struct pto_check_point *point)
{
  if (context == NULL || !context->call.instrumented)
    return;
  pto_check_end_part (context);
  pto_check_begin_part (context);
  *point = (struct pto_check_point){ context->check->run, context->last };
}

void
pto_check_acquire (struct pto_check_context *context, const struct pto_check_point *point,
                   bool of_block)
{
  if (context == NULL || !context->call.instrumented)
    return;
  /* Others may have run on this thread. */
  pto_check_resume (context);
  if (point->run != context->check->run || point->part == NULL
      || (of_block
          && (point->part->task != context->number || point->part->block != context->call.block)))
    return;
  if (context->n_after == context->after_capacity)
    {
      uint32_t capacity = context->after_capacity > 0 ? context->after_capacity * 2 : 4;
      struct pto_check_part **after
          = realloc (context->after, capacity * sizeof (struct pto_check_part *));

      if (after == NULL)
        {
          pto_check_lose (context);
          return;
        }
      context->after = after;
      context->after_capacity = capacity;
    }
  context->after[context->n_after++] = point->part;
  context->begin = pto_check_tick (context->check);
}

void
pto_check_arrive (struct pto_check_context *context)
{
  if (context == NULL || !context->call.instrumented)
    return;
  pto_check_end_part (context);
  pto_check_begin_part (context);
}

void
pto_check_meet (struct pto_check_context *context)
{
  if (context == NULL || !context->call.instrumented)
    return;
  pto_check_resume (context);
  context->round++;
  context->begin = pto_check_tick (context->check);
}

void
pto_check_leave (struct pto_check_context *context)
{
  struct pto_check *check;

  if (context == NULL)
    return;
  check = context->check;
  pto_check_resume (NULL);
  pto_check_end_part (context);
  pto_check_forget (context);
  pthread_mutex_lock (&check->lock);
  pto_check_bring_back (&check->tasks[context->number]);
  if (++check->tasks[context->number].n_left == context->call.n_kernels)
    {
      pto_check_end_apart (&check->tasks[context->number]);
      pto_check_end_unseen (check, &check->tasks[context->number]);
    }
  context->idle = check->idle;
  check->idle = context;
  pthread_mutex_unlock (&check->lock);
}
