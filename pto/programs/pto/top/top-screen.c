/* top-screen.c: how does `pto top` show it on a terminal?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The terminal is as it was when this is over, however it ends: by a key, by Ctrl-C, since the
 * process has ended, or for an error.
 */
#include "config.h"

#include "terminal.h"
#include "top.h"

#include "common/printable.h"

#include <glib/gi18n.h>
#include <pto/pto.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_NCURSES
#include <curses.h>

typedef struct
{
  int process;
  JsonNode *state; /* the last answer */
  char *trouble;   /* why there is no newer one; NULL: there is */
  guint top;       /* the first row that is seen */
  gboolean paused;
  gboolean over;
} Screen;

static const int colours[] = { [TOP_PLAIN] = 0,
                               [TOP_TITLE] = 0,
                               [TOP_BUSY] = COLOR_GREEN,
                               [TOP_WAITS] = COLOR_YELLOW,
                               [TOP_IDLE] = 0 };

static attr_t
get_attributes (TopKind kind)
{
  if (kind == TOP_TITLE)
    return A_BOLD;
  if (kind == TOP_IDLE)
    return A_DIM;
  return has_colors () && terminal_has_colours (STDOUT_FILENO) && colours[kind] != 0
             ? (attr_t) COLOR_PAIR (colours[kind])
             : A_NORMAL;
}

static void
draw_line (int y, attr_t attributes, const char *words)
{
  g_autofree char *printable = pto_make_printable (g_strdup (words), FALSE);

  attrset (attributes);
  mvaddnstr (y, 0, printable, COLS);
  clrtoeol ();
  attrset (A_NORMAL);
}

static void
draw (Screen *screen)
{
  JsonObject *state = json_node_get_object (screen->state);
  g_autoptr (GPtrArray) rows = top_make_rows (state);
  guint room = (guint) MAX (LINES - 2, 0);
  guint most = rows->len > room ? rows->len - room : 0;
  const char *program = json_object_get_string_member_with_default (state, "program", "");
  g_autofree char *head = g_strdup_printf (
      _ ("process %d  %s  libpto %s%s%s%s"), screen->process, program,
      json_object_get_string_member_with_default (state, "library", "?"),
      screen->paused ? _ ("  [paused]") : "", screen->trouble != NULL ? "  " : "",
      screen->trouble != NULL ? screen->trouble : "");
  g_autofree char *foot = NULL;

  screen->top = MIN (screen->top, most);
  foot = g_strdup_printf (_ ("q end  p pause  arrows, PgUp, PgDn  rows %u-%u of %u"),
                          rows->len > 0 ? screen->top + 1 : 0, MIN (screen->top + room, rows->len),
                          rows->len);
  erase ();
  draw_line (0, A_REVERSE, head);
  for (guint i = 0; i < room && screen->top + i < rows->len; i++)
    {
      const TopRow *row = g_ptr_array_index (rows, screen->top + i);

      draw_line ((int) i + 1, get_attributes (row->kind), row->text);
    }
  if (LINES > 1)
    draw_line (LINES - 1, A_REVERSE, foot);
  refresh ();
}

static void
scroll_by (Screen *screen, int by)
{
  if (by < 0)
    screen->top -= MIN (screen->top, (guint) -by);
  else
    screen->top += (guint) by; /* draw() knows where the end is */
}

/* All keys that have come. */
static void
take_keys (Screen *screen)
{
  int page = MAX (LINES - 3, 1);

  for (;;)
    switch (getch ())
      {
      case ERR:
        return;
      case 'q':
      case 'Q':
        screen->over = TRUE;
        break;
      case 'p':
      case 'P':
        screen->paused = !screen->paused;
        break;
      case KEY_UP:
        scroll_by (screen, -1);
        break;
      case KEY_DOWN:
        scroll_by (screen, 1);
        break;
      case KEY_PPAGE:
        scroll_by (screen, -page);
        break;
      case KEY_NPAGE:
        scroll_by (screen, page);
        break;
      default: /* KEY_RESIZE as well: it is drawn anew anyway */
        break;
      }
}

/* Until a key, the time unless it is paused, Ctrl-C or a change of size. */
static void
wait_for_something (const Screen *screen, gint64 until)
{
  GPollFD fds[2] = { { .fd = STDIN_FILENO, .events = G_IO_IN } };
  gboolean can_cancel = g_cancellable_make_pollfd (tool_get_cancellable (), &fds[1]);
  gint64 left = (until - g_get_monotonic_time ()) / 1000 + 1;

  g_poll (fds, can_cancel ? 2 : 1, screen->paused ? -1 : (gint) MAX (left, 0));
  if (can_cancel)
    g_cancellable_release_fd (tool_get_cancellable ());
}

/* Asks once more. FALSE: the process has ended, or it can not be asked. */
static gboolean
ask (Screen *screen, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autofree char *answer = pto_worker_ask_process (screen->process, PTO_ANSWER_FORMAT_JSON,
                                                    tool_get_cancellable (), &local);
  JsonNode *state = answer != NULL ? json_from_string (answer, NULL) : NULL;

  g_clear_pointer (&screen->trouble, g_free);
  if (state != NULL)
    {
      g_clear_pointer (&screen->state, json_node_unref);
      screen->state = state;
      return TRUE;
    }
  /* It may go on. */
  if (screen->state != NULL && g_error_matches (local, PTO_ERROR, PTO_ERROR_BUSY))
    {
      screen->trouble = g_strdup (local->message);
      return TRUE;
    }
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

gboolean
top_has_screen (void)
{
  return isatty (STDIN_FILENO) == 1 && terminal_is (STDOUT_FILENO);
}

static gboolean
begin_screen (GError **error)
{
  SCREEN *made = newterm (NULL, stdout, stdin);

  if (made == NULL)
    return tool_fail (error, _ ("nothing is known of a terminal of the kind %s (TERM): try --once"),
                      g_getenv ("TERM"));
  set_term (made);
  cbreak ();
  noecho ();
  keypad (stdscr, TRUE);
  nodelay (stdscr, TRUE);
  curs_set (0);
  if (has_colors ())
    {
      start_color ();
      use_default_colors ();
      init_pair (COLOR_GREEN, COLOR_GREEN, -1);
      init_pair (COLOR_YELLOW, COLOR_YELLOW, -1);
    }
  return TRUE;
}

gboolean
top_watch (int process, guint interval_ms, GError **error)
{
  Screen screen = { .process = process };
  g_autoptr (GError) ended = NULL;
  gboolean ok = ask (&screen, error) && begin_screen (error);

  if (!ok)
    {
      g_clear_pointer (&screen.state, json_node_unref);
      return FALSE;
    }
  while (ended == NULL && !screen.over && !g_cancellable_is_cancelled (tool_get_cancellable ()))
    {
      gint64 until = g_get_monotonic_time () + (gint64) interval_ms * 1000;

      do
        {
          draw (&screen);
          wait_for_something (&screen, until);
          take_keys (&screen);
        }
      while (!screen.over && !g_cancellable_is_cancelled (tool_get_cancellable ())
             && (screen.paused || g_get_monotonic_time () < until));
      if (!screen.over && !g_cancellable_is_cancelled (tool_get_cancellable ()))
        ask (&screen, &ended);
    }
  endwin ();
  g_clear_pointer (&screen.state, json_node_unref);
  g_clear_pointer (&screen.trouble, g_free);
  if (ended == NULL || g_error_matches (ended, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return TRUE;
  /* That is how it ends mostly. */
  if (g_error_matches (ended, PTO_ERROR, PTO_ERROR_NOT_FOUND))
    {
      g_print (_ ("process %d has ended\n"), process);
      return TRUE;
    }
  g_propagate_error (error, g_steal_pointer (&ended));
  return FALSE;
}

#else

gboolean
top_has_screen (void)
{
  return FALSE;
}

gboolean
top_watch (int process, guint interval_ms, GError **error)
{
  g_assert_not_reached ();
}

#endif
