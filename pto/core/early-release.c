/* early-release.c: which tasks are let go before their scope ends?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "early-release.h"

#include "completion.h"
#include "deadlock.h"
#include "manual-tasks.h"

/* So many tasks are let go between two looks at whether the run is cancelled. */
#define ASK_EVERY 256u

/* Before its scope ends, for want of room. */
static void
let_go_early (struct pto_engine *engine, uint32_t ring, struct pto_added *added,
              enum pto_status what, uint32_t short_ring)
{
  added->short_of = (uint8_t) what;
  pto_engine_describe_knob (engine, what, short_ring, engine->build.room,
                            sizeof engine->build.room);
  engine->build.let_go (engine, ring, added);
}

void
pto_early_make_way (struct pto_engine *engine, uint32_t ring_index, enum pto_status what)
{
  const struct pto_slot *slot
      = pto_ring_slot (&engine->rings[ring_index], engine->tails[ring_index]);
  struct pto_obstacle *list;
  uint64_t n;

  if (!engine->config.build_first)
    return;
  /* Once more, since the tasks that go may name others. */
  do
    {
      n = pto_added_list_obstacles (engine, slot, &list);
      for (uint64_t i = 0; i < n; i++)
        {
          if (i % ASK_EVERY == ASK_EVERY - 1 && pto_engine_ask_cancelled (engine))
            n = 0;
          else
            let_go_early (engine, list[i].ring, list[i].added, what, ring_index);
        }
      free (list);
    }
  while (n > 0);
}

bool
pto_early_let_one_go (struct pto_engine *engine, enum pto_status what)
{
  struct pto_build *build = &engine->build;
  struct pto_added *first = NULL;
  uint32_t ring = 0;

  if (!engine->config.build_first || build->n_held == 0)
    return false;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    for (uint32_t i = 0; i < build->n[r]; i++)
      {
        struct pto_added *added = &build->items[r][i];

        if (!added->let_go
            && (first == NULL || added->published > first->published
                || (added->published == first->published && added->number < first->number)))
          {
            first = added;
            ring = r;
          }
      }
  let_go_early (engine, ring, first, what, 0);
  return true;
}
