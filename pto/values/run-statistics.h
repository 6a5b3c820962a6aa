/* run-statistics.h: how are statistics made?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "sim/chip.h"

#include "pto-run-statistics.h"

G_BEGIN_DECLS

PtoRunStatistics *pto_run_statistics_new (const struct pto_run_stats *stats);
const struct pto_run_stats *pto_run_statistics_peek (const PtoRunStatistics *statistics);

G_END_DECLS
