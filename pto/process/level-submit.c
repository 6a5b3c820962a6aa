/* level-submit.c: may this task be given to the children of a level, and what does it take along?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-private.h"

#include "core/graph-capture.h"
#include "core/submit.h"
#include "exec/translate.h"
#include "arena.h"
#include "write-log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum pto_visibility
look_up (const struct pto_level *level, uint64_t address, uint64_t bytes, bool write)
{
  if (address - level->arena < level->arena_size
      && bytes <= level->arena_size - (address - level->arena))
    return PTO_VISIBLE;
  for (uint32_t i = 0; i < PTO_RINGS; i++)
    {
      const struct pto_circle *heap = &level->machine.engine.rings[i].heap;
      uint64_t offset = address - (uint64_t) (uintptr_t) heap->base;

      if (offset < heap->size && bytes <= heap->size - offset)
        return PTO_VISIBLE;
    }
  return pto_shared_map_check (level->map, address, bytes, write);
}

/* whose: of what it is an argument. */
static enum pto_status
refuse_address (const char *whose, uint32_t argument, uint64_t address,
                enum pto_visibility visibility, struct pto_report *report)
{
  const char *where = _ ("no memory");
  const char *what = _ ("a child process would not see it");

  if (visibility == PTO_VISIBLE_PRIVATE)
    {
      where = _ ("private memory");
      what = _ ("a child process would see a copy of it, and write into that");
    }
  else if (visibility == PTO_VISIBLE_TOO_LATE)
    where = _ ("memory that was shared after the start");
  else if (visibility == PTO_VISIBLE_READ_ONLY)
    {
      where = _ ("memory that is shared to be read");
      what = _ ("a child process could not write there");
    }
  return pto_report_set (report, (enum pto_status) PTO_STATUS_NOT_SHARED,
                         _ ("%s: argument %u lies in %s (0x%" PRIx64
                            "): %s: use a buffer, alloc(), or memory that was shared before it"),
                         whose, argument, where, address, what);
}

enum pto_status
pto_level_check_memory (const struct pto_level *level, uint32_t argument, uint64_t address,
                        uint64_t bytes, bool write, struct pto_report *report)
{
  enum pto_visibility visibility = look_up (level, address, bytes, write);

  return visibility == PTO_VISIBLE
             ? PTO_OK
             : refuse_address ("graph", argument, address, visibility, report);
}

/* What the wire can not carry, or children not reach. */
static enum pto_status
check_tensor (const struct pto_level *level, const struct pto_level_task *task, uint32_t argument,
              const PTOParam *given, struct pto_report *report)
{
  const Tensor *tensor = &given->tensor;
  uint64_t size = pto_dtype_size (tensor->dtype);
  enum pto_visibility visibility;
  uint64_t address = tensor->buffer.addr;
  char whose[256];

  /* The engine has words for it. */
  if (tensor->status != PTO2_TENSOR_OK)
    return PTO_OK;
  if (!pto2_tensor_is_contiguous (tensor))
    return pto_report_set (
        report, PTO_STATUS_INVALID_ARGS,
        _ ("task of \"%s\": argument %u is not contiguous: copy the part that is "
           "meant, workers get tensors without strides"),
        task->name, argument);
  for (uint32_t d = 0; d < tensor->ndims; d++)
    if (tensor->shapes[d] > UINT32_MAX)
      return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                             _ ("task of \"%s\": argument %u has %" PRIu64
                                " elements in dimension %u; at most %u go to a worker"),
                             task->name, argument, tensor->shapes[d], d, UINT32_MAX);
  /* Of the rings, by the engine; of a worker's own, by whoever has its books. */
  if (tensor->storage != NULL
      || (task->stays != NULL && (task->stays[argument] & PTO_WIRE_OWNED) != 0)
      || !level->family.has_processes[task->kind]
      || (level->machine.engine.capture != NULL
          && pto_capture_has (level->machine.engine.capture, address))
      || (address == 0 && (given->type == PTO_PARAM_OUTPUT || given->type == PTO_PARAM_SCRATCH)))
    return PTO_OK;
  address += tensor->start_offset * size;
  visibility = look_up (level, address, pto2_tensor_numel (tensor) * size,
                        given->type != PTO_PARAM_INPUT && given->type != PTO_PARAM_NO_DEP);
  if (visibility == PTO_VISIBLE)
    return PTO_OK;
  snprintf (whose, sizeof whose, _ ("task of \"%s\""), task->name);
  return refuse_address (whose, argument, address, visibility, report);
}

static uint8_t
access_of (PTOParamType type)
{
  /* What a task does not write of memory that was there stays as it was. */
  static const uint8_t access[] = { [PTO_PARAM_INPUT] = PTO_WIRE_READ,
                                    [PTO_PARAM_OUTPUT] = PTO_WIRE_WRITE,
                                    [PTO_PARAM_INOUT] = PTO_WIRE_READ | PTO_WIRE_WRITE,
                                    [PTO_PARAM_OUTPUT_EXISTING] = PTO_WIRE_READ | PTO_WIRE_WRITE,
                                    [PTO_PARAM_COMMUTATIVE] = PTO_WIRE_READ | PTO_WIRE_WRITE,
                                    [PTO_PARAM_SCRATCH] = PTO_WIRE_WRITE };

  /* The engine has words for others. */
  return type < sizeof access ? access[type] : 0;
}

/* Of memory that is the worker's own nothing is copied, whatever is done with it. */
uint8_t
pto_level_access (PTOParamType type, uint8_t stays)
{
  uint8_t access = access_of (type);

  if (access == 0 && (stays & PTO_WIRE_OWNED) != 0)
    access = PTO_WIRE_READ | PTO_WIRE_WRITE;
  return access | stays;
}

/* After every submit: what it made runnable runs here and now. */
static enum pto_status
after_submit (struct pto_level *level, struct pto_report *report)
{
  pto_exec_help (level->machine.engine.exec);
  if (!pto_engine_has_failed (&level->machine.engine))
    {
      pto_pool_begin_lost (level->pool);
      return PTO_OK;
    }
  pto_level_give_up_run (level);
  return pto_engine_tell (&level->machine.engine, report);
}

enum pto_status
pto_level_submit (struct pto_level *level, const struct pto_submit *submit,
                  const struct pto_level_task *task, pto_task_id *id, struct pto_report *report)
{
  uint8_t extra[PTO_LEVEL_TASK_BYTES (sizeof (struct pto_call_config))
                + PTO_CHILDREN_MAX * sizeof (struct pto_member) + PTO_ARGS_MAX]
      __attribute__ ((aligned (8)));
  struct pto_level_task *copy = (struct pto_level_task *) extra;
  struct pto_submit full = *submit;
  const PTOParam *params = submit->params;
  uint32_t n_params = submit->n_params;
  struct pto_need needs[PTO_CHILDREN_MAX];
  struct pto_wish wish
      = { .cohort = PTO_COHORT_NONE, .n_members = task->n_members, .members = needs };
  bool any;
  uint64_t largest = 0;
  uint32_t n_scalars = 0;
  uint32_t bytes;
  enum pto_status status;

  *id = PTO_TASK_NONE;
  if (pto_engine_has_failed (&level->machine.engine))
    {
      /* After a deadlock it goes on to count. */
      if (level->machine.engine.deadlock.what != PTO_OK)
        pto_engine_submit (&level->machine.engine, submit);
      return after_submit (level, report);
    }
  if (task->n_members < 1 || task->n_members > PTO_CHILDREN_MAX)
    return pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                           _ ("a group of %u: it has 1 to %u members"), task->n_members,
                           PTO_CHILDREN_MAX);
  for (uint32_t m = 0; m < task->n_members; m++)
    {
      const struct pto_member *member = &task->members[m];
      uint64_t own = pto_blob_size (member->n_tensors, member->n_scalars)
                     + (task->kinds != NULL ? member->n_scalars : 0);

      largest = own > largest ? own : largest;
    }
  status
      = pto_pool_place (level->pool, task, task->members, largest, submit->kernel, needs, report);
  if (status == PTO_OK && n_params > PTO_ARGS_MAX)
    status
        = pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                          _ ("task of \"%s\": %u arguments, all members' together; a task takes at "
                             "most %u"),
                          task->name, n_params, PTO_ARGS_MAX);
  for (uint32_t i = 0; i < n_params && status == PTO_OK; i++)
    if (params[i].type != PTO_PARAM_SCALAR)
      status = check_tensor (level, task, i, &params[i], report);
    else
      n_scalars++;
  if (status != PTO_OK)
    return status;
  memcpy (copy, task, offsetof (struct pto_level_task, config));
  copy->config_bytes = pto_wire_config_copy (&copy->config, &task->config);
  copy->members = NULL;
  copy->stays = NULL;
  copy->failed = copy->lost = copy->anew = copy->told = false;
  copy->n_lost = 0;
  copy->n_ended = 0;
  bytes = (uint32_t) PTO_LEVEL_TASK_BYTES (copy->config_bytes);
  memcpy (extra + bytes, task->members, task->n_members * sizeof *task->members);
  bytes += (uint32_t) (task->n_members * sizeof *task->members);
  copy->n_tensors = n_params - n_scalars;
  for (uint32_t i = 0; i < n_params; i++)
    if (params[i].type != PTO_PARAM_SCALAR)
      extra[bytes++] = pto_level_access (params[i].type, task->stays != NULL ? task->stays[i] : 0);
  if (task->kinds != NULL)
    {
      memcpy (extra + bytes, task->kinds, n_scalars);
      bytes += n_scalars;
    }
  level->submitting = task;
  any = task->n_members == 1 && needs[0].place == PTO_PLACE_ANY;
  full.queue = needs[0].queue;
  full.extra = extra;
  full.extra_bytes = bytes;
  full.wish = any ? NULL : &wish;
  *id = pto_engine_submit (&level->machine.engine, &full);
  level->submitting = NULL;
  return after_submit (level, report);
}

pto_task_id
pto_level_order (struct pto_level *level, const struct pto_submit *submit)
{
  struct pto_submit full = *submit;
  struct pto_report report;
  pto_task_id id;

  full.kernel = PTO_KERNEL_NONE;
  full.queue = level->pool->nobody.queue;
  id = pto_engine_submit (&level->machine.engine, &full);
  /* Memory that the program is told of is the program's to write. */
  for (uint32_t i = 0; level->writes != NULL && i < submit->n_params; i++)
    if (submit->params[i].type == PTO_PARAM_OUTPUT && submit->params[i].tensor.storage != NULL)
      {
        uint64_t begin = submit->params[i].tensor.storage->addr;
        uint64_t end = begin + submit->params[i].tensor.buffer.size;

        pto_pool_forget_left (level->pool, begin, end);
        pto_writes_add (level->writes, begin, end, PTO_WRITES_BY_NOBODY);
      }
  report.status = PTO_OK; /* nobody asks for the words */
  return after_submit (level, &report) == PTO_OK ? id : PTO_TASK_NONE;
}

enum pto_status
pto_level_alloc (struct pto_level *level, Tensor *tensor, struct pto_report *report)
{
  PTOParam output;

  if (tensor->storage == NULL && tensor->status == PTO2_TENSOR_OK)
    tensor->storage
        = pto_engine_new_buffer (&level->machine.engine, tensor->buffer.size, &tensor->generation);
  output = pto2_make_param (PTO_PARAM_OUTPUT, tensor);
  pto_level_order (level, &(struct pto_submit){ .params = &output, .n_params = 1 });
  if (tensor->storage != NULL)
    tensor->buffer.addr = tensor->storage->addr;
  return pto_engine_has_failed (&level->machine.engine)
             ? pto_engine_tell (&level->machine.engine, report)
             : PTO_OK;
}
