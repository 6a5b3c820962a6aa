/* pto-callable.h: what can a worker run: a kernel, or an orchestration with its kernels?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_CALLABLE (pto_callable_get_type ())

typedef struct _PtoCallableClass PtoCallableClass;

PTO_AVAILABLE_IN_0_1
GType pto_callable_get_type (void) G_GNUC_CONST;

static inline PtoCallable *
PTO_CALLABLE (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_CAST (object, PTO_TYPE_CALLABLE, PtoCallable);
}

static inline gboolean
PTO_IS_CALLABLE (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (object, PTO_TYPE_CALLABLE);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoCallable, g_object_unref)

PTO_AVAILABLE_IN_0_1
PtoCallableSource pto_callable_get_source (PtoCallable *callable);
PTO_AVAILABLE_IN_0_1
PtoCallableKind pto_callable_get_kind (PtoCallable *callable);
PTO_AVAILABLE_IN_0_1
const char *pto_callable_get_path (PtoCallable *callable);
PTO_AVAILABLE_IN_0_1
const char *pto_callable_get_name (PtoCallable *callable);
PTO_AVAILABLE_IN_0_1
void pto_callable_set_name (PtoCallable *callable, const char *name);
PTO_AVAILABLE_IN_0_1
gboolean pto_callable_get_idempotent (PtoCallable *callable);
PTO_AVAILABLE_IN_0_1
void pto_callable_set_idempotent (PtoCallable *callable, gboolean idempotent);
PTO_AVAILABLE_IN_0_1
char *pto_callable_to_string (PtoCallable *callable);

G_END_DECLS
