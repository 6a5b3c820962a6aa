/* run-outputs.h: which files does a run write that its configuration asks for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed.
 */
#pragma once

#include "values/call-config.h"
#include "pto-trace.h"

G_BEGIN_DECLS

/* The configuration as that run has it: with its own prefix in the first run of this process that
 * asks for that, and with a number behind it in later ones. Caller frees. */
PtoCallConfig *pto_run_outputs_claim_for (const PtoCallConfig *config, guint64 run);
/* The run is over. trace: its record; NULL: there is none. */
gboolean pto_run_outputs_write (const PtoCallConfig *config, PtoTrace *trace, GError **error);

G_END_DECLS
