/* api-test.c: do orchestrations written for the API, in C and in C++, do the same?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "api-test.h"
#include "sim-test.h"

#include <string.h>

/* --- kernels --- */

static float *
element (int64_t *args, int index, uint64_t i, uint64_t j)
{
  const TensorData *t = sim_tensor (args, index);

  return (float *) sim_data (args, index) + i * t->strides[0] + j * t->strides[1];
}

static void
kernel_add (int64_t *args)
{
  const TensorData *t = sim_tensor (args, 2);

  for (uint64_t i = 0; i < t->shapes[0]; i++)
    for (uint64_t j = 0; j < t->shapes[1]; j++)
      *element (args, 2, i, j) = *element (args, 0, i, j) + *element (args, 1, i, j);
}

static void
kernel_take_in (int64_t *args)
{
  const TensorData *t = sim_tensor (args, 0);

  for (uint64_t i = 0; i < t->shapes[0]; i++)
    for (uint64_t j = 0; j < t->shapes[1]; j++)
      *element (args, 0, i, j) += *element (args, 1, i, j);
}

static void
kernel_matmul (int64_t *args)
{
  const TensorData *a = sim_tensor (args, 0);
  const TensorData *c = sim_tensor (args, 2);

  for (uint64_t i = 0; i < c->shapes[0]; i++)
    for (uint64_t j = 0; j < c->shapes[1]; j++)
      {
        float sum = 0;

        for (uint64_t k = 0; k < a->shapes[1]; k++)
          sum += *element (args, 0, i, k) * *element (args, 1, k, j);
        *element (args, 2, i, j) = sum;
      }
}

static void
kernel_scale (int64_t *args)
{
  const TensorData *t = sim_tensor (args, 1);
  float factor;

  memcpy (&factor, &args[2], sizeof factor);
  for (uint64_t i = 0; i < t->shapes[0]; i++)
    for (uint64_t j = 0; j < t->shapes[1]; j++)
      *element (args, 1, i, j) = *element (args, 0, i, j) * factor;
}

static uint32_t types_seen;
static uint64_t bytes_seen[PTO_DTYPE_COUNT];

static void
kernel_types (int64_t *args)
{
  for (int64_t i = 0; i < args[0]; i++)
    {
      const TensorData *t = sim_tensor (args, (int) (1 + i));

      if ((int64_t) (uint32_t) t->dtype == i && t->ndims == 5 && t->shapes[4] == 3)
        types_seen++;
      bytes_seen[i] = t->buffer.size;
    }
}

static const struct pto_kernel kernels[] = {
  [API_ADD] = { "add", kernel_add, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [API_MATMUL] = { "matmul", kernel_matmul, PTO_CORE_TYPE_AIC, { .base_ns = 100 } },
  [API_SCALE] = { "scale", kernel_scale, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [API_TYPES] = { "types", kernel_types, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
  [API_TAKE_IN] = { "take_in", kernel_take_in, PTO_CORE_TYPE_AIV, { .base_ns = 100 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

/* --- running --- */

typedef float Square[API_SIDE][API_SIDE];

struct call
{
  int (*entry) (PTO2Runtime *rt, uint64_t *args, int n);
  uint64_t args[API_N_ARGS];
  int n;
  Square a, b, out;
};

static int
orchestrate (PTO2Runtime *rt, void *data)
{
  struct call *call = data;

  return call->entry (rt, call->args, call->n);
}

static struct call *
new_call (int (*entry) (PTO2Runtime *, uint64_t *, int), int n)
{
  struct call *call = g_new0 (struct call, 1);

  call->entry = entry;
  call->n = n;
  for (int i = 0; i < API_SIDE; i++)
    for (int j = 0; j < API_SIDE; j++)
      {
        call->a[i][j] = (float) (i * 3 - j);
        call->b[i][j] = (float) (i + 2 * j + 1);
      }
  call->args[API_ARG_A] = (uint64_t) (uintptr_t) call->a;
  call->args[API_ARG_B] = (uint64_t) (uintptr_t) call->b;
  call->args[API_ARG_OUT] = (uint64_t) (uintptr_t) call->out;
  call->args[API_ARG_N] = 5;
  return call;
}

static void
note_log (void *data, int32_t level, const char *message)
{
  g_string_append_printf (data, "%d %s\n", level, message);
}

/* p = a^T b; of the flat p the second half, as 4 x 8, is added to the rows 2 to 5 of b into rows 0
 * to 3 of out; rows 4 to 7 of out are rows 0 to 3 times 0.5. All of it n times, with the same
 * result. */
static void
test_orchestration (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=16");
  struct call *call = new_call (aicpu_orchestration_entry, API_N_ARGS);
  GString *log = g_string_new (NULL);
  struct pto_run_stats stats;

  g_assert_cmpint (aicpu_orchestration_config (call->args, API_N_ARGS).expected_arg_count, ==,
                   API_N_ARGS);
  pto_chip_set_log (chip, note_log, log);
  sim_record (chip, &program, orchestrate, call, &stats);
  sim_assert_trace (chip, &stats);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < API_SIDE; j++)
      {
        float p = 0;

        for (int k = 0; k < API_SIDE; k++)
          p += call->a[k][i + 4] * call->b[k][j];
        g_assert_cmpfloat (call->out[i][j], ==, p + call->b[i + 2][j]);
        g_assert_cmpfloat (call->out[i + 4][j], ==, call->out[i][j] * 0.5f);
      }
  g_assert_cmpuint (stats.tasks, ==, 15);
  g_assert_cmpuint (stats.ring_tasks[1], ==, 10);
  g_assert_cmpuint (stats.ring_tasks[2], ==, 5);
  /* matmul-add, add-scale; the next round: WAW on the rows that add writes, WAR with scale's
   * reading of them, WAW on what scale writes. */
  g_assert_cmpuint (stats.edges, ==, 5 * 2 + 4 * 3);
  g_assert_cmpstr (log->str, ==, "2 5 rounds in scopes\n");
  g_string_free (log, TRUE);
  g_free (call);
  pto_chip_free (chip);
}

static void
test_wrong_argument_count (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct call *call = new_call (aicpu_orchestration_entry, 3);

  sim_run_fails (chip, &program, orchestrate, call, PTO_STATUS_EXPLICIT,
                 "the orchestration returned -1", NULL);
  g_free (call);
  pto_chip_free (chip);
}

static void
count_scope (const struct pto_trace_record *record, void *data)
{
  int *n = data;

  n[record->extra & 1]++;
  n[2] = MAX (n[2], (int) record->detail);
}

static void
test_leave_scopes (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (int how = 0; how < 4; how++)
    {
      struct call *call = new_call (api_leave_scopes, how);
      struct pto_run_stats stats;
      int scopes[3] = { 0 };

      sim_trace_each (sim_record (chip, &program, orchestrate, call, &stats), PTO_TRACE_SCOPE,
                      count_scope, scopes);
      /* Every scope that was opened was left, before the task behind it. */
      g_assert_cmpint (scopes[1], ==, scopes[0]);
      g_assert_cmpint (scopes[1], >=, 3);
      g_assert_cmpint (scopes[2], ==, 2);
      g_assert_cmpuint (stats.ring_tasks[0], ==, 1);
      g_assert_cmpuint (stats.ring_tasks[3], ==, 0);
      g_free (call);
    }
  pto_chip_free (chip);
}

static void
test_every_type (enum pto_backend backend)
{
  static const uint64_t sizes[] = { 4, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 1, 1, 1 };
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct call *call = new_call (api_every_type, 0);

  types_seen = 0;
  sim_run (chip, &program, orchestrate, call, NULL);
  g_assert_cmpuint (types_seen, ==, PTO_DTYPE_COUNT);
  for (int i = 0; i < PTO_DTYPE_COUNT; i++)
    g_assert_cmpuint (bytes_seen[i], ==, 6 * sizes[i]);
  g_free (call);
  pto_chip_free (chip);
}

static void
test_commute (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct call *call = new_call (api_commute, 40);
  struct pto_run_stats stats;

  sim_run (chip, &program, orchestrate, call, &stats);
  g_assert_cmpuint (stats.tasks, ==, 40);
  g_assert_cmpuint (stats.edges, ==, 0);
  for (int i = 0; i < API_SIDE; i++)
    for (int j = 0; j < API_SIDE; j++)
      g_assert_cmpfloat (call->out[i][j], ==, 40 * call->a[i][j]);
  g_free (call);
  pto_chip_free (chip);
}

static void
test_reduce (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct call *call = new_call (api_reduce, 40);
  struct pto_run_stats stats;

  sim_run (chip, &program, orchestrate, call, &stats);
  g_assert_cmpuint (stats.tasks, ==, 3 * 40);
  for (int i = 0; i < API_SIDE; i++)
    for (int j = 0; j < API_SIDE; j++)
      g_assert_cmpfloat (call->out[i][j], ==, 40 * call->a[i][j]);
  g_free (call);
  pto_chip_free (chip);
}

static void
test_bad_tensors (enum pto_backend backend)
{
  static const uint32_t expected[] = { PTO2_TENSOR_OUT_OF_BOUNDS,
                                       PTO2_TENSOR_BAD_RESHAPE,
                                       PTO2_TENSOR_BAD_RESHAPE,
                                       PTO2_TENSOR_BAD_TRANSPOSE,
                                       PTO2_TENSOR_BAD_SHAPE,
                                       PTO2_TENSOR_OUT_OF_BOUNDS,
                                       PTO2_TENSOR_OK };
  struct call *call = new_call (NULL, 0);

  for (gsize i = 0; i < G_N_ELEMENTS (expected); i++)
    g_assert_cmpuint (api_bad_tensor (call->args, (int) i), ==, expected[i]);
  g_free (call);
}

static void
test_describe (enum pto_backend backend)
{
  struct call *call = new_call (NULL, 0);
  char text[200];
  char *wanted;

  call->args[API_ARG_A] = 0x1000;
  g_assert_cmpuint (api_describe (call->args, text, sizeof text), ==, 4);
  wanted = g_strdup ("float32 [2, 8] strides [8, 1] offset 24 in 256 bytes at 0x1000");
  g_assert_cmpstr (text, ==, wanted);
  /* What fits, like snprintf(). */
  for (size_t size = 1; size <= strlen (wanted) + 1; size++)
    {
      api_describe (call->args, text, size);
      g_assert_cmpuint (strlen (text), ==, size - 1);
      g_assert_cmpint (strncmp (text, wanted, size - 1), ==, 0);
    }
  g_free (wanted);
  g_free (call);
}

/* The place in the message is where the macro stands; and what the message advises works. */
static void
test_deadlock_names_place (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=16");
  struct call *call = new_call (api_hold, 0);
  struct pto_report report = { 0 };
  uint64_t line = 0;
  char *place;

  call->args[0] = (uint64_t) (uintptr_t) &line;
  g_assert_cmpint (pto_chip_run (chip, &program, NULL, orchestrate, call, NULL, &report), ==,
                   PTO_STATUS_TASK_RING);
  g_assert_cmpuint (line, >, 0);
  place = g_strdup_printf ("test-api-%s:%" G_GUINT64_FORMAT, api_language, line);
  sim_assert_says (&report, PTO_STATUS_TASK_RING, place, "task ring 1", "window 16",
                   "Set task-window to 64 or more", NULL);
  pto_chip_free (chip);
  chip = sim_chip (backend, "task-window=64");
  sim_run (chip, &program, orchestrate, call, NULL);
  g_free (place);
  g_free (call);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  static const struct
  {
    const char *behaviour;
    SimTest test;
  } tests[] = {
    { "orchestration", test_orchestration },
    { "wrong-argument-count", test_wrong_argument_count },
    { "leave-scopes", test_leave_scopes },
    { "every-type", test_every_type },
    { "commute", test_commute },
    { "reduce", test_reduce },
    { "bad-tensors", test_bad_tensors },
    { "describe", test_describe },
    { "deadlock-names-place", test_deadlock_names_place },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (tests); i++)
    {
      char *name = g_strdup_printf ("api-%s/%s", api_language, tests[i].behaviour);

      sim_add (name, tests[i].test);
      g_free (name);
    }
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
