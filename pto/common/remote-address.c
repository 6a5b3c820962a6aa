/* remote-address.c: what is an address of a remote worker, and why is one none?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "remote-address.h"

#include "text.h"

#include <string.h>
#include <sys/un.h>

#define AUTHORITY "//"
#define PORT_MAX 65535u
#define BLANKS " \t\r\n"
#define ALL_ADDRESSES \
  "local:, ssh://host, srun://host, mpirun://host, tls://host:port and unix:/path"
#define PATH_MAX_BYTES (sizeof ((struct sockaddr_un *) NULL)->sun_path - 1)

PtoRemoteAddressKind
pto_remote_address_get_kind (const char *address)
{
  return g_str_has_prefix (address, PTO_REMOTE_UNIX_SCHEME)  ? PTO_REMOTE_ADDRESS_UNIX
         : g_str_has_prefix (address, PTO_REMOTE_TLS_SCHEME) ? PTO_REMOTE_ADDRESS_TLS
                                                             : PTO_REMOTE_ADDRESS_LAUNCHED;
}

const char *
pto_remote_address_get_host (const char *address)
{
  return strstr (address, "://") + strlen ("://");
}

/* Takes the reason. */
static char *
make_sentence (const char *address, char *reason)
{
  g_autofree char *taken = reason;

  return reason != NULL
             ? g_strdup_printf (_ ("\"%s\" is no address of a remote worker: %s"), address, reason)
             : NULL;
}

static char *
explain_path (const char *path)
{
  if (path[0] == '\0')
    return g_strdup (_ ("it names no path: write unix:/path"));
  if (path[0] != '/')
    return g_strdup (_ ("its path is relative: write unix:/path"));
  if (strlen (path) > PATH_MAX_BYTES)
    return g_strdup_printf (_ ("its path has %zu bytes, that of a socket has at most %zu"),
                            strlen (path), PATH_MAX_BYTES);
  return NULL;
}

/* NULL: it is one, of a program's command line too. */
static char *
explain_host (const char *host, gsize length)
{
  g_autofree char *text = g_strndup (host, length);

  if (length == 0)
    return g_strdup (_ ("it names no host"));
  /* It would be an option of the launcher. */
  if (text[0] == '-')
    return g_strdup (_ ("a host does not begin with -"));
  if (strpbrk (text, "/" BLANKS) != NULL)
    return g_strdup (_ ("there is a slash or a blank in the name of its host"));
  return NULL;
}

/* host:port, or [host]:port where there are colons in the host. */
static char *
explain_host_and_port (const char *rest, guint least)
{
  const char *colon = strrchr (rest, ':');
  gboolean is_bracketed = rest[0] == '[';
  guint64 port;
  char *reason;

  if (strchr (rest, '@') != NULL)
    return g_strdup (_ ("who connects is known by a certificate, and not by a name in front of @"));
  if (is_bracketed && colon != NULL && colon < strchr (rest, ']'))
    colon = NULL;
  if (!is_bracketed && colon != NULL && memchr (rest, ':', (gsize) (colon - rest)) != NULL)
    return g_strdup (_ ("a host with colons is in brackets: write tls://[host]:port"));
  reason = explain_host (rest, colon != NULL ? (gsize) (colon - rest) : strlen (rest));
  if (reason != NULL)
    return reason;
  if (colon == NULL)
    return g_strdup (_ ("it names no port: write tls://host:port"));
  if (is_bracketed && colon[-1] != ']')
    return g_strdup (_ ("a host with colons is in brackets: write tls://[host]:port"));
  if (!g_ascii_string_to_unsigned (colon + 1, 10, least, PORT_MAX, &port, NULL))
    return g_strdup_printf (_ ("\"%s\" is no port: %u to %u are"), colon + 1, least, PORT_MAX);
  return NULL;
}

char *
pto_remote_address_explain_listener (const char *address, guint least)
{
  const char *rest = strchr (address, ':');

  switch (pto_remote_address_get_kind (address))
    {
    case PTO_REMOTE_ADDRESS_UNIX:
      return make_sentence (address, explain_path (rest + 1));
    case PTO_REMOTE_ADDRESS_TLS:
      return make_sentence (address,
                            g_str_has_prefix (rest + 1, AUTHORITY)
                                ? explain_host_and_port (rest + 1 + strlen (AUTHORITY), least)
                                : g_strdup (_ ("write tls://host:port")));
    default:
      return g_strdup_printf (_ ("\"%s\" is no address where somebody listens: those are "
                                 "tls://host:port and unix:/path"),
                              address);
    }
}

/* Behind the scheme, of an address that is host and nothing else. */
static char *
explain_rest (const char *address, const char *rest)
{
  g_autofree char *scheme = g_strndup (address, (gsize) (rest - address));

  return g_str_has_prefix (rest, AUTHORITY)
             ? explain_host (rest + strlen (AUTHORITY), strlen (rest + strlen (AUTHORITY)))
             : g_strdup_printf (_ ("write %s//host"), scheme);
}

char *
pto_remote_address_explain_own (const char *address)
{
  const char *colon = strchr (address, ':');

  return make_sentence (address, colon == NULL || colon == address
                                     ? g_strdup (_ ("with a launcher of one's own it is any name, "
                                                    ":// and the host"))
                                     : explain_rest (address, colon + 1));
}

/* ssh would look for a host of that name. */
static gboolean
has_port (const char *host)
{
  const char *colon = strchr (host, ':');

  return colon != NULL && colon[1] != '\0'
         && strspn (colon + 1, "0123456789") == strlen (colon + 1);
}

char *
pto_remote_address_explain_launched (const char *address, const char *const *schemes)
{
  const char *colon = strchr (address, ':');
  g_autofree char *scheme = colon != NULL ? g_strndup (address, (gsize) (colon - address)) : NULL;
  char *reason;

  if (scheme == NULL)
    return make_sentence (address,
                          g_strdup_printf (_ ("it has no scheme: there are %s"), ALL_ADDRESSES));
  if (!g_strv_contains (schemes, scheme))
    return make_sentence (
        address, g_strdup_printf (_ ("there is no scheme \"%s\", but %s"), scheme, ALL_ADDRESSES));
  if (strcmp (scheme, "local") == 0)
    return make_sentence (address,
                          colon[1] != '\0' ? g_strdup (_ ("nothing stands behind local:")) : NULL);
  reason = explain_rest (address, colon + 1);
  if (reason == NULL && strcmp (scheme, "ssh") == 0 && has_port (colon + 1 + strlen (AUTHORITY)))
    reason = g_strdup (_ ("a port is said in ssh's own configuration, or in the option launcher"));
  return make_sentence (address, reason);
}
