/* churn.c: which kernel never returns, and is inside malloc() most of the time?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor.h"

#include <stdlib.h>

static void *volatile kept;

void
kernel_entry (int64_t *args)
{
  for (;;)
    {
      kept = malloc (32 << 20);
      free (kept);
      kept = malloc (4000);
      free (kept);
    }
}
