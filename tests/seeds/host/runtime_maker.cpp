// runtime_maker.cpp: which graph does the host of seed 004 build, and is what comes out right?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// f = (a + b + 1)(a + b + 2), with 4 tasks and their dependencies, as the seed's example has it.
#include "device_runner.h"

#include <cstdio>
#include <cstring>

#define SIZE 16384

static float *f_dev;

static void *
upload (DeviceRunner &runner, float value)
{
  std::vector<float> host (SIZE, value);
  void *device = runner.AllocateTensor (SIZE * sizeof (float));

  runner.CopyToDevice (device, host.data (), SIZE * sizeof (float));
  return device;
}

static uint64_t
word (const void *device)
{
  return reinterpret_cast<uintptr_t> (device);
}

static uint64_t
word (float value)
{
  uint32_t bits;

  std::memcpy (&bits, &value, sizeof bits);
  return bits;
}

extern "C" int
InitRuntimeImpl (Runtime *runtime)
{
  DeviceRunner &runner = DeviceRunner::Get ();

  runner.CompileAndLoadKernel (0, "add.cpp", 1);
  runner.CompileAndLoadKernel (1, "add_scalar.cpp", 1);
  runner.CompileAndLoadKernel (2, "mul.cpp", 1);
  void *a = upload (runner, 2), *b = upload (runner, 3), *c = upload (runner, 0),
       *d = upload (runner, 0), *e = upload (runner, 0);
  f_dev = static_cast<float *> (upload (runner, 0));
  int t0 = runtime->add_task ({ word (a), word (b), word (c), SIZE }, 0);
  int t1 = runtime->add_task ({ word (c), word (1.0f), word (d), SIZE }, 1);
  int t2 = runtime->add_task ({ word (c), word (2.0f), word (e), SIZE }, 1);
  int t3 = runtime->add_task ({ word (d), word (e), word (f_dev), SIZE }, 2);
  runtime->add_successor (t0, t1);
  runtime->add_successor (t0, t2);
  runtime->add_successor (t1, t3);
  runtime->add_successor (t2, t3);
  return runtime->get_initial_ready_tasks () == std::vector<int>{ t0 } ? 0 : -1;
}

extern "C" int
FinalizeRuntimeImpl (Runtime *)
{
  std::vector<float> f (SIZE);

  DeviceRunner::Get ().CopyFromDevice (f.data (), f_dev, SIZE * sizeof (float));
  for (float value : f)
    if (value != 42)
      return 1;
  std::printf ("# f: PASS (%d/%d elements matched)\n", SIZE, SIZE);
  std::fflush (stdout);
  return 0;
}
