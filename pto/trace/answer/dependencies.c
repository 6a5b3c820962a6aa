/* dependencies.c: which task waits for which, and why?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * As text in the language of Graphviz, tasks that were submitted in one scope together.
 */
#include "config.h"

#include "trace-answers.h"

#include "common/json.h"

/* A dependency's hazards, in the order of their bits. */
static const char *const hazards[] = { "RAW", "WAW", "WAR", "UNSURE", "EXPLICIT" };

void
pto_trace_add_hazards (JsonBuilder *json, guint32 kinds)
{
  pto_json_begin_array (json, "hazards");
  for (guint h = 0; h < G_N_ELEMENTS (hazards); h++)
    if ((kinds & 1u << h) != 0)
      json_builder_add_string_value (json, hazards[h]);
  json_builder_end_array (json);
}

void
pto_trace_add_deps (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis)
{
  pto_json_begin_array (json, "tasks");
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];

      json_builder_begin_object (json);
      pto_answer_add_task (json, trace, task);
      pto_json_add_int (json, "scope", task->scope);
      pto_json_add_boolean (json, "critical", task->critical != 0);
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
  pto_json_begin_array (json, "edges");
  for (guint i = 0; i < analysis->n_deps; i++)
    {
      const PtoTraceDep *dep = &analysis->deps[i];

      json_builder_begin_object (json);
      pto_answer_add_id (json, "from", dep->producer);
      pto_answer_add_id (json, "to", analysis->tasks[dep->consumer].id);
      pto_trace_add_hazards (json, dep->kinds);
      if (dep->consumer_arg != PTO_TRACE_NOWHERE)
        pto_json_add_int (json, "bytes", dep->bytes);
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
}

/* A string of Graphviz. */
static void
append_quoted (GString *text, const char *value)
{
  g_string_append_c (text, '"');
  for (; *value != '\0'; value++)
    {
      if (*value == '"' || *value == '\\')
        g_string_append_c (text, '\\');
      g_string_append_c (text, *value);
    }
  g_string_append_c (text, '"');
}

static void
append_node (GString *text, JsonObject *task)
{
  const char *id = json_object_get_string_member (task, "task");
  g_autofree char *name = pto_trace_dup_task_label (g_ascii_strtoull (id, NULL, 10));
  g_autofree char *label
      = g_strdup_printf ("%s %s", json_object_get_string_member (task, "kernel"), name);

  g_string_append_printf (text, "    t%s [label=", id);
  append_quoted (text, label);
  g_string_append (text, json_object_get_boolean_member (task, "critical")
                             ? ", color=red, penwidth=2];\n"
                             : "];\n");
}

void
pto_trace_append_deps (GString *text, JsonObject *object)
{
  JsonArray *tasks = json_object_get_array_member (object, "tasks");
  JsonArray *edges = json_object_get_array_member (object, "edges");
  g_autoptr (GHashTable) written = g_hash_table_new (NULL, NULL);

  g_string_append (text, "digraph ");
  append_quoted (text, json_object_get_string_member (object, "title"));
  g_string_append (text, " {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n");
  /* Tasks of one scope stand together, wherever they are in the list. */
  for (guint i = 0; i < json_array_get_length (tasks); i++)
    {
      guint64 scope = pto_answer_get_number (json_array_get_object_element (tasks, i), "scope");

      if (!g_hash_table_add (written, GUINT_TO_POINTER ((guint) scope)))
        continue;
      g_string_append_printf (text, "  subgraph cluster_%" G_GUINT64_FORMAT " {\n%s", scope,
                              scope == 0 ? "    style=invis;\n" : "    color=gray;\n");
      for (guint k = i; k < json_array_get_length (tasks); k++)
        {
          JsonObject *task = json_array_get_object_element (tasks, k);

          if (pto_answer_get_number (task, "scope") == scope)
            append_node (text, task);
        }
      g_string_append (text, "  }\n");
    }
  for (guint i = 0; i < json_array_get_length (edges); i++)
    {
      JsonObject *edge = json_array_get_object_element (edges, i);
      JsonArray *kinds = json_object_get_array_member (edge, "hazards");

      g_string_append_printf (text, "  t%s -> t%s [label=\"",
                              json_object_get_string_member (edge, "from"),
                              json_object_get_string_member (edge, "to"));
      for (guint h = 0; h < json_array_get_length (kinds); h++)
        g_string_append_printf (text, "%s%s", h == 0 ? "" : " ",
                                json_array_get_string_element (kinds, h));
      g_string_append (text, "\"];\n");
    }
  g_string_append (text, "}\n");
}
