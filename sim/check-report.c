/* check-report.c: what is wrong with what tasks touched, in words, and what is to be done about it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pto/exec/translate.h"
#include "ai-core.h"
#include "check.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Findings that are named; the others are counted. */
#define NAMED_MAX 8u
#define PAIRS_MAX 64u
#define CLASHES_MAX 16u

static const char *const type_names[]
    = { "INPUT",  "OUTPUT",      "INOUT",   "OUTPUT_EXISTING", "NO_DEP",
        "SCALAR", "COMMUTATIVE", "SCRATCH", "REDUCTION" };

#define TYPE_BIT(type) (1u << (type))
#define ANY_TYPE UINT32_MAX

enum kind
{
  KIND_WRONG,
  KIND_EARLY,
  KIND_OUTSIDE,
  KIND_STALE,
  KIND_MISSING,
  N_KINDS
};

/* What one task did that it must not, of one kind and to one argument. */
struct lie
{
  uint32_t task;
  enum kind kind;
  bool writes;
  const struct pto_check_arg *arg; /* whose view, or whose memory, it is; NULL: neither */
  uint64_t lo;                     /* the first piece */
  uint64_t hi;
  uint64_t bytes; /* of all pieces */
  const struct pto_check_part *part;
};

struct finding
{
  struct pto_check *check;
  struct pto_check_piece *known; /* ascending, apart from each other */
  uint32_t n_known;
  struct lie lies[NAMED_MAX];
  uint32_t n_lies;
  uint64_t n; /* with those that are not kept */
  char *text;
  size_t room;
};

static void say (char *text, size_t size, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

static void
say (char *text, size_t size, const char *format, ...)
{
  size_t used = strlen (text);
  va_list args;

  va_start (args, format);
  vsnprintf (text + used, size - used, format, args);
  va_end (args);
}

static const char *
type_name (const struct pto_check_arg *arg)
{
  return arg->type < sizeof type_names / sizeof type_names[0] ? type_names[arg->type] : "?";
}

static void
say_task (const struct pto_check *check, uint32_t number, char *text, size_t size)
{
  const struct pto_check_task *task = &check->tasks[number];
  uint32_t kernel = task->kernel & ~(PTO_KERNEL_IF | PTO_KERNEL_PARTS);
  const char *name = NULL;

  if (task->kernel != PTO_KERNEL_NONE && kernel < check->n_names)
    name = check->names[kernel];
  say (text, size, _ ("task %u of ring %u (%s)"), PTO_TASK_LOCAL (task->id),
       PTO_TASK_RING (task->id),
       name != NULL ? name : pto_engine_kernel_name (check->engine, task->kernel));
  if (task->file > 0)
    say (text, size, _ (", submitted at %s:%d,"), check->files.names[task->file - 1], task->line);
}

/* Bytes are told from where a view begins: addresses differ from run to run. */
static void
say_bytes (uint64_t from, uint64_t lo, uint64_t hi, char *text, size_t size)
{
  if (hi - lo == 1)
    say (text, size, _ ("byte %" PRIu64), lo - from);
  else
    say (text, size, _ ("bytes %" PRIu64 " to %" PRIu64), lo - from, hi - from - 1);
}

#define NAME_BYTES 96u

/* "3", or "1 of member 2" of a group, as that kernel counts its own. */
static const char *
name_index (const struct pto_check_arg *arg, char name[NAME_BYTES])
{
  if (arg->owner == 0)
    snprintf (name, NAME_BYTES, "%u", arg->index);
  else
    snprintf (name, NAME_BYTES, _ ("%u of member %u"), arg->index - arg->first, arg->owner - 1u);
  return name;
}

static void
say_arg (const struct pto_check_task *task, const struct pto_check_arg *arg, uint64_t lo,
         uint64_t hi, char *text, size_t size)
{
  uint32_t element = pto_dtype_size (arg->dtype);
  char index[NAME_BYTES];

  if (hi > arg->region.hi)
    hi = arg->region.hi;
  say_bytes (arg->region.lo, lo, hi, text, size);
  if (pto_check_is_condition (task, arg))
    say (text, size, _ (" of its condition (%s"), pto_dtype_name (arg->dtype));
  else
    say (text, size, _ (" of its argument %s (%s, %s"), name_index (arg, index), type_name (arg),
         pto_dtype_name (arg->dtype));
  if (arg->region.n_dims == 0 && element > 0)
    say (text, size, _ (", from element %" PRIu64), (lo - arg->region.lo) / element);
  say (text, size, ")");
}

/* Cannot it be told whether the task has written there? Memory of the program is not filled. */
static bool
is_hidden (const struct pto_check *check, const struct pto_check_task *task,
           const struct pto_check_arg *arg)
{
  return task->hides_stores && !pto_check_is_in_rings (check, arg);
}

/* --- what one task did --- */

static int
compare_pieces (const void *a, const void *b)
{
  const struct pto_check_piece *x = a;
  const struct pto_check_piece *y = b;

  return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* All memory that the run knows: of every task's arguments, of its own, and of its rings. */
static bool
list_known (struct finding *finding, const struct pto_check_range *more, uint32_t n_more)
{
  const struct pto_check *check = finding->check;
  uint64_t n = 0;
  uint64_t most = PTO_RINGS + (uint64_t) n_more;
  struct pto_check_piece *known;
  uint32_t kept = 0;

  for (uint32_t t = 0; t < check->n_tasks; t++)
    most += check->tasks[t].n_args;
  known = malloc (most * sizeof *known);
  if (known == NULL)
    return false;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      uint64_t base = (uint64_t) (uintptr_t) check->engine->rings[r].heap.base;

      known[n++] = (struct pto_check_piece){ base, base + check->engine->rings[r].heap.size };
    }
  for (uint32_t i = 0; i < n_more; i++)
    known[n++] = (struct pto_check_piece){ more[i].lo, more[i].lo + more[i].n };
  for (uint32_t t = 0; t < check->n_tasks; t++)
    for (uint32_t a = 0; a < check->tasks[t].n_args; a++)
      {
        const struct pto_check_arg *arg = &check->tasks[t].args[a];

        known[n++] = (struct pto_check_piece){ arg->buffer, arg->buffer + arg->bytes };
      }
  qsort (known, n, sizeof *known, compare_pieces);
  for (uint64_t i = 0; i < n; i++)
    if (kept > 0 && known[i].lo <= known[kept - 1].hi)
      known[kept - 1].hi = known[i].hi > known[kept - 1].hi ? known[i].hi : known[kept - 1].hi;
    else
      known[kept++] = known[i];
  finding->known = known;
  finding->n_known = kept;
  return true;
}

/* Finds the first part of the piece from lo to hi that the run knows. Returns false if there is
 * none. */
static bool
find_known (const struct finding *finding, uint64_t *lo, uint64_t *hi)
{
  uint32_t first = 0;
  uint32_t end = finding->n_known;

  /* The first that ends behind lo. */
  while (first < end)
    {
      uint32_t middle = first + (end - first) / 2;

      if (finding->known[middle].hi <= *lo)
        first = middle + 1;
      else
        end = middle;
    }
  if (first == finding->n_known || finding->known[first].lo >= *hi)
    return false;
  *lo = *lo > finding->known[first].lo ? *lo : finding->known[first].lo;
  *hi = *hi < finding->known[first].hi ? *hi : finding->known[first].hi;
  return true;
}

/* Finds the argument whose memory it is, though its view does not have it. */
static const struct pto_check_arg *
find_buffer (const struct pto_check_task *task, uint64_t address)
{
  for (uint32_t a = 0; a < task->n_args; a++)
    if (address - task->args[a].buffer < task->args[a].bytes
        && !pto_check_is_condition (task, &task->args[a]))
      return &task->args[a];
  return NULL;
}

/* Returns how many bytes are between a piece and the argument's view; UINT64_MAX: the view has its
 * first or its last byte. */
static uint64_t
get_distance (const struct pto_check_arg *arg, uint64_t lo, uint64_t hi)
{
  uint64_t first = pto_check_region_distance (&arg->region, lo);
  uint64_t last = pto_check_region_distance (&arg->region, hi - 1);
  uint64_t distance = first < last ? first : last;

  return distance > 0 ? distance - 1 : UINT64_MAX;
}

/* Finds the argument whose view is next to a piece. If two are as close, it is the one that such an
 * access may be meant for. NULL: none is near. */
static const struct pto_check_arg *
find_nearest (const struct pto_check_task *task, uint64_t lo, uint64_t hi, bool writes)
{
  uint32_t unfit = writes ? TYPE_BIT (PTO_PARAM_INPUT) : PTO_CHECK_OUTPUTS;
  uint64_t nearest = PTO_CHECK_NEAR_BYTES;
  const struct pto_check_arg *found = NULL;

  for (uint32_t a = 0; a < task->n_args; a++)
    {
      const struct pto_check_arg *arg = &task->args[a];
      uint64_t away = get_distance (arg, lo, hi);

      if (pto_check_is_condition (task, arg)
          || (away >= nearest
              && (found == NULL || away > nearest || (unfit >> found->type & 1) == 0)))
        continue;
      nearest = away;
      found = arg;
    }
  return found;
}

/* Both are in one loaded object, or in none. */
static bool
is_in_same_object (uint64_t a, uint64_t b)
{
  Dl_info of_a = { 0 };
  Dl_info of_b = { 0 };

  if (dladdr ((const void *) (uintptr_t) a, &of_a) == 0)
    of_a.dli_fbase = NULL;
  if (dladdr ((const void *) (uintptr_t) b, &of_b) == 0)
    of_b.dli_fbase = NULL;
  return of_a.dli_fbase == of_b.dli_fbase;
}

/* Leaves those bytes of a piece that are before another one, or if there are none, after it. */
static void
cut (struct pto_check_piece *piece, uint64_t lo, uint64_t hi)
{
  if (piece->lo >= hi || lo >= piece->hi)
    return;
  if (piece->lo < lo)
    piece->hi = lo;
  else
    piece->lo = hi < piece->hi ? hi : piece->hi;
}

/* Cuts unknown bytes down to those next to a view of the task that are no other memory of the
 * kernel. Returns false if there are none. */
static bool
find_near (const struct finding *finding, const struct pto_check_task *task, bool writes,
           uint64_t *lo, uint64_t *hi, const struct pto_check_arg **arg)
{
  const struct pto_check *check = finding->check;
  struct pto_check_piece piece = { *lo, *hi };

  *arg = find_nearest (task, *lo, *hi, writes);
  if (*arg == NULL)
    return false;
  for (uint32_t o = 0; o < check->n_owned; o++)
    cut (&piece, check->owned[o].lo, check->owned[o].hi);
  for (uint32_t i = 0; i < task->n_args; i++)
    cut (&piece, task->args[i].data, task->args[i].data + sizeof (TensorData));
  cut (&piece, task->words - PTO_CHIP_ARGS_HEAD * sizeof (int64_t),
       task->words + task->n_words * sizeof (int64_t));
  if (piece.lo >= piece.hi || !is_in_same_object (piece.lo, (*arg)->region.lo))
    return false;
  *lo = piece.lo;
  *hi = piece.hi;
  return true;
}

static bool
was_written_by_others (const struct pto_check_task *task, const struct pto_check_part *own,
                       const struct pto_check_range *range)
{
  for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
    for (uint32_t r = 0; part != own && r < part->n; r++)
      if ((part->ranges[r].what & PTO_CHECK_WRITTEN) != 0
          && part->ranges[r].lo < range->lo + range->n
          && range->lo < part->ranges[r].lo + part->ranges[r].n)
        return true;
  return false;
}

/* Finds the argument that bytes of known memory are meant for, if they are no bytes of its own
 * memory: they lie next to its view, and at the other end of the piece may be another array. Memory
 * of the rings is the runtime's, so near is enough. NULL: none. */
static const struct pto_check_arg *
find_overrun (const struct finding *finding, const struct pto_check_task *task, bool writes,
              uint64_t lo, uint64_t hi)
{
  const struct pto_check_arg *arg = find_nearest (task, lo, hi, writes);

  return arg != NULL
                 && (get_distance (arg, lo, hi) == 0 || pto_check_is_in_rings (finding->check, arg))
             ? arg
             : NULL;
}

/* The range goes on where the one before it ran past its argument, into the next one. */
static bool
continues_overrun (struct finding *finding, uint32_t number, const struct pto_check_part *part,
                   bool writes, const struct pto_check_range *range)
{
  struct lie *last = finding->n_lies > 0 ? &finding->lies[finding->n_lies - 1] : NULL;

  if (last == NULL || finding->n > finding->n_lies || last->task != number || last->part != part
      || last->kind != KIND_OUTSIDE || last->writes != writes || last->hi != range->lo
      || last->arg == NULL || last->lo < last->arg->region.hi)
    return false;
  last->hi += range->n;
  last->bytes += range->n;
  return true;
}

static void
add_lie (struct finding *finding, uint32_t number, enum kind kind, bool writes,
         const struct pto_check_arg *arg, const struct pto_check_part *part,
         const struct pto_check_range *range)
{
  for (uint32_t i = finding->n_lies; i-- > 0 && finding->lies[i].task == number;)
    {
      struct lie *lie = &finding->lies[i];

      if (lie->kind != kind || lie->writes != writes || lie->arg != arg)
        continue;
      if (lie->hi == range->lo)
        lie->hi += range->n;
      lie->bytes += range->n;
      lie->part = part;
      return;
    }
  finding->n++;
  if (finding->n_lies < NAMED_MAX)
    finding->lies[finding->n_lies++] = (struct lie){ number,   kind,      writes,
                                                     arg,      range->lo, range->lo + range->n,
                                                     range->n, part };
}

static void
look_at_range (struct finding *finding, uint32_t number, const struct pto_check_part *part,
               struct pto_check_range *range)
{
  const struct pto_check_task *task = &finding->check->tasks[number];
  bool writes = (range->what & PTO_CHECK_WRITTEN) != 0;
  const struct pto_check_arg *output = (range->what & PTO_CHECK_EARLY) != 0
                                           ? pto_check_find_arg (task, range->lo, PTO_CHECK_OUTPUTS)
                                           : NULL;

  if ((range->what & PTO_CHECK_WRONG) != 0
      && !continues_overrun (finding, number, part, true, range))
    add_lie (finding, number, KIND_WRONG, true,
             pto_check_find_arg (task, range->lo, TYPE_BIT (PTO_PARAM_INPUT)), part, range);
  /* Parts of one task see what others of it have written. */
  if (output != NULL && !is_hidden (finding->check, task, output)
      && (task->parts->next == NULL || !was_written_by_others (task, part, range))
      && !continues_overrun (finding, number, part, false, range))
    add_lie (finding, number, KIND_EARLY, false, output, part, range);
  if ((range->what & PTO_CHECK_STALE) != 0)
    add_lie (finding, number, KIND_STALE, false,
             pto_check_find_arg (task, range->lo, TYPE_BIT (PTO_PARAM_INPUT)), part, range);
  if ((range->what & PTO_CHECK_OUTSIDE) != 0)
    {
      uint64_t lo = range->lo;
      uint64_t hi = range->lo + range->n;
      const struct pto_check_arg *arg = NULL;
      bool known = find_known (finding, &lo, &hi);

      /* Memory that is not known is not checked any further. */
      if (!known && find_near (finding, task, writes, &lo, &hi, &arg))
        {
          const struct pto_check_range near = { .lo = lo, .n = (uint32_t) (hi - lo) };

          add_lie (finding, number, KIND_OUTSIDE, writes, arg, part, &near);
        }
      if (!known)
        range->n = 0;
      else
        {
          const struct pto_check_range all = *range;
          const struct pto_check_range *told = range;

          range->lo = lo;
          range->n = (uint32_t) (hi - lo);
          arg = all.lo == lo ? find_buffer (task, lo) : NULL;
          /* Another view of the task lies there. */
          if (arg != NULL && pto_check_find_arg (task, lo, ANY_TYPE) != NULL
              && find_nearest (task, lo, lo + 1, writes) != NULL)
            arg = find_nearest (task, lo, lo + 1, writes);
          if (arg == NULL)
            {
              arg = find_overrun (finding, task, writes, all.lo, all.lo + all.n);
              told = arg != NULL ? &all : range;
            }
          if (arg == NULL)
            arg = find_buffer (task, lo);
          add_lie (finding, number, KIND_OUTSIDE, writes, arg, part, told);
        }
    }
}

/* Bits of the 64 bytes from at on that other kernels of the task have told of writing. */
static uint64_t
find_told_by_others (const struct pto_check_task *task, const struct pto_check_part *own,
                     uint64_t at)
{
  uint64_t told = 0;

  for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
    for (uint32_t r = 0; (part->block != own->block || part->member != own->member) && r < part->n;
         r++)
      {
        uint64_t lo = part->ranges[r].lo > at ? part->ranges[r].lo - at : 0;
        uint64_t end = part->ranges[r].lo + part->ranges[r].n;
        uint64_t hi = end < at ? 0 : end - at < 64 ? end - at : 64;

        if ((part->ranges[r].what & PTO_CHECK_WRITTEN) != 0 && lo < hi)
          told |= UINT64_MAX >> (64 - (hi - lo)) << lo;
      }
  return told;
}

/* Other bytes of the piece that was read had changed. If they are what other kernels of the task
 * have told of writing, the kernel read too early. */
static void
look_at_doubt (struct finding *finding, uint32_t number, const struct pto_check_part *part,
               const struct pto_check_doubt *doubt)
{
  const struct pto_check_task *task = &finding->check->tasks[number];
  uint64_t changed = doubt->changed & ~find_told_by_others (task, part, doubt->at);

  for (uint32_t bit = 0; bit < 64; bit++)
    {
      struct pto_check_range range = { doubt->at + bit, 1, PTO_CHECK_EARLY };
      const struct pto_check_arg *arg = (doubt->read >> bit & 1) != 0
                                            ? pto_check_find_arg (task, range.lo, PTO_CHECK_OUTPUTS)
                                            : NULL;

      if (arg != NULL && (pto_check_spread (changed, arg->dtype) >> bit & 1) == 0)
        look_at_range (finding, number, part, &range);
    }
}

static void
say_lie (const struct finding *finding, const struct lie *lie, char *text, size_t size)
{
  char index[NAME_BYTES];

  say_task (finding->check, lie->task, text, size);
  switch (lie->kind)
    {
    case KIND_WRONG:
      say (text, size, _ (" wrote to "));
      say_arg (&finding->check->tasks[lie->task], lie->arg, lie->lo, lie->hi, text, size);
      break;
    case KIND_EARLY:
      say (text, size, _ (" read "));
      say_arg (&finding->check->tasks[lie->task], lie->arg, lie->lo, lie->hi, text, size);
      say (text, size, _ (" before it had written there"));
      break;
    case KIND_MISSING:
      say (text, size, _ (" has not written "));
      say_arg (&finding->check->tasks[lie->task], lie->arg, lie->lo, lie->hi, text, size);
      break;
    case KIND_STALE:
      say (text, size, _ (" read "));
      say_arg (&finding->check->tasks[lie->task], lie->arg, lie->lo, lie->hi, text, size);
      say (text, size, _ (" after it had written there as its argument %s"),
           name_index (
               pto_check_find_arg (&finding->check->tasks[lie->task], lie->lo, PTO_CHECK_OUTPUTS),
               index));
      break;
    case KIND_OUTSIDE:
    default:
      say (text, size, lie->writes ? _ (" wrote to ") : _ (" read "));
      if (lie->arg != NULL)
        {
          const struct pto_check_arg *arg = lie->arg;

          if (lie->lo < arg->buffer)
            say (text, size,
                 P_ ("%" PRIu64 " byte before the memory of its argument %s (%s)",
                     "%" PRIu64 " bytes before the memory of its argument %s (%s)",
                     arg->buffer - lie->lo),
                 arg->buffer - lie->lo, name_index (arg, index), type_name (arg));
          else
            {
              say_bytes (arg->buffer, lie->lo, lie->hi, text, size);
              say (text, size, _ (" of the memory of its argument %s (%s)"),
                   name_index (arg, index), type_name (arg));
            }
          if (arg->region.n_dims == 0)
            {
              say (text, size, _ (", whose view has only "));
              say_bytes (arg->buffer, arg->region.lo, arg->region.hi, text, size);
            }
          else
            say (text, size, _ (", not of its view"));
        }
      else
        say (text, size, _ ("%" PRIu64 " bytes at 0x%" PRIx64 ", which are no argument of its"),
             lie->bytes, lie->lo);
      break;
    }
  if (lie->arg != NULL && lie->bytes > lie->hi - lie->lo)
    say (text, size, _ (", %" PRIu64 " bytes in all"), lie->bytes);
  switch (lie->kind)
    {
    case KIND_WRONG:
      say (text, size,
           pto_check_is_condition (&finding->check->tasks[lie->task], lie->arg)
               ? _ (": give it as an argument as well, as INOUT")
               : _ (": give it as INOUT, or as OUTPUT_EXISTING if it is not read"));
      break;
    case KIND_EARLY:
      say (text, size,
           lie->arg->type == PTO_PARAM_SCRATCH ? _ (": write it first")
                                               : _ (": give it as INOUT, or write it first"));
      break;
    case KIND_STALE:
      say (text, size, _ (": give the bytes once, as INOUT, or write elsewhere"));
      break;
    case KIND_MISSING:
      say (text, size, _ (", though its kernel writes all (pto_writes_all())"));
      break;
    case KIND_OUTSIDE:
    default:
      say (text, size, _ (": give the task a view that has them, or mend the kernel"));
      break;
    }
}

/* --- two tasks --- */

/* Two tasks may have the same number in two rings. */
static const char *
name_task (const struct pto_check_task *task, char name[NAME_BYTES])
{
  snprintf (name, NAME_BYTES, _ ("task %u of ring %u"), PTO_TASK_LOCAL (task->id),
            PTO_TASK_RING (task->id));
  return name;
}

/* What a task of a pair would have to say of the bytes; false: it says it already. */
static bool
say_remedy (const struct pto_check *check, uint32_t number, bool writes, uint64_t address,
            const char *before, char *text, size_t size)
{
  const struct pto_check_task *task = &check->tasks[number];
  const struct pto_check_arg *arg
      = pto_check_find_arg (task, address,
                            writes ? ~(TYPE_BIT (PTO_PARAM_NO_DEP) | TYPE_BIT (PTO_PARAM_INPUT))
                                   : ~TYPE_BIT (PTO_PARAM_NO_DEP));
  char name[NAME_BYTES], index[NAME_BYTES];

  if (arg != NULL)
    return false;
  arg = pto_check_find_arg (task, address, ANY_TYPE);
  say (text, size, "%s", before);
  if (arg != NULL && !pto_check_is_condition (task, arg))
    say (text, size, _ ("give argument %s of %s as %s"), name_index (arg, index),
         name_task (task, name),
         writes ? _ ("INOUT (OUTPUT_EXISTING if it is not read)") : "INPUT");
  else
    say (text, size, _ ("give %s these bytes as an %s"), name_task (task, name),
         writes ? "INOUT" : "INPUT");
  return true;
}

static void
say_where (const struct pto_check *check, uint32_t number, const struct pto_check_pair *pair,
           char *text, size_t size)
{
  const struct pto_check_task *task = &check->tasks[number];
  const struct pto_check_arg *arg = pto_check_find_arg (task, pair->lo, ANY_TYPE);

  if (arg != NULL)
    say_arg (task, arg, pair->lo, pair->hi, text, size);
  else
    say (text, size, _ ("%" PRIu64 " bytes at 0x%" PRIx64 ", no argument of its"),
         pair->hi - pair->lo, pair->lo);
}

static void
say_pair (const struct pto_check *check, const struct pto_check_pair *pair, char *text, size_t size)
{
  const struct pto_check_task *first = &check->tasks[pair->first];
  const struct pto_check_task *second = &check->tasks[pair->second];
  char names[2][NAME_BYTES];
  bool said;

  say_task (check, pair->first, text, size);
  say (text, size, _ (" and "));
  say_task (check, pair->second, text, size);
  say (text, size,
       pair->first_writes ? _ (" are in no order and touch the same bytes: the first writes ")
                          : _ (" are in no order and touch the same bytes: the first reads "));
  say_where (check, pair->first, pair, text, size);
  say (text, size, pair->second_writes ? _ (", the second writes ") : _ (", the second reads "));
  say_where (check, pair->second, pair, text, size);
  if (first->by_hand || second->by_hand)
    {
      say (text, size, _ (": name %s among those that %s comes after"), name_task (first, names[0]),
           name_task (second, names[1]));
      return;
    }
  if (first->is_linked || second->is_linked)
    {
      say (text, size, _ (": add %s as a successor of %s to the graph"),
           name_task (second, names[1]), name_task (first, names[0]));
      return;
    }
  said = say_remedy (check, pair->first, pair->first_writes, pair->lo, ": ", text, size);
  if (say_remedy (check, pair->second, pair->second_writes, pair->lo, said ? _ (", and ") : ": ",
                  text, size)
      || said)
    return;
  say (text, size, _ (": set hazards to raw,waw,war, or name %s among those that %s comes after"),
       name_task (first, names[0]), name_task (second, names[1]));
}

/* --- two kernels of one task --- */

/* "block 3 of 8", and the kernel where there are several. */
static void
say_part (const struct pto_check *check, uint32_t number, const struct pto_check_part *part,
          char *text, size_t size)
{
  const struct pto_check_task *task = &check->tasks[number];

  say (text, size, _ ("block %u of %u"), part->block, task->n_blocks);
  if (task->has_kernels && part->kernel < check->n_names && check->names[part->kernel] != NULL)
    say (text, size, " (%s)", check->names[part->kernel]);
}

static void
say_access (const struct pto_check *check, const struct pto_check_clash *clash,
            const struct pto_check_part *part, bool writes, char *text, size_t size)
{
  const struct pto_check_pair bytes = { .lo = clash->lo, .hi = clash->hi };

  say_part (check, clash->task, part, text, size);
  say (text, size, writes ? _ (" writes ") : _ (" reads "));
  say_where (check, clash->task, &bytes, text, size);
}

static void
say_clash (const struct pto_check *check, const struct pto_check_clash *clash, char *text,
           size_t size)
{
  say_task (check, clash->task, text, size);
  say (text, size, _ (" has kernels that are in no order and touch the same bytes: "));
  say_access (check, clash, clash->first, clash->first_writes, text, size);
  say (text, size, ", ");
  say_part (check, clash->task, clash->second, text, size);
  say (text, size, clash->second_writes ? _ (" writes them") : _ (" reads them"));
  if (clash->more > 0)
    say (text, size, _ (", and so do others, %" PRIu64 " times in all"), clash->more + 1);
  if (clash->first_writes && clash->second_writes)
    say (text, size,
         check->tasks[clash->task].at_once
             ? _ (": give each element to one of them, add with an atomic operation, or let them "
                  "meet between the two (pto_sync_all())")
             : _ (": give each element to one of them, add with an atomic operation, or let them "
                  "meet between the two (pto_sync_all(), sync_start)"));
  else
    say (text, size,
         check->tasks[clash->task].at_once
             ? _ (": let them meet between the two (pto_sync_all())")
             : _ (": let them meet between the two (pto_sync_all(), sync_start)"));
}

/* --- what nobody has written --- */

static void
say_void (const struct pto_check *check, const struct pto_check_void *found, char *text,
          size_t size)
{
  const struct pto_check_pair bytes = { .lo = found->lo, .hi = found->hi };

  say_task (check, found->reader, text, size);
  say (text, size, _ (" read "));
  say_where (check, found->reader, &bytes, text, size);
  say (text, size, _ (", which no task has written: "));
  say_task (check, found->maker, text, size);
  say (text, size, _ (" has it as "));
  say_where (check, found->maker, &bytes, text, size);
  say (text, size, _ (": write all of it there, or read only what is written"));
}

/* Finds the first piece of an output that no kernel of the task has written. Returns false if all
 * is written. */
static bool
find_gap (const struct pto_check_task *task, uint64_t *lo, uint64_t *hi)
{
  bool has_moved = true;

  while (has_moved && *lo < *hi)
    {
      has_moved = false;
      for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
        for (uint32_t r = 0; r < part->n; r++)
          if ((part->ranges[r].what & PTO_CHECK_WRITTEN) != 0 && part->ranges[r].lo <= *lo
              && *lo < part->ranges[r].lo + part->ranges[r].n)
            {
              *lo = part->ranges[r].lo + part->ranges[r].n;
              has_moved = true;
            }
      for (uint32_t i = 0; i < task->n_found; i++)
        if (task->found[i].lo <= *lo && *lo < task->found[i].hi)
          {
            *lo = task->found[i].hi;
            has_moved = true;
          }
    }
  for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
    for (uint32_t r = 0; r < part->n; r++)
      if ((part->ranges[r].what & PTO_CHECK_WRITTEN) != 0 && part->ranges[r].lo > *lo
          && part->ranges[r].lo < *hi)
        *hi = part->ranges[r].lo;
  for (uint32_t i = 0; i < task->n_found; i++)
    if (task->found[i].lo > *lo && task->found[i].lo < *hi)
      *hi = task->found[i].lo;
  return *lo < *hi;
}

/* The task's kernels have said that they write all of its outputs. */
static void
look_at_outputs (struct finding *finding, uint32_t number)
{
  const struct pto_check_task *task = &finding->check->tasks[number];
  const struct pto_check_part *part = task->parts;

  while (part != NULL && !part->writes_all)
    part = part->next;
  for (uint32_t a = 0; part != NULL && a < task->n_args; a++)
    {
      const struct pto_check_arg *arg = &task->args[a];
      struct pto_check_pieces pieces;
      uint64_t lo;
      uint64_t hi;

      if ((arg->type != PTO_PARAM_OUTPUT && arg->type != PTO_PARAM_OUTPUT_EXISTING)
          || is_hidden (finding->check, task, arg))
        continue;
      pto_check_pieces_begin (&pieces, &arg->region);
      while (pto_check_pieces_next (&pieces, &lo, &hi))
        if (find_gap (task, &lo, &hi))
          {
            const struct pto_check_range range = { .lo = lo, .n = (uint32_t) (hi - lo) };

            add_lie (finding, number, KIND_MISSING, true, arg, NULL, &range);
            break;
          }
    }
}

/* --- all of it --- */

/* One line; the first is the error. */
static void
say_line (struct pto_report *report, enum pto_status *status, const char *line)
{
  size_t used = report->status != PTO_OK ? strlen (report->message) : 0;

  /* A whole line, or none, and room for what counts the others. */
  if (used > 0 && used + strlen (line) + 120 > sizeof report->message)
    return;
  if (report->status == PTO_OK)
    {
      *status = PTO_STATUS_ACCESS;
      pto_report_set (report, PTO_STATUS_ACCESS, "%s", line);
    }
  else
    pto_report_append (report, "\n%s", line);
}

static uint32_t
count_lines (const char *text)
{
  uint32_t n = 1;

  for (; *text != '\0'; text++)
    n += *text == '\n';
  return n;
}

enum pto_status
pto_check_report (struct pto_check *check, enum pto_status status,
                  const struct pto_check_range *known, uint32_t n_known, struct pto_report *report)
{
  struct finding finding = { .check = check };
  struct pto_check_pair pairs[PAIRS_MAX];
  struct pto_check_clash clashes[CLASHES_MAX];
  struct pto_report own = { .status = PTO_OK };
  struct pto_check_void voids[PAIRS_MAX];
  struct pto_check_orders orders = { .pairs = pairs, .voids = voids, .max = PAIRS_MAX };
  uint64_t n_clashes = 0;
  uint64_t n;
  bool complete;
  char line[1200];

  if (report == NULL)
    report = &own;
  pto_check_end_run (check);
  complete = list_known (&finding, known, n_known);
  for (uint32_t t = 0; t < check->n_tasks; t++)
    {
      const struct pto_check_task *task = &check->tasks[t];

      for (struct pto_check_part *part = task->parts; part != NULL; part = part->next)
        for (uint32_t r = 0; r < part->n; r++)
          if ((part->ranges[r].what & PTO_CHECK_UNUSUAL) != 0)
            look_at_range (&finding, t, part, &part->ranges[r]);
      for (const struct pto_check_part *part = task->parts; part != NULL; part = part->next)
        for (uint32_t d = 0; d < part->n_doubts; d++)
          look_at_doubt (&finding, t, part, &part->doubts[d]);
      look_at_outputs (&finding, t);
    }
  free (finding.known);
  complete = pto_check_find_waits (check) && complete;
  complete = pto_check_find_clashes (check, clashes, CLASHES_MAX, &n_clashes) && complete;
  complete
      = pto_check_find_orders (check, &orders) && complete && !check->lost && check->n_unseen == 0;
  n = finding.n + n_clashes + orders.n_voids + orders.n_pairs;
  /* A run that has failed has its own error, of which these may be the cause. */
  if (n > 0 && status != PTO_OK)
    report->status = status;
  for (uint32_t i = 0; i < finding.n_lies; i++)
    {
      line[0] = '\0';
      say_lie (&finding, &finding.lies[i], line, sizeof line);
      say_line (report, &status, line);
    }
  for (uint32_t i = 0; i < n_clashes && i < NAMED_MAX; i++)
    {
      line[0] = '\0';
      say_clash (check, &clashes[i], line, sizeof line);
      say_line (report, &status, line);
    }
  for (uint32_t i = 0; i < orders.n_voids && i < NAMED_MAX; i++)
    {
      line[0] = '\0';
      say_void (check, &voids[i], line, sizeof line);
      say_line (report, &status, line);
    }
  for (uint32_t i = 0; i < orders.n_pairs && i < NAMED_MAX; i++)
    {
      line[0] = '\0';
      say_pair (check, &pairs[i], line, sizeof line);
      say_line (report, &status, line);
    }
  if (n > 0)
    {
      uint32_t told = count_lines (report->message);

      if (told < n)
        pto_report_append (report, _ ("\nand %" PRIu64 " more"), n - told);
    }
  if (!complete && status == PTO_OK)
    {
      status = PTO_STATUS_NO_MEMORY;
      pto_report_set (report, PTO_STATUS_NO_MEMORY,
                      _ ("accesses were not checked to the end: there is room for %u tasks and for "
                         "1 GiB of what they touch: check a smaller case"),
                      PTO_CHECK_TASKS_MAX);
    }
  return status;
}

/* The argument by which the task may have written the byte without saying so. NULL: it has none. */
static const struct pto_check_arg *
find_hidden (const struct pto_check *check, const struct pto_check_task *task, uint64_t address)
{
  const struct pto_check_arg *arg = pto_check_find_arg (task, address, ~TYPE_BIT (PTO_PARAM_INPUT));

  return arg != NULL && is_hidden (check, task, arg) ? arg : NULL;
}

static bool
is_found (const struct pto_check_task *task, uint64_t address)
{
  for (uint32_t i = 0; i < task->n_found; i++)
    if (task->found[i].lo <= address && address < task->found[i].hi)
      return true;
  return false;
}

static void
say_writer (const struct pto_check *check, uint32_t number, uint64_t address, char *text,
            size_t size)
{
  const struct pto_check_task *task = &check->tasks[number];
  const struct pto_check_arg *arg = pto_check_find_arg (task, address, ANY_TYPE);

  say_task (check, number, text, size);
  if (arg == NULL)
    return;
  say (text, size, _ (" as "));
  say_arg (task, arg, address, address + 1, text, size);
}

void
pto_check_describe_writer (struct pto_check *check, uint64_t address, char *text, size_t size)
{
  uint32_t number = pto_check_last_writer (check, address);
  uint32_t hidden = PTO_CHECK_NONE;

  text[0] = '\0';
  for (uint32_t t = check->n_tasks; t-- > 0 && (number == PTO_CHECK_NONE || t > number);)
    {
      const struct pto_check_task *task = &check->tasks[t];

      if (is_found (task, address))
        number = t;
      else if (hidden == PTO_CHECK_NONE && find_hidden (check, task, address) != NULL)
        hidden = t;
      if (address - task->heap_lo < task->heap_hi - task->heap_lo)
        break;
    }
  if (number != PTO_CHECK_NONE)
    say_writer (check, number, address, text, size);
  if (hidden == PTO_CHECK_NONE)
    return;
  if (number != PTO_CHECK_NONE)
    say (text, size, "; ");
  say (text, size, _ ("perhaps by stores that are not seen of "));
  say_writer (check, hidden, address, text, size);
}
