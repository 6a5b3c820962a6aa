/* machine-isolated.c: how is a chip in a process of its own the machine behind a worker?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Its child is begun when it is first needed, by a registration or by start(), and again by the run
 * after one in which it has died. What a kernel does there ends the child and nothing else; the
 * notes that cores keep in shared memory say whose kernel it was.
 *
 * Buffers and device memory lie in the arena, which both map. Device memory is the parent's, so
 * that it outlives the child. Other memory is copied for a run (../process/staging.h).
 */
#include "config.h"

#include "machine-isolated.h"

#include "base/error.h"
#include "base/log.h"
#include "callable/callable.h"
#include "callable/chip-orchestration.h"
#include "common/json.h"
#include "common/text.h"
#include "trace/model/trace.h"
#include "values/call-config.h"
#include "values/run-statistics.h"
#include "values/task-args.h"
#include "values/tensor.h"
#include "machine-state.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS G_GUINT64_CONSTANT (1000000)
/* How long an answer is looked for before the thread sleeps: about what a wake-up costs. */
#define SPIN_NS 50000u
/* Between two looks around of a thread that waits, also for a cancellable. */
#define LOOK_NS (10 * MS)
/* For the child's number. */
#define TELL_TRIES 50u
#define TELL_PAUSE_US 1000u
/* Between two looks at the cores' notes. */
#define NOTES_NS (100 * MS)
/* A run that was cancelled has so long to end by itself. */
#define GRACE_NS (50 * MS)
/* What the chip's own watcher could not end by then, the end of the process does. */
#define MARGIN_NS (1000 * MS)
/* Requests other than runs have so much more time than the timeout. */
#define SLOW_NS (3000 * MS)
/* Running kernels that a message names. */
#define NAMED_MAX 8u

/* --- the child's life; under control --- */

static pid_t
fork_child (void *data)
{
  IsolatedMachine *self = data;

  return pto_tree_node_fork (self->parent.node);
}

static gboolean
make_solo (IsolatedMachine *self, GError **error)
{
  g_autofree char *path = pto_tree_node_dup_path (self->parent.node);
  struct pto_solo_config config = { .path = path,
                                    .fork = fork_child,
                                    .fork_data = self,
                                    .bytes = sizeof (IsolatedShared) + 64 + pto_stream_size (),
                                    .arena = self->parent.params->values[PTO_PARAMETER_ARENA] };
  struct pto_report report = { 0 };

  for (guint lane = 0; lane < PTO_SOLO_LANES; lane++)
    pto_isolated_child_get_server (&self->child, lane, &config.servers[lane]);
  self->solo = pto_solo_new (&config, &report);
  if (self->solo == NULL)
    return pto_error_set_from_report (error, PTO_STATUS_SYSTEM, &report);
  self->child.node = self->parent.node;
  self->child.solo = self->solo;
  self->shared = pto_solo_memory (self->solo);
  return TRUE;
}

/* "its process died (signal 11, Segmentation fault): what it wrote last" */
static char *
describe_death (IsolatedMachine *self)
{
  char how[256];
  char words[512];

  pto_solo_describe (self->solo, how, sizeof how, words, sizeof words);
  return words[0] != '\0' ? g_strdup_printf (_ ("%s; it wrote last: %s"), how, words)
                          : g_strdup (how);
}

/* May the child be ended for this? Not with a run that is wanted: it is waited for then. Under
 * control. */
static gboolean
is_given_up (IsolatedMachine *self, GCancellable *cancellable)
{
  return g_cancellable_is_cancelled (cancellable)
         && (self->run == NULL || self->run->is_unwanted (self->run->data));
}

gboolean
pto_isolated_post (IsolatedMachine *self, guint lane, enum pto_request request,
                   const guint8 *digest, const GByteArray *body, guint64 *far, GError **error)
{
  gsize size = body != NULL ? body->len : 0;

  *far = 0;
  if (size > PTO_SOLO_BODY && (*far = pto_arena_alloc (size)) == 0)
    return pto_refuse (error, PTO_ERROR_NO_MEMORY,
                       _ ("no room for a request of %zu bytes: set arena to more"), size);
  if (size > 0)
    memcpy (*far != 0 ? (gpointer) (guintptr) *far : pto_solo_body (self->solo, lane), body->data,
            size);
  if (digest != NULL)
    memcpy (pto_solo_digest (self->solo, lane), digest, PTO_DIGEST_SIZE);
  pto_solo_post (self->solo, lane, request, *far, (guint) size);
  return TRUE;
}

/* Waits for an answer on the lane. cancelled: it was not wanted, and has ended the child. */
static enum pto_solo_event
await (IsolatedMachine *self, guint lane, GCancellable *cancellable, gboolean *cancelled)
{
  guint64 timeout = self->parent.params->values[PTO_PARAMETER_TIMEOUT] * MS;
  guint64 passed = 0, before;
  enum pto_solo_event event;

  *cancelled = FALSE;
  do
    {
      if (!*cancelled && is_given_up (self, cancellable))
        {
          *cancelled = TRUE;
          pto_solo_kill (self->solo, _ ("what it was doing was cancelled"));
        }
      else if (!*cancelled && passed > timeout + timeout / 4 + SLOW_NS)
        pto_solo_kill (self->solo, _ ("it did not answer within the timeout"));
      before = pto_solo_clock ();
      event = pto_solo_wait (self->solo, lane, pto_solo_listen (self->solo, lane), 0,
                             before + LOOK_NS);
      /* No look is more: where this process was not let run, nor was the child. */
      passed += MIN (pto_solo_clock () - before, LOOK_NS);
    }
  while (event == PTO_SOLO_LOOK);
  return event;
}

gboolean
pto_isolated_ask (IsolatedMachine *self, guint lane, enum pto_request request, const guint8 *digest,
                  const GByteArray *body, const char *what, GCancellable *cancellable,
                  GError **error)
{
  struct pto_failure failure = { 0 };
  enum pto_solo_event event;
  gboolean cancelled;
  guint64 far;

  if (!pto_isolated_post (self, lane, request, digest, body, &far, error))
    {
      g_prefix_error (error, "%s: ", what);
      return FALSE;
    }
  event = await (self, lane, cancellable, &cancelled);
  if (far != 0)
    pto_arena_free (far, body->len);
  if (cancelled)
    {
      pto_error_set_if_cancelled (cancellable, error);
      return FALSE;
    }
  if (event == PTO_SOLO_DIED)
    {
      g_autofree char *how = describe_death (self);

      return pto_refuse (error, PTO_ERROR_WORKER_LOST, _ ("%s: the chip's process %s"), what, how);
    }
  if (pto_solo_answer (self->solo, lane, &failure) == 0)
    return TRUE;
  pto_failure_propagate (&failure, error);
  return FALSE;
}

/* Returns the callable, or the kernel that an object of it is. */
static PtoCallable *
get_part (PtoRegistration *registration, guint object)
{
  return object == 0 ? registration->callable
                     : g_array_index (PTO_CHIP_ORCHESTRATION (registration->callable)->kernels,
                                      PtoChipKernel, object - 1)
                           .kernel;
}

static GByteArray *
pack (PtoRegistration *registration)
{
  g_autoptr (GBytes) packed
      = pto_child_pack_registration (registration->descriptor, registration->sources, FALSE);
  IsolatedRegister head = { registration->index, registration->objects->len };
  GByteArray *body = g_byte_array_new ();

  g_byte_array_append (body, (const guint8 *) &head, sizeof head);
  for (guint i = 0; i < head.n_objects; i++)
    {
      guint8 language = (guint8) PTO_DEVICE_CODE (get_part (registration, i))->language;

      g_byte_array_append (body, &language, 1);
    }
  g_byte_array_append (body, g_bytes_get_data (packed, NULL), (guint) g_bytes_get_size (packed));
  return body;
}

/* About a registration: what it is (REGISTER), or its digest alone. */
static gboolean
tell (IsolatedMachine *self, enum pto_request request, PtoRegistration *registration,
      GCancellable *cancellable, GError **error)
{
  g_autoptr (GByteArray) body = request == PTO_REQUEST_REGISTER ? pack (registration) : NULL;
  g_autofree char *what = g_strdup_printf (_ ("loading \"%s\""), registration->name);

  return pto_isolated_ask (self, PTO_ISOLATED_LANE_CONTROL, request, registration->digest, body,
                           what, cancellable, error);
}

static gboolean
tell_all (IsolatedMachine *self, GCancellable *cancellable, GError **error)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->known);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (!tell (self, PTO_REQUEST_REGISTER, value, cancellable, error))
      return FALSE;
  return TRUE;
}

/* Nothing runs. A child that has what is registered, and a chip if it is to have one. */
static gboolean
ensure_child (IsolatedMachine *self, GCancellable *cancellable, GError **error)
{
  struct pto_report report = { 0 };
  gboolean was_there = FALSE;

  if (self->solo != NULL && !pto_solo_is_own (self->solo))
    {
      /* A copy that a fork made: the child is the parent's, and so are its heaps. */
      g_clear_pointer (&self->solo, pto_solo_free);
      pto_machine_release_heaps (&self->parent);
    }
  if (self->solo == NULL && !make_solo (self, error))
    return FALSE;
  /* A child has the heaps that were there when it was begun. */
  if (self->is_dirty || (self->wants_up && !pto_machine_has_such_heaps (&self->parent)))
    pto_solo_end (self->solo, TRUE);
  else
    was_there = pto_solo_process_id (self->solo) != 0;
  self->is_dirty = FALSE;
  if (!pto_solo_look (self->solo))
    {
      self->is_up = self->recorded = FALSE;
      if (was_there)
        {
          g_autofree char *how = describe_death (self);

          pto_log (G_LOG_LEVEL_WARNING,
                   "the chip's process %s after its last run; there is another one now", how);
        }
      g_hash_table_remove_all (self->graphs);
      self->shared->n_written = self->shared->n_read = self->n_read = 0;
      if (!pto_machine_map_heaps (&self->parent, error))
        return FALSE;
      self->child.heaps = *pto_machine_peek_heaps (&self->parent);
      if (!pto_error_set_from_report (error, pto_solo_begin (self->solo, &report), &report))
        return FALSE;
      if (!tell_all (self, cancellable, error))
        {
          pto_solo_end (self->solo, TRUE);
          return FALSE;
        }
    }
  if (!self->wants_up || self->is_up)
    return TRUE;
  self->shared->params = *self->parent.params;
  self->is_up = pto_isolated_ask (self, PTO_ISOLATED_LANE_RUN, PTO_REQUEST_UP, NULL, NULL,
                                  _ ("bringing up the chip"), cancellable, error);
  return self->is_up;
}

static void
isolated_stop (PtoMachine *machine)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;

  pto_machine_hide (machine);
  g_mutex_lock (&self->control);
  self->wants_up = self->is_up = self->recorded = self->is_dirty = FALSE;
  g_clear_object (&self->trace);
  g_hash_table_remove_all (self->graphs);
  if (self->memory.take != NULL)
    pto_device_memory_clear (&self->memory);
  g_clear_pointer (&self->stage, pto_stage_free);
  g_clear_pointer (&self->solo, pto_solo_free);
  pto_machine_release_heaps (&self->parent);
  g_mutex_unlock (&self->control);
}

static gboolean
isolated_start (PtoMachine *machine, GCancellable *cancellable, GError **error)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;
  gboolean ok;

  g_mutex_lock (&self->control);
  self->wants_up = TRUE;
  self->stage = pto_stage_new ((guint32) machine->params->values[PTO_PARAMETER_GUARD]);
  if (self->stage == NULL)
    g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NO_MEMORY,
                         _ ("no room for what is copied to the chip's process"));
  ok = self->stage != NULL && ensure_child (self, cancellable, error);
  if (ok)
    {
      pto_device_memory_init (&self->memory, (guint32) machine->params->values[PTO_PARAMETER_GUARD],
                              pto_arena_alloc, pto_arena_free);
      self->memory.space_max
          = MIN (PTO_DEVICE_GONE_SPACE_MAX, machine->params->values[PTO_PARAMETER_ARENA] / 8);
    }
  g_mutex_unlock (&self->control);
  if (ok)
    pto_machine_show (machine);
  else
    isolated_stop (machine);
  return ok;
}

static void
isolated_free (PtoMachine *machine)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;

  isolated_stop (machine);
  pto_isolated_recorder_clear (self);
  g_hash_table_unref (self->numbers);
  g_hash_table_unref (self->known);
  g_hash_table_unref (self->graphs);
  g_ptr_array_unref (self->names);
  g_free (self->calls);
  g_mutex_clear (&self->control);
  pto_machine_take_down (&self->parent);
  g_free (self);
}

/* --- registrations --- */

static void
note_name (IsolatedMachine *self, const PtoRegistration *registration)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->parent.lock);

  if (registration->callable->kind != PTO_CALLABLE_KERNEL)
    return;
  if (self->names->len <= registration->index)
    g_ptr_array_set_size (self->names, (int) registration->index + 1);
  g_ptr_array_index (self->names, registration->index)
      = (gpointer) g_intern_string (registration->name);
}

/* Under control, after a request has failed: was it the run that was cancelled, and has ended the
 * child? Then it is not this one's fault. */
static gboolean
was_ended_by_run (IsolatedMachine *self, GCancellable *cancellable)
{
  return self->run != NULL && !pto_solo_look (self->solo)
         && self->run->is_unwanted (self->run->data) && !g_cancellable_is_cancelled (cancellable);
}

/* As tell(). In a run nobody begins another child: the next run does, and tells it all. */
static gboolean
tell_or_note (IsolatedMachine *self, enum pto_request request, PtoRegistration *registration,
              GCancellable *cancellable, GError **error)
{
  GError *failure = NULL;
  gboolean ok;

  g_mutex_lock (&self->control);
  ok = (self->run != NULL && !pto_solo_look (self->solo))
       || ((self->run != NULL || ensure_child (self, cancellable, &failure))
           && tell (self, request, registration, cancellable, &failure));
  if (!ok && was_ended_by_run (self, cancellable))
    {
      g_clear_error (&failure);
      ok = TRUE;
    }
  if (ok && request == PTO_REQUEST_REGISTER)
    g_hash_table_replace (self->known, registration->digest, pto_registration_ref (registration));
  g_mutex_unlock (&self->control);
  if (!ok)
    g_propagate_error (error, failure);
  return ok;
}

static gboolean
isolated_add (PtoMachine *machine, PtoRegistration *registration, GCancellable *cancellable,
              GError **error)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;

  if (!tell_or_note (self, PTO_REQUEST_REGISTER, registration, cancellable, error))
    return FALSE;
  note_name (self, registration);
  return TRUE;
}

static gboolean
isolated_instrument (PtoMachine *machine, PtoRegistration *registration, GCancellable *cancellable,
                     GError **error)
{
  return tell_or_note ((IsolatedMachine *) machine, PTO_REQUEST_INSTRUMENT, registration,
                       cancellable, error);
}

static void
isolated_remove (PtoMachine *machine, PtoRegistration *registration)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;

  g_mutex_lock (&self->control);
  if (g_hash_table_lookup (self->known, registration->digest) == registration)
    {
      g_hash_table_remove (self->known, registration->digest);
      if (self->solo != NULL && pto_solo_look (self->solo))
        tell (self, PTO_REQUEST_UNREGISTER, registration, NULL, NULL);
    }
  g_mutex_unlock (&self->control);
}

/* --- the run that is under way --- */

/* One that ended the process's first thread leaves it there as a zombie. The file cannot be read
 * either when this process has no descriptor left. */
static gboolean
thread_is_gone (IsolatedMachine *self, guint32 thread)
{
  int process = pto_solo_process_id (self->solo);
  g_autofree char *path = g_strdup_printf ("/proc/%d/task/%u/stat", process, thread);
  g_autofree char *stat = NULL;
  const char *state;

  if (!g_file_get_contents (path, &stat, NULL, NULL))
    return syscall (SYS_tgkill, process, (pid_t) thread, 0) < 0 && errno == ESRCH
           && pto_solo_look (self->solo);
  state = strrchr (stat, ')');
  return state != NULL && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
}

/* Of a core; NULL: there are no more. */
static struct pto_core_note *
get_note (IsolatedMachine *self, guint i)
{
  struct pto_core_note *note = &self->shared->notes[i];

  return i < PTO_ISOLATED_NOTES && note->name[0] != '\0' ? note : NULL;
}

static void
end_child (IsolatedMachine *self, PtoError as, const char *why)
{
  self->ended_as = as;
  pto_solo_kill (self->solo, why);
}

/* Ends what the chip's own watcher cannot: kernels that block signals, threads that are gone, a
 * process that stands still. passed: since the last look. */
static void
look_at_kernels (IsolatedMachine *self, guint64 passed)
{
  guint64 timeout = self->parent.params->values[PTO_PARAMETER_TIMEOUT] * MS;
  guint64 limit = timeout + timeout / 4 + MARGIN_NS;
  struct pto_core_note *note;
  gboolean runs = FALSE;

  if (pto_solo_is_stopped (self->solo))
    {
      self->stopped += passed;
      if (self->stopped >= timeout)
        end_child (
            self, PTO_ERROR_WORKER_LOST,
            _ ("somebody has stopped it (SIGSTOP), and it did not go on within the timeout"));
      return;
    }
  self->stopped = 0;
  self->still += passed;
  for (guint i = 0; (note = get_note (self, i)) != NULL; i++)
    {
      guint32 calls = atomic_load_explicit (&note->calls, memory_order_acquire);

      if (calls != self->calls[i])
        {
          self->calls[i] = calls;
          self->still = 0;
        }
      else if ((calls & 1) == 0)
        continue;
      else if (thread_is_gone (self, atomic_load_explicit (&note->thread, memory_order_relaxed))
               && atomic_load_explicit (&note->calls, memory_order_acquire) == calls)
        end_child (self, PTO_ERROR_KERNEL_FAULT, _ ("the kernel has ended the thread that ran it"));
      else
        runs = TRUE;
    }
  if (runs && self->still >= limit)
    end_child (self, PTO_ERROR_KERNEL_HANG,
               _ ("the kernel did not return, and blocks the signal that ends it"));
}

/* What the child's orchestration logs. */
static void
take_messages (IsolatedMachine *self)
{
  IsolatedShared *shared = self->shared;

  /* From 1 to as many as there are: another number is none of a child's that goes on well. */
  while ((guint32) g_atomic_int_get ((int *) &shared->n_written) - self->n_read - 1
         < PTO_ISOLATED_MESSAGES)
    {
      const IsolatedMessage *message = &shared->messages[self->n_read % PTO_ISOLATED_MESSAGES];
      GLogLevelFlags flags = (GLogLevelFlags) message->flags
                             & (G_LOG_LEVEL_WARNING | G_LOG_LEVEL_INFO | G_LOG_LEVEL_DEBUG);
      char text[sizeof message->text];

      pto_text_copy (text, sizeof text, message->text,
                     strnlen (message->text, sizeof message->text));
      g_atomic_int_set ((int *) &shared->n_read, (int) ++self->n_read);
      pto_log (flags != 0 ? flags : G_LOG_LEVEL_DEBUG, "%s", text);
    }
}

gboolean
pto_isolated_wait (IsolatedMachine *self, guint32 heard, guint64 spin_ns)
{
  enum pto_solo_event event = pto_solo_wait (self->solo, PTO_ISOLATED_LANE_RUN, heard, spin_ns,
                                             pto_solo_clock () + LOOK_NS);
  guint64 now;

  take_messages (self);
  self->died = event == PTO_SOLO_DIED;
  if (event != PTO_SOLO_LOOK)
    return FALSE;
  now = pto_solo_clock ();
  if (!self->is_cancelled && self->run->is_cancelled (self->run->data))
    {
      self->is_cancelled = TRUE;
      self->cancelled_at = now;
      pto_solo_cancel (self->solo, PTO_ISOLATED_LANE_RUN);
    }
  if (self->is_cancelled && now - self->cancelled_at >= GRACE_NS)
    pto_solo_kill (self->solo, _ ("its run was cancelled"));
  if (now - self->looked >= NOTES_NS)
    {
      look_at_kernels (self, MIN (now - self->looked, 2 * NOTES_NS));
      self->looked = now;
    }
  return TRUE;
}

const char *
pto_isolated_name_kernel (IsolatedMachine *self, guint32 kernel)
{
  const char *name = NULL;

  if (pto_kernel_is_builtin (kernel))
    return pto_builtin_name (kernel);
  if (self->run->registration != NULL)
    {
      GArray *kernels = PTO_CHIP_ORCHESTRATION (self->run->registration->callable)->kernels;

      for (guint i = 0; i < kernels->len; i++)
        if (g_array_index (kernels, PtoChipKernel, i).func_id == kernel)
          name = g_array_index (kernels, PtoChipKernel, i).name;
    }
  else
    {
      g_mutex_lock (&self->parent.lock);
      if (kernel < self->names->len)
        name = g_ptr_array_index (self->names, kernel);
      g_mutex_unlock (&self->parent.lock);
    }
  return name != NULL ? name : "?";
}

void
pto_isolated_append_place (GString *text, IsolatedPlace at)
{
  const char *slash = at.file != NULL ? strrchr (at.file, '/') : NULL;

  if (at.file != NULL && at.line > 0)
    g_string_append_printf (text, _ (", submitted at %s:%" PRIu32),
                            slash != NULL ? slash + 1 : at.file, at.line);
}

static void
append_note (IsolatedMachine *self, GString *text, struct pto_core_note *note)
{
  guint32 line = atomic_load_explicit (&note->line, memory_order_relaxed);
  char file[sizeof note->file];
  guint64 task = atomic_load_explicit (&note->task, memory_order_relaxed);
  guint32 kernel = atomic_load_explicit (&note->kernel, memory_order_relaxed);
  char core[sizeof note->name];

  pto_text_copy (core, sizeof core, note->name, strnlen (note->name, sizeof note->name));
  g_string_append_printf (text, "task %u of ring %u (%s) on core %s", PTO_TASK_LOCAL (task),
                          PTO_TASK_RING (task), pto_isolated_name_kernel (self, kernel), core);
  pto_text_copy (file, sizeof file, note->file, strnlen (note->file, sizeof note->file));
  pto_isolated_append_place (text, (IsolatedPlace){ file, line });
}

/* Which tasks ran when the child died? Gives how many; none: text says which one was the last. */
static guint
list_tasks (IsolatedMachine *self, GString *text)
{
  struct pto_core_note *last = NULL;
  struct pto_core_note *note;
  guint n = 0;

  for (guint i = 0; (note = get_note (self, i)) != NULL; i++)
    {
      guint64 since = atomic_load_explicit (&note->since, memory_order_relaxed);

      if (since < self->began)
        continue;
      if (last == NULL || since > atomic_load_explicit (&last->since, memory_order_relaxed))
        last = note;
      if ((atomic_load_explicit (&note->calls, memory_order_relaxed) & 1) == 0)
        continue;
      if (n < NAMED_MAX)
        {
          g_string_append (text, n > 0 ? " or " : "");
          append_note (self, text, note);
        }
      n++;
    }
  if (n > NAMED_MAX)
    g_string_append_printf (text, " or %u others", n - NAMED_MAX);
  if (n == 0 && last != NULL)
    {
      g_string_append (text, "after ");
      append_note (self, text, last);
    }
  return n;
}

static void
set_died (IsolatedMachine *self, GError **error)
{
  g_autoptr (GString) tasks = g_string_new (NULL);
  g_autofree char *how = describe_death (self);
  guint n = list_tasks (self, tasks);

  /* Its cancellable may have ended a registration of its own, and the child with that. */
  if (self->is_cancelled || self->run->is_cancelled (self->run->data))
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, _ ("the run was cancelled"));
  else if (n > 0)
    g_set_error (error, PTO_ERROR, self->ended_as != 0 ? self->ended_as : PTO_ERROR_KERNEL_FAULT,
                 _ ("%s: the kernel's process %s"), tasks->str, how);
  else
    g_set_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST, _ ("%s: the chip's process %s%s%s"),
                 self->run->title, how, tasks->len > 0 ? ", " : "", tasks->str);
}

/* --- runs --- */

/* The arguments of a registered orchestration, a launch or a capture, as the child is to see them.
 */
static gboolean
place_args (IsolatedMachine *self, const PtoMachineRun *run, struct pto_chip_arg *args, guint n,
            GError **error)
{
  struct pto_report report = { 0 };

  for (guint i = 0; i < n; i++)
    {
      PTOBufferHandle *memory = &args[i].tensor.buffer;
      guint64 placed;

      if (args[i].tensor.ndims == 0)
        continue;
      /* All of it: what of it is read or written is the orchestration's to say, not here. */
      placed = pto_stage_place (self->stage, memory->addr, memory->size, args[i].read_only == 0,
                                &report);
      if (placed == 0)
        {
          pto_error_set_status (error, report.status, report.message);
          g_prefix_error (error, _ ("orchestration \"%s\": argument %u: "), run->title, i);
          return FALSE;
        }
      args[i].word = placed + (args[i].word - memory->addr);
      memory->addr = placed;
    }
  /* Behind all of them: they may be addresses of what is copied. */
  for (guint i = 0; i < n; i++)
    if (args[i].tensor.ndims == 0 && run->capture == NULL
        && !pto_isolated_place_number (self, &args[i].word, PTO2_TASK_NONE,
                                       (IsolatedPlace){ NULL, 0 }, i, 0, &report))
      {
        pto_error_set_status (error, report.status, report.message);
        g_prefix_error (error, _ ("orchestration \"%s\": "), run->title);
        return FALSE;
      }
  return TRUE;
}

/* Before anything is copied; the chip would say the same. */
static gboolean
check_args (const struct pto_plan *plan, const struct pto_chip_arg *args, guint n, GError **error)
{
  g_autofree struct pto_plan_given *given = g_new0 (struct pto_plan_given, MAX (n, 1));
  struct pto_report report = { 0 };

  for (guint i = 0; i < n; i++)
    given[i] = pto_chip_arg_given (&args[i]);
  return pto_error_set_from_report (error, pto_plan_check (plan, given, n, &report), &report);
}

/* Arguments of all but a function, each in its place, if the child may have them. */
static gboolean
make_args (IsolatedMachine *self, const struct pto_plan *plan, const guint32 *kernels,
           struct pto_chip_arg **args, guint *n, GError **error)
{
  const PtoMachineRun *run = self->run;
  struct pto_report report = { 0 };

  *args = pto_machine_make_chip_args (run->args, run->title, PTO_ARGS_OF_CHIP, n, error);
  if (*args == NULL || (plan != NULL && !check_args (plan, *args, *n, error))
      || !place_args (self, run, *args, *n, error))
    return FALSE;
  if (plan != NULL && !pto_isolated_watch_numbers (self, plan, kernels, &report))
    return pto_error_set_from_report (error, report.status, &report);
  /* A function names more while it is called, but nothing of what it is captured as is run. */
  if (run->registration != NULL || plan != NULL)
    pto_stage_fence (self->stage);
  return TRUE;
}

gboolean
pto_isolated_post_run (IsolatedMachine *self, const struct pto_plan *plan, const guint32 *kernels,
                       GError **error)
{
  const PtoMachineRun *run = self->run;
  IsolatedShared *shared = self->shared;
  g_autoptr (GByteArray) body = g_byte_array_new ();
  g_autofree struct pto_chip_arg *args = NULL;
  guint n = 0;

  if ((run->registration != NULL || run->capture != NULL || plan != NULL)
      && !make_args (self, plan, kernels, &args, &n, error))
    return FALSE;
  /* Arguments, numbers of kernels, the text of a schedule. */
  g_byte_array_append (body, (const guint8 *) args, n * (guint) sizeof *args);
  if (plan != NULL)
    g_byte_array_append (body, (const guint8 *) kernels, plan->n_kernels * (guint) sizeof *kernels);
  shared->schedule_at = run->schedule != NULL ? body->len + 1 : 0;
  if (run->schedule != NULL)
    g_byte_array_append (body, (const guint8 *) run->schedule, (guint) strlen (run->schedule) + 1);
  shared->n_args = n;
  shared->graph = plan != NULL ? run->tag->id : 0;
  shared->is_capture = run->capture != NULL;
  shared->has_config = run->config != NULL;
  if (run->config != NULL)
    pto_call_config_to_wire (run->config, &shared->config);
  g_strlcpy (shared->title, run->title, sizeof shared->title);
  shared->is_stream = run->registration == NULL && plan == NULL;
  self->posted = pto_isolated_post (self, PTO_ISOLATED_LANE_RUN, PTO_REQUEST_RUN,
                                    run->registration != NULL ? run->registration->digest : NULL,
                                    body, &self->far, error);
  self->far_size = body->len;
  return self->posted;
}

/* A run that the child may refuse has no orchestration before it has not. FALSE: it was refused, or
 * the child has died. */
static gboolean
await_begin (IsolatedMachine *self)
{
  for (;;)
    {
      guint32 heard = pto_solo_listen (self->solo, PTO_ISOLATED_LANE_RUN);

      if (pto_stream_has_begun (&self->recorder.writer))
        return TRUE;
      if (!pto_isolated_wait (self, heard, SPIN_NS))
        return FALSE;
    }
}

/* Has the run ended without one of its kernels? The chip there has given it up, with the core. */
static gboolean
has_kept_core (IsolatedMachine *self)
{
  struct pto_core_note *note;

  for (guint i = 0; (note = get_note (self, i)) != NULL; i++)
    if ((atomic_load_explicit (&note->calls, memory_order_acquire) & 1) != 0)
      return TRUE;
  return FALSE;
}

static gboolean
await_answer (IsolatedMachine *self, GError **error)
{
  struct pto_failure failure = { 0 };
  guint64 until = pto_solo_clock () + SPIN_NS;
  guint64 now = until - SPIN_NS;

  /* A ring that is about something else does not end the spinning. */
  while (!self->died
         && pto_isolated_wait (self, pto_solo_listen (self->solo, PTO_ISOLATED_LANE_RUN),
                               now < until ? until - now : 0))
    now = pto_solo_clock ();
  if (self->died)
    {
      set_died (self, error);
      return FALSE;
    }
  /* Kernels that were cut off, by a crash, a time-out or a cancel, may have left anything behind,
   * even a lock of malloc() that is held. */
  self->is_dirty = self->shared->has_statistics && self->shared->statistics.cut_off > 0;
  if (pto_solo_answer (self->solo, PTO_ISOLATED_LANE_RUN, &failure) == 0)
    {
      /* The child may have been told too late, and this thread before it looked. */
      if (!self->is_cancelled && !self->run->is_cancelled (self->run->data))
        return TRUE;
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, _ ("the run was cancelled"));
      return FALSE;
    }
  /* A kernel that has crashed may have left anything behind; one that has not ended is there. */
  self->is_dirty
      = self->is_dirty
        || (failure.domain[0] == '\0'
            && (failure.code == PTO_ERROR_KERNEL_FAULT || failure.code == PTO_ERROR_KERNEL_HANG
                || failure.code == PTO_ERROR_SYSTEM))
        || has_kept_core (self);
  pto_failure_propagate (&failure, error);
  return FALSE;
}

static gboolean
begin_run (IsolatedMachine *self, const PtoMachineRun *run, GError **error)
{
  gboolean ok;

  g_mutex_lock (&self->control);
  ok = ensure_child (self, NULL, error);
  if (ok)
    pto_isolated_forget_graphs (self);
  self->run = ok ? run : NULL;
  if (ok)
    {
      atomic_store_explicit (&self->shared->submitted, 0, memory_order_relaxed);
      atomic_store_explicit (&self->shared->completed, 0, memory_order_relaxed);
      atomic_store_explicit (&self->shared->failed, 0, memory_order_relaxed);
    }
  self->recorded = FALSE;
  g_clear_object (&self->trace);
  g_mutex_unlock (&self->control);
  if (!ok)
    return FALSE;
  self->died = self->is_cancelled = self->posted = FALSE;
  self->shared->has_statistics = FALSE;
  self->far = 0;
  self->began = self->looked = pto_solo_clock ();
  self->still = self->stopped = 0;
  self->ended_as = 0;
  pto_stage_begin (self->stage, pto_solo_map (self->solo));
  g_hash_table_remove_all (self->numbers);
  return TRUE;
}

static void
end_run (IsolatedMachine *self)
{
  struct pto_run_stats statistics = { .run_ns = pto_solo_clock () - self->began,
                                      .elapsed_ns = pto_solo_clock () - self->began };

  take_messages (self);
  pto_solo_take_words (self->solo);
  if (self->far != 0)
    pto_arena_free (self->far, self->far_size);
  g_mutex_lock (&self->control);
  self->run = NULL;
  self->recorded = self->posted && !self->died;
  self->is_up = self->is_up && !self->died;
  g_mutex_unlock (&self->control);
  if (!self->died && self->shared->has_statistics)
    statistics = self->shared->statistics;
  pto_machine_keep_statistics (&self->parent, &statistics);
}

/* The child has been asked for what there is to run, or it has not, for a reason that is told here,
 * or of which the caller knows. */
static void
submit_run (IsolatedMachine *self, const PtoMachineRun *run, GError **error)
{
  pto_isolated_recorder_begin (self);
  if (run->is_launch)
    {
      run->orchestrate (&self->recorder.runtime, run->data);
      if (self->refused != NULL)
        g_propagate_error (error, g_steal_pointer (&self->refused));
    }
  else if (pto_isolated_post_run (self, NULL, NULL, error) && run->registration == NULL
           && (run->config == NULL || await_begin (self)))
    pto_isolated_recorder_end (self, run->orchestrate (&self->recorder.runtime, run->data));
}

/* Memory of the run goes back to where it came from. */
static gboolean
end_stage (IsolatedMachine *self, GError **error)
{
  struct pto_report report = { 0 };
  struct pto_overrun overrun = { 0 };
  enum pto_status status = pto_stage_end (self->stage, &overrun, &report);
  g_autofree char *who = NULL;

  if (status == PTO_OK)
    return pto_isolated_check_numbers (self, error);
  if (overrun.bytes > 0)
    who = pto_isolated_describe_overrun (self, &overrun);
  return who != NULL ? pto_refuse (error, PTO_ERROR_OUT_OF_BOUNDS, "%s", who)
                     : pto_error_set_from_report (error, status, &report);
}

/* Counts a run that has failed without a count by the child, which has died, or because the fault
 * was found here. before: as it was before the run. */
static void
count_failed (IsolatedMachine *self, const struct pto_machine_totals *before)
{
  struct pto_machine_totals *totals = &self->shared->totals;

  if (totals->runs == before->runs && self->died)
    totals->runs++;
  if (totals->runs > before->runs && totals->failed_runs == before->failed_runs)
    pto_machine_count_failed (totals);
}

static gboolean
isolated_run (PtoMachine *machine, const PtoMachineRun *run, GError **error)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;
  struct pto_machine_totals before;
  struct pto_report report = { 0 };
  GError *failure = NULL;
  gboolean ok;

  if (!begin_run (self, run, error))
    return FALSE;
  before = self->shared->totals;
  submit_run (self, run, &failure);
  ok = self->posted && await_answer (self, &failure);
  /* Also of a run that has failed: memory holds what was written until then. */
  end_stage (self, ok ? &failure : NULL);
  end_run (self);
  if (pto_device_memory_check (&self->memory, &report) != PTO_OK && ok && failure == NULL)
    pto_error_set_from_report (&failure, report.status, &report);
  pto_device_memory_settle (&self->memory);
  if (run->capture != NULL && ok && failure == NULL)
    pto_isolated_take_captured (self, run->capture, &failure);
  if (failure == NULL)
    return TRUE;
  /* Guards find what the check does not see. In a checked run it is one verdict. */
  if (pto_machine_checks (machine, run)
      && g_error_matches (failure, PTO_ERROR, PTO_ERROR_OUT_OF_BOUNDS))
    failure->code = PTO_ERROR_ACCESS;
  count_failed (self, &before);
  g_propagate_error (error, failure);
  return FALSE;
}

static void
isolated_cancel (PtoMachine *machine)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;

  pto_solo_ring (self->solo, PTO_ISOLATED_LANE_RUN);
}

/* --- memory, and what is left of a run --- */

static gboolean
isolated_use_memory (PtoMachine *machine, PtoMachineMemory *memory, GError **error)
{
  return pto_machine_use_device_memory (&((IsolatedMachine *) machine)->memory, memory, error);
}

guint64
pto_isolated_fetch (IsolatedMachine *self, enum pto_request request, const char *what,
                    guint64 *size, GError **error)
{
  IsolatedShared *shared = self->shared;
  guint64 address;

  shared->fetched = (PtoChildTrace){ 0 };
  if (!pto_isolated_ask (self, PTO_ISOLATED_LANE_CONTROL, request, NULL, NULL, what, NULL, error))
    return 0;
  *size = shared->fetched.size;
  if (*size == 0)
    return 0;
  address = pto_arena_alloc (*size);
  if (address == 0)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY,
                   _ ("%s: no room for %" PRIu64 " bytes: set arena to more"), what, *size);
      return 0;
    }
  shared->fetched = (PtoChildTrace){ .address = address, .room = *size };
  if (pto_isolated_ask (self, PTO_ISOLATED_LANE_CONTROL, request, NULL, NULL, what, NULL, error))
    return address;
  pto_arena_free (address, *size);
  return 0;
}

/* Under control, while nothing runs. */
static PtoTrace *
fetch_trace (IsolatedMachine *self)
{
  g_autoptr (GError) error = NULL;
  PtoTrace *trace = NULL;
  guint64 size, address;

  if (!pto_solo_look (self->solo))
    return NULL;
  address = pto_isolated_fetch (self, PTO_REQUEST_TRACE, _ ("the trace of a run"), &size, &error);
  if (address == 0)
    {
      if (error != NULL)
        pto_log (G_LOG_LEVEL_WARNING, "%s", error->message);
      return NULL;
    }
  trace = pto_trace_new_from_packed ((const guint8 *) (guintptr) address, size);
  pto_arena_free (address, size);
  return trace;
}

static PtoTrace *
isolated_get_trace (PtoMachine *machine)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->control);

  if (self->trace == NULL && self->recorded && self->run == NULL)
    {
      self->trace = fetch_trace (self);
      self->recorded = FALSE;
    }
  return self->trace != NULL ? g_object_ref (self->trace) : NULL;
}

/* The child knows all that there is to say: tells its number, under which it can be asked. Another
 * thread may begin the child meanwhile, or tell it something, which takes long. */
static void
isolated_tell (PtoMachine *machine, JsonBuilder *json)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;
  int process = 0;

  for (guint i = 0; i < TELL_TRIES; i++, g_usleep (TELL_PAUSE_US))
    if (g_mutex_trylock (&self->control))
      {
        if (self->solo != NULL)
          process = pto_solo_process_id (self->solo);
        g_mutex_unlock (&self->control);
        break;
      }
  if (process != 0)
    pto_json_add_int (json, "pid", (guint64) process);
}

/* What the child has said last. */
static gboolean
isolated_count (PtoMachine *machine, gboolean is_inside, PtoMachineCounts *counts)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;
  gboolean is_running;

  /* Under control a child is begun, or told something: there is no run then that has begun. */
  if (!is_inside && !g_mutex_trylock (&self->control))
    return FALSE;
  is_running = self->run != NULL;
  if (is_running)
    {
      counts->completed = atomic_load_explicit (&self->shared->completed, memory_order_relaxed);
      counts->failures = atomic_load_explicit (&self->shared->failed, memory_order_relaxed);
      counts->submitted = atomic_load_explicit (&self->shared->submitted, memory_order_relaxed);
    }
  if (!is_inside)
    g_mutex_unlock (&self->control);
  return is_running;
}

static const PtoMachineOps isolated_ops = {
  .accepts = pto_machine_chip_accepts,
  .start = isolated_start,
  .stop = isolated_stop,
  .free = isolated_free,
  .run = isolated_run,
  .cancel = isolated_cancel,
  .launch = pto_isolated_launch,
  .catch_up = pto_isolated_catch_up,
  .alloc = pto_isolated_alloc,
  .element = pto_isolated_element,
  .has_failed = pto_isolated_has_failed,
  .dup_failure = pto_isolated_dup_failure,
  .fail = pto_isolated_fail,
  .add = isolated_add,
  .remove = isolated_remove,
  .instrument = isolated_instrument,
  .use_memory = isolated_use_memory,
  .get_trace = isolated_get_trace,
  .tell = isolated_tell,
  .count = isolated_count,
};

PtoMachine *
pto_machine_new_isolated (PtoTreeNode *node, const struct pto_params *params)
{
  IsolatedMachine *self = g_new0 (IsolatedMachine, 1);

  pto_machine_set_up (&self->parent, &isolated_ops, node, params);
  self->known = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, NULL,
                                       (GDestroyNotify) pto_registration_unref);
  self->graphs = g_hash_table_new_full (NULL, NULL, g_atomic_rc_box_release, NULL);
  self->names = g_ptr_array_new ();
  self->calls = g_new0 (guint32, PTO_ISOLATED_NOTES);
  g_mutex_init (&self->control);
  pto_isolated_recorder_init (self);
  self->numbers = pto_isolated_new_numbers ();
  return &self->parent;
}
