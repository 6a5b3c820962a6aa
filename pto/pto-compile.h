/* pto-compile.h: how does a program build and call foreign code the way the library does?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

PTO_AVAILABLE_IN_0_1
char *pto_compile_shared_object (const char *source, GCancellable *cancellable, GError **error);
PTO_AVAILABLE_IN_0_1
void pto_compile_shared_object_async (const char *source, GCancellable *cancellable,
                                      GAsyncReadyCallback callback, gpointer user_data);
PTO_AVAILABLE_IN_0_1
char *pto_compile_shared_object_finish (GAsyncResult *result, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_dup_api_dir (GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_dup_compiler (const char *source, GError **error);

typedef void (*PtoForeignFunc) (gpointer user_data);

PTO_AVAILABLE_IN_0_1
gboolean pto_call_foreign (gpointer module, PtoForeignFunc func, gpointer user_data,
                           GError **error);

G_END_DECLS
