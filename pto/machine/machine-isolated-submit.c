/* machine-isolated-submit.c: how does an orchestration function submit to a chip in another
 * process?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The table of calls that it has here writes them into the stream (../process/command-stream.h).
 * What the chip makes of them is known later: has_failed() says what is known by now.
 */
#include "config.h"

#include "base/log.h"
#include "common/text.h"
#include "machine-isolated.h"

#include <stdarg.h>
#include <string.h>

/* How long to look for room before sleeping. */
#define SPIN_NS 20000u

static IsolatedMachine *
machine_of (PTO2Runtime *rt)
{
  IsolatedRecorder *recorder = (IsolatedRecorder *) rt;

  return (IsolatedMachine *) ((char *) recorder - offsetof (IsolatedMachine, recorder));
}

/* Returns FALSE if the child does not read any more. */
static gboolean
await_stream (IsolatedMachine *self, bool (*is_ready) (struct pto_stream_writer *, bool))
{
  IsolatedRecorder *recorder = &self->recorder;

  while (!recorder->over && !is_ready (&recorder->writer, false))
    {
      guint32 heard = pto_solo_listen (self->solo, PTO_ISOLATED_LANE_RUN);

      if (!pto_stream_is_sound (&recorder->writer))
        pto_solo_kill (self->solo, _ ("it wrote into its commands"));
      if (is_ready (&recorder->writer, true))
        break;
      recorder->over = !pto_isolated_wait (self, heard, SPIN_NS);
    }
  return !recorder->over;
}

/* Returns FALSE if there is no room any more. */
static gboolean
put (IsolatedMachine *self, enum pto_command_kind kind, struct pto_said *said)
{
  if (!await_stream (self, pto_stream_has_room))
    return FALSE;
  pto_stream_put (&self->recorder.writer, kind, said);
  return TRUE;
}

gboolean
pto_isolated_has_failed (PTO2Runtime *rt)
{
  IsolatedMachine *self = machine_of (rt);
  IsolatedRecorder *recorder = &self->recorder;

  if (!recorder->failed)
    recorder->failed = recorder->over || pto_stream_has_failed (&recorder->writer);
  return recorder->failed;
}

char *
pto_isolated_dup_failure (PTO2Runtime *rt)
{
  char text[PTO_STREAM_TEXT];

  pto_stream_get_failure (&machine_of (rt)->recorder.writer, text);
  return text[0] != '\0' ? g_strdup (text) : NULL;
}

void
pto_isolated_fail (PTO2Runtime *rt, enum pto_status status, const char *message)
{
  IsolatedMachine *self = machine_of (rt);

  if (pto_isolated_has_failed (rt))
    return;
  put (self, PTO_COMMAND_FAIL, &(struct pto_said){ .a = (int32_t) status, .text = message });
  self->recorder.failed = TRUE;
}

void
pto_isolated_catch_up (PTO2Runtime *rt)
{
  await_stream (machine_of (rt), pto_stream_is_read);
}

/* The ring of tasks of a scope that is so many inside of the current one. */
static guint
find_ring (const IsolatedRecorder *recorder, guint inside)
{
  return MIN (recorder->scopes->len + inside, PTO_RINGS - 1);
}

/* The name of the task that is submitted now. */
static PTO2TaskId
next_task (const IsolatedMachine *self)
{
  guint ring = find_ring (&self->recorder, 0);

  return PTO_TASK_ID (ring, self->recorder.n_tasks[ring]);
}

/* Where the task is submitted that is submitted now. */
static IsolatedPlace
this_place (const IsolatedMachine *self)
{
  const PTO2Runtime *rt = &self->recorder.runtime;

  return (IsolatedPlace){ rt->line > 0 ? rt->file : NULL, (guint32) MAX (rt->line, 0) };
}

/* What lies behind its copy is looked at when the run has ended: the task is found by this. Here
 * what is copied later may lie where a kernel has written too far, so the core cannot know. */
static void
note_writer (IsolatedMachine *self, const PTOParam *param, guint argument, guint32 kernel)
{
  IsolatedRecorder *recorder = &self->recorder;
  guint64 end = param->tensor.buffer.addr + param->tensor.buffer.size;
  IsolatedWriter *writer = g_hash_table_lookup (recorder->writers, &end);

  if (writer == NULL)
    {
      writer = g_new0 (IsolatedWriter, 1);
      writer->end = end;
      writer->first = next_task (self);
      writer->first_place = this_place (self);
      g_hash_table_insert (recorder->writers, &writer->end, writer);
    }
  /* A task may have it in several arguments. */
  writer->n += writer->n == 0 || writer->last != next_task (self);
  writer->last = next_task (self);
  writer->last_place = this_place (self);
  writer->kernel = kernel;
  writer->argument = argument;
  writer->tensor = param->tensor;
}

/* Do other tasks have a part of that memory which ends before it does? They may have written as
 * far.
 */
static gboolean
has_other_writers (const IsolatedRecorder *recorder, const struct pto_overrun *overrun)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, recorder->writers);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      const IsolatedWriter *writer = value;

      if (writer->end > overrun->begin && writer->end < overrun->end)
        return TRUE;
    }
  return FALSE;
}

char *
pto_isolated_describe_overrun (IsolatedMachine *self, const struct pto_overrun *overrun)
{
  const IsolatedWriter *writer = g_hash_table_lookup (self->recorder.writers, &overrun->end);
  g_autoptr (GString) first = NULL;
  g_autoptr (GString) last = NULL;
  GString *text;

  if (writer == NULL)
    return NULL;
  text = g_string_new (NULL);
  first = g_string_new (NULL);
  last = g_string_new (NULL);
  pto_isolated_append_place (first, writer->first_place);
  pto_isolated_append_place (last, writer->last_place);
  if (writer->n > 1)
    g_string_append_printf (
        text, _ ("one of %" PRIu64 " tasks that have it, from task %u of ring %u%s, to "),
        writer->n, PTO_TASK_LOCAL (writer->first), PTO_TASK_RING (writer->first), first->str);
  g_string_append_printf (text,
                          P_ ("task %u of ring %u (%s)%s: the kernel wrote at least %" PRIu64
                              " byte past argument %u (declared %s [",
                              "task %u of ring %u (%s)%s: the kernel wrote at least %" PRIu64
                              " bytes past argument %u (declared %s [",
                              overrun->bytes),
                          PTO_TASK_LOCAL (writer->last), PTO_TASK_RING (writer->last),
                          pto_isolated_name_kernel (self, writer->kernel), last->str,
                          overrun->bytes, writer->argument, pto_dtype_name (writer->tensor.dtype));
  for (guint d = 0; d < writer->tensor.ndims; d++)
    g_string_append_printf (text, "%s%" G_GUINT64_FORMAT, d > 0 ? ", " : "",
                            writer->tensor.shapes[d]);
  g_string_append (text, "])");
  if (writer->n > 1 || has_other_writers (&self->recorder, overrun))
    g_string_append (text, _ (": several tasks have that memory: check=access names the one that "
                              "wrote"));
  return g_string_free (text, FALSE);
}

/* Which kernel a message names. */
static int32_t
first_kernel (const PTO2Submit *submit)
{
  const int32_t *kernels = submit->mixed != NULL ? submit->mixed : submit->group;
  int32_t n = submit->mixed != NULL ? 3 : submit->n_group;

  for (int32_t i = 0; kernels != NULL && i < n; i++)
    if (kernels[i] >= 0)
      return kernels[i];
  return submit->kernel_id;
}

static gboolean
refuse (IsolatedMachine *self, const struct pto_report *report)
{
  pto_isolated_fail (&self->recorder.runtime, report->status, report->message);
  return FALSE;
}

/* Where the child finds a tensor. kernel: that is given it; less than 0: none. */
static gboolean
place (IsolatedMachine *self, PTOParam *param, guint argument, int32_t kernel)
{
  struct pto_report report = { 0 };
  Tensor *tensor = &param->tensor;
  gboolean is_met;
  guint64 address;

  if (param->type == PTO_PARAM_SCALAR || tensor->status != PTO2_TENSOR_OK || tensor->storage != NULL
      || tensor->buffer.addr == 0)
    return TRUE;
  is_met = g_hash_table_size (self->numbers) == 0
           || pto_stage_has (self->stage, tensor->buffer.addr, tensor->buffer.size);
  address = pto_stage_place (self->stage, tensor->buffer.addr, tensor->buffer.size,
                             param->type != PTO_PARAM_INPUT, &report);
  if (address == 0)
    return refuse (self, &report);
  if (!is_met && address != tensor->buffer.addr
      && !pto_isolated_meet_numbers (self, tensor->buffer.addr, tensor->buffer.size, &report))
    return refuse (self, &report);
  if (kernel >= 0 && address != tensor->buffer.addr)
    note_writer (self, param, argument, (guint32) kernel);
  tensor->buffer.addr = address;
  return TRUE;
}

/* Whose argument it is, and as which one: of a group whose members have their own. */
static int32_t
find_own (const PTO2Submit *group, int32_t kernel, gint *argument)
{
  for (int32_t m = 0; group != NULL && group->group_params != NULL && m < group->n_group; m++)
    {
      if (*argument < group->group_params[m])
        return group->group[m];
      *argument -= group->group_params[m];
    }
  return kernel;
}

/* All that a task is given. condition: NULL: it has none. group: NULL: it is none. */
static gboolean
place_all (IsolatedMachine *self, PTOParam *params, int32_t n_params, PTOParam *condition,
           int32_t kernel, const PTO2Submit *group)
{
  struct pto_report report = { 0 };

  if (n_params > PTO_STREAM_PARAMS)
    n_params = 0;
  for (int32_t i = 0; i < n_params; i++)
    {
      gint own = i;
      int32_t of = find_own (group, kernel, &own);

      if (!place (self, &params[i], (guint) own, of))
        return FALSE;
    }
  if (condition != NULL && !place (self, condition, 0, PTO2_KERNEL_NONE))
    return FALSE;
  /* Behind all tensors, of which they may be addresses. */
  for (int32_t i = 0; i < n_params; i++)
    {
      gint own = i;
      int32_t of = find_own (group, kernel, &own);

      /* A graph keeps no address of its arguments: the child knows one when it sees it. */
      if (params[i].type == PTO_PARAM_SCALAR && self->run->capture != NULL)
        params[i].scalar = pto_stage_find (self->stage, params[i].scalar);
      else if (params[i].type == PTO_PARAM_SCALAR
               && !pto_isolated_place_number (self, &params[i].scalar, next_task (self),
                                              this_place (self), (guint) own, (guint32) of,
                                              &report))
        return refuse (self, &report);
    }
  return TRUE;
}

/* As the task that is submitted now is called over there: the next of the ring of its scope. */
static PTO2TaskId
name_task (IsolatedRecorder *recorder, guint inside)
{
  guint ring = find_ring (recorder, inside);

  return PTO_TASK_ID (ring, recorder->n_tasks[ring]++);
}

/* An output of a scope outside gets its memory over there from a task of that scope, which has a
 * name; not in a graph. */
static void
note_output (IsolatedMachine *self, const Tensor *tensor)
{
  IsolatedRecorder *recorder = &self->recorder;
  guint32 number = (guint32) (guintptr) tensor->storage;
  guint depth = recorder->scopes->len;

  if (number == 0 || number > recorder->n_buffers || recorder->made->data[number - 1])
    return;
  recorder->made->data[number - 1] = TRUE;
  while (depth > 0 && g_array_index (recorder->scopes, guint32, depth - 1) >= number)
    depth--;
  if (depth < recorder->scopes->len && self->run->capture == NULL)
    recorder->n_tasks[MIN (depth, PTO_RINGS - 1)]++;
}

static void
note_outputs (IsolatedMachine *self, const PTOParam *params, int32_t n_params)
{
  for (int32_t i = 0; i < n_params && n_params <= PTO_STREAM_PARAMS; i++)
    if (params[i].type == PTO_PARAM_OUTPUT)
      note_output (self, &params[i].tensor);
}

/* The same, after where it is submitted, unless that is where the last one was. */
static gboolean
put_placed (IsolatedMachine *self, enum pto_command_kind kind, struct pto_said *said)
{
  IsolatedRecorder *recorder = &self->recorder;
  IsolatedPlace at = this_place (self);

  if (at.file != recorder->at.file || (at.file != NULL && at.line != recorder->at.line))
    {
      if (!put (
              self, PTO_COMMAND_PLACE,
              &(struct pto_said){ .a = at.file != NULL ? (int32_t) at.line : 0, .text = at.file }))
        return FALSE;
      recorder->at = at;
    }
  return put (self, kind, said);
}

/* Waits for what the last command came to. Returns FALSE if the run has failed. */
static gboolean
await_answer (IsolatedMachine *self)
{
  return await_stream (self, pto_stream_is_read)
         && !pto_isolated_has_failed (&self->recorder.runtime);
}

/* What a submit gives that has just been written. */
static PTO2TaskId
end_submit (IsolatedMachine *self, const PTOParam *params, int32_t n_params)
{
  IsolatedRecorder *recorder = &self->recorder;
  PTO2TaskId id = PTO2_TASK_NONE;

  for (int32_t i = 0; i < n_params && n_params <= PTO_STREAM_PARAMS; i++)
    recorder->is_reducing |= params[i].type == PTO_PARAM_REDUCTION;
  if (G_LIKELY (!recorder->is_reducing))
    return name_task (recorder, 0);
  if (await_answer (self))
    pto_stream_get_answer (&recorder->writer, (int32_t *) &id, 2);
  return id;
}

static PTO2TaskId
submit_task (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type, PTOParam *params,
             int32_t n_params)
{
  IsolatedMachine *self = machine_of (rt);

  if (pto_isolated_has_failed (rt))
    return PTO2_TASK_NONE;
  note_outputs (self, params, n_params);
  if (!place_all (self, params, n_params, NULL, kernel_id, NULL)
      || !put_placed (self, PTO_COMMAND_SUBMIT,
                      &(struct pto_said){
                          .submit = pto2_make_submit (kernel_id, worker_type, params, n_params) }))
    return PTO2_TASK_NONE;
  return end_submit (self, params, n_params);
}

static PTO2TaskId
submit_more (PTO2Runtime *rt, const PTO2Submit *asked)
{
  IsolatedMachine *self = machine_of (rt);
  struct pto_said said = { .submit = *asked };
  PTO2Submit *submit = &said.submit;
  PTOParam condition;

  if (pto_isolated_has_failed (rt))
    return PTO2_TASK_NONE;
  if (submit->n_after > PTO_STREAM_AFTER)
    {
      g_autofree char *why = g_strdup_printf (
          _ ("a task comes after %d that it names; where the chip is in a process of "
             "its own it is %d at most: let one that only orders come after some"),
          submit->n_after, PTO_STREAM_AFTER);

      pto_isolated_fail (rt, PTO_STATUS_INVALID_ARGS, why);
      return PTO2_TASK_NONE;
    }
  if (submit->n_group > PTO_STREAM_GROUP)
    {
      g_autofree char *why = g_strdup_printf (
          _ ("a group of %d kernels, which no chip has so many cores for"), submit->n_group);

      pto_isolated_fail (rt, PTO_STATUS_SYNC_START, why);
      return PTO2_TASK_NONE;
    }
  note_outputs (self, submit->params, submit->n_params);
  if (submit->condition != NULL)
    {
      condition = pto2_make_param (PTO_PARAM_INPUT, submit->condition);
      submit->condition = &condition.tensor;
    }
  if (!place_all (self, submit->params, submit->n_params,
                  submit->condition != NULL ? &condition : NULL, first_kernel (submit), submit)
      || !put_placed (self, PTO_COMMAND_SUBMIT_MORE, &said))
    return PTO2_TASK_NONE;
  return end_submit (self, submit->params, submit->n_params);
}

static void
begin_scope (PTO2Runtime *rt, enum pto_command_kind kind, const char *file, int32_t line)
{
  IsolatedMachine *self = machine_of (rt);

  g_array_append_val (self->recorder.scopes, self->recorder.n_buffers);
  if (!pto_isolated_has_failed (rt))
    put (self, kind, &(struct pto_said){ .a = line, .text = file });
}

static void
scope_begin (PTO2Runtime *rt, const char *file, int32_t line)
{
  begin_scope (rt, PTO_COMMAND_SCOPE_BEGIN, file, line);
}

static void
manual_scope_begin (PTO2Runtime *rt, const char *file, int32_t line)
{
  begin_scope (rt, PTO_COMMAND_MANUAL_SCOPE_BEGIN, file, line);
}

static void
scope_end (PTO2Runtime *rt)
{
  IsolatedMachine *self = machine_of (rt);
  GArray *scopes = self->recorder.scopes;

  if (scopes->len > 0)
    {
      self->recorder.n_buffers = g_array_index (scopes, guint32, scopes->len - 1);
      g_array_set_size (scopes, scopes->len - 1);
    }
  if (!pto_isolated_has_failed (rt))
    put (self, PTO_COMMAND_SCOPE_END, &(struct pto_said){ .a = 0 });
}

static void
orchestration_done (PTO2Runtime *rt)
{
  if (!pto_isolated_has_failed (rt))
    put (machine_of (rt), PTO_COMMAND_DONE, &(struct pto_said){ .a = 0 });
}

static void
init_tensor_pool (PTO2Runtime *rt)
{
}

/* The number of the buffer + 1 stands for its record, which is the child's. */
static PTO2Buffer *
new_buffer (PTO2Runtime *rt, uint64_t bytes, uint32_t *generation)
{
  IsolatedMachine *self = machine_of (rt);
  IsolatedRecorder *recorder = &self->recorder;
  struct pto_said said = { .a = (int32_t) recorder->n_buffers,
                           .b = (int32_t) (recorder->generation + 1),
                           .value = bytes };

  if (pto_isolated_has_failed (rt) || !put (self, PTO_COMMAND_BUFFER, &said))
    return NULL;
  *generation = ++recorder->generation;
  g_byte_array_set_size (recorder->made, recorder->n_buffers + 1);
  recorder->made->data[recorder->n_buffers] = FALSE;
  return (PTO2Buffer *) (guintptr) ++recorder->n_buffers;
}

/* -1: the run has failed, or the chip says so. */
static int32_t
ask (PTO2Runtime *rt, enum pto_command_kind kind, int32_t a, int32_t b, int32_t numbers[],
     int32_t n)
{
  IsolatedMachine *self = machine_of (rt);

  if (pto_isolated_has_failed (rt) || !put (self, kind, &(struct pto_said){ .a = a, .b = b })
      || !await_answer (self))
    return -1;
  return pto_stream_get_answer (&self->recorder.writer, numbers,
                                (uint32_t) CLAMP (n, 0, PTO_STREAM_ANSWER));
}

static int32_t
allocate_cluster (PTO2Runtime *rt)
{
  return ask (rt, PTO_COMMAND_ALLOCATE_CLUSTER, 0, 0, NULL, 0);
}

static void
free_cluster (PTO2Runtime *rt, int32_t cluster_id)
{
  if (!pto_isolated_has_failed (rt))
    put (machine_of (rt), PTO_COMMAND_FREE_CLUSTER, &(struct pto_said){ .a = cluster_id });
}

static int32_t
cluster_count (PTO2Runtime *rt)
{
  return ask (rt, PTO_COMMAND_CLUSTER_COUNT, 0, 0, NULL, 0);
}

static int32_t
cluster_cores (PTO2Runtime *rt, int32_t cluster_id, int32_t worker_type, int32_t cores[], int32_t n)
{
  return ask (rt, PTO_COMMAND_CLUSTER_CORES, cluster_id, worker_type, cores, n);
}

/* Where the child says that it has made it. FALSE: that is in none of the heaps. */
static gboolean
is_in_heaps (IsolatedMachine *self, guint64 address, guint64 bytes)
{
  const struct pto_heaps *heaps = pto_machine_peek_heaps (&self->parent);

  for (guint i = 0; i < G_N_ELEMENTS (heaps->rings); i++)
    {
      guint64 offset = address - (guint64) (guintptr) heaps->rings[i].base;

      if (offset < heaps->rings[i].size && bytes <= heaps->rings[i].size - offset)
        return TRUE;
    }
  return FALSE;
}

gboolean
pto_isolated_alloc (PtoMachine *machine, PTO2Runtime *rt, Tensor *tensor, GError **error)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;
  PTOParam output = pto2_make_param (PTO_PARAM_OUTPUT, tensor);
  guint64 address = 0;

  if (pto_isolated_has_failed (rt)
      || !put_placed (self, PTO_COMMAND_ALLOC, &(struct pto_said){ .param = &output }))
    return FALSE;
  note_output (self, tensor);
  name_task (&self->recorder, 0);
  if (!await_answer (self)
      || pto_stream_get_answer (&self->recorder.writer, (int32_t *) &address, 2) == 0)
    return FALSE;
  if (!is_in_heaps (self, address, tensor->buffer.size))
    {
      pto_solo_kill (self->solo, _ ("it says that memory is where none is"));
      return FALSE;
    }
  tensor->buffer.addr = address;
  return TRUE;
}

gboolean
pto_isolated_element (PtoMachine *machine, PTO2Runtime *rt, const Tensor *tensor,
                      const guint64 *index, gboolean write, gpointer value)
{
  IsolatedMachine *self = (IsolatedMachine *) machine;
  PTOParam param = pto2_make_param (write ? PTO_PARAM_INOUT : PTO_PARAM_INPUT, tensor);
  struct pto_said said = { .a = write, .param = &param, .index = index };
  guint64 bits = 0;

  if (write)
    memcpy (&said.value, value, pto_dtype_size (tensor->dtype));
  if (pto_isolated_has_failed (rt) || !place (self, &param, 0, PTO2_KERNEL_NONE)
      || !put_placed (self, PTO_COMMAND_ELEMENT, &said))
    return FALSE;
  /* The chip has waited by a task in a scope of its own. */
  name_task (&self->recorder, 1);
  if (!await_answer (self)
      || pto_stream_get_answer (&self->recorder.writer, (int32_t *) &bits, write ? 0 : 2) == 0)
    return FALSE;
  if (!write)
    memcpy (value, &bits, sizeof bits);
  return TRUE;
}

static void
log_message (PTO2Runtime *rt, int32_t level, const char *format, ...)
{
  GLogLevelFlags flags = level <= PTO2_LOG_WARN   ? G_LOG_LEVEL_WARNING
                         : level == PTO2_LOG_INFO ? G_LOG_LEVEL_INFO
                                                  : G_LOG_LEVEL_DEBUG;
  g_autofree char *message = NULL;
  va_list args;

  va_start (args, format);
  message = g_strdup_vprintf (format, args);
  va_end (args);
  pto_log (flags, "%s: %s", machine_of (rt)->run->title, message);
}

static const PTO2RuntimeOps recorder_ops = {
  .size = sizeof (PTO2RuntimeOps),
  .submit_task = submit_task,
  .submit = submit_more,
  .scope_begin = scope_begin,
  .manual_scope_begin = manual_scope_begin,
  .scope_end = scope_end,
  .orchestration_done = orchestration_done,
  .init_tensor_pool = init_tensor_pool,
  .new_buffer = new_buffer,
  .log = log_message,
  .allocate_cluster = allocate_cluster,
  .free_cluster = free_cluster,
  .cluster_cores = cluster_cores,
  .cluster_count = cluster_count,
};

void
pto_isolated_recorder_init (IsolatedMachine *self)
{
  self->recorder.runtime.ops = &recorder_ops;
  self->recorder.made = g_byte_array_new ();
  self->recorder.scopes = g_array_new (FALSE, FALSE, sizeof (guint32));
  self->recorder.writers = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
}

void
pto_isolated_recorder_clear (IsolatedMachine *self)
{
  g_byte_array_unref (self->recorder.made);
  g_array_unref (self->recorder.scopes);
  g_hash_table_unref (self->recorder.writers);
}

void
pto_isolated_recorder_begin (IsolatedMachine *self)
{
  IsolatedRecorder *recorder = &self->recorder;

  pto_stream_begin (&recorder->writer, pto_isolated_get_stream (self->shared));
  recorder->over = recorder->failed = FALSE;
  recorder->n_buffers = 0;
  recorder->is_reducing = FALSE;
  recorder->at.file = NULL;
  memset (recorder->n_tasks, 0, sizeof recorder->n_tasks);
  g_array_set_size (recorder->scopes, 0);
  g_hash_table_remove_all (recorder->writers);
}

void
pto_isolated_recorder_end (IsolatedMachine *self, int result)
{
  put (self, PTO_COMMAND_END, &(struct pto_said){ .a = result });
}
