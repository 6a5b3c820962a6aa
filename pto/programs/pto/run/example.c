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
#include <unistd.h>

PtoPlatform *
example_find_platform (const char *platform, GError **error)
{
  g_autoptr (GError) local = NULL;
  PtoPlatform *known = pto_platform_lookup (platform, &local);

  if (known == NULL)
    g_set_error (error, TOOL_ERROR,
                 strpbrk (platform, "/.") != NULL ? TOOL_ERROR_TROUBLE : TOOL_ERROR_USAGE,
                 "--platform: %s", local->message);
  return known;
}

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

gboolean
example_set_option (PtoWorker *worker, const char *option, const char *name, const char *value,
                    GError **error)
{
  g_autoptr (GError) local = NULL;

  if (pto_worker_set_parameter (worker, name, value, &local))
    return TRUE;
  return tool_refuse (error, "--%s: %s", option, local->message);
}

/* What only the case says: its tolerances, and what its reference reads. */
static gboolean
is_key_of_case (const Manifest *manifest, const ManifestCase *item, const char *name)
{
  return pto_worker_describe_parameter (name) == NULL
         && (g_strv_contains (manifest_tolerance_keys, name)
             || g_key_file_has_key (manifest->keys, item->group, name, NULL));
}

gboolean
example_set_options (PtoWorker *worker, const Manifest *manifest, const ManifestCase *item,
                     char **set, GError **error)
{
  for (guint i = 0; set != NULL && set[i] != NULL; i++)
    {
      const char *equal = strchr (set[i], '=');
      g_autofree char *name = NULL;

      if (equal == NULL || equal == set[i])
        return tool_refuse (error, _ ("--set %s: NAME=VALUE wanted"), set[i]);
      name = g_strndup (set[i], (gsize) (equal - set[i]));
      if (is_key_of_case (manifest, item, name))
        return tool_refuse (
            error, _ ("--set %s: %s is no parameter of the runtime; write %s in [%s] of %s"),
            set[i], name, set[i], item->group, manifest->file);
      if (!example_set_option (worker, "set", name, equal + 1, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
example_set_schedule (PtoWorker *worker, const char *schedule, GError **error)
{
  if (schedule == NULL || schedule[0] != '\0')
    return schedule == NULL || example_set_option (worker, "schedule", "schedule", schedule, error);
  return tool_refuse (error,
                      _ ("--schedule: a schedule wanted, such as 1:0-after-1:3 or in-order"));
}

gboolean
example_set_case (PtoWorker *worker, Manifest *manifest, const ManifestCase *item, GError **error)
{
  for (guint i = 0; i < item->parameters->len; i += 2)
    {
      const char *name = g_ptr_array_index (item->parameters, i);
      const char *value = g_ptr_array_index (item->parameters, i + 1);
      g_autoptr (GError) local = NULL;

      if (!example_is_in_environment (name)
          && !pto_worker_set_parameter (worker, name, value, &local))
        return tool_fail (error, _ ("%s: case \"%s\": %s"), manifest->file, item->name,
                          local->message);
    }
  return TRUE;
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
static void
set_not_ready (const Manifest *manifest, const ManifestCase *item, PtoWorker *worker,
               const GError *failure, GError **error)
{
  if (pto_worker_get_state (worker) == PTO_WORKER_STATE_NEW
      || g_error_matches (failure, PTO_ERROR, PTO_ERROR_SYSTEM)
      || g_error_matches (failure, PTO_ERROR, PTO_ERROR_NO_MEMORY))
    tool_fail (error, _ ("%s: case \"%s\": %s"), manifest->name, item->name, failure->message);
  else
    tool_fail (error, "%s: %s", manifest->file, failure->message);
}

gboolean
example_start (Example *example, PtoWorker *worker, Manifest *manifest, const ManifestCase *item,
               GError **error)
{
  g_autofree char *title = NULL;
  g_autofree char *unread = NULL;
  g_autoptr (GError) local = NULL;
  gint64 build_start = g_get_monotonic_time ();

  /* A registration keeps the name that it was made with: the title of the trace. */
  title
      = g_strdup_printf ("%s: %s", manifest->name, item->title != NULL ? item->title : item->name);
  pto_callable_set_name (manifest->chip, title);
  g_signal_connect (worker, "progress", G_CALLBACK (on_progress), example);
  if (pto_worker_start (worker, tool_get_cancellable (), &local))
    example->handle = pto_worker_register (worker, manifest->chip, tool_get_cancellable (), &local);
  example->build_seconds = (double) (g_get_monotonic_time () - build_start) / 1e6;
  g_signal_handlers_disconnect_by_data (worker, example);
  if (example->handle != NULL)
    example->reference = reference_new (manifest, item, error);
  terminal_hide_line ();
  if (example->handle == NULL)
    {
      set_not_ready (manifest, item, worker, local, error);
      return FALSE;
    }
  if (example->reference == NULL)
    return FALSE;
  unread = reference_list_unread_keys (example->reference);
  if (unread == NULL)
    return TRUE;
  return tool_fail (error,
                    _ ("%s: case \"%s\": nobody reads %s: neither a parameter of the runtime nor a "
                       "key of the reference"),
                    manifest->file, item->name, unread);
}

void
example_clear (Example *example)
{
  g_clear_pointer (&example->handle, pto_callable_handle_unref);
  g_clear_pointer (&example->reference, reference_free);
}

PtoBuffer *
example_add_array (PtoWorker *worker, const ReferenceArgument *argument, PtoTaskArgs *args,
                   GError **error)
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
