/* pto-remote-serve-task.c: what is memory and a task to the far end of a remote worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-remote-session-private.h"

#include "process/arena.h"

#include "pto-error-private.h"
#include "pto-text-private.h"

#include <string.h>

/* --- memory --- */

void
pto_remote_session_block_free (gpointer data)
{
  PtoRemoteMemory *block = data;

  if (block->address != 0)
    pto_arena_free (block->address, block->bytes);
  g_free (block);
}

static gboolean
begin_block (PtoRemoteSession *session, guint64 number, guint64 bytes, GError **error)
{
  PtoRemoteMemory *block;
  guint64 address = 0;

  if (g_hash_table_contains (session->blocks, &number)
      || g_hash_table_size (session->blocks) >= PTO_REMOTE_ITEMS_MAX)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("memory number %" PRIu64 " is there already, or there are more than %u"),
                   number, PTO_REMOTE_ITEMS_MAX);
      return FALSE;
    }
  if (bytes > 0)
    address = pto_arena_alloc (bytes);
  if (bytes > 0 && address == 0)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_NO_MEMORY,
          _ ("%s has no room for %" PRIu64
             " bytes of a task's tensors: raise its parameter arena, which is %" PRIu64 " bytes"),
          session->worker->path, bytes, session->worker->params.values[PTO_PARAMETER_ARENA]);
      return FALSE;
    }
  block = g_new0 (PtoRemoteMemory, 1);
  block->number = number;
  block->bytes = bytes;
  block->address = address;
  g_hash_table_insert (session->blocks, &block->number, block);
  return TRUE;
}

gboolean
pto_remote_session_change_blocks (PtoRemoteSession *session, GVariant *body, GError **error)
{
  g_autoptr (GVariant) dropped = g_variant_get_child_value (body, 0);
  g_autoptr (GVariant) begun = g_variant_get_child_value (body, 1);
  gsize n;
  const guint64 *numbers = g_variant_get_fixed_array (dropped, &n, sizeof *numbers);
  guint64 number, bytes;

  for (gsize i = 0; i < n; i++)
    g_hash_table_remove (session->blocks, &numbers[i]);
  n = g_variant_n_children (begun);
  for (gsize i = 0; i < n; i++)
    {
      g_variant_get_child (begun, i, "(tt)", &number, &bytes);
      if (begin_block (session, number, bytes, error))
        continue;
      while (i-- > 0)
        {
          g_variant_get_child (begun, i, "(tt)", &number, NULL);
          g_hash_table_remove (session->blocks, &number);
        }
      return FALSE;
    }
  return TRUE;
}

/* Where those bytes are; NULL: they are not there, or not so many. */
static const PtoRemoteMemory *
find_block (PtoRemoteSession *session, guint64 number, guint64 offset, guint64 bytes,
            GError **error)
{
  const PtoRemoteMemory *block = g_hash_table_lookup (session->blocks, &number);

  if (block != NULL && offset <= block->bytes && bytes <= block->bytes - offset)
    return block;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               _ ("%" PRIu64 " bytes from %" PRIu64 " of memory number %" PRIu64 " are not there"),
               bytes, offset, number);
  return NULL;
}

static gboolean
put_contents (PtoRemoteSession *session, guint64 number, guint64 offset, GVariant *contents,
              GError **error)
{
  gsize size;
  gconstpointer data = g_variant_get_fixed_array (contents, &size, 1);
  const PtoRemoteMemory *block = find_block (session, number, offset, size, error);

  if (block != NULL && size > 0)
    memcpy ((gpointer) (guintptr) (block->address + offset), data, size);
  return block != NULL;
}

gboolean
pto_remote_session_put_bytes (PtoRemoteSession *session, GVariant *body, GError **refused,
                              GError **error)
{
  guint64 number, offset, bytes;
  const PtoRemoteMemory *block;
  g_autofree gpointer nowhere = NULL;

  g_variant_get (body, "(ttt)", &number, &offset, &bytes);
  if (bytes > PTO_REMOTE_INLINE_BYTES)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("a part of %" PRIu64 " bytes: no more than %" PRIu64 " follow a message"),
                   bytes, PTO_REMOTE_INLINE_BYTES);
      return FALSE;
    }
  block = find_block (session, number, offset, bytes, refused);
  if (block == NULL)
    nowhere = g_malloc (bytes);
  return pto_remote_stream_read (
      session->stream, block != NULL ? (gpointer) (guintptr) (block->address + offset) : nowhere,
      bytes, error);
}

gboolean
pto_remote_session_send_contents (PtoRemoteSession *session, GDBusMessage *message, GError **error)
{
  g_autoptr (GDBusMessage) answer = NULL;
  guint64 number, offset, bytes;
  const PtoRemoteMemory *block;

  g_variant_get (g_dbus_message_get_body (message), "(ttt)", &number, &offset, &bytes);
  block = find_block (session, number, offset, bytes, error);
  if (block == NULL)
    return FALSE;
  if (!pto_remote_session_wants_a_reply (message))
    return TRUE;
  answer = g_dbus_message_new_method_reply (message);
  g_dbus_message_set_body (answer, g_variant_new ("(t)", bytes));
  /* The reader finds out when nobody is there. */
  pto_remote_stream_send_with (session->stream, answer,
                               (gconstpointer) (guintptr) (block->address + offset), bytes, NULL,
                               NULL);
  return TRUE;
}

/* --- tasks --- */

/* One Run, as the child has it. */
typedef struct
{
  struct pto_call call;
  struct pto_call_config config;
  GArray *tensors; /* struct pto_continuous_tensor */
  GVariant *body;  /* and the parts of it that are pointed at */
  GVariant *digest;
  GVariant *scalars;
  GVariant *kinds;
} Task;

static void
task_clear (Task *task)
{
  g_clear_pointer (&task->tensors, g_array_unref);
  g_clear_pointer (&task->digest, g_variant_unref);
  g_clear_pointer (&task->scalars, g_variant_unref);
  g_clear_pointer (&task->kinds, g_variant_unref);
}

static gboolean
take_config (Task *task, GError **error)
{
  g_autoptr (GVariant) config = g_variant_get_child_value (task->body, 3);
  g_autoptr (GVariant) texts = NULL;
  gconstpointer data;
  gsize size;

  g_variant_get (config, "(iiiiiii@ay)", &task->config.block_dim, &task->config.aicpu_thread_num,
                 &task->config.enable_l2_swimlane, &task->config.enable_dump_tensor,
                 &task->config.enable_pmu, &task->config.enable_dep_gen,
                 &task->config.enable_scope_stats, &texts);
  data = g_variant_get_fixed_array (texts, &size, 1);
  /* They end in 0 twice. */
  if (size > sizeof task->config.output_prefix - 2)
    size = sizeof task->config.output_prefix - 2;
  if (size > 0)
    memcpy (task->config.output_prefix, data, size);
  task->call.config = &task->config;
  return TRUE;
}

/* One piece of its memory, and what is in it. */
static gboolean
take_piece (PtoRemoteSession *session, GVariant *described, GError **error)
{
  g_autoptr (GVariant) spans = g_variant_get_child_value (described, 4);
  guint64 number, offset;
  PtoRemotePiece piece = { 0 };

  g_variant_get (described, "(tttu@a(tay))", &number, &offset, &piece.bytes, &piece.access, NULL);
  if (piece.bytes > 0)
    {
      const PtoRemoteMemory *block = find_block (session, number, offset, piece.bytes, error);

      if (block == NULL)
        return FALSE;
      piece.address = block->address + offset;
      if ((piece.access & PTO_WIRE_READ) == 0)
        memset ((gpointer) (guintptr) piece.address, 0, piece.bytes);
    }
  for (gsize i = 0; i < g_variant_n_children (spans); i++)
    {
      g_autoptr (GVariant) contents = NULL;
      guint64 at;

      g_variant_get_child (spans, i, "(t@ay)", &at, &contents);
      if (!put_contents (session, number, at, contents, error))
        return FALSE;
    }
  g_array_append_val (session->pieces, piece);
  return TRUE;
}

static gboolean
take_pieces (PtoRemoteSession *session, Task *task, GError **error)
{
  g_autoptr (GVariant) list = g_variant_get_child_value (task->body, 4);
  gsize n = g_variant_n_children (list);

  g_array_set_size (session->pieces, 0);
  if (session->unheard != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&session->unheard));
      return FALSE;
    }
  if (!pto_remote_session_change_blocks (session, task->body, error))
    return FALSE;
  for (gsize i = 0; i < n; i++)
    {
      g_autoptr (GVariant) described = g_variant_get_child_value (list, i);

      if (!take_piece (session, described, error))
        return FALSE;
    }
  return TRUE;
}

/* NULL: it is not there, or not so long. */
static const PtoRemotePiece *
find_piece (PtoRemoteSession *session, guint32 number, guint64 offset, guint64 bytes,
            GError **error)
{
  if (number < session->pieces->len)
    {
      const PtoRemotePiece *piece = &g_array_index (session->pieces, PtoRemotePiece, number);

      if (offset <= piece->bytes && bytes <= piece->bytes - offset)
        return piece;
    }
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               _ ("%" PRIu64 " bytes from %" PRIu64 " of piece %u are not memory of the task"),
               bytes, offset, number);
  return NULL;
}

static gboolean
take_tensors (PtoRemoteSession *session, Task *task, GError **error)
{
  g_autoptr (GVariant) list = g_variant_get_child_value (task->body, 5);
  gsize n = g_variant_n_children (list);

  task->tensors = g_array_new (FALSE, TRUE, sizeof (struct pto_continuous_tensor));
  for (gsize i = 0; i < n; i++)
    {
      struct pto_continuous_tensor tensor = { 0 };
      g_autoptr (GVariant) shape = NULL;
      const guint32 *dims;
      gsize n_dims;
      guint32 number;
      guint64 offset, bytes;
      const PtoRemotePiece *piece;

      g_variant_get_child (list, i, "(utu@au)", &number, &offset, &tensor.dtype, &shape);
      dims = g_variant_get_fixed_array (shape, &n_dims, sizeof *dims);
      bytes = tensor.dtype < PTO_DTYPE_COUNT ? pto_dtype_size ((DataType) tensor.dtype) : 0;
      for (gsize d = 0; d < n_dims && bytes > 0; d++)
        if (__builtin_mul_overflow (bytes, dims[d], &bytes))
          bytes = G_MAXUINT64;
      if (tensor.dtype >= PTO_DTYPE_COUNT || n_dims > G_N_ELEMENTS (tensor.shapes))
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, _ ("argument %zu is no tensor"),
                       i);
          return FALSE;
        }
      piece = find_piece (session, number, offset, bytes, error);
      if (piece == NULL)
        return FALSE;
      for (gsize d = 0; d < n_dims; d++)
        tensor.shapes[d] = dims[d];
      tensor.ndims = (guint32) n_dims;
      tensor.data = piece->address + offset;
      tensor.access = piece->access & (PTO_WIRE_READ | PTO_WIRE_WRITE);
      g_array_append_val (task->tensors, tensor);
    }
  return TRUE;
}

static gboolean
take_task (PtoRemoteSession *session, Task *task, GError **error)
{
  gsize n_scalars, n_kinds;

  task->call.request = PTO_REQUEST_TASK;
  task->call.digest = pto_remote_session_get_digest (task->body, 2, &task->digest, error);
  if (task->call.digest == NULL || !take_config (task, error) || !take_pieces (session, task, error)
      || !take_tensors (session, task, error))
    return FALSE;
  task->scalars = g_variant_get_child_value (task->body, 6);
  task->kinds = g_variant_get_child_value (task->body, 7);
  task->call.args.scalars = g_variant_get_fixed_array (task->scalars, &n_scalars, sizeof (guint64));
  task->call.kinds = g_variant_get_fixed_array (task->kinds, &n_kinds, 1);
  if (n_kinds == 0)
    task->call.kinds = NULL;
  else if (n_kinds != n_scalars)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                           _ ("there are not as many kinds as scalars"));
      return FALSE;
    }
  task->call.args.scalar_count = (int32_t) n_scalars;
  task->call.args.tensors = (const struct pto_continuous_tensor *) task->tensors->data;
  task->call.args.tensor_count = (int32_t) task->tensors->len;
  return TRUE;
}

/* All pieces that are written, or none when they are too many for one message. */
static GVariant *
make_written (PtoRemoteSession *session)
{
  GVariantBuilder list;
  guint64 total = 0;

  for (guint i = 0; i < session->pieces->len; i++)
    if ((g_array_index (session->pieces, PtoRemotePiece, i).access & PTO_WIRE_WRITE) != 0)
      total += g_array_index (session->pieces, PtoRemotePiece, i).bytes;
  g_variant_builder_init (&list, G_VARIANT_TYPE ("aay"));
  for (guint i = 0; i < session->pieces->len && total <= PTO_REMOTE_INLINE_BYTES; i++)
    {
      const PtoRemotePiece *piece = &g_array_index (session->pieces, PtoRemotePiece, i);
      gboolean is_written = (piece->access & PTO_WIRE_WRITE) != 0;

      g_variant_builder_add_value (&list,
                                   pto_remote_make_bytes ((gconstpointer) (guintptr) piece->address,
                                                          is_written ? (gsize) piece->bytes : 0));
    }
  return g_variant_builder_end (&list);
}

GVariant *
pto_remote_session_run_task (PtoRemoteSession *session, GVariant *body, GError **error)
{
  g_autofree struct pto_failure *failure = g_new0 (struct pto_failure, 1);
  Task task = { .body = body };
  GVariant *result = NULL;
  guint32 status;

  if (take_task (session, &task, error))
    {
      guint32 record;
      guint64 id;

      g_variant_get_child (body, 8, "u", &record);
      g_variant_get_child (body, 9, "t", &id);
      pto_call_mailbox_set_record (session->mailbox, record, id);
      status = pto_remote_session_serve_call (session, &task.call, failure);
      result = g_variant_new ("(u(iss@ay)@aay)", status, failure->code,
                              status != 0 ? failure->domain : "", status != 0 ? failure->text : "",
                              pto_remote_make_bytes (failure->detail, failure->detail_bytes),
                              status == 0 ? make_written (session)
                                          : g_variant_new_array (G_VARIANT_TYPE ("ay"), NULL, 0));
    }
  task_clear (&task);
  return result;
}

GVariant *
pto_remote_session_tell_record (PtoRemoteSession *session, GVariant *body, GError **error)
{
  guint64 offset, n, total;
  GVariant *result;

  g_variant_get (body, "(t)", &offset);
  if (offset == 0)
    {
      g_clear_pointer (&session->record, g_byte_array_unref);
      session->record = pto_child_take_record (session->child);
    }
  total = session->record != NULL ? session->record->len : 0;
  if (offset > total)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("a record of %" PRIu64 " bytes has none at %" PRIu64), total, offset);
      return NULL;
    }
  n = MIN (total - offset, PTO_REMOTE_INLINE_BYTES);
  result = g_variant_new ("(t@ay)", total,
                          pto_remote_make_bytes (n > 0 ? session->record->data + offset : NULL, n));
  if (offset + n == total)
    g_clear_pointer (&session->record, g_byte_array_unref);
  return result;
}
