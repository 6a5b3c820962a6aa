/* test-fence.c: is the fence behind every piece of memory known to whoever asks, and no other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/core/memory-guards.h"

#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECES 64u
#define STEP 256u

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHANGES 2000u
#else
#define CHANGES 100000u
#endif

static uint8_t memory[PIECES * STEP];

static struct pto_fence
piece (uint32_t n, uint64_t bytes)
{
  return (struct pto_fence){ .address = (uint64_t) (uintptr_t) (memory + n * STEP),
                             .bytes = bytes,
                             .guard = STEP - bytes };
}

static void
assert_found (uint64_t address, const struct pto_fence *expected)
{
  struct pto_fence found = { 0 };

  g_assert_true (pto_fence_find (address, &found));
  g_assert_cmpmem (&found, sizeof found, expected, sizeof *expected);
}

/* Every address of every piece against what the test knows, after every change in random order. */
static void
test_add_find_remove (void)
{
  uint64_t bytes[PIECES] = { 0 }; /* 0: not there */
  struct pto_fence found;

  for (uint32_t i = 0; i < 500; i++)
    {
      uint32_t n = (uint32_t) g_test_rand_int_range (0, PIECES);
      uint64_t before = pto_fence_version ();

      if (bytes[n] == 0)
        {
          struct pto_fence fence
              = piece (n, bytes[n] = (uint64_t) g_test_rand_int_range (1, STEP - 1));

          g_assert_true (pto_fence_add (&fence));
          g_assert_cmpuint (pto_fence_damage (&fence), ==, 0);
        }
      else
        {
          pto_fence_remove ((uint64_t) (uintptr_t) (memory + n * STEP));
          bytes[n] = 0;
        }
      g_assert_cmpuint (pto_fence_version (), !=, before);
      for (uint32_t p = 0; p < PIECES; p++)
        for (uint32_t offset = 0; offset < STEP; offset += 1 + offset / 2)
          {
            uint64_t address = (uint64_t) (uintptr_t) (memory + p * STEP + offset);
            struct pto_fence expected = piece (p, bytes[p]);

            if (offset < bytes[p])
              assert_found (address, &expected);
            else
              g_assert_false (pto_fence_find (address, &found));
          }
    }
  for (uint32_t p = 0; p < PIECES; p++)
    pto_fence_remove ((uint64_t) (uintptr_t) (memory + p * STEP));
  pto_fence_remove (8); /* nothing there: nothing happens */
  g_assert_false (pto_fence_find ((uint64_t) (uintptr_t) memory, &found));
}

static void
test_damage (void)
{
  struct pto_fence fence = piece (0, 100);
  uint8_t whole[STEP - 100];

  memset (memory, 0, sizeof memory);
  g_assert_true (pto_fence_add (&fence));
  /* The memory itself is the caller's, and what is behind the guard somebody else's. */
  for (uint32_t i = 0; i < 100; i++)
    g_assert_cmpuint (memory[i], ==, 0);
  g_assert_cmpuint (memory[STEP], ==, 0);
  memcpy (whole, memory + 100, sizeof whole);
  for (uint32_t i = 0; i < fence.guard; i++)
    {
      uint8_t *byte = &memory[100 + i];

      g_assert_cmpuint (*byte, ==, whole[i]);
      *byte ^= 0x10;
      g_assert_cmpuint (pto_fence_damage (&fence), ==, i + 1);
      memory[100] ^= 1;
      g_assert_cmpuint (pto_fence_damage (&fence), ==, i + 1);
      pto_fence_mend (&fence);
      g_assert_cmpuint (pto_fence_damage (&fence), ==, 0);
    }
  pto_fence_remove (fence.address);
}

/* What a stray write most likely writes must show. */
static void
test_pattern (void)
{
  const uint8_t *pattern = pto_fence_whole ();
  guint seen[256] = { 0 };

  for (uint32_t i = 0; i < PTO_FENCE_BYTES_MAX; i++)
    {
      seen[pattern[i]]++;
      g_assert_true (i == 0 || pattern[i] != pattern[i - 1]);
      /* Nor does it repeat after 256 bytes. */
      g_assert_true (i < 256 || pattern[i] != pattern[i - 256]);
    }
  for (uint32_t i = 0; i < 256; i++)
    g_assert_cmpuint (seen[i], <, i < 128 ? 1 : PTO_FENCE_BYTES_MAX / 48);
  for (uint32_t i = 0; i + 8 <= PTO_FENCE_BYTES; i += 4)
    {
      uint32_t word;
      uint64_t address;

      memcpy (&word, pattern + i, sizeof word);
      memcpy (&address, pattern + i, sizeof address);
      g_assert_cmpuint (word, >, 0xffff);
      g_assert_cmpuint (~word, >, 0xffff);
      g_assert_cmpuint (address >> 47, !=, 0);
    }
}

/* Guards of all sizes begin alike. A guard at another address differs in all of its bytes. */
static void
test_address (void)
{
  static const uint64_t steps[] = { 1, 4, 64, 1024, 4096, 1 << 20, 1ul << 32, 1ul << 36 };
  enum
  {
    TIMES = 1000
  };

  for (gsize s = 0; s < G_N_ELEMENTS (steps); s++)
    {
      guint alike = 0;

      for (uint64_t i = 0; i < TIMES; i++)
        {
          uint64_t address = UINT64_C (0x7f1234560040) + i * steps[s];
          pto_fence_lanes a = pto_fence_lanes_of (address);
          pto_fence_lanes b = pto_fence_lanes_of (address + steps[s]);

          for (guint lane = 0; lane < 4; lane++)
            g_assert_cmphex (a[lane], !=, b[lane]);
          alike += ((a[0] ^ b[0]) & 0xff) == 0;
        }
      /* Not more often than by chance, by far. */
      g_assert_cmpuint (alike, <=, TIMES / 32);
    }
  for (uint32_t bytes = 0; bytes <= STEP; bytes++)
    {
      uint64_t address = (uint64_t) (uintptr_t) memory + bytes;
      uint8_t large[STEP];

      memset (memory, 0, sizeof memory);
      pto_fence_write (address, STEP);
      memcpy (large, memory + bytes, STEP);
      memset (memory, 0, sizeof memory);
      pto_fence_write (address, bytes);
      g_assert_cmpmem (memory + bytes, bytes, large, bytes);
      g_assert_cmpuint (memory[2 * bytes], ==, 0);
      g_assert_true (pto_fence_is_whole_any (address, bytes));
      if (bytes > 0)
        {
          memory[2 * bytes - 1] ^= 1;
          g_assert_false (pto_fence_is_whole_any (address, bytes));
        }
    }
}

static bool
is_copy_found (const struct pto_fence *from, const struct pto_fence *to, uint32_t shift, uint32_t n)
{
  uint8_t *target = (uint8_t *) (uintptr_t) (to->address + to->bytes) + shift;

  pto_fence_mend (from);
  pto_fence_mend (to);
  memmove (target, (const uint8_t *) (uintptr_t) (from->address + from->bytes), n);
  return pto_fence_damage (to) > 0;
}

/* Bytes of a guard are copied to another guard, or to another place of the same one. */
static void
test_copied (void)
{
  struct pto_fence from = piece (0, 100);
  struct pto_fence to = piece (1, 100);

  for (uint32_t shift = 0; shift < PTO_FENCE_BYTES; shift += 4)
    for (uint32_t n = 4; shift + n <= PTO_FENCE_BYTES; n += 4)
      {
        g_assert_true (is_copy_found (&from, &to, shift, n));
        /* See fence.h: each number comes four times. */
        if (shift > 0 && (n > 4 || (shift != 7 * 4 && shift != 9 * 4 && shift != 14 * 4)))
          g_assert_true (is_copy_found (&from, &from, shift, n));
      }
}

/* --- other threads, other processes --- */

static _Atomic bool stop;

/* data: how often the piece that nobody touches was found */
static gpointer
read_fences (gpointer data)
{
  _Atomic uint64_t *found = data;

  /* relaxed: only ends the loop */
  while (!atomic_load_explicit (&stop, memory_order_relaxed))
    for (uint32_t n = 0; n < PIECES; n++)
      {
        struct pto_fence fence;
        struct pto_fence expected = piece (n, 10 + n);

        if (pto_fence_find (expected.address + 5, &fence))
          g_assert_cmpmem (&fence, sizeof fence, &expected, sizeof expected);
        else
          g_assert_cmpuint (n, !=, PIECES - 1);
        atomic_fetch_add (found, n == PIECES - 1);
      }
  return NULL;
}

/* A reader finds a piece or does not, never half of one; one that nobody touches it always finds.
 */
static void
test_beside_changes (void)
{
  struct pto_fence still = piece (PIECES - 1, 10 + PIECES - 1);
  _Atomic uint64_t finds[2] = { 0, 0 };
  GThread *readers[2];
  bool there[PIECES] = { false };
  struct pto_fence found;

  g_assert_true (pto_fence_add (&still));
  atomic_store (&stop, false);
  for (uint32_t i = 0; i < G_N_ELEMENTS (readers); i++)
    readers[i] = g_thread_new ("reader", read_fences, &finds[i]);
  for (uint32_t i = 0; i < CHANGES || atomic_load (&finds[0]) == 0 || atomic_load (&finds[1]) == 0;
       i++)
    {
      uint32_t n = i % 37 * 7 % (PIECES - 1);
      struct pto_fence fence = piece (n, 10 + n);

      if (there[n])
        pto_fence_remove (fence.address);
      else
        g_assert_true (pto_fence_add (&fence));
      there[n] = !there[n];
      g_assert_true (pto_fence_find (still.address, &found));
    }
  atomic_store (&stop, true);
  for (uint32_t i = 0; i < G_N_ELEMENTS (readers); i++)
    g_thread_join (readers[i]);
  for (uint32_t n = 0; n < PIECES; n++)
    pto_fence_remove ((uint64_t) (uintptr_t) (memory + n * STEP));
}

/* Children, and theirs, know what was there before the fork and what came after it; what they make
 * is their own. */
static void
test_processes (void)
{
  struct pto_fence before = piece (0, 10);
  struct pto_fence after = piece (1, 20);
  struct pto_fence inner = piece (2, 30);
  struct pto_fence found;
  int status;
  int go[2];
  char c;
  pid_t pid;

  g_assert_true (pto_fence_init ());
  g_assert_true (pto_fence_add (&before));
  g_assert_cmpint (pipe (go), ==, 0);
  pid = fork ();
  if (pid == 0)
    {
      if (read (go[0], &c, 1) != 1)
        _exit (1);
      if (!pto_fence_find (before.address, &found) || found.bytes != 10)
        _exit (2);
      if (!pto_fence_find (after.address, &found) || found.bytes != 20)
        _exit (3);
      /* Not its to take away. */
      pto_fence_remove (before.address);
      if (!pto_fence_find (before.address, &found))
        _exit (4);
      if (!pto_fence_add (&inner) || !pto_fence_find (inner.address, &found))
        _exit (5);
      pid = fork ();
      if (pid == 0)
        _exit (pto_fence_find (before.address, &found) && pto_fence_find (after.address, &found)
                       && pto_fence_find (inner.address, &found)
                   ? 0
                   : 1);
      if (waitpid (pid, &status, 0) != pid || status != 0)
        _exit (6);
      pto_fence_remove (inner.address);
      _exit (pto_fence_find (inner.address, &found) ? 7 : 0);
    }
  g_assert_true (pto_fence_add (&after));
  g_assert_cmpint (write (go[1], "x", 1), ==, 1);
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (status, ==, 0);
  g_assert_false (pto_fence_find (inner.address, &found));
  close (go[0]);
  close (go[1]);
  pto_fence_remove (before.address);
  pto_fence_remove (after.address);
}

static void
test_too_many (void)
{
  size_t size = ((size_t) PTO_FENCES_MAX + 1) * 16;
  uint8_t *many = mmap (NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  struct pto_fence found;

  g_assert_true (many != MAP_FAILED);
  for (uint32_t i = 0; i <= PTO_FENCES_MAX; i++)
    {
      struct pto_fence fence
          = { .address = (uint64_t) (uintptr_t) (many + i * 16ul), .bytes = 8, .guard = 8 };

      g_assert_true (pto_fence_add (&fence) == (i < PTO_FENCES_MAX));
    }
  g_assert_true (pto_fence_find ((uint64_t) (uintptr_t) many, &found));
  for (uint32_t i = PTO_FENCES_MAX; i-- > 0;)
    pto_fence_remove ((uint64_t) (uintptr_t) (many + i * 16ul));
  g_assert_false (pto_fence_find ((uint64_t) (uintptr_t) many, &found));
  munmap (many, size);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  /* The first: nothing has been fenced yet. */
  g_test_add_func ("/pto/fence/pattern", test_pattern);
  g_test_add_func ("/pto/fence/address", test_address);
  g_test_add_func ("/pto/fence/copied", test_copied);
  g_test_add_func ("/pto/fence/add-find-remove", test_add_find_remove);
  g_test_add_func ("/pto/fence/damage", test_damage);
  g_test_add_func ("/pto/fence/beside-changes", test_beside_changes);
  g_test_add_func ("/pto/fence/processes", test_processes);
  g_test_add_func ("/pto/fence/too-many", test_too_many);
  return g_test_run ();
}
