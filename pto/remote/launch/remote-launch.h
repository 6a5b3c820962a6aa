/* remote-launch.h: how is the program begun that is a remote worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "common/remote-address.h"

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct _PtoRemoteStream PtoRemoteStream; /* remote/wire/remote-messages.h */
typedef struct _PtoRemoteJob PtoRemoteJob;       /* mpi-job.h */

/* What an address and options say; checked. NULL: they can not be followed. */
typedef struct
{
  char *address;
  PtoRemoteAddressKind kind;
  char **argv;      /* the program that is launched */
  const char *path; /* of a Unix socket, in address: then nothing is launched; or NULL */
  char *host;       /* for messages; NULL: this one */
  gint64 id;        /* that is given to it; PTO_WORKER_ID_ANY */
  guint n_devices;
  guint n_sub_workers;
  char *platform;            /* NULL: the default */
  char *fabric;              /* that is trusted; NULL: none */
  gboolean sends_serialized; /* functions of Python, as bytes, if the other end takes them */
  char *program;             /* pto-remote, where it is launched */
  /* mpi-job.c: what it is a rank of, and which; NULL: of nothing. */
  PtoRemoteJob *job;
  void (*unref_job) (PtoRemoteJob *job);
  guint rank;
} PtoRemoteSpec;

/* In the words of a launcher: where the host is. */
#define PTO_REMOTE_HOST_WORD "%h"

/* One that the library knows. */
gboolean pto_remote_is_launcher (const char *name);
/* The host in place of the word for it. */
char *pto_remote_put_host (const char *text, const char *host);

PtoRemoteSpec *pto_remote_spec_new (const char *address, GVariant *options, GError **error);
/* What launches pto-remote, or another program (NULL: the usual one), with those arguments where an
 * address says that is none of a listener; words and quotes: of the options launcher and shell. */
char **pto_remote_make_command (const char *address, const char *const *words, gboolean quotes,
                                const char *program, const char *const *arguments, GError **error);
void pto_remote_spec_free (PtoRemoteSpec *spec);
/* Begins a program that a terminal's Ctrl-C does not reach, and that gets that signal when the
 * calling thread ends. Descriptors: -1 is nothing, and ours. Any thread, as below. */
gboolean pto_remote_spawn (const char *const *argv, char **environment, int in, int out, int err,
                           int death_signal, GPid *process, GError **error);
/* Launches it, connected to stream. Any thread, also of a process that was forked. */
gboolean pto_remote_spec_launch (const PtoRemoteSpec *spec, PtoRemoteStream **stream, GPid *process,
                                 GError **error);
/* Returns why a function of this process cannot be sent there. */
GError *pto_remote_spec_make_refusal (const PtoRemoteSpec *spec, const char *name);

G_END_DECLS
