/* early-release.h: which tasks are let go before their scope ends?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * With engine->config.build_first the submitter does not publish, the end of the scope does: it
 * cannot be blamed for a wait that only that end could end. So a wait lets go of what is in its
 * way. Published tasks go first. A task that is not published goes with the producers that are
 * named by then: naming another one later fails the run. what: the room that is short. The
 * submitter.
 */
#pragma once

#include "engine.h"

/* From here on the ring's oldest task can be retired, as far as tasks that were added matter. */
void pto_early_make_way (struct pto_engine *engine, uint32_t ring_index, enum pto_status what);
/* For a wait whose end is not the end of one task. false: there is none to let go. */
bool pto_early_let_one_go (struct pto_engine *engine, enum pto_status what);
