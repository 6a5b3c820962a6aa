/* pto-library.h: which library does a program run with?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

PTO_AVAILABLE_IN_0_1
guint pto_get_major_version (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
guint pto_get_minor_version (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
guint pto_get_micro_version (void) G_GNUC_CONST;
PTO_AVAILABLE_IN_0_1
gboolean pto_check_version (guint major, guint minor, guint micro) G_GNUC_CONST;

G_END_DECLS
