/* service.h: what is a child asked, and what does it know when it is asked?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The common words of parent and child, plain data: for mailbox.h below and the object layer above
 * (which can not include pto-exec.h: the public enumeration of back ends has its names).
 */
#pragma once

#include "core/status.h"
#include "core/submission.h"
#include "call-format.h"

enum pto_request
{
  PTO_REQUEST_START = 1, /* answered when the child can run tasks */
  PTO_REQUEST_TASK,      /* config, digest, blob */
  PTO_REQUEST_TASKS,     /* body: several, packed, which do not depend on each other */
  /* digest; body: descriptor and sources, bytes of the object layer. Who says yes can run it, and
   * does not before COMMIT. */
  PTO_REQUEST_REGISTER,
  PTO_REQUEST_COMMIT,     /* digest: everybody has said yes; there is no other answer */
  PTO_REQUEST_UNREGISTER, /* digest, whether it was committed or not */
  PTO_REQUEST_CLOSE,      /* answered before the child ends */
  PTO_REQUEST_TRACE, /* of the last recorded run: how large, or into the memory that is named */
  /* body, bytes of the object layer: memory of a worker that does not share ours is wanted, or to
   * be copied, or not needed any more */
  PTO_REQUEST_MEMORY,
  /* body, ranges of addresses (remote-results.h): of a worker that does not share our memory, what
   * it has left there */
  PTO_REQUEST_FETCH,
  /* of a chip in a process of its own (machine/machine-isolated.c) */
  PTO_REQUEST_UP,        /* make the chip, as its parameters say by now */
  PTO_REQUEST_RUN,       /* digest of a registration, or zeros: a launch, or what the stream says */
  PTO_REQUEST_GRAPH,     /* body: its number, and it: to be kept */
  PTO_REQUEST_FORGET,    /* body: the number of one that is not needed any more */
  PTO_REQUEST_CAPTURED,  /* as TRACE: what the last run has captured */
  PTO_REQUEST_INSTRUMENT /* digest: tasks of a run that is checked name that kernel next */
};

enum pto_child_kind
{
  PTO_CHILD_NEXT = 0, /* a worker of the level below */
  PTO_CHILD_SUB = 1,
  PTO_N_CHILD_KINDS
};

struct pto_hub; /* link.h */

/* What a child that speaks for somebody far away says of a task that is recorded. Times as trace
 * stamps count; 0: that did not happen. */
struct pto_stamps
{
  uint64_t began, ended; /* there */
  uint64_t sent;         /* bytes of its tensors that went there, from ... to ... */
  uint64_t sent_from, sent_to;
  uint64_t saved;    /* were to go, and were there already */
  uint64_t received; /* came back, from ... to ... */
  uint64_t received_from, received_to;
};

#define PTO_CHILDREN_MAX PTO_MAX_CHILDREN
#define PTO_WORKER_ANY UINT32_MAX

/* One request as its server sees it. Valid until serve() returns. */
struct pto_call
{
  enum pto_request request;
  const struct pto_call_config *config; /* TASK */
  const uint8_t *digest;                /* PTO_DIGEST_BYTES */
  struct pto_args_view args;            /* TASK; zero-copy */
  const uint8_t *kinds;                 /* TASK; of each scalar, the object layer's; or NULL */
  uint64_t task;                        /* of TASKS, recorded: its id */
  struct pto_terms terms;               /* TASK */
  const uint8_t *body;                  /* REGISTER */
  uint64_t bytes;
  /* For the functions below. */
  struct pto_mailbox *mailbox;
  struct pto_hub *hub;
  uint32_t index; /* of the child */
};

/* A task in a message of several, packed: a head, its configuration, then, from another machine,
 * pieces of memory, and then its arguments. */
struct pto_call_counts
{
  uint32_t config_bytes; /* cut, as pto_wire_config_bytes() says */
  uint32_t n_pieces;     /* then a tensor's data is where in a piece it begins, and access which */
  uint32_t n_tensors;
  uint32_t n_scalars;
  uint32_t n_kinds; /* n_scalars, or 0 */
};
/* All that goes before pieces, and what follows them. */
void pto_call_pack_head (struct pto_pack *pack, struct pto_call *call,
                         struct pto_call_counts *counts);
void pto_call_pack_args (struct pto_pack *pack, struct pto_call *call,
                         const struct pto_call_counts *counts);

/* TASKS: one after the other, as a call of its own; *at is 0 at first. false: there is none, or
 * what follows is none. On the serving thread. */
bool pto_call_next_task (const struct pto_call *all, uint64_t *at, struct pto_call *one);
/* Also before that: those behind the first n will not begin here, and what is said of them does not
 * count. Once for each request; any thread of a process child. */
void pto_call_keep_tasks (const struct pto_call *all, uint32_t n);
/* And before it is answered: which have failed, a bit each; failure is that of the first, and the
 * status one of a failure if there is any. busy: the ns that they took where they ran. */
void pto_call_tell_tasks (const struct pto_call *all, uint64_t failed, uint64_t busy);
/* Of a TASK, or TASKS, that are recorded, when nothing of the body is needed any more: of each from
 * the first on. */
void pto_call_tell_stamps (const struct pto_call *all, uint32_t number,
                           const struct pto_stamps *stamps);
/* As trace stamps count. Any thread. */
uint64_t pto_call_ticks (void);

/* Is the request not wanted any more? Any thread of the child. */
bool pto_call_is_cancelled (const struct pto_call *call);
/* A sign of life: something was finished inside. Any thread of the child. */
void pto_call_beat (const struct pto_call *call);
/* Of whom the child speaks for nothing is heard, or is heard again: until then it is given no task
 * (struct pto_child, far). A copy of a call does that is answered by now. Any thread of a process
 * child, one at a time. */
void pto_call_set_silent (const struct pto_call *call, bool silent);

/* The same of calls that no mailbox brings, all of one server: not cancelled, without a sign of
 * life (a remote worker's). NULL: no memory; freed by free(). Any thread. */
struct pto_mailbox *pto_call_mailbox_new (void);
void pto_call_mailbox_cancel (struct pto_mailbox *mailbox, bool cancelled);
uint32_t pto_call_mailbox_beat (const struct pto_mailbox *mailbox);
/* Of the next TASK: what pto_call_record() gives. On the serving thread. */
void pto_call_mailbox_set_record (struct pto_mailbox *mailbox, uint32_t record, uint64_t task);

/* What a recorded run is called by those who have a part in it: which it is, and how much of it is
 * recorded, which is never 0. */
#define PTO_RECORD(number, level) ((uint32_t) (number) << 3 | (level))
#define PTO_RECORD_LEVEL(record) ((record) &7u)
/* Of a TASK: the record that it is of, and its id there; 0: it is not recorded.
 * On the serving thread. */
uint32_t pto_call_record (const struct pto_call *call, uint64_t *task);

/* What a child does with its requests: on its main thread, one at a time. */
struct pto_server
{
  /* 0, or an enum pto_status and then failure is filled. */
  uint32_t (*serve) (void *data, const struct pto_call *call, struct pto_failure *failure);
  void *data;
  /* Called in a process child before it takes its first request: uses each lock that another thread
   * may have held when the child was forked. Who is caught here takes nothing, which is how its
   * parent knows, and forks it again. NULL: nothing to look for. */
  void (*probe) (void *data);
  /* Asked before each sleep; true: nobody will post any more, and the server returns. NULL: a
   * thread, which its parent outlives. */
  bool (*is_orphan) (void);
};

struct pto_child_config
{
  enum pto_child_kind kind;
  uint32_t level;       /* NEXT: 2 a chip, 3 and up a worker; SUB: 0 */
  uint32_t id_plus_1;   /* NEXT: what it is called, if not by its number among its kind; or 0 */
  bool thread;          /* a thread of this process instead of a process */
  bool far;             /* what it runs shares no memory with us: it keeps copies (write-log.h) */
  const char *address;  /* then: where it is, for messages; it stays */
  uint64_t leave_bytes; /* then: what it writes is left there from that size on
                           (pool-remote-results.c); 0: nothing is */
  /* Made by the object layer; is_orphan is filled in. start answers PTO_REQUEST_START through serve
   * as well. In a process child all of it is the copy that the fork made. */
  struct pto_server server;
  /* THREAD children that have process children of their own fork them in our fork phase. NULL: they
   * have none. */
  enum pto_status (*fork) (void *data, struct pto_report *report);
  void (*close) (void *data); /* after the child has ended, in the parent; may be NULL */
};

/* One member of a task: its part of the task's arguments, and where it is to run. */
struct pto_member
{
  uint16_t first_tensor; /* among the task's tensors */
  uint16_t n_tensors;
  uint16_t first_scalar; /* among the task's scalars */
  uint16_t n_scalars;
  uint32_t worker; /* number among the kind's, or PTO_WORKER_ANY */
};

/* What a level adds to a task; copied into the task's storage by the engine (struct pto_submit,
 * extra), so that it lives as long as the slot. Read-only once published, but for the pool's. */
struct pto_level_task
{
  bool failed;           /* the pool's: by itself, one of its members has. W, R: carrier */
  bool lost;             /* likewise: one was, and when all have ended it is run once more */
  bool anew;             /* likewise: now they have */
  bool told;             /* likewise: whoever watches the run knows that it begins */
  bool idempotent;       /* to run it once more does no harm */
  uint16_t n_lost;       /* likewise: so often it was lost, and not over with that ... */
  uint32_t n_ended;      /* ... and so many members have ended since */
  const uint8_t *digest; /* of the registration, which outlives its tasks; so does name */
  const char *name;
  const struct pto_member *members; /* in: the caller's; in storage: behind config, and behind them
                                     * a byte of enum pto_wire_access for each tensor */
  /* What each scalar was, for the object layer of the child. in: the caller's, or NULL; in storage:
   * behind those bytes, if not NULL. */
  const uint8_t *kinds;
  /* in: of each tensor, how it stays where it is (PTO_WIRE_STAYS, and PTO_WIRE_OWNED), or 0; NULL:
   * none does. In storage those bytes of access say it. */
  const uint8_t *stays;
  uint32_t n_members;
  uint32_t n_tensors; /* all members'; filled in with the storage */
  uint32_t kind;      /* enum pto_child_kind */
  uint32_t serves;    /* NEXT: the level a child must have; SUB: 0 */
  uint32_t config_bytes;
  struct pto_call_config config; /* last: cut behind output_prefix's text */
};
