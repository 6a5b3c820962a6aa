/* memory-file.c: which memory do processes share, and nobody can take from under the others?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "memory-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SHARED_ZEROS(flags, fd)           \
  mmap (at, size, PROT_READ | PROT_WRITE, \
        MAP_SHARED | MAP_NORESERVE | (at != NULL ? MAP_FIXED : 0) | (flags), (fd), 0)

void *
pto_memory_file_map (const char *name, uint64_t size, int *fd)
{
  return pto_memory_file_map_at (name, size, NULL, fd);
}

void *
pto_memory_file_map_at (const char *name, uint64_t size, void *at, int *fd)
{
  struct rlimit limit;
  void *memory = MAP_FAILED;

  *fd = -1;
  if (getrlimit (RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= size)
    *fd = memfd_create (name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (*fd >= 0 && ftruncate (*fd, (off_t) size) == 0
      && fcntl (*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    memory = SHARED_ZEROS (0, *fd);
  if (memory != MAP_FAILED)
    return memory;
  if (*fd >= 0)
    close (*fd);
  *fd = -1;
  memory = SHARED_ZEROS (MAP_ANONYMOUS, -1);
  return memory != MAP_FAILED ? memory : NULL;
}
