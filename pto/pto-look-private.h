/* pto-look-private.h: what does a machine do, as JSON?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. What core/look.h, sim/look.h and process/level-look.h have read becomes members
 * of a worker's object; doc/asking.md lists them. Text and metrics are made of that
 * (pto-state-private.h).
 */
#pragma once

#include "core/look.h"
#include "process/level-look.h"

#include "../sim/look.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

void pto_look_add_string (JsonBuilder *json, const char *name, const char *value);
void pto_look_add_number (JsonBuilder *json, const char *name, guint64 value);

/* What a queue of ready tasks is for. */
typedef void (*PtoLookQueueName) (gconstpointer data, guint32 queue, char *text, gsize size);

/* title: of the run under way; NULL: that is not known. */
void pto_look_add_chip (JsonBuilder *json, const struct pto_chip_look *look, const char *title);
void pto_look_add_level (JsonBuilder *json, const struct pto_level_look *look, const char *title,
                         PtoLookQueueName queue_name, gconstpointer data);

G_END_DECLS
