/* top.h: what do the parts of `pto top` share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "tool.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* A row of the screen. */
typedef enum
{
  TOP_PLAIN,
  TOP_TITLE,
  TOP_BUSY,
  TOP_WAITS,
  TOP_IDLE
} TopKind;

typedef struct
{
  TopKind kind;
  char *text;
} TopRow;

/* top-rows.c: of an answer. */
GPtrArray *top_make_rows (JsonObject *state);

/* top-screen.c: is there a terminal, and the library for it? */
gboolean top_has_screen (void);
/* Shows what the process does until somebody wants no more of it, or it has ended. */
gboolean top_watch (int process, guint interval_ms, GError **error);

G_END_DECLS
