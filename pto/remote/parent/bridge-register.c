/* bridge-register.c: how does a remote worker get what it can run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bridge-parts.h"
#include "bridge.h"

#include "base/error.h"
#include "callable/callable.h"
#include "callable/function.h"
#include "common/text.h"
#include "mpi/rank-client.h"

#include <string.h>

static gboolean
send_contents (PtoBridge *self, const char *path, const guint8 *digest, GError **error)
{
  g_autofree char *data = NULL;
  gsize size;
  gsize at = 0;

  if (!g_file_get_contents (path, &data, &size, error))
    return FALSE;
  do
    {
      gsize n = MIN (size - at, PTO_REMOTE_INLINE_BYTES);
      g_autoptr (GVariant) reply = pto_bridge_call (
          self, "Content",
          g_variant_new ("(@ay@ayb)", pto_remote_make_bytes (digest, PTO_DIGEST_SIZE),
                         pto_remote_make_bytes (data + at, n), at + n == size),
          "()", error);

      if (reply == NULL)
        return FALSE;
      at += n;
      /* It has taken another part: that is a sign of life. */
      pto_call_beat (self->call);
    }
  while (at < size);
  return TRUE;
}

/* Those that the other end has not, by their digests: each is sent once, to whoever asks. */
static gboolean
send_missing (PtoBridge *self, const PtoRegistration *registration, GError **error)
{
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GVariant) there = NULL;
  GVariantBuilder digests;

  if (registration->objects->len == 0)
    return TRUE;
  g_variant_builder_init (&digests, G_VARIANT_TYPE ("aay"));
  for (guint i = 0; i < registration->objects->len; i++)
    g_variant_builder_add_value (
        &digests, pto_remote_make_bytes (registration->contents->data + i * PTO_DIGEST_SIZE,
                                         PTO_DIGEST_SIZE));
  reply = pto_bridge_call (self, "Has", g_variant_new ("(aay)", &digests), "(ab)", error);
  if (reply == NULL)
    return FALSE;
  there = g_variant_get_child_value (reply, 0);
  for (guint i = 0; i < registration->objects->len; i++)
    {
      gboolean is_there = FALSE;

      if (i < g_variant_n_children (there))
        g_variant_get_child (there, i, "b", &is_there);
      if (!is_there
          && !send_contents (self, g_ptr_array_index (registration->objects, i),
                             registration->contents->data + i * PTO_DIGEST_SIZE, error))
        return FALSE;
    }
  return TRUE;
}

/* A function of this process is there what it is imported by; NULL: nothing is known of that. */
static PtoRegistration *
make_importable (PtoBridge *self, const PtoRegistration *registration, GError **error)
{
  const PtoClosure *closure = pto_callable_get_closure (registration->callable);
  g_autoptr (PtoCallable) callable = NULL;

  if (closure->import_path == NULL)
    return NULL;
  if (g_str_has_prefix (closure->import_path, PTO_SERIALIZED_PYTHON) && !self->sends_serialized)
    {
      if (self->node->remote->sends_serialized)
        g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                     _ ("\"%s\" is a function of this process, and %s takes none as bytes: begin "
                        "pto-remote there with --serialized-python and --python"),
                     registration->name, self->node->remote->address);
      return NULL;
    }
  callable = pto_imported_function_new (registration->callable->kind, closure->import_path, error);
  if (callable == NULL)
    return NULL;
  pto_callable_set_name (callable, registration->name);
  return pto_registration_new (callable, self->node->platform, FALSE, NULL, NULL, NULL, error);
}

static gboolean
send_bytes (PtoBridge *self, const PtoRegistration *registration, gboolean below, GError **error)
{
  g_autoptr (GVariant) reply = NULL;
  gconstpointer descriptor, sources;
  gsize descriptor_size, sources_size;
  GVariantBuilder workers;
  const PtoTargets *targets = below ? pto_registration_peek_targets (registration) : NULL;

  if (!send_missing (self, registration, error))
    return FALSE;
  descriptor = g_bytes_get_data (registration->descriptor, &descriptor_size);
  sources = g_bytes_get_data (registration->sources, &sources_size);
  g_variant_builder_init (&workers, G_VARIANT_TYPE ("au"));
  for (guint i = 0; targets != NULL && i < PTO_MAX_CHILDREN; i++)
    if (pto_targets_have (targets, i))
      g_variant_builder_add (&workers, "u", i);
  reply = pto_bridge_call (
      self, "Register",
      g_variant_new ("(@ay@ay@aybau)",
                     pto_remote_make_bytes (registration->digest, PTO_DIGEST_SIZE),
                     pto_remote_make_bytes (descriptor, descriptor_size),
                     pto_remote_make_bytes (sources, sources_size), below, &workers),
      "()", error);
  return reply != NULL;
}

static gboolean
is_collective (PtoCallable *callable)
{
  return callable->source == PTO_CALLABLE_SOURCE_IMPORT
         && pto_remote_rank_find (PTO_IMPORTED_FUNCTION (callable)->import_path) != NULL;
}

gboolean
pto_bridge_send_registration (PtoBridge *self, PtoRegistration *registration, gboolean below,
                              GError **error)
{
  PtoRegistration *sent = registration->callable->source == PTO_CALLABLE_SOURCE_CLOSURE
                              ? make_importable (self, registration, error)
                              : pto_registration_ref (registration);
  gboolean ok;

  if (sent == NULL)
    return FALSE;
  ok = send_bytes (self, sent, below, error);
  if (ok && is_collective (registration->callable))
    g_hash_table_add (self->collectives, g_memdup2 (registration->digest, PTO_DIGEST_SIZE));
  if (ok)
    g_hash_table_replace (self->digests, g_memdup2 (registration->digest, PTO_DIGEST_SIZE),
                          g_memdup2 (sent->digest, PTO_DIGEST_SIZE));
  pto_registration_unref (sent);
  return ok;
}

/* For its own tasks. A function of this process may be somebody else's to run: when it can not be
 * there, whether it has a path or not, its tasks are refused, and not all that it is registered
 * with; unless this worker was named to have it. */
static gboolean
offer (PtoBridge *self, PtoRegistration *registration, gboolean is_named, GError **error)
{
  GError *refused = NULL;

  if (pto_bridge_send_registration (self, registration, FALSE, &refused))
    return TRUE;
  if (refused == NULL)
    refused = pto_remote_spec_make_refusal (self->node->remote, registration->name);
  if (is_named || registration->callable->source != PTO_CALLABLE_SOURCE_CLOSURE)
    {
      g_propagate_error (error, refused);
      return FALSE;
    }
  g_hash_table_replace (self->refused, g_memdup2 (registration->digest, PTO_DIGEST_SIZE), refused);
  return TRUE;
}

static gboolean
send_commit (PtoBridge *self, GVariantBuilder *digests, GError **error)
{
  g_autoptr (GVariant) reply
      = pto_bridge_call (self, "Commit", g_variant_new ("(aay)", digests), "()", error);

  return reply != NULL;
}

gboolean
pto_bridge_offer_all (PtoBridge *self, GPtrArray *list, GError **error)
{
  GVariantBuilder digests;

  g_variant_builder_init (&digests, G_VARIANT_TYPE ("aay"));
  for (guint i = 0; i < list->len; i++)
    {
      PtoRegistration *registration = g_ptr_array_index (list, i);
      const guint8 *there;

      if (registration->callable->kind != PTO_CALLABLE_ORCHESTRATION)
        continue;
      if (!offer (self, registration, pto_registration_peek_targets (registration) != NULL, error))
        {
          g_variant_builder_clear (&digests);
          return FALSE;
        }
      there = g_hash_table_lookup (self->digests, registration->digest);
      if (there != NULL)
        g_variant_builder_add_value (&digests, pto_remote_make_bytes (there, PTO_DIGEST_SIZE));
    }
  return send_commit (self, &digests, error);
}

/* What could not be sent has nothing to be told there. */
gboolean
pto_bridge_commit (PtoBridge *self, const struct pto_call *call, GError **error)
{
  const guint8 *there = g_hash_table_lookup (self->digests, call->digest);
  GVariantBuilder digests;

  if (there == NULL)
    return TRUE;
  g_variant_builder_init (&digests, G_VARIANT_TYPE ("aay"));
  g_variant_builder_add_value (&digests, pto_remote_make_bytes (there, PTO_DIGEST_SIZE));
  return send_commit (self, &digests, error);
}

gboolean
pto_bridge_register (PtoBridge *self, const struct pto_call *call, GError **error)
{
  g_autoptr (GBytes) descriptor = NULL;
  g_autoptr (GBytes) sources = NULL;
  g_autoptr (GError) local = NULL;
  PtoRegistration *registration;
  gboolean is_named;
  gboolean ok;

  if (g_hash_table_contains (self->digests, call->digest))
    return TRUE;
  if (!pto_child_unpack_registration (call->body, call->bytes, &descriptor, &sources, &is_named))
    return pto_refuse (error, PTO_ERROR_TAMPERED,
                       _ ("a registration of which only a part has arrived"));
  registration = pto_registration_new_from_bytes (call->digest, descriptor, sources, &local);
  if (registration == NULL)
    {
      /* A function that was made after this process, and is for others: its tasks are refused. */
      if (!self->node->remote->sends_serialized
          && g_error_matches (local, PTO_ERROR, PTO_ERROR_NOT_FOUND)
          && pto_descriptor_is_closure (descriptor))
        {
          g_hash_table_add (self->late, g_memdup2 (call->digest, PTO_DIGEST_SIZE));
          return TRUE;
        }
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
  ok = offer (self, registration, is_named, error);
  pto_registration_unref (registration);
  return ok;
}

/* A function and what is imported by its path are one there. */
static gboolean
is_shared (PtoBridge *self, const guint8 *digest, const guint8 *there)
{
  GHashTableIter iter;
  gpointer other, others;

  g_hash_table_iter_init (&iter, self->digests);
  while (g_hash_table_iter_next (&iter, &other, &others))
    if (!pto_digest_equal (other, digest) && pto_digest_equal (others, there))
      return TRUE;
  return FALSE;
}

void
pto_bridge_unregister (PtoBridge *self, const struct pto_call *call)
{
  const guint8 *there = g_hash_table_lookup (self->digests, call->digest);
  g_autoptr (GVariant) reply = NULL;

  if (there != NULL && !is_shared (self, call->digest, there))
    reply = pto_bridge_call (
        self, "Unregister", g_variant_new ("(@ay)", pto_remote_make_bytes (there, PTO_DIGEST_SIZE)),
        "()", NULL);
  g_hash_table_remove (self->digests, call->digest);
  g_hash_table_remove (self->refused, call->digest);
}
