/* pool-task.c: what is a task to the children: can it ever run, how is it written for one of them,
 * what of it is recorded, and what of its failure told?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-private.h"

#include "core/graph-launch.h"
#include "core/record-submit.h"
#include "core/region.h"
#include "exec/pto-atomic.h"
#include "exec/translate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- can it run? --- */

static const struct pto_class *
find_class (const struct pto_pool *pool, uint32_t kind, uint32_t level, uint32_t *number)
{
  for (*number = 0; *number < pool->n_classes; ++*number)
    if (pool->classes[*number].kind == kind && pool->classes[*number].level == level)
      return &pool->classes[*number];
  return NULL;
}

static const struct pto_child *
find_worker (const struct pto_pool *pool, uint32_t kind, uint32_t number)
{
  return &pool->config.children[pool->numbers[kind][number]];
}

static const char *
kind_name (uint32_t kind, uint32_t level, char *text, size_t size)
{
  if (kind == PTO_CHILD_SUB)
    snprintf (text, size, _ ("SUB workers"));
  else if (level == 2)
    snprintf (text, size, _ ("chips"));
  else
    snprintf (text, size, _ ("workers of level %u"), level);
  return text;
}

static enum pto_status
check_worker (const struct pto_pool *pool, const struct pto_level_task *task, uint32_t worker,
              struct pto_report *report)
{
  uint32_t n = pool->n_numbers[task->kind];
  char kind[40];

  if (worker >= n)
    return pto_report_set (report, (enum pto_status) PTO_STATUS_NOT_FOUND,
                           n == 1 ? _ ("%s has no %s %u: there is only number 0")
                                  : _ ("%s has no %s %u: they are 0 to %u"),
                           pool->config.path,
                           task->kind == PTO_CHILD_SUB ? _ ("SUB worker") : _ ("worker"), worker,
                           n - 1);
  if (find_worker (pool, task->kind, worker)->level != task->serves)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           _ ("\"%s\" is for %s, worker %u of %s is of level %u"), task->name,
                           kind_name (task->kind, task->serves, kind, sizeof kind), worker,
                           pool->config.path, find_worker (pool, task->kind, worker)->level);
  return PTO_OK;
}

enum pto_status
pto_pool_place (const struct pto_pool *pool, const struct pto_level_task *task,
                const struct pto_member *members, uint64_t bytes, uint32_t kernel,
                struct pto_need *needs, struct pto_report *report)
{
  uint32_t queue;
  const struct pto_class *class = find_class (pool, task->kind, task->serves, &queue);
  uint64_t named[PTO_POOL_WORDS] = { 0 };
  char kind[40];

  if (class == NULL)
    return pto_report_set (
        report, (enum pto_status) PTO_STATUS_NOT_FOUND, _ ("\"%s\" is for %s, and %s has none"),
        task->name, kind_name (task->kind, task->serves, kind, sizeof kind), pool->config.path);
  if (task->n_members > class->n_children)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           _ ("a group of %u needs %u workers at one time; %s has %u %s"),
                           task->n_members, task->n_members, pool->config.path, class->n_children,
                           kind_name (task->kind, task->serves, kind, sizeof kind));
  for (uint32_t m = 0; m < task->n_members; m++)
    {
      uint32_t worker = members[m].worker;
      enum pto_status status;

      needs[m] = (struct pto_need){ queue, PTO_PLACE_ANY, kernel };
      if (worker == PTO_WORKER_ANY)
        continue;
      status = check_worker (pool, task, worker, report);
      if (status != PTO_OK)
        return status;
      if (pto_pool_has_bit (named, worker))
        return pto_report_set (
            report, PTO_STATUS_INVALID_ARGS,
            _ ("worker %u is named twice in a group: its members run at the same "
               "time"),
            worker);
      pto_pool_set_bit (named, worker, true);
      needs[m].place = find_worker (pool, task->kind, worker)->index;
    }
  if (bytes > PTO_LINK_BODY)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           _ ("the arguments of \"%s\" take %" PRIu64
                              " bytes (8, 40 a tensor, 9 a scalar); a task can take %u"),
                           task->name, bytes, PTO_LINK_BODY);
  return PTO_OK;
}

/* --- to a child --- */

/* Tensors as that child is told of them, scalars, and what those were. */
static void
pack_args (struct pto_pool *pool, const struct pto_child *child, struct pto_pack *pack,
           const struct pto_slot *slot, const struct pto_member *member)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  const int64_t *tensors = slot->payload->args + member->first_tensor;
  const int64_t *scalars = slot->payload->args + task->n_tensors + member->first_scalar;

  for (uint32_t i = 0; i < member->n_tensors; i++)
    {
      /* Of a graph that is launched it may be described where others have it, too. */
      const TensorData *given = (const TensorData *) (uintptr_t) tensors[i];
      struct pto_continuous_tensor to
          = { .data
              = given->buffer.addr + given->start_offset * (uint64_t) pto_dtype_size (given->dtype),
              .ndims = given->ndims,
              .dtype = (uint32_t) given->dtype,
              .access = pto_pool_access (pool, child, slot, member->first_tensor + i) };

      for (uint32_t d = 0; d < given->ndims; d++)
        to.shapes[d] = (uint32_t) given->shapes[d];
      PTO_PACK (pack, to);
    }
  pto_pack_value (pack, (void *) scalars, member->n_scalars * sizeof *scalars);
  if (task->kinds != NULL)
    pto_pack_value (pack, (void *) (pto_level_task_kinds (task) + member->first_scalar),
                    member->n_scalars);
  pto_pack_align (pack);
}

/* Head of a task with one member, for a message of several. */
static void
pack_head (struct pto_pack *pack, const struct pto_slot *slot, struct pto_call_counts *counts)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  const struct pto_member *member = pto_level_task_members (task);
  struct pto_call call = {
    .task = slot->id, .digest = task->digest, .terms = slot->payload->terms, .config = &task->config
  };

  *counts = (struct pto_call_counts){ .config_bytes = task->config_bytes,
                                      .n_tensors = member->n_tensors,
                                      .n_scalars = member->n_scalars,
                                      .n_kinds = task->kinds != NULL ? member->n_scalars : 0 };
  pto_call_pack_head (pack, &call, counts);
}

static void
pool_write_task (struct pto_pool *pool, struct pto_station *station, struct pto_letter *letter)
{
  const struct pto_slot *slot = station->endpoint.running;
  const struct pto_level_task *task = pto_pool_task (slot);
  struct pto_link *link = &station->child->link;
  const struct pto_member *member = &pto_level_task_members (task)[station->endpoint.member];
  struct pto_pack pack = pto_pack_write (pto_link_body (link), PTO_LINK_BODY);
  struct pto_blob blob = { member->n_tensors, member->n_scalars };

  letter->far_body = 0;
  letter->config = &task->config;
  letter->task = slot->id;
  letter->terms = slot->payload->terms;
  letter->request = PTO_REQUEST_TASK;
  letter->config_bytes = task->config_bytes;
  memcpy (pto_link_digest (link), task->digest, PTO_DIGEST_BYTES);
  PTO_PACK (&pack, blob);
  pack_args (pool, station->child, &pack, slot, member);
  letter->bytes = (uint32_t) (pto_blob_size (member->n_tensors, member->n_scalars)
                              + (task->kinds != NULL ? member->n_scalars : 0));
  letter->record = pool->record;
  letter->checks = pool->checks;
}

/* What a task takes in a message of several. */
static uint64_t
packed_bytes (const struct pto_slot *slot)
{
  struct pto_pack pack = pto_pack_count ();
  struct pto_call_counts counts;

  pack_head (&pack, slot, &counts);
  pto_call_pack_args (&pack, &(struct pto_call){ .task = slot->id }, &counts);
  return pack.at;
}

/* Where another one would be written. */
struct place
{
  struct pto_pool *pool;
  struct pto_station *station;
  uint32_t bytes;
};

/* Is there room for it? And it has taken no worker with it so far, and waits for nothing. */
static bool
finds_room (void *data, const struct pto_slot *slot)
{
  const struct place *place = data;
  uint32_t lost;

  return pto_pool_task (slot)->n_lost == 0 && packed_bytes (slot) <= PTO_LINK_BODY - place->bytes
         && pto_pool_need (place->pool, place->station, slot, NULL, &lost) == PTO_LEFT_HERE;
}

/* Gives how much that is. */
static uint32_t
write_packed (struct pto_pool *pool, const struct pto_child *child, uint8_t *to,
              const struct pto_slot *slot)
{
  struct pto_pack pack = pto_pack_write (to, packed_bytes (slot));
  struct pto_call_counts counts;

  pack_head (&pack, slot, &counts);
  if (pool->checks)
    pto_wire_config_set_check (
        (struct pto_call_config *) (void *) (to + pack.at - counts.config_bytes), true);
  pto_pack_align (&pack);
  pack_args (pool, child, &pack, slot, pto_level_task_members (pto_pool_task (slot)));
  return (uint32_t) pack.at;
}

/* Whoever watches is told once, however often it is given back or run again. Of those that stand in
 * the line that was done there. */
static void
tell_begin (const struct pto_pool *pool, const struct pto_slot *slot)
{
  struct pto_level_task *task = pto_pool_task (slot);

  if (slot->queue == PTO_QUEUE_LINE || task->told)
    return;
  task->told = true;
  pto_observe_begin (pool->engine, slot);
}

void
pto_pool_write_tasks (struct pto_pool *pool, struct pto_station *station, uint32_t max,
                      struct pto_letter *letter)
{
  struct pto_endpoint *endpoint = &station->endpoint;
  struct pto_slot *first = endpoint->running;
  uint8_t *body = pto_link_body (&station->child->link);
  struct place place = { pool, station, PTO_LINK_BODY };
  struct pto_slot *slot;

  if (max > 0 && packed_bytes (first) <= PTO_LINK_BODY)
    place.bytes = (uint32_t) packed_bytes (first);
  while (station->n_others < max
         && (slot = pto_scheduler_take_more (endpoint, station->n_others + 1, finds_room, &place))
                != NULL)
    {
      station->others[station->n_others++] = slot;
      if (pool->record != 0)
        tell_begin (pool, slot);
      place.bytes += write_packed (pool, station->child, body + place.bytes, slot);
    }
  if (station->n_others == 0)
    {
      pool_write_task (pool, station, letter);
      return;
    }
  write_packed (pool, station->child, body, first);
  *letter = (struct pto_letter){ .request = PTO_REQUEST_TASKS,
                                 .bytes = place.bytes,
                                 .record = pool->record };
}

/* --- what it writes --- */

struct pto_extent
pto_pool_extent (const struct pto_slot *slot, uint32_t tensor)
{
  const TensorData *given = (const TensorData *) (uintptr_t) slot->payload->args[tensor];
  uint64_t begin
      = given->buffer.addr + given->start_offset * (uint64_t) pto_dtype_size (given->dtype);

  return (struct pto_extent){
    begin, begin + pto_extent (given->ndims, given->dtype, given->shapes, given->strides)
  };
}

void
pto_pool_note_writes (struct pto_pool *pool, const struct pto_station *station,
                      const struct pto_slot *slot)
{
  const struct pto_level_task *task = pto_pool_task (slot);
  const struct pto_member *member = &pto_level_task_members (task)[station->endpoint.member];
  const uint8_t *access = pto_level_task_access (task) + member->first_tensor;

  for (uint32_t i = 0; i < member->n_tensors; i++)
    {
      struct pto_extent extent;

      /* Of what is passed on without a word nobody knows. */
      if ((access[i] & ~(PTO_WIRE_STAYS | PTO_WIRE_OWNED)) == PTO_WIRE_READ)
        continue;
      extent = pto_pool_extent (slot, member->first_tensor + i);
      pto_writes_add (pool->config.writes, extent.begin, extent.end, station->child->index);
    }
}

/* --- records; apart, so that runs that are not recorded pay for a test --- */

static void
record_dispatch (struct pto_pool *pool, const struct pto_station *station,
                 const struct pto_slot *slot)
{
  if (pto_trace_has (pool->dispatches, PTO_TRACE_LEVEL_SCHEDULE))
    pto_trace_add (pool->dispatches, PTO_TRACE_DISPATCH, station->posted, slot->id,
                   station->child->index, station->endpoint.member);
}

void
pto_pool_record_post (struct pto_pool *pool, struct pto_station *station)
{
  tell_begin (pool, station->endpoint.running);
  station->posted = pto_engine_stamp (pool->engine);
  record_dispatch (pool, station, station->endpoint.running);
}

uint64_t
pto_pool_stamp_between (const struct pto_pool *pool, uint64_t ticks, uint64_t least, uint64_t most)
{
  uint64_t stamp = ticks - pool->engine->tick_base;

  return ticks < pool->engine->tick_base || stamp < least ? least : stamp > most ? most : stamp;
}

static void
record_run (struct pto_pool *pool, const struct pto_station *station, const struct pto_slot *slot,
            uint64_t began, uint64_t ended)
{
  struct pto_trace_buffer *buffer = &pool->runs[station->child->index];

  if (pto_trace_has (buffer, PTO_TRACE_LEVEL_SCHEDULE))
    pto_trace_add (buffer, PTO_TRACE_ACK, began, slot->id, station->child->index,
                   station->endpoint.member);
  pto_trace_add (buffer, PTO_TRACE_RUN, began, slot->id, station->child->index, ended);
}

/* One after the other, as a child says that speaks for somebody else. */
static void
record_answered (struct pto_pool *pool, struct pto_station *station, uint64_t now)
{
  uint64_t least = station->posted;

  for (uint32_t i = 0; i <= station->n_others; i++)
    {
      const struct pto_slot *slot = pto_station_slot (station, i);
      struct pto_stamps stamps;
      uint64_t began, ended;

      pto_link_task_stamps (&station->child->link, i, &stamps);
      began = pto_pool_stamp_between (pool, stamps.began, least, now);
      ended = pto_pool_stamp_between (pool, stamps.ended, began, now);
      record_run (pool, station, slot, began, ended);
      pto_pool_record_traffic (pool, station, slot, &stamps, now);
      least = ended;
    }
}

void
pto_pool_record_member (struct pto_pool *pool, struct pto_station *station, bool answered)
{
  const struct pto_child *child = station->child;
  uint64_t now = pto_engine_stamp (pool->engine);
  struct pto_stamps stamps;
  uint64_t began, ended;

  /* That the others were dispatched is said now, for some may have been given back. */
  for (uint32_t i = 1; i <= station->n_others; i++)
    record_dispatch (pool, station, pto_station_slot (station, i));
  if (answered && (station->n_others > 0 || pto_link_task_stamps (&child->link, 0, &stamps)))
    record_answered (pool, station, now);
  /* Of several that are lost with their child nobody knows which has begun. */
  else if (station->n_others == 0 && (answered || pto_link_is_taken (&child->link)))
    {
      pto_link_stamps (&child->link, &began, &ended);
      began = pto_pool_stamp_between (pool, began, station->posted, now);
      ended = answered ? pto_pool_stamp_between (pool, ended, began, now) : now;
      record_run (pool, station, station->endpoint.running, began, ended);
    }
  pto_pool_record_rest (pool, station);
}

/* --- failures --- */

static void
copy_text (char *to, size_t size, const char *from)
{
  snprintf (to, size, "%s", from != NULL ? from : "?");
}

static void
describe_failure (const struct pto_pool *pool, struct pto_first_failure *what,
                  const struct pto_slot *slot, enum pto_failure_kind kind,
                  const struct pto_child *child, const char *lost_text)
{
  const struct pto_level_task *task = pto_pool_task (slot);

  what->task = slot->id;
  what->kind = kind;
  what->n_lost = task->n_lost;
  copy_text (what->path, sizeof what->path, child->path);
  copy_text (what->name, sizeof what->name, task->name);
  pto_engine_describe_submit (pool->engine, slot->payload, what->place, sizeof what->place);
  if (kind == PTO_FAILURE_ANSWERED)
    {
      what->status = (enum pto_status) pto_link_answer (&child->link, &what->failure);
      return;
    }
  memset (&what->failure, 0, sizeof what->failure);
  what->status = (enum pto_status) PTO_STATUS_WORKER_LOST;
  what->failure.code = PTO_STATUS_WORKER_LOST;
  if (kind == PTO_FAILURE_LEFT)
    copy_text (what->failure.text, sizeof what->failure.text, lost_text);
  else
    child->ops->describe (child, what->failure.text, sizeof what->failure.text, what->words,
                          sizeof what->words);
  what->failure.bytes = (uint32_t) strlen (what->failure.text);
}

void
pto_pool_tell_failure (struct pto_pool *pool, const struct pto_first_failure *what)
{
  uint64_t roots = pool->first.roots;

  if (pto_pool_is_cancelled (pool))
    return;
  if (roots == 0)
    pool->first = *what;
  pool->first.roots = roots + 1;
}

void
pto_pool_note_failure (struct pto_pool *pool, struct pto_slot *slot, enum pto_failure_kind kind,
                       const struct pto_child *child)
{
  struct pto_level_task *task = pto_pool_task (slot);
  struct pto_first_failure *held;

  if (task->failed || task->lost)
    return;
  task->failed = true;
  /* Whatever else fails a run has its own words; that its tasks were ended is none of them. */
  if (pto_pool_is_cancelled (pool))
    return;
  held = kind == PTO_FAILURE_ANSWERED ? pto_pool_hold_failure (pool, slot) : NULL;
  if (held != NULL)
    describe_failure (pool, held, slot, kind, child, NULL);
  else if (pool->first.roots++ == 0)
    describe_failure (pool, &pool->first, slot, kind, child,
                      pool->stations[child->index].lost_text);
}
