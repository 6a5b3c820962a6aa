/* memory-file.h: which memory do processes share, and nobody can take from under the others?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdint.h>

/* Zeros, shared over forks, in a file without a name whose size is sealed: a process that cuts it
 * short would end all others with SIGBUS. Pages are taken when they are first touched. Where there
 * is no file to be had (descriptors, or a limit of file sizes, beyond which the system would end
 * the program), the memory serves without one, and *fd is -1. NULL: no address space; see errno.
 * Any thread. */
void *pto_memory_file_map (const char *name, uint64_t size, int *fd);
/* The same in place of what is mapped at that address; NULL: anywhere. */
void *pto_memory_file_map_at (const char *name, uint64_t size, void *at, int *fd);
