/* condition.h: is a task with a condition to run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

/* Returns true if the element that the task depends on is 0. The tensor that the element lies in is
 * the task's last argument, and the task that wrote it is done. failed: the element cannot be read,
 * and the run has failed. */
bool pto_condition_is_off (struct pto_engine *engine, const struct pto_slot *slot, bool *failed);
