/* device-memory.h: the memory of a simulated device, whoever keeps the books.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Blocks that the host asked for, each with guard bytes around it. A chip keeps its own; where the
 * chip is another process, its host keeps them, in memory that both map. Thread safety: one thread
 * at a time.
 */
#pragma once

#include "pto/core/status.h"

#include <stdbool.h>
#include <stdint.h>

/* What lies aside at most: blocks, memory, and addresses unless the owner says less. Larger blocks
 * keep their addresses alone, and give their whole pages back. */
#define PTO_DEVICE_GONE_MAX 256u
#define PTO_DEVICE_GONE_BYTES_MAX (UINT64_C (16) << 20)
#define PTO_DEVICE_GONE_SPACE_MAX (UINT64_C (4) << 30)
/* A block of so many bytes is a larger one. */
#define PTO_DEVICE_EMPTIED_BYTES (UINT64_C (1) << 20)

struct pto_device_block
{
  uint64_t address;
  uint64_t bytes;
  uint64_t kept; /* of them, while it lies aside: bytes that still have memory */
};

struct pto_device_memory
{
  struct pto_device_block *blocks; /* ascending addresses */
  uint32_t n_blocks;
  uint32_t capacity;
  struct pto_device_block *leaving; /* in no order; the program has given them back */
  uint32_t n_leaving;
  uint32_t leaving_capacity;
  /* Given back by the program, the oldest first. They lie aside, so that no other memory has their
   * addresses: a task that is given one is named. */
  struct pto_device_block *gone;
  uint32_t n_gone;
  uint32_t gone_capacity;
  uint64_t gone_bytes; /* that have memory */
  uint64_t gone_space; /* all of them */
  uint64_t space_max;  /* of it; W: the owner, before the first block; 0: nothing lies aside */
  uint32_t guard_bytes;
  /* Memory, 64-byte aligned, or 0; and back, with the bytes that were asked for. */
  uint64_t (*take) (uint64_t bytes);
  void (*give) (uint64_t address, uint64_t bytes);
};

/* take, give: NULL: the C library's. */
void pto_device_memory_init (struct pto_device_memory *memory, uint32_t guard_bytes,
                             uint64_t (*take) (uint64_t bytes),
                             void (*give) (uint64_t address, uint64_t bytes));
/* All blocks were given back: some lie aside. */
void pto_device_memory_free_all (struct pto_device_memory *memory);
/* Gives all of it back. */
void pto_device_memory_clear (struct pto_device_memory *memory);

/* 64-byte aligned; 0 when it is not to be had. */
uint64_t pto_device_memory_malloc (struct pto_device_memory *memory, uint64_t bytes,
                                   struct pto_report *report);
/* An address that malloc did not give is refused. */
enum pto_status pto_device_memory_free (struct pto_device_memory *memory, uint64_t address,
                                        struct pto_report *report);
/* The same, but tasks may still use the block: it is given back by pto_device_memory_settle(). */
enum pto_status pto_device_memory_leave (struct pto_device_memory *memory, uint64_t address,
                                         struct pto_report *report);
/* No task uses any of the blocks that were left. */
void pto_device_memory_settle (struct pto_device_memory *memory);
/* Takes a block out of the books: it is the caller's, stays as it is until somebody calls give
 * (address, bytes), and may outlive the chip. With its guards it begins before *address, which
 * becomes that. */
enum pto_status pto_device_memory_release (struct pto_device_memory *memory, uint64_t *address,
                                           uint64_t *bytes,
                                           void (**give) (uint64_t address, uint64_t bytes),
                                           struct pto_report *report);
/* The range must lie in one block. */
enum pto_status pto_device_memory_copy_to (const struct pto_device_memory *memory, uint64_t device,
                                           const void *host, uint64_t bytes,
                                           struct pto_report *report);
enum pto_status pto_device_memory_copy_from (const struct pto_device_memory *memory, void *host,
                                             uint64_t device, uint64_t bytes,
                                             struct pto_report *report);
/* Was anything written past a block, also one that was left? */
enum pto_status pto_device_memory_check (struct pto_device_memory *memory,
                                         struct pto_report *report);
