/* ai-core.c: a simulated AI core: its registers, its loop, and how a scheduler reaches it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ai-core.h"

#include "pto/core/forced-order.h"
#include "pto/core/graph-launch.h"
#include "pto/core/record-submit.h"
#include "pto/exec/exec-private.h"
#include "pto/exec/pto-atomic.h"
#include "pto/exec/translate.h"
#include "builtin-kernels.h"
#include "check.h"
#include "kernel-sync.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- the scheduler's side --- */

static struct pto_core *
core_of (struct pto_endpoint *endpoint)
{
  return (struct pto_core *) endpoint;
}

static void
dispatch (struct pto_endpoint *endpoint, struct pto_slot *slot)
{
  struct pto_core *core = core_of (endpoint);
  const struct pto_program *program = core->chip->program;
  struct pto_trace_buffer *trace = endpoint->scheduler->trace;
  uint32_t kernel_id = slot->kernel;
  const struct pto_kernel *kernel;

  core->parts = NULL;
  core->party = NULL;
  /* Nothing else is in the word then: no condition, no parts. Who has no parts has no party. */
  if (__builtin_expect (kernel_id < program->n_kernels, 1))
    kernel = &program->kernels[kernel_id];
  else
    {
      kernel_id = pto_slot_kernel (slot, endpoint->member);
      kernel = pto_program_kernel (program, kernel_id);
      if (pto_slot_has_parts (slot))
        core->parts = slot->parts;
      if (slot->queue == PTO_QUEUE_LINE)
        core->party = slot->party;
    }
  core->payload.task_id = slot->id;
  core->payload.kernel_id = kernel_id;
  core->payload.num_args = slot->payload->n_args;
  core->payload.function_bin_addr = kernel->entry;
  core->payload.args = slot->payload->args;
  core->payload.kernel = kernel;
  core->payload.task = slot->payload;
  core->sequence = core->sequence == PTO_COND_SEQUENCE - 1 ? 1 : core->sequence + 1;
  if (pto_trace_has (trace, PTO_TRACE_LEVEL_RUNS))
    {
      /* Out of order it is early, but by less than the task took that has run before. */
      core->dispatched = endpoint->scheduler->behind ? pto_engine_stamp_own (core->engine)
                                                     : pto_engine_stamp (core->engine);
      if (trace->level >= PTO_TRACE_LEVEL_SCHEDULE)
        pto_trace_add (trace, PTO_TRACE_DISPATCH, core->dispatched, slot->id, endpoint->number,
                       (uint64_t) endpoint->member << 32 | core->sequence);
      if (core->parts == NULL)
        pto_observe_begin (core->engine, slot);
    }
  if (endpoint->attended)
    pto_word_run (core->engine->exec, &core->registers.data_main_base, core->sequence);
  else
    pto_word_set (core->engine->exec, &core->registers.data_main_base, core->sequence);
}

static bool
poll (struct pto_endpoint *endpoint, struct pto_outcome *outcome)
{
  struct pto_core *core = core_of (endpoint);

  if (pto_load_acquire (&core->registers.cond) != (PTO_COND_FIN | core->sequence))
    return false;
  /* One by one: they were written so a moment ago, and a copy as a whole would wait for both. */
  outcome->failed = core->outcome.failed;
  outcome->time = core->outcome.time;
  return true;
}

static void
close_core (struct pto_endpoint *endpoint)
{
  struct pto_core *core = core_of (endpoint);

  pto_word_set (core->engine->exec, &core->registers.data_main_base, PTO_REG_EXIT);
}

static const struct pto_endpoint_ops core_ops
    = { .dispatch = dispatch, .poll = poll, .close = close_core };

void
pto_core_init (struct pto_core *core, struct pto_chip *chip, struct pto_engine *engine,
               enum pto_core_type type, uint32_t cluster, uint32_t number, uint32_t number_of_type)
{
  memset (core, 0, sizeof *core);
  core->endpoint.ops = &core_ops;
  core->endpoint.queue = (uint32_t) type;
  core->endpoint.number = number;
  core->endpoint.cohort = cluster;
  core->chip = chip;
  core->engine = engine;
  core->type = type;
  core->cluster = cluster;
  snprintf (core->name, sizeof core->name, "%s%u", type == PTO_CORE_TYPE_AIC ? "AIC" : "AIV",
            number_of_type);
  pto_word_init (&core->handshake.aicpu_ready, 0, true);
  pto_word_init (&core->handshake.aicore_done, 0, true);
  pto_word_init (&core->registers.data_main_base, PTO_REG_IDLE, true);
  core->handshake.task = &core->payload;
  core->guard.steady = true;
  core->guard.run = &chip->foreign;
  core->guard.locals = &chip->locals[number];
  core->services = (struct pto_services){ { &pto_kernel_ops }, chip, core };
  core->services_apart = (struct pto_services){ { &pto_kernel_ops_apart }, chip, core };
  atomic_init (&core->own_thread, chip->own_threads[number]);
  if (chip->own_threads[number] != NULL)
    pto_own_thread_renew (chip->own_threads[number]);
  pto_word_init (&core->wake, 0, false);
  core->block = PTO_BLOCK_ALONE;
}

/* --- the core's side --- */

/* "argument 1", as the member of a group has it. */
static int
describe_argument (const struct pto_core *core, uint32_t argument, char *text, size_t size)
{
  const struct pto_party *party = core->party;

  for (uint32_t m = 0; party != NULL && m < party->n_members; m++)
    {
      const struct pto_need *need = &party->members[m].need;

      if (need->n_args_plus_1 == 0 || argument - need->first_arg >= need->n_args_plus_1 - 1u)
        continue;
      argument -= need->first_arg;
      if (m != core->endpoint.member)
        return snprintf (text, size, _ ("argument %u of member %u of its group"), argument, m);
      break;
    }
  return snprintf (text, size, _ ("argument %u"), argument);
}

/* The tensor that ends at an address, or lies before it. */
static void
describe_tensor (const struct pto_core *core, uint64_t begin, uint64_t end, char *text, size_t size)
{
  const struct pto_payload *task = core->payload.task;
  const TensorData *tensor;
  uint32_t at = 0;

  while ((tensor = pto_payload_next_tensor (task, &core->engine->shared, &at)) != NULL)
    /* The kernel may have written here as well. */
    if ((tensor->buffer.addr + tensor->buffer.size == end
         || (tensor->buffer.addr >= begin && tensor->buffer.addr < end))
        && (uint32_t) tensor->dtype < PTO_DTYPE_COUNT && tensor->ndims <= PTO2_TENSOR_MAX_DIMS)
      {
        uint32_t argument = 0;
        int n;

        while (argument < task->n_args && task->args[argument] != (int64_t) (uintptr_t) tensor)
          argument++;
        n = describe_argument (core, argument, text, size);
        n += snprintf (text + n, size - (size_t) n, _ (" (declared %s ["),
                       pto_dtype_name (tensor->dtype));
        for (uint32_t d = 0; d < tensor->ndims && n > 0 && (size_t) n < size; d++)
          n += snprintf (text + n, size - (size_t) n, "%s%" PRIu64, d > 0 ? ", " : "",
                         tensor->shapes[d]);
        if (n > 0 && (size_t) n < size)
          snprintf (text + n, size - (size_t) n, "])");
        return;
      }
  snprintf (text, size, _ ("an output"));
}

void
pto_core_describe_task (const struct pto_core *core, char *text, size_t size)
{
  uint32_t n_blocks = core->parts != NULL ? pto_parts_blocks (core->parts, core->party) : 1;
  char block[40] = "";
  char place[200];

  pto_engine_describe_submit (core->engine, core->payload.task, place, sizeof place);
  if (n_blocks > 1)
    snprintf (block, sizeof block, _ (", block %u of %u,"),
              (uint32_t) (core->block & PTO_MAX_BLOCKS), n_blocks);
  snprintf (text, size, _ ("task %u of ring %u (%s)%s on core %s%s"),
            PTO_TASK_LOCAL (core->payload.task_id), PTO_TASK_RING (core->payload.task_id),
            core->payload.kernel->name, block, core->name, place);
}

static void
report_fault (struct pto_core *core, const struct pto_fault *fault)
{
  char others[512];
  char task[400];
  char what[256];

  if (fault->kind != PTO_FAULT_EXCEPTION)
    pto_fetch_add_relaxed (&core->chip->cut_off, 1);
  pto_core_describe_task (core, task, sizeof task);
  pto_guard_explain (&core->guard, fault, what, sizeof what);
  switch (fault->kind)
    {
    case PTO_FAULT_NONE:
      break;
    case PTO_FAULT_SIGNAL:
    case PTO_FAULT_EXCEPTION:
    case PTO_FAULT_ENDED:
      pto_engine_fail (core->engine, PTO_STATUS_KERNEL_FAULT, _ ("%s: the kernel %s"), task, what);
      break;
    case PTO_FAULT_STACK_OVERFLOW:
      pto_engine_fail (core->engine, PTO_STATUS_KERNEL_FAULT,
                       _ ("%s: the kernel needs more than the core's stack of %" PRIu64
                          " bytes: set stack to more"),
                       task, core->chip->params.values[PTO_PARAMETER_STACK]);
      break;
    case PTO_FAULT_INTERRUPTED:
      pto_interconnect_describe_others (core, others, sizeof others);
      pto_chip_note_unsafe (core->chip, fault, others, sizeof others);
      pto_engine_fail (core->engine, PTO_STATUS_KERNEL_HANG,
                       _ ("%s: the kernel did not return and no other task finished for %" PRIu64
                          " ms: set timeout to more if it needs longer%s"),
                       task, core->chip->params.values[PTO_PARAMETER_TIMEOUT], others);
      break;
    }
}

_Static_assert(PTO_GUARD_DEFAULT == PTO_FENCE_BYTES, "the size that costs a few instructions");

/* Another core may write what is read here, see PTO_FENCE_PERHAPS. */
static __attribute__ ((noinline, no_sanitize ("thread"))) bool
is_hurt (const struct pto_fence *fence)
{
  uint64_t behind = fence->address + fence->bytes;
  uint64_t before = fence->address - PTO_GUARD_DEFAULT;

  if (fence->guard == PTO_GUARD_DEFAULT && fence->before == PTO_GUARD_DEFAULT)
    return !pto_fence_is_zero (pto_fence_difference (behind, pto_fence_lanes_of (behind))
                               | pto_fence_difference (before, pto_fence_lanes_of (before)));
  return pto_fence_damage (fence) != 0 || pto_fence_damage_before (fence) != 0;
}

/* A guard that is hurt already is not looked at when the task has run, which is not to be blamed.
 * If the kernel that hurt it is in a task beside this one, that task reports it. */
static void
note_stray (struct pto_core *core, const struct pto_fence *fence)
{
  uint64_t n = pto_fence_damage (fence);
  bool before = n == 0;
  char task[400];
  char what[128];

  pto_core_describe_task (core, task, sizeof task);
  describe_tensor (core, fence->address, fence->address + fence->bytes, what, sizeof what);
  if (before)
    n = pto_fence_damage_before (fence);
  if (n > 0)
    pto_chip_note_stray (core->chip, fence, n, before, what, task);
}

/* The program has given back memory that a task was given: the guards are not there any more. The
 * task does not run, if it has not begun. */
static __attribute__ ((noinline, cold)) bool
report_gone (struct pto_core *core, const struct pto_fence *fence)
{
  char where[400];
  char what[128];

  pto_core_describe_task (core, where, sizeof where);
  describe_tensor (core, fence->address, fence->address + fence->bytes, what, sizeof what);
  pto_engine_fail (core->engine, PTO_STATUS_INVALID_ARGS,
                   _ ("%s: the buffer of %" PRIu64
                      " bytes of %s was freed before the task had run: keep it until the run has "
                      "ended"),
                   where, fence->bytes, what);
  return false;
}

static bool
is_there (const struct pto_fence *fence)
{
  struct pto_fence found;

  return pto_fence_find (fence->address, &found) && found.address == fence->address
         && found.bytes == fence->bytes && (found.guard & PTO_FENCE_GONE) == 0;
}

/* Returns false if the memory of one is gone; the run has failed. */
static bool
look_at_fences (struct pto_core *core, uint32_t n_fences)
{
  core->fences_version = pto_fence_version ();
  for (uint32_t f = 0; f < n_fences; f++)
    {
      struct pto_fence *fence = &core->fences[f];
      bool perhaps = (fence->guard & PTO_FENCE_PERHAPS) != 0;
      uint64_t version = fence->guard >> PTO_FENCE_VERSION_SHIFT;

      core->fences_are_made[f] = perhaps;
      fence->guard &= (UINT64_C (1) << PTO_FENCE_VERSION_SHIFT) - 1;
      if (__builtin_expect ((fence->guard & PTO_FENCE_GONE) != 0, 0)
          || (!perhaps
              && __builtin_expect (version != (core->fences_version & PTO_FENCE_VERSION_MASK), 0)
              && !is_there (fence)))
        return report_gone (core, fence);
      if (__builtin_expect (!is_hurt (fence), 1))
        continue;
      if (!perhaps)
        note_stray (core, fence);
      fence->guard = fence->before = 0;
    }
  return true;
}

/* The memory that a guard lies behind, in words that a kernel may have spoiled. */
static struct pto_fence
fence_at (const struct pto_core *core, uint64_t end)
{
  struct pto_fence fence = { .address = end, .guard = core->engine->config.guard_bytes };
  const TensorData *tensor;
  uint32_t at = 0;

  while ((tensor = pto_payload_next_tensor (core->payload.task, &core->engine->shared, &at))
         != NULL)
    if (tensor->buffer.addr < end && end - tensor->buffer.addr <= tensor->buffer.size)
      {
        fence.address = tensor->buffer.addr;
        fence.bytes = end - tensor->buffer.addr;
      }
  return fence;
}

/* What makes the memory may not have written the guard: its condition was off, or nothing orders
 * the two. A guard that is not whole is not looked at after the task. */
static __attribute__ ((noinline, cold)) void
put_aside (struct pto_core *core, const struct pto_payload *task, uint32_t bytes)
{
  for (uint32_t g = 0; g < core->n_guards; g++)
    if ((task->guards[g] & PTO_GUARD_OTHERS) != 0
        && !pto_fence_is_whole_any (core->guards[g], bytes))
      {
        core->guards[g] = (uint64_t) (uintptr_t) pto_fence_whole ();
        core->guard_lanes[g] = pto_fence_lanes_of (core->guards[g]);
      }
}

/* Behind the outputs that the task makes it is written here; behind those of a task with parts it
 * has been written before the first of them, and behind one that others may write to before. Behind
 * memory that another task makes it is there.
 */
static inline __attribute__ ((always_inline)) void
fill_guards_of_default (struct pto_core *core, const struct pto_payload *task)
{
  const uint64_t *guards = task->guards;
  pto_fence_lanes difference = { 0 };
  bool is_there = core->parts != NULL;
  bool others = false;
  uint32_t n = core->n_guards;

  for (uint32_t g = 0; g < n; g++)
    {
      uint64_t at = guards[g];

      if (at < PTO_GUARD_OTHERS)
        {
          pto_fence_lanes lanes = pto_fence_lanes_of (at);

          core->guards[g] = at;
          core->guard_lanes[g] = lanes;
          if (__builtin_expect (!is_there, 1))
            pto_fence_write_lanes (at, lanes);
        }
      else
        {
          /* They are taken as they are: report_damage() looks whether they belong there. */
          pto_fence_lanes lanes = pto_fence_load (at & ~PTO_GUARD_FLAGS);

          at &= ~PTO_GUARD_FLAGS;
          core->guards[g] = at;
          core->guard_lanes[g] = lanes;
          difference |= pto_fence_difference_behind (at, lanes);
          others = true;
        }
    }
  if (others && __builtin_expect (!pto_fence_is_zero (difference), 0))
    put_aside (core, task, PTO_GUARD_DEFAULT);
}

static __attribute__ ((noinline)) void
fill_guards_of_any_size (struct pto_core *core, const struct pto_payload *task, uint32_t bytes)
{
  for (uint32_t g = 0; g < core->n_guards; g++)
    {
      core->guards[g] = task->guards[g] & ~PTO_GUARD_FLAGS;
      if (core->parts == NULL && (task->guards[g] & PTO_GUARD_FLAGS) == 0)
        pto_fence_write (core->guards[g], bytes);
    }
  put_aside (core, task, bytes);
}

static __attribute__ ((noinline)) bool
copy_fences (struct pto_core *core, const struct pto_payload *task)
{
  pto_fence_copy (core->fences, pto_payload_fences (task), task->n_fences);
  return look_at_fences (core, task->n_fences);
}

/* Remembers where they are: what lies beside the arguments is the kernel's to spoil. There are none
 * where none are asked for. Returns false if the task must not run. */
static inline __attribute__ ((always_inline)) bool
fill_guards (struct pto_core *core)
{
  const struct pto_payload *task = core->payload.task;
  uint32_t bytes = core->engine->config.guard_bytes;

  core->n_guards = task->n_guards;
  core->n_watched = core->n_guards + task->n_fences;
  if (core->n_watched == 0)
    return true;
  if (task->n_fences > 0 && !copy_fences (core, task))
    return false;
  if (bytes == PTO_GUARD_DEFAULT)
    fill_guards_of_default (core, task);
  else
    fill_guards_of_any_size (core, task, bytes);
  return true;
}

/* Returns false: the run ends. A checked run goes on, and tells all that it has found at its end.
 */
static __attribute__ ((noinline, cold, format (printf, 2, 3))) bool
report_bounds (struct pto_core *core, const char *format, ...)
{
  struct pto_report report = { 0 };
  va_list args;

  va_start (args, format);
  pto_report_setv (&report, PTO_STATUS_OUT_OF_BOUNDS, format, args);
  va_end (args);
  if (core->check == NULL)
    pto_engine_fail (core->engine, report.status, "%s", report.message);
  else
    pto_chip_note_damage (core->chip, &report);
  return core->check != NULL;
}

/* Other tasks may write to the same memory meanwhile: what is found is this kernel's or theirs.
 * Returns true if one of them has reported it, or if the run goes on. */
static __attribute__ ((noinline, cold)) bool
report_overrun (struct pto_core *core, const struct pto_fence *fence)
{
  uint64_t n = pto_fence_damage (fence);
  uint64_t before = pto_fence_damage_before (fence);
  char where[400];
  char what[128];

  if (n == 0 && before == 0)
    return true;
  pto_fence_mend (fence);
  pto_core_describe_task (core, where, sizeof where);
  describe_tensor (core, fence->address, fence->address + fence->bytes, what, sizeof what);
  if (n == 0)
    return report_bounds (core,
                          P_ ("%s: the kernel, or one beside it, wrote at least %" PRIu64
                              " byte before the buffer of %" PRIu64 " bytes of %s",
                              "%s: the kernel, or one beside it, wrote at least %" PRIu64
                              " bytes before the buffer of %" PRIu64 " bytes of %s",
                              before),
                          where, before, fence->bytes, what);
  return report_bounds (core,
                        P_ ("%s: the kernel, or one beside it, wrote at least %" PRIu64
                            " byte past the buffer of %" PRIu64 " bytes of %s",
                            "%s: the kernel, or one beside it, wrote at least %" PRIu64
                            " bytes past the buffer of %" PRIu64 " bytes of %s",
                            n),
                        where, n, fence->bytes, what);
}

static __attribute__ ((noinline, cold)) bool
report_damage (struct pto_core *core, uint32_t g, uint32_t bytes)
{
  uint64_t end = core->guards[g];
  struct pto_fence fence = { .address = end, .guard = bytes };
  uint64_t n;
  char where[400];
  char what[128];

  /* Nothing wrote it before the task, see fill_guards_of_default(). */
  if (bytes == PTO_GUARD_DEFAULT
      && !pto_fence_is_zero (core->guard_lanes[g] ^ pto_fence_lanes_of (end)))
    return true;
  /* Others may write there, too. */
  if ((core->payload.task->guards[g] & PTO_GUARD_FLAGS) != 0)
    {
      fence = fence_at (core, end);
      return report_overrun (core, &fence);
    }
  /* From the output's end to the last byte that was written. A task beside this one may have made
   * it good, and has reported it then. */
  n = pto_fence_damage (&fence);
  if (n == 0)
    return true;
  pto_core_describe_task (core, where, sizeof where);
  describe_tensor (core, end, end, what, sizeof what);
  pto_fence_mend (&fence);
  return report_bounds (core,
                        P_ ("%s: the kernel wrote at least %" PRIu64 " byte past %s",
                            "%s: the kernel wrote at least %" PRIu64 " bytes past %s", n),
                        where, n, what);
}

static __attribute__ ((noinline)) bool
check_guards_of_any_size (struct pto_core *core, uint32_t bytes)
{
  for (uint32_t g = 0; g < core->n_guards; g++)
    if (!pto_fence_is_whole_any (core->guards[g], bytes) && !report_damage (core, g, bytes))
      return false;
  return true;
}

static inline __attribute__ ((always_inline)) bool
check_guards_of_default (struct pto_core *core)
{
  pto_fence_lanes difference = { 0 };
  uint32_t n = core->n_guards;

  for (uint32_t g = 0; g < n; g++)
    difference |= pto_fence_difference (core->guards[g], core->guard_lanes[g]);
  return __builtin_expect (pto_fence_is_zero (difference), 1)
         || check_guards_of_any_size (core, PTO_GUARD_DEFAULT);
}

static __attribute__ ((noinline)) bool
check_fences (struct pto_core *core)
{
  bool has_changed = core->fences_version != pto_fence_version ();

  for (uint32_t f = 0; f < core->n_watched - core->n_guards; f++)
    {
      const struct pto_fence *fence = &core->fences[f];

      if (__builtin_expect (has_changed, 0) && !core->fences_are_made[f] && !is_there (fence))
        return report_gone (core, fence);
      if (__builtin_expect (is_hurt (fence), 0) && !report_overrun (core, fence))
        return false;
    }
  return true;
}

static inline bool
check_guards (struct pto_core *core)
{
  uint32_t bytes = core->engine->config.guard_bytes;

  if (core->n_watched == 0)
    return true;
  if (!(bytes == PTO_GUARD_DEFAULT ? check_guards_of_default (core)
                                   : check_guards_of_any_size (core, bytes)))
    return false;
  return core->n_watched == core->n_guards || check_fences (core);
}

/* What is longer than the clock counts as one ns longer. */
static uint64_t
to_ns (double ns)
{
  return ns <= (double) PTO_VIRTUAL_CLOCK_END ? (uint64_t) ns : PTO_VIRTUAL_CLOCK_END + 1;
}

double
pto_cost_get_ns (const struct pto_cost *cost, uint64_t bytes)
{
  const struct pto_cost_point *points = cost->points;
  uint32_t i = 0;

  if (cost->model == PTO_COST_LINEAR)
    return cost->base_ns + cost->ns_per_byte * (double) bytes;
  if (cost->n_points == 0)
    return 0;
  while (i < cost->n_points && points[i].bytes < bytes)
    i++;
  if (i == 0 || i == cost->n_points)
    return points[i == 0 ? 0 : i - 1].ns;
  return points[i - 1].ns
         + (double) (bytes - points[i - 1].bytes) / (double) (points[i].bytes - points[i - 1].bytes)
               * (points[i].ns - points[i - 1].ns);
}

/* What this member of the task has instead of all of its arguments; NULL: it has all. */
static const struct pto_need *
own_need (const struct pto_core *core)
{
  const struct pto_need *need
      = core->party != NULL ? &core->party->members[core->endpoint.member].need : NULL;

  return need != NULL && need->n_args_plus_1 > 0 ? need : NULL;
}

static bool
is_own_argument (const struct pto_core *core, const struct pto_need *need, const TensorData *tensor)
{
  const int64_t *args = core->payload.task->args + need->first_arg;
  uint32_t i = 0;

  while (i + 1 < need->n_args_plus_1 && args[i] != (int64_t) (uintptr_t) tensor)
    i++;
  return i + 1 < need->n_args_plus_1;
}

/* Bytes of all tensor arguments, views as large as they are seen; each block has its part of them,
 * but for those with arguments of their own, which have all of these. */
static uint64_t
argument_bytes (const struct pto_core *core)
{
  const struct pto_need *own = own_need (core);
  const TensorData *tensor;
  uint32_t at = 0;
  uint64_t bytes = 0;

  while ((tensor = pto_payload_next_tensor (core->payload.task, &core->engine->shared, &at))
         != NULL)
    {
      uint64_t size;

      if (own != NULL && !is_own_argument (core, own, tensor))
        continue;
      /* Another block of it may have spoilt it. */
      if ((uint32_t) tensor->dtype >= PTO_DTYPE_COUNT || tensor->ndims > PTO2_TENSOR_MAX_DIMS)
        continue;
      size = pto_dtype_size (tensor->dtype);
      for (uint32_t d = 0; d < tensor->ndims; d++)
        size *= tensor->shapes[d];
      bytes += size;
    }
  return core->parts != NULL && own == NULL ? bytes / pto_parts_blocks (core->parts, core->party)
                                            : bytes;
}

static uint64_t
virtual_cost (const struct pto_cost *cost, uint64_t bytes, uint64_t measured)
{
  return cost->model == PTO_COST_MEASURE ? measured : to_ns (pto_cost_get_ns (cost, bytes));
}

/* A kernel takes longer by a share of its own: of the seed, of the task and of the block, not of
 * who runs when. So two runs of one seed are equal, and a graph of two seeds goes on in two orders.
 */
static uint64_t
with_jitter (const struct pto_core *core, uint64_t ns)
{
  uint64_t z = core->chip->params.values[PTO_PARAMETER_SEED] * UINT64_C (0x9e3779b97f4a7c15)
               ^ core->payload.task_id * UINT64_C (0xd1342543de82ef95)
               ^ core->block * UINT64_C (0xaf251af3b0f025b5);
  uint32_t draw;

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  draw = (uint32_t) ((z ^ (z >> 31)) >> 32);
  return ns + (uint64_t) ((unsigned __int128) ns * core->chip->jitter * draw / 100 >> 32);
}

static __attribute__ ((noinline, cold)) void
report_end_of_clock (struct pto_core *core, uint64_t at)
{
  char where[400];

  pto_core_describe_task (core, where, sizeof where);
  pto_engine_fail (core->engine, PTO_STATUS_INVALID_ARGS,
                   _ ("%s: it is to take longer, by its cost and at %" PRIu64
                      " ns, than the virtual clock goes: to %" PRIu64 " ns (52 days)"),
                   where, at, PTO_VIRTUAL_CLOCK_END);
}

/* Who comes to the end of the clock takes no time, and the run has failed: no clock turns over. The
 * chip's own steps take a second at most, so there is room for them behind the end. */
static inline void
charge_kernel (struct pto_core *core, uint64_t ns)
{
  struct pto_exec *exec = core->engine->exec;
  uint64_t at = pto_now (exec);

  ns = with_jitter (core, ns);
  if (__builtin_expect (ns > PTO_VIRTUAL_CLOCK_END || at > PTO_VIRTUAL_CLOCK_END - ns, 0))
    report_end_of_clock (core, at);
  else
    pto_charge (exec, ns);
}

/* A core that its scheduler attends to begins when it is told to: one look at the clock for both.
 */
static inline uint64_t
now (const struct pto_core *core)
{
  return core->endpoint.attended && core->trace != NULL ? core->dispatched
                                                        : pto_engine_stamp (core->engine);
}

/* What stands before the arguments. */
static void
write_head (const struct pto_core *core, int64_t *args)
{
  args[-1] = (int64_t) core->block;
  args[-2] = (int64_t) (uintptr_t) (core->parts != NULL ? &core->services
                                                        : core->payload.task->services);
}

/* Where parts run at the same time each has a copy with its own words before it. */
static void
own_arguments (struct pto_core *core)
{
  int64_t *args = core->own + PTO_CHIP_ARGS_HEAD;
  const struct pto_need *need = own_need (core);
  const int64_t *from = core->payload.task->args;

  if (need != NULL)
    {
      from += need->first_arg;
      core->payload.num_args = need->n_args_plus_1 - 1u;
    }
  memcpy (args, from, core->payload.num_args * sizeof *args);
  write_head (core, args);
  core->payload.args = args;
}

void
pto_core_set_note (struct pto_core *core, struct pto_core_note *note)
{
  core->note = note;
  if (note == NULL)
    return;
  pto_store_relaxed (&note->calls, 0);
  memcpy (note->name, core->name, sizeof core->name);
}

/* The task was submitted in another file than the one before, or is a graph's. */
static __attribute__ ((noinline)) void
note_file (struct pto_core *core)
{
  uint32_t line;
  const char *file = pto_engine_get_place (core->engine, core->payload.task, &line);

  if (file != core->noted_file && file != NULL)
    {
      const char *slash = strrchr (file, '/');

      snprintf (core->note->file, sizeof core->note->file, "%s", slash != NULL ? slash + 1 : file);
      core->noted_file = file;
    }
  pto_store_relaxed (&core->note->line, file != NULL ? line : 0);
}

static inline void
note_place (struct pto_core *core)
{
  const struct pto_payload *task = core->payload.task;

  if (task->file != NULL && task->file == core->noted_file)
    pto_store_relaxed (&core->note->line, task->line);
  else if (task->line > 0)
    note_file (core);
  else
    pto_store_relaxed (&core->note->line, 0);
}

/* Not inlined: a fiber may go on on another thread, and the thread is asked for here. */
static __attribute__ ((noinline)) void
note_begin (struct pto_core *core)
{
  static _Thread_local uint32_t thread;
  struct pto_core_note *note = core->note;

  if (thread == 0)
    thread = (uint32_t) syscall (SYS_gettid);
  pto_store_relaxed (&note->task, core->payload.task_id);
  pto_store_relaxed (&note->since, pto_wall_clock ());
  pto_store_relaxed (&note->kernel, core->payload.kernel_id);
  pto_store_relaxed (&note->thread, thread);
  note_place (core);
  /* Release: pairs with the acquire of who reads it. The core is its only writer. */
  pto_store_release (&note->calls, pto_load_relaxed (&note->calls) + 1);
}

static void
note_end (const struct pto_core *core)
{
  /* Relaxed: what is noted is of a call that goes on. */
  pto_store_relaxed (&core->note->calls, pto_load_relaxed (&core->note->calls) + 1);
}

/* Whether some kernel of the task may exchange something with those of other tasks while it runs.
 * One that does not say what it touches may do anything. */
static bool
may_talk (const struct pto_core *core)
{
  const struct pto_party *party = core->party;
  const struct pto_kernel *kernel = core->payload.kernel;
  bool talks = !kernel->instrumented || kernel->talks
               || (party != NULL && party->cohort != PTO_COHORT_NONE);

  for (uint32_t m = 0; party != NULL && !talks && m < party->n_members; m++)
    {
      kernel = pto_program_kernel (core->chip->program, party->members[m].need.kernel);
      talks = !kernel->instrumented || kernel->talks;
    }
  return talks;
}

static __attribute__ ((noinline, cold)) void
enter_check (struct pto_core *core)
{
  const struct pto_dispatch_payload *payload = &core->payload;
  const struct pto_party *party = core->party;
  const struct pto_need *need = own_need (core);
  struct pto_check_call call
      = { .task = payload->task_id,
          .kernel = payload->kernel_id,
          .block = (uint32_t) (core->block & PTO_MAX_BLOCKS),
          .n_blocks = core->parts != NULL ? pto_parts_blocks (core->parts, party) : 1,
          .n_kernels = 1,
          .instrumented = payload->kernel->instrumented,
          .hides_stores = payload->kernel->hides_stores,
          .talks = may_talk (core),
          .n_args = UINT32_MAX,
          .own = core,
          .own_bytes = sizeof *core };

  if (party != NULL)
    {
      call.member = core->endpoint.member % party->block;
      call.n_kernels = party->block;
      call.at_once = core->parts == NULL || core->parts->n_blocks <= 1;
      call.has_kernels
          = party->members[0].need.kernel != party->members[party->n_members - 1].need.kernel
            || party->block > 1;
    }
  if (need != NULL)
    {
      call.owner = core->endpoint.member;
      call.first_arg = need->first_arg;
      call.n_args = need->n_args_plus_1 - 1u;
    }
  call.n_kernels *= call.n_blocks;
  core->context = pto_check_enter (core->check, &call);
}

/* Blocks that are alike, whatever their numbers: members of a group have arguments of their own,
 * and the kernels of a mixed task a pipe. */
static bool
has_like_blocks (const struct pto_core *core)
{
  const struct pto_party *party = core->party;
  bool is_like = party == NULL || party->block == 1;

  for (uint32_t m = 0; party != NULL && is_like && m < party->n_members; m++)
    is_like = party->members[m].need.kernel == party->members[0].need.kernel
              && party->members[m].need.n_args_plus_1 == 0;
  return is_like;
}

static __attribute__ ((noinline, cold)) void
enter_observed (struct pto_core *core)
{
  const struct pto_order *order = core->engine->order;

  if (order != NULL && core->parts != NULL && has_like_blocks (core))
    {
      uint32_t n = pto_parts_blocks (core->parts, core->party);
      uint32_t block = (uint32_t) (core->block & PTO_MAX_BLOCKS);

      core->block = (core->block & ~(uint64_t) PTO_MAX_BLOCKS)
                    | pto_order_block (order, core->payload.task_id, block, n);
    }
  if (core->check != NULL)
    enter_check (core);
}

/* Of a kernel that is timed, and perhaps checked. */
static inline uint64_t
enter (struct pto_core *core)
{
  if (__builtin_expect (core->is_observed, 0))
    enter_observed (core);
  return now (core);
}

/* --- kernels that are called apart --- */

struct apart
{
  struct pto_core *core;
  int64_t *args;
};

/* On the core's own thread. */
static void
call_kernel (int64_t *data)
{
  struct apart *apart = (struct apart *) data;
  struct pto_core *core = apart->core;

  if (core->check != NULL)
    pto_check_go_on_here (core->context);
  core->payload.kernel->apart (apart->args);
  if (core->check != NULL)
    pto_check_resume (NULL);
}

/* The entry of such kernels, called as they would be: the guarded call of the core is this one's. A
 * kernel that has no thread-local variables costs nothing by it. */
static void
call_apart (int64_t *args)
{
  struct pto_guard *guard = pto_guard_pause ();
  struct pto_core *core = pto_thread_self ()->current->arg;
  /* Relaxed: the core is its only writer. */
  struct pto_own_thread *own = pto_load_relaxed (&core->own_thread);
  struct apart apart = { core, args };
  int64_t services = args[-2];
  const struct pto_fault *fault = NULL;
  const char *text;
  char error[160];

  if (own == NULL)
    {
      uint64_t stack = core->chip->params.values[PTO_PARAMETER_STACK];

      own = pto_own_thread_new (core->name, stack, error, sizeof error);
      if (own == NULL)
        {
          pto_engine_fail (core->engine, PTO_STATUS_SYSTEM, "%s", error);
          pto_guard_resume (guard);
          return;
        }
      core->chip->own_threads[core->endpoint.number] = own;
      /* seq_cst: before the look at the interrupt in pto_guard_resume(). Pairs with
       * pto_core_interrupt(): either it finds the thread, or the call ends here. */
      pto_exchange_seq_cst (&core->own_thread, own);
      pto_guard_resume (guard);
      guard = pto_guard_pause ();
    }
  if (core->note != NULL)
    pto_store_relaxed (&core->note->thread, (uint32_t) pto_own_thread_id (own));
  args[-2] = (int64_t) (uintptr_t) &core->services_apart;
  core->is_apart = true;
  pto_own_thread_note (own, (const void *) (uintptr_t) core->payload.kernel->apart,
                       core->payload.kernel->name);
  fault = pto_own_thread_call (own, &core->guard, call_kernel, (int64_t *) &apart, &text);
  core->is_apart = false;
  args[-2] = services;
  if (fault != NULL)
    pto_guard_end (guard, fault, text);
  pto_guard_resume (guard);
}

void
pto_kernel_set_apart (struct pto_kernel *kernel)
{
  kernel->apart = kernel->entry;
  kernel->entry = call_apart;
}

void
pto_core_interrupt (struct pto_core *core, uint64_t call, bool force)
{
  struct pto_own_thread *own;

  if (force)
    pto_guard_force (&core->guard, call);
  pto_guard_interrupt (&core->guard, call);
  /* seq_cst: after the interrupt was written; pairs with call_apart(). */
  own = pto_load_seq_cst (&core->own_thread);
  if (own != NULL)
    pto_own_thread_interrupt (own, call, force);
}

bool
pto_core_is_put_off (struct pto_core *core, uint64_t call)
{
  struct pto_own_thread *own = pto_load_seq_cst (&core->own_thread);

  return pto_guard_is_put_off (&core->guard, call)
         || (own != NULL && pto_own_thread_is_put_off (own, call));
}

/* Runs the kernel; false when it is to count as failed. */
static inline __attribute__ ((always_inline)) bool
run_kernel (struct pto_core *core)
{
  const struct pto_dispatch_payload *payload = &core->payload;
  bool timed = core->timed;
  bool is_virtual = core->chip->virtual_clock;
  bool are_whole = true;
  struct pto_fault fault;
  uint64_t waited;
  uint64_t start;

  if (__builtin_expect (!fill_guards (core), 0))
    return false;
  start = timed ? enter (core) : 0;
  waited = timed ? core->waited : 0;
  if (__builtin_expect (core->parts != NULL, 0))
    own_arguments (core);
  if (is_virtual && core->chip->given != NULL)
    {
      fault.kind = PTO_FAULT_NONE;
      charge_kernel (core, pto_given_time (core));
    }
  else if (is_virtual)
    {
      const struct pto_cost *cost = &payload->kernel->cost;
      bool measure = cost->model == PTO_COST_MEASURE;
      /* Before the kernel, whose arguments are its own to spoil. */
      uint64_t bytes = measure ? 0 : argument_bytes (core);
      uint64_t wall = measure ? pto_wall_clock () : 0;

      pto_guard_call (&core->guard, payload->function_bin_addr, payload->args, &fault);
      if (measure)
        wall = pto_wall_clock () - wall;
      /* Other kernels run while the time passes, and this one is not to be blamed for them. */
      are_whole = fault.kind != PTO_FAULT_NONE || check_guards (core);
      charge_kernel (core, virtual_cost (cost, bytes, wall));
    }
  else
    pto_guard_call (&core->guard, payload->function_bin_addr, payload->args, &fault);
  if (timed)
    {
      uint64_t end = pto_engine_stamp_own (core->engine);

      if (__builtin_expect (core->check != NULL, 0))
        pto_check_leave (core->context);
      waited = core->waited - waited;
      /* Two processors may count a moment apart. */
      core->busy += end - start - (waited < end - start ? waited : end - start);
      if (__builtin_expect (core->parts != NULL, 0) && core->trace != NULL)
        pto_trace_add (core->trace, PTO_TRACE_PART, start, payload->task_id, payload->kernel_id,
                       core->block & PTO_MAX_BLOCKS);
      if (__builtin_expect (waited != 0, 0) && core->trace != NULL)
        pto_trace_add (core->trace, PTO_TRACE_WAIT, start, payload->task_id, core->endpoint.number,
                       waited);
      if (core->trace != NULL)
        pto_trace_add (core->trace, PTO_TRACE_RUN, start, payload->task_id, core->endpoint.number,
                       end);
      if (core->endpoint.attended)
        core->outcome.time = core->dispatched = end;
    }
  if (fault.kind != PTO_FAULT_NONE)
    {
      report_fault (core, &fault);
      return false;
    }
  return is_virtual ? are_whole : check_guards (core);
}

/* After a fatal error what was dispatched already does not run any more, unless others of its task
 * do. */
static inline bool
begins (const struct pto_core *core)
{
  if (__builtin_expect (core->party != NULL, 0))
    return pto_party_begins (core->engine, core->party);
  return !pto_engine_has_failed (core->engine);
}

/* The part of a task that was dispatched here. */
static __attribute__ ((noinline)) bool
run_part (struct pto_core *core)
{
  const struct pto_endpoint *endpoint = &core->endpoint;
  uint32_t first = pto_endpoint_block (endpoint, core->party);
  uint32_t n = pto_parts_blocks (core->parts, core->party);
  uint32_t sub = core->party != NULL ? core->party->members[endpoint->member].need.sub : 0;

  for (uint32_t b = 0; b < endpoint->n_blocks; b++)
    {
      bool ok;

      core->block = PTO_BLOCK_WORD (first + b, n, sub);
      if (!begins (core))
        return false;
      if (core->party != NULL)
        pto_interconnect_enter (core);
      ok = run_kernel (core);
      if (core->party != NULL && !pto_interconnect_leave (core))
        ok = false;
      if (!ok)
        return false;
    }
  return true;
}

/* DATA_MAIN_BASE has changed. false: EXIT. */
static bool
serve (void *data, uint32_t value)
{
  struct pto_core *core = data;
  struct pto_exec *exec = core->engine->exec;
  const struct pto_platform_costs *costs = &core->chip->platform->costs;

  if (value == PTO_REG_EXIT)
    return false;
  pto_charge (exec, costs->start);
  if (pto_trace_has (core->trace, PTO_TRACE_LEVEL_SCHEDULE))
    pto_trace_add (core->trace, PTO_TRACE_ACK, now (core), core->payload.task_id,
                   core->endpoint.number, (uint64_t) core->endpoint.member << 32 | value);
  /* Relaxed: ACK says nothing of what the core does. */
  pto_store_relaxed (&core->registers.cond, value);
  core->outcome.time = 0;
  if (core->note != NULL)
    note_begin (core);
  if (__builtin_expect (core->parts != NULL, 0))
    {
      core->outcome.failed = !run_part (core);
      core->block = PTO_BLOCK_ALONE;
    }
  else
    core->outcome.failed = !begins (core) || !run_kernel (core);
  if (core->note != NULL)
    note_end (core);
  pto_charge (exec, costs->finish);
  pto_store_release (&core->registers.cond, PTO_COND_FIN | value);
  if (!core->endpoint.attended)
    pto_scheduler_signal (core->endpoint.scheduler, core->endpoint.index);
  return true;
}

void
pto_core_main (void *data)
{
  struct pto_core *core = data;
  struct pto_exec *exec = core->engine->exec;

  while (pto_word_get (&core->handshake.aicpu_ready) == 0)
    pto_park (exec, &core->handshake.aicpu_ready, 0, PTO_NEVER);
  pto_word_set (exec, &core->handshake.aicore_done, 1);
  pto_word_serve (exec, &core->registers.data_main_base, serve, core);
}
