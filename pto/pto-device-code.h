/* pto-device-code.h: what is built for a chip, and with what is it compiled?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-callable.h"

G_BEGIN_DECLS

#define PTO_TYPE_DEVICE_CODE (pto_device_code_get_type ())

typedef struct _PtoDeviceCode PtoDeviceCode;
typedef struct _PtoDeviceCodeClass PtoDeviceCodeClass;

PTO_AVAILABLE_IN_0_1
GType pto_device_code_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
const char *pto_device_code_get_symbol (PtoDeviceCode *code);
PTO_AVAILABLE_IN_0_1
gboolean pto_device_code_set_include_dirs (PtoDeviceCode *code, const char *const *dirs,
                                           GError **error);
PTO_AVAILABLE_IN_0_1
const char *const *pto_device_code_get_include_dirs (PtoDeviceCode *code);
PTO_AVAILABLE_IN_0_1
gboolean pto_device_code_set_compiler_flags (PtoDeviceCode *code, const char *const *flags,
                                             GError **error);
PTO_AVAILABLE_IN_0_1
const char *const *pto_device_code_get_compiler_flags (PtoDeviceCode *code);
PTO_AVAILABLE_IN_0_1
char **pto_device_code_dup_files (PtoDeviceCode *code);
PTO_AVAILABLE_IN_0_1
gboolean pto_device_code_is_edited (PtoDeviceCode *code);
PTO_AVAILABLE_IN_0_1
gboolean pto_device_code_build (PtoDeviceCode *code, GCancellable *cancellable, GError **error);
PTO_AVAILABLE_IN_0_1
void pto_device_code_build_async (PtoDeviceCode *code, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);
PTO_AVAILABLE_IN_0_1
gboolean pto_device_code_build_finish (PtoDeviceCode *code, GAsyncResult *result, GError **error);

static inline PtoDeviceCode *
PTO_DEVICE_CODE (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_CAST (object, PTO_TYPE_DEVICE_CODE, PtoDeviceCode);
}

static inline gboolean
PTO_IS_DEVICE_CODE (gpointer object)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (object, PTO_TYPE_DEVICE_CODE);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoDeviceCode, g_object_unref)

G_END_DECLS
