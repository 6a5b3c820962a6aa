/* level-clock.c: when would the tasks of workers above chips run, on one virtual clock?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A chip on det knows how long a run of it takes; a worker above it runs in real time, in which
 * that says nothing. So the tasks that it recorded are gone through once more, in the order of a
 * clock of their own: each takes its link, its chip's virtual time and its link again, or the cost
 * of a function; it begins when what it waits for is over and its child is free. The answer is a
 * copy of the trace in which these are the times.
 *
 * What a task waits for are its recorded edges and, since a producer that had retired has none,
 * what follows from the arguments of both: regions that overlap, of which one is written.
 */
#include "config.h"

#include "pto-trace-simulate.h"

#include "core/region.h"

#include "base/error.h"
#include "callable/kernel.h"
#include "common/text.h"
#include "what-if.h"

#include <math.h>
#include <string.h>

typedef struct
{
  char *name; /* NULL: of all that have none of their own */
  struct pto_cost cost;
  struct pto_cost_point *points;
} FunctionCost;

typedef struct
{
  double submit_ns;
  double latency_ns;
  double ns_per_byte;
  GArray *functions; /* FunctionCost */
} Settings;

static void
function_cost_clear (gpointer data)
{
  FunctionCost *function = data;

  g_free (function->name);
  g_free (function->points);
}

static void
settings_clear (Settings *settings)
{
  g_clear_pointer (&settings->functions, g_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Settings, settings_clear)

/* --- settings --- */

/* A number with one of two units, of which the second is so many of the first. */
static gboolean
parse_with_unit (const char *text, const char *unit, const char *other, double scale, double *value)
{
  char *end;
  double number = g_ascii_strtod (text, &end);

  if (end == text || !isfinite (number) || number < 0)
    return FALSE;
  if (strcmp (end, other) == 0)
    number *= scale;
  else if (strcmp (end, unit) != 0)
    return FALSE;
  *value = number;
  return TRUE;
}

static gboolean
parse_time (const char *setting, const char *text, const char *example, double *ns, GError **error)
{
  g_autofree char *why = NULL;

  if (parse_with_unit (text, "ns", "us", 1000, ns) && *ns <= PTO_COST_MOST_NS)
    return TRUE;
  why = g_strdup_printf (_ ("a time wanted: %s, and no more than 1e15 ns (11 days)"), example);
  return pto_trace_refuse_setting (error, setting, why);
}

/* As ns of a byte, which are no more than those of a cost. */
static gboolean
parse_bandwidth (const char *setting, const char *text, double *ns_per_byte, GError **error)
{
  double bytes_per_ns;

  if (!parse_with_unit (text, "GB/s", "MB/s", 0.001, &bytes_per_ns)
      || bytes_per_ns * PTO_COST_MOST_NS < 1)
    return pto_trace_refuse_setting (
        error, setting,
        _ ("a bandwidth above 0 wanted: 56GB/s or 800MB/s, and no less than 1e-15GB/s"));
  *ns_per_byte = 1 / bytes_per_ns;
  return TRUE;
}

static gboolean
parse_function (Settings *settings, const char *setting, const char *text, GError **error)
{
  const char *equal = strchr (text, '=');
  FunctionCost function = { 0 };
  const char *why;

  if (equal == NULL || equal == text)
    return pto_trace_refuse_setting (error, setting,
                                     _ ("function=NAME=COST wanted, or function=*=COST"));
  if (!pto_kernel_parse_cost (equal + 1, &function.cost, &function.points, &why)
      || function.cost.model == PTO_COST_MEASURE)
    {
      g_autofree char *refusal
          = why != NULL ? g_strdup_printf ("\"%s\" %s", equal + 1, why)
                        : g_strdup (_ ("a cost wanted: constant:NS, linear:NS:NS-PER-BYTE or "
                                       "table:BYTES:NS,BYTES:NS"));

      return pto_trace_refuse_setting (error, setting, refusal);
    }
  function.name = g_strndup (text, (gsize) (equal - text));
  if (strcmp (function.name, "*") == 0)
    g_clear_pointer (&function.name, g_free);
  g_array_append_val (settings->functions, function);
  return TRUE;
}

static gboolean
parse_setting (Settings *settings, const char *setting, GError **error)
{
  const char *equal = strchr (setting, '=');
  g_autofree char *name = equal != NULL ? g_strndup (setting, (gsize) (equal - setting)) : NULL;

  if (g_strcmp0 (name, "function") == 0)
    return parse_function (settings, setting, equal + 1, error);
  if (g_strcmp0 (name, "submit") == 0)
    return parse_time (setting, equal + 1, _ ("870ns or 0.87us"), &settings->submit_ns, error);
  if (g_strcmp0 (name, "link-latency") == 0)
    return parse_time (setting, equal + 1, _ ("2us or 2000ns"), &settings->latency_ns, error);
  if (g_strcmp0 (name, "link-bandwidth") == 0)
    return parse_bandwidth (setting, equal + 1, &settings->ns_per_byte, error);
  return pto_trace_refuse_setting (
      error, setting, _ ("unknown (known: link-latency, link-bandwidth, function, submit)"));
}

/* Of a piece of a trace. */
static PtoTrace *
get_piece (PtoTrace *trace, guint number)
{
  return ((PtoTracePiece *) g_ptr_array_index (trace->pieces.list, number))->trace;
}

/* Of the whole tree: what SUB workers ran. */
static void
list_functions (PtoTrace *trace, GPtrArray *names)
{
  const PtoTraceAnalysis *analysis;

  if (!pto_trace_is_level (trace))
    return;
  analysis = pto_trace_get_analysis (trace);
  for (guint i = 0; i < analysis->n_tasks; i++)
    {
      const PtoTraceEntry *task = &analysis->tasks[i];
      const char *name = pto_trace_get_kernel_name (trace, task->kernel);

      if (task->core != PTO_TRACE_NOWHERE && task->core >= trace->topology.n_workers
          && !g_ptr_array_find_with_equal_func (names, name, g_str_equal, NULL))
        g_ptr_array_add (names, (gpointer) name);
    }
  for (guint i = 0; i < trace->pieces.list->len; i++)
    list_functions (get_piece (trace, i), names);
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

/* A cost of what did not run would have no effect. */
static gboolean
check_functions (PtoTrace *trace, const Settings *settings, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autofree char *known = NULL;

  list_functions (trace, names);
  g_ptr_array_sort (names, compare_names);
  g_ptr_array_add (names, NULL);
  known = g_strjoinv (", ", (char **) names->pdata);
  for (guint i = 0; i < settings->functions->len; i++)
    {
      const FunctionCost *function = &g_array_index (settings->functions, FunctionCost, i);

      if (function->name == NULL
          || g_strv_contains ((const char *const *) names->pdata, function->name))
        continue;
      return pto_error_set (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                            names->len > 1 ? _ ("function=%s: no such function ran (there are: %s)")
                                           : _ ("function=%s: no function ran in it%s"),
                            function->name, known);
    }
  return TRUE;
}

static const FunctionCost *
find_function (const Settings *settings, const char *name)
{
  const FunctionCost *found = NULL;

  for (guint i = 0; i < settings->functions->len; i++)
    {
      const FunctionCost *function = &g_array_index (settings->functions, FunctionCost, i);

      if (function->name == NULL ? found == NULL || found->name == NULL
                                 : strcmp (function->name, name) == 0)
        found = function;
    }
  return found;
}

/* --- the graph --- */

/* A task on one child. */
typedef struct
{
  guint32 entry;   /* in the analysis */
  guint32 child;   /* of the level */
  guint64 into;    /* over the link */
  guint64 work;    /* there */
  guint64 back;    /* over the link */
  PtoTrace *piece; /* of the copy: what it did there; NULL: nothing that was recorded */
  guint64 start;
  guint64 end;
} Member;

typedef struct
{
  guint32 first_member; /* in Graph.members */
  guint32 n_members;
  guint32 n_waits;    /* producers that are not over */
  guint32 first_edge; /* in Graph.consumers, when they are sorted */
  guint32 last;       /* whose end made it ready; PTO_TRACE_NOWHERE: nobody's */
  guint64 submit;
  guint64 ready;
  guint64 end;
} Node;

typedef struct
{
  PtoTrace *trace;
  PtoTrace *copy; /* of it, and of those below it; nothing was asked of it yet */
  const Settings *settings;
  const PtoTraceAnalysis *analysis;
  Node *nodes;
  GArray *members; /* Member */
  GArray *edges;   /* guint64: producer << 32 | consumer, ascending, none twice */
  guint64 end;     /* of all */
} Graph;

static void
graph_clear (Graph *graph)
{
  g_clear_pointer (&graph->nodes, g_free);
  g_clear_pointer (&graph->members, g_array_unref);
  g_clear_pointer (&graph->edges, g_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Graph, graph_clear)

static void
add_edge (Graph *graph, guint32 producer, guint32 consumer)
{
  guint64 edge = (guint64) producer << 32 | consumer;

  if (producer < consumer)
    g_array_append_val (graph->edges, edge);
}

static inline guint64
get_edge (const Graph *graph, guint i)
{
  return g_array_index (graph->edges, guint64, i);
}

/* An argument as memory. */
typedef struct
{
  struct pto_region region; /* begins with its first byte */
  guint32 task;
  guint32 arg;
  gboolean reads;
  gboolean writes;
  guint area; /* of which no byte is in another one's */
} Access;

static gint
compare_turns (gconstpointer a, gconstpointer b)
{
  const Access *x = a;
  const Access *y = b;

  if (x->area != y->area)
    return x->area < y->area ? -1 : 1;
  if (x->task != y->task)
    return x->task < y->task ? -1 : 1;
  return x->arg < y->arg ? -1 : x->arg > y->arg;
}

static GArray *
list_accesses (const PtoTraceAnalysis *analysis)
{
  GArray *accesses = g_array_new (FALSE, TRUE, sizeof (Access));
  guint area = 0;
  guint64 end = 0;

  for (guint i = 0; i < analysis->n_args; i++)
    {
      const PtoTraceArg *arg = &analysis->args[i];
      Access access = { .task = arg->task,
                        .arg = i,
                        .reads = pto_trace_arg_reads (arg),
                        .writes = pto_trace_arg_writes (arg) };
      Tensor tensor
          = { .buffer = { .addr = arg->word }, .dtype = arg->dtype, .ndims = arg->n_dims };

      if (arg->type == PTO_PARAM_SCALAR || (!access.reads && !access.writes) || arg->n_dims == 0)
        continue;
      for (guint d = 0; d < arg->n_dims; d++)
        {
          tensor.shapes[d] = arg->shape[d];
          tensor.strides[d] = arg->strides[d];
        }
      pto_region_init (&access.region, &tensor);
      if (access.region.hi > access.region.lo)
        g_array_append_val (accesses, access);
    }
  g_array_sort (accesses, pto_trace_compare_times);
  for (guint i = 0; i < accesses->len; i++)
    {
      Access *access = &g_array_index (accesses, Access, i);

      if (access->region.lo >= end)
        area++;
      end = MAX (end, access->region.hi);
      access->area = area;
    }
  g_array_sort (accesses, compare_turns);
  return accesses;
}

/* Whom an access waits for in its area: back to a write of all of it, and of those who have read
 * since, who reads what it writes. */
static void
look_back (Graph *graph, const Access *accesses, guint at)
{
  const Access *access = &accesses[at];

  for (guint i = at; i-- > 0 && accesses[i].area == access->area;)
    {
      const Access *before = &accesses[i];
      bool unsure = false;

      if (before->task == access->task || (!before->writes && !access->writes)
          || !pto_region_overlaps (&before->region, &access->region, &unsure))
        continue;
      add_edge (graph, before->task, access->task);
      if (before->writes && pto_region_covers (&before->region, &access->region))
        return;
    }
}

static void
find_edges (Graph *graph)
{
  const PtoTraceAnalysis *analysis = graph->analysis;
  g_autoptr (GArray) accesses = list_accesses (analysis);
  guint n = 0;

  graph->edges = g_array_new (FALSE, FALSE, sizeof (guint64));
  for (guint i = 0; i < analysis->n_deps; i++)
    if (analysis->deps[i].producer_index != PTO_TRACE_NOWHERE)
      add_edge (graph, analysis->deps[i].producer_index, analysis->deps[i].consumer);
  for (guint i = 0; i < accesses->len; i++)
    look_back (graph, (const Access *) (void *) accesses->data, i);
  g_array_sort (graph->edges, pto_trace_compare_times);
  for (guint i = 0; i < graph->edges->len; i++)
    if (n == 0 || get_edge (graph, i) != get_edge (graph, n - 1))
      {
        g_array_index (graph->edges, guint64, n++) = get_edge (graph, i);
        graph->nodes[(guint32) get_edge (graph, i)].n_waits++;
      }
  g_array_set_size (graph->edges, n);
  for (guint task = 0, i = 0; task < analysis->n_tasks; task++)
    {
      graph->nodes[task].first_edge = i;
      while (i < n && get_edge (graph, i) >> 32 == task)
        i++;
    }
}

/* --- what each takes --- */

/* What is longer than the clock counts as one ns longer: sums of three have room. */
static guint64
to_ns (double ns)
{
  return ns <= (double) PTO_VIRTUAL_CLOCK_END ? (guint64) ns : PTO_VIRTUAL_CLOCK_END + 1;
}

static void
count_bytes (const PtoTraceAnalysis *analysis, const PtoTraceEntry *task, guint64 *in, guint64 *out,
             guint64 *all)
{
  *in = *out = *all = 0;
  for (guint i = 0; i < task->n_args; i++)
    {
      const PtoTraceArg *arg = &analysis->args[task->first_arg + i];
      guint64 bytes = arg->type != PTO_PARAM_SCALAR ? pto_trace_arg_bytes (arg) : 0;

      *all += bytes;
      *in += pto_trace_arg_reads (arg) ? bytes : 0;
      *out += pto_trace_arg_writes (arg) ? bytes : 0;
    }
}

static gboolean simulate (PtoTrace *trace, PtoTrace *copy, const Settings *settings,
                          GError **error);

/* On a worker: what the clock of that says; over its link what it reads, and what it writes back.
 */
static gboolean
measure_worker (const Graph *graph, Member *member, guint n_members, GError **error)
{
  PtoTrace *trace = graph->trace;
  const Settings *settings = graph->settings;
  const PtoTraceEntry *entry = &graph->analysis->tasks[member->entry];
  g_autofree char *task = pto_trace_dup_task_name (entry->id);
  guint64 in, out, all;
  guint number = 0;

  while (number < trace->pieces.list->len
         && graph->analysis->piece_entries[number] != member->entry)
    number++;
  if (number == trace->pieces.list->len)
    return pto_error_set (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                          _ ("%s: what %s did in task %s was not recorded"), trace->path,
                          trace->rows[member->child], task);
  member->piece = get_piece (graph->copy, number);
  if (pto_trace_is_level (member->piece))
    {
      if (!simulate (get_piece (trace, number), member->piece, settings, error))
        return FALSE;
    }
  else if (!member->piece->topology.virtual_clock)
    return pto_error_set (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                          _ ("%s/%s ran task %s in real time: set its parameter backend to det"),
                          trace->path, trace->rows[member->child], task);
  count_bytes (graph->analysis, entry, &in, &out, &all);
  member->into = to_ns (settings->latency_ns + settings->ns_per_byte * (double) in / n_members);
  member->work = MIN (member->piece->topology.run_ns, PTO_VIRTUAL_CLOCK_END + 1);
  member->back = to_ns (settings->latency_ns + settings->ns_per_byte * (double) out / n_members);
  return TRUE;
}

static gboolean
measure_function (const Graph *graph, Member *member, guint n_members, GError **error)
{
  const PtoTraceEntry *entry = &graph->analysis->tasks[member->entry];
  const char *name = pto_trace_get_kernel_name (graph->trace, entry->kernel);
  const FunctionCost *function = find_function (graph->settings, name);
  guint64 in, out, all;

  if (function == NULL)
    return pto_error_set (
        error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        _ ("%s: what the function \"%s\" takes is not known: set function=%s=COST"),
        graph->trace->path, name, name);
  count_bytes (graph->analysis, entry, &in, &out, &all);
  member->work = to_ns (pto_cost_get_ns (&function->cost, all / n_members));
  return TRUE;
}

static gboolean
add_member (Graph *graph, guint32 entry, guint n_members, GError **error)
{
  Member member = { .entry = entry, .child = graph->analysis->tasks[entry].core };

  if (!(member.child < graph->trace->topology.n_workers
            ? measure_worker (graph, &member, n_members, error)
            : measure_function (graph, &member, n_members, error)))
    return FALSE;
  g_array_append_val (graph->members, member);
  return TRUE;
}

static gboolean
find_members (Graph *graph, GError **error)
{
  for (guint i = 0; i < graph->analysis->n_tasks; i++)
    {
      const PtoTraceEntry *task = &graph->analysis->tasks[i];
      Node *node = &graph->nodes[i];
      g_autofree char *name = pto_trace_dup_task_name (task->id);

      node->first_member = graph->members->len;
      node->last = PTO_TRACE_NOWHERE;
      node->submit = to_ns (graph->settings->submit_ns * (i + 1));
      node->ready = node->submit;
      if (task->failed)
        return pto_error_set (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                              _ ("%s: task %s has failed"), graph->trace->path, name);
      /* It gives memory, or only orders. */
      if (task->core == PTO_TRACE_NOWHERE && (gint32) task->kernel < 0)
        continue;
      if (task->core == PTO_TRACE_NOWHERE)
        return pto_error_set (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                              _ ("%s: task %s did not run"), graph->trace->path, name);
      node->n_members = 1 + task->n_members;
      for (guint m = 0; m < node->n_members; m++)
        if (!add_member (graph, m == 0 ? i : task->first_member + m - 1, node->n_members, error))
          return FALSE;
    }
  return TRUE;
}

/* --- the clock --- */

static gint
compare_ready (gconstpointer a, gconstpointer b, gpointer data)
{
  const Node *nodes = data;
  guint x = GPOINTER_TO_UINT (a);
  guint y = GPOINTER_TO_UINT (b);

  if (nodes[x].ready != nodes[y].ready)
    return nodes[x].ready < nodes[y].ready ? -1 : 1;
  return x < y ? -1 : x > y;
}

/* All members at once, when the last of their children is free. No time here is greater than the
 * end of the clock, or the simulation ends with this node; so no sum turns over. */
static void
run_node (Graph *graph, Node *node, guint64 *free_at)
{
  guint64 start = node->ready;

  for (guint m = 0; m < node->n_members; m++)
    {
      const Member *member = &g_array_index (graph->members, Member, node->first_member + m);

      start = MAX (start, free_at[member->child]);
    }
  node->end = start;
  for (guint m = 0; m < node->n_members; m++)
    {
      Member *member = &g_array_index (graph->members, Member, node->first_member + m);

      member->start = start;
      member->end = start + member->into + member->work + member->back;
      free_at[member->child] = member->end;
      node->end = MAX (node->end, member->end);
    }
}

/* Tasks begin in the order in which they become ready: none that is not known yet can be ready
 * before one that is, since it waits for a task that begins later. FALSE: all are over later than
 * the clock goes. */
static gboolean
run_graph (Graph *graph, GError **error)
{
  g_autofree guint64 *free_at = g_new0 (guint64, MAX (graph->trace->topology.n_cores, 1));
  g_autoptr (GSequence) ready = g_sequence_new (NULL);

  for (guint i = 0; i < graph->analysis->n_tasks; i++)
    if (graph->nodes[i].n_waits == 0)
      g_sequence_insert_sorted (ready, GUINT_TO_POINTER (i), compare_ready, graph->nodes);
  while (!g_sequence_is_empty (ready))
    {
      GSequenceIter *first = g_sequence_get_begin_iter (ready);
      guint32 number = GPOINTER_TO_UINT (g_sequence_get (first));
      Node *node = &graph->nodes[number];

      g_sequence_remove (first);
      run_node (graph, node, free_at);
      graph->end = MAX (graph->end, node->end);
      if (graph->end > PTO_VIRTUAL_CLOCK_END)
        {
          g_autofree char *name = pto_trace_dup_task_name (graph->analysis->tasks[number].id);

          return pto_error_set (
              error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
              _ ("%s: task %s would be over later than the virtual clock goes, to "
                 "%" PRIu64 " ns (52 days)"),
              graph->trace->path, name, (guint64) PTO_VIRTUAL_CLOCK_END);
        }
      for (guint e = node->first_edge; e < graph->edges->len && get_edge (graph, e) >> 32 == number;
           e++)
        {
          guint32 next = (guint32) get_edge (graph, e);
          Node *consumer = &graph->nodes[next];

          if (node->end >= consumer->ready)
            {
              consumer->ready = node->end;
              consumer->last = number;
            }
          if (--consumer->n_waits == 0)
            g_sequence_insert_sorted (ready, GUINT_TO_POINTER (next), compare_ready, graph->nodes);
        }
    }
  return TRUE;
}

/* --- the copy --- */

static const Member *
find_member (const Graph *graph, const Node *node, guint32 child)
{
  for (guint m = 0; m < node->n_members; m++)
    {
      const Member *member = &g_array_index (graph->members, Member, node->first_member + m);

      if (member->child == child)
        return member;
    }
  return NULL;
}

/* before: when the last task was submitted, for what is of none. */
static void
rewrite (struct pto_trace_record *record, const Graph *graph, const Node *node, guint64 *before)
{
  const Member *member;

  if (node == NULL)
    {
      record->time = *before;
      if (PTO_TRACE_HAS_END (record->kind))
        record->extra = *before;
      return;
    }
  switch (record->kind)
    {
    case PTO_TRACE_SUBMIT:
    case PTO_TRACE_DEP:
      record->time = *before = node->submit;
      break;
    case PTO_TRACE_READY:
      record->time = node->ready;
      record->detail = node->last != PTO_TRACE_NOWHERE;
      record->extra = record->detail ? graph->analysis->tasks[node->last].id : 0;
      break;
    case PTO_TRACE_DISPATCH:
    case PTO_TRACE_ACK:
    case PTO_TRACE_RUN:
      member = find_member (graph, node, record->detail);
      record->time = member != NULL ? member->start : node->ready;
      if (record->kind == PTO_TRACE_RUN)
        record->extra = member != NULL ? member->end : node->end;
      break;
    case PTO_TRACE_TRANSFER:
      member = find_member (graph, node, record->detail & ~PTO_TRACE_TRANSFER_BACK);
      record->time = record->extra = node->end;
      if (member != NULL && (record->detail & PTO_TRACE_TRANSFER_BACK) != 0)
        {
          record->time = member->end - MIN (member->back, member->end - member->start);
          record->extra = member->end;
        }
      else if (member != NULL)
        {
          record->time = member->start;
          record->extra = member->start + MIN (member->into, member->end - member->start);
        }
      break;
    default:
      record->time = node->end;
      break;
    }
}

/* What a worker did lies so much later; the clock of all is one. */
static void
move (PtoTrace *trace, guint64 by)
{
  trace->topology.begin_ns += by;
  trace->topology.end_ns += by;
  for (guint i = 0; pto_trace_is_level (trace) && i < trace->pieces.list->len; i++)
    move (get_piece (trace, i), by);
}

/* Those that one record says are retired were all so when the last of them had ended. */
static guint64
find_end (const Graph *graph, GHashTable *index, const struct pto_trace_record *record)
{
  guint64 end = 0;

  for (guint i = 0; i <= record->detail && i < graph->analysis->n_tasks; i++)
    {
      guint64 id = PTO_TRACE_RETIRED (record->task, i);
      guint number = GPOINTER_TO_UINT (g_hash_table_lookup (index, &id));

      if (number > 0)
        end = MAX (end, graph->nodes[number - 1].end);
    }
  return end;
}

static void
write_copy (const Graph *graph)
{
  PtoTrace *copy = graph->copy;
  g_autoptr (GHashTable) index = g_hash_table_new (g_int64_hash, g_int64_equal);
  guint64 before = 0;

  for (guint i = 0; i < graph->analysis->n_tasks; i++)
    g_hash_table_insert (index, (gpointer) &graph->analysis->tasks[i].id, GUINT_TO_POINTER (i + 1));
  for (guint64 i = 0; i < copy->starts[copy->n_buffers]; i++)
    {
      struct pto_trace_record *record = &copy->records[i];
      gboolean of_none = record->kind == PTO_TRACE_SCOPE || record->kind == PTO_TRACE_STALL
                         || record->kind == PTO_TRACE_OCCUPANCY;
      guint number = of_none ? 0 : GPOINTER_TO_UINT (g_hash_table_lookup (index, &record->task));

      if (!PTO_TRACE_IS_WORDS (record->kind))
        rewrite (record, graph, number > 0 ? &graph->nodes[number - 1] : NULL, &before);
      if (record->kind == PTO_TRACE_RETIRE)
        record->time = find_end (graph, index, record);
    }
  for (guint i = 0; i < graph->members->len; i++)
    {
      const Member *member = &g_array_index (graph->members, Member, i);

      if (member->piece == NULL)
        continue;
      if (!pto_trace_is_level (member->piece))
        member->piece->topology.begin_ns = 0;
      member->piece->topology.end_ns
          = member->piece->topology.begin_ns + member->piece->topology.run_ns;
      move (member->piece, member->start + member->into);
    }
  copy->topology.virtual_clock = TRUE;
  copy->topology.begin_ns = 0;
  copy->topology.end_ns = copy->topology.run_ns = graph->end;
}

static gboolean
simulate (PtoTrace *trace, PtoTrace *copy, const Settings *settings, GError **error)
{
  g_auto (Graph) graph = {
    .trace = trace, .copy = copy, .settings = settings, .analysis = pto_trace_get_analysis (trace)
  };

  if (trace->dropped > 0)
    return pto_error_set (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                          _ ("%s: %" PRIu64 " records were dropped: set trace-records to more"),
                          trace->path, trace->dropped);
  if (trace->topology.recorded < PTO_TRACE_LEVEL_FULL)
    return pto_error_set (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                          _ ("%s: its tasks' arguments were not recorded: set trace-level to 4"),
                          trace->path);
  graph.nodes = g_new0 (Node, MAX (graph.analysis->n_tasks, 1));
  graph.members = g_array_new (FALSE, FALSE, sizeof (Member));
  if (!find_members (&graph, error))
    return FALSE;
  find_edges (&graph);
  if (!run_graph (&graph, error))
    return FALSE;
  write_copy (&graph);
  return TRUE;
}

/**
 * pto_trace_simulate:
 * @self: the trace of a worker of level 3 or up, of trace level 4, whose chips ran on `det`
 * @settings: (array zero-terminated=1) (nullable): `link-latency=2us`, `link-bandwidth=56GB/s`,
 *   `function=NAME=COST` (or `function=*=COST`), `submit=870ns`; no time is longer than 1e15 ns
 * @error: return location for an error
 *
 * Puts a whole tree of workers on one virtual clock: when each task would have been submitted, run
 * and been over, if chips took what their own virtual clocks say, links and functions what the
 * settings say, and nothing else took time.
 *
 * A task on a worker takes its link, for what it reads: the latency, and its bytes at the
 * bandwidth; then what the run there takes; then the link again, for what it writes. A task on a
 * SUB worker takes the cost of its function ([method@Pto.Kernel.set_cost] says what a cost is), by
 * the bytes of all of its tensors. Members of a group begin together, and have equal parts of its
 * tensors. What is not set takes no time, but a function must have a cost. Tasks are submitted one
 * after the other; each begins on the worker that ran it, when what it waits for is over and the
 * worker is free, in the order in which they become ready. Room in rings is not seen, nor what the
 * orchestration reads.
 *
 * The answer depends on the graph, on who ran what, and on the chips' clocks: where tasks name
 * their workers, and chips run on `det`, two runs give the same, to the nanosecond.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): a trace on that clock, which can be asked, drawn and saved as any
 * other; %NULL with %G_IO_ERROR_NOT_SUPPORTED when the record has not what this takes, or would end
 *   behind 2^52 ns (52 days), where the clock does, or %G_IO_ERROR_INVALID_ARGUMENT for a setting,
 *   also of a function that did not run
 *
 * Since: 0.1
 */
PtoTrace *
pto_trace_simulate (PtoTrace *self, const char *const *settings, GError **error)
{
  g_auto (Settings) parsed = { 0 };
  g_autoptr (PtoTrace) copy = NULL;
  g_autofree guint8 *bytes = NULL;
  gsize size;

  g_return_val_if_fail (PTO_IS_TRACE (self), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  parsed.functions = g_array_new (FALSE, FALSE, sizeof (FunctionCost));
  g_array_set_clear_func (parsed.functions, function_cost_clear);
  for (guint i = 0; settings != NULL && settings[i] != NULL; i++)
    if (!parse_setting (&parsed, settings[i], error))
      return NULL;
  if (!pto_trace_is_level (self))
    {
      pto_error_set (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                     _ ("it is the trace of a chip, which has a virtual clock of its own: a "
                        "worker of level 3 or up wanted"));
      return NULL;
    }
  size = pto_trace_get_packed_size (self);
  bytes = g_malloc (MAX (size, 1));
  pto_trace_pack (self, bytes);
  copy = pto_trace_new_from_packed (bytes, size);
  g_assert (copy != NULL);
  if (!check_functions (self, &parsed, error) || !simulate (self, copy, &parsed, error))
    return NULL;
  return g_steal_pointer (&copy);
}
