/* manual-tasks.h: which tasks were added by hand, and can not run yet?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The submitter's list; manual-build.h says what becomes of them.
 */
#pragma once

#include "engine.h"

/* The submit between these two adds a task. */
void pto_added_begin (struct pto_engine *engine);
void pto_added_end (struct pto_engine *engine);
/* In between: other tasks have come before it. */
void pto_added_note (struct pto_engine *engine);
/* Of its ring the first that is not before that position. */
uint32_t pto_added_first (const struct pto_build *build, uint32_t ring, uint32_t local);
/* NULL: it was not added, or the scope that it was added in has ended. */
struct pto_added *pto_added_find (struct pto_build *build, pto_task_id task);
/* Was it added, and nobody has let it go yet? */
bool pto_added_is_held (struct pto_engine *engine, pto_task_id task);
/* "task 3 (add), added at x.c:12," */
void pto_added_name (const struct pto_engine *engine, uint32_t ring, const struct pto_added *added,
                     char *text, size_t size);
/* How many tasks can not run before the submitter lets some go: those that were added and are not
 * let go, and who comes after them; 0, too, without memory to count them. */
uint64_t pto_added_count_blocked (struct pto_engine *engine);
/* A task that is not let go and must be over before a slot can be retired. */
struct pto_obstacle
{
  struct pto_added *added;
  uint32_t ring;
};
/* Lists the tasks that are not let go and must be over before the slot can be retired: the slot's
 * task, those that use its memory, and those before one of these. Published tasks come first, then
 * those that were added first. The caller frees the list. Returns how many there are; 0 also
 * without memory. Takes as long as the tasks and edges are many. */
uint64_t pto_added_list_obstacles (struct pto_engine *engine, const struct pto_slot *slot,
                                   struct pto_obstacle **list);
/* Is there one? */
bool pto_added_has_obstacle (struct pto_engine *engine, const struct pto_slot *slot);
/* The first in words, "task 3 (add), added at x.c:12, is not published"; or nothing. */
void pto_added_describe_obstacle (struct pto_engine *engine, const struct pto_slot *slot,
                                  char *text, size_t size);
/* Why a wait led to nothing: "task 3 (add), added at x.c:12, is not published", or nothing. */
void pto_added_describe (const struct pto_engine *engine, char *text, size_t size);
/* Nobody may wait for all tasks while some can not run. true: so it is, and the run has failed. */
bool pto_added_refuse_wait (struct pto_engine *engine);
