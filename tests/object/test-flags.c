/* test-flags.c: is a source compiled with the headers and flags that its user says?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <glib/gstdio.h>
#include <string.h>

#define KERNEL "void kernel_entry (long *args) { }\n"

typedef struct
{
  char *dir;
  PtoWorker *worker;
  guint n_built; /* and not found in the cache */
} Fixture;

static void
count_built (PtoWorker *worker, guint done, guint total, const char *name, gboolean cached,
             gpointer data)
{
  ((Fixture *) data)->n_built += cached ? 0 : 1;
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_unsetenv ("PTO_ISA_ROOT");
  g_unsetenv ("CFLAGS");
  g_unsetenv ("CXXFLAGS");
  fixture->dir = object_test_make_dir ();
  fixture->worker = pto_worker_new_chip (NULL, NULL);
  g_signal_connect (fixture->worker, "progress", G_CALLBACK (count_built), fixture);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  g_object_unref (fixture->worker);
  object_test_remove_dir (fixture->dir);
  g_unsetenv ("PTO_ISA_ROOT");
  g_unsetenv ("CFLAGS");
  g_unsetenv ("CXXFLAGS");
}

/* A definition that no other run of the tests has had, in front of the text. */
static PtoCallable *
make_kernel (Fixture *fixture, PtoCoreType core, const char *name, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *all = g_strdup_printf ("extern const int unique_%08x%08x;\n%s", g_random_int (),
                                          g_random_int (), text);
  g_autofree char *path = object_test_write (fixture->dir, name, all);
  PtoCallable *kernel = pto_kernel_new (core, path, NULL, &error);

  g_assert_no_error (error);
  return kernel;
}

/* How many objects were built. */
static guint
build (Fixture *fixture, PtoCallable *kernel)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallableHandle) handle = NULL;

  fixture->n_built = 0;
  handle = pto_worker_register (fixture->worker, kernel, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (handle);
  return fixture->n_built;
}

static void
expect_refused (Fixture *fixture, PtoCallable *kernel, PtoError code, const char *const *parts)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *first = NULL;

  g_assert_null (pto_worker_register (fixture->worker, kernel, NULL, &error));
  g_assert_error (error, PTO_ERROR, (int) code);
  first = g_strndup (error->message, strcspn (error->message, "\n"));
  for (; *parts != NULL; parts++)
    object_test_assert_contains (first, *parts);
}

static void
set_flags (PtoCallable *kernel, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = g_strsplit (text, " ", -1);

  pto_device_code_set_compiler_flags (PTO_DEVICE_CODE (kernel), (const char *const *) words,
                                      &error);
  g_assert_no_error (error);
}

/* --- headers --- */

#ifdef HAVE_CPP
static const char tile_kernel[]
    = "#include \"tensor.h\"\n"
      "#include <pto/pto-inst.hpp>\n"
      "static_assert (__cplusplus >= 202002L);\n"
      "extern \"C\" __aicore__ void kernel_entry (__gm__ int64_t *args)\n"
      "{\n"
      "  auto *in = (__gm__ TensorData *) args[0];\n"
      "  auto *out = (__gm__ TensorData *) args[1];\n"
      "  pto::Tile<float, 8> x, sum;\n"
      "  pto::TLOAD (x, (const float *) in->buffer.addr);\n"
      "  pto::TADD (sum, x, x);\n"
      "  pto::TSTORE ((float *) out->buffer.addr, sum);\n"
      "}\n";

/* For each type of core, and what it computes. */
static void
test_tile_headers (Fixture *fixture, gconstpointer data)
{
  static const char *const guards[]
      = { "#if !defined(__DAV_CUBE__) || defined(__DAV_VEC__)\n#error\n#endif\n",
          "#if !defined(__DAV_VEC__) || defined(__DAV_CUBE__)\n#error\n#endif\n" };

  g_setenv ("PTO_ISA_ROOT", g_getenv ("PTO_TEST_TILE_HEADERS"), TRUE);
  for (guint core = 0; core < 2; core++)
    {
      g_autofree char *text = g_strconcat (guards[core], tile_kernel, NULL);
      g_autoptr (PtoCallable) kernel = make_kernel (fixture, (PtoCoreType) core, "tile.cpp", text);

      g_assert_cmpuint (build (fixture, kernel), ==, 1);
      g_assert_cmpuint (build (fixture, kernel), ==, 0);
    }
}

static void
test_missing_tile_headers (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel = make_kernel (fixture, PTO_CORE_AIV, "tile.cpp", tile_kernel);

  expect_refused (fixture, kernel, PTO_ERROR_COMPILE,
                  (const char *const[]){ "kernel \"tile\": ", "tile.cpp:3:", "pto/pto-inst.hpp",
                                         "set PTO_ISA_ROOT to the directory", NULL });
  /* One that has an include, but not that one. */
  g_setenv ("PTO_ISA_ROOT", "/usr", TRUE);
  expect_refused (fixture, kernel, PTO_ERROR_COMPILE,
                  (const char *const[]){ "pto/pto-inst.hpp",
                                         "PTO_ISA_ROOT is \"/usr\", whose include does not have it",
                                         NULL });
}
#endif

static void
test_wrong_root (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel = make_kernel (fixture, PTO_CORE_AIV, "k.c", KERNEL);

  g_setenv ("PTO_ISA_ROOT", fixture->dir, TRUE);
  expect_refused (fixture, kernel, PTO_ERROR_NOT_FOUND,
                  (const char *const[]){ "kernel \"k\": PTO_ISA_ROOT is \"", fixture->dir,
                                         "no directory include", NULL });
  g_setenv ("PTO_ISA_ROOT", "", TRUE);
  g_assert_cmpuint (build (fixture, kernel), ==, 1);
}

/* What they say is part of what is kept, where they are is not. */
static void
test_include_dirs (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel
      = make_kernel (fixture, PTO_CORE_AIV, "k.c", "#include <sizes.h>\nint size = SIZE;\n" KERNEL);
  char *dirs[] = { object_test_make_dir (), object_test_make_dir (), NULL };

  g_assert_null (pto_device_code_get_include_dirs (PTO_DEVICE_CODE (kernel)));
  expect_refused (fixture, kernel, PTO_ERROR_COMPILE,
                  (const char *const[]){ "sizes.h", "include-dirs", "CFLAGS=-IDIR", NULL });
  g_free (object_test_write (dirs[1], "sizes.h", "#define SIZE 1\n"));
  pto_device_code_set_include_dirs (PTO_DEVICE_CODE (kernel), (const char *const *) dirs, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (pto_device_code_get_include_dirs (PTO_DEVICE_CODE (kernel))[1], ==, dirs[1]);
  g_assert_cmpuint (build (fixture, kernel), ==, 1);
  /* The first that has it. */
  g_free (object_test_write (dirs[0], "sizes.h", "#define SIZE 2\n"));
  g_assert_cmpuint (build (fixture, kernel), ==, 1);
  g_free (object_test_write (dirs[0], "sizes.h", "#define SIZE 1\n"));
  g_assert_cmpuint (build (fixture, kernel), ==, 0);

  g_assert_false (pto_device_code_set_include_dirs (
      PTO_DEVICE_CODE (kernel), (const char *const[]){ "/nonexistent/nowhere", NULL }, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (error->message, "\"k\": /nonexistent/nowhere: ");
  g_assert_cmpuint (
      g_strv_length ((char **) pto_device_code_get_include_dirs (PTO_DEVICE_CODE (kernel))), ==, 2);
  g_assert_true (pto_device_code_set_include_dirs (PTO_DEVICE_CODE (kernel), NULL, NULL));
  g_assert_null (pto_device_code_get_include_dirs (PTO_DEVICE_CODE (kernel)));
  object_test_remove_dir (dirs[0]);
  object_test_remove_dir (dirs[1]);
}

/* A compiler that speaks another language is asked to speak English, with the same characters. */
static void
test_language (Fixture *fixture, gconstpointer data)
{
  static const char *const names[] = { "CC", "LC_ALL", "LANGUAGE", "LC_MESSAGES" };
  static const char *const values[] = { NULL, "de_DE.UTF-8", "de", "de_DE.UTF-8" };
  static const char script[]
      = "#!/bin/sh\n"
        "case \"$LC_CTYPE.$LANGUAGE.${LC_ALL:-$LC_MESSAGES}\" in\n"
        "de_DE.UTF-8..C) exec cc \"$@\" ;;\n"
        "*) [ \"$1\" = --version ] && exec cc --version\n"
        "echo 'k.c:2: schwerwiegender Fehler: sizes.h: Datei oder Verzeichnis nicht gefunden' >&2\n"
        "exit 1 ;;\n"
        "esac\n";
  g_autoptr (PtoCallable) kernel
      = make_kernel (fixture, PTO_CORE_AIV, "k.c", "#include <sizes.h>\n" KERNEL);
  g_autofree char *compiler = object_test_write (fixture->dir, "mycc", script);
  char *before[G_N_ELEMENTS (names)];

  g_assert_cmpint (g_chmod (compiler, 0755), ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      before[i] = g_strdup (g_getenv (names[i]));
      g_setenv (names[i], i == 0 ? compiler : values[i], TRUE);
    }
  expect_refused (
      fixture, kernel, PTO_ERROR_COMPILE,
      (const char *const[]){ "sizes.h: No such file", "include-dirs", "CFLAGS=-IDIR", NULL });
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      if (before[i] != NULL)
        g_setenv (names[i], before[i], TRUE);
      else
        g_unsetenv (names[i]);
      g_free (before[i]);
    }
}

/* --- flags --- */

static void
test_flags (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel
      = make_kernel (fixture, PTO_CORE_AIV, "k.c",
                     "#if TILE != 64 || __STDC_VERSION__ != 201112L\n#error\n#endif\n" KERNEL);

  g_assert_null (pto_device_code_get_compiler_flags (PTO_DEVICE_CODE (kernel)));
  expect_refused (fixture, kernel, PTO_ERROR_COMPILE, (const char *const[]){ "k.c:3:", NULL });
  set_flags (kernel, "-std=gnu11 -D TILE=64");
  g_assert_cmpstr (pto_device_code_get_compiler_flags (PTO_DEVICE_CODE (kernel))[0], ==,
                   "-std=gnu11");
  g_assert_cmpuint (build (fixture, kernel), ==, 1);
  g_assert_cmpuint (build (fixture, kernel), ==, 0);
  /* What does not change the text is part of what is kept all the same. */
  set_flags (kernel, "-std=gnu11 -DTILE=64 -O1");
  g_assert_cmpuint (build (fixture, kernel), ==, 1);
  g_assert_true (pto_device_code_set_compiler_flags (PTO_DEVICE_CODE (kernel), NULL, NULL));
  g_assert_null (pto_device_code_get_compiler_flags (PTO_DEVICE_CODE (kernel)));
}

/* Of those of the environment the callable's own are the stronger ones. */
static void
test_environment (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel
      = make_kernel (fixture, PTO_CORE_AIV, "k.c", "#if TILE != 64\n#error TILE\n#endif\n" KERNEL);

  g_setenv ("CFLAGS", " -DTILE=64 '-DTEXT=\"a b\"' ", TRUE);
  g_assert_cmpuint (build (fixture, kernel), ==, 1);
  g_setenv ("CFLAGS", "-DTILE=32", TRUE);
  expect_refused (fixture, kernel, PTO_ERROR_COMPILE, (const char *const[]){ "TILE", NULL });
  set_flags (kernel, "-UTILE -DTILE=64");
  g_assert_cmpuint (build (fixture, kernel), ==, 1);
  g_setenv ("CFLAGS", "-DTILE='64", TRUE);
  expect_refused (fixture, kernel, PTO_ERROR_INVALID_ARGS,
                  (const char *const[]){ "CFLAGS=-DTILE='64: ", NULL });
  g_setenv ("CFLAGS", "-O1 -c", TRUE);
  expect_refused (fixture, kernel, PTO_ERROR_INVALID_ARGS,
                  (const char *const[]){ "CFLAGS: the flag -c can not be used", NULL });
  g_setenv ("CFLAGS", "  ", TRUE);
  g_setenv ("CXXFLAGS", "-c", TRUE); /* not of a source in C */
  g_assert_cmpuint (build (fixture, kernel), ==, 1);
}

static void
count_notify (GObject *object, GParamSpec *pspec, gpointer data)
{
  (*(guint *) data)++;
}

/* As the calls that say why not; a property can only warn. */
static void
test_properties (Fixture *fixture, gconstpointer data)
{
  g_autoptr (PtoCallable) kernel
      = make_kernel (fixture, PTO_CORE_AIV, "k.c", "#if TILE != 64\n#error TILE\n#endif\n" KERNEL);
  const char *const dirs[] = { fixture->dir, NULL };
  const char *const flags[] = { "-DTILE=64", NULL };
  const char *const wrong[] = { "-c", NULL };
  const char *const nowhere[] = { "/nonexistent/nowhere", NULL };
  g_auto (GStrv) dirs_set = NULL;
  g_auto (GStrv) flags_set = NULL;
  guint n_told = 0;

  g_signal_connect (kernel, "notify::include-dirs", G_CALLBACK (count_notify), &n_told);
  g_signal_connect (kernel, "notify::compiler-flags", G_CALLBACK (count_notify), &n_told);
  g_object_set (kernel, "include-dirs", dirs, "compiler-flags", flags, NULL);
  g_assert_cmpuint (n_told, ==, 2);
  g_assert_cmpuint (build (fixture, kernel), ==, 1);

  g_test_expect_message ("Pto", G_LOG_LEVEL_WARNING, "\"k\": the flag -c can not be used*");
  g_object_set (kernel, "compiler-flags", wrong, NULL);
  g_test_expect_message ("Pto", G_LOG_LEVEL_WARNING,
                         "\"k\": /nonexistent/nowhere: there is no such directory*");
  g_object_set (kernel, "include-dirs", nowhere, NULL);
  g_test_assert_expected_messages ();
  g_assert_cmpuint (n_told, ==, 2);
  g_object_get (kernel, "include-dirs", &dirs_set, "compiler-flags", &flags_set, NULL);
  g_assert_cmpstrv (dirs_set, dirs);
  g_assert_cmpstrv (flags_set, flags);

  g_object_set (kernel, "include-dirs", NULL, "compiler-flags", NULL, NULL);
  g_assert_null (pto_device_code_get_include_dirs (PTO_DEVICE_CODE (kernel)));
  g_assert_null (pto_device_code_get_compiler_flags (PTO_DEVICE_CODE (kernel)));
  g_assert_cmpuint (n_told, ==, 4);
}

static void
test_refused (Fixture *fixture, gconstpointer data)
{
  static const struct
  {
    const char *flags[3];
    const char *says;
  } cases[] = {
    { { "-c" }, "\"k\": the flag -c can not be used" },
    { { "-O2", "-ofile" }, "\"k\": the flag -ofile can not be used" },
    { { "-xc++" }, "\"k\": the flag -xc++ can not be used" },
    { { "-MMD" }, "\"k\": the flag -MMD can not be used" },
    { { "other.c" }, "\"k\": \"other.c\" is no flag" },
    { { "" }, "\"k\": \"\" is no flag" },
    { { "-O2", "-I" }, "\"k\": nothing follows the flag -I" },
  };
  g_autoptr (PtoCallable) kernel = make_kernel (fixture, PTO_CORE_AIV, "k.c", KERNEL);
  g_autoptr (PtoCallable) object = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *path = NULL;

  set_flags (kernel, "-O1");
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_assert_false (
          pto_device_code_set_compiler_flags (PTO_DEVICE_CODE (kernel), cases[i].flags, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      g_assert_true (g_str_has_prefix (error->message, cases[i].says));
      g_clear_error (&error);
    }
  g_assert_cmpstr (pto_device_code_get_compiler_flags (PTO_DEVICE_CODE (kernel))[0], ==, "-O1");

  /* They would have no effect. */
  path = pto_compile_shared_object (pto_callable_get_path (kernel), NULL, &error);
  g_assert_no_error (error);
  object = pto_kernel_new (PTO_CORE_AIV, path, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 2; i++)
    {
      PtoDeviceCode *code = PTO_DEVICE_CODE (object);
      const char *const words[] = { i == 0 ? "-O1" : fixture->dir, NULL };

      g_assert_false (i == 0 ? pto_device_code_set_compiler_flags (code, words, &error)
                             : pto_device_code_set_include_dirs (code, words, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "is not made from a source");
      g_clear_error (&error);
    }
}

/* A library stands behind what needs it; what it holds is not known, so nothing is kept. */
static void
test_libraries (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) kernel
      = make_kernel (fixture, PTO_CORE_AIV, "k.c",
                     "int pto_test_value (void);\n"
                     "void kernel_entry (long *args) { args[0] = pto_test_value (); }\n");
  g_autofree char *source
      = object_test_write (fixture->dir, "v.c", "int pto_test_value (void) { return 5; }\n");
  g_autofree char *object = pto_compile_shared_object (source, NULL, &error);
  g_autofree char *library = g_build_filename (fixture->dir, "libvalue.so", NULL);
  g_autofree char *flags
      = g_strdup_printf ("-L %s -l value -Wl,-rpath,%s", fixture->dir, fixture->dir);
  g_autofree char *contents = NULL;
  gsize size;

  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (object, &contents, &size, NULL));
  g_assert_true (g_file_set_contents (library, contents, (gssize) size, NULL));
  set_flags (kernel, flags);
  g_assert_cmpuint (build (fixture, kernel), ==, 1);
  g_assert_cmpuint (build (fixture, kernel), ==, 1);
}

#define ADD(name, function) g_test_add (name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#ifdef HAVE_CPP
  ADD ("/pto/flags/tile-headers", test_tile_headers);
  ADD ("/pto/flags/missing-tile-headers", test_missing_tile_headers);
#endif
  ADD ("/pto/flags/wrong-root", test_wrong_root);
  ADD ("/pto/flags/include-dirs", test_include_dirs);
  ADD ("/pto/flags/language", test_language);
  ADD ("/pto/flags/flags", test_flags);
  ADD ("/pto/flags/environment", test_environment);
  ADD ("/pto/flags/properties", test_properties);
  ADD ("/pto/flags/refused", test_refused);
  ADD ("/pto/flags/libraries", test_libraries);
  return g_test_run ();
}
