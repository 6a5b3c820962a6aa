/* write-log.h: which memory has been written, as processes see it that keep copies of it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A log in memory that a parent shares with its children: each piece of memory that somebody has
 * written, before any task runs that comes after that. Whoever keeps copies reads it before each
 * task, from where it was, and so knows which of them are good: a copy is as good as the log says
 * that nobody has written since it was made. The log is a ring; who was overtaken is told, and
 * keeps nothing.
 *
 * Beside it, what each child counts. Thread safety: as each function says.
 */
#pragma once

#include "service.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Entries that a reader may be behind. */
#define PTO_WRITES_MAX 4096u
/* In place of a child: all who keep copies are meant. */
#define PTO_WRITES_BY_NOBODY UINT32_MAX

/* What a child has counted since it was first begun; bytes. W: the child, one life at a time; R:
 * any thread of the parent. Relaxed: counts. */
struct pto_traffic
{
  _Atomic uint64_t sent;
  _Atomic uint64_t received;
  _Atomic uint64_t saved;    /* were to be sent, and were there already */
  _Atomic uint64_t silences; /* not bytes: how often nothing was heard of the other end */
  _Atomic uint64_t process;  /* nor this: what the other end is, there; 0: that is not known yet */
};

struct pto_write
{
  uint64_t begin, end;
  uint32_t child; /* index of the child that wrote */
};

struct pto_writes;

/* In shared memory; NULL: there is none. */
struct pto_writes *pto_writes_new (void);
void pto_writes_free (struct pto_writes *writes);

/* Any thread of the parent: that memory was written. Happens before whatever comes after. */
void pto_writes_add (struct pto_writes *writes, uint64_t begin, uint64_t end, uint32_t child);
/* All memory. */
void pto_writes_add_all (struct pto_writes *writes);

/* Any process. Where a reader begins that has no copies. */
uint64_t pto_writes_end (const struct pto_writes *writes);
enum pto_writes_next
{
  PTO_WRITES_NONE, /* there is no more */
  PTO_WRITES_ONE,
  PTO_WRITES_MISSED /* some were overwritten before they were read: nothing is good any more */
};
enum pto_writes_next pto_writes_next (const struct pto_writes *writes, uint64_t *at,
                                      struct pto_write *write);

struct pto_traffic *pto_writes_traffic (struct pto_writes *writes, uint32_t child);
/* The next life of that child: 1, 2, ... Of the child. */
uint32_t pto_writes_begin_life (struct pto_writes *writes, uint32_t child);
/* Which it is in, or was; 0: in none yet. Any process; a hint: it may begin the next. */
uint32_t pto_writes_life (const struct pto_writes *writes, uint32_t child);
