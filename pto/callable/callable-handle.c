/* callable-handle.c: how is a registered callable named?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "callable-handle.h"

#include "base/digest.h"
#include "pto-callable.h"

#include <string.h>

/**
 * PtoCallableHandle:
 *
 * The name of a callable that a worker has: the worker, the kind, who resolves it, and a digest of
 * what the callable is.
 *
 * Two registrations of the same content on one worker have the same handle. A handle of another
 * worker is refused.
 *
 * Source: seed 001 section 2. Thread safety: any thread. A fork copies the value.
 *
 * Since: 0.1
 */
struct _PtoCallableHandle
{
  gatomicrefcount ref_count;
  guint64 owner;
  PtoCallable *callable;
  guint8 digest[PTO_DIGEST_SIZE];
  char text[2 * PTO_DIGEST_SIZE + 1];
  gint is_remote; /* atomic */
};

G_DEFINE_BOXED_TYPE (PtoCallableHandle, pto_callable_handle, pto_callable_handle_ref,
                     pto_callable_handle_unref)

PtoCallableHandle *
pto_callable_handle_new (guint64 owner, PtoCallable *callable, const guint8 *digest)
{
  PtoCallableHandle *handle = g_new0 (PtoCallableHandle, 1);

  g_atomic_ref_count_init (&handle->ref_count);
  handle->owner = owner;
  handle->callable = g_object_ref (callable);
  memcpy (handle->digest, digest, PTO_DIGEST_SIZE);
  pto_digest_to_string (digest, handle->text);
  return handle;
}

guint64
pto_callable_handle_get_owner (const PtoCallableHandle *handle)
{
  return handle->owner;
}

const guint8 *
pto_callable_handle_peek (const PtoCallableHandle *handle)
{
  return handle->digest;
}

void
pto_callable_handle_set_remote (PtoCallableHandle *handle, gboolean is_remote)
{
  g_atomic_int_set (&handle->is_remote, is_remote);
}

/**
 * pto_callable_handle_ref:
 * @handle: a handle
 *
 * Takes a reference.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): @handle
 *
 * Since: 0.1
 */
PtoCallableHandle *
pto_callable_handle_ref (PtoCallableHandle *handle)
{
  g_return_val_if_fail (handle != NULL, NULL);

  g_atomic_ref_count_inc (&handle->ref_count);
  return handle;
}

/**
 * pto_callable_handle_unref:
 * @handle: (transfer full): a handle
 *
 * Releases a reference; the callable stays registered.
 *
 * Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_callable_handle_unref (PtoCallableHandle *handle)
{
  g_return_if_fail (handle != NULL);

  if (!g_atomic_ref_count_dec (&handle->ref_count))
    return;
  g_object_unref (handle->callable);
  g_free (handle);
}

/**
 * pto_callable_handle_get_kind:
 * @handle: a handle
 *
 * Asks what it names.
 *
 * Thread safety: any thread.
 *
 * Returns: a kind
 *
 * Since: 0.1
 */
PtoCallableKind
pto_callable_handle_get_kind (PtoCallableHandle *handle)
{
  g_return_val_if_fail (handle != NULL, PTO_CALLABLE_KERNEL);

  return pto_callable_get_kind (handle->callable);
}

/**
 * pto_callable_handle_get_digest:
 * @handle: a handle
 *
 * Gives the SHA-256 digest of the callable's descriptor: its name, kind and platform, its shared
 * objects by their own digests, function names, costs and signatures. A closure of this process is
 * told from all others by bytes drawn when it was made.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): 64 hexadecimal digits
 *
 * Since: 0.1
 */
const char *
pto_callable_handle_get_digest (PtoCallableHandle *handle)
{
  g_return_val_if_fail (handle != NULL, NULL);

  return handle->text;
}

/**
 * pto_callable_handle_dup_digest_bytes:
 * @handle: a handle
 *
 * Gives the SHA-256 digest of the callable's descriptor as it is, which is how workers name it
 * among each other.
 *
 * Source: seed 001 section 2. Thread safety: any thread.
 *
 * Returns: (transfer full): 32 bytes
 *
 * Since: 0.1
 */
GBytes *
pto_callable_handle_dup_digest_bytes (PtoCallableHandle *handle)
{
  g_return_val_if_fail (handle != NULL, NULL);

  return g_bytes_new (handle->digest, PTO_DIGEST_SIZE);
}

/**
 * pto_callable_handle_get_target_namespace:
 * @handle: a handle
 *
 * Asks who turns the digest into something to run.
 *
 * Source: seed 001 section 2. Thread safety: any thread.
 *
 * Returns: %PTO_TARGET_LOCAL_CHIP for what chips run, %PTO_TARGET_REMOTE_TASK_DISPATCHER for what
 * was registered on remote workers only ([method@Pto.Worker.register_on]), %PTO_TARGET_LOCAL_PYTHON
 *   for all other functions
 *
 * Since: 0.1
 */
PtoTargetNamespace
pto_callable_handle_get_target_namespace (PtoCallableHandle *handle)
{
  PtoCallableKind kind;

  g_return_val_if_fail (handle != NULL, PTO_TARGET_LOCAL_CHIP);

  kind = pto_callable_get_kind (handle->callable);
  if (kind == PTO_CALLABLE_KERNEL || kind == PTO_CALLABLE_CHIP)
    return PTO_TARGET_LOCAL_CHIP;
  return g_atomic_int_get (&handle->is_remote) ? PTO_TARGET_REMOTE_TASK_DISPATCHER
                                               : PTO_TARGET_LOCAL_PYTHON;
}

/**
 * pto_callable_handle_get_callable:
 * @handle: a handle
 *
 * Gives the callable that was registered first under this name.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): a callable
 *
 * Since: 0.1
 */
PtoCallable *
pto_callable_handle_get_callable (PtoCallableHandle *handle)
{
  g_return_val_if_fail (handle != NULL, NULL);

  return handle->callable;
}

/**
 * pto_callable_handle_to_string:
 * @handle: a handle
 *
 * Says what is registered, for people.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): such as `the kernel "add" of /home/me/add.c, 5f3c09ab41d2`: what it is,
 *   and how its digest begins
 *
 * Since: 0.1
 */
char *
pto_callable_handle_to_string (PtoCallableHandle *handle)
{
  g_autofree char *callable = NULL;

  g_return_val_if_fail (handle != NULL, NULL);

  callable = pto_callable_to_string (handle->callable);
  return g_strdup_printf ("%s, %.12s", callable, handle->text);
}

/**
 * pto_callable_handle_equal:
 * @a: a handle
 * @b: another handle
 *
 * Asks whether two handles name the same content on the same worker.
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if they do
 *
 * Since: 0.1
 */
gboolean
pto_callable_handle_equal (PtoCallableHandle *a, PtoCallableHandle *b)
{
  g_return_val_if_fail (a != NULL, FALSE);
  g_return_val_if_fail (b != NULL, FALSE);

  return a->owner == b->owner && memcmp (a->digest, b->digest, PTO_DIGEST_SIZE) == 0;
}
