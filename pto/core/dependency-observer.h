/* dependency-observer.h: who is told of each task, and of what it comes after, before it can run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Beside the record of a run, which says when things happened: a witness learns of all that
 * orders tasks, also of what had happened already and needs no edge any more. Everything here is
 * called by the submitter.
 */
#pragma once

#include "ring.h"

#include <stdint.h>

struct pto_witness
{
  void *data;
  /* The slot is filled, and nobody else has seen it. types: PTO_PARAM_* of each argument. linked:
   * of a graph that was built by hand, where what it comes after was named. */
  void (*task) (void *data, const struct pto_slot *slot, const uint8_t *types, bool linked);
  /* It comes after producer. consumer: PTO_TASK_NONE: the task that is told next. */
  void (*edge) (void *data, pto_task_id consumer, pto_task_id producer);
  /* The orchestration has waited: what is submitted from now on comes after that task;
   * PTO_TASK_NONE: after all that were submitted. */
  void (*wait) (void *data, pto_task_id task);
};
