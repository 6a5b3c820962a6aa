/* relay.c: how do bytes come from a pair of sockets to another machine, and back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One thread and two buffers of fixed size: who does not read is not sent to, and who sends to them
 * waits. The end of either side is the end of both: what that side has sent before is still handed
 * on, unless that takes longer than GRACE_MS.
 */
#include "config.h"

#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#define BUFFER_BYTES (256 << 10)
#define GRACE_MS 500

typedef struct
{
  gsize begin;
  gsize end;
  guint8 data[BUFFER_BYTES];
} Buffer;

typedef struct
{
  RemoteTls *tls;
  int local; /* socket */
  int other; /* readable: there is nobody at local any more; or -1 */
  gboolean local_ended;
  gboolean far_ended;
  gint64 until; /* monotonic; 0: neither side has ended */
  GError *error;
  Buffer up;   /* to the network */
  Buffer down; /* from it */
} Relay;

/* All of these: TRUE if something was moved. */

static gboolean
read_local (Relay *relay)
{
  gssize n;

  if (relay->local_ended || relay->up.begin < relay->up.end)
    return FALSE;
  n = recv (relay->local, relay->up.data, sizeof relay->up.data, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    return FALSE;
  relay->local_ended = n <= 0;
  relay->up.begin = 0;
  relay->up.end = (gsize) MAX (n, 0);
  return TRUE;
}

static gboolean
write_far (Relay *relay)
{
  Buffer *up = &relay->up;
  gssize n;

  if (relay->far_ended)
    return FALSE;
  if (up->begin == up->end)
    {
      relay->far_ended = !remote_tls_flush (relay->tls);
      return relay->far_ended;
    }
  n = remote_tls_write (relay->tls, up->data + up->begin, up->end - up->begin, &relay->error);
  relay->far_ended = n < 0;
  up->begin += (gsize) MAX (n, 0);
  return n != 0;
}

static gboolean
read_far (Relay *relay)
{
  Buffer *down = &relay->down;
  gboolean moved = FALSE;

  if (down->begin < down->end || relay->far_ended)
    return FALSE;
  down->begin = down->end = 0;
  while (down->end < sizeof down->data)
    {
      gssize n = remote_tls_read (relay->tls, down->data + down->end, sizeof down->data - down->end,
                                  &relay->error);

      if (n == 0)
        break;
      moved = TRUE;
      relay->far_ended = n < 0;
      if (n < 0)
        break;
      down->end += (gsize) n;
    }
  return moved;
}

static gboolean
write_local (Relay *relay)
{
  Buffer *down = &relay->down;
  gssize n;

  if (down->begin == down->end)
    return FALSE;
  n = send (relay->local, down->data + down->begin, down->end - down->begin,
            MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    return FALSE;
  if (n < 0)
    {
      relay->local_ended = TRUE;
      n = (gssize) (down->end - down->begin);
    }
  down->begin += (gsize) n;
  return TRUE;
}

static gboolean
has_pending (Relay *relay)
{
  if (relay->far_ended)
    return !relay->local_ended && relay->down.begin < relay->down.end;
  return relay->local_ended
         && (relay->up.begin < relay->up.end || remote_tls_has_unsent (relay->tls));
}

static void
wait_for_more (Relay *relay)
{
  gboolean is_full = relay->up.begin < relay->up.end;
  gboolean is_waiting = relay->down.begin < relay->down.end;
  gboolean is_unsent = is_full || remote_tls_has_unsent (relay->tls);
  /* Once the end of one is known, an end that nobody can read yet is not asked for again. */
  short ends = relay->until == 0 ? POLLRDHUP : 0;
  struct pollfd polls[]
      = { { .fd = relay->local,
            .events = (short) (ends | (is_full ? 0 : POLLIN) | (is_waiting ? POLLOUT : 0)) },
          { .fd = remote_tls_get_fd (relay->tls),
            .events = (short) (ends | (is_waiting ? 0 : POLLIN) | (is_unsent ? POLLOUT : 0)) },
          { .fd = relay->until == 0 ? relay->other : -1, .events = POLLIN } };
  gint64 left = relay->until != 0 ? relay->until - g_get_monotonic_time () : 0;

  if (relay->local_ended || (relay->until != 0 && polls[0].events == 0))
    polls[0].fd = -1;
  if (relay->far_ended || (relay->until != 0 && polls[1].events == 0))
    polls[1].fd = -1;
  if (poll (polls, G_N_ELEMENTS (polls), relay->until != 0 ? (int) (MAX (left, 0) / 1000 + 1) : -1)
      <= 0)
    return;
  if (relay->until == 0
      && ((polls[0].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0
          || (polls[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0 || polls[2].revents != 0))
    relay->until = g_get_monotonic_time () + GRACE_MS * G_TIME_SPAN_MILLISECOND;
}

static void
relay_run (Relay *relay)
{
  for (;;)
    {
      gboolean moved = read_local (relay);

      moved |= write_far (relay);
      moved |= read_far (relay);
      moved |= write_local (relay);
      if ((relay->local_ended || relay->far_ended) && !has_pending (relay))
        break;
      if (relay->until != 0 && g_get_monotonic_time () >= relay->until)
        break;
      if (!moved)
        wait_for_more (relay);
    }
  if (!relay->far_ended)
    remote_tls_say_end (relay->tls);
  shutdown (remote_tls_get_fd (relay->tls), SHUT_WR);
  shutdown (relay->local, SHUT_RDWR);
}

/* Standard input, which is the connection, out of the way of whatever is written by mistake. */
static int
take_input (void)
{
  int fd = fcntl (STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  int nothing = open ("/dev/null", O_RDWR | O_CLOEXEC);

  if (nothing >= 0)
    {
      dup2 (nothing, STDIN_FILENO);
      close (nothing);
    }
  return fd;
}

/* Whoever is refused for what its own certificate is finds that out here, too, in words. */
static int
say_why (const Options *options, const GError *error)
{
  g_autoptr (GError) own = NULL;

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED)
      && !remote_tls_check (options->certificates, TRUE, &own))
    remote_say ("%s: %s: %s", options->connect, error->message, own->message);
  else
    remote_say ("%s: %s", options->connect, error->message);
  return remote_get_status (error);
}

int
remote_connect_main (const Options *options)
{
  g_autofree Relay *relay = g_new0 (Relay, 1);
  g_autoptr (GError) error = NULL;
  g_autofree char *host = NULL;
  int fd = -1;

  relay->local = take_input ();
  dup2 (STDIN_FILENO, STDOUT_FILENO);
  relay->other = -1;
  /* Who could not be let in need not knock. */
  if (remote_check_address (options->connect, 1, &error)
      && remote_tls_read_certificates (options->certificates, &error))
    fd = remote_connect (options->connect, options->timeout, &host, &error);
  if (fd >= 0)
    relay->tls = remote_tls_new (fd, options->certificates, host, NULL, &error);
  if (relay->tls == NULL || !remote_tls_handshake (relay->tls, options->timeout, &error))
    return say_why (options, error);
  relay_run (relay);
  return relay->error != NULL ? say_why (options, relay->error) : 0;
}

/* --- the gate --- */

/* What was said last should arrive: a socket that is closed with something unread takes it back. */
static void
linger (int fd)
{
  gint64 until = g_get_monotonic_time () + GRACE_MS * G_TIME_SPAN_MILLISECOND;
  char nothing[4096];

  shutdown (fd, SHUT_WR);
  for (gint64 left = GRACE_MS; left > 0; left = (until - g_get_monotonic_time ()) / 1000)
    {
      struct pollfd wait = { .fd = fd, .events = POLLIN };

      if (poll (&wait, 1, (int) left) <= 0 || recv (fd, nothing, sizeof nothing, MSG_DONTWAIT) <= 0)
        return;
    }
}

/* Who waits for connections counts sessions, and knows whether there is room for one more. */
static gboolean
ask_for_room (void)
{
  char answer = '+';

  return send (STDOUT_FILENO, &answer, 1, MSG_NOSIGNAL) == 1
         && read (STDOUT_FILENO, &answer, 1) == 1;
}

/* It ends by itself when its connection does; else it is ended. */
static void
end_session (GPid process, int pidfd)
{
  struct pollfd wait = { .fd = pidfd, .events = POLLIN };

  if (pidfd < 0 || poll (&wait, 1, GRACE_MS) <= 0)
    kill (process, SIGKILL);
  waitpid (process, NULL, 0);
}

int
remote_accept_main (const Options *options)
{
  g_autofree Relay *relay = g_new0 (Relay, 1);
  g_autoptr (GPtrArray) argv = remote_make_argv (options);
  g_autoptr (GError) error = NULL;
  int fd = take_input ();
  g_autofree char *peer = remote_dup_peer (fd);
  int pair[2];
  GPid process;

  remote_tune (fd, options->timeout);
  relay->tls = remote_tls_new (fd, options->certificates, NULL, options->allowed, &error);
  if (relay->tls == NULL || !remote_tls_handshake (relay->tls, options->timeout, &error))
    {
      remote_say ("%s is dropped: %s", peer, error->message);
      linger (fd);
      return remote_get_status (error);
    }
  if (!ask_for_room ())
    {
      g_autoptr (GBytes) refusal = remote_make_refusal (REMOTE_IS_FULL);

      remote_say ("\"%s\" at %s is dropped: %s", remote_tls_get_name (relay->tls), peer,
                  REMOTE_IS_FULL);
      remote_tls_write (relay->tls, g_bytes_get_data (refusal, NULL), g_bytes_get_size (refusal),
                        NULL);
      remote_tls_say_end (relay->tls);
      linger (fd);
      return EX_UNAVAILABLE;
    }
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0
      || !remote_spawn ((const char *const *) argv->pdata, pair[1], pair[1], -1, SIGKILL, &process,
                        &error))
    {
      remote_say ("no session for %s: %s", peer,
                  error != NULL ? error->message : g_strerror (errno));
      return EX_OSERR;
    }
  close (pair[1]);
  remote_say ("\"%s\" at %s: session %d", remote_tls_get_name (relay->tls), peer, (int) process);
  relay->local = pair[0];
  relay->other = (int) syscall (SYS_pidfd_open, process, 0);
  relay_run (relay);
  if (relay->error != NULL)
    remote_say ("\"%s\" at %s is dropped: %s", remote_tls_get_name (relay->tls), peer,
                relay->error->message);
  end_session (process, relay->other);
  linger (fd);
  return 0;
}
