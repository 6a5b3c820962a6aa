/* key-file.c: what does a file of keys in groups say, and is anything there that nobody means?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GKeyFile takes the last of two equal groups or keys without a word, and ignores keys that nobody
 * asks for. Here both are mistakes: a person who wrote them meant something else.
 */
#include "config.h"

#include "key-file.h"

#include "common/save-file.h"
#include "common/text.h"
#include "error.h"

#include "exec/nearest-word.h"

#include <string.h>

void
pto_manifest_clear (PtoManifest *manifest)
{
  g_free (manifest->file);
  g_clear_pointer (&manifest->keys, g_key_file_unref);
}

gboolean
pto_manifest_fail (const PtoManifest *manifest, PtoError code, GError **error, const char *format,
                   ...)
{
  g_autofree char *message = NULL;
  va_list args;

  va_start (args, format);
  message = g_strdup_vprintf (format, args);
  va_end (args);
  pto_error_set (error, PTO_ERROR, code, "%s: %s", manifest->file, message);
  return FALSE;
}

/* Refuses what GKeyFile would swallow: a group or a key that is there twice. */
static gboolean
check_text (const PtoManifest *manifest, const char *text, GError **error)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autofree char *group = g_strdup ("");

  for (guint i = 0; lines[i] != NULL; i++)
    {
      char *line = g_strstrip (lines[i]);
      char *end;

      if (line[0] == '\0' || line[0] == '#')
        continue;
      if (line[0] == '[' && (end = strchr (line, ']')) != NULL)
        {
          g_free (group);
          group = g_strndup (line, (gsize) (end - line) + 1);
          if (!g_hash_table_add (seen, g_strdup (group)))
            return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                                      _ ("line %u: the group %s is there twice"), i + 1, group);
        }
      else if ((end = strchr (line, '=')) != NULL)
        {
          g_autofree char *key = g_strndup (line, (gsize) (end - line));

          g_strchomp (key);
          if (!g_hash_table_add (seen, g_strdup_printf ("%s%s", group, key)))
            return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                                      _ ("line %u: the key \"%s\" is there twice in %s"), i + 1,
                                      key, group);
        }
    }
  return TRUE;
}

gboolean
pto_manifest_check_keys (const PtoManifest *manifest, const char *group, const char *const *known,
                         GError **error)
{
  g_auto (GStrv) keys = g_key_file_get_keys (manifest->keys, group, NULL, NULL);

  for (guint i = 0; keys != NULL && keys[i] != NULL; i++)
    if (!g_strv_contains (known, keys[i]))
      {
        g_autofree char *list = g_strjoinv (", ", (char **) known);
        struct pto_nearest nearest = { .word = keys[i] };
        char question[200];

        for (guint k = 0; known[k] != NULL; k++)
          if (!g_key_file_has_key (manifest->keys, group, known[k], NULL))
            pto_nearest_try (&nearest, known[k]);
        return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                                  _ ("[%s]: unknown key \"%s\" (known: %s)%s"), group, keys[i],
                                  list, pto_nearest_ask (&nearest, question, sizeof question));
      }
  return TRUE;
}

gboolean
pto_manifest_load (PtoManifest *manifest, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autofree char *text = NULL;
  gsize length;

  if (!g_file_get_contents (manifest->file, &text, &length, &local))
    {
      gboolean is_missing = g_error_matches (local, G_FILE_ERROR, G_FILE_ERROR_NOENT)
                            || g_error_matches (local, G_FILE_ERROR, G_FILE_ERROR_NOTDIR);

      if (is_missing)
        return pto_manifest_fail (manifest, PTO_ERROR_NOT_FOUND, error,
                                  _ ("there is no such file"));
      return pto_manifest_fail (manifest, PTO_ERROR_SYSTEM, error, _ ("can not be read: %s"),
                                pto_save_explain_read (local));
    }
  if (!g_utf8_validate_len (text, length, NULL))
    return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                              _ ("is not a text file in UTF-8"));
  if (!check_text (manifest, text, error))
    return FALSE;
  manifest->keys = g_key_file_new ();
  if (!g_key_file_load_from_data (manifest->keys, text, length, G_KEY_FILE_NONE, &local))
    return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error, "%s", local->message);
  return TRUE;
}

char *
pto_manifest_dup_value (const PtoManifest *manifest, const char *group, const char *key)
{
  char *value = g_key_file_get_string (manifest->keys, group, key, NULL);

  return value != NULL ? g_strstrip (value) : NULL;
}
