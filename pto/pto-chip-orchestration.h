/* pto-chip-orchestration.h: which kernels does the orchestration of a chip have?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-device-code.h"

G_BEGIN_DECLS

#define PTO_TYPE_CHIP_ORCHESTRATION (pto_chip_orchestration_get_type ())

typedef struct _PtoChipOrchestration PtoChipOrchestration;
typedef struct _PtoChipOrchestrationClass PtoChipOrchestrationClass;

PTO_AVAILABLE_IN_0_1
GType pto_chip_orchestration_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_chip_orchestration_new (const char *path, const char *function, GError **error);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_chip_orchestration_new_for_directory (const char *directory, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_chip_orchestration_add_kernel (PtoChipOrchestration *chip, guint func_id,
                                            const char *name, PtoCallable *kernel, GError **error);
PTO_AVAILABLE_IN_0_1
guint pto_chip_orchestration_get_n_kernels (PtoChipOrchestration *chip);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_chip_orchestration_get_kernel (PtoChipOrchestration *chip, guint func_id);
PTO_AVAILABLE_IN_0_1
const char *pto_chip_orchestration_get_kernel_name (PtoChipOrchestration *chip, guint func_id);

static inline PtoChipOrchestration *
PTO_CHIP_ORCHESTRATION (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_CAST (object, PTO_TYPE_CHIP_ORCHESTRATION, PtoChipOrchestration);
}

static inline gboolean
PTO_IS_CHIP_ORCHESTRATION (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (object, PTO_TYPE_CHIP_ORCHESTRATION);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoChipOrchestration, g_object_unref)

G_END_DECLS
