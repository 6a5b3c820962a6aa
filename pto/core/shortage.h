/* shortage.h: what does a submit lack that waits for room?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdint.h>

struct pto_shortage
{
  char what[160]; /* "[TaskRing] BLOCKED (Flow Control): ring=0, current=15, last_alive=0" */
  char knob[160]; /* "set task-window to 32 or more" */
  uint64_t used;
  uint64_t all;
};
