/* pto-remote.c: what is launched where a remote worker is to be?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Nothing that a person types, but with --listen: pto_worker_add_remote_worker() does. Its
 * functions are symbols of shared objects, or, with an interpreter, what that imports from the
 * directories that are named.
 */
#include "config.h"

#include "private.h"

#include "common/stdout.h"

#include <errno.h>
#include <locale.h>
#include <pto/pto.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

void
remote_make_printable (char *text)
{
  for (char *c = text; *c != '\0'; c++)
    if (g_ascii_iscntrl (*c))
      *c = '?';
}

void
remote_say (const char *format, ...)
{
  g_autofree char *text = NULL;
  va_list arguments;

  va_start (arguments, format);
  text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  remote_make_printable (text);
  fprintf (stderr, "pto-remote: %s\n", text);
}

int
remote_finish_output (void)
{
  int code = pto_stdout_finish ();

  if (code == 0)
    return 0;
  if (code == EPIPE)
    pto_stdout_end_by_pipe ();
  remote_say ("standard output cannot be written: %s", g_strerror (code));
  return EX_IOERR;
}

int
remote_get_status (const GError *error)
{
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT))
    return EX_USAGE;
  return g_error_matches (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED) ? EX_NOPERM
                                                                           : EX_UNAVAILABLE;
}

GPtrArray *
remote_make_argv (const Options *options)
{
  GPtrArray *argv = g_ptr_array_new_with_free_func (g_free);

  g_ptr_array_add (argv, g_file_read_link ("/proc/self/exe", NULL));
  if (options->python != NULL)
    g_ptr_array_add (argv, g_strconcat ("--python=", options->python, NULL));
  for (guint i = 0; options->roots != NULL && options->roots[i] != NULL; i++)
    g_ptr_array_add (argv, g_strconcat ("--root=", options->roots[i], NULL));
  if (options->takes_serialized)
    g_ptr_array_add (argv, g_strdup ("--serialized-python"));
  if (options->fabric != NULL)
    g_ptr_array_add (argv, g_strconcat ("--trusted-fabric=", options->fabric, NULL));
  g_ptr_array_add (argv, NULL);
  return argv;
}

typedef struct
{
  pid_t parent;
  int death_signal;
} Birth;

/* In the new process. */
static void
begin_process (gpointer data)
{
  const Birth *birth = data;
  sigset_t none;

  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
  prctl (PR_SET_PDEATHSIG, (unsigned long) birth->death_signal, 0ul, 0ul, 0ul);
  /* Who was gone before that tells nobody. */
  if (getppid () != birth->parent)
    raise (birth->death_signal);
}

gboolean
remote_spawn (const char *const *argv, int in, int out, int errors, int death_signal, GPid *process,
              GError **error)
{
  Birth birth = { getpid (), death_signal };

  return g_spawn_async_with_pipes_and_fds (NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD,
                                           begin_process, &birth, in, out, errors, NULL, NULL, 0,
                                           process, NULL, NULL, NULL, error);
}

/* Of a session that nobody has said an interpreter for. */
static PtoCallable *
refuse_import (PtoCallableKind kind, const char *path, gpointer data, GError **error)
{
  g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
               "\"%s\" can not be imported: pto-remote on %s was begun without an interpreter "
               "(--python and --root, the options python and roots)",
               path, g_get_host_name ());
  return NULL;
}

#ifndef HAVE_GNUTLS
static int
refuse_tls (void)
{
  remote_say ("this libpto was built without TLS: install libgnutls28-dev, and build it again");
  return EX_UNAVAILABLE;
}
#endif

static int
become_what_is_asked (const Options *options)
{
  struct sockaddr_storage name;

  if (options->timeout < 1 || options->max_sessions < 1 || options->max_handshakes < 1)
    {
      remote_say ("--timeout, --max-sessions and --max-handshakes are 1 or more");
      return EX_USAGE;
    }
  if (options->listen != NULL)
    {
#ifndef HAVE_GNUTLS
      if (remote_is_tls (options->listen))
        return refuse_tls ();
#endif
      return remote_listen_main (options);
    }
  if (options->certificates == NULL)
    {
      remote_say ("which certificates? --certificates DIR");
      return EX_USAGE;
    }
  if (getsockname (STDIN_FILENO, (struct sockaddr *) &name, &(socklen_t){ sizeof name }) != 0)
    {
      remote_say ("standard input is no socket: this is launched by pto-remote and by workers");
      return EX_USAGE;
    }
#ifdef HAVE_GNUTLS
  return options->accept ? remote_accept_main (options) : remote_connect_main (options);
#else
  return refuse_tls ();
#endif
}

int
main (int argc, char **argv)
{
  Options options = { .max_sessions = 64, .max_handshakes = 16, .timeout = 30 };
  g_autofree char *refusal = NULL;
  gboolean wants_version = FALSE, wants_help = FALSE;
  GOptionEntry entries[]
      = { { "python", 0, 0, G_OPTION_ARG_FILENAME, &options.python,
            "Import functions with this interpreter", "PROGRAM" },
          { "root", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.roots,
            "Import from this directory; may be given several times", "DIR" },
          { "serialized-python", 0, 0, G_OPTION_ARG_NONE, &options.takes_serialized,
            "Take functions as bytes, which are from no directory", NULL },
          { "trusted-fabric", 0, 0, G_OPTION_ARG_STRING, &options.fabric,
            "Large tensors go by UCX, which knows nobody: the network between both ends is trusted",
            "ucx" },
          { "listen", 0, 0, G_OPTION_ARG_FILENAME, &options.listen,
            "Wait for programs at tls://host:port or unix:/path", "ADDRESS" },
          { "certificates", 0, 0, G_OPTION_ARG_FILENAME, &options.certificates,
            "ca.pem, cert.pem and key.pem, for tls:// (pto remote certificates)", "DIR" },
          { "attached", 0, 0, G_OPTION_ARG_NONE, &options.attached,
            "With --listen: end with standard input, of which each line is answered by one, or "
            "when it is silent for --timeout",
            NULL },
          { "allow", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.allowed,
            "Of those with a certificate let only this name in; may be given several times",
            "NAME" },
          { "max-sessions", 0, 0, G_OPTION_ARG_INT, &options.max_sessions,
            "So many at a time (default: 64)", "NUMBER" },
          { "max-handshakes", 0, 0, G_OPTION_ARG_INT, &options.max_handshakes,
            "So many of whom it is not known yet who they are (default: 16)", "NUMBER" },
          { "timeout", 0, 0, G_OPTION_ARG_INT, &options.timeout,
            "A machine that is silent for so long is gone (default: 30)", "SECONDS" },
          { "connect", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, &options.connect,
            "Be the relay to tls://host:port", "ADDRESS" },
          { "refuse", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, &refusal,
            "Tell the program at the other end why there is no worker", "WHY" },
          { "version", 0, 0, G_OPTION_ARG_NONE, &wants_version, "Print the version", NULL },
          { "help", 'h', 0, G_OPTION_ARG_NONE, &wants_help, "Print this help", NULL },
          { "accept", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, &options.accept,
            "Be the gate of one connection", NULL },
          G_OPTION_ENTRY_NULL };
  g_autoptr (GOptionContext) context = g_option_context_new (
      "- be a worker of the program at the other end of standard input and output");
  g_autoptr (GError) error = NULL;

  pto_stdout_begin ();
  /* Numbers look the same everywhere: they are read by programs too. */
  setlocale (LC_ALL, "");
  setlocale (LC_NUMERIC, "C");
  /* The option --help of GLib ignores errors when it prints. */
  g_option_context_set_help_enabled (context, FALSE);
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    {
      remote_say ("%s", error->message);
      return EX_USAGE;
    }
  if (wants_help)
    {
      g_autofree char *help = g_option_context_get_help (context, TRUE, NULL);

      pto_stdout_print (help);
      return remote_finish_output ();
    }
  if (argc > 1)
    {
      remote_say ("\"%s\" is no option (see pto-remote --help)", argv[1]);
      return EX_USAGE;
    }
  if (wants_version)
    {
      g_autofree char *version
          = g_strdup_printf ("pto-remote %u.%u.%u\n", pto_get_major_version (),
                             pto_get_minor_version (), pto_get_micro_version ());

      pto_stdout_print (version);
      return remote_finish_output ();
    }
  if (options.fabric != NULL && strcmp (options.fabric, "ucx") != 0)
    {
      remote_say ("--trusted-fabric=%s: there is ucx", options.fabric);
      return EX_USAGE;
    }
  /* For pto_remote_serve(), which may be called by an interpreter; what is in the environment
   * already was not said by who began this. */
  if (options.fabric != NULL)
    g_setenv ("PTO_REMOTE_FABRIC", options.fabric, TRUE);
  else
    g_unsetenv ("PTO_REMOTE_FABRIC");
  if (options.takes_serialized && options.python != NULL)
    g_setenv ("PTO_REMOTE_SERIALIZED_PYTHON", "1", TRUE);
  else
    g_unsetenv ("PTO_REMOTE_SERIALIZED_PYTHON");
  /* Ctrl-C is for the program at the other end. A connection that is cut is found where it is read
   * or written: SIGPIPE is ignored. */
  signal (SIGINT, SIG_IGN);
  if (refusal != NULL)
    return remote_refuse_main (refusal);
  if (options.listen != NULL || options.connect != NULL || options.accept)
    return become_what_is_asked (&options);
  if (isatty (STDIN_FILENO))
    {
      remote_say ("standard input is a terminal: this program is launched by a worker of level 4 "
                  "(pto_worker_add_remote_worker())");
      return EX_USAGE;
    }
  if (!remote_check_roots (&options, &error))
    return remote_refuse_main (error->message);
  if (options.python != NULL)
    return remote_become_python (&options);
  pto_worker_set_default_import_func (refuse_import, NULL, NULL);
  if (pto_remote_serve (&error))
    return 0;
  fprintf (stderr, "pto-remote: %s\n", error->message);
  return EX_UNAVAILABLE;
}
