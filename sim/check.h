/* check.h: which bytes does each task touch, and may it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A chip whose accesses are checked has kernels that say what they touch (pto_access.h). While one
 * runs, its core has a context: for each block of memory that the kernel comes to, what its task's
 * arguments let it read and write there, and what it has. When it is over, and where it meets the
 * other kernels of its task, that becomes ranges of bytes, which are kept with the task until the
 * next run begins. What they mean is said when the run is over (check-blocks.c, check-order.c,
 * check-report.c), from what every task declared, did and comes after, so that it does not depend
 * on who ran when.
 *
 * Thread safety: the witness is the submitter's; a context its core's; what is kept of a task that
 * ran is added under a lock; all else is for who has run, between runs.
 */
#pragma once

#include "pto/api/pto_access.h"
#include "pto/core/engine.h"
#include "pto/core/region.h"

#include <pthread.h>

/* Tasks of a run that are looked at. */
#define PTO_CHECK_TASKS_MAX (1u << 22)
#define PTO_CHECK_NONE UINT32_MAX

/* Unknown memory counts as meant for a view up to so many bytes before and after it. */
#define PTO_CHECK_NEAR_BYTES 4096u

/* Bits of the types that hold nothing for a kernel before it has written there. */
#define PTO_CHECK_OUTPUTS \
  (1u << PTO_PARAM_OUTPUT | 1u << PTO_PARAM_OUTPUT_EXISTING | 1u << PTO_PARAM_SCRATCH)

/* What a range of bytes was to the task that touched it. */
enum
{
  PTO_CHECK_WRITTEN = 1, /* otherwise it was only read */
  PTO_CHECK_OUTSIDE = 2, /* in none of its views */
  PTO_CHECK_WRONG = 4,   /* written, though all views there are inputs */
  PTO_CHECK_EARLY = 8,   /* read, though all views there are outputs, and not written before */
  PTO_CHECK_ATOMIC = 16, /* by an atomic operation */
  PTO_CHECK_STALE = 32,  /* read as an input after it was written as an output */
  PTO_CHECK_FIRST = 64   /* written, but read before */
};
/* What makes a range a finding by itself. */
#define PTO_CHECK_UNUSUAL (PTO_CHECK_OUTSIDE | PTO_CHECK_WRONG | PTO_CHECK_EARLY | PTO_CHECK_STALE)

struct pto_check_piece
{
  uint64_t lo;
  uint64_t hi;
};

struct pto_check_range
{
  uint64_t lo;
  uint32_t n;
  uint32_t what;
};

/* A kernel read the bytes to see whether another one has written them. */
struct pto_check_look
{
  uint64_t address;
  uint32_t n;
  bool is_atomic;
  bool is_sure;  /* the kernel has come back to it after pto_relax() */
  uintptr_t pc;  /* of the read */
  uint64_t time; /* after the read; PTO_CHECK_PENDING: it may not be done */
};
#define PTO_CHECK_PENDING UINT64_MAX

/* A kernel read new memory. Nothing shows that it was written but other bytes of the same piece
 * (check-unseen.c). Whether another kernel of the task wrote these is known after the run. Bits of
 * 64 bytes. */
struct pto_check_doubt
{
  uint64_t at;
  uint64_t read;
  uint64_t changed; /* other bytes, of which the kernel itself had told nothing */
};

/* What a kernel touched between two points where it waits for others, or others for it. */
struct pto_check_part
{
  struct pto_check_part *next;   /* of the task */
  struct pto_check_part *before; /* of the same kernel */
  uint64_t begin;                /* no part that it comes after has a higher number */
  uint64_t end;
  uint64_t released;             /* the address of the atomic write that ended it; 0: none */
  struct pto_check_part **after; /* parts of other kernels that it comes after */
  struct pto_check_look *looks;
  struct pto_check_doubt *doubts;
  uint32_t n_after;
  uint32_t n_looks;
  uint32_t n_doubts;
  uint32_t mark;   /* check-waits.c */
  uint32_t task;   /* number */
  bool is_linked;  /* it or a part before it comes after a part of another kernel */
  uint32_t kernel; /* number of the kernel */
  uint32_t block;
  uint32_t member; /* which of the kernels of its block */
  uint32_t round;  /* meetings (pto_sync_all()) before it */
  bool declared;   /* ranges were not seen, but come from the arguments */
  bool writes_all; /* the kernel has said so */
  bool by_runtime; /* no kernel: a condition, or an element for the orchestration */
  uint32_t n;
  struct pto_check_range ranges[];
};

struct pto_check_arg
{
  struct pto_region region;
  uint64_t buffer; /* all of the memory that it is a view of */
  uint64_t bytes;
  uint64_t data;  /* the TensorData that the kernel gets */
  uint64_t moved; /* from its view to the copy that the kernel gets instead; 0: it gets the view */
  uint8_t type;   /* PTO_PARAM_* */
  uint8_t dtype;  /* enum pto_dtype */
  uint16_t index; /* among all of the task */
  uint16_t owner; /* the member of a group that alone gets it, from 1 on; 0: all do */
  uint16_t first; /* the index of that member's first one */
};

/* check-apart.c: a view that is a copy while its task runs. */
struct pto_check_apart
{
  struct pto_check_apart *next;
  struct pto_check_arg *arg;
  uint8_t *before; /* what was in it */
};

/* By number: in the order of submits. */
struct pto_check_task
{
  pto_task_id id;
  uint32_t kernel;
  uint32_t file; /* of pto_check.files; 0: nobody knows */
  int32_t line;
  uint32_t n_args; /* those that are tensors */
  uint32_t n_words;
  uint64_t words; /* arguments as the kernel gets them */
  struct pto_check_arg *args;
  uint32_t first_edge; /* in the order of consumers; those that come later have their own list */
  uint32_t n_edges;
  uint32_t n_waits;  /* of the orchestration, before it was submitted */
  uint32_t n_blocks; /* under the lock; 0: no kernel has begun */
  uint32_t n_left;   /* kernels that have returned; likewise */
  bool has_kernels;  /* several kernels to a block, or one for each block; under the lock */
  bool at_once;      /* all its kernels begin together; under the lock */
  bool hides_stores; /* one of them may write without saying so; likewise */
  bool by_hand;      /* nothing was looked up for it */
  bool is_linked;    /* of a graph that was built by hand */
  uint64_t heap_lo;  /* memory that was made for it; what was there before is over */
  uint64_t heap_hi;
  struct pto_check_part *parts;  /* under the lock */
  struct pto_check_apart *apart; /* while its kernels run; likewise */
  /* What check-unseen.c needs to know while kernels of the task run, and what it found then. */
  uint64_t *filled; /* W: under the lock, when the first kernel begins and the last one has ended */
  struct pto_check_piece *found;
  uint32_t n_found;
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
  _Atomic uint64_t clock;         /* orders parts */
  uint64_t run;                   /* no two runs have the same */
  struct pto_check_piece *owned;  /* under the lock: what kernels have allocated */
  uint32_t n_owned;
  uint32_t owned_capacity;
  struct pto_check_numbers sure;         /* under the lock: pcs of looks that are sure, halves */
  bool has_links;                        /* some part comes after a part of another kernel */
  uint32_t mark;                         /* of the last search in check-waits.c */
  const struct pto_check_part *searched; /* what that search was about; NULL: tasks */

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
/* check-witness.c: it witnesses the engine's runs from here on. */
void pto_check_witness_runs (struct pto_check *check);
/* check-part.c */
void pto_check_free_part (struct pto_check_part *part);
/* check-apart.c: forgets the copies. */
void pto_check_free_apart (struct pto_check_task *task);
/* check-touch.c: frees the contexts that no kernel has. */
void pto_check_free_contexts (struct pto_check *check);
/* Returns false if there is no memory. */
bool pto_check_append (struct pto_check_numbers *numbers, uint32_t value);
/* Before a run: forgets the one before. */
void pto_check_begin_run (struct pto_check *check);
/* After a run, while its kernels are there: keeps their names, and sorts the parts of each task. */
void pto_check_end_run (struct pto_check *check);

/* The submitter: the orchestration reads or writes an element in the name of a task without a
 * kernel, which it has waited for. */
void pto_check_element (struct pto_check *check, pto_task_id task, const void *data, uint32_t bytes,
                        bool writes);

/* A call of a kernel. */
struct pto_check_call
{
  pto_task_id task;
  uint32_t kernel;
  uint32_t block;
  uint32_t n_blocks;
  uint32_t n_kernels; /* of all blocks */
  uint32_t member;    /* which of the kernels of its block */
  bool has_kernels;
  bool at_once;      /* all of them begin together */
  bool instrumented; /* the kernel says what it touches; otherwise its arguments do */
  bool hides_stores; /* it may write without saying so */
  /* Some kernel of the task may wait for what kernels of other tasks do while they run, or tell
   * them something. */
  bool talks;
  /* Arguments of the task that the kernel gets, from the first one on. Unless it gets all, they are
   * those of this member of its group alone. */
  uint32_t owner;
  uint32_t first_arg;
  uint32_t n_args;
  const void *own; /* memory of the core that the kernel is given, such as arguments */
  size_t own_bytes;
};
/* Around the call of a kernel, on its thread and its stack. NULL: no memory, or the task is not
 * looked at; the others take that. */
struct pto_check_context *pto_check_enter (struct pto_check *check,
                                           const struct pto_check_call *call);
void pto_check_leave (struct pto_check_context *context);
/* Between the two, where it goes on after others may have run on this thread. */
void pto_check_resume (struct pto_check_context *context);
/* Between the two, on the thread that the kernel is called on, if that is another one. */
void pto_check_go_on_here (struct pto_check_context *context);
/* Between the two: libpto reads or writes on the kernel's behalf. */
void pto_check_note (struct pto_check_context *context, const void *data, uint64_t bytes,
                     bool writes);
/* Between the two, at a meeting of all kernels of the task: before it waits for the others, and
 * when all have come. */
/* Where kernels wait for each other: a point that one has come to, which the other one goes on
 * after. */
struct pto_check_point
{
  uint64_t run;
  struct pto_check_part *part;
};
/* Between the two: the kernel has come to a point. */
void pto_check_release (struct pto_check_context *context, struct pto_check_point *point);
/* Between the two: it goes on after a point of another kernel. of_block: unless that is of another
 * task, or another block. */
void pto_check_acquire (struct pto_check_context *context, const struct pto_check_point *point,
                        bool of_block);
/* Between the two: it is in a loop that waits for what another one writes. */
void pto_check_relax (struct pto_check_context *context);
void pto_check_arrive (struct pto_check_context *context);
void pto_check_meet (struct pto_check_context *context);

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
/* Returns how many bytes the address is from the closest one of the region. 0: the region has it.
 */
uint64_t pto_check_region_distance (const struct pto_region *region, uint64_t address);
/* The first argument of the task there whose type is in types, a bit each; NULL: none. */
const struct pto_check_arg *pto_check_find_arg (const struct pto_check_task *task, uint64_t address,
                                                uint32_t types);
/* Was the memory of the argument made for the task? */
bool pto_check_is_new (const struct pto_check_task *task, const struct pto_check_arg *arg);
/* Is it read to see whether the kernel is to run? */
bool pto_check_is_condition (const struct pto_check_task *task, const struct pto_check_arg *arg);
/* Does it lie in memory that the runtime makes for tasks? */
bool pto_check_is_in_rings (const struct pto_check *check, const struct pto_check_arg *arg);
/* Its number; PTO_CHECK_NONE. */
uint32_t pto_check_number (const struct pto_check *check, pto_task_id id);

/* check-unseen.c: returns the bits of the whole pieces of an element type where one is set. */
uint64_t pto_check_spread (uint64_t bits, uint8_t dtype);

/* check-bounds.c: sorts them, ascending, and leaves one of each. Returns how many are left. */
uint64_t pto_check_sort_bounds (uint64_t *bounds, uint64_t n);
/* Returns the number of the last bound that is not above the address; 0 if all are. */
uint32_t pto_check_find_bound (const uint64_t *bounds, uint32_t n, uint64_t address);

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
/* A task reads bytes of an output that no task has written. */
struct pto_check_void
{
  uint32_t maker;
  uint32_t reader;
  uint64_t lo;
  uint64_t hi;
};
/* Findings about several tasks: up to max of each, and how many there are. */
struct pto_check_orders
{
  struct pto_check_pair *pairs;
  struct pto_check_void *voids;
  uint32_t max;
  uint64_t n_pairs;
  uint64_t n_voids;
};
/* Finds them, and the last writer of each byte. Returns false without memory. */
bool pto_check_find_orders (struct pto_check *check, struct pto_check_orders *orders);
/* check-waits.c: after the run. Makes edges between parts of what kernels have looked at. Returns
 * false if there is no memory. */
bool pto_check_find_waits (struct pto_check *check);
/* Whether the part comes after the other one by what kernels waited for. precedes: whether a task
 * comes after another one by its edges; NULL: they are of the same task. */
bool pto_check_is_after (struct pto_check *check, struct pto_check_part *part,
                         const struct pto_check_part *other,
                         bool (*precedes) (void *data, uint32_t first, uint32_t second),
                         void *data);
/* Whether the kernel only looks at bytes from lo to hi there, to wait for them. */
bool pto_check_only_looks (const struct pto_check *check, const struct pto_check_part *part,
                           uint64_t lo, uint64_t hi);

/* check-blocks.c: two kernels of one task that touch the same bytes, with no meeting between. */
struct pto_check_clash
{
  uint32_t task;
  struct pto_check_part *first;
  struct pto_check_part *second;
  bool first_writes;
  bool second_writes;
  uint64_t lo;
  uint64_t hi;
  uint64_t more; /* other pairs that clash likewise in the same argument */
};
/* Finds up to max of them, after pto_check_end_run(); *n: how many there are. Returns false if
 * there is no memory. */
bool pto_check_find_clashes (struct pto_check *check, struct pto_check_clash *clashes, uint32_t max,
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
