/* single-child.h: a child that is alone: how is it asked, and watched by those who ask?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A level (level.h) has a pool, a scheduler and a keeper for its children. A solo child has none of
 * them: whoever waits for an answer also looks whether it lives and what it writes to its standard
 * error, so that a request costs no thread and no system call as long as its answer comes soon.
 *
 * It has two lanes, a mailbox each, served by two of its threads: a request of the second is
 * answered while one of the first is under way. One asker at a time for each lane, its owner's to
 * see to. A child that has died is begun again with the same shared memory.
 *
 * Thread safety: pto_solo_begin() and what ends it: one thread, while nobody asks; all others: any
 * thread, one at a time for each lane.
 */
#pragma once

#include "arena.h"
#include "process.h"
#include "service.h"

#define PTO_SOLO_LANES 2u
#define PTO_SOLO_BODY 10240u /* bytes of a request that need no other memory */
#define PTO_SOLO_NEVER UINT64_MAX

struct pto_solo_config
{
  const char *path; /* of the child, for messages */
  pto_fork_func fork;
  void *fork_data;
  struct pto_server servers[PTO_SOLO_LANES]; /* is_orphan is filled in */
  uint64_t bytes;                            /* of shared memory for the owner */
  uint64_t arena;                            /* if this process has none yet */
};

struct pto_solo;

/* Maps shared memory; no process. */
struct pto_solo *pto_solo_new (const struct pto_solo_config *config, struct pto_report *report);
/* Ends the child: asked to, then killed. In a copy that a fork made the child is left alone. */
void pto_solo_free (struct pto_solo *solo);
/* Zeros at first, at the same address in the child. */
void *pto_solo_memory (const struct pto_solo *solo);
/* Does it belong to this process? */
bool pto_solo_is_own (const struct pto_solo *solo);

/* Begins a child if there is none that lives; it has answered PTO_REQUEST_START on lane 0 then.
 * Native stack. */
enum pto_status pto_solo_begin (struct pto_solo *solo, struct pto_report *report);
/* As far as is known without asking the system. */
bool pto_solo_is_alive (const struct pto_solo *solo);
/* Asks the system; reaps. */
bool pto_solo_look (struct pto_solo *solo);
/* Asks the system: does it stand still (SIGSTOP)? */
bool pto_solo_is_stopped (struct pto_solo *solo);
/* why: a literal. Its death is found by whoever waits. */
void pto_solo_kill (struct pto_solo *solo, const char *why);
/* Ends the child and waits for that: with CLOSE on lane 0, unless at_once. */
void pto_solo_end (struct pto_solo *solo, bool at_once);
/* "died (signal 9, Killed)", and the last line that it wrote. */
void pto_solo_describe (struct pto_solo *solo, char *text, size_t size, char *words,
                        size_t words_size);
/* 0 while it lives. */
int pto_solo_process_id (const struct pto_solo *solo);

/* What the child sees of this process's memory, taken at its fork. Whoever asks is the only one. */
struct pto_shared_map *pto_solo_map (const struct pto_solo *solo);

/* Where a request's digest and body are written. */
uint8_t *pto_solo_digest (const struct pto_solo *solo, uint32_t lane);
void *pto_solo_body (const struct pto_solo *solo, uint32_t lane);
/* body: 0, or memory of the arena that stays until the answer, instead of that. */
void pto_solo_post (struct pto_solo *solo, uint32_t lane, enum pto_request request, uint64_t body,
                    uint32_t bytes);
/* The request is not wanted any more. */
void pto_solo_cancel (struct pto_solo *solo, uint32_t lane);
/* Whoever waits on the lane returns and looks around. Any thread, and the child. */
void pto_solo_ring (struct pto_solo *solo, uint32_t lane);

enum pto_solo_event
{
  PTO_SOLO_ANSWERED,
  PTO_SOLO_DIED, /* and will not answer */
  PTO_SOLO_LOOK  /* rung, or the deadline has come */
};
/* To be asked before whoever waits looks at what a ring is about. */
uint32_t pto_solo_listen (const struct pto_solo *solo, uint32_t lane);
/* Waits for the answer, or a ring after the listening that gave heard: spins for at most spin_ns,
 * then sleeps. deadline: pto_solo_clock(), or PTO_SOLO_NEVER. */
enum pto_solo_event pto_solo_wait (struct pto_solo *solo, uint32_t lane, uint32_t heard,
                                   uint64_t spin_ns, uint64_t deadline);
/* Of an answered request: 0, or an enum pto_status and then failure is filled. */
uint32_t pto_solo_answer (const struct pto_solo *solo, uint32_t lane, struct pto_failure *failure);
uint64_t pto_solo_clock (void); /* the wall clock of the floor below: ns */
/* Passes on what it has written. */
void pto_solo_take_words (struct pto_solo *solo);
