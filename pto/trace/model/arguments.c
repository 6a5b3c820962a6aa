/* arguments.c: what was a task given, and what of it is why it waits for another?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A record says which task waits for which, and that one of them writes what the other reads, or
 * writes. Which argument that is, and which bytes, follows from what both were given: nothing is
 * kept of it while the run goes on.
 */
#include "config.h"

#include "core/region.h"
#include "trace.h"

static void
read_dimensions (PtoTraceArg *arg, const struct pto_trace_record *record)
{
  guint first = record->detail;

  if (first >= PTO2_TENSOR_MAX_DIMS)
    return;
  if (record->kind == PTO_TRACE_SHAPE_WIDE)
    {
      arg->shape[first] = record->time;
      arg->strides[first] = record->task;
      return;
    }
  arg->shape[first] = record->time & 0xffffffffu;
  arg->strides[first] = record->task & 0xffffffffu;
  if (first + 1 < PTO2_TENSOR_MAX_DIMS)
    {
      arg->shape[first + 1] = record->time >> 32;
      arg->strides[first + 1] = record->task >> 32;
    }
}

static gint
compare_args (gconstpointer a, gconstpointer b)
{
  const PtoTraceArg *x = a;
  const PtoTraceArg *y = b;

  return 2 * pto_trace_order (x->task, y->task) + pto_trace_order (x->index, y->index);
}

/* Bytes from its first element to behind its last one. */
static guint64
get_extent (const PtoTraceArg *arg)
{
  return pto_extent (arg->n_dims, (DataType) arg->dtype, arg->shape, arg->strides);
}

/* Is that why the second waits for the first? */
static gboolean
accounts_for (guint32 kinds, const PtoTraceArg *first, const PtoTraceArg *second)
{
  return ((kinds & PTO_HAZARD_RAW) != 0 && pto_trace_arg_writes (first)
          && pto_trace_arg_reads (second))
         || ((kinds & PTO_HAZARD_WAW) != 0 && pto_trace_arg_writes (first)
             && pto_trace_arg_writes (second))
         || ((kinds & PTO_HAZARD_WAR) != 0 && pto_trace_arg_reads (first)
             && pto_trace_arg_writes (second));
}

/* The largest piece of memory that two arguments share for the reason that the dependency names.
 * From the first to the last shared byte: what lies in between may be of one of them only. */
static void
find_cause (const PtoTraceAnalysis *analysis, PtoTraceDep *dep)
{
  const PtoTraceEntry *producer = &analysis->tasks[dep->producer_index];
  const PtoTraceEntry *consumer = &analysis->tasks[dep->consumer];

  for (guint p = 0; p < producer->n_args; p++)
    for (guint c = 0; c < consumer->n_args; c++)
      {
        const PtoTraceArg *first = &analysis->args[producer->first_arg + p];
        const PtoTraceArg *second = &analysis->args[consumer->first_arg + c];
        guint64 from = MAX (first->word, second->word);
        guint64 to = MIN (first->word + get_extent (first), second->word + get_extent (second));

        if (!accounts_for (dep->kinds, first, second) || from >= to || to - from <= dep->bytes)
          continue;
        dep->producer_arg = first->index;
        dep->consumer_arg = second->index;
        dep->from = from - second->word;
        dep->bytes = to - from;
      }
}

void
pto_trace_read_args (PtoTraceAnalysis *analysis, PtoTrace *trace, GHashTable *index)
{
  GArray *args = g_array_new (FALSE, FALSE, sizeof (PtoTraceArg));
  gboolean is_tensor = FALSE;

  for (guint64 i = trace->starts[0]; i < trace->starts[MIN (trace->n_buffers, 1)]; i++)
    {
      const struct pto_trace_record *record = &trace->records[i];
      PtoTraceArg arg = { .word = record->time };

      if (is_tensor && (record->kind == PTO_TRACE_SHAPE || record->kind == PTO_TRACE_SHAPE_WIDE))
        read_dimensions (&g_array_index (args, PtoTraceArg, args->len - 1), record);
      is_tensor = is_tensor && record->kind > PTO_TRACE_ARG;
      if (record->kind != PTO_TRACE_ARG)
        continue;
      arg.task = pto_trace_find_position (index, record->task);
      if (arg.task == PTO_TRACE_NOWHERE)
        continue;
      arg.index = record->detail;
      arg.type = (guint8) PTO_TRACE_ARG_TYPE (record->extra);
      arg.dtype = (guint8) PTO_TRACE_ARG_DTYPE (record->extra);
      arg.n_dims = (guint8) MIN (PTO_TRACE_ARG_NDIMS (record->extra), PTO2_TENSOR_MAX_DIMS);
      is_tensor = arg.type != PTO_PARAM_SCALAR;
      g_array_append_val (args, arg);
    }
  g_array_sort (args, compare_args);
  analysis->n_args = args->len;
  analysis->args = (PtoTraceArg *) (void *) g_array_free (args, FALSE);
  for (guint i = 0; i < analysis->n_args; i++)
    {
      PtoTraceEntry *task = &analysis->tasks[analysis->args[i].task];

      if (task->n_args++ == 0)
        task->first_arg = i;
    }
  for (guint i = 0; i < analysis->n_deps; i++)
    if (analysis->deps[i].producer_index != PTO_TRACE_NOWHERE)
      find_cause (analysis, &analysis->deps[i]);
}
