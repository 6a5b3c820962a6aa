/* worker-memory.c: how does a program use the memory of a worker's device?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "worker.h"

#include "base/error.h"
#include "common/text.h"
#include "orchestrator/orchestrator.h"
#include "values/address-range.h"
#include "values/buffer.h"

#include <string.h>

/* Of what is copied by way of this process. */
#define PART_BYTES (G_GUINT64_CONSTANT (1) << 20)

/* The device memory of a buffer, and of those that are parts of it. While the machine has it in its
 * books, its worker has it in its blocks; when that is closed it is given to the buffer. */
typedef struct
{
  gatomicrefcount ref_count; /* of buffers; W: any thread, with the keeper's lock */
  PtoWorker *worker;         /* owned */
  PtoWorker *keeper; /* owned; whose machine has the books: the worker, or the one above it */
  guint64 address;   /* immutable once it is in the worker's blocks, as the next two */
  guint64 number;    /* the keeper's; never given twice */
  guint32 life;      /* of a remote worker, that it is of */
  /* W: take_down, with the worker's lock, when it takes this out of the blocks. */
  guint64 size;
  guint64 begin; /* what is given back then, with its guards: size bytes from there */
  void (*give) (guint64 address, guint64 size);
} Block;

/* Of a remote worker it is the one above it that has a machine here. */
static PtoWorker *
get_keeper (PtoWorker *worker)
{
  return worker->node.remote != NULL && worker->node.parent != NULL ? worker->node.parent->worker
                                                                    : worker;
}

/* One use, on its way to the thread that may make it. */
typedef struct
{
  PtoWorker *worker; /* whose machine it is */
  PtoMachine *machine;
  PtoMachineMemory memory;
  Block *block; /* to be made of the result of MALLOC; NULL: a program has the number only */
  PtoOrchestrator *orchestrator; /* inside of its function; or NULL */
  GCancellable *cancellable;     /* of the calling thread, or NULL */
  gboolean done;
  GError *error;
} MemoryCall;

static bool
is_unwanted (void *data)
{
  const MemoryCall *call = data;

  return g_cancellable_is_cancelled (call->cancellable)
         || (call->orchestrator != NULL && pto_orchestrator_is_cancelled (call->orchestrator))
         || g_atomic_int_get (&call->worker->closing);
}

static void
call_memory (gpointer data)
{
  MemoryCall *call = data;

  call->done = call->machine->ops->use_memory (call->machine, &call->memory, &call->error);
  if (call->done && call->block != NULL)
    {
      /* Before the machine is given back: the worker may be closed next. */
      call->block->address = call->memory.device;
      call->block->life = call->memory.life;
      g_mutex_lock (&call->worker->lock);
      call->block->number = ++call->worker->n_blocks;
      g_hash_table_insert (call->worker->blocks, &call->block->address, call->block);
      g_mutex_unlock (&call->worker->lock);
    }
}

/* On the machine's thread: inside an orchestration function that is the run's, otherwise whoever
 * takes the machine. */
static gboolean
use_memory (PtoWorker *self, PtoMachineMemory *memory, Block *block, GError **error)
{
  g_autoptr (PtoOrchestrator) orchestrator = NULL;
  PtoWorker *keeper = get_keeper (self);
  MemoryCall call
      = { .worker = keeper, .machine = keeper->node.machine, .memory = *memory, .block = block };

  call.memory.is_unwanted = is_unwanted;
  call.memory.unwanted_data = &call;
  /* Who tidies up does so whatever else was cancelled. */
  if (memory->what != PTO_MEMORY_FREE)
    call.cancellable = g_cancellable_get_current ();

  if (self->node.remote != NULL && self->node.parent == NULL)
    return pto_refuse (error, PTO_ERROR_CLOSED,
                       _ ("the worker that this remote one was added to is gone: keep that as "
                          "long as this one"));
  /* What has workers below it has none of its own. */
  if (call.machine == NULL || call.machine->ops->use_memory == NULL
      || (keeper == self && call.machine->ops->submit != NULL))
    return pto_refuse (error, PTO_ERROR_NOT_SUPPORTED,
                       _ ("a worker of level %u has no device memory: use a buffer"),
                       self->node.level);
  call.memory.child = keeper == self ? G_MAXUINT : self->node.number;
  if (!pto_worker_check_process (keeper, error))
    return FALSE;
  g_mutex_lock (&keeper->lock);
  if (keeper->current != NULL && pto_orchestrator_is_own_thread (keeper->current))
    orchestrator = g_object_ref (keeper->current);
  g_mutex_unlock (&keeper->lock);
  call.orchestrator = orchestrator;
  call.memory.is_in_run = orchestrator != NULL;
  if (orchestrator != NULL)
    pto_orchestrator_call (orchestrator, call_memory, &call);
  else
    {
      if (!pto_worker_take (keeper, FALSE, call.cancellable, error))
        return FALSE;
      call_memory (&call);
      pto_worker_give_back (keeper);
    }
  memory->device = call.memory.device;
  memory->life = call.memory.life;
  if (!call.done && g_atomic_int_get (&keeper->closing)
      && g_error_matches (call.error, G_IO_ERROR, G_IO_ERROR_CANCELLED)
      && !g_cancellable_is_cancelled (call.cancellable))
    {
      g_clear_error (&call.error);
      pto_refuse (&call.error, PTO_ERROR_CLOSED, _ ("the worker is closed"));
    }
  if (!call.done)
    g_propagate_error (error, call.error);
  return call.done;
}

/* --- memory that belongs to a buffer --- */

static gboolean
block_write (gpointer owner, guint64 address, gconstpointer data, gsize size, GError **error)
{
  Block *block = owner;

  return pto_worker_copy_to_address (block->worker, address, (guint64) (guintptr) data, size,
                                     error);
}

static gboolean
block_read (gpointer owner, guint64 address, gpointer data, gsize size, GError **error)
{
  Block *block = owner;

  return pto_worker_copy_from_address (block->worker, (guint64) (guintptr) data, address, size,
                                       error);
}

/* Of two that no machine has both of. Part by part, in an order in which none is written before it
 * is read, if the two overlap. */
static gboolean
copy_in_parts (Block *from, guint64 address, Block *to, guint64 target, guint64 size,
               GError **error)
{
  g_autofree gpointer part = g_malloc (MIN (size, PART_BYTES));
  gboolean is_backward = target > address;

  for (guint64 done = 0, n; done < size; done += n)
    {
      guint64 at;

      n = MIN (size - done, PART_BYTES);
      at = is_backward ? size - done - n : done;
      if (!block_read (from, address + at, part, n, error)
          || !block_write (to, target + at, part, n, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
block_copy (gpointer owner, guint64 address, gpointer to_owner, guint64 to, guint64 size,
            GError **error)
{
  Block *from = owner;
  Block *other = to_owner;
  PtoMachineMemory call
      = { .what = PTO_MEMORY_COPY, .device = address, .target = to, .size = size };

  if (from->worker->node.remote == NULL || other->worker->node.remote == NULL
      || from->keeper != other->keeper)
    return copy_in_parts (from, address, other, to, size, error);
  return use_memory (from->worker, &call, NULL, error);
}

/* With the keeper's lock. */
static gboolean
make_seal (PtoWorker *keeper, GError **error)
{
  g_autofree PtoTokenSeal *seal = NULL;

  if (keeper->seal != NULL)
    return TRUE;
  seal = g_new0 (PtoTokenSeal, 1);
  if (!pto_token_seal_make (seal, error))
    return FALSE;
  keeper->seal = g_steal_pointer (&seal);
  return TRUE;
}

static char *
block_export (gpointer owner, guint64 address, guint64 size, GError **error)
{
  Block *block = owner;
  PtoMachineMemory call = { .what = PTO_MEMORY_CHECK, .device = address, .size = size };
  g_autofree char *path = pto_worker_dup_path (block->worker);
  PtoMemoryToken token = { .path = path,
                           .life = block->life,
                           .number = block->number,
                           .offset = address - block->address,
                           .size = size };
  gboolean ok;

  if (block->worker->node.remote == NULL)
    {
      pto_refuse (error, PTO_ERROR_NOT_SUPPORTED,
                  _ ("the buffer is device memory of %s, which is no remote worker: whoever sees "
                     "it has it by its address"),
                  path);
      return NULL;
    }
  if (!use_memory (block->worker, &call, NULL, error))
    return NULL;
  g_mutex_lock (&block->keeper->lock);
  ok = make_seal (block->keeper, error);
  g_mutex_unlock (&block->keeper->lock);
  /* It does not change any more. */
  return ok ? pto_memory_token_to_string (&token, block->keeper->seal) : NULL;
}

static PtoWorker *
block_get_worker (gpointer owner)
{
  Block *block = owner;

  return block->worker;
}

static void
block_free (Block *block)
{
  g_object_unref (block->worker);
  g_object_unref (block->keeper);
  g_free (block);
}

/* Whoever lets go last waits for nobody: while somebody uses the machine, it is for him to give the
 * memory back. */
static void
block_release (gpointer owner)
{
  Block *block = owner;
  PtoWorker *worker = block->keeper;
  gboolean taken = FALSE;

  if (pto_worker_is_foreign (worker))
    {
      /* The memory is that of the process which this one is a copy of, and so are the books. */
      if (g_atomic_ref_count_dec (&block->ref_count))
        block_free (block);
      return;
    }
  g_mutex_lock (&worker->lock);
  if (!g_atomic_ref_count_dec (&block->ref_count))
    {
      g_mutex_unlock (&worker->lock);
      return;
    }
  if (g_hash_table_remove (worker->blocks, &block->address))
    {
      g_array_append_val (worker->unused_blocks, block->address);
      taken = !worker->in_use;
      if (taken)
        {
          worker->in_use = TRUE;
          worker->user = g_thread_self ();
        }
    }
  g_mutex_unlock (&worker->lock);
  if (taken)
    pto_worker_give_back (worker);
  if (block->give != NULL)
    block->give (block->begin, block->size);
  block_free (block);
}

static const PtoBufferOwner block_ops = {
  .write = block_write,
  .read = block_read,
  .copy = block_copy,
  .export = block_export,
  .get_worker = block_get_worker,
  .release = block_release,
};

void
pto_worker_free_unused_blocks (PtoWorker *self)
{
  for (guint i = 0; i < self->unused_blocks->len; i++)
    {
      PtoMachineMemory call = { .what = PTO_MEMORY_FREE,
                                .device = g_array_index (self->unused_blocks, guint64, i),
                                .child = G_MAXUINT };

      self->node.machine->ops->use_memory (self->node.machine, &call, NULL);
    }
  g_array_set_size (self->unused_blocks, 0);
}

void
pto_worker_release_blocks (PtoWorker *self)
{
  GHashTableIter iter;
  gpointer value;

  pto_worker_free_unused_blocks (self);
  g_hash_table_iter_init (&iter, self->blocks);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      Block *block = value;
      PtoMachineMemory call
          = { .what = PTO_MEMORY_RELEASE, .device = block->address, .child = G_MAXUINT };

      if (self->node.machine->ops->use_memory (self->node.machine, &call, NULL))
        {
          block->begin = call.device;
          block->size = call.size;
          block->give = call.give;
        }
    }
  g_hash_table_remove_all (self->blocks);
}

/**
 * pto_worker_alloc_buffer:
 * @worker: a worker; one that was not started is started
 * @size: bytes
 * @error: where to say why there is none
 *
 * Takes device memory that belongs to a buffer: it is given back when nothing can reach it any
 * more: no reference to the buffer, no tensor in it, and no run that one was submitted in.
 *
 * Of a remote worker ([method@Pto.Worker.add_remote_worker]) it is memory there, of zeros, out of
 * its parameter `arena`. Tensors in it ([ctor@Pto.Tensor.new_for_buffer]) are arguments of tasks
 * that name that worker, in as many runs as wanted, and nothing of them travels; the program reads
 * and writes it by [method@Pto.Buffer.read] and [method@Pto.Buffer.write]. When the worker is lost,
 * so is all of it: whoever uses it later is told %PTO_ERROR_WORKER_LOST, also in the next life of
 * the worker.
 *
 * The wait, for a run or for a remote worker, ends with %G_IO_ERROR_CANCELLED when the current
 * cancellable of the calling thread is cancelled (g_cancellable_push_current()), and inside of an
 * orchestration function when its run is.
 *
 * Fails with %PTO_ERROR_NO_MEMORY, and of a remote worker with %PTO_ERROR_WORKER_LOST. Source: seed
 * 003. Thread safety: any thread; waits for a run that is under way.
 *
 * Returns: (transfer full): a buffer
 *
 * Since: 0.1
 */
PtoBuffer *
pto_worker_alloc_buffer (PtoWorker *worker, guint64 size, GError **error)
{
  PtoMachineMemory call = { .what = PTO_MEMORY_MALLOC, .size = size };
  Block *block;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  block = g_new0 (Block, 1);
  g_atomic_ref_count_init (&block->ref_count);
  block->worker = g_object_ref (worker);
  block->keeper = g_object_ref (get_keeper (worker));
  if (!use_memory (worker, &call, block, error))
    {
      block_free (block);
      return NULL;
    }
  return pto_buffer_new_owned (call.device, size, &block_ops, block);
}

/* One more reference; NULL: nobody has it any more. */
static Block *
find_block (PtoWorker *keeper, guint64 number)
{
  Block *found = NULL;
  GHashTableIter iter;
  gpointer value;

  g_mutex_lock (&keeper->lock);
  g_hash_table_iter_init (&iter, keeper->blocks);
  while (found == NULL && g_hash_table_iter_next (&iter, NULL, &value))
    if (((Block *) value)->number == number)
      found = value;
  if (found != NULL)
    g_atomic_ref_count_inc (&found->ref_count);
  g_mutex_unlock (&keeper->lock);
  return found;
}

/* What a token of this worker names. */
static Block *
find_exported (PtoWorker *self, const PtoMemoryToken *token, GError **error)
{
  PtoMachineMemory life = { .what = PTO_MEMORY_LIFE };
  PtoMachineMemory check = { .what = PTO_MEMORY_CHECK, .size = token->size };
  Block *block;

  if (!use_memory (self, &life, NULL, error))
    return NULL;
  if (life.life != token->life)
    {
      pto_refuse (error, PTO_ERROR_WORKER_LOST,
                  _ ("the token is of memory of life %u of %s, which was lost, and all of its "
                     "memory with it; this is its life %u: ask that one for memory"),
                  token->life, token->path, life.life);
      return NULL;
    }
  block = find_block (get_keeper (self), token->number);
  if (block == NULL)
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                  _ ("the token is of memory of %s that was given back: a token keeps nothing, it "
                     "is there as long as a buffer of it"),
                  token->path);
      return NULL;
    }
  check.device = block->address + token->offset;
  if (use_memory (self, &check, NULL, error))
    return block;
  block_release (block);
  return NULL;
}

/**
 * pto_worker_import_buffer:
 * @worker: a remote worker ([method@Pto.Worker.add_remote_worker]); one that was not started is
 *   started
 * @token: what [method@Pto.Buffer.export] gave
 * @error: where to say why there is none
 *
 * Makes a buffer of memory that a token names: one more reference to the same memory.
 *
 * Nothing is copied, or allocated. What is written by one is read by the other, and tensors in both
 * depend on each other where they overlap. The memory is given back when nothing can reach it by
 * any of them.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for what is no token, was changed or made up, or is of memory
 * that was given back, of another worker, or another program; with %PTO_ERROR_NOT_SUPPORTED for a
 * worker that is no remote one; with %PTO_ERROR_WORKER_LOST for another life of the worker; and
 * with %PTO_ERROR_CLOSED. No two workers share memory: of one below the same worker
 * [method@Pto.Buffer.copy_to] copies it. Thread safety: any thread; waits for a run that is under
 * way.
 *
 * Returns: (transfer full): a buffer
 *
 * Since: 0.1
 */
PtoBuffer *
pto_worker_import_buffer (PtoWorker *worker, const char *token, GError **error)
{
  g_autofree char *path = NULL;
  g_autofree char *owner = NULL;
  PtoWorker *keeper;
  PtoTokenSeal *seal;
  PtoMemoryToken named;
  Block *block;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (token != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  keeper = get_keeper (worker);
  if (!pto_worker_check_process (keeper, error))
    return NULL;
  path = pto_worker_dup_path (worker);
  if (keeper == worker)
    {
      pto_refuse (error, PTO_ERROR_NOT_SUPPORTED,
                  _ ("%s is no remote worker, and has no memory that could be imported: a buffer "
                     "of this process is used as it is"),
                  path);
      return NULL;
    }
  g_mutex_lock (&keeper->lock);
  seal = keeper->seal;
  g_mutex_unlock (&keeper->lock);
  if (!pto_memory_token_from_string (token, seal, path, &named, error))
    return NULL;
  owner = named.path;
  if (strcmp (owner, path) != 0)
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                  _ ("the token is of memory of %s, which %s does not share: import it there, and "
                     "copy it by Buffer.copy_to() into memory of %s (Worker.alloc_buffer())"),
                  owner, path, path);
      return NULL;
    }
  block = find_exported (worker, &named, error);
  return block != NULL
             ? pto_buffer_new_owned (block->address + named.offset, named.size, &block_ops, block)
             : NULL;
}

/* --- memory that a program has the number of --- */

/**
 * pto_worker_malloc:
 * @worker: a worker; one that was not started is started
 * @size: bytes
 * @error: where to say why not
 *
 * Takes device memory, to be given back with [method@Pto.Worker.free].
 *
 * [method@Pto.Worker.alloc_buffer] gives memory that nobody has to give back.
 *
 * Fails with %PTO_ERROR_NO_MEMORY, and with %G_IO_ERROR_CANCELLED as
 * [method@Pto.Worker.alloc_buffer]. Source: seed 003. Thread safety: any thread; waits for a run
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

  return use_memory (worker, &call, NULL, error) ? call.device : 0;
}

/**
 * pto_worker_free:
 * @worker: a worker; one that was not started is started
 * @address: what [method@Pto.Worker.malloc] gave
 * @error: where to say why not
 *
 * Gives back device memory. Inside of an orchestration function, memory that tasks of the run may
 * still use is given back when the run has ended.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for another address, that of a buffer included. Source: seed
 * 003. Thread safety: any thread; waits for a run that is under way.
 *
 * Returns: %TRUE if it was given back
 *
 * Since: 0.1
 */
gboolean
pto_worker_free (PtoWorker *worker, guint64 address, GError **error)
{
  PtoMachineMemory call = { .what = PTO_MEMORY_FREE, .device = address };
  PtoWorker *keeper;
  gboolean is_owned;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  keeper = get_keeper (worker);
  if (!pto_worker_check_process (keeper, error))
    return FALSE;
  g_mutex_lock (&keeper->lock);
  is_owned = g_hash_table_contains (keeper->blocks, &address);
  g_mutex_unlock (&keeper->lock);
  if (is_owned)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("0x%" PRIx64 " belongs to a buffer: it is given back with the last reference to that"),
        address);
  return use_memory (worker, &call, NULL, error);
}

/**
 * pto_worker_copy_to:
 * @worker: a worker; one that was not started is started
 * @address: where to, in device memory
 * @bytes: what
 * @error: where to say why not
 *
 * Copies bytes to device memory.
 *
 * The wait, for a run or for a remote worker, ends with %G_IO_ERROR_CANCELLED when the current
 * cancellable of the calling thread is cancelled (g_cancellable_push_current()), and inside of an
 * orchestration function when its run is.
 * What was on its way to a remote worker by then is there, or is not.
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
 * @worker: a worker; one that was not started is started
 * @address: where from, in device memory
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies bytes from device memory.
 *
 * The wait, for a run or for a remote worker, ends with %G_IO_ERROR_CANCELLED when the current
 * cancellable of the calling thread is cancelled (g_cancellable_push_current()), and inside of an
 * orchestration function when its run is.
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
      pto_refuse (error, PTO_ERROR_NO_MEMORY, _ ("no memory for %" PRIu64 " bytes"), size);
      return NULL;
    }
  if (!pto_worker_copy_from_address (worker, (guint64) (guintptr) data, address, size, error))
    return NULL;
  return g_bytes_new_take (g_steal_pointer (&data), size);
}

/* Nothing lies at no address, nor where memory of a remote worker has its addresses. */
static gboolean
check_host (guint64 host, guint64 size, GError **error)
{
  if (size != 0
      && (pto_remote_range_has (host)
          || (size - 1 <= G_MAXUINT64 - host && pto_remote_range_has (host + size - 1))))
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("0x%" PRIx64 " is memory of a remote worker, and not of this process: "
           "pto_buffer_copy_to() copies from one buffer to another, wherever they are"),
        host);
  if (host != 0 || size == 0)
    return TRUE;
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                     P_ ("%" PRIu64 " byte of this process at address 0 (NULL): an address wanted",
                         "%" PRIu64 " bytes of this process at address 0 (NULL): an address wanted",
                         size),
                     size);
}

/**
 * pto_worker_copy_to_address:
 * @worker: a worker; one that was not started is started
 * @address: where to, in device memory
 * @host: where from, in this process
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies to device memory from any memory of this process, such as that of an array.
 *
 * Fails like [method@Pto.Worker.copy_to], and with %PTO_ERROR_INVALID_ARGS for bytes at address 0
 * of this process, or where memory of a remote worker has its addresses
 * ([method@Pto.Buffer.copy_to] copies between buffers). Source: seed 003. Thread safety: any
 * thread; waits for a run that is under way.
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

  return check_host (host, size, error) && use_memory (worker, &call, NULL, error);
}

/**
 * pto_worker_copy_from_address:
 * @worker: a worker; one that was not started is started
 * @host: where to, in this process
 * @address: where from, in device memory
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies from device memory to any memory of this process, such as that of an array.
 *
 * Fails like [method@Pto.Worker.copy_from], and with %PTO_ERROR_INVALID_ARGS for bytes at address 0
 * of this process, or where memory of a remote worker has its addresses
 * ([method@Pto.Buffer.copy_to] copies between buffers). Source: seed 003. Thread safety: any
 * thread; waits for a run that is under way.
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

  return check_host (host, size, error) && use_memory (worker, &call, NULL, error);
}

/**
 * pto_worker_dup_last_writer:
 * @worker: a worker
 * @address: of a byte
 *
 * Says which task of the last run has written a byte last: of a wrong result, where to look.
 *
 * Known of a chip in this process (not with [property@Pto.Worker:isolate]) if accesses were checked
 * ([method@Pto.CallConfig.set_enable_access_check], or the parameter `check`). Last is meant in the
 * order of the tasks; where two are in none, in that of their submits. Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable): such as `task 3 of ring 0 (mul), submitted at mul.c:12, as
 * byte 4 of its argument 2 (OUTPUT, float32, from element 1)`, with the words "perhaps by stores
 * that are not seen" before a task that may have written there later; %NULL: no task has written
 * it, or that is not known
 *
 * Since: 0.1
 */
char *
pto_worker_dup_last_writer (PtoWorker *worker, guint64 address)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  if (worker->node.machine == NULL || worker->node.machine->ops->dup_writer == NULL)
    return NULL;
  return worker->node.machine->ops->dup_writer (worker->node.machine, address);
}
