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

struct pto_args_view;         /* process/wire.h */
struct pto_continuous_tensor; /* process/wire.h */

const PtoArg *pto_task_args_peek (const PtoTaskArgs *args, guint *n_args);
PtoTaskArgs *pto_task_args_copy (const PtoTaskArgs *args);

/* What a tensor is on its way to another worker; the address may be 0. index: of the argument, for
 * the message. Fails with PTO_ERROR_INVALID_ARGS: not contiguous, or an extent of 2^32 or more. */
gboolean pto_task_args_pack_tensor (const PtoTaskArgs *args, guint index,
                                    struct pto_continuous_tensor *packed, GError **error);
/* A worker's call has tensors first, then scalars. PTO_ERROR_INVALID_ARGS, naming the argument. */
gboolean pto_task_args_check_order (const PtoTaskArgs *args, GError **error);
/* The child's side: what the view says, instead of what was there; no directions. */
void pto_task_args_set_view (PtoTaskArgs *args, const struct pto_args_view *view);
/* What pto_task_args_is_cancelled() asks; NULL: nothing. Not while another thread may ask. */
void pto_task_args_set_cancelled (PtoTaskArgs *args, bool (*is_cancelled) (void *data),
                                  gpointer data);
/* Has somebody else a reference, who may still look at it? */
gboolean pto_task_args_is_shared (PtoTaskArgs *args);

G_END_DECLS
