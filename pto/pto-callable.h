/* pto-callable.h: what can a worker run: a kernel, or an orchestration with its kernels?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_CALLABLE (pto_callable_get_type ())

PTO_AVAILABLE_IN_ALL
G_DECLARE_FINAL_TYPE (PtoCallable, pto_callable, PTO, CALLABLE, GObject)

PTO_AVAILABLE_IN_ALL
PtoCallable *pto_callable_new_kernel (PtoCoreType core_type, const char *path, const char *symbol,
                                      GError **error);
PTO_AVAILABLE_IN_ALL
PtoCallable *pto_callable_new_chip (const char *path, const char *function, GError **error);
PTO_AVAILABLE_IN_ALL
gboolean pto_callable_add_kernel (PtoCallable *chip, guint func_id, const char *name,
                                  PtoCallable *kernel, GError **error);
PTO_AVAILABLE_IN_ALL
gboolean pto_callable_set_cost (PtoCallable *kernel, const char *cost, GError **error);
PTO_AVAILABLE_IN_ALL
const char *pto_callable_get_cost (PtoCallable *kernel);
PTO_AVAILABLE_IN_ALL
gboolean pto_callable_set_signature (PtoCallable *kernel, const PtoDirection *directions,
                                     gsize n_directions, GError **error);
PTO_AVAILABLE_IN_ALL
const PtoDirection *pto_callable_get_signature (PtoCallable *kernel, gsize *n_directions);
PTO_AVAILABLE_IN_ALL
PtoCallableKind pto_callable_get_kind (PtoCallable *callable);
PTO_AVAILABLE_IN_ALL
PtoCoreType pto_callable_get_core_type (PtoCallable *kernel);
PTO_AVAILABLE_IN_ALL
const char *pto_callable_get_path (PtoCallable *callable);
PTO_AVAILABLE_IN_ALL
const char *pto_callable_get_symbol (PtoCallable *callable);
PTO_AVAILABLE_IN_ALL
const char *pto_callable_get_name (PtoCallable *callable);
PTO_AVAILABLE_IN_ALL
void pto_callable_set_name (PtoCallable *callable, const char *name);
PTO_AVAILABLE_IN_ALL
guint pto_callable_get_n_kernels (PtoCallable *chip);
PTO_AVAILABLE_IN_ALL
PtoCallable *pto_callable_get_kernel (PtoCallable *chip, guint func_id);
PTO_AVAILABLE_IN_ALL
const char *pto_callable_get_kernel_name (PtoCallable *chip, guint func_id);

G_END_DECLS
