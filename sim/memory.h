/* memory.h: the memory of a simulated device, whoever keeps the books.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Blocks that the host asked for, each with guard bytes behind it. A chip keeps its own; where the
 * chip is another process, its host keeps them, in memory that both map. Thread safety: one thread
 * at a time.
 */
#pragma once

#include "../pto/core/status.h"

#include <stdint.h>

struct pto_device_block
{
  uint64_t address;
  uint64_t bytes;
};

struct pto_device_memory
{
  struct pto_device_block *blocks; /* ascending addresses */
  uint32_t n_blocks;
  uint32_t capacity;
  uint32_t guard_bytes;
  /* Memory, 64-byte aligned, or 0; and back, with the bytes that were asked for. */
  uint64_t (*take) (uint64_t bytes);
  void (*give) (uint64_t address, uint64_t bytes);
};

/* take, give: NULL: the C library's. */
void pto_device_memory_init (struct pto_device_memory *memory, uint32_t guard_bytes,
                             uint64_t (*take) (uint64_t bytes),
                             void (*give) (uint64_t address, uint64_t bytes));
/* Gives all of it back. */
void pto_device_memory_clear (struct pto_device_memory *memory);

/* 64-byte aligned; 0 when it is not to be had. */
uint64_t pto_device_memory_malloc (struct pto_device_memory *memory, uint64_t bytes,
                                   struct pto_report *report);
/* An address that malloc did not give is refused. */
enum pto_status pto_device_memory_free (struct pto_device_memory *memory, uint64_t address,
                                        struct pto_report *report);
/* Takes a block out of the books: it is the caller's, stays as it is until somebody calls give
 * (address, bytes), and may outlive the chip. */
enum pto_status pto_device_memory_release (struct pto_device_memory *memory, uint64_t address,
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
/* Has anybody written behind a block? */
enum pto_status pto_device_memory_check (struct pto_device_memory *memory,
                                         struct pto_report *report);
