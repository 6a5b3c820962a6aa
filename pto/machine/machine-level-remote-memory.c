/* machine-level-remote-memory.c: what does a level know of the memory that its remote workers have
 * for the program?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Which worker has it, in which of its lives, and by which addresses it is known here. The worker's
 * bridge is asked for all else (remote/parent/bridge-memory.c).
 */
#include "config.h"

#include "core/bits.h"

#include "machine-level.h"

#include "process/arena.h"
#include "process/write-log.h"

#include "base/error.h"
#include "common/text.h"
#include "values/address-range.h"

#include <string.h>

/* Of a copy, what is under way at one time, in memory that the bridge sees; and less, if there is
 * no room for that. */
#define STAGING_BYTES (G_GUINT64_CONSTANT (4) << 20)
#define STAGING_BYTES_MIN (G_GUINT64_CONSTANT (64) << 10)
/* What is copied there is longer than a moment for none of its parts. */
#define PART_BYTES (G_GUINT64_CONSTANT (16) << 20)

typedef struct
{
  guint64 begin, bytes;
  guint64 number; /* of no other memory of this process, also when it has been given back */
  guint child;
  guint32 life; /* of the child; what was in it is gone with that */
} Memory;

void
pto_machine_level_init_memory (LevelMachine *self)
{
  self->memory = g_array_new (FALSE, FALSE, sizeof (Memory));
  self->leaving = g_array_new (FALSE, FALSE, sizeof (Memory));
}

/* What no buffer has belongs to nobody any more. */
void
pto_machine_level_clear_memory (LevelMachine *self)
{
  for (guint i = 0; i < self->memory->len; i++)
    {
      const Memory *memory = &g_array_index (self->memory, Memory, i);

      pto_remote_range_release (memory->begin, memory->bytes);
    }
  g_array_set_size (self->memory, 0);
}

/* Under the machine's lock: the last that begins at the address or before it; -1: there is none. */
static gint
find_index (LevelMachine *self, guint64 address)
{
  return (gint) pto_bisect (i, self->memory->len,
                            g_array_index (self->memory, Memory, i).begin <= address)
         - 1;
}

static gboolean
find (LevelMachine *self, guint64 address, Memory *memory)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->parent.lock);
  gint i = find_index (self, address);

  if (i >= 0)
    *memory = g_array_index (self->memory, Memory, i);
  return i >= 0 && address - memory->begin < memory->bytes;
}

static void
add (LevelMachine *self, Memory *memory)
{
  static gsize pieces; /* atomic */

  memory->number = (guint64) g_atomic_pointer_add (&pieces, 1) + 1;
  g_mutex_lock (&self->parent.lock);
  g_array_insert_val (self->memory, (guint) (find_index (self, memory->begin) + 1), *memory);
  g_mutex_unlock (&self->parent.lock);
}

static void
remove_memory (LevelMachine *self, guint64 begin)
{
  g_mutex_lock (&self->parent.lock);
  g_array_remove_index (self->memory, (guint) find_index (self, begin));
  g_mutex_unlock (&self->parent.lock);
}

static PtoNodePath
child_path (LevelMachine *self, guint child)
{
  return pto_tree_node_get_path (pto_tree_node_peek_child (self->parent.node, child));
}

static PtoNodePath
own_path (LevelMachine *self)
{
  return pto_tree_node_get_path (self->parent.node);
}

static gboolean
check_life (LevelMachine *self, const Memory *memory, GError **error)
{
  guint32 life = pto_writes_life (pto_level_writes (self->level), memory->child);

  if (memory->life == life)
    return TRUE;
  return pto_refuse (error, PTO_ERROR_WORKER_LOST,
                     _ ("memory 0x%" PRIx64
                        " is of life %u of %s, which was lost, and all of its memory "
                        "with it; this is its life %u: ask that one for memory"),
                     memory->begin, memory->life, child_path (self, memory->child).text, life);
}

/* All of those bytes are of one. */
static gboolean
find_all (LevelMachine *self, guint64 address, guint64 bytes, Memory *memory)
{
  return find (self, address, memory) && bytes <= memory->bytes - (address - memory->begin);
}

gboolean
pto_machine_level_check_memory (LevelMachine *self, guint64 address, guint64 bytes, guint argument,
                                int id, GError **error)
{
  Memory memory;
  guint own;

  if (!find_all (self, address, bytes, &memory))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("argument %u is no memory of a remote worker below %s (0x%" PRIx64
                          "): it was given back, or it is that of a worker elsewhere"),
                       argument, own_path (self).text, address);
  own = pto_tree_node_peek_child (self->parent.node, memory.child)->id;
  if (id >= 0 && (guint) id == own)
    return check_life (self, &memory, error);
  return pto_refuse (
      error, PTO_ERROR_INVALID_ARGS,
      _ ("argument %u is memory of %s, which no other worker sees: name worker %u for the "
         "task, or let a task there copy it into a buffer"),
      argument, child_path (self, memory.child).text, own);
}

/* --- graphs --- */

void
pto_machine_level_keep_memory (LevelMachine *self, const Tensor *tensor, struct pto_plan *plan)
{
  guint64 offset;
  Memory memory;
  uint64_t n_bytes;
  struct pto_plan_param param = { .owned = true };

  if (pto_plan_find_param (plan, tensor, &offset) != UINT32_MAX
      || !find (self, tensor->buffer.addr, &memory))
    return;
  n_bytes = memory.bytes;
  param.tensor = make_tensor_external ((void *) (guintptr) memory.begin, &n_bytes, 1,
                                       (DataType) PTO_DTYPE_UINT8);
  param.word = memory.number;
  param.first = memory.begin;
  param.extent = memory.bytes;
  pto_plan_add_kept (plan, &param);
}

/* Returns the child whose memory a param of the graph is in this launch; -1 with an error that does
 * not name the task yet. */
static int
find_owner (LevelMachine *self, const struct pto_plan *plan, guint32 param, guint64 address,
            GError **error)
{
  Memory memory;
  gboolean is_kept = param >= pto_plan_n_given (plan);
  gboolean is_there = find_all (self, address, plan->params[param].extent, &memory)
                      && (!is_kept || memory.number == plan->params[param].word);

  if (is_there && check_life (self, &memory, error))
    return (int) memory.child;
  if (is_there && is_kept)
    g_prefix_error (error, "%s", _ ("it was captured with memory that is lost, so capture anew: "));
  else if (is_there)
    g_prefix_error (error, _ ("argument %s of the graph: "),
                    pto_plan_describe_param (plan, param).text);
  else
    {
      if (is_kept)
        g_set_error (
            error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
            _ ("it was captured with 0x%" PRIx64
               ", which is no memory of a remote worker below %s: it was given back, or it is that "
               "of a worker elsewhere. Capture anew, or give the memory as an argument"),
            address, own_path (self).text);
      else
        g_set_error (
            error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
            _ ("argument %s of the graph is no memory of a remote worker below %s (0x%" PRIx64
               "): it was given back, or it is that of a worker elsewhere"),
            pto_plan_describe_param (plan, param).text, own_path (self).text, address);
    }
  return -1;
}

/* Does the member of a task that is given that tensor go to the child? */
static gboolean
check_owner (LevelMachine *self, const struct pto_plan *plan, guint32 param, guint child,
             const struct pto_level_task *task, guint tensor, GError **error)
{
  const struct pto_member *members = pto_level_graph_members (task);

  while (tensor >= members->first_tensor + (guint) members->n_tensors)
    members++;
  if (task->kind == PTO_CHILD_NEXT && members->worker == child)
    return TRUE;
  return pto_refuse (
      error, PTO_ERROR_INVALID_ARGS,
      _ ("argument %s of the graph is memory of %s, which no other worker sees. Give memory of the "
         "worker that the task names, or capture a graph whose task names worker %u"),
      pto_plan_describe_param (plan, param).text, child_path (self, child).text,
      pto_tree_node_peek_child (self->parent.node, child)->id);
}

/* Looks at each tensor that the tasks use. owners: of each param, 1 + the child; 0: not known yet.
 */
static gboolean
find_owners (LevelMachine *self, const struct pto_plan *plan, struct pto_plan_given *given,
             guint *owners, GError **error)
{
  for (guint t = 0; t < plan->n_tasks; t++)
    {
      const struct pto_level_task *task = pto_level_graph_task (plan, t);

      if (task == NULL)
        continue;
      for (guint a = 0; a < task->n_tensors; a++)
        {
          const struct pto_plan_arg *arg = &plan->args[plan->tasks[t].first_arg + a];
          guint32 param = arg->index;

          if (PTO_PLAN_SOURCE (arg->what) != PTO_PLAN_TENSOR
              || !pto_remote_range_has (given[param].word))
            continue;
          if (owners[param] == 0)
            owners[param] = (guint) (find_owner (self, plan, param, given[param].word, error) + 1);
          if (owners[param] == 0
              || !check_owner (self, plan, param, owners[param] - 1, task, a, error))
            {
              g_prefix_error (error, _ ("task %u of the graph (\"%s\"): "), t, task->name);
              return FALSE;
            }
          given[param].owned = true;
        }
    }
  return TRUE;
}

gboolean
pto_machine_level_find_owned (LevelMachine *self, const struct pto_plan *plan,
                              struct pto_plan_given *given, guint n_given, GError **error)
{
  g_autofree guint *owners = NULL;
  struct pto_report report;
  guint i = 0;

  while (i < plan->n_params && !pto_remote_range_has (given[i].word))
    i++;
  report.status = PTO_OK;
  /* The level refuses arguments that the graph cannot be given at all. */
  if (i == plan->n_params || pto_plan_check (plan, given, n_given, &report) != PTO_OK)
    return TRUE;
  owners = g_new0 (guint, plan->n_params);
  return find_owners (self, plan, given, owners, error);
}

/* --- what the bridge is asked --- */

static gboolean
begin_ask (LevelMachine *self, guint child, const PtoRemoteMemoryRequest *request,
           struct pto_level_asked *asked, GError **error)
{
  struct pto_report report = { 0 };

  return pto_level_begin_ask (self->level, child, request, sizeof *request, asked, &report)
         || pto_error_set_from_report (error, PTO_STATUS_NO_MEMORY, &report);
}

/* Of the staging memory so many bytes are lent. Cancelled: they are not the caller's any more, and
 * *staging is 0. */
static gboolean
end_ask (LevelMachine *self, const PtoMachineMemory *use, const struct pto_level_asked *asked,
         guint64 *staging, guint64 room, GError **error)
{
  struct pto_report report = { 0 };
  const struct pto_level_lent lent = { room > 0 ? pto_arena_free : NULL, *staging, room };
  enum pto_status status = pto_level_end_ask (self->level, asked, &lent, use->is_unwanted,
                                              use->unwanted_data, &report);

  if (status == PTO_STATUS_CANCELLED)
    *staging = 0;
  return pto_error_set_from_report (error, status, &report);
}

/* Both. */
static gboolean
ask (LevelMachine *self, const PtoMachineMemory *use, guint child, PtoRemoteMemoryRequest *request,
     guint64 *staging, guint64 room, GError **error)
{
  struct pto_level_asked asked;

  request->staging = *staging;
  return begin_ask (self, child, request, &asked, error)
         && end_ask (self, use, &asked, staging, room, error);
}

/* The same, of what needs none. */
static gboolean
ask_alone (LevelMachine *self, const PtoMachineMemory *use, guint child,
           PtoRemoteMemoryRequest *request, GError **error)
{
  guint64 none = 0;

  return ask (self, use, child, request, &none, 0, error);
}

/* Not waited for: nobody needs to know, and who lets go last may hold a lock. life: 0: whichever it
 * has become of. */
static void
give_back (LevelMachine *self, guint child, guint32 life, guint64 begin, guint64 bytes)
{
  PtoRemoteMemoryRequest request = { .what = PTO_MEMORY_FREE, .life = life, .address = begin };

  pto_level_tell (self->level, child, &request, sizeof request);
  pto_remote_range_release (begin, bytes);
}

void
pto_machine_level_settle_memory (LevelMachine *self)
{
  for (guint i = 0; i < self->leaving->len; i++)
    {
      const Memory *memory = &g_array_index (self->leaving, Memory, i);

      give_back (self, memory->child, memory->life, memory->begin, memory->bytes);
    }
  g_array_set_size (self->leaving, 0);
}

static gboolean
fail_for_room (LevelMachine *self, guint64 bytes, GError **error)
{
  return pto_refuse (error, PTO_ERROR_NO_MEMORY,
                     _ ("no room for %" PRIu64
                        " bytes that %s and a remote worker see: set its parameter arena to more"),
                     bytes, own_path (self).text);
}

/* Nothing is reserved, here or there, of what can not be. */
static gboolean
check_size (LevelMachine *self, guint child, guint64 size, GError **error)
{
  const PtoTreeNode *node = pto_tree_node_peek_child (self->parent.node, child);
  guint64 arena = node->params->values[PTO_PARAMETER_ARENA];

  if (size > 0 && size <= arena)
    return TRUE;
  if (size == 0)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("memory of %s of 0 bytes can not be had: at least 1 is wanted"),
                       child_path (self, child).text);
  return pto_refuse (error, PTO_ERROR_NO_MEMORY,
                     _ ("%s has no room for %" PRIu64 " bytes: raise its parameter arena, which is "
                        "%" PRIu64 " bytes"),
                     child_path (self, child).text, size, arena);
}

static gboolean
take (LevelMachine *self, PtoMachineMemory *use, GError **error)
{
  guint64 answer;
  Memory memory = { .bytes = use->size, .child = use->child };
  PtoRemoteMemoryRequest request = { .what = use->what, .bytes = use->size };
  gboolean ok;

  if (!check_size (self, use->child, use->size, error))
    return FALSE;
  answer = pto_arena_alloc (sizeof memory.life);
  if (answer == 0)
    return fail_for_room (self, sizeof memory.life, error);
  memory.begin = pto_remote_range_reserve (use->size);
  request.address = memory.begin;
  if (memory.begin == 0)
    ok = pto_refuse (error, PTO_ERROR_NO_MEMORY,
                     _ ("no addresses are left for %" PRIu64 " bytes of a remote worker"),
                     use->size);
  else
    ok = ask (self, use, use->child, &request, &answer, sizeof memory.life, error);
  if (answer == 0)
    {
      /* It may be had there all the same, and is the next that the worker hears of. */
      give_back (self, use->child, 0, memory.begin, memory.bytes);
      return FALSE;
    }
  memcpy (&memory.life, (gconstpointer) (guintptr) answer, sizeof memory.life);
  pto_arena_free (answer, sizeof memory.life);
  if (ok)
    {
      add (self, &memory);
      use->device = memory.begin;
      use->life = memory.life;
    }
  else if (memory.begin != 0)
    pto_remote_range_release (memory.begin, memory.bytes);
  return ok;
}

/* Memory that bridges see, for a copy of that size; 0: there is none. */
static guint64
take_staging (LevelMachine *self, guint64 size, guint64 *room, GError **error)
{
  guint64 staging;

  *room = MIN (size, STAGING_BYTES);
  staging = pto_arena_alloc (*room);
  while (staging == 0 && *room > STAGING_BYTES_MIN)
    {
      *room = MAX (*room / 2, STAGING_BYTES_MIN);
      staging = pto_arena_alloc (*room);
    }
  if (staging == 0)
    fail_for_room (self, *room, error);
  return staging;
}

/* All of a copy, part by part, by way of memory that the bridge sees. */
static gboolean
copy (LevelMachine *self, const Memory *memory, const PtoMachineMemory *use, GError **error)
{
  guint64 room;
  guint64 staging = take_staging (self, use->size, &room, error);
  gboolean ok = TRUE;

  if (staging == 0)
    return FALSE;
  for (guint64 at = 0; ok && at < use->size; at += room)
    {
      guint64 n = MIN (use->size - at, room);
      PtoRemoteMemoryRequest request
          = { .what = use->what, .life = memory->life, .address = use->device + at, .bytes = n };

      if (use->what == PTO_MEMORY_COPY_TO)
        memcpy ((gpointer) (guintptr) staging, (const guint8 *) use->host + at, n);
      ok = ask (self, use, memory->child, &request, &staging, room, error);
      if (ok && use->what == PTO_MEMORY_COPY_FROM)
        memcpy ((guint8 *) use->host + at, (gconstpointer) (guintptr) staging, n);
    }
  if (staging != 0)
    pto_arena_free (staging, room);
  return ok;
}

/* Of one child nothing travels. Part by part, in an order in which none is written before it is
 * read, if the two overlap. */
static gboolean
copy_there (LevelMachine *self, const Memory *memory, const PtoMachineMemory *use, GError **error)
{
  gboolean is_backward = use->target > use->device;
  gboolean ok = TRUE;

  for (guint64 done = 0, n; ok && done < use->size; done += n)
    {
      PtoRemoteMemoryRequest request = { .what = PTO_MEMORY_COPY, .life = memory->life };
      guint64 at;

      n = MIN (use->size - done, PART_BYTES);
      at = is_backward ? use->size - done - n : done;
      request.address = use->device + at;
      request.target = use->target + at;
      request.bytes = n;
      ok = ask_alone (self, use, memory->child, &request, error);
    }
  return ok;
}

/* From one child to another: by way of memory that both bridges see. While one part is written the
 * next is read, into another piece of it, if there are two. */
static gboolean
copy_between (LevelMachine *self, const Memory *from, const Memory *to, const PtoMachineMemory *use,
              GError **error)
{
  guint64 room;
  guint64 pieces[2] = { take_staging (self, use->size, &room, error), 0 };
  struct pto_level_asked write;
  guint64 *written = NULL; /* a piece of which that is under way */
  gboolean ok = pieces[0] != 0;

  if (ok && room < use->size)
    pieces[1] = pto_arena_alloc (room);
  for (guint64 at = 0; ok && at < use->size; at += room)
    {
      guint64 *piece = &pieces[pieces[1] != 0 ? at / room % 2 : 0];
      guint64 n = MIN (use->size - at, room);
      PtoRemoteMemoryRequest request = {
        .what = PTO_MEMORY_COPY_FROM, .life = from->life, .address = use->device + at, .bytes = n
      };

      if (written == piece)
        ok = end_ask (self, use, &write, g_steal_pointer (&written), room, error);
      ok = ok && ask (self, use, from->child, &request, piece, room, error);
      if (written != NULL)
        ok = end_ask (self, use, &write, g_steal_pointer (&written), room, ok ? error : NULL) && ok;
      request.what = PTO_MEMORY_COPY_TO;
      request.life = to->life;
      request.address = use->target + at;
      ok = ok && begin_ask (self, to->child, &request, &write, error);
      if (ok)
        written = piece;
    }
  if (written != NULL)
    ok = end_ask (self, use, &write, written, room, error);
  for (guint i = 0; i < G_N_ELEMENTS (pieces); i++)
    if (pieces[i] != 0)
      pto_arena_free (pieces[i], room);
  return ok;
}

/* This side knows whose it is, and who has it what there is of it. */
static gboolean
check_there (LevelMachine *self, const Memory *memory, const PtoMachineMemory *use, GError **error)
{
  PtoRemoteMemoryRequest request = {
    .what = PTO_MEMORY_CHECK, .life = memory->life, .address = use->device, .bytes = use->size
  };

  return check_life (self, memory, error) && ask_alone (self, use, memory->child, &request, error);
}

/* Is it all of that worker's? child: G_MAXUINT: whoever it is of. */
static gboolean
check_use (LevelMachine *self, const PtoMachineMemory *use, Memory *memory, GError **error)
{
  PtoNodePath path;
  gboolean is_there = find (self, use->device, memory);

  if (is_there && use->child != G_MAXUINT && use->child != memory->child)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("0x%" PRIx64 " is memory of %s, not of %s"), use->device,
                       child_path (self, memory->child).text, child_path (self, use->child).text);
  if (is_there
      && (use->what == PTO_MEMORY_FREE || use->what == PTO_MEMORY_RELEASE
              ? use->device == memory->begin
              : use->size <= memory->bytes - (use->device - memory->begin)))
    return TRUE;
  path = use->child != G_MAXUINT ? child_path (self, use->child) : own_path (self);
  if (use->what == PTO_MEMORY_FREE)
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("0x%" PRIx64 " is not what malloc() of %s gave, or was given back"),
                       use->device, path.text);
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                     _ ("%" PRIu64 " bytes from 0x%" PRIx64 " do not lie in memory of %s"),
                     use->size, use->device, path.text);
}

/* check_use() has found what is read. */
static gboolean
copy_to_other (LevelMachine *self, const Memory *from, const PtoMachineMemory *use, GError **error)
{
  PtoMachineMemory written = *use;
  Memory to;

  written.device = use->target;
  written.child = G_MAXUINT;
  if (!check_use (self, &written, &to, error) || !check_life (self, from, error)
      || !check_life (self, &to, error))
    return FALSE;
  return from->child == to.child ? copy_there (self, from, use, error)
                                 : copy_between (self, from, &to, use, error);
}

gboolean
pto_machine_level_use_memory (PtoMachine *machine, PtoMachineMemory *use, GError **error)
{
  LevelMachine *self = (LevelMachine *) machine;
  Memory memory;

  if (use->what == PTO_MEMORY_MALLOC)
    return take (self, use, error);
  if (use->what == PTO_MEMORY_LIFE)
    {
      use->life = pto_writes_life (pto_level_writes (self->level), use->child);
      return TRUE;
    }
  if (use->size == 0
      && (use->what == PTO_MEMORY_COPY_TO || use->what == PTO_MEMORY_COPY_FROM
          || use->what == PTO_MEMORY_COPY))
    return TRUE;
  if (!check_use (self, use, &memory, error))
    return FALSE;
  switch (use->what)
    {
    case PTO_MEMORY_FREE:
      remove_memory (self, memory.begin);
      if (use->is_in_run)
        g_array_append_val (self->leaving, memory);
      else
        give_back (self, memory.child, memory.life, memory.begin, memory.bytes);
      return TRUE;
    case PTO_MEMORY_RELEASE:
      remove_memory (self, memory.begin);
      use->size = memory.bytes;
      use->give = pto_remote_range_release;
      return TRUE;
    case PTO_MEMORY_CHECK:
      return check_there (self, &memory, use, error);
    case PTO_MEMORY_COPY:
      return copy_to_other (self, &memory, use, error);
    default:
      return check_life (self, &memory, error) && copy (self, &memory, use, error);
    }
}
