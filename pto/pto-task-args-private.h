/* pto-task-args-private.h: how do the arguments of a task lie in memory?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "api/pto_orchestration_api.h"

#include "pto-task-args.h"

G_BEGIN_DECLS

typedef struct
{
  PtoDirection direction;
  PtoTensor *tensor; /* NULL for a scalar */
  guint64 scalar;
} PtoArg;

const PtoArg *pto_task_args_peek (const PtoTaskArgs *args, guint *n_args);
PtoTaskArgs *pto_task_args_copy (const PtoTaskArgs *args);

G_END_DECLS
