/* seeds.c: what is behind the C names of seed 003?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Public interface of libpto only. A context's lock guards its fields: it is held while a worker
 * starts and while one is told of a callable, not while one runs, which holds references of what it
 * needs.
 */
#include "pto_runtime_c_api.h"

#include <pto/pto.h>
#include <string.h>

#define N_DEVICES 16
#define HOST_GRAPH "host_build_graph"

struct SimplerDeviceContext
{
  GMutex running; /* taken before the other, for a run and what is read of it */
  GMutex lock;
  PtoWorker *worker;
  gboolean graph_first;  /* the runtime builds the whole graph, then launches it */
  GHashTable *callables; /* number -> PtoCallableHandle */
};

static const char *const runtimes[]
    = { "tensormap_and_ringbuffer", HOST_GRAPH, "aicpu_build_graph", NULL };

static gint log_level = 2, log_detail = 0; /* atomic; relaxed would do: they order nothing */
static GPrivate last_error = G_PRIVATE_INIT (g_free);

static void
context_clear (void *data)
{
  DeviceContextHandle ctx = data;

  if (ctx->worker != NULL)
    pto_worker_close (ctx->worker);
  g_clear_object (&ctx->worker);
  g_clear_pointer (&ctx->callables, g_hash_table_unref);
  g_mutex_clear (&ctx->lock);
  g_mutex_clear (&ctx->running);
}

static void
context_unref (void *ctx)
{
  g_atomic_rc_box_release_full (ctx, context_clear);
}

/* Of which context is pto2_run_runtime()? A reference, so that a context that was destroyed is told
 * from none. */
static GPrivate attached = G_PRIVATE_INIT (context_unref);

static int G_GNUC_PRINTF (2, 3) fail (const char *where, const char *format, ...)
{
  g_autofree char *why = NULL;
  char *line;
  va_list args;

  va_start (args, format);
  why = g_strdup_vprintf (format, args);
  va_end (args);
  line = g_strdup_printf ("%s: %s", where, why);
  if (g_atomic_int_get (&log_level) <= 3)
    g_printerr ("%s\n", line);
  g_private_replace (&last_error, line);
  return -1;
}

static void G_GNUC_PRINTF (3, 4) tell (int detail, const char *where, const char *format, ...)
{
  g_autofree char *what = NULL;
  va_list args;

  if (g_atomic_int_get (&log_level) > 1 || g_atomic_int_get (&log_detail) < detail)
    return;
  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_printerr ("%s: %s\n", where, what);
}

/* The worker of a context, or NULL and an error. */
static PtoWorker *
ref_worker (DeviceContextHandle ctx, const char *where)
{
  PtoWorker *worker = NULL;

  if (ctx == NULL)
    {
      fail (where, "there is no context: create_device_context() makes one");
      return NULL;
    }
  g_mutex_lock (&ctx->lock);
  if (ctx->worker != NULL)
    worker = g_object_ref (ctx->worker);
  g_mutex_unlock (&ctx->lock);
  if (worker == NULL)
    fail (where, "the context has no chip: simpler_init() gives it one");
  return worker;
}

const char *
simpler_last_error (void)
{
  const char *line = g_private_get (&last_error);

  return line != NULL ? line : "";
}

int
simpler_log_init (int level, int log_info_v)
{
  if (level < 0 || level > 4)
    return fail (G_STRFUNC, "log_level %d: there are 0 (all) to 4 (nothing)", level);
  if (log_info_v < 0)
    return fail (G_STRFUNC, "log_info_v %d is negative", log_info_v);
  g_atomic_int_set (&log_level, level);
  g_atomic_int_set (&log_detail, log_info_v);
  return 0;
}

DeviceContextHandle
create_device_context (void)
{
  DeviceContextHandle ctx = g_atomic_rc_box_new0 (struct SimplerDeviceContext);

  g_mutex_init (&ctx->running);
  g_mutex_init (&ctx->lock);
  return ctx;
}

/* The first line of what stands for a program; NULL and an error where there is none. */
static char *
read_name (const char *what, const void *binary, size_t size, const char *otherwise)
{
  const char *text = binary;
  gsize length;

  if (binary == NULL && size > 0)
    {
      fail ("simpler_init", "%s: %" G_GSIZE_FORMAT " bytes at no address", what, size);
      return NULL;
    }
  if (size == 0)
    return g_strdup (otherwise);
  for (length = 0; length < size && text[length] != '\n' && text[length] != '\0'; length++)
    ;
  if (length == 0 || text[0] == '\177' || !g_utf8_validate (text, (gssize) length, NULL))
    {
      fail ("simpler_init",
            "%s: %" G_GSIZE_FORMAT " bytes are a program of the chip's own, or nothing known: of a "
            "simulated chip the name stands for it, as \"%s\"",
            what, size, otherwise);
      return NULL;
    }
  return g_strndup (text, length);
}

int
simpler_init (DeviceContextHandle ctx, int device_id, const void *aicpu_binary, size_t aicpu_size,
              const void *aicore_binary, size_t aicore_size)
{
  g_autoptr (GMutexLocker) locker = NULL;
  g_autoptr (PtoPlatform) platform = NULL;
  g_autoptr (PtoWorker) worker = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *runtime = NULL;
  g_autofree char *name = NULL;

  if (ctx == NULL)
    return fail (G_STRFUNC, "there is no context: create_device_context() makes one");
  if (device_id < 0 || device_id >= N_DEVICES)
    return fail (G_STRFUNC, "device_id %d: there are 0 to %d", device_id, N_DEVICES - 1);
  runtime = read_name ("aicpu_binary", aicpu_binary, aicpu_size, runtimes[0]);
  if (runtime == NULL)
    return -1;
  name = read_name ("aicore_binary", aicore_binary, aicore_size, "a2a3sim");
  if (name == NULL)
    return -1;
  if (!g_strv_contains (runtimes, runtime))
    return fail (G_STRFUNC, "aicpu_binary: there is no runtime \"%s\": %s, %s and %s are", runtime,
                 runtimes[0], runtimes[1], runtimes[2]);
  platform = pto_platform_lookup (name, &error);
  if (platform == NULL)
    return fail (G_STRFUNC, "aicore_binary: %s", error->message);

  locker = g_mutex_locker_new (&ctx->lock);
  if (ctx->worker != NULL)
    return fail (G_STRFUNC, "the context has a chip already: finalize_device() gives it back");
  worker = g_object_new (PTO_TYPE_WORKER, "level", 2, "platform", name, "device-id",
                         (guint) device_id, NULL);
  if (!pto_worker_start (worker, NULL, &error))
    return fail (G_STRFUNC, "%s", error->message);
  ctx->worker = g_steal_pointer (&worker);
  ctx->graph_first = g_str_equal (runtime, HOST_GRAPH);
  ctx->callables
      = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) pto_callable_handle_unref);
  g_private_replace (&attached, g_atomic_rc_box_acquire (ctx));
  tell (0, G_STRFUNC, "device %d is a %s, its runtime %s", device_id, name, runtime);
  return 0;
}

size_t
get_runtime_size (void)
{
  return sizeof (SimplerRuntime);
}

int
register_callable (DeviceContextHandle ctx, int32_t cid, PtoCallable *callable)
{
  g_autoptr (PtoWorker) worker = ref_worker (ctx, G_STRFUNC);
  g_autoptr (GMutexLocker) locker = NULL;
  g_autoptr (GError) error = NULL;
  PtoCallableHandle *handle;

  if (worker == NULL)
    return -1;
  if (callable == NULL)
    return fail (G_STRFUNC, "callable %d is NULL", cid);
  if (pto_callable_get_kind (callable) != PTO_CALLABLE_CHIP)
    return fail (G_STRFUNC, "callable %d: \"%s\" is no orchestration of a chip", cid,
                 pto_callable_get_name (callable));
  locker = g_mutex_locker_new (&ctx->lock);
  if (ctx->worker != worker)
    return fail (G_STRFUNC, "callable %d: the context gives its chip back", cid);
  if (g_hash_table_contains (ctx->callables, GINT_TO_POINTER (cid)))
    return fail (G_STRFUNC,
                 "there is a callable %d already: unregister_callable() frees its number", cid);
  handle = pto_worker_register (worker, callable, NULL, &error);
  if (handle == NULL)
    return fail (G_STRFUNC, "callable %d: %s", cid, error->message);
  g_hash_table_insert (ctx->callables, GINT_TO_POINTER (cid), handle);
  tell (1, G_STRFUNC, "callable %d is \"%s\"", cid, pto_callable_get_name (callable));
  return 0;
}

/* A callable of a context, and its worker; NULL and an error where there is none. */
static PtoCallableHandle *
ref_callable (DeviceContextHandle ctx, PtoWorker *worker, int32_t cid, const char *where)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&ctx->lock);
  PtoCallableHandle *handle = NULL;

  if (ctx->worker == worker)
    handle = g_hash_table_lookup (ctx->callables, GINT_TO_POINTER (cid));
  if (handle == NULL)
    {
      fail (where, "there is no callable %d: register_callable() takes one", cid);
      return NULL;
    }
  return pto_callable_handle_ref (handle);
}

int
unregister_callable (DeviceContextHandle ctx, int32_t cid)
{
  g_autoptr (PtoWorker) worker = ref_worker (ctx, G_STRFUNC);
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (GError) error = NULL;

  if (worker == NULL)
    return -1;
  handle = ref_callable (ctx, worker, cid, G_STRFUNC);
  if (handle == NULL)
    return -1;
  if (!pto_worker_unregister (worker, handle, &error))
    return fail (G_STRFUNC, "callable %d: %s", cid, error->message);
  g_mutex_lock (&ctx->lock);
  if (ctx->callables != NULL)
    g_hash_table_remove (ctx->callables, GINT_TO_POINTER (cid));
  g_mutex_unlock (&ctx->lock);
  return 0;
}

/* The blob of pto_task_args_to_blob() is what a caller's structure holds, without what is not used
 * of it. */
static PtoTaskArgs *
read_args (const ChipStorageTaskArgs *args, GError **error)
{
  g_autoptr (GByteArray) blob = g_byte_array_new ();
  g_autoptr (GBytes) bytes = NULL;

  if (args == NULL)
    return pto_task_args_new ();
  if (args->tensor_count_ < 0 || args->tensor_count_ > PTO_MAX_KERNEL_ARGS
      || args->scalar_count_ < 0 || args->scalar_count_ > PTO_MAX_KERNEL_ARGS)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "%d tensors and %d scalars: there are 0 to %d of each", args->tensor_count_,
                   args->scalar_count_, PTO_MAX_KERNEL_ARGS);
      return NULL;
    }
  g_byte_array_append (blob, (const guint8 *) &args->tensor_count_, sizeof (int32_t));
  g_byte_array_append (blob, (const guint8 *) &args->scalar_count_, sizeof (int32_t));
  g_byte_array_append (blob, (const guint8 *) args->tensors_,
                       (guint) args->tensor_count_ * sizeof (ContinuousTensor));
  g_byte_array_append (blob, (const guint8 *) args->scalars_,
                       (guint) args->scalar_count_ * sizeof (uint64_t));
  bytes = g_byte_array_free_to_bytes (g_steal_pointer (&blob));
  return pto_task_args_new_from_blob (bytes, error);
}

int
simpler_fail (const char *where, const char *why)
{
  return fail (where, "%s", why);
}

static PtoCallConfig *
read_config (const CallConfig *config, GError **error)
{
  g_autoptr (PtoCallConfig) read = pto_call_config_new ();

  if (config == NULL)
    return g_steal_pointer (&read);
  if (memchr (config->output_prefix, '\0', sizeof config->output_prefix) == NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "output_prefix has %" G_GSIZE_FORMAT " bytes and no end",
                   sizeof config->output_prefix);
      return NULL;
    }
  pto_call_config_set_block_dim (read, config->block_dim);
  pto_call_config_set_aicpu_thread_num (read, config->aicpu_thread_num);
  pto_call_config_set_enable_l2_swimlane (read, config->enable_l2_swimlane);
  pto_call_config_set_enable_dump_tensor (read, config->enable_dump_tensor);
  pto_call_config_set_enable_pmu (read, config->enable_pmu);
  pto_call_config_set_enable_dep_gen (read, config->enable_dep_gen);
  pto_call_config_set_enable_scope_stats (read, config->enable_scope_stats);
  pto_call_config_set_enable_access_check (read, config->enable_access_check);
  if (config->output_prefix[0] != '\0')
    pto_call_config_set_output_prefix (read, config->output_prefix);
  return g_steal_pointer (&read);
}

PtoCallConfig *
simpler_read_config (const CallConfig *config)
{
  g_autoptr (GError) error = NULL;
  PtoCallConfig *read = read_config (config, &error);

  if (read == NULL)
    fail (G_STRFUNC, "%s", error->message);
  return read;
}

static gboolean
run (PtoWorker *worker, gboolean graph_first, PtoCallableHandle *handle,
     const ChipStorageTaskArgs *args, const CallConfig *config, GError **error)
{
  g_autoptr (PtoTaskArgs) given = read_args (args, error);
  g_autoptr (PtoCallConfig) choices = given != NULL ? read_config (config, error) : NULL;
  g_autoptr (PtoGraph) graph = NULL;

  if (choices == NULL)
    return FALSE;
  if (!graph_first)
    return pto_worker_run_callable (worker, handle, given, choices, NULL, error);
  /* The graph is the host's, so one thread is enough: it schedules, beside the one that launches.
   */
  if (pto_call_config_get_aicpu_thread_num (choices) == 1)
    pto_call_config_set_aicpu_thread_num (choices, 2);
  graph = pto_worker_capture_callable (worker, handle, given, choices, NULL, error);
  return graph != NULL && pto_worker_run_graph (worker, graph, given, choices, NULL, error);
}

int
simpler_run (DeviceContextHandle ctx, void *runtime, int32_t cid, const ChipStorageTaskArgs *args,
             const CallConfig *config)
{
  g_autoptr (PtoWorker) worker = ref_worker (ctx, G_STRFUNC);
  g_autoptr (PtoCallableHandle) handle = NULL;
  g_autoptr (PtoRunStatistics) statistics = NULL;
  g_autoptr (GError) error = NULL;
  SimplerRuntime *record = runtime;
  g_autoptr (GMutexLocker) locker = NULL;

  if (worker == NULL)
    return -1;
  locker = g_mutex_locker_new (&ctx->running);
  handle = ref_callable (ctx, worker, cid, G_STRFUNC);
  if (handle == NULL)
    return -1;
  /* Written by simpler_init() alone, under the lock that ref_callable() has taken since. */
  if (!run (worker, ctx->graph_first, handle, args, config, &error))
    return fail (G_STRFUNC, "callable %d: %s", cid, error->message);
  statistics = pto_worker_dup_statistics (worker);
  if (record != NULL)
    *record = (SimplerRuntime){
      .tasks = pto_run_statistics_get_tasks (statistics),
      .completed = pto_run_statistics_get_completed (statistics),
      .edges = pto_run_statistics_get_edges (statistics),
      .run_ns = pto_run_statistics_get_run_ns (statistics),
    };
  tell (2, G_STRFUNC, "callable %d: %" G_GUINT64_FORMAT " tasks", cid,
        pto_run_statistics_get_completed (statistics));
  return 0;
}

int
pto2_run_runtime (int32_t local_slot, const ChipStorageTaskArgs *args, const CallConfig *config)
{
  DeviceContextHandle ctx = g_private_get (&attached);

  if (ctx == NULL)
    return fail (G_STRFUNC, "this thread has no chip: simpler_init() gives it one");
  return simpler_run (ctx, NULL, local_slot, args, config);
}

void *
device_malloc (DeviceContextHandle ctx, size_t size)
{
  g_autoptr (PtoWorker) worker = ref_worker (ctx, G_STRFUNC);
  g_autoptr (GError) error = NULL;
  guint64 address;

  if (worker == NULL)
    return NULL;
  address = pto_worker_malloc (worker, size, &error);
  if (address == 0)
    fail (G_STRFUNC, "%s", error->message);
  return GSIZE_TO_POINTER (address);
}

int
device_free (DeviceContextHandle ctx, void *device)
{
  g_autoptr (PtoWorker) worker = ref_worker (ctx, G_STRFUNC);
  g_autoptr (GError) error = NULL;

  if (worker == NULL)
    return -1;
  if (!pto_worker_free (worker, GPOINTER_TO_SIZE (device), &error))
    return fail (G_STRFUNC, "%s", error->message);
  return 0;
}

int
copy_to_device (DeviceContextHandle ctx, void *device, const void *host, size_t size)
{
  g_autoptr (PtoWorker) worker = ref_worker (ctx, G_STRFUNC);
  g_autoptr (GError) error = NULL;

  if (worker == NULL)
    return -1;
  if (!pto_worker_copy_to_address (worker, GPOINTER_TO_SIZE (device), GPOINTER_TO_SIZE (host), size,
                                   &error))
    return fail (G_STRFUNC, "%s", error->message);
  return 0;
}

int
copy_from_device (DeviceContextHandle ctx, void *host, const void *device, size_t size)
{
  g_autoptr (PtoWorker) worker = ref_worker (ctx, G_STRFUNC);
  g_autoptr (GError) error = NULL;

  if (worker == NULL)
    return -1;
  if (!pto_worker_copy_from_address (worker, GPOINTER_TO_SIZE (host), GPOINTER_TO_SIZE (device),
                                     size, &error))
    return fail (G_STRFUNC, "%s", error->message);
  return 0;
}

int
finalize_device (DeviceContextHandle ctx)
{
  g_autoptr (PtoWorker) worker = NULL;
  g_autoptr (GHashTable) callables = NULL;

  if (ctx == NULL)
    return fail (G_STRFUNC, "there is no context: create_device_context() makes one");
  g_mutex_lock (&ctx->lock);
  worker = g_steal_pointer (&ctx->worker);
  callables = g_steal_pointer (&ctx->callables);
  g_mutex_unlock (&ctx->lock);
  if (worker == NULL)
    return 0;
  pto_worker_close (worker);
  tell (0, G_STRFUNC, "the chip is given back");
  return 0;
}

void
destroy_device_context (DeviceContextHandle ctx)
{
  if (ctx == NULL)
    return;
  finalize_device (ctx);
  context_unref (ctx);
}

PtoWorker *
simpler_get_worker (DeviceContextHandle ctx)
{
  PtoWorker *worker;

  if (ctx == NULL)
    return NULL;
  g_mutex_lock (&ctx->lock);
  worker = ctx->worker;
  g_mutex_unlock (&ctx->lock);
  return worker;
}
