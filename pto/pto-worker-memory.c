/* pto-worker-memory.c: how does a program use the memory of a worker's device?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-worker-private.h"

#include "pto-error-private.h"
#include "pto-orchestrator-private.h"

/* One use, on its way to the thread that may make it. */
typedef struct
{
  PtoMachine *machine;
  PtoMachineMemory memory;
  gboolean done;
  GError *error;
} MemoryCall;

static void
call_memory (gpointer data)
{
  MemoryCall *call = data;

  call->done = call->machine->ops->use_memory (call->machine, &call->memory, &call->error);
}

/* On the machine's thread: inside an orchestration function that is the run's, otherwise whoever
 * takes the machine. */
static gboolean
use_memory (PtoWorker *self, PtoMachineMemory *memory, GError **error)
{
  g_autoptr (PtoOrchestrator) orchestrator = NULL;
  MemoryCall call = { .machine = self->machine, .memory = *memory };

  if (self->machine == NULL || self->machine->ops->use_memory == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                   "a worker of level %u has no device memory: use a buffer", self->level);
      return FALSE;
    }
  g_mutex_lock (&self->lock);
  if (self->current != NULL && pto_orchestrator_is_own_thread (self->current))
    orchestrator = g_object_ref (self->current);
  g_mutex_unlock (&self->lock);
  if (orchestrator != NULL)
    pto_orchestrator_call (orchestrator, call_memory, &call);
  else
    {
      if (!pto_worker_take (self, FALSE, NULL, error))
        return FALSE;
      call_memory (&call);
      pto_worker_give_back (self);
    }
  memory->device = call.memory.device;
  if (!call.done)
    g_propagate_error (error, call.error);
  return call.done;
}

/**
 * pto_worker_malloc:
 * @worker: an initialized worker
 * @size: bytes
 * @error: where to say why not
 *
 * Takes device memory, to be given back with [method@Pto.Worker.free].
 *
 * Fails with %PTO_ERROR_NO_MEMORY. Source: seed 003. Thread safety: any thread; waits for a run
 * that is under way.
 *
 * Returns: an address, 64-byte aligned; 0 on failure
 *
 * Since: 0.1
 */
guint64
pto_worker_malloc (PtoWorker *worker, guint64 size, GError **error)
{
  PtoMachineMemory call = { .what = PTO_MEMORY_MALLOC, .size = size };

  g_return_val_if_fail (PTO_IS_WORKER (worker), 0);
  g_return_val_if_fail (error == NULL || *error == NULL, 0);

  return use_memory (worker, &call, error) ? call.device : 0;
}

/**
 * pto_worker_free:
 * @worker: an initialized worker
 * @address: what [method@Pto.Worker.malloc] gave
 * @error: where to say why not
 *
 * Gives back device memory.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for another address. Source: seed 003. Thread safety: any
 * thread; waits for a run that is under way.
 *
 * Returns: %TRUE if it was given back
 *
 * Since: 0.1
 */
gboolean
pto_worker_free (PtoWorker *worker, guint64 address, GError **error)
{
  PtoMachineMemory call = { .what = PTO_MEMORY_FREE, .device = address };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return use_memory (worker, &call, error);
}

/**
 * pto_worker_copy_to:
 * @worker: an initialized worker
 * @address: where to, in device memory
 * @bytes: what
 * @error: where to say why not
 *
 * Copies bytes to device memory.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the range does not lie in one allocation. Source: seed
 * 003. Thread safety: any thread; waits for a run that is under way.
 *
 * Returns: %TRUE if they were copied
 *
 * Since: 0.1
 */
gboolean
pto_worker_copy_to (PtoWorker *worker, guint64 address, GBytes *bytes, GError **error)
{
  gsize size;
  gconstpointer data;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (bytes != NULL, FALSE);

  data = g_bytes_get_data (bytes, &size);
  return pto_worker_copy_to_address (worker, address, (guint64) (guintptr) data, size, error);
}

/**
 * pto_worker_copy_from:
 * @worker: an initialized worker
 * @address: where from, in device memory
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies bytes from device memory.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the range does not lie in one allocation. Source: seed
 * 003. Thread safety: any thread; waits for a run that is under way.
 *
 * Returns: (transfer full): bytes
 *
 * Since: 0.1
 */
GBytes *
pto_worker_copy_from (PtoWorker *worker, guint64 address, guint64 size, GError **error)
{
  g_autofree gpointer data = NULL;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  data = g_try_malloc (MAX (size, 1));
  if (data == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY,
                   "no memory for %" G_GUINT64_FORMAT " bytes", size);
      return NULL;
    }
  if (!pto_worker_copy_from_address (worker, (guint64) (guintptr) data, address, size, error))
    return NULL;
  return g_bytes_new_take (g_steal_pointer (&data), size);
}

/**
 * pto_worker_copy_to_address:
 * @worker: an initialized worker
 * @address: where to, in device memory
 * @host: where from, in this process
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies to device memory from any memory of this process, such as that of an array.
 *
 * Fails like [method@Pto.Worker.copy_to]. Source: seed 003. Thread safety: any thread; waits for a
 * run that is under way.
 *
 * Returns: %TRUE if it was copied
 *
 * Since: 0.1
 */
gboolean
pto_worker_copy_to_address (PtoWorker *worker, guint64 address, guint64 host, guint64 size,
                            GError **error)
{
  PtoMachineMemory call = {
    .what = PTO_MEMORY_COPY_TO, .device = address, .host = (gpointer) (guintptr) host, .size = size
  };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return use_memory (worker, &call, error);
}

/**
 * pto_worker_copy_from_address:
 * @worker: an initialized worker
 * @host: where to, in this process
 * @address: where from, in device memory
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies from device memory to any memory of this process, such as that of an array.
 *
 * Fails like [method@Pto.Worker.copy_from]. Source: seed 003. Thread safety: any thread; waits for
 * a run that is under way.
 *
 * Returns: %TRUE if it was copied
 *
 * Since: 0.1
 */
gboolean
pto_worker_copy_from_address (PtoWorker *worker, guint64 host, guint64 address, guint64 size,
                              GError **error)
{
  PtoMachineMemory call = { .what = PTO_MEMORY_COPY_FROM,
                            .device = address,
                            .host = (gpointer) (guintptr) host,
                            .size = size };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return use_memory (worker, &call, error);
}
