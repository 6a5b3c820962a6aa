/* pto-remote-serve.c: how does a process become a worker of somebody else?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Two threads, and one that sleeps (pto-remote-health.c). The main one serves one request after the
 * other, as any child does (pto-child.c), with a mailbox that nobody else maps; it has brought up
 * the worker, and so forked what is below it, before there was the other. That one reads what
 * comes: it answers at once what is asked during a task (Progress, Clock, Cancel), and hands on the
 * rest. When the connection ends, or nothing is heard for as long as the lease, the process is
 * ended, and with that all below it.
 */
#include "config.h"

#include "pto-remote.h"

#include "process/arena.h"
#include "process/service.h"

#include "pto-cache-private.h"
#include "pto-child-private.h"
#include "pto-error-private.h"
#include "pto-identity-private.h"
#include "pto-log-private.h"
#include "pto-remote-health-private.h"
#include "pto-remote-wire-private.h"
#include "pto-text-private.h"
#include "pto-version.h"
#include "pto-worker-private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* Requests that wait; who sends more has to wait, too. */
#define QUEUE_MAX 16
/* What is under way may end by itself when the connection has ended: children are told. */
#define GRACE_MS 200
/* Of a connection of which nothing comes, while nobody has said how long that may be. */
#define HELLO_MS 60000

/* Memory for tensors, of one task or many: when it is not needed any more is for the other end to
 * say. */
typedef struct
{
  guint64 number;
  guint64 bytes;
  guint64 address; /* 0: of no bytes */
} Block;

/* A part of one, as a task has it. */
typedef struct
{
  guint64 bytes;
  guint64 address; /* 0: of no bytes */
  guint32 access;
} Piece;

typedef struct
{
  PtoRemoteStream *stream;     /* read by the reader, written by both */
  struct pto_mailbox *mailbox; /* cancel: W: reader, R: server; beat: the other way round */

  /* The serving thread's, and the reader's while n_open is 0. */
  PtoWorker *worker;
  PtoChild *child;
  struct pto_server server;
  GHashTable *blocks; /* by their numbers */
  GArray *pieces;     /* Piece, of the task */
  GError *unheard;    /* of what was put for the next: the first, as these have no reply */
  gboolean has_arena;
  GByteArray *contents; /* of which parts have come */
  GByteArray *record;   /* of which parts are fetched; or NULL */
  guint8 contents_digest[PTO_DIGEST_SIZE];

  GMutex lock;
  GCond changed;
  GQueue calls; /* GDBusMessage; W: reader pushes, server pops */
  guint n_open; /* that were pushed and are not served yet */
  gboolean has_ended;
} Session;

/* --- replies --- */

static gboolean
wants_a_reply (GDBusMessage *call)
{
  return (g_dbus_message_get_flags (call) & G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED) == 0;
}

static void
reply (Session *session, GDBusMessage *call, GVariant *body)
{
  g_autoptr (GDBusMessage) message = NULL;

  if (!wants_a_reply (call))
    {
      if (body != NULL)
        g_variant_unref (g_variant_ref_sink (body));
      return;
    }
  message = g_dbus_message_new_method_reply (call);
  if (body != NULL)
    g_dbus_message_set_body (message, body);
  /* The reader finds out when nobody is there. */
  pto_remote_stream_send (session->stream, message, NULL, NULL);
}

static void
refuse (Session *session, GDBusMessage *call, const GError *error)
{
  g_autoptr (GDBusMessage) message = pto_remote_make_refusal (call, error);

  pto_remote_stream_send (session->stream, message, NULL, NULL);
}

/* As request of the child, with what the mailbox would have. */
static guint32
serve_call (Session *session, struct pto_call *call, struct pto_failure *failure)
{
  call->mailbox = session->mailbox;
  failure->code = 0;
  failure->bytes = 0;
  failure->detail_bytes = 0;
  failure->domain[0] = '\0';
  return session->server.serve (session->server.data, call, failure);
}

static gboolean
ask (Session *session, struct pto_call *call, GError **error)
{
  g_autofree struct pto_failure *failure = g_new0 (struct pto_failure, 1);

  if (serve_call (session, call, failure) == 0)
    return TRUE;
  pto_failure_propagate (failure, error);
  return FALSE;
}

static const guint8 *
get_digest (GVariant *body, guint child, GVariant **holder, GError **error)
{
  gconstpointer data;
  gsize size;

  *holder = g_variant_get_child_value (body, child);
  data = g_variant_get_fixed_array (*holder, &size, 1);
  if (size == PTO_DIGEST_SIZE)
    return data;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, _ ("a digest has %d bytes, this has %zu"),
               PTO_DIGEST_SIZE, size);
  return NULL;
}

/* --- contents and registrations --- */

static GVariant *
tell_there (GVariant *body, GError **error)
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

static gboolean
take_contents (Session *session, GVariant *body, GError **error)
{
  g_autoptr (GVariant) holder = NULL;
  g_autoptr (GVariant) part = g_variant_get_child_value (body, 1);
  g_autofree char *dir = NULL;
  g_autofree char *object = NULL;
  guint8 found[PTO_DIGEST_SIZE];
  const guint8 *digest = get_digest (body, 0, &holder, error);
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
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                           _ ("parts of two contents, or too many"));
      return FALSE;
    }
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
add_below (Session *session, const guint8 *digest, GBytes *descriptor, GBytes *sources,
           GError **error)
{
  PtoRegistration *registration
      = pto_registration_new_from_bytes (digest, descriptor, sources, error);
  PtoCallableHandle *handle;

  if (registration == NULL)
    return FALSE;
  handle = pto_worker_adopt (session->worker, registration, error);
  pto_registration_unref (registration);
  if (handle == NULL)
    return FALSE;
  /* It stays for as long as the worker does. */
  pto_callable_handle_unref (handle);
  return TRUE;
}

static gboolean
add_registration (Session *session, GVariant *body, GError **error)
{
  g_autoptr (GVariant) holder = NULL;
  g_autoptr (GBytes) descriptor = get_bytes (body, 1);
  g_autoptr (GBytes) given = get_bytes (body, 2);
  g_autoptr (GBytes) sources = NULL;
  g_autoptr (GBytes) packed = NULL;
  const guint8 *digest = get_digest (body, 0, &holder, error);
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
    return add_below (session, digest, descriptor, sources, error);
  packed = pto_child_pack_registration (descriptor, sources);
  call.body = g_bytes_get_data (packed, &size);
  call.bytes = size;
  return ask (session, &call, error);
}

static gboolean
remove_registration (Session *session, GVariant *body, GError **error)
{
  g_autoptr (GVariant) holder = NULL;
  struct pto_call call
      = { .request = PTO_REQUEST_UNREGISTER, .digest = get_digest (body, 0, &holder, error) };

  return call.digest != NULL && ask (session, &call, error);
}

/* --- memory --- */

static void
block_free (gpointer data)
{
  Block *block = data;

  if (block->address != 0)
    pto_arena_free (block->address, block->bytes);
  g_free (block);
}

static gboolean
begin_block (Session *session, guint64 number, guint64 bytes, GError **error)
{
  Block *block;
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
  block = g_new0 (Block, 1);
  block->number = number;
  block->bytes = bytes;
  block->address = address;
  g_hash_table_insert (session->blocks, &block->number, block);
  return TRUE;
}

/* What the first two arguments of Begin and Run say. What is to be dropped and is not there was
 * never begun, since there was no room. */
static gboolean
change_blocks (Session *session, GVariant *body, GError **error)
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
static const Block *
find_block (Session *session, guint64 number, guint64 offset, guint64 bytes, GError **error)
{
  const Block *block = g_hash_table_lookup (session->blocks, &number);

  if (block != NULL && offset <= block->bytes && bytes <= block->bytes - offset)
    return block;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               _ ("%" PRIu64 " bytes from %" PRIu64 " of memory number %" PRIu64 " are not there"),
               bytes, offset, number);
  return NULL;
}

static gboolean
put_contents (Session *session, guint64 number, guint64 offset, GVariant *contents, GError **error)
{
  gsize size;
  gconstpointer data = g_variant_get_fixed_array (contents, &size, 1);
  const Block *block = find_block (session, number, offset, size, error);

  if (block != NULL && size > 0)
    memcpy ((gpointer) (guintptr) (block->address + offset), data, size);
  return block != NULL;
}

/* By the reader, while nothing is served: the memory is that of who serves. FALSE: the connection
 * is lost, or it is not known any more where a message begins; refused: what is wrong is told. */
static gboolean
put_bytes (Session *session, GVariant *body, GError **refused, GError **error)
{
  guint64 number, offset, bytes;
  const Block *block;
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

static gboolean
send_contents (Session *session, GDBusMessage *message, GError **error)
{
  g_autoptr (GDBusMessage) answer = NULL;
  guint64 number, offset, bytes;
  const Block *block;

  g_variant_get (g_dbus_message_get_body (message), "(ttt)", &number, &offset, &bytes);
  block = find_block (session, number, offset, bytes, error);
  if (block == NULL)
    return FALSE;
  if (!wants_a_reply (message))
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
take_piece (Session *session, GVariant *described, GError **error)
{
  g_autoptr (GVariant) spans = g_variant_get_child_value (described, 4);
  guint64 number, offset;
  Piece piece = { 0 };

  g_variant_get (described, "(tttu@a(tay))", &number, &offset, &piece.bytes, &piece.access, NULL);
  if (piece.bytes > 0)
    {
      const Block *block = find_block (session, number, offset, piece.bytes, error);

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
take_pieces (Session *session, Task *task, GError **error)
{
  g_autoptr (GVariant) list = g_variant_get_child_value (task->body, 4);
  gsize n = g_variant_n_children (list);

  g_array_set_size (session->pieces, 0);
  if (session->unheard != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&session->unheard));
      return FALSE;
    }
  if (!change_blocks (session, task->body, error))
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
static const Piece *
find_piece (Session *session, guint32 number, guint64 offset, guint64 bytes, GError **error)
{
  if (number < session->pieces->len)
    {
      const Piece *piece = &g_array_index (session->pieces, Piece, number);

      if (offset <= piece->bytes && bytes <= piece->bytes - offset)
        return piece;
    }
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               _ ("%" PRIu64 " bytes from %" PRIu64 " of piece %u are not memory of the task"),
               bytes, offset, number);
  return NULL;
}

static gboolean
take_tensors (Session *session, Task *task, GError **error)
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
      const Piece *piece;

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
take_task (Session *session, Task *task, GError **error)
{
  gsize n_scalars, n_kinds;

  task->call.request = PTO_REQUEST_TASK;
  task->call.digest = get_digest (task->body, 2, &task->digest, error);
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
make_written (Session *session)
{
  GVariantBuilder list;
  guint64 total = 0;

  for (guint i = 0; i < session->pieces->len; i++)
    if ((g_array_index (session->pieces, Piece, i).access & PTO_WIRE_WRITE) != 0)
      total += g_array_index (session->pieces, Piece, i).bytes;
  g_variant_builder_init (&list, G_VARIANT_TYPE ("aay"));
  for (guint i = 0; i < session->pieces->len && total <= PTO_REMOTE_INLINE_BYTES; i++)
    {
      const Piece *piece = &g_array_index (session->pieces, Piece, i);
      gboolean is_written = (piece->access & PTO_WIRE_WRITE) != 0;

      g_variant_builder_add_value (&list,
                                   pto_remote_make_bytes ((gconstpointer) (guintptr) piece->address,
                                                          is_written ? (gsize) piece->bytes : 0));
    }
  return g_variant_builder_end (&list);
}

static GVariant *
run_task (Session *session, GVariant *body, GError **error)
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
      status = serve_call (session, &task.call, failure);
      result = g_variant_new ("(u(iss@ay)@aay)", status, failure->code,
                              status != 0 ? failure->domain : "", status != 0 ? failure->text : "",
                              pto_remote_make_bytes (failure->detail, failure->detail_bytes),
                              status == 0 ? make_written (session)
                                          : g_variant_new_array (G_VARIANT_TYPE ("ay"), NULL, 0));
    }
  task_clear (&task);
  return result;
}

static GVariant *
tell_record (Session *session, GVariant *body, GError **error)
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

/* --- the serving thread --- */

/* Takes what it came to. What has no reply is told to the next task. */
static void
answer_call (Session *session, GDBusMessage *message, GVariant *result, GError *error)
{
  if (error == NULL)
    reply (session, message, result);
  else if (wants_a_reply (message))
    refuse (session, message, error);
  else if (session->unheard == NULL)
    session->unheard = g_steal_pointer (&error);
  g_clear_error (&error);
}

/* FALSE: it was the last. */
static gboolean
serve (Session *session, GDBusMessage *message)
{
  const char *member = g_dbus_message_get_member (message);
  GVariant *body = g_dbus_message_get_body (message);
  gboolean is_answered = FALSE;
  GVariant *result = NULL;
  GError *error = NULL;
  gboolean goes_on = TRUE;

  if (strcmp (member, "Run") == 0)
    result = run_task (session, body, &error);
  else if (strcmp (member, "Begin") == 0)
    {
      /* What was put for a task that never came is not in the way of the next. */
      g_clear_error (&session->unheard);
      change_blocks (session, body, &error);
    }
  else if (strcmp (member, "Get") == 0)
    is_answered = send_contents (session, message, &error);
  else if (strcmp (member, "Trace") == 0)
    result = tell_record (session, body, &error);
  else if (strcmp (member, "Has") == 0)
    result = tell_there (body, &error);
  else if (strcmp (member, "Content") == 0)
    take_contents (session, body, &error);
  else if (strcmp (member, "Register") == 0)
    add_registration (session, body, &error);
  else if (strcmp (member, "Unregister") == 0)
    remove_registration (session, body, &error);
  else if (strcmp (member, "Close") == 0)
    {
      struct pto_call call = { .request = PTO_REQUEST_CLOSE };

      ask (session, &call, &error);
      goes_on = FALSE;
    }
  else
    g_set_error (&error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, _ ("%s comes first, and once"), member);
  if (!is_answered)
    answer_call (session, message, result, error);
  return goes_on;
}

static GDBusMessage *
pop_call (Session *session)
{
  GDBusMessage *message;

  g_mutex_lock (&session->lock);
  while ((message = g_queue_pop_head (&session->calls)) == NULL)
    g_cond_wait (&session->changed, &session->lock);
  g_cond_broadcast (&session->changed);
  g_mutex_unlock (&session->lock);
  return message;
}

static void
end_call (Session *session)
{
  g_mutex_lock (&session->lock);
  session->n_open--;
  g_cond_broadcast (&session->changed);
  g_mutex_unlock (&session->lock);
}

/* --- the reader --- */

/* What is under way is told by the cancel, and what is below, in any case, by the end of this
 * process. It goes on when the worker was closed: then it is the main thread's to end. */
static void
end_process (Session *session, const GError *error)
{
  gint64 until = g_get_monotonic_time () + GRACE_MS * G_TIME_SPAN_MILLISECOND;
  gboolean has_ended;

  pto_call_mailbox_cancel (session->mailbox, TRUE);
  g_mutex_lock (&session->lock);
  while (!session->has_ended && g_cond_wait_until (&session->changed, &session->lock, until))
    ;
  has_ended = session->has_ended;
  g_mutex_unlock (&session->lock);
  if (has_ended)
    return;
  if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CLOSED))
    g_printerr ("pto-remote: %s\n", error->message);
  _exit (EX_UNAVAILABLE);
}

/* Whoever it works for is gone, or is cut off: they have given it up by now, too. */
static void
take_sign (gpointer data, PtoRemoteSign sign, guint64 ms)
{
  Session *session = data;
  g_autoptr (GError) error = NULL;

  if (sign != PTO_REMOTE_SIGN_EXPIRED)
    return;
  g_set_error (&error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
               _ ("nothing was heard of the parent of %s for %" PRIu64 " ms (remote-lease)"),
               session->worker != NULL ? session->worker->path : "?", ms);
  end_process (session, error);
  /* It was closed, by somebody who does not hang up. */
  _exit (EX_OK);
}

static void
push_call (Session *session, GDBusMessage *message)
{
  g_mutex_lock (&session->lock);
  while (session->calls.length >= QUEUE_MAX && !session->has_ended)
    g_cond_wait (&session->changed, &session->lock);
  if (session->has_ended)
    g_object_unref (message);
  else
    {
      g_queue_push_tail (&session->calls, message);
      session->n_open++;
    }
  g_cond_broadcast (&session->changed);
  g_mutex_unlock (&session->lock);
}

/* Into the memory itself, for which all that came before has to be served: that is Begin, or who
 * sends does not wait for its task. */
static gboolean
take_part (Session *session, GDBusMessage *message, GError **error)
{
  GError *refused = NULL;

  g_mutex_lock (&session->lock);
  while (session->n_open > 0 && !session->has_ended)
    g_cond_wait (&session->changed, &session->lock);
  g_mutex_unlock (&session->lock);
  if (!put_bytes (session, g_dbus_message_get_body (message), &refused, error))
    {
      g_clear_error (&refused);
      return FALSE;
    }
  answer_call (session, message, NULL, refused);
  return TRUE;
}

static gpointer
read_calls (gpointer data)
{
  Session *session = data;
  GError *error = NULL;

  for (;;)
    {
      GDBusMessage *message = pto_remote_stream_receive (session->stream, -1, &error);
      const char *member;

      if (message == NULL || !pto_remote_check_call (message, &error)
          || (strcmp (g_dbus_message_get_member (message), "Put") == 0
              && !take_part (session, message, &error)))
        {
          end_process (session, error);
          g_clear_object (&message);
          g_error_free (error);
          return NULL;
        }
      member = g_dbus_message_get_member (message);
      if (strcmp (member, "Cancel") == 0)
        pto_call_mailbox_cancel (session->mailbox, TRUE);
      else if (strcmp (member, "Progress") == 0)
        reply (session, message, g_variant_new ("(u)", pto_call_mailbox_beat (session->mailbox)));
      else if (strcmp (member, "Clock") == 0)
        reply (session, message, g_variant_new ("(t)", pto_remote_get_time ()));
      else if (strcmp (member, "Put") != 0)
        {
          /* In the order in which they come: one that was cancelled is the one before. */
          if (strcmp (member, "Run") == 0)
            pto_call_mailbox_cancel (session->mailbox, FALSE);
          push_call (session, message);
          continue;
        }
      g_object_unref (message);
    }
}

/* --- hello --- */

/* Nothing is here from before: all that it can run is sent to it. */
static GPtrArray *
list_nothing (gpointer data)
{
  return g_ptr_array_new_with_free_func (NULL);
}

static PtoCallable *
import (PtoCallableKind kind, const char *path, gpointer data, GError **error)
{
  return pto_worker_import (((Session *) data)->worker, kind, path, error);
}

static gboolean
make_worker (Session *session, GVariant *options, const char *path, GError **error)
{
  g_autoptr (GVariant) parameters
      = g_variant_lookup_value (options, "parameters", G_VARIANT_TYPE ("a{ss}"));
  g_autoptr (GVariant) chips = g_variant_lookup_value (options, "chips", G_VARIANT_TYPE ("aa{ss}"));
  gsize n_chips = chips != NULL ? g_variant_n_children (chips) : 0;
  const char *platform = NULL;
  guint32 level = 3;
  guint32 n_subs = 0;
  guint32 id = 0;

  g_variant_lookup (options, "level", "u", &level);
  g_variant_lookup (options, "sub-workers", "u", &n_subs);
  g_variant_lookup (options, "id", "u", &id);
  g_variant_lookup (options, "platform", "&s", &platform);
  session->worker
      = pto_worker_new_host (level, (guint) MIN (n_chips, G_MAXINT), n_subs, platform, error);
  if (session->worker == NULL)
    return FALSE;
  session->worker->id = id;
  session->worker->path = g_strdup (path);
  if (parameters != NULL && !pto_worker_unpack_parameters (session->worker, parameters, error))
    return FALSE;
  for (gsize i = 0; i < n_chips; i++)
    {
      g_autoptr (GVariant) values = g_variant_get_child_value (chips, i);

      if (!pto_worker_unpack_parameters (pto_worker_get_child (session->worker, (guint) i), values,
                                         error))
        return FALSE;
    }
  return TRUE;
}

/* Of tensors: what is below has it from birth. A worker with nothing below makes none of its own.
 */
static gboolean
reserve_memory (Session *session, GError **error)
{
  struct pto_report report = { 0 };
  enum pto_status status
      = pto_arena_acquire (session->worker->params.values[PTO_PARAMETER_ARENA], &report);

  session->has_arena = status == PTO_OK;
  if (status != PTO_OK)
    pto_error_set_from_report (error, status, &report);
  return session->has_arena;
}

static gboolean
take_hello (Session *session, GDBusMessage *message, GError **error)
{
  GVariant *body = g_dbus_message_get_body (message);
  g_autoptr (GVariant) options = NULL;
  struct pto_call call = { .request = PTO_REQUEST_START };
  PtoChildParent parent = { list_nothing, import, session, .is_far = TRUE };
  const char *id;
  const char *path;
  guint32 protocol;

  g_variant_get (body, "(u&s&s@a{sv})", &protocol, &id, &path, &options);
  /* The other end says what is wrong, and knows how it was launched. */
  if (protocol != PTO_REMOTE_PROTOCOL)
    return TRUE;
  if (!make_worker (session, options, path, error) || !reserve_memory (session, error))
    return FALSE;
  session->child = pto_child_new (session->worker, path, &parent);
  pto_child_get_server (session->child, &session->server);
  return ask (session, &call, error);
}

/* What this end can do beyond the protocol. */
static GVariant *
make_answer (void)
{
  GVariantBuilder options;

  g_variant_builder_init (&options, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&options, "{sv}", "features", g_variant_new_strv (NULL, 0));
  return g_variant_builder_end (&options);
}

/* Before there is another thread: the worker forks what is below it. */
static gboolean
begin (Session *session, GError **error)
{
  g_autoptr (GDBusMessage) message = pto_remote_stream_receive (session->stream, HELLO_MS, error);
  g_autoptr (GError) refused = NULL;

  if (message == NULL || !pto_remote_check_call (message, error))
    {
      if (error != NULL && *error == NULL)
        g_set_error_literal (error, PTO_ERROR, PTO_ERROR_WORKER_LOST, _ ("nobody has said Hello"));
      return FALSE;
    }
  if (strcmp (g_dbus_message_get_member (message), "Hello") != 0)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, _ ("Hello comes first"));
      return FALSE;
    }
  if (take_hello (session, message, &refused))
    {
      reply (session, message,
             g_variant_new ("(ussu@a{sv})", PTO_REMOTE_PROTOCOL, PTO_VERSION_S, g_get_host_name (),
                            (guint32) getpid (), make_answer ()));
      return TRUE;
    }
  refuse (session, message, refused);
  g_propagate_error (error, g_steal_pointer (&refused));
  return FALSE;
}

/* Standard input and output are the connection; what functions print goes where errors go. */
static PtoRemoteStream *
take_connection (void)
{
  int in = fcntl (STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  int out = fcntl (STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  int nothing = open ("/dev/null", O_RDONLY | O_CLOEXEC);

  if (in < 0 || out < 0 || nothing < 0)
    return NULL;
  dup2 (nothing, STDIN_FILENO);
  dup2 (STDERR_FILENO, STDOUT_FILENO);
  close (nothing);
  return pto_remote_stream_new (in, out);
}

static void
session_free (Session *session)
{
  g_hash_table_unref (session->blocks);
  g_array_unref (session->pieces);
  g_byte_array_unref (session->contents);
  g_clear_pointer (&session->record, g_byte_array_unref);
  g_clear_error (&session->unheard);
  g_queue_clear_full (&session->calls, g_object_unref);
  g_clear_pointer (&session->child, pto_child_free);
  g_clear_object (&session->worker);
  if (session->has_arena)
    pto_arena_release ();
  pto_remote_stream_free (session->stream);
  free (session->mailbox);
  g_mutex_clear (&session->lock);
  g_cond_clear (&session->changed);
  g_free (session);
}

/**
 * pto_remote_serve:
 * @error: where to say why not
 *
 * Makes this process a remote worker: what [method@Pto.Worker.add_remote_worker] launches calls it,
 * once, on its main thread, and does nothing else.
 *
 * Standard input and output are the connection to whoever has launched it; what functions print
 * goes to standard error. It returns when the worker is closed. When the connection ends before
 * that, the process ends, with all below it. Functions are imported as
 * [func@Pto.Worker.set_default_import_func] says.
 *
 * Fails when what comes is no worker's, and with the errors of [method@Pto.Worker.start]. Source:
 * seed 001 section 2. Thread safety: the main thread of a process that has no other.
 *
 * Returns: %TRUE if the worker was closed
 *
 * Since: 0.1
 */
gboolean
pto_remote_serve (GError **error)
{
  Session *session = g_new0 (Session, 1);
  PtoRemoteHealthConfig config = { .tell = take_sign, .data = session };
  PtoRemoteHealth *health;
  GThread *reader;
  gboolean goes_on = TRUE;

  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  session->stream = take_connection ();
  if (session->stream == NULL)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_SYSTEM,
                           _ ("standard input and output are no connection"));
      return FALSE;
    }
  session->mailbox = pto_call_mailbox_new ();
  session->blocks = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, block_free);
  session->pieces = g_array_new (FALSE, FALSE, sizeof (Piece));
  session->contents = g_byte_array_new ();
  g_mutex_init (&session->lock);
  g_cond_init (&session->changed);
  if (!begin (session, error))
    {
      session_free (session);
      return FALSE;
    }
  /* Who speaks another protocol has none. */
  config.lease_ms = session->worker != NULL
                        ? (guint) session->worker->params.values[PTO_PARAMETER_REMOTE_LEASE]
                        : HELLO_MS;
  health = pto_remote_health_new (session->stream, &config);
  pto_remote_health_begin_to_tell (health);
  reader = g_thread_new ("pto-remote", read_calls, session);
  while (goes_on)
    {
      GDBusMessage *message = pop_call (session);

      goes_on = serve (session, message);
      g_object_unref (message);
      end_call (session);
    }
  g_mutex_lock (&session->lock);
  session->has_ended = TRUE;
  g_cond_broadcast (&session->changed);
  g_mutex_unlock (&session->lock);
  /* The other end has what it wanted, and hangs up. */
  g_thread_join (reader);
  pto_remote_health_free (health);
  session_free (session);
  return TRUE;
}
