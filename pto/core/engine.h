/* engine.h: how does a submitted task become a finished one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One engine serves every level. One thread, the submitter, calls pto_engine_*: it takes slots and
 * memory, finds dependencies, wires them, opens and closes scopes, retires what is done. Schedulers
 * (scheduler.h) take ready tasks to endpoints and complete them. The two sides share slots
 * (ring.h), the ready queues (ready.h) and the words below.
 *
 * A task from submit to retire: the submitter takes slot + memory + edges, fills them, pushes one
 * edge on the fan-out list of every producer, and drops its own count of fan-in. Whoever brings
 * fan-in to 0 (the submitter, or the scheduler that completes the last producer) pushes the slot on
 * the ready queue. A scheduler pops it, hands it to an endpoint, learns of its end, closes its
 * fan-out list, counts down its consumers, releases what it retained and stores COMPLETED last. The
 * submitter retires it when its ring's tail gets there.
 */
#pragma once

#include "exec/pto-atomic.h"
#include "exec/pto-exec.h"
#include "bits.h"
#include "dependency-observer.h"
#include "ready-queue.h"
#include "ring.h"
#include "status.h"
#include "task-parts.h"
#include "trace.h"

/* All that the engine is made of uses these. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTO_SCOPE_MAX PTO_MAX_SCOPES
/* Workers of every level there is, SUB workers, and what needs nobody. */
#define PTO_QUEUES_MAX 16u
#define PTO_SHARDS_MAX 16u
#define PTO_ARGS_MAX PTO_MAX_ARGS
#define PTO_HEAP_ALIGN 1024u
#define PTO_STORAGE_ALIGN 64u /* of a task's arguments */
/* Beside a kernel's number: it runs only where its last tensor's first element is not 0. */
#define PTO_KERNEL_IF (1u << 31)

struct pto_berth;
struct pto_capture;
struct pto_claim;
struct pto_engine;
struct pto_order;
struct pto_watch;
struct pto_places;
struct pto_scheduler;
struct pto_sets;
struct pto_submit;

/* How what tasks reduce becomes one. */
struct pto_reduction
{
  uint32_t fill; /* gets a copy to output, and the bits of what each element begins with */
  uint32_t fill_queue;
  uint32_t combine; /* gets a tensor to read and write, and one to read: both of the same shape */
  uint32_t combine_queue;
};

/* Who sees to that (reduce.c): he submits tasks himself, so those who call him know him by this. */
struct pto_reducer
{
  /* What has been reduced into what the submit accesses otherwise is combined before it; NULL:
   * everything that has been reduced, for who looks nothing up (engine->combined). */
  void (*settle) (struct pto_engine *engine, const struct pto_submit *submit);
  /* One that reduces. */
  pto_task_id (*submit) (struct pto_engine *engine, const struct pto_submit *submit);
  /* Before the innermost scope is closed. */
  void (*end_scope) (struct pto_engine *engine);
};

struct pto_engine_config
{
  struct pto_ring_config rings[PTO_RINGS];
  uint32_t map_pool;
  uint64_t other_bytes;      /* of address space that the owner has taken, by a setting: */
  const char *other_setting; /* NULL: none */
  uint32_t hazards;          /* PTO_HAZARD_* */
  bool rename;               /* an output over contents that are still used gets new memory */
  bool watched;              /* somebody watches: the map finds those that have retired, too */
  bool build_first;  /* what is added does not run before its scope ends, while there is room */
  uint32_t n_queues; /* kinds of endpoints */
  uint32_t n_shards; /* of every ready queue */
  uint32_t n_schedulers;
  uint32_t guard_bytes; /* behind every output made by the runtime; 0 or a multiple of 8 */
  uint64_t timeout_ns;  /* without global progress; whoever runs tasks ends those that hang */
  /* How long the submitter waits without any progress before it gives the run up: for room in a
   * ring, for the end. PTO_NEVER: for ever. */
  uint64_t ring_patience_ns;
  uint64_t end_patience_ns;
  /* Somebody who hears of a submit that has waited for room for so long, and after a line for twice
   * as long. The submitter's thread. NULL: nobody. */
  void (*notice) (void *data, const char *line);
  void *notice_data;
  uint64_t notice_ns;
  /* Progress beside completed tasks: a number that grows. NULL: none. */
  uint64_t (*beats) (void *data);
  void *beats_data;
  const char *const *queue_names;
  const char *cohort_name; /* NULL: "cohort" */
  /* Somebody holds that one from now on. false: he can not, and the run has failed. NULL: he can.
   */
  bool (*cohort_taken) (void *data, uint32_t cohort);
  void *cohort_taken_data;
  /* What to do where a task asks for more of them than there are. NULL: nothing helps. */
  const char *more_places;
  uint32_t most_cohorts; /* that more_places can make */
  const char *larger_cohorts;
  /* The kernels for an argument that is reduced. false: why not. NULL: nothing can be. */
  bool (*reduction) (void *data, const PTOParam *param, struct pto_reduction *reduction, char *why,
                     size_t size);
  void *reduction_data;
  /* For messages; never NULL. */
  const char *(*kernel_name) (void *data, uint32_t kernel);
  void *kernel_name_data;
  /* det: virtual time of a submit */
  uint32_t submit_cost;
  uint32_t argument_cost;
  /* par: scheduler i is an actor of domain i that the submitter, the executor's guest, may carry */
  bool carry;
  uint32_t n_carriers;  /* threads beside the submitter's that run tasks, about; at least 1 */
  const void *services; /* what kernels find before their arguments; not read */
  /* It is proved that nobody goes on. true: somebody has been told so, and may. NULL: nobody can.
   */
  bool (*unblock) (void *data);
  void *unblock_data;
};

/* The runtime's record of a buffer that it allocates itself. */
struct PTO2Buffer
{
  uint64_t addr; /* 0 until the submit that outputs it, which is space.creator */
  uint64_t bytes;
  uint32_t generation; /* changes when the scope that made the record ends */
  uint32_t depth;      /* of that scope */
  struct pto_space space;
};
_Static_assert(sizeof (struct PTO2Buffer) == 64, "a record is a cache line");

struct pto_scope
{
  uint32_t held;    /* tasks of scopes around it that its ring holds */
  uint32_t first;   /* head of its ring when it was opened */
  uint32_t buffers; /* records in use when it was opened */
  bool manual;      /* its tasks come after those that they name, whatever their tensors are */
  const char *file;
  int32_t line;
};

enum pto_good
{
  PTO_GOOD_TASKS,
  PTO_GOOD_HEAP,
  PTO_GOOD_STORAGE, /* arguments */
  PTO_GOOD_EDGES,
  PTO_GOOD_NODES, /* of the map */
  PTO_N_GOODS
};

/* What a run would have needed of one ring. Counted on after a deadlock, while the orchestration
 * goes on with calls that do nothing else, so that the report can name a setting that passes. */
struct pto_demand
{
  uint64_t now[PTO_N_GOODS]; /* held by open scopes */
  /* What scopes that have ended hold, since tasks of theirs come after one that is not published.
   * Counted after such a deadlock only; nodes stay with the others. */
  uint64_t late[PTO_N_GOODS];
  uint64_t peak[PTO_N_GOODS];
  uint64_t largest[PTO_N_GOODS]; /* of one task; not of edges, nor of nodes */
  uint32_t counted;              /* tasks that a deadlock kept from being submitted */
  uint32_t let_go;               /* of these, by scopes that have ended */
};

/* After a deadlock submits only count. What was full, where, and who held it. */
struct pto_deadlock
{
  enum pto_status what; /* PTO_OK: there is none */
  uint64_t oversized; /* bytes, edges or nodes of one task that exceed all; 0: a deadlock proper */
  uint32_t ring;
  uint32_t need; /* edges or nodes that the submit wanted */
  uint32_t used;
  uint64_t heap; /* bytes in use by then */
  uint64_t storage;
  uint32_t tasks; /* held in that ring by then */
  pto_task_id task;
  uint32_t kernel;
  enum pto_task_state state;
  uint32_t depth; /* of the scope that holds it */
  struct pto_scope scope;
  /* Of a graph: which of its tasks has not been submitted and uses the oldest one's memory. */
  bool launched;
  uint32_t user;
  char place[160]; /* " (submitted at x.c:12)": where that is; "": nobody knows */
  bool added;      /* the oldest one was added by hand, and nobody has let it go */
  /* "task 3 (add), added at x.c:12, is not published": the oldest one cannot end because of it; "":
   * an open scope holds the oldest one. */
  char held_up[360];
  /* Tasks that were added by then, and those that have been counted since, without those that have
   * been published; with build_first 0, as none keeps the submitter from going on. */
  uint64_t unpublished;
  /* The orchestration has heard that the run has failed: what it would have submitted from there on
   * is not all counted, perhaps. Means nothing where there is no deadlock. */
  bool heard;
  bool exact;      /* no task was retired before, nor forgotten since, so that all dependencies are
                    * known */
  bool incomplete; /* the map was full, so that edges were not counted to the end */
};

/* A submit that waits for room: of what, where, how much of it, and since when. */
struct pto_blocked
{
  enum pto_status what; /* PTO_STATUS_SYNC_START: for a cohort; PTO_OK: none does */
  uint32_t ring;
  uint64_t need;
  uint64_t since;     /* pto_now() */
  uint64_t told_at;   /* when somebody is to hear of it; PTO_NEVER: nobody waits, or is told */
  uint64_t notice_ns; /* of the next wait in this run */
};

/* Who has the last word on a run: whoever takes it from OPEN. So a run that has ended well can not
 * be failed or cancelled any more, and one that was can not end well. */
enum pto_verdict
{
  PTO_VERDICT_OPEN,
  PTO_VERDICT_FAILING, /* somebody writes the report */
  PTO_VERDICT_FAILED,
  PTO_VERDICT_CLOSED /* the run has ended well, or there was none yet */
};

struct pto_engine_stats
{
  uint64_t edges;
  uint64_t peak_live;
  uint64_t stalls;
};

/* What a scheduler and the rest of the engine tell each other. */
struct pto_scheduler_words
{
  /* Changes when there is something to do. */
  struct pto_word bell;
  _Atomic uint32_t stop;
  /* Somebody may wait for its places in a way that the ready queues do not know: it asks
   * pto_place_look(). W: who has the line's lock; R: the scheduler; relaxed, see core-placement.c's
   * call().
   */
  _Atomic uint32_t called;
  /* Tasks completed in this run. W: the scheduler (release, after everything else of a batch); R:
   * the submitter. */
  alignas (64) _Atomic uint64_t completed;
  _Atomic uint64_t failed; /* those of them that did not run to their end */
  /* Parts of tasks that have ended, in this run. W: the scheduler; R: whoever asks whether anything
   * goes on; relaxed. */
  _Atomic uint64_t parts;
};

/* Tasks with parties that wait for places of the same kinds, first come, first served. */
struct pto_lane
{
  struct pto_slot *first;
  struct pto_slot *last;
  uint32_t cohort; /* the one that the first has chosen */
};

/* Of each kind of places, and of those that need several; and a bit for each that somebody is in.
 */
struct pto_lanes
{
  uint32_t waiting;
  struct pto_lane of[PTO_QUEUES_MAX + 1];
};

/* Neighbours. */
struct pto_cohort
{
  const struct pto_places *of; /* whose they are; NULL: there is no such cohort */
  struct pto_berth *first;
  uint32_t n_of[PTO_QUEUES_MAX];
  /* Under the line's lock: those that are for just this one. */
  struct pto_lanes lanes;
  /* Tasks for it that are not over, and 1 while it is held (cohort.h). W: the submitter, schedulers
   * (release: what its tasks did is done for whoever holds it next); R: who waits for one
   * (acquire). */
  _Atomic uint32_t open;
  /* --- the submitter's --- */
  uint32_t depth; /* of the scope that holds it; 0: none */
  const char *file;
  int32_t line;
};

/* Who updates what in any order: tokens, and who has come last to each of them; commutative.h says
 * how. A token stands for several regions if more than these are updated at one time: then their
 * tasks take turns for nothing, and no harm is done. */
#define PTO_TURNS 1024u
struct pto_turns
{
  /* 1: somebody has it. W: submitter, schedulers (acquire, release) */
  alignas (64) _Atomic uint32_t lock;
  struct pto_claim *last[PTO_TURNS]; /* under the lock; NULL: nobody is there */
};

/* Tasks with parties that wait for places; core-placement.h says how. */
struct pto_line
{
  /* 1: somebody has it. W: submitter, schedulers (acquire, release) */
  alignas (64) _Atomic uint32_t lock;
  /* From here on under the lock. */
  struct pto_lanes lanes;
  uint32_t n_named; /* places that somebody waits for by name */
  uint32_t n_bound; /* lanes of cohorts that somebody is in */
  uint64_t turn;
  /* The machine's, by number; not written while it runs. */
  struct pto_berth **places;
  uint32_t n_places;
  uint32_t n_cohorts;
  struct pto_cohort *cohorts;
  uint32_t next_cohort; /* the submitter's (cohort.h) */
  uint32_t n_held;
  uint32_t n_of[PTO_QUEUES_MAX];
  /* Under the lock: those of them that are not gone for good, and how many are. */
  uint32_t n_left[PTO_QUEUES_MAX];
  uint32_t n_gone;
};

/* A task that was added by hand; manual-build.h says how. */
struct pto_added
{
  uint64_t number; /* tasks that were submitted before it */
  const char *file;
  int32_t line;
  uint32_t local;
  uint32_t heads[PTO_RINGS]; /* of the rings, before it was submitted */
  bool published;
  bool let_go; /* the submit's own count of fan-in is gone */
  /* An enum pto_status: what the tasks after it left no room in, so that it was let go before it
   * was published; PTO_OK: it was not. With build_first only. */
  uint8_t short_of;
};

/* Those of each ring, in their order. */
struct pto_build
{
  struct pto_added *items[PTO_RINGS];
  uint32_t n[PTO_RINGS];
  uint32_t max[PTO_RINGS];
  uint32_t n_held; /* those that are not let go */
  /* As manual-build.c does, for those that wait below it. */
  void (*let_go) (struct pto_engine *engine, uint32_t ring, struct pto_added *added);
  /* "set task-window to 32 or more": what would have been enough, where one was let go before its
   * scope ended. */
  char room[160];
  uint32_t tracked; /* engine->tracked, while one is submitted */
  /* While a cohort is waited for: tasks that can not run before the submitter lets some go. */
  uint64_t n_blocked;
};

/* What is done before a submit's accesses are looked up; usually nothing. */
enum
{
  PTO_BEFORE_RENAME = 1,
  PTO_BEFORE_SETS = 2,
  PTO_BEFORE_COMBINED = 4
};

struct pto_engine
{
  struct pto_exec *exec;
  struct pto_engine_config config;
  struct pto_ring rings[PTO_RINGS];
  uint32_t tails[PTO_RINGS];         /* the submitter's; the map reads them */
  uint32_t no_tails[PTO_RINGS];      /* zeros; or these, with config.watched */
  uint32_t counted_tails[PTO_RINGS]; /* as they would be, while submits only count */
  struct pto_map *map;
  struct pto_ready_queue ready[PTO_QUEUES_MAX][PTO_SHARDS_MAX];
  /* Of each priority from 1 on. Not sharded: what comes first is known. Made when somebody submits
   * a task of that priority; without cells before. */
  struct pto_ready_queue urgent[PTO_QUEUES_MAX][PTO_MAX_PRIORITY];
  struct pto_scheduler *schedulers[PTO_MAX_DOMAINS]; /* run-inline.c runs them; others see words */
  struct pto_scheduler_words *words[PTO_MAX_DOMAINS];

  /* --- the submitter's --- */
  alignas (64) struct pto_scope scopes[PTO_SCOPE_MAX];
  uint32_t depth; /* open scopes; 0 = no run */
  /* From the first byte of the rings' heaps to the last; other memory may lie between. */
  uint64_t heaps_begin;
  uint64_t heaps_size;
  /* There are guards, and a task comes after the one that makes what it uses: unless it is given
   * that as NO_DEP, or in a manual scope, it finds the guard there. */
  bool guards_ordered;
  /* Kinds of parameters below this one are looked up and recorded, and those that commute: all of
   * tensors that take part in dependencies, or in a manual scope none. */
  uint32_t tracked;
  uint32_t before; /* PTO_BEFORE_* */
  bool reduces;    /* an argument of the submit that is under way, for it stops there */
  const struct pto_reducer *reducer;
  struct pto_sets *sets; /* NULL: nothing has been reduced in this run */
  /* With PTO_BEFORE_COMBINED: who comes last of those that have combined what was reduced before a
   * manual scope. Nobody there could name them, so all come after it. */
  pto_task_id combined;
  /* This run has, or has had, a manual scope, or tasks that were added: not all accesses are known.
   */
  bool by_hand;
  struct pto_task_set failed; /* and retired; a failure is rare and mostly ends the run */
  pto_task_id poisoned_by;    /* by one of them: the current submit */
  struct pto_deps deps;
  struct pto_shared_tensors shared;         /* of a graph that is launched */
  const struct pto_plan *launched;          /* that graph, until the run is over; NULL: none */
  struct pto_access accesses[PTO_ARGS_MAX]; /* of the current submit's tensors */
  struct pto_fence fences[PTO_ARGS_MAX];    /* behind memory of the caller that it is given */
  struct pto_fence fence;                   /* found last, when the list was of this version */
  uint64_t fence_version;
  uint64_t submitted;
  uint64_t serial;  /* of submits, over all runs */
  uint32_t unswept; /* submits since the tails were last moved */
  uint32_t next_shard;
  bool direct; /* it has claimed a scheduler and runs each task at once: all are complete */
  bool adding; /* what is submitted now stays until it is published */
  bool resume; /* it was so before a wait, or the end of a run: tried again soon */
  uint64_t direct_ticks; /* pto_ticks() of several such tasks */
  uint64_t direct_limit; /* of it; 0: not known yet */
  uint32_t carry;        /* the scheduler that it claimed or carried last */
  uint32_t unshared;     /* submits since it last thought of running tasks itself */
  uint32_t indirect;     /* so often it decided not to */
  struct pto_engine_stats stats;
  struct pto_demand demand[PTO_RINGS];
  struct pto_build build;
  PTO2Runtime *runtime; /* where the last submit stands; NULL: nobody says */
  void *scratch;        /* what a submit with a party adds to its task, while it does */
  uint64_t scratch_bytes;
  struct PTO2Buffer **buffer_chunks;
  uint32_t n_buffer_chunks;
  uint32_t n_buffers;
  struct pto_trace_buffer *trace;    /* NULL: off */
  const struct pto_witness *witness; /* NULL: nobody is told */
  struct pto_order *order;           /* says who is next; NULL: nobody does */
  bool fills;                    /* what it makes for tasks (unwritten-memory.h). W: between runs */
  bool observed;                 /* one of these is not NULL, or true; likewise */
  struct pto_trace_files *files; /* with it */
  struct pto_watch *watch;       /* of a full record; NULL: nobody */
  uint64_t time_base;            /* pto_now() at the begin of the run */
  /* Times in trace records: ticks on a wall clock, which cost less than ns, made ns of afterwards.
   */
  bool counts_ticks;
  uint64_t tick_base;
  uint64_t run_ticks; /* of the whole run, and its ns: the scale */
  uint64_t run_ns;
  uint64_t stamp; /* of the current submit's records */
  /* Says whether the run is wanted no more; NULL: always. Asked at its begin and its end, at every
   * wait, and now and then while it submits. */
  bool (*cancelled) (void *data);
  void *cancelled_data;
  struct pto_deadlock deadlock;
  struct pto_blocked blocked;
  struct pto_capture *capture; /* submits are written down in it; NULL: they are run */

  /* --- first fatal error ---
   * fatal: 0, or an enum pto_status. W: who took the verdict; R: everybody. Relaxed: the message is
   * read after the verdict. */
  alignas (64) _Atomic uint32_t fatal;
  /* An enum pto_verdict. W: who fails the run, and its end, by compare-exchange from OPEN. */
  _Atomic uint32_t verdict;
  /* Beside fatal, since who takes a task reads both. Bit p: this run has tasks of priority p; never
   * bit 0. W: the submitter, before the first of them can be ready (seq_cst, so that it comes
   * before the look at hungry of whoever pushes that; release: its queues are made); R: schedulers,
   * the last time before they park behind their hunger, seq_cst (see pto_engine_ring()), otherwise
   * acquire, or relaxed where no queue is looked at. */
  _Atomic uint32_t priorities;
  struct pto_report report;

  /* --- what schedulers tell the submitter --- */
  /* Set by the submitter before it parks, read by schedulers after a batch of completions: a fence
   * on both sides (pto_engine_wait_for(), pto_engine_tell_submitter()). */
  alignas (64) _Atomic uint32_t waiting;
  _Atomic (struct pto_slot *) wait_slot; /* one task completed and released ... */
  _Atomic uint32_t wait_taken;
  _Atomic uint64_t wait_total;  /* ... or, when it is NULL, so many tasks completed ... */
  _Atomic uint32_t wait_cohort; /* ... or, when this is not 0, any cohort free, or the same */
  /* pto_wall_clock() since when it is parked for what the words above and blocked say, which do not
   * change as long as this does not; 0: it is not. W: the submitter (release; 0 before a release
   * fence); R: inspect.c (acquire). */
  _Atomic uint64_t wait_since;
  /* Tasks without a kernel that the submitter has completed itself. W: the submitter; R: with
   * completed, by whoever sees whether its wait is over; it does not wait while it adds. */
  _Atomic uint64_t passed;
  struct pto_word progress;

  /* --- who has an idle endpoint and nothing to do ---
   * For each ready queue a bit a scheduler. Set by the scheduler before it looks at the queue a
   * last time and parks; cleared by whoever pushes and rings its bell (see pto_engine_ring() and
   * announce_hunger()). A bit may be of the past: who is rung in vain rings the next. */
  alignas (64) _Atomic uint64_t hungry[PTO_QUEUES_MAX + 3]; /* the last three: never */
  _Atomic uint32_t turn;                                    /* which of them is rung first */
  /* Tasks stand behind one that takes long, on some scheduler's shelf. W: who watches the run (1),
   * who looks then (0); R: schedulers that have nothing to do; relaxed, a hint. */
  _Atomic uint32_t stuck;
  /* What a task costs whoever takes it from the queue, in ns. W: schedulers that attend; R: the
   * submitter; a hint. */
  alignas (64) _Atomic uint64_t task_ns;
  /* Schedulers that look at the queues again and again before they announce hunger: they need no
   * ring. W: those schedulers (seq_cst); R: pto_engine_ring() (seq_cst). Who stops looking
   * says so here first, announces its hunger and then looks once more, so nothing is missed. */
  alignas (64) _Atomic uint32_t lingering;
  struct pto_line line;
  struct pto_turns turns;
};

/* Makes an engine; 0, or a status with a report. exec and queue_names must outlive it. */
enum pto_status pto_engine_init (struct pto_engine *engine, struct pto_exec *exec,
                                 const struct pto_engine_config *config, struct pto_report *report);
/* Returns the setting that takes most of the address space. */
const char *pto_engine_largest_setting (const struct pto_engine_config *config);
/* Between runs, with no other thread that looks at the map: config.watched from now on, and a map
 * of so many nodes, instead of the one that there was. false: no memory; all is as it was. */
bool pto_engine_set_watched (struct pto_engine *engine, bool watched, uint32_t map_pool);
void pto_engine_destroy (struct pto_engine *engine);

/* Rings a scheduler's bell: there may be work. Any thread. */
void pto_engine_wake (struct pto_engine *engine, uint32_t index);
/* The machine goes, and another may come. */
void pto_line_clear (struct pto_line *line);

/* Time since the begin of the run, for records. */
static inline uint64_t
pto_engine_stamp (const struct pto_engine *engine)
{
  return engine->counts_ticks ? pto_ticks_ordered () - engine->tick_base
                              : pto_now (engine->exec) - engine->time_base;
}

/* The same where nothing that another thread has recorded comes before it. */
static inline uint64_t
pto_engine_stamp_own (const struct pto_engine *engine)
{
  return engine->counts_ticks ? pto_ticks () - engine->tick_base
                              : pto_now (engine->exec) - engine->time_base;
}

/* A lock that nobody keeps while he waits for anything: 1 while somebody has it. Acquire and
 * release pair with each other. */
static inline void
pto_engine_lock (struct pto_engine *engine, _Atomic uint32_t *lock)
{
  while (pto_exchange_acquire (lock, 1) != 0)
    pto_yield (engine->exec);
}

/* Latches the first fatal error. Returns false. */
bool pto_engine_fail (struct pto_engine *engine, enum pto_status status, const char *format, ...)
    __attribute__ ((cold, format (printf, 3, 4)));
/* Where the orchestration made its last call. NULL, and line 0: that is not known. Submitter. */
static inline const char *
pto_engine_get_call (const struct pto_engine *engine, int32_t *line)
{
  *line = engine->runtime != NULL && engine->runtime->line > 0 ? engine->runtime->line : 0;
  return *line > 0 ? engine->runtime->file : NULL;
}
/* " at x.c:12"; without a file nothing. */
void pto_describe_at (const char *file, int32_t line, char *text, size_t size);
/* The same of where the orchestration made its last call. Submitter. */
void pto_engine_describe_call (const struct pto_engine *engine, char *text, size_t size);
/* ", submitted at x.c:12", or, where that is not known, ", in the scope opened at x.c:10": the
 * innermost whose place is. Submitter. */
void pto_engine_describe_place (const struct pto_engine *engine, char *text, size_t size);
/* What to do where a task asks for more places than there are. */
const char *pto_engine_more_places (const struct pto_engine *engine);
/* What is submitted now is no task, and the run fails: "task 3 (add), submitted at x.c:12: ...".
 * Submitter. Returns false. */
bool pto_engine_refuse (struct pto_engine *engine, uint32_t kernel, enum pto_status status,
                        const char *format, ...) __attribute__ ((cold, format (printf, 4, 5)));
/* Fails the run under way as cancelled: no task begins any more on whoever has not looked yet.
 * Wakes the submitter. A call that comes between two runs does nothing; begin and end of a run ask
 * engine->cancelled for what came too early for that. Any thread, also a kernel. false: no run was
 * under way. */
bool pto_engine_cancel (struct pto_engine *engine);
/* Asks whether the run is still wanted; true: it is not, and has failed. The submitter. */
bool pto_engine_ask_cancelled (struct pto_engine *engine);
/* The run ends: from here on nobody fails it. True if nobody has. The submitter. */
bool pto_engine_close_verdict (struct pto_engine *engine);
/* Why the run has failed, which it has: in full, also when who failed it still writes. The
 * submitter. */
enum pto_status pto_engine_tell (struct pto_engine *engine, struct pto_report *report);
static inline bool
pto_engine_has_failed (struct pto_engine *engine)
{
  return atomic_load_explicit (&engine->fatal, memory_order_relaxed) != 0;
}

/* Submits of this run that took a slot used before in it. */
uint64_t pto_engine_recycled (const struct pto_engine *engine);
/* State of a task by id, derived from slot and tail. */
enum pto_task_state pto_engine_task_state (const struct pto_engine *engine, pto_task_id id);

/* For messages; never NULL. */
static inline const char *
pto_engine_kernel_name (const struct pto_engine *engine, uint32_t kernel)
{
  if (kernel == PTO_KERNEL_NONE)
    return "no kernel";
  return engine->config.kernel_name (engine->config.kernel_name_data,
                                     kernel & ~(PTO_KERNEL_IF | PTO_KERNEL_PARTS));
}

static inline const char *
pto_engine_cohort_name (const struct pto_engine *engine)
{
  return engine->config.cohort_name != NULL ? engine->config.cohort_name : "cohort";
}

static inline uint32_t
pto_engine_ring_of_depth (uint32_t depth)
{
  return depth < PTO_RINGS - 1 ? depth : PTO_RINGS - 1;
}

static inline struct pto_slot *
pto_engine_slot (const struct pto_engine *engine, pto_slot_ref ref)
{
  return &engine->rings[ref >> PTO_SLOT_RING_SHIFT].slots[ref & ((1u << PTO_SLOT_RING_SHIFT) - 1)];
}

static inline struct pto_edge *
pto_engine_edge (const struct pto_engine *engine, uint32_t ref)
{
  return &engine->rings[(ref - 1) >> PTO_EDGE_RING_SHIFT]
              .edges[(ref - 1) & ((1u << PTO_EDGE_RING_SHIFT) - 1)];
}

static inline pto_slot_ref
pto_engine_slot_ref (const struct pto_engine *engine, const struct pto_slot *slot)
{
  uint32_t ring = PTO_TASK_RING (slot->id);

  return PTO_SLOT_REF (ring, PTO_TASK_LOCAL (slot->id) & engine->rings[ring].mask);
}

/* Returns true if such an argument orders its task after the task that makes the memory. Then the
 * guard is there, unless that task was left out. */
static inline bool
pto_engine_finds_guard (const struct pto_engine *engine, PTOParamType type)
{
  return engine->guards_ordered
         && ((uint32_t) type < engine->tracked || type == PTO_PARAM_COMMUTATIVE);
}
