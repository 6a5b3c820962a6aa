/* forced-order.h: in which order do tasks run where somebody says so?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * In a run with a schedule (forced-order-text.h) one task runs after the other. A task that has
 * nothing else to wait for any more does not go to its ready queue: it is held here, and one that
 * is held is let go when nothing goes on any more: the submitter waits, no core runs, no timer is
 * set, which only the executor of det can prove. So costs, cores and schedulers say nothing about
 * the order.
 *
 * Of tasks that are not delayed the one that was submitted first is next, and after every submit
 * all that can run does so before the next one: without delays tasks run in the order of their
 * submits. A delayed one is held back until what it waits for has run; where the submitter can not
 * go on, and all that are held are delayed, one of them is let go all the same: the oldest of those
 * that wait for nobody in particular, or, if each waits for another one, the oldest. So no schedule
 * adds a deadlock.
 *
 * With random priorities the submitter goes ahead, by any number of tasks or by a few, as the seed
 * has it, and of those that are held the one of the highest priority is next. Blocks of a task run
 * in an order of the seed as well.
 *
 * Memory that the runtime gives to a task is filled first (unwritten-memory.h), so that what is
 * read before it is written is the same in every run, and not what the run before has left there.
 *
 * Everything here is done by the thread of the run: on det there is no other.
 */
#pragma once

#include "engine.h"
#include "forced-order-text.h"

/* What a slot has instead of a ready queue until it is let go. */
#define PTO_QUEUE_ORDER (PTO_QUEUES_MAX + 2)

struct pto_order;

/* NULL: no memory. */
struct pto_order *pto_order_new (void);
void pto_order_free (struct pto_order *order);
/* Before a run, which the schedule outlives. */
void pto_order_begin (struct pto_order *order, const struct pto_schedule *schedule);
/* Behind a run that ended with that status: a delay of a task that there was not is its error. */
enum pto_status pto_order_end (const struct pto_engine *engine, const struct pto_order *order,
                               enum pto_status status, struct pto_report *report);

/* --- with engine->order --- */

/* The hazards that are left out: not waited for. Memory is kept all the same. */
uint32_t pto_order_without (const struct pto_order *order);
/* What is left of a dependency without them; 0: nothing. That an overlap was assumed is said of a
 * hazard. */
static inline uint32_t
pto_order_reduce (uint32_t kinds, uint32_t without)
{
  uint32_t left = kinds & ~without;

  return without == 0 || (left & ~(uint32_t) PTO_HAZARD_UNSURE) != 0 ? left : 0;
}
/* Of all that was found that a task depends on. */
void pto_order_leave_out (const struct pto_order *order, struct pto_deps *deps);
/* A task with a kernel, which is linked and not let go. */
void pto_order_take (struct pto_engine *engine, struct pto_slot *slot);
/* It has nothing else to wait for. */
void pto_order_hold (struct pto_engine *engine, struct pto_slot *slot);
/* Which of the task's n blocks runs in the place of that one: with random priorities, blocks go in
 * an order that the seed draws. */
uint32_t pto_order_block (const struct pto_order *order, pto_task_id task, uint32_t block,
                          uint32_t n);
/* Nothing goes on. Who is let go; his queue is his own then. must: the submitter can not go on
 * without. NULL: nobody is held, or, unless there must be one, nobody can be let go. */
struct pto_slot *pto_order_next (struct pto_engine *engine, bool must);
