/* rank-client.c: what does a worker do that is a rank of a job, when tensors are exchanged?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "rank-client.h"

#include "process/arena.h"
#include "process/rank.h"

#include "base/error.h"
#include "common/text.h"
#include "values/tensor.h"
#include "pto-task-args.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* While it is waited: so often it is looked whether the task is still wanted. */
#define LOOK_MS 5
/* The job is there by now: so long is waited for its process to say who it is. */
#define COME_MS 10000

/* The one of this process; -1: not open. */
static int listener = -1;
static int mpi = -1;
static guint32 generation; /* of mpi */

gboolean
pto_remote_rank_listen (const char *name, GError **error)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  gsize length = strlen (name);

  if (length > 0 && length + 1 <= sizeof address.sun_path)
    {
      memcpy (address.sun_path + 1, name, length);
      listener = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    }
  else
    errno = ENAMETOOLONG;
  if (listener >= 0
      && bind (listener, (struct sockaddr *) &address,
               (socklen_t) (offsetof (struct sockaddr_un, sun_path) + 1 + length))
             == 0
      && listen (listener, 4) == 0)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, "%s: %s", name, g_strerror (errno));
  return FALSE;
}

/* Also what a child that was forked meanwhile still has open. */
static void
hang_up (void)
{
  if (mpi < 0)
    return;
  shutdown (mpi, SHUT_RDWR);
  close (mpi);
  mpi = -1;
}

void
pto_remote_rank_end (void)
{
  hang_up ();
  if (listener >= 0)
    close (listener);
  listener = -1;
}

/* --- the process of MPI --- */

/* FALSE: it is not wanted any more. */
static gboolean
wait_for (int fd, PtoTaskArgs *args, gint64 until, GError **error)
{
  struct pollfd look = { fd, POLLIN, 0 };

  while (poll (&look, 1, LOOK_MS) <= 0)
    if (pto_task_args_is_cancelled (args))
      {
        g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, _ ("cancelled"));
        return FALSE;
      }
    else if (until != 0 && g_get_monotonic_time () > until)
      {
        g_set_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST,
                     _ ("the MPI process of this rank has not come within %d ms"), COME_MS);
        return FALSE;
      }
  return TRUE;
}

/* Is it of this user, and of that life of the job? */
static gboolean
is_ours (int fd, guint32 wanted)
{
  struct pto_rank_hello hello = { 0 };
  struct ucred who = { 0 };
  socklen_t size = sizeof who;

  return getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0
         && (who.uid == geteuid () || who.uid == 0)
         && recv (fd, &hello, sizeof hello, 0) == (gssize) sizeof hello
         && hello.magic == PTO_RANK_MAGIC && hello.generation == wanted;
}

static gboolean
give_memory (int fd, GError **error)
{
  struct pto_rank_memory memory = { 0 };
  union
  {
    struct cmsghdr head;
    guint8 room[CMSG_SPACE (sizeof (int))];
  } control = { { 0 } };
  struct iovec part = { &memory, sizeof memory };
  struct msghdr message = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
  };
  struct cmsghdr *head = CMSG_FIRSTHDR (&message);
  struct stat status;
  guint64 base, size, offset;
  int file = -1;

  if (pto_arena_range (&base, &size))
    file = pto_arena_fd (base, &offset);
  if (file < 0 || fstat (file, &status) != 0)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                           _ ("the memory of this worker is no file that MPI could be given"));
      return FALSE;
    }
  memory.size = (guint64) status.st_size;
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN (sizeof file);
  memcpy (CMSG_DATA (head), &file, sizeof file);
  /* When it has gone, that is found where it is waited for. */
  sendmsg (fd, &message, MSG_NOSIGNAL);
  return TRUE;
}

/* The process of that generation is there. */
static gboolean
connect_mpi (PtoTaskArgs *args, guint32 wanted, GError **error)
{
  gint64 until = g_get_monotonic_time () + COME_MS * G_TIME_SPAN_MILLISECOND;

  if (listener < 0)
    {
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED,
                           _ ("this worker is no rank of a job (add_remote_job)"));
      return FALSE;
    }
  if (mpi >= 0 && generation == wanted)
    return TRUE;
  hang_up ();
  while (mpi < 0)
    {
      int fd;

      if (!wait_for (listener, args, until, error))
        return FALSE;
      fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC);
      if (fd < 0)
        continue;
      if (!wait_for (fd, args, until, error))
        {
          close (fd);
          return FALSE;
        }
      if (!is_ours (fd, wanted))
        {
          close (fd);
          continue;
        }
      if (!give_memory (fd, error))
        {
          close (fd);
          return FALSE;
        }
      mpi = fd;
      generation = wanted;
    }
  return TRUE;
}

/* What is under way there can not be taken back: whoever does not wait for it hangs up. */
static gboolean
ask_mpi (PtoTaskArgs *args, const struct pto_rank_request *request, GError **error)
{
  struct pto_rank_answer answer = { 0 };

  /* When it has gone, that is found below. */
  send (mpi, request, sizeof *request, MSG_NOSIGNAL);
  if (!wait_for (mpi, args, 0, error))
    hang_up ();
  else if (recv (mpi, &answer, sizeof answer, 0) != (gssize) sizeof answer)
    {
      hang_up ();
      g_set_error_literal (error, PTO_ERROR, PTO_ERROR_WORKER_LOST,
                           _ ("the MPI job has ended during the collective: a rank, or its process "
                              "of MPI, has died"));
    }
  else if (answer.failed != 0)
    {
      hang_up ();
      answer.text[sizeof answer.text - 1] = '\0';
      g_set_error (error, PTO_ERROR, PTO_ERROR_TASK_FAILED, _ ("MPI has failed: %s"), answer.text);
    }
  else
    return TRUE;
  return FALSE;
}

/* --- collectives --- */

static gboolean
find_offset (PtoTaskArgs *args, guint index, guint64 *offset, GError **error)
{
  guint64 address = pto_tensor_get_address (pto_task_args_get_tensor (args, index));
  guint64 base, size;

  if (pto_arena_range (&base, &size) && address - base < size
      && pto_arena_fd (address, offset) >= 0)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
               _ ("argument %u is not in the memory of this rank"), index);
  return FALSE;
}

static gboolean
run (enum pto_rank_what what, guint n_tensors, PtoTaskArgs *args, GError **error)
{
  struct pto_rank_request request = { .what = what };
  PtoTensor *last;
  guint64 word;

  if (pto_task_args_get_n_tensors (args) != n_tensors || pto_task_args_get_n_scalars (args) != 3)
    {
      g_set_error_literal (
          error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
          _ ("a collective of ranks is a task of allreduce, broadcast or alltoall, "
             "and of nobody else"));
      return FALSE;
    }
  last = pto_task_args_get_tensor (args, n_tensors - 1);
  word = pto_task_args_get_scalar (args, n_tensors);
  request.dtype = (guint32) pto_tensor_get_dtype (last);
  request.operation = what == PTO_RANK_ALLREDUCE ? (guint32) word : 0;
  request.root = what == PTO_RANK_BROADCAST ? (guint32) word : 0;
  request.n = pto_tensor_get_n_elements (last);
  if (what == PTO_RANK_ALLTOALL)
    request.n /= MAX (word, 1);
  return find_offset (args, 0, &request.from, error)
         && find_offset (args, n_tensors - 1, &request.to, error)
         && connect_mpi (args, (guint32) pto_task_args_get_scalar (args, n_tensors + 2), error)
         && ask_mpi (args, &request, error);
}

static gboolean
run_allreduce (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer user_data, GError **error)
{
  return run (PTO_RANK_ALLREDUCE, 1, args, error);
}

static gboolean
run_broadcast (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
               gpointer user_data, GError **error)
{
  return run (PTO_RANK_BROADCAST, 1, args, error);
}

static gboolean
run_alltoall (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer user_data, GError **error)
{
  return run (PTO_RANK_ALLTOALL, 2, args, error);
}

PtoOrchestrationFunc
pto_remote_rank_find (const char *path)
{
  static const struct
  {
    const char *path;
    PtoOrchestrationFunc func;
  } known[] = { { PTO_REMOTE_RANK_ALLREDUCE, run_allreduce },
                { PTO_REMOTE_RANK_BROADCAST, run_broadcast },
                { PTO_REMOTE_RANK_ALLTOALL, run_alltoall } };

  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    if (strcmp (known[i].path, path) == 0)
      return known[i].func;
  return NULL;
}
