/* api-test.h: what do the orchestration in C, the one in C++ and their test share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "../../pto/api/pto_orchestration_api.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /* Function ids. */
  enum
  {
    API_ADD = 0,    /* AIV: a, b -> c */
    API_MATMUL = 1, /* AIC: a, b -> c += a b */
    API_SCALE = 2,  /* AIV: a -> b = a * scalar (a float's bits) */
    API_TYPES = 3,  /* AIV: tensors of every type; the scalar is their number */
    API_TAKE_IN = 4 /* AIV: a, b -> a += b */
  };

#define API_SIDE 8

  /* Arguments of the orchestrations, as an orchestration gets them. */
  enum
  {
    API_ARG_A,   /* float [8][8] */
    API_ARG_B,   /* float [8][8] */
    API_ARG_OUT, /* float [8][8] */
    API_ARG_N,   /* a number */
    API_N_ARGS
  };

  /* In the language of the test. */
  extern const char api_language[];
  /* What it computes stands in api-test.c, at test_orchestration(). Exported as orchestrations are.
   */
  __attribute__ ((visibility ("default"))) PTO2OrchestrationConfig
  aicpu_orchestration_config (uint64_t *args, int arg_count);
  __attribute__ ((visibility ("default"))) int
  aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count);
  /* Leaves scopes by break, by continue, by goto or by return; between them a task in the outermost
   * scope. */
  int api_leave_scopes (PTO2Runtime *rt, uint64_t *args, int how);
  /* Submits one task with a tensor of each type. */
  int api_every_type (PTO2Runtime *rt, uint64_t *args, int unused);
  /* Adds A to OUT that often, in any order. */
  int api_commute (PTO2Runtime *rt, uint64_t *args, int n);
  /* The same in copies of OUT. */
  int api_reduce (PTO2Runtime *rt, uint64_t *args, int n);
  /* The statuses of tensors that can not be: PTO2_TENSOR_*, by case; PTO2_TENSOR_OK beyond the
   * last. */
  uint32_t api_bad_tensor (uint64_t *args, int which);
  /* What a view of 2 x 8 elements at (3, 0) of the argument A says of itself; gives the size of its
   * elements. */
  uint64_t api_describe (uint64_t *args, char text[], size_t size);
  /* Holds 40 tasks in a scope; the scope stands in line *args[0]. */
  int api_hold (PTO2Runtime *rt, uint64_t *args, int unused);

#ifdef __cplusplus
}
#endif
