/* placement-request.h: which places does a submit ask for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Values, which core-placement.h explains and core-placement.c makes come true.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PTO_PLACE_ANY UINT32_MAX
#define PTO_COHORT_NONE UINT32_MAX

/* What a member needs. */
struct pto_need
{
  uint32_t queue;
  uint32_t place; /* a number, or PTO_PLACE_ANY */
  uint32_t kernel;
  /* For the endpoint, not read here: which of its cohort's places of the kind it means. */
  uint32_t sub;
  /* Nor this: which of the task's arguments it gets, so many from that one on; 0: all of them. */
  uint16_t n_args_plus_1;
  uint16_t first_arg;
};

/* What a submit asks for. All members begin at once. */
struct pto_wish
{
  bool together;   /* in one cohort; then no member names its place */
  uint32_t cohort; /* then: in this one, or PTO_COHORT_NONE: in any */
  /* More than 1: so many blocks begin at once, each in a cohort if they are together. Of all their
   * members there are n_members, block by block. */
  uint32_t n_at_once;
  uint32_t n_members;
  const struct pto_need *members; /* of each of its blocks */
};
