/* reference-cases.c: what does a reference get from the program, and what if it asks for too much?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The key "do" of the case says what to do; a wrong answer is the reason that the case fails.
 */
#include "pto_reference.h"

#include <string.h>

#define WANT(what) \
  if (!(what))     \
  return pto_case_fail (c, "not so: " #what)

__attribute__ ((visibility ("default"))) int pto_reference_inputs (PTO2Case *c);
__attribute__ ((visibility ("default"))) int pto_reference_compute (PTO2Case *c);

static const uint64_t shape[2] = { 2, 3 };

static int
is_zero (const void *memory, size_t size)
{
  const char *bytes = memory;

  for (size_t i = 0; i < size; i++)
    if (bytes[i] != 0)
      return 0;
  return 1;
}

static int
read_keys (PTO2Case *c)
{
  WANT (c->ops->size == sizeof *c->ops);
  WANT (c->ops->integer (c, "whole", 5) == -12);
  WANT (c->ops->integer (c, "largest", 5) == INT64_MAX);
  WANT (c->ops->integer (c, "absent", 5) == 5);
  WANT (c->ops->real (c, "real", 0.5) == -2.25);
  WANT (c->ops->real (c, "whole", 0.5) == -12);
  WANT (c->ops->real (c, "absent", 0.5) == 0.5);
  WANT (strcmp (c->ops->text (c, "words"), "two words") == 0);
  WANT (c->ops->text (c, "absent") == NULL);
  return 0;
}

static int
make_arrays (PTO2Case *c)
{
  float *in = c->ops->array (c, "in", PTO_DTYPE_FLOAT32, 2, shape, false);
  const uint64_t long_shape[5] = { 1, 2, 3, 4, 5 };
  unsigned char *out = c->ops->array (c, "out", PTO_DTYPE_UINT8, 5, long_shape, true);

  WANT (in != NULL && is_zero (in, 24));
  WANT (out != NULL && is_zero (out, 120));
  in[5] = 7;
  c->ops->scalar (c, "n", 42);
  WANT (c->ops->input (c, "in") == in);
  WANT (c->ops->input (c, "out") == out);
  return 0;
}

static int
compute (PTO2Case *c)
{
  const float *in = c->ops->input (c, "in");
  unsigned char *expected = c->ops->expected (c, "out");

  WANT (in != NULL && in[5] == 7);
  WANT (expected != NULL && is_zero (expected, 120));
  expected[119] = 9;
  WANT (c->ops->expected (c, "out") == expected);
  return 0;
}

int
pto_reference_inputs (PTO2Case *c)
{
  const uint64_t huge[2] = { UINT64_C (1) << 62, 8 };
  const uint64_t larger[2] = { UINT64_C (1) << 32, UINT64_C (1) << 31 };
  const uint64_t none[2] = { 3, 0 };
  const char *what = c->ops->text (c, "do");

  if (strcmp (what, "keys") == 0 && read_keys (c) != 0)
    return -1;
  if (strcmp (what, "status") == 0)
    return 3;
  if (strcmp (what, "fail") == 0)
    {
      pto_case_fail (c, "the first reason");
      return pto_case_fail (c, "another");
    }
  if (strcmp (what, "integer") == 0)
    WANT (c->ops->integer (c, "words", 8) == 8);
  if (strcmp (what, "too-large") == 0)
    WANT (c->ops->integer (c, "beyond", 8) == 8);
  if (strcmp (what, "real") == 0)
    WANT (c->ops->real (c, "words", 8) == 8);
  if (strcmp (what, "more-than-real") == 0)
    WANT (c->ops->real (c, "more", 8) == 8);
  if (strcmp (what, "dtype") == 0)
    WANT (c->ops->array (c, "x", (DataType) 99, 2, shape, false) == NULL);
  if (strcmp (what, "dims-0") == 0)
    WANT (c->ops->array (c, "x", PTO_DTYPE_INT8, 0, shape, false) == NULL);
  if (strcmp (what, "dims-6") == 0)
    WANT (c->ops->array (c, "x", PTO_DTYPE_INT8, 6, shape, false) == NULL);
  if (strcmp (what, "none") == 0)
    WANT (c->ops->array (c, "x", PTO_DTYPE_INT8, 2, none, false) == NULL);
  if (strcmp (what, "huge") == 0)
    WANT (c->ops->array (c, "x", PTO_DTYPE_INT8, 2, huge, false) == NULL);
  if (strcmp (what, "larger") == 0)
    WANT (c->ops->array (c, "x", PTO_DTYPE_INT8, 2, larger, false) == NULL);
  if (strcmp (what, "nothing") == 0)
    return 0;
  if (make_arrays (c) != 0)
    return -1;
  if (strcmp (what, "twice") == 0)
    WANT (c->ops->array (c, "n", PTO_DTYPE_INT8, 2, shape, false) == NULL);
  if (strcmp (what, "scalar-twice") == 0)
    c->ops->scalar (c, "in", 1);
  if (strcmp (what, "no-input") == 0)
    WANT (c->ops->input (c, "elsewhere") == NULL);
  if (strcmp (what, "scalar-input") == 0)
    WANT (c->ops->input (c, "n") == NULL);
  return 0;
}

int
pto_reference_compute (PTO2Case *c)
{
  const char *what = c->ops->text (c, "do");

  if (strcmp (what, "nothing") == 0 || strcmp (what, "unsaid") == 0)
    return 0;
  if (strcmp (what, "compute-status") == 0)
    return -4;
  if (strcmp (what, "late-array") == 0)
    WANT (c->ops->array (c, "x", PTO_DTYPE_INT8, 2, shape, false) == NULL);
  if (strcmp (what, "late-scalar") == 0)
    c->ops->scalar (c, "x", 1);
  if (strcmp (what, "no-output") == 0)
    WANT (c->ops->expected (c, "elsewhere") == NULL);
  if (strcmp (what, "input-output") == 0)
    WANT (c->ops->expected (c, "in") == NULL);
  if (strcmp (what, "scalar-output") == 0)
    WANT (c->ops->expected (c, "n") == NULL);
  return compute (c);
}
