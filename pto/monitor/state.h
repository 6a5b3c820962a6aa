/* state.h: what do the workers of a process do, and what do they wait for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. An answer is made once, as JSON (doc/asking.md); text and metrics are made of
 * that, so that it does not matter in which process it was made.
 */
#pragma once

#include "common/members.h"
#include "machine/machine.h"

G_BEGIN_DECLS

/* Of this process: of the machine that is named, with those in it that are below it; NULL: of all.
 * What other processes below would say is not in it: their rows have a "pid". Any thread. */
JsonNode *pto_state_build (PtoMachine *only);

/* Calls it for the object of each worker of an answer, those that are below others, too. */
typedef void (*PtoStateVisit) (JsonObject *worker, gpointer data);
void pto_state_visit_workers (JsonObject *state, PtoStateVisit visit, gpointer data);

/* state-text.c, state-openmetrics.c */
char *pto_state_to_text (JsonObject *state);
char *pto_state_to_metrics (JsonObject *state);

G_END_DECLS
