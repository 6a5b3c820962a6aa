/* submit.h: what happens to one task between the orchestration's call and the schedulers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "backpressure.h"
#include "core-placement.h"
#include "submission.h"

/* Gives the task's name; PTO_TASK_NONE: the run has failed, now or before, and there is no task. */
pto_task_id pto_engine_submit (struct pto_engine *engine, const struct pto_submit *submit);
/* The same of one that says no more than that; the kernel is a program's. Less is looked at. */
pto_task_id pto_engine_submit_plain (struct pto_engine *engine, uint32_t kernel, uint32_t queue,
                                     PTOParam *params, uint32_t n_params);

/* Fails the run: the argument is why. That of a member of a group is named as the member has it.
 * Returns false. */
bool pto_engine_refuse_argument (struct pto_engine *engine, const struct pto_submit *submit,
                                 uint32_t index, const char *why);

/* --- for who fills tasks himself: the two ends of a submit --- */

/* Before each: what every some submits is done. false: the run is not wanted any more. */
bool pto_engine_may_submit (struct pto_engine *engine);
/* A slot with its memory and edges, as nobody has seen it yet, to be filled. n_wait: producers that
 * it waits for; engine->poisoned_by is one that has failed. NULL: the run has failed, or, unless it
 * is to wait, there is no room just now. */
struct pto_slot *pto_engine_take_slot (struct pto_engine *engine, const struct pto_needs *needs,
                                       uint32_t kernel, uint32_t queue, uint32_t priority,
                                       uint32_t n_wait, bool wait, struct pto_room *room);
/* What a task comes after, none of them twice. */
struct pto_links
{
  const struct pto_dep *deps;
  uint32_t n_deps;
  /* Their positions count from these, as those of a graph do; NULL: from 0. */
  const uint32_t *base;
  /* From these positions on tasks are linked and not let go; NULL: none are. */
  const uint32_t *held;
  /* Counted: those of the held ones that it waits for, and, where there is a base, those whose
   * memory it keeps and that it does not wait for. */
  uint32_t n_held;
  uint32_t n_kept;
};
/* It is filled: wires it to them. direct: as engine->direct was before the slot was taken; then
 * needs->n_edges is of those that retain. Gives how many of those that it waits for are done. */
uint32_t pto_engine_link_slot (struct pto_engine *engine, struct pto_slot *slot,
                               const struct pto_needs *needs, uint32_t n_wait, bool direct,
                               struct pto_links *links);
/* The same where there is a base, and nothing is recorded, and no task is run as it is submitted.
 */
uint32_t pto_engine_link_planned (struct pto_engine *engine, struct pto_slot *slot,
                                  const struct pto_needs *needs, struct pto_links *links);
/* It has so many blocks, of the members of that wish, or, NULL, of its kernel. Behind the filling,
 * with room for them behind so many bytes that the submit gave besides: pto_parts_bytes(). */
void pto_engine_add_parts (struct pto_engine *engine, struct pto_slot *slot, uint32_t extra_bytes,
                           const struct pto_wish *wish, uint32_t n_blocks);
/* It runs when its producers are done, of which so many were when it was linked. queue: as a submit
 * names it. */
void pto_engine_let_go (struct pto_engine *engine, struct pto_slot *slot, uint32_t queue,
                        uint32_t n_wait, uint32_t done, bool direct);
/* One that has not been let go comes after one more task of this run, which has not retired; there
 * is room for an edge of its ring. false: that task is done. */
bool pto_engine_link_more (struct pto_engine *engine, struct pto_slot *slot, pto_task_id producer);
/* Is there a fence behind that memory of the caller, and not among the n in engine->fences? Adds it
 * to them, and gives 1; or 0. */
uint32_t pto_engine_find_fence (struct pto_engine *engine, uint64_t address, uint32_t n);
/* Lists in engine->fences the guards around memory that the task is given. Memory of the caller is
 * listed if it has any; memory of the runtime if its guard may be written later
 * (PTO_FENCE_PERHAPS), for other guards stand in the payload. Returns how many they are. */
uint32_t pto_engine_note_fences (struct pto_engine *engine, const PTOParam *params,
                                 uint32_t n_params);

/* Where the tensor is now: its address is filled in, 0 if it is still to be made. Gives why it is
 * nowhere, or NULL. */
const char *pto_engine_locate (Tensor *tensor);

/* Waits until a task of this run is done, and, where not all accesses are known, all those before
 * it. false: it has failed, or the run has. */
bool pto_engine_await (struct pto_engine *engine, pto_task_id id);
