/* schedules.h: what does an example give when its tasks run in another order?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One worker, one run after the other. What every result is compared with is that of the order in
 * which the tasks were submitted, in which each dependency is kept by itself.
 */
#pragma once

#include "run/example.h"

G_BEGIN_DECLS

/* A task that runs a kernel. */
typedef struct
{
  gint64 start; /* ns */
  guint64 id;
  char *kernel;
} ScheduledTask;

/* A task is held back until another one has run, or as long as anything else can run. Both by their
 * numbers: places in the order of submits, of those that run a kernel. */
typedef struct
{
  guint task;
  guint until;
} Delay;
#define DELAY_LAST G_MAXUINT

typedef enum
{
  VERDICT_SAME,    /* bit by bit */
  VERDICT_ROUNDED, /* bits differ, and each element is as the reference expects it */
  VERDICT_CHANGED,
  VERDICT_FAILED /* the run has failed */
} Verdict;

typedef struct
{
  Verdict verdict;
  const ReferenceArgument *output; /* the first that differs; NULL: none */
  guint64 index;                   /* its first element that does */
  char *text; /* "f[0, 3]: 41.5 instead of 47", or why the run has failed; NULL */
} ScheduleResult;

typedef struct
{
  const Example *example;
  PtoTaskArgs *args;
  GPtrArray *buffers;  /* of each argument; NULL: a scalar */
  GPtrArray *expected; /* of each output: its bits in the order of submits; NULL: another one */
  guint8 *scratch;
  gboolean is_exact; /* rounding is a change */

  GArray *tasks;        /* ScheduledTask, by number */
  GHashTable *numbers;  /* their ids -> number + 1 */
  gboolean passed;      /* in the order of submits it is as the reference expects */
  double max_abs_error; /* then; of finite elements */
  NotFinite differing;  /* then */
  char *first_bad;      /* otherwise; NULL */
} Schedules;

/* Runs it in the order of submits, twice: what differs then differs by itself. The worker records
 * its runs, on the back end det. */
gboolean schedules_open (Schedules *schedules, const Example *example, gboolean is_exact,
                         GError **error);
void schedules_clear (Schedules *schedules);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Schedules, schedules_clear)

/* FALSE with an error: the example was not run, by no fault of its own. */
gboolean schedules_try (Schedules *schedules, const char *schedule, ScheduleResult *result,
                        GError **error);
void schedule_result_clear (ScheduleResult *result);
gboolean schedule_result_is_other (const ScheduleResult *result);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ScheduleResult, schedule_result_clear)

/* The numbers of the tasks of the last run, in the order in which they ran; behind them those that
 * did not, for it has failed. NULL: that is not known. */
GArray *schedules_dup_order (Schedules *schedules);
/* "without-war,1:0-after-1:3"; without: a prefix, or NULL. */
char *schedules_print (const Schedules *schedules, const char *without, const GArray *delays);
/* The delays of an order; of a schedule that is nothing else it is the order. */
GArray *schedules_find_delays (const GArray *order);
/* "1:3" */
char *schedules_name (const Schedules *schedules, guint task);

G_END_DECLS
