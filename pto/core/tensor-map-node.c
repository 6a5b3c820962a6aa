/* tensor-map-node.c: what does the TensorMap keep of an access, and in what?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tensor-map-node.h"

/* Each block is given back before its readers are put where there is room,
 * so this takes no node that it has not given. */
void
pto_readers_prune (struct pto_map *map, struct entry *entry)
{
  uint32_t number = entry_readers (map, entry).next;
  uint32_t newest = entry->block;
  uint32_t kept = 0;

  for (uint32_t i = 0; i < entry->node.count; i++)
    if (is_live (map, entry->readers[i]))
      entry->readers[kept++] = entry->readers[i];
  entry->node.count = (uint8_t) kept;
  entry->n_readers = kept;
  entry->block = 0;
  while (number != 0)
    {
      struct block block = map->slots[number].block;

      node_give (map, number);
      for (uint32_t i = 0; i < block.node.count; i++)
        if (is_live (map, block.readers[i]))
          readers_append (map, entry, block.readers[i]);
      number = number != newest ? block.node.next : 0;
    }
  /* Looked at again when there are twice as many: each reader is looked at twice on average. */
  entry->prune_at = entry->n_readers > INLINE_READERS ? 2 * entry->n_readers : INLINE_READERS;
}

bool
pto_readers_any_live (const struct pto_map *map, struct readers readers)
{
  do
    for (uint32_t i = 0; i < readers.n; i++)
      if (is_live (map, readers.items[i]))
        return true;
  while (readers_next (map, &readers));
  return false;
}

/* --- groups --- */

static struct readers
readers_of (const struct pto_map *map, const struct tasks *tasks)
{
  return readers_begin (map, tasks->items, tasks->count, tasks->block);
}

static void
clear (struct pto_map *map, struct tasks *tasks)
{
  blocks_give (map, tasks->block);
  tasks->count = 0;
  tasks->block = 0;
}

/* The entry has none then. */
static void
take_readers (struct entry *entry, struct tasks *tasks)
{
  tasks->count = entry->node.count;
  tasks->block = entry->block;
  for (uint32_t i = 0; i < entry->node.count; i++)
    tasks->items[i] = entry->readers[i];
  entry->node.count = 0;
  entry->block = 0;
}

bool
pto_group_report (const struct pto_map *map, const struct entry *entry, bool member,
                  uint32_t of_writer, uint32_t of_readers, struct pto_deps *deps)
{
  const struct group *group = &map->slots[entry->group].group;
  struct readers readers = entry_readers (map, entry);

  /* Whoever comes after all who update it comes after those that they come after. */
  if (group->open && !member)
    return of_writer == 0 || readers_report (map, readers, of_writer, deps);
  if (of_writer != 0 && is_live (map, entry->writer)
      && !pto_deps_add (deps, entry->writer, of_writer))
    return false;
  if (group->open)
    readers = readers_of (map, &group->readers);
  return (of_writer == 0
          || readers_report (map, readers_of (map, &group->updaters), of_writer, deps))
         && (of_readers == 0 || readers_report (map, readers, of_readers, deps));
}

uint32_t
pto_group_update (struct pto_map *map, struct entry *entry)
{
  struct group *group;

  if (!entry->node.grouped)
    {
      uint32_t number = node_take (map, NODE_GROUP);

      if (number == 0)
        return 0;
      group = &map->slots[number].group;
      entry->group = number;
      entry->node.grouped = true;
      group->open = false;
      group->updaters = (struct tasks){ 0 };
      group->readers = (struct tasks){ 0 };
    }
  group = &map->slots[entry->group].group;
  if (!group->open)
    {
      take_readers (entry, &group->readers);
      group->open = true;
      group->token = map->tokens++;
    }
  return group->token;
}

void
pto_group_read (struct pto_map *map, struct entry *entry)
{
  struct group *group = &map->slots[entry->group].group;

  if (!group->open)
    return;
  clear (map, &group->updaters);
  clear (map, &group->readers);
  take_readers (entry, &group->updaters);
  entry->writer = PTO_TASK_NONE;
  group->open = false;
}

void
pto_group_end (struct pto_map *map, struct entry *entry)
{
  struct group *group = &map->slots[entry->group].group;

  clear (map, &group->updaters);
  clear (map, &group->readers);
  node_give (map, entry->group);
  entry->node.grouped = false;
}

bool
pto_group_any_live (const struct pto_map *map, const struct entry *entry)
{
  const struct group *group = &map->slots[entry->group].group;

  return pto_readers_any_live (map, readers_of (map, &group->updaters))
         || pto_readers_any_live (map, readers_of (map, &group->readers));
}
