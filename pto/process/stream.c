/* stream.c: how does an orchestration that runs here submit to a chip in another process?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "stream.h"

#include "../exec/pto_atomic.h"
#include "../exec/shared.h"

#include "../exec/text.h"
#include "wire.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (UINT32_C (1) << 20)
#define MASK (BYTES - 1)
/* How long the reader looks for the next command before it sleeps. */
#define SPIN_NS 10000u

struct pto_stream
{
  alignas (64) struct pto_word head;  /* W: writer, release behind the bytes; R: reader, acquire */
  alignas (64) _Atomic uint32_t tail; /* W: reader, seq_cst; R: writer, acquire or seq_cst */
  _Atomic uint32_t begun;  /* W: reader, a ring follows; R: writer. Relaxed: of nothing */
  _Atomic uint32_t failed; /* W: reader, release before tail; the run has failed */
  /* The writer waits and is to be told. W: writer, seq_cst before its look at tail; R: reader,
   * seq_cst behind its store of tail. */
  alignas (64) _Atomic uint32_t wanted;
  /* Of the last command that has one. W: reader, before tail; R: writer, behind it. */
  int32_t answer;
  int32_t numbers[PTO_STREAM_ANSWER];
  char failure[PTO_STREAM_TEXT]; /* W: reader, before failed; R: writer, behind it */
  alignas (64) uint8_t bytes[BYTES];
};

struct command
{
  uint32_t kind;
  uint32_t bytes; /* of all of it, a multiple of 8 */
  int32_t a, b;   /* kernel and worker type; line; number; status; result; cluster and type */
  int32_t n;      /* parameters; generation; length of the text */
  int32_t c;      /* priority */
};

/* A parameter: this much of a scalar, all of a tensor, then its shapes and strides, then how it is
 * reduced if it is. */
struct param
{
  uint32_t type;
  uint32_t status;
  uint64_t value; /* scalar, or address */
  /* tensor */
  uint64_t size;
  uint64_t start_offset;
  uint32_t ndims;
  uint32_t dtype;
  uint32_t storage; /* number of the buffer + 1; 0: memory of the caller */
  uint32_t generation;
};
#define SCALAR_BYTES offsetof (struct param, size)

struct reduction
{
  uint64_t initial;
  int32_t combine;
  int32_t pad;
};
#define TENSOR_BYTES \
  (sizeof (struct param) + 2 * PTO2_TENSOR_MAX_DIMS * sizeof (uint64_t) + sizeof (struct reduction))

/* What a submit says beside its parameters, which follow: the condition as one more, its index,
 * the tasks that it comes after, the kernels of a group, how many parameters its members have, and
 * their cores. */
struct more
{
  uint32_t n_after;
  uint32_t has_condition;
  int32_t block_dim;
  int32_t sync_start;
  uint32_t is_mixed;
  int32_t mixed[3];
  int32_t in_cluster;
  int32_t cluster_id;
  int32_t n_group;
  uint32_t has; /* lists of a group: HAS_* */
};
#define HAS_PARAMS 1u
#define HAS_CORES 2u

/* No command is longer. */
#define COMMAND_MAX                                                                        \
  (sizeof (struct command) + sizeof (struct more) + (PTO_STREAM_PARAMS + 1) * TENSOR_BYTES \
   + PTO2_TENSOR_MAX_DIMS * sizeof (uint64_t) + PTO_STREAM_AFTER * sizeof (uint64_t)       \
   + 3 * PTO_STREAM_GROUP * sizeof (int32_t) + PTO_STREAM_TEXT + 64)
_Static_assert(2 * COMMAND_MAX < BYTES, "a command and what it leaves at the end fit");

size_t
pto_stream_size (void)
{
  return sizeof (struct pto_stream);
}

/* --- writer --- */

void
pto_stream_begin (struct pto_stream_writer *writer, struct pto_stream *stream)
{
  writer->stream = stream;
  writer->head = 0;
  /* Relaxed: the request that follows publishes them. */
  pto_word_init (&stream->head, 0, false);
  pto_store_relaxed (&stream->tail, 0);
  pto_store_relaxed (&stream->begun, 0);
  pto_store_relaxed (&stream->failed, 0);
  pto_store_relaxed (&stream->wanted, 0);
}

static uint32_t
used (const struct pto_stream_writer *writer)
{
  /* Acquire: pairs with the reader's store; what it has read may be written over. */
  return writer->head - pto_load_acquire (&writer->stream->tail);
}

bool
pto_stream_is_sound (const struct pto_stream_writer *writer)
{
  return used (writer) <= BYTES;
}

bool
pto_stream_has_begun (const struct pto_stream_writer *writer)
{
  return pto_load_relaxed (&writer->stream->begun) != 0;
}

bool
pto_stream_has_failed (const struct pto_stream_writer *writer)
{
  return pto_load_acquire (&writer->stream->failed) != 0;
}

void
pto_stream_get_failure (const struct pto_stream_writer *writer, char *text)
{
  const char *failure = writer->stream->failure;

  text[0] = '\0';
  if (pto_stream_has_failed (writer))
    pto_text_copy (text, PTO_STREAM_TEXT, failure, strnlen (failure, PTO_STREAM_TEXT));
}

/* Has the reader come so far that no more than that is left? */
static bool
is_within (struct pto_stream_writer *writer, uint32_t left, bool wait)
{
  if (used (writer) <= left)
    return true;
  if (!wait)
    return false;
  /* seq_cst, both: wanted before the look at tail; pairs with the reader, who moves that first. */
  pto_exchange_seq_cst (&writer->stream->wanted, 1);
  return writer->head - pto_load_seq_cst (&writer->stream->tail) <= left;
}

bool
pto_stream_is_read (struct pto_stream_writer *writer, bool wait)
{
  return is_within (writer, 0, wait);
}

bool
pto_stream_has_room (struct pto_stream_writer *writer, bool wait)
{
  /* Twice: it may have to begin anew at the front. */
  return is_within (writer, BYTES - 2 * COMMAND_MAX, wait);
}

/* Where the next command is written; it does not straddle the end. */
static struct command *
reserve (struct pto_stream_writer *writer)
{
  uint32_t left = BYTES - (writer->head & MASK);
  struct command *command = (struct command *) (void *) &writer->stream->bytes[writer->head & MASK];

  if (left >= COMMAND_MAX)
    return command;
  command->kind = PTO_COMMAND_PAD;
  command->bytes = left;
  writer->head += left;
  return (struct command *) (void *) writer->stream->bytes;
}

static void
commit (struct pto_stream_writer *writer, struct command *command, enum pto_command_kind kind,
        size_t bytes)
{
  command->kind = (uint32_t) kind;
  command->bytes = (uint32_t) ((bytes + 7) & ~(size_t) 7);
  writer->head += command->bytes;
  pto_shared_set (NULL, &writer->stream->head, writer->head);
}

static uint8_t *
put_param (uint8_t *at, const PTOParam *param)
{
  const Tensor *tensor = &param->tensor;
  struct param *put = (struct param *) (void *) at;
  uint64_t *dims = (uint64_t *) (void *) (at + sizeof *put);

  put->type = (uint32_t) param->type;
  put->status = 0;
  if (param->type == PTO_PARAM_SCALAR)
    {
      put->value = param->scalar;
      return at + SCALAR_BYTES;
    }
  put->status = tensor->status;
  put->value = tensor->buffer.addr;
  put->size = tensor->buffer.size;
  put->start_offset = tensor->start_offset;
  put->ndims = tensor->ndims;
  put->dtype = (uint32_t) tensor->dtype;
  put->storage = (uint32_t) (uintptr_t) tensor->storage;
  put->generation = tensor->generation;
  if (put->ndims > PTO2_TENSOR_MAX_DIMS)
    {
      put->ndims = 0;
      put->status = put->status != PTO2_TENSOR_OK ? put->status : PTO2_TENSOR_BAD_SHAPE;
    }
  for (uint32_t d = 0; d < put->ndims; d++)
    {
      dims[d] = tensor->shapes[d];
      dims[put->ndims + d] = tensor->strides[d];
    }
  at = (uint8_t *) (dims + 2 * put->ndims);
  if (param->type != PTO_PARAM_REDUCTION)
    return at;
  *(struct reduction *) (void *) at
      = (struct reduction){ .initial = param->scalar, .combine = param->combine };
  return at + sizeof (struct reduction);
}

void
pto_stream_submit (struct pto_stream_writer *writer, int32_t kernel, int32_t worker_type,
                   const PTOParam *params, int32_t n_params)
{
  struct command *command = reserve (writer);
  uint8_t *at = (uint8_t *) (command + 1);

  command->a = kernel;
  command->b = worker_type;
  command->n = n_params;
  for (int32_t i = 0; i < n_params && n_params <= PTO_STREAM_PARAMS; i++)
    at = put_param (at, &params[i]);
  commit (writer, command, PTO_COMMAND_SUBMIT, (size_t) (at - (uint8_t *) command));
}

/* One for each member of a group, or none. */
static uint8_t *
put_numbers (uint8_t *at, const int32_t *numbers, int32_t n)
{
  size_t bytes = numbers != NULL && n > 0 ? (size_t) n * sizeof *numbers : 0;

  if (bytes > 0)
    memcpy (at, numbers, bytes);
  return at + bytes;
}

void
pto_stream_submit_more (struct pto_stream_writer *writer, const PTO2Submit *submit)
{
  struct command *command = reserve (writer);
  struct more *more = (struct more *) (void *) (command + 1);
  uint8_t *at = (uint8_t *) (more + 1);

  command->a = submit->kernel_id;
  command->b = submit->worker_type;
  command->n = submit->n_params;
  command->c = submit->priority;
  more->n_after = (uint32_t) submit->n_after;
  more->has_condition = submit->condition != NULL;
  more->block_dim = submit->block_dim;
  more->sync_start = submit->sync_start;
  more->is_mixed = submit->mixed != NULL;
  if (submit->mixed != NULL)
    memcpy (more->mixed, submit->mixed, sizeof more->mixed);
  more->in_cluster = submit->in_cluster;
  more->cluster_id = submit->cluster_id;
  more->n_group = submit->n_group;
  for (int32_t i = 0; i < submit->n_params && submit->n_params <= PTO_STREAM_PARAMS; i++)
    at = put_param (at, &submit->params[i]);
  if (submit->condition != NULL)
    {
      PTOParam condition = pto2_make_param (PTO_PARAM_INPUT, submit->condition);
      size_t bytes = PTO2_TENSOR_MAX_DIMS * sizeof *submit->condition_index;

      at = put_param (at, &condition);
      memcpy (at, submit->condition_index, bytes);
      at += bytes;
    }
  if (submit->n_after > 0)
    memcpy (at, submit->after, (size_t) submit->n_after * sizeof *submit->after);
  at += (size_t) submit->n_after * sizeof *submit->after;
  more->has = (submit->group_params != NULL ? HAS_PARAMS : 0)
              | (submit->group_cores != NULL ? HAS_CORES : 0);
  at = put_numbers (at, submit->group, submit->n_group);
  at = put_numbers (at, submit->group_params, submit->n_group);
  at = put_numbers (at, submit->group_cores, submit->n_group);
  commit (writer, command, PTO_COMMAND_SUBMIT_MORE, (size_t) (at - (uint8_t *) command));
}

static void
put_text (struct pto_stream_writer *writer, enum pto_command_kind kind, int32_t a, const char *text)
{
  struct command *command = reserve (writer);
  size_t length = strlen (text);

  if (length > PTO_STREAM_TEXT - 1)
    length = PTO_STREAM_TEXT - 1;
  command->a = a;
  command->n = (int32_t) length;
  memcpy (command + 1, text, length);
  commit (writer, command, kind, sizeof *command + length);
}

void
pto_stream_place (struct pto_stream_writer *writer, const char *file, int32_t line)
{
  put_text (writer, PTO_COMMAND_PLACE, file != NULL ? line : 0, file != NULL ? file : "");
}

void
pto_stream_scope_begin (struct pto_stream_writer *writer, enum pto_command_kind kind,
                        const char *file, int32_t line)
{
  put_text (writer, kind, line, file != NULL ? file : "");
}

void
pto_stream_fail (struct pto_stream_writer *writer, int32_t status, const char *message)
{
  put_text (writer, PTO_COMMAND_FAIL, status, message);
}

void
pto_stream_put (struct pto_stream_writer *writer, enum pto_command_kind kind)
{
  struct command *command = reserve (writer);

  commit (writer, command, kind, sizeof *command);
}

void
pto_stream_buffer (struct pto_stream_writer *writer, uint32_t number, uint32_t generation,
                   uint64_t bytes)
{
  struct command *command = reserve (writer);

  command->a = (int32_t) number;
  command->n = (int32_t) generation;
  memcpy (command + 1, &bytes, sizeof bytes);
  commit (writer, command, PTO_COMMAND_BUFFER, sizeof *command + sizeof bytes);
}

void
pto_stream_cluster (struct pto_stream_writer *writer, enum pto_command_kind kind, int32_t a,
                    int32_t b)
{
  struct command *command = reserve (writer);

  command->a = a;
  command->b = b;
  commit (writer, command, kind, sizeof *command);
}

void
pto_stream_element (struct pto_stream_writer *writer, const Tensor *tensor, const uint64_t index[],
                    bool write, uint64_t value)
{
  struct command *command = reserve (writer);
  PTOParam param = pto2_make_param (PTO_PARAM_INPUT, tensor);
  uint8_t *at = put_param ((uint8_t *) (command + 1), &param);

  command->a = write;
  memcpy (at, &value, sizeof value);
  at += sizeof value;
  memcpy (at, index, tensor->ndims * sizeof *index);
  at += PTO2_TENSOR_MAX_DIMS * sizeof *index;
  commit (writer, command, PTO_COMMAND_ELEMENT, (size_t) (at - (uint8_t *) command));
}

void
pto_stream_alloc (struct pto_stream_writer *writer, const Tensor *tensor)
{
  struct command *command = reserve (writer);
  PTOParam param = pto2_make_param (PTO_PARAM_OUTPUT, tensor);
  uint8_t *end = put_param ((uint8_t *) (command + 1), &param);

  commit (writer, command, PTO_COMMAND_ALLOC, (size_t) (end - (uint8_t *) command));
}

int32_t
pto_stream_get_answer (const struct pto_stream_writer *writer, int32_t numbers[], uint32_t n)
{
  if (n > 0)
    memcpy (numbers, writer->stream->numbers, n * sizeof *numbers);
  return writer->stream->answer;
}

void
pto_stream_end (struct pto_stream_writer *writer, int32_t result)
{
  struct command *command = reserve (writer);

  command->a = result;
  commit (writer, command, PTO_COMMAND_END, sizeof *command);
}

/* --- reader --- */

struct reader
{
  struct pto_stream *stream;
  uint32_t tail;
  /* By number: what stands for the buffer here. */
  struct buffer
  {
    PTO2Buffer *storage;
    uint32_t generation; /* of storage */
    uint32_t told;       /* of the writer */
  } * buffers;
  uint32_t n_buffers;
};

static const struct command *
next (struct reader *reader)
{
  struct pto_stream *stream = reader->stream;

  for (;;)
    {
      const struct command *command
          = (const struct command *) (const void *) &stream->bytes[reader->tail & MASK];

      /* Acquire: pairs with the release in commit(); the command can be read. */
      while (pto_load_acquire (&stream->head.value) == reader->tail)
        pto_shared_park (NULL, &stream->head, reader->tail, SPIN_NS, PTO_NEVER);
      if (command->kind != PTO_COMMAND_PAD)
        return command;
      reader->tail += command->bytes;
    }
}

static void
release (struct reader *reader, const struct command *command,
         const struct pto_stream_target *target)
{
  struct pto_stream *stream = reader->stream;

  reader->tail += command->bytes;
  /* seq_cst: before the look at wanted; pairs with pto_stream_has_room(). */
  atomic_store_explicit (&stream->tail, reader->tail, memory_order_seq_cst);
  if (pto_load_seq_cst (&stream->wanted) == 0)
    return;
  /* Half of it, so that the writer is not woken for every command; or all, when it waits for that.
   */
  if (pto_load_acquire (&stream->head.value) - reader->tail <= BYTES / 2
      && pto_exchange_seq_cst (&stream->wanted, 0) != 0)
    target->ring (target->data);
}

static const uint8_t *
take_param (const struct reader *reader, const uint8_t *at, PTOParam *param)
{
  const struct param *put = (const struct param *) (const void *) at;
  const uint64_t *dims = (const uint64_t *) (const void *) (at + sizeof *put);
  Tensor *tensor = &param->tensor;

  param->type = (PTOParamType) put->type;
  param->scalar = 0;
  if (param->type == PTO_PARAM_SCALAR)
    {
      param->scalar = put->value;
      return at + SCALAR_BYTES;
    }
  memset (tensor, 0, sizeof *tensor);
  tensor->buffer.addr = put->value;
  tensor->buffer.size = put->size;
  tensor->start_offset = put->start_offset;
  tensor->ndims = put->ndims;
  tensor->dtype = (DataType) put->dtype;
  tensor->status = put->status;
  for (uint32_t d = 0; d < put->ndims; d++)
    {
      tensor->shapes[d] = dims[d];
      tensor->strides[d] = dims[put->ndims + d];
    }
  if (put->storage != 0 && put->storage <= reader->n_buffers)
    {
      const struct buffer *buffer = &reader->buffers[put->storage - 1];

      tensor->storage = buffer->storage;
      /* A handle that has outlived its scope is refused as it would be here. */
      tensor->generation = buffer->generation + (buffer->told != put->generation);
    }
  at = (const uint8_t *) (dims + 2 * put->ndims);
  if (param->type != PTO_PARAM_REDUCTION)
    return at;
  param->scalar = ((const struct reduction *) (const void *) at)->initial;
  param->combine = ((const struct reduction *) (const void *) at)->combine;
  return at + sizeof (struct reduction);
}

static void
replay_submit (const struct reader *reader, const struct command *command, PTO2Runtime *rt)
{
  PTO2TaskId id;

  PTOParam params[PTO_STREAM_PARAMS];
  const uint8_t *at = (const uint8_t *) (command + 1);

  for (int32_t i = 0; i < command->n && command->n <= PTO_STREAM_PARAMS; i++)
    at = take_param (reader, at, &params[i]);
  id = rt->ops->submit_task (rt, command->a, command->b, params, command->n);
  memcpy (reader->stream->numbers, &id, sizeof id);
}

static void
replay_submit_more (const struct reader *reader, const struct command *command, PTO2Runtime *rt)
{
  const struct more *more = (const struct more *) (const void *) (command + 1);
  const uint8_t *at = (const uint8_t *) (more + 1);
  PTOParam params[PTO_STREAM_PARAMS];
  PTOParam condition;
  PTO2Submit submit = { .size = sizeof submit,
                        .kernel_id = command->a,
                        .worker_type = command->b,
                        .params = params,
                        .n_params = command->n,
                        .priority = command->c,
                        .n_after = (int32_t) more->n_after,
                        .block_dim = more->block_dim,
                        .sync_start = more->sync_start,
                        .mixed = more->is_mixed != 0 ? more->mixed : NULL,
                        .in_cluster = more->in_cluster,
                        .cluster_id = more->cluster_id,
                        .n_group = more->n_group };
  PTO2TaskId id;

  for (int32_t i = 0; i < command->n && command->n <= PTO_STREAM_PARAMS; i++)
    at = take_param (reader, at, &params[i]);
  if (more->has_condition != 0)
    {
      at = take_param (reader, at, &condition);
      submit.condition = &condition.tensor;
      submit.condition_index = (const uint64_t *) (const void *) at;
      at += PTO2_TENSOR_MAX_DIMS * sizeof (uint64_t);
    }
  submit.after = (const PTO2TaskId *) (const void *) at;
  at += more->n_after * sizeof (PTO2TaskId);
  submit.group = more->n_group > 0 ? (const int32_t *) (const void *) at : NULL;
  at += more->n_group > 0 ? (size_t) more->n_group * sizeof *submit.group : 0;
  submit.group_params = (more->has & HAS_PARAMS) != 0 ? (const int32_t *) (const void *) at : NULL;
  at += submit.group_params != NULL ? (size_t) more->n_group * sizeof *submit.group_params : 0;
  submit.group_cores = (more->has & HAS_CORES) != 0 ? (const int32_t *) (const void *) at : NULL;
  id = rt->ops->submit (rt, &submit);
  memcpy (reader->stream->numbers, &id, sizeof id);
}

static void
replay_element (const struct reader *reader, const struct command *command, PTO2Runtime *rt)
{
  struct pto_stream *stream = reader->stream;
  PTOParam param;
  const uint8_t *value = take_param (reader, (const uint8_t *) (command + 1), &param);
  const uint64_t *index = (const uint64_t *) (const void *) (value + sizeof (uint64_t));
  size_t size = pto_dtype_size (param.tensor.dtype);
  void *element = rt->ops->touch (rt, &param.tensor, index, command->a != 0);

  stream->answer = element != NULL;
  if (element != NULL && command->a != 0)
    memcpy (element, value, size);
  else if (element != NULL)
    memcpy (stream->numbers, element, size);
}

static void
replay_alloc (const struct reader *reader, const struct command *command, PTO2Runtime *rt)
{
  struct pto_stream *stream = reader->stream;
  PTOParam param;
  PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, &param, 1);

  take_param (reader, (const uint8_t *) (command + 1), &param);
  stream->answer = rt->ops->submit (rt, &submit) != PTO2_TASK_NONE;
  memcpy (stream->numbers, &param.tensor.buffer.addr, sizeof param.tensor.buffer.addr);
}

static bool
replay_buffer (struct reader *reader, const struct command *command, PTO2Runtime *rt)
{
  uint32_t number = (uint32_t) command->a;
  struct buffer *buffer;
  uint64_t bytes;

  memcpy (&bytes, command + 1, sizeof bytes);
  if (number >= reader->n_buffers)
    {
      uint32_t n = 2 * number + 64;
      struct buffer *buffers = realloc (reader->buffers, n * sizeof *buffers);

      if (buffers == NULL)
        return false;
      memset (buffers + reader->n_buffers, 0, (n - reader->n_buffers) * sizeof *buffers);
      reader->buffers = buffers;
      reader->n_buffers = n;
    }
  buffer = &reader->buffers[number];
  buffer->told = (uint32_t) command->n;
  /* NULL when the run has failed: then nobody looks at it any more. */
  buffer->storage = rt->ops->new_buffer (rt, bytes, &buffer->generation);
  return true;
}

static const char *
text_of (const struct command *command, char *text)
{
  memcpy (text, command + 1, (size_t) command->n);
  text[command->n] = '\0';
  return text;
}

static void
tell_failure (struct pto_stream *stream, const struct pto_stream_target *target)
{
  const char *failure = target->get_failure (target->rt);

  /* One writer, once: the other side may be reading it from then on. */
  if (pto_load_relaxed (&stream->failed) != 0)
    return;
  snprintf (stream->failure, sizeof stream->failure, "%s", failure != NULL ? failure : "");
  /* Release: the words; pairs with the acquire in pto_stream_has_failed(). */
  pto_store_release (&stream->failed, 1);
}

int
pto_stream_replay (struct pto_stream *stream, const struct pto_stream_target *target)
{
  struct reader reader = { .stream = stream };
  PTO2Runtime *rt = target->rt;
  char text[PTO_STREAM_TEXT];
  bool ended = false;
  int result = 0;

  pto_store_relaxed (&stream->begun, 1);
  target->ring (target->data);
  while (!ended)
    {
      const struct command *command = next (&reader);

      switch ((enum pto_command_kind) command->kind)
        {
        case PTO_COMMAND_SUBMIT:
          replay_submit (&reader, command, rt);
          break;
        case PTO_COMMAND_SUBMIT_MORE:
          replay_submit_more (&reader, command, rt);
          break;
        case PTO_COMMAND_PLACE:
          rt->file = command->n > 0 ? target->keep (text_of (command, text)) : NULL;
          rt->line = command->a;
          break;
        case PTO_COMMAND_SCOPE_BEGIN:
          rt->ops->scope_begin (rt, command->n > 0 ? target->keep (text_of (command, text)) : NULL,
                                command->a);
          break;
        case PTO_COMMAND_MANUAL_SCOPE_BEGIN:
          rt->ops->manual_scope_begin (
              rt, command->n > 0 ? target->keep (text_of (command, text)) : NULL, command->a);
          break;
        case PTO_COMMAND_SCOPE_END:
          rt->ops->scope_end (rt);
          break;
        case PTO_COMMAND_BUFFER:
          if (!replay_buffer (&reader, command, rt))
            target->fail (rt, PTO_STATUS_NO_MEMORY, _ ("no memory to note a buffer"));
          break;
        case PTO_COMMAND_DONE:
          rt->ops->orchestration_done (rt);
          break;
        case PTO_COMMAND_ALLOCATE_CLUSTER:
          stream->answer = rt->ops->allocate_cluster (rt);
          break;
        case PTO_COMMAND_CLUSTER_COUNT:
          stream->answer = rt->ops->cluster_count (rt);
          break;
        case PTO_COMMAND_CLUSTER_CORES:
          stream->answer = rt->ops->cluster_cores (rt, command->a, command->b, stream->numbers,
                                                   PTO_STREAM_ANSWER);
          break;
        case PTO_COMMAND_ELEMENT:
          replay_element (&reader, command, rt);
          break;
        case PTO_COMMAND_ALLOC:
          replay_alloc (&reader, command, rt);
          break;
        case PTO_COMMAND_FREE_CLUSTER:
          rt->ops->free_cluster (rt, command->a);
          break;
        case PTO_COMMAND_FAIL:
          target->fail (rt, (enum pto_status) command->a, text_of (command, text));
          break;
        case PTO_COMMAND_END:
          result = command->a;
          ended = true;
          break;
        default:
          break;
        }
      if (target->has_failed (rt))
        tell_failure (stream, target);
      release (&reader, command, target);
    }
  free (reader.buffers);
  return result;
}
