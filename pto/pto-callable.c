/* pto-callable.c: what can a worker run: a kernel, an orchestration with its kernels, or a
 * function?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-callable-private.h"

#include "pto-error-private.h"
#include "pto-override-private.h"

#include <string.h>

#define DEFAULT_ENTRY "aicpu_orchestration_entry"
#define DEFAULT_KERNEL "kernel_entry"
#define DEFAULT_COST "linear:1000:0.05"

/**
 * PtoCallable:
 *
 * Something a worker can run: a kernel, an orchestration for a chip together with the kernels that
 * it submits, or, on workers of level 3 and up, a function.
 *
 * A kernel and an orchestration for a chip name a C or C++ source, or a shared object that is built
 * already. Nothing is compiled before a worker needs it: [method@Pto.Worker.register] builds and
 * loads it. What is changed in a callable afterwards has no effect on workers that have it.
 *
 * A function for a SUB worker or for a worker of level 3 and up is a function of this process, a
 * symbol of a library, or a path that an interpreter imports. The last two are looked up in the
 * process that runs them.
 *
 * Source: seed 001 section 2, seed 000 section 11. Thread safety: one thread at a time. A fork
 * copies the object: the copy can be called, and what was given to be destroyed with it is
 * destroyed only in the process that made it.
 *
 * Since: 0.1
 */
G_DEFINE_FINAL_TYPE_WITH_CODE (PtoCallable, pto_callable, G_TYPE_OBJECT, pto_override_look ())

static void
clear_chip_kernel (gpointer data)
{
  PtoChipKernel *kernel = data;

  g_free (kernel->name);
  g_object_unref (kernel->kernel);
}

static void
pto_callable_dispose (GObject *object)
{
  PtoCallable *self = PTO_CALLABLE (object);

  if (self->source == PTO_CALLABLE_SOURCE_CLOSURE)
    pto_callable_hide_closure (self);
  G_OBJECT_CLASS (pto_callable_parent_class)->dispose (object);
}

static void
pto_callable_finalize (GObject *object)
{
  PtoCallable *self = PTO_CALLABLE (object);

  if (self->source == PTO_CALLABLE_SOURCE_CLOSURE)
    pto_callable_destroy_closure (self);
  g_clear_pointer (&self->context, g_main_context_unref);
  g_clear_pointer (&self->owner, g_thread_unref);
  g_free (self->path);
  g_free (self->symbol);
  g_free (self->library);
  g_free (self->import_path);
  g_free (self->name);
  g_free (self->cost_text);
  g_clear_pointer (&self->cost_points, g_array_unref);
  g_clear_pointer (&self->signature, g_array_unref);
  g_clear_pointer (&self->kernels, g_array_unref);
  G_OBJECT_CLASS (pto_callable_parent_class)->finalize (object);
}

static void
pto_callable_class_init (PtoCallableClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = pto_callable_dispose;
  G_OBJECT_CLASS (klass)->finalize = pto_callable_finalize;
}

static void
pto_callable_init (PtoCallable *self)
{
  static gsize serials; /* atomic */

  self->serial = (guint64) g_atomic_pointer_add (&serials, 1) + 1;
}

/* Also what may become part of a C source. */
static gboolean
is_identifier (const char *text)
{
  if (!g_ascii_isalpha (*text) && *text != '_')
    return FALSE;
  while (g_ascii_isalnum (*text) || *text == '_')
    text++;
  return *text == '\0';
}

static PtoCallable *
callable_new (PtoCallableKind kind, const char *path, const char *symbol, GError **error)
{
  g_autoptr (PtoCallable) callable = g_object_new (PTO_TYPE_CALLABLE, NULL);
  g_autofree char *name = NULL;
  char *dot;

  callable->kind = kind;
  callable->path = g_canonicalize_filename (path, NULL);
  callable->symbol = g_strdup (symbol);
  name = g_path_get_basename (callable->path);
  dot = strrchr (name, '.');
  if (dot != NULL && dot != name)
    *dot = '\0';
  callable->name = g_utf8_make_valid (name, -1);
  if (!pto_compiler_find_language (callable->path, &callable->language, error))
    return NULL;
  if (!is_identifier (symbol))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "%s: \"%s\" is no name of a function",
                   path, symbol);
      return NULL;
    }
  return g_steal_pointer (&callable);
}

/**
 * pto_callable_new_kernel: (constructor)
 * @core_type: the type of core that runs it
 * @path: (type filename): a C (`.c`) or C++ (`.cc`, `.cpp`, `.cxx`) source, or a shared object
 * (`.so`)
 * @symbol: (nullable): the function that is the kernel; `kernel_entry` when %NULL
 * @error: where to say why there is none
 *
 * Names a kernel: a function `void kernel_entry (int64_t *args)` with C linkage.
 *
 * Fails with %PTO_ERROR_NOT_FOUND (no such file), %PTO_ERROR_NOT_SUPPORTED (no such kind of file),
 * %PTO_ERROR_LOAD (no shared object for this machine) or %PTO_ERROR_INVALID_ARGS. A source is
 * compiled by the worker. Source: seed 000 section 11. Thread safety: any thread.
 *
 * Returns: (transfer full): a kernel
 *
 * Since: 0.1
 */
PtoCallable *
pto_callable_new_kernel (PtoCoreType core_type, const char *path, const char *symbol,
                         GError **error)
{
  PtoCallable *callable;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if ((guint) core_type >= PTO_N_CORE_TYPES)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "%s: %d is no type of core: it is 0 (AIC) or 1 (AIV)", path, (int) core_type);
      return NULL;
    }
  callable = callable_new (PTO_CALLABLE_KERNEL, path,
                           symbol != NULL && symbol[0] != '\0' ? symbol : DEFAULT_KERNEL, error);
  if (callable == NULL)
    return NULL;
  callable->core_type = core_type;
  if (!pto_callable_set_cost (callable, DEFAULT_COST, error))
    g_clear_object (&callable);
  return callable;
}

/**
 * pto_callable_new_chip: (constructor)
 * @path: (type filename): the orchestration: a C (`.c`) or C++ (`.cc`, `.cpp`, `.cxx`) source, or a
 * shared object (`.so`)
 * @function: (nullable): its entry; `aicpu_orchestration_entry` when %NULL
 * @error: where to say why there is none
 *
 * Names an orchestration for one chip; its kernels are added with [method@Pto.Callable.add_kernel].
 *
 * Fails like [ctor@Pto.Callable.new_kernel]. Source: seed 000 section 11, seed 003. Thread safety:
 * any thread.
 *
 * Returns: (transfer full): an orchestration
 *
 * Since: 0.1
 */
PtoCallable *
pto_callable_new_chip (const char *path, const char *function, GError **error)
{
  PtoCallable *callable;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  callable
      = callable_new (PTO_CALLABLE_CHIP, path,
                      function != NULL && function[0] != '\0' ? function : DEFAULT_ENTRY, error);
  if (callable == NULL)
    return NULL;
  callable->kernels = g_array_new (FALSE, FALSE, sizeof (PtoChipKernel));
  g_array_set_clear_func (callable->kernels, clear_chip_kernel);
  return callable;
}

const char *
pto_callable_describe_kind (PtoCallableKind kind)
{
  static const char *const names[]
      = { "a kernel", "an orchestration for a chip", "a function for a SUB worker",
          "an orchestration for a worker of level 3 or up" };

  return (guint) kind < G_N_ELEMENTS (names) ? names[kind] : "nothing known";
}

static gboolean
check_is_function (PtoCallableKind kind, const char *text, GError **error)
{
  if (kind == PTO_CALLABLE_SUB || kind == PTO_CALLABLE_ORCHESTRATION)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               "\"%s\" can not be %s: those are made from a source or a shared object", text,
               pto_callable_describe_kind (kind));
  return FALSE;
}

/**
 * pto_callable_new_symbol: (constructor)
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
pto_callable_new_symbol (PtoCallableKind kind, const char *library_and_symbol, GError **error)
{
  g_autoptr (PtoCallable) callable = NULL;
  const char *colon;

  g_return_val_if_fail (library_and_symbol != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!check_is_function (kind, library_and_symbol, error))
    return NULL;
  colon = strrchr (library_and_symbol, ':');
  if (colon == NULL || colon == library_and_symbol || !is_identifier (colon + 1)
      || (strchr (library_and_symbol, G_DIR_SEPARATOR) == NULL
          && !g_utf8_validate (library_and_symbol, -1, NULL)))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "\"%s\" names no function of a library: write library:symbol, such as "
                   "libm.so.6:cos",
                   library_and_symbol);
      return NULL;
    }
  callable = g_object_new (PTO_TYPE_CALLABLE, NULL);
  callable->kind = kind;
  callable->source = PTO_CALLABLE_SOURCE_SYMBOL;
  callable->library = g_strndup (library_and_symbol, (gsize) (colon - library_and_symbol));
  callable->symbol = g_strdup (colon + 1);
  callable->name = g_strdup (callable->symbol);
  if (strchr (callable->library, G_DIR_SEPARATOR) != NULL)
    {
      callable->path = g_canonicalize_filename (callable->library, NULL);
      if (!g_file_test (callable->path, G_FILE_TEST_IS_REGULAR))
        {
          g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND, "%s: there is no such file",
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

/**
 * pto_callable_new_import: (constructor)
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
pto_callable_new_import (PtoCallableKind kind, const char *path, GError **error)
{
  PtoCallable *callable;
  const char *colon;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!check_is_function (kind, path, error))
    return NULL;
  colon = strchr (path, ':');
  if (colon == NULL || !g_utf8_validate (path, -1, NULL)
      || !is_dotted (path, (gsize) (colon - path)) || !is_dotted (colon + 1, strlen (colon + 1)))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "\"%s\" can not be imported: write module:qualname, such as "
                   "mymodel.steps:reduce",
                   path);
      return NULL;
    }
  callable = g_object_new (PTO_TYPE_CALLABLE, NULL);
  callable->kind = kind;
  callable->source = PTO_CALLABLE_SOURCE_IMPORT;
  callable->import_path = g_strdup (path);
  callable->name = g_strdup (colon + 1);
  return callable;
}

/**
 * pto_callable_get_source:
 * @callable: a callable
 *
 * Asks where it comes from.
 *
 * Thread safety: any thread.
 *
 * Returns: a source
 *
 * Since: 0.1
 */
PtoCallableSource
pto_callable_get_source (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), PTO_CALLABLE_SOURCE_OBJECT);

  return callable->source;
}

gboolean
pto_callable_check_kind (PtoCallable *callable, PtoCallableKind kind, const char *what,
                         GError **error)
{
  if (callable->kind == kind)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "%s is %s: %s",
               callable->path != NULL ? callable->path : callable->name,
               callable->kind == PTO_CALLABLE_CHIP ? "an orchestration"
                                                   : pto_callable_describe_kind (callable->kind),
               what);
  return FALSE;
}

static PtoChipKernel *
find_kernel (PtoCallable *chip, guint func_id)
{
  if (chip->kernels == NULL)
    return NULL;
  for (guint i = 0; i < chip->kernels->len; i++)
    {
      PtoChipKernel *kernel = &g_array_index (chip->kernels, PtoChipKernel, i);

      if (kernel->func_id == func_id)
        return kernel;
    }
  return NULL;
}

/**
 * pto_callable_add_kernel:
 * @chip: an orchestration
 * @func_id: the number that the orchestration submits it by, 0 to 4095
 * @name: (nullable): what messages and traces call it; the kernel's own name when %NULL
 * @kernel: a kernel
 * @error: where to say why not
 *
 * Gives an orchestration one of its kernels.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS when the number is taken or too large, or when @chip or
 * @kernel is of the other kind. Source: seed 000 section 11. Thread safety: one thread at a time.
 *
 * Returns: %TRUE if it was added
 *
 * Since: 0.1
 */
gboolean
pto_callable_add_kernel (PtoCallable *chip, guint func_id, const char *name, PtoCallable *kernel,
                         GError **error)
{
  PtoChipKernel entry;
  PtoChipKernel *other;
  guint i;

  g_return_val_if_fail (PTO_IS_CALLABLE (chip), FALSE);
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_callable_check_kind (chip, PTO_CALLABLE_CHIP, "only an orchestration has kernels", error)
      || !pto_callable_check_kind (kernel, PTO_CALLABLE_KERNEL,
                                   "it can not be submitted as a kernel", error))
    return FALSE;
  if (func_id >= PTO_MAX_KERNELS)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "%s: function id %u is too large: at most %u", chip->path, func_id,
                   PTO_MAX_KERNELS - 1);
      return FALSE;
    }
  other = find_kernel (chip, func_id);
  if (other != NULL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "%s: function id %u is taken by kernel \"%s\"", chip->path, func_id,
                   other->name);
      return FALSE;
    }
  for (i = 0; i < chip->kernels->len; i++)
    if (g_array_index (chip->kernels, PtoChipKernel, i).func_id > func_id)
      break;
  entry.func_id = func_id;
  entry.name = g_utf8_make_valid (name != NULL && name[0] != '\0' ? name : kernel->name, -1);
  entry.kernel = g_object_ref (kernel);
  g_array_insert_val (chip->kernels, i, entry);
  return TRUE;
}

/**
 * pto_callable_set_signature:
 * @kernel: a kernel
 * @directions: (array length=n_directions) (nullable): the tag of each argument, in order; %NULL:
 * anything goes
 * @n_directions: number of arguments
 * @error: where to say why not
 *
 * Says which arguments the kernel takes; a submit from an orchestration function with others is
 * refused. An orchestration in C is held to their number, see [method@Pto.Callable.set_n_args].
 *
 * Fails with %PTO_ERROR_INVALID_ARGS. Thread safety: one thread at a time.
 *
 * Returns: %TRUE if it was set
 *
 * Since: 0.1
 */
gboolean
pto_callable_set_signature (PtoCallable *kernel, const PtoDirection *directions, gsize n_directions,
                            GError **error)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), FALSE);
  g_return_val_if_fail (directions != NULL || n_directions == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_callable_check_kind (kernel, PTO_CALLABLE_KERNEL, "only a kernel has a signature",
                                error))
    return FALSE;
  for (gsize i = 0; i < n_directions; i++)
    if ((guint) directions[i] > PTO_DIRECTION_SCALAR)
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     "kernel \"%s\": argument %" G_GSIZE_FORMAT ": %d is no direction",
                     kernel->name, i, (int) directions[i]);
        return FALSE;
      }
  g_clear_pointer (&kernel->signature, g_array_unref);
  if (directions != NULL)
    {
      kernel->signature
          = g_array_sized_new (FALSE, FALSE, sizeof (PtoDirection), (guint) n_directions);
      g_array_append_vals (kernel->signature, directions, (guint) n_directions);
    }
  return TRUE;
}

/**
 * pto_callable_get_signature:
 * @kernel: a callable
 * @n_directions: (out): number of arguments
 *
 * Gives which arguments the kernel takes.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (array length=n_directions) (transfer none) (nullable): tags in order; %NULL when
 * nothing was said
 *
 * Since: 0.1
 */
const PtoDirection *
pto_callable_get_signature (PtoCallable *kernel, gsize *n_directions)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), NULL);
  g_return_val_if_fail (n_directions != NULL, NULL);

  *n_directions = 0;
  if (kernel->signature == NULL
      || (kernel->signature->len > 0
          && g_array_index (kernel->signature, PtoDirection, 0) == PTO_CALLABLE_ANY_DIRECTION))
    return NULL;
  *n_directions = kernel->signature->len;
  return (const PtoDirection *) (gpointer) kernel->signature->data;
}

/**
 * pto_callable_set_n_args:
 * @kernel: a kernel
 * @n_args: number of arguments, at most 128; -1: any
 * @error: where to say why not
 *
 * Says how many arguments the kernel takes, tensors and scalars together.
 *
 * A kernel has no way to know how many it was given, and reads whatever lies behind them: with
 * this, a submit with another number is refused, from a function and from an orchestration in C,
 * whose run fails. It takes back what [method@Pto.Callable.set_signature] has said, which says more
 * than this. Fails with %PTO_ERROR_INVALID_ARGS.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: %TRUE if it was set
 *
 * Since: 0.1
 */
gboolean
pto_callable_set_n_args (PtoCallable *kernel, int n_args, GError **error)
{
  const PtoDirection any = PTO_CALLABLE_ANY_DIRECTION;

  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_callable_check_kind (kernel, PTO_CALLABLE_KERNEL,
                                "only a kernel has a number of arguments", error))
    return FALSE;
  if (n_args < -1 || n_args > PTO_MAX_KERNEL_ARGS)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "kernel \"%s\" can not take %d arguments: 0 to %d, or -1 for any number",
                   kernel->name, n_args, PTO_MAX_KERNEL_ARGS);
      return FALSE;
    }
  g_clear_pointer (&kernel->signature, g_array_unref);
  if (n_args >= 0)
    kernel->signature = g_array_sized_new (FALSE, FALSE, sizeof any, (guint) n_args);
  for (int i = 0; i < n_args; i++)
    g_array_append_val (kernel->signature, any);
  return TRUE;
}

/**
 * pto_callable_get_n_args:
 * @kernel: a callable
 *
 * Gives how many arguments the kernel takes.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: number of arguments, tensors and scalars together; -1 when nothing was said
 *
 * Since: 0.1
 */
int
pto_callable_get_n_args (PtoCallable *kernel)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), -1);

  return kernel->signature != NULL ? (int) kernel->signature->len : -1;
}

/**
 * pto_callable_get_kind:
 * @callable: a callable
 *
 * Asks what it is.
 *
 * Thread safety: any thread.
 *
 * Returns: a kind
 *
 * Since: 0.1
 */
PtoCallableKind
pto_callable_get_kind (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), PTO_CALLABLE_KERNEL);

  return callable->kind;
}

/**
 * pto_callable_get_core_type:
 * @kernel: a kernel
 *
 * Gives the type of core that runs the kernel.
 *
 * Thread safety: any thread.
 *
 * Returns: a type of core; %PTO_CORE_AIC for all others
 *
 * Since: 0.1
 */
PtoCoreType
pto_callable_get_core_type (PtoCallable *kernel)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), PTO_CORE_AIC);

  return kernel->core_type;
}

/**
 * pto_callable_get_path:
 * @callable: a callable
 *
 * Gives the file it is made from.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (type filename) (nullable): an absolute path; %NULL for a function of
 * this process, an import path, and a library that the loader has to find
 *
 * Since: 0.1
 */
const char *
pto_callable_get_path (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);

  return callable->path;
}

/**
 * pto_callable_get_symbol:
 * @callable: a callable
 *
 * Gives the name of its function in the file.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer none) (nullable): a name; %NULL for a function of this process and an import
 * path
 *
 * Since: 0.1
 */
const char *
pto_callable_get_symbol (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);

  return callable->symbol;
}

/**
 * pto_callable_get_name:
 * @callable: a callable
 *
 * Gives what messages and traces call it; at first the file's name without its suffix, or the
 * function's.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none): a name
 *
 * Since: 0.1
 */
const char *
pto_callable_get_name (PtoCallable *callable)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (callable), NULL);

  return callable->name;
}

/**
 * pto_callable_set_name:
 * @callable: a callable
 * @name: a name
 *
 * Sets what messages and traces call it.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_callable_set_name (PtoCallable *callable, const char *name)
{
  char *copy;

  g_return_if_fail (PTO_IS_CALLABLE (callable));
  g_return_if_fail (name != NULL);

  copy = g_utf8_make_valid (name, -1);
  g_free (callable->name);
  callable->name = copy;
}

/**
 * pto_callable_get_n_kernels:
 * @chip: a callable
 *
 * Gives one more than the largest function id of an orchestration's kernels.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 for an orchestration without kernels and for a kernel
 *
 * Since: 0.1
 */
guint
pto_callable_get_n_kernels (PtoCallable *chip)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (chip), 0);

  if (chip->kernels == NULL || chip->kernels->len == 0)
    return 0;
  return g_array_index (chip->kernels, PtoChipKernel, chip->kernels->len - 1).func_id + 1;
}

/**
 * pto_callable_get_kernel:
 * @chip: a callable
 * @func_id: a function id
 *
 * Gives an orchestration's kernel of a number.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none) (nullable): a kernel; %NULL when the number is not taken
 *
 * Since: 0.1
 */
PtoCallable *
pto_callable_get_kernel (PtoCallable *chip, guint func_id)
{
  PtoChipKernel *kernel;

  g_return_val_if_fail (PTO_IS_CALLABLE (chip), NULL);

  kernel = find_kernel (chip, func_id);
  return kernel != NULL ? kernel->kernel : NULL;
}

/**
 * pto_callable_get_kernel_name:
 * @chip: a callable
 * @func_id: a function id
 *
 * Gives the name of an orchestration's kernel of a number.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none) (nullable): a name; %NULL when the number is not taken
 *
 * Since: 0.1
 */
const char *
pto_callable_get_kernel_name (PtoCallable *chip, guint func_id)
{
  PtoChipKernel *kernel;

  g_return_val_if_fail (PTO_IS_CALLABLE (chip), NULL);

  kernel = find_kernel (chip, func_id);
  return kernel != NULL ? kernel->name : NULL;
}
