/* log.h: how does the library say something that is no error?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* As g_log(), in the library's domain; but where that goes to standard error and this has no reader
 * or no room, no signal ends the program. Any thread. */
void pto_log (GLogLevelFlags flags, const char *format, ...) G_GNUC_PRINTF (2, 3);

G_END_DECLS
