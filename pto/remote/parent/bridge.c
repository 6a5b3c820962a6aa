/* bridge.c: what does the process behind a remote worker's mailbox do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bridge.h"

#include "base/error.h"
#include "callable/callable.h"
#include "common/remote-address.h"
#include "common/text.h"
#include "machine/machine-level.h"
#include "monitor/answer.h"
#include "remote/launch/mpi-job.h"
#include "bridge-parts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

/* While an answer is waited for: so often it is looked whether it is still wanted, and asked for a
 * sign of life. */
#define LOOK_MS 10
#define PROGRESS_US 100000
/* Small tasks that went together should be done by then: those that have not begun are recalled. */
#define RECALL_US 10000
/* So long is waited for the end of what was launched, once it is told. */
#define END_MS 1000
/* Of the memory at the other end, for blocks that no task needs just now: the rest is for tasks. */
#define KEPT_PART 2u

/* --- the connection --- */

void
pto_bridge_end_with_connection (PtoBridge *self, const GError *error)
{
  /* The other thread is about to. */
  while (!g_atomic_int_compare_and_exchange (&self->ending, FALSE, TRUE))
    pause ();
  fprintf (stderr, _ ("%s: the remote worker at %s is lost: %s\n"), self->path,
           self->node->remote->address, error->message);
  fflush (stderr);
  _exit (EX_UNAVAILABLE);
}

/* "L4/0/L3/1: ssh://one: ", so that nobody has to ask which it is. */
static void
say (PtoBridge *self, const char *what)
{
  fprintf (stderr, "%s: %s: %s\n", self->path, self->node->remote->address, what);
  fflush (stderr);
}

/* Of the other end, on the thread that looks after the connection. */
static void
take_sign (gpointer data, PtoRemoteSign sign, guint64 ms)
{
  PtoBridge *self = data;
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;

  switch (sign)
    {
    case PTO_REMOTE_SIGN_SILENT:
      text = g_strdup_printf (
          _ ("nothing is heard of it for %" PRIu64 " ms (remote-suspect): it gets no new task"),
          ms);
      say (self, text);
      pto_bridge_count (&self->traffic->silences, 1);
      pto_call_set_silent (&self->birth, true);
      return;
    case PTO_REMOTE_SIGN_HEARD:
      text = g_strdup_printf (_ ("it is heard of again, after %" PRIu64 " ms"), ms);
      say (self, text);
      pto_call_set_silent (&self->birth, false);
      return;
    case PTO_REMOTE_SIGN_EXPIRED:
      /* What was launched here may stand still, and see no end of a connection. */
      if (self->process != 0)
        kill (self->process, SIGKILL);
      g_set_error (&error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                   _ ("nothing was heard of it for %" PRIu64 " ms (remote-lease)"), ms);
      break;
    case PTO_REMOTE_SIGN_ENDED:
      g_set_error_literal (&error, G_IO_ERROR, G_IO_ERROR_CLOSED, _ ("the connection has ended"));
    }
  pto_bridge_end_with_connection (self, error);
}

static guint
get_ms (PtoBridge *self, enum pto_param param)
{
  return (guint) self->node->params->values[param];
}

static gboolean
look_after_connection (PtoBridge *self, GError **error)
{
  PtoRemoteHealthConfig config = { .ping_ms = get_ms (self, PTO_PARAMETER_REMOTE_PING),
                                   .suspect_ms = get_ms (self, PTO_PARAMETER_REMOTE_SUSPECT),
                                   .lease_ms = get_ms (self, PTO_PARAMETER_REMOTE_LEASE),
                                   .tell = take_sign,
                                   .data = self };

  self->birth = *self->call;
  self->health = pto_remote_health_new (self->stream, &config, error);
  return self->health != NULL;
}

/* --- calls --- */

/* As a call under way sees itself. */
typedef struct
{
  guint32 serial;          /* of the message that is to be answered */
  guint32 progress_serial; /* of the last question for progress; 0: it was answered */
  guint32 recall_serial;   /* as that, of a Recall */
  gint64 begun_at;
  gint64 asked_at;
  gboolean cancelled; /* and has said so */
} Waiting;

/* While it is waited: is it still wanted, does the other end get on? */
static gboolean
look_after (PtoBridge *self, Waiting *waiting, GError **error)
{
  gint64 now = g_get_monotonic_time ();
  g_autoptr (GDBusMessage) message = NULL;

  if (!waiting->cancelled && pto_call_is_cancelled (self->call))
    {
      waiting->cancelled = TRUE;
      message = pto_remote_make_call ("Cancel", NULL, FALSE);
      return pto_remote_stream_send (self->stream, message, NULL, error);
    }
  if (self->batch != NULL && !self->batch->is_recalled && now - waiting->begun_at >= RECALL_US)
    {
      self->batch->is_recalled = TRUE;
      message = pto_remote_make_call ("Recall", NULL, TRUE);
      return pto_remote_stream_send (self->stream, message, &waiting->recall_serial, error);
    }
  if (waiting->progress_serial != 0 || now - waiting->asked_at < PROGRESS_US)
    return TRUE;
  waiting->asked_at = now;
  message = pto_remote_make_call ("Progress", NULL, TRUE);
  return pto_remote_stream_send (self->stream, message, &waiting->progress_serial, error);
}

static void
take_progress (PtoBridge *self, Waiting *waiting, GDBusMessage *reply)
{
  GVariant *body = g_dbus_message_get_body (reply);
  guint32 progress;

  waiting->progress_serial = 0;
  if (body == NULL || !g_variant_is_of_type (body, G_VARIANT_TYPE ("(u)")))
    return;
  g_variant_get (body, "(u)", &progress);
  if (progress != self->progress)
    pto_call_beat (self->call);
  self->progress = progress;
}

/* What does not begin there is for others, now. */
static void
take_recall (PtoBridge *self, Waiting *waiting, GDBusMessage *reply)
{
  GVariant *body = g_dbus_message_get_body (reply);
  PtoRemoteBatch *batch = self->batch;
  guint32 kept = 0;

  waiting->recall_serial = 0;
  if (body != NULL && g_variant_is_of_type (body, G_VARIANT_TYPE ("(u)")))
    g_variant_get (body, "(u)", &kept);
  /* The first is there for good. */
  if (kept == 0 || kept > batch->n)
    return;
  batch->kept = kept;
  if (batch->numbers[kept] != G_MAXUINT)
    pto_call_keep_tasks (self->call, batch->numbers[kept]);
}

GVariant *
pto_bridge_call (PtoBridge *self, const char *method, GVariant *arguments, const char *type,
                 GError **error)
{
  g_autoptr (GDBusMessage) message = pto_remote_make_call (method, arguments, TRUE);
  gint64 now = g_get_monotonic_time ();
  Waiting waiting = { .begun_at = now, .asked_at = now };
  GError *lost = NULL;

  /* Whoever refuses need not have read what is refused. */
  if (!pto_remote_stream_send (self->stream, message, &waiting.serial, &lost)
      && self->call->request == PTO_REQUEST_START
      && g_error_matches (lost, G_IO_ERROR, G_IO_ERROR_CLOSED))
    g_clear_error (&lost);
  if (lost != NULL)
    goto lost;
  for (;;)
    {
      g_autoptr (GDBusMessage) reply = pto_remote_stream_receive (
          self->stream, self->call->request == PTO_REQUEST_START ? -1 : LOOK_MS, &lost);
      guint32 serial = reply != NULL ? g_dbus_message_get_reply_serial (reply) : 0;
      GVariant *body;

      if (lost != NULL)
        break;
      if (serial != 0 && serial == waiting.progress_serial)
        take_progress (self, &waiting, reply);
      if (serial != 0 && serial == waiting.recall_serial)
        take_recall (self, &waiting, reply);
      if (serial != waiting.serial)
        {
          if (self->call->request != PTO_REQUEST_START && !look_after (self, &waiting, &lost))
            break;
          continue;
        }
      if (g_dbus_message_get_message_type (reply) == G_DBUS_MESSAGE_TYPE_ERROR)
        {
          pto_remote_take_refusal (reply, error);
          return NULL;
        }
      body = g_dbus_message_get_body (reply);
      if (g_strcmp0 (body != NULL ? g_variant_get_type_string (body) : "()", type) == 0)
        return body != NULL ? g_variant_ref (body) : g_variant_ref_sink (g_variant_new ("()"));
      g_set_error (&lost, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, _ ("its answer to %s is none"),
                   method);
      break;
    }
lost:
  if (self->call->request != PTO_REQUEST_START)
    pto_bridge_end_with_connection (self, lost);
  g_propagate_error (error, lost);
  return NULL;
}

void
pto_bridge_tell (PtoBridge *self, const char *method, GVariant *arguments, gconstpointer data,
                 gsize size)
{
  g_autoptr (GDBusMessage) message = pto_remote_make_call (method, arguments, FALSE);
  g_autoptr (GError) error = NULL;

  if (!pto_remote_stream_send_with (self->stream, message, data, self->fabric == NULL ? size : 0,
                                    NULL, &error)
      || (self->fabric != NULL
          && !pto_remote_fabric_send (self->fabric, self->stream, data, size, &error)))
    pto_bridge_end_with_connection (self, error);
}

/* --- start and end --- */

/* FALSE: a fabric that is trusted can not be used. */
static gboolean
make_options (PtoBridge *self, GVariantDict *options, GError **error)
{
  const PtoTreeNode *node = self->node;
  const char *features[3] = { NULL };
  guint n = 0;

  self->life = pto_writes_begin_life (*self->parent.writes, self->parent.index);
  if (node->remote->fabric != NULL)
    {
      self->fabric = pto_remote_fabric_new (node->remote->fabric, options, error);
      if (self->fabric == NULL)
        return FALSE;
      features[n++] = "fabric";
    }
  if (node->remote->sends_serialized)
    features[n++] = PTO_REMOTE_FEATURE_SERIALIZED;
  g_variant_dict_insert (options, "features", "^as", features);
  g_variant_dict_insert (options, "level", "u", node->level);
  g_variant_dict_insert (options, "id", "u", node->id);
  g_variant_dict_insert (options, "generation", "u", self->life);
  g_variant_dict_insert (options, "platform", "s", node->platform);
  g_variant_dict_insert (options, "sub-workers", "u", node->n_sub_workers);
  /* Nobody is forked who would have a part in the fabric. */
  g_variant_dict_insert (options, "restart", "b",
                         node->restart == PTO_RESTART_ON_FAILURE && self->fabric == NULL);
  g_variant_dict_insert_value (options, "parameters", self->parameters);
  /* The wish of this process is that of all below it. */
  g_variant_dict_insert (options, "answers", "b", pto_answer_is_wanted ());
  if (node->remote->job != NULL)
    {
      g_autofree char *name = pto_remote_job_begin_life (node->remote);

      g_variant_dict_insert (options, "rank", "s", name);
    }
  /* One for each chip. */
  g_variant_dict_insert_value (options, "chips", self->chips);
  return TRUE;
}

/* What was launched has ended, with that status; FALSE: not within so long, or nobody knows. */
static gboolean
reap (PtoBridge *self, int *status)
{
  for (guint i = 0; i < END_MS && self->process != 0; i++)
    {
      pid_t found = waitpid (self->process, status, WNOHANG);

      if (found == self->process)
        {
          self->process = 0;
          return TRUE;
        }
      if (found < 0 && errno != EINTR)
        break;
      g_usleep (1000);
    }
  return FALSE;
}

/* What stands in place of a message, if it is the first: a shell there greets, or it is another
 * service. NULL: it is something else. */
static char *
explain_greeting (PtoBridge *self, const GError *error)
{
  const PtoRemoteSpec *spec = self->node->remote;
  g_autofree char *line = g_error_matches (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA)
                              ? pto_remote_stream_dup_line (self->stream)
                              : NULL;

  if (line == NULL)
    return NULL;
  if (spec->kind != PTO_REMOTE_ADDRESS_LAUNCHED)
    return g_strdup_printf (_ ("who listens at %s is no pto-remote: it says \"%s\""), spec->address,
                            line);
  return g_strdup_printf (
      _ ("before pto-remote speaks at %s something else has printed \"%s\": what a shell there "
         "reads at its start (.bashrc, .profile) must print nothing where standard output is no "
         "terminal"),
      spec->address, line);
}

/* What launching it came to, when it has hung up, at whatever word: the end of the program, if it
 * has ended. */
static void
explain_end (PtoBridge *self, GError **error)
{
  const PtoRemoteSpec *spec = self->node->remote;
  int status = 0;

  if (!g_error_matches (*error, G_IO_ERROR, G_IO_ERROR_CLOSED))
    return;
  g_clear_error (error);
  if (!reap (self, &status))
    g_set_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST,
                 _ ("\"%s\" for %s has hung up before it was ready"), spec->argv[0], spec->address);
  else if (WIFEXITED (status))
    g_set_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST,
                 _ ("\"%s\" for %s has exited with status %d before it was ready"), spec->argv[0],
                 spec->address, WEXITSTATUS (status));
  else
    g_set_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST,
                 _ ("\"%s\" for %s was ended by signal %d before it was ready"), spec->argv[0],
                 spec->address, WTERMSIG (status));
}

static gboolean
say_hello (PtoBridge *self, GError **error)
{
  g_autofree char *session = g_uuid_string_random ();
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GVariant) answer = NULL;
  g_auto (GVariantDict) options = G_VARIANT_DICT_INIT (NULL);
  guint32 protocol, process;

  if (!make_options (self, &options, error))
    return FALSE;
  reply = pto_bridge_call (self, "Hello",
                           g_variant_new ("(uss@a{sv})", PTO_REMOTE_PROTOCOL, session, self->path,
                                          g_variant_dict_end (&options)),
                           "(ussua{sv})", error);
  if (reply == NULL)
    {
      g_autofree char *greeting = explain_greeting (self, *error);

      if (greeting != NULL)
        {
          g_clear_error (error);
          g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED, greeting);
        }
      return FALSE;
    }
  g_variant_get (reply, "(ussu@a{sv})", &protocol, NULL, NULL, &process, &answer);
  if (protocol == PTO_REMOTE_PROTOCOL)
    {
      atomic_store_explicit (&self->traffic->process, process, memory_order_relaxed);
      self->sends_serialized = self->node->remote->sends_serialized
                               && pto_remote_has_feature (answer, PTO_REMOTE_FEATURE_SERIALIZED);
      return self->fabric == NULL || pto_remote_fabric_connect (self->fabric, answer, error);
    }
  return pto_refuse (
      error, PTO_ERROR_NOT_SUPPORTED,
      _ ("%s speaks version %u of the protocol, this is version %u: install the same libpto "
         "there"),
      self->node->remote->address, protocol, PTO_REMOTE_PROTOCOL);
}

static gboolean
start (PtoBridge *self, GError **error)
{
  g_autoptr (GPtrArray) list = NULL;
  g_autoptr (GPtrArray) below = NULL;

  self->traffic = pto_writes_traffic (*self->parent.writes, self->parent.index);
  atomic_store_explicit (&self->traffic->process, 0, memory_order_relaxed);
  if (!pto_remote_spec_launch (self->node->remote, &self->stream, &self->process, error)
      || !say_hello (self, error)
      /* What follows may take long there, and is asked for without a word in between. */
      || !look_after_connection (self, error))
    return FALSE;
  pto_machine_level_take_snapshot ((LevelMachine *) self->node->machine);
  below = pto_machine_level_list (self->node->machine, G_MAXUINT);
  for (guint i = 0; i < below->len; i++)
    {
      PtoRegistration *registration = g_ptr_array_index (below, i);
      GError *refused = NULL;

      if (pto_bridge_send_registration (self, registration, TRUE, &refused))
        continue;
      if (refused == NULL)
        refused = pto_remote_spec_make_refusal (self->node->remote, registration->name);
      g_propagate_error (error, refused);
      return FALSE;
    }
  self->directory = pto_directory_new (self->node->params->values[PTO_PARAMETER_ARENA] / KEPT_PART);
  self->read_writes = pto_writes_end (*self->parent.writes);
  list = self->parent.list (self->parent.data, self->parent.index);
  if (!pto_bridge_offer_all (self, list, error))
    return FALSE;
  pto_remote_health_begin_to_tell (self->health);
  return TRUE;
}

static void
disconnect (PtoBridge *self)
{
  int status;

  if (self->node->remote->job != NULL)
    pto_remote_job_end (self->node->remote);
  if (self->stream != NULL)
    {
      g_clear_pointer (&self->health, pto_remote_health_free);
      g_clear_pointer (&self->fabric, pto_remote_fabric_free);
      pto_remote_stream_shut (self->stream);
      g_clear_pointer (&self->stream, pto_remote_stream_free);
    }
  /* It ends when the connection does, or is no worker. */
  if (self->process == 0 || reap (self, &status) || self->process == 0)
    return;
  kill (self->process, SIGKILL);
  waitpid (self->process, NULL, 0);
  self->process = 0;
}

static void
close_far (PtoBridge *self)
{
  g_autoptr (GVariant) reply = NULL;

  if (self->stream == NULL)
    return;
  pto_remote_health_end_telling (self->health);
  reply = pto_bridge_call (self, "Close", NULL, "()", NULL);
  disconnect (self);
}

/* --- requests --- */

static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  PtoBridge *self = data;
  GError *error = NULL;
  uint32_t status = 0;

  self->call = call;
  if (self->health != NULL)
    pto_remote_health_begin_reading (self->health);
  switch (call->request)
    {
    case PTO_REQUEST_START:
      /* Its process may write no signal of a connection that is cut. */
      signal (SIGPIPE, SIG_IGN);
      if (!start (self, &error))
        {
          explain_end (self, &error);
          disconnect (self);
        }
      break;
    case PTO_REQUEST_TASK:
    case PTO_REQUEST_TASKS:
      status = pto_bridge_run_tasks (self, call, failure);
      break;
    case PTO_REQUEST_REGISTER:
      pto_bridge_register (self, call, &error);
      break;
    case PTO_REQUEST_COMMIT:
      pto_bridge_commit (self, call, &error);
      break;
    case PTO_REQUEST_UNREGISTER:
      pto_bridge_unregister (self, call);
      break;
    case PTO_REQUEST_MEMORY:
      pto_bridge_use_memory (self, call, &error);
      break;
    case PTO_REQUEST_FETCH:
      pto_bridge_fetch_left (self, call, &error);
      break;
    case PTO_REQUEST_CLOSE:
      close_far (self);
      break;
    case PTO_REQUEST_TRACE:
      /* Whoever asks for traces goes on without one. */
      if (!pto_bridge_tell_record (self, call, &error))
        g_warning ("%s", error->message);
      break;
    default:
      g_set_error (&error, PTO_ERROR, PTO_ERROR_INTERNAL, _ ("request %d is unknown to %s"),
                   (int) call->request, self->path);
    }
  if (self->health != NULL)
    pto_remote_health_end_reading (self->health);
  return error != NULL ? pto_failure_take_error (failure, error, TRUE) : status;
}

PtoBridge *
pto_bridge_new (PtoTreeNode *node, const char *path, const PtoChildParent *parent,
                GVariant *parameters, GVariant *chips)
{
  PtoBridge *self = g_new0 (PtoBridge, 1);

  self->node = node;
  g_object_ref (node->worker);
  self->path = g_strdup (path);
  self->parent = *parent;
  self->parameters = g_variant_ref_sink (parameters);
  self->chips = g_variant_ref_sink (chips);
  pto_trace_pieces_init (&self->pieces);
  self->late = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, g_free, NULL);
  self->refused = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, g_free,
                                         (GDestroyNotify) g_error_free);
  self->digests = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, g_free, g_free);
  self->collectives = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, g_free, NULL);
  return self;
}

void
pto_bridge_free (PtoBridge *self)
{
  /* Of a process that was forked it has nothing. */
  pto_trace_pieces_clear (&self->pieces);
  g_clear_pointer (&self->directory, pto_directory_free);
  pto_bridge_drop_stash (self, 0, G_MAXUINT64);
  pto_spans_clear (&self->stash);
  g_hash_table_unref (self->refused);
  g_hash_table_unref (self->late);
  g_hash_table_unref (self->digests);
  g_hash_table_unref (self->collectives);
  g_variant_unref (self->parameters);
  g_variant_unref (self->chips);
  g_object_unref (self->node->worker);
  g_free (self->path);
  g_free (self);
}

void
pto_bridge_get_server (PtoBridge *self, struct pto_server *server)
{
  server->serve = serve;
  server->data = self;
  server->probe = pto_child_probe;
}
