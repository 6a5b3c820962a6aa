/* tensor-map-index.c: which entries may lie where a region lies?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A grid over coordinates. The strides that the entries of a space use are learned; they divide an
 * offset into digits (rows and columns, of any number of dimensions), in which a view is a box.
 * Entries whose boxes have the same extents, rounded up to powers of two, form a class, and each
 * class has its own grid with cells of just that extent, in one hash table of the space. So an
 * entry is in one cell, and a look-up visits a few cells of every class, or all of a class where
 * that is fewer.
 */
#include "tensor-map-index.h"

#include <stdlib.h>
#include <string.h>

/* The class that takes any box. */
#define CATCH_ALL 0u

/* Most offsets fit 32 bits, where division is several times cheaper. */
static inline void
divide (uint64_t n, uint64_t by, uint64_t *quotient, uint64_t *rest)
{
  if (((n | by) >> 32) == 0)
    {
      *quotient = (uint32_t) n / (uint32_t) by;
      *rest = (uint32_t) n % (uint32_t) by;
    }
  else
    {
      *quotient = n / by;
      *rest = n % by;
    }
}

void
pto_index_box (const struct index *index, const struct pto_region *region, struct box *box)
{
  uint64_t reach[MAX_DIGITS] = { 0 };
  uint64_t rest = region->lo - index->origin;
  uint32_t last = index->n_digits - 1;

  for (uint32_t i = 0; i < last; i++)
    divide (rest, index->radix[i], &box->start[i], &rest);
  box->start[last] = rest;
  box->fits = true;
  reach[last] = region->run - 1;
  for (uint32_t k = 0, i = 0; k < region->n_dims; k++)
    {
      uint64_t stride = region->dims[k].stride;

      while (index->radix[i] > stride)
        i++;
      if (index->radix[i] == stride)
        reach[i] += region->dims[k].count - 1;
      else
        {
          uint32_t divisor = i;

          while (stride % index->radix[divisor] != 0)
            divisor++;
          reach[divisor] += stride / index->radix[divisor] * (region->dims[k].count - 1);
          box->fits = false;
        }
    }
  /* A digit that counts over carries into the one above, and then may have any value itself. */
  for (uint32_t i = last; i > 0; i--)
    {
      uint64_t end = box->start[i] + reach[i];

      if (end >= index->ratio[i])
        {
          reach[i - 1] += end / index->ratio[i];
          box->start[i] = 0;
          box->size[i] = index->ratio[i];
        }
      else
        box->size[i] = reach[i] + 1;
    }
  box->size[0] = reach[0] + 1;
}

static uint64_t
box_class_key (const struct index *index, const struct box *box)
{
  uint64_t key = 0;

  for (uint32_t i = 0; i < index->n_digits; i++)
    key |= (uint64_t) log2_ceiling (box->size[i]) << (6 * i);
  return key;
}

/* index->n_classes when there is none. */
static inline uint32_t
index_find_class (const struct index *index, uint64_t key)
{
  if (index->last_class < index->n_classes && index->classes[index->last_class].key == key)
    return index->last_class;
  for (uint32_t i = 0; i < index->n_classes; i++)
    if (index->classes[i].key == key)
      return i;
  return index->n_classes;
}

static inline uint32_t
cell_hash (uint32_t class_number, const uint64_t *cell, uint32_t n)
{
  uint64_t hash = (class_number + 1) * UINT64_C (0x9e3779b97f4a7c15);

  for (uint32_t i = 0; i < n; i++)
    {
      hash = (hash ^ cell[i]) * UINT64_C (0xd6e8feb86659fd93);
      hash ^= hash >> 32;
    }
  return (uint32_t) hash;
}

static inline uint32_t
box_cell_hash (const struct index *index, uint32_t class_number, const struct box *box)
{
  const struct class *class = &index->classes[class_number];
  uint64_t cell[MAX_DIGITS];

  for (uint32_t i = 0; i < index->n_digits; i++)
    cell[i] = box->start[i] >> class->shift[i];
  return cell_hash (class_number, cell, index->n_digits);
}

void
pto_index_free (struct pto_map *map, struct index *index)
{
  if (index->prev != NULL)
    index->prev->next = index->next;
  else
    map->indexes = index->next;
  if (index->next != NULL)
    index->next->prev = index->prev;
  free (index->classes);
  free (index->buckets);
  free (index);
}

/* The class of boxes of that size; the catch-all when there is no memory for one more. */
static uint32_t
index_need_class (struct index *index, const struct box *box)
{
  uint64_t key = box_class_key (index, box);
  uint32_t number = index_find_class (index, key);
  struct class *class;

  if (number < index->n_classes)
    return number;
  if (!pto_array_has_room (index->classes, number, index->max_classes))
    return CATCH_ALL;
  index->n_classes++;
  class = &index->classes[number];
  memset (class, 0, sizeof *class);
  class->key = key;
  for (uint32_t i = 0; i < index->n_digits; i++)
    class->shift[i] = (uint8_t) log2_ceiling (box->size[i]);
  return number;
}

void
pto_index_add (struct pto_map *map, struct index *index, struct entry *entry, const struct box *box)
{
  uint32_t number = number_of (map, entry);
  uint32_t class_number = index_need_class (index, box);
  struct class *class = &index->classes[class_number];
  uint32_t *bucket;

  index->last_class = class_number;
  for (uint32_t i = 0; i < index->n_digits; i++)
    {
      uint64_t end = box->start[i] + box->size[i] - 1;

      if (box->start[i] >> class->shift[i] != end >> class->shift[i])
        class->straddle |= (uint8_t) (1u << i);
    }
  entry->class_number = class_number;
  entry->cell_hash = box_cell_hash (index, class_number, box);
  bucket = &index->buckets[entry->cell_hash & index->mask];
  entry->cell_next = *bucket;
  *bucket = number;
  list_add (map, &class->head, entry);
  class->count++;
}

void
pto_index_remove (struct pto_map *map, struct index *index, struct entry *entry)
{
  struct class *class = &index->classes[entry->class_number];
  uint32_t *link = &index->buckets[entry->cell_hash & index->mask];
  uint32_t number = number_of (map, entry);

  list_remove (map, &class->head, entry);
  class->count--;
  while (*link != number)
    link = &entry_at (map, *link)->cell_next;
  *link = entry->cell_next;
}

/* Chooses the radices by what strides the entries have: the most frequent first, then those that
 * fit in between. */
static void
index_learn (const struct pto_map *map, struct index *index, uint32_t all)
{
  struct
  {
    uint64_t stride;
    uint32_t votes;
  } strides[16];
  uint32_t n = 0, n_radices = 0;

  for (uint32_t i = all; i != 0; i = entry_at (map, i)->cell_next)
    {
      const struct pto_region *region = &entry_at (map, i)->region;

      for (uint32_t k = 0; k < region->n_dims; k++)
        {
          uint32_t s = 0;

          while (s < n && strides[s].stride != region->dims[k].stride)
            s++;
          if (s == sizeof strides / sizeof strides[0])
            continue;
          if (s == n)
            {
              strides[n].stride = region->dims[k].stride;
              strides[n++].votes = 0;
            }
          strides[s].votes++;
        }
    }
  while (n_radices < PTO2_TENSOR_MAX_DIMS)
    {
      uint32_t best = n, at = 0;

      for (uint32_t s = 0; s < n; s++)
        if (strides[s].votes > 0 && (best == n || strides[s].votes > strides[best].votes))
          best = s;
      if (best == n)
        break;
      strides[best].votes = 0;
      while (at < n_radices && index->radix[at] > strides[best].stride)
        at++;
      if ((at > 0 && index->radix[at - 1] % strides[best].stride != 0)
          || (at < n_radices && strides[best].stride % index->radix[at] != 0))
        continue;
      memmove (&index->radix[at + 1], &index->radix[at], (n_radices - at) * sizeof index->radix[0]);
      index->radix[at] = strides[best].stride;
      n_radices++;
    }
  /* A stride is greater than its run, so 1 is never among them. */
  index->radix[n_radices] = 1;
  index->n_digits = n_radices + 1;
  for (uint32_t i = 1; i < index->n_digits; i++)
    index->ratio[i] = index->radix[i - 1] / index->radix[i];
}

/* Whole rows below the anchor, so that the digits begin where the tensors do. */
static void
index_set_origin (const struct pto_map *map, struct index *index, uint32_t all, uint64_t anchor)
{
  uint64_t below = 0;

  for (uint32_t i = all; i != 0; i = entry_at (map, i)->cell_next)
    if ((int64_t) (anchor - entry_at (map, i)->region.lo) > (int64_t) below)
      below = anchor - entry_at (map, i)->region.lo;
  below += index->radix[0] - 1;
  index->origin = anchor - (below - below % index->radix[0]);
}

struct index *
pto_index_new (struct pto_map *map, uint32_t all, uint32_t n_entries, uint64_t anchor,
               uint32_t max_misfits)
{
  struct index *index = calloc (1, sizeof *index);
  uint32_t n_buckets = 32;

  if (index == NULL)
    return NULL;
  while (n_buckets < 2 * n_entries)
    n_buckets *= 2;
  index->buckets = calloc (n_buckets, sizeof *index->buckets);
  if (index->buckets == NULL || !pto_array_has_room (index->classes, CATCH_ALL, index->max_classes))
    {
      free (index->buckets);
      free (index);
      return NULL;
    }
  index->mask = n_buckets - 1;
  index->max_misfits = max_misfits;
  /* The catch-all: all boxes are in its one cell. */
  index->n_classes = 1;
  index->classes[CATCH_ALL] = (struct class){ .key = UINT64_MAX };
  memset (index->classes[CATCH_ALL].shift, 63, MAX_DIGITS);
  index->next = map->indexes;
  if (map->indexes != NULL)
    map->indexes->prev = index;
  map->indexes = index;
  index_learn (map, index, all);
  index_set_origin (map, index, all, anchor);
  while (all != 0)
    {
      struct entry *entry = entry_at (map, all);
      struct box box;

      all = entry->cell_next;
      pto_index_box (index, &entry->region, &box);
      pto_index_add (map, index, entry, &box);
    }
  return index;
}

struct entry *
pto_index_find (const struct pto_map *map, struct index *index, const struct pto_region *region,
                const struct box *box)
{
  uint32_t class_number = index_find_class (index, box_class_key (index, box));
  uint32_t hash;

  if (class_number == index->n_classes)
    class_number = CATCH_ALL;
  hash = box_cell_hash (index, class_number, box);
  for (uint32_t i = index->buckets[hash & index->mask]; i != 0; i = entry_at (map, i)->cell_next)
    {
      struct entry *entry = entry_at (map, i);

      if (entry->cell_hash == hash && pto_region_equal (&entry->region, region))
        {
          index->last_class = class_number;
          return entry;
        }
    }
  return NULL;
}

static void
walk_enter_cell (struct walk *walk)
{
  walk->hash = cell_hash (walk->class_number - 1, walk->cell, walk->index->n_digits);
  walk->next = walk->index->buckets[walk->hash & walk->index->mask];
}

/* Sets out the cells of a class in which entries may be; false: as many as the class has entries,
 * or they are not known. */
static inline bool
walk_set_cells (struct walk *walk, const struct class *class)
{
  uint64_t cells = 1;

  if (walk->box == NULL)
    return false;
  for (uint32_t i = 0; i < walk->index->n_digits; i++)
    {
      walk->first[i] = walk->box->start[i] >> class->shift[i];
      walk->last[i] = (walk->box->start[i] + walk->box->size[i] - 1) >> class->shift[i];
      if (walk->first[i] > 0 && (class->straddle >> i & 1) != 0)
        walk->first[i]--;
      walk->cell[i] = walk->first[i];
      if (walk->last[i] - walk->first[i] >= class->count)
        return false;
      cells *= walk->last[i] - walk->first[i] + 1;
      if (cells >= class->count)
        return false;
    }
  return true;
}

/* The next cell or class. */
static inline bool
walk_more (struct walk *walk)
{
  const struct index *index = walk->index;

  if (walk->in_cells)
    {
      for (uint32_t i = index->n_digits; i-- > 0;)
        {
          if (walk->cell[i]++ < walk->last[i])
            {
              walk_enter_cell (walk);
              return true;
            }
          walk->cell[i] = walk->first[i];
        }
      walk->in_cells = false;
    }
  while (walk->class_number < index->n_classes)
    {
      const struct class *class = &index->classes[walk->class_number++];

      if (class->count == 0)
        continue;
      walk->in_cells = walk_set_cells (walk, class);
      if (walk->in_cells)
        walk_enter_cell (walk);
      else
        walk->next = class->head;
      return true;
    }
  return false;
}

struct entry *
pto_walk_next_indexed (struct walk *walk, bool *unsure)
{
  do
    while (walk->next != 0)
      {
        struct entry *entry = entry_at (walk->map, walk->next);

        if (walk->in_cells)
          {
            walk->next = entry->cell_next;
            if (entry->cell_hash != walk->hash || entry->class_number != walk->class_number - 1)
              continue;
          }
        else
          walk->next = entry->node.next;
        if (walk_meets (walk, entry, unsure))
          return entry;
      }
  while (walk_more (walk));
  return NULL;
}
