/* bridge-task.c: how does a task get to a remote worker, and what it has written back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "core/bits.h"

#include "remote/launch/mpi-job.h"
#include "bridge-parts.h"

#include "base/error.h"
#include "common/text.h"
#include "remote/wire/task-format.h"
#include "values/exception.h"

#include <string.h>

/* Memory of one or more tensors of a task that overlap. */
typedef struct
{
  guint64 begin, end;
  guint32 access;        /* of them all */
  PtoRemoteBlock *block; /* where it is there; NULL: nothing is known of that, or it is empty */
} Piece;

/* One of a message. */
typedef struct
{
  struct pto_call call;
  guint number;                /* of it in the request */
  GArray *pieces;              /* NULL: it is not sent */
  struct pto_failure *failure; /* NULL: it has not failed */
  guint32 status;
  struct pto_stamps stamps;
} Task;

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
          /* What overlaps with a result that is wanted here at once comes with it. */
          if (piece->begin <= tensor->data && tensor->data < piece->end
              && pto_wire_comes_back (tensor->access))
            piece->access &= ~(guint32) PTO_WIRE_LEFT;
        }
    }
  return all;
}

static guint
find_piece (const GArray *pieces, guint64 address)
{
  guint n = pto_bisect (i, pieces->len, g_array_index (pieces, Piece, i).begin <= address);

  return n > 0 ? n - 1 : 0;
}

static void
forget_range (PtoBridge *self, guint64 begin, guint64 end)
{
  pto_directory_remove (self->directory, begin, end);
  pto_bridge_drop_stash (self, begin, end);
}

/* Since the last task others have written: what they did is not there. What this one's own tasks
 * wrote is. What is only there no other task can have written: of that nothing is missed. */
static void
read_writes (PtoBridge *self)
{
  struct pto_write write;
  enum pto_writes_next next;

  while ((next = pto_writes_next (*self->parent.writes, &self->read_writes, &write))
         != PTO_WRITES_NONE)
    if (next == PTO_WRITES_MISSED)
      {
        pto_directory_remove_copies (self->directory, 0, G_MAXUINT64);
        self->has_missed = TRUE;
      }
    else if (write.child != self->parent.index)
      forget_range (self, write.begin, write.end);
}

/* Where tensors that stayed were there is other memory by now, of which this side was told when it
 * did not listen: to a task that is to be sent it, it is not there. */
static void
forget_others (PtoBridge *self, const struct pto_args_view *args)
{
  for (int i = 0; self->has_missed && i < args->tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &args->tensors[i];
      guint64 end = tensor->data + get_bytes (tensor);

      /* What it only writes may overlap with what it reads there. */
      if ((tensor->access & PTO_WIRE_READ) == 0
          || (tensor->access & (PTO_WIRE_STAYS | PTO_WIRE_KEPT)) != 0)
        continue;
      pto_directory_remove_only (self->directory, tensor->data, end);
      pto_bridge_drop_stash (self, tensor->data, end);
    }
}

/* Memory there for all of the task, of which is missing what the directory says. */
static void
use_blocks (PtoBridge *self, GArray *pieces)
{
  for (guint i = 0; i < pieces->len; i++)
    {
      Piece *piece = &g_array_index (pieces, Piece, i);

      if (piece->begin < piece->end)
        piece->block = pto_directory_use (self->directory, piece->begin, piece->end);
    }
}

/* What a task was to write is no more what it was. came_to_something: it is in its blocks and, when
 * it has come here, in no other; what a task wrote that has failed stays there, and is not what is
 * here. */
static void
note_written (PtoBridge *self, const Task *task, gboolean came_to_something)
{
  const struct pto_args_view *args = &task->call.args;

  for (int i = 0; i < args->tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &args->tensors[i];
      guint64 end = tensor->data + get_bytes (tensor);
      PtoRemoteBlock *block;

      if ((tensor->access & PTO_WIRE_WRITE) == 0 || tensor->data == end)
        continue;
      forget_range (self, tensor->data, end);
      if (!came_to_something)
        continue;
      block = g_array_index (task->pieces, Piece, find_piece (task->pieces, tensor->data)).block;
      if ((tensor->access & PTO_WIRE_STAYS) != 0)
        pto_directory_add_staying (block, tensor->data, end);
      else if ((tensor->access & PTO_WIRE_LEFT) != 0)
        pto_directory_add_left (block, tensor->data, end);
      else
        pto_directory_add (block, tensor->data, end);
    }
}

/* They may be dropped from now on. */
static void
put_blocks_back (GArray *pieces)
{
  for (guint i = 0; i < pieces->len; i++)
    {
      Piece *piece = &g_array_index (pieces, Piece, i);

      if (piece->block != NULL)
        pto_directory_let_go (piece->block);
      piece->block = NULL;
    }
}

GVariant *
pto_bridge_make_begin (PtoBridge *self)
{
  g_autoptr (GArray) dropped = pto_directory_steal_dropped (self->directory);
  g_autoptr (GPtrArray) begun = pto_directory_steal_begun (self->directory);
  GVariantBuilder list;

  g_variant_builder_init (&list, G_VARIANT_TYPE ("a(tt)"));
  for (guint i = 0; i < begun->len; i++)
    {
      const PtoRemoteBlock *block = g_ptr_array_index (begun, i);

      g_variant_builder_add (&list, "(tt)", block->number, block->end - block->begin);
    }
  return g_variant_new ("(@ata(tt))",
                        g_variant_new_fixed_array (G_VARIANT_TYPE_UINT64, dropped->data,
                                                   dropped->len, sizeof (guint64)),
                        &list);
}

/* Of a task that has not begun: what is only there is as it was before, and what was to be copied
 * may not have been. */
static void
forget_pieces (PtoBridge *self, GArray *pieces)
{
  for (guint i = 0; i < pieces->len; i++)
    {
      const Piece *piece = &g_array_index (pieces, Piece, i);

      pto_directory_remove_copies (self->directory, piece->begin, piece->end);
    }
  put_blocks_back (pieces);
}

/* What is large comes and goes in such parts. */
static guint64
get_part (PtoBridge *self)
{
  return self->fabric != NULL ? PTO_REMOTE_FABRIC_BYTES : PTO_REMOTE_INLINE_BYTES;
}

gboolean
pto_bridge_put (PtoBridge *self, guint64 block, guint64 offset, gconstpointer data, guint64 bytes,
                GError **error)
{
  guint64 n;

  for (guint64 at = 0; at < bytes; at += n)
    {
      n = MIN (bytes - at, get_part (self));
      if (pto_call_is_cancelled (self->call))
        {
          g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, _ ("cancelled"));
          return FALSE;
        }
      pto_bridge_tell (self, "Put", g_variant_new ("(ttt)", block, offset + at, n),
                       (const guint8 *) data + at, n);
      /* It has taken another part: that is a sign of life. */
      pto_call_beat (self->call);
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
  return travels (piece) ? pto_directory_count_missing (piece->block, piece->begin, piece->end) : 0;
}

/* Of a piece, what is not there: it is about to be. Each is in one place of this process. */
static GArray *
take_missing (PtoBridge *self, const Piece *piece, struct pto_stamps *stamps)
{
  guint64 bytes = count_missing (piece);
  g_autoptr (GArray) missing = NULL;
  GArray *parts = g_array_new (FALSE, FALSE, sizeof (PtoRemoteSpan));

  if (!travels (piece))
    return parts;
  pto_bridge_count (&self->traffic->sent, bytes);
  pto_bridge_count (&self->traffic->saved, piece->end - piece->begin - bytes);
  stamps->sent += bytes;
  stamps->saved += piece->end - piece->begin - bytes;
  if (stamps->sent_from == 0)
    stamps->sent_from = pto_call_ticks ();
  missing = pto_directory_list_missing (piece->block, piece->begin, piece->end);
  for (guint i = 0; i < missing->len; i++)
    {
      PtoRemoteSpan *span = &g_array_index (missing, PtoRemoteSpan, i);

      while (span->begin < span->end)
        {
          PtoRemoteSpan part = *span;

          pto_bridge_find_source (self, part.begin, &part.end);
          g_array_append_val (parts, part);
          span->begin = part.end;
        }
    }
  return parts;
}

static gconstpointer
get_source (PtoBridge *self, const PtoRemoteSpan *span)
{
  guint64 end = span->end;

  return pto_bridge_find_source (self, span->begin, &end);
}

static gboolean
put_pieces (PtoBridge *self, Task *task, GError **error)
{
  pto_bridge_tell (self, "Begin", pto_bridge_make_begin (self), NULL, 0);
  for (guint i = 0; i < task->pieces->len; i++)
    {
      const Piece *piece = &g_array_index (task->pieces, Piece, i);
      g_autoptr (GArray) missing = take_missing (self, piece, &task->stamps);

      for (guint s = 0; s < missing->len; s++)
        {
          const PtoRemoteSpan *span = &g_array_index (missing, PtoRemoteSpan, s);

          if (!pto_bridge_put (self, piece->block->number, span->begin - piece->block->begin,
                               get_source (self, span), span->end - span->begin, error))
            return FALSE;
          pto_directory_add (piece->block, span->begin, span->end);
        }
    }
  return TRUE;
}

/* --- a message of tasks --- */

/* A message and its reply, by both clocks of this side. */
typedef struct
{
  guint64 ns;
  guint64 ticks;
} Moment;

/* Of a message and its reply, how the other end's ns become trace stamps here. */
typedef struct
{
  guint64 ticks; /* when it went */
  gdouble ticks_per_ns;
  gdouble lead;    /* ns: half of what the other clock has not counted was the way there */
  guint64 replied; /* ns by the other clock */
} There;

static guint64
get_stamp (const There *there, guint64 ns)
{
  return there->ticks + (guint64) (((gdouble) ns + there->lead) * there->ticks_per_ns);
}

static void
fail_task (Task *task, GError *error)
{
  task->failure = g_new0 (struct pto_failure, 1);
  task->status = pto_failure_take_error (task->failure, error, TRUE);
}

static void
pack_piece (PtoBridge *self, struct pto_pack *pack, const Piece *piece, gboolean were_put,
            struct pto_stamps *stamps)
{
  PtoRemoteBlock *block = piece->block;
  g_autoptr (GArray) missing = were_put ? NULL : take_missing (self, piece, stamps);
  PtoRemoteRunPiece to = { .bytes = piece->end - piece->begin,
                           .access = piece->access,
                           .n_spans = missing != NULL ? missing->len : 0 };

  if (block != NULL)
    {
      to.block = block->number;
      to.offset = piece->begin - block->begin;
    }
  pto_remote_pack (pack, &to);
  for (guint i = 0; i < to.n_spans; i++)
    {
      const PtoRemoteSpan *span = &g_array_index (missing, PtoRemoteSpan, i);
      PtoRemoteRunSpan from = { span->begin - block->begin, span->end - span->begin };

      pto_remote_pack (pack, &from);
      pto_remote_pack_bytes (pack, get_source (self, span), from.bytes);
      pto_directory_add (block, span->begin, span->end);
    }
}

static Moment
get_moment (void)
{
  return (Moment){ pto_remote_get_time (), pto_call_ticks () };
}

static void
pack_task (PtoBridge *self, struct pto_pack *pack, Task *task, guint64 id, gboolean were_put)
{
  struct pto_call call = task->call;
  const struct pto_args_view *args = &task->call.args;
  const guint8 *digest = g_hash_table_lookup (self->digests, call.digest);
  struct pto_call_counts counts
      = { .config_bytes = pto_wire_config_bytes (call.config),
          .n_pieces = task->pieces->len,
          .n_tensors = (guint32) args->tensor_count,
          .n_scalars = (guint32) args->scalar_count,
          .n_kinds = call.kinds != NULL ? (guint32) args->scalar_count : 0 };
  g_autofree struct pto_continuous_tensor *tensors
      = g_memdup2 (args->tensors, counts.n_tensors * sizeof *tensors);

  if (digest != NULL)
    call.digest = digest;
  call.task = id;
  call.args.tensors = tensors;
  for (guint i = 0; i < counts.n_tensors; i++)
    {
      guint piece = find_piece (task->pieces, tensors[i].data);

      tensors[i].data -= g_array_index (task->pieces, Piece, piece).begin;
      tensors[i].access = piece;
    }
  pto_call_pack_head (pack, &call, &counts);
  for (guint i = 0; i < counts.n_pieces; i++)
    pack_piece (self, pack, &g_array_index (task->pieces, Piece, i), were_put, &task->stamps);
  pto_call_pack_args (pack, &call, &counts);
}

/* Bytes that travel with it, there and back. */
static guint64
count_travelling (const Task *task, guint64 *missing)
{
  guint64 written = 0;

  *missing = 0;
  for (guint i = 0; i < task->pieces->len; i++)
    {
      const Piece *piece = &g_array_index (task->pieces, Piece, i);

      *missing += count_missing (piece);
      if (pto_wire_comes_back (piece->access))
        written += piece->end - piece->begin;
    }
  return *missing + written;
}

/* What has become of them; NULL: none has begun there. One that is too large for a message goes
 * alone, behind its contents. *sent: when the message itself went. */
static GVariant *
ask_to_run (PtoBridge *self, Task *tasks, guint n, Moment *sent, GError **error)
{
  g_autoptr (GArray) dropped = NULL;
  g_autoptr (GPtrArray) begun = NULL;
  struct pto_pack pack = { .way = PTO_PACK_GROWS };
  PtoRemoteRunHead head = { .n_tasks = n };
  guint64 id = 0;
  guint64 missing;
  gboolean are_put = FALSE;

  head.record = pto_call_record (self->call, &id);
  count_travelling (&tasks[0], &missing);
  if (missing > PTO_REMOTE_INLINE_BYTES)
    {
      are_put = TRUE;
      if (!put_pieces (self, &tasks[0], error))
        return NULL;
    }
  dropped = pto_directory_steal_dropped (self->directory);
  begun = pto_directory_steal_begun (self->directory);
  head.n_dropped = dropped->len;
  head.n_begun = begun->len;
  pto_remote_pack (&pack, &head);
  pto_remote_pack_bytes (&pack, dropped->data, dropped->len * sizeof (guint64));
  for (guint i = 0; i < begun->len; i++)
    {
      const PtoRemoteBlock *block = g_ptr_array_index (begun, i);
      PtoRemoteRunBlock to = { block->number, block->end - block->begin };

      pto_remote_pack (&pack, &to);
    }
  for (guint i = 0; i < n; i++)
    pack_task (self, &pack, &tasks[i],
               self->call->request == PTO_REQUEST_TASK ? id : tasks[i].call.task, are_put);
  *sent = get_moment ();
  return pto_bridge_call (self, "Run", pto_remote_take_packed (&pack), "(ay)", error);
}

static gboolean
check_args (PtoBridge *self, const struct pto_args_view *args, GError **error)
{
  for (int i = 0; i < args->tensor_count; i++)
    if (pto_wire_direction (args->tensors[i].access) == 0)
      return pto_refuse (
          error, PTO_ERROR_NOT_SUPPORTED,
          _ ("argument %d goes to %s, which does not share this memory, and its tag "
             "(NO_DEP) does not say what is to be copied: tag it INPUT, OUTPUT or INOUT"),
          i, self->node->remote->address);
  return TRUE;
}

gboolean
pto_bridge_fetch (PtoBridge *self, guint64 block, guint64 offset, guint64 to, guint64 bytes,
                  GError **error)
{
  g_autoptr (GVariant) reply
      = pto_bridge_call (self, "Get", g_variant_new ("(ttt)", block, offset, bytes), "(t)", error);
  g_autoptr (GError) lost = NULL;
  guint64 follow;

  if (reply == NULL)
    return FALSE;
  g_variant_get (reply, "(t)", &follow);
  /* Where the next message begins nobody would know. */
  if (follow != bytes)
    g_set_error_literal (&lost, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                         _ ("the remote worker gave less than was asked for"));
  for (guint64 at = 0; lost == NULL && at < bytes; at += get_part (self))
    {
      gpointer part = (gpointer) (guintptr) (to + at);
      guint64 n = MIN (bytes - at, get_part (self));

      if (self->fabric != NULL)
        pto_remote_fabric_receive (self->fabric, self->stream, part, n, &lost);
      else
        pto_remote_stream_read (self->stream, part, n, &lost);
      pto_call_beat (self->call);
    }
  if (lost != NULL)
    pto_bridge_end_with_connection (self, lost);
  return TRUE;
}

/* Just what its tensors say, for somebody else may write what lies between. written: of each piece
 * that is, what it is now; NULL: it is fetched. */
static gboolean
take_written (PtoBridge *self, Task *task, const guint8 **written, GError **error)
{
  const struct pto_args_view *args = &task->call.args;
  struct pto_stamps *stamps = &task->stamps;

  for (int i = 0; i < args->tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &args->tensors[i];
      guint number = find_piece (task->pieces, tensor->data);
      const Piece *piece = &g_array_index (task->pieces, Piece, number);
      guint64 bytes = get_bytes (tensor);

      if (!pto_wire_comes_back (tensor->access) || bytes == 0)
        continue;
      pto_bridge_count (&self->traffic->received, bytes);
      stamps->received += bytes;
      if (written != NULL)
        memcpy ((gpointer) (guintptr) tensor->data, written[number] + (tensor->data - piece->begin),
                bytes);
      else if (!pto_bridge_fetch (self, piece->block->number, tensor->data - piece->block->begin,
                                  tensor->data, bytes, error))
        return FALSE;
    }
  stamps->received_to = pto_call_ticks ();
  return TRUE;
}

/* The same, out of a reply, which left the other end at that tick. */
static gboolean
read_written (PtoBridge *self, Task *task, const PtoRemoteDone *done, struct pto_pack *reader,
              guint64 replied, GError **error)
{
  g_autofree const guint8 **written = NULL;

  task->stamps.received_from = done->has_written ? replied : pto_call_ticks ();
  if (!done->has_written)
    return take_written (self, task, NULL, error);
  written = g_new0 (const guint8 *, task->pieces->len + 1);
  for (guint i = 0; i < task->pieces->len; i++)
    {
      const Piece *piece = &g_array_index (task->pieces, Piece, i);

      if (pto_wire_comes_back (piece->access))
        written[i] = pto_remote_pack_bytes (reader, NULL, piece->end - piece->begin);
    }
  if (!reader->bad)
    return take_written (self, task, written, error);
  return pto_refuse (error, PTO_ERROR_INTERNAL,
                     _ ("the remote worker has not given what was written"));
}

/* Only words: with contents a language makes an exception anew, and runs what they name. The other
 * end should have kept them, but it is another machine. */
static void
take_detail (const guint8 *data, gsize size, struct pto_failure *failure)
{
  g_autoptr (PtoException) exception = size > 0 ? pto_exception_unpack (data, size) : NULL;

  if (exception != NULL)
    failure->detail_bytes
        = (guint32) pto_exception_pack (exception, FALSE, failure->detail, sizeof failure->detail);
}

static char *
read_text (struct pto_pack *reader, guint32 bytes)
{
  const char *text = (const char *) pto_remote_pack_bytes (reader, NULL, bytes);

  return g_utf8_make_valid (text != NULL ? text : "", text != NULL ? (gssize) bytes : 0);
}

/* What has become of one. */
static void
take_done (PtoBridge *self, Task *task, struct pto_pack *reader, const There *there, guint64 *busy)
{
  PtoRemoteDone done = { 0 };
  g_autofree char *domain = NULL;
  g_autofree char *text = NULL;
  const guint8 *detail;
  GError *error = NULL;

  pto_remote_pack (reader, &done);
  domain = read_text (reader, done.domain_bytes);
  text = read_text (reader, done.text_bytes);
  detail = pto_remote_pack_bytes (reader, NULL, done.detail_bytes);
  *busy += done.ended - MIN (done.began, done.ended);
  task->stamps.began = get_stamp (there, done.began);
  task->stamps.ended = get_stamp (there, done.ended);
  task->stamps.sent_to = get_stamp (there, 0);
  if (reader->bad)
    g_set_error_literal (&error, PTO_ERROR, PTO_ERROR_INTERNAL,
                         _ ("the remote worker has not said what became of a task"));
  else if (done.status == 0)
    read_written (self, task, &done, reader, get_stamp (there, there->replied), &error);
  else
    {
      task->failure = g_new0 (struct pto_failure, 1);
      task->status = done.status;
      pto_failure_set (task->failure, done.code, *domain != '\0' ? domain : NULL, "%s", text);
      take_detail (detail, done.detail_bytes, task->failure);
    }
  if (error != NULL)
    fail_task (task, error);
  note_written (self, task, task->status == 0);
  put_blocks_back (task->pieces);
}

/* Gives how many have begun: the others were recalled. */
static guint
take_all_done (PtoBridge *self, Task *tasks, guint n, guint kept, const Moment *sent,
               GVariant *reply, guint64 *busy)
{
  g_autoptr (GVariant) bytes = g_variant_get_child_value (reply, 0);
  struct pto_pack reader;
  PtoRemoteDoneHead head = { 0 };
  Moment now = get_moment ();
  gdouble spent = MAX ((gdouble) (now.ns - sent->ns), 1);
  There there = { sent->ticks, (gdouble) (now.ticks - sent->ticks) / spent, 0, 0 };
  guint n_done;

  reader = pto_pack_read (g_variant_get_data (bytes), g_variant_get_size (bytes));
  pto_remote_pack (&reader, &head);
  there.replied = head.ns;
  there.lead = MAX ((spent - (gdouble) head.ns) / 2, 0);
  /* One that was not recalled has begun, and one that was has not, whatever is said of it. */
  n_done = MIN (head.n_tasks > 0 ? (guint) MIN (head.n_tasks, n) : n, kept);
  for (guint i = 0; i < n; i++)
    if (i < n_done)
      take_done (self, &tasks[i], &reader, &there, busy);
    else
      forget_pieces (self, tasks[i].pieces);
  return n_done;
}

/* In one message; gives how many of them have come to something. When the other end had no room,
 * what is kept there makes some, once, and each of them has it alone. more: there are others behind
 * them, of which the first may be recalled, too; or NULL. */
static guint
run_together (PtoBridge *self, Task *tasks, guint n, const Task *more, gboolean again,
              guint64 *busy)
{
  g_autoptr (GError) refused = NULL;
  g_autoptr (GError) spilt = NULL;
  g_autoptr (GVariant) reply = NULL;
  PtoRemoteBatch batch = { .n = n, .kept = G_MAXUINT };
  Moment sent = { 0 };
  gboolean is_full;
  guint n_kept;

  for (guint i = 0; i < n; i++)
    batch.numbers[i] = tasks[i].number;
  batch.numbers[n] = more != NULL ? more->number : G_MAXUINT;
  self->batch = !again && (n > 1 || more != NULL) ? &batch : NULL;
  reply = ask_to_run (self, tasks, n, &sent, &refused);
  self->batch = NULL;
  if (reply != NULL)
    {
      guint n_done = take_all_done (self, tasks, n, batch.kept, &sent, reply, busy);

      /* It may have said so by its reply first. */
      if (n_done < n)
        pto_call_keep_tasks (self->call, tasks[n_done].number);
      /* The others were recalled: nothing more begins. */
      return batch.kept == n && more != NULL ? 0 : n_done;
    }
  is_full = g_error_matches (refused, PTO_ERROR, PTO_ERROR_NO_MEMORY);
  for (guint i = 0; i < n; i++)
    {
      tasks[i].stamps.sent_to = pto_call_ticks ();
      forget_pieces (self, tasks[i].pieces);
    }
  if (is_full && !pto_bridge_spill (self, &spilt))
    g_clear_error (&spilt);
  pto_directory_drop_all (self->directory);
  /* What was recalled before it was refused is for others, as it was promised. */
  n_kept = MIN (n, batch.kept);
  for (guint i = 0; i < n_kept; i++)
    if (again || !is_full)
      {
        note_written (self, &tasks[i], FALSE);
        fail_task (&tasks[i], g_error_copy (refused));
      }
    else
      {
        use_blocks (self, tasks[i].pieces);
        run_together (self, &tasks[i], 1, NULL, n == 1, busy);
      }
  return batch.kept == n && more != NULL ? 0 : n_kept;
}

/* What stays there is not here to be sent: it has to be there. */
static gboolean
check_there (PtoBridge *self, const Task *task, GError **error)
{
  for (guint i = 0; i < task->pieces->len; i++)
    {
      const Piece *piece = &g_array_index (task->pieces, Piece, i);
      guint64 missing;

      if ((piece->access & PTO_WIRE_STAYS) == 0 || (piece->access & PTO_WIRE_READ) == 0)
        continue;
      missing = pto_directory_find_missing (self->directory, piece->begin, piece->end);
      if (missing == 0)
        continue;
      return pto_refuse (
          error, PTO_ERROR_WORKER_LOST,
          _ ("%" PRIu64 " bytes of a tensor that stays at %s (make_tensor_at) are not "
             "there: they were lost with the worker, or the first task that wrote it was "
             "not given all of it"),
          missing, self->path);
    }
  return TRUE;
}

/* The same of what was left there, and where it is to be read. */
static gboolean
check_left (PtoBridge *self, const Task *task, GError **error)
{
  const struct pto_args_view *args = &task->call.args;

  for (int i = 0; i < args->tensor_count; i++)
    {
      const struct pto_continuous_tensor *tensor = &args->tensors[i];
      guint64 end = tensor->data + get_bytes (tensor);

      if ((tensor->access & PTO_WIRE_KEPT) == 0)
        continue;
      if (pto_bridge_count_left (self, tensor->data, end) != end - tensor->data)
        return pto_refuse (error, PTO_ERROR_INTERNAL,
                           _ ("argument %d was left at %s, and is not there any more"), i,
                           self->path);
    }
  /* The piece is what has to be in one block: it may be more than what is read. */
  for (guint i = 0; i < task->pieces->len; i++)
    {
      const Piece *piece = &g_array_index (task->pieces, Piece, i);

      if ((piece->access & PTO_WIRE_KEPT) != 0
          && !pto_bridge_gather (self, piece->begin, piece->end, error))
        return FALSE;
    }
  return TRUE;
}

/* Memory that the program has there, in this life of it. */
static gboolean
check_owned (PtoBridge *self, const Task *task, GError **error)
{
  for (guint i = 0; i < task->pieces->len; i++)
    {
      const Piece *piece = &g_array_index (task->pieces, Piece, i);

      if ((piece->access & PTO_WIRE_OWNED) == 0
          || pto_directory_find_owned (self->directory, piece->begin, piece->end) != NULL)
        continue;
      return pto_refuse (error, PTO_ERROR_WORKER_LOST,
                         _ ("memory 0x%" PRIx64
                            " of %s is not there: it is of an earlier life of it, and "
                            "was lost with that, or it was given back; this is its life %u"),
                         piece->begin, self->path, self->life);
    }
  return TRUE;
}

/* Why it is not sent. */
static gboolean
check_task (PtoBridge *self, const Task *task, GError **error)
{
  const GError *refused = g_hash_table_lookup (self->refused, task->call.digest);

  if (g_hash_table_contains (self->late, task->call.digest))
    return pto_refuse (
        error, PTO_ERROR_NOT_SUPPORTED,
        _ ("it is a function of this process, made after the start, which %s can not be "
           "sent: register what it imports (module:qualname) or loads "
           "(library:symbol), or say which worker is to run it"),
        self->node->remote->address);
  if (refused == NULL)
    return check_args (self, &task->call.args, error) && check_owned (self, task, error)
           && check_there (self, task, error) && check_left (self, task, error);
  g_propagate_error (error, g_error_copy (refused));
  return FALSE;
}

/* In messages of a size, until those that follow are recalled: then FALSE. The first of the next
 * message holds no blocks meanwhile: one that is new is begun with the message before it, and is
 * not there when that is refused. */
static gboolean
run_all (PtoBridge *self, Task *tasks, guint n, guint64 *busy)
{
  guint first = 0;
  guint64 travelling = 0;

  for (guint i = 0; i < n; i++)
    {
      guint64 missing;
      guint64 bytes;

      use_blocks (self, tasks[i].pieces);
      bytes = count_travelling (&tasks[i], &missing);
      if (i > first && travelling + bytes > PTO_REMOTE_INLINE_BYTES)
        {
          put_blocks_back (tasks[i].pieces);
          if (run_together (self, &tasks[first], i - first, &tasks[i], FALSE, busy) < i - first)
            return FALSE;
          first = i;
          travelling = 0;
          use_blocks (self, tasks[i].pieces);
          bytes = count_travelling (&tasks[i], &missing);
        }
      travelling += bytes;
    }
  return n == first
         || run_together (self, &tasks[first], n - first, NULL, FALSE, busy) == n - first;
}

/* Of ranks of a job: it is told which life of the job it is of. What does not come to its end
 * breaks that. */
static void
run_collective (PtoBridge *self, Task *task, guint64 *busy)
{
  const PtoRemoteSpec *spec = self->node->remote;
  gsize n = (gsize) task->call.args.scalar_count;
  g_autofree guint64 *scalars = g_memdup2 (task->call.args.scalars, n * sizeof (guint64));
  GError *error = NULL;
  guint32 generation;
  gboolean ok;

  /* Nothing is read here while others are waited for. */
  pto_remote_health_end_reading (self->health);
  ok = pto_remote_job_join (spec, self->call, &generation, &error);
  pto_remote_health_begin_reading (self->health);
  if (!ok)
    {
      fail_task (task, error);
      return;
    }
  scalars[n - 1] = generation;
  task->call.args.scalars = scalars;
  run_all (self, task, 1, busy);
  task->call.args.scalars = NULL;
  task->call.args.scalar_count = 0;
  if (task->status != 0)
    pto_remote_job_break (spec, generation);
}

static gboolean
is_collective (PtoBridge *self, const struct pto_call *call)
{
  return self->node->remote->job != NULL && call->args.scalar_count > 0
         && g_hash_table_contains (self->collectives, call->digest);
}

/* A member of a group of several comes alone; that of a job of one rank may not, and goes alone. */
static void
run_sent (PtoBridge *self, Task *tasks, guint n, guint64 *busy)
{
  guint first = 0;

  for (guint i = 0; i < n; i++)
    if (is_collective (self, &tasks[i].call))
      {
        if (!run_all (self, &tasks[first], i - first, busy))
          return;
        run_collective (self, &tasks[i], busy);
        first = i + 1;
      }
  run_all (self, &tasks[first], n - first, busy);
}

/* One request may bring several: they do not depend on each other. */
static GArray *
list_tasks (const struct pto_call *call)
{
  GArray *tasks = g_array_new (FALSE, TRUE, sizeof (Task));
  guint64 at = 0;
  Task task = { .call = *call };

  if (call->request == PTO_REQUEST_TASK)
    g_array_append_val (tasks, task);
  else
    for (; task.number < G_N_ELEMENTS (((PtoRemoteBatch *) 0)->numbers) - 1
           && pto_call_next_task (call, &at, &task.call);
         task.number++)
      g_array_append_val (tasks, task);
  return tasks;
}

guint32
pto_bridge_run_tasks (PtoBridge *self, const struct pto_call *call, struct pto_failure *failure)
{
  g_autoptr (GArray) tasks = list_tasks (call);
  g_autoptr (GArray) sent = g_array_new (FALSE, TRUE, sizeof (Task));
  guint64 id, busy = 0, failed = 0;
  guint32 record = pto_call_record (call, &id);
  guint32 status = 0;

  if (record != 0 && record != self->record)
    pto_bridge_begin_record (self, record);
  read_writes (self);
  for (guint i = 0; i < tasks->len; i++)
    {
      Task *task = &g_array_index (tasks, Task, i);
      GError *error = NULL;

      task->pieces = make_pieces (&task->call.args);
      forget_others (self, &task->call.args);
      if (!check_task (self, task, &error))
        {
          fail_task (task, error);
          continue;
        }
      g_array_append_val (sent, *task);
    }
  run_sent (self, (Task *) (gpointer) sent->data, sent->len, &busy);
  for (guint i = 0; i < sent->len; i++)
    {
      const Task *task = &g_array_index (sent, Task, i);

      g_array_index (tasks, Task, task->number) = *task;
    }
  for (guint i = tasks->len; i-- > 0;)
    {
      Task *task = &g_array_index (tasks, Task, i);

      if (task->status != 0)
        {
          failed |= G_GUINT64_CONSTANT (1) << i;
          status = task->status;
          pto_failure_copy (failure, task->failure);
        }
      g_clear_pointer (&task->pieces, g_array_unref);
      g_clear_pointer (&task->failure, g_free);
    }
  /* Where its parcels were, which nobody needs any more. */
  for (guint i = 0; record != 0 && i < tasks->len; i++)
    pto_call_tell_stamps (call, i, &g_array_index (tasks, Task, i).stamps);
  pto_call_tell_tasks (call, failed, busy);
  return status;
}
