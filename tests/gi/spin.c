/* spin.c: which kernel takes as long as it is told? out[0] = 1, then so many microseconds.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

#include <time.h>

static int64_t
now_us (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t) t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void
kernel_entry (int64_t *args)
{
  const TensorData *out = (const TensorData *) (intptr_t) args[0];
  int64_t until = now_us () + (uint32_t) args[1];

  ((float *) (uintptr_t) out->buffer.addr)[out->start_offset] = 1;
  while (now_us () < until)
    ;
}
