/* pto-remote.c: what is launched where a remote worker is to be?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Nothing that a person types: pto_worker_add_remote_worker() does. Its functions are symbols of
 * shared objects, or, with an interpreter, what that imports from the directories that are named.
 */
#include "config.h"

#include <errno.h>
#include <locale.h>
#include <pto/pto.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* What an interpreter is given to run; the directories follow. */
#define PYTHON_PROGRAM                                                              \
  "import sys, gi; gi.require_version('Pto', '1'); from gi.repository import Pto; " \
  "sys.exit(Pto.serve_remote(sys.argv[1:]))"

static int
become_python (const char *python, char **roots)
{
  guint n = roots != NULL ? g_strv_length (roots) : 0;
  g_autofree char **argv = g_new0 (char *, n + 4);

  argv[0] = (char *) python;
  argv[1] = (char *) "-c";
  argv[2] = (char *) PYTHON_PROGRAM;
  for (guint i = 0; i < n; i++)
    argv[3 + i] = roots[i];
  execvp (python, argv);
  fprintf (stderr, "pto-remote: %s can not be run: %s\n", python, g_strerror (errno));
  return EX_UNAVAILABLE;
}

int
main (int argc, char **argv)
{
  g_autofree char *python = NULL;
  g_auto (GStrv) roots = NULL;
  GOptionEntry entries[] = { { "python", 0, 0, G_OPTION_ARG_FILENAME, &python,
                               "Import functions with this interpreter", "PROGRAM" },
                             { "root", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &roots,
                               "Import from this directory; may be given several times", "DIR" },
                             G_OPTION_ENTRY_NULL };
  g_autoptr (GOptionContext) context = g_option_context_new (
      "- be a worker of the program at the other end of standard input and output");
  g_autoptr (GError) error = NULL;

  /* Numbers look the same everywhere: they are read by programs too. */
  setlocale (LC_ALL, "");
  setlocale (LC_NUMERIC, "C");
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    {
      fprintf (stderr, "pto-remote: %s\n", error->message);
      return EX_USAGE;
    }
  if (isatty (STDIN_FILENO))
    {
      fprintf (stderr, "pto-remote: standard input is a terminal: this program is launched by a "
                       "worker of level 4 (pto_worker_add_remote_worker())\n");
      return EX_USAGE;
    }
  /* A cut connection is found where it is read or written; Ctrl-C is for who waits at the other
   * end. */
  signal (SIGPIPE, SIG_IGN);
  signal (SIGINT, SIG_IGN);
  if (python != NULL)
    return become_python (python, roots);
  if (pto_remote_serve (&error))
    return 0;
  fprintf (stderr, "pto-remote: %s\n", error->message);
  return EX_UNAVAILABLE;
}
