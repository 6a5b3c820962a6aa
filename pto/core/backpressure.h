/* backpressure.h: is there room for one more task, and who makes some?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "engine.h"

/* What one submit takes. */
struct pto_needs
{
  uint64_t heap; /* bytes, aligned outputs and their guards */
  uint64_t storage;
  uint32_t n_tensors;
  uint32_t n_outputs; /* that have no memory yet */
  uint32_t n_guards;  /* places for them */
  uint32_t n_updates; /* that commute */
  uint64_t claims;    /* bytes before the payload, for these */
  uint32_t kinds;     /* PTO_PARAM_* of the tensors that have, in one word; 0: none is written */
  uint32_t n_fences;  /* engine->fences */
  uint32_t n_edges;
  uint32_t ring;
};

/* Of the map. */
static inline uint32_t
pto_needs_nodes (const struct pto_needs *needs)
{
  return needs->n_tensors * PTO_MAP_INSERT_NODES + needs->n_updates * PTO_MAP_GROUP_NODES;
}

/* What it has got of it. */
struct pto_room
{
  uint8_t *storage;
  uint8_t *heap;
};

/* More than any heap has; as many of these as a task has outputs are less than 2^64. */
#define PTO_OUTPUT_MAX (UINT64_C (1) << 52)
_Static_assert(PTO_ARGS_MAX <= 1024, "their sum");
/* Bytes of an output of that size in a heap, and of a task's arguments. */
static inline uint64_t
pto_engine_output_bytes (const struct pto_engine *engine, uint64_t size)
{
  uint64_t bytes = size < PTO_OUTPUT_MAX ? size : PTO_OUTPUT_MAX;

  return (bytes + engine->config.guard_bytes + PTO_HEAP_ALIGN - 1)
         & ~(uint64_t) (PTO_HEAP_ALIGN - 1);
}
static inline uint64_t
pto_engine_storage_bytes (uint32_t n_args, uint32_t n_tensors, uint32_t n_guards, uint32_t n_fences,
                          uint32_t extra_bytes)
{
  return (sizeof (struct pto_payload) + n_args * sizeof (int64_t) + n_tensors * sizeof (TensorData)
          + n_guards * sizeof (uint64_t) + n_fences * sizeof (struct pto_fence) + extra_bytes
          + PTO_STORAGE_ALIGN - 1)
         & ~(uint64_t) (PTO_STORAGE_ALIGN - 1);
}

/* Takes slot, output memory, argument storage and edges together, or waits, or fails the run. Gives
 * the slot. */
struct pto_slot *pto_engine_make_room (struct pto_engine *engine, uint32_t ring_index,
                                       const struct pto_needs *needs, uint64_t *heap_offset,
                                       uint64_t *storage_offset);
/* Only for one edge more. false: the run has failed. */
bool pto_engine_make_edge_room (struct pto_engine *engine, uint32_t ring_index);
