/* pool.c: which child gets which task, and what follows when a child answers or dies?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A seat is in the list of its class (any child will do), or in the lists of the children that its
 * members are meant for, or all of its members are posted. Lists of children are filled by the
 * carrier alone, a group's all at once: any two of them hold their common seats in one order, so
 * two groups never wait for each other. A child that is idle and has an empty list takes from its
 * class's; one with a list serves that first, so nobody starves.
 *
 * Seats are few, and tasks that wait for one worker may be many. So each crowd, those that wait for
 * the same, has its share of seats; who comes when that is taken stands behind without a seat, and
 * goes back to the ready queue when a seat of the crowd is left. There is always a seat for others.
 */
#include "pool.h"

#include "../core/progress.h"
#include "../core/ready.h"
#include "../exec/pto_atomic.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEATS_MIN 64u
#define SEATS_A_CHILD 4u
#define WORDS (PTO_CHILDREN_MAX / 64)
/* A child that registers what is not wanted any more, and hears of it only when it is done. */
#define CONTROL_NS (30 * MS)
#define US UINT64_C (1000)
#define MS UINT64_C (1000000)

/* One task, and which of its members: what stands in a child's list. */
struct entry
{
  uint16_t seat;
  uint16_t member;
};

/* First in, first out; every seat at most once, so that it can not be full. */
struct list
{
  struct entry *entries;
  uint32_t head; /* free running: next to leave */
  uint32_t tail;
};

/* What a child has to do. */
struct work
{
  struct pto_seat *seat;       /* TASK: whose member it runs */
  uint32_t member;             /* of them */
  uint64_t posted;             /* a recorded one: when, as the trace counts */
  struct pto_control *control; /* REGISTER, UNREGISTER, CLOSE, TRACE: of whom */
  struct list tasks;           /* that wait for this child */
};

/* Children that can stand in for each other. */
struct class
{
  enum pto_child_kind kind;
  uint32_t level;
  uint32_t n_children;
  uint32_t n_gone;
  uint16_t children[PTO_CHILDREN_MAX]; /* indices, ascending numbers */
  uint64_t free[WORDS];                /* bits by index: idle, and nothing waits for it */
  struct list tasks;                   /* for any of them */
};

/* Tasks that wait for the same: a child, any of a class, several of a class. */
struct crowd
{
  uint32_t waiting;       /* seats that wait, and tasks that have been called for one */
  struct pto_slot *first; /* without a seat, oldest first; NULL: none */
  struct pto_slot *last;
};

struct pto_seat
{
  struct pto_endpoint endpoint; /* first */
  struct pto_pool *pool;
  struct pto_slot *slot;
  const struct pto_level_task *task;
  struct class *class;
  struct crowd *crowd;
  uint32_t left; /* members that have not ended; 0: the task is done, or there is none */
  bool waits;    /* is one of its crowd's */
  bool posted;   /* its members run */
  bool parked;   /* the task stands behind without a seat, this one is free */
  bool failed;
};

struct pto_pool
{
  struct pto_engine *engine;
  struct pto_exec *exec;
  /* Of children that are actors of exec as well; NULL: they are processes, or threads of their own.
   */
  struct pto_exec *peers;
  struct pto_pool_config config;

  /* --- immutable --- */
  uint32_t n_classes;
  struct class *classes;
  uint16_t *class_of;                   /* of each child */
  uint16_t *numbers[PTO_N_CHILD_KINDS]; /* index of each worker */
  uint32_t n_numbers[PTO_N_CHILD_KINDS];
  uint32_t n_seats;
  uint32_t n_crowds;
  uint32_t share; /* of a crowd: seats that wait */
  uint32_t mask;  /* of lists */
  struct pto_seat *seats;
  struct pto_endpoint **endpoints;
  struct entry *entries;

  /* --- the carrier's --- */
  struct work *works;   /* of each child */
  uint32_t n_under_way; /* children whose answer, or end, is awaited */
  uint64_t time;        /* sum of the ticks */
  uint64_t cancel_seen; /* what has been acted upon */
  enum pto_pace pace;
  struct pto_control *controls; /* not done, oldest first; a reference each */
  bool closing;
  struct pto_trace_buffer *dispatches; /* of a run that is recorded; NULL: it is not */
  struct pto_trace_buffer *runs;       /* of each child */
  uint32_t record;                     /* what the children are told; 0: nothing is recorded */
  struct crowd *crowds; /* of each child; then for each class of any, and of groups */
  uint32_t run;         /* number of the run that they are of */
  struct pto_first_failure first;

  /* --- between threads --- */
  /* Newest control request. W: anybody by compare-exchange, release; R: the pump, exchange acquire.
   */
  alignas (64) _Atomic (struct pto_control *) incoming;
  /* Number of the run << 32 | patience in us + 1; without patience: the run goes on. W: anybody by
   * compare-exchange, the guest between runs; R: carrier, anybody. Relaxed: it says nothing of
   * other memory; the ring behind it, and the ready queue behind a run's begin, bring it along. */
  _Atomic uint64_t cancel;
  /* ns not yet added to time. W: ticks by addition, the pump by exchange. */
  _Atomic uint64_t ticked;
  _Atomic uint32_t stop;
  /* W: carrier, the guest that begins a child again; R: the guest. Relaxed: all are inside of the
   * executor, whose token orders them. */
  _Atomic uint32_t starting;
  /* Index + 1 of the first child that could not start; 0: none. As starting; W: carrier. */
  _Atomic uint32_t start_failed;
  /* Children that are LOST: a hint; who begins one before it is counted lets it wrap for a moment.
   * W: carrier adds, guest subtracts; R: anybody. */
  _Atomic uint32_t n_lost;
  uint32_t restarts; /* the guest's */
  struct pto_word news;
};

static void feed (struct pto_pool *pool, struct pto_child *child);

static void
copy_text (char *to, size_t size, const char *from)
{
  snprintf (to, size, "%s", from != NULL ? from : "?");
}

/* --- lists --- */

static bool
list_is_empty (const struct list *list)
{
  return list->head == list->tail;
}

static uint32_t
list_length (const struct list *list)
{
  return list->tail - list->head;
}

static void
list_push (const struct pto_pool *pool, struct list *list, uint32_t seat, uint32_t member)
{
  list->entries[list->tail++ & pool->mask]
      = (struct entry){ .seat = (uint16_t) seat, .member = (uint16_t) member };
}

static struct entry
list_first (const struct pto_pool *pool, const struct list *list)
{
  return list->entries[list->head & pool->mask];
}

static void
list_remove (const struct pto_pool *pool, struct list *list, uint32_t seat)
{
  uint32_t to = list->head;

  for (uint32_t from = list->head; from != list->tail; from++)
    if (list->entries[from & pool->mask].seat != seat)
      list->entries[to++ & pool->mask] = list->entries[from & pool->mask];
  list->tail = to;
}

static uint32_t
seat_number (const struct pto_pool *pool, const struct pto_seat *seat)
{
  return (uint32_t) (seat - pool->seats);
}

/* --- children --- */

static struct class *
class_of (const struct pto_pool *pool, const struct pto_child *child)
{
  return &pool->classes[pool->class_of[child->index]];
}

static bool
has_bit (const uint64_t *bits, uint32_t index)
{
  return (bits[index / 64] >> (index % 64) & 1) != 0;
}

static void
set_bit (uint64_t *bits, uint32_t index, bool value)
{
  uint64_t bit = UINT64_C (1) << (index % 64);

  bits[index / 64] = value ? bits[index / 64] | bit : bits[index / 64] & ~bit;
}

static struct work *
work_of (const struct pto_pool *pool, const struct pto_child *child)
{
  return &pool->works[child->index];
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
count_under_way (struct pto_pool *pool, struct pto_child *child)
{
  set_bit (class_of (pool, child)->free, child->index, false);
  if (pool->n_under_way++ == 0)
    set_pace (pool, PTO_PACE_SLOW);
}

static void
begin_request (struct pto_pool *pool, struct pto_child *child, enum pto_request request)
{
  pto_child_ask (child, request, pool->time);
  count_under_way (pool, child);
}

/* What it was asked is over; it may be under way to its end. */
static void
end_request (struct pto_pool *pool, struct pto_child *child)
{
  struct work *work = work_of (pool, child);

  work->seat = NULL;
  work->control = NULL;
  if (!pto_child_is_under_way (child) && --pool->n_under_way == 0)
    set_pace (pool, PTO_PACE_IDLE);
}

/* Asks for an end of what the child does. */
static void
cancel_child (struct pto_pool *pool, struct pto_child *child, uint64_t patience)
{
  pto_child_cancel (child, patience);
  if (pto_child_life (child) == PTO_LIFE_ASKED)
    set_pace (pool, PTO_PACE_FAST);
}

/* --- crowds --- */

static struct pto_child *
find_worker (const struct pto_pool *pool, uint32_t kind, uint32_t number)
{
  return &pool->config.children[pool->numbers[kind][number]];
}

static struct pto_level_task *
own_task (struct pto_slot *slot)
{
  return slot->payload->extra;
}

/* A group that names a worker waits for that one among others. */
static struct crowd *
find_crowd (const struct pto_pool *pool, const struct pto_seat *seat)
{
  const struct pto_level_task *task = seat->task;
  const struct pto_member *members = pto_level_task_members (task);
  uint32_t class = (uint32_t) (seat->class - pool->classes);

  for (uint32_t m = 0; m < task->n_members; m++)
    if (members[m].worker != PTO_WORKER_ANY)
      return &pool->crowds[find_worker (pool, task->kind, members[m].worker)->index];
  return &pool->crowds[pool->config.n_children + 2 * class + (task->n_members > 1)];
}

static void
call_back (struct pto_pool *pool, struct crowd *crowd)
{
  struct pto_slot *slot = crowd->first;

  crowd->first = own_task (slot)->behind;
  own_task (slot)->called = true;
  crowd->waiting++;
  pto_engine_push_ready (pool->engine, slot, 0);
  pto_engine_wake (pool->engine, pool->seats[0].endpoint.scheduler->config.index);
}

static void
begin_to_wait (struct pto_seat *seat)
{
  seat->crowd->waiting += !seat->waits;
  seat->waits = true;
}

static void
end_to_wait (struct pto_pool *pool, struct pto_seat *seat)
{
  if (!seat->waits)
    return;
  seat->waits = false;
  seat->crowd->waiting--;
  if (seat->crowd->first != NULL && seat->crowd->waiting < pool->share)
    call_back (pool, seat->crowd);
}

/* No seat for it now? */
static bool
park (struct pto_pool *pool, struct pto_seat *seat)
{
  struct pto_level_task *task = own_task (seat->slot);
  struct crowd *crowd = seat->crowd;

  seat->waits = task->called;
  if (task->called || crowd->waiting < pool->share)
    {
      task->called = false;
      return false;
    }
  if (crowd->first == NULL)
    crowd->first = seat->slot;
  else
    own_task (crowd->last)->behind = seat->slot;
  crowd->last = seat->slot;
  return true;
}

/* --- failures --- */

/* A task fails by itself; the first of them is remembered. NULL: no child is to blame. */
static void
note_failure (struct pto_pool *pool, struct pto_seat *seat, enum pto_failure_kind kind,
              const struct pto_child *child)
{
  struct pto_first_failure *first = &pool->first;

  if (seat->failed)
    return;
  seat->failed = true;
  /* Whatever else fails a run has its own words; that its tasks were ended is none of them. */
  if (pto_pool_is_cancelled (pool) || first->roots++ > 0)
    return;
  first->task = seat->slot->id;
  first->kind = kind;
  copy_text (first->path, sizeof first->path, child->path);
  copy_text (first->name, sizeof first->name, seat->task->name);
  if (kind == PTO_FAILURE_ANSWERED)
    {
      first->status = (enum pto_status) pto_link_answer (&child->link, &first->failure);
      return;
    }
  memset (&first->failure, 0, sizeof first->failure);
  first->status = (enum pto_status) PTO_STATUS_WORKER_LOST;
  first->failure.code = PTO_STATUS_WORKER_LOST;
  child->ops->describe (child, first->failure.text, sizeof first->failure.text, first->words,
                        sizeof first->words);
  first->failure.bytes = (uint32_t) strlen (first->failure.text);
}

static void
finish_seat (struct pto_seat *seat)
{
  seat->left = 0;
  pto_scheduler_signal (seat->endpoint.scheduler, seat->endpoint.index);
}

/* A seat that waits: out of all lists, and done. */
static void
fail_waiting (struct pto_pool *pool, struct pto_seat *seat, enum pto_failure_kind kind,
              const struct pto_child *child)
{
  struct class *class = seat->class;
  uint32_t number = seat_number (pool, seat);
  uint64_t freed[WORDS] = { 0 };

  note_failure (pool, seat, kind, child);
  list_remove (pool, &class->tasks, number);
  for (uint32_t i = 0; i < class->n_children; i++)
    {
      struct pto_child *other = &pool->config.children[class->children[i]];
      struct list *tasks = &work_of (pool, other)->tasks;
      uint32_t before = list_length (tasks);

      list_remove (pool, tasks, number);
      if (list_length (tasks) != before)
        set_bit (freed, other->index, true);
    }
  end_to_wait (pool, seat);
  finish_seat (seat);
  /* It may have stood in front of others. */
  for (uint32_t i = 0; i < class->n_children; i++)
    if (has_bit (freed, class->children[i]))
      feed (pool, &pool->config.children[class->children[i]]);
}

/* A member has ended. */
static void
end_member (struct pto_pool *pool, struct pto_seat *seat)
{
  if (--seat->left == 0)
    {
      finish_seat (seat);
      return;
    }
  /* What the others do is not wanted any more; they may be waiting for this one. */
  if (seat->failed)
    for (uint32_t i = 0; i < seat->class->n_children; i++)
      {
        struct pto_child *child = &pool->config.children[seat->class->children[i]];

        if (work_of (pool, child)->seat == seat)
          cancel_child (pool, child, pool->config.group_ns);
      }
}

/* --- posting --- */

/* Writes digest and body; gives how much of it. */
static uint32_t
encode (struct pto_link *link, const struct pto_seat *seat, const struct pto_member *member)
{
  const struct pto_level_task *task = seat->task;
  const struct pto_payload *payload = seat->slot->payload;
  uint8_t *body = pto_link_body (link);
  uint32_t bytes = (uint32_t) pto_blob_size (member->n_tensors, member->n_scalars);
  uint32_t n_tensors;
  const TensorData *tensors = pto_payload_tensors (payload, &n_tensors);
  const uint8_t *access = pto_level_task_access (task) + member->first_tensor;
  struct pto_continuous_tensor *to;
  uint64_t *scalars;

  pto_blob_begin (body, member->n_tensors, member->n_scalars, &to, &scalars);
  tensors += member->first_tensor;
  for (uint32_t i = 0; i < member->n_tensors; i++, to++, tensors++)
    {
      to->data = tensors->buffer.addr
                 + tensors->start_offset * (uint64_t) pto_dtype_size (tensors->dtype);
      for (uint32_t d = 0; d < PTO2_TENSOR_MAX_DIMS; d++)
        to->shapes[d] = d < tensors->ndims ? (uint32_t) tensors->shapes[d] : 0;
      to->ndims = tensors->ndims;
      to->dtype = (uint32_t) tensors->dtype;
      to->access = access[i];
    }
  if (member->n_scalars > 0)
    memcpy (scalars, payload->args + n_tensors + member->first_scalar,
            member->n_scalars * sizeof (uint64_t));
  memcpy (pto_link_digest (link), task->digest, PTO_DIGEST_BYTES);
  if (task->kinds == NULL)
    return bytes;
  memcpy (body + bytes, pto_level_task_kinds (task) + member->first_scalar, member->n_scalars);
  return bytes + member->n_scalars;
}

/* Apart, as is record_member(): runs that are not recorded pay for a test. */
static __attribute__ ((noinline)) void
record_post (struct pto_pool *pool, struct pto_child *child, const struct pto_seat *seat,
             uint32_t member)
{
  work_of (pool, child)->posted = pto_engine_stamp (pool->engine);
  pto_trace_add (pool->dispatches, PTO_TRACE_DISPATCH, work_of (pool, child)->posted,
                 seat->slot->id, child->index, member);
}

static void
post_task (struct pto_pool *pool, struct pto_child *child, struct pto_seat *seat, uint32_t member)
{
  struct work *work = work_of (pool, child);

  struct pto_letter letter
      = { .request = PTO_REQUEST_TASK,
          .bytes = encode (&child->link, seat, &pto_level_task_members (seat->task)[member]),
          .config = &seat->task->config,
          .config_bytes = seat->task->config_bytes,
          .task = seat->slot->id,
          .record = pool->record };

  if (pool->record != 0)
    record_post (pool, child, seat, member);
  work->seat = seat;
  work->member = member;
  end_to_wait (pool, seat);
  seat->posted = true;
  begin_request (pool, child, PTO_REQUEST_TASK);
  pto_link_post (pool->peers, &child->link, &letter);
}

static void
post_control (struct pto_pool *pool, struct pto_child *child, struct pto_control *control)
{
  struct pto_letter letter
      = { .request = control->request,
          .bytes = (uint32_t) control->bytes,
          .far_body = control->far ? (uint64_t) (uintptr_t) control->body : 0 };

  set_bit (control->targets, child->index, false);
  control->outstanding++;
  work_of (pool, child)->control = control;
  memcpy (pto_link_digest (&child->link), control->digest, PTO_DIGEST_BYTES);
  if (!control->far && control->bytes > 0)
    memcpy (pto_link_body (&child->link), control->body, control->bytes);
  begin_request (pool, child, control->request);
  pto_link_post (pool->peers, &child->link, &letter);
}

/* All members of a group stand first in their lists, and their children are idle: they begin
 * together. */
static void
start_group (struct pto_pool *pool, struct pto_seat *seat)
{
  struct class *class = seat->class;
  uint32_t number = seat_number (pool, seat);
  uint32_t n = 0;

  for (uint32_t i = 0; i < class->n_children; i++)
    {
      const struct pto_child *child = &pool->config.children[class->children[i]];
      const struct list *tasks = &work_of (pool, child)->tasks;

      n += pto_child_is_idle (child) && !list_is_empty (tasks)
           && list_first (pool, tasks).seat == number;
    }
  if (n < seat->left)
    return;
  for (uint32_t i = 0; i < class->n_children; i++)
    {
      struct pto_child *child = &pool->config.children[class->children[i]];
      struct list *tasks = &work_of (pool, child)->tasks;

      if (pto_child_is_idle (child) && !list_is_empty (tasks)
          && list_first (pool, tasks).seat == number)
        {
          uint32_t member = list_first (pool, tasks).member;

          tasks->head++;
          post_task (pool, child, seat, member);
        }
    }
}

/* The child has nothing to do: control requests first, then what waits for it, then what any of its
 * class can do. */
static void
feed (struct pto_pool *pool, struct pto_child *child)
{
  struct class *class = class_of (pool, child);
  struct list *list = &work_of (pool, child)->tasks;
  bool own = !list_is_empty (list);
  struct pto_seat *seat;

  if (!pto_child_is_idle (child))
    return;
  for (struct pto_control *control = pool->controls; control != NULL; control = control->next)
    if (has_bit (control->targets, child->index))
      {
        post_control (pool, child, control);
        return;
      }
  if (!own)
    list = &class->tasks;
  /* Nothing begins any more; what waits is about to fail. */
  if (pto_pool_is_cancelled (pool) && own)
    return;
  if (list_is_empty (list) || pto_pool_is_cancelled (pool))
    {
      set_bit (class->free, child->index, true);
      return;
    }
  seat = &pool->seats[list_first (pool, list).seat];
  if (own && seat->task->n_members > 1)
    {
      set_bit (class->free, child->index, false);
      start_group (pool, seat);
      return;
    }
  list->head++;
  post_task (pool, child, seat, 0);
}

/* --- placing --- */

static struct class *
find_class (const struct pto_pool *pool, uint32_t kind, uint32_t level)
{
  for (uint32_t i = 0; i < pool->n_classes; i++)
    if (pool->classes[i].kind == kind && pool->classes[i].level == level)
      return &pool->classes[i];
  return NULL;
}

static struct pto_child *
first_free (const struct pto_pool *pool, const struct class *class)
{
  for (uint32_t word = 0; word < WORDS; word++)
    if (class->free[word] != 0)
      return &pool->config.children[word * 64 + (uint32_t) __builtin_ctzll (class->free[word])];
  return NULL;
}

/* Anybody of a class that is gone: who died first is as good as any for the message. */
static const struct pto_child *
somebody_gone (const struct pto_pool *pool, const struct class *class)
{
  for (uint32_t i = 0; i < class->n_children; i++)
    if (pto_child_life (&pool->config.children[class->children[i]]) == PTO_LIFE_GONE)
      return &pool->config.children[class->children[i]];
  return &pool->config.children[class->children[0]];
}

static void
enlist (struct pto_pool *pool, struct pto_child *child, struct pto_seat *seat, uint32_t member)
{
  set_bit (class_of (pool, child)->free, child->index, false);
  begin_to_wait (seat);
  list_push (pool, &work_of (pool, child)->tasks, seat_number (pool, seat), member);
}

/* How much stands before a new task of this child. */
static uint32_t
load_of (const struct pto_pool *pool, const struct pto_child *child)
{
  return list_length (&work_of (pool, child)->tasks) + !pto_child_is_idle (child)
         + (pto_child_is_there (child) ? 0 : PTO_ENDPOINTS_MAX);
}

/* A group takes all of its children in one step: named ones, and for the others those with the
 * shortest lists. */
static void
place_group (struct pto_pool *pool, struct pto_seat *seat)
{
  const struct pto_level_task *task = seat->task;
  const struct pto_member *members = pto_level_task_members (task);
  struct class *class = seat->class;
  struct pto_child *chosen[PTO_CHILDREN_MAX];
  uint64_t taken[WORDS] = { 0 };

  for (uint32_t m = 0; m < task->n_members; m++)
    if (members[m].worker != PTO_WORKER_ANY)
      {
        chosen[m] = find_worker (pool, task->kind, members[m].worker);
        set_bit (taken, chosen[m]->index, true);
        if (pto_child_life (chosen[m]) == PTO_LIFE_GONE)
          {
            fail_waiting (pool, seat, PTO_FAILURE_NO_WORKER, chosen[m]);
            return;
          }
      }
  for (uint32_t m = 0; m < task->n_members; m++)
    {
      struct pto_child *best = NULL;

      if (members[m].worker != PTO_WORKER_ANY)
        continue;
      for (uint32_t i = 0; i < class->n_children; i++)
        {
          struct pto_child *child = &pool->config.children[class->children[i]];

          if (pto_child_life (child) != PTO_LIFE_GONE && !has_bit (taken, child->index)
              && (best == NULL || load_of (pool, child) < load_of (pool, best)))
            best = child;
        }
      if (best == NULL)
        {
          fail_waiting (pool, seat, PTO_FAILURE_NO_WORKER, somebody_gone (pool, class));
          return;
        }
      chosen[m] = best;
      set_bit (taken, best->index, true);
    }
  for (uint32_t m = 0; m < task->n_members; m++)
    enlist (pool, chosen[m], seat, m);
  feed (pool, chosen[0]);
}

static void
place (struct pto_pool *pool, struct pto_seat *seat)
{
  const struct pto_level_task *task = seat->task;
  uint32_t worker = pto_level_task_members (task)[0].worker;
  struct pto_child *child;

  if (task->n_members > 1)
    {
      place_group (pool, seat);
      return;
    }
  if (worker != PTO_WORKER_ANY)
    {
      child = find_worker (pool, task->kind, worker);
      if (pto_child_life (child) == PTO_LIFE_GONE)
        {
          fail_waiting (pool, seat, PTO_FAILURE_NO_WORKER, child);
          return;
        }
      enlist (pool, child, seat, 0);
      feed (pool, child);
      return;
    }
  if (seat->class->n_gone == seat->class->n_children)
    {
      fail_waiting (pool, seat, PTO_FAILURE_NO_WORKER, somebody_gone (pool, seat->class));
      return;
    }
  child = first_free (pool, seat->class);
  if (child != NULL)
    post_task (pool, child, seat, 0);
  else
    {
      begin_to_wait (seat);
      list_push (pool, &seat->class->tasks, seat_number (pool, seat), 0);
    }
}

/* --- the endpoint --- */

/* Tasks of a run that has failed may be passed by on their way back. */
static void
forget_last_run (struct pto_pool *pool)
{
  uint32_t run = (uint32_t) (pto_load_relaxed (&pool->cancel) >> 32);

  if (run == pool->run)
    return;
  pool->run = run;
  memset (pool->crowds, 0, pool->n_crowds * sizeof *pool->crowds);
}

static void
seat_dispatch (struct pto_endpoint *endpoint, struct pto_slot *slot)
{
  struct pto_seat *seat = (struct pto_seat *) endpoint;
  struct pto_pool *pool = seat->pool;

  forget_last_run (pool);
  seat->slot = slot;
  seat->task = slot->payload->extra;
  seat->class = find_class (pool, seat->task->kind, seat->task->serves);
  seat->crowd = find_crowd (pool, seat);
  seat->left = seat->task->n_members;
  seat->posted = seat->failed = seat->waits = false;
  seat->parked = !pto_pool_is_cancelled (pool) && park (pool, seat);
  if (seat->parked)
    finish_seat (seat);
  else if (pto_pool_is_cancelled (pool))
    {
      seat->failed = true;
      finish_seat (seat);
    }
  else
    place (pool, seat);
}

static bool
seat_poll (struct pto_endpoint *endpoint, struct pto_outcome *outcome)
{
  struct pto_seat *seat = (struct pto_seat *) endpoint;

  if (seat->left > 0)
    return false;
  outcome->parked = seat->parked;
  outcome->failed = seat->failed;
  return true;
}

static void
seat_close (struct pto_endpoint *endpoint)
{
}

static const struct pto_endpoint_ops seat_ops
    = { .dispatch = seat_dispatch, .poll = seat_poll, .close = seat_close };

/* --- the pump --- */

/* One target less to wait for. The last one gives the request back: nothing of it is touched then.
 */
static void
settle_control (struct pto_pool *pool, struct pto_control *control)
{
  struct pto_control **link = &pool->controls;

  for (uint32_t word = 0; word < WORDS; word++)
    if (control->targets[word] != 0)
      return;
  if (control->outstanding > 0)
    return;
  while (*link != control)
    link = &(*link)->next;
  *link = control->next;
  pto_shared_set (pool->peers, &control->done, 1);
  pto_control_unref (control);
}

/* Is there somebody to ask? The dead are closed, and know nothing that they could forget. Who is
 * being begun again is not dead, whatever this side has heard of it: it is asked once it has
 * started. */
static bool
needs (const struct pto_control *control, const struct pto_child *child)
{
  /* Relaxed: who has asked has seen the begin, and the request's acquire brings it along. */
  enum pto_life life = pto_child_life (child);

  return life != PTO_LIFE_GONE
         && (life != PTO_LIFE_LOST || control->request == PTO_REQUEST_REGISTER);
}

static void
answer_control (struct pto_pool *pool, struct pto_child *child, bool yes, bool lost)
{
  struct pto_control *control = work_of (pool, child)->control;

  control->outstanding--;
  if (yes)
    set_bit (control->accepted, child->index, true);
  else if (control->refused == UINT32_MAX)
    {
      control->refused = child->index;
      control->lost = lost;
      if (!lost)
        control->status = (enum pto_status) pto_link_answer (&child->link, &control->failure);
      else
        {
          memset (&control->failure, 0, sizeof control->failure);
          control->failure.code = PTO_STATUS_WORKER_LOST;
          control->status = (enum pto_status) PTO_STATUS_WORKER_LOST;
          child->ops->describe (child, control->failure.text, sizeof control->failure.text, NULL,
                                0);
          control->failure.bytes = (uint32_t) strlen (control->failure.text);
        }
    }
  settle_control (pool, control);
}

/* START has come to something. */
static void
end_start (struct pto_pool *pool, const struct pto_child *child, bool ok)
{
  if (!ok && pto_load_relaxed (&pool->start_failed) == 0)
    pto_store_relaxed (&pool->start_failed, child->index + 1);
  pto_fetch_sub_relaxed (&pool->starting, 1);
  tell_news (pool);
}

/* A child says when it began and ended; between post and now it was, whatever it says. */
static uint64_t
stamp_between (const struct pto_pool *pool, uint64_t ticks, uint64_t least, uint64_t most)
{
  uint64_t stamp = ticks - pool->engine->tick_base;

  return ticks < pool->engine->tick_base || stamp < least ? least : stamp > most ? most : stamp;
}

/* The member that this child has had is over: answered, or lost with it. */
static __attribute__ ((noinline)) void
record_member (struct pto_pool *pool, struct pto_child *child, bool answered)
{
  const struct work *work = work_of (pool, child);
  uint64_t now = pto_engine_stamp (pool->engine);
  uint64_t began, ended;

  if (!answered && !pto_link_is_taken (&child->link))
    return;
  pto_link_stamps (&child->link, &began, &ended);
  began = stamp_between (pool, began, work->posted, now);
  ended = answered ? stamp_between (pool, ended, began, now) : now;
  pto_trace_add (&pool->runs[child->index], PTO_TRACE_ACK, began, work->seat->slot->id,
                 child->index, work->member);
  pto_trace_add (&pool->runs[child->index], PTO_TRACE_RUN, began, work->seat->slot->id,
                 child->index, ended);
}

/* The request is answered. */
static void
take_answer (struct pto_pool *pool, struct pto_child *child)
{
  struct pto_seat *seat = work_of (pool, child)->seat;
  struct pto_failure failure;
  bool ok = pto_link_answer (&child->link, &failure) == PTO_OK;

  switch ((enum pto_request) child->request)
    {
    case PTO_REQUEST_TASK:
      if (pool->record != 0)
        record_member (pool, child, true);
      if (!ok)
        note_failure (pool, seat, PTO_FAILURE_ANSWERED, child);
      child->deaths = 0;
      pto_child_answered (child);
      end_request (pool, child);
      end_member (pool, seat);
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
      answer_control (pool, child, ok, false);
      pto_child_answered (child);
      end_request (pool, child);
      return;
    case PTO_REQUEST_CLOSE:
      answer_control (pool, child, true, false);
      pto_child_closed (child, pool->time);
      end_request (pool, child);
      if (pto_child_life (child) == PTO_LIFE_GONE)
        {
          class_of (pool, child)->n_gone++;
          tell_news (pool);
        }
      return;
    case PTO_REQUEST_UP:
    case PTO_REQUEST_RUN:
      return; /* of a solo child only */
    }
}

/* Nobody will ever serve this list again. */
static void
fail_list (struct pto_pool *pool, struct list *list, const struct pto_child *child)
{
  while (!list_is_empty (list))
    fail_waiting (pool, &pool->seats[list_first (pool, list).seat], PTO_FAILURE_NO_WORKER, child);
}

static void
take_death (struct pto_pool *pool, struct pto_child *child)
{
  struct class *class = class_of (pool, child);
  struct work *work = work_of (pool, child);
  struct pto_seat *seat = work->seat;
  bool starting = child->request == PTO_REQUEST_START;
  bool under_way = pto_child_is_under_way (child);
  bool again = false;
  struct pto_control *next;

  for (struct pto_control *control = pool->controls; control != NULL; control = control->next)
    again = again
            || (control->request == PTO_REQUEST_CLOSE && has_bit (control->targets, child->index));
  if (seat != NULL && pool->record != 0)
    record_member (pool, child, false);
  set_bit (class->free, child->index, false);
  if (seat != NULL)
    note_failure (pool, seat,
                  pto_link_is_taken (&child->link) ? PTO_FAILURE_LOST : PTO_FAILURE_LOST_BEFORE,
                  child);
  /* Who is dead knows nothing any more, and is closed. */
  if (work->control != NULL)
    answer_control (pool, child, work->control->request != PTO_REQUEST_REGISTER, true);
  pto_child_bury (child, pto_now (pool->exec), again, pool->closing, seat != NULL);
  if (under_way)
    end_request (pool, child);
  for (struct pto_control *control = pool->controls; control != NULL; control = next)
    {
      next = control->next;
      if (!needs (control, child))
        set_bit (control->targets, child->index, false);
      settle_control (pool, control);
    }
  if (pto_child_life (child) == PTO_LIFE_GONE)
    {
      class->n_gone++;
      fail_list (pool, &work->tasks, child);
      if (class->n_gone == class->n_children)
        fail_list (pool, &class->tasks, child);
    }
  else
    pto_fetch_add_acq_rel (&pool->n_lost, 1);
  if (seat != NULL)
    end_member (pool, seat);
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
    count_under_way (pool, child);
  if (!pto_child_is_there (child))
    return;
  /* First the death, then the mailbox: an answer that came before the death is there. */
  dead = pto_child_is_dead (child);
  if (child->request != 0 && pto_link_is_idle (&child->link))
    take_answer (pool, child);
  else if (child->request != 0 && !pto_link_is_sound (&child->link))
    pto_child_kill (child, PTO_WHY_FAULT, "wrote over its mailbox");
  if (!pto_child_is_there (child))
    return;
  if (dead)
    take_death (pool, child);
  else
    feed (pool, child);
}

/* Nobody is given longer than a CLOSE any more, from now on. */
static void
begin_to_close (struct pto_pool *pool)
{
  pool->closing = true;
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    pool->config.children[i].since = pool->time;
}

/* New control requests, oldest first. */
static void
take_controls (struct pto_pool *pool)
{
  struct pto_control *stack;
  struct pto_control *queue = NULL;
  struct pto_control **end = &pool->controls;

  if (pto_load_relaxed (&pool->incoming) == NULL)
    return;
  /* Acquire pairs with the release in pto_pool_control(). */
  stack = pto_exchange_acq_rel (&pool->incoming, NULL);
  while (stack != NULL)
    {
      struct pto_control *next = stack->next;

      stack->next = queue;
      queue = stack;
      stack = next;
    }
  while (*end != NULL)
    end = &(*end)->next;
  *end = queue;
  while (queue != NULL)
    {
      struct pto_control *control = queue;

      /* It may be given back below. */
      queue = control->next;
      if (control->last)
        begin_to_close (pool);
      for (uint32_t i = 0; i < PTO_CHILDREN_MAX; i++)
        if (i >= pool->config.n_children || !needs (control, &pool->config.children[i]))
          set_bit (control->targets, i, false);
      for (uint32_t i = 0; i < pool->config.n_children; i++)
        if (has_bit (control->targets, i))
          feed (pool, &pool->config.children[i]);
      settle_control (pool, control);
    }
}

/* Control requests that are not wanted any more: who was not asked yet is not asked. */
static void
drop_cancelled_controls (struct pto_pool *pool)
{
  struct pto_control *next;

  for (struct pto_control *control = pool->controls; control != NULL; control = next)
    {
      next = control->next;
      if (pto_load_relaxed (&control->cancel) == 0)
        continue;
      memset (control->targets, 0, sizeof control->targets);
      for (uint32_t i = 0; i < pool->config.n_children; i++)
        if (pool->works[i].control == control)
          cancel_child (pool, &pool->config.children[i], CONTROL_NS);
      settle_control (pool, control);
    }
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
  for (uint32_t i = 0; i < pool->n_seats; i++)
    if (pool->seats[i].left > 0 && !pool->seats[i].posted)
      fail_waiting (pool, &pool->seats[i], PTO_FAILURE_NO_WORKER, pool->config.children);
  for (uint32_t i = 0; i < pool->n_crowds; i++)
    while (pool->crowds[i].first != NULL)
      call_back (pool, &pool->crowds[i]);
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    if (pool->works[i].seat != NULL)
      cancel_child (pool, &pool->config.children[i], ((uint32_t) cancel - 1) * US);
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
      take_controls (pool);
      drop_cancelled_controls (pool);
      take_cancel (pool);
      take_ticks (pool);
      if (pool->n_under_way == 0 && pto_load_acquire (&pool->stop) != 0)
        break;
      pto_park (pool->exec, bell, seen, PTO_NEVER);
    }
}

/* --- making and ending --- */

static uint32_t
class_number (struct pto_pool *pool, const struct pto_child *child)
{
  uint32_t i = 0;

  while (i < pool->n_classes
         && (pool->classes[i].kind != child->kind || pool->classes[i].level != child->level))
    i++;
  if (i == pool->n_classes)
    {
      pool->classes[i].kind = child->kind;
      pool->classes[i].level = child->level;
      pool->n_classes++;
    }
  return i;
}

struct pto_pool *
pto_pool_new (struct pto_engine *engine, struct pto_exec *exec,
              const struct pto_pool_config *config)
{
  struct pto_pool *pool = NULL;
  uint32_t n = config->n_children;
  uint32_t seats = config->n_seats;
  uint32_t capacity = 1;
  struct entry *entries;

  if (seats == 0)
    seats = SEATS_A_CHILD * n > SEATS_MIN ? SEATS_A_CHILD * n : SEATS_MIN;
  if (seats > PTO_ENDPOINTS_MAX)
    seats = PTO_ENDPOINTS_MAX;
  while (capacity < seats)
    capacity *= 2;
  if (posix_memalign ((void **) &pool, 64, (sizeof *pool + 63) & ~(size_t) 63) != 0)
    return NULL;
  memset (pool, 0, sizeof *pool);
  pool->engine = engine;
  pool->exec = exec;
  pool->peers = pto_exec_backend (exec) == PTO_BACKEND_HOST ? NULL : exec;
  pool->config = *config;
  pool->n_seats = seats;
  pool->mask = capacity - 1;
  pool->first.task = PTO_TASK_NONE;
  pto_word_init (&pool->news, 0, false);
  pool->classes = calloc (n + 1, sizeof *pool->classes);
  pool->class_of = calloc (n + 1, sizeof *pool->class_of);
  for (uint32_t kind = 0; kind < PTO_N_CHILD_KINDS; kind++)
    pool->numbers[kind] = calloc (n + 1, sizeof *pool->numbers[kind]);
  pool->works = calloc (n + 1, sizeof *pool->works);
  pool->seats = calloc (seats, sizeof *pool->seats);
  pool->endpoints = calloc (seats, sizeof *pool->endpoints);
  /* There are no more classes than children. */
  pool->crowds = calloc (3 * (size_t) n + 1, sizeof *pool->crowds);
  /* Touched as far as they are used: a list for each child and each class. */
  pool->entries = calloc ((size_t) (2 * n + 1) * capacity, sizeof *pool->entries);
  if (pool->crowds == NULL || pool->classes == NULL || pool->class_of == NULL
      || pool->numbers[0] == NULL || pool->numbers[1] == NULL || pool->works == NULL
      || pool->seats == NULL || pool->endpoints == NULL || pool->entries == NULL)
    {
      pto_pool_free (pool);
      return NULL;
    }
  entries = pool->entries;
  for (uint32_t i = 0; i < n; i++)
    {
      struct pto_child *child = &config->children[i];
      uint32_t number = class_number (pool, child);
      struct class *class = &pool->classes[number];

      pool->works[i].tasks.entries = entries;
      entries += capacity;
      if (class->n_children == 0)
        {
          class->tasks.entries = entries;
          entries += capacity;
        }
      class->children[class->n_children++] = (uint16_t) i;
      pool->class_of[i] = (uint16_t) number;
      pool->numbers[child->kind][child->number] = (uint16_t) i;
      pool->n_numbers[child->kind]++;
    }
  /* Children that run a task have another seat each. */
  pool->n_crowds = n + 2 * pool->n_classes;
  pool->share = n < seats ? (seats - n) / (pool->n_crowds + 1) : 0;
  if (pool->share == 0)
    pool->share = 1;
  pool->n_under_way = n;
  pool->pace = n > 0 ? PTO_PACE_SLOW : PTO_PACE_IDLE;
  atomic_init (&pool->starting, n);
  for (uint32_t i = 0; i < seats; i++)
    {
      struct pto_seat *seat = &pool->seats[i];

      seat->endpoint.ops = &seat_ops;
      seat->endpoint.number = i;
      seat->endpoint.cohort = PTO_COHORT_NONE;
      seat->pool = pool;
      pool->endpoints[i] = &seat->endpoint;
    }
  return pool;
}

static void
free_controls (struct pto_control *control)
{
  while (control != NULL)
    {
      struct pto_control *next = control->next;

      pto_control_unref (control);
      control = next;
    }
}

void
pto_pool_free (struct pto_pool *pool)
{
  if (pool == NULL)
    return;
  free_controls (pool->controls);
  free_controls (pto_load_acquire (&pool->incoming));
  free (pool->classes);
  free (pool->class_of);
  free (pool->works);
  for (uint32_t kind = 0; kind < PTO_N_CHILD_KINDS; kind++)
    free (pool->numbers[kind]);
  free (pool->seats);
  free (pool->endpoints);
  free (pool->entries);
  free (pool->crowds);
  free (pool);
}

struct pto_endpoint **
pto_pool_endpoints (struct pto_pool *pool, uint32_t *n)
{
  *n = pool->n_seats;
  return pool->endpoints;
}

static void
ring (struct pto_pool *pool)
{
  pto_bell_ring (pool->peers, &pool->config.hub->bell);
}

void
pto_pool_stop (struct pto_pool *pool)
{
  pto_store_release (&pool->stop, 1);
  ring (pool);
}

/* --- guest --- */

void
pto_pool_begin_run (struct pto_pool *pool)
{
  uint64_t run = pto_load_relaxed (&pool->cancel) >> 32;

  /* No task is there: the pump does not look at what it says of the run before. */
  memset (&pool->first, 0, offsetof (struct pto_first_failure, failure));
  pool->first.task = PTO_TASK_NONE;
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

const struct pto_first_failure *
pto_pool_first_failure (const struct pto_pool *pool)
{
  return &pool->first;
}

static const char *
kind_name (uint32_t kind, uint32_t level, char *text, size_t size)
{
  if (kind == PTO_CHILD_SUB)
    snprintf (text, size, "SUB workers");
  else if (level == 2)
    snprintf (text, size, "chips");
  else
    snprintf (text, size, "workers of level %u", level);
  return text;
}

static enum pto_status
check_worker (const struct pto_pool *pool, const struct pto_level_task *task, uint32_t worker,
              struct pto_report *report)
{
  uint32_t n = pool->n_numbers[task->kind];
  char kind[40];

  if (worker >= n)
    return pto_report_set (
        report, (enum pto_status) PTO_STATUS_NOT_FOUND,
        n == 1 ? "%s has no %s %u: there is only number 0" : "%s has no %s %u: they are 0 to %u",
        pool->config.path, task->kind == PTO_CHILD_SUB ? "SUB worker" : "worker", worker, n - 1);
  if (find_worker (pool, task->kind, worker)->level != task->serves)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           "\"%s\" is for %s, worker %u of %s is of level %u", task->name,
                           kind_name (task->kind, task->serves, kind, sizeof kind), worker,
                           pool->config.path, find_worker (pool, task->kind, worker)->level);
  return PTO_OK;
}

enum pto_status
pto_pool_check (const struct pto_pool *pool, const struct pto_level_task *task,
                const struct pto_member *members, uint64_t bytes, struct pto_report *report)
{
  const struct class *class = find_class (pool, task->kind, task->serves);
  uint64_t named[WORDS] = { 0 };
  char kind[40];

  if (class == NULL)
    return pto_report_set (
        report, (enum pto_status) PTO_STATUS_NOT_FOUND, "\"%s\" is for %s, and %s has none",
        task->name, kind_name (task->kind, task->serves, kind, sizeof kind), pool->config.path);
  if (task->n_members > class->n_children)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           "a group of %u needs %u workers at one time; %s has %u %s",
                           task->n_members, task->n_members, pool->config.path, class->n_children,
                           kind_name (task->kind, task->serves, kind, sizeof kind));
  for (uint32_t m = 0; m < task->n_members; m++)
    {
      uint32_t worker = members[m].worker;
      enum pto_status status;

      if (worker == PTO_WORKER_ANY)
        continue;
      status = check_worker (pool, task, worker, report);
      if (status != PTO_OK)
        return status;
      if (has_bit (named, worker))
        return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                               "worker %u is named twice in a group: its members run at the same "
                               "time",
                               worker);
      set_bit (named, worker, true);
    }
  if (bytes > PTO_LINK_BODY)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           "the arguments of \"%s\" take %" PRIu64
                           " bytes (8, 40 a tensor, 9 a scalar); a task can take %u",
                           task->name, bytes, PTO_LINK_BODY);
  return PTO_OK;
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

uint32_t
pto_pool_restarts (const struct pto_pool *pool)
{
  return pool->restarts;
}

struct pto_child *
pto_pool_start_failed (const struct pto_pool *pool)
{
  uint32_t failed = pto_load_relaxed (&pool->start_failed);

  return failed != 0 ? &pool->config.children[failed - 1] : NULL;
}

/* --- any thread --- */

struct pto_control *
pto_control_new (enum pto_request request, const uint8_t *digest, const void *body, uint64_t bytes)
{
  struct pto_control *control;
  uint64_t copied = bytes <= PTO_LINK_BODY ? bytes : 0;

  control = calloc (1, sizeof *control + copied);
  if (control == NULL)
    return NULL;
  control->request = request;
  control->refused = UINT32_MAX;
  control->bytes = bytes;
  control->body = control + 1;
  if (copied > 0)
    memcpy (control->body, body, copied);
  if (digest != NULL)
    memcpy (control->digest, digest, PTO_DIGEST_BYTES);
  pto_word_init (&control->done, 0, false);
  atomic_init (&control->cancel, 0);
  atomic_init (&control->references, 1);
  return control;
}

void
pto_control_unref (struct pto_control *control)
{
  /* Acquire and release: the last one sees all that the others did with it. */
  if (pto_fetch_sub_acq_rel (&control->references, 1) != 1)
    return;
  if (control->free_body != NULL)
    control->free_body (control->body, control->bytes);
  free (control);
}

void
pto_pool_control (struct pto_pool *pool, struct pto_control *control)
{
  pto_fetch_add_relaxed (&control->references, 1);
  control->next = pto_load_relaxed (&pool->incoming);
  /* Release pairs with the acquire in take_controls(). */
  while (!pto_cas_acq_rel (&pool->incoming, &control->next, control))
    ;
  ring (pool);
}

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
  ring (pool);
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
  ring (pool);
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

struct pto_word *
pto_pool_news (struct pto_pool *pool)
{
  return &pool->news;
}

uint64_t
pto_pool_beats (const struct pto_pool *pool)
{
  uint64_t sum = 0;

  for (uint32_t i = 0; i < pool->config.n_children; i++)
    sum += pto_link_beat (&pool->config.children[i].link);
  return sum;
}
