/* test-memory_file.c: can a process take shared memory from under the others?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/exec/memory-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (UINT64_C (1) << 20)

static guint8 *
map (int *fd)
{
  guint8 *memory = pto_memory_file_map ("test", SIZE, fd);

  g_assert_nonnull (memory);
  g_assert_cmpint (memory[0] | memory[SIZE - 1], ==, 0);
  return memory;
}

/* A child tries everything that would make the parent's next touch a SIGBUS. */
static void
test_child_cuts (void)
{
  int fd, status;
  guint8 *memory = map (&fd);
  pid_t child;

  g_assert_cmpint (fd, >=, 0);
  memory[SIZE - 1] = 7;
  child = fork ();
  if (child == 0)
    {
      int wrong = 0;

      wrong |= ftruncate (fd, 0) == 0 || errno != EPERM;
      wrong |= (ftruncate (fd, 2 * SIZE) == 0 || errno != EPERM) << 1;
      wrong |= (fcntl (fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0 || errno != EPERM) << 2;
      memory[0] = 5;
      _exit (wrong);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
  g_assert_cmpint (memory[0], ==, 5);
  g_assert_cmpint (memory[SIZE - 1], ==, 7);
  /* Pages can be given back all the same. */
  g_assert_cmpint (madvise (memory, SIZE, MADV_REMOVE), ==, 0);
  g_assert_cmpint (memory[SIZE - 1], ==, 0);
  munmap (memory, SIZE);
  close (fd);
}

/* A limit of file sizes, or of descriptors: no signal, no file, the memory is there. */
static void
test_without_file (void)
{
  static const int limits[] = { RLIMIT_FSIZE, RLIMIT_NOFILE };

  for (guint i = 0; i < G_N_ELEMENTS (limits); i++)
    {
      struct rlimit before, small;
      guint8 *memory;
      int fd, status;
      pid_t child;

      getrlimit (limits[i], &before);
      small = before;
      small.rlim_cur = i == 0 ? SIZE - 1 : 0;
      g_assert_cmpint (setrlimit (limits[i], &small), ==, 0);
      memory = map (&fd);
      g_assert_cmpint (setrlimit (limits[i], &before), ==, 0);
      g_assert_cmpint (fd, ==, -1);
      child = fork ();
      if (child == 0)
        {
          memory[SIZE - 1] = 9;
          _exit (0);
        }
      g_assert_cmpint (waitpid (child, &status, 0), ==, child);
      g_assert_cmpint (memory[SIZE - 1], ==, 9);
      munmap (memory, SIZE);
    }
}

static void
test_no_room (void)
{
  int fd = 7;

  g_assert_null (pto_memory_file_map ("test", UINT64_C (1) << 60, &fd));
  g_assert_cmpint (errno, ==, ENOMEM);
  g_assert_cmpint (fd, ==, -1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/memory-file/child-cuts", test_child_cuts);
  g_test_add_func ("/pto/memory-file/without-file", test_without_file);
  g_test_add_func ("/pto/memory-file/no-room", test_no_room);
  return g_test_run ();
}
