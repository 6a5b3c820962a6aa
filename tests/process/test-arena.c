/* test-arena.c: do children see memory that was made after them, and is what they can not see told
 * apart?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/process/arena.h"

#include <glib.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_S 60
#define MIB (UINT64_C (1) << 20)
#define GIB (UINT64_C (1) << 30)

static uint64_t page;

static guint
count_entries (const char *path)
{
  DIR *directory = opendir (path);
  guint n = 0;

  g_assert_nonnull (directory);
  while (readdir (directory) != NULL)
    n++;
  closedir (directory);
  return n;
}

/* Mappings of the arena, under whichever name. */
static guint
count_mappings (void)
{
  char *text;
  guint n = 0;

  g_assert_true (g_file_get_contents ("/proc/self/maps", &text, NULL, NULL));
  for (char *at = text; (at = strstr (at, "memfd:pto-arena")) != NULL; at++)
    n++;
  g_free (text);
  return n;
}

static void
run_test (gconstpointer data)
{
  guint fds = count_entries ("/proc/self/fd");

  alarm (DEADLINE_S);
  ((void (*) (void)) (uintptr_t) data) ();
  g_assert_cmpuint (count_mappings (), ==, 0);
  g_assert_cmpuint (count_entries ("/proc/self/fd"), ==, fds);
  alarm (0);
}

static void
add (const char *path, void (*test) (void))
{
  g_test_add_data_func (path, (gconstpointer) (uintptr_t) test, run_test);
}

static void
acquire (uint64_t size)
{
  struct pto_report report = { 0 };

  g_assert_cmpint (pto_arena_acquire (size, &report), ==, PTO_OK);
  g_assert_cmpstr (report.message, ==, "");
}

static uint64_t
alloc (uint64_t bytes)
{
  uint64_t address = pto_arena_alloc (bytes);

  g_assert_cmpuint (address, !=, 0);
  g_assert_cmpuint (address % page, ==, 0);
  return address;
}

static volatile uint8_t *
at (uint64_t address)
{
  return (volatile uint8_t *) (uintptr_t) address;
}

/* Runs function in a copy of this process; it gives true when all is right. */
static void
in_child (bool (*function) (void *), void *data)
{
  int status;
  pid_t pid = fork ();

  if (pid == 0)
    {
      alarm (DEADLINE_S);
      _exit (function (data) ? 0 : 1);
    }
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (status, ==, 0);
}

/* --- pieces --- */

static void
test_counted (void)
{
  uint64_t address, size, piece;

  g_assert_false (pto_arena_range (&address, &size));
  g_assert_cmpuint (pto_arena_alloc (1), ==, 0);
  acquire (MIB + 1);
  g_assert_true (pto_arena_range (&address, &size));
  g_assert_cmpuint (size, ==, MIB + page);
  /* Another one uses the same; its size does not count. */
  acquire (GIB);
  g_assert_true (pto_arena_range (&address, &size));
  g_assert_cmpuint (size, ==, MIB + page);
  g_assert_cmpuint (count_mappings (), ==, 1);
  pto_arena_release ();
  piece = alloc (1);
  pto_arena_release ();
  /* The piece is in use still, and so is the region. */
  *at (piece) = 1;
  g_assert_true (pto_arena_range (&address, &size));
  pto_arena_free (piece, 1);
  g_assert_false (pto_arena_range (&address, &size));
  pto_arena_release ();
}

static void
test_full_and_first_fit (void)
{
  uint64_t a, b, c, d;

  acquire (8 * page);
  g_assert_cmpuint (pto_arena_alloc (8 * page + 1), ==, 0);
  g_assert_cmpuint (pto_arena_alloc (UINT64_MAX), ==, 0);
  g_assert_cmpuint (pto_arena_alloc (0), ==, 0);
  a = alloc (2 * page);
  b = alloc (2 * page - 5);
  c = alloc (3 * page);
  d = alloc (1);
  g_assert_cmpuint (b, ==, a + 2 * page);
  g_assert_cmpuint (c, ==, a + 4 * page);
  g_assert_cmpuint (d, ==, a + 7 * page);
  g_assert_cmpuint (pto_arena_alloc (1), ==, 0);
  /* In every order the pieces melt together. */
  pto_arena_free (b, 2 * page - 5);
  g_assert_cmpuint (pto_arena_alloc (3 * page), ==, 0);
  pto_arena_free (c, 3 * page);
  g_assert_cmpuint (alloc (5 * page), ==, b);
  pto_arena_free (a, 2 * page);
  pto_arena_free (d, 1);
  pto_arena_free (b, 5 * page);
  g_assert_cmpuint (alloc (8 * page), ==, a);
  pto_arena_free (a, 8 * page);
  pto_arena_release ();
}

/* Zeroed each time, and given back to the system in between. */
static void
test_zeroed (void)
{
  uint64_t piece, offset;
  struct stat before, after;
  int fd;

  acquire (GIB);
  piece = alloc (4 * MIB);
  fd = pto_arena_fd (piece, &offset);
  g_assert_cmpint (fd, >=, 0);
  g_assert_cmpint (fstat (fd, &before), ==, 0);
  g_assert_cmpint (before.st_blocks, ==, 0);
  for (uint64_t i = 0; i < 4 * MIB; i += page)
    {
      g_assert_cmpint (*at (piece + i), ==, 0);
      *at (piece + i + i / page % page) = 0xa5;
    }
  g_assert_cmpint (fstat (fd, &after), ==, 0);
  g_assert_cmpint (after.st_blocks, ==, 4 * MIB / 512);
  pto_arena_free (piece, 4 * MIB);
  g_assert_cmpint (fstat (fd, &after), ==, 0);
  g_assert_cmpint (after.st_blocks, ==, 0);
  g_assert_cmpuint (alloc (4 * MIB), ==, piece);
  for (uint64_t i = 0; i < 4 * MIB; i += page)
    g_assert_cmpint (*at (piece + i + i / page % page), ==, 0);
  pto_arena_free (piece, 4 * MIB);
  pto_arena_release ();
}

/* Random pieces never overlap, none is refused that fits, all comes back. */
static void
test_random (void)
{
  enum
  {
    PAGES = 128,
    N = 40
  };
  GRand *rand = g_rand_new_with_seed (4);
  uint64_t base, size, address[N] = { 0 }, bytes[N];
  guint8 taken[PAGES] = { 0 };

  acquire (PAGES * page);
  g_assert_true (pto_arena_range (&base, &size));
  for (int round = 0; round < 20000; round++)
    {
      int i = g_rand_int_range (rand, 0, N);
      uint64_t n, run = 0, first = PAGES;

      if (address[i] != 0)
        {
          memset (taken + (address[i] - base) / page, 0, (bytes[i] + page - 1) / page);
          pto_arena_free (address[i], bytes[i]);
          address[i] = 0;
          continue;
        }
      bytes[i] = (uint64_t) g_rand_int_range (rand, 1, 20 * (gint32) page);
      n = (bytes[i] + page - 1) / page;
      for (uint64_t p = 0; p < PAGES && first == PAGES; p++)
        {
          run = taken[p] ? 0 : run + 1;
          if (run == n)
            first = p + 1 - n;
        }
      address[i] = pto_arena_alloc (bytes[i]);
      g_assert_cmpuint (address[i], ==, first == PAGES ? 0 : base + first * page);
      if (address[i] != 0)
        memset (taken + first, 1, n);
    }
  for (int i = 0; i < N; i++)
    if (address[i] != 0)
      pto_arena_free (address[i], bytes[i]);
  g_assert_cmpuint (alloc (PAGES * page), ==, base);
  pto_arena_free (base, PAGES * page);
  pto_arena_release ();
  g_rand_free (rand);
}

static void
test_refused (void)
{
  struct pto_report report = { 0 };
  struct rlimit limit, small;

  g_assert_cmpint (pto_arena_acquire (0, &report), ==, PTO_STATUS_INVALID_ARGS);
  g_assert_nonnull (strstr (report.message, "set arena"));
  report.status = PTO_OK;
  g_assert_cmpint (pto_arena_acquire (UINT64_MAX, &report), ==, PTO_STATUS_INVALID_ARGS);
  report.status = PTO_OK;
  /* More than there are addresses. */
  g_assert_cmpint (pto_arena_acquire (UINT64_C (1) << 60, &report), ==, PTO_STATUS_NO_MEMORY);
  g_assert_nonnull (strstr (report.message, "set arena to less"));

  /* A file of that size would end the program by a signal: it goes without a file. */
  g_assert_cmpint (getrlimit (RLIMIT_FSIZE, &limit), ==, 0);
  small = limit;
  small.rlim_cur = MIB;
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &small), ==, 0);
  acquire (GIB);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &limit), ==, 0);
  {
    uint64_t piece = alloc (3 * page), offset;

    g_assert_cmpint (pto_arena_fd (piece, &offset), ==, -1);
    memset ((void *) (uintptr_t) piece, 0x5a, 3 * page);
    pto_arena_free (piece, 3 * page);
    g_assert_cmpuint (alloc (3 * page), ==, piece);
    g_assert_cmpint (*at (piece + 2 * page), ==, 0);
    pto_arena_free (piece, 3 * page);
  }
  pto_arena_release ();
}

static void
test_descriptor (void)
{
  uint64_t a, b, offset;
  uint8_t *other;
  int fd;

  acquire (MIB);
  a = alloc (page);
  b = alloc (2 * page);
  fd = pto_arena_fd (b + 100, &offset);
  g_assert_cmpint (fd, >=, 0);
  g_assert_cmpint (fcntl (fd, F_GETFD), ==, FD_CLOEXEC);
  g_assert_cmpuint (offset, ==, page + 100);
  *at (b) = 77;
  other = mmap (NULL, page, PROT_READ, MAP_SHARED, fd, (off_t) page);
  g_assert_true (other != MAP_FAILED);
  g_assert_cmpint (other[0], ==, 77);
  munmap (other, page);
  g_assert_cmpint (pto_arena_fd ((uint64_t) (uintptr_t) &page, &offset), ==, -1);
  pto_arena_free (a, page);
  pto_arena_free (b, 2 * page);
  pto_arena_release ();
}

/* --- children --- */

struct shared
{
  int go[2], done[2];
};

static bool
use_late_memory (void *data)
{
  struct shared *shared = data;
  uint64_t address;

  while (read (shared->go[0], &address, sizeof address) == (ssize_t) sizeof address && address != 0)
    {
      for (int i = 0; i < 100; i++)
        at (address)[i] = (uint8_t) (at (address)[i] + i);
      if (write (shared->done[1], "d", 1) != 1)
        return false;
    }
  return true;
}

static void
test_children_see_what_was_made_after_them (void)
{
  struct shared shared;
  uint64_t address, end = 0;
  int status;
  char byte;
  pid_t pid;

  acquire (16 * GIB);
  g_assert_cmpint (pipe2 (shared.go, O_CLOEXEC), ==, 0);
  g_assert_cmpint (pipe2 (shared.done, O_CLOEXEC), ==, 0);
  pid = fork ();
  if (pid == 0)
    {
      alarm (DEADLINE_S);
      _exit (use_late_memory (&shared) ? 0 : 1);
    }
  for (int round = 0; round < 10; round++)
    {
      address = alloc (100);
      for (int i = 0; i < 100; i++)
        at (address)[i] = (uint8_t) round;
      g_assert_cmpint (write (shared.go[1], &address, sizeof address), ==, sizeof address);
      g_assert_cmpint (read (shared.done[0], &byte, 1), ==, 1);
      for (int i = 0; i < 100; i++)
        g_assert_cmpint (at (address)[i], ==, round + i);
      pto_arena_free (address, 100);
    }
  g_assert_cmpint (write (shared.go[1], &end, sizeof end), ==, sizeof end);
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (status, ==, 0);
  for (int i = 0; i < 2; i++)
    {
      close (shared.go[i]);
      close (shared.done[i]);
    }
  pto_arena_release ();
}

static bool
live_on_its_own (void *data)
{
  uint64_t parents = *(uint64_t *) data, own, base, size, offset;
  struct pto_report report = { 0 };

  /* Of its parent's: sees it, and gives nothing of it out or back. */
  if (*at (parents) != 42 || pto_arena_range (&base, &size) || pto_arena_alloc (1) != 0
      || pto_arena_fd (parents, &offset) < 0 || offset != page)
    return false;
  pto_arena_free (parents, 1);
  pto_arena_release ();
  if (*at (parents) != 42)
    return false;
  /* And has one of its own beside it. */
  if (pto_arena_acquire (MIB, &report) != PTO_OK || !pto_arena_range (&base, &size))
    return false;
  own = pto_arena_alloc (page);
  if (own != base || *at (own) != 0 || (parents >= base && parents < base + size))
    return false;
  *at (own) = 1;
  pto_arena_free (parents, 1);
  pto_arena_free (own, page);
  pto_arena_release ();
  return *at (parents) == 42 && !pto_arena_range (&base, &size)
         && pto_arena_fd (parents, &offset) >= 0;
}

static bool
live_two_levels_down (void *data)
{
  struct pto_report report = { 0 };
  pid_t pid;
  int status;

  if (pto_arena_acquire (MIB, &report) != PTO_OK)
    return false;
  pid = fork ();
  if (pid == 0)
    _exit (live_on_its_own (data) ? 0 : 1);
  return waitpid (pid, &status, 0) == pid && status == 0;
}

static void
test_child_has_its_own (void)
{
  uint64_t first, piece;

  acquire (MIB);
  first = alloc (1);
  piece = alloc (1);
  *at (piece) = 42;
  in_child (live_on_its_own, &piece);
  in_child (live_two_levels_down, &piece);
  g_assert_cmpint (*at (piece), ==, 42);
  pto_arena_free (first, 1);
  pto_arena_free (piece, 1);
  pto_arena_release ();
}

struct levels
{
  uint64_t first; /* of the topmost one */
  uint32_t left;
};

/* Levels of a tree, each with memory of its own: as many as there can be, and one that is refused.
 */
static bool
live_deep_down (void *data)
{
  struct levels *levels = data;
  struct pto_report report = { 0 };
  uint64_t own, offset;
  int status;
  pid_t pid;

  if (*at (levels->first) != 42 || pto_arena_fd (levels->first, &offset) < 0)
    return false;
  if (levels->left-- == 0)
    return pto_arena_acquire (MIB, &report) != PTO_OK;
  if (pto_arena_acquire (MIB, &report) != PTO_OK)
    return false;
  own = pto_arena_alloc (1);
  if (own == 0)
    return false;
  pid = fork ();
  if (pid == 0)
    _exit (live_deep_down (data) ? 0 : 1);
  return waitpid (pid, &status, 0) == pid && status == 0;
}

static void
test_many_levels (void)
{
  struct levels levels = { .left = 16 };

  acquire (MIB);
  levels.first = alloc (1);
  *at (levels.first) = 42;
  in_child (live_deep_down, &levels);
  pto_arena_free (levels.first, 1);
  pto_arena_release ();
}

/* --- what is shared --- */

static bool can_not_be_asked;
static guint n_asked;

/* In place of the C library's: what is an older kernel's answer. */
int
ioctl (int fd, unsigned long request, ...)
{
  va_list args;
  void *data;

  va_start (args, request);
  data = va_arg (args, void *);
  va_end (args);
  n_asked++;
  if (!can_not_be_asked)
    return (int) syscall (SYS_ioctl, fd, request, data);
  errno = ENOTTY;
  return -1;
}

static uint64_t
map (uint64_t where, uint64_t bytes, int flags)
{
  void *memory = mmap ((void *) (uintptr_t) where, bytes, PROT_READ | PROT_WRITE,
                       flags | MAP_ANONYMOUS | (where != 0 ? MAP_FIXED : 0), -1, 0);

  g_assert_true (memory != MAP_FAILED);
  return (uint64_t) (uintptr_t) memory;
}

static void
assert_visibility (struct pto_shared_map *shared, uint64_t address, uint64_t bytes,
                   enum pto_visibility expected)
{
  g_assert_cmpint (pto_shared_map_check (shared, address, bytes, false), ==, expected);
}

static void
test_visibility (void)
{
  struct pto_report report = { 0 };
  struct pto_shared_map *shared;
  uint64_t base = map (0, 16 * page, MAP_PRIVATE), late, piece;
  int on_stack;

  acquire (MIB);
  piece = alloc (page);
  /* private 0-1, shared 2-3 and 4-5 side by side, private 6-7, shared 8, nothing 9, private 10-15
   */
  map (base + 2 * page, 2 * page, MAP_SHARED);
  map (base + 4 * page, 2 * page, MAP_SHARED);
  g_assert_cmpint (mprotect ((void *) (uintptr_t) (base + 5 * page), page, PROT_READ), ==, 0);
  map (base + 8 * page, page, MAP_SHARED);
  munmap ((void *) (uintptr_t) (base + 9 * page), page);
  shared = pto_shared_map_new (&report);
  g_assert_nonnull (shared);

  assert_visibility (shared, piece, page, PTO_VISIBLE);
  assert_visibility (shared, piece, MIB, PTO_VISIBLE);
  assert_visibility (shared, base, 1, PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, base + 2 * page, page, PTO_VISIBLE);
  assert_visibility (shared, base + 2 * page, 4 * page, PTO_VISIBLE);
  assert_visibility (shared, base + 3 * page + 17, page, PTO_VISIBLE);
  assert_visibility (shared, base + 2 * page - 1, 2, PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, base + 2 * page, 4 * page + 1, PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, base + 5 * page, page, PTO_VISIBLE);
  assert_visibility (shared, base + 6 * page, 1, PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, base + 8 * page, page, PTO_VISIBLE);
  assert_visibility (shared, base + 8 * page, page + 1, PTO_VISIBLE_UNMAPPED);
  assert_visibility (shared, base + 9 * page, 1, PTO_VISIBLE_UNMAPPED);
  assert_visibility (shared, (uint64_t) (uintptr_t) &on_stack, sizeof on_stack,
                     PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, 0, 4, PTO_VISIBLE_UNMAPPED);
  /* Nothing of it: the address counts. */
  assert_visibility (shared, base + 2 * page, 0, PTO_VISIBLE);
  assert_visibility (shared, base, 0, PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, base + 6 * page - 1, UINT64_MAX, PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, base + 2 * page, -(base + 2 * page), PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, base + 2 * page, -base, PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, UINT64_MAX, 1, PTO_VISIBLE_UNMAPPED);
  assert_visibility (shared, UINT64_MAX - 7, 16, PTO_VISIBLE_UNMAPPED);

  late = map (0, page, MAP_SHARED);
  assert_visibility (shared, late, page, PTO_VISIBLE_TOO_LATE);
  /* One that was there is longer now. */
  map (base + 9 * page, page, MAP_SHARED);
  assert_visibility (shared, base + 8 * page, 2 * page, PTO_VISIBLE_TOO_LATE);
  assert_visibility (shared, base + 8 * page, page, PTO_VISIBLE);
  pto_shared_map_free (shared);
  munmap ((void *) (uintptr_t) late, page);
  munmap ((void *) (uintptr_t) base, 16 * page);
  pto_arena_free (piece, page);
  pto_arena_release ();
}

/* What was shared at the fork is not what lies there now. */
static void
test_mapped_over (void)
{
  struct pto_report report = { 0 };
  uint64_t base = map (0, 8 * page, MAP_SHARED), last = base + 7 * page;
  struct pto_shared_map *shared = pto_shared_map_new (&report);

  g_assert_nonnull (shared);
  map (base + page, page, MAP_PRIVATE);
  map (base + 3 * page, page, MAP_SHARED);
  munmap ((void *) (uintptr_t) (base + 5 * page), page);
  /* Two pages have changed places. */
  g_assert_true (mremap ((void *) (uintptr_t) last, page, page, MREMAP_MAYMOVE | MREMAP_FIXED,
                         (void *) (uintptr_t) (base + 5 * page))
                 != MAP_FAILED);
  assert_visibility (shared, base, page, PTO_VISIBLE);
  assert_visibility (shared, base, 2 * page, PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, base + page, 1, PTO_VISIBLE_PRIVATE);
  assert_visibility (shared, base + 2 * page, 2 * page, PTO_VISIBLE_TOO_LATE);
  assert_visibility (shared, base + 4 * page, page, PTO_VISIBLE);
  assert_visibility (shared, base + 5 * page, 1, PTO_VISIBLE_TOO_LATE);
  assert_visibility (shared, base + 6 * page, 1, PTO_VISIBLE);
  assert_visibility (shared, last, 1, PTO_VISIBLE_UNMAPPED);
  pto_shared_map_free (shared);

  /* What has been looked at is looked at again when it is said to. */
  shared = pto_shared_map_new (&report);
  assert_visibility (shared, base + 4 * page, page, PTO_VISIBLE);
  map (base + 4 * page, page, MAP_PRIVATE);
  n_asked = 0;
  assert_visibility (shared, base + 4 * page, page, PTO_VISIBLE);
  g_assert_cmpuint (n_asked, ==, 0);
  pto_shared_map_look_again (shared);
  assert_visibility (shared, base + 4 * page, page, PTO_VISIBLE_PRIVATE);
  pto_shared_map_free (shared);
  munmap ((void *) (uintptr_t) base, 7 * page);
}

/* Shared, but children do not get it, or can not write it. */
/* A program that closes what is not its own: the answers stay the same, and what it opened under
 * the number that was ours is left alone. */
static void
test_descriptors_closed (void)
{
  struct pto_report report = { 0 };
  uint64_t base = map (0, 2 * page, MAP_SHARED);
  struct pto_shared_map *shared = pto_shared_map_new (&report);
  int reused = -1;

  g_assert_nonnull (shared);
  assert_visibility (shared, base, page, PTO_VISIBLE);
  for (int fd = 3; fd < 64 && reused < 0; fd++)
    {
      char target[64] = "";
      g_autofree char *link = g_strdup_printf ("/proc/self/fd/%d", fd);

      if (readlink (link, target, sizeof target - 1) < 0 || !g_str_has_suffix (target, "/maps"))
        continue;
      g_assert_cmpint (close (fd), ==, 0);
      reused = open ("/dev/null", O_RDONLY | O_CLOEXEC);
      g_assert_cmpint (reused, ==, fd);
    }
  pto_shared_map_look_again (shared);
  assert_visibility (shared, base, 2 * page, PTO_VISIBLE);
  g_assert_cmpint (munmap ((void *) (uintptr_t) base, page), ==, 0);
  pto_shared_map_look_again (shared);
  assert_visibility (shared, base, page, PTO_VISIBLE_UNMAPPED);
  assert_visibility (shared, base + page, page, PTO_VISIBLE);
  pto_shared_map_free (shared);
  if (reused >= 0)
    {
      g_assert_cmpint (fcntl (reused, F_GETFD), >=, 0);
      close (reused);
    }
  munmap ((void *) (uintptr_t) (base + page), page);
}

static void
test_kept_from_children (void)
{
  struct pto_report report = { 0 };
  uint64_t base = map (0, 4 * page, MAP_SHARED);
  struct pto_shared_map *shared;

  g_assert_cmpint (madvise ((void *) (uintptr_t) base, page, MADV_DONTFORK), ==, 0);
  g_assert_cmpint (mprotect ((void *) (uintptr_t) (base + 2 * page), page, PROT_READ), ==, 0);
  shared = pto_shared_map_new (&report);
  g_assert_nonnull (shared);
  assert_visibility (shared, base, page, PTO_VISIBLE_TOO_LATE);
  assert_visibility (shared, base + page, 3 * page, PTO_VISIBLE);
  g_assert_cmpint (pto_shared_map_check (shared, base + page, page, true), ==, PTO_VISIBLE);
  g_assert_cmpint (pto_shared_map_check (shared, base + page, page + 1, true), ==,
                   PTO_VISIBLE_READ_ONLY);
  g_assert_cmpint (pto_shared_map_check (shared, base + 2 * page, 1, true), ==,
                   PTO_VISIBLE_READ_ONLY);
  /* Here it can be written now, there it can not. */
  g_assert_cmpint (mprotect ((void *) (uintptr_t) (base + 2 * page), page, PROT_READ | PROT_WRITE),
                   ==, 0);
  pto_shared_map_look_again (shared);
  g_assert_cmpint (pto_shared_map_check (shared, base + 2 * page, 1, true), ==,
                   PTO_VISIBLE_READ_ONLY);
  g_assert_cmpint (pto_shared_map_check (shared, base + 3 * page, page, true), ==, PTO_VISIBLE);
  pto_shared_map_free (shared);
  munmap ((void *) (uintptr_t) base, 4 * page);
}

/* More mappings than the first look has room for. */
static void
test_many_mappings (void)
{
  enum
  {
    N = 3000
  };
  struct pto_report report = { 0 };
  struct pto_shared_map *shared;
  uint64_t base = map (0, 2 * N * page, MAP_PRIVATE);

  for (uint64_t i = 0; i < N; i++)
    map (base + 2 * i * page, page, MAP_SHARED);
  shared = pto_shared_map_new (&report);
  g_assert_nonnull (shared);
  for (uint64_t i = 0; i < N; i += 37)
    {
      assert_visibility (shared, base + 2 * i * page, page, PTO_VISIBLE);
      assert_visibility (shared, base + (2 * i + 1) * page, page, PTO_VISIBLE_PRIVATE);
    }
  pto_shared_map_free (shared);
  munmap ((void *) (uintptr_t) base, 2 * N * page);
}

/* All the same, by a look at everything that is mapped. */
static void
test_old_kernel (void)
{
  can_not_be_asked = true;
  test_visibility ();
  test_mapped_over ();
  test_kept_from_children ();
  can_not_be_asked = false;
}

int
main (int argc, char **argv)
{
  page = (uint64_t) sysconf (_SC_PAGESIZE);
  g_test_init (&argc, &argv, NULL);
  add ("/pto/arena/counted", test_counted);
  add ("/pto/arena/full-and-first-fit", test_full_and_first_fit);
  add ("/pto/arena/zeroed", test_zeroed);
  add ("/pto/arena/random", test_random);
  add ("/pto/arena/refused", test_refused);
  add ("/pto/arena/descriptor", test_descriptor);
  add ("/pto/arena/children-see-what-was-made-after-them",
       test_children_see_what_was_made_after_them);
  add ("/pto/arena/child-has-its-own", test_child_has_its_own);
  add ("/pto/arena/many-levels", test_many_levels);
  add ("/pto/arena/visibility", test_visibility);
  add ("/pto/arena/mapped-over", test_mapped_over);
  add ("/pto/arena/kept-from-children", test_kept_from_children);
  add ("/pto/arena/descriptors-closed", test_descriptors_closed);
  add ("/pto/arena/many-mappings", test_many_mappings);
  add ("/pto/arena/old-kernel", test_old_kernel);
  return g_test_run ();
}
