/* manual-build.h: which tasks are there that may not run yet, and what do they come after?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A graph that is built by hand while the machine runs (seed 000 section 1.2). A task that is added
 * is submitted like any other, without looking anything up, and keeps the submit's own count of
 * fan-in: nobody can run it, so that the submitter may name more tasks that it comes after. When it
 * is published the count goes, which is what lets every other submit go.
 *
 * A task comes after such as were there before it only, so that no circle can be closed. All of a
 * scope's tasks are published when it ends.
 *
 * Owner: the submitter. manual-tasks.h: the list of them.
 */
#pragma once

#include "engine.h"

/* consumer, which is not published, comes after producer. false: producer is done, so there is
 * nothing to wait for; or the run has failed. */
bool pto_build_add_successor (struct pto_engine *engine, pto_task_id producer,
                              pto_task_id consumer);
/* Its producers are named. It runs when they are done; with engine->config.build_first not before
 * its scope ends, or the tasks after it leave no room. false: the run has failed. */
bool pto_build_publish (struct pto_engine *engine, pto_task_id task);
/* A run begins. */
void pto_build_begin (struct pto_engine *engine);
/* A scope ends whose tasks in that ring begin at that position. */
void pto_build_end_scope (struct pto_engine *engine, uint32_t ring, uint32_t first);
