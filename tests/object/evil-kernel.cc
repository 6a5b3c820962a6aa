/* evil-kernel.cc: a kernel that does what it is told by its first argument, and then fills its
 * second.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

#include "evil.h"

extern "C" void
kernel_entry (int64_t *args)
{
  const TensorData *f = (const TensorData *) args[1];
  float *data = (float *) f->buffer.addr + f->start_offset;
  uint64_t n = f->shapes[0];

  evil_do ((int) args[0], args);
  for (uint64_t i = 0; i < n; i++)
    data[i] = 7;
}
