/* address-range.c: by which addresses does a program know memory that it can not see?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "address-range.h"

#include <sys/mman.h>

/* The largest that there is room for: it is address space, and nothing else. */
#define REGION_BYTES (G_GUINT64_CONSTANT (1) << 42)
#define REGION_BYTES_MIN (G_GUINT64_CONSTANT (1) << 32)
/* Between two of them, so that what reaches beyond one is in none. */
#define PAGE_BYTES G_GUINT64_CONSTANT (4096)

typedef struct
{
  guint64 begin, end;
} Range;

static GMutex lock;
/* W: under lock, once, size first; R: any thread, acquire pairs with the release in make_region().
 * 0: there is none yet. */
static gsize region;
static gsize region_size;
static GArray *ranges;   /* by address; under lock */
static guint64 last_end; /* of what was given last: the next comes behind it, if it can */

static gboolean
make_region (void)
{
  gsize size = REGION_BYTES;
  gpointer address;

  if (region != 0)
    return TRUE;
  for (;;)
    {
      address = mmap (NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (address != MAP_FAILED)
        break;
      size /= 2;
      if (size < REGION_BYTES_MIN)
        return FALSE;
    }
  ranges = g_array_new (FALSE, FALSE, sizeof (Range));
  region_size = size;
  last_end = (guint64) (guintptr) address;
  g_atomic_pointer_set (&region, (gsize) address);
  return TRUE;
}

/* The first gap behind an address that has room; its index, or G_MAXUINT. */
static guint
find_gap (guint64 from, guint64 bytes, guint64 *begin)
{
  guint64 at = region;

  for (guint i = 0; i <= ranges->len; i++)
    {
      const Range *next = i < ranges->len ? &g_array_index (ranges, Range, i) : NULL;
      guint64 end = next != NULL ? next->begin : region + region_size;

      *begin = MAX (at, from);
      if (*begin <= end && bytes <= end - *begin)
        return i;
      if (next != NULL)
        at = next->end;
    }
  return G_MAXUINT;
}

guint64
pto_remote_range_reserve (guint64 bytes)
{
  Range range = { 0 };
  guint index = G_MAXUINT;

  if (bytes > REGION_BYTES)
    return 0;
  bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;
  g_mutex_lock (&lock);
  if (make_region ())
    {
      /* What a tensor names by mistake that has outlived its memory is not somebody else's at
       * once. */
      index = find_gap (last_end, bytes, &range.begin);
      if (index == G_MAXUINT)
        index = find_gap (0, bytes, &range.begin);
    }
  if (index != G_MAXUINT)
    {
      range.end = last_end = range.begin + bytes;
      g_array_insert_val (ranges, index, range);
    }
  g_mutex_unlock (&lock);
  return index != G_MAXUINT ? range.begin : 0;
}

void
pto_remote_range_release (guint64 address, guint64 bytes)
{
  g_mutex_lock (&lock);
  for (guint i = 0; i < ranges->len; i++)
    if (g_array_index (ranges, Range, i).begin == address)
      {
        g_array_remove_index (ranges, i);
        break;
      }
  g_mutex_unlock (&lock);
}

gboolean
pto_remote_range_has (guint64 address)
{
  gsize base = (gsize) g_atomic_pointer_get (&region);

  return base != 0 && address - base < region_size;
}

void
pto_remote_range_probe (void)
{
  g_mutex_lock (&lock);
  g_mutex_unlock (&lock);
}
