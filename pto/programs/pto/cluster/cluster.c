/* cluster.c: how are the workers of a cluster file begun, asked and ended, by one command?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cluster.h"
#include "terminal.h"

#include "common/printable.h"

#include "common/json.h"

#include <fcntl.h>
#include <gio/gunixsocketaddress.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <inttypes.h>
#include <poll.h>
#include <pto/pto.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Who answers at all does so in no time; the end of all may take as long as the end of the slowest.
 */
#define ANSWER_S 5
#define END_S 30
#define ASK_STATUS "status\n"
#define TLS_SCHEME "tls://"
#define CERTIFICATES "--certificates="

static gboolean option_json;

static const GOptionEntry entries[]
    = { { "json", 0, 0, G_OPTION_ARG_NONE, &option_json, N_ ("status: print JSON"), NULL },
        G_OPTION_ENTRY_NULL };

/* --- tables --- */

/* In the language of who reads it. */
static const char *
translate_state (const char *state)
{
  static const char *const states[] = { N_ ("on-demand"),
                                        N_ ("elsewhere"),
                                        N_ ("joining"),
                                        N_ ("ready"),
                                        N_ ("suspect"),
                                        N_ ("lost"),
                                        NULL };

  for (guint i = 0; states[i] != NULL; i++)
    if (strcmp (state, states[i]) == 0)
      return _ (states[i]);
  return state;
}

static gboolean
is_good (char **fields)
{
  static const char *const good[] = { CLUSTER_READY, CLUSTER_ON_DEMAND, CLUSTER_ELSEWHERE, NULL };

  return g_strv_contains (good, fields[CLUSTER_FIELD_STATE]);
}

static void
append_ranks (GString *text, char **fields)
{
  guint64 n = g_ascii_strtoull (fields[CLUSTER_FIELD_WORKERS], NULL, 10);
  guint64 first = g_ascii_strtoull (fields[CLUSTER_FIELD_RANK], NULL, 10);

  if (fields[CLUSTER_FIELD_JOB][0] == '\0')
    return;
  if (n > 1)
    g_string_append_printf (text, _ ("  ranks %" PRIu64 " to %" PRIu64 " of the job %s"), first,
                            first + n - 1, fields[CLUSTER_FIELD_JOB]);
  else
    g_string_append_printf (text, _ ("  rank %" PRIu64 " of the job %s"), first,
                            fields[CLUSTER_FIELD_JOB]);
}

static void
print_place (char **fields)
{
  g_autofree char *state = terminal_pad (translate_state (fields[CLUSTER_FIELD_STATE]), 9);
  g_autoptr (GString) text = g_string_new (state);
  guint64 sessions = g_ascii_strtoull (fields[CLUSTER_FIELD_SESSIONS], NULL, 10);
  guint64 generation = g_ascii_strtoull (fields[CLUSTER_FIELD_GENERATION], NULL, 10);

  g_string_append_printf (text, "  %s", fields[CLUSTER_FIELD_ADDRESS]);
  append_ranks (text, fields);
  if (strcmp (fields[CLUSTER_FIELD_PROCESS], "0") != 0)
    g_string_append_printf (text, _ ("  process %s on %s"), fields[CLUSTER_FIELD_PROCESS],
                            fields[CLUSTER_FIELD_HOST]);
  if (sessions > 0)
    g_string_append_printf (text,
                            g_dngettext (GETTEXT_PACKAGE, "  %" PRIu64 " session",
                                         "  %" PRIu64 " sessions", (gulong) sessions),
                            sessions);
  if (generation > 1)
    g_string_append_printf (text, _ ("  generation %" PRIu64), generation);
  tool_print_verdict (fields[CLUSTER_FIELD_NAME], is_good (fields), text->str);
}

static void
add_place (JsonBuilder *json, char **fields)
{
  static const struct
  {
    ClusterField field;
    const char *name;
    gboolean is_number;
  } members[] = {
    { CLUSTER_FIELD_NAME, "name", FALSE },
    { CLUSTER_FIELD_STATE, "state", FALSE },
    { CLUSTER_FIELD_GENERATION, "generation", TRUE },
    { CLUSTER_FIELD_HOST, "host", FALSE },
    { CLUSTER_FIELD_PROCESS, "pid", TRUE },
    { CLUSTER_FIELD_SESSIONS, "sessions", TRUE },
    { CLUSTER_FIELD_BEGUN, "begun", TRUE },
    { CLUSTER_FIELD_ADDRESS, "address", FALSE },
    { CLUSTER_FIELD_WORKERS, "workers", TRUE },
    { CLUSTER_FIELD_JOB, "job", FALSE },
    { CLUSTER_FIELD_RANK, "rank", TRUE },
  };

  json_builder_begin_object (json);
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    {
      const char *value = fields[members[i].field];

      /* It is of ranks of a job only. */
      if (members[i].field >= CLUSTER_FIELD_JOB && fields[CLUSTER_FIELD_JOB][0] == '\0')
        continue;
      json_builder_set_member_name (json, members[i].name);
      if (members[i].is_number)
        json_builder_add_int_value (json, (gint64) g_ascii_strtoull (value, NULL, 10));
      else
        json_builder_add_string_value (json, value);
    }
  json_builder_end_object (json);
}

/* --- asking --- */

/* Nobody answers: there is nobody, or was. */
static void
tell_why (const ClusterPaths *paths, const GError *local, GError **error)
{
  if (g_error_matches (local, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
    {
      if (g_file_test (paths->real, G_FILE_TEST_EXISTS))
        g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
                     _ ("%s is not up: pto cluster up %s. (There is no %s, which is below "
                        "XDG_RUNTIME_DIR: one that was begun with another is not seen here)"),
                     paths->file, paths->file, paths->socket);
      else
        g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
                     _ ("%s is not up, and there is no such file: neither %s nor %s"), paths->file,
                     paths->real, paths->socket);
    }
  else if (g_error_matches (local, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED))
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
                 _ ("%s is not up any more: the process that kept it has ended, and nobody said "
                    "down; nobody listens at %s, and its log is %s"),
                 paths->file, paths->socket, paths->log);
  else
    tool_fail (error, _ ("%s: the process that keeps it does not answer at %s: %s"), paths->file,
               paths->socket, local->message);
}

/* What the keeper answers, and which process it is. */
static char *
ask_once (const ClusterPaths *paths, const char *question, guint seconds, int *keeper,
          GError **error)
{
  g_autoptr (GSocketAddress) address = g_unix_socket_address_new (paths->socket);
  g_autoptr (GSocketClient) client = g_socket_client_new ();
  g_autoptr (GSocketConnection) connection = NULL;
  g_autoptr (GCredentials) who = NULL;
  g_autoptr (GString) answer = g_string_new (NULL);
  GCancellable *cancellable = tool_get_cancellable ();
  char some[4096];
  gssize n = -1;

  g_socket_client_set_timeout (client, seconds);
  connection = g_socket_client_connect (client, G_SOCKET_CONNECTABLE (address), cancellable, error);
  if (connection == NULL)
    return NULL;
  who = g_socket_get_credentials (g_socket_connection_get_socket (connection), NULL);
  *keeper = who != NULL ? (int) g_credentials_get_unix_pid (who, NULL) : 0;
  if (g_output_stream_write_all (g_io_stream_get_output_stream (G_IO_STREAM (connection)), question,
                                 strlen (question), NULL, cancellable, error))
    while ((n = g_input_stream_read (g_io_stream_get_input_stream (G_IO_STREAM (connection)), some,
                                     sizeof some, cancellable, error))
           > 0)
      g_string_append_len (answer, some, n);
  return n == 0 ? g_string_free (g_steal_pointer (&answer), FALSE) : NULL;
}

static char *
ask (const ClusterPaths *paths, const char *question, guint seconds, int *keeper, GError **error)
{
  g_autoptr (GError) local = NULL;
  char *answer = ask_once (paths, question, seconds, keeper, &local);

  /* One that was ending did not answer any more, and has ended now. */
  if (g_error_matches (local, G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED)
      || (answer != NULL && answer[0] == '\0' && strcmp (question, ASK_STATUS) == 0))
    {
      g_clear_error (&local);
      g_free (answer);
      answer = ask_once (paths, question, seconds, keeper, &local);
    }
  if (answer == NULL)
    tell_why (paths, local, error);
  return answer;
}

/* Of one place; NULL: it is none. */
static char **
split (const char *line)
{
  char **fields = g_strsplit (line, "\t", -1);

  if (g_strv_length (fields) == CLUSTER_N_FIELDS)
    return fields;
  g_strfreev (fields);
  return NULL;
}

/* --- up, down --- */

/* In the new process: it stays when this one, its terminal and its session do not. */
static void
leave_session (gpointer data)
{
  setsid ();
}

static gboolean
begin_keeper (const ClusterPaths *paths, GPid *process, int *report, GError **error)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", error);
  const char *words[] = { self, "cluster", "keep", paths->file, NULL };
  int errors = cluster_open_log (paths, error);
  int nothing = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  int pipe[2] = { -1, -1 };
  gboolean ok = errors >= 0 && self != NULL && g_unix_open_pipe (pipe, FD_CLOEXEC, error)
                && g_spawn_async_with_pipes_and_fds (
                    NULL, words, NULL, G_SPAWN_DO_NOT_REAP_CHILD, leave_session, NULL, nothing,
                    pipe[1], errors, NULL, NULL, 0, process, NULL, NULL, NULL, error);

  for (guint i = 0; i < 3; i++)
    {
      int fd = ((int[]){ errors, nothing, pipe[1] })[i];

      if (fd >= 0)
        close (fd);
    }
  if (!ok && pipe[0] >= 0)
    close (pipe[0]);
  *report = pipe[0];
  return ok;
}

/* FALSE: it was cancelled. */
static gboolean
read_report (int report, GString *text)
{
  GPollFD cancelled = { .fd = -1 };
  gboolean ok = TRUE;
  char some[4096];
  gssize n = 1;

  if (!g_cancellable_make_pollfd (tool_get_cancellable (), &cancelled))
    cancelled.fd = -1;
  while (n > 0)
    {
      struct pollfd polls[]
          = { { .fd = report, .events = POLLIN }, { .fd = cancelled.fd, .events = POLLIN } };

      if (poll (polls, G_N_ELEMENTS (polls), -1) < 0)
        continue;
      if (polls[1].revents != 0)
        {
          ok = FALSE;
          break;
        }
      n = read (report, some, sizeof some);
      if (n > 0)
        g_string_append_len (text, some, n);
    }
  if (cancelled.fd >= 0)
    g_cancellable_release_fd (tool_get_cancellable ());
  return ok;
}

static gboolean
take_report (const ClusterPaths *paths, const char *report, GError **error)
{
  g_auto (GStrv) lines = g_strsplit (report, "\n", -1);

  for (guint i = 0; lines[i] != NULL; i++)
    {
      g_auto (GStrv) fields = split (lines[i]);

      if (fields != NULL)
        print_place (fields);
      else if (strcmp (lines[i], CLUSTER_UP) == 0)
        {
          tool_print_row (_ ("log"), paths->log);
          return TRUE;
        }
      else if (g_str_has_prefix (lines[i], CLUSTER_FAILED))
        return tool_fail (error, "%s", lines[i] + strlen (CLUSTER_FAILED));
    }
  return tool_fail (error, _ ("%s: the process that keeps it has ended: %s says more"), paths->file,
                    paths->log);
}

/* [cluster]: certificates; NULL: nobody wants any. */
static char *
dup_submitter (const ClusterPaths *paths)
{
  g_autoptr (GKeyFile) keys = g_key_file_new ();
  g_autofree char *directory = g_path_get_dirname (paths->real);
  g_autofree char *path = NULL;

  if (g_key_file_load_from_file (keys, paths->real, G_KEY_FILE_NONE, NULL))
    path = g_key_file_get_string (keys, "cluster", "certificates", NULL);
  return path != NULL ? g_canonicalize_filename (g_strstrip (path), directory) : NULL;
}

/* Of one that listens with TLS: where this machine sees its certificates, they are looked at. */
static gboolean
check_place (PtoClusterFile *cluster, guint place, const char *submitter, GError **error)
{
  g_autofree char *address = pto_cluster_file_dup_address (cluster, place);
  g_auto (GStrv) command = pto_cluster_file_dup_command (cluster, place);
  g_autoptr (GSocketConnectable) where
      = g_str_has_prefix (address, TLS_SCHEME)
            ? g_network_address_parse (address + strlen (TLS_SCHEME), 0, NULL)
            : NULL;

  for (guint i = 0; where != NULL && command != NULL && command[i] != NULL; i++)
    {
      const char *directory = command[i] + strlen (CERTIFICATES);
      g_autofree char *path = NULL;

      if (!g_str_has_prefix (command[i], CERTIFICATES))
        continue;
      path = g_build_filename (directory, "cert.pem", NULL);
      return !g_file_test (path, G_FILE_TEST_EXISTS)
             || remote_check_certificates (
                 directory, submitter, g_network_address_get_hostname (G_NETWORK_ADDRESS (where)),
                 error);
    }
  return TRUE;
}

/* Nobody would get in, though all listen. */
static gboolean
check_certificates (PtoClusterFile *cluster, const ClusterPaths *paths, GError **error)
{
  g_autofree char *submitter = dup_submitter (paths);
  gboolean ok = submitter == NULL || remote_check_certificates (submitter, submitter, NULL, error);

  for (guint i = 0; ok && submitter != NULL && i < pto_cluster_file_get_n_places (cluster); i++)
    {
      ok = check_place (cluster, i, submitter, error);
      if (!ok)
        {
          g_autofree char *name = pto_cluster_file_dup_name (cluster, i);

          g_prefix_error (error, "%s: ", name);
        }
    }
  if (!ok)
    g_prefix_error (error, "%s: ", paths->file);
  return ok;
}

static gboolean
down (const ClusterPaths *paths, GError **error)
{
  int keeper, lock;
  g_autofree char *answer = ask (paths, "down\n", END_S, &keeper, error);

  /* What one has left that was killed. */
  lock = answer == NULL ? cluster_take_lock (paths, NULL) : -1;
  if (lock >= 0)
    cluster_release_lock (paths, lock);
  return answer != NULL;
}

/* Prints the workers that are up. If standard output cannot be written, it ends them: any exit
 * status but 0 means that the cluster is not up. */
static gboolean
tell_or_undo (const ClusterPaths *paths, const char *report, GError **error)
{
  gboolean ok;

  tool_hold_output ();
  ok = take_report (paths, report, error);
  if (tool_release_output () || !ok)
    return ok;
  down (paths, error);
  return FALSE;
}

/* All of them, or none. */
static gboolean
up (const ClusterPaths *paths, GError **error)
{
  g_autoptr (PtoClusterFile) cluster = pto_cluster_file_new (paths->file, error);
  g_autoptr (GString) report = g_string_new (NULL);
  gboolean ok;
  GPid process;
  int fd;

  if (cluster == NULL || !check_certificates (cluster, paths, error)
      || !begin_keeper (paths, &process, &fd, error))
    return FALSE;
  ok = read_report (fd, report);
  /* Who comes up and finds that nobody waits undoes what it has begun. */
  close (fd);
  if (!ok)
    waitpid (process, NULL, 0);
  g_spawn_close_pid (process);
  if (ok)
    return tell_or_undo (paths, report->str, error);
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, _ ("cancelled"));
  return FALSE;
}

/* --- status --- */

/* How many are not as they should be. */
static guint
print_places (char **lines, JsonBuilder *json)
{
  guint n_bad = 0;

  for (guint i = 0; lines[i] != NULL; i++)
    {
      g_auto (GStrv) fields = split (lines[i]);

      if (fields == NULL)
        continue;
      n_bad += !is_good (fields);
      if (json != NULL)
        add_place (json, fields);
      else
        print_place (fields);
    }
  return n_bad;
}

static guint
print_json (const ClusterPaths *paths, int keeper, char **lines)
{
  JsonBuilder *json = json_builder_new ();
  guint n_bad;

  json_builder_begin_object (json);
  pto_json_add_string (json, "file", paths->file);
  pto_json_add_string (json, "log", paths->log);
  pto_json_add_signed (json, "keeper", keeper);
  pto_json_begin_array (json, "places");
  n_bad = print_places (lines, json);
  json_builder_end_array (json);
  json_builder_end_object (json);
  tool_print_json (json);
  return n_bad;
}

static gboolean
status (const ClusterPaths *paths, GError **error)
{
  int keeper;
  g_autofree char *answer = ask (paths, ASK_STATUS, ANSWER_S, &keeper, error);
  g_auto (GStrv) lines = answer != NULL ? g_strsplit (answer, "\n", -1) : NULL;
  guint n_bad;

  if (answer == NULL)
    return FALSE;
  n_bad = option_json ? print_json (paths, keeper, lines) : print_places (lines, NULL);
  if (!option_json)
    tool_print_row (_ ("log"), paths->log);
  if (n_bad > 0)
    g_set_error (error, TOOL_ERROR, TOOL_ERROR_FAILED,
                 g_dngettext (GETTEXT_PACKAGE, "%s: %u place is not ready",
                              "%s: %u places are not ready", n_bad),
                 paths->file, n_bad);
  return n_bad == 0;
}

/* --- the command --- */

/* Its standard output is whoever waits for it. */
static gboolean
keep (const ClusterPaths *paths, GError **error)
{
  GError *local = NULL;

  if (cluster_keep (paths, &local))
    return TRUE;
  pto_make_printable (local->message, FALSE);
  printf ("%s%s\n", CLUSTER_FAILED, local->message);
  fflush (stdout);
  g_propagate_error (error, local);
  return FALSE;
}

typedef struct
{
  const char *name;
  const char *purpose; /* NULL: nobody types it */
  gboolean (*run) (const ClusterPaths *paths, GError **error);
} Action;

static const Action actions[] = {
  { "up", N_ ("begin all that listen, and wait until they do: all or none"), up },
  { "status", N_ ("tell how each of them is"), status },
  { "down", N_ ("end all of them"), down },
  { "keep", NULL, keep },
};

static void
add_words (GArray *words)
{
  for (guint i = 0; i < G_N_ELEMENTS (actions); i++)
    if (actions[i].purpose != NULL)
      {
        ToolWord word = { actions[i].name, N_ ("FILE"), actions[i].purpose };

        g_array_append_val (words, word);
      }
}

static gboolean
tool_cluster (char **words, GError **error)
{
  g_auto (ClusterPaths) paths = { NULL };
  const Action *action = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (actions); i++)
    if (strcmp (words[1], actions[i].name) == 0)
      action = &actions[i];
  if (action != NULL && words[2] != NULL && words[3] == NULL)
    return cluster_paths_init (&paths, words[2], error) && action->run (&paths, error);
  if (action == NULL)
    return tool_refuse (error, _ ("\"%s\" can not be done: there are up, status and down"),
                        words[1]);
  if (words[2] == NULL)
    return tool_refuse (error, _ ("which cluster? pto cluster %s FILE"), words[1]);
  return tool_refuse (error, _ ("one file at a time, not \"%s\" too"), words[3]);
}

const ToolCommand tool_cluster_command = {
  .name = "cluster",
  .purpose = N_ ("begin, ask and end the remote workers of a cluster file"),
  .operands = N_ ("ACTION FILE"),
  .missing = N_ ("what is to be done? pto cluster up FILE (see pto help cluster)"),
  .summary
  = N_ ("Has pto-remote listen wherever FILE says that a worker listens, on this machine or "
        "others, by their launchers,\nso that programs find them. A process stays that asks "
        "them how they are, begins again who is lost, and has\ntheir log. With its end all "
        "of them end."),
  .entries = entries,
  .words_title = N_ ("What can be done"),
  .words_name = "ACTION",
  .add_words = add_words,
  .run = tool_cluster,
};
