/* command-stream.c: how does an orchestration that runs here submit to a chip in another process?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "command-stream.h"

#include "exec/pto-atomic.h"
#include "exec/shared-wait.h"

#include "core/submission.h"
#include "exec/translate.h"
#include "call-format.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (UINT32_C (1) << 20)
#define MASK (BYTES - 1)
/* So many buffers of open scopes have numbers. */
#define BUFFERS_MAX (UINT32_C (1) << 24)
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

/* What a command begins with; its contents follow, packed. */
struct command
{
  uint32_t kind;
  uint32_t bytes; /* of all of it, a multiple of 8 */
};

/* Where a reader finds what is pointed to. */
struct room
{
  PTOParam params[PTO_STREAM_PARAMS];
  Tensor condition;
  char text[PTO_STREAM_TEXT];
};

#define TENSOR_BYTES (sizeof (PTOParam) + 8)
/* No command is longer. */
#define COMMAND_MAX                                                                            \
  (sizeof (struct command) + sizeof (struct pto_said) + (PTO_STREAM_PARAMS + 1) * TENSOR_BYTES \
   + PTO2_TENSOR_MAX_DIMS * sizeof (uint64_t) + PTO_STREAM_AFTER * sizeof (uint64_t)           \
   + 3 * PTO_STREAM_GROUP * sizeof (int32_t) + PTO_STREAM_TEXT + 64)
_Static_assert(2 * COMMAND_MAX < BYTES, "a command and what it leaves at the end fit");

/* --- contents, for both ways --- */

/* A tensor, before its dimensions. */
struct packed_tensor
{
  uint64_t address, bytes, start_offset;
  uint32_t ndims, dtype, status, generation;
  uint32_t storage; /* the number of a buffer, or 0 */
  uint32_t reserved;
};
_Static_assert(sizeof (struct packed_tensor) == 48, "nothing lies between the numbers");

/* Dimensions that no tensor has are a status. */
static void
pack_tensor (struct pto_pack *pack, Tensor *tensor)
{
  struct packed_tensor packed = { .ndims = 0 };

  if (pack->way != PTO_PACK_READS)
    packed = (struct packed_tensor){ .address = tensor->buffer.addr,
                                     .bytes = tensor->buffer.size,
                                     .start_offset = tensor->start_offset,
                                     .ndims = tensor->ndims,
                                     .dtype = (uint32_t) tensor->dtype,
                                     .status = tensor->status,
                                     .generation = tensor->generation,
                                     .storage = (uint32_t) (uintptr_t) tensor->storage };
  if (packed.ndims > PTO2_TENSOR_MAX_DIMS)
    {
      packed.ndims = 0;
      packed.status = packed.status != PTO2_TENSOR_OK ? packed.status : PTO2_TENSOR_BAD_SHAPE;
    }
  PTO_PACK (pack, packed);
  if (packed.ndims > PTO2_TENSOR_MAX_DIMS)
    {
      pto_pack_refuse (pack);
      packed.ndims = 0;
    }
  if (pack->way == PTO_PACK_READS)
    *tensor = (Tensor){ .buffer = { packed.address, packed.bytes },
                        .start_offset = packed.start_offset,
                        .ndims = packed.ndims,
                        .dtype = (DataType) packed.dtype,
                        .status = packed.status,
                        .generation = packed.generation,
                        .storage = (PTO2Buffer *) (uintptr_t) packed.storage };
  pto_pack_value (pack, tensor->shapes, packed.ndims * sizeof *tensor->shapes);
  pto_pack_value (pack, tensor->strides, packed.ndims * sizeof *tensor->strides);
}

static void
pack_param (struct pto_pack *pack, PTOParam *param)
{
  PTO_PACK (pack, param->type);
  if (pack->way == PTO_PACK_READS)
    param->scalar = 0;
  if (param->type == PTO_PARAM_SCALAR || param->type == PTO_PARAM_REDUCTION)
    PTO_PACK (pack, param->scalar);
  if (param->type == PTO_PARAM_REDUCTION)
    PTO_PACK (pack, param->combine);
  if (param->type != PTO_PARAM_SCALAR)
    pack_tensor (pack, &param->tensor);
}

/* More parameters than any task has are counted only. */
static void
pack_task (struct pto_pack *pack, PTO2Submit *submit)
{
  PTO_PACK (pack, submit->kernel_id);
  PTO_PACK (pack, submit->worker_type);
  PTO_PACK (pack, submit->n_params);
  for (int32_t i = 0; i < submit->n_params && submit->n_params <= PTO_STREAM_PARAMS; i++)
    pack_param (pack, &submit->params[i]);
}

static void
pack_more (struct pto_pack *pack, PTO2Submit *submit, Tensor *condition)
{
  bool has_condition = submit->condition != NULL;
  bool is_mixed = submit->mixed != NULL;
  bool has_params = submit->group_params != NULL;
  bool has_cores = submit->group_cores != NULL;
  struct pto_terms terms = pto_terms_of (submit);
  uint64_t n;

  pto_pack_terms (pack, &terms);
  pto_terms_put (&terms, submit);
  PTO_PACK (pack, submit->block_dim);
  PTO_PACK (pack, submit->sync_start);
  PTO_PACK (pack, submit->in_cluster);
  PTO_PACK (pack, submit->cluster_id);
  PTO_PACK (pack, submit->n_after);
  PTO_PACK (pack, submit->n_group);
  pto_pack_flag (pack, &has_condition);
  pto_pack_flag (pack, &is_mixed);
  pto_pack_flag (pack, &has_params);
  pto_pack_flag (pack, &has_cores);
  if (has_condition)
    {
      pack_tensor (pack, condition);
      PTO_PACK_ARRAY (pack, submit->condition_index, PTO2_TENSOR_MAX_DIMS);
      submit->condition = condition;
    }
  PTO_PACK_ARRAY (pack, submit->mixed, is_mixed ? 3 : 0);
  PTO_PACK_ARRAY (pack, submit->after, submit->n_after > 0 ? (uint64_t) submit->n_after : 0);
  n = submit->n_group > 0 ? (uint64_t) submit->n_group : 0;
  PTO_PACK_ARRAY (pack, submit->group, n);
  PTO_PACK_ARRAY (pack, submit->group_params, has_params ? n : 0);
  PTO_PACK_ARRAY (pack, submit->group_cores, has_cores ? n : 0);
}

/* Cut to fit. */
static void
pack_text (struct pto_pack *pack, const char **text, char *room)
{
  bool reads = pack->way == PTO_PACK_READS;
  uint32_t n = reads || *text == NULL ? 0 : (uint32_t) strnlen (*text, PTO_STREAM_TEXT - 1);
  const char *bytes;

  PTO_PACK (pack, n);
  bytes = pto_pack_array (pack, *text, n, 1);
  if (!reads)
    return;
  n = bytes == NULL ? 0 : n < PTO_STREAM_TEXT ? n : PTO_STREAM_TEXT - 1;
  if (n > 0)
    memcpy (room, bytes, n);
  room[n] = '\0';
  *text = room;
}

/* room: NULL for a writer. */
static void
pack_command (struct pto_pack *pack, enum pto_command_kind kind, struct pto_said *said,
              struct room *room)
{
  if (room != NULL)
    {
      said->submit.params = room->params;
      said->param = room->params;
    }
  switch (kind)
    {
    case PTO_COMMAND_SUBMIT:
      pack_task (pack, &said->submit);
      break;
    case PTO_COMMAND_SUBMIT_MORE:
      pack_task (pack, &said->submit);
      pack_more (pack, &said->submit,
                 room != NULL ? &room->condition : (Tensor *) said->submit.condition);
      break;
    case PTO_COMMAND_PLACE:
    case PTO_COMMAND_SCOPE_BEGIN:
    case PTO_COMMAND_MANUAL_SCOPE_BEGIN:
    case PTO_COMMAND_FAIL:
      PTO_PACK (pack, said->a);
      pack_text (pack, &said->text, room != NULL ? room->text : NULL);
      break;
    case PTO_COMMAND_ELEMENT:
      PTO_PACK (pack, said->a);
      PTO_PACK (pack, said->value);
      pack_param (pack, said->param);
      PTO_PACK_ARRAY (pack, said->index, said->param->tensor.ndims);
      break;
    case PTO_COMMAND_ALLOC:
      pack_param (pack, said->param);
      break;
    default:
      PTO_PACK (pack, said->a);
      PTO_PACK (pack, said->b);
      PTO_PACK (pack, said->value);
    }
}

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

void
pto_stream_put (struct pto_stream_writer *writer, enum pto_command_kind kind, struct pto_said *said)
{
  struct command *command = reserve (writer);
  struct pto_pack pack = pto_pack_write (command + 1, COMMAND_MAX - sizeof *command);

  pack_command (&pack, kind, said, NULL);
  command->kind = (uint32_t) kind;
  command->bytes = (uint32_t) (sizeof *command + align_up (pack.at, 8));
  writer->head += command->bytes;
  pto_shared_set (NULL, &writer->stream->head, writer->head);
}

int32_t
pto_stream_get_answer (const struct pto_stream_writer *writer, int32_t numbers[], uint32_t n)
{
  if (n > 0)
    memcpy (numbers, writer->stream->numbers, n * sizeof *numbers);
  return writer->stream->answer;
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

/* NULL: what is there is none. */
static const struct command *
next (struct reader *reader)
{
  struct pto_stream *stream = reader->stream;

  for (;;)
    {
      uint32_t head;
      const struct command *command
          = (const struct command *) (const void *) &stream->bytes[reader->tail & MASK];

      /* Acquire: pairs with the release in pto_stream_put(); the command can be read. */
      while ((head = pto_load_acquire (&stream->head.value)) == reader->tail)
        pto_shared_park (NULL, &stream->head, reader->tail, SPIN_NS, PTO_NEVER);
      if (command->bytes < sizeof *command || command->bytes % 8 != 0
          || command->bytes > head - reader->tail || command->bytes > BYTES - (reader->tail & MASK))
        return NULL;
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

/* Here its storage is the record that stands for the buffer of that number. */
static void
find_storage (const struct reader *reader, Tensor *tensor)
{
  uint64_t number = (uint64_t) (uintptr_t) tensor->storage;

  tensor->storage = NULL;
  if (number != 0 && number <= reader->n_buffers)
    {
      const struct buffer *buffer = &reader->buffers[number - 1];

      tensor->storage = buffer->storage;
      /* A handle that has outlived its scope is refused as it would be here. */
      tensor->generation = buffer->generation + (buffer->told != tensor->generation);
    }
}

static void
replay_submit (const struct reader *reader, PTO2Submit *submit, Tensor *condition, PTO2Runtime *rt,
               bool is_plain)
{
  PTO2TaskId id;

  for (int32_t i = 0; i < submit->n_params && submit->n_params <= PTO_STREAM_PARAMS; i++)
    if (submit->params[i].type != PTO_PARAM_SCALAR)
      find_storage (reader, &submit->params[i].tensor);
  if (submit->condition != NULL)
    find_storage (reader, condition);
  submit->size = sizeof *submit;
  id = is_plain ? rt->ops->submit_task (rt, submit->kernel_id, submit->worker_type, submit->params,
                                        submit->n_params)
                : rt->ops->submit (rt, submit);
  memcpy (reader->stream->numbers, &id, sizeof id);
}

static void
replay_element (const struct reader *reader, struct pto_said *said, PTO2Runtime *rt)
{
  struct pto_stream *stream = reader->stream;
  size_t size = pto_dtype_size (said->param->tensor.dtype);
  void *element;

  find_storage (reader, &said->param->tensor);
  element = rt->ops->touch (rt, &said->param->tensor, said->index, said->a != 0);
  stream->answer = element != NULL;
  if (element != NULL && said->a != 0)
    memcpy (element, &said->value, size);
  else if (element != NULL)
    memcpy (stream->numbers, element, size);
}

static void
replay_alloc (const struct reader *reader, PTOParam *param, PTO2Runtime *rt)
{
  struct pto_stream *stream = reader->stream;
  PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, param, 1);

  find_storage (reader, &param->tensor);
  stream->answer = rt->ops->submit (rt, &submit) != PTO2_TASK_NONE;
  memcpy (stream->numbers, &param->tensor.buffer.addr, sizeof param->tensor.buffer.addr);
}

static bool
replay_buffer (struct reader *reader, const struct pto_said *said, PTO2Runtime *rt)
{
  uint32_t number = (uint32_t) said->a;
  struct buffer *buffer;

  if (number >= BUFFERS_MAX)
    return false;
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
  buffer->told = (uint32_t) said->b;
  /* NULL when the run has failed: then nobody looks at it any more. */
  buffer->storage = rt->ops->new_buffer (rt, said->value, &buffer->generation);
  return true;
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
  struct room room;
  bool ended = false;
  int result = 0;

  pto_store_relaxed (&stream->begun, 1);
  target->ring (target->data);
  while (!ended)
    {
      const struct command *command = next (&reader);
      enum pto_command_kind kind = PTO_COMMAND_END;
      struct pto_pack pack = { .bad = true };
      struct pto_said said = { .a = 0 };
      const char *file;

      if (command != NULL)
        {
          kind = (enum pto_command_kind) command->kind;
          pack = pto_pack_read (command + 1, command->bytes - sizeof *command);
          pack_command (&pack, kind, &said, &room);
        }
      if (pack.bad)
        {
          target->fail (rt, PTO_STATUS_TAMPERED,
                        _ ("a command of which only a part has arrived, or something else"));
          tell_failure (stream, target);
          result = 1;
          break;
        }
      file = said.text != NULL && said.text[0] != '\0' && kind != PTO_COMMAND_FAIL
                 ? target->keep (said.text)
                 : NULL;
      switch (kind)
        {
        case PTO_COMMAND_SUBMIT:
        case PTO_COMMAND_SUBMIT_MORE:
          replay_submit (&reader, &said.submit, &room.condition, rt, kind == PTO_COMMAND_SUBMIT);
          break;
        case PTO_COMMAND_PLACE:
          rt->file = file;
          rt->line = said.a;
          break;
        case PTO_COMMAND_SCOPE_BEGIN:
          rt->ops->scope_begin (rt, file, said.a);
          break;
        case PTO_COMMAND_MANUAL_SCOPE_BEGIN:
          rt->ops->manual_scope_begin (rt, file, said.a);
          break;
        case PTO_COMMAND_SCOPE_END:
          rt->ops->scope_end (rt);
          break;
        case PTO_COMMAND_BUFFER:
          if (!replay_buffer (&reader, &said, rt))
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
          stream->answer
              = rt->ops->cluster_cores (rt, said.a, said.b, stream->numbers, PTO_STREAM_ANSWER);
          break;
        case PTO_COMMAND_ELEMENT:
          replay_element (&reader, &said, rt);
          break;
        case PTO_COMMAND_ALLOC:
          replay_alloc (&reader, said.param, rt);
          break;
        case PTO_COMMAND_FREE_CLUSTER:
          rt->ops->free_cluster (rt, said.a);
          break;
        case PTO_COMMAND_FAIL:
          target->fail (rt, (enum pto_status) said.a, said.text);
          break;
        case PTO_COMMAND_END:
          result = said.a;
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
