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

void
pto_replay_sets_read (PtoReplay *replay, PtoTrace *trace)
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

static gint
compare_numbers (gconstpointer a, gconstpointer b)
{
  guint64 x = *(const guint64 *) a;
  guint64 y = *(const guint64 *) b;

  return x < y ? -1 : x > y;
}

void
pto_replay_sets_filter (const PtoReplay *replay, GArray *edges)
{
  g_autoptr (GArray) roles = g_array_new (FALSE, FALSE, sizeof (guint64));
  guint32 (*pairs)[2] = (guint32 (*)[2]) (void *) edges->data;
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
  g_array_sort (roles, compare_numbers);
  for (guint e = 0; e < edges->len; e++)
    {
      gboolean is_inner = FALSE;
      guint at[2];

      for (guint side = 0; side < 2; side++)
        {
          at[side] = pto_bisect (
              i, roles->len, g_array_index (roles, guint64, i) < (guint64) pairs[e][side] << 32);
        }
      for (guint a = at[0]; a < roles->len; a++)
        {
          guint64 x = g_array_index (roles, guint64, a);

          if (x >> 32 != pairs[e][0])
            break;
          for (guint b = at[1]; b < roles->len; b++)
            {
              guint64 y = g_array_index (roles, guint64, b);

              if (y >> 32 != pairs[e][1])
                break;
              is_inner = is_inner || ((guint32) x >> 1 == (guint32) y >> 1 && (x & y & 1) == 0);
            }
        }
      if (!is_inner)
        {
          pairs[n][0] = pairs[e][0];
          pairs[n++][1] = pairs[e][1];
        }
    }
  g_array_set_size (edges, n);
}

/* --- with all copies that there may be --- */

/* A task like that one, before that position. */
typedef struct
{
  guint32 before;
  guint32 like;
  guint32 position; /* where it came to be */
} Extra;

static gint
compare_extras (gconstpointer a, gconstpointer b)
{
  const Extra *x = *(Extra *const *) a;
  const Extra *y = *(Extra *const *) b;

  if (x->before != y->before)
    return x->before < y->before ? -1 : 1;
  return x->position < y->position ? -1 : x->position > y->position;
}

static Extra *
add_extra (GPtrArray *extras, guint32 before, guint32 like)
{
  Extra *extra = g_new (Extra, 1);

  *extra = (Extra){ before, like, extras->len };
  g_ptr_array_add (extras, extra);
  return extra;
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
 * from n_tasks on. */
static void
extend_set (const PtoReplay *replay, PtoReplaySet *set, GPtrArray *extras, guint n_recorded)
{
  guint32 most = get_most (set, n_recorded);
  GArray *combines = g_array_new (FALSE, FALSE, sizeof (guint32));
  guint32 n = set->n_copies;
  guint32 step = 1;
  guint32 first = 0;
  guint recorded = 0;

  for (guint32 c = n; c < most; c++)
    {
      guint32 number = replay->n_tasks + extras->len;

      add_extra (extras, item (set->updates, c), item (set->fills, 0));
      g_array_append_val (set->fills, number);
    }
  for (gboolean more = most > 1; more; more = next_pair (most, &step, &first))
    {
      guint32 number = replay->n_tasks + extras->len;

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
move_all (GArray *tasks, const guint32 *moved)
{
  for (guint i = 0; i < tasks->len; i++)
    g_array_index (tasks, guint32, i) = moved[g_array_index (tasks, guint32, i)];
}

/* Tasks in their new order; what lies beside them by task is copied in it. */
static void
insert (PtoReplay *replay, GPtrArray *extras, guint32 *moved)
{
  guint n = replay->n_tasks;
  guint n_tasks = n + extras->len;
  PtoReplayTask *tasks = g_new0 (PtoReplayTask, (gsize) n_tasks + 1);
  guint32 *users = g_new (guint32, MAX (replay->tasks[n].first_user, 1));
  g_autofree guint32 *origin = g_new (guint32, n_tasks);
  guint32 n_users = 0;
  guint32 at = 0;
  guint e = 0;

  for (guint32 i = 0; i <= n; i++)
    {
      for (; e < extras->len && ((Extra *) g_ptr_array_index (extras, e))->before == i; e++)
        {
          Extra *extra = g_ptr_array_index (extras, e);

          origin[at] = extra->like;
          extra->position = at++;
        }
      moved[i] = at;
      if (i < n)
        origin[at++] = i;
    }
  replay->runs = g_renew (PtoReplayRun, replay->runs, MAX (replay->n_runs + extras->len, 1));
  for (guint32 i = 0; i < n_tasks; i++)
    {
      const PtoReplayTask *from = &replay->tasks[origin[i]];
      gboolean is_extra = moved[origin[i]] != i;

      tasks[i] = *from;
      tasks[i].first_user = n_users;
      for (guint32 k = from->first_user; !is_extra && k < from[1].first_user; k++)
        users[n_users++] = moved[replay->users[k]];
      if (tasks[i].awaits != PTO_TRACE_NOWHERE)
        tasks[i].awaits = is_extra ? PTO_TRACE_NOWHERE : moved[tasks[i].awaits];
      if (is_extra)
        {
          tasks[i].first_claim = tasks[i > 0 ? i - 1 : 0].first_claim;
          tasks[i].first_run = replay->n_runs;
          replay->runs[replay->n_runs] = replay->runs[from->first_run];
          replay->runs[replay->n_runs++].task = i;
        }
    }
  tasks[n_tasks] = replay->tasks[n];
  tasks[n_tasks].first_user = n_users;
  for (guint r = 0; r < replay->n_runs - extras->len; r++)
    replay->runs[r].task = moved[replay->runs[r].task];
  /* These meet nobody. */
  if (replay->n_meetings > 0)
    replay->first_meet = g_renew (guint32, replay->first_meet, (gsize) replay->n_runs + 2);
  for (guint r = replay->n_runs - extras->len; replay->n_meetings > 0 && r < replay->n_runs; r++)
    replay->first_meet[r + 1] = replay->n_meets;
  g_free (replay->tasks);
  g_free (replay->users);
  replay->tasks = tasks;
  replay->users = users;
  replay->n_tasks = n_tasks;
}

void
pto_replay_sets_extend (PtoReplay *replay, const guint *n_recorded)
{
  g_autoptr (GPtrArray) extras = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) sorted = g_ptr_array_new ();
  g_autofree guint32 *moved = NULL;
  guint n = replay->n_tasks;

  if (replay->sets->len == 0)
    return;
  for (guint s = 0; s < replay->sets->len; s++)
    {
      PtoReplaySet *set = g_ptr_array_index (replay->sets, s);

      set->first_token = replay->n_tokens + s * COPIES_MAX;
      extend_set (replay, set, extras, n_recorded[set->type]);
    }
  if (extras->len == 0)
    return;
  moved = g_new (guint32, (gsize) n + extras->len + 1);
  for (guint e = 0; e < extras->len; e++)
    g_ptr_array_add (sorted, g_ptr_array_index (extras, e));
  g_ptr_array_sort (sorted, compare_extras);
  insert (replay, sorted, moved);
  /* Those that were added have numbers behind all others. */
  for (guint e = 0; e < extras->len; e++)
    moved[n + e] = ((Extra *) g_ptr_array_index (extras, e))->position;
  for (guint s = 0; s < replay->sets->len; s++)
    {
      PtoReplaySet *set = g_ptr_array_index (replay->sets, s);

      move_all (set->fills, moved);
      move_all (set->updates, moved);
      move_all (set->combines, moved);
    }
  for (guint i = 0; i < replay->edges->len; i++)
    for (guint side = 0; side < 2; side++)
      ((guint32 *) (void *) replay->edges->data)[2 * i + side]
          = moved[((guint32 *) (void *) replay->edges->data)[2 * i + side]];
  for (guint k = 0; k < replay->n_claims; k++)
    replay->claims[2 * k] = moved[replay->claims[2 * k]];
  for (guint i = 0; i < replay->n_scopes; i++)
    replay->scope_ends[i] = moved[replay->scope_ends[i]];
  for (guint i = 0; i < replay->n_parts; i++)
    replay->parts[i].task = moved[replay->parts[i].task];
  for (guint i = 0; i < replay->n_holds; i++)
    replay->holds[i].before = moved[replay->holds[i].before];
}

/* --- for a chip --- */

static void
add_edge (GArray *edges, guint32 producer, guint32 consumer)
{
  guint32 edge[] = { producer, consumer };

  g_array_append_vals (edges, edge, 1);
}

/* Who combined a copy last comes before that task; or else who updated it. */
static void
add_edges_of_copy (GArray *edges, const PtoReplaySet *set, guint32 n, guint32 copy,
                   guint32 *combined, guint32 consumer)
{
  if (combined[copy] != PTO_TRACE_NOWHERE)
    add_edge (edges, combined[copy], consumer);
  else
    for (guint j = copy; j < set->updates->len; j += n)
      add_edge (edges, item (set->updates, j), consumer);
  combined[copy] = consumer;
}

static void
derive_set (PtoReplay *derived, const PtoReplaySet *set, guint32 n, GArray *edges, GArray *claims)
{
  guint32 combined[COPIES_MAX];
  guint32 step = 1;
  guint32 first = 0;

  memset (combined, 0xff, sizeof combined);
  for (guint32 c = n; c < set->fills->len; c++)
    derived->tasks[item (set->fills, c)].flags |= PTO_REPLAY_LEFT_OUT;
  for (guint j = 0; j < set->updates->len; j++)
    {
      guint32 claim[] = { item (set->updates, j), set->first_token + j % n };

      add_edge (edges, item (set->fills, j % n), claim[0]);
      g_array_append_val (claims, claim);
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
compare_pairs (gconstpointer a, gconstpointer b)
{
  const guint32 *x = a;
  const guint32 *y = b;

  if (x[1] != y[1])
    return x[1] < y[1] ? -1 : 1;
  return x[0] < y[0] ? -1 : x[0] > y[0];
}

static gint
compare_claims (gconstpointer a, gconstpointer b)
{
  const guint32 *x = a;
  const guint32 *y = b;

  if (x[0] != y[0])
    return x[0] < y[0] ? -1 : 1;
  return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* Those of tasks that are there, once. */
static void
tidy (const PtoReplay *derived, GArray *edges)
{
  guint32 (*pairs)[2] = (guint32 (*)[2]) (void *) edges->data;
  guint n = 0;

  for (guint e = 0; e < edges->len; e++)
    {
      guint32 producer = pairs[e][0];
      guint32 consumer = pairs[e][1];

      if (((derived->tasks[producer].flags | derived->tasks[consumer].flags) & PTO_REPLAY_LEFT_OUT)
              != 0
          || (n > 0 && pairs[n - 1][0] == producer && pairs[n - 1][1] == consumer))
        continue;
      pairs[n][0] = producer;
      pairs[n++][1] = consumer;
    }
  g_array_set_size (edges, n);
}

/* Claims that are not those of copies as recorded. */
static void
keep_claims (const PtoReplay *replay, GArray *claims)
{
  g_autoptr (GHashTable) of_copies
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);

  for (guint s = 0; s < replay->sets->len; s++)
    {
      const PtoReplaySet *set = g_ptr_array_index (replay->sets, s);

      for (guint j = 0; j < set->updates->len; j++)
        {
          gint64 *key = g_new (gint64, 1);

          *key = (gint64) ((guint64) item (set->updates, j) << 32 | item (set->tokens, j));
          g_hash_table_add (of_copies, key);
        }
    }
  for (guint k = 0; k < replay->n_claims; k++)
    {
      gint64 key = (gint64) ((guint64) replay->claims[2 * k] << 32 | replay->claims[2 * k + 1]);

      if (!g_hash_table_contains (of_copies, &key))
        g_array_append_vals (claims, &replay->claims[2 * k], 1);
    }
}

PtoReplay *
pto_replay_sets_derive (const PtoReplay *replay, const guint *n_cores, const guint *n_recorded)
{
  PtoReplay *derived;
  g_autoptr (GArray) edges = NULL;
  GArray *claims;
  guint c = 0;

  if (replay->sets->len == 0)
    return NULL;
  derived = g_new (PtoReplay, 1);
  *derived = *replay;
  derived->tasks = g_memdup2 (replay->tasks, ((gsize) replay->n_tasks + 1) * sizeof *replay->tasks);
  edges = g_array_copy (replay->edges);
  claims = g_array_new (FALSE, FALSE, sizeof (guint32) * 2);
  keep_claims (replay, claims);
  for (guint s = 0; s < replay->sets->len; s++)
    {
      const PtoReplaySet *set = g_ptr_array_index (replay->sets, s);
      guint32 n = MIN (get_most (set, n_recorded[set->type]), MAX (n_cores[set->type], 1));

      derive_set (derived, set, MIN (n, set->fills->len), edges, claims);
    }
  g_array_sort (edges, compare_pairs);
  tidy (derived, edges);
  pto_replay_link (derived, (const guint32 *) (void *) edges->data, edges->len);
  g_array_sort (claims, compare_claims);
  for (guint32 i = 0; i <= replay->n_tasks; i++)
    {
      derived->tasks[i].first_claim = c;
      while (c < claims->len && ((guint32 *) (void *) claims->data)[2 * c] == i)
        c++;
    }
  derived->n_claims = claims->len;
  derived->n_tokens = replay->n_tokens + replay->sets->len * COPIES_MAX;
  derived->claims = (guint32 *) (void *) g_array_free (claims, FALSE);
  return derived;
}

void
pto_replay_sets_free_derived (PtoReplay *derived)
{
  g_free (derived->tasks);
  g_free (derived->out);
  g_free (derived->claims);
  g_free (derived);
}
