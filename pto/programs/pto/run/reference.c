/* reference.c: which arguments does a case have, and what is expected of its outputs?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The reference is a shared object with two functions. What it asks of the program comes through
 * the table of struct PTO2CaseOps; whatever goes wrong there is remembered, the first error wins.
 */
#include "config.h"

#include "reference.h"
#include "tool.h"

#include <dlfcn.h>
#include <fenv.h>
#include <errno.h>
#include <glib/gi18n.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/nearest-word.h" /* after what defines _() */

typedef int (*ReferenceFunc) (PTO2Case *c);

struct _Reference
{
  PTO2Case base; /* first: the reference sees this alone */
  Manifest *manifest;
  const ManifestCase *item;
  GPtrArray *arguments; /* ReferenceArgument */
  GHashTable *read;     /* names of keys */
  GPtrArray *texts;     /* what text() gave away */
  char *error;
  gboolean computing;
  void *module;
};

static Reference *
from_case (PTO2Case *c)
{
  return (Reference *) c;
}

/* NULL, always. */
G_GNUC_PRINTF (2, 3)
static gpointer
refuse (Reference *reference, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  if (reference->error == NULL)
    reference->error = g_strdup_vprintf (format, args);
  va_end (args);
  return NULL;
}

static char *
read_key (Reference *reference, const char *key)
{
  g_hash_table_add (reference->read, g_strdup (key));
  return manifest_dup_value (reference->manifest, reference->item, key);
}

static int64_t
case_integer (PTO2Case *c, const char *key, int64_t fallback)
{
  Reference *reference = from_case (c);
  g_autofree char *text = read_key (reference, key);
  gint64 value;

  if (text == NULL)
    return fallback;
  if (!g_ascii_string_to_signed (text, 10, G_MININT64, G_MAXINT64, &value, NULL))
    {
      refuse (reference, _ ("%s=%s: a whole number wanted"), key, text);
      return fallback;
    }
  return value;
}

static double
case_real (PTO2Case *c, const char *key, double fallback)
{
  Reference *reference = from_case (c);
  g_autofree char *text = read_key (reference, key);
  double value;
  char *end;

  if (text == NULL)
    return fallback;
  errno = 0;
  value = g_ascii_strtod (text, &end);
  if (end == text || *end != '\0' || errno != 0)
    {
      refuse (reference, _ ("%s=%s: a number wanted"), key, text);
      return fallback;
    }
  return value;
}

static const char *
case_text (PTO2Case *c, const char *key)
{
  Reference *reference = from_case (c);
  char *text = read_key (reference, key);

  if (text != NULL)
    g_ptr_array_add (reference->texts, text);
  return text;
}

static ReferenceArgument *
find_argument (Reference *reference, const char *name)
{
  for (guint i = 0; i < reference->arguments->len; i++)
    {
      ReferenceArgument *argument = g_ptr_array_index (reference->arguments, i);

      if (strcmp (argument->name, name) == 0)
        return argument;
    }
  return NULL;
}

/* A new argument, or NULL when it can not be: the reason is remembered. */
static ReferenceArgument *
add_argument (Reference *reference, const char *name)
{
  ReferenceArgument *argument;

  if (reference->computing)
    return refuse (reference, _ ("pto_reference_compute() adds the argument \"%s\""), name);
  if (find_argument (reference, name) != NULL)
    return refuse (reference, _ ("the argument \"%s\" is there twice"), name);
  argument = g_new0 (ReferenceArgument, 1);
  argument->name = g_strdup (name);
  g_ptr_array_add (reference->arguments, argument);
  return argument;
}

static void *
case_array (PTO2Case *c, const char *name, DataType dtype, uint32_t ndims, const uint64_t shape[],
            bool output)
{
  Reference *reference = from_case (c);
  guint64 element = pto_dtype_size (dtype);
  guint64 count = 1;
  ReferenceArgument *argument;

  if (element == 0)
    return refuse (reference, _ ("array \"%s\": %u is no type of an element"), name, (guint) dtype);
  if (ndims < 1 || ndims > PTO2_TENSOR_MAX_DIMS)
    return refuse (reference, _ ("array \"%s\": %u dimensions, 1 to %u wanted"), name, ndims,
                   (guint) PTO2_TENSOR_MAX_DIMS);
  for (guint i = 0; i < ndims; i++)
    if (shape[i] == 0 || !g_uint64_checked_mul (&count, count, shape[i]))
      count = 0;
  if (count == 0 || !g_uint64_checked_mul (&element, element, count) || element > G_MAXSSIZE)
    return refuse (reference, _ ("array \"%s\": a dimension is 0, or all together are too large"),
                   name);
  argument = add_argument (reference, name);
  if (argument == NULL)
    return NULL;
  argument->dtype = (guint32) dtype;
  argument->n_dims = ndims;
  memcpy (argument->shape, shape, ndims * sizeof (guint64));
  argument->n_elements = count;
  argument->n_bytes = element;
  argument->is_output = output;
  argument->data = calloc (1, element);
  if (argument->data == NULL)
    refuse (reference, _ ("array \"%s\": no memory for %" PRIu64 " bytes"), name, element);
  return argument->data;
}

static void
case_scalar (PTO2Case *c, const char *name, uint64_t value)
{
  ReferenceArgument *argument = add_argument (from_case (c), name);

  if (argument != NULL)
    {
      argument->is_scalar = TRUE;
      argument->value = value;
    }
}

static const void *
case_input (PTO2Case *c, const char *name)
{
  ReferenceArgument *argument = find_argument (from_case (c), name);

  return argument != NULL && !argument->is_scalar
             ? argument->data
             : refuse (from_case (c), _ ("there is no array \"%s\""), name);
}

static void *
case_expected (PTO2Case *c, const char *name)
{
  Reference *reference = from_case (c);
  ReferenceArgument *argument = find_argument (reference, name);

  if (argument == NULL || argument->is_scalar || !argument->is_output)
    return refuse (reference, _ ("there is no output \"%s\""), name);
  if (argument->expected == NULL)
    argument->expected = calloc (1, argument->n_bytes);
  if (argument->expected == NULL)
    refuse (reference, _ ("array \"%s\": no memory for %" PRIu64 " bytes"), name,
            argument->n_bytes);
  return argument->expected;
}

static void
case_fail (PTO2Case *c, const char *message)
{
  refuse (from_case (c), "%s", message);
}

static const PTO2CaseOps case_ops = {
  .size = sizeof (PTO2CaseOps),
  .integer = case_integer,
  .real = case_real,
  .text = case_text,
  .array = case_array,
  .scalar = case_scalar,
  .input = case_input,
  .expected = case_expected,
  .fail = case_fail,
};

static void
argument_free (gpointer data)
{
  ReferenceArgument *argument = data;

  g_free (argument->name);
  free (argument->data);
  free (argument->expected);
  g_free (argument);
}

void
reference_free (Reference *reference)
{
  g_ptr_array_unref (reference->arguments);
  g_ptr_array_unref (reference->texts);
  g_hash_table_unref (reference->read);
  g_free (reference->error);
  /* The object stays loaded: threads of it may still run. */
  g_free (reference);
}

typedef struct
{
  ReferenceFunc function;
  PTO2Case *c;
  int status;
} Call;

static void
call_function (gpointer data)
{
  Call *call = data;

  call->status = call->function (call->c);
}

/* Calls one of the two functions of the reference. */
static gboolean
call (Reference *reference, const char *symbol, GError **error)
{
  g_autoptr (GError) local = NULL;
  ReferenceFunc function;
  Call data;

  *(void **) &function = dlsym (reference->module, symbol);
  if (function == NULL)
    return tool_fail (error, _ ("%s: [reference]: %s does not define %s()"),
                      reference->manifest->file, reference->manifest->reference, symbol);
  data = (Call){ function, &reference->base, 0 };
  if (!pto_call_foreign (reference->module, call_function, &data, &local))
    return tool_fail (error, _ ("%s: case \"%s\": %s: %s() %s"), reference->manifest->file,
                      reference->item->name, reference->manifest->reference, symbol,
                      local->message);
  if (data.status != 0)
    refuse (reference, _ ("%s() gave %d and no reason"), symbol, data.status);
  if (reference->error == NULL)
    return TRUE;
  return tool_fail (error, _ ("%s: case \"%s\": %s"), reference->manifest->file,
                    reference->item->name, reference->error);
}

Reference *
reference_new (Manifest *manifest, const ManifestCase *item, GError **error)
{
  g_autoptr (Reference) reference = g_new0 (Reference, 1);
  g_autoptr (GError) local = NULL;
  g_autofree char *object = NULL;
  fenv_t environment;
  guint outputs = 0;

  reference->base.ops = &case_ops;
  reference->manifest = manifest;
  reference->item = item;
  reference->arguments = g_ptr_array_new_with_free_func (argument_free);
  reference->texts = g_ptr_array_new_with_free_func (g_free);
  reference->read = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  object = pto_compile_shared_object (manifest->reference, tool_get_cancellable (), &local);
  if (object == NULL)
    {
      tool_fail (error, "%s: [reference]: %s", manifest->file, local->message);
      return NULL;
    }
  /* The constructors of a reference that is built with -Ofast are not to change what runs here. */
  fegetenv (&environment);
  reference->module = dlopen (object, RTLD_NOW | RTLD_LOCAL);
  fesetenv (&environment);
  if (reference->module == NULL)
    {
      tool_fail (error, "%s: [reference]: %s", manifest->file, dlerror ());
      return NULL;
    }

  if (!call (reference, "pto_reference_inputs", error))
    return NULL;
  reference->computing = TRUE;
  if (!call (reference, "pto_reference_compute", error))
    return NULL;
  for (guint i = 0; i < reference->arguments->len; i++)
    {
      ReferenceArgument *argument = g_ptr_array_index (reference->arguments, i);

      if (!argument->is_output)
        continue;
      outputs++;
      if (argument->expected == NULL)
        {
          tool_fail (error,
                     _ ("%s: case \"%s\": the reference does not say what to expect of \"%s\""),
                     manifest->file, item->name, argument->name);
          return NULL;
        }
    }
  if (outputs == 0)
    {
      tool_fail (error, _ ("%s: case \"%s\": the reference declares no output"), manifest->file,
                 item->name);
      return NULL;
    }
  return g_steal_pointer (&reference);
}

guint
reference_get_n_arguments (Reference *reference)
{
  return reference->arguments->len;
}

ReferenceArgument *
reference_get_argument (Reference *reference, guint index)
{
  return g_ptr_array_index (reference->arguments, index);
}

/* Not one that workers of another level have. */
static gboolean
is_parameter_of_chips (PtoWorker *chip, const char *name, const char *value)
{
  g_autofree char *own = pto_worker_dup_parameter (chip, name, NULL);

  return pto_worker_set_parameter (chip, name, value, NULL)
         || pto_worker_set_parameter (chip, name, own, NULL);
}

/* What is there already was not meant. */
static void
try_key (const Reference *reference, const char *key, struct pto_nearest *nearest)
{
  if (!g_key_file_has_key (reference->manifest->keys, reference->item->group, key, NULL))
    pto_nearest_try (nearest, key);
}

/* "rtoll (did you mean "rtol"?)" */
static void
append_unread (Reference *reference, const char *key, GString *list)
{
  g_autoptr (PtoWorker) chip = pto_worker_new (2, NULL, NULL);
  g_autofree char *value = manifest_dup_value (reference->manifest, reference->item, key);
  g_auto (GStrv) parameters = pto_worker_list_parameters ();
  struct pto_nearest nearest = { .word = key };
  GHashTableIter iter;
  gpointer read;

  if (list->len > 0)
    g_string_append (list, ", ");
  try_key (reference, "title", &nearest);
  for (guint i = 0; manifest_tolerance_keys[i] != NULL; i++)
    try_key (reference, manifest_tolerance_keys[i], &nearest);
  for (guint i = 0; chip != NULL && parameters[i] != NULL; i++)
    if (is_parameter_of_chips (chip, parameters[i], value))
      try_key (reference, parameters[i], &nearest);
  g_hash_table_iter_init (&iter, reference->read);
  while (g_hash_table_iter_next (&iter, &read, NULL))
    try_key (reference, read, &nearest);
  if (nearest.found != NULL)
    g_string_append_printf (list, _ ("%s (did you mean \"%s\"?)"), key, nearest.found);
  else
    g_string_append (list, key);
}

char *
reference_list_unread_keys (Reference *reference)
{
  g_auto (GStrv) keys
      = g_key_file_get_keys (reference->manifest->keys, reference->item->group, NULL, NULL);
  g_auto (GStrv) parameters = pto_worker_list_parameters ();
  GString *list = g_string_new (NULL);

  for (guint i = 0; keys != NULL && keys[i] != NULL; i++)
    {
      /* A title in another language is title[de]. */
      if (strcmp (keys[i], "title") == 0 || g_str_has_prefix (keys[i], "title[")
          || g_strv_contains (manifest_tolerance_keys, keys[i])
          || g_strv_contains ((const char *const *) parameters, keys[i])
          || g_hash_table_contains (reference->read, keys[i]))
        continue;
      append_unread (reference, keys[i], list);
    }
  return g_string_free (list, list->len == 0);
}
