/* remote-functions.cc: what do the remote workers of test-remote-seeds.cc run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * By "library:symbol". Elements are float.
 */
#include <worker.h>

#include <csignal>

static float *
floats (const ContinuousTensor &tensor)
{
  return reinterpret_cast<float *> (tensor.data);
}

/* x, a: x += a. */
static void
add_in_place (Orchestrator *, TaskArgsView view, const CallConfig &)
{
  for (uint32_t i = 0; i < view.tensors[0].shapes[0]; i++)
    floats (view.tensors[0])[i] += static_cast<float> (view.scalars[0]);
}
REMOTE_ORCHESTRATION (remote_add_in_place, add_in_place)

/* x, y: y = x. */
static void
copy (Orchestrator *, TaskArgsView view, const CallConfig &)
{
  std::copy_n (floats (view.tensors[0]), view.tensors[0].shapes[0], floats (view.tensors[1]));
}
REMOTE_ORCHESTRATION (remote_copy, copy)

/* x, y: y = 2 x, by a SUB worker. */
static void
double_below (Orchestrator *orch, TaskArgsView view, const CallConfig &)
{
  TaskArgs args;

  args.add_tensor (view.tensors[0], TensorArgType::INPUT);
  args.add_tensor (view.tensors[1], TensorArgType::OUTPUT_EXISTING);
  orch->submit_sub (orch->lookup ("remote_double"), args);
}
REMOTE_ORCHESTRATION (remote_double_below, double_below)

static void
double_all (TaskArgsView view)
{
  for (uint32_t i = 0; i < view.tensors[0].shapes[0]; i++)
    floats (view.tensors[1])[i] = 2 * floats (view.tensors[0])[i];
}
REMOTE_SUB (remote_double, double_all)

/* a, b, c: c = a + b, by a chip that is given the configuration. */
static void
add_on_chip (Orchestrator *orch, TaskArgsView view, const CallConfig &config)
{
  TaskArgs args;

  if (config.block_dim != 3 || config.aicpu_thread_num != 3)
    throw std::runtime_error ("another configuration than was submitted");
  for (int i = 0; i < 3; i++)
    args.add_tensor (view.tensors[i],
                     i < 2 ? TensorArgType::INPUT : TensorArgType::OUTPUT_EXISTING);
  orch->submit_next_level (orch->lookup ("add_orch"), args, config);
}
REMOTE_ORCHESTRATION (remote_add_on_chip, add_on_chip)

static void
refuse (Orchestrator *, TaskArgsView, const CallConfig &)
{
  throw std::runtime_error ("my own words");
}
REMOTE_ORCHESTRATION (remote_refuse, refuse)

static void
stop (Orchestrator *, TaskArgsView, const CallConfig &)
{
  std::raise (SIGKILL);
}
REMOTE_ORCHESTRATION (remote_stop, stop)
