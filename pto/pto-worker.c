/* pto-worker.c: how does a program hold a simulated chip and run task graphs on it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A chip is used by one thread at a time. Whoever needs it takes it in worker_take() and gives it
 * back in worker_give_back(); in between the worker's lock is not held. What the lock guards says
 * so.
 *
 * Lock order: worker > gate.
 */
#include "config.h"

#include "../sim/chip.h"

#include "pto-call-config-private.h"
#include "pto-callable-handle-private.h"
#include "pto-callable-private.h"
#include "pto-compiler-private.h"
#include "pto-enums.h"
#include "pto-error-private.h"
#include "pto-gate-private.h"
#include "pto-orchestrator-private.h"
#include "pto-platform.h"
#include "pto-run-statistics-private.h"
#include "pto-task-args-private.h"
#include "pto-tensor-private.h"
#include "pto-trace-private.h"
#include "pto-worker-private.h"

#include <dlfcn.h>
#include <string.h>

#define DEFAULT_LEVEL 2
#define DEFAULT_PLATFORM "a2a3sim"

/* What a shared object is asked for. */
typedef PTO2OrchestrationConfig (*ConfigFunc) (uint64_t *args, int arg_count);
typedef int (*EntryFunc) (PTO2Runtime *rt, uint64_t *args, int arg_count);
typedef void (*VoidEntryFunc) (PTO2Runtime *rt, uint64_t *args, int arg_count);
typedef void (*KernelFunc) (int64_t *args);

/* A callable that a worker has: built, loaded, counted. Reference-counted by g_atomic_rc_box: the
 * worker's table holds one, a run of it another. */
typedef struct
{
  PtoCallableHandle *handle;
  guint count;        /* worker's lock: calls of register that unregister has not answered */
  GPtrArray *modules; /* loaded objects, the first is the kernel's or the orchestration's */
  GPtrArray *memory;  /* names and cost tables that kernels point to */

  /* A kernel: its place among those that orchestration functions submit. */
  struct pto_kernel kernel;
  guint slot;

  /* An orchestration. */
  ConfigFunc config;
  EntryFunc entry;
  gboolean returns_int;
  struct pto_kernel *kernels; /* by function id */
  guint n_kernels;
} Registration;

struct _PtoWorker
{
  GObject parent_instance;

  /* Immutable once constructed. */
  guint level;
  char *platform;
  guint device_id;
  guint64 serial;
  GMainContext *context; /* where signals belong */
  GThread *owner;        /* whose default context that was */

  GMutex lock; /* guards all below unless it says otherwise */
  GCond idle;  /* the chip was given back, or the worker is being closed */
  PtoWorkerState state;
  int closing; /* atomic; also read by the chip at every wait */
  gboolean close_when_idle;
  gboolean in_use;
  GThread *user;            /* who has taken the chip */
  PtoOrchestrator *current; /* of the orchestration function under way */
  PtoGate *gate;            /* of the asynchronous orchestration function under way */
  guint waiting_functions;  /* asynchronous orchestration functions that are queued or under way */
  struct pto_params params; /* W: before init only */
  GError *params_error;     /* of the environment, told by init */

  struct pto_chip *chip; /* W: init, close; used by who has taken it */

  GHashTable *by_digest;   /* digest -> Registration, owned */
  GHashTable *by_callable; /* PtoCallable, owned -> Registration */
  struct pto_kernel
      *kernels;    /* PTO_MAX_KERNELS, those of orchestration functions; a run reads entries without
                    * the    lock, so that an entry changes only while it is not in use */
  guint n_kernels; /* used at some time */
  GPtrArray *retired; /* Registration: to be freed when the chip is idle */

  /* The last run. */
  guint64 runs;
  gboolean has_statistics;
  struct pto_chip_stats statistics;
  gboolean recorded;
  char **kernel_names;
  guint n_kernel_names;
  char *title;
  PtoTrace *trace; /* made on the first request */

  char *log_context; /* W: who has taken the chip */

  GThread *thread; /* of asynchronous runs; made by the first */
  GAsyncQueue *queue;
};

enum
{
  PROP_LEVEL = 1,
  PROP_PLATFORM,
  PROP_DEVICE_ID,
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
 * A simulated chip that runs task graphs.
 *
 * A worker is made, given parameters, initialized, and then runs any number of graphs, one after
 * the other: an orchestration that was registered ([method@Pto.Worker.run_callable]) or a function
 * of the program
 * ([method@Pto.Worker.run]). Its threads live from [method@Pto.Worker.init] to
 * [method@Pto.Worker.close]. After a run that failed, the next one works.
 *
 * A run is cancelled with a #GCancellable; the error is then %PTO_ERROR_CANCELLED.
 *
 * `G_MESSAGES_DEBUG=Pto` shows what orchestrations log.
 *
 * Source: seed 001, seed 003. Thread safety: any thread. The chip is used by one thread at a time,
 * another one waits. Signals are emitted in the main context that was the thread's default when the
 * worker was made. A fork leaves the worker unusable in the child.
 */
/* pto_worker_init() is a method of the interface, so that the type's own functions are called
 * otherwise. */
GType pto_worker_object_get_type (void);
G_DEFINE_FINAL_TYPE (PtoWorker, pto_worker_object, G_TYPE_OBJECT)

/**
 * pto_worker_get_type:
 *
 * Gives the type.
 *
 * Returns: a type
 */
GType
pto_worker_get_type (void)
{
  return pto_worker_object_get_type ();
}

/* --- registrations --- */

static void
registration_clear (gpointer data)
{
  Registration *registration = data;

  g_clear_pointer (&registration->handle, pto_callable_handle_unref);
  g_clear_pointer (&registration->modules, g_ptr_array_unref);
  g_clear_pointer (&registration->memory, g_ptr_array_unref);
  g_free (registration->kernels);
}

static void
registration_unref (gpointer data)
{
  g_atomic_rc_box_release_full (data, registration_clear);
}

/* With the lock, while the chip is idle or nothing uses it any more: frees a kernel's number. */
static void
free_slot (PtoWorker *self, Registration *registration)
{
  if (registration->kernel.name != NULL)
    memset (&self->kernels[registration->slot], 0, sizeof (struct pto_kernel));
}

/* With the lock: the registrations that can go now, to be unreferenced without it. */
static GPtrArray *
steal_retired (PtoWorker *self)
{
  GPtrArray *retired = self->retired;

  for (guint i = 0; i < retired->len; i++)
    free_slot (self, g_ptr_array_index (retired, i));
  self->retired = g_ptr_array_new_with_free_func (registration_unref);
  return retired;
}

/* Names by function id, NULL where there is none: for the record of a run. */
static char **
copy_kernel_names (const struct pto_kernel *kernels, guint n_kernels)
{
  char **names = g_new0 (char *, n_kernels + 1);

  for (guint i = 0; i < n_kernels; i++)
    names[i] = g_strdup (kernels[i].name);
  return names;
}

static void
clear_kernel_names (PtoWorker *self)
{
  for (guint i = 0; i < self->n_kernel_names; i++)
    g_free (self->kernel_names[i]);
  g_clear_pointer (&self->kernel_names, g_free);
  self->n_kernel_names = 0;
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
  Emission *emission = g_new0 (Emission, 1);

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

/* --- taking the chip --- */

static void
wake_waiters (GCancellable *cancellable, gpointer data)
{
  PtoWorker *self = data;

  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->idle);
  g_mutex_unlock (&self->lock);
}

/* With the lock: the chip, or why it can not be had. */
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
      if (self->user == g_thread_self ()
          || (self->current != NULL && pto_orchestrator_is_own_thread (self->current)))
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
  return TRUE;
}

static gboolean
worker_take (PtoWorker *self, gboolean is_asynchronous, GCancellable *cancellable, GError **error)
{
  gulong handler = 0;
  gboolean taken;

  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (wake_waiters), self, NULL);
  g_mutex_lock (&self->lock);
  taken = take_locked (self, is_asynchronous, cancellable, error);
  g_mutex_unlock (&self->lock);
  g_cancellable_disconnect (cancellable, handler);
  return taken;
}

static void
worker_give_back (PtoWorker *self)
{
  GPtrArray *retired;
  gboolean close_now;

  g_mutex_lock (&self->lock);
  retired = steal_retired (self);
  self->in_use = FALSE;
  self->user = NULL;
  close_now = self->close_when_idle;
  g_cond_broadcast (&self->idle);
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (retired);
  if (close_now)
    pto_worker_close (self);
}

/* --- construction --- */

static void
log_message (void *data, int32_t level, const char *message)
{
  PtoWorker *self = data;
  GLogLevelFlags flags = level <= PTO2_LOG_WARN   ? G_LOG_LEVEL_WARNING
                         : level == PTO2_LOG_INFO ? G_LOG_LEVEL_INFO
                                                  : G_LOG_LEVEL_DEBUG;

  g_log (G_LOG_DOMAIN, flags, "%s: %s",
         self->log_context != NULL ? self->log_context : "orchestration", message);
}

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
        self->platform = g_strdup (DEFAULT_PLATFORM);
      break;
    case PROP_DEVICE_ID:
      self->device_id = g_value_get_uint (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
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

  g_free (self->platform);
  g_clear_error (&self->params_error);
  g_hash_table_unref (self->by_callable);
  g_hash_table_unref (self->by_digest);
  g_ptr_array_unref (self->retired);
  g_free (self->kernels);
  clear_kernel_names (self);
  g_free (self->title);
  g_clear_object (&self->trace);
  g_free (self->log_context);
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
  object_class->dispose = pto_worker_object_dispose;
  object_class->finalize = pto_worker_object_finalize;

  /**
   * PtoWorker:level: (getter get_level)
   *
   * The level of the machine: 2 is one chip.
   *
   * Thread safety: any thread.
   */
  properties[PROP_LEVEL]
      = g_param_spec_uint ("level", NULL, NULL, 0, G_MAXUINT, DEFAULT_LEVEL,
                           G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:platform: (getter get_platform)
   *
   * The name of the platform; see [func@Pto.Platform.list_names].
   *
   * Thread safety: any thread.
   */
  properties[PROP_PLATFORM]
      = g_param_spec_string ("platform", NULL, NULL, DEFAULT_PLATFORM,
                             G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:device-id: (getter get_device_id)
   *
   * The number of the device; simulated chips differ in nothing else.
   *
   * Thread safety: any thread.
   */
  properties[PROP_DEVICE_ID]
      = g_param_spec_uint ("device-id", NULL, NULL, 0, G_MAXUINT, 0,
                           G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoWorker:state: (getter get_state)
   *
   * Whether the worker is new, ready or closed.
   *
   * Thread safety: any thread.
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
  self->by_digest = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, registration_unref);
  self->by_callable = g_hash_table_new_full (NULL, NULL, g_object_unref, NULL);
  self->kernels = g_new0 (struct pto_kernel, PTO_MAX_KERNELS);
  self->retired = g_ptr_array_new_with_free_func (registration_unref);
  self->queue = g_async_queue_new ();

  pto_params_init (&self->params);
  status = pto_params_from_environment (&self->params, &report);
  if (status != PTO_OK)
    pto_error_set_from_report (&self->params_error, status, &report);
}

static gboolean
check_level (guint level, GError **error)
{
  if (level == DEFAULT_LEVEL)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
               "there is no level %u in this version: the level that exists is 2 (one chip)",
               level);
  return FALSE;
}

/**
 * pto_worker_new: (constructor)
 * @level: the level of the machine: 2 (one chip)
 * @platform: (nullable): the name of a platform; `a2a3sim` when %NULL
 * @error: where to say why there is none
 *
 * Makes a worker. Its parameters are the defaults, or what the environment says.
 *
 * Fails with %PTO_ERROR_NOT_SUPPORTED for another level, %PTO_ERROR_NOT_FOUND for an unknown
 * platform, and %PTO_ERROR_INVALID_ARGS for a bad value in the environment. Source: seed 003.
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a worker
 */
PtoWorker *
pto_worker_new (guint level, const char *platform, GError **error)
{
  g_autoptr (PtoWorker) self = NULL;
  g_autoptr (PtoPlatform) description = NULL;

  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!check_level (level, error))
    return NULL;
  description = pto_platform_lookup (platform != NULL ? platform : DEFAULT_PLATFORM, error);
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
 * Returns: 2 for one chip
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

/* --- parameters --- */

static int
find_parameter (const char *name)
{
  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    if (strcmp (name, pto_param_name ((enum pto_param) i)) == 0)
      return i;
  return -1;
}

/**
 * pto_worker_set_parameter:
 * @worker: a worker that is not initialized
 * @name: a name of [func@Pto.Worker.list_parameters]
 * @value: its value as text; sizes may end in `K`, `M` or `G`
 * @error: where to say why not
 *
 * Sets a parameter of the chip: a ring size, the back end, the number of control threads.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, naming the parameter and its range, and with %PTO_ERROR_BUSY
 * when the worker is initialized already. Source: seed 000 section 14. Thread safety: any thread.
 *
 * Returns: %TRUE if it was set
 */
gboolean
pto_worker_set_parameter (PtoWorker *worker, const char *name, const char *value, GError **error)
{
  struct pto_report report = { 0 };
  enum pto_status status = PTO_OK;
  PtoWorkerState state;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (value != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  g_mutex_lock (&worker->lock);
  state = worker->state;
  if (state == PTO_WORKER_STATE_NEW)
    status = pto_params_set (&worker->params, name, value, &report);
  g_mutex_unlock (&worker->lock);
  if (state != PTO_WORKER_STATE_NEW)
    {
      g_set_error (error, PTO_ERROR,
                   state == PTO_WORKER_STATE_CLOSED ? PTO_ERROR_CLOSED : PTO_ERROR_BUSY,
                   "parameter %s can be set only before the worker is initialized", name);
      return FALSE;
    }
  if (status != PTO_OK)
    pto_error_set_from_report (error, status, &report);
  return status == PTO_OK;
}

/**
 * pto_worker_get_parameter:
 * @worker: a worker
 * @name: a name of [func@Pto.Worker.list_parameters]
 * @error: where to say why not
 *
 * Gives the value of a parameter.
 *
 * Fails with %PTO_ERROR_NOT_FOUND. Thread safety: any thread.
 *
 * Returns: (transfer full): its value as text
 */
char *
pto_worker_get_parameter (PtoWorker *worker, const char *name, GError **error)
{
  char text[256] = "";
  gboolean found;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  g_mutex_lock (&worker->lock);
  found = pto_params_get (&worker->params, name, text, sizeof text);
  g_mutex_unlock (&worker->lock);
  if (!found)
    {
      g_auto (GStrv) names = pto_worker_list_parameters ();
      g_autofree char *all = g_strjoinv (", ", names);

      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
                   "there is no parameter \"%s\": choose one of %s", name, all);
      return NULL;
    }
  return g_strdup (text);
}

/**
 * pto_worker_list_parameters:
 *
 * Gives the names of all parameters.
 *
 * Thread safety: any thread.
 *
 * Returns: (array zero-terminated=1) (transfer full): names
 */
char **
pto_worker_list_parameters (void)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    g_strv_builder_add (builder, pto_param_name ((enum pto_param) i));
  return g_strv_builder_end (builder);
}

/**
 * pto_worker_describe_parameter:
 * @name: a name of [func@Pto.Worker.list_parameters]
 *
 * Describes a parameter in one line.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): text; %NULL when there is no such parameter
 */
const char *
pto_worker_describe_parameter (const char *name)
{
  int i;

  g_return_val_if_fail (name != NULL, NULL);

  i = find_parameter (name);
  return i >= 0 ? pto_param_description ((enum pto_param) i) : NULL;
}

/**
 * pto_worker_get_parameter_variable:
 * @name: a name of [func@Pto.Worker.list_parameters]
 *
 * Gives the environment variable that a new worker takes a parameter from.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): a name; %NULL when there is none
 */
const char *
pto_worker_get_parameter_variable (const char *name)
{
  int i;

  g_return_val_if_fail (name != NULL, NULL);

  i = find_parameter (name);
  return i >= 0 ? pto_param_variable ((enum pto_param) i) : NULL;
}

/* --- life --- */

/**
 * pto_worker_init:
 * @worker: a new worker
 * @cancellable: (nullable): asked before anything is made
 * @error: where to say why not
 *
 * Makes the chip: its threads, rings and memory. Does nothing when that is done already.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS, %PTO_ERROR_NOT_SUPPORTED, %PTO_ERROR_NOT_FOUND,
 * %PTO_ERROR_NO_MEMORY, %PTO_ERROR_SYSTEM, %PTO_ERROR_CANCELLED or %PTO_ERROR_CLOSED; then it can
 * be called again. Source: seed 003. Thread safety: any thread.
 *
 * Returns: %TRUE if the worker is ready
 */
gboolean
pto_worker_init (PtoWorker *worker, GCancellable *cancellable, GError **error)
{
  g_autoptr (PtoPlatform) description = NULL;
  struct pto_report report = { 0 };
  gboolean ready = FALSE;
  gboolean changed = FALSE;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (pto_error_set_if_cancelled (cancellable, error) || !check_level (worker->level, error))
    return FALSE;
  description = pto_platform_lookup (worker->platform, error);
  if (description == NULL)
    return FALSE;

  g_mutex_lock (&worker->lock);
  if (worker->state == PTO_WORKER_STATE_CLOSED || g_atomic_int_get (&worker->closing))
    g_set_error_literal (error, PTO_ERROR, PTO_ERROR_CLOSED, "the worker is closed");
  else if (worker->state == PTO_WORKER_STATE_READY)
    ready = TRUE;
  else if (worker->params_error != NULL)
    g_propagate_error (error, g_error_copy (worker->params_error));
  else
    {
      worker->chip = pto_chip_new (pto_platform_find (worker->platform), &worker->params, &report);
      if (worker->chip == NULL)
        pto_error_set_from_report (error, PTO_STATUS_SYSTEM, &report);
      else
        {
          pto_chip_set_log (worker->chip, log_message, worker);
          worker->state = PTO_WORKER_STATE_READY;
          ready = changed = TRUE;
        }
    }
  g_mutex_unlock (&worker->lock);
  if (changed)
    emit_in_context (worker, 0, 0, NULL, FALSE);
  return ready;
}

/* An asynchronous run. */
typedef struct
{
  GTask *task;               /* owned; its source is the worker */
  PtoOrchestrationFunc func; /* NULL: a registered orchestration */
  gpointer data;
  GDestroyNotify destroy;
  PtoGate *gate;
  PtoCallableHandle *handle;
  PtoTaskArgs *args;
  PtoCallConfig *config;
  GError *error; /* of the run */
} Job;

/* Tells the thread of asynchronous runs to end. */
static Job end_of_jobs;

/**
 * pto_worker_close:
 * @worker: a worker
 *
 * Ends the worker: cancels and waits for what it runs, unloads what it has, ends its threads. Can
 * be called twice.
 *
 * Called inside an orchestration function, it cancels the run and takes effect when that has ended.
 * Asynchronous runs that have not begun fail with %PTO_ERROR_CLOSED. The last reference to a worker
 * closes it too.
 *
 * Source: seed 003. Thread safety: any thread.
 */
void
pto_worker_close (PtoWorker *worker)
{
  GPtrArray *retired;
  GHashTable *by_digest;
  GHashTable *by_callable;
  struct pto_chip *chip;
  GThread *thread;

  g_return_if_fail (PTO_IS_WORKER (worker));

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
  if (worker->in_use
      && (worker->user == g_thread_self ()
          || (worker->current != NULL && pto_orchestrator_is_own_thread (worker->current))))
    {
      worker->close_when_idle = TRUE;
      g_mutex_unlock (&worker->lock);
      return;
    }
  while (worker->in_use)
    g_cond_wait (&worker->idle, &worker->lock);
  if (worker->state == PTO_WORKER_STATE_CLOSED)
    {
      /* Another thread was faster. */
      g_mutex_unlock (&worker->lock);
      return;
    }
  worker->state = PTO_WORKER_STATE_CLOSED;
  thread = g_steal_pointer (&worker->thread);
  chip = g_steal_pointer (&worker->chip);
  g_clear_object (&worker->trace);
  worker->recorded = FALSE;
  retired = steal_retired (worker);
  by_callable = worker->by_callable;
  by_digest = worker->by_digest;
  worker->by_callable = g_hash_table_new_full (NULL, NULL, g_object_unref, NULL);
  worker->by_digest = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, registration_unref);
  g_mutex_unlock (&worker->lock);

  if (thread != NULL)
    {
      g_async_queue_push (worker->queue, &end_of_jobs);
      if (thread == g_thread_self ())
        g_thread_unref (thread);
      else
        g_thread_join (thread);
    }
  /* The chip first: its cores hold no kernel then. */
  if (chip != NULL)
    pto_chip_free (chip);
  g_ptr_array_unref (retired);
  g_hash_table_unref (by_callable);
  g_hash_table_unref (by_digest);
  memset (worker->kernels, 0, sizeof (struct pto_kernel) * worker->n_kernels);
  emit_in_context (worker, 0, 0, NULL, FALSE);
}

/* --- register --- */

static void
unload (gpointer module)
{
  pto_compiler_unload (module);
}

static void
report_progress (const PtoCompilerJob *job, guint done, guint total, gpointer user_data)
{
  emit_in_context (user_data, done, total, job->label, job->was_cached);
}

/* What a kernel is, beside its code. */
static void
digest_kernel (GChecksum *checksum, PtoCallable *kernel, const char *name,
               const PtoCompilerJob *job)
{
  g_autofree char *text = g_strdup_printf ("kernel\n%d\n%s\n%s\n%s\n%s\n", (int) kernel->core_type,
                                           job->digest, kernel->symbol, kernel->cost_text, name);

  g_checksum_update (checksum, (const guchar *) text, -1);
  if (kernel->signature != NULL)
    for (guint i = 0; i < kernel->signature->len; i++)
      {
        guchar direction = (guchar) ('0' + g_array_index (kernel->signature, PtoDirection, i));

        g_checksum_update (checksum, &direction, 1);
      }
}

static gboolean
load_kernel (Registration *registration, PtoCallable *callable, const char *name,
             const PtoCompilerJob *job, struct pto_kernel *kernel, GError **error)
{
  struct pto_cost_point *points;
  gpointer module = pto_compiler_load (job, error);
  gpointer entry;

  if (module == NULL)
    return FALSE;
  g_ptr_array_add (registration->modules, module);
  entry = pto_compiler_find_symbol (module, job, callable->symbol, "(int64_t *)", error);
  if (entry == NULL)
    return FALSE;
  kernel->name = g_strdup (name);
  g_ptr_array_add (registration->memory, (gpointer) kernel->name);
  kernel->entry = (KernelFunc) entry;
  kernel->core_type = callable->core_type == PTO_CORE_AIC ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV;
  kernel->cost = pto_callable_dup_cost (callable, &points);
  if (points != NULL)
    g_ptr_array_add (registration->memory, points);
  return TRUE;
}

static gboolean
load_orchestration (Registration *registration, PtoCallable *callable, const PtoCompilerJob *jobs,
                    GError **error)
{
  gpointer module = pto_compiler_load (&jobs[0], error);
  const int *marker;
  gpointer symbol;

  if (module == NULL)
    return FALSE;
  g_ptr_array_add (registration->modules, module);
  symbol = pto_compiler_find_symbol (module, &jobs[0], callable->symbol,
                                     "(PTO2Runtime *, uint64_t *, int)", error);
  if (symbol == NULL)
    return FALSE;
  registration->entry = (EntryFunc) symbol;
  symbol = pto_compiler_find_symbol (module, &jobs[0], "aicpu_orchestration_config",
                                     "(uint64_t *, int)", error);
  if (symbol == NULL)
    return FALSE;
  registration->config = (ConfigFunc) symbol;
  /* An object that somebody built does not say what its entry returns: nothing is made of it. */
  marker = dlsym (module, PTO_COMPILER_RETURNS_INT);
  registration->returns_int = marker != NULL && *marker != 0;

  registration->n_kernels = pto_callable_get_n_kernels (callable);
  registration->kernels = g_new0 (struct pto_kernel, MAX (registration->n_kernels, 1));
  for (guint i = 0; i < callable->kernels->len; i++)
    {
      PtoChipKernel *entry = &g_array_index (callable->kernels, PtoChipKernel, i);

      if (!load_kernel (registration, entry->kernel, entry->name, &jobs[1 + i],
                        &registration->kernels[entry->func_id], error))
        return FALSE;
    }
  return TRUE;
}

/* Everything that has to be built for a callable: itself first. */
static PtoCompilerJob *
make_jobs (PtoCallable *callable, guint *n_jobs)
{
  guint n_kernels = callable->kernels != NULL ? callable->kernels->len : 0;
  PtoCompilerJob *jobs = g_new0 (PtoCompilerJob, 1 + n_kernels);

  *n_jobs = 1 + n_kernels;
  jobs[0].path = callable->path;
  jobs[0].language = callable->language;
  jobs[0].label = g_strdup_printf (callable->kind == PTO_CALLABLE_KERNEL ? "kernel \"%s\""
                                                                         : "orchestration \"%s\"",
                                   callable->name);
  if (callable->kind == PTO_CALLABLE_CHIP)
    jobs[0].entry = callable->symbol;
  for (guint i = 0; i < n_kernels; i++)
    {
      PtoChipKernel *entry = &g_array_index (callable->kernels, PtoChipKernel, i);

      jobs[1 + i].path = entry->kernel->path;
      jobs[1 + i].language = entry->kernel->language;
      jobs[1 + i].label = g_strdup_printf ("kernel \"%s\"", entry->name);
    }
  return jobs;
}

static void
free_jobs (PtoCompilerJob *jobs, guint n_jobs)
{
  for (guint i = 0; i < n_jobs; i++)
    {
      g_free ((gpointer) jobs[i].label);
      pto_compiler_job_clear (&jobs[i]);
    }
  g_free (jobs);
}

/* The name of the content: what was built, and how it is to be used. */
static char *
make_digest (PtoCallable *callable, const PtoCompilerJob *jobs)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);

  if (callable->kind == PTO_CALLABLE_KERNEL)
    digest_kernel (checksum, callable, callable->name, &jobs[0]);
  else
    {
      g_autofree char *text = g_strdup_printf ("orchestration\n%s\n%s\n%s\n", jobs[0].digest,
                                               callable->symbol, callable->name);

      g_checksum_update (checksum, (const guchar *) text, -1);
      for (guint i = 0; i < callable->kernels->len; i++)
        {
          PtoChipKernel *entry = &g_array_index (callable->kernels, PtoChipKernel, i);
          g_autofree char *id = g_strdup_printf ("\n%u\n", entry->func_id);

          g_checksum_update (checksum, (const guchar *) id, -1);
          digest_kernel (checksum, entry->kernel, entry->name, &jobs[1 + i]);
        }
    }
  return g_strdup (g_checksum_get_string (checksum));
}

/* With the lock: a registration that is there already, counted once more. */
static Registration *
count_known (PtoWorker *self, PtoCallable *callable, const char *digest)
{
  Registration *known = g_hash_table_lookup (self->by_digest, digest);

  if (known != NULL)
    {
      known->count++;
      g_hash_table_insert (self->by_callable, g_object_ref (callable), known);
    }
  return known;
}

/* With the lock. */
static gboolean
give_slot (PtoWorker *self, Registration *registration, GError **error)
{
  for (guint i = 0; i < PTO_MAX_KERNELS; i++)
    if (self->kernels[i].name == NULL)
      {
        self->kernels[i] = registration->kernel;
        self->n_kernels = MAX (self->n_kernels, i + 1);
        registration->slot = i;
        return TRUE;
      }
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               "a worker holds at most %u kernels for its orchestration functions: unregister some",
               PTO_MAX_KERNELS);
  return FALSE;
}

static gboolean
check_open (PtoWorker *self, GError **error)
{
  if (self->state != PTO_WORKER_STATE_CLOSED && !g_atomic_int_get (&self->closing))
    return TRUE;
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_CLOSED, "the worker is closed");
  return FALSE;
}

/* With the lock: what register and unregister count, once the registration has been made. */
static Registration *
add_registration (PtoWorker *self, PtoCallable *callable, const char *digest, Registration *fresh,
                  GError **error)
{
  Registration *known = count_known (self, callable, digest);

  if (known != NULL)
    {
      registration_unref (fresh);
      return known;
    }
  if (!check_open (self, error)
      || (callable->kind == PTO_CALLABLE_KERNEL && !give_slot (self, fresh, error)))
    {
      registration_unref (fresh);
      return NULL;
    }
  fresh->count = 1;
  g_hash_table_insert (self->by_digest, g_strdup (digest), fresh);
  g_hash_table_insert (self->by_callable, g_object_ref (callable), fresh);
  return fresh;
}

static PtoCallableHandle *
register_callable (PtoWorker *self, PtoCallable *callable, GCancellable *cancellable,
                   GError **error)
{
  PtoCallableHandle *handle = NULL;
  Registration *registration;
  g_autofree char *digest = NULL;
  gboolean is_open;
  gboolean loaded;
  guint n_jobs;
  PtoCompilerJob *jobs;

  g_mutex_lock (&self->lock);
  is_open = check_open (self, error);
  g_mutex_unlock (&self->lock);
  if (!is_open)
    return NULL;

  jobs = make_jobs (callable, &n_jobs);
  if (!pto_compiler_build (jobs, n_jobs, report_progress, self, cancellable, error))
    {
      free_jobs (jobs, n_jobs);
      return NULL;
    }
  digest = make_digest (callable, jobs);

  g_mutex_lock (&self->lock);
  registration = count_known (self, callable, digest);
  if (registration != NULL)
    handle = pto_callable_handle_ref (registration->handle);
  g_mutex_unlock (&self->lock);

  if (handle == NULL)
    {
      registration = g_atomic_rc_box_new0 (Registration);
      registration->handle = pto_callable_handle_new (self->serial, callable, digest);
      registration->modules = g_ptr_array_new_with_free_func (unload);
      registration->memory = g_ptr_array_new_with_free_func (g_free);
      loaded = callable->kind == PTO_CALLABLE_KERNEL
                   ? load_kernel (registration, callable, callable->name, &jobs[0],
                                  &registration->kernel, error)
                   : load_orchestration (registration, callable, jobs, error);
      if (!loaded)
        registration_unref (registration);
      else
        {
          g_mutex_lock (&self->lock);
          registration = add_registration (self, callable, digest, registration, error);
          if (registration != NULL)
            handle = pto_callable_handle_ref (registration->handle);
          g_mutex_unlock (&self->lock);
        }
    }
  free_jobs (jobs, n_jobs);
  return handle;
}

/**
 * pto_worker_register:
 * @worker: a worker
 * @callable: a kernel or an orchestration
 * @cancellable: (nullable): ends the compilers
 * @error: where to say why not
 *
 * Builds and loads a callable with all its kernels, several at once, and gives it a name.
 *
 * What is in the user's cache is not built again. Registrations are counted: the same content gives
 * the same handle, and [method@Pto.Worker.unregister] has to be called as often. Emits
 * [signal@Pto.Worker::progress] for each object.
 *
 * Fails with %PTO_ERROR_COMPILE (with the compiler's own text), %PTO_ERROR_LOAD (naming file and
 * missing function), %PTO_ERROR_CANCELLED, %PTO_ERROR_SYSTEM or %PTO_ERROR_CLOSED; then nothing is
 * registered. Source: seed 001 section 2. Thread safety: any thread.
 *
 * Returns: (transfer full): the name of the callable on this worker
 */
PtoCallableHandle *
pto_worker_register (PtoWorker *worker, PtoCallable *callable, GCancellable *cancellable,
                     GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  return register_callable (worker, callable, cancellable, error);
}

/* With the lock. */
static Registration *
find_registration (PtoWorker *self, PtoCallableHandle *handle, GError **error)
{
  Registration *registration = NULL;

  if (pto_callable_handle_get_owner (handle) == self->serial)
    registration = g_hash_table_lookup (self->by_digest, pto_callable_handle_get_digest (handle));
  if (registration == NULL)
    g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND, "\"%s\" is not registered on this worker%s",
                 pto_callable_get_name (pto_callable_handle_get_callable (handle)),
                 pto_callable_handle_get_owner (handle) == self->serial
                     ? " any more"
                     : ": its handle is of another worker");
  return registration;
}

static gboolean
is_registration (gpointer key, gpointer value, gpointer user_data)
{
  return value == user_data;
}

/**
 * pto_worker_unregister:
 * @worker: a worker
 * @handle: what [method@Pto.Worker.register] gave
 * @error: where to say why not
 *
 * Takes back one registration; the last one unloads the callable, at the end of a run that uses it.
 *
 * Fails with %PTO_ERROR_NOT_FOUND. Source: seed 001 section 2. Thread safety: any thread.
 *
 * Returns: %TRUE if it was registered
 */
gboolean
pto_worker_unregister (PtoWorker *worker, PtoCallableHandle *handle, GError **error)
{
  GPtrArray *retired = NULL;
  Registration *registration;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  g_mutex_lock (&worker->lock);
  registration = find_registration (worker, handle, error);
  if (registration != NULL && --registration->count == 0)
    {
      g_ptr_array_add (worker->retired, g_atomic_rc_box_acquire (registration));
      g_hash_table_foreach_remove (worker->by_callable, is_registration, registration);
      g_hash_table_remove (worker->by_digest, pto_callable_handle_get_digest (handle));
      if (!worker->in_use)
        retired = steal_retired (worker);
    }
  g_mutex_unlock (&worker->lock);
  g_clear_pointer (&retired, g_ptr_array_unref);
  return registration != NULL;
}

gboolean
pto_worker_find_kernel (PtoWorker *self, PtoCallable *kernel, gint32 *id, GError **error)
{
  if (kernel->kind != PTO_CALLABLE_KERNEL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "\"%s\" is an orchestration: a task runs a kernel", kernel->name);
      return FALSE;
    }
  for (gboolean retry = FALSE;; retry = TRUE)
    {
      g_autoptr (PtoCallableHandle) handle = NULL;
      Registration *registration;

      g_mutex_lock (&self->lock);
      registration = g_hash_table_lookup (self->by_callable, kernel);
      if (registration != NULL)
        *id = (gint32) registration->slot;
      g_mutex_unlock (&self->lock);
      if (registration != NULL)
        return TRUE;
      if (retry)
        {
          /* Registered here and unregistered by another thread before it could be used. */
          g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
                       "kernel \"%s\" is not registered any more", kernel->name);
          return FALSE;
        }
      /* This registration is taken back by closing the worker. */
      handle = register_callable (self, kernel, NULL, error);
      if (handle == NULL)
        return FALSE;
    }
}

/* --- run --- */

/* One run under way. */
typedef struct
{
  PtoWorker *self;
  GCancellable *cancellable;
  GError *error;       /* of the orchestration itself */
  gboolean has_failed; /* the run, before the orchestration did */

  /* A function. */
  PtoOrchestrationFunc func;
  gpointer data;
  PtoTaskArgs *args;
  PtoCallConfig *config;
  PtoOrchestrator *orchestrator;
  PtoGate *gate; /* NULL: call it here */
  GMainContext *context;
  int priority;
  PTO2Runtime *rt;

  /* A shared object. */
  Registration *registration;
  uint64_t *values;
  int n_values;
} Run;

static bool
is_cancelled (void *data)
{
  Run *run = data;

  return g_cancellable_is_cancelled (run->cancellable) || g_atomic_int_get (&run->self->closing);
}

/* Function's thread. */
static void
call_function (Run *run)
{
  gboolean ok;
  guint open;

  pto_orchestrator_begin (run->orchestrator, run->rt);
  ok = run->func (run->orchestrator, run->args, run->config, run->data, &run->error);
  open = pto_orchestrator_end (run->orchestrator);
  if (ok && run->error == NULL && open > 0)
    g_set_error (&run->error, PTO_ERROR, PTO_ERROR_SCOPE_OVERFLOW,
                 "the orchestration function returned with %u scope%s open: end what it begins",
                 open, open == 1 ? "" : "s");
  if (!ok && run->error == NULL)
    g_set_error_literal (
        &run->error, PTO_ERROR, PTO_ERROR_EXPLICIT,
        "the orchestration function failed and did not say why: it must return TRUE when the "
        "graph is "
        "complete (a Python exception is printed on standard error)");
}

/* What takes the function to its own context. */
typedef struct
{
  PtoGate *gate;
  Run *run; /* lives until the gate has ended or was abandoned */
} Visit;

static gboolean
visit_context (gpointer data)
{
  Visit *visit = data;

  if (pto_gate_begin (visit->gate))
    {
      call_function (visit->run);
      pto_gate_end (visit->gate);
    }
  return G_SOURCE_REMOVE;
}

static void
visit_free (gpointer data)
{
  Visit *visit = data;

  /* The context may have gone without calling it. */
  pto_gate_abandon (visit->gate);
  pto_gate_unref (visit->gate);
  g_free (visit);
}

static void
abandon_gate (GCancellable *cancellable, gpointer data)
{
  pto_gate_abandon (data);
}

static void
call_function_in_context (Run *run)
{
  Visit *visit = g_new (Visit, 1);
  GSource *source = g_idle_source_new ();
  gulong handler = 0;

  visit->gate = pto_gate_ref (run->gate);
  visit->run = run;
  g_source_set_priority (source, run->priority);
  g_source_set_static_name (source, "pto orchestration function");
  g_source_set_callback (source, visit_context, visit, visit_free);
  if (run->cancellable != NULL)
    handler = g_cancellable_connect (run->cancellable, G_CALLBACK (abandon_gate), run->gate, NULL);
  /* From here on a close abandons the gate; one that was before is seen at once. */
  g_mutex_lock (&run->self->lock);
  run->self->gate = run->gate;
  if (g_atomic_int_get (&run->self->closing))
    pto_gate_abandon (run->gate);
  g_mutex_unlock (&run->self->lock);
  g_source_attach (source, run->context);
  g_source_unref (source);

  if (!pto_gate_serve (run->gate))
    g_set_error_literal (&run->error, PTO_ERROR, PTO_ERROR_CANCELLED,
                         "the run was cancelled before its orchestration function was called");

  g_mutex_lock (&run->self->lock);
  run->self->gate = NULL;
  g_mutex_unlock (&run->self->lock);
  g_cancellable_disconnect (run->cancellable, handler);
}

/* The orchestration has ended. A cancelled run fails even when the chip never had to wait. */
static void
check_end (Run *run, PTO2Runtime *rt)
{
  run->has_failed = pto_chip_has_failed (rt);
  if (!run->has_failed && run->error == NULL && is_cancelled (run))
    pto_chip_fail (rt, PTO_STATUS_CANCELLED, "the run was cancelled");
}

static int
orchestrate_function (PTO2Runtime *rt, void *data)
{
  Run *run = data;

  run->rt = rt;
  if (run->gate == NULL)
    call_function (run);
  else
    call_function_in_context (run);
  check_end (run, rt);
  return run->error == NULL ? 0 : 1;
}

static int
orchestrate_object (PTO2Runtime *rt, void *data)
{
  Run *run = data;
  Registration *registration = run->registration;
  /* One for each thread: the entry may run on another one the next time. */
  PTO2Runtime **current
      = dlsym (g_ptr_array_index (registration->modules, 0), "pto2_current_runtime");
  int result = 0;

  if (current != NULL)
    *current = rt;
  if (registration->returns_int)
    result = registration->entry (rt, run->values, run->n_values);
  else
    ((VoidEntryFunc) (gpointer) registration->entry) (rt, run->values, run->n_values);
  if (current != NULL)
    *current = NULL;
  check_end (run, rt);
  if (result != 0)
    g_set_error (
        &run->error, PTO_ERROR, PTO_ERROR_EXPLICIT, "orchestration \"%s\" failed: %s() returned %d",
        pto_callable_get_name (pto_callable_handle_get_callable (registration->handle)),
        pto_callable_get_symbol (pto_callable_handle_get_callable (registration->handle)), result);
  return result;
}

/* How many of something a worker has: its parameter, or what its platform has. */
static guint
get_extent (PtoWorker *self, enum pto_param param)
{
  const struct pto_platform *platform = pto_chip_platform (self->chip);
  guint64 value = self->params.values[param];

  if (value != 0)
    return (guint) value;
  return param == PTO_PARAMETER_CLUSTERS ? platform->clusters : platform->aicpu_threads;
}

static gboolean
make_run_config (PtoWorker *self, const PtoCallConfig *config, struct pto_run_config *run_config,
                 GError **error)
{
  guint clusters = get_extent (self, PTO_PARAMETER_CLUSTERS);
  guint threads = get_extent (self, PTO_PARAMETER_AICPU_THREADS);

  if (config == NULL)
    return TRUE;
  if ((guint) config->block_dim > clusters)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "block_dim is %d, but the worker has %u clusters", config->block_dim, clusters);
      return FALSE;
    }
  if (config->aicpu_thread_num_is_set && (guint) config->aicpu_thread_num > threads)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "aicpu_thread_num is %d, but the worker has %u control threads",
                   config->aicpu_thread_num, threads);
      return FALSE;
    }
  run_config->block_dim = (uint32_t) config->block_dim;
  run_config->aicpu_threads = MIN ((uint32_t) config->aicpu_thread_num, threads);
  run_config->trace = config->enable_l2_swimlane > 0;
  return TRUE;
}

/* The chip is taken. Consumes run->error. */
static gboolean
run_on_chip (Run *run, const struct pto_program *program, const struct pto_run_config *run_config,
             int (*orchestrate) (PTO2Runtime *rt, void *data), const char *title, GError **error)
{
  PtoWorker *self = run->self;
  struct pto_chip_stats statistics = { 0 };
  struct pto_report report = { 0 };
  enum pto_status status;
  guint n_names;

  g_free (self->log_context);
  self->log_context = g_strdup (title);
  g_mutex_lock (&self->lock);
  g_clear_object (&self->trace);
  self->recorded = FALSE;
  self->current = run->orchestrator;
  g_mutex_unlock (&self->lock);

  status = pto_chip_run (self->chip, program, run_config, orchestrate, run, &statistics, &report);

  g_mutex_lock (&self->lock);
  n_names = run->registration != NULL ? program->n_kernels : self->n_kernels;
  self->current = NULL;
  self->statistics = statistics;
  self->has_statistics = TRUE;
  self->recorded = run_config->trace || self->params.values[PTO_PARAMETER_TRACE] != 0;
  if (self->recorded)
    {
      clear_kernel_names (self);
      self->kernel_names = copy_kernel_names (program->kernels, n_names);
      self->n_kernel_names = n_names;
      g_free (self->title);
      self->title = g_strdup (title);
    }
  g_mutex_unlock (&self->lock);

  /* The first error wins: the orchestration's own, unless the run had failed before it. */
  if (run->error != NULL && (!run->has_failed || status == PTO_OK))
    {
      g_propagate_error (error, g_steal_pointer (&run->error));
      return FALSE;
    }
  g_clear_error (&run->error);
  if (status != PTO_OK)
    pto_error_set_from_report (error, status, &report);
  return status == PTO_OK;
}

/* With the lock, while the chip is not in use. */
static PtoTrace *
make_trace (PtoWorker *self)
{
  struct pto_trace_topology topology;
  const struct pto_trace *records = self->chip != NULL ? pto_chip_trace (self->chip) : NULL;

  if (records == NULL)
    return NULL;
  pto_chip_trace_topology (self->chip, &topology);
  return pto_trace_new_from_chip (records, &topology, (const char *const *) self->kernel_names,
                                  self->n_kernel_names, self->title);
}

/* The chip is taken. Writes what the run was asked to write. */
static gboolean
write_outputs (PtoWorker *self, const PtoCallConfig *config, GError **error)
{
  g_autoptr (PtoTrace) trace = NULL;
  g_autofree char *path = NULL;

  if (config == NULL || config->enable_l2_swimlane == 0 || config->output_prefix == NULL
      || config->output_prefix[0] == '\0')
    return TRUE;
  g_mutex_lock (&self->lock);
  if (self->trace == NULL && self->recorded)
    self->trace = make_trace (self);
  trace = self->trace != NULL ? g_object_ref (self->trace) : NULL;
  g_mutex_unlock (&self->lock);
  if (trace == NULL)
    return TRUE;
  path = g_strconcat (config->output_prefix, "swimlane.json", NULL);
  return pto_trace_save_json (trace, path, error);
}

/* The chip is taken, the configuration checked. */
static gboolean
run_function (Run *run, GError **error)
{
  PtoWorker *self = run->self;
  struct pto_run_config run_config = { .cancelled = is_cancelled, .cancelled_data = run };
  /* All that there can be: a kernel may be added while the function runs. */
  struct pto_program program = { self->kernels, PTO_MAX_KERNELS };
  gboolean ok;

  if (!make_run_config (self, run->config, &run_config, error))
    return FALSE;
  run->orchestrator = pto_orchestrator_new (self, run->gate, ++self->runs, is_cancelled, run);
  ok = run_on_chip (run, &program, &run_config, orchestrate_function, "orchestration function",
                    error);
  g_clear_object (&run->orchestrator);
  return ok && write_outputs (self, run->config, error);
}

/* An orchestration in a shared object gets addresses and numbers. */
static gboolean
make_values (PtoTaskArgs *args, const char *name, uint64_t **values, int *n_values, GError **error)
{
  const PtoArg *list = NULL;
  guint n = 0;

  if (args != NULL)
    list = pto_task_args_peek (args, &n);
  *values = g_new0 (uint64_t, MAX (n, 1));
  *n_values = (int) n;
  for (guint i = 0; i < n; i++)
    {
      (*values)[i]
          = list[i].tensor != NULL ? pto_tensor_get_first_address (list[i].tensor) : list[i].scalar;
      if (list[i].tensor != NULL && (*values)[i] == 0)
        {
          g_set_error (
              error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
              "orchestration \"%s\": argument %u is a tensor without memory: give it an address or "
              "a buffer",
              name, i);
          return FALSE;
        }
    }
  return TRUE;
}

/* The chip is taken, the configuration checked. */
static gboolean
run_registration (Run *run, GError **error)
{
  PtoWorker *self = run->self;
  Registration *registration = run->registration;
  PtoCallable *callable = pto_callable_handle_get_callable (registration->handle);
  const char *name = pto_callable_get_name (callable);
  struct pto_run_config run_config = { .cancelled = is_cancelled, .cancelled_data = run };
  struct pto_program program = { registration->kernels, registration->n_kernels };
  g_autofree uint64_t *values = NULL;
  PTO2OrchestrationConfig expected;

  if (!make_run_config (self, run->config, &run_config, error)
      || !make_values (run->args, name, &values, &run->n_values, error))
    return FALSE;
  run->values = values;
  expected = registration->config (values, run->n_values);
  if (expected.expected_arg_count != run->n_values)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "orchestration \"%s\" expects %d arguments, but %d are given", name,
                   expected.expected_arg_count, run->n_values);
      return FALSE;
    }
  self->runs++;
  return run_on_chip (run, &program, &run_config, orchestrate_object, name, error)
         && write_outputs (self, run->config, error);
}

static Registration *
acquire_registration (PtoWorker *self, PtoCallableHandle *handle, GError **error)
{
  Registration *registration;

  g_mutex_lock (&self->lock);
  registration = find_registration (self, handle, error);
  if (registration != NULL)
    g_atomic_rc_box_acquire (registration);
  g_mutex_unlock (&self->lock);
  return registration;
}

static gboolean
check_is_orchestration (PtoCallableHandle *handle, GError **error)
{
  if (pto_callable_handle_get_kind (handle) == PTO_CALLABLE_CHIP)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               "\"%s\" is a kernel: submit it from an orchestration, which can be run",
               pto_callable_get_name (pto_callable_handle_get_callable (handle)));
  return FALSE;
}

/* Takes the chip, runs, gives it back. With a handle that orchestration, otherwise the run's
 * function. */
static gboolean
run_any (Run *run, gboolean is_asynchronous, PtoCallableHandle *handle, GError **error)
{
  gboolean ok = FALSE;

  if (run->config != NULL && !pto_call_config_check (run->config, error))
    return FALSE;
  if (handle != NULL && !check_is_orchestration (handle, error))
    return FALSE;
  if (!worker_take (run->self, is_asynchronous, run->cancellable, error))
    return FALSE;
  if (handle == NULL)
    ok = run_function (run, error);
  else
    {
      run->registration = acquire_registration (run->self, handle, error);
      if (run->registration != NULL)
        {
          ok = run_registration (run, error);
          registration_unref (run->registration);
        }
    }
  worker_give_back (run->self);
  return ok;
}

/**
 * pto_worker_run:
 * @worker: an initialized worker
 * @func: (scope call) (closure user_data): a function that submits the tasks
 * @user_data: for @func
 * @args: (nullable): for @func
 * @config: (nullable): choices of this run
 * @cancellable: (nullable): ends the run
 * @error: where to say why it failed
 *
 * Runs a graph that a function submits, and waits until all its tasks are done.
 *
 * @func is called on this thread. An error that it returns ends the run and is the error of the
 * run, whatever its domain. A switch in @config that has no effect is refused with
 * %PTO_ERROR_NOT_SUPPORTED. Other errors are those of the chip, %PTO_ERROR_CANCELLED,
 * %PTO_ERROR_NOT_INITIALIZED, %PTO_ERROR_CLOSED and %PTO_ERROR_BUSY (called from an orchestration
 * function, or while an asynchronous run needs one).
 *
 * Source: seed 001 section 6, seed 003. Thread safety: any thread; a second run waits for the
 * first.
 *
 * Returns: %TRUE if all tasks completed
 */
gboolean
pto_worker_run (PtoWorker *worker, PtoOrchestrationFunc func, gpointer user_data, PtoTaskArgs *args,
                PtoCallConfig *config, GCancellable *cancellable, GError **error)
{
  Run run = { .self = worker,
              .cancellable = cancellable,
              .func = func,
              .data = user_data,
              .args = args,
              .config = config };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return run_any (&run, FALSE, NULL, error);
}

/**
 * pto_worker_run_callable:
 * @worker: an initialized worker
 * @handle: an orchestration that is registered
 * @args: (nullable): its arguments: tensors become addresses
 * @config: (nullable): choices of this run
 * @cancellable: (nullable): ends the run
 * @error: where to say why it failed
 *
 * Runs a registered orchestration, and waits until all its tasks are done.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the number of arguments is not the one that the
 * orchestration expects, with %PTO_ERROR_NOT_FOUND for a handle of another worker, with
 * %PTO_ERROR_EXPLICIT when its entry returns a value other than 0, and like
 * [method@Pto.Worker.run].
 *
 * Source: seed 000 section 11, seed 003. Thread safety: any thread; a second run waits for the
 * first.
 *
 * Returns: %TRUE if all tasks completed
 */
gboolean
pto_worker_run_callable (PtoWorker *worker, PtoCallableHandle *handle, PtoTaskArgs *args,
                         PtoCallConfig *config, GCancellable *cancellable, GError **error)
{
  Run run = { .self = worker, .cancellable = cancellable, .args = args, .config = config };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (handle != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return run_any (&run, FALSE, handle, error);
}

/* --- asynchronous runs --- */

static void
job_free (gpointer data)
{
  Job *job = data;

  /* In the owner's context: the function's data may belong to a language that is at home there. */
  if (job->destroy != NULL)
    job->destroy (job->data);
  g_clear_pointer (&job->gate, pto_gate_unref);
  g_clear_pointer (&job->handle, pto_callable_handle_unref);
  g_clear_pointer (&job->args, pto_task_args_unref);
  g_clear_pointer (&job->config, pto_call_config_free);
  g_clear_error (&job->error);
  g_object_unref (job->task);
  g_free (job);
}

/* Owner's context. */
static gboolean
job_return (gpointer data)
{
  Job *job = data;
  GTask *task = job->task;

  if (job->destroy != NULL)
    {
      GDestroyNotify destroy = g_steal_pointer (&job->destroy);

      destroy (job->data);
    }
  if (job->error != NULL)
    g_task_return_error (task, g_steal_pointer (&job->error));
  else
    g_task_return_boolean (task, TRUE);
  return G_SOURCE_REMOVE;
}

static void
job_run (Job *job)
{
  PtoWorker *self = g_task_get_source_object (job->task);
  Run run = { .self = self,
              .cancellable = g_task_get_cancellable (job->task),
              .func = job->func,
              .data = job->data,
              .args = job->args,
              .config = job->config,
              .gate = job->gate,
              .context = g_task_get_context (job->task),
              .priority = g_task_get_priority (job->task) };

  run_any (&run, TRUE, job->handle, &job->error);
  if (job->func != NULL)
    {
      g_mutex_lock (&self->lock);
      self->waiting_functions--;
      g_mutex_unlock (&self->lock);
    }
  {
    GMainContext *context = g_main_context_ref (g_task_get_context (job->task));
    GSource *source = g_idle_source_new ();

    g_source_set_priority (source, g_task_get_priority (job->task));
    g_source_set_static_name (source, "pto asynchronous run");
    g_source_set_callback (source, job_return, job, job_free);
    g_source_attach (source, context);
    g_source_unref (source);
    g_main_context_unref (context);
  }
}

static gpointer
run_jobs (gpointer data)
{
  GAsyncQueue *queue = data;
  Job *job;

  while ((job = g_async_queue_pop (queue)) != &end_of_jobs)
    job_run (job);
  g_async_queue_unref (queue);
  return NULL;
}

static void
queue_job (PtoWorker *self, Job *job)
{
  GError *error = NULL;

  g_task_set_check_cancellable (job->task, FALSE);
  g_mutex_lock (&self->lock);
  if (check_open (self, &error) && self->thread == NULL)
    self->thread = g_thread_try_new ("pto-runs", run_jobs, g_async_queue_ref (self->queue), &error);
  if (error == NULL)
    {
      if (job->func != NULL)
        self->waiting_functions++;
      g_async_queue_push (self->queue, job);
    }
  g_mutex_unlock (&self->lock);
  if (error != NULL)
    {
      if (error->domain != PTO_ERROR)
        g_async_queue_unref (self->queue);
      job->error = error;
      job_return (job);
      job_free (job);
    }
}

static Job *
job_new (PtoWorker *self, PtoTaskArgs *args, PtoCallConfig *config, GCancellable *cancellable,
         GAsyncReadyCallback callback, gpointer user_data, gpointer tag)
{
  Job *job = g_new0 (Job, 1);

  job->task = g_task_new (self, cancellable, callback, user_data);
  g_task_set_source_tag (job->task, tag);
  job->args = args != NULL ? pto_task_args_copy (args) : NULL;
  job->config = config != NULL ? pto_call_config_copy (config) : NULL;
  return job;
}

/**
 * pto_worker_run_async:
 * @worker: an initialized worker
 * @func: (scope notified) (closure func_data) (destroy func_data_destroy): a function that submits
 * the tasks
 * @func_data: for @func
 * @func_data_destroy: for @func_data
 * @args: (nullable): for @func; copied
 * @config: (nullable): choices of this run; copied
 * @cancellable: (nullable): ends the run
 * @callback: (scope async) (closure user_data): called when the run has ended
 * @user_data: for @callback
 *
 * Runs a graph that a function submits, on the worker's own thread.
 *
 * Both functions are called, and @func_data is destroyed, in the main context that is this thread's
 * default: @func first, and while it runs, that context does nothing else. Each submit then goes to
 * the worker's thread and back, which takes microseconds: large graphs are better submitted by
 * [method@Pto.Worker.run_callable_async]. Asynchronous runs of one worker happen one after the
 * other.
 *
 * Source: seed 003. Thread safety: any thread.
 */
void
pto_worker_run_async (PtoWorker *worker, PtoOrchestrationFunc func, gpointer func_data,
                      GDestroyNotify func_data_destroy, PtoTaskArgs *args, PtoCallConfig *config,
                      GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  Job *job;

  g_return_if_fail (PTO_IS_WORKER (worker));
  g_return_if_fail (func != NULL);

  job = job_new (worker, args, config, cancellable, callback, user_data,
                 (gpointer) pto_worker_run_async);
  job->func = func;
  job->data = func_data;
  job->destroy = func_data_destroy;
  job->gate = pto_gate_new ();
  queue_job (worker, job);
}

/**
 * pto_worker_run_finish:
 * @worker: a worker
 * @result: what the callback was given
 * @error: where to say why it failed
 *
 * Gives the result of [method@Pto.Worker.run_async], with the errors of [method@Pto.Worker.run].
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if all tasks completed
 */
gboolean
pto_worker_run_finish (PtoWorker *worker, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (g_task_is_valid (result, worker), FALSE);
  g_return_val_if_fail (g_async_result_is_tagged (result, (gpointer) pto_worker_run_async), FALSE);

  return g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * pto_worker_run_callable_async:
 * @worker: an initialized worker
 * @handle: an orchestration that is registered
 * @args: (nullable): its arguments: tensors become addresses; copied
 * @config: (nullable): choices of this run; copied
 * @cancellable: (nullable): ends the run
 * @callback: (scope async) (closure user_data): called when the run has ended
 * @user_data: for @callback
 *
 * Runs a registered orchestration on the worker's own thread.
 *
 * Asynchronous runs of one worker happen one after the other. Source: seed 003. Thread safety: any
 * thread.
 */
void
pto_worker_run_callable_async (PtoWorker *worker, PtoCallableHandle *handle, PtoTaskArgs *args,
                               PtoCallConfig *config, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
  Job *job;

  g_return_if_fail (PTO_IS_WORKER (worker));
  g_return_if_fail (handle != NULL);

  job = job_new (worker, args, config, cancellable, callback, user_data,
                 (gpointer) pto_worker_run_callable_async);
  job->handle = pto_callable_handle_ref (handle);
  queue_job (worker, job);
}

/**
 * pto_worker_run_callable_finish:
 * @worker: a worker
 * @result: what the callback was given
 * @error: where to say why it failed
 *
 * Gives the result of [method@Pto.Worker.run_callable_async], with the errors of
 * [method@Pto.Worker.run_callable].
 *
 * Thread safety: any thread.
 *
 * Returns: %TRUE if all tasks completed
 */
gboolean
pto_worker_run_callable_finish (PtoWorker *worker, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (g_task_is_valid (result, worker), FALSE);
  g_return_val_if_fail (g_async_result_is_tagged (result, (gpointer) pto_worker_run_callable_async),
                        FALSE);

  return g_task_propagate_boolean (G_TASK (result), error);
}

/* --- after a run --- */

/**
 * pto_worker_get_statistics:
 * @worker: a worker
 *
 * Gives the numbers of the last run, also of one that failed.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable): numbers; %NULL before the first run
 */
PtoRunStatistics *
pto_worker_get_statistics (PtoWorker *worker)
{
  PtoRunStatistics *statistics = NULL;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  g_mutex_lock (&worker->lock);
  if (worker->has_statistics)
    statistics = pto_run_statistics_new (&worker->statistics);
  g_mutex_unlock (&worker->lock);
  return statistics;
}

/**
 * pto_worker_get_trace:
 * @worker: a worker
 *
 * Gives the record of the last run.
 *
 * A run is recorded when the parameter `trace` is 1 or its configuration asks for a swimlane. The
 * record is copied on the first request and outlives the worker. Thread safety: any thread.
 *
 * Returns: (transfer full) (nullable): a trace; %NULL when the last run was not recorded, while one
 * is under way, and when the worker is closed
 */
PtoTrace *
pto_worker_get_trace (PtoWorker *worker)
{
  PtoTrace *trace = NULL;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  g_mutex_lock (&worker->lock);
  if (worker->trace == NULL && worker->recorded && !worker->in_use)
    worker->trace = make_trace (worker);
  if (worker->trace != NULL)
    trace = g_object_ref (worker->trace);
  g_mutex_unlock (&worker->lock);
  return trace;
}

/* --- device memory --- */

typedef struct
{
  struct pto_chip *chip;
  enum
  {
    MEMORY_MALLOC,
    MEMORY_FREE,
    MEMORY_COPY_TO,
    MEMORY_COPY_FROM
  } what;
  guint64 device;
  gpointer host;
  guint64 size;
  enum pto_status status;
  struct pto_report report;
} MemoryCall;

static void
call_memory (gpointer data)
{
  MemoryCall *call = data;

  switch (call->what)
    {
    case MEMORY_MALLOC:
      call->device = pto_chip_malloc (call->chip, call->size, &call->report);
      if (call->device == 0)
        call->status = PTO_STATUS_NO_MEMORY;
      break;
    case MEMORY_FREE:
      call->status = pto_chip_mfree (call->chip, call->device, &call->report);
      break;
    case MEMORY_COPY_TO:
      call->status
          = pto_chip_copy_to (call->chip, call->device, call->host, call->size, &call->report);
      break;
    case MEMORY_COPY_FROM:
      call->status
          = pto_chip_copy_from (call->chip, call->host, call->device, call->size, &call->report);
      break;
    default:
      g_assert_not_reached ();
    }
}

/* On the chip's thread: inside an orchestration function that is the run's, otherwise whoever takes
 * the chip. */
static gboolean
use_memory (PtoWorker *self, MemoryCall *call, GError **error)
{
  g_autoptr (PtoOrchestrator) orchestrator = NULL;

  g_mutex_lock (&self->lock);
  if (self->current != NULL && pto_orchestrator_is_own_thread (self->current))
    orchestrator = g_object_ref (self->current);
  g_mutex_unlock (&self->lock);
  if (orchestrator != NULL)
    {
      call->chip = self->chip;
      pto_orchestrator_call (orchestrator, call_memory, call);
    }
  else
    {
      if (!worker_take (self, FALSE, NULL, error))
        return FALSE;
      call->chip = self->chip;
      call_memory (call);
      worker_give_back (self);
    }
  if (call->status != PTO_OK)
    pto_error_set_from_report (error, call->status, &call->report);
  return call->status == PTO_OK;
}

/**
 * pto_worker_malloc:
 * @worker: an initialized worker
 * @size: bytes
 * @error: where to say why not
 *
 * Takes device memory, to be given back with [method@Pto.Worker.free].
 *
 * Fails with %PTO_ERROR_NO_MEMORY. Source: seed 003. Thread safety: any thread; waits for a run
 * that is under way.
 *
 * Returns: an address, 64-byte aligned; 0 on failure
 */
guint64
pto_worker_malloc (PtoWorker *worker, guint64 size, GError **error)
{
  MemoryCall call = { .what = MEMORY_MALLOC, .size = size };

  g_return_val_if_fail (PTO_IS_WORKER (worker), 0);
  g_return_val_if_fail (error == NULL || *error == NULL, 0);

  return use_memory (worker, &call, error) ? call.device : 0;
}

/**
 * pto_worker_free:
 * @worker: an initialized worker
 * @address: what [method@Pto.Worker.malloc] gave
 * @error: where to say why not
 *
 * Gives back device memory.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS for another address. Source: seed 003. Thread safety: any
 * thread; waits for a run that is under way.
 *
 * Returns: %TRUE if it was given back
 */
gboolean
pto_worker_free (PtoWorker *worker, guint64 address, GError **error)
{
  MemoryCall call = { .what = MEMORY_FREE, .device = address };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return use_memory (worker, &call, error);
}

/**
 * pto_worker_copy_to:
 * @worker: an initialized worker
 * @address: where to, in device memory
 * @bytes: what
 * @error: where to say why not
 *
 * Copies bytes to device memory.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the range does not lie in one allocation. Source: seed
 * 003. Thread safety: any thread; waits for a run that is under way.
 *
 * Returns: %TRUE if they were copied
 */
gboolean
pto_worker_copy_to (PtoWorker *worker, guint64 address, GBytes *bytes, GError **error)
{
  gsize size;
  gconstpointer data;

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (bytes != NULL, FALSE);

  data = g_bytes_get_data (bytes, &size);
  return pto_worker_copy_to_address (worker, address, (guint64) (guintptr) data, size, error);
}

/**
 * pto_worker_copy_from:
 * @worker: an initialized worker
 * @address: where from, in device memory
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies bytes from device memory.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the range does not lie in one allocation. Source: seed
 * 003. Thread safety: any thread; waits for a run that is under way.
 *
 * Returns: (transfer full): bytes
 */
GBytes *
pto_worker_copy_from (PtoWorker *worker, guint64 address, guint64 size, GError **error)
{
  g_autofree gpointer data = NULL;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  data = g_try_malloc (MAX (size, 1));
  if (data == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY,
                   "no memory for %" G_GUINT64_FORMAT " bytes", size);
      return NULL;
    }
  if (!pto_worker_copy_from_address (worker, (guint64) (guintptr) data, address, size, error))
    return NULL;
  return g_bytes_new_take (g_steal_pointer (&data), size);
}

/**
 * pto_worker_copy_to_address:
 * @worker: an initialized worker
 * @address: where to, in device memory
 * @host: where from, in this process
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies to device memory from any memory of this process, such as that of an array.
 *
 * Fails like [method@Pto.Worker.copy_to]. Source: seed 003. Thread safety: any thread; waits for a
 * run that is under way.
 *
 * Returns: %TRUE if it was copied
 */
gboolean
pto_worker_copy_to_address (PtoWorker *worker, guint64 address, guint64 host, guint64 size,
                            GError **error)
{
  MemoryCall call = {
    .what = MEMORY_COPY_TO, .device = address, .host = (gpointer) (guintptr) host, .size = size
  };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return use_memory (worker, &call, error);
}

/**
 * pto_worker_copy_from_address:
 * @worker: an initialized worker
 * @host: where to, in this process
 * @address: where from, in device memory
 * @size: how many bytes
 * @error: where to say why not
 *
 * Copies from device memory to any memory of this process, such as that of an array.
 *
 * Fails like [method@Pto.Worker.copy_from]. Source: seed 003. Thread safety: any thread; waits for
 * a run that is under way.
 *
 * Returns: %TRUE if it was copied
 */
gboolean
pto_worker_copy_from_address (PtoWorker *worker, guint64 host, guint64 address, guint64 size,
                              GError **error)
{
  MemoryCall call = {
    .what = MEMORY_COPY_FROM, .device = address, .host = (gpointer) (guintptr) host, .size = size
  };

  g_return_val_if_fail (PTO_IS_WORKER (worker), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  return use_memory (worker, &call, error);
}
