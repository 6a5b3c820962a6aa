/* retire.h: whose slot and memory can be had again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

void pto_engine_retire (struct pto_engine *engine, uint32_t ring);
void pto_engine_retire_all (struct pto_engine *engine);
/* Tasks only go when they are retired: looked at before each time, the peak is exact. */
void pto_engine_note_live (struct pto_engine *engine);
