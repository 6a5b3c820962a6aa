/* det-world.c: what do processes see that are actors of one executor, in virtual time?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "det-world.h"

#include "../../pto/exec/pto_exec.h"
#include "../../pto/exec/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Descriptors of this world begin there: the system has none of these. */
#define FIRST_FD (1 << 24)
/* Of a world: no number is given twice. */
#define FDS_MAX 8192
#define FIRST_PID 40000000
/* Marks the names of our actors. */
#define MARK '@'
#define WHATS 3
/* A socket is writable when a small message finds room. */
#define WRITABLE_BYTES 4096u
/* What a system call takes. */
#define CALL_NS 400
/* CLOCK_MONOTONIC is not 0 anywhere. */
#define EPOCH_NS (1000 * UINT64_C (1000000000))

struct actor
{
  char name[40]; /* first: how the executor gives it back */
  struct process *process;
  struct pto_word word;
  const void *whats[WHATS];   /* that it waits for */
  struct pto_word *parked_on; /* of somebody else's */
  jmp_buf end;
  GThreadFunc func;
  gpointer data;
  gpointer result;
  bool is_over;
  struct actor *next;
};

struct block
{
  void *memory;
  size_t size;
};

struct process
{
  char name[24];
  void (*main) (void *data);
  void *data;
  int pid;
  int status;
  bool is_dead;
  uint32_t n_live;
  uint32_t n_threads;
  bool is_far;
  int stdio; /* descriptor of its connection; -1: none, or not any more */
  struct actor *actors;
  struct process *next;
  GHashTable *blocks; /* memory -> its size */
  size_t allocated;
};

/* --- the world --- */

struct chunk
{
  uint64_t at; /* when it arrives */
  size_t size;
};

/* One direction. */
struct pipe
{
  GByteArray *bytes; /* on the way, or not read yet */
  GArray *chunks;
  GByteArray *before; /* what was written last, where there is damage */
  uint64_t last;      /* arrival of the newest */
  bool is_closed;     /* by who writes, or because it is cut: an end follows the bytes */
  bool is_reset;      /* that end is an error */
  bool is_deaf;       /* nobody reads any more */
  uint64_t end_at;
  uint64_t written;
};

struct link
{
  struct link_config config;
  struct pipe to[2]; /* to the near end, to the far end */
  uint32_t n_open[2];
  bool is_frozen;
  bool is_cut;
};

enum fd_kind
{
  FD_FREE,
  FD_LINK,
  FD_EVENT,
  FD_NOTHING
};

struct fd
{
  enum fd_kind kind;
  struct process *process;
  struct link *link;
  int side;
  uint64_t event;
};

static struct
{
  struct pto_exec *exec;
  uint64_t rng;
  uint32_t damage;
  struct process *processes;
  struct fd fds[FDS_MAX];
  int n_fds;
  int next_pid;
  uint32_t n_lines;
  char last_line[1024];
} world;

static struct actor *
self (void)
{
  const char *name;

  if (world.exec == NULL)
    return NULL;
  name = pto_actor_name ();
  return name != NULL && name[0] == MARK ? (struct actor *) (uintptr_t) name : NULL;
}

void
world_begin (uint64_t seed)
{
  memset (&world, 0, offsetof (__typeof__ (world), fds));
  memset (world.fds, 0, (size_t) world.n_fds * sizeof world.fds[0]);
  world.n_fds = world.n_lines = 0;
  world.last_line[0] = '\0';
  world.rng = seed * UINT64_C (0x9e3779b97f4a7c15) + 1;
  world.next_pid = FIRST_PID;
}

void
world_enter (struct pto_exec *exec)
{
  world.exec = exec;
}

void
world_end (void)
{
  for (int i = 0; i < world.n_fds; i++)
    g_assert_cmpint (world.fds[i].kind, ==, FD_FREE);
  g_assert_null (world.processes);
  world.exec = NULL;
}

uint64_t
world_now (void)
{
  return pto_now (world.exec);
}

static uint64_t
roll (void)
{
  uint64_t z = (world.rng += UINT64_C (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

uint32_t
world_random (uint32_t n)
{
  return n > 0 ? (uint32_t) (roll () % n) : 0;
}

bool
world_chance (uint32_t n)
{
  return world_random (n) == 0;
}

uint32_t
world_lines (void)
{
  return world.n_lines;
}

const char *
world_last_line (void)
{
  return world.last_line;
}

/* --- actors --- */

static void
check_alive (struct actor *actor)
{
  if (actor->process->is_dead)
    longjmp (actor->end, 1);
}

/* False: the time came. */
static bool
wait_for (const void *a, const void *b, const void *c, uint64_t until)
{
  struct actor *actor = self ();
  enum pto_park_result result;
  uint32_t seen;

  if (actor == NULL)
    g_error ("the program itself waits");
  seen = pto_word_get (&actor->word);
  actor->whats[0] = a;
  actor->whats[1] = b;
  actor->whats[2] = c;
  result = pto_park (world.exec, &actor->word, seen, until);
  memset (actor->whats, 0, sizeof actor->whats);
  check_alive (actor);
  return result != PTO_PARK_TIMEOUT;
}

static void
wake_actor (struct actor *actor)
{
  pto_word_set (world.exec, &actor->word, pto_word_get (&actor->word) + 1);
  if (actor->parked_on != NULL)
    pto_unpark (world.exec, actor->parked_on);
}

static void
wake (const void *what)
{
  for (struct process *p = world.processes; p != NULL; p = p->next)
    for (struct actor *a = p->actors; a != NULL; a = a->next)
      for (int i = 0; i < WHATS; i++)
        if (a->whats[i] == what)
          {
            wake_actor (a);
            break;
          }
}

void
world_sleep (uint64_t ns)
{
  struct actor *actor = self ();

  pto_charge (world.exec, ns);
  if (actor != NULL)
    check_alive (actor);
}

void
world_step (uint64_t ns)
{
  world_sleep (ns + world_random (CALL_NS) + 1);
}

/* --- processes --- */

static void close_all (struct process *process);

static void
run_actor (void *data)
{
  struct actor *actor = data;
  struct process *process = actor->process;

  if (setjmp (actor->end) == 0)
    {
      check_alive (actor);
      actor->result = actor->func (actor->data);
    }
  actor->is_over = true;
  wake (actor);
  process = actor->process;
  process->n_live--;
  wake (process);
}

static struct actor *
actor_new (struct process *process, const char *name, GThreadFunc func, gpointer data)
{
  struct actor *actor = g_new0 (struct actor, 1);
  char error[256];

  g_snprintf (actor->name, sizeof actor->name, "%c%s-%s", MARK, process->name, name);
  actor->process = process;
  actor->func = func;
  actor->data = data;
  pto_word_init (&actor->word, 0, false);
  actor->next = process->actors;
  process->actors = actor;
  process->n_live++;
  g_assert_cmpint (
      pto_exec_spawn (world.exec, 0, actor->name, run_actor, actor, error, sizeof error), ==, 0);
  return actor;
}

static void
end_process (struct process *process, int status)
{
  if (process->is_dead)
    return;
  process->is_dead = true;
  process->status = status;
  close_all (process);
  for (struct actor *a = process->actors; a != NULL; a = a->next)
    if (!a->is_over)
      wake_actor (a);
  wake (process);
}

static gpointer
run_main (gpointer data)
{
  struct process *process = data;

  process->main (process->data);
  end_process (process, 0);
  return NULL;
}

struct process *
process_new (const char *name, void (*main_func) (void *data), void *data)
{
  struct process *process = g_new0 (struct process, 1);

  g_strlcpy (process->name, name, sizeof process->name);
  process->main = main_func;
  process->data = data;
  process->pid = world.next_pid++;
  process->stdio = -1;
  process->blocks = g_hash_table_new_full (NULL, NULL, g_free, NULL);
  process->next = world.processes;
  world.processes = process;
  actor_new (process, "main", run_main, process);
  return process;
}

struct process *
process_current (void)
{
  struct actor *actor = self ();

  return actor != NULL ? actor->process : NULL;
}

void *
process_data (const struct process *process)
{
  return process->data;
}

bool
process_is_far (const struct process *process)
{
  return process->is_far;
}

int
process_pid (const struct process *process)
{
  return process->pid;
}

void
process_kill (struct process *process)
{
  end_process (process, -1);
}

bool
process_is_dead (const struct process *process)
{
  return process->is_dead;
}

bool
process_is_over (const struct process *process)
{
  return process->is_dead && process->n_live == 0;
}

int
process_status (const struct process *process)
{
  return process->status;
}

void
process_free (struct process *process)
{
  struct process **link = &world.processes;

  g_assert_true (process_is_over (process));
  while (*link != process)
    link = &(*link)->next;
  *link = process->next;
  while (process->actors != NULL)
    {
      struct actor *actor = process->actors;

      process->actors = actor->next;
      g_free (actor);
    }
  g_hash_table_unref (process->blocks);
  g_free (process);
}

void *
process_alloc (struct process *process, size_t size, size_t limit)
{
  size_t pages = (size + 4095) / 4096 * 4096;
  void *memory;

  if (pages > limit - MIN (limit, process->allocated))
    return NULL;
  memory = g_malloc0 (size);
  process->allocated += pages;
  g_hash_table_insert (process->blocks, memory, GSIZE_TO_POINTER (size));
  return memory;
}

void
process_release (struct process *process, void *memory, size_t size)
{
  g_assert_cmpuint (GPOINTER_TO_SIZE (g_hash_table_lookup (process->blocks, memory)), ==, size);
  process->allocated -= (size + 4095) / 4096 * 4096;
  g_hash_table_remove (process->blocks, memory);
}

size_t
process_allocated (const struct process *process)
{
  return process->allocated;
}

/* --- links --- */

static int
add_fd (enum fd_kind kind, struct process *process, struct link *link, int side)
{
  g_assert_cmpint (world.n_fds, <, FDS_MAX);
  world.fds[world.n_fds]
      = (struct fd){ .kind = kind, .process = process, .link = link, .side = side };
  if (link != NULL)
    link->n_open[side]++;
  return FIRST_FD + world.n_fds++;
}

static struct fd *
get_fd (int fd)
{
  struct fd *found;

  if (fd < FIRST_FD)
    return NULL;
  g_assert_cmpint (fd, <, FIRST_FD + world.n_fds);
  found = &world.fds[fd - FIRST_FD];
  g_assert_cmpint (found->kind, !=, FD_FREE);
  return found;
}

static void
pipe_init (struct pipe *pipe)
{
  pipe->bytes = g_byte_array_new ();
  pipe->chunks = g_array_new (FALSE, FALSE, sizeof (struct chunk));
  pipe->before = g_byte_array_new ();
}

static void
pipe_clear (struct pipe *pipe)
{
  g_byte_array_unref (pipe->bytes);
  g_array_unref (pipe->chunks);
  g_byte_array_unref (pipe->before);
}

struct link *
link_new (const struct link_config *config, struct process *near, struct process *far,
          int *near_end)
{
  struct link *link = g_new0 (struct link, 1);

  link->config = *config;
  pipe_init (&link->to[0]);
  pipe_init (&link->to[1]);
  *near_end = add_fd (FD_LINK, near, link, 0);
  far->is_far = true;
  far->stdio = add_fd (FD_LINK, far, link, 1);
  return link;
}

void
link_free (struct link *link)
{
  g_assert_true (link_is_over (link));
  pipe_clear (&link->to[0]);
  pipe_clear (&link->to[1]);
  g_free (link);
}

static uint64_t
arrival (struct link *link, struct pipe *pipe)
{
  uint64_t at = world_now () + link->config.delay
                + (link->config.jitter > 0 ? roll () % link->config.jitter : 0);

  pipe->last = MAX (pipe->last, at);
  return pipe->last;
}

/* Nothing follows. */
static void
end_pipe (struct link *link, int to, bool is_reset)
{
  struct pipe *pipe = &link->to[to];

  if (pipe->is_closed)
    return;
  pipe->is_closed = true;
  pipe->is_reset = is_reset;
  pipe->end_at = arrival (link, pipe);
  wake (pipe);
}

static void
drop_bytes (struct pipe *pipe)
{
  g_byte_array_set_size (pipe->bytes, 0);
  g_array_set_size (pipe->chunks, 0);
}

void
link_cut (struct link *link)
{
  if (link->is_cut)
    return;
  link->is_cut = true;
  for (int to = 0; to < 2; to++)
    {
      /* What is on the way may arrive, or not. */
      if (world_chance (2))
        drop_bytes (&link->to[to]);
      end_pipe (link, to, world_chance (2));
      wake (&link->to[to]);
    }
}

void
link_freeze (struct link *link, bool frozen)
{
  link->is_frozen = frozen;
  if (!frozen)
    {
      wake (&link->to[0]);
      wake (&link->to[1]);
    }
}

bool
link_has_hung_up (const struct link *link, uint64_t ns)
{
  return !link->is_frozen && link->to[0].is_closed && link->to[0].end_at + ns < world_now ();
}

bool
link_is_over (const struct link *link)
{
  return link->n_open[0] + link->n_open[1] == 0;
}

/* The process has closed its end for the last time, or has shut it. */
static void
shut_side (struct link *link, int side)
{
  struct pipe *to_other = &link->to[!side];
  struct pipe *to_self = &link->to[side];
  /* As a socket: the end is an error to who has sent what nobody read. */
  bool unread = to_self->bytes->len > 0;

  end_pipe (link, !side, unread);
  to_self->is_deaf = true;
  drop_bytes (to_self);
  to_self->is_closed = true;
  to_self->end_at = 0;
  wake (to_other);
  wake (to_self);
}

static void
close_fd (int number)
{
  struct fd *fd = get_fd (number);
  struct link *link = fd->link;

  if (link != NULL && --link->n_open[fd->side] == 0)
    shut_side (link, fd->side);
  wake (fd);
  memset (fd, 0, sizeof *fd);
}

static void
close_all (struct process *process)
{
  for (int i = 0; i < world.n_fds; i++)
    if (world.fds[i].kind != FD_FREE && world.fds[i].process == process)
      close_fd (FIRST_FD + i);
}

static void
add_bytes (struct link *link, int to, const guint8 *bytes, size_t size)
{
  struct pipe *pipe = &link->to[to];

  g_byte_array_append (pipe->bytes, bytes, (guint) size);
  while (size > 0)
    {
      struct chunk chunk
          = { arrival (link, pipe), world_chance (4) ? 1 + world_random ((uint32_t) size) : size };

      g_array_append_val (pipe->chunks, chunk);
      size -= chunk.size;
    }
  wake (pipe);
}

void
world_damage (uint32_t n)
{
  world.damage = n;
}

/* In place of what was written. */
static void
add_damaged (struct link *link, int to, const guint8 *bytes, size_t size)
{
  struct pipe *pipe = &link->to[to];
  g_autoptr (GByteArray) other = g_byte_array_new ();
  /* Mostly where the message says what it is. */
  uint32_t reach = (uint32_t) (world_chance (2) ? MIN (size, 64) : size);
  uint32_t at = world_random (reach);

  g_byte_array_append (other, bytes, (guint) size);
  switch (world_random (6))
    {
    case 0:
      other->data[at] = (guint8) world_random (256);
      break;
    case 1:
      g_byte_array_remove_range (other, at, 1 + world_random ((uint32_t) size - at));
      break;
    case 2:
      g_byte_array_append (other, bytes + at, (guint) (size - at));
      break;
    case 3:
      g_byte_array_set_size (other, 0);
      break;
    case 4:
      if (pipe->before->len > 0)
        g_byte_array_append (other, pipe->before->data, pipe->before->len);
      break;
    default:
      other->data[at] ^= (guint8) (1u << world_random (8));
    }
  if (other->len > 0)
    add_bytes (link, to, other->data, other->len);
}

static void
write_bytes (struct link *link, int to, const guint8 *bytes, size_t size)
{
  struct pipe *pipe = &link->to[to];

  if (world.damage == 0 || size == 0 || !world_chance (world.damage))
    add_bytes (link, to, bytes, size);
  else
    add_damaged (link, to, bytes, size);
  if (world.damage == 0)
    return;
  g_byte_array_set_size (pipe->before, 0);
  g_byte_array_append (pipe->before, bytes, (guint) MIN (size, 4096));
}

static size_t
get_room (const struct link *link, int to)
{
  return link->config.capacity - MIN (link->config.capacity, link->to[to].bytes->len);
}

/* Of what there is, how much has arrived; next: when more does, or the end. */
static size_t
get_arrived (const struct link *link, int to, uint64_t *next)
{
  const struct pipe *pipe = &link->to[to];
  size_t n = 0;

  *next = PTO_NEVER;
  if (link->is_frozen)
    return 0;
  for (guint i = 0; i < pipe->chunks->len; i++)
    {
      const struct chunk *chunk = &g_array_index (pipe->chunks, struct chunk, i);

      if (chunk->at > world_now ())
        {
          *next = chunk->at;
          return n;
        }
      n += chunk->size;
    }
  if (pipe->is_closed && pipe->end_at > world_now ())
    *next = pipe->end_at;
  return n;
}

static bool
has_ended (const struct link *link, int to)
{
  return link->to[to].is_closed
         && (link->to[to].is_deaf || (!link->is_frozen && link->to[to].end_at <= world_now ()));
}

static gssize
read_link (struct link *link, int side, void *to, size_t size)
{
  struct pipe *pipe = &link->to[side];

  for (;;)
    {
      uint64_t next;
      size_t n = MIN (get_arrived (link, side, &next), size);

      if (n > 0)
        {
          size_t left;

          if (world_chance (8))
            n = 1 + world_random ((uint32_t) n);
          memcpy (to, pipe->bytes->data, n);
          g_byte_array_remove_range (pipe->bytes, 0, (guint) n);
          for (left = n; left > 0;)
            {
              struct chunk *chunk = &g_array_index (pipe->chunks, struct chunk, 0);
              size_t some = MIN (left, chunk->size);

              chunk->size -= some;
              left -= some;
              if (chunk->size == 0)
                g_array_remove_index (pipe->chunks, 0);
            }
          wake (pipe);
          return (gssize) n;
        }
      if (has_ended (link, side))
        {
          if (!pipe->is_reset)
            return 0;
          errno = ECONNRESET;
          return -1;
        }
      wait_for (pipe, NULL, NULL, next);
    }
}

static gssize
write_link (struct link *link, int side, const struct iovec *parts, int n_parts)
{
  int to = !side;
  struct pipe *pipe = &link->to[to];
  gssize written = 0;

  for (;;)
    {
      /* Who is cut off learns it by the end of the other direction, or here. */
      if (pipe->is_closed || link->to[side].is_deaf)
        {
          errno = world_chance (2) ? EPIPE : ECONNRESET;
          return -1;
        }
      if (get_room (link, to) > 0)
        break;
      wait_for (pipe, NULL, NULL, PTO_NEVER);
    }
  for (int i = 0; i < n_parts; i++)
    {
      size_t n = MIN (parts[i].iov_len, get_room (link, to));

      if (n > 0 && world_chance (16))
        n = 1 + world_random ((uint32_t) n);
      write_bytes (link, to, parts[i].iov_base, n);
      written += (gssize) n;
      if (n < parts[i].iov_len)
        break;
    }
  if (link->config.cut_after != UINT64_MAX)
    {
      if (link->config.cut_after <= (uint64_t) written)
        link_cut (link);
      else
        link->config.cut_after -= (uint64_t) written;
    }
  return written;
}

/* --- what the code under test calls --- */

ssize_t __real_read (int fd, void *to, size_t size);
ssize_t __wrap_read (int fd, void *to, size_t size);
ssize_t
__wrap_read (int fd, void *to, size_t size)
{
  struct fd *found = get_fd (fd);

  if (found == NULL)
    return __real_read (fd, to, size);
  g_assert_cmpint (found->kind, ==, FD_LINK);
  world_step (0);
  return read_link (found->link, found->side, to, size);
}

ssize_t __real_writev (int fd, const struct iovec *parts, int n);
ssize_t __wrap_writev (int fd, const struct iovec *parts, int n);
ssize_t
__wrap_writev (int fd, const struct iovec *parts, int n)
{
  struct fd *found = get_fd (fd);

  if (found == NULL)
    return __real_writev (fd, parts, n);
  g_assert_cmpint (found->kind, ==, FD_LINK);
  world_step (0);
  return write_link (found->link, found->side, parts, n);
}

int __real_close (int fd);
int __wrap_close (int fd);
int
__wrap_close (int fd)
{
  if (fd < FIRST_FD)
    return __real_close (fd);
  /* Of a process that is no more it is closed already. */
  if (self () != NULL || world.fds[fd - FIRST_FD].kind != FD_FREE)
    close_fd (fd);
  return 0;
}

int __real_shutdown (int fd, int how);
int __wrap_shutdown (int fd, int how);
int
__wrap_shutdown (int fd, int how)
{
  struct fd *found = get_fd (fd);

  if (found == NULL)
    return __real_shutdown (fd, how);
  shut_side (found->link, found->side);
  return 0;
}

int __real_eventfd (unsigned int value, int flags);
int __wrap_eventfd (unsigned int value, int flags);
int
__wrap_eventfd (unsigned int value, int flags)
{
  if (self () == NULL)
    return __real_eventfd (value, flags);
  return add_fd (FD_EVENT, self ()->process, NULL, 0);
}

int __real_eventfd_write (int fd, eventfd_t value);
int __wrap_eventfd_write (int fd, eventfd_t value);
int
__wrap_eventfd_write (int fd, eventfd_t value)
{
  struct fd *found = get_fd (fd);

  if (found == NULL)
    return __real_eventfd_write (fd, value);
  found->event += value;
  wake (found);
  return 0;
}

int __real_eventfd_read (int fd, eventfd_t *value);
int __wrap_eventfd_read (int fd, eventfd_t *value);
int
__wrap_eventfd_read (int fd, eventfd_t *value)
{
  struct fd *found = get_fd (fd);

  if (found == NULL)
    return __real_eventfd_read (fd, value);
  if (found->event == 0)
    {
      errno = EAGAIN;
      return -1;
    }
  *value = found->event;
  found->event = 0;
  return 0;
}

/* Gives what is so, and when it may be otherwise. */
static short
look_at (const struct fd *fd, short events, uint64_t *next)
{
  const struct link *link = fd->link;
  short found = 0;

  *next = PTO_NEVER;
  if (fd->kind == FD_EVENT)
    return fd->event > 0 ? events & POLLIN : 0;
  if (get_arrived (link, fd->side, next) > 0 || has_ended (link, fd->side))
    found |= POLLIN;
  if (has_ended (link, fd->side))
    found |= POLLRDHUP;
  if (get_room (link, !fd->side) >= WRITABLE_BYTES || link->to[!fd->side].is_closed)
    found |= POLLOUT;
  found &= events;
  if (has_ended (link, fd->side) && link->to[!fd->side].is_closed)
    found |= POLLHUP;
  return found;
}

int __real_poll (struct pollfd *watched, nfds_t n, int timeout_ms);
int __wrap_poll (struct pollfd *watched, nfds_t n, int timeout_ms);
int
__wrap_poll (struct pollfd *watched, nfds_t n, int timeout_ms)
{
  uint64_t until;

  if (self () == NULL)
    return __real_poll (watched, n, timeout_ms);
  g_assert_cmpuint (n, <, WHATS);
  until = timeout_ms < 0 ? PTO_NEVER : world_now () + (uint64_t) timeout_ms * MS;
  if (timeout_ms != 0)
    world_step (0);
  for (;;)
    {
      const void *whats[WHATS] = { NULL };
      uint64_t next = until;
      int ready = 0;

      for (nfds_t i = 0; i < n; i++)
        {
          const struct fd *fd = get_fd (watched[i].fd);
          uint64_t at;

          watched[i].revents = 0;
          if (watched[i].fd < 0)
            continue;
          g_assert_nonnull (fd);
          watched[i].revents = look_at (fd, watched[i].events, &at);
          ready += watched[i].revents != 0;
          next = MIN (next, at);
          whats[i] = fd->kind == FD_EVENT ? (const void *) fd : &fd->link->to[fd->side];
        }
      if (ready > 0 || timeout_ms == 0 || world_now () >= until)
        return ready;
      wait_for (whats[0], whats[1], whats[2], next);
    }
}

/* Its standard input and output, once more: both are the connection. */
int __wrap_fcntl (int fd, int command, ...);
int __real_fcntl (int fd, int command, ...);
int
__wrap_fcntl (int fd, int command, ...)
{
  struct actor *actor = self ();
  va_list args;
  long value;

  va_start (args, command);
  value = va_arg (args, long);
  va_end (args);
  if (actor == NULL || command != F_DUPFD_CLOEXEC)
    return __real_fcntl (fd, command, value);
  g_assert_cmpint (fd, <, 2);
  return add_fd (FD_LINK, actor->process, get_fd (actor->process->stdio)->link, 1);
}

int __wrap_fcntl64 (int fd, int command, ...) __attribute__ ((alias ("__wrap_fcntl")));

int __real_dup2 (int from, int to);
int __wrap_dup2 (int from, int to);
int
__wrap_dup2 (int from, int to)
{
  struct actor *actor = self ();

  if (actor == NULL)
    return __real_dup2 (from, to);
  /* Both have their place taken by something else. */
  if (to == STDOUT_FILENO && actor->process->stdio >= 0)
    {
      close_fd (actor->process->stdio);
      actor->process->stdio = -1;
    }
  return to;
}

_Noreturn void __real__exit (int status);
_Noreturn void __wrap__exit (int status);
void
__wrap__exit (int status)
{
  struct actor *actor = self ();

  if (actor == NULL)
    __real__exit (status);
  end_process (actor->process, status);
  longjmp (actor->end, 1);
}

int __real_pause (void);
int __wrap_pause (void);
int
__wrap_pause (void)
{
  if (self () == NULL)
    return __real_pause ();
  wait_for (NULL, NULL, NULL, PTO_NEVER);
  return -1;
}

int __real_kill (pid_t pid, int signal);
int __wrap_kill (pid_t pid, int signal);
int
__wrap_kill (pid_t pid, int signal)
{
  if (pid < FIRST_PID)
    return __real_kill (pid, signal);
  g_assert_cmpint (signal, ==, SIGKILL);
  for (struct process *p = world.processes; p != NULL; p = p->next)
    if (p->pid == pid)
      process_kill (p);
  return 0;
}

pid_t __real_waitpid (pid_t pid, int *status, int flags);
pid_t __wrap_waitpid (pid_t pid, int *status, int flags);
pid_t
__wrap_waitpid (pid_t pid, int *status, int flags)
{
  if (self () == NULL || pid < FIRST_PID)
    return __real_waitpid (pid, status, flags);
  for (struct process *p = world.processes; p != NULL; p = p->next)
    if (p->pid == pid)
      {
        while (!p->is_dead && (flags & WNOHANG) == 0)
          wait_for (p, NULL, NULL, PTO_NEVER);
        if (!p->is_dead)
          return 0;
        if (status != NULL)
          *status = p->status < 0 ? SIGKILL : p->status << 8;
        return pid;
      }
  errno = ECHILD;
  return -1;
}

typedef void (*handler) (int);
handler __real_signal (int number, handler handler_func);
handler __wrap_signal (int number, handler handler_func);
handler
__wrap_signal (int number, handler handler_func)
{
  return self () != NULL ? SIG_DFL : __real_signal (number, handler_func);
}

int __real_clock_gettime (clockid_t clock, struct timespec *now);
int __wrap_clock_gettime (clockid_t clock, struct timespec *now);
int
__wrap_clock_gettime (clockid_t clock, struct timespec *now)
{
  uint64_t ns;

  if (self () == NULL || clock != CLOCK_MONOTONIC)
    return __real_clock_gettime (clock, now);
  ns = EPOCH_NS + world_now ();
  now->tv_sec = (time_t) (ns / 1000000000);
  now->tv_nsec = (long) (ns % 1000000000);
  return 0;
}

gint64 __real_g_get_monotonic_time (void);
gint64 __wrap_g_get_monotonic_time (void);
gint64
__wrap_g_get_monotonic_time (void)
{
  return self () != NULL ? (gint64) ((EPOCH_NS + world_now ()) / US)
                         : __real_g_get_monotonic_time ();
}

void __real_g_usleep (gulong us);
void __wrap_g_usleep (gulong us);
void
__wrap_g_usleep (gulong us)
{
  if (self () != NULL)
    world_sleep (us * US);
  else
    __real_g_usleep (us);
}

GThread *__real_g_thread_new (const char *name, GThreadFunc func, gpointer data);
GThread *__wrap_g_thread_new (const char *name, GThreadFunc func, gpointer data);
GThread *
__wrap_g_thread_new (const char *name, GThreadFunc func, gpointer data)
{
  if (self () == NULL)
    return __real_g_thread_new (name, func, data);
  return (GThread *) actor_new (self ()->process, name, func, data);
}

gpointer __real_g_thread_join (GThread *thread);
gpointer __wrap_g_thread_join (GThread *thread);
gpointer
__wrap_g_thread_join (GThread *thread)
{
  struct actor *actor = (struct actor *) thread;

  if (self () == NULL)
    return __real_g_thread_join (thread);
  while (!actor->is_over)
    wait_for (actor, NULL, NULL, PTO_NEVER);
  return actor->result;
}

/* A lock of the system is one of an actor, too: nobody else's thread is there. */
void __real_g_mutex_lock (GMutex *lock);
void __wrap_g_mutex_lock (GMutex *lock);
void
__wrap_g_mutex_lock (GMutex *lock)
{
  if (self () == NULL)
    {
      __real_g_mutex_lock (lock);
      return;
    }
  while (!g_mutex_trylock (lock))
    wait_for (lock, NULL, NULL, PTO_NEVER);
}

void __real_g_mutex_unlock (GMutex *lock);
void __wrap_g_mutex_unlock (GMutex *lock);
void
__wrap_g_mutex_unlock (GMutex *lock)
{
  __real_g_mutex_unlock (lock);
  if (self () != NULL)
    wake (lock);
}

void __real_g_mutex_clear (GMutex *lock);
void __wrap_g_mutex_clear (GMutex *lock);
void
__wrap_g_mutex_clear (GMutex *lock)
{
  /* Of a process that is no more it may be held, and there is nothing behind it. */
  if (self () != NULL || world.exec == NULL)
    __real_g_mutex_clear (lock);
}

gboolean __real_g_cond_wait_until (GCond *cond, GMutex *lock, gint64 until);
gboolean __wrap_g_cond_wait_until (GCond *cond, GMutex *lock, gint64 until);
gboolean
__wrap_g_cond_wait_until (GCond *cond, GMutex *lock, gint64 until)
{
  gboolean woken;

  if (self () == NULL)
    return __real_g_cond_wait_until (cond, lock, until);
  __wrap_g_mutex_unlock (lock);
  woken = wait_for (cond, NULL, NULL, (uint64_t) until * US - EPOCH_NS);
  __wrap_g_mutex_lock (lock);
  return woken;
}

void __real_g_cond_wait (GCond *cond, GMutex *lock);
void __wrap_g_cond_wait (GCond *cond, GMutex *lock);
void
__wrap_g_cond_wait (GCond *cond, GMutex *lock)
{
  if (self () == NULL)
    {
      __real_g_cond_wait (cond, lock);
      return;
    }
  __wrap_g_mutex_unlock (lock);
  wait_for (cond, NULL, NULL, PTO_NEVER);
  __wrap_g_mutex_lock (lock);
}

void __real_g_cond_broadcast (GCond *cond);
void __wrap_g_cond_broadcast (GCond *cond);
void
__wrap_g_cond_broadcast (GCond *cond)
{
  if (self () != NULL)
    wake (cond);
  else
    __real_g_cond_broadcast (cond);
}

static void
take_line (const char *format, va_list args)
{
  g_vsnprintf (world.last_line, sizeof world.last_line, format, args);
  world.n_lines++;
}

void __real_g_printerr (const char *format, ...);
void __wrap_g_printerr (const char *format, ...) G_GNUC_PRINTF (1, 2);
void
__wrap_g_printerr (const char *format, ...)
{
  va_list args;

  va_start (args, format);
  if (self () != NULL)
    take_line (format, args);
  else
    vfprintf (stderr, format, args);
  va_end (args);
}

int __wrap_fprintf (FILE *file, const char *format, ...) G_GNUC_PRINTF (2, 3);
int
__wrap_fprintf (FILE *file, const char *format, ...)
{
  va_list args;
  int n = 0;

  va_start (args, format);
  if (self () != NULL && file == stderr)
    take_line (format, args);
  else
    n = vfprintf (file, format, args);
  va_end (args);
  return n;
}

int __wrap___fprintf_chk (FILE *file, int flag, const char *format, ...) G_GNUC_PRINTF (3, 4);
int
__wrap___fprintf_chk (FILE *file, int flag, const char *format, ...)
{
  va_list args;
  int n = 0;

  va_start (args, format);
  if (self () != NULL && file == stderr)
    take_line (format, args);
  else
    n = vfprintf (file, format, args);
  va_end (args);
  return n;
}

/* Who waits for a request in its mailbox is not to wait there when it is dead. */
enum pto_park_result __real_pto_shared_park (struct pto_exec *exec, struct pto_word *word,
                                             uint32_t expected, uint64_t spin, uint64_t deadline);
enum pto_park_result __wrap_pto_shared_park (struct pto_exec *exec, struct pto_word *word,
                                             uint32_t expected, uint64_t spin, uint64_t deadline);
enum pto_park_result
__wrap_pto_shared_park (struct pto_exec *exec, struct pto_word *word, uint32_t expected,
                        uint64_t spin, uint64_t deadline)
{
  struct actor *actor = self ();
  enum pto_park_result result;

  if (actor != NULL)
    {
      check_alive (actor);
      actor->parked_on = word;
    }
  result = __real_pto_shared_park (exec, word, expected, spin, deadline);
  if (actor != NULL)
    {
      actor->parked_on = NULL;
      check_alive (actor);
    }
  return result;
}

/* Children and their threads say no executor: they are processes. */
void __real_pto_bell_ring (struct pto_exec *exec, struct pto_bell *bell);
void __wrap_pto_bell_ring (struct pto_exec *exec, struct pto_bell *bell);
void
__wrap_pto_bell_ring (struct pto_exec *exec, struct pto_bell *bell)
{
  __real_pto_bell_ring (exec == NULL && self () != NULL ? world.exec : exec, bell);
}
