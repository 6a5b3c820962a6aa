/* state.h: what do the workers of a process do, and what do they wait for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Never installed. An answer is made once, as JSON (doc/asking.md); text and metrics are made of
 * that, so that it does not matter in which process it was made.
 */
#pragma once

#include "machine/machine.h"

G_BEGIN_DECLS

/* Of this process: of the machine that is named, with those in it that are below it; NULL: of all.
 * What other processes below would say is not in it: their rows have a "pid". Any thread. */
JsonNode *pto_state_build (PtoMachine *only);

/* Calls it for the object of each worker of an answer, those that are below others, too. */
typedef void (*PtoStateVisit) (JsonObject *worker, gpointer data);
void pto_state_visit_workers (JsonObject *state, PtoStateVisit visit, gpointer data);

/* state-text.c, state-openmetrics.c */
char *pto_state_to_text (JsonObject *state);
char *pto_state_to_metrics (JsonObject *state);

/* NULL: there is none of that name. */
static inline JsonObject *
pto_state_get_object (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);

  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

static inline JsonArray *
pto_state_get_array (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);

  return node != NULL && JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
}

static inline guint
pto_state_get_length (JsonArray *array)
{
  return array != NULL ? json_array_get_length (array) : 0;
}

/* Of an array of objects, which another process may have made; NULL: it is none. */
static inline JsonObject *
pto_state_get_element (JsonArray *array, guint i)
{
  JsonNode *node = json_array_get_element (array, i);

  return JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

static inline guint64
pto_state_get_number (JsonObject *object, const char *name)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, name) : NULL;

  return node != NULL && JSON_NODE_HOLDS_VALUE (node)
                 && json_node_get_value_type (node) == G_TYPE_INT64
             ? (guint64) json_node_get_int (node)
             : 0;
}

/* NULL: there is none. */
static inline const char *
pto_state_get_text (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);

  return node != NULL && JSON_NODE_HOLDS_VALUE (node)
                 && json_node_get_value_type (node) == G_TYPE_STRING
             ? json_node_get_string (node)
             : NULL;
}

static inline gboolean
pto_state_has_flag (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);

  return node != NULL && JSON_NODE_HOLDS_VALUE (node)
         && json_node_get_value_type (node) == G_TYPE_BOOLEAN && json_node_get_boolean (node);
}

G_END_DECLS
