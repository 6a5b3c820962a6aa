/* test-errors.c: is bad input refused clearly, and does the first error win?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include <stdatomic.h>
#include <string.h>

static _Atomic uint64_t runs;

static void
kernel_count (int64_t *args)
{
  atomic_fetch_add (&runs, 1);
}

/* Crashes as a debugger's trap would not: by the signal alone. */
static NOT_SANITIZED void
kernel_crash (int64_t *args)
{
  volatile int *nowhere = (volatile int *) (uintptr_t) 8;

  atomic_fetch_add (&runs, 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
  *nowhere = 1;
#pragma GCC diagnostic pop
}

/* Function id 1 is not taken. */
static const struct pto_kernel kernels[] = {
  { "count", kernel_count, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  { NULL, NULL, PTO_CORE_TYPE_AIC, { .base_ns = 0 } },
  { "matmul", kernel_count, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  { "crash", kernel_crash, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };
static const struct pto_program no_program = { NULL, 0 };

static uint64_t word;
static const uint64_t one[] = { 1 };
static const uint64_t square[] = { 4, 4 };

static PTOParam
inout (void)
{
  return make_inout_param (make_tensor_external (&word, one, 1, PTO_DTYPE_UINT64));
}

static void
submit_good (PTO2Runtime *rt)
{
  PTOParam params[] = { inout () };

  pto2_rt_submit_task (rt, 0, AIV, params, 1);
}

/* --- one wrong thing each --- */

/* What a message about the next one is to name. */
static int submit_line;

static int
unknown_kernel (PTO2Runtime *rt, void *data)
{
  PTOParam params[] = { inout () };

  submit_line = __LINE__ + 1;
  pto2_rt_submit_task (rt, *(int32_t *) data, AIV, params, 1);
  submit_good (rt);
  return 0;
}

static int
wrong_worker (PTO2Runtime *rt, void *data)
{
  PTOParam params[] = { inout () };

  pto2_rt_submit_task (rt, 2, *(int32_t *) data, params, 1);
  submit_good (rt);
  return 0;
}

static int
n_params (PTO2Runtime *rt, void *data)
{
  int32_t n = *(int32_t *) data;
  PTOParam *params = g_new (PTOParam, MAX (n, 1));

  for (int32_t i = 0; i < n; i++)
    params[i] = make_scalar_param ((uint64_t) i);
  pto2_rt_submit_task (rt, 0, AIV, params, n);
  g_free (params);
  return 0;
}

static int
no_params (PTO2Runtime *rt, void *data)
{
  pto2_rt_submit_task (rt, 0, AIV, NULL, *(int32_t *) data);
  return 0;
}

static int
submit_tensor (PTO2Runtime *rt, Tensor t, PTOParamType type)
{
  PTOParam params[] = { make_scalar_param (0), make_input_param (t) };

  params[1].type = type;
  pto2_rt_submit_task (rt, 0, AIV, params, 2);
  submit_good (rt);
  return 0;
}

static uint64_t matrix[16];

static Tensor
whole (void)
{
  return make_tensor_external (matrix, square, 2, PTO_DTYPE_UINT64);
}

static int
view_out_of_bounds (PTO2Runtime *rt, void *data)
{
  static const uint64_t part[] = { 2, 3 }, offset[] = { 2, 2 };
  Tensor t = whole ();

  return submit_tensor (rt, pto2_tensor_view (&t, part, offset), PTO_PARAM_INPUT);
}

static int
view_offset_wraps (PTO2Runtime *rt, void *data)
{
  static const uint64_t part[] = { 2, 2 }, offset[] = { UINT64_MAX, 0 };
  Tensor t = whole ();

  return submit_tensor (rt, pto2_tensor_view (&t, part, offset), PTO_PARAM_INPUT);
}

static int
bad_reshape (PTO2Runtime *rt, void *data)
{
  static const uint64_t shape[] = { 15 };
  Tensor t = whole ();

  return submit_tensor (rt, pto2_tensor_reshape (&t, shape, 1), PTO_PARAM_INPUT);
}

static int
reshape_of_a_view (PTO2Runtime *rt, void *data)
{
  static const uint64_t part[] = { 4, 2 }, offset[] = { 0, 1 }, shape[] = { 8 };
  Tensor t = whole ();
  Tensor v = pto2_tensor_view (&t, part, offset);

  return submit_tensor (rt, pto2_tensor_reshape (&v, shape, 1), PTO_PARAM_INPUT);
}

static int
bad_transpose (PTO2Runtime *rt, void *data)
{
  Tensor t = whole ();

  return submit_tensor (rt, pto2_tensor_transpose (&t, 0, 2), PTO_PARAM_INPUT);
}

static int
no_dimensions (PTO2Runtime *rt, void *data)
{
  return submit_tensor (rt, make_tensor_external (matrix, square, 0, PTO_DTYPE_UINT64),
                        PTO_PARAM_INPUT);
}

static int
six_dimensions (PTO2Runtime *rt, void *data)
{
  static const uint64_t shape[] = { 1, 1, 1, 1, 1, 1 };

  return submit_tensor (rt, make_tensor_external (matrix, shape, 6, PTO_DTYPE_UINT64),
                        PTO_PARAM_INPUT);
}

static int
zero_extent (PTO2Runtime *rt, void *data)
{
  static const uint64_t shape[] = { 4, 0 };

  return submit_tensor (rt, make_tensor_external (matrix, shape, 2, PTO_DTYPE_UINT64),
                        PTO_PARAM_INPUT);
}

static int
overflowing_shape (PTO2Runtime *rt, void *data)
{
  static const uint64_t shape[] = { UINT64_C (1) << 40, UINT64_C (1) << 40 };

  return submit_tensor (rt, make_tensor_external (matrix, shape, 2, PTO_DTYPE_UINT64),
                        PTO_PARAM_INPUT);
}

static int
unknown_type (PTO2Runtime *rt, void *data)
{
  return submit_tensor (rt, make_tensor_external (matrix, square, 2, PTO_DTYPE_COUNT),
                        PTO_PARAM_INPUT);
}

static int
unknown_parameter (PTO2Runtime *rt, void *data)
{
  return submit_tensor (rt, whole (), (PTOParamType) 77);
}

static int
read_before_written (PTO2Runtime *rt, void *data)
{
  pto2_rt_init_tensor_pool (rt);
  return submit_tensor (rt, make_tensor (square, 2, PTO_DTYPE_UINT64), PTO_PARAM_INPUT);
}

static int
null_tensor (PTO2Runtime *rt, void *data)
{
  return submit_tensor (rt, make_tensor_external (NULL, square, 2, PTO_DTYPE_UINT64),
                        PTO_PARAM_INOUT);
}

static int
made_in_an_ended_scope (PTO2Runtime *rt, void *data)
{
  Tensor t;

  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt)
  {
    PTOParam params[1];

    t = make_tensor (square, 2, PTO_DTYPE_UINT64);
    params[0] = make_output_param (t);
    pto2_rt_submit_task (rt, 0, AIV, params, 1);
  }
  return submit_tensor (rt, t, PTO_PARAM_INPUT);
}

/* The same, and its record has got a new tenant since. */
static int
record_used_again (PTO2Runtime *rt, void *data)
{
  Tensor t;

  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt)
  {
    t = make_tensor (square, 2, PTO_DTYPE_UINT64);
    submit_tensor (rt, t, PTO_PARAM_OUTPUT);
  }
  PTO2_SCOPE (rt)
  {
    submit_tensor (rt, make_tensor (square, 2, PTO_DTYPE_UINT64), PTO_PARAM_OUTPUT);
    submit_tensor (rt, t, PTO_PARAM_INPUT);
  }
  return 0;
}

/* It was made before, and stays. */
static int
output_in_an_ended_scope (PTO2Runtime *rt, void *data)
{
  Tensor t;

  pto2_rt_init_tensor_pool (rt);
  t = make_tensor (square, 2, PTO_DTYPE_UINT64);
  PTO2_SCOPE (rt)
  {
    submit_tensor (rt, t, PTO_PARAM_OUTPUT);
  }
  return submit_tensor (rt, t, PTO_PARAM_INPUT);
}

static int
made_outside (PTO2Runtime *rt, void *data)
{
  return submit_tensor (rt, *(Tensor *) data, PTO_PARAM_OUTPUT);
}

static int
give_back (PTO2Runtime *rt, void *data)
{
  submit_good (rt);
  return *(int *) data;
}

static int
submit_when_done (PTO2Runtime *rt, void *data)
{
  submit_good (rt);
  pto2_rt_orchestration_done (rt);
  submit_good (rt);
  return 0;
}

static int
done_is_enough (PTO2Runtime *rt, void *data)
{
  submit_good (rt);
  pto2_rt_orchestration_done (rt);
  return 0;
}

static int
end_without_begin (PTO2Runtime *rt, void *data)
{
  submit_good (rt);
  pto2_rt_scope_end (rt);
  submit_good (rt);
  return 0;
}

/* *depth scopes beside the outermost. */
static int
nest (PTO2Runtime *rt, void *data)
{
  int depth = *(int *) data;

  for (int i = 0; i < depth; i++)
    pto2_rt_scope_begin (rt);
  submit_good (rt);
  for (int i = 0; i < depth; i++)
    pto2_rt_scope_end (rt);
  submit_good (rt);
  return 0;
}

static int
leave_open (PTO2Runtime *rt, void *data)
{
  pto2_rt_scope_begin (rt);
  submit_good (rt);
  if (*(int *) data == 1)
    return 0;
  pto2_rt_scope_begin_at (rt, __FILE__, __LINE__);
  /* This one ends as it is left. */
  PTO2_SCOPE (rt)
  {
    submit_good (rt);
    return 0;
  }
  return 1;
}

/* --- tests --- */

/* Fails, runs no kernel from the wrong call on, and leaves a chip that works. */
static void
fails (struct pto_chip *chip, SimOrchestration orchestrate, void *data, enum pto_status status,
       const char *says)
{
  sim_run_fails (chip, &program, orchestrate, data, status, says, NULL);
  sim_assert_well (chip);
}

static void
test_submits (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  int32_t ids[] = { -1, 1, 4, INT32_MAX };
  int32_t workers[] = { AIV, -1, 2, 77 };
  struct pto_run_stats stats;
  int32_t n;

  atomic_store (&runs, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (ids); i++)
    {
      char *says;

      fails (chip, unknown_kernel, &ids[i], PTO_STATUS_INVALID_ARGS, "there is no kernel");
      says = g_strdup_printf ("task 0, submitted at test-errors.c:%d: there is no kernel %d; this "
                              "program has 0 (count), 2 (matmul), 3 (crash)",
                              submit_line, ids[i]);
      fails (chip, unknown_kernel, &ids[i], PTO_STATUS_INVALID_ARGS, says);
      g_free (says);
    }
  sim_run_fails (chip, &no_program, unknown_kernel, &ids[1], PTO_STATUS_INVALID_ARGS,
                 "this program has none", NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (workers); i++)
    fails (
        chip, wrong_worker, &workers[i], PTO_STATUS_INVALID_ARGS,
        i == 0
            ? "kernel 2 (matmul) runs on AIC (cube), it was submitted to AIV (vector)"
            : "kernel 2 (matmul) runs on AIC (cube), it was submitted to an unknown worker type");
  n = -1;
  fails (chip, n_params, &n, PTO_STATUS_INVALID_ARGS, "kernel 0 (count): -1 parameters");
  n = 3;
  fails (chip, no_params, &n, PTO_STATUS_INVALID_ARGS, "kernel 0 (count): 3 parameters");
  n = 129;
  fails (chip, n_params, &n, PTO_STATUS_INVALID_ARGS,
         "kernel 0 (count): 129 arguments; a task takes at most 128");
  g_assert_cmpuint (atomic_load (&runs), ==, 0);
  n = 128;
  sim_run (chip, &program, n_params, &n, NULL);
  n = 0;
  sim_run (chip, &program, n_params, &n, NULL);
  sim_run (chip, &program, no_params, &n, &stats);
  g_assert_cmpuint (stats.tasks, ==, 1);
  g_assert_cmpuint (atomic_load (&runs), ==, 3);
  pto_chip_free (chip);
}

static void
test_tensors (enum pto_backend backend)
{
  static const struct
  {
    SimOrchestration orchestrate;
    const char *says;
  } rows[] = {
    { view_out_of_bounds, "argument 1: the view reaches beyond its tensor" },
    { view_offset_wraps, "argument 1: the view reaches beyond its tensor" },
    { bad_reshape,
      "argument 1: reshape() needs a contiguous tensor and the same number of elements" },
    { reshape_of_a_view, "reshape() needs a contiguous tensor" },
    { bad_transpose, "argument 1: transpose() names a dimension that the tensor does not have" },
    { no_dimensions, "a tensor has 1 to 5 dimensions" },
    { six_dimensions, "a tensor has 1 to 5 dimensions" },
    { zero_extent, "a tensor has 1 to 5 dimensions of at least one element" },
    { overflowing_shape, "a tensor has 1 to 5 dimensions" },
    { unknown_type, "the dtype of the tensor is none" },
    { unknown_parameter, "argument 1: unknown kind of parameter" },
    { read_before_written, "argument 1: the tensor has no memory yet: no task has output it" },
    { null_tensor, "argument 1: the tensor has no memory yet" },
    { made_in_an_ended_scope, "argument 1: the tensor was made in a scope that has ended" },
    { record_used_again, "argument 1: the tensor was made in a scope that has ended" },
  };
  struct pto_chip *chip = sim_chip (backend, NULL);
  Tensor outside;

  pto2_current_runtime = NULL;
  outside = make_tensor (square, 2, PTO_DTYPE_UINT64);
  fails (chip, made_outside, &outside, PTO_STATUS_INVALID_ARGS,
         "argument 1: make_tensor() was called outside of an orchestration");
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      sim_run_fails (chip, &program, rows[i].orchestrate, NULL, PTO_STATUS_INVALID_ARGS,
                     "(count), submitted at test-errors.c:", rows[i].says, NULL);
      sim_assert_well (chip);
    }
  sim_run (chip, &program, output_in_an_ended_scope, NULL, NULL);
  pto_chip_free (chip);
}

static void
test_orchestration (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_run_stats stats;
  int value;

  value = 7;
  fails (chip, give_back, &value, PTO_STATUS_EXPLICIT, "the orchestration returned 7");
  value = -3;
  fails (chip, give_back, &value, PTO_STATUS_EXPLICIT, "the orchestration returned -3");
  value = 0;
  sim_run (chip, &program, give_back, &value, NULL);
  fails (chip, submit_when_done, NULL, PTO_STATUS_INVALID_ARGS,
         "kernel 0 (count) was submitted after pto2_rt_orchestration_done()");
  sim_run (chip, &program, done_is_enough, NULL, &stats);
  g_assert_cmpuint (stats.tasks, ==, 1);
  fails (chip, end_without_begin, NULL, PTO_STATUS_INVALID_ARGS,
         "scope_end without a scope_begin at test-errors.c:");
  value = 63;
  sim_run (chip, &program, nest, &value, &stats);
  g_assert_cmpuint (stats.ring_tasks[3], ==, 1);
  g_assert_cmpuint (stats.ring_tasks[0], ==, 1);
  value = 64;
  fails (chip, nest, &value, PTO_STATUS_SCOPE_OVERFLOW,
         "scopes are nested more than 64 deep, by the one opened at test-errors.c:");
  value = 100;
  fails (chip, nest, &value, PTO_STATUS_SCOPE_OVERFLOW,
         "scopes are nested more than 64 deep, by the one opened at test-errors.c:");
  value = 1;
  fails (chip, leave_open, &value, PTO_STATUS_SCOPE_OVERFLOW,
         "but the scope opened at test-errors.c:");
  value = 2;
  sim_run_fails (chip, &program, leave_open, &value, PTO_STATUS_SCOPE_OVERFLOW,
                 "has returned, but the scope opened at test-errors.c:", "still open, 2 in all",
                 NULL);
  pto_chip_free (chip);
}

static void
test_run_config (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_run_config configs[]
      = { { .block_dim = 25 }, { .aicpu_threads = 1 }, { .aicpu_threads = 65 } };
  const char *says[]
      = { "block_dim 25: the chip has 24 clusters",
          "aicpu_thread_num 1: a run needs the orchestrator", "aicpu_thread_num 65" };
  int value = 0;

  atomic_store (&runs, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (configs); i++)
    {
      struct pto_report report = { 0 };

      g_assert_cmpint (pto_chip_run (chip, &program, &configs[i], give_back, &value, NULL, &report),
                       ==, PTO_STATUS_INVALID_ARGS);
      sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, says[i], NULL);
      sim_assert_well (chip);
    }
  g_assert_cmpuint (atomic_load (&runs), ==, 0);
  pto_chip_free (chip);
}

static void
test_new (enum pto_backend backend)
{
  static const struct
  {
    const char *name, *value, *says;
  } rows[] = {
    { "task-window", "15", "task-window: \"15\" is not a power of two from 4 to 16777216" },
    { "task-window", "2", "power of two" },
    { "heap", "512",
      "heap: \"512\" is not a size from 1024 to 1099511627776 bytes; K, M, G and T behind it" },
    { "heap", "2T", "heap: \"2T\" is not a size" },
    { "heap", "4MB", "heap: \"4MB\" is not a size" },
    { "backend", "fast", "par, det or threads" },
    { "aicpu-threads", "1", "at least 2" },
    { "no-such-knob", "1", "there is no parameter \"no-such-knob\"" },
    { "task-windw", "8", "(pto info lists them); did you mean \"task-window\"?" },
    { "pool-map", "16", "there is no parameter \"pool-map\" (pto info lists them)" },
    { "Dep_Pool", "16", "did you mean \"dep-pool\"?" },
    { "baekcnd", "det", "did you mean \"backend\"?" },
  };
  struct pto_report report = { 0 };
  struct pto_params params;

  pto_params_init (&params, 2);
  g_assert_cmpint (pto_params_set (&params, "heap", "1t", &report), ==, PTO_OK);
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      memset (&report, 0, sizeof report);
      pto_params_init (&params, 2);
      g_assert_cmpint (pto_params_set (&params, rows[i].name, rows[i].value, &report), ==,
                       PTO_STATUS_INVALID_ARGS);
      sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, rows[i].says, NULL);
    }
  memset (&report, 0, sizeof report);
  pto_params_init (&params, 2);
  pto_params_set (&params, "clusters", "2", &report);
  pto_params_set (&params, "aicpu-threads", "4", &report);
  g_assert_null (pto_chip_new (pto_platform_find ("a2a3sim"), &params, &report));
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "aicpu-threads 4",
                   "3 schedulers for 2 clusters", NULL);
  pto_chip_free (NULL);
}

/* --- A13: the first error stays --- */

static int
fail_twice (PTO2Runtime *rt, void *data)
{
  bool *seen = data;

  pto2_rt_init_tensor_pool (rt);
  submit_good (rt);
  seen[0] = pto_runtime_has_failed (rt);
  PTO2_SCOPE (rt)
  {
    PTO2_SCOPE (rt)
    {
      submit_good (rt);
      pto_runtime_fail (rt, PTO_STATUS_TENSOR_WAIT, "first %d", 1);
      seen[1] = pto_runtime_has_failed (rt);
      pto_runtime_fail (rt, PTO_STATUS_SYSTEM, "second");
      for (int i = 0; i < 1000; i++)
        submit_good (rt);
      pto2_rt_submit_task (rt, 99, AIV, NULL, 0);
      submit_tensor (rt, make_tensor (square, 2, PTO_DTYPE_UINT64), PTO_PARAM_OUTPUT);
    }
  }
  submit_good (rt);
  return 3;
}

static void
test_first_error_wins (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=16");
  bool seen[2] = { true, false };
  struct pto_report report = { 0 };
  struct pto_run_stats stats;

  atomic_store (&runs, 0);
  g_assert_cmpint (pto_chip_run (chip, &program, NULL, fail_twice, seen, &stats, &report), ==,
                   PTO_STATUS_TENSOR_WAIT);
  g_assert_cmpint (report.status, ==, PTO_STATUS_TENSOR_WAIT);
  g_assert_cmpstr (report.message, ==, "first 1");
  g_assert_false (seen[0]);
  g_assert_true (seen[1]);
  g_assert_cmpuint (stats.tasks, ==, 2);
  g_assert_cmpuint (stats.completed, ==, 2);
  g_assert_cmpuint (atomic_load (&runs), <=, 2);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* A kernel that fails: what depends on it does not run, directly or through others. */
static int
crash_then_consume (PTO2Runtime *rt, void *data)
{
  PTOParam params[] = { inout () };

  pto2_rt_submit_task (rt, 3, AIV, params, 1);
  for (int i = 0; i < 20; i++)
    submit_good (rt);
  return 0;
}

static void
test_failed_kernel_poisons (enum pto_backend backend)
{
  struct pto_chip *chip;

#ifdef SIM_SANITIZED
  g_test_skip ("kernels that crash on purpose");
  return;
#endif
  chip = sim_chip (backend, NULL);
  for (int i = 0; i < 20; i++)
    {
      struct pto_report report = { 0 };
      struct pto_run_stats stats;

      atomic_store (&runs, 0);
      g_assert_cmpint (
          pto_chip_run (chip, &program, NULL, crash_then_consume, NULL, &stats, &report), ==,
          PTO_STATUS_KERNEL_FAULT);
      g_assert_cmpuint (atomic_load (&runs), ==, 1);
      g_assert_cmpuint (stats.completed, ==, stats.tasks);
      g_assert_cmpuint (stats.failed, ==, stats.tasks);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

/* --- cancellation --- */

struct cancelling
{
  _Atomic uint32_t asked;
  uint32_t limit;
};

static bool
cancelled (void *data)
{
  struct cancelling *c = data;

  return ++c->asked >= c->limit;
}

/* Goes on for ever unless it is told to end. */
static int
submit_for_ever (PTO2Runtime *rt, void *data)
{
  while (!pto_runtime_has_failed (rt))
    PTO2_SCOPE (rt)
    {
      submit_good (rt);
    }
  return 0;
}

static void
test_cancellation (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=64");

  for (uint32_t limit = 1; limit < 40; limit += 13)
    {
      struct cancelling c = { .limit = limit };
      struct pto_run_config config = { .cancelled = cancelled, .cancelled_data = &c };
      struct pto_report report = { 0 };
      uint32_t asked;

      g_assert_cmpint (pto_chip_run (chip, &program, &config, submit_for_ever, NULL, NULL, &report),
                       ==, PTO_STATUS_CANCELLED);
      sim_assert_says (&report, PTO_STATUS_CANCELLED, "the run was cancelled", NULL);
      /* By the submitter and by the watcher: both may have heard the same. */
      asked = c.asked;
      g_assert_cmpuint (asked, >=, limit);
      g_assert_cmpuint (asked, <=, limit + 1);
      sim_assert_well (chip); /* and is asked no more */
      g_assert_cmpuint (c.asked, ==, asked);
    }
  pto_chip_free (chip);
}

/* --- log --- */

static void
note_log (void *data, int32_t level, const char *message)
{
  g_string_append_printf (data, "%d:%s;", level, message);
}

static int
say (PTO2Runtime *rt, void *data)
{
  LOG_ERROR (rt, "e %d", 1);
  LOG_WARN (rt, "w");
  LOG_INFO (rt, "%s", "i");
  LOG_DEBUG (rt, "d %s", "%s");
  return 0;
}

static void
test_log (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  GString *text = g_string_new (NULL);

  pto_chip_set_log (chip, note_log, text);
  sim_run (chip, &program, say, NULL, NULL);
  g_assert_cmpstr (text->str, ==, "0:e 1;1:w;2:i;3:d %s;");
  g_string_free (text, TRUE);
  pto_chip_free (chip);
}

/* --- memory that may not be written --- */

#define GRID 12u

struct write
{
  PTOParamType type;
  uint64_t rows[2]; /* first, and how many */
  uint64_t columns[2];
  bool other; /* the tensor is another one than the one that may only be read */
};

static uint64_t grid[GRID][GRID], other_grid[GRID][GRID];

static int
submit_write (PTO2Runtime *rt, void *data)
{
  const struct write *write = data;
  const uint64_t whole[] = { GRID, GRID };
  const uint64_t shapes[] = { write->rows[1], write->columns[1] };
  const uint64_t offsets[] = { write->rows[0], write->columns[0] };
  Tensor tensor
      = make_tensor_external (write->other ? other_grid : grid, whole, 2, PTO_DTYPE_UINT64);
  Tensor view = pto2_tensor_view (&tensor, shapes, offsets);
  /* The last is none of the task's. */
  PTOParam params[] = { make_scalar_param (1), pto2_make_param (write->type, &view),
                        pto2_make_param (PTO_PARAM_INOUT, &tensor) };

  pto2_rt_submit_task (rt, 0, AIV, params, 2);
  return 0;
}

/* Every rectangle of a grid against a piece of its memory: an output is refused if its span from
 * the first to the last element meets it, an input never. */
static void
test_read_only (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  /* Something far away; one that may be written; of rows 3 to 5, from the middle to the middle; and
   * one that is not given. */
  const struct pto_chip_arg areas[]
      = { { .word = (uint64_t) (uintptr_t) &other_grid[GRID - 1][GRID - 1], .read_only = 4 },
          { .word = (uint64_t) (uintptr_t) &grid[5][1] },
          { .word = (uint64_t) (uintptr_t) &grid[3][6], .read_only = 2 * sizeof grid[0] },
          { .word = (uint64_t) (uintptr_t) grid, .read_only = sizeof grid } };
  const struct pto_run_config config = { .args = areas, .n_args = 3 };
  static const PTOParamType types[]
      = { PTO_PARAM_OUTPUT, PTO_PARAM_INOUT, PTO_PARAM_OUTPUT_EXISTING, PTO_PARAM_INPUT };
  const uint64_t begin = 3 * GRID + 6, end = begin + 2 * GRID;
  uint32_t n = 0, n_refused = 0;

  atomic_store (&runs, 0);
  for (uint64_t row = 0; row < GRID; row++)
    for (uint64_t column = 0; column < GRID; column += 3)
      for (uint64_t rows = 1; row + rows <= GRID; rows += 4)
        for (uint64_t columns = 1; column + columns <= GRID; columns += 5)
          {
            struct write write
                = { types[n++ % 4], { row, rows }, { column, columns }, n % 16 > 11 };
            uint64_t first = row * GRID + column;
            uint64_t behind = (row + rows - 1) * GRID + column + columns;
            bool meets = write.other ? behind == GRID * GRID : first < end && behind > begin;
            struct pto_report report = { 0 };
            enum pto_status status
                = pto_chip_run (chip, &program, &config, submit_write, &write, NULL, &report);

            if (write.type != PTO_PARAM_INPUT && meets)
              {
                sim_assert_says (&report, PTO_STATUS_INVALID_ARGS,
                                 "kernel 0 (count): argument 1 is an output, but its memory can "
                                 "only be read",
                                 NULL);
                n_refused++;
              }
            else
              {
                g_assert_cmpstr (report.message, ==, "");
                g_assert_cmpint (status, ==, PTO_OK);
              }
          }
  g_assert_cmpuint (n_refused, >, 30);
  g_assert_cmpuint (n - n_refused, >, 30);
  g_assert_cmpuint (atomic_load (&runs), ==, n - n_refused);
  pto_chip_free (chip);
}

/* More kernels than a sentence holds. */
/* --- calls of another thread --- */

typedef struct
{
  PTO2Runtime *rt;
  uint32_t call;
} Elsewhere;

static const char *const calls_elsewhere[]
    = { "pto2_rt_submit_task()",      "pto2_rt_submit()",
        "pto2_rt_scope_begin()",      "pto2_rt_manual_scope_begin()",
        "pto2_rt_scope_end()",        "pto2_rt_get_element()",
        "pto2_rt_allocate_cluster()", "pto2_rt_orchestration_done()",
        "pto2_rt_device_malloc()",    "pto2_rt_submit()" };

static gpointer
call_elsewhere (gpointer data)
{
  const Elsewhere *elsewhere = data;
  PTO2Runtime *rt = elsewhere->rt;
  PTOParam params[] = { inout () };
  uint64_t value;

  switch (elsewhere->call)
    {
    case 0:
      (pto2_rt_submit_task) (rt, 0, AIV, params, 1);
      break;
    case 1:
      g_assert_true ((pto2_rt_submit_order) (rt, params, 1, NULL, 0) == PTO2_TASK_NONE);
      break;
    case 2:
      rt->ops->scope_begin (rt, NULL, 0);
      break;
    case 3:
      rt->ops->manual_scope_begin (rt, NULL, 0);
      break;
    case 4:
      rt->ops->scope_end (rt);
      break;
    case 5:
      g_assert_false (
          (pto2_rt_get_element) (rt, &params[0].tensor, (const uint64_t[]){ 0 }, &value));
      break;
    case 6:
      g_assert_cmpint (rt->ops->allocate_cluster (rt), ==, -1);
      break;
    case 7:
      rt->ops->orchestration_done (rt);
      break;
    case 8:
      g_assert_null (rt->ops->device_malloc (rt, 64));
      break;
    default:
      value = 3;
      (pto2_rt_fill) (rt, &params[0].tensor, &value);
      break;
    }
  return NULL;
}

/* While it waits for the other thread, and while it submits itself. */
static int
submit_elsewhere (PTO2Runtime *rt, void *data)
{
  Elsewhere elsewhere = { rt, *(const uint32_t *) data };
  GThread *thread;

  submit_good (rt);
  thread = g_thread_new ("elsewhere", call_elsewhere, &elsewhere);
  for (uint32_t i = 0; i < 100; i++)
    submit_good (rt);
  rt->ops->log (rt, PTO2_LOG_DEBUG, "it has been %u", elsewhere.call);
  g_thread_join (thread);
  return 0;
}

static void
test_elsewhere (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=2 aicpu-threads=2");

  for (uint32_t call = 0; call < G_N_ELEMENTS (calls_elsewhere); call++)
    {
      sim_run_fails (chip, &program, submit_elsewhere, &call, PTO_STATUS_INVALID_ARGS,
                     calls_elsewhere[call], " is called on another thread than the orchestration's",
                     NULL);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

static void
test_many_kernels (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_kernel many[200];
  const struct pto_program large = { many, G_N_ELEMENTS (many) };
  int32_t id = G_N_ELEMENTS (many);

  for (gsize i = 0; i < G_N_ELEMENTS (many); i++)
    many[i] = (struct pto_kernel){
      "a kernel with a name", kernel_count, PTO_CORE_TYPE_AIV, { .base_ns = 1000 }
    };
  sim_run_fails (chip, &large, unknown_kernel, &id, PTO_STATUS_INVALID_ARGS,
                 "there is no kernel 200; this program has 0 (a kernel with a name), 1 (a kernel ",
                 NULL);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("errors/submits", test_submits);
  sim_add ("errors/tensors", test_tensors);
  sim_add_once ("errors/read-only", test_read_only);
  sim_add_once ("errors/many-kernels", test_many_kernels);
  sim_add ("errors/orchestration", test_orchestration);
  sim_add ("errors/run-config", test_run_config);
  sim_add_once ("errors/new", test_new);
  sim_add ("errors/first-error-wins", test_first_error_wins);
  sim_add ("errors/failed-kernel-poisons", test_failed_kernel_poisons);
  sim_add ("errors/cancellation", test_cancellation);
  sim_add ("errors/elsewhere", test_elsewhere);
  sim_add_once ("errors/log", test_log);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
