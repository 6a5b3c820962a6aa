/* pto_reference.h: how an example gives its inputs and what it expects.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * `pto run DIR` compiles the reference named in DIR/pto.ini and calls, for every case, two
 * functions with C linkage:
 *
 *   int pto_reference_inputs (PTO2Case *c);
 *   int pto_reference_compute (PTO2Case *c);
 *
 * The first declares the orchestration's arguments in order and fills the inputs; the second fills
 * what is expected of each output.
 *
 * Both give 0, or another value after pto_case_fail(). Valid C17 and C++17; depends on nothing but
 * libc and libm.
 */
#pragma once

#include "tensor.h"

#ifdef __cplusplus
extern "C"
{
#endif

  typedef struct PTO2Case PTO2Case;

  typedef struct PTO2CaseOps
  {
    size_t size;
    /* The value of a key of the case in the manifest, or the fallback; text keys give NULL when
     * they are missing. */
    int64_t (*integer) (PTO2Case *c, const char *key, int64_t fallback);
    double (*real) (PTO2Case *c, const char *key, double fallback);
    const char *(*text) (PTO2Case *c, const char *key);
    /* Appends an array argument (passed on as its device address) and gives its memory, zeroed, to
     * be filled; NULL when it can not be had. An output is compared with expected() after the run.
     */
    void *(*array) (PTO2Case *c, const char *name, DataType dtype, uint32_t ndims,
                    const uint64_t shape[], bool output);
    /* Appends a scalar argument. */
    void (*scalar) (PTO2Case *c, const char *name, uint64_t value);
    /* The memory of an array argument: as filled in by pto_reference_inputs(). */
    const void *(*input) (PTO2Case *c, const char *name);
    /* Where pto_reference_compute() puts what is expected of an output: shape and type of that
     * output. */
    void *(*expected) (PTO2Case *c, const char *name);
    /* Records why the case can not be made. */
    void (*fail) (PTO2Case *c, const char *message);
  } PTO2CaseOps;

  struct PTO2Case
  {
    const PTO2CaseOps *ops;
  };

  static inline int
  pto_case_fail (PTO2Case *c, const char *message)
  {
    c->ops->fail (c, message);
    return -1;
  }

#ifdef __cplusplus
} /* extern "C" */
#endif
