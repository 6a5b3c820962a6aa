/* svg-text.c: how are numbers, texts and boxes written in SVG?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "svg.h"

#include <math.h>
#include <string.h>

void
pto_svg_append_number (GString *text, double value)
{
  gint64 hundredths = (gint64) floor (value * 100.0 + 0.5);
  gint64 fraction;

  if (hundredths < 0)
    {
      g_string_append_c (text, '-');
      hundredths = -hundredths;
    }
  g_string_append_printf (text, "%" G_GINT64_FORMAT, hundredths / 100);
  fraction = hundredths % 100;
  if (fraction == 0)
    return;
  if (fraction % 10 == 0)
    g_string_append_printf (text, ".%d", (int) (fraction / 10));
  else
    g_string_append_printf (text, ".%02d", (int) fraction);
}

void
pto_svg_append_numbers (GString *text, const char *form, const double *values)
{
  for (const char *c = form; *c != '\0'; c++)
    if (*c == '#')
      pto_svg_append_number (text, *values++);
    else
      g_string_append_c (text, *c);
}

void
pto_svg_append_escaped (GString *text, const char *string)
{
  for (const char *c = string; *c != '\0'; c = g_utf8_next_char (c))
    {
      gunichar character = g_utf8_get_char (c);

      switch (character)
        {
        case '&':
          g_string_append (text, "&amp;");
          break;
        case '<':
          g_string_append (text, "&lt;");
          break;
        case '>':
          g_string_append (text, "&gt;");
          break;
        case '"':
          g_string_append (text, "&quot;");
          break;
        default:
          if ((character < 0x20 && character != '\n' && character != '\t') || character == 0xfffe
              || character == 0xffff)
            character = 0xfffd;
          g_string_append_unichar (text, character);
          break;
        }
    }
}

void
pto_svg_append_grouped (GString *text, guint64 value)
{
  g_autofree char *digits = g_strdup_printf ("%" G_GUINT64_FORMAT, value);
  gsize length = strlen (digits);

  for (gsize i = 0; i < length; i++)
    {
      if (i > 0 && (length - i) % 3 == 0)
        g_string_append (text, "\342\200\211");
      g_string_append_c (text, digits[i]);
    }
}

void
pto_svg_append_microseconds (GString *text, guint64 ns)
{
  static const guint64 units[] = { 1000, 100, 10, 1 };
  guint decimals = ns < 10000 ? 3 : ns < 100000 ? 2 : ns < 1000000 ? 1 : 0;
  guint64 rounded = (ns + units[decimals] / 2) / units[decimals] * units[decimals];
  guint fraction = (guint) (rounded % 1000);

  pto_svg_append_grouped (text, rounded / 1000);
  if (decimals > 0)
    {
      g_autofree char *all = g_strdup_printf ("%03u", fraction);

      g_string_append_c (text, '.');
      g_string_append_len (text, all, decimals);
    }
  g_string_append (text, " \302\265s");
}

void
pto_svg_append_stretch (GString *text, guint64 start, guint64 end)
{
  pto_trace_append_us (text, start);
  g_string_append (text, " to ");
  pto_trace_append_us (text, end);
  g_string_append (text, " \302\265s");
}

void
pto_svg_append_percent (GString *text, guint64 busy, guint64 start, guint64 end)
{
  if (end <= start)
    return;
  g_string_append (text, ", ");
  pto_trace_append_fixed (text, MIN (100.0 * (double) busy / (double) (end - start), 100), 0);
  g_string_append (text, " % of it");
}

double
pto_svg_x (const PtoPicture *picture, guint64 time)
{
  return picture->left + (double) time * picture->scale;
}

double
pto_svg_text_width (const char *string, double size)
{
  return (double) g_utf8_strlen (string, -1) * size * 0.58;
}

void
pto_svg_append_label (PtoPicture *picture, const char *style, double x, double y,
                      const char *string)
{
  g_string_append_printf (picture->text, "<text class=\"%s\"", style);
  pto_svg_append_numbers (picture->text, " x=\"#\" y=\"#\">", (const double[]){ x, y });
  pto_svg_append_escaped (picture->text, string);
  g_string_append (picture->text, "</text>\n");
}

void
pto_svg_append_rect (GString *text, const char *style, double x, double y, double width,
                     double height)
{
  g_string_append_printf (text, "<rect class=\"%s\"", style);
  pto_svg_append_numbers (text, " x=\"#\" y=\"#\" width=\"#\" height=\"#\"",
                          (const double[]){ x, y, width, height });
}

void
pto_svg_append_box (PtoPicture *picture, const char *style, double x, double y, double width,
                    double height)
{
  pto_svg_append_rect (picture->text, style, x, y, width, height);
  g_string_append (picture->text, "/>\n");
}
