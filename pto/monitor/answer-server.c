/* answer-server.c: who answers what the workers of a process do, whatever they do?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One thread that has no part in any run. It sleeps in poll() until somebody connects to its
 * socket, or until SIGQUIT has come, whose handler does nothing but write to a descriptor. All
 * signals but that one are blocked in it, so the signal finds a thread that takes it whatever
 * kernels have blocked in theirs.
 *
 * Nobody is waited for alone: who asks, who is asked below, and standard error, which may be a pipe
 * that nobody reads, are all in that one poll(), each with a time after which it is given up.
 *
 * What is here is under PTO_LOCK_ANSWERING, which the thread lets go only while it sleeps there. So
 * a fork finds the descriptors as they are, and its copy closes them. Between the two the thread
 * calls the C library, GLib's containers and json-glib, no GIO.
 */
#include "config.h"

#include "answer.h"

#include "base/error.h"
#include "base/locks.h"
#include "base/log.h"
#include "common/text.h"
#include "pto-version.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Whoever asks has so long to do it, and then to take the answer. */
#define PATIENCE_US (5 * G_USEC_PER_SEC)
/* Those below are not waited for any longer, whatever whoever asks says. */
#define WITHIN_MAX_MS 5000u
#define BACKLOG 64
#define CLIENTS_MAX 32u
#define REQUEST_MAX 200
/* No descriptor is left: looked at again after this. */
#define PAUSE_US (100 * 1000)
/* In a copy that a fork is about to make the name is not yet given back. */
#define NAME_TRIES 50u
#define NAME_PAUSE_US 1000
/* Of a descriptor that can not be told not to block, no more than it has said it has room for. */
#define CAREFUL_BYTES 256u

typedef enum
{
  PHASE_FREE, /* an answer and a gathering may be left: they are freed by the next one */
  PHASE_READS,
  PHASE_GATHERS,
  PHASE_WRITES
} Phase;

typedef struct
{
  Phase phase;
  int fd;               /* while it is not free */
  gboolean is_borrowed; /* the program's own */
  gint64 deadline;      /* to ask; to take the answer */
  guint first_fd;       /* of the round's descriptors: its own, then those that it gathers from */
  char request[REQUEST_MAX + 1];
  gsize length;
  PtoGathering *gathering;
  char *answer;
  gsize size;
  gsize written;
} Client;

/* The last one is standard error. */
static Client clients[CLIENTS_MAX + 1];
#define STANDARD_ERROR (&clients[CLIENTS_MAX])

static pthread_t thread;
static sem_t has_begun;
static gboolean is_to_end;
static int listener = -1;
static char *own_path; /* of the listener, where that has one */
/* Closed where no other is left, so that somebody can be let in. */
static int spare = -1;
static gint64 paused_until;
/* There from the first start until the process ends: a handler that was interrupted may write to
 * what it has read here at any later time. Release: pairs with the acquire in the handler. */
static _Atomic int quit_fd = -1;
static int wake_fd = -1;

/* --- SIGQUIT --- */

static void
on_quit (int number)
{
  int before = errno;
  guint64 one = 1;
  ssize_t written = write (atomic_load_explicit (&quit_fd, memory_order_acquire), &one, sizeof one);

  (void) written; /* nobody could be told */
  errno = before;
}

static gboolean
means (void (*handler) (int))
{
  struct sigaction action;

  return sigaction (SIGQUIT, NULL, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0
         && action.sa_handler == handler;
}

/* Only where nobody has said yet what it is to mean. */
static void
catch_quit (void)
{
  struct sigaction action = { .sa_handler = on_quit, .sa_flags = SA_RESTART };

  if (means (SIG_DFL))
    sigaction (SIGQUIT, &action, NULL);
}

static void
leave_quit (void)
{
  struct sigaction action = { .sa_handler = SIG_DFL };

  if (means (on_quit))
    sigaction (SIGQUIT, &action, NULL);
}

/* --- descriptors --- */

static void
close_fd (int *fd)
{
  if (*fd >= 0)
    close (*fd);
  *fd = -1;
}

static void
keep_spare (void)
{
  if (spare < 0)
    spare = open ("/dev/null", O_RDONLY | O_CLOEXEC);
}

static gboolean
lacks_descriptors (void)
{
  return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

/* --- those who ask --- */

static void
client_end (Client *client)
{
  if (client->phase != PHASE_FREE && !client->is_borrowed)
    close_fd (&client->fd);
  client->phase = PHASE_FREE;
  g_clear_pointer (&client->gathering, pto_gathering_free);
  g_clear_pointer (&client->answer, g_free);
  keep_spare ();
}

static void
client_begin (Client *client, int fd, gboolean is_borrowed)
{
  client_end (client);
  client->fd = fd;
  client->is_borrowed = is_borrowed;
  client->phase = PHASE_READS;
  client->deadline = g_get_monotonic_time () + PATIENCE_US;
  client->length = client->size = client->written = 0;
}

/* It blocks nobody: see open_standard_error(). */
static ssize_t
write_some (const Client *client)
{
  const char *from = client->answer + client->written;
  gsize left = client->size - client->written;
  ssize_t n;

  n = send (client->fd, from, left, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n >= 0 || errno != ENOTSOCK)
    return n;
  return write (client->fd, from, client->is_borrowed ? MIN (left, CAREFUL_BYTES) : left);
}

static void
client_write (Client *client)
{
  ssize_t n = write_some (client);

  client->written += n > 0 ? (gsize) n : 0;
  if (client->written == client->size || (n < 0 && errno != EAGAIN && errno != EINTR))
    client_end (client);
}

/* Takes the answer. */
static void
client_answer (Client *client, char *answer)
{
  client->phase = PHASE_WRITES;
  client->answer = answer;
  client->size = strlen (answer);
  client->deadline = g_get_monotonic_time () + PATIENCE_US;
  /* Most have room for all of it. Standard error is asked first. */
  if (client != STANDARD_ERROR)
    client_write (client);
}

static void
client_gathered (Client *client)
{
  g_autoptr (JsonNode) state = pto_gathering_finish (g_steal_pointer (&client->gathering));
  g_autofree char *json = NULL;

  if (client == STANDARD_ERROR)
    {
      client_answer (client, pto_answer_print (state, PTO_ANSWER_FORMAT_TEXT));
      return;
    }
  json = json_to_string (state, FALSE);
  client_answer (client, g_strdup_printf ("pto-answer %d ok %" G_GSIZE_FORMAT "\n%s",
                                          PTO_ANSWER_VERSION, strlen (json), json));
}

static void
client_gather (Client *client, guint within_ms)
{
  client->phase = PHASE_GATHERS;
  client->gathering = pto_gathering_new (pto_state_build (NULL), within_ms);
  if (!pto_gathering_go_on (client->gathering, NULL))
    client_gathered (client);
}

/* The line is whole. */
static void
look_at_request (Client *client)
{
  g_auto (GStrv) words = NULL;
  guint64 within = PTO_ANSWER_WITHIN_MS;

  client->request[client->length] = '\0';
  words = g_strsplit (g_strchomp (client->request), " ", -1);
  if (g_strv_length (words) < 4 || strcmp (words[0], "pto-ask") != 0
      || g_ascii_strtoull (words[1], NULL, 10) != PTO_ANSWER_VERSION
      || strcmp (words[2], "json") != 0
      || !g_ascii_string_to_unsigned (words[3], 10, 0, G_MAXUINT, &within, NULL))
    client_answer (client, g_strdup_printf ("pto-answer %d no it is asked in a way that it does "
                                            "not know: its libpto is %s\n",
                                            PTO_ANSWER_VERSION, PTO_VERSION_S));
  else
    client_gather (client, (guint) MIN (within, WITHIN_MAX_MS));
}

static void
client_read (Client *client)
{
  ssize_t n = recv (client->fd, client->request + client->length, REQUEST_MAX - client->length,
                    MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0)
    {
      client_end (client);
      return;
    }
  client->length += (gsize) n;
  if (memchr (client->request, '\n', client->length) != NULL || client->length == REQUEST_MAX)
    look_at_request (client);
}

/* --- standard error --- */

/* Where it may block, a description of its own that does not: flags belong to all who have it. */
static int
open_standard_error (void)
{
  const char *path = "/proc/self/fd/2";
  int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  struct stat found;
  int fd;

  if (fstat (STDERR_FILENO, &found) != 0 || (!S_ISFIFO (found.st_mode) && !S_ISCHR (found.st_mode)))
    return STDERR_FILENO;
  fd = open (path, flags);
  if (fd < 0 && lacks_descriptors ())
    {
      close_fd (&spare);
      fd = open (path, flags);
    }
  return fd >= 0 ? fd : STDERR_FILENO;
}

/* Not by stdio, of which a thread that hangs may hold the lock. */
static void
tell_on_standard_error (void)
{
  guint64 times;
  int fd;

  /* However often it came meanwhile. */
  if (read (atomic_load_explicit (&quit_fd, memory_order_relaxed), &times, sizeof times) <= 0)
    return;
  fd = open_standard_error ();
  client_begin (STANDARD_ERROR, fd, fd == STDERR_FILENO);
  client_gather (STANDARD_ERROR, PTO_ANSWER_WITHIN_MS);
}

/* --- the socket --- */

/* Its own user, and the one who may do everything. */
static gboolean
may_ask (int fd)
{
  struct ucred who;
  socklen_t size = sizeof who;

  return getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0
         && (who.uid == geteuid () || who.uid == 0);
}

static Client *
find_free (void)
{
  for (guint i = 0; i < CLIENTS_MAX; i++)
    if (clients[i].phase == PHASE_FREE)
      return &clients[i];
  return NULL;
}

/* -1: nobody is there, or there is no descriptor for him. */
static int
accept_one (void)
{
  int fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

  if (fd >= 0 || !lacks_descriptors ())
    return fd;
  close_fd (&spare);
  fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0 && lacks_descriptors ())
    {
      paused_until = g_get_monotonic_time () + PAUSE_US;
      keep_spare ();
    }
  return fd;
}

static void
accept_some (void)
{
  for (guint i = 0; i < CLIENTS_MAX; i++)
    {
      Client *client = find_free ();
      int fd = client != NULL ? accept_one () : -1;

      if (fd < 0)
        return;
      if (may_ask (fd))
        client_begin (client, fd, FALSE);
      else
        {
          close (fd);
          keep_spare ();
        }
    }
}

/* --- the thread --- */

enum
{
  FD_WAKE,
  FD_QUIT,
  FD_LISTENER,
  FD_FIRST_CLIENT
};

static void
add_fd (GArray *fds, int number, gushort events)
{
  GPollFD fd = { .fd = number, .events = events };

  g_array_append_val (fds, fd);
}

/* What is waited for, and until when; G_MAXINT64: for ever. */
static gint64
fill (GArray *fds)
{
  gboolean is_paused = g_get_monotonic_time () < paused_until;
  gint64 until = is_paused ? paused_until : G_MAXINT64;

  g_array_set_size (fds, 0);
  add_fd (fds, wake_fd, G_IO_IN);
  add_fd (fds, STANDARD_ERROR->phase == PHASE_FREE ? quit_fd : -1, G_IO_IN);
  add_fd (fds, !is_paused && find_free () != NULL ? listener : -1, G_IO_IN);
  for (guint i = 0; i <= CLIENTS_MAX; i++)
    {
      Client *client = &clients[i];

      client->first_fd = fds->len;
      if (client->phase == PHASE_FREE)
        continue;
      /* Also who goes while those below are asked. Of standard error that is found when it is
       * written to. */
      add_fd (fds, client->phase == PHASE_GATHERS && client == STANDARD_ERROR ? -1 : client->fd,
              client->phase == PHASE_READS    ? G_IO_IN
              : client->phase == PHASE_WRITES ? G_IO_OUT
                                              : 0);
      if (client->phase == PHASE_GATHERS)
        pto_gathering_add_fds (client->gathering, fds);
      until = MIN (until, client->phase == PHASE_GATHERS
                              ? pto_gathering_get_deadline (client->gathering)
                              : client->deadline);
    }
  return until;
}

/* fds: its own. */
static void
client_go_on (Client *client, const GPollFD *fds)
{
  gboolean is_late = g_get_monotonic_time () >= client->deadline;

  if (client->phase == PHASE_GATHERS && fds[0].revents != 0)
    client_end (client);
  else if (client->phase == PHASE_GATHERS)
    {
      if (!pto_gathering_go_on (client->gathering, fds + 1))
        client_gathered (client);
    }
  else if (is_late)
    client_end (client);
  else if (fds[0].revents != 0 && client->phase == PHASE_READS)
    client_read (client);
  else if (fds[0].revents != 0)
    client_write (client);
}

static void
sleep_until (GArray *fds, gint64 until)
{
  gint64 left = MAX (until - g_get_monotonic_time (), 0);
  int n;

  pto_unlock (PTO_LOCK_ANSWERING);
  n = g_poll ((GPollFD *) (gpointer) fds->data, fds->len,
              until == G_MAXINT64 ? -1 : (gint) MIN (left / 1000 + 1, G_MAXINT));
  pto_lock_after_forks (PTO_LOCK_ANSWERING);
  for (guint i = 0; i < fds->len && n < 0; i++)
    g_array_index (fds, GPollFD, i).revents = 0;
}

static void *
answer_all (void *data)
{
  g_autoptr (GArray) fds = g_array_new (FALSE, TRUE, sizeof (GPollFD));
  sigset_t set;

  (void) data;
  sigfillset (&set);
  sigdelset (&set, SIGQUIT);
  pthread_sigmask (SIG_SETMASK, &set, NULL);
  sem_post (&has_begun);
  pto_lock (PTO_LOCK_ANSWERING);
  while (!is_to_end)
    {
      GPollFD *polled;

      sleep_until (fds, fill (fds));
      polled = (GPollFD *) (gpointer) fds->data;
      for (guint i = 0; i <= CLIENTS_MAX && !is_to_end; i++)
        if (clients[i].phase != PHASE_FREE)
          client_go_on (&clients[i], &polled[clients[i].first_fd]);
      if (polled[FD_QUIT].revents != 0 && !is_to_end)
        tell_on_standard_error ();
      if (polled[FD_LISTENER].revents != 0 && !is_to_end)
        accept_some ();
    }
  for (guint i = 0; i <= CLIENTS_MAX; i++)
    client_end (&clients[i]);
  pto_unlock (PTO_LOCK_ANSWERING);
  return NULL;
}

/* --- its beginning and end --- */

/* Under the lock. 0, or errno. */
static int
try_to_listen (const struct sockaddr_un *address, guint length)
{
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int saved;

  if (fd >= 0 && bind (fd, (const struct sockaddr *) address, length) == 0
      && listen (fd, BACKLOG) == 0)
    {
      listener = fd;
      return 0;
    }
  saved = errno;
  close_fd (&fd);
  return saved;
}

/* 0, or errno of the usual name. */
static int
begin_to_listen (void)
{
  struct sockaddr_un address;
  guint length = pto_answer_make_address (getpid (), &address);
  int result = EADDRINUSE;

  for (guint i = 0; i < NAME_TRIES && result == EADDRINUSE; i++)
    {
      if (i > 0)
        g_usleep (NAME_PAUSE_US);
      pto_lock (PTO_LOCK_ANSWERING);
      result = try_to_listen (&address, length);
      pto_unlock (PTO_LOCK_ANSWERING);
    }
  if (result != EADDRINUSE)
    return result;
  /* Anybody can have taken it. */
  length = pto_answer_make_own_address (getpid (), geteuid (), &address);
  if (length == 0)
    return result;
  pto_lock (PTO_LOCK_ANSWERING);
  /* Of one that has had this number. */
  unlink (address.sun_path);
  if (try_to_listen (&address, length) == 0)
    {
      own_path = g_strdup (address.sun_path);
      result = 0;
    }
  pto_unlock (PTO_LOCK_ANSWERING);
  return result;
}

/* Under the lock, which whoever forks takes: a thread that begins holds locks of the C library's,
 * or of a sanitizer's, which a child that is forked meanwhile would find held for ever. */
static gboolean
begin_thread (void)
{
  sigset_t all, before;
  int result;

  if (quit_fd < 0)
    atomic_store_explicit (&quit_fd, eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK), memory_order_release);
  if (wake_fd < 0)
    wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (quit_fd < 0 || wake_fd < 0)
    return FALSE;
  keep_spare ();
  is_to_end = FALSE;
  paused_until = 0;
  sigfillset (&all);
  sem_init (&has_begun, 0, 0);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  result = pthread_create (&thread, NULL, answer_all, NULL);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  while (result == 0 && sem_wait (&has_begun) != 0)
    ;
  errno = result;
  if (result == 0)
    pthread_setname_np (thread, "pto-answer");
  return result == 0;
}

/* Under the lock, when there is no thread. */
static void
end_listening (void)
{
  /* Also of a copy that has it. */
  if (listener >= 0)
    shutdown (listener, SHUT_RDWR);
  close_fd (&listener);
  close_fd (&spare);
  if (own_path != NULL)
    unlink (own_path);
  g_clear_pointer (&own_path, g_free);
}

gboolean
pto_answerer_begin (GError **error)
{
  int why = begin_to_listen ();
  gboolean is_begun = FALSE;

  if (why == 0 || means (SIG_DFL))
    {
      pto_lock (PTO_LOCK_ANSWERING);
      is_begun = begin_thread ();
      if (!is_begun)
        {
          why = errno;
          end_listening ();
        }
      pto_unlock (PTO_LOCK_ANSWERING);
    }
  if (!is_begun)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, _ ("process %d can not listen: %s"),
                   getpid (), g_strerror (why));
      return FALSE;
    }
  catch_quit ();
  if (why != 0)
    pto_log (G_LOG_LEVEL_WARNING,
             "process %d can be asked what it does by SIGQUIT (Ctrl-\\) only, not by pto top: it "
             "can not listen: %s",
             getpid (), g_strerror (why));
  return TRUE;
}

void
pto_answerer_end (void)
{
  guint64 one = 1;
  ssize_t written;

  leave_quit ();
  pto_lock (PTO_LOCK_ANSWERING);
  is_to_end = TRUE;
  written = write (wake_fd, &one, sizeof one);
  (void) written; /* it is full: the thread wakes */
  pto_unlock (PTO_LOCK_ANSWERING);
  pthread_join (thread, NULL);
  pto_lock (PTO_LOCK_ANSWERING);
  end_listening ();
  /* What came too late is not told by the next one. */
  written = read (wake_fd, &one, sizeof one);
  written = read (quit_fd, &one, sizeof one);
  pto_unlock (PTO_LOCK_ANSWERING);
}

void
pto_answerer_leave (void)
{
  int quit = quit_fd;

  leave_quit ();
  atomic_store_explicit (&quit_fd, -1, memory_order_relaxed);
  close_fd (&quit);
  close_fd (&wake_fd);
  close_fd (&listener);
  close_fd (&spare);
  /* The file is the parent's. */
  own_path = NULL;
  for (guint i = 0; i <= CLIENTS_MAX; i++)
    {
      Client *client = &clients[i];

      if (client->phase != PHASE_FREE && !client->is_borrowed)
        close_fd (&client->fd);
      if (client->gathering != NULL)
        pto_gathering_leave (client->gathering);
      client->phase = PHASE_FREE;
    }
}
