/* device-code.c: what is built for a chip, and with what is it compiled?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/locks.h"
#include "device-code.h"

#include "base/error.h"
#include "common/text.h"

#include <string.h>

/**
 * PtoDeviceCode:
 *
 * What a chip runs: a kernel, or an orchestration with the kernels that it submits. It is made from
 * a C or C++ source, or from a shared object that is built already.
 *
 * A source is compiled with the headers and the flags that are said here, by
 * [method@Pto.DeviceCode.build] or by the first worker that needs it. Functions, which are called
 * on the host, are not compiled, and have none of this.
 *
 * Source: seed 000 section 11. Thread safety: as [class@Pto.Callable].
 *
 * Since: 0.1
 */
G_DEFINE_ABSTRACT_TYPE (PtoDeviceCode, pto_device_code, PTO_TYPE_CALLABLE)

enum
{
  PROP_INCLUDE_DIRS = 1,
  PROP_COMPILER_FLAGS,
  N_PROPERTIES
};

static GParamSpec *properties[N_PROPERTIES];

static const char *
get_name (PtoDeviceCode *self)
{
  return self->parent_instance.name;
}

static const char *
pto_device_code_get_origin (PtoCallable *callable)
{
  PtoDeviceCode *self = PTO_DEVICE_CODE (callable);

  return self->origin != NULL ? self->origin : callable->path;
}

static void
pto_device_code_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  PtoDeviceCode *self = PTO_DEVICE_CODE (object);

  switch (id)
    {
    case PROP_INCLUDE_DIRS:
      g_value_set_boxed (value, self->include_dirs);
      break;
    case PROP_COMPILER_FLAGS:
      g_value_set_boxed (value, self->compiler_flags);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

/* A property has nobody to say why not: what is refused is told, and leaves what was set. */
static void
pto_device_code_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  PtoDeviceCode *self = PTO_DEVICE_CODE (object);
  g_autoptr (GError) error = NULL;

  switch (id)
    {
    case PROP_INCLUDE_DIRS:
      pto_device_code_set_include_dirs (self, g_value_get_boxed (value), &error);
      break;
    case PROP_COMPILER_FLAGS:
      pto_device_code_set_compiler_flags (self, g_value_get_boxed (value), &error);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
  if (error != NULL)
    g_warning ("%s", error->message);
}

static void
pto_device_code_finalize (GObject *object)
{
  PtoDeviceCode *self = PTO_DEVICE_CODE (object);

  g_free (self->origin);
  g_free (self->symbol);
  g_strfreev (self->include_dirs);
  g_strfreev (self->compiler_flags);
  g_clear_pointer (&self->files, pto_source_files_unref);
  G_OBJECT_CLASS (pto_device_code_parent_class)->finalize (object);
}

static void
pto_device_code_class_init (PtoDeviceCodeClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  klass->parent_class.get_origin = pto_device_code_get_origin;
  object_class->get_property = pto_device_code_get_property;
  object_class->set_property = pto_device_code_set_property;
  object_class->finalize = pto_device_code_finalize;

  /**
   * PtoDeviceCode:include-dirs: (getter get_include_dirs)
   *
   * Where the headers are that a source includes. What [method@Pto.DeviceCode.set_include_dirs]
   * refuses is refused with a warning, and leaves what was set.
   *
   * Since: 0.1
   */
  properties[PROP_INCLUDE_DIRS]
      = g_param_spec_boxed ("include-dirs", NULL, NULL, G_TYPE_STRV,
                            G_PARAM_READWRITE | G_PARAM_EXPLICIT_NOTIFY | G_PARAM_STATIC_STRINGS);
  /**
   * PtoDeviceCode:compiler-flags: (getter get_compiler_flags)
   *
   * With which flags of the compiler a source is compiled: those of `CFLAGS` of one in C, those of
   * `CXXFLAGS` of one in C++, come before these. What [method@Pto.DeviceCode.set_compiler_flags]
   * refuses is refused with a warning, and leaves what was set.
   *
   * Since: 0.1
   */
  properties[PROP_COMPILER_FLAGS]
      = g_param_spec_boxed ("compiler-flags", NULL, NULL, G_TYPE_STRV,
                            G_PARAM_READWRITE | G_PARAM_EXPLICIT_NOTIFY | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPERTIES, properties);
}

static void
pto_device_code_init (PtoDeviceCode *self)
{
}

PtoCallable *
pto_device_code_new_for_file (GType type, PtoCallableKind kind, const char *path,
                              const char *symbol, GError **error)
{
  g_autoptr (PtoCallable) callable = NULL;
  g_autofree char *name = g_path_get_basename (path);
  char *dot = strrchr (name, '.');

  if (dot != NULL && dot != name)
    *dot = '\0';
  callable = pto_callable_make (type, kind, PTO_CALLABLE_SOURCE_OBJECT, name);
  callable->path = g_canonicalize_filename (path, NULL);
  PTO_DEVICE_CODE (callable)->symbol = g_strdup (symbol);
  if (!pto_compiler_find_language (callable->path, &PTO_DEVICE_CODE (callable)->language, error))
    return NULL;
  if (!pto_callable_is_identifier (symbol))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("%s: \"%s\" is no name of a function"), path, symbol);
      return NULL;
    }
  return g_steal_pointer (&callable);
}

/**
 * pto_device_code_get_symbol:
 * @code: a kernel, or the orchestration of a chip
 *
 * Gives the name of its function in the file.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none): a name
 *
 * Since: 0.1
 */
const char *
pto_device_code_get_symbol (PtoDeviceCode *code)
{
  g_return_val_if_fail (PTO_IS_DEVICE_CODE (code), NULL);

  return code->symbol;
}

/* Nothing else is compiled. */
static gboolean
check_is_source (PtoDeviceCode *code, GError **error)
{
  if (code->parent_instance.path != NULL && code->language != PTO_LANGUAGE_OBJECT)
    return TRUE;
  pto_error_set (
      error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
      _ ("\"%s\" is not made from a source: there is nothing to compile, and flags for that "
         "have no effect"),
      get_name (code));
  return FALSE;
}

/* NULL for none. The words may be those that it has. */
static void
set_words (PtoDeviceCode *code, char ***place, const char *const *words)
{
  char **set = words != NULL && words[0] != NULL ? g_strdupv ((char **) words) : NULL;
  char **old;

  pto_lock (PTO_LOCK_KERNELS);
  old = *place;
  *place = set;
  code->revision++;
  pto_unlock (PTO_LOCK_KERNELS);
  g_strfreev (old);
}

/**
 * pto_device_code_set_include_dirs:
 * @code: a kernel, or the orchestration of a chip
 * @dirs: (array zero-terminated=1) (element-type filename) (nullable): directories; %NULL: none
 * @error: where to say why not
 *
 * Says where the headers are that a source includes, in the order in which they are looked for:
 * behind the directory of the source itself, before libpto's own headers and those of
 * `PTO_ISA_ROOT`.
 *
 * For the kernels of an orchestration it says nothing: each has its own. Fails with
 * %PTO_ERROR_NOT_FOUND (no such directory) or %PTO_ERROR_INVALID_ARGS (not made from a source).
 * Thread safety: one thread at a time.
 *
 * Returns: %TRUE if it was set
 *
 * Since: 0.1
 */
gboolean
pto_device_code_set_include_dirs (PtoDeviceCode *code, const char *const *dirs, GError **error)
{
  g_autoptr (GPtrArray) found = NULL;

  g_return_val_if_fail (PTO_IS_DEVICE_CODE (code), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_is_source (code, error))
    return FALSE;
  found = g_ptr_array_new_null_terminated (0, g_free, TRUE);
  for (; dirs != NULL && *dirs != NULL; dirs++)
    {
      if (!g_file_test (*dirs, G_FILE_TEST_IS_DIR))
        {
          pto_error_set (error, PTO_ERROR, PTO_ERROR_NOT_FOUND,
                         _ ("\"%s\": %s: there is no such directory to include from"),
                         get_name (code), *dirs);
          return FALSE;
        }
      g_ptr_array_add (found, g_canonicalize_filename (*dirs, NULL));
    }
  set_words (code, &code->include_dirs, (const char *const *) found->pdata);
  g_object_notify_by_pspec (G_OBJECT (code), properties[PROP_INCLUDE_DIRS]);
  return TRUE;
}

/**
 * pto_device_code_get_include_dirs:
 * @code: a kernel, or the orchestration of a chip
 *
 * Gives where the headers are that a source includes, as it was set.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (array zero-terminated=1) (element-type filename) (transfer none) (nullable): absolute
 * paths; %NULL: none
 *
 * Since: 0.1
 */
const char *const *
pto_device_code_get_include_dirs (PtoDeviceCode *code)
{
  g_return_val_if_fail (PTO_IS_DEVICE_CODE (code), NULL);

  return (const char *const *) code->include_dirs;
}

/**
 * pto_device_code_set_compiler_flags:
 * @code: a kernel, or the orchestration of a chip
 * @flags: (array zero-terminated=1) (nullable): flags, one a word, such as `-std=c++20` or
 * `-DTILE=64`; %NULL: none
 * @error: where to say why not
 *
 * Says with which flags of the compiler a source is compiled, behind libpto's own and those that
 * `CFLAGS` (for C) or `CXXFLAGS` (for C++) has: where two contradict each other, the later one
 * holds.
 *
 * libpto's own are `-O2`, `-march=native` unless somebody says `-march` or `-mcpu`, and
 * `-ffp-contract=off`: a kernel computes the same whether a machine could multiply and add at once
 * or not. Where a flag names this machine (`=native`), the object is for machines that are the same
 * to the compiler. For the kernels of an orchestration it says nothing: each has its own. What is
 * compiled with other flags is another object; with flags that name libraries (`-l`, `-L`, `-Wl,`)
 * it is compiled each time. Fails with %PTO_ERROR_INVALID_ARGS for what is no flag, for flags that
 * say what is made or where (such as `-c` and `-o`), and for what is not made from a source. Thread
 * safety: one thread at a time.
 *
 * Returns: %TRUE if it was set
 *
 * Since: 0.1
 */
gboolean
pto_device_code_set_compiler_flags (PtoDeviceCode *code, const char *const *flags, GError **error)
{
  g_autofree char *from = NULL;

  g_return_val_if_fail (PTO_IS_DEVICE_CODE (code), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  from = g_strdup_printf ("\"%s\"", get_name (code));
  if (!check_is_source (code, error) || !pto_compiler_check_flags (flags, from, error))
    return FALSE;
  set_words (code, &code->compiler_flags, flags);
  g_object_notify_by_pspec (G_OBJECT (code), properties[PROP_COMPILER_FLAGS]);
  return TRUE;
}

/**
 * pto_device_code_get_compiler_flags:
 * @code: a kernel, or the orchestration of a chip
 *
 * Gives with which flags a source is compiled, as it was set.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (array zero-terminated=1) (transfer none) (nullable): flags; %NULL: none
 *
 * Since: 0.1
 */
const char *const *
pto_device_code_get_compiler_flags (PtoDeviceCode *code)
{
  g_return_val_if_fail (PTO_IS_DEVICE_CODE (code), NULL);

  return (const char *const *) code->compiler_flags;
}
