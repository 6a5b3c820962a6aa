/* submit.h: what happens to one task between the orchestration's call and the schedulers?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "place.h"
#include "room.h"

/* One submit. Parameters as an orchestration gives them. Pointers come first: most fields of most
 * submits are cleared in one go, and no load of one waits for two of the stores that do so. */
struct pto_submit
{
  PTOParam *params;  /* addresses are filled in */
  const void *extra; /* what the endpoint wants to know besides; copied, see pto_payload */
  /* Tasks of this run that it comes after, whatever their tensors are; it does not keep their
   * memory. Those that are done are no trouble, those that have failed poison it. */
  const pto_task_id *producers;
  /* Its members; NULL: one, of that kernel, on any place of that queue. Otherwise neither of the
   * two is read, unless the task has no kernel: then it has no members. */
  const struct pto_wish *wish;
  uint32_t kernel; /* PTO_KERNEL_NONE: orders only */
  uint32_t queue;
  uint32_t n_params;
  uint32_t extra_bytes;
  uint32_t n_producers;
  /* Its last parameter is a tensor, read only: the kernel runs where its first element is not 0,
   * and gets it behind the others. Whoever comes after the task does not wait longer for it. Not
   * with a party. */
  bool conditional;
  /* 0 ... PTO_MAX_PRIORITY: of the tasks that are ready for a kind of places the highest go first.
   */
  uint32_t priority;
  /* More than 1: so many parts of one task, each of which runs the kernel, or all members, with the
   * same arguments and knows its number. They run in any order, as places become idle. */
  uint32_t n_blocks;
  uint32_t parts_bytes; /* 0; the submit's own */
};

/* Gives the task's name; PTO_TASK_NONE: the run has failed, now or before, and there is no task. */
pto_task_id pto_engine_submit (struct pto_engine *engine, const struct pto_submit *submit);
/* The same of one that says no more than that; the kernel is a program's. Less is looked at. */
pto_task_id pto_engine_submit_plain (struct pto_engine *engine, uint32_t kernel, uint32_t queue,
                                     PTOParam *params, uint32_t n_params);

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
/* It has parts, which are there, in its payload: of the members of that wish, or, NULL, of its
 * kernel. Behind the filling. */
void pto_engine_set_parts (struct pto_engine *engine, struct pto_slot *slot,
                           struct pto_parts *parts, const struct pto_wish *wish);
/* It runs when its producers are done, of which so many were when it was linked. */
void pto_engine_let_go (struct pto_engine *engine, struct pto_slot *slot, uint32_t n_wait,
                        uint32_t done, bool direct);
/* One that has not been let go comes after one more task of this run, which has not retired; there
 * is room for an edge of its ring. false: that task is done. */
bool pto_engine_link_more (struct pto_engine *engine, struct pto_slot *slot, pto_task_id producer);
/* Is there a fence behind that memory of the caller, and not among the n in engine->fences? Adds it
 * to them, and gives 1; or 0. */
uint32_t pto_engine_find_fence (struct pto_engine *engine, uint64_t address, uint32_t n);
/* Lists in engine->fences what the core looks at behind memory that the task writes and that was
 * there before: of the caller where there is a fence behind it, of the runtime where whoever writes
 * comes after the task that made it, which has written its guard. Gives how many they are. */
uint32_t pto_engine_note_fences (struct pto_engine *engine, const PTOParam *params,
                                 uint32_t n_params);

/* Where the tensor is now: its address is filled in, 0 if it is still to be made. Gives why it is
 * nowhere, or NULL. */
const char *pto_engine_locate (const struct pto_engine *engine, Tensor *tensor);

/* Waits until a task of this run is done, and, where not all accesses are known, all those before
 * it. false: it has failed, or the run has. */
bool pto_engine_await (struct pto_engine *engine, pto_task_id id);
