/* pool-traffic.c: what of tensors travels to children that share no memory with us, and comes back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each of them counts all that it moves (write-log.h). A run has what was counted between its begin
 * and its end, and its record has just that, however it is divided: whatever a child says of one
 * task is believed as far as it has counted more than was recorded before, and what is left of that
 * when a request is over is recorded of the request.
 *
 * A run counts from the first thing that its orchestration does to when all its tasks are over:
 * traffic.counts says so, under the lock, and the engine's clock is the run's meanwhile. The
 * carrier asks it, who may be posting other requests just when the guest begins a run or ends it.
 */
#include "pool-private.h"

#include "exec/pto-atomic.h"

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

/* Under the lock: of tasks that are over, or of none. */
static void
record_rest (struct pto_pool *pool, struct pto_station *station, uint64_t now)
{
  struct pto_moved counted = count (pool, station->child), *seen = &station->moved;
  uint64_t sent = take (&seen->sent, counted.sent, UINT64_MAX);
  uint64_t saved = take (&seen->saved, counted.saved, UINT64_MAX);
  uint64_t received = take (&seen->received, counted.received, UINT64_MAX);
  uint64_t from = station->asked < now ? station->asked : now;

  record (pool, station, PTO_TASK_NONE, 0, from, now, sent, saved);
  record (pool, station, PTO_TASK_NONE, PTO_TRACE_TRANSFER_BACK, from, now, received, 0);
}

/* Is there anything to record? Then the lock is held. */
static bool
begin_recording (struct pto_pool *pool)
{
  if (pool->config.writes == NULL)
    return false;
  pthread_mutex_lock (&pool->traffic.lock);
  if (pool->traffic.counts && pool->traffic.is_recorded)
    return true;
  pthread_mutex_unlock (&pool->traffic.lock);
  return false;
}

void
pto_pool_record_asked (struct pto_pool *pool, struct pto_station *station)
{
  if (!begin_recording (pool))
    return;
  station->asked = pto_engine_stamp (pool->engine);
  pthread_mutex_unlock (&pool->traffic.lock);
}

void
pto_pool_record_traffic (struct pto_pool *pool, struct pto_station *station,
                         const struct pto_slot *slot, const struct pto_stamps *stamps, uint64_t now)
{
  struct pto_moved counted, *seen = &station->moved;
  uint64_t from, to, bytes, saved;

  if (!begin_recording (pool))
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
  pthread_mutex_unlock (&pool->traffic.lock);
}

void
pto_pool_record_fetched (struct pto_pool *pool, struct pto_station *station)
{
  uint64_t now, received;

  if (!begin_recording (pool))
    return;
  now = pto_engine_stamp (pool->engine);
  received = count (pool, station->child).received;
  for (uint32_t i = 0; station->fetches && i <= station->n_others; i++)
    {
      const struct pto_slot *slot = pto_station_slot (station, i);
      uint64_t bytes = take (&station->moved.received, received, station->comes[i]);

      station->comes[i] -= bytes;
      record (pool, station, slot->id, PTO_TRACE_TRANSFER_BACK, station->asked, now, bytes, 0);
    }
  record_rest (pool, station, now);
  pthread_mutex_unlock (&pool->traffic.lock);
}

void
pto_pool_record_rest (struct pto_pool *pool, struct pto_station *station)
{
  if (!begin_recording (pool))
    return;
  record_rest (pool, station, pto_engine_stamp (pool->engine));
  pthread_mutex_unlock (&pool->traffic.lock);
}

/* --- guest --- */

void
pto_pool_begin_traffic (struct pto_pool *pool)
{
  if (pool->config.writes == NULL)
    return;
  pthread_mutex_lock (&pool->traffic.lock);
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    {
      struct pto_station *station = &pool->stations[i];

      /* Of a request that is under way, as far as it is of this run. */
      station->asked = 0;
      station->moved = station->moved_before = count (pool, station->child);
    }
  pool->traffic.counts = true;
  pool->traffic.is_recorded = pool->record != 0;
  pthread_mutex_unlock (&pool->traffic.lock);
}

struct pto_moved
pto_pool_end_traffic (struct pto_pool *pool)
{
  struct pto_moved sum = { 0 };
  uint64_t now;

  if (pool->config.writes == NULL)
    return sum;
  now = pto_engine_stamp (pool->engine);
  pthread_mutex_lock (&pool->traffic.lock);
  for (uint32_t i = 0; i < pool->config.n_children; i++)
    {
      struct pto_station *station = &pool->stations[i];

      if (pool->traffic.is_recorded)
        record_rest (pool, station, now);
      else
        station->moved = count (pool, station->child);
      sum.sent += station->moved.sent - station->moved_before.sent;
      sum.received += station->moved.received - station->moved_before.received;
      sum.saved += station->moved.saved - station->moved_before.saved;
    }
  pool->traffic.counts = false;
  pthread_mutex_unlock (&pool->traffic.lock);
  return sum;
}
