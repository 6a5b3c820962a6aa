/* manual-build.c: which tasks are there that may not run yet, and what do they come after?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "manual-build.h"

#include "exec/translate.h"
#include "backpressure.h"
#include "deadlock-demand.h"
#include "graph-capture.h"
#include "manual-tasks.h"
#include "submit.h"

/* It was let go since there was no room, and may have run: what it comes after must be known. */
static __attribute__ ((cold)) void
refuse_late (struct pto_engine *engine, uint32_t ring, const struct pto_added *added)
{
  char place[256];
  char task[300];

  pto_engine_describe_call (engine, place, sizeof place);
  pto_added_name (engine, ring, added, task, sizeof task);
  pto_engine_fail (engine, (enum pto_status) added->short_of,
                   _ ("%s got another predecessor%s, but was let go before the end of its scope, "
                      "because the tasks after it left no room (build-mode is 0): name its "
                      "predecessors before those tasks, or %s"),
                   task, place, engine->build.room);
}

/* What is wrong with it; NULL: nothing. */
static const char *
judge_successor (const struct pto_engine *engine, pto_task_id producer,
                 const struct pto_added *consumer)
{
  uint32_t ring = PTO_TASK_RING (producer);

  if (consumer == NULL)
    return _ (
        "the successor is no task that was added in a scope that is still open: name it by what "
        "pto2_rt_add_task() gave");
  if (consumer->published)
    return _ (
        "the successor is published already, and may run: name all that it comes after before");
  if (ring >= PTO_RINGS || (int32_t) (PTO_TASK_LOCAL (producer) - engine->rings[ring].head) >= 0)
    return _ ("the predecessor is no task of this run: name it by what its submit gave");
  if ((int32_t) (PTO_TASK_LOCAL (producer) - consumer->heads[ring]) >= 0)
    return _ (
        "the predecessor was added behind its successor, or is the same: add tasks in an order "
        "in which each is behind all that it comes after");
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
  added = pto_added_find (&engine->build, consumer);
  why = judge_successor (engine, producer, added);
  if (why != NULL)
    {
      char place[256];

      pto_engine_describe_call (engine, place, sizeof place);
      return pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS,
                              _ ("task 0x%" PRIx64 " as the successor of task 0x%" PRIx64 "%s: %s"),
                              consumer, producer, place, why);
    }
  if (engine->capture != NULL)
    {
      pto_capture_order (engine->capture, producer, consumer);
      return true;
    }
  if (!pto_engine_make_edge_room (engine, PTO_TASK_RING (consumer)))
    return false;
  if (added->let_go)
    {
      refuse_late (engine, PTO_TASK_RING (consumer), added);
      return false;
    }
  slot = pto_ring_slot (&engine->rings[PTO_TASK_RING (consumer)], PTO_TASK_LOCAL (consumer));
  /* Making room may have retired it. */
  if (pto_task_is_retired (engine->tails, producer))
    {
      if (engine->witness != NULL)
        engine->witness->edge (engine->witness->data, consumer, producer);
      if (pto_task_set_has (&engine->failed, producer))
        pto_store_relaxed (&slot->poison, producer);
      return false;
    }
  return pto_engine_link_more (engine, slot, producer);
}

static void
let_go (struct pto_engine *engine, uint32_t ring, struct pto_added *added)
{
  struct pto_slot *slot = pto_ring_slot (&engine->rings[ring], added->local);

  if (added->let_go)
    return;
  added->let_go = true;
  engine->build.n_held--;
  /* One that is written down is in the graph already. */
  if (engine->capture != NULL)
    return;
  if (engine->trace != NULL)
    engine->stamp = pto_engine_stamp_own (engine);
  pto_engine_let_go (engine, slot, slot->queue, 1, 0, false);
}

void
pto_build_begin (struct pto_engine *engine)
{
  engine->build.let_go = let_go;
}

bool
pto_build_publish (struct pto_engine *engine, pto_task_id task)
{
  struct pto_added *added;

  if (pto_engine_has_failed (engine))
    {
      pto_engine_count_publish (engine);
      return false;
    }
  added = pto_added_find (&engine->build, task);
  if (added == NULL || added->published)
    {
      char place[256];

      pto_engine_describe_call (engine, place, sizeof place);
      return pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS,
                              _ ("task 0x%" PRIx64 " to be published%s: %s"), task, place,
                              added != NULL
                                  ? _ ("it is published already")
                                  : _ ("it is no task that was added in a scope that is still "
                                       "open: name it by what pto2_rt_add_task() gave"));
    }
  added->published = true;
  if (!engine->config.build_first)
    let_go (engine, PTO_TASK_RING (task), added);
  return true;
}

void
pto_build_end_scope (struct pto_engine *engine, uint32_t ring, uint32_t first)
{
  struct pto_build *build = &engine->build;
  uint32_t from = pto_added_first (build, ring, first);

  for (uint32_t i = from; i < build->n[ring]; i++)
    {
      struct pto_added *added = &build->items[ring][i];

      if (!added->published)
        {
          char text[300];

          pto_added_name (engine, ring, added, text, sizeof text);
          pto_engine_fail (engine, PTO_STATUS_INVALID_ARGS,
                           _ ("%s is not published when its scope ends: without "
                              "pto2_rt_publish_task() it would never run"),
                           text);
          added->published = true;
        }
      /* In order, also in a run that has failed: it ends when all are over. */
      let_go (engine, ring, added);
    }
  build->n[ring] = from;
}
