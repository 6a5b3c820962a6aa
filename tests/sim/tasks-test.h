/* tasks-test.h: what do the tests of what an orchestration can say of a task share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "sim-test.h"

#include <stdatomic.h>

#define N 64u

enum
{
  STORE,  /* args[0][0] = args[1] */
  SLOW,   /* the same, later */
  ADD,    /* args[0][0] += args[1] */
  SUM,    /* args[0][0] = the sum of args[1 ..] [0], of which there are args[n - 1] */
  COPY,   /* args[1] = args[0], slowly */
  BEYOND, /* writes behind args[0] */
  CRASH,
  UNMAP,  /* the page at args[1] */
  CUBE,   /* nothing, long */
  SPREAD, /* args[2] into all of args[0], which it reads back after a while: args[1][0] += the sum
           */
};

extern const struct pto_program tasks_program;
/* The submit that comes after UNMAP looks at the page, too. On det it has done so by then. */
extern _Atomic bool tasks_submitted;

static const uint64_t one[1] = { 1 };
static const uint64_t first[1] = { 0 };

static inline Tensor
cell (int32_t *value)
{
  return make_tensor_external (value, one, 1, PTO_DTYPE_INT32);
}

#define SUBMIT(rt, kernel, ...)                                            \
  pto2_rt_submit_task ((rt), (kernel), AIV, ((PTOParam[]){ __VA_ARGS__ }), \
                       (int32_t) (sizeof ((PTOParam[]){ __VA_ARGS__ }) / sizeof (PTOParam)))
