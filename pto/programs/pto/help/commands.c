/* commands.c: which sub-commands and options are there?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The one table. Help is printed from it here, page.c makes the manual page and the completions of
 * it: an option that is in no table is in none of them, and can not be given.
 */
#include "config.h"

#include "terminal.h"
#include "tool.h"

#include "common/printable.h"

#include <glib/gi18n.h>
#include <pto/pto.h>
#include <string.h>

#include "exec/nearest-word.h" /* after what defines _() */

const char tool_purpose[] = N_ ("Runs task graphs the way an Ascend NPU does, without the NPU.");

/* In the order of the list: first what one begins with. */
const ToolCommand *const tool_commands[] = {
  &tool_new_command,     &tool_run_command,
  &tool_explore_command, &tool_trace_command,
  &tool_whatif_command,  &tool_calibrate_command,
  &tool_top_command,     &tool_cluster_command,
  &tool_remote_command,  &tool_info_command,
  &tool_doctor_command,  &tool_bench_command,
  &tool_help_command,    NULL,
};

const ToolStatus tool_statuses[] = {
  { 0, N_ ("all went well; pto run: the results are right") },
  { TOOL_ERROR_FAILED,
    N_ ("what was looked at is wrong: pto run: results (FAIL), or accesses with --check; pto "
        "explore: the result depends on the order; pto doctor: something that is needed is missing; "
        "pto cluster: it is not up, or somebody is not ready") },
  { TOOL_ERROR_USAGE, N_ ("what was typed can not be meant: options, operands, parameters") },
  { TOOL_ERROR_TROUBLE,
    N_ ("it could not be done: files, building, a kernel that crashes, a graph that can not go on") },
  { TOOL_INTERRUPTED, N_ ("Ctrl-C") },
  { TOOL_CUT, N_ ("SIGPIPE: the reader of standard output has gone, as in pto help | head -n 1") },
  { 0, NULL },
};

static gboolean option_version;
static gboolean option_help;
static char *option_color;
static char *option_page;

const GOptionEntry tool_first_options[]
    = { { "version", 0, 0, G_OPTION_ARG_NONE, &option_version, N_ ("Print the version"), NULL },
        /* For the build: everybody else has the files. */
        { "print-page", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, &option_page,
          N_ ("Print the manual page, or the completions for a shell"), N_ ("man|bash|zsh") },
        G_OPTION_ENTRY_NULL };

const GOptionEntry tool_common_options[] = {
  { "color", 0, 0, G_OPTION_ARG_STRING, &option_color,
    N_ ("Errors and results in colours (default: auto, on a terminal unless NO_COLOR is set)"),
    N_ ("auto|always|never") },
  { "help", 'h', 0, G_OPTION_ARG_NONE, &option_help, N_ ("Print this help"), NULL },
  G_OPTION_ENTRY_NULL
};

/* NULL: there is none of that name, and an error is set. */
static const ToolCommand *
find_command (const char *name, GError **error)
{
  struct pto_nearest nearest = { .word = name };
  char question[200];

  for (guint i = 0; tool_commands[i] != NULL; i++)
    if (strcmp (name, tool_commands[i]->name) == 0)
      return tool_commands[i];
  for (guint i = 0; tool_commands[i] != NULL; i++)
    pto_nearest_try (&nearest, tool_commands[i]->name);
  tool_refuse (error, _ ("unknown command \"%s\" (see pto help)%s"), name,
               pto_nearest_ask (&nearest, question, sizeof question));
  return NULL;
}

GArray *
tool_list_words (const ToolCommand *command)
{
  GArray *words = g_array_new (FALSE, FALSE, sizeof (ToolWord));

  if (command->add_words != NULL)
    command->add_words (words);
  return words;
}

/* --- parsing --- */

/* entries may be NULL. */
static void
try_options (struct pto_nearest *nearest, const GOptionEntry *entries)
{
  for (; entries != NULL && entries->long_name != NULL; entries++)
    if ((entries->flags & G_OPTION_FLAG_HIDDEN) == 0 && entries->long_name[0] != '\0')
      pto_nearest_try (nearest, entries->long_name);
}

/* entries: those of the context beside the common ones; may be NULL. */
static void
refuse_option (const GError *cause, const GOptionEntry *entries, GError **error)
{
  const char *option = strstr (cause->message, "--");
  /* Without =VALUE. */
  g_autofree char *word
      = option != NULL ? g_strndup (option + 2, strcspn (option + 2, "=")) : g_strdup ("");
  struct pto_nearest nearest = { .word = word };
  g_autofree char *meant = NULL;
  char question[200];

  if (g_error_matches (cause, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION) && option != NULL)
    {
      try_options (&nearest, entries);
      try_options (&nearest, tool_common_options);
    }
  if (nearest.found != NULL)
    nearest.found = meant = g_strconcat ("--", nearest.found, NULL);
  tool_refuse (error, "%s%s", cause->message,
               pto_nearest_ask (&nearest, question, sizeof question));
}

static gboolean
parse (GOptionContext *context, const GOptionEntry *entries, char ***words, GError **error)
{
  g_autoptr (GError) local = NULL;

  if (entries != NULL)
    g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  g_option_context_set_help_enabled (context, FALSE);
  g_option_context_add_main_entries (context, tool_common_options, GETTEXT_PACKAGE);
  if (!g_option_context_parse_strv (context, words, &local))
    refuse_option (local, entries, error);
  else if (option_color != NULL && !terminal_choose_colours (option_color))
    tool_refuse (error, _ ("--color %s: auto, always or never is wanted"), option_color);
  else
    return TRUE;
  return FALSE;
}

/* Refuses operands where there are to be none, or only one, and asks for one that is needed. */
static gboolean
parse_options (const ToolCommand *command, char ***words, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  const char *operand, *second;

  if (!parse (context, command->entries, words, error))
    return FALSE;
  operand = (*words)[1];
  second = operand != NULL ? (*words)[2] : NULL;
  if (operand == NULL && command->missing != NULL)
    return tool_refuse (error, "%s", _ (command->missing));
  if (operand != NULL && command->operands == NULL)
    return tool_refuse (error, _ ("%s takes no \"%s\" (see pto help %s)"), command->name, operand,
                        command->name);
  if (second != NULL && strcmp (command->operands, "DIR") == 0)
    return tool_refuse (error, _ ("one directory at a time, not \"%s\" too"), second);
  return TRUE;
}

/* --- help --- */

/* "why TASK" */
static char *
dup_usage (const ToolWord *word)
{
  return word->operands != NULL ? g_strdup_printf ("%s %s", word->name, _ (word->operands))
                                : g_strdup (word->name);
}

static char *
dup_description (const ToolCommand *command)
{
  g_autoptr (GArray) words = tool_list_words (command);
  GString *text = g_string_new (NULL);
  int widest = 0;

  for (guint i = 0; i < words->len; i++)
    {
      g_autofree char *usage = dup_usage (&g_array_index (words, ToolWord, i));

      widest = MAX (widest, (int) pto_count_columns (usage));
    }
  if (words->len > 0)
    g_string_append_printf (text, "%s:\n", _ (command->words_title));
  for (guint i = 0; i < words->len; i++)
    {
      const ToolWord *word = &g_array_index (words, ToolWord, i);
      g_autofree char *usage = dup_usage (word);

      g_string_append_printf (text, "  %s%*s%s\n", usage,
                              widest + 2 - (int) pto_count_columns (usage), "", _ (word->purpose));
    }
  if (words->len > 0 && command->notes != NULL)
    g_string_append_c (text, '\n');
  if (command->notes != NULL)
    g_string_append_printf (text, "%s\n", _ (command->notes));
  return g_string_free (text, FALSE);
}

static void
print_command (const ToolCommand *command)
{
  g_autoptr (GOptionContext) context
      = g_option_context_new (command->operands != NULL ? _ (command->operands) : NULL);
  g_autofree char *program = g_strdup_printf ("pto %s", command->name);
  g_autofree char *description = dup_description (command);
  g_autofree char *text = NULL;

  g_set_prgname (program);
  g_option_context_set_help_enabled (context, FALSE);
  g_option_context_set_summary (context, _ (command->summary));
  if (description[0] != '\0')
    g_option_context_set_description (context, description);
  if (command->entries != NULL)
    g_option_context_add_main_entries (context, command->entries, GETTEXT_PACKAGE);
  g_option_context_add_main_entries (context, tool_common_options, GETTEXT_PACKAGE);
  text = g_option_context_get_help (context, TRUE, NULL);
  g_print ("%s", text);
}

static void
print_options (const GOptionEntry *entries)
{
  for (const GOptionEntry *entry = entries; entry->long_name != NULL; entry++)
    if ((entry->flags & G_OPTION_FLAG_HIDDEN) == 0)
      {
        g_autofree char *usage
            = g_strdup_printf (entry->short_name != 0 ? "-%c, --%s%s%s" : "%c--%s%s%s",
                               entry->short_name != 0 ? entry->short_name : ' ', entry->long_name,
                               entry->arg_description != NULL ? "=" : "",
                               entry->arg_description != NULL ? _ (entry->arg_description) : "");

        g_print ("  %-24s  %s\n", g_strstrip (usage), _ (entry->description));
      }
}

/* On standard output; NULL: of all of them. */
static void
print_help (const ToolCommand *command)
{
  if (command != NULL)
    {
      print_command (command);
      return;
    }
  g_print ("%s\n\n%s\n\n%s\n", _ ("Usage: pto COMMAND [OPTION...]"), _ (tool_purpose),
           _ ("Commands:"));
  for (guint i = 0; tool_commands[i] != NULL; i++)
    g_print ("  %-10s%s\n", tool_commands[i]->name, _ (tool_commands[i]->purpose));
  g_print ("\n%s\n", _ ("Options:"));
  print_options (tool_first_options);
  print_options (tool_common_options);
  g_print ("\n%s\n", _ ("Exit status:"));
  for (const ToolStatus *one = tool_statuses; one->means != NULL; one++)
    g_print ("  %-6d%s\n", one->status, _ (one->means));
}

static gboolean
tool_help (char **words, GError **error)
{
  const ToolCommand *command = words[1] != NULL ? find_command (words[1], error) : NULL;

  if (words[1] != NULL && command == NULL)
    return FALSE;
  print_help (command);
  return TRUE;
}

static void
add_commands (GArray *words)
{
  for (guint i = 0; tool_commands[i] != NULL; i++)
    g_array_append_vals (
        words, &(ToolWord){ .name = tool_commands[i]->name, .purpose = tool_commands[i]->purpose },
        1);
}

const ToolCommand tool_help_command = {
  .name = "help",
  .purpose = N_ ("tell about a command: pto help run"),
  .operands = N_ ("[COMMAND]"),
  .summary = N_ ("Tells which commands there are, or all about one."),
  .words_title = N_ ("Commands"),
  .words_name = "COMMAND",
  .add_words = add_commands,
  .run = tool_help,
};

/* --- all of them --- */

gboolean
tool_dispatch (char ***words, GError **error)
{
  g_autoptr (GOptionContext) first = g_option_context_new (NULL);
  g_auto (GStrv) rest = NULL;
  const ToolCommand *command;

  g_option_context_set_strict_posix (first, TRUE);
  if (!parse (first, tool_first_options, words, error))
    return FALSE;
  if (option_page != NULL)
    return tool_print_page (option_page, error);
  if (option_version)
    {
      g_print ("pto %s\n", PTO_VERSION_S);
      return TRUE;
    }
  if (option_help)
    return tool_help (*words, error);
  if ((*words)[1] == NULL)
    return tool_refuse (error, _ ("a command is missing (see pto help)"));
  command = find_command ((*words)[1], error);
  if (command == NULL)
    return FALSE;
  rest = g_strdupv (*words + 1);
  for (char **word = rest + 1; *word != NULL && strcmp (*word, "--") != 0; word++)
    if (strcmp (*word, "--help") == 0 || strcmp (*word, "-h") == 0)
      {
        print_help (command);
        return TRUE;
      }
  return parse_options (command, &rest, error) && command->run (rest, error);
}
