/* host_binary.cpp: what has a host binary beside the program's own InitRuntimeImpl() and
 * FinalizeRuntimeImpl()?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Layer 2 of seed 004, over the DeviceRunner of the process. Compiled with the program's own
 * sources (BinaryCompiler does). What is thrown ends here.
 */
#include "device_runner.h"

#include <new>

#define EXPORT extern "C" __attribute__ ((visibility ("default")))

namespace
{
template <typename Call>
int
caught (const char *where, Call call)
{
  try
    {
      return call ();
    }
  catch (const std::exception &error)
    {
      return simpler_fail (where, error.what ());
    }
  catch (...)
    {
      return simpler_fail (where, "something was thrown that is no std::exception");
    }
}

int
own (const char *where, const char *name, int status)
{
  if (status == 0)
    return 0;
  return simpler_fail (where,
                       (std::string (name) + " has given " + std::to_string (status)).c_str ());
}

pto_seeds::Binary
bytes (const void *data, size_t size)
{
  return pto_seeds::Binary (static_cast<const char *> (data), data != nullptr ? size : 0);
}

Runtime *
runtime (void *handle)
{
  if (handle == nullptr)
    throw DeviceError ("there is no runtime");
  return static_cast<Runtime *> (handle);
}
} // namespace

EXPORT size_t
GetRuntimeSize (void)
{
  return sizeof (Runtime);
}

EXPORT int
InitRuntime (void *runtime_handle)
{
  return caught ("InitRuntime", [=] {
    Runtime *made = new (runtime (runtime_handle)) Runtime;
    int status;

    try
      {
        status = own ("InitRuntime", "InitRuntimeImpl()", InitRuntimeImpl (made));
      }
    catch (...)
      {
        made->~Runtime ();
        throw;
      }
    if (status != 0)
      made->~Runtime ();
    return status;
  });
}

EXPORT int
FinalizeRuntime (void *runtime_handle)
{
  return caught ("FinalizeRuntime", [=] {
    Runtime *made = runtime (runtime_handle);
    auto ended = std::unique_ptr<Runtime, void (*) (Runtime *)> (
        made, [] (Runtime *it) { it->~Runtime (); });
    int status = own ("FinalizeRuntime", "FinalizeRuntimeImpl()", FinalizeRuntimeImpl (made));

    DeviceRunner::Get ().release ();
    return status;
  });
}

EXPORT int
DeviceRunner_Init (int device_id, int num_cores, const void *aicpu_binary, size_t aicpu_size,
                   const void *aicore_binary, size_t aicore_size, const char *pto_isa_root)
{
  return caught ("DeviceRunner_Init", [=] {
    DeviceRunner::Get ().Init (device_id, num_cores, bytes (aicpu_binary, aicpu_size),
                               bytes (aicore_binary, aicore_size),
                               pto_isa_root != nullptr ? pto_isa_root : "");
    return 0;
  });
}

EXPORT int
DeviceRunner_Run (void *runtime_handle, int launch_aicpu_num)
{
  return caught ("DeviceRunner_Run", [=] {
    DeviceRunner::Get ().Run (*runtime (runtime_handle), launch_aicpu_num);
    return 0;
  });
}

EXPORT int
DeviceRunner_Finalize (void)
{
  return caught ("DeviceRunner_Finalize", [] {
    DeviceRunner::Get ().Finalize ();
    return 0;
  });
}

EXPORT int
launch_runtime (void *runtime_handle, int aicpu_thread_num, int block_dim, int device_id,
                const void *aicpu_binary, size_t aicpu_size, const void *aicore_binary,
                size_t aicore_size)
{
  return caught ("launch_runtime", [=] {
    DeviceRunner &runner = DeviceRunner::Get ();

    if (block_dim < 1 || block_dim > PTO_MAX_BLOCKS / 3)
      throw DeviceError ("block_dim " + std::to_string (block_dim) + ": at least 1 is wanted");
    runner.Init (device_id, 3 * block_dim, bytes (aicpu_binary, aicpu_size),
                 bytes (aicore_binary, aicore_size));
    runner.Run (*runtime (runtime_handle), aicpu_thread_num);
    return 0;
  });
}
