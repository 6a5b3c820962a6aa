/* test-seeds.c: does the C of seed 003, layer 2, run as it is written there?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A listing stands between two lines of dashes; what it leaves out stands before it.
 */
#include <dlfcn.h>
#include <glib/gstdio.h>
#include <pto/pto.h>
#include <pto_runtime_c_api.h>
#include <string.h>

#define N 2000

typedef struct
{
  PtoCallable *callable;
  PtoBuffer *buffers[3];
  float *a, *b, *c;
  ChipStorageTaskArgs args;
  DeviceContextHandle ctx; /* of those tests that keep one here */
} Fixture;

static float *
make_vector (Fixture *fixture, guint index, float value)
{
  g_autoptr (GError) error = NULL;
  float *floats;

  fixture->buffers[index] = pto_buffer_new (N * sizeof (float), &error);
  g_assert_no_error (error);
  floats = GSIZE_TO_POINTER (pto_buffer_get_address (fixture->buffers[index]));
  for (guint i = 0; i < N; i++)
    floats[i] = value * (float) i;
  fixture->args.tensors_[index] = (ContinuousTensor){
    .data = GPOINTER_TO_SIZE (floats), .shapes = { N }, .ndims = 1, .dtype = PTO_DTYPE_FLOAT32
  };
  fixture->args.tensor_count_ = (int32_t) index + 1;
  return floats;
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_autofree char *directory
      = g_build_filename (g_getenv ("PTO_TEST_EXAMPLES"), "worked-example", "add", NULL);
  g_autoptr (GError) error = NULL;

  (void) data;
  fixture->callable = pto_chip_orchestration_new_for_directory (directory, &error);
  g_assert_no_error (error);
  fixture->a = make_vector (fixture, 0, 2);
  fixture->b = make_vector (fixture, 1, 3);
  fixture->c = make_vector (fixture, 2, 0);
  g_assert_cmpint (simpler_log_init (4, 0), ==, 0);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  (void) data;
  g_object_unref (fixture->callable);
  for (guint i = 0; i < 3; i++)
    pto_buffer_unref (fixture->buffers[i]);
}

static void
assert_sums (const Fixture *fixture)
{
  for (guint i = 0; i < N; i++)
    g_assert_cmpfloat (fixture->c[i], ==, 5 * (float) i);
}

/* data: the runtime. */
static void
test_listing (Fixture *fixture, gconstpointer data)
{
  const char *aicpu_binary = data;
  gsize aicpu_size = strlen (aicpu_binary);
  const char *aicore_binary = "a5sim";
  gsize aicore_size = strlen (aicore_binary);
  int log_level = 4, log_info_v = 0, device_id = 9;
  int32_t cid = 7;
  PtoCallable *callable = fixture->callable;
  /* The listing has the size before the memory, and no line for that. */
  void *runtime = g_malloc (get_runtime_size ());
  const ChipStorageTaskArgs *args = &fixture->args;
  CallConfig settings = { .block_dim = 3, .aicpu_thread_num = 3 };
  const CallConfig *config = &settings;
  SimplerRuntime *record = runtime;

  /* clang-format off */
  /* --- Seed 003, "Layer 2: C API". --- */
// libsimpler_log.so (RTLD_GLOBAL, loaded first by the Python wrapper):
simpler_log_init(log_level, log_info_v);              // seed HostLogger once

// host_runtime.so (RTLD_LOCAL, loaded after):
DeviceContextHandle ctx = create_device_context();
simpler_init(ctx, device_id,                          // attach + binary takeover
             aicpu_binary, aicpu_size,
             aicore_binary, aicore_size);
size_t size = get_runtime_size();
register_callable(ctx, cid, callable);                 // one-time per callable
simpler_run(ctx, runtime, cid, args, config);        // per-launch — no binaries; config
                                                       // carries block_dim, aicpu_thread_num,
                                                       // diagnostics + ring overrides
  /* --- What it has come to, before it is over. --- */
  g_assert_cmpstr (pto_worker_get_platform (simpler_get_worker (ctx)), ==, "a5sim");
  g_assert_cmpuint (pto_worker_get_device_id (simpler_get_worker (ctx)), ==, 9);
  /* --- */
unregister_callable(ctx, cid);
finalize_device(ctx);
destroy_device_context(ctx);
  /* --- */
  /* clang-format on */

  g_assert_cmpuint (size, ==, sizeof (SimplerRuntime));
  assert_sums (fixture);
  g_assert_cmpuint (record->completed, ==, 2);
  g_assert_cmpuint (record->tasks, ==, 2);
  g_assert_cmpuint (record->edges, ==, 0);
  g_assert_cmpuint (record->run_ns, >, 0);
  g_free (runtime);
}

/* Programs that find the names by themselves. */
static void
test_symbols (void)
{
  static const char *const names[] = {
    "simpler_log_init",       "create_device_context", "simpler_init",       "get_runtime_size",
    "register_callable",      "simpler_run",           "finalize_device",    "unregister_callable",
    "destroy_device_context", "pto2_run_runtime",      "device_malloc",      "device_free",
    "copy_to_device",         "copy_from_device",      "simpler_last_error", "simpler_get_worker"
  };
  void *library = dlopen ("libpto-seeds-1.so.0", RTLD_NOW | RTLD_LOCAL);

  g_assert_nonnull (library);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    g_assert_nonnull (dlsym (library, names[i]));
  dlclose (library);
}

/* Seed 001, section 5: a slot is run on the chip of the thread. */
static void
test_slot (Fixture *fixture, gconstpointer data)
{
  DeviceContextHandle ctx = create_device_context ();
  CallConfig config = { .aicpu_thread_num = 2 };

  (void) data;
  g_assert_cmpint (pto2_run_runtime (1, &fixture->args, &config), ==, -1);
  g_assert_cmpstr (simpler_last_error (), ==,
                   "pto2_run_runtime: this thread has no chip: simpler_init() gives it one");
  g_assert_cmpint (simpler_init (ctx, 0, NULL, 0, NULL, 0), ==, 0);
  g_assert_cmpstr (pto_worker_get_platform (simpler_get_worker (ctx)), ==, "a2a3sim");
  g_assert_cmpint (register_callable (ctx, 1, fixture->callable), ==, 0);
  g_assert_cmpint (pto2_run_runtime (1, &fixture->args, &config), ==, 0);
  assert_sums (fixture);
  destroy_device_context (ctx);
  g_assert_cmpint (pto2_run_runtime (1, &fixture->args, &config), ==, -1);
  g_assert_cmpstr (simpler_last_error (), ==,
                   "simpler_run: the context has no chip: simpler_init() gives it one");
}

static void
test_memory (void)
{
  DeviceContextHandle ctx = create_device_context ();
  const guint32 words[4] = { 1, 2, 3, 4 };
  guint32 back[4] = { 0 };
  void *device;

  simpler_log_init (4, 0);
  g_assert_null (device_malloc (ctx, 16));
  g_assert_cmpint (simpler_init (ctx, 0, NULL, 0, NULL, 0), ==, 0);
  device = device_malloc (ctx, sizeof words);
  g_assert_nonnull (device);
  g_assert_cmpint (copy_to_device (ctx, device, words, sizeof words), ==, 0);
  g_assert_cmpint (copy_from_device (ctx, back, device, sizeof back), ==, 0);
  g_assert_cmpint (copy_to_device (ctx, device, NULL, 10), ==, -1);
  g_assert_cmpstr (
      simpler_last_error (), ==,
      "copy_to_device: 10 bytes of this process at address 0 (NULL): an address wanted");
  g_assert_cmpint (copy_from_device (ctx, NULL, device, 1), ==, -1);
  g_assert_cmpstr (
      simpler_last_error (), ==,
      "copy_from_device: 1 byte of this process at address 0 (NULL): an address wanted");
  g_assert_cmpint (copy_to_device (ctx, device, NULL, 0), ==, 0);
  g_assert_cmpmem (words, sizeof words, back, sizeof back);
  g_assert_cmpint (device_free (ctx, device), ==, 0);
  g_assert_cmpint (device_free (ctx, device), ==, -1);
  g_assert_true (g_str_has_prefix (simpler_last_error (), "device_free: "));
  g_assert_cmpint (copy_to_device (ctx, device, words, sizeof words), ==, -1);
  destroy_device_context (ctx);
}

static void
assert_refused (int status, const char *line)
{
  g_assert_cmpint (status, ==, -1);
  g_assert_cmpstr (simpler_last_error (), ==, line);
}

static void
assert_refused_with (int status, const char *part)
{
  g_assert_cmpint (status, ==, -1);
  if (strstr (simpler_last_error (), part) == NULL || strchr (simpler_last_error (), '\n') != NULL)
    g_error ("\"%s\" does not contain \"%s\" in one line", simpler_last_error (), part);
}

static void
test_refused (Fixture *fixture, gconstpointer data)
{
  DeviceContextHandle ctx = create_device_context ();
  g_autofree char *add
      = g_build_filename (g_getenv ("PTO_TEST_EXAMPLES"), "vector", "kernels", "add.c", NULL);
  g_autoptr (PtoCallable) kernel = pto_kernel_new (PTO_CORE_AIV, add, NULL, NULL);
  ChipStorageTaskArgs wrong = fixture->args;
  CallConfig config = { .aicpu_thread_num = 3 };

  (void) data;
  assert_refused (simpler_log_init (5, 0),
                  "simpler_log_init: log_level 5: there are 0 (all) to 4 (nothing)");
  assert_refused (simpler_log_init (4, -1), "simpler_log_init: log_info_v -1 is negative");
  assert_refused (simpler_init (NULL, 0, NULL, 0, NULL, 0),
                  "simpler_init: there is no context: create_device_context() makes one");
  assert_refused (simpler_init (ctx, 16, NULL, 0, NULL, 0),
                  "simpler_init: device_id 16: there are 0 to 15");
  assert_refused (simpler_init (ctx, -1, NULL, 0, NULL, 0),
                  "simpler_init: device_id -1: there are 0 to 15");
  assert_refused (simpler_init (ctx, 0, NULL, 3, NULL, 0),
                  "simpler_init: aicpu_binary: 3 bytes at no address");
  assert_refused (simpler_init (ctx, 0, "other", 5, NULL, 0),
                  "simpler_init: aicpu_binary: there is no runtime \"other\": "
                  "tensormap_and_ringbuffer, host_build_graph and aicpu_build_graph are");
  assert_refused (
      simpler_init (ctx, 0, NULL, 0, "\177ELF...", 7),
      "simpler_init: aicore_binary: 7 bytes are a program of the chip's own, or nothing "
      "known: of a simulated chip the name stands for it, as \"a2a3sim\"");
  assert_refused_with (simpler_init (ctx, 0, NULL, 0, "a2a3", 4),
                       "platform \"a2a3\" is the chip itself");
  assert_refused (register_callable (ctx, 0, fixture->callable),
                  "register_callable: the context has no chip: simpler_init() gives it one");
  assert_refused (simpler_run (ctx, NULL, 0, NULL, NULL),
                  "simpler_run: the context has no chip: simpler_init() gives it one");
  g_assert_cmpint (finalize_device (ctx), ==, 0);

  g_assert_cmpint (simpler_init (ctx, 0, NULL, 0, NULL, 0), ==, 0);
  assert_refused (simpler_init (ctx, 0, NULL, 0, NULL, 0),
                  "simpler_init: the context has a chip already: finalize_device() gives it back");
  assert_refused (register_callable (ctx, 0, NULL), "register_callable: callable 0 is NULL");
  assert_refused (register_callable (ctx, 0, kernel),
                  "register_callable: callable 0: \"add\" is no orchestration of a chip");
  assert_refused (simpler_run (ctx, NULL, 3, NULL, NULL),
                  "simpler_run: there is no callable 3: register_callable() takes one");
  g_assert_cmpint (register_callable (ctx, 3, fixture->callable), ==, 0);
  assert_refused (
      register_callable (ctx, 3, fixture->callable),
      "register_callable: there is a callable 3 already: unregister_callable() frees its number");
  assert_refused_with (simpler_run (ctx, NULL, 3, NULL, NULL), "callable 3: ");
  wrong.tensor_count_ = PTO_MAX_KERNEL_ARGS + 1;
  assert_refused (simpler_run (ctx, NULL, 3, &wrong, NULL),
                  "simpler_run: callable 3: 129 tensors and 0 scalars: there are 0 to 128 of each");
  wrong = fixture->args;
  wrong.tensors_[1].dtype = 99;
  assert_refused (
      simpler_run (ctx, NULL, 3, &wrong, NULL),
      "simpler_run: callable 3: no blob of arguments: what it has for tensor 1 is none");
  memset (config.output_prefix, 'x', sizeof config.output_prefix);
  assert_refused (simpler_run (ctx, NULL, 3, &fixture->args, &config),
                  "simpler_run: callable 3: output_prefix has 1024 bytes and no end");
  config = (CallConfig){ .aicpu_thread_num = 99 };
  assert_refused_with (simpler_run (ctx, NULL, 3, &fixture->args, &config), "99");
  g_assert_cmpint (unregister_callable (ctx, 3), ==, 0);
  assert_refused (unregister_callable (ctx, 3),
                  "unregister_callable: there is no callable 3: register_callable() takes one");

  /* After all that it runs. */
  g_assert_cmpint (register_callable (ctx, 3, fixture->callable), ==, 0);
  g_assert_cmpint (simpler_run (ctx, NULL, 3, &fixture->args, NULL), ==, 0);
  assert_sums (fixture);
  g_assert_cmpint (finalize_device (ctx), ==, 0);
  g_assert_cmpint (simpler_init (ctx, 1, NULL, 0, NULL, 0), ==, 0);
  assert_refused (simpler_run (ctx, NULL, 3, &fixture->args, NULL),
                  "simpler_run: there is no callable 3: register_callable() takes one");
  destroy_device_context (ctx);
  destroy_device_context (NULL);
}

/* Every field of a configuration arrives. */
static void
test_config (void)
{
  const CallConfig config = { 1, 2, 3, 4, 5, 6, 7, "prefix", 8 };
  g_autoptr (PtoCallConfig) read = simpler_read_config (&config);

  g_assert_cmpint (pto_call_config_get_block_dim (read), ==, 1);
  g_assert_cmpint (pto_call_config_get_aicpu_thread_num (read), ==, 2);
  g_assert_cmpint (pto_call_config_get_enable_l2_swimlane (read), ==, 3);
  g_assert_cmpint (pto_call_config_get_enable_dump_tensor (read), ==, 4);
  g_assert_cmpint (pto_call_config_get_enable_pmu (read), ==, 5);
  g_assert_cmpint (pto_call_config_get_enable_dep_gen (read), ==, 6);
  g_assert_cmpint (pto_call_config_get_enable_scope_stats (read), ==, 7);
  g_assert_cmpint (pto_call_config_get_enable_access_check (read), ==, 8);
  g_assert_cmpstr (pto_call_config_get_output_prefix (read), ==, "prefix");
}

/* On the runtime host_build_graph nothing runs while the graph is built: an element can not be read
 * then. */
static void
test_graph_first (void)
{
  static const char text[] = "#include \"pto_orchestration_api.h\"\n"
                             "PTO2OrchestrationConfig\n"
                             "aicpu_orchestration_config (uint64_t *args, int n)\n"
                             "{ return (PTO2OrchestrationConfig){ .expected_arg_count = 1 }; }\n"
                             "int\n"
                             "aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n)\n"
                             "{ Tensor x = pto2_rt_arg_tensor (rt, 0); uint64_t index[1] = { 0 };\n"
                             "  float value = 0; pto2_rt_get_element (rt, &x, index, &value);\n"
                             "  return value == 7 ? 0 : 1; }\n";
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("pto-seeds-XXXXXX", &error);
  g_autofree char *path = g_build_filename (dir, "orch.c", NULL);
  g_autoptr (PtoCallable) callable = NULL;
  float value = 7;
  ChipStorageTaskArgs args = {
    .tensor_count_ = 1,
    .tensors_ = { { .data = GPOINTER_TO_SIZE (&value),
                    .shapes = { 1 },
                    .ndims = 1,
                    .dtype = PTO_DTYPE_FLOAT32 } },
  };

  simpler_log_init (4, 0);
  g_assert_true (g_file_set_contents (path, text, -1, &error));
  callable = pto_chip_orchestration_new (path, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 2; i++)
    {
      const char *runtime = i == 0 ? "aicpu_build_graph" : "host_build_graph";
      DeviceContextHandle ctx = create_device_context ();

      g_assert_cmpint (simpler_init (ctx, 0, runtime, strlen (runtime), NULL, 0), ==, 0);
      g_assert_cmpint (register_callable (ctx, 0, callable), ==, 0);
      if (i == 0)
        g_assert_cmpint (simpler_run (ctx, NULL, 0, &args, NULL), ==, 0);
      else
        assert_refused_with (simpler_run (ctx, NULL, 0, &args, NULL), "captured");
      destroy_device_context (ctx);
    }
  g_unlink (path);
  g_rmdir (dir);
}

/* Runs of one context from several threads: each is told of its own. */
static gpointer
run_some (gpointer data)
{
  Fixture *fixture = data;
  DeviceContextHandle ctx = fixture->ctx;

  for (guint i = 0; i < 20; i++)
    {
      SimplerRuntime record = { 0 };

      g_assert_cmpint (simpler_run (ctx, &record, 7, &fixture->args, NULL), ==, 0);
      g_assert_cmpuint (record.completed, ==, 2);
    }
  return NULL;
}

static void
test_threads (Fixture *fixture, gconstpointer data)
{
  GThread *threads[3];

  (void) data;
  fixture->ctx = create_device_context ();
  g_assert_cmpint (simpler_init (fixture->ctx, 0, NULL, 0, NULL, 0), ==, 0);
  g_assert_cmpint (register_callable (fixture->ctx, 7, fixture->callable), ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("runs", run_some, fixture);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  assert_sums (fixture);
  destroy_device_context (fixture->ctx);
}

static void
test_told (void)
{
  if (g_test_subprocess ())
    {
      DeviceContextHandle ctx = create_device_context ();

      simpler_log_init (1, 0);
      simpler_init (ctx, 0, "host_build_graph", 16, NULL, 0);
      unregister_callable (ctx, 5);
      simpler_log_init (3, 9);
      unregister_callable (ctx, 6);
      simpler_log_init (4, 9);
      unregister_callable (ctx, 7);
      destroy_device_context (ctx);
      return;
    }
  g_test_trap_subprocess (NULL, 60 * G_USEC_PER_SEC, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr (
      "*simpler_init: device 0 is a a2a3sim, its runtime host_build_graph\n"
      "unregister_callable: there is no callable 5: *\nunregister_callable: there is no callable 6: *");
  g_test_trap_assert_stderr_unmatched ("*callable 7*");
}

int
main (int argc, char **argv)
{
  static const char *const runtimes[]
      = { "tensormap_and_ringbuffer", "host_build_graph", "aicpu_build_graph" };

  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (runtimes); i++)
    {
      g_autofree char *path = g_strconcat ("/pto/seeds/layer-2/", runtimes[i], NULL);

      g_test_add (path, Fixture, runtimes[i], set_up, test_listing, tear_down);
    }
  g_test_add_func ("/pto/seeds/symbols", test_symbols);
  g_test_add ("/pto/seeds/slot", Fixture, NULL, set_up, test_slot, tear_down);
  g_test_add_func ("/pto/seeds/memory", test_memory);
  g_test_add ("/pto/seeds/refused", Fixture, NULL, set_up, test_refused, tear_down);
  g_test_add_func ("/pto/seeds/config", test_config);
  g_test_add_func ("/pto/seeds/graph-first", test_graph_first);
  g_test_add ("/pto/seeds/threads", Fixture, NULL, set_up, test_threads, tear_down);
  g_test_add_func ("/pto/seeds/told", test_told);
  return g_test_run ();
}
