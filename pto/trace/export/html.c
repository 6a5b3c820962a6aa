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

static void
section_free (gpointer data)
{
  PtoHtmlSection *section = data;

  g_free (section->path);
  g_ptr_array_unref (section->inner);
  g_free (section->rows);
  g_free (section->styles);
  g_free (section->files);
  g_free (section);
}

static void
row_free (gpointer data)
{
  PtoHtmlRow *row = data;

  g_free (row->name);
  g_free (row->path);
  g_free (row);
}

static void
kernel_clear (gpointer data)
{
  g_free (((PtoHtmlKernel *) data)->name);
}

/* --- what is to be shown --- */

static PtoHtmlSection *
add_section (PtoHtmlPage *page, PtoTrace *trace, char *path)
{
  PtoHtmlSection *section = g_new0 (PtoHtmlSection, 1);

  section->view.trace = trace;
  section->analysis = pto_trace_get_analysis (trace);
  section->path = path;
  section->parent = page->sections->len;
  section->task = PTO_TRACE_NOWHERE;
  section->first = page->n_entries;
  section->inner = g_ptr_array_new ();
  section->rows = g_new (guint32, MAX (section->analysis->n_cores, 1));
  section->styles = g_new (guint32, MAX (section->analysis->n_entries, 1));
  for (guint c = 0; c < section->analysis->n_cores; c++)
    section->rows[c] = PTO_TRACE_NOWHERE;
  page->n_entries += section->analysis->n_entries;
  g_ptr_array_add (page->sections, section);
  return section;
}

/* The runs below one, and those below these. */
static void
collect_sections (PtoHtmlPage *page, guint parent)
{
  PtoTrace *trace = pto_html_get_section (page, parent)->view.trace;

  for (guint i = 0; i < trace->pieces.list->len; i++)
    {
      const PtoTracePiece *piece = g_ptr_array_index (trace->pieces.list, i);
      const PtoHtmlSection *outer = pto_html_get_section (page, parent);
      guint32 entry = outer->analysis->piece_entries[i];
      PtoHtmlSection *section = add_section (
          page, piece->trace, pto_trace_dup_child_path (outer->path, trace, piece->child));

      pto_trace_view_init (&section->view, &outer->view, i);
      section->parent = parent;
      section->child = piece->child;
      section->task = entry != PTO_TRACE_NOWHERE ? outer->first + entry : PTO_TRACE_NOWHERE;
      g_ptr_array_add (outer->inner, section);
      collect_sections (page, page->sections->len - 1);
    }
}

static guint
add_kernel (PtoHtmlPage *page, gint64 id, const char *name)
{
  PtoHtmlKernel kernel = { id, g_strdup (name) };

  g_array_append_val (page->kernels, kernel);
  g_hash_table_insert (page->names, g_strdup (name), GUINT_TO_POINTER (page->kernels->len));
  return page->kernels->len - 1;
}

static gint
compare_kernels (gconstpointer a, gconstpointer b)
{
  guint32 x = *(const guint32 *) a;
  guint32 y = *(const guint32 *) b;

  return x < y ? -1 : x > y;
}

/* Of the outermost trace, by number: a picture's legend begins with those that ran. */
static void
collect_kernels (PtoHtmlPage *page)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (page->trace);
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));

  for (guint i = 0; i < analysis->n_entries; i++)
    if (analysis->tasks[i].core != PTO_TRACE_NOWHERE)
      g_array_append_val (ids, analysis->tasks[i].kernel);
  g_array_sort (ids, compare_kernels);
  for (guint i = 0; i < ids->len; i++)
    if (i == 0 || g_array_index (ids, guint32, i) != g_array_index (ids, guint32, i - 1))
      add_kernel (page, g_array_index (ids, guint32, i),
                  pto_trace_get_kernel_name (page->trace, g_array_index (ids, guint32, i)));
}

static guint
find_style (PtoHtmlPage *page, const PtoHtmlSection *section, guint32 kernel)
{
  const char *name = pto_trace_get_kernel_name (section->view.trace, kernel);
  guint position;

  if (section->view.parent == NULL)
    for (guint i = 0; i < page->kernels->len; i++)
      if (g_array_index (page->kernels, PtoHtmlKernel, i).id == kernel)
        return i;
  position = GPOINTER_TO_UINT (g_hash_table_lookup (page->names, name));
  return position > 0 ? position - 1 : add_kernel (page, -1, name);
}

/* The runs of one child inside of several of its parent. */
static GPtrArray *
look_into (const GPtrArray *sections, guint child)
{
  GPtrArray *inner = g_ptr_array_new ();

  for (guint s = 0; s < sections->len; s++)
    {
      const PtoHtmlSection *section = g_ptr_array_index (sections, s);

      for (guint i = 0; i < section->inner->len; i++)
        if (((const PtoHtmlSection *) g_ptr_array_index (section->inner, i))->child == child)
          g_ptr_array_add (inner, g_ptr_array_index (section->inner, i));
    }
  return inner;
}

static void
add_row (PtoHtmlPage *page, const GPtrArray *sections, guint core, gint parent, guint depth)
{
  PtoHtmlRow *row = g_new0 (PtoHtmlRow, 1);

  row->parent = parent;
  row->depth = depth;
  for (guint s = 0; s < sections->len; s++)
    {
      PtoHtmlSection *section = g_ptr_array_index (sections, s);
      guint type;

      if (core >= section->analysis->n_cores)
        continue;
      if (row->name == NULL)
        {
          row->name = pto_trace_dup_core_name (section->view.trace, core);
          row->path = g_strdup (section->path);
          pto_trace_locate_core (section->view.trace, core, &row->cluster, &type);
          row->kind = pto_trace_get_type_name (section->view.trace, type, 1);
        }
      section->rows[core] = page->rows->len;
      row->busy += section->analysis->core_busy[core];
      /* In this order, kernels below a level come to their colours as in a picture. */
      for (guint i = 0; depth > 0 && i < section->analysis->n_core_runs[core]; i++)
        find_style (page, section,
                    section->analysis->tasks[section->analysis->core_runs[core][i]].kernel);
    }
  g_ptr_array_add (page->rows, row);
}

/* Runs of one worker: a row for each core, or child; below another worker, for each that did
 * something. What is inside of a child comes behind its row. */
static void
collect_rows (PtoHtmlPage *page, const GPtrArray *sections, gint parent, guint depth)
{
  guint n_cores = 0;

  for (guint s = 0; s < sections->len; s++)
    n_cores = MAX (n_cores,
                   ((const PtoHtmlSection *) g_ptr_array_index (sections, s))->analysis->n_cores);
  for (guint c = 0; c < n_cores; c++)
    {
      g_autoptr (GPtrArray) inner = look_into (sections, c);
      gboolean is_used = depth == 0 || inner->len > 0;

      for (guint s = 0; s < sections->len; s++)
        {
          const PtoHtmlSection *section = g_ptr_array_index (sections, s);

          is_used = is_used
                    || (c < section->analysis->n_cores && section->analysis->n_core_runs[c] > 0);
        }
      if (!is_used)
        continue;
      add_row (page, sections, c, parent, depth);
      if (inner->len > 0)
        collect_rows (page, inner, (gint) page->rows->len - 1, depth + 1);
    }
}

static void
collect_styles (PtoHtmlPage *page)
{
  for (guint s = 0; s < page->sections->len; s++)
    {
      PtoHtmlSection *section = g_ptr_array_index (page->sections, s);
      guint32 last = 0, style = 0;

      for (guint i = 0; i < section->analysis->n_entries; i++)
        {
          guint32 kernel = section->analysis->tasks[i].kernel;

          if (i == 0 || kernel != last)
            style = find_style (page, section, kernel);
          last = kernel;
          section->styles[i] = style;
        }
    }
}

/* Each source file once, whatever number it has in the trace of a run. */
static void
collect_files (PtoHtmlPage *page)
{
  g_autoptr (GHashTable) numbers = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint s = 0; s < page->sections->len; s++)
    {
      PtoHtmlSection *section = g_ptr_array_index (page->sections, s);
      PtoTrace *trace = section->view.trace;

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

/* --- JSON --- */

typedef gint64 (*GetInteger) (const PtoHtmlSection *section, guint entry);

static gint64
get_ring (const PtoHtmlSection *section, guint entry)
{
  return PTO_TASK_RING (section->analysis->tasks[entry].id);
}

static gint64
get_local (const PtoHtmlSection *section, guint entry)
{
  return PTO_TASK_LOCAL (section->analysis->tasks[entry].id);
}

static gint64
get_style (const PtoHtmlSection *section, guint entry)
{
  return section->styles[entry];
}

static gint64
get_row (const PtoHtmlSection *section, guint entry)
{
  guint32 core = section->analysis->tasks[entry].core;

  return core < section->analysis->n_cores ? (gint64) section->rows[core] : -1;
}

static gint64
get_scheduler (const PtoHtmlSection *section, guint entry)
{
  guint32 scheduler = section->analysis->tasks[entry].scheduler;

  return scheduler != PTO_TRACE_NOWHERE ? (gint64) scheduler : -1;
}

static gint64
get_block (const PtoHtmlSection *section, guint entry)
{
  guint32 block = section->analysis->tasks[entry].block;

  return block != PTO_TRACE_NOWHERE ? (gint64) block : -1;
}

static gint64
get_priority (const PtoHtmlSection *section, guint entry)
{
  return section->analysis->tasks[entry].terms.priority;
}

static gint64
get_file (const PtoHtmlSection *section, guint entry)
{
  guint32 file = section->analysis->tasks[entry].file;

  return file != PTO_TRACE_NOWHERE ? (gint64) section->files[file] : -1;
}

static gint64
get_line (const PtoHtmlSection *section, guint entry)
{
  return section->analysis->tasks[entry].line;
}

static gint64
get_flags (const PtoHtmlSection *section, guint entry)
{
  const PtoTraceEntry *task = &section->analysis->tasks[entry];

  return (task->failed != 0 ? 1 : 0)
         | (pto_trace_entry_shares_dispatch (section->analysis, task) ? 2 : 0);
}

static void
append_integers (PtoHtmlPage *page, const char *name, GetInteger get)
{
  pto_html_begin_column (page->text, name);
  for (guint s = 0; s < page->sections->len; s++)
    for (guint i = 0; i < pto_html_get_section (page, s)->analysis->n_entries; i++)
      pto_html_put (page->text, get (pto_html_get_section (page, s), i));
  pto_html_end_column (page->text);
}

/* Each as the difference to the one before it. */
static void
append_differences (PtoHtmlPage *page, const char *name, GetInteger get)
{
  gint64 last = 0;

  pto_html_begin_column (page->text, name);
  for (guint s = 0; s < page->sections->len; s++)
    for (guint i = 0; i < pto_html_get_section (page, s)->analysis->n_entries; i++)
      {
        gint64 value = get (pto_html_get_section (page, s), i);

        pto_html_put (page->text, value - last);
        last = value;
      }
  pto_html_end_column (page->text);
}

/* The times of a task, in the order in which they come as a rule. */
static const struct
{
  const char *name;
  gsize offset;
} times[] = {
  { "submit", G_STRUCT_OFFSET (PtoTraceEntry, submit) },
  { "submitted", G_STRUCT_OFFSET (PtoTraceEntry, submit_end) },
  { "ready", G_STRUCT_OFFSET (PtoTraceEntry, ready) },
  { "dispatch", G_STRUCT_OFFSET (PtoTraceEntry, dispatch) },
  { "ack", G_STRUCT_OFFSET (PtoTraceEntry, ack) },
  { "start", G_STRUCT_OFFSET (PtoTraceEntry, start) },
  { "end", G_STRUCT_OFFSET (PtoTraceEntry, end) },
  { "complete", G_STRUCT_OFFSET (PtoTraceEntry, complete) },
  { "retire", G_STRUCT_OFFSET (PtoTraceEntry, retire) },
};

/* A time counts from the one before it of the same task that is known; the first of a task from the
 * last submit that is known. Never: null. */
static void
append_times (PtoHtmlPage *page)
{
  g_autofree guint64 *bases = g_new (guint64, MAX (page->n_entries, 1));
  guint64 last = 0;

  for (guint t = 0; t < G_N_ELEMENTS (times); t++)
    {
      guint64 *base = bases;

      pto_html_begin_column (page->text, times[t].name);
      for (guint s = 0; s < page->sections->len; s++)
        {
          const PtoHtmlSection *section = pto_html_get_section (page, s);

          for (guint i = 0; i < section->analysis->n_entries; i++, base++)
            {
              guint64 time
                  = G_STRUCT_MEMBER (guint64, &section->analysis->tasks[i], times[t].offset);

              time = pto_trace_view_time (&section->view, time);
              if (t == 0)
                *base = last;
              if (time == PTO_TRACE_NEVER)
                {
                  pto_html_put_nothing (page->text);
                  continue;
                }
              pto_html_put (page->text, (gint64) (time - *base));
              *base = time;
              if (t == 0)
                last = time;
            }
        }
      pto_html_end_column (page->text);
    }
}

/* By how many entries its last producer to arrive is before each; null: it waited for none. */
static void
append_last_producers (PtoHtmlPage *page)
{
  pto_html_begin_column (page->text, "last");
  for (guint s = 0; s < page->sections->len; s++)
    for (guint i = 0; i < pto_html_get_section (page, s)->analysis->n_entries; i++)
      {
        guint32 last = pto_html_get_section (page, s)->analysis->tasks[i].last_producer;

        if (last == PTO_TRACE_NOWHERE)
          pto_html_put_nothing (page->text);
        else
          pto_html_put (page->text, (gint64) i - last);
      }
  pto_html_end_column (page->text);
}

/* A length of time of a run in that of the outermost trace. */
static guint64
scale_length (const PtoTraceView *view, guint64 ns)
{
  for (; view->parent != NULL; view = view->parent)
    {
      const struct pto_scale scale = { .from = view->from, .to = view->to };

      ns = pto_scale (MIN (ns, view->from), &scale);
    }
  return ns;
}

/* What each waited for between its submit and its start; null: not known. */
static void
append_waits (PtoHtmlPage *page)
{
  static const struct
  {
    const char *name;
    gsize offset;
  } reasons[] = { { "wait_data", G_STRUCT_OFFSET (PtoTraceWaits, data) },
                  { "wait_core", G_STRUCT_OFFSET (PtoTraceWaits, core) },
                  { "wait_scheduler", G_STRUCT_OFFSET (PtoTraceWaits, scheduler) } };

  for (guint r = 0; r < G_N_ELEMENTS (reasons); r++)
    {
      pto_html_begin_column (page->text, reasons[r].name);
      for (guint s = 0; s < page->sections->len; s++)
        {
          const PtoHtmlSection *section = pto_html_get_section (page, s);

          for (guint i = 0; i < section->analysis->n_entries; i++)
            {
              const PtoTraceEntry *task = &section->analysis->tasks[i];
              PtoTraceWaits waits;
              guint64 ns;

              if (task->submit == PTO_TRACE_NEVER
                  || !pto_trace_get_waits (section->analysis, section->view.trace, task,
                                           task->submit, &waits))
                {
                  pto_html_put_nothing (page->text);
                  continue;
                }
              ns = G_STRUCT_MEMBER (guint64, &waits, reasons[r].offset);
              pto_html_put (page->text, (gint64) scale_length (&section->view, ns));
            }
        }
      pto_html_end_column (page->text);
    }
}

/* Of the time of each run, what went by waiting for other kernels; only where one did. */
static void
append_waited (PtoHtmlPage *page)
{
  guint64 waited = 0;

  for (guint s = 0; s < page->sections->len; s++)
    for (guint i = 0; i < pto_html_get_section (page, s)->analysis->n_entries; i++)
      waited |= pto_html_get_section (page, s)->analysis->tasks[i].waited;
  if (waited == 0)
    return;
  pto_html_begin_column (page->text, "waited");
  for (guint s = 0; s < page->sections->len; s++)
    {
      const PtoHtmlSection *section = pto_html_get_section (page, s);

      for (guint i = 0; i < section->analysis->n_entries; i++)
        pto_html_put (page->text,
                      (gint64) scale_length (&section->view, section->analysis->tasks[i].waited));
    }
  pto_html_end_column (page->text);
}

static void
append_tasks (PtoHtmlPage *page)
{
  gboolean has_blocks = FALSE;
  gboolean has_priorities = FALSE;

  g_string_append_printf (page->text, ",\n\"tasks\":{\"n\":%u", page->n_entries);
  append_integers (page, "ring", get_ring);
  append_differences (page, "local", get_local);
  append_integers (page, "kernel", get_style);
  append_integers (page, "row", get_row);
  append_integers (page, "scheduler", get_scheduler);
  append_integers (page, "flags", get_flags);
  for (guint s = 0; s < page->sections->len; s++)
    for (guint i = 0; i < pto_html_get_section (page, s)->analysis->n_entries; i++)
      {
        has_blocks = has_blocks || get_block (pto_html_get_section (page, s), i) >= 0;
        has_priorities = has_priorities || get_priority (pto_html_get_section (page, s), i) > 0;
      }
  if (has_blocks)
    append_integers (page, "block", get_block);
  if (has_priorities)
    append_integers (page, "priority", get_priority);
  if (page->files->len > 0)
    {
      append_integers (page, "file", get_file);
      append_integers (page, "line", get_line);
    }
  append_times (page);
  append_last_producers (page);
  append_waits (page);
  append_waited (page);
  g_string_append_c (page->text, '}');
}

/* Which entries are members of a group, or parts of a task, beside the task itself. */
static void
append_members (PtoHtmlPage *page)
{
  for (guint column = 0; column < 3; column++)
    {
      pto_html_begin_column (page->text, column == 0   ? "member_task"
                                         : column == 1 ? "member_first"
                                                       : "member_n");
      for (guint s = 0; s < page->sections->len; s++)
        {
          const PtoHtmlSection *section = pto_html_get_section (page, s);

          for (guint i = 0; i < section->analysis->n_tasks; i++)
            {
              const PtoTraceEntry *task = &section->analysis->tasks[i];

              if (task->n_members > 0)
                pto_html_put (page->text, column == 0   ? section->first + i
                                          : column == 1 ? section->first + task->first_member
                                                        : task->n_members);
            }
        }
      pto_html_end_column (page->text);
    }
}

/* Which arguments of both are why, and which bytes of the consumer's; -1: not known. Only where
 * that is known of one edge. */
static void
append_causes (PtoHtmlPage *page)
{
  static const char *const names[] = { "consumer_argument", "producer_argument", "from", "bytes" };
  gboolean is_known = FALSE;

  for (guint s = 0; s < page->sections->len; s++)
    for (guint i = 0; i < pto_html_get_section (page, s)->analysis->n_deps; i++)
      is_known
          = is_known
            || pto_html_get_section (page, s)->analysis->deps[i].consumer_arg != PTO_TRACE_NOWHERE;
  for (guint column = 0; column < G_N_ELEMENTS (names) && is_known; column++)
    {
      pto_html_begin_column (page->text, names[column]);
      for (guint s = 0; s < page->sections->len; s++)
        for (guint i = 0; i < pto_html_get_section (page, s)->analysis->n_deps; i++)
          {
            const PtoTraceDep *dep = &pto_html_get_section (page, s)->analysis->deps[i];
            const gint64 values[]
                = { dep->consumer_arg, dep->producer_arg, (gint64) dep->from, (gint64) dep->bytes };

            pto_html_put (page->text, dep->consumer_arg != PTO_TRACE_NOWHERE ? values[column] : -1);
          }
      pto_html_end_column (page->text);
    }
}

/* By consumer, ascending; producers by how many entries they are before it, null when their records
 * were dropped: those are in "gone", edge by edge. */
static void
append_edges (PtoHtmlPage *page)
{
  guint32 last = 0, n = 0;

  for (guint s = 0; s < page->sections->len; s++)
    n += pto_html_get_section (page, s)->analysis->n_deps;
  g_string_append_printf (page->text, ",\n\"edges\":{\"n\":%u", n);
  for (guint column = 0; column < 4; column++)
    {
      static const char *const names[] = { "consumer", "producer", "kinds", "gone" };

      pto_html_begin_column (page->text, names[column]);
      for (guint s = 0; s < page->sections->len; s++)
        {
          const PtoHtmlSection *section = pto_html_get_section (page, s);

          for (guint i = 0; i < section->analysis->n_deps; i++)
            {
              const PtoTraceDep *dep = &section->analysis->deps[i];
              guint32 consumer = section->first + dep->consumer;

              if (column == 0)
                {
                  pto_html_put (page->text, (gint64) consumer - last);
                  last = consumer;
                }
              else if (column == 1 && dep->producer_index != PTO_TRACE_NOWHERE)
                pto_html_put (page->text, (gint64) dep->consumer - dep->producer_index);
              else if (column == 1)
                pto_html_put_nothing (page->text);
              else if (column == 2)
                pto_html_put (page->text, dep->kinds);
              else if (dep->producer_index == PTO_TRACE_NOWHERE)
                pto_html_put (page->text, (gint64) dep->producer);
            }
        }
      pto_html_end_column (page->text);
    }
  append_causes (page);
  g_string_append_c (page->text, '}');
}

static void
append_strip (GString *text, const char *kind, const char *name, const GArray *steps)
{
  guint64 last = 0;

  if (steps == NULL || steps->len == 0)
    return;
  pto_html_separate (text);
  g_string_append_printf (text, "\n{\"kind\":\"%s\"", kind);
  pto_html_append_member (text, "name", name);
  pto_html_begin_column (text, "time");
  for (guint i = 0; i < steps->len; i++)
    {
      const PtoTraceStep *step = &g_array_index (steps, PtoTraceStep, i);

      pto_html_put (text, (gint64) (step->time - last));
      last = step->time;
    }
  pto_html_end_column (text);
  pto_html_begin_column (text, "value");
  for (guint i = 0; i < steps->len; i++)
    pto_html_put (text, (gint64) g_array_index (steps, PtoTraceStep, i).value);
  pto_html_end_column (text);
  g_string_append_c (text, '}');
}

/* Of the outermost trace. */
static void
append_strips (PtoHtmlPage *page)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (page->trace);
  gboolean is_level = pto_trace_is_level (page->trace);

  pto_html_begin_column (page->text, "strips");
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    if (t == 0 || !is_level)
      append_strip (page->text, "ready",
                    is_level ? "tasks" : pto_trace_get_type_name (page->trace, t, 1),
                    analysis->ready[t]);
  for (guint r = 0; r < analysis->rings; r++)
    {
      g_autofree char *name = g_strdup_printf ("ring %u", r);

      append_strip (page->text, "live", name, analysis->live[r]);
    }
  for (guint r = 0; r < PTO_RINGS; r++)
    {
      g_autofree char *name = g_strdup_printf ("ring %u", r);

      append_strip (page->text, "heap", name, analysis->heap[r]);
    }
  for (guint r = 0; r < PTO_RINGS; r++)
    {
      g_autofree char *name = g_strdup_printf ("ring %u", r);

      append_strip (page->text, "pool", name, analysis->edges[r]);
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
  const PtoHtmlSection *section = pto_html_get_section (page, 0);

  g_string_append_printf (page->text, ",\n\"scopes\":{\"n\":%u", scopes->len);
  for (guint column = 0; column < G_N_ELEMENTS (names); column++)
    {
      guint64 last = 0;

      pto_html_begin_column (page->text, names[column]);
      for (guint i = 0; i < scopes->len; i++)
        {
          const PtoTraceSpan *scope = &g_array_index (scopes, PtoTraceSpan, i);
          gint64 file
              = scope->file != PTO_TRACE_NOWHERE ? (gint64) section->files[scope->file] : -1;
          const gint64 values[]
              = { (gint64) (scope->start - last), (gint64) (scope->end - scope->start),
                  (gint64) scope->what, file, (gint64) scope->line };

          pto_html_put (page->text, values[column]);
          last = scope->start;
        }
      pto_html_end_column (page->text);
    }
  g_string_append_c (page->text, '}');
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
  for (guint i = 0; i < page->kernels->len; i++)
    {
      const char *hatching = pto_svg_get_hatching (i);

      pto_html_separate (page->text);
      g_string_append_printf (page->text, "\n{\"colour\":\"%s\"", pto_svg_get_colour (i));
      pto_html_append_member (page->text, "hatching", hatching != NULL ? hatching : "");
      pto_html_append_member (page->text, "name",
                              g_array_index (page->kernels, PtoHtmlKernel, i).name);
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
      const PtoHtmlRow *row = g_ptr_array_index (page->rows, i);

      pto_html_separate (page->text);
      g_string_append_printf (page->text, "\n{\"parent\":%d", row->parent);
      pto_html_append_number (page->text, "depth", row->depth);
      pto_html_append_number (page->text, "cluster", row->cluster);
      pto_html_append_number (page->text, "busy", row->busy);
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
  for (guint i = 0; i < page->sections->len; i++)
    {
      const PtoHtmlSection *section = pto_html_get_section (page, i);

      pto_html_separate (page->text);
      g_string_append_printf (page->text, "\n{\"first\":%u", section->first);
      pto_html_append_number (page->text, "tasks", section->analysis->n_tasks);
      pto_html_append_number (page->text, "entries", section->analysis->n_entries);
      pto_html_append_number (page->text, "parent", section->parent);
      g_string_append_printf (page->text, ",\"task\":%" G_GINT64_FORMAT,
                              section->task != PTO_TRACE_NOWHERE ? (gint64) section->task : -1);
      pto_html_append_flag (page->text, "virtual", section->view.trace->topology.virtual_clock);
      if (section->view.parent != NULL)
        {
          pto_html_append_number (page->text, "begin",
                                  pto_trace_view_time (section->view.parent, section->view.begin));
          pto_html_append_number (page->text, "took", section->view.to);
          pto_html_append_number (page->text, "own", section->view.from);
        }
      pto_html_append_member (page->text, "path", section->path);
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
  g_autoptr (GPtrArray) whole = NULL;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);

  page.trace = self;
  page.text = g_string_new (NULL);
  page.sections = g_ptr_array_new_with_free_func (section_free);
  page.rows = g_ptr_array_new_with_free_func (row_free);
  page.kernels = g_array_new (FALSE, FALSE, sizeof (PtoHtmlKernel));
  g_array_set_clear_func (page.kernels, kernel_clear);
  page.names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  page.files = g_ptr_array_new ();
  whole = g_ptr_array_new ();

  g_ptr_array_add (whole,
                   add_section (&page, self, g_strdup (self->path != NULL ? self->path : "")));
  collect_sections (&page, 0);
  collect_kernels (&page);
  collect_rows (&page, whole, -1, 0);
  collect_styles (&page);
  collect_files (&page);
  append_page (&page);

  g_ptr_array_unref (page.sections);
  g_ptr_array_unref (page.rows);
  g_array_unref (page.kernels);
  g_hash_table_unref (page.names);
  g_ptr_array_unref (page.files);
  return g_string_free (page.text, FALSE);
}
