/* completion.c: what does a shell offer when a word of a command is begun?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Both scripts are made of the table and of what metavariables say (tool.h). What may stand at a
 * place is written in both in the same way, for functions that are the same but for their language:
 * a list of words=A,B, names=A=,B= (more follows), files=any or files=svg,json, directories, cases
 * and processes.
 */
#include "config.h"

#include "tool.h"

#include <pto/pto.h>
#include <string.h>

/* --- what a metavariable allows --- */

static void
append_names (GString *list, const char *name)
{
  g_string_append_printf (list, "%s%s", list->len > 0 ? "," : "", name);
}

static gboolean
is_literal (const char *text)
{
  if (text[0] == '\0')
    return FALSE;
  for (const char *c = text; *c != '\0'; c++)
    if (!g_ascii_islower (*c) && !g_ascii_isdigit (*c) && *c != '-')
      return FALSE;
  return TRUE;
}

static void
append_all (GString *list, char **names, const char *suffix)
{
  for (char **name = names; *name != NULL; name++)
    {
      g_autofree char *whole = g_strconcat (*name, suffix, NULL);

      append_names (list, whole);
    }
}

/* Nothing: it is somebody's own. */
static char *
dup_allowed (const ToolCommand *command, const char *metavariable)
{
  g_autoptr (GString) words = g_string_new (NULL);
  g_autoptr (GString) names = g_string_new (NULL);
  g_autoptr (GString) files = g_string_new (NULL);
  GString *allowed = g_string_new (NULL);
  /* "[DIR]", "[A|B]...", "N[,N...]" */
  g_autofree char *inner = g_strdup (metavariable + (metavariable[0] == '['));
  g_auto (GStrv) alternatives = NULL;

  inner[strcspn (inner, "[]")] = '\0';
  if (g_str_has_suffix (inner, "..."))
    inner[strlen (inner) - strlen ("...")] = '\0';
  alternatives = g_strsplit (inner, "|", -1);
  for (char **one = alternatives; *one != NULL; one++)
    {
      const char *dot = strchr (*one, '.');

      if (strcmp (*one, "FILE") == 0 || strcmp (*one, "PREFIX") == 0)
        append_names (files, "any");
      else if (strcmp (*one, "DIR") == 0)
        g_string_append (allowed, "directories ");
      else if (strcmp (*one, "CASE") == 0)
        g_string_append (allowed, "cases ");
      else if (strcmp (*one, "PID") == 0)
        g_string_append (allowed, "processes ");
      else if (strcmp (*one, "PLATFORM") == 0)
        {
          g_auto (GStrv) platforms = pto_platform_list_names ();

          append_all (words, platforms, "");
        }
      else if (strcmp (*one, "PARAMETER=VALUE") == 0)
        {
          g_auto (GStrv) parameters = pto_worker_list_parameters ();

          append_all (names, parameters, "=");
        }
      else if (command != NULL && g_strcmp0 (*one, command->words_name) == 0)
        {
          g_autoptr (GArray) known = tool_list_words (command);

          for (guint i = 0; i < known->len; i++)
            append_names (words, g_array_index (known, ToolWord, i).name);
        }
      else if (dot != NULL)
        append_names (files, dot + 1);
      else if (is_literal (*one))
        append_names (words, *one);
    }
  if (words->len > 0)
    g_string_append_printf (allowed, "words=%s ", words->str);
  if (names->len > 0)
    g_string_append_printf (allowed, "names=%s ", names->str);
  if (files->len > 0)
    g_string_append_printf (allowed, "files=%s ", files->str);
  return g_strchomp (g_string_free (allowed, FALSE));
}

/* --- bash --- */

static void
append_arm (GString *script, const char *patterns, const char *allowed)
{
  g_string_append_printf (script, "    %s) allowed='%s' ;;\n", patterns, allowed);
}

static void
append_options_arms (GString *script, const ToolCommand *command, const char *name,
                     const GOptionEntry *entries)
{
  for (const GOptionEntry *entry = entries; entry != NULL && entry->long_name != NULL; entry++)
    {
      g_autofree char *allowed = NULL;
      g_autofree char *patterns = entry->short_name != 0
                                      ? g_strdup_printf ("'%s --%s' | '%s -%c'", name,
                                                         entry->long_name, name, entry->short_name)
                                      : g_strdup_printf ("'%s --%s'", name, entry->long_name);

      if (entry->arg_description == NULL)
        continue;
      allowed = dup_allowed (command, entry->arg_description);
      append_arm (script, patterns, allowed);
    }
}

/* The places behind @name, by number; the last stands for all that follow if it may be repeated. */
static void
append_operand_arms (GString *script, const ToolCommand *command, const char *name,
                     const char *operands)
{
  g_auto (GStrv) places = g_strsplit (operands != NULL ? operands : "", " ", -1);

  for (guint i = 0; places[i] != NULL; i++)
    {
      g_autofree char *allowed = dup_allowed (command, places[i]);
      g_autofree char *patterns = g_str_has_suffix (places[i], "...")
                                      ? g_strdup_printf ("'%s '[0-9]*", name)
                                      : g_strdup_printf ("'%s %u'", name, i + 1);

      if (allowed[0] != '\0')
        append_arm (script, patterns, allowed);
    }
}

static void
append_long_names (GString *list, const GOptionEntry *entries)
{
  for (const GOptionEntry *entry = entries; entry != NULL && entry->long_name != NULL; entry++)
    if ((entry->flags & G_OPTION_FLAG_HIDDEN) == 0)
      g_string_append_printf (list, "%s--%s", list->len > 0 ? "," : "", entry->long_name);
}

static void
append_command_arms (GString *script, const ToolCommand *command)
{
  g_autoptr (GArray) words = tool_list_words (command);
  g_autoptr (GString) options = g_string_new (NULL);
  g_autofree char *pattern = g_strdup_printf ("'%s options'", command->name);
  g_autofree char *words_of_options = NULL;

  append_long_names (options, command->entries);
  append_long_names (options, tool_common_options);
  words_of_options = g_strconcat ("words=", options->str, NULL);
  append_arm (script, pattern, words_of_options);
  append_options_arms (script, command, command->name, command->entries);
  append_options_arms (script, command, command->name, tool_common_options);
  append_operand_arms (script, command, command->name, command->operands);
  for (guint k = 0; k < words->len; k++)
    {
      const ToolWord *word = &g_array_index (words, ToolWord, k);
      g_autofree char *name = g_strdup_printf ("%s %s", command->name, word->name);

      append_operand_arms (script, command, name, word->operands);
    }
}

/* The table: _pto_look_up KEY sets allowed, and fails where there is none of that key. KEY is
 * "COMMAND --OPTION", for its value, "COMMAND options", or "COMMAND NUMBER" for an operand. */
static void
append_table (GString *script)
{
  /* What stands before a command, which is an operand there. */
  ToolCommand first = tool_help_command;

  g_string_append (script, "_pto_look_up ()\n{\n  allowed=\n  case $1 in\n");
  for (guint i = 0; tool_commands[i] != NULL; i++)
    append_command_arms (script, tool_commands[i]);
  first.name = "";
  first.entries = tool_first_options;
  append_command_arms (script, &first);
  g_string_append (script, "    *) return 1 ;;\n  esac\n}\n\n");
}

/* What both shells understand: the cases of an example, and the processes that answer. */
static const char both[]
    = "_pto_cases ()\n"
      "{\n"
      "  sed -n 's/^\\[case  *\\([^]]*[^] ]\\) *\\]$/\\1/p' \"$1/pto.ini\" 2> /dev/null\n"
      "}\n"
      "\n"
      "_pto_processes ()\n"
      "{\n"
      "  sed -n 's|.* @libpto/answer/[0-9]*/\\([0-9]*\\)$|\\1|p' /proc/net/unix 2> /dev/null\n"
      "}\n"
      "\n";

static const char bash_function[]
    = "# $1: what may stand here, $2: the word so far, $3: the example's directory. Fills COMPREPLY.\n"
      "_pto_offer ()\n"
      "{\n"
      "  local part one suffix\n"
      "  for part in $1; do\n"
      "    case $part in\n"
      "      words=* | names=*)\n"
      "        [[ $part == names=* ]] && compopt -o nospace 2> /dev/null\n"
      "        part=${part#*=}\n"
      "        for one in ${part//,/ }; do\n"
      "          [[ $one == \"$2\"* ]] && COMPREPLY+=(\"$one\")\n"
      "        done ;;\n"
      "      files=*)\n"
      "        compopt -o filenames 2> /dev/null\n"
      "        part=${part#files=}\n"
      "        while IFS= read -r one; do\n"
      "          [[ -d $one || $part == *any* ]] && COMPREPLY+=(\"$one\") && continue\n"
      "          for suffix in ${part//,/ }; do\n"
      "            [[ $one == *.$suffix ]] && COMPREPLY+=(\"$one\") && break\n"
      "          done\n"
      "        done < <(compgen -f -- \"$2\") ;;\n"
      "      directories)\n"
      "        compopt -o filenames 2> /dev/null\n"
      "        while IFS= read -r one; do COMPREPLY+=(\"$one\"); done < <(compgen -d -- \"$2\") ;;\n"
      "      cases | processes)\n"
      "        while IFS= read -r one; do\n"
      "          [[ $one == \"$2\"* ]] && COMPREPLY+=(\"$one\")\n"
      "        done < <(\"_pto_$part\" \"$3\") ;;\n"
      "    esac\n"
      "  done\n"
      "}\n"
      "\n"
      "_pto ()\n"
      "{\n"
      "  local IFS=$' \\t\\n' allowed command= option= before= key word current strip token one glue= rest= i\n"
      "  local -a line=() operands=()\n"
      "  COMPREPLY=()\n"
      "  # Readline takes \"--svg=x\" and \"name=value\" apart at \"=\" and \":\"; here they are one word.\n"
      "  for ((i = 1; i <= COMP_CWORD; i++)); do\n"
      "    token=${COMP_WORDS[i]}\n"
      "    if ((${#line[@]} > 0)) && [[ $glue || $token =~ ^[=:]+$ ]]; then\n"
      "      line[${#line[@]}-1]+=$token\n"
      "    else\n"
      "      line+=(\"$token\")\n"
      "    fi\n"
      "    glue=\n"
      "    [[ $token =~ ^[=:]+$ ]] && glue=1\n"
      "  done\n"
      "  ((${#line[@]} > 0)) || return 0\n"
      "  word=${line[${#line[@]}-1]}\n"
      "  unset \"line[${#line[@]}-1]\"\n"
      "  current=${COMP_WORDS[COMP_CWORD]}\n"
      "  [[ $current =~ ^[=:]+$ ]] && current=\n"
      "  strip=${word:0:${#word}-${#current}}\n"
      "\n"
      "  for token in \"${line[@]}\"; do\n"
      "    if [[ $option ]]; then\n"
      "      option=\n"
      "    elif [[ $token == -- && ! $rest ]]; then\n"
      "      rest=1\n"
      "    elif [[ $token == -* && ! $rest ]]; then\n"
      "      [[ $token != --*=* ]] && _pto_look_up \"$command $token\" && option=$token\n"
      "    elif [[ ! $command ]]; then\n"
      "      command=$token\n"
      "    else\n"
      "      operands+=(\"$token\")\n"
      "    fi\n"
      "  done\n"
      "\n"
      "  if [[ $option ]]; then\n"
      "    key=\"$command $option\"\n"
      "  elif [[ $word == --*=* && ! $rest ]]; then\n"
      "    key=\"$command ${word%%=*}\"\n"
      "    before=${word%%=*}=\n"
      "  elif [[ $word == -* && ! $rest ]]; then\n"
      "    key=\"$command options\"\n"
      "  else\n"
      "    key=\"$command $((${#operands[@]} + 1))\"\n"
      "    # Behind a question: what that takes.\n"
      "    if ! _pto_look_up \"$key\" && ((${#operands[@]} > 1)); then\n"
      "      key=\"$command ${operands[1]} $((${#operands[@]} - 1))\"\n"
      "    fi\n"
      "  fi\n"
      "  _pto_look_up \"$key\" || return 0\n"
      "  _pto_offer \"$allowed\" \"${word#\"$before\"}\" \"${operands[0]-}\"\n"
      "  for i in \"${!COMPREPLY[@]}\"; do\n"
      "    one=$before${COMPREPLY[i]}\n"
      "    COMPREPLY[i]=${one#\"$strip\"}\n"
      "  done\n"
      "}\n"
      "\n"
      "complete -F _pto pto\n";

void
tool_append_bash (GString *script)
{
  g_string_append (script, "# Completions of pto for bash: made by pto --print-page bash.\n\n");
  append_table (script);
  g_string_append (script, both);
  g_string_append (script, bash_function);
}

/* --- zsh --- */

/* Inside of '...', where _arguments reads it: brackets and colons are its own. */
static char *
dup_zsh_text (const char *text)
{
  GString *quoted = g_string_new (NULL);

  for (const char *c = text; *c != '\0'; c++)
    if (*c == '\'')
      g_string_append (quoted, "'\\''");
    else if (*c == '\n')
      g_string_append_c (quoted, ' ');
    else
      {
        if (strchr ("[]:\\", *c) != NULL)
          g_string_append_c (quoted, '\\');
        g_string_append_c (quoted, *c);
      }
  return g_string_free (quoted, FALSE);
}

static void
append_zsh_options (GString *script, const ToolCommand *command, const GOptionEntry *entries,
                    const char *indent)
{
  for (const GOptionEntry *entry = entries; entry != NULL && entry->long_name != NULL; entry++)
    {
      g_autofree char *text = dup_zsh_text (entry->description);
      g_autofree char *value = NULL;
      const char *sign = entry->arg_description != NULL ? "=" : "";
      gboolean is_repeated = entry->arg == G_OPTION_ARG_STRING_ARRAY;

      if ((entry->flags & G_OPTION_FLAG_HIDDEN) != 0)
        continue;
      if (entry->arg_description != NULL)
        {
          g_autofree char *allowed = dup_allowed (command, entry->arg_description);
          g_autofree char *name = dup_zsh_text (entry->arg_description);

          value = allowed[0] != '\0' ? g_strdup_printf (":%s: _pto_offer %s", name, allowed)
                                     : g_strdup_printf (":%s: ", name);
        }
      g_string_append_printf (script, " \\\n%s'", indent);
      if (is_repeated)
        g_string_append_c (script, '*');
      else if (entry->short_name != 0)
        g_string_append_printf (script, "(-%c --%s)", entry->short_name, entry->long_name);
      if (entry->short_name != 0)
        g_string_append_printf (script, "'{-%c,--%s%s}'", entry->short_name, entry->long_name,
                                sign);
      else
        g_string_append_printf (script, "--%s%s", entry->long_name, sign);
      g_string_append_printf (script, "[%s]%s'", text, value != NULL ? value : "");
    }
}

static void
append_zsh_operands (GString *script, const ToolCommand *command, const char *operands)
{
  g_auto (GStrv) places = g_strsplit (operands != NULL ? operands : "", " ", -1);

  for (guint i = 0; places[i] != NULL; i++)
    {
      g_autofree char *allowed = dup_allowed (command, places[i]);
      g_autofree char *name = dup_zsh_text (places[i]);

      if (g_str_has_suffix (places[i], "..."))
        g_string_append_printf (script, " \\\n        '*:%s:", name);
      else
        g_string_append_printf (script, " \\\n        '%u:%s:", i + 1, name);
      g_string_append_printf (script, " %s%s'", allowed[0] != '\0' ? "_pto_offer " : "", allowed);
    }
}

/* The question decides what stands behind it. */
static void
append_zsh_questions (GString *script, const ToolCommand *command)
{
  g_autoptr (GArray) words = tool_list_words (command);
  gboolean any = FALSE;

  for (guint i = 0; i < words->len; i++)
    {
      const ToolWord *word = &g_array_index (words, ToolWord, i);
      g_auto (GStrv) places = g_strsplit (word->operands != NULL ? word->operands : "", " ", -1);

      for (guint k = 0; places[k] != NULL; k++)
        {
          g_autofree char *allowed = dup_allowed (command, places[k]);

          if (allowed[0] == '\0')
            continue;
          if (!any)
            g_string_append (script, " \\\n        '*::operand:->operand' && return 0\n"
                                     "      case \"$line[2] $((CURRENT - 2))\" in\n");
          any = TRUE;
          g_string_append_printf (script, "        '%s %u') _pto_offer %s ;;\n", word->name, k + 1,
                                  allowed);
        }
    }
  g_string_append (script, any ? "      esac ;;\n" : " ;;\n");
}

static const char zsh_function[]
    = "# What may stand here, as in the completions for bash.\n"
      "_pto_offer ()\n"
      "{\n"
      "  local part found=1\n"
      "  local -a list\n"
      "  for part in \"$@\"; do\n"
      "    case $part in\n"
      "      words=*) list=(${(s:,:)part#words=}); compadd -- $list && found=0 ;;\n"
      "      names=*) list=(${(s:,:)part#names=}); compadd -S '' -- $list && found=0 ;;\n"
      "      files=*any*) _files && found=0 ;;\n"
      "      files=*) _files -g \"*.(${${part#files=}//,/|})(-.)\" && found=0 ;;\n"
      "      directories) _directories && found=0 ;;\n"
      "      cases) list=(${(f)\"$(_pto_cases ${(Q)line[1]})\"}); compadd -- $list && found=0 ;;\n"
      "      processes) list=(${(f)\"$(_pto_processes)\"}); compadd -- $list && found=0 ;;\n"
      "    esac\n"
      "  done\n"
      "  return $found\n"
      "}\n"
      "\n";

void
tool_append_zsh (GString *script)
{
  g_string_append (script,
                   "#compdef pto\n# Completions of pto for zsh: made by pto --print-page zsh.\n\n");
  g_string_append (script, both);
  g_string_append (script, zsh_function);
  g_string_append (script, "_pto_command ()\n{\n  local -a commands=(\n");
  for (guint i = 0; tool_commands[i] != NULL; i++)
    {
      g_autofree char *text = dup_zsh_text (tool_commands[i]->purpose);

      g_string_append_printf (script, "    '%s:%s'\n", tool_commands[i]->name, text);
    }
  g_string_append (script, "  )\n  _describe command commands\n}\n\n"
                           "_pto ()\n{\n"
                           "  local curcontext=$curcontext context state state_descr\n"
                           "  local -a line\n"
                           "  typeset -A opt_args\n"
                           "  _arguments -C");
  append_zsh_options (script, NULL, tool_first_options, "    ");
  append_zsh_options (script, NULL, tool_common_options, "    ");
  g_string_append (script,
                   " \\\n    '1:COMMAND: _pto_command' \\\n    '*::operand:->operand' && return 0\n"
                   "  [[ $state == operand ]] || return 1\n"
                   "  case $line[1] in\n");
  for (guint i = 0; tool_commands[i] != NULL; i++)
    {
      const ToolCommand *command = tool_commands[i];

      g_string_append_printf (script, "    %s)\n      _arguments -C -s", command->name);
      append_zsh_options (script, command, command->entries, "        ");
      append_zsh_options (script, command, tool_common_options, "        ");
      append_zsh_operands (script, command, command->operands);
      append_zsh_questions (script, command);
    }
  g_string_append (script, "  esac\n}\n\n"
                           "if [[ $funcstack[1] == _pto ]]; then\n  _pto \"$@\"\nelse\n"
                           "  compdef _pto pto\nfi\n");
}
