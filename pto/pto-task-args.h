/* pto-task-args.h: which arguments does a task or an orchestration get?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_TASK_ARGS (pto_task_args_get_type ())

PTO_AVAILABLE_IN_0_1
GType pto_task_args_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoTaskArgs *pto_task_args_new (void);
PTO_AVAILABLE_IN_0_1
PtoTaskArgs *pto_task_args_ref (PtoTaskArgs *args);
PTO_AVAILABLE_IN_0_1
void pto_task_args_unref (PtoTaskArgs *args);
PTO_AVAILABLE_IN_0_1
void pto_task_args_add_tensor (PtoTaskArgs *args, PtoTensor *tensor, PtoDirection direction);
PTO_AVAILABLE_IN_0_1
void pto_task_args_add_reduction (PtoTaskArgs *args, PtoTensor *tensor, PtoReduction operation);
PTO_AVAILABLE_IN_0_1
void pto_task_args_add_reduction_kernel (PtoTaskArgs *args, PtoTensor *tensor, PtoCallable *combine,
                                         const GValue *initial);
PTO_AVAILABLE_IN_0_1
void pto_task_args_add_scalar (PtoTaskArgs *args, guint64 value);
PTO_AVAILABLE_IN_0_1
void pto_task_args_add_scalar_signed (PtoTaskArgs *args, gint64 value);
PTO_AVAILABLE_IN_0_1
void pto_task_args_add_scalar_double (PtoTaskArgs *args, double value);
PTO_AVAILABLE_IN_0_1
void pto_task_args_add_scalar_float (PtoTaskArgs *args, double value);
PTO_AVAILABLE_IN_0_1
void pto_task_args_add_after (PtoTaskArgs *args, guint64 task);
PTO_AVAILABLE_IN_0_1
void pto_task_args_set_condition (PtoTaskArgs *args, PtoTensor *tensor, gsize n_index,
                                  const guint64 *index);
PTO_AVAILABLE_IN_0_1
void pto_task_args_set_block_dim (PtoTaskArgs *args, int block_dim);
PTO_AVAILABLE_IN_0_1
void pto_task_args_set_sync_start (PtoTaskArgs *args, gboolean sync_start);
PTO_AVAILABLE_IN_0_1
void pto_task_args_set_cluster (PtoTaskArgs *args, int cluster);
PTO_AVAILABLE_IN_0_1
void pto_task_args_reset (PtoTaskArgs *args);
PTO_AVAILABLE_IN_0_1
guint pto_task_args_get_n_args (PtoTaskArgs *args);
PTO_AVAILABLE_IN_0_1
guint pto_task_args_get_n_tensors (PtoTaskArgs *args);
PTO_AVAILABLE_IN_0_1
guint pto_task_args_get_n_scalars (PtoTaskArgs *args);
PTO_AVAILABLE_IN_0_1
PtoDirection pto_task_args_get_direction (PtoTaskArgs *args, guint index);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_task_args_get_tensor (PtoTaskArgs *args, guint index);
PTO_AVAILABLE_IN_0_1
guint64 pto_task_args_get_scalar (PtoTaskArgs *args, guint index);
PTO_AVAILABLE_IN_0_1
PtoScalarKind pto_task_args_get_scalar_kind (PtoTaskArgs *args, guint index);
PTO_AVAILABLE_IN_0_1
double pto_task_args_get_scalar_double (PtoTaskArgs *args, guint index);
PTO_AVAILABLE_IN_0_1
void pto_task_args_get_scalar_value (PtoTaskArgs *args, guint index, GValue *value);
PTO_AVAILABLE_IN_0_1
gboolean pto_task_args_is_cancelled (PtoTaskArgs *args);
PTO_AVAILABLE_IN_0_1
GBytes *pto_task_args_to_blob (PtoTaskArgs *args, GError **error);
PTO_AVAILABLE_IN_0_1
PtoTaskArgs *pto_task_args_new_from_blob (GBytes *blob, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_task_args_to_string (PtoTaskArgs *args);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoTaskArgs, pto_task_args_unref)

G_END_DECLS
