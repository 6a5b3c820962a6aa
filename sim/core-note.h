/* core-note.h: what does a core say of what it is doing?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* What a core is doing, for who looks from outside: another thread, or another process that maps
 * the notes, also when this one is dead. W: the core; R: anybody. Relaxed, but for calls, which is
 * stored with release behind the others; who reads it first, with acquire, reads a task that has
 * begun. */
struct pto_core_note
{
  _Atomic uint64_t task;  /* pto_task_id of the last kernel that it began */
  _Atomic uint64_t since; /* pto_wall_clock() of its begin */
  _Atomic uint32_t kernel;
  _Atomic uint32_t thread; /* gettid() of who runs it */
  _Atomic uint32_t calls;  /* +1 at every begin and every end: odd while it runs */
  char name[36];           /* of the core: AIV17; written before it runs anything */
  _Atomic uint32_t line;   /* of the submit; 0: it is not known */
  char file[60];           /* of the submit, behind its last slash; read when the core is dead */
};
_Static_assert(sizeof (struct pto_core_note) == 128, "two lines each");
