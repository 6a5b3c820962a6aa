/* pto-callable-cost.c: how long does a kernel take on the virtual clock?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-callable-private.h"

#include "pto-error-private.h"

#include <math.h>
#include <string.h>

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
 *
 * Since: 0.1
 */
gboolean
pto_callable_set_cost (PtoCallable *kernel, const char *cost, GError **error)
{
  g_autoptr (GArray) points = NULL;
  struct pto_cost parsed;

  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), FALSE);
  g_return_val_if_fail (cost != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (!pto_callable_check_kind (kernel, PTO_CALLABLE_KERNEL, "only a kernel has a cost", error))
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
 * Returns: (transfer none) (nullable): text; %NULL for all others
 *
 * Since: 0.1
 */
const char *
pto_callable_get_cost (PtoCallable *kernel)
{
  g_return_val_if_fail (PTO_IS_CALLABLE (kernel), NULL);

  return kernel->cost_text;
}
