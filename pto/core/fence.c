/* fence.c: which memory has a guard behind it that outlives a task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A list by address, written by one thread of one process at a time, read by any thread of it and
 * of its children. A reader takes a copy and looks at the version before and after it (a sequence
 * lock): the version is odd while the list changes. A parent that died half way leaves it odd for
 * ever; its children, who die with it, find nothing then.
 */
#include "fence.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

/* Lists of the processes above this one: levels of a tree. */
#define LISTS_MAX 17u
/* A reader that meets a change under way looks again so often. */
#ifndef TRIES /* fewer where every step is explored */
#define TRIES 1000u
#endif

struct item
{
  _Atomic uint64_t address;
  _Atomic uint64_t bytes;
  _Atomic uint64_t guard;
};

struct list
{
  /* W: writers, under the lock of their process; R: anybody. The pairs are in begin_change(),
   * end_change() and read_list(). */
  _Atomic uint64_t version;
  _Atomic uint32_t count;
  struct item items[PTO_FENCES_MAX];
};

/* lists[0] to lists[n - 2] belong to ancestors. own: the last one; NULL: none yet. W: under the
 * lock, release; R: acquire. */
static _Atomic (struct list *) lists[LISTS_MAX];
_Atomic uint32_t pto_fence_lists;
static struct list *own;                                 /* under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* innermost */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint8_t pattern[PTO_FENCE_BYTES_MAX];

/* A child notes what it makes in a list of its own. */
static void
after_fork_in_child (void)
{
  pthread_mutex_init (&lock, NULL);
  own = NULL;
}

static void
init_once (void)
{
  for (uint32_t i = 0; i < PTO_FENCE_BYTES_MAX; i++)
    pattern[i] = (uint8_t) (0xa5 + 0x4d * i + i / 256);
}

/* While the library is loaded: a fork that has begun calls none of what is registered during it. */
__attribute__ ((constructor)) static void
watch_forks (void)
{
  pthread_atfork (NULL, NULL, after_fork_in_child);
}

const uint8_t *
pto_fence_pattern (void)
{
  pthread_once (&once, init_once);
  return pattern;
}

static bool
make_own (void)
{
  uint32_t n = atomic_load_explicit (&pto_fence_lists, memory_order_relaxed);
  void *memory;

  if (own != NULL)
    return true;
  if (n == LISTS_MAX)
    return false;
  memory = mmap (NULL, sizeof *own, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return false;
  madvise (memory, sizeof *own, MADV_DONTDUMP);
  own = memory;
  atomic_store_explicit (&lists[n], own, memory_order_relaxed);
  /* Release: the list is there before it counts; pairs with pto_fence_find() and
   * pto_fence_version(). */
  atomic_store_explicit (&pto_fence_lists, n + 1, memory_order_release);
  return true;
}

bool
pto_fence_init (void)
{
  bool ok;

  pthread_once (&once, init_once);
  pthread_mutex_lock (&lock);
  ok = make_own ();
  pthread_mutex_unlock (&lock);
  return ok;
}

static uint64_t
get (const _Atomic uint64_t *field)
{
  return atomic_load_explicit (field, memory_order_relaxed);
}

static void
copy_item (struct item *to, const struct item *from)
{
  atomic_store_explicit (&to->address, get (&from->address), memory_order_relaxed);
  atomic_store_explicit (&to->bytes, get (&from->bytes), memory_order_relaxed);
  atomic_store_explicit (&to->guard, get (&from->guard), memory_order_relaxed);
}

/* Index of the first item that does not begin before the address, below count. */
static uint32_t
find_from (const struct list *list, uint32_t count, uint64_t address)
{
  uint32_t low = 0;

  while (low < count)
    {
      uint32_t middle = low + (count - low) / 2;

      if (get (&list->items[middle].address) < address)
        low = middle + 1;
      else
        count = middle;
    }
  return low;
}

static void
begin_change (struct list *list)
{
  atomic_store_explicit (&list->version, get (&list->version) + 1, memory_order_relaxed);
  /* Release fence: a reader that sees anything of the change sees, behind its acquire fence, that
   * the version is not what it was. */
  atomic_thread_fence (memory_order_release);
}

static void
end_change (struct list *list)
{
  /* Release: whoever reads this version reads the items; pairs with the acquire in read_list(). */
  atomic_store_explicit (&list->version, get (&list->version) + 1, memory_order_release);
}

static bool
insert (const struct pto_fence *fence)
{
  uint32_t count = atomic_load_explicit (&own->count, memory_order_relaxed);
  uint32_t at = find_from (own, count, fence->address);

  if (count == PTO_FENCES_MAX)
    return false;
  begin_change (own);
  for (uint32_t i = count; i > at; i--)
    copy_item (&own->items[i], &own->items[i - 1]);
  atomic_store_explicit (&own->items[at].address, fence->address, memory_order_relaxed);
  atomic_store_explicit (&own->items[at].bytes, fence->bytes, memory_order_relaxed);
  atomic_store_explicit (&own->items[at].guard, fence->guard, memory_order_relaxed);
  atomic_store_explicit (&own->count, count + 1, memory_order_relaxed);
  end_change (own);
  return true;
}

bool
pto_fence_add (const struct pto_fence *fence)
{
  bool ok;

  pthread_once (&once, init_once);
  pto_fence_mend (fence);
  pthread_mutex_lock (&lock);
  ok = make_own () && insert (fence);
  pthread_mutex_unlock (&lock);
  return ok;
}

void
pto_fence_remove (uint64_t address)
{
  uint32_t count;
  uint32_t at;

  pthread_mutex_lock (&lock);
  count = own != NULL ? atomic_load_explicit (&own->count, memory_order_relaxed) : 0;
  at = count > 0 ? find_from (own, count, address) : 0;
  if (at < count && get (&own->items[at].address) == address)
    {
      begin_change (own);
      for (uint32_t i = at + 1; i < count; i++)
        copy_item (&own->items[i - 1], &own->items[i]);
      atomic_store_explicit (&own->count, count - 1, memory_order_relaxed);
      end_change (own);
    }
  pthread_mutex_unlock (&lock);
}

/* 1: found, 0: not there, -1: the list kept changing. */
static int
read_list (const struct list *list, uint64_t address, struct pto_fence *fence, uint32_t tries)
{
  for (; tries > 0; tries--)
    {
      /* Acquire: pairs with end_change(). */
      uint64_t before = atomic_load_explicit (&list->version, memory_order_acquire);
      uint32_t count = atomic_load_explicit (&list->count, memory_order_relaxed);
      uint32_t at = 0;

      if (count > 0 && count <= PTO_FENCES_MAX)
        {
          at = find_from (list, count, address);
          if (at == count || get (&list->items[at].address) != address)
            at--; /* UINT32_MAX: all begin behind it */
          if (at < count)
            *fence = (struct pto_fence){ .address = get (&list->items[at].address),
                                         .bytes = get (&list->items[at].bytes),
                                         .guard = get (&list->items[at].guard) };
        }
      /* Pairs with the fence in begin_change(). */
      atomic_thread_fence (memory_order_acquire);
      if (before % 2 == 0 && get (&list->version) == before)
        return count > 0 && at < count && address - fence->address < fence->bytes;
    }
  return -1;
}

bool
pto_fence_find (uint64_t address, struct pto_fence *fence)
{
  /* Acquire: pairs with make_own(). */
  for (uint32_t n = atomic_load_explicit (&pto_fence_lists, memory_order_acquire); n-- > 0;)
    {
      const struct list *list = atomic_load_explicit (&lists[n], memory_order_relaxed);
      int found = read_list (list, address, fence, TRIES);

      if (found < 0)
        {
          /* Its writer was interrupted. One of this process goes on while this one waits. */
          pthread_mutex_lock (&lock);
          found = read_list (list, address, fence, 1);
          pthread_mutex_unlock (&lock);
        }
      if (found > 0)
        return true;
    }
  return false;
}

uint64_t
pto_fence_version (void)
{
  uint64_t sum = 0;

  /* Acquire: pairs with make_own(). */
  for (uint32_t n = atomic_load_explicit (&pto_fence_lists, memory_order_acquire); n-- > 0;)
    sum += get (&atomic_load_explicit (&lists[n], memory_order_relaxed)->version);
  return sum;
}

uint64_t
pto_fence_damage (const struct pto_fence *fence)
{
  const uint8_t *guard = (const uint8_t *) (uintptr_t) (fence->address + fence->bytes);
  uint64_t n = fence->guard;

  if (memcmp (guard, pattern, n) == 0)
    return 0;
  while (n > 0 && guard[n - 1] == pattern[n - 1])
    n--;
  return n;
}

void
pto_fence_mend (const struct pto_fence *fence)
{
  memcpy ((void *) (uintptr_t) (fence->address + fence->bytes), pattern, fence->guard);
}
