/* pto-trace-simulate.h: when would the tasks of workers above chips run, on one virtual clock?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-trace.h"

G_BEGIN_DECLS

PTO_AVAILABLE_IN_0_1
PtoTrace *pto_trace_simulate (PtoTrace *self, const char *const *settings, GError **error);

G_END_DECLS
