/* hardware.h: what is a simulated chip made of: its cores, their registers, its scheduler threads?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For the files of sim/, which all read it; so it includes none of them that does something.
 * Source: seed 000 section 9, seed 003 "Handshake Protocol".
 */
#pragma once

#include "pto/api/pto_block.h"
#include "pto/core/run-machine.h"
#include "pto/core/scheduler.h"
#include "pto/exec/libc-hooks.h"
#include "pto/exec/own-thread.h"
#include "pto/exec/ticker.h"
#include "chip-platform.h"
#include "core-note.h"
#include "device-memory.h"
#include "kernel.h"

#include <pthread.h>

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

struct pto_pipes; /* kernel-sync.h */

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
  bool is_observed;                  /* accesses are checked, or the run has a schedule; likewise */
  struct pto_check_context *context; /* of the kernel that runs */
  struct pto_core_note *note;        /* NULL: nobody asks. W: not while running */
  const char *noted_file;            /* what note->file is a copy of; NULL: nothing of this run */
  /* Calls kernels apart; NULL: there was none yet. The chip's, which has it longer
   * than the core. W: the core; R: the watcher, seq_cst */
  _Atomic (struct pto_own_thread *) own_thread;
  bool is_apart; /* such a kernel runs */
  /* What is looked at behind the task that runs: ends of its outputs, other memory; together. */
  uint32_t n_watched;
  uint32_t n_guards;
  struct pto_guard guard;
  uint64_t guards[PTO_CHIP_ARGS_MAX + 1];             /* the last one: a condition */
  pto_fence_lanes guard_lanes[PTO_CHIP_ARGS_MAX + 1]; /* only of PTO_GUARD_DEFAULT bytes */
  struct pto_fence fences[PTO_CHIP_ARGS_MAX + 1];
  bool fences_are_made[PTO_CHIP_ARGS_MAX + 1]; /* by the runtime: not in the list */
  uint64_t fences_version;                     /* of it, when the others were in it */
  /* Arguments of a part of a task: a kernel's own copy. W, R: the core. */
  uint64_t block;
  int64_t own[PTO_CHIP_ARGS_HEAD + PTO_CHIP_ARGS_MAX + 1]; /* the last one: a condition */
  /* --- what its kernel waits for (kernel-sync.h) --- */
  struct pto_services services;
  struct pto_services services_apart; /* the same for kernels that are called apart */
  struct pto_pipes *pipes;
  uint64_t relaxed;       /* guard.call of the last call that came to pto_relax(); W, R: the core */
  struct pto_word wake;   /* W: any thread that changes what the kernel waits for */
  _Atomic uint32_t waits; /* W: the core, under its cluster's lock; R: anybody, a hint without it */
};

/* A scheduler thread of the AICPU. */
struct pto_aicpu
{
  struct pto_scheduler scheduler;
  struct pto_chip *chip;
  struct pto_endpoint **endpoints;
  uint32_t n_endpoints;
  struct pto_word go; /* its cores have been spawned */
  char name[24];
};

/* A guarded call as the watcher saw it last, and since when. */
struct pto_watched_call
{
  uint64_t call;
  uint64_t since;
  uint64_t put_off; /* since when it is to be ended, but is inside the allocator; 0: it is not */
};

struct pto_chip
{
  const struct pto_platform *platform; /* own_platform */
  struct pto_platform own_platform;    /* its texts are not kept */
  struct pto_params params;
  const struct pto_heaps *heaps; /* given, or NULL */
  bool virtual_clock;
  uint32_t jitter; /* of it: percent */
  struct pto_machine
      machine; /* its actors: made by the first run of a geometry, kept for the next */
  struct pto_device_memory memory;
  struct pto_device_memory run_memory;   /* the orchestration's; empty between runs */
  struct pto_interconnect *interconnect; /* of its clusters */
  struct pto_services services;          /* of kernels that are alone */
  struct pto_check *check;               /* of the last run; NULL: its accesses are not checked */
  struct pto_order *order;               /* made by the first run that has a schedule */

  /* --- scheduler threads and cores --- */
  uint32_t clusters;
  uint32_t n_schedulers;
  struct pto_aicpu *aicpus;
  struct pto_core *cores;
  uint32_t n_cores;
  struct pto_word started; /* schedulers whose cores have answered */
  /* det: has run; the next run gets a fresh machine, so that history does not matter */
  bool used;
  bool lost; /* a task could not be ended: threads may hang in it */
  /* Foreign code was ended inside the allocator or the loader: it may have left locks held. W: a
   * core, or the caller (1); R: the begin of a run. Relaxed: the end of the run orders it. */
  _Atomic uint32_t unsafe;
  struct pto_core_note *notes; /* the caller's; NULL: none are kept */
  uint32_t n_notes;

  /* The ticker's: what it saw last. Under watch_lock, which is also held while the machine is made
   * or ended. */
  struct pto_ticker *ticker;
  pthread_mutex_t watch_lock;
  uint64_t ticked; /* the last tick, by the wall clock */
  /* The watcher's clock, from which all times below are. It stands still while the process does
   * (SIGSTOP, Ctrl-Z): no kernel has had that time. */
  uint64_t watch_ns;
  struct pto_watched_call *watched; /* a core each */
  struct pto_watched_call watched_orchestration;
  uint64_t watched_steps;
  uint64_t watched_completed;
  uint64_t progressed;            /* when it last saw another number */
  bool (*cancelled) (void *data); /* of the run under way; NULL: it does not ask */
  void *cancelled_data;
  uint64_t failed; /* when it first saw that the run has; 0: it has not */
  /* The begin of the time in which the orchestration has submitted nothing. Inspection reads it. */
  uint64_t watched_submitted;
  uint64_t submitted;

  /* --- of the current run --- */
  const struct pto_program *program;
  struct pto_given *given; /* what its kernels take; NULL: they run */
  const struct pto_chip_arg *args;
  uint32_t n_args;
  bool has_read_only;             /* one of them is */
  struct pto_guard guard;         /* the orchestration's code */
  struct pto_foreign_run foreign; /* of its code and of kernels */
  uintptr_t forks;                /* pto_guard_forks of the process that the chip is in */
  /* Under machine.door.lock. */
  bool timed;         /* kernels are */
  bool counted;       /* what they took is among what all runs took (pto_core.busy) */
  uint64_t timed_run; /* machine.door.n_begun of the run that both are of */
  /* As pto_run_stats says. W: cores, and the thread that calls; R: the thread that has run.
   * Relaxed: the end of the run orders it. */
  _Atomic uint64_t cut_off;

  /* The first guard that was hurt before its task ran; in words, the memory and the task. bytes 0:
   * there was none. Under stray_lock; R: also the caller after the run. */
  pthread_mutex_t stray_lock;
  struct pto_fence stray;
  uint64_t stray_bytes;
  bool stray_before; /* of the guard before the memory, not of the one behind it */
  char stray_what[128];
  char stray_task[400];
  struct pto_report damage; /* the first guard that a kernel of a checked run has hurt; likewise */

  /* Own threads by the number of the core; NULL: the core has called no kernel apart. A thread
   * stays until the end of the chip, and so does what is thread-local. W: the core; R: between runs
   */
  struct pto_own_thread *own_threads[PTO_CORES_MAX];
  /* Thread-local variables of kernels that need no thread for them; by the same number, as long. */
  struct pto_locals locals[PTO_CORES_MAX];
};

/* --- what cores and their kernels tell the chip --- */

/* Foreign code was ended. Where that was inside the allocator or the loader, no further run is
 * possible, and the text says so behind what it says. */
void pto_chip_note_unsafe (struct pto_chip *chip, const struct pto_fault *fault, char *text,
                           size_t size);
/* A kernel of a checked run has hurt a guard. */
void pto_chip_note_damage (struct pto_chip *chip, const struct pto_report *damage);
/* chip-given-times.c: what is left of the time that the core's kernel takes. */
uint64_t pto_given_time (struct pto_core *core);
/* Before the task ran, n bytes of a guard had been overwritten. what: whose guard it is. */
void pto_chip_note_stray (struct pto_chip *chip, const struct pto_fence *fence, uint64_t n,
                          bool before, const char *what, const char *task);
/* "task 3 of ring 0 (add) on core AIV1", perhaps with its block: the one that it runs, or has run
 * last. The core, or a thread that has seen it run one. */
void pto_core_describe_task (const struct pto_core *core, char *text, size_t size);
