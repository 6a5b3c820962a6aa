/* worker_error.h: how does what C says of a failure, and gives, reach C++?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <memory>
#include <pto/pto.h>
#include <stdexcept>
#include <string>

class WorkerError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

namespace pto_seeds
{
template <typename T, void (*unref) (T *)> struct Release
{
  void
  operator() (T *value) const
  {
    unref (value);
  }
};

template <typename T, void (*unref) (T *)> using Value = std::unique_ptr<T, Release<T, unref>>;
using Arguments = Value<PtoTaskArgs, pto_task_args_unref>;
using Choices = Value<PtoCallConfig, pto_call_config_free>;
using TensorValue = Value<PtoTensor, pto_tensor_unref>;
using Bytes = Value<GBytes, g_bytes_unref>;

[[noreturn]] inline void
refuse (GError *error)
{
  std::string text = error != nullptr ? error->message : "failed";

  g_clear_error (&error);
  throw WorkerError (text);
}

/* Calls what has an error last; gives what that gives, unless it is nothing. */
template <typename Function, typename... Args>
auto
must (Function function, Args... args)
{
  GError *error = nullptr;
  auto result = function (args..., &error);

  if (!result)
    refuse (error);
  return result;
}
} // namespace pto_seeds
