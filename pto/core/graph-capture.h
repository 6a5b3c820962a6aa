/* graph-capture.h: how does what an orchestration submits become a graph?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The run goes on as any other, but no task gets a slot: its submit looks up what it depends on,
 * with a TensorMap in which nothing is ever retired, and writes it down. Memory of the runtime has
 * addresses where nothing can be read or written. Submitter thread.
 */
#pragma once

#include "engine.h"
#include "graph-plan.h"

struct pto_submit; /* submission.h */

struct pto_capture
{
  struct pto_plan *graph; /* its params are there before the run */
  /* What a graph can not keep: fails the run, with the place of the call in the program. */
  void (*refuse) (void *data, const char *why);
  void *data;

  /* Capture's own. */
  uint8_t *region; /* what stands for memory of the runtime */
  uint64_t used;
  struct pto_map *map;        /* the engine's */
  uint32_t first[PTO_RINGS];  /* heads by then */
  uint32_t *tasks[PTO_RINGS]; /* of the graph, by position in the ring */
  uint32_t n_in_ring[PTO_RINGS];
  uint32_t max_in_ring[PTO_RINGS];
  uint64_t *addresses; /* of the graph's memory */
  uint32_t n_addresses;
  uint32_t max_addresses;
};

/* Behind pto_engine_begin(); from here on everything is written down. false: the run has failed. */
bool pto_capture_begin (struct pto_engine *engine, struct pto_capture *capture);
/* All scopes are closed. The engine is as if nothing was submitted. */
void pto_capture_end (struct pto_engine *engine);
/* Is that an address of memory of the runtime that is not there? */
bool pto_capture_has (const struct pto_capture *capture, uint64_t address);

/* --- for submits --- */

/* Where that much memory would be. */
uint64_t pto_capture_reserve (struct pto_capture *capture, uint64_t bytes);
/* A task whose tensors have their addresses, new ones in so many bytes from heap on. What it
 * depends on is in engine->deps. false: the run has failed. */
bool pto_capture_task (struct pto_engine *engine, const struct pto_submit *submit, uint64_t heap,
                       uint64_t bytes);
/* One of those comes after another, too. */
void pto_capture_order (const struct pto_capture *capture, pto_task_id producer,
                        pto_task_id consumer);
