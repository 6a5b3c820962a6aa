/* memory-guards.c: which memory has guards around it that outlive a task?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A list by address, written by one thread of one process at a time, read by any thread of it and
 * of its children. A reader takes a copy and looks at the version before and after it (a sequence
 * lock): the version is odd while the list changes. A parent that died half way leaves it odd for
 * ever; its children, who die with it, find nothing then.
 */
#include "memory-guards.h"

#include "bits.h"

#include <pthread.h>
#include <stddef.h>
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
  _Atomic uint64_t before;
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
static _Alignas(64) uint8_t whole[PTO_FENCE_BYTES_MAX];

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
  pto_fence_write ((uint64_t) (uintptr_t) whole, PTO_FENCE_BYTES_MAX);
}

/* While the library is loaded: a fork that has begun calls none of what is registered during it. */
__attribute__ ((constructor)) static void
watch_forks (void)
{
  pthread_atfork (NULL, NULL, after_fork_in_child);
}

const uint8_t *
pto_fence_whole (void)
{
  pthread_once (&once, init_once);
  return whole;
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
  atomic_store_explicit (&to->before, get (&from->before), memory_order_relaxed);
}

/* Index of the first item that does not begin before the address, below count. */
static uint32_t
find_from (const struct list *list, uint32_t count, uint64_t address)
{
  return pto_bisect (i, count, get (&list->items[i].address) < address);
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
  atomic_store_explicit (&own->items[at].before, fence->before, memory_order_relaxed);
  atomic_store_explicit (&own->count, count + 1, memory_order_relaxed);
  end_change (own);
  return true;
}

bool
pto_fence_add (const struct pto_fence *fence)
{
  bool ok;

  pto_fence_mend (fence);
  pthread_mutex_lock (&lock);
  ok = make_own () && insert (fence);
  pthread_mutex_unlock (&lock);
  return ok;
}

/* Which of so many is at the address? false: none. Under the lock. */
static bool
find_own (uint64_t address, uint32_t *at, uint32_t *count)
{
  *count = own != NULL ? atomic_load_explicit (&own->count, memory_order_relaxed) : 0;
  *at = *count > 0 ? find_from (own, *count, address) : 0;
  return *at < *count && get (&own->items[*at].address) == address;
}

void
pto_fence_remove (uint64_t address)
{
  uint32_t count;
  uint32_t at;

  pthread_mutex_lock (&lock);
  if (find_own (address, &at, &count))
    {
      begin_change (own);
      for (uint32_t i = at + 1; i < count; i++)
        copy_item (&own->items[i - 1], &own->items[i]);
      atomic_store_explicit (&own->count, count - 1, memory_order_relaxed);
      end_change (own);
    }
  pthread_mutex_unlock (&lock);
}

void
pto_fence_leave (uint64_t address)
{
  uint32_t count;
  uint32_t at;

  pthread_mutex_lock (&lock);
  if (find_own (address, &at, &count))
    {
      begin_change (own);
      atomic_store_explicit (&own->items[at].guard, PTO_FENCE_GONE, memory_order_relaxed);
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
                                         .guard = get (&list->items[at].guard),
                                         .before = get (&list->items[at].before) };
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

/* --- what a guard holds --- */

/* The number of a guard that begins so many bytes behind the begin of it, a multiple of 4. */
static uint32_t
get_number (uint64_t address, uint64_t at)
{
  static const uint8_t order[] = { 0, 1, 2, 3, 3, 2, 1, 0, 2, 0, 3, 1, 1, 3, 0, 2 };
  uint32_t k = (uint32_t) (at / 4);

  return pto_fence_lanes_of (address)[order[k % 16]] ^ (k / 16 * 0x4d2c65d3u & 0x7e7e7e7eu);
}

/* What is wrong with it; 0: nothing. The lowest byte is the first one. */
static uint32_t
get_difference (uint64_t address, uint64_t at, uint64_t bytes)
{
  uint32_t expected = get_number (address, at);
  uint32_t found = expected;

  memcpy (&found, (const uint8_t *) (uintptr_t) address + at, bytes - at < 4 ? bytes - at : 4);
  return found ^ expected;
}

void
pto_fence_write_any (uint64_t address, uint64_t bytes)
{
  for (uint64_t at = 0; at < bytes; at += 4)
    {
      uint32_t number = get_number (address, at);

      memcpy ((uint8_t *) (uintptr_t) address + at, &number, bytes - at < 4 ? bytes - at : 4);
    }
}

bool
pto_fence_is_whole_any (uint64_t address, uint64_t bytes)
{
  uint32_t difference = 0;

  for (uint64_t at = 0; at < bytes; at += 4)
    difference |= get_difference (address, at, bytes);
  return difference == 0;
}

uint64_t
pto_fence_damage (const struct pto_fence *fence)
{
  uint64_t address = fence->address + fence->bytes;

  for (uint64_t end = (fence->guard + 3) / 4 * 4; end > 0; end -= 4)
    {
      uint32_t difference = get_difference (address, end - 4, fence->guard);

      if (difference != 0)
        return end - (uint64_t) __builtin_clz (difference) / 8;
    }
  return 0;
}

uint64_t
pto_fence_damage_before (const struct pto_fence *fence)
{
  uint64_t address = fence->address - fence->before;

  for (uint64_t at = 0; at < fence->before; at += 4)
    {
      uint32_t difference = get_difference (address, at, fence->before);

      if (difference != 0)
        return fence->before - at - (uint64_t) __builtin_ctz (difference) / 8;
    }
  return 0;
}

void
pto_fence_mend (const struct pto_fence *fence)
{
  pto_fence_write (fence->address - fence->before, fence->before);
  pto_fence_write (fence->address + fence->bytes, fence->guard);
}
