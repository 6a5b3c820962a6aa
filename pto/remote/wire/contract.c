/* contract.c: which messages do the two ends of a remote worker send each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "remote-messages.h"

#include "base/error.h"
#include "common/text.h"
#include "values/exception.h"

#include <string.h>

/* Hello is the first message of a connection, and has the number 1: who has no worker refuses it
 * without having read it (../../programs/pto-remote/refuse.c).
 * A change that the other end has to know is a new PTO_REMOTE_PROTOCOL. */
static const char contract[]
    = "<node><interface name='" PTO_REMOTE_INTERFACE "'>"
      /* The first call. session: another one for each life of a worker; path: of it in its tree;
       * options: of it, by name, and among them its id, which of its lives this is (generation) and
       * what the near end can do beyond the protocol (features): "fabric" is that large contents
       * go past the connection (fabric.h), "serialized-python" that functions
       * are sent, and taken, as bytes. Its reply is READY: it can run tasks; options: features. */
      "<method name='Hello'>"
      "<arg direction='in' name='protocol' type='u'/><arg direction='in' name='session' type='s'/>"
      "<arg direction='in' name='path' type='s'/>"
      "<arg direction='in' name='options' type='a{sv}'/>"
      "<arg direction='out' name='protocol' type='u'/><arg direction='out' name='version' type='s'/>"
      "<arg direction='out' name='host' type='s'/><arg direction='out' name='process' type='u'/>"
      "<arg direction='out' name='options' type='a{sv}'/>"
      "</method>"
      /* Which of these contents (SHA-256) are there already? */
      "<method name='Has'><arg direction='in' name='digests' type='aay'/>"
      "<arg direction='out' name='there' type='ab'/></method>"
      /* A part of contents, in order; the last one is checked against the digest. */
      "<method name='Content'><arg direction='in' name='digest' type='ay'/>"
      "<arg direction='in' name='bytes' type='ay'/><arg direction='in' name='last' type='b'/>"
      "</method>"
      /* below: for tasks of the worker, by its orchestrations; otherwise it is one of those, which
       * is checked and loaded, and can be run after Commit, or is taken back by Unregister.
       * workers: of what is below, who is to have it, by their numbers; none: all who can run it.
       */
      "<method name='Register'><arg direction='in' name='digest' type='ay'/>"
      "<arg direction='in' name='descriptor' type='ay'/>"
      "<arg direction='in' name='sources' type='ay'/><arg direction='in' name='below' type='b'/>"
      "<arg direction='in' name='workers' type='au'/></method>"
      "<method name='Commit'><arg direction='in' name='digests' type='aay'/></method>"
      "<method name='Unregister'><arg direction='in' name='digest' type='ay'/></method>"
      /* Memory here, by numbers: which is not needed any more, and which (number, bytes) is from
       * now on, all or none of it. Put: so many bytes for it follow the message. Of both: what goes
       * wrong with them, when no reply is wanted, is said by the next Run, which does not begin
       * then. */
      "<method name='Begin'><arg direction='in' name='dropped' type='at'/>"
      "<arg direction='in' name='begun' type='a(tt)'/></method>"
      "<method name='Put'><arg direction='in' name='block' type='t'/>"
      "<arg direction='in' name='offset' type='t'/><arg direction='in' name='bytes' type='t'/>"
      "</method>"
      /* Tasks that do not depend on each other, one after the other, and what became of them
       * (task-format.h): with blocks that are dropped and begun before, as of Begin. */
      "<method name='Run'><arg direction='in' name='tasks' type='ay'/>"
      "<arg direction='out' name='done' type='ay'/></method>"
      /* Answered at once: those of the Run under way that have not begun, but for the first, are
       * not wanted there any more. kept: so many begin, or have; the reply of Run has no others. */
      "<method name='Recall'><arg direction='out' name='kept' type='u'/></method>"
      /* What is there: it follows the reply, which says how many bytes it is. */
      "<method name='Get'><arg direction='in' name='block' type='t'/>"
      "<arg direction='in' name='offset' type='t'/><arg direction='in' name='bytes' type='t'/>"
      "<arg direction='out' name='follow' type='t'/></method>"
      /* What the tasks of the last recorded run have left (trace/model/trace-pack.c), in parts: the
       * first is asked for at 0. total: 0: nothing was recorded. */
      "<method name='Trace'><arg direction='in' name='offset' type='t'/>"
      "<arg direction='out' name='total' type='t'/><arg direction='out' name='bytes' type='ay'/>"
      "</method>"
      /* Answered at once: CLOCK_MONOTONIC, ns. */
      "<method name='Clock'><arg direction='out' name='time' type='t'/></method>"
      /* So many bytes from there come there; the two may overlap. */
      "<method name='Copy'><arg direction='in' name='from' type='t'/>"
      "<arg direction='in' name='from-offset' type='t'/><arg direction='in' name='to' type='t'/>"
      "<arg direction='in' name='to-offset' type='t'/>"
      "<arg direction='in' name='bytes' type='t'/></method>"
      /* The task under way is not wanted any more; no reply. */
      "<method name='Cancel'/>"
      /* Answered at once, also during a task: a number that changes while it gets on. */
      "<method name='Progress'><arg direction='out' name='progress' type='u'/></method>"
      "<method name='Close'/>"
      "</interface></node>";

#define ERROR_NAME PTO_REMOTE_INTERFACE ".Refused"

static const GDBusInterfaceInfo *
get_contract (void)
{
  static gsize info;

  if (g_once_init_enter (&info))
    {
      g_autoptr (GError) error = NULL;
      GDBusNodeInfo *node = g_dbus_node_info_new_for_xml (contract, &error);

      /* It is a constant of this file. */
      g_assert_no_error (error);
      g_once_init_leave (&info, (gsize) node);
    }
  return ((GDBusNodeInfo *) info)->interfaces[0];
}

gboolean
pto_remote_check_call (GDBusMessage *message, GError **error)
{
  const char *member = g_dbus_message_get_member (message);
  GDBusMethodInfo *method = NULL;
  GString *expected = g_string_new (NULL);
  gboolean ok;

  if (g_dbus_message_get_message_type (message) == G_DBUS_MESSAGE_TYPE_METHOD_CALL
      && g_strcmp0 (g_dbus_message_get_interface (message), PTO_REMOTE_INTERFACE) == 0)
    method = g_dbus_interface_info_lookup_method ((GDBusInterfaceInfo *) get_contract (), member);
  for (guint i = 0; method != NULL && method->in_args != NULL && method->in_args[i] != NULL; i++)
    g_string_append (expected, method->in_args[i]->signature);
  ok = method != NULL && strcmp (g_dbus_message_get_signature (message), expected->str) == 0;
  if (!ok)
    g_set_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS,
                 _ ("a message \"%s\" (%s) is none of %s"), member != NULL ? member : "",
                 g_dbus_message_get_signature (message), PTO_REMOTE_INTERFACE);
  g_string_free (expected, TRUE);
  return ok;
}

gboolean
pto_remote_has_feature (GVariant *options, const char *feature)
{
  g_autofree const char **features = NULL;

  return g_variant_lookup (options, "features", "^a&s", &features)
         && g_strv_contains (features, feature);
}

GDBusMessage *
pto_remote_make_call (const char *method, GVariant *arguments, gboolean wants_reply)
{
  GDBusMessage *message = g_dbus_message_new_method_call (NULL, "/", PTO_REMOTE_INTERFACE, method);

  if (arguments != NULL)
    g_dbus_message_set_body (message, arguments);
  if (!wants_reply)
    g_dbus_message_set_flags (message, G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED);
  return message;
}

GDBusMessage *
pto_remote_make_refusal (GDBusMessage *call, const GError *error)
{
  GDBusMessage *reply = g_dbus_message_new_method_error_literal (call, ERROR_NAME, error->message);

  g_dbus_message_set_body (reply, g_variant_new ("(sis)", error->message, error->code,
                                                 g_quark_to_string (error->domain)));
  return reply;
}

void
pto_remote_take_refusal (GDBusMessage *reply, GError **error)
{
  GVariant *body = g_dbus_message_get_body (reply);
  const char *message = _ ("it was refused without a word");
  const char *domain = "";
  int code = PTO_ERROR_INTERNAL;

  if (body != NULL && g_variant_is_of_type (body, G_VARIANT_TYPE ("(sis)")))
    g_variant_get (body, "(&si&s)", &message, &code, &domain);
  /* Other domains are those of whoever is there. */
  if (strcmp (domain, g_quark_to_string (G_IO_ERROR)) == 0)
    g_set_error_literal (error, G_IO_ERROR, code, message);
  else
    g_set_error_literal (
        error, PTO_ERROR,
        strcmp (domain, g_quark_to_string (PTO_ERROR)) == 0 && code > 0 ? code : PTO_ERROR_LOAD,
        message);
}
