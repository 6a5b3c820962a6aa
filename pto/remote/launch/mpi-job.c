/* mpi-job.c: which remote workers are ranks of one job, and who begins its MPI?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "mpi-job.h"

#include "base/error.h"
#include "common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define RANK_PROGRAM "pto-mpi-rank"
/* "pto-rank-" and a UUID. */
#define NAME_BYTES 48
/* All ranks have come by then. */
#define BEGIN_MS 30000
#define LOOK_MS 10
/* mpirun, once told, ends what it has begun, and tidies up. */
#define END_MS 3000
/* What it says when it has begun nothing; of that so much is passed on. */
#define WORDS_BYTES 4096u
#define LINES_MAX 3u

/* Shared by all bridges. */
typedef struct
{
  /* W: rank 0's bridge, release, when that generation can be joined; R: all, acquire. */
  _Atomic guint32 generation;
  /* The last that is of no use any more. W: all, so that it only grows; R: all. Relaxed: whoever
   * begins a collective comes after the answers of all who broke the last, by their mailboxes. */
  _Atomic guint32 broken;
  _Atomic int process;      /* mpirun of the generation; W, R: before and after that word */
  char names[][NAME_BYTES]; /* W: the rank's bridge, before it is ready; R: rank 0's */
} Shared;

struct _PtoRemoteJob
{
  gatomicrefcount ref_count;
  guint n_ranks;
  gsize size;
  Shared *shared;
  GPtrArray *specs; /* not owned: of the workers that have this job */

  /* Of rank 0's bridge. */
  GPid process;     /* 0: none */
  gboolean is_told; /* to end: the third time mpirun would not tidy up any more */
  int words;        /* what it says on standard error; -1: none */
};

PtoRemoteJob *
pto_remote_job_new (guint n_ranks, GError **error)
{
  PtoRemoteJob *job;
  gsize size = sizeof (Shared) + n_ranks * sizeof (((Shared *) NULL)->names[0]);
  void *memory = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  if (memory == MAP_FAILED)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NO_MEMORY, _ ("a job of %u ranks: %s"), n_ranks,
                   g_strerror (errno));
      return NULL;
    }
  job = g_new0 (PtoRemoteJob, 1);
  g_atomic_ref_count_init (&job->ref_count);
  job->n_ranks = n_ranks;
  job->size = size;
  job->shared = memory;
  job->specs = g_ptr_array_new ();
  job->words = -1;
  return job;
}

void
pto_remote_job_unref (PtoRemoteJob *job)
{
  if (!g_atomic_ref_count_dec (&job->ref_count))
    return;
  g_ptr_array_unref (job->specs);
  munmap (job->shared, job->size);
  g_free (job);
}

guint
pto_remote_job_get_n_ranks (const PtoRemoteJob *job)
{
  return job->n_ranks;
}

gboolean
pto_remote_job_check (const char *address, GError **error)
{
  if (!g_str_has_prefix (address, "tls:"))
    return TRUE;
  return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                     _ ("%s is no rank of a job: mpirun begins nothing where pto-remote listens; "
                        "write local:, ssh://host, srun://host or mpirun://host"),
                     address);
}

gboolean
pto_remote_job_add (PtoRemoteJob *job, PtoRemoteSpec *spec, GError **error)
{
  if (!pto_remote_job_check (spec->address, error))
    return FALSE;
  g_atomic_ref_count_inc (&job->ref_count);
  spec->job = job;
  spec->unref_job = pto_remote_job_unref;
  spec->rank = job->specs->len;
  g_ptr_array_add (job->specs, spec);
  return TRUE;
}

char *
pto_remote_job_begin_life (const PtoRemoteSpec *spec)
{
  g_autofree char *uuid = g_uuid_string_random ();
  char *name = g_strconcat ("pto-rank-", uuid, NULL);
  Shared *shared = spec->job->shared;

  g_strlcpy (shared->names[spec->rank], name, NAME_BYTES);
  pto_remote_job_break (spec, atomic_load_explicit (&shared->generation, memory_order_acquire));
  return name;
}

void
pto_remote_job_break (const PtoRemoteSpec *spec, guint32 generation)
{
  Shared *shared = spec->job->shared;
  guint32 before = atomic_load_explicit (&shared->broken, memory_order_relaxed);

  while (before < generation
         && !atomic_compare_exchange_weak_explicit (&shared->broken, &before, generation,
                                                    memory_order_relaxed, memory_order_relaxed))
    ;
}

/* --- mpirun --- */

static gboolean
has_ended (pid_t process)
{
  int fd = (int) syscall (SYS_pidfd_open, process, 0);
  struct pollfd look = { fd, POLLIN, 0 };
  gboolean ended = fd < 0 || poll (&look, 1, 0) > 0;

  if (fd >= 0)
    close (fd);
  return ended;
}

static void
tell_to_end (PtoRemoteJob *job)
{
  if (!job->is_told)
    kill (job->process, SIGTERM);
  job->is_told = TRUE;
}

/* call: as long as it is wanted; NULL: to its end. FALSE: it is not. */
static gboolean
end_process (PtoRemoteJob *job, const struct pto_call *call)
{
  if (job->process == 0)
    return TRUE;
  tell_to_end (job);
  for (guint i = 0; waitpid (job->process, NULL, WNOHANG) == 0; i++)
    {
      if (call != NULL && pto_call_is_cancelled (call))
        return FALSE;
      if (i == END_MS)
        kill (job->process, SIGKILL);
      g_usleep (1000);
    }
  job->process = 0;
  close (job->words);
  job->words = -1;
  return TRUE;
}

void
pto_remote_job_end (const PtoRemoteSpec *spec)
{
  if (spec->rank == 0)
    end_process (spec->job, NULL);
}

/* Its name where mpirun begins it: beside pto-remote of this machine, or of the launcher's host. */
static char *
dup_rank_program (const PtoRemoteSpec *spec)
{
  g_autofree char *directory = NULL;

  if (strchr (spec->program, G_DIR_SEPARATOR) == NULL)
    return g_strdup (RANK_PROGRAM);
  directory = g_path_get_dirname (spec->program);
  return g_build_filename (directory, RANK_PROGRAM, NULL);
}

/* As mpirun calls it, which has no word for the user there. */
static char *
dup_host (const PtoRemoteSpec *spec)
{
  const char *at = spec->host != NULL ? strrchr (spec->host, '@') : NULL;

  if (at != NULL)
    return g_strdup (at + 1);
  return g_strdup (spec->host != NULL ? spec->host : "localhost");
}

/* mpirun -n 1 --host h pto-mpi-rank NAME GENERATION : -n 1 ... */
static GPtrArray *
make_argv (PtoRemoteJob *job, guint32 generation)
{
  GPtrArray *argv = g_ptr_array_new_with_free_func (g_free);
  gboolean are_here = TRUE;

  for (guint i = 0; i < job->n_ranks; i++)
    are_here
        = are_here && ((const PtoRemoteSpec *) g_ptr_array_index (job->specs, i))->host == NULL;
  g_ptr_array_add (argv, g_strdup ("mpirun"));
  for (guint i = 0; i < job->n_ranks; i++)
    {
      const PtoRemoteSpec *spec = g_ptr_array_index (job->specs, i);

      if (i > 0)
        g_ptr_array_add (argv, g_strdup (":"));
      g_ptr_array_add (argv, g_strdup ("-n"));
      g_ptr_array_add (argv, g_strdup ("1"));
      if (!are_here)
        {
          g_ptr_array_add (argv, g_strdup ("--host"));
          g_ptr_array_add (argv, dup_host (spec));
        }
      g_ptr_array_add (argv, dup_rank_program (spec));
      g_ptr_array_add (argv, g_strdup (job->shared->names[i]));
      g_ptr_array_add (argv, g_strdup_printf ("%u", generation));
    }
  g_ptr_array_add (argv, NULL);
  return argv;
}

/* A program that mpirun has begun itself has words of it that another one takes for its own. */
static char **
forget_own_job (char **environment)
{
  g_auto (GStrv) names = g_get_environ ();

  if (g_environ_getenv (environment, "OMPI_COMM_WORLD_RANK") == NULL)
    return environment;
  for (guint i = 0; names[i] != NULL; i++)
    {
      *strchrnul (names[i], '=') = '\0';
      if (g_str_has_prefix (names[i], "PMIX_")
          || (g_str_has_prefix (names[i], "OMPI_") && !g_str_has_prefix (names[i], "OMPI_ALLOW_")))
        environment = g_environ_unsetenv (environment, names[i]);
    }
  return environment;
}

/* What Open MPI is to do for processes that mostly sleep, beside workers that do not; whoever has
 * set it has said otherwise. Other MPIs know none of these. */
static char **
make_environment (void)
{
  static const char *const words[][2] = {
    { "OMPI_MCA_rmaps_base_oversubscribe", "1" },
    { "OMPI_MCA_hwloc_base_binding_policy", "none" },
    { "OMPI_MCA_mpi_yield_when_idle", "1" },
  };
  char **environment = forget_own_job (g_get_environ ());

  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    environment = g_environ_setenv (environment, words[i][0], words[i][1], FALSE);
  return environment;
}

/* Its first lines that are words. */
static char *
read_words (int fd)
{
  char text[WORDS_BYTES];
  ssize_t n = pread (fd, text, sizeof text - 1, 0);
  g_autofree char *valid = g_utf8_make_valid (text, n > 0 ? n : 0);
  g_auto (GStrv) lines = g_strsplit (valid, "\n", -1);
  GString *words = g_string_new (NULL);
  guint kept = 0;

  for (guint i = 0; lines[i] != NULL && kept < LINES_MAX; i++)
    {
      const char *line = g_strstrip (lines[i]);

      if (strspn (line, "-") == strlen (line))
        continue;
      g_string_append_printf (words, "%s%s", kept++ > 0 ? " " : "", line);
    }
  return g_string_free (words, FALSE);
}

static gboolean
spawn (PtoRemoteJob *job, guint32 generation, int *ready, GError **error)
{
  g_autoptr (GPtrArray) argv = make_argv (job, generation);
  g_auto (GStrv) environment = make_environment ();
  g_autoptr (GError) local = NULL;
  int ends[2] = { -1, -1 };
  gboolean ok = FALSE;

  job->words = memfd_create ("pto-mpirun", MFD_CLOEXEC);
  if (job->words < 0 || pipe2 (ends, O_CLOEXEC) != 0)
    g_set_error (&local, PTO_ERROR, PTO_ERROR_SYSTEM, "%s: %s",
                 job->words < 0 ? "memfd_create" : "pipe2", g_strerror (errno));
  else
    /* When this process has died, once for each of its threads: mpirun passes that signal on to
     * what it has begun, which ends; then it tidies up. */
    ok = pto_remote_spawn ((const char *const *) argv->pdata, environment, -1, ends[1], job->words,
                           SIGUSR1, &job->process, &local);
  job->is_told = FALSE;
  if (ends[1] >= 0)
    close (ends[1]);
  if (ok)
    {
      *ready = ends[0];
      return TRUE;
    }
  if (ends[0] >= 0)
    close (ends[0]);
  if (job->words >= 0)
    close (job->words);
  job->words = -1;
  return pto_refuse (
      error, PTO_ERROR_NOT_FOUND,
      _ ("collectives of a job need MPI, and mpirun can not be launched: %s (install Open "
         "MPI)"),
      g_error_matches (local, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT) ? _ ("there is no such program")
                                                                  : local->message);
}

/* --- a generation --- */

/* Still wanted, and in time? */
static gboolean
look_after (const struct pto_call *call, gint64 until, GError **error)
{
  pto_call_beat (call);
  if (pto_call_is_cancelled (call))
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, _ ("cancelled"));
  else if (g_get_monotonic_time () > until)
    g_set_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST,
                 _ ("the ranks of the job are not there after %d ms"), BEGIN_MS);
  else
    return TRUE;
  return FALSE;
}

/* All ranks are there, or why not. */
static gboolean
wait_until_ready (PtoRemoteJob *job, int ready, const struct pto_call *call, gint64 until,
                  GError **error)
{
  g_autoptr (GString) said = g_string_new (NULL);

  for (;;)
    {
      struct pollfd look = { ready, POLLIN, 0 };
      char words[64];

      if (poll (&look, 1, LOOK_MS) > 0)
        {
          g_autofree char *why = NULL;
          gssize n = read (ready, words, sizeof words);

          if (n > 0)
            {
              /* The first rank's word, among those of mpirun. */
              g_string_append_len (said, words, n);
              if (strstr (said->str, "ready\n") != NULL)
                return TRUE;
              continue;
            }
          /* It says the last word after that. */
          while (!has_ended (job->process) && look_after (call, until, NULL))
            g_usleep (1000);
          why = read_words (job->words);
          return pto_refuse (error, PTO_ERROR_WORKER_LOST,
                             _ ("mpirun has not begun the ranks of the job: %s"), why);
        }
      if (!look_after (call, until, error))
        return FALSE;
    }
}

static gboolean
begin_generation (const PtoRemoteSpec *spec, guint32 generation, const struct pto_call *call,
                  gint64 until, GError **error)
{
  PtoRemoteJob *job = spec->job;
  int ready;
  gboolean ok;

  if (!end_process (job, call))
    return look_after (call, until, error);
  if (!spawn (job, generation, &ready, error))
    return FALSE;
  ok = wait_until_ready (job, ready, call, until, error);
  close (ready);
  if (!ok)
    {
      /* Who is cancelled has no time: the next one waits for its end. */
      tell_to_end (job);
      return FALSE;
    }
  atomic_store_explicit (&job->shared->process, job->process, memory_order_relaxed);
  atomic_store_explicit (&job->shared->generation, generation, memory_order_release);
  return TRUE;
}

gboolean
pto_remote_job_join (const PtoRemoteSpec *spec, const struct pto_call *call, guint32 *generation,
                     GError **error)
{
  Shared *shared = spec->job->shared;
  gint64 until = g_get_monotonic_time () + BEGIN_MS * G_TIME_SPAN_MILLISECOND;

  for (;;)
    {
      guint32 last = atomic_load_explicit (&shared->generation, memory_order_acquire);
      guint32 broken = atomic_load_explicit (&shared->broken, memory_order_relaxed);

      *generation = last;
      if (last > broken
          && !has_ended (atomic_load_explicit (&shared->process, memory_order_relaxed)))
        return TRUE;
      pto_remote_job_break (spec, last);
      if (spec->rank == 0)
        {
          if (!begin_generation (spec, MAX (last, broken) + 1, call, until, error))
            return FALSE;
          continue;
        }
      g_usleep (1000);
      if (!look_after (call, until, error))
        return FALSE;
    }
}
