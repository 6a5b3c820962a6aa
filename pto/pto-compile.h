/* pto-compile.h: how does a program build a shared object the way the library builds kernels?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

PTO_AVAILABLE_IN_ALL
char *pto_compile_shared_object (const char *source, GCancellable *cancellable, GError **error);
PTO_AVAILABLE_IN_ALL
char *pto_dup_api_dir (GError **error);
PTO_AVAILABLE_IN_ALL
char *pto_dup_compiler (const char *source, GError **error);

G_END_DECLS
