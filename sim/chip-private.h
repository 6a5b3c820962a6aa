/* chip-private.h: the parts of a simulated chip, for the files of sim/.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../pto/core/machine.h"
#include "../pto/exec/ticker.h"
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
  const struct pto_platform *platform;
  struct pto_params params;
  bool virtual_clock;
  struct pto_machine
      machine; /* its actors: made by the first run of a geometry, kept for the next */
  struct pto_device_memory memory;
  const uint8_t *guard_pattern; /* what stands behind an output while its kernel runs */

  /* --- scheduler threads and cores --- */
  uint32_t clusters;
  uint32_t n_schedulers;
  struct pto_aicpu *aicpus;
  struct pto_core *cores;
  uint32_t n_cores;
  char *arguments;         /* det: each core's copy of its task's */
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

  /* --- of the current run --- */
  const struct pto_program *program;
  const struct pto_chip_arg *args;
  uint32_t n_args;
  bool has_read_only;     /* one of them is */
  struct pto_guard guard; /* the orchestration's code */
  /* As pto_run_stats says. W: cores, who calls; R: whoever has run. Relaxed: the end of the run
   * orders it. */
  _Atomic uint64_t cut_off;
};

/* orchestration.c: the runtime's calls that are a chip's own. */
extern const PTO2RuntimeOps pto_chip_runtime_ops;
static inline struct pto_chip *
pto_chip_of_runtime (PTO2Runtime *rt)
{
  return (struct pto_chip *) ((char *) rt - offsetof (struct pto_chip, machine.runtime));
}
