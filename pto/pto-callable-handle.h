/* pto-callable-handle.h: how is a registered callable named?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_CALLABLE_HANDLE (pto_callable_handle_get_type ())

PTO_AVAILABLE_IN_0_1
GType pto_callable_handle_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoCallableHandle *pto_callable_handle_ref (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_0_1
void pto_callable_handle_unref (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_0_1
PtoCallableKind pto_callable_handle_get_kind (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_0_1
const char *pto_callable_handle_get_digest (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_0_1
GBytes *pto_callable_handle_dup_digest_bytes (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_0_1
PtoTargetNamespace pto_callable_handle_get_target_namespace (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_0_1
PtoCallable *pto_callable_handle_get_callable (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_0_1
char *pto_callable_handle_to_string (PtoCallableHandle *handle);
PTO_AVAILABLE_IN_0_1
gboolean pto_callable_handle_equal (PtoCallableHandle *a, PtoCallableHandle *b);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoCallableHandle, pto_callable_handle_unref)

G_END_DECLS
