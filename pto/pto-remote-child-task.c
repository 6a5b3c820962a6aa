/* pto-remote-child-task.c: how does a task get to a remote worker, and what it has written back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-remote-child-parts-private.h"

#include "pto-error-private.h"
#include "pto-exception-private.h"
#include "pto-text-private.h"

#include <string.h>

/* Memory of one or more tensors of a task that overlap. */
typedef struct
{
  guint64 begin, end;
  guint32 access;        /* of them all */
  PtoRemoteBlock *block; /* where it is there; NULL: nothing is known of that, or it is empty */
} Piece;

static guint64
get_bytes (const struct pto_continuous_tensor *tensor)
{
  guint64 n = pto_dtype_size ((DataType) tensor->dtype);

  for (guint i = 0; i < tensor->ndims; i++)
    n *= tensor->shapes[i];
  return n;
}

static int
compare_pieces (gconstpointer a, gconstpointer b)
{
  const Piece *left = a;
  const Piece *right = b;

  return left->begin < right->begin ? -1 : left->begin > right->begin;
}

/* Overlapping ones are one, so that they overlap there, too. */
static GArray *
make_pieces (const struct pto_args_view *args)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (Piece));
  guint n = 0;

  for (int i = 0; i < args->tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &args->tensors[i];
      Piece piece = { .begin = tensor->data,
                      .end = tensor->data + get_bytes (tensor),
                      .access = tensor->access };

      g_array_append_val (all, piece);
    }
  g_array_sort (all, compare_pieces);
  for (guint i = 0; i < all->len; i++)
    {
      Piece *piece = &g_array_index (all, Piece, i);
      Piece *last = n > 0 ? &g_array_index (all, Piece, n - 1) : NULL;

      if (last != NULL && piece->begin < last->end)
        {
          last->end = MAX (last->end, piece->end);
          last->access |= piece->access;
        }
      else
        g_array_index (all, Piece, n++) = *piece;
    }
  g_array_set_size (all, n);
  /* What is written in a part only comes back as it was in all others. */
  for (int i = 0; i < args->tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &args->tensors[i];

      for (guint p = 0; p < n; p++)
        {
          Piece *piece = &g_array_index (all, Piece, p);

          if (piece->begin <= tensor->data && tensor->data < piece->end
              && tensor->data + get_bytes (tensor) - tensor->data < piece->end - piece->begin)
            piece->access |= PTO_WIRE_READ;
        }
    }
  return all;
}

static guint
find_piece (const GArray *pieces, guint64 address)
{
  guint low = 0;
  guint high = pieces->len;

  while (high - low > 1)
    {
      guint middle = low + (high - low) / 2;

      if (g_array_index (pieces, Piece, middle).begin <= address)
        low = middle;
      else
        high = middle;
    }
  return low;
}

/* Since the last task others have written: what they did is not there. What this one's own tasks
 * wrote is. */
static void
read_writes (PtoRemoteChild *self)
{
  struct pto_write write;
  enum pto_writes_next next;

  while ((next = pto_writes_next (self->writes, &self->read_writes, &write)) != PTO_WRITES_NONE)
    if (next == PTO_WRITES_MISSED)
      pto_remote_directory_remove (self->directory, 0, G_MAXUINT64, NULL);
    else if (write.child != self->index)
      pto_remote_directory_remove (self->directory, write.begin, write.end, NULL);
}

/* Memory there for all of the task, of which is missing what the directory says. */
static void
use_blocks (PtoRemoteChild *self, GArray *pieces)
{
  for (guint i = 0; i < pieces->len; i++)
    {
      Piece *piece = &g_array_index (pieces, Piece, i);

      if (piece->begin < piece->end)
        piece->block = pto_remote_directory_use (self->directory, piece->begin, piece->end);
    }
}

/* status: of the task: what it wrote is in its blocks and, when it has come here, in no other; what
 * a task wrote that has failed stays there, and is not what is here. */
static void
let_go_of_blocks (PtoRemoteChild *self, GArray *pieces, gboolean came_back)
{
  for (guint i = 0; i < pieces->len; i++)
    {
      Piece *piece = &g_array_index (pieces, Piece, i);

      if (piece->block == NULL)
        continue;
      if ((piece->access & PTO_WIRE_WRITE) != 0)
        pto_remote_directory_remove (self->directory, piece->begin, piece->end, NULL);
      if ((piece->access & PTO_WIRE_WRITE) != 0 && came_back)
        pto_remote_directory_add (piece->block, piece->begin, piece->end);
      pto_remote_directory_let_go (self->directory, piece->block);
      piece->block = NULL;
    }
}

static GVariant *
make_dropped (PtoRemoteChild *self)
{
  g_autoptr (GArray) dropped = pto_remote_directory_steal_dropped (self->directory);

  return g_variant_new_fixed_array (G_VARIANT_TYPE_UINT64, dropped->data, dropped->len,
                                    sizeof (guint64));
}

static GVariant *
make_begun (PtoRemoteChild *self)
{
  g_autoptr (GPtrArray) begun = pto_remote_directory_steal_begun (self->directory);
  GVariantBuilder list;

  g_variant_builder_init (&list, G_VARIANT_TYPE ("a(tt)"));
  for (guint i = 0; i < begun->len; i++)
    {
      const PtoRemoteBlock *block = g_ptr_array_index (begun, i);

      g_variant_builder_add (&list, "(tt)", block->number, block->end - block->begin);
    }
  return g_variant_builder_end (&list);
}

/* One span in parts, ahead of the call. FALSE: it is not wanted any more. */
static gboolean
put_span (PtoRemoteChild *self, const struct pto_call *call, const PtoRemoteBlock *block,
          const PtoRemoteSpan *span, GError **error)
{
  for (guint64 at = span->begin; at < span->end; at += PTO_REMOTE_INLINE_BYTES)
    {
      guint64 n = MIN (span->end - at, PTO_REMOTE_INLINE_BYTES);

      if (pto_call_is_cancelled (call))
        {
          g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, _ ("cancelled"));
          return FALSE;
        }
      pto_remote_child_tell (self, "Put",
                             g_variant_new ("(ttt)", block->number, at - block->begin, n),
                             (gconstpointer) (guintptr) at, n);
      /* It has taken another part: that is a sign of life. */
      pto_call_beat (call);
    }
  return TRUE;
}

/* Is there anything of it that may have to be sent? */
static gboolean
travels (const Piece *piece)
{
  return piece->block != NULL && (piece->access & PTO_WIRE_READ) != 0;
}

static guint64
count_missing (const Piece *piece)
{
  return travels (piece)
             ? pto_remote_directory_count_missing (piece->block, piece->begin, piece->end)
             : 0;
}

/* Of a piece, what is not there: it is about to be. */
static GArray *
take_missing (PtoRemoteChild *self, const Piece *piece)
{
  guint64 bytes = count_missing (piece);

  if (!travels (piece))
    return g_array_new (FALSE, FALSE, sizeof (PtoRemoteSpan));
  pto_remote_child_count (&self->traffic->sent, bytes);
  pto_remote_child_count (&self->traffic->saved, piece->end - piece->begin - bytes);
  return pto_remote_directory_list_missing (piece->block, piece->begin, piece->end);
}

static gboolean
put_pieces (PtoRemoteChild *self, const struct pto_call *call, const GArray *pieces, GError **error)
{
  GVariant *dropped = make_dropped (self);

  pto_remote_child_tell (self, "Begin", g_variant_new ("(@at@a(tt))", dropped, make_begun (self)),
                         NULL, 0);
  for (guint i = 0; i < pieces->len; i++)
    {
      const Piece *piece = &g_array_index (pieces, Piece, i);
      g_autoptr (GArray) missing = take_missing (self, piece);

      for (guint s = 0; s < missing->len; s++)
        {
          const PtoRemoteSpan *span = &g_array_index (missing, PtoRemoteSpan, s);

          if (!put_span (self, call, piece->block, span, error))
            return FALSE;
          pto_remote_directory_add (piece->block, span->begin, span->end);
        }
    }
  return TRUE;
}

static GVariant *
make_piece_list (PtoRemoteChild *self, const GArray *pieces, gboolean were_put)
{
  GVariantBuilder list;

  g_variant_builder_init (&list, G_VARIANT_TYPE ("a(tttua(tay))"));
  for (guint i = 0; i < pieces->len; i++)
    {
      const Piece *piece = &g_array_index (pieces, Piece, i);
      PtoRemoteBlock *block = piece->block;

      g_variant_builder_open (&list, G_VARIANT_TYPE ("(tttua(tay))"));
      g_variant_builder_add (&list, "t", block != NULL ? block->number : 0);
      g_variant_builder_add (&list, "t", block != NULL ? piece->begin - block->begin : 0);
      g_variant_builder_add (&list, "t", piece->end - piece->begin);
      g_variant_builder_add (&list, "u", piece->access);
      g_variant_builder_open (&list, G_VARIANT_TYPE ("a(tay)"));
      if (!were_put)
        {
          g_autoptr (GArray) missing = take_missing (self, piece);

          for (guint s = 0; s < missing->len; s++)
            {
              const PtoRemoteSpan *span = &g_array_index (missing, PtoRemoteSpan, s);

              g_variant_builder_add (&list, "(t@ay)", span->begin - block->begin,
                                     pto_remote_make_bytes ((gconstpointer) (guintptr) span->begin,
                                                            span->end - span->begin));
              pto_remote_directory_add (block, span->begin, span->end);
            }
        }
      g_variant_builder_close (&list);
      g_variant_builder_close (&list);
    }
  return g_variant_builder_end (&list);
}

static GVariant *
make_tensor_list (const struct pto_args_view *args, const GArray *pieces)
{
  GVariantBuilder list;

  g_variant_builder_init (&list, G_VARIANT_TYPE ("a(utuau)"));
  for (int i = 0; i < args->tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &args->tensors[i];
      guint piece = find_piece (pieces, tensor->data);

      g_variant_builder_add (&list, "(utu@au)", piece,
                             tensor->data - g_array_index (pieces, Piece, piece).begin,
                             tensor->dtype,
                             g_variant_new_fixed_array (G_VARIANT_TYPE_UINT32, tensor->shapes,
                                                        tensor->ndims, sizeof tensor->shapes[0]));
    }
  return g_variant_builder_end (&list);
}

static GVariant *
make_config (const struct pto_call_config *config)
{
  gsize size = pto_wire_config_bytes (config);
  gsize head = offsetof (struct pto_call_config, output_prefix);

  return g_variant_new ("(iiiiiii@ay)", config->block_dim, config->aicpu_thread_num,
                        config->enable_l2_swimlane, config->enable_dump_tensor, config->enable_pmu,
                        config->enable_dep_gen, config->enable_scope_stats,
                        pto_remote_make_bytes (config->output_prefix, size - head));
}

static gboolean
check_args (PtoRemoteChild *self, const struct pto_args_view *args, GError **error)
{
  for (int i = 0; i < args->tensor_count; i++)
    if (args->tensors[i].access == 0)
      {
        g_set_error (
            error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
            _ ("argument %d goes to %s, which does not share this memory, and its tag "
               "(NO_DEP) does not say what is to be copied: tag it INPUT, OUTPUT or INOUT"),
            i, self->worker->remote->address);
        return FALSE;
      }
  return TRUE;
}

/* What is there comes here. */
static gboolean
fetch (PtoRemoteChild *self, const struct pto_call *call, guint64 block, guint64 offset, guint64 to,
       guint64 bytes, GError **error)
{
  g_autoptr (GVariant) reply = pto_remote_child_call (
      self, call, "Get", g_variant_new ("(ttt)", block, offset, bytes), "(t)", error);
  g_autoptr (GError) lost = NULL;
  guint64 follow;

  if (reply == NULL)
    return FALSE;
  g_variant_get (reply, "(t)", &follow);
  /* Where the next message begins nobody would know. */
  if (follow != bytes)
    g_set_error_literal (&lost, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                         _ ("the remote worker gave less than was asked for"));
  for (guint64 at = 0; lost == NULL && at < bytes; at += PTO_REMOTE_INLINE_BYTES)
    {
      pto_remote_stream_read (self->stream, (gpointer) (guintptr) (to + at),
                              MIN (bytes - at, PTO_REMOTE_INLINE_BYTES), &lost);
      pto_call_beat (call);
    }
  if (lost != NULL)
    pto_remote_child_end_with_connection (self, lost);
  return TRUE;
}

/* Just what its tensors say, for somebody else may write what lies between. */
static gboolean
take_written (PtoRemoteChild *self, const struct pto_call *call, const GArray *pieces,
              GVariant *written, GError **error)
{
  const struct pto_args_view *args = &call->args;
  gsize n_written = g_variant_n_children (written);

  for (int i = 0; i < args->tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &args->tensors[i];
      guint number = find_piece (pieces, tensor->data);
      const Piece *piece = &g_array_index (pieces, Piece, number);
      guint64 offset = tensor->data - piece->begin;
      guint64 bytes = get_bytes (tensor);
      g_autoptr (GVariant) contents = NULL;
      const guint8 *data;
      gsize size;

      if ((tensor->access & PTO_WIRE_WRITE) == 0 || bytes == 0)
        continue;
      pto_remote_child_count (&self->traffic->received, bytes);
      if (n_written == 0)
        {
          if (!fetch (self, call, piece->block->number, tensor->data - piece->block->begin,
                      tensor->data, bytes, error))
            return FALSE;
          continue;
        }
      if (number < n_written)
        contents = g_variant_get_child_value (written, number);
      data = contents != NULL ? g_variant_get_fixed_array (contents, &size, 1) : NULL;
      if (data == NULL || size != piece->end - piece->begin)
        {
          g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INTERNAL,
                               _ ("the remote worker has not given what was written"));
          return FALSE;
        }
      memcpy ((gpointer) (guintptr) tensor->data, data + offset, bytes);
    }
  return TRUE;
}

/* Only words: with contents a language makes an exception anew, and runs what they name. The other
 * end should have kept them, but it is another machine. */
static void
take_detail (GVariant *detail, struct pto_failure *failure)
{
  gsize size;
  const guint8 *data = g_variant_get_fixed_array (detail, &size, 1);
  g_autoptr (PtoException) exception = pto_exception_unpack (data, size);

  if (exception != NULL)
    failure->detail_bytes
        = (guint32) pto_exception_pack (exception, FALSE, failure->detail, sizeof failure->detail);
}

/* 0, or its status, and failure. */
static guint32
take_completion (GVariant *reply, struct pto_failure *failure)
{
  g_autoptr (GVariant) detail = NULL;
  const char *domain;
  const char *text;
  guint32 status;
  gint32 code;

  g_variant_get (reply, "(u(i&s&s@ay)@aay)", &status, &code, &domain, &text, &detail, NULL);
  if (status == 0)
    return 0;
  pto_failure_set (failure, code, *domain != '\0' ? domain : NULL, "%s", text);
  take_detail (detail, failure);
  return status;
}

/* --- a task --- */

/* Its completion; NULL: it has not begun there. */
static GVariant *
ask_to_run (PtoRemoteChild *self, const struct pto_call *call, GArray *pieces, GError **error)
{
  const struct pto_args_view *args = &call->args;
  const guint8 *digest = g_hash_table_lookup (self->digests, call->digest);
  gboolean are_put;
  guint64 missing = 0;
  guint64 id;
  guint32 record = pto_call_record (call, &id);
  GVariant *dropped, *begun, *list;

  use_blocks (self, pieces);
  for (guint i = 0; i < pieces->len; i++)
    missing += count_missing (&g_array_index (pieces, Piece, i));
  are_put = missing > PTO_REMOTE_INLINE_BYTES;
  if (are_put && !put_pieces (self, call, pieces, error))
    return NULL;
  dropped = make_dropped (self);
  begun = make_begun (self);
  list = make_piece_list (self, pieces, are_put);
  return pto_remote_child_call (
      self, call, "Run",
      g_variant_new (
          "(@at@a(tt)@ay@(iiiiiiiay)@a(tttua(tay))@a(utuau)@at@ayut)", dropped, begun,
          pto_remote_make_bytes (digest != NULL ? digest : call->digest, PTO_DIGEST_SIZE),
          make_config (call->config), list, make_tensor_list (args, pieces),
          g_variant_new_fixed_array (G_VARIANT_TYPE_UINT64, args->scalars,
                                     (gsize) args->scalar_count, sizeof args->scalars[0]),
          pto_remote_make_bytes (call->kinds, call->kinds != NULL ? (gsize) args->scalar_count : 0),
          record, id),
      "(u(issay)aay)", error);
}

/* What the other end has of a task that has not begun, nobody knows. When it had no room, what is
 * kept there makes some, once. */
static GVariant *
ask_with_room (PtoRemoteChild *self, const struct pto_call *call, GArray *pieces, GError **error)
{
  for (gboolean again = FALSE;; again = TRUE)
    {
      g_autoptr (GError) refused = NULL;
      GVariant *reply = ask_to_run (self, call, pieces, &refused);

      if (reply != NULL)
        return reply;
      for (guint i = 0; i < pieces->len; i++)
        {
          const Piece *piece = &g_array_index (pieces, Piece, i);

          pto_remote_directory_remove (self->directory, piece->begin, piece->end, NULL);
        }
      let_go_of_blocks (self, pieces, FALSE);
      pto_remote_directory_drop_all (self->directory);
      if (again || !g_error_matches (refused, PTO_ERROR, PTO_ERROR_NO_MEMORY))
        {
          g_propagate_error (error, g_steal_pointer (&refused));
          return NULL;
        }
    }
}

guint32
pto_remote_child_run_task (PtoRemoteChild *self, const struct pto_call *call,
                           struct pto_failure *failure, GError **error)
{
  const GError *refused = g_hash_table_lookup (self->refused, call->digest);
  g_autoptr (GArray) pieces = NULL;
  g_autoptr (GVariant) reply = NULL;
  guint64 id;
  guint32 record = pto_call_record (call, &id);
  guint32 status = 0;
  gboolean came_back = FALSE;

  if (record != 0 && record != self->record)
    pto_remote_child_begin_record (self, record);
  if (refused != NULL)
    {
      g_propagate_error (error, g_error_copy (refused));
      return 0;
    }
  if (!check_args (self, &call->args, error))
    return 0;
  read_writes (self);
  pieces = make_pieces (&call->args);
  reply = ask_with_room (self, call, pieces, error);
  if (reply != NULL)
    {
      g_autoptr (GVariant) written = g_variant_get_child_value (reply, 2);

      status = take_completion (reply, failure);
      came_back = status == 0 && take_written (self, call, pieces, written, error);
    }
  let_go_of_blocks (self, pieces, came_back);
  return status;
}
