/* chip-inspect.h: what does a chip do, core by core, as somebody sees it who has no part in its
 * run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto/core/inspect.h"
#include "chip.h"

#define PTO_LOOK_TENSORS 8u

struct pto_look_tensor
{
  uint32_t argument;
  uint32_t ndims;
  DataType dtype;
  uint64_t shapes[PTO2_TENSOR_MAX_DIMS];
  uint64_t address; /* of its first element */
};

enum pto_core_doing
{
  PTO_CORE_IDLE,
  PTO_CORE_CHANGING, /* from one task to the next, whenever it was looked at */
  PTO_CORE_RUNS,
  PTO_CORE_POPS,   /* waits in TPOP() */
  PTO_CORE_PUSHES, /* waits in TPUSH() */
  PTO_CORE_MEETS   /* waits in pto_sync_all() */
};

/* One core. From task on: unless it is idle, or changing. */
struct pto_core_look
{
  char name[24];
  enum pto_core_type type;
  uint32_t cluster;
  uint32_t scheduler;
  uint64_t busy_ns; /* in all runs; 0 where kernels are not timed */
  enum pto_core_doing doing;
  uint32_t pipe;      /* POPS, PUSHES */
  uint32_t n_met;     /* MEETS: so many are there ... */
  uint32_t n_members; /* ... of these */
  struct pto_look_task task;
  uint32_t block;
  uint32_t n_blocks;
  uint64_t for_ns; /* since it began, at least; 0: less than a tick of the watcher */
  uint32_t n_args;
  uint32_t n_all_tensors; /* of them, of which these are told of: */
  uint32_t n_tensors;
  struct pto_look_tensor tensors[PTO_LOOK_TENSORS];
};

struct pto_scheduler_look
{
  char name[24];
  uint32_t n_cores;
  uint32_t n_busy;    /* of them */
  uint64_t completed; /* tasks, in this run */
  bool sleeps;        /* it has found nothing that its idle cores could run, and waits for a bell */
  bool is_core;       /* its thread is in the kernel of one of its cores */
};

struct pto_chip_look
{
  struct pto_look run;
  bool virtual_clock;
  bool timed; /* kernels are, so that busy times are known */
  uint32_t n_clusters;
  uint32_t n_cores;
  struct pto_core_look *cores;
  uint32_t n_schedulers;
  struct pto_scheduler_look *schedulers;
};

/* NULL: it is being made or ended just now, or there is no memory. To be freed with the function
 * below. Any thread that is none of the chip's, while nobody frees it. */
struct pto_chip_look *pto_chip_look (struct pto_chip *chip);
void pto_chip_look_free (struct pto_chip_look *look);
/* How far its run is. is_inside: whoever asks has a part in that. false: there is none. */
bool pto_chip_count (struct pto_chip *chip, bool is_inside, struct pto_look_counts *counts);
/* "AIC", "AIV": what a queue of ready tasks is for. */
const char *pto_chip_queue_name (uint32_t queue);
