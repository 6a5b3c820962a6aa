/* submission.h: what does a submit say?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Values, from the edge where a program submits to the slot of the task, to a graph that is
 * captured or built by hand, and to what is sent to children.
 */
#pragma once

#include "api/pto_orchestration_api.h"
#include "pack.h"
#include "placement-request.h"
#include "task.h"

/* What of a submit goes along wherever its task goes: numbers that need no other memory. All who
 * hand a task on hand them on whole, so that only those who set one and those who read one know it.
 */
struct pto_terms
{
  /* 0 ... PTO_MAX_PRIORITY: of the tasks that are ready for a kind of places the highest go first.
   */
  uint32_t priority;
};

/* As a program on a chip says them. */
static inline struct pto_terms
pto_terms_of (const PTO2Submit *submit)
{
  return (struct pto_terms){ .priority = (uint32_t) submit->priority };
}

static inline void
pto_terms_put (const struct pto_terms *terms, PTO2Submit *submit)
{
  submit->priority = (int32_t) terms->priority;
}

static inline bool
pto_terms_are_none (const struct pto_terms *terms)
{
  return terms->priority == 0;
}

static inline void
pto_pack_terms (struct pto_pack *pack, struct pto_terms *terms)
{
  PTO_PACK (pack, terms->priority);
}

/* One submit. Parameters as an orchestration gives them. Pointers come first: most fields of most
 * submits are cleared in one go, and no load of one waits for two of the stores that do so. */
struct pto_submit
{
  PTOParam *params;  /* addresses are filled in */
  const void *extra; /* what the endpoint wants to know besides; copied, see pto_payload */
  /* Tasks of this run that it comes after, whatever their tensors are; it does not keep their
   * memory. Tasks that are done do not matter, tasks that have failed poison it. */
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
   * and gets it behind the others. Tasks after it do not wait longer for it. Not
   * with a party. */
  bool conditional;
  struct pto_terms terms;
  /* More than 1: so many parts of one task, each of which runs the kernel, or all members, with the
   * same arguments and knows its number. They run in any order, as places become idle. */
  uint32_t n_blocks;
  uint32_t parts_bytes; /* 0; the submit's own: what is behind the extra */
};
