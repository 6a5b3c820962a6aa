/* chip-platform.h: what a simulated chip consists of, as data.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source: seed 000 section 2.3.
 */
#pragma once

#include <stdint.h>

/* Virtual time of the chip's own steps, in ns (det only). */
struct pto_platform_costs
{
  uint32_t submit;          /* orchestrator, a task */
  uint32_t submit_argument; /* orchestrator, a tensor argument */
  uint32_t dispatch;        /* scheduler, payload and register write */
  uint32_t poll;            /* scheduler, one register read that finds FIN */
  uint32_t fanout;          /* scheduler, one consumer released */
  uint32_t start;           /* core, from register write to ACK */
  uint32_t finish;          /* core, FIN until a scheduler can see it */
  uint32_t pipe;            /* core, an entry into a pipe of its cluster, or out of one */
};

/* A chip has no more, of both types together. */
#define PTO_CORES_MAX 3072u

struct pto_platform
{
  const char *name;
  const char *description;
  uint32_t clusters;
  uint32_t aic_per_cluster;
  uint32_t aiv_per_cluster;
  uint32_t aicpu_threads; /* schedulers + 1 orchestrator */
  uint64_t counter_hz;    /* the chip's system counter */
  struct pto_platform_costs costs;
};

/* NULL when there is no platform of that name. */
const struct pto_platform *pto_platform_find (const char *name);
/* NULL-terminated. */
const struct pto_platform *const *pto_platform_all (void);
