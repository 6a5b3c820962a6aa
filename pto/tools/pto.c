/* pto.c: what does a person type to run, to look and to ask?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Exit status: 0 when all went well, 1 when something failed, 2 when the command was wrong, 130
 * after Ctrl-C. An error is one line on standard error; only a compiler's own words may follow it.
 */
#include "config.h"

#include "pto-bench.h"
#include "tool.h"

#include "../pto-save-private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <json-glib/json-glib.h>
#include <locale.h>
#include <pto/pto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

G_DEFINE_QUARK (tool_error, tool_error)

static const struct
{
  const char *name;
  gboolean (*run) (char **words, GError **error);
  GOptionContext *(*get_options) (void);
  const char *description;
} commands[] = {
  { "run", tool_run, tool_run_get_options,
    N_ ("build an example, run it on a simulated chip and check what it computes") },
  { "trace", tool_trace, tool_trace_get_options,
    N_ ("tell why a run took as long as it did, from its trace") },
  { "whatif", tool_whatif, tool_whatif_get_options,
    N_ ("tell how long it would have taken with other settings, from its trace") },
  { "info", tool_info, tool_info_get_options,
    N_ ("tell the platforms, this machine, the back ends and the parameters") },
  { "bench", tool_bench, tool_bench_get_options,
    N_ ("measure this runtime and others on this machine") },
};

gboolean
tool_parse_options (GOptionContext *context, char ***words, GError **error)
{
  g_autoptr (GOptionContext) owned = context;
  g_autoptr (GError) local = NULL;

  g_option_context_set_help_enabled (context, FALSE);
  if (g_option_context_parse_strv (context, words, &local))
    return TRUE;
  g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE, "%s", local->message);
  return FALSE;
}

void
tool_print_help (const char *command, GOptionContext *context)
{
  g_autoptr (GOptionContext) owned = context;
  g_autofree char *program = g_strdup_printf ("pto %s", command);
  g_autofree char *text = NULL;

  g_set_prgname (program);
  g_option_context_set_help_enabled (context, FALSE);
  text = g_option_context_get_help (context, TRUE, NULL);
  g_print ("%s", text);
}

gboolean
tool_check_output (const char *option, const char *path, const char *suffix, GError **error)
{
  g_autofree char *lower = path != NULL ? g_ascii_strdown (path, -1) : NULL;

  if (path == NULL)
    return TRUE;
  if (path[0] == '\0')
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE, _ ("--%s: the name of the file is empty"),
                 option);
  else if (!g_str_has_suffix (lower, suffix)
           && (!g_file_test (path, G_FILE_TEST_EXISTS)
               || g_file_test (path, G_FILE_TEST_IS_REGULAR)))
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                 _ ("--%s %s: it writes %s files: the name must end so"), option, path,
                 /* What writes the one writes the other, by its name. */
                 strcmp (suffix, ".json") == 0 ? _ (".json and .ptotrace") : suffix);
  else
    return pto_save_check (path, error);
  return FALSE;
}

void
tool_add_failure (GError **failures, GError *failure)
{
  if (failure == NULL)
    return;
  if (*failures != NULL)
    g_printerr ("pto: %s\n", (*failures)->message);
  g_clear_error (failures);
  g_propagate_error (failures, failure);
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

static void
print_help (void)
{
  g_print (
      _ ("Usage: pto COMMAND [OPTION...]\n\nRuns task graphs the way an Ascend NPU does, without "
         "the NPU.\n\nCommands:\n"));
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    g_print ("  %-10s%s\n", commands[i].name, _ (commands[i].description));
  g_print ("  %-10s%s\n", "help", _ ("tell about a command: pto help run"));
  g_print (_ ("\nOptions:\n"));
  g_print ("  %-10s%s\n", "--version", _ ("print the version"));
}

static gboolean
help (char **words, GError **error)
{
  if (words[1] == NULL)
    {
      print_help ();
      return TRUE;
    }
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    if (strcmp (words[1], commands[i].name) == 0)
      {
        tool_print_help (commands[i].name, commands[i].get_options ());
        return TRUE;
      }
  g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE, _ ("unknown command \"%s\" (see pto help)"),
               words[1]);
  return FALSE;
}

static gboolean
dispatch (char **words, GError **error)
{
  if (words[0] == NULL)
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE, _ ("a command is missing (see pto help)"));
      return FALSE;
    }
  if (strcmp (words[0], "--version") == 0)
    {
      g_print ("pto %s\n", PTO_VERSION_S);
      return TRUE;
    }
  if (strcmp (words[0], "help") == 0 || strcmp (words[0], "--help") == 0
      || strcmp (words[0], "-h") == 0)
    return help (words, error);
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    if (strcmp (words[0], commands[i].name) == 0)
      {
        for (guint k = 1; words[k] != NULL && strcmp (words[k], "--") != 0; k++)
          if (strcmp (words[k], "--help") == 0 || strcmp (words[k], "-h") == 0)
            {
              tool_print_help (commands[i].name, commands[i].get_options ());
              return TRUE;
            }
        return commands[i].run (words, error);
      }
  g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE, _ ("unknown command \"%s\" (see pto help)"),
               words[0]);
  return FALSE;
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
  g_printerr ("pto: %s\n", message);
}

/* Why standard output has lost something; 0: it has not. */
static int output_error;

/* As g_print() does it by itself, which tells nobody that it failed. */
static void
print (const char *text)
{
  g_autofree char *converted = NULL;
  const char *charset;

  if (!g_get_console_charset (&charset))
    converted = g_convert_with_fallback (text, -1, charset, "UTF-8", "?", NULL, NULL, NULL);
  if ((fputs (converted != NULL ? converted : text, stdout) < 0 || fflush (stdout) != 0)
      && output_error == 0)
    output_error = errno;
}

/* Also what an orchestration has printed. */
static gboolean
finish_output (GError **error)
{
  if (fflush (stdout) != 0 && output_error == 0)
    output_error = errno;
  if (output_error == 0 && ferror (stdout) == 0)
    return TRUE;
  g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED, _ ("standard output can not be written: %s"),
               output_error != 0 ? g_strerror (output_error) : _ ("something is missing"));
  return FALSE;
}

/* A full disk, a limit of file sizes and a pipe that nobody reads are errors here, not ends; and
 * what this program opens never takes the place of a standard stream that is closed. */
static void
prepare_streams (void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl (fd, F_GETFD) < 0)
      (void) open ("/dev/null", O_RDONLY); /* gets the lowest number that is free: this one */
  signal (SIGPIPE, SIG_IGN);
  signal (SIGXFSZ, SIG_IGN);
  g_set_print_handler (print);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = NULL;
  GError *unwritten = NULL;

  setlocale (LC_ALL, "");
  /* Numbers look the same everywhere: they are read by programs too. */
  setlocale (LC_NUMERIC, "C");
  bindtextdomain (GETTEXT_PACKAGE, LOCALEDIR);
  bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
  textdomain (GETTEXT_PACKAGE);
  g_set_prgname ("pto");
  g_log_set_default_handler (log_line, NULL);

  prepare_streams ();
  tool_watch_interrupts ();

  words = g_strdupv (argv + MIN (argc, 1));
  dispatch (words, &error);
  finish_output (&unwritten);
  tool_add_failure (&error, unwritten);
  if (tool_was_interrupted ())
    return TOOL_INTERRUPTED;
  if (error == NULL)
    return EXIT_SUCCESS;
  g_printerr ("pto: %s\n", error->message);
  return error->domain == TOOL_ERROR ? error->code : TOOL_ERROR_FAILED;
}
