/* rank-client.h: what does a worker do that is a rank of a job, when tensors are
 * exchanged?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * At the far end of a remote worker: it listens at a name that its parent has chosen, where the
 * process of MPI comes from that mpirun begins beside it (../process/rank.h), and gives that its
 * memory. A collective is an orchestration of this library that is looked up by its path. One
 * session is one process, so there is one rank. Thread safety: the serving thread.
 */
#pragma once

#include "pto-function.h"

G_BEGIN_DECLS

/* Where ranks look their functions up, and what these are called there. Arguments: their tensors,
 * then what they are about (enum pto_operator, or a rank), then the generation of the job, which
 * the near end says. */
#define PTO_REMOTE_RANK_ALLREDUCE "pto_rank:allreduce"
#define PTO_REMOTE_RANK_BROADCAST "pto_rank:broadcast"
#define PTO_REMOTE_RANK_ALLTOALL "pto_rank:alltoall"

/* NULL: it is none of these paths. Any thread. */
PtoOrchestrationFunc pto_remote_rank_find (const char *path);
/* From now on, at that name. */
gboolean pto_remote_rank_listen (const char *name, GError **error);
/* Hangs up. */
void pto_remote_rank_end (void);

G_END_DECLS
