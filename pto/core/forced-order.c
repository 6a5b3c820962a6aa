/* forced-order.c: in which order do tasks run where somebody says so?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "forced-order.h"

#include "exec/translate.h"

/* Half of the seeds let the submitter go ahead as far as it can, the others by so many tasks. */
#define LEAD_SHIFT_MAX 6u
#define UNLIMITED UINT32_MAX

/* One that is held: what it is ordered by, ascending, and where it goes. */
struct held
{
  uint64_t key;
  uint64_t number; /* in the order of submits */
  struct pto_slot *slot;
};

struct pto_order
{
  const struct pto_schedule *schedule;
  uint32_t lead; /* so many are held while the submitter can go on */
  uint64_t n_taken;
  uint32_t n_open;    /* of them, those that were not let go yet */
  struct held *ready; /* a heap */
  uint32_t n_ready;
  uint32_t ready_room;
  struct held *delayed; /* in no order */
  uint32_t n_delayed;
  uint32_t delayed_room;
};

static uint64_t
mix (uint64_t z)
{
  z += UINT64_C (0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

struct pto_order *
pto_order_new (void)
{
  return calloc (1, sizeof (struct pto_order));
}

void
pto_order_free (struct pto_order *order)
{
  if (order == NULL)
    return;
  free (order->ready);
  free (order->delayed);
  free (order);
}

void
pto_order_begin (struct pto_order *order, const struct pto_schedule *schedule)
{
  uint64_t draw = mix (schedule->seed);

  order->schedule = schedule;
  order->lead = 0;
  if (schedule->random)
    order->lead = (draw & 1) == 0 ? UNLIMITED : UINT32_C (2) << (draw >> 1) % (LEAD_SHIFT_MAX + 1);
  order->n_taken = 0;
  order->n_open = order->n_ready = order->n_delayed = 0;
}

/* Was it submitted in this run? Positions count from 0. */
static bool
is_there (const struct pto_engine *engine, pto_task_id id)
{
  return PTO_TASK_LOCAL (id) < engine->rings[PTO_TASK_RING (id)].head;
}

static bool
is_done (const struct pto_engine *engine, pto_task_id id)
{
  uint32_t ring = PTO_TASK_RING (id);

  return is_there (engine, id)
         && (pto_task_is_retired (engine->tails, id)
             || atomic_load_explicit (
                    &pto_ring_slot (&engine->rings[ring], PTO_TASK_LOCAL (id))->state,
                    memory_order_acquire)
                    >= PTO_TASK_COMPLETED);
}

enum pto_status
pto_order_end (const struct pto_engine *engine, const struct pto_order *order,
               enum pto_status status, struct pto_report *report)
{
  for (uint32_t i = 0; status == PTO_OK && i < order->schedule->n_delays; i++)
    {
      const struct pto_delay *delay = &order->schedule->delays[i];
      pto_task_id missing = is_there (engine, delay->task) ? delay->until : delay->task;
      uint32_t ring = PTO_TASK_RING (missing);

      if (missing == PTO_TASK_NONE || is_there (engine, missing))
        continue;
      status = pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                               _ ("schedule: there was no task %u:%u in this run: ring %u had %u"),
                               ring, PTO_TASK_LOCAL (missing), ring, engine->rings[ring].head);
    }
  return status;
}

uint32_t
pto_order_without (const struct pto_order *order)
{
  return order->schedule->without;
}

void
pto_order_leave_out (const struct pto_order *order, struct pto_deps *deps)
{
  uint32_t without = order->schedule->without;
  uint32_t n = 0;

  for (uint32_t i = 0; without != 0 && i < deps->count; i++)
    {
      uint32_t kinds = pto_order_reduce (deps->items[i].kinds, without);

      if (kinds != 0)
        deps->items[n++] = (struct pto_dep){ deps->items[i].task, kinds };
    }
  if (without != 0)
    deps->count = n;
}

void
pto_order_take (struct pto_engine *engine, struct pto_slot *slot)
{
  struct pto_order *order = engine->order;

  /* Both lists have room for all that are taken. */
  if (!pto_array_has_room (order->ready, order->n_open, order->ready_room)
      || !pto_array_has_room (order->delayed, order->n_open, order->delayed_room))
    {
      /* It goes its own way, and passes by. */
      pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, _ ("no memory for the order of %u tasks"),
                       order->n_open + 1);
      return;
    }
  order->n_open++;
  slot->due = slot->queue;
  slot->number = order->n_taken++;
  slot->queue = PTO_QUEUE_ORDER;
}

/* --- the heap of those that may be next --- */

static bool
before (const struct held *a, const struct held *b)
{
  return a->key < b->key || (a->key == b->key && a->number < b->number);
}

static void
heap_push (struct pto_order *order, struct held held)
{
  uint32_t i = order->n_ready++;

  for (; i > 0 && before (&held, &order->ready[(i - 1) / 2]); i = (i - 1) / 2)
    order->ready[i] = order->ready[(i - 1) / 2];
  order->ready[i] = held;
}

static struct held
heap_pop (struct pto_order *order)
{
  struct held top = order->ready[0];
  struct held last = order->ready[--order->n_ready];
  uint32_t i = 0;

  for (;;)
    {
      uint32_t child = 2 * i + 1;

      if (child >= order->n_ready)
        break;
      if (child + 1 < order->n_ready && before (&order->ready[child + 1], &order->ready[child]))
        child++;
      if (!before (&order->ready[child], &last))
        break;
      order->ready[i] = order->ready[child];
      i = child;
    }
  order->ready[i] = last;
  return top;
}

/* --- who is held, and who is let go --- */

enum delayed
{
  NOT_DELAYED,
  DELAYED_TO_THE_END, /* by nobody in particular */
  DELAYED_BY_ANOTHER
};

static enum delayed
look_at_delays (const struct pto_engine *engine, pto_task_id task)
{
  const struct pto_delay *delays;
  uint32_t n = pto_schedule_find (engine->order->schedule, task, &delays);
  enum delayed delayed = NOT_DELAYED;

  for (uint32_t i = 0; i < n; i++)
    if (delays[i].until == PTO_TASK_NONE)
      delayed = DELAYED_TO_THE_END;
    else if (!is_done (engine, delays[i].until))
      return DELAYED_BY_ANOTHER;
  return delayed;
}

void
pto_order_hold (struct pto_engine *engine, struct pto_slot *slot)
{
  struct pto_order *order = engine->order;
  struct held held = { .key = slot->number, .number = slot->number, .slot = slot };

  if (order->schedule->random)
    held.key = mix (order->schedule->seed ^ mix (slot->id));
  if (look_at_delays (engine, slot->id) != NOT_DELAYED)
    order->delayed[order->n_delayed++] = held;
  else
    heap_push (order, held);
}

uint32_t
pto_order_block (const struct pto_order *order, pto_task_id task, uint32_t block, uint32_t n)
{
  uint64_t draw = mix (order->schedule->seed ^ mix (task + 1));
  uint32_t step = (uint32_t) (draw >> 32) % n + 1;

  if (!order->schedule->random || n < 2)
    return block;
  /* A step that has no divisor in common with n meets each block once. */
  while (greatest_common_divisor (step, n) != 1)
    step++;
  return (uint32_t) (((uint64_t) block * step + (uint32_t) draw) % n);
}

/* Whose wait is over is like any other. Gives who of the others is let go first if one must be: one
 * that waits for nobody in particular, if there is one, and the oldest of these. */
static uint32_t
look_at_delayed (struct pto_engine *engine)
{
  struct pto_order *order = engine->order;
  enum delayed of_first = DELAYED_BY_ANOTHER;
  uint32_t first = 0;
  uint32_t n = 0;

  for (uint32_t i = 0; i < order->n_delayed; i++)
    {
      struct held held = order->delayed[i];
      enum delayed delayed = look_at_delays (engine, held.slot->id);

      if (delayed == NOT_DELAYED)
        {
          heap_push (order, held);
          continue;
        }
      order->delayed[n] = held;
      if (n == 0 || delayed < of_first
          || (delayed == of_first && held.number < order->delayed[first].number))
        {
          first = n;
          of_first = delayed;
        }
      n++;
    }
  order->n_delayed = n;
  return first;
}

struct pto_slot *
pto_order_next (struct pto_engine *engine, bool must)
{
  struct pto_order *order = engine->order;
  uint32_t first = look_at_delayed (engine);
  struct held next;

  /* What has failed passes by, in whatever order. */
  must = must || pto_engine_has_failed (engine);
  if (order->n_ready > (must ? 0 : order->lead))
    next = heap_pop (order);
  else if (must && order->n_delayed > 0)
    {
      next = order->delayed[first];
      order->delayed[first] = order->delayed[--order->n_delayed];
    }
  else
    return NULL;
  order->n_open--;
  next.slot->queue = (uint16_t) next.slot->due;
  return next.slot;
}
