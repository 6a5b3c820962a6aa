/* bench-level-control.c: how long does a call take over the engine that messages of remote workers
 * are made for?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GDBus from process to process over a Unix socket, with the bytes of a small task and of its
 * answer: the round trip that one who builds on GDBusConnection would pay before anything is run.
 */
#include "bench-level.h"

#include <gio/gio.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* As in bench-level-remote.c, without what D-Bus puts before them. */
#define CALL_BYTES 200u
#define ANSWER_BYTES 112u
#define CALLS(brief) (brief ? 101u : 2001u)

#define INTERFACE "org.libpto.Bench1"

static const char contract[] = "<node><interface name='" INTERFACE "'><method name='Run'>"
                               "<arg direction='in' name='tasks' type='ay'/>"
                               "<arg direction='out' name='done' type='ay'/>"
                               "</method></interface></node>";

static GVariant *
make_bytes (gsize n)
{
  static const guint8 data[CALL_BYTES];

  return g_variant_new ("(@ay)", g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, data, n, 1));
}

static GDBusConnection *
connect_by (int end, GDBusConnectionFlags flags, GError **error)
{
  g_autofree char *guid = (flags & G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_SERVER) != 0
                              ? g_dbus_generate_guid ()
                              : NULL;
  g_autoptr (GSocket) socket = g_socket_new_from_fd (end, error);
  g_autoptr (GSocketConnection) stream
      = socket != NULL ? g_socket_connection_factory_create_connection (socket) : NULL;

  return stream != NULL
             ? g_dbus_connection_new_sync (G_IO_STREAM (stream), guid, flags, NULL, NULL, error)
             : NULL;
}

static void
answer (GDBusConnection *connection, const char *sender, const char *path, const char *interface,
        const char *method, GVariant *arguments, GDBusMethodInvocation *invocation, gpointer data)
{
  g_dbus_method_invocation_return_value (invocation, make_bytes (ANSWER_BYTES));
}

static void
end_with_connection (GDBusConnection *connection, gboolean vanished, GError *error, gpointer data)
{
  _exit (0);
}

/* The other process. */
static _Noreturn void
serve (int end)
{
  static const GDBusInterfaceVTable table = { .method_call = answer };
  g_autoptr (GDBusConnection) connection
      = connect_by (end,
                    G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_SERVER
                        | G_DBUS_CONNECTION_FLAGS_DELAY_MESSAGE_PROCESSING,
                    NULL);
  GDBusNodeInfo *node = g_dbus_node_info_new_for_xml (contract, NULL);

  if (connection == NULL
      || g_dbus_connection_register_object (connection, "/", node->interfaces[0], &table, NULL,
                                            NULL, NULL)
             == 0)
    _exit (1);
  g_signal_connect (connection, "closed", G_CALLBACK (end_with_connection), NULL);
  g_dbus_connection_start_message_processing (connection);
  g_main_loop_run (g_main_loop_new (NULL, FALSE));
  _exit (0);
}

static bool
measure (const struct bench_figure *figure, GDBusConnection *connection, uint32_t reps, bool brief,
         GError **error)
{
  for (uint32_t i = 0; i < reps; i++)
    {
      uint64_t begin = bench_now ();

      for (uint32_t c = 0; c < CALLS (brief); c++)
        {
          g_autoptr (GVariant) reply = g_dbus_connection_call_sync (
              connection, NULL, "/", INTERFACE, "Run", make_bytes (CALL_BYTES),
              G_VARIANT_TYPE ("(ay)"), G_DBUS_CALL_FLAGS_NONE, -1, NULL, error);

          if (reply == NULL)
            return false;
        }
      bench_print (figure->name, figure->metric,
                   (double) (bench_now () - begin) / CALLS (brief) / 1e3, figure->unit);
    }
  return true;
}

bool
bench_level_control (const struct bench_figure *figure, uint32_t workers, uint32_t reps, bool brief)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDBusConnection) connection = NULL;
  bool ok = false;
  int ends[2];
  pid_t pid;

  if (socketpair (AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    {
      perror ("bench: control");
      return false;
    }
  /* What is not written yet would be written twice. */
  fflush (stdout);
  pid = fork ();
  if (pid == 0)
    {
      close (ends[0]);
      serve (ends[1]);
    }
  close (ends[1]);
  if (pid > 0)
    connection = connect_by (ends[0], G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT, &error);
  else
    close (ends[0]);
  if (connection != NULL)
    ok = measure (figure, connection, reps, brief, &error);
  if (connection != NULL)
    g_dbus_connection_close_sync (connection, NULL, NULL);
  if (!ok)
    fprintf (stderr, "bench: %s: %s\n", figure->name,
             error != NULL ? error->message : "no process for the other end");
  if (pid > 0)
    waitpid (pid, NULL, 0);
  return ok;
}
