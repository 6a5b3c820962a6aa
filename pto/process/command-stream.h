/* command-stream.h: how does an orchestration that runs here submit to a chip in another process?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Its calls go as commands through a ring of bytes in shared memory, and are made there in the same
 * order. Nothing is waited for but room, and where a call has an answer that: what a submit meets
 * is found by later calls. Two numbers say everything, and each has one writer: head, the bytes
 * written, and tail, those done with.
 *
 * The reader may die at any instruction, or write anything anywhere in here; the writer keeps its
 * own number and believes of tail only what can be. Thread safety: one writer, one reader.
 */
#pragma once

#include "api/pto_orchestration_api.h"
#include "core/status.h"

#include <stddef.h>

/* A text in a command is cut to fit. */
#define PTO_STREAM_TEXT 2048u
/* More parameters than any task has are counted and not sent. */
#define PTO_STREAM_PARAMS 128
/* Tasks that one submit can name. */
#define PTO_STREAM_AFTER 1024
/* Kernels of one group. */
#define PTO_STREAM_GROUP 4096
/* Numbers of an answer. */
#define PTO_STREAM_ANSWER 32

enum pto_command_kind
{
  PTO_COMMAND_PAD = 1, /* to the end of the ring */
  PTO_COMMAND_SUBMIT,
  PTO_COMMAND_SUBMIT_MORE,
  PTO_COMMAND_PLACE, /* of the submits that follow */
  PTO_COMMAND_SCOPE_BEGIN,
  PTO_COMMAND_MANUAL_SCOPE_BEGIN,
  PTO_COMMAND_SCOPE_END,
  PTO_COMMAND_BUFFER, /* a record for a buffer of the current scope */
  PTO_COMMAND_DONE,
  PTO_COMMAND_ALLOCATE_CLUSTER, /* has an answer, as have the four behind it */
  PTO_COMMAND_CLUSTER_COUNT,
  PTO_COMMAND_CLUSTER_CORES,
  PTO_COMMAND_ELEMENT,
  PTO_COMMAND_ALLOC,
  PTO_COMMAND_FREE_CLUSTER,
  PTO_COMMAND_FAIL,
  PTO_COMMAND_END /* the last */
};

/* In shared memory, of zeros at first: so many bytes, at the begin of a line. */
struct pto_stream;
size_t pto_stream_size (void);

/* --- writer --- */

struct pto_stream_writer
{
  struct pto_stream *stream;
  uint32_t head;
};

/* Empties the stream, for the next run. Nobody reads it. */
void pto_stream_begin (struct pto_stream_writer *writer, struct pto_stream *stream);
/* Has the reader begun? What it has seen of the run by now: has that failed? */
bool pto_stream_has_begun (const struct pto_stream_writer *writer);
bool pto_stream_has_failed (const struct pto_stream_writer *writer);
/* And why, as far as the reader knew by then: into PTO_STREAM_TEXT bytes, "" if it did not. */
void pto_stream_get_failure (const struct pto_stream_writer *writer, char *text);
/* Can the next command be written, whatever it is? wait: then it will be told. */
bool pto_stream_has_room (struct pto_stream_writer *writer, bool wait);
/* Has everything been read that was written? wait as above. */
bool pto_stream_is_read (struct pto_stream_writer *writer, bool wait);
/* Can what the reader says be true? */
bool pto_stream_is_sound (const struct pto_stream_writer *writer);

/* What a command says; which of it, its kind says. Of tensors storage is the number of a buffer +
 * 1, or 0. */
struct pto_said
{
  /* SUBMIT: kernel, worker type and parameters. SUBMIT_MORE: all of it, no more than
   * PTO_STREAM_AFTER and PTO_STREAM_GROUP, and no index without a condition. What these two gave
   * there is in the first two numbers of an answer. */
  PTO2Submit submit;
  /* PLACE, scopes: the line. FAIL: the status. END: the result. ELEMENT: is it written? BUFFER: its
   * number, and its generation. Of a cluster: which, and the worker type. */
  int32_t a, b;
  uint64_t value;        /* ELEMENT: what is written; BUFFER: bytes */
  PTOParam *param;       /* ELEMENT; ALLOC: what it outputs */
  const uint64_t *index; /* ELEMENT: one for each dimension */
  const char *text;      /* PLACE, scopes: the file; FAIL: why. NULL: as "" */
};

/* Needs room. Nothing of what it says is kept. */
void pto_stream_put (struct pto_stream_writer *writer, enum pto_command_kind kind,
                     struct pto_said *said);
/* Of the last command that has one, when all is read: not 0 of ALLOC and ELEMENT, if they have come
 * to something, and then the address, or the element, is in the first two numbers. They are what
 * the reader says, of whom nothing need be true. */
int32_t pto_stream_get_answer (const struct pto_stream_writer *writer, int32_t numbers[],
                               uint32_t n);

/* --- reader --- */

struct pto_stream_target
{
  PTO2Runtime *rt;                              /* where the calls are made */
  bool (*has_failed) (PTO2Runtime *rt);         /* asked after each command */
  const char *(*get_failure) (PTO2Runtime *rt); /* once it has; NULL: nobody knows yet */
  void (*fail) (PTO2Runtime *rt, enum pto_status status, const char *message); /* FAIL */
  const char *(*keep) (const char *text); /* a copy that stays: a file */
  void (*ring) (void *data);              /* the writer waits */
  void *data;
};

/* Makes the calls that come until END; gives its result. */
int pto_stream_replay (struct pto_stream *stream, const struct pto_stream_target *target);
