/* html.c: how does a person look into a run, with a browser?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One page that needs nothing else: the parts in report/, and the records as JSON. Of a level
 * all runs below it are in one table, in the time of the outermost trace. Columns are arrays of
 * numbers: 100 000 tasks are some MB, and JSON.parse() has them in a moment.
 *
 * Nothing that a user has named is markup here: names are strings of the JSON, in which no < is
 * written as such, and the page shows them as text.
 */
#include "config.h"

#include "html.h"
#include "pto-report-resources.h"
#include "svg.h"

#include <string.h>

/* --- what is to be shown --- */

/* Each source file once, whatever number it has in the trace of a run. */
static void
collect_files (PtoHtmlPage *page)
{
  g_autoptr (GHashTable) numbers = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint s = 0; s < page->n_sections; s++)
    {
      PtoHtmlSection *section = &page->sections[s];
      PtoTrace *trace = section->part->trace;

      section->files = g_new (guint32, MAX (trace->n_files, 1));
      for (guint i = 0; i < trace->n_files; i++)
        {
          gpointer number;

          if (!g_hash_table_lookup_extended (numbers, trace->files[i], NULL, &number))
            {
              number = GUINT_TO_POINTER (page->files->len);
              g_ptr_array_add (page->files, trace->files[i]);
              g_hash_table_insert (numbers, trace->files[i], number);
            }
          section->files[i] = GPOINTER_TO_UINT (number);
        }
    }
}

/* Those that never ran come last. */
static void
collect_kernels (PtoHtmlPage *page)
{
  for (guint s = 0; s < page->n_sections; s++)
    {
      const PtoTracePart *part = page->sections[s].part;

      for (guint i = 0; i < part->analysis->n_entries; i++)
        pto_legend_find (page->legend, part, part->analysis->tasks[i].kernel);
    }
}

static void
collect_sections (PtoHtmlPage *page)
{
  const GPtrArray *parts = pto_trace_get_parts (page->trace);

  page->n_sections = parts->len;
  page->sections = g_new (PtoHtmlSection, parts->len);
  for (guint s = 0; s < parts->len; s++)
    {
      PtoHtmlSection *section = &page->sections[s];

      section->part = g_ptr_array_index (parts, s);
      section->rows = g_new (guint32, MAX (section->part->analysis->n_cores, 1));
      for (guint c = 0; c < section->part->analysis->n_cores; c++)
        section->rows[c] = PTO_TRACE_NOWHERE;
    }
  for (guint r = 0; r < page->rows->len; r++)
    {
      const PtoShownRow *row = g_ptr_array_index (page->rows, r);

      for (guint i = 0; i < row->parts->len; i++)
        page->sections[((const PtoTracePart *) g_ptr_array_index (row->parts, i))->number]
            .rows[row->core]
            = r;
    }
  collect_kernels (page);
  collect_files (page);
}

/* --- JSON --- */

/* Nobody knows where: -1. */
static gint64
get_file (const PtoHtmlSection *section, guint32 file)
{
  return file != PTO_TRACE_NOWHERE ? (gint64) section->files[file] : -1;
}

static gint64
or_less (guint32 number)
{
  return number != PTO_TRACE_NOWHERE ? (gint64) number : -1;
}

/* A length of time of a run in that of the outermost trace. */
static gint64
scale_length (const PtoTracePart *part, guint64 ns)
{
  for (; part->parent != NULL; part = part->parent)
    {
      const struct pto_scale scale = { .from = part->from, .to = part->to };

      ns = pto_scale (MIN (ns, part->from), &scale);
    }
  return (gint64) ns;
}

/* Times in the order in which they come as a rule; "last": by how many entries its last producer to
 * arrive is before a task; waits from its submit to its start, null: not known; "waited": of its
 * run, for other kernels. */
static const char *const task_columns[]
    = { "ring",      "local",          "kernel", "row",      "scheduler", "flags", "block",
        "priority",  "file",           "line",   "submit",   "submitted", "ready", "dispatch",
        "ack",       "start",          "end",    "complete", "retire",    "last",  "wait_data",
        "wait_core", "wait_scheduler", "waited" };

/* Positions of some. */
enum
{
  COLUMN_BLOCK = 6, /* only where there is one, as priority and waited */
  COLUMN_PRIORITY,
  COLUMN_FILE,
  COLUMN_LINE,
  COLUMN_SUBMIT,
  COLUMN_LAST = COLUMN_SUBMIT + 9,
  COLUMN_WAITS,
  COLUMN_WAITED = COLUMN_WAITS + 3,
  N_COLUMNS
};

G_STATIC_ASSERT (G_N_ELEMENTS (task_columns) == N_COLUMNS);

/* A time counts from the one before it of the same task that is known; the first of a task from the
 * last submit that is known. Never: null. */
static void
fill_times (const PtoTracePart *part, const PtoTraceEntry *task, guint64 *last_submit,
            gint64 *values)
{
  const guint64 times[]
      = { task->submit, task->submit_end, task->ready,    task->dispatch, task->ack,
          task->start,  task->end,        task->complete, task->retire };
  guint64 base = *last_submit;

  for (guint t = 0; t < G_N_ELEMENTS (times); t++)
    {
      guint64 time = pto_trace_part_time (part, times[t]);

      values[t] = time != PTO_TRACE_NEVER ? (gint64) (time - base) : PTO_HTML_NOTHING;
      if (time != PTO_TRACE_NEVER)
        base = time;
      if (t == 0)
        *last_submit = base;
    }
}

static void
fill_waits (const PtoTracePart *part, const PtoTraceEntry *task, gint64 *values)
{
  PtoTraceWaits waits;

  values[0] = values[1] = values[2] = PTO_HTML_NOTHING;
  if (task->submit == PTO_TRACE_NEVER
      || !pto_trace_get_waits (part->analysis, part->trace, task, task->submit, &waits))
    return;
  values[0] = scale_length (part, waits.data);
  values[1] = scale_length (part, waits.core);
  values[2] = scale_length (part, waits.scheduler);
}

static void
append_tasks (PtoHtmlPage *page)
{
  PtoHtmlTable *table = pto_html_table_new (task_columns, N_COLUMNS);
  guint32 left_out = 1u << COLUMN_BLOCK | 1u << COLUMN_PRIORITY | 1u << COLUMN_WAITED;
  guint64 submit = 0;
  gint64 local = 0;

  if (page->files->len == 0)
    left_out |= 1u << COLUMN_FILE | 1u << COLUMN_LINE;
  for (guint s = 0; s < page->n_sections; s++)
    {
      const PtoHtmlSection *section = &page->sections[s];
      const PtoTracePart *part = section->part;

      for (guint i = 0; i < part->analysis->n_entries; i++)
        {
          const PtoTraceEntry *task = &part->analysis->tasks[i];
          gint64 values[N_COLUMNS]
              = { PTO_TASK_RING (task->id),
                  PTO_TASK_LOCAL (task->id) - local,
                  pto_legend_find (page->legend, part, task->kernel),
                  task->core < part->analysis->n_cores ? (gint64) section->rows[task->core] : -1,
                  or_less (task->scheduler),
                  (task->failed != 0 ? 1 : 0)
                      | (pto_trace_entry_shares_dispatch (part->analysis, task) ? 2 : 0),
                  or_less (task->block),
                  task->terms.priority,
                  get_file (section, task->file),
                  task->line };

          fill_times (part, task, &submit, values + COLUMN_SUBMIT);
          values[COLUMN_LAST] = task->last_producer != PTO_TRACE_NOWHERE
                                    ? (gint64) i - task->last_producer
                                    : PTO_HTML_NOTHING;
          fill_waits (part, task, values + COLUMN_WAITS);
          values[COLUMN_WAITED] = scale_length (part, task->waited);
          pto_html_table_add (table, values);
          local = PTO_TASK_LOCAL (task->id);
          if (task->block != PTO_TRACE_NOWHERE)
            left_out &= ~(1u << COLUMN_BLOCK);
          if (task->terms.priority > 0)
            left_out &= ~(1u << COLUMN_PRIORITY);
          if (task->waited > 0)
            left_out &= ~(1u << COLUMN_WAITED);
        }
    }
  pto_html_table_end_object (table, page->text, "tasks", left_out);
}

/* Which entries are members of a group, or parts of a task, beside the task itself. */
static void
append_members (PtoHtmlPage *page)
{
  static const char *const names[] = { "member_task", "member_first", "member_n" };
  PtoHtmlTable *table = pto_html_table_new (names, G_N_ELEMENTS (names));

  for (guint s = 0; s < page->n_sections; s++)
    {
      const PtoTracePart *part = page->sections[s].part;

      for (guint i = 0; i < part->analysis->n_tasks; i++)
        {
          const PtoTraceEntry *task = &part->analysis->tasks[i];
          const gint64 values[]
              = { part->first_entry + i, part->first_entry + task->first_member, task->n_members };

          if (task->n_members > 0)
            pto_html_table_add (table, values);
        }
    }
  pto_html_table_end (table, page->text, 0);
}

/* By consumer, ascending; producers by how many entries they are before it, null when their records
 * were dropped: those are in "gone", edge by edge. Where it is known of one edge, also which
 * arguments of both are why, and which bytes of the consumer's; -1: not known. */
static void
append_edges (PtoHtmlPage *page)
{
  static const char *const names[] = { "consumer", "producer", "kinds" };
  static const char *const gone_names[] = { "gone" };
  static const char *const cause_names[]
      = { "consumer_argument", "producer_argument", "from", "bytes" };
  PtoHtmlTable *edges = pto_html_table_new (names, G_N_ELEMENTS (names));
  PtoHtmlTable *gone = pto_html_table_new (gone_names, 1);
  PtoHtmlTable *causes = pto_html_table_new (cause_names, G_N_ELEMENTS (cause_names));
  gboolean has_causes = FALSE;
  gint64 last = 0;

  for (guint s = 0; s < page->n_sections; s++)
    {
      const PtoTracePart *part = page->sections[s].part;

      for (guint i = 0; i < part->analysis->n_deps; i++)
        {
          const PtoTraceDep *dep = &part->analysis->deps[i];
          gboolean is_gone = dep->producer_index == PTO_TRACE_NOWHERE;
          gboolean is_known = dep->consumer_arg != PTO_TRACE_NOWHERE;
          gint64 consumer = part->first_entry + dep->consumer;
          const gint64 id = (gint64) dep->producer;
          const gint64 values[]
              = { consumer - last,
                  is_gone ? PTO_HTML_NOTHING : (gint64) dep->consumer - dep->producer_index,
                  dep->kinds };
          const gint64 unknown[] = { -1, -1, -1, -1 };
          const gint64 cause[]
              = { dep->consumer_arg, dep->producer_arg, (gint64) dep->from, (gint64) dep->bytes };

          pto_html_table_add (edges, values);
          if (is_gone)
            pto_html_table_add (gone, &id);
          pto_html_table_add (causes, is_known ? cause : unknown);
          has_causes = has_causes || is_known;
          last = consumer;
        }
    }
  g_string_append_printf (page->text, ",\n\"edges\":{\"n\":%u", edges->n_lines);
  pto_html_table_end (edges, page->text, 0);
  pto_html_table_end (gone, page->text, 0);
  pto_html_table_end (causes, page->text, has_causes ? 0 : G_MAXUINT32);
  g_string_append_c (page->text, '}');
}

static void
append_strip (GString *text, const char *kind, const char *name, const GArray *steps)
{
  static const char *const names[] = { "time", "value" };
  PtoHtmlTable *table;
  guint64 last = 0;

  if (steps->len == 0)
    return;
  pto_html_separate (text);
  g_string_append_printf (text, "\n{\"kind\":\"%s\"", kind);
  pto_html_append_member (text, "name", name);
  table = pto_html_table_new (names, G_N_ELEMENTS (names));
  for (guint i = 0; i < steps->len; i++)
    {
      const PtoTraceStep *step = &g_array_index (steps, PtoTraceStep, i);
      const gint64 values[] = { (gint64) (step->time - last), (gint64) step->value };

      pto_html_table_add (table, values);
      last = step->time;
    }
  pto_html_table_end (table, text, 0);
  g_string_append_c (text, '}');
}

/* Of the outermost trace. */
static void
append_strips (PtoHtmlPage *page)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (page->trace);
  static const char *const kinds[] = { "live", "heap", "pool" };
  GArray *const *const rings[] = { analysis->live, analysis->heap, analysis->edges };
  gboolean is_level = pto_trace_is_level (page->trace);

  pto_html_begin_column (page->text, "strips");
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    if (t == 0 || !is_level)
      append_strip (page->text, "ready",
                    is_level ? "tasks" : pto_trace_get_type_name (page->trace, t, 1),
                    analysis->ready[t]);
  for (guint kind = 0; kind < 3; kind++)
    for (guint r = 0; r < PTO_RINGS; r++)
      {
        g_autofree char *name = g_strdup_printf ("ring %u", r);

        append_strip (page->text, kinds[kind], name, rings[kind][r]);
      }
  append_strip (page->text, "map", "nodes", analysis->nodes);
  append_strip (page->text, "scopes", "open scopes", analysis->depth);
  append_strip (page->text, "moved", "sent", analysis->moved[PTO_TRACE_SENT]);
  append_strip (page->text, "moved", "received", analysis->moved[PTO_TRACE_RECEIVED]);
  append_strip (page->text, "moved", "saved", analysis->moved[PTO_TRACE_SAVED]);
  pto_html_end_column (page->text);
}

/* Of the outermost trace: by start, outer before inner. A file of -1: nobody knows. */
static void
append_scopes (PtoHtmlPage *page)
{
  static const char *const names[] = { "start", "length", "depth", "file", "line" };
  const GArray *scopes = pto_trace_get_analysis (page->trace)->scopes;
  PtoHtmlTable *table = pto_html_table_new (names, G_N_ELEMENTS (names));
  guint64 last = 0;

  for (guint i = 0; i < scopes->len; i++)
    {
      const PtoTraceSpan *scope = &g_array_index (scopes, PtoTraceSpan, i);
      const gint64 values[] = { (gint64) (scope->start - last),
                                (gint64) (scope->end - scope->start), (gint64) scope->what,
                                get_file (&page->sections[0], scope->file), (gint64) scope->line };

      pto_html_table_add (table, values);
      last = scope->start;
    }
  pto_html_table_end_object (table, page->text, "scopes", 0);
}

/* What the submitter waited for. */
static void
append_stalls (PtoHtmlPage *page)
{
  const GArray *stalls = pto_trace_get_analysis (page->trace)->stalls;

  pto_html_begin_column (page->text, "stalls");
  for (guint i = 0; i < stalls->len; i++)
    {
      const PtoTraceSpan *stall = &g_array_index (stalls, PtoTraceSpan, i);
      g_autofree char *name = pto_trace_dup_stall_name (stall->what);

      pto_html_separate (page->text);
      g_string_append_printf (page->text, "{\"start\":%" G_GUINT64_FORMAT, stall->start);
      pto_html_append_number (page->text, "end", stall->end);
      pto_html_append_member (page->text, "name", name);
      g_string_append_c (page->text, '}');
    }
  pto_html_end_column (page->text);
}

static void
append_kernels (PtoHtmlPage *page)
{
  pto_html_begin_column (page->text, "kernels");
  for (guint i = 0; i < page->legend->list->len; i++)
    {
      const char *hatching = pto_legend_get_hatching (i);

      pto_html_separate (page->text);
      g_string_append_printf (page->text, "\n{\"colour\":\"%s\"", pto_legend_get_colour (i));
      pto_html_append_member (page->text, "hatching", hatching != NULL ? hatching : "");
      pto_html_append_member (page->text, "name", pto_legend_get (page->legend, i)->name);
      g_string_append_c (page->text, '}');
    }
  pto_html_end_column (page->text);
}

static void
append_rows (PtoHtmlPage *page)
{
  pto_html_begin_column (page->text, "rows");
  for (guint i = 0; i < page->rows->len; i++)
    {
      const PtoShownRow *row = g_ptr_array_index (page->rows, i);
      guint64 busy = 0;

      for (guint k = 0; k < row->parts->len; k++)
        busy += ((const PtoTracePart *) g_ptr_array_index (row->parts, k))
                    ->analysis->core_busy[row->core];
      pto_html_separate (page->text);
      g_string_append_printf (page->text, "\n{\"parent\":%d", row->parent);
      pto_html_append_number (page->text, "depth", row->depth);
      pto_html_append_number (page->text, "cluster", row->cluster);
      pto_html_append_number (page->text, "busy", busy);
      pto_html_append_member (page->text, "kind", row->kind);
      pto_html_append_member (page->text, "name", row->name);
      pto_html_append_member (page->text, "path", row->path);
      g_string_append_c (page->text, '}');
    }
  pto_html_end_column (page->text);
}

static void
append_sections (PtoHtmlPage *page)
{
  pto_html_begin_column (page->text, "sections");
  for (guint i = 0; i < page->n_sections; i++)
    {
      const PtoTracePart *part = page->sections[i].part;

      pto_html_separate (page->text);
      g_string_append_printf (page->text, "\n{\"first\":%u", part->first_entry);
      pto_html_append_number (page->text, "tasks", part->analysis->n_tasks);
      pto_html_append_number (page->text, "entries", part->analysis->n_entries);
      pto_html_append_number (page->text, "parent", part->parent ? part->parent->number : i);
      g_string_append_printf (page->text, ",\"task\":%" G_GINT64_FORMAT, or_less (part->task));
      pto_html_append_flag (page->text, "virtual", part->trace->topology.virtual_clock);
      if (part->parent != NULL)
        {
          pto_html_append_number (page->text, "begin",
                                  pto_trace_part_time (part->parent, part->begin));
          pto_html_append_number (page->text, "took", part->to);
          pto_html_append_number (page->text, "own", part->from);
        }
      pto_html_append_member (page->text, "path", part->path);
      g_string_append_c (page->text, '}');
    }
  pto_html_end_column (page->text);
}

/* Whose buffers were full. */
static void
append_drops (PtoHtmlPage *page)
{
  PtoTrace *trace = page->trace;
  guint n_schedulers = trace->topology.n_schedulers;

  pto_html_begin_column (page->text, "drops");
  for (guint b = 0; b < trace->n_buffers; b++)
    {
      g_autofree char *name = NULL;

      if (trace->drops[b] == 0)
        continue;
      if (b == 0)
        name = g_strdup ("orchestrator");
      else if (b <= n_schedulers)
        name = g_strdup_printf ("scheduler %u", b - 1);
      else
        name = pto_trace_dup_core_name (trace, b - 1 - n_schedulers);
      pto_html_separate (page->text);
      g_string_append_printf (page->text, "{\"n\":%" G_GUINT64_FORMAT, trace->drops[b]);
      pto_html_append_member (page->text, "name", name != NULL ? name : "");
      g_string_append_c (page->text, '}');
    }
  pto_html_end_column (page->text);
}

static void
append_data (PtoHtmlPage *page)
{
  PtoTrace *trace = page->trace;
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  GString *text = page->text;

  g_string_append (text, "{\"version\":1");
  pto_html_append_member (text, "title", trace->title);
  pto_html_append_member (text, "clock", trace->topology.virtual_clock ? "virtual" : "wall");
  pto_html_append_member (text, "path", trace->path != NULL ? trace->path : "");
  pto_html_append_flag (text, "is_level", pto_trace_is_level (trace));
  pto_html_append_number (text, "schedulers", trace->topology.n_schedulers);
  pto_html_append_number (text, "elapsed", analysis->elapsed);
  pto_html_append_number (text, "last", analysis->last);
  pto_html_append_number (text, "recorded", pto_trace_get_recorded (trace));
  pto_html_append_number (text, "dropped", trace->dropped);
  pto_html_append_number (text, "runs_left_out", trace->pieces.n_left_out);
  pto_html_append_number (text, "records_left_out", trace->pieces.records_left_out);
  pto_html_append_number (text, "runs_unseen", analysis->n_unseen);
  append_drops (page);
  append_kernels (page);
  append_rows (page);
  append_sections (page);
  append_tasks (page);
  append_members (page);
  append_edges (page);
  pto_html_append_arguments (page);
  pto_html_append_transfers (page);
  append_scopes (page);
  pto_html_begin_column (text, "files");
  for (guint i = 0; i < page->files->len; i++)
    {
      pto_html_separate (text);
      pto_html_append_string (text, g_ptr_array_index (page->files, i));
    }
  pto_html_end_column (text);
  pto_html_begin_column (text, "critical");
  for (guint i = 0; i < analysis->n_critical; i++)
    pto_html_put (text, analysis->critical[i]);
  pto_html_end_column (text);
  append_stalls (page);
  append_strips (page);
  g_string_append (text, "}");
}

/* --- the page --- */

static void
append_part (GString *text, const char *name)
{
  g_autofree char *path = g_strdup_printf ("/pto/report/%s", name);
  /* By its name, so that the parts are linked wherever this is. */
  g_autoptr (GBytes) bytes = g_resource_lookup_data (pto_report_get_resource (), path,
                                                     G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  gsize length;
  const char *data;

  g_assert (bytes != NULL);
  data = g_bytes_get_data (bytes, &length);
  g_string_append_len (text, data, (gssize) length);
}

/* Whatever a {{name}} in page.html stands for: a part, or what is known of the run. */
static void
append_named (PtoHtmlPage *page, const char *name)
{
  g_autofree char *title = NULL;

  if (strcmp (name, "title") == 0)
    {
      pto_svg_append_escaped (page->text,
                              page->trace->title[0] != '\0' ? page->trace->title : "Task graph");
      return;
    }
  if (strcmp (name, "data") == 0)
    append_data (page);
  else
    append_part (page->text, name);
}

static void
append_page (PtoHtmlPage *page)
{
  g_autoptr (GString) frame = g_string_new (NULL);
  const char *rest;
  const char *mark;

  append_part (frame, "page.html");
  for (rest = frame->str; (mark = strstr (rest, "{{")) != NULL;)
    {
      const char *end = strstr (mark, "}}");
      g_autofree char *name = g_strndup (mark + 2, (gsize) (end - mark - 2));

      g_string_append_len (page->text, rest, mark - rest);
      append_named (page, name);
      rest = end + 2;
    }
  g_string_append (page->text, rest);
}

/**
 * pto_trace_to_html:
 * @self: a trace
 *
 * Makes the report: one page for a browser, which needs no network and no other file.
 *
 * It shows the run as a swimlane with a row per core, or of a worker of level 3 and up a tree of
 * rows, down to the cores of its chips; for each task when it was submitted, ready, dispatched, ran
 * and gave its slot back, where its submit stands, what it was given, what it waited for, and the
 * tasks before and behind it; the graph of tasks; how many tasks were ready and alive, and how full
 * heaps, pools and the TensorMap were, at any time; what of tensors travelled to workers that share
 * no memory with the run, and back; a table of kernels; the critical path; and what
 * was dropped. Kernels have the colours of [method@Pto.Trace.to_svg], tasks its names, and clusters
 * without work are one line, too, which opens them. The text depends on
 * nothing but the records; 100 000 tasks are some 10 MB.
 *
 * Names of kernels and the title are shown as text, whatever they contain.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): an HTML document
 *
 * Since: 0.1
 */
char *
pto_trace_to_html (PtoTrace *self)
{
  PtoHtmlPage page = { 0 };

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  page.trace = self;
  page.text = g_string_new (NULL);
  page.rows = pto_shown_list_rows (self);
  page.legend = pto_legend_new (self, page.rows);
  page.files = g_ptr_array_new ();
  collect_sections (&page);
  append_page (&page);

  for (guint s = 0; s < page.n_sections; s++)
    {
      g_free (page.sections[s].rows);
      g_free (page.sections[s].files);
    }
  g_free (page.sections);
  g_ptr_array_unref (page.rows);
  pto_legend_free (page.legend);
  g_ptr_array_unref (page.files);
  return g_string_free (page.text, FALSE);
}
