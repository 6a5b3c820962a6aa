/* terminal.c: what may be done to who looks on?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "terminal.h"

#include "common/printable.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_UNKNOWN 80

static pid_t owner; /* 0: nobody has begun */

void
terminal_begin (void)
{
  owner = getpid ();
}

static gboolean
is_copy (void)
{
  return owner != 0 && owner != getpid ();
}

gboolean
terminal_is (int fd)
{
  const char *kind = g_getenv ("TERM");

  return isatty (fd) == 1 && kind != NULL && kind[0] != '\0' && strcmp (kind, "dumb") != 0;
}

/* Columns. */
static guint
terminal_get_width (int fd)
{
  struct winsize size;

  return ioctl (fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : WIDTH_UNKNOWN;
}

/* --- colours --- */

static enum { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER } when_coloured;

gboolean
terminal_choose_colours (const char *when)
{
  static const char *const names[]
      = { [WHEN_AUTO] = "auto", [WHEN_ALWAYS] = "always", [WHEN_NEVER] = "never" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (when, names[i]) == 0)
      {
        when_coloured = i;
        return TRUE;
      }
  return FALSE;
}

gboolean
terminal_has_colours (int fd)
{
  const char *none = g_getenv ("NO_COLOR");

  if (when_coloured != WHEN_AUTO || is_copy ())
    return when_coloured == WHEN_ALWAYS && !is_copy ();
  return (none == NULL || none[0] == '\0') && terminal_is (fd);
}

char *
terminal_paint (int fd, TerminalColour colour, const char *text)
{
  static const char *const codes[]
      = { [TERMINAL_GOOD] = "32", [TERMINAL_POOR] = "33", [TERMINAL_BAD] = "1;31" };

  return terminal_has_colours (fd) ? g_strdup_printf ("\033[%sm%s\033[0m", codes[colour], text)
                                   : g_strdup (text);
}

/* --- the line --- */

static GMutex lock;
static gboolean is_shown; /* under the lock */
static gboolean is_ended; /* under the lock */

char *
terminal_pad (const char *text, guint columns)
{
  GString *padded = g_string_new (NULL);

  pto_append_padded (padded, text, -(int) columns);
  return g_string_free (padded, FALSE);
}

/* Cut off before the last column: a terminal that is written full begins a new line. */
static char *
fit (const char *text, guint width)
{
  guint column = 0;
  const char *end = text;

  while (*end != '\0')
    {
      guint columns = pto_count_columns_of (g_utf8_get_char (end));

      if (column + columns >= width)
        break;
      column += columns;
      end = g_utf8_next_char (end);
    }
  return g_strndup (text, (gsize) (end - text));
}

void
terminal_show_line (const char *text)
{
  g_autofree char *printable = NULL;
  g_autofree char *line = NULL;

  if (!terminal_is (STDERR_FILENO) || is_copy ())
    return;
  printable = pto_make_printable (g_strdup (text), FALSE);
  line = fit (printable, terminal_get_width (STDERR_FILENO));
  g_mutex_lock (&lock);
  if (!is_ended)
    {
      is_shown = TRUE;
      g_printerr ("\r%s\033[K", line);
    }
  g_mutex_unlock (&lock);
}

static void
hide (gboolean for_ever)
{
  if (is_copy ())
    return;
  g_mutex_lock (&lock);
  if (is_shown)
    g_printerr ("\r\033[K");
  is_shown = FALSE;
  is_ended = is_ended || for_ever;
  g_mutex_unlock (&lock);
}

void
terminal_hide_line (void)
{
  hide (FALSE);
}

void
terminal_end_line (void)
{
  hide (TRUE);
}
