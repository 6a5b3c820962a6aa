/* condition.c: is a task with a condition to run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "condition.h"

#include "exec/translate.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* Reads memory of the caller. Returns false, without a fault, if it is not there any more. */
static bool
read_foreign (void *to, uint64_t address, uint32_t size)
{
  struct iovec here = { to, size };
  struct iovec there = { (void *) (uintptr_t) address, size };

  if (process_vm_readv (getpid (), &here, 1, &there, 1, 0) == (ssize_t) size)
    return true;
  if (errno == EFAULT)
    return false;
  /* The system does not let a process ask for its own memory. */
  memcpy (to, (const void *) (uintptr_t) address, size);
  return true;
}

bool
pto_condition_is_off (struct pto_engine *engine, const struct pto_slot *slot, bool *failed)
{
  const struct pto_payload *payload = slot->payload;
  const TensorData *tensor = (const TensorData *) (uintptr_t) payload->args[payload->n_args - 1];
  uint32_t size = pto_dtype_size (tensor->dtype);
  uint64_t address = tensor->buffer.addr + tensor->start_offset * size;
  uint64_t value = 0;

  if (!read_foreign (&value, address, size))
    {
      *failed = true;
      pto_engine_fail (engine, PTO_STATUS_KERNEL_FAULT,
                       _ ("task %u of ring %u (%s): its condition lies in memory that is not there "
                          "any more (0x%" PRIx64 ")"),
                       PTO_TASK_LOCAL (slot->id), PTO_TASK_RING (slot->id),
                       pto_engine_kernel_name (engine, slot->kernel), address);
      return true;
    }
  /* -0.0 is 0. */
  if (pto_dtype_is_float (tensor->dtype))
    value &= ~(UINT64_C (1) << (8 * size - 1));
  else if (tensor->dtype == PTO_DTYPE_INT4)
    value &= 15;
  return value == 0;
}
