/* pto-translation.h: how does a binding say its messages in the reader's language?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-types.h"

G_BEGIN_DECLS

PTO_AVAILABLE_IN_0_1
char *pto_dup_translation (const char *text, const char *many, guint64 n);

G_END_DECLS
