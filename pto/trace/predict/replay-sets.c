/* replay-sets.c: what becomes of a graph that reduces on another chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tasks that reduce into the same memory are a set (pto/core/reduce.c): they update copies in turn,
 * of which there are as many as cores for them. So what was recorded is made to have all copies
 * that there may ever be; a chip leaves out those that it has not, with who fills and who combines
 * them. Pairs of fewer copies are among those of more, in the same order.
 */
#include "config.h"

#include "replay-sets.h"

#include "core/bits.h"

#include <string.h>

/* As pto/core/reduce.c has it. */
#define COPIES_MAX 64u

/* --- what was recorded --- */

static PtoReplaySet *
set_new (void)
{
  PtoReplaySet *set = g_new0 (PtoReplaySet, 1);

  set->fills = g_array_new (FALSE, FALSE, sizeof (guint32));
  set->updates = g_array_new (FALSE, FALSE, sizeof (guint32));
  set->combines = g_array_new (FALSE, FALSE, sizeof (guint32));
  set->tokens = g_array_new (FALSE, FALSE, sizeof (guint32));
  return set;
}

static void
set_free (gpointer data)
{
  PtoReplaySet *set = data;

  g_array_unref (set->fills);
  g_array_unref (set->updates);
  g_array_unref (set->combines);
  g_array_unref (set->tokens);
  g_free (set);
}

static guint32
item (const GArray *tasks, guint i)
{
  return g_array_index (tasks, guint32, i);
}

static void
read_sets (PtoReplay *replay, PtoTrace *trace)
{
  guint32 position = 0; /* of the next submit */

  replay->sets = g_ptr_array_new_with_free_func (set_free);
  for (guint64 i = trace->starts[0]; i < trace->starts[MIN (trace->n_buffers, 1)]; i++)
    {
      const struct pto_trace_record *record = &trace->records[i];
      guint32 token = (guint32) (record->time % G_MAXUINT16);
      guint32 task = position - 1;
      PtoReplaySet *set;

      if (record->kind == PTO_TRACE_SUBMIT && position < replay->n_tasks)
        position++;
      if (record->kind != PTO_TRACE_REDUCE || position == 0 || record->extra > replay->sets->len)
        continue;
      if (record->extra == replay->sets->len)
        g_ptr_array_add (replay->sets, set_new ());
      set = g_ptr_array_index (replay->sets, record->extra);
      switch (record->detail)
        {
        case PTO_TRACE_REDUCE_FILL:
          set->room = (guint32) MIN (record->time, COPIES_MAX);
          g_array_append_val (set->fills, task);
          break;
        case PTO_TRACE_REDUCE_UPDATE:
          if (set->updates->len == 0)
            set->type = replay->runs[replay->tasks[task].first_run].type;
          g_array_append_val (set->updates, task);
          g_array_append_val (set->tokens, token);
          break;
        case PTO_TRACE_REDUCE_COMBINE:
          g_array_append_val (set->combines, task);
          break;
        default:
          break;
        }
    }
  /* A run that ended well has all of each. */
  for (guint s = replay->sets->len; s > 0; s--)
    {
      PtoReplaySet *set = g_ptr_array_index (replay->sets, s - 1);

      set->n_copies = set->fills->len;
      if (set->n_copies == 0 || set->combines->len != set->n_copies
          || set->updates->len < set->n_copies)
        g_ptr_array_remove_index (replay->sets, s - 1);
    }
}

/* Where the roles of a task begin. */
static guint
find_roles (const GArray *roles, guint32 task)
{
  return pto_bisect (i, roles->len, g_array_index (roles, guint64, i) < (guint64) task << 32);
}

/* Are both of one set, and not both updates of it? */
static gboolean
is_inner (const GArray *roles, const PtoReplayPair *edge)
{
  guint to = find_roles (roles, edge->other);

  for (guint a = find_roles (roles, edge->task); a < roles->len; a++)
    {
      guint64 x = g_array_index (roles, guint64, a);

      if (x >> 32 != edge->task)
        break;
      for (guint b = to; b < roles->len; b++)
        {
          guint64 y = g_array_index (roles, guint64, b);

          if (y >> 32 != edge->other)
            break;
          if ((guint32) x >> 1 == (guint32) y >> 1 && (x & y & 1) == 0)
            return TRUE;
        }
    }
  return FALSE;
}

/* Takes what is an edge among tasks of one set out of the graph. */
static void
filter_edges (PtoReplay *replay)
{
  g_autoptr (GArray) roles = g_array_new (FALSE, FALSE, sizeof (guint64));
  GArray *edges = replay->edges;
  guint n = 0;

  /* Task, set, does it update: by task, then by set. A set has fewer than 2^31 tasks. */
  for (guint s = 0; s < replay->sets->len; s++)
    {
      const PtoReplaySet *set = g_ptr_array_index (replay->sets, s);
      const GArray *const lists[] = { set->fills, set->combines, set->updates };

      for (guint l = 0; l < G_N_ELEMENTS (lists); l++)
        for (guint i = 0; i < lists[l]->len; i++)
          {
            guint64 role = (guint64) item (lists[l], i) << 32 | (guint64) s << 1
                           | (lists[l] == set->updates);

            g_array_append_val (roles, role);
          }
    }
  g_array_sort (roles, pto_trace_compare_times);
  for (guint e = 0; e < edges->len; e++)
    if (!is_inner (roles, pto_replay_pair (edges, e)))
      *pto_replay_pair (edges, n++) = *pto_replay_pair (edges, e);
  g_array_set_size (edges, n);
}

/* Takes the claims of copies as they were recorded out of the graph. */
static void
filter_claims (PtoReplay *replay)
{
  g_autoptr (GArray) of_copies = g_array_new (FALSE, FALSE, sizeof (guint64));
  guint n = 0;

  for (guint s = 0; s < replay->sets->len; s++)
    {
      const PtoReplaySet *set = g_ptr_array_index (replay->sets, s);

      for (guint j = 0; j < set->updates->len; j++)
        {
          guint64 key = (guint64) item (set->updates, j) << 32 | item (set->tokens, j);

          g_array_append_val (of_copies, key);
        }
    }
  g_array_sort (of_copies, pto_trace_compare_times);
  for (guint k = 0; k < replay->claims->len; k++)
    {
      PtoReplayPair claim = *pto_replay_pair (replay->claims, k);
      guint64 key = (guint64) claim.task << 32 | claim.other;

      if (!g_array_binary_search (of_copies, &key, pto_trace_compare_times, NULL))
        *pto_replay_pair (replay->claims, n++) = claim;
    }
  g_array_set_size (replay->claims, n);
}

/* --- with all copies that there may be --- */

/* A task like that one, before that position; its number is as many as there were before it. */
typedef struct
{
  guint64 before;
  guint32 like;
  guint32 number;
} Extra;

static void
add_extra (GArray *extras, guint32 before, guint32 like)
{
  Extra extra = { before, like, extras->len };

  g_array_append_val (extras, extra);
}

/* How many copies it may have on any chip: as few as here, where others used the memory. */
static guint32
get_most (const PtoReplaySet *set, guint n_recorded)
{
  guint32 most = MIN (MIN (set->updates->len, COPIES_MAX), MAX (set->room, 1));

  return set->n_copies < MIN (most, n_recorded) ? set->n_copies : most;
}

/* The pair of copies that comes behind it, of n. FALSE: there is none. */
static gboolean
next_pair (guint32 n, guint32 *step, guint32 *first)
{
  *first += 2 * *step;
  if (*first + *step < n)
    return TRUE;
  *step *= 2;
  *first = 0;
  return *step < n;
}

/* Fills and combines that are recorded, and between them those that are not: as numbers in extras,
 * from n_tasks + 1 on. */
static void
extend_set (const PtoReplay *replay, PtoReplaySet *set, GArray *extras, guint n_recorded)
{
  guint32 most = get_most (set, n_recorded);
  GArray *combines = g_array_new (FALSE, FALSE, sizeof (guint32));
  guint32 n = set->n_copies;
  guint32 step = 1;
  guint32 first = 0;
  guint recorded = 0;

  for (guint32 c = n; c < most; c++)
    {
      guint32 number = replay->n_tasks + 1 + extras->len;

      add_extra (extras, item (set->updates, c), item (set->fills, 0));
      g_array_append_val (set->fills, number);
    }
  for (gboolean more = most > 1; more; more = next_pair (most, &step, &first))
    {
      guint32 number = replay->n_tasks + 1 + extras->len;

      if (first + step < n)
        number = item (set->combines, recorded++);
      else
        add_extra (extras, item (set->combines, recorded), item (set->combines, n - 1));
      g_array_append_val (combines, number);
    }
  g_array_append_val (combines, g_array_index (set->combines, guint32, n - 1));
  g_array_unref (set->combines);
  set->combines = combines;
}

static void
move_pairs (GArray *pairs, const guint32 *moved, gboolean both)
{
  for (guint i = 0; i < pairs->len; i++)
    {
      PtoReplayPair *pair = pto_replay_pair (pairs, i);

      pair->task = moved[pair->task];
      if (both)
        pair->other = moved[pair->other];
    }
}

static void
move_all (GArray *tasks, const guint32 *moved)
{
  for (guint i = 0; i < tasks->len; i++)
    g_array_index (tasks, guint32, i) = moved[g_array_index (tasks, guint32, i)];
}

/* Tasks in their new order. moved: where each comes to be; behind them the end of all, then those
 * that are added. */
static void
insert (PtoReplay *replay, GArray *extras, guint32 *moved)
{
  guint n = replay->n_tasks;
  guint n_tasks = n + extras->len;
  PtoReplayTask *tasks = g_new (PtoReplayTask, n_tasks);
  g_autofree guint32 *origin = g_new (guint32, n_tasks);
  guint32 at = 0;
  guint e = 0;

  g_array_sort (extras, pto_trace_compare_times);
  for (guint32 i = 0; i < n; i++)
    {
      for (; e < extras->len && g_array_index (extras, Extra, e).before == i; e++)
        {
          const Extra *extra = &g_array_index (extras, Extra, e);

          origin[at] = extra->like;
          moved[n + 1 + extra->number] = at++;
        }
      origin[at] = i;
      moved[i] = at++;
    }
  moved[n] = n_tasks;
  replay->runs = g_renew (PtoReplayRun, replay->runs, MAX (replay->n_runs + extras->len, 1));
  for (guint32 i = 0; i < n_tasks; i++)
    {
      const PtoReplayTask *from = &replay->tasks[origin[i]];
      gboolean is_extra = moved[origin[i]] != i;

      tasks[i] = *from;
      if (tasks[i].awaits != PTO_TRACE_NOWHERE)
        tasks[i].awaits = is_extra ? PTO_TRACE_NOWHERE : moved[tasks[i].awaits];
      if (is_extra)
        {
          tasks[i].first_run = replay->n_runs;
          replay->runs[replay->n_runs] = replay->runs[from->first_run];
          replay->runs[replay->n_runs++].task = i;
        }
    }
  for (guint r = 0; r < replay->n_runs - extras->len; r++)
    replay->runs[r].task = moved[replay->runs[r].task];
  /* These meet nobody. */
  if (replay->first_meet != NULL)
    replay->first_meet = g_renew (guint32, replay->first_meet, (gsize) replay->n_runs + 2);
  for (guint r = replay->n_runs - extras->len; replay->first_meet != NULL && r < replay->n_runs;
       r++)
    replay->first_meet[r + 1] = replay->meets->len;
  g_free (replay->tasks);
  replay->tasks = tasks;
  replay->n_tasks = n_tasks;
}

static void
extend (PtoReplay *replay, const guint *n_recorded)
{
  g_autoptr (GArray) extras = g_array_new (FALSE, FALSE, sizeof (Extra));
  g_autofree guint32 *moved = NULL;

  for (guint s = 0; s < replay->sets->len; s++)
    {
      PtoReplaySet *set = g_ptr_array_index (replay->sets, s);

      set->first_token = replay->n_tokens + s * COPIES_MAX;
      extend_set (replay, set, extras, n_recorded[set->type]);
    }
  if (extras->len == 0)
    return;
  moved = g_new (guint32, (gsize) replay->n_tasks + extras->len + 1);
  insert (replay, extras, moved);
  for (guint s = 0; s < replay->sets->len; s++)
    {
      PtoReplaySet *set = g_ptr_array_index (replay->sets, s);

      move_all (set->fills, moved);
      move_all (set->updates, moved);
      move_all (set->combines, moved);
    }
  move_pairs (replay->edges, moved, TRUE);
  move_pairs (replay->users, moved, TRUE);
  move_pairs (replay->claims, moved, FALSE);
  for (guint i = 0; i < replay->n_scopes; i++)
    replay->scope_ends[i] = moved[replay->scope_ends[i]];
  for (guint i = 0; i < replay->parts->len; i++)
    g_array_index (replay->parts, PtoReplayParts, i).task
        = moved[g_array_index (replay->parts, PtoReplayParts, i).task];
  for (guint i = 0; i < replay->holds->len; i++)
    g_array_index (replay->holds, PtoReplayHold, i).before
        = moved[g_array_index (replay->holds, PtoReplayHold, i).before];
}

void
pto_replay_sets_read (PtoReplay *replay, PtoTrace *trace, const guint *n_recorded)
{
  read_sets (replay, trace);
  if (replay->sets->len == 0)
    return;
  filter_edges (replay);
  filter_claims (replay);
  extend (replay, n_recorded);
}

/* --- for a chip --- */

/* Who combined a copy last comes before that task; or else who updated it. */
static void
add_edges_of_copy (GArray *edges, const PtoReplaySet *set, guint32 n, guint32 copy,
                   guint32 *combined, guint32 consumer)
{
  if (combined[copy] != PTO_TRACE_NOWHERE)
    pto_replay_add_pair (edges, combined[copy], consumer);
  else
    for (guint j = copy; j < set->updates->len; j += n)
      pto_replay_add_pair (edges, item (set->updates, j), consumer);
  combined[copy] = consumer;
}

static void
derive_set (PtoReplay *derived, const PtoReplaySet *set, guint32 n)
{
  GArray *edges = derived->edges;
  guint32 combined[COPIES_MAX];
  guint32 step = 1;
  guint32 first = 0;

  memset (combined, 0xff, sizeof combined);
  for (guint32 c = n; c < set->fills->len; c++)
    derived->tasks[item (set->fills, c)].flags |= PTO_REPLAY_LEFT_OUT;
  for (guint j = 0; j < set->updates->len; j++)
    {
      pto_replay_add_pair (edges, item (set->fills, j % n), item (set->updates, j));
      pto_replay_add_pair (derived->claims, item (set->updates, j), set->first_token + j % n);
    }
  for (guint k = 0; k + 1 < set->combines->len; k++)
    {
      guint32 task = item (set->combines, k);

      if (first + step < n)
        {
          add_edges_of_copy (edges, set, n, first, combined, task);
          add_edges_of_copy (edges, set, n, first + step, combined, task);
        }
      else
        derived->tasks[task].flags |= PTO_REPLAY_LEFT_OUT;
      next_pair (set->fills->len, &step, &first);
    }
  add_edges_of_copy (edges, set, n, 0, combined, item (set->combines, set->combines->len - 1));
}

static gint
compare_edges (gconstpointer a, gconstpointer b)
{
  const PtoReplayPair *x = a;
  const PtoReplayPair *y = b;

  if (x->other != y->other)
    return x->other < y->other ? -1 : 1;
  return x->task < y->task ? -1 : x->task > y->task;
}

static gint
compare_claims (gconstpointer a, gconstpointer b)
{
  const PtoReplayPair *x = a;
  const PtoReplayPair *y = b;

  if (x->task != y->task)
    return x->task < y->task ? -1 : 1;
  return x->other < y->other ? -1 : x->other > y->other;
}

PtoReplay *
pto_replay_sets_derive (const PtoReplay *replay, const guint *n_cores, const guint *n_recorded)
{
  PtoReplay *derived;

  if (replay->sets->len == 0)
    return NULL;
  derived = g_new (PtoReplay, 1);
  *derived = *replay;
  derived->tasks = g_memdup2 (replay->tasks, replay->n_tasks * sizeof *replay->tasks);
  derived->edges = g_array_copy (replay->edges);
  derived->claims = g_array_copy (replay->claims);
  for (guint s = 0; s < replay->sets->len; s++)
    {
      const PtoReplaySet *set = g_ptr_array_index (replay->sets, s);
      guint32 n = MIN (get_most (set, n_recorded[set->type]), MAX (n_cores[set->type], 1));

      derive_set (derived, set, MIN (n, set->fills->len));
    }
  g_array_sort (derived->edges, compare_edges);
  g_array_sort (derived->claims, compare_claims);
  derived->n_tokens = replay->n_tokens + replay->sets->len * COPIES_MAX;
  return derived;
}

void
pto_replay_sets_free_derived (PtoReplay *derived)
{
  g_free (derived->tasks);
  g_array_unref (derived->edges);
  g_array_unref (derived->claims);
  g_free (derived);
}
