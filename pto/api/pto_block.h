/* pto_block.h: which part of its task is a kernel?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A task may be one kernel that runs as many blocks (SPMD), or kernels for the cube core and the
 * vector cores of one cluster (mixed), or blocks of these, or several kernels on cores anywhere,
 * each of which is a block (a group). Every one gets the same arguments, but for groups whose
 * members have their own; args, as the kernel got it, says which one it is. Valid C17 and C++17.
 * Thread safety: on the thread that runs the kernel. Source: seed 000 sections 17 and 18.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "pto_limits.h"

/* Conversions, without the casts of C that a compiler of C++ may warn of. */
#ifdef __cplusplus
#define PTO2_NUMBER_(type, value) (static_cast<type> (value))
#define PTO2_POINTER_(type, address) (reinterpret_cast<type> (address))
#else
#define PTO2_NUMBER_(type, value) ((type) (value))
#define PTO2_POINTER_(type, address) ((type) (address))
#endif

#ifdef __cplusplus
extern "C"
{
#endif

/* What stands before args[0]: the block's number, how many there are, and which of the vector cores
 * of its cluster it is. */
#define PTO_BLOCK_WORD(idx, num, sub) \
  ((uint64_t) (idx) | (uint64_t) (num) << 28 | (uint64_t) (sub) << 56)
/* Of an ordinary task. */
#define PTO_BLOCK_ALONE PTO_BLOCK_WORD (0, 1, 0)

  /* 0 to get_block_num() - 1. */
  static inline uint32_t
  get_block_idx (const int64_t *args)
  {
    return PTO2_NUMBER_ (uint32_t, PTO2_NUMBER_ (uint64_t, args[-1]) & PTO_MAX_BLOCKS);
  }

  /* 1 in a task that has no blocks. */
  static inline uint32_t
  get_block_num (const int64_t *args)
  {
    return PTO2_NUMBER_ (uint32_t, PTO2_NUMBER_ (uint64_t, args[-1]) >> 28 & PTO_MAX_BLOCKS);
  }

  /* 1 in the kernel for the second vector core of a mixed task; otherwise 0. */
  static inline uint32_t
  get_sub_block_id (const int64_t *args)
  {
    return PTO2_NUMBER_ (uint32_t, PTO2_NUMBER_ (uint64_t, args[-1]) >> 56);
  }

/* Pipes of a cluster, by number from 0 on. */
#define PTO2_PIPES 8u

  /* The calls that a kernel may make. New entries are appended. */
  typedef struct PTO2KernelOps
  {
    size_t size;
    void (*push) (const int64_t *args, uint32_t pipe, const void *data, uint64_t bytes);
    void (*pop) (const int64_t *args, uint32_t pipe, void *data, uint64_t bytes);
    void (*sync_all) (const int64_t *args);
    void (*relax) (const int64_t *args);
  } PTO2KernelOps;

  typedef struct PTO2KernelServices
  {
    const PTO2KernelOps *ops;
  } PTO2KernelServices;

  static inline const PTO2KernelOps *
  pto_kernel_services (const int64_t *args)
  {
    return PTO2_POINTER_ (const PTO2KernelServices *, args[-2])->ops;
  }

  /* Puts a copy of that many bytes into a pipe of the cluster, and waits while it is full (the
   * parameter pipe-depth). A mixed task has pipes of its own for each block, empty at first; tasks
   * for an allocated cluster share that cluster's as long as it is held. Where nobody will ever
   * take what is there the run fails and says who waits for whom. The kernel does not come back
   * then. Entries that are left when the block has ended, or when the cluster is given back, fail
   * the run. */
  static inline void
  TPUSH (const int64_t *args, uint32_t pipe, const void *data, uint64_t bytes)
  {
    pto_kernel_services (args)->push (args, pipe, data, bytes);
  }

  /* Takes the oldest entry out of a pipe, and waits while it is empty. bytes is the entry's size.
   */
  static inline void
  TPOP (const int64_t *args, uint32_t pipe, void *data, uint64_t bytes)
  {
    pto_kernel_services (args)->pop (args, pipe, data, bytes);
  }

  /* Waits until all blocks of a task that begins at once (sync_start), all of its kernels, have
   * come here as often. What they wrote before can be read behind it. */
  static inline void
  pto_sync_all (const int64_t *args)
  {
    pto_kernel_services (args)->sync_all (args);
  }

  /* To be called in a loop that waits for what another kernel writes to memory: others run
   * meanwhile, and virtual time passes. */
#ifdef PTO2_ACCESS_RELAX
  static inline __attribute__ ((always_inline)) void
#else
static inline void
#endif
  pto_relax (const int64_t *args)
  {
#ifdef PTO2_ACCESS_RELAX
    PTO2_ACCESS_RELAX;
#endif
    pto_kernel_services (args)->relax (args);
  }

  /* The task's kernels, all of its blocks together, write every byte of its OUTPUT and
   * OUTPUT_EXISTING tensors. A run whose accesses are checked fails if they do not; otherwise it
   * does nothing. */
  static inline void
  pto_writes_all (const int64_t *args)
  {
    (void) args;
#ifdef PTO2_ACCESS_SAY_ALL
    PTO2_ACCESS_SAY_ALL;
#endif
  }

#ifdef __cplusplus
}
#endif
