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

#include "tensor-map.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

/* How much is recorded: each level has what those below it have. */
enum pto_trace_level
{
  PTO_TRACE_LEVEL_RUNS = 1,     /* which kernel ran where, from when to when */
  PTO_TRACE_LEVEL_SCHEDULE = 2, /* when it was ready, dispatched, acknowledged and seen complete */
  PTO_TRACE_LEVEL_GRAPH = 3,    /* what it waited for; scopes, stalls, retirement */
  PTO_TRACE_LEVEL_FULL = 4      /* its arguments; what rings and the TensorMap held */
};

enum pto_trace_kind
{
  /* orchestrator; detail = kernel id, or PTO_TRACE_ALLOC; extra = line << 32 | priority << 28 |
   * file
   * << 16 | ring << 8 | core type. file: 1 + its number among those of the trace, 0: nobody knows
   * where the submit stands */
  PTO_TRACE_SUBMIT = 1,
  /* orchestrator; task = consumer, detail = PTO_HAZARD_*, extra = producer's id */
  PTO_TRACE_DEP = 2,
  /* whoever saw the last producer complete; extra = its id if detail is 1. detail 0: all of them
   * were complete when it was submitted, or became so meanwhile */
  PTO_TRACE_READY = 3,
  /* scheduler; detail = core, extra = member << 32 | per-core sequence number */
  PTO_TRACE_DISPATCH = 4,
  PTO_TRACE_ACK = 5,      /* core; as DISPATCH */
  PTO_TRACE_RUN = 6,      /* core, of each member; time = start, extra = end; detail = core */
  PTO_TRACE_COMPLETE = 7, /* scheduler saw FIN; detail = core, extra = 1 when the task failed */
  /* orchestrator: slot and memory are free again; detail = of how many tasks of the ring behind it
   * they are, too */
  PTO_TRACE_RETIRE = 8,
  /* orchestrator; detail = depth, extra = line << 32 | file << 16 | 1 begin, 0 end */
  PTO_TRACE_SCOPE = 9,
  /* orchestrator; time = start, extra = end; detail = ring | PTO_STALL_* << 8 */
  PTO_TRACE_STALL = 10,
  PTO_TRACE_PART = 11, /* core, before the RUN of a part; detail = kernel id, extra = block */
  /* orchestrator, after a submit and after tasks are retired: detail = ring, task = bytes of its
   * heap that are in use, extra = entries of its dependency pool << 32 | nodes of the TensorMap */
  PTO_TRACE_OCCUPANCY = 12,
  /* core, between PART and RUN; time = start of RUN, extra = so long of it the kernel has waited
   * for others */
  PTO_TRACE_WAIT = 13,
  /* core, which stands for a child that shares no memory with us; time = start, extra = end: some
   * of a tensor's contents travelled, or did not have to. task: for which task, or PTO_TASK_NONE;
   * detail = core, and PTO_TRACE_TRANSFER_BACK if they came from there. BYTES follows. */
  PTO_TRACE_TRANSFER = 14,
  /* Words that belong to the record before them, and no time; orchestrator.
   * An argument of the task that is submitted next: time = the scalar, or where the tensor's first
   * element is; task = the task; detail = index; extra = dimensions << 16 | dtype << 8 |
   * PTO_PARAM_*. */
  PTO_TRACE_ARG = 32,
  /* Of a tensor, dimensions first to last: two of them, in time the elements of each (second <<
   * 32 | first), in task the strides alike; detail = the first. */
  PTO_TRACE_SHAPE = 33,
  /* The same of one dimension for which 32 bits are too few. */
  PTO_TRACE_SHAPE_WIDE = 34,
  /* After its submit, of a task of several parts: time = blocks; extra = 1 + cohort << 32 (0: any)
   * | PTO_TRACE_PARTS_*. Without members its blocks run wherever there is room. */
  PTO_TRACE_PARTS = 35,
  /* Behind PARTS, a member that names its place; detail = member, extra = place. */
  PTO_TRACE_PLACE = 36,
  /* After its submit: the task waits for its turn at the token extra. */
  PTO_TRACE_CLAIM = 37,
  /* The cohort extra is the orchestration's own from now on (detail 1), or not any more (0). */
  PTO_TRACE_HOLD = 38,
  /* Before all others, on the virtual clock: a step of the chip's own, PTO_TRACE_COST_* in detail,
   * takes extra ns. */
  PTO_TRACE_COST = 39,
  /* After its submit, of a task by which others reduce into the same memory at the same time:
   * detail = PTO_TRACE_REDUCE_*, extra = the set, by number. time = of who fills how many copies
   * there is memory for; of who updates the token of its copy. */
  PTO_TRACE_REDUCE = 40,
  /* Behind TRANSFER: time = bytes that travelled, extra = bytes that were there already. */
  PTO_TRACE_BYTES = 41
};
/* Of a TRANSFER's detail. */
#define PTO_TRACE_TRANSFER_BACK UINT32_C (0x80000000)
/* The task of a RETIRE that is so many behind its first. */
#define PTO_TRACE_RETIRED(first, n) \
  PTO_TASK_ID (PTO_TASK_RING (first), PTO_TASK_LOCAL (first) + (n))
/* Are these words of the record before them? */
#define PTO_TRACE_IS_WORDS(kind) ((kind) >= PTO_TRACE_ARG)
/* Is its extra the time of its end? */
#define PTO_TRACE_HAS_END(kind) \
  ((kind) == PTO_TRACE_RUN || (kind) == PTO_TRACE_STALL || (kind) == PTO_TRACE_TRANSFER)
#define PTO_TRACE_ARG_TYPE(extra) ((uint32_t) (extra) &0xffu)
#define PTO_TRACE_ARG_DTYPE(extra) ((uint32_t) ((extra) >> 8) & 0xffu)
#define PTO_TRACE_ARG_NDIMS(extra) ((uint32_t) ((extra) >> 16) & 0xffu)
/* Of a task without a kernel that is there for the memory that it outputs. */
#define PTO_TRACE_ALLOC (UINT32_MAX - 1)
#define PTO_TRACE_FILE(extra) ((uint32_t) ((extra) >> 16) & 0xfffu)
#define PTO_TRACE_PRIORITY(extra) ((uint32_t) ((extra) >> 28) & 0xfu)
/* Of PARTS: members, how many of them are a block that begins at once, whether they are together.
 */
#define PTO_TRACE_PARTS_MEMBERS(extra) ((uint32_t) (extra) &0xffffu)
#define PTO_TRACE_PARTS_BLOCK(extra) ((uint32_t) ((extra) >> 16) & 0x7fffu)
#define PTO_TRACE_PARTS_TOGETHER(extra) (((extra) >> 31 & 1) != 0)
#define PTO_TRACE_PARTS_COHORT(extra) ((uint32_t) ((extra) >> 32) - 1)
#define PTO_TRACE_LINE(extra) ((uint32_t) ((extra) >> 32))

enum
{
  PTO_TRACE_COST_DISPATCH,
  PTO_TRACE_COST_POLL,
  PTO_TRACE_COST_FANOUT,
  PTO_TRACE_COST_START,
  PTO_TRACE_COST_FINISH,
  PTO_TRACE_N_COSTS
};

enum
{
  PTO_TRACE_REDUCE_FILL,
  PTO_TRACE_REDUCE_UPDATE,
  PTO_TRACE_REDUCE_COMBINE /* two copies; and last a copy with what is reduced into */
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

/* Of how many tasks it speaks. */
static inline uint64_t
pto_trace_n_tasks (const struct pto_trace_record *record)
{
  return 1 + (record->kind == PTO_TRACE_RETIRE ? (uint64_t) record->detail : 0);
}

/* A cache line each: owners are on different CPUs. */
struct pto_trace_buffer
{
  alignas (64) struct pto_trace_record *records;
  uint64_t count; /* W: the owner, R: anybody once the run is over */
  uint64_t dropped;
  uint64_t capacity;
  uint32_t level; /* enum pto_trace_level. W: between runs */
};

/* Source files that submits and scopes stand in, by number. Owner: the orchestrator. Their names
 * are copies: who wrote them may be unloaded before somebody reads the record. */
#define PTO_TRACE_FILES_MAX 256u
_Static_assert(PTO_TRACE_FILES_MAX <= 0xfffu, "a SUBMIT has 12 bits for them");
struct pto_trace_files
{
  char *names[PTO_TRACE_FILES_MAX];
  uint32_t n;
  const char *last; /* as it was given the last time, and its number */
  uint32_t last_number;
};

struct pto_trace
{
  struct pto_trace_buffer *buffers; /* [0] the orchestrator, then schedulers, then cores */
  uint32_t n_buffers;
  struct pto_trace_files files;
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

/* 1 + its number; 0: it is NULL, or one too many. */
uint32_t pto_trace_find_file (struct pto_trace_files *files, const char *name);

/* Does it record what comes with that level? A NULL buffer records nothing. */
static inline bool
pto_trace_has (const struct pto_trace_buffer *buffer, enum pto_trace_level level)
{
  return __builtin_expect (buffer != NULL, 0) && buffer->level >= (uint32_t) level;
}

/* Owner of the buffer. */
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
