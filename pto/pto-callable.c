/* pto-callable.c: what can a worker run: a kernel, or an orchestration with its kernels?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-callable-private.h"

#include "pto-enums.h"
#include "pto-error.h"

#include <math.h>
#include <string.h>

#define DEFAULT_ENTRY "aicpu_orchestration_entry"
#define DEFAULT_KERNEL "kernel_entry"
#define DEFAULT_COST "linear:1000:0.05"

/**
 * PtoCallable:
 *
 * Something a worker can run: a kernel, or an orchestration together with the kernels that it
 * submits.
 *
 * It names a C or C++ source, or a shared object that is built already. Nothing is compiled before
 * a worker needs it: [method@Pto.Worker.register] builds and loads it. What is changed in a
 * callable afterwards has no effect on workers that have it.
 *
 * Source: seed 001 section 2, seed 000 section 11. Thread safety: one thread at a time. A fork
 * copies the object.
 */
G_DEFINE_FINAL_TYPE (PtoCallable, pto_callable, G_TYPE_OBJECT)

static void
clear_chip_kernel (gpointer data)
{
  PtoChipKernel *kernel = data;

  g_free (kernel->name);
  g_object_unref (kernel->kernel);
}

static void
pto_callable_finalize (GObject *object)
{
  PtoCallable *self = PTO_CALLABLE (object);

  g_free (self->path);
  g_free (self->symbol);
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
  G_OBJECT_CLASS (klass)->finalize = pto_callable_finalize;
}

static void
pto_callable_init (PtoCallable *self)
{
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
  /* A symbol becomes part of a C source. */
  for (const char *p = symbol; *p != '\0'; p++)
    if (!(g_ascii_isalpha (*p) || *p == '_' || (p != symbol && g_ascii_isdigit (*p))))
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     "%s: \"%s\" is no name of a function", path, symbol);
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

static gboolean
check_kind (PtoCallable *callable, PtoCallableKind kind, const char *what, GError **error)
{
  if (callable->kind == kind)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "%s is %s: %s", callable->path,
               callable->kind == PTO_CALLABLE_KERNEL ? "a kernel" : "an orchestration", what);
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

  if (!check_kind (chip, PTO_CALLABLE_CHIP, "only an orchestration has kernels", error)
      || !check_kind (kernel, PTO_CALLABLE_KERNEL, "it can not be submitted as a kernel", error))
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
  entry.name = g_strdup (name != NULL && name[0] != '\0' ? name : kernel->name);
  entry.kernel = g_object_ref (kernel);
  g_array_insert_val (chip->kernels, i, entry);
  return TRUE;
}

/* A number that is not negative, up to an end character. */
static gboolean
parse_number (const char **text, double *value)
{
  char *end;

  if (!g_ascii_isdigit (**text) && **text != '.')
    return FALSE;
  *value = g_ascii_strtod (*text, &end);
  if (end == *text || !isfinite (*value) || *value < 0)
    return FALSE;
  *text = end;
  return TRUE;
}

static gboolean
parse_bytes (const char **text, guint64 *value)
{
  char *end;

  if (!g_ascii_isdigit (**text))
    return FALSE;
  *value = g_ascii_strtoull (*text, &end, 10);
  if (*value == G_MAXUINT64)
    return FALSE;
  *text = end;
  return TRUE;
}

static gboolean
parse_table (const char *text, GArray *points)
{
  for (;;)
    {
      struct pto_cost_point point;

      if (!parse_bytes (&text, &point.bytes) || *text++ != ':' || !parse_number (&text, &point.ns))
        return FALSE;
      if (points->len > 0
          && point.bytes <= g_array_index (points, struct pto_cost_point, points->len - 1).bytes)
        return FALSE;
      g_array_append_val (points, point);
      if (*text == '\0')
        return TRUE;
      if (*text++ != ',')
        return FALSE;
    }
}

static gboolean
parse_cost (const char *text, struct pto_cost *cost, GArray *points)
{
  memset (cost, 0, sizeof *cost);
  if (strcmp (text, "measure") == 0)
    {
      cost->model = PTO_COST_MEASURE;
      return TRUE;
    }
  if (g_str_has_prefix (text, "constant:"))
    {
      text += strlen ("constant:");
      cost->model = PTO_COST_LINEAR;
      return parse_number (&text, &cost->base_ns) && *text == '\0';
    }
  if (g_str_has_prefix (text, "linear:"))
    {
      text += strlen ("linear:");
      cost->model = PTO_COST_LINEAR;
      return parse_number (&text, &cost->base_ns) && *text++ == ':'
             && parse_number (&text, &cost->ns_per_byte) && *text == '\0';
    }
  if (g_str_has_prefix (text, "table:"))
    {
      cost->model = PTO_COST_TABLE;
      return parse_table (text + strlen ("table:"), points);
    }
  return FALSE;
}

/**
 * pto_callable_set_cost:
 * @kernel: a kernel
 * @cost: `constant:NS`, `linear:NS:NS-PER-BYTE`, `table:BYTES:NS,BYTES:NS,...` with ascending
 * bytes, or `measure`
 * @error: where to say why not
 *
 * Sets how long the kernel takes on the virtual clock of the back end `det`.
 *
 * Bytes are those of all tensor arguments together; a table is linear between its points. With
 * `measure` it takes what it takes here, and two runs differ. The default is `linear:1000:0.05`.
 * Fails with %PTO_ERROR_INVALID_ARGS. Thread safety: one thread at a time.
 *
 * Returns: %TRUE if it was set
 */
gboolean
pto_callable_set_cost (PtoCallable *kernel, const char *cost, GError **error)
{
  g_autoptr (GArray) points = NULL;
  struct pto_cost parsed;

  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), FALSE);
  g_return_val_if_fail (cost != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_kind (kernel, PTO_CALLABLE_KERNEL, "only a kernel has a cost", error))
    return FALSE;
  points = g_array_new (FALSE, FALSE, sizeof (struct pto_cost_point));
  if (!parse_cost (cost, &parsed, points))
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          "kernel \"%s\": \"%s\" is no cost: write constant:NS, linear:NS:NS-PER-BYTE, measure, or "
          "table:BYTES:NS,BYTES:NS with ascending bytes",
          kernel->name, cost);
      return FALSE;
    }
  kernel->cost = parsed;
  g_clear_pointer (&kernel->cost_points, g_array_unref);
  if (points->len > 0)
    kernel->cost_points = g_steal_pointer (&points);
  g_free (kernel->cost_text);
  kernel->cost_text = g_strdup (cost);
  return TRUE;
}

struct pto_cost
pto_callable_dup_cost (PtoCallable *kernel, struct pto_cost_point **points)
{
  struct pto_cost cost = kernel->cost;

  *points = NULL;
  if (kernel->cost_points != NULL)
    {
      cost.n_points = kernel->cost_points->len;
      *points
          = g_memdup2 (kernel->cost_points->data, sizeof (struct pto_cost_point) * cost.n_points);
      cost.points = *points;
    }
  return cost;
}

/**
 * pto_callable_get_cost:
 * @kernel: a callable
 *
 * Gives how long the kernel takes on the virtual clock, as it was set.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none) (nullable): text; %NULL for an orchestration
 */
const char *
pto_callable_get_cost (PtoCallable *kernel)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), NULL);

  return kernel->cost_text;
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
 * refused.
 *
 * Fails with %PTO_ERROR_INVALID_ARGS. Thread safety: one thread at a time.
 *
 * Returns: %TRUE if it was set
 */
gboolean
pto_callable_set_signature (PtoCallable *kernel, const PtoDirection *directions, gsize n_directions,
                            GError **error)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), FALSE);
  g_return_val_if_fail (directions != NULL || n_directions == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!check_kind (kernel, PTO_CALLABLE_KERNEL, "only a kernel has a signature", error))
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
 */
const PtoDirection *
pto_callable_get_signature (PtoCallable *kernel, gsize *n_directions)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), NULL);
  g_return_val_if_fail (n_directions != NULL, NULL);

  *n_directions = kernel->signature != NULL ? kernel->signature->len : 0;
  return kernel->signature != NULL ? (const PtoDirection *) (gpointer) kernel->signature->data
                                   : NULL;
}

/**
 * pto_callable_get_kind:
 * @callable: a callable
 *
 * Asks what it is.
 *
 * Thread safety: any thread.
 *
 * Returns: kernel or orchestration
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
 * Returns: a type of core; %PTO_CORE_AIC for an orchestration
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
 * Returns: (transfer none) (type filename): an absolute path
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
 * Returns: (transfer none): a name
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
 * Gives what messages and traces call it; at first the file's name without its suffix.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none): a name
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
 */
void
pto_callable_set_name (PtoCallable *callable, const char *name)
{
  char *copy;

  g_return_if_fail (PTO_IS_CALLABLE (callable));
  g_return_if_fail (name != NULL);

  copy = g_strdup (name);
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
 */
const char *
pto_callable_get_kernel_name (PtoCallable *chip, guint func_id)
{
  PtoChipKernel *kernel;

  g_return_val_if_fail (PTO_IS_CALLABLE (chip), NULL);

  kernel = find_kernel (chip, func_id);
  return kernel != NULL ? kernel->name : NULL;
}
