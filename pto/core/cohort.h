/* cohort.h: which cohorts has the orchestration for itself?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A cohort is held by at most one owner. It is free again when its owner has let it go and the
 * tasks that were submitted for it are over. Tasks that are for no cohort run on its places as
 * ever. The submitter. Source: seed 000 section 16.
 */
#pragma once

#include "core-placement.h"

/* The next cohort that is free, from now on held by the innermost scope: waits until there is one.
 * PTO_COHORT_NONE: the run has failed, perhaps since there never will be. The place is for
 * messages, a string that stays. */
uint32_t pto_cohort_hold (struct pto_engine *engine, const char *file, int32_t line);
bool pto_cohort_is_held (const struct pto_engine *engine, uint32_t cohort);
/* It is held. */
void pto_cohort_let_go (struct pto_engine *engine, uint32_t cohort);
/* A scope of that depth ends. */
void pto_cohort_let_go_of_scope (struct pto_engine *engine, uint32_t depth);
/* A run begins. */
void pto_cohort_reset (struct pto_engine *engine);
