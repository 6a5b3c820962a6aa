/* python.c: who imports functions here, and from where?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Whoever listens looks for both before anybody connects; a session finds out by itself, and tells
 * who has connected (refuse.c).
 */
#include "config.h"

#include "private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define IMPORTS                          \
  "    import gi\n"                      \
  "    gi.require_version('Pto', '1')\n" \
  "    from gi.repository import Pto\n"  \
  "    serve = Pto.serve_remote\n"

static const char look[] = "if True:\n" IMPORTS;

/* argv: this program, then directories. Who can not import it becomes this program again. */
static const char serve[] = "import os, sys\n"
                            "try:\n" IMPORTS "except BaseException as error:\n"
                            "    os.execv(sys.argv[1], [sys.argv[1], '--refuse', "
                            "f'--python {sys.executable}: {type(error).__name__}: {error}'])\n"
                            "sys.exit(serve(sys.argv[2:]))\n";

gboolean
remote_check_roots (const Options *options, GError **error)
{
  for (guint i = 0; options->roots != NULL && options->roots[i] != NULL; i++)
    {
      struct stat found;
      int code = stat (options->roots[i], &found) != 0 ? errno : 0;

      if (code == 0 && !S_ISDIR (found.st_mode))
        code = ENOTDIR;
      if (code == 0 && access (options->roots[i], R_OK | X_OK) != 0)
        code = errno;
      if (code == 0)
        continue;
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "--root %s: %s",
                   options->roots[i], g_strerror (code));
      return FALSE;
    }
  return TRUE;
}

/* In the new process: it ends within that time. */
static void
set_alarm (gpointer data)
{
  alarm ((unsigned) GPOINTER_TO_INT (data));
}

/* What is said last is the cause. */
static char *
dup_last_line (char *text)
{
  const char *newline = strrchr (g_strchomp (text), '\n');

  return g_strdup (newline != NULL ? newline + 1 : text);
}

gboolean
remote_check_python (const Options *options, GError **error)
{
  char *argv[] = { options->python, (char *) "-c", (char *) look, NULL };
  g_autofree char *said = NULL;
  g_autofree char *cause = NULL;
  GError *local = NULL;
  int status;

  if (options->python == NULL)
    return TRUE;
  if (!g_spawn_sync (NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, set_alarm,
                     GINT_TO_POINTER (options->timeout), NULL, &said, &status, &local))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "--python %s: %s", options->python,
                   g_error_matches (local, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT)
                       ? "there is no such program"
                       : local->message);
      g_error_free (local);
      return FALSE;
    }
  if (g_spawn_check_wait_status (status, NULL))
    return TRUE;
  cause = dup_last_line (said);
  if (WIFSIGNALED (status) && WTERMSIG (status) == SIGALRM)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                 "--python %s: it has not imported libpto within %d s (--timeout)", options->python,
                 options->timeout);
  else
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "--python %s can not import libpto%s%s",
                 options->python, cause[0] != '\0' ? ": " : "", cause);
  return FALSE;
}

int
remote_become_python (const Options *options)
{
  guint n = options->roots != NULL ? g_strv_length (options->roots) : 0;
  g_autofree char **argv = g_new0 (char *, n + 5);
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *why = NULL;

  argv[0] = options->python;
  argv[1] = (char *) "-c";
  argv[2] = (char *) serve;
  argv[3] = self;
  for (guint i = 0; i < n; i++)
    argv[4 + i] = options->roots[i];
  execvp (options->python, argv);
  why = g_strdup_printf ("--python %s: %s", options->python, g_strerror (errno));
  return remote_refuse_main (why);
}
