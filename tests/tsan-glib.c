/* tsan-glib.c: what orders threads in GLib, told to the thread sanitizer.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Debian's GLib is not instrumented: the sanitizer sees none of its locks, and takes for a race
 * what they order. Each function here stands before the one of GLib that has its name, calls that,
 * and says which order it makes: what came before a release of an address comes before what follows
 * an acquire of it. None says more than GLib's documentation promises, but for those that release a
 * reference, where any two are ordered and not only each with the last.
 */
#include <dlfcn.h>
#include <gio/gio.h>

void __tsan_acquire (void *address);
void __tsan_release (void *address);

#define REAL(name)                                           \
  static __typeof__ (name) *found;                           \
  __typeof__ (name) *real = g_atomic_pointer_get (&found);   \
  if (real == NULL)                                          \
    {                                                        \
      real = (__typeof__ (name) *) dlsym (RTLD_NEXT, #name); \
      g_atomic_pointer_set (&found, real);                   \
    }

/* --- locks --- */

void
g_mutex_lock (GMutex *mutex)
{
  REAL (g_mutex_lock);
  real (mutex);
  __tsan_acquire (mutex);
}

gboolean
g_mutex_trylock (GMutex *mutex)
{
  REAL (g_mutex_trylock);
  if (!real (mutex))
    return FALSE;
  __tsan_acquire (mutex);
  return TRUE;
}

void
g_mutex_unlock (GMutex *mutex)
{
  REAL (g_mutex_unlock);
  __tsan_release (mutex);
  real (mutex);
}

void
g_cond_wait (GCond *cond, GMutex *mutex)
{
  REAL (g_cond_wait);
  __tsan_release (mutex);
  real (cond, mutex);
  __tsan_acquire (mutex);
}

gboolean
g_cond_wait_until (GCond *cond, GMutex *mutex, gint64 end_time)
{
  gboolean signalled;

  REAL (g_cond_wait_until);
  __tsan_release (mutex);
  signalled = real (cond, mutex, end_time);
  __tsan_acquire (mutex);
  return signalled;
}

/* Pairs with the atomic read in the macro g_once_init_enter(). */
void (g_once_init_leave) (volatile void *location, gsize result)
{
  static void (*real) (volatile void *location, gsize result);

  if (g_atomic_pointer_get (&real) == NULL)
    g_atomic_pointer_set (&real, dlsym (RTLD_NEXT, "g_once_init_leave"));
  __tsan_release ((void *) location);
  real (location, result);
}

/* --- references: what the others did with it comes before the last one frees it --- */

gboolean
g_atomic_ref_count_dec (gatomicrefcount *count)
{
  REAL (g_atomic_ref_count_dec);
  __tsan_release (count);
  if (!real (count))
    return FALSE;
  __tsan_acquire (count);
  return TRUE;
}

void
g_atomic_rc_box_release_full (gpointer box, GDestroyNotify clear)
{
  REAL (g_atomic_rc_box_release_full);
  __tsan_release (box);
  __tsan_acquire (box);
  real (box, clear);
}

void
g_object_unref (gpointer object)
{
  REAL (g_object_unref);
  __tsan_release (object);
  __tsan_acquire (object);
  real (object);
}

void
g_bytes_unref (GBytes *bytes)
{
  REAL (g_bytes_unref);
  if (bytes != NULL)
    {
      __tsan_release (bytes);
      __tsan_acquire (bytes);
    }
  real (bytes);
}

/* --- messages --- */

void
g_async_queue_push (GAsyncQueue *queue, gpointer data)
{
  REAL (g_async_queue_push);
  __tsan_release (queue);
  real (queue, data);
}

gpointer
g_async_queue_pop (GAsyncQueue *queue)
{
  gpointer data;

  REAL (g_async_queue_pop);
  data = real (queue);
  __tsan_acquire (queue);
  return data;
}

void
g_cancellable_cancel (GCancellable *cancellable)
{
  REAL (g_cancellable_cancel);
  if (cancellable != NULL)
    __tsan_release (cancellable);
  real (cancellable);
}

gboolean
g_cancellable_is_cancelled (GCancellable *cancellable)
{
  REAL (g_cancellable_is_cancelled);
  if (!real (cancellable))
    return FALSE;
  __tsan_acquire (cancellable);
  return TRUE;
}

/* --- main contexts: what came before a source was attached comes before its dispatch --- */

typedef struct
{
  GSource *source; /* an address only */
  GSourceFunc func;
  gpointer data;
  GDestroyNotify notify;
} Dispatch;

/* What it reads before the acquire was written before the release. */
static __attribute__ ((no_sanitize ("thread"))) gboolean
dispatch (gpointer data)
{
  Dispatch *self = data;

  __tsan_acquire (self->source);
  return self->func (self->data);
}

static __attribute__ ((no_sanitize ("thread"))) void
dispatch_free (gpointer data)
{
  Dispatch *self = data;

  __tsan_acquire (self->source);
  if (self->notify != NULL)
    self->notify (self->data);
  g_free (self);
}

/* Of sources that call a GSourceFunc with nothing but data: others have a closure or another
 * signature. */
void
g_source_set_callback (GSource *source, GSourceFunc func, gpointer data, GDestroyNotify notify)
{
  REAL (g_source_set_callback);
  if (func != NULL
      && (source->source_funcs == &g_idle_funcs || source->source_funcs == &g_timeout_funcs))
    {
      Dispatch *self = g_new (Dispatch, 1);

      *self = (Dispatch){ source, func, data, notify };
      real (source, dispatch, self, dispatch_free);
    }
  else
    real (source, func, data, notify);
}

guint
g_source_attach (GSource *source, GMainContext *context)
{
  REAL (g_source_attach);
  __tsan_release (source);
  return real (source, context);
}

void
g_main_context_invoke_full (GMainContext *context, gint priority, GSourceFunc func, gpointer data,
                            GDestroyNotify notify)
{
  Dispatch *self = g_new (Dispatch, 1);

  REAL (g_main_context_invoke_full);
  *self = (Dispatch){ (GSource *) self, func, data, notify };
  __tsan_release (self);
  real (context, priority, dispatch, self, dispatch_free);
}

/* --- tasks: what came before one comes before its thread, and what that did before its end --- */

/* What it reads before the acquire was written before the release. */
static __attribute__ ((no_sanitize ("thread"))) void
run_task (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  GTaskThreadFunc func = (GTaskThreadFunc) g_object_get_data (G_OBJECT (task), "tsan-func");

  __tsan_acquire (task);
  func (task, source, data, cancellable);
}

void
g_task_run_in_thread (GTask *task, GTaskThreadFunc func)
{
  REAL (g_task_run_in_thread);
  g_object_set_data (G_OBJECT (task), "tsan-func", (gpointer) func);
  __tsan_release (task);
  real (task, run_task);
}

void
g_task_return_boolean (GTask *task, gboolean result)
{
  REAL (g_task_return_boolean);
  __tsan_release (task);
  real (task, result);
}

void
g_task_return_pointer (GTask *task, gpointer result, GDestroyNotify destroy)
{
  REAL (g_task_return_pointer);
  __tsan_release (task);
  real (task, result, destroy);
}

void
g_task_return_error (GTask *task, GError *error)
{
  REAL (g_task_return_error);
  __tsan_release (task);
  real (task, error);
}

gboolean
g_task_propagate_boolean (GTask *task, GError **error)
{
  REAL (g_task_propagate_boolean);
  __tsan_acquire (task);
  return real (task, error);
}

gpointer
g_task_propagate_pointer (GTask *task, GError **error)
{
  REAL (g_task_propagate_pointer);
  __tsan_acquire (task);
  return real (task, error);
}
