/* level-private.h: what do the files of a level share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * level.c puts it together and runs it, level-submit.c takes tasks, level-graph.c whole graphs,
 * level-control.c asks children for other things. Three threads may be at work: the guest (who
 * runs), the keeper, and any that registers or cancels. Locks, outer first: guest_lock (who may be
 * the executor's guest), the executor's token, the family's. Nobody waits for the token with the
 * family's lock held.
 */
#pragma once

#include "core/graph-capture.h"
#include "core/run-machine.h"
#include "level-thread.h"
#include "level.h"
#include "pool-private.h"

#include <pthread.h>

/* Where somebody waits who can be cancelled but not woken for that. */
#define PTO_LEVEL_POLL_NS UINT64_C (10000000)

struct pto_level
{
  struct pto_level_config config;
  struct pto_params params;
  uint32_t generation; /* of the process that it belongs to */
  const char *queue_names[PTO_QUEUES_MAX];
  struct pto_machine machine;
  struct pto_scheduler scheduler;
  struct pto_family family;
  struct pto_keeper keeper;
  struct pto_pool *pool;
  struct pto_control *closer; /* CLOSE to all: the end needs no memory any more */
  uint32_t n_recorded;        /* runs */
  bool has_scheduler;
  bool has_arena;
  bool runs; /* the actors are there */

  int event; /* of the bell */
  struct pto_shared_map *map;
  struct pto_writes *writes; /* NULL: nobody keeps copies */
  uint64_t arena;
  uint64_t arena_size;
  pthread_mutex_t guest_lock;

  /* --- of the current run; the guest's --- */
  bool (*cancelled) (void *data);
  void *cancelled_data;
  /* pthread_self() of who runs, or 0. W: guest; R: who cancels or registers. */
  _Atomic uint64_t guest;
  /* What is being submitted; NULL: nothing, or a task that only orders. */
  const struct pto_level_task *submitting;
  struct pto_capture capture; /* of a run that is captured */
};

/* The run has failed: what children still do is not wanted. level.c */
void pto_level_give_up_run (struct pto_level *level);
/* What a task does with a tensor, as bits of enum pto_wire_access; stays: how it stays where it is.
 * level-submit.c */
uint8_t pto_level_access (PTOParamType type, uint8_t stays);
/* Do children see that memory, which a graph is launched with as that argument? level-submit.c */
enum pto_status pto_level_check_memory (const struct pto_level *level, uint32_t argument,
                                        uint64_t address, uint64_t bytes, bool write,
                                        struct pto_report *report);
