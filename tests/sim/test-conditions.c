/* test-conditions.c: does a condition hold for every kind of task, however it is submitted?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../pto/api/pto_build_graph.h"
#include "../../pto/core/graph-plan.h"

#define BLOCKS 4u

enum
{
  SET,       /* args[0][0] = args[1], a while later */
  COUNT,     /* args[0][the block] += 1 */
  COUNT_AIC, /* the same */
  TAKE,      /* args[1][i] = args[0][i] */
  OPEN,      /* opens the gate */
  GATE       /* waits for it */
};

static _Atomic uint32_t gate;

static int32_t *
data_of (int64_t *args, int index)
{
  return sim_data (args, index);
}

static void
kernel_set (int64_t *args)
{
  for (int i = 0; i < 20; i++)
    pto_relax (args);
  data_of (args, 0)[0] = (int32_t) args[1];
}

static void
kernel_count (int64_t *args)
{
  __atomic_fetch_add (&data_of (args, 0)[get_block_idx (args)], 1, __ATOMIC_RELAXED);
}

static void
kernel_take (int64_t *args)
{
  for (uint64_t i = 0; i < sim_tensor (args, 0)->shapes[0]; i++)
    data_of (args, 1)[i] = data_of (args, 0)[i];
}

static void
kernel_open (int64_t *args)
{
  atomic_store (&gate, 1);
}

static void
kernel_gate (int64_t *args)
{
  while (atomic_load (&gate) == 0)
    pto_relax (args);
}

static const struct pto_kernel kernels[] = {
  [SET] = { "set", kernel_set, PTO_CORE_TYPE_AIV, { .base_ns = 20000 } },
  [COUNT] = { "count", kernel_count, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [COUNT_AIC] = { "count_aic", kernel_count, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [TAKE] = { "take", kernel_take, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [OPEN] = { "open", kernel_open, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [GATE] = { "gate", kernel_gate, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

/* --- what a task is --- */

enum form
{
  FORM_PLAIN,
  FORM_BLOCKS,
  FORM_AT_ONCE,
  FORM_MIXED,
  FORM_MIXED_BLOCKS,
  FORM_MIXED_AT_ONCE,
  FORM_GROUP,
  FORM_GROUP_OF_ONE,
  FORM_MEMBERS,
  FORM_NAMED_CORES,
  FORM_CLUSTER,
  FORM_CLUSTER_BLOCKS,
  FORM_CLUSTER_MIXED,
  N_FORMS
};

/* How often each block counts. */
static const uint32_t counts[N_FORMS][BLOCKS] = {
  [FORM_PLAIN] = { 1 },
  [FORM_BLOCKS] = { 1, 1, 1, 1 },
  [FORM_AT_ONCE] = { 1, 1, 1, 1 },
  [FORM_MIXED] = { 3 },
  [FORM_MIXED_BLOCKS] = { 2, 2, 2 },
  [FORM_MIXED_AT_ONCE] = { 3, 3 },
  [FORM_GROUP] = { 1, 1, 1 },
  [FORM_GROUP_OF_ONE] = { 1 },
  [FORM_MEMBERS] = { 1, 1 },
  [FORM_NAMED_CORES] = { 1, 1 },
  [FORM_CLUSTER] = { 1 },
  [FORM_CLUSTER_BLOCKS] = { 1, 1, 1 },
  [FORM_CLUSTER_MIXED] = { 3 },
};

enum way
{
  WAY_SUBMITTED,
  WAY_COMMUTATIVE,
  WAY_URGENT,
  WAY_ADDED,
  WAY_IN_A_MANUAL_SCOPE,
  N_WAYS
};

struct given
{
  enum form form;
  enum way way;
  int32_t value; /* of the condition */
};

static bool
has_cluster (enum form form)
{
  return form >= FORM_CLUSTER;
}

static void
describe (enum form form, int32_t cluster, PTO2Submit *submit)
{
  static const int32_t all[3] = { COUNT_AIC, COUNT, COUNT };
  static const int32_t both[3] = { COUNT_AIC, PTO2_KERNEL_NONE, COUNT };
  static const int32_t group[3] = { COUNT, COUNT_AIC, COUNT };
  static const int32_t one_each[2] = { 1, 1 };
  static const int32_t cores[2] = { 1, 2 };

  submit->kernel_id = COUNT;
  submit->worker_type = AIV;
  switch (form)
    {
    case FORM_BLOCKS:
    case FORM_AT_ONCE:
      submit->block_dim = BLOCKS;
      submit->sync_start = form == FORM_AT_ONCE;
      break;
    case FORM_MIXED:
    case FORM_CLUSTER_MIXED:
      submit->mixed = all;
      break;
    case FORM_MIXED_BLOCKS:
      submit->mixed = both;
      submit->block_dim = 3;
      break;
    case FORM_MIXED_AT_ONCE:
      submit->mixed = all;
      submit->block_dim = 2;
      submit->sync_start = 1;
      break;
    case FORM_GROUP:
    case FORM_GROUP_OF_ONE:
      submit->group = group;
      submit->n_group = form == FORM_GROUP ? 3 : 1;
      break;
    case FORM_MEMBERS:
    case FORM_NAMED_CORES:
      submit->group = group;
      submit->n_group = 2;
      submit->group_params = form == FORM_MEMBERS ? one_each : NULL;
      submit->group_cores = form == FORM_NAMED_CORES ? cores : NULL;
      break;
    case FORM_CLUSTER_BLOCKS:
      submit->block_dim = 3;
      break;
    case FORM_PLAIN:
    case FORM_CLUSTER:
    case N_FORMS:
      break;
    }
  if (submit->mixed != NULL || submit->group != NULL)
    submit->kernel_id = PTO2_KERNEL_NONE;
  submit->in_cluster = has_cluster (form);
  submit->cluster_id = has_cluster (form) ? cluster : 0;
}

/* A task writes the condition, the one in question counts, and another one copies the counts. */
static int
orchestrate (PTO2Runtime *rt, void *data)
{
  const struct given *given = data;
  const uint64_t first[1] = { 0 };
  Tensor flag = pto2_rt_arg_tensor (rt, 0);
  Tensor counted = pto2_rt_arg_tensor (rt, 1);
  PTOParam set[] = { make_output_existing_param (flag), make_signed_param (given->value) };
  PTOParam count[]
      = { pto2_make_param (given->way == WAY_COMMUTATIVE ? PTO_PARAM_COMMUTATIVE : PTO_PARAM_INOUT,
                           &counted),
          make_no_dep_param (counted) };
  PTOParam take[]
      = { make_input_param (counted), make_output_existing_param (pto2_rt_arg_tensor (rt, 2)) };
  PTO2Submit submit = pto2_make_submit (COUNT, AIV, count, given->form == FORM_MEMBERS ? 2 : 1);
  bool by_hand = given->way == WAY_IN_A_MANUAL_SCOPE;
  int32_t cluster = has_cluster (given->form) ? pto2_rt_allocate_cluster (rt) : 0;
  PTO2TaskId decides;
  PTO2TaskId counts_up;

  if (by_hand)
    pto2_rt_manual_scope_begin (rt);
  decides = pto2_rt_submit_task (rt, SET, AIV, set, 2);
  describe (given->form, cluster, &submit);
  submit.condition = &flag;
  submit.condition_index = first;
  submit.priority = given->way == WAY_URGENT ? 2 : 0;
  submit.unpublished = given->way == WAY_ADDED;
  submit.after = by_hand ? &decides : NULL;
  submit.n_after = by_hand;
  counts_up = pto2_rt_submit (rt, &submit);
  if (given->way == WAY_ADDED)
    {
      pto2_rt_add_successor_conditional (rt, decides, counts_up);
      pto2_rt_publish_task (rt, counts_up);
    }
  if (by_hand)
    pto2_rt_scope_end (rt);
  pto2_rt_submit_task_after (rt, TAKE, AIV, take, 2, &counts_up, 1);
  return 0;
}

static int
launch (PTO2Runtime *rt, void *graph)
{
  pto_chip_launch (rt, graph, NULL);
  return 0;
}

static void
assert_counts (struct pto_chip *chip, const struct given *given, struct pto_plan *capture,
               SimOrchestration orchestration, void *data)
{
  const uint64_t one[1] = { 1 };
  const uint64_t blocks[1] = { BLOCKS };
  int32_t flag[1] = { 7 };
  int32_t counted[BLOCKS] = { 0 };
  int32_t taken[BLOCKS] = { -1, -1, -1, -1 };
  struct pto_chip_arg args[]
      = { { .tensor = make_tensor_external (flag, one, 1, PTO_DTYPE_INT32) },
          { .tensor = make_tensor_external (counted, blocks, 1, PTO_DTYPE_INT32) },
          { .tensor = make_tensor_external (taken, blocks, 1, PTO_DTYPE_INT32) } };
  struct pto_run_config config = { .args = args, .n_args = 3, .capture = capture };
  struct pto_report report = { 0 };

  for (guint i = 0; i < 3; i++)
    args[i].word = args[i].tensor.buffer.addr;
  if (pto_chip_run (chip, &program, &config, orchestration, data, NULL, &report) != PTO_OK)
    g_error ("form %d, way %d, condition %d: %s", given->form, given->way, given->value,
             report.message);
  for (guint b = 0; b < BLOCKS && capture == NULL; b++)
    {
      uint32_t wanted = given->value != 0 ? counts[given->form][b] : 0;

      if ((uint32_t) counted[b] != wanted || taken[b] != counted[b])
        g_error ("form %d, way %d, condition %d: block %u counted %d, read as %d, not %u",
                 given->form, given->way, given->value, b, counted[b], taken[b], wanted);
    }
}

static void
test_every_kind (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=3 aicpu-threads=3");

  for (int32_t value = 0; value < 2; value++)
    for (enum way way = 0; way < N_WAYS; way++)
      for (enum form form = 0; form < N_FORMS; form++)
        {
          struct given given = { .form = form, .way = way, .value = value };

          assert_counts (chip, &given, NULL, orchestrate, &given);
        }
  pto_chip_free (chip);
}

static void
test_graphs (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=3 aicpu-threads=3");

  for (int32_t value = 0; value < 2; value++)
    for (enum form form = 0; form < N_FORMS; form++)
      for (enum way way = 0; way < WAY_ADDED; way++)
        {
          struct given given = { .form = form, .way = way, .value = value };
          struct pto_plan *graph = pto_plan_new ();

          assert_counts (chip, &given, graph, orchestrate, &given);
          assert_counts (chip, &given, NULL, launch, graph);
          assert_counts (chip, &given, NULL, launch, graph);
          pto_plan_free (graph);
        }
  pto_chip_free (chip);
}

/* Its cluster is taken by a task that waits for one that comes after it. */
static int
block_cluster (PTO2Runtime *rt, void *data)
{
  static const int32_t all[3] = { COUNT_AIC, COUNT, COUNT };
  static const int32_t gates[3] = { PTO2_KERNEL_NONE, GATE, GATE };
  const uint64_t first[1] = { 0 };
  Tensor flag = pto2_rt_arg_tensor (rt, 0);
  PTOParam count[] = { make_no_dep_param (pto2_rt_arg_tensor (rt, 1)) };
  PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, NULL, 0);
  PTO2TaskId off;

  submit.in_cluster = 1;
  submit.cluster_id = pto2_rt_allocate_cluster (rt);
  submit.mixed = gates;
  pto2_rt_submit (rt, &submit);
  submit.mixed = all;
  submit.params = count;
  submit.n_params = 1;
  submit.condition = &flag;
  submit.condition_index = first;
  off = pto2_rt_submit (rt, &submit);
  pto2_rt_free_cluster (rt, submit.cluster_id);
  pto2_rt_submit_task_after (rt, OPEN, AIV, NULL, 0, &off, 1);
  /* Free again. */
  submit.cluster_id = pto2_rt_allocate_cluster (rt);
  pto2_rt_free_cluster (rt, submit.cluster_id);
  return 0;
}

static void
test_needs_no_place (enum pto_backend backend)
{
  const uint64_t one[1] = { 1 };
  const uint64_t blocks[1] = { BLOCKS };
  struct pto_chip *chip = sim_chip (backend, "clusters=2 aicpu-threads=3 timeout=20000");
  int32_t flag[1] = { 0 };
  int32_t counted[BLOCKS] = { 0 };
  struct pto_chip_arg args[]
      = { { .tensor = make_tensor_external (flag, one, 1, PTO_DTYPE_INT32) },
          { .tensor = make_tensor_external (counted, blocks, 1, PTO_DTYPE_INT32) } };
  struct pto_run_config config = { .args = args, .n_args = 2 };
  struct pto_report report = { 0 };

  args[0].word = args[0].tensor.buffer.addr;
  args[1].word = args[1].tensor.buffer.addr;
  for (guint round = 0; round < 20; round++)
    {
      atomic_store (&gate, 0);
      if (pto_chip_run (chip, &program, &config, block_cluster, NULL, NULL, &report) != PTO_OK)
        g_error ("%s", report.message);
      g_assert_cmpint (counted[0], ==, 0);
    }
  pto_chip_free (chip);
}

static int
submit_and_fail (PTO2Runtime *rt, void *data)
{
  struct given *given = data;
  const uint64_t first[1] = { 0 };
  Tensor flag = pto2_rt_arg_tensor (rt, 0);
  PTOParam count[] = { make_inout_param (pto2_rt_arg_tensor (rt, 1)),
                       make_no_dep_param (pto2_rt_arg_tensor (rt, 1)) };
  PTO2Submit submit = pto2_make_submit (COUNT, AIV, count, given->form == FORM_MEMBERS ? 2 : 1);

  describe (given->form, has_cluster (given->form) ? pto2_rt_allocate_cluster (rt) : 0, &submit);
  submit.condition = &flag;
  submit.condition_index = first;
  pto2_rt_submit (rt, &submit);
  return -1;
}

static void
test_failed_run (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=3 aicpu-threads=3");

  for (enum form form = 0; form < N_FORMS; form++)
    {
      const uint64_t one[1] = { 1 };
      const uint64_t blocks[1] = { BLOCKS };
      int32_t flag[1] = { 1 };
      int32_t counted[BLOCKS] = { 0 };
      struct pto_chip_arg args[]
          = { { .tensor = make_tensor_external (flag, one, 1, PTO_DTYPE_INT32) },
              { .tensor = make_tensor_external (counted, blocks, 1, PTO_DTYPE_INT32) } };
      struct pto_run_config config = { .args = args, .n_args = 2 };
      struct given given = { .form = form };
      struct pto_report report = { 0 };

      args[0].word = args[0].tensor.buffer.addr;
      args[1].word = args[1].tensor.buffer.addr;
      g_assert_cmpint (
          pto_chip_run (chip, &program, &config, submit_and_fail, &given, NULL, &report), ==,
          PTO_STATUS_EXPLICIT);
    }
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static void
add (void)
{
  sim_add ("conditions/every-kind", test_every_kind);
  sim_add ("conditions/graphs", test_graphs);
  sim_add ("conditions/needs-no-place", test_needs_no_place);
  sim_add ("conditions/failed-run", test_failed_run);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add);
}
