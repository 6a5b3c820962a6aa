/* seeds.cc: is what programs with the seeds' names need installed?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * usage: seeds DIRECTORY, of an orchestration that adds.
 */
#include <device_runner.h>
#include <worker.h>

#include <cstdio>

int
main (int, char **argv)
{
  std::vector<float> a (5000, 2), b (5000, 3), c (5000, 0);
  ChipWorker chip;
  TaskArgs args;

  for (std::vector<float> *vector : { &a, &b, &c })
    args.add_tensor (make_ct (vector->data (), { 5000 }), TensorArgType::INOUT);
  chip.init ();
  chip.register_callable (0, ChipCallable (argv[1]));
  chip.run (0, args.view (), CallConfig{});
  std::printf ("2 + 3 = %g\n", c[4999]);
  return DeviceRunner::Get ().context () == nullptr;
}
