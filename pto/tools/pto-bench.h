/* pto-bench.h: how does the pto program measure? (the command `pto bench`)
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* As the other commands in tool.h. */
gboolean tool_bench (char **words, GError **error);
GOptionContext *tool_bench_get_options (void);

G_END_DECLS
