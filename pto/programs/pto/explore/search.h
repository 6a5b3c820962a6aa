/* search.h: is there an order of its tasks in which an example gives something else?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * First tasks have random priorities; then one task after the other is held back as long as
 * anything else can run, which runs every two tasks that are in no order in both orders; then two
 * at a time. What is found is shrunk: to as few delays as can be, each as short as can be, and of
 * the task that it takes, not of one that this one waits for.
 */
#pragma once

#include "schedules.h"

G_BEGIN_DECLS

typedef struct
{
  /* In. */
  Schedules *schedules;
  const char *without; /* "without-war": always so; NULL: with all hazards */
  guint64 budget;      /* schedules, without those for shrinking */
  gint64 limit_us;     /* how long; as long again for shrinking */
  guint64 seed;

  /* Out: how many were run, and of how many there are. */
  guint64 n_random;
  guint64 n_one, of_one;
  guint64 n_two, of_two;
  guint64 n_rounded; /* of them */
  guint64 n_shrinking;
  gboolean is_out_of_time;

  /* What was found; NULL: nothing. */
  char *schedule;
  char *found; /* as it was before it was shrunk */
  ScheduleResult result;
  GArray *delays;     /* Delay, of schedule; NULL: it is not of delays */
  gboolean is_shrunk; /* to the end */

  GError *error;
  gint64 deadline;
} Search;

/* FALSE with an error: it was not searched to the end, by no fault of the example's. */
gboolean search_run (Search *search, GError **error);
void search_clear (Search *search);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Search, search_clear)

G_END_DECLS
