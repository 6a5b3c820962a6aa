/* answer-client.c: how is another process asked what it does?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One question, one answer, over a socket whose name is the process's number. Nothing is ever sent
 * to a process that does not listen there, a signal least of all. Both sides look who the other one
 * is: the system says it.
 */
#include "config.h"

#include "answer.h"

#include "base/error.h"
#include "base/locks.h"
#include "common/text.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* More than any answer has: a chip of 3072 cores says some MiB. */
#define ANSWER_MAX ((guint64) 256 << 20)
#define HEAD_MAX 400
/* Arrays and objects within each other: each level of a tree has four. */
#define DEPTH_MAX 64u
/* Processes one below the other. */
#define ABOVE_MAX 64u

/* Numbers are those of a name space; several of them may share a network. */
static guint64
get_name_space (void)
{
  struct stat names;

  return stat ("/proc/self/ns/pid", &names) == 0 ? (guint64) names.st_ino : 0;
}

guint
pto_answer_make_address (int process, struct sockaddr_un *address)
{
  int length;

  *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
  length = g_snprintf (address->sun_path + 1, sizeof address->sun_path - 1,
                       "libpto/answer/%" G_GUINT64_FORMAT "/%d", get_name_space (), process);
  return (guint) (G_STRUCT_OFFSET (struct sockaddr_un, sun_path) + 1 + (gsize) length);
}

static gboolean
is_private_directory (const char *path, guint user)
{
  struct stat found;

  return stat (path, &found) == 0 && S_ISDIR (found.st_mode) && found.st_uid == user
         && (found.st_mode & 077) == 0;
}

guint
pto_answer_make_own_address (int process, guint user, struct sockaddr_un *address)
{
  const char *named = user == geteuid () ? g_getenv ("XDG_RUNTIME_DIR") : NULL;
  g_autofree char *usual = g_strdup_printf ("/run/user/%u", user);
  const char *directory = named != NULL && g_path_is_absolute (named) ? named : usual;
  gulong length;

  *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
  if (!is_private_directory (directory, user))
    return 0;
  length = (gulong) g_snprintf (address->sun_path, sizeof address->sun_path,
                                "%s/libpto-answer-%" G_GUINT64_FORMAT "-%d", directory,
                                get_name_space (), process);
  return length < sizeof address->sun_path
             ? (guint) (G_STRUCT_OFFSET (struct sockaddr_un, sun_path) + length + 1)
             : 0;
}

/* --- one of them --- */

typedef struct
{
  PtoAsked *asked;
  int fd; /* -1: it is over */
  GString *in;
  const char *out; /* what is still to be written */
} Question;

/* error: NULL, or why there is no answer; the first one stays. */
static void
end (Question *question, GError *error)
{
  if (question->fd >= 0)
    close (question->fd);
  question->fd = -1;
  if (error != NULL && question->asked->error == NULL)
    question->asked->error = error;
  else
    g_clear_error (&error);
}

G_GNUC_PRINTF (3, 4)
static void
fail (Question *question, PtoError code, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  end (question, g_error_new_valist (PTO_ERROR, code, format, args));
  va_end (args);
}

/* Who listens there? -1, and errno: nobody. */
static int
connect_to (const struct sockaddr_un *address, guint length, struct ucred *other)
{
  socklen_t size = sizeof *other;
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int saved;

  if (fd < 0
      || (connect (fd, (const struct sockaddr *) address, length) == 0
          && getsockopt (fd, SOL_SOCKET, SO_PEERCRED, other, &size) == 0))
    return fd;
  saved = errno;
  close (fd);
  errno = saved;
  return -1;
}

static gboolean
is_asked (int process, const struct ucred *other)
{
  return other->pid == process && (other->uid == geteuid () || geteuid () == 0);
}

/* In the directory of its user. */
static int
connect_to_own (int process)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d", process);
  struct sockaddr_un address;
  struct ucred other = { 0 };
  struct stat found;
  guint length = stat (path, &found) == 0
                     ? pto_answer_make_own_address (process, found.st_uid, &address)
                     : 0;
  int fd = length > 0 ? connect_to (&address, length, &other) : -1;

  if (fd < 0 || is_asked (process, &other))
    return fd;
  close (fd);
  return -1;
}

/* --- nobody listens --- */

/* The beginning of what /proc tells of it; NULL: it is not there. */
static char *
dup_status (int process)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/status", process);
  char *status = NULL;

  return g_file_get_contents (path, &status, NULL, NULL) ? status : NULL;
}

static int
find_parent (const char *status)
{
  const char *parent = status != NULL ? strstr (status, "\nPPid:\t") : NULL;

  return parent != NULL ? (int) g_ascii_strtoll (parent + strlen ("\nPPid:\t"), NULL, 10) : 0;
}

/* Whose SUB worker is it? 0: it is none. */
static int
find_owner (int process)
{
  g_autofree char *status = dup_status (process);

  /* As ../process/process.c names it. */
  return status != NULL && g_str_has_prefix (status, "Name:\tpto-sub") ? find_parent (status) : 0;
}

/* Somebody else who could be asked. */
static gboolean
listens (int process)
{
  struct sockaddr_un address;
  guint length = pto_answer_make_address (process, &address);
  struct ucred other = { 0 };
  int fd = process != getpid () ? connect_to (&address, length, &other) : -1;
  gboolean found = fd >= 0 && is_asked (process, &other);

  if (fd >= 0)
    close (fd);
  return found;
}

/* The nearest one that has begun it; 0: none. */
static int
find_above (int process)
{
  for (guint i = 0; i < ABOVE_MAX && process > 1; i++)
    {
      g_autofree char *status = dup_status (process);

      process = find_parent (status);
      if (process > 1 && listens (process))
        return process;
    }
  return 0;
}

/* One that it has begun, such as a shell or timeout(1) does; 0: none. */
static int
find_below (int process)
{
  g_autoptr (GDir) all = g_dir_open ("/proc", 0, NULL);
  const char *name;

  while (all != NULL && (name = g_dir_read_name (all)) != NULL)
    {
      int below = (int) g_ascii_strtoll (name, NULL, 10);
      int above = below;

      if (below <= 0 || !listens (below))
        continue;
      for (guint i = 0; i < ABOVE_MAX && above > 1; i++)
        {
          g_autofree char *status = dup_status (above);

          above = find_parent (status);
          if (above == process)
            return below;
        }
    }
  return 0;
}

static void
end_silent (Question *question)
{
  int process = question->asked->process;
  int owner = find_owner (process);
  gboolean is_there = kill (process, 0) == 0;
  gboolean is_gone = !is_there && errno == ESRCH;
  gboolean wants_family = question->asked->wants_family;
  int other = 0;

  if (is_gone)
    fail (question, PTO_ERROR_NOT_FOUND, _ ("there is no process %d"), process);
  else if (!is_there)
    fail (question, PTO_ERROR_NOT_SUPPORTED,
          _ ("process %d is somebody else's: it can be asked by its user only"), process);
  else if (owner > 0)
    fail (question, PTO_ERROR_NOT_SUPPORTED,
          _ ("process %d is a SUB worker of process %d: ask that one, which tells what it runs"),
          process, owner);
  else if (wants_family && (other = find_above (process)) > 0)
    fail (question, PTO_ERROR_NOT_SUPPORTED,
          _ ("process %d does not listen: ask process %d, which has begun it"), process, other);
  else if (wants_family && (other = find_below (process)) > 0)
    fail (question, PTO_ERROR_NOT_SUPPORTED,
          _ ("process %d does not listen: ask process %d, which it has begun"), process, other);
  else
    fail (question, PTO_ERROR_NOT_SUPPORTED,
          _ ("process %d does not listen: what it does can be asked of pto run, and of a "
             "program of libpto that was started with PTO_ANSWER=1 or has called "
             "pto_answer_start()"),
          process);
}

/* --- one question --- */

static void
begin (Question *question, const char *request)
{
  int process = question->asked->process;
  struct sockaddr_un address;
  guint length = pto_answer_make_address (process, &address);
  struct ucred other = { 0 };
  int saved, own;

  question->in = g_string_new (NULL);
  question->out = request;
  question->fd = connect_to (&address, length, &other);
  saved = errno;
  if (question->fd >= 0 && is_asked (process, &other))
    return;
  own = question->fd >= 0 || saved == ECONNREFUSED ? connect_to_own (process) : -1;
  if (own >= 0)
    {
      if (question->fd >= 0)
        close (question->fd);
      question->fd = own;
      return;
    }
  if (question->fd >= 0)
    fail (question, PTO_ERROR_TAMPERED,
          _ ("who listens where process %d would is process %d of user %u: it is not asked"),
          process, (int) other.pid, (guint) other.uid);
  else if (saved == EAGAIN)
    fail (question, PTO_ERROR_BUSY,
          _ ("process %d does not answer: others wait for it, too (is it stopped?)"), process);
  else if (saved == ECONNREFUSED)
    end_silent (question);
  else
    fail (question, PTO_ERROR_SYSTEM, _ ("process %d can not be asked: %s"), process,
          g_strerror (saved));
}

/* Whoever asks need not trust who answers, and a parser is deep where its text is. Nothing that
 * only some parsers take is let through: what it would hide could not be counted. */
static gboolean
is_sound (const char *text, gsize length)
{
  gboolean in_string = FALSE;
  guint depth = 0;

  for (gsize i = 0; i < length; i++)
    {
      char c = text[i];

      if ((guchar) c < ' ' && (in_string || !g_ascii_isspace (c)))
        return FALSE;
      if (c == '"')
        in_string = !in_string;
      else if (in_string)
        i += c == '\\';
      else if (c == '[' || c == '{')
        depth++;
      else if (c == ']' || c == '}')
        depth -= depth > 0;
      else if (!g_ascii_isalnum (c) && strchr (" \t\r\n,:+-.", c) == NULL)
        return FALSE;
      if (depth > DEPTH_MAX)
        return FALSE;
    }
  return g_utf8_validate (text, (gssize) length, NULL);
}

static void
refuse (Question *question)
{
  fail (question, PTO_ERROR_TAMPERED, _ ("process %d has answered what is no answer"),
        question->asked->process);
}

/* All has come: the head is sound. */
static void
take_body (Question *question, const char *body, gsize length)
{
  g_autoptr (JsonParser) parser = json_parser_new ();

  if (!is_sound (body, length) || !json_parser_load_from_data (parser, body, (gssize) length, NULL)
      || !JSON_NODE_HOLDS_OBJECT (json_parser_get_root (parser)))
    {
      refuse (question);
      return;
    }
  question->asked->answer = json_parser_steal_root (parser);
  end (question, NULL);
}

/* What has come so far; at_end: no more will. */
static void
look_at_answer (Question *question, gboolean at_end)
{
  int process = question->asked->process;
  const char *text = question->in->str;
  const char *newline = memchr (text, '\n', MIN (question->in->len, HEAD_MAX));
  g_autofree char *head = newline != NULL ? g_strndup (text, (gsize) (newline - text)) : NULL;
  g_auto (GStrv) words = head != NULL ? g_strsplit (head, " ", 4) : NULL;
  guint64 length;

  if (words == NULL && question->in->len < HEAD_MAX && !at_end)
    return;
  if (words == NULL && question->in->len == 0)
    fail (question, PTO_ERROR_NOT_FOUND, _ ("process %d has ended meanwhile"), process);
  else if (words == NULL || g_strv_length (words) < 4 || strcmp (words[0], "pto-answer") != 0)
    refuse (question);
  else if (g_ascii_strtoull (words[1], NULL, 10) != PTO_ANSWER_VERSION)
    fail (question, PTO_ERROR_NOT_SUPPORTED,
          _ ("process %d answers in version %s, this libpto asks in version %d: ask it with "
             "the pto program that belongs to its libpto"),
          process, words[1], PTO_ANSWER_VERSION);
  else if (strcmp (words[2], "ok") != 0)
    fail (question, PTO_ERROR_NOT_SUPPORTED, _ ("process %d: %s"), process, words[3]);
  else if (!g_ascii_string_to_unsigned (words[3], 10, 0, ANSWER_MAX, &length, NULL))
    refuse (question);
  else if (question->in->len - (gsize) (newline + 1 - text) >= length)
    take_body (question, newline + 1, (gsize) length);
  else if (at_end)
    fail (question, PTO_ERROR_NOT_FOUND, _ ("process %d has ended meanwhile"), process);
}

static void
go_on (Question *question)
{
  char buffer[65536];
  gssize n;

  if (*question->out != '\0')
    {
      n = send (question->fd, question->out, strlen (question->out), MSG_NOSIGNAL);
      if (n > 0)
        question->out += n;
      else if (n < 0 && errno != EAGAIN && errno != EINTR)
        look_at_answer (question, TRUE);
      return;
    }
  n = recv (question->fd, buffer, sizeof buffer, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n > 0)
    g_string_append_len (question->in, buffer, n);
  look_at_answer (question, n <= 0);
}

/* --- all of them --- */

typedef struct
{
  Question *questions;
  guint n;
  guint within_ms;
  gint64 deadline;
  char *request;
} Asking;

static void
asking_begin (Asking *self, PtoAsked *asked, guint n, guint within_ms)
{
  /* Whoever is asked has others to ask first, and has less for that. */
  *self = (Asking){ .questions = g_new0 (Question, n),
                    .n = n,
                    .within_ms = within_ms,
                    .deadline = g_get_monotonic_time () + (gint64) within_ms * 1000,
                    .request
                    = g_strdup_printf ("pto-ask %d json %u\n", PTO_ANSWER_VERSION, within_ms / 2) };
  for (guint i = 0; i < n; i++)
    {
      self->questions[i].asked = &asked[i];
      begin (&self->questions[i], self->request);
    }
}

static void
asking_add_fds (Asking *self, GArray *fds)
{
  for (guint i = 0; i < self->n; i++)
    {
      const Question *question = &self->questions[i];
      GPollFD fd = { .fd = question->fd }; /* a number below 0 is passed by */

      if (fd.fd >= 0)
        fd.events = *question->out != '\0' ? G_IO_OUT : G_IO_IN;
      g_array_append_val (fds, fd);
    }
}

/* fds: NULL: nobody has been waited for. FALSE: all have answered, or the time is over. */
static gboolean
asking_go_on (Asking *self, const GPollFD *fds)
{
  guint n_open = 0;

  for (guint i = 0; i < self->n; i++)
    {
      Question *question = &self->questions[i];

      if (question->fd >= 0 && fds != NULL && fds[i].revents != 0)
        go_on (question);
      n_open += question->fd >= 0;
    }
  return n_open > 0 && g_get_monotonic_time () < self->deadline;
}

static void
asking_end (Asking *self, GCancellable *cancellable)
{
  for (guint i = 0; i < self->n; i++)
    {
      Question *question = &self->questions[i];
      GError *cancelled = NULL;

      if (question->fd >= 0 && !pto_error_set_if_cancelled (cancellable, &cancelled))
        fail (question, PTO_ERROR_BUSY,
              _ ("process %d has not answered within %u ms (is it stopped?)"),
              question->asked->process, self->within_ms);
      end (question, cancelled);
      g_string_free (question->in, TRUE);
    }
  g_free (self->questions);
  g_free (self->request);
}

/* Under the lock, which it lets go to wait. */
static void
asking_wait (Asking *self, GCancellable *cancellable)
{
  g_autoptr (GArray) fds = g_array_new (FALSE, TRUE, sizeof (GPollFD));
  gboolean is_open = asking_go_on (self, NULL);

  while (is_open && !g_cancellable_is_cancelled (cancellable))
    {
      GPollFD cancel;
      gboolean can_cancel = g_cancellable_make_pollfd (cancellable, &cancel);
      gint64 left = MAX (self->deadline - g_get_monotonic_time (), 0);
      int n;

      g_array_set_size (fds, 0);
      asking_add_fds (self, fds);
      if (can_cancel)
        g_array_append_val (fds, cancel);
      pto_unlock (PTO_LOCK_ANSWERING);
      n = g_poll ((GPollFD *) (gpointer) fds->data, fds->len, (gint) (left / 1000 + 1));
      pto_lock_after_forks (PTO_LOCK_ANSWERING);
      if (can_cancel)
        g_cancellable_release_fd (cancellable);
      is_open = asking_go_on (self, n > 0 ? (GPollFD *) (gpointer) fds->data : NULL);
    }
}

void
pto_answer_ask_many (PtoAsked *asked, guint n, guint within_ms, GCancellable *cancellable)
{
  Asking asking;

  pto_lock (PTO_LOCK_ANSWERING);
  asking_begin (&asking, asked, n, within_ms);
  asking_wait (&asking, cancellable);
  asking_end (&asking, cancellable);
  pto_unlock (PTO_LOCK_ANSWERING);
}

/* --- those below --- */

struct _PtoGathering
{
  JsonNode *state;    /* owned */
  GPtrArray *objects; /* JsonObject: rows, and workers that are in a process of their own */
  GArray *asked;
  Asking asking;
};

static void
add_process (PtoGathering *self, JsonObject *object, const char *member)
{
  PtoAsked asked = { .process = (int) member_number (object, member) };

  g_ptr_array_add (self->objects, object);
  g_array_append_val (self->asked, asked);
}

/* Which member of a row has the process to ask, if there is one; NULL: none. A SUB worker has none
 * to tell of; that of a remote worker only speaks for another one, which can be asked if it is of
 * this machine. */
static const char *
find_member (JsonObject *row)
{
  const char *address = member_text (row, "address");

  if (!member_is (row, "kind", "worker"))
    return NULL;
  if (*address == '\0')
    return "pid";
  return g_str_has_prefix (address, "local:") || g_str_has_prefix (address, "unix:") ? "far_pid"
                                                                                     : NULL;
}

static void
find_processes (JsonObject *worker, gpointer data)
{
  JsonObject *row;

  if (member_flag (worker, "is_isolated") && json_object_has_member (worker, "pid"))
    add_process (data, worker, "pid");
  for (guint i = 0; (row = member_next (worker, "children", &i)) != NULL;)
    {
      const char *member = find_member (row);

      if (member != NULL && json_object_has_member (row, member))
        add_process (data, row, member);
    }
}

PtoGathering *
pto_gathering_new (JsonNode *state, guint within_ms)
{
  PtoGathering *self = g_new0 (PtoGathering, 1);

  self->state = state;
  self->objects = g_ptr_array_new ();
  self->asked = g_array_new (FALSE, TRUE, sizeof (PtoAsked));
  pto_state_visit_workers (json_node_get_object (state), find_processes, self);
  asking_begin (&self->asking, (PtoAsked *) (gpointer) self->asked->data, self->asked->len,
                within_ms);
  return self;
}

void
pto_gathering_add_fds (PtoGathering *self, GArray *fds)
{
  asking_add_fds (&self->asking, fds);
}

gboolean
pto_gathering_go_on (PtoGathering *self, const GPollFD *fds)
{
  return asking_go_on (&self->asking, fds);
}

gint64
pto_gathering_get_deadline (const PtoGathering *self)
{
  return self->asking.deadline;
}

void
pto_gathering_wait (PtoGathering *self)
{
  asking_wait (&self->asking, NULL);
}

void
pto_gathering_leave (PtoGathering *self)
{
  for (guint i = 0; i < self->asking.n; i++)
    {
      Question *question = &self->asking.questions[i];

      if (question->fd >= 0)
        close (question->fd);
      question->fd = -1;
    }
}

static void
put_member (JsonObject *from, const char *name, JsonNode *node, gpointer to)
{
  if (!json_object_has_member (to, name))
    json_object_set_member (to, name, json_node_copy (node));
}

static void
put_answer (JsonObject *object, const PtoAsked *asked)
{
  JsonObject *answer = asked->answer != NULL ? json_node_get_object (asked->answer) : NULL;
  JsonObject *first = member_element (answer, "workers", 0);

  /* The number of another machine may be that of another program here. */
  if (json_object_has_member (object, "address") && first != NULL
      && !member_is (first, "path", member_text (object, "path")))
    return;
  if (asked->error != NULL)
    json_object_set_string_member (object, "silent", asked->error->message);
  else if (first == NULL)
    json_object_set_string_member (object, "silent", N_ ("its worker has not started"));
  else if (json_object_has_member (object, "is_isolated"))
    json_object_foreach_member (first, put_member, object);
  else
    json_object_set_array_member (object, "below",
                                  json_array_ref (member_array (answer, "workers")));
}

JsonNode *
pto_gathering_finish (PtoGathering *self)
{
  JsonNode *state;

  asking_end (&self->asking, NULL);
  self->asking = (Asking){ 0 };
  for (guint i = 0; i < self->asked->len; i++)
    put_answer (g_ptr_array_index (self->objects, i), &g_array_index (self->asked, PtoAsked, i));
  state = g_steal_pointer (&self->state);
  pto_gathering_free (self);
  return state;
}

void
pto_gathering_free (PtoGathering *self)
{
  asking_end (&self->asking, NULL);
  for (guint i = 0; i < self->asked->len; i++)
    {
      PtoAsked *asked = &g_array_index (self->asked, PtoAsked, i);

      g_clear_pointer (&asked->answer, json_node_unref);
      g_clear_error (&asked->error);
    }
  g_array_unref (self->asked);
  g_ptr_array_unref (self->objects);
  g_clear_pointer (&self->state, json_node_unref);
  g_free (self);
}
