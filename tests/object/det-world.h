/* det-world.h: what do processes see that are actors of one executor, in virtual time?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The code under test is what is shipped: it calls poll(), read(), g_mutex_lock(), _exit() and so
 * on. In a program that is linked with the wraps of meson.build, those calls come here first. Who
 * calls as an actor of a process of this world gets descriptors, threads, locks and time of this
 * world; everybody else gets those of the system. So each thread of a bridge, and of the far end of
 * a remote worker, is an actor on det, whose seed says who runs next at each call, and time passes
 * when nobody can run.
 *
 * A process ends by _exit(), by the return of its main(), or is killed at any call that waits: its
 * actors go no step further, its descriptors are closed, and what lay on its stacks is nobody's, as
 * if the system had taken it.
 *
 * One world at a time, one thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct pto_exec;

#define US UINT64_C (1000)
#define MS UINT64_C (1000000)

/* --- the world --- */

/* From here on chance is had; and actors, once the executor is there. */
void world_begin (uint64_t seed);
void world_enter (struct pto_exec *exec);
/* Everybody has ended; asserts that no descriptor is open. */
void world_end (void);
uint64_t world_now (void);
/* Below n, by the seed. */
uint32_t world_random (uint32_t n);
/* One of so many times. */
bool world_chance (uint32_t n);
/* Virtual ns, of an actor. */
void world_sleep (uint64_t ns);
/* In the middle of what a process does: others may run, and it may be killed here. */
void world_step (uint64_t ns);

/* --- processes --- */

struct process;

/* Runs main, as an actor; its return is the process's end, with status 0. data outlives it. */
struct process *process_new (const char *name, void (*main) (void *data), void *data);
/* The process of the actor that calls; NULL: it is of none. */
struct process *process_current (void);
void *process_data (const struct process *process);
/* Was it given the far end of a link? */
bool process_is_far (const struct process *process);
int process_pid (const struct process *process);
/* No step is done from here on, but for the caller's, if it is of the process. */
void process_kill (struct process *process);
bool process_is_dead (const struct process *process);
/* And none of its actors has anything left to do. */
bool process_is_over (const struct process *process);
/* That of _exit(); -1: it was killed. */
int process_status (const struct process *process);
void process_free (struct process *process);
/* What it has to itself, of a size; the end of the process gives it back. NULL: too much. */
void *process_alloc (struct process *process, size_t size, size_t limit);
void process_release (struct process *process, void *memory, size_t size);
size_t process_allocated (const struct process *process);

/* --- links --- */

struct link_config
{
  uint64_t delay;     /* one way, ns ... */
  uint64_t jitter;    /* ... and up to so much more, each time anew */
  uint32_t capacity;  /* bytes on the way; 8192 at least */
  uint64_t cut_after; /* bytes, of both directions; UINT64_MAX: never */
};

struct link;

/* Two ends, each a descriptor: of the process that calls, and of the other one, in whose name
 * standard input and output are. */
struct link *link_new (const struct link_config *config, struct process *near, struct process *far,
                       int *near_end);
/* Nothing goes through any more, and both ends learn of it. */
void link_cut (struct link *link);
/* Nothing goes through, and nobody learns of it, until it thaws. */
void link_freeze (struct link *link, bool frozen);
/* Could the near end have known for so long that nothing comes any more? */
bool link_has_hung_up (const struct link *link, uint64_t ns);
/* The last has closed its end. */
bool link_is_over (const struct link *link);
void link_free (struct link *link);

/* From here on, of each so many writes one does not arrive as it was: bits are others, bytes are
 * missing or come twice, all of it comes once more later, or something else before it. 0: none. */
void world_damage (uint32_t n);

/* How many lines the processes have written to standard error; the last. */
uint32_t world_lines (void);
const char *world_last_line (void);
