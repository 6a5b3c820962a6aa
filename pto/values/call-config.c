/* call-config.c: which choices does one run have?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "call-config.h"

#include "core/trace.h"
#include "process/call-format.h"

#include "base/binding.h"
#include "base/error.h"
#include "common/text.h"
#include "tensor-dump-filter.h"

#include <string.h>

/**
 * PtoCallConfig:
 *
 * The choices of one run: how much of the chip it uses, what is recorded, and whether what kernels
 * touch is checked.
 *
 * The switches that record write files whose names begin with the output prefix, at the end of the
 * run: each says which. Given to a run of a worker of level 3 or up they are about that worker's
 * own tasks; given to a task that it submits, about what the chip, or worker, does in it. Each
 * raises the level of the run's record, which [method@Pto.Worker.ref_trace] gives, as far as it
 * needs.
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
  copy->dump_filter = g_strdup (config->dump_filter);
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
  g_free (config->dump_filter);
  g_free (config);
}

/* A function that gives a number of a configuration, and one that sets it. */
#define DEFINE_GETTER(field)                                    \
  int pto_call_config_get_##field (const PtoCallConfig *config) \
  {                                                             \
    g_return_val_if_fail (config != NULL, 0);                   \
                                                                \
    return config->field;                                       \
  }
#define DEFINE_SETTER(field)                                          \
  void pto_call_config_set_##field (PtoCallConfig *config, int value) \
  {                                                                   \
    g_return_if_fail (config != NULL);                                \
                                                                      \
    config->field = value;                                            \
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
DEFINE_GETTER (block_dim)

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
DEFINE_SETTER (block_dim)

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
DEFINE_GETTER (aicpu_thread_num)

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
DEFINE_SETTER (aicpu_thread_num)

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
DEFINE_GETTER (enable_l2_swimlane)

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
DEFINE_SETTER (enable_l2_swimlane)

/**
 * pto_call_config_get_enable_dump_tensor:
 * @config: a configuration
 *
 * Gives whether the tensors of the run are dumped.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 (the default): no; 1: what each task reads before it, and what it writes after it; 2:
 * the first only; 3: the second only
 *
 * Since: 0.1
 */
DEFINE_GETTER (enable_dump_tensor)

/**
 * pto_call_config_set_enable_dump_tensor:
 * @config: a configuration
 * @value: 0 (the default): no; 1: what each task reads before it, and what it writes after it; 2:
 * the first only; 3: the second only
 *
 * Sets whether the tensors of the run are dumped.
 *
 * Each is a file of NumPy's with the elements of the argument's view: the prefix and
 * `dump-RING-POSITION-KERNEL-argN-before.npy`, or `-after.npy`. The prefix and `dump.json` is a
 * list of them by task. bfloat16 and float8 are unsigned integers with their bits there. Of a task
 * that is skipped, or never begins, there is none; one that fails has those from before it. An
 * output prefix is needed; [method@Pto.CallConfig.set_dump_filter] says of which tasks. On the
 * virtual clock of `det` it takes no time.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
DEFINE_SETTER (enable_dump_tensor)

/**
 * pto_call_config_get_enable_pmu:
 * @config: a configuration
 *
 * Gives which event the performance counters count.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 (the default): none; otherwise one of [enum@Pto.PmuEvent]
 *
 * Since: 0.1
 */
DEFINE_GETTER (enable_pmu)

/**
 * pto_call_config_set_enable_pmu:
 * @config: a configuration
 * @value: 0 (the default): none; otherwise one of [enum@Pto.PmuEvent]
 *
 * Sets which event the performance counters count.
 *
 * They are of the simulated cores: what each task and each core was busy with and waited for, the
 * bytes of its arguments, and how long it stood at barriers and pipes. With an output prefix they
 * are in the file of its name and `pmu.json`; the trace answers the same as
 * %PTO_TRACE_TOPIC_COUNTERS.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
DEFINE_SETTER (enable_pmu)

/**
 * pto_call_config_get_enable_dep_gen:
 * @config: a configuration
 *
 * Gives whether the dependencies of the run are written out.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 (the default): no; 1: yes
 *
 * Since: 0.1
 */
DEFINE_GETTER (enable_dep_gen)

/**
 * pto_call_config_set_enable_dep_gen:
 * @config: a configuration
 * @value: 0 (the default): no; 1: yes
 *
 * Sets whether the dependencies of the run are written out.
 *
 * With an output prefix they are in the file of its name and `deps.json`, and for Graphviz
 * `deps.dot`: which task waits for which, for what hazard, and which bytes of which arguments. The
 * trace answers the same as %PTO_TRACE_TOPIC_DEPS.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
DEFINE_SETTER (enable_dep_gen)

/**
 * pto_call_config_get_enable_scope_stats:
 * @config: a configuration
 *
 * Gives whether statistics of every scope are kept.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 (the default): no; 1: yes
 *
 * Since: 0.1
 */
DEFINE_GETTER (enable_scope_stats)

/**
 * pto_call_config_set_enable_scope_stats:
 * @config: a configuration
 * @value: 0 (the default): no; 1: yes
 *
 * Sets whether statistics of every scope are kept.
 *
 * With an output prefix they are in the file of its name and `scopes.json`: what the scopes of each
 * line held at most of each ring, and what sizes of rings would do. The trace answers the same as
 * %PTO_TRACE_TOPIC_SCOPES.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
DEFINE_SETTER (enable_scope_stats)

/**
 * pto_call_config_get_enable_access_check:
 * @config: a configuration
 *
 * Gives whether what the kernels of the run touch is compared with their tasks' arguments.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: 0 (the default): not, unless the parameter `check` is `access`; 1: yes
 *
 * Since: 0.1
 */
DEFINE_GETTER (enable_access_check)

/**
 * pto_call_config_set_enable_access_check:
 * @config: a configuration
 * @value: 0 (the default): not, unless the parameter `check` is `access`; 1: yes
 *
 * Sets whether what the kernels of the run touch is compared with their tasks' arguments.
 *
 * What was not as declared is the error of the run when it is over, %PTO_ERROR_ACCESS, a line for
 * each finding: a task that wrote to an input, that read an output before it had written there, or
 * that left its views, and two in no order that touched the same bytes. The chapter "What kernels
 * touch" says more.
 *
 * A kernel is compiled once more when the first such run needs it, and that is kept beside the
 * other, which all other runs have: these pay nothing. One that was given as a shared object is
 * taken to touch what its arguments say, which is logged. A run of a worker of level 3 or up has no
 * kernels of its own: it is the chips below that check what they do in its tasks. Nothing is
 * checked while a graph is captured; a launch of it is a run.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
DEFINE_SETTER (enable_access_check)

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
 * With a swimlane, a run writes its record to the prefix followed by `swimlane.json`; the other
 * switches say themselves what they write. What a task of another worker writes has a name of its
 * own: between the two stand the task, counted from 0 in the order of the submits of the run, and
 * the worker that ran it: `task3-worker0-swimlane.json`. So does what a later run of this process
 * writes to the same prefix: `run1-swimlane.json`, `run2-`, and so on. The files of an earlier
 * process are overwritten, and so are those of the tasks of a graph's launch by its next one.
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

/**
 * pto_call_config_get_dump_filter:
 * @config: a configuration
 *
 * Gives which tensors a dump has.
 *
 * Thread safety: one thread at a time.
 *
 * Returns: (transfer none): as [method@Pto.CallConfig.set_dump_filter] takes it; empty: all
 *
 * Since: 0.1
 */
const char *
pto_call_config_get_dump_filter (const PtoCallConfig *config)
{
  g_return_val_if_fail (config != NULL, NULL);

  return config->dump_filter != NULL ? config->dump_filter : "";
}

/**
 * pto_call_config_set_dump_filter:
 * @config: a configuration
 * @filter: (nullable): terms with commas or spaces between them; empty (the default): everything
 *
 * Sets which tensors a dump has: those that any of the terms names. A term is the name of a kernel,
 * in which `*` and `?` stand for any text and any character; or a task, `17`, or `1:17` of ring 1;
 * and behind either, if it is about one argument only, a dot and its index: `QK.2,1:17,s*.0`. A
 * term that no task of the run matches is warned of.
 *
 * Prefix and filter have at most 1022 bytes together.
 *
 * Thread safety: one thread at a time.
 *
 * Since: 0.1
 */
void
pto_call_config_set_dump_filter (PtoCallConfig *config, const char *filter)
{
  g_return_if_fail (config != NULL);

  g_free (config->dump_filter);
  config->dump_filter = g_strdup (filter);
}

#define NUMBER(field, most, values)                                           \
  {                                                                           \
    G_STRINGIFY (field), G_STRUCT_OFFSET (PtoCallConfig, field), most, values \
  }

/* The numbers: how much of a chip is used; what is recorded, and what writes files; last, what does
 * neither. */
static const struct
{
  const char *name;
  gsize offset;
  int most;
  const char *values;
} numbers[] = {
  NUMBER (block_dim, G_MAXINT, N_ ("the number of clusters to use, or 0 for all")),
  NUMBER (aicpu_thread_num, G_MAXINT, N_ ("the number of control threads to use, or 0 for all")),
  NUMBER (enable_l2_swimlane, 4, N_ ("0 (off) to 4 (full)")),
  NUMBER (enable_dump_tensor, 3, N_ ("0 (off), 1 (before and after), 2 (before) or 3 (after)")),
  NUMBER (enable_pmu, 4, N_ ("0 (off), 1 (all), 2 (time), 3 (memory) or 4 (pipes)")),
  NUMBER (enable_dep_gen, 1, N_ ("0 (off) or 1 (on)")),
  NUMBER (enable_scope_stats, 1, N_ ("0 (off) or 1 (on)")),
  NUMBER (enable_access_check, 1, N_ ("0 (off) or 1 (on)")),
};

enum
{
  FIRST_RECORDING = 2,
  AFTER_RECORDING = G_N_ELEMENTS (numbers) - 1
};

static int
get_number (const PtoCallConfig *config, guint i)
{
  return G_STRUCT_MEMBER (int, config, numbers[i].offset);
}

const char *
pto_call_config_find_switch (const PtoCallConfig *config, int *value)
{
  for (guint i = FIRST_RECORDING; i < AFTER_RECORDING; i++)
    if (get_number (config, i) != 0)
      {
        *value = get_number (config, i);
        return numbers[i].name;
      }
  return NULL;
}

guint
pto_call_config_get_record_level (const PtoCallConfig *config)
{
  guint level = 0;

  for (guint i = FIRST_RECORDING + 1; config != NULL && i < AFTER_RECORDING; i++)
    if (get_number (config, i) != 0)
      level = PTO_TRACE_LEVEL_FULL;
  return config != NULL ? MAX (level, (guint) config->enable_l2_swimlane) : 0;
}

gboolean
pto_call_config_check (const PtoCallConfig *config, GError **error)
{
  gsize prefix = strlen (pto_call_config_get_output_prefix (config));
  gsize filter = strlen (pto_call_config_get_dump_filter (config));
  g_autofree char *why = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (get_number (config, i) < 0 || get_number (config, i) > numbers[i].most)
      return pto_refuse (error, PTO_ERROR_INVALID_ARGS, _ ("%s is %d: it must be %s"),
                         numbers[i].name, get_number (config, i), _ (numbers[i].values));
  if (prefix > 1023)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("output_prefix has %zu bytes: at most 1023 are allowed"), prefix);
  if (filter > 0 && prefix + filter > 1022)
    return pto_refuse (
        error, PTO_ERROR_INVALID_ARGS,
        _ ("output_prefix has %zu bytes and dump_filter %zu: at most 1022 are allowed together"),
        prefix, filter);
  why = pto_dump_check_filter (pto_call_config_get_dump_filter (config));
  if (why != NULL)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS, "%s", why);
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
  /* Nobody reads on behind two ends of text. */
  if (config == NULL)
    {
      memset (wire, 0, offsetof (struct pto_call_config, output_prefix) + 2);
      return;
    }
  memset (wire, 0, sizeof *wire);
  wire->block_dim = config->block_dim;
  wire->aicpu_thread_num = config->aicpu_thread_num;
  wire->enable_l2_swimlane = config->enable_l2_swimlane;
  wire->enable_dump_tensor = config->enable_dump_tensor;
  wire->enable_pmu = config->enable_pmu;
  wire->enable_dep_gen = config->enable_dep_gen;
  wire->enable_scope_stats = config->enable_scope_stats;
  pto_wire_config_set_check (wire, config->enable_access_check != 0);
  if (config->output_prefix != NULL)
    g_strlcpy (wire->output_prefix, config->output_prefix, sizeof wire->output_prefix);
  pto_wire_config_set_filter (wire, pto_call_config_get_dump_filter (config));
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
  config->enable_scope_stats = pto_wire_config_scope_stats (wire);
  config->enable_access_check = pto_wire_config_check (wire);
  if (wire->output_prefix[0] != '\0')
    config->output_prefix = g_strndup (wire->output_prefix, sizeof wire->output_prefix);
  config->dump_filter = g_strdup (pto_wire_config_filter (wire));
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
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (get_number (config, i) != 0)
      g_string_append_printf (text, "%s%s=%d", text->len > 0 ? " " : "", numbers[i].name,
                              get_number (config, i));
  if (config->output_prefix != NULL && config->output_prefix[0] != '\0')
    {
      g_autofree char *shown = g_filename_display_name (config->output_prefix);

      g_string_append_printf (text, "%soutput_prefix=%s", text->len > 0 ? " " : "", shown);
    }
  if (pto_call_config_get_dump_filter (config)[0] != '\0')
    g_string_append_printf (text, "%sdump_filter=%s", text->len > 0 ? " " : "",
                            config->dump_filter);
  return g_string_free (text->len > 0 ? text : g_string_append (text, "nothing chosen"), FALSE);
}
