/* build.c: which tasks are there that may not run yet, and what do they come after?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "build.h"

#include "../exec/pto_atomic.h"
#include "capture.h"
#include "direct.h"
#include "room.h"
#include "submit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "task 3 (add), added at x.c:12" */
static void
describe (const struct pto_engine *engine, uint32_t ring, const struct pto_added *added, char *text,
          size_t size)
{
  const struct pto_slot *slot = pto_ring_slot (&engine->rings[ring], added->local);
  const char *slash = added->file != NULL ? strrchr (added->file, '/') : NULL;
  size_t used = (size_t) snprintf (text, size, "task %" PRIu64, added->number);

  /* A task that is written down has no slot. */
  if (engine->capture == NULL && used < size)
    used += (size_t) snprintf (text + used, size - used, " (%s)",
                               pto_engine_kernel_name (engine, slot->kernel));
  if (added->file != NULL && used < size)
    snprintf (text + used, size - used, ", added at %s:%" PRIi32 ",",
              slash != NULL ? slash + 1 : added->file, added->line);
}

/* Of its ring the first that is not before that position. */
static uint32_t
find_first (const struct pto_build *build, uint32_t ring, uint32_t local)
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
static struct pto_added *
find (struct pto_build *build, pto_task_id task)
{
  uint32_t ring = PTO_TASK_RING (task);
  uint32_t i;

  if (ring >= PTO_RINGS)
    return NULL;
  i = find_first (build, ring, PTO_TASK_LOCAL (task));
  return i < build->n[ring] && build->items[ring][i].local == PTO_TASK_LOCAL (task)
             ? &build->items[ring][i]
             : NULL;
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
pto_build_begin_task (struct pto_engine *engine)
{
  struct pto_build *build = &engine->build;
  uint32_t ring = pto_engine_ring_of_depth (engine->depth - 1);
  struct pto_added *added;

  if (!pto_engine_has_failed (engine) && !reserve (build, ring))
    pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, "no memory for a graph of %" PRIu64 " tasks",
                     engine->submitted);
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
pto_build_end_task (struct pto_engine *engine)
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

/* What is wrong with it; NULL: nothing. */
static const char *
judge_successor (const struct pto_engine *engine, pto_task_id producer,
                 const struct pto_added *consumer)
{
  uint32_t ring = PTO_TASK_RING (producer);

  if (consumer == NULL)
    return "the successor is no task that was added in a scope that is still open: name it by what "
           "pto2_rt_add_task() gave";
  if (consumer->published)
    return "the successor is published already, and may run: name all that it comes after before";
  if (ring >= PTO_RINGS || (int32_t) (PTO_TASK_LOCAL (producer) - engine->rings[ring].head) >= 0)
    return "the predecessor is no task of this run: name it by what its submit gave";
  if ((int32_t) (PTO_TASK_LOCAL (producer) - consumer->heads[ring]) >= 0)
    return "the predecessor was added behind its successor, or is the same: add tasks in an order "
           "in which each is behind all that it comes after";
  return NULL;
}

bool
pto_build_add_successor (struct pto_engine *engine, pto_task_id producer, pto_task_id consumer)
{
  struct pto_added *added;
  struct pto_slot *slot;
  const char *why;

  if (pto_engine_has_failed (engine))
    return false;
  added = find (&engine->build, consumer);
  why = judge_successor (engine, producer, added);
  if (why != NULL)
    {
      char place[256];

      pto_engine_describe_place (engine, place, sizeof place);
      pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS,
                       "task 0x%" PRIx64 " as the successor of task 0x%" PRIx64 "%s: %s", consumer,
                       producer, place, why);
      return false;
    }
  if (engine->capture != NULL)
    {
      pto_capture_order (engine->capture, producer, consumer);
      return true;
    }
  if (!pto_engine_make_edge_room (engine, PTO_TASK_RING (consumer)))
    return false;
  slot = pto_ring_slot (&engine->rings[PTO_TASK_RING (consumer)], PTO_TASK_LOCAL (consumer));
  /* Making room may have retired it. */
  if (pto_task_is_retired (engine->tails, producer))
    {
      if (pto_task_set_has (&engine->failed, producer))
        pto_store_relaxed (&slot->poison, producer);
      return false;
    }
  return pto_engine_link_more (engine, slot, producer);
}

static void
let_go (struct pto_engine *engine, uint32_t ring, const struct pto_added *added)
{
  /* One that is written down is in the graph already. */
  if (engine->capture != NULL)
    return;
  if (engine->trace != NULL)
    engine->stamp = pto_engine_stamp_own (engine);
  pto_engine_let_go (engine, pto_ring_slot (&engine->rings[ring], added->local), 1, 0, false);
}

bool
pto_build_publish (struct pto_engine *engine, pto_task_id task)
{
  struct pto_added *added;

  if (pto_engine_has_failed (engine))
    return false;
  added = find (&engine->build, task);
  if (added == NULL || added->published)
    {
      char place[256];

      pto_engine_describe_place (engine, place, sizeof place);
      pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS, "task 0x%" PRIx64 " to be published%s: %s",
                       task, place,
                       added != NULL ? "it is published already"
                                     : "it is no task that was added in a scope that is still "
                                       "open: name it by what pto2_rt_add_task() gave");
      return false;
    }
  added->published = true;
  engine->build.n_unpublished--;
  if (!engine->config.build_first)
    let_go (engine, PTO_TASK_RING (task), added);
  return true;
}

void
pto_build_end_scope (struct pto_engine *engine, uint32_t ring, uint32_t first)
{
  struct pto_build *build = &engine->build;
  uint32_t from = find_first (build, ring, first);

  for (uint32_t i = from; i < build->n[ring]; i++)
    {
      struct pto_added *added = &build->items[ring][i];

      if (!added->published)
        {
          char text[300];

          describe (engine, ring, added, text, sizeof text);
          pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS,
                           "%s is not published when its scope ends: without "
                           "pto2_rt_publish_task() it would never run",
                           text);
          added->published = true;
          build->n_unpublished--;
        }
      /* In order, also in a run that has failed: it ends when all are over. */
      else if (!engine->config.build_first)
        continue;
      let_go (engine, ring, added);
    }
  build->n[ring] = from;
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

void
pto_build_describe (const struct pto_engine *engine, char *text, size_t size)
{
  uint32_t ring;
  const struct pto_added *added = find_waiting (engine, &ring);
  char task[300];

  text[0] = '\0';
  if (added == NULL)
    return;
  describe (engine, ring, added, task, sizeof task);
  snprintf (text, size, "%s %s", task,
            added->published ? "does not run before its scope ends (build-mode is 0)"
                             : "is not published");
}

bool
pto_build_refuse_wait (struct pto_engine *engine)
{
  char place[256];
  char what[400];

  pto_build_describe (engine, what, sizeof what);
  if (what[0] == '\0')
    return false;
  pto_engine_describe_place (engine, place, sizeof place);
  pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS,
                   "an element is asked for%s, which waits for all tasks, but %s", place, what);
  return true;
}

void
pto_build_clear (struct pto_build *build)
{
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    free (build->items[r]);
  memset (build, 0, sizeof *build);
}
