/* worker-remote.c: how is a worker of another machine put below this one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-remote.h"

#include "base/error.h"
#include "common/text.h"
#include "remote/launch/mpi-job.h"
#include "worker.h"

static gboolean
check_level (PtoWorker *worker, GError **error)
{
  if (worker->node.level > PTO_REMOTE_LEVEL)
    return TRUE;
  return pto_refuse (
      error, PTO_ERROR_INVALID_ARGS,
      _ ("a remote worker is one of level %d, and is below one of level %d or more, not %u"),
      PTO_REMOTE_LEVEL, PTO_REMOTE_LEVEL + 1, worker->node.level);
}

PtoWorker *
pto_worker_new_remote (const char *address, GVariant *options, GError **error)
{
  PtoRemoteSpec *spec = pto_remote_spec_new (address, options, error);
  PtoWorker *worker;

  if (spec == NULL)
    return NULL;
  worker = pto_worker_new_host (PTO_REMOTE_LEVEL, spec->n_devices, spec->n_sub_workers,
                                spec->platform, error);
  if (worker != NULL)
    worker->node.remote = spec;
  else
    pto_remote_spec_free (spec);
  return worker;
}

gboolean
pto_worker_add_remotes (PtoWorker *worker, PtoWorker *const *remotes, guint n, GError **error)
{
  if (!check_level (worker, error))
    return FALSE;
  /* What is below them is nobody's else to begin again. */
  for (guint i = 0; i < n; i++)
    remotes[i]->node.restart = worker->node.restart;
  return pto_worker_add_workers (worker, remotes, n, error);
}

/**
 * pto_worker_add_remote_worker:
 * @worker: a new worker of level 4 or more
 * @address: how it is launched: `local:` on this machine, `ssh://host`, `srun://host` or
 *   `mpirun://host`; or where it listens: `tls://host:port`, `unix:/path`
 * @options: (nullable): of type `a{sv}`, see below; one that is floating is consumed
 * @error: where to say why not
 *
 * Puts a worker of level 3 below this one that shares no memory with it.
 *
 * The program `pto-remote` is launched when @worker is started, here or there, and is ended when it
 * is closed, or when the connection is lost. Its standard input and output are the connection: no
 * port is opened, and who may connect is what the launcher says. Where `pto-remote --listen` was
 * begun, it is connected to instead: by TLS 1.3 with certificates of both ends, or as the same user
 * through a Unix socket. To @worker it is a child like any
 * other: its tasks are submitted by [method@Pto.Orchestrator.submit_next_level], its inputs are
 * copied there before a task and its outputs back after it, and it is begun again if
 * [property@Pto.Worker:restart] of @worker says so. That holds for what is below it, too, but where
 * there is a `trusted-fabric`.
 *
 * It runs what can be sent: orchestrations that it imports
 * ([ctor@Pto.ImportedFunction.new], from the directories in `roots` only) or that are a symbol of a
 * shared object ([ctor@Pto.ImportedFunction.new_for_symbol]), whose contents are sent once. What is
 * registered on the worker that this gives, before the start, is there for them, by name
 * ([method@Pto.Worker.lookup]): kernels for its chips, SUB functions. A function of this process is
 * refused when a task of it goes there.
 *
 * Options, by name: `devices` (`u`, chips), `sub-workers` (`u`), `platform` (`s`), `roots` (`as`,
 * directories there), `python` (`s`, an interpreter there; without one nothing can be imported) and
 * `program` (`s`, where `pto-remote` is; on this machine the environment may say so in PTO_REMOTE).
 * With `launcher` (`as`, words of which `%h` is the host; the program and its arguments follow, for
 * a shell there if `shell`, `b`, says so) the address is any name, `://` and the host. Of who
 * listens, roots and interpreter are what it was begun with; `certificates` (`s`) is the directory
 * with ca.pem, cert.pem and key.pem of this end, for `tls:`. `trusted-fabric` (`s`, `ucx`): the
 * network between both ends is trusted, and large tensors go by UCX, which has no keys; who listens
 * has to have been begun with it, too. `id` (`u`): what it is called by submits and in its path,
 * that no other worker below @worker has; otherwise the lowest that is free. `serialized-python`
 * (`b`): functions of Python that have no import path are sent as bytes, if the other end takes
 * them (`pto-remote --serialized-python`); the binding makes them.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for another address, option or level, and like
 * [method@Pto.Worker.add_worker]. Source: seed 001 section 2. Thread safety: any thread.
 *
 * Returns: (transfer none): the worker, to set its parameters and to register on it
 *
 * Since: 0.1
 */
PtoWorker *
pto_worker_add_remote_worker (PtoWorker *worker, const char *address, GVariant *options,
                              GError **error)
{
  g_autoptr (GVariant) kept = options != NULL ? g_variant_ref_sink (options) : NULL;
  g_autoptr (PtoWorker) child = NULL;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (address != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  child = check_level (worker, error) ? pto_worker_new_remote (address, kept, error) : NULL;
  return child != NULL && pto_worker_add_remotes (worker, &child, 1, error) ? child : NULL;
}

/* An id is that of one worker. */
static gboolean
check_id (PtoWorker *child, GError **error)
{
  if (child->node.remote->id < 0)
    return TRUE;
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                     _ ("the option id is for one worker: those of a job get the ids that are "
                        "free"));
}

/**
 * pto_worker_add_remote_job:
 * @worker: a new worker of level 4 or more
 * @addresses: (array zero-terminated=1): how each of them is launched
 * @options: (nullable): of type `a{sv}`, the same for all
 * @error: where to say why not
 *
 * Puts several workers below this one that are the ranks of one job of MPI, in this order.
 *
 * Each is one of [method@Pto.Worker.add_remote_worker]. Collectives of tensors that stay at them
 * ([method@Pto.Orchestrator.make_tensor_at]), one at each, are MPI's own: the first of them has
 * `mpirun` (Open MPI's) begin a process beside each worker, `pto-mpi-rank`, which exchanges what is
 * in its memory with the others. It is looked for where `pto-remote` is. The workers themselves do
 * not depend on it: a job that has broken is begun anew by the next collective.
 *
 * Fails like [method@Pto.Worker.add_remote_worker], for no address at all, and for `tls:`, where
 * mpirun begins nothing; then none of them was added. Thread safety: any thread.
 *
 * Returns: (transfer container) (array zero-terminated=1): the workers, by rank
 *
 * Since: 0.1
 */
PtoWorker **
pto_worker_add_remote_job (PtoWorker *worker, const char *const *addresses, GVariant *options,
                           GError **error)
{
  g_autoptr (GPtrArray) children = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GVariant) kept = options != NULL ? g_variant_ref_sink (options) : NULL;
  PtoRemoteJob *job = NULL;
  guint n = addresses != NULL ? g_strv_length ((char **) addresses) : 0;
  gboolean ok;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  ok = check_level (worker, error);
  if (ok && n == 0)
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                  _ ("a job has no ranks: give an address for each"));
      ok = FALSE;
    }
  if (ok)
    job = pto_remote_job_new (n, error);
  ok = ok && job != NULL;
  for (guint i = 0; ok && i < n; i++)
    {
      PtoWorker *child = pto_worker_new_remote (addresses[i], kept, error);

      ok = child != NULL;
      if (ok)
        g_ptr_array_add (children, child);
      ok = ok && check_id (child, error) && pto_remote_job_add (job, child->node.remote, error);
    }
  if (job != NULL)
    pto_remote_job_unref (job);
  if (!ok || !pto_worker_add_workers (worker, (PtoWorker *const *) children->pdata, n, error))
    return NULL;
  /* They are the worker's by now. */
  g_ptr_array_add (children, NULL);
  g_ptr_array_set_free_func (children, NULL);
  for (guint i = 0; i < n; i++)
    g_object_unref (g_ptr_array_index (children, i));
  return (PtoWorker **) g_ptr_array_free (g_steal_pointer (&children), FALSE);
}

/**
 * pto_worker_dup_remote_address:
 * @worker: a worker
 *
 * Gives the address of a remote worker.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable): as [method@Pto.Worker.add_remote_worker] was given it;
 * %NULL: it is none
 *
 * Since: 0.1
 */
char *
pto_worker_dup_remote_address (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  return worker->node.remote != NULL ? g_strdup (worker->node.remote->address) : NULL;
}
