/* pool.c: what is said to which child, what follows when it answers or dies, and when can it be
 * given tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-private.h"

#include "core/completion.h"
#include "exec/pto-atomic.h"
#include "exec/translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US UINT64_C (1000)
/* Tasks go together to a child that speaks for somebody far away, if they take less than this, or
 * than the way there and back, which they share: who waits behind them, or for the last of them,
 * waits no longer than for the way. */
#define TOGETHER_NS (200 * US)
/* How often somebody is asked whether what is brought back is still wanted. */
#define BRING_BACK_POLL_NS (10 * 1000 * US)

static struct pto_station *
station_of (const struct pto_pool *pool, const struct pto_child *child)
{
  return &pool->stations[child->index];
}

static void
tell_news (struct pto_pool *pool)
{
  pto_word_set (pool->exec, &pool->news, pto_word_get (&pool->news) + 1);
}

static void
set_pace (struct pto_pool *pool, enum pto_pace pace)
{
  if (pace == pool->pace)
    return;
  pool->pace = pace;
  pool->config.pace (pool->config.data, pace);
}

/* It has begun to be under way. */
static void
count_under_way (struct pto_pool *pool)
{
  if (pool->n_under_way++ == 0)
    set_pace (pool, PTO_PACE_SLOW);
}

void
pto_pool_begin_request (struct pto_pool *pool, struct pto_child *child, enum pto_request request)
{
  pto_child_ask (child, request, pool->time);
  count_under_way (pool);
}

/* What it was asked is over; it may be under way to its end. */
static void
end_request (struct pto_pool *pool, const struct pto_child *child)
{
  if (!pto_child_is_under_way (child) && --pool->n_under_way == 0)
    set_pace (pool, PTO_PACE_IDLE);
}

void
pto_pool_cancel_child (struct pto_pool *pool, struct pto_child *child, uint64_t patience)
{
  pto_child_cancel (child, patience);
  if (pto_child_life (child) == PTO_LIFE_ASKED)
    set_pace (pool, PTO_PACE_FAST);
}

/* --- a child as a place --- */

static void go_on (struct pto_pool *pool, struct pto_station *station);

void
pto_pool_feed (struct pto_pool *pool, struct pto_station *station)
{
  struct pto_child *child = station->child;
  struct pto_control *control;

  if (!pto_child_is_idle (child))
    {
      /* It may have answered just now, and be as good as dead. */
      if ((child->request != PTO_REQUEST_TASK && !station->fetches)
          || pto_child_life (child) == PTO_LIFE_KILLED)
        pto_scheduler_withdraw (&station->endpoint);
      return;
    }
  /* Before the next task. */
  control = pto_pool_next_control (pool, child);
  if (control != NULL && control->request == PTO_REQUEST_CLOSE)
    pto_left_want_all (&pool->left, child->index);
  if (pto_pool_fetch (pool, station))
    {
      pto_scheduler_withdraw (&station->endpoint);
      return;
    }
  if (control == NULL && station->held)
    {
      /* Heard of again it comes here again. */
      if (!pto_child_is_suspect (child))
        go_on (pool, station);
      return;
    }
  if (control == NULL && !pto_child_is_suspect (child))
    {
      pto_scheduler_put_back (&station->endpoint);
      return;
    }
  pto_scheduler_withdraw (&station->endpoint);
  if (control != NULL)
    pto_pool_post_control (pool, station, control);
}

static void
end_task (struct pto_station *station, bool failed)
{
  struct pto_level_task *task = pto_pool_task (station->endpoint.running);

  station->over = true;
  station->failed = failed;
  if (++task->n_ended == task->n_members)
    {
      task->n_ended = 0;
      pto_pool_settle_failure (station->pool, station->endpoint.running);
      task->anew = task->lost;
      task->lost = false;
      if (task->anew)
        pto_pool_clean (station->endpoint.running);
    }
  pto_scheduler_signal (station->endpoint.scheduler, station->endpoint.index);
}

/* Its child was not told of it; what that can be given by now is for the pump to look at. */
static void
end_held (struct pto_station *station)
{
  struct pto_pool *pool = station->pool;

  station->held = false;
  end_task (station, true);
  pto_hub_mark (pool->peers, pool->config.hub, station->child->index);
}

/* A member has ended. When its task has failed, or is run once more, what the others do is not
 * wanted any more; they may be waiting for this one. */
static void
end_member (struct pto_pool *pool, struct pto_station *station, bool failed)
{
  const struct pto_slot *slot = station->endpoint.running;

  end_task (station, failed);
  if (slot->queue != PTO_QUEUE_LINE
      || !(pto_pool_task (slot)->failed || pto_pool_task (slot)->lost))
    return;
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    {
      struct pto_station *other = &pool->stations[i];

      if (other->endpoint.running != slot || other->over)
        continue;
      if (other->held)
        end_held (other);
      else
        pto_pool_cancel_child (pool, other->child, pool->config.group_ns);
    }
}

/* How many tasks, besides the first, the child may be given with it. What has taken its worker with
 * it before goes alone, lest it takes others along. */
static uint32_t
how_many_more (const struct pto_pool *pool, const struct pto_station *station)
{
  uint64_t n;

  if (!station->child->far || station->each_ns == 0
      || pto_pool_task (station->endpoint.running)->n_lost > 0)
    return 0;
  n = (station->way_ns > TOGETHER_NS ? station->way_ns : TOGETHER_NS) / station->each_ns;
  return n > PTO_TOGETHER_MAX ? PTO_TOGETHER_MAX - 1 : n > 0 ? (uint32_t) n - 1 : 0;
}

/* What tasks take there: more is believed at once, less by and by. The rest was the way. */
static void
note_each (struct pto_station *station, uint64_t busy, uint64_t spent)
{
  uint64_t each = busy / (station->n_others + 1) + 1;
  uint64_t way = spent > busy ? spent - busy : 0;

  station->each_ns = each > station->each_ns ? each : (7 * station->each_ns + each) / 8;
  station->way_ns = (7 * station->way_ns + way) / 8;
}

static void
mark_all (struct pto_pool *pool, const uint64_t *who)
{
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    if (pto_pool_has_bit (who, i))
      pto_hub_mark (pool->peers, pool->config.hub, i);
}

/* Those whose task waits for something look whether it is there. */
static void
mark_held (struct pto_pool *pool)
{
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    if (pool->stations[i].held)
      pto_hub_mark (pool->peers, pool->config.hub, i);
}

/* more: so many others may go with it. */
static void
post_task (struct pto_pool *pool, struct pto_station *station, uint32_t more)
{
  struct pto_child *child = station->child;
  struct pto_letter letter;

  pto_pool_write_tasks (pool, station, more, &letter);
  for (uint32_t i = 0; i <= station->n_others; i++)
    pto_pool_begin_writing (pool, station, pto_station_slot (station, i));
  if (pool->record != 0)
    pto_pool_record_post (pool, station);
  if (child->far)
    {
      station->sent_at = pto_now (pool->exec);
      pto_pool_record_asked (pool, station);
    }
  pto_pool_begin_request (pool, child, PTO_REQUEST_TASK);
  pto_link_post (pool->peers, &child->link, &letter);
}

/* Its child is idle. */
static void
go_on (struct pto_pool *pool, struct pto_station *station)
{
  struct pto_slot *slot = station->endpoint.running;
  uint64_t who[PTO_POOL_WORDS] = { 0 };
  uint32_t lost;

  switch (pto_pool_need (pool, station, slot, who, &lost))
    {
    case PTO_LEFT_HERE:
    case PTO_LEFT_THERE:
      station->held = false;
      post_task (pool, station, 0);
      return;
    case PTO_LEFT_SOMEWHERE:
      mark_all (pool, who);
      return;
    case PTO_LEFT_GONE:
      station->held = false;
      pto_pool_note_failure (pool, slot, PTO_FAILURE_LEFT, &pool->config.children[lost]);
      end_member (pool, station, true);
      pto_hub_mark (pool->peers, pool->config.hub, station->child->index);
      return;
    }
}

/* The scheduler is not parked: whoever has to be asked is asked by the pump. */
static bool
is_to_wait (struct pto_pool *pool, struct pto_station *station, const struct pto_slot *slot)
{
  uint64_t who[PTO_POOL_WORDS] = { 0 };
  uint32_t lost;

  if (station->child->request == 0
      && pto_pool_need (pool, station, slot, who, &lost) == PTO_LEFT_HERE)
    return false;
  pto_pool_set_bit (who, station->child->index, true);
  mark_all (pool, who);
  return true;
}

static void
dispatch (struct pto_endpoint *endpoint, struct pto_slot *slot)
{
  struct pto_station *station = (struct pto_station *) endpoint;
  struct pto_pool *pool = station->pool;
  struct pto_child *child = station->child;

  station->over = false;
  station->n_others = 0;
  station->others_failed = station->others_again = 0;
  station->n_lost = pto_pool_task (slot)->n_lost;
  pto_pool_task (slot)->anew = false;
  /* Nothing begins any more. */
  if (pto_pool_is_cancelled (pool))
    {
      end_task (station, true);
      return;
    }
  /* The last of its kind. */
  if (pto_child_life (child) == PTO_LIFE_GONE)
    {
      pto_pool_note_failure (pool, slot, PTO_FAILURE_NO_WORKER, child);
      end_task (station, true);
      return;
    }
  station->held = is_to_wait (pool, station, slot);
  if (!station->held)
    post_task (pool, station, how_many_more (pool, station));
}

static bool
poll_station (struct pto_endpoint *endpoint, struct pto_outcome *outcome)
{
  const struct pto_station *station = (struct pto_station *) endpoint;

  outcome->failed = station->failed;
  outcome->again = pto_pool_task (endpoint->running)->anew;
  outcome->others = station->others;
  outcome->others_failed = station->others_failed;
  outcome->others_again = station->others_again;
  outcome->n_others = station->n_others;
  return station->over;
}

static void
close_station (struct pto_endpoint *endpoint)
{
}

static void
refuse (struct pto_endpoint *endpoint, struct pto_slot *slot)
{
  const struct pto_station *station = (struct pto_station *) endpoint;

  pto_pool_note_failure (station->pool, slot, PTO_FAILURE_NO_WORKER, station->child);
}

static const struct pto_endpoint_ops station_ops
    = { .dispatch = dispatch, .poll = poll_station, .close = close_station, .refuse = refuse };

/* It will never be given anything any more. */
static void
forget (struct pto_station *station)
{
  pto_scheduler_withdraw (&station->endpoint);
  pto_scheduler_forget (&station->endpoint);
}

/* --- the pump --- */

/* START has come to something. */
static void
end_start (struct pto_pool *pool, const struct pto_child *child, bool ok)
{
  if (!ok && pto_load_relaxed (&pool->start_failed) == 0)
    pto_store_relaxed (&pool->start_failed, child->index + 1);
  pto_fetch_sub_relaxed (&pool->starting, 1);
  tell_news (pool);
}

/* Tasks that the child has and will not begin, since one before them takes long: others may. */
static void
take_returned (struct pto_pool *pool, struct pto_child *child)
{
  struct pto_station *station = station_of (pool, child);
  uint32_t kept = pto_link_kept_tasks (&child->link);
  struct pto_slot *returned[PTO_TOGETHER_MAX];
  uint32_t n = 0;

  if (child->request != PTO_REQUEST_TASK || kept > station->n_others)
    return;
  /* The first is not to be given back, whatever a child says. */
  while (station->n_others > 0 && station->n_others >= kept)
    returned[n++] = station->others[--station->n_others];
  /* In the order in which they were ready. */
  while (n > 0)
    pto_scheduler_give_back (&station->endpoint, returned[--n]);
}

/* What the child was given is over, as far as it is among these. failed: a bit for each, the first
 * is endpoint.running. */
static void
end_tasks (struct pto_pool *pool, struct pto_station *station, uint64_t which, uint64_t failed,
           enum pto_failure_kind kind)
{
  uint64_t again = 0;

  for (uint32_t i = 0; i <= station->n_others; i++)
    {
      struct pto_slot *slot = pto_station_slot (station, i);

      if ((which >> i & 1) == 0)
        continue;
      if ((failed >> i & 1) != 0 && kind != PTO_FAILURE_ANSWERED
          && pto_pool_runs_again (pool, slot, station->child, kind != PTO_FAILURE_LOST_BEFORE))
        {
          again |= UINT64_C (1) << i;
          /* Its only member; that of the first ends below. */
          if (i > 0)
            {
              pto_pool_task (slot)->lost = false;
              pto_pool_clean (slot);
            }
        }
      else if ((failed >> i & 1) != 0)
        pto_pool_note_failure (pool, slot, kind, station->child);
      /* It has written nothing: what it was to read, or to update, is where it was. */
      if ((failed >> i & 1) != 0 && kind == PTO_FAILURE_LOST_BEFORE)
        continue;
      if (pool->config.writes != NULL)
        pto_pool_note_writes (pool, station, slot);
      /* Who runs it once more needs to know where what it reads is, or was. */
      if ((again >> i & 1) == 0)
        pto_pool_end_writing (pool, station, slot, (failed >> i & 1) != 0);
    }
  station->others_failed = failed >> 1;
  station->others_again = again >> 1;
}

/* All that it was given is over, and what of it is wanted here has come, or does not. */
static void
end_answered (struct pto_pool *pool, struct pto_station *station, uint64_t failed)
{
  station->fetches = false;
  station->others_failed = failed >> 1;
  end_member (pool, station, (failed & 1) != 0);
}

/* What they have written is there, and wanted here before they end. */
static bool
awaits_results (struct pto_pool *pool, struct pto_station *station)
{
  station->awaited = 0;
  if (!station->child->far || pto_left_is_empty (&pool->left) || pto_pool_is_cancelled (pool))
    return false;
  for (uint32_t i = 0; i <= station->n_others; i++)
    {
      const struct pto_slot *slot = pto_station_slot (station, i);

      station->comes[i]
          = (station->answered_failed >> i & 1) == 0 ? pto_pool_want_back (pool, station, slot) : 0;
      if (station->comes[i] > 0)
        station->awaited |= UINT64_C (1) << i;
    }
  station->fetches = station->awaited != 0 && pto_pool_fetch (pool, station);
  return station->fetches;
}

static void
take_fetched (struct pto_pool *pool, struct pto_station *station, const struct pto_failure *failure,
              bool ok)
{
  struct pto_child *child = station->child;

  if (!ok && !pto_pool_is_cancelled (pool))
    {
      char why[PTO_FAILURE_TEXT + 128];

      snprintf (why, sizeof why, _ ("did not give what was left with it (%s)"), failure->text);
      pto_child_kill (child, PTO_WHY_FAULT, why);
      return;
    }
  if (ok)
    pto_left_come (&pool->left, child->index);
  else
    pto_left_lose (&pool->left, child->index);
  pto_child_answered (child);
  end_request (pool, child);
  pto_pool_record_fetched (pool, station);
  if (station->fetches && !(ok && pto_pool_fetch (pool, station)))
    end_answered (pool, station, station->answered_failed | (ok ? 0 : station->awaited));
  mark_held (pool);
  tell_news (pool);
}

/* The request is answered. */
static void
take_answer (struct pto_pool *pool, struct pto_child *child)
{
  struct pto_station *station = station_of (pool, child);
  struct pto_failure failure;
  bool ok = pto_link_answer (&child->link, &failure) == PTO_OK;
  uint64_t failed;

  switch (child->request)
    {
    case PTO_REQUEST_TASK:
      take_returned (pool, child);
      if (pool->record != 0)
        pto_pool_record_member (pool, station, true);
      failed = pto_link_failed_tasks (&child->link, station->n_others + 1);
      end_tasks (pool, station, UINT64_MAX, failed, PTO_FAILURE_ANSWERED);
      if (child->far)
        note_each (station, pto_link_busy (&child->link), pto_now (pool->exec) - station->sent_at);
      child->deaths = 0;
      pto_child_answered (child);
      end_request (pool, child);
      station->answered_failed = failed;
      if (!awaits_results (pool, station))
        end_answered (pool, station, failed);
      return;
    case PTO_REQUEST_FETCH:
      take_fetched (pool, station, &failure, ok);
      return;
    case PTO_REQUEST_START:
      if (ok)
        pto_child_started (child);
      else
        pto_child_refused (child, &failure);
      end_request (pool, child);
      end_start (pool, child, ok);
      return;
    case PTO_REQUEST_REGISTER:
    case PTO_REQUEST_UNREGISTER:
    case PTO_REQUEST_TRACE:
    case PTO_REQUEST_MEMORY:
      pto_pool_answer_control (pool, station, ok, false);
      pto_pool_record_rest (pool, station);
      pto_child_answered (child);
      end_request (pool, child);
      return;
    case PTO_REQUEST_COMMIT:
      /* It has what nobody else may have by now, or the other way round: its next life has what all
       * have. */
      if (!ok)
        pto_child_kill (child, PTO_WHY_FAULT, N_ ("went back on a registration"));
      pto_pool_answer_control (pool, station, true, false);
      pto_child_answered (child);
      end_request (pool, child);
      return;
    case PTO_REQUEST_CLOSE:
      pto_pool_answer_control (pool, station, true, false);
      pto_child_closed (child, pool->time);
      end_request (pool, child);
      if (pto_child_life (child) == PTO_LIFE_GONE)
        {
          forget (station);
          tell_news (pool);
        }
      return;
    default: /* TASKS, which it was asked as a TASK, and what a solo child is asked */
      return;
    }
}

static void
take_death (struct pto_pool *pool, struct pto_child *child)
{
  struct pto_station *station = station_of (pool, child);
  bool fetches = station->fetches;
  struct pto_slot *slot = child->request == PTO_REQUEST_TASK || station->held || fetches
                              ? station->endpoint.running
                              : NULL;
  bool starting = child->request == PTO_REQUEST_START;
  bool under_way = pto_child_is_under_way (child);

  if (child->far && !pto_left_is_empty (&pool->left))
    child->ops->describe (child, station->lost_text, sizeof station->lost_text, NULL, 0);
  pto_left_lose (&pool->left, child->index);
  pto_pool_record_rest (pool, station);
  if (fetches)
    {
      end_tasks (pool, station, station->awaited, UINT64_MAX, PTO_FAILURE_LOST);
      station->answered_failed |= station->awaited;
    }
  else if (station->held)
    {
      station->held = false;
      end_tasks (pool, station, UINT64_MAX, UINT64_MAX, PTO_FAILURE_LOST_BEFORE);
    }
  else if (slot != NULL)
    {
      take_returned (pool, child);
      if (pool->record != 0)
        pto_pool_record_member (pool, station, false);
      /* Who wrote over its mailbox may have begun, whatever stands there. */
      end_tasks (pool, station, UINT64_MAX, UINT64_MAX,
                 pto_link_is_taken (&child->link) || !pto_link_is_sound (&child->link)
                     ? PTO_FAILURE_LOST
                     : PTO_FAILURE_LOST_BEFORE);
    }
  /* Who is dead knows nothing any more, and is closed. */
  if (station->control != NULL)
    pto_pool_answer_control (pool, station,
                             station->control->request != PTO_REQUEST_REGISTER
                                 && station->control->request != PTO_REQUEST_MEMORY,
                             true);
  pto_child_bury (child, pto_now (pool->exec), pto_pool_is_to_close (pool, child), pool->closing,
                  slot != NULL);
  if (under_way)
    end_request (pool, child);
  pto_pool_drop_dead (pool, child);
  if (fetches)
    end_answered (pool, station, station->answered_failed);
  else if (slot != NULL)
    end_member (pool, station, true);
  mark_held (pool);
  if (pto_child_life (child) == PTO_LIFE_GONE)
    forget (station);
  else
    {
      pto_scheduler_withdraw (&station->endpoint);
      pto_fetch_add_acq_rel (&pool->n_lost, 1);
    }
  if (starting)
    /* Relaxed: our own. */
    end_start (pool, child,
               pto_child_life (child) != PTO_LIFE_GONE || pto_load_relaxed (&child->started) != 0);
  else
    tell_news (pool);
  /* The guest, should it wait for tasks, is the one to begin it again. */
  pto_fetch_add_acq_rel (&pool->engine->progress.value, 1);
  pto_unpark (pool->exec, &pool->engine->progress);
}

/* A child's bit was set: it was begun again, has answered, or is dead; perhaps several of these. */
static void
settle_child (struct pto_pool *pool, struct pto_child *child)
{
  bool dead;

  if (pto_child_take_over (child, pool->time))
    count_under_way (pool);
  if (!pto_child_is_there (child))
    return;
  /* First the death, then the mailbox: an answer that came before the death is there. */
  dead = pto_child_is_dead (child);
  if (child->request != 0 && pto_link_is_idle (&child->link))
    take_answer (pool, child);
  else if (child->request != 0 && !pto_link_is_sound (&child->link))
    pto_child_kill (child, PTO_WHY_FAULT, N_ ("wrote over its mailbox"));
  else if (child->request == PTO_REQUEST_TASK && child->far)
    take_returned (pool, child);
  if (!pto_child_is_there (child))
    return;
  if (dead)
    take_death (pool, child);
  else
    pto_pool_feed (pool, station_of (pool, child));
}

void
pto_pool_begin_to_close (struct pto_pool *pool)
{
  pool->closing = true;
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    pool->config.children[i].since = pool->time;
}

static void
take_cancel (struct pto_pool *pool)
{
  uint64_t cancel = pto_load_relaxed (&pool->cancel);

  if (cancel == pool->cancel_seen)
    return;
  pool->cancel_seen = cancel;
  if ((uint32_t) cancel == 0)
    return;
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    if (pool->stations[i].held)
      end_held (&pool->stations[i]);
    else if (pool->config.children[i].request == PTO_REQUEST_TASK
             || pool->config.children[i].request == PTO_REQUEST_FETCH)
      pto_pool_cancel_child (pool, &pool->config.children[i], ((uint32_t) cancel - 1) * US);
  /* The run has failed, or is about to: what waits there passes by. */
  pto_engine_wake (pool->engine, pool->nobody.scheduler->config.index);
}

static void
take_ticks (struct pto_pool *pool)
{
  uint64_t ns;
  bool fast = false;

  if (pto_load_relaxed (&pool->ticked) == 0)
    return;
  ns = pto_exchange_acq_rel (&pool->ticked, 0);
  pool->time += ns;
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    {
      struct pto_child *child = &pool->config.children[i];

      if (!pto_child_is_under_way (child))
        continue;
      pto_child_look_after (child, &pool->config.limits, pool->closing, pool->time, ns);
      fast = fast || pto_child_life (child) == PTO_LIFE_ASKED;
    }
  set_pace (pool, fast ? PTO_PACE_FAST : pool->n_under_way > 0 ? PTO_PACE_SLOW : PTO_PACE_IDLE);
}

static void
take_bits (struct pto_pool *pool)
{
  for (uint32_t word = 0; word * 64 < pool->config.n_children; word++)
    for (uint64_t bits = pto_hub_take (pool->config.hub, word); bits != 0; bits &= bits - 1)
      {
        uint32_t index = word * 64 + (uint32_t) __builtin_ctzll (bits);

        if (index < pool->config.n_children)
          settle_child (pool, &pool->config.children[index]);
      }
}

void
pto_pool_pump (void *data)
{
  struct pto_pool *pool = data;
  struct pto_word *bell = &pool->config.hub->bell.word;

  for (;;)
    {
      /* Before the looks: who rings after one of them changes the value that is parked on. */
      uint32_t seen = pto_word_get (bell);

      take_bits (pool);
      pto_pool_take_controls (pool);
      take_cancel (pool);
      take_ticks (pool);
      if (pool->n_under_way == 0 && pto_load_acquire (&pool->stop) != 0)
        break;
      pto_park (pool->exec, bell, seen, PTO_NEVER);
    }
}

/* --- making and ending --- */

uint32_t
pto_pool_n_queues (const struct pto_child *children, uint32_t n_children)
{
  uint32_t n = 1;

  for (uint32_t i = 0; i < n_children; i++)
    {
      uint32_t other = 0;

      while (children[other].kind != children[i].kind || children[other].level != children[i].level)
        other++;
      n += other == i;
    }
  return n;
}

static uint32_t
class_number (struct pto_pool *pool, const struct pto_child *child)
{
  uint32_t i = 0;

  while (i < pool->n_classes
         && (pool->classes[i].kind != child->kind || pool->classes[i].level != child->level))
    i++;
  if (i == pool->n_classes)
    pool->classes[pool->n_classes++]
        = (struct pto_class){ .kind = child->kind, .level = child->level };
  return i;
}

struct pto_pool *
pto_pool_new (struct pto_engine *engine, struct pto_exec *exec,
              const struct pto_pool_config *config)
{
  struct pto_pool *pool = NULL;
  uint32_t n = config->n_children;

  if (posix_memalign ((void **) &pool, 64, (sizeof *pool + 63) & ~(size_t) 63) != 0)
    return NULL;
  memset (pool, 0, sizeof *pool);
  pool->engine = engine;
  pool->exec = exec;
  pool->peers = pto_exec_backend (exec) == PTO_BACKEND_HOST ? NULL : exec;
  pool->config = *config;
  pool->first.task = PTO_TASK_NONE;
  pto_left_init (&pool->left);
  pthread_mutex_init (&pool->traffic.lock, NULL);
  pto_word_init (&pool->news, 0, false);
  pool->classes = calloc (n + 1, sizeof *pool->classes);
  for (uint32_t kind = 0; kind < PTO_N_CHILD_KINDS; kind++)
    pool->numbers[kind] = calloc (n + 1, sizeof *pool->numbers[kind]);
  pool->stations = calloc (n + 1, sizeof *pool->stations);
  pool->endpoints = calloc (n + 1, sizeof *pool->endpoints);
  if (pool->classes == NULL || pool->numbers[0] == NULL || pool->numbers[1] == NULL
      || pool->stations == NULL || pool->endpoints == NULL)
    {
      pto_pool_free (pool);
      return NULL;
    }
  for (uint32_t i = 0; i < n; i++)
    {
      struct pto_child *child = &config->children[i];
      struct pto_station *station = &pool->stations[i];
      uint32_t number = class_number (pool, child);

      pool->classes[number].n_children++;
      pool->numbers[child->kind][child->number] = (uint16_t) i;
      pool->n_numbers[child->kind]++;
      station->pool = pool;
      station->child = child;
      /* It starts. */
      station->endpoint = (struct pto_endpoint){
        .ops = &station_ops, .queue = number, .number = i, .cohort = PTO_COHORT_NONE, .away = true
      };
      pool->endpoints[i] = &station->endpoint;
    }
  pool->nobody = (struct pto_endpoint){
    .ops = &station_ops, .queue = pool->n_classes, .number = n, .cohort = PTO_COHORT_NONE
  };
  pool->endpoints[n] = &pool->nobody;
  pool->n_under_way = n;
  pool->pace = n > 0 ? PTO_PACE_SLOW : PTO_PACE_IDLE;
  atomic_init (&pool->starting, n);
  return pool;
}

void
pto_pool_free (struct pto_pool *pool)
{
  if (pool == NULL)
    return;
  pto_pool_free_controls (pool);
  pto_left_destroy (&pool->left);
  pthread_mutex_destroy (&pool->traffic.lock);
  while (pool->held != NULL)
    pto_pool_settle_failure (pool, pool->held->slot);
  free (pool->classes);
  for (uint32_t kind = 0; kind < PTO_N_CHILD_KINDS; kind++)
    free (pool->numbers[kind]);
  free (pool->stations);
  free (pool->endpoints);
  free (pool);
}

struct pto_endpoint **
pto_pool_endpoints (struct pto_pool *pool, uint32_t *n)
{
  *n = pool->config.n_children + 1;
  return pool->endpoints;
}

void
pto_pool_ring (struct pto_pool *pool)
{
  pto_bell_ring (pool->peers, &pool->config.hub->bell);
}

void
pto_pool_stop (struct pto_pool *pool)
{
  pto_store_release (&pool->stop, 1);
  pto_pool_ring (pool);
}

/* --- guest --- */

void
pto_pool_begin_run (struct pto_pool *pool)
{
  uint64_t run = pto_load_relaxed (&pool->cancel) >> 32;

  /* No task is there: the pump does not look at what it says of the run before. */
  memset (&pool->first, 0, offsetof (struct pto_first_failure, failure));
  pool->first.task = PTO_TASK_NONE;
  pool->retried_before = pool->retried;
  pto_store_relaxed (&pool->cancel, (run + 1) << 32);
}

void
pto_pool_record (struct pto_pool *pool, struct pto_trace_buffer *scheduler,
                 struct pto_trace_buffer *children, uint32_t number)
{
  pool->dispatches = scheduler;
  pool->runs = children;
  pool->record = scheduler != NULL ? number : 0;
}

void
pto_pool_check (struct pto_pool *pool, bool checks)
{
  pool->checks = checks;
}

void
pto_pool_forget_left (struct pto_pool *pool, uint64_t begin, uint64_t end)
{
  for (;;)
    {
      uint32_t seen = pto_word_get (&pool->news);

      /* What it removes nobody asks for any more. */
      if (!pto_left_remove (&pool->left, begin, end, PTO_LEFT_NOBODY))
        break;
      pto_park (pool->exec, &pool->news, seen, PTO_NEVER);
    }
}

enum pto_status
pto_pool_bring_back (struct pto_pool *pool, bool (*cancelled) (void *data), void *data,
                     struct pto_report *report)
{
  uint64_t who[PTO_POOL_WORDS] = { 0 };
  enum pto_status status = PTO_OK;
  uint32_t lost;

  for (uint32_t i = 0; i < PTO_RINGS; i++)
    {
      const struct pto_circle *heap = &pool->engine->rings[i].heap;
      uint64_t begin = (uint64_t) (uintptr_t) heap->base;

      pto_pool_forget_left (pool, begin, begin + heap->size);
    }
  pto_left_want (&pool->left, 0, UINT64_MAX, who);
  mark_all (pool, who);
  for (;;)
    {
      uint32_t seen = pto_word_get (&pool->news);

      if (!pto_left_is_awaited (&pool->left))
        break;
      if (cancelled (data))
        {
          status = pto_report_set (report, PTO_STATUS_CANCELLED, _ ("the run was cancelled"));
          break;
        }
      pto_park (pool->exec, &pool->news, seen, pto_now (pool->exec) + BRING_BACK_POLL_NS);
    }
  if (status == PTO_OK && pool->first.task == PTO_TASK_NONE
      && pto_left_find (&pool->left, 0, UINT64_MAX, PTO_LEFT_NOBODY, &lost) == PTO_LEFT_GONE)
    status = pto_report_set (
        report, (enum pto_status) PTO_STATUS_WORKER_LOST,
        _ ("%s %s, and with it results of tasks that had been left there, since other tasks read "
           "them there: set remote-leave to more, and what has fewer bytes comes back at once"),
        pool->config.children[lost].path, pool->stations[lost].lost_text);
  /* What a cancelled run still has asked for comes, or is not there. */
  pto_pool_forget_left (pool, 0, UINT64_MAX);
  return status;
}

const struct pto_first_failure *
pto_pool_first_failure (const struct pto_pool *pool)
{
  return &pool->first;
}

uint32_t
pto_pool_begin_lost (struct pto_pool *pool)
{
  uint32_t n = 0;

  for (uint32_t i = 0; pto_pool_has_lost (pool) && i < pool->config.n_children; i++)
    if (pto_child_is_due (&pool->config.children[i], pto_now (pool->exec)))
      {
        pto_pool_begin_again (pool, &pool->config.children[i]);
        n++;
      }
  return n;
}

void
pto_pool_begin_again (struct pto_pool *pool, struct pto_child *child)
{
  pto_fetch_sub_acq_rel (&pool->n_lost, 1);
  pto_fetch_add_relaxed (&pool->starting, 1);
  pool->restarts += child->why != PTO_WHY_CAUGHT;
  pto_child_begin_again (child, pto_now (pool->exec));
  /* The bit may not be the one that the pump comes for. */
  pto_hub_mark (pool->peers, pool->config.hub, child->index);
}

uint64_t
pto_pool_retried (const struct pto_pool *pool)
{
  return pool->retried - pool->retried_before;
}

struct pto_child *
pto_pool_start_failed (const struct pto_pool *pool)
{
  uint32_t failed = pto_load_relaxed (&pool->start_failed);

  return failed != 0 ? &pool->config.children[failed - 1] : NULL;
}

/* --- any thread --- */

void
pto_pool_cancel (struct pto_pool *pool, uint64_t patience_ns)
{
  uint64_t us = patience_ns / US < UINT32_MAX ? patience_ns / US + 1 : UINT32_MAX;
  uint64_t before = pto_load_relaxed (&pool->cancel);
  uint64_t after;

  do
    {
      if ((uint32_t) before != 0 && (uint32_t) before <= us)
        return;
      after = before >> 32 << 32 | us;
    }
  while (!pto_cas_relaxed (&pool->cancel, &before, after));
  pto_pool_ring (pool);
}

bool
pto_pool_is_cancelled (const struct pto_pool *pool)
{
  return (uint32_t) pto_load_relaxed (&pool->cancel) != 0;
}

void
pto_pool_tick (struct pto_pool *pool, uint64_t ns)
{
  pto_fetch_add_acq_rel (&pool->ticked, ns);
  pto_pool_ring (pool);
}

uint32_t
pto_pool_starting (const struct pto_pool *pool)
{
  return pto_load_relaxed (&pool->starting);
}

bool
pto_pool_has_lost (const struct pto_pool *pool)
{
  /* Acquire: pairs with the addition in take_death(). */
  return pto_load_acquire (&pool->n_lost) != 0;
}

uint64_t
pto_pool_beats (const struct pto_pool *pool)
{
  uint64_t sum = 0;

  for (uint32_t i = 0; i < pool->config.n_children; i++)
    sum += pto_link_beat (&pool->config.children[i].link);
  return sum;
}
