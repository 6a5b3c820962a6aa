/* map-node.c: what does the TensorMap keep of an access, and in what?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "map-node.h"

#include <sys/mman.h>

void *
pto_map_pages (size_t size)
{
  void *pages = mmap (NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  return pages != MAP_FAILED ? pages : NULL;
}

/* Each block is given back before its readers are put where there is room,
 * so this takes no node that it has not given. */
void
pto_readers_prune (struct pto_map *map, struct entry *entry)
{
  uint32_t number = readers_first_block (map, entry);
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
pto_readers_any_live (const struct pto_map *map, const struct entry *entry)
{
  for (uint32_t i = 0; i < entry->node.count; i++)
    if (is_live (map, entry->readers[i]))
      return true;
  for (uint32_t number = readers_first_block (map, entry); number != 0;
       number = readers_next_block (map, entry, number))
    {
      const struct block *block = &map->slots[number].block;

      for (uint32_t i = 0; i < block->node.count; i++)
        if (is_live (map, block->readers[i]))
          return true;
    }
  return false;
}
