/* calibrate.c: what do kernels take, as traces and tables have it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tool.h"

#include <glib/gi18n.h>
#include <pto/pto.h>

static gboolean option_dry_run;
static gboolean option_json;
static char **option_forget;
static gboolean option_forget_all;

static const GOptionEntry entries[]
    = { { "dry-run", 'n', 0, G_OPTION_ARG_NONE, &option_dry_run,
          N_ ("Tell what the files say by themselves, and keep nothing"), NULL },
        { "forget", 0, 0, G_OPTION_ARG_STRING_ARRAY, &option_forget,
          N_ ("Forget a kernel's times first; may be given more than once"), N_ ("KERNEL") },
        { "forget-all", 0, 0, G_OPTION_ARG_NONE, &option_forget_all, N_ ("Forget all times first"),
          NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("Print one JSON object"), NULL },
        G_OPTION_ENTRY_NULL };

static gboolean
forget (PtoCosts *costs, GError **error)
{
  if (option_forget_all && !pto_costs_forget (costs, NULL, error))
    return FALSE;
  for (guint i = 0; option_forget != NULL && option_forget[i] != NULL; i++)
    if (!pto_costs_forget (costs, option_forget[i], error))
      return FALSE;
  return TRUE;
}

static gboolean
tool_calibrate (char **words, GError **error)
{
  g_auto (GStrv) repeated = NULL;
  g_autoptr (PtoCosts) costs = NULL;
  g_autofree char *text = NULL;

  if (option_dry_run && (option_forget != NULL || option_forget_all))
    return tool_refuse (error, _ ("--dry-run and --forget contradict each other: give one"));
  if (option_dry_run && words[1] == NULL)
    return tool_refuse (error, _ ("--dry-run: of which files? (see pto help calibrate)"));
  costs = pto_costs_new ();
  /* All files or none: what is wrong with the last of them is found before anything changes. */
  for (guint i = 1; words[i] != NULL; i++)
    if (!pto_costs_add_file (costs, words[i], error))
      return FALSE;
  if (!option_dry_run && (!forget (costs, error) || !pto_costs_keep (costs, error)))
    return FALSE;
  repeated = pto_costs_list_repeated (costs);
  for (guint i = 0; repeated[i] != NULL; i++)
    {
      g_autofree char *line = g_strdup_printf (
          _ ("%s: its times were counted before, and are not counted again"), repeated[i]);

      tool_print_error (line);
    }
  text = option_json ? pto_costs_describe_json (costs) : pto_costs_describe (costs);
  tool_print (text, option_json);
  g_print ("%s", option_json ? "\n" : "");
  return TRUE;
}

const ToolCommand tool_calibrate_command = {
  .name = "calibrate",
  .purpose = N_ ("learn from traces and tables what kernels take, for the virtual clock"),
  .operands = N_ ("[FILE.ptotrace|TABLE.csv|TABLE.json]..."),
  .summary
  = N_ ("Adds the times of kernels in traces and tables to the history beside the cache of "
        "kernels, and\ntells what is known there then. `pto run --backend det --costs CLOCK` "
        "uses it."),
  .notes
  = N_ ("Times of a table are on the clock \"chip\", those of a trace on \"cpu\" or, of a run on "
        "det, \"virtual\".\nClocks are never mixed. A table has the columns kernel; us, ns or ms; "
        "and bytes or shape\n(of all tensor arguments: \"float32[128x128] float32[128x128]\")."),
  .entries = entries,
  .run = tool_calibrate,
};
