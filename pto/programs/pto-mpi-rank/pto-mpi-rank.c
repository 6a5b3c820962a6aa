/* pto-mpi-rank.c: how do the workers of a job exchange tensors by MPI?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * usage: pto-mpi-rank NAME GENERATION, begun by mpirun, once for each worker of a job.
 *
 * A process of its own beside each worker, for a worker forks what is below it, at any time, is
 * cancelled, and outlives others; a process that has called MPI_Init() should do none of these. It
 * maps the worker's memory (process/rank.h), so that nothing is copied on the way to MPI. While
 * nothing is asked it sleeps. A collective that is not wanted any more can not be taken back: then,
 * and when its worker is gone, it ends, which ends the job (mpirun sees to the others), and nobody
 * waits for a rank that will not come. The next collective begins another one.
 */
#include "process/rank.h"

#include "sim/reduction-operators.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* While others are waited for: looks that give the processor away, then sleeps, longer and longer.
 */
#define YIELDS 200
#define LEAST_SLEEP_NS 10000
#define MOST_SLEEP_NS 500000
/* Bytes that are combined at a time, beside a copy. */
#define CHUNK_BYTES 8192u
/* Elements in one call. */
#define MOST_ELEMENTS (UINT64_C (1) << 28)

static struct
{
  int worker; /* the socket */
  int rank;
  int n_ranks;
  uint8_t *memory;
  uint64_t size;
  /* Of the collective under way: MPI has no argument for it. */
  enum pto_operator operation;
  DataType dtype;
} self;

/* Of a job that could not be begun; mpirun's to pass on. */
static _Noreturn void
give_up (const char *what)
{
  fprintf (stderr, "pto-mpi-rank: %s: %s\n", what, strerror (errno));
  fflush (stderr);
  _exit (EX_UNAVAILABLE);
}

/* --- the worker --- */

/* Whoever has that name is of this user, or root's. */
static void
connect_worker (const char *name)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct ucred who = { 0 };
  size_t length = strlen (name);

  if (length + 1 > sizeof address.sun_path)
    {
      errno = ENAMETOOLONG;
      give_up (name);
    }
  memcpy (address.sun_path + 1, name, length);
  self.worker = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (self.worker < 0
      || connect (self.worker, (struct sockaddr *) &address,
                  (socklen_t) (offsetof (struct sockaddr_un, sun_path) + 1 + length))
             != 0)
    give_up (name);
  if (getsockopt (self.worker, SOL_SOCKET, SO_PEERCRED, &who, &(socklen_t){ sizeof who }) != 0
      || (who.uid != geteuid () && who.uid != 0))
    {
      errno = EPERM;
      give_up (name);
    }
}

static void
say (const void *data, size_t size)
{
  /* It is gone: there is nothing left to do. */
  if (send (self.worker, data, size, MSG_NOSIGNAL) != (ssize_t) size)
    _exit (EXIT_SUCCESS);
}

/* Waits for it. */
static void
take_memory (void)
{
  struct pto_rank_memory memory = { 0 };
  union
  {
    struct cmsghdr head;
    uint8_t room[CMSG_SPACE (sizeof (int))];
  } control;
  struct iovec part = { &memory, sizeof memory };
  struct msghdr message = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
  };
  ssize_t n;
  int fd;

  do
    n = recvmsg (self.worker, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n != sizeof memory || CMSG_FIRSTHDR (&message) == NULL)
    _exit (EXIT_SUCCESS);
  memcpy (&fd, CMSG_DATA (CMSG_FIRSTHDR (&message)), sizeof fd);
  self.size = memory.size;
  self.memory = mmap (NULL, memory.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (self.memory == MAP_FAILED)
    give_up ("the worker's memory");
  close (fd);
}

/* Is what is under way not wanted any more? The worker says nothing while it waits. */
static bool
has_hung_up (void)
{
  struct pollfd look = { self.worker, POLLIN, 0 };

  return poll (&look, 1, 0) != 0;
}

/* --- collectives --- */

static int
wait_for (MPI_Request request)
{
  struct timespec sleep = { 0, LEAST_SLEEP_NS };
  int done = 0;

  for (uint32_t i = 0;; i++)
    {
      int status = MPI_Test (&request, &done, MPI_STATUS_IGNORE);

      if (status != MPI_SUCCESS || done)
        return status;
      if (i < YIELDS)
        {
          sched_yield ();
          continue;
        }
      if (has_hung_up ())
        _exit (EX_TEMPFAIL);
      nanosleep (&sleep, NULL);
      if (sleep.tv_nsec < MOST_SLEEP_NS)
        sleep.tv_nsec += sleep.tv_nsec / 4;
    }
}

/* For what is only moved, and what is combined here: elements of that size. */
static MPI_Datatype
find_bits (DataType dtype)
{
  switch (pto_dtype_size (dtype))
    {
    case 1:
      return MPI_UINT8_T;
    case 2:
      return MPI_UINT16_T;
    case 4:
      return MPI_UINT32_T;
    default:
      return MPI_UINT64_T;
    }
}

/* A part of memory as a tensor. */
static TensorData
make_part (void *address, uint64_t n)
{
  TensorData part;

  memset (&part, 0, sizeof part);
  part.buffer.addr = (uint64_t) (uintptr_t) address;
  part.ndims = 1;
  part.dtype = self.dtype;
  part.shapes[0] = n;
  part.strides[0] = 1;
  return part;
}

/* As a worker does: MPI's own operators have no float16 and bfloat16, say nothing of what is no
 * number, and those of Open MPI do not wrap around integers of 8 and 16 bits everywhere. left is of
 * lower ranks: to becomes left, combined with it. */
static void
combine (void *left, void *to, int *n, MPI_Datatype *type)
{
  _Alignas(64) uint8_t copy[CHUNK_BYTES];
  uint64_t size = (uint64_t) pto_dtype_size (self.dtype);
  uint64_t bytes = (uint64_t) *n * size;

  (void) type;
  for (uint64_t at = 0; at < bytes; at += CHUNK_BYTES)
    {
      uint64_t part = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
      TensorData first = make_part (copy, part / size);
      TensorData second = make_part ((uint8_t *) to + at, part / size);

      memcpy (copy, (uint8_t *) left + at, part);
      pto_combine (self.operation, &first, &second);
      memcpy ((uint8_t *) to + at, copy, part);
    }
}

static int
allreduce (const struct pto_rank_request *request)
{
  MPI_Datatype type = find_bits (request->dtype);
  uint64_t size = (uint64_t) pto_dtype_size (request->dtype);
  MPI_Op operator;
  int status;

  self.operation = (enum pto_operator) request->operation;
  self.dtype = request->dtype;
  /* Floats in the order of the ranks; in which integers come makes no difference. */
  status = MPI_Op_create (combine, !pto_dtype_is_float (request->dtype), &operator);
  if (status != MPI_SUCCESS)
    return status;
  for (uint64_t at = 0; at < request->n && status == MPI_SUCCESS; at += MOST_ELEMENTS)
    {
      uint64_t n = request->n - at < MOST_ELEMENTS ? request->n - at : MOST_ELEMENTS;
      MPI_Request call;

      status = MPI_Iallreduce (MPI_IN_PLACE, self.memory + request->to + at * size, (int) n,
                               type, operator, MPI_COMM_WORLD, &call);
      if (status == MPI_SUCCESS)
        status = wait_for (call);
    }
  MPI_Op_free (&operator);
  return status;
}

static int
broadcast (const struct pto_rank_request *request)
{
  uint64_t size = (uint64_t) pto_dtype_size (request->dtype);
  int status = MPI_SUCCESS;

  for (uint64_t at = 0; at < request->n && status == MPI_SUCCESS; at += MOST_ELEMENTS)
    {
      uint64_t n = request->n - at < MOST_ELEMENTS ? request->n - at : MOST_ELEMENTS;
      MPI_Request call;

      status = MPI_Ibcast (self.memory + request->to + at * size, (int) n,
                           find_bits (request->dtype), (int) request->root, MPI_COMM_WORLD, &call);
      if (status == MPI_SUCCESS)
        status = wait_for (call);
    }
  return status;
}

static int
alltoall (const struct pto_rank_request *request)
{
  MPI_Datatype type = find_bits (request->dtype);
  MPI_Request call;
  int status
      = MPI_Ialltoall (self.memory + request->from, (int) request->n, type,
                       self.memory + request->to, (int) request->n, type, MPI_COMM_WORLD, &call);

  return status == MPI_SUCCESS ? wait_for (call) : status;
}

/* Is all of it in the memory? */
static bool
is_inside (uint64_t offset, uint64_t n, DataType dtype)
{
  uint64_t bytes;

  return !__builtin_mul_overflow (n, (uint64_t) pto_dtype_size (dtype), &bytes)
         && offset <= self.size && bytes <= self.size - offset;
}

static bool
check (const struct pto_rank_request *request)
{
  uint64_t n = request->n;

  if (request->what >= PTO_N_RANK_WHATS || request->dtype >= PTO_DTYPE_COUNT
      || request->operation >= PTO_N_OPERATORS || request->root >= (uint32_t) self.n_ranks)
    return false;
  if (request->what != PTO_RANK_ALLTOALL)
    return is_inside (request->to, n, request->dtype);
  return n <= INT_MAX && is_inside (request->from, n * (uint32_t) self.n_ranks, request->dtype)
         && is_inside (request->to, n * (uint32_t) self.n_ranks, request->dtype);
}

static void
serve (const struct pto_rank_request *request)
{
  static int (*const functions[]) (const struct pto_rank_request *)
      = { [PTO_RANK_ALLREDUCE] = allreduce,
          [PTO_RANK_BROADCAST] = broadcast,
          [PTO_RANK_ALLTOALL] = alltoall };
  struct pto_rank_answer answer = { 0 };
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  int status;

  if (!check (request))
    {
      answer.failed = 1;
      snprintf (answer.text, sizeof answer.text,
                "what is asked is not in the memory, or a part has more than %d elements", INT_MAX);
    }
  else if ((status = functions[request->what](request)) != MPI_SUCCESS)
    {
      MPI_Error_string (status, text, &length);
      answer.failed = 1;
      snprintf (answer.text, sizeof answer.text, "%.*s", (int) sizeof answer.text - 1, text);
    }
  say (&answer, sizeof answer);
}

/* --- what MPI shares --- */

/* Whoever is on this machine has mapped what others of it share, for each has heard of each. */
static void
meet_neighbours (void)
{
  MPI_Comm near;
  int rank;
  int n;

  MPI_Comm_split_type (MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, self.rank, MPI_INFO_NULL, &near);
  MPI_Comm_rank (near, &rank);
  MPI_Comm_size (near, &n);
  for (int d = 1; d < n; d++)
    MPI_Sendrecv (NULL, 0, MPI_BYTE, (rank + d) % n, 0, NULL, 0, MPI_BYTE, (rank + n - d) % n, 0,
                  near, MPI_STATUS_IGNORE);
  MPI_Barrier (near);
  MPI_Comm_free (&near);
}

/* Open MPI's segments have names, and whoever of a job is killed leaves them in /dev/shm when
 * mpirun is killed, too. So they have none from here on: they are gone with the last who has them.
 */
static void
forget_names (void)
{
  FILE *maps = fopen ("/proc/self/maps", "re");
  char *line = NULL;
  size_t size = 0;

  while (maps != NULL && getline (&line, &size, maps) > 0)
    {
      char *path = strchr (line, '/');

      line[strcspn (line, "\n")] = '\0';
      if (path != NULL && strstr (path, "/vader_segment.") != NULL)
        unlink (path);
    }
  free (line);
  if (maps != NULL)
    fclose (maps);
}

int
main (int argc, char **argv)
{
  struct pto_rank_hello hello = { .magic = PTO_RANK_MAGIC };
  struct pto_rank_request request;
  int provided;

  if (argc != 3)
    {
      fprintf (stderr, "usage: pto-mpi-rank NAME GENERATION, which mpirun begins for a worker\n");
      return EX_USAGE;
    }
  /* Nothing of it outlives whoever has begun it; mpirun tells them, unless it is killed itself. */
  prctl (PR_SET_PDEATHSIG, SIGKILL, 0ul, 0ul, 0ul);
  MPI_Init_thread (&argc, &argv, MPI_THREAD_SINGLE, &provided);
  MPI_Comm_set_errhandler (MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank (MPI_COMM_WORLD, &self.rank);
  MPI_Comm_size (MPI_COMM_WORLD, &self.n_ranks);
  connect_worker (argv[1]);
  hello.rank = (uint32_t) self.rank;
  hello.n_ranks = (uint32_t) self.n_ranks;
  hello.generation = (uint32_t) strtoul (argv[2], NULL, 10);
  say (&hello, sizeof hello);
  /* All are connected. */
  MPI_Barrier (MPI_COMM_WORLD);
  meet_neighbours ();
  forget_names ();
  if (self.rank == 0)
    {
      printf ("ready\n");
      fflush (stdout);
    }
  take_memory ();
  for (;;)
    {
      ssize_t n = recv (self.worker, &request, sizeof request, 0);

      if (n < 0 && errno == EINTR)
        continue;
      /* Nobody calls MPI_Finalize(): it waits for ranks that may be gone. */
      if (n != sizeof request)
        _exit (EXIT_SUCCESS);
      serve (&request);
    }
}
