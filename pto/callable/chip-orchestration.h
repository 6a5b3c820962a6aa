/* chip-orchestration.h: which kernels does the orchestration of a chip have?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "device-code.h"
#include "kernel.h"
#include "pto-chip-orchestration.h"

G_BEGIN_DECLS

typedef struct
{
  guint func_id;
  char *name;
  PtoCallable *kernel; /* a PtoKernel */
} PtoChipKernel;

struct _PtoChipOrchestration
{
  PtoDeviceCode parent_instance;

  GArray *kernels; /* PtoChipKernel, ascending func_id */
};

struct _PtoChipOrchestrationClass
{
  PtoDeviceCodeClass parent_class;
};

G_END_DECLS
