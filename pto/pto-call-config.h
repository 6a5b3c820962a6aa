/* pto-call-config.h: which choices does one run have?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

/**
 * PtoPmuEvent:
 * @PTO_PMU_EVENT_NONE: nothing
 * @PTO_PMU_EVENT_ALL: all of the following
 * @PTO_PMU_EVENT_TIME: what tasks and cores were busy with and waited for, in ns
 * @PTO_PMU_EVENT_MEMORY: bytes of the arguments that were read and written
 * @PTO_PMU_EVENT_PIPES: how long kernels stood at barriers and pipes, in ns
 *
 * What the performance counters of a run count.
 *
 * Since: 0.1
 */
typedef enum
{
  PTO_PMU_EVENT_NONE,
  PTO_PMU_EVENT_ALL,
  PTO_PMU_EVENT_TIME,
  PTO_PMU_EVENT_MEMORY,
  PTO_PMU_EVENT_PIPES
} PtoPmuEvent;

#define PTO_TYPE_CALL_CONFIG (pto_call_config_get_type ())

PTO_AVAILABLE_IN_0_1
GType pto_call_config_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
PtoCallConfig *pto_call_config_new (void);
PTO_AVAILABLE_IN_0_1
PtoCallConfig *pto_call_config_copy (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_free (PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
int pto_call_config_get_block_dim (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_set_block_dim (PtoCallConfig *config, int value);
PTO_AVAILABLE_IN_0_1
int pto_call_config_get_aicpu_thread_num (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_set_aicpu_thread_num (PtoCallConfig *config, int value);
PTO_AVAILABLE_IN_0_1
int pto_call_config_get_enable_l2_swimlane (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_set_enable_l2_swimlane (PtoCallConfig *config, int value);
PTO_AVAILABLE_IN_0_1
int pto_call_config_get_enable_dump_tensor (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_set_enable_dump_tensor (PtoCallConfig *config, int value);
PTO_AVAILABLE_IN_0_1
int pto_call_config_get_enable_pmu (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_set_enable_pmu (PtoCallConfig *config, int value);
PTO_AVAILABLE_IN_0_1
int pto_call_config_get_enable_dep_gen (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_set_enable_dep_gen (PtoCallConfig *config, int value);
PTO_AVAILABLE_IN_0_1
int pto_call_config_get_enable_scope_stats (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_set_enable_scope_stats (PtoCallConfig *config, int value);
PTO_AVAILABLE_IN_0_1
int pto_call_config_get_enable_access_check (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_set_enable_access_check (PtoCallConfig *config, int value);
PTO_AVAILABLE_IN_0_1
const char *pto_call_config_get_output_prefix (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_set_output_prefix (PtoCallConfig *config, const char *prefix);
PTO_AVAILABLE_IN_0_1
const char *pto_call_config_get_dump_filter (const PtoCallConfig *config);
PTO_AVAILABLE_IN_0_1
void pto_call_config_set_dump_filter (PtoCallConfig *config, const char *filter);
PTO_AVAILABLE_IN_0_1
char *pto_call_config_to_string (const PtoCallConfig *config);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoCallConfig, pto_call_config_free)

G_END_DECLS
