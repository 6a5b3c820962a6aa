/* child-protocol.c: what do a worker and its children say to each other, whatever they are?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "child-protocol.h"

#include "base/error.h"
#include "core/pack.h"
#include "values/address-range.h"
#include "values/exception.h"

#include <gio/gio.h>
#include <string.h>

/* More blocks than a thread has in stock of a size that is seldom asked for (GLib keeps at most
 * 128), so that the allocator's locks are needed. */
#define STOCK 160
#define STOCK_BYTES 304

/* --- failures --- */

static void
set_failure (struct pto_failure *failure, const GError *error, gboolean with_contents)
{
  int status = pto_error_get_status (error);

  /* Our own codes are those of the floors below, which need no domain. */
  if (status != 0)
    pto_failure_set (failure, status, NULL, "%s", error->message);
  else
    {
      PtoException *exception = pto_exception_get_for_error (error);

      pto_failure_set (failure, error->code, g_quark_to_string (error->domain), "%s",
                       error->message);
      if (exception != NULL)
        failure->detail_bytes = (guint32) pto_exception_pack (
            exception, with_contents, failure->detail, sizeof failure->detail);
    }
}

guint32
pto_failure_take_error (struct pto_failure *failure, GError *error, gboolean with_contents)
{
  guint32 status;

  if (error == NULL)
    return 0;
  /* A binding can make an error of any code; 0 would say that all is well. */
  if (error->domain == PTO_ERROR && error->code <= 0)
    error->code = PTO_ERROR_INTERNAL;
  status = (guint32) pto_error_get_status (error);
  set_failure (failure, error, with_contents);
  g_error_free (error);
  return status != 0 ? status : (guint32) PTO_ERROR_TASK_FAILED;
}

void
pto_failure_propagate (const struct pto_failure *failure, GError **error)
{
  if (failure->domain[0] == '\0')
    pto_error_set_status (error, (enum pto_status) failure->code, failure->text);
  else if (strcmp (failure->domain, g_quark_to_string (PTO_EXCEPTION)) == 0)
    {
      g_autoptr (PtoException) exception
          = pto_exception_unpack (failure->detail, failure->detail_bytes);

      g_propagate_error (error, pto_exception_make_error (exception, failure->text));
    }
  else
    g_set_error_literal (error, g_quark_from_string (failure->domain), failure->code,
                         failure->text);
}

/* --- registrations on their way --- */

/* A reader gets a copy, or NULL: it is not all there. */
static void
pack_bytes (struct pto_pack *pack, GBytes **bytes)
{
  gsize size = 0;
  const guint8 *data = *bytes != NULL ? g_bytes_get_data (*bytes, &size) : NULL;
  guint32 n = (guint32) size;

  PTO_PACK (pack, n);
  PTO_PACK_ARRAY (pack, data, n);
  if (pack->way == PTO_PACK_READS && !pack->bad)
    *bytes = g_bytes_new (data, n);
}

static void
pack_registration (struct pto_pack *pack, GBytes **descriptor, GBytes **sources, bool *is_named)
{
  pack_bytes (pack, descriptor);
  pack_bytes (pack, sources);
  pto_pack_flag (pack, is_named);
}

GBytes *
pto_child_pack_registration (GBytes *descriptor, GBytes *sources, gboolean is_named)
{
  struct pto_pack pack = { .way = PTO_PACK_GROWS };
  bool flag = is_named;

  pack_registration (&pack, &descriptor, &sources, &flag);
  return g_bytes_new_with_free_func (pack.bytes, pack.at, free, pack.bytes);
}

gboolean
pto_child_unpack_registration (const guint8 *body, guint64 bytes, GBytes **descriptor,
                               GBytes **sources, gboolean *is_named)
{
  struct pto_pack pack = pto_pack_read (body, bytes);
  bool flag = false;

  *sources = NULL;
  *descriptor = NULL;
  pack_registration (&pack, descriptor, sources, &flag);
  *is_named = flag;
  if (!pack.bad && pack.at == bytes)
    return TRUE;
  g_clear_pointer (descriptor, g_bytes_unref);
  g_clear_pointer (sources, g_bytes_unref);
  return FALSE;
}

/* --- requests --- */

void
pto_child_probe (void *data)
{
  g_autofree char *name = g_strdup_printf ("pto-%p", data);
  g_autoptr (GCancellable) object = g_cancellable_new ();
  gpointer blocks[STOCK];
  gsize once = 0;

  for (guint i = 0; i < STOCK; i++)
    blocks[i] = g_slice_alloc (STOCK_BYTES);
  for (guint i = 0; i < STOCK; i++)
    g_slice_free1 (STOCK_BYTES, blocks[i]);
  if (g_once_init_enter (&once))
    g_once_init_leave (&once, 1);
  g_quark_from_string (name);
  g_type_from_name (name);
  g_object_class_find_property (G_OBJECT_GET_CLASS (object), name);
  /* Also those of signals. */
  g_cancellable_cancel (object);
  g_main_context_is_owner (g_main_context_default ());
  pto_remote_range_probe ();
}

guint8 *
pto_child_offer (PtoChildTrace *entry, guint64 size)
{
  entry->size = size;
  return size > 0 && size <= entry->room ? (guint8 *) (guintptr) entry->address : NULL;
}

/* Twice: how large is it, and into the memory that there is for it then. */
gboolean
pto_child_tell_pieces (const struct pto_call *call, guint child, const PtoTracePieces *pieces)
{
  PtoChildTrace *table = NULL;
  guint8 *to;

  if (call->bytes != sizeof (guint64))
    return FALSE;
  memcpy (&table, call->body, sizeof table);
  if (pieces->list->len == 0 && pieces->n_left_out == 0)
    return FALSE;
  to = pto_child_offer (&table[child], pto_trace_pieces_get_packed_size (pieces));
  if (to != NULL)
    pto_trace_pieces_pack (pieces, to);
  return to != NULL;
}
