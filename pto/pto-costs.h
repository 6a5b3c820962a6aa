/* pto-costs.h: how long does each kernel take, as somebody has measured it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-trace.h"

G_BEGIN_DECLS

/**
 * PtoClock:
 * @PTO_CLOCK_CHIP: a real chip's, or whatever a table of measured times is of
 * @PTO_CLOCK_CPU: this machine's, in a run of the back ends `par` and `threads`
 * @PTO_CLOCK_VIRTUAL: that of the back end `det`: kernels take there what their costs say
 *
 * Whose time it is that was measured. Times of different clocks are never put together.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_CLOCK_CHIP,
  PTO_CLOCK_CPU,
  PTO_CLOCK_VIRTUAL
} PtoClock;

#define PTO_TYPE_COSTS (pto_costs_get_type ())

PTO_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (PtoCosts, pto_costs, PTO, COSTS, GObject)

PTO_AVAILABLE_IN_0_1
PtoCosts *pto_costs_new (void);
PTO_AVAILABLE_IN_0_1
PtoCosts *pto_costs_new_from_history (GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_costs_add_file (PtoCosts *self, const char *path, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_costs_add_trace (PtoCosts *self, PtoTrace *trace, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_costs_add_time (PtoCosts *self, const char *kernel, PtoClock clock, guint64 bytes,
                             double ns, GError **error);
PTO_AVAILABLE_IN_0_1
char **pto_costs_list_repeated (PtoCosts *self);
PTO_AVAILABLE_IN_0_1
char **pto_costs_list_kernels (PtoCosts *self);
PTO_AVAILABLE_IN_0_1
char *pto_costs_dup_cost (PtoCosts *self, const char *kernel, PtoClock clock);
PTO_AVAILABLE_IN_0_1
char *pto_costs_describe (PtoCosts *self);
PTO_AVAILABLE_IN_0_1
char *pto_costs_describe_json (PtoCosts *self);
PTO_AVAILABLE_IN_0_1
gboolean pto_costs_keep (PtoCosts *self, GError **error);
PTO_AVAILABLE_IN_0_1
gboolean pto_costs_forget (PtoCosts *self, const char *kernel, GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_costs_dup_history_path (GError **error);
PTO_AVAILABLE_IN_0_1
char *pto_costs_to_string (PtoCosts *self);

G_END_DECLS
