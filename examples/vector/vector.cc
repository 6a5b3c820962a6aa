/* vector.cc: how does a program in C++ run the five tasks of f = (a + b + 1)(a + b + 2) + (a + b)?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * No dependency is written down: the runtime finds them from what each task reads and writes. Build
 * and run:
 *
 *   c++ -std=c++17 vector.cc -o vector $(pkg-config --cflags --libs pto-1)
 *   ./vector DIR/vector/kernels
 */
#include <pto/pto.h>

#include <cstdio>
#include <memory>
#include <string>

static constexpr guint64 n_elements = 16384;

/* What is counted and what is an object of GObject, given back when nobody has it any more. */
template <auto unref> struct Unref
{
  template <typename T>
  void
  operator() (T *what) const
  {
    unref (what);
  }
};
template <typename T, auto unref> using Ref = std::unique_ptr<T, Unref<unref>>;
using Callable = Ref<PtoCallable, g_object_unref>;
using Worker = Ref<PtoWorker, g_object_unref>;
using Statistics = Ref<PtoRunStatistics, pto_run_statistics_free>;
using TaskArgs = Ref<PtoTaskArgs, pto_task_args_unref>;
using Tensor = Ref<PtoTensor, pto_tensor_unref>;

/* What a call of the library gives, or what it says is wrong. */
class Failure
{
public:
  ~Failure () { g_clear_error (&error); }

  operator GError ** () { return &error; }

  template <typename T>
  T
  check (T result) const
  {
    if (!result)
      throw std::string (error != nullptr ? error->message : "no message");
    return result;
  }

private:
  GError *error = nullptr;
};

struct Vector
{
  Callable add, add_scalar, mul;
  Tensor a, b, f;
};

static Tensor
new_tensor ()
{
  Failure failure;
  PtoBuffer *buffer = failure.check (pto_buffer_new (n_elements * sizeof (float), failure));
  PtoTensor *tensor
      = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_FLOAT32, 1, &n_elements, failure);

  pto_buffer_unref (buffer); /* which the tensor keeps */
  return Tensor (failure.check (tensor));
}

static float *
floats (const Tensor &tensor)
{
  return reinterpret_cast<float *> (pto_tensor_get_address (tensor.get ()));
}

static Callable
new_kernel (const std::string &directory, const char *name)
{
  Failure failure;
  std::string path = directory + "/" + name + ".c";
  Callable kernel (failure.check (pto_kernel_new (PTO_CORE_AIV, path.c_str (), nullptr, failure)));

  /* A submit with another number is refused. */
  failure.check (pto_kernel_set_n_args (PTO_KERNEL (kernel.get ()), 3, failure));
  return kernel;
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *, PtoCallConfig *, gpointer data, GError **error)
{
  const auto &vector = *static_cast<const Vector *> (data);
  /* Memory comes from a ring, at submit. */
  Tensor c (pto_tensor_new (PTO_DTYPE_FLOAT32, 1, &n_elements));
  Tensor d (pto_tensor_new (PTO_DTYPE_FLOAT32, 1, &n_elements));
  Tensor e (pto_tensor_new (PTO_DTYPE_FLOAT32, 1, &n_elements));
  Tensor g (pto_tensor_new (PTO_DTYPE_FLOAT32, 1, &n_elements));
  auto binary = [&] (const Callable &kernel, const Tensor &x, const Tensor &y, const Tensor &out,
                     PtoDirection direction) {
    TaskArgs args (pto_task_args_new ());

    pto_task_args_add_tensor (args.get (), x.get (), PTO_DIRECTION_INPUT);
    pto_task_args_add_tensor (args.get (), y.get (), PTO_DIRECTION_INPUT);
    pto_task_args_add_tensor (args.get (), out.get (), direction);
    return pto_orchestrator_submit (orchestrator, kernel.get (), args.get (), error);
  };
  auto plus = [&] (const Tensor &x, double value, const Tensor &out) {
    TaskArgs args (pto_task_args_new ());

    pto_task_args_add_tensor (args.get (), x.get (), PTO_DIRECTION_INPUT);
    pto_task_args_add_tensor (args.get (), out.get (), PTO_DIRECTION_OUTPUT);
    pto_task_args_add_scalar_float (args.get (), value);
    return pto_orchestrator_submit (orchestrator, vector.add_scalar.get (), args.get (), error);
  };

  return binary (vector.add, vector.a, vector.b, c, PTO_DIRECTION_OUTPUT) && plus (c, 1, d)
         && plus (c, 2, e) && binary (vector.mul, d, e, g, PTO_DIRECTION_OUTPUT)
         && binary (vector.add, g, c, vector.f, PTO_DIRECTION_OUTPUT_EXISTING);
}

static bool
run (const std::string &directory)
{
  Failure failure;
  Worker chip (failure.check (pto_worker_new_chip ("a2a3sim", failure)));
  Vector vector{ new_kernel (directory, "add"),
                 new_kernel (directory, "add_scalar"),
                 new_kernel (directory, "mul"),
                 new_tensor (),
                 new_tensor (),
                 new_tensor () };
  const float *a = floats (vector.a), *b = floats (vector.b), *f = floats (vector.f);
  guint64 wrong = 0;

  for (guint64 i = 0; i < n_elements; i++)
    {
      floats (vector.a)[i] = static_cast<float> (i % 100) / 4;
      floats (vector.b)[i] = 3;
    }
  failure.check (pto_worker_run (chip.get (), graph, &vector, nullptr, nullptr, nullptr, failure));
  for (guint64 i = 0; i < n_elements; i++)
    wrong += f[i] != (a[i] + b[i] + 1) * (a[i] + b[i] + 2) + (a[i] + b[i]);

  Statistics statistics (pto_worker_dup_statistics (chip.get ()));

  std::printf ("%u elements, %u tasks, %u edges: %s\n", static_cast<unsigned> (n_elements),
               static_cast<unsigned> (pto_run_statistics_get_tasks (statistics.get ())),
               static_cast<unsigned> (pto_run_statistics_get_edges (statistics.get ())),
               wrong == 0 ? "PASS" : "FAIL");
  pto_worker_close (chip.get ());
  return wrong == 0;
}

int
main (int argc, char **argv)
{
  try
    {
      return run (argc > 1 ? argv[1] : "examples/vector/kernels") ? 0 : 1;
    }
  catch (const std::string &message)
    {
      std::fprintf (stderr, "vector: %s\n", message.c_str ());
      return 1;
    }
}
