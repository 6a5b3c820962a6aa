/* check.h: which bytes does each task touch, and may it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A chip whose accesses are checked has kernels that say what they touch (pto_access.h). While one
 * runs, its core has a context: for each block of memory that the kernel comes to, what its task's
 * arguments let it read and write there, and what it has. When it is over that becomes ranges of
 * bytes, which are kept with the task until the next run begins. What they mean is said when the
 * run is over (check-order.c, check-report.c), from what every task declared, did and comes
 * after, so that it does not depend on who ran when.
 *
 * Thread safety: the witness is the submitter's; a context its core's; what is kept of a task that
 * ran is added under a lock; all else is for who has run, between runs.
 */
#pragma once

#include "../pto/api/pto_access.h"
#include "../pto/core/engine.h"
#include "../pto/core/region.h"

#include <pthread.h>

/* Tasks of a run that are looked at. */
#define PTO_CHECK_TASKS_MAX (1u << 22)
#define PTO_CHECK_NONE UINT32_MAX

/* What a range of bytes was to the task that touched it. */
enum
{
  PTO_CHECK_WRITTEN = 1, /* otherwise it was only read */
  PTO_CHECK_OUTSIDE = 2, /* in none of its views */
  PTO_CHECK_WRONG = 4,   /* written, though all views there are inputs */
  PTO_CHECK_EARLY = 8    /* read, though all views there are outputs, and not written before */
};

struct pto_check_range
{
  uint64_t lo;
  uint32_t n;
  uint32_t what;
};

/* Of one kernel that ran. */
struct pto_check_part
{
  struct pto_check_part *next;
  uint32_t n;
  uint32_t block;
  struct pto_check_range ranges[];
};

struct pto_check_arg
{
  struct pto_region region;
  uint64_t buffer; /* all of the memory that it is a view of */
  uint64_t bytes;
  uint8_t type;  /* PTO_PARAM_* */
  uint8_t dtype; /* enum pto_dtype */
  uint16_t index;
};

/* By number: in the order of submits. */
struct pto_check_task
{
  pto_task_id id;
  uint32_t kernel;
  uint32_t file; /* of pto_check.files; 0: nobody knows */
  int32_t line;
  uint32_t n_args; /* those that are tensors */
  struct pto_check_arg *args;
  uint32_t first_edge; /* in the order of consumers; those that come later have their own list */
  uint32_t n_edges;
  uint32_t n_waits; /* of the orchestration, before it was submitted */
  uint32_t n_parts;
  bool by_hand;     /* nothing was looked up for it */
  bool is_linked;   /* of a graph that was built by hand */
  uint64_t heap_lo; /* memory that was made for it; what was there before is over */
  uint64_t heap_hi;
  struct pto_check_part *parts; /* under the lock */
};

/* consumer comes after producer: both numbers of tasks. */
struct pto_check_edge
{
  uint32_t consumer;
  uint32_t producer;
};

struct pto_check_numbers
{
  uint32_t *items;
  uint32_t n;
  uint32_t capacity;
};

struct pto_check_cell;

struct pto_check
{
  struct pto_engine *engine;
  struct pto_witness witness;
  struct pto_trace_files files;
  struct pto_check_task *tasks; /* reserved; W: the submitter, before the task can run */
  uint32_t *numbers[PTO_RINGS]; /* of tasks, by position in the ring; likewise */
  uint32_t n_tasks;
  uint64_t n_unseen;                   /* tasks beyond those that there is room for */
  struct pto_check_numbers past;       /* producers of the next task */
  struct pto_check_numbers edges;      /* producers, task by task */
  struct pto_check_numbers late;       /* pairs: consumer, producer */
  struct pto_check_numbers waits;      /* for that task; PTO_CHECK_NONE: for all before ... */
  struct pto_check_numbers wait_tasks; /* ... this number */
  void *chunk;                         /* of arguments; each begins with the one before */
  size_t chunk_used;
  size_t chunk_size;
  bool lost; /* no memory for something: said with what is found */
  pthread_mutex_t lock;
  struct pto_check_context *idle; /* under the lock: who was last is next, as caches like it */
  uint64_t n_ranges;              /* under the lock */

  /* --- after a run --- */
  /* Of kernels by number, as they are called in the run: they may be gone when somebody asks. */
  char **names;
  uint32_t n_names;
  /* check-order.c */
  uint64_t *bounds; /* ascending: where cells begin, and the last one ends */
  uint32_t n_bounds;
  uint32_t *last; /* of each cell, who has written it last */
};

/* Of a kernel that runs. */
struct pto_check_context;

/* NULL: no memory. It witnesses the engine's runs from here on. */
struct pto_check *pto_check_new (struct pto_engine *engine);
void pto_check_free (struct pto_check *check);
/* Before a run: forgets the one before. */
void pto_check_begin_run (struct pto_check *check);
/* Behind a run, while its kernels are there: what they are called is kept. */
void pto_check_end_run (struct pto_check *check);

/* Around the call of a kernel, on its thread and its stack. instrumented: it says what it touches;
 * otherwise it is taken at its arguments' word. own: memory of the core's that the kernel is given,
 * such as arguments. NULL: no memory, or the task is not looked at; the others take that. */
struct pto_check_context *pto_check_enter (struct pto_check *check, pto_task_id task,
                                           uint32_t block, bool instrumented, const void *own,
                                           size_t own_bytes);
void pto_check_leave (struct pto_check_context *context);
/* Between the two, where it goes on after others may have run on this thread. */
void pto_check_resume (struct pto_check_context *context);
/* Between the two: libpto reads or writes on the kernel's behalf. */
void pto_check_note (struct pto_check_context *context, const void *data, uint64_t bytes,
                     bool writes);

/* --- after a run --- */

/* Where a region has its pieces. */
struct pto_check_pieces
{
  const struct pto_region *region;
  uint64_t index[PTO2_TENSOR_MAX_DIMS];
  bool done;
};
void pto_check_pieces_begin (struct pto_check_pieces *pieces, const struct pto_region *region);
/* false: there are no more. */
bool pto_check_pieces_next (struct pto_check_pieces *pieces, uint64_t *lo, uint64_t *hi);
bool pto_check_region_has (const struct pto_region *region, uint64_t address);
/* The first argument of the task there whose type is in types, a bit each; NULL: none. */
const struct pto_check_arg *pto_check_find_arg (const struct pto_check_task *task, uint64_t address,
                                                uint32_t types);
/* Its number; PTO_CHECK_NONE. */
uint32_t pto_check_number (const struct pto_check *check, pto_task_id id);

/* check-order.c: two tasks in no order that touch the same bytes; first was submitted first. */
struct pto_check_pair
{
  uint32_t first;
  uint32_t second;
  bool first_writes;
  bool second_writes;
  uint64_t lo;
  uint64_t hi;
};
/* Finds them, up to max; gives how many there are. And who has written what last. false: no
 * memory. */
bool pto_check_find_pairs (struct pto_check *check, struct pto_check_pair *pairs, uint32_t max,
                           uint64_t *n);
/* Who has written the byte last; PTO_CHECK_NONE: nobody of the run. */
uint32_t pto_check_last_writer (const struct pto_check *check, uint64_t address);

/* check-report.c: all that was found, as the error of a run that ended with status: given back, or
 * PTO_STATUS_ACCESS. known: memory that the run has beside that of its tasks' arguments and its
 * rings. */
enum pto_status pto_check_report (struct pto_check *check, enum pto_status status,
                                  const struct pto_check_range *known, uint32_t n_known,
                                  struct pto_report *report);
/* "task 3 of ring 0 (mul), submitted at x.cpp:12, as argument 2 (OUTPUT)"; empty: nobody. */
void pto_check_describe_writer (struct pto_check *check, uint64_t address, char *text, size_t size);
