/* hub.c: where does an online softmax begin? Nothing summed, nothing seen.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "attention.h"

/* args: oi [rows, head_dim], li [rows], mi [rows]: contiguous float32, written. */
void
kernel_entry (int64_t *args)
{
  const TensorData *toi = attention_tensor (args[0]);
  float *restrict oi = attention_floats (toi);
  float *restrict li = attention_floats (attention_tensor (args[1]));
  float *restrict mi = attention_floats (attention_tensor (args[2]));
  uint64_t rows = toi->shapes[0];

  memset (oi, 0, rows * toi->shapes[1] * sizeof *oi);
  for (uint64_t r = 0; r < rows; r++)
    {
      li[r] = 0;
      mi[r] = ATTENTION_NOTHING;
    }
}
