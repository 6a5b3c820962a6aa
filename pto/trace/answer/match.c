/* match.c: which task of one run is which of another one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An orchestration submits in one order, whatever the schedule: two runs of it have the same list
 * of kernels. Where the lists differ, tasks are left out on either side so that the rest is equal:
 * as few as possible, by Myers' greedy search over diagonals. Lists that have next to nothing in
 * common would make that search long; of those the n-th task of a kernel is taken for the n-th of
 * the other's.
 */
#include "config.h"

#include "compare.h"

/* More tasks than these are not left out one by one. */
enum
{
  MOST_LEFT_OUT = 400
};

typedef struct
{
  guint32 *names; /* in order of submit: what the kernel is called, as a number of both sides */
  guint begin;    /* of what is not matched yet */
  guint end;
} List;

/* The tasks that have a submit, in its order, and what they were submitted as: a task of parts has
 * the kernel of the one that ended last. */
static void
read_order (PtoTrace *trace, GHashTable *numbers, guint32 **order, guint32 **names, guint *n)
{
  const PtoTraceAnalysis *analysis = pto_trace_get_analysis (trace);
  g_autoptr (GHashTable) positions = g_hash_table_new (g_int64_hash, g_int64_equal);
  guint64 end = trace->n_buffers > 0 ? trace->starts[1] : 0;

  *order = g_new (guint32, MAX (analysis->n_tasks, 1));
  *names = g_new (guint32, MAX (analysis->n_tasks, 1));
  *n = 0;
  for (guint i = 0; i < analysis->n_tasks; i++)
    g_hash_table_insert (positions, &analysis->tasks[i].id, GUINT_TO_POINTER (i));
  for (guint64 i = 0; i < end; i++)
    {
      const struct pto_trace_record *record = &trace->records[i];
      guint32 position;
      const char *name;
      gpointer number;

      if (record->kind != PTO_TRACE_SUBMIT)
        continue;
      position = pto_trace_find_position (positions, record->task);
      if (position == PTO_TRACE_NOWHERE)
        continue;
      /* Once. */
      g_hash_table_remove (positions, &record->task);
      name = pto_trace_get_kernel_name (trace, record->detail);
      if (!g_hash_table_lookup_extended (numbers, name, NULL, &number))
        {
          number = GUINT_TO_POINTER (g_hash_table_size (numbers));
          g_hash_table_insert (numbers, g_strdup (name), number);
        }
      (*order)[*n] = position;
      (*names)[(*n)++] = GPOINTER_TO_UINT (number);
    }
}

static void
pair (PtoTraceMatch *match, guint before, guint after)
{
  guint32 first = match->order[PTO_BEFORE][before];
  guint32 second = match->order[PTO_AFTER][after];

  match->twin[PTO_BEFORE][first] = second;
  match->twin[PTO_AFTER][second] = first;
  match->n_matched++;
}

/* Both ends that are equal. */
static void
match_ends (PtoTraceMatch *match, List *a, List *b)
{
  while (a->begin < a->end && b->begin < b->end && a->names[a->begin] == b->names[b->begin])
    pair (match, a->begin++, b->begin++);
  while (a->begin < a->end && b->begin < b->end && a->names[a->end - 1] == b->names[b->end - 1])
    pair (match, --a->end, --b->end);
}

/* How far into a one gets on diagonal k with d tasks left out, before what is equal there: from a
 * neighbour that last reached with d - 1, by leaving out one of b (down) or one of a. -1: not at
 * all. */
static gint64
arrive (const gint32 *last, gint64 d, gint64 k, gint64 n, gint64 m, gboolean *down)
{
  gint64 above = d > 0 && k < d - 1 ? last[k + d] : -1;
  gint64 beside = d > 0 && k > 1 - d ? last[k - 2 + d] : -1;

  *down = FALSE;
  if (d == 0)
    return 0;
  beside = beside >= 0 && beside < n ? beside + 1 : -1;
  if (above >= 0 && above - k > m)
    above = -1;
  *down = above > beside;
  return MAX (above, beside);
}

/* Finds how few are to be left out, and on which diagonal that ends. Keeps the furthest points of
 * all searches, by which the way there is found back: the d-th has 2 d + 1 of them, of diagonals -d
 * to d. FALSE: too many. */
static gboolean
search (const List *a, const List *b, GPtrArray *furthest, gint64 *n_left_out, gint64 *diagonal)
{
  gint64 n = a->end - a->begin;
  gint64 m = b->end - b->begin;
  gboolean down;

  for (gint64 d = 0; d <= MOST_LEFT_OUT; d++)
    {
      gint32 *here = g_new (gint32, 2 * (gsize) d + 1);
      const gint32 *last = d > 0 ? g_ptr_array_index (furthest, d - 1) : NULL;

      g_ptr_array_add (furthest, here);
      for (gint64 k = -d; k <= d; k += 2)
        {
          gint64 x = arrive (last, d, k, n, m, &down);

          while (x >= 0 && x < n && x - k < m
                 && a->names[a->begin + x] == b->names[b->begin + (x - k)])
            x++;
          here[k + d] = (gint32) x;
          if (x == n && x - k == m)
            {
              *n_left_out = d;
              *diagonal = k;
              return TRUE;
            }
        }
    }
  return FALSE;
}

static gboolean
match_between (PtoTraceMatch *match, const List *a, const List *b)
{
  g_autoptr (GPtrArray) furthest = g_ptr_array_new_with_free_func (g_free);
  gint64 n = a->end - a->begin;
  gint64 m = b->end - b->begin;
  gint64 x = n;
  gint64 d, k;
  gboolean down;

  if (!search (a, b, furthest, &d, &k))
    return FALSE;
  for (; d >= 0; d--)
    {
      const gint32 *last = d > 0 ? g_ptr_array_index (furthest, d - 1) : NULL;
      gint64 start = arrive (last, d, k, n, m, &down);

      for (; x > start; x--)
        pair (match, a->begin + (guint) (x - 1), b->begin + (guint) (x - 1 - k));
      x -= !down;
      k += down ? 1 : -1;
    }
  return TRUE;
}

/* The n-th of a kernel and the n-th. */
static void
match_by_count (PtoTraceMatch *match, const List *a, const List *b, guint n_names)
{
  g_autofree guint32 *heads = g_new (guint32, MAX (n_names, 1));
  g_autofree guint32 *next = g_new (guint32, MAX (b->end, 1));

  for (guint i = 0; i < n_names; i++)
    heads[i] = PTO_TRACE_NOWHERE;
  for (guint i = b->end; i > b->begin; i--)
    {
      next[i - 1] = heads[b->names[i - 1]];
      heads[b->names[i - 1]] = i - 1;
    }
  for (guint i = a->begin; i < a->end; i++)
    {
      guint32 other = heads[a->names[i]];

      if (other == PTO_TRACE_NOWHERE)
        continue;
      heads[a->names[i]] = next[other];
      pair (match, i, other);
    }
}

PtoTraceMatch *
pto_trace_match_new (PtoTrace *before, PtoTrace *after)
{
  PtoTrace *traces[PTO_N_SIDES] = { before, after };
  PtoTraceMatch *match = g_new0 (PtoTraceMatch, 1);
  g_autoptr (GHashTable) numbers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  List lists[PTO_N_SIDES] = { 0 };

  for (guint s = 0; s < PTO_N_SIDES; s++)
    {
      guint n_tasks = pto_trace_get_analysis (traces[s])->n_tasks;

      read_order (traces[s], numbers, &match->order[s], &lists[s].names, &match->n[s]);
      lists[s].end = match->n[s];
      match->twin[s] = g_new (guint32, MAX (n_tasks, 1));
      for (guint i = 0; i < n_tasks; i++)
        match->twin[s][i] = PTO_TRACE_NOWHERE;
    }
  match_ends (match, &lists[PTO_BEFORE], &lists[PTO_AFTER]);
  if (!match_between (match, &lists[PTO_BEFORE], &lists[PTO_AFTER]))
    match_by_count (match, &lists[PTO_BEFORE], &lists[PTO_AFTER], g_hash_table_size (numbers));
  for (guint s = 0; s < PTO_N_SIDES; s++)
    g_free (lists[s].names);
  return match;
}

void
pto_trace_match_free (PtoTraceMatch *match)
{
  for (guint s = 0; s < PTO_N_SIDES; s++)
    {
      g_free (match->order[s]);
      g_free (match->twin[s]);
    }
  g_free (match);
}
