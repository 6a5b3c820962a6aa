/* pto-remote-child.c: what does the process behind a remote worker's mailbox do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-remote-child-private.h"

#include "pto-callable-private.h"
#include "pto-error-private.h"
#include "pto-exception-private.h"
#include "pto-function-private.h"
#include "pto-identity-private.h"
#include "pto-remote-directory-private.h"
#include "pto-remote-health-private.h"
#include "pto-text-private.h"
#include "pto-trace-private.h"
#include "pto-worker-private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

/* While an answer is waited for: so often it is looked whether it is still wanted, and asked for a
 * sign of life. */
#define LOOK_MS 10
#define PROGRESS_US 100000
/* So long is waited for the end of what was launched, once it is told. */
#define END_MS 1000
/* How often the other clock is asked: the fastest answer says most. */
#define CLOCK_ROUNDS 8
/* Of the memory at the other end, for blocks that no task needs just now: the rest is for tasks. */
#define KEPT_PART 2u
/* More of a record is nobody's that the parameter trace-records allows. */
#define RECORD_BYTES_MAX (G_GUINT64_CONSTANT (1) << 31)

struct _PtoRemoteChild
{
  /* Immutable. */
  PtoWorker *worker; /* owned */
  char *path;
  PtoChildParent parent;
  GPtrArray *(*list_own) (PtoMachine *machine);
  struct pto_writes *writes; /* set before the fork, with index */
  guint index;               /* of the child */

  /* The serving thread's. */
  PtoRemoteStream *stream; /* NULL: not connected */
  GPid process;            /* that was launched; 0: none */
  GHashTable *refused;     /* digest -> GError: why a function of this process can not be there */
  GHashTable *digests;     /* of what was sent -> that by which the other end knows it */
  PtoRemoteDirectory *directory; /* of what is there; NULL: not connected */
  guint64 read_writes;           /* so far the log was read */
  struct pto_traffic *traffic;
  guint32 progress;        /* of the other end, as it was told last */
  guint32 record;          /* of the tasks that were run last; 0: of none, or it was told */
  gboolean has_pieces;     /* that record was fetched */
  PtoTracePieces pieces;   /* of it */
  PtoRemoteHealth *health; /* of the connection; NULL: not connected */
  struct pto_call birth;   /* START: of the mailbox. W: before there is health; R: its thread */
  int ending;              /* atomic: somebody ends the process. W, R: both threads */
};

/* Relaxed: a count. */
static void
count (_Atomic uint64_t *counter, guint64 n)
{
  atomic_fetch_add_explicit (counter, n, memory_order_relaxed);
}

/* --- the connection --- */

/* A connection that is lost was a worker: this process is nobody without it. Its last words say
 * what its death was. */
static _Noreturn void
end_with_connection (PtoRemoteChild *self, const GError *error)
{
  /* The other thread is about to. */
  while (!g_atomic_int_compare_and_exchange (&self->ending, FALSE, TRUE))
    pause ();
  fprintf (stderr, _ ("%s: the remote worker at %s is lost: %s\n"), self->path,
           self->worker->remote->address, error->message);
  fflush (stderr);
  _exit (EX_UNAVAILABLE);
}

/* "L4/0/L3/1: ssh://one: ", so that nobody has to ask which it is. */
static void
say (PtoRemoteChild *self, const char *what)
{
  fprintf (stderr, "%s: %s: %s\n", self->path, self->worker->remote->address, what);
  fflush (stderr);
}

/* Of the other end, on the thread that looks after the connection. */
static void
take_sign (gpointer data, PtoRemoteSign sign, guint64 ms)
{
  PtoRemoteChild *self = data;
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;

  switch (sign)
    {
    case PTO_REMOTE_SIGN_SILENT:
      text = g_strdup_printf (
          _ ("nothing is heard of it for %" PRIu64 " ms (remote-suspect): it gets no new task"),
          ms);
      say (self, text);
      count (&self->traffic->silences, 1);
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
  end_with_connection (self, error);
}

static guint
get_ms (PtoRemoteChild *self, enum pto_param param)
{
  return (guint) self->worker->params.values[param];
}

static void
look_after_connection (PtoRemoteChild *self, const struct pto_call *call)
{
  PtoRemoteHealthConfig config = { .ping_ms = get_ms (self, PTO_PARAMETER_REMOTE_PING),
                                   .suspect_ms = get_ms (self, PTO_PARAMETER_REMOTE_SUSPECT),
                                   .lease_ms = get_ms (self, PTO_PARAMETER_REMOTE_LEASE),
                                   .tell = take_sign,
                                   .data = self };

  self->birth = *call;
  self->health = pto_remote_health_new (self->stream, &config);
}

/* --- calls --- */

/* As a call under way sees itself. */
typedef struct
{
  const struct pto_call *call;
  guint32 serial;          /* of the message that is to be answered */
  guint32 progress_serial; /* of the last question for progress; 0: it was answered */
  gint64 asked_at;
  gboolean cancelled; /* and has said so */
} Waiting;

/* While it is waited: is it still wanted, does the other end get on? */
static gboolean
look_after (PtoRemoteChild *self, Waiting *waiting, GError **error)
{
  gint64 now = g_get_monotonic_time ();
  g_autoptr (GDBusMessage) message = NULL;

  if (!waiting->cancelled && pto_call_is_cancelled (waiting->call))
    {
      waiting->cancelled = TRUE;
      message = pto_remote_make_call ("Cancel", NULL, FALSE);
      return pto_remote_stream_send (self->stream, message, NULL, error);
    }
  if (waiting->progress_serial != 0 || now - waiting->asked_at < PROGRESS_US)
    return TRUE;
  waiting->asked_at = now;
  message = pto_remote_make_call ("Progress", NULL, TRUE);
  return pto_remote_stream_send (self->stream, message, &waiting->progress_serial, error);
}

static void
take_progress (PtoRemoteChild *self, Waiting *waiting, GDBusMessage *reply)
{
  GVariant *body = g_dbus_message_get_body (reply);
  guint32 progress;

  waiting->progress_serial = 0;
  if (body == NULL || !g_variant_is_of_type (body, G_VARIANT_TYPE ("(u)")))
    return;
  g_variant_get (body, "(u)", &progress);
  if (progress != self->progress)
    pto_call_beat (waiting->call);
  self->progress = progress;
}

/* The reply of a call, whose type is that of its body; NULL: it was refused. Does not return when
 * the connection is lost, unless it has not served yet (call is NULL). */
static GVariant *
call_far (PtoRemoteChild *self, const struct pto_call *call, const char *method,
          GVariant *arguments, const char *type, GError **error)
{
  g_autoptr (GDBusMessage) message = pto_remote_make_call (method, arguments, TRUE);
  Waiting waiting = { .call = call, .asked_at = g_get_monotonic_time () };
  GError *lost = NULL;

  if (!pto_remote_stream_send (self->stream, message, &waiting.serial, &lost))
    goto lost;
  for (;;)
    {
      g_autoptr (GDBusMessage) reply = pto_remote_stream_receive (
          self->stream, call->request == PTO_REQUEST_START ? -1 : LOOK_MS, &lost);
      guint32 serial = reply != NULL ? g_dbus_message_get_reply_serial (reply) : 0;
      GVariant *body;

      if (lost != NULL)
        break;
      if (serial != 0 && serial == waiting.progress_serial)
        take_progress (self, &waiting, reply);
      if (serial != waiting.serial)
        {
          if (call->request != PTO_REQUEST_START && !look_after (self, &waiting, &lost))
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
  if (call->request != PTO_REQUEST_START)
    end_with_connection (self, lost);
  g_propagate_error (error, lost);
  return NULL;
}

/* data (or NULL): what follows the message. */
static void
tell_far (PtoRemoteChild *self, const char *method, GVariant *arguments, gconstpointer data,
          gsize size)
{
  g_autoptr (GDBusMessage) message = pto_remote_make_call (method, arguments, FALSE);
  g_autoptr (GError) error = NULL;

  if (!pto_remote_stream_send_with (self->stream, message, data, size, NULL, &error))
    end_with_connection (self, error);
}

/* --- what it can run --- */

static gboolean
send_contents (PtoRemoteChild *self, const struct pto_call *call, const char *path,
               const guint8 *digest, GError **error)
{
  g_autofree char *data = NULL;
  gsize size;
  gsize at = 0;

  if (!g_file_get_contents (path, &data, &size, error))
    return FALSE;
  do
    {
      gsize n = MIN (size - at, PTO_REMOTE_INLINE_BYTES);
      g_autoptr (GVariant) reply
          = call_far (self, call, "Content",
                      g_variant_new ("(@ay@ayb)", pto_remote_make_bytes (digest, PTO_DIGEST_SIZE),
                                     pto_remote_make_bytes (data + at, n), at + n == size),
                      "()", error);

      if (reply == NULL)
        return FALSE;
      at += n;
      /* It has taken another part: that is a sign of life. */
      pto_call_beat (call);
    }
  while (at < size);
  return TRUE;
}

/* Those that the other end has not, by their digests: each is sent once, to whoever asks. */
static gboolean
send_missing (PtoRemoteChild *self, const struct pto_call *call,
              const PtoRegistration *registration, GError **error)
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
  reply = call_far (self, call, "Has", g_variant_new ("(aay)", &digests), "(ab)", error);
  if (reply == NULL)
    return FALSE;
  there = g_variant_get_child_value (reply, 0);
  for (guint i = 0; i < registration->objects->len; i++)
    {
      gboolean is_there = FALSE;

      if (i < g_variant_n_children (there))
        g_variant_get_child (there, i, "b", &is_there);
      if (!is_there
          && !send_contents (self, call, g_ptr_array_index (registration->objects, i),
                             registration->contents->data + i * PTO_DIGEST_SIZE, error))
        return FALSE;
    }
  return TRUE;
}

/* A function of this process is there what it is imported by; NULL: nothing is known of that. */
static PtoRegistration *
make_importable (PtoRemoteChild *self, const PtoRegistration *registration, GError **error)
{
  const PtoClosure *closure = pto_callable_get_closure (registration->callable);
  g_autoptr (PtoCallable) callable = NULL;

  if (closure->import_path == NULL)
    return NULL;
  callable = pto_imported_function_new (registration->callable->kind, closure->import_path, error);
  if (callable == NULL)
    return NULL;
  pto_callable_set_name (callable, registration->name);
  return pto_registration_new (callable, self->worker->platform, FALSE, NULL, NULL, NULL, error);
}

static gboolean
send_bytes (PtoRemoteChild *self, const struct pto_call *call, const PtoRegistration *registration,
            gboolean below, GError **error)
{
  g_autoptr (GVariant) reply = NULL;
  gconstpointer descriptor, sources;
  gsize descriptor_size, sources_size;

  if (!send_missing (self, call, registration, error))
    return FALSE;
  descriptor = g_bytes_get_data (registration->descriptor, &descriptor_size);
  sources = g_bytes_get_data (registration->sources, &sources_size);
  reply = call_far (self, call, "Register",
                    g_variant_new ("(@ay@ay@ayb)",
                                   pto_remote_make_bytes (registration->digest, PTO_DIGEST_SIZE),
                                   pto_remote_make_bytes (descriptor, descriptor_size),
                                   pto_remote_make_bytes (sources, sources_size), below),
                    "()", error);
  return reply != NULL;
}

static GError *
make_refusal (PtoRemoteChild *self, const char *name)
{
  return g_error_new (
      PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
      _ ("\"%s\" is a function of this process, which %s can not be sent: register "
         "what it imports (module:qualname) or loads (library:symbol), or say which "
         "worker is to run it"),
      name, self->worker->remote->address);
}

/* FALSE without an error: it can not be sent. */
static gboolean
send_registration (PtoRemoteChild *self, const struct pto_call *call, PtoRegistration *registration,
                   gboolean below, GError **error)
{
  PtoRegistration *sent = registration->callable->source == PTO_CALLABLE_SOURCE_CLOSURE
                              ? make_importable (self, registration, error)
                              : pto_registration_ref (registration);
  gboolean ok;

  if (sent == NULL)
    return FALSE;
  ok = send_bytes (self, call, sent, below, error);
  if (ok)
    g_hash_table_replace (self->digests, g_memdup2 (registration->digest, PTO_DIGEST_SIZE),
                          g_memdup2 (sent->digest, PTO_DIGEST_SIZE));
  pto_registration_unref (sent);
  return ok;
}

/* For its own tasks. A function of this process may be somebody else's to run: when it can not be
 * there, whether it has a path or not, its tasks are refused, and not all that it is registered
 * with. */
static gboolean
offer (PtoRemoteChild *self, const struct pto_call *call, PtoRegistration *registration,
       GError **error)
{
  GError *refused = NULL;

  if (send_registration (self, call, registration, FALSE, &refused))
    return TRUE;
  if (refused != NULL && registration->callable->source != PTO_CALLABLE_SOURCE_CLOSURE)
    {
      g_propagate_error (error, refused);
      return FALSE;
    }
  g_hash_table_replace (self->refused, g_memdup2 (registration->digest, PTO_DIGEST_SIZE),
                        refused != NULL ? refused : make_refusal (self, registration->name));
  return TRUE;
}

static gboolean
add_from_call (PtoRemoteChild *self, const struct pto_call *call, GError **error)
{
  g_autoptr (GBytes) descriptor = NULL;
  g_autoptr (GBytes) sources = NULL;
  PtoRegistration *registration;
  gboolean ok;

  if (g_hash_table_contains (self->digests, call->digest))
    return TRUE;
  if (!pto_child_unpack_registration (call->body, call->bytes, &descriptor, &sources))
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_TAMPERED,
                           _ ("a registration of which only a part has arrived"));
      return FALSE;
    }
  registration = pto_registration_new_from_bytes (call->digest, descriptor, sources, error);
  if (registration == NULL)
    return FALSE;
  ok = offer (self, call, registration, error);
  pto_registration_unref (registration);
  return ok;
}

/* A function and what is imported by its path are one there. */
static gboolean
is_shared (PtoRemoteChild *self, const guint8 *digest, const guint8 *there)
{
  GHashTableIter iter;
  gpointer other, others;

  g_hash_table_iter_init (&iter, self->digests);
  while (g_hash_table_iter_next (&iter, &other, &others))
    if (!pto_digest_equal (other, digest) && pto_digest_equal (others, there))
      return TRUE;
  return FALSE;
}

static void
remove_from_call (PtoRemoteChild *self, const struct pto_call *call)
{
  const guint8 *there = g_hash_table_lookup (self->digests, call->digest);
  g_autoptr (GVariant) reply = NULL;

  if (there != NULL && !is_shared (self, call->digest, there))
    reply = call_far (self, call, "Unregister",
                      g_variant_new ("(@ay)", pto_remote_make_bytes (there, PTO_DIGEST_SIZE)), "()",
                      NULL);
  g_hash_table_remove (self->digests, call->digest);
  g_hash_table_remove (self->refused, call->digest);
}

/* --- start and end --- */

static GVariant *
make_options (PtoRemoteChild *self)
{
  PtoWorker *worker = self->worker;
  GVariantBuilder options, chips;

  g_variant_builder_init (&chips, G_VARIANT_TYPE ("aa{ss}"));
  for (guint i = 0; i < worker->remote->n_devices; i++)
    g_variant_builder_add_value (&chips,
                                 pto_worker_pack_parameters (pto_worker_get_child (worker, i)));
  g_variant_builder_init (&options, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&options, "{sv}", "level", g_variant_new_uint32 (worker->level));
  g_variant_builder_add (&options, "{sv}", "id", g_variant_new_uint32 (worker->id));
  g_variant_builder_add (&options, "{sv}", "generation",
                         g_variant_new_uint32 (pto_writes_begin_life (self->writes, self->index)));
  g_variant_builder_add (&options, "{sv}", "features", g_variant_new_strv (NULL, 0));
  g_variant_builder_add (&options, "{sv}", "platform", g_variant_new_string (worker->platform));
  g_variant_builder_add (&options, "{sv}", "sub-workers",
                         g_variant_new_uint32 (worker->n_sub_workers));
  g_variant_builder_add (&options, "{sv}", "parameters", pto_worker_pack_parameters (worker));
  /* One for each chip. */
  g_variant_builder_add (&options, "{sv}", "chips", g_variant_builder_end (&chips));
  return g_variant_builder_end (&options);
}

/* What was launched has ended, with that status; FALSE: not within so long, or nobody knows. */
static gboolean
reap (PtoRemoteChild *self, int *status)
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

/* What launching it came to, when it never said a word: that of the program, if it has ended. */
static void
explain_end (PtoRemoteChild *self, GError **error)
{
  const PtoRemoteSpec *spec = self->worker->remote;
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
say_hello (PtoRemoteChild *self, const struct pto_call *call, GError **error)
{
  g_autofree char *session = g_uuid_string_random ();
  g_autoptr (GVariant) reply = call_far (
      self, call, "Hello",
      g_variant_new ("(uss@a{sv})", PTO_REMOTE_PROTOCOL, session, self->path, make_options (self)),
      "(ussua{sv})", error);
  guint32 protocol;

  if (reply == NULL)
    {
      explain_end (self, error);
      return FALSE;
    }
  g_variant_get_child (reply, 0, "u", &protocol);
  if (protocol == PTO_REMOTE_PROTOCOL)
    return TRUE;
  g_set_error (
      error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
      _ ("%s speaks version %u of the protocol, this is version %u: install the same libpto "
         "there"),
      self->worker->remote->address, protocol, PTO_REMOTE_PROTOCOL);
  return FALSE;
}

static gboolean
start (PtoRemoteChild *self, const struct pto_call *call, GError **error)
{
  g_autoptr (GPtrArray) list = NULL;
  g_autoptr (GPtrArray) below = NULL;

  if (!pto_remote_spec_launch (self->worker->remote, &self->stream, &self->process, error)
      || !say_hello (self, call, error))
    return FALSE;
  self->traffic = pto_writes_traffic (self->writes, self->index);
  /* What follows may take long there, and is asked for without a word in between. */
  look_after_connection (self, call);
  below = self->list_own (self->worker->machine);
  for (guint i = 0; i < below->len; i++)
    {
      PtoRegistration *registration = g_ptr_array_index (below, i);
      GError *refused = NULL;

      if (send_registration (self, call, registration, TRUE, &refused))
        continue;
      if (refused == NULL)
        refused = make_refusal (self, registration->name);
      g_propagate_error (error, refused);
      return FALSE;
    }
  self->directory
      = pto_remote_directory_new (self->worker->params.values[PTO_PARAMETER_ARENA] / KEPT_PART);
  self->read_writes = pto_writes_end (self->writes);
  list = self->parent.list (self->parent.data);
  for (guint i = 0; i < list->len; i++)
    {
      PtoRegistration *registration = g_ptr_array_index (list, i);

      if (registration->callable->kind == PTO_CALLABLE_ORCHESTRATION
          && !offer (self, call, registration, error))
        return FALSE;
    }
  pto_remote_health_begin_to_tell (self->health);
  return TRUE;
}

static void
disconnect (PtoRemoteChild *self)
{
  int status;

  if (self->stream != NULL)
    {
      g_clear_pointer (&self->health, pto_remote_health_free);
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
close_far (PtoRemoteChild *self, const struct pto_call *call)
{
  g_autoptr (GVariant) reply = NULL;

  if (self->stream == NULL)
    return;
  pto_remote_health_end_telling (self->health);
  reply = call_far (self, call, "Close", NULL, "()", NULL);
  disconnect (self);
}

/* --- tasks --- */

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
      tell_far (self, "Put", g_variant_new ("(ttt)", block->number, at - block->begin, n),
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
  count (&self->traffic->sent, bytes);
  count (&self->traffic->saved, piece->end - piece->begin - bytes);
  return pto_remote_directory_list_missing (piece->block, piece->begin, piece->end);
}

static gboolean
put_pieces (PtoRemoteChild *self, const struct pto_call *call, const GArray *pieces, GError **error)
{
  GVariant *dropped = make_dropped (self);

  tell_far (self, "Begin", g_variant_new ("(@at@a(tt))", dropped, make_begun (self)), NULL, 0);
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
  g_autoptr (GVariant) reply
      = call_far (self, call, "Get", g_variant_new ("(ttt)", block, offset, bytes), "(t)", error);
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
    end_with_connection (self, lost);
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
      count (&self->traffic->received, bytes);
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

/* --- records --- */

static void
begin_record (PtoRemoteChild *self, guint32 record)
{
  pto_trace_pieces_clear (&self->pieces);
  pto_trace_pieces_init (&self->pieces);
  self->has_pieces = FALSE;
  self->record = record;
}

/* How far the other machine's clock is ahead of ours: it was read between two looks at ours, of
 * which nobody knows more. What is wrong by that is less than the fastest answer took, and no run
 * is drawn outside of its task (pto-trace-tree.c). */
static gboolean
compare_clocks (PtoRemoteChild *self, const struct pto_call *call, gint64 *ahead, GError **error)
{
  guint64 fastest = G_MAXUINT64;

  for (guint i = 0; i < CLOCK_ROUNDS; i++)
    {
      guint64 before = pto_remote_get_time ();
      g_autoptr (GVariant) reply = call_far (self, call, "Clock", NULL, "(t)", error);
      guint64 after = pto_remote_get_time ();
      guint64 there;

      if (reply == NULL)
        return FALSE;
      g_variant_get (reply, "(t)", &there);
      if (after - before >= fastest)
        continue;
      fastest = after - before;
      *ahead = (gint64) (there - (before + fastest / 2));
    }
  return TRUE;
}

static gboolean
fetch_record (PtoRemoteChild *self, const struct pto_call *call, GByteArray *bytes, GError **error)
{
  guint64 total = 0;

  do
    {
      g_autoptr (GVariant) reply = call_far (
          self, call, "Trace", g_variant_new ("(t)", (guint64) bytes->len), "(tay)", error);
      g_autoptr (GVariant) part = NULL;
      gconstpointer data;
      gsize size;

      if (reply == NULL)
        return FALSE;
      g_variant_get (reply, "(t@ay)", &total, &part);
      data = g_variant_get_fixed_array (part, &size, 1);
      if (total > RECORD_BYTES_MAX || size > total - MIN (total, bytes->len)
          || (size == 0 && bytes->len < total))
        {
          g_set_error (
              error, PTO_ERROR, PTO_ERROR_INTERNAL,
              _ ("the remote worker at %s has sent no record of its runs that could be read"),
              self->worker->remote->address);
          return FALSE;
        }
      g_byte_array_append (bytes, data, (guint) size);
      pto_call_beat (call);
    }
  while (bytes->len < total);
  return TRUE;
}

static gboolean
fetch_pieces (PtoRemoteChild *self, const struct pto_call *call, GError **error)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  gint64 ahead = 0;

  self->has_pieces = TRUE;
  if (!compare_clocks (self, call, &ahead, error) || !fetch_record (self, call, bytes, error))
    return FALSE;
  if (bytes->len > 0
      && !pto_trace_pieces_unpack (&self->pieces, self->worker->id, bytes->data, bytes->len))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INTERNAL,
                   _ ("the remote worker at %s has sent no record of its runs that could be read"),
                   self->worker->remote->address);
      return FALSE;
    }
  pto_trace_pieces_set_back (&self->pieces, ahead);
  return TRUE;
}

/* As a child whose memory is shared would. */
static gboolean
tell_record (PtoRemoteChild *self, const struct pto_call *call, GError **error)
{
  if (self->record == 0 || self->stream == NULL)
    return TRUE;
  if (!self->has_pieces && !fetch_pieces (self, call, error))
    return FALSE;
  if (pto_child_tell_pieces (call, self->worker->id, &self->pieces))
    begin_record (self, 0);
  return TRUE;
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
  return call_far (
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

static guint32
run_task (PtoRemoteChild *self, const struct pto_call *call, struct pto_failure *failure,
          GError **error)
{
  const GError *refused = g_hash_table_lookup (self->refused, call->digest);
  g_autoptr (GArray) pieces = NULL;
  g_autoptr (GVariant) reply = NULL;
  guint64 id;
  guint32 record = pto_call_record (call, &id);
  guint32 status = 0;
  gboolean came_back = FALSE;

  if (record != 0 && record != self->record)
    begin_record (self, record);
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

/* --- requests --- */

static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  PtoRemoteChild *self = data;
  GError *error = NULL;
  uint32_t status = 0;

  if (self->health != NULL)
    pto_remote_health_begin_reading (self->health);
  switch (call->request)
    {
    case PTO_REQUEST_START:
      /* Its process may write no signal of a connection that is cut. */
      signal (SIGPIPE, SIG_IGN);
      if (!start (self, call, &error))
        disconnect (self);
      break;
    case PTO_REQUEST_TASK:
      status = run_task (self, call, failure, &error);
      break;
    case PTO_REQUEST_REGISTER:
      add_from_call (self, call, &error);
      break;
    case PTO_REQUEST_UNREGISTER:
      remove_from_call (self, call);
      break;
    case PTO_REQUEST_CLOSE:
      close_far (self, call);
      break;
    case PTO_REQUEST_TRACE:
      /* Whoever asks for traces goes on without one. */
      if (!tell_record (self, call, &error))
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

PtoRemoteChild *
pto_remote_child_new (PtoWorker *worker, const char *path, const PtoChildParent *parent,
                      GPtrArray *(*list_own) (PtoMachine *machine))
{
  PtoRemoteChild *self = g_new0 (PtoRemoteChild, 1);

  self->worker = g_object_ref (worker);
  self->path = g_strdup (path);
  self->parent = *parent;
  self->list_own = list_own;
  pto_trace_pieces_init (&self->pieces);
  self->refused = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, g_free,
                                         (GDestroyNotify) g_error_free);
  self->digests = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, g_free, g_free);
  return self;
}

void
pto_remote_child_free (PtoRemoteChild *self)
{
  /* Of a process that was forked it has nothing. */
  pto_trace_pieces_clear (&self->pieces);
  g_clear_pointer (&self->directory, pto_remote_directory_free);
  g_hash_table_unref (self->refused);
  g_hash_table_unref (self->digests);
  g_object_unref (self->worker);
  g_free (self->path);
  g_free (self);
}

void
pto_remote_child_set_writes (PtoRemoteChild *self, struct pto_writes *writes, guint index)
{
  self->writes = writes;
  self->index = index;
}

void
pto_remote_child_get_server (PtoRemoteChild *self, struct pto_server *server)
{
  server->serve = serve;
  server->data = self;
  server->probe = pto_child_probe;
}
