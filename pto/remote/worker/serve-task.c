/* serve-task.c: what is memory and a task to the far end of a remote worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "serve.h"

#include "process/arena.h"

#include "base/error.h"
#include "common/text.h"
#include "remote/wire/task-format.h"

#include <string.h>

/* --- memory --- */

void
pto_far_end_block_free (gpointer data)
{
  PtoRemoteMemory *block = data;

  if (block->address != 0)
    pto_arena_free (block->address, block->bytes);
  g_free (block);
}

static gboolean
begin_block (PtoFarEnd *session, guint64 number, guint64 bytes, GError **error)
{
  PtoRemoteMemory *block;
  guint64 address = 0;

  if (g_hash_table_contains (session->blocks, &number)
      || g_hash_table_size (session->blocks) >= PTO_REMOTE_ITEMS_MAX)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("memory number %" PRIu64 " is there already, or there are more than %u"),
                       number, PTO_REMOTE_ITEMS_MAX);
  if (bytes > 0)
    address = pto_arena_alloc (bytes);
  if (bytes > 0 && address == 0)
    return pto_refuse (
        error, PTO_ERROR_NO_MEMORY,
        _ ("%s has no room for %" PRIu64
           " bytes of a task's tensors: raise its parameter arena, which is %" PRIu64 " bytes"),
        session->worker->node.path, bytes, session->worker->params.values[PTO_PARAMETER_ARENA]);
  block = g_new0 (PtoRemoteMemory, 1);
  block->number = number;
  block->bytes = bytes;
  block->address = address;
  g_hash_table_insert (session->blocks, &block->number, block);
  return TRUE;
}

/* What is to be dropped and is not there was never begun, since there was no room. All are begun,
 * or none. */
static gboolean
change_blocks (PtoFarEnd *session, const guint64 *dropped, gsize n_dropped,
               const PtoRemoteRunBlock *begun, gsize n_begun, GError **error)
{
  for (gsize i = 0; i < n_dropped; i++)
    g_hash_table_remove (session->blocks, &dropped[i]);
  for (gsize i = 0; i < n_begun; i++)
    {
      if (begin_block (session, begun[i].number, begun[i].bytes, error))
        continue;
      while (i-- > 0)
        g_hash_table_remove (session->blocks, &begun[i].number);
      return FALSE;
    }
  return TRUE;
}

gboolean
pto_far_end_begin (PtoFarEnd *session, GVariant *body, GError **error)
{
  g_autoptr (GVariant) dropped = g_variant_get_child_value (body, 0);
  g_autoptr (GVariant) begun = g_variant_get_child_value (body, 1);
  gsize n_dropped, n_begun;
  const guint64 *numbers = g_variant_get_fixed_array (dropped, &n_dropped, sizeof *numbers);
  const PtoRemoteRunBlock *blocks
      = g_variant_get_fixed_array (begun, &n_begun, sizeof (PtoRemoteRunBlock));

  /* What was put for a task that never came is not in the way of the next. */
  g_clear_error (&session->unheard);
  return change_blocks (session, numbers, n_dropped, blocks, n_begun, error);
}

/* Where those bytes are; NULL: they are not there, or not so many. */
static const PtoRemoteMemory *
find_block (PtoFarEnd *session, guint64 number, guint64 offset, guint64 bytes, GError **error)
{
  const PtoRemoteMemory *block = g_hash_table_lookup (session->blocks, &number);

  if (block != NULL && offset <= block->bytes && bytes <= block->bytes - offset)
    return block;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               _ ("%" PRIu64 " bytes from %" PRIu64 " of memory number %" PRIu64 " are not there"),
               bytes, offset, number);
  return NULL;
}

gboolean
pto_far_end_put_bytes (PtoFarEnd *session, GVariant *body, GError **refused, GError **error)
{
  guint64 number, offset, bytes;
  const PtoRemoteMemory *block;
  g_autofree gpointer nowhere = NULL;
  guint64 most = session->fabric != NULL ? PTO_REMOTE_FABRIC_BYTES : PTO_REMOTE_INLINE_BYTES;
  gpointer to;

  g_variant_get (body, "(ttt)", &number, &offset, &bytes);
  if (bytes > most)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("a part of %" PRIu64 " bytes: no more than %" PRIu64 " follow a message"),
                       bytes, most);
  block = find_block (session, number, offset, bytes, refused);
  if (block == NULL)
    nowhere = g_malloc (bytes);
  to = block != NULL ? (gpointer) (guintptr) (block->address + offset) : nowhere;
  return session->fabric != NULL
             ? pto_remote_fabric_receive (session->fabric, session->stream, to, bytes, error)
             : pto_remote_stream_read (session->stream, to, bytes, error);
}

/* The reader finds out when nobody is there; when it is the fabric that is not, it is told. */
static void
send_parts (PtoFarEnd *session, gconstpointer data, guint64 size)
{
  g_autoptr (GError) error = NULL;

  for (guint64 at = 0; at < size && error == NULL; at += PTO_REMOTE_FABRIC_BYTES)
    pto_remote_fabric_send (session->fabric, session->stream, (const guint8 *) data + at,
                            MIN (size - at, PTO_REMOTE_FABRIC_BYTES), &error);
  if (error == NULL)
    return;
  if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CLOSED))
    g_printerr ("pto-remote: %s\n", error->message);
  pto_remote_stream_shut (session->stream);
}

gboolean
pto_far_end_send_contents (PtoFarEnd *session, GDBusMessage *message, GError **error)
{
  g_autoptr (GDBusMessage) answer = NULL;
  guint64 number, offset, bytes;
  const PtoRemoteMemory *block;

  g_variant_get (g_dbus_message_get_body (message), "(ttt)", &number, &offset, &bytes);
  block = find_block (session, number, offset, bytes, error);
  if (block == NULL)
    return FALSE;
  if (!pto_far_end_wants_a_reply (message))
    return TRUE;
  answer = g_dbus_message_new_method_reply (message);
  g_dbus_message_set_body (answer, g_variant_new ("(t)", bytes));
  pto_remote_stream_send_with (session->stream, answer,
                               (gconstpointer) (guintptr) (block->address + offset),
                               session->fabric == NULL ? bytes : 0, NULL, NULL);
  if (session->fabric != NULL)
    send_parts (session, (gconstpointer) (guintptr) (block->address + offset), bytes);
  return TRUE;
}

gboolean
pto_far_end_copy (PtoFarEnd *session, GVariant *body, GError **error)
{
  guint64 from_number, from_offset, to_number, to_offset, bytes;
  const PtoRemoteMemory *from, *to;

  g_variant_get (body, "(ttttt)", &from_number, &from_offset, &to_number, &to_offset, &bytes);
  from = find_block (session, from_number, from_offset, bytes, error);
  to = from != NULL ? find_block (session, to_number, to_offset, bytes, error) : NULL;
  if (to == NULL)
    return FALSE;
  if (bytes > 0)
    memmove ((gpointer) (guintptr) (to->address + to_offset),
             (gconstpointer) (guintptr) (from->address + from_offset), bytes);
  return TRUE;
}

/* --- tasks --- */

/* A part of a block, as a task has it. */
typedef struct
{
  guint64 bytes;
  guint64 address; /* 0: of no bytes */
  guint32 access;
} Piece;

/* One of a Run, as the child has it. */
typedef struct
{
  struct pto_call_counts counts;
  struct pto_call call;
  struct pto_call_config config;
  Piece *pieces;
  struct pto_continuous_tensor *tensors;
} Task;

static gboolean
fail_short (GError **error)
{
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("a task of which only a part has arrived"));
}

static void
take_config (Task *task)
{
  /* Its texts end in 0 twice. */
  gsize size = MIN (task->counts.config_bytes, sizeof task->config - 2);

  memset (&task->config, 0, sizeof task->config);
  if (task->call.config != NULL)
    memcpy (&task->config, task->call.config, size);
  task->call.config = &task->config;
}

/* One piece of its memory, and what is in it. */
static gboolean
take_piece (PtoFarEnd *session, struct pto_pack *reader, Piece *piece, GError **error)
{
  PtoRemoteRunPiece from = { 0 };

  pto_remote_pack (reader, &from);
  piece->bytes = from.bytes;
  piece->access = from.access;
  piece->address = 0;
  if (from.bytes > 0)
    {
      const PtoRemoteMemory *block
          = find_block (session, from.block, from.offset, from.bytes, error);

      if (block == NULL)
        return FALSE;
      piece->address = block->address + from.offset;
      if ((from.access & PTO_WIRE_READ) == 0)
        memset ((gpointer) (guintptr) piece->address, 0, from.bytes);
    }
  for (guint32 i = 0; i < from.n_spans && !reader->bad; i++)
    {
      PtoRemoteRunSpan span = { 0 };
      gconstpointer contents;
      const PtoRemoteMemory *block;

      pto_remote_pack (reader, &span);
      contents = pto_remote_pack_bytes (reader, NULL, span.bytes);
      if (contents == NULL)
        continue;
      block = find_block (session, from.block, span.offset, span.bytes, error);
      if (block == NULL)
        return FALSE;
      memcpy ((gpointer) (guintptr) (block->address + span.offset), contents, span.bytes);
    }
  return !reader->bad || fail_short (error);
}

/* From where it is in a piece to where it is here. */
static gboolean
take_tensor (struct pto_continuous_tensor *tensor, guint number, const Task *task, GError **error)
{
  const Piece *piece
      = tensor->access < task->counts.n_pieces ? &task->pieces[tensor->access] : NULL;
  guint64 bytes = tensor->dtype < PTO_DTYPE_COUNT ? pto_dtype_size ((DataType) tensor->dtype) : 0;

  if (tensor->dtype >= PTO_DTYPE_COUNT || tensor->ndims > G_N_ELEMENTS (tensor->shapes))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("argument %u is no tensor"), number);
  for (guint d = 0; d < G_N_ELEMENTS (tensor->shapes); d++)
    if (d >= tensor->ndims)
      tensor->shapes[d] = 0;
    else if (__builtin_mul_overflow (bytes, tensor->shapes[d], &bytes))
      bytes = G_MAXUINT64;
  if (piece == NULL || tensor->data > piece->bytes || bytes > piece->bytes - tensor->data)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("%" PRIu64 " bytes from %" PRIu64 " of piece %u are not memory of the task"), bytes,
        tensor->data, tensor->access);
  tensor->data += piece->address;
  tensor->access = piece->access & (PTO_WIRE_READ | PTO_WIRE_WRITE);
  return TRUE;
}

/* The next one, whose memory is as it has to be. What is wrong with it ends the message: nobody
 * knows where the next begins. */
static gboolean
take_task (PtoFarEnd *session, struct pto_pack *reader, Task *task, GError **error)
{
  struct pto_call_counts *counts = &task->counts;
  struct pto_call *call = &task->call;

  pto_call_pack_head (reader, call, counts);
  take_config (task);
  /* Each takes more in the message than here. */
  if (reader->bad || counts->n_pieces > (reader->size - reader->at) / sizeof (PtoRemoteRunPiece))
    return fail_short (error);
  task->pieces = g_renew (Piece, task->pieces, counts->n_pieces + 1);
  for (guint i = 0; i < counts->n_pieces; i++)
    if (!take_piece (session, reader, &task->pieces[i], error))
      return FALSE;
  pto_call_pack_args (reader, call, counts);
  if (reader->bad)
    return fail_short (error);
  if (counts->n_kinds > 0 && counts->n_kinds != counts->n_scalars)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("there are not as many kinds as scalars"));
  task->tensors = g_renew (struct pto_continuous_tensor, task->tensors, counts->n_tensors + 1);
  for (guint i = 0; i < counts->n_tensors; i++)
    {
      task->tensors[i] = call->args.tensors[i];
      if (!take_tensor (&task->tensors[i], i, task, error))
        return FALSE;
    }
  call->request = PTO_REQUEST_TASK;
  call->args.tensors = task->tensors;
  return TRUE;
}

/* What has become of it, for the other end; written: how many bytes of contents the reply has. */
static void
pack_done (struct pto_pack *reply, const Task *task, guint32 status,
           const struct pto_failure *failure, guint64 began, guint64 ended, guint64 *written)
{
  PtoRemoteDone done = { .began = began, .ended = ended, .status = status };
  guint64 bytes = 0;

  for (guint i = 0; status == 0 && i < task->counts.n_pieces; i++)
    if (pto_wire_comes_back (task->pieces[i].access))
      bytes += task->pieces[i].bytes;
  done.has_written = status == 0 && *written + bytes <= PTO_REMOTE_INLINE_BYTES;
  if (status != 0)
    {
      done.code = failure->code;
      done.domain_bytes = (guint32) strlen (failure->domain);
      done.text_bytes = failure->bytes;
      done.detail_bytes = failure->detail_bytes;
    }
  pto_remote_pack (reply, &done);
  pto_remote_pack_bytes (reply, failure->domain, done.domain_bytes);
  pto_remote_pack_bytes (reply, failure->text, done.text_bytes);
  pto_remote_pack_bytes (reply, failure->detail, done.detail_bytes);
  if (!done.has_written)
    return;
  *written += bytes;
  for (guint i = 0; i < task->counts.n_pieces; i++)
    if (pto_wire_comes_back (task->pieces[i].access))
      pto_remote_pack_bytes (reply, (gconstpointer) (guintptr) task->pieces[i].address,
                             task->pieces[i].bytes);
}

/* One after the other, each with its memory as it was sent: they do not depend on each other, but
 * may write what another one reads. */
static void
run_one (PtoFarEnd *session, Task *task, gboolean is_first, guint64 since, struct pto_pack *reply,
         guint64 *written)
{
  struct pto_failure *failure = session->failure;
  guint64 began = pto_remote_get_time () - since;
  guint32 status;

  /* The first one knows by itself. */
  if (!is_first && pto_call_is_cancelled (&task->call))
    {
      status = PTO_STATUS_CANCELLED;
      pto_failure_set (failure, status, NULL, "%s", _ ("cancelled"));
    }
  else
    status = pto_far_end_serve_call (session, &task->call, failure);
  pack_done (reply, task, status, failure, began, pto_remote_get_time () - since, written);
}

/* The blocks that it needs, and its head. */
static gboolean
begin_run (PtoFarEnd *session, struct pto_pack *reader, PtoRemoteRunHead *head, GError **error)
{
  const guint64 *dropped = NULL;
  const PtoRemoteRunBlock *begun = NULL;

  pto_remote_pack (reader, head);
  PTO_PACK_ARRAY (reader, dropped, head->n_dropped);
  PTO_PACK_ARRAY (reader, begun, head->n_begun);
  if (session->unheard != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&session->unheard));
      return FALSE;
    }
  if (reader->bad)
    return fail_short (error);
  return change_blocks (session, dropped, head->n_dropped, begun, head->n_begun, error);
}

/* Is it still wanted, or was it recalled before it began? */
static gboolean
may_begin (PtoFarEnd *session, guint number)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&session->lock);
  gboolean may = number < session->n_wanted;

  if (may)
    session->n_begun = number + 1;
  return may;
}

GVariant *
pto_far_end_run_tasks (PtoFarEnd *session, GVariant *body, GError **error)
{
  g_autoptr (GVariant) bytes = g_variant_get_child_value (body, 0);
  struct pto_pack reader = pto_pack_read (g_variant_get_data (bytes), g_variant_get_size (bytes));
  struct pto_pack reply = { .way = PTO_PACK_GROWS };
  struct pto_pack first;
  PtoRemoteRunHead head = { 0 };
  Task task = { .counts = { 0 } };
  PtoRemoteDoneHead done = { 0 };
  guint64 since = pto_remote_get_time ();
  guint64 written = 0;
  gboolean ok;

  ok = begin_run (session, &reader, &head, error);
  pto_remote_pack (&reply, &done);
  for (guint i = 0; ok && i < head.n_tasks && may_begin (session, i); i++)
    {
      ok = take_task (session, &reader, &task, error);
      if (!ok)
        break;
      task.call.mailbox = session->mailbox;
      pto_call_mailbox_set_record (session->mailbox, head.record, task.call.task);
      run_one (session, &task, i == 0, since, &reply, &written);
      done.n_tasks++;
    }
  done.ns = pto_remote_get_time () - since;
  first = pto_pack_write (reply.bytes, reply.at);
  pto_remote_pack (&first, &done);
  g_free (task.pieces);
  g_free (task.tensors);
  if (ok)
    return pto_remote_take_packed (&reply);
  free (reply.bytes);
  return NULL;
}

GVariant *
pto_far_end_tell_record (PtoFarEnd *session, GVariant *body, GError **error)
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
