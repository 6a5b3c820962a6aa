/* pto-platform.h: which chips can be simulated?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

#define PTO_TYPE_PLATFORM (pto_platform_get_type ())

PTO_AVAILABLE_IN_0_1
GType pto_platform_get_type (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
char **pto_platform_list_names (void);
PTO_AVAILABLE_IN_0_1
PtoPlatform *pto_platform_lookup (const char *name, GError **error);
PTO_AVAILABLE_IN_0_1
PtoPlatform *pto_platform_copy (const PtoPlatform *platform);
PTO_AVAILABLE_IN_0_1
void pto_platform_free (PtoPlatform *platform);
PTO_AVAILABLE_IN_0_1
char *pto_platform_to_string (const PtoPlatform *platform);
PTO_AVAILABLE_IN_0_1
const char *pto_platform_get_name (const PtoPlatform *platform);
PTO_AVAILABLE_IN_0_1
const char *pto_platform_get_description (const PtoPlatform *platform);
PTO_AVAILABLE_IN_0_1
guint pto_platform_get_n_clusters (const PtoPlatform *platform);
PTO_AVAILABLE_IN_0_1
guint pto_platform_get_cores_per_cluster (const PtoPlatform *platform, PtoCoreType core_type);
PTO_AVAILABLE_IN_0_1
guint pto_platform_get_n_aicpu_threads (const PtoPlatform *platform);
PTO_AVAILABLE_IN_0_1
guint64 pto_platform_get_counter_frequency (const PtoPlatform *platform);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (PtoPlatform, pto_platform_free)

G_END_DECLS
