/* added.c: which tasks were added by hand, and can not run yet?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "added.h"

#include "../exec/pto_atomic.h"
#include "../exec/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "task 3 (add), added at x.c:12" */
void
pto_added_name (const struct pto_engine *engine, uint32_t ring, const struct pto_added *added,
                char *text, size_t size)
{
  const struct pto_slot *slot = pto_ring_slot (&engine->rings[ring], added->local);
  const char *slash = added->file != NULL ? strrchr (added->file, '/') : NULL;
  size_t used = (size_t) snprintf (text, size, _ ("task %" PRIu64), added->number);

  /* A task that is written down has no slot. */
  if (engine->capture == NULL && used < size)
    used += (size_t) snprintf (text + used, size - used, " (%s)",
                               pto_engine_kernel_name (engine, slot->kernel));
  if (added->file != NULL && used < size)
    snprintf (text + used, size - used, _ (", added at %s:%" PRIi32 ","),
              slash != NULL ? slash + 1 : added->file, added->line);
}

/* Of its ring the first that is not before that position. */
uint32_t
pto_added_first (const struct pto_build *build, uint32_t ring, uint32_t local)
{
  uint32_t from = 0;
  uint32_t to = build->n[ring];

  while (from < to)
    {
      uint32_t middle = from + (to - from) / 2;

      if ((int32_t) (build->items[ring][middle].local - local) < 0)
        from = middle + 1;
      else
        to = middle;
    }
  return from;
}

/* NULL: it was not added, or the scope that it was added in has ended. */
struct pto_added *
pto_added_find (struct pto_build *build, pto_task_id task)
{
  uint32_t ring = PTO_TASK_RING (task);
  uint32_t i;

  if (ring >= PTO_RINGS)
    return NULL;
  i = pto_added_first (build, ring, PTO_TASK_LOCAL (task));
  return i < build->n[ring] && build->items[ring][i].local == PTO_TASK_LOCAL (task)
             ? &build->items[ring][i]
             : NULL;
}

bool
pto_added_is_held (struct pto_engine *engine, pto_task_id task)
{
  const struct pto_added *added = pto_added_find (&engine->build, task);

  return added != NULL && (engine->config.build_first || !added->published);
}

/* Room for one more in that ring. */
static bool
reserve (struct pto_build *build, uint32_t ring)
{
  uint32_t max = build->max[ring];
  struct pto_added *items;

  if (build->n[ring] < max)
    return true;
  max = max > 0 ? 2 * max : 256;
  items = realloc (build->items[ring], max * sizeof *items);
  if (items == NULL)
    return false;
  build->items[ring] = items;
  build->max[ring] = max;
  return true;
}

void
pto_added_begin (struct pto_engine *engine)
{
  struct pto_build *build = &engine->build;
  uint32_t ring = pto_engine_ring_of_depth (engine->depth - 1);
  struct pto_added *added;

  if (!pto_engine_has_failed (engine) && !reserve (build, ring))
    pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, _ ("no memory for a graph of %" PRIu64 " tasks"),
                     engine->submitted);
  /* Nothing that it accesses is looked up. */
  if (!pto_engine_has_failed (engine) && engine->sets != NULL)
    engine->reducer->settle (engine, NULL);
  /* The submit still counts what the run would have needed. */
  if (pto_engine_has_failed (engine))
    return;
  added = &build->items[ring][build->n[ring]];
  *added = (struct pto_added){ .number = engine->submitted, .local = engine->rings[ring].head };
  if (engine->runtime != NULL && engine->runtime->line > 0)
    {
      added->file = engine->runtime->file;
      added->line = engine->runtime->line;
    }
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    added->heads[r] = engine->rings[r].head;
  build->tracked = engine->tracked;
  engine->tracked = 0;
  engine->by_hand = true;
  engine->adding = true;
}

void
pto_added_end (struct pto_engine *engine)
{
  struct pto_build *build = &engine->build;
  uint32_t ring = pto_engine_ring_of_depth (engine->depth - 1);

  if (!engine->adding)
    return;
  engine->adding = false;
  engine->tracked = build->tracked;
  if (engine->rings[ring].head == build->items[ring][build->n[ring]].local)
    return;
  build->n[ring]++;
  build->n_unpublished++;
}

/* The first that is not published, or, with build_first, that has not been let go. */
static const struct pto_added *
find_waiting (const struct pto_engine *engine, uint32_t *ring)
{
  const struct pto_build *build = &engine->build;

  if (!engine->config.build_first && build->n_unpublished == 0)
    return NULL;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    for (uint32_t i = 0; i < build->n[r]; i++)
      if (engine->config.build_first || !build->items[r][i].published)
        {
          *ring = r;
          return &build->items[r][i];
        }
  return NULL;
}

/* Nobody else looks at these lists: what is blocked is not completed, and only the submitter adds
 * to them. */
uint64_t
pto_added_count_blocked (struct pto_engine *engine)
{
  const struct pto_build *build = &engine->build;
  uint64_t number = ++engine->serial;
  uint32_t unused;
  struct pto_slot **slots;
  uint64_t live = 0;
  uint64_t n = 0;

  if (find_waiting (engine, &unused) == NULL)
    return 0;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    live += engine->rings[r].head - engine->tails[r];
  slots = malloc ((size_t) live * sizeof *slots);
  if (slots == NULL)
    return 0;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    for (uint32_t i = 0; i < build->n[r]; i++)
      if (engine->config.build_first || !build->items[r][i].published)
        {
          slots[n] = pto_ring_slot (&engine->rings[r], build->items[r][i].local);
          slots[n++]->mark = number;
        }
  for (uint64_t i = 0; i < n; i++)
    {
      /* Relaxed: written by this thread. */
      uint32_t ref = pto_load_relaxed (&slots[i]->fanout);

      while (ref != 0)
        {
          const struct pto_edge *edge = pto_engine_edge (engine, ref);
          struct pto_slot *consumer = pto_engine_slot (engine, edge->consumer);

          if ((edge->flags & PTO_EDGE_WAIT) != 0 && consumer->mark != number)
            {
              consumer->mark = number;
              slots[n++] = consumer;
            }
          ref = edge->next;
        }
    }
  free (slots);
  return n;
}

void
pto_added_describe (const struct pto_engine *engine, char *text, size_t size)
{
  uint32_t ring;
  const struct pto_added *added = find_waiting (engine, &ring);
  char task[300];

  text[0] = '\0';
  if (added == NULL)
    return;
  pto_added_name (engine, ring, added, task, sizeof task);
  snprintf (text, size, "%s %s", task,
            added->published ? _ ("does not run before its scope ends (build-mode is 0)")
                             : _ ("is not published"));
}

bool
pto_added_refuse_wait (struct pto_engine *engine)
{
  char place[256];
  char what[400];

  pto_added_describe (engine, what, sizeof what);
  if (what[0] == '\0')
    return false;
  pto_engine_describe_place (engine, place, sizeof place);
  pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS,
                   _ ("an element is asked for%s, which waits for all tasks, but %s"), place, what);
  return true;
}
