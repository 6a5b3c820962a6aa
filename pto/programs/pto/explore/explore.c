/* explore.c: does what an example computes depend on the order in which its tasks run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "search.h"
#include "tool.h"

#include "common/stdout.h"

#include "common/json.h"

#include <glib/gi18n.h>
#include <inttypes.h>
#include <string.h>

#define BUDGET 1000
#define SECONDS 60
#define SEED 1
#define TIME_MAX 86400

static char *option_case;
static char *option_platform;
static char **option_set;
static char *option_budget;
static char *option_time;
static char *option_seed;
static char *option_hazards;
static char *option_schedule;
static gboolean option_exact;
static gboolean option_no_isolate;
static gboolean option_json;

static const GOptionEntry entries[] = {
  { "case", 'c', 0, G_OPTION_ARG_STRING, &option_case,
    N_ ("The case to run (default: the manifest's)"), N_ ("CASE") },
  { "platform", 'p', 0, G_OPTION_ARG_STRING, &option_platform,
    N_ ("The chip to simulate, or a file that describes one (default: a2a3sim)"),
    N_ ("PLATFORM|FILE") },
  { "set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &option_set,
    N_ ("Set a parameter of the runtime (pto info lists them); may be given more than once"),
    N_ ("PARAMETER=VALUE") },
  { "budget", 'n', 0, G_OPTION_ARG_STRING, &option_budget,
    N_ ("Try so many schedules (default: 1000)"), N_ ("NUMBER") },
  { "time", 't', 0, G_OPTION_ARG_STRING, &option_time,
    N_ ("Stop after so long, and as long again to shrink what was found (default: 60)"),
    N_ ("SECONDS") },
  { "seed", 0, 0, G_OPTION_ARG_STRING, &option_seed,
    N_ ("The seed of what is drawn: random priorities, pairs (default: 1)"), N_ ("NUMBER") },
  { "hazards", 0, 0, G_OPTION_ARG_STRING, &option_hazards,
    N_ ("Leave out dependencies of these classes in turn, and tell whether the result depends on "
        "them: each, or some of raw,waw,war"),
    N_ ("each|LIST") },
  { "schedule", 0, 0, G_OPTION_ARG_STRING, &option_schedule,
    N_ ("Try this schedule and no other: what was printed, such as 1:0-after-1:3"), N_ ("STRING") },
  { "exact", 0, 0, G_OPTION_ARG_NONE, &option_exact,
    N_ ("Each bit counts: also what is as the reference expects it within its tolerance"), NULL },
  { "no-isolate", 0, 0, G_OPTION_ARG_NONE, &option_no_isolate,
    N_ ("Run in this process: a little faster, but a kernel that crashes may end it"), NULL },
  { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("Print one JSON object, not a table"),
    NULL },
  G_OPTION_ENTRY_NULL
};

/* A class of hazards, and what was found without it. */
static struct
{
  const char *name;
  const char *item; /* of a schedule */
  gboolean is_asked;
  Search search;
} classes[] = { { .name = "raw", .item = "without-raw" },
                { .name = "waw", .item = "without-waw" },
                { .name = "war", .item = "without-war" } };

/* Of a task that was found to matter. */
typedef struct
{
  char *name;
  char *kernel;
  char *place; /* "x.c:12"; NULL: nobody knows */
} Culprit;

/* Two that must be in an order. */
typedef struct
{
  Culprit first;
  Culprit second;
} Pair;

/* --- what was found, in words --- */

static void
culprit_clear (Culprit *culprit)
{
  g_free (culprit->name);
  g_free (culprit->kernel);
  g_free (culprit->place);
}

static void
pair_clear (gpointer data)
{
  culprit_clear (&((Pair *) data)->first);
  culprit_clear (&((Pair *) data)->second);
}

/* Of the last run, which ran it. */
static void
find_culprit (Schedules *schedules, guint task, Culprit *culprit)
{
  const ScheduledTask *known = &g_array_index (schedules->tasks, ScheduledTask, task);
  g_autoptr (PtoTrace) trace = pto_worker_ref_trace (schedules->example->worker);
  g_autofree char *json
      = trace != NULL ? pto_trace_explain_task_json (trace, known->id, NULL) : NULL;
  g_autoptr (JsonNode) root = json != NULL ? json_from_string (json, NULL) : NULL;
  const char *place = NULL;

  if (root != NULL)
    place = json_object_get_string_member_with_default (json_node_get_object (root), "submitted_at",
                                                        NULL);
  *culprit = (Culprit){ .name = schedules_name (schedules, task),
                        .kernel = g_strdup (known->kernel),
                        .place = g_strdup (place) };
}

static GArray *
find_pairs (const Search *search)
{
  GArray *pairs = g_array_new (FALSE, FALSE, sizeof (Pair));
  g_auto (ScheduleResult) ignored = { 0 };

  g_array_set_clear_func (pairs, pair_clear);
  /* In the order of submits all of them have run. */
  if (search->delays != NULL)
    schedules_try (search->schedules, "in-order", &ignored, NULL);
  for (guint i = 0; search->delays != NULL && i < search->delays->len; i++)
    {
      const Delay *delay = &g_array_index (search->delays, Delay, i);
      Pair pair;

      if (delay->until == DELAY_LAST)
        continue;
      find_culprit (search->schedules, delay->task, &pair.first);
      find_culprit (search->schedules, delay->until, &pair.second);
      g_array_append_val (pairs, pair);
    }
  return pairs;
}

/* "task 0 of ring 1 (add), submitted at x.c:12", as other messages have it */
static char *
describe_culprit (const Culprit *culprit)
{
  const char *colon = strchr (culprit->name, ':');
  const char *slash = culprit->place != NULL ? strrchr (culprit->place, '/') : NULL;
  GString *text = g_string_new (NULL);

  g_string_append_printf (text, _ ("task %s of ring %.*s (%s)"), colon + 1,
                          (int) (colon - culprit->name), culprit->name, culprit->kernel);
  if (culprit->place != NULL)
    g_string_append_printf (text, _ (", submitted at %s"),
                            slash != NULL ? slash + 1 : culprit->place);
  return g_string_free (text, FALSE);
}

/* --- what would order them --- */

static gboolean
names_task (const char *line, const Culprit *culprit)
{
  guint64 ring = g_ascii_strtoull (culprit->name, NULL, 10);
  guint64 local = g_ascii_strtoull (strchr (culprit->name, ':') + 1, NULL, 10);
  /* As such a line has it, up to the kernel. */
  g_autofree char *words
      = g_strdup_printf (_ ("task %u of ring %u (%s)"), (guint) local, (guint) ring, "\n");

  *strchr (words, '\n') = '\0';
  return strstr (line, words) != NULL;
}

/* What was found of accesses has a line for each: the one about both, or those about one of them.
 */
static char *
choose_lines (const char *text, const Pair *pair)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  GString *others = g_string_new (NULL);

  for (guint i = 0; lines[i] != NULL; i++)
    {
      gboolean first = names_task (lines[i], &pair->first);
      gboolean second = names_task (lines[i], &pair->second);

      if (first && second)
        {
          g_string_free (others, TRUE);
          return g_strdup (lines[i]);
        }
      if (first || second)
        g_string_append_printf (others, "%s%s", others->len > 0 ? "\n" : "", lines[i]);
    }
  return g_string_free (others, others->len == 0);
}

static gboolean set_parameters (Example *example, gboolean checks, GError **error);

/* Runs it once more, in the order of submits, with its accesses checked, which knows of pairs that
 * no edge orders whoever ran when. NULL: nothing is known. */
static char *
find_advice (const char *directory, const Pair *pair)
{
  g_auto (Example) example = { 0 };
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  g_autoptr (GPtrArray) buffers = NULL;
  g_autoptr (GError) error = NULL;

  if (!example_open (&example, directory, option_case, option_platform, NULL)
      || !set_parameters (&example, TRUE, NULL)
      || !pto_worker_set_parameter (example.worker, "schedule", "in-order", NULL)
      || !example_start (&example, NULL)
      || (buffers = example_add_arguments (&example, args, NULL)) == NULL)
    return NULL;
  return !pto_worker_run_callable (example.worker, example.handle, args, NULL,
                                   tool_get_cancellable (), &error)
                 && g_error_matches (error, PTO_ERROR, PTO_ERROR_ACCESS)
             ? choose_lines (error->message, pair)
             : NULL;
}

/* --- JSON --- */

static void
add_culprit (JsonBuilder *builder, const char *name, const Culprit *culprit)
{
  pto_json_begin_object (builder, name);
  pto_json_add_string (builder, "task", culprit->name);
  pto_json_add_string (builder, "kernel", culprit->kernel);
  pto_json_add_string (builder, "submitted_at", culprit->place);
  json_builder_end_object (builder);
}

static void
add_counts (JsonBuilder *builder, const Search *search)
{
  pto_json_begin_object (builder, "schedules");
  pto_json_add_int (builder, "random", search->n_random);
  pto_json_add_int (builder, "one_delay", search->n_one);
  pto_json_add_int (builder, "one_delay_of", search->of_one);
  pto_json_add_int (builder, "two_delays", search->n_two);
  pto_json_add_int (builder, "two_delays_of", search->of_two);
  pto_json_add_int (builder, "rounded", search->n_rounded);
  pto_json_add_int (builder, "shrinking", search->n_shrinking);
  pto_json_add_boolean (builder, "out_of_time", search->is_out_of_time);
  json_builder_end_object (builder);
}

static void
add_result (JsonBuilder *builder, const ScheduleResult *result)
{
  pto_json_add_boolean (builder, "failed", result->verdict == VERDICT_FAILED);
  pto_json_add_string (builder, "output", result->output != NULL ? result->output->name : NULL);
  json_builder_set_member_name (builder, "element");
  if (result->output != NULL)
    json_builder_add_int_value (builder, (gint64) result->index);
  else
    json_builder_add_null_value (builder);
  pto_json_add_string (builder, "difference", result->text);
}

/* "changed": null, or what was found */
static void
add_found (JsonBuilder *builder, const Search *search, const GArray *pairs, const char *advice)
{
  json_builder_set_member_name (builder, "changed");
  if (search->schedule == NULL)
    {
      json_builder_add_null_value (builder);
      return;
    }
  json_builder_begin_object (builder);
  pto_json_add_string (builder, "schedule", search->schedule);
  pto_json_add_string (builder, "found_as", search->found);
  pto_json_add_boolean (builder, "shrunk", search->is_shrunk);
  add_result (builder, &search->result);
  pto_json_begin_array (builder, "unordered");
  for (guint i = 0; i < pairs->len; i++)
    {
      const Pair *pair = &g_array_index (pairs, Pair, i);

      json_builder_begin_object (builder);
      add_culprit (builder, "first", &pair->first);
      add_culprit (builder, "second", &pair->second);
      json_builder_end_object (builder);
    }
  json_builder_end_array (builder);
  pto_json_add_string (builder, "advice", advice);
  json_builder_end_object (builder);
}

static JsonBuilder *
begin_json (const Schedules *schedules)
{
  const Example *example = schedules->example;
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  pto_json_add_string (builder, "example", example->manifest->name);
  pto_json_add_string (builder, "case", example->item->name);
  pto_json_add_string (builder, "platform", pto_worker_get_platform (example->worker));
  pto_json_add_int (builder, "tasks", schedules->tasks->len);
  pto_json_add_boolean (builder, "passed", schedules->passed);
  pto_json_add_string (builder, "first_bad", schedules->first_bad);
  return builder;
}

/* --- tables --- */

static void
print_head (const Schedules *schedules)
{
  g_autofree char *tasks = tool_group_digits (schedules->tasks->len);
  g_autofree char *verdict = NULL;

  g_print (_ ("%s on %s: %s tasks, one after the other\n"), schedules->example->manifest->name,
           pto_worker_get_platform (schedules->example->worker), tasks);
  example_print_case (schedules->example);
  if (schedules->passed)
    verdict
        = g_strdup_printf (_ ("PASS  max error %.2g"),
                           not_finite_max_error (&schedules->differing, schedules->max_abs_error));
  else
    verdict = g_strdup_printf (_ ("FAIL  %s"), schedules->first_bad);
  tool_print_verdict (_ ("in order"), schedules->passed, verdict);
}

static void
print_counts (const Search *search)
{
  g_autofree char *random = tool_group_digits (search->n_random);
  g_autofree char *one = tool_group_digits (search->n_one);
  g_autofree char *of_one = tool_group_digits (search->of_one);
  g_autofree char *two = tool_group_digits (search->n_two);
  g_autofree char *of_two = tool_group_digits (search->of_two);

  tool_print_row_printf (_ ("schedules"),
                         _ ("%s with random priorities, %s of %s with one task held back, %s of %s "
                            "with two"),
                         random, one, of_one, two, of_two);
  if (search->n_rounded > 0)
    tool_print_row_printf (_ ("rounding"),
                           _ ("%" PRIu64 " gave other bits, within the tolerance of the "
                              "reference (--exact stops at the first)"),
                           search->n_rounded);
}

static const char *
say_why_not (const Search *search)
{
  return search->is_out_of_time ? _ ("out of time: --time") : _ ("out of budget: --budget");
}

static void
print_covered (const Search *search)
{
  if (search->n_one == search->of_one)
    tool_print_row (_ ("covered"), _ ("every two tasks that are in no order, in both orders"));
  if (search->n_one < search->of_one)
    tool_print_row_printf (_ ("not covered"),
                           _ ("orders of pairs that need one of %" PRIu64
                              " other tasks held back (%s), but for what was drawn"),
                           search->of_one - search->n_one, say_why_not (search));
  else if (search->n_two < search->of_two)
    tool_print_row_printf (_ ("not covered"),
                           _ ("%" PRIu64 " other pairs of tasks held back (%s), but for "
                              "what was drawn"),
                           search->of_two - search->n_two, say_why_not (search));
  tool_print_row (search->n_two < search->of_two ? "" : _ ("not covered"),
                  _ ("orders that take three tasks held back, but for what was drawn; kernels that "
                     "run at the same time"));
}

static void
print_found (const Search *search, const GArray *pairs, const char *advice)
{
  tool_print_lines (search->result.verdict == VERDICT_FAILED ? _ ("fails") : _ ("changed"),
                    search->result.text != NULL ? search->result.text : _ ("not once more"));
  if (search->is_shrunk)
    tool_print_row_printf (_ ("schedule"), _ ("%s  (from %s, by %" PRIu64 " others)"),
                           search->schedule, search->found, search->n_shrinking);
  else
    tool_print_row_printf (_ ("schedule"), _ ("%s  (not shrunk to the end)"), search->schedule);
  for (guint i = 0; i < pairs->len; i++)
    {
      const Pair *pair = &g_array_index (pairs, Pair, i);
      g_autofree char *first = describe_culprit (&pair->first);
      g_autofree char *second = describe_culprit (&pair->second);

      tool_print_row_printf (i == 0 ? _ ("in no order") : "", "%s", first);
      tool_print_row_printf ("", _ ("and %s"), second);
    }
  if (advice != NULL)
    tool_print_lines (_ ("accesses"), advice);
}

/* --- the command --- */

/* checks: of the worker that is asked for advice. */
static gboolean
set_parameters (Example *example, gboolean checks, GError **error)
{
  const char *const own[][2] = { { "backend", "det" },
                                 { "schedule", "" },
                                 { "check", checks ? "access" : "none" },
                                 /* Who ran when. */
                                 { "trace", "1" },
                                 { "trace-level", "1" } };
  gboolean is_apart = !checks && !option_no_isolate;
  gboolean ok = TRUE;

  /* Unless somebody says otherwise: whatever a kernel does ends in a message. */
  if (!is_apart || !example_is_in_environment ("isolate"))
    ok = pto_worker_set_parameter (example->worker, "isolate", is_apart ? "1" : "0", error);
  ok = ok && example_set_case (example, error) && example_set_options (example, option_set, error);
  for (guint i = 0; ok && i < G_N_ELEMENTS (own); i++)
    ok = pto_worker_set_parameter (example->worker, own[i][0], own[i][1], error);
  return ok;
}

/* What is typed and is this command's to choose. */
static gboolean
check_set (GError **error)
{
  static const char *const own[] = { "backend", "schedule", "check", "trace", "trace-level" };

  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    if (example_was_set (option_set, own[i]))
      return tool_refuse (error, _ ("--set %s: pto explore sets it itself%s"), own[i],
                          strcmp (own[i], "schedule") == 0 ? _ (": give --schedule") : "");
  if (option_no_isolate && example_was_set (option_set, "isolate"))
    return tool_refuse (
        error,
        _ ("--no-isolate and --set isolate say the same or contradict each other: give one"));
  return TRUE;
}

static gboolean
parse_hazards (GError **error)
{
  g_auto (GStrv) names = g_strsplit (option_hazards, ",", -1);

  for (guint i = 0; i == 0 || names[i] != NULL; i++)
    {
      gboolean is_known = FALSE;

      for (guint c = 0; c < G_N_ELEMENTS (classes) && names[i] != NULL; c++)
        if (strcmp (names[i], "each") == 0 || strcmp (names[i], classes[c].name) == 0)
          is_known = classes[c].is_asked = TRUE;
      if (!is_known)
        return tool_refuse (error, _ ("--hazards %s: each wanted, or some of raw,waw,war"),
                            option_hazards);
    }
  return TRUE;
}

/* One schedule, that somebody has. */
static gboolean
replay (Schedules *schedules, GError **error)
{
  g_auto (ScheduleResult) result = { 0 };
  gboolean is_other;

  if (!schedules_try (schedules, option_schedule, &result, error))
    return FALSE;
  is_other = schedule_result_is_other (&result);
  if (option_json)
    {
      JsonBuilder *builder = begin_json (schedules);

      pto_json_add_string (builder, "schedule", option_schedule);
      pto_json_add_boolean (builder, "changes", is_other);
      pto_json_add_boolean (builder, "rounded", result.verdict == VERDICT_ROUNDED);
      add_result (builder, &result);
      json_builder_end_object (builder);
      tool_print_json (builder);
    }
  else
    {
      print_head (schedules);
      tool_print_row (_ ("schedule"), option_schedule);
      if (result.verdict == VERDICT_SAME)
        tool_print_row (_ ("result"), _ ("the same bits"));
      else if (result.verdict == VERDICT_ROUNDED)
        tool_print_row_printf (_ ("result"), _ ("other bits, within the tolerance: %s"),
                               result.text);
      else
        tool_print_lines (result.verdict == VERDICT_FAILED ? _ ("fails") : _ ("changed"),
                          result.text);
    }
  if (is_other)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
                 _ ("%s: case \"%s\": with the schedule %s the result is another one: %s"),
                 schedules->example->manifest->name, schedules->example->item->name,
                 option_schedule, result.text);
  return !is_other;
}

/* Without one class of hazards. */
static void
print_class (const char *class, const Search *search)
{
  g_autoptr (GArray) pairs = find_pairs (search);
  g_autofree char *name = g_strdup_printf (_ ("without %s"), class);

  if (search->schedule == NULL)
    {
      tool_print_row_printf (name,
                             _ ("no other result in %" PRIu64 " schedules, %" PRIu64 " of %" PRIu64
                                " tasks held back"),
                             search->n_random + search->n_one + search->n_two, search->n_one,
                             search->of_one);
      return;
    }
  tool_print_row_printf (name, "%s  (%s)",
                         search->result.text != NULL ? search->result.text : _ ("not once more"),
                         search->schedule);
  if (pairs->len == 1)
    {
      const Pair *pair = &g_array_index (pairs, Pair, 0);
      g_autofree char *first = describe_culprit (&pair->first);
      g_autofree char *second = describe_culprit (&pair->second);

      tool_print_row_printf ("", _ ("it orders %s"), first);
      tool_print_row_printf ("", _ ("and %s"), second);
    }
}

static const char *
say_why_no_classes (void)
{
  return _ ("not tried: the result depends on the order of tasks anyway, so nothing can be said of "
            "a class");
}

static void
print_all_json (const Search *search, const GArray *pairs, const char *advice)
{
  JsonBuilder *builder = begin_json (search->schedules);

  pto_json_add_int (builder, "seed", search->seed);
  pto_json_add_int (builder, "budget", search->budget);
  add_counts (builder, search);
  add_found (builder, search, pairs, advice);
  if (option_hazards != NULL)
    {
      pto_json_add_string (builder, "without_not_tried",
                           search->schedule != NULL ? say_why_no_classes () : NULL);
      pto_json_begin_object (builder, "without");
      for (guint c = 0; c < G_N_ELEMENTS (classes); c++)
        if (classes[c].search.schedules != NULL)
          {
            g_autoptr (GArray) found = find_pairs (&classes[c].search);

            pto_json_begin_object (builder, classes[c].name);
            add_counts (builder, &classes[c].search);
            add_found (builder, &classes[c].search, found, NULL);
            json_builder_end_object (builder);
          }
      json_builder_end_object (builder);
    }
  json_builder_end_object (builder);
  tool_print_json (builder);
}

static void
print_all (const Search *search, const GArray *pairs, const char *advice)
{
  print_head (search->schedules);
  print_counts (search);
  if (search->schedule != NULL)
    print_found (search, pairs, advice);
  else
    {
      tool_print_row (_ ("result"), search->n_rounded > 0 ? _ ("the same, but for rounding")
                                                          : _ ("the same bits each time"));
      print_covered (search);
    }
  if (option_hazards != NULL && search->schedule != NULL)
    tool_print_row (_ ("hazards"), say_why_no_classes ());
  for (guint c = 0; c < G_N_ELEMENTS (classes); c++)
    if (classes[c].search.schedules != NULL)
      print_class (classes[c].name, &classes[c].search);
}

/* settings: of each search. */
static gboolean
explore (const char *directory, Schedules *schedules, const Search *settings, GError **error)
{
  const Example *example = schedules->example;
  g_auto (Search) search = *settings;
  g_autoptr (GArray) pairs = NULL;
  g_autofree char *advice = NULL;

  search.schedules = schedules;
  if (!search_run (&search, error))
    return FALSE;
  pairs = find_pairs (&search);
  if (pairs->len > 0)
    advice = find_advice (directory, &g_array_index (pairs, Pair, 0));
  /* Of a result that depends on the order anyway nothing can be said of one class. */
  for (guint c = 0; c < G_N_ELEMENTS (classes) && search.schedule == NULL; c++)
    if (classes[c].is_asked)
      {
        classes[c].search = *settings;
        classes[c].search.schedules = schedules;
        classes[c].search.without = classes[c].item;
        if (!search_run (&classes[c].search, error))
          return FALSE;
      }
  if (option_json)
    print_all_json (&search, pairs, advice);
  else
    print_all (&search, pairs, advice);
  if (search.schedule != NULL)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
                 _ ("%s: case \"%s\": the result depends on the order of its tasks: --schedule %s: "
                    "%s"),
                 example->manifest->name, example->item->name, search.schedule,
                 search.result.text != NULL ? search.result.text : _ ("not once more"));
  else if (!schedules->passed)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
                 _ ("%s: case \"%s\": in the order of its submits it is wrong already: %s"),
                 example->manifest->name, example->item->name, schedules->first_bad);
  return search.schedule == NULL && schedules->passed;
}

static gboolean
explore_example (const char *directory, const Search *settings, GError **error)
{
  g_auto (Example) example = { 0 };
  g_auto (Schedules) schedules = { 0 };
  g_autoptr (GError) local = NULL;

  /* What is garbled is told before anything is built. */
  if (!example_open (&example, directory, option_case, option_platform, error)
      || !set_parameters (&example, FALSE, error)
      || !example_set_schedule (&example, option_schedule, error)
      || !example_start (&example, error))
    return FALSE;
  if (!schedules_open (&schedules, &example, option_exact, &local))
    {
      g_set_error (error, TOOL_ERROR, tool_get_status (local), _ ("%s: case \"%s\": %s"),
                   example.manifest->name, example.item->name, local->message);
      return FALSE;
    }
  return option_schedule != NULL ? replay (&schedules, error)
                                 : explore (directory, &schedules, settings, error);
}

static gboolean
tool_explore (char **words, GError **error)
{
  Search settings = { .budget = BUDGET, .seed = SEED };
  guint64 seconds = SECONDS;
  gboolean ok;

  /* What kernels print is no part of it. */
  if (option_json)
    pto_stdout_divert ();
  if (!tool_parse_number ("budget", option_budget, 1, G_MAXUINT32, &settings.budget, error)
      || !tool_parse_number ("time", option_time, 1, TIME_MAX, &seconds, error)
      || !tool_parse_number ("seed", option_seed, 0, G_MAXUINT32, &settings.seed, error)
      || !check_set (error) || (option_hazards != NULL && !parse_hazards (error)))
    return FALSE;
  if (option_schedule != NULL
      && (option_budget != NULL || option_time != NULL || option_seed != NULL
          || option_hazards != NULL))
    return tool_refuse (
        error, _ ("--schedule tries that one: --budget, --time, --seed and --hazards have no "
                  "effect beside it"));
  tool_listen ();
  settings.limit_us = (gint64) seconds * G_USEC_PER_SEC;
  if (option_json)
    tool_begin_document ();
  ok = explore_example (words[1], &settings, error);
  if (option_json)
    tool_end_document ();
  for (guint c = 0; c < G_N_ELEMENTS (classes); c++)
    search_clear (&classes[c].search);
  return ok;
}

const ToolCommand tool_explore_command = {
  .name = "explore",
  .purpose = N_ ("tell whether its result depends on the order in which its tasks run"),
  .operands = N_ ("DIR"),
  .missing = N_ ("which example? pto explore DIR (see pto help explore)"),
  .summary
  = N_ ("Runs the example in DIR under many schedules, one task after the other, and tells whether "
        "its\nresult depends on the order of tasks that no dependency orders: then which two "
        "tasks must be\nordered, and a schedule that shows it, as short as can be."),
  .notes
  = N_ ("Schedules: random priorities, then each task held back as long as anything else can run, "
        "then two\nat a time. The exit status is 1 when one changes the result."),
  .entries = entries,
  .run = tool_explore,
};
