/* child-server.c: what does a child of a worker do with the requests of its parent?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "child-server.h"

#include "base/error.h"
#include "callable/callable.h"
#include "callable/function.h"
#include "common/text.h"
#include "compile/compiler-program.h"
#include "trace/model/trace.h"
#include "values/address-range.h"
#include "values/call-config.h"
#include "values/exception.h"
#include "values/task-args.h"
#include "worker.h"

#include <stdatomic.h>
#include <string.h>

/* Something that this child can run. Its registration is the child's own: made of bytes, and so
 * checked, also when it was inherited. */
typedef struct
{
  PtoRegistration *registration; /* its digest is the key */
  PtoCallableHandle *handle;     /* of a chip's registry; NULL: a function */
  gboolean committed;            /* all who were asked have it; before that no task of it runs */
} Target;

/* So many are remembered that are not there any more, or have not come to be: a task that comes too
 * late comes soon. */
#define TOMBSTONES_MAX 64u

/* What was to be run here, and is not. */
typedef struct
{
  char *name;
  gboolean was_committed; /* it was unregistered; FALSE: its registration was taken back */
} Tombstone;

struct _PtoChild
{
  /* Immutable. */
  PtoWorker *worker; /* owned; NULL: a SUB child */
  char *path;
  PtoChildParent parent;

  /* The serving thread's. */
  GHashTable *targets;    /* digest -> Target */
  GHashTable *tombstones; /* digest -> Tombstone */
  PtoTaskArgs *args;      /* refilled for every task */
  /* Of a worker: what it did inside of the tasks of that recorded run of its parent. */
  guint32 record;
  PtoTracePieces pieces;
  guint64 n_records; /* in them */
  PtoTrace *last;    /* the worker's last that was looked at, which it has, too */
  /* Which it is. W: it, before each task; R: whoever asks for cancellation during one. */
  pthread_t thread;

  /* W: the serving thread, with its first request, which is no task; R: whoever has a task's
   * arguments, for as long as it likes. Only its mailbox, which is the same for all. */
  struct pto_call call;
  /* Of the worker, when it was last looked at. Any thread, relaxed: that it changes counts. */
  _Atomic guint64 progress;
};

/* --- what the child can run --- */

/* Nothing is known of that digest. path: of whom it was asked. */
static void
report_unknown (const guint8 *digest, const char *path, GError **error)
{
  char text[2 * PTO_DIGEST_SIZE + 1];

  pto_digest_to_string (digest, text);
  pto_refuse (error, PTO_ERROR_NOT_FOUND, _ ("nothing with the digest %s is registered on %s"),
              text, path);
}

static void
target_free (gpointer data)
{
  Target *target = data;

  g_clear_pointer (&target->handle, pto_callable_handle_unref);
  g_clear_pointer (&target->registration, pto_registration_unref);
  g_free (target);
}

static void
tombstone_free (gpointer data)
{
  Tombstone *tombstone = data;

  g_free (tombstone->name);
  g_free (tombstone);
}

/* A task of it that comes too late is told so by its name. */
static void
bury (PtoChild *self, const guint8 *digest, const char *name, gboolean was_committed)
{
  Tombstone *tombstone = g_new (Tombstone, 1);

  tombstone->name = g_strdup (name);
  tombstone->was_committed = was_committed;
  if (g_hash_table_size (self->tombstones) >= TOMBSTONES_MAX)
    g_hash_table_remove_all (self->tombstones);
  g_hash_table_replace (self->tombstones, g_memdup2 (digest, PTO_DIGEST_SIZE), tombstone);
}

/* Can this child be asked to run it at all? */
static gboolean
concerns (PtoChild *self, const PtoRegistration *registration)
{
  PtoCallableKind kind = registration->callable->kind;

  if (self->worker == NULL)
    return kind == PTO_CALLABLE_SUB;
  return kind == (self->worker->node.level == 2 ? PTO_CALLABLE_CHIP : PTO_CALLABLE_ORCHESTRATION);
}

/* Checks and loads what bytes say. committed: no COMMIT will follow. */
static gboolean
add_target (PtoChild *self, const guint8 *digest, GBytes *descriptor, GBytes *sources,
            gboolean committed, GError **error)
{
  PtoRegistration *registration
      = pto_registration_new_from_bytes (digest, descriptor, sources, error);
  PtoCallableHandle *handle = NULL;
  Target *target;
  gboolean added;

  if (registration == NULL)
    return FALSE;
  if (registration->callable->kind == PTO_CALLABLE_CHIP)
    {
      handle = pto_worker_adopt (self->worker, registration, error);
      added = handle != NULL;
    }
  else
    added = pto_registration_resolve (registration, self->parent.import, self->parent.data, error);
  if (!added)
    {
      bury (self, digest, registration->name, FALSE);
      pto_registration_unref (registration);
      return FALSE;
    }
  target = g_new0 (Target, 1);
  target->registration = registration;
  target->handle = handle;
  target->committed = committed;
  g_hash_table_replace (self->targets, registration->digest, target);
  g_hash_table_remove (self->tombstones, registration->digest);
  return TRUE;
}

/* --- requests --- */

static gboolean
start (PtoChild *self, GError **error)
{
  g_autoptr (GPtrArray) list = NULL;

  if (self->worker != NULL && !pto_worker_bring_up (self->worker, error))
    return FALSE;
  list = self->parent.list (self->parent.data, self->parent.index);
  for (guint i = 0; i < list->len; i++)
    {
      PtoRegistration *registration = g_ptr_array_index (list, i);

      if (concerns (self, registration)
          && !add_target (self, registration->digest, registration->descriptor,
                          registration->sources, TRUE, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
add_from_call (PtoChild *self, const struct pto_call *call, GError **error)
{
  g_autoptr (GBytes) descriptor = NULL;
  g_autoptr (GBytes) sources = NULL;
  gboolean is_named;

  /* Known already when the child was begun again meanwhile: then it is so from birth. If it is
   * taken back, whoever does that sees to it that those are told, too, that were born with it. */
  if (g_hash_table_contains (self->targets, call->digest))
    return TRUE;
  if (!pto_child_unpack_registration (call->body, call->bytes, &descriptor, &sources, &is_named))
    return pto_refuse (error, PTO_ERROR_TAMPERED,
                       _ ("a registration of which only a part has arrived"));
  return add_target (self, call->digest, descriptor, sources, FALSE, error);
}

static gboolean
commit_from_call (PtoChild *self, const struct pto_call *call, GError **error)
{
  Target *target = g_hash_table_lookup (self->targets, call->digest);

  if (target != NULL)
    target->committed = TRUE;
  else
    report_unknown (call->digest, self->path, error);
  return target != NULL;
}

static void
remove_from_call (PtoChild *self, const struct pto_call *call)
{
  Target *target = g_hash_table_lookup (self->targets, call->digest);

  if (target == NULL)
    return;
  if (target->handle != NULL)
    pto_worker_unregister (self->worker, target->handle, NULL);
  bury (self, call->digest, target->registration->name, target->committed);
  g_hash_table_remove (self->targets, call->digest);
}

/* Any thread, also when the task is over: then the answer is nobody's. Whoever asks is alive; a
 * worker that only waits is so while something below it ends. A chip that makes no progress is
 * ended by itself: its own thread is enough of a sign, which may be busy with kernels for long;
 * what watches the chip asks too, which is one only while that gets on. */
static bool
is_cancelled (void *data)
{
  PtoChild *self = data;
  PtoMachine *machine = self->worker != NULL ? self->worker->node.machine : NULL;

  if (machine == NULL)
    pto_call_beat (&self->call);
  else
    {
      guint64 progress = machine->ops->get_progress (machine);

      if (atomic_exchange_explicit (&self->progress, progress, memory_order_relaxed) != progress
          || (self->worker->node.level == 2 && pthread_equal (self->thread, pthread_self ())))
        pto_call_beat (&self->call);
    }
  return pto_call_is_cancelled (&self->call);
}

/* On the thread of a task that waits for compilers, which may take long on a machine that has
 * built nothing yet: who waits for them is alive. */
static gboolean
is_wanted (gpointer data)
{
  PtoChild *self = data;

  pto_call_beat (&self->call);
  return !pto_call_is_cancelled (&self->call);
}

/* --- records --- */

static void
begin_record (PtoChild *self, guint32 record)
{
  pto_trace_pieces_clear (&self->pieces);
  pto_trace_pieces_init (&self->pieces);
  self->n_records = 0;
  self->record = record;
}

/* All runs together may leave as many records as one could. */
static void
keep_record (PtoChild *self, guint64 task)
{
  PtoTrace *trace = self->worker->node.machine->ops->get_trace (self->worker->node.machine);
  guint64 n, most;

  if (trace == NULL || trace == self->last)
    {
      /* It was refused before it began. */
      g_clear_object (&trace);
      return;
    }
  g_set_object (&self->last, trace);
  n = pto_trace_count_records (trace);
  most = self->worker->params.values[PTO_PARAMETER_TRACE_RECORDS] * trace->n_buffers;
  if (self->n_records + n > most)
    {
      self->pieces.n_left_out++;
      self->pieces.records_left_out += n + trace->dropped;
      g_object_unref (trace);
      return;
    }
  self->n_records += n;
  pto_trace_pieces_take (&self->pieces, 0, task, trace);
}

GByteArray *
pto_child_take_record (PtoChild *self)
{
  GByteArray *bytes;

  if (self->pieces.list->len == 0 && self->pieces.n_left_out == 0)
    return NULL;
  bytes = g_byte_array_new ();
  g_byte_array_set_size (bytes, (guint) pto_trace_pieces_get_packed_size (&self->pieces));
  pto_trace_pieces_pack (&self->pieces, bytes->data);
  begin_record (self, 0);
  return bytes;
}

/* It can be run on the worker that has it, and so was not refused there. */
static gboolean
check_language (const PtoRegistration *registration, GError **error)
{
  if (!pto_callable_is_javascript (registration->callable))
    return TRUE;
  return pto_refuse (
      error, PTO_ERROR_NOT_SUPPORTED,
      _ ("\"%s\" is a function of JavaScript, which no worker below can call, be it a process or a "
         "thread: an orchestration of a C library can be one "
         "(Pto.ImportedFunction.new_for_symbol())"),
      registration->name);
}

/* What a task is of; NULL: it can not be run. */
static const Target *
find_target (PtoChild *self, const guint8 *digest, GError **error)
{
  const Target *target = g_hash_table_lookup (self->targets, digest);
  const Tombstone *tombstone;

  if (target != NULL && target->committed)
    return target;
  tombstone = g_hash_table_lookup (self->tombstones, digest);
  if (target != NULL)
    pto_refuse (error, PTO_ERROR_NOT_FOUND,
                _ ("\"%s\" is not registered on %s yet: others have not agreed to it"),
                target->registration->name, self->path);
  else if (tombstone == NULL)
    report_unknown (digest, self->path, error);
  else if (tombstone->was_committed)
    pto_refuse (error, PTO_ERROR_NOT_FOUND,
                _ ("\"%s\" was unregistered on %s before this task of it came: register it "
                   "again, or unregister it later"),
                tombstone->name, self->path);
  else
    pto_refuse (error, PTO_ERROR_NOT_FOUND,
                _ ("the registration of \"%s\" was taken back on %s, since it failed somewhere: "
                   "register it again"),
                tombstone->name, self->path);
  return NULL;
}

static gboolean
run_task (PtoChild *self, const struct pto_call *call, GError **error)
{
  const Target *target = find_target (self, call->digest, error);
  g_autoptr (PtoCallConfig) config = NULL;
  guint64 task;
  guint32 record = pto_call_record (call, &task);
  gboolean ok;

  if (target == NULL || !check_language (target->registration, error))
    return FALSE;
  self->thread = pthread_self ();
  pto_task_args_set_view (self->args, &call->args);
  pto_task_args_set_kinds (self->args, call->kinds);
  pto_task_args_set_cancelled (self->args, is_cancelled, self);
  pto_compiler_ask_while_waiting (is_wanted, self);
  if (self->worker == NULL)
    ok = pto_registration_call_sub (target->registration, self->args, error);
  else
    {
      config = pto_call_config_new_from_wire (call->config);
      /* All members of a group have the same one. */
      pto_call_config_extend_prefix (config, "worker", self->worker->node.id);
      atomic_store_explicit (&self->progress, 0, memory_order_relaxed);
      if (record != 0)
        {
          if (record != self->record)
            begin_record (self, record);
          g_clear_object (&self->last);
          self->last = self->worker->node.machine->ops->get_trace (self->worker->node.machine);
        }
      ok = pto_worker_run_for_parent (self->worker, target->handle, target->registration,
                                      self->args, config, PTO_RECORD_LEVEL (record), is_cancelled,
                                      self, error);
      if (record != 0)
        keep_record (self, task);
    }
  pto_compiler_ask_while_waiting (NULL, NULL);
  pto_task_args_set_cancelled (self->args, NULL, NULL);
  /* A function may have kept them: then it keeps its own, without a life line into the mailbox. */
  if (pto_task_args_is_shared (self->args))
    {
      pto_task_args_unref (self->args);
      self->args = pto_task_args_new ();
    }
  return ok;
}

static uint32_t
serve (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  PtoChild *self = data;
  GError *error = NULL;

  switch (call->request)
    {
    case PTO_REQUEST_START:
      self->call.mailbox = call->mailbox;
      start (self, &error);
      break;
    case PTO_REQUEST_TASK:
      run_task (self, call, &error);
      break;
    case PTO_REQUEST_REGISTER:
      add_from_call (self, call, &error);
      break;
    case PTO_REQUEST_COMMIT:
      commit_from_call (self, call, &error);
      break;
    case PTO_REQUEST_UNREGISTER:
      remove_from_call (self, call);
      break;
    case PTO_REQUEST_TRACE:
      if (pto_child_tell_pieces (call, self->worker->node.number, &self->pieces))
        begin_record (self, 0);
      break;
    case PTO_REQUEST_CLOSE:
      begin_record (self, 0);
      g_clear_object (&self->last);
      g_hash_table_remove_all (self->targets);
      g_hash_table_remove_all (self->tombstones);
      /* A thread child's worker may be brought up once more. */
      if (self->worker != NULL)
        pto_worker_take_down (self->worker, PTO_WORKER_STATE_NEW, FALSE);
      break;
    default:
      pto_refuse (&error, PTO_ERROR_INTERNAL, _ ("request %d is unknown to %s"),
                  (int) call->request, self->path);
    }
  if (error != NULL)
    {
      /* Of a task it is the function's own; of everything else, why this child can not have it. */
      if (error->domain != PTO_ERROR && pto_error_get_status (error) == 0
          && call->request != PTO_REQUEST_TASK)
        {
          GError *load = g_error_new_literal (PTO_ERROR, PTO_ERROR_LOAD, error->message);

          /* Its domain frees what it has inside: it can not become another's. */
          g_error_free (error);
          error = load;
        }
      if (error->domain == PTO_ERROR && error->code <= 0 && call->request == PTO_REQUEST_TASK)
        error->code = PTO_ERROR_TASK_FAILED;
    }
  return pto_failure_take_error (failure, error, !self->parent.is_far);
}

PtoChild *
pto_child_new (PtoWorker *worker, const char *path, const PtoChildParent *parent)
{
  PtoChild *self = g_new0 (PtoChild, 1);

  self->worker = worker != NULL ? g_object_ref (worker) : NULL;
  self->path = g_strdup (path);
  self->parent = *parent;
  self->targets = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, NULL, target_free);
  self->tombstones
      = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, g_free, tombstone_free);
  self->args = pto_task_args_new ();
  pto_trace_pieces_init (&self->pieces);
  return self;
}

void
pto_child_free (PtoChild *self)
{
  pto_trace_pieces_clear (&self->pieces);
  g_clear_object (&self->last);
  g_hash_table_unref (self->targets);
  g_hash_table_unref (self->tombstones);
  pto_task_args_unref (self->args);
  g_clear_object (&self->worker);
  g_free (self->path);
  g_free (self);
}

void
pto_child_get_server (PtoChild *self, struct pto_server *server)
{
  server->serve = serve;
  server->data = self;
  server->probe = pto_child_probe;
}
