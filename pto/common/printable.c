/* printable.c: how is text that others have made shown on a terminal?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "printable.h"

#include <string.h>

char *
pto_make_printable (char *text, gboolean is_lines)
{
  const char *from = text;
  char *to = text;

  while (*from != '\0')
    {
      gunichar c = g_utf8_get_char_validated (from, -1);
      gboolean is_good
          = c < (gunichar) -2 && (!g_unichar_iscntrl (c) || (is_lines && (c == '\n' || c == '\t')));
      gsize length = c < (gunichar) -2 ? (gsize) g_utf8_skip[(guchar) *from] : 1;

      if (is_good)
        memmove (to, from, length);
      else
        *to = '?';
      to += is_good ? length : 1;
      from += length;
    }
  *to = '\0';
  return text;
}

char *
pto_escape_json (const char *json)
{
  GString *text = g_string_new (NULL);

  for (const char *at = json; *at != '\0'; at = g_utf8_next_char (at))
    {
      gunichar c = g_utf8_get_char (at);

      /* Those between members are no part of what is told. */
      if (g_unichar_iscntrl (c) && c != '\n' && c != '\t')
        g_string_append_printf (text, "\\u%04x", c);
      else
        g_string_append_len (text, at, g_utf8_skip[(guchar) *at]);
    }
  return g_string_free (text, FALSE);
}

guint
pto_count_columns_of (gunichar c)
{
  return g_unichar_iszerowidth (c) ? 0 : g_unichar_iswide (c) ? 2 : 1;
}

guint
pto_count_columns (const char *text)
{
  guint columns = 0;

  for (; *text != '\0'; text = g_utf8_next_char (text))
    columns += pto_count_columns_of (g_utf8_get_char (text));
  return columns;
}

void
pto_append_padded (GString *text, const char *words, int width)
{
  int spaces = MAX (ABS (width) - (int) pto_count_columns (words), 0);

  if (width < 0)
    g_string_append_printf (text, "%s%*s", words, spaces, "");
  else
    g_string_append_printf (text, "%*s%s", spaces, "", words);
}
