/* child.c: what is a child doing, and who says what it does next?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "exec/translate.h"
#include "child.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One thread that does nothing but allocate catches about every fifth child, and every second where
 * it shares its CPU: a thread that is preempted keeps its locks. The last life is given as long as
 * START ("33 times", below). */
#define CAUGHT_NS (50 * MS)
#define CAUGHT_STEP 8u
/* What a worker is given more than others when it is asked to stop: it hears of it a little later,
 * and has children of its own to ask, and to end. */
#define PASS_ON_NS (30 * MS)
/* The most that one tick takes of the time to stop: it may have begun long before it was asked. */
#define STEP_NS (20 * MS)
/* A child that dies so often in a row before it has started is given up; one that could not even be
 * made has not been tried yet, and has a second or two for that. */
#define STARTS_MAX 3u
#define FORKS_MAX 10u
/* Children that die without having done anything are begun again at once, after this, after twice
 * this, and so on. */
#define BACK_OFF_NS (10 * MS)
#define BACK_OFF_MAX_NS (1000 * MS)
/* It was not for nothing that it lived. */
#define GOOD_LIFE_NS (5000 * MS)
#define MS UINT64_C (1000000)
#define SECOND UINT64_C (1000000000)

uint64_t
pto_child_caught_limit (uint32_t times)
{
  return CAUGHT_NS << times / CAUGHT_STEP;
}

void
pto_child_init (struct pto_child *child)
{
  atomic_init (&child->life, PTO_LIFE_STARTING);
  atomic_init (&child->found, PTO_FOUND_NOTHING);
  atomic_init (&child->lives, 1);
  atomic_init (&child->started, 0);
  child->request = PTO_REQUEST_START;
}

/* --- carrier: answers --- */

void
pto_child_started (struct pto_child *child)
{
  child->failed_starts = child->times_caught = 0;
  pto_child_answered (child);
  /* Release: pairs with the acquire in pto_child_has_started_since(). Relaxed: lives is not written
   * while the child is ours. */
  pto_store_release (&child->started, pto_load_relaxed (&child->lives));
  child->ops->changed (child);
}

void
pto_child_refused (struct pto_child *child, const struct pto_failure *failure)
{
  child->ops->refused (child, failure);
  if (child->thread)
    {
      pto_child_answered (child);
      return;
    }
  child->request = 0;
  pto_child_kill (child, PTO_WHY_REFUSED, _ ("could not start"));
}

void
pto_child_closed (struct pto_child *child, uint64_t time)
{
  child->request = 0;
  child->since = time;
  if (child->thread)
    {
      /* Release: pairs with the acquire in pto_child_is_gone(). */
      pto_store_release (&child->life, PTO_LIFE_GONE);
      child->ops->changed (child);
    }
  else if (pto_child_life (child) != PTO_LIFE_KILLED)
    {
      child->why = PTO_WHY_CLOSED;
      pto_child_set_life (child, PTO_LIFE_ENDING);
    }
}

/* --- carrier: ends --- */

void
pto_child_cancel (struct pto_child *child, uint64_t patience)
{
  enum pto_life life = pto_child_life (child);

  if (child->level > 2 && patience != PTO_NEVER)
    patience += PASS_ON_NS;
  pto_link_cancel (&child->link);
  if (life == PTO_LIFE_KILLED || (life == PTO_LIFE_ASKED && child->patience <= patience))
    return;
  child->asked_ns = child->patience = patience;
  pto_child_set_life (child, PTO_LIFE_ASKED);
}

void
pto_child_kill (struct pto_child *child, enum pto_why why, const char *reason)
{
  enum pto_life life = pto_child_life (child);
  const char *text;

  if (life == PTO_LIFE_KILLED || child->thread)
    return;
  if (child->why == PTO_WHY_NOTHING)
    child->why = life == PTO_LIFE_ASKED ? PTO_WHY_UNWANTED : why;
  text = _ (reason);
  pto_text_copy (child->reason, sizeof child->reason, text, strlen (text));
  pto_child_set_life (child, PTO_LIFE_KILLED);
  child->ops->kill (child, child->reason);
}

/* what: before how long it has lasted. */
static void
kill_late (struct pto_child *child, enum pto_why why, const char *what, uint64_t ns)
{
  char reason[sizeof child->reason];

  if (ns % SECOND == 0)
    snprintf (reason, sizeof reason, "%s %" PRIu64 " s", what, ns / SECOND);
  else
    snprintf (reason, sizeof reason, "%s %" PRIu64 " ms", what, ns / MS);
  pto_child_kill (child, why, reason);
}

/* Has it not come as far as to its first request? Threads are not forked. */
static bool
is_coming_up (const struct pto_child *child)
{
  return pto_child_life (child) == PTO_LIFE_STARTING && !child->thread
         && !pto_link_is_taken (&child->link);
}

/* How long the request may take without a sign of life. */
static uint64_t
limit_of (const struct pto_child *child, const struct pto_child_limits *limits, bool closing,
          bool coming_up)
{
  uint64_t limit;

  if (pto_child_life (child) == PTO_LIFE_ENDING)
    return limits->close_ns;
  if (coming_up && child->times_caught < PTO_CHILD_CAUGHT_MAX)
    {
      limit = pto_child_caught_limit (child->times_caught);
      return limit < limits->start_ns ? limit : limits->start_ns;
    }
  if (child->request == PTO_REQUEST_TASK && !closing)
    return limits->task_ns;
  limit = child->request == PTO_REQUEST_CLOSE || (closing && limits->close_ns < limits->start_ns)
              ? limits->close_ns
              : limits->start_ns;
  if (coming_up)
    return limit;
  /* Its own children have theirs, and are to be named if one of them is to blame. */
  return child->level > 2 && limit != PTO_NEVER ? limit * (child->level - 1) : limit;
}

void
pto_child_look_after (struct pto_child *child, const struct pto_child_limits *limits, bool closing,
                      uint64_t time, uint64_t ns)
{
  uint32_t beat = pto_link_beat (&child->link);
  enum pto_life life = pto_child_life (child);
  bool coming_up;
  uint64_t limit;

  if (life == PTO_LIFE_KILLED)
    return;
  if (!pto_link_is_sound (&child->link))
    {
      pto_child_kill (child, PTO_WHY_FAULT, _ ("wrote over its mailbox"));
      return;
    }
  if (beat != child->beat)
    {
      child->beat = beat;
      child->since = time;
    }
  /* Relaxed: asked again at the next tick. */
  child->stopped_ns
      = pto_load_relaxed (&child->found) == PTO_FOUND_STOPPED ? child->stopped_ns + ns : 0;
  /* Once: it may take START just now. Who is stopped is no case of locks. */
  coming_up = child->stopped_ns == 0 && is_coming_up (child);
  limit = limit_of (child, limits, closing, coming_up);
  if (child->stopped_ns > limits->stop_ns)
    kill_late (child, PTO_WHY_FAULT, _ ("stopped for"), limits->stop_ns);
  else if (time - child->since > limit && coming_up && child->times_caught++ < PTO_CHILD_CAUGHT_MAX)
    kill_late (child, PTO_WHY_CAUGHT, _ ("did not come up for"), limit);
  else if (time - child->since > limit)
    kill_late (child, PTO_WHY_FAULT,
               coming_up ? _ ("did not come up: 33 times caught by a lock that another thread held "
                              "when it was forked, the last time for")
               : life == PTO_LIFE_ENDING || child->request == PTO_REQUEST_CLOSE
                   ? _ ("did not end for")
               : child->request == PTO_REQUEST_TASK ? _ ("gave no sign of life for task-timeout =")
                                                    : _ ("did not answer for"),
               limit);
  else if (life == PTO_LIFE_ASKED)
    {
      uint64_t counted = ns < STEP_NS ? ns : STEP_NS;

      child->patience = child->patience > counted ? child->patience - counted : 0;
      if (child->patience == 0)
        kill_late (child, PTO_WHY_UNWANTED, _ ("was asked to stop and did not for"),
                   child->asked_ns);
    }
}

/* --- carrier: death, and who lives again --- */

bool
pto_child_is_dead (const struct pto_child *child)
{
  return pto_load_acquire (&child->found) == PTO_FOUND_DEAD;
}

/* What dies again and again is begun again ever more slowly. */
static uint64_t
back_off (struct pto_child *child, uint64_t now)
{
  uint64_t ns = BACK_OFF_NS;

  if (child->deaths > 1 && now - child->begun_at >= GOOD_LIFE_NS)
    child->deaths = 1;
  if (child->deaths <= 1)
    return 0;
  for (uint32_t i = 2; i < child->deaths && ns < BACK_OFF_MAX_NS; i++)
    ns *= 2;
  return now + (ns < BACK_OFF_MAX_NS ? ns : BACK_OFF_MAX_NS);
}

bool
pto_child_lives_again (const struct pto_child *child, bool again, bool closing)
{
  if (child->thread || closing)
    return false;
  if (child->why == PTO_WHY_CAUGHT)
    return true;
  /* Who has never been up keeps the level from coming up. Relaxed: our own. */
  return pto_load_relaxed (&child->started) != 0
         && child->failed_starts < (child->unborn ? FORKS_MAX : STARTS_MAX)
         && (again || child->why == PTO_WHY_UNWANTED || child->restart
             || child->request == PTO_REQUEST_CLOSE || child->why == PTO_WHY_CLOSED);
}

void
pto_child_bury (struct pto_child *child, uint64_t now, bool again, bool closing, bool with_task)
{
  bool starting = child->request == PTO_REQUEST_START || child->why == PTO_WHY_REFUSED;
  bool unwanted = pto_child_life (child) == PTO_LIFE_ASKED || child->why == PTO_WHY_UNWANTED;

  again = again || child->request == PTO_REQUEST_CLOSE || child->why == PTO_WHY_CLOSED;
  /* One that took a task with it got on, however badly. */
  if (with_task)
    child->deaths = 0;
  else if (!unwanted && child->why != PTO_WHY_CAUGHT && !again)
    child->deaths++;
  child->failed_starts += starting && child->why != PTO_WHY_CAUGHT;
  child->request = 0;
  if (pto_child_lives_again (child, again, closing))
    {
      child->begin_at = back_off (child, now);
      /* Release: pairs with the acquire in pto_child_is_due(). */
      pto_store_release (&child->life, PTO_LIFE_LOST);
    }
  else
    /* Release: pairs with the acquire in pto_child_is_gone(). */
    pto_store_release (&child->life, PTO_LIFE_GONE);
  child->ops->changed (child);
}

/* --- guest: beginning again --- */

bool
pto_child_is_due (const struct pto_child *child, uint64_t now)
{
  /* Acquire: pairs with the release in pto_child_bury(). */
  return pto_load_acquire (&child->life) == PTO_LIFE_LOST && now >= child->begin_at;
}

void
pto_child_post_start (struct pto_child *child)
{
  pto_link_post (NULL, &child->link, &(struct pto_letter){ .request = PTO_REQUEST_START });
}

void
pto_child_begin_again (struct pto_child *child, uint64_t now)
{
  pto_child_set_life (child, PTO_LIFE_BEGINNING);
  pto_fetch_add_acq_rel (&child->lives, 1);
  /* While there is no process: a new one may die, and be found dead, at any moment. */
  pto_store_release (&child->found, PTO_FOUND_NOTHING);
  pto_link_reset (&child->link);
  pto_child_post_start (child);
  child->begun_at = now;
  child->unborn = !child->ops->begin (child);
  if (child->unborn)
    pto_store_release (&child->found, PTO_FOUND_DEAD);
  /* Release: the new life's numbers. */
  pto_store_release (&child->life, PTO_LIFE_BEGUN);
}

bool
pto_child_take_over (struct pto_child *child, uint64_t time)
{
  /* Acquire: pairs with the release in pto_child_begin_again(). */
  if (pto_load_acquire (&child->life) != PTO_LIFE_BEGUN)
    return false;
  child->why = PTO_WHY_NOTHING;
  pto_child_ask (child, PTO_REQUEST_START, time);
  return true;
}

/* --- keeper --- */

void
pto_child_found_stopped (struct pto_child *child, bool stopped)
{
  uint32_t found = pto_load_relaxed (&child->found);

  /* Who is dead, or was not made, stays so. */
  if (found != PTO_FOUND_DEAD)
    pto_cas_relaxed (&child->found, &found,
                     (uint32_t) (stopped ? PTO_FOUND_STOPPED : PTO_FOUND_NOTHING));
}

void
pto_child_found_dead (struct pto_child *child)
{
  /* Release: what describe() reads; pairs with the acquire in pto_child_is_dead(). */
  pto_store_release (&child->found, PTO_FOUND_DEAD);
}

/* --- any thread --- */

bool
pto_child_has_started_since (const struct pto_child *child, uint32_t life)
{
  return pto_load_acquire (&child->started) > life;
}

bool
pto_child_is_gone (const struct pto_child *child)
{
  return pto_load_acquire (&child->life) == PTO_LIFE_GONE;
}
