/* pto-trace-replay-run.c: when would a recorded graph have been over on another chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The tasks, their edges, the times of their kernels and what the orchestration did between two
 * submits are as recorded; who runs what, and when, is decided again, in virtual time, as
 * schedulers do: first what has signalled, then who waits for several cores, then what is ready,
 * first come, first served, of each type of core. A successor of the task that ended runs next on
 * its core, if it fits there.
 */
#include "config.h"

#include "pto-trace-replay-places-private.h"
#include "pto-trace-replay-sets-private.h"

#include <string.h>

enum
{
  IDLE = PTO_REPLAY_IDLE,
  /* As pto/core/scheduler.c has it. */
  RUN_THROUGH_MAX = 64
};

/* Who does something next, and when. The submitter is 0, then come schedulers, then cores. */
typedef struct
{
  guint64 time;
  guint64 order; /* of those at one time: who was there first */
  guint32 actor;
} Event;

/* Runs that are ready, each of which is there once. */
typedef struct
{
  guint32 *items;
  guint head;
  guint tail;
} Ready;

/* What a scheduler is at, in a pass: all that has signalled, those that wait for their cores, all
 * that is ready, as long as there are cores, and once more those that wait. */
typedef enum
{
  COLLECTS,
  CALLED,
  GRANTS,
  DISPATCHES,
  CALLED_AGAIN,
  RINGS
} Phase;

/* What it does at its event. */
typedef enum
{
  LOOKS,  /* at the next thing */
  POLLS,  /* a core has signalled */
  BEGINS, /* a run is handed to a core */
  N_STEPS
} Step;

typedef struct
{
  guint64 *signals; /* a bit for each of its cores */
  guint64 taken;    /* of one word of them, those that are looked at in this pass */
  guint word;
  guint n_words;
  guint64 busy; /* ns */
  gboolean is_awake;
  gboolean is_rung;  /* since the pass began */
  gboolean is_again; /* it grants what came of the second look */
  gboolean has_done; /* something in this pass */
  gboolean is_called;
  gboolean is_patient;
  Phase phase;
  guint32 type; /* that it dispatches */
  Step step;
  guint run_through;
  guint32 run;
  guint32 core;
  guint32 later; /* the run that follows what has ended, for the queue */
} Scheduler;

typedef struct
{
  const PtoReplay *replay;
  const PtoReplaySettings *settings;
  PtoReplayResult *result;
  PtoReplayPlaces places;
  guint64 now;
  Event *heap;
  guint n_events;
  guint64 n_pushed;
  Scheduler *schedulers;
  guint turn;                    /* of the scheduler that is rung next */
  Ready ready[PTO_N_CORE_TYPES]; /* those of priority 0 */
  Ready urgent[PTO_N_CORE_TYPES][PTO_MAX_PRIORITY];
  guint32 *waits; /* of tasks: producers that are not over */
  guint32 *runs_left;
  guint8 *is_over;
  guint n_over;
  guint32 *passing; /* tasks that only order, and are ready: none but within settle() */
  guint n_passing;
  guint64 *run_ns;
  /* The submitter. */
  guint next; /* task */
  guint next_hold;
  guint64 waits_since;
  gboolean is_waiting;
  gboolean waits_for_cluster;
  guint target;        /* of live: what it waits for */
  gboolean is_charged; /* its gap */
  /* Tasks of each ring that hold a slot, in their order. */
  Ready live[PTO_RINGS];
  /* Of claims: who is behind it; of tokens: who came last; of tasks: those before it. */
  guint32 *behind;
  guint32 *last;
  guint32 *missing;
  /* Of runs that meet: when they began, and where; of meetings: who has not come, when the last one
   * came. */
  guint64 *began;
  guint32 *began_on;
  guint32 *absent;
} Replay;

static inline gboolean
comes_before (const Event *a, const Event *b)
{
  return a->time < b->time || (a->time == b->time && a->order < b->order);
}

/* In which order things happen at one moment: as they came, or by lot. */
static inline guint64
draw (const Replay *run, guint64 number)
{
  guint64 z;

  if (run->settings->draw == 0)
    return number;
  z = (number + 1) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15) * run->settings->draw;
  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static void
push_event (Replay *run, guint64 time, guint32 actor)
{
  Event event = { time, draw (run, run->n_pushed++), actor };
  guint i = run->n_events++;

  while (i > 0 && comes_before (&event, &run->heap[(i - 1) / 2]))
    {
      run->heap[i] = run->heap[(i - 1) / 2];
      i = (i - 1) / 2;
    }
  run->heap[i] = event;
}

static Event
pop_event (Replay *run)
{
  Event first = run->heap[0];
  Event last = run->heap[--run->n_events];
  guint i = 0;

  for (;;)
    {
      guint child = 2 * i + 1;

      if (child >= run->n_events)
        break;
      if (child + 1 < run->n_events && comes_before (&run->heap[child + 1], &run->heap[child]))
        child++;
      if (!comes_before (&run->heap[child], &last))
        break;
      run->heap[i] = run->heap[child];
      i = child;
    }
  run->heap[i] = last;
  return first;
}

/* --- what is ready --- */

static inline gboolean
is_empty (const Ready *queue)
{
  return queue->head == queue->tail;
}

static Ready *
queue_of (Replay *run, guint32 number)
{
  const PtoReplayRun *recorded = &run->replay->runs[number];
  guint8 priority = run->replay->tasks[recorded->task].priority;

  return priority == 0 ? &run->ready[recorded->type] : &run->urgent[recorded->type][priority - 1];
}

static void
push_ready (Replay *run, guint32 number)
{
  Ready *queue = queue_of (run, number);

  queue->items[queue->tail++] = number;
}

/* The one to be served next, of those above a priority; NULL: there is none. */
static Ready *
find_urgent (Replay *run, guint32 type, guint8 above)
{
  for (guint p = PTO_MAX_PRIORITY; p > above; p--)
    if ((run->replay->priorities >> p & 1) != 0 && !is_empty (&run->urgent[type][p - 1]))
      return &run->urgent[type][p - 1];
  return NULL;
}

static inline Ready *
find_ready (Replay *run, guint32 type)
{
  Ready *urgent = run->replay->priorities > 1 ? find_urgent (run, type, 0) : NULL;

  if (urgent != NULL)
    return urgent;
  return is_empty (&run->ready[type]) ? NULL : &run->ready[type];
}

static void
wake (Replay *run, guint s)
{
  Scheduler *scheduler = &run->schedulers[s];

  if (scheduler->is_awake)
    {
      scheduler->is_rung = TRUE;
      return;
    }
  scheduler->is_awake = TRUE;
  push_event (run, run->now, 1 + s);
}

static void
wake_all (Replay *run, guint64 rung)
{
  for (; rung != 0; rung &= rung - 1)
    wake (run, (guint) __builtin_ctzll (rung));
}

/* For what is ready somebody comes who has a free core for it: in turn, so that work goes round. */
static void
ring (Replay *run, guint32 type)
{
  guint n = run->settings->schedulers;

  if (find_ready (run, type) == NULL)
    return;
  for (guint i = 0; i < n; i++)
    {
      guint s = run->turn + i < n ? run->turn + i : run->turn + i - n;

      if (!run->schedulers[s].is_awake && !pto_replay_queue_is_empty (&run->places.idle[s][type]))
        {
          run->turn = s + 1 < n ? s + 1 : 0;
          wake (run, s);
          return;
        }
    }
}

/* --- turns of tasks that commute --- */

/* FALSE: others are before it. */
static gboolean
enter_turn (Replay *run, guint32 position)
{
  const PtoReplay *replay = run->replay;

  run->missing[position] = 0;
  for (guint32 k = replay->tasks[position].first_claim; k < replay->tasks[position + 1].first_claim;
       k++)
    {
      guint32 *last = &run->last[replay->claims[2 * k + 1]];

      run->behind[k] = PTO_REPLAY_NONE;
      if (*last != PTO_REPLAY_NONE)
        {
          run->behind[*last] = k;
          run->missing[position]++;
        }
      *last = k;
    }
  return run->missing[position] == 0;
}

static void push_task (Replay *run, guint32 position);

static void
leave_turn (Replay *run, guint32 position)
{
  const PtoReplay *replay = run->replay;

  for (guint32 k = replay->tasks[position].first_claim; k < replay->tasks[position + 1].first_claim;
       k++)
    if (run->behind[k] == PTO_REPLAY_NONE)
      run->last[replay->claims[2 * k + 1]] = PTO_REPLAY_NONE;
  for (guint32 k = replay->tasks[position].first_claim; k < replay->tasks[position + 1].first_claim;
       k++)
    if (run->behind[k] != PTO_REPLAY_NONE
        && --run->missing[replay->claims[2 * run->behind[k]]] == 0)
      push_task (run, replay->claims[2 * run->behind[k]]);
}

/* --- tasks --- */

/* To its queue, or into the line. */
static void
push_task (Replay *run, guint32 position)
{
  const PtoReplayTask *task = &run->replay->tasks[position];

  if ((task->flags & PTO_REPLAY_PARTS) != 0 && run->replay->parts[task->parts].n_members > 0)
    wake_all (run, pto_replay_line_enter (&run->places, position));
  else
    push_ready (run, task->first_run);
}

/* All of its producers are over. Gives its only run, if that fits a core of that type and nobody
 * took it before; otherwise it is queued. */
static guint32
make_ready (Replay *run, guint32 position, guint32 type)
{
  const PtoReplayTask *task = &run->replay->tasks[position];

  if ((task->flags & PTO_REPLAY_CLAIMS) != 0)
    {
      if (!enter_turn (run, position))
        return IDLE;
      /* Whoever asks for its turn does not know for which type to ring. */
      push_task (run, position);
      ring (run, run->replay->runs[task->first_run].type);
      return IDLE;
    }
  else if ((task->flags & PTO_REPLAY_PARTS) == 0 && run->replay->runs[task->first_run].type == type)
    return task->first_run;
  push_task (run, position);
  return IDLE;
}

/* A task is over. Who waits for it is told in the order of the list that the engine has: who came
 * last goes first. Gives a run that follows on a core of that type; those that only order are put
 * aside. */
static guint32
complete (Replay *run, guint32 position, guint32 type, guint64 *n_released)
{
  const PtoReplayTask *task = &run->replay->tasks[position];
  guint32 next = IDLE;

  run->is_over[position] = TRUE;
  run->n_over++;
  for (guint32 k = run->replay->tasks[position + 1].first_out; k-- > task->first_out;)
    {
      guint32 consumer = run->replay->out[k];
      guint32 found = IDLE;

      run->waits[consumer]--;
      /* Later submits find it over. */
      if (consumer >= run->next)
        continue;
      ++*n_released;
      if (run->waits[consumer] > 0)
        continue;
      if (run->replay->tasks[consumer].n_runs == 0)
        run->passing[run->n_passing++] = consumer;
      else
        found = make_ready (run, consumer, next == IDLE ? type : IDLE);
      if (found != IDLE)
        next = found;
    }
  if ((task->flags & PTO_REPLAY_CLAIMS) != 0)
    leave_turn (run, position);
  if ((task->flags & PTO_REPLAY_PARTS) != 0 && run->places.line != NULL)
    pto_replay_line_complete (&run->places, position);
  return next;
}

/* The same with those that only order, and those that follow and are off. */
static guint32
settle (Replay *run, guint32 position, guint32 type, guint64 *n_released)
{
  guint32 next = IDLE;

  for (;;)
    {
      guint32 found = complete (run, position, type, n_released);

      if (found != IDLE)
        {
          position = run->replay->runs[found].task;
          if ((run->replay->tasks[position].flags & PTO_REPLAY_OFF) != 0)
            continue;
          if (next == IDLE)
            next = found;
          else
            push_ready (run, found);
        }
      if (run->n_passing == 0)
        break;
      position = run->passing[--run->n_passing];
    }
  return next;
}

/* Does somebody wait for a core of that type who goes before it? */
static gboolean
is_outranked (Replay *run, guint32 number)
{
  const PtoReplayRun *recorded = &run->replay->runs[number];

  return run->replay->priorities > 1
         && find_urgent (run, recorded->type, run->replay->tasks[recorded->task].priority) != NULL;
}

/* --- the submitter --- */

/* Over, with all who use what it made. */
static gboolean
is_done (const Replay *run, guint32 position)
{
  const PtoReplayTask *task = &run->replay->tasks[position];

  if (!run->is_over[position])
    return FALSE;
  for (guint32 k = task->first_user; k < run->replay->tasks[position + 1].first_user; k++)
    if (run->replay->users[k] < run->next && !run->is_over[run->replay->users[k]])
      return FALSE;
  return TRUE;
}

/* Does an open scope hold it? */
static gboolean
is_held (const Replay *run, guint32 position)
{
  guint32 scope = run->replay->tasks[position].scope;

  return scope > 0 && run->replay->scope_ends[scope - 1] > run->next;
}

/* Is there a slot in a ring? Those that can be had are taken back, oldest first; if there is none,
 * the submitter waits for a quarter of the ring, or for as many as no open scope holds. */
static gboolean
has_room (Replay *run, guint32 ring)
{
  Ready *live = &run->live[ring];
  guint32 window = run->settings->windows[ring];

  if (window == PTO_REPLAY_UNLIMITED || live->tail - live->head < window - 1)
    return TRUE;
  if (run->is_waiting
      && !(is_done (run, live->items[run->target]) && is_done (run, live->items[live->head])))
    return FALSE;
  for (guint head = live->head;; live->head++)
    if (live->head == live->tail || is_held (run, live->items[live->head])
        || !is_done (run, live->items[live->head]))
      {
        if (live->head > head)
          return TRUE;
        break;
      }
  for (run->target = live->head; run->target + 1 < live->tail
                                 && run->target + 1 - live->head < window / 4
                                 && !is_held (run, live->items[run->target + 1]);)
    run->target++;
  return FALSE;
}

/* Clusters that it has, or lets go of, before the next submit. FALSE: it waits for one. */
static gboolean
hold_clusters (Replay *run)
{
  const PtoReplay *replay = run->replay;

  while (run->next_hold < replay->n_holds && replay->holds[run->next_hold].before <= run->next)
    {
      const PtoReplayHold *hold = &replay->holds[run->next_hold];

      if (!hold->held)
        pto_replay_line_let_go (&run->places, hold->hold);
      else if (!pto_replay_line_hold (&run->places, hold->hold))
        {
          if (!run->is_waiting)
            run->waits_since = run->now;
          run->is_waiting = run->waits_for_cluster = TRUE;
          return FALSE;
        }
      else if (run->is_waiting)
        {
          run->result->awaited += run->now - run->waits_since;
          run->result->awaited_what = PTO_STALL_COHORT << 8;
          run->is_waiting = run->waits_for_cluster = FALSE;
        }
      run->next_hold++;
    }
  return TRUE;
}

static void
submit (Replay *run)
{
  const PtoReplay *replay = run->replay;

  while (run->next < replay->n_tasks)
    {
      const PtoReplayTask *task = &replay->tasks[run->next];
      guint32 position = run->next;
      guint64 released = 0;
      gboolean waits_for_task;

      if (G_UNLIKELY ((task->flags & PTO_REPLAY_LEFT_OUT) != 0))
        {
          run->is_over[run->next++] = TRUE;
          run->n_over++;
          continue;
        }
      if (run->next_hold < replay->n_holds && !run->is_charged && !hold_clusters (run))
        return;
      if (!run->is_charged)
        {
          run->is_charged = TRUE;
          run->result->submitter += task->gap;
          if (task->gap > 0)
            {
              push_event (run, run->now + task->gap, 0);
              return;
            }
        }
      waits_for_task = task->awaits != PTO_TRACE_NOWHERE && !run->is_over[task->awaits];
      if (waits_for_task || !has_room (run, task->ring))
        {
          if (!run->is_waiting)
            run->waits_since = run->now;
          run->is_waiting = TRUE;
          return;
        }
      if (run->is_waiting)
        {
          if (task->awaits != PTO_TRACE_NOWHERE)
            {
              run->result->awaited += run->now - run->waits_since;
              run->result->awaited_what = task->what;
            }
          else
            run->result->stalled[task->ring] += run->now - run->waits_since;
        }
      run->is_waiting = run->is_charged = FALSE;
      run->live[task->ring].items[run->live[task->ring].tail++] = position;
      run->next++;
      if ((task->flags & PTO_REPLAY_PARTS) != 0 && run->places.line != NULL)
        pto_replay_line_submit (&run->places, position);
      if (run->waits[position] > 0)
        continue;
      if (task->n_runs == 0)
        settle (run, position, IDLE, &released);
      else
        {
          make_ready (run, position, IDLE);
          ring (run, replay->runs[task->first_run].type);
        }
    }
}

static void
tell_submitter (Replay *run)
{
  if (run->is_waiting)
    submit (run);
}

/* --- schedulers and cores --- */

/* Goes on at that time. */
static void
go_on (Replay *run, guint s, Step step, guint64 after)
{
  run->schedulers[s].step = step;
  run->schedulers[s].busy += after;
  push_event (run, run->now + after, 1 + s);
}

static void
push_end (Replay *run, guint64 time, guint32 core)
{
  push_event (run, MAX (time, run->now) + run->replay->finish,
              1 + run->settings->schedulers + core);
}

/* A run that meets others has begun: when all of them have, it is known how long those wait. */
static void
meet (Replay *run, guint32 number, guint32 core)
{
  const PtoReplay *replay = run->replay;
  gboolean waits = FALSE;

  run->began[number] = run->now + replay->start;
  run->began_on[number] = core;
  for (guint32 i = replay->first_meet[number]; i < replay->first_meet[number + 1]; i++)
    {
      const PtoReplayMeet *own = &replay->meets[replay->run_meets[i]];
      const PtoReplayMeeting *meeting = &replay->meetings[own->meeting];

      waits = waits || own->waits;
      if (--run->absent[own->meeting] > 0)
        continue;
      for (guint32 k = meeting->first; k < meeting->first + meeting->n; k++)
        {
          const PtoReplayMeet *other = &replay->meets[k];
          guint64 begin = run->began[other->run];
          guint64 later = run->began[number] - begin + other->waited;

          if (other->waits)
            push_end (run, begin + run->run_ns[other->run] + later - MIN (later, other->before),
                      run->began_on[other->run]);
        }
    }
  if (!waits)
    push_end (run, run->began[number] + run->run_ns[number], core);
}

static void
begin (Replay *run, const Scheduler *scheduler)
{
  const PtoReplay *replay = run->replay;

  run->places.core_run[scheduler->core] = scheduler->run;
  if (G_UNLIKELY (replay->n_meetings > 0)
      && replay->first_meet[scheduler->run] < replay->first_meet[scheduler->run + 1])
    meet (run, scheduler->run, scheduler->core);
  else
    push_event (run, run->now + replay->start + run->run_ns[scheduler->run] + replay->finish,
                1 + run->settings->schedulers + scheduler->core);
}

/* It runs there next. Blocks that nobody has had yet go to the end of the queue. */
static void
start (Replay *run, guint s, guint32 number, guint32 core, guint64 after)
{
  Scheduler *scheduler = &run->schedulers[s];
  const PtoReplayTask *task = &run->replay->tasks[run->replay->runs[number].task];

  scheduler->run = number;
  scheduler->core = core;
  if (G_UNLIKELY ((task->flags & PTO_REPLAY_PARTS) != 0)
      && run->replay->parts[task->parts].n_members == 0
      && number + 1 < task->first_run + task->n_runs)
    push_ready (run, number + 1);
  go_on (run, s, BEGINS, after + run->replay->dispatch);
}

/* The core that has signalled is looked at: what follows runs there, or it is idle. */
static void
finish (Replay *run, guint s)
{
  Scheduler *scheduler = &run->schedulers[s];
  guint32 core = scheduler->core;
  guint32 position = run->replay->runs[run->places.core_run[core]].task;
  guint64 released = 0;
  guint32 next = IDLE;

  run->places.core_run[core] = IDLE;
  if (G_UNLIKELY ((run->replay->tasks[position].flags & PTO_REPLAY_PARTS) != 0)
      && run->replay->parts[run->replay->tasks[position].parts].n_members > 0)
    pto_replay_line_leave (&run->places, core);
  if (--run->runs_left[position] == 0)
    {
      next = settle (run, position, run->places.core_type[core], &released);
      tell_submitter (run);
    }
  if (next != IDLE
      && (is_outranked (run, next) || scheduler->run_through++ >= RUN_THROUGH_MAX
          || scheduler->is_called))
    {
      scheduler->later = next;
      next = IDLE;
    }
  released *= run->replay->fanout;
  if (next != IDLE)
    start (run, s, next, core, released);
  else
    {
      pto_replay_push_idle (&run->places, core);
      go_on (run, s, LOOKS, released);
    }
}

/* The next core that has signalled, of those that had when their word was looked at. */
static gboolean
take_signal (Replay *run, guint s)
{
  Scheduler *scheduler = &run->schedulers[s];

  while (scheduler->taken == 0)
    {
      if (scheduler->word == scheduler->n_words)
        return FALSE;
      scheduler->taken = scheduler->signals[scheduler->word];
      scheduler->signals[scheduler->word++] = 0;
    }
  scheduler->core = run->places.first[s] + (scheduler->word - 1) * 64
                    + (guint32) __builtin_ctzll (scheduler->taken);
  scheduler->taken &= scheduler->taken - 1;
  return TRUE;
}

/* A ready run for one of its cores. FALSE: there is none. */
static gboolean
dispatch (Replay *run, guint s)
{
  Scheduler *scheduler = &run->schedulers[s];

  for (; scheduler->type < PTO_N_CORE_TYPES; scheduler->type++)
    {
      guint32 type = scheduler->type;
      PtoReplayQueue *idle = &run->places.idle[s][type];
      Ready *queue = pto_replay_queue_is_empty (idle) ? NULL : find_ready (run, type);
      guint64 released = 0;
      guint32 next;

      if (queue == NULL)
        continue;
      scheduler->run_through = 0;
      next = queue->items[queue->head++];
      if ((run->replay->tasks[run->replay->runs[next].task].flags & PTO_REPLAY_OFF) != 0)
        {
          next = settle (run, run->replay->runs[next].task, type, &released);
          tell_submitter (run);
        }
      released *= run->replay->fanout;
      if (next != IDLE && is_outranked (run, next))
        {
          scheduler->later = next;
          next = IDLE;
        }
      if (next != IDLE)
        start (run, s, next, pto_replay_pop_idle (&run->places, idle), released);
      else
        go_on (run, s, LOOKS, released);
      return TRUE;
    }
  return FALSE;
}

/* Those that wait for several cores. */
static void
answer_call (Replay *run, guint s, gboolean patient)
{
  Scheduler *scheduler = &run->schedulers[s];

  scheduler->is_called = pto_replay_line_calls (&run->places, s);
  if (scheduler->is_called)
    wake_all (run, pto_replay_line_look (&run->places, s, patient));
}

/* The next one that got its core. FALSE: that was all. */
static gboolean
begin_granted (Replay *run, guint s)
{
  guint32 core, number;

  while (pto_replay_line_take (&run->places, s, &core, &number))
    {
      run->schedulers[s].has_done = TRUE;
      if (number == IDLE)
        {
          pto_replay_push_idle (&run->places, core);
          continue;
        }
      start (run, s, number, core, 0);
      return TRUE;
    }
  return FALSE;
}

static gboolean
has_ready (Replay *run)
{
  for (guint32 type = 0; type < PTO_N_CORE_TYPES; type++)
    if (find_ready (run, type) != NULL)
      return TRUE;
  return FALSE;
}

static void
begin_pass (Scheduler *scheduler)
{
  scheduler->phase = COLLECTS;
  scheduler->word = scheduler->type = 0;
  scheduler->is_rung = scheduler->has_done = scheduler->is_again = FALSE;
}

/* In passes. */
static void
schedule (Replay *run, guint s)
{
  Scheduler *scheduler = &run->schedulers[s];

  if (scheduler->step == POLLS)
    {
      finish (run, s);
      return;
    }
  if (scheduler->step == BEGINS)
    begin (run, scheduler);
  if (scheduler->later != IDLE)
    push_ready (run, scheduler->later);
  scheduler->later = IDLE;
  scheduler->step = LOOKS;
  for (;;)
    switch (scheduler->phase)
      {
      case COLLECTS:
        if (take_signal (run, s))
          {
            scheduler->has_done = TRUE;
            go_on (run, s, POLLS, run->replay->poll);
            return;
          }
        scheduler->phase = run->places.line != NULL ? CALLED : DISPATCHES;
        break;
      case CALLED:
        scheduler->is_patient = pto_replay_line_calls (&run->places, s) && has_ready (run);
        answer_call (run, s, scheduler->is_patient);
        scheduler->phase = GRANTS;
        break;
      case CALLED_AGAIN:
        /* Who was impatient before has seen all that there is. */
        if (scheduler->is_patient || !scheduler->is_called)
          answer_call (run, s, FALSE);
        scheduler->is_again = TRUE;
        scheduler->phase = GRANTS;
        break;
      case GRANTS:
        if (begin_granted (run, s))
          return;
        scheduler->phase = scheduler->is_again ? RINGS : DISPATCHES;
        break;
      case DISPATCHES:
        if (dispatch (run, s))
          {
            scheduler->has_done = TRUE;
            return;
          }
        scheduler->phase = run->places.line != NULL ? CALLED_AGAIN : RINGS;
        break;
      case RINGS:
        for (guint32 type = 0; type < PTO_N_CORE_TYPES; type++)
          ring (run, type);
        if (!scheduler->has_done && !scheduler->is_rung)
          {
            begin_pass (scheduler);
            scheduler->is_awake = FALSE;
            return;
          }
        begin_pass (scheduler);
        break;
      }
}

static void
end_run (Replay *run, guint32 core)
{
  guint s = run->places.core_scheduler[core];
  guint32 index = core - run->places.first[s];

  run->result->makespan = MAX (run->result->makespan, run->now - run->replay->finish);
  run->schedulers[s].signals[index / 64] |= G_GUINT64_CONSTANT (1) << (index % 64);
  wake (run, s);
}

/* --- all of it --- */

/* How long what runs takes now, the longest chain of that, and what each type of core has to do. */
static void
weigh (Replay *run, PtoTrace *trace)
{
  const PtoReplay *replay = run->replay;
  g_autofree guint64 *ends = g_new0 (guint64, replay->n_tasks);
  guint n_cores[PTO_N_CORE_TYPES];

  pto_replay_count_cores (trace, run->settings->clusters, n_cores);
  for (guint i = 0; i < replay->n_runs; i++)
    {
      const PtoReplayRun *recorded = &replay->runs[i];
      guint64 time = recorded->ns;

      if ((replay->tasks[recorded->task].flags & PTO_REPLAY_LEFT_OUT) != 0)
        {
          run->run_ns[i] = 0;
          continue;
        }

      if (recorded->kernel < replay->n_kernels)
        time = run->settings->times[recorded->kernel] != PTO_TRACE_NEVER
                   ? run->settings->times[recorded->kernel]
                   : (guint64) ((double) time * run->settings->factors[recorded->kernel] + 0.5);
      run->run_ns[i] = time + recorded->waited;
      run->result->work[recorded->type] += time;
    }
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    run->result->work[t] /= MAX (n_cores[t], 1);
  /* Producers are submitted before. */
  for (guint i = 0; i < replay->n_tasks; i++)
    {
      guint64 longest = 0;

      for (guint k = 0; k < replay->tasks[i].n_runs; k++)
        longest = MAX (longest, run->run_ns[replay->tasks[i].first_run + k]);
      ends[i] += longest;
      run->result->critical_path = MAX (run->result->critical_path, ends[i]);
      for (guint32 k = replay->tasks[i].first_out; k < replay->tasks[i + 1].first_out; k++)
        if (replay->out[k] > i)
          ends[replay->out[k]] = MAX (ends[replay->out[k]], ends[i]);
    }
}

static void
prepare (Replay *run)
{
  const PtoReplay *replay = run->replay;
  guint n_schedulers = run->settings->schedulers;
  guint n_tasks = replay->n_tasks;

  run->schedulers = g_new0 (Scheduler, n_schedulers);
  for (guint s = 0; s < n_schedulers; s++)
    {
      Scheduler *scheduler = &run->schedulers[s];

      scheduler->run = scheduler->later = IDLE;
      scheduler->n_words = (run->places.first[s + 1] - run->places.first[s] + 63) / 64;
      scheduler->signals = g_new0 (guint64, MAX (scheduler->n_words, 1));
    }
  run->heap = g_new (Event, (gsize) run->places.n_cores + n_schedulers + 4);
  run->waits = g_new (guint32, n_tasks);
  run->runs_left = g_new (guint32, n_tasks);
  run->is_over = g_new0 (guint8, n_tasks);
  run->passing = g_new (guint32, n_tasks);
  run->run_ns = g_new (guint64, MAX (replay->n_runs, 1));
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    {
      run->ready[t].items = g_new (guint32, MAX (replay->n_runs, 1));
      for (guint p = 1; p <= PTO_MAX_PRIORITY; p++)
        if ((replay->priorities >> p & 1) != 0)
          run->urgent[t][p - 1].items = g_new (guint32, MAX (replay->n_runs, 1));
    }
  for (guint r = 0; r < PTO_RINGS; r++)
    run->live[r].items = g_new (guint32, n_tasks);
  for (guint i = 0; i < n_tasks; i++)
    {
      run->waits[i] = replay->tasks[i].n_producers;
      run->runs_left[i] = replay->tasks[i].n_runs;
    }
  if (replay->n_claims > 0)
    {
      run->behind = g_new (guint32, replay->n_claims);
      run->last = g_new (guint32, replay->n_tokens);
      run->missing = g_new (guint32, n_tasks);
      memset (run->last, 0xff, replay->n_tokens * sizeof *run->last);
    }
  if (replay->n_meetings > 0)
    {
      run->began = g_new0 (guint64, replay->n_runs);
      run->began_on = g_new (guint32, replay->n_runs);
      run->absent = g_new (guint32, replay->n_meetings);
      for (guint m = 0; m < replay->n_meetings; m++)
        run->absent[m] = replay->meetings[m].n;
    }
}

static void
clear (Replay *run)
{
  for (guint s = 0; s < run->settings->schedulers; s++)
    {
      run->result->scheduler = MAX (run->result->scheduler, run->schedulers[s].busy);
      g_free (run->schedulers[s].signals);
    }
  for (guint t = 0; t < PTO_N_CORE_TYPES; t++)
    {
      g_free (run->ready[t].items);
      for (guint p = 0; p < PTO_MAX_PRIORITY; p++)
        g_free (run->urgent[t][p].items);
    }
  for (guint r = 0; r < PTO_RINGS; r++)
    g_free (run->live[r].items);
  g_free (run->schedulers);
  g_free (run->heap);
  g_free (run->waits);
  g_free (run->runs_left);
  g_free (run->is_over);
  g_free (run->passing);
  g_free (run->run_ns);
  g_free (run->behind);
  g_free (run->last);
  g_free (run->missing);
  g_free (run->began);
  g_free (run->began_on);
  g_free (run->absent);
}

static void
replay_graph (const PtoReplay *replay, PtoTrace *trace, const PtoReplaySettings *settings,
              PtoReplayResult *result)
{
  Replay run = { .replay = replay, .settings = settings, .result = result };

  *result = (PtoReplayResult){ 0 };
  pto_replay_places_init (&run.places, replay, trace, settings);
  if (run.places.line != NULL && !pto_replay_line_admits (&run.places))
    {
      result->end = PTO_REPLAY_NO_CORES;
      pto_replay_places_clear (&run.places);
      return;
    }
  prepare (&run);
  weigh (&run, trace);

  push_event (&run, 0, 0);
  while (run.n_events > 0)
    {
      Event event = pop_event (&run);

      run.now = event.time;
      if (event.actor == 0)
        submit (&run);
      else if (event.actor <= settings->schedulers)
        schedule (&run, event.actor - 1);
      else
        end_run (&run, event.actor - 1 - settings->schedulers);
    }
  if (run.next < replay->n_tasks)
    {
      result->end = run.waits_for_cluster ? PTO_REPLAY_NO_CLUSTERS : PTO_REPLAY_NO_ROOM;
      result->stuck_ring = replay->tasks[run.next].ring;
    }
  else if (run.n_over < replay->n_tasks)
    result->end = PTO_REPLAY_NO_CORES;
  clear (&run);
  pto_replay_places_clear (&run.places);
}

void
pto_replay_run (const PtoReplay *replay, PtoTrace *trace, const PtoReplaySettings *settings,
                PtoReplayResult *result)
{
  guint n_cores[PTO_N_CORE_TYPES];
  guint n_recorded[PTO_N_CORE_TYPES];
  PtoReplay *derived;

  pto_replay_count_cores (trace, settings->clusters, n_cores);
  pto_replay_count_cores (trace, trace->topology.n_clusters, n_recorded);
  derived = pto_replay_sets_derive (replay, n_cores, n_recorded);
  replay_graph (derived != NULL ? derived : replay, trace, settings, result);
  if (derived != NULL)
    pto_replay_sets_free_derived (derived);
}
