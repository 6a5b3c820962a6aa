/* runtime.h: how does a C++ program that was written after seed 004 build a task graph on the host?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tasks with their arguments and function ids, and which come after which; DeviceRunner makes a
 * PtoGraph of them. A task's arguments are 64 bits each, as its kernel gets them: addresses of
 * device memory, numbers. The seed gives no signatures: these are chosen here.
 *
 * InitRuntimeImpl() and FinalizeRuntimeImpl() are the program's own, with C linkage; 0 is success.
 */
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

class Runtime
{
public:
  struct Task
  {
    int func_id;
    std::vector<uint64_t> args;
    std::vector<int> successors;
    int fanin;
  };

  /* Gives the task's number, from 0. */
  int
  add_task (const uint64_t *args, int num_args, int func_id)
  {
    if (num_args < 0 || (num_args > 0 && args == nullptr))
      throw std::invalid_argument ("add_task: task " + std::to_string (tasks_.size ()) + ": "
                                   + std::to_string (num_args)
                                   + " arguments at no address, or fewer than none");
    tasks_.push_back (Task{ func_id, std::vector<uint64_t> (args, args + num_args), {}, 0 });
    return get_task_count () - 1;
  }

  int
  add_task (const std::vector<uint64_t> &args, int func_id)
  {
    return add_task (args.data (), static_cast<int> (args.size ()), func_id);
  }

  void
  add_successor (int from, int to)
  {
    get_task (to);
    if (from == to)
      throw std::invalid_argument ("add_successor: task " + std::to_string (from)
                                   + " can not come after itself");
    const_cast<Task &> (get_task (from)).successors.push_back (to);
    tasks_[static_cast<size_t> (to)].fanin++;
  }

  const Task &
  get_task (int task) const
  {
    if (task < 0 || task >= get_task_count ())
      throw std::out_of_range ("there is no task " + std::to_string (task) + " of "
                               + std::to_string (get_task_count ()));
    return tasks_[static_cast<size_t> (task)];
  }

  int
  get_task_count () const
  {
    return static_cast<int> (tasks_.size ());
  }

  /* Those that come after none. */
  std::vector<int>
  get_initial_ready_tasks () const
  {
    std::vector<int> ready;

    for (int task = 0; task < get_task_count (); task++)
      if (get_task (task).fanin == 0)
        ready.push_back (task);
    return ready;
  }

private:
  std::vector<Task> tasks_;
};

extern "C"
{
  int InitRuntimeImpl (Runtime *runtime);
  int FinalizeRuntimeImpl (Runtime *runtime);
}
