/* mailbox.h: how does a parent hand one child one request, and get one answer?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One block of shared memory for each child, mapped before the fork. Two words say everything, and
 * each has one writer:
 *
 *   post  (parent)  n       : request n is there
 *   reply (child)   2n - 1  : request n is taken; 2n: request n is answered
 *
 * so reply == 2 * post means idle, and nothing else needs a name. Numbers only grow (modulo 2^32,
 * even and odd keep apart), thus a late look never mistakes one request for another. Request 1 is
 * posted before the fork: it asks the child to start, and its answer says that it has. A child that
 * is begun again goes on with the numbers.
 *
 * The child may die at any instruction, and the parent reads no torn answer: the answer is written
 * first, then one store of one word says that it is there (release), and the parent reads the
 * answer only after it has read that word (acquire). Dead before the store: reply says 2n - 1 for
 * ever, and what was half written is never read. Dead after it: the answer is whole and counts,
 * though the bit or the ring may be missing; who finds the dead makes up for both (pto_hub_mark()),
 * after the kernel has said that the child is gone, so that a look at reply is then final. Nothing
 * is taken that a dead child would have to give back.
 *
 * The other way round: a parent that dies half way through writing a request has not posted it, and
 * its child never looks at it.
 *
 * A child can write anything anywhere in here, and its functions may do so by mistake. So the
 * parent keeps its own number in memory of its own, asks nothing back that only it has said, and a
 * reply that no server gives (pto_link_is_sound()) means that this child is lost.
 *
 * The mailbox knows bytes: not what a callable is, not that its child is a process. Thread safety:
 * one poster at a time (link.h), one server.
 */
#pragma once

#include "link.h"

#include <stddef.h>

/* A mailbox is 24 KiB of address space; a usual task touches 2 pages, and the last is nobody's. */
#define PTO_MAILBOX_BYTES 24576u
#define PTO_MAILBOX_GUARD 4096u

struct pto_mailbox
{
  /* --- the parent's line --- */
  /* W: poster, release behind the request; R: child, acquire. The child sleeps on it. */
  alignas (64) struct pto_word post;
  uint32_t request; /* enum pto_request */
  uint32_t bytes;   /* of the body */
  /* Number of a request that is not wanted any more. W: parent, relaxed; R: child, relaxed: a hint.
   */
  _Atomic uint32_t cancel;
  uint64_t far_body;      /* 0, or where a body that does not fit below lies: in the arena */
  uint64_t task;          /* TASK that is recorded: its id */
  uint32_t record;        /* TASK: PTO_RECORD of the run that it is of; 0: of none */
  struct pto_terms terms; /* TASK */

  /* --- the child's line --- */
  /* W: child, release behind the answer; R: parent, acquire. */
  alignas (64) _Atomic uint32_t reply;
  /* Signs of life: tasks done inside. W: child, relaxed; R: parent, relaxed. */
  _Atomic uint32_t beat;
  uint32_t status; /* of the answer: 0, or an enum pto_status, then failure says more */
  /* Is nothing heard of whom the child speaks for? W: a thread of the child, relaxed, before its
   * bit in the hub; the parent while there is no child; R: parent, relaxed: where it matters it
   * comes behind the bit. */
  _Atomic uint32_t silent;
  /* pto_ticks() of a recorded task's begin and end; the parent believes what can be. */
  uint64_t began;
  uint64_t ended;
  /* TASKS: what pto_call_tell_tasks() has said. */
  uint64_t failed;
  uint64_t busy;
  uint64_t n_stamps; /* TASK, TASKS: struct pto_stamps that the body begins with by now */
  /* Number of the request << 32 | how many of its tasks are kept. W: child, release, before its bit
   * in the hub; R: parent, acquire. */
  _Atomic uint64_t kept;
  struct pto_failure failure;

  /* --- the parent's, behind post --- */
  alignas (64) struct pto_call_config config; /* TASK */
  alignas (8) uint8_t digest[PTO_DIGEST_BYTES];
  uint8_t body[PTO_LINK_BODY]; /* the digest "prefixes the args blob" (seed 001 section 2) */
};
_Static_assert(sizeof (struct pto_mailbox) <= PTO_MAILBOX_BYTES - PTO_MAILBOX_GUARD, "fits");
_Static_assert(offsetof (struct pto_mailbox, body)
                   == offsetof (struct pto_mailbox, digest) + PTO_DIGEST_BYTES,
               "nothing lies between");
_Static_assert(offsetof (struct pto_mailbox, body) % 64 == 0, "a blob begins with a line");

/* --- parent --- */

/* Makes the last page of PTO_MAILBOX_BYTES untouchable: who writes beyond a body is ended there,
 * and not its neighbour. */
void pto_mailbox_guard (struct pto_mailbox *mailbox);

/* The near end of a link whose far end is pto_mailbox_serve(). Fresh memory: zeros. */
void pto_mailbox_link (struct pto_link *link, struct pto_mailbox *mailbox);

/* --- child --- */

/* Serves until CLOSE is answered (true), or the server is an orphan. index: of the child in the
 * hub. spin: look for a while before sleeping (the first children of a parent only, as many as
 * there are CPUs but one). */
bool pto_mailbox_serve (struct pto_exec *exec, struct pto_mailbox *mailbox, struct pto_hub *hub,
                        uint32_t index, bool spin, const struct pto_server *server);
