/* example.c: how is an example made ready to run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A parameter of the runtime is taken from, the later the stronger: the default, the case in the
 * manifest, the environment, the command line.
 */
#include "config.h"

#include "example.h"
#include "terminal.h"
#include "tool.h"

#include <glib/gi18n.h>
#include <string.h>

gboolean
example_is_in_environment (const char *parameter)
{
  const char *variable = pto_worker_get_parameter_variable (parameter);
  g_autofree char *upper = g_ascii_strup (parameter, -1);
  g_autofree char *own = g_strdup_printf ("PTO_%s", g_strdelimit (upper, "-", '_'));

  return (variable != NULL && g_getenv (variable) != NULL) || g_getenv (own) != NULL;
}

gboolean
example_was_set (char **set, const char *parameter)
{
  for (guint i = 0; set != NULL && set[i] != NULL; i++)
    {
      gsize length = strlen (parameter);

      if (strncmp (set[i], parameter, length) == 0 && set[i][length] == '=')
        return TRUE;
    }
  return FALSE;
}

/* option: as it was typed. */
static gboolean
set_option (Example *example, const char *option, const char *name, const char *value,
            GError **error)
{
  g_autoptr (GError) local = NULL;

  return pto_worker_set_parameter (example->worker, name, value, &local)
         || tool_refuse (error, "--%s: %s", option, local->message);
}

gboolean
example_set_option (Example *example, const char *option, const char *value, GError **error)
{
  return value == NULL || set_option (example, option, option, value, error);
}

/* What only the case says: its tolerances, and what its reference reads. */
static gboolean
is_key_of_case (const Example *example, const char *name)
{
  return pto_worker_describe_parameter (name) == NULL
         && (g_strv_contains (manifest_tolerance_keys, name)
             || g_key_file_has_key (example->manifest->keys, example->item->group, name, NULL));
}

gboolean
example_set_options (Example *example, char **set, GError **error)
{
  for (guint i = 0; set != NULL && set[i] != NULL; i++)
    {
      const char *equal = strchr (set[i], '=');
      g_autofree char *name = NULL;

      if (equal == NULL || equal == set[i])
        return tool_refuse (error, _ ("--set %s: NAME=VALUE wanted"), set[i]);
      name = g_strndup (set[i], (gsize) (equal - set[i]));
      if (is_key_of_case (example, name))
        return tool_refuse (
            error, _ ("--set %s: %s is no parameter of the runtime; write %s in [%s] of %s"),
            set[i], name, set[i], example->item->group, example->manifest->file);
      if (!set_option (example, "set", name, equal + 1, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
example_set_schedule (Example *example, const char *schedule, GError **error)
{
  if (schedule == NULL || schedule[0] != '\0')
    return example_set_option (example, "schedule", schedule, error);
  return tool_refuse (error,
                      _ ("--schedule: a schedule wanted, such as 1:0-after-1:3 or in-order"));
}

gboolean
example_set_case (Example *example, GError **error)
{
  const GPtrArray *parameters = example->item->parameters;

  for (guint i = 0; i < parameters->len; i += 2)
    {
      const char *name = g_ptr_array_index (parameters, i);
      g_autoptr (GError) local = NULL;

      if (!example_is_in_environment (name)
          && !pto_worker_set_parameter (example->worker, name,
                                        g_ptr_array_index (parameters, i + 1), &local))
        return tool_fail (error, _ ("%s: case \"%s\": %s"), example->manifest->file,
                          example->item->name, local->message);
    }
  return TRUE;
}

/* --- ready --- */

gboolean
example_open (Example *example, const char *directory, const char *item, const char *platform,
              GError **error)
{
  const char *name = platform != NULL ? platform : "a2a3sim";
  g_autoptr (GError) local = NULL;

  example->platform = pto_platform_lookup (name, &local);
  if (example->platform == NULL)
    return strpbrk (name, "/.") != NULL ? tool_fail (error, "--platform: %s", local->message)
                                        : tool_refuse (error, "--platform: %s", local->message);
  example->manifest = manifest_load (directory, error);
  if (example->manifest == NULL)
    return FALSE;
  example->item = manifest_find_case (example->manifest, item, error);
  if (example->item != NULL)
    example->worker = pto_worker_new_chip (name, error);
  return example->worker != NULL;
}

/* While the library builds; on a terminal it is told. */
static void
on_progress (PtoWorker *worker, guint done, guint total, const char *name, gboolean cached,
             gpointer data)
{
  Example *example = data;
  g_autofree char *line = NULL;

  example->n_built += !cached;
  line = g_strdup_printf (_ ("pto: building: %u of %u (%s)"), done, total, name);
  terminal_show_line (line);
}

/* A chip that can not be had is no matter of the manifest's: parameters come from elsewhere, too,
 * and so do limits of the system. */
static gboolean
refuse_start (const Example *example, const GError *failure, GError **error)
{
  if (pto_worker_get_state (example->worker) == PTO_WORKER_STATE_NEW
      || g_error_matches (failure, PTO_ERROR, PTO_ERROR_SYSTEM)
      || g_error_matches (failure, PTO_ERROR, PTO_ERROR_NO_MEMORY))
    return tool_fail (error, _ ("%s: case \"%s\": %s"), example->manifest->name,
                      example->item->name, failure->message);
  return tool_fail (error, "%s: %s", example->manifest->file, failure->message);
}

gboolean
example_start (Example *example, GError **error)
{
  const ManifestCase *item = example->item;
  PtoCallable *chip = example->manifest->chip;
  g_autofree char *title = NULL;
  g_autofree char *unread = NULL;
  g_autoptr (GError) local = NULL;
  gint64 build_start = g_get_monotonic_time ();

  /* A registration keeps the name that it was made with: the title of the trace. */
  title = g_strdup_printf ("%s: %s", example->manifest->name,
                           item->title != NULL ? item->title : item->name);
  pto_callable_set_name (chip, title);
  g_signal_connect (example->worker, "progress", G_CALLBACK (on_progress), example);
  if (pto_worker_start (example->worker, tool_get_cancellable (), &local))
    example->handle = pto_worker_register (example->worker, chip, tool_get_cancellable (), &local);
  example->build_seconds = (double) (g_get_monotonic_time () - build_start) / 1e6;
  g_signal_handlers_disconnect_by_data (example->worker, example);
  if (example->handle != NULL)
    example->reference = reference_new (example->manifest, item, error);
  terminal_hide_line ();
  if (example->handle == NULL)
    return refuse_start (example, local, error);
  if (example->reference == NULL)
    return FALSE;
  unread = reference_list_unread_keys (example->reference);
  return unread == NULL
         || tool_fail (error,
                       _ ("%s: case \"%s\": nobody reads %s: neither a parameter of the runtime "
                          "nor a key of the reference"),
                       example->manifest->file, item->name, unread);
}

void
example_clear (Example *example)
{
  g_clear_pointer (&example->handle, pto_callable_handle_unref);
  g_clear_pointer (&example->reference, reference_free);
  g_clear_object (&example->worker);
  g_clear_pointer (&example->platform, pto_platform_free);
  g_clear_pointer (&example->manifest, manifest_free);
}

static void
unref_buffer (gpointer buffer)
{
  if (buffer != NULL)
    pto_buffer_unref (buffer);
}

static PtoBuffer *
add_array (PtoWorker *worker, const ReferenceArgument *argument, PtoTaskArgs *args, GError **error)
{
  g_autoptr (PtoBuffer) buffer = pto_worker_alloc_buffer (worker, argument->n_bytes, error);
  g_autoptr (PtoTensor) tensor = NULL;

  if (buffer == NULL
      || !pto_worker_copy_to_address (worker, pto_buffer_get_address (buffer),
                                      (guintptr) argument->data, argument->n_bytes, error))
    return NULL;
  tensor = pto_tensor_new_for_buffer (buffer, 0, (PtoDtype) argument->dtype, argument->n_dims,
                                      argument->shape, error);
  if (tensor == NULL)
    return NULL;
  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_INOUT);
  return g_steal_pointer (&buffer);
}

GPtrArray *
example_add_arguments (const Example *example, PtoTaskArgs *args, GError **error)
{
  g_autoptr (GPtrArray) buffers = g_ptr_array_new_with_free_func (unref_buffer);

  for (guint i = 0; i < reference_get_n_arguments (example->reference); i++)
    {
      const ReferenceArgument *argument = reference_get_argument (example->reference, i);
      PtoBuffer *buffer = NULL;

      if (argument->is_scalar)
        pto_task_args_add_scalar (args, argument->value);
      else if ((buffer = add_array (example->worker, argument, args, error)) == NULL)
        return NULL;
      g_ptr_array_add (buffers, buffer);
    }
  return g_steal_pointer (&buffers);
}

void
example_print_case (const Example *example)
{
  const ManifestCase *item = example->item;

  if (item->title != NULL)
    tool_print_row_printf (_ ("case"), "%s: %s", item->name, item->title);
  else
    tool_print_row (_ ("case"), item->name);
}
