/* test-compile.c: are sources built, kept, found again, and refused in words that help?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <glib/gstdio.h>
#include <string.h>
#include <utime.h>

typedef struct
{
  char *dir;
  PtoWorker *worker;
  guint n_progress;
  guint n_cached;
  guint last_total;
} Fixture;

static void
count_progress (PtoWorker *worker, guint done, guint total, const char *name, gboolean cached,
                gpointer data)
{
  Fixture *fixture = data;

  fixture->n_progress++;
  fixture->n_cached += cached ? 1 : 0;
  fixture->last_total = total;
  g_assert_cmpuint (done, ==, fixture->n_progress);
  g_assert_cmpuint (strlen (name), >, 0);
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  fixture->dir = object_test_make_dir ();
  fixture->worker = pto_worker_new_chip (NULL, NULL);
  g_signal_connect (fixture->worker, "progress", G_CALLBACK (count_progress), fixture);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  g_object_add_weak_pointer (G_OBJECT (fixture->worker), (gpointer *) &fixture->worker);
  g_object_unref (fixture->worker);
  g_assert_null (fixture->worker);
  object_test_remove_dir (fixture->dir);
}

/* A definition that no other run of the tests has had. */
static char *
unique (const char *text)
{
  return g_strdup_printf ("const unsigned long long unique_%08x%08x = 1;\n%s", g_random_int (),
                          g_random_int (), text);
}

static PtoCallableHandle *
register_kernel (Fixture *fixture, PtoCallable *kernel)
{
  g_autoptr (GError) error = NULL;
  PtoCallableHandle *handle;

  fixture->n_progress = fixture->n_cached = 0;
  handle = pto_worker_register (fixture->worker, kernel, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (handle);
  return handle;
}

static void
expect_refused (Fixture *fixture, PtoCallable *callable, PtoError code, const char *const *parts)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *first = NULL;
  const char *end;

  fixture->n_progress = fixture->n_cached = 0;
  g_assert_null (pto_worker_register (fixture->worker, callable, NULL, &error));
  g_assert_error (error, PTO_ERROR, (int) code);
  end = strchr (error->message, '\n');
  first = end != NULL ? g_strndup (error->message, (gsize) (end - error->message))
                      : g_strdup (error->message);
  for (; *parts != NULL; parts++)
    object_test_assert_contains (first, *parts);
}

/* The same is told by who builds it, without a worker. */
static void
expect_unbuilt (PtoCallable *callable, const char *file, const char *symbol)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (pto_device_code_build (PTO_DEVICE_CODE (callable), NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
  object_test_assert_contains (error->message, file);
  object_test_assert_contains (error->message, symbol);
}

static void
test_cache_hit (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = unique (object_test_fill);
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "fill.c", text);
  g_autoptr (PtoWorker) other = pto_worker_new_chip (NULL, NULL);
  g_autoptr (PtoCallableHandle) first = register_kernel (fixture, kernel);
  g_autoptr (PtoCallableHandle) second = NULL;

  g_assert_cmpuint (fixture->n_progress, ==, 1);
  g_assert_cmpuint (fixture->n_cached, ==, 0);
  second = register_kernel (fixture, kernel);
  g_assert_cmpuint (fixture->n_cached, ==, 1);
  g_assert_true (first == second);
}

/* Where a source lies does not matter, nor what its file is called. */
static void
test_cache_by_content (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = unique (object_test_fill);
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "one.c", text);
  g_autoptr (PtoCallable) again = object_test_kernel (fixture->dir, "two.c", text);
  g_autoptr (PtoCallableHandle) first = register_kernel (fixture, kernel);
  g_autoptr (PtoCallableHandle) second = register_kernel (fixture, again);

  g_assert_cmpuint (fixture->n_cached, ==, 1);
  g_assert_false (pto_callable_handle_equal (first, second));
  pto_callable_set_name (again, pto_callable_get_name (kernel));
  g_clear_pointer (&second, pto_callable_handle_unref);
  second = register_kernel (fixture, again);
  g_assert_true (pto_callable_handle_equal (first, second));
}

static void
test_included_header_edited (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text
      = unique ("#include \"local.h\"\nvoid kernel_entry (long *args) { *args = VALUE; }\n");
  g_autofree char *header = object_test_write (fixture->dir, "local.h", "#define VALUE 1\n");
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "with-header.c", text);
  g_autoptr (PtoCallableHandle) first = register_kernel (fixture, kernel);
  g_autoptr (PtoCallableHandle) second = NULL;
  g_autoptr (PtoCallableHandle) third = NULL;

  g_assert_cmpuint (fixture->n_cached, ==, 0);
  g_free (object_test_write (fixture->dir, "local.h", "#define VALUE 2\n"));
  second = register_kernel (fixture, kernel);
  g_assert_cmpuint (fixture->n_cached, ==, 0);
  g_assert_false (pto_callable_handle_equal (first, second));
  g_free (object_test_write (fixture->dir, "local.h", "#define VALUE 1\n"));
  third = register_kernel (fixture, kernel);
  g_assert_cmpuint (fixture->n_cached, ==, 1);
  g_assert_true (pto_callable_handle_equal (first, third));
}

static void
test_damaged_cache (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = unique (object_test_fill);
  g_autofree char *source = object_test_write (fixture->dir, "fill.c", text);
  g_autofree char *object = pto_compile_shared_object (source, NULL, &error);
  g_autofree char *again = NULL;

  g_assert_no_error (error);
  g_file_set_contents (object, "not an object", -1, &error);
  g_assert_no_error (error);
  again = pto_compile_shared_object (source, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (again, ==, object);
  g_free (text);
  text = NULL;
  g_assert_true (g_file_get_contents (object, &text, NULL, NULL));
  g_assert_true (g_str_has_prefix (text, "\177ELF"));
}

static void
test_compiler_error (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel = object_test_kernel (
      fixture->dir, "bad.c", "void kernel_entry (long *args)\n{\n  args[0] = missing;\n}\n");

  pto_callable_set_name (kernel, "add");
  g_assert_null (pto_worker_register (fixture->worker, kernel, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_COMPILE);
  g_assert_true (g_str_has_prefix (error->message, "kernel \"add\": "));
  object_test_assert_contains (error->message, "bad.c:3:13: error: ");
  object_test_assert_contains (error->message, "args[0] = missing;");
}

static void
test_missing_include (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel
      = object_test_kernel (fixture->dir, "bad.c", "#include \"nowhere.h\"\n");

  expect_refused (fixture, kernel, PTO_ERROR_COMPILE,
                  (const char *const[]){ "kernel \"bad\"", "bad.c:1", "nowhere.h", NULL });
}

static void
test_missing_export (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) c
      = object_test_kernel (fixture->dir, "other.c", "void other_entry (long *args) { }\n");
  g_autoptr (PtoCallable) hidden
      = object_test_kernel (fixture->dir, "hidden.c",
                            "static void kernel_entry (long *a) { }\nvoid *p = kernel_entry;\n");

  expect_refused (fixture, c, PTO_ERROR_LOAD,
                  (const char *const[]){ "other.c", "kernel_entry", NULL });
  expect_refused (fixture, hidden, PTO_ERROR_LOAD,
                  (const char *const[]){ "hidden.c", "kernel_entry", NULL });
  expect_unbuilt (c, "other.c", "kernel_entry");
  expect_unbuilt (hidden, "hidden.c", "kernel_entry");
}

static void
test_undefined_symbol (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel = object_test_kernel (
      fixture->dir, "undefined.c",
      "void nobody_has_it (void);\nvoid kernel_entry (long *args) { nobody_has_it (); }\n");

  expect_refused (fixture, kernel, PTO_ERROR_LOAD,
                  (const char *const[]){ "undefined.c", "nobody_has_it", NULL });
}

static PtoCallable *
new_chip (Fixture *fixture, const char *name, const char *text, const char *function)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (fixture->dir, name, text);
  PtoCallable *chip = pto_chip_orchestration_new (path, function, &error);

  g_assert_no_error (error);
  return chip;
}

static void
test_orchestration_exports (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) nothing
      = new_chip (fixture, "nothing.c", "#include \"pto_orchestration_api.h\"\n", NULL);
  g_autoptr (PtoCallable) no_config
      = new_chip (fixture, "noconfig.c",
                  "#include \"pto_orchestration_api.h\"\n"
                  "void aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n) { }\n",
                  NULL);
  g_autoptr (PtoCallable) takes_less
      = new_chip (fixture, "less.c", "int entry (void *rt) { return 0; }\n", "entry");
  g_autoptr (PtoCallable) mangled
      = new_chip (fixture, "mangled.cc",
                  "#include \"pto_orchestration_api.h\"\n"
                  "void aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n) { }\n",
                  NULL);

  expect_refused (fixture, nothing, PTO_ERROR_LOAD,
                  (const char *const[]){ "nothing.c", "aicpu_orchestration_entry", NULL });
  expect_refused (fixture, no_config, PTO_ERROR_LOAD,
                  (const char *const[]){ "noconfig.c", "aicpu_orchestration_config", NULL });
  expect_refused (fixture, takes_less, PTO_ERROR_LOAD,
                  (const char *const[]){ "less.c", "entry", NULL });
  expect_refused (
      fixture, mangled, PTO_ERROR_LOAD,
      (const char *const[]){ "mangled.cc", "aicpu_orchestration_entry", "extern \"C\"", NULL });
  expect_unbuilt (nothing, "nothing.c", "aicpu_orchestration_entry");
  expect_unbuilt (no_config, "noconfig.c", "aicpu_orchestration_config");
  expect_unbuilt (mangled, "mangled.cc", "extern \"C\"");
}

static void
test_files_refused (Fixture *fixture, gconstpointer data)
{
  g_autofree char *claims = object_test_write (fixture->dir, "claims.so", "no ELF file");
  g_autofree char *text = object_test_write (fixture->dir, "notes.txt", "notes");
  g_autofree char *nowhere = g_build_filename (fixture->dir, "nowhere.c", NULL);
  g_autofree char *elf = g_build_filename (fixture->dir, "foreign.so", NULL);
  guint8 header[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0xf3, 0 };
  const struct
  {
    const char *path;
    PtoError code;
    const char *part;
  } cases[] = { { claims, PTO_ERROR_LOAD, "no ELF file" },
                { text, PTO_ERROR_NOT_SUPPORTED, ".cpp" },
                { nowhere, PTO_ERROR_NOT_FOUND, "no such file" },
                { fixture->dir, PTO_ERROR_INVALID_ARGS, "regular" },
                { elf, PTO_ERROR_LOAD, "another machine" },
                { "/proc/self/exe.so", PTO_ERROR_NOT_FOUND, "exe.so" } };

  g_assert_true (g_file_set_contents (elf, (const char *) header, sizeof header, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (pto_kernel_new (PTO_CORE_AIC, cases[i].path, NULL, &error));
      g_assert_error (error, PTO_ERROR, (int) cases[i].code);
      object_test_assert_contains (error->message, cases[i].path);
      object_test_assert_contains (error->message, cases[i].part);
      g_assert_null (strchr (error->message, '\n'));
      g_clear_error (&error);
      g_assert_null (pto_chip_orchestration_new (cases[i].path, NULL, &error));
      g_assert_error (error, PTO_ERROR, (int) cases[i].code);
    }
}

/* An object that is given built, then replaced under the same name. */
static void
test_shared_object (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (fixture->dir, "kernel.so", NULL);
  PtoCallableHandle *handles[2] = { NULL, NULL };

  for (guint i = 0; i < 2; i++)
    {
      g_autofree char *text = unique (object_test_fill);
      g_autofree char *source = object_test_write (fixture->dir, "fill.c", text);
      g_autofree char *object = pto_compile_shared_object (source, NULL, &error);
      g_autoptr (PtoCallable) kernel = NULL;
      g_autofree char *contents = NULL;
      gsize size;

      g_assert_no_error (error);
      g_assert_true (g_file_get_contents (object, &contents, &size, NULL));
      g_assert_true (g_file_set_contents (path, contents, (gssize) size, NULL));
      kernel = pto_kernel_new (PTO_CORE_AIV, path, NULL, &error);
      g_assert_no_error (error);
      handles[i] = register_kernel (fixture, kernel);
    }
  g_assert_false (pto_callable_handle_equal (handles[0], handles[1]));
  pto_callable_handle_unref (handles[0]);
  pto_callable_handle_unref (handles[1]);
}

static void
test_several_at_once (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *orchestration = unique (object_test_orchestration);
  g_autoptr (PtoCallable) chip = new_chip (fixture, "orch.c", orchestration, NULL);
  g_autoptr (PtoCallableHandle) handle = NULL;

  for (guint i = 0; i < 6; i++)
    {
      g_autofree char *name = g_strdup_printf ("kernel%u.c", i);
      g_autofree char *text = unique (object_test_fill);
      g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, name, text);

      g_assert_true (pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), i * 10, NULL,
                                                        kernel, &error));
    }
  g_assert_cmpuint (pto_chip_orchestration_get_n_kernels (PTO_CHIP_ORCHESTRATION (chip)), ==, 51);
  handle = register_kernel (fixture, chip);
  g_assert_cmpuint (fixture->n_progress, ==, 7);
  g_assert_cmpuint (fixture->last_total, ==, 7);
  g_assert_cmpint (pto_callable_handle_get_kind (handle), ==, PTO_CALLABLE_CHIP);
  g_assert_cmpuint (strlen (pto_callable_handle_get_digest (handle)), ==, 64);
  g_assert_true (pto_callable_handle_get_callable (handle) == chip);
}

/* One bad kernel among good ones: nothing is registered. */
static void
test_all_or_nothing (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) chip = new_chip (fixture, "orch.c", object_test_orchestration, NULL);
  g_autoptr (PtoCallable) good = object_test_kernel (fixture->dir, "good.c", object_test_fill);
  g_autoptr (PtoCallable) bad = object_test_kernel (fixture->dir, "bad.c", "no C at all");

  g_assert_true (
      pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 0, "GOOD", good, &error));
  g_assert_true (
      pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 1, "BAD", bad, &error));
  expect_refused (fixture, chip, PTO_ERROR_COMPILE,
                  (const char *const[]){ "kernel \"BAD\"", "bad.c:1", NULL });
}

static void
test_cancelled (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "fill.c", object_test_fill);

  g_cancellable_cancel (cancellable);
  g_assert_null (pto_worker_register (fixture->worker, kernel, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* A name with blanks, quotes and a percent sign. */
static void
test_odd_path (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel
      = object_test_kernel (fixture->dir, "a b\"c%s.c", object_test_fill);
  g_autoptr (PtoCallable) chip = new_chip (fixture, "o p'q%s.c", object_test_orchestration, NULL);
  g_autoptr (PtoCallableHandle) first = register_kernel (fixture, kernel);
  g_autoptr (PtoCallableHandle) second = register_kernel (fixture, chip);

  g_assert_nonnull (first);
  g_assert_nonnull (second);
}

static void
test_api_dir (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *saved = g_strdup (g_getenv ("PTO_API_DIR"));
  g_autofree char *dir = pto_dup_api_dir (&error);
  g_autofree char *header = NULL;

  g_assert_no_error (error);
  header = g_build_filename (dir, "pto_orchestration_api.h", NULL);
  g_assert_true (g_file_test (header, G_FILE_TEST_IS_REGULAR));
  g_setenv ("PTO_API_DIR", "/nonexistent/nowhere", TRUE);
  g_assert_null (pto_dup_api_dir (&error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (error->message, "/nonexistent/nowhere/tensor.h");
  object_test_assert_contains (error->message, "PTO_API_DIR");
  g_setenv ("PTO_API_DIR", saved, TRUE);
}

static void
test_compiler_variable (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = object_test_make_dir ();
  g_autofree char *source = object_test_write (dir, "fill.c", object_test_fill);
  g_autofree char *saved = g_strdup (g_getenv ("CC"));
  g_autofree char *usual = NULL;

  g_setenv ("CC", "no-such-compiler -m64", TRUE);
  g_assert_null (pto_compile_shared_object (source, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_COMPILE);
  object_test_assert_contains (error->message, "no-such-compiler");
  g_clear_error (&error);
  g_assert_null (pto_dup_compiler ("x.c", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_COMPILE);
  g_clear_error (&error);
  if (saved != NULL)
    g_setenv ("CC", saved, TRUE);
  else
    g_unsetenv ("CC");
  usual = pto_dup_compiler ("x.c", &error);
  g_assert_no_error (error);
  g_assert_true (g_path_is_absolute (usual));
  object_test_remove_dir (g_steal_pointer (&dir));
}

static void
test_callable_getters (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = object_test_write (fixture->dir, "fill.c", object_test_fill);
  g_autoptr (PtoCallable) kernel = pto_kernel_new (PTO_CORE_AIC, path, "my_kernel", &error);
  g_autoptr (PtoCallable) chip
      = new_chip (fixture, "orch.c", object_test_orchestration, "my_entry");

  g_assert_no_error (error);
  g_assert_cmpint (pto_callable_get_kind (kernel), ==, PTO_CALLABLE_KERNEL);
  g_assert_cmpint (pto_kernel_get_core_type (PTO_KERNEL (kernel)), ==, PTO_CORE_AIC);
  g_assert_cmpstr (pto_callable_get_path (kernel), ==, path);
  g_assert_cmpstr (pto_device_code_get_symbol (PTO_DEVICE_CODE (kernel)), ==, "my_kernel");
  g_assert_cmpstr (pto_device_code_get_symbol (PTO_DEVICE_CODE (chip)), ==, "my_entry");
  g_assert_cmpstr (pto_callable_get_name (kernel), ==, "fill");
  pto_callable_set_name (kernel, "FILL");
  g_assert_cmpstr (pto_callable_get_name (kernel), ==, "FILL");
  g_assert_cmpuint (pto_chip_orchestration_get_n_kernels (PTO_CHIP_ORCHESTRATION (chip)), ==, 0);

  g_assert_true (
      pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 3, NULL, kernel, &error));
  g_assert_true (
      pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 1, "one", kernel, &error));
  g_assert_cmpuint (pto_chip_orchestration_get_n_kernels (PTO_CHIP_ORCHESTRATION (chip)), ==, 4);
  g_assert_true (pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (chip), 3) == kernel);
  g_assert_cmpstr (pto_chip_orchestration_get_kernel_name (PTO_CHIP_ORCHESTRATION (chip), 3), ==,
                   "FILL");
  g_assert_cmpstr (pto_chip_orchestration_get_kernel_name (PTO_CHIP_ORCHESTRATION (chip), 1), ==,
                   "one");
  g_assert_null (pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (chip), 2));
  g_assert_null (pto_chip_orchestration_get_kernel_name (PTO_CHIP_ORCHESTRATION (chip), 2));

  g_assert_false (
      pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 1, "two", kernel, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (error->message, "\"one\"");
  g_clear_error (&error);
  g_assert_false (pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 4096, "far",
                                                     kernel, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_false (
      pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), 5, "chip", chip, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);
  g_assert_null (pto_kernel_new (PTO_CORE_AIV, path, "x; system (\"\")", &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
}

static void
test_cost (Fixture *fixture, gconstpointer data)
{
  static const char *const much[] = { "constant:1.1e15",
                                      "constant:9e18",
                                      "constant:1e300",
                                      "constant:1e400",
                                      "linear:1e16:0",
                                      "linear:1:1e300",
                                      "linear:1e400:1e400",
                                      "table:0:1e16",
                                      "table:0:5,1:1e16",
                                      "table:1:1e16,2:5",
                                      "constant:99999999999999999999" };
  static const char *const good[] = { "constant:5",
                                      "linear:600:0.05",
                                      "linear:0:0",
                                      "measure",
                                      "table:0:10",
                                      "linear:1e15:1e15",
                                      "table:0:10,4096:20.5,65536:1e3" };
  static const char *const bad[] = { "",
                                     "linear",
                                     "linear:",
                                     "linear:1",
                                     "linear:1:",
                                     "linear:-1:0",
                                     "linear:1:2:3",
                                     "linear:inf:0",
                                     "constant:nan",
                                     "constant:1 ",
                                     "measured",
                                     "table:",
                                     "table:5",
                                     "table:5:1,5:2",
                                     "table:5:1,4:2",
                                     "table:5:1,",
                                     "table:-1:1",
                                     "table::1",
                                     "table:x:1",
                                     "table:5:1,:2",
                                     "table:5:",
                                     "table:5:-1",
                                     "table:5:1;6:2",
                                     "table:18446744073709551615:1",
                                     "constant:x",
                                     "constant:0x10",
                                     "linear:1e16",
                                     "table:5:1e16,4:1",
                                     "linear::1",
                                     "cube:3" };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "fill.c", object_test_fill);

  g_assert_cmpstr (pto_kernel_get_cost (PTO_KERNEL (kernel)), ==, "linear:1000:0.05");
  for (guint i = 0; i < G_N_ELEMENTS (good); i++)
    {
      g_assert_true (pto_kernel_set_cost (PTO_KERNEL (kernel), good[i], &error));
      g_assert_no_error (error);
      g_assert_cmpstr (pto_kernel_get_cost (PTO_KERNEL (kernel)), ==, good[i]);
    }
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_assert_false (pto_kernel_set_cost (PTO_KERNEL (kernel), bad[i], &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "kernel \"fill\"");
      object_test_assert_contains (error->message, "is no cost: write constant:NS");
      g_clear_error (&error);
    }
  for (guint i = 0; i < G_N_ELEMENTS (much); i++)
    {
      g_autofree char *says
          = g_strdup_printf ("kernel \"fill\": \"%s\" is too much: no number of a cost is greater "
                             "than 1e15 ns (11 days)",
                             much[i]);

      g_assert_false (pto_kernel_set_cost (PTO_KERNEL (kernel), much[i], &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      g_assert_cmpstr (error->message, ==, says);
      g_clear_error (&error);
    }
  g_assert_cmpstr (pto_kernel_get_cost (PTO_KERNEL (kernel)), ==, good[G_N_ELEMENTS (good) - 1]);
}

typedef struct
{
  char
      *flag; /* the compiler is at work when this file is there; it says where the compiler works */
  GCancellable *cancellable;
} Cancel;

static gpointer
cancel_when_compiling (gpointer data)
{
  Cancel *cancel = data;

  while (!g_file_test (cancel->flag, G_FILE_TEST_EXISTS))
    g_usleep (1000);
  g_cancellable_cancel (cancel->cancellable);
  return NULL;
}

/* A compiler that is ended has no chance to remove its own files. */
static void
test_ended_compiler_leaves_nothing (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autofree char *text = unique (object_test_fill);
  g_autofree char *flag = g_build_filename (fixture->dir, "compiling", NULL);
  g_autofree char *script
      = g_strdup_printf ("#!/bin/sh\n"
                         "case \"$*\" in\n"
                         "*-shared*) echo 1 > \"$TMPDIR/left.s\"; echo \"$TMPDIR\" > '%s.new'\n"
                         "  mv '%s.new' '%s'; exec sleep 1000 ;;\n"
                         "*) exec cc \"$@\" ;;\n"
                         "esac\n",
                         flag, flag, flag);
  g_autofree char *compiler = object_test_write (fixture->dir, "slow-cc", script);
  g_autofree char *before = g_strdup (g_getenv ("CC"));
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "fill.c", text);
  g_autofree char *where = NULL;
  Cancel cancel = { flag, cancellable };
  GThread *thread;

  g_assert_cmpint (g_chmod (compiler, 0700), ==, 0);
  g_setenv ("CC", compiler, TRUE);
  thread = g_thread_new ("cancel", cancel_when_compiling, &cancel);
  g_assert_null (pto_worker_register (fixture->worker, kernel, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_thread_join (thread);
  if (before != NULL)
    g_setenv ("CC", before, TRUE);
  else
    g_unsetenv ("CC");
  g_assert_true (g_file_get_contents (flag, &where, NULL, NULL));
  g_strchomp (where);
  g_assert_cmpuint (strlen (where), >, 0);
  g_assert_false (g_file_test (where, G_FILE_TEST_EXISTS));
}

/* A compiler that says when it is at work, and goes on when it is told. */
typedef struct
{
  char *at_work;
  char *go_on;
  GCancellable *cancellable; /* instead of going on, this is cancelled */
  GMainLoop *loop;
  GThread *thread;
  GAsyncResult *result;
} Waiting;

static gboolean
when_at_work (gpointer data)
{
  Waiting *waiting = data;

  if (!g_file_test (waiting->at_work, G_FILE_TEST_EXISTS))
    return G_SOURCE_CONTINUE;
  if (waiting->cancellable != NULL)
    g_cancellable_cancel (waiting->cancellable);
  else
    g_assert_true (g_file_set_contents (waiting->go_on, "", 0, NULL));
  return G_SOURCE_REMOVE;
}

static void
on_built (GObject *source, GAsyncResult *result, gpointer data)
{
  Waiting *waiting = data;

  g_assert_true (g_thread_self () == waiting->thread);
  waiting->result = g_object_ref (result);
  g_main_loop_quit (waiting->loop);
}

/* The main loop goes on while the compiler is at work: otherwise that would wait for ever. It ends
 * in the context where it began. */
static void
test_without_waiting (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = unique (object_test_fill);
  g_autofree char *path = object_test_write (fixture->dir, "fill.c", text);
  g_autofree char *before = g_strdup (g_getenv ("CC"));
  GMainContext *context = g_main_context_new ();

  g_main_context_push_thread_default (context);
  for (guint round = 0; round < 4; round++)
    {
      gboolean is_cancelled = round % 2 == 0;
      gboolean is_callable = round < 2;
      g_autofree char *at_work = g_strdup_printf ("%s/at-work-%u", fixture->dir, round);
      g_autofree char *go_on = g_strdup_printf ("%s/go-on-%u", fixture->dir, round);
      g_autofree char *script
          = g_strdup_printf ("#!/bin/sh\n"
                             "case \"$*\" in\n"
                             "*-shared*) : > '%s'; while ! test -e '%s'; do sleep 0.01; done ;;\n"
                             "esac\n"
                             "exec cc \"$@\"\n",
                             at_work, go_on);
      g_autofree char *compiler = object_test_write (fixture->dir, "waiting-cc", script);
      g_autoptr (PtoCallable) kernel = pto_kernel_new (PTO_CORE_AIV, path, NULL, NULL);
      g_autoptr (GCancellable) cancellable = is_cancelled ? g_cancellable_new () : NULL;
      g_autoptr (GSource) source = g_timeout_source_new (1);
      g_autoptr (GError) error = NULL;
      g_autofree char *object = NULL;
      Waiting waiting = { at_work,          go_on, cancellable, g_main_loop_new (context, FALSE),
                          g_thread_self (), NULL };

      g_assert_cmpint (g_chmod (compiler, 0700), ==, 0);
      g_setenv ("CC", compiler, TRUE);
      g_source_set_callback (source, when_at_work, &waiting, NULL);
      g_source_attach (source, context);
      if (is_callable)
        pto_device_code_build_async (PTO_DEVICE_CODE (kernel), cancellable, on_built, &waiting);
      else
        pto_compile_shared_object_async (path, cancellable, on_built, &waiting);
      g_main_loop_run (waiting.loop);
      if (is_callable)
        g_assert_true (
            pto_device_code_build_finish (PTO_DEVICE_CODE (kernel), waiting.result, &error)
            == !is_cancelled);
      else
        object = pto_compile_shared_object_finish (waiting.result, &error);
      if (is_cancelled)
        g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      else
        g_assert_no_error (error);
      g_assert_true ((object != NULL) == (!is_callable && !is_cancelled));
      /* What was built is what a worker finds: the compiler has nothing left to do. */
      if (is_callable && !is_cancelled)
        {
          pto_callable_handle_unref (register_kernel (fixture, kernel));
          g_assert_cmpuint (fixture->n_cached, ==, 1);
        }
      g_object_unref (waiting.result);
      g_main_loop_unref (waiting.loop);
      g_free (text);
      text = unique (object_test_fill);
      g_free (object_test_write (fixture->dir, "fill.c", text));
    }
  if (before != NULL)
    g_setenv ("CC", before, TRUE);
  else
    g_unsetenv ("CC");
  g_main_context_pop_thread_default (context);
  g_main_context_unref (context);
}

#define AT_ONCE 10u /* as many as compile at one time */

typedef struct
{
  GMainLoop *loop;
  guint n_ended;
  GAsyncResult *results[AT_ONCE + 2];
} Ends;

static void
on_one_built (GObject *source, GAsyncResult *result, gpointer data)
{
  Ends *ends = data;

  ends->results[ends->n_ended++] = g_object_ref (result);
  g_main_loop_quit (ends->loop);
}

/* Builds that wait for their turn hear their cancel while all those before them go on. */
static void
test_cancelled_in_queue (Fixture *fixture, gconstpointer data)
{
  g_autofree char *before = g_strdup (g_getenv ("CC"));
  g_autofree char *go_on = g_strdup_printf ("%s/go-on", fixture->dir);
  g_autofree char *script
      = g_strdup_printf ("#!/bin/sh\n"
                         "case \"$*\" in\n"
                         "*-shared*) while ! test -e '%s'; do sleep 0.01; done ;;\n"
                         "esac\n"
                         "exec cc \"$@\"\n",
                         go_on);
  g_autofree char *compiler = object_test_write (fixture->dir, "waiting-cc", script);
  g_autofree char *text = unique (object_test_fill);
  g_autofree char *path = object_test_write (fixture->dir, "queued.c", text);
  g_autoptr (PtoCallable) queued = pto_kernel_new (PTO_CORE_AIV, path, NULL, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  GMainContext *context = g_main_context_new ();
  Ends ends = { g_main_loop_new (context, FALSE), 0, { NULL } };

  g_assert_cmpint (g_chmod (compiler, 0700), ==, 0);
  g_setenv ("CC", compiler, TRUE);
  g_main_context_push_thread_default (context);
  for (guint i = 0; i < AT_ONCE; i++)
    {
      g_autofree char *name = g_strdup_printf ("at-once-%u.c", i);
      g_autofree char *one_text = unique (object_test_fill);
      g_autofree char *one = object_test_write (fixture->dir, name, one_text);

      pto_compile_shared_object_async (one, NULL, on_one_built, &ends);
    }
  pto_device_code_build_async (PTO_DEVICE_CODE (queued), cancellable, on_one_built, &ends);
  pto_compile_shared_object_async (path, cancellable, on_one_built, &ends);
  g_cancellable_cancel (cancellable);
  while (ends.n_ended < 2)
    g_main_loop_run (ends.loop);
  g_assert_false (pto_device_code_build_finish (PTO_DEVICE_CODE (queued), ends.results[0], &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_null (pto_compile_shared_object_finish (ends.results[1], &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_true (g_file_set_contents (go_on, "", 0, NULL));
  while (ends.n_ended < AT_ONCE + 2)
    g_main_loop_run (ends.loop);
  for (guint i = 0; i < AT_ONCE + 2; i++)
    {
      g_autofree char *object
          = i >= 2 ? pto_compile_shared_object_finish (ends.results[i], &error) : NULL;

      g_assert_no_error (error);
      g_object_unref (ends.results[i]);
    }
  g_main_loop_unref (ends.loop);
  if (before != NULL)
    g_setenv ("CC", before, TRUE);
  else
    g_unsetenv ("CC");
  g_main_context_pop_thread_default (context);
  g_main_context_unref (context);
}

/* A source that is wrong, and what is nothing. */
static void
test_build (Fixture *fixture, gconstpointer data)
{
  g_autofree char *path = object_test_write (fixture->dir, "wrong.c", "int x = y;\n");
  g_autoptr (PtoCallable) wrong = pto_kernel_new (PTO_CORE_AIV, path, NULL, NULL);
  g_autoptr (PtoCallable) nothing = g_object_new (PTO_TYPE_KERNEL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (pto_device_code_build (PTO_DEVICE_CODE (wrong), NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_COMPILE);
  object_test_assert_contains (error->message, "kernel \"wrong\": ");
  g_clear_error (&error);
  g_assert_false (pto_device_code_build (PTO_DEVICE_CODE (nothing), NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
}

static void
test_cost_changes_digest (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  g_autoptr (PtoCallableHandle) first = register_kernel (fixture, kernel);
  g_autoptr (PtoCallableHandle) second = NULL;

  g_assert_true (pto_kernel_set_cost (PTO_KERNEL (kernel), "constant:77", NULL));
  second = register_kernel (fixture, kernel);
  g_assert_cmpstr (pto_callable_handle_get_digest (first), !=,
                   pto_callable_handle_get_digest (second));
}

static void
test_signature (Fixture *fixture, gconstpointer data)
{
  const PtoDirection directions[] = { PTO_DIRECTION_OUTPUT, PTO_DIRECTION_SCALAR };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  const PtoDirection *given;
  gsize n = 9;

  g_assert_null (pto_kernel_get_signature (PTO_KERNEL (kernel), &n));
  g_assert_cmpuint (n, ==, 0);
  g_assert_true (pto_kernel_set_signature (PTO_KERNEL (kernel), directions, 2, &error));
  given = pto_kernel_get_signature (PTO_KERNEL (kernel), &n);
  g_assert_cmpmem (given, n * sizeof *given, directions, sizeof directions);
  g_assert_cmpint (pto_kernel_get_n_args (PTO_KERNEL (kernel)), ==, 2);
  g_assert_false (
      pto_kernel_set_signature (PTO_KERNEL (kernel), (const PtoDirection[]){ 17 }, 1, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_clear_error (&error);

  /* Their number alone. */
  g_assert_true (pto_kernel_set_n_args (PTO_KERNEL (kernel), 3, &error));
  g_assert_cmpint (pto_kernel_get_n_args (PTO_KERNEL (kernel)), ==, 3);
  g_assert_null (pto_kernel_get_signature (PTO_KERNEL (kernel), &n));
  g_assert_cmpuint (n, ==, 0);
  g_assert_true (pto_kernel_set_n_args (PTO_KERNEL (kernel), 0, &error));
  g_assert_cmpint (pto_kernel_get_n_args (PTO_KERNEL (kernel)), ==, 0);
  g_assert_true (pto_kernel_set_n_args (PTO_KERNEL (kernel), -1, &error));
  g_assert_cmpint (pto_kernel_get_n_args (PTO_KERNEL (kernel)), ==, -1);
  for (int i = 0; i < 2; i++)
    {
      g_assert_false (pto_kernel_set_n_args (PTO_KERNEL (kernel), i == 0 ? -2 : 129, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      g_clear_error (&error);
    }
}

#define ADD(name, function) g_test_add (name, Fixture, NULL, set_up, function, tear_down)

/* --- what was compiled is what is there --- */

/* At a time of its own, long before now: what is written while a compiler reads it is not known. */
static void
write_at (const char *dir, const char *name, const char *text, gint64 seconds)
{
  g_autofree char *path = object_test_write (dir, name, text);
  struct utimbuf times = { seconds, seconds };

  g_assert_cmpint (g_utime (path, &times), ==, 0);
}

/* Waits until the coarse clock is past the last change of all files so far. The system may stamp
 * files by another clock, and that one is ahead. */
static void
wait_for_tick (const char *dir)
{
  gint64 deadline = g_get_monotonic_time () + 60 * G_USEC_PER_SEC;
  g_autofree char *path = object_test_write (dir, "tick", "");
  struct timespec now;
  GStatBuf status;

  g_assert_cmpint (g_chmod (path, 0600), ==, 0);
  g_assert_cmpint (g_stat (path, &status), ==, 0);
  do
    {
      g_thread_yield ();
      g_assert_cmpint (clock_gettime (CLOCK_REALTIME_COARSE, &now), ==, 0);
      g_assert_cmpint (g_get_monotonic_time (), <, deadline);
    }
  while (now.tv_sec < status.st_ctim.tv_sec
         || (now.tv_sec == status.st_ctim.tv_sec && now.tv_nsec <= status.st_ctim.tv_nsec));
}

static void
build_kernel (PtoCallable *kernel)
{
  g_autoptr (GError) error = NULL;

  pto_device_code_build (PTO_DEVICE_CODE (kernel), NULL, &error);
  g_assert_no_error (error);
}

static void
test_edited (Fixture *fixture, gconstpointer data)
{
  static const char *const names[] = { "edited.c", "outer.h", "inner.h", "a \"b\".h" };
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel = NULL;
  g_autofree char *path = g_build_filename (fixture->dir, names[0], NULL);
  g_auto (GStrv) none = NULL;
  g_auto (GStrv) files = NULL;

  write_at (fixture->dir, names[0],
            "#include \"outer.h\"\n#include <stdint.h>\n#line 7 \"nowhere.y\"\n"
            "void kernel_entry (int64_t *args) { args[0] = NUMBER; }\n",
            1000);
  write_at (fixture->dir, names[1],
            "#include <inner.h>\n#include \"inner.h\"\n#include <a \"b\".h>\n", 1000);
  write_at (fixture->dir, names[2], "#define NUMBER 1\n", 1000);
  write_at (fixture->dir, names[3], "", 1000);
  kernel = pto_kernel_new (PTO_CORE_AIV, path, NULL, &error);
  g_assert_no_error (error);
  pto_device_code_set_include_dirs (PTO_DEVICE_CODE (kernel),
                                    (const char *const[]){ fixture->dir, NULL }, &error);
  g_assert_no_error (error);
  none = pto_device_code_dup_files (PTO_DEVICE_CODE (kernel));
  g_assert_cmpuint (g_strv_length (none), ==, 0);
  g_assert_false (pto_device_code_is_edited (PTO_DEVICE_CODE (kernel)));

  wait_for_tick (fixture->dir);
  build_kernel (kernel);
  files = pto_device_code_dup_files (PTO_DEVICE_CODE (kernel));
  g_assert_cmpuint (g_strv_length (files), ==, G_N_ELEMENTS (names));
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *name = g_build_filename (fixture->dir, names[i], NULL);

      g_assert_true (g_strv_contains ((const char *const *) files, name));
    }
  g_assert_cmpstr (files[0], ==, path);
  g_assert_false (pto_device_code_is_edited (PTO_DEVICE_CODE (kernel)));

  /* Of the same length. */
  write_at (fixture->dir, names[2], "#define NUMBER 2\n", 1001);
  g_assert_true (pto_device_code_is_edited (PTO_DEVICE_CODE (kernel)));
  /* Who has compiled it before still has what it was. */
  build_kernel (kernel);
  g_assert_true (pto_device_code_is_edited (PTO_DEVICE_CODE (kernel)));
}

/* Whoever wrote it while it was read may have been too late for that. */
static void
test_edited_meanwhile (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (fixture->dir, "edited.c", NULL);
  g_autoptr (PtoCallable) kernel = NULL;

  write_at (fixture->dir, "edited.c", "void kernel_entry (long *args) { }\n",
            g_get_real_time () / G_USEC_PER_SEC + 3600);
  kernel = pto_kernel_new (PTO_CORE_AIV, path, NULL, &error);
  g_assert_no_error (error);
  build_kernel (kernel);
  g_assert_true (pto_device_code_is_edited (PTO_DEVICE_CODE (kernel)));
  write_at (fixture->dir, "edited.c", "void kernel_entry (long *args) { }\n", 1000);
  g_assert_true (pto_device_code_is_edited (PTO_DEVICE_CODE (kernel)));
}

/* What takes the place of a file that has been read, or is put into it, is another, however old it
 * looks. */
static void
test_replaced_meanwhile (Fixture *fixture, gconstpointer data)
{
  static const char *const rows[][2] = {
    { "outer.h", "mv -f" },
    { "outer.h", "cp -p" },
    { "replaced.c", "mv -f" },
    { "replaced.c", "cp -p" },
  };
  g_autofree char *before = g_strdup (g_getenv ("CC"));

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree char *path = g_build_filename (fixture->dir, "replaced.c", NULL);
      g_autofree char *old = g_build_filename (fixture->dir, rows[i][0], NULL);
      g_autofree char *name = g_strconcat (rows[i][0], ".new", NULL);
      g_autofree char *new = g_build_filename (fixture->dir, name, NULL);
      g_autofree char *script = g_strdup_printf ("#!/bin/sh\n"
                                                 "cc \"$@\" || exit 1\n"
                                                 "case \" $* \" in\n"
                                                 "*' -E '*replaced.c*) %s '%s' '%s' ;;\n"
                                                 "esac\n",
                                                 rows[i][1], new, old);
      g_autofree char *compiler = object_test_write (fixture->dir, "moving-cc", script);
      g_autofree char *text = unique ("#include \"outer.h\"\nvoid kernel_entry (long *args) { }\n");
      g_autoptr (PtoCallable) kernel = NULL;
      g_autofree char *contents = NULL;

      write_at (fixture->dir, "replaced.c", text, 1000);
      write_at (fixture->dir, "outer.h", "#define NUMBER 1\n", 1000);
      g_assert_true (g_file_get_contents (old, &contents, NULL, NULL));
      write_at (fixture->dir, name, contents, 1000);
      kernel = pto_kernel_new (PTO_CORE_AIV, path, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpint (g_chmod (compiler, 0700), ==, 0);
      g_setenv ("CC", compiler, TRUE);
      wait_for_tick (fixture->dir);
      build_kernel (kernel);
      if (before != NULL)
        g_setenv ("CC", before, TRUE);
      else
        g_unsetenv ("CC");
      g_assert_true (g_file_test (new, G_FILE_TEST_EXISTS) == (rows[i][1][0] == 'c'));
      g_assert_true (pto_device_code_is_edited (PTO_DEVICE_CODE (kernel)));
    }
}

/* An orchestration is all of its kernels; an object is itself. */
static void
test_edited_parts (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *ini = g_strdup ("[orchestration]\nsource=graph.c\n"
                                   "[kernel 0]\nname=k\nsource=k.c\ncore=aiv\n");
  g_autoptr (PtoCallable) chip = NULL;
  g_autoptr (PtoCallable) of_object = NULL;
  g_autofree char *source = g_build_filename (fixture->dir, "k.c", NULL);
  g_autofree char *object = NULL;
  g_autofree char *copy = g_build_filename (fixture->dir, "copy.so", NULL);
  g_autofree char *contents = NULL;
  struct utimbuf times = { 1000, 1000 };
  gsize size;

  write_at (fixture->dir, "pto.ini", ini, 1000);
  write_at (
      fixture->dir, "graph.c",
      "#include \"pto_orchestration_api.h\"\n"
      "PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int n)\n"
      "{ return (PTO2OrchestrationConfig){ 0 }; }\n"
      "int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n) { return 0; }\n",
      1000);
  write_at (fixture->dir, "k.c", "void kernel_entry (long *args) { }\n", 1000);
  chip = pto_chip_orchestration_new_for_directory (fixture->dir, &error);
  g_assert_no_error (error);
  wait_for_tick (fixture->dir);
  build_kernel (chip);
  g_assert_false (pto_device_code_is_edited (PTO_DEVICE_CODE (chip)));
  write_at (fixture->dir, "k.c", "void kernel_entry (long *args) { }\n", 1001);
  g_assert_true (pto_device_code_is_edited (PTO_DEVICE_CODE (chip)));

  object = pto_compile_shared_object (source, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (object, &contents, &size, NULL));
  g_assert_true (g_file_set_contents (copy, contents, (gssize) size, NULL));
  g_assert_cmpint (g_utime (copy, &times), ==, 0);
  of_object = pto_kernel_new (PTO_CORE_AIV, copy, NULL, &error);
  g_assert_no_error (error);
  build_kernel (of_object);
  g_assert_false (pto_device_code_is_edited (PTO_DEVICE_CODE (of_object)));
  g_unlink (copy);
  g_assert_true (pto_device_code_is_edited (PTO_DEVICE_CODE (of_object)));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/pto/compile/cache-hit", test_cache_hit);
  ADD ("/pto/compile/cache-by-content", test_cache_by_content);
  ADD ("/pto/compile/included-header-edited", test_included_header_edited);
  ADD ("/pto/compile/damaged-cache", test_damaged_cache);
  ADD ("/pto/compile/ended-compiler-leaves-nothing", test_ended_compiler_leaves_nothing);
  ADD ("/pto/compile/compiler-error", test_compiler_error);
  ADD ("/pto/compile/missing-include", test_missing_include);
  ADD ("/pto/compile/missing-export", test_missing_export);
  ADD ("/pto/compile/undefined-symbol", test_undefined_symbol);
  ADD ("/pto/compile/orchestration-exports", test_orchestration_exports);
  ADD ("/pto/compile/files-refused", test_files_refused);
  ADD ("/pto/compile/shared-object", test_shared_object);
  ADD ("/pto/compile/several-at-once", test_several_at_once);
  ADD ("/pto/compile/all-or-nothing", test_all_or_nothing);
  ADD ("/pto/compile/cancelled", test_cancelled);
  ADD ("/pto/compile/without-waiting", test_without_waiting);
  ADD ("/pto/compile/cancelled-in-queue", test_cancelled_in_queue);
  ADD ("/pto/compile/build", test_build);
  ADD ("/pto/compile/odd-path", test_odd_path);
  g_test_add_func ("/pto/compile/api-dir", test_api_dir);
  g_test_add_func ("/pto/compile/compiler-variable", test_compiler_variable);
  ADD ("/pto/callable/getters", test_callable_getters);
  ADD ("/pto/callable/cost", test_cost);
  ADD ("/pto/callable/cost-changes-digest", test_cost_changes_digest);
  ADD ("/pto/callable/signature", test_signature);
  ADD ("/pto/callable/edited", test_edited);
  ADD ("/pto/callable/edited-meanwhile", test_edited_meanwhile);
  ADD ("/pto/callable/replaced-meanwhile", test_replaced_meanwhile);
  ADD ("/pto/callable/edited-parts", test_edited_parts);
  return g_test_run ();
}
