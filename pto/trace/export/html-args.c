/* html-args.c: how does a report say what tasks were given?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tensors and scalars that several tasks were given are there once.
 */
#include "config.h"

#include "html.h"

#include <string.h>

static guint
hash_value (gconstpointer key)
{
  const PtoTraceArg *arg = key;
  guint64 hash = arg->word * 31 + arg->dtype + (arg->type == PTO_PARAM_SCALAR ? 17 : 0);

  for (guint d = 0; d < arg->n_dims; d++)
    hash = (hash ^ arg->shape[d] ^ arg->strides[d] << 20) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  return (guint) (hash ^ hash >> 32);
}

static gboolean
is_same_value (gconstpointer a, gconstpointer b)
{
  const PtoTraceArg *x = a;
  const PtoTraceArg *y = b;

  return x->word == y->word && x->dtype == y->dtype && x->n_dims == y->n_dims
         && (x->type == PTO_PARAM_SCALAR) == (y->type == PTO_PARAM_SCALAR)
         && memcmp (x->shape, y->shape, x->n_dims * sizeof x->shape[0]) == 0
         && memcmp (x->strides, y->strides, x->n_dims * sizeof x->strides[0]) == 0;
}

static gboolean
is_contiguous (const PtoTraceArg *arg)
{
  guint64 step = 1;

  for (guint d = arg->n_dims; d > 0; d--)
    {
      if (arg->shape[d - 1] > 1 && arg->strides[d - 1] != step)
        return FALSE;
      step *= arg->shape[d - 1];
    }
  return TRUE;
}

/* Strides only where they say more than the shape. */
static void
append_dimensions (GString *text, const GPtrArray *values, gboolean is_shape)
{
  pto_html_begin_column (text, is_shape ? "value_shape" : "value_strides");
  for (guint i = 0; i < values->len; i++)
    {
      const PtoTraceArg *value = g_ptr_array_index (values, i);
      const guint64 *dimensions = is_shape ? value->shape : value->strides;

      pto_html_separate (text);
      g_string_append_c (text, '[');
      for (guint d = 0; d < value->n_dims && (is_shape || !is_contiguous (value)); d++)
        pto_html_put (text, (gint64) dimensions[d]);
      g_string_append_c (text, ']');
    }
  pto_html_end_column (text);
}

/* An address, or a scalar, is hexadecimal digits: a number of JavaScript does not hold it. */
static void
append_values (GString *text, const GPtrArray *values)
{
  pto_html_begin_column (text, "value_word");
  for (guint i = 0; i < values->len; i++)
    {
      const PtoTraceArg *value = g_ptr_array_index (values, i);

      pto_html_separate (text);
      g_string_append_printf (text, "\"%" G_GINT64_MODIFIER "x\"", value->word);
    }
  pto_html_end_column (text);
  pto_html_begin_column (text, "value_dtype");
  for (guint i = 0; i < values->len; i++)
    {
      const PtoTraceArg *value = g_ptr_array_index (values, i);

      pto_html_put (text, value->type == PTO_PARAM_SCALAR ? -1 : value->dtype);
    }
  pto_html_end_column (text);
  append_dimensions (text, values, TRUE);
  append_dimensions (text, values, FALSE);
  pto_html_begin_column (text, "dtypes");
  for (guint i = 0; i < PTO_DTYPE_COUNT; i++)
    {
      pto_html_separate (text);
      pto_html_append_string (text, pto_dtype_name ((DataType) i));
    }
  pto_html_end_column (text);
}

/* By task, and of that by index; the task as the difference to the one before. */
void
pto_html_append_arguments (PtoHtmlPage *page)
{
  static const char *const names[] = { "task", "index", "tag", "value" };
  g_autoptr (GHashTable) numbers = g_hash_table_new (hash_value, is_same_value);
  g_autoptr (GPtrArray) values = g_ptr_array_new ();
  PtoHtmlTable *table = pto_html_table_new (names, G_N_ELEMENTS (names));
  guint32 left_out = 0;
  gint64 last = 0;

  for (guint s = 0; s < page->n_sections; s++)
    {
      const PtoTracePart *part = page->sections[s].part;

      for (guint i = 0; i < part->analysis->n_args; i++)
        {
          PtoTraceArg *arg = &part->analysis->args[i];
          gint64 task = part->first_entry + arg->task;
          gpointer number;

          if (!g_hash_table_lookup_extended (numbers, arg, NULL, &number))
            {
              number = GUINT_TO_POINTER (values->len);
              g_hash_table_insert (numbers, arg, number);
              g_ptr_array_add (values, arg);
            }
          pto_html_table_add (table, (const gint64[]){ task - last, arg->index, arg->type,
                                                       GPOINTER_TO_UINT (number) });
          last = task;
        }
    }
  if (table->n_lines == 0)
    left_out = G_MAXUINT32;
  else
    g_string_append_printf (page->text, ",\n\"arguments\":{\"n\":%u", table->n_lines);
  pto_html_table_end (table, page->text, left_out);
  if (left_out != 0)
    return;
  append_values (page->text, values);
  g_string_append_c (page->text, '}');
}
