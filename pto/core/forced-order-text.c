/* forced-order-text.c: what does a text say of the order in which tasks run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "forced-order-text.h"

#include "exec/translate.h"
#include "bits.h"

#include <inttypes.h>
#include <string.h>

/* So much of an item is quoted. */
#define QUOTED_MAX 60

struct item
{
  const char *at;
  size_t length;
};

/* A text that is read. */
struct reading
{
  struct pto_schedule *schedule;
  uint32_t capacity; /* of its delays */
  struct item text;  /* all of it */
  const char *as;
  struct pto_report *report;
};

static enum pto_status
refuse (const struct reading *reading, const struct item *item, const char *why)
{
  bool long_one = item->length > QUOTED_MAX;

  return pto_report_set (reading->report, PTO_STATUS_INVALID_ARGS, "%s: \"%.*s%s\": %s",
                         reading->as, (int) (long_one ? QUOTED_MAX : item->length), item->at,
                         long_one ? "..." : "", why);
}

uint32_t
pto_hazard_named (const char *text, size_t length)
{
  static const char names[][4] = { "raw", "waw", "war" };
  static const uint32_t hazards[] = { PTO_HAZARD_RAW, PTO_HAZARD_WAW, PTO_HAZARD_WAR };

  for (uint32_t i = 0; i < 3 && length == 3; i++)
    if (memcmp (text, names[i], length) == 0)
      return hazards[i];
  return 0;
}

static bool
is_word (const struct item *item, const char *word)
{
  return item->length == strlen (word) && memcmp (item->at, word, item->length) == 0;
}

/* Takes the word from the item's begin. */
static bool
skip (struct item *item, const char *word)
{
  size_t length = strlen (word);

  if (item->length < length || memcmp (item->at, word, length) != 0)
    return false;
  item->at += length;
  item->length -= length;
  return true;
}

/* Takes a number of digits from the item's begin. */
static bool
read_number (struct item *item, uint64_t max, uint64_t *value)
{
  size_t n = 0;

  *value = 0;
  for (; n < item->length && item->at[n] >= '0' && item->at[n] <= '9'; n++)
    {
      uint64_t digit = (uint64_t) (item->at[n] - '0');

      if (digit > max || *value > (max - digit) / 10)
        return false;
      *value = *value * 10 + digit;
    }
  item->at += n;
  item->length -= n;
  return n > 0;
}

/* "1:7" */
static bool
read_task (struct item *item, pto_task_id *task)
{
  uint64_t ring;
  uint64_t local;

  if (!read_number (item, PTO_RINGS - 1, &ring) || !skip (item, ":")
      || !read_number (item, UINT32_MAX, &local))
    return false;
  *task = PTO_TASK_ID (ring, local);
  return true;
}

static bool
add_delay (struct reading *reading, struct pto_delay delay)
{
  struct pto_schedule *schedule = reading->schedule;

  if (!pto_array_has_room (schedule->delays, schedule->n_delays, reading->capacity))
    return false;
  schedule->delays[schedule->n_delays++] = delay;
  return true;
}

/* An item that begins with a digit. */
static enum pto_status
read_delay (struct reading *reading, const struct item *item)
{
  struct pto_delay delay = { .until = PTO_TASK_NONE };
  struct item rest = *item;

  if (!read_task (&rest, &delay.task))
    return refuse (reading, item,
                   _ ("a task is RING:POSITION, such as 1:7, with rings from 0 to 3 and positions "
                      "below 2^32"));
  if (skip (&rest, "-after-"))
    {
      if (!read_task (&rest, &delay.until) || rest.length > 0)
        return refuse (reading, item,
                       _ ("behind -after- one task wanted: RING:POSITION, such as 1:7, with rings "
                          "from 0 to 3 and positions below 2^32"));
      if (delay.until == delay.task)
        return refuse (reading, item, _ ("a task can not wait for itself"));
    }
  else if (!is_word (&rest, "-last"))
    return refuse (reading, item, _ ("behind the task -after-TASK or -last wanted"));
  if (!add_delay (reading, delay))
    return pto_report_set (reading->report, PTO_STATUS_NO_MEMORY, _ ("no memory for a schedule"));
  return PTO_OK;
}

static enum pto_status
read_without (struct reading *reading, const struct item *item, const struct item *name)
{
  uint32_t hazard = pto_hazard_named (name->at, name->length);

  if (hazard == 0)
    return refuse (reading, item, _ ("without-raw, without-waw or without-war wanted"));
  reading->schedule->without |= hazard;
  return PTO_OK;
}

static int
compare (const void *a, const void *b)
{
  const struct pto_delay *x = a;
  const struct pto_delay *y = b;

  if (x->task != y->task)
    return x->task < y->task ? -1 : 1;
  return x->until < y->until ? -1 : x->until > y->until;
}

static enum pto_status
read_item (struct reading *reading, const struct item *item, bool *in_order)
{
  struct pto_schedule *schedule = reading->schedule;
  struct item rest = *item;

  if (is_word (item, "in-order"))
    {
      *in_order = true;
      return PTO_OK;
    }
  if (skip (&rest, "random-"))
    {
      if (schedule->random)
        return refuse (reading, item, _ ("one seed, not two"));
      schedule->random = true;
      if (!read_number (&rest, UINT64_MAX, &schedule->seed) || rest.length > 0)
        return refuse (reading, item, _ ("random-SEED wanted, with a number below 2^64"));
      return PTO_OK;
    }
  if (skip (&rest, "without-"))
    return read_without (reading, item, &rest);
  if (item->length > 0 && item->at[0] >= '0' && item->at[0] <= '9')
    return read_delay (reading, item);
  if (item->length == 0 && reading->text.length > 0)
    return refuse (reading, &reading->text, _ ("nothing stands at one side of a comma"));
  return refuse (reading, item,
                 _ ("wanted, apart by commas: TASK-after-TASK or TASK-last (tasks as 1:7: ring and "
                    "position), without-raw, -waw or -war, random-SEED, in-order"));
}

enum pto_status
pto_schedule_parse (struct pto_schedule *schedule, const char *text, const char *as,
                    struct pto_report *report)
{
  struct reading reading
      = { .schedule = schedule, .text = { text, strlen (text) }, .as = as, .report = report };
  enum pto_status status = PTO_OK;
  bool in_order = false;
  uint32_t n = 0;

  *schedule = (struct pto_schedule){ 0 };
  for (const char *at = text; at != NULL && status == PTO_OK; n++)
    {
      struct item item = { at, strcspn (at, ",") };

      at = at[item.length] == ',' ? at + item.length + 1 : NULL;
      status = read_item (&reading, &item, &in_order);
    }
  if (status == PTO_OK && schedule->random && schedule->n_delays > 0)
    status = pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                             _ ("%s: random-%" PRIu64 " and delays: one or the other"), as,
                             schedule->seed);
  else if (status == PTO_OK && in_order && n > 1)
    status = pto_report_set (report, PTO_STATUS_INVALID_ARGS,
                             _ ("%s: in-order stands alone, or is left out"), as);
  if (status != PTO_OK)
    pto_schedule_clear (schedule);
  else if (schedule->n_delays > 1)
    qsort (schedule->delays, schedule->n_delays, sizeof *schedule->delays, compare);
  return status;
}

void
pto_schedule_clear (struct pto_schedule *schedule)
{
  free (schedule->delays);
  *schedule = (struct pto_schedule){ 0 };
}

uint32_t
pto_schedule_find (const struct pto_schedule *schedule, pto_task_id task,
                   const struct pto_delay **delays)
{
  uint32_t low = pto_bisect (i, schedule->n_delays, schedule->delays[i].task < task);
  uint32_t n = 0;

  *delays = schedule->n_delays > 0 ? &schedule->delays[low] : NULL;
  while (low + n < schedule->n_delays && schedule->delays[low + n].task == task)
    n++;
  return n;
}
