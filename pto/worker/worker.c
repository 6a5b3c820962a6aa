/* worker.c: how does a program hold a machine and run task graphs on it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Its properties and signals.
 */
#include "config.h"

#include "worker.h"

#include "base/binding.h"
#include "base/error.h"
#include "base/read-only-list.h"
#include "common/text.h"
#include "compile/compiler.h"
#include "values/platform.h"
#include "pto-enums.h"

#define DEFAULT_LEVEL 2
#define PROGRESS_MS 100
#define READ_ONLY (G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)
#define CONSTRUCT_ONLY (G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS)

enum
{
  PROP_LEVEL = 1,
  PROP_PLATFORM,
  PROP_DEVICE_ID,
  PROP_N_SUB_WORKERS,
  PROP_DEVICE_IDS,
  PROP_HEAP_RING_SIZE,
  PROP_ISOLATE,
  PROP_PROGRESS_INTERVAL,
  PROP_CHILD_MODE,
  PROP_RESTART,
  PROP_CHILDREN,
  PROP_PATH,
  PROP_STATE,
  N_PROPERTIES
};

enum
{
  SIGNAL_PROGRESS,
  SIGNAL_RUN_PROGRESS,
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
 * A worker is made, given parameters, started, and then runs any number of graphs, one after the
 * other: an orchestration that was registered ([method@Pto.Worker.run_callable]) or a function of
 * the program ([method@Pto.Worker.run]). Its threads and processes live from
 * [method@Pto.Worker.start] to [method@Pto.Worker.close]; the first run starts a worker that was
 * not started. After a run that failed, the next one works.
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
G_DEFINE_FINAL_TYPE_WITH_CODE (PtoWorker, pto_worker, G_TYPE_OBJECT, pto_override_look ())

void
pto_worker_refuse_params (PtoWorker *self, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  if (self->params_error == NULL)
    self->params_error = g_error_new_valist (PTO_ERROR, PTO_ERROR_INVALID_ARGS, format, args);
  va_end (args);
}

PtoWorker *
pto_worker_check_params (PtoWorker *self, GError **error)
{
  if (self->params_error == NULL)
    return self;
  g_propagate_error (error, g_error_copy (self->params_error));
  g_object_unref (self);
  return NULL;
}

/* --- signals in the owner's context --- */

typedef struct
{
  PtoWorker *self;
  void (*call) (PtoWorker *self); /* or NULL: what was built */
  guint done;
  guint total;
  char *name;
  gboolean cached;
} Emission;

static gboolean
emit (gpointer data)
{
  Emission *emission = data;

  if (emission->call != NULL)
    emission->call (emission->self);
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

/* Consumes it. */
static void
emit_in_context (PtoWorker *self, Emission *emission)
{
  emission->self = g_object_ref (self);
  if (self->serves)
    emission_free (emission);
  else if (g_thread_self () == self->owner)
    {
      emit (emission);
      emission_free (emission);
    }
  else
    g_main_context_invoke_full (self->context, G_PRIORITY_DEFAULT, emit, emission, emission_free);
}

void
pto_worker_call_owner (PtoWorker *self, void (*call) (PtoWorker *self))
{
  Emission *emission = g_new0 (Emission, 1);

  emission->call = call;
  emit_in_context (self, emission);
}

static void
notify_state (PtoWorker *self)
{
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_STATE]);
}

void
pto_worker_notify_state (PtoWorker *self)
{
  pto_worker_call_owner (self, notify_state);
}

void
pto_worker_report_progress (const PtoCompilerJob *job, guint done, guint total, gpointer user_data)
{
  Emission *emission = g_new0 (Emission, 1);

  emission->done = done;
  emission->total = total;
  emission->name = g_strdup (job->label);
  emission->cached = job->was_cached;
  emit_in_context (user_data, emission);
}

/* --- construction --- */

static void
pto_worker_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  PtoWorker *self = PTO_WORKER (object);

  switch (id)
    {
    case PROP_LEVEL:
      g_value_set_uint (value, self->node.level);
      break;
    case PROP_PLATFORM:
      g_value_set_string (value, self->node.platform);
      break;
    case PROP_DEVICE_ID:
      g_value_set_uint (value, self->node.device_id);
      break;
    case PROP_N_SUB_WORKERS:
      g_value_set_uint (value, self->node.n_sub_workers);
      break;
    case PROP_DEVICE_IDS:
      g_value_set_variant (value, self->device_ids);
      break;
    case PROP_HEAP_RING_SIZE:
      g_value_set_uint64 (value, pto_worker_get_heap_ring_size (self));
      break;
    case PROP_PROGRESS_INTERVAL:
      g_value_set_uint (value, pto_worker_get_progress_interval (self));
      break;
    case PROP_ISOLATE:
      g_value_set_boolean (value, pto_worker_get_isolate (self));
      break;
    case PROP_CHILD_MODE:
      g_value_set_enum (value, self->node.child_mode);
      break;
    case PROP_RESTART:
      g_value_set_enum (value, self->node.restart);
      break;
    case PROP_CHILDREN:
      g_value_set_object (value, self->shown);
      break;
    case PROP_PATH:
      g_value_take_string (value, pto_worker_dup_path (self));
      break;
    case PROP_STATE:
      g_value_set_enum (value, pto_worker_get_state (self));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
pto_worker_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  PtoWorker *self = PTO_WORKER (object);

  switch (id)
    {
    case PROP_LEVEL:
      self->node.level = g_value_get_uint (value);
      break;
    case PROP_PLATFORM:
      g_free (self->node.platform);
      self->node.platform = g_value_dup_string (value);
      if (self->node.platform == NULL)
        self->node.platform = g_strdup (PTO_DEFAULT_PLATFORM);
      /* Wherever the program is when a worker starts. */
      else if (pto_platform_is_file (self->node.platform))
        {
          char *path = g_canonicalize_filename (self->node.platform, NULL);

          g_free (self->node.platform);
          self->node.platform = path;
        }
      break;
    case PROP_DEVICE_ID:
      self->node.device_id = g_value_get_uint (value);
      break;
    case PROP_N_SUB_WORKERS:
      self->node.n_sub_workers = g_value_get_uint (value);
      break;
    case PROP_DEVICE_IDS:
      self->device_ids = g_value_dup_variant (value);
      break;
    case PROP_HEAP_RING_SIZE:
      self->heap_ring_size = g_value_get_uint64 (value);
      break;
    case PROP_PROGRESS_INTERVAL:
      pto_worker_set_progress_interval (self, g_value_get_uint (value));
      break;
    case PROP_ISOLATE:
      self->isolate = g_value_get_boolean (value);
      break;
    case PROP_CHILD_MODE:
      self->node.child_mode = g_value_get_enum (value);
      break;
    case PROP_RESTART:
      self->node.restart = g_value_get_enum (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
init_params (PtoWorker *self)
{
  struct pto_report report = { 0 };
  enum pto_status status;

  pto_params_init (&self->params, self->node.level);
  status = pto_params_from_environment (&self->params, &report);
  if (status != PTO_OK)
    pto_error_set_from_report (&self->params_error, status, &report);
  else if (self->params.values[PTO_PARAMETER_SCHEDULE] != 0)
    self->schedule = g_strdup (g_getenv (pto_param_variable (PTO_PARAMETER_SCHEDULE)));
  if (self->params_error == NULL)
    pto_error_check_calls (&self->params_error);
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
  if (self->node.level == DEFAULT_LEVEL)
    self->params.values[PTO_PARAMETER_ISOLATE] = 1;
  else
    pto_worker_refuse_params (
        self,
        _ ("isolate is for one chip: what is below a worker of level %u is processes already"),
        self->node.level);
}

gboolean
pto_worker_wants_isolation (PtoWorker *self)
{
  return self->node.level == DEFAULT_LEVEL && self->node.parent == NULL
         && self->params.values[PTO_PARAMETER_ISOLATE] != 0;
}

gboolean
pto_worker_choose_machine (PtoWorker *self)
{
  gboolean isolate = pto_worker_wants_isolation (self);

  if (self->node.machine != NULL && self->node.is_isolated == isolate)
    return TRUE;
  if (self->node.machine != NULL && !pto_registry_is_empty (self->node.registry))
    return FALSE;
  if (self->node.machine != NULL)
    self->node.machine->ops->free (self->node.machine);
  self->node.is_isolated = isolate;
  if (isolate)
    self->node.machine = pto_machine_new_isolated (&self->node, &self->params);
  else if (self->node.level == DEFAULT_LEVEL)
    self->node.machine = pto_machine_new_chip (&self->node, &self->params);
  else if (self->node.level > DEFAULT_LEVEL && self->node.level <= PTO_MAX_LEVEL)
    self->node.machine = pto_machine_new_level (&self->node, &self->params);
  return TRUE;
}

static void
pto_worker_constructed (GObject *object)
{
  PtoWorker *self = PTO_WORKER (object);

  init_params (self);
  if (self->node.level > 2)
    pto_collective_make_functions ();
  set_isolate (self);
  pto_worker_choose_machine (self);
  set_heap (self);
  pto_worker_make_devices (self);
  if (self->node.n_sub_workers > 0 && self->node.level <= DEFAULT_LEVEL)
    pto_worker_refuse_params (self, _ ("level %u has no SUB workers: that begins with 3"),
                              self->node.level);
  if (self->node.level <= DEFAULT_LEVEL
      && (self->node.child_mode != PTO_CHILD_MODE_PROCESS
          || self->node.restart != PTO_RESTART_NEVER))
    pto_worker_refuse_params (
        self,
        _ ("the property %s has no effect on level %u, which has no children: that begins with 3"),
        self->node.restart != PTO_RESTART_NEVER ? "restart" : "child-mode", self->node.level);
  G_OBJECT_CLASS (pto_worker_parent_class)->constructed (object);
}

static void
pto_worker_dispose (GObject *object)
{
  /* Those below it may have references. */
  pto_worker_take_down (PTO_WORKER (object), PTO_WORKER_STATE_CLOSED, FALSE);
  G_OBJECT_CLASS (pto_worker_parent_class)->dispose (object);
}

static void
pto_worker_finalize (GObject *object)
{
  PtoWorker *self = PTO_WORKER (object);

  if (pto_worker_is_foreign (self))
    {
      /* What it holds may be half way through something in another thread of the parent. */
      G_OBJECT_CLASS (pto_worker_parent_class)->finalize (object);
      return;
    }
  pto_worker_clear_tree (self);
  for (guint i = 0; i < PTO_N_COLLECTIVES; i++)
    g_clear_pointer (&self->collectives[i], pto_callable_handle_unref);
  g_clear_error (&self->params_error);
  g_free (self->schedule);
  if (self->node.machine != NULL)
    self->node.machine->ops->free (self->node.machine);
  g_ptr_array_unref (self->retired);
  g_hash_table_unref (self->blocks);
  g_free (self->seal);
  g_array_unref (self->unused_blocks);
  pto_registry_free (self->node.registry);
  g_async_queue_unref (self->queue);
  g_main_context_unref (self->context);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->idle);
  G_OBJECT_CLASS (pto_worker_parent_class)->finalize (object);
}

static void
pto_worker_class_init (PtoWorkerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = pto_worker_get_property;
  object_class->set_property = pto_worker_set_property;
  object_class->constructed = pto_worker_constructed;
  object_class->dispose = pto_worker_dispose;
  object_class->finalize = pto_worker_finalize;

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
      = g_param_spec_uint ("level", NULL, NULL, 0, G_MAXUINT, DEFAULT_LEVEL, CONSTRUCT_ONLY);
  /**
   * PtoWorker:platform: (getter get_platform)
   *
   * The name of the chips' platform, see [func@Pto.Platform.list_names], or the path of a file that
   * describes one, see [func@Pto.Platform.lookup].
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_PLATFORM]
      = g_param_spec_string ("platform", NULL, NULL, PTO_DEFAULT_PLATFORM, CONSTRUCT_ONLY);
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
      = g_param_spec_uint ("device-id", NULL, NULL, 0, G_MAXUINT, 0, CONSTRUCT_ONLY);
  /**
   * PtoWorker:n-sub-workers: (getter get_n_sub_workers)
   *
   * How many SUB workers a worker of level 3 or up has: at most %PTO_MAX_CHILDREN, with the others
   * below it.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_N_SUB_WORKERS]
      = g_param_spec_uint ("n-sub-workers", NULL, NULL, 0, G_MAXUINT, 0, CONSTRUCT_ONLY);
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
  properties[PROP_DEVICE_IDS] = g_param_spec_variant ("device-ids", NULL, NULL,
                                                      G_VARIANT_TYPE ("au"), NULL, CONSTRUCT_ONLY);
  /**
   * PtoWorker:heap-ring-size: (getter get_heap_ring_size)
   *
   * The bytes of each of the four heap rings, where they differ of the largest; when it is made
   * with 0, what the parameter `heap` says. It is address space: memory is taken where it is used.
   *
   * Source: seed 001. Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_HEAP_RING_SIZE]
      = g_param_spec_uint64 ("heap-ring-size", NULL, NULL, 0, G_MAXUINT64, 0, CONSTRUCT_ONLY);
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
  properties[PROP_ISOLATE] = g_param_spec_boolean ("isolate", NULL, NULL, FALSE, CONSTRUCT_ONLY);
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
  properties[PROP_CHILD_MODE] = g_param_spec_enum ("child-mode", NULL, NULL, PTO_TYPE_CHILD_MODE,
                                                   PTO_CHILD_MODE_PROCESS, CONSTRUCT_ONLY);
  /**
   * PtoWorker:restart: (getter get_restart)
   *
   * What follows when a child process has died.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_RESTART] = g_param_spec_enum ("restart", NULL, NULL, PTO_TYPE_RESTART,
                                                PTO_RESTART_NEVER, CONSTRUCT_ONLY);
  /**
   * PtoWorker:children: (getter get_children)
   *
   * The workers below it, in the order of their ids; none once it is closed.
   *
   * Thread safety: the owner's context.
   *
   * Since: 0.1
   */
  properties[PROP_CHILDREN]
      = g_param_spec_object ("children", NULL, NULL, G_TYPE_LIST_MODEL, READ_ONLY);
  /**
   * PtoWorker:path: (getter dup_path)
   *
   * Its place in the tree of workers: `L4/0/L3/1`.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_PATH] = g_param_spec_string ("path", NULL, NULL, NULL, READ_ONLY);
  /**
   * PtoWorker:state: (getter get_state)
   *
   * Whether the worker is new, ready or closed.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_STATE] = g_param_spec_enum ("state", NULL, NULL, PTO_TYPE_WORKER_STATE,
                                              PTO_WORKER_STATE_NEW, READ_ONLY);
  /**
   * PtoWorker:progress-interval: (getter get_progress_interval) (setter set_progress_interval)
   *
   * How much time goes by, at least, between two emissions of [signal@Pto.Worker::run-progress], in
   * ms.
   *
   * Thread safety: any thread.
   *
   * Since: 0.1
   */
  properties[PROP_PROGRESS_INTERVAL]
      = g_param_spec_uint ("progress-interval", NULL, NULL, 1, G_MAXINT, PROGRESS_MS,
                           G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPERTIES, properties);

  /**
   * PtoWorker::progress:
   * @worker: the worker
   * @done: how many objects are built
   * @total: how many there are to build
   * @name: what was built: `kernel "add"`
   * @cached: whether it was there already
   *
   * A kernel or an orchestration that is being registered was built, or a kernel that the program
   * has made and the orchestration function that is about to run may submit.
   *
   * Thread safety: emitted in the main context that was the thread's default when the worker was
   * made.
   *
   * Since: 0.1
   */
  signals[SIGNAL_PROGRESS]
      = g_signal_new ("progress", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                      G_TYPE_NONE, 4, G_TYPE_UINT, G_TYPE_UINT, G_TYPE_STRING, G_TYPE_BOOLEAN);
  /**
   * PtoWorker::run-progress:
   * @worker: the worker
   * @done: tasks that have ended, also those that have failed or were not run
   * @submitted: tasks that were submitted so far
   * @failed: of the done ones those that have failed, or were not run for that
   *
   * A run goes on: about every [property@Pto.Worker:progress-interval], and once when it has ended,
   * with its last numbers, if it has begun.
   *
   * Whoever is connected when a run begins is told of it; a run that nobody listens to has nothing
   * to do for this, and one that somebody listens to no more than to read a clock where it looks
   * whether it was cancelled. There it is emitted, among submits and while the run waits: not while
   * the code of an orchestration is busy with something else. While it waits the thread of a run
   * may run kernels itself, on the back end `par` some and on `det` all of them: then it is emitted
   * between these at best. A
   * worker in another process, or below this one, tells nobody of its runs here.
   *
   * A handler can not use the orchestrator of the run (%PTO_ERROR_BUSY), nor run something on the
   * worker, and the run waits for it. What may be asked by any thread at any time is
   * [method@Pto.Worker.get_progress].
   *
   * Thread safety: of a run that its caller waits for, such as [method@Pto.Worker.run], it is
   * emitted on the caller's thread, inside of that call; of one that goes on by itself, such as
   * [method@Pto.Worker.run_async], in the main context in which that calls back, and before that:
   * where that context is late, the numbers in between are left out.
   *
   * Since: 0.1
   */
  signals[SIGNAL_RUN_PROGRESS]
      = g_signal_new ("run-progress", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                      NULL, G_TYPE_NONE, 3, G_TYPE_UINT64, G_TYPE_UINT64, G_TYPE_UINT64);
}

static void
pto_worker_init (PtoWorker *self)
{
  pto_worker_init_node (self);
  self->progress_ms = PROGRESS_MS;
  self->context = g_main_context_ref_thread_default ();
  self->owner = g_thread_self ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->idle);
  self->retired = g_ptr_array_new_with_free_func ((GDestroyNotify) pto_registration_unref);
  self->blocks = g_hash_table_new (g_int64_hash, g_int64_equal);
  self->unused_blocks = g_array_new (FALSE, FALSE, sizeof (guint64));
  self->queue = g_async_queue_new ();
  self->model = g_list_store_new (G_OBJECT_TYPE (self));
  self->shown = pto_list_new (G_LIST_MODEL (self->model));
}

gboolean
pto_worker_check_level (guint level, GError **error)
{
  if (level >= DEFAULT_LEVEL && level <= PTO_MAX_LEVEL)
    return TRUE;
  return pto_refuse (
      error, PTO_ERROR_NOT_SUPPORTED,
      _ ("there is no level %u in this version: 2 is one chip, 3 to %d are hosts of lower "
         "levels"),
      level, PTO_MAX_LEVEL);
}

/**
 * pto_worker_new: (constructor)
 * @level: the level of the machine: 2 is one chip; from 3 on it has no children yet
 * @platform: (nullable): the name of a platform, or the path of a file that describes one
 * ([func@Pto.Platform.lookup]); `a2a3sim` when %NULL
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
  g_autoptr (PtoPlatform) description = NULL;

  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!pto_worker_check_level (level, error))
    return NULL;
  description = pto_platform_lookup (platform != NULL ? platform : PTO_DEFAULT_PLATFORM, error);
  if (description == NULL)
    return NULL;
  return pto_worker_check_params (g_object_new (PTO_TYPE_WORKER, "level", level, "platform",
                                                pto_platform_get_name (description), NULL),
                                  error);
}

/**
 * pto_worker_new_chip: (constructor)
 * @platform: (nullable): the name of a platform, or the path of a file that describes one
 * ([func@Pto.Platform.lookup]); `a2a3sim` when %NULL
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
 * pto_worker_to_string:
 * @worker: a worker
 *
 * Says what it is and what state it is in, for people.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): such as `L3/0: a2a3sim, 2 workers and 1 SUB worker below, ready`
 *
 * Since: 0.1
 */
char *
pto_worker_to_string (PtoWorker *worker)
{
  static const char *const states[] = { "new", "ready", "closed" };
  PtoWorkerState state;
  PtoWorker *above;
  g_autofree char *path = NULL;
  GString *text;
  guint n_workers, n_subs;

  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  path = pto_worker_dup_path (worker);
  text = g_string_new (path);
  g_string_append_printf (text, ": %s, ", worker->node.platform);
  n_workers = pto_worker_get_n_workers (worker);
  n_subs = worker->node.n_sub_workers;
  if (worker->node.level > DEFAULT_LEVEL)
    g_string_append_printf (text, "%u worker%s and %u SUB worker%s below, ", n_workers,
                            n_workers == 1 ? "" : "s", n_subs, n_subs == 1 ? "" : "s");
  else if (pto_worker_get_isolate (worker))
    g_string_append (text, "a process of its own, ");
  /* One below another is brought up there, in a process that has its own idea of it. */
  for (above = worker, state = pto_worker_get_state (above);
       state == PTO_WORKER_STATE_NEW && above->node.parent != NULL && !above->serves;
       state = pto_worker_get_state (above))
    above = pto_worker_peek_parent (above);
  g_string_append (text, states[state]);
  return g_string_free (text, FALSE);
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

  return worker->node.level;
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

  return worker->node.platform;
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

  return worker->node.device_id;
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
