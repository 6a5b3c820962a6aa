/* top.c: what does a process do just now, and what does it wait for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "top.h"

#include <glib/gi18n.h>
#include <inttypes.h>
#include <pto/pto.h>
#include <string.h>
#include <unistd.h>

#define INTERVAL_MS 500

static gboolean option_once;
static gboolean option_json;
static gboolean option_metrics;
static char *option_interval;

static const GOptionEntry entries[]
    = { { "once", 0, 0, G_OPTION_ARG_NONE, &option_once, N_ ("Tell it once, in lines"), NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("Tell it once, as one JSON object"),
          NULL },
        { "metrics", 0, 0, G_OPTION_ARG_NONE, &option_metrics,
          N_ ("Tell once what it has counted, as OpenMetrics text"), NULL },
        { "interval", 0, 0, G_OPTION_ARG_STRING, &option_interval,
          N_ ("Ask again after so many ms (500)"), N_ ("MS") },
        G_OPTION_ENTRY_NULL };

static gboolean
tell_once (int process, GError **error)
{
  g_autofree char *answer = pto_worker_ask_process (process,
                                                    option_json      ? PTO_ANSWER_FORMAT_JSON
                                                    : option_metrics ? PTO_ANSWER_FORMAT_METRICS
                                                                     : PTO_ANSWER_FORMAT_TEXT,
                                                    tool_get_cancellable (), error);

  if (answer != NULL)
    tool_print (answer, option_json);
  return answer != NULL;
}

static gboolean
parse (const char *what, const char *text, guint64 least, guint64 most, guint64 *value,
       GError **error)
{
  return text == NULL || g_ascii_string_to_unsigned (text, 10, least, most, value, NULL)
         || tool_refuse (error, _ ("%s \"%s\": a number from %" PRIu64 " to %" PRIu64 " is needed"),
                         what, text, least, most);
}

static gboolean
tool_top (char **words, GError **error)
{
  guint64 process, interval = INTERVAL_MS;

  if (words[2] != NULL)
    return tool_refuse (error, _ ("one process at a time, not \"%s\" too"), words[2]);
  if (option_json && option_metrics)
    return tool_refuse (error, _ ("--json and --metrics: one of them at a time"));
  if (!parse (_ ("process"), words[1], 1, G_MAXINT32, &process, error)
      || !parse ("--interval", option_interval, 10, 3600000, &interval, error))
    return FALSE;
  if (option_once || option_json || option_metrics || !top_has_screen ())
    return tell_once ((int) process, error);
  return top_watch ((int) process, (guint) interval, error);
}

const ToolCommand tool_top_command = {
  .name = "top",
  .purpose = N_ ("show what a process does and what it waits for, also one that hangs"),
  .operands = N_ ("PID"),
  .missing = N_ ("which process? pto top PID (see pto help top)"),
  .summary
  = N_ ("Shows what each core, scheduler, child and the submitter of a process does and waits for, "
        "also\nwhen all of them hang. `pto run` can be asked, and programs that were started with "
        "PTO_ANSWER=1."),
  .notes = N_ ("On the screen: q ends it, p pauses, arrows and PgUp, PgDn scroll.\nA process that "
               "answers tells the same on standard error when it gets SIGQUIT (Ctrl-\\)."),
  .entries = entries,
  .run = tool_top,
};
