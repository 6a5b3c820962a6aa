/* arena.c: where does memory come from that children see although it was made after them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "arena.h"

#include "core/bits.h"
#include "core/memory-guards.h"
#include "exec/memory-file.h"
#include "exec/translate.h"
#include "spans.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Regions of processes above this one whose descriptors are remembered: levels of a tree. */
#define ANCESTORS_MAX 16u

struct region
{
  char *base; /* NULL: none */
  uint64_t size;
  int fd; /* -1: an anonymous mapping */
};

/* All under the lock. */
static struct
{
  struct region own;
  uint64_t page;
  uint32_t users;
  struct pto_spans pieces; /* that are given out, whole pages; tag: the begin, so that none joins */
  struct region ancestors[ANCESTORS_MAX];
  uint32_t n_ancestors;
} arena;

/* Innermost: nothing is locked under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child sees what its parent gave out, at its place, and gives none of it out or back. The list
 * of pieces may be half changed by a thread that is not here any more: it is left where it lies. */
static void
after_fork_in_child (void)
{
  pthread_mutex_init (&lock, NULL);
  if (arena.own.base != NULL && arena.n_ancestors < ANCESTORS_MAX)
    arena.ancestors[arena.n_ancestors++] = arena.own;
  arena.own.base = NULL;
  arena.pieces = (struct pto_spans){ 0 };
  arena.users = 0;
}

static void
init_once (void)
{
  arena.page = (uint64_t) sysconf (_SC_PAGESIZE);
  pthread_atfork (NULL, NULL, after_fork_in_child);
}

/* Whole pages. */
static uint64_t
page_bytes (uint64_t bytes)
{
  return (bytes + arena.page - 1) / arena.page * arena.page;
}

static enum pto_status
make_region (uint64_t size, struct pto_report *report)
{
  int fd = -1;
  void *memory;

  if (!pto_spans_reserve (&arena.pieces, 1))
    return pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for the arena's list"));
  memory = pto_memory_file_map ("pto-arena", size, &fd);
  if (memory == NULL)
    return pto_report_set (report, PTO_STATUS_NO_MEMORY,
                           _ ("no address space for an arena of %llu bytes: %s: set arena to less"),
                           (unsigned long long) size, strerror (errno));
  /* Tensors would fill core dumps. */
  madvise (memory, size, MADV_DONTDUMP);
  arena.own = (struct region){ .base = memory, .size = size, .fd = fd };
  return PTO_OK;
}

static void
drop_region (void)
{
  if (arena.own.base == NULL || arena.users > 0 || arena.pieces.n > 0)
    return;
  pto_spans_clear (&arena.pieces);
  munmap (arena.own.base, arena.own.size);
  if (arena.own.fd >= 0)
    close (arena.own.fd);
  arena.own.base = NULL;
}

enum pto_status
pto_arena_acquire (uint64_t size, struct pto_report *report)
{
  enum pto_status status = PTO_OK;

  pthread_once (&once, init_once);
  if (size == 0 || size > (uint64_t) INT64_MAX - arena.page)
    return pto_report_set (
        report, PTO_STATUS_INVALID_ARGS,
        _ ("an arena of %llu bytes can not be made: set arena to something else"),
        (unsigned long long) size);
  /* Children know what lies behind buffers that are made after them. */
  if (!pto_fence_init ())
    return pto_report_set (report, PTO_STATUS_NO_MEMORY, _ ("no memory for the list of buffers"));
  size = page_bytes (size);
  pthread_mutex_lock (&lock);
  if (arena.own.base == NULL)
    status = make_region (size, report);
  if (status == PTO_OK)
    arena.users++;
  pthread_mutex_unlock (&lock);
  return status;
}

void
pto_arena_release (void)
{
  pthread_mutex_lock (&lock);
  /* None: acquired by the process that this one is a copy of. */
  if (arena.users > 0)
    {
      arena.users--;
      drop_region ();
    }
  pthread_mutex_unlock (&lock);
}

/* The address of the first gap that is large enough; 0: none. */
static uint64_t
take_piece (uint64_t bytes)
{
  uint64_t end = (uint64_t) (uintptr_t) arena.own.base + arena.own.size;
  uint64_t at = (uint64_t) (uintptr_t) arena.own.base;

  for (uint32_t i = 0; i < arena.pieces.n && arena.pieces.list[i].begin - at < bytes; i++)
    at = arena.pieces.list[i].end;
  return end - at >= bytes && pto_spans_set (&arena.pieces, at, at + bytes, at) ? at : 0;
}

uint64_t
pto_arena_alloc (uint64_t bytes)
{
  uint64_t address = 0;

  pthread_mutex_lock (&lock);
  if (arena.own.base != NULL && bytes > 0 && bytes <= arena.own.size)
    address = take_piece (page_bytes (bytes));
  pthread_mutex_unlock (&lock);
  return address;
}

static bool
is_inside (const struct region *region, uint64_t address)
{
  return region->base != NULL && address >= (uint64_t) (uintptr_t) region->base
         && address - (uint64_t) (uintptr_t) region->base < region->size;
}

void
pto_arena_free (uint64_t address, uint64_t bytes)
{
  void *memory = (void *) (uintptr_t) address;

  pthread_mutex_lock (&lock);
  if (is_inside (&arena.own, address))
    {
      uint32_t i = pto_spans_find (&arena.pieces, address);

      bytes = page_bytes (bytes);
      assert (i < arena.pieces.n && arena.pieces.list[i].begin == address
              && arena.pieces.list[i].end == address + bytes && "as it was given out");
      /* A hole in the file: zeros when it is touched again, in every process. */
      if (madvise (memory, bytes, MADV_REMOVE) != 0)
        memset (memory, 0, bytes);
      pto_spans_drop (&arena.pieces, i);
      drop_region ();
    }
  pthread_mutex_unlock (&lock);
}

int
pto_arena_fd (uint64_t address, uint64_t *offset)
{
  const struct region *found = NULL;
  int fd = -1;

  pthread_mutex_lock (&lock);
  if (is_inside (&arena.own, address))
    found = &arena.own;
  for (uint32_t i = 0; found == NULL && i < arena.n_ancestors; i++)
    if (is_inside (&arena.ancestors[i], address))
      found = &arena.ancestors[i];
  if (found != NULL)
    {
      fd = found->fd;
      *offset = address - (uint64_t) (uintptr_t) found->base;
    }
  pthread_mutex_unlock (&lock);
  return fd;
}

bool
pto_arena_range (uint64_t *address, uint64_t *size)
{
  bool found;

  pthread_mutex_lock (&lock);
  found = arena.own.base != NULL;
  *address = (uint64_t) (uintptr_t) arena.own.base;
  *size = found ? arena.own.size : 0;
  pthread_mutex_unlock (&lock);
  return found;
}

/* --- what is shared --- */

/* A part of the address space, as a line of /proc/self/maps tells it. */
struct range
{
  uint64_t begin, end;
  uint64_t offset, inode; /* of begin in what is mapped, and that: also of memory without a name */
  dev_t device;
  bool shared, readable, writable;
  bool forks;   /* children get it (maps does not say: true) */
  bool checked; /* in the fork's list: mentioned, and found to be as it was */
};

struct ranges
{
  uint32_t n, size;
  struct range *ranges; /* by address */
};

struct pto_shared_map
{
  struct ranges at_fork; /* what children see */
  int maps;              /* of this process, when it can be asked; -1: it can not */
};

/* "begin-end rwxs offset major:minor inode   name"; false: another line of smaps. */
static bool
parse_mapping (const char *line, struct range *range)
{
  unsigned major;
  char *end;

  *range = (struct range){ .begin = strtoull (line, &end, 16), .forks = true };
  if (end == line || *end != '-')
    return false;
  range->end = strtoull (end + 1, &end, 16);
  if (strnlen (end, 6) < 6)
    return false;
  range->readable = end[1] == 'r';
  range->writable = end[2] == 'w';
  range->shared = end[4] == 's';
  range->offset = strtoull (end + 6, &end, 16);
  major = (unsigned) strtoul (end, &end, 16);
  range->device = makedev (major, *end == ':' ? (unsigned) strtoul (end + 1, &end, 16) : 0);
  range->inode = strtoull (end, &end, 10);
  return true;
}

/* "VmFlags: rd wr sh mr mw me dc": dc is MADV_DONTFORK. */
static bool
says_dont_fork (const char *line)
{
  return strncmp (line, "VmFlags:", 8) == 0 && strstr (line, " dc") != NULL;
}

static bool
add_range (struct ranges *list, const struct range *range)
{
  if (list->n == list->size)
    {
      uint32_t size = list->size + list->size / 2 + 256;
      struct range *more = realloc (list->ranges, size * sizeof *more);

      if (more == NULL)
        return false;
      list->ranges = more;
      list->size = size;
    }
  list->ranges[list->n++] = *range;
  return true;
}

/* Of maps or smaps. Returns false with errno if it can not be known. */
static bool
read_ranges (struct ranges *list, const char *path)
{
  FILE *file = fopen (path, "re");
  char buffer[8192]; /* more than the kernel gives at a time */
  char *line = NULL;
  size_t room = 0;
  bool ok = true;
  int error;

  *list = (struct ranges){ 0 };
  if (file == NULL)
    return false;
  setvbuf (file, buffer, _IOFBF, sizeof buffer);
  while (ok && getline (&line, &room, file) >= 0)
    {
      struct range range;

      if (parse_mapping (line, &range))
        ok = add_range (list, &range);
      else if (list->n > 0 && says_dont_fork (line))
        list->ranges[list->n - 1].forks = false;
    }
  error = errno;
  ok = ok && feof (file);
  free (line);
  fclose (file);
  if (!ok)
    free (list->ranges);
  errno = error;
  return ok;
}

/* The one that the address lies in, or NULL. */
static struct range *
range_at (const struct ranges *list, uint64_t address)
{
  uint32_t low = pto_bisect (i, list->n, list->ranges[i].end <= address);

  /* The first that ends behind address. */
  return low < list->n && list->ranges[low].begin <= address ? &list->ranges[low] : NULL;
}

/* Since Linux 6.11 /proc/self/maps can be asked about one address; the C library's headers do not
 * say so everywhere. */
struct question
{
  uint64_t size, flags, address;
  uint64_t begin, end, vma_flags, page_size, offset, inode;
  uint32_t major, minor, name_size, build_id_size;
  uint64_t name, build_id;
};
#define ASK _IOWR ('f', 17, struct question)
#define ANSWER_READABLE 1u
#define ANSWER_WRITABLE 2u
#define ANSWER_SHARED 8u

/* /proc/self/maps when it can be asked, else -1. */
static int
open_maps (void)
{
  /* The next one will do, should there be none at 0. */
  struct question any = { .size = sizeof any, .flags = 0x10 };
  int file = open ("/proc/self/maps", O_RDONLY | O_CLOEXEC);

  if (file >= 0 && ioctl (file, ASK, &any) != 0)
    {
      close (file);
      file = -1;
    }
  return file;
}

struct pto_shared_map *
pto_shared_map_new (struct pto_report *report)
{
  struct pto_shared_map *map = malloc (sizeof *map);
  uint32_t n = 0;

  /* A kernel may be built without the longer list. */
  if (map == NULL
      || (!read_ranges (&map->at_fork, "/proc/self/smaps")
          && !read_ranges (&map->at_fork, "/proc/self/maps")))
    {
      pto_report_set (report,
                      map == NULL || errno == ENOMEM ? PTO_STATUS_NO_MEMORY : PTO_STATUS_SYSTEM,
                      _ ("which memory is shared can not be known: /proc/self/maps: %s"),
                      strerror (map == NULL ? ENOMEM : errno));
      free (map);
      return NULL;
    }
  map->maps = open_maps ();
  for (uint32_t i = 0; i < map->at_fork.n; i++)
    if (map->at_fork.ranges[i].shared && map->at_fork.ranges[i].forks)
      map->at_fork.ranges[n++] = map->at_fork.ranges[i];
  map->at_fork.n = n;
  return map;
}

void
pto_shared_map_free (struct pto_shared_map *map)
{
  if (map != NULL && map->maps >= 0)
    close (map->maps);
  if (map != NULL)
    free (map->at_fork.ranges);
  free (map);
}

void
pto_shared_map_look_again (struct pto_shared_map *map)
{
  for (uint32_t i = 0; i < map->at_fork.n; i++)
    map->at_fork.ranges[i].checked = false;
}

/* --- as it is now --- */

struct now
{
  int file;           /* maps, when it can be asked; -1: */
  struct ranges list; /* all of it */
  int *kept;          /* where file stays open; NULL: nowhere */
};

static bool
now_open (struct now *now)
{
  *now = (struct now){ .file = open_maps () };
  return now->file >= 0 || read_ranges (&now->list, "/proc/self/maps");
}

static void
now_close (struct now *now)
{
  if (now->file >= 0 && now->kept == NULL)
    close (now->file);
  free (now->list.ranges);
}

/* The same for who asks in each run: to open it takes longer than to ask. */
static bool
now_open_kept (struct pto_shared_map *map, struct now *now)
{
  *now = (struct now){ .file = map->maps, .kept = &map->maps };
  return now->file >= 0 || read_ranges (&now->list, "/proc/self/maps");
}

/* A file that is kept may have been closed by a program that closes all, and its number be another
 * file's: that one has no answer, and is not ours to close. */
static bool
ask (struct now *now, struct question *question)
{
  if (ioctl (now->file, ASK, question) == 0)
    return true;
  if (errno == ENOENT || now->kept == NULL)
    return false;
  now->file = *now->kept = open_maps ();
  return now->file >= 0 && ioctl (now->file, ASK, question) == 0;
}

/* What lies at the address; false: nothing. */
static bool
now_at (struct now *now, uint64_t address, struct range *range)
{
  struct question q = { .size = sizeof q, .address = address };
  const struct range *found;

  if (now->file < 0)
    {
      found = range_at (&now->list, address);
      if (found != NULL)
        *range = *found;
      return found != NULL;
    }
  if (!ask (now, &q))
    return false;
  *range = (struct range){ .begin = q.begin,
                           .end = q.end,
                           .offset = q.offset,
                           .inode = q.inode,
                           .device = makedev (q.major, q.minor),
                           .shared = (q.vma_flags & ANSWER_SHARED) != 0,
                           .readable = (q.vma_flags & ANSWER_READABLE) != 0,
                           .writable = (q.vma_flags & ANSWER_WRITABLE) != 0 };
  return true;
}

bool
pto_mapping_around (uint64_t address, uint64_t bytes, struct pto_mapping *mapping)
{
  uint64_t at = address, end = address + bytes;
  struct range range;
  struct now now;

  *mapping = (struct pto_mapping){ .writable = true };
  if (end < address)
    return false;
  if (!now_open (&now))
    {
      mapping->trouble = errno != 0 ? errno : ENOMEM;
      return false;
    }
  do
    {
      if (!now_at (&now, at, &range) || !range.readable)
        break;
      if (at == address)
        mapping->begin = range.begin;
      mapping->writable = mapping->writable && range.writable;
      mapping->end = at = range.end;
    }
  while (at < end);
  now_close (&now);
  return at >= end && mapping->end > address;
}

/* Both show the same bytes of the same thing at an address that lies in both. */
static bool
is_same (const struct range *a, const struct range *b)
{
  return a->shared == b->shared && a->device == b->device && a->inode == b->inode
         && a->offset - a->begin == b->offset - b->begin;
}

/* The first byte that children do not see as this process does; end: none. */
static uint64_t
agrees_until (const struct pto_shared_map *map, struct now *now, uint64_t begin, uint64_t end)
{
  while (begin < end)
    {
      const struct range *then = range_at (&map->at_fork, begin);
      struct range here;

      if (then == NULL || !now_at (now, begin, &here) || !is_same (then, &here))
        return begin;
      begin = then->end < here.end ? then->end : here.end;
    }
  return end;
}

static bool
is_checked (const struct pto_shared_map *map, uint64_t begin, uint64_t end)
{
  while (begin < end)
    {
      const struct range *range = range_at (&map->at_fork, begin);

      if (range == NULL || !range->checked)
        return false;
      begin = range->end;
    }
  return true;
}

bool
pto_shared_map_has_changed (struct pto_shared_map *map, uint64_t *address)
{
  bool changed = false;
  struct now now;
  uint32_t i = 0;

  while (i < map->at_fork.n && !map->at_fork.ranges[i].checked)
    i++;
  if (i == map->at_fork.n || !now_open_kept (map, &now))
    return false;
  for (; i < map->at_fork.n && !changed; i++)
    {
      const struct range *range = &map->at_fork.ranges[i];
      uint64_t until;
      struct range here;

      if (!range->checked)
        continue;
      until = agrees_until (map, &now, range->begin, range->end);
      changed = until < range->end && now_at (&now, until, &here) && here.shared;
      *address = until;
    }
  now_close (&now);
  return changed;
}

static bool
is_writable (const struct pto_shared_map *map, uint64_t begin, uint64_t end)
{
  while (begin < end)
    {
      const struct range *range = range_at (&map->at_fork, begin);

      if (!range->writable)
        return false;
      begin = range->end;
    }
  return true;
}

/* Does all of what they lie in agree? Then nobody has to ask for that again. */
static bool
mark_checked (struct pto_shared_map *map, struct now *now, uint64_t begin, uint64_t end)
{
  bool all = true;

  while (begin < end)
    {
      struct range *then = range_at (&map->at_fork, begin);

      if (then == NULL)
        return false;
      then->checked = then->checked || agrees_until (map, now, then->begin, then->end) == then->end;
      all = all && then->checked;
      begin = then->end;
    }
  return all;
}

/* Why not? Of the first byte that children do not see. */
static enum pto_visibility
check (struct pto_shared_map *map, uint64_t begin, uint64_t end)
{
  enum pto_visibility visibility = PTO_VISIBLE;
  struct range here;
  uint64_t until;
  struct now now;

  /* Unknown counts as private, which is the usual reason. */
  if (!now_open_kept (map, &now))
    return PTO_VISIBLE_PRIVATE;
  until = mark_checked (map, &now, begin, end) ? end : agrees_until (map, &now, begin, end);
  if (until < end)
    visibility = !now_at (&now, until, &here) ? PTO_VISIBLE_UNMAPPED
                 : here.shared                ? PTO_VISIBLE_TOO_LATE
                                              : PTO_VISIBLE_PRIVATE;
  now_close (&now);
  return visibility;
}

enum pto_visibility
pto_shared_map_check (struct pto_shared_map *map, uint64_t address, uint64_t bytes, bool write)
{
  uint64_t room = UINT64_MAX - address;
  uint64_t end = bytes > room ? UINT64_MAX : address + (bytes > 0 ? bytes : 1);
  enum pto_visibility visibility = PTO_VISIBLE;

  /* Nothing of it would be looked at. */
  if (room == 0)
    return PTO_VISIBLE_UNMAPPED;
  if (!is_checked (map, address, end))
    visibility = check (map, address, end);
  if (visibility == PTO_VISIBLE && write && !is_writable (map, address, end))
    visibility = PTO_VISIBLE_READ_ONLY;
  return visibility;
}
