/* guarded-call.h: what do threads and processes owe to guarded calls?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-exec.h"

/* What pto_guard_registers_call() gives beside 0: returned. */
enum
{
  PTO_UNWOUND_BY_JUMP = 1, /* given up */
  PTO_UNWOUND_BY_EXCEPTION = 2,
  PTO_UNWOUND_BY_FORCE = 3 /* the thread ends */
};

/* Where of the registers it leaves what unwound. */
#define PTO_GUARD_EXCEPTION 22
#ifdef __x86_64__
/* Where it finds the control words of the caller; 0: they are to be saved. */
#define PTO_GUARD_WORDS 8
#endif
int pto_guard_registers_call (void **registers, void (*fn) (int64_t *), int64_t *args);

/* In the child of a fork, while it has one thread, all signals blocked: nobody uses guarded calls
 * yet, the handlers are those from before them, and the thread is no actor. */
void pto_guard_after_fork (void);

/* Called by foreign code: gives the guarded call that it is in up, with what as the reason. Returns
 * when there is none. */
void pto_guard_leave (const char *what);
/* Is the calling thread in a guarded call, or at its end (thread-end.h)? */
bool pto_guard_is_inside (void);
/* The guarded call that the calling thread is in has set the signal mask; and has it? */
void pto_guard_note_mask (void);
bool pto_guard_has_mask (void);
/* That guarded call; NULL: none. */
struct pto_guard *pto_guard_now (void);
/* Code in it has sent its thread, by that function, a signal that is blocked there. */
void pto_guard_note_sent (const char *function, int signo);
/* In the child of a fork that foreign code made, while its guard is paused: the process ends when
 * the call does. What the code does until then is its own affair, also a crash. */
void pto_guard_end_with_call (struct pto_guard *guard);

/* Called when an exception passes a frame of foreign code, and when the code asks for exceptions.
 * From then on the guarded call of the calling thread keeps its exceptions to itself, on all its
 * threads. get: gives those of the thread. is_counted: one of the call's counts among them. */
void pto_guard_keep_exceptions (struct pto_exceptions *(*get) (void), bool is_counted);
/* What a runtime of C++ has for its threads: the function for frames of the language, the one that
 * gives the exceptions, and those by which code asks for them; NULL: it has not all. */
#define PTO_CXX_ASKERS 10
struct pto_cxx
{
  void (*personality) (void);
  struct pto_exceptions *(*get_exceptions) (void);
  void *askers[PTO_CXX_ASKERS];
};
/* The runtime that a shared object uses. Returns false if it uses none. */
bool pto_guard_find_cxx (void *module, struct pto_cxx *cxx);
/* Returns what stands in the place of a function of it in foreign code, so that guarded calls keep
 * their exceptions. NULL: the function stays. Under the mutex of libc-hooks.c. */
void *pto_guard_watch_cxx (const struct pto_cxx *cxx, void *function);

/* What it takes to ask an exception what it says. */
struct pto_unwound
{
  void *exception;
  void *(*begin_catch) (void *exception);
  void (*end_catch) (void);
  const void *(*current_type) (void);
  char *(*demangle) (const char *name, char *buffer, size_t *size, int *status);
  const void *base; /* std::type_info of std::exception */
  char *text;
  size_t size;
};
typedef void (*pto_guard_describer) (int64_t *unwound);

/* Gives the foreign code that writes what the exception says into text and lets go of it, or NULL
 * when text says all that is known. */
pto_guard_describer pto_guard_describe (void *exception, struct pto_unwound *unwound, char *text,
                                        size_t size);
