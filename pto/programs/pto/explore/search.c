/* search.c: is there an order of its tasks in which an example gives something else?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "search.h"
#include "shrink.h"
#include "terminal.h"
#include "tool.h"

#include <glib/gi18n.h>
#include <inttypes.h>
#include <unistd.h>

/* One schedule in so many has random priorities. */
#define RANDOM_PART 4u
/* Each round of making a delay shorter leaves less to look at; more than this nobody has seen. */
#define ROUNDS_MAX 64u
/* Of so many delays it is tried whether one does. */
#define JOINED_MAX 8u
/* On a terminal it is told now and then. */
#define TELL_US 200000

void
search_clear (Search *search)
{
  g_free (search->schedule);
  g_free (search->found);
  schedule_result_clear (&search->result);
  g_clear_pointer (&search->delays, g_array_unref);
  g_clear_error (&search->error);
}

static void
tell_progress (const Search *search, gboolean is_over)
{
  static gint64 told;
  gint64 now = g_get_monotonic_time ();
  g_autofree char *line = NULL;

  if (is_over)
    terminal_hide_line ();
  if (is_over || now - told < TELL_US)
    return;
  told = now;
  if (search->n_shrinking > 0)
    line = g_strdup_printf (_ ("pto: shrinking: %" PRIu64 " schedules"), search->n_shrinking);
  else
    line = g_strdup_printf (_ ("pto: exploring: %" PRIu64 " of %" PRIu64 " schedules"),
                            search->n_random + search->n_one + search->n_two, search->budget);
  terminal_show_line (line);
}

static gboolean
is_over (gpointer data)
{
  Search *search = data;

  if (search->error == NULL && g_get_monotonic_time () < search->deadline)
    return FALSE;
  search->is_out_of_time = TRUE;
  return TRUE;
}

/* --- trying --- */

static gboolean
try_schedule (Search *search, const char *schedule)
{
  g_auto (ScheduleResult) result = { 0 };

  if (search->error != NULL
      || !schedules_try (search->schedules, schedule, &result, &search->error))
    return FALSE;
  search->n_rounded += result.verdict == VERDICT_ROUNDED && search->n_shrinking == 0;
  tell_progress (search, FALSE);
  return schedule_result_is_other (&result);
}

static gboolean
try_delays (Search *search, const GArray *delays)
{
  g_autofree char *schedule = schedules_print (search->schedules, search->without, delays);

  search->n_shrinking++;
  return try_schedule (search, schedule);
}

static gboolean
try_part (const GArray *part, gpointer data)
{
  return try_delays (data, part);
}

/* The same with another delay in the place of one; NULL: with none there. */
static gboolean
try_instead (Search *search, const GArray *delays, guint at, const Delay *other)
{
  g_autoptr (GArray) changed = g_array_copy ((GArray *) delays);

  if (other != NULL)
    g_array_index (changed, Delay, at) = *other;
  else
    g_array_remove_index (changed, at);
  return try_delays (search, changed);
}

/* --- shrinking --- */

static guint
find_position (const GArray *order, guint task)
{
  guint i = 0;

  while (i < order->len && g_array_index (order, guint, i) != task)
    i++;
  return i;
}

/* Those that a task was held back for: they were submitted behind it, and ran before it. */
static GArray *
find_overtakers (const GArray *order, guint task)
{
  GArray *found = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint i = 0; i < order->len && g_array_index (order, guint, i) != task; i++)
    if (g_array_index (order, guint, i) > task)
      g_array_append_val (found, g_array_index (order, guint, i));
  return found;
}

/* The delay ends behind the first task with which the result is another one: behind the one before
 * it is not. Gives FALSE where there is nothing to choose from. */
static gboolean
make_shorter (Search *search, GArray *delays, guint at)
{
  g_autoptr (GArray) order = NULL;
  g_autoptr (GArray) overtakers = NULL;
  Delay delay = g_array_index (delays, Delay, at);
  guint good = 0; /* so many of them are not enough */
  guint bad;      /* and so many are */

  if (!try_delays (search, delays))
    return FALSE;
  order = schedules_dup_order (search->schedules);
  if (order == NULL)
    return FALSE;
  overtakers = find_overtakers (order, delay.task);
  bad = overtakers->len;
  if (bad == 0)
    return FALSE;
  delay.until = g_array_index (overtakers, guint, bad - 1);
  /* It may be another task that it had to be behind. */
  if (delay.until != g_array_index (delays, Delay, at).until
      && !try_instead (search, delays, at, &delay))
    return FALSE;
  while (bad - good > 1 && !is_over (search))
    {
      guint middle = good + (bad - good) / 2;

      delay.until = g_array_index (overtakers, guint, middle - 1);
      if (try_instead (search, delays, at, &delay))
        bad = middle;
      else
        good = middle;
    }
  delay.until = g_array_index (overtakers, guint, bad - 1);
  g_array_index (delays, Delay, at) = delay;
  return TRUE;
}

/* Tasks that wait for the one that is held are held with it: is it one of them that matters? The
 * last one that does takes its place. */
static gboolean
move_down (Search *search, GArray *delays, guint at)
{
  g_autoptr (GArray) order = NULL;
  Delay delay = g_array_index (delays, Delay, at);
  guint i;

  if (!try_delays (search, delays))
    return FALSE;
  order = schedules_dup_order (search->schedules);
  if (order == NULL)
    return FALSE;
  for (i = order->len; i-- > 0;)
    {
      Delay other = { .task = g_array_index (order, guint, i), .until = delay.until };

      /* Whoever was not behind it in any case, and is now. */
      if (other.task == delay.task)
        return FALSE;
      if (other.task > delay.task && other.task < delay.until
          && i > find_position (order, delay.until) && !is_over (search)
          && try_instead (search, delays, at, &other))
        {
          g_array_index (delays, Delay, at) = other;
          return TRUE;
        }
    }
  return FALSE;
}

/* Those that can be left out are. Gives whether there were any. */
static gboolean
leave_out (Search *search)
{
  g_autoptr (GArray) all = search->delays;

  search->delays = shrink (all, try_part, is_over, search);
  return search->delays->len < all->len;
}

/* Each as short as can be, and of the task that it takes. Gives whether one is another one now. */
static gboolean
improve (Search *search)
{
  gboolean is_other = FALSE;

  for (guint at = 0; at < search->delays->len; at++)
    {
      Delay before = g_array_index (search->delays, Delay, at);
      const Delay *after;

      for (guint round = 0; round < ROUNDS_MAX && !is_over (search); round++)
        if (!make_shorter (search, search->delays, at) || !move_down (search, search->delays, at))
          break;
      after = &g_array_index (search->delays, Delay, at);
      is_other = is_other || after->task != before.task || after->until != before.until;
    }
  return is_other;
}

/* Delays may say together what one of them says of another one's end. */
static gboolean
join (Search *search)
{
  const GArray *delays = search->delays;

  for (guint i = 0; delays->len > 1 && delays->len <= JOINED_MAX && i < delays->len; i++)
    for (guint k = 0; k < delays->len && !is_over (search); k++)
      {
        g_autoptr (GArray) one = g_array_new (FALSE, FALSE, sizeof (Delay));
        Delay delay = { .task = g_array_index (delays, Delay, i).task,
                        .until = g_array_index (delays, Delay, k).until };

        g_array_append_val (one, delay);
        if (delay.task == delay.until || !try_delays (search, one))
          continue;
        g_array_unref (search->delays);
        search->delays = g_steal_pointer (&one);
        return TRUE;
      }
  return FALSE;
}

static gint
compare_delays (gconstpointer a, gconstpointer b)
{
  const Delay *x = a;
  const Delay *y = b;

  if (x->task != y->task)
    return x->task < y->task ? -1 : 1;
  return x->until < y->until ? -1 : x->until > y->until;
}

static void
shrink_delays (Search *search)
{
  gboolean goes_on = TRUE;

  search->deadline = g_get_monotonic_time () + search->limit_us;
  search->is_out_of_time = FALSE;
  /* An order is written down with delays that end as late as can be, one behind the other: what is
   * shorter may need fewer. */
  for (guint round = 0; goes_on && round < ROUNDS_MAX && !is_over (search); round++)
    {
      leave_out (search);
      goes_on = improve (search) && search->delays->len > 1;
      goes_on = join (search) || goes_on;
    }
  g_array_sort (search->delays, compare_delays);
  search->is_shrunk = !search->is_out_of_time;
}

/* --- searching --- */

/* What was found is in the last run. FALSE: no delays are known that do the same. */
static gboolean
note_found (Search *search, const char *schedule, const GArray *delays)
{
  g_autoptr (GArray) order = NULL;

  if (delays != NULL)
    search->delays = g_array_copy ((GArray *) delays);
  else
    {
      /* The same order, said by delays. */
      order = schedules_dup_order (search->schedules);
      search->delays = order != NULL ? schedules_find_delays (order) : NULL;
      if (search->delays != NULL && !try_delays (search, search->delays))
        g_clear_pointer (&search->delays, g_array_unref);
    }
  if (search->found == NULL)
    search->found = g_strdup (schedule);
  if (search->delays == NULL)
    return FALSE;
  shrink_delays (search);
  search->schedule = schedules_print (search->schedules, search->without, search->delays);
  return TRUE;
}

static gboolean
has_budget (Search *search)
{
  return search->n_random + search->n_one + search->n_two < search->budget && !is_over (search);
}

static gboolean
search_random (Search *search)
{
  guint64 n = MAX (search->budget / RANDOM_PART, 1);

  while (search->n_random < n && has_budget (search))
    {
      g_autofree char *schedule = g_strdup_printf (
          "%s%srandom-%" G_GUINT64_FORMAT, search->without != NULL ? search->without : "",
          search->without != NULL ? "," : "", search->seed + search->n_random++);

      if (try_schedule (search, schedule))
        return note_found (search, schedule, NULL);
    }
  return FALSE;
}

static gboolean
search_delays (Search *search, const Delay *delays, guint n, guint64 *count)
{
  g_autoptr (GArray) array = g_array_new (FALSE, FALSE, sizeof (Delay));
  g_autofree char *schedule = NULL;

  g_array_append_vals (array, delays, n);
  schedule = schedules_print (search->schedules, search->without, array);
  ++*count;
  return try_schedule (search, schedule) && note_found (search, schedule, array);
}

static gboolean
search_one (Search *search)
{
  while (search->n_one < search->of_one && has_budget (search))
    {
      Delay delay = { .task = (guint) search->n_one, .until = DELAY_LAST };

      if (search_delays (search, &delay, 1, &search->n_one))
        return TRUE;
    }
  return FALSE;
}

static guint64
find_divisor (guint64 a, guint64 b)
{
  while (b != 0)
    {
      guint64 rest = a % b;

      a = b;
      b = rest;
    }
  return a;
}

/* Each pair once, in an order of the seed. */
static gboolean
search_two (Search *search)
{
  guint64 n = search->of_one + 1;
  guint64 step = search->of_two / 2 + search->seed % (search->of_two / 2 + 1) + 1;

  while (search->of_two > 0 && find_divisor (step, search->of_two) != 1)
    step++;
  while (search->n_two < search->of_two && has_budget (search))
    {
      guint64 k = search->n_two * step % search->of_two;
      guint first = (guint) (k / (n - 1));
      guint second = (guint) (k % (n - 1));
      Delay delays[] = { { .task = first, .until = DELAY_LAST }, { .until = first } };

      delays[1].task = second >= first ? second + 1 : second;
      if (search_delays (search, delays, 2, &search->n_two))
        return TRUE;
    }
  return FALSE;
}

gboolean
search_run (Search *search, GError **error)
{
  guint64 n = search->schedules->tasks->len;

  /* Nobody was submitted behind the last one. */
  search->of_one = n > 0 ? n - 1 : 0;
  search->of_two = n > 1 ? n * (n - 1) : 0;
  search->deadline = g_get_monotonic_time () + search->limit_us;
  if (n > 1 && !search_random (search) && !search_one (search))
    search_two (search);
  if (search->schedule == NULL && search->found != NULL)
    search->schedule = g_strdup (search->found);
  if (search->error == NULL && search->schedule != NULL)
    schedules_try (search->schedules, search->schedule, &search->result, &search->error);
  tell_progress (search, TRUE);
  if (search->error == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&search->error));
  return FALSE;
}
