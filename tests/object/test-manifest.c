/* test-manifest.c: is a source that has not changed known without the compiler, and every change
 * seen?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct
{
  char *dir;
  char *include; /* a directory that is searched after the source's own */
  char *source;
} Fixture;

/* The whole program has one: GLib looks once where the cache is. */
static char *cache;
static char *count;

/* Makes a file whose path is not needed. */
static void
write_file (const char *dir, const char *name, const char *text)
{
  g_free (object_test_write (dir, name, text));
}

/* Until what is written next has another time than what was written before. */
static void
settle (void)
{
  struct timespec now;
  struct timespec begin;

  clock_gettime (CLOCK_REALTIME_COARSE, &begin);
  do
    {
      g_usleep (500);
      clock_gettime (CLOCK_REALTIME_COARSE, &now);
    }
  while (now.tv_sec == begin.tv_sec && now.tv_nsec == begin.tv_nsec);
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_autofree char *flags = NULL;

  fixture->dir = object_test_make_dir ();
  fixture->include = g_build_filename (fixture->dir, "include", NULL);
  g_assert_cmpint (g_mkdir (fixture->include, 0700), ==, 0);
  flags = g_strdup_printf ("-I%s", fixture->include);
  g_setenv ("CC", g_getenv ("PTO_TEST_COUNTING_CC"), TRUE);
  g_setenv ("CFLAGS", flags, TRUE);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  g_unsetenv ("CC");
  g_unsetenv ("CFLAGS");
  object_test_remove_dir (fixture->dir);
  g_free (fixture->source);
  g_free (fixture->include);
}

static void
write_source (Fixture *fixture, const char *text)
{
  g_free (fixture->source);
  fixture->source = object_test_write (fixture->dir, "one.c", text);
}

/* What value() of the source gives when it is built now, and how often the compiler was run. */
static int
build (Fixture *fixture, guint *n_runs)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *object = NULL;
  g_autofree char *counted = NULL;
  int (*value) (void);
  void *module;
  gsize n;
  int found;

  settle ();
  g_assert_true (g_file_set_contents (count, "", 0, NULL));
  settle ();
  object = pto_compile_shared_object (fixture->source, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (count, &counted, &n, NULL));
  *n_runs = (guint) n;
  module = dlopen (object, RTLD_NOW | RTLD_LOCAL);
  g_assert_nonnull (module);
  *(void **) &value = dlsym (module, "value");
  g_assert_nonnull (value);
  found = value ();
  dlclose (module);
  return found;
}

static void
assert_built (Fixture *fixture, int expected)
{
  guint n_runs;

  g_assert_cmpint (build (fixture, &n_runs), ==, expected);
  g_assert_cmpuint (n_runs, >, 0);
}

static void
assert_known (Fixture *fixture, int expected)
{
  guint n_runs;

  g_assert_cmpint (build (fixture, &n_runs), ==, expected);
  g_assert_cmpuint (n_runs, ==, 0);
}

static void
test_known (Fixture *fixture, gconstpointer data)
{
  write_source (fixture, "#include <stdint.h>\nint value (void) { return 1; }\n");
  assert_built (fixture, 1);
  assert_known (fixture, 1);
  assert_known (fixture, 1);
}

static void
test_source (Fixture *fixture, gconstpointer data)
{
  write_source (fixture, "int value (void) { return 1; }\n");
  assert_built (fixture, 1);
  write_source (fixture, "int value (void) { return 2; }\n");
  assert_built (fixture, 2);
  assert_known (fixture, 2);
  write_source (fixture, "int value (void) { return 1; }\n");
  assert_built (fixture, 1);
  assert_known (fixture, 1);
}

/* Also one that keeps its number, its size and its time. */
static void
test_header (Fixture *fixture, gconstpointer data)
{
  g_autofree char *header = object_test_write (fixture->include, "number.h", "#define NUMBER 1\n");
  struct timespec times[2];
  struct stat status;
  int fd;

  write_source (fixture, "#include \"number.h\"\nint value (void) { return NUMBER; }\n");
  assert_built (fixture, 1);
  assert_known (fixture, 1);
  g_assert_cmpint (stat (header, &status), ==, 0);
  fd = g_open (header, O_WRONLY | O_CLOEXEC, 0);
  g_assert_cmpint (fd, >=, 0);
  g_assert_cmpint (pwrite (fd, "2", 1, strlen ("#define NUMBER ")), ==, 1);
  close (fd);
  times[0] = status.st_atim;
  times[1] = status.st_mtim;
  g_assert_cmpint (utimensat (AT_FDCWD, header, times, 0), ==, 0);
  assert_built (fixture, 2);
  assert_known (fixture, 2);
}

static void
test_header_gone (Fixture *fixture, gconstpointer data)
{
  g_autofree char *header = object_test_write (fixture->include, "number.h", "#define NUMBER 1\n");
  g_autoptr (GError) error = NULL;

  write_source (fixture, "#include \"number.h\"\nint value (void) { return NUMBER; }\n");
  assert_built (fixture, 1);
  g_assert_cmpint (g_unlink (header), ==, 0);
  g_assert_null (pto_compile_shared_object (fixture->source, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_COMPILE);
}

/* A new header in a directory that is searched earlier. */
static void
test_hidden (Fixture *fixture, gconstpointer data)
{
  write_file (fixture->include, "number.h", "#define NUMBER 1\n");
  write_source (fixture, "#include \"number.h\"\nint value (void) { return NUMBER; }\n");
  assert_built (fixture, 1);
  assert_known (fixture, 1);
  write_file (fixture->dir, "number.h", "#define NUMBER 2\n");
  assert_built (fixture, 2);
}

static void
test_hidden_below (Fixture *fixture, gconstpointer data)
{
  g_autofree char *far = g_build_filename (fixture->include, "below", NULL);
  g_autofree char *near = g_build_filename (fixture->dir, "below", NULL);

  g_assert_cmpint (g_mkdir (far, 0700), ==, 0);
  g_assert_cmpint (g_mkdir (near, 0700), ==, 0);
  write_file (far, "number.h", "#define NUMBER 1\n");
  write_source (fixture, "#include \"below/number.h\"\nint value (void) { return NUMBER; }\n");
  assert_built (fixture, 1);
  assert_known (fixture, 1);
  write_file (near, "number.h", "#define NUMBER 2\n");
  assert_built (fixture, 2);
}

/* A new directory, with a header in it, that was searched although it was not there; and one that
 * the environment names. */
static void
test_new_directory (Fixture *fixture, gconstpointer data)
{
  static const char *const variables[] = { "CFLAGS", "CPATH" };

  for (guint i = 0; i < G_N_ELEMENTS (variables); i++)
    {
      g_autofree char *before = g_strdup (g_getenv (variables[i]));
      g_autofree char *first = g_strdup_printf ("%s/first%u", fixture->dir, i);
      g_autofree char *dirs
          = g_strdup_printf (i == 0 ? "-I%s -I%s" : "%s:%s", first, fixture->include);
      g_autofree char *name = g_strdup_printf ("number%u.h", i);
      g_autofree char *text
          = g_strdup_printf ("#include <%s>\nint value (void) { return NUMBER; }\n", name);

      write_file (fixture->include, name, "#define NUMBER 1\n");
      write_source (fixture, text);
      if (i == 1)
        {
          g_assert_cmpint (g_mkdir (first, 0700), ==, 0);
          g_setenv ("CFLAGS", "-O1", TRUE);
        }
      g_setenv (variables[i], dirs, TRUE);
      assert_built (fixture, 1);
      assert_known (fixture, 1);
      if (i == 0)
        g_assert_cmpint (g_mkdir (first, 0700), ==, 0);
      write_file (first, name, "#define NUMBER 2\n");
      assert_built (fixture, 2);
      assert_known (fixture, 2);
      if (before != NULL)
        g_setenv (variables[i], before, TRUE);
      else
        g_unsetenv (variables[i]);
    }
}

static void
test_flags (Fixture *fixture, gconstpointer data)
{
  static const char *const variables[] = { "CFLAGS", "CPATH" };

  for (guint i = 0; i < G_N_ELEMENTS (variables); i++)
    {
      const char *prefix = i == 0 ? "-I" : "";
      g_autofree char *first = g_strconcat (prefix, fixture->include, NULL);
      g_autofree char *second = g_strconcat (prefix, fixture->dir, NULL);

      write_file (fixture->include, "number.h", "#define NUMBER 1\n");
      write_file (fixture->dir, "number.h", "#define NUMBER 2\n");
      write_source (fixture, "#include <number.h>\nint value (void) { return NUMBER; }\n");
      g_unsetenv ("CFLAGS");
      g_setenv (variables[i], first, TRUE);
      assert_built (fixture, 1);
      assert_known (fixture, 1);
      g_setenv (variables[i], second, TRUE);
      assert_built (fixture, 2);
      assert_known (fixture, 2);
      g_setenv (variables[i], first, TRUE);
      assert_known (fixture, 1);
      g_unsetenv (variables[i]);
    }
}

/* What the compiler says otherwise each time, or reads itself. */
static void
test_not_kept (Fixture *fixture, gconstpointer data)
{
  g_autofree char *bytes = object_test_write (fixture->dir, "value.bin", "A");
  g_autofree char *embedding = g_strdup_printf (
      "__asm__ (\".section .rodata\\nnumber: .incbin \\\"%s\\\"\\n.previous\");\n"
      "extern const char number[] __attribute__ ((visibility (\"hidden\")));\n"
      "int value (void) { return number[0]; }\n",
      bytes);

  write_file (fixture->include, "now.h", "#define NOW __TIME__\n");
  write_source (fixture, "#include \"now.h\"\nint value (void) { return (int) sizeof NOW; }\n");
  assert_built (fixture, 9);
  assert_built (fixture, 9);
  write_source (fixture, "#if __has_include (\"sub/number.h\")\n#include \"sub/number.h\"\n"
                         "#else\n#define NUMBER 3\n#endif\nint value (void) { return NUMBER; }\n");
  assert_built (fixture, 3);
  assert_built (fixture, 3);
  write_source (fixture, embedding);
  assert_built (fixture, 'A');
  write_file (fixture->dir, "value.bin", "B");
  assert_built (fixture, 'B');
}

/* A manifest that was written over counts as none. */
static void
test_damaged (Fixture *fixture, gconstpointer data)
{
  static const char *const texts[] = { "", "\n", "0000\n", "0000\nf 1 2\n", "f" };
  g_autofree char *kept = g_build_filename (cache, "libpto", NULL);

  write_source (fixture, "int value (void) { return 1; }\n");
  assert_built (fixture, 1);
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_autoptr (GDir) dir = g_dir_open (kept, 0, NULL);
      const char *name;
      guint n = 0;

      assert_known (fixture, 1);
      while ((name = g_dir_read_name (dir)) != NULL)
        if (g_str_has_suffix (name, ".manifest"))
          {
            write_file (kept, name, texts[i]);
            n++;
          }
      g_assert_cmpuint (n, >, 0);
      assert_built (fixture, 1);
    }
}

/* An object that is gone is built again. */
static void
test_object_gone (Fixture *fixture, gconstpointer data)
{
  g_autofree char *object = NULL;

  write_source (fixture, "int value (void) { return 1; }\n");
  assert_built (fixture, 1);
  object = pto_compile_shared_object (fixture->source, NULL, NULL);
  g_assert_nonnull (object);
  g_assert_cmpint (g_unlink (object), ==, 0);
  assert_built (fixture, 1);
  assert_known (fixture, 1);
}

/* What a program that calls a compiler does is not known by looking at it. */
static void
test_wrapper (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text
      = g_strdup_printf ("#!/bin/sh\nexec %s \"$@\"\n", g_getenv ("PTO_TEST_COUNTING_CC"));
  g_autofree char *script = object_test_write (fixture->dir, "gcc", text);
  g_autofree char *other = g_build_filename (fixture->dir, "other-cc", NULL);

  write_source (fixture, "int value (void) { return 1; }\n");
  g_assert_cmpint (g_chmod (script, 0700), ==, 0);
  g_setenv ("CC", script, TRUE);
  assert_built (fixture, 1);
  assert_built (fixture, 1);
  g_assert_cmpint (symlink (g_getenv ("PTO_TEST_COUNTING_CC"), other), ==, 0);
  g_setenv ("CC", other, TRUE);
  assert_built (fixture, 1);
  assert_known (fixture, 1);
}

#define ADD(name, function) g_test_add (name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  char *dir = object_test_make_dir ();
  int status;

  cache = g_build_filename (dir, "cache", NULL);
  g_assert_cmpint (g_mkdir (cache, 0700), ==, 0);
  count = object_test_write (dir, "count", "");
  g_setenv ("PTO_TEST_COUNT", count, TRUE);
  g_setenv ("XDG_CACHE_HOME", cache, TRUE);
  g_test_init (&argc, &argv, NULL);
  ADD ("/pto/manifest/known", test_known);
  ADD ("/pto/manifest/source", test_source);
  ADD ("/pto/manifest/header", test_header);
  ADD ("/pto/manifest/header-gone", test_header_gone);
  ADD ("/pto/manifest/hidden", test_hidden);
  ADD ("/pto/manifest/hidden-below", test_hidden_below);
  ADD ("/pto/manifest/new-directory", test_new_directory);
  ADD ("/pto/manifest/flags", test_flags);
  ADD ("/pto/manifest/not-kept", test_not_kept);
  ADD ("/pto/manifest/damaged", test_damaged);
  ADD ("/pto/manifest/object-gone", test_object_gone);
  ADD ("/pto/manifest/wrapper", test_wrapper);
  status = g_test_run ();
  object_test_remove_dir (dir);
  g_free (cache);
  g_free (count);
  return status;
}
