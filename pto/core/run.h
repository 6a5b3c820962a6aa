/* run.h: how does a run begin and end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "scope.h"
#include "submit.h"

/* A run begins: rings and map are empty, the outermost scope is open. */
void pto_engine_begin (struct pto_engine *engine);
/* Ends open scopes, waits until every task is done, gives the first error (also copied into
 * report). When not every task could be ended the engine is lost: pto_engine_is_lost(). */
enum pto_status pto_engine_end (struct pto_engine *engine, struct pto_report *report);
/* Something was done behind it that is of the run: that ends now. */
void pto_engine_mark_end (struct pto_engine *engine);
