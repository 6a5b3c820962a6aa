/* pto-error-private.h: how does a report of the engine become a GError?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "core/status.h"

#include "pto-error.h"

G_BEGIN_DECLS

int pto_error_code_from_status (enum pto_status status);
void pto_error_set_from_report (GError **error, enum pto_status status,
                                const struct pto_report *report);
gboolean pto_error_set_if_cancelled (GCancellable *cancellable, GError **error);

G_END_DECLS
