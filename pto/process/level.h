/* level.h: a worker of level 3 or up: an engine, a pool of children, and who looks after them.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The counterpart of sim/chip.h. Knows how engine, scheduler, pool, processes and keeper are put
 * together and in which order they begin and end; does not know callables (bytes and a digest) nor
 * GLib. pto_level_fork() before any thread of ours, pto_level_start() after it.
 *
 * Owner thread as for a chip: one thread at a time; pto_level_control(), pto_level_renew() and
 * pto_level_cancel() any thread.
 */
#pragma once

#include "api/pto_orchestration_api.h"
#include "core/graph-plan.h"
#include "core/parameters.h"
#include "core/record-run.h"
#include "core/runtime.h"
#include "process.h"
#include "service.h"

struct pto_level_config
{
  char path[80];
  uint32_t level;
  const struct pto_params *params; /* of the engine; timeout; task-timeout; stop-timeout; arena */
  bool restart;                    /* begin a child that has died again */
  pto_fork_func fork;
  void *fork_data;
  const struct pto_child_config *children;
  uint32_t n_children;
  const char *(*callable_name) (void *data, uint32_t index); /* for messages */
  void *callable_name_data;
  /* As pto_chip_set_log(). */
  void (*log) (void *data, int32_t severity, const char *message);
  void *log_data;
};

struct pto_level;
struct pto_submit; /* core/submission.h */
struct pto_writes; /* write-log.h */
struct pto_watch;  /* core/memory-observer.h */

/* Maps rings, hub, mailboxes, arena. No process, no thread. */
struct pto_level *pto_level_new (const struct pto_level_config *config, struct pto_report *report);
/* Forks all process children, then those of thread children. On the caller's native stack. After a
 * failure there is only pto_level_free(). */
enum pto_status pto_level_fork (struct pto_level *level, struct pto_report *report);
/* Starts thread children and the keeper, waits until every child has answered START. Those that a
 * lock of another thread has caught are forked again, on the caller's native stack. The first
 * failure is reported with its path; then there is only pto_level_give_up_start(). cancelled may be
 * NULL. */
enum pto_status pto_level_start (struct pto_level *level, bool (*cancelled) (void *data),
                                 void *data, struct pto_report *report);
/* Ends all of them, who have nothing worth closing; then there is only pto_level_free(). Nobody
 * looks at it any more. */
void pto_level_give_up_start (struct pto_level *level);
/* CLOSE to all, two seconds, then SIGKILL; reaps all; ends threads; unmaps. In a process that is
 * not the one that made it: nothing, what it has is the parent's. NULL: nothing. */
void pto_level_free (struct pto_level *level);

/* Before the fork: what is written, and what children count; NULL: nobody keeps copies. */
struct pto_writes *pto_level_writes (const struct pto_level *level);

/* As pto_machine_take_heaps(). Not in a child. */
void pto_level_take_heaps (struct pto_level *level, struct pto_heaps *heaps);

/* As pto_chip_run(). record: how much of it is recorded (enum pto_trace_level); 0: as
 * the parameters say; watch: who looks at its tasks' memory if that is all (memory-observer.h),
 * NULL: nobody. A task that fails does not end the run: the first failure is its result. failure:
 * domain, code and text as the object layer tells it; may be NULL, as stats and cancelled.
 * orchestrate sees level's rt; a result other than 0 fails the run. */
enum pto_status pto_level_run (struct pto_level *level, uint32_t record, struct pto_watch *watch,
                               bool (*cancelled) (void *data), void *cancelled_data,
                               int (*orchestrate) (PTO2Runtime *rt, void *data), void *data,
                               struct pto_run_stats *stats, struct pto_failure *failure,
                               struct pto_report *report);

/* Between runs: whether chips below check the accesses of their kernels in the runs from here on,
 * in every task, whatever its configuration says. */
void pto_level_check (struct pto_level *level, bool checks);

/* The last run; NULL when it was not recorded. Valid until the next. */
const struct pto_trace *pto_level_trace (struct pto_level *level);
void pto_level_trace_topology (const struct pto_level *level, struct pto_trace_topology *topology);

/* --- inside an orchestration, on its thread --- */

/* submit: its kernel is the callable's number; its parameters are all members' tensors, then all
 * members' scalars. Queue, members and extra are not read. *id: what it is called. Refuses what no
 * child could see or run; then nothing is submitted and the run goes on. Gives the run's status
 * when that has failed. */
enum pto_status pto_level_submit (struct pto_level *level, const struct pto_submit *submit,
                                  const struct pto_level_task *task, pto_task_id *id,
                                  struct pto_report *report);
/* A task that only orders, and makes memory that it outputs; PTO_TASK_NONE: the run has failed. It
 * reads parameters and producers of the submit. */
pto_task_id pto_level_order (struct pto_level *level, const struct pto_submit *submit);
/* A slab that lives until scope and consumers are gone: gives the tensor, which has a shape and
 * perhaps a record but no address yet, its memory now. */
enum pto_status pto_level_alloc (struct pto_level *level, Tensor *tensor,
                                 struct pto_report *report);
/* From here on nothing is run: each task is written down in a graph, whose params are there. false:
 * the run has failed. */
bool pto_level_begin_capture (struct pto_level *level, struct pto_plan *graph);
/* Submits the tasks of a graph that some level has captured, with what it is given and the numbers
 * that its callables have here; of a run in which nothing was submitted. given: n of the program,
 * and behind them what memory it keeps. Fails the run, before
 * anything is submitted, when arguments are not those that the graph is for, or children are not
 * there or do not see them. false: the run has failed. */
bool pto_level_launch (struct pto_level *level, const struct pto_plan *graph,
                       const struct pto_plan_given *given, uint32_t n, const uint32_t *kernels);

/* What a level has added to a task of such a graph; NULL: the task only orders. And its members. */
static inline const struct pto_level_task *
pto_level_graph_task (const struct pto_plan *graph, uint32_t task)
{
  return graph->tasks[task].extra_bytes == 0
             ? NULL
             : (const struct pto_level_task *) &graph->extra[graph->tasks[task].first_extra];
}
const struct pto_member *pto_level_graph_members (const struct pto_level_task *task);

/* --- any thread --- */

/* The run that is under way is not wanted any more. Returns at once; the run does within 100 ms,
 * unless a thread child goes on. Nothing happens when there is no run. */
void pto_level_cancel (struct pto_level *level);
/* Some of its children: a bit for each, by its index (level.c: as they were given). */
struct pto_level_targets
{
  uint64_t bits[PTO_CHILDREN_MAX / 64];
};
static inline void
pto_level_add_target (struct pto_level_targets *targets, uint32_t child)
{
  targets->bits[child / 64] |= UINT64_C (1) << (child % 64);
}
/* REGISTER: to every target that is not gone, in two phases (struct pto_control): either all of
 * them have it when this returns, before any task that is submitted after that, or none. On a no,
 * a death before all have agreed, and when cancelled, all are asked to UNREGISTER; the report is
 * the first no, with the child's path. Cancelled it returns within 100 ms whatever children do, and
 * one that does not hear of it is ended. Who asks has to see to it that a child which is begun
 * meanwhile has it from birth, and, when it is taken back, none does that is begun after that.
 *
 * UNREGISTER: to every target that lives, behind what it was asked before; not waited for.
 *
 * Both also inside of an orchestration, on its thread. */
enum pto_status pto_level_control (struct pto_level *level, enum pto_request request,
                                   const struct pto_level_targets *targets, const uint8_t *digest,
                                   const void *body, uint64_t bytes, bool (*cancelled) (void *data),
                                   void *data, struct pto_report *report);
/* Memory that children work on, and how it is freed, by any thread; NULL: nobody need do so. */
struct pto_level_lent
{
  void (*free) (uint64_t address, uint64_t bytes);
  uint64_t address;
  uint64_t bytes;
};
/* What one child was asked, and has not answered yet. */
struct pto_level_asked
{
  struct pto_control *control;
  uint32_t child;
};
/* MEMORY, to one child that is not gone. false: it was not asked. Any thread, as
 * pto_level_control(). */
bool pto_level_begin_ask (struct pto_level *level, uint32_t child, const void *body, uint64_t bytes,
                          struct pto_level_asked *asked, struct pto_report *report);
/* Waits for what it came to, once for each that was begun: no, or its death, is the report.
 * Cancelled it returns within 100 ms whatever the child does, with PTO_STATUS_CANCELLED: then what
 * was lent is not the caller's any more, and freed when the child is done with it. */
enum pto_status pto_level_end_ask (struct pto_level *level, const struct pto_level_asked *asked,
                                   const struct pto_level_lent *lent,
                                   bool (*cancelled) (void *data), void *data,
                                   struct pto_report *report);
/* TRACE, to every target that lives; waits for all. Who says no or dies is not told of. false:
 * cancelled, as above. */
bool pto_level_gather (struct pto_level *level, const struct pto_level_targets *targets,
                       const void *body, uint64_t bytes, const struct pto_level_lent *lent,
                       bool (*cancelled) (void *data), void *data);
/* As both of an ask, and waits for nothing. */
void pto_level_tell (struct pto_level *level, uint32_t child, const void *body, uint64_t bytes);
/* Begins anew every process among them, each when it is idle, so that it sees what it was
 * not born with (a closure registered after the start). By the guest when a run is under way, who
 * may be the caller; here otherwise. Cancelled it returns within 100 ms; children that are closing
 * by then are begun again all the same. */
enum pto_status pto_level_renew (struct pto_level *level, const struct pto_level_targets *targets,
                                 bool (*cancelled) (void *data), void *data,
                                 struct pto_report *report);
/* Tasks of the run that are done, and signs of life of children: grows as long as it gets on. */
uint64_t pto_level_progress (const struct pto_level *level);
/* Children are begun again where nobody else does that: the caller runs, or no run is under way.
 * For who waits for another thread that waits for such a child. Any thread. */
void pto_level_begin_lost (struct pto_level *level);
/* Is that child, by its index, gone for good? A hint: it may be so just after that. */
bool pto_level_is_gone (const struct pto_level *level, uint32_t child);
/* Has a tensor of the run under way memory, or has no task been submitted yet that outputs it? The
 * thread that submits. */
bool pto_level_has_memory (const Tensor *tensor);
