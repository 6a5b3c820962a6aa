/* pool.h: what is said to which child, and what follows when it answers or dies?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The endpoints of a level: each child is a place (core/core-placement.h), which is away while the
 * child can not be given a task, and gone when it is. Which task goes where is the scheduler's to
 * say: a pool does not know what waits. It knows links and who is dead; it does not know rings,
 * dependencies or forks.
 *
 * The pump, one actor in the scheduler's domain, looks at the hub's bits, collects answers, asks
 * children what they have to be asked besides tasks, and signals what has ended. Scheduler and pump
 * are carried by one thread at a time and change places only where they park: what is said to be
 * the carrier's needs no locks and no atomics.
 */
#pragma once

#include "core/scheduler.h"
#include "child.h"
#include "write-log.h"

/* A request to several children. Counted: who asked may leave before it is done.
 *
 * REGISTER is in two phases. Each target is asked, and says yes or no; when all have said yes, and
 * none of those has died since, that is decided, the request is done, and becomes COMMIT for the
 * same ones. The first no, and the first death after a yes, ends it, and nobody else is asked:
 * whoever has asked takes it back, by UNREGISTER to all. Each child is asked in the order of the
 * requests and before its next task, so who asked need not wait for COMMIT, nor for UNREGISTER:
 * what is submitted after it is done finds it done, there, too. Who dies after the decision has the
 * registration from birth, when it is begun again. */
struct pto_control
{
  enum pto_request request; /* REGISTER, UNREGISTER, CLOSE, TRACE, MEMORY; W: caller, then pump */
  bool last;                /* CLOSE: the end has come for all; nobody is given long any more */
  bool far;                 /* the body stays where it is, which children see, too */
  void *body;
  uint64_t bytes;
  void (*free_body) (void *body, uint64_t bytes); /* NULL: the control's own memory */
  uint8_t digest[PTO_DIGEST_BYTES];
  uint64_t targets[PTO_CHILDREN_MAX / 64]; /* in: who is asked; clear when done */
  /* Not wanted any more: who was not asked yet will not be. W: caller; R: pump. Relaxed, a ring
   * follows. */
  _Atomic uint32_t cancel;
  /* out, when done: who has said yes; the first no */
  uint64_t accepted[PTO_CHILDREN_MAX / 64];
  uint32_t refused; /* index of the child that said it; UINT32_MAX: nobody */
  bool lost;        /* it died instead; then failure's text is describe()'s ... */
  bool agreed;      /* ... when it had said yes, and others had not */
  enum pto_status status;
  struct pto_failure failure;
  /* W: pump, release, after all of the above; R: the caller, who parks here (no actor: without an
   * executor). */
  struct pto_word done;
  _Atomic uint32_t references; /* of who asked, and of the pool */
  /* Memory that children work on, left to the request by who did not wait for its end; NULL: none.
   * W: caller, before it lets go; R: who lets go last. */
  void (*free_left) (uint64_t address, uint64_t bytes);
  uint64_t left;
  uint64_t left_bytes;

  /* the pump's */
  uint32_t outstanding; /* asked, not answered; in this phase */
  struct pto_control *next;
};

enum pto_failure_kind
{
  PTO_FAILURE_ANSWERED,    /* the child says what went wrong */
  PTO_FAILURE_LOST,        /* it died while it ran the task */
  PTO_FAILURE_LOST_BEFORE, /* it died before it began with it */
  PTO_FAILURE_LEFT,        /* it died, with what the task needs and had been left there */
  PTO_FAILURE_NO_WORKER    /* it, or everyone who could have run the task, was gone before */
};

/* How closely children are looked after. */
enum pto_pace
{
  PTO_PACE_IDLE, /* no request is under way */
  PTO_PACE_SLOW,
  PTO_PACE_FAST /* somebody has been asked to stop */
};

/* The first task of a run that failed by itself, and what came of it. */
struct pto_first_failure
{
  pto_task_id task; /* PTO_TASK_NONE: none */
  uint64_t roots;   /* tasks that failed by themselves; the others were poisoned */
  enum pto_failure_kind kind;
  uint32_t n_lost; /* so often it was lost before, and run again */
  enum pto_status status;
  struct pto_failure failure; /* not ANSWERED: text is what describe() said */
  char path[96];              /* of the child */
  char name[64];              /* of the callable */
  char place[160];            /* ", submitted at x.c:12"; "": that is not known */
  char words[256];            /* not ANSWERED: the last that the child said; "": nothing */
};

/* Bytes of tensors, to children that share no memory with us and back. */
struct pto_moved
{
  uint64_t sent, received;
  uint64_t saved; /* were to be sent, and were there already */
};

struct pto_pool_config
{
  const char *path; /* of the worker, for messages */
  struct pto_hub *hub;
  struct pto_child *children; /* pto_child_init(); START is posted to each */
  struct pto_writes *writes;  /* is told what tasks write; NULL: nobody keeps copies */
  uint32_t n_children;
  /* How often ticks are wanted from now on. Carrier; called whenever it changes, so cheap. */
  void (*pace) (void *data, enum pto_pace pace);
  void *data;
  /* In pool time: the sum of all ticks, so that a machine that slept counts for nothing. */
  struct pto_child_limits limits;
  uint64_t group_ns; /* a member whose group has failed */
  uint32_t retries;  /* a task that was lost is run again so often, if it may be */
};

struct pto_pool;

/* Ready queues that the engine must have for such children: one of each kind and level, and one for
 * what needs no child. */
uint32_t pto_pool_n_queues (const struct pto_child *children, uint32_t n_children);
/* NULL: no memory. */
struct pto_pool *pto_pool_new (struct pto_engine *engine, struct pto_exec *exec,
                               const struct pto_pool_config *config);
void pto_pool_free (struct pto_pool *pool);
/* For pto_scheduler_init(): children are places with their index for a number. */
struct pto_endpoint **pto_pool_endpoints (struct pto_pool *pool, uint32_t *n);
/* The actor, in the scheduler's domain. Parks on the hub's bell. */
void pto_pool_pump (void *pool);
/* Any thread: the pump returns when no request is under way. */
void pto_pool_stop (struct pto_pool *pool);

/* --- guest --- */

/* Between runs. */
void pto_pool_begin_run (struct pto_pool *pool);
/* When the engine has begun it: what of tensors travels is of the run from here on, and until all
 * its tasks are over and what they have left has come; told then. */
void pto_pool_begin_traffic (struct pto_pool *pool);
struct pto_moved pto_pool_end_traffic (struct pto_pool *pool);
/* And before it: the next run's tasks are recorded, when each was handed to a child by whoever is
 * the scheduler, and when it began and ended there in the child's own buffer; or, with NULL, are
 * not. number: told to the children, never 0. */
void pto_pool_record (struct pto_pool *pool, struct pto_trace_buffer *scheduler,
                      struct pto_trace_buffer *children, uint32_t number);
/* Likewise: do the children check the accesses of what they run in its tasks? */
void pto_pool_check (struct pto_pool *pool, bool checks);
/* Memory of the run is about to be the program's: what is left somewhere of what it was is not
 * wanted any more. Inside of a run, or after it; may switch to another actor. */
void pto_pool_forget_left (struct pto_pool *pool, uint64_t begin, uint64_t end);
/* After the last task of a run, when children are idle: what is left somewhere of memory that is
 * not the run's own comes here; not when that is not wanted any more, which is asked meanwhile.
 * Inside of the executor; switches to other actors. */
enum pto_status pto_pool_bring_back (struct pto_pool *pool, bool (*cancelled) (void *data),
                                     void *data, struct pto_report *report);
/* After the last task of a run. */
const struct pto_first_failure *pto_pool_first_failure (const struct pto_pool *pool);
/* What each of its members needs, as the engine is told; or why such a task could never run, before
 * it is submitted: no child of that kind and level, an unknown worker, a group larger than its
 * kind, a worker named twice, arguments too large. bytes: of the largest member's blob. */
enum pto_status pto_pool_place (const struct pto_pool *pool, const struct pto_level_task *task,
                                const struct pto_member *members, uint64_t bytes, uint32_t kernel,
                                struct pto_need *needs, struct pto_report *report);
/* Begins those of the lost again whose time has come; gives how many. Native stack. */
uint32_t pto_pool_begin_lost (struct pto_pool *pool);
/* One that is LOST, now. */
void pto_pool_begin_again (struct pto_pool *pool, struct pto_child *child);
/* How often tasks of this run were lost, and run again. */
uint64_t pto_pool_retried (const struct pto_pool *pool);
/* The first child that could not start, and will not; NULL: none. */
struct pto_child *pto_pool_start_failed (const struct pto_pool *pool);

/* --- any thread --- */

/* Without targets. Copies the body if it fits into a mailbox; a longer one is the caller's to
 * place (body, far, free_body). digest may be NULL. NULL: no memory. */
struct pto_control *pto_control_new (enum pto_request request, const uint8_t *digest,
                                     const void *body, uint64_t bytes);
void pto_control_unref (struct pto_control *control);
/* Queues a control request, once. REGISTER goes to all targets that are not gone, also those that
 * have to be begun again before; UNREGISTER and CLOSE not to the dead. Each child is asked in the
 * order of the requests. */
void pto_pool_control (struct pto_pool *pool, struct pto_control *control);
/* This run's results are not wanted any more: tasks that wait fail, children are asked to stop, and
 * those that are processes have so many ns for it, and workers a little more. Until the next run
 * begins. */
void pto_pool_cancel (struct pto_pool *pool, uint64_t patience_ns);
bool pto_pool_is_cancelled (const struct pto_pool *pool);
/* So much time has passed, as somebody counts it who sees when the machine does not run: the pump
 * looks at all children. */
void pto_pool_tick (struct pto_pool *pool, uint64_t ns);
/* Children that have been asked to start and have neither answered nor died. */
uint32_t pto_pool_starting (const struct pto_pool *pool);
/* Are there children that wait for the guest to begin them again? A hint. */
bool pto_pool_has_lost (const struct pto_pool *pool);
/* Sum of all children's beats: progress that the engine does not see. */
uint64_t pto_pool_beats (const struct pto_pool *pool);

/* A task's members, in its storage or in what is about to become it: behind the cut config. */
#define PTO_LEVEL_TASK_BYTES(config_bytes) \
  ((offsetof (struct pto_level_task, config) + (config_bytes) + 7) & ~(size_t) 7)

static inline const struct pto_member *
pto_level_task_members (const struct pto_level_task *task)
{
  return (const struct pto_member *) ((const char *) task
                                      + PTO_LEVEL_TASK_BYTES (task->config_bytes));
}

/* enum pto_wire_access of each tensor. */
static inline const uint8_t *
pto_level_task_access (const struct pto_level_task *task)
{
  return (const uint8_t *) (pto_level_task_members (task) + task->n_members);
}

/* Of a task that has kinds. */
static inline const uint8_t *
pto_level_task_kinds (const struct pto_level_task *task)
{
  return pto_level_task_access (task) + task->n_tensors;
}
