/* pto-call-config.c: which choices does one run have?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-call-config-private.h"

#include "process/wire.h"

#include "pto-error-private.h"
#include "pto-override-private.h"

#include <string.h>

/**
 * PtoCallConfig:
 *
 * The choices of one run: how much of the chip it uses, and what is recorded.
 *
 * A switch that has no effect in this version is refused by the run, never ignored.
 *
 * Source: seed 001 section 4. Thread safety: one thread at a time. A fork copies the value.
 *
 * Since: 0.1
 */
G_DEFINE_BOXED_TYPE_WITH_CODE (PtoCallConfig, pto_call_config, pto_call_config_copy,
                               pto_call_config_free, pto_override_look ())

/**
 * pto_call_config_new: (constructor)
 *
 * Makes a configuration with the default of every field.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a configuration
 *
 * Since: 0.1
 */
PtoCallConfig *
pto_call_config_new (void)
{
  return g_new0 (PtoCallConfig, 1);
}

/**
 * pto_call_config_copy:
 * @config: a configuration
 *
 * Makes a copy.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer full): a configuration
 *
 * Since: 0.1
 */
PtoCallConfig *
pto_call_config_copy (const PtoCallConfig *config)
{
  PtoCallConfig *copy;

  g_return_val_if_fail (config != NULL, NULL);

  copy = g_new (PtoCallConfig, 1);
  *copy = *config;
  copy->output_prefix = g_strdup (config->output_prefix);
  return copy;
}

/**
 * pto_call_config_free:
 * @config: (transfer full): a configuration
 *
 * Frees a configuration.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_call_config_free (PtoCallConfig *config)
{
  g_return_if_fail (config != NULL);

  g_free (config->output_prefix);
  g_free (config);
}

/**
 * pto_call_config_get_block_dim:
 * @config: a configuration
 *
 * Gives the number of clusters that the run uses.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: clusters; 0 (the default): all
 *
 * Since: 0.1
 */
int
pto_call_config_get_block_dim (const PtoCallConfig *config)
{
  g_return_val_if_fail (config != NULL, 0);

  return config->block_dim;
}

/**
 * pto_call_config_set_block_dim:
 * @config: a configuration
 * @value: clusters; 0 (the default): all
 *
 * Sets the number of clusters that the run uses.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_call_config_set_block_dim (PtoCallConfig *config, int value)
{
  g_return_if_fail (config != NULL);

  config->block_dim = value;
}

/**
 * pto_call_config_get_aicpu_thread_num:
 * @config: a configuration
 *
 * Gives the number of control threads that the run uses: schedulers and one orchestrator.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: threads; 0, the default: all that the worker has
 *
 * Since: 0.1
 */
int
pto_call_config_get_aicpu_thread_num (const PtoCallConfig *config)
{
  g_return_val_if_fail (config != NULL, 0);

  return config->aicpu_thread_num;
}

/**
 * pto_call_config_set_aicpu_thread_num:
 * @config: a configuration
 * @value: threads; 0, the default: all that the worker has
 *
 * Sets the number of control threads that the run uses: schedulers and one orchestrator.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_call_config_set_aicpu_thread_num (PtoCallConfig *config, int value)
{
  g_return_if_fail (config != NULL);

  config->aicpu_thread_num = value;
}

/**
 * pto_call_config_get_enable_l2_swimlane:
 * @config: a configuration
 *
 * Gives how fully the run is recorded.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 (the default): not, unless the parameter `trace` is 1; 1: which kernel ran where and
 *   when; 2: and when it was ready, dispatched and seen to be over; 3: and what it waited for; 4:
 * and its arguments and what rings held
 *
 * Since: 0.1
 */
int
pto_call_config_get_enable_l2_swimlane (const PtoCallConfig *config)
{
  g_return_val_if_fail (config != NULL, 0);

  return config->enable_l2_swimlane;
}

/**
 * pto_call_config_set_enable_l2_swimlane:
 * @config: a configuration
 * @value: 0 (the default): not, unless the parameter `trace` is 1; 1: which kernel ran where and
 *   when; 2: and when it was ready, dispatched and seen to be over; 3: and what it waited for; 4:
 * and its arguments and what rings held
 *
 * Sets how fully the run is recorded.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_call_config_set_enable_l2_swimlane (PtoCallConfig *config, int value)
{
  g_return_if_fail (config != NULL);

  config->enable_l2_swimlane = value;
}

/**
 * pto_call_config_get_enable_dump_tensor:
 * @config: a configuration
 *
 * Gives whether the tensors of the run are dumped.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 (the default): no; a run refuses any other value: there is no such dump
 *
 * Since: 0.1
 */
int
pto_call_config_get_enable_dump_tensor (const PtoCallConfig *config)
{
  g_return_val_if_fail (config != NULL, 0);

  return config->enable_dump_tensor;
}

/**
 * pto_call_config_set_enable_dump_tensor:
 * @config: a configuration
 * @value: 0 (the default): no; a run refuses any other value: there is no such dump
 *
 * Sets whether the tensors of the run are dumped.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_call_config_set_enable_dump_tensor (PtoCallConfig *config, int value)
{
  g_return_if_fail (config != NULL);

  config->enable_dump_tensor = value;
}

/**
 * pto_call_config_get_enable_pmu:
 * @config: a configuration
 *
 * Gives which event the performance counters count.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 (the default): none; a run refuses any other value: a simulated core has no such
 * counters
 *
 * Since: 0.1
 */
int
pto_call_config_get_enable_pmu (const PtoCallConfig *config)
{
  g_return_val_if_fail (config != NULL, 0);

  return config->enable_pmu;
}

/**
 * pto_call_config_set_enable_pmu:
 * @config: a configuration
 * @value: 0 (the default): none; a run refuses any other value: a simulated core has no such
 * counters
 *
 * Sets which event the performance counters count.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_call_config_set_enable_pmu (PtoCallConfig *config, int value)
{
  g_return_if_fail (config != NULL);

  config->enable_pmu = value;
}

/**
 * pto_call_config_get_enable_dep_gen:
 * @config: a configuration
 *
 * Gives whether the dependencies of the run are written out.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 (the default): no; a run refuses any other value: a trace holds them
 *
 * Since: 0.1
 */
int
pto_call_config_get_enable_dep_gen (const PtoCallConfig *config)
{
  g_return_val_if_fail (config != NULL, 0);

  return config->enable_dep_gen;
}

/**
 * pto_call_config_set_enable_dep_gen:
 * @config: a configuration
 * @value: 0 (the default): no; a run refuses any other value: a trace holds them
 *
 * Sets whether the dependencies of the run are written out.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_call_config_set_enable_dep_gen (PtoCallConfig *config, int value)
{
  g_return_if_fail (config != NULL);

  config->enable_dep_gen = value;
}

/**
 * pto_call_config_get_enable_scope_stats:
 * @config: a configuration
 *
 * Gives whether statistics of every scope are kept.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 (the default): no; a run refuses any other value: there are none
 *
 * Since: 0.1
 */
int
pto_call_config_get_enable_scope_stats (const PtoCallConfig *config)
{
  g_return_val_if_fail (config != NULL, 0);

  return config->enable_scope_stats;
}

/**
 * pto_call_config_set_enable_scope_stats:
 * @config: a configuration
 * @value: 0 (the default): no; a run refuses any other value: there are none
 *
 * Sets whether statistics of every scope are kept.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_call_config_set_enable_scope_stats (PtoCallConfig *config, int value)
{
  g_return_if_fail (config != NULL);

  config->enable_scope_stats = value;
}

/**
 * pto_call_config_get_output_prefix:
 * @config: a configuration
 *
 * Gives what the names of the files that the run writes begin with.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none) (type filename): a path and the beginning of a name; empty when the run
 *   writes no file
 *
 * Since: 0.1
 */
const char *
pto_call_config_get_output_prefix (const PtoCallConfig *config)
{
  g_return_val_if_fail (config != NULL, NULL);

  return config->output_prefix != NULL ? config->output_prefix : "";
}

/**
 * pto_call_config_set_output_prefix:
 * @config: a configuration
 * @prefix: (nullable) (type filename): a path and the beginning of a name, at most 1023 bytes
 *
 * Sets what the names of the files that the run writes begin with.
 *
 * With a swimlane, a run writes its record to the prefix followed by `swimlane.json`. A task that
 * another worker gives to a chip, or to a worker of level 3 or up, has a file of its own: between
 * the two stand the task, counted from 0 in the order of the submits of the run, and the worker
 * that ran it: `task3-worker0-swimlane.json`.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_call_config_set_output_prefix (PtoCallConfig *config, const char *prefix)
{
  g_return_if_fail (config != NULL);

  g_free (config->output_prefix);
  config->output_prefix = g_strdup (prefix);
}

gboolean
pto_call_config_check (const PtoCallConfig *config, GError **error)
{
  const struct
  {
    const char *name;
    int value;
    const char *instead;
  } without_effect[] = {
    { "enable_dump_tensor", config->enable_dump_tensor,
      "read outputs with pto_worker_copy_from()" },
    { "enable_pmu", config->enable_pmu, "a simulated core has no performance counters" },
    { "enable_dep_gen", config->enable_dep_gen, "enable_l2_swimlane records the dependencies" },
    { "enable_scope_stats", config->enable_scope_stats, "enable_l2_swimlane records the scopes" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (without_effect); i++)
    if (without_effect[i].value != 0)
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                     "%s = %d has no effect in this version and is refused: set it to 0 (%s)",
                     without_effect[i].name, without_effect[i].value, without_effect[i].instead);
        return FALSE;
      }
  if (config->enable_l2_swimlane < 0 || config->enable_l2_swimlane > 4)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "enable_l2_swimlane is %d: it must be 0 (off) to 4 (full)",
                   config->enable_l2_swimlane);
      return FALSE;
    }
  if (config->block_dim < 0)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "block_dim is %d: it must be the number of clusters to use, or 0 for all",
                   config->block_dim);
      return FALSE;
    }
  if (config->aicpu_thread_num < 0)
    {
      g_set_error (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          "aicpu_thread_num is %d: it must be the number of control threads to use, or 0 for all",
          config->aicpu_thread_num);
      return FALSE;
    }
  if (config->output_prefix != NULL && strlen (config->output_prefix) > 1023)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                   "output_prefix has %zu bytes: at most 1023 are allowed",
                   strlen (config->output_prefix));
      return FALSE;
    }
  return TRUE;
}

const char *
pto_call_config_find_choice (const PtoCallConfig *config)
{
  if (config->block_dim != 0)
    return "block_dim";
  return config->aicpu_thread_num != 0 ? "aicpu_thread_num" : NULL;
}

void
pto_call_config_extend_prefix (PtoCallConfig *config, const char *what, guint number)
{
  char *prefix;

  if (config->output_prefix == NULL || config->output_prefix[0] == '\0')
    return;
  prefix = g_strdup_printf ("%s%s%u-", config->output_prefix, what, number);
  g_free (config->output_prefix);
  config->output_prefix = prefix;
}

void
pto_call_config_to_wire (const PtoCallConfig *config, struct pto_call_config *wire)
{
  memset (wire, 0, sizeof *wire);
  if (config == NULL)
    return;
  wire->block_dim = config->block_dim;
  wire->aicpu_thread_num = config->aicpu_thread_num;
  wire->enable_l2_swimlane = config->enable_l2_swimlane;
  wire->enable_dump_tensor = config->enable_dump_tensor;
  wire->enable_pmu = config->enable_pmu;
  wire->enable_dep_gen = config->enable_dep_gen;
  wire->enable_scope_stats = config->enable_scope_stats;
  if (config->output_prefix != NULL)
    g_strlcpy (wire->output_prefix, config->output_prefix, sizeof wire->output_prefix);
}

PtoCallConfig *
pto_call_config_new_from_wire (const struct pto_call_config *wire)
{
  PtoCallConfig *config = pto_call_config_new ();

  config->block_dim = wire->block_dim;
  config->aicpu_thread_num = wire->aicpu_thread_num;
  config->enable_l2_swimlane = wire->enable_l2_swimlane;
  config->enable_dump_tensor = wire->enable_dump_tensor;
  config->enable_pmu = wire->enable_pmu;
  config->enable_dep_gen = wire->enable_dep_gen;
  config->enable_scope_stats = wire->enable_scope_stats;
  if (wire->output_prefix[0] != '\0')
    config->output_prefix = g_strndup (wire->output_prefix, sizeof wire->output_prefix);
  return config;
}

/**
 * pto_call_config_to_string:
 * @config: a configuration
 *
 * Describes it in words, for a person: what was chosen, `block_dim=4 enable_pmu=2`, or `nothing
 * chosen`.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): text
 *
 * Since: 0.1
 */
char *
pto_call_config_to_string (const PtoCallConfig *config)
{
  GString *text;

  g_return_val_if_fail (config != NULL, NULL);

  text = g_string_new (NULL);
  {
    const struct
    {
      const char *name;
      int value;
    } numbers[] = {
      { "block_dim", config->block_dim },
      { "aicpu_thread_num", config->aicpu_thread_num },
      { "enable_l2_swimlane", config->enable_l2_swimlane },
      { "enable_dump_tensor", config->enable_dump_tensor },
      { "enable_pmu", config->enable_pmu },
      { "enable_dep_gen", config->enable_dep_gen },
      { "enable_scope_stats", config->enable_scope_stats },
    };

    for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
      if (numbers[i].value != 0)
        g_string_append_printf (text, "%s%s=%d", text->len > 0 ? " " : "", numbers[i].name,
                                numbers[i].value);
  }
  if (config->output_prefix != NULL && config->output_prefix[0] != '\0')
    {
      g_autofree char *shown = g_filename_display_name (config->output_prefix);

      g_string_append_printf (text, "%soutput_prefix=%s", text->len > 0 ? " " : "", shown);
    }
  return g_string_free (text->len > 0 ? text : g_string_append (text, "nothing chosen"), FALSE);
}
