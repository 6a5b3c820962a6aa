/* serve-register.c: how does a remote worker get what it can run, at its own end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "serve.h"

#include "base/error.h"
#include "callable/callable.h"
#include "callable/function.h"
#include "common/text.h"
#include "compile/object-cache.h"

#include <string.h>

GVariant *
pto_far_end_tell_there (GVariant *body, GError **error)
{
  g_autoptr (GVariant) digests = g_variant_get_child_value (body, 0);
  g_autofree char *dir = pto_cache_dup_dir (error);
  GVariantBuilder there;

  if (dir == NULL)
    return NULL;
  g_variant_builder_init (&there, G_VARIANT_TYPE ("ab"));
  for (gsize i = 0; i < g_variant_n_children (digests); i++)
    {
      g_autoptr (GVariant) digest = g_variant_get_child_value (digests, i);
      g_autofree char *object = NULL;
      gsize size;
      gconstpointer data = g_variant_get_fixed_array (digest, &size, 1);

      g_variant_builder_add (
          &there, "b", size == PTO_DIGEST_SIZE && pto_cache_find_contents (dir, data, &object));
    }
  return g_variant_new ("(ab)", &there);
}

gboolean
pto_far_end_take_contents (PtoFarEnd *session, GVariant *body, GError **error)
{
  g_autoptr (GVariant) holder = NULL;
  g_autoptr (GVariant) part = g_variant_get_child_value (body, 1);
  g_autofree char *dir = NULL;
  g_autofree char *object = NULL;
  guint8 found[PTO_DIGEST_SIZE];
  const guint8 *digest = pto_far_end_get_digest (body, 0, &holder, error);
  gconstpointer data;
  gboolean last;
  gsize size;

  if (digest == NULL)
    return FALSE;
  if (session->contents->len == 0)
    memcpy (session->contents_digest, digest, PTO_DIGEST_SIZE);
  data = g_variant_get_fixed_array (part, &size, 1);
  g_variant_get_child (body, 2, "b", &last);
  if (memcmp (session->contents_digest, digest, PTO_DIGEST_SIZE) != 0
      || session->contents->len + size > G_MAXINT32)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("parts of two contents, or too many"));
  g_byte_array_append (session->contents, data, (guint) size);
  if (!last)
    return TRUE;
  pto_digest_data (session->contents->data, session->contents->len, found);
  dir = pto_cache_dup_dir (error);
  if (dir != NULL && memcmp (found, digest, PTO_DIGEST_SIZE) != 0)
    g_set_error_literal (error, PTO_ERROR, PTO_ERROR_TAMPERED,
                         _ ("contents that came do not hash to what they are said to be"));
  else if (dir != NULL)
    pto_cache_add (dir, NULL, session->contents->data, session->contents->len, &object, found,
                   error);
  g_byte_array_set_size (session->contents, 0);
  return object != NULL;
}

/* The contents are files of this machine. */
static GBytes *
move_sources (GBytes *descriptor, GBytes *sources, GError **error)
{
  g_autofree char *dir = pto_cache_dup_dir (error);
  g_autoptr (GPtrArray) objects = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GByteArray) contents = NULL;

  if (dir == NULL)
    return NULL;
  contents = pto_registration_list_contents (descriptor, error);
  for (guint i = 0; contents != NULL && i < contents->len / PTO_DIGEST_SIZE; i++)
    {
      char *object = NULL;

      if (!pto_cache_find_contents (dir, contents->data + i * PTO_DIGEST_SIZE, &object))
        {
          g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
                               _ ("contents of a callable have not been sent"));
          return NULL;
        }
      g_ptr_array_add (objects, object);
    }
  return contents != NULL ? pto_registration_move_sources (sources, objects, error) : NULL;
}

static GBytes *
get_bytes (GVariant *body, guint child)
{
  g_autoptr (GVariant) value = g_variant_get_child_value (body, child);

  return g_variant_get_data_as_bytes (value);
}

static gboolean
add_below (PtoFarEnd *session, const guint8 *digest, GBytes *descriptor, GBytes *sources,
           GVariant *numbers, GError **error)
{
  PtoRegistration *registration
      = pto_registration_new_from_bytes (digest, descriptor, sources, error);
  PtoCallableHandle *handle;

  if (registration == NULL)
    return FALSE;
  if (registration->callable->source == PTO_CALLABLE_SOURCE_IMPORT
      && !pto_far_end_check_import (
          session, PTO_IMPORTED_FUNCTION (registration->callable)->import_path, error))
    {
      pto_registration_unref (registration);
      return FALSE;
    }
  if (g_variant_n_children (numbers) > 0)
    {
      PtoTargets targets = { { 0 } };

      for (gsize i = 0; i < g_variant_n_children (numbers); i++)
        {
          guint32 number;

          g_variant_get_child (numbers, i, "u", &number);
          pto_targets_add (&targets, number);
        }
      pto_registration_set_targets (registration, &targets);
    }
  handle = pto_worker_adopt (session->worker, registration, error);
  pto_registration_unref (registration);
  if (handle == NULL)
    return FALSE;
  /* It stays for as long as the worker does. */
  pto_callable_handle_unref (handle);
  return TRUE;
}

gboolean
pto_far_end_register (PtoFarEnd *session, GVariant *body, GError **error)
{
  g_autoptr (GVariant) holder = NULL;
  g_autoptr (GBytes) descriptor = get_bytes (body, 1);
  g_autoptr (GBytes) given = get_bytes (body, 2);
  g_autoptr (GBytes) sources = NULL;
  g_autoptr (GBytes) packed = NULL;
  const guint8 *digest = pto_far_end_get_digest (body, 0, &holder, error);
  struct pto_call call = { .request = PTO_REQUEST_REGISTER, .digest = digest };
  gboolean below;
  gsize size;

  if (digest == NULL)
    return FALSE;
  sources = move_sources (descriptor, given, error);
  if (sources == NULL)
    return FALSE;
  g_variant_get_child (body, 3, "b", &below);
  if (below)
    {
      g_autoptr (GVariant) numbers = g_variant_get_child_value (body, 4);

      return add_below (session, digest, descriptor, sources, numbers, error);
    }
  packed = pto_child_pack_registration (descriptor, sources, TRUE);
  call.body = g_bytes_get_data (packed, &size);
  call.bytes = size;
  return pto_far_end_ask (session, &call, error);
}

gboolean
pto_far_end_commit (PtoFarEnd *session, GVariant *body, GError **error)
{
  g_autoptr (GVariant) digests = g_variant_get_child_value (body, 0);

  for (gsize i = 0; i < g_variant_n_children (digests); i++)
    {
      g_autoptr (GVariant) holder = NULL;
      struct pto_call call
          = { .request = PTO_REQUEST_COMMIT,
              .digest = pto_far_end_get_digest (digests, (guint) i, &holder, error) };

      if (call.digest == NULL || !pto_far_end_ask (session, &call, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
pto_far_end_unregister (PtoFarEnd *session, GVariant *body, GError **error)
{
  g_autoptr (GVariant) holder = NULL;
  struct pto_call call = { .request = PTO_REQUEST_UNREGISTER,
                           .digest = pto_far_end_get_digest (body, 0, &holder, error) };

  return call.digest != NULL && pto_far_end_ask (session, &call, error);
}
