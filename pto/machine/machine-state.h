/* machine-state.h: what does a machine do, as JSON?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. What ../core/inspect.h, sim/chip-inspect.h and ../process/level-inspect.h have
 * read becomes members of a worker's object; doc/asking.md lists them. Text and metrics are made of
 * that (monitor/state.h).
 */
#pragma once

#include "core/inspect.h"
#include "process/level-inspect.h"

#include "sim/chip-inspect.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* What a queue of ready tasks is for. */
typedef void (*PtoLookQueueName) (gconstpointer data, guint32 queue, char *text, gsize size);

/* title: of the run under way; NULL: that is not known. */
void pto_look_add_chip (JsonBuilder *json, const struct pto_chip_look *look, const char *title);
void pto_look_add_level (JsonBuilder *json, const struct pto_level_look *look, const char *title,
                         PtoLookQueueName queue_name, gconstpointer data);

G_END_DECLS
