/* bench-level-remote.c: how fast does a large tensor travel to a remote worker and back?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Beside it the same bytes through a connection of the same kind between two processes that do
 * nothing else with them: no way over it is faster. Both count the bytes of both ways.
 */
#include "bench-level.h"

#include <pto/pto.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BULK_BYTES (16u << 20)
#define BRIEF_BYTES (3u << 20)
#define PART_BYTES (1u << 20)
#define BULK_RUNS 11u
#define RUNS(brief) (brief ? 3u : BULK_RUNS)

static double
mega_bytes_per_second (uint64_t bytes, double ns)
{
  return 2e3 * (double) bytes / ns;
}

/* --- a remote worker --- */

typedef struct
{
  PtoCallableHandle *handle;
  PtoTaskArgs *args;
} Bulk;

static gboolean
submit_bulk (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
             gpointer user_data, GError **error)
{
  const Bulk *bulk = user_data;

  return pto_orchestrator_submit_next_level (orchestrator, bulk->handle, bulk->args, NULL, -1,
                                             error);
}

static PtoCallable *
load_nothing (GError **error)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", error);
  g_autofree char *directory = self != NULL ? g_path_get_dirname (self) : NULL;
  g_autofree char *symbol
      = self != NULL ? g_strdup_printf ("%s/bench-remote-functions.so:nothing", directory) : NULL;

  return symbol != NULL
             ? pto_imported_function_new_for_symbol (PTO_CALLABLE_ORCHESTRATION, symbol, error)
             : NULL;
}

static gboolean
measure_remote (const struct bench_figure *figure, PtoWorker *host, uint32_t reps, bool brief,
                GError **error)
{
  guint64 bytes = brief ? BRIEF_BYTES : BULK_BYTES;
  g_autoptr (PtoCallable) callable = load_nothing (error);
  g_autoptr (PtoCallableHandle) handle
      = callable != NULL ? pto_worker_register (host, callable, NULL, error) : NULL;
  g_autoptr (PtoBuffer) buffer = handle != NULL ? pto_buffer_new (bytes, error) : NULL;
  g_autoptr (PtoTensor) tensor
      = buffer != NULL ? pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_UINT8, 1, &bytes, error)
                       : NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  Bulk bulk = { handle, args };

  if (tensor == NULL)
    return FALSE;
  memset ((void *) (guintptr) pto_buffer_get_address (buffer), 1, bytes);
  pto_task_args_add_tensor (args, tensor, PTO_DIRECTION_INOUT);
  for (uint32_t i = 0; i < reps; i++)
    {
      double ns[BULK_RUNS];

      for (guint r = 0; r < RUNS (brief); r++)
        {
          guint64 begin = bench_now ();

          if (!pto_worker_run (host, submit_bulk, &bulk, NULL, NULL, NULL, error))
            return FALSE;
          ns[r] = (double) (bench_now () - begin);
        }
      bench_print (figure->name, figure->metric,
                   mega_bytes_per_second (bytes, bench_median (ns, RUNS (brief))), figure->unit);
    }
  return TRUE;
}

bool
bench_level_remote (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) host = g_object_new (PTO_TYPE_WORKER, "level", 4, NULL);
  bool ok = pto_worker_add_remote_worker (host, "local:", NULL, &error) != NULL
            && measure_remote (figure, host, reps, brief, &error);

  if (!ok)
    fprintf (stderr, "bench: %s: %s\n", figure->name, error->message);
  pto_worker_close (host);
  return ok;
}

/* --- a connection --- */

static bool
write_bytes (int to, const uint8_t *data, uint64_t bytes)
{
  for (uint64_t at = 0; at < bytes;)
    {
      ssize_t n = write (to, data + at, bytes - at < PART_BYTES ? bytes - at : PART_BYTES);

      if (n <= 0)
        return false;
      at += (uint64_t) n;
    }
  return true;
}

static bool
read_bytes (int from, uint8_t *data, uint64_t bytes)
{
  for (uint64_t at = 0; at < bytes;)
    {
      ssize_t n = read (from, data + at, bytes - at);

      if (n <= 0)
        return false;
      at += (uint64_t) n;
    }
  return true;
}

/* The other process: gives back what it was given, until nothing comes. */
static _Noreturn void
echo (int end, uint8_t *data, uint64_t bytes)
{
  while (read_bytes (end, data, bytes) && write_bytes (end, data, bytes))
    ;
  _exit (0);
}

static bool
measure_stream (const struct bench_figure *figure, int end, uint8_t *data, uint64_t bytes,
                uint32_t reps, bool brief)
{
  for (uint32_t i = 0; i < reps; i++)
    {
      double ns[BULK_RUNS];

      for (uint32_t r = 0; r < RUNS (brief); r++)
        {
          uint64_t begin = bench_now ();

          if (!write_bytes (end, data, bytes) || !read_bytes (end, data, bytes))
            return false;
          ns[r] = (double) (bench_now () - begin);
        }
      bench_print (figure->name, figure->metric,
                   mega_bytes_per_second (bytes, bench_median (ns, RUNS (brief))), figure->unit);
    }
  return true;
}

bool
bench_level_stream (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  uint64_t bytes = brief ? BRIEF_BYTES : BULK_BYTES;
  uint8_t *data = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int ends[2];
  bool ok;
  pid_t pid;

  if (data == MAP_FAILED || socketpair (AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    {
      perror ("bench: stream");
      return false;
    }
  memset (data, 1, bytes);
  /* What is not written yet would be written twice. */
  fflush (stdout);
  pid = fork ();
  if (pid == 0)
    {
      close (ends[0]);
      echo (ends[1], data, bytes);
    }
  close (ends[1]);
  ok = pid > 0 && measure_stream (figure, ends[0], data, bytes, reps, brief);
  close (ends[0]);
  if (pid > 0)
    waitpid (pid, NULL, 0);
  if (!ok)
    fprintf (stderr, "bench: %s: the other process did not answer as it should\n", figure->name);
  munmap (data, bytes);
  return ok;
}
