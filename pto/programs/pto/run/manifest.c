/* manifest.c: what does an example's pto.ini say?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The library reads the orchestration and the kernels, and has then refused what is there twice and
 * groups that nobody knows. What it passes over is read here.
 */
#include "config.h"

#include "manifest.h"
#include "tool.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <glib/gi18n.h>
#include <string.h>

#include "exec/nearest-word.h" /* after what defines _() */

const char *const manifest_tolerance_keys[]
    = { "rtol", "atol", "equal-nan", "mismatch-share", NULL };

static void
case_free (gpointer data)
{
  ManifestCase *item = data;

  g_free (item->name);
  g_free (item->group);
  g_free (item->title);
  g_ptr_array_unref (item->parameters);
  g_free (item);
}

void
manifest_free (Manifest *manifest)
{
  g_free (manifest->file);
  g_free (manifest->name);
  g_clear_object (&manifest->chip);
  g_free (manifest->reference);
  g_ptr_array_unref (manifest->cases);
  g_free (manifest->default_case);
  g_key_file_unref (manifest->keys);
  g_free (manifest);
}

G_GNUC_PRINTF (3, 4)
static gboolean
fail (Manifest *manifest, GError **error, const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list args;

  va_start (args, format);
  message = g_strdup_vprintf (format, args);
  va_end (args);
  return tool_fail (error, "%s: %s", manifest->file, message);
}

static gboolean
check_keys (Manifest *manifest, const char *group, const char *const *known, GError **error)
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
        return fail (manifest, error, _ ("[%s]: unknown key \"%s\" (known: %s)%s"), group, keys[i],
                     list, pto_nearest_ask (&nearest, question, sizeof question));
      }
  return TRUE;
}

static gboolean
get_required (Manifest *manifest, const char *group, const char *key, char **value, GError **error)
{
  *value = g_key_file_get_string (manifest->keys, group, key, NULL);
  if (*value != NULL)
    g_strstrip (*value);
  if (*value == NULL || (*value)[0] == '\0')
    return fail (manifest, error, _ ("[%s]: the key \"%s\" is missing"), group, key);
  return TRUE;
}

/* Beside the manifest or with an absolute path. */
static gboolean
find_reference (Manifest *manifest, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (manifest->file);
  g_autofree char *source = NULL;

  if (!get_required (manifest, "reference", "source", &source, error))
    return FALSE;
  manifest->reference = g_path_is_absolute (source) ? g_steal_pointer (&source)
                                                    : g_build_filename (directory, source, NULL);
  return g_file_test (manifest->reference, G_FILE_TEST_IS_REGULAR)
         || fail (manifest, error, _ ("[reference]: %s: no such file"), manifest->reference);
}

static gboolean
get_tolerance (Manifest *manifest, const ManifestCase *item, const char *key, double *value,
               GError **error)
{
  g_autofree char *text = manifest_dup_value (manifest, item, key);
  char *end;

  *value = 0;
  if (text == NULL)
    return TRUE;
  errno = 0;
  *value = g_ascii_strtod (text, &end);
  if (end == text || *end != '\0' || errno != 0 || !(*value >= 0) || *value > G_MAXDOUBLE)
    return fail (manifest, error, _ ("case \"%s\": %s=%s: a number that is not negative wanted"),
                 item->name, key, text);
  return TRUE;
}

static gboolean
get_boolean (Manifest *manifest, const ManifestCase *item, const char *key, gboolean *value,
             GError **error)
{
  g_autofree char *text = manifest_dup_value (manifest, item, key);

  *value = text != NULL && strcmp (text, "true") == 0;
  return text == NULL || *value || strcmp (text, "false") == 0
         || fail (manifest, error, _ ("case \"%s\": %s=%s: true or false wanted"), item->name, key,
                  text);
}

static gboolean
load_tolerance (Manifest *manifest, ManifestCase *item, GError **error)
{
  Tolerance *tolerance = &item->tolerance;

  if (!get_tolerance (manifest, item, "rtol", &tolerance->rtol, error)
      || !get_tolerance (manifest, item, "atol", &tolerance->atol, error)
      || !get_boolean (manifest, item, "equal-nan", &tolerance->equal_nan, error)
      || !get_tolerance (manifest, item, "mismatch-share", &tolerance->mismatch_share, error))
    return FALSE;
  return tolerance->mismatch_share <= 1
         || fail (manifest, error,
                  _ ("case \"%s\": mismatch-share=%g: a number from 0 to 1 wanted"), item->name,
                  tolerance->mismatch_share);
}

static gboolean
load_case (Manifest *manifest, const char *group, GError **error)
{
  g_auto (GStrv) parameters = pto_worker_list_parameters ();
  g_auto (GStrv) keys = g_key_file_get_keys (manifest->keys, group, NULL, NULL);
  ManifestCase *item = g_new0 (ManifestCase, 1);

  item->parameters = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (manifest->cases, item);
  item->group = g_strdup (group);
  item->name = g_strstrip (g_strdup (group + strlen ("case ")));
  if (item->name[0] == '\0')
    return fail (manifest, error, _ ("[%s]: a case needs a name"), group);
  item->title = g_key_file_get_locale_string (manifest->keys, group, "title", NULL, NULL);
  if (!load_tolerance (manifest, item, error))
    return FALSE;
  for (guint i = 0; keys != NULL && keys[i] != NULL; i++)
    if (g_strv_contains ((const char *const *) parameters, keys[i]))
      {
        g_ptr_array_add (item->parameters, g_strdup (keys[i]));
        g_ptr_array_add (item->parameters, manifest_dup_value (manifest, item, keys[i]));
      }
  return TRUE;
}

static gboolean
load_groups (Manifest *manifest, GError **error)
{
  static const char *const known_example[] = { "name", "description", "default-case", NULL };
  static const char *const known_reference[] = { "source", NULL };
  static const char *const required[] = { "example", "reference" };
  g_auto (GStrv) groups = g_key_file_get_groups (manifest->keys, NULL);

  for (guint i = 0; i < G_N_ELEMENTS (required); i++)
    if (!g_key_file_has_group (manifest->keys, required[i]))
      return fail (manifest, error,
                   _ ("the group [%s] is missing: a program can use this as a chip callable, pto "
                      "run can not"),
                   required[i]);
  if (!check_keys (manifest, "example", known_example, error)
      || !get_required (manifest, "example", "name", &manifest->name, error)
      || !check_keys (manifest, "reference", known_reference, error)
      || !find_reference (manifest, error))
    return FALSE;
  for (guint i = 0; groups[i] != NULL; i++)
    if (g_str_has_prefix (groups[i], "case ") && !load_case (manifest, groups[i], error))
      return FALSE;
  if (manifest->cases->len == 0)
    return fail (manifest, error, _ ("there is no group [case NAME]"));

  manifest->default_case = g_key_file_get_string (manifest->keys, "example", "default-case", NULL);
  if (manifest->default_case != NULL)
    return manifest_find_case (manifest, NULL, error) != NULL;
  manifest->default_case
      = g_strdup (((const ManifestCase *) g_ptr_array_index (manifest->cases, 0))->name);
  return TRUE;
}

/* `meson devenv -C build` begins in the build directory and says where the sources are: there, an
 * example is also found by its place as seen from where the person stands, or from the sources. */
static char *
find_directory (const char *directory)
{
  const char *places[] = { g_getenv ("PWD"), g_getenv ("PTO_SOURCE_ROOT") };
  g_autofree char *file = g_path_get_basename (directory);

  /* The file that it is named by is as good. */
  if (strcmp (file, "pto.ini") == 0 && g_file_test (directory, G_FILE_TEST_IS_REGULAR))
    return g_path_get_dirname (directory);
  if (places[1] == NULL || g_path_is_absolute (directory)
      || g_file_test (directory, G_FILE_TEST_EXISTS))
    return g_strdup (directory);
  for (gsize i = 0; i < G_N_ELEMENTS (places); i++)
    {
      g_autofree char *there
          = places[i] != NULL ? g_build_filename (places[i], directory, "pto.ini", NULL) : NULL;

      if (there != NULL && g_file_test (there, G_FILE_TEST_EXISTS))
        return g_path_get_dirname (there);
    }
  return g_strdup (directory);
}

/* The script that runs directories with kernel_config.py and golden.py: beside the example, or in
 * the checkout. */
static char *
find_runner (const char *directory)
{
  const char *root = g_getenv ("PTO_SOURCE_ROOT");
  g_autofree char *beside = g_build_filename (directory, "..", "scripts", "run_example.py", NULL);
  g_autofree char *checkout
      = root != NULL ? g_build_filename (root, "examples", "scripts", "run_example.py", NULL)
                     : NULL;

  if (g_file_test (beside, G_FILE_TEST_EXISTS))
    return g_canonicalize_filename (beside, NULL);
  if (checkout != NULL && g_file_test (checkout, G_FILE_TEST_EXISTS))
    return g_steal_pointer (&checkout);
  return g_strdup ("examples/scripts/run_example.py");
}

/* An example without cases is a program, called as its directory is: two-chips/two_chips.py. Or it
 * has Python's layout. */
static char *
describe_missing (const char *directory)
{
  g_autofree char *name = g_path_get_basename (directory);
  g_autofree char *stem = g_build_filename (directory, g_strdelimit (name, "-", '_'), NULL);
  g_autofree char *python = g_strconcat (stem, ".py", NULL);
  g_autofree char *c = g_strconcat (stem, ".c", NULL);
  g_autofree char *kernels = g_build_filename (directory, "kernels", NULL);
  g_autofree char *config = g_build_filename (kernels, "kernel_config.py", NULL);
  g_autofree char *golden = g_build_filename (directory, "golden.py", NULL);
  g_autofree char *runner = NULL;

  if (g_file_test (python, G_FILE_TEST_EXISTS))
    return g_strdup_printf (
        _ ("%s: a program, not an example with cases: there is no file pto.ini; start it with "
           "/usr/bin/python3 %s (where libpto is not installed, put meson devenv -C build "
           "--workdir \"$PWD\" before that)"),
        directory, python);
  if (g_file_test (c, G_FILE_TEST_EXISTS))
    return g_strdup_printf (
        _ ("%s: a program, not an example with cases: there is no file pto.ini; compile it with "
           "cc %s $(pkg-config --cflags --libs pto-1) -lm -o %s, and start that"),
        directory, c, name);
  if (!g_file_test (config, G_FILE_TEST_EXISTS) || !g_file_test (golden, G_FILE_TEST_EXISTS))
    return g_strdup_printf (_ ("%s: no example here: there is no file pto.ini"), directory);
  runner = find_runner (directory);
  return g_strdup_printf (
      _ ("%s: no example with cases: there is no file pto.ini, but kernel_config.py and golden.py; start it with "
         "python3 %s -k %s -g %s -p a2a3sim"),
      directory, runner, kernels, golden);
}

Manifest *
manifest_load (const char *name, GError **error)
{
  g_autoptr (Manifest) manifest = g_new0 (Manifest, 1);
  g_autoptr (GError) local = NULL;
  g_autofree char *directory = find_directory (name);
  GStatBuf status;

  manifest->file = g_build_filename (directory, "pto.ini", NULL);
  manifest->cases = g_ptr_array_new_with_free_func (case_free);
  manifest->keys = g_key_file_new ();

  if (g_stat (directory, &status) != 0)
    {
      if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        tool_fail (error, _ ("%s: no such directory"), directory);
      else
        tool_fail (error, "%s: %s: %s", directory, "stat", g_strerror (errno));
      return NULL;
    }
  if (g_stat (manifest->file, &status) != 0)
    {
      g_autofree char *text = describe_missing (directory);

      tool_fail (error, "%s", text);
      return NULL;
    }
  manifest->chip = pto_chip_orchestration_new_for_directory (directory, error);
  if (manifest->chip == NULL)
    return NULL;
  if (!g_key_file_load_from_file (manifest->keys, manifest->file, G_KEY_FILE_NONE, &local))
    {
      fail (manifest, error, _ ("can not be read: %s"), local->message);
      return NULL;
    }
  if (!load_groups (manifest, error))
    return NULL;
  return g_steal_pointer (&manifest);
}

const ManifestCase *
manifest_find_case (Manifest *manifest, const char *name, GError **error)
{
  const char *wanted = name != NULL ? name : manifest->default_case;
  g_autoptr (GString) list = g_string_new (NULL);

  for (guint i = 0; i < manifest->cases->len; i++)
    {
      const ManifestCase *item = g_ptr_array_index (manifest->cases, i);

      if (strcmp (item->name, wanted) == 0)
        return item;
      g_string_append_printf (list, "%s%s", i > 0 ? ", " : "", item->name);
    }
  if (name != NULL)
    fail (manifest, error, _ ("no case \"%s\" (there are: %s)"), wanted, list->str);
  else
    fail (manifest, error, _ ("[example]: default-case=%s: no such case (there are: %s)"), wanted,
          list->str);
  return NULL;
}

char *
manifest_dup_value (Manifest *manifest, const ManifestCase *item, const char *key)
{
  char *value = g_key_file_get_value (manifest->keys, item->group, key, NULL);

  return value != NULL ? g_strstrip (value) : NULL;
}
