/* run-machine.h: what is a run, of a chip or of a level, from its begin to its end?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Engine, executor, recorder, and the runtime that an orchestration is given: what chips and levels
 * have alike. What tasks run on is theirs: cores, children. The executor is engine.exec, and the
 * schedulers are engine.schedulers, made and ended by whoever has the machine.
 *
 * Owner thread as for a chip: one thread at a time uses a machine; the orchestrator is the thread
 * that runs.
 */
#pragma once

#include "parameters.h"
#include "record-run.h"
#include "run.h"
#include "runtime.h"

#include <pthread.h>

struct pto_watch; /* memory-observer.h */

/* For who looks at a run from outside (inspect.h): while he has the lock no run begins or ends, so
 * that what a run is given (kernels and their names) stays. Held for a moment, by who runs twice a
 * run. */
struct pto_machine_door
{
  pthread_mutex_t lock;
  /* Under the lock. */
  bool running;
  uint64_t n_begun; /* runs whose engine has begun; until the next, what it says stays */
  uint64_t began;   /* pto_wall_clock(), of the run under way */
  struct pto_machine_totals *totals; /* own, or somebody's who keeps them for longer */
  struct pto_machine_totals own;
};

struct pto_machine
{
  struct pto_engine engine;
  struct pto_recorder recorder;
  PTO2RuntimeOps ops; /* the runtime's */
  struct PTO2Runtime runtime;
  bool done; /* orchestration_done() was called, or the orchestration has returned */
  /* The thread that runs, or ran last, plus pto_guard_forks of its process: pto_machine_is_here().
   * W: that thread, when the run begins; R: any caller. Relaxed: a caller compares it with its own.
   */
  _Atomic uintptr_t thread;
  uintptr_t forks; /* pto_guard_forks of the process that runs, or ran last */
  /* Grows by 1 when the orchestration calls the engine and when that returns: odd in between. W:
   * orchestrator; R: who looks whether it gets on; a progress mark, relaxed. */
  _Atomic uint64_t steps;
  void (*log) (void *data, int32_t severity, const char *message);
  void *log_data;
  struct pto_machine_door door;
};

/* The part of an engine's configuration that is the same for every machine. */
void pto_machine_configure (struct pto_engine_config *config, const struct pto_params *params);
/* own: the runtime's calls that submit, which are for whoever runs tasks to judge; the others are
 * the same for every machine. After a failure there is nothing to clear. */
enum pto_status pto_machine_init (struct pto_machine *machine, struct pto_exec *exec,
                                  const struct pto_engine_config *config, const PTO2RuntimeOps *own,
                                  struct pto_report *report);
void pto_machine_clear (struct pto_machine *machine);

/* --- a run --- */

struct pto_run
{
  /* On the calling thread; gives 0, or another value to fail the run. */
  int (*orchestrate) (PTO2Runtime *rt, void *data);
  void *data;
  /* Says whether the run is not wanted any more: then it fails with PTO_STATUS_CANCELLED, and a run
   * that has ended well was asked once more after its last task. May be NULL. */
  bool (*cancelled) (void *data);
  void *cancelled_data;
  /* Behind the last task: what is still to be done is a part of the run. status: how that has
   * ended. Gives PTO_OK, or why it has not ended well after all. May be NULL. */
  enum pto_status (*settle) (void *data, enum pto_status status, struct pto_report *report);
};

/* Between runs: how much of the next one is recorded (enum pto_trace_level; 0: nothing), and who
 * watches it if that is all (memory-observer.h; NULL: nobody). n_actors: beside the orchestrator
 * and the schedulers; where they record is pto_machine_record_of(). */
enum pto_status pto_machine_record (struct pto_machine *machine, uint32_t level, uint32_t n_actors,
                                    uint64_t capacity, struct pto_watch *watch,
                                    struct pto_report *report);
/* NULL: nowhere. actor: from 0; all further ones are behind it. */
static inline struct pto_trace_buffer *
pto_machine_record_of (const struct pto_machine *machine, uint32_t actor)
{
  return pto_recorder_buffer (&machine->recorder, 1 + machine->engine.config.n_schedulers + actor);
}

/* The orchestration on the calling thread, which is the executor's guest, and all that it submits;
 * returns when everything is done. */
enum pto_status pto_machine_run (struct pto_machine *machine, const struct pto_run *run,
                                 struct pto_run_stats *stats, struct pto_report *report);

/* Before the first run: they are counted there, from what is there on; they stay longer than the
 * machine. */
/* A warning, where the machine's log goes. */
void pto_machine_warn (void *machine, const char *message);
void pto_machine_set_totals (struct pto_machine *machine, struct pto_machine_totals *totals);
/* It takes the place of another one, which nothing runs on any more. */
void pto_machine_inherit_totals (struct pto_machine *machine, const struct pto_machine *other);

/* Nothing runs, and the machine is cleared next. None of those that it was given. */
void pto_machine_take_heaps (struct pto_machine *machine, struct pto_heaps *heaps);

/* --- inside of an orchestration, on its thread --- */

static inline struct pto_machine *
pto_machine_of_runtime (PTO2Runtime *rt)
{
  return (struct pto_machine *) ((char *) rt - offsetof (struct pto_machine, runtime));
}

/* Not merged with one of before a switch: an orchestration stays on its thread. */
static inline const void *
pto_machine_this_thread (void)
{
  /* GCC has it since 11 and one instruction for it. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
  return __builtin_thread_pointer ();
#else
  return (const void *) (uintptr_t) pthread_self ();
#endif
}

/* Returns false on another thread, and in a copy of the process that fork() has made. The control
 * blocks of threads lie 64 bytes or more apart, so fewer forks than that inside of each other never
 * make two words equal. Subtracts, which takes one register. */
static inline bool
pto_machine_is_here (const struct pto_machine *machine)
{
  return pto_load_relaxed (&machine->thread) - (uintptr_t) pto_machine_this_thread ()
         == pto_guard_forks;
}

/* Fails the run: its orchestration calls the engine on another thread. In a copy of the process,
 * made with fork(), it ends the copy. call: the name of what is called. */
void pto_machine_refuse_caller (struct pto_machine *machine, const char *call);

/* Returns true, and has said why, unless the orchestration's own thread calls. Then the caller may
 * touch nothing of the machine, which is in use. */
static inline bool
pto_machine_is_elsewhere (struct pto_machine *machine, const char *call)
{
  if (__builtin_expect (pto_machine_is_here (machine), 1))
    return false;
  pto_machine_refuse_caller (machine, call);
  return true;
}

/* Between these two the engine works on the orchestration's behalf: it is not cut, and what goes
 * wrong is its own. */
static inline struct pto_guard *
pto_machine_come_in (struct pto_machine *machine)
{
  struct pto_guard *guard = pto_guest_pause (machine->engine.exec);

  if (guard == NULL)
    return NULL;
#ifdef __x86_64__
  /* What copies upwards here would copy downwards. */
  __asm__ volatile("cld" ::: "cc");
#endif
  pto_store_relaxed (&machine->steps, pto_load_relaxed (&machine->steps) + 1);
  return guard;
}

static inline void
pto_machine_go_out (struct pto_machine *machine, struct pto_guard *guard)
{
  if (guard == NULL)
    return;
  pto_store_relaxed (&machine->steps, pto_load_relaxed (&machine->steps) + 1);
  pto_guest_resume (machine->engine.exec, guard);
}
