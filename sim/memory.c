/* memory.c: the memory of a simulated device.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "memory.h"

#include "../pto/core/fence.h"
#include "../pto/exec/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_ALIGN 64u

/* Index of the first block whose end lies behind the address. */
static uint32_t
find (const struct pto_device_memory *memory, uint64_t address)
{
  uint32_t low = 0;
  uint32_t high = memory->n_blocks;

  while (low < high)
    {
      uint32_t middle = (low + high) / 2;

      if (memory->blocks[middle].address + memory->blocks[middle].bytes <= address)
        low = middle + 1;
      else
        high = middle;
    }
  return low;
}

static struct pto_fence
fence_of (const struct pto_device_memory *memory, const struct pto_device_block *block)
{
  return (struct pto_fence){ .address = block->address,
                             .bytes = block->bytes,
                             .guard = memory->guard_bytes };
}

static uint64_t
take_aligned (uint64_t bytes)
{
  void *pointer;

  return bytes <= SIZE_MAX / 2 && posix_memalign (&pointer, DEVICE_ALIGN, bytes) == 0
             ? (uint64_t) (uintptr_t) pointer
             : 0;
}

static void
give_back (uint64_t address, uint64_t bytes)
{
  (void) bytes;
  free ((void *) (uintptr_t) address);
}

void
pto_device_memory_init (struct pto_device_memory *memory, uint32_t guard_bytes,
                        uint64_t (*take) (uint64_t bytes),
                        void (*give) (uint64_t address, uint64_t bytes))
{
  *memory = (struct pto_device_memory){ .guard_bytes = guard_bytes,
                                        .take = take != NULL ? take : take_aligned,
                                        .give = give != NULL ? give : give_back };
}

uint64_t
pto_device_memory_malloc (struct pto_device_memory *memory, uint64_t bytes,
                          struct pto_report *report)
{
  struct pto_device_block block = { .bytes = bytes };
  struct pto_fence fence;
  uint32_t at;

  if (bytes == 0)
    {
      pto_report_set (report, PTO_STATUS_INVALID_ARGS, _ ("device malloc of 0 bytes"));
      return 0;
    }
  if (memory->n_blocks == memory->capacity)
    {
      uint32_t capacity = memory->capacity > 0 ? memory->capacity * 2 : 16;
      struct pto_device_block *blocks = realloc (memory->blocks, capacity * sizeof *blocks);

      if (blocks == NULL)
        {
          pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory to note %u device buffers"),
                          capacity);
          return 0;
        }
      memory->blocks = blocks;
      memory->capacity = capacity;
    }
  if (bytes <= UINT64_MAX - memory->guard_bytes)
    block.address = memory->take (bytes + memory->guard_bytes);
  if (block.address == 0)
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no device memory for %" PRIu64 " bytes"),
                      bytes);
      return 0;
    }
  fence = fence_of (memory, &block);
  if (fence.guard > 0 && !pto_fence_add (&fence))
    {
      memory->give (block.address, bytes + memory->guard_bytes);
      pto_report_set (report, PTO_STATUS_NO_MEMORY,
                      _ ("no memory to watch %u device buffers: set guard to 0"),
                      memory->n_blocks + 1);
      return 0;
    }
  at = find (memory, block.address);
  memmove (&memory->blocks[at + 1], &memory->blocks[at], (memory->n_blocks - at) * sizeof block);
  memory->blocks[at] = block;
  memory->n_blocks++;
  return block.address;
}

enum pto_status
pto_device_memory_release (struct pto_device_memory *memory, uint64_t address, uint64_t *bytes,
                           void (**give) (uint64_t address, uint64_t bytes),
                           struct pto_report *report)
{
  uint32_t at = find (memory, address);

  if (at == memory->n_blocks || memory->blocks[at].address != address)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           _ ("0x%" PRIx64 " is not the address of a device buffer"), address);
  pto_fence_remove (address);
  *bytes = memory->blocks[at].bytes + memory->guard_bytes;
  *give = memory->give;
  memory->n_blocks--;
  memmove (&memory->blocks[at], &memory->blocks[at + 1],
           (memory->n_blocks - at) * sizeof memory->blocks[0]);
  return PTO_OK;
}

enum pto_status
pto_device_memory_free (struct pto_device_memory *memory, uint64_t address,
                        struct pto_report *report)
{
  void (*give) (uint64_t address, uint64_t bytes);
  uint64_t bytes;
  enum pto_status status = pto_device_memory_release (memory, address, &bytes, &give, report);

  if (status == PTO_OK)
    give (address, bytes);
  return status;
}

static enum pto_status
check_range (const struct pto_device_memory *memory, uint64_t address, uint64_t bytes,
             struct pto_report *report)
{
  uint32_t at = find (memory, address);

  if (at == memory->n_blocks || address < memory->blocks[at].address)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           _ ("0x%" PRIx64 " lies in no device buffer"), address);
  if (bytes > memory->blocks[at].bytes - (address - memory->blocks[at].address))
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           _ ("%" PRIu64 " bytes from 0x%" PRIx64
                              " reach beyond their device buffer of %" PRIu64
                              " bytes at 0x%" PRIx64),
                           bytes, address, memory->blocks[at].bytes, memory->blocks[at].address);
  return PTO_OK;
}

enum pto_status
pto_device_memory_copy_to (const struct pto_device_memory *memory, uint64_t device,
                           const void *host, uint64_t bytes, struct pto_report *report)
{
  enum pto_status status = check_range (memory, device, bytes, report);

  if (status == PTO_OK && bytes > 0)
    memcpy ((void *) (uintptr_t) device, host, bytes);
  return status;
}

enum pto_status
pto_device_memory_copy_from (const struct pto_device_memory *memory, void *host, uint64_t device,
                             uint64_t bytes, struct pto_report *report)
{
  enum pto_status status = check_range (memory, device, bytes, report);

  if (status == PTO_OK && bytes > 0)
    memcpy (host, (const void *) (uintptr_t) device, bytes);
  return status;
}

enum pto_status
pto_device_memory_check (struct pto_device_memory *memory, struct pto_report *report)
{
  enum pto_status status = PTO_OK;

  for (uint32_t b = 0; b < memory->n_blocks; b++)
    {
      const struct pto_device_block *block = &memory->blocks[b];
      struct pto_fence fence = fence_of (memory, block);
      uint64_t n = pto_fence_damage (&fence);

      if (n == 0)
        continue;
      pto_fence_mend (&fence);
      if (status == PTO_OK)
        status = pto_report_set (
            report, PTO_STATUS_OUT_OF_BOUNDS,
            P_ ("a kernel of this run wrote %" PRIu64 " byte past the device buffer of %" PRIu64
                " bytes at 0x%" PRIx64 "%s",
                "a kernel of this run wrote %" PRIu64 " bytes past the device buffer of %" PRIu64
                " bytes at 0x%" PRIx64 "%s",
                n),
            n, block->bytes, block->address, pto_report_or_more (n, fence.guard));
    }
  return status;
}

void
pto_device_memory_clear (struct pto_device_memory *memory)
{
  for (uint32_t b = 0; b < memory->n_blocks; b++)
    {
      pto_fence_remove (memory->blocks[b].address);
      memory->give (memory->blocks[b].address, memory->blocks[b].bytes + memory->guard_bytes);
    }
  free (memory->blocks);
  memory->blocks = NULL;
  memory->n_blocks = memory->capacity = 0;
}
