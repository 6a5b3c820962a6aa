/* kernel.c: what does a worker know of a kernel, and how long does it take on the virtual
 * clock?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "kernel.h"

#include "base/error.h"
#include "common/text.h"

#include <string.h>

#define DEFAULT_KERNEL "kernel_entry"
#define DEFAULT_COST "linear:1000:0.05"

/**
 * PtoKernel:
 *
 * A kernel: a function that runs on a core of a chip, in a C or C++ source or in a shared object.
 *
 * Made by [ctor@Pto.Kernel.new]. Source: seed 000 section 11. Thread safety: as
 * [class@Pto.Callable].
 *
 * Since: 0.1
 */
G_DEFINE_FINAL_TYPE (PtoKernel, pto_kernel, PTO_TYPE_DEVICE_CODE)

static const char *
get_name (PtoKernel *self)
{
  return PTO_CALLABLE (self)->name;
}

static void
pto_kernel_finalize (GObject *object)
{
  PtoKernel *self = PTO_KERNEL (object);

  pto_kernel_expect_no_more (self);
  g_free (self->cost_text);
  g_clear_pointer (&self->cost_points, g_array_unref);
  g_clear_pointer (&self->signature, g_array_unref);
  G_OBJECT_CLASS (pto_kernel_parent_class)->finalize (object);
}

static void
pto_kernel_class_init (PtoKernelClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_kernel_finalize;
}

static void
pto_kernel_init (PtoKernel *self)
{
}

/**
 * pto_kernel_new: (constructor)
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
 * compiled by the worker: when it is registered, otherwise before the next run of an orchestration
 * function, so that this is no part of the run. Source: seed 000 section 11. Thread safety: any
 * thread.
 *
 * Returns: (transfer full): a kernel
 *
 * Since: 0.1
 */
PtoCallable *
pto_kernel_new (PtoCoreType core_type, const char *path, const char *symbol, GError **error)
{
  PtoCallable *callable;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if ((guint) core_type >= PTO_N_CORE_TYPES)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("%s: %d is no type of core: it is 0 (AIC) or 1 (AIV)"), path,
                   (int) core_type);
      return NULL;
    }
  callable = pto_device_code_new_for_file (
      PTO_TYPE_KERNEL, PTO_CALLABLE_KERNEL, path,
      symbol != NULL && symbol[0] != '\0' ? symbol : DEFAULT_KERNEL, error);
  if (callable == NULL)
    return NULL;
  PTO_KERNEL (callable)->core_type = core_type;
  if (!pto_kernel_set_cost (PTO_KERNEL (callable), DEFAULT_COST, error))
    g_clear_object (&callable);
  else
    pto_kernel_expect (PTO_KERNEL (callable));
  return callable;
}

/**
 * pto_kernel_get_core_type:
 * @kernel: a kernel
 *
 * Gives the type of core that runs the kernel.
 *
 * Thread safety: any thread.
 *
 * Returns: a type of core
 *
 * Since: 0.1
 */
PtoCoreType
pto_kernel_get_core_type (PtoKernel *kernel)
{
  g_return_val_if_fail (PTO_IS_KERNEL (kernel), PTO_CORE_AIC);

  return kernel->core_type;
}

/**
 * pto_kernel_set_signature:
 * @kernel: a kernel
 * @directions: (array length=n_directions) (nullable): the tag of each argument, in order; %NULL:
 * anything goes
 * @n_directions: number of arguments
 * @error: where to say why not
 *
 * Says which arguments the kernel takes; a submit from an orchestration function with others is
 * refused, but that an existing output is an output. An orchestration in C is held to their number,
 * see [method@Pto.Kernel.set_n_args].
 *
 * Fails with %PTO_ERROR_INVALID_ARGS. Thread safety: one thread at a time.
 *
 * Returns: %TRUE if it was set
 *
 * Since: 0.1
 */
gboolean
pto_kernel_set_signature (PtoKernel *kernel, const PtoDirection *directions, gsize n_directions,
                          GError **error)
{
  g_return_val_if_fail (PTO_IS_KERNEL (kernel), FALSE);
  g_return_val_if_fail (directions != NULL || n_directions == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  for (gsize i = 0; i < n_directions; i++)
    if ((guint) directions[i] > PTO_DIRECTION_REDUCTION)
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("kernel \"%s\": argument %zu: %d is no direction"), get_name (kernel), i,
                     (int) directions[i]);
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
 * pto_kernel_get_signature:
 * @kernel: a kernel
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
pto_kernel_get_signature (PtoKernel *kernel, gsize *n_directions)
{
  g_return_val_if_fail (PTO_IS_KERNEL (kernel), NULL);
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
 * pto_kernel_set_n_args:
 * @kernel: a kernel
 * @n_args: number of arguments, at most 128; -1: any
 * @error: where to say why not
 *
 * Says how many arguments the kernel takes, tensors and scalars together.
 *
 * A kernel has no way to know how many it was given, and reads whatever lies behind them: with
 * this, a submit with another number is refused, from a function and from an orchestration in C,
 * whose run fails. It takes back what [method@Pto.Kernel.set_signature] has said, which says more
 * than this. Fails with %PTO_ERROR_INVALID_ARGS.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: %TRUE if it was set
 *
 * Since: 0.1
 */
gboolean
pto_kernel_set_n_args (PtoKernel *kernel, int n_args, GError **error)
{
  const PtoDirection any = PTO_CALLABLE_ANY_DIRECTION;

  g_return_val_if_fail (PTO_IS_KERNEL (kernel), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (n_args < -1 || n_args > PTO_MAX_KERNEL_ARGS)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("kernel \"%s\" can not take %d arguments: 0 to %d, or -1 for any number"),
                   get_name (kernel), n_args, PTO_MAX_KERNEL_ARGS);
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
 * pto_kernel_get_n_args:
 * @kernel: a kernel
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
pto_kernel_get_n_args (PtoKernel *kernel)
{
  g_return_val_if_fail (PTO_IS_KERNEL (kernel), -1);

  return kernel->signature != NULL ? (int) kernel->signature->len : -1;
}

/* What a part of a cost is. */
typedef enum
{
  COST_GOOD,
  COST_WRONG,
  COST_TOO_MUCH
} CostPart;

static const char *const cost_refusals[]
    = { [COST_WRONG] = N_ ("is no cost: write constant:NS, linear:NS:NS-PER-BYTE, measure, or "
                           "table:BYTES:NS,BYTES:NS with ascending bytes"),
        [COST_TOO_MUCH]
        = N_ ("is too much: no number of a cost is greater than 1e15 ns (11 days)") };

/* A number that is not negative, up to an end character. Not in base 16. */
static CostPart
parse_number (const char **text, double *value)
{
  char *end;

  if ((!g_ascii_isdigit (**text) && **text != '.')
      || (**text == '0' && g_ascii_tolower ((*text)[1]) == 'x'))
    return COST_WRONG;
  *value = g_ascii_strtod (*text, &end);
  if (end == *text)
    return COST_WRONG;
  *text = end;
  return *value <= PTO_COST_MOST_NS ? COST_GOOD : COST_TOO_MUCH;
}

/* A number with a character behind it. */
static CostPart
parse_number_and (const char **text, char end, double *value)
{
  CostPart part = parse_number (text, value);

  if (part == COST_WRONG || **text != end)
    return COST_WRONG;
  *text += end != '\0';
  return part;
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

static CostPart
parse_table (const char *text, GArray *points)
{
  CostPart all = COST_GOOD;

  for (;;)
    {
      struct pto_cost_point point;
      CostPart part;

      if (!parse_bytes (&text, &point.bytes) || *text++ != ':'
          || (part = parse_number (&text, &point.ns)) == COST_WRONG)
        return COST_WRONG;
      if (points->len > 0
          && point.bytes <= g_array_index (points, struct pto_cost_point, points->len - 1).bytes)
        return COST_WRONG;
      all = MAX (all, part);
      g_array_append_val (points, point);
      if (*text == '\0')
        return all;
      if (*text++ != ',')
        return COST_WRONG;
    }
}

static CostPart
parse_line (const char *text, struct pto_cost *cost)
{
  CostPart base = parse_number_and (&text, ':', &cost->base_ns);
  CostPart slope = COST_WRONG;

  if (base != COST_WRONG)
    slope = parse_number_and (&text, '\0', &cost->ns_per_byte);
  return base == COST_WRONG || slope == COST_WRONG ? COST_WRONG : MAX (base, slope);
}

static CostPart
parse_cost (const char *text, struct pto_cost *cost, GArray *points)
{
  memset (cost, 0, sizeof *cost);
  if (strcmp (text, "measure") == 0)
    {
      cost->model = PTO_COST_MEASURE;
      return COST_GOOD;
    }
  if (g_str_has_prefix (text, "constant:"))
    {
      text += strlen ("constant:");
      cost->model = PTO_COST_LINEAR;
      return parse_number_and (&text, '\0', &cost->base_ns);
    }
  if (g_str_has_prefix (text, "linear:"))
    {
      cost->model = PTO_COST_LINEAR;
      return parse_line (text + strlen ("linear:"), cost);
    }
  if (g_str_has_prefix (text, "table:"))
    {
      cost->model = PTO_COST_TABLE;
      return parse_table (text + strlen ("table:"), points);
    }
  return COST_WRONG;
}

/**
 * pto_kernel_set_cost:
 * @kernel: a kernel
 * @cost: `constant:NS`, `linear:NS:NS-PER-BYTE`, `table:BYTES:NS,BYTES:NS,...` with ascending
 * bytes, or `measure`
 * @error: where to say why not
 *
 * Sets how long the kernel takes on the virtual clock of the back end `det`.
 *
 * Bytes are those of all tensor arguments together; a table is linear between its points. With
 * `measure` it takes what it takes here, and two runs differ. No number is greater than 1e15, and
 * a run that comes to the end of the virtual clock, at 2^52 ns (52 days), fails. The default is
 * `linear:1000:0.05`.
 * A worker with the parameter `costs` takes what was measured of a kernel of that name instead
 * ([class@Pto.Costs]), where something was. Fails with %PTO_ERROR_INVALID_ARGS. Thread safety: one
 * thread at a time.
 *
 * Returns: %TRUE if it was set
 *
 * Since: 0.1
 */
gboolean
pto_kernel_set_cost (PtoKernel *kernel, const char *cost, GError **error)
{
  g_autofree char *who = NULL;

  g_return_val_if_fail (PTO_IS_KERNEL (kernel), FALSE);
  g_return_val_if_fail (cost != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  who = g_strdup_printf (_ ("kernel \"%s\""), get_name (kernel));
  return pto_kernel_set_cost_of (kernel, who, cost, error);
}

gboolean
pto_kernel_set_cost_of (PtoKernel *kernel, const char *who, const char *cost, GError **error)
{
  g_autoptr (GArray) points = g_array_new (FALSE, FALSE, sizeof (struct pto_cost_point));
  struct pto_cost parsed;
  CostPart part = parse_cost (cost, &parsed, points);

  if (part != COST_GOOD)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS, "%s: \"%s\" %s", who, cost,
                   _ (cost_refusals[part]));
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

gboolean
pto_kernel_parse_cost (const char *text, struct pto_cost *cost, struct pto_cost_point **points,
                       const char **why)
{
  g_autoptr (GArray) array = g_array_new (FALSE, FALSE, sizeof (struct pto_cost_point));
  CostPart part = parse_cost (text, cost, array);

  *points = NULL;
  if (why != NULL)
    *why = part == COST_TOO_MUCH ? _ (cost_refusals[part]) : NULL;
  if (part != COST_GOOD)
    return FALSE;
  if (array->len > 0)
    {
      cost->n_points = array->len;
      cost->points = *points = (struct pto_cost_point *) (void *) g_array_steal (array, NULL);
    }
  return TRUE;
}

struct pto_cost
pto_kernel_dup_cost (PtoKernel *kernel, struct pto_cost_point **points)
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

gboolean
pto_kernel_may_combine (PtoKernel *kernel)
{
  const PtoDirection *expected;
  gsize n = 2;

  if (kernel->signature != NULL && kernel->signature->len != 2)
    return FALSE;
  expected = pto_kernel_get_signature (kernel, &n);
  return expected == NULL
         || (expected[0] == PTO_DIRECTION_INOUT && expected[1] == PTO_DIRECTION_INPUT);
}

gboolean
pto_kernel_check_args (PtoCallable *kernel, const PtoArg *args, guint n_args, GError **error)
{
  const PtoDirection *expected;
  gsize n_expected;

  if (kernel->kind != PTO_CALLABLE_KERNEL)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("\"%s\" is %s: a task runs a kernel"), kernel->name,
                   pto_callable_describe_kind (kernel->kind));
      return FALSE;
    }
  if (PTO_KERNEL (kernel)->signature != NULL && PTO_KERNEL (kernel)->signature->len != n_args)
    {
      g_autofree char *given = g_strdup_printf (P_ ("%u is given", "%u are given", n_args), n_args);

      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   P_ ("kernel \"%s\" takes %u argument, but %s",
                       "kernel \"%s\" takes %u arguments, but %s",
                       PTO_KERNEL (kernel)->signature->len),
                   kernel->name, PTO_KERNEL (kernel)->signature->len, given);
      return FALSE;
    }
  if (n_args > PTO_MAX_KERNEL_ARGS)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   _ ("kernel \"%s\": %u arguments; a task takes at most %d"), kernel->name, n_args,
                   PTO_MAX_KERNEL_ARGS);
      return FALSE;
    }
  expected = pto_kernel_get_signature (PTO_KERNEL (kernel), &n_expected);
  for (guint i = 0; expected != NULL && i < n_args; i++)
    if (!pto_direction_fits (expected[i], args[i].direction))
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                     _ ("kernel \"%s\": argument %u is %s, but %s is given"), kernel->name, i,
                     pto_direction_describe (expected[i]),
                     pto_direction_describe (args[i].direction));
        return FALSE;
      }
  return TRUE;
}

/**
 * pto_kernel_get_cost:
 * @kernel: a kernel
 *
 * Gives how long the kernel takes on the virtual clock, as it was set.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none): text
 *
 * Since: 0.1
 */
const char *
pto_kernel_get_cost (PtoKernel *kernel)
{
  g_return_val_if_fail (PTO_IS_KERNEL (kernel), NULL);

  return kernel->cost_text;
}
