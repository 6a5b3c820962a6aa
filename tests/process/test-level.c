/* test-level.c: does a level run its graphs on children, with the dependencies, the memory and the
 * errors that it promises?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"
#include "still.h"

#include "../../pto/process/level-private.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum
{
  ADD,    /* tensors a, b, to: to = a + b, word by word */
  FILL,   /* tensor, scalar */
  COUNT,  /* scalar: counter */
  RANK,   /* any tensors; scalar: number */
  GATE,   /* any tensors; scalar: gate */
  CONFIG, /* checks what it is given */
  ACCESS, /* tensors of each direction; scalar: what each of them says, four bits each */
  WHO     /* scalar: number of a word for who runs it */
};

static uint32_t
add (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  uint64_t n = call->args.tensors[2].shapes[0];

  for (uint64_t i = 0; i < n; i++)
    call_data (call, 2)[i] = call_data (call, 0)[i] + call_data (call, 1)[i];
  return 0;
}

static uint32_t
fill (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  for (uint64_t i = 0; i < call->args.tensors[0].shapes[0]; i++)
    call_data (call, 0)[i] = call_scalar (call, 0);
  return 0;
}

static uint32_t
count (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  atomic_fetch_add (&rig->board->counters[call_scalar (call, 0)], 1);
  return 0;
}

static uint32_t
rank (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  rig->board->ranks[call_scalar (call, 0)] = atomic_fetch_add (&rig->board->order, 1);
  return 0;
}

static uint32_t
gate (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  gate_pass (rig->board, (uint32_t) call_scalar (call, 0));
  return 0;
}

static uint32_t
check_config (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  const struct pto_continuous_tensor *tensor = &call->args.tensors[0];

  if (call->config->block_dim != 1 + CONFIG
      || strcmp (call->config->output_prefix, "prefix 5") != 0)
    return call_fail (failure, PTO_STATUS_INVALID_ARGS, "config");
  if (call->args.tensor_count != 1 || call->args.scalar_count != 2 || tensor->ndims != 2
      || tensor->shapes[0] != 3 || tensor->shapes[1] != 4 || tensor->shapes[2] != 0
      || tensor->dtype != PTO_DTYPE_UINT64 || tensor->access != (PTO_WIRE_READ | PTO_WIRE_WRITE)
      || tensor->data != (uint64_t) (uintptr_t) &rig->board->words[8])
    return call_fail (failure, PTO_STATUS_INVALID_ARGS, "tensor");
  if (call->args.scalars[0] != 17 || call->args.scalars[1] != UINT64_MAX)
    return call_fail (failure, PTO_STATUS_INVALID_ARGS, "scalars");
  atomic_fetch_add (&rig->board->counters[0], 1);
  if (pto_wire_config_check (call->config))
    atomic_fetch_add (&rig->board->counters[1], 1);
  return 0;
}

/* What a worker that does not see the memory would copy. */
static uint32_t
check_access (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  uint64_t said = 0;

  for (int32_t i = 0; i < call->args.tensor_count; i++)
    said |= (uint64_t) call->args.tensors[i].access << (4 * i);
  if (said != call_scalar (call, 0))
    return call_fail (failure, PTO_STATUS_INVALID_ARGS, "access");
  atomic_fetch_add (&rig->board->counters[0], 1);
  return 0;
}

static uint32_t
tell_who (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  rig->board->words[call_scalar (call, 0)] = (uint64_t) gettid ();
  return 0;
}

static const rig_function functions[]
    = { add, fill, count, rank, gate, check_config, check_access, tell_who };

static struct rig *
new_rig (gconstpointer threads, uint32_t chips, uint32_t subs)
{
  return rig_new (&(struct rig_config){ .chips = chips,
                                        .subs = subs,
                                        .threads = GPOINTER_TO_INT (threads) != 0,
                                        .functions = functions });
}

static PTOParam
scalar (uint64_t value)
{
  return make_scalar_param (value);
}

/* --- who runs what --- */

static void
anybody (struct rig *rig, void *data)
{
  SUB (rig, WHO, ANY, scalar (0));
}

static void
the_first (struct rig *rig, void *data)
{
  SUB (rig, WHO, 0, scalar (1));
}

/* Of those that have nothing to do it is the first one, so that the others stay asleep. */
static void
test_first_of_the_idle (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 0, 3);

  rig_run_ok (rig, the_first, NULL);
  for (uint32_t i = 0; i < 7; i++)
    {
      rig_run_ok (rig, anybody, NULL);
      g_assert_cmpuint (rig->board->words[0], ==, rig->board->words[1]);
    }
  rig_free (rig);
}

/* --- two chips and a SUB function --- */

static void
two_chips (struct rig *rig, void *data)
{
  Tensor left = rig_tensor (rig, 1000);
  Tensor right = rig_tensor (rig, 1000);
  Tensor sum = rig_words (rig, 0, 1000);

  CHIP (rig, FILL, 0, make_output_param (left), scalar (3));
  CHIP (rig, FILL, 1, make_output_param (right), scalar (4));
  SUB (rig, ADD, ANY, make_input_param (left), make_input_param (right),
       make_output_existing_param (sum));
}

static void
test_two_chips (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 2, 1);

  for (int run = 0; run < 20; run++)
    {
      memset (rig->board->words, 0, sizeof rig->board->words);
      rig_run_ok (rig, two_chips, NULL);
      for (int i = 0; i < 1000; i++)
        g_assert_cmpuint (rig->board->words[i], ==, 7);
      g_assert_cmpuint (rig->board->words[1000], ==, 0);
      g_assert_cmpuint (rig->stats.tasks, ==, 3);
      g_assert_cmpuint (rig->stats.edges, ==, 2);
      g_assert_cmpuint (rig->stats.restarts, ==, 0);
    }
  rig_free (rig);
}

/* --- what arrives --- */

static void
one_of_everything (struct rig *rig, void *data)
{
  Tensor tensor
      = make_tensor_external (rig->board->words, (uint64_t[]){ 5, 4 }, 2, PTO_DTYPE_UINT64);
  Tensor part = pto2_tensor_view (&tensor, (uint64_t[]){ 3, 4 }, (uint64_t[]){ 2, 0 });

  SUB (rig, CONFIG, ANY, make_inout_param (part), scalar (17), scalar (UINT64_MAX));
}

static void
test_arguments (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 0, 1);

  rig_run_ok (rig, one_of_everything, NULL);
  g_assert_cmpuint (rig->board->counters[0], ==, 1);
  g_assert_cmpuint (rig->board->counters[1], ==, 0);
  /* Of all tasks of a run, whatever goes with them: these, and no others. */
  for (uint32_t i = 1; i < 4; i++)
    {
      pto_level_check (rig->level, i % 2 == 1);
      rig_run_ok (rig, one_of_everything, NULL);
      g_assert_cmpuint (rig->board->counters[0], ==, 1 + i);
      g_assert_cmpuint (rig->board->counters[1], ==, (i + 1) / 2);
    }
  rig_free (rig);
}

static void
of_each_direction (struct rig *rig, void *data)
{
  Tensor tensors[4];
  PTOParam params[5];

  for (uint32_t i = 0; i < 4; i++)
    tensors[i] = rig_words (rig, i, 1);
  params[0] = make_input_param (tensors[0]);
  params[1] = make_inout_param (tensors[1]);
  params[2] = make_output_existing_param (tensors[2]);
  params[3] = make_no_dep_param (tensors[3]);
  params[4] = scalar (0x0331);
  rig_submit (rig, ACCESS, PTO_CHILD_SUB, ANY, params, 5);
  SUB (rig, ACCESS, ANY, make_output_param (rig_tensor (rig, 1)), make_input_param (tensors[0]),
       scalar (0x12));
  /* Each member is given its own. */
  rig_group (rig, ACCESS, 2, NULL, &params[2], 3);
}

static void
test_directions (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 0, 2);

  rig_run_ok (rig, of_each_direction, NULL);
  g_assert_cmpuint (rig->board->counters[0], ==, 4);
  rig_free (rig);
}

/* --- many --- */

static void
many (struct rig *rig, void *data)
{
  for (uint32_t i = 0; i < 2000; i++)
    SUB (rig, COUNT, i % 3 == 0 ? i % 4 : ANY, scalar (0));
}

static void
test_many (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 0, 4);

  for (uint64_t run = 1; run <= 3; run++)
    {
      rig_run_ok (rig, many, NULL);
      g_assert_cmpuint (rig->board->counters[0], ==, 2000 * run);
    }
  rig_free (rig);
}

/* A chain through every child: each sees what the one before wrote. */
static void
chain (struct rig *rig, void *data)
{
  for (uint32_t i = 0; i < 300; i++)
    {
      Tensor from = rig_words (rig, i, 1);
      Tensor to = rig_words (rig, i + 1, 1);

      SUB (rig, ADD, i % 3, make_input_param (from), make_input_param (from),
           make_output_existing_param (to));
      if (i % 40 == 39)
        /* Keeps the numbers small. */
        SUB (rig, FILL, (i + 1) % 3, make_output_existing_param (to), scalar (1));
    }
}

static void
test_chain (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 0, 3);

  rig->board->words[0] = 1;
  rig_run_ok (rig, chain, NULL);
  g_assert_cmpuint (rig->board->words[300], ==, 1u << 20);
  rig_free (rig);
}

/* --- memory --- */

struct slabs
{
  uint64_t first;
  uint64_t second;
  uint64_t inner;
  uint64_t slab;
};

static void
slabs (struct rig *rig, void *data)
{
  struct slabs *to = data;
  Tensor a = rig_tensor (rig, 100);
  Tensor b = rig_tensor (rig, 3);
  Tensor c, slab;
  struct pto_report report = { 0 };

  SUB (rig, FILL, ANY, make_output_param (a), make_output_param (b), scalar (1));
  to->first = a.storage->addr;
  to->second = b.storage->addr;
  pto2_rt_scope_begin (rig->rt);
  c = rig_tensor (rig, 10);
  SUB (rig, FILL, ANY, make_output_param (c), scalar (2));
  to->inner = c.storage->addr;
  pto2_rt_scope_end (rig->rt);
  slab = make_tensor_external (NULL, (uint64_t[]){ 6 }, 1, PTO_DTYPE_UINT64);
  g_assert_cmpint (pto_level_alloc (rig->level, &slab, &report), ==, PTO_OK);
  to->slab = slab.buffer.addr;
  /* Memory, now: the orchestration may write what tasks then read. */
  for (uint64_t i = 0; i < 6; i++)
    ((uint64_t *) (uintptr_t) slab.buffer.addr)[i] = 40 + i;
  {
    Tensor sum = rig_words (rig, 0, 6);

    SUB (rig, ADD, ANY, make_input_param (slab), make_input_param (slab),
         make_output_existing_param (sum));
  }
}

static void
test_slabs (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 0, 2);
  struct slabs where;

  rig_run_ok (rig, slabs, &where);
  /* One slab for the outputs of a submit, each on a border of 1024; another ring inside. */
  g_assert_cmpuint (where.first % 1024, ==, 0);
  g_assert_cmpuint (where.second, ==, where.first + 1024);
  g_assert_cmpuint (where.slab % 1024, ==, 0);
  g_assert_cmpuint (where.slab, ==, where.first + 2048);
  g_assert_cmpuint (where.inner % 1024, ==, 0);
  g_assert_true (where.inner < where.first || where.inner >= where.first + (16u << 20));
  g_assert_cmpuint (rig->stats.ring_tasks[0], ==, 3);
  g_assert_cmpuint (rig->stats.ring_tasks[1], ==, 1);
  for (uint64_t i = 0; i < 6; i++)
    g_assert_cmpuint (rig->board->words[i], ==, 80 + 2 * i);
  rig_free (rig);
}

/* Allocations of ended scopes are used again: far more than there is goes through. */
static void
recycle (struct rig *rig, void *data)
{
  for (uint32_t i = 0; i < 400; i++)
    {
      struct pto_report report = { 0 };
      Tensor slab = make_tensor_external (NULL, (uint64_t[]){ 2000 }, 1, PTO_DTYPE_UINT64);

      pto2_rt_scope_begin (rig->rt);
      pto_level_alloc (rig->level, &slab, &report);
      g_assert_cmpstr (report.message, ==, "");
      SUB (rig, FILL, ANY, make_inout_param (slab), scalar (i));
      SUB (rig, COUNT, ANY, make_input_param (slab), scalar (0));
      pto2_rt_scope_end (rig->rt);
    }
}

static void
test_recycle (void)
{
  static const char *const parameters[] = { "heap", "65536", "task-window", "16", NULL };
  struct rig *rig = rig_new (
      &(struct rig_config){ .subs = 2, .parameters = parameters, .functions = functions });

  rig_run_ok (rig, recycle, NULL);
  g_assert_cmpuint (atomic_load (&rig->board->counters[0]), ==, 400);
  g_assert_cmpuint (rig->stats.heap_peak[1], <=, 65536);
  g_assert_cmpuint (rig->stats.recycled, >, 1000);
  rig_free (rig);
}

/* --- more than a chip takes --- */

#define MANY 100000u

/* All of them in one scope, none done before the last was submitted, each with memory of the first:
 * slots, edges and nodes of the map beyond what any chip has. */
static void
submit_many (struct rig *rig, void *data)
{
  Tensor first = rig_tensor (rig, 1);
  Tensor words = rig_words (rig, 0, 1);

  SUB (rig, GATE, ANY, make_output_param (first), scalar (0));
  for (uint32_t i = 0; i < MANY; i++)
    SUB (rig, COUNT, ANY, make_input_param (first), make_input_param (words), scalar (0));
  gate_open (rig->board, 0);
}

/* As far as it goes, and then to the end, so that it is counted. */
static void
submit_many_until (struct rig *rig, void *data)
{
  for (uint32_t i = 0; i < MANY; i++)
    {
      PTOParam param = scalar (0);

      rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, &param, 1);
    }
}

static void
test_unbounded (gconstpointer level)
{
  uint32_t is_four = GPOINTER_TO_INT (level) == 4;
  struct rig *rig = rig_new (&(struct rig_config){
      .workers = is_four, .subs = 2, .threads = true, .functions = functions });

  rig_run_ok (rig, submit_many, NULL);
  g_assert_cmpuint (atomic_load (&rig->board->counters[0]), ==, MANY);
  g_assert_cmpuint (rig->stats.tasks, ==, MANY + 1);
  g_assert_cmpuint (rig->stats.edges, ==, MANY);
  g_assert_cmpuint (rig->stats.peak_live_tasks, ==, MANY + 1);
  g_assert_cmpuint (rig->stats.recycled, ==, 0);
  rig_free (rig);
}

/* Where address space is limited a level has what there is. */
static void
test_scarce (void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  g_test_skip ("a sanitizer needs more address space than this leaves");
#else
  static const uint64_t limits[] = { UINT64_C (2) << 30, UINT64_C (20) << 30 };
  uint32_t windows[2];
  struct rlimit before, small;

  g_assert_cmpint (getrlimit (RLIMIT_AS, &before), ==, 0);
  for (int i = 0; i < 2; i++)
    {
      struct rig *rig;

      small = before;
      small.rlim_cur = limits[i];
      g_assert_cmpint (setrlimit (RLIMIT_AS, &small), ==, 0);
      rig = rig_new (&(struct rig_config){ .subs = 4, .threads = true, .functions = functions });
      g_assert_cmpint (setrlimit (RLIMIT_AS, &before), ==, 0);
      rig_run_ok (rig, many, NULL);
      windows[i] = rig->level->machine.engine.rings[0].window;
      rig_free (rig);
    }
  g_assert_cmpuint (windows[0], >=, 65536);
  g_assert_cmpuint (windows[1], >, windows[0]);
  g_assert_cmpuint (windows[1], <, PTO_MAX_TASK_WINDOW);
#endif
}

/* Whoever asks for less has it. */
static void
test_bounded (void)
{
  static const char *const parameters[] = { "task-window", "65536", NULL };
  struct rig *rig = rig_new (&(struct rig_config){
      .subs = 2, .threads = true, .parameters = parameters, .functions = functions });

  gate_open (rig->board, 0);
  g_assert_cmpint (rig_run (rig, submit_many_until, NULL), ==, PTO_STATUS_TASK_RING);
  g_test_message ("%s", rig->failure.text);
  g_assert_nonnull (strstr (rig->failure.text, "all 65535 usable slots (window 65536,"));
  g_assert_nonnull (strstr (rig->failure.text, "Set task-window to 131072 or more"));
  rig_free (rig);
}

/* --- back-pressure --- */

/* Nobody opens the gate: the task in front does not end, and the ring is full behind it. */
static void
fill_ring (struct rig *rig, void *data)
{
  PTOParam params[2];

  pto2_rt_scope_begin (rig->rt);
  SUB (rig, GATE, 0, scalar (0));
  pto2_rt_scope_end (rig->rt);
  for (uint32_t i = 0; i < 20 && rig->report.status == PTO_OK; i++)
    {
      Tensor tensor;

      pto2_rt_scope_begin (rig->rt);
      tensor = rig_tensor (rig, 1000);
      params[0] = make_output_param (tensor);
      params[1] = scalar (i);
      rig_try_submit (rig, FILL, PTO_CHILD_SUB, 0, 0, params, 2);
      pto2_rt_scope_end (rig->rt);
    }
  *(struct pto_report *) data = rig->report;
}

static void
open_and_fill (struct rig *rig, void *data)
{
  gate_open (rig->board, 0);
  fill_ring (rig, data);
}

static void
test_back_pressure (void)
{
  static const char *const small[] = { "heap", "65536", "timeout", "150", NULL };
  static const char *const large[] = { "heap", "262144", "timeout", "150", NULL };
  struct pto_report inside = { 0 };
  struct rig *rig
      = rig_new (&(struct rig_config){ .subs = 1, .parameters = small, .functions = functions });

  g_assert_cmpint (rig_run (rig, fill_ring, &inside), ==, PTO_STATUS_HEAP_RING);
  assert_says (rig->report.message, "heap ring 1 has been full for 150 ms");
  assert_says (rig->report.message, "the oldest, task 0 of ring 1 (f4), is running");
  assert_says (rig->report.message, "set heap to 131072 or more, or timeout to more");
  /* The submit that met it says the same. */
  g_assert_cmpstr (inside.message, ==, rig->report.message);
  /* Who did not end was ended; the next run goes well. */
  rig_run_ok (rig, open_and_fill, &inside);
  rig_free (rig);
  /* The advice, followed twice as far as it goes, is enough for all twenty. */
  rig = rig_new (&(struct rig_config){ .subs = 1, .parameters = large, .functions = functions });
  gate_open (rig->board, 0);
  rig_run_ok (rig, fill_ring, &inside);
  g_assert_cmpuint (rig->stats.tasks, ==, 21);
  rig_free (rig);
}

/* --- what children can not see --- */

static void
private_memory (struct rig *rig, void *data)
{
  static uint64_t words[8];
  Tensor private_tensor = make_tensor_external (words, (uint64_t[]){ 8 }, 1, PTO_DTYPE_UINT64);
  void *late = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Tensor late_tensor = make_tensor_external (late, (uint64_t[]){ 8 }, 1, PTO_DTYPE_UINT64);
  Tensor whole = rig_words (rig, 0, 64);
  Tensor square = pto2_tensor_reshape (&whole, (uint64_t[]){ 8, 8 }, 2);
  Tensor column = pto2_tensor_view (&square, (uint64_t[]){ 8, 1 }, (uint64_t[]){ 0, 1 });
  PTOParam params[2] = { make_input_param (private_tensor), scalar (0) };

  if (rig->config.threads)
    {
      g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 2), ==, PTO_OK);
      munmap (late, 4096);
      return;
    }
  g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 2), ==,
                   PTO_STATUS_NOT_SHARED);
  assert_says (rig->report.message, "task of \"f2\": argument 0 lies in private memory (0x");
  assert_says (rig->report.message, "use a buffer, alloc(), or memory that was shared before it");
  params[0] = make_no_dep_param (late_tensor);
  g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 2), ==,
                   PTO_STATUS_NOT_SHARED);
  assert_says (rig->report.message, "memory that was shared after the start");
  munmap (late, 4096);
  params[0] = make_input_param (column);
  g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 2), ==,
                   PTO_STATUS_INVALID_ARGS);
  assert_says (rig->report.message, "argument 0 is not contiguous");
  /* Nothing of this was submitted, and the run goes on. */
  SUB (rig, COUNT, ANY, scalar (0));
}

static void
test_private_memory (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 0, 1);

  rig_run_ok (rig, private_memory, NULL);
  g_assert_cmpuint (rig->stats.tasks, ==, 1);
  g_assert_cmpuint (atomic_load (&rig->board->counters[0]), ==, 1);
  rig_free (rig);
}

static void
unknown_kind (struct rig *rig, void *data)
{
  PTOParam params[2] = { make_input_param (rig_words (rig, 0, 8)), scalar (0) };

  params[0].type = *(const PTOParamType *) data;
  g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 2), ==,
                   PTO_STATUS_INVALID_ARGS);
}

/* Kinds of arguments that are of a chip only, and some that there are not. */
static void
test_unknown_kinds (gconstpointer threads)
{
  static const PTOParamType kinds[] = { PTO_PARAM_REDUCTION, PTO_PARAM_REDUCTION + 1, 255 };
  struct rig *rig = new_rig (threads, 0, 1);

  for (uint32_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_assert_cmpint (rig_run (rig, unknown_kind, (void *) &kinds[i]), ==,
                       PTO_STATUS_INVALID_ARGS);
      assert_says (rig->report.message, "argument 0");
    }
  g_assert_cmpuint (atomic_load (&rig->board->counters[0]), ==, 0);
  rig_free (rig);
}

/* What begins in a heap ring and goes on behind it. The tensor there has all of the ring. */
static void
too_long (struct rig *rig, void *data)
{
  const uint64_t *heap = data;
  PTOParam first[2] = { make_output_param (rig_tensor (rig, *heap / 8)), scalar (0) };
  uint64_t base;

  rig_submit (rig, COUNT, PTO_CHILD_SUB, ANY, first, 2);
  base = first[0].tensor.buffer.addr;
  g_assert_cmphex (base, !=, 0);
  for (uint64_t offset = 0; offset < *heap; offset = 2 * offset + 8)
    {
      void *address = (void *) (uintptr_t) (base + offset);
      Tensor longer
          = make_tensor_external (address, (uint64_t[]){ 1u << 20, 1u << 20 }, 2, PTO_DTYPE_UINT8);
      Tensor fits
          = make_tensor_external (address, (uint64_t[]){ *heap - offset }, 1, PTO_DTYPE_UINT8);
      PTOParam params[2] = { make_no_dep_param (longer), scalar (0) };

      g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 2), ==,
                       PTO_STATUS_NOT_SHARED);
      params[0] = make_no_dep_param (fits);
      g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 2), ==, PTO_OK);
    }
}

static void
test_too_long_tensors (void)
{
  static const char *const parameters[] = { "heap", "65536", NULL };
  uint64_t heap = 65536;
  struct rig *rig = rig_new (
      &(struct rig_config){ .subs = 1, .parameters = parameters, .functions = functions });

  rig_run_ok (rig, too_long, &heap);
  rig_free (rig);
}

/* Shared, but not to be written: by nobody who would. */
static void
read_only_memory (struct rig *rig, void *data)
{
  Tensor tensor = make_tensor_external (data, (uint64_t[]){ 8 }, 1, PTO_DTYPE_UINT64);
  PTOParam params[2] = { make_output_existing_param (tensor), scalar (0) };

  g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 2), ==,
                   PTO_STATUS_NOT_SHARED);
  assert_says (rig->report.message, "argument 0 lies in memory that is shared to be read (0x");
  params[0] = make_inout_param (tensor);
  g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 2), ==,
                   PTO_STATUS_NOT_SHARED);
  SUB (rig, COUNT, ANY, make_input_param (tensor), scalar (0));
  SUB (rig, COUNT, ANY, make_no_dep_param (tensor), scalar (0));
}

/* What was there when the children began, and is there no more in the next run. */
static void
unmapped_memory (struct rig *rig, void *data)
{
  Tensor tensor = make_tensor_external (data, (uint64_t[]){ 8 }, 1, PTO_DTYPE_UINT64);
  PTOParam params[2] = { make_input_param (tensor), scalar (0) };

  g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 2), ==,
                   PTO_STATUS_NOT_SHARED);
}

static void
test_read_only_memory (void)
{
  void *page = mmap (NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct rig *rig = new_rig (NULL, 0, 1);

  rig_run_ok (rig, read_only_memory, page);
  g_assert_cmpuint (rig->stats.tasks, ==, 2);
  munmap (page, 4096);
  rig_run_ok (rig, unmapped_memory, page);
  rig_free (rig);
}

struct remap
{
  void *page;
  int n_before; /* tasks that mention it before it is mapped anew */
  int flags;    /* with these; 0: it is not */
};

static void
mapped_anew (struct rig *rig, void *data)
{
  const struct remap *remap = data;
  Tensor tensor = make_tensor_external (remap->page, (uint64_t[]){ 8 }, 1, PTO_DTYPE_UINT64);

  for (int i = 0; i < remap->n_before; i++)
    SUB (rig, COUNT, ANY, make_inout_param (tensor), scalar (0));
  if (remap->flags != 0)
    g_assert_true (mmap (remap->page, 4096, PROT_READ | PROT_WRITE,
                         MAP_FIXED | MAP_ANONYMOUS | remap->flags, -1, 0)
                   == remap->page);
}

/* While the run lasts: what a task writes, and what tasks say again, is where it was before. */
static void
test_memory_mapped_anew (void)
{
  static const struct
  {
    int n_before, flags;
    bool fails;
  } cases[] = {
    { 2, 0, false }, { 1, MAP_SHARED, true }, { 2, MAP_PRIVATE, false }, { 2, MAP_SHARED, true }
  };

  for (uint32_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      void *page = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      struct remap remap = { page, cases[i].n_before, cases[i].flags };
      struct rig *rig = new_rig (NULL, 0, 1);
      g_autofree char *where = g_strdup_printf ("memory at %p,", page);

      if (!cases[i].fails)
        rig_run_ok (rig, mapped_anew, &remap);
      else
        {
          g_assert_cmpint (rig_run (rig, mapped_anew, &remap), ==, PTO_STATUS_NOT_SHARED);
          assert_says (rig->report.message, where);
          assert_says (rig->report.message, "mapped anew while the run lasted");
          /* The next one asks at its first mention. */
          rig_run_ok (rig, unmapped_memory, page);
          remap = (struct remap){ page, 0, 0 };
          rig_run_ok (rig, mapped_anew, &remap);
        }
      rig_free (rig);
      munmap (page, 4096);
    }
}

/* Too much for a mailbox. */
static void
many_scalars (struct rig *rig, void *data)
{
  PTOParam params[1025];

  for (uint32_t i = 0; i < G_N_ELEMENTS (params); i++)
    params[i] = scalar (0);
  SUB (rig, COUNT, ANY, scalar (0));
  rig_submit (rig, COUNT, PTO_CHILD_SUB, ANY, params, 1024);
  g_assert_cmpint (rig_try_submit (rig, COUNT, PTO_CHILD_SUB, 0, ANY, params, 1025), ==,
                   PTO_STATUS_INVALID_ARGS);
  assert_says (rig->report.message, "1025 arguments, all members' together");
}

static void
test_many_scalars (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 0, 1);

  rig_run_ok (rig, many_scalars, NULL);
  g_assert_cmpuint (atomic_load (&rig->board->counters[0]), ==, 2);
  rig_free (rig);
}

/* --- a task for one does not stop those for others --- */

static void
crowd (struct rig *rig, void *data)
{
  SUB (rig, GATE, 0, scalar (0));
  for (uint32_t i = 0; i < 30; i++)
    SUB (rig, COUNT, 0, scalar (1));
  for (uint32_t i = 0; i < 50; i++)
    SUB (rig, COUNT, ANY, scalar (2));
  /* They get by while the gate is closed. */
  board_wait (rig->board, 2, 50);
  g_assert_cmpuint (atomic_load (&rig->board->counters[1]), ==, 0);
  gate_open (rig->board, 0);
}

static void
test_crowd (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 0, 2);

  rig_run_ok (rig, crowd, NULL);
  g_assert_cmpuint (atomic_load (&rig->board->counters[1]), ==, 30);
  rig_free (rig);
}

/* What only orders waits for no worker. */
static void
all_busy_but_one (struct rig *rig, void *data)
{
  Tensor slab = make_tensor_external (NULL, (uint64_t[]){ 8 }, 1, PTO_DTYPE_UINT64);
  struct pto_report report = { 0 };

  CHIP (rig, GATE, 0, scalar (0));
  SUB (rig, GATE, 0, scalar (1));
  gate_wait_reached (rig->board, 0, 1);
  gate_wait_reached (rig->board, 1, 1);
  g_assert_cmpint (pto_level_alloc (rig->level, &slab, &report), ==, PTO_OK);
  SUB (rig, FILL, ANY, make_inout_param (slab), scalar (7));
  SUB (rig, COUNT, ANY, make_input_param (slab), scalar (2));
  board_wait (rig->board, 2, 1);
  gate_open (rig->board, 0);
  gate_open (rig->board, 1);
}

static void
test_orders_only (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 1, 2);

  rig_run_ok (rig, all_busy_but_one, NULL);
  g_assert_cmpuint (rig->stats.tasks, ==, 5);
  rig_free (rig);
}

/* --- nothing to do --- */

static void
test_idle (void)
{
  struct holdings before = holdings_now ();
  struct rig *rig = rig_new (&(struct rig_config){ .subs = 64, .functions = functions });
  pid_t processes[65] = { getpid () };

  rig_run_ok (rig, many, NULL);
  g_assert_cmpuint (rig->n_children, ==, G_N_ELEMENTS (processes) - 1);
  for (uint32_t i = 0; i < rig->n_children; i++)
    processes[i + 1] = atomic_load (&rig->board->pids[i]);
  /* The keeper goes to rest, children have looked long enough. */
  still_wait (processes, G_N_ELEMENTS (processes));
  rig_free (rig);
  holdings_assert (&before);
}

/* --- making and ending --- */

static void
nothing (struct rig *rig, void *data)
{
}

static void
test_life (gconstpointer threads)
{
  struct holdings before;

  for (int round = 0; round < 12; round++)
    {
      struct rig *rig;

      if (round == 1)
        before = holdings_now ();
      rig = new_rig (threads, 2, 3);
      g_assert_cmpuint (rig->level->family.n_kind[PTO_CHILD_NEXT], ==, 2);
      g_assert_cmpuint (rig->level->family.n_kind[PTO_CHILD_SUB], ==, 3);
      rig_run_ok (rig, nothing, NULL);
      if (round % 2 == 0)
        rig_run_ok (rig, two_chips, NULL);
      rig_free (rig);
    }
  holdings_assert (&before);
}

/* As whoever could not make one does. */
static void
test_free_nothing (void)
{
  pto_level_free (NULL);
}

static void
add_both (const char *behaviour, void (*test) (gconstpointer threads))
{
  for (int threads = 0; threads < 2; threads++)
    {
      char *path
          = g_strdup_printf ("/pto/level/%s/%s", threads != 0 ? "threads" : "processes", behaviour);

      g_test_add_data_func (path, GINT_TO_POINTER (threads), test);
      g_free (path);
    }
}

static void
add_tests (void)
{
  add_both ("first-of-the-idle", test_first_of_the_idle);
  add_both ("two-chips", test_two_chips);
  add_both ("arguments", test_arguments);
  add_both ("directions", test_directions);
  add_both ("many", test_many);
  add_both ("chain", test_chain);
  add_both ("slabs", test_slabs);
  add_both ("private-memory", test_private_memory);
  add_both ("unknown-kinds", test_unknown_kinds);
  add_both ("many-scalars", test_many_scalars);
  add_both ("crowd", test_crowd);
  add_both ("orders-only", test_orders_only);
  add_both ("life", test_life);
  g_test_add_func ("/pto/level/read-only-memory", test_read_only_memory);
  g_test_add_func ("/pto/level/memory-mapped-anew", test_memory_mapped_anew);
  g_test_add_func ("/pto/level/too-long-tensors", test_too_long_tensors);
  g_test_add_func ("/pto/level/free-nothing", test_free_nothing);
  g_test_add_func ("/pto/level/recycle", test_recycle);
  g_test_add_data_func ("/pto/level/unbounded/3", GINT_TO_POINTER (3), test_unbounded);
  g_test_add_data_func ("/pto/level/unbounded/4", GINT_TO_POINTER (4), test_unbounded);
  g_test_add_func ("/pto/level/scarce", test_scarce);
  g_test_add_func ("/pto/level/bounded", test_bounded);
  g_test_add_func ("/pto/level/back-pressure", test_back_pressure);
  g_test_add_func ("/pto/level/idle", test_idle);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
