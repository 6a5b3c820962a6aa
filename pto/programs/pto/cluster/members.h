/* members.h: what does an object of the state have by that name?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Members of what a process answers, which may be of another version: what is missing, or of
 * another type, is 0, "" or NULL. So may the object be.
 */
#pragma once

#include <json-glib/json-glib.h>

static inline guint64
member_number (JsonObject *from, const char *name)
{
  JsonNode *node = from != NULL ? json_object_get_member (from, name) : NULL;

  return node != NULL && JSON_NODE_HOLDS_VALUE (node) ? (guint64) json_node_get_int (node) : 0;
}

static inline const char *
member_text (JsonObject *from, const char *name)
{
  JsonNode *node = from != NULL ? json_object_get_member (from, name) : NULL;
  const char *value
      = node != NULL && JSON_NODE_HOLDS_VALUE (node) ? json_node_get_string (node) : NULL;

  return value != NULL ? value : "";
}

static inline JsonObject *
member_object (JsonObject *from, const char *name)
{
  JsonNode *node = from != NULL ? json_object_get_member (from, name) : NULL;

  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}
