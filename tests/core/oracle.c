/* oracle.c: what must the TensorMap answer?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

uint64_t
oracle_random (struct oracle_random *random)
{
  uint64_t z = random->state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

uint32_t
oracle_below (struct oracle_random *random, uint32_t n)
{
  return (uint32_t) (oracle_random (random) >> 32) % n;
}

Tensor
oracle_make (uint64_t addr, const uint64_t shapes[], uint32_t n_dims, DataType dtype)
{
  Tensor tensor;

  memset (&tensor, 0, sizeof tensor);
  tensor.buffer.size
      = pto2_tensor_set_shape (&tensor, shapes, n_dims, dtype) * pto_dtype_size (dtype);
  tensor.buffer.addr = addr;
  return tensor;
}

bool
oracle_touch (struct oracle_bytes *bytes, const Tensor *tensor, uint64_t base)
{
  uint64_t size = pto_dtype_size (tensor->dtype);
  uint64_t index[PTO2_TENSOR_MAX_DIMS] = { 0 };

  memset (bytes, 0, sizeof *bytes);
  for (;;)
    {
      uint64_t at = tensor->start_offset;
      uint32_t i = tensor->ndims;

      for (uint32_t k = 0; k < tensor->ndims; k++)
        at += index[k] * tensor->strides[k];
      at = tensor->buffer.addr + at * size - base;
      for (uint64_t b = at; b < at + size; b++)
        {
          if (b >= ORACLE_BYTES)
            return false;
          bytes->words[b / 64] |= UINT64_C (1) << b % 64;
        }
      while (i > 0 && ++index[i - 1] == tensor->shapes[i - 1])
        index[--i] = 0;
      if (i == 0)
        return true;
    }
}

bool
oracle_overlap (const struct oracle_bytes *a, const struct oracle_bytes *b)
{
  for (uint32_t i = 0; i < ORACLE_WORDS; i++)
    if ((a->words[i] & b->words[i]) != 0)
      return true;
  return false;
}

bool
oracle_covers (const struct oracle_bytes *a, const struct oracle_bytes *b)
{
  for (uint32_t i = 0; i < ORACLE_WORDS; i++)
    if ((b->words[i] & ~a->words[i]) != 0)
      return false;
  return true;
}

bool
oracle_same (const struct oracle_bytes *a, const struct oracle_bytes *b)
{
  return memcmp (a, b, sizeof *a) == 0;
}

static Tensor
random_whole (struct oracle_random *random, uint64_t base, uint32_t n_bytes)
{
  uint64_t shape[PTO2_TENSOR_MAX_DIMS];
  uint32_t n_dims = 1 + oracle_below (random, PTO2_TENSOR_MAX_DIMS);
  DataType dtype = oracle_below (random, PTO_DTYPE_COUNT);
  uint32_t left;

  while (pto_dtype_size (dtype) > n_bytes)
    dtype = oracle_below (random, PTO_DTYPE_COUNT);
  left = n_bytes / pto_dtype_size (dtype);
  for (uint32_t i = 0; i < n_dims; i++)
    {
      uint32_t limit = i + 1 == n_dims ? left : left < 16 ? left : 16;

      shape[i] = i + 1 == n_dims && oracle_below (random, 2) == 0
                     ? left
                     : 1 + oracle_below (random, limit);
      left /= (uint32_t) shape[i];
    }
  return oracle_make (base, shape, n_dims, dtype);
}

/* Any strides that keep within n_bytes. */
static Tensor
random_strides (struct oracle_random *random, uint64_t base, uint32_t n_bytes)
{
  uint64_t one[1] = { 1 };
  Tensor tensor = oracle_make (base, one, 1, oracle_below (random, PTO_DTYPE_COUNT));
  uint32_t left;

  while (pto_dtype_size (tensor.dtype) > n_bytes)
    tensor.dtype = oracle_below (random, PTO_DTYPE_COUNT);
  left = n_bytes / pto_dtype_size (tensor.dtype) - 1;
  tensor.buffer.size = n_bytes;
  tensor.ndims = 1 + oracle_below (random, PTO2_TENSOR_MAX_DIMS);
  for (uint32_t i = 0; i < tensor.ndims; i++)
    {
      tensor.shapes[i] = 1 + oracle_below (random, 6);
      tensor.strides[i] = 1 + oracle_below (random, 1u << oracle_below (random, 8));
      while (tensor.shapes[i] > 1 && (tensor.shapes[i] - 1) * tensor.strides[i] > left)
        tensor.shapes[i]--;
      left -= (uint32_t) ((tensor.shapes[i] - 1) * tensor.strides[i]);
    }
  tensor.start_offset = oracle_below (random, left + 1);
  return tensor;
}

Tensor
oracle_tensor (struct oracle_random *random, uint64_t base, enum oracle_shapes shapes)
{
  uint32_t skip = 0, n_bytes = ORACLE_BYTES, steps;
  Tensor tensor;

  if (shapes != ORACLE_VIEWS && oracle_below (random, 2) == 0)
    {
      skip = oracle_below (random, ORACLE_BYTES - 8);
      n_bytes = 8 + oracle_below (random, ORACLE_BYTES - 8 - skip + 1);
    }
  if (shapes == ORACLE_ANY && oracle_below (random, 3) == 0)
    return random_strides (random, base + skip, n_bytes);
  tensor = random_whole (random, base + skip, n_bytes);
  steps = oracle_below (random, 5);
  for (uint32_t step = 0; step < steps; step++)
    switch (oracle_below (random, 4))
      {
      case 0:
        tensor = pto2_tensor_transpose (&tensor, oracle_below (random, tensor.ndims),
                                        oracle_below (random, tensor.ndims));
        break;
      case 1:
        if (pto2_tensor_is_contiguous (&tensor))
          {
            uint64_t shape[PTO2_TENSOR_MAX_DIMS];
            uint32_t n = 1 + oracle_below (random, PTO2_TENSOR_MAX_DIMS);
            uint64_t left = pto2_tensor_numel (&tensor);

            for (uint32_t i = 0; i < n; i++)
              {
                shape[i] = i + 1 == n ? left : 1 + oracle_below (random, 12);
                while (left % shape[i] != 0)
                  shape[i]--;
                left /= shape[i];
              }
            tensor = pto2_tensor_reshape (&tensor, shape, n);
          }
        break;
      default:
        {
          uint64_t shape[PTO2_TENSOR_MAX_DIMS];
          uint64_t offset[PTO2_TENSOR_MAX_DIMS];

          for (uint32_t i = 0; i < tensor.ndims; i++)
            {
              shape[i] = oracle_below (random, 2) == 0
                             ? tensor.shapes[i]
                             : 1 + oracle_below (random, (uint32_t) tensor.shapes[i]);
              offset[i] = oracle_below (random, (uint32_t) (tensor.shapes[i] - shape[i]) + 1);
            }
          tensor = pto2_tensor_view (&tensor, shape, offset);
        }
      }
  return tensor;
}

static void
clear_entry (struct oracle_entry *entry)
{
  free (entry->readers);
  free (entry->updaters);
  free (entry->before.items);
}

void
oracle_map_clear (struct oracle_map *map)
{
  for (uint32_t i = 0; i < map->n; i++)
    clear_entry (&map->entries[i]);
  free (map->entries);
  map->entries = NULL;
  map->n = 0;
}

static void
append (struct pto_deps *deps, pto_task_id task, uint32_t kinds)
{
  if (deps->count == deps->capacity)
    {
      deps->capacity = 2 * deps->capacity + 16;
      deps->items = realloc (deps->items, deps->capacity * sizeof *deps->items);
    }
  deps->items[deps->count].task = task;
  deps->items[deps->count++].kinds = kinds;
}

void
oracle_map_lookup (const struct oracle_map *map, const struct oracle_bytes *bytes,
                   PTOParamType type, struct pto_deps *deps)
{
  bool war = (map->hazards & PTO_HAZARD_WAR) != 0;
  uint32_t of_writer = 0, of_readers = 0;

  if (type == PTO_PARAM_INPUT)
    of_writer = PTO_HAZARD_RAW;
  else if (type == PTO_PARAM_INOUT || type == PTO_PARAM_COMMUTATIVE)
    {
      of_writer = PTO_HAZARD_RAW | PTO_HAZARD_WAW;
      of_readers = PTO_HAZARD_WAR;
    }
  else if ((type == PTO_PARAM_OUTPUT || type == PTO_PARAM_OUTPUT_EXISTING) && war)
    {
      of_writer = PTO_HAZARD_WAW;
      of_readers = PTO_HAZARD_WAR;
    }
  of_writer &= map->hazards;
  of_readers &= map->hazards;
  for (uint32_t i = 0; i < map->n; i++)
    {
      const struct oracle_entry *entry = &map->entries[i];

      if (!oracle_overlap (&entry->bytes, bytes))
        continue;
      if (entry->open && (type != PTO_PARAM_COMMUTATIVE || !oracle_same (&entry->bytes, bytes)))
        {
          for (uint32_t u = 0; u < entry->n_updaters && of_writer != 0; u++)
            append (deps, entry->updaters[u], of_writer);
          continue;
        }
      for (uint32_t b = 0; b < entry->before.count; b++)
        if (((of_writer | of_readers) & entry->before.items[b].kinds) != 0)
          append (deps, entry->before.items[b].task,
                  (of_writer | of_readers) & entry->before.items[b].kinds);
      for (uint32_t u = 0; u < entry->n_updaters && of_writer != 0 && !entry->open; u++)
        append (deps, entry->updaters[u], of_writer);
      if (of_writer != 0 && entry->writer != PTO_TASK_NONE)
        append (deps, entry->writer, of_writer);
      for (uint32_t r = 0; r < entry->n_readers && of_readers != 0; r++)
        append (deps, entry->readers[r], of_readers);
    }
}

static void
update (struct oracle_entry *entry, pto_task_id task)
{
  if (!entry->open)
    {
      for (uint32_t u = 0; u < entry->n_updaters; u++)
        append (&entry->before, entry->updaters[u], PTO_HAZARD_RAW | PTO_HAZARD_WAW);
      for (uint32_t r = 0; r < entry->n_readers; r++)
        append (&entry->before, entry->readers[r], PTO_HAZARD_WAR);
      entry->n_updaters = 0;
      entry->n_readers = 0;
      entry->open = true;
    }
  entry->updaters = realloc (entry->updaters, (entry->n_updaters + 1) * sizeof *entry->updaters);
  entry->updaters[entry->n_updaters++] = task;
}

void
oracle_map_insert (struct oracle_map *map, const struct oracle_bytes *bytes, PTOParamType type,
                   pto_task_id task)
{
  struct oracle_entry *entry = NULL;
  bool writes
      = type == PTO_PARAM_INOUT || type == PTO_PARAM_OUTPUT || type == PTO_PARAM_OUTPUT_EXISTING;

  if (!writes && type != PTO_PARAM_COMMUTATIVE
      && (type != PTO_PARAM_INPUT || (map->hazards & PTO_HAZARD_WAR) == 0))
    return;
  for (uint32_t i = 0; writes && i < map->n;)
    if (oracle_covers (bytes, &map->entries[i].bytes))
      {
        clear_entry (&map->entries[i]);
        map->entries[i] = map->entries[--map->n];
      }
    else
      i++;
  for (uint32_t i = 0; i < map->n; i++)
    if (oracle_same (bytes, &map->entries[i].bytes))
      entry = &map->entries[i];
  if (entry == NULL)
    {
      map->entries = realloc (map->entries, (map->n + 1) * sizeof *map->entries);
      entry = &map->entries[map->n++];
      memset (entry, 0, sizeof *entry);
      entry->bytes = *bytes;
      entry->writer = PTO_TASK_NONE;
    }
  if (writes)
    entry->writer = task;
  else if (type == PTO_PARAM_COMMUTATIVE)
    update (entry, task);
  else
    {
      if (entry->open)
        {
          entry->writer = PTO_TASK_NONE;
          entry->before.count = 0;
          entry->open = false;
        }
      entry->readers = realloc (entry->readers, (entry->n_readers + 1) * sizeof *entry->readers);
      entry->readers[entry->n_readers++] = task;
    }
}

static int
by_task (const void *a, const void *b)
{
  pto_task_id x = ((const struct pto_dep *) a)->task;
  pto_task_id y = ((const struct pto_dep *) b)->task;

  return (x > y) - (x < y);
}

void
oracle_normalize (struct pto_deps *deps, const uint32_t *tails)
{
  uint32_t n = 0;

  if (deps->count > 1)
    qsort (deps->items, deps->count, sizeof *deps->items, by_task);
  for (uint32_t i = 0; i < deps->count; i++)
    if (tails != NULL && pto_task_is_retired (tails, deps->items[i].task))
      continue;
    else if (n > 0 && deps->items[n - 1].task == deps->items[i].task)
      deps->items[n - 1].kinds |= deps->items[i].kinds;
    else
      deps->items[n++] = deps->items[i];
  deps->count = n;
}
