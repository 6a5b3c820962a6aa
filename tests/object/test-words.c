/* test-words.c: what becomes of words that a worker's processes, or the library, write where nobody
 * can take them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A program's standard error may be a pipe that nobody reads, a full disk, or a file at its limit:
 * signals then end who writes, and that must not be the program. Each case is a process of its own.
 */
#include "level-test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT 100

typedef enum
{
  CLOSED_PIPE,
  FULL_DISK,
  FILE_LIMIT,
  N_PLACES
} Place;

static const char *const errors[N_PLACES]
    = { "Broken pipe", "No space left on device", "File too large" };

static guint n_warnings;

static void
count_warning (const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
  const char *error = data;

  if (strstr (message, error) == NULL || (level & G_LOG_LEVEL_WARNING) == 0)
    _exit (2);
  n_warnings++;
}

/* From here on standard error takes nothing more, after LIMIT bytes at most. */
static void
close_ears (Place place)
{
  struct rlimit limit;
  int fds[2];

  g_log_set_always_fatal (G_LOG_FATAL_MASK);
  signal (SIGPIPE, SIG_DFL);
  signal (SIGXFSZ, SIG_DFL);
  if (place == CLOSED_PIPE)
    {
      g_assert_cmpint (pipe (fds), ==, 0);
      close (fds[0]);
    }
  else
    fds[1] = place == FULL_DISK ? open ("/dev/full", O_WRONLY) : memfd_create ("words", 0);
  g_assert_cmpint (dup2 (fds[1], STDERR_FILENO), ==, STDERR_FILENO);
  close (fds[1]);
  getrlimit (RLIMIT_FSIZE, &limit);
  limit.rlim_cur = LIMIT;
  setrlimit (RLIMIT_FSIZE, &limit);
}

static gboolean
speak (PtoTaskArgs *args, gpointer data, GError **error)
{
  for (guint i = 0; i < 100; i++)
    fprintf (stderr, "nobody hears this, number %u\n", i);
  return TRUE;
}

static gboolean
submit_sub (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  return pto_orchestrator_submit_sub (orchestrator, data, NULL, -1, error);
}

/* Runs that are good, and one warning, when the worker is closed at the latest. */
static void
sub_level (gconstpointer data)
{
  Place place = GPOINTER_TO_UINT (data) % N_PLACES;
  PtoWorker *host = level_test_host (GPOINTER_TO_UINT (data) / N_PLACES, 0, 1);
  PtoCallableHandle *handle = level_test_register (host, "speak", speak);
  GError *error = NULL;

  g_log_set_handler ("Pto", G_LOG_LEVEL_MASK, count_warning, (gpointer) errors[place]);
  pto_worker_start (host, NULL, &error);
  g_assert_no_error (error);
  close_ears (place);
  for (guint i = 0; i < 3; i++)
    if (!pto_worker_run (host, submit_sub, handle, NULL, NULL, NULL, &error))
      _exit (3);
  pto_callable_handle_unref (handle);
  pto_worker_close (host);
  _exit (n_warnings == 1 ? 0 : 4);
}

static const char speaking_kernel[] = "#include \"tensor.h\"\n"
                                      "#include <unistd.h>\n"
                                      "void kernel_entry (int64_t *args)\n"
                                      "{\n"
                                      "  for (int i = 0; i < 100; i++)\n"
                                      "    write (2, \"nobody hears this\\n\", 18);\n"
                                      "}\n";

static const char logging_orchestration[]
    = "#include \"pto_orchestration_api.h\"\n"
      "PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int n)\n"
      "{\n"
      "  return (PTO2OrchestrationConfig){ 0 };\n"
      "}\n"
      "int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int n)\n"
      "{\n"
      "  for (int i = 0; i < 10; i++)\n"
      "    LOG_WARN (rt, \"nobody hears this, number %d\", i);\n"
      "  return 0;\n"
      "}\n";

static gboolean
submit_kernel (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer data, GError **error)
{
  return pto_orchestrator_submit (orchestrator, data, NULL, error);
}

static void
sub_isolated (gconstpointer data)
{
  Place place = GPOINTER_TO_UINT (data);
  PtoWorker *worker = g_object_new (PTO_TYPE_WORKER, "isolate", TRUE, NULL);
  char *dir = object_test_make_dir ();
  PtoCallable *kernel = object_test_kernel (dir, "speak.c", speaking_kernel);
  PtoCallableHandle *handle;
  GError *error = NULL;

  g_log_set_handler ("Pto", G_LOG_LEVEL_MASK, count_warning, (gpointer) errors[place]);
  pto_worker_start (worker, NULL, &error);
  g_assert_no_error (error);
  handle = pto_worker_register (worker, kernel, NULL, &error);
  g_assert_no_error (error);
  close_ears (place);
  for (guint i = 0; i < 3; i++)
    if (!pto_worker_run (worker, submit_kernel, kernel, NULL, NULL, NULL, &error))
      _exit (3);
  pto_callable_handle_unref (handle);
  pto_worker_close (worker);
  object_test_remove_dir (dir);
  _exit (n_warnings == 1 ? 0 : 4);
}

/* What the library itself has to say goes to GLib's own handler, which writes it there. */
static void
sub_log (gconstpointer data)
{
  PtoWorker *worker = object_test_worker ();
  char *dir = object_test_make_dir ();
  g_autofree char *path = object_test_write (dir, "orch.c", logging_orchestration);
  PtoCallable *chip;
  PtoCallableHandle *handle;
  GError *error = NULL;

  chip = pto_chip_orchestration_new (path, NULL, &error);
  g_assert_no_error (error);
  handle = pto_worker_register (worker, chip, NULL, &error);
  g_assert_no_error (error);
  close_ears (GPOINTER_TO_UINT (data));
  if (!pto_worker_run_callable (worker, handle, NULL, NULL, NULL, &error))
    _exit (3);
  pto_callable_handle_unref (handle);
  pto_worker_close (worker);
  object_test_remove_dir (dir);
  _exit (0);
}

static void
test (gconstpointer data)
{
  g_autofree char *path = g_strconcat (g_test_get_path (), "/subprocess", NULL);

  g_test_trap_subprocess (path, 0, 0);
  g_test_trap_assert_passed ();
}

static void
add (const char *what, Place place, GTestDataFunc function, guint number)
{
  static const char *const names[N_PLACES] = { "closed-pipe", "full-disk", "file-limit" };
  g_autofree char *path = g_strconcat ("/pto/words/", what, "/", names[place], NULL);
  g_autofree char *sub_path = g_strconcat (path, "/subprocess", NULL);

  g_test_add_data_func (path, NULL, test);
  g_test_add_data_func (sub_path, GUINT_TO_POINTER (number), function);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (Place place = 0; place < N_PLACES; place++)
    {
      add ("level-3", place, sub_level, 3 * N_PLACES + place);
      add ("level-4", place, sub_level, 4 * N_PLACES + place);
      add ("isolated", place, sub_isolated, place);
      add ("log", place, sub_log, place);
    }
  return g_test_run ();
}
