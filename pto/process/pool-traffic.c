/* pool-traffic.c: what of tensors travels to children that share no memory with us, and comes back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each of them counts all that it moves (writes.h). A run has what was counted between its begin
 * and its end, and its record has just that, however it is divided: whatever a child says of one
 * task is believed as far as it has counted more than was recorded before, and what is left of that
 * when a request is over is recorded of the request.
 *
 * W, R: the carrier; the guest between runs, inside of the executor.
 */
#include "pool-private.h"

#include "../exec/pto_atomic.h"

static struct pto_moved
count (const struct pto_pool *pool, const struct pto_child *child)
{
  struct pto_traffic *traffic = pto_writes_traffic (pool->config.writes, child->index);

  return (struct pto_moved){ .sent = pto_load_relaxed (&traffic->sent),
                             .received = pto_load_relaxed (&traffic->received),
                             .saved = pto_load_relaxed (&traffic->saved) };
}

static uint64_t
take (uint64_t *recorded, uint64_t counted, uint64_t wanted)
{
  uint64_t left = counted > *recorded ? counted - *recorded : 0;
  uint64_t taken = wanted < left ? wanted : left;

  *recorded += taken;
  return taken;
}

static void
record (struct pto_pool *pool, const struct pto_station *station, pto_task_id task, uint32_t back,
        uint64_t from, uint64_t to, uint64_t bytes, uint64_t saved)
{
  struct pto_trace_buffer *buffer = &pool->runs[station->child->index];

  if (bytes == 0 && saved == 0)
    return;
  pto_trace_add (buffer, PTO_TRACE_TRANSFER, from, task, station->child->index | back, to);
  pto_trace_add (buffer, PTO_TRACE_BYTES, bytes, task, back, saved);
}

void
pto_pool_record_traffic (struct pto_pool *pool, struct pto_station *station,
                         const struct pto_slot *slot, const struct pto_stamps *stamps, uint64_t now)
{
  struct pto_moved counted, *seen = &station->recorded;
  uint64_t from, to, bytes, saved;

  if (pool->config.writes == NULL)
    return;
  counted = count (pool, station->child);
  bytes = take (&seen->sent, counted.sent, stamps->sent);
  saved = take (&seen->saved, counted.saved, stamps->saved);
  from = pto_pool_stamp_between (pool, stamps->sent_from, station->posted, now);
  to = pto_pool_stamp_between (pool, stamps->sent_to, from, now);
  record (pool, station, slot->id, 0, from, to, bytes, saved);
  bytes = take (&seen->received, counted.received, stamps->received);
  from = pto_pool_stamp_between (pool, stamps->received_from, station->posted, now);
  to = pto_pool_stamp_between (pool, stamps->received_to, from, now);
  record (pool, station, slot->id, PTO_TRACE_TRANSFER_BACK, from, to, bytes, 0);
}

void
pto_pool_begin_traffic (const struct pto_pool *pool, struct pto_station *station)
{
  if (pool->record != 0)
    station->posted = pto_engine_stamp (pool->engine);
}

static void
record_rest (struct pto_pool *pool, struct pto_station *station, uint64_t now)
{
  struct pto_moved counted, *seen = &station->recorded;
  uint64_t sent, received, saved;
  uint64_t from = station->posted < now ? station->posted : now;

  counted = count (pool, station->child);
  sent = take (&seen->sent, counted.sent, UINT64_MAX);
  saved = take (&seen->saved, counted.saved, UINT64_MAX);
  received = take (&seen->received, counted.received, UINT64_MAX);
  record (pool, station, PTO_TASK_NONE, 0, from, now, sent, saved);
  record (pool, station, PTO_TASK_NONE, PTO_TRACE_TRANSFER_BACK, from, now, received, 0);
}

void
pto_pool_record_rest (struct pto_pool *pool, struct pto_station *station)
{
  if (pool->record != 0 && pool->runs_now && pool->config.writes != NULL)
    record_rest (pool, station, pto_engine_stamp (pool->engine));
}

void
pto_pool_record_fetched (struct pto_pool *pool, struct pto_station *station)
{
  uint64_t now, received;

  if (pool->record == 0 || !pool->runs_now || pool->config.writes == NULL)
    return;
  now = pto_engine_stamp (pool->engine);
  received = count (pool, station->child).received;
  for (uint32_t i = 0; station->fetches && i <= station->n_others; i++)
    {
      const struct pto_slot *slot = i == 0 ? station->endpoint.running : station->others[i - 1];
      uint64_t bytes = take (&station->recorded.received, received, station->comes[i]);

      station->comes[i] -= bytes;
      record (pool, station, slot->id, PTO_TRACE_TRANSFER_BACK, station->posted, now, bytes, 0);
    }
  record_rest (pool, station, now);
}

void
pto_pool_begin_counting (struct pto_pool *pool)
{
  for (uint32_t i = 0; pool->config.writes != NULL && i < pool->config.n_children; i++)
    {
      struct pto_station *station = &pool->stations[i];

      /* Of a request that is under way, as far as it is of this run. */
      station->posted = 0;
      station->recorded = station->before = count (pool, station->child);
    }
  pool->runs_now = true;
}

struct pto_moved
pto_pool_end_run (struct pto_pool *pool)
{
  struct pto_moved moved = { 0 };

  for (uint32_t i = 0; pool->config.writes != NULL && i < pool->config.n_children; i++)
    {
      struct pto_station *station = &pool->stations[i];

      if (pool->record != 0)
        record_rest (pool, station, pool->engine->run_ticks);
      else
        station->recorded = count (pool, station->child);
      moved.sent += station->recorded.sent - station->before.sent;
      moved.received += station->recorded.received - station->before.received;
      moved.saved += station->recorded.saved - station->before.saved;
    }
  pool->runs_now = false;
  return moved;
}
