/* imported-function.c: which function of a library, or of an interpreter, is looked up where it
 * runs?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "function.h"

#include "base/error.h"
#include "common/text.h"

#include <string.h>

/**
 * PtoImportedFunction:
 *
 * A SUB function, or an orchestration function of a worker of level 3 or up, that is looked up in
 * the process that runs it: a symbol of a library, or what an interpreter imports.
 *
 * Made by [ctor@Pto.ImportedFunction.new_for_symbol] or [ctor@Pto.ImportedFunction.new]. Source:
 * seed 001 section 2. Thread safety: as [class@Pto.Callable].
 *
 * Since: 0.1
 */
G_DEFINE_FINAL_TYPE (PtoImportedFunction, pto_imported_function, PTO_TYPE_CALLABLE)

static void
pto_imported_function_finalize (GObject *object)
{
  PtoImportedFunction *self = PTO_IMPORTED_FUNCTION (object);

  g_free (self->symbol);
  g_free (self->library);
  g_free (self->import_path);
  G_OBJECT_CLASS (pto_imported_function_parent_class)->finalize (object);
}

static const char *
pto_imported_function_get_origin (PtoCallable *callable)
{
  PtoImportedFunction *self = PTO_IMPORTED_FUNCTION (callable);

  return self->library != NULL ? self->library : self->import_path;
}

static void
pto_imported_function_class_init (PtoImportedFunctionClass *klass)
{
  klass->parent_class.get_origin = pto_imported_function_get_origin;
  G_OBJECT_CLASS (klass)->finalize = pto_imported_function_finalize;
}

static void
pto_imported_function_init (PtoImportedFunction *self)
{
}

static gboolean
check_is_function (PtoCallableKind kind, const char *text, GError **error)
{
  if (kind == PTO_CALLABLE_SUB || kind == PTO_CALLABLE_ORCHESTRATION)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               _ ("\"%s\" can not be %s: those are made from a source or a shared object"), text,
               pto_callable_describe_kind (kind));
  return FALSE;
}

/**
 * pto_imported_function_new_for_symbol: (constructor)
 * @kind: %PTO_CALLABLE_SUB or %PTO_CALLABLE_ORCHESTRATION
 * @library_and_symbol: `library:symbol`: a shared object, by path or by the name that the loader
 * finds it by, and a function that it exports
 * @error: where to say why there is none
 *
 * Names a function of a library: a [callback@Pto.SubFunc] or a [callback@Pto.OrchestrationFunc],
 * called with a `user_data` of %NULL.
 *
 * It is loaded where it runs. A library given by its path (with a `/`) has to be there now, is
 * known by its contents, and is refused by a worker that finds others. Fails with
 * %PTO_ERROR_INVALID_ARGS for another kind or a text of another form, and with
 * %PTO_ERROR_NOT_FOUND. Source: seed 001 section 2. Thread safety: any thread.
 *
 * Returns: (transfer full): a callable
 *
 * Since: 0.1
 */
PtoCallable *
pto_imported_function_new_for_symbol (PtoCallableKind kind, const char *library_and_symbol,
                                      GError **error)
{
  g_autoptr (PtoCallable) callable = NULL;
  const char *colon;
  char *library;

  g_return_val_if_fail (library_and_symbol != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!check_is_function (kind, library_and_symbol, error))
    return NULL;
  colon = strrchr (library_and_symbol, ':');
  if (colon == NULL || colon == library_and_symbol || !pto_callable_is_identifier (colon + 1)
      || (strchr (library_and_symbol, G_DIR_SEPARATOR) == NULL
          && !g_utf8_validate (library_and_symbol, -1, NULL)))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("\"%s\" names no function of a library: write library:symbol, such as "
                      "libm.so.6:cos"),
                   library_and_symbol);
      return NULL;
    }
  callable
      = pto_callable_make (PTO_TYPE_IMPORTED_FUNCTION, kind, PTO_CALLABLE_SOURCE_SYMBOL, colon + 1);
  PTO_IMPORTED_FUNCTION (callable)->symbol = g_strdup (colon + 1);
  library = g_strndup (library_and_symbol, (gsize) (colon - library_and_symbol));
  PTO_IMPORTED_FUNCTION (callable)->library = library;
  if (strchr (library, G_DIR_SEPARATOR) != NULL)
    {
      callable->path = g_canonicalize_filename (library, NULL);
      if (!g_file_test (callable->path, G_FILE_TEST_IS_REGULAR))
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND, _ ("%s: there is no such file"),
                       callable->path);
          return NULL;
        }
    }
  return g_steal_pointer (&callable);
}

/* Names joined by dots, as an interpreter imports them: no blank, no "<lambda>". */
static gboolean
is_dotted (const char *text, gsize size)
{
  gboolean begins = TRUE;

  for (gsize i = 0; i < size; i++)
    {
      gboolean is_dot = text[i] == '.';

      if (is_dot ? begins
                 : (g_ascii_isspace (text[i]) || strchr ("<>:/\\\"'()[]", text[i]) != NULL))
        return FALSE;
      begins = is_dot;
    }
  return !begins;
}

gboolean
pto_callable_check_import_path (const char *path, GError **error)
{
  const char *colon = strchr (path, ':');

  if (colon != NULL && g_utf8_validate (path, -1, NULL) && is_dotted (path, (gsize) (colon - path))
      && is_dotted (colon + 1, strlen (colon + 1)))
    return TRUE;
  g_set_error (
      error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
      _ ("\"%s\" can not be imported: write module:qualname, such as mymodel.steps:reduce"), path);
  return FALSE;
}

/**
 * pto_imported_function_new: (constructor)
 * @kind: %PTO_CALLABLE_SUB or %PTO_CALLABLE_ORCHESTRATION
 * @path: `module:qualname`, such as `mymodel.steps:Layer.reduce`
 * @error: where to say why there is none
 *
 * Names a function that an interpreter imports, in the process that is to run it.
 *
 * That process needs an import function ([method@Pto.Worker.set_import_func]), which the binding
 * of a language sets. Fails with %PTO_ERROR_INVALID_ARGS for another kind or a path of another
 * form; functions within functions and lambdas have no such path. Source: seed 001 section 2.
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a callable
 *
 * Since: 0.1
 */
PtoCallable *
pto_imported_function_new (PtoCallableKind kind, const char *path, GError **error)
{
  PtoCallable *callable;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!check_is_function (kind, path, error) || !pto_callable_check_import_path (path, error))
    return NULL;
  callable = pto_callable_make (PTO_TYPE_IMPORTED_FUNCTION, kind, PTO_CALLABLE_SOURCE_IMPORT,
                                strchr (path, ':') + 1);
  PTO_IMPORTED_FUNCTION (callable)->import_path = g_strdup (path);
  return callable;
}

/**
 * pto_imported_function_get_symbol:
 * @function: a function
 *
 * Gives the name of its function in the library.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): a name; %NULL for an import path
 *
 * Since: 0.1
 */
const char *
pto_imported_function_get_symbol (PtoImportedFunction *function)
{
  g_return_val_if_fail (PTO_IS_IMPORTED_FUNCTION (function), NULL);

  return function->symbol;
}
