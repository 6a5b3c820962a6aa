/* link.h: what do a parent and one worker say to each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The parent posts a request, and the worker answers it, one at a time. The parent may say that it
 * is not wanted any more; the worker gives signs of life. That is all that those who post and wait
 * (child.c, pool.c, single-child.c) know. It travels by memory that both map (mailbox.h).
 *
 * Whoever answers, or is found dead, leaves a bit in the parent's hub. Thread safety: one poster at
 * a time.
 */
#pragma once

#include "exec/shared-wait.h"
#include "service.h"

/* Bytes of a body that need no other memory. */
#define PTO_LINK_BODY 10240u

/* The near end, in memory that no child can write. */
struct pto_link
{
  struct pto_mailbox *mailbox; /* what requests travel by */
  /* Of the last request. W: poster; R: any thread of the parent, relaxed: it says nothing of what
   * the worker has. */
  _Atomic uint32_t number;
};

/* A request, but for digest and body, which are written in place. No two halves of a word here are
 * one of a mailbox: read together, they would have to wait for all that was written before. */
struct pto_letter
{
  uint64_t far_body;                    /* 0, or where the body lies instead: in the arena */
  const struct pto_call_config *config; /* TASK; NULL: as it was, or in the body */
  uint64_t task;                        /* TASK that is recorded: its id */
  enum pto_request request;
  uint32_t config_bytes;
  uint32_t bytes;         /* of the body */
  uint32_t record;        /* TASK: PTO_RECORD of the run that it is of; 0: of none */
  struct pto_terms terms; /* TASK */
  bool checks;            /* TASK: accesses are checked, whatever its config says */
};

/* Where the next request's digest and body are written, while none is under way. */
uint8_t *pto_link_digest (const struct pto_link *link);
uint8_t *pto_link_body (const struct pto_link *link);
/* Posts it. Only while idle. exec as for pto_bell_ring(). */
void pto_link_post (struct pto_exec *exec, struct pto_link *link, const struct pto_letter *letter);
/* Asks for an end of the request that is under way; nothing when there is none. */
void pto_link_cancel (struct pto_link *link);
/* Makes it idle, whatever was under way. Only while there is no worker: before one that is dead and
 * reaped is begun again. */
void pto_link_reset (struct pto_link *link);

/* Is the last request answered? Acquire: then the answer can be read, the next one be written. */
bool pto_link_is_idle (const struct pto_link *link);
/* Has the worker begun the last request? */
bool pto_link_is_taken (const struct pto_link *link);
/* Can what came have been said by a worker? If not, a request that is under way may never be
 * answered. */
bool pto_link_is_sound (const struct pto_link *link);
/* The answer, while idle: 0, or an enum pto_status and then failure is filled, in sound text
 * whatever the worker wrote. */
uint32_t pto_link_answer (const struct pto_link *link, struct pto_failure *failure);
/* TASKS, taken or answered: the worker keeps no more than the first of them, so many; UINT32_MAX:
 * it has not said so. */
uint32_t pto_link_kept_tasks (const struct pto_link *link);
/* TASKS, answered: which of n have failed, all of them where nobody has said which; and ns that
 * they took where they ran. As the worker says. */
uint64_t pto_link_failed_tasks (const struct pto_link *link, uint32_t n);
uint64_t pto_link_busy (const struct pto_link *link);
/* TASK and TASKS, recorded, answered: of that one. As the worker says; false: it says nothing, and
 * they are zeros. */
bool pto_link_task_stamps (const struct pto_link *link, uint32_t number, struct pto_stamps *stamps);
/* Of a TASK that was recorded and taken: pto_ticks() of its begin and, once it is answered, its
 * end. As the worker says. */
void pto_link_stamps (const struct pto_link *link, uint64_t *began, uint64_t *ended);
/* How many signs of life it has given. */
uint32_t pto_link_beat (const struct pto_link *link);
/* Does the worker say of whom it speaks for that nothing is heard of it (pto_call_set_silent())? */
bool pto_link_is_silent (const struct pto_link *link);

/* What a parent has for all of its children: one page, shared. Bit i: look at child i, it has
 * answered or was found dead. W: child i, and who finds it dead (pto_hub_mark()); R: the pump,
 * which exchanges a word of them for 0. A bit that was set for nothing costs a look. */
struct pto_hub
{
  struct pto_bell bell;
  alignas (64) _Atomic uint64_t answered[PTO_CHILDREN_MAX / 64];
};

/* Sets the bit and rings. Any process, any thread; exec as for pto_bell_ring(). */
void pto_hub_mark (struct pto_exec *exec, struct pto_hub *hub, uint32_t index);
/* Takes the bits of children 64 * word and up. What they answered is visible after it. */
uint64_t pto_hub_take (struct pto_hub *hub, uint32_t word);
