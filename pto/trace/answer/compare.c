/* compare.c: what differs between two runs, and why?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An answer is made once, as JSON; its text is made of that. Whatever is compared has a member
 * before, one after, and the change from one to the other. What only one of the two has recorded is
 * not compared.
 */
#include "config.h"

#include "compare.h"

#include "common/json.h"
#include "pto-trace-topics.h"

#include <string.h>

/* Tasks that are named of a list; the rest is counted. */
enum
{
  MOST_NAMED = 10
};

/* What one side has of a kernel. */
typedef struct
{
  guint64 tasks;
  guint64 runs;
  guint64 busy;
  GArray *times; /* guint64, of each run */
  PtoTraceWaits waits;
  guint64 path_ns; /* of the critical path */
  PtoTraceWaits path_waits;
  guint64 path_unknown; /* of gaps before it, for which nothing was recorded */
} Share;

typedef struct
{
  char *name;
  guint level; /* of the worker: 2 a chip */
  gboolean is_on_path;
  Share shares[PTO_N_SIDES];
} Kernel;

/* What a worker below the one that ran did, by its path. */
typedef struct
{
  char *path;
  guint64 runs[PTO_N_SIDES];
  guint64 tasks[PTO_N_SIDES];
  guint64 elapsed[PTO_N_SIDES];
} Worker;

typedef struct
{
  PtoTrace *traces[PTO_N_SIDES];
  const PtoTraceAnalysis *analyses[PTO_N_SIDES];
  PtoTraceMatch *match;
  gboolean has_waits; /* on both sides */
  gboolean has_edges;
  GPtrArray *kernels; /* Kernel, in order of appearance */
  GHashTable *kernel_index;
  GPtrArray *workers; /* Worker */
  GHashTable *worker_index;
  gboolean differs; /* something that was told */
} Comparison;

static void
kernel_free (gpointer data)
{
  Kernel *kernel = data;

  for (guint s = 0; s < PTO_N_SIDES; s++)
    g_array_unref (kernel->shares[s].times);
  g_free (kernel->name);
  g_free (kernel);
}

static void
worker_free (gpointer data)
{
  Worker *worker = data;

  g_free (worker->path);
  g_free (worker);
}

static Kernel *
find_kernel (Comparison *comparison, guint level, const char *name)
{
  char *key = g_strdup_printf ("%u %s", level, name);
  Kernel *kernel = g_hash_table_lookup (comparison->kernel_index, key);

  if (kernel != NULL)
    {
      g_free (key);
      return kernel;
    }
  kernel = g_new0 (Kernel, 1);
  kernel->name = g_strdup (name);
  kernel->level = level;
  for (guint s = 0; s < PTO_N_SIDES; s++)
    kernel->shares[s].times = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_ptr_array_add (comparison->kernels, kernel);
  g_hash_table_insert (comparison->kernel_index, key, kernel);
  return kernel;
}

static guint
get_level (PtoTrace *trace)
{
  return MAX (trace->topology.level, 2);
}

/* Of one trace: kernels by their number. A name is looked up once. */
static Kernel *
get_kernel (Comparison *comparison, PtoTrace *trace, GHashTable *by_number, guint32 number)
{
  Kernel *kernel = g_hash_table_lookup (by_number, GUINT_TO_POINTER (number));

  if (kernel == NULL)
    {
      kernel
          = find_kernel (comparison, get_level (trace), pto_trace_get_kernel_name (trace, number));
      g_hash_table_insert (by_number, GUINT_TO_POINTER (number), kernel);
    }
  return kernel;
}

/* Time in kernels, and what their tasks waited for since the submit of the task before them. */
static void
read_tasks (Comparison *comparison, guint side, PtoTrace *trace, GHashTable *by_number)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  guint64 submitted = 0;

  for (guint i = 0; i < analysis->n_entries; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];
      Share *share = &get_kernel (comparison, trace, by_number, task->kernel)->shares[side];
      PtoTraceWaits waits;

      if (i < analysis->n_tasks)
        share->tasks++;
      if (task->end != PTO_TRACE_NEVER)
        {
          guint64 time = task->end - task->start - task->waited;

          share->runs++;
          share->busy += time;
          g_array_append_val (share->times, time);
        }
      if (i >= analysis->n_tasks || task->submit == PTO_TRACE_NEVER)
        continue;
      if (comparison->has_waits
          && pto_trace_get_waits (analysis, trace, task, MIN (submitted, task->submit), &waits))
        pto_answer_sum_waits (&share->waits, &waits);
      submitted = task->submit;
    }
}

/* All of the time of a run is on its critical path: kernels, and what went by before each. */
static void
read_path (Comparison *comparison, guint side, PtoTrace *trace, GHashTable *by_number)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  guint64 end = 0;

  for (guint i = 0; i < analysis->n_critical; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[analysis->critical[i]];
      Kernel *kernel = get_kernel (comparison, trace, by_number, task->kernel);
      Share *share = &kernel->shares[side];
      PtoTraceWaits waits;

      kernel->is_on_path = TRUE;
      share->path_ns += task->end - task->start;
      if (comparison->has_waits && pto_trace_get_waits (analysis, trace, task, end, &waits))
        pto_answer_sum_waits (&share->path_waits, &waits);
      else
        share->path_unknown += task->start - end;
      end = task->end;
    }
}

static Worker *
find_worker (Comparison *comparison, const char *path)
{
  Worker *worker = g_hash_table_lookup (comparison->worker_index, path);

  if (worker == NULL)
    {
      worker = g_new0 (Worker, 1);
      worker->path = g_strdup (path);
      g_ptr_array_add (comparison->workers, worker);
      g_hash_table_insert (comparison->worker_index, worker->path, worker);
    }
  return worker;
}

/* --- as JSON --- */

static void
add_both (Comparison *comparison, JsonBuilder *json, const char *name, guint64 before,
          guint64 after)
{
  pto_json_begin_object (json, name);
  pto_json_add_int (json, "before", before);
  pto_json_add_int (json, "after", after);
  pto_json_add_signed (json, "change", (gint64) (after - before));
  json_builder_end_object (json);
  comparison->differs |= before != after;
}

static void
add_waits (Comparison *comparison, JsonBuilder *json, const PtoTraceWaits *before,
           const PtoTraceWaits *after)
{
  if (!comparison->has_waits)
    return;
  pto_json_begin_object (json, "waits");
  for (guint i = 0; i < PTO_ANSWER_REASONS; i++)
    add_both (comparison, json, pto_answer_reasons[i].name, pto_answer_get_wait (before, i),
              pto_answer_get_wait (after, i));
  json_builder_end_object (json);
}

static void
add_side (Comparison *comparison, JsonBuilder *json, guint side)
{
  static const char *const names[] = { "before", "after" };
  PtoTrace *trace = comparison->traces[side];

  pto_json_begin_object (json, names[side]);
  pto_json_add_string (json, "title", trace->title);
  pto_json_add_string (json, "clock", trace->topology.virtual_clock ? "virtual" : "wall");
  pto_json_add_int (json, "level", get_level (trace));
  pto_json_add_int (json, "trace_level", trace->topology.recorded);
  pto_json_add_int (json, "dropped", pto_trace_get_dropped (trace));
  json_builder_end_object (json);
}

static void
add_cores (Comparison *comparison, JsonBuilder *json)
{
  pto_json_begin_array (json, "cores");
  for (guint type = 0; type < PTO_N_CORE_TYPES; type++)
    {
      guint n[PTO_N_SIDES];
      double shares[PTO_N_SIDES];

      for (guint s = 0; s < PTO_N_SIDES; s++)
        {
          n[s] = pto_trace_get_n_of_type (comparison->traces[s], type);
          shares[s] = pto_trace_get_type_utilization (comparison->traces[s], type);
        }
      if (n[PTO_BEFORE] == 0 && n[PTO_AFTER] == 0)
        continue;
      json_builder_begin_object (json);
      pto_json_add_string (json, "type",
                           pto_trace_get_type_name (comparison->traces[PTO_BEFORE], type, 1));
      add_both (comparison, json, "n", n[PTO_BEFORE], n[PTO_AFTER]);
      pto_json_begin_object (json, "utilization");
      pto_json_add_double (json, "before", shares[PTO_BEFORE]);
      pto_json_add_double (json, "after", shares[PTO_AFTER]);
      json_builder_end_object (json);
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
}

/* What of tensors travelled, of runs of which some did or would have. */
static void
add_moved (Comparison *comparison, JsonBuilder *json)
{
  static const char *const names[] = { "bytes_sent", "bytes_received", "bytes_saved" };
  guint64 sums[PTO_N_SIDES][PTO_TRACE_N_MOVED];

  if (comparison->analyses[PTO_BEFORE]->transfers->len == 0
      && comparison->analyses[PTO_AFTER]->transfers->len == 0)
    return;
  for (guint s = 0; s < PTO_N_SIDES; s++)
    pto_trace_sum_core (comparison->analyses[s], PTO_TRACE_NOWHERE, sums[s]);
  for (guint i = 0; i < PTO_TRACE_N_MOVED; i++)
    add_both (comparison, json, names[i], sums[PTO_BEFORE][i], sums[PTO_AFTER][i]);
}

/* Of an even number of runs the mean of the middle two. 0: there are none. */
static guint64
get_median (GArray *times)
{
  guint n = times->len;

  if (n == 0)
    return 0;
  g_array_sort (times, pto_trace_compare_times);
  return (g_array_index (times, guint64, (n - 1) / 2) + g_array_index (times, guint64, n / 2)) / 2;
}

/* Those that took longest on either side first, of an outer worker before those of inner ones. */
static gint
compare_kernels (gconstpointer a, gconstpointer b)
{
  const Kernel *x = *(Kernel *const *) a;
  const Kernel *y = *(Kernel *const *) b;
  guint64 most_x = MAX (x->shares[PTO_BEFORE].busy, x->shares[PTO_AFTER].busy);
  guint64 most_y = MAX (y->shares[PTO_BEFORE].busy, y->shares[PTO_AFTER].busy);

  gint order = 2 * pto_trace_order (y->level, x->level) + pto_trace_order (most_y, most_x);

  return order != 0 ? order : strcmp (x->name, y->name);
}

static void
add_kernels (Comparison *comparison, JsonBuilder *json)
{
  pto_json_begin_array (json, "kernels");
  for (guint i = 0; i < comparison->kernels->len; i++)
    {
      Kernel *kernel = g_ptr_array_index (comparison->kernels, i);
      Share *before = &kernel->shares[PTO_BEFORE];
      Share *after = &kernel->shares[PTO_AFTER];

      json_builder_begin_object (json);
      pto_json_add_string (json, "kernel", kernel->name);
      pto_json_add_int (json, "level", kernel->level);
      add_both (comparison, json, "tasks", before->tasks, after->tasks);
      add_both (comparison, json, "runs", before->runs, after->runs);
      add_both (comparison, json, "median_ns", get_median (before->times),
                get_median (after->times));
      add_both (comparison, json, "busy_ns", before->busy, after->busy);
      add_waits (comparison, json, &before->waits, &after->waits);
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
}

static gint64
sum_path (const Share *share)
{
  gint64 sum = (gint64) (share->path_ns + share->path_unknown);

  for (guint i = 0; i < PTO_ANSWER_REASONS; i++)
    sum += (gint64) pto_answer_get_wait (&share->path_waits, i);
  return sum;
}

static void
add_path_share (Comparison *comparison, JsonBuilder *json, const Share *before, const Share *after)
{
  add_both (comparison, json, "kernels_ns", before->path_ns, after->path_ns);
  add_waits (comparison, json, &before->path_waits, &after->path_waits);
  if (before->path_unknown > 0 || after->path_unknown > 0)
    add_both (comparison, json, "not_recorded_ns", before->path_unknown, after->path_unknown);
  pto_json_add_signed (json, "change_ns", sum_path (after) - sum_path (before));
}

/* What no kernel was on the path for is not known: nothing ran. */
static void
add_path (Comparison *comparison, JsonBuilder *json)
{
  Share sums[PTO_N_SIDES] = { 0 };

  pto_json_begin_object (json, "critical_path");
  add_both (comparison, json, "tasks", comparison->analyses[PTO_BEFORE]->n_critical_tasks,
            comparison->analyses[PTO_AFTER]->n_critical_tasks);
  pto_json_begin_array (json, "kernels");
  for (guint i = 0; i < comparison->kernels->len; i++)
    {
      const Kernel *kernel = g_ptr_array_index (comparison->kernels, i);

      if (!kernel->is_on_path)
        continue;
      json_builder_begin_object (json);
      pto_json_add_string (json, "kernel", kernel->name);
      add_path_share (comparison, json, &kernel->shares[PTO_BEFORE], &kernel->shares[PTO_AFTER]);
      json_builder_end_object (json);
      for (guint s = 0; s < PTO_N_SIDES; s++)
        {
          sums[s].path_ns += kernel->shares[s].path_ns;
          sums[s].path_unknown += kernel->shares[s].path_unknown;
          pto_answer_sum_waits (&sums[s].path_waits, &kernel->shares[s].path_waits);
        }
    }
  json_builder_end_array (json);
  for (guint s = 0; s < PTO_N_SIDES; s++)
    if (comparison->analyses[s]->n_critical == 0)
      sums[s].path_unknown = comparison->analyses[s]->elapsed;
  add_path_share (comparison, json, &sums[PTO_BEFORE], &sums[PTO_AFTER]);
  json_builder_end_object (json);
}

static void
add_workers (Comparison *comparison, JsonBuilder *json)
{
  if (comparison->workers->len == 0)
    return;
  pto_json_begin_array (json, "workers");
  for (guint i = 0; i < comparison->workers->len; i++)
    {
      const Worker *worker = g_ptr_array_index (comparison->workers, i);

      json_builder_begin_object (json);
      pto_json_add_string (json, "worker", worker->path);
      add_both (comparison, json, "runs", worker->runs[PTO_BEFORE], worker->runs[PTO_AFTER]);
      add_both (comparison, json, "tasks", worker->tasks[PTO_BEFORE], worker->tasks[PTO_AFTER]);
      add_both (comparison, json, "elapsed_ns", worker->elapsed[PTO_BEFORE],
                worker->elapsed[PTO_AFTER]);
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
}

/* --- task by task --- */

static void
add_task (Comparison *comparison, JsonBuilder *json, guint side, guint32 position)
{
  PtoTrace *trace = comparison->traces[side];
  const PtoTraceEntry *task = &comparison->analyses[side]->tasks[position];

  pto_answer_add_task (json, trace, task);
  pto_answer_add_place (json, "submitted_at", trace, task->file, task->line);
}

/* Tasks of a side that the other one has not. */
static void
add_only (Comparison *comparison, JsonBuilder *json, guint side, const char *name)
{
  const PtoTraceMatch *match = comparison->match;
  guint n = 0;

  pto_json_begin_object (json, name);
  pto_json_begin_array (json, "tasks");
  for (guint i = 0; i < match->n[side]; i++)
    if (match->twin[side][match->order[side][i]] == PTO_TRACE_NOWHERE && n++ < MOST_NAMED)
      {
        json_builder_begin_object (json);
        add_task (comparison, json, side, match->order[side][i]);
        json_builder_end_object (json);
      }
  json_builder_end_array (json);
  pto_json_add_int (json, "n", n);
  json_builder_end_object (json);
  comparison->differs |= n > 0;
}

typedef struct
{
  guint32 before; /* positions in both tables */
  guint32 after;
  gint64 change;
} Changed;

static gint
compare_changed (gconstpointer a, gconstpointer b)
{
  const Changed *x = a;
  const Changed *y = b;

  return 2 * pto_trace_order ((guint64) ABS (y->change), (guint64) ABS (x->change))
         + pto_trace_order (x->before, y->before);
}

static guint64
get_time (const PtoTraceEntry *task)
{
  return task->end != PTO_TRACE_NEVER ? task->end - task->start - task->waited : 0;
}

/* Tasks of both sides that took another time, and how many were at another time or place. */
static void
add_changed (Comparison *comparison, JsonBuilder *json)
{
  const PtoTraceMatch *match = comparison->match;
  g_autoptr (GArray) changed = g_array_new (FALSE, FALSE, sizeof (Changed));
  guint n_moved = 0;

  for (guint i = 0; i < match->n[PTO_BEFORE]; i++)
    {
      guint32 position = match->order[PTO_BEFORE][i];
      guint32 twin = match->twin[PTO_BEFORE][position];
      const PtoTraceEntry *before, *after;
      Changed item = { position, twin, 0 };

      if (twin == PTO_TRACE_NOWHERE)
        continue;
      before = &comparison->analyses[PTO_BEFORE]->tasks[position];
      after = &comparison->analyses[PTO_AFTER]->tasks[twin];
      item.change = (gint64) (get_time (after) - get_time (before));
      if (item.change != 0)
        g_array_append_val (changed, item);
      if (before->submit != after->submit || before->start != after->start
          || before->end != after->end || before->core != after->core)
        n_moved++;
    }
  g_array_sort (changed, compare_changed);
  pto_json_add_int (json, "matched", match->n_matched);
  pto_json_add_int (json, "moved", n_moved);
  pto_json_begin_object (json, "changed");
  pto_json_add_int (json, "n", changed->len);
  pto_json_begin_array (json, "tasks");
  for (guint i = 0; i < MIN (changed->len, MOST_NAMED); i++)
    {
      const Changed *item = &g_array_index (changed, Changed, i);
      const PtoTraceEntry *after = &comparison->analyses[PTO_AFTER]->tasks[item->after];

      json_builder_begin_object (json);
      add_task (comparison, json, PTO_BEFORE, item->before);
      pto_answer_add_id (json, "task_after", after->id);
      add_both (comparison, json, "busy_ns",
                get_time (&comparison->analyses[PTO_BEFORE]->tasks[item->before]),
                get_time (after));
      json_builder_end_object (json);
    }
  json_builder_end_array (json);
  json_builder_end_object (json);
  comparison->differs |= changed->len > 0 || n_moved > 0;
}

/* Producers of a task of a side that its twin does not wait for, as far as both sides have them;
 * ids of tasks of that side. marks: of the other side's tasks, those that the twin waits for have
 * the number mark. */
static guint
count_other_producers (Comparison *comparison, JsonBuilder *json, guint side, guint32 position,
                       guint32 *marks, guint32 mark)
{
  const PtoTraceAnalysis *here = comparison->analyses[side];
  const PtoTraceAnalysis *there = comparison->analyses[!side];
  const guint32 *twins = comparison->match->twin[side];
  const PtoTraceEntry *task = &here->tasks[position];
  const PtoTraceEntry *twin = &there->tasks[twins[position]];
  guint n = 0;

  for (guint k = 0; k < twin->n_deps; k++)
    if (there->deps[twin->first_dep + k].producer_index != PTO_TRACE_NOWHERE)
      marks[there->deps[twin->first_dep + k].producer_index] = mark;
  for (guint k = 0; k < task->n_deps; k++)
    {
      const PtoTraceDep *dep = &here->deps[task->first_dep + k];

      if (dep->producer_index == PTO_TRACE_NOWHERE
          || (twins[dep->producer_index] != PTO_TRACE_NOWHERE
              && marks[twins[dep->producer_index]] == mark))
        continue;
      n++;
      if (json != NULL)
        {
          g_autofree char *id = g_strdup_printf ("%" G_GUINT64_FORMAT, dep->producer);

          json_builder_add_string_value (json, id);
        }
    }
  return n;
}

/* Tasks of both sides that wait for other ones, and the first of them. */
static void
add_rewired (Comparison *comparison, JsonBuilder *json)
{
  static const char *const names[] = { "only_before", "only_after" };
  const PtoTraceMatch *match = comparison->match;
  guint32 *marks[PTO_N_SIDES];
  guint32 first = PTO_TRACE_NOWHERE;
  guint32 mark = 0;
  guint n = 0;

  if (!comparison->has_edges)
    return;
  for (guint s = 0; s < PTO_N_SIDES; s++)
    marks[s] = g_new0 (guint32, MAX (comparison->analyses[!s]->n_tasks, 1));
  for (guint i = 0; i < match->n[PTO_BEFORE]; i++)
    {
      guint32 position = match->order[PTO_BEFORE][i];
      guint32 twin = match->twin[PTO_BEFORE][position];

      if (twin == PTO_TRACE_NOWHERE)
        continue;
      mark++;
      if (count_other_producers (comparison, NULL, PTO_BEFORE, position, marks[PTO_BEFORE], mark)
              + count_other_producers (comparison, NULL, PTO_AFTER, twin, marks[PTO_AFTER], mark)
          == 0)
        continue;
      if (n++ == 0)
        first = position;
    }
  pto_json_begin_object (json, "rewired");
  pto_json_add_int (json, "n", n);
  if (first != PTO_TRACE_NOWHERE)
    {
      guint32 twin = match->twin[PTO_BEFORE][first];

      pto_json_begin_object (json, "first");
      add_task (comparison, json, PTO_BEFORE, first);
      pto_answer_add_id (json, "task_after", comparison->analyses[PTO_AFTER]->tasks[twin].id);
      for (guint s = 0; s < PTO_N_SIDES; s++)
        {
          pto_json_begin_array (json, names[s]);
          count_other_producers (comparison, json, s, s == PTO_BEFORE ? first : twin, marks[s],
                                 ++mark);
          json_builder_end_array (json);
        }
      json_builder_end_object (json);
    }
  json_builder_end_object (json);
  for (guint s = 0; s < PTO_N_SIDES; s++)
    g_free (marks[s]);
  comparison->differs |= n > 0;
}

/* --- the calls --- */

static void
read_side (Comparison *comparison, guint side)
{
  const GPtrArray *parts = pto_trace_get_parts (comparison->traces[side]);

  for (guint i = 0; i < parts->len; i++)
    {
      const PtoTracePart *part = g_ptr_array_index (parts, i);
      g_autoptr (GHashTable) by_number = g_hash_table_new (NULL, NULL);
      Worker *worker;

      read_tasks (comparison, side, part->trace, by_number);
      if (part->parent == NULL)
        {
          read_path (comparison, side, part->trace, by_number);
          continue;
        }
      /* On the clock of its own worker. */
      worker = find_worker (comparison, part->path);
      worker->runs[side]++;
      worker->tasks[side] += part->analysis->n_tasks;
      worker->elapsed[side] += part->analysis->elapsed;
    }
}

static JsonNode *
compare (PtoTrace *before, PtoTrace *after)
{
  g_autoptr (JsonBuilder) json = json_builder_new_immutable ();
  g_autoptr (PtoTraceMatch) match = pto_trace_match_new (before, after);
  Comparison comparison
      = { .traces = { before, after },
          .match = match,
          .has_waits = pto_answer_has_level (before, PTO_TRACE_LEVEL_SCHEDULE)
                       && pto_answer_has_level (after, PTO_TRACE_LEVEL_SCHEDULE),
          .has_edges = pto_answer_has_level (before, PTO_TRACE_LEVEL_GRAPH)
                       && pto_answer_has_level (after, PTO_TRACE_LEVEL_GRAPH),
          .kernels = g_ptr_array_new_with_free_func (kernel_free),
          .kernel_index = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
          .workers = g_ptr_array_new_with_free_func (worker_free),
          .worker_index = g_hash_table_new (g_str_hash, g_str_equal) };

  for (guint s = 0; s < PTO_N_SIDES; s++)
    {
      comparison.analyses[s] = pto_trace_get_analysis (comparison.traces[s]);
      read_side (&comparison, s);
    }
  g_ptr_array_sort (comparison.kernels, compare_kernels);

  json_builder_begin_object (json);
  for (guint s = 0; s < PTO_N_SIDES; s++)
    add_side (&comparison, json, s);
  add_both (&comparison, json, "elapsed_ns", comparison.analyses[PTO_BEFORE]->elapsed,
            comparison.analyses[PTO_AFTER]->elapsed);
  add_both (&comparison, json, "tasks", comparison.analyses[PTO_BEFORE]->n_tasks,
            comparison.analyses[PTO_AFTER]->n_tasks);
  if (comparison.has_edges)
    add_both (&comparison, json, "edges", comparison.analyses[PTO_BEFORE]->n_deps,
              comparison.analyses[PTO_AFTER]->n_deps);
  add_both (&comparison, json, "failed", comparison.analyses[PTO_BEFORE]->n_failed,
            comparison.analyses[PTO_AFTER]->n_failed);
  add_moved (&comparison, json);
  add_cores (&comparison, json);
  add_path (&comparison, json);
  add_kernels (&comparison, json);
  add_workers (&comparison, json);
  add_changed (&comparison, json);
  add_only (&comparison, json, PTO_BEFORE, "only_before");
  add_only (&comparison, json, PTO_AFTER, "only_after");
  add_rewired (&comparison, json);
  pto_json_add_boolean (json, "same", !comparison.differs);
  json_builder_end_object (json);

  g_hash_table_unref (comparison.kernel_index);
  g_ptr_array_unref (comparison.kernels);
  g_hash_table_unref (comparison.worker_index);
  g_ptr_array_unref (comparison.workers);
  return json_builder_get_root (json);
}

/**
 * pto_trace_compare_json:
 * @self: a trace
 * @other: the trace of another run
 *
 * Answers as JSON what [method@Pto.Trace.compare] answers as text. What is compared is an object
 * with `before` (@self), `after` (@other) and `change`; doc/traces.md lists the members.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): an object of JSON
 *
 * Since: 0.1
 */
char *
pto_trace_compare_json (PtoTrace *self, PtoTrace *other)
{
  g_autoptr (JsonNode) root = NULL;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  g_return_val_if_fail (PTO_IS_TRACE (other), NULL);

  root = compare (self, other);
  return json_to_string (root, TRUE);
}

/**
 * pto_trace_compare:
 * @self: a trace
 * @other: the trace of another run, as a rule of the same program
 *
 * Tells what differs from @self to @other, and why: how long the runs took; by which kernels and
 * which waits of the critical path the one is longer, which adds up to the difference exactly; what
 * the tasks of each kernel took and waited for; which tasks took another time, are there in one
 * only, or wait for other tasks.
 *
 * Tasks are matched by the order of their submits and their kernels. What one of the two did not
 * record is not compared. Of workers of level 3 and up it tells of their own tasks, and of kernels
 * and runs of the workers below them.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): lines that end in a newline each
 *
 * Since: 0.1
 */
char *
pto_trace_compare (PtoTrace *self, PtoTrace *other)
{
  g_autoptr (JsonNode) root = NULL;
  GString *text;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  g_return_val_if_fail (PTO_IS_TRACE (other), NULL);

  root = compare (self, other);
  text = g_string_new (NULL);
  pto_trace_append_comparison (text, json_node_get_object (root));
  return g_string_free (text, FALSE);
}
