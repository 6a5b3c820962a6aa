/* socket.c: where can one listen, whom can one reach, and who is it, as the kernel
 * knows?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "common/remote-address.h"
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128
/* Of a connection on which nothing is sent. */
#define PROBES 3

gboolean
remote_is_tls (const char *address)
{
  return pto_remote_address_get_kind (address) == PTO_REMOTE_ADDRESS_TLS;
}

static gboolean
fail (GError **error, const char *what, int code)
{
  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (code), "%s: %s", what, g_strerror (code));
  return FALSE;
}

/* Host and port. */
static GNetworkAddress *
parse (const char *address, GError **error)
{
  GSocketConnectable *found
      = g_network_address_parse (pto_remote_address_get_host (address), 0, error);

  return found != NULL ? G_NETWORK_ADDRESS (found) : NULL;
}

gboolean
remote_check_address (const char *address, guint least, GError **error)
{
  g_autofree char *fault = pto_remote_address_explain_listener (address, least);

  if (fault == NULL)
    return TRUE;
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, fault);
  return FALSE;
}

/* --- listening --- */

/* What is left of somebody who listened there. */
static gboolean
remove_stale (const struct sockaddr_un *address, GError **error)
{
  struct stat status;
  gboolean is_alive;
  int probe;

  if (lstat (address->sun_path, &status) != 0)
    return TRUE;
  if (!S_ISSOCK (status.st_mode))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS, "%s is there already, and is no socket",
                   address->sun_path);
      return FALSE;
    }
  probe = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  is_alive = probe >= 0
             && (connect (probe, (const struct sockaddr *) address, sizeof *address) == 0
                 || errno != ECONNREFUSED);
  if (probe >= 0)
    close (probe);
  if (is_alive)
    return fail (error, address->sun_path, EADDRINUSE);
  unlink (address->sun_path);
  return TRUE;
}

static gboolean
listen_unix (const char *address, GArray *sockets, GPtrArray *names, GError **error)
{
  struct sockaddr_un name = { .sun_family = AF_UNIX };
  const char *path = address + strlen (PTO_REMOTE_UNIX_SCHEME);
  mode_t mask;
  int fd;
  int code;

  strcpy (name.sun_path, path);
  if (!remove_stale (&name, error))
    return FALSE;
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  /* It never was anybody's else: there is no other thread that makes files. */
  mask = umask (0177);
  code = fd < 0 || bind (fd, (struct sockaddr *) &name, sizeof name) != 0
                 || listen (fd, BACKLOG) != 0
             ? errno
             : 0;
  umask (mask);
  if (code != 0)
    {
      if (fd >= 0)
        close (fd);
      return fail (error, address, code);
    }
  g_array_append_val (sockets, fd);
  g_ptr_array_add (names, g_strdup (address));
  return TRUE;
}

static char *
dup_name (int fd, int (*get) (int, struct sockaddr *, socklen_t *))
{
  struct sockaddr_storage name;
  socklen_t size = sizeof name;
  g_autoptr (GSocketAddress) address = NULL;

  if (get (fd, (struct sockaddr *) &name, &size) == 0)
    address = g_socket_address_new_from_native (&name, size);
  return G_IS_INET_SOCKET_ADDRESS (address)
             ? g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (address))
             : g_strdup ("somebody");
}

char *
remote_dup_peer (int fd)
{
  return dup_name (fd, getpeername);
}

static int
listen_at (const struct addrinfo *at)
{
  int fd = socket (at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int saved;

  if (fd < 0)
    return -1;
  setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof (int));
  /* 0.0.0.0 and :: are two addresses. */
  if (at->ai_family == AF_INET6)
    setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 1 }, sizeof (int));
  if (bind (fd, at->ai_addr, at->ai_addrlen) == 0 && listen (fd, BACKLOG) == 0)
    return fd;
  saved = errno;
  close (fd);
  errno = saved;
  return -1;
}

static gboolean
listen_tcp (const char *address, GArray *sockets, GPtrArray *names, GError **error)
{
  const struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
  g_autoptr (GNetworkAddress) where = parse (address, error);
  g_autofree char *port = NULL;
  struct addrinfo *list = NULL;
  gboolean ok = TRUE;
  int code;

  if (where == NULL)
    return FALSE;
  port = g_strdup_printf ("%u", g_network_address_get_port (where));
  code = getaddrinfo (g_network_address_get_hostname (where), port, &hints, &list);
  if (code != 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_HOST_NOT_FOUND, "%s: %s", address,
                   gai_strerror (code));
      return FALSE;
    }
  /* All that the name means, on one port. */
  for (const struct addrinfo *at = list; ok && at != NULL; at = at->ai_next)
    {
      int fd = listen_at (at);

      ok = fd >= 0 || fail (error, address, errno);
      if (ok)
        {
          g_autofree char *name = dup_name (fd, getsockname);

          g_array_append_val (sockets, fd);
          g_ptr_array_add (names, g_strconcat ("tls://", name, NULL));
        }
      if (g_network_address_get_port (where) == 0)
        break;
    }
  freeaddrinfo (list);
  return ok;
}

gboolean
remote_listen (const char *address, GArray *sockets, GPtrArray *names, GError **error)
{
  return g_str_has_prefix (address, PTO_REMOTE_UNIX_SCHEME)
             ? listen_unix (address, sockets, names, error)
             : listen_tcp (address, sockets, names, error);
}

void
remote_stop_listening (const char *address)
{
  if (g_str_has_prefix (address, PTO_REMOTE_UNIX_SCHEME))
    unlink (address + strlen (PTO_REMOTE_UNIX_SCHEME));
}

/* --- connections --- */

gboolean
remote_check_user (int fd, GError **error)
{
  struct ucred who;
  socklen_t size = sizeof who;

  if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    return fail (error, "SO_PEERCRED", errno);
  if (who.uid == geteuid () || who.uid == 0)
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
               "process %d of user %u: only user %u and root may connect", (int) who.pid, who.uid,
               geteuid ());
  return FALSE;
}

void
remote_tune (int fd, int timeout)
{
  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof (int));
  setsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof (int));
  setsockopt (fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){ MAX (timeout / 2, 1) }, sizeof (int));
  setsockopt (fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){ MAX (timeout / (2 * PROBES), 1) },
              sizeof (int));
  setsockopt (fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){ PROBES }, sizeof (int));
  setsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &(guint){ (guint) timeout * 1000 },
              sizeof (guint));
}

int
remote_connect (const char *address, int timeout, char **host, GError **error)
{
  g_autoptr (GNetworkAddress) where = parse (address, error);
  g_autoptr (GSocketClient) client = NULL;
  g_autoptr (GSocketConnection) connection = NULL;
  int fd;

  if (where == NULL)
    return -1;
  client = g_object_new (G_TYPE_SOCKET_CLIENT, "timeout", (guint) timeout, "enable-proxy", FALSE,
                         NULL);
  connection = g_socket_client_connect (client, G_SOCKET_CONNECTABLE (where), NULL, error);
  if (connection == NULL)
    return -1;
  fd = fcntl (g_socket_get_fd (g_socket_connection_get_socket (connection)), F_DUPFD_CLOEXEC, 3);
  if (fd < 0)
    fail (error, address, errno);
  else
    remote_tune (fd, timeout);
  *host = g_strdup (g_network_address_get_hostname (where));
  return fd;
}
