/* bench-cpu.c: how much CPU time did the threads of a process use?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "bench-cpu.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool
add_thread (pid_t pid, const char *thread, uint64_t *ns)
{
  char path[64];
  uint64_t used;
  FILE *file;
  bool ok;

  snprintf (path, sizeof path, "/proc/%d/task/%.16s/schedstat", (int) pid, thread);
  file = fopen (path, "re");
  ok = file != NULL && fscanf (file, "%" SCNu64, &used) == 1;
  if (ok)
    *ns += used;
  if (file != NULL)
    fclose (file);
  return ok;
}

bool
bench_add_cpu_ns (pid_t pid, uint64_t *ns)
{
  char path[64];
  struct dirent *entry;
  bool ok = true;
  DIR *threads;

  snprintf (path, sizeof path, "/proc/%d/task", (int) pid);
  threads = opendir (path);
  while (ok && threads != NULL && (entry = readdir (threads)) != NULL)
    if (entry->d_name[0] != '.' && atoi (entry->d_name) != gettid ())
      ok = add_thread (pid, entry->d_name, ns);
  ok = ok && threads != NULL;
  if (threads != NULL)
    closedir (threads);
  if (!ok)
    fprintf (stderr, "bench: this kernel does not tell CPU times (/proc/PID/task/TID/schedstat)\n");
  return ok;
}
