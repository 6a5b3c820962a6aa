/* core-clusters.c: which clusters of its chip does an orchestration function have?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What is known here of those that it holds is what the chip knows, so that what is wrong with one
 * is told where it is said, and the run goes on.
 */
#include "config.h"

#include "orchestrator.h"

#include "base/error.h"
#include "common/text.h"

/* No chip has more clusters, and no cluster more cores of a type: it may be another process that
 * says how many. */
#define CLUSTERS_MAX 4096
#define CORES_MAX 32

typedef struct
{
  PtoOrchestratorCall base;

  int cluster; /* the result of an allocation */
  PtoCoreType core_type;
  gint32 cores[CORES_MAX];
  gint32 n_cores;
} Call;

gboolean
pto_orchestrator_check_kernels (PtoOrchestrator *self, GError **error)
{
  if (self->machine->ops->submit == NULL)
    return TRUE;
  g_set_error (
      error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
      _ ("a task of level %u runs a registered callable: use submit_next_level or submit_sub, "
         "or their groups; kernels, their blocks and clusters are for chips"),
      self->node->level);
  return FALSE;
}

static void
call_ask (gpointer data)
{
  Call *call = data;
  PtoOrchestrator *self = call->base.self;
  PTO2Runtime *rt = self->rt;
  gint32 n = -1;
  gint32 n_cores[PTO_CORE_TYPES] = { 0 };

  call->base.failed = TRUE;
  if (pto_orchestrator_has_failed (self))
    return;
  n = rt->ops->cluster_count (rt);
  for (guint type = 0; type < PTO_CORE_TYPES && n > 0; type++)
    {
      n_cores[type] = rt->ops->cluster_cores (rt, 0, (gint32) type, NULL, 0);
      if (n_cores[type] < 0)
        n = -1;
    }
  if (n <= 0 || n > CLUSTERS_MAX)
    return;
  for (guint type = 0; type < PTO_CORE_TYPES; type++)
    self->n_cores[type] = (guint) n_cores[type];
  self->clusters = g_new0 (guint, n);
  self->n_clusters = (guint) n;
  call->base.failed = FALSE;
}

gboolean
pto_orchestrator_ask_clusters (PtoOrchestrator *self, GError **error)
{
  Call call = { .base.self = self };

  return self->n_clusters > 0 || pto_orchestrator_make_call (self, call_ask, &call.base, error);
}

static gboolean
is_held (PtoOrchestrator *self, int cluster)
{
  return cluster >= 0 && (guint) cluster < self->n_clusters && self->clusters[cluster] > 0;
}

gboolean
pto_orchestrator_check_cluster (PtoOrchestrator *self, const char *name, int cluster,
                                GError **error)
{
  if (is_held (self, cluster))
    return TRUE;
  g_set_error (
      error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
      _ ("kernel \"%s\": cluster %d is not allocated in this run: submit what is for it "
         "between allocate_cluster(), which gives its number, and free_cluster(), in its scope"),
      name, cluster);
  return FALSE;
}

static void
call_allocate (gpointer data)
{
  Call *call = data;
  PTO2Runtime *rt = call->base.self->rt;

  call->cluster = -1;
  if (!pto_orchestrator_has_failed (call->base.self))
    call->cluster = (pto2_rt_allocate_cluster) (rt);
  call->base.failed = call->cluster < 0 || (guint) call->cluster >= call->base.self->n_clusters;
}

/**
 * pto_orchestrator_allocate_cluster:
 * @orchestrator: an orchestrator of a chip
 * @error: where to say why there is none
 *
 * Allocates a cluster: nobody else does until it is free again.
 *
 * Tasks are for it whose arguments say so ([method@Pto.TaskArgs.set_cluster]); tasks that are for
 * no cluster run on its idle cores all the same. It is free when it was freed, or the current scope
 * has ended, and the tasks that were submitted for it are done. While all are taken this waits, as
 * long as one becomes free without this function.
 *
 * Fails with %PTO_ERROR_NOT_SUPPORTED at level 3 and up, with %PTO_ERROR_RUN_FAILED, among others
 * where none would ever become free, with %PTO_ERROR_CLOSED or %PTO_ERROR_WRONG_THREAD. Source:
 * seed 000 section 16. Thread safety: orchestrator thread.
 *
 * Returns: its number, from 0 on; -1: there is none
 *
 * Since: 0.1
 */
int
pto_orchestrator_allocate_cluster (PtoOrchestrator *orchestrator, GError **error)
{
  Call call = { .base.self = orchestrator };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), -1);
  g_return_val_if_fail (error == NULL || *error == NULL, -1);

  if (!pto_orchestrator_check_usable (orchestrator, error)
      || !pto_orchestrator_check_kernels (orchestrator, error)
      || !pto_orchestrator_ask_clusters (orchestrator, error)
      || !pto_orchestrator_make_call (orchestrator, call_allocate, &call.base, error))
    return -1;
  orchestrator->clusters[call.cluster] = orchestrator->scopes + 1;
  return call.cluster;
}

static void
call_free (gpointer data)
{
  Call *call = data;
  PTO2Runtime *rt = call->base.self->rt;

  call->base.failed = pto_orchestrator_has_failed (call->base.self);
  if (!call->base.failed)
    (pto2_rt_free_cluster) (rt, call->cluster);
}

/**
 * pto_orchestrator_free_cluster:
 * @orchestrator: an orchestrator
 * @cluster: a number that [method@Pto.Orchestrator.allocate_cluster] gave in this run
 * @error: where to say why not
 *
 * Gives a cluster back. Does not wait: it is free when the tasks that were submitted for it are
 * done.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when it is not allocated, and otherwise like
 * [method@Pto.Orchestrator.allocate_cluster]. Source: seed 000 section 16. Thread safety:
 * orchestrator thread.
 *
 * Returns: %TRUE if it was given back
 *
 * Since: 0.1
 */
gboolean
pto_orchestrator_free_cluster (PtoOrchestrator *orchestrator, int cluster, GError **error)
{
  Call call = { .base.self = orchestrator, .cluster = cluster };

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_orchestrator_check_usable (orchestrator, error)
      || !pto_orchestrator_check_kernels (orchestrator, error))
    return FALSE;
  if (!is_held (orchestrator, cluster))
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("cluster %d is freed, but it is not allocated in this run: it was freed before, "
             "its scope has ended, or allocate_cluster() has not given that number"),
          cluster);
      return FALSE;
    }
  orchestrator->clusters[cluster] = 0;
  return pto_orchestrator_make_call (orchestrator, call_free, &call.base, error);
}

/**
 * pto_orchestrator_get_n_clusters:
 * @orchestrator: an orchestrator
 *
 * Gives how many clusters the chip has in this run, numbered from 0.
 *
 * Thread safety: orchestrator thread.
 *
 * Returns: a number; 0 at level 3 and up, and when the run has failed or is over
 *
 * Since: 0.1
 */
guint
pto_orchestrator_get_n_clusters (PtoOrchestrator *orchestrator)
{
  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), 0);

  if (!pto_orchestrator_check_usable (orchestrator, NULL)
      || !pto_orchestrator_check_kernels (orchestrator, NULL)
      || !pto_orchestrator_ask_clusters (orchestrator, NULL))
    return 0;
  return orchestrator->n_clusters;
}

static void
call_cores (gpointer data)
{
  Call *call = data;
  PTO2Runtime *rt = call->base.self->rt;

  call->n_cores = -1;
  if (!pto_orchestrator_has_failed (call->base.self))
    call->n_cores = rt->ops->cluster_cores (rt, call->cluster, (gint32) call->core_type,
                                            call->cores, CORES_MAX);
  call->base.failed = call->n_cores < 0 || call->n_cores > CORES_MAX;
}

/**
 * pto_orchestrator_dup_cluster_cores:
 * @orchestrator: an orchestrator of a chip
 * @cluster: the number of a cluster, allocated or not
 * @core_type: which of its cores
 * @n_cores: (out): how many there are
 * @error: where to say why they are not known
 *
 * Gives the numbers of a cluster's cores of a type, as messages, traces and pictures have them: 3
 * is AIC3.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when there is no such cluster, and otherwise like
 * [method@Pto.Orchestrator.allocate_cluster]. Source: seed 000 section 16.4. Thread safety:
 * orchestrator thread.
 *
 * Returns: (transfer full) (array length=n_cores): numbers
 *
 * Since: 0.1
 */
guint *
pto_orchestrator_dup_cluster_cores (PtoOrchestrator *orchestrator, int cluster,
                                    PtoCoreType core_type, gsize *n_cores, GError **error)
{
  Call call = { .base.self = orchestrator, .cluster = cluster, .core_type = core_type };
  guint *cores;

  g_return_val_if_fail (PTO_IS_ORCHESTRATOR (orchestrator), NULL);
  g_return_val_if_fail (n_cores != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  *n_cores = 0;
  if (core_type != PTO_CORE_AIC && core_type != PTO_CORE_AIV)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("there is no type of core %d: it is PTO_CORE_AIC or PTO_CORE_AIV"),
                   (int) core_type);
      return NULL;
    }
  if (!pto_orchestrator_check_usable (orchestrator, error)
      || !pto_orchestrator_check_kernels (orchestrator, error)
      || !pto_orchestrator_ask_clusters (orchestrator, error))
    return NULL;
  if (cluster < 0 || (guint) cluster >= orchestrator->n_clusters)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("there is no cluster %d: this chip has %u, from 0 on (parameter clusters, and "
             "block_dim of the run)"),
          cluster, orchestrator->n_clusters);
      return NULL;
    }
  if (!pto_orchestrator_make_call (orchestrator, call_cores, &call.base, error))
    return NULL;
  *n_cores = (gsize) call.n_cores;
  cores = g_new (guint, MAX (call.n_cores, 1));
  for (gint32 i = 0; i < call.n_cores; i++)
    cores[i] = (guint) call.cores[i];
  return cores;
}
