/* core.h: a simulated AI core: its registers, its loop, and how a scheduler reaches it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source: seed 000 section 9, seed 003 "Handshake Protocol".
 */
#pragma once

#include "../pto/api/pto_block.h"
#include "../pto/core/scheduler.h"
#include "chip.h"

/* Arguments of one kernel (seed 000 section 9), and the words before them. */
#define PTO_CHIP_ARGS_MAX PTO_MAX_KERNEL_ARGS
#define PTO_CHIP_ARGS_HEAD 2u

/* Values of DATA_MAIN_BASE beside sequence numbers. */
#define PTO_REG_IDLE 0u
#define PTO_REG_EXIT UINT32_MAX
/* COND: bit 31 = state, bits 30..0 = sequence number. */
#define PTO_COND_FIN 0x80000000u
#define PTO_COND_SEQUENCE 0x7fffffffu

struct pto_core_registers
{
  /* Scheduler -> core: a sequence number of this core (task ids of different rings would collide),
   * or EXIT. Release pairs with the core's acquire: the payload is written before. */
  alignas (64) struct pto_word data_main_base;
  /* Core -> scheduler: ACK, then FIN. FIN's release pairs with the acquire in the endpoint's poll.
   */
  alignas (64) _Atomic uint32_t cond;
};

/* What a core reads when DATA_MAIN_BASE changes. W: scheduler, before the register; R: core. */
struct pto_dispatch_payload
{
  pto_task_id task_id;
  uint32_t kernel_id;
  uint32_t num_args;
  void (*function_bin_addr) (int64_t *args);
  int64_t *args;
  const struct pto_kernel *kernel;
  const struct pto_payload *task;
};

struct pto_handshake
{
  struct pto_word aicpu_ready; /* scheduler -> core */
  struct pto_word aicore_done; /* core -> scheduler */
  struct pto_dispatch_payload *task;
};

struct pto_pipes; /* interconnect.h */

/* What args[-2] of a kernel points to. */
struct pto_services
{
  PTO2KernelServices public; /* first */
  struct pto_chip *chip;
  struct pto_core *core; /* NULL: it is not known whose arguments they are */
};

struct pto_core
{
  struct pto_endpoint endpoint; /* first: the scheduler's view */
  struct pto_chip *chip;
  struct pto_engine *engine;
  enum pto_core_type type;
  uint32_t cluster;
  char name[24];     /* AIC3, AIV17 */
  uint32_t sequence; /* W, R: scheduler */
  struct pto_handshake handshake;
  struct pto_dispatch_payload payload;
  struct pto_parts *parts;    /* of its task; NULL: it has none. W: scheduler, as the payload */
  struct pto_party *party;    /* the same */
  struct pto_outcome outcome; /* W: core before FIN; R: scheduler after */
  struct pto_core_registers registers;

  /* --- the core's own --- */
  alignas (64) struct pto_trace_buffer *trace;
  bool timed;
  uint64_t dispatched;  /* pto_engine_stamp() of the dispatch; W: scheduler, before the register */
  uint64_t busy;        /* as pto_engine_stamp() counts; without what follows */
  uint64_t waited;      /* for other kernels */
  uint64_t busy_before; /* in runs before, in ns. W: who has run, under machine.door.lock */
  /* NULL: accesses are not checked; else it is timed. W: between runs, R: with a task. */
  struct pto_check *check;
  struct pto_check_context *context; /* of the kernel that runs */
  struct pto_core_note *note;        /* NULL: nobody asks. W: not while running */
  /* What is looked at behind the task that runs: ends of its outputs, other memory; together. */
  uint32_t n_watched;
  uint32_t n_guards;
  struct pto_guard guard;
  uint64_t guards[PTO_CHIP_ARGS_MAX];
  struct pto_fence fences[PTO_CHIP_ARGS_MAX];
  /* Arguments of a part of a task: a kernel's own copy. W, R: the core. */
  uint64_t block;
  int64_t own[PTO_CHIP_ARGS_HEAD + PTO_CHIP_ARGS_MAX + 1]; /* the last one: a condition */
  /* --- what its kernel waits for (interconnect.h) --- */
  struct pto_services services;
  struct pto_pipes *pipes;
  uint64_t relaxed;       /* guard.call of the last call that came to pto_relax(); W, R: the core */
  struct pto_word wake;   /* W: whoever changes what is waited for */
  _Atomic uint32_t waits; /* W: the core, under its cluster's lock; R: anybody, a hint without it */
};

void pto_core_init (struct pto_core *core, struct pto_chip *chip, struct pto_engine *engine,
                    enum pto_core_type type, uint32_t cluster, uint32_t number,
                    uint32_t number_of_type);
/* Keeps a note there from now on; NULL: none. */
void pto_core_set_note (struct pto_core *core, struct pto_core_note *note);
/* "task 3 of ring 0 (add) on core AIV1", perhaps with its block: the one that it runs, or has run
 * last. The core, or who knows that it runs one. */
void pto_core_describe_task (const struct pto_core *core, char *text, size_t size);
/* The actor. */
void pto_core_main (void *core);
