/* printable.h: how is text that others have made shown on a terminal?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Names of kernels, of runs and of programs, and whatever another process says of itself, may have
 * control characters, which a terminal would obey. Also compiled into the pto program.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* In place: those of ASCII and of Latin-1 become "?"; of lines newlines and tabs stay. Not UTF-8:
 * what is none becomes "?", too. Gives it back. */
char *pto_make_printable (char *text, gboolean is_lines);
/* The same JSON, in which they are escaped. */
char *pto_escape_json (const char *json);

/* How many columns of a terminal a character takes, and a text: a Chinese character takes two. */
guint pto_count_columns_of (gunichar c);
guint pto_count_columns (const char *text);
/* Adds words with as many spaces as they are narrower than that: before them, or, for a width below
 * 0, behind them, as printf() pads. */
void pto_append_padded (GString *text, const char *words, int width);

G_END_DECLS
