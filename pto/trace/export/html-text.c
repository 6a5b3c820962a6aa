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
pto_html_end_column (GString *text)
{
  g_string_append_c (text, ']');
}

PtoHtmlTable *
pto_html_table_new (const char *const *names, guint n)
{
  PtoHtmlTable *table = g_new (PtoHtmlTable, 1);

  *table = (PtoHtmlTable){ names, g_new (GString *, n), n, 0 };
  for (guint c = 0; c < n; c++)
    table->columns[c] = g_string_new ("[");
  return table;
}

void
pto_html_table_add (PtoHtmlTable *table, const gint64 *values)
{
  for (guint c = 0; c < table->n; c++)
    {
      pto_html_separate (table->columns[c]);
      if (values[c] == PTO_HTML_NOTHING)
        g_string_append (table->columns[c], "null");
      else
        append_integer (table->columns[c], values[c]);
    }
  table->n_lines++;
}

void
pto_html_table_end (PtoHtmlTable *table, GString *text, guint32 left_out)
{
  for (guint c = 0; c < table->n; c++)
    {
      if ((left_out & 1u << c) == 0)
        {
          g_string_append_printf (text, ",\n\"%s\":", table->names[c]);
          g_string_append_len (text, table->columns[c]->str, (gssize) table->columns[c]->len);
          g_string_append_c (text, ']');
        }
      g_string_free (table->columns[c], TRUE);
    }
  g_free (table->columns);
  g_free (table);
}

void
pto_html_table_end_object (PtoHtmlTable *table, GString *text, const char *name, guint32 left_out)
{
  g_string_append_printf (text, ",\n\"%s\":{\"n\":%u", name, table->n_lines);
  pto_html_table_end (table, text, left_out);
  g_string_append_c (text, '}');
}
