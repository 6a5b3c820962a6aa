/* reduce.h: how do tasks that reduce into the same memory run at the same time?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Those that reduce into one tensor in one way are a set. Each updates a copy of the set's, which a
 * task of its own has filled with the value to begin with; a copy is updated by one at a time, in
 * any order (commutative.h). The first access of another kind that overlaps the tensor closes the
 * set, and so does the end of the scope in which it was opened: tasks of the kernel that was named
 * combine the copies in pairs, and the last of them combines what has come of it with the tensor,
 * whose contents take part. All of these are tasks as any others: what they wait for is found by
 * their accesses, and nobody waits for the tasks of a set but who combines.
 *
 * A set has at most as many copies as there are places for its tasks, and no more than a part of
 * its ring has room for. Copies belong to its scope, and the next set of that scope may have them
 * when the ring is half full. Submitter thread.
 */
#pragma once

#include "engine.h"

/* Behind the reset of everything else, and when all scopes are closed. */
void pto_reduce_begin (struct pto_engine *engine);
void pto_reduce_end (struct pto_engine *engine);
