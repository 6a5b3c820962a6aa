/* chip-private.h: the parts of a simulated chip, for the files of sim/.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../pto/core/capture.h"
#include "../pto/core/machine.h"
#include "../pto/exec/ticker.h"
#include "check.h"
#include "core.h"
#include "memory.h"

#include <pthread.h>

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
  const uint8_t *guard_pattern;          /* what stands behind an output while its kernel runs */

  /* --- scheduler threads and cores --- */
  uint32_t clusters;
  uint32_t n_schedulers;
  struct pto_aicpu *aicpus;
  struct pto_core *cores;
  uint32_t n_cores;
  struct pto_word started; /* schedulers whose cores have answered */
  /* det: has run; the next run gets a fresh machine, so that history does not matter */
  bool used;
  bool lost;                   /* a task could not be ended: threads may hang in it */
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
  /* Since when the orchestration has submitted nothing, for who looks from outside. */
  uint64_t watched_submitted;
  uint64_t submitted;

  /* --- of the current run --- */
  const struct pto_program *program;
  const struct pto_chip_arg *args;
  uint32_t n_args;
  bool has_read_only;     /* one of them is */
  struct pto_guard guard; /* the orchestration's code */
  /* Under machine.door.lock. */
  bool timed;         /* kernels are */
  bool counted;       /* what they took is among what all runs took (core.h) */
  uint64_t timed_run; /* machine.door.n_begun of the run that both are of */
  /* As pto_run_stats says. W: cores, who calls; R: whoever has run. Relaxed: the end of the run
   * orders it. */
  _Atomic uint64_t cut_off;
};

struct pto_submit;

/* orchestration.c: the runtime's calls that are a chip's own. */
extern const PTO2RuntimeOps pto_chip_runtime_ops;
/* The task that is submitted now is none: the run fails, with the place of the submit. */
void pto_chip_refuse_with (struct pto_chip *chip, enum pto_status status, const char *format, ...)
    __attribute__ ((cold, format (printf, 3, 4)));
#define pto_chip_refuse(chip, ...) \
  pto_chip_refuse_with ((chip), PTO_STATUS_INVALID_ARGS, __VA_ARGS__)
/* The kernels for an argument that a task reduces. false: why not. */
bool pto_chip_find_reduction (void *data, const PTOParam *param, struct pto_reduction *reduction,
                              char *why, size_t size);
/* May the kernel be submitted so? false: no, and the run has failed. */
bool pto_chip_is_sound (struct pto_chip *chip, int32_t kernel_id, int32_t worker_type,
                        const struct pto_submit *task);
/* Of kernels that are. */
uint64_t pto_chip_submit_sound (struct pto_chip *chip, const struct pto_submit *task);

/* several.c: of kernels of more than one core. */
uint64_t pto_chip_submit_several (struct pto_chip *chip, struct pto_submit *task,
                                  const PTO2Submit *asked);
/* As pto_engine_config.cohort_taken. */
bool pto_chip_take_cluster (void *chip, uint32_t cluster);
int32_t pto_chip_allocate_cluster (PTO2Runtime *rt);
void pto_chip_free_cluster (PTO2Runtime *rt, int32_t cluster_id);
int32_t pto_chip_cluster_count (PTO2Runtime *rt);
int32_t pto_chip_cluster_cores (PTO2Runtime *rt, int32_t cluster_id, int32_t worker_type,
                                int32_t cores[], int32_t n);

/* plan.c: the run is one that is captured. A report says why it can not be. */
struct pto_chip_capture
{
  struct pto_capture capture;
  int (*orchestrate) (PTO2Runtime *rt, void *data);
  void *data;
};
void pto_chip_begin_capture (struct pto_chip *chip, struct pto_chip_capture *capture,
                             struct pto_plan *graph, struct pto_run *run);

static inline struct pto_chip *
pto_chip_of_runtime (PTO2Runtime *rt)
{
  return (struct pto_chip *) ((char *) rt - offsetof (struct pto_chip, machine.runtime));
}
