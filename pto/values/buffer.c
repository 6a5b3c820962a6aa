/* buffer.c: how does a program get memory that tensors can lie in?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "buffer.h"

#include "core/memory-guards.h"
#include "exec/memory-file.h"
#include "process/arena.h"

#include "base/binding.h"
#include "base/error.h"
#include "base/getter.h"
#include "common/text.h"
#include "address-range.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/**
 * PtoBuffer:
 *
 * A piece of zeroed memory that kernels, the program and other processes see at the same time.
 *
 * It is shared memory: page-aligned, kept across a fork, and, where the system has memory files,
 * backed by a descriptor that can be mapped again or sent to another process. Nothing appears in
 * the file system.
 *
 * Before its first byte and after its last one lie 64 more that no kernel may write: a task of a
 * chip that has the buffer as an argument and writes there fails with %PTO_ERROR_OUT_OF_BOUNDS. Of
 * more than 16 384 buffers at one time, the others have none before their first byte.
 *
 * That is a buffer of [ctor@Pto.Buffer.new]. One of [method@Pto.Worker.alloc_buffer] is memory of
 * that worker's device instead, without a descriptor; it is the same to tasks and to this program.
 * Only memory of a remote worker is not ([method@Pto.Buffer.is_remote]): at its address is nothing
 * here.
 * It keeps the worker. When the worker is closed it stays what it is, but for
 * [method@Pto.Buffer.write] and [method@Pto.Buffer.read], which fail then.
 *
 * Child processes of a worker see a shared one at the same address. That holds for a buffer made
 * before they were forked, and for one made later as long as the memory set aside for that (the
 * parameter `arena`) has room; another is refused as an argument of their tasks.
 *
 * Thread safety: any thread; access to the memory itself is the program's to order. A fork shares
 * the memory; that of a device, where the chip is not isolated, it copies.
 *
 * Since: 0.1
 */
struct _PtoBuffer
{
  gatomicrefcount ref_count;
  guint8 *data;
  gsize size;
  gsize before;      /* bytes that are mapped before it, for its guard; 0: it has none there */
  gboolean in_arena; /* a piece of memory that children have, instead of a mapping of its own */
  int fd;            /* of its own mapping; -1: an anonymous one */
  const PtoBufferOwner *ops; /* NULL: the memory is this buffer's own */
  gpointer owner;
};

G_DEFINE_BOXED_TYPE_WITH_CODE (PtoBuffer, pto_buffer, pto_buffer_ref, pto_buffer_unref,
                               pto_override_look ())

/* The system has room for 65 530 mappings of a process by default. */
#define GUARD_PAGES_MAX 16384
/* Mappings that are guards before buffers. */
static gint guard_pages;

static gsize
page (void)
{
  return (gsize) sysconf (_SC_PAGESIZE);
}

/* Takes the address space of a page and of a buffer behind it. Returns where it begins, or NULL:
 * the buffer goes without a guard before it. Its file begins where the buffer does. */
static guint8 *
reserve (gsize bytes)
{
  guint8 *guard = MAP_FAILED;

  if (g_atomic_int_add (&guard_pages, 1) < GUARD_PAGES_MAX && bytes <= G_MAXSSIZE - page ())
    guard = mmap (NULL, page () + bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (guard != MAP_FAILED)
    return guard;
  g_atomic_int_add (&guard_pages, -1);
  return NULL;
}

static guint8 *
map_buffer (gsize bytes, gsize *before, int *fd)
{
  guint8 *guard = reserve (bytes);
  guint8 *data
      = pto_memory_file_map_at ("pto-buffer", bytes, guard != NULL ? guard + page () : NULL, fd);

  *before = data != NULL && guard != NULL ? page () : 0;
  if (data == NULL && guard != NULL)
    {
      int saved = errno;

      munmap (guard, page () + bytes);
      g_atomic_int_add (&guard_pages, -1);
      errno = saved;
    }
  return data;
}

/**
 * pto_buffer_new:
 * @size: bytes, at least 1
 * @error: where to say why there is none
 *
 * Makes a buffer of zeros.
 *
 * Pages are taken from the system when they are first touched. Fails with %PTO_ERROR_INVALID_ARGS
 * for a size of 0 and with %PTO_ERROR_NO_MEMORY when the system has no address space for it. Thread
 * safety: any thread.
 *
 * Returns: (transfer full): a buffer
 *
 * Since: 0.1
 */
PtoBuffer *
pto_buffer_new (guint64 size, GError **error)
{
  PtoBuffer *buffer;
  struct pto_fence fence;
  guint64 address;
  guint8 *data;
  gsize before;
  int fd = -1;

  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (size == 0 || size > G_MAXSSIZE - PTO_FENCE_BYTES)
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                  _ ("a buffer of %" PRIu64 " bytes can not be made: the size must be 1 to %zd"),
                  size, G_MAXSSIZE - PTO_FENCE_BYTES);
      return NULL;
    }
  /* 0 as long as this process has no children, and when the arena is full. */
  address = size <= G_MAXSSIZE - PTO_FENCE_BYTES - page ()
                ? pto_arena_alloc (page () + size + PTO_FENCE_BYTES)
                : 0;
  if (address != 0)
    {
      before = page ();
      data = (guint8 *) (guintptr) address + before;
    }
  else
    data = map_buffer (size + PTO_FENCE_BYTES, &before, &fd);
  if (data == NULL)
    {
      /* Without a file memory is not shared by name, but it is there: what failed is the last call.
       */
      g_autofree char *why = g_strconcat ("mmap: ", g_strerror (errno), NULL);

      g_set_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY,
                   _ ("no memory for a buffer of %" PRIu64 " bytes: %s"), size, why);
      return NULL;
    }

  buffer = g_new0 (PtoBuffer, 1);
  g_atomic_ref_count_init (&buffer->ref_count);
  buffer->data = data;
  buffer->size = size;
  buffer->in_arena = address != 0;
  buffer->fd = fd;
  buffer->before = before;
  fence = (struct pto_fence){ .address = (guint64) (guintptr) data,
                              .bytes = size,
                              .guard = PTO_FENCE_BYTES,
                              .before = before > 0 ? PTO_FENCE_BYTES : 0 };
  if (!pto_fence_add (&fence))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY,
                   _ ("no memory for one more buffer: there can be %u at one time"),
                   PTO_FENCES_MAX);
      pto_buffer_unref (buffer);
      return NULL;
    }
  return buffer;
}

PtoBuffer *
pto_buffer_new_owned (guint64 address, guint64 size, const PtoBufferOwner *ops, gpointer owner)
{
  PtoBuffer *buffer = g_new0 (PtoBuffer, 1);

  g_atomic_ref_count_init (&buffer->ref_count);
  buffer->data = (guint8 *) (guintptr) address;
  buffer->size = size;
  buffer->fd = -1;
  buffer->ops = ops;
  buffer->owner = owner;
  return buffer;
}

/**
 * pto_buffer_ref:
 * @buffer: a buffer
 *
 * Takes a reference.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): @buffer
 *
 * Since: 0.1
 */
PTO_DEFINE_REF (PtoBuffer, pto_buffer_ref, buffer)

/**
 * pto_buffer_unref:
 * @buffer: (transfer full): a buffer
 *
 * Releases a reference; the last one gives back the memory.
 *
 * Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_buffer_unref (PtoBuffer *buffer)
{
  g_return_if_fail (buffer != NULL);

  if (!g_atomic_ref_count_dec (&buffer->ref_count))
    return;
  if (buffer->ops != NULL)
    {
      buffer->ops->release (buffer->owner);
      g_free (buffer);
      return;
    }
  pto_fence_remove ((guint64) (guintptr) buffer->data);
  if (buffer->in_arena)
    pto_arena_free ((guint64) (guintptr) buffer->data - buffer->before,
                    buffer->before + buffer->size + PTO_FENCE_BYTES);
  else
    {
      munmap (buffer->data - buffer->before, buffer->before + buffer->size + PTO_FENCE_BYTES);
      g_atomic_int_add (&guard_pages, buffer->before > 0 ? -1 : 0);
    }
  if (buffer->fd >= 0)
    close (buffer->fd);
  g_free (buffer);
}

/**
 * pto_buffer_get_size:
 * @buffer: a buffer
 *
 * Gives the size it was made with.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (guint64, pto_buffer_get_size, PtoBuffer, buffer, buffer->size)

/**
 * pto_buffer_get_address:
 * @buffer: a buffer
 *
 * Gives the address of the first byte, in this process and on its simulated chips.
 *
 * Valid as long as the buffer. Thread safety: any thread.
 *
 * Returns: an address, page-aligned; 64-byte aligned in device memory
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (guint64, pto_buffer_get_address, PtoBuffer, buffer,
                   (guint64) (guintptr) buffer->data)

/**
 * pto_buffer_get_fd:
 * @buffer: a buffer
 *
 * Gives the descriptor of the memory file behind the buffer, to be mapped or sent to another
 * process. The buffer begins at [method@Pto.Buffer.get_fd_offset] in it.
 *
 * It belongs to the library: do not close it. Thread safety: any thread.
 *
 * Returns: a descriptor; -1 when the system had none, and for device memory
 *
 * Since: 0.1
 */
int
pto_buffer_get_fd (PtoBuffer *buffer)
{
  guint64 offset;

  g_return_val_if_fail (buffer != NULL, -1);

  return buffer->in_arena ? pto_arena_fd ((guint64) (guintptr) buffer->data, &offset) : buffer->fd;
}

/**
 * pto_buffer_get_fd_offset:
 * @buffer: a buffer
 *
 * Gives where the buffer begins in the memory file behind it, which it may share with others.
 *
 * Thread safety: any thread.
 *
 * Returns: bytes, a multiple of the page size; 0 when there is no file
 *
 * Since: 0.1
 */
guint64
pto_buffer_get_fd_offset (PtoBuffer *buffer)
{
  guint64 offset = 0;

  g_return_val_if_fail (buffer != NULL, 0);

  if (buffer->in_arena && pto_arena_fd ((guint64) (guintptr) buffer->data, &offset) < 0)
    return 0;
  return offset;
}

/**
 * pto_buffer_ref_bytes:
 * @buffer: a buffer
 *
 * Gives the memory itself as bytes, without copying; they change as the buffer does.
 *
 * The bytes keep the buffer. Thread safety: any thread.
 *
 * Returns: (transfer full): the memory; of a remote worker's, which is not here, no bytes
 *
 * Since: 0.1
 */
GBytes *
pto_buffer_ref_bytes (PtoBuffer *buffer)
{
  g_return_val_if_fail (buffer != NULL, NULL);

  if (pto_buffer_is_remote (buffer))
    return g_bytes_new (NULL, 0);
  return g_bytes_new_with_free_func (buffer->data, buffer->size, (GDestroyNotify) pto_buffer_unref,
                                     pto_buffer_ref (buffer));
}

/**
 * pto_buffer_get_worker:
 * @buffer: a buffer
 *
 * Gives the worker whose device memory it is.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): a worker; %NULL for shared memory
 *
 * Since: 0.1
 */
PtoWorker *
pto_buffer_get_worker (PtoBuffer *buffer)
{
  g_return_val_if_fail (buffer != NULL, NULL);

  return buffer->ops != NULL ? buffer->ops->get_worker (buffer->owner) : NULL;
}

/**
 * pto_buffer_is_remote:
 * @buffer: a buffer
 *
 * Is it memory of a remote worker, so that this process can not look at its address?
 *
 * [method@Pto.Buffer.read] and [method@Pto.Buffer.write] copy. Thread safety: any thread.
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
PTO_DEFINE_GETTER (gboolean, pto_buffer_is_remote, PtoBuffer, buffer,
                   pto_remote_range_has ((guint64) (guintptr) buffer->data))

static gboolean
check_range (PtoBuffer *buffer, guint64 offset, guint64 size, GError **error)
{
  return (offset <= buffer->size && size <= buffer->size - offset)
         || pto_refuse (
             error, PTO_ERROR_INVALID_ARGS,
             _ ("%" PRIu64 " bytes at offset %" PRIu64 " reach beyond a buffer of %zu bytes"), size,
             offset, buffer->size);
}

/**
 * pto_buffer_write:
 * @buffer: a buffer
 * @offset: where to, in bytes from its beginning
 * @bytes: what
 * @error: where to say why not
 *
 * Copies bytes to a buffer.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when they reach beyond it and, for device memory, with
 * %PTO_ERROR_CLOSED when the worker is closed, and like [method@Pto.Worker.copy_to], cancelled
 * included.
 * Thread safety: any thread; of device memory it waits for a run of that worker that is under way.
 *
 * Returns: %TRUE if they were copied
 *
 * Since: 0.1
 */
gboolean
pto_buffer_write (PtoBuffer *buffer, guint64 offset, GBytes *bytes, GError **error)
{
  gconstpointer data;
  gsize size;

  g_return_val_if_fail (buffer != NULL, FALSE);
  g_return_val_if_fail (bytes != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  data = g_bytes_get_data (bytes, &size);
  if (!check_range (buffer, offset, size, error))
    return FALSE;
  if (buffer->ops != NULL)
    return buffer->ops->write (buffer->owner, (guint64) (guintptr) buffer->data + offset, data,
                               size, error);
  if (size > 0)
    memmove (buffer->data + offset, data, size); /* the bytes may be this buffer's own */
  return TRUE;
}

/**
 * pto_buffer_read:
 * @buffer: a buffer
 * @offset: where from, in bytes from its beginning
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies bytes from a buffer.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when they reach beyond it and, for device memory, with
 * %PTO_ERROR_CLOSED when the worker is closed, and like [method@Pto.Worker.copy_from], cancelled
 * included.
 * Thread safety: any thread; of device memory it waits for a run of that worker that is under way.
 *
 * Returns: (transfer full): bytes
 *
 * Since: 0.1
 */
GBytes *
pto_buffer_read (PtoBuffer *buffer, guint64 offset, guint64 size, GError **error)
{
  g_autofree gpointer data = NULL;

  g_return_val_if_fail (buffer != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!check_range (buffer, offset, size, error))
    return NULL;
  data = g_try_malloc (MAX (size, 1));
  if (data == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY, _ ("no memory for %" PRIu64 " bytes"),
                   size);
      return NULL;
    }
  if (buffer->ops == NULL)
    memcpy (data, buffer->data + offset, size);
  else if (!buffer->ops->read (buffer->owner, (guint64) (guintptr) buffer->data + offset, data,
                               size, error))
    return NULL;
  return g_bytes_new_take (g_steal_pointer (&data), size);
}

/**
 * pto_buffer_copy_to:
 * @buffer: a buffer
 * @to: another one, or the same
 * @offset: where from, in bytes from the beginning of @buffer
 * @to_offset: where to, in bytes from the beginning of @to
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies bytes from one buffer to another, wherever they are; both ranges may overlap.
 *
 * Between two buffers of one remote worker nothing travels. From one remote worker to another the
 * bytes pass through this machine in parts, in memory of the parameter `arena`, and never as a
 * whole.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, before anything is copied, when they reach beyond a buffer,
 * and like [method@Pto.Buffer.read] and [method@Pto.Buffer.write], cancelled included; then a part
 * of them may have been copied. Source: seed 003. Thread safety: any thread; of device memory it
 * waits for a run of that worker that is under way.
 *
 * Returns: %TRUE if they were copied
 *
 * Since: 0.1
 */
gboolean
pto_buffer_copy_to (PtoBuffer *buffer, PtoBuffer *to, guint64 offset, guint64 to_offset,
                    guint64 size, GError **error)
{
  guint8 *source, *target;

  g_return_val_if_fail (buffer != NULL, FALSE);
  g_return_val_if_fail (to != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_range (buffer, offset, size, error) || !check_range (to, to_offset, size, error))
    return FALSE;
  source = buffer->data + offset;
  target = to->data + to_offset;
  if (buffer->ops != NULL && to->ops != NULL)
    return buffer->ops->copy (buffer->owner, (guint64) (guintptr) source, to->owner,
                              (guint64) (guintptr) target, size, error);
  if (buffer->ops != NULL)
    return buffer->ops->read (buffer->owner, (guint64) (guintptr) source, target, size, error);
  if (to->ops != NULL)
    return to->ops->write (to->owner, (guint64) (guintptr) target, source, size, error);
  if (size > 0)
    memmove (target, source, size);
  return TRUE;
}

/**
 * pto_buffer_export:
 * @buffer: memory of a remote worker ([method@Pto.Worker.alloc_buffer])
 * @offset: where the part begins, in bytes from the beginning of @buffer
 * @size: bytes of it, at least 1
 * @error: where to say why not
 *
 * Gives a text that names a part of a buffer, a token, to be kept or handed on.
 *
 * [method@Pto.Worker.import_buffer] of the same worker makes a buffer of it, which is a reference
 * to the same memory. The token is none: when the last buffer is gone, so is the memory, and the
 * token names nothing. It is of one life of the worker, and is good in this process, below the
 * worker that the remote one is below. Nobody else can make one, or change it: who is handed a
 * token can import that part, and no other.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for a part that is none of the buffer, with
 * %PTO_ERROR_NOT_SUPPORTED for memory that is no remote worker's, which whoever sees it has by its
 * address, or its descriptor, with %PTO_ERROR_WORKER_LOST when it was lost, and with
 * %PTO_ERROR_CLOSED. Thread safety: any thread; waits for a run that is under way.
 *
 * Returns: (transfer full): a token, of ASCII without spaces
 *
 * Since: 0.1
 */
char *
pto_buffer_export (PtoBuffer *buffer, guint64 offset, guint64 size, GError **error)
{
  g_return_val_if_fail (buffer != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!check_range (buffer, offset, size, error))
    return NULL;
  if (size == 0)
    {
      pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                  _ ("0 bytes of a buffer can not be exported: at least 1 is wanted"));
      return NULL;
    }
  if (buffer->ops != NULL)
    return buffer->ops->export(buffer->owner, (guint64) (guintptr) buffer->data + offset, size,
                               error);
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                       _ ("the buffer is no memory of a remote worker: children see it at its "
                          "address, and another process that is sent its descriptor can map it"));
  return NULL;
}

/**
 * pto_buffer_to_string:
 * @buffer: a buffer
 *
 * Describes it in words, for a person: `4096 bytes of shared memory at 0x7f0000001000`.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
char *
pto_buffer_to_string (PtoBuffer *buffer)
{
  g_return_val_if_fail (buffer != NULL, NULL);

  return g_strdup_printf ("%" G_GSIZE_FORMAT " byte%s of %s memory at 0x%" G_GINT64_MODIFIER "x",
                          buffer->size, buffer->size == 1 ? "" : "s",
                          pto_buffer_is_remote (buffer) ? "remote"
                          : buffer->ops != NULL         ? "device"
                                                        : "shared",
                          (guint64) (guintptr) buffer->data);
}
