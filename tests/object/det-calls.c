/* det-calls.c: what becomes of the calls of code that runs in virtual time?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each goes to the world where an actor of a process makes it, and to the system otherwise.
 */
#include "det-world-private.h"

#include "../../pto/exec/shared-wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A socket is writable when a small message finds room. */
#define WRITABLE_BYTES 4096u
/* CLOCK_MONOTONIC is not 0 anywhere. */
#define EPOCH_NS (1000 * UINT64_C (1000000000))

ssize_t __real_read (int fd, void *to, size_t size);
ssize_t __wrap_read (int fd, void *to, size_t size);
ssize_t
__wrap_read (int fd, void *to, size_t size)
{
  struct fd *found = fd_get (fd);

  if (found == NULL)
    return __real_read (fd, to, size);
  g_assert_cmpint (found->kind, ==, FD_LINK);
  world_step (0);
  return link_read (found->link, found->side, to, size);
}

ssize_t __real_writev (int fd, const struct iovec *parts, int n);
ssize_t __wrap_writev (int fd, const struct iovec *parts, int n);
ssize_t
__wrap_writev (int fd, const struct iovec *parts, int n)
{
  struct fd *found = fd_get (fd);

  if (found == NULL)
    return __real_writev (fd, parts, n);
  g_assert_cmpint (found->kind, ==, FD_LINK);
  world_step (0);
  return link_write (found->link, found->side, parts, n);
}

int __real_close (int fd);
int __wrap_close (int fd);
int
__wrap_close (int fd)
{
  if (fd < FIRST_FD)
    return __real_close (fd);
  /* Of a process that is no more it is closed already. */
  if (world_self () != NULL || fd_is_open (fd))
    fd_close (fd);
  return 0;
}

int __real_shutdown (int fd, int how);
int __wrap_shutdown (int fd, int how);
int
__wrap_shutdown (int fd, int how)
{
  struct fd *found = fd_get (fd);

  if (found == NULL)
    return __real_shutdown (fd, how);
  link_shut (found->link, found->side);
  return 0;
}

int __real_eventfd (unsigned int value, int flags);
int __wrap_eventfd (unsigned int value, int flags);
int
__wrap_eventfd (unsigned int value, int flags)
{
  if (world_self () == NULL)
    return __real_eventfd (value, flags);
  return fd_add (FD_EVENT, world_self ()->process, NULL, 0);
}

int __real_eventfd_write (int fd, eventfd_t value);
int __wrap_eventfd_write (int fd, eventfd_t value);
int
__wrap_eventfd_write (int fd, eventfd_t value)
{
  struct fd *found = fd_get (fd);

  if (found == NULL)
    return __real_eventfd_write (fd, value);
  found->event += value;
  world_wake (found);
  return 0;
}

int __real_eventfd_read (int fd, eventfd_t *value);
int __wrap_eventfd_read (int fd, eventfd_t *value);
int
__wrap_eventfd_read (int fd, eventfd_t *value)
{
  struct fd *found = fd_get (fd);

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
  if (link_arrived (link, fd->side, next) > 0 || link_has_ended (link, fd->side))
    found |= POLLIN;
  if (link_has_ended (link, fd->side))
    found |= POLLRDHUP;
  if (link_room (link, !fd->side) >= WRITABLE_BYTES || link_is_closed (link, !fd->side))
    found |= POLLOUT;
  found &= events;
  if (link_has_ended (link, fd->side) && link_is_closed (link, !fd->side))
    found |= POLLHUP;
  return found;
}

int __real_poll (struct pollfd *watched, nfds_t n, int timeout_ms);
int __wrap_poll (struct pollfd *watched, nfds_t n, int timeout_ms);
int
__wrap_poll (struct pollfd *watched, nfds_t n, int timeout_ms)
{
  uint64_t until;

  if (world_self () == NULL)
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
          const struct fd *fd = fd_get (watched[i].fd);
          uint64_t at;

          watched[i].revents = 0;
          if (watched[i].fd < 0)
            continue;
          g_assert_nonnull (fd);
          watched[i].revents = look_at (fd, watched[i].events, &at);
          ready += watched[i].revents != 0;
          next = MIN (next, at);
          whats[i] = fd->kind == FD_EVENT ? (const void *) fd : link_what (fd->link, fd->side);
        }
      if (ready > 0 || timeout_ms == 0 || world_now () >= until)
        return ready;
      world_wait (whats[0], whats[1], whats[2], next);
    }
}

/* Its standard input and output, once more: both are the connection. */
int __wrap_fcntl (int fd, int command, ...);
int __real_fcntl (int fd, int command, ...);
int
__wrap_fcntl (int fd, int command, ...)
{
  struct actor *actor = world_self ();
  va_list args;
  long value;

  va_start (args, command);
  value = va_arg (args, long);
  va_end (args);
  if (actor == NULL || command != F_DUPFD_CLOEXEC)
    return __real_fcntl (fd, command, value);
  g_assert_cmpint (fd, <, 2);
  return fd_add (FD_LINK, actor->process, fd_get (actor->process->stdio)->link, 1);
}

int __wrap_fcntl64 (int fd, int command, ...) __attribute__ ((alias ("__wrap_fcntl")));

int __real_dup2 (int from, int to);
int __wrap_dup2 (int from, int to);
int
__wrap_dup2 (int from, int to)
{
  struct actor *actor = world_self ();

  if (actor == NULL)
    return __real_dup2 (from, to);
  /* Both have their place taken by something else. */
  if (to == STDOUT_FILENO && actor->process->stdio >= 0)
    {
      fd_close (actor->process->stdio);
      actor->process->stdio = -1;
    }
  return to;
}

_Noreturn void __real__exit (int status);
_Noreturn void __wrap__exit (int status);
void
__wrap__exit (int status)
{
  struct actor *actor = world_self ();

  if (actor == NULL)
    __real__exit (status);
  process_end (actor->process, status);
  longjmp (actor->end, 1);
}

int __real_pause (void);
int __wrap_pause (void);
int
__wrap_pause (void)
{
  if (world_self () == NULL)
    return __real_pause ();
  world_wait (NULL, NULL, NULL, PTO_NEVER);
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
  if (world_self () == NULL || pid < FIRST_PID)
    return __real_waitpid (pid, status, flags);
  for (struct process *p = world.processes; p != NULL; p = p->next)
    if (p->pid == pid)
      {
        while (!p->is_dead && (flags & WNOHANG) == 0)
          world_wait (p, NULL, NULL, PTO_NEVER);
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
  return world_self () != NULL ? SIG_DFL : __real_signal (number, handler_func);
}

int __real_clock_gettime (clockid_t clock, struct timespec *now);
int __wrap_clock_gettime (clockid_t clock, struct timespec *now);
int
__wrap_clock_gettime (clockid_t clock, struct timespec *now)
{
  uint64_t ns;

  if (world_self () == NULL || clock != CLOCK_MONOTONIC)
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
  return world_self () != NULL ? (gint64) ((EPOCH_NS + world_now ()) / US)
                               : __real_g_get_monotonic_time ();
}

void __real_g_usleep (gulong us);
void __wrap_g_usleep (gulong us);
void
__wrap_g_usleep (gulong us)
{
  if (world_self () != NULL)
    world_sleep (us * US);
  else
    __real_g_usleep (us);
}

GThread *__real_g_thread_try_new (const char *name, GThreadFunc func, gpointer data,
                                  GError **error);
GThread *__wrap_g_thread_try_new (const char *name, GThreadFunc func, gpointer data,
                                  GError **error);
GThread *
__wrap_g_thread_try_new (const char *name, GThreadFunc func, gpointer data, GError **error)
{
  if (world_self () == NULL)
    return __real_g_thread_try_new (name, func, data, error);
  return (GThread *) actor_new (world_self ()->process, name, func, data);
}

gpointer __real_g_thread_join (GThread *thread);
gpointer __wrap_g_thread_join (GThread *thread);
gpointer
__wrap_g_thread_join (GThread *thread)
{
  struct actor *actor = (struct actor *) thread;

  if (world_self () == NULL)
    return __real_g_thread_join (thread);
  while (!actor->is_over)
    world_wait (actor, NULL, NULL, PTO_NEVER);
  return actor->result;
}

/* A lock of the system is one of an actor, too: nobody else's thread is there. */
void __real_g_mutex_lock (GMutex *lock);
void __wrap_g_mutex_lock (GMutex *lock);
void
__wrap_g_mutex_lock (GMutex *lock)
{
  if (world_self () == NULL)
    {
      __real_g_mutex_lock (lock);
      return;
    }
  while (!g_mutex_trylock (lock))
    world_wait (lock, NULL, NULL, PTO_NEVER);
}

void __real_g_mutex_unlock (GMutex *lock);
void __wrap_g_mutex_unlock (GMutex *lock);
void
__wrap_g_mutex_unlock (GMutex *lock)
{
  __real_g_mutex_unlock (lock);
  if (world_self () != NULL)
    world_wake (lock);
}

void __real_g_mutex_clear (GMutex *lock);
void __wrap_g_mutex_clear (GMutex *lock);
void
__wrap_g_mutex_clear (GMutex *lock)
{
  /* Of a process that is no more it may be held, and there is nothing behind it. */
  if (world_self () != NULL || world.exec == NULL)
    __real_g_mutex_clear (lock);
}

gboolean __real_g_cond_wait_until (GCond *cond, GMutex *lock, gint64 until);
gboolean __wrap_g_cond_wait_until (GCond *cond, GMutex *lock, gint64 until);
gboolean
__wrap_g_cond_wait_until (GCond *cond, GMutex *lock, gint64 until)
{
  gboolean woken;

  if (world_self () == NULL)
    return __real_g_cond_wait_until (cond, lock, until);
  __wrap_g_mutex_unlock (lock);
  woken = world_wait (cond, NULL, NULL, (uint64_t) until * US - EPOCH_NS);
  __wrap_g_mutex_lock (lock);
  return woken;
}

void __real_g_cond_wait (GCond *cond, GMutex *lock);
void __wrap_g_cond_wait (GCond *cond, GMutex *lock);
void
__wrap_g_cond_wait (GCond *cond, GMutex *lock)
{
  if (world_self () == NULL)
    {
      __real_g_cond_wait (cond, lock);
      return;
    }
  __wrap_g_mutex_unlock (lock);
  world_wait (cond, NULL, NULL, PTO_NEVER);
  __wrap_g_mutex_lock (lock);
}

void __real_g_cond_broadcast (GCond *cond);
void __wrap_g_cond_broadcast (GCond *cond);
void
__wrap_g_cond_broadcast (GCond *cond)
{
  if (world_self () != NULL)
    world_wake (cond);
  else
    __real_g_cond_broadcast (cond);
}

static void
take_line (const char *format, va_list args)
{
  g_vsnprintf (world.last_line, sizeof world.last_line, format, args);
  world.n_lines++;
}

static int
print (FILE *file, const char *format, va_list args)
{
  if (world_self () == NULL || file != stderr)
    return vfprintf (file, format, args);
  take_line (format, args);
  return 0;
}

void __real_g_printerr (const char *format, ...);
void __wrap_g_printerr (const char *format, ...) G_GNUC_PRINTF (1, 2);
void
__wrap_g_printerr (const char *format, ...)
{
  va_list args;

  va_start (args, format);
  print (stderr, format, args);
  va_end (args);
}

int __wrap_fprintf (FILE *file, const char *format, ...) G_GNUC_PRINTF (2, 3);
int
__wrap_fprintf (FILE *file, const char *format, ...)
{
  va_list args;
  int n;

  va_start (args, format);
  n = print (file, format, args);
  va_end (args);
  return n;
}

int __wrap___fprintf_chk (FILE *file, int flag, const char *format, ...) G_GNUC_PRINTF (3, 4);
int
__wrap___fprintf_chk (FILE *file, int flag, const char *format, ...)
{
  va_list args;
  int n;

  va_start (args, format);
  n = print (file, format, args);
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
  struct actor *actor = world_self ();
  enum pto_park_result result;

  if (actor != NULL)
    {
      actor_check_alive (actor);
      actor->parked_on = word;
    }
  result = __real_pto_shared_park (exec, word, expected, spin, deadline);
  if (actor != NULL)
    {
      actor->parked_on = NULL;
      actor_check_alive (actor);
    }
  return result;
}

/* Children and their threads say no executor: they are processes. */
void __real_pto_bell_ring (struct pto_exec *exec, struct pto_bell *bell);
void __wrap_pto_bell_ring (struct pto_exec *exec, struct pto_bell *bell);
void
__wrap_pto_bell_ring (struct pto_exec *exec, struct pto_bell *bell)
{
  __real_pto_bell_ring (exec == NULL && world_self () != NULL ? world.exec : exec, bell);
}
