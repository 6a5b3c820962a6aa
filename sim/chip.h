/* chip.h: a simulated chip: cores, scheduler threads, an orchestrator, device memory.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Owner thread: one thread at a time uses a chip; pto_chip_run() is entered by one thread at a
 * time. Threads and fibers are made by pto_chip_new() and live until pto_chip_free(): a run makes
 * none. Several chips in one process share nothing.
 */
#pragma once

#include "pto/api/pto_orchestration_api.h"
#include "pto/core/parameters.h"
#include "pto/core/record-run.h"
#include "pto/core/runtime.h"
#include "chip-platform.h"
#include "core-note.h"
#include "kernel.h"

struct pto_chip;
struct pto_watch;         /* core/memory-observer.h */
struct pto_device_memory; /* device-memory.h */
struct pto_plan;          /* pto/core/graph-plan.h */
struct pto_plan_param;
struct pto_schedule; /* pto/core/forced-order-text.h */

/* NULL with a report when a thread, a mapping or a parameter is refused. */
struct pto_chip *pto_chip_new (const struct pto_platform *platform, const struct pto_params *params,
                               struct pto_report *report);
/* The same, in heaps of the caller's, of the sizes that the parameters say, for as long as the
 * chip; NULL: it maps some. */
struct pto_chip *pto_chip_new_in_heaps (const struct pto_platform *platform,
                                        const struct pto_params *params,
                                        const struct pto_heaps *heaps, struct pto_report *report);
void pto_chip_free (struct pto_chip *chip);
const struct pto_platform *pto_chip_platform (const struct pto_chip *chip);

/* An argument of a run, as an orchestration in a shared object sees it. */
struct pto_chip_arg
{
  uint64_t word;      /* a number, or the address of the tensor's first element */
  uint64_t read_only; /* so many bytes from there on no task of the run may write */
  Tensor tensor;      /* ndims 0: it is a number */
  uint64_t kind;      /* of a number: enum pto_plan_number, what it was given as */
};
/* What a graph that is captured with it has as its argument. */
struct pto_plan_param pto_chip_arg_param (const struct pto_chip_arg *arg);
/* What a graph is launched with as its argument. */
struct pto_plan_given pto_chip_arg_given (const struct pto_chip_arg *arg);

/* Per-run choices; zero is the default of each. */
struct pto_run_config
{
  uint32_t block_dim;      /* clusters to use; 0 = all */
  uint32_t aicpu_threads;  /* schedulers + 1 to use; 0 = all */
  uint32_t record;         /* how much: enum pto_trace_level; 0 = as the parameters say */
  struct pto_watch *watch; /* of a run of which all is recorded; NULL: nobody */
  /* True ends the run with PTO_STATUS_CANCELLED, and a run that has ended well was asked once more
   * after its last task. Asked by the caller wherever it waits, and every 10 ms by another thread,
   * for the caller may be in a kernel. May be NULL. */
  bool (*cancelled) (void *data);
  void *cancelled_data;
  /* Good until the run has ended. */
  const struct pto_chip_arg *args;
  uint32_t n_args;
  /* Empty: no task runs, each is written down there, and args are what the graph is launched with.
   * It is complete when the run has ended well. NULL: they run. */
  struct pto_plan *capture;
  /* det: in which order tasks run (pto/core/forced-order.h), for as long as the run; NULL: as they
   * come. Not of a run that is captured. */
  const struct pto_schedule *schedule;
  /* What kernels touch is compared with their tasks' arguments, also where the parameters do not
   * say so: those of the program that are instrumented say it. Not of a run that is captured. */
  bool checks;
};

/* From now on every core keeps a note, in memory of the caller for as long as the chip; NULL: none
 * does. n: as many as there is room for; cores beyond keep none. Not while running. */
void pto_chip_set_notes (struct pto_chip *chip, struct pto_core_note *notes, uint32_t n);
/* Likewise: what its runs have done is counted there (pto/core/run-machine.h). */
void pto_chip_set_totals (struct pto_chip *chip, struct pto_machine_totals *totals);

/* Runs an orchestration on the calling thread and the kernels that it submits on the chip; returns
 * when all are done. After an error the chip is ready for the next run. orchestrate gives 0, or
 * another value to fail the run. */
enum pto_status pto_chip_run (struct pto_chip *chip, const struct pto_program *program,
                              const struct pto_run_config *config,
                              int (*orchestrate) (PTO2Runtime *rt, void *data), void *data,
                              struct pto_run_stats *stats, struct pto_report *report);

/* Inside of orchestrate, instead of submits: all tasks of a graph, with the arguments of the run.
 * kernels: the program's of each of the graph's; NULL: they have the same numbers. false: the run
 * has failed. */
bool pto_chip_launch (PTO2Runtime *rt, const struct pto_plan *graph, const uint32_t *kernels);

/* Any thread, also a kernel: the run under way fails with PTO_STATUS_CANCELLED. Kernels that run
 * are waited for, at most an eighth of the time-out each; no other begins, except on cores that had
 * their last look just before. Between runs, and before the orchestration is called, nothing:
 * config->cancelled() is asked then. */
void pto_chip_cancel (struct pto_chip *chip);
/* Any thread: another number as long as tasks complete or the orchestration submits. */
uint64_t pto_chip_progress (const struct pto_chip *chip);

/* In a run, on its thread: all that was submitted so far has run, or never will. */
bool pto_chip_is_through (struct pto_chip *chip);

/* The last run ended with a kernel that could not be ended: no other is possible on this chip. */
bool pto_chip_is_lost (const struct pto_chip *chip);
/* A new chip in the place of a lost one, with its device memory and log; NULL with a report. The
 * lost one is given up: the thread of that kernel may still run in it. */
struct pto_chip *pto_chip_renew (struct pto_chip *chip, struct pto_report *report);

/* Calls code of an orchestration, in a run or beside one. PTO_OK when it returned; otherwise why
 * says what it did, to go on "the orchestration ...": what it called of the engine is complete, its
 * frames are gone. In a run it is also ended when it neither returns nor submits anything for the
 * timeout. */
enum pto_status pto_chip_call (struct pto_chip *chip, void (*fn) (int64_t *), int64_t *args,
                               char *why, size_t size);
/* The line of the last submit in this run, as the orchestration has noted it; 0: none. */
int32_t pto_chip_last_line (const struct pto_chip *chip);
/* Its file, as the compiler named it; lives as long as the orchestration. */
const char *pto_chip_last_file (const struct pto_chip *chip);

/* Where LOG_INFO() and its sisters go; default: standard error for warnings and errors. Set while
 * not running. */
void pto_chip_set_log (struct pto_chip *chip,
                       void (*log) (void *data, int32_t level, const char *message), void *data);

/* As pto_machine_take_heaps(); of a lost chip nothing, for it is never freed. */
void pto_chip_take_heaps (struct pto_chip *chip, struct pto_heaps *heaps);
/* Its device memory. */
struct pto_device_memory *pto_chip_memory (struct pto_chip *chip);

/* Who of the last run's tasks has written the byte last, as far as accesses were checked: "task 3
 * of ring 0 (mul), submitted at x.cpp:12, ..."; empty: nobody. */
void pto_chip_describe_writer (struct pto_chip *chip, uint64_t address, char *text, size_t size);

/* The last recorded run; NULL when nothing was recorded. Valid until the next run. */
const struct pto_trace *pto_chip_trace (struct pto_chip *chip);

/* With it. */
void pto_chip_trace_topology (const struct pto_chip *chip, struct pto_trace_topology *topology);
