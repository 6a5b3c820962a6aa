/* test-remote-seeds.cc: does a C++ program with remote workers run with the words that seed 001 has
 * for them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <worker.h>

#include <map>
#include <type_traits>

static const uint32_t N = 1024;
static const uint64_t BYTES = N * sizeof (float);

static RemoteCallable
function (const std::string &name, WorkerType worker_type = NEXT_LEVEL)
{
  return RemoteCallable (std::string (g_getenv ("PTO_TEST_REMOTE_FUNCTIONS")) + ":remote_" + name,
                         RemoteCallableKind::LIBRARY_SYMBOL, worker_type);
}

static RemoteWorkerSpec
specification (int worker_id = -1)
{
  RemoteWorkerSpec spec;

  spec.endpoint = "local:";
  spec.worker_id = worker_id;
  return spec;
}

template <typename Call>
static void
assert_throws (Call call, const std::string &part)
{
  try
    {
      call ();
    }
  catch (const WorkerError &error)
    {
      std::string text = error.what ();
      if (text.find (part) == std::string::npos || text.find ('\n') != std::string::npos)
        g_error ("\"%s\" does not contain \"%s\" in one line", text.c_str (), part.c_str ());
      return;
    }
  g_error ("nothing was thrown: \"%s\" was expected", part.c_str ());
}

/* Memory that children see. */
class Shared
{
  PtoBuffer *buffer_ = pto_buffer_new (BYTES, nullptr);

public:
  float *values = reinterpret_cast<float *> (pto_buffer_get_address (buffer_));

  explicit Shared (float first, float step = 0)
  {
    for (uint32_t i = 0; i < N; i++)
      values[i] = first + step * static_cast<float> (i);
  }

  ~Shared () { pto_buffer_unref (buffer_); }
};

static std::vector<float>
count_up (void)
{
  std::vector<float> values (N);

  for (uint32_t i = 0; i < N; i++)
    values[i] = static_cast<float> (i);
  return values;
}

/* One task, with one tensor and a scalar. */
static void
run_one (Worker &w4, const CallableHandle &handle, const RemoteTensorRef &ref, int worker)
{
  w4.run ([&] (Orchestrator *orch, TaskArgsView, const CallConfig &) {
    RemoteTaskArgs args;

    args.add_tensor (ref, TensorArgType::INOUT);
    args.add_scalar (1);
    orch->submit_next_level (handle, args, CallConfig{}, worker);
  });
}

/* Memory of two remote workers, one of which has its id from the program, and a task for each. */
static void
test_stays (void)
{
  std::vector<float> host = count_up (), found (N);
  Worker w4 (4);
  int a = w4.add_remote_worker (specification ());
  int b = w4.add_remote_worker (specification (7));
  auto handle = w4.register_callable (function ("add_in_place"), { a, b });

  g_assert_cmpint (a, ==, 0);
  g_assert_cmpint (b, ==, 7);
  g_assert_cmpint (handle.identity ().target_namespace, ==, PTO_TARGET_REMOTE_TASK_DISPATCHER);
  w4.init ();
  std::map<int, RemoteBufferHandle> buffers;
  for (int worker : { a, b })
    {
      auto made = buffers.emplace (worker, w4.remote_malloc (worker, BYTES)).first;
      w4.remote_copy_to (made->second, host.data (), BYTES);
    }
  w4.run ([&] (Orchestrator *orch, TaskArgsView, const CallConfig &cfg) {
    for (auto &one : buffers)
      {
        RemoteTaskArgs remote;

        remote.add_tensor (RemoteTensorRef (one.second, 1024, { N - 256 }), TensorArgType::INOUT);
        remote.add_scalar (static_cast<uint64_t> (10 + one.first));
        orch->submit_next_level (handle, remote, cfg, one.first);
      }
  });
  for (auto &one : buffers)
    {
      w4.remote_copy_from (one.second, found.data (), BYTES);
      for (uint32_t i = 0; i < N; i++)
        g_assert_cmpfloat (found[i], ==,
                           host[i] + (i < 256 ? 0 : 10 + static_cast<float> (one.first)));
      w4.remote_copy_from (one.second, found.data (), 4, 1024);
      g_assert_cmpfloat (found[0], ==, 266 + static_cast<float> (one.first));
      w4.remote_free (one.second);
      g_assert_true (one.second.released ());
    }
  w4.close ();
}

/* A chip's orchestration, whose contents are sent, for the chips of both, a group, and what one of
 * them has below it. */
static void
test_below (void)
{
  Shared x (0, 1), two (2), sums[2] = { Shared (0), Shared (0) }, doubled (0);
  std::string directory = std::string (g_getenv ("PTO_TEST_EXAMPLES")) + "/worked-example/add";
  RemoteWorkerSpec with_chips = specification ();
  with_chips.device_ids = { 2, 3 };
  with_chips.num_sub_workers = 1;
  CallConfig config;
  Worker w4 (4);
  std::vector<int> ids = { w4.add_remote_worker (with_chips), w4.add_remote_worker (with_chips) };
  auto chip
      = w4.register_callable (RemoteCallable (directory, RemoteCallableKind::CHIP_CALLABLE), ids);
  auto on_chip = w4.register_callable (function ("add_on_chip"), ids);
  auto below = w4.register_callable (function ("double_below"), { ids[1] });

  config.block_dim = 3;
  w4.child (ids[1]).register_callable (function ("double", SUB));
  g_assert_cmpint (chip.identity ().target_namespace, ==, PTO_TARGET_LOCAL_CHIP);
  w4.run ([&] (Orchestrator *orch, TaskArgsView, const CallConfig &) {
    std::vector<RemoteTaskArgs> members (2);
    TaskArgs args;

    for (int i = 0; i < 2; i++)
      {
        members[i].add_tensor (make_ct (x.values, { N }));
        members[i].add_tensor (make_ct (two.values, { N }));
        members[i].add_tensor (make_ct (sums[i].values, { N }), TensorArgType::OUTPUT_EXISTING);
      }
    orch->submit_next_level_group (on_chip, members, config, ids);
    args.add_tensor (make_ct (x.values, { N }));
    args.add_tensor (make_ct (doubled.values, { N }), TensorArgType::OUTPUT_EXISTING);
    orch->submit_next_level (below, args);
  });
  for (uint32_t i = 0; i < N; i++)
    {
      g_assert_cmpfloat (sums[0].values[i], ==, x.values[i] + 2);
      g_assert_cmpfloat (sums[1].values[i], ==, x.values[i] + 2);
      g_assert_cmpfloat (doubled.values[i], ==, 2 * x.values[i]);
    }
  w4.close ();
}

/* A tensor that stays for a run, by the runtime. */
static void
test_make_tensor_at (void)
{
  Shared found (0);
  Worker w4 (4);
  int a = w4.add_remote_worker (specification ()), b = w4.add_remote_worker (specification ());
  auto add = w4.register_callable (function ("add_in_place"), { a, b });
  auto copy = w4.register_callable (function ("copy"), { a, b });

  w4.run ([&] (Orchestrator *orch, TaskArgsView, const CallConfig &) {
    RemoteTensorRef x = orch->make_tensor_at (b, { N });
    RemoteTaskArgs first, then;

    first.add_tensor (x, TensorArgType::OUTPUT);
    first.add_scalar (5);
    orch->submit_next_level (add, first, CallConfig{}, b);
    then.add_tensor (x);
    then.add_tensor (make_ct (found.values, { N }), TensorArgType::OUTPUT_EXISTING);
    orch->submit_next_level (copy, then, CallConfig{}, b);
    assert_throws ([&] { orch->submit_next_level (add, first, CallConfig{}, a); },
                   "argument 0 stays at worker 1 (make_tensor_at): name that worker");
  });
  for (uint32_t i = 0; i < N; i++)
    g_assert_cmpfloat (found.values[i], ==, 5);
  w4.close ();
}

/* Seed 001, section 3: an entry with data == 0, and a sidecar at its index. */
static void
test_sidecars (void)
{
  Worker w4 (4);
  float here[3] = { 0, 0, 0 };
  RemoteBufferHandle buffer = w4.remote_malloc (w4.add_remote_worker (specification ()), 64);
  RemoteTaskArgs args;

  args.add_tensor (RemoteTensorRef (buffer, 16, { 2, 3 }, DataType::INT16), TensorArgType::INOUT);
  args.add_tensor (make_ct (here, { 3 }));
  args.add_scalar (UINT64_MAX);
  TaskArgsView view = args.view ();
  g_assert_cmpint (args.tensor_count (), ==, 2);
  g_assert_cmpint (args.scalar_count (), ==, 1);
  g_assert_true (args.tag (0) == TensorArgType::INOUT && args.tag (1) == TensorArgType::INPUT);
  g_assert_cmpuint (view.tensors[0].data, ==, 0);
  g_assert_cmpuint (view.tensors[0].ndims, ==, 2);
  g_assert_cmpuint (view.tensors[0].shapes[1], ==, 3);
  g_assert_cmpuint (view.tensors[0].dtype, ==, PTO_DTYPE_INT16);
  g_assert_cmpuint (view.tensors[1].data, ==, reinterpret_cast<uintptr_t> (here));
  g_assert_cmpuint (view.scalars[0], ==, UINT64_MAX);
  g_assert_cmpuint (args.sidecar (0)->offset (), ==, 16);
  g_assert_cmpint (args.sidecar (0)->handle ()->worker_id (), ==, 0);
  g_assert_cmpuint (args.sidecar (0)->handle ()->nbytes (), ==, 64);
  g_assert_null (args.sidecar (1));
  static_assert (std::is_copy_constructible_v<RemoteTaskArgs>, "as TaskArgs");
  w4.close ();
}

static void
test_specification_refused (void)
{
  Worker w4 (4), w3 (3);
  RemoteWorkerSpec other = specification ();

  g_assert_cmpint (w4.add_remote_worker (specification (3)), ==, 3);
  assert_throws ([&] { w4.add_remote_worker (specification (3)); },
                 "the id 3 is that of L4/0/L3/3 already");
  assert_throws ([&] { w4.add_remote_worker (specification (-2)); },
                 "RemoteWorkerSpec: 0 SUB workers, worker_id -2: both begin with 0");
  assert_throws ([&] { w4.add_remote_worker (specification (70000)); },
                 "the option id of a remote worker is 0 to 65535, not 70000");
  assert_throws ([&] { w3.add_remote_worker (specification ()); },
                 "is below one of level 4 or more, not 3");
  other.endpoint = "one.example:7000";
  assert_throws ([&] { w4.add_remote_worker (other); }, "one.example:7000");
  other.endpoint = "unix:/nonexistent/nowhere";
  other.roots = { "/home/me/model", "/home/me/other" };
  assert_throws ([&] { w4.add_remote_worker (other); },
                 "the option roots is not for unix:/nonexistent/nowhere");
  other = specification ();
  other.device_ids = { 0, 1, 0 };
  assert_throws ([&] { w4.add_remote_worker (other); },
                 "RemoteWorkerSpec: device 0: each is there once, from 0 on");
  other.device_ids = { -1 };
  assert_throws ([&] { w4.add_remote_worker (other); }, "RemoteWorkerSpec: device -1");
  assert_throws ([&] { w4.child (0); },
                 "L4/0 has no remote worker 0: add_remote_worker() gives an id");
  g_assert_cmpuint (pto_worker_get_n_workers (w4.get ()), ==, 1);
}

static void
test_callable_refused (void)
{
  Worker w4 (4), local (3);
  int a = w4.add_remote_worker (specification ());
  std::string directory = std::string (g_getenv ("PTO_TEST_EXAMPLES")) + "/worked-example/add";

  w4.add_worker (local);
  assert_throws ([] { RemoteCallable ("a.b:c", static_cast<RemoteCallableKind> (9)); },
                 "RemoteCallable: there is no kind 9: PYTHON_IMPORT, CHIP_CALLABLE and");
  assert_throws ([] { RemoteCallable ("layer"); },
                 "\"layer\" can not be imported: write module:qualname");
  assert_throws ([] { RemoteCallable ("/nonexistent/nowhere", RemoteCallableKind::CHIP_CALLABLE); },
                 "/nonexistent/nowhere/pto.ini: there is no such file");
  assert_throws (
      [] { RemoteCallable ("/nonexistent/nowhere.so:f", RemoteCallableKind::LIBRARY_SYMBOL); },
      "/nonexistent/nowhere.so: there is no such file");
  assert_throws (
      [&] {
        w4.register_callable (function ("copy"), { a, 5 });
      },
      "L4/0 has no worker 5: the ids of its workers are 0, 1");
  RemoteCallable chip (directory, RemoteCallableKind::CHIP_CALLABLE);
  assert_throws ([&] { w4.register_callable (chip, { a, 1 }); }, "L4/0 has no remote worker 1: ");
  GError *error = nullptr;
  g_assert_null (pto_worker_lookup (w4.child (a).get (), "add_orch", &error)); /* taken back */
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_clear_error (&error);
  auto refuses = w4.register_callable (function ("refuse"), { a });
  assert_throws (
      [&] {
        w4.run ([&] (Orchestrator *orch, TaskArgsView, const CallConfig &) {
          orch->submit_next_level (refuses, {});
        });
      },
      "my own words");
  w4.close ();
}

/* Without roots and an interpreter nothing is imported. */
static void
test_no_roots (void)
{
  Worker w4 (4);
  int a = w4.add_remote_worker (specification ());

  w4.register_callable (RemoteCallable ("mymodel.steps:layer"), { a });
  assert_throws ([&] { w4.init (); }, "mymodel.steps:layer");
  w4.close ();
}

static void
test_memory_refused (void)
{
  Worker w4 (4), other (4);
  int a = w4.add_remote_worker (specification ()), b = w4.add_remote_worker (specification ());
  auto add = w4.register_callable (function ("add_in_place"), { a, b });
  char bytes[65] = "";

  other.add_remote_worker (specification ());
  RemoteBufferHandle buffer = w4.remote_malloc (a, 64);
  RemoteTensorRef ref (buffer, 0, { 16 });
  assert_throws ([&] { RemoteTensorRef (buffer, 0, { 17 }); },
                 "a tensor of 68 bytes at offset 0 does not fit in");
  assert_throws ([&] { RemoteTensorRef (buffer, 64, { 1 }); },
                 "a tensor of 4 bytes at offset 64 does not fit in");
  assert_throws ([&] { RemoteTensorRef (buffer, 0, {}); },
                 "the shape is refused: 1 to 5 dimensions");
  assert_throws (
      [&] {
        RemoteTensorRef (buffer, 0, { 1, 1, 1, 1, 1, 1 });
      },
      "the shape is refused: 1 to 5 dimensions");
  assert_throws ([&] { w4.remote_copy_to (buffer, bytes, 65); },
                 "reach beyond a buffer of 64 bytes");
  assert_throws ([&] { w4.remote_copy_from (buffer, bytes, 4, 61); },
                 "reach beyond a buffer of 64 bytes");
  assert_throws ([&] { w4.remote_malloc (a, UINT64_C (1) << 60); }, "L4/0/L3/0 has no room for");
  assert_throws ([&] { w4.remote_malloc (a, 0); }, "at least 1 is wanted");
  assert_throws ([&] { w4.remote_malloc (-1, 8); }, "L4/0 has no remote worker -1: ");
  assert_throws ([&] { run_one (w4, add, ref, b); },
                 "memory of L4/0/L3/0, which no other worker sees: name worker 0 for the task");
  assert_throws ([&] { other.remote_free (buffer); }, ", but of L4/0/L3/0");
  run_one (w4, add, ref, a);
  float one;
  w4.remote_copy_from (buffer, &one, sizeof one, 60);
  g_assert_cmpfloat (one, ==, 1);
  /* What was made of the handle before is refused, too. */
  w4.remote_free (buffer);
  assert_throws ([&] { run_one (w4, add, ref, a); },
                 "64 bytes at remote worker 0: they were freed by remote_free()");
  assert_throws ([&] { w4.remote_free (buffer); }, "they were freed by remote_free()");
  assert_throws ([&] { w4.remote_copy_to (*ref.handle (), bytes, 4); }, "they were freed");
  assert_throws ([&] { w4.remote_copy_from (buffer, bytes, 4); }, "they were freed");
  assert_throws ([&] { RemoteTensorRef (buffer, 0, { 1 }); }, "they were freed");
  other.close ();
  w4.close ();
}

/* Of a worker that was lost. */
static void
test_lost (void)
{
  Worker w4 (4);
  int a = w4.add_remote_worker (specification ()), b = w4.add_remote_worker (specification ());
  auto add = w4.register_callable (function ("add_in_place"), { a, b });
  auto stop = w4.register_callable (function ("stop"), { a });
  RemoteBufferHandle lost = w4.remote_malloc (a, 64), kept = w4.remote_malloc (b, 64);
  RemoteTensorRef ref (lost, 0, { 16 });
  float values[16];

  assert_throws ([&] { run_one (w4, stop, ref, a); }, "L4/0/L3/0");
  assert_throws ([&] { run_one (w4, add, ref, a); }, "L4/0/L3/0");
  assert_throws ([&] { w4.remote_copy_from (lost, values, sizeof values); }, "L4/0/L3/0");
  w4.remote_free (lost);
  run_one (w4, add, RemoteTensorRef (kept, 0, { 16 }), b);
  w4.remote_copy_from (kept, values, sizeof values);
  for (float value : values)
    g_assert_cmpfloat (value, ==, 1);
  w4.close ();
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, nullptr);
  simpler_log_init (4, 0);
  g_test_add_func ("/pto/remote-seeds/stays", test_stays);
  g_test_add_func ("/pto/remote-seeds/below", test_below);
  g_test_add_func ("/pto/remote-seeds/make-tensor-at", test_make_tensor_at);
  g_test_add_func ("/pto/remote-seeds/sidecars", test_sidecars);
  g_test_add_func ("/pto/remote-seeds/specification-refused", test_specification_refused);
  g_test_add_func ("/pto/remote-seeds/callable-refused", test_callable_refused);
  g_test_add_func ("/pto/remote-seeds/no-roots", test_no_roots);
  g_test_add_func ("/pto/remote-seeds/memory-refused", test_memory_refused);
  g_test_add_func ("/pto/remote-seeds/lost", test_lost);
  return g_test_run ();
}
