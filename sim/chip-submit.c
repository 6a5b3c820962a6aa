/* chip-submit.c: what do the submits of an orchestration do on a simulated chip, and how is its
 * code called?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Orchestrator thread only.
 */
#include "pto/core/forced-order.h"
#include "pto/core/manual-build.h"
#include "pto/core/manual-tasks.h"
#include "pto/core/region.h"
#include "pto/core/run.h"
#include "pto/core/unwritten-memory.h"
#include "pto/exec/libc-hooks.h"
#include "pto/exec/pto-atomic.h"
#include "pto/exec/translate.h"
#include "builtin-kernels.h"
#include "check.h"
#include "chip-private.h"
#include "reduction-operators.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const core_type_names[PTO_N_CORE_TYPES]
    = { N_ ("AIC (cube)"), N_ ("AIV (vector)") };

/* "0 (QK), 1 (SF)" */
static void
list_kernels (const struct pto_program *program, char *text, size_t size)
{
  size_t used = 0;

  text[0] = '\0';
  for (uint32_t i = 0; i < program->n_kernels && used < size; i++)
    if (program->kernels[i].name != NULL)
      used += (size_t) snprintf (text + used, size - used, "%s%u (%s)", used > 0 ? ", " : "", i,
                                 program->kernels[i].name);
  if (used == 0)
    snprintf (text, size, _ ("none"));
}

void
pto_chip_refuse_with (struct pto_chip *chip, enum pto_status status, const char *format, ...)
{
  char place[256];
  char why[1024];
  va_list args;

  va_start (args, format);
  vsnprintf (why, sizeof why, format, args);
  va_end (args);
  pto_engine_describe_place (&chip->machine.engine, place, sizeof place);
  pto_engine_fail (&chip->machine.engine, status, _ ("task %" PRIu64 "%s: %s"),
                   chip->machine.engine.submitted, place, why);
}

/* Of a kernel that an orchestration names; PTO_N_OPERATORS: it is none of the chip's. */
static enum pto_operator
operator_of (int32_t kernel_id)
{
  return kernel_id <= PTO2_KERNEL_SUM && kernel_id >= PTO2_KERNEL_MAX
             ? (enum pto_operator) (PTO2_KERNEL_SUM - kernel_id)
             : PTO_N_OPERATORS;
}

static const char *
operator_name (int32_t kernel_id)
{
  return pto_builtin_name (PTO_KERNEL_SUM - operator_of (kernel_id));
}

/* Of those that no program has. */
static const char *
own_kernel_name (int32_t kernel_id)
{
  return kernel_id == PTO2_KERNEL_FILL ? pto_builtin_name (PTO_KERNEL_FILL) : _ ("no kernel");
}

/* Does an output of the task lie in memory that may not be written? */
static __attribute__ ((noinline)) bool
check_writable (struct pto_chip *chip, int32_t kernel_id, const PTOParam *params, int32_t n_params)
{
  for (int32_t i = 0; i < n_params; i++)
    {
      const Tensor *tensor = &params[i].tensor;
      uint64_t first;

      if ((params[i].type != PTO_PARAM_OUTPUT && params[i].type != PTO_PARAM_INOUT
           && params[i].type != PTO_PARAM_OUTPUT_EXISTING && params[i].type != PTO_PARAM_COMMUTATIVE
           && params[i].type != PTO_PARAM_REDUCTION)
          || tensor->status != PTO2_TENSOR_OK || tensor->storage != NULL
          || tensor->buffer.addr == 0)
        continue;
      first
          = tensor->buffer.addr + tensor->start_offset * (uint64_t) pto_dtype_size (tensor->dtype);
      for (uint32_t a = 0; a < chip->n_args; a++)
        if (chip->args[a].read_only > 0 && first < chip->args[a].word + chip->args[a].read_only
            && chip->args[a].word < first + pto_tensor_extent (tensor))
          {
            pto_chip_refuse (
                chip,
                _ ("kernel %d (%s): argument %d is an output, but its memory can only be read: it "
                   "was given to the run so"),
                kernel_id,
                kernel_id < 0 ? own_kernel_name (kernel_id)
                              : chip->program->kernels[kernel_id].name,
                i);
            return false;
          }
    }
  return true;
}

/* What an orchestration says is there is looked at while a fault is still its own. */
static inline void
touch_params (const PTOParam *params, int32_t n_params)
{
  for (int32_t i = 0; i < n_params && i < (int32_t) PTO_CHIP_ARGS_MAX; i++)
    (void) *(const volatile PTOParamType *) &params[i].type;
}

/* The same for what else a submit names. */
static inline void
touch_items (const uint64_t items[], int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    (void) *(const volatile uint64_t *) &items[i];
}

static inline void
touch_index (const Tensor *tensor, const uint64_t index[])
{
  if (tensor->status == PTO2_TENSOR_OK)
    touch_items (index, tensor->ndims);
}

/* And for the element of a condition in memory of the caller, which a scheduler reads: it may be
 * written just now, but what it says is of no interest yet. */
static __attribute__ ((no_sanitize ("thread"), noinline)) void
touch_element (const Tensor *tensor, const uint64_t index[])
{
  uint32_t size = pto_dtype_size (tensor->dtype);
  uint64_t offset = tensor->start_offset;
  const volatile char *address;

  if (tensor->status != PTO2_TENSOR_OK || tensor->storage != NULL || tensor->buffer.addr == 0
      || size == 0)
    return;
  for (uint32_t d = 0; d < tensor->ndims; d++)
    {
      if (index[d] >= tensor->shapes[d])
        return;
      offset += index[d] * tensor->strides[d];
    }
  address = (const volatile char *) (uintptr_t) (tensor->buffer.addr + offset * size);
  (void) address[0];
  (void) address[size - 1];
}

/* Says why the engine is not asked. */
static __attribute__ ((noinline, cold)) void
refuse_submit (struct pto_chip *chip, int32_t kernel_id, int32_t worker_type,
               const PTOParam *params, int32_t n_params, bool is_own)
{
  const struct pto_program *program = chip->program;
  const struct pto_kernel *kernel = &(struct pto_kernel){ .name = own_kernel_name (kernel_id) };

  if (!is_own)
    {
      if (kernel_id == PTO2_KERNEL_FILL)
        {
          pto_chip_refuse (chip,
                           _ ("PTO2_KERNEL_FILL is the chip's own kernel: use pto2_rt_fill()"));
          return;
        }
      if (operator_of (kernel_id) < PTO_N_OPERATORS)
        {
          pto_chip_refuse (
              chip,
              _ ("kernel %d (%s) is the chip's own, and combines what tasks reduce: name "
                 "it in make_reduction_param()"),
              kernel_id, operator_name (kernel_id));
          return;
        }
      if ((uint32_t) kernel_id >= program->n_kernels || program->kernels[kernel_id].name == NULL)
        {
          char known[512];

          list_kernels (program, known, sizeof known);
          pto_chip_refuse (chip, _ ("there is no kernel %d; this program has %s"), kernel_id,
                           known);
          return;
        }
      kernel = &program->kernels[kernel_id];
    }
  if (!is_own && (int32_t) kernel->core_type != worker_type)
    pto_chip_refuse (chip, _ ("kernel %d (%s) runs on %s, it was submitted to %s"), kernel_id,
                     kernel->name, _ (core_type_names[kernel->core_type]),
                     (uint32_t) worker_type < PTO_N_CORE_TYPES ? _ (core_type_names[worker_type])
                                                               : _ ("an unknown worker type"));
  else if (n_params < 0 || (n_params > 0 && params == NULL))
    pto_chip_refuse (chip, _ ("kernel %d (%s): %d parameters at %p"), kernel_id, kernel->name,
                     n_params, (const void *) params);
  else if (kernel->n_args_plus_1 != 0 && kernel->n_args_plus_1 != (uint32_t) n_params + 1)
    {
      char given[60];

      snprintf (given, sizeof given, P_ ("%d is given", "%d are given", (unsigned long) n_params),
                n_params);
      pto_chip_refuse (chip,
                       P_ ("kernel %d (%s) takes %u argument, but %s",
                           "kernel %d (%s) takes %u arguments, but %s", kernel->n_args_plus_1 - 1),
                       kernel_id, kernel->name, kernel->n_args_plus_1 - 1, given);
    }
  else if ((uint32_t) n_params > PTO_CHIP_ARGS_MAX)
    pto_chip_refuse (chip, _ ("kernel %d (%s): %d arguments; a task takes at most %u"), kernel_id,
                     kernel->name, n_params, PTO_CHIP_ARGS_MAX);
  else
    pto_chip_refuse (chip, _ ("kernel %d (%s) was submitted after pto2_rt_orchestration_done()"),
                     kernel_id, kernel->name);
}

/* Of the chip's own. false: there is none for such elements, or it does not begin so. */
static bool
find_operator (const PTOParam *param, struct pto_reduction *reduction, char *why, size_t size)
{
  enum pto_operator operation = operator_of (param->combine);
  DataType dtype = param->tensor.dtype;

  if (!pto_combine_knows (operation, dtype))
    {
      snprintf (why, size,
                _ ("the chip has no %s of %s elements: it has one of integers, float64, float32, "
                   "float16 and bfloat16; name a kernel of the program that combines these"),
                operator_name (param->combine), pto_dtype_name (dtype));
      return false;
    }
  if (operation <= PTO_OPERATOR_PROD
      && param->scalar != pto2_reduction_neutral (param->combine, dtype))
    {
      snprintf (
          why, size,
          _ ("a %s begins with what changes nothing, for each copy takes part: give no initial "
             "value (NULL), and write what it is to begin with into the tensor before"),
          operator_name (param->combine));
      return false;
    }
  *reduction = (struct pto_reduction){ .fill = PTO_KERNEL_FILL,
                                       .fill_queue = PTO_CORE_TYPE_AIV,
                                       .combine = PTO_KERNEL_SUM - operation,
                                       .combine_queue = PTO_CORE_TYPE_AIV };
  return true;
}

bool
pto_chip_find_reduction (void *data, const PTOParam *param, struct pto_reduction *reduction,
                         char *why, size_t size)
{
  const struct pto_chip *chip = data;
  const struct pto_program *program = chip->program;
  const struct pto_kernel *kernel = &program->kernels[param->combine];

  if (operator_of (param->combine) < PTO_N_OPERATORS)
    return find_operator (param, reduction, why, size);
  if ((uint32_t) param->combine >= program->n_kernels || kernel->name == NULL)
    {
      char known[512];

      list_kernels (program, known, sizeof known);
      snprintf (why, size, _ ("kernel %d is to combine, but there is none; this program has %s"),
                param->combine, known);
      return false;
    }
  if (kernel->n_args_plus_1 != 0 && kernel->n_args_plus_1 != 3)
    {
      snprintf (
          why, size,
          P_ ("kernel %d (%s) is to combine, but takes %u argument: it needs two, a tensor that "
              "takes in (INOUT), and one that is taken in (INPUT)",
              "kernel %d (%s) is to combine, but takes %u arguments: it needs two, a tensor that "
              "takes in (INOUT), and one that is taken in (INPUT)",
              kernel->n_args_plus_1 - 1),
          param->combine, kernel->name, kernel->n_args_plus_1 - 1);
      return false;
    }
  if (kernel->never_combines)
    {
      snprintf (why, size,
                _ ("kernel %d (%s) is to combine, but says that it takes something else: it needs "
                   "two, a tensor that takes in (INOUT), and one that is taken in (INPUT)"),
                param->combine, kernel->name);
      return false;
    }
  *reduction = (struct pto_reduction){ .fill = PTO_KERNEL_FILL,
                                       .fill_queue = PTO_CORE_TYPE_AIV,
                                       .combine = (uint32_t) param->combine,
                                       .combine_queue = kernel->core_type };
  return true;
}

/* Is it a task at all? refuse_submit() says what is wrong in the same order. */
static inline bool
is_sound (const struct pto_chip *chip, int32_t kernel_id, int32_t worker_type,
          const PTOParam *params, int32_t n_params)
{
  const struct pto_program *program = chip->program;
  const struct pto_kernel *kernel = &program->kernels[kernel_id];

  return (uint32_t) kernel_id < program->n_kernels && kernel->name != NULL
         && (int32_t) kernel->core_type == worker_type && (uint32_t) n_params <= PTO_CHIP_ARGS_MAX
         && (params != NULL || n_params == 0)
         && (kernel->n_args_plus_1 == 0 || kernel->n_args_plus_1 == (uint32_t) n_params + 1)
         && !chip->machine.done;
}

bool
pto_chip_is_sound (struct pto_chip *chip, int32_t kernel_id, int32_t worker_type,
                   const struct pto_submit *task)
{
  int32_t n_params = (int32_t) task->n_params - task->conditional;

  if (is_sound (chip, kernel_id, worker_type, task->params, n_params))
    return true;
  refuse_submit (chip, kernel_id, worker_type, task->params, n_params, false);
  return false;
}

pto_task_id
pto_chip_submit_sound (struct pto_chip *chip, const struct pto_submit *task)
{
  if (chip->has_read_only
      && !check_writable (chip, (int32_t) task->kernel, task->params,
                          (int32_t) task->n_params - task->conditional))
    return PTO_TASK_NONE;
  return pto_engine_submit (&chip->machine.engine, task);
}

static inline pto_task_id
submit (struct pto_chip *chip, const struct pto_submit *task)
{
  int32_t n_params = (int32_t) task->n_params - task->conditional;

  if (is_sound (chip, (int32_t) task->kernel, (int32_t) task->queue, task->params, n_params))
    return pto_chip_submit_sound (chip, task);
  refuse_submit (chip, (int32_t) task->kernel, (int32_t) task->queue, task->params, n_params,
                 false);
  return PTO_TASK_NONE;
}

/* A task of no kernel, or of one that the chip has of its own: PTO2_KERNEL_*. */
static pto_task_id
submit_own (struct pto_chip *chip, int32_t kernel_id, struct pto_submit *submit)
{
  int32_t n_params = (int32_t) submit->n_params;

  if (submit->n_params > PTO_CHIP_ARGS_MAX || (submit->params == NULL && n_params > 0)
      || chip->machine.done)
    {
      refuse_submit (chip, kernel_id, 0, submit->params, n_params, true);
      return PTO_TASK_NONE;
    }
  if (kernel_id == PTO2_KERNEL_NONE && submit->terms.priority != 0)
    {
      pto_chip_refuse (chip, _ ("a task that runs nothing has no priority: it waits for no core"));
      return PTO_TASK_NONE;
    }
  if (chip->has_read_only && !check_writable (chip, kernel_id, submit->params, n_params))
    return PTO_TASK_NONE;
  submit->kernel = kernel_id == PTO2_KERNEL_FILL ? PTO_KERNEL_FILL : PTO_KERNEL_NONE;
  submit->queue = kernel_id == PTO2_KERNEL_FILL ? PTO_CORE_TYPE_AIV : 0;
  return pto_engine_submit (&chip->machine.engine, submit);
}

/* A task that says no more than that: nearly all are. */
static __attribute__ ((noinline)) pto_task_id
submit_plain (struct pto_chip *chip, int32_t kernel_id, int32_t worker_type, PTOParam *params,
              int32_t n_params)
{
  if (!is_sound (chip, kernel_id, worker_type, params, n_params))
    {
      refuse_submit (chip, kernel_id, worker_type, params, n_params, false);
      return PTO_TASK_NONE;
    }
  if (chip->has_read_only && !check_writable (chip, kernel_id, params, n_params))
    return PTO_TASK_NONE;
  return pto_engine_submit_plain (&chip->machine.engine, (uint32_t) kernel_id,
                                  (uint32_t) worker_type, params, (uint32_t) n_params);
}

static __attribute__ ((noinline)) pto_task_id
submit_foreign (struct pto_chip *chip, int32_t kernel_id, int32_t worker_type, PTOParam *params,
                int32_t n_params)
{
  struct pto_guard *guard;
  pto_task_id id;

  if (params != NULL)
    touch_params (params, n_params);
  guard = pto_machine_come_in (&chip->machine);
  id = submit_plain (chip, kernel_id, worker_type, params, n_params);
  pto_machine_go_out (&chip->machine, guard);
  return id;
}

static PTO2TaskId
submit_task (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type, PTOParam *params,
             int32_t n_params)
{
  struct pto_chip *chip = pto_chip_of_runtime (rt);

  if (pto_machine_is_elsewhere (&chip->machine, "pto2_rt_submit_task"))
    return PTO_TASK_NONE;
  if (pto_guest_is_foreign (chip->machine.engine.exec))
    return submit_foreign (chip, kernel_id, worker_type, params, n_params);
  return submit_plain (chip, kernel_id, worker_type, params, n_params);
}

/* The element of a tensor as a tensor. false: there is none, and the run has failed. */
static bool
find_element (struct pto_chip *chip, const char *what, const Tensor *tensor, const uint64_t index[],
              Tensor *element)
{
  *element = *tensor;
  if (tensor->status != PTO2_TENSOR_OK)
    return true; /* the submit says what is wrong with it */
  for (uint32_t d = 0; d < tensor->ndims; d++)
    {
      if (index[d] >= tensor->shapes[d])
        {
          pto_chip_refuse (chip,
                           _ ("%s names element %" PRIu64 " of dimension %u, which has %" PRIu64),
                           what, index[d], d, tensor->shapes[d]);
          return false;
        }
      element->start_offset += index[d] * tensor->strides[d];
    }
  element->ndims = 1;
  element->shapes[0] = 1;
  element->strides[0] = 1;
  return true;
}

/* Does it ask for more than a kernel on a core? */
static bool
is_several (const PTO2Submit *asked)
{
  return asked->block_dim != 0 || asked->sync_start != 0 || asked->mixed != NULL
         || asked->in_cluster != 0 || asked->n_group != 0 || asked->group_params != NULL
         || asked->group_cores != NULL;
}

/* Has the condition of a submit as one more parameter. */
static pto_task_id
submit_if (struct pto_chip *chip, struct pto_submit *task, const PTO2Submit *asked)
{
  PTOParam params[PTO_CHIP_ARGS_MAX + 1];
  PTOParam *given = task->params;
  uint32_t n = task->n_params;
  Tensor element;
  pto_task_id id;

  if (n > PTO_CHIP_ARGS_MAX || (given == NULL && n > 0))
    {
      refuse_submit (chip, asked->kernel_id, asked->worker_type, given, asked->n_params, false);
      return PTO_TASK_NONE;
    }
  if ((asked->kernel_id < 0 && asked->mixed == NULL && asked->n_group == 0)
      || asked->condition_index == NULL)
    {
      pto_chip_refuse (chip, _ ("a task with a condition has %s"),
                       asked->condition_index == NULL ? _ ("an index of its element")
                                                      : _ ("a kernel of the program"));
      return PTO_TASK_NONE;
    }
  if (!find_element (chip, _ ("the condition"), asked->condition, asked->condition_index, &element))
    return PTO_TASK_NONE;
  if (n > 0)
    memcpy (params, given, n * sizeof *params);
  params[n] = pto2_make_param (PTO_PARAM_INPUT, &element);
  task->params = params;
  task->n_params = n + 1;
  task->conditional = true;
  id = is_several (asked) ? pto_chip_submit_several (chip, task, asked) : submit (chip, task);
  if (n > 0)
    memcpy (given, params, n * sizeof *params);
  return id;
}

/* What an orchestration knows of a submit, which may be less or more than is known here; what it
 * does not say is not asked for. false: it asks for something that is not known here. */
static bool
take_submit (const PTO2Submit *given, PTO2Submit *asked)
{
  size_t size = given->size;
  const unsigned char *bytes = (const unsigned char *) given;

  memset (asked, 0, sizeof *asked);
  asked->size = size;
  if (size < offsetof (PTO2Submit, n_after))
    return false;
  memcpy (asked, given, size < sizeof *asked ? size : sizeof *asked);
  for (size_t i = sizeof *asked; i < size; i++)
    if (bytes[i] != 0)
      return false;
  return true;
}

/* Does everything that it says have an effect? */
static bool
is_consistent (struct pto_chip *chip, const PTO2Submit *asked)
{
  if (asked->n_after < 0 || (asked->n_after > 0 && asked->after == NULL))
    pto_chip_refuse (chip, _ ("it comes after %d tasks at %p"), asked->n_after,
                     (const void *) asked->after);
  else if (asked->condition == NULL && asked->condition_index != NULL)
    pto_chip_refuse (chip,
                     _ ("a task with a condition has a tensor of which an element is looked at"));
  else if (asked->mixed != NULL && asked->kernel_id != PTO2_KERNEL_NONE)
    pto_chip_refuse (chip,
                     _ ("it has kernel %d beside those of mixed: a mixed task has these only, and "
                        "kernel_id is PTO2_KERNEL_NONE"),
                     asked->kernel_id);
  else if (asked->in_cluster == 0 && asked->cluster_id > 0)
    pto_chip_refuse (chip,
                     _ ("it has cluster_id %d, but in_cluster is 0: set in_cluster to 1 for a task "
                        "that runs there, or cluster_id to 0"),
                     asked->cluster_id);
  else
    return true;
  return false;
}

static PTO2TaskId
submit_more (PTO2Runtime *rt, const PTO2Submit *given)
{
  struct pto_chip *chip = pto_chip_of_runtime (rt);
  PTO2Submit copy;
  const PTO2Submit *asked = &copy;
  bool is_known = take_submit (given, &copy);
  struct pto_submit task = { .kernel = (uint32_t) asked->kernel_id,
                             .queue = (uint32_t) asked->worker_type,
                             .params = asked->params,
                             .n_params = (uint32_t) asked->n_params,
                             .producers = asked->after,
                             .n_producers = (uint32_t) asked->n_after,
                             .terms = pto_terms_of (asked) };
  struct pto_guard *guard;
  pto_task_id id = PTO_TASK_NONE;

  if (pto_machine_is_elsewhere (&chip->machine, "pto2_rt_submit"))
    return PTO_TASK_NONE;
  if (asked->params != NULL)
    touch_params (asked->params, asked->n_params);
  if (asked->after != NULL)
    touch_items (asked->after, asked->n_after);
  if (asked->condition != NULL)
    (void) *(const volatile uint32_t *) &asked->condition->status;
  if (asked->condition != NULL && asked->condition_index != NULL)
    {
      touch_index (asked->condition, asked->condition_index);
      touch_element (asked->condition, asked->condition_index);
    }
  if (asked->mixed != NULL)
    (void) *(const volatile int32_t *) &asked->mixed[2];
  for (int32_t i = 0; i < asked->n_group && asked->group != NULL; i++)
    {
      (void) *(const volatile int32_t *) &asked->group[i];
      if (asked->group_params != NULL)
        (void) *(const volatile int32_t *) &asked->group_params[i];
      if (asked->group_cores != NULL)
        (void) *(const volatile int32_t *) &asked->group_cores[i];
    }
  guard = pto_machine_come_in (&chip->machine);
  if (asked->unpublished != 0)
    pto_added_begin (&chip->machine.engine);
  if (!is_known)
    pto_chip_refuse (
        chip,
        _ ("its PTO2Submit has %zu bytes, of which the first %zu are known here: it was "
           "built for another version, or size is not sizeof (PTO2Submit)"),
        asked->size, sizeof *asked);
  else if (!is_consistent (chip, asked))
    ; /* it has said why */
  else if (asked->condition != NULL)
    id = submit_if (chip, &task, asked);
  else if (is_several (asked))
    id = pto_chip_submit_several (chip, &task, asked);
  else if (asked->kernel_id == PTO2_KERNEL_NONE || asked->kernel_id == PTO2_KERNEL_FILL)
    id = submit_own (chip, asked->kernel_id, &task);
  else
    id = submit (chip, &task);
  if (asked->unpublished != 0)
    pto_added_end (&chip->machine.engine);
  pto_machine_go_out (&chip->machine, guard);
  return id;
}

static bool
add_successor (PTO2Runtime *rt, PTO2TaskId predecessor, PTO2TaskId successor)
{
  struct pto_chip *chip = pto_chip_of_runtime (rt);
  struct pto_guard *guard;
  bool waits;

  if (pto_machine_is_elsewhere (&chip->machine, "pto2_rt_add_successor_conditional"))
    return false;
  guard = pto_machine_come_in (&chip->machine);
  waits = pto_build_add_successor (&chip->machine.engine, predecessor, successor);
  pto_machine_go_out (&chip->machine, guard);
  return waits;
}

static void
publish_task (PTO2Runtime *rt, PTO2TaskId task)
{
  struct pto_chip *chip = pto_chip_of_runtime (rt);
  struct pto_guard *guard;

  if (pto_machine_is_elsewhere (&chip->machine, "pto2_rt_publish_task"))
    return;
  guard = pto_machine_come_in (&chip->machine);
  pto_build_publish (&chip->machine.engine, task);
  pto_machine_go_out (&chip->machine, guard);
}

static void *
device_malloc (PTO2Runtime *rt, uint64_t bytes)
{
  struct pto_chip *chip = pto_chip_of_runtime (rt);
  struct pto_report report = { .status = PTO_OK };
  struct pto_guard *guard;
  uint64_t address = 0;

  if (pto_machine_is_elsewhere (&chip->machine, "pto2_rt_device_malloc"))
    return NULL;
  guard = pto_machine_come_in (&chip->machine);
  if (chip->machine.engine.capture != NULL)
    pto_chip_refuse (chip,
                     _ ("memory of pto2_rt_device_malloc() is there for one run: a graph has "
                        "none, so an orchestration that asks for some can not be captured; let "
                        "a task output it"));
  else if (!pto_engine_has_failed (&chip->machine.engine))
    address = pto_device_memory_malloc (&chip->run_memory, bytes, &report);
  if (address == 0 && report.status != PTO_OK)
    {
      char place[256];

      pto_engine_describe_place (&chip->machine.engine, place, sizeof place);
      pto_engine_fail (&chip->machine.engine, report.status, "pto2_rt_device_malloc()%s: %s", place,
                       report.message);
    }
  if (address == 0)
    chip->machine.engine.deadlock.heard = true;
  else if (chip->machine.engine.fills)
    pto_unwritten_fill_bytes ((void *) (uintptr_t) address, bytes);
  pto_machine_go_out (&chip->machine, guard);
  return (void *) (uintptr_t) address;
}

/* A submit that nobody comes back to: in a scope of its own where there may be one more, it holds
 * no slot longer than it takes. */
static pto_task_id
submit_order_aside (struct pto_chip *chip, struct pto_submit *task)
{
  struct pto_engine *engine = &chip->machine.engine;
  bool aside = engine->depth > 0 && engine->depth < PTO_SCOPE_MAX;
  pto_task_id id;

  if (aside && engine->scopes[engine->depth - 1].manual)
    pto_engine_manual_scope_begin (engine, NULL, 0);
  else if (aside)
    pto_engine_scope_begin (engine, NULL, 0);
  id = submit_own (chip, PTO2_KERNEL_NONE, task);
  if (aside)
    pto_engine_scope_end (engine);
  return id;
}

/* Comes after the task of an order-only submit that accesses the element. */
static void *
touch (PTO2Runtime *rt, const Tensor *tensor, const uint64_t index[], bool write)
{
  struct pto_chip *chip = pto_chip_of_runtime (rt);
  struct pto_guard *guard;
  Tensor element = *tensor;
  PTOParam param;
  struct pto_submit task = { .params = &param, .n_params = 1 };
  pto_task_id id;
  void *address = NULL;

  if (pto_machine_is_elsewhere (&chip->machine,
                                write ? "pto2_rt_set_element" : "pto2_rt_get_element"))
    return NULL;
  touch_index (tensor, index);
  guard = pto_machine_come_in (&chip->machine);
  if (chip->machine.engine.capture != NULL)
    pto_chip_refuse (
        chip,
        _ ("pto2_rt_%s_element() is a part of the run: a graph that is launched again would go on "
           "without it, so an orchestration that calls it can not be captured"),
        write ? "set" : "get");
  else if (find_element (chip, write ? "pto2_rt_set_element()" : "pto2_rt_get_element()", tensor,
                         index, &element))
    {
      param = pto2_make_param (write ? PTO_PARAM_INOUT : PTO_PARAM_INPUT, &element);
      id = submit_order_aside (chip, &task);
      if (pto_engine_await (&chip->machine.engine, id))
        address = (char *) (uintptr_t) param.tensor.buffer.addr
                  + param.tensor.start_offset * (uint64_t) pto_dtype_size (param.tensor.dtype);
      if (address != NULL && chip->check != NULL)
        pto_check_element (chip->check, id, address, pto_dtype_size (param.tensor.dtype), write);
    }
  pto_machine_go_out (&chip->machine, guard);
  return address;
}

/* Copied outside of the guard: a fault at tensor is the orchestration's. */
static void
arg_tensor (PTO2Runtime *rt, int32_t index, Tensor *tensor)
{
  struct pto_chip *chip = pto_chip_of_runtime (rt);
  bool is_there = index >= 0 && (uint32_t) index < chip->n_args;
  struct pto_guard *guard;
  char place[256];

  if (is_there && chip->args[index].tensor.ndims > 0)
    {
      *tensor = chip->args[index].tensor;
      return;
    }
  *tensor = (Tensor){ .status = PTO2_TENSOR_NO_ARGUMENT };
  if (pto_machine_is_elsewhere (&chip->machine, "pto2_rt_arg_tensor"))
    return;
  guard = pto_machine_come_in (&chip->machine);
  pto_engine_describe_call (&chip->machine.engine, place, sizeof place);
  if (is_there)
    pto_engine_fail (
        &chip->machine.engine, PTO_STATUS_INVALID_ARGS,
        _ ("the orchestration asks for argument %d as a tensor%s, but it is a number (%" PRIu64
           "): read args[%d], or give the run a tensor there"),
        index, place, chip->args[index].word, index);
  else
    pto_engine_fail (
        &chip->machine.engine, PTO_STATUS_INVALID_ARGS,
        P_ ("the orchestration asks for argument %d as a tensor%s, but the run has %" PRIu32
            " argument, from 0 on",
            "the orchestration asks for argument %d as a tensor%s, but the run has %" PRIu32
            " arguments, from 0 on",
            chip->n_args),
        index, place, chip->n_args);
  pto_machine_go_out (&chip->machine, guard);
}

const PTO2RuntimeOps pto_chip_runtime_ops = { .submit_task = submit_task,
                                              .submit = submit_more,
                                              .touch = touch,
                                              .allocate_cluster = pto_chip_allocate_cluster,
                                              .free_cluster = pto_chip_free_cluster,
                                              .cluster_cores = pto_chip_cluster_cores,
                                              .arg_tensor = arg_tensor,
                                              .cluster_count = pto_chip_cluster_count,
                                              .add_successor = add_successor,
                                              .publish_task = publish_task,
                                              .device_malloc = device_malloc };

void
pto_chip_note_unsafe (struct pto_chip *chip, const struct pto_fault *fault, char *text, size_t size)
{
  size_t used = strlen (text);

  if (!fault->in_allocator)
    return;
  pto_store_relaxed (&chip->unsafe, 1);
  snprintf (
      text + used, size - used,
      _ (". It was ended inside malloc(), fork() or the loader, whose locks may stay held: this process "
         "is not safe to go on in; end it, and set isolate to 1 to keep such code apart"));
}

enum pto_status
pto_chip_call (struct pto_chip *chip, void (*fn) (int64_t *), int64_t *args, char *why, size_t size)
{
  uint64_t timeout = chip->params.values[PTO_PARAMETER_TIMEOUT];
  bool is_running = pto_actor_name () != NULL;
  struct pto_fault fault;
  sigset_t mask;

  /* A run keeps the caller's mask for it. */
  if (!is_running)
    {
      pto_guard_refresh ();
      pthread_sigmask (SIG_SETMASK, NULL, &mask);
    }
  pto_guard_call (&chip->guard, fn, args, &fault);
  if (!is_running)
    {
      pthread_sigmask (SIG_SETMASK, &mask, NULL);
      pto_foreign_put_back (&chip->foreign);
    }
  if (fault.kind != PTO_FAULT_NONE && fault.kind != PTO_FAULT_EXCEPTION)
    pto_fetch_add_relaxed (&chip->cut_off, 1);
  switch (fault.kind)
    {
    case PTO_FAULT_NONE:
      return PTO_OK;
    case PTO_FAULT_INTERRUPTED:
      snprintf (why, size,
                _ ("did not return, and nothing was submitted or finished for %" PRIu64
                   " ms: set timeout to more if it needs longer"),
                timeout);
      pto_chip_note_unsafe (chip, &fault, why, size);
      return PTO_STATUS_KERNEL_HANG;
    case PTO_FAULT_STACK_OVERFLOW:
      snprintf (why, size, _ ("needs more than the stack of its thread"));
      return PTO_STATUS_KERNEL_FAULT;
    case PTO_FAULT_SIGNAL:
    case PTO_FAULT_EXCEPTION:
    case PTO_FAULT_ENDED:
      break;
    }
  pto_guard_explain (&chip->guard, &fault, why, size);
  if (chip->machine.engine.capture != NULL && fault.has_address
      && pto_capture_has (chip->machine.engine.capture, fault.address))
    {
      size_t used = strlen (why);

      snprintf (why + used, size - used,
                _ (", in memory that a task outputs: while it is captured there is none"));
    }
  return PTO_STATUS_KERNEL_FAULT;
}

int32_t
pto_chip_last_line (const struct pto_chip *chip)
{
  return chip->machine.runtime.line;
}

const char *
pto_chip_last_file (const struct pto_chip *chip)
{
  return chip->machine.runtime.file;
}
