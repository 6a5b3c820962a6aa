/* machine-isolated-child.c: what does the process of an isolated chip do with its requests?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the worker of a chip does in its own process, worker/worker-run.c and -register.c. Its table
 * of registrations is filled by requests, and made of bytes, so that all of it is checked.
 */
#include "config.h"

#include "core/graph-plan-pack.h"

#include "machine-isolated.h"

#include "base/error.h"
#include "callable/callable.h"
#include "callable/chip-orchestration.h"
#include "common/text.h"
#include "trace/model/trace.h"
#include "values/call-config.h"
#include "values/run-statistics.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static IsolatedShared *
shared_of (IsolatedChild *self)
{
  return pto_solo_memory (self->solo);
}

/* --- what it can run --- */

/* For messages about what an object does not export. */
static void
set_languages (PtoCallable *callable, const guint8 *languages, guint n)
{
  GArray *kernels
      = PTO_IS_CHIP_ORCHESTRATION (callable) ? PTO_CHIP_ORCHESTRATION (callable)->kernels : NULL;

  if (n > 0)
    PTO_DEVICE_CODE (callable)->language = (PtoLanguage) languages[0];
  for (guint i = 1; i < n && kernels != NULL && i <= kernels->len; i++)
    PTO_DEVICE_CODE (g_array_index (kernels, PtoChipKernel, i - 1).kernel)->language
        = (PtoLanguage) languages[i];
}

static gboolean
add (IsolatedChild *self, const struct pto_call *call, GError **error)
{
  g_autoptr (GBytes) descriptor = NULL;
  g_autoptr (GBytes) sources = NULL;
  const guint8 *languages = call->body + sizeof (IsolatedRegister);
  g_autoptr (PtoRegistration) registration = NULL;
  IsolatedRegister head = { 0 };
  gboolean is_named;

  if (call->bytes >= sizeof head)
    memcpy (&head, call->body, sizeof head);
  if (call->bytes < sizeof head || call->bytes - sizeof head < head.n_objects
      || !pto_child_unpack_registration (languages + head.n_objects,
                                         call->bytes - sizeof head - head.n_objects, &descriptor,
                                         &sources, &is_named))
    return pto_refuse (error, PTO_ERROR_TAMPERED,
                       _ ("a registration of which only a part has arrived"));
  registration = pto_registration_new_from_bytes (call->digest, descriptor, sources, error);
  if (registration == NULL)
    return FALSE;
  registration->index = head.index;
  set_languages (registration->callable, languages, head.n_objects);
  if (!self->chip->ops->add (self->chip, registration, NULL, error))
    return FALSE;
  g_mutex_lock (&self->lock);
  g_hash_table_replace (self->targets, registration->digest, registration);
  g_mutex_unlock (&self->lock);
  g_steal_pointer (&registration);
  return TRUE;
}

static PtoRegistration *
find (IsolatedChild *self, const guint8 *digest)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  PtoRegistration *registration = g_hash_table_lookup (self->targets, digest);

  return registration != NULL ? pto_registration_ref (registration) : NULL;
}

static void
instrument (IsolatedChild *self, const guint8 *digest, GError **error)
{
  g_autoptr (PtoRegistration) registration = find (self, digest);

  if (registration != NULL)
    self->chip->ops->instrument (self->chip, registration, NULL, error);
  else
    g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
                         _ ("the kernel is not known to the chip's process"));
}

static void
remove_target (IsolatedChild *self, const guint8 *digest)
{
  g_autoptr (PtoRegistration) registration = find (self, digest);

  if (registration == NULL)
    return;
  self->chip->ops->remove (self->chip, registration);
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->targets, digest);
  g_mutex_unlock (&self->lock);
}

/* --- graphs --- */

static struct pto_plan *
new_plan (void)
{
  struct pto_plan *plan = pto_plan_new ();

  if (plan == NULL)
    g_error ("no memory for a graph");
  return plan;
}

/* Which one a request is about. */
static gboolean
read_number (const struct pto_call *call, guint64 *number, GError **error)
{
  if (call->bytes >= sizeof *number)
    {
      memcpy (number, call->body, sizeof *number);
      return TRUE;
    }
  return pto_refuse (error, PTO_ERROR_TAMPERED, _ ("a request about no graph"));
}

static gboolean
keep_graph (IsolatedChild *self, const struct pto_call *call, GError **error)
{
  struct pto_report report = { 0 };
  struct pto_plan *plan;
  guint64 number;

  if (!read_number (call, &number, error))
    return FALSE;
  plan = new_plan ();
  if (pto_plan_unpack (plan, call->body + sizeof number, call->bytes - sizeof number, &report)
      != PTO_OK)
    {
      pto_plan_free (plan);
      return pto_error_set_from_report (error, report.status, &report);
    }
  g_mutex_lock (&self->lock);
  g_hash_table_replace (self->graphs, g_memdup2 (&number, sizeof number), plan);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static void
forget_graph (IsolatedChild *self, const struct pto_call *call, GError **error)
{
  guint64 number;

  if (!read_number (call, &number, error))
    return;
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->graphs, &number);
  g_mutex_unlock (&self->lock);
}

/* --- runs --- */

typedef struct
{
  IsolatedChild *self;
  const struct pto_call *call;
  PtoMachineRun run;
  const struct pto_plan *plan; /* of a launch */
  GError *error;               /* of the orchestration */
  gboolean has_begun;          /* atomic: what there is to count is of this run */
  gboolean has_failed;
} ChildRun;

/* Asked for among submits, while it waits, and by what watches the chip: often enough to tell how
 * far the run is. */
static bool
is_cancelled (void *data)
{
  ChildRun *run = data;
  IsolatedShared *shared = shared_of (run->self);
  PtoMachineCounts counts;

  if (g_atomic_int_get (&run->has_begun)
      && run->self->chip->ops->count (run->self->chip, TRUE, &counts))
    {
      atomic_store_explicit (&shared->submitted, counts.submitted, memory_order_relaxed);
      atomic_store_explicit (&shared->completed, counts.completed, memory_order_relaxed);
      atomic_store_explicit (&shared->failed, counts.failures, memory_order_relaxed);
    }
  return pto_call_is_cancelled (run->call);
}

static void
ring (void *data)
{
  const ChildRun *run = data;

  pto_solo_ring (run->self->solo, PTO_ISOLATED_LANE_RUN);
}

/* As in worker/worker-run.c; of a function the rest is the parent's. */
static int
orchestrate (PTO2Runtime *rt, void *data)
{
  ChildRun *run = data;
  PtoMachine *chip = run->self->chip;
  int result = 0;

  g_atomic_int_set (&run->has_begun, TRUE);
  if (run->run.registration != NULL || run->run.is_launch)
    {
      if (run->run.is_launch)
        chip->ops->launch (chip, rt, run->plan,
                           (const guint32 *) (gconstpointer) (run->run.given + run->run.n_given));
      else
        chip->ops->enter (chip, &run->run, rt, &run->error);
      run->has_failed = chip->ops->has_failed (rt);
      if (!run->has_failed && run->error == NULL && is_cancelled (run))
        chip->ops->fail (rt, PTO_STATUS_CANCELLED, _ ("the run was cancelled"));
      result = run->error == NULL ? 0 : 1;
    }
  else
    {
      const struct pto_stream_target target = { .rt = rt,
                                                .has_failed = pto_runtime_has_failed,
                                                .get_failure = pto_runtime_tell_failure,
                                                .fail = pto_machine_fail_run,
                                                .keep = g_intern_string,
                                                .ring = ring,
                                                .data = run };

      result = pto_stream_replay (pto_isolated_get_stream (shared_of (run->self)), &target);
    }
  return result;
}

static void
tell_statistics (IsolatedChild *self)
{
  IsolatedShared *shared = shared_of (self);
  PtoRunStatistics *statistics = pto_machine_dup_statistics (self->chip);

  shared->has_statistics = statistics != NULL;
  if (statistics != NULL)
    shared->statistics = statistics->stats;
  g_clear_pointer (&statistics, pto_run_statistics_free);
}

/* Finds the program to run. Returns FALSE if the parent has not told of it. */
static gboolean
find_program (IsolatedChild *self, ChildRun *run, GError **error)
{
  IsolatedShared *shared = shared_of (self);

  if (shared->is_stream)
    return TRUE;
  if (shared->graph != 0)
    {
      g_mutex_lock (&self->lock);
      run->plan = g_hash_table_lookup (self->graphs, &shared->graph);
      g_mutex_unlock (&self->lock);
      run->run.is_launch = TRUE;
    }
  else
    run->run.registration = find (self, run->call->digest);
  if (run->plan != NULL || run->run.registration != NULL)
    return TRUE;
  return pto_refuse (error, PTO_ERROR_INTERNAL, _ ("\"%s\" is not known to the chip's process"),
                     run->run.title);
}

static gboolean
run_call (IsolatedChild *self, const struct pto_call *call, GError **error)
{
  IsolatedShared *shared = shared_of (self);
  g_autoptr (PtoCallConfig) config
      = shared->has_config ? pto_call_config_new_from_wire (&shared->config) : NULL;
  g_autofree char *title = g_strndup (shared->title, sizeof shared->title);
  ChildRun run = { .self = self, .call = call };
  GError *failure = NULL;
  gboolean ok;

  run.run.config = config;
  run.run.orchestrate = orchestrate;
  run.run.is_cancelled = run.run.is_unwanted = is_cancelled;
  run.run.data = &run;
  run.run.title = title;
  run.run.given = (const struct pto_chip_arg *) (gconstpointer) call->body;
  run.run.n_given = shared->n_args;
  if (shared->schedule_at != 0)
    run.run.schedule = (const char *) call->body + shared->schedule_at - 1;
  if (!find_program (self, &run, error))
    return FALSE;
  g_clear_pointer (&self->captured, pto_plan_free);
  if (shared->is_capture)
    run.run.capture = self->captured = new_plan ();
  ok = self->chip->ops->run (self->chip, &run.run, &failure);
  tell_statistics (self);
  g_clear_pointer (&run.run.registration, pto_registration_unref);
  /* What kernels have printed stands before what the program prints next. */
  fflush (stdout);
  if (run.error != NULL && (!run.has_failed || ok))
    {
      g_clear_error (&failure);
      g_propagate_error (error, run.error);
      return FALSE;
    }
  g_clear_error (&run.error);
  if (!ok)
    g_propagate_error (error, failure);
  return ok;
}

/* Handlers are the program's, in the parent. Waits for room, which the parent makes while it waits
 * for the run. */
static void
log_message (GLogLevelFlags flags, const char *context, const char *message, gpointer data)
{
  IsolatedChild *self = data;
  IsolatedShared *shared = shared_of (self);
  guint32 n = (guint32) g_atomic_int_get ((int *) &shared->n_written);
  IsolatedMessage *slot = &shared->messages[n % PTO_ISOLATED_MESSAGES];

  while (n - (guint32) g_atomic_int_get ((int *) &shared->n_read) >= PTO_ISOLATED_MESSAGES)
    {
      pto_solo_ring (self->solo, PTO_ISOLATED_LANE_RUN);
      g_usleep (100);
    }
  slot->flags = (guint32) flags;
  g_snprintf (slot->text, sizeof slot->text, "%s: %s", context, message);
  g_atomic_int_set ((int *) &shared->n_written, (int) (n + 1));
  pto_solo_ring (self->solo, PTO_ISOLATED_LANE_RUN);
}

/* --- requests --- */

static void
start (IsolatedChild *self)
{
  g_mutex_init (&self->lock);
  self->targets = g_hash_table_new_full (pto_digest_hash, pto_digest_equal, NULL,
                                         (GDestroyNotify) pto_registration_unref);
  self->graphs
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, (GDestroyNotify) pto_plan_free);
  self->chip = pto_machine_new_chip (self->node, &self->params);
  pto_machine_chip_use (self->chip, &self->heaps, &shared_of (self)->totals,
                        shared_of (self)->notes, PTO_ISOLATED_NOTES);
  self->chip->log = log_message;
  self->chip->log_data = self;
}

static gboolean
bring_up (IsolatedChild *self, GError **error)
{
  self->params = shared_of (self)->params;
  if (!self->chip->ops->start (self->chip, NULL, error))
    return FALSE;
  self->node->ops->begin_to_answer ();
  return TRUE;
}

static void
tell_trace (IsolatedChild *self)
{
  guint8 *to;

  if (self->trace == NULL)
    self->trace = self->chip->ops->get_trace (self->chip);
  to = pto_child_offer (&shared_of (self)->fetched,
                        self->trace != NULL ? pto_trace_get_packed_size (self->trace) : 0);
  if (to == NULL)
    return;
  pto_trace_pack (self->trace, to);
  g_clear_object (&self->trace);
}

static void
tell_captured (IsolatedChild *self)
{
  gboolean is_there = self->captured != NULL && self->captured->complete;
  guint8 *to = pto_child_offer (&shared_of (self)->fetched,
                                is_there ? pto_plan_packed_size (self->captured) : 0);

  if (to == NULL)
    return;
  pto_plan_pack (self->captured, to);
  g_clear_pointer (&self->captured, pto_plan_free);
}

static uint32_t
serve_runs (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  IsolatedChild *self = data;
  GError *error = NULL;

  switch (call->request)
    {
    case PTO_REQUEST_START:
      start (self);
      break;
    case PTO_REQUEST_UP:
      bring_up (self, &error);
      break;
    case PTO_REQUEST_RUN:
      g_clear_object (&self->trace);
      run_call (self, call, &error);
      break;
    case PTO_REQUEST_CLOSE:
      self->chip->ops->stop (self->chip);
      break;
    default:
      g_set_error (&error, PTO_ERROR, PTO_ERROR_INTERNAL, _ ("request %d is unknown"),
                   (int) call->request);
    }
  return pto_failure_take_error (failure, error, TRUE);
}

/* A function of its own: tests/tsan.supp names it, since the parent orders the two lanes, which the
 * thread sanitizer of this process does not see. */
static uint32_t
serve_control (void *data, const struct pto_call *call, struct pto_failure *failure)
{
  IsolatedChild *self = data;
  GError *error = NULL;

  switch (call->request)
    {
    case PTO_REQUEST_REGISTER:
      add (self, call, &error);
      break;
    case PTO_REQUEST_UNREGISTER:
      remove_target (self, call->digest);
      break;
    case PTO_REQUEST_INSTRUMENT:
      instrument (self, call->digest, &error);
      break;
    case PTO_REQUEST_TRACE:
      tell_trace (self);
      break;
    case PTO_REQUEST_GRAPH:
      keep_graph (self, call, &error);
      break;
    case PTO_REQUEST_FORGET:
      forget_graph (self, call, &error);
      break;
    case PTO_REQUEST_CAPTURED:
      tell_captured (self);
      break;
    default:
      g_set_error (&error, PTO_ERROR, PTO_ERROR_INTERNAL, _ ("request %d is unknown"),
                   (int) call->request);
    }
  return pto_failure_take_error (failure, error, TRUE);
}

void
pto_isolated_child_get_server (IsolatedChild *self, guint lane, struct pto_server *server)
{
  server->serve = lane == PTO_ISOLATED_LANE_RUN ? serve_runs : serve_control;
  server->data = self;
  server->probe = pto_child_probe;
}
