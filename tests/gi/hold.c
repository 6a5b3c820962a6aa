/* hold.c: which kernel does not return before the program has written to out[0]?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

#include <sched.h>

void
kernel_entry (int64_t *args)
{
  const TensorData *out = (const TensorData *) (intptr_t) args[0];
  volatile float *at = (volatile float *) (uintptr_t) out->buffer.addr + out->start_offset;

  while (at[0] == 0)
    sched_yield ();
}
