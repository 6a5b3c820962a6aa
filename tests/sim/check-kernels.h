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
  DO_OWN /* the kernel's own stack, static and allocated memory */
};

/* n bytes, one by one, from so many behind the first element of the view of argument arg. In units
 * of the block's number, and of so many bytes for each. */
#define DO(what, arg, offset, n)                                                           \
  ((uint64_t) (what) << 56 | (uint64_t) (arg) << 48 | (uint64_t) ((offset) + 0x8000) << 32 \
   | (uint64_t) (uint32_t) (n))
#define DO_BY_BLOCK(what, arg, bytes) (DO (what, arg, 0, bytes) | UINT64_C (0x80) << 56)

void check_touch_1 (int64_t *args);
void check_touch_2 (int64_t *args);
void check_touch_3 (int64_t *args);
/* The float at args[1] is twice the one at args[0]; not checked. */
void check_plain (int64_t *args);
