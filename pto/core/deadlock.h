/* deadlock.h: how is it told that a run can not go on, and what would have been enough?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

/* The submitter needs room in a ring, and nobody will ever make any. Latches the error. */
void pto_engine_prove_deadlock (struct pto_engine *engine, enum pto_status what,
                                uint32_t ring_index, uint32_t need, uint32_t used);
/* The submitter waits for room in a ring whose tasks may end, but none does. Latches the error. */
void pto_engine_report_stuck (struct pto_engine *engine, enum pto_status what, uint32_t ring_index);
/* The submitter waits for room (engine->blocked), and it is time that somebody hears of it. */
void pto_engine_tell_blocked (struct pto_engine *engine);
/* Replaces its text by the final one, once the orchestration has been counted to its end. */
void pto_engine_report_deadlock (struct pto_engine *engine);
/* What is held now may be more than ever before. */
void pto_engine_note_peaks (struct pto_engine *engine);
