/* tasks-test.c: what do the tests of what an orchestration can say of a task share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tasks-test.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

static int32_t *
data_of (int64_t arg)
{
  const TensorData *tensor = (const TensorData *) (uintptr_t) arg;

  return (int32_t *) (uintptr_t) tensor->buffer.addr + tensor->start_offset;
}

static void
kernel_store (int64_t *args)
{
  *data_of (args[0]) = (int32_t) args[1];
}

static void
kernel_slow (int64_t *args)
{
  sim_spend_ns (200000);
  kernel_store (args);
}

static void
kernel_add (int64_t *args)
{
  *data_of (args[0]) += (int32_t) args[1];
}

static void
kernel_sum (int64_t *args)
{
  int32_t sum = 0;

  for (int64_t i = 0; i < args[1]; i++)
    sum += *data_of (args[2 + i]);
  *data_of (args[0]) = sum;
}

static void
kernel_copy (int64_t *args)
{
  int32_t value = *data_of (args[0]);

  sim_spend_ns (200000);
  *data_of (args[1]) = value;
}

static void
kernel_beyond (int64_t *args)
{
  const TensorData *tensor = (const TensorData *) (uintptr_t) args[0];

  memset ((void *) (uintptr_t) tensor->buffer.addr, 7, tensor->buffer.size + 3);
}

static NOT_SANITIZED void
kernel_crash (int64_t *args)
{
  volatile int *volatile nowhere = NULL;

  *nowhere = 1;
}

_Atomic bool tasks_submitted;

static void
kernel_unmap (int64_t *args)
{
  while (!atomic_load (&tasks_submitted))
    sched_yield ();
  /* So that no other thread's memory comes to lie there meanwhile. */
  mmap ((void *) (uintptr_t) args[1], 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
        0);
}

static void
kernel_nothing (int64_t *args)
{
}

static void
kernel_spread (int64_t *args)
{
  const TensorData *scratch = (const TensorData *) (uintptr_t) args[0];
  int32_t *numbers = data_of (args[0]);
  int32_t sum = 0;

  for (uint64_t i = 0; i < scratch->shapes[0]; i++)
    numbers[i] = (int32_t) args[2];
  sched_yield ();
  for (uint64_t i = 0; i < scratch->shapes[0]; i++)
    sum += numbers[i];
  *data_of (args[1]) += sum;
}

static const struct pto_kernel kernels[] = {
  [STORE] = { "store", kernel_store, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [SLOW] = { "slow", kernel_slow, PTO_CORE_TYPE_AIV, { .base_ns = 200000 } },
  [ADD] = { "add", kernel_add, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [SUM] = { "sum", kernel_sum, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [COPY] = { "copy", kernel_copy, PTO_CORE_TYPE_AIV, { .base_ns = 200000 } },
  [BEYOND] = { "beyond", kernel_beyond, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [CRASH] = { "crash", kernel_crash, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [UNMAP] = { "unmap", kernel_unmap, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [SPREAD] = { "spread", kernel_spread, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [CUBE] = { "cube", kernel_nothing, PTO_CORE_TYPE_AIC, { .base_ns = 1e6 } },
};
const struct pto_program tasks_program = { kernels, G_N_ELEMENTS (kernels) };
