/* pto_build_graph.h: how an orchestration builds its graph by hand, on the machine that runs it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Nothing is looked up: a task comes after those that pto2_rt_add_successor_conditional() names. It
 * runs once it is published and those are done; with the parameter build-mode 0 nothing that was
 * added runs before the scope that it was added in ends, or the orchestration. If the tasks after
 * it leave no room before that, it runs then, after the predecessors that are named by then. Memory
 * that a task outputs is there for those that are added behind it, as it is with
 * pto2_rt_submit_task(), and both kinds of submits may be mixed.
 *
 * Valid C17 and C++17. Thread safety: everything here is called on the thread that runs the
 * orchestration. Source: seed 000 section 1.2.
 */
#pragma once

#include "pto_orchestration_api.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /* A task that does not run before it is published, which is to be in the scope that is open now.
   * PTO2_TASK_NONE: the run has failed. */
  static inline PTO2TaskId
  pto2_rt_add_task (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type, PTOParam *params,
                    int32_t n_params)
  {
    PTO2Submit submit = pto2_make_submit (kernel_id, worker_type, params, n_params);

    submit.unpublished = 1;
    return rt->ops->submit (rt, &submit);
  }

  /* successor, which is not published, runs when predecessor is done, too: a task of either kind
   * that was there before successor. false: predecessor is done, so there is nothing to wait for;
   * or the run has failed. */
  static inline bool
  pto2_rt_add_successor_conditional (PTO2Runtime *rt, PTO2TaskId predecessor, PTO2TaskId successor)
  {
    return rt->ops->add_successor (rt, predecessor, successor);
  }

  /* The task has all its predecessors: it may run. */
  static inline void
  pto2_rt_publish_task (PTO2Runtime *rt, PTO2TaskId task)
  {
    rt->ops->publish_task (rt, task);
  }

  /* Memory of the device until the run ends, 64-byte aligned, with whatever it holds. NULL: there
   * is none, and the run has failed. make_tensor_external() makes tensors of it. */
  static inline void *
  pto2_rt_device_malloc (PTO2Runtime *rt, uint64_t bytes)
  {
    return rt->ops->device_malloc (rt, bytes);
  }

/* Notes its place. The name without parentheses behind it is the function above. */
#define pto2_rt_add_task(rt, ...) (pto2_rt_add_task) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_add_successor_conditional(rt, ...) \
  (pto2_rt_add_successor_conditional) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_publish_task(rt, ...) (pto2_rt_publish_task) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_device_malloc(rt, ...) (pto2_rt_device_malloc) (PTO2_HERE_ (rt), __VA_ARGS__)

#ifdef __cplusplus
}

/* The same under the names of seed 000. What comes last is the caller's place. */
struct AicpuBuildApi
{
  PTO2Runtime *rt;

  explicit AicpuBuildApi (PTO2Runtime *runtime) : rt (runtime) {}
  PTO2TaskId
  add_task (int32_t kernel_id, int32_t worker_type, PTOParam *params, int32_t n_params,
            const char *file = __builtin_FILE(), int32_t line = __builtin_LINE()) const
  {
    return (pto2_rt_add_task) (pto2_rt_at (rt, file, line), kernel_id, worker_type, params,
                               n_params);
  }
  bool
  add_successor_conditional (PTO2TaskId predecessor, PTO2TaskId successor,
                             const char *file = __builtin_FILE(),
                             int32_t line = __builtin_LINE()) const
  {
    return (pto2_rt_add_successor_conditional) (pto2_rt_at (rt, file, line), predecessor,
                                                successor);
  }
  void
  publish_task (PTO2TaskId task, const char *file = __builtin_FILE(),
                int32_t line = __builtin_LINE()) const
  {
    (pto2_rt_publish_task) (pto2_rt_at (rt, file, line), task);
  }
  void *
  device_malloc (uint64_t bytes, const char *file = __builtin_FILE(),
                 int32_t line = __builtin_LINE()) const
  {
    return (pto2_rt_device_malloc) (pto2_rt_at (rt, file, line), bytes);
  }
};
#endif
