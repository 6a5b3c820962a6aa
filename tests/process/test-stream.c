/* test-stream.c: does what goes into a stream of commands come out of it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Writer and reader are one thread here; how they meet is what test-stream-explore.c looks at.
 */
#include "../../pto/process/command-stream.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#define N 8

struct seen
{
  PTOParam params[N];
  int32_t kernel, worker_type, n;
};

static struct seen seen[4];
static uint32_t n_seen;

static PTO2TaskId
submit_task (PTO2Runtime *rt, int32_t kernel, int32_t worker_type, PTOParam *params, int32_t n)
{
  struct seen *one = &seen[n_seen++];

  g_assert_cmpuint (n_seen, <=, G_N_ELEMENTS (seen));
  one->kernel = kernel;
  one->worker_type = worker_type;
  one->n = n;
  if (n <= N)
    memcpy (one->params, params, (size_t) n * sizeof *params);
  return 0;
}

static const PTO2RuntimeOps ops = { .size = sizeof ops, .submit_task = submit_task };
static PTO2Runtime runtime = { .ops = &ops };

static bool
has_failed (PTO2Runtime *rt)
{
  return false;
}

static void
ring (void *data)
{
}

static void
replay (struct pto_stream_writer *writer)
{
  const struct pto_stream_target target
      = { .rt = &runtime, .has_failed = has_failed, .ring = ring };

  n_seen = 0;
  pto_stream_put (writer, PTO_COMMAND_END, &(struct pto_said){ .a = 7 });
  g_assert_cmpint (pto_stream_replay (writer->stream, &target), ==, 7);
}

static void
assert_same (const Tensor *got, const Tensor *given)
{
  g_assert_cmpint (got->status, ==, given->status);
  g_assert_cmphex (got->buffer.addr, ==, given->buffer.addr);
  g_assert_cmpuint (got->buffer.size, ==, given->buffer.size);
  g_assert_cmpuint (got->start_offset, ==, given->start_offset);
  g_assert_cmpuint (got->ndims, ==, given->ndims);
  g_assert_cmpint (got->dtype, ==, given->dtype);
  for (uint32_t d = 0; d < given->ndims; d++)
    {
      g_assert_cmpuint (got->shapes[d], ==, given->shapes[d]);
      g_assert_cmpuint (got->strides[d], ==, given->strides[d]);
    }
}

/* Tensors of every number of dimensions, and of more than there can be: such a one comes as what it
 * is, and what stands behind it is there. */
static void
test_params (void)
{
  static const uint32_t too_many[] = { PTO2_TENSOR_MAX_DIMS + 1, 1000, UINT32_MAX };
  struct pto_stream *stream = aligned_alloc (64, (pto_stream_size () + 63) & ~(gsize) 63);
  struct pto_stream_writer writer;

  memset (stream, 0, pto_stream_size ());
  for (uint32_t ndims = 0; ndims <= PTO2_TENSOR_MAX_DIMS + G_N_ELEMENTS (too_many); ndims++)
    {
      Tensor good = { .buffer = { 0x1000, 77 },
                      .start_offset = 3,
                      .ndims = MIN (ndims, PTO2_TENSOR_MAX_DIMS),
                      .dtype = PTO_DTYPE_INT16 };
      Tensor given = good;
      PTOParam params[3];

      for (uint32_t d = 0; d < good.ndims; d++)
        {
          good.shapes[d] = 10 + d;
          good.strides[d] = 20 + d;
        }
      given = good;
      if (ndims > PTO2_TENSOR_MAX_DIMS)
        given.ndims = too_many[ndims - PTO2_TENSOR_MAX_DIMS - 1];
      params[0] = make_inout_param (given);
      params[1] = make_scalar_param (42);
      params[2] = make_input_param (good);
      pto_stream_begin (&writer, stream);
      pto_stream_put (&writer, PTO_COMMAND_SUBMIT,
                      &(struct pto_said){ .submit = pto2_make_submit (5, 1, params, 3) });
      /* More than a command can hold: only that many is said. */
      pto_stream_put (
          &writer, PTO_COMMAND_SUBMIT,
          &(struct pto_said){ .submit = pto2_make_submit (6, 0, params, PTO_STREAM_PARAMS + 1) });
      replay (&writer);
      g_assert_cmpuint (n_seen, ==, 2);
      g_assert_cmpint (seen[0].kernel, ==, 5);
      g_assert_cmpint (seen[0].worker_type, ==, 1);
      g_assert_cmpint (seen[0].n, ==, 3);
      g_assert_cmpint (seen[0].params[0].type, ==, PTO_PARAM_INOUT);
      g_assert_cmpint (seen[0].params[1].type, ==, PTO_PARAM_SCALAR);
      g_assert_cmpuint (seen[0].params[1].scalar, ==, 42);
      if (ndims > PTO2_TENSOR_MAX_DIMS)
        {
          given.ndims = 0;
          given.status = PTO2_TENSOR_BAD_SHAPE;
        }
      assert_same (&seen[0].params[0].tensor, &given);
      g_assert_cmpint (seen[0].params[2].type, ==, PTO_PARAM_INPUT);
      assert_same (&seen[0].params[2].tensor, &good);
      g_assert_cmpint (seen[1].kernel, ==, 6);
      g_assert_cmpint (seen[1].n, ==, PTO_STREAM_PARAMS + 1);
    }
  free (stream);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/stream/params", test_params);
  return g_test_run ();
}
