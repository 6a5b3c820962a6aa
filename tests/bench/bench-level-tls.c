/* bench-level-tls.c: what does TLS of both machines cost, beside what TLS alone does?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A remote worker listens at a port of this machine, with certificates that are made for it. Beside
 * it two threads talk by TLS of GIO, with one of the same certificates, through a connection of
 * the same kind. In both each byte is encrypted once and decrypted once, each way.
 */
#include "bench-level.h"

#include <errno.h>
#include <gio/gio.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "127.0.0.1"
#define PART_BYTES (1u << 20)
#define RUNS_MAX 11u

/* --- certificates, and who listens --- */

struct bench_tls
{
  char *directory;
  char *certificates; /* of who submits */
  char *address;
  GPid listener;
};

/* As the environment says, or beside the program that runs this. */
static char *
dup_remote (const char *program)
{
  const char *variable = g_getenv ("PTO_REMOTE");
  g_autofree char *directory = g_path_get_dirname (program);

  return variable != NULL ? g_strdup (variable) : g_build_filename (directory, "pto-remote", NULL);
}

static gboolean
make_certificates (const struct bench_tls *tls, const char *program, GError **error)
{
  const char *argv[] = { program, "remote", "certificates", tls->directory, NAME, NULL };
  int status;

  return g_spawn_sync (NULL, (char **) argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL,
                       NULL, &status, error)
         && g_spawn_check_wait_status (status, error);
}

/* What it prints when it listens ends in the address. */
static gboolean
begin_listener (struct bench_tls *tls, const char *program, GError **error)
{
  g_autofree char *remote = dup_remote (program);
  g_autofree char *certificates = g_build_filename (tls->directory, NAME, NULL);
  const char *argv[]
      = { remote, "--listen", "tls://" NAME ":0", "--certificates", certificates, NULL };
  char line[128] = "";
  int output;
  ssize_t n;

  if (!g_spawn_async_with_pipes (NULL, (char **) argv, NULL,
                                 G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
                                 &tls->listener, NULL, &output, NULL, error))
    return FALSE;
  n = read (output, line, sizeof line - 1);
  close (output);
  if (n > 0 && strrchr (line, ' ') != NULL)
    {
      tls->address = g_strdup (g_strchomp (strrchr (line, ' ') + 1));
      return TRUE;
    }
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s does not listen", remote);
  return FALSE;
}

/* The few files that `pto remote certificates` makes. */
static void
remove_directory (const char *path)
{
  g_autoptr (GDir) directory = g_dir_open (path, 0, NULL);
  const char *name;

  while (directory != NULL && (name = g_dir_read_name (directory)) != NULL)
    {
      g_autofree char *below = g_build_filename (path, name, NULL);

      if (g_file_test (below, G_FILE_TEST_IS_DIR))
        remove_directory (below);
      else
        unlink (below);
    }
  rmdir (path);
}

void
bench_tls_end (struct bench_tls *tls)
{
  if (tls->listener != 0)
    {
      kill (tls->listener, SIGTERM);
      waitpid (tls->listener, NULL, 0);
    }
  if (tls->directory != NULL)
    remove_directory (tls->directory);
  g_free (tls->directory);
  g_free (tls->certificates);
  g_free (tls->address);
  g_free (tls);
}

static struct bench_tls *
begin_tls (gboolean listens, GError **error)
{
  struct bench_tls *tls = g_new0 (struct bench_tls, 1);
  const char *program = g_getenv ("PTO_PROGRAM");

  if (program == NULL)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                 "the environment does not say which pto makes certificates (PTO_PROGRAM)");
  else if ((tls->directory = g_dir_make_tmp ("pto-bench-XXXXXX", error)) != NULL
           && make_certificates (tls, program, error)
           && (!listens || begin_listener (tls, program, error)))
    {
      tls->certificates = g_build_filename (tls->directory, "parent", NULL);
      return tls;
    }
  bench_tls_end (tls);
  return NULL;
}

struct bench_tls *
bench_tls_begin (GVariantDict *options, const char **address, GError **error)
{
  struct bench_tls *tls = begin_tls (TRUE, error);

  if (tls == NULL)
    return NULL;
  g_variant_dict_insert (options, "certificates", "s", tls->certificates);
  *address = tls->address;
  return tls;
}

/* --- TLS alone --- */

static gboolean
make_pair (int ends[2], GError **error)
{
  struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  socklen_t size = sizeof name;
  int listener = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  gboolean ok;

  ends[0] = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ends[1] = -1;
  ok = bind (listener, (struct sockaddr *) &name, size) == 0 && listen (listener, 1) == 0
       && getsockname (listener, (struct sockaddr *) &name, &size) == 0
       && connect (ends[0], (struct sockaddr *) &name, size) == 0
       && (ends[1] = accept4 (listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;
  if (!ok)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, g_strerror (errno));
  close (listener);
  for (guint i = 0; ok && i < 2; i++)
    setsockopt (ends[i], IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof (int));
  return ok;
}

static GIOStream *
make_stream (int fd, GError **error)
{
  g_autoptr (GSocket) socket = g_socket_new_from_fd (fd, error);

  return socket != NULL ? G_IO_STREAM (g_socket_connection_factory_create_connection (socket))
                        : NULL;
}

typedef struct
{
  GIOStream *stream; /* not encrypted */
  GTlsCertificate *certificate;
  struct bench_size size;
  guint8 *data;
} Far;

static gboolean
write_parts (GIOStream *stream, const guint8 *data, gsize size)
{
  gboolean ok = TRUE;

  for (gsize at = 0; ok && at < size; at += PART_BYTES)
    ok = g_output_stream_write_all (g_io_stream_get_output_stream (stream), data + at,
                                    MIN (size - at, PART_BYTES), NULL, NULL, NULL);
  return ok;
}

static gboolean
read_all (GIOStream *stream, guint8 *data, gsize size)
{
  gsize n;

  return g_input_stream_read_all (g_io_stream_get_input_stream (stream), data, size, &n, NULL, NULL)
         && n == size;
}

/* Answers until nothing comes. */
static gpointer
answer (gpointer data)
{
  Far *far = data;
  g_autoptr (GIOStream) stream = g_tls_server_connection_new (far->stream, far->certificate, NULL);

  while (stream != NULL && read_all (stream, far->data, far->size.there)
         && write_parts (stream, far->data, far->size.back))
    ;
  return NULL;
}

static gboolean
accept_any (GTlsConnection *connection, GTlsCertificate *certificate, GTlsCertificateFlags errors,
            gpointer user_data)
{
  return TRUE;
}

static gboolean
measure (const struct bench_figure *figure, GIOStream *near, Far *far, uint32_t reps, bool brief,
         GError **error)
{
  g_autoptr (GIOStream) stream = g_tls_client_connection_new (near, NULL, error);
  g_autofree guint8 *data = g_malloc0 (MAX (far->size.there, far->size.back));
  gboolean is_bulk = far->size.there > PART_BYTES;
  uint32_t n_calls = is_bulk ? 1 : bench_level_tasks (brief);
  uint32_t n_runs = brief ? 3 : RUNS_MAX;
  GThread *thread;
  gboolean ok = stream != NULL;

  if (!ok)
    return FALSE;
  g_signal_connect (stream, "accept-certificate", G_CALLBACK (accept_any), NULL);
  thread = g_thread_new ("far", answer, far);
  ok = g_tls_connection_handshake (G_TLS_CONNECTION (stream), NULL, error);
  for (uint32_t i = 0; ok && i < reps; i++)
    {
      double ns[RUNS_MAX];

      for (uint32_t r = 0; ok && r < n_runs; r++)
        {
          uint64_t begin = bench_now ();

          for (uint32_t c = 0; ok && c < n_calls; c++)
            ok = write_parts (stream, data, far->size.there)
                 && read_all (stream, data, far->size.back);
          ns[r] = (double) (bench_now () - begin);
        }
      if (ok)
        bench_print (figure->name, figure->metric,
                     is_bulk ? 2e3 * (double) far->size.there / bench_median (ns, n_runs)
                             : bench_median (ns, n_runs) / n_calls / 1e3,
                     figure->unit);
    }
  if (!ok && error != NULL && *error == NULL)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CLOSED, "the other end is gone");
  g_io_stream_close (stream, NULL, NULL);
  g_thread_join (thread);
  return ok;
}

static gboolean
measure_alone (const struct bench_figure *figure, const struct bench_tls *tls,
               struct bench_size size, uint32_t reps, bool brief, GError **error)
{
  g_autofree char *certificate = g_build_filename (tls->directory, NAME, "cert.pem", NULL);
  g_autofree char *key = g_build_filename (tls->directory, NAME, "key.pem", NULL);
  g_autoptr (GIOStream) near = NULL;
  Far far = { .size = size, .data = g_malloc0 (MAX (size.there, size.back)) };
  int ends[2];
  gboolean ok = FALSE;

  far.certificate = g_tls_certificate_new_from_files (certificate, key, error);
  if (far.certificate != NULL && make_pair (ends, error)
      && (near = make_stream (ends[0], error)) != NULL
      && (far.stream = make_stream (ends[1], error)) != NULL)
    ok = measure (figure, near, &far, reps, brief, error);
  g_clear_object (&far.stream);
  g_clear_object (&far.certificate);
  g_free (far.data);
  return ok;
}

bool
bench_level_tls (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  g_autoptr (GError) error = NULL;
  struct bench_tls *tls;
  gboolean ok;

  if (!g_tls_backend_supports_tls (g_tls_backend_get_default ()))
    return bench_skip ("GIO has no TLS here: install glib-networking");
  tls = begin_tls (FALSE, &error);
  if (tls == NULL)
    return bench_skip (error->message);
  ok = measure_alone (figure, tls, bench_level_size (figure->number == 0, brief), reps, brief,
                      &error);
  if (!ok)
    fprintf (stderr, "bench: %s: %s\n", figure->name, error->message);
  bench_tls_end (tls);
  return ok;
}
