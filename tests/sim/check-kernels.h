/* check-kernels.h: kernels that touch what they are told to.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * They are compiled as a worker compiles kernels whose accesses are checked. Behind so many tensors
 * come numbers: what to do, one after the other, until one that is 0.
 */
#pragma once

#include "../../pto/api/pto_access.h"
#include "../../pto/api/tensor.h"

enum
{
  DO_READ = 1,
  DO_WRITE,
  DO_COPY_OUT, /* memcpy() from there into the kernel's own memory */
  DO_COPY_IN,
  DO_SET,
  DO_SYNC, /* pto_sync_all() */
  DO_PUSH, /* to pipe 0 */
  DO_POP,
  DO_ATOMIC, /* adds to a 32-bit number there */
  DO_FAULT,
  DO_OWN,     /* the kernel's own stack, static and allocated memory */
  DO_RAISE,   /* writes 1 to a byte */
  DO_PUBLISH, /* the same, as an atomic operation */
  DO_AWAIT,   /* until that byte is not 0, with pto_relax() */
  DO_AWAIT_ATOMIC,
  DO_ALL,        /* pto_writes_all() */
  DO_LIBRARY,    /* the C library writes bytes, of which each third is 0xa5 */
  DO_THREAD,     /* a thread of the kernel writes 0x5a to each byte, and ends */
  DO_AWAIT_COUNT /* until the 32-bit number there is as many as there are blocks */
};

/* n bytes, one by one, from so many behind the first element of the view of argument arg. In units
 * of the block's number, and of so many bytes for each. */
#define DO(what, arg, offset, n)                                                           \
  ((uint64_t) (what) << 56 | (uint64_t) (arg) << 48 | (uint64_t) ((offset) + 0x8000) << 32 \
   | (uint64_t) (uint32_t) (n))
#define DO_BY_BLOCK(what, arg, bytes) (DO (what, arg, 0, bytes) | UINT64_C (0x80) << 56)

/* Only that block does it. */
#define DO_ONLY(block, what) ((what) | (uint64_t) ((block) + 1) << 24)
/* The same of the first or second vector core of a mixed task. */
#define DO_ONLY_SUB(sub, what) ((what) | (uint64_t) ((sub) + 0x80) << 24)

void check_touch_1 (int64_t *args);
void check_touch_2 (int64_t *args);
void check_touch_3 (int64_t *args);
/* The same of an object that calls pto_relax(). The others cannot wait. */
void check_wait_1 (int64_t *args);
void check_wait_2 (int64_t *args);
void check_wait_3 (int64_t *args);
/* The float at args[1] is twice the one at args[0]; not checked. */
void check_plain (int64_t *args);
