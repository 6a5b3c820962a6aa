/* trace.c: what does a saved trace say?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tool.h"

#include <glib/gi18n.h>
#include <pto/pto.h>
#include <string.h>

static gboolean option_json;
static gboolean option_perfetto;

static const GOptionEntry entries[]
    = { { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("Print one JSON object"), NULL },
        { "perfetto", 0, 0, G_OPTION_ARG_NONE, &option_perfetto,
          N_ ("Export in the format of ui.perfetto.dev, whatever the file's name"), NULL },
        G_OPTION_ENTRY_NULL };

static const struct
{
  ToolWord word;
  PtoTraceTopic topic;
} topics[] = {
  { { "summary", NULL, N_ ("time, busy cores, kernels; asked when nothing is") },
    PTO_TRACE_TOPIC_SUMMARY },
  { { "critical-path", NULL,
      N_ ("the tasks that made it as long as it was, and the gaps between") },
    PTO_TRACE_TOPIC_CRITICAL_PATH },
  { { "overhead", NULL, N_ ("what the tasks of each kernel waited for") },
    PTO_TRACE_TOPIC_OVERHEAD },
  { { "scopes", NULL, N_ ("what scopes held at most, and what sizes would do") },
    PTO_TRACE_TOPIC_SCOPES },
  { { "counters", NULL, N_ ("what kernels and cores were busy with, and bytes") },
    PTO_TRACE_TOPIC_COUNTERS },
  { { "deps", NULL, N_ ("which task waits for which, for Graphviz: dot -Tsvg") },
    PTO_TRACE_TOPIC_DEPS },
};

/* What is no topic. */
static const ToolWord questions[] = {
  { "why", N_ ("TASK"),
    N_ ("why a task started when it did: 17, 1:17 of ring 1, or 7/1:17 inside of task 7") },
  { "diff", N_ ("OTHER.ptotrace"),
    N_ ("what differs between this run, before, and another one, after") },
  { "export", N_ ("FILE"),
    N_ ("save it as .html (a report), .perfetto-trace or .json (both for ui.perfetto.dev), or "
        ".svg") },
  { "simulate", N_ ("FILE.ptotrace SETTING..."),
    N_ ("save as .ptotrace when a tree of workers would have run on one virtual clock: "
        "link-latency=2us link-bandwidth=56GB/s function=NAME=COST submit=870ns") },
};

static void
add_questions (GArray *words)
{
  for (guint i = 0; i < G_N_ELEMENTS (topics); i++)
    g_array_append_val (words, topics[i].word);
  g_array_append_vals (words, questions, G_N_ELEMENTS (questions));
}

/* Takes the answer; NULL: the error is set. */
static gboolean
tell (char *answer)
{
  gsize length = answer != NULL ? strlen (answer) : 0;

  if (answer != NULL)
    {
      tool_print (answer, option_json);
      if (length == 0 || answer[length - 1] != '\n')
        g_print ("\n");
    }
  g_free (answer);
  return answer != NULL;
}

static gboolean
tell_why (PtoTrace *trace, const char *task, GError **error)
{
  g_autoptr (GError) local = NULL;

  if (tell (option_json ? pto_trace_explain_json (trace, task, &local)
                        : pto_trace_explain (trace, task, &local)))
    return TRUE;
  return tool_refuse_for (error, "why: ", g_steal_pointer (&local));
}

static gboolean
need_word (const char *question, const char *word, const char *what, GError **error)
{
  if (word != NULL)
    return TRUE;
  return tool_refuse (error, _ ("%s: %s is missing"), question, what);
}

static gboolean
compare (PtoTrace *trace, const char *path, GError **error)
{
  g_autoptr (PtoTrace) other = pto_trace_new_from_file (path, error);

  return other != NULL
         && tell (option_json ? pto_trace_compare_json (trace, other)
                              : pto_trace_compare (trace, other));
}

/* The trace on the virtual clock, and what it says in short. */
static gboolean
simulate (PtoTrace *trace, const char *from, const char *path, char **settings, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autoptr (PtoTrace) simulated = NULL;

  if (!tool_check_output ("simulate", path, ".ptotrace", error)
      || !tool_check_other ("simulate", path, from, error))
    return FALSE;
  simulated = pto_trace_simulate (trace, (const char *const *) settings, &local);
  if (simulated != NULL)
    return pto_trace_save (simulated, path, error)
           && tell (option_json ? pto_trace_describe_json (simulated, topics[0].topic)
                                : pto_trace_describe (simulated, topics[0].topic));
  return tool_refuse_for (error, "simulate: ", g_steal_pointer (&local));
}

static gboolean
answer (PtoTrace *trace, const char *from, char **words, GError **error)
{
  const char *question = words[0] != NULL ? words[0] : topics[0].word.name;

  if (option_perfetto && strcmp (question, "export") != 0)
    return tool_refuse (error, _ ("--perfetto: goes with export, not %s"), question);

  for (guint i = 0; i < G_N_ELEMENTS (topics); i++)
    if (strcmp (question, topics[i].word.name) == 0)
      return tell (option_json ? pto_trace_describe_json (trace, topics[i].topic)
                               : pto_trace_describe (trace, topics[i].topic));
  if (strcmp (question, "why") == 0)
    return need_word (question, words[1], _ ("the task"), error)
           && tell_why (trace, words[1], error);
  if (strcmp (question, "diff") == 0)
    return need_word (question, words[1], _ ("the other trace"), error)
           && compare (trace, words[1], error);
  if (strcmp (question, "simulate") == 0)
    return need_word (question, words[1], _ ("the file to write"), error)
           && simulate (trace, from, words[1], words + 2, error);
  if (strcmp (question, "export") == 0)
    return need_word (question, words[1], _ ("the file to write"), error)
           && tool_check_other (question, words[1], from, error)
           && (option_perfetto ? pto_trace_save_perfetto (trace, words[1], error)
                               : pto_trace_save (trace, words[1], error));
  return tool_refuse (error, _ ("unknown question \"%s\" (see pto help trace)"), question);
}

static gboolean
tool_trace (char **words, GError **error)
{
  g_autoptr (PtoTrace) trace = NULL;
  guint n_words = g_strv_length (words);

  if (n_words > 2)
    {
      gboolean takes_all = strcmp (words[2], "simulate") == 0;
      gboolean takes_word = strcmp (words[2], "why") == 0 || strcmp (words[2], "diff") == 0
                            || strcmp (words[2], "export") == 0;

      if (!takes_all && n_words > (takes_word ? 4 : 3))
        return tool_refuse (error, _ ("one question at a time: what is \"%s\"?"),
                            words[takes_word ? 4 : 3]);
    }
  trace = pto_trace_new_from_file (words[1], error);
  return trace != NULL && answer (trace, words[1], words + 2, error);
}

const ToolCommand tool_trace_command = {
  .name = "trace",
  .purpose = N_ ("tell why a run took as long as it did, from its trace"),
  .operands = N_ ("FILE.ptotrace [QUESTION]"),
  .missing = N_ ("a trace is missing: pto trace FILE.ptotrace (see pto help trace)"),
  .summary = N_ ("Tells what a trace says that `pto run --trace FILE.ptotrace` has saved."),
  .entries = entries,
  .words_title = N_ ("Questions"),
  .words_name = "QUESTION",
  .add_words = add_questions,
  .run = tool_trace,
};
