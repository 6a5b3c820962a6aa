/* html-text.c: how does a report write its numbers and names?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "html.h"

#include <string.h>

void
pto_html_append_string (GString *text, const char *string)
{
  g_string_append_c (text, '"');
  for (const char *c = string; *c != '\0'; c++)
    {
      guchar byte = (guchar) *c;

      if (byte < 0x20 || byte == 0x7f || strchr ("\"\\<>&", byte) != NULL)
        g_string_append_printf (text, "\\u%04x", byte);
      else
        g_string_append_c (text, *c);
    }
  g_string_append_c (text, '"');
}

void
pto_html_append_member (GString *text, const char *name, const char *string)
{
  g_string_append_printf (text, ",\"%s\":", name);
  pto_html_append_string (text, string);
}

void
pto_html_append_number (GString *text, const char *name, guint64 value)
{
  g_string_append_printf (text, ",\"%s\":%" G_GUINT64_FORMAT, name, value);
}

void
pto_html_append_flag (GString *text, const char *name, gboolean value)
{
  g_string_append_printf (text, ",\"%s\":%s", name, value ? "true" : "false");
}

/* Numbers are most of the page: no format is parsed for each. */
static void
append_integer (GString *text, gint64 value)
{
  char digits[24];
  guint at = sizeof digits;
  guint64 rest = value < 0 ? -(guint64) value : (guint64) value;

  do
    digits[--at] = (char) ('0' + rest % 10);
  while ((rest /= 10) > 0);
  if (value < 0)
    digits[--at] = '-';
  g_string_append_len (text, digits + at, sizeof digits - at);
}

void
pto_html_begin_column (GString *text, const char *name)
{
  g_string_append_printf (text, ",\n\"%s\":[", name);
}

void
pto_html_separate (GString *text)
{
  if (text->str[text->len - 1] != '[')
    g_string_append_c (text, ',');
}

void
pto_html_put (GString *text, gint64 value)
{
  pto_html_separate (text);
  append_integer (text, value);
}

void
pto_html_put_nothing (GString *text)
{
  pto_html_separate (text);
  g_string_append (text, "null");
}

void
pto_html_end_column (GString *text)
{
  g_string_append_c (text, ']');
}
