/* test-callable.c: what can be made a callable of, and what has a program in its hands then?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static gboolean
succeed (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  return TRUE;
}

static gboolean
orchestrate (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
             gpointer user_data, GError **error)
{
  return TRUE;
}

typedef struct
{
  int destroyed; /* atomic */
  GThread *thread;
} Data;

static void
destroy_data (gpointer user_data)
{
  Data *data = user_data;

  data->thread = g_thread_self ();
  g_atomic_int_inc (&data->destroyed);
}

static void
test_closures (void)
{
  Data data = { 0 };
  PtoCallable *sub = pto_sub_function_new ("reduce", succeed, &data, destroy_data);
  g_autoptr (PtoCallable) graph = pto_orchestration_function_new ("graph", orchestrate, NULL, NULL);

  g_assert_cmpint (pto_callable_get_kind (sub), ==, PTO_CALLABLE_SUB);
  g_assert_cmpint (pto_callable_get_source (sub), ==, PTO_CALLABLE_SOURCE_CLOSURE);
  g_assert_cmpstr (pto_callable_get_name (sub), ==, "reduce");
  g_assert_null (pto_callable_get_path (sub));
  g_assert_cmpint (pto_callable_get_kind (graph), ==, PTO_CALLABLE_ORCHESTRATION);
  g_assert_cmpint (data.destroyed, ==, 0);
  g_object_unref (sub);
  g_assert_cmpint (data.destroyed, ==, 1);
  g_assert_true (data.thread == g_thread_self ());
}

static void
assert_is (PtoCallable *callable, GType type, const char *text)
{
  g_autofree char *found = pto_callable_to_string (callable);

  g_assert_true (G_OBJECT_TYPE (callable) == type);
  g_assert_true (PTO_IS_CALLABLE (callable));
  g_assert_cmpstr (found, ==, text);
}

static void
count_notify (GObject *object, GParamSpec *pspec, gpointer user_data)
{
  ++*(guint *) user_data;
}

static void
test_types (void)
{
  char *dir = object_test_make_dir ();
  g_autofree char *file = object_test_write (dir, "add.c", object_test_add);
  g_autofree char *as_kernel = g_strdup_printf ("the kernel \"add\" of %s", file);
  g_autofree char *as_chip = g_strdup_printf ("the chip's orchestration \"add\" of %s", file);
  g_autoptr (PtoCallable) kernel = pto_kernel_new (PTO_CORE_AIV, file, NULL, NULL);
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (file, NULL, NULL);
  g_autoptr (PtoCallable) sub = pto_sub_function_new ("f", succeed, NULL, NULL);
  g_autoptr (PtoCallable) graph = pto_orchestration_function_new ("g", orchestrate, NULL, NULL);
  g_autoptr (PtoCallable) import = pto_imported_function_new (PTO_CALLABLE_SUB, "a.b:C.d", NULL);
  g_autoptr (PtoCallable) symbol
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_ORCHESTRATION, "libm.so.6:cos", NULL);
  g_autofree char *name = NULL;
  g_autofree char *path = NULL;
  PtoCallableKind kind;
  PtoCallableSource source;
  guint n_notified = 0;

  g_assert_true (G_TYPE_IS_ABSTRACT (PTO_TYPE_CALLABLE));
  g_assert_true (G_TYPE_IS_ABSTRACT (PTO_TYPE_DEVICE_CODE));
  g_assert_true (g_type_parent (PTO_TYPE_DEVICE_CODE) == PTO_TYPE_CALLABLE);
  /* What is not compiled has nothing that a compiler is told. */
  g_assert_true (PTO_IS_DEVICE_CODE (kernel) && PTO_IS_DEVICE_CODE (chip));
  g_assert_false (PTO_IS_DEVICE_CODE (sub) || PTO_IS_DEVICE_CODE (graph));
  g_assert_false (PTO_IS_DEVICE_CODE (import) || PTO_IS_DEVICE_CODE (symbol));
  g_assert_null (pto_imported_function_get_symbol (PTO_IMPORTED_FUNCTION (import)));
  assert_is (kernel, PTO_TYPE_KERNEL, as_kernel);
  assert_is (chip, PTO_TYPE_CHIP_ORCHESTRATION, as_chip);
  assert_is (sub, PTO_TYPE_SUB_FUNCTION, "the SUB function \"f\" of this process");
  assert_is (graph, PTO_TYPE_ORCHESTRATION_FUNCTION, "the orchestration \"g\" of this process");
  assert_is (import, PTO_TYPE_IMPORTED_FUNCTION, "the SUB function \"C.d\" of a.b:C.d");
  assert_is (symbol, PTO_TYPE_IMPORTED_FUNCTION, "the orchestration \"cos\" of libm.so.6");

  g_signal_connect (kernel, "notify::name", G_CALLBACK (count_notify), &n_notified);
  g_object_set (kernel, "name", "sum", NULL);
  g_object_get (kernel, "name", &name, "path", &path, "kind", &kind, "source", &source, NULL);
  g_assert_cmpuint (n_notified, ==, 1);
  g_assert_cmpstr (name, ==, "sum");
  g_assert_cmpstr (path, ==, file);
  g_assert_cmpint (kind, ==, PTO_CALLABLE_KERNEL);
  g_assert_cmpint (source, ==, PTO_CALLABLE_SOURCE_OBJECT);
  g_assert_cmpstr (pto_callable_get_name (kernel), ==, "sum");
  object_test_remove_dir (dir);
}

/* Of a type alone an object can be made, but nothing run. */
static void
test_not_made (void)
{
  g_autoptr (PtoWorker) worker = object_test_worker ();
  const GType types[] = { PTO_TYPE_KERNEL, PTO_TYPE_CHIP_ORCHESTRATION, PTO_TYPE_SUB_FUNCTION,
                          PTO_TYPE_ORCHESTRATION_FUNCTION, PTO_TYPE_IMPORTED_FUNCTION };

  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    {
      g_autoptr (PtoCallable) callable = g_object_new (types[i], NULL);
      g_autofree char *text = pto_callable_to_string (callable);
      g_autoptr (GError) error = NULL;

      g_assert_null (pto_worker_register (worker, callable, NULL, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "was not made by a constructor");
      object_test_assert_contains (error->message, G_OBJECT_TYPE_NAME (callable));
    }
}

static gpointer
release (gpointer callable)
{
  g_object_unref (callable);
  return NULL;
}

/* The data of a closure belongs to a language that is at home in one thread. */
static void
test_destroyed_at_home (void)
{
  Data data = { 0 };
  PtoCallable *sub = pto_sub_function_new ("f", succeed, &data, destroy_data);

  g_thread_join (g_thread_new ("other", release, sub));
  g_assert_cmpint (g_atomic_int_get (&data.destroyed), ==, 0);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_cmpint (g_atomic_int_get (&data.destroyed), ==, 1);
  g_assert_true (data.thread == g_thread_self ());
}

/* A context that goes takes along what waits for it. */
static void
test_destroyed_with_context (void)
{
  Data data = { 0 };
  GMainContext *context = g_main_context_new ();
  PtoCallable *sub;

  g_main_context_push_thread_default (context);
  sub = pto_sub_function_new ("f", succeed, &data, destroy_data);
  g_main_context_pop_thread_default (context);
  g_thread_join (g_thread_new ("other", release, sub));
  g_assert_cmpint (g_atomic_int_get (&data.destroyed), ==, 0);
  g_main_context_unref (context);
  g_assert_cmpint (g_atomic_int_get (&data.destroyed), ==, 1);
}

/* A copy in a child destroys nothing. */
static void
test_not_destroyed_in_child (void)
{
  Data data = { 0 };
  PtoCallable *sub = pto_sub_function_new ("f", succeed, &data, destroy_data);
  pid_t child = fork ();
  int status;

  if (child == 0)
    {
      g_object_unref (sub);
      _exit (10 + data.destroyed);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 10);
  g_object_unref (sub);
  g_assert_cmpint (data.destroyed, ==, 1);
}

static void
test_symbols (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) sub
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_SUB, "libx.so:fn_1", &error);
  g_autoptr (PtoCallable) colon
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_ORCHESTRATION, "a:b.so:_f", &error);

  g_assert_no_error (error);
  g_assert_cmpint (pto_callable_get_kind (sub), ==, PTO_CALLABLE_SUB);
  g_assert_cmpint (pto_callable_get_source (sub), ==, PTO_CALLABLE_SOURCE_SYMBOL);
  g_assert_cmpstr (pto_callable_get_name (sub), ==, "fn_1");
  g_assert_cmpstr (pto_imported_function_get_symbol (PTO_IMPORTED_FUNCTION (sub)), ==, "fn_1");
  g_assert_null (pto_callable_get_path (sub));
  g_assert_cmpstr (pto_imported_function_get_symbol (PTO_IMPORTED_FUNCTION (colon)), ==, "_f");
}

static void
assert_symbol_refused (PtoCallableKind kind, const char *text, PtoError code, const char *part)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (pto_imported_function_new_for_symbol (kind, text, &error));
  g_assert_error (error, PTO_ERROR, (int) code);
  object_test_assert_contains (error->message, part);
}

static void
test_symbols_refused (void)
{
  static const char *const texts[]
      = { "",           ":",           "libx.so",     "libx.so:",    ":f",
          "libx.so:1f", "libx.so:f()", "libx.so:a b", "lib\xff.so:f" };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    assert_symbol_refused (PTO_CALLABLE_SUB, texts[i], PTO_ERROR_INVALID_ARGS,
                           "names no function of a library");
  assert_symbol_refused (PTO_CALLABLE_KERNEL, "libx.so:f", PTO_ERROR_INVALID_ARGS,
                         "can not be a kernel");
  assert_symbol_refused (PTO_CALLABLE_CHIP, "libx.so:f", PTO_ERROR_INVALID_ARGS,
                         "can not be an orchestration for a chip");
  assert_symbol_refused (PTO_CALLABLE_SUB, "/nonexistent/such/dir/libx.so:f", PTO_ERROR_NOT_FOUND,
                         "/nonexistent/such/dir/libx.so: there is no such file");
}

static void
test_imports (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) callable
      = pto_imported_function_new (PTO_CALLABLE_ORCHESTRATION, "mymodel.steps:Layer.run", &error);
  g_autoptr (PtoCallable) foreign
      = pto_imported_function_new (PTO_CALLABLE_SUB, "modül:größe", &error);

  g_assert_no_error (error);
  g_assert_cmpint (pto_callable_get_source (callable), ==, PTO_CALLABLE_SOURCE_IMPORT);
  g_assert_cmpstr (pto_callable_get_name (callable), ==, "Layer.run");
  g_assert_cmpstr (pto_callable_get_name (foreign), ==, "größe");
}

static void
test_imports_refused (void)
{
  static const char *const paths[]
      = { "",      "m",     ":f",     "m:",   "m:f:g",      "a b:f",
          ".m:f",  "m.:f",  "m..n:f", "m:f.", "m:<lambda>", "m:f.<locals>.g",
          "m/n:f", "m:f()", "m:\xff" };

  for (guint i = 0; i < G_N_ELEMENTS (paths); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (pto_imported_function_new (PTO_CALLABLE_SUB, paths[i], &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "write module:qualname");
    }
  {
    g_autoptr (GError) error = NULL;

    g_assert_null (pto_imported_function_new (PTO_CALLABLE_KERNEL, "m:f", &error));
    g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  }
}

/* Not everything is a kernel. */
static void
test_other_kinds (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = object_test_make_dir ();
  g_autofree char *file = object_test_write (dir, "graph.c", object_test_orchestration);
  g_autofree char *says = g_strdup_printf (
      "%s: the SUB function \"reduce\" of this process can not be submitted as a kernel", file);
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new (file, NULL, NULL);
  g_autoptr (PtoCallable) sub = pto_sub_function_new ("reduce", succeed, NULL, NULL);

  g_assert_false (
      pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, NULL, sub, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_assert_cmpstr (error->message, ==, says);
  g_assert_null (pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (chip), 0));
  object_test_remove_dir (dir);
}

static void
test_handle (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = object_test_make_dir ();
  g_autoptr (PtoWorker) worker = object_test_worker ();
  g_autoptr (PtoWorker) other = object_test_worker ();
  g_autoptr (PtoCallable) kernel = object_test_kernel (dir, "add.c", object_test_add);
  g_autoptr (PtoCallableHandle) handle = pto_worker_register (worker, kernel, NULL, &error);
  g_autoptr (PtoCallableHandle) again = pto_worker_register (worker, kernel, NULL, &error);
  g_autoptr (PtoCallableHandle) others = pto_worker_register (other, kernel, NULL, &error);
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GString) text = g_string_new (NULL);
  const guint8 *digest;
  gsize size;

  g_assert_no_error (error);
  bytes = pto_callable_handle_dup_digest_bytes (handle);
  digest = g_bytes_get_data (bytes, &size);
  g_assert_cmpuint (size, ==, 32);
  for (gsize i = 0; i < size; i++)
    g_string_append_printf (text, "%02x", digest[i]);
  g_assert_cmpstr (text->str, ==, pto_callable_handle_get_digest (handle));
  g_assert_cmpint (pto_callable_handle_get_kind (handle), ==, PTO_CALLABLE_KERNEL);
  g_assert_cmpint (pto_callable_handle_get_target_namespace (handle), ==, PTO_TARGET_LOCAL_CHIP);
  g_assert_true (pto_callable_handle_get_callable (handle) == kernel);
  g_assert_true (handle == again);
  /* The same content, on another worker: another handle of the same digest. */
  g_assert_cmpstr (pto_callable_handle_get_digest (handle), ==,
                   pto_callable_handle_get_digest (others));
  g_assert_false (pto_callable_handle_equal (handle, others));
  g_assert_false (pto_worker_unregister (worker, others, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_true (pto_worker_unregister (worker, handle, &error));
  g_assert_true (pto_worker_unregister (worker, handle, &error));
  g_assert_false (pto_worker_unregister (worker, handle, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  object_test_remove_dir (dir);
}

static void
test_chip_refuses (void)
{
  g_autoptr (PtoWorker) worker = object_test_worker ();
  g_autoptr (PtoCallable) sub = pto_sub_function_new ("reduce", succeed, NULL, NULL);
  g_autoptr (PtoCallable) graph = pto_orchestration_function_new ("graph", orchestrate, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (pto_worker_register (worker, sub, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_assert_cmpstr (
      error->message, ==,
      "\"reduce\" is a function for a SUB worker, which no chip runs: register it on a "
      "worker of level 3 or up");
  g_clear_error (&error);
  g_assert_null (pto_worker_register (worker, graph, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
}

/* Closing while others register: nobody is left with a handle of something that is loaded, and
 * nobody waits for ever. */
typedef struct
{
  PtoWorker *worker;
  PtoCallable *kernel;
} Registering;

static gpointer
register_until_closed (gpointer user_data)
{
  Registering *self = user_data;
  guint n = 0;

  for (;;)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoCallableHandle) handle
          = pto_worker_register (self->worker, self->kernel, NULL, &error);

      if (handle == NULL)
        {
          g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
          return GUINT_TO_POINTER (n);
        }
      n++;
      if (!pto_worker_unregister (self->worker, handle, &error))
        g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
    }
}

static void
test_register_and_close (void)
{
  char *dir = object_test_make_dir ();
  g_autoptr (PtoCallable) kernel = object_test_kernel (dir, "add.c", object_test_add);

  for (guint round = 0; round < 5; round++)
    {
      g_autoptr (PtoWorker) worker = object_test_worker ();
      Registering self = { worker, kernel };
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoCallableHandle) handle = pto_worker_register (worker, kernel, NULL, &error);
      GThread *threads[2];

      g_assert_no_error (error);
      for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
        threads[i] = g_thread_new ("register", register_until_closed, &self);
      pto_worker_close (worker);
      for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
        g_thread_join (threads[i]);
    }
  object_test_remove_dir (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/callable/closures", test_closures);
  g_test_add_func ("/pto/callable/types", test_types);
  g_test_add_func ("/pto/callable/not-made", test_not_made);
  g_test_add_func ("/pto/callable/destroyed-at-home", test_destroyed_at_home);
  g_test_add_func ("/pto/callable/destroyed-with-context", test_destroyed_with_context);
  g_test_add_func ("/pto/callable/not-destroyed-in-child", test_not_destroyed_in_child);
  g_test_add_func ("/pto/callable/symbols", test_symbols);
  g_test_add_func ("/pto/callable/symbols-refused", test_symbols_refused);
  g_test_add_func ("/pto/callable/imports", test_imports);
  g_test_add_func ("/pto/callable/imports-refused", test_imports_refused);
  g_test_add_func ("/pto/callable/other-kinds", test_other_kinds);
  g_test_add_func ("/pto/callable/handle", test_handle);
  g_test_add_func ("/pto/callable/chip-refuses", test_chip_refuses);
  g_test_add_func ("/pto/callable/register-and-close", test_register_and_close);
  return g_test_run ();
}
