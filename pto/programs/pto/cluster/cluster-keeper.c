/* cluster-keeper.c: who keeps a cluster up, and how are those that listen?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One thread and a main loop. Each place has a launcher of its own, whose standard input is how it
 * is asked and ended, and whose standard output says that it listens, and answers. What comes as
 * standard error goes into the log, behind the name of the place.
 *
 *   JOINING --answers--> READY --silent--> SUSPECT --answers--> READY
 *      |                   |                  |
 *      '-------------------+------------------'---ends, or silent for too long--> LOST --> JOINING
 *
 * Before all have listened once the first that is lost is the end of all.
 */
#include "config.h"

#include "cluster.h"

#include "common/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gunixsocketaddress.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <pto/pto.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* It is asked once in so long; so many questions without an answer make it suspect, so many lost.
 */
#define TICK_MS 1000
#define SUSPECT_TICKS 3
#define LOST_TICKS 30
/* Who was lost is begun again after this, twice this, and so on; from the beginning when it has
 * been there for so many ticks. */
#define AGAIN_MS 100
#define AGAIN_MAX_MS 30000
#define GOOD_TICKS 10
/* For the end: until it is asked by a signal, and until it is killed. */
#define CLOSE_MS 3000
#define TERM_MS 1000
#define LISTENS "pto-remote listens at "
#define STATUS "status "
#define UNIX_SCHEME "unix:"
#define LINE_MAX_BYTES 4096

typedef enum
{
  STATE_ON_DEMAND, /* each program launches it */
  STATE_ELSEWHERE, /* somebody else has it listen */
  STATE_JOINING,
  STATE_READY,
  STATE_SUSPECT,
  STATE_LOST
} State;

static const char *const state_names[]
    = { CLUSTER_ON_DEMAND, CLUSTER_ELSEWHERE, "joining", CLUSTER_READY, "suspect", "lost" };

typedef struct _Keeper Keeper;

/* What a launcher writes. */
typedef struct
{
  int fd; /* -1: it has ended */
  guint source;
  GString *text; /* a line that has begun */
} Words;

typedef struct
{
  Keeper *keeper;
  char *name;
  char *address;
  char **command;  /* NULL: it has no process of this one */
  guint n_workers; /* of each program */
  char *job;       /* NULL: they are ranks of none */
  guint rank;      /* of the first of them */
  State state;
  guint generation;
  GPid process; /* of the launcher; 0: none */
  int in;       /* -1: none */
  Words out;
  Words errors;
  char *last_words;
  guint silent;    /* questions without an answer; 0: it is not asked just now */
  guint ticks;     /* since it was begun */
  guint again_ms;  /* for the next time that it is lost */
  guint beginning; /* source */
  /* As it says. */
  char *host;
  guint64 there;
  guint64 sessions;
  guint64 begun;
} Member;

struct _Keeper
{
  const char *file;
  GMainLoop *loop;
  GPtrArray *members;
  guint deadline_s;
  guint deadline; /* source; 0: all have listened */
  guint hang_up;  /* source: nobody waits for that any more */
  gboolean is_ending;
  guint ending_steps;
  GPtrArray *waiting; /* GSocketConnection: who has asked for the end */
  GError *error;
};

static void end_all (Keeper *keeper);

/* Into the log. */
G_GNUC_PRINTF (2, 3)
static void
say (const Member *member, const char *format, ...)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autofree char *time = g_date_time_format (now, "%F %T");
  g_autofree char *text = NULL;
  va_list arguments;

  va_start (arguments, format);
  text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  pto_make_printable (text, FALSE);
  fprintf (stderr, "%s %s: %s\n", time, member->name, text);
  fflush (stderr);
}

static void
append_member (GString *text, const Member *member)
{
  g_string_append_printf (text,
                          "%s\t%s\t%u\t%s\t%" G_GUINT64_FORMAT "\t%" G_GUINT64_FORMAT
                          "\t%" G_GUINT64_FORMAT "\t%s\t%u\t%s\t%u\n",
                          member->name, state_names[member->state], member->generation,
                          member->host != NULL ? member->host : "", member->there, member->sessions,
                          member->begun, member->address, member->n_workers,
                          member->job != NULL ? member->job : "", member->rank);
}

/* --- it comes up --- */

static void
fail (Keeper *keeper, GError *error)
{
  if (keeper->error == NULL && keeper->deadline != 0)
    keeper->error = error;
  else
    g_error_free (error);
  end_all (keeper);
}

static gboolean
on_deadline (gpointer data)
{
  Keeper *keeper = data;
  g_autoptr (GString) names = g_string_new (NULL);

  for (guint i = 0; i < keeper->members->len; i++)
    {
      const Member *member = g_ptr_array_index (keeper->members, i);

      if (member->state == STATE_JOINING)
        g_string_append_printf (names, "%s%s", names->len > 0 ? ", " : "", member->name);
    }
  fail (keeper, g_error_new (TOOL_ERROR, TOOL_ERROR_TROUBLE,
                             _ ("%s: %s: nobody listens there after %u s ([cluster]: deadline)"),
                             keeper->file, names->str, keeper->deadline_s));
  keeper->deadline = 0;
  return G_SOURCE_REMOVE;
}

/* Whoever waited for all of them knows by now; from here on the log is where things are told. */
static void
tell_up (Keeper *keeper)
{
  g_autoptr (GString) text = g_string_new (NULL);
  int nothing = open ("/dev/null", O_RDWR | O_CLOEXEC);

  for (guint i = 0; i < keeper->members->len; i++)
    append_member (text, g_ptr_array_index (keeper->members, i));
  printf ("%s%s\n", text->str, CLUSTER_UP);
  fflush (stdout);
  g_clear_handle_id (&keeper->hang_up, g_source_remove);
  dup2 (nothing, STDOUT_FILENO);
  close (nothing);
}

static void
look_whether_up (Keeper *keeper)
{
  if (keeper->deadline == 0 || keeper->is_ending)
    return;
  for (guint i = 0; i < keeper->members->len; i++)
    {
      const Member *member = g_ptr_array_index (keeper->members, i);

      if (member->state == STATE_JOINING)
        return;
    }
  g_clear_handle_id (&keeper->deadline, g_source_remove);
  tell_up (keeper);
}

/* --- what it says --- */

/* One question at a time; one that finds no room is waited for, too. */
static void
ask (Member *member)
{
  gssize n = write (member->in, "status\n", strlen ("status\n"));

  (void) n;
  member->silent = 1;
}

/* "PROCESS HOST SESSIONS BEGUN" */
static void
take_status (Member *member, const char *line)
{
  g_auto (GStrv) words = g_strsplit (line, " ", -1);

  if (g_strv_length (words) != 4)
    return;
  if (member->state == STATE_SUSPECT)
    say (member, "answers again");
  member->state = STATE_READY;
  member->silent = 0;
  g_free (member->host);
  member->host = pto_make_printable (g_strdup (words[1]), FALSE);
  member->there = g_ascii_strtoull (words[0], NULL, 10);
  member->sessions = g_ascii_strtoull (words[2], NULL, 10);
  member->begun = g_ascii_strtoull (words[3], NULL, 10);
}

static void
take_line (Member *member, const char *line)
{
  if (g_str_has_prefix (line, STATUS))
    take_status (member, line + strlen (STATUS));
  else
    say (member, "%s", line);
  /* It may listen at several addresses of one name. */
  if (g_str_has_prefix (line, LISTENS) && member->state == STATE_JOINING && member->silent == 0)
    ask (member);
}

/* As it stands on a terminal: behind a carriage return it begins anew. */
static char *
dup_line (const char *text, gsize n)
{
  g_autofree char *bytes = NULL;
  const char *begin;

  while (n > 0 && text[n - 1] == '\r')
    n--;
  begin = n > 0 ? memrchr (text, '\r', n) : NULL;
  begin = begin != NULL ? begin + 1 : text;
  bytes = g_strndup (begin, n - (gsize) (begin - text));
  return g_utf8_make_valid (bytes, -1);
}

/* Whole lines of it; at its end the rest, too. */
static void
take_text (Member *member, Words *words)
{
  char *end;

  while ((end = memchr (words->text->str, '\n', words->text->len)) != NULL
         || words->text->len >= LINE_MAX_BYTES || (words->fd < 0 && words->text->len > 0))
    {
      gsize n = end != NULL ? (gsize) (end - words->text->str) : words->text->len;
      g_autofree char *line = dup_line (words->text->str, n);

      g_string_erase (words->text, 0, (gssize) (end != NULL ? n + 1 : n));
      if (words == &member->out)
        take_line (member, line);
      else
        {
          say (member, "%s", line);
          g_free (member->last_words);
          member->last_words = g_steal_pointer (&line);
          pto_make_printable (member->last_words, FALSE);
        }
    }
}

/* What is there just now. FALSE: it has ended. */
static gboolean
read_words (Member *member, Words *words)
{
  char some[4096];
  gssize n;

  while ((n = read (words->fd, some, sizeof some)) > 0)
    {
      g_string_append_len (words->text, some, n);
      take_text (member, words);
    }
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void
close_words (Member *member, Words *words)
{
  if (words->fd < 0)
    return;
  g_clear_handle_id (&words->source, g_source_remove);
  close (words->fd);
  words->fd = -1;
  take_text (member, words);
}

static gboolean
on_words (int fd, GIOCondition condition, gpointer data)
{
  Member *member = data;
  Words *words = fd == member->out.fd ? &member->out : &member->errors;

  if (!read_words (member, words))
    {
      words->source = 0;
      close_words (member, words);
      return G_SOURCE_REMOVE;
    }
  look_whether_up (member->keeper);
  return G_SOURCE_CONTINUE;
}

static void
open_words (Member *member, Words *words, int fd)
{
  words->fd = fd;
  g_string_truncate (words->text, 0);
  g_unix_set_fd_nonblocking (fd, TRUE, NULL);
  words->source = g_unix_fd_add (fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_words, member);
}

/* --- its lives --- */

static gboolean begin (gpointer data);

/* What this program was begun with. */
static struct rlimit n_files;

/* In the new process: Ctrl-C is for others, and nobody outlives the keeper. */
static void
leave_group (gpointer data)
{
  setpgid (0, 0);
  setrlimit (RLIMIT_NOFILE, &n_files);
  prctl (PR_SET_PDEATHSIG, (unsigned long) SIGTERM, 0ul, 0ul, 0ul);
  if (getppid () != GPOINTER_TO_INT (data))
    raise (SIGTERM);
}

static char *
describe_end (const Member *member, int status)
{
  const char *words = member->last_words != NULL ? member->last_words : "";
  const char *colon = *words != '\0' ? ": " : "";

  return WIFEXITED (status)
             ? g_strdup_printf (_ ("\"%s\" has exited with status %d%s%s"), member->command[0],
                                WEXITSTATUS (status), colon, words)
             : g_strdup_printf (_ ("\"%s\" was ended by signal %d%s%s"), member->command[0],
                                WTERMSIG (status), colon, words);
}

static void
lose (Member *member, const char *what)
{
  Keeper *keeper = member->keeper;

  member->state = STATE_LOST;
  member->there = member->sessions = 0;
  say (member, keeper->is_ending ? "ended: %s" : "lost: %s", what);
  if (keeper->is_ending)
    return;
  if (keeper->deadline != 0)
    {
      fail (keeper, g_error_new (TOOL_ERROR, TOOL_ERROR_TROUBLE, "%s: %s: %s", keeper->file,
                                 member->name, what));
      return;
    }
  if (member->ticks >= GOOD_TICKS)
    member->again_ms = AGAIN_MS;
  member->beginning = g_timeout_add (member->again_ms, begin, member);
  member->again_ms = MIN (2 * member->again_ms, AGAIN_MAX_MS);
}

/* One that was killed could not take its socket away. That of one that never answered may be
 * somebody else's. */
static void
remove_socket (const Member *member, int status)
{
  if (WIFSIGNALED (status) && (member->state == STATE_READY || member->state == STATE_SUSPECT)
      && g_str_has_prefix (member->address, UNIX_SCHEME))
    g_unlink (member->address + strlen (UNIX_SCHEME));
}

static void
on_end (GPid process, int status, gpointer data)
{
  Member *member = data;
  g_autofree char *what = NULL;

  /* What it said last is there. */
  if (member->out.fd >= 0)
    read_words (member, &member->out);
  if (member->errors.fd >= 0)
    read_words (member, &member->errors);
  close_words (member, &member->out);
  close_words (member, &member->errors);
  close (member->in);
  member->in = -1;
  g_spawn_close_pid (process);
  member->process = 0;
  remove_socket (member, status);
  what = describe_end (member, status);
  lose (member, what);
  if (member->keeper->is_ending)
    end_all (member->keeper);
}

static gboolean
begin (gpointer data)
{
  Member *member = data;
  g_autoptr (GError) error = NULL;
  int out, errors;

  member->beginning = 0;
  member->state = STATE_JOINING;
  member->generation++;
  member->silent = member->ticks = 0;
  g_clear_pointer (&member->last_words, g_free);
  if (!g_spawn_async_with_pipes (
          NULL, member->command, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, leave_group,
          GINT_TO_POINTER (getpid ()), &member->process, &member->in, &out, &errors, &error))
    {
      g_autofree char *what
          = g_strdup_printf (_ ("\"%s\" can not be launched: %s"), member->command[0],
                             g_error_matches (error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT)
                                 ? _ ("there is no such program")
                                 : error->message);

      member->process = 0;
      lose (member, what);
      return G_SOURCE_REMOVE;
    }
  fcntl (member->in, F_SETFD, FD_CLOEXEC);
  g_unix_set_fd_nonblocking (member->in, TRUE, NULL);
  open_words (member, &member->out, out);
  open_words (member, &member->errors, errors);
  g_child_watch_add (member->process, on_end, member);
  return G_SOURCE_REMOVE;
}

static gboolean
on_tick (gpointer data)
{
  Keeper *keeper = data;

  for (guint i = 0; i < keeper->members->len; i++)
    {
      Member *member = g_ptr_array_index (keeper->members, i);

      if (member->process == 0)
        continue;
      member->ticks++;
      if (member->state == STATE_JOINING)
        {
          /* That of all of them is over. */
          if (keeper->deadline == 0 && member->ticks > keeper->deadline_s)
            {
              say (member, "does not listen after %u s", keeper->deadline_s);
              kill (-member->process, SIGKILL);
            }
        }
      else if (member->silent == 0)
        ask (member);
      else if (++member->silent > LOST_TICKS)
        {
          say (member, "has not answered for %d s", LOST_TICKS * TICK_MS / 1000);
          kill (-member->process, SIGKILL);
        }
      else if (member->silent > SUSPECT_TICKS && member->state == STATE_READY)
        {
          member->state = STATE_SUSPECT;
          say (member, "suspect: it has not answered for %d s", SUSPECT_TICKS * TICK_MS / 1000);
        }
    }
  return G_SOURCE_CONTINUE;
}

/* --- the end --- */

static gboolean
on_patience (gpointer data)
{
  Keeper *keeper = data;

  for (guint i = 0; i < keeper->members->len; i++)
    {
      Member *member = g_ptr_array_index (keeper->members, i);

      if (member->process != 0)
        kill (-member->process, keeper->ending_steps == 0 ? SIGTERM : SIGKILL);
    }
  if (keeper->ending_steps++ == 0)
    g_timeout_add (TERM_MS, on_patience, keeper);
  return G_SOURCE_REMOVE;
}

/* Whoever listens ends with its standard input. Called again whenever one has. */
static void
end_all (Keeper *keeper)
{
  gboolean is_left = FALSE;

  for (guint i = 0; i < keeper->members->len; i++)
    {
      Member *member = g_ptr_array_index (keeper->members, i);

      g_clear_handle_id (&member->beginning, g_source_remove);
      is_left = is_left || member->process != 0;
      if (member->process != 0 && !keeper->is_ending)
        {
          close (member->in);
          member->in = open ("/dev/null", O_WRONLY | O_CLOEXEC);
          /* A launcher that still looks for its host reads nothing. */
          if (member->state == STATE_JOINING)
            kill (-member->process, SIGTERM);
        }
    }
  if (!keeper->is_ending)
    g_timeout_add (CLOSE_MS, on_patience, keeper);
  keeper->is_ending = TRUE;
  if (!is_left)
    g_main_loop_quit (keeper->loop);
}

static gboolean
on_signal (gpointer data)
{
  Keeper *keeper = data;

  /* Whoever waits for it to come up is told. */
  if (!keeper->is_ending)
    fail (keeper,
          g_error_new (TOOL_ERROR, TOOL_ERROR_TROUBLE, _ ("%s: it was ended"), keeper->file));
  return G_SOURCE_CONTINUE;
}

/* Nobody waits for it to come up: what was begun is undone. */
static gboolean
on_hang_up (int fd, GIOCondition condition, gpointer data)
{
  Keeper *keeper = data;

  keeper->hang_up = 0;
  on_signal (keeper);
  return G_SOURCE_REMOVE;
}

/* --- who asks --- */

static void
on_question (GObject *object, GAsyncResult *result, gpointer data)
{
  GSocketConnection *connection = g_object_get_data (object, "connection");
  Keeper *keeper = data;
  g_autofree char *line
      = g_data_input_stream_read_line_finish (G_DATA_INPUT_STREAM (object), result, NULL, NULL);
  GOutputStream *out = g_io_stream_get_output_stream (G_IO_STREAM (connection));
  g_autoptr (GString) text = g_string_new (NULL);

  if (g_strcmp0 (line, "down") == 0)
    {
      /* It is closed when all have ended. */
      g_ptr_array_add (keeper->waiting, g_object_ref (connection));
      on_signal (keeper);
    }
  else if (g_strcmp0 (line, "status") == 0)
    {
      for (guint i = 0; i < keeper->members->len; i++)
        append_member (text, g_ptr_array_index (keeper->members, i));
      g_output_stream_write_all (out, text->str, text->len, NULL, NULL, NULL);
      g_io_stream_close (G_IO_STREAM (connection), NULL, NULL);
    }
  g_object_unref (object);
}

static gboolean
on_asked (GSocketService *service, GSocketConnection *connection, GObject *source, gpointer data)
{
  GDataInputStream *in
      = g_data_input_stream_new (g_io_stream_get_input_stream (G_IO_STREAM (connection)));

  /* Nobody waits for who does not read. */
  g_socket_set_timeout (g_socket_connection_get_socket (connection), 1);
  g_object_set_data_full (G_OBJECT (in), "connection", g_object_ref (connection), g_object_unref);
  g_data_input_stream_read_line_async (in, G_PRIORITY_DEFAULT, NULL, on_question, data);
  return TRUE;
}

static GSocketService *
listen_at (Keeper *keeper, const char *path, GError **error)
{
  g_autoptr (GSocketAddress) address = g_unix_socket_address_new (path);
  g_autoptr (GSocketService) service = g_socket_service_new ();

  /* It is nobody's: the lock is ours. */
  g_unlink (path);
  if (!g_socket_listener_add_address (G_SOCKET_LISTENER (service), address, G_SOCKET_TYPE_STREAM,
                                      G_SOCKET_PROTOCOL_DEFAULT, NULL, NULL, error))
    return NULL;
  g_signal_connect (service, "incoming", G_CALLBACK (on_asked), keeper);
  return g_steal_pointer (&service);
}

/* --- all of it --- */

static void
member_free (gpointer data)
{
  Member *member = data;

  g_free (member->name);
  g_free (member->address);
  g_free (member->job);
  g_strfreev (member->command);
  g_free (member->host);
  g_free (member->last_words);
  g_string_free (member->out.text, TRUE);
  g_string_free (member->errors.text, TRUE);
  g_free (member);
}

static void
add_member (Keeper *keeper, PtoClusterFile *file, guint place)
{
  Member *member = g_new0 (Member, 1);

  member->keeper = keeper;
  member->name = pto_cluster_file_dup_name (file, place);
  member->address = pto_cluster_file_dup_address (file, place);
  member->command = pto_cluster_file_dup_command (file, place);
  member->n_workers = pto_cluster_file_get_n_workers (file, place);
  member->job = pto_cluster_file_dup_job (file, place, &member->rank);
  if (member->command != NULL)
    member->state = STATE_JOINING;
  else
    member->state = g_str_has_prefix (member->address, UNIX_SCHEME)
                            || g_str_has_prefix (member->address, "tls:")
                        ? STATE_ELSEWHERE
                        : STATE_ON_DEMAND;
  member->in = member->out.fd = member->errors.fd = -1;
  member->out.text = g_string_new (NULL);
  member->errors.text = g_string_new (NULL);
  member->again_ms = AGAIN_MS;
  g_ptr_array_add (keeper->members, member);
}

/* Each place takes four descriptors. */
static void
allow_files (void)
{
  struct rlimit most;

  if (getrlimit (RLIMIT_NOFILE, &n_files) != 0)
    return;
  most = n_files;
  most.rlim_cur = most.rlim_max;
  setrlimit (RLIMIT_NOFILE, &most);
}

static void
run (Keeper *keeper)
{
  allow_files ();
  keeper->deadline = g_timeout_add_seconds (keeper->deadline_s, on_deadline, keeper);
  keeper->hang_up = g_unix_fd_add (STDOUT_FILENO, G_IO_ERR | G_IO_HUP, on_hang_up, keeper);
  g_timeout_add (TICK_MS, on_tick, keeper);
  g_unix_signal_add (SIGTERM, on_signal, keeper);
  for (guint i = 0; i < keeper->members->len; i++)
    {
      Member *member = g_ptr_array_index (keeper->members, i);

      if (member->command != NULL)
        member->beginning = g_idle_add (begin, member);
    }
  look_whether_up (keeper);
  g_main_loop_run (keeper->loop);
}

gboolean
cluster_keep (const ClusterPaths *paths, GError **error)
{
  g_autoptr (PtoClusterFile) cluster = pto_cluster_file_new (paths->file, error);
  g_autoptr (GSocketService) service = NULL;
  Keeper keeper = { .file = paths->file,
                    .members = g_ptr_array_new_with_free_func (member_free),
                    .waiting = g_ptr_array_new_with_free_func (g_object_unref) };
  int lock = cluster != NULL ? cluster_take_lock (paths, error) : -1;

  if (lock >= 0)
    service = listen_at (&keeper, paths->socket, error);
  if (service != NULL)
    {
      keeper.loop = g_main_loop_new (NULL, FALSE);
      keeper.deadline_s = pto_cluster_file_get_deadline (cluster);
      for (guint i = 0; i < pto_cluster_file_get_n_places (cluster); i++)
        add_member (&keeper, cluster, i);
      run (&keeper);
      if (keeper.error != NULL)
        g_propagate_error (error, keeper.error);
      g_main_loop_unref (keeper.loop);
    }
  if (lock >= 0)
    cluster_release_lock (paths, lock);
  /* Now it is over for who has asked for that, who may begin it again. */
  g_ptr_array_unref (keeper.waiting);
  g_ptr_array_unref (keeper.members);
  return service != NULL && keeper.error == NULL;
}
