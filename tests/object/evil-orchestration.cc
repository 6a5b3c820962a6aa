/* evil-orchestration.cc: submits evil kernels, or is evil itself.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Arguments: address of a vector, its length, how often, what the kernel does, what the
 * orchestration does before and after its first submit, what its configuration does.
 */
#include "pto_build_graph.h"
#include "pto_orchestration_api.h"

static PTO2Runtime *evil_engine;
static Tensor evil_tensor;

static void
evil_call_engine (int call)
{
  PTO2Runtime *rt = evil_engine;
  PTOParam params[] = { make_scalar_param (0), make_output_existing_param (evil_tensor) };
  uint64_t index[] = { 0 };
  float value = 0;

  switch (call)
    {
    case 0:
      pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);
      break;
    case 1:
      pto2_rt_submit_order (rt, &params[1], 1, NULL, 0);
      break;
    case 2:
      pto2_rt_scope_begin (rt);
      break;
    case 3:
      pto2_rt_manual_scope_begin (rt);
      break;
    case 4:
      pto2_rt_scope_end (rt);
      break;
    case 5:
      pto2_rt_orchestration_done (rt);
      break;
    case 6:
      make_tensor (evil_tensor.shapes, 1, DataType::FLOAT32);
      break;
    case 7:
      pto2_rt_arg_tensor (rt, 0);
      break;
    case 8:
      pto2_rt_get_element (rt, &evil_tensor, index, &value);
      break;
    case 9:
      pto2_rt_set_element (rt, &evil_tensor, index, &value);
      break;
    case 10:
      pto2_rt_allocate_cluster (rt);
      break;
    case 11:
      pto2_rt_free_cluster (rt, 0);
      break;
    case 12:
      pto2_rt_add_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);
      break;
    case 13:
      pto2_rt_add_successor_conditional (rt, 0, 0);
      break;
    case 14:
      pto2_rt_publish_task (rt, 0);
      break;
    case 15:
      pto2_rt_device_malloc (rt, 64);
      break;
    }
}

#define EVIL_ENGINE(args, call) evil_call_engine (call)
#define EVIL_ENGINE_CALLS 16
#define EVIL_COPY_STATUS (evil_engine != NULL ? 1 : 0)
#include "evil.h"

extern "C" PTO2OrchestrationConfig
aicpu_orchestration_config (uint64_t *args, int n)
{
  evil_engine = NULL;
  if (n > 6)
    evil_do ((int) args[6], NULL);
  return { 7 };
}

extern "C" int
aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n)
{
  Tensor f = make_tensor_external ((void *) args[0], &args[1], 1, DataType::FLOAT32);

  evil_engine = rt;
  evil_tensor = f;
  evil_do ((int) args[4], NULL);
  PTO2_SCOPE (rt)
  {
    for (uint64_t i = 0; i < args[2]; i++)
      {
        PTOParam params[] = { make_scalar_param (args[3]), make_output_existing_param (f) };

        pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2); /* the submit */
        if (i == 0)
          evil_do ((int) args[5], NULL);
      }
  }
  return 0;
}
