/* test-remote.c: does a worker that shares no memory do what one that does would?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define SMALL 16
/* More than travels in one call, and no multiple of its parts. */
#define LARGE ((3 << 20) / 8 + 77)

/* L4/0 with one remote worker below it, or more. */
typedef struct
{
  LevelTestState state;
  char *dir;
  PtoWorker *host;
  PtoWorker *remote; /* the first */
  PtoBuffer *x_buffer;
  PtoBuffer *y_buffer;
  PtoTensor *x;
  PtoTensor *y;
  guint64 n;
  /* Of the next run. */
  PtoCallableHandle *handle;
  guint n_tasks;
  PtoDirection direction; /* of y */
} Test;

static PtoCallable *
function (PtoCallableKind kind, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *symbol = g_strdup_printf ("%s:%s", g_getenv ("PTO_TEST_REMOTE_FUNCTIONS"), name);
  PtoCallable *callable = pto_imported_function_new_for_symbol (kind, symbol, &error);

  g_assert_no_error (error);
  return callable;
}

static void
register_on (PtoWorker *worker, PtoCallable *callable)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (worker, callable, NULL, &error);

  g_assert_no_error (error);
}

static GVariant *
make_options (guint n_devices, guint n_subs)
{
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&builder, "{sv}", "devices", g_variant_new_uint32 (n_devices));
  g_variant_builder_add (&builder, "{sv}", "sub-workers", g_variant_new_uint32 (n_subs));
  return g_variant_ref_sink (g_variant_builder_end (&builder));
}

static void
test_begin (Test *test, guint n_remotes, guint n_devices, PtoRestart restart, guint64 n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) options = make_options (n_devices, 1);
  const guint64 shape[] = { n };

  memset (test, 0, sizeof *test);
  level_test_begin (&test->state);
  test->dir = object_test_make_dir ();
  test->host = g_object_new (PTO_TYPE_WORKER, "level", 4, "restart", restart, NULL);
  for (guint i = 0; i < n_remotes; i++)
    {
      PtoWorker *remote = pto_worker_add_remote_worker (test->host, "local:", options, &error);
      g_autoptr (PtoCallable) add = function (PTO_CALLABLE_SUB, "add_sub");
      g_autoptr (PtoCallable) wait = function (PTO_CALLABLE_SUB, "wait_sub");

      g_assert_no_error (error);
      register_on (remote, add);
      register_on (remote, wait);
      if (n_devices > 0)
        {
          g_autoptr (PtoCallable) fill = level_test_fill (test->dir);

          register_on (remote, fill);
        }
      if (i == 0)
        test->remote = remote;
    }
  test->n = n;
  test->x_buffer = pto_buffer_new (n * 8, &error);
  g_assert_no_error (error);
  test->y_buffer = pto_buffer_new (n * 8, &error);
  g_assert_no_error (error);
  test->x = pto_tensor_new_for_buffer (test->x_buffer, 0, PTO_DTYPE_INT64, 1, shape, &error);
  g_assert_no_error (error);
  test->y = pto_tensor_new_for_buffer (test->y_buffer, 0, PTO_DTYPE_INT64, 1, shape, &error);
  g_assert_no_error (error);
  test->n_tasks = 1;
  test->direction = PTO_DIRECTION_OUTPUT_EXISTING;
}

static void
test_end (Test *test)
{
  pto_worker_close (test->host);
  g_clear_pointer (&test->handle, pto_callable_handle_unref);
  g_assert_finalize_object (test->host);
  pto_tensor_unref (test->x);
  pto_tensor_unref (test->y);
  pto_buffer_unref (test->x_buffer);
  pto_buffer_unref (test->y_buffer);
  object_test_remove_dir (test->dir);
  level_test_end (&test->state);
}

static gint64 *
words (PtoBuffer *buffer)
{
  return (gint64 *) (guintptr) pto_buffer_get_address (buffer);
}

static void
use (Test *test, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable = function (PTO_CALLABLE_ORCHESTRATION, name);

  g_clear_pointer (&test->handle, pto_callable_handle_unref);
  test->handle = pto_worker_register (test->host, callable, NULL, &error);
  g_assert_no_error (error);
}

/* n_tasks times x, y, 5: each needs the one before. */
static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Test *test = data;

  for (guint i = 0; i < test->n_tasks; i++)
    {
      g_autoptr (PtoTaskArgs) task = pto_task_args_new ();

      pto_task_args_add_tensor (task, test->x, PTO_DIRECTION_INPUT);
      pto_task_args_add_tensor (task, test->y, test->direction);
      pto_task_args_add_scalar (task, 5);
      if (!pto_orchestrator_submit_next_level (orchestrator, test->handle, task, NULL, -1, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
run (Test *test, GCancellable *cancellable, GError **error)
{
  return pto_worker_run (test->host, graph, test, NULL, NULL, cancellable, error);
}

/* It is there for the next task, or another one in its place. */
static void
assert_serves (Test *test)
{
  g_autoptr (GError) error = NULL;

  use (test, "add");
  words (test->x_buffer)[1] = 4;
  run (test, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (words (test->y_buffer)[1], ==, 14);
}

/* --- numbers --- */

static void
test_values (gconstpointer n)
{
  g_autoptr (GError) error = NULL;
  Test test;

  test_begin (&test, 1, 0, PTO_RESTART_NEVER, GPOINTER_TO_SIZE (n));
  use (&test, "add");
  for (guint round = 0; round < 2; round++)
    {
      for (guint64 i = 0; i < test.n; i++)
        {
          words (test.x_buffer)[i] = (gint64) (i * (round + 1));
          words (test.y_buffer)[i] = -1;
        }
      run (&test, NULL, &error);
      g_assert_no_error (error);
      for (guint64 i = 0; i < test.n; i++)
        {
          g_assert_cmpint (words (test.y_buffer)[i], ==, (gint64) (i * (round + 1)) + 10);
          g_assert_cmpint (words (test.x_buffer)[i], ==, (gint64) (i * (round + 1)));
        }
    }
  test_end (&test);
}

/* Registered after the start; chips of the remote worker. */
static gboolean
graph_fill (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  Test *test = data;
  g_autoptr (PtoTaskArgs) task = pto_task_args_new ();

  pto_task_args_add_tensor (task, test->y, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (task, 7);
  pto_task_args_add_scalar (task, test->n);
  return pto_orchestrator_submit_next_level (orchestrator, test->handle, task, NULL, -1, error);
}

static void
test_chip (void)
{
  g_autoptr (GError) error = NULL;
  Test test;

  test_begin (&test, 1, 1, PTO_RESTART_NEVER, SMALL);
  pto_worker_start (test.host, NULL, &error);
  g_assert_no_error (error);
  use (&test, "fill_chip");
  pto_worker_run (test.host, graph_fill, &test, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < SMALL; i++)
    g_assert_cmpint (words (test.y_buffer)[i], ==, 7);
  test_end (&test);
}

/* One tensor is a part of another: so it is there, and what lies around it stays. */
static gboolean
graph_overlap (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer data, GError **error)
{
  Test *test = data;
  g_autoptr (PtoTaskArgs) task = pto_task_args_new ();
  g_autoptr (PtoTensor) part = pto_tensor_new_for_buffer (test->y_buffer, 16, PTO_DTYPE_INT64, 1,
                                                          (const guint64[]){ 2 }, error);

  if (part == NULL)
    return FALSE;
  pto_task_args_add_tensor (task, test->y, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (task, part, PTO_DIRECTION_INOUT);
  return pto_orchestrator_submit_next_level (orchestrator, test->handle, task, NULL, -1, error);
}

static void
test_overlap (void)
{
  g_autoptr (GError) error = NULL;
  Test test;

  test_begin (&test, 1, 0, PTO_RESTART_NEVER, SMALL);
  use (&test, "overlap");
  for (guint i = 0; i < SMALL; i++)
    words (test.y_buffer)[i] = 100 + (gint64) i;
  pto_worker_run (test.host, graph_overlap, &test, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < SMALL; i++)
    g_assert_cmpint (words (test.y_buffer)[i], ==, i == 2 ? 102 + 101 : 100 + (gint64) i);
  test_end (&test);
}

/* Tasks that need each other's results, on whichever of two workers is free. */
static void
test_several (void)
{
  g_autoptr (GError) error = NULL;
  Test test;

  test_begin (&test, 2, 0, PTO_RESTART_NEVER, SMALL);
  use (&test, "add");
  test.n_tasks = 20;
  for (guint i = 0; i < SMALL; i++)
    words (test.x_buffer)[i] = (gint64) i;
  run (&test, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < SMALL; i++)
    g_assert_cmpint (words (test.y_buffer)[i], ==, (gint64) i + 10);
  test_end (&test);
}

/* What is there already is not sent again, until somebody writes it; and what the program writes
 * between two runs is. */
#define CROWD 64u

/* One in the middle waits for all of the others, or nobody does. */
typedef struct
{
  Test test;
  gboolean waits;
} Meeting;

static gboolean
meet (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
      GError **error)
{
  const Meeting *meeting = data;

  for (guint i = 0; i < CROWD; i++)
    {
      g_autoptr (PtoTaskArgs) task = pto_task_args_new ();
      const guint64 one = 1;
      g_autoptr (PtoTensor) y = pto_tensor_new_for_buffer (meeting->test.y_buffer, 8 * i,
                                                           PTO_DTYPE_INT64, 1, &one, error);

      if (y == NULL)
        return FALSE;
      pto_task_args_add_tensor (task, y, PTO_DIRECTION_OUTPUT);
      pto_task_args_add_scalar (task, meeting->waits && i == CROWD / 2 ? CROWD - 1 : 0);
      if (!pto_orchestrator_submit_next_level (orchestrator, meeting->test.handle, task, NULL, -1,
                                               error))
        return FALSE;
    }
  return TRUE;
}

/* Small tasks go together; what stands behind one that takes long after all, for it waits for them,
 * is somebody else's. */
static void
test_one_takes_long (void)
{
  g_autoptr (GError) error = NULL;
  Meeting meeting = { .waits = FALSE };

  test_begin (&meeting.test, 2, 0, PTO_RESTART_NEVER, CROWD);
  use (&meeting.test, "meet");
  for (guint r = 0; r < 10; r++)
    {
      memset (words (meeting.test.y_buffer), 0, CROWD * 8);
      /* How long they take is known by then. */
      meeting.waits = r >= 2;
      pto_worker_run (meeting.test.host, meet, &meeting, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      for (guint i = 0; i < CROWD; i++)
        g_assert_cmpint (words (meeting.test.y_buffer)[i], ==, 1);
      g_assert_cmpint (g_unlink (g_getenv ("PTO_TEST_MARK")), ==, 0);
    }
  test_end (&meeting.test);
}

static void
test_copies (void)
{
  g_autoptr (GError) error = NULL;
  const guint64 bytes = SMALL * 8;
  Test test;

  test_begin (&test, 1, 0, PTO_RESTART_NEVER, SMALL);
  use (&test, "add");
  test.n_tasks = 10;
  for (guint round = 0; round < 2; round++)
    {
      g_autoptr (PtoRunStatistics) statistics = NULL;

      for (guint i = 0; i < SMALL; i++)
        words (test.x_buffer)[i] = (gint64) (i * (round + 1));
      run (&test, NULL, &error);
      g_assert_no_error (error);
      for (guint i = 0; i < SMALL; i++)
        g_assert_cmpint (words (test.y_buffer)[i], ==, (gint64) (i * (round + 1)) + 10);
      statistics = pto_worker_dup_statistics (test.host);
      g_assert_cmpuint (pto_run_statistics_get_bytes_sent (statistics), ==, 2 * bytes);
      g_assert_cmpuint (pto_run_statistics_get_bytes_saved (statistics), ==, 9 * 2 * bytes);
      g_assert_cmpuint (pto_run_statistics_get_bytes_received (statistics), ==, 10 * bytes);
    }
  test_end (&test);
}

/* More than fits: what was kept goes, and a task that needs all of it is not refused. */
static void
test_little_room (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *metrics = NULL;
  Test test;

  test_begin (&test, 1, 0, PTO_RESTART_NEVER, 3 << 17);
  pto_worker_set_parameter (test.remote, "arena", "9437184", &error);
  g_assert_no_error (error);
  use (&test, "add");
  for (guint round = 0; round < 4; round++)
    {
      g_autoptr (PtoBuffer) other = pto_buffer_new (test.n * 8, &error);
      PtoBuffer *kept = test.y_buffer;
      PtoTensor *kept_tensor = test.y;

      g_assert_no_error (error);
      test.y_buffer = other;
      test.y = pto_tensor_new_for_buffer (other, 0, PTO_DTYPE_INT64, 1, &test.n, &error);
      g_assert_no_error (error);
      run (&test, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpint (words (other)[test.n - 1], ==, 10);
      pto_tensor_unref (test.y);
      test.y_buffer = kept;
      test.y = kept_tensor;
    }
  metrics = pto_worker_dup_metrics (test.host);
  object_test_assert_contains (metrics, "pto_remote_sent_bytes_total{worker=\"L4/0\"");
  object_test_assert_contains (metrics, "child=\"L4/0/L3/0\"");
  test_end (&test);
}

/* --- what goes wrong --- */

static void
test_failure (void)
{
  g_autoptr (GError) error = NULL;
  Test test;

  test_begin (&test, 1, 0, PTO_RESTART_NEVER, SMALL);
  use (&test, "fail");
  words (test.y_buffer)[3] = 42;
  g_assert_false (run (&test, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_EXPLICIT);
  object_test_assert_contains (error->message, "nothing of it");
  object_test_assert_contains (error->message, "L4/0/L3/0");
  g_assert_cmpint (words (test.y_buffer)[3], ==, 42);
  g_clear_error (&error);
  /* It is there for the next. */
  assert_serves (&test);
  test_end (&test);
}

static void
test_death (void)
{
  g_autoptr (GError) error = NULL;
  Test test;

  test_begin (&test, 1, 0, PTO_RESTART_ON_FAILURE, SMALL);
  use (&test, "die");
  g_assert_false (run (&test, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  object_test_assert_contains (error->message, "L4/0/L3/0");
  object_test_assert_contains (error->message, "the remote worker at local: is lost");
  g_clear_error (&error);
  /* Another one is begun in its place. */
  assert_serves (&test);
  test_end (&test);
}

/* Dead, reaped or not. */
static gboolean
is_gone (gint64 process)
{
  g_autofree char *path = g_strdup_printf ("/proc/%" G_GINT64_FORMAT "/stat", process);
  g_autofree char *stat = NULL;

  return !g_file_get_contents (path, &stat, NULL, NULL) || strstr (stat, ") Z ") != NULL;
}

/* Nobody asks it anything just then: the next run finds another one in its place. */
static void
test_idle_death (void)
{
  g_autoptr (GError) error = NULL;
  gint64 far, bridge;
  Test test;

  test_begin (&test, 1, 0, PTO_RESTART_ON_FAILURE, SMALL);
  use (&test, "tell");
  run (&test, NULL, &error);
  g_assert_no_error (error);
  far = words (test.y_buffer)[0];
  bridge = words (test.y_buffer)[1];
  kill ((pid_t) far, SIGKILL);
  while (!is_gone (bridge))
    g_usleep (200);
  /* As of any child: a task that comes before its parent knows of the death goes down with it. */
  if (!run (&test, NULL, &error))
    {
      g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
      object_test_assert_contains (error->message, "before it began with \"tell\"");
      g_clear_error (&error);
      run (&test, NULL, &error);
    }
  g_assert_no_error (error);
  g_assert_cmpint (words (test.y_buffer)[0], !=, far);
  test_end (&test);
}

typedef struct
{
  const char *mark;
  GCancellable *cancellable;
} Canceller;

static gpointer
cancel_when_it_waits (gpointer data)
{
  Canceller *canceller = data;

  while (!g_file_test (canceller->mark, G_FILE_TEST_EXISTS))
    g_usleep (200);
  g_cancellable_cancel (canceller->cancellable);
  return NULL;
}

static void
test_cancel (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Canceller canceller = { g_getenv ("PTO_TEST_MARK"), cancellable };
  GThread *thread;
  Test test;

  g_unlink (canceller.mark);
  test_begin (&test, 1, 0, PTO_RESTART_ON_FAILURE, SMALL);
  use (&test, "wait_for_cancel");
  thread = g_thread_new ("cancel", cancel_when_it_waits, &canceller);
  g_assert_false (run (&test, cancellable, &error));
  g_thread_join (thread);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  assert_serves (&test);
  test_end (&test);
  g_unlink (canceller.mark);
}

/* What is not known to be read or written can not be copied. */
static void
test_no_dep (void)
{
  g_autoptr (GError) error = NULL;
  Test test;

  test_begin (&test, 1, 0, PTO_RESTART_NEVER, SMALL);
  use (&test, "add");
  test.direction = PTO_DIRECTION_NO_DEP;
  g_assert_false (run (&test, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
  object_test_assert_contains (error->message, "argument 1 goes to local:");
  object_test_assert_contains (error->message, "NO_DEP");
  test_end (&test);
}

static gboolean
local_function (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  return TRUE;
}

static void
test_closure (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable = NULL;
  Test test;

  test_begin (&test, 1, 0, PTO_RESTART_NEVER, SMALL);
  callable = pto_orchestration_function_new ("local_function", local_function, NULL, NULL);
  test.handle = pto_worker_register (test.host, callable, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (run (&test, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
  object_test_assert_contains (error->message, "\"local_function\" is a function of this process");
  test_end (&test);
}

/* --- how it is said --- */

/* options: floating, which it is not afterwards. */
static void
assert_refused (PtoWorker *host, const char *address, GVariant *options, const char *what)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) held = options != NULL ? g_variant_ref (options) : NULL;

  g_assert_null (pto_worker_add_remote_worker (host, address, options, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, what);
  g_assert_true (held == NULL || !g_variant_is_floating (held));
}

/* What is wrong with it is said, and what there is. */
static const struct
{
  const char *address;
  const char *why;
} bad_addresses[] = {
  { "", "it has no scheme: there are local:, ssh://host, srun://host, mpirun://host, "
        "tls://host:port and unix:/path" },
  { "local", "it has no scheme: there are local:, " },
  { "shh://one", "there is no scheme \"shh\", but local:, ssh://host, " },
  { "local:x", "nothing stands behind local:" },
  { "ssh:one", "write ssh://host" },
  { "ssh://", "it names no host" },
  { "ssh://-oX", "a host does not begin with -" },
  { "ssh://one/two", "there is a slash or a blank in the name of its host" },
  { "ssh://one:22", "a port is said in ssh's own configuration, or in the option launcher" },
  { "tls:one:7", "write tls://host:port" },
  { "tls://one", "it names no port: write tls://host:port" },
  { "tls://[::1]", "it names no port: write tls://host:port" },
  { "tls://:7", "it names no host" },
  { "tls://::1:7", "a host with colons is in brackets: write tls://[host]:port" },
  { "tls://me@one:7", "who connects is known by a certificate, and not by a name in front of @" },
  { "tls://one:0", "\"0\" is no port: 1 to 65535 are" },
  { "tls://one:65536", "\"65536\" is no port: 1 to 65535 are" },
  { "tls://one:x", "\"x\" is no port: 1 to 65535 are" },
  { "unix:", "it names no path: write unix:/path" },
  { "unix:here", "its path is relative: write unix:/path" },
};

static void
test_bad_words (void)
{
  g_autofree char *zeros = g_strdup_printf ("%0107d", 0);
  g_autofree char *long_path = g_strconcat ("unix:/", zeros, NULL);
  g_autoptr (PtoWorker) host = level_test_host (4, 0, 0);
  g_autoptr (PtoWorker) l3 = level_test_host (3, 0, 0);
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) missing = g_variant_ref_sink (
      g_variant_new_parsed ("{'program': <'/nonexistent/nowhere/pto-remote'>}"));
  g_autoptr (GVariant) no_speaker
      = g_variant_ref_sink (g_variant_new_parsed ("{'program': <'false'>}"));

  for (guint i = 0; i < G_N_ELEMENTS (bad_addresses); i++)
    {
      g_autofree char *words = g_strdup_printf ("\"%s\" is no address of a remote worker: %s",
                                                bad_addresses[i].address, bad_addresses[i].why);

      assert_refused (host, bad_addresses[i].address, NULL, words);
    }
  assert_refused (host, long_path, NULL,
                  "its path has 108 bytes, that of a socket has at most 107");
  assert_refused (host, "own", g_variant_new_parsed ("{'launcher': <['enter', '%h']>}"),
                  "it is any name, :// and the host");
  assert_refused (l3, "local:", NULL, "is below one of level 4 or more, not 3");
  assert_refused (host, "local:", g_variant_new_parsed ("{'device': <1>}"),
                  "has no option \"device\"");
  assert_refused (host, "local:", g_variant_new_parsed ("{'devices': <'two'>}"),
                  "devices of a remote worker is a number");
  assert_refused (host, "local:", g_variant_new_parsed ("[1]"), "of the type a{sv}");

  g_assert_nonnull (pto_worker_add_remote_worker (host, "local:", missing, &error));
  g_assert_false (pto_worker_start (host, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (error->message, "/nonexistent/nowhere/pto-remote");
  g_clear_error (&error);
  g_clear_object (&host);
  host = level_test_host (4, 0, 0);
  g_assert_nonnull (pto_worker_add_remote_worker (host, "local:", no_speaker, &error));
  g_assert_false (pto_worker_start (host, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  object_test_assert_contains (error->message, "\"false\" for local: has exited with status 1");
}

int
main (int argc, char **argv)
{
  g_autofree char *mark = NULL;

  g_test_init (&argc, &argv, NULL);
  mark = g_strdup_printf ("%s/pto-remote-mark-%d", g_get_tmp_dir (), (int) getpid ());
  g_setenv ("PTO_TEST_MARK", mark, TRUE);
  g_test_add_data_func ("/pto/remote/values/small", GSIZE_TO_POINTER (SMALL), test_values);
  g_test_add_data_func ("/pto/remote/values/large", GSIZE_TO_POINTER (LARGE), test_values);
  g_test_add_func ("/pto/remote/chip", test_chip);
  g_test_add_func ("/pto/remote/overlap", test_overlap);
  g_test_add_func ("/pto/remote/several", test_several);
  g_test_add_func ("/pto/remote/one-takes-long", test_one_takes_long);
  g_test_add_func ("/pto/remote/copies", test_copies);
  g_test_add_func ("/pto/remote/little-room", test_little_room);
  g_test_add_func ("/pto/remote/failure", test_failure);
  g_test_add_func ("/pto/remote/death", test_death);
  g_test_add_func ("/pto/remote/idle-death", test_idle_death);
  g_test_add_func ("/pto/remote/cancel", test_cancel);
  g_test_add_func ("/pto/remote/no-dep", test_no_dep);
  g_test_add_func ("/pto/remote/closure", test_closure);
  g_test_add_func ("/pto/remote/bad-words", test_bad_words);
  return g_test_run ();
}
