/* weak.h: what would a machine do that keeps only those orders that the source asks for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Sources that are compiled with -fsanitize=thread, and linked with weak.c instead of the
 * sanitizer's library, call it for every atomic operation, with its order, and for every access to
 * plain memory. The program runs its actors one at a time; here each of them is a thread of an
 * abstract machine:
 *
 * - a location remembers the values it had, each with what its writer had released. A load reads
 * any of them that the thread has not yet seen replaced, as C11 allows; who chooses is the
 * explorer. A read-modify-write reads the last.
 * - sequentially consistent operations and fences are in one order, that of their execution.
 * - two accesses to plain memory of which one writes, and none of which happens before the other,
 * are a race and end the program, however they came out.
 *
 * Not modelled: loads that read what is written later (no promises), and stores of one location
 * that overtake each other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WEAK_THREADS 10u

struct weak_machine
{
  /* the number of the thread that runs, below WEAK_THREADS */
  uint32_t (*self) (void);
  /* before every atomic operation: others may run */
  void (*point) (void);
  /* how old a value a load gives: 0, the last, to n - 1; n >= 2 */
  uint32_t (*choose) (uint32_t n);
  /* plain memory that belongs to whoever runs, and is not looked at */
  struct
  {
    const void *memory;
    uint64_t size;
  } own[2];
};

/* From here on there is a machine. What was written before is known to every thread. */
void weak_begin (const struct weak_machine *machine);
/* Back to the real one. */
void weak_end (void);

/* An access by code that is not instrumented, on behalf of the thread that runs. */
void weak_read (const void *memory, uint64_t size);
void weak_write (const void *memory, uint64_t size);
/* A store with release, by code that is not instrumented. */
void weak_store (_Atomic uint32_t *memory, uint32_t value);
/* What the thread did so far happens before what others do after they have acquired the same thing:
 * locks, the start and the end of a thread. */
void weak_release (const void *thing);
void weak_acquire (const void *thing);
/* The memory is somebody else's from now on: what was done to it is forgotten. */
void weak_forget (const void *memory, uint64_t size);

/* Loads that gave another value than the last, and accesses that were looked at, since the program
 * began. */
extern uint64_t weak_n_stale, weak_n_checked;
