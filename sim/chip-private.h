/* chip-private.h: what do the files of a chip know of each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto/core/graph-capture.h"
#include "ai-core.h"
#include "check.h"
#include "chip.h"
#include "hardware.h"

struct pto_submit;

/* chip-submit.c: the runtime's calls that are a chip's own. */
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

/* chip-submit-several.c: of kernels of more than one core. */
uint64_t pto_chip_submit_several (struct pto_chip *chip, struct pto_submit *task,
                                  const PTO2Submit *asked);
/* As pto_engine_config.cohort_taken. */
bool pto_chip_take_cluster (void *chip, uint32_t cluster);
int32_t pto_chip_allocate_cluster (PTO2Runtime *rt);
void pto_chip_free_cluster (PTO2Runtime *rt, int32_t cluster_id);
int32_t pto_chip_cluster_count (PTO2Runtime *rt);
int32_t pto_chip_cluster_cores (PTO2Runtime *rt, int32_t cluster_id, int32_t worker_type,
                                int32_t cores[], int32_t n);

/* chip-graph.c: the run is one that is captured. A report says why it can not be. */
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
