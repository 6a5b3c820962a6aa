/* engine-private.h: what the files of the engine share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

#define STORAGE_ALIGN 64u /* of a task's arguments */

#define PTO_LIKELY(x) __builtin_expect (!!(x), 1)
#define PTO_UNLIKELY(x) __builtin_expect (!!(x), 0)

static inline uint64_t
align_up (uint64_t value, uint64_t unit)
{
  return (value + unit - 1) / unit * unit;
}

static inline uint32_t
power_of_two_at_least (uint64_t value)
{
  uint32_t power = 1;

  while (power < value && power < (1u << 31))
    power *= 2;
  return power;
}

/* For messages; never NULL. */
static inline const char *
pto_engine_kernel_name (const struct pto_engine *engine, uint32_t kernel)
{
  if (kernel == PTO_KERNEL_NONE)
    return "no kernel";
  return engine->config.kernel_name (engine->config.kernel_name_data, kernel);
}

/* What one submit takes. */
struct pto_needs
{
  uint64_t heap; /* bytes, aligned outputs and their guards */
  uint64_t storage;
  uint32_t n_tensors;
  uint32_t n_outputs; /* that have no memory yet */
  uint32_t kinds;     /* PTO_PARAM_* of the tensors that have, in one word; 0: none is written */
  uint32_t n_fences;  /* engine->fences */
  uint32_t n_edges;
};

static inline uint32_t
pto_engine_ring_of_depth (uint32_t depth)
{
  return depth < PTO_RINGS - 1 ? depth : PTO_RINGS - 1;
}

/* All of these are the submitter's. */

/* Takes slot, output memory, argument storage and edges together, or waits, or fails the run. Gives
 * the slot. */
struct pto_slot *pto_engine_make_room (struct pto_engine *engine, uint32_t ring_index,
                                       const struct pto_needs *needs, uint64_t *heap_offset,
                                       uint64_t *storage_offset);
/* Waits until a slot is done or, without one, until everything is. false: the executor has proved
 * that this will not happen, and the run has failed; or patience is at its end, which is the
 * caller's to report. */
bool pto_engine_wait_for (struct pto_engine *engine, struct pto_slot *slot);
/* Asks whether the run is still wanted; true: it is not, and has failed. */
bool pto_engine_ask_cancelled (struct pto_engine *engine);
/* Completed, and its references given back. */
bool pto_engine_slot_is_done (struct pto_slot *slot, uint32_t taken);
/* Tasks of this run that did not run to their end. */
uint64_t pto_engine_failures (const struct pto_engine *engine);
void pto_engine_retire (struct pto_engine *engine, uint32_t ring);
void pto_engine_retire_all (struct pto_engine *engine);
/* Runs some ready tasks right here. false: every scheduler is run by somebody else. */
bool pto_engine_carry (struct pto_engine *engine);
/* For direct_limit; 0: not known yet. */
uint64_t pto_engine_direct_limit (void);
/* Gives a claimed scheduler back, if there is one. */
void pto_engine_leave_direct (struct pto_engine *engine);
/* Tasks in the ready queues, about. */
uint64_t pto_engine_backlog (const struct pto_engine *engine);
/* What is held now may be more than ever before. */
void pto_engine_note_peaks (struct pto_engine *engine);

/* The submitter needs room in a ring, and nobody will ever make any. Latches the error. */
void pto_engine_prove_deadlock (struct pto_engine *engine, enum pto_status what,
                                uint32_t ring_index, uint32_t need, uint32_t used);
/* The submitter waits for room in a ring whose tasks may end, but none does. Latches the error. */
void pto_engine_report_stuck (struct pto_engine *engine, enum pto_status what, uint32_t ring_index);
/* Replaces its text by the final one, once the orchestration has been counted to its end. */
void pto_engine_report_deadlock (struct pto_engine *engine);
