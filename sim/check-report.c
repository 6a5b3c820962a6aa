/* check-report.c: what is wrong with what tasks touched, in words, and what is to be done about it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../pto/exec/text.h"
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Findings that are named; the others are counted. */
#define NAMED_MAX 8u
#define PAIRS_MAX 64u

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
};

/* A piece of memory. */
struct piece
{
  uint64_t lo;
  uint64_t hi;
};

struct finding
{
  struct pto_check *check;
  struct piece *known; /* ascending, apart from each other */
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

static void
say_arg (const struct pto_check_arg *arg, uint64_t lo, uint64_t hi, char *text, size_t size)
{
  uint32_t element = pto_dtype_size (arg->dtype);

  if (hi > arg->region.hi)
    hi = arg->region.hi;
  say_bytes (arg->region.lo, lo, hi, text, size);
  say (text, size, _ (" of its argument %u (%s, %s"), arg->index, type_name (arg),
       pto_dtype_name (arg->dtype));
  if (arg->region.n_dims == 0 && element > 0)
    say (text, size, _ (", from element %" PRIu64), (lo - arg->region.lo) / element);
  say (text, size, ")");
}

/* --- what one task did --- */

static int
compare_pieces (const void *a, const void *b)
{
  const struct piece *x = a;
  const struct piece *y = b;

  return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* All memory that the run knows: of every task's arguments, of its own, and of its rings. */
static bool
list_known (struct finding *finding, const struct pto_check_range *more, uint32_t n_more)
{
  const struct pto_check *check = finding->check;
  uint64_t n = 0;
  uint64_t most = PTO_RINGS + (uint64_t) n_more;
  struct piece *known;
  uint32_t kept = 0;

  for (uint32_t t = 0; t < check->n_tasks; t++)
    most += check->tasks[t].n_args;
  known = malloc (most * sizeof *known);
  if (known == NULL)
    return false;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    {
      uint64_t base = (uint64_t) (uintptr_t) check->engine->rings[r].heap.base;

      known[n++] = (struct piece){ base, base + check->engine->rings[r].heap.size };
    }
  for (uint32_t i = 0; i < n_more; i++)
    known[n++] = (struct piece){ more[i].lo, more[i].lo + more[i].n };
  for (uint32_t t = 0; t < check->n_tasks; t++)
    for (uint32_t a = 0; a < check->tasks[t].n_args; a++)
      {
        const struct pto_check_arg *arg = &check->tasks[t].args[a];

        known[n++] = (struct piece){ arg->buffer, arg->buffer + arg->bytes };
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

/* Of the piece from lo to hi, what the run knows first. false: nothing. */
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

/* Of whose memory is it, though not of whose view? */
static const struct pto_check_arg *
find_buffer (const struct pto_check_task *task, uint64_t address)
{
  for (uint32_t a = 0; a < task->n_args; a++)
    if (address - task->args[a].buffer < task->args[a].bytes)
      return &task->args[a];
  return NULL;
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

static void
add_lie (struct finding *finding, uint32_t number, enum kind kind, bool writes,
         const struct pto_check_arg *arg, const struct pto_check_range *range)
{
  for (uint32_t i = finding->n_lies; i-- > 0 && finding->lies[i].task == number;)
    {
      struct lie *lie = &finding->lies[i];

      if (lie->kind != kind || lie->writes != writes || lie->arg != arg)
        continue;
      if (lie->hi == range->lo)
        lie->hi += range->n;
      lie->bytes += range->n;
      return;
    }
  finding->n++;
  if (finding->n_lies < NAMED_MAX)
    finding->lies[finding->n_lies++]
        = (struct lie){ number, kind, writes, arg, range->lo, range->lo + range->n, range->n };
}

static void
look_at_range (struct finding *finding, uint32_t number, const struct pto_check_part *part,
               struct pto_check_range *range)
{
  const struct pto_check_task *task = &finding->check->tasks[number];
  bool writes = (range->what & PTO_CHECK_WRITTEN) != 0;

  if ((range->what & PTO_CHECK_WRONG) != 0)
    add_lie (finding, number, KIND_WRONG, true,
             pto_check_find_arg (task, range->lo, TYPE_BIT (PTO_PARAM_INPUT)), range);
  /* Parts of one task see what others of it have written. */
  if ((range->what & PTO_CHECK_EARLY) != 0
      && (task->n_parts == 1 || !was_written_by_others (task, part, range)))
    add_lie (
        finding, number, KIND_EARLY, false,
        pto_check_find_arg (task, range->lo,
                            TYPE_BIT (PTO_PARAM_OUTPUT) | TYPE_BIT (PTO_PARAM_OUTPUT_EXISTING)),
        range);
  if ((range->what & PTO_CHECK_OUTSIDE) != 0)
    {
      uint64_t lo = range->lo;
      uint64_t hi = range->lo + range->n;
      bool known = find_known (finding, &lo, &hi);

      /* What nobody knows is nobody's business from here on. */
      range->n = 0;
      if (known)
        {
          range->lo = lo;
          range->n = (uint32_t) (hi - lo);
          add_lie (finding, number, KIND_OUTSIDE, writes, find_buffer (task, lo), range);
        }
    }
}

static void
say_lie (const struct finding *finding, const struct lie *lie, char *text, size_t size)
{
  say_task (finding->check, lie->task, text, size);
  switch (lie->kind)
    {
    case KIND_WRONG:
      say (text, size, _ (" wrote to "));
      say_arg (lie->arg, lie->lo, lie->hi, text, size);
      break;
    case KIND_EARLY:
      say (text, size, _ (" read "));
      say_arg (lie->arg, lie->lo, lie->hi, text, size);
      say (text, size, _ (" before it had written there"));
      break;
    case KIND_OUTSIDE:
    default:
      say (text, size, lie->writes ? _ (" wrote to ") : _ (" read "));
      if (lie->arg != NULL)
        {
          const struct pto_check_arg *arg = lie->arg;

          say_bytes (arg->buffer, lie->lo, lie->hi, text, size);
          say (text, size, _ (" of the memory of its argument %u (%s)"), arg->index,
               type_name (arg));
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
      say (text, size, _ (": give it as INOUT, or as OUTPUT_EXISTING if it is not read"));
      break;
    case KIND_EARLY:
      say (text, size, _ (": give it as INOUT, or write it first"));
      break;
    case KIND_OUTSIDE:
    default:
      say (text, size, _ (": give the task a view that has them, or mend the kernel"));
      break;
    }
}

/* --- two tasks --- */

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

  if (arg != NULL)
    return false;
  arg = pto_check_find_arg (task, address, ANY_TYPE);
  say (text, size, "%s", before);
  if (arg != NULL)
    say (text, size, _ ("give argument %u of task %u as %s"), arg->index, PTO_TASK_LOCAL (task->id),
         writes ? _ ("INOUT (OUTPUT_EXISTING if it is not read)") : "INPUT");
  else
    say (text, size, _ ("give task %u these bytes as an %s"), PTO_TASK_LOCAL (task->id),
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
    say_arg (arg, pair->lo, pair->hi, text, size);
  else
    say (text, size, _ ("%" PRIu64 " bytes at 0x%" PRIx64 ", no argument of its"),
         pair->hi - pair->lo, pair->lo);
}

static void
say_pair (const struct pto_check *check, const struct pto_check_pair *pair, char *text, size_t size)
{
  const struct pto_check_task *first = &check->tasks[pair->first];
  const struct pto_check_task *second = &check->tasks[pair->second];
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
      say (text, size, _ (": name task %u among those that task %u comes after"),
           PTO_TASK_LOCAL (first->id), PTO_TASK_LOCAL (second->id));
      return;
    }
  if (first->is_linked || second->is_linked)
    {
      say (text, size, _ (": add task %u as a successor of task %u to the graph"),
           PTO_TASK_LOCAL (second->id), PTO_TASK_LOCAL (first->id));
      return;
    }
  said = say_remedy (check, pair->first, pair->first_writes, pair->lo, ": ", text, size);
  if (say_remedy (check, pair->second, pair->second_writes, pair->lo, said ? _ (", and ") : ": ",
                  text, size)
      || said)
    return;
  say (text, size,
       _ (": set hazards to raw,waw,war, or name task %u among those that task %u comes after"),
       PTO_TASK_LOCAL (first->id), PTO_TASK_LOCAL (second->id));
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
  struct pto_report own = { .status = PTO_OK };
  uint64_t n_pairs = 0;
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
          if (part->ranges[r].what > PTO_CHECK_WRITTEN)
            look_at_range (&finding, t, part, &part->ranges[r]);
    }
  free (finding.known);
  complete = pto_check_find_pairs (check, pairs, PAIRS_MAX, &n_pairs) && complete && !check->lost
             && check->n_unseen == 0;
  n = finding.n + n_pairs;
  /* A run that has failed has its own error, of which these may be the cause. */
  if (n > 0 && status != PTO_OK)
    report->status = status;
  for (uint32_t i = 0; i < finding.n_lies; i++)
    {
      line[0] = '\0';
      say_lie (&finding, &finding.lies[i], line, sizeof line);
      say_line (report, &status, line);
    }
  for (uint32_t i = 0; i < n_pairs && i < PAIRS_MAX && i < NAMED_MAX; i++)
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

void
pto_check_describe_writer (struct pto_check *check, uint64_t address, char *text, size_t size)
{
  uint32_t number = pto_check_last_writer (check, address);
  const struct pto_check_arg *arg;

  text[0] = '\0';
  if (number == PTO_CHECK_NONE)
    return;
  say_task (check, number, text, size);
  arg = pto_check_find_arg (&check->tasks[number], address, ANY_TYPE);
  if (arg != NULL)
    {
      say (text, size, _ (" as "));
      say_arg (arg, address, address + 1, text, size);
    }
}
