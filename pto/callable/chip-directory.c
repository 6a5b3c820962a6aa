/* chip-directory.c: which orchestration and which kernels does a directory's pto.ini name?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What `pto run` reads there, too, it checks itself.
 */
#include "config.h"

#include "pto-callable.h"

#include "base/error.h"
#include "base/key-file.h"
#include "common/text.h"
#include "callable.h"
#include "chip-orchestration.h"

#include <string.h>

#define MANIFEST "pto.ini"

/* Those of `pto run` are known, and its to read. */
static gboolean
check_groups (const PtoManifest *manifest, GError **error)
{
  static const char *const known[] = { "build", "example", "orchestration", "reference", NULL };
  g_auto (GStrv) groups = g_key_file_get_groups (manifest->keys, NULL);

  for (guint i = 0; groups[i] != NULL; i++)
    if (!g_strv_contains (known, groups[i]) && !g_str_has_prefix (groups[i], "kernel ")
        && !g_str_has_prefix (groups[i], "case "))
      return pto_manifest_fail (
          manifest, PTO_ERROR_INVALID_ARGS, error,
          _ ("unknown group [%s] (known: [orchestration], [kernel NUMBER], [build], and for "
             "pto run [example], [reference], [case NAME])"),
          groups[i]);
  return TRUE;
}

static char *
dup_required (const PtoManifest *manifest, const char *group, const char *key, GError **error)
{
  g_autofree char *value = pto_manifest_dup_value (manifest, group, key);

  if (value != NULL && value[0] != '\0')
    return g_steal_pointer (&value);
  pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error, _ ("[%s]: the key \"%s\" is missing"),
                     group, key);
  return NULL;
}

/* Beside the manifest, or with an absolute path. */
static char *
dup_source (const PtoManifest *manifest, const char *group, GError **error)
{
  g_autofree char *source = dup_required (manifest, group, "source", error);
  g_autofree char *directory = g_path_get_dirname (manifest->file);

  if (source == NULL || g_path_is_absolute (source))
    return g_steal_pointer (&source);
  return g_build_filename (directory, source, NULL);
}

/* Adds the directories that a group says, which stand beside the manifest. The key has two names.
 */
static gboolean
add_dirs (const PtoManifest *manifest, const char *group, GPtrArray *dirs, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (manifest->file);
  gboolean is_short = g_key_file_has_key (manifest->keys, group, "include", NULL);
  g_auto (GStrv) list = g_key_file_get_string_list (
      manifest->keys, group, is_short ? "include" : "include-dirs", NULL, NULL);

  if (is_short && g_key_file_has_key (manifest->keys, group, "include-dirs", NULL))
    return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                              _ ("[%s]: include and include-dirs are the same: one of them"),
                              group);
  for (guint i = 0; list != NULL && list[i] != NULL; i++)
    if (g_strstrip (list[i])[0] != '\0')
      g_ptr_array_add (dirs, g_path_is_absolute (list[i])
                                 ? g_strdup (list[i])
                                 : g_build_filename (directory, list[i], NULL));
  return TRUE;
}

/* Adds the words of a key, which are as in a shell. */
static gboolean
add_flags (const PtoManifest *manifest, const char *group, const char *key, GPtrArray *flags,
           GError **error)
{
  g_autofree char *value = pto_manifest_dup_value (manifest, group, key);
  g_autofree char *from = NULL;
  g_autoptr (GError) local = NULL;
  g_auto (GStrv) words = NULL;

  if (value == NULL || value[0] == '\0')
    return TRUE;
  if (!g_shell_parse_argv (value, NULL, &words, &local))
    return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error, "[%s]: %s=%s: %s", group,
                              key, value, local->message);
  from = g_strdup_printf ("%s: [%s]: %s", manifest->file, group, key);
  if (!pto_compiler_check_flags ((const char *const *) words, from, error))
    return FALSE;
  for (guint i = 0; words[i] != NULL; i++)
    g_ptr_array_add (flags, g_strdup (words[i]));
  return TRUE;
}

/* The key of those flags that a source is compiled with. */
static const char *
get_flags_key (const PtoDeviceCode *code)
{
  return code->language == PTO_LANGUAGE_C ? "cflags" : "cxxflags";
}

/* What a group says of its one source. */
static gboolean
add_own_flags (const PtoManifest *manifest, const char *group, const PtoDeviceCode *code,
               GPtrArray *flags, GError **error)
{
  const char *other = code->language == PTO_LANGUAGE_C ? "cxxflags" : "cflags";

  if (code->language != PTO_LANGUAGE_OBJECT
      && g_key_file_has_key (manifest->keys, group, other, NULL))
    return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                              _ ("[%s]: %s says nothing of %s, which is %s: %s does"), group, other,
                              code->parent_instance.path,
                              code->language == PTO_LANGUAGE_C ? "C" : "C++", get_flags_key (code));
  return add_flags (manifest, group, "cflags", flags, error)
         && add_flags (manifest, group, "cxxflags", flags, error)
         && add_flags (manifest, group, "flags", flags, error);
}

/* How one source is compiled: as the directory says, but what its own group says is stronger. */
static gboolean
set_build (const PtoManifest *manifest, const char *group, PtoDeviceCode *code, GError **error)
{
  g_autoptr (GPtrArray) dirs = g_ptr_array_new_null_terminated (0, g_free, TRUE);
  g_autoptr (GPtrArray) flags = g_ptr_array_new_null_terminated (0, g_free, TRUE);

  if (!add_dirs (manifest, group, dirs, error))
    return FALSE;
  if (code->language != PTO_LANGUAGE_OBJECT
      && (!add_dirs (manifest, "build", dirs, error)
          || !add_flags (manifest, "build", get_flags_key (code), flags, error)))
    return FALSE;
  if (!add_own_flags (manifest, group, code, flags, error))
    return FALSE;
  if ((dirs->len == 0
       || pto_device_code_set_include_dirs (code, (const char *const *) dirs->pdata, error))
      && (flags->len == 0
          || pto_device_code_set_compiler_flags (code, (const char *const *) flags->pdata, error)))
    return TRUE;
  pto_error_prefix (error, "%s: [%s]: ", manifest->file, group);
  return FALSE;
}

static gboolean
get_core (const PtoManifest *manifest, const char *group, PtoCoreType *core_type, GError **error)
{
  g_autofree char *core = dup_required (manifest, group, "core", error);

  if (core == NULL)
    return FALSE;
  *core_type = g_ascii_strcasecmp (core, "aic") == 0 ? PTO_CORE_AIC : PTO_CORE_AIV;
  return *core_type == PTO_CORE_AIC || g_ascii_strcasecmp (core, "aiv") == 0
         || pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                               _ ("[%s]: core=%s: aic or aiv wanted"), group, core);
}

static gboolean
get_n_args (const PtoManifest *manifest, const char *group, int *n_args, GError **error)
{
  g_autofree char *args = pto_manifest_dup_value (manifest, group, "args");
  guint64 number;

  *n_args = -1;
  if (args == NULL)
    return TRUE;
  if (!g_ascii_string_to_unsigned (args, 10, 0, PTO_MAX_KERNEL_ARGS, &number, NULL))
    return pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                              _ ("[%s]: args=%s: a number from 0 to %d wanted"), group, args,
                              PTO_MAX_KERNEL_ARGS);
  *n_args = (int) number;
  return TRUE;
}

static gboolean
get_func_id (const PtoManifest *manifest, const char *group, PtoCallable *chip, guint *func_id,
             GError **error)
{
  guint64 number;
  const char *other;

  if (!g_ascii_string_to_unsigned (group + strlen ("kernel "), 10, 0, G_MAXUINT, &number, NULL))
    return pto_manifest_fail (
        manifest, PTO_ERROR_INVALID_ARGS, error,
        _ ("[%s]: the function id after \"kernel\" must be a number from 0 to %u"), group,
        PTO_MAX_KERNELS - 1);
  *func_id = (guint) number;
  other = pto_chip_orchestration_get_kernel_name (PTO_CHIP_ORCHESTRATION (chip), *func_id);
  return other == NULL
         || pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                               _ ("[%s]: the function id %u is taken by the kernel \"%s\""), group,
                               *func_id, other);
}

static gboolean
add_kernel (const PtoManifest *manifest, const char *group, PtoCallable *chip, GError **error)
{
  static const char *const known[]
      = { "name",         "source", "core",     "cost",  "args", "include",
          "include-dirs", "cflags", "cxxflags", "flags", NULL };
  g_autoptr (PtoCallable) kernel = NULL;
  g_autofree char *name = NULL;
  g_autofree char *source = NULL;
  g_autofree char *cost = NULL;
  g_autofree char *who = NULL;
  PtoCoreType core_type = PTO_CORE_AIV;
  guint func_id = 0;
  int n_args = -1;

  if (!get_func_id (manifest, group, chip, &func_id, error)
      || !pto_manifest_check_keys (manifest, group, known, error)
      || (name = dup_required (manifest, group, "name", error)) == NULL
      || (source = dup_source (manifest, group, error)) == NULL
      || !get_core (manifest, group, &core_type, error)
      || !get_n_args (manifest, group, &n_args, error))
    return FALSE;
  cost = pto_manifest_dup_value (manifest, group, "cost");
  kernel = pto_kernel_new (core_type, source, NULL, error);
  if (kernel != NULL && !set_build (manifest, group, PTO_DEVICE_CODE (kernel), error))
    return FALSE;
  who = g_strdup_printf (_ ("%s: kernel \"%s\""), manifest->file, name);
  if (kernel != NULL && cost != NULL
      && !pto_kernel_set_cost_of (PTO_KERNEL (kernel), who, cost, error))
    return FALSE;
  if (kernel != NULL && pto_kernel_set_n_args (PTO_KERNEL (kernel), n_args, error)
      && pto_chip_orchestration_add_kernel (PTO_CHIP_ORCHESTRATION (chip), func_id, name, kernel,
                                            error))
    return TRUE;
  pto_error_prefix (error, "%s: ", who);
  return FALSE;
}

static PtoCallable *
make_chip (const PtoManifest *manifest, GError **error)
{
  static const char *const known[]
      = { "source", "function", "include", "include-dirs", "cflags", "cxxflags", "flags", NULL };
  static const char *const known_of_build[]
      = { "include", "include-dirs", "cflags", "cxxflags", NULL };
  g_auto (GStrv) groups = g_key_file_get_groups (manifest->keys, NULL);
  g_autoptr (PtoCallable) chip = NULL;
  g_autofree char *source = NULL;
  g_autofree char *function = NULL;

  if (!g_key_file_has_group (manifest->keys, "orchestration"))
    {
      pto_manifest_fail (manifest, PTO_ERROR_INVALID_ARGS, error,
                         _ ("the group [orchestration] is missing"));
      return NULL;
    }
  if (!pto_manifest_check_keys (manifest, "build", known_of_build, error)
      || !pto_manifest_check_keys (manifest, "orchestration", known, error)
      || (source = dup_source (manifest, "orchestration", error)) == NULL)
    return NULL;
  function = pto_manifest_dup_value (manifest, "orchestration", "function");
  chip = pto_chip_orchestration_new (source, function, error);
  if (chip == NULL)
    {
      pto_error_prefix (error, "%s: [orchestration]: ", manifest->file);
      return NULL;
    }
  if (!set_build (manifest, "orchestration", PTO_DEVICE_CODE (chip), error))
    return NULL;
  for (guint i = 0; groups[i] != NULL; i++)
    if (g_str_has_prefix (groups[i], "kernel ") && !add_kernel (manifest, groups[i], chip, error))
      return NULL;
  return g_steal_pointer (&chip);
}

/**
 * pto_chip_orchestration_new_for_directory: (constructor)
 * @directory: (type filename): where a file `pto.ini` is
 * @error: where to say why there is none
 *
 * Names the orchestration for one chip, and all its kernels, that the file `pto.ini` of a directory
 * says: the same file that `pto run` reads.
 *
 * The group `[orchestration]` has the keys `source` and `function` (which may be left out), each
 * group `[kernel NUMBER]` has `name`, `source`, `core` (`aic` or `aiv`), and may have `cost` (see
 * [method@Pto.Kernel.set_cost]) and `args` (see [method@Pto.Kernel.set_n_args]). Both may have
 * `include` (or `include-dirs`; separated by semicolons, see
 * [method@Pto.DeviceCode.set_include_dirs]) and `cflags`, of a source in C++ `cxxflags`, or `flags`
 * of either (as in a shell, see [method@Pto.DeviceCode.set_compiler_flags]); the group `[build]`,
 * with `include`, `cflags` and `cxxflags`, says the same for all of them, and is weaker. Sources
 * and directories are found from the directory. The groups `[example]`, `[reference]` and `[case
 * NAME]` are for `pto run` and are passed over; any other is refused, and so are keys that nobody
 * reads and what is there twice.
 *
 * Fails with %PTO_ERROR_NOT_FOUND (no such file), %PTO_ERROR_INVALID_ARGS, %PTO_ERROR_NOT_SUPPORTED
 * (no such kind of file), %PTO_ERROR_LOAD (no shared object for this machine) or
 * %PTO_ERROR_SYSTEM; the message names file, group or kernel, and key. Nothing is compiled yet.
 * Source: seed 000 section 11. Thread safety: any thread.
 *
 * Returns: (transfer full): an orchestration
 *
 * Since: 0.1
 */
PtoCallable *
pto_chip_orchestration_new_for_directory (const char *directory, GError **error)
{
  g_auto (PtoManifest) manifest = { 0 };

  g_return_val_if_fail (directory != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  manifest.file = g_build_filename (directory, MANIFEST, NULL);
  return pto_manifest_load (&manifest, error) && check_groups (&manifest, error)
             ? make_chip (&manifest, error)
             : NULL;
}
