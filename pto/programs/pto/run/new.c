/* new.c: how does an example begin?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "new.h"
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
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_TROUBLE, _ ("%s: can not be made: %s"), directory,
                   g_strerror (errno));
      return FALSE;
    }
  if (!g_file_test (directory, G_FILE_TEST_IS_DIR))
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_TROUBLE,
                   _ ("%s: it is no directory: name one that is empty or not there yet"),
                   directory);
      return FALSE;
    }
  dir = g_dir_open (directory, 0, error);
  if (dir == NULL)
    return FALSE;
  if (g_dir_read_name (dir) == NULL)
    return TRUE;
  g_set_error (error, TOOL_ERROR, TOOL_ERROR_TROUBLE,
               _ ("%s: it is not empty: name one that is empty or not there yet"), directory);
  return FALSE;
}

/* All of them or none. */
static gboolean
write_files (const char *directory, GError **error)
{
  gboolean ok = TRUE;
  guint n = 0;

  while (ok && new_files[n].name != NULL)
    {
      g_autofree char *path = g_build_filename (directory, new_files[n].name, NULL);

      ok = pto_save (path, new_files[n].text, strlen (new_files[n].text), 0666, error);
      n += ok;
    }
  while (!ok && n-- > 0)
    {
      g_autofree char *path = g_build_filename (directory, new_files[n].name, NULL);

      g_unlink (path);
    }
  return ok;
}

static gboolean
tool_new (char **words, GError **error)
{
  g_auto (GStrv) rest = g_strdupv (words);
  g_autoptr (GString) names = g_string_new (NULL);
  g_autofree char *quoted = NULL;
  g_autofree char *text = NULL;
  gboolean was_made;

  if (!tool_parse_options (&tool_new_command, &rest, error))
    return FALSE;
  if (rest[1] == NULL || rest[1][0] == '\0')
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                   _ ("which directory? pto new DIR (see pto help new)"));
      return FALSE;
    }
  if (rest[2] != NULL)
    {
      g_set_error (error, TOOL_ERROR, TOOL_ERROR_USAGE,
                   _ ("one directory at a time, not \"%s\" too"), rest[2]);
      return FALSE;
    }
  if (!open_directory (rest[1], &was_made, error))
    return FALSE;
  if (!write_files (rest[1], error))
    {
      if (was_made)
        g_rmdir (rest[1]);
      return FALSE;
    }
  for (guint i = 0; new_files[i].name != NULL; i++)
    g_string_append_printf (names, " %s", new_files[i].name);
  quoted = g_shell_quote (rest[1]);
  text = g_strdup_printf (
      _ ("%s:%s\nRun it: %s run %s\n"), rest[1], names->str, tool_program (),
      strcspn (rest[1], " '\"\\$&|;<>()*?[]!#~`\t\n") == strlen (rest[1]) ? rest[1] : quoted);
  tool_print (text, FALSE);
  return TRUE;
}

const ToolCommand tool_new_command = {
  .name = "new",
  .purpose = N_ ("write a small example, to begin with"),
  .operands = N_ ("DIR"),
  .summary
  = N_ ("Writes an example into DIR, which is made or is empty: a kernel, an orchestration "
        "of two tasks, a\nreference, and the pto.ini that names them. The manual's "
        "page \"Write your own\" explains them.\npto run DIR runs them."),
  .run = tool_new,
};
