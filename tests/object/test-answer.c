/* test-answer.c: does a fork wait until whoever answers is not at work?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the answering thread asks of the system is done here, and held up: a fork that is begun then
 * must not be over before that is, or its copy would have the locks of a thread that it has not.
 */
#include "object-test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_US (60 * G_USEC_PER_SEC)
/* A fork that does not wait is over by then; if it is not, this notices nothing. */
#define HELD_US (100 * 1000)

typedef enum
{
  NOTHING,
  ACCEPT,
  RECEIVE,
  SEND
} Call;

static _Atomic int held; /* Call: the next one of the thread is held up */
static _Atomic int is_held;
static _Atomic int is_forked;
static _Atomic int was_forked; /* meanwhile */

static void
hold (Call call)
{
  int expected = (int) call;

  /* The test's own threads have other names. */
  char name[16];

  if (pthread_getname_np (pthread_self (), name, sizeof name) != 0
      || strcmp (name, "pto-answer") != 0
      || !atomic_compare_exchange_strong (&held, &expected, NOTHING))
    return;
  atomic_store (&is_held, 1);
  for (gint64 until = g_get_monotonic_time () + HELD_US;
       g_get_monotonic_time () < until && !atomic_load (&is_forked);)
    g_usleep (100);
  atomic_store (&was_forked, atomic_load (&is_forked));
}

G_MODULE_EXPORT int
accept4 (int fd, struct sockaddr *address, socklen_t *length, int flags)
{
  hold (ACCEPT);
  return (int) syscall (SYS_accept4, fd, address, length, flags);
}

G_MODULE_EXPORT ssize_t
recv (int fd, void *buffer, size_t size, int flags)
{
  hold (RECEIVE);
  return syscall (SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
}

G_MODULE_EXPORT ssize_t
send (int fd, const void *buffer, size_t size, int flags)
{
  hold (SEND);
  return syscall (SYS_sendto, fd, buffer, size, flags, NULL, 0);
}

/* --- who asks --- */

static int
connect_to_answer (void)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct stat names;
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int length;

  g_assert_cmpint (stat ("/proc/self/ns/pid", &names), ==, 0);
  length = g_snprintf (address.sun_path + 1, sizeof address.sun_path - 1,
                       "libpto/answer/%" G_GUINT64_FORMAT "/%d", (guint64) names.st_ino, getpid ());
  g_assert_cmpint (
      connect (fd, (struct sockaddr *) &address,
               (socklen_t) (G_STRUCT_OFFSET (struct sockaddr_un, sun_path) + 1 + (gsize) length)),
      ==, 0);
  return fd;
}

static gpointer
ask (gpointer data)
{
  static const char request[] = "pto-ask 1 json 300\n";
  char answer[4096];
  int fd = connect_to_answer ();
  gsize n = 0;
  ssize_t more;

  g_assert_cmpint (syscall (SYS_sendto, fd, request, strlen (request), 0, NULL, 0), ==,
                   strlen (request));
  while ((more = syscall (SYS_recvfrom, fd, answer + n, sizeof answer - 1 - n, 0, NULL, NULL)) > 0)
    n += (gsize) more;
  answer[n] = '\0';
  g_assert_cmpint (strncmp (answer, "pto-answer 1 ok ", strlen ("pto-answer 1 ok ")), ==, 0);
  close (fd);
  return NULL;
}

static void
test_fork (gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  GThread *asking;
  pid_t child;
  int status;

  g_assert_true (pto_answer_start (&error));
  g_assert_no_error (error);
  atomic_store (&is_held, 0);
  atomic_store (&is_forked, 0);
  atomic_store (&was_forked, 0);
  atomic_store (&held, GPOINTER_TO_INT (data));
  asking = g_thread_new ("asking", ask, NULL);
  for (gint64 until = g_get_monotonic_time () + DEADLINE_US; !atomic_load (&is_held);)
    {
      /* Else the system's own function was called. */
      g_assert_cmpint (g_get_monotonic_time (), <, until);
      g_usleep (100);
    }
  child = fork ();
  if (child == 0)
    {
      alarm (30);
      _exit (!pto_answer_is_on () && pto_answer_start (NULL) ? 0 : 1);
    }
  atomic_store (&is_forked, 1);
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_cmpint (status, ==, 0);
  g_thread_join (asking);
  pto_answer_stop ();
  g_assert_cmpint (atomic_load (&was_forked), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/pto/answer/fork-while-somebody-is-let-in", GINT_TO_POINTER (ACCEPT),
                        test_fork);
  g_test_add_data_func ("/pto/answer/fork-while-somebody-asks", GINT_TO_POINTER (RECEIVE),
                        test_fork);
  g_test_add_data_func ("/pto/answer/fork-while-somebody-is-answered", GINT_TO_POINTER (SEND),
                        test_fork);
  return g_test_run ();
}
