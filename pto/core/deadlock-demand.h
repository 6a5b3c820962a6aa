/* deadlock-demand.h: what would a run have needed that cannot go on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Submits that only count, after a deadlock, add to engine->demand. The submitter.
 */
#pragma once

#include "engine.h"

/* What is held now may be more than ever before. */
void pto_engine_note_peaks (struct pto_engine *engine);
/* The run cannot go on: what scopes that have ended hold may stay until the tasks that were added
 * are published. */
void pto_engine_count_late (struct pto_engine *engine);
/* The orchestration, whose submits are only counted by now, adds a task, or publishes one. */
void pto_engine_count_add (struct pto_engine *engine);
void pto_engine_count_publish (struct pto_engine *engine);
/* No open scope holds anything in that ring any more. */
void pto_engine_count_scope_end (struct pto_engine *engine, uint32_t ring);
