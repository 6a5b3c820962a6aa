/* new-kernels.c: which kernels may an orchestration function submit?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Nobody knows before it has run. But a kernel that a program has made it has made to be submitted:
 * those that a worker has not seen are compiled before its run, all at once, and not one by one
 * while it lasts.
 */
#include "config.h"

#include "kernel.h"

#include "base/locks.h"

/* A program that makes thousands submits them in more than one run. */
#define MAX_EXPECTED 64

static GQueue kernels = G_QUEUE_INIT; /* PtoKernel, the youngest first; with PTO_LOCK_KERNELS */
/* The serial of the youngest there ever was, so that a worker that has seen all of them need not
 * look. Written with the lock, atomic. One that another thread makes at the same time as a younger
 * one may be missed: then it is compiled by its submit. */
static gsize youngest;

void
pto_kernel_expect (PtoKernel *kernel)
{
  PtoDeviceCode *code = PTO_DEVICE_CODE (kernel);

  if (code->language == PTO_LANGUAGE_OBJECT)
    return;
  kernel->link.data = kernel;
  pto_lock (PTO_LOCK_KERNELS);
  g_queue_push_head_link (&kernels, &kernel->link);
  if (youngest < code->parent_instance.serial)
    g_atomic_pointer_set (&youngest, (gsize) code->parent_instance.serial);
  pto_unlock (PTO_LOCK_KERNELS);
}

void
pto_kernel_expect_no_more (PtoKernel *kernel)
{
  if (kernel->link.data == NULL)
    return;
  pto_lock (PTO_LOCK_KERNELS);
  g_queue_unlink (&kernels, &kernel->link);
  pto_unlock (PTO_LOCK_KERNELS);
}

static void
expected_free (gpointer data)
{
  PtoExpectedKernel *expected = data;

  g_free ((gpointer) expected->job.path);
  g_free ((gpointer) expected->job.label);
  pto_compiler_job_clear (&expected->job);
  g_free (expected);
}

/* With the lock: whoever is about to end it waits for that. */
static PtoExpectedKernel *
expected_new (PtoKernel *kernel)
{
  PtoExpectedKernel *expected = g_new0 (PtoExpectedKernel, 1);

  expected->kernel = kernel;
  expected->serial = PTO_CALLABLE (kernel)->serial;
  expected->revision = PTO_DEVICE_CODE (kernel)->revision;
  pto_device_code_set_job (PTO_DEVICE_CODE (kernel), PTO_CALLABLE (kernel)->name, &expected->job);
  expected->job.path = g_strdup (expected->job.path);
  return expected;
}

GPtrArray *
pto_kernel_list_expected (guint64 *seen)
{
  GPtrArray *list;

  if ((guint64) (gsize) g_atomic_pointer_get (&youngest) <= *seen)
    return NULL;
  list = g_ptr_array_new_with_free_func (expected_free);
  pto_lock (PTO_LOCK_KERNELS);
  for (GList *l = kernels.head; l != NULL && list->len < MAX_EXPECTED; l = l->next)
    if (PTO_CALLABLE (l->data)->serial > *seen)
      g_ptr_array_add (list, expected_new (l->data));
  *seen = youngest;
  pto_unlock (PTO_LOCK_KERNELS);
  return list;
}
