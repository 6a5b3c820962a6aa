/* device-memory.c: the memory of a simulated device.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "device-memory.h"

#include "pto/core/bits.h"
#include "pto/core/memory-guards.h"
#include "pto/exec/translate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICE_ALIGN 64u

/* Index of the first block whose end lies behind the address. */
static uint32_t
find (const struct pto_device_memory *memory, uint64_t address)
{
  return pto_bisect (i, memory->n_blocks,
                     memory->blocks[i].address + memory->blocks[i].bytes <= address);
}

static struct pto_fence
fence_of (const struct pto_device_memory *memory, const struct pto_device_block *block)
{
  return (struct pto_fence){ .address = block->address,
                             .bytes = block->bytes,
                             .guard = memory->guard_bytes,
                             .before = memory->guard_bytes };
}

/* What lies before the memory, which stays aligned. */
static uint64_t
room_before (const struct pto_device_memory *memory)
{
  return (memory->guard_bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
}

static uint64_t
room_around (const struct pto_device_memory *memory)
{
  return room_before (memory) + memory->guard_bytes;
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

/* Room for one more. Returns false without memory. */
static bool
make_room (struct pto_device_block **blocks, uint32_t n, uint32_t *capacity)
{
  uint32_t more = n > 0 ? n * 2 : 16;
  struct pto_device_block *larger;

  if (n < *capacity)
    return true;
  larger = realloc (*blocks, more * sizeof *larger);
  if (larger == NULL)
    return false;
  *blocks = larger;
  *capacity = more;
  return true;
}

static void
give_all (struct pto_device_memory *memory, const struct pto_device_block *blocks, uint32_t n)
{
  for (uint32_t b = 0; b < n; b++)
    {
      pto_fence_remove (blocks[b].address);
      memory->give (blocks[b].address - room_before (memory),
                    blocks[b].bytes + room_around (memory));
    }
}

/* --- what lies aside --- */

static void
give_gone (struct pto_device_memory *memory, uint32_t n)
{
  give_all (memory, memory->gone, n);
  for (uint32_t b = 0; b < n; b++)
    {
      memory->gone_bytes -= memory->gone[b].kept;
      memory->gone_space -= memory->gone[b].bytes;
    }
  memory->n_gone -= n;
  memmove (memory->gone, memory->gone + n, memory->n_gone * sizeof *memory->gone);
}

/* Gives the block's whole pages back, but not its addresses. Returns how many of its bytes still
 * have memory. Memory that processes share is a file, in which that makes a hole. */
static uint64_t
empty (const struct pto_device_block *block)
{
  uint64_t page = (uint64_t) sysconf (_SC_PAGESIZE);
  uint64_t lo = (block->address + page - 1) / page * page;
  uint64_t hi = (block->address + block->bytes) / page * page;
  void *first = (void *) (uintptr_t) lo;

  if (block->bytes < PTO_DEVICE_EMPTIED_BYTES || hi <= lo
      || (madvise (first, hi - lo, MADV_REMOVE) != 0
          && madvise (first, hi - lo, MADV_DONTNEED) != 0))
    return block->bytes;
  return block->bytes - (hi - lo);
}

/* The program has given back the block, which is out of the books. */
static void
lay_aside (struct pto_device_memory *memory, struct pto_device_block *block)
{
  uint32_t n = 0;
  uint64_t bytes = memory->gone_bytes;
  uint64_t space = memory->gone_space;

  block->kept = block->bytes;
  if (memory->guard_bytes > 0 && block->bytes <= memory->space_max)
    block->kept = empty (block);
  if (memory->guard_bytes == 0 || block->bytes > memory->space_max
      || block->kept > PTO_DEVICE_GONE_BYTES_MAX
      || !make_room (&memory->gone, memory->n_gone, &memory->gone_capacity))
    {
      give_all (memory, block, 1);
      return;
    }
  while (n < memory->n_gone
         && (memory->n_gone - n >= PTO_DEVICE_GONE_MAX
             || bytes + block->kept > PTO_DEVICE_GONE_BYTES_MAX
             || space + block->bytes > memory->space_max))
    {
      bytes -= memory->gone[n].kept;
      space -= memory->gone[n++].bytes;
    }
  if (n > 0)
    give_gone (memory, n);
  pto_fence_leave (block->address);
  memory->gone[memory->n_gone++] = *block;
  memory->gone_bytes += block->kept;
  memory->gone_space += block->bytes;
}

/* --- blocks --- */

/* The address of memory with its guards around it; 0: there is none. */
static uint64_t
take (struct pto_device_memory *memory, uint64_t bytes)
{
  uint64_t address = memory->take (bytes + room_around (memory));

  if (address == 0 && memory->n_gone > 0)
    {
      give_gone (memory, memory->n_gone);
      address = memory->take (bytes + room_around (memory));
    }
  return address;
}

static bool
add_fence (struct pto_device_memory *memory, const struct pto_fence *fence)
{
  if (pto_fence_add (fence))
    return true;
  if (memory->n_gone == 0)
    return false;
  give_gone (memory, memory->n_gone);
  return pto_fence_add (fence);
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
  if (!make_room (&memory->blocks, memory->n_blocks, &memory->capacity))
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory to note %u device buffers"),
                      memory->n_blocks + 1);
      return 0;
    }
  if (bytes <= UINT64_MAX - room_around (memory))
    block.address = take (memory, bytes);
  if (block.address == 0)
    {
      pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no device memory for %" PRIu64 " bytes"),
                      bytes);
      return 0;
    }
  block.address += room_before (memory);
  fence = fence_of (memory, &block);
  if (fence.guard > 0 && !add_fence (memory, &fence))
    {
      memory->give (block.address - room_before (memory), bytes + room_around (memory));
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

/* The index of the block that begins there; memory->n_blocks with a report: there is none. */
static uint32_t
find_begin (const struct pto_device_memory *memory, uint64_t address, struct pto_report *report)
{
  uint32_t at = find (memory, address);

  if (at < memory->n_blocks && memory->blocks[at].address == address)
    return at;
  pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                  _ ("0x%" PRIx64 " is not the address of a device buffer"), address);
  return memory->n_blocks;
}

static void
remove_block (struct pto_device_memory *memory, uint32_t at)
{
  memory->n_blocks--;
  memmove (&memory->blocks[at], &memory->blocks[at + 1],
           (memory->n_blocks - at) * sizeof memory->blocks[0]);
}

enum pto_status
pto_device_memory_release (struct pto_device_memory *memory, uint64_t *address, uint64_t *bytes,
                           void (**give) (uint64_t address, uint64_t bytes),
                           struct pto_report *report)
{
  uint32_t at = find_begin (memory, *address, report);

  if (at == memory->n_blocks)
    return PTO_STATUS_INVALID_ARGS;
  pto_fence_remove (*address);
  *address -= room_before (memory);
  *bytes = memory->blocks[at].bytes + room_around (memory);
  *give = memory->give;
  remove_block (memory, at);
  return PTO_OK;
}

enum pto_status
pto_device_memory_leave (struct pto_device_memory *memory, uint64_t address,
                         struct pto_report *report)
{
  uint32_t at = find_begin (memory, address, report);

  if (at == memory->n_blocks)
    return PTO_STATUS_INVALID_ARGS;
  if (!make_room (&memory->leaving, memory->n_leaving, &memory->leaving_capacity))
    return pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory to note %u device buffers"),
                           memory->n_leaving + 1);
  memory->leaving[memory->n_leaving++] = memory->blocks[at];
  remove_block (memory, at);
  return PTO_OK;
}

void
pto_device_memory_settle (struct pto_device_memory *memory)
{
  for (uint32_t b = 0; b < memory->n_leaving; b++)
    lay_aside (memory, &memory->leaving[b]);
  memory->n_leaving = 0;
}

void
pto_device_memory_free_all (struct pto_device_memory *memory)
{
  pto_device_memory_settle (memory);
  for (uint32_t b = 0; b < memory->n_blocks; b++)
    lay_aside (memory, &memory->blocks[b]);
  memory->n_blocks = 0;
}

enum pto_status
pto_device_memory_free (struct pto_device_memory *memory, uint64_t address,
                        struct pto_report *report)
{
  uint32_t at = find_begin (memory, address, report);
  struct pto_device_block block;

  if (at == memory->n_blocks)
    return PTO_STATUS_INVALID_ARGS;
  block = memory->blocks[at];
  remove_block (memory, at);
  lay_aside (memory, &block);
  return PTO_OK;
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

static enum pto_status
check_all (const struct pto_device_memory *memory, const struct pto_device_block *blocks,
           uint32_t n_blocks, struct pto_report *report)
{
  enum pto_status status = PTO_OK;

  for (uint32_t b = 0; b < n_blocks; b++)
    {
      const struct pto_device_block *block = &blocks[b];
      struct pto_fence fence = fence_of (memory, block);
      uint64_t n = pto_fence_damage (&fence);
      uint64_t before = pto_fence_damage_before (&fence);

      if (n == 0 && before == 0)
        continue;
      pto_fence_mend (&fence);
      if (status == PTO_OK && n == 0)
        status = pto_report_set (
            report, PTO_STATUS_OUT_OF_BOUNDS,
            P_ ("a kernel of this run wrote at least %" PRIu64
                " byte before the device buffer of %" PRIu64 " bytes at 0x%" PRIx64,
                "a kernel of this run wrote at least %" PRIu64
                " bytes before the device buffer of %" PRIu64 " bytes at 0x%" PRIx64,
                before),
            before, block->bytes, block->address);
      else if (status == PTO_OK)
        status = pto_report_set (
            report, PTO_STATUS_OUT_OF_BOUNDS,
            P_ ("a kernel of this run wrote at least %" PRIu64
                " byte past the device buffer of %" PRIu64 " bytes at 0x%" PRIx64,
                "a kernel of this run wrote at least %" PRIu64
                " bytes past the device buffer of %" PRIu64 " bytes at 0x%" PRIx64,
                n),
            n, block->bytes, block->address);
    }
  return status;
}

enum pto_status
pto_device_memory_check (struct pto_device_memory *memory, struct pto_report *report)
{
  enum pto_status status = check_all (memory, memory->blocks, memory->n_blocks, report);
  enum pto_status left = check_all (memory, memory->leaving, memory->n_leaving, report);

  return status == PTO_OK ? left : status;
}

void
pto_device_memory_clear (struct pto_device_memory *memory)
{
  pto_device_memory_free_all (memory);
  give_all (memory, memory->gone, memory->n_gone);
  free (memory->blocks);
  free (memory->leaving);
  free (memory->gone);
  memory->blocks = memory->leaving = memory->gone = NULL;
  memory->n_blocks = memory->capacity = memory->leaving_capacity = 0;
  memory->n_gone = memory->gone_capacity = 0;
  memory->gone_bytes = memory->gone_space = 0;
}
