/* terminal.h: what may be done to who looks on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Once, at the beginning: a copy that a fork makes writes neither colours nor the line, since what
 * it writes is read by this process first. */
void terminal_begin (void);
/* One that can move its cursor: TERM is set, and not dumb. */
gboolean terminal_is (int fd);

/* With spaces behind it, where it takes fewer columns than these. */
char *terminal_pad (const char *text, guint columns);

/* --- colours --- */

typedef enum
{
  TERMINAL_GOOD,
  TERMINAL_POOR,
  TERMINAL_BAD
} TerminalColour;

/* @when: auto, always or never; FALSE: it is none of them. */
gboolean terminal_choose_colours (const char *when);
/* auto: on a terminal, unless NO_COLOR is set to anything. */
gboolean terminal_has_colours (int fd);
/* Text in that colour, or as it is. */
char *terminal_paint (int fd, TerminalColour colour, const char *text);

/* --- the line on standard error that tells how far it is --- */

/* Takes the place of the one before; no wider than the terminal, and nothing where there is none.
 * Any thread. */
void terminal_show_line (const char *text);
/* Anything else that is printed comes after this. Any thread. */
void terminal_hide_line (void);
/* There is none from now on, whoever shows one. Any thread. */
void terminal_end_line (void);

G_END_DECLS
