/* costs-table.c: which times does a table of measured ones give?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A .csv file has its columns' names in the first line that is no comment; a .json file is an array
 * of objects, or an object with one as its member "times". Both say the same of a row, and what is
 * wrong is told with its line.
 */
#include "config.h"

#include "costs.h"

#include "base/error.h"
#include "common/save-file.h"
#include "common/text.h"

#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

enum
{
  COLUMN_KERNEL,
  COLUMN_BYTES,
  COLUMN_SHAPE,
  COLUMN_US,
  COLUMN_NS,
  COLUMN_MS,
  N_COLUMNS
};

static const char *const columns[N_COLUMNS] = { "kernel", "bytes", "shape", "us", "ns", "ms" };
static const double scales[N_COLUMNS] = { [COLUMN_US] = 1e3, [COLUMN_NS] = 1, [COLUMN_MS] = 1e6 };

#define BYTE_ORDER_MARK "\xef\xbb\xbf"
static const char known[] = N_ ("kernel, bytes or shape, and us, ns or ms");

typedef struct
{
  char *kernel;
  guint64 bytes;
  double ns;
} Row;

typedef struct
{
  guint line;
  GArray *rows; /* Row */
} Table;

static void
row_clear (gpointer data)
{
  g_free (((Row *) data)->kernel);
}

/* --- a row --- */

/* "float32[4x128x128]" */
static gboolean
parse_tensor (const char *text, guint64 *bytes)
{
  const char *open = strchr (text, '[');
  g_autofree char *name = open != NULL ? g_strndup (text, (gsize) (open - text)) : NULL;
  const char *at = open;
  guint dtype = 0;

  while (name != NULL && dtype < PTO_DTYPE_COUNT
         && strcmp (name, pto_dtype_name ((DataType) dtype)) != 0)
    dtype++;
  if (name == NULL || dtype == PTO_DTYPE_COUNT)
    return FALSE;
  *bytes = pto_dtype_size (dtype);
  do
    {
      char *end;
      guint64 extent;

      at++;
      if (!g_ascii_isdigit (*at))
        return FALSE;
      extent = g_ascii_strtoull (at, &end, 10);
      if (extent == 0 || !g_uint64_checked_mul (bytes, *bytes, extent))
        return FALSE;
      at = end;
    }
  while (*at == 'x');
  return strcmp (at, "]") == 0;
}

static gboolean
parse_shape (const char *text, guint64 *bytes, GError **error)
{
  g_auto (GStrv) tensors = g_strsplit_set (text, " \t", -1);

  *bytes = 0;
  for (guint i = 0; tensors[i] != NULL; i++)
    {
      guint64 more;

      if (tensors[i][0] == '\0')
        continue;
      if (!parse_tensor (tensors[i], &more) || !g_uint64_checked_add (bytes, *bytes, more))
        return pto_refuse (
            error, PTO_ERROR_INVALID_ARGS,
            _ ("shape \"%s\": \"%s\" is no tensor: float32[128x128] wanted, apart by "
               "spaces"),
            text, tensors[i]);
    }
  return TRUE;
}

static gboolean
parse_time (guint column, const char *text, double *ns, GError **error)
{
  char *end;
  double number = g_ascii_strtod (text, &end);
  /* Not in base 16, nor a word. */
  gboolean good = end != text && *end == '\0' && text[strspn (text, "0123456789.eE+-")] == '\0';

  *ns = number * scales[column];
  return (good && pto_costs_is_time (*ns))
         || pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                        good && *ns > 0
                            ? _ ("%s \"%s\": it is longer than 1e15 ns (11 days), the longest that "
                                 "a kernel takes")
                            : _ ("%s \"%s\": a time above 0 wanted"),
                        columns[column], text);
}

/* values: of each column, or NULL. */
static gboolean
add_row (Table *table, const char *const *values, GError **error)
{
  Row row = { .bytes = PTO_COSTS_NO_SIZE };
  guint n_times = 0;

  if (values[COLUMN_KERNEL] == NULL || values[COLUMN_KERNEL][0] == '\0')
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("it names no kernel"));
  for (guint c = COLUMN_US; c < N_COLUMNS; c++)
    if (values[c] != NULL)
      {
        if (!parse_time (c, values[c], &row.ns, error))
          return FALSE;
        n_times++;
      }
  if (n_times != 1)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("kernel \"%s\": %s: one of us, ns and ms wanted"), values[COLUMN_KERNEL],
                       n_times == 0 ? _ ("no time") : _ ("more than one time"));
  if (values[COLUMN_BYTES] != NULL && values[COLUMN_SHAPE] != NULL)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("kernel \"%s\": bytes and a shape: one of them wanted"),
                       values[COLUMN_KERNEL]);
  if (values[COLUMN_BYTES] != NULL
      && !g_ascii_string_to_unsigned (values[COLUMN_BYTES], 10, 0, G_MAXINT64, &row.bytes, NULL))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("bytes \"%s\": a number of bytes wanted"),
                       values[COLUMN_BYTES]);
  if (values[COLUMN_SHAPE] != NULL && !parse_shape (values[COLUMN_SHAPE], &row.bytes, error))
    return FALSE;
  row.kernel = g_strdup (values[COLUMN_KERNEL]);
  g_array_append_val (table->rows, row);
  return TRUE;
}

static guint
find_column (const char *name)
{
  guint c = 0;

  while (c < N_COLUMNS && strcmp (name, columns[c]) != 0)
    c++;
  return c;
}

/* --- .csv --- */

/* Fields of a line: apart by commas, with quotes around those that have some. NULL: a quote is not
 * closed. */
static GPtrArray *
split_line (const char *line)
{
  g_autoptr (GPtrArray) fields = g_ptr_array_new_with_free_func (g_free);
  const char *at = line;

  for (;;)
    {
      GString *field = g_string_new (NULL);
      gboolean quoted;

      while (*at == ' ' || *at == '\t')
        at++;
      quoted = *at == '"';
      at += quoted;
      while (*at != '\0' && (quoted ? *at != '"' || at[1] == '"' : *at != ','))
        {
          at += quoted && *at == '"';
          g_string_append_c (field, *at++);
        }
      g_ptr_array_add (fields, g_string_free (field, FALSE));
      if (quoted && *at++ != '"')
        return NULL;
      while (*at == ' ' || *at == '\t')
        at++;
      if (!quoted)
        g_strchomp (g_ptr_array_index (fields, fields->len - 1));
      if (*at == '\0')
        return g_steal_pointer (&fields);
      if (*at++ != ',')
        return NULL;
    }
}

static gboolean
read_head (const GPtrArray *fields, guint *order, GError **error)
{
  gboolean has[N_COLUMNS] = { FALSE };

  for (guint i = 0; i < fields->len; i++)
    {
      const char *name = g_ptr_array_index (fields, i);
      guint column = find_column (name);

      if (column == N_COLUMNS)
        return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("unknown column \"%s\" (known: %s)"),
                           name, _ (known));
      if (has[column])
        return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("two columns \"%s\""), name);
      has[column] = TRUE;
      order[i] = column;
    }
  if (!has[COLUMN_KERNEL])
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("no column \"kernel\": the first line names the columns: %s"), _ (known));
  if (!has[COLUMN_US] && !has[COLUMN_NS] && !has[COLUMN_MS])
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("no column of times: us, ns or ms wanted"));
  return TRUE;
}

static gboolean
read_csv (Table *table, const char *text, GError **error)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  guint order[N_COLUMNS];
  guint n_columns = 0;

  for (table->line = 1; lines[table->line - 1] != NULL; table->line++)
    {
      char *line = g_strchomp (lines[table->line - 1]);
      const char *values[N_COLUMNS] = { NULL };
      g_autoptr (GPtrArray) fields = NULL;

      if (line[0] == '\0' || line[0] == '#')
        continue;
      fields = split_line (line);
      if (fields == NULL)
        return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                           _ ("a quote that is not closed, or something behind it"));
      if (n_columns == 0)
        {
          if (fields->len > N_COLUMNS)
            return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("%u columns (known: %s)"),
                               fields->len, _ (known));
          if (!read_head (fields, order, error))
            return FALSE;
          n_columns = fields->len;
          continue;
        }
      if (fields->len != n_columns)
        return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                           P_ ("%u field, but there are %u columns",
                               "%u fields, but there are %u columns", fields->len),
                           fields->len, n_columns);
      for (guint i = 0; i < n_columns; i++)
        {
          const char *value = g_ptr_array_index (fields, i);

          values[order[i]] = value[0] != '\0' ? value : NULL;
        }
      if (!add_row (table, values, error))
        return FALSE;
    }
  return TRUE;
}

/* --- .json --- */

/* Of each object, where it ends. */
static void
note_line (JsonParser *parser, JsonObject *object, gpointer data)
{
  g_hash_table_insert (data, object, GUINT_TO_POINTER (json_parser_get_current_line (parser)));
}

static gboolean
read_member (const char *name, JsonNode *node, char **value, GError **error)
{
  GType type = json_node_get_value_type (node);
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];

  if (find_column (name) == N_COLUMNS)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("unknown member \"%s\" (known: %s)"), name,
                       _ (known));
  if (JSON_NODE_HOLDS_VALUE (node) && type == G_TYPE_STRING)
    *value = g_strdup (json_node_get_string (node));
  else if (JSON_NODE_HOLDS_VALUE (node) && type == G_TYPE_INT64)
    *value = g_strdup_printf ("%" G_GINT64_FORMAT, json_node_get_int (node));
  else if (JSON_NODE_HOLDS_VALUE (node) && type == G_TYPE_DOUBLE)
    *value = g_strdup (g_ascii_dtostr (buffer, sizeof buffer, json_node_get_double (node)));
  else
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("\"%s\": a text or a number wanted"),
                       name);
  return TRUE;
}

static gboolean
read_object (Table *table, JsonObject *object, GError **error)
{
  g_autoptr (GList) members = json_object_get_members (object);
  char *values[N_COLUMNS] = { NULL };
  gboolean good = TRUE;

  for (GList *l = members; good && l != NULL; l = l->next)
    {
      guint column = find_column (l->data);

      good = read_member (l->data, json_object_get_member (object, l->data),
                          column < N_COLUMNS ? &values[column] : NULL, error);
    }
  good = good && add_row (table, (const char *const *) values, error);
  for (guint c = 0; c < N_COLUMNS; c++)
    g_free (values[c]);
  return good;
}

static gboolean
read_json (Table *table, const char *text, gsize length, GError **error)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autoptr (GHashTable) lines = g_hash_table_new (NULL, NULL);
  g_autoptr (GError) local = NULL;
  JsonNode *root;

  g_signal_connect (parser, "object-end", G_CALLBACK (note_line), lines);
  table->line = 1;
  if (!json_parser_load_from_data (parser, text, (gssize) length, &local))
    {
      /* "<data>:LINE:COLUMN: what"; the parser itself has forgotten where it was. */
      sscanf (local->message, "%*[^:]:%u:", &table->line);
      return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("it is not JSON"));
    }
  root = json_parser_get_root (parser);
  if (root != NULL && JSON_NODE_HOLDS_OBJECT (root)
      && json_object_has_member (json_node_get_object (root), "times"))
    root = json_object_get_member (json_node_get_object (root), "times");
  if (root == NULL || !JSON_NODE_HOLDS_ARRAY (root))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("an array of objects wanted, each with %s"), _ (known));
  for (guint i = 0; i < json_array_get_length (json_node_get_array (root)); i++)
    {
      JsonNode *node = json_array_get_element (json_node_get_array (root), i);

      if (!JSON_NODE_HOLDS_OBJECT (node))
        return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("element %u is no object"), i);
      table->line = GPOINTER_TO_UINT (g_hash_table_lookup (lines, json_node_get_object (node)));
      if (!read_object (table, json_node_get_object (node), error))
        return FALSE;
    }
  return TRUE;
}

gboolean
pto_costs_read_table (PtoCosts *self, const char *path, GError **error)
{
  g_autofree char *lower = g_ascii_strdown (path, -1);
  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (Row));
  g_autoptr (GError) local = NULL;
  g_autofree char *text = NULL;
  Table table = { .rows = rows };
  GPtrArray *kernels;
  gsize begin = 0;
  gsize length;

  g_array_set_clear_func (rows, row_clear);
  if (!g_file_get_contents (path, &text, &length, &local))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND, _ ("%s: can not be read: %s"), path,
                   pto_save_explain_read (local));
      return FALSE;
    }
  if (!g_utf8_validate (text, (gssize) length, NULL))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("%s: it is not text of UTF-8"), path);
  /* What some programs begin a text of UTF-8 with. */
  if (g_str_has_prefix (text, BYTE_ORDER_MARK))
    begin = strlen (BYTE_ORDER_MARK);
  if (!(g_str_has_suffix (lower, ".json") ? read_json (&table, text + begin, length - begin, error)
                                          : read_csv (&table, text + begin, error)))
    {
      g_prefix_error (error, "%s:%u: ", path, table.line);
      return FALSE;
    }
  if (rows->len == 0)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("%s: there is no time in it"), path);
  kernels = pto_costs_new_list ();
  for (guint i = 0; i < rows->len; i++)
    {
      Row *row = &g_array_index (rows, Row, i);

      pto_costs_list_add (kernels, row->kernel, PTO_CLOCK_CHIP, row->bytes, &row->ns, 1, 1);
    }
  pto_costs_add_source (self, path, pto_costs_make_digest (text, length), kernels);
  return TRUE;
}
