/* page.c: what does the manual page say?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Made when the program is built, and never translated. It has no date: the same sources give the
 * same page.
 */
#include "config.h"

#include "tool.h"

#include <glib/gi18n.h>
#include <pto/pto.h>
#include <string.h>

/* Text of ours: nothing in it is a request, and a hyphen that is typed stays one. */
static void
append_text (GString *page, const char *text)
{
  gboolean at_start = TRUE;

  for (const char *c = text; *c != '\0'; c++)
    {
      if (at_start && (*c == '.' || *c == '\''))
        g_string_append (page, "\\&");
      at_start = *c == '\n';
      if (*c == '\\')
        g_string_append (page, "\\(rs");
      else if (*c == '-')
        g_string_append (page, "\\-");
      else if (*c == '`' || *c == '\'')
        g_string_append (page, *c == '`' ? "\\(ga" : "\\(aq");
      else if (*c == '^' || *c == '~')
        g_string_append (page, *c == '^' ? "\\(ha" : "\\(ti");
      else
        g_string_append_c (page, *c);
    }
}

static void
append_line (GString *page, const char *text)
{
  append_text (page, text);
  g_string_append_c (page, '\n');
}

static void
append_paragraph (GString *page, const char *text)
{
  g_string_append (page, ".PP\n");
  append_line (page, text);
}

static void
append_section (GString *page, const char *title)
{
  g_string_append_printf (page, ".SH %s\n", title);
}

/* .TP: what, in bold, what goes with it, in italics, and what it is. */
static void
append_item (GString *page, const char *what, const char *operands, const char *purpose)
{
  g_string_append (page, ".TP\n\\fB");
  append_text (page, what);
  g_string_append (page, "\\fR");
  if (operands != NULL)
    {
      g_string_append (page, " \\fI");
      append_text (page, operands);
      g_string_append (page, "\\fR");
    }
  g_string_append_c (page, '\n');
  append_line (page, purpose);
}

static void
append_options (GString *page, const GOptionEntry *entries)
{
  for (const GOptionEntry *entry = entries; entry != NULL && entry->long_name != NULL; entry++)
    {
      if ((entry->flags & G_OPTION_FLAG_HIDDEN) != 0)
        continue;
      g_string_append (page, ".TP\n");
      if (entry->short_name != 0)
        g_string_append_printf (page, "\\fB\\-%c\\fR, ", entry->short_name);
      g_string_append (page, "\\fB\\-\\-");
      append_text (page, entry->long_name);
      g_string_append (page, "\\fR");
      if (entry->arg_description != NULL)
        {
          g_string_append (page, "=\\fI");
          append_text (page, entry->arg_description);
          g_string_append (page, "\\fR");
        }
      g_string_append_c (page, '\n');
      append_line (page, entry->description);
    }
}

static void
append_command (GString *page, const ToolCommand *command)
{
  g_autoptr (GArray) words = tool_list_words (command);

  g_string_append (page, ".SS pto ");
  append_text (page, command->name);
  g_string_append (page, " [OPTION...]");
  if (command->operands != NULL)
    {
      g_string_append_c (page, ' ');
      append_text (page, command->operands);
    }
  g_string_append_c (page, '\n');
  append_line (page, command->summary);
  append_options (page, command->entries);
  if (command->notes != NULL)
    append_paragraph (page, command->notes);
  /* The commands have been listed. */
  if (words->len == 0 || command == &tool_help_command)
    return;
  g_string_append (page, ".PP\n");
  append_text (page, command->words_title);
  g_string_append (page, ":\n");
  for (guint i = 0; i < words->len; i++)
    {
      const ToolWord *word = &g_array_index (words, ToolWord, i);

      append_item (page, word->name, word->operands, word->purpose);
    }
}

static void
append_parameters (GString *page)
{
  g_auto (GStrv) names = pto_worker_list_parameters ();

  append_paragraph (page, "Each parameter that --set takes has a variable, which counts where the "
                          "option is not given:");
  for (guint i = 0; names[i] != NULL; i++)
    {
      const char *variable = pto_worker_get_parameter_variable (names[i]);

      if (variable != NULL)
        append_item (page, variable, NULL, pto_worker_describe_parameter (names[i]));
    }
}

static void
page_append_man (GString *page)
{
  static const struct
  {
    const char *words;
    const char *does;
  } examples[] = {
    { "pto run examples/bgemm", "Compile it, run it, compare what it computes." },
    { "pto run DIR --backend det --seed 7 --report run.html",
      "On the virtual clock, the same each time, with a page that shows what each core did." },
    { "pto run DIR --trace run.ptotrace && pto trace run.ptotrace critical-path",
      "Record it, and ask why it took as long as it did." },
    { "pto explore DIR", "Does the result depend on the order of tasks?" },
    { "pto top PID", "What does a run wait for that hangs?" },
  };

  g_string_append_printf (page,
                          ".\\\" Made by pto --print-page man.\n"
                          ".TH PTO 1 \"\" \"libpto %s\" \"User Commands\"\n.nh\n.ad l\n",
                          PTO_VERSION_S);
  append_section (page, "NAME");
  g_string_append (page, "pto \\- run task graphs the way an Ascend NPU does\n");
  append_section (page, "SYNOPSIS");
  g_string_append (page, "\\fBpto\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIOPERAND\\fR...]\n");
  append_section (page, "DESCRIPTION");
  append_line (page, tool_purpose);
  append_line (page,
               "A task graph is an orchestration, which submits kernels on tensors; who waits for "
               "whom follows from the tensors.");
  append_section (page, "OPTIONS");
  g_string_append (page, "Before a command:\n");
  append_options (page, tool_first_options);
  append_paragraph (page, "Before or behind it:");
  append_options (page, tool_common_options);
  append_section (page, "COMMANDS");
  for (guint i = 0; tool_commands[i] != NULL; i++)
    append_command (page, tool_commands[i]);
  append_section (page, "EXIT STATUS");
  for (const ToolStatus *one = tool_statuses; one->means != NULL; one++)
    {
      g_autofree char *number = g_strdup_printf ("%d", one->status);

      append_item (page, number, NULL, one->means);
    }
  append_paragraph (page, "Where results are wrong and something else could not be done, it is 1.");
  append_section (page, "ENVIRONMENT");
  append_item (page, "CC, CXX, CFLAGS, CXXFLAGS", NULL,
               "What kernels and orchestrations are built with.");
  append_item (page, "XDG_CACHE_HOME", NULL,
               "Where what was built is kept, in libpto; without it ~/.cache. Where that cannot be "
               "written, a directory below TMPDIR takes it, which is removed when the process "
               "ends.");
  append_item (page, "NO_COLOR", NULL,
               "Set to anything: no colours, unless --color always is given.");
  append_item (page, "TERM", NULL, "dumb: no colours, and no line that tells how far a run is.");
  append_item (page, "PTO_ANSWER", NULL,
               "1: any program with the library can be asked by pto top.");
  append_item (page, "PTO_ISA_ROOT", NULL, "A copy of a vendor's tile headers.");
  append_parameters (page);
  append_section (page, "EXAMPLES");
  for (guint i = 0; i < G_N_ELEMENTS (examples); i++)
    append_item (page, examples[i].words, NULL, examples[i].does);
}

gboolean
tool_print_page (const char *kind, GError **error)
{
  g_autoptr (GString) page = g_string_new (NULL);

  if (strcmp (kind, "man") == 0)
    page_append_man (page);
  else if (strcmp (kind, "bash") == 0)
    tool_append_bash (page);
  else if (strcmp (kind, "zsh") == 0)
    tool_append_zsh (page);
  if (page->len == 0)
    return tool_refuse (error, _ ("--print-page %s: man, bash or zsh is wanted"), kind);
  g_print ("%s", page->str);
  return TRUE;
}
