/* mpi-job.h: which remote workers are ranks of one job, and who begins its MPI?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A job is what its workers' bridges share: it is made before they are forked, and its changing
 * words lie in memory that all of them map. Beside each worker runs a process of MPI
 * (../../process/rank.h) from the first collective on. One mpirun, which the bridge of rank 0
 * begins, begins them all; a job that is broken is ended and begun anew by the next collective, as
 * another generation. Workers themselves are none of its processes, and outlive it.
 *
 * Thread safety: add() while the job is its maker's; the others by the thread that serves a bridge.
 */
#pragma once

#include "process/service.h"

#include "remote-launch.h"

G_BEGIN_DECLS

/* NULL: no memory. */
PtoRemoteJob *pto_remote_job_new (guint n_ranks, GError **error);
void pto_remote_job_unref (PtoRemoteJob *job);
guint pto_remote_job_get_n_ranks (const PtoRemoteJob *job);
/* FALSE: where it is, mpirun could begin nothing. */
gboolean pto_remote_job_check (const char *address, GError **error);
/* The spec of the next rank, which has a reference from now on. FALSE: as of check(). */
gboolean pto_remote_job_add (PtoRemoteJob *job, PtoRemoteSpec *spec, GError **error);

/* A name for a new life of the rank's worker to listen at; what knew an old one is broken. */
char *pto_remote_job_begin_life (const PtoRemoteSpec *spec);
/* Before a collective: the generation that it is of, which is begun if it has to be. Waits for
 * that as long as the call is wanted. */
gboolean pto_remote_job_join (const PtoRemoteSpec *spec, const struct pto_call *call,
                              guint32 *generation, GError **error);
/* A collective of it has not come to its end. */
void pto_remote_job_break (const PtoRemoteSpec *spec, guint32 generation);
/* Ends what rank 0 has begun; of others nothing. */
void pto_remote_job_end (const PtoRemoteSpec *spec);

G_END_DECLS
