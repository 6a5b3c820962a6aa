/* run-statistics.h: how are statistics made?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "sim/chip.h"

#include "pto-run-statistics.h"

G_BEGIN_DECLS

struct _PtoRunStatistics
{
  struct pto_run_stats stats;
};

PtoRunStatistics *pto_run_statistics_new (const struct pto_run_stats *stats);

G_END_DECLS
