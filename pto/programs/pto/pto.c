/* pto.c: what does a person type to run, to look and to ask?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An error is one line on standard error; only a compiler's own words may follow it. Exit statuses
 * are in the table of commands.c.
 */
#include "config.h"

#include "terminal.h"
#include "tool.h"

#include "common/printable.h"
#include "common/save-file.h"
#include "common/stdout.h"
#include "common/text.h"
#include "exec/needed-calls.h"

#include <glib/gstdio.h>
#include <inttypes.h>
#include <json-glib/json-glib.h>
#include <libintl.h>
#include <locale.h>
#include <pto/pto.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
tool_print (const char *text, gboolean is_json)
{
  g_autofree char *printable
      = is_json ? pto_escape_json (text) : pto_make_printable (g_strdup (text), TRUE);

  g_print ("%s", printable);
}

void
tool_print_error (const char *message)
{
  g_autofree char *printable = pto_make_printable (g_strdup (message), TRUE);
  g_autofree char *name = terminal_paint (STDERR_FILENO, TERMINAL_BAD, "pto:");

  /* The reader of the output has gone and wants no more of it. */
  if (pto_stdout_is_cut ())
    return;
  terminal_hide_line ();
  g_printerr ("%s %s\n", name, printable);
}

void
tool_listen (void)
{
  g_autoptr (GError) error = NULL;

  if (!pto_answer_start (&error))
    g_warning ("%s", error->message);
}

gboolean
tool_parse_number (const char *option, const char *text, guint64 least, guint64 most,
                   guint64 *value, GError **error)
{
  return text == NULL || g_ascii_string_to_unsigned (text, 10, least, most, value, NULL)
         || tool_refuse (error, _ ("--%s %s: a number from %" PRIu64 " to %" PRIu64 " wanted"),
                         option, text, least, most);
}

void
tool_print_row (const char *name, const char *value)
{
  g_autofree char *padded = terminal_pad (name, 13);

  if (value != NULL)
    g_print ("  %s %s\n", padded, value);
}

void
tool_print_lines (const char *name, const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);

  for (guint i = 0; lines[i] != NULL; i++)
    tool_print_row (i == 0 ? name : "", lines[i]);
}

void
tool_print_verdict (const char *name, gboolean is_good, const char *value)
{
  gsize word = strcspn (value, " ");
  g_autofree char *verdict = g_strndup (value, word);
  g_autofree char *painted
      = terminal_paint (STDOUT_FILENO, is_good ? TERMINAL_GOOD : TERMINAL_BAD, verdict);
  g_autofree char *whole = g_strconcat (painted, value + word, NULL);

  tool_print_row (name, whole);
}

void
tool_print_row_printf (const char *name, const char *format, ...)
{
  g_autofree char *value = NULL;
  va_list args;

  va_start (args, format);
  value = g_strdup_vprintf (format, args);
  va_end (args);
  tool_print_row (name, value);
}

gboolean
tool_check_output (const char *what, const char *path, const char *suffix, GError **error)
{
  g_autofree char *lower = path != NULL ? g_ascii_strdown (path, -1) : NULL;

  if (path == NULL)
    return TRUE;
  if (path[0] == '\0')
    tool_refuse (error, _ ("%s: the name of the file is empty"), what);
  else if (!g_str_has_suffix (lower, suffix)
           && (!g_file_test (path, G_FILE_TEST_EXISTS)
               || g_file_test (path, G_FILE_TEST_IS_REGULAR)))
    tool_refuse (error, _ ("%s %s: it writes %s files: the name must end so"), what, path,
                 /* What writes the one writes the other, by its name. */
                 strcmp (suffix, ".json") == 0 ? _ (".json and .ptotrace") : suffix);
  else
    return pto_save_check (path, error);
  return FALSE;
}

gboolean
tool_check_other (const char *what, const char *path, const char *other, GError **error)
{
  GStatBuf a, b;
  gboolean same;

  if (path == NULL || other == NULL)
    return TRUE;
  if (g_stat (path, &a) == 0 && g_stat (other, &b) == 0)
    same = S_ISREG (a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  else
    {
      g_autofree char *here = g_canonicalize_filename (path, NULL);
      g_autofree char *there = g_canonicalize_filename (other, NULL);

      same = strcmp (here, there) == 0;
    }
  if (!same)
    return TRUE;
  return tool_refuse (
      error, _ ("%s %s: it would be written over %s, which is in use here: name another file"),
      what, path, other);
}

static void
look_at_stdout (const GError *failure)
{
  if (g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_BROKEN_PIPE))
    pto_stdout_look ();
}

void
tool_add_failure (GError **failures, GError *failure)
{
  if (failure == NULL)
    return;
  look_at_stdout (failure);
  if (*failures != NULL)
    tool_print_error ((*failures)->message);
  /* What was looked at and is wrong stays so, whatever else could not be done. */
  if (g_error_matches (*failures, TOOL_ERROR, TOOL_ERROR_FAILED))
    {
      failure->domain = TOOL_ERROR;
      failure->code = TOOL_ERROR_FAILED;
    }
  g_clear_error (failures);
  g_propagate_error (failures, failure);
}

static locale_t document; /* 0: there is none */

void
tool_begin_document (void)
{
  document = newlocale (LC_MESSAGES_MASK, "C", duplocale (LC_GLOBAL_LOCALE));
  if (document != (locale_t) 0)
    uselocale (document);
}

void
tool_end_document (void)
{
  uselocale (LC_GLOBAL_LOCALE);
  if (document != (locale_t) 0)
    freelocale (document);
  document = (locale_t) 0;
}

int
tool_get_status (const GError *error)
{
  return error->domain == TOOL_ERROR ? error->code : TOOL_ERROR_TROUBLE;
}

char *
tool_count_schedulers (guint n)
{
  return g_strdup_printf (g_dngettext (GETTEXT_PACKAGE, "%u scheduler", "%u schedulers", n), n);
}

char *
tool_group_digits (guint64 value)
{
  g_autofree char *digits = g_strdup_printf ("%" G_GUINT64_FORMAT, value);
  gsize length = strlen (digits);
  GString *text = g_string_new (NULL);

  for (gsize i = 0; i < length; i++)
    {
      if (i > 0 && (length - i) % 3 == 0)
        g_string_append_c (text, ' ');
      g_string_append_c (text, digits[i]);
    }
  return g_string_free (text, FALSE);
}

void
tool_print_json (gpointer json_builder)
{
  g_autoptr (JsonBuilder) builder = json_builder;
  g_autoptr (JsonNode) root = json_builder_get_root (builder);
  g_autofree char *text = json_to_string (root, TRUE);

  g_print ("%s\n", text);
}

/* What the library and an orchestration have to say, one line each, as the program itself would. */
static void
log_line (const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
  const char *debug = g_getenv ("G_MESSAGES_DEBUG");

  if ((level & (G_LOG_LEVEL_INFO | G_LOG_LEVEL_DEBUG)) != 0
      && (debug == NULL
          || (strstr (debug, "all") == NULL && (domain == NULL || strstr (debug, domain) == NULL))))
    return;
  tool_print_error (message);
}

static const char *called_as = "pto";
static GString *held; /* NULL: what is printed goes out at once */

static void
print (const char *text)
{
  g_autofree char *converted = NULL;
  const char *charset;

  if (held != NULL)
    {
      g_string_append (held, text);
      return;
    }
  terminal_hide_line ();
  if (!g_get_console_charset (&charset))
    converted = g_convert_with_fallback (text, -1, charset, "UTF-8", "?", NULL, NULL, NULL);
  pto_stdout_print (converted != NULL ? converted : text);
}

void
tool_hold_output (void)
{
  held = g_string_new (NULL);
}

gboolean
tool_release_output (void)
{
  g_autofree char *text = g_string_free (g_steal_pointer (&held), FALSE);

  print (text);
  return pto_stdout_finish () == 0;
}

const char *
tool_program (void)
{
  static char *found;

  g_free (found);
  found = g_find_program_in_path ("pto");
  return found != NULL ? "pto" : called_as;
}

/* Also what an orchestration has printed. */
static gboolean
finish_output (GError **error)
{
  int code = pto_stdout_finish ();

  if (code != 0)
    tool_fail (error, _ ("standard output cannot be written: %s"), g_strerror (code));
  return code == 0;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = NULL;
  GError *unwritten = NULL;
  char refusal[PTO_REFUSAL_BYTES];

  /* Before all that may need a lock, more memory or a thread. */
  if (!pto_needed_calls_are_there (refusal))
    {
      fprintf (stderr, "pto: %s\n", refusal);
      return TOOL_ERROR_TROUBLE;
    }
  setlocale (LC_ALL, "");
  /* Numbers look the same everywhere: they are read by programs too. */
  setlocale (LC_NUMERIC, "C");
  pto_text_bind ();
  textdomain (GETTEXT_PACKAGE);
  g_set_prgname ("pto");
  g_log_set_default_handler (log_line, NULL);

  pto_stdout_begin ();
  g_set_print_handler (print);
  terminal_begin ();
  tool_watch_interrupts ();

  if (argc > 0)
    called_as = argv[0];
  words = g_strdupv (argc > 0 ? argv : (char *[]){ (char *) "pto", NULL });
  tool_dispatch (&words, &error);
  finish_output (&unwritten);
  look_at_stdout (error);
  if (tool_was_interrupted ())
    return TOOL_INTERRUPTED;
  if (pto_stdout_is_cut ())
    pto_stdout_end_by_pipe ();
  tool_add_failure (&error, unwritten);
  if (error == NULL)
    return EXIT_SUCCESS;
  tool_print_error (error->message);
  return tool_get_status (error);
}
