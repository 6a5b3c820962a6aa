/* private.h: what do the parts of pto-remote share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One program, and one process for each of its parts, so that none can harm another:
 *
 *   pto-remote                 the session: a worker, which talks through its standard input
 *   pto-remote --listen        waits for connections, and launches for each of them
 *   pto-remote --accept          the gate of one: TLS, who it is, then its session and a relay
 *   pto-remote --connect       the relay of who submits
 *
 * A session never has a thread or a key that is not its own: TLS ends in the relay, which copies
 * between the connection and a pair of sockets.
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct
{
  char *listen;  /* the address, or NULL */
  char *connect; /* the same */
  gboolean accept;
  gboolean attached;  /* whoever listens ends with standard input, which asks how it is */
  char *certificates; /* directory; NULL: no TLS */
  char **allowed;     /* names of parents; NULL: all */
  char *python;
  char **roots;
  char *fabric; /* that is trusted, or NULL */
  gboolean takes_serialized;
  int max_sessions;
  int max_handshakes;
  int timeout; /* s */
} Options;

/* Control characters become "?". */
void remote_make_printable (char *text);
/* A line on standard error, without control characters: some of it is somebody else's. */
void remote_say (const char *format, ...) G_GNUC_PRINTF (1, 2);
#define REMOTE_IS_FULL "there are as many sessions as --max-sessions says"
/* Looks whether standard output has been written. Returns 0, or says why not and returns the exit
 * status. Does not return if the reader has gone. */
int remote_finish_output (void);
/* The exit status for that error. */
int remote_get_status (const GError *error);

/* --- socket.c --- */

gboolean remote_is_tls (const char *address);
/* tls://host:port or unix:/path? least: the lowest port. */
gboolean remote_check_address (const char *address, guint least, GError **error);
/* Descriptors, and the name of each, with the port that it has got. A Unix socket that nobody
 * listens at any more is replaced. */
gboolean remote_listen (const char *address, GArray *sockets, GPtrArray *names, GError **error);
void remote_stop_listening (const char *address);
/* A connection to tls://host:port, or -1. */
int remote_connect (const char *address, int timeout, char **host, GError **error);
/* Small packets go at once, and a machine that is silent for so long is gone. */
void remote_tune (int fd, int timeout);
/* Is whoever connected to that Unix socket this user, or root? */
gboolean remote_check_user (int fd, GError **error);
/* "127.0.0.1:4711" */
char *remote_dup_peer (int fd);

/* --- listen.c, relay.c: their exit statuses --- */

int remote_listen_main (const Options *options);
int remote_connect_main (const Options *options);
int remote_accept_main (const Options *options);

/* --- python.c --- */

gboolean remote_check_roots (const Options *options, GError **error);
/* Runs the interpreter, if there is one, to see whether it can import what a session needs. */
gboolean remote_check_python (const Options *options, GError **error);
/* Of a session: does not return, or refuses. */
int remote_become_python (const Options *options);

/* --- refuse.c --- */

/* In answer to the Hello of who is at the other end of a connection that is new, and refused. */
GBytes *remote_make_refusal (const char *why);
void remote_refuse (int fd, const char *why);
/* Of a session: through standard output, and in a line; the exit status. */
int remote_refuse_main (const char *why);

/* --- processes --- */

/* The same program once more, which dies with the calling thread by that signal. It has in as
 * standard input, out as standard output, and errors as standard error; -1: ours. */
gboolean remote_spawn (const char *const *argv, int in, int out, int errors, int death_signal,
                       GPid *process, GError **error);
/* Where the environment has this a worker says on standard error, before anything else, which one
 * it is. The same is in remote/worker/serve.h, of the library. */
#define REMOTE_LISTENED "PTO_REMOTE_LISTENED"
#define REMOTE_IS "pto-remote: this is "
/* With the options of a session; up to a NULL. */
GPtrArray *remote_make_argv (const Options *options);

/* --- tls.c --- */

typedef struct _RemoteTls RemoteTls;

/* Is there what is wanted, and not over? */
gboolean remote_tls_read_certificates (const char *directory, GError **error);
/* And would the other end, of the same authority, take it for a parent, or for a worker? */
gboolean remote_tls_check (const char *directory, gboolean is_parent, GError **error);
/* Takes fd. host: whom it has to be, by name; NULL: this end is the one that was connected to, and
 * the other has to be a parent, of one of those names if there are some. */
RemoteTls *remote_tls_new (int fd, const char *directory, const char *host, char **allowed,
                           GError **error);
/* Blocks until its end, or for so many seconds. */
gboolean remote_tls_handshake (RemoteTls *tls, int timeout, GError **error);
/* Whose certificate it has shown. */
const char *remote_tls_get_name (RemoteTls *tls);
/* None of these blocks. The number of bytes; 0: not now; -1: the end, with an error when it is not
 * the other end's own. */
gssize remote_tls_read (RemoteTls *tls, gpointer data, gsize size, GError **error);
/* Takes as much as there is room for, which is small, and sends what the network takes. */
gssize remote_tls_write (RemoteTls *tls, gconstpointer data, gsize size, GError **error);
/* Sends what is still here. FALSE: that can not be done any more. */
gboolean remote_tls_flush (RemoteTls *tls);
/* Is there anything that the network has not taken yet? */
gboolean remote_tls_has_unsent (RemoteTls *tls);
/* Says the end. */
void remote_tls_say_end (RemoteTls *tls);
int remote_tls_get_fd (RemoteTls *tls);

G_END_DECLS
