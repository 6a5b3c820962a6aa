/* pto-tensor.h: how does a program name a tensor, or a part of one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_TENSOR (pto_tensor_get_type ())

PTO_AVAILABLE_IN_0_1
GType pto_tensor_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_new (PtoDtype dtype, gsize n_dims, const guint64 *shape);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_new_external (guint64 address, PtoDtype dtype, gsize n_dims,
                                    const guint64 *shape);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_new_external_full (guint64 address, PtoDtype dtype, gsize n_dims,
                                         const guint64 *shape, gpointer owner,
                                         GDestroyNotify release);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_new_for_object (guint64 address, PtoDtype dtype, gsize n_dims,
                                      const guint64 *shape, GObject *owner);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_new_for_bytes (GBytes *bytes, guint64 offset, PtoDtype dtype, gsize n_dims,
                                     const guint64 *shape, GError **error);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_new_for_buffer (PtoBuffer *buffer, guint64 offset, PtoDtype dtype,
                                      gsize n_dims, const guint64 *shape, GError **error);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_ref (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
void pto_tensor_unref (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_view (PtoTensor *tensor, gsize n_dims, const guint64 *shape,
                            const guint64 *offsets, GError **error);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_reshape (PtoTensor *tensor, gsize n_dims, const guint64 *shape,
                               GError **error);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_as_strided (PtoTensor *tensor, gsize n_dims, const guint64 *shape,
                                  const guint64 *strides, guint64 offset, GError **error);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_transpose (PtoTensor *tensor, guint x, guint y, GError **error);
PTO_AVAILABLE_IN_0_1
PtoTensor *pto_tensor_as_read_only (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
gboolean pto_tensor_is_read_only (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
gboolean pto_tensor_is_remote (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
int pto_tensor_get_worker (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
guint64 pto_tensor_get_address (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
PtoDtype pto_tensor_get_dtype (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
guint pto_tensor_get_n_dims (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
const guint64 *pto_tensor_get_shape (PtoTensor *tensor, gsize *n_dims);
PTO_AVAILABLE_IN_0_1
const guint64 *pto_tensor_get_strides (PtoTensor *tensor, gsize *n_dims);
PTO_AVAILABLE_IN_0_1
guint64 pto_tensor_get_n_elements (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
guint64 pto_tensor_get_n_bytes (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
GBytes *pto_tensor_ref_bytes (PtoTensor *tensor, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_tensor_is_contiguous (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
gboolean pto_tensor_is_external (PtoTensor *tensor);
PTO_AVAILABLE_IN_0_1
char *pto_tensor_to_string (PtoTensor *tensor);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoTensor, pto_tensor_unref)

G_END_DECLS
