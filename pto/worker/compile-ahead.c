/* compile-ahead.c: what is compiled before the clock of a run begins?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A function submits kernels that its worker has not seen. To preprocess one for a look into the
 * cache takes as long as thousands of tasks, to compile it ten times that; while a run lasts, that
 * would be on its critical path. So kernels that the program has made are compiled first. What
 * could not be compiled is tried again by its submit, whose error says why.
 */
#include "config.h"

#include "worker.h"

#include "callable/identity.h"
#include "callable/kernel.h"

/* All at once; where one can not be compiled, which ends the others, each for itself. */
static void
compile (PtoWorker *self, const GPtrArray *kernels, GCancellable *cancellable)
{
  g_autofree PtoCompilerJob *jobs = g_new (PtoCompilerJob, kernels->len);
  gboolean ok;

  for (guint i = 0; i < kernels->len; i++)
    {
      jobs[i] = ((PtoExpectedKernel *) g_ptr_array_index (kernels, i))->job;
      jobs[i].checks_access = self->params.values[PTO_PARAMETER_CHECK] == PTO_CHECK_ACCESS;
    }
  ok = pto_compiler_build (jobs, kernels->len, pto_worker_report_progress, self, cancellable, NULL);
  for (guint i = 0; i < kernels->len; i++)
    {
      PtoExpectedKernel *kernel = g_ptr_array_index (kernels, i);

      if (!ok)
        {
          g_clear_pointer (&jobs[i].object, g_free);
          if (g_cancellable_is_cancelled (cancellable)
              || !pto_compiler_build (&jobs[i], 1, pto_worker_report_progress, self, cancellable,
                                      NULL))
            g_clear_pointer (&jobs[i].object, g_free);
        }
      kernel->job = jobs[i];
    }
}

void
pto_worker_compile_ahead (PtoWorker *self, GCancellable *cancellable)
{
  GPtrArray *kernels = pto_kernel_list_expected (&self->youngest_kernel);

  if (kernels == NULL)
    return;
  for (guint i = kernels->len; i > 0; i--)
    {
      const PtoExpectedKernel *kernel = g_ptr_array_index (kernels, i - 1);

      if (pto_registry_knows (self->node.registry, kernel->kernel, kernel->serial))
        g_ptr_array_remove_index (kernels, i - 1);
    }
  if (kernels->len > 0)
    compile (self, kernels, cancellable);
  g_mutex_lock (&self->lock);
  self->ahead = kernels;
  g_mutex_unlock (&self->lock);
}

void
pto_worker_forget_ahead (PtoWorker *self)
{
  GPtrArray *kernels;

  g_mutex_lock (&self->lock);
  kernels = g_steal_pointer (&self->ahead);
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&kernels, g_ptr_array_unref);
}

PtoRegistration *
pto_worker_register_ahead (PtoWorker *self, PtoCallable *callable)
{
  PtoRegistration *registration = NULL;
  GPtrArray *ahead;

  g_mutex_lock (&self->lock);
  ahead = self->ahead != NULL ? g_ptr_array_ref (self->ahead) : NULL;
  g_mutex_unlock (&self->lock);
  for (guint i = 0; ahead != NULL && i < ahead->len && registration == NULL; i++)
    {
      const PtoExpectedKernel *kernel = g_ptr_array_index (ahead, i);

      if (kernel->serial == callable->serial && kernel->job.object != NULL
          && kernel->revision == PTO_DEVICE_CODE (callable)->revision)
        registration = pto_registration_new_compiled (callable, self->node.platform, &kernel->job);
    }
  g_clear_pointer (&ahead, g_ptr_array_unref);
  return registration;
}
