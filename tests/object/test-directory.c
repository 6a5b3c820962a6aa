/* test-directory.c: is what a directory's pto.ini says what a callable has, and is the rest
 * refused?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <glib/gstdio.h>
#include <string.h>

#define ORCHESTRATION "[orchestration]\nsource=graph.c\n"
#define KERNEL "[kernel 0]\nname=add\nsource=add.c\ncore=aiv\n"

static char *
make_dir (const char *text)
{
  char *dir = object_test_make_dir ();

  g_free (object_test_write (dir, "graph.c", "int x;\n"));
  g_free (object_test_write (dir, "add.c", "int x;\n"));
  g_free (object_test_write (dir, "notes.txt", "\n"));
  g_free (object_test_write (dir, "fake.so", "not one\n"));
  if (text != NULL)
    g_free (object_test_write (dir, "pto.ini", text));
  return dir;
}

static void
test_everything (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = make_dir ("# a comment\n[example]\nname=x\nunread=here\n\n[orchestration]\n"
                        " source = graph.c \nfunction= graph_2\n\n"
                        "[kernel 7]\nname= mul\nsource=add.c\ncore=AIC\n"
                        "[kernel 2]\nname=add\nsource=add.c\ncore=aiv\ncost=constant:5\nargs= 3 \n"
                        "[reference]\nsource=nowhere.c\n[case one]\nrtol=wrong\n");
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new_for_directory (dir, &error);
  g_autofree char *orchestration = g_build_filename (dir, "graph.c", NULL);
  g_autofree char *add = g_build_filename (dir, "add.c", NULL);
  PtoCallable *kernel;

  g_assert_no_error (error);
  g_assert_cmpint (pto_callable_get_kind (chip), ==, PTO_CALLABLE_CHIP);
  g_assert_cmpstr (pto_callable_get_path (chip), ==, orchestration);
  g_assert_cmpstr (pto_device_code_get_symbol (PTO_DEVICE_CODE (chip)), ==, "graph_2");
  g_assert_cmpstr (pto_callable_get_name (chip), ==, "graph");
  g_assert_cmpuint (pto_chip_orchestration_get_n_kernels (PTO_CHIP_ORCHESTRATION (chip)), ==, 8);
  g_assert_cmpstr (pto_chip_orchestration_get_kernel_name (PTO_CHIP_ORCHESTRATION (chip), 2), ==,
                   "add");
  g_assert_cmpstr (pto_chip_orchestration_get_kernel_name (PTO_CHIP_ORCHESTRATION (chip), 7), ==,
                   "mul");
  g_assert_null (pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (chip), 0));
  kernel = pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (chip), 2);
  g_assert_cmpstr (pto_callable_get_path (kernel), ==, add);
  g_assert_cmpint (pto_kernel_get_core_type (PTO_KERNEL (kernel)), ==, PTO_CORE_AIV);
  g_assert_cmpstr (pto_kernel_get_cost (PTO_KERNEL (kernel)), ==, "constant:5");
  g_assert_cmpint (pto_kernel_get_n_args (PTO_KERNEL (kernel)), ==, 3);
  kernel = pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (chip), 7);
  g_assert_cmpint (pto_kernel_get_core_type (PTO_KERNEL (kernel)), ==, PTO_CORE_AIC);
  g_assert_cmpint (pto_kernel_get_n_args (PTO_KERNEL (kernel)), ==, -1);
  object_test_remove_dir (dir);
}

/* What a group says itself comes behind what [build] says, so that it is the stronger one. */
static void
test_build (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = make_dir (
      "[build]\ninclude-dirs=.;/usr/include;\ncflags=-O1 '-DA=\"b c\"'\ncxxflags=-O3\n" ORCHESTRATION
      "flags=-DG\n" KERNEL "include-dirs = /usr ; \nflags=-O2\n");
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new_for_directory (dir, &error);
  PtoCallable *kernel;
  g_autofree char *flags = NULL;
  g_autofree char *flags_of_kernel = NULL;
  g_autofree char *dirs = NULL;
  g_autofree char *wanted = NULL;

  g_assert_no_error (error);
  kernel = pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (chip), 0);
  flags = g_strjoinv ("|", (char **) pto_device_code_get_compiler_flags (PTO_DEVICE_CODE (chip)));
  g_assert_cmpstr (flags, ==, "-O1|-DA=\"b c\"|-DG");
  flags_of_kernel
      = g_strjoinv ("|", (char **) pto_device_code_get_compiler_flags (PTO_DEVICE_CODE (kernel)));
  g_assert_cmpstr (flags_of_kernel, ==, "-O1|-DA=\"b c\"|-O2");
  dirs = g_strjoinv ("|", (char **) pto_device_code_get_include_dirs (PTO_DEVICE_CODE (kernel)));
  wanted = g_strdup_printf ("/usr|%s|/usr/include", dir);
  g_assert_cmpstr (dirs, ==, wanted);
  object_test_remove_dir (dir);
}

/* What a group says of its source alone, in words of its language. */
static void
test_own_flags (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = make_dir ("[build]\ninclude=/usr/include\ncflags=-O1\n" ORCHESTRATION
                        "cflags=-DG\ninclude=.\n" KERNEL "cflags=-O2\nflags=-O3\n"
                        "[kernel 1]\nname=plus\nsource=plus.cc\ncore=aic\ncxxflags=-Og\n");
  g_autofree char *source = object_test_write (dir, "plus.cc", "int plus;\n");
  g_autoptr (PtoCallable) chip = pto_chip_orchestration_new_for_directory (dir, &error);
  PtoCallable *all[3] = { chip, NULL, NULL };
  const char *const wanted[] = { "-O1|-DG", "-O1|-O2|-O3", "-Og" };
  g_autofree char *dirs = NULL;
  g_autofree char *wanted_dirs = g_strdup_printf ("%s|/usr/include", dir);

  g_assert_no_error (error);
  all[1] = pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (chip), 0);
  all[2] = pto_chip_orchestration_get_kernel (PTO_CHIP_ORCHESTRATION (chip), 1);
  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    {
      g_autofree char *flags = g_strjoinv (
          "|", (char **) pto_device_code_get_compiler_flags (PTO_DEVICE_CODE (all[i])));

      g_assert_cmpstr (flags, ==, wanted[i]);
    }
  dirs = g_strjoinv ("|", (char **) pto_device_code_get_include_dirs (PTO_DEVICE_CODE (chip)));
  g_assert_cmpstr (dirs, ==, wanted_dirs);
  object_test_remove_dir (dir);
}

static void
test_least (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = make_dir (NULL);
  g_autofree char *text = g_strdup_printf ("[orchestration]\nsource=%s/graph.c\n", dir);
  g_autoptr (PtoCallable) chip = NULL;

  g_free (object_test_write (dir, "pto.ini", text));
  chip = pto_chip_orchestration_new_for_directory (dir, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (pto_device_code_get_symbol (PTO_DEVICE_CODE (chip)), ==,
                   "aicpu_orchestration_entry");
  g_assert_cmpuint (pto_chip_orchestration_get_n_kernels (PTO_CHIP_ORCHESTRATION (chip)), ==, 0);
  object_test_remove_dir (dir);
}

static void
test_refused (void)
{
  static const struct
  {
    const char *text; /* NULL: no file */
    PtoError code;
    const char *says; /* after the file and ": " */
  } cases[] = {
    { NULL, PTO_ERROR_NOT_FOUND, "there is no such file" },
    { "\xff\n", PTO_ERROR_INVALID_ARGS, "is not a text file in UTF-8" },
    { "source\n", PTO_ERROR_INVALID_ARGS, "Key file " },
    { KERNEL, PTO_ERROR_INVALID_ARGS, "the group [orchestration] is missing" },
    { ORCHESTRATION "[kernal 0]\n", PTO_ERROR_INVALID_ARGS,
      "unknown group [kernal 0] (known: [orchestration], [kernel NUMBER], [build], " },
    { ORCHESTRATION ORCHESTRATION, PTO_ERROR_INVALID_ARGS,
      "line 3: the group [orchestration] is there twice" },
    { ORCHESTRATION KERNEL "core = aic\n", PTO_ERROR_INVALID_ARGS,
      "line 7: the key \"core\" is there twice in [kernel 0]" },
    { "[orchestration]\nfunction=f\n", PTO_ERROR_INVALID_ARGS,
      "[orchestration]: the key \"source\" is missing" },
    { ORCHESTRATION "entry=f\n", PTO_ERROR_INVALID_ARGS,
      "[orchestration]: unknown key \"entry\" (known: source, function, include, "
      "include-dirs, cflags, cxxflags, flags)" },
    { ORCHESTRATION "function=f g\n", PTO_ERROR_INVALID_ARGS, "[orchestration]: " },
    { "[orchestration]\nsource=none.c\n", PTO_ERROR_NOT_FOUND, "[orchestration]: " },
    { "[orchestration]\nsource=notes.txt\n", PTO_ERROR_NOT_SUPPORTED, "[orchestration]: " },
    { ORCHESTRATION "[kernel add]\n", PTO_ERROR_INVALID_ARGS,
      "[kernel add]: the function id after \"kernel\" must be a number from 0 to 4095" },
    { ORCHESTRATION KERNEL "[kernel 00]\n", PTO_ERROR_INVALID_ARGS,
      "[kernel 00]: the function id 0 is taken by the kernel \"add\"" },
    { ORCHESTRATION "[kernel 4096]\nname=add\nsource=add.c\ncore=aiv\n", PTO_ERROR_INVALID_ARGS,
      "kernel \"add\": " },
    { ORCHESTRATION KERNEL "speed=1\n", PTO_ERROR_INVALID_ARGS,
      "[kernel 0]: unknown key \"speed\" (known: name, source, core, cost, args, include, "
      "include-dirs, cflags, cxxflags, flags)" },
    { ORCHESTRATION "[kernel 0]\nname=\nsource=add.c\ncore=aiv\n", PTO_ERROR_INVALID_ARGS,
      "[kernel 0]: the key \"name\" is missing" },
    { ORCHESTRATION "[kernel 0]\nname=add\ncore=aiv\n", PTO_ERROR_INVALID_ARGS,
      "[kernel 0]: the key \"source\" is missing" },
    { ORCHESTRATION "[kernel 0]\nname=add\nsource=add.c\ncore=gpu\n", PTO_ERROR_INVALID_ARGS,
      "[kernel 0]: core=gpu: aic or aiv wanted" },
    { ORCHESTRATION KERNEL "args=-1\n", PTO_ERROR_INVALID_ARGS,
      "[kernel 0]: args=-1: a number from 0 to 128 wanted" },
    { ORCHESTRATION KERNEL "cost=much\n", PTO_ERROR_INVALID_ARGS,
      "kernel \"add\": \"much\" is no cost: " },
    { ORCHESTRATION KERNEL "cost=constant:9e18\n", PTO_ERROR_INVALID_ARGS,
      "kernel \"add\": \"constant:9e18\" is too much: no number of a cost is greater than 1e15 ns" },
    { ORCHESTRATION "[kernel 0]\nname=add\nsource=none.c\ncore=aiv\n", PTO_ERROR_NOT_FOUND,
      "kernel \"add\": " },
    { ORCHESTRATION "[kernel 0]\nname=add\nsource=fake.so\ncore=aiv\n", PTO_ERROR_LOAD,
      "kernel \"add\": " },
    { ORCHESTRATION "[build]\nflags=-O2\n", PTO_ERROR_INVALID_ARGS,
      "[build]: unknown key \"flags\" (known: include, include-dirs, cflags, "
      "cxxflags)" },
    { ORCHESTRATION KERNEL "include=.\ninclude-dirs=.\n", PTO_ERROR_INVALID_ARGS,
      "[kernel 0]: include and include-dirs are the same: one of them" },
    { ORCHESTRATION KERNEL "cxxflags=-O2\n", PTO_ERROR_INVALID_ARGS,
      "[kernel 0]: cxxflags says nothing of " },
    { ORCHESTRATION KERNEL "cflags=-c\n", PTO_ERROR_INVALID_ARGS,
      "[kernel 0]: cflags: the flag -c " },
    { ORCHESTRATION KERNEL "include-dirs=nowhere\n", PTO_ERROR_NOT_FOUND, "[kernel 0]: \"add\": " },
    { ORCHESTRATION "flags=-c\n", PTO_ERROR_INVALID_ARGS, "[orchestration]: flags: the flag -c " },
    { ORCHESTRATION "[build]\ncflags='-O2\n", PTO_ERROR_INVALID_ARGS, "[build]: cflags='-O2: " },
    { ORCHESTRATION "[build]\ncflags=-O2 x\n", PTO_ERROR_INVALID_ARGS,
      "[build]: cflags: \"x\" is no flag" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      char *dir = make_dir (cases[i].text);
      g_autofree char *begin = g_strdup_printf ("%s/pto.ini: %s", dir, cases[i].says);

      g_test_message ("%s", cases[i].says);
      g_assert_null (pto_chip_orchestration_new_for_directory (dir, &error));
      g_assert_error (error, PTO_ERROR, (int) cases[i].code);
      g_assert_cmpint (strncmp (error->message, begin, strlen (begin)), ==, 0);
      g_assert_null (strchr (error->message, '\n'));
      object_test_remove_dir (dir);
    }
}

/* A directory in the place of the file, and a file in the place of the directory. */
static void
test_odd_files (void)
{
  char *dir = make_dir (NULL);
  g_autofree char *odd = g_build_filename (dir, "pto.ini", NULL);
  g_autofree char *file = g_build_filename (dir, "add.c", NULL);
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (g_mkdir (odd, 0700), ==, 0);
  g_assert_null (pto_chip_orchestration_new_for_directory (dir, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_SYSTEM);
  g_clear_error (&error);
  g_assert_null (pto_chip_orchestration_new_for_directory (file, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);
  g_rmdir (odd);
  object_test_remove_dir (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/directory/everything", test_everything);
  g_test_add_func ("/pto/directory/build", test_build);
  g_test_add_func ("/pto/directory/own-flags", test_own_flags);
  g_test_add_func ("/pto/directory/least", test_least);
  g_test_add_func ("/pto/directory/refused", test_refused);
  g_test_add_func ("/pto/directory/odd-files", test_odd_files);
  return g_test_run ();
}
