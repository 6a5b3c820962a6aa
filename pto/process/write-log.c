/* write-log.c: which memory has been written, as processes see it that keep copies of it?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "write-log.h"

#include "exec/pto-atomic.h"

#include <pthread.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>

/* W: parent, under the lock; R: anybody. Relaxed: head and fences order them. */
struct entry
{
  _Atomic uint64_t begin, end;
  _Atomic uint64_t child;
};

struct pto_writes
{
  /* Entries that were added. W: parent, release, under the lock; R: readers, acquire. */
  alignas (64) _Atomic uint64_t head;
  pthread_mutex_t lock; /* the parent's; innermost */
  struct pto_traffic traffic[PTO_CHILDREN_MAX];
  _Atomic uint32_t lives[PTO_CHILDREN_MAX]; /* W: the child; relaxed: its own */
  struct entry entries[PTO_WRITES_MAX];
};

struct pto_writes *
pto_writes_new (void)
{
  struct pto_writes *writes = mmap (NULL, sizeof *writes, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  if (writes == MAP_FAILED)
    return NULL;
  pthread_mutex_init (&writes->lock, NULL);
  return writes;
}

void
pto_writes_free (struct pto_writes *writes)
{
  if (writes == NULL)
    return;
  pthread_mutex_destroy (&writes->lock);
  munmap (writes, sizeof *writes);
}

void
pto_writes_add (struct pto_writes *writes, uint64_t begin, uint64_t end, uint32_t child)
{
  uint64_t head;
  struct entry *entry;

  if (begin >= end)
    return;
  pthread_mutex_lock (&writes->lock);
  head = pto_load_relaxed (&writes->head);
  entry = &writes->entries[head % PTO_WRITES_MAX];
  /* Before the entry is written over: whoever reads a word of the new one behind its fence in
   * pto_writes_next() sees a head that says that the old one is gone. */
  pto_fence_seq_cst ();
  pto_store_relaxed (&entry->begin, begin);
  pto_store_relaxed (&entry->end, end);
  pto_store_relaxed (&entry->child, child);
  /* Release: pairs with the acquire in pto_writes_next() and pto_writes_end(). */
  pto_store_release (&writes->head, head + 1);
  pthread_mutex_unlock (&writes->lock);
}

void
pto_writes_add_all (struct pto_writes *writes)
{
  pto_writes_add (writes, 0, UINT64_MAX, PTO_WRITES_BY_NOBODY);
}

uint64_t
pto_writes_end (const struct pto_writes *writes)
{
  return pto_load_acquire (&writes->head);
}

enum pto_writes_next
pto_writes_next (const struct pto_writes *writes, uint64_t *at, struct pto_write *write)
{
  uint64_t head = pto_load_acquire (&writes->head);
  const struct entry *entry = &writes->entries[*at % PTO_WRITES_MAX];

  if (*at == head)
    return PTO_WRITES_NONE;
  write->begin = pto_load_relaxed (&entry->begin);
  write->end = pto_load_relaxed (&entry->end);
  write->child = (uint32_t) pto_load_relaxed (&entry->child);
  /* Pairs with the fence in pto_writes_add(). The entry that is written just now is that of the
   * head itself. */
  pto_fence_seq_cst ();
  head = pto_load_relaxed (&writes->head);
  if (head - *at < PTO_WRITES_MAX)
    {
      ++*at;
      return PTO_WRITES_ONE;
    }
  *at = pto_load_acquire (&writes->head);
  return PTO_WRITES_MISSED;
}

struct pto_traffic *
pto_writes_traffic (struct pto_writes *writes, uint32_t child)
{
  return &writes->traffic[child];
}

uint32_t
pto_writes_begin_life (struct pto_writes *writes, uint32_t child)
{
  return pto_fetch_add_relaxed (&writes->lives[child], 1) + 1;
}

uint32_t
pto_writes_life (const struct pto_writes *writes, uint32_t child)
{
  return pto_load_relaxed (&writes->lives[child]);
}
