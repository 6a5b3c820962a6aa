/* pto-worker.c: how does a program hold a machine and run task graphs on it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Life, properties, and who has taken the machine.
 */
#include "config.h"

#include "pto-worker-private.h"

#include "process/process.h"

#include "pto-compiler-private.h"
#include "pto-enums.h"
#include "pto-error-private.h"
#include "pto-log-private.h"
#include "pto-orchestrator-private.h"
#include "pto-override-private.h"
#include "pto-platform.h"

#include <unistd.h>

#define DEFAULT_LEVEL 2

enum
{
  PROP_LEVEL = 1,
  PROP_PLATFORM,
  PROP_DEVICE_ID,
  PROP_N_SUB_WORKERS,
  PROP_DEVICE_IDS,
  PROP_HEAP_RING_SIZE,
  PROP_ISOLATE,
  PROP_CHILD_MODE,
  PROP_RESTART,
  PROP_PATH,
  PROP_STATE,
  N_PROPERTIES
};

enum
{
  SIGNAL_PROGRESS,
  N_SIGNALS
};

static GParamSpec *properties[N_PROPERTIES];
static guint signals[N_SIGNALS];

/**
 * PtoWorker:
 *
 * A machine that runs task graphs: a simulated chip, several chips of a host, or workers of
 * workers.
 *
 * A worker is made, given parameters, initialized, and then runs any number of graphs, one after
 * the other: an orchestration that was registered ([method@Pto.Worker.run_callable]) or a function
 * of the program ([method@Pto.Worker.run]). Its threads and processes live from
 * [method@Pto.Worker.init] to [method@Pto.Worker.close]. After a run that failed, the next one
 * works.
 *
 * A worker of level 2 is a chip: its tasks are kernels. One of level 3 or up has children: chips
 * and other workers, which run what is submitted with
 * [method@Pto.Orchestrator.submit_next_level], and SUB workers, which run functions
 * ([method@Pto.Orchestrator.submit_sub]). Each child is a process, so that what crashes or hangs
 * there fails its task and nothing else. When this process ends, however it does, its children end.
 *
 * A run is cancelled with a #GCancellable; the error is then %G_IO_ERROR_CANCELLED. A run that was
 * cancelled before the last of its tasks had ended never succeeds: no other task begins, and those
 * that run are waited for. A kernel is given an eighth of the parameter `timeout` for that, counted
 * from its begin; a child process 30 ms, or 60 ms if it has children of its own.
 *
 * `G_MESSAGES_DEBUG=Pto` shows what orchestrations log.
 *
 * Source: seed 001, seed 003. Thread safety: any thread. The machine is used by one thread at a
 * time, another one waits. Signals are emitted in the main context that was the thread's default
 * when the worker was made. A fork leaves the worker unusable in the child: calls are refused with
 * %PTO_ERROR_BUSY.
 *
 * Since: 0.1
 */
/* pto_worker_init() is a method of the interface, so that the type's own functions are called
 * otherwise. */
GType pto_worker_object_get_type (void);
G_DEFINE_FINAL_TYPE_WITH_CODE (PtoWorker, pto_worker_object, G_TYPE_OBJECT, pto_override_look ())

/**
 * pto_worker_get_type:
 *
 * Gives the type.
 *
 * Returns: a type
 *
 * Since: 0.1
 */
GType
pto_worker_get_type (void)
{
  return pto_worker_object_get_type ();
}

/* --- signals in the owner's context --- */

typedef struct
{
  PtoWorker *self;
  guint done; /* 0: the state has changed */
  guint total;
  char *name;
  gboolean cached;
} Emission;

static gboolean
emit (gpointer data)
{
  Emission *emission = data;

  if (emission->done == 0)
    g_object_notify_by_pspec (G_OBJECT (emission->self), properties[PROP_STATE]);
  else
    g_signal_emit (emission->self, signals[SIGNAL_PROGRESS], 0, emission->done, emission->total,
                   emission->name, emission->cached);
  return G_SOURCE_REMOVE;
}

static void
emission_free (gpointer data)
{
  Emission *emission = data;

  g_object_unref (emission->self);
  g_free (emission->name);
  g_free (emission);
}

static void
emit_in_context (PtoWorker *self, guint done, guint total, const char *name, gboolean cached)
{
  Emission *emission;

  /* In a child nobody listens: handlers and their main context are its parent's. */
  if (self->serves)
    return;
  emission = g_new0 (Emission, 1);
  emission->self = g_object_ref (self);
  emission->done = done;
  emission->total = total;
  emission->name = g_strdup (name);
  emission->cached = cached;
  if (g_thread_self () == self->owner)
    {
      emit (emission);
      emission_free (emission);
    }
  else
    g_main_context_invoke_full (self->context, G_PRIORITY_DEFAULT, emit, emission, emission_free);
}

void
pto_worker_report_progress (const PtoCompilerJob *job, guint done, guint total, gpointer user_data)
{
  emit_in_context (user_data, done, total, job->label, job->was_cached);
}

/* --- taking the machine --- */

static void
wake_waiters (GCancellable *cancellable, gpointer data)
{
  PtoWorker *self = data;

  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->idle);
  g_mutex_unlock (&self->lock);
}

gboolean
pto_worker_is_foreign (PtoWorker *self)
{
  int process = g_atomic_int_get (&self->process);

  return process != 0 && process != getpid ();
}

gboolean
pto_worker_check_process (PtoWorker *self, GError **error)
{
  g_autofree char *path = NULL;

  if (!pto_worker_is_foreign (self))
    return TRUE;
  path = pto_worker_get_path (self);
  g_set_error (error, PTO_ERROR, PTO_ERROR_BUSY,
               "worker %s belongs to process %d, and this one is a copy of it: use it there", path,
               g_atomic_int_get (&self->process));
  return FALSE;
}

gboolean
pto_worker_check_open (PtoWorker *self, GError **error)
{
  if (self->state != PTO_WORKER_STATE_CLOSED && !g_atomic_int_get (&self->closing))
    return TRUE;
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_CLOSED, "the worker is closed");
  return FALSE;
}

/* With the lock. */
static PtoOrchestrator *
get_own_orchestrator (PtoWorker *self)
{
  return self->current != NULL && pto_orchestrator_is_own_thread (self->current) ? self->current
                                                                                 : NULL;
}

PtoOrchestrator *
pto_worker_get_own_orchestrator (PtoWorker *self)
{
  PtoOrchestrator *orchestrator;

  g_mutex_lock (&self->lock);
  orchestrator = get_own_orchestrator (self);
  g_mutex_unlock (&self->lock);
  return orchestrator;
}

/* With the lock: the machine, or why it can not be had. */
static gboolean
take_locked (PtoWorker *self, gboolean is_asynchronous, GCancellable *cancellable, GError **error)
{
  for (;;)
    {
      if (self->state == PTO_WORKER_STATE_CLOSED || g_atomic_int_get (&self->closing))
        {
          g_set_error_literal (error, PTO_ERROR, PTO_ERROR_CLOSED, "the worker is closed");
          return FALSE;
        }
      if (self->state == PTO_WORKER_STATE_NEW)
        {
          g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NOT_INITIALIZED,
                               "the worker is not initialized: call pto_worker_init() first");
          return FALSE;
        }
      if (pto_error_set_if_cancelled (cancellable, error))
        return FALSE;
      if (!self->in_use)
        break;
      if (self->user == g_thread_self () || get_own_orchestrator (self) != NULL)
        {
          g_set_error_literal (
              error, PTO_ERROR, PTO_ERROR_BUSY,
              "an orchestration function can not use its own worker for another run");
          return FALSE;
        }
      if (!is_asynchronous && self->waiting_functions > 0)
        {
          g_set_error_literal (
              error, PTO_ERROR, PTO_ERROR_BUSY,
              "an asynchronous run whose orchestration function may need this thread is under way: "
              "wait for it to finish first");
          return FALSE;
        }
      g_cond_wait (&self->idle, &self->lock);
    }
  self->in_use = TRUE;
  self->user = g_thread_self ();
  self->cancellable = cancellable;
  return TRUE;
}

gboolean
pto_worker_take (PtoWorker *self, gboolean is_asynchronous, GCancellable *cancellable,
                 GError **error)
{
  gulong handler = 0;
  gboolean taken;

  if (!pto_worker_check_process (self, error))
    return FALSE;
  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (wake_waiters), self, NULL);
  g_mutex_lock (&self->lock);
  taken = take_locked (self, is_asynchronous, cancellable, error);
  g_mutex_unlock (&self->lock);
  g_cancellable_disconnect (cancellable, handler);
  return taken;
}

/* Is something that processes below wrote lost? No lock is held. */
static void
tell_unheard (PtoWorker *self)
{
  int error = pto_process_take_unheard ();

  if (error != 0)
    {
      g_autofree char *path = pto_worker_get_path (self);

      pto_log (G_LOG_LEVEL_WARNING,
               "%s: not all that the processes of workers write to standard error can be passed on "
               "to ours, the rest is left out: %s",
               path, g_strerror (error));
    }
}

void
pto_worker_give_back (PtoWorker *self)
{
  GPtrArray *retired;
  gboolean close_now;

  g_mutex_lock (&self->lock);
  retired = pto_worker_steal_retired (self);
  pto_worker_free_unused_blocks (self);
  self->in_use = FALSE;
  self->user = NULL;
  self->cancellable = NULL;
  close_now = self->close_when_idle;
  g_cond_broadcast (&self->idle);
  g_mutex_unlock (&self->lock);
  pto_worker_remove_retired (self, retired);
  tell_unheard (self);
  if (close_now)
    pto_worker_close (self);
}

/* --- construction --- */

static void
pto_worker_object_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  PtoWorker *self = PTO_WORKER (object);

  switch (id)
    {
    case PROP_LEVEL:
      g_value_set_uint (value, self->level);
      break;
    case PROP_PLATFORM:
      g_value_set_string (value, self->platform);
      break;
    case PROP_DEVICE_ID:
      g_value_set_uint (value, self->device_id);
      break;
    case PROP_N_SUB_WORKERS:
      g_value_set_uint (value, self->n_sub_workers);
      break;
    case PROP_DEVICE_IDS:
      g_value_set_variant (value, self->device_ids);
      break;
    case PROP_HEAP_RING_SIZE:
      g_value_set_uint64 (value, pto_worker_get_heap_ring_size (self));
      break;
    case PROP_ISOLATE:
      g_value_set_boolean (value, pto_worker_get_isolate (self));
      break;
    case PROP_CHILD_MODE:
      g_value_set_enum (value, self->child_mode);
      break;
    case PROP_RESTART:
      g_value_set_enum (value, self->restart);
      break;
    case PROP_PATH:
      g_value_take_string (value, pto_worker_get_path (self));
      break;
    case PROP_STATE:
      g_value_set_enum (value, pto_worker_get_state (self));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
pto_worker_object_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  PtoWorker *self = PTO_WORKER (object);

  switch (id)
    {
    case PROP_LEVEL:
      self->level = g_value_get_uint (value);
      break;
    case PROP_PLATFORM:
      g_free (self->platform);
      self->platform = g_value_dup_string (value);
      if (self->platform == NULL)
        self->platform = g_strdup (PTO_DEFAULT_PLATFORM);
      break;
    case PROP_DEVICE_ID:
      self->device_id = g_value_get_uint (value);
      break;
    case PROP_N_SUB_WORKERS:
      self->n_sub_workers = g_value_get_uint (value);
      break;
    case PROP_DEVICE_IDS:
      self->device_ids = g_value_dup_variant (value);
      break;
    case PROP_HEAP_RING_SIZE:
      self->heap_ring_size = g_value_get_uint64 (value);
      break;
    case PROP_ISOLATE:
      self->isolate = g_value_get_boolean (value);
      break;
    case PROP_CHILD_MODE:
      self->child_mode = g_value_get_enum (value);
      break;
    case PROP_RESTART:
      self->restart = g_value_get_enum (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

/* The parameter, said as a property. */
static void
set_heap (PtoWorker *self)
{
  struct pto_report report = { 0 };
  char text[24];
  enum pto_status status;

  if (self->heap_ring_size == 0 || self->params_error != NULL)
    return;
  g_snprintf (text, sizeof text, "%" G_GUINT64_FORMAT, self->heap_ring_size);
  status = pto_params_set (&self->params, pto_param_name (PTO_PARAMETER_HEAP), text, &report);
  if (status != PTO_OK)
    pto_error_set_from_report (&self->params_error, status, &report);
}

/* The parameter, said as a property. */
static void
set_isolate (PtoWorker *self)
{
  if (!self->isolate || self->params_error != NULL)
    return;
  if (self->level == DEFAULT_LEVEL)
    self->params.values[PTO_PARAMETER_ISOLATE] = 1;
  else
    g_set_error (&self->params_error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                 "isolate is for one chip: what is below a worker of level %u is processes already",
                 self->level);
}

gboolean
pto_worker_wants_isolation (PtoWorker *self)
{
  return self->level == DEFAULT_LEVEL && self->parent == NULL
         && self->params.values[PTO_PARAMETER_ISOLATE] != 0;
}

gboolean
pto_worker_choose_machine (PtoWorker *self)
{
  gboolean isolate = pto_worker_wants_isolation (self);

  if (self->machine != NULL && self->is_isolated == isolate)
    return TRUE;
  if (self->machine != NULL && !pto_registry_is_empty (self->registry))
    return FALSE;
  if (self->machine != NULL)
    self->machine->ops->free (self->machine);
  self->is_isolated = isolate;
  if (isolate)
    self->machine = pto_machine_new_isolated (self, &self->params);
  else if (self->level == DEFAULT_LEVEL)
    self->machine = pto_machine_new_chip (self, &self->params);
  else if (self->level > DEFAULT_LEVEL && self->level <= PTO_MAX_LEVEL)
    self->machine = pto_machine_new_level (self, &self->params);
  return TRUE;
}

static void
pto_worker_object_constructed (GObject *object)
{
  PtoWorker *self = PTO_WORKER (object);

  set_isolate (self);
  pto_worker_choose_machine (self);
  set_heap (self);
  pto_worker_make_devices (self);
  if (self->n_sub_workers > 0 && self->level <= DEFAULT_LEVEL && self->params_error == NULL)
    g_set_error (&self->params_error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                 "level %u has no SUB workers: that begins with 3", self->level);
  if (self->level <= DEFAULT_LEVEL && self->params_error == NULL
      && (self->child_mode != PTO_CHILD_MODE_PROCESS || self->restart != PTO_RESTART_NEVER))
    g_set_error (&self->params_error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                 "the property %s has no effect on level %u, which has no children: that begins "
                 "with 3",
                 self->restart != PTO_RESTART_NEVER ? "restart" : "child-mode", self->level);
  G_OBJECT_CLASS (pto_worker_object_parent_class)->constructed (object);
}

static void
pto_worker_object_dispose (GObject *object)
{
  pto_worker_close (PTO_WORKER (object));
  G_OBJECT_CLASS (pto_worker_object_parent_class)->dispose (object);
}

static void
pto_worker_object_finalize (GObject *object)
{
  PtoWorker *self = PTO_WORKER (object);

  if (pto_worker_is_foreign (self))
    {
      /* What it holds may be half way through something in another thread of the parent. */
      G_OBJECT_CLASS (pto_worker_object_parent_class)->finalize (object);
      return;
    }
  pto_worker_clear_tree (self);
  g_free (self->platform);
  g_clear_error (&self->params_error);
  if (self->machine != NULL)
    self->machine->ops->free (self->machine);
  g_ptr_array_unref (self->retired);
  g_hash_table_unref (self->blocks);
  g_array_unref (self->unused_blocks);
  pto_registry_free (self->registry);
  g_async_queue_unref (self->queue);
  g_main_context_unref (self->context);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->idle);
  G_OBJECT_CLASS (pto_worker_object_parent_class)->finalize (object);
}

static void
pto_worker_object_class_init (PtoWorkerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = pto_worker_object_get_property;
  object_class->set_property = pto_worker_object_set_property;
  object_class->constructed = pto_worker_object_constructed;
  object_class->dispose = pto_worker_object_dispose;
  object_class->finalize = pto_worker_object_finalize;

  /**
   * PtoWorker:level: (getter get_level)
   *
   * The level of the machine: 2 is one chip, 3 several chips of a host, 4 workers of level 3.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_LEVEL]
      = g_param_spec_uint ("level", NULL, NULL, 0, G_MAXUINT, DEFAULT_LEVEL,
                           G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:platform: (getter get_platform)
   *
   * The name of the chips' platform; see [func@Pto.Platform.list_names].
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_PLATFORM]
      = g_param_spec_string ("platform", NULL, NULL, PTO_DEFAULT_PLATFORM,
                             G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:device-id: (getter get_device_id)
   *
   * The number of the device; simulated chips differ in nothing else.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_DEVICE_ID]
      = g_param_spec_uint ("device-id", NULL, NULL, 0, G_MAXUINT, 0,
                           G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:n-sub-workers: (getter get_n_sub_workers)
   *
   * How many SUB workers a worker of level 3 or up has: at most 256, with the others below it.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_N_SUB_WORKERS]
      = g_param_spec_uint ("n-sub-workers", NULL, NULL, 0, G_MAXUINT, 0,
                           G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:device-ids:
   *
   * The numbers of the devices of a worker of level 3, `au`: each is a chip, and their order gives
   * the workers' ids.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_DEVICE_IDS]
      = g_param_spec_variant ("device-ids", NULL, NULL, G_VARIANT_TYPE ("au"), NULL,
                              G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:heap-ring-size: (getter get_heap_ring_size)
   *
   * The bytes of each of the four heap rings; when it is made with 0, what the parameter `heap`
   * says. It is address space: memory is taken where it is used.
   *
   * Source: seed 001. Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_HEAP_RING_SIZE]
      = g_param_spec_uint64 ("heap-ring-size", NULL, NULL, 0, G_MAXUINT64, 0,
                             G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:isolate: (getter get_isolate)
   *
   * Whether the chip of a worker of level 2 is a process of its own; when it is made with %FALSE,
   * what the parameter `isolate` says.
   *
   * Then a kernel, or a registered orchestration, can do nothing to this process: whatever ends or
   * hangs it fails the run, with the name of the kernel, its task and its core, and the next run
   * begins another process. Results, times on the virtual clock, traces and statistics are the
   * same. Tensors in a [struct@Pto.Buffer] and device memory are shared; the memory of others is
   * copied at its first mention in a run, and copied back at its end, of an orchestration function
   * where a task was to write. A run costs some microseconds more.
   *
   * What is below a worker of level 3 or up is processes already: there it is refused.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_ISOLATE]
      = g_param_spec_boolean ("isolate", NULL, NULL, FALSE,
                              G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:child-mode: (getter get_child_mode)
   *
   * Whether chips and SUB workers below it are processes or threads of this one. A thread takes the
   * program with it when it crashes and can not be ended when it hangs; a worker of level 3 or up
   * is a process always.
   *
   * Source: seed 001. Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_CHILD_MODE]
      = g_param_spec_enum ("child-mode", NULL, NULL, PTO_TYPE_CHILD_MODE, PTO_CHILD_MODE_PROCESS,
                           G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:restart: (getter get_restart)
   *
   * What follows when a child process has died.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_RESTART]
      = g_param_spec_enum ("restart", NULL, NULL, PTO_TYPE_RESTART, PTO_RESTART_NEVER,
                           G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:path: (getter get_path)
   *
   * Its place in the tree of workers: `L4/0/L3/1`.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_PATH]
      = g_param_spec_string ("path", NULL, NULL, NULL, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:state: (getter get_state)
   *
   * Whether the worker is new, ready or closed.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_STATE]
      = g_param_spec_enum ("state", NULL, NULL, PTO_TYPE_WORKER_STATE, PTO_WORKER_STATE_NEW,
                           G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPERTIES, properties);

  /**
   * PtoWorker::progress:
   * @worker: the worker
   * @done: how many objects are built
   * @total: how many there are to build
   * @name: what was built: `kernel "add"`
   * @cached: whether it was there already
   *
   * A kernel or an orchestration that is being registered was built.
   *
   * Thread safety: emitted in the main context that was the thread's default when the worker was
   * made.
   *
   * Since: 0.1
   */
  signals[SIGNAL_PROGRESS]
      = g_signal_new ("progress", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                      G_TYPE_NONE, 4, G_TYPE_UINT, G_TYPE_UINT, G_TYPE_STRING, G_TYPE_BOOLEAN);
}

static void
pto_worker_object_init (PtoWorker *self)
{
  static gsize serials; /* atomic */
  struct pto_report report = { 0 };
  enum pto_status status;

  self->serial = (guint64) g_atomic_pointer_add (&serials, 1) + 1;
  self->context = g_main_context_ref_thread_default ();
  self->owner = g_thread_self ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->idle);
  self->registry = pto_registry_new (self->serial);
  self->retired = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_registration_unref);
  self->blocks = g_hash_table_new (g_int64_hash, g_int64_equal);
  self->unused_blocks = g_array_new (FALSE, FALSE, sizeof (guint64));
  self->queue = g_async_queue_new ();
  self->children = g_ptr_array_new_with_free_func (g_object_unref);

  pto_params_init (&self->params);
  status = pto_params_from_environment (&self->params, &report);
  if (status != PTO_OK)
    pto_error_set_from_report (&self->params_error, status, &report);
}

gboolean
pto_worker_check_level (guint level, GError **error)
{
  if (level >= DEFAULT_LEVEL && level <= PTO_MAX_LEVEL)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
               "there is no level %u in this version: 2 is one chip, 3 to %d are hosts of lower "
               "levels",
               level, PTO_MAX_LEVEL);
  return FALSE;
}

/**
 * pto_worker_new: (constructor)
 * @level: the level of the machine: 2 is one chip; from 3 on it has no children yet
 * @platform: (nullable): the name of a platform; `a2a3sim` when %NULL
 * @error: where to say why there is none
 *
 * Makes a worker; see also [ctor@Pto.Worker.new_host]. Its parameters are the defaults, or what the
 * environment says.
 *
 * Fails with %PTO_ERROR_NOT_SUPPORTED for another level, %PTO_ERROR_NOT_FOUND for an unknown
 * platform, and %PTO_ERROR_INVALID_ARGS for a bad value in the environment. Source: seed 003.
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a worker
 *
 * Since: 0.1
 */
PtoWorker *
pto_worker_new (guint level, const char *platform, GError **error)
{
  g_autoptr (PtoWorker) self = NULL;
  g_autoptr (PtoPlatform) description = NULL;

  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!pto_worker_check_level (level, error))
    return NULL;
  description = pto_platform_lookup (platform != NULL ? platform : PTO_DEFAULT_PLATFORM, error);
  if (description == NULL)
    return NULL;
  self = g_object_new (PTO_TYPE_WORKER, "level", level, "platform",
                       pto_platform_get_name (description), NULL);
  if (self->params_error != NULL)
    {
      g_propagate_error (error, g_error_copy (self->params_error));
      return NULL;
    }
  return g_steal_pointer (&self);
}

/**
 * pto_worker_new_chip: (constructor)
 * @platform: (nullable): the name of a platform; `a2a3sim` when %NULL
 * @error: where to say why there is none
 *
 * Makes a worker of level 2: one chip.
 *
 * Fails like [ctor@Pto.Worker.new]. Source: seed 003. Thread safety: any thread.
 *
 * Returns: (transfer full): a worker
 *
 * Since: 0.1
 */
PtoWorker *
pto_worker_new_chip (const char *platform, GError **error)
{
  return pto_worker_new (DEFAULT_LEVEL, platform, error);
}

/**
 * pto_worker_get_level: (get-property level)
 * @worker: a worker
 *
 * Gives the level of the machine.
 *
 * Thread safety: any thread.
 *
 * Returns: 2 for one chip, more for what has children
 *
 * Since: 0.1
 */
guint
pto_worker_get_level (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), 0);

  return worker->level;
}

/**
 * pto_worker_get_platform: (get-property platform)
 * @worker: a worker
 *
 * Gives the name of the platform.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): a name
 *
 * Since: 0.1
 */
const char *
pto_worker_get_platform (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  return worker->platform;
}

/**
 * pto_worker_get_device_id: (get-property device-id)
 * @worker: a worker
 *
 * Gives the number of the device.
 *
 * Thread safety: any thread.
 *
 * Returns: a number
 *
 * Since: 0.1
 */
guint
pto_worker_get_device_id (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), 0);

  return worker->device_id;
}

/**
 * pto_worker_get_state: (get-property state)
 * @worker: a worker
 *
 * Asks whether the worker is new, ready or closed.
 *
 * Thread safety: any thread.
 *
 * Returns: the state
 *
 * Since: 0.1
 */
PtoWorkerState
pto_worker_get_state (PtoWorker *worker)
{
  PtoWorkerState state;

  g_return_val_if_fail (PTO_IS_WORKER (worker), PTO_WORKER_STATE_CLOSED);

  g_mutex_lock (&worker->lock);
  state = worker->state;
  g_mutex_unlock (&worker->lock);
  return state;
}

/**
 * pto_worker_get_backend:
 * @worker: a worker
 *
 * Gives the back end, which the parameter `backend` chooses.
 *
 * Thread safety: any thread.
 *
 * Returns: a back end
 *
 * Since: 0.1
 */
PtoBackend
pto_worker_get_backend (PtoWorker *worker)
{
  PtoBackend backend;

  g_return_val_if_fail (PTO_IS_WORKER (worker), PTO_BACKEND_PAR);

  g_mutex_lock (&worker->lock);
  backend = (PtoBackend) worker->params.values[PTO_PARAMETER_BACKEND];
  g_mutex_unlock (&worker->lock);
  return backend;
}

/* --- life --- */

static gboolean
bring_up (PtoWorker *worker, GCancellable *cancellable, GError **error)
{
  g_autoptr (PtoPlatform) description = NULL;
  PtoMachine *machine;
  gulong handler = 0;
  gboolean is_ready = FALSE;
  gboolean ok = FALSE;

  if (pto_error_set_if_cancelled (cancellable, error) || !pto_worker_check_process (worker, error)
      || !pto_worker_check_level (worker->level, error))
    return FALSE;
  description = pto_platform_lookup (worker->platform, error);
  if (description == NULL)
    return FALSE;
  machine = worker->machine;

  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (wake_waiters), worker, NULL);
  g_mutex_lock (&worker->lock);
  while (worker->initializing && !g_cancellable_is_cancelled (cancellable))
    g_cond_wait (&worker->idle, &worker->lock);
  if (!pto_worker_check_open (worker, error) || pto_error_set_if_cancelled (cancellable, error))
    ;
  else if (worker->state == PTO_WORKER_STATE_READY)
    is_ready = TRUE;
  else if (worker->params_error != NULL)
    g_propagate_error (error, g_error_copy (worker->params_error));
  else
    worker->initializing = ok = TRUE;
  g_mutex_unlock (&worker->lock);
  g_cancellable_disconnect (cancellable, handler);
  if (!ok)
    return is_ready;

  /* Without the lock: a machine may fork. Parameters are not set meanwhile. */
  g_atomic_int_set (&worker->process, getpid ());
  ok = machine->ops->prepare (machine, error) && machine->ops->start (machine, cancellable, error);
  g_mutex_lock (&worker->lock);
  worker->initializing = FALSE;
  if (ok && !(is_ready = pto_worker_check_open (worker, error)))
    ok = FALSE;
  if (ok)
    worker->state = PTO_WORKER_STATE_READY;
  g_cond_broadcast (&worker->idle);
  g_mutex_unlock (&worker->lock);
  if (ok)
    emit_in_context (worker, 0, 0, NULL, FALSE);
  return ok;
}

/**
 * pto_worker_init:
 * @worker: a new worker
 * @cancellable: (nullable): ends what takes time
 * @error: where to say why not
 *
 * Makes the machine: its threads, rings and memory, and the processes of all workers below it,
 * which are up when this returns. Does nothing when that is done already.
 *
 * Child processes are forked first of all. They see what the program has registered and shared by
 * then; later registrations are sent to them. It is best called before the program has threads.
 *
 * The first failure in the tree is reported with its place in it. Fails with
 * %PTO_ERROR_INVALID_ARGS, %PTO_ERROR_NOT_SUPPORTED, %PTO_ERROR_NOT_FOUND, %PTO_ERROR_NO_MEMORY,
 * %PTO_ERROR_SYSTEM, %PTO_ERROR_WORKER_LOST, %PTO_ERROR_LOAD, %PTO_ERROR_TAMPERED,
 * %G_IO_ERROR_CANCELLED or %PTO_ERROR_CLOSED; then everything is taken down again, and it can be
 * called again. Fails with %PTO_ERROR_BUSY for a worker that is below another one. Source: seed 001
 * section 9, seed 003. Thread safety: any thread.
 *
 * Returns: %TRUE if the worker is ready
 *
 * Since: 0.1
 */
gboolean
pto_worker_init (PtoWorker *worker, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (worker->parent != NULL)
    {
      g_autofree char *path = pto_worker_get_path (worker);

      g_set_error (error, PTO_ERROR, PTO_ERROR_BUSY,
                   "%s is brought up by the worker above it: initialize that one", path);
      return FALSE;
    }
  return bring_up (worker, cancellable, error);
}

gboolean
pto_worker_bring_up (PtoWorker *self, GError **error)
{
  self->serves = TRUE;
  return bring_up (self, NULL, error);
}

static void
take_down (PtoWorker *worker, PtoWorkerState state)
{
  GPtrArray *retired;
  GThread *thread;

  if (pto_worker_is_foreign (worker))
    {
      worker->state = PTO_WORKER_STATE_CLOSED;
      return;
    }
  g_mutex_lock (&worker->lock);
  if (worker->state == PTO_WORKER_STATE_CLOSED)
    {
      g_mutex_unlock (&worker->lock);
      return;
    }
  g_atomic_int_set (&worker->closing, TRUE);
  g_cond_broadcast (&worker->idle);
  if (worker->gate != NULL)
    pto_gate_abandon (worker->gate);
  if (worker->in_use && (worker->user == g_thread_self () || get_own_orchestrator (worker) != NULL))
    {
      worker->close_when_idle = TRUE;
      g_mutex_unlock (&worker->lock);
      return;
    }
  if (worker->in_use)
    worker->machine->ops->cancel (worker->machine);
  while (worker->in_use || worker->initializing)
    g_cond_wait (&worker->idle, &worker->lock);
  if (worker->state == PTO_WORKER_STATE_CLOSED)
    {
      /* Another thread was faster. */
      g_mutex_unlock (&worker->lock);
      return;
    }
  if (worker->state == PTO_WORKER_STATE_READY)
    pto_worker_release_blocks (worker);
  worker->state = state;
  thread = g_steal_pointer (&worker->thread);
  retired = pto_worker_steal_retired (worker);
  pto_registry_clear (worker->registry, retired);
  g_mutex_unlock (&worker->lock);

  if (thread != NULL)
    pto_worker_end_jobs (worker, thread);
  /* The machine first: nothing in it holds a callable then. */
  if (worker->machine != NULL)
    worker->machine->ops->stop (worker->machine);
  pto_worker_remove_retired (worker, retired);
  tell_unheard (worker);
  if (state == PTO_WORKER_STATE_NEW)
    {
      g_atomic_int_set (&worker->process, 0);
      worker->serves = FALSE;
      g_atomic_int_set (&worker->closing, FALSE);
    }
  else
    emit_in_context (worker, 0, 0, NULL, FALSE);
}

void
pto_worker_take_down (PtoWorker *self)
{
  take_down (self, PTO_WORKER_STATE_NEW);
}

/**
 * pto_worker_close:
 * @worker: a worker
 *
 * Ends the worker: cancels and waits for what it runs, unloads what it has, ends its threads and
 * all processes below it. Can be called twice.
 *
 * Called inside an orchestration function, it cancels the run and takes effect when that has
 * ended. Runs that it has cancelled, and those that have not begun, fail with %PTO_ERROR_CLOSED;
 * %G_IO_ERROR_CANCELLED means that somebody has cancelled that very run. The last reference to a
 * worker closes it too.
 *
 * Source: seed 003. Thread safety: any thread.
 *
 * Since: 0.1
 */
void
pto_worker_close (PtoWorker *worker)
{
  g_return_if_fail (PTO_IS_WORKER (worker));

  take_down (worker, PTO_WORKER_STATE_CLOSED);
}
