/* ai-core.h: a simulated AI core: its loop, and how a scheduler reaches it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source: seed 000 section 9, seed 003 "Handshake Protocol".
 */
#pragma once

#include "hardware.h"

void pto_core_init (struct pto_core *core, struct pto_chip *chip, struct pto_engine *engine,
                    enum pto_core_type type, uint32_t cluster, uint32_t number,
                    uint32_t number_of_type);
/* Keeps a note there from now on; NULL: none. */
void pto_core_set_note (struct pto_core *core, struct pto_core_note *note);
/* Ends a guarded call of its kernel, as pto_guard_interrupt(); with force also inside the
 * allocator. Any thread, while the core is there. */
void pto_core_interrupt (struct pto_core *core, uint64_t call, bool force);
/* Was the last interrupt of that call put off? Any thread. */
bool pto_core_is_put_off (struct pto_core *core, uint64_t call);
/* The actor. */
void pto_core_main (void *core);
