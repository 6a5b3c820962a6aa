/* test-cache.c: is what is kept of a build only used when it is what was built?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct
{
  char *dir;
  PtoWorker *worker;
  guint n_built;
  guint n_cached;
} Fixture;

static void
count_progress (PtoWorker *worker, guint done, guint total, const char *name, gboolean cached,
                gpointer data)
{
  Fixture *fixture = data;

  fixture->n_built += cached ? 0 : 1;
  fixture->n_cached += cached ? 1 : 0;
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  fixture->dir = object_test_make_dir ();
  fixture->worker = object_test_worker ();
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

/* A kernel that writes a number: f[0] = value. */
static char *
make_text (const char *value)
{
  g_autofree char *text = g_strdup_printf ("#include \"tensor.h\"\n"
                                           "void\n"
                                           "kernel_entry (int64_t *args)\n"
                                           "{\n"
                                           "  const TensorData *f = (const TensorData *) args[0];\n"
                                           "  ((float *) f->buffer.addr)[f->start_offset] = %s;\n"
                                           "}\n",
                                           value);

  return unique (text);
}

typedef struct
{
  PtoCallable *kernel;
  PtoTensor *f;
} Graph;

static gboolean
submit_one (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
            gpointer user_data, GError **error)
{
  Graph *graph = user_data;
  g_autoptr (PtoTaskArgs) own = pto_task_args_new ();

  pto_task_args_add_tensor (own, graph->f, PTO_DIRECTION_OUTPUT_EXISTING);
  return pto_orchestrator_submit (orchestrator, graph->kernel, own, error);
}

/* What the kernel writes. */
static float
run_kernel (PtoWorker *worker, PtoCallable *kernel)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoBuffer) buffer = pto_buffer_new (1000 * sizeof (float), NULL);
  g_autoptr (PtoTensor) f = object_test_vector (buffer);
  Graph graph = { kernel, f };

  g_assert_true (pto_worker_run (worker, submit_one, &graph, NULL, NULL, NULL, &error));
  g_assert_no_error (error);
  return object_test_floats (buffer)[0];
}

static PtoCallableHandle *
register_kernel (Fixture *fixture, PtoCallable *kernel)
{
  g_autoptr (GError) error = NULL;
  PtoCallableHandle *handle;

  fixture->n_built = fixture->n_cached = 0;
  handle = pto_worker_register (fixture->worker, kernel, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (handle);
  return handle;
}

/* Where the object of a source is kept. */
static char *
find_object (const char *dir, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *source = object_test_write (dir, "one.c", text);
  char *object = pto_compile_shared_object (source, NULL, &error);

  g_assert_no_error (error);
  return object;
}

static void
write_over (const char *path, const char *data, gsize size)
{
  int fd = g_open (path, O_WRONLY | O_TRUNC, 0);

  g_assert_cmpint (fd, >=, 0);
  g_assert_cmpint (write (fd, data, size), ==, (gssize) size);
  close (fd);
}

/* By its contents is an object named, whatever it was made of. */
static void
test_named_by_contents (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = make_text ("1");
  g_autofree char *object = find_object (fixture->dir, text);
  g_autofree char *contents = NULL;
  g_autofree char *digest = NULL;
  g_autofree char *name = g_path_get_basename (object);
  gsize size;

  g_assert_true (g_file_get_contents (object, &contents, &size, NULL));
  digest = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) contents, size);
  g_assert_cmpuint (strlen (name), ==, strlen (digest) + 3);
  g_assert_true (g_str_has_prefix (name, digest));
}

/* Cut off at any place, changed in any byte, or another good object: it is built again. */
static void
test_damaged (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = make_text ("41");
  g_autofree char *other_text = make_text ("42");
  g_autofree char *object = find_object (fixture->dir, text);
  g_autofree char *other = find_object (fixture->dir, other_text);
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "one.c", text);
  g_autofree char *good = NULL;
  g_autofree char *wrong = NULL;
  gsize size;
  gsize wrong_size;

  g_assert_cmpstr (object, !=, other);
  g_assert_true (g_file_get_contents (object, &good, &size, NULL));
  g_assert_true (g_file_get_contents (other, &wrong, &wrong_size, NULL));
  for (guint i = 0; i < 8; i++)
    {
      g_autoptr (PtoCallableHandle) handle = NULL;
      g_autofree char *again = NULL;

      if (i < 6)
        {
          gsize cut[] = { 0, 64, 4096, size / 2, size - 1, size };

          again = g_memdup2 (good, size);
          again[size / 2] ^= cut[i] == size;
          write_over (object, again, cut[i]);
        }
      else if (i == 6)
        write_over (object, wrong, wrong_size);
      else
        g_assert_cmpint (g_unlink (object), ==, 0);
      handle = register_kernel (fixture, kernel);
      g_assert_cmpuint (fixture->n_built, ==, 1);
      g_assert_cmpfloat (run_kernel (fixture->worker, kernel), ==, 41);
      g_assert_true (pto_worker_unregister (fixture->worker, handle, NULL));
      g_clear_pointer (&handle, pto_callable_handle_unref);
      handle = register_kernel (fixture, kernel);
      g_assert_cmpuint (fixture->n_cached, ==, 1);
      g_assert_true (pto_worker_unregister (fixture->worker, handle, NULL));
    }
}

/* What is loaded is nobody else's: the file may come to anything. */
static void
test_cut_off_when_loaded (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = make_text ("43");
  g_autofree char *object = find_object (fixture->dir, text);
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "one.c", text);
  g_autoptr (PtoCallableHandle) handle = register_kernel (fixture, kernel);

  write_over (object, "", 0);
  g_assert_cmpfloat (run_kernel (fixture->worker, kernel), ==, 43);
  g_assert_true (pto_worker_unregister (fixture->worker, handle, NULL));
  g_assert_cmpint (g_unlink (object), ==, 0);
}

typedef struct
{
  const char *object;
  const char *data;
  gsize size;
  gboolean stop; /* atomic */
} Vandal;

static gpointer
damage_and_mend (gpointer data)
{
  Vandal *vandal = data;

  while (!g_atomic_int_get (&vandal->stop))
    {
      int fd = g_open (vandal->object, O_WRONLY, 0);

      if (fd < 0)
        continue;
      g_assert_cmpint (ftruncate (fd, 100), ==, 0);
      g_assert_cmpint (write (fd, vandal->data, vandal->size), ==, (gssize) vandal->size);
      close (fd);
    }
  return NULL;
}

/* Every time it is registered and right, or an error says what was wrong with the file. */
static void
test_damaged_while_registered (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = make_text ("44");
  g_autofree char *object = find_object (fixture->dir, text);
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "one.c", text);
  g_autofree char *good = NULL;
  Vandal vandal = { .object = object };
  GThread *thread;

  g_assert_true (g_file_get_contents (object, &good, &vandal.size, NULL));
  vandal.data = good;
  thread = g_thread_new ("vandal", damage_and_mend, &vandal);
  for (guint i = 0; i < 15; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoCallableHandle) handle
          = pto_worker_register (fixture->worker, kernel, NULL, &error);

      if (handle == NULL)
        {
          g_assert_error (error, PTO_ERROR, PTO_ERROR_TAMPERED);
          object_test_assert_contains (error->message, object);
          continue;
        }
      g_assert_cmpfloat (run_kernel (fixture->worker, kernel), ==, 44);
      g_assert_true (pto_worker_unregister (fixture->worker, handle, NULL));
    }
  g_atomic_int_set (&vandal.stop, TRUE);
  g_thread_join (thread);
  g_unlink (object);
}

/* The same contents are there once in a process: two workers share what is static. */
static void
test_shared_statics (Fixture *fixture, gconstpointer data)
{
  g_autofree char *counting = make_text ("(float) ({ static int n; ++n; })");
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "one.c", counting);
  g_autoptr (PtoCallableHandle) handle = register_kernel (fixture, kernel);
  g_autoptr (PtoWorker) other = object_test_worker ();

  g_assert_cmpfloat (run_kernel (fixture->worker, kernel), ==, 1);
  g_assert_cmpfloat (run_kernel (other, kernel), ==, 2);
  g_assert_true (pto_worker_unregister (fixture->worker, handle, NULL));
  g_assert_cmpfloat (run_kernel (other, kernel), ==, 3);
  pto_worker_close (other);
  /* No worker has it any more, but it stays loaded: it goes on. */
  g_clear_pointer (&handle, pto_callable_handle_unref);
  handle = register_kernel (fixture, kernel);
  g_assert_cmpfloat (run_kernel (fixture->worker, kernel), ==, 4);
}

/* Objects that the loader keeps for good do not stand in the way of others. */
static void
test_objects_that_stay (Fixture *fixture, gconstpointer data)
{
  static const char text[]
      = "#include \"tensor.h\"\n"
        "template <int I> int &number () { static int n = I; return n; }\n"
        "extern \"C\" void\n"
        "kernel_entry (int64_t *args)\n"
        "{\n"
        "  const TensorData *f = (const TensorData *) args[0];\n"
        "  ((float *) f->buffer.addr)[f->start_offset] = (float) number<%u> () + %u;\n"
        "}\n";

#ifdef HAVE_CPP
  for (guint i = 0; i < 12; i++)
    {
      g_autofree char *filled = g_strdup_printf (text, i % 6, i % 6);
      g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "stays.cc", filled);
      g_autoptr (PtoCallableHandle) handle = register_kernel (fixture, kernel);

      g_assert_cmpfloat (run_kernel (fixture->worker, kernel), ==, (float) (2 * (i % 6)));
      g_assert_true (pto_worker_unregister (fixture->worker, handle, NULL));
    }
#else
  (void) text;
  g_test_skip ("no C++ compiler");
#endif
}

static guint
count_descriptors (void)
{
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/fd", 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

static void
test_leaves_nothing (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = make_text ("45");
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "one.c", text);
  guint before = 0;

  for (guint i = 0; i < 10; i++)
    {
      g_autoptr (PtoCallableHandle) handle = register_kernel (fixture, kernel);

      g_assert_true (pto_worker_unregister (fixture->worker, handle, NULL));
      if (i == 0)
        before = count_descriptors ();
    }
  g_assert_cmpuint (count_descriptors (), ==, before);
}

/* What the assembler reads is not in the preprocessor's output. */
static void
test_incbin (Fixture *fixture, gconstpointer data)
{
  g_autofree char *path = object_test_write (fixture->dir, "value.bin", "A");
  g_autofree char *text = g_strdup_printf (
      "__asm__ (\".section .rodata\\nvalue: .incbin \\\"%s\\\"\\n.previous\");\n"
      "extern const unsigned char value[] __attribute__ ((visibility (\"hidden\")));\n"
      "#include \"tensor.h\"\n"
      "void\n"
      "kernel_entry (int64_t *args)\n"
      "{\n"
      "  const TensorData *f = (const TensorData *) args[0];\n"
      "  ((float *) f->buffer.addr)[f->start_offset] = value[0];\n"
      "}\n",
      path);
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "incbin.c", text);

  for (const char *value = "ABA"; *value != '\0'; value++)
    {
      g_autoptr (PtoCallableHandle) handle = NULL;
      char byte[] = { *value, '\0' };

      g_free (object_test_write (fixture->dir, "value.bin", byte));
      handle = register_kernel (fixture, kernel);
      g_assert_cmpfloat (run_kernel (fixture->worker, kernel), ==, *value);
      g_assert_true (pto_worker_unregister (fixture->worker, handle, NULL));
    }
}

/* A header that changes while the compiler is at work does not come in under the old name. */
static void
test_header_changes_meanwhile (Fixture *fixture, gconstpointer data)
{
  g_autofree char *header = object_test_write (fixture->dir, "number.h", "#define NUMBER 1\n");
  g_autofree char *with_header = make_text ("NUMBER");
  g_autofree char *text = g_strconcat ("#include \"number.h\"\n", with_header, NULL);
  g_autofree char *script = g_strdup_printf ("#!/bin/sh\n"
                                             "case \"$*\" in\n"
                                             "*-shared*) echo '#define NUMBER 2' > '%s' ;;\n"
                                             "esac\n"
                                             "exec cc \"$@\"\n",
                                             header);
  g_autofree char *compiler = object_test_write (fixture->dir, "changing-cc", script);
  g_autofree char *before = g_strdup (g_getenv ("CC"));
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "one.c", text);
  g_autoptr (PtoCallableHandle) first = NULL;
  g_autoptr (PtoCallableHandle) second = NULL;

  g_chmod (compiler, 0700);
  g_setenv ("CC", compiler, TRUE);
  first = register_kernel (fixture, kernel);
  g_assert_cmpfloat (run_kernel (fixture->worker, kernel), ==, 1);
  g_assert_true (pto_worker_unregister (fixture->worker, first, NULL));
  second = register_kernel (fixture, kernel);
  g_assert_cmpfloat (run_kernel (fixture->worker, kernel), ==, 2);
  if (before != NULL)
    g_setenv ("CC", before, TRUE);
  else
    g_unsetenv ("CC");
}

/* --- processes --- */

static void
expect_exit (pid_t pid)
{
  int status;

  g_assert_cmpint (pid, >, 0);
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (status, ==, 0);
}

/* All begin at one time, with an empty cache for it. */
static void
test_built_at_once (Fixture *fixture, gconstpointer data)
{
  for (guint round = 0; round < 2; round++)
    {
      g_autofree char *text = make_text ("46");
      g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "one.c", text);
      int start[2];
      pid_t pids[4];

      g_assert_cmpint (pipe (start), ==, 0);
      for (guint i = 0; i < G_N_ELEMENTS (pids); i++)
        {
          pids[i] = fork ();
          if (pids[i] == 0)
            {
              g_autoptr (PtoWorker) worker = NULL;
              char byte;

              alarm (60);
              close (start[1]);
              if (read (start[0], &byte, 1) != 0)
                _exit (1);
              worker = object_test_worker ();
              _exit (run_kernel (worker, kernel) == 46 ? 0 : 2);
            }
        }
      close (start[0]);
      close (start[1]);
      for (guint i = 0; i < G_N_ELEMENTS (pids); i++)
        expect_exit (pids[i]);
    }
}

/* In a process whose cache is a directory of its own. */
static void
in_own_cache (const char *name, const char *cache)
{
  g_autofree char *before = g_strdup (g_getenv ("XDG_CACHE_HOME"));
  g_autofree char *path = g_strconcat ("/pto/cache/subprocess/", name, NULL);

  g_setenv ("XDG_CACHE_HOME", cache, TRUE);
  g_test_trap_subprocess (path, 60 * G_USEC_PER_SEC, 0);
  g_setenv ("XDG_CACHE_HOME", before, TRUE);
  g_test_trap_assert_passed ();
}

static void
remove_all (const char *path)
{
  const char *argv[] = { "rm", "-rf", path, NULL };

  g_assert_true (g_spawn_sync (NULL, (char **) argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                               NULL, NULL, NULL));
}

static char *
expect_no_cache (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *source = object_test_write (fixture->dir, "fill.c", object_test_fill);

  g_assert_null (pto_compile_shared_object (source, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_SYSTEM);
  g_assert_null (strchr (error->message, '\n'));
  object_test_assert_contains (error->message, g_get_user_cache_dir ());
  return g_strdup (error->message);
}

static void
sub_others_may_write (Fixture *fixture, gconstpointer data)
{
  g_autofree char *message = expect_no_cache (fixture);

  object_test_assert_contains (message, "others may write");
  object_test_assert_contains (message, "chmod go-w");
  object_test_assert_contains (message, "XDG_CACHE_HOME");
}

static void
sub_somebody_elses (Fixture *fixture, gconstpointer data)
{
  g_autofree char *message = expect_no_cache (fixture);

  object_test_assert_contains (message, "belongs to somebody else (user 65534)");
  object_test_assert_contains (message, "XDG_CACHE_HOME");
}

static void
sub_is_used (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = make_text ("47");
  g_autofree char *object = find_object (fixture->dir, text);
  g_autofree char *again = find_object (fixture->dir, text);

  g_assert_cmpstr (object, ==, again);
}

static void
test_others_may_write (Fixture *fixture, gconstpointer data)
{
  static const mode_t modes[] = { 0777, 0770, 01777, 0702 };
  g_autofree char *cache = g_build_filename (fixture->dir, "cache", NULL);
  g_autofree char *own = g_build_filename (cache, "libpto", NULL);

  g_assert_cmpint (g_mkdir_with_parents (own, 0700), ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (modes); i++)
    {
      g_assert_cmpint (g_chmod (own, (int) modes[i]), ==, 0);
      in_own_cache ("others-may-write", cache);
    }
  g_assert_cmpint (g_chmod (own, 0755), ==, 0);
  in_own_cache ("is-used", cache);
  /* Where it lies. */
  g_assert_cmpint (g_chmod (cache, 0777), ==, 0);
  in_own_cache ("others-may-write", cache);
  g_assert_cmpint (g_chmod (cache, 01777), ==, 0);
  in_own_cache ("is-used", cache);
  remove_all (cache);
}

static void
test_somebody_elses (Fixture *fixture, gconstpointer data)
{
  g_autofree char *others = g_build_filename (fixture->dir, "others", NULL);
  g_autofree char *link = g_build_filename (fixture->dir, "link", NULL);
  g_autofree char *own = g_build_filename (others, "libpto", NULL);

  if (geteuid () != 0)
    {
      g_test_skip ("only root can make what belongs to somebody else");
      return;
    }
  g_assert_cmpint (g_mkdir_with_parents (own, 0700), ==, 0);
  g_assert_cmpint (chown (own, 65534, 65534), ==, 0);
  in_own_cache ("somebody-elses", others);
  g_assert_cmpint (chown (own, 0, 0), ==, 0);
  g_assert_cmpint (chown (others, 65534, 65534), ==, 0);
  g_assert_cmpint (symlink (others, link), ==, 0);
  in_own_cache ("somebody-elses", link);
  g_unlink (link);
  remove_all (others);
}

/* Who could write to the directory for a while may have left something there. */
static void
test_planted (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = make_text ("48");
  g_autofree char *object = find_object (fixture->dir, text);
  g_autoptr (PtoCallable) kernel = object_test_kernel (fixture->dir, "one.c", text);
  g_autoptr (PtoCallableHandle) handle = NULL;

  g_assert_cmpint (g_chmod (object, 0622), ==, 0);
  handle = register_kernel (fixture, kernel);
  g_assert_cmpuint (fixture->n_built, ==, 1);
  g_assert_cmpfloat (run_kernel (fixture->worker, kernel), ==, 48);
}

static guint
count_files (const char *dir)
{
  g_autoptr (GDir) open = g_dir_open (dir, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (open) != NULL)
    n++;
  return n;
}

/* Asserts that there is one private directory, which no other user may read. */
static void
sub_unwritable (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = make_text ("51");
  g_autofree char *object = NULL;
  g_autofree char *again = NULL;
  g_autofree char *made = NULL;
  struct stat status;
  guint before;
  pid_t pid;
  int ended;

  before = count_files (g_get_tmp_dir ());
  g_test_expect_message ("Pto", G_LOG_LEVEL_WARNING,
                         "*libpto can not be written: *name a directory of your own in "
                         "XDG_CACHE_HOME*");
  object = find_object (fixture->dir, text);
  g_test_assert_expected_messages ();
  again = find_object (fixture->dir, text);
  g_assert_cmpstr (object, ==, again);
  g_assert_cmpuint (count_files (g_get_tmp_dir ()), ==, before + 1);
  made = g_path_get_dirname (object);
  g_assert_cmpint (stat (made, &status), ==, 0);
  g_assert_cmpuint (status.st_mode & 07777, ==, 0700);
  /* A copy of the process leaves it. */
  pid = fork ();
  g_assert_cmpint (pid, >=, 0);
  if (pid == 0)
    exit (0);
  g_assert_cmpint (waitpid (pid, &ended, 0), ==, pid);
  g_assert_cmpint (ended, ==, 0);
  g_assert_true (g_file_test (object, G_FILE_TEST_EXISTS));
}

/* In a process that cannot write to its cache, with a TMPDIR of its own, which is empty afterwards.
 */
static void
in_own_tmp (Fixture *fixture, const char *name)
{
  g_autofree char *before = g_strdup (g_getenv ("TMPDIR"));
  g_autofree char *dir = g_build_filename (fixture->dir, "temporary", NULL);

  g_assert_cmpint (g_mkdir (dir, 0700), ==, 0);
  g_setenv ("TMPDIR", dir, TRUE);
  in_own_cache (name, "/dev/null/nowhere");
  if (before != NULL)
    g_setenv ("TMPDIR", before, TRUE);
  else
    g_unsetenv ("TMPDIR");
  g_assert_cmpuint (count_files (dir), ==, 0);
  g_assert_cmpint (g_rmdir (dir), ==, 0);
}

static void
test_unwritable (Fixture *fixture, gconstpointer data)
{
  in_own_tmp (fixture, "unwritable");
}

/* Neither there nor below TMPDIR, which is not there for a moment: what can be set is named. */
static void
sub_nowhere (Fixture *fixture, gconstpointer data)
{
  g_autofree char *source = object_test_write (fixture->dir, "fill.c", object_test_fill);
  g_autofree char *moved = g_strconcat (g_get_tmp_dir (), ".moved", NULL);
  g_autofree char *elsewhere = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (g_rename (g_get_tmp_dir (), moved), ==, 0);
  elsewhere = g_strconcat (moved, source + strlen (g_get_tmp_dir ()), NULL);
  g_assert_null (pto_compile_shared_object (elsewhere, NULL, &error));
  g_assert_cmpint (g_rename (moved, g_get_tmp_dir ()), ==, 0);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_SYSTEM);
  g_assert_null (strchr (error->message, '\n'));
  object_test_assert_contains (error->message, "XDG_CACHE_HOME");
  object_test_assert_contains (error->message, "TMPDIR");
}

static void
test_nowhere (Fixture *fixture, gconstpointer data)
{
  in_own_tmp (fixture, "nowhere");
}

/* A limit for files is an error, not a signal; nothing half is left. */
static void
sub_file_size (Fixture *fixture, gconstpointer data)
{
  static const rlim_t limits[] = { 0, 40, 1000, 8192 };
  g_autofree char *cache = g_build_filename (g_get_user_cache_dir (), "libpto", NULL);
  g_autofree char *text = make_text ("49");
  g_autofree char *source = object_test_write (fixture->dir, "one.c", text);
  g_autofree char *built = NULL;
  g_autofree char *data_of_it = NULL;
  g_autofree char *given = g_build_filename (fixture->dir, "given.so", NULL);
  g_autoptr (PtoCallable) kernel = NULL;
  struct rlimit before;
  gsize size;

  g_assert_cmpint (getrlimit (RLIMIT_FSIZE, &before), ==, 0);
  built = find_object (fixture->dir, text);
  g_assert_true (g_file_get_contents (built, &data_of_it, &size, NULL));
  g_assert_true (g_file_set_contents (given, data_of_it, (gssize) size, NULL));
  kernel = pto_kernel_new (PTO_CORE_AIV, given, NULL, NULL);
  g_assert_nonnull (kernel);
  remove_all (cache);
  for (guint i = 0; i < G_N_ELEMENTS (limits); i++)
    {
      struct rlimit limit = { limits[i], before.rlim_max };
      g_autoptr (GError) error = NULL;
      g_autoptr (GError) other = NULL;
      g_autofree char *object = NULL;
      PtoCallableHandle *handle;

      g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &limit), ==, 0);
      object = pto_compile_shared_object (source, NULL, &error);
      handle = pto_worker_register (fixture->worker, kernel, NULL, &other);
      g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &before), ==, 0);
      g_assert_null (object);
      g_assert_error (error, PTO_ERROR, PTO_ERROR_COMPILE);
      object_test_assert_contains (error->message, "one.c");
      g_assert_null (handle);
      g_assert_error (other, PTO_ERROR, PTO_ERROR_SYSTEM);
      object_test_assert_contains (other->message, cache);
      object_test_assert_contains (other->message, "File too large");
      g_assert_cmpuint (count_files (cache), ==, 0);
    }
}

static void
test_file_size (Fixture *fixture, gconstpointer data)
{
  g_autofree char *cache = g_build_filename (fixture->dir, "cache", NULL);

  in_own_cache ("file-size", cache);
  remove_all (cache);
}

/* A library that is cut off is no fault of the process. */
static void
test_given_cut_off (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = make_text ("50");
  g_autofree char *object = find_object (fixture->dir, text);
  g_autofree char *given = g_build_filename (fixture->dir, "given.so", NULL);
  g_autofree char *contents = NULL;
  gsize size;

  g_assert_true (g_file_get_contents (object, &contents, &size, NULL));
  for (gsize cut = 64; cut < 12288; cut += 1024)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (PtoCallable) kernel = NULL;

      g_assert_true (g_file_set_contents (given, contents, (gssize) cut, NULL));
      kernel = pto_kernel_new (PTO_CORE_AIV, given, NULL, &error);
      g_assert_null (kernel);
      g_assert_error (error, PTO_ERROR, PTO_ERROR_LOAD);
      object_test_assert_contains (error->message, "cut off");
    }
}

#define ADD(name, function) g_test_add (name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/pto/cache/named-by-contents", test_named_by_contents);
  ADD ("/pto/cache/damaged", test_damaged);
  ADD ("/pto/cache/cut-off-when-loaded", test_cut_off_when_loaded);
  ADD ("/pto/cache/damaged-while-registered", test_damaged_while_registered);
  ADD ("/pto/cache/shared-statics", test_shared_statics);
  ADD ("/pto/cache/objects-that-stay", test_objects_that_stay);
  ADD ("/pto/cache/leaves-nothing", test_leaves_nothing);
  ADD ("/pto/cache/incbin", test_incbin);
  ADD ("/pto/cache/header-changes-meanwhile", test_header_changes_meanwhile);
  ADD ("/pto/cache/built-at-once", test_built_at_once);
  ADD ("/pto/cache/others-may-write", test_others_may_write);
  ADD ("/pto/cache/somebody-elses", test_somebody_elses);
  ADD ("/pto/cache/planted", test_planted);
  ADD ("/pto/cache/file-size", test_file_size);
  ADD ("/pto/cache/given-cut-off", test_given_cut_off);
  ADD ("/pto/cache/unwritable", test_unwritable);
  ADD ("/pto/cache/nowhere", test_nowhere);
  ADD ("/pto/cache/subprocess/others-may-write", sub_others_may_write);
  ADD ("/pto/cache/subprocess/somebody-elses", sub_somebody_elses);
  ADD ("/pto/cache/subprocess/is-used", sub_is_used);
  ADD ("/pto/cache/subprocess/file-size", sub_file_size);
  ADD ("/pto/cache/subprocess/unwritable", sub_unwritable);
  ADD ("/pto/cache/subprocess/nowhere", sub_nowhere);
  return g_test_run ();
}
