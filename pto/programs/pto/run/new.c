/* new.c: how does an example begin?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tool.h"

#include "common/save-file.h"

#include <errno.h>
#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <string.h>

/* What is there is somebody's: only an empty directory is filled. */
static gboolean
open_directory (const char *directory, gboolean *was_made, GError **error)
{
  g_autoptr (GDir) dir = NULL;

  *was_made = g_mkdir (directory, 0777) == 0;
  if (*was_made)
    return TRUE;
  if (errno != EEXIST)
    return tool_fail (error, _ ("%s: can not be made: %s"), directory, g_strerror (errno));
  if (!g_file_test (directory, G_FILE_TEST_IS_DIR))
    return tool_fail (error, _ ("%s: it is no directory: name one that is empty or not there yet"),
                      directory);
  dir = g_dir_open (directory, 0, error);
  if (dir == NULL)
    return FALSE;
  if (g_dir_read_name (dir) == NULL)
    return TRUE;
  return tool_fail (error, _ ("%s: it is not empty: name one that is empty or not there yet"),
                    directory);
}

/* All of them or none. */
static gboolean
write_files (const char *directory, GError **error)
{
  gboolean ok = TRUE;
  guint n = 0;

  while (ok && tool_new_files[n].name != NULL)
    {
      g_autofree char *path = g_build_filename (directory, tool_new_files[n].name, NULL);

      ok = pto_save (path, tool_new_files[n].text, strlen (tool_new_files[n].text), 0666, error);
      n += ok;
    }
  while (!ok && n-- > 0)
    {
      g_autofree char *path = g_build_filename (directory, tool_new_files[n].name, NULL);

      g_unlink (path);
    }
  return ok;
}

static gboolean
tool_new (char **words, GError **error)
{
  g_autoptr (GString) names = g_string_new (NULL);
  g_autofree char *quoted = NULL;
  g_autofree char *text = NULL;
  gboolean was_made;

  if (words[1][0] == '\0')
    return tool_refuse (error, "%s", _ (tool_new_command.missing));
  if (!open_directory (words[1], &was_made, error))
    return FALSE;
  if (!write_files (words[1], error))
    {
      if (was_made)
        g_rmdir (words[1]);
      return FALSE;
    }
  for (guint i = 0; tool_new_files[i].name != NULL; i++)
    g_string_append_printf (names, " %s", tool_new_files[i].name);
  quoted = g_shell_quote (words[1]);
  text = g_strdup_printf (
      _ ("%s:%s\nRun it: %s run %s\n"), words[1], names->str, tool_program (),
      strcspn (words[1], " '\"\\$&|;<>()*?[]!#~`\t\n") == strlen (words[1]) ? words[1] : quoted);
  tool_print (text, FALSE);
  return TRUE;
}

const ToolCommand tool_new_command = {
  .name = "new",
  .purpose = N_ ("write a small example, to begin with"),
  .operands = N_ ("DIR"),
  .missing = N_ ("which directory? pto new DIR (see pto help new)"),
  .summary
  = N_ ("Writes an example into DIR, which is made or is empty: a kernel, an orchestration "
        "of two tasks, a\nreference, and the pto.ini that names them. The manual's "
        "page \"Write your own\" explains them.\npto run DIR runs them."),
  .run = tool_new,
};
