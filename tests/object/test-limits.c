/* test-limits.c: is everything given back, and is nothing reached that is not there?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the heap holds is asked of malloc, what is loaded of the system, who lives of GObject.
 */
#include "level-test.h"

#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

/* --- what is there --- */

/* Lines of the map of this process that hold the text. */
static guint
count_mappings (const char *text)
{
  g_autofree char *maps = NULL;
  g_auto (GStrv) lines = NULL;
  guint n = 0;

  g_assert_true (g_file_get_contents ("/proc/self/maps", &maps, NULL, NULL));
  lines = g_strsplit (maps, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    n += lines[i][0] != '\0' && strstr (lines[i], text) != NULL;
  return n;
}

#ifndef SANITIZED
static guint
count_descriptors (void)
{
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/fd", 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

#endif

/* A step that begins and ends with nothing leaves the heap as it was. The first ones may make what
 * the program keeps; later ones may grow it by what a thread that has just ended held back, but not
 * all of them. */
typedef void (*Step) (gpointer data);

#ifndef SANITIZED
enum
{
  WARM = 6,
  BATCH = 8,
  TRIES = 4
};

typedef struct
{
  gsize bytes;
  guint mappings;
  guint descriptors;
} Least;

static Least
measure (Step step, gpointer data)
{
  Least least = { G_MAXSIZE, G_MAXUINT, G_MAXUINT };

  for (guint i = 0; i < BATCH; i++)
    {
      struct mallinfo2 info;

      step (data);
      info = mallinfo2 ();
      least.bytes = MIN (least.bytes, info.uordblks + info.hblkhd);
      least.mappings = MIN (least.mappings, count_mappings (""));
      least.descriptors = MIN (least.descriptors, count_descriptors ());
    }
  return least;
}

/* By 16 bytes, a mapping or a descriptor each step. */
static gboolean
grows (const Least *from, const Least *to)
{
  return to->bytes >= from->bytes + 16 * BATCH || to->mappings >= from->mappings + BATCH
         || to->descriptors >= from->descriptors + BATCH;
}
#endif

static void
assert_keeps_nothing (const char *what, Step step, gpointer data)
{
#ifdef SANITIZED
  /* Its own allocator is not asked; it looks for leaks itself. */
  step (data);
#else
  Least first, last;
  guint growing = 0;

  for (guint i = 0; i < WARM; i++)
    step (data);
  first = last = measure (step, data);
  /* What is kept by every step shows in every batch; what threads hold for a while does not. */
  for (guint i = 0; i < 2 || (i == growing && i < 2 * TRIES); i++)
    {
      Least now = measure (step, data);

      growing += grows (&last, &now);
      last = now;
    }
  g_test_message ("%s: %zu to %zu bytes, %u to %u mappings, %u to %u descriptors", what,
                  first.bytes, last.bytes, first.mappings, last.mappings, first.descriptors,
                  last.descriptors);
  if (growing == 2 * TRIES)
    g_error ("%s: %d steps keep %zu bytes, %d mappings, %d descriptors", what, 2 * TRIES * BATCH,
             last.bytes - first.bytes, (int) (last.mappings - first.mappings),
             (int) (last.descriptors - first.descriptors));
#endif
}

/* --- registrations --- */

typedef struct
{
  char *dir;
  const char *backend;
  PtoWorker *worker;
  PtoCallable *kernel;
  PtoBuffer *buffer; /* or NULL */
  guint n_records;
  guint n_steps;
} Fixture;

static PtoWorker *
new_worker (const char *backend)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = pto_worker_new_chip (NULL, &error);

  g_assert_no_error (error);
  pto_worker_set_parameter (worker, "backend", backend, &error);
  pto_worker_set_parameter (worker, "clusters", "3", &error);
  g_assert_no_error (error);
  pto_worker_start (worker, NULL, &error);
  g_assert_no_error (error);
  return worker;
}

static void
set_up (Fixture *fixture, gconstpointer backend)
{
  fixture->dir = object_test_make_dir ();
  fixture->backend = backend;
  fixture->worker = new_worker (backend);
}

static void
tear_down (Fixture *fixture, gconstpointer backend)
{
  if (fixture->worker != NULL)
    g_assert_finalize_object (fixture->worker);
  g_clear_object (&fixture->kernel);
  g_clear_pointer (&fixture->buffer, pto_buffer_unref);
  object_test_remove_dir (fixture->dir);
}

static gboolean
submit_fill (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
             gpointer kernel, GError **error)
{
  guint64 shape = 64;
  g_autoptr (PtoTensor) tensor = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, &shape);

  return pto_orchestrator_submit_full (orchestrator, kernel, error, PTO_OUT (tensor),
                                       PTO_SCALAR (0), NULL);
}

/* Objects that were compiled lie in the cache: a line of the map each segment. */
static guint
count_loaded (void)
{
  return count_mappings ("memfd:libpto-object");
}

/* Counts objects that have a user: a debugger finds them by a descriptor. One that had none for a
 * while has no descriptor any more. */
static guint
count_used (void)
{
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/fd", 0, NULL);
  const char *name;
  guint n = 0;

  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename ("/proc/self/fd", name, NULL);
      g_autofree char *file = g_file_read_link (path, NULL);

      n += file != NULL && strstr (file, "memfd:libpto-object") != NULL;
    }
  return n;
}

/* An object stays loaded, for its threads may live on; the same one is loaded once. */
static void
test_unloaded (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  PtoCallable *kernel = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  guint loaded = 0;

  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (PtoCallableHandle) one
          = pto_worker_register (fixture->worker, kernel, NULL, &error);
      g_autoptr (PtoCallableHandle) two
          = pto_worker_register (fixture->worker, kernel, NULL, &error);

      g_assert_no_error (error);
      if (i == 0)
        loaded = count_loaded ();
      g_assert_cmpuint (loaded, >, 0);
      g_assert_true (pto_worker_unregister (fixture->worker, one, &error));
      g_assert_true (pto_worker_unregister (fixture->worker, two, &error));
      g_assert_cmpuint (count_loaded (), ==, loaded);
      g_assert_false (pto_worker_unregister (fixture->worker, two, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
      g_clear_error (&error);
    }
  /* One that a run has registered itself is taken back by closing the worker. */
  pto_worker_run (fixture->worker, submit_fill, kernel, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (count_loaded (), ==, loaded);
  pto_worker_close (fixture->worker);
  g_assert_cmpuint (count_loaded (), ==, loaded);
  /* Nobody keeps it who does not need it any more. */
  g_assert_finalize_object (g_steal_pointer (&fixture->worker));
  g_assert_finalize_object (kernel);
}

static void
add_one (gpointer data)
{
  guint *destroyed = data;

  (*destroyed)++;
}

static gboolean
do_nothing (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  return TRUE;
}

/* A function of the program is let go of once, and not while it can be run. */
static void
test_destroyed (Fixture *fixture, gconstpointer backend)
{
  guint destroyed = 0;

  for (guint closing = 0; closing <= 1; closing++)
    {
      g_autoptr (GError) error = NULL;
      PtoWorker *host = level_test_host (3, 0, 1);
      PtoCallable *callable
          = pto_orchestration_function_new ("nothing", do_nothing, &destroyed, add_one);
      PtoCallableHandle *handle = pto_worker_register (host, callable, NULL, &error);

      g_assert_no_error (error);
      g_object_unref (callable);
      g_assert_cmpuint (destroyed, ==, closing);
      pto_worker_start (host, NULL, &error);
      g_assert_no_error (error);
      pto_worker_run_callable (host, handle, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (destroyed, ==, closing);
      if (!closing)
        g_assert_true (pto_worker_unregister (host, handle, &error));
      pto_callable_handle_unref (handle);
      /* What was known at the last fork is known until the next one, or the end. */
      pto_worker_close (host);
      g_assert_cmpuint (destroyed, ==, closing + 1);
      g_assert_finalize_object (host);
    }
}

static void
register_and_unregister (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (fixture->dir, "fill.c", NULL);
  g_autoptr (PtoCallable) kernel = pto_kernel_new (PTO_CORE_AIV, path, NULL, &error);
  g_autoptr (PtoCallableHandle) handle
      = pto_worker_register (fixture->worker, kernel, NULL, &error);

  g_assert_no_error (error);
  g_assert_true (pto_worker_unregister (fixture->worker, handle, &error));
}

static void
test_registrations (Fixture *fixture, gconstpointer backend)
{
  g_object_unref (object_test_kernel (fixture->dir, "fill.c", object_test_fill));
  assert_keeps_nothing ("registrations", register_and_unregister, fixture);
}

/* What is unregistered inside a run is there until its end, and not longer. */
#define N_RETIRED 2
typedef struct
{
  Fixture *fixture;
  PtoCallableHandle *handles[N_RETIRED];
  guint used;
} Retiring;

static gboolean
unregister_all (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  Retiring *self = data;

  for (guint i = 0; i < N_RETIRED; i++)
    if (!pto_worker_unregister (self->fixture->worker, self->handles[i], error))
      return FALSE;
  g_assert_cmpuint (count_used (), ==, self->used);
  return TRUE;
}

static void
retire (gpointer data)
{
  Retiring self = { .fixture = data };
  g_autoptr (GError) error = NULL;
  guint before = count_used ();

  for (guint i = 0; i < N_RETIRED; i++)
    {
      g_autofree char *name = g_strdup_printf ("fill%u.c", i);
      g_autofree char *path = g_build_filename (self.fixture->dir, name, NULL);
      g_autoptr (PtoCallable) kernel = pto_kernel_new (PTO_CORE_AIV, path, NULL, &error);

      g_assert_no_error (error);
      self.handles[i] = pto_worker_register (self.fixture->worker, kernel, NULL, &error);
      g_assert_no_error (error);
    }
  self.used = count_used ();
  g_assert_cmpuint (self.used, ==, before + (self.fixture->n_steps++ == 0 ? N_RETIRED : 0));
  pto_worker_run (self.fixture->worker, unregister_all, &self, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (count_used (), ==, before);
  for (guint i = 0; i < N_RETIRED; i++)
    {
      g_assert_false (pto_worker_unregister (self.fixture->worker, self.handles[i], &error));
      g_clear_error (&error);
      pto_callable_handle_unref (self.handles[i]);
    }
}

static void
test_retired (Fixture *fixture, gconstpointer backend)
{
  for (guint i = 0; i < N_RETIRED; i++)
    {
      g_autofree char *name = g_strdup_printf ("fill%u.c", i);
      g_autofree char *text = g_strdup_printf ("%sconst char retired[] = \"%u on %s\";\n",
                                               object_test_fill, i, fixture->backend);

      g_object_unref (object_test_kernel (fixture->dir, name, text));
    }
  assert_keeps_nothing ("registrations retired in a run", retire, fixture);
}

static gboolean
succeed (PtoTaskArgs *args, gpointer data, GError **error)
{
  return TRUE;
}

static gpointer
unref_elsewhere (gpointer object)
{
  g_object_unref (object);
  return NULL;
}

/* A function that another thread lets go of last is destroyed at home, and nothing of the way there
 * is left. */
static void
go_home (gpointer data)
{
  GMainContext *context = g_main_context_new ();
  guint destroyed = 0;

  g_main_context_push_thread_default (context);
  for (guint i = 0; i < 4; i++)
    {
      PtoCallable *callable
          = i % 2 == 0 ? pto_sub_function_new ("f", succeed, &destroyed, add_one)
                       : pto_orchestration_function_new ("g", do_nothing, &destroyed, add_one);

      g_thread_join (g_thread_new ("other", unref_elsewhere, callable));
      g_assert_cmpuint (destroyed, ==, i < 2 ? 0 : 2);
      if (i == 1)
        while (g_main_context_iteration (context, FALSE))
          ;
    }
  g_main_context_pop_thread_default (context);
  g_main_context_unref (context);
  g_assert_cmpuint (destroyed, ==, 4);
}

static void
test_homes (void)
{
  assert_keeps_nothing ("functions let go of elsewhere", go_home, NULL);
}

/* What a chip's machine is can be chosen until it is initialized. */
static void
choose (gpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) worker = pto_worker_new_chip (NULL, &error);

  for (guint i = 0; i < 4; i++)
    {
      pto_worker_set_parameter (worker, "isolate", i % 2 == 0 ? "1" : "0", &error);
      g_assert_no_error (error);
    }
}

static void
test_choices (void)
{
  assert_keeps_nothing ("machines that were chosen and not used", choose, NULL);
}

/* --- runs and workers --- */

static void
run_and_look (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoRunStatistics) statistics = NULL;
  g_autoptr (PtoTrace) trace = NULL;
  g_autoptr (PtoCallConfig) config = pto_call_config_new ();
  guint number = fixture->n_records++;
  g_autofree char *prefix = g_build_filename (fixture->dir, "run-", NULL);
  /* The same prefix is another name each time. */
  g_autofree char *record = number == 0 ? g_strconcat (prefix, "swimlane.json", NULL)
                                        : g_strdup_printf ("%srun%u-swimlane.json", prefix, number);
  g_autofree char *json = NULL;
  g_autofree char *svg = NULL;
  g_autofree char *summary = NULL;
  g_autofree guint64 *path = NULL;
  gsize n;

  pto_call_config_set_enable_l2_swimlane (config, 1);
  pto_call_config_set_output_prefix (config, prefix);
  pto_worker_run (fixture->worker, submit_fill, fixture->kernel, NULL, config, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (unlink (record), ==, 0);
  trace = pto_worker_ref_trace (fixture->worker);
  g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 1);
  json = pto_trace_to_json (trace);
  svg = pto_trace_to_svg (trace);
  summary = pto_trace_summarize (trace);
  path = pto_trace_dup_critical_path (trace, &n);
  g_assert_cmpuint (n, ==, 1);
  g_assert_cmpuint (strlen (pto_trace_get_sha256 (trace)), ==, 64);
  statistics = pto_worker_dup_statistics (fixture->worker);
  g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 1);
}

static void
test_runs (Fixture *fixture, gconstpointer backend)
{
  fixture->kernel = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  assert_keeps_nothing ("runs", run_and_look, fixture);
}

static gboolean
ask_for_record (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  Fixture *fixture = data;

  g_assert_null (pto_worker_ref_trace (fixture->worker));
  return submit_fill (orchestrator, args, config, fixture->kernel, error);
}

/* A record is that of the last run, as long as there is one, and lives on with whoever has it. */
static void
test_records (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (PtoTrace) kept = NULL;
  g_autofree char *sha256 = NULL;

  fixture->kernel = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  g_assert_null (pto_worker_ref_trace (fixture->worker));
  g_assert_null (pto_worker_dup_statistics (fixture->worker));
  for (guint i = 0; i < 4; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoCallConfig) config = pto_call_config_new ();
      g_autoptr (PtoTrace) trace = NULL;
      g_autoptr (PtoTrace) again = NULL;

      pto_call_config_set_enable_l2_swimlane (config, i % 2 == 0);
      pto_worker_run (fixture->worker, ask_for_record, fixture, NULL, config, NULL, &error);
      g_assert_no_error (error);
      trace = pto_worker_ref_trace (fixture->worker);
      again = pto_worker_ref_trace (fixture->worker);
      g_assert_true (trace == again);
      g_assert_cmpint (trace != NULL, ==, i % 2 == 0);
      if (trace == NULL)
        continue;
      g_assert_true (trace != kept);
      g_assert_cmpuint (pto_trace_get_n_tasks (trace), ==, 1);
      g_set_object (&kept, trace);
    }
  pto_worker_run (fixture->worker, ask_for_record, fixture, NULL, NULL, NULL, NULL);
  g_assert_null (pto_worker_ref_trace (fixture->worker));
  sha256 = g_strdup (pto_trace_get_sha256 (kept));
  {
    g_autoptr (PtoCallConfig) config = pto_call_config_new ();
    g_autoptr (PtoTrace) last = NULL;

    pto_call_config_set_enable_l2_swimlane (config, 1);
    pto_worker_run (fixture->worker, ask_for_record, fixture, NULL, config, NULL, NULL);
    last = pto_worker_ref_trace (fixture->worker);
    g_assert_nonnull (last);
  }
  pto_worker_close (fixture->worker);
  g_assert_null (pto_worker_ref_trace (fixture->worker));
  g_assert_cmpstr (pto_trace_get_sha256 (kept), ==, sha256);
  g_assert_cmpuint (pto_trace_get_n_tasks (kept), ==, 1);
}

/* --- what fails --- */

static gboolean
fail (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
      GError **error)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "no");
  return FALSE;
}

static gboolean
submit_badly (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  guint64 shape = 64;
  g_autoptr (PtoTensor) nowhere = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, &shape);

  return pto_orchestrator_submit_full (orchestrator, data, error, PTO_IN (nowhere), NULL);
}

static void
expect (gboolean ok, GError **error)
{
  g_assert_false (ok);
  g_assert_nonnull (*error);
  g_clear_error (error);
}

/* Refusals at every door: none keeps what it had taken before it refused. */
static void
be_refused (gpointer data)
{
  static const char *const bad[][2]
      = { { "no-such-thing", "1" }, { "heap", "much" }, { "isolate", "1" }, { "clusters", "1" } };
  Fixture *fixture = data;
  PtoWorker *worker = fixture->worker;
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (PtoCallable) function
      = pto_orchestration_function_new ("nothing", do_nothing, NULL, NULL);
  g_autofree char *broken_path = g_build_filename (fixture->dir, "broken.c", NULL);
  g_autoptr (PtoCallable) broken = pto_kernel_new (PTO_CORE_AIV, broken_path, NULL, &error);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  guint64 shape = 64;
  guint8 bytes[8] = { 0 };
  guint64 at = (guint64) (guintptr) bytes;

  g_assert_no_error (error);
  g_cancellable_cancel (cancelled);
  expect (pto_worker_register (worker, function, NULL, &error) != NULL, &error);
  expect (pto_worker_register (worker, broken, NULL, &error) != NULL, &error);
  expect (pto_worker_register (worker, broken, cancelled, &error) != NULL, &error);
  expect (pto_worker_run (worker, fail, NULL, args, NULL, NULL, &error), &error);
  expect (pto_worker_run (worker, submit_badly, fixture->kernel, args, NULL, NULL, &error), &error);
  expect (pto_worker_run (worker, submit_fill, fixture->kernel, NULL, NULL, cancelled, &error),
          &error);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    expect (pto_worker_set_parameter (worker, bad[i][0], bad[i][1], &error), &error);
  expect (pto_worker_dup_parameter (worker, "no-such-thing", &error) != NULL, &error);
  expect (pto_worker_copy_to_address (worker, at, at, 8, &error), &error);
  expect (pto_worker_free (worker, at, &error), &error);
  expect (pto_worker_malloc (worker, G_MAXUINT64 / 2, &error) != 0, &error);
  expect (pto_worker_new (1, NULL, &error) != NULL, &error);
  expect (pto_worker_new_chip ("no-such-platform", &error) != NULL, &error);
  expect (pto_worker_new_host (4, 1, 0, NULL, &error) != NULL, &error);
  expect (pto_platform_lookup ("no-such-platform", &error) != NULL, &error);
  expect (pto_buffer_new (0, &error) != NULL, &error);
  expect (pto_buffer_new (G_MAXINT64 / 2, &error) != NULL, &error);
  expect (pto_tensor_new_for_buffer (fixture->buffer, 1, PTO_DTYPE_UINT64, 1, &shape, &error)
              != NULL,
          &error);
  expect (pto_kernel_new (PTO_CORE_AIV, "/nonexistent/such/file.c", NULL, &error) != NULL, &error);
  expect (pto_chip_orchestration_new ("/nonexistent/such/file.c", NULL, &error) != NULL, &error);
  expect (pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, "/nonexistent/such/dir/libx.so:f",
                                                &error)
              != NULL,
          &error);
  expect (pto_imported_function_new (PTO_CALLABLE_SUB, "m:f()", &error) != NULL, &error);
  expect (pto_kernel_set_cost (PTO_KERNEL (fixture->kernel), "linear:x", &error), &error);
}

static void
test_refusals (Fixture *fixture, gconstpointer backend)
{
  g_free (object_test_write (fixture->dir, "broken.c", "#error \"on purpose\"\n"));
  fixture->kernel = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  fixture->buffer = pto_buffer_new (64, NULL);
  assert_keeps_nothing ("refusals", be_refused, fixture);
}

/* One tensor, as an output of two machines. */
typedef struct
{
  PtoCallable *kernel;
  PtoTensor *tensor;
} Shared;

static gboolean
submit_shared (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer data, GError **error)
{
  Shared *shared = data;

  return pto_orchestrator_submit_full (orchestrator, shared->kernel, error,
                                       PTO_OUT (shared->tensor), PTO_SCALAR (0), NULL);
}

/* A whole life, in which everything that is closed by the worker alone is left to it. */
static void
live (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GError) error = NULL;
  PtoWorker *worker = new_worker (fixture->backend);
  g_autofree char *path = g_build_filename (fixture->dir, "fill.c", NULL);
  g_autoptr (PtoCallable) kernel = pto_kernel_new (PTO_CORE_AIV, path, NULL, &error);
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (worker, kernel, NULL, &error);
  g_autoptr (PtoTensor) tensor = pto_tensor_new (PTO_DTYPE_FLOAT32, 1, (const guint64[]){ 64 });
  Shared shared = { fixture->kernel, tensor };

  g_assert_no_error (error);
  for (guint i = 0; i < 3; i++)
    {
      g_assert_cmpuint (pto_worker_malloc (worker, 5000, &error), !=, 0);
      g_assert_cmpuint (pto_worker_malloc (worker, 1 << 20, &error), !=, 0);
    }
  for (guint i = 0; i < 4; i++)
    {
      pto_worker_run (i % 2 == 0 ? fixture->worker : worker, submit_shared, &shared, NULL, NULL,
                      NULL, &error);
      g_assert_no_error (error);
    }
  g_assert_finalize_object (worker);
}

static void
test_lives (Fixture *fixture, gconstpointer backend)
{
  fixture->kernel = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  assert_keeps_nothing ("lives", live, fixture);
}

static gboolean
count (PtoTaskArgs *args, gpointer data, GError **error)
{
  atomic_fetch_add (&level_test_words (args, 0)[0], 1);
  return TRUE;
}

typedef struct
{
  LevelTestBoard *board;
  PtoCallableHandle *handle;
} Graph;

static gboolean
submit_count (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Graph *graph = data;

  return level_test_submit (orchestrator, graph->handle, graph->board->tensor, PTO_DIRECTION_INOUT,
                            0, -1, error);
}

static void
live_on_level_3 (gpointer data)
{
  g_autoptr (GError) error = NULL;
  PtoWorker *host = level_test_host (3, 0, 1);
  Graph graph = { .board = data };
  PtoBuffer *late;

  graph.handle = level_test_register (host, "count", count);
  pto_worker_start (host, NULL, &error);
  g_assert_no_error (error);
  late = pto_buffer_new (100000, &error);
  g_assert_no_error (error);
  pto_worker_run (host, submit_count, &graph, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  pto_callable_handle_unref (graph.handle);
  g_assert_finalize_object (host);
  pto_buffer_unref (late);
}

static void
test_lives_on_level_3 (void)
{
  LevelTestState state;
  LevelTestBoard board;

  level_test_begin (&state);
  level_test_board_init (&board);
  assert_keeps_nothing ("lives on level 3", live_on_level_3, &board);
  level_test_board_clear (&board);
  level_test_end (&state);
}

/* Children that are threads: what they keep is kept here. */
typedef struct
{
  PtoWorker *host;
  PtoCallable *chip;
  LevelTestBoard board;
  gboolean refuse;
  guint n_steps;
  PtoCallableHandle *sub;
  PtoCallableHandle *fill;
  int worker; /* whom to name */
} Late;

static PtoCallable *
import_count (PtoCallableKind kind, const char *path, gpointer data, GError **error)
{
  Late *late = data;

  if (!late->refuse)
    return pto_sub_function_new (path, count, NULL, NULL);
  g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, "%s is refused", path);
  return NULL;
}

static gboolean
submit_both (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Late *late = data;

  /* Unregistered here, the function is there until the run has ended. */
  return level_test_submit (orchestrator, late->sub, late->board.tensor, PTO_DIRECTION_INOUT, 0, -1,
                            error)
         && pto_worker_unregister (late->host, late->sub, error)
         && level_test_submit (orchestrator, late->fill, late->board.tensor, PTO_DIRECTION_OUTPUT,
                               7, -1, error);
}

static void
register_late (gpointer data)
{
  Late *late = data;
  g_autoptr (GError) error = NULL;
  /* Another one each time: what is kept of the last one is not replaced. */
  g_autofree char *name = g_strdup_printf ("module:count%04u", late->n_steps++);
  g_autoptr (PtoCallable) sub = pto_imported_function_new (PTO_CALLABLE_SUB, name, &error);

  late->refuse = TRUE;
  g_assert_null (pto_worker_register (late->host, sub, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
  g_clear_error (&error);
  late->refuse = FALSE;
  late->sub = pto_worker_register (late->host, sub, NULL, &error);
  g_assert_no_error (error);
  late->fill = pto_worker_register (late->host, late->chip, NULL, &error);
  g_assert_no_error (error);
  pto_worker_run (late->host, submit_both, late, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (late->board.words[LEVEL_TEST_WORDS - 1], ==, 7);
  g_assert_false (pto_worker_unregister (late->host, late->sub, NULL));
  g_assert_true (pto_worker_unregister (late->host, late->fill, &error));
  pto_callable_handle_unref (late->sub);
  pto_callable_handle_unref (late->fill);
}

static void
begin_late (Late *late, const char *dir, PtoChildMode mode)
{
  g_autoptr (GError) error = NULL;
  const guint32 device = 0;

  *late = (Late){ .chip = level_test_fill (dir) };
  level_test_board_init (&late->board);
  late->host = g_object_new (
      PTO_TYPE_WORKER, "level", 3, "n-sub-workers", 2, "child-mode", mode, "device-ids",
      g_variant_new_fixed_array (G_VARIANT_TYPE_UINT32, &device, 1, sizeof device), NULL);
  pto_worker_set_import_func (late->host, import_count, late, NULL);
  g_assert_true (pto_worker_start (late->host, NULL, &error));
  g_assert_no_error (error);
}

static void
end_late (Late *late)
{
  g_assert_finalize_object (late->host);
  g_object_unref (late->chip);
  level_test_board_clear (&late->board);
}

static void
test_late_registrations (void)
{
  char *dir = object_test_make_dir ();
  LevelTestState state;
  Late late;

  level_test_begin (&state);
  begin_late (&late, dir, PTO_CHILD_MODE_THREAD);
  assert_keeps_nothing ("registrations while children live", register_late, &late);
  end_late (&late);
  level_test_end (&state);
  object_test_remove_dir (dir);
}

static gboolean
submit_named (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Late *late = data;

  return level_test_submit (orchestrator, late->fill != NULL ? late->fill : late->sub,
                            late->board.tensor, PTO_DIRECTION_INOUT, 0, late->worker, error);
}

/* A worker that is named is there, or the task is refused: 2 SUB workers, 1 chip. */
static void
test_named_workers (void)
{
  static const int numbers[] = { -2, 0, 1, 2, 3, 255, 256, G_MAXINT, G_MININT };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) sub
      = pto_imported_function_new (PTO_CALLABLE_SUB, "module:count", &error);
  char *dir = object_test_make_dir ();
  LevelTestState state;
  Late late;

  level_test_begin (&state);
  begin_late (&late, dir, PTO_CHILD_MODE_PROCESS);
  late.sub = pto_worker_register (late.host, sub, NULL, &error);
  g_assert_no_error (error);
  for (guint of_chips = 0; of_chips <= 1; of_chips++)
    {
      if (of_chips)
        late.fill = pto_worker_register (late.host, late.chip, NULL, &error);
      for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
        {
          gboolean is_there = numbers[i] >= 0 && numbers[i] < (of_chips ? 1 : 2);

          late.worker = numbers[i];
          g_assert_cmpint (
              pto_worker_run (late.host, submit_named, &late, NULL, NULL, NULL, &error), ==,
              is_there);
          if (is_there)
            g_assert_no_error (error);
          else
            {
              object_test_assert_contains (error->message, numbers[i] < 0 ? "worker" : "has no ");
              g_clear_error (&error);
            }
        }
    }
  pto_callable_handle_unref (late.sub);
  pto_callable_handle_unref (late.fill);
  end_late (&late);
  level_test_end (&state);
  object_test_remove_dir (dir);
}

/* --- memory --- */

static void
use_buffers (gpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = NULL;
  guint64 shape[2] = { 10, 20 };
  PtoBuffer *buffer = pto_buffer_new (10000, &error);
  g_autoptr (PtoTensor) tensor
      = pto_tensor_new_for_buffer (buffer, 100, PTO_DTYPE_UINT16, 2, shape, &error);

  g_assert_no_error (error);
  bytes = pto_buffer_ref_bytes (buffer);
  g_assert_cmpuint (pto_buffer_get_size (buffer), ==, 10000);
  g_assert_cmpuint (g_bytes_get_size (bytes), ==, 10000);
  g_assert_true (g_bytes_get_data (bytes, NULL)
                 == (gpointer) (guintptr) pto_buffer_get_address (buffer));
  g_assert_cmpint (pto_buffer_get_fd (buffer), >=, 0);
  g_assert_cmpuint (pto_buffer_get_fd_offset (buffer), ==, 0);
  pto_buffer_unref (buffer);
}

static void
test_buffers (void)
{
  assert_keeps_nothing ("buffers", use_buffers, NULL);
}

static void
use_device (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GError) error = NULL;
  guint64 address = pto_worker_malloc (fixture->worker, 100000, &error);
  g_autoptr (GBytes) bytes = pto_worker_copy_from (fixture->worker, address, 100000, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (g_bytes_get_size (bytes), ==, 100000);
  g_assert_null (pto_worker_copy_from (fixture->worker, address, 100001, &error));
  g_clear_error (&error);
  g_assert_true (pto_worker_free (fixture->worker, address, &error));
}

static void
test_device (Fixture *fixture, gconstpointer backend)
{
  /* What the program has given back lies aside for a while, up to a limit. */
  for (guint i = 0; i < 256; i++)
    use_device (fixture);
  assert_keeps_nothing ("device buffers", use_device, fixture);
}

/* A range whose end comes round to where memory is again is not believed. */
static void
test_ranges (Fixture *fixture, gconstpointer backend)
{
  g_autoptr (GError) error = NULL;
  guint64 address = pto_worker_malloc (fixture->worker, 256, &error);
  guint8 host[256] = { 0 };
  guint64 at = (guint64) (guintptr) host;
  const guint64 ranges[][2] = { { address, 257 },
                                { address + 255, 2 },
                                { address + 256, 1 },
                                { address - 1, 2 },
                                { address, G_MAXUINT64 },
                                { address + 1, G_MAXUINT64 },
                                { address + 128, -address },
                                { address + 128, G_MAXUINT64 - address - 126 },
                                { G_MAXUINT64, 1 },
                                { G_MAXUINT64 - 8, address },
                                { 0, address + 1 } };

  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (ranges); i++)
    for (guint from = 0; from <= 1; from++)
      {
        gboolean copied = from ? pto_worker_copy_from_address (fixture->worker, at, ranges[i][0],
                                                               ranges[i][1], &error)
                               : pto_worker_copy_to_address (fixture->worker, ranges[i][0], at,
                                                             ranges[i][1], &error);

        g_assert_false (copied);
        g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
        g_clear_error (&error);
      }
  g_assert_true (pto_worker_copy_to_address (fixture->worker, address, at, 256, &error));
  g_assert_true (pto_worker_copy_to_address (fixture->worker, address + 255, at, 1, &error));
  g_assert_true (pto_worker_copy_from_address (fixture->worker, at, address, 256, &error));
  g_assert_no_error (error);
  g_assert_true (pto_worker_free (fixture->worker, address, &error));
}

/* Tensors in a buffer of 100 elements of 8 bytes. */
static void
test_tensor_ranges (void)
{
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (800, NULL);
  const guint64 good[][2] = { { 0, 100 }, { 8, 99 }, { 792, 1 }, { 400, 50 } };
  const guint64 bad[][2] = { { 0, 101 },
                             { 8, 100 },
                             { 800, 1 },
                             { 793, 1 },
                             { G_MAXUINT64, 1 },
                             { G_MAXUINT64 - 7, 1 },
                             { G_MAXUINT64 - 7, 2 },
                             { G_MAXUINT64 - 799, 100 },
                             { 0, G_MAXUINT64 / 8 },
                             { 0, G_MAXUINT64 / 8 + 2 },
                             { 8, G_MAXUINT64 / 8 } };

  for (guint i = 0; i < G_N_ELEMENTS (good); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoTensor) tensor = pto_tensor_new_for_buffer (
          buffer, good[i][0], PTO_DTYPE_UINT64, 1, &good[i][1], &error);

      g_assert_no_error (error);
      g_assert_cmpuint (pto_tensor_get_address (tensor), ==,
                        pto_buffer_get_address (buffer) + good[i][0]);
    }
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (
          pto_tensor_new_for_buffer (buffer, bad[i][0], PTO_DTYPE_UINT64, 1, &bad[i][1], &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
    }
}

int
main (int argc, char **argv)
{
  static const char *const backends[] = { "par", "det", "threads" };
  static const struct
  {
    const char *name;
    void (*test) (Fixture *fixture, gconstpointer backend);
  } tests[] = { { "unloaded", test_unloaded }, { "registrations", test_registrations },
                { "runs", test_runs },         { "lives", test_lives },
                { "device", test_device },     { "ranges", test_ranges },
                { "retired", test_retired },   { "records", test_records } };

#ifndef SANITIZED
  /* Every piece is malloc's, and what is given back is back: no caches of threads. Both are looked
   * at once, before main(). */
  if (g_getenv ("PTO_TEST_PLAIN_MALLOC") == NULL)
    {
      g_setenv ("PTO_TEST_PLAIN_MALLOC", "1", TRUE);
      g_setenv ("G_SLICE", "always-malloc", TRUE);
      g_setenv ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", TRUE);
      execv ("/proc/self/exe", argv);
    }
#endif
  g_test_init (&argc, &argv, NULL);
  for (guint t = 0; t < G_N_ELEMENTS (tests); t++)
    for (guint b = 0; b < G_N_ELEMENTS (backends); b++)
      {
        g_autofree char *path = g_strdup_printf ("/pto/limits/%s/%s", tests[t].name, backends[b]);

        g_test_add (path, Fixture, backends[b], set_up, tests[t].test, tear_down);
      }
  g_test_add ("/pto/limits/refusals", Fixture, "par", set_up, test_refusals, tear_down);
  g_test_add ("/pto/limits/destroyed", Fixture, "par", set_up, test_destroyed, tear_down);
  g_test_add_func ("/pto/limits/lives-on-level-3", test_lives_on_level_3);
  g_test_add_func ("/pto/limits/late-registrations", test_late_registrations);
  g_test_add_func ("/pto/limits/named-workers", test_named_workers);
  g_test_add_func ("/pto/limits/buffers", test_buffers);
  g_test_add_func ("/pto/limits/choices", test_choices);
  g_test_add_func ("/pto/limits/homes", test_homes);
  g_test_add_func ("/pto/limits/tensor-ranges", test_tensor_ranges);
  return g_test_run ();
}
