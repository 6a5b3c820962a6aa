/* remote-messages.h: what do the two ends of a remote worker say to each other, and how?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A remote worker is a child of a worker like any other, a process behind a mailbox
 * (../../process/link.h). What that process does with a request is remote/parent/bridge.c: it says
 * it on, as messages of D-Bus, to a program that it has launched (remote/launch/remote-launch.c),
 * here or on another machine, whose input and output are the one connection there is. That program
 * is remote/worker/serve.c: a worker of level 3 of its own, and a child (worker/child-server.c)
 * that serves it as if the mailbox were there. So the engine, who is poisoned, who is begun again
 * and who is killed is what it is for every child; nobody but these files knows that memory is not
 * shared.
 *
 * The messages are those of D-Bus and their contract is the introspection data of
 * contract.c. The connection is no GDBusConnection, whose thread can not be had in a
 * process that was forked: the two ends read and write it themselves, one request at a time, and no
 * main context is needed. Who may be at the other end is the launcher's to know (ssh, or the parent
 * itself): the connection is inherited, nobody listens anywhere.
 *
 * Thread safety: as each function says.
 */
#pragma once

#include "pto-types.h"

#include <gio/gio.h>
#include <time.h>

G_BEGIN_DECLS

/* --- contract.c --- */

#define PTO_REMOTE_INTERFACE "org.libpto.Remote1"
/* What the two ends have to agree on in Hello. */
#define PTO_REMOTE_PROTOCOL 9u
/* Contents of a task's tensors up to this size, all together, travel in its call. More of them
 * follow messages that say how many bytes there are, as they lie in memory: to the task in parts
 * of no more than this size, so that it can be left off between two of them. */
#define PTO_REMOTE_INLINE_BYTES (G_GUINT64_CONSTANT (1) << 20)
/* How a program that is to be a far end tells it which fabric is trusted (fabric.c). */
#define PTO_REMOTE_FABRIC_VARIABLE "PTO_REMOTE_FABRIC"
/* No message is longer. */
#define PTO_REMOTE_MESSAGE_BYTES (G_GUINT64_CONSTANT (4) << 20)
/* Most tensors of a task, and of anything else in one message. */
#define PTO_REMOTE_ITEMS_MAX 4096u

/* What an end can do beyond the protocol: functions of Python as bytes. */
#define PTO_REMOTE_FEATURE_SERIALIZED "serialized-python"
/* Is it among those that the options of Hello, or of its reply, say? Any thread. */
gboolean pto_remote_has_feature (GVariant *options, const char *feature);

/* Does the message say what the contract has for it? Else it came from somebody who knows another
 * one. Any thread. */
gboolean pto_remote_check_call (GDBusMessage *message, GError **error);
/* A call of that method. wants_reply: is there a reply that says more than that it came? */
GDBusMessage *pto_remote_make_call (const char *method, GVariant *arguments, gboolean wants_reply);
/* An argument of type ay. */
static inline GVariant *
pto_remote_make_bytes (gconstpointer data, gsize size)
{
  return g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, data, size, 1);
}

/* Of CLOCK_MONOTONIC, by which all of a machine tell when a run began; ns. */
static inline guint64
pto_remote_get_time (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (guint64) now.tv_sec * 1000000000 + (guint64) now.tv_nsec;
}

/* A reply that refuses, with a GError as far as it can be told; and back. */
GDBusMessage *pto_remote_make_refusal (GDBusMessage *call, const GError *error);
void pto_remote_take_refusal (GDBusMessage *reply, GError **error);

/* --- message-stream.c --- */

typedef struct _PtoRemoteStream PtoRemoteStream;

/* Takes the descriptors, which may be the same. */
PtoRemoteStream *pto_remote_stream_new (int in, int out);
void pto_remote_stream_free (PtoRemoteStream *stream);
/* For poll() only: whoever frees the stream waits for who does that first. */
int pto_remote_stream_get_in (PtoRemoteStream *stream);
/* As if the other end had hung up. Any thread. */
void pto_remote_stream_shut (PtoRemoteStream *stream);
/* What has come and is no message, up to the end of its line, as it can be shown; NULL: nothing. Of
 * who reads. */
char *pto_remote_stream_dup_line (PtoRemoteStream *stream);
/* A number that changes whenever the other end is heard of: something was read, or it took a part
 * of what is too much for the way between. Any thread. */
guint pto_remote_stream_get_signs (PtoRemoteStream *stream);
/* It was heard of by another way. Any thread. */
void pto_remote_stream_hear (PtoRemoteStream *stream);
/* The message, if it can be sent without waiting for anybody: FALSE without an error: not now. Any
 * thread. */
gboolean pto_remote_stream_try_send (PtoRemoteStream *stream, GDBusMessage *message,
                                     GError **error);
/* Gives it a number, which serial (or NULL) is told, and writes all of it. Any thread. */
gboolean pto_remote_stream_send (PtoRemoteStream *stream, GDBusMessage *message, guint32 *serial,
                                 GError **error);
/* The same, and behind it, with nothing between, so many bytes, which are not copied before. */
gboolean pto_remote_stream_send_with (PtoRemoteStream *stream, GDBusMessage *message,
                                      gconstpointer data, gsize size, guint32 *serial,
                                      GError **error);
/* Bytes that follow the last message that was received; waits for all of them. Who receives calls
 * it, and before the next message. */
gboolean pto_remote_stream_read (PtoRemoteStream *stream, gpointer to, gsize size, GError **error);
/* The next message; NULL without an error: nothing came for so long (-1: waits). The end of the
 * connection is G_IO_ERROR_CLOSED. One thread at a time. */
GDBusMessage *pto_remote_stream_receive (PtoRemoteStream *stream, int timeout_ms, GError **error);

G_END_DECLS
