/* chip-platform.c: what does a simulated chip consist of?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Geometry: seed 000 section 2.3. Costs: published figures of the real chip (submit 0.87 us a task,
 * half of it lookup; register read about 100 ns; completion notice 600 ns on average).
 */
#include "chip-platform.h"

#include <string.h>

static const struct pto_platform a2a3sim = {
  .name = "a2a3sim",
  .description = "24 clusters of 1 AIC + 2 AIV, 3 schedulers + 1 orchestrator, 50 MHz counter",
  .clusters = 24,
  .aic_per_cluster = 1,
  .aiv_per_cluster = 2,
  .aicpu_threads = 4,
  .counter_hz = 50000000,
  .costs = { .submit = 430,
             .submit_argument = 110,
             .dispatch = 200,
             .poll = 100,
             .fanout = 60,
             .start = 150,
             .finish = 500,
             .pipe = 50 },
};

static const struct pto_platform a5sim = {
  .name = "a5sim",
  .description = "36 clusters of 1 AIC + 2 AIV, 4 schedulers + 1 orchestrator, 1 GHz counter",
  .clusters = 36,
  .aic_per_cluster = 1,
  .aiv_per_cluster = 2,
  .aicpu_threads = 5,
  .counter_hz = 1000000000,
  .costs = { .submit = 430,
             .submit_argument = 110,
             .dispatch = 200,
             .poll = 95,
             .fanout = 60,
             .start = 150,
             .finish = 500,
             .pipe = 50 },
};

static const struct pto_platform *const platforms[] = { &a2a3sim, &a5sim, NULL };

const struct pto_platform *const *
pto_platform_all (void)
{
  return platforms;
}

const struct pto_platform *
pto_platform_find (const char *name)
{
  for (int i = 0; platforms[i] != NULL; i++)
    if (strcmp (platforms[i]->name, name) == 0)
      return platforms[i];
  return NULL;
}
