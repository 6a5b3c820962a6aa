/* manual-tasks.c: which tasks were added by hand, and can not run yet?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "manual-tasks.h"

#include "exec/translate.h"
#include "deadlock-demand.h"

/* "task 3 (add), added at x.c:12" */
void
pto_added_name (const struct pto_engine *engine, uint32_t ring, const struct pto_added *added,
                char *text, size_t size)
{
  const struct pto_slot *slot = pto_ring_slot (&engine->rings[ring], added->local);
  size_t used = (size_t) snprintf (text, size, _ ("task %" PRIu64), added->number);

  /* A task that is written down has no slot. */
  if (engine->capture == NULL && used < size)
    used += (size_t) snprintf (text + used, size - used, " (%s)",
                               pto_engine_kernel_name (engine, slot->kernel));
  if (added->file != NULL && used < size)
    snprintf (text + used, size - used, _ (", added at %s:%" PRIi32 ","),
              pto_base_name (added->file), added->line);
}

/* Of its ring the first that is not before that position. */
uint32_t
pto_added_first (const struct pto_build *build, uint32_t ring, uint32_t local)
{
  return pto_bisect (i, build->n[ring], (int32_t) (build->items[ring][i].local - local) < 0);
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

  return added != NULL && !added->let_go;
}

void
pto_added_note (struct pto_engine *engine)
{
  struct pto_build *build = &engine->build;
  uint32_t ring = pto_engine_ring_of_depth (engine->depth - 1);
  struct pto_added *added = &build->items[ring][build->n[ring]];

  *added = (struct pto_added){ .number = engine->submitted, .local = engine->rings[ring].head };
  added->file = pto_engine_get_call (engine, &added->line);
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    added->heads[r] = engine->rings[r].head;
}

void
pto_added_begin (struct pto_engine *engine)
{
  struct pto_build *build = &engine->build;
  uint32_t ring = pto_engine_ring_of_depth (engine->depth - 1);

  if (!pto_engine_has_failed (engine)
      && !pto_array_has_room (build->items[ring], build->n[ring], build->max[ring]))
    pto_engine_fail (engine, PTO_STATUS_NO_MEMORY, _ ("no memory for a graph of %" PRIu64 " tasks"),
                     engine->submitted);
  /* Nothing that it accesses is looked up. */
  if (!pto_engine_has_failed (engine) && engine->sets != NULL)
    engine->reducer->settle (engine, NULL);
  /* The submit still counts what the run would have needed. */
  if (pto_engine_has_failed (engine))
    {
      pto_engine_count_add (engine);
      return;
    }
  pto_added_note (engine);
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
    {
      pto_engine_count_add (engine);
      return;
    }
  build->n[ring]++;
  build->n_held++;
}

/* The first that has not been let go. */
static const struct pto_added *
find_waiting (const struct pto_engine *engine, uint32_t *ring)
{
  const struct pto_build *build = &engine->build;

  if (build->n_held == 0)
    return NULL;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    for (uint32_t i = 0; i < build->n[r]; i++)
      if (!build->items[r][i].let_go)
        {
          *ring = r;
          return &build->items[r][i];
        }
  return NULL;
}

/* The tasks that cannot run before the submitter lets one of those go that it holds. */
struct blocked
{
  uint64_t n;
  uint64_t first; /* mark of the first one that is met; the others count on from there */
  bool *keepers;  /* by mark: it keeps the slot in question, or one does that waits for it */
};

/* One that is followed, and its next edge. */
struct step
{
  struct pto_slot *slot;
  uint32_t edge;
};

/* Does the task keep the slot, by what it is or by the memory that it uses? What a task retains is
 * the submitter's to read: schedulers do not write it. */
static bool
keeps (const struct pto_engine *engine, const struct pto_slot *slot, const struct pto_slot *kept)
{
  const struct pto_ring *ring = &engine->rings[PTO_TASK_RING (slot->id)];

  if (slot == kept)
    return true;
  for (uint32_t e = 0; e < slot->n_retained; e++)
    if (pto_engine_slot (engine,
                         ring->edges[(slot->first_edge + e) & (ring->edge_pool - 1)].producer)
        == kept)
      return true;
  return false;
}

static struct step
meet (const struct pto_engine *engine, struct blocked *blocked, struct pto_slot *slot,
      const struct pto_slot *kept)
{
  blocked->keepers[blocked->n] = kept != NULL && keeps (engine, slot, kept);
  slot->mark = blocked->first + blocked->n++;
  /* Relaxed: written by this thread. */
  return (struct step){ slot, pto_load_relaxed (&slot->fanout) };
}

/* Meets the task and all that wait for it, but for those that were met before. One look at each
 * edge: when it leads to one that was met, all that wait for that one were. */
static void
follow (const struct pto_engine *engine, struct blocked *blocked, struct step *steps,
        struct pto_slot *slot, const struct pto_slot *kept)
{
  bool *keepers = blocked->keepers;
  uint64_t n = 1;

  steps[0] = meet (engine, blocked, slot, kept);
  while (n > 0)
    {
      struct step *step = &steps[n - 1];
      bool *keeper = &keepers[step->slot->mark - blocked->first];
      const struct pto_edge *edge;
      struct pto_slot *consumer;

      if (step->edge == 0)
        {
          if (--n > 0 && *keeper)
            keepers[step[-1].slot->mark - blocked->first] = true;
          continue;
        }
      edge = pto_engine_edge (engine, step->edge);
      consumer = pto_engine_slot (engine, edge->consumer);
      step->edge = edge->next;
      if ((edge->flags & PTO_EDGE_WAIT) == 0)
        continue;
      if (consumer->mark < blocked->first)
        steps[n++] = meet (engine, blocked, consumer, kept);
      else
        *keeper = *keeper || keepers[consumer->mark - blocked->first];
    }
}

/* Finds them; those that keep the slot only if there is one. The caller frees the keepers. Without
 * memory there are none.
 *
 * Nobody is missing, and all stay while the submitter does nothing: each has a fan-in that one of
 * them has still to count down, so none of them completes. Schedulers write fan-out lists only
 * where a task completes, and only the submitter adds to them. */
static struct blocked
find_blocked (struct pto_engine *engine, const struct pto_slot *kept)
{
  const struct pto_build *build = &engine->build;
  struct blocked blocked = { .first = engine->serial + 1 };
  struct step *steps;
  uint64_t live = 0;

  if (build->n_held == 0)
    return blocked;
  for (uint32_t r = 0; r < PTO_RINGS; r++)
    live += engine->rings[r].head - engine->tails[r];
  blocked.keepers = malloc (live * sizeof *blocked.keepers);
  steps = malloc (live * sizeof *steps);
  engine->serial += live;
  for (uint32_t r = 0; blocked.keepers != NULL && steps != NULL && r < PTO_RINGS; r++)
    for (uint32_t i = 0; i < build->n[r]; i++)
      {
        struct pto_slot *slot = pto_ring_slot (&engine->rings[r], build->items[r][i].local);

        if (!build->items[r][i].let_go && slot->mark < blocked.first)
          follow (engine, &blocked, steps, slot, kept);
      }
  free (steps);
  return blocked;
}

uint64_t
pto_added_count_blocked (struct pto_engine *engine)
{
  struct blocked blocked = find_blocked (engine, NULL);

  free (blocked.keepers);
  return blocked.n;
}

static int
compare_obstacles (const void *one, const void *other)
{
  const struct pto_obstacle *a = one;
  const struct pto_obstacle *b = other;

  if (a->added->published != b->added->published)
    return a->added->published ? -1 : 1;
  return a->added->number < b->added->number ? -1 : a->added->number > b->added->number;
}

uint64_t
pto_added_list_obstacles (struct pto_engine *engine, const struct pto_slot *slot,
                          struct pto_obstacle **list)
{
  struct pto_build *build = &engine->build;
  struct blocked blocked = find_blocked (engine, slot);
  uint64_t n = 0;

  *list = blocked.n > 0 ? malloc (build->n_held * sizeof **list) : NULL;
  for (uint32_t r = 0; *list != NULL && r < PTO_RINGS; r++)
    for (uint32_t i = 0; i < build->n[r]; i++)
      {
        struct pto_added *added = &build->items[r][i];

        if (!added->let_go
            && blocked
                   .keepers[pto_ring_slot (&engine->rings[r], added->local)->mark - blocked.first])
          (*list)[n++] = (struct pto_obstacle){ added, r };
      }
  free (blocked.keepers);
  if (n > 1)
    qsort (*list, n, sizeof **list, compare_obstacles);
  return n;
}

bool
pto_added_has_obstacle (struct pto_engine *engine, const struct pto_slot *slot)
{
  struct pto_obstacle *list;
  uint64_t n = pto_added_list_obstacles (engine, slot, &list);

  free (list);
  return n > 0;
}

static void
describe (const struct pto_engine *engine, const struct pto_added *added, uint32_t ring, char *text,
          size_t size)
{
  char task[300];

  pto_added_name (engine, ring, added, task, sizeof task);
  snprintf (text, size, "%s %s", task,
            added->published ? _ ("does not run before its scope ends (build-mode is 0)")
                             : _ ("is not published"));
}

void
pto_added_describe_obstacle (struct pto_engine *engine, const struct pto_slot *slot, char *text,
                             size_t size)
{
  struct pto_obstacle *list;

  text[0] = '\0';
  if (pto_added_list_obstacles (engine, slot, &list) > 0)
    describe (engine, list[0].added, list[0].ring, text, size);
  free (list);
}

void
pto_added_describe (const struct pto_engine *engine, char *text, size_t size)
{
  uint32_t ring;
  const struct pto_added *added = find_waiting (engine, &ring);

  text[0] = '\0';
  if (added != NULL)
    describe (engine, added, ring, text, size);
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
