/* message-stream.c: how do messages come and go over a connection that a process inherited?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Descriptors may be pipes or a socket. Reading and writing block; nobody else's thread has a part
 * in it, so it works in a process that was forked.
 */
#include "config.h"

#include "remote-messages.h"

#include "base/error.h"
#include "common/printable.h"
#include "common/text.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* A message's length is known from so many bytes. */
#define HEAD_BYTES 16
#define READ_BYTES 65536
/* Of what is no message, so much is shown. */
#define LINE_BYTES ((gsize) 200)
/* What is longer is written in such parts: that there is room for the next is a sign of life. What
 * the system keeps on the way is taken at once, and so says nothing for longer than a moment. */
#define WRITE_BYTES ((gsize) 256 << 10)

struct _PtoRemoteStream
{
  int in;
  int out;
  /* Of who reads. */
  GByteArray *read;
  gsize used;  /* bytes at its front that were messages */
  guint signs; /* atomic, orders nothing: only that it changes counts */
  /* Guards what is below, and the order of what is written. */
  GMutex lock;
  guint32 serial;
};

PtoRemoteStream *
pto_remote_stream_new (int in, int out)
{
  PtoRemoteStream *stream = g_new0 (PtoRemoteStream, 1);

  stream->in = in;
  stream->out = out;
  stream->read = g_byte_array_new ();
  g_mutex_init (&stream->lock);
  return stream;
}

void
pto_remote_stream_free (PtoRemoteStream *stream)
{
  close (stream->in);
  if (stream->out != stream->in)
    close (stream->out);
  g_byte_array_unref (stream->read);
  g_mutex_clear (&stream->lock);
  g_free (stream);
}

int
pto_remote_stream_get_in (PtoRemoteStream *stream)
{
  return stream->in;
}

guint
pto_remote_stream_get_signs (PtoRemoteStream *stream)
{
  return (guint) g_atomic_int_get (&stream->signs);
}

void
pto_remote_stream_hear (PtoRemoteStream *stream)
{
  g_atomic_int_inc (&stream->signs);
}

void
pto_remote_stream_shut (PtoRemoteStream *stream)
{
  shutdown (stream->in, SHUT_RDWR);
}

static gboolean
write_all (PtoRemoteStream *stream, struct iovec parts[2], GError **error)
{
  while (parts[0].iov_len + parts[1].iov_len > 0)
    {
      gsize first = MIN (parts[0].iov_len, WRITE_BYTES);
      struct iovec some[2] = { { parts[0].iov_base, first },
                               { parts[1].iov_base, MIN (parts[1].iov_len, WRITE_BYTES - first) } };
      gssize n = writev (stream->out, some, first == parts[0].iov_len ? 2 : 1);

      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        {
          int saved = errno;

          g_set_error (error, G_IO_ERROR,
                       saved == EPIPE || saved == ECONNRESET ? G_IO_ERROR_CLOSED
                                                             : G_IO_ERROR_FAILED,
                       _ ("the connection is lost: %s"), g_strerror (saved));
          return FALSE;
        }
      for (guint i = 0; i < 2; i++)
        {
          gsize gone = MIN ((gsize) n, parts[i].iov_len);

          parts[i].iov_base = (guint8 *) parts[i].iov_base + gone;
          parts[i].iov_len -= gone;
          n -= (gssize) gone;
        }
      if (parts[0].iov_len + parts[1].iov_len > 0)
        g_atomic_int_inc (&stream->signs);
    }
  return TRUE;
}

/* Under the lock. */
static gboolean
send_locked (PtoRemoteStream *stream, GDBusMessage *message, gconstpointer data, gsize size,
             guint32 *serial, GError **error)
{
  g_autofree guint8 *blob = NULL;
  gsize blob_size;

  /* 0 is no number. */
  if (++stream->serial == 0)
    stream->serial++;
  g_dbus_message_set_serial (message, stream->serial);
  if (serial != NULL)
    *serial = stream->serial;
  blob = g_dbus_message_to_blob (message, &blob_size, G_DBUS_CAPABILITY_FLAGS_NONE, error);
  return blob != NULL
         && write_all (stream, (struct iovec[]){ { blob, blob_size }, { (gpointer) data, size } },
                       error);
}

gboolean
pto_remote_stream_send_with (PtoRemoteStream *stream, GDBusMessage *message, gconstpointer data,
                             gsize size, guint32 *serial, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&stream->lock);

  return send_locked (stream, message, data, size, serial, error);
}

gboolean
pto_remote_stream_try_send (PtoRemoteStream *stream, GDBusMessage *message, GError **error)
{
  struct pollfd room = { .fd = stream->out, .events = POLLOUT };
  gboolean ok = FALSE;

  if (!g_mutex_trylock (&stream->lock))
    return FALSE;
  /* Where there is room at all there is more than a small message needs. */
  if (poll (&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0)
    ok = send_locked (stream, message, NULL, 0, NULL, error);
  g_mutex_unlock (&stream->lock);
  return ok;
}

gboolean
pto_remote_stream_send (PtoRemoteStream *stream, GDBusMessage *message, guint32 *serial,
                        GError **error)
{
  return pto_remote_stream_send_with (stream, message, NULL, 0, serial, error);
}

/* How long the message is that has begun to come; 0: that is not known yet. */
static gssize
get_length (PtoRemoteStream *stream, GError **error)
{
  gsize n = stream->read->len - stream->used;
  g_autoptr (GError) local = NULL;
  gssize length;

  if (n < HEAD_BYTES)
    return 0;
  length = g_dbus_message_bytes_needed (stream->read->data + stream->used, n, &local);
  if (length > 0 && (guint64) length <= PTO_REMOTE_MESSAGE_BYTES)
    return length;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, _ ("what came is no message: %s"),
               length > 0 ? _ ("it is too long") : local->message);
  return -1;
}

static GDBusMessage *
take_message (PtoRemoteStream *stream, gsize length, GError **error)
{
  GDBusMessage *message = g_dbus_message_new_from_blob (stream->read->data + stream->used, length,
                                                        G_DBUS_CAPABILITY_FLAGS_NONE, error);

  stream->used += length;
  if (stream->used == stream->read->len)
    {
      g_byte_array_set_size (stream->read, 0);
      stream->used = 0;
    }
  return message;
}

/* 1: there is something; 0: nothing came for so long. */
static int
wait_for_more (int in, int timeout_ms)
{
  struct pollfd poll_in = { .fd = in, .events = POLLIN };
  int n;

  do
    n = poll (&poll_in, 1, timeout_ms);
  while (n < 0 && errno == EINTR);
  return n;
}

/* Some of it, 1 byte at least; 0: there will be none. */
static gsize
read_some (PtoRemoteStream *stream, gpointer to, gsize size, GError **error)
{
  gssize got;

  do
    got = read (stream->in, to, size);
  while (got < 0 && errno == EINTR);
  if (got > 0)
    {
      g_atomic_int_inc (&stream->signs);
      return (gsize) got;
    }
  if (got == 0 || errno == ECONNRESET)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CLOSED, _ ("the connection has ended"));
  else
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, _ ("the connection is lost: %s"),
                 g_strerror (errno));
  return 0;
}

static gboolean
read_more (PtoRemoteStream *stream, GError **error)
{
  GByteArray *read_so_far = stream->read;
  gsize n = read_so_far->len - stream->used;
  gsize got;

  if (stream->used > 0)
    {
      memmove (read_so_far->data, read_so_far->data + stream->used, n);
      stream->used = 0;
    }
  g_byte_array_set_size (read_so_far, (guint) n + READ_BYTES);
  got = read_some (stream, read_so_far->data + n, READ_BYTES, error);
  g_byte_array_set_size (read_so_far, (guint) (n + got));
  return got > 0;
}

gboolean
pto_remote_stream_read (PtoRemoteStream *stream, gpointer to, gsize size, GError **error)
{
  gsize at = MIN (size, stream->read->len - stream->used);

  /* What came along with the message. */
  if (at > 0)
    memcpy (to, stream->read->data + stream->used, at);
  stream->used += at;
  while (at < size)
    {
      gsize got = read_some (stream, (guint8 *) to + at, size - at, error);

      if (got == 0)
        return FALSE;
      at += got;
    }
  return TRUE;
}

char *
pto_remote_stream_dup_line (PtoRemoteStream *stream)
{
  const char *begin = (const char *) stream->read->data + stream->used;
  gsize n = MIN (stream->read->len - stream->used, LINE_BYTES);
  const char *end = n > 0 ? memchr (begin, '\n', n) : NULL;

  return n > 0 ? pto_make_printable (
             g_strchomp (g_strndup (begin, end != NULL ? (gsize) (end - begin) : n)), FALSE)
               : NULL;
}

GDBusMessage *
pto_remote_stream_receive (PtoRemoteStream *stream, int timeout_ms, GError **error)
{
  for (;;)
    {
      gssize length = get_length (stream, error);

      if (length < 0)
        return NULL;
      if (length > 0 && stream->read->len - stream->used >= (gsize) length)
        return take_message (stream, (gsize) length, error);
      if (wait_for_more (stream->in, timeout_ms) == 0 || !read_more (stream, error))
        return NULL;
    }
}
