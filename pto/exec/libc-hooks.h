/* libc-hooks.h: what is done to shared objects that hold foreign code?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pto_guard;

/* What foreign code of a run has set for one signal. */
struct pto_disposition
{
  struct pto_disposition *below; /* what was set before, by another run that goes on; NULL: none */
  bool is_there;                 /* among those of the process */
  struct sigaction action;
};

/* What foreign code of a run, or of a call outside of runs, has changed of the process. All zeros
 * at first. Under the mutex of libc-hooks.c; changed is also read by the end of the run. */
struct pto_foreign_run
{
  _Atomic uint32_t changed;
  unsigned int shells; /* calls of system() that have begun, and not ended */
  struct pto_disposition signals[_NSIG];
};

/* dlopen() of an object with foreign code: its constructors, and those of what it needs, leave the
 * thread's floating-point environment as it is. GCC links one that has small numbers computed as 0
 * into each object that is built with -Ofast or -ffast-math. Any thread. */
void *pto_foreign_load (const char *path, int mode);
/* Of an object that dlopen() gave: what its code calls to end its thread or the process, or to
 * change how signals are handled, comes to the engine, which makes a fault of it or leaves out what
 * guarded calls rest on. Outside of guarded calls these do what they always do. Any thread, before
 * the code runs. */
void pto_foreign_adopt (void *module);
/* Does the object begin threads, or have thread-specific data with destructors? Then it must stay
 * loaded: they may live longer than all that uses it. Any thread. */
bool pto_foreign_outlives (void *module);
/* Does its code keep something for each thread: variables of its own or of another object, errno,
 * thread-specific data? Any thread. */
bool pto_foreign_has_thread_locals (void *module);
/* The thread-local variables of objects, of one actor: it has the same on whatever thread it runs.
 * All zeros at first. Only the actor touches them, in its guarded calls (pto_guard.locals). */
struct pto_locals
{
  size_t n;      /* as many objects may have a block */
  void **blocks; /* by the number that the loader gave the object; NULL: it was not used yet */
};

/* Lets the object's code find its variables in the guarded call's locals, on any thread. Returns
 * false if that cannot be: the code reaches them without a call of the loader's function, has
 * destructors for them, or keeps something else for each thread. Or it begins threads, or asks
 * which one it runs on. Any thread, before the code runs as a kernel. */
bool pto_foreign_keep_locals (void *module);
/* Frees them. No destructor is called: such an object has none. */
void pto_locals_clear (struct pto_locals *locals);
/* Before a fork, by the thread that forks: OpenMP's threads of this thread end, and are begun again
 * when they are needed. Otherwise GCC's runtime would wait for them in the copy, where they are
 * not, for ever; that of LLVM looks after itself. */
void pto_foreign_before_fork (void);
/* After a run: puts back the signal dispositions that its foreign code has changed. A disposition
 * that another run has set since stays until that run ends, and one of the program's own stays. Any
 * thread. */
void pto_foreign_put_back (struct pto_foreign_run *run);
/* In the child of a fork, while it has one thread: no run goes on here, so what runs of the parent
 * have changed is put back. */
void pto_foreign_after_fork (void);
/* Ends the process, a copy that fork() has made in a function which has returned there. what: the
 * function. */
_Noreturn void pto_foreign_end_copy (const char *what);
/* Calls foreign code of this thread outside of any run: signal mask and dispositions are as before
 * when it is over. false: it did not return; why says what it did, to go on "it ...". Any thread.
 */
bool pto_foreign_call (void (*fn) (void *data), void *data, char *why, size_t size);
/* Calls code of the program itself: an exception of C++ or the end of the thread does not leave it;
 * all else it does is its own affair. false: it did not return; why says what it did, to go on
 * "it ...". Any thread. */
bool pto_foreign_catch (void (*fn) (void *data), void *data, char *why, size_t size);
