/* serve.c: how does a process become a worker of somebody else?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Two threads, and one that sleeps (remote/wire/liveness.c). The main one serves one request after
 * the other, as any child does (worker/child-server.c), with a mailbox that nobody else maps; it
 * has brought up the worker, and so forked what is below it, before there was the other. That one
 * reads what comes: it answers at once what is asked during a task (Progress, Clock, Recall,
 * Cancel), and hands on the rest. When the connection ends, or nothing is heard for as long as the
 * lease, the process is ended, and with that all below it.
 */
#include "config.h"

#include "pto-remote.h"
#include "serve.h"

#include "process/arena.h"

#include "base/error.h"
#include "base/task-thread.h"
#include "callable/callable.h"
#include "common/text.h"
#include "monitor/answer.h"
#include "mpi/rank-client.h"
#include "remote/wire/liveness.h"
#include "pto-version.h"

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

/* --- replies --- */

gboolean
pto_far_end_wants_a_reply (GDBusMessage *call)
{
  return (g_dbus_message_get_flags (call) & G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED) == 0;
}

static void
reply (PtoFarEnd *session, GDBusMessage *call, GVariant *body)
{
  g_autoptr (GDBusMessage) message = NULL;

  if (!pto_far_end_wants_a_reply (call))
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
refuse (PtoFarEnd *session, GDBusMessage *call, const GError *error)
{
  g_autoptr (GDBusMessage) message = pto_remote_make_refusal (call, error);

  pto_remote_stream_send (session->stream, message, NULL, NULL);
}

guint32
pto_far_end_serve_call (PtoFarEnd *session, struct pto_call *call, struct pto_failure *failure)
{
  call->mailbox = session->mailbox;
  failure->code = 0;
  failure->bytes = 0;
  failure->detail_bytes = 0;
  failure->domain[0] = '\0';
  return session->server.serve (session->server.data, call, failure);
}

gboolean
pto_far_end_ask (PtoFarEnd *session, struct pto_call *call, GError **error)
{
  g_autofree struct pto_failure *failure = g_new0 (struct pto_failure, 1);

  if (pto_far_end_serve_call (session, call, failure) == 0)
    return TRUE;
  pto_failure_propagate (failure, error);
  return FALSE;
}

const guint8 *
pto_far_end_get_digest (GVariant *body, guint child, GVariant **holder, GError **error)
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

/* --- the serving thread --- */

/* Takes what it came to. What has no reply is told to the next task. */
static void
answer_call (PtoFarEnd *session, GDBusMessage *message, GVariant *result, GError *error)
{
  if (error == NULL)
    reply (session, message, result);
  else if (pto_far_end_wants_a_reply (message))
    refuse (session, message, error);
  else if (session->unheard == NULL)
    session->unheard = g_steal_pointer (&error);
  g_clear_error (&error);
}

/* FALSE: it was the last. */
static gboolean
serve (PtoFarEnd *session, GDBusMessage *message)
{
  const char *member = g_dbus_message_get_member (message);
  GVariant *body = g_dbus_message_get_body (message);
  gboolean is_answered = FALSE;
  GVariant *result = NULL;
  GError *error = NULL;
  gboolean goes_on = TRUE;

  if (strcmp (member, "Run") == 0)
    result = pto_far_end_run_tasks (session, body, &error);
  else if (strcmp (member, "Begin") == 0)
    pto_far_end_begin (session, body, &error);
  else if (strcmp (member, "Get") == 0)
    is_answered = pto_far_end_send_contents (session, message, &error);
  else if (strcmp (member, "Copy") == 0)
    pto_far_end_copy (session, body, &error);
  else if (strcmp (member, "Trace") == 0)
    result = pto_far_end_tell_record (session, body, &error);
  else if (strcmp (member, "Has") == 0)
    result = pto_far_end_tell_there (body, &error);
  else if (strcmp (member, "Content") == 0)
    pto_far_end_take_contents (session, body, &error);
  else if (strcmp (member, "Register") == 0)
    pto_far_end_register (session, body, &error);
  else if (strcmp (member, "Commit") == 0)
    pto_far_end_commit (session, body, &error);
  else if (strcmp (member, "Unregister") == 0)
    pto_far_end_unregister (session, body, &error);
  else if (strcmp (member, "Close") == 0)
    {
      struct pto_call call = { .request = PTO_REQUEST_CLOSE };

      pto_far_end_ask (session, &call, &error);
      goes_on = FALSE;
    }
  else
    g_set_error (&error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, _ ("%s comes first, and once"), member);
  if (!is_answered)
    answer_call (session, message, result, error);
  return goes_on;
}

static GDBusMessage *
pop_call (PtoFarEnd *session)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&session->lock);
  GDBusMessage *message;

  while ((message = g_queue_pop_head (&session->calls)) == NULL)
    g_cond_wait (&session->changed, &session->lock);
  g_cond_broadcast (&session->changed);
  return message;
}

static void
end_call (PtoFarEnd *session)
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
end_process (PtoFarEnd *session, const GError *error)
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
  PtoFarEnd *session = data;
  g_autoptr (GError) error = NULL;

  if (sign != PTO_REMOTE_SIGN_EXPIRED)
    return;
  g_set_error (&error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
               _ ("nothing was heard of the parent of %s for %" PRIu64 " ms (remote-lease)"),
               session->worker->node.path, ms);
  end_process (session, error);
  /* It was closed, by somebody who does not hang up. */
  _exit (EX_OK);
}

static void
push_call (PtoFarEnd *session, GDBusMessage *message)
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
take_part (PtoFarEnd *session, GDBusMessage *message, GError **error)
{
  GError *refused = NULL;

  g_mutex_lock (&session->lock);
  while (session->n_open > 0 && !session->has_ended)
    g_cond_wait (&session->changed, &session->lock);
  g_mutex_unlock (&session->lock);
  if (!pto_far_end_put_bytes (session, g_dbus_message_get_body (message), &refused, error))
    {
      g_clear_error (&refused);
      return FALSE;
    }
  answer_call (session, message, NULL, refused);
  return TRUE;
}

/* A Run is about to be pushed. */
static void
want_all (PtoFarEnd *session)
{
  g_mutex_lock (&session->lock);
  session->n_wanted = G_MAXUINT;
  session->n_begun = 0;
  g_mutex_unlock (&session->lock);
}

/* Who has begun goes on, and the first is not for others. */
static guint
recall (PtoFarEnd *session)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&session->lock);

  session->n_wanted = MIN (session->n_wanted, MAX (session->n_begun, 1));
  return session->n_wanted;
}

static gpointer
read_calls (gpointer data)
{
  PtoFarEnd *session = data;
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
      else if (strcmp (member, "Recall") == 0)
        reply (session, message, g_variant_new ("(u)", recall (session)));
      else if (strcmp (member, "Clock") == 0)
        reply (session, message, g_variant_new ("(t)", pto_remote_get_time ()));
      else if (strcmp (member, "Put") != 0)
        {
          /* In the order in which they come: one that was cancelled is the one before. */
          if (strcmp (member, "Run") == 0)
            {
              pto_call_mailbox_cancel (session->mailbox, FALSE);
              want_all (session);
            }
          push_call (session, message);
          continue;
        }
      g_object_unref (message);
    }
}

/* --- hello --- */

/* Nothing is here from before: all that it can run is sent to it. */
static GPtrArray *
list_nothing (gpointer data, guint index)
{
  return g_ptr_array_new_with_free_func (NULL);
}

gboolean
pto_far_end_check_import (PtoFarEnd *session, const char *path, GError **error)
{
  if (session->takes_serialized || !g_str_has_prefix (path, PTO_SERIALIZED_PYTHON))
    return TRUE;
  return pto_refuse (
      error, PTO_ERROR_NOT_SUPPORTED,
      _ ("%s takes no functions as bytes: begin pto-remote there with --serialized-python"),
      session->worker->node.path);
}

static PtoCallable *
import (PtoCallableKind kind, const char *path, gpointer data, GError **error)
{
  PtoFarEnd *session = data;

  return pto_far_end_check_import (session, path, error)
             ? pto_tree_node_import (&session->worker->node, kind, path, error)
             : NULL;
}

/* As pto-remote has said, for which this may be an interpreter. */
static gboolean
is_serialized_taken (void)
{
  return g_strcmp0 (g_getenv ("PTO_REMOTE_SERIALIZED_PYTHON"), "1") == 0;
}

static gboolean
make_worker (PtoFarEnd *session, GVariant *options, const char *path, GError **error)
{
  g_autoptr (GVariant) parameters
      = g_variant_lookup_value (options, "parameters", G_VARIANT_TYPE ("a{ss}"));
  g_autoptr (GVariant) chips = g_variant_lookup_value (options, "chips", G_VARIANT_TYPE ("aa{ss}"));
  gsize n_chips = chips != NULL ? g_variant_n_children (chips) : 0;
  const char *platform = NULL;
  guint32 level = 3;
  guint32 n_subs = 0;
  guint32 id = 0;
  gboolean restart = FALSE;

  g_variant_lookup (options, "level", "u", &level);
  g_variant_lookup (options, "sub-workers", "u", &n_subs);
  g_variant_lookup (options, "id", "u", &id);
  g_variant_lookup (options, "platform", "&s", &platform);
  session->worker
      = pto_worker_new_host (level, (guint) MIN (n_chips, G_MAXINT), n_subs, platform, error);
  if (session->worker == NULL)
    return FALSE;
  session->worker->node.id = id;
  if (g_variant_lookup (options, "restart", "b", &restart) && restart)
    session->worker->node.restart = PTO_RESTART_ON_FAILURE;
  session->worker->node.path = g_strdup (path);
  if (parameters != NULL && !pto_worker_unpack_parameters (session->worker, parameters, error))
    return FALSE;
  for (gsize i = 0; i < n_chips; i++)
    {
      g_autoptr (GVariant) values = g_variant_get_child_value (chips, i);

      if (!pto_worker_unpack_parameters (pto_worker_peek_child (session->worker, (guint) i), values,
                                         error))
        return FALSE;
    }
  return TRUE;
}

/* Of tensors: what is below has it from birth. A worker with nothing below makes none of its own.
 */
static gboolean
reserve_memory (PtoFarEnd *session, GError **error)
{
  struct pto_report report = { 0 };
  enum pto_status status
      = pto_arena_acquire (session->worker->params.values[PTO_PARAMETER_ARENA], &report);

  session->has_arena = status == PTO_OK;
  return pto_error_set_from_report (error, status, &report);
}

/* answer: what this end can do beyond the protocol, if it is a worker. */
static gboolean
take_hello (PtoFarEnd *session, GDBusMessage *message, GVariantDict *answer, GError **error)
{
  GVariant *body = g_dbus_message_get_body (message);
  g_autoptr (GVariant) options = NULL;
  struct pto_call call = { .request = PTO_REQUEST_START };
  PtoChildParent parent = { list_nothing, import, session, .is_far = TRUE };
  const char *id;
  const char *path;
  const char *fabric;
  const char *rank = NULL;
  gboolean answers = FALSE;
  guint32 protocol;

  g_variant_get (body, "(u&s&s@a{sv})", &protocol, &id, &path, &options);
  /* The other end says what is wrong, and knows how it was launched. */
  if (protocol != PTO_REMOTE_PROTOCOL)
    return TRUE;
  if (g_getenv (PTO_REMOTE_LISTENED) != NULL)
    g_printerr (PTO_REMOTE_IS "%s\n", path);
  g_unsetenv (PTO_REMOTE_LISTENED);
  if (!pto_remote_fabric_check (options, &fabric, error)
      || !make_worker (session, options, path, error) || !reserve_memory (session, error))
    return FALSE;
  session->takes_serialized
      = is_serialized_taken () && pto_remote_has_feature (options, PTO_REMOTE_FEATURE_SERIALIZED);
  if (g_variant_lookup (options, "answers", "b", &answers) && answers)
    pto_answer_want ();
  session->child = pto_child_new (session->worker, path, &parent);
  pto_child_get_server (session->child, &session->server);
  if (!pto_far_end_ask (session, &call, error))
    return FALSE;
  if (fabric != NULL)
    session->fabric = pto_remote_fabric_accept (fabric, options, answer, error);
  if (fabric != NULL && session->fabric == NULL)
    return FALSE;
  g_variant_lookup (options, "rank", "&s", &rank);
  return rank == NULL || pto_remote_rank_listen (rank, error);
}

/* Before there is another thread: the worker forks what is below it. */
static gboolean
begin (PtoFarEnd *session, GError **error)
{
  g_autoptr (GDBusMessage) message = pto_remote_stream_receive (session->stream, HELLO_MS, error);
  g_autoptr (GError) refused = NULL;
  g_auto (GVariantDict) answer = G_VARIANT_DICT_INIT (NULL);

  if (message == NULL || !pto_remote_check_call (message, error))
    {
      if (error != NULL && *error == NULL)
        g_set_error_literal (error, PTO_ERROR, PTO_ERROR_WORKER_LOST, _ ("nobody has said Hello"));
      return FALSE;
    }
  if (strcmp (g_dbus_message_get_member (message), "Hello") != 0)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("Hello comes first"));
  if (take_hello (session, message, &answer, &refused))
    {
      const char *features[3] = { NULL };
      guint n = 0;

      if (session->fabric != NULL)
        features[n++] = "fabric";
      if (is_serialized_taken ())
        features[n++] = PTO_REMOTE_FEATURE_SERIALIZED;
      g_variant_dict_insert (&answer, "features", "^as", features);
      reply (session, message,
             g_variant_new ("(ussu@a{sv})", PTO_REMOTE_PROTOCOL, PTO_VERSION_S, g_get_host_name (),
                            (guint32) getpid (), g_variant_dict_end (&answer)));
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
session_free (PtoFarEnd *session)
{
  g_hash_table_unref (session->blocks);
  g_free (session->failure);
  g_byte_array_unref (session->contents);
  g_clear_pointer (&session->record, g_byte_array_unref);
  g_clear_error (&session->unheard);
  g_queue_clear_full (&session->calls, g_object_unref);
  g_clear_pointer (&session->child, pto_child_free);
  g_clear_object (&session->worker);
  g_clear_pointer (&session->fabric, pto_remote_fabric_free);
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
  PtoFarEnd *session = g_new0 (PtoFarEnd, 1);
  PtoRemoteHealthConfig config = { .tell = take_sign, .data = session };
  PtoRemoteHealth *health;
  GThread *reader;
  gboolean goes_on = TRUE;

  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  session->stream = take_connection ();
  if (session->stream == NULL)
    return pto_refuse (error, PTO_ERROR_SYSTEM, _ ("standard input and output are no connection"));
  session->mailbox = pto_call_mailbox_new ();
  session->blocks
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, pto_far_end_block_free);
  session->failure = g_new0 (struct pto_failure, 1);
  session->contents = g_byte_array_new ();
  g_mutex_init (&session->lock);
  g_cond_init (&session->changed);
  if (!begin (session, error))
    {
      session_free (session);
      return FALSE;
    }
  /* Who speaks another protocol was told so, and has none. */
  if (session->worker == NULL)
    {
      session_free (session);
      return TRUE;
    }
  config.lease_ms = (guint) session->worker->params.values[PTO_PARAMETER_REMOTE_LEASE];
  health = pto_remote_health_new (session->stream, &config, error);
  reader = health != NULL ? pto_thread_try_new ("pto-remote", read_calls, session, error) : NULL;
  if (reader == NULL)
    {
      g_clear_pointer (&health, pto_remote_health_free);
      session_free (session);
      return FALSE;
    }
  pto_remote_health_begin_to_tell (health);
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
  pto_remote_rank_end ();
  session_free (session);
  return TRUE;
}
