/* cluster.h: what do those who ask for a cluster and the process that keeps it say to each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A process that stays keeps a cluster: it holds the launchers of all that listen, through which it
 * asks them how they are, and with whose end they end. So nothing of a cluster is left when it is
 * gone, whatever ended it. It answers at a socket that only its user reaches.
 *
 * To it: a line, "status" or "down". From it, to "status": a line for each place, its fields apart
 * by tabs in the order of ClusterField; to "down": nothing, and the connection ends when all has.
 * While it comes up it reports on its standard output: lines of one place each, as above, then one
 * that begins with "up" or, with the reason, "failed".
 */
#pragma once

#include "tool.h"

G_BEGIN_DECLS

typedef enum
{
  CLUSTER_FIELD_NAME,
  CLUSTER_FIELD_STATE, /* a word, in English */
  CLUSTER_FIELD_GENERATION,
  CLUSTER_FIELD_HOST,
  CLUSTER_FIELD_PROCESS,
  CLUSTER_FIELD_SESSIONS, /* there now, and so far */
  CLUSTER_FIELD_BEGUN,
  CLUSTER_FIELD_ADDRESS,
  CLUSTER_FIELD_WORKERS, /* that each program has there */
  CLUSTER_FIELD_JOB,     /* that they are ranks of; empty: of none */
  CLUSTER_FIELD_RANK,    /* of the first of them */
  CLUSTER_N_FIELDS
} ClusterField;

#define CLUSTER_UP "up"
#define CLUSTER_FAILED "failed "

/* These three are as they should be. */
#define CLUSTER_READY "ready"
#define CLUSTER_ON_DEMAND "on-demand" /* each program launches it */
#define CLUSTER_ELSEWHERE "elsewhere" /* somebody else has it listen */

/* What there is of a cluster that is up, in directories that are this user's alone. */
typedef struct
{
  char *file; /* as a person would name it */
  char *real; /* the same, whatever it was named */
  char *log;
  char *socket;
  char *lock; /* held by its keeper */
} ClusterPaths;

/* Makes the directories. The same for each name that the file has. */
gboolean cluster_paths_init (ClusterPaths *paths, const char *file, GError **error);
void cluster_paths_clear (ClusterPaths *paths);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ClusterPaths, cluster_paths_clear)

/* A descriptor; -1: somebody keeps it. */
int cluster_take_lock (const ClusterPaths *paths, GError **error);
/* Takes it all away, but for the log. */
void cluster_release_lock (const ClusterPaths *paths, int lock);
/* To write to its end; -1. */
int cluster_open_log (const ClusterPaths *paths, GError **error);

/* remote.c: would who has that directory of certificates get in, of the authority of submitter,
 * which is another one? host: to whom one connects; NULL: it is the one who submits. */
gboolean remote_check_certificates (const char *directory, const char *submitter, const char *host,
                                    GError **error);

/* The process that keeps it, until it ends: the program's exit status. Reports as above. */
gboolean cluster_keep (const ClusterPaths *paths, GError **error);

G_END_DECLS
