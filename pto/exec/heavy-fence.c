/* heavy-fence.c: how is a fence put into every thread of the process?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "heavy-fence.h"

#include "exec-private.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

bool pto_heavy_fence_reaches_all;

static void
ask (void)
{
  long can = syscall (SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

  pto_heavy_fence_reaches_all = can > 0 && (can & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0
                                && (can & MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0;
}

void
pto_heavy_fence_init (void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once (&once, ask);
}

bool
pto_heavy_fence (void)
{
  atomic_thread_fence (memory_order_seq_cst);
  if (!pto_heavy_fence_reaches_all
      || syscall (SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
    return true;
  /* A process says once that it wants this, which takes long: the first that needs it says so. */
  return errno == EPERM
         && syscall (SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0
         && syscall (SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}
