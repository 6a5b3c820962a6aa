/* forced-order-text.h: what does a text say of the order in which tasks run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Items apart by commas:
 *
 *   in-order           tasks run one after the other, in the order of their submits; alone
 *   1:3-after-1:7      but task 3 of ring 1 is held back until task 7 of ring 1 has run
 *   1:3-last           but it is held back as long as anything else can run
 *   without-war        dependencies that are WAR and nothing else are not waited for; also raw, waw
 *   random-17          but each task has a priority that the seed 17 draws; not beside delays
 *
 * forced-order.h says what becomes of it.
 */
#pragma once

#include "status.h"
#include "task.h"

struct pto_delay
{
  pto_task_id task;
  pto_task_id until; /* PTO_TASK_NONE: as long as anything else can run */
};

struct pto_schedule
{
  struct pto_delay *delays; /* ascending by task; of one task several, all of which hold */
  uint32_t n_delays;
  uint32_t without; /* PTO_HAZARD_* */
  bool random;
  uint64_t seed;
};

/* Reads a text, which is not empty. as: what to call it in a report, which quotes the item that is
 * wrong; nothing is to be cleared then. Any thread. */
enum pto_status pto_schedule_parse (struct pto_schedule *schedule, const char *text, const char *as,
                                    struct pto_report *report);
/* The hazard, PTO_HAZARD_*, that so many letters name; 0: none. */
uint32_t pto_hazard_named (const char *text, size_t length);
void pto_schedule_clear (struct pto_schedule *schedule);
/* The delays of one task; gives how many. */
uint32_t pto_schedule_find (const struct pto_schedule *schedule, pto_task_id task,
                            const struct pto_delay **delays);
