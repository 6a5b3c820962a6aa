/* trace.h: what happened to every task, when and where.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One buffer per actor (the orchestrator, every scheduler, every core), written by that actor alone
 * with plain stores, read when the run is over. Memory is reserved when tracing is switched on and
 * committed on touch. When a buffer is full the record is counted as dropped: recorded + dropped =
 * produced, always.
 */
#pragma once

#include "tensor_map.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

enum pto_trace_kind
{
  PTO_TRACE_SUBMIT = 1, /* orchestrator; detail = kernel id, extra = ring << 8 | core type */
  /* orchestrator; task = consumer, detail = PTO_HAZARD_*, extra = producer's id */
  PTO_TRACE_DEP = 2,
  PTO_TRACE_READY = 3, /* whoever saw the last producer complete */
  /* scheduler; detail = core, extra = member << 32 | per-core sequence number */
  PTO_TRACE_DISPATCH = 4,
  PTO_TRACE_ACK = 5,      /* core; as DISPATCH */
  PTO_TRACE_RUN = 6,      /* core, of each member; time = start, extra = end; detail = core */
  PTO_TRACE_COMPLETE = 7, /* scheduler saw FIN; detail = core, extra = 1 when the task failed */
  PTO_TRACE_RETIRE = 8,   /* orchestrator: slot and memory are free again */
  PTO_TRACE_SCOPE = 9,    /* orchestrator; detail = depth, extra = 1 begin, 0 end */
  /* orchestrator; time = start, extra = end; detail = ring | PTO_STALL_* << 8 */
  PTO_TRACE_STALL = 10,
  PTO_TRACE_PART = 11 /* core, before the RUN of a part; detail = kernel id, extra = block */
};

enum
{
  PTO_STALL_TASK,
  PTO_STALL_HEAP,
  PTO_STALL_DEP,
  PTO_STALL_MAP,
  PTO_STALL_COHORT, /* of no ring; and what follows */
  PTO_STALL_ELEMENT /* that the orchestration reads or writes */
};

/* 32 bytes. Times are pto_now() ns: wall clock, or the virtual clock on det. */
struct pto_trace_record
{
  uint64_t time;
  pto_task_id task;
  uint32_t kind;
  uint32_t detail;
  uint64_t extra;
};
_Static_assert(sizeof (struct pto_trace_record) == 32, "two records a cache line");

/* A cache line each: owners are on different CPUs. */
struct pto_trace_buffer
{
  alignas (64) struct pto_trace_record *records;
  uint64_t count; /* W: the owner, R: anybody once the run is over */
  uint64_t dropped;
  uint64_t capacity;
};

struct pto_trace
{
  struct pto_trace_buffer *buffers; /* [0] the orchestrator, then schedulers, then cores */
  uint32_t n_buffers;
};

/* Reserves n buffers of that many records each. NULL when memory is not to be had. */
struct pto_trace *pto_trace_new (uint32_t n_buffers, uint64_t capacity);
void pto_trace_free (struct pto_trace *trace);
void pto_trace_clear (struct pto_trace *trace);

/* What a clock's numbers are in ns: from of them are to ns. */
struct pto_scale
{
  uint64_t from;
  uint64_t to;
};
static inline uint64_t
pto_scale (uint64_t time, const struct pto_scale *scale)
{
  return scale->from == scale->to || scale->from == 0
             ? time
             : (uint64_t) ((unsigned __int128) time * scale->to / scale->from);
}
/* Makes ns of all times. */
void pto_trace_scale (struct pto_trace *trace, const struct pto_scale *scale);

/* Owner of the buffer. A NULL buffer records nothing: tracing off costs one test. */
static inline void
pto_trace_add (struct pto_trace_buffer *buffer, uint32_t kind, uint64_t time, pto_task_id task,
               uint32_t detail, uint64_t extra)
{
  struct pto_trace_record *record;

  if (buffer->count == buffer->capacity)
    {
      buffer->dropped++;
      return;
    }
  record = &buffer->records[buffer->count++];
  record->time = time;
  record->task = task;
  record->kind = kind;
  record->detail = detail;
  record->extra = extra;
}
