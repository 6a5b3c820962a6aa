/* tls.c: who is at the other end of a connection, and can anybody else read it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * TLS 1.3 and nothing below it, with certificates of both ends, of one authority and no other. What
 * a certificate is for is said twice, and has to be so twice: by its purpose (client, server) and
 * by its role, the organizational unit of its subject. Whoever is connected to has to have the name
 * that was connected to, as well.
 *
 * This is GnuTLS, and not GIO's cover of it (glib-networking): that has no way to ask for TLS 1.3
 * but an environment variable, reads and writes a record at a time, and needs threads.
 *
 * One thread. Bytes of the network go through two buffers of fixed size; nothing blocks but
 * remote_tls_handshake(), which has a deadline.
 */
#include "config.h"

#include "private.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3"
#define BUFFER_BYTES (256 << 10)
/* One record, encrypted, and what TLS itself may add behind it. */
#define RECORD_ROOM (20 << 10)
#define RECORD_BYTES (16 << 10)

typedef struct
{
  gsize begin;
  gsize end;
  guint8 data[BUFFER_BYTES];
} Buffer;

struct _RemoteTls
{
  int fd;
  gnutls_session_t session;
  gnutls_certificate_credentials_t credentials;
  char *host; /* NULL: this is the end that was connected to */
  char **allowed;
  char *name;    /* of the other end; NULL: not known yet */
  char *refused; /* why its certificate is none */
  gnutls_alert_description_t alert;
  gboolean is_cut; /* nothing can be sent any more */
  Buffer in;
  Buffer out;
};

static gboolean fail (GError **error, int code, const char *format, ...) G_GNUC_PRINTF (3, 4);

static gboolean
fail (GError **error, int code, const char *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  if (error != NULL && *error == NULL)
    *error = g_error_new_valist (G_IO_ERROR, code, format, arguments);
  va_end (arguments);
  return FALSE;
}

static const char *
get_role (gboolean is_parent)
{
  return is_parent ? "parent" : "worker";
}

/* --- what is in the directory --- */

static char *
dup_file (const char *directory, const char *name, GError **error)
{
  char *path = g_build_filename (directory, name, NULL);
  g_autofree char *below = g_build_filename (directory, "authority", name, NULL);

  if (access (path, R_OK) == 0)
    return path;
  if (errno == ENOENT && access (below, F_OK) == 0)
    fail (error, G_IO_ERROR_INVALID_ARGUMENT,
          "%s: --certificates names one of the directories in it: that of this end", directory);
  else
    fail (error, G_IO_ERROR_INVALID_ARGUMENT,
          "%s: %s: --certificates DIR has ca.pem, cert.pem and key.pem (pto remote certificates "
          "makes them)",
          path, g_strerror (errno));
  g_free (path);
  return NULL;
}

/* Whoever can read it can be this end. */
static gboolean
check_key (const char *path, GError **error)
{
  struct stat status;

  if (stat (path, &status) == 0 && (status.st_mode & 077) == 0)
    return TRUE;
  return fail (error, G_IO_ERROR_INVALID_ARGUMENT,
               "%s: others than its owner may read or write it: chmod 600", path);
}

/* Of the subject; NULL: it has none, or one that is no text. */
static char *
dup_subject (gnutls_x509_crt_t certificate, const char *oid)
{
  char text[256];
  size_t size = sizeof text;

  if (gnutls_x509_crt_get_dn_by_oid (certificate, oid, 0, 0, text, &size) != 0
      || memchr (text, '\0', size) != NULL)
    return NULL;
  return g_strndup (text, size);
}

static const char *
get_purpose (gboolean is_parent)
{
  return is_parent ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER;
}

/* Before anything is begun: what is over for everybody. */
static gboolean
check_times (gnutls_x509_crt_t certificate, const char *path, GError **error)
{
  time_t now = time (NULL);

  if (gnutls_x509_crt_get_expiration_time (certificate) < now)
    return fail (error, G_IO_ERROR_INVALID_ARGUMENT, "%s: it has expired", path);
  if (gnutls_x509_crt_get_activation_time (certificate) > now)
    return fail (error, G_IO_ERROR_INVALID_ARGUMENT, "%s: it is not valid yet", path);
  return TRUE;
}

static gboolean
check_role_of (gnutls_x509_crt_t certificate, const char *path, gboolean is_parent, GError **error)
{
  g_autofree char *role = dup_subject (certificate, GNUTLS_OID_X520_ORGANIZATIONAL_UNIT_NAME);

  return g_strcmp0 (role, get_role (is_parent)) == 0
         || fail (error, G_IO_ERROR_INVALID_ARGUMENT,
                  "%s: it has the role \"%s\", and who %s has the role \"%s\" (pto remote "
                  "certificates makes both)",
                  path, role != NULL ? role : "", is_parent ? "connects" : "listens",
                  get_role (is_parent));
}

static gboolean
check_authority (gnutls_certificate_credentials_t credentials, gnutls_x509_crt_t *list,
                 unsigned int n, const char *path, gboolean is_parent, GError **error)
{
  gnutls_typed_vdata_st purpose
      = { .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *) get_purpose (is_parent) };
  gnutls_x509_trust_list_t authority = NULL;
  gnutls_datum_t text = { NULL, 0 };
  unsigned int status = 0;

  gnutls_certificate_get_trust_list (credentials, &authority);
  if (gnutls_x509_trust_list_verify_crt2 (authority, list, n, &purpose, 1, 0, &status, NULL) == 0
      && status == 0)
    return TRUE;
  gnutls_certificate_verification_status_print (status, GNUTLS_CRT_X509, &text, 0);
  fail (error, G_IO_ERROR_INVALID_ARGUMENT, "%s: by the ca.pem beside it: %s", path,
        text.data != NULL ? g_strchomp ((char *) text.data) : "it is not trusted");
  gnutls_free (text.data);
  return FALSE;
}

/* As the other end would, it being of the same authority. */
static gboolean
check_own (gnutls_certificate_credentials_t credentials, const char *path, gboolean is_parent,
           gboolean is_thorough, GError **error)
{
  gnutls_x509_crt_t *list = NULL;
  unsigned int n = 0;
  gboolean ok;

  if (gnutls_certificate_get_x509_crt (credentials, 0, &list, &n) != 0 || n == 0)
    return fail (error, G_IO_ERROR_INVALID_ARGUMENT, "%s: there is no certificate in it", path);
  ok = check_times (list[0], path, error)
       && (!is_thorough
           || (check_role_of (list[0], path, is_parent, error)
               && check_authority (credentials, list, n, path, is_parent, error)));
  for (unsigned int i = 0; i < n; i++)
    gnutls_x509_crt_deinit (list[i]);
  gnutls_free (list);
  return ok;
}

static gboolean
load (gnutls_certificate_credentials_t credentials, const char *directory, gboolean is_parent,
      gboolean is_thorough, GError **error)
{
  g_autofree char *authority = dup_file (directory, "ca.pem", error);
  g_autofree char *certificate = authority != NULL ? dup_file (directory, "cert.pem", error) : NULL;
  g_autofree char *key = certificate != NULL ? dup_file (directory, "key.pem", error) : NULL;
  int code;

  if (key == NULL || !check_key (key, error))
    return FALSE;
  code = gnutls_certificate_set_x509_trust_file (credentials, authority, GNUTLS_X509_FMT_PEM);
  if (code <= 0)
    return fail (error, G_IO_ERROR_INVALID_ARGUMENT, "%s: %s", authority,
                 code < 0 ? gnutls_strerror (code) : "there is no certificate in it");
  code = gnutls_certificate_set_x509_key_file (credentials, certificate, key, GNUTLS_X509_FMT_PEM);
  if (code < 0)
    return fail (error, G_IO_ERROR_INVALID_ARGUMENT, "%s, %s: %s", certificate, key,
                 gnutls_strerror (code));
  return check_own (credentials, certificate, is_parent, is_thorough, error);
}

static gboolean
look_at (const char *directory, gboolean is_parent, gboolean is_thorough, GError **error)
{
  gnutls_certificate_credentials_t credentials;
  gboolean ok;

  if (gnutls_certificate_allocate_credentials (&credentials) != 0)
    return fail (error, G_IO_ERROR_FAILED, "no memory");
  ok = load (credentials, directory, is_parent, is_thorough, error);
  gnutls_certificate_free_credentials (credentials);
  return ok;
}

gboolean
remote_tls_check (const char *directory, gboolean is_parent, GError **error)
{
  return look_at (directory, is_parent, TRUE, error);
}

gboolean
remote_tls_read_certificates (const char *directory, GError **error)
{
  return look_at (directory, FALSE, FALSE, error);
}

/* --- who it is --- */

static int
refuse (RemoteTls *tls, gnutls_alert_description_t alert, char *why)
{
  g_free (tls->refused);
  tls->refused = why;
  tls->alert = alert;
  return GNUTLS_E_CERTIFICATE_ERROR;
}

static gnutls_alert_description_t
choose_alert (unsigned int status)
{
  if ((status & GNUTLS_CERT_EXPIRED) != 0)
    return GNUTLS_A_CERTIFICATE_EXPIRED;
  if ((status & GNUTLS_CERT_SIGNER_NOT_FOUND) != 0)
    return GNUTLS_A_UNKNOWN_CA;
  return GNUTLS_A_BAD_CERTIFICATE;
}

static int
check_role (RemoteTls *tls, gnutls_x509_crt_t certificate)
{
  const char *wanted = get_role (tls->host == NULL);
  g_autofree char *role = dup_subject (certificate, GNUTLS_OID_X520_ORGANIZATIONAL_UNIT_NAME);

  g_free (tls->name);
  tls->name = dup_subject (certificate, GNUTLS_OID_X520_COMMON_NAME);
  if (g_strcmp0 (role, wanted) != 0)
    return refuse (tls, GNUTLS_A_ACCESS_DENIED,
                   g_strdup_printf ("\"%s\" has the role \"%s\", not \"%s\"",
                                    tls->name != NULL ? tls->name : "", role != NULL ? role : "",
                                    wanted));
  if (tls->allowed != NULL
      && (tls->name == NULL || !g_strv_contains ((const char *const *) tls->allowed, tls->name)))
    return refuse (tls, GNUTLS_A_ACCESS_DENIED,
                   g_strdup_printf ("\"%s\" is none of those that --allow names",
                                    tls->name != NULL ? tls->name : ""));
  return 0;
}

/* Called in the handshake: who is refused gets no further. */
static int
check_peer (gnutls_session_t session)
{
  RemoteTls *tls = gnutls_session_get_ptr (session);
  gnutls_typed_vdata_st data[2] = { { 0 } };
  const gnutls_datum_t *chain;
  gnutls_x509_crt_t certificate;
  unsigned int status = 0;
  unsigned int n = 0;
  int code;

  data[0].type = GNUTLS_DT_KEY_PURPOSE_OID;
  data[0].data = (unsigned char *) get_purpose (tls->host == NULL);
  data[1].type = GNUTLS_DT_DNS_HOSTNAME;
  data[1].data = (unsigned char *) tls->host;
  code = gnutls_certificate_verify_peers (session, data, tls->host != NULL ? 2 : 1, &status);
  if (code != 0)
    return refuse (tls, GNUTLS_A_BAD_CERTIFICATE,
                   g_strdup_printf ("its certificate: %s", gnutls_strerror (code)));
  if (status != 0)
    {
      gnutls_datum_t text = { NULL, 0 };
      char *why;

      gnutls_certificate_verification_status_print (status, GNUTLS_CRT_X509, &text, 0);
      why = g_strdup_printf ("its certificate: %s",
                             text.data != NULL ? (const char *) text.data : "it is not trusted");
      gnutls_free (text.data);
      return refuse (tls, choose_alert (status), g_strchomp (why));
    }
  chain = gnutls_certificate_get_peers (session, &n);
  if (chain == NULL || n == 0 || gnutls_x509_crt_init (&certificate) != 0)
    return refuse (tls, GNUTLS_A_CERTIFICATE_REQUIRED, g_strdup ("it has no certificate"));
  code = gnutls_x509_crt_import (certificate, &chain[0], GNUTLS_X509_FMT_DER);
  if (code == 0)
    code = check_role (tls, certificate);
  gnutls_x509_crt_deinit (certificate);
  return code;
}

/* --- bytes of the network --- */

/* FALSE: there are still some, or there is no way any more. */
static gboolean
send_out (RemoteTls *tls)
{
  Buffer *out = &tls->out;

  while (out->begin < out->end && !tls->is_cut)
    {
      gssize n = send (tls->fd, out->data + out->begin, out->end - out->begin,
                       MSG_DONTWAIT | MSG_NOSIGNAL);

      if (n >= 0)
        out->begin += (gsize) n;
      else if (errno == EAGAIN || errno == EWOULDBLOCK)
        return FALSE;
      else if (errno != EINTR)
        tls->is_cut = TRUE;
    }
  if (tls->is_cut)
    return FALSE;
  out->begin = out->end = 0;
  return TRUE;
}

static gsize
get_room (Buffer *buffer)
{
  if (buffer->begin > 0 && sizeof buffer->data - buffer->end < RECORD_ROOM)
    {
      memmove (buffer->data, buffer->data + buffer->begin, buffer->end - buffer->begin);
      buffer->end -= buffer->begin;
      buffer->begin = 0;
    }
  return sizeof buffer->data - buffer->end;
}

static ssize_t
push (gnutls_transport_ptr_t pointer, const void *data, size_t size)
{
  RemoteTls *tls = pointer;

  if (tls->is_cut)
    gnutls_transport_set_errno (tls->session, EPIPE);
  else if (get_room (&tls->out) < size)
    gnutls_transport_set_errno (tls->session, EAGAIN);
  else
    {
      memcpy (tls->out.data + tls->out.end, data, size);
      tls->out.end += size;
      return (ssize_t) size;
    }
  return -1;
}

static ssize_t
pull (gnutls_transport_ptr_t pointer, void *data, size_t size)
{
  RemoteTls *tls = pointer;
  Buffer *in = &tls->in;

  if (in->begin == in->end)
    {
      gssize n;

      do
        n = recv (tls->fd, in->data, sizeof in->data, MSG_DONTWAIT);
      while (n < 0 && errno == EINTR);
      if (n <= 0)
        {
          if (n < 0)
            gnutls_transport_set_errno (tls->session, errno);
          return n;
        }
      in->begin = 0;
      in->end = (gsize) n;
    }
  size = MIN (size, in->end - in->begin);
  memcpy (data, in->data + in->begin, size);
  in->begin += size;
  return (ssize_t) size;
}

/* --- the connection --- */

static void
tls_free (RemoteTls *tls)
{
  if (tls->session != NULL)
    gnutls_deinit (tls->session);
  if (tls->credentials != NULL)
    gnutls_certificate_free_credentials (tls->credentials);
  close (tls->fd);
  g_strfreev (tls->allowed);
  g_free (tls->host);
  g_free (tls->name);
  g_free (tls->refused);
  g_free (tls);
}

RemoteTls *
remote_tls_new (int fd, const char *directory, const char *host, char **allowed, GError **error)
{
  RemoteTls *tls = g_new0 (RemoteTls, 1);
  int code;

  tls->fd = fd;
  tls->host = g_strdup (host);
  tls->allowed = g_strdupv (allowed);
  code = gnutls_certificate_allocate_credentials (&tls->credentials);
  if (code == 0 && !load (tls->credentials, directory, host != NULL, FALSE, error))
    {
      tls_free (tls);
      return NULL;
    }
  if (code == 0)
    code = gnutls_init (&tls->session, (host != NULL ? GNUTLS_CLIENT : GNUTLS_SERVER)
                                           | GNUTLS_NONBLOCK | GNUTLS_NO_TICKETS);
  if (code == 0)
    code = gnutls_priority_set_direct (tls->session, PRIORITIES, NULL);
  if (code == 0)
    code = gnutls_credentials_set (tls->session, GNUTLS_CRD_CERTIFICATE, tls->credentials);
  /* A name of a machine; numbers are no such names. */
  if (code == 0 && host != NULL && !g_hostname_is_ip_address (host))
    code = gnutls_server_name_set (tls->session, GNUTLS_NAME_DNS, host, strlen (host));
  if (code != 0)
    {
      fail (error, G_IO_ERROR_FAILED, "TLS: %s", gnutls_strerror (code));
      tls_free (tls);
      return NULL;
    }
  gnutls_certificate_set_verify_function (tls->credentials, check_peer);
  if (host == NULL)
    gnutls_certificate_server_set_request (tls->session, GNUTLS_CERT_REQUIRE);
  gnutls_session_set_ptr (tls->session, tls);
  gnutls_transport_set_ptr (tls->session, tls);
  gnutls_transport_set_push_function (tls->session, push);
  gnutls_transport_set_pull_function (tls->session, pull);
  return tls;
}

/* What goes wrong, in words: of a certificate, of what the other end says, or of the connection. */
static gboolean
explain (RemoteTls *tls, int code, GError **error)
{
  if (tls->refused != NULL)
    return fail (error, G_IO_ERROR_PERMISSION_DENIED, "%s", tls->refused);
  if (code == GNUTLS_E_FATAL_ALERT_RECEIVED)
    return fail (error, G_IO_ERROR_PERMISSION_DENIED, "the other end refuses: %s",
                 gnutls_alert_get_name (gnutls_alert_get (tls->session)));
  if (code == GNUTLS_E_PREMATURE_TERMINATION)
    return fail (error, G_IO_ERROR_CLOSED, "the other end has hung up");
  if (code == GNUTLS_E_PULL_ERROR || code == GNUTLS_E_PUSH_ERROR)
    return fail (error, G_IO_ERROR_CLOSED, "the connection is lost");
  if (code == GNUTLS_E_NO_CERTIFICATE_FOUND || code == GNUTLS_E_CERTIFICATE_REQUIRED)
    return fail (error, G_IO_ERROR_PERMISSION_DENIED, "it has shown no certificate");
  return fail (error, G_IO_ERROR_FAILED, "TLS: %s", gnutls_strerror (code));
}

gboolean
remote_tls_handshake (RemoteTls *tls, int timeout, GError **error)
{
  gint64 until = g_get_monotonic_time () + timeout * G_TIME_SPAN_SECOND;
  int code;

  for (;;)
    {
      struct pollfd wait = { .fd = tls->fd };
      gint64 left;
      gboolean is_sent;

      code = gnutls_handshake (tls->session);
      is_sent = send_out (tls);
      if (code == 0 && is_sent)
        return TRUE;
      if (tls->is_cut || (code < 0 && gnutls_error_is_fatal (code)))
        break;
      left = until - g_get_monotonic_time ();
      wait.events = (short) ((code != 0 ? POLLIN : 0) | (is_sent ? 0 : POLLOUT));
      if (left <= 0)
        return fail (error, G_IO_ERROR_TIMED_OUT,
                     "there was no end of the handshake within %d s (--timeout)", timeout);
      poll (&wait, 1, (int) (left / 1000 + 1));
    }
  if (tls->refused != NULL)
    gnutls_alert_send (tls->session, GNUTLS_AL_FATAL, tls->alert);
  else if (!tls->is_cut && code != GNUTLS_E_FATAL_ALERT_RECEIVED)
    gnutls_alert_send_appropriate (tls->session, code);
  send_out (tls);
  return explain (tls, tls->is_cut && code == 0 ? GNUTLS_E_PUSH_ERROR : code, error);
}

const char *
remote_tls_get_name (RemoteTls *tls)
{
  return tls->name != NULL ? tls->name : "";
}

gssize
remote_tls_read (RemoteTls *tls, gpointer data, gsize size, GError **error)
{
  gssize n;

  do
    n = gnutls_record_recv (tls->session, data, size);
  while (n == GNUTLS_E_INTERRUPTED);
  if (n == GNUTLS_E_AGAIN)
    return 0;
  if (n > 0)
    return n;
  /* Messages have lengths: one that was cut off is seen by who reads it. */
  if (n < 0 && n != GNUTLS_E_PREMATURE_TERMINATION)
    explain (tls, (int) n, error);
  return -1;
}

gssize
remote_tls_write (RemoteTls *tls, gconstpointer data, gsize size, GError **error)
{
  gsize done = 0;

  while (done < size)
    {
      gssize n;

      /* So it never has to keep a part of a record. */
      if (get_room (&tls->out) < RECORD_ROOM
          && (send_out (tls), get_room (&tls->out) < RECORD_ROOM))
        break;
      n = gnutls_record_send (tls->session, (const guint8 *) data + done,
                              MIN (size - done, (gsize) RECORD_BYTES));
      if (n < 0)
        {
          explain (tls, (int) n, error);
          return -1;
        }
      done += (gsize) n;
    }
  send_out (tls);
  if (!tls->is_cut)
    return (gssize) done;
  explain (tls, GNUTLS_E_PUSH_ERROR, error);
  return -1;
}

gboolean
remote_tls_flush (RemoteTls *tls)
{
  send_out (tls);
  return !tls->is_cut;
}

gboolean
remote_tls_has_unsent (RemoteTls *tls)
{
  return tls->out.begin < tls->out.end;
}

void
remote_tls_say_end (RemoteTls *tls)
{
  gnutls_bye (tls->session, GNUTLS_SHUT_WR);
  send_out (tls);
}

int
remote_tls_get_fd (RemoteTls *tls)
{
  return tls->fd;
}
