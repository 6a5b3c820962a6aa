/* pto-callable-handle.h: how is a registered callable named?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_CALLABLE_HANDLE (pto_callable_handle_get_type ())

PTO_AVAILABLE_IN_ALL
GType pto_callable_handle_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_ALL
PtoCallableHandle *pto_callable_handle_ref (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_ALL
void pto_callable_handle_unref (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_ALL
PtoCallableKind pto_callable_handle_get_kind (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_ALL
const char *pto_callable_handle_get_digest (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_ALL
GBytes *pto_callable_handle_get_digest_bytes (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_ALL
PtoTargetNamespace pto_callable_handle_get_target_namespace (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_ALL
PtoCallable *pto_callable_handle_get_callable (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_ALL
gboolean pto_callable_handle_equal (PtoCallableHandle *a, PtoCallableHandle *b);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoCallableHandle, pto_callable_handle_unref)

G_END_DECLS
