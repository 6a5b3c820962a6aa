/* pto-kernel.h: what does a worker know of a kernel?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-device-code.h"

G_BEGIN_DECLS

#define PTO_TYPE_KERNEL (pto_kernel_get_type ())

typedef struct _PtoKernel PtoKernel;
typedef struct _PtoKernelClass PtoKernelClass;

PTO_AVAILABLE_IN_0_1
GType pto_kernel_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_kernel_new (PtoCoreType core_type, const char *path, const char *symbol,
                             GError **error);
PTO_AVAILABLE_IN_0_1
PtoCoreType pto_kernel_get_core_type (PtoKernel *kernel);
PTO_AVAILABLE_IN_0_1
gboolean pto_kernel_set_cost (PtoKernel *kernel, const char *cost, GError **error);
PTO_AVAILABLE_IN_0_1
const char *pto_kernel_get_cost (PtoKernel *kernel);
PTO_AVAILABLE_IN_0_1
gboolean pto_kernel_set_signature (PtoKernel *kernel, const PtoDirection *directions,
                                   gsize n_directions, GError **error);
PTO_AVAILABLE_IN_0_1
const PtoDirection *pto_kernel_get_signature (PtoKernel *kernel, gsize *n_directions);
PTO_AVAILABLE_IN_0_1
gboolean pto_kernel_set_n_args (PtoKernel *kernel, int n_args, GError **error);
PTO_AVAILABLE_IN_0_1
int pto_kernel_get_n_args (PtoKernel *kernel);

static inline PtoKernel *
PTO_KERNEL (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_CAST (object, PTO_TYPE_KERNEL, PtoKernel);
}

static inline gboolean
PTO_IS_KERNEL (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (object, PTO_TYPE_KERNEL);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoKernel, g_object_unref)

G_END_DECLS
