/* compiler-program.c: which compiler is there, and what is this machine to it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "compiler-program.h"

#include "base/error.h"
#include "base/locks.h"
#include "common/text.h"
#include "pto-compile.h"

#include <glib/gstdio.h>
#include <string.h>

/* Between two questions whether what compilers do is wanted: well below any task-timeout that
 * somebody would set. */
#define ASK_MS 20

GPtrArray *
pto_compiler_find (gboolean is_c, GError **error)
{
  static const char *const c_names[] = { "cc", "gcc", "clang", NULL };
  static const char *const cxx_names[] = { "c++", "g++", "clang++", NULL };
  const char *variable = is_c ? "CC" : "CXX";
  const char *value = g_getenv (variable);
  GPtrArray *command = g_ptr_array_new_with_free_func (g_free);

  if (value != NULL && value[0] != '\0')
    {
      g_auto (GStrv) words = NULL;
      g_autofree char *program = NULL;

      if (g_shell_parse_argv (value, NULL, &words, NULL))
        program = g_find_program_in_path (words[0]);
      if (program == NULL)
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE,
                       _ ("%s is \"%s\", which is no program that can be run"), variable, value);
          g_ptr_array_unref (command);
          return NULL;
        }
      g_ptr_array_add (command, g_steal_pointer (&program));
      for (guint i = 1; words[i] != NULL; i++)
        g_ptr_array_add (command, g_strdup (words[i]));
      return command;
    }
  for (const char *const *name = is_c ? c_names : cxx_names; *name != NULL; name++)
    {
      char *program = g_find_program_in_path (*name);

      if (program != NULL)
        {
          g_ptr_array_add (command, program);
          return command;
        }
    }
  if (access ("/", F_OK) != 0)
    g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, "access: %s", g_strerror (errno));
  else
    g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE,
                 is_c ? _ ("no C compiler (cc, gcc, clang): install one, or name it in CC")
                      : _ ("no C++ compiler (c++, g++, clang++): install one, or name it in CXX"));
  g_ptr_array_unref (command);
  return NULL;
}

/* Who is asked whether what this thread waits for is wanted. */
static _Thread_local struct
{
  gboolean (*is_wanted) (gpointer data); /* NULL: nobody */
  gpointer data;
} asked;

void
pto_compiler_ask_while_waiting (gboolean (*is_wanted) (gpointer data), gpointer data)
{
  asked.is_wanted = is_wanted;
  asked.data = data;
}

gboolean
pto_compiler_wait (struct pto_command *const *processes, guint n, GCancellable *cancellable,
                   int cancel_fd, GError **error)
{
  pto_commands_wait (processes, n, cancel_fd, asked.is_wanted != NULL ? ASK_MS : -1);
  if (pto_error_set_if_cancelled (cancellable, error))
    return FALSE;
  if (asked.is_wanted == NULL || asked.is_wanted (asked.data))
    return TRUE;
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED,
                       _ ("compiling was cancelled with the task that needs it"));
  return FALSE;
}

char *
pto_compiler_dup_complaints (const struct pto_command *process)
{
  const struct pto_output *complaints = &process->complaints;

  return g_strchomp (
      g_utf8_make_valid (complaints->n > 0 ? complaints->data : "", (gssize) complaints->n));
}

gboolean
pto_compiler_could_be_run (const struct pto_command *process)
{
  return process->status != 126 && process->status != 127;
}

/* What characters are made of stays. */
char **
pto_compiler_get_environment (void)
{
  char **environment = g_get_environ ();
  g_autofree char *all = g_strdup (g_environ_getenv (environment, "LC_ALL"));

  if (all != NULL && *all != '\0')
    environment = g_environ_setenv (environment, "LC_CTYPE", all, TRUE);
  environment = g_environ_unsetenv (environment, "LC_ALL");
  environment = g_environ_unsetenv (environment, "LANGUAGE");
  return g_environ_setenv (environment, "LC_MESSAGES", "C", TRUE);
}

/* --- asked, and remembered --- */

/* Its answer on standard output is in process, which the caller ends. FALSE: it was cancelled, or
 * is no program. */
static gboolean
ask (struct pto_command *process, GPtrArray *command, guint n_words, const char *const *more,
     GCancellable *cancellable, int cancel_fd, GError **error)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_auto (GStrv) environment = pto_compiler_get_environment ();
  struct pto_report report = { 0 };

  for (guint i = 0; i < n_words; i++)
    g_ptr_array_add (argv, g_ptr_array_index (command, i));
  for (; *more != NULL; more++)
    g_ptr_array_add (argv, (gpointer) *more);
  g_ptr_array_add (argv, NULL);
  if (pto_command_begin (
          process,
          &(struct pto_command_config){ .argv = (const char *const *) argv->pdata,
                                        .environment = (const char *const *) environment,
                                        .wants_output = true },
          &report)
      != PTO_OK)
    {
      pto_error_set_from_report (error, PTO_STATUS_SYSTEM, &report);
      return FALSE;
    }
  while (!process->over)
    if (!pto_compiler_wait (&process, 1, cancellable, cancel_fd, error))
      return FALSE;
  return TRUE;
}

static char *
ask_for_version (GPtrArray *command, GCancellable *cancellable, int cancel_fd, GError **error)
{
  static const char *const words[] = { "--version", NULL };
  struct pto_command process = { 0 };
  char *version = NULL;

  if (ask (&process, command, command->len, words, cancellable, cancel_fd, error))
    {
      if (pto_compiler_could_be_run (&process))
        version = g_strndup (process.output.data, process.output.n);
      else
        {
          g_autofree char *why = pto_compiler_dup_complaints (&process);

          g_set_error (error, PTO_ERROR, PTO_ERROR_COMPILE,
                       _ ("the compiler %s can not be run: %s"),
                       (const char *) g_ptr_array_index (command, 0), why);
        }
    }
  pto_command_end (&process);
  return version;
}

/* What was asked: question -> answer; lives as long as the process. PTO_LOCK_COMPILERS */
static GHashTable *answers;

static char *
find_answer (const char *question)
{
  char *answer = NULL;

  pto_lock (PTO_LOCK_COMPILERS);
  if (answers != NULL)
    answer = g_strdup (g_hash_table_lookup (answers, question));
  pto_unlock (PTO_LOCK_COMPILERS);
  return answer;
}

static void
keep_answer (const char *question, const char *answer)
{
  pto_lock (PTO_LOCK_COMPILERS);
  if (answers == NULL)
    answers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  if (!g_hash_table_contains (answers, question))
    g_hash_table_insert (answers, g_strdup (question), g_strdup (answer));
  pto_unlock (PTO_LOCK_COMPILERS);
}

char *
pto_compiler_identify (GPtrArray *command, GCancellable *cancellable, int cancel_fd, GError **error)
{
  /* program, words, size, time */
  g_autoptr (GString) question = g_string_new (NULL);
  g_autofree char *version = NULL;
  char *identity;
  GStatBuf status;

  for (guint i = 0; i < command->len; i++)
    {
      g_string_append (question, g_ptr_array_index (command, i));
      g_string_append_c (question, '\n');
    }
  if (g_stat (g_ptr_array_index (command, 0), &status) == 0)
    g_string_append_printf (question, "%" G_GINT64_FORMAT " %" G_GINT64_FORMAT ".%09ld\n",
                            (gint64) status.st_size, (gint64) status.st_mtim.tv_sec,
                            (long) status.st_mtim.tv_nsec);

  identity = find_answer (question->str);
  if (identity != NULL)
    return identity;
  version = ask_for_version (command, cancellable, cancel_fd, error);
  if (version == NULL)
    return NULL;
  identity = g_strconcat (question->str, version, NULL);
  keep_answer (question->str, identity);
  return identity;
}

char *
pto_compiler_resolve_native (GPtrArray *command, guint n_words, const char *identity,
                             const char *const *flags, GCancellable *cancellable, int cancel_fd)
{
  g_autofree char *joined = g_strjoinv (" ", (char **) flags);
  g_autofree char *question = g_strconcat (joined, "\n", identity, NULL);
  g_autofree char *answer = find_answer (question);
  g_autoptr (GPtrArray) words = g_ptr_array_new ();
  struct pto_command process = { 0 };

  if (answer == NULL)
    {
      for (; *flags != NULL; flags++)
        g_ptr_array_add (words, (gpointer) *flags);
      for (const char *const *word = (const char *const[]){ "-dM", "-E", "-xc", "/dev/null", NULL };
           *word != NULL; word++)
        g_ptr_array_add (words, (gpointer) *word);
      g_ptr_array_add (words, NULL);
      if (ask (&process, command, n_words, (const char *const *) words->pdata, cancellable,
               cancel_fd, NULL))
        {
          gboolean is_known = process.status == 0 && process.output.n > 0 && !process.output.lost;

          answer = is_known ? g_strndup (process.output.data, process.output.n) : g_strdup ("");
          keep_answer (question, answer);
        }
      pto_command_end (&process);
    }
  return answer != NULL && answer[0] != '\0' ? g_steal_pointer (&answer) : NULL;
}

/**
 * pto_dup_compiler:
 * @source: (type filename): the name of a C (`.c`) or C++ (`.cc`, `.cpp`, `.cxx`) source
 * @error: where to say why there is none
 *
 * Finds the compiler that builds a source: the one named by `CC` or `CXX`, or the system's.
 *
 * Fails with %PTO_ERROR_COMPILE. Thread safety: any thread.
 *
 * Returns: (transfer full): a program and its first arguments, as a shell would read them
 *
 * Since: 0.1
 */
char *
pto_dup_compiler (const char *source, GError **error)
{
  g_autoptr (GPtrArray) command = NULL;
  GString *text;

  g_return_val_if_fail (source != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  command = pto_compiler_find (g_str_has_suffix (source, ".c"), error);
  if (command == NULL)
    return NULL;
  text = g_string_new (NULL);
  for (guint i = 0; i < command->len; i++)
    {
      const char *word = g_ptr_array_index (command, i);
      g_autofree char *quoted
          = strpbrk (word, " \t\n'\"\\$`") != NULL ? g_shell_quote (word) : g_strdup (word);

      g_string_append_printf (text, "%s%s", i > 0 ? " " : "", quoted);
    }
  return g_string_free (text, FALSE);
}
