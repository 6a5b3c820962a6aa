/* counters.c: what would a core's performance counters have counted?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A task's counters are its own records. A core counts all of the run: what it was busy with, and
 * why it was idle. That is asked of all cores of a type together: as many of those that are idle as
 * there are ready tasks wait for the scheduler, as many more as there are submitted tasks wait for
 * data, and the rest for the submitter, or for nothing once the last task of the type is submitted.
 * Which of them is which nobody can say, so each has its share.
 */
#include "config.h"

#include "core/bits.h"

#include "common/json.h"
#include "common/text.h"
#include "trace-answers.h"

#include <string.h>

/* Why cores of a type are idle. */
enum
{
  FOR_SCHEDULER,
  FOR_DATA,
  FOR_SUBMITTER,
  N_IDLE
};

/* The time of each, summed up from the first record on for one of them. */
typedef struct
{
  double ns[N_IDLE];
} Idle;

typedef struct
{
  guint64 time;
  gint idle;    /* cores, more or fewer */
  gint pending; /* tasks that are submitted and not ready */
  gint ready;   /* and not begun */
  gint ahead;   /* and not submitted */
} Change;

typedef struct
{
  guint64 *times;
  Idle *idle; /* until then */
  guint n;
} Idleness;

typedef struct
{
  guint64 runs;
  guint64 busy;
  guint64 stalled;
  guint64 bytes_in;
  guint64 bytes_out;
  guint64 moved[PTO_TRACE_N_MOVED];
  PtoTraceWaits waits;
} Counters;

static void
add_change (GArray *changes, Change change)
{
  g_array_append_val (changes, change);
}

/* What core_type's entries did, by time; its idle cores are all but those that run one. */
static GArray *
list_changes (PtoTrace *trace, const PtoTraceAnalysis *analysis, guint core_type)
{
  GArray *changes = g_array_new (FALSE, FALSE, sizeof (Change));

  for (guint core = 0; core < analysis->n_cores; core++)
    {
      guint cluster, type;
      guint64 left = 0;

      pto_trace_locate_core (trace, core, &cluster, &type);
      if (type != core_type)
        continue;
      for (guint i = 0; i < analysis->n_core_runs[core]; i++)
        {
          const PtoTraceEntry *run = &analysis->tasks[analysis->core_runs[core][i]];
          guint64 start = run->start;
          guint64 ready = run->ready == PTO_TRACE_NEVER ? start : MIN (run->ready, start);
          guint64 submit = run->submit == PTO_TRACE_NEVER ? ready : MIN (run->submit, ready);

          add_change (changes, (Change){ .time = 0, .ahead = 1 });
          add_change (changes, (Change){ .time = submit, .ahead = -1, .pending = 1 });
          add_change (changes, (Change){ .time = ready, .pending = -1, .ready = 1 });
          add_change (changes, (Change){ .time = start, .ready = -1 });
          add_change (changes, (Change){ .time = MAX (start, left), .idle = -1 });
          left = MAX (run->end, MAX (start, left));
          add_change (changes, (Change){ .time = left, .idle = 1 });
        }
    }
  add_change (changes, (Change){ .time = analysis->elapsed });
  g_array_sort (changes, pto_trace_compare_times);
  return changes;
}

static void
find_idleness (PtoTrace *trace, const PtoTraceAnalysis *analysis, guint core_type,
               Idleness *idleness)
{
  g_autoptr (GArray) changes = list_changes (trace, analysis, core_type);
  gint idle = (gint) pto_trace_get_n_of_type (trace, core_type);
  gint pending = 0, ready = 0, ahead = 0;
  guint64 at = 0;
  Idle sum = { 0 };

  idleness->times = g_new (guint64, changes->len);
  idleness->idle = g_new (Idle, changes->len);
  idleness->n = 0;
  for (guint i = 0; i < changes->len; i++)
    {
      const Change *change = &g_array_index (changes, Change, i);

      if (change->time > at && idle > 0)
        {
          double each = (double) (change->time - at) / idle;
          gint for_scheduler = CLAMP (ready, 0, idle);
          gint for_data = CLAMP (pending, 0, idle - for_scheduler);

          sum.ns[FOR_SCHEDULER] += each * for_scheduler;
          sum.ns[FOR_DATA] += each * for_data;
          if (ahead > 0)
            sum.ns[FOR_SUBMITTER] += each * (idle - for_scheduler - for_data);
        }
      at = change->time;
      idle += change->idle;
      pending += change->pending;
      ready += change->ready;
      ahead += change->ahead;
      if (idleness->n > 0 && idleness->times[idleness->n - 1] == at)
        continue;
      idleness->times[idleness->n] = at;
      idleness->idle[idleness->n++] = sum;
    }
}

static const Idle *
get_idle_until (const Idleness *idleness, guint64 time)
{
  guint n = pto_bisect (i, idleness->n, idleness->times[i] <= time);

  return &idleness->idle[n > 0 ? n - 1 : 0];
}

static void
add_idle (Idle *sum, const Idleness *idleness, guint64 from, guint64 to)
{
  const Idle *before = get_idle_until (idleness, from);
  const Idle *after = get_idle_until (idleness, to);

  for (guint i = 0; i < N_IDLE; i++)
    sum->ns[i] += after->ns[i] - before->ns[i];
}

/* Bytes of all elements that its arguments name, read and written. */
static void
count_bytes (const PtoTraceAnalysis *analysis, const PtoTraceEntry *task, guint64 *in, guint64 *out)
{
  *in = *out = 0;
  for (guint i = 0; i < task->n_args; i++)
    {
      const PtoTraceArg *arg = &analysis->args[task->first_arg + i];
      guint64 bytes;

      if (arg->type == PTO_PARAM_SCALAR)
        continue;
      bytes = pto_dtype_size (arg->dtype);
      for (guint d = 0; d < arg->n_dims; d++)
        bytes *= arg->shape[d];
      if (pto_trace_arg_reads (arg))
        *in += bytes;
      if (pto_trace_arg_writes (arg))
        *out += bytes;
    }
}

/* Run number k of n has its part, and the first of them what is left over. */
static guint64
get_part (guint64 bytes, guint k, guint n)
{
  return bytes / n + (k == 0 ? bytes % n : 0);
}

static void
count_run (const PtoTraceEntry *run, Counters *counters)
{
  counters->runs++;
  counters->stalled += run->waited;
  counters->busy += run->end - run->start - run->waited;
}

static gboolean
count_task (PtoTrace *trace, const PtoTraceAnalysis *analysis, const PtoTraceEntry *task,
            Counters *counters, Counters *cores)
{
  guint64 in, out;
  guint n = 1 + task->n_members;

  *counters = (Counters){ 0 };
  if (task->start == PTO_TRACE_NEVER || task->end == PTO_TRACE_NEVER)
    return FALSE;
  count_bytes (analysis, task, &in, &out);
  for (guint k = 0; k < n; k++)
    {
      const PtoTraceEntry *run = k == 0 ? task : &analysis->tasks[task->first_member + k - 1];
      guint64 moved[PTO_TRACE_N_MOVED];

      count_run (run, counters);
      pto_trace_sum_entry (analysis, run, moved);
      for (guint i = 0; i < PTO_TRACE_N_MOVED; i++)
        counters->moved[i] += moved[i];
      if (run->core == PTO_TRACE_NOWHERE)
        continue;
      count_run (run, &cores[run->core]);
      cores[run->core].bytes_in += get_part (in, k, n);
      cores[run->core].bytes_out += get_part (out, k, n);
    }
  counters->bytes_in = in;
  counters->bytes_out = out;
  if (task->submit != PTO_TRACE_NEVER)
    pto_trace_get_waits (analysis, trace, task, MIN (task->submit, task->start), &counters->waits);
  return TRUE;
}

static void
add_counters (JsonBuilder *json, PtoTrace *trace, const Counters *counters, guint events)
{
  pto_json_add_int (json, "runs", counters->runs);
  if ((events & (PTO_TRACE_COUNT_TIME | PTO_TRACE_COUNT_PIPES)) != 0)
    pto_json_add_int (json, "busy_ns", counters->busy);
  if ((events & PTO_TRACE_COUNT_PIPES) != 0)
    pto_json_add_int (json, "stall_ns", counters->stalled);
  if ((events & PTO_TRACE_COUNT_MEMORY) != 0 && pto_answer_has_level (trace, PTO_TRACE_LEVEL_FULL))
    {
      pto_json_add_int (json, "bytes_in", counters->bytes_in);
      pto_json_add_int (json, "bytes_out", counters->bytes_out);
    }
  if ((events & PTO_TRACE_COUNT_MEMORY) != 0 && pto_trace_get_analysis (trace)->transfers->len > 0)
    pto_answer_add_moved (json, counters->moved);
}

static void
add_core (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis, guint core,
          const Counters *counters, const Idleness *idleness, guint events)
{
  g_autofree char *name = pto_trace_dup_core_name (trace, core);
  guint64 rest = analysis->elapsed - MIN (analysis->elapsed, counters->busy + counters->stalled);
  guint64 at = 0;
  Idle idle = { 0 };

  json_builder_begin_object (json);
  pto_json_add_string (json, "core", name);
  add_counters (json, trace, counters, events);
  if ((events & PTO_TRACE_COUNT_TIME) != 0)
    {
      for (guint i = 0; i < analysis->n_core_runs[core]; i++)
        {
          const PtoTraceEntry *run = &analysis->tasks[analysis->core_runs[core][i]];

          add_idle (&idle, idleness, at, MAX (run->start, at));
          at = MAX (run->end, at);
        }
      add_idle (&idle, idleness, at, MAX (analysis->elapsed, at));
      if (pto_answer_has_level (trace, PTO_TRACE_LEVEL_SCHEDULE))
        {
          static const char *const names[] = { "scheduler_ns", "data_ns", "submitter_ns" };

          for (guint i = 0; i < N_IDLE; i++)
            {
              guint64 part = MIN ((guint64) (idle.ns[i] + 0.5), rest);

              pto_json_add_int (json, names[i], part);
              rest -= part;
            }
          pto_json_add_int (json, "nothing_ns", rest);
        }
      else
        pto_json_add_int (json, "idle_ns", rest);
    }
  json_builder_end_object (json);
}

static void
add_task (JsonBuilder *json, PtoTrace *trace, const PtoTraceEntry *task, const Counters *counters,
          guint events)
{
  json_builder_begin_object (json);
  pto_answer_add_task (json, trace, task);
  pto_answer_add_core (json, trace, task);
  add_counters (json, trace, counters, events);
  if ((events & PTO_TRACE_COUNT_TIME) != 0
      && pto_answer_has_level (trace, PTO_TRACE_LEVEL_SCHEDULE))
    {
      pto_json_add_int (json, "data_ns", counters->waits.data);
      pto_json_add_int (json, "core_ns", counters->waits.core);
      pto_json_add_int (json, "scheduler_ns", counters->waits.scheduler);
    }
  json_builder_end_object (json);
}

void
pto_trace_add_counters (JsonBuilder *json, PtoTrace *trace, const PtoTraceAnalysis *analysis,
                        guint events)
{
  g_autofree Counters *cores = g_new0 (Counters, MAX (analysis->n_cores, 1));
  Idleness idleness[PTO_N_CORE_TYPES];

  pto_json_add_int (json, "elapsed_ns", analysis->elapsed);
  pto_json_begin_array (json, "tasks");
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      Counters counters;

      if (count_task (trace, analysis, &analysis->tasks[i], &counters, cores))
        add_task (json, trace, &analysis->tasks[i], &counters, events);
    }
  json_builder_end_array (json);

  for (guint type = 0; type < PTO_N_CORE_TYPES; type++)
    find_idleness (trace, analysis, type, &idleness[type]);
  pto_json_begin_array (json, "cores");
  for (guint core = 0; core < analysis->n_cores; core++)
    {
      guint cluster, type;

      pto_trace_locate_core (trace, core, &cluster, &type);
      pto_trace_sum_core (analysis, core, cores[core].moved);
      add_core (json, trace, analysis, core, &cores[core], &idleness[type], events);
    }
  json_builder_end_array (json);
  for (guint type = 0; type < PTO_N_CORE_TYPES; type++)
    {
      g_free (idleness[type].times);
      g_free (idleness[type].idle);
    }
}

/* --- in words --- */

enum
{
  WIDTH = 13 /* of a column of numbers */
};

static const struct
{
  const char *member;
  const char *title;
  gboolean is_time;
} columns[] = {
  { "runs", NULL, FALSE },
  { "busy_ns", N_ ("busy"), TRUE },
  { "stall_ns", N_ ("stalled"), TRUE },
  { "data_ns", N_ ("for data"), TRUE },
  { "core_ns", N_ ("for a core"), TRUE },
  { "scheduler_ns", N_ ("for scheduler"), TRUE },
  { "submitter_ns", N_ ("for submitter"), TRUE },
  { "nothing_ns", N_ ("no task left"), TRUE },
  { "idle_ns", N_ ("idle"), TRUE },
  { "bytes_in", N_ ("bytes in"), FALSE },
  { "bytes_out", N_ ("bytes out"), FALSE },
  { "bytes_sent", N_ ("bytes sent"), FALSE },
  { "bytes_received", N_ ("received"), FALSE },
  { "bytes_saved", N_ ("there already"), FALSE },
};

/* A row for each object, with the columns that the first of them has. */
static void
append_table (GString *text, GPtrArray *rows, const char *member, const char *title)
{
  PtoAnswerTable *table;

  if (rows->len == 0)
    return;
  table = pto_answer_table_new ();
  pto_answer_table_begin_row (table, title);
  for (guint c = 0; c < G_N_ELEMENTS (columns); c++)
    if (json_object_has_member (rows->pdata[0], columns[c].member))
      pto_answer_table_add (
          table, WIDTH, columns[c].title != NULL ? _ (columns[c].title) : C_ ("column", "runs"));
  for (guint i = 0; i < rows->len; i++)
    {
      pto_answer_table_begin_row (table, pto_answer_get_name (rows->pdata[i], member));
      for (guint c = 0; c < G_N_ELEMENTS (columns); c++)
        {
          guint64 value = pto_answer_get_number (rows->pdata[i], columns[c].member);

          if (!json_object_has_member (rows->pdata[0], columns[c].member))
            continue;
          if (columns[c].is_time)
            pto_answer_table_add_us (table, WIDTH, value);
          else
            pto_answer_table_add_number (table, WIDTH, value);
        }
    }
  pto_answer_table_end (table, text);
}

static void
sum_task (JsonObject *kernel, JsonObject *task)
{
  for (guint c = 0; c < G_N_ELEMENTS (columns); c++)
    if (json_object_has_member (task, columns[c].member))
      json_object_set_int_member (kernel, columns[c].member,
                                  (gint64) (pto_answer_get_number (kernel, columns[c].member)
                                            + pto_answer_get_number (task, columns[c].member)));
}

void
pto_trace_append_counters (GString *text, JsonObject *object)
{
  JsonArray *tasks = json_object_get_array_member (object, "tasks");
  JsonArray *cores = json_object_get_array_member (object, "cores");
  g_autoptr (GPtrArray) kernels
      = g_ptr_array_new_with_free_func ((GDestroyNotify) json_object_unref);
  g_autoptr (GPtrArray) busy = g_ptr_array_new ();
  guint n_unused = 0;

  for (guint i = 0; i < json_array_get_length (tasks); i++)
    {
      JsonObject *task = json_array_get_object_element (tasks, i);
      const char *name = json_object_get_string_member (task, "kernel");
      JsonObject *kernel = NULL;

      for (guint k = 0; k < kernels->len && kernel == NULL; k++)
        if (strcmp (json_object_get_string_member (kernels->pdata[k], "kernel"), name) == 0)
          kernel = kernels->pdata[k];
      if (kernel == NULL)
        {
          kernel = json_object_new ();
          json_object_set_string_member (kernel, "kernel", name);
          g_ptr_array_add (kernels, kernel);
        }
      sum_task (kernel, task);
    }
  for (guint i = 0; i < json_array_get_length (cores); i++)
    {
      JsonObject *core = json_array_get_object_element (cores, i);

      if (pto_answer_get_number (core, "runs") > 0 || pto_answer_get_number (core, "bytes_sent") > 0
          || pto_answer_get_number (core, "bytes_received") > 0)
        g_ptr_array_add (busy, core);
      else
        n_unused++;
    }
  append_table (text, kernels, "kernel", _ ("kernel"));
  append_table (text, busy, "core", _ ("core"));
  if (busy->len > 0)
    g_string_append (
        text, _ ("times in us; a kernel is stalled while it stands at a barrier or a pipe\n"));
  if (n_unused > 0)
    g_string_append_printf (text, P_ ("%u core ran nothing\n", "%u cores ran nothing\n", n_unused),
                            n_unused);
}
