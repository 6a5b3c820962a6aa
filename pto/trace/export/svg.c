/* svg.c: how does a run look as one still picture?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * From top to bottom: title, numbers, legend; the control threads; one row per core, grouped by
 * cluster; a time axis; charts of ready tasks, live tasks and open scopes. Kernels are told apart
 * by colour, by hatching and by letters, so that the picture survives a colour-blind reader and a
 * printer without colours. Hovering a bar tells the task's story (SVG title). No scripts.
 *
 * A bar that is narrower than a pixel joins its neighbours on the row: the file stays small however
 * long the run was. Rows are placed in svg-rows.c and filled in svg-bars.c;
 * what workers below a level did is in svg-tree.c.
 */
#include "config.h"

#include "svg.h"

#include <math.h>

#define LABELS 116 /* room left of the plot */
#define BUSY 84    /* room right of it */
#define MAX_BARS 6000
#define MAX_INNER_BARS 3000
#define CONTROL_ROW 15
#define READY_CHART 72
#define LIVE_CHART 72
#define SCOPE_CHART 34

static const char *const ring_greys[PTO_RINGS] = { "#33475b", "#6d869c", "#a5b8c8", "#d5dfe7" };

static void
append_definitions (PtoPicture *picture)
{
  GString *text = picture->text;

  g_string_append (text,
                   "<style>\n"
                   "text{font-family:sans-serif;fill:#1d2733}\n"
                   ".title{font-size:22px;font-weight:bold}\n"
                   ".numbers{font-size:14px;fill:#3f4d5c}\n"
                   ".legend{font-size:12.5px}\n"
                   ".head{font-size:12px;font-weight:bold}\n"
                   ".note{font-size:11px;fill:#5b6875}\n"
                   ".axis{font-size:11px;fill:#3f4d5c;text-anchor:middle}\n"
                   ".row{fill:#3f4d5c;text-anchor:end}\n"
                   ".cluster{font-size:10px;fill:#5b6875}\n"
                   ".value{font-size:10px;fill:#5b6875}\n"
                   ".right{font-size:11px;fill:#5b6875;text-anchor:end}\n"
                   ".in{text-anchor:middle;fill:#101820;pointer-events:none;paint-order:stroke;"
                   "stroke-width:2.4;stroke-linejoin:round}\n"
                   ".band{fill:#f5f7f9}\n"
                   ".fold{fill:#fff;stroke:#dfe5ea;stroke-width:1;stroke-dasharray:4 3}\n"
                   ".joined{fill:#5b6875;fill-opacity:.1}\n"
                   ".grid{stroke:#dfe5ea;stroke-width:1;fill:none}\n"
                   ".frame{stroke:#b9c3cc;stroke-width:1;fill:none}\n"
                   ".track{fill:#e6ebef}\n"
                   ".busy{fill:#5d7285}\n"
                   ".submit{stroke:#33475b;stroke-width:.8;fill:none}\n"
                   ".dispatch{stroke:#33475b;stroke-width:.7;fill:none}\n"
                   ".complete{stroke:#8fa2b3;stroke-width:.7;fill:none}\n"
                   ".stall{fill:#e3b7a0}\n"
                   ".critical{stroke:#c8102e;stroke-width:1.7;fill:none;pointer-events:none}\n"
                   ".chain{stroke:#c8102e;stroke-width:.9;fill:none;pointer-events:none}\n"
                   /* Wider than the outline of the critical path, which often ends there. */
                   ".failed{stroke:#000;stroke-width:4;stroke-dasharray:3 2}\n"
                   ".aic{stroke:#1f4e79;stroke-width:1.4;fill:#7cc0ee;fill-opacity:.35}\n"
                   ".aiv{stroke:#8a5a00;stroke-width:1.4;stroke-dasharray:4 2;fill:none}\n"
                   ".depth{fill:#d5dfe7;stroke:#6d869c;stroke-width:1}\n");
  if (picture->analysis->transfers->len > 0)
    g_string_append (text, ".sent{fill:#3b6ea8}\n"
                           ".received{fill:#b86f00}\n");
  for (guint r = 0; r < PTO_RINGS; r++)
    g_string_append_printf (text, ".r%u{fill:%s}\n", r, ring_greys[r]);
  for (guint i = 0; i < picture->legend->list->len; i++)
    g_string_append_printf (text, ".k%u{fill:url(#p%u)}\n.t%u{stroke:%s}\n", i, i, i,
                            pto_legend_get_colour (i));
  g_string_append (text, "</style>\n<defs>\n");

  for (guint i = 0; i < picture->legend->list->len; i++)
    {
      const char *hatching = pto_legend_get_hatching (i);

      g_string_append_printf (text,
                              "<pattern id=\"p%u\" width=\"6\" height=\"6\" "
                              "patternUnits=\"userSpaceOnUse\">"
                              "<rect width=\"6\" height=\"6\" fill=\"%s\"/>",
                              i, pto_legend_get_colour (i));
      if (hatching != NULL)
        g_string_append_printf (text,
                                "<path d=\"%s\" stroke=\"#17324a\" stroke-width=\".9\" "
                                "stroke-opacity=\".5\" fill=\"none\"/>",
                                hatching);
      g_string_append (text, "</pattern>\n");
    }
  g_string_append (text, "</defs>\n");
}

/* Title and numbers; gives the y below them. */
static double
append_header (PtoPicture *picture)
{
  const PtoTraceAnalysis *analysis = picture->analysis;
  PtoTrace *trace = picture->trace;
  g_autoptr (GString) numbers = g_string_new (NULL);
  double y = PTO_SVG_MARGIN + 18;

  pto_svg_append_label (picture, "title", PTO_SVG_MARGIN, y,
                        trace->title[0] != '\0' ? trace->title : "Task graph");

  pto_svg_append_grouped (numbers, analysis->n_tasks);
  g_string_append (numbers, analysis->n_tasks == 1 ? " task  \302\267  " : " tasks  \302\267  ");
  pto_svg_append_grouped (numbers, analysis->n_deps);
  g_string_append (numbers, analysis->n_deps == 1 ? " edge  \302\267  " : " edges  \302\267  ");
  pto_svg_append_microseconds (numbers, analysis->elapsed);
  g_string_append (numbers, trace->topology.virtual_clock ? " of virtual time" : " of wall time");
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    {
      guint n = pto_trace_get_n_of_type (trace, t);

      if (n == 0)
        continue;
      g_string_append_printf (numbers, "  \302\267  %u %s busy ", n,
                              pto_trace_get_type_name (trace, t, n));
      pto_trace_append_fixed (numbers, 100.0 * pto_trace_get_type_utilization (trace, t), 0);
      g_string_append (numbers, " %");
    }
  if (analysis->n_critical > 0)
    {
      g_string_append (numbers, "  \302\267  critical path: ");
      if (pto_trace_knows_critical_submit (analysis))
        {
          pto_svg_append_microseconds (numbers, analysis->critical_submit);
          g_string_append (numbers, " to submit, then ");
        }
      else
        g_string_append (numbers, "its begin was not recorded, then ");
      pto_svg_append_grouped (numbers, analysis->n_critical_tasks);
      g_string_append (numbers, analysis->n_critical_tasks == 1 ? " task in " : " tasks in ");
      pto_svg_append_microseconds (numbers, analysis->critical_ns);
    }
  if (analysis->n_failed > 0)
    g_string_append_printf (numbers, "  \302\267  %u failed", analysis->n_failed);
  if (analysis->transfers->len > 0)
    {
      guint64 sum[PTO_TRACE_N_MOVED];

      pto_trace_sum_core (analysis, PTO_TRACE_NOWHERE, sum);
      g_string_append (numbers, "  \302\267  tensors: ");
      pto_svg_append_moved (numbers, sum);
    }
  if (trace->dropped > 0)
    {
      g_string_append (numbers, "  \302\267  ");
      pto_svg_append_grouped (numbers, trace->dropped);
      g_string_append (numbers, " records dropped");
    }
  y += 25;
  pto_svg_append_label (picture, "numbers", PTO_SVG_MARGIN, y, numbers->str);
  return y + 14;
}

/* A key of the legend: up to two boxes in 24 by 13, and its label. */
typedef struct
{
  const char *label;
  struct
  {
    const char *style;
    double x, y, width, height;
    const char *end;
  } boxes[2];
} Key;

/* Each after the one before it, or on a new line when that is full. Of no boxes: a scheduler's
 * ticks. */
static void
append_key (PtoPicture *picture, const Key *key, double *x, double *y)
{
  double width = 30 + pto_svg_text_width (key->label, 12.5) + 18;
  gboolean is_drawn = FALSE;

  if (*x > PTO_SVG_MARGIN && *x + width > PTO_SVG_WIDTH - PTO_SVG_MARGIN)
    {
      *x = PTO_SVG_MARGIN;
      *y += 22;
    }
  for (guint i = 0; i < G_N_ELEMENTS (key->boxes) && key->boxes[i].style != NULL; i++)
    {
      pto_svg_append_rect (picture->text, key->boxes[i].style, *x + key->boxes[i].x,
                           *y + key->boxes[i].y, key->boxes[i].width, key->boxes[i].height);
      g_string_append (picture->text, key->boxes[i].end);
      is_drawn = TRUE;
    }
  if (!is_drawn)
    pto_svg_append_numbers (picture->text,
                            "<path class=\"dispatch\" d=\"M# #v6m5-6v6m5-6v6\"/>\n"
                            "<path class=\"complete\" d=\"M# #v6m5-6v6m5-6v6\"/>\n",
                            (const double[]){ *x + 6, *y, *x + 8, *y + 7 });
  pto_svg_append_label (picture, "legend", *x + 30, *y + 11, key->label);
  *x += width;
}

static double
append_legend (PtoPicture *picture, double y)
{
  static const Key keys[]
      = { { "critical path", { { "critical", 1, 1, 22, 11, "/>\n" } } },
          { "failed", { { "failed", 2, 2, 20, 9, " fill=\"none\"/>\n" } } },
          { "many short tasks: as high as busy",
            { { "joined", 0, 0, 24, 13, "/>" }, { "k0", 0, 9, 24, 4, "/>\n" } } },
          { "scheduler: dispatch above, complete below", { { NULL } } },
          { "submitter waits", { { "stall", 0, 0, 24, 13, "/>\n" } } },
          { "tensors: sent above, received below",
            { { "sent", 0, 0, 12, 6, "/>" }, { "received", 12, 7, 12, 6, "/>\n" } } } };
  const gboolean is_there[]
      = { TRUE, picture->analysis->n_failed > 0,    picture->has_joined,
          TRUE, picture->analysis->stalls->len > 0, picture->analysis->transfers->len > 0 };
  double x = PTO_SVG_MARGIN;

  for (guint i = 0; i < picture->legend->list->len; i++)
    {
      const PtoShownKernel *entry = pto_legend_get (picture->legend, i);
      gboolean is_long = g_utf8_strlen (entry->name, -1) > 28;
      g_autofree char *style = g_strdup_printf ("k%u", i);
      g_autofree char *start
          = is_long ? g_utf8_substring (entry->name, 0, 27) : g_strdup (entry->name);
      g_autoptr (GString) label = g_string_new (start);
      Key key
          = { NULL, { { style, 0, 0, 24, 13, " stroke=\"#5b6875\" stroke-width=\".6\"/>\n" } } };

      if (is_long)
        g_string_append (label, "\342\200\246");
      g_string_append (label, "  \303\227");
      pto_svg_append_grouped (label, entry->runs);
      key.label = label->str;
      append_key (picture, &key, &x, &y);
    }
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (is_there[i])
      append_key (picture, &keys[i], &x, &y);
  return y + 13 + 12;
}

/* Vertical ticks of one height at these times, half a pixel apart at least. */
static void
append_ticks (PtoPicture *picture, const char *style, const GArray *times, double y, double height)
{
  GString *text = picture->text;
  double last = -1;

  if (times->len == 0)
    return;
  g_string_append_printf (text, "<path class=\"%s\" d=\"", style);
  for (guint i = 0; i < times->len; i++)
    {
      double x = pto_svg_x (picture, g_array_index (times, guint64, i));

      if (i > 0 && x - last < 0.5)
        continue;
      pto_svg_append_numbers (text, "M# #v#", (const double[]){ x, y, height });
      last = x;
    }
  g_string_append (text, "\"/>\n");
}

static void
append_stalls (PtoPicture *picture, double y)
{
  const GArray *stalls = picture->analysis->stalls;
  GString *text = picture->text;

  for (guint i = 0; i < stalls->len;)
    {
      const PtoTraceSpan *stall = &g_array_index (stalls, PtoTraceSpan, i);
      g_autofree char *name = pto_trace_dup_stall_name (stall->what);
      guint64 end = stall->end;
      guint64 waited = stall->end - stall->start;
      double width, height;
      guint n = 1;

      /* Waits that are less than a pixel apart are one box, as high as they took a share of it. */
      for (; i + n < stalls->len; n++)
        {
          const PtoTraceSpan *next = &g_array_index (stalls, PtoTraceSpan, i + n);

          if (pto_svg_x (picture, next->start) - pto_svg_x (picture, end) > 0.7
              || pto_svg_x (picture, next->end) - pto_svg_x (picture, stall->start) > 12)
            break;
          waited += next->end - next->start;
          end = MAX (end, next->end);
        }
      width = MAX ((double) (end - stall->start) * picture->scale, 0.6);
      height = n == 1
                   ? CONTROL_ROW - 3
                   : CLAMP ((double) waited * picture->scale / width, 0.1, 1) * (CONTROL_ROW - 3);
      pto_svg_append_rect (text, "stall", pto_svg_x (picture, stall->start),
                           y + CONTROL_ROW - 2 - height, width, height);
      g_string_append (text, "><title>");
      if (n == 1)
        g_string_append_printf (text, "the submitter waits for %s\n", name);
      else
        g_string_append_printf (text, "the submitter waits %u times\n", n);
      pto_svg_append_microseconds (text, stall->start);
      g_string_append (text, " to ");
      pto_svg_append_microseconds (text, end);
      if (n > 1)
        pto_svg_append_percent (text, waited, stall->start, end);
      g_string_append (text, "</title></rect>\n");
      i += n;
    }
}

/* The control threads. */
static void
append_control (PtoPicture *picture, double y)
{
  const PtoTraceAnalysis *analysis = picture->analysis;
  double width = picture->right - picture->left;
  g_autoptr (GArray) times = g_array_new (FALSE, FALSE, sizeof (guint64));

  pto_svg_append_label (picture, "row\" font-size=\"10", picture->left - 8, y + 11, "orchestrator");
  append_stalls (picture, y);
  for (guint i = 0; i < analysis->n_tasks; i++)
    if (analysis->tasks[i].submit != PTO_TRACE_NEVER)
      g_array_append_val (times, analysis->tasks[i].submit);
  g_array_sort (times, pto_trace_compare_times);
  append_ticks (picture, "submit", times, y + 2.5, CONTROL_ROW - 6);

  for (guint s = 0; s < picture->trace->topology.n_schedulers; s++)
    {
      g_autofree char *name = g_strdup_printf ("scheduler %u", s);
      double top = y + CONTROL_ROW * (s + 1);

      pto_svg_append_label (picture, "row\" font-size=\"10", picture->left - 8, top + 11, name);
      pto_svg_append_numbers (picture->text, "<path class=\"grid\" d=\"M# #h#\"/>\n",
                              (const double[]){ picture->left, top, width });
      for (guint half = 0; half < 2; half++)
        {
          g_array_set_size (times, 0);
          /* A task is dispatched as often as it has ranges of parts, and complete once. */
          for (guint i = 0; i < (half == 0 ? analysis->n_entries : analysis->n_tasks); i++)
            {
              const PtoTraceEntry *task = &analysis->tasks[i];
              guint64 time = half == 0 ? task->dispatch : task->complete;

              if (half == 0 && pto_trace_entry_shares_dispatch (analysis, task))
                continue;
              if (task->scheduler == s && time != PTO_TRACE_NEVER)
                g_array_append_val (times, time);
            }
          g_array_sort (times, pto_trace_compare_times);
          append_ticks (picture, half == 0 ? "dispatch" : "complete", times,
                        half == 0 ? top + 2 : top + 8, 5.5);
        }
    }
}

/* A round distance of ticks, in ns, for about twelve of them. */
static guint64
tick_distance (guint64 span)
{
  static const guint factors[] = { 1, 2, 5 };

  for (guint64 decade = 1; decade < G_MAXUINT64 / 10; decade *= 10)
    for (guint i = 0; i < G_N_ELEMENTS (factors); i++)
      if (span / (decade * factors[i]) <= 13)
        return decade * factors[i];
  return G_MAXUINT64 / 10;
}

static void
append_axis (PtoPicture *picture, double top, double bottom, double label_top, double label_bottom)
{
  GString *text = picture->text;
  guint64 span = MAX (picture->analysis->last, 1);
  guint64 distance = tick_distance (span);
  guint64 n_ticks = span / distance + 1;

  g_string_append (text, "<path class=\"grid\" d=\"");
  for (guint64 i = 0; i < n_ticks; i++)
    pto_svg_append_numbers (text, "M# #V#",
                            (const double[]){ pto_svg_x (picture, i * distance), top, bottom });
  g_string_append (text, "\"/>\n");
  for (guint64 i = 0; i < n_ticks; i++)
    {
      guint64 time = i * distance;
      g_autoptr (GString) label = g_string_new (NULL);

      pto_svg_append_grouped (label, time / 1000);
      if (distance % 1000 != 0)
        {
          g_autofree char *all = g_strdup_printf ("%03u", (guint) (time % 1000));

          g_string_append_c (label, '.');
          g_string_append_len (label, all, distance % 100 == 0 ? 1 : distance % 10 == 0 ? 2 : 3);
        }
      pto_svg_append_label (picture, "axis", pto_svg_x (picture, time), label_top, label->str);
      pto_svg_append_label (picture, "axis", pto_svg_x (picture, time), label_bottom, label->str);
    }
}

/* From a point down to the task's row at once, then along it for as long as the task waited. */
static void
append_link (const PtoPicture *picture, GString *chain, double x, double y,
             const PtoTraceEntry *task)
{
  pto_svg_append_numbers (chain, "M# #V#H#",
                          (const double[]){ x, y, picture->core_top[task->core] + picture->row / 2,
                                            pto_svg_x (picture, task->start) });
}

/* An outline around every task of the path, and a line from each to the next. It begins on the
 * submitter's row, which is outlined up to the first task's submit, if that was recorded. */
static void
append_critical_path (PtoPicture *picture)
{
  const PtoTraceAnalysis *analysis = picture->analysis;
  GString *text = picture->text;
  g_autoptr (GString) chain = g_string_new (NULL);
  const PtoTraceEntry *before = NULL;
  double last_x = -1;
  guint last_core = G_MAXUINT;

  if (analysis->n_critical > 0 && pto_trace_knows_critical_submit (analysis))
    {
      const PtoTraceEntry *first = &analysis->tasks[analysis->critical[0]];
      double submit = pto_svg_x (picture, analysis->critical_submit);

      pto_svg_append_box (picture, "critical", picture->left, picture->control_top + 1,
                          MAX (submit - picture->left, 0.3), CONTROL_ROW - 3);
      append_link (picture, chain, submit, picture->control_top + CONTROL_ROW - 2, first);
    }
  for (guint i = 0; i < analysis->n_critical; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[analysis->critical[i]];
      double x = pto_svg_x (picture, task->start);
      double end = pto_svg_x (picture, task->end);
      double top = picture->core_top[task->core];

      if (before != NULL && before->core != task->core)
        append_link (picture, chain, pto_svg_x (picture, before->end),
                     picture->core_top[before->core] + picture->row / 2, task);
      before = task;
      /* What ends in the same pixel as the outline before it would only make the red thicker. */
      if (task->core == last_core && end - last_x < 1)
        continue;
      pto_svg_append_box (picture, "critical", x, top + 0.5, MAX (end - x - 0.5, 0.3),
                          picture->row - 1);
      last_x = end;
      last_core = task->core;
    }
  if (chain->len > 0)
    {
      /* Many lines side by side would cover the rows. */
      const double opacity = CLAMP (120.0 / analysis->n_critical, 0.2, 0.8);

      pto_svg_append_numbers (text, "<path class=\"chain\" opacity=\"#\" d=\"", &opacity);
      g_string_append_printf (text, "%s\"/>\n", chain->str);
    }
}

/* The highest value of a chart in each of n columns of pixels. Caller frees. */
static guint32 *
sample (const PtoPicture *picture, const GArray *steps, guint n)
{
  guint32 *columns = g_new0 (guint32, n);
  guint32 value = 0;
  guint at = 0;

  for (guint i = 0; i <= steps->len; i++)
    {
      const PtoTraceStep *step = i < steps->len ? &g_array_index (steps, PtoTraceStep, i) : NULL;
      guint column
          = step != NULL ? (guint) (pto_svg_x (picture, step->time) - picture->left) : n - 1;

      column = MIN (column, n - 1);
      for (; at < column; at++)
        columns[at] = MAX (columns[at], value);
      columns[column] = MAX (columns[column], value);
      if (step == NULL)
        break;
      value = step->value;
    }
  return columns;
}

/* A filled step chart between two curves: low (NULL: the ground) and high. */
static void
append_steps (PtoPicture *picture, const char *style, const guint32 *low, const guint32 *high,
              guint n, double ground, double unit)
{
  GString *text = picture->text;

  g_string_append_printf (text, "<path class=\"%s\" d=\"", style);
  pto_svg_append_numbers (text, "M# #V#",
                          (const double[]){ picture->left,
                                            ground - unit * (low != NULL ? low[0] : 0),
                                            ground - unit * high[0] });
  for (guint i = 1; i < n; i++)
    if (high[i] != high[i - 1])
      pto_svg_append_numbers (text, "H#V#",
                              (const double[]){ picture->left + i, ground - unit * high[i] });
  pto_svg_append_numbers (
      text, "H#V#",
      (const double[]){ picture->right, ground - unit * (low != NULL ? low[n - 1] : 0) });
  for (guint i = n - 1; low != NULL && i > 0; i--)
    if (low[i] != low[i - 1])
      pto_svg_append_numbers (text, "H#V#",
                              (const double[]){ picture->left + i, ground - unit * low[i - 1] });
  g_string_append (text, "Z\"/>\n");
}

static guint32
highest (const guint32 *columns, guint n)
{
  guint32 most = 0;

  for (guint i = 0; i < n; i++)
    most = MAX (most, columns[i]);
  return most;
}

/* Ground line, name at the left, the scale's end at the right. Gives the ground's y. */
static double
append_chart_frame (PtoPicture *picture, double y, double height, const char *name,
                    const char *note, guint32 most)
{
  g_autoptr (GString) value = g_string_new (NULL);
  double ground = y + height;

  pto_svg_append_numbers (
      picture->text,
      "<path class=\"frame\" d=\"M# #H#\"/>\n"
      "<path class=\"grid\" d=\"M# #H#\"/>\n",
      (const double[]){ picture->left, ground, picture->right, picture->left, y, picture->right });
  pto_svg_append_label (picture, "head", PTO_SVG_MARGIN + 4, y + 12, name);
  pto_svg_append_label (picture, "note", PTO_SVG_MARGIN + 4, y + 27, note);
  pto_svg_append_grouped (value, most);
  pto_svg_append_label (picture, "value", picture->right + 10, y + 4, value->str);
  pto_svg_append_label (picture, "value", picture->right + 10, ground + 3, "0");
  return ground;
}

static void
append_chart_key (PtoPicture *picture, const char *style, double x, double y, const char *label)
{
  pto_svg_append_box (picture, style, x, y - 8, 12, 8);
  pto_svg_append_label (picture, "note", x + 16, y, label);
}

/* Three charts below the rows; gives the y below them. */
static double
append_charts (PtoPicture *picture, double y)
{
  const PtoTraceAnalysis *analysis = picture->analysis;
  guint n = (guint) (picture->right - picture->left);
  g_autofree guint32 *aic = sample (picture, analysis->ready[PTO_CORE_TYPE_AIC], n);
  g_autofree guint32 *aiv = sample (picture, analysis->ready[PTO_CORE_TYPE_AIV], n);
  g_autofree guint32 *depth = sample (picture, analysis->depth, n);
  g_autofree guint32 *total = g_new0 (guint32, n);
  guint32 *levels[PTO_RINGS + 1] = { NULL };
  guint32 most = MAX (highest (aic, n), highest (aiv, n));
  guint keys = 0;
  double ground;

  ground = append_chart_frame (picture, y, READY_CHART, "ready tasks", "not dispatched", most);
  append_steps (picture, "aic", NULL, aic, n, ground, READY_CHART / (double) MAX (most, 1));
  /* Of a level there is one kind of ready tasks. */
  if (!pto_trace_is_level (picture->trace))
    {
      append_steps (picture, "aiv", NULL, aiv, n, ground, READY_CHART / (double) MAX (most, 1));
      append_chart_key (picture, "aic", PTO_SVG_MARGIN + 4, y + 43, "AIC");
      append_chart_key (picture, "aiv", PTO_SVG_MARGIN + 54, y + 43, "AIV");
    }
  y += READY_CHART + 20;

  for (guint r = 0; r < PTO_RINGS; r++)
    {
      g_autofree guint32 *ring = sample (picture, analysis->live[r], n);

      levels[r] = g_memdup2 (total, n * sizeof (guint32));
      for (guint i = 0; i < n; i++)
        total[i] += ring[i];
    }
  levels[PTO_RINGS] = g_memdup2 (total, n * sizeof (guint32));
  most = highest (total, n);
  ground = append_chart_frame (picture, y, LIVE_CHART, "live tasks", "slots, by ring", most);
  for (guint r = 0; r < analysis->rings; r++)
    {
      g_autofree char *style = g_strdup_printf ("r%u", r);
      g_autofree char *label = g_strdup_printf ("%u", r);

      if (analysis->live[r]->len == 0)
        continue;
      append_steps (picture, style, levels[r], levels[r + 1], n, ground,
                    LIVE_CHART / (double) MAX (most, 1));
      append_chart_key (picture, style, PTO_SVG_MARGIN + 4 + 28 * keys++, y + 43, label);
    }
  for (guint r = 0; r <= PTO_RINGS; r++)
    g_free (levels[r]);
  y += LIVE_CHART + 20;

  most = highest (depth, n);
  ground = append_chart_frame (picture, y, SCOPE_CHART, "open scopes", "how deep", most);
  append_steps (picture, "depth", NULL, depth, n, ground, SCOPE_CHART / (double) MAX (most, 1));
  return ground;
}

/**
 * pto_trace_to_svg:
 * @self: a trace
 *
 * Draws the run: a row for each control thread and each core, a bar for each run of a kernel, the
 * critical path in red, and charts of ready tasks, live tasks and open scopes below. Of a worker of
 * level 3 or up it is a row for each child, and below that of a worker one for each core that did
 * something inside of its tasks, as far as there is room. Clusters in which nothing ran are one
 * line, which says how many and which; so are workers of a kind that had no task. A bar lasts as
 * long as its kernel, waits of that for other kernels (pto_sync_all(), pipes) included, in which a
 * core is not busy. A task of several blocks has a bar for each, which says its number where it is
 * pointed at, and is one of the ready tasks until the last is dispatched. Waits of the
 * orchestration for an element, too, are tasks, which run nothing. What of tensors travels to a
 * worker that shares no memory with the run is half a bar on its row, sent above, received below.
 *
 * The picture needs no scripts and no fonts of its own. It stays below three megabytes, with
 * workers inside below four: bars that are narrower than a pixel are drawn together, as one that is
 * as high as they took a share of it. A task is named as [method@Pto.Trace.explain] takes it: `17`,
 * or `1:17` of ring 1.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): an SVG document
 *
 * Since: 0.1
 */
char *
pto_trace_to_svg (PtoTrace *self)
{
  PtoPicture picture = { 0 };
  g_autoptr (GString) body = NULL;
  GString *document;
  double y, axis_top, charts_top;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  picture.trace = self;
  picture.analysis = pto_trace_get_analysis (self);
  picture.text = g_string_new (NULL);
  picture.shown = pto_shown_list_rows (self);
  picture.legend = pto_legend_new (self, picture.shown);
  picture.runs = pto_svg_rows_new ();
  picture.transfers = pto_svg_rows_new ();
  picture.inner = pto_svg_rows_new ();
  picture.left = PTO_SVG_MARGIN + LABELS;
  picture.right = PTO_SVG_WIDTH - PTO_SVG_MARGIN - BUSY;
  picture.scale = (picture.right - picture.left) / (double) MAX (picture.analysis->last, 1);
  pto_svg_collect_runs (&picture);
  pto_svg_collect_transfers (&picture);
  pto_svg_collect_inner (&picture);
  picture.narrow = pto_svg_measure_bars (&picture, picture.runs, picture.transfers, MAX_BARS);
  picture.inner_narrow = pto_svg_measure_bars (&picture, picture.inner, NULL, MAX_INNER_BARS);

  append_definitions (&picture);
  y = append_header (&picture);
  y = append_legend (&picture, y);
  axis_top = y + 12;
  y = axis_top + 8;
  picture.control_top = y;
  y = pto_svg_place_cores (&picture, y + CONTROL_ROW * (1 + self->topology.n_schedulers) + 18);
  pto_svg_append_box (&picture, "band", PTO_SVG_MARGIN, picture.control_top,
                      picture.right - PTO_SVG_MARGIN,
                      CONTROL_ROW * (1 + self->topology.n_schedulers));
  pto_svg_append_core_labels (&picture);
  append_axis (&picture, picture.control_top, y, axis_top, y + 16);
  pto_svg_append_fold (&picture);
  append_control (&picture, picture.control_top);
  charts_top = y + 44;
  pto_svg_append_transfers (&picture);
  pto_svg_append_runs (&picture);
  pto_svg_append_inner (&picture);
  append_critical_path (&picture);
  pto_svg_append_label (&picture, "note", PTO_SVG_MARGIN + 4, picture.rows_bottom + 16,
                        self->topology.virtual_clock ? "virtual clock, \302\265s"
                                                     : "wall clock, \302\265s");
  if (picture.analysis->n_tasks == 0)
    pto_svg_append_label (&picture, "numbers", picture.left + 12,
                          picture.control_top + CONTROL_ROW - 3, "No task was recorded.");
  y = append_charts (&picture, charts_top) + PTO_SVG_MARGIN;

  document = g_string_new ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  g_string_append_printf (document,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                          "viewBox=\"0 0 %d %d\">\n<title>",
                          PTO_SVG_WIDTH, (int) ceil (y), PTO_SVG_WIDTH, (int) ceil (y));
  pto_svg_append_escaped (document, self->title[0] != '\0' ? self->title : "Task graph");
  g_string_append_printf (document, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
                          PTO_SVG_WIDTH, (int) ceil (y));
  g_string_append_len (document, picture.text->str, (gssize) picture.text->len);
  g_string_append (document, "</svg>\n");

  g_string_free (picture.text, TRUE);
  pto_legend_free (picture.legend);
  g_ptr_array_unref (picture.shown);
  g_ptr_array_unref (picture.runs);
  g_ptr_array_unref (picture.transfers);
  g_ptr_array_unref (picture.inner);
  g_free (picture.n_inner);
  g_free (picture.core_top);
  g_free (picture.is_folded);
  return g_string_free (document, FALSE);
}
