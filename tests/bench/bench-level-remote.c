/* bench-level-remote.c: how fast does a large tensor travel to a remote worker and back, and what
 * does a small task take there?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Beside each the same bytes through a connection of the same kind between two processes that do
 * nothing else with them: no way over it is faster. What is told of large tensors counts the bytes
 * of both ways.
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

/* A small task reads and writes so much; its call and the answer are so long, as they are written
 * to the connection. */
#define SMALL_BYTES 64u
#define CALL_BYTES 320u
#define ANSWER_BYTES 152u
#define SMALL_TASKS 2001u
#define BRIEF_TASKS 101u
#define TASKS(brief) (brief ? BRIEF_TASKS : SMALL_TASKS)
#define BATCH_WORKERS 4u

static double
mega_bytes_per_second (uint64_t bytes, double ns)
{
  return 2e3 * (double) bytes / ns;
}

/* --- a remote worker --- */

typedef struct
{
  PtoWorker *host;
  PtoCallableHandle *handle;
  PtoTaskArgs *args;
  guint n_tasks;
} Remote;

static gboolean
submit_all (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
            gpointer user_data, GError **error)
{
  const Remote *remote = user_data;

  for (guint i = 0; i < remote->n_tasks; i++)
    if (!pto_orchestrator_submit_next_level (orchestrator, remote->handle, remote->args, NULL, -1,
                                             error))
      return FALSE;
  return TRUE;
}

/* Median ns of runs with so many tasks; 0 on error. */
static double
time_runs (Remote *remote, guint n_tasks, bool brief, GError **error)
{
  double ns[BULK_RUNS];

  remote->n_tasks = n_tasks;
  for (guint r = 0; r < RUNS (brief); r++)
    {
      guint64 begin = bench_now ();

      if (!pto_worker_run (remote->host, submit_all, remote, NULL, NULL, NULL, error))
        return 0;
      ns[r] = (double) (bench_now () - begin);
    }
  return bench_median (ns, RUNS (brief));
}

char *
bench_level_find_nothing (GError **error)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", error);
  g_autofree char *directory = self != NULL ? g_path_get_dirname (self) : NULL;

  return self != NULL ? g_strdup_printf ("%s/bench-remote-functions.so:nothing", directory) : NULL;
}

/* What is told: number. */
enum remote_figure
{
  REMOTE_BULK,  /* the speed of a large tensor */
  REMOTE_TASK,  /* each task of a chain */
  REMOTE_BATCH, /* independent tasks in a second */
  /* The speed of a large tensor that goes by UCX: over TCP, through shared memory. */
  REMOTE_BULK_TCP,
  REMOTE_BULK_SHM,
  /* With TLS of both ends. */
  REMOTE_BULK_TLS,
  REMOTE_TASK_TLS,
};

static bool
is_bulk (const struct bench_figure *figure)
{
  return figure->number != REMOTE_TASK && figure->number != REMOTE_BATCH
         && figure->number != REMOTE_TASK_TLS;
}

static bool
is_by_ucx (const struct bench_figure *figure)
{
  return figure->number == REMOTE_BULK_TCP || figure->number == REMOTE_BULK_SHM;
}

static bool
is_by_tls (const struct bench_figure *figure)
{
  return figure->number == REMOTE_BULK_TLS || figure->number == REMOTE_TASK_TLS;
}

static gboolean
measure_remote (const struct bench_figure *figure, PtoWorker *host, uint32_t reps, bool brief,
                GError **error)
{
  guint64 bytes = !is_bulk (figure) ? SMALL_BYTES : brief ? BRIEF_BYTES : BULK_BYTES;
  guint n_tasks = is_bulk (figure) ? 1 : TASKS (brief);
  g_autofree char *symbol = bench_level_find_nothing (error);
  g_autoptr (PtoCallable) callable
      = symbol != NULL
            ? pto_imported_function_new_for_symbol (PTO_CALLABLE_ORCHESTRATION, symbol, error)
            : NULL;
  g_autoptr (PtoCallableHandle) handle
      = callable != NULL ? pto_worker_register (host, callable, NULL, error) : NULL;
  g_autoptr (PtoBuffer) buffer = handle != NULL ? pto_buffer_new (bytes, error) : NULL;
  g_autoptr (PtoTensor) tensor
      = buffer != NULL ? pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_UINT8, 1, &bytes, error)
                       : NULL;
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();
  Remote remote = { host, handle, args, 0 };

  if (tensor == NULL)
    return FALSE;
  memset ((void *) (guintptr) pto_buffer_get_address (buffer), 1, bytes);
  pto_task_args_add_tensor (
      args, tensor, figure->number == REMOTE_BATCH ? PTO_DIRECTION_INPUT : PTO_DIRECTION_INOUT);
  if (time_runs (&remote, 1, brief, error) == 0)
    return FALSE;
  for (uint32_t i = 0; i < reps; i++)
    {
      double one = n_tasks > 1 ? time_runs (&remote, 1, brief, error) : 0;
      double all = time_runs (&remote, n_tasks, brief, error);

      if (all == 0)
        return FALSE;
      bench_print (figure->name, figure->metric,
                   is_bulk (figure)                 ? mega_bytes_per_second (bytes, all)
                   : figure->number != REMOTE_BATCH ? (all - one) / (n_tasks - 1) / 1e3
                                                    : n_tasks / all * 1e9,
                   figure->unit);
    }
  return TRUE;
}

bool
bench_level_remote (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) host = g_object_new (PTO_TYPE_WORKER, "level", 4, NULL);
  guint n_workers = figure->number == REMOTE_BATCH ? BATCH_WORKERS : 1;
  struct bench_tls *tls = NULL;
  const char *address = "local:";
  GVariantDict options;
  bool ok = true;

  if (is_by_ucx (figure))
    g_setenv ("UCX_TLS", figure->number == REMOTE_BULK_TCP ? "tcp" : "shm", TRUE);
  for (guint i = 0; ok && i < n_workers; i++)
    {
      g_variant_dict_init (&options, NULL);
      if (is_by_ucx (figure))
        g_variant_dict_insert (&options, "trusted-fabric", "s", "ucx");
      if (is_by_tls (figure) && (tls = bench_tls_begin (&options, &address, &error)) == NULL)
        {
          g_variant_dict_clear (&options);
          return bench_skip (error->message);
        }
      ok = pto_worker_add_remote_worker (host, address, g_variant_dict_end (&options), &error)
           != NULL;
    }
  ok = ok && pto_worker_start (host, NULL, &error);
  if (!ok && is_by_ucx (figure) && g_error_matches (error, PTO_ERROR, PTO_ERROR_LOAD))
    ok = bench_skip (error->message);
  else
    ok = ok && measure_remote (figure, host, reps, brief, &error);
  if (!ok)
    fprintf (stderr, "bench: %s: %s\n", figure->name, error->message);
  pto_worker_close (host);
  g_clear_pointer (&tls, bench_tls_end);
  return ok;
}

/* --- a connection --- */

struct bench_size
bench_level_size (bool is_bulk, bool brief)
{
  uint64_t bytes = brief ? BRIEF_BYTES : BULK_BYTES;

  return is_bulk ? (struct bench_size){ bytes, bytes }
                 : (struct bench_size){ CALL_BYTES, ANSWER_BYTES };
}

uint32_t
bench_level_tasks (bool brief)
{
  return TASKS (brief);
}

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

/* The other process: answers what it is told, until nothing comes. */
static _Noreturn void
echo (int end, uint8_t *data, struct bench_size size)
{
  while (read_bytes (end, data, size.there) && write_bytes (end, data, size.back))
    ;
  _exit (0);
}

static bool
measure_stream (const struct bench_figure *figure, int end, uint8_t *data, struct bench_size size,
                uint32_t reps, bool brief)
{
  uint32_t n_calls = figure->number == 0 ? 1 : TASKS (brief);

  for (uint32_t i = 0; i < reps; i++)
    {
      double ns[BULK_RUNS];

      for (uint32_t r = 0; r < RUNS (brief); r++)
        {
          uint64_t begin = bench_now ();

          for (uint32_t c = 0; c < n_calls; c++)
            if (!write_bytes (end, data, size.there) || !read_bytes (end, data, size.back))
              return false;
          ns[r] = (double) (bench_now () - begin);
        }
      bench_print (figure->name, figure->metric,
                   figure->number == 0
                       ? mega_bytes_per_second (size.there, bench_median (ns, RUNS (brief)))
                       : bench_median (ns, RUNS (brief)) / n_calls / 1e3,
                   figure->unit);
    }
  return true;
}

bool
bench_level_stream (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  uint64_t bytes = brief ? BRIEF_BYTES : BULK_BYTES;
  struct bench_size size = bench_level_size (figure->number == 0, brief);
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
      echo (ends[1], data, size);
    }
  close (ends[1]);
  ok = pid > 0 && measure_stream (figure, ends[0], data, size, reps, brief);
  close (ends[0]);
  if (pid > 0)
    waitpid (pid, NULL, 0);
  if (!ok)
    fprintf (stderr, "bench: %s: the other process did not answer as it should\n", figure->name);
  munmap (data, bytes);
  return ok;
}
