/* members.h: what does an object of JSON have by that name?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Members of what a process answers, which may be of another version: what is missing, or of
 * another type, is 0, "" or NULL. So may the object be.
 */
#pragma once

#include <json-glib/json-glib.h>

/* NULL: there is none of that type. */
static inline JsonNode *
member_find (JsonObject *from, const char *name, GType type)
{
  JsonNode *node = from != NULL ? json_object_get_member (from, name) : NULL;

  return node != NULL && json_node_get_value_type (node) == type ? node : NULL;
}

static inline guint64
member_number (JsonObject *from, const char *name)
{
  JsonNode *node = member_find (from, name, G_TYPE_INT64);

  return node != NULL ? (guint64) json_node_get_int (node) : 0;
}

static inline gboolean
member_flag (JsonObject *from, const char *name)
{
  JsonNode *node = member_find (from, name, G_TYPE_BOOLEAN);

  return node != NULL && json_node_get_boolean (node);
}

/* other: where there is none. */
static inline const char *
member_text_or (JsonObject *from, const char *name, const char *other)
{
  JsonNode *node = member_find (from, name, G_TYPE_STRING);

  return node != NULL ? json_node_get_string (node) : other;
}

static inline const char *
member_text (JsonObject *from, const char *name)
{
  return member_text_or (from, name, "");
}

static inline gboolean
member_is (JsonObject *from, const char *name, const char *text)
{
  return g_str_equal (member_text (from, name), text);
}

static inline JsonObject *
member_object (JsonObject *from, const char *name)
{
  JsonNode *node = member_find (from, name, JSON_TYPE_OBJECT);

  return node != NULL ? json_node_get_object (node) : NULL;
}

static inline JsonArray *
member_array (JsonObject *from, const char *name)
{
  JsonNode *node = member_find (from, name, JSON_TYPE_ARRAY);

  return node != NULL ? json_node_get_array (node) : NULL;
}

static inline guint
member_length (JsonObject *from, const char *name)
{
  JsonArray *array = member_array (from, name);

  return array != NULL ? json_array_get_length (array) : 0;
}

/* The object at that place of an array. */
static inline JsonObject *
member_element (JsonObject *from, const char *name, guint i)
{
  JsonNode *node = i < member_length (from, name)
                       ? json_array_get_element (member_array (from, name), i)
                       : NULL;

  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

/* The objects of an array, one after the other; i: 0 at first. NULL: there are no more. */
static inline JsonObject *
member_next (JsonObject *from, const char *name, guint *i)
{
  JsonObject *found = NULL;

  while (found == NULL && *i < member_length (from, name))
    found = member_element (from, name, (*i)++);
  return found;
}
