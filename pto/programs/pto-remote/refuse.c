/* refuse.c: how is somebody told that there is no worker for them, and why?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * As a worker refuses Hello (remote/wire/contract.c): an error in answer to the first message of
 * the connection, which has the number 1 and need not have come. So the cause is in the error of
 * who has connected, and not only where this one prints.
 */
#include "config.h"

#include "private.h"

#include <pto/pto.h>
#include <sysexits.h>
#include <unistd.h>

#define REFUSED "org.libpto.Remote1.Refused"
#define HELLO_SERIAL 1
#define OWN_SERIAL 1

GBytes *
remote_make_refusal (const char *why)
{
  g_autoptr (GDBusMessage) message = g_dbus_message_new ();
  g_autofree char *text = g_strdup_printf ("pto-remote on %s: %s", g_get_host_name (), why);
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  guint8 *blob;
  gsize size = 0;

  g_dbus_message_set_message_type (message, G_DBUS_MESSAGE_TYPE_ERROR);
  g_dbus_message_set_error_name (message, REFUSED);
  g_dbus_message_set_reply_serial (message, HELLO_SERIAL);
  g_dbus_message_set_serial (message, OWN_SERIAL);
  g_dbus_message_set_body (message, g_variant_new ("(sis)", valid, PTO_ERROR_NOT_SUPPORTED,
                                                   g_quark_to_string (PTO_ERROR)));
  blob = g_dbus_message_to_blob (message, &size, G_DBUS_CAPABILITY_FLAGS_NONE, NULL);
  return g_bytes_new_take (blob, size);
}

void
remote_refuse (int fd, const char *why)
{
  g_autoptr (GBytes) message = remote_make_refusal (why);
  /* It is less than any connection has room for at its beginning. */
  gssize written = write (fd, g_bytes_get_data (message, NULL), g_bytes_get_size (message));

  (void) written;
}

int
remote_refuse_main (const char *why)
{
  remote_refuse (STDOUT_FILENO, why);
  remote_say ("%s", why);
  return EX_UNAVAILABLE;
}
