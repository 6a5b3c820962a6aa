/* json.h: how is a member added to an object of JSON?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <json-glib/json-glib.h>
#include <math.h>

G_BEGIN_DECLS

/* NULL is null. Bytes that are no UTF-8 are replaced. */
static inline void
pto_json_add_string (JsonBuilder *json, const char *name, const char *value)
{
  json_builder_set_member_name (json, name);
  if (value == NULL)
    json_builder_add_null_value (json);
  else if (g_utf8_validate (value, -1, NULL))
    json_builder_add_string_value (json, value);
  else
    {
      g_autofree char *valid = g_utf8_make_valid (value, -1);

      json_builder_add_string_value (json, valid);
    }
}

/* JSON-GLib's integers have a sign: a larger one is the largest. */
static inline void
pto_json_add_int (JsonBuilder *json, const char *name, guint64 value)
{
  json_builder_set_member_name (json, name);
  json_builder_add_int_value (json, (gint64) MIN (value, G_MAXINT64));
}

static inline void
pto_json_add_signed (JsonBuilder *json, const char *name, gint64 value)
{
  json_builder_set_member_name (json, name);
  json_builder_add_int_value (json, value);
}

/* JSON has neither NaN nor infinity: they are null. */
static inline void
pto_json_add_double (JsonBuilder *json, const char *name, double value)
{
  json_builder_set_member_name (json, name);
  if (isfinite (value))
    json_builder_add_double_value (json, value);
  else
    json_builder_add_null_value (json);
}

static inline void
pto_json_add_boolean (JsonBuilder *json, const char *name, gboolean value)
{
  json_builder_set_member_name (json, name);
  json_builder_add_boolean_value (json, value);
}

static inline void
pto_json_begin_object (JsonBuilder *json, const char *name)
{
  json_builder_set_member_name (json, name);
  json_builder_begin_object (json);
}

static inline void
pto_json_begin_array (JsonBuilder *json, const char *name)
{
  json_builder_set_member_name (json, name);
  json_builder_begin_array (json);
}

G_END_DECLS
