/* ready.h: who takes a ready task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

/* A run begins: all queues are empty. */
void pto_engine_restart_ready (struct pto_engine *engine);
/* A task of that priority, 1 or more, is about to be submitted. false: there is none such, or no
 * memory for its queues, and the run has failed. The submitter. */
bool pto_engine_use_priority (struct pto_engine *engine, uint32_t kernel, uint32_t priority);

/* A task has no producer left: on the queue with it, or into the line. shard: where, modulo their
 * number. */
void pto_engine_push_ready (struct pto_engine *engine, struct pto_slot *slot, uint32_t shard);
/* At most max (and PTO_POP_MAX) ready tasks: of the highest priority that some have; where none has
 * one, of one shard, the own one if it has some. Gives how many. */
#define PTO_POP_MAX 8u
uint32_t pto_engine_pop_ready (struct pto_engine *engine, uint32_t queue, uint32_t shard,
                               struct pto_slot **slots, uint32_t max);
/* Is there something to pop, in any shard? */
bool pto_engine_has_ready (struct pto_engine *engine, uint32_t queue);
/* How many there are, about, but for those of a priority. */
uint64_t pto_engine_count_ready (const struct pto_engine *engine, uint32_t queue);
/* Does a task of a higher priority than that one wait for a place of that kind? */
bool pto_engine_has_urgent (struct pto_engine *engine, uint32_t queue, uint32_t priority);
/* With an order, which has tasks with nothing else to wait for, and nothing goes on: the next of
 * them is on its way. must: also if all of them are delayed. false: none is. The submitter. */
bool pto_engine_go_on (struct pto_engine *engine, bool must);
/* Tasks in the ready queues, about. */
uint64_t pto_engine_backlog (const struct pto_engine *engine);
/* Wakes one scheduler that has an idle endpoint for that queue, if there is one. After pushes. */
void pto_engine_ring (struct pto_engine *engine, uint32_t queue);
/* Also if somebody looks for work anyway, and may have overlooked it. Any thread. */
void pto_engine_wake_hungry (struct pto_engine *engine, uint32_t queue);
/* For every queue with ready tasks. */
void pto_engine_ring_all (struct pto_engine *engine);
