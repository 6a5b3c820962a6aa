/* listen.c: who waits for connections, and begins a process for each?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * It reads nothing that comes: that is the gate's (relay.c), a process of its own, or,
 * of a Unix socket, the session's. So whatever comes harms nobody else. What they print goes on
 * with the path of the worker before each line. All that begins here is ended before this ends.
 */
#include "config.h"

#include "private.h"

#include "common/stdout.h"

#include <errno.h>
#include <glib-unix.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#define END_MS 2000
/* Nothing can be accepted for now: there are no descriptors, or no processes. */
#define PAUSE_MS 100
/* With what stands before it no more than a pipe takes at once. */
#define LINE_MAX_BYTES 2000
#define PATH_MAX_BYTES 100

typedef struct
{
  GPid process;
  int gate;      /* where it asks for room; -1: it is a session */
  int words;     /* its standard error, and that of all below it; -1: it has ended */
  GString *line; /* one that has begun */
  char *path;    /* which worker it is; NULL: it has not said so */
} Client;

typedef struct
{
  const Options *options;
  GPtrArray *gate_argv;
  GPtrArray *session_argv;
  GArray *sockets;
  GArray *clients;
  gboolean is_full; /* was said */
  guint n_begun;    /* sessions, so far */
  gint64 heard;     /* when whoever holds standard input has last asked */
  guint n_left_out; /* lines */
} Listener;

/* Onto standard error. Nobody may read that: whoever listens does not wait, and says so. */
static void
pass_on (Listener *listener, const char *path, const char *line, gsize n)
{
  struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
  g_autoptr (GString) text = g_string_new (NULL);
  gssize written;

  if (poll (&room, 1, 0) <= 0 || (room.revents & POLLOUT) == 0)
    {
      listener->n_left_out++;
      return;
    }
  if (listener->n_left_out > 0)
    g_string_append_printf (text, "pto-remote: %u lines are left out: nobody read them\n",
                            listener->n_left_out);
  listener->n_left_out = 0;
  if (path != NULL && !g_str_has_prefix (line, "pto-remote: "))
    g_string_append_printf (text, "%s: ", path);
  g_string_append_len (text, line, (gssize) n);
  g_string_append_c (text, '\n');
  written = write (STDERR_FILENO, text->str, text->len);
  (void) written;
}

static void
take_line (Listener *listener, Client *client, gsize n)
{
  const char *line = client->line->str;

  if (client->path != NULL || !g_str_has_prefix (line, REMOTE_IS))
    {
      pass_on (listener, client->path, line, n);
      return;
    }
  client->path
      = g_strndup (line + strlen (REMOTE_IS), MIN (n - strlen (REMOTE_IS), PATH_MAX_BYTES));
  /* Whoever connected has chosen it. */
  remote_make_printable (client->path);
}

/* All that there is just now, but no more than a pipe holds: others wait. */
static void
take_words (Listener *listener, Client *client)
{
  char some[4096];
  gssize n = 1;

  for (guint i = 0; i < 16 && client->words >= 0 && n > 0; i++)
    {
      n = read (client->words, some, sizeof some);
      if (n > 0)
        g_string_append_len (client->line, some, n);
      for (char *end; (end = memchr (client->line->str, '\n', client->line->len)) != NULL
                      || client->line->len > LINE_MAX_BYTES;)
        {
          gsize length = end != NULL ? (gsize) (end - client->line->str) : LINE_MAX_BYTES;

          take_line (listener, client, length);
          g_string_erase (client->line, 0, (gssize) (length + (end != NULL)));
        }
    }
  if (n == 0)
    {
      close (client->words);
      client->words = -1;
    }
}

static void
client_clear (Listener *listener, Client *client)
{
  take_words (listener, client);
  if (client->line->len > 0)
    take_line (listener, client, client->line->len);
  if (client->words >= 0)
    close (client->words);
  if (client->gate >= 0)
    close (client->gate);
  g_string_free (client->line, TRUE);
  g_free (client->path);
}

static guint
count (Listener *listener, gboolean gates)
{
  guint n = 0;

  for (guint i = 0; i < listener->clients->len; i++)
    n += (g_array_index (listener->clients, Client, i).gate >= 0) == gates;
  return n;
}

static void
begin (Listener *listener, int fd)
{
  g_autoptr (GError) error = NULL;
  gboolean is_tls = remote_is_tls (listener->options->listen);
  Client client = { .gate = -1, .words = -1 };
  int pair[2] = { -1, -1 };
  int words[2] = { -1, -1 };
  gboolean ok;

  if (!is_tls && !remote_check_user (fd, &error))
    ;
  else if (!is_tls && count (listener, FALSE) >= (guint) listener->options->max_sessions)
    {
      g_set_error_literal (&error, G_IO_ERROR, G_IO_ERROR_BUSY, REMOTE_IS_FULL);
      remote_refuse (fd, error->message);
    }
  else if (!g_unix_open_pipe (words, FD_CLOEXEC, &error)
           || !g_unix_set_fd_nonblocking (words[0], TRUE, &error))
    ;
  else if (is_tls && socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    g_set_error_literal (&error, G_IO_ERROR, G_IO_ERROR_FAILED, g_strerror (errno));
  ok = error == NULL
       && remote_spawn (
           (const char *const *) (is_tls ? listener->gate_argv : listener->session_argv)->pdata, fd,
           is_tls ? pair[1] : fd, words[1], is_tls ? SIGTERM : SIGKILL, &client.process, &error);
  if (pair[1] >= 0)
    close (pair[1]);
  if (words[1] >= 0)
    close (words[1]);
  close (fd);
  if (ok)
    {
      client.gate = pair[0];
      client.words = words[0];
      client.line = g_string_new (NULL);
      listener->n_begun += !is_tls;
      g_array_append_val (listener->clients, client);
      return;
    }
  if (pair[0] >= 0)
    close (pair[0]);
  if (words[0] >= 0)
    close (words[0]);
  remote_say ("a connection is dropped: %s", error->message);
}

static void
answer_gate (Listener *listener, Client *client)
{
  char word;

  /* Counted before it is one. */
  if (recv (client->gate, &word, 1, MSG_DONTWAIT) == 1
      && count (listener, FALSE) < (guint) listener->options->max_sessions)
    send (client->gate, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  else
    {
      /* It is one until it has ended, and no session. */
      shutdown (client->gate, SHUT_RDWR);
      return;
    }
  close (client->gate);
  client->gate = -1;
  listener->n_begun++;
}

/* Also those that were left to this process. FALSE: there is none. */
static gboolean
reap (Listener *listener)
{
  for (;;)
    {
      pid_t found = waitpid (-1, NULL, WNOHANG);

      if (found == 0)
        return TRUE;
      if (found < 0)
        return FALSE;
      for (guint i = 0; i < listener->clients->len; i++)
        if (g_array_index (listener->clients, Client, i).process == found)
          {
            client_clear (listener, &g_array_index (listener->clients, Client, i));
            g_array_remove_index_fast (listener->clients, i);
            break;
          }
    }
}

static void
end_all (Listener *listener)
{
  gint64 until = g_get_monotonic_time () + END_MS * G_TIME_SPAN_MILLISECOND;

  for (guint i = 0; i < listener->clients->len; i++)
    kill (g_array_index (listener->clients, Client, i).process, SIGTERM);
  while (reap (listener))
    {
      if (g_get_monotonic_time () >= until)
        for (guint i = 0; i < listener->clients->len; i++)
          kill (g_array_index (listener->clients, Client, i).process, SIGKILL);
      for (guint i = 0; i < listener->clients->len; i++)
        take_words (listener, &g_array_index (listener->clients, Client, i));
      g_usleep (2000);
    }
}

/* Who has no room lets them wait where they are: in the kernel's queue. */
static gboolean
has_room (Listener *listener)
{
  gboolean is_full = count (listener, TRUE) >= (guint) listener->options->max_handshakes;

  if (is_full && !listener->is_full)
    remote_say ("%d handshakes are under way (--max-handshakes): others wait",
                listener->options->max_handshakes);
  listener->is_full = is_full;
  return !is_full;
}

/* Each line of standard input, whatever it is, is answered by one: who this is, and how many are
 * here. FALSE: it has ended. */
static gboolean
answer_input (Listener *listener)
{
  char lines[256];
  gssize n = read (STDIN_FILENO, lines, sizeof lines);

  if (n < 0)
    return errno == EINTR || errno == EAGAIN;
  listener->heard = g_get_monotonic_time ();
  for (gssize i = 0; i < n; i++)
    if (lines[i] == '\n')
      printf ("status %d %s %u %u\n", (int) getpid (), g_get_host_name (), count (listener, FALSE),
              listener->n_begun);
  fflush (stdout);
  return n > 0;
}

/* Whoever has begun this and is cut off is not seen to end: the lease does. Milliseconds; -1:
 * nobody holds it. */
static int
count_lease (const Listener *listener)
{
  gint64 passed = (g_get_monotonic_time () - listener->heard) / G_TIME_SPAN_MILLISECOND;

  return listener->options->attached ? (int) CLAMP (
             listener->options->timeout * G_GINT64_CONSTANT (1000) - passed, 0, G_MAXINT)
                                     : -1;
}

static void
wait_and_serve (Listener *listener, int signals, gboolean *goes_on)
{
  guint n_sockets = listener->sockets->len;
  guint n_clients = listener->clients->len;
  g_autofree struct pollfd *polls = g_new0 (struct pollfd, 2 + n_sockets + 2 * n_clients);
  struct pollfd *input = &polls[1 + n_sockets + n_clients];
  struct pollfd *words = input + 1;
  gboolean accepts = has_room (listener);
  struct signalfd_siginfo info;

  polls[0] = (struct pollfd){ .fd = signals, .events = POLLIN };
  for (guint i = 0; i < n_sockets; i++)
    polls[1 + i] = (struct pollfd){ .fd = accepts ? g_array_index (listener->sockets, int, i) : -1,
                                    .events = POLLIN };
  for (guint i = 0; i < n_clients; i++)
    polls[1 + n_sockets + i]
        = (struct pollfd){ .fd = g_array_index (listener->clients, Client, i).gate,
                           .events = POLLIN };
  *input
      = (struct pollfd){ .fd = listener->options->attached ? STDIN_FILENO : -1, .events = POLLIN };
  for (guint i = 0; i < n_clients; i++)
    words[i] = (struct pollfd){ .fd = g_array_index (listener->clients, Client, i).words,
                                .events = POLLIN };
  if (poll (polls, 2 + n_sockets + 2 * n_clients, count_lease (listener)) < 0)
    return;
  if (input->revents != 0)
    *goes_on &= answer_input (listener);
  else if (count_lease (listener) == 0)
    {
      remote_say ("nothing was heard for %d s of who has begun this (--timeout)",
                  listener->options->timeout);
      *goes_on = FALSE;
    }
  for (guint i = 0; i < n_clients; i++)
    {
      short found = polls[1 + n_sockets + i].revents;
      Client *client = &g_array_index (listener->clients, Client, i);

      if (words[i].revents != 0)
        take_words (listener, client);
      if ((found & POLLIN) != 0)
        answer_gate (listener, client);
      if ((found & (POLLHUP | POLLERR)) != 0 && client->gate >= 0)
        {
          /* Its end is told by a signal. */
          close (client->gate);
          client->gate = -1;
        }
    }
  for (guint i = 0; i < n_sockets; i++)
    if (polls[1 + i].revents != 0)
      {
        int fd = accept4 (polls[1 + i].fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0)
          begin (listener, fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
          g_usleep (PAUSE_MS * 1000);
      }
  while (read (signals, &info, sizeof info) == (gssize) sizeof info)
    *goes_on &= info.ssi_signo == SIGCHLD;
  reap (listener);
}

static gboolean
check_certificates (const Options *options, GError **error)
{
  if (remote_is_tls (options->listen) && options->certificates == NULL)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                 "%s: nobody listens at a port without certificates: name their directory by "
                 "--certificates, or listen at a Unix socket",
                 options->listen);
  else if (!remote_is_tls (options->listen)
           && (options->certificates != NULL || options->allowed != NULL))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                 "%s is for tls://host:port, and not for %s, where the same user may come in",
                 options->certificates != NULL ? "--certificates" : "--allow", options->listen);
#ifdef HAVE_GNUTLS
  else if (options->certificates != NULL)
    return remote_tls_check (options->certificates, FALSE, error);
#endif
  else
    return TRUE;
  return FALSE;
}

/* What would be wrong for each who connects. */
static gboolean
check_options (const Options *options, GError **error)
{
  if (options->takes_serialized && options->python == NULL)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                           "--serialized-python wants an interpreter: --python PROGRAM");
      return FALSE;
    }
  return remote_check_address (options->listen, 0, error) && check_certificates (options, error)
         && remote_check_roots (options, error) && remote_check_python (options, error);
}

int
remote_listen_main (const Options *options)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GError) error = NULL;
  Listener listener = { .options = options,
                        .sockets = g_array_new (FALSE, FALSE, sizeof (int)),
                        .clients = g_array_new (FALSE, FALSE, sizeof (Client)),
                        .gate_argv = remote_make_argv (options),
                        .session_argv = remote_make_argv (options) };
  g_autoptr (GString) text = g_string_new (NULL);
  gboolean goes_on, is_told;
  sigset_t set;
  int signals;

  /* Before the NULL: words of the gate. */
  g_ptr_array_set_size (listener.gate_argv, (int) listener.gate_argv->len - 1);
  g_ptr_array_add (listener.gate_argv, g_strdup ("--accept"));
  g_ptr_array_add (listener.gate_argv, g_strdup_printf ("--timeout=%d", options->timeout));
  if (options->certificates != NULL)
    g_ptr_array_add (listener.gate_argv,
                     g_strconcat ("--certificates=", options->certificates, NULL));
  for (guint i = 0; options->allowed != NULL && options->allowed[i] != NULL; i++)
    g_ptr_array_add (listener.gate_argv, g_strconcat ("--allow=", options->allowed[i], NULL));
  g_ptr_array_add (listener.gate_argv, NULL);

  if (!check_options (options, &error))
    {
      remote_say ("%s", error->message);
      return remote_get_status (error);
    }
  sigemptyset (&set);
  sigaddset (&set, SIGCHLD);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGINT);
  sigprocmask (SIG_BLOCK, &set, NULL);
  signal (SIGINT, SIG_DFL);
  signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  /* What a session leaves behind is waited for, too. */
  g_setenv (REMOTE_LISTENED, "1", TRUE);
  prctl (PR_SET_CHILD_SUBREAPER, 1ul, 0ul, 0ul, 0ul);
  if (!remote_listen (options->listen, listener.sockets, names, &error))
    {
      remote_say ("%s", error->message);
      return remote_get_status (error);
    }
  for (guint i = 0; i < names->len; i++)
    g_string_append_printf (text, "pto-remote listens at %s\n",
                            (const char *) g_ptr_array_index (names, i));
  /* In one piece: a reader that ends after the first line has had all of it. */
  pto_stdout_print (text->str);
  goes_on = is_told = pto_stdout_finish () == 0;
  listener.heard = g_get_monotonic_time ();
  while (goes_on)
    wait_and_serve (&listener, signals, &goes_on);
  for (guint i = 0; i < listener.sockets->len; i++)
    close (g_array_index (listener.sockets, int, i));
  remote_stop_listening (options->listen);
  end_all (&listener);
  close (signals);
  g_array_unref (listener.sockets);
  g_array_unref (listener.clients);
  g_ptr_array_unref (listener.gate_argv);
  g_ptr_array_unref (listener.session_argv);
  return is_told ? 0 : remote_finish_output ();
}
