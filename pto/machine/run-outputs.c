/* run-outputs.c: which files does a run write that its configuration asks for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All of them but the tensors of a dump, which are gone when a run is over (machine/tensor-dump.c),
 * are answers of its trace.
 */
#include "config.h"

#include "run-outputs.h"

#include "trace/answer/trace-answers.h"
#include "pto-trace-topics.h"

typedef struct
{
  guint64 run; /* the last that asked */
  guint n;     /* that asked before it */
} Claim;

/* How many runs have asked for it before this one. */
static guint
claim_prefix (const char *prefix, guint64 run)
{
  static GMutex lock;
  static GHashTable *claims; /* Claim by prefix; under the lock */
  Claim *claim;
  guint n;

  g_mutex_lock (&lock);
  if (claims == NULL)
    claims = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  claim = g_hash_table_lookup (claims, prefix);
  if (claim == NULL)
    {
      claim = g_new0 (Claim, 1);
      claim->run = run;
      g_hash_table_insert (claims, g_strdup (prefix), claim);
    }
  else if (claim->run != run)
    {
      claim->run = run;
      claim->n++;
    }
  n = claim->n;
  g_mutex_unlock (&lock);
  return n;
}

PtoCallConfig *
pto_run_outputs_claim_for (const PtoCallConfig *config, guint64 run)
{
  PtoCallConfig *own = pto_call_config_copy (config);
  const char *prefix = pto_call_config_get_output_prefix (own);
  guint n = prefix[0] != '\0' && pto_call_config_get_record_level (own) > 0
                ? claim_prefix (prefix, run)
                : 0;

  if (n > 0)
    pto_call_config_extend_prefix (own, "run", n);
  return own;
}

static gboolean
write_text (const PtoCallConfig *config, const char *name, char *text, GError **error)
{
  g_autofree char *owned = text;
  g_autofree char *path = g_strconcat (config->output_prefix, name, NULL);

  return g_file_set_contents (path, owned, -1, error);
}

static gboolean
write_swimlane (const PtoCallConfig *config, PtoTrace *trace, GError **error)
{
  g_autofree char *path = g_strconcat (config->output_prefix, "swimlane.json", NULL);

  return pto_trace_save_json (trace, path, error);
}

gboolean
pto_run_outputs_write (const PtoCallConfig *config, PtoTrace *trace, GError **error)
{
  static const guint events[] = { [PTO_PMU_EVENT_ALL] = PTO_TRACE_COUNT_ALL,
                                  [PTO_PMU_EVENT_TIME] = PTO_TRACE_COUNT_TIME,
                                  [PTO_PMU_EVENT_MEMORY] = PTO_TRACE_COUNT_MEMORY,
                                  [PTO_PMU_EVENT_PIPES] = PTO_TRACE_COUNT_PIPES };

  if (config == NULL || trace == NULL || pto_call_config_get_output_prefix (config)[0] == '\0')
    return TRUE;
  return (config->enable_l2_swimlane == 0 || write_swimlane (config, trace, error))
         && (config->enable_pmu == 0
             || write_text (config, "pmu.json",
                            pto_trace_count_json (trace, events[config->enable_pmu]), error))
         && (config->enable_dep_gen == 0
             || (write_text (config, "deps.json",
                             pto_trace_describe_json (trace, PTO_TRACE_TOPIC_DEPS), error)
                 && write_text (config, "deps.dot",
                                pto_trace_describe (trace, PTO_TRACE_TOPIC_DEPS), error)))
         && (config->enable_scope_stats == 0
             || write_text (config, "scopes.json",
                            pto_trace_describe_json (trace, PTO_TRACE_TOPIC_SCOPES), error));
}
