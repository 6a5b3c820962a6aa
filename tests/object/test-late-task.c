/* test-late-task.c: what is a task told whose callable was unregistered before it came, or never
 * came to be registered?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "registration-test.h"

#include "../../pto/worker/child-server.h"

#include <stdlib.h>
#include <string.h>

static guint n_calls;

static gboolean
count_call (PtoTaskArgs *args, gpointer data, GError **error)
{
  n_calls++;
  return TRUE;
}

static PtoCallable *
import_any (PtoCallableKind kind, const char *path, gpointer data, GError **error)
{
  if (g_str_has_suffix (path, ":none"))
    return NULL;
  return pto_sub_function_new (path, count_call, NULL, NULL);
}

static GPtrArray *
list_nothing (gpointer data, guint index)
{
  return g_ptr_array_new ();
}

typedef struct
{
  PtoChild *child;
  struct pto_server server;
  struct pto_mailbox *mailbox;
  struct pto_failure failure;
} Peer;

static guint32
ask (Peer *peer, enum pto_request request, const PtoRegistration *registration)
{
  static const struct pto_call_config config;
  g_autoptr (GBytes) packed
      = pto_child_pack_registration (registration->descriptor, registration->sources, FALSE);
  struct pto_call call = {
    .request = request, .digest = registration->digest, .config = &config, .mailbox = peer->mailbox
  };
  gsize size;

  call.body = g_bytes_get_data (packed, &size);
  call.bytes = size;
  memset (&peer->failure, 0, sizeof peer->failure);
  return peer->server.serve (peer->server.data, &call, &peer->failure);
}

static void
test_late (Fixture *fixture, gconstpointer data)
{
  PtoChildParent parent = { list_nothing, import_any, NULL, .is_far = TRUE };
  Peer peer
      = { .child = pto_child_new (NULL, "L4/0/sub0", &parent), .mailbox = pto_call_mailbox_new () };
  PtoRegistration *one = make_import ("steps:one");
  PtoRegistration *two = make_import ("steps:two");

  pto_child_get_server (peer.child, &peer.server);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_START, one), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_TASK, one), !=, 0);
  object_test_assert_contains (peer.failure.text, "nothing with the digest");

  g_assert_cmpuint (ask (&peer, PTO_REQUEST_REGISTER, one), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_REGISTER, two), ==, 0);
  /* Others may say no. */
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_TASK, one), !=, 0);
  g_assert_cmpstr (peer.failure.text, ==,
                   "\"one\" is not registered on L4/0/sub0 yet: others have not agreed to it");
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_COMMIT, one), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_COMMIT, two), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_TASK, one), ==, 0);
  g_assert_cmpuint (n_calls, ==, 1);

  g_assert_cmpuint (ask (&peer, PTO_REQUEST_UNREGISTER, one), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_UNREGISTER, one), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_TASK, one), !=, 0);
  g_assert_cmpint (peer.failure.code, ==, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (peer.failure.text,
                               "\"one\" was unregistered on L4/0/sub0 before this task");
  /* Of nobody else. */
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_TASK, two), ==, 0);

  /* And it can come back. */
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_REGISTER, one), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_COMMIT, one), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_TASK, one), ==, 0);
  g_assert_cmpuint (n_calls, ==, 3);

  pto_registration_unref (one);
  pto_registration_unref (two);
  pto_child_free (peer.child);
  free (peer.mailbox);
}

/* They have said no: it was there, and is not. */
static void
test_taken_back (Fixture *fixture, gconstpointer data)
{
  PtoChildParent parent = { list_nothing, import_any, NULL, .is_far = TRUE };
  Peer peer
      = { .child = pto_child_new (NULL, "L4/0/sub0", &parent), .mailbox = pto_call_mailbox_new () };
  PtoRegistration *one = make_import ("steps:one");
  PtoRegistration *none = make_import ("steps:none");

  pto_child_get_server (peer.child, &peer.server);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_START, one), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_REGISTER, one), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_UNREGISTER, one), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_TASK, one), !=, 0);
  g_assert_cmpint (peer.failure.code, ==, PTO_ERROR_NOT_FOUND);
  object_test_assert_contains (peer.failure.text,
                               "the registration of \"one\" was taken back on L4/0/sub0");
  /* It is too late for that. */
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_COMMIT, one), !=, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_TASK, one), !=, 0);

  n_calls = 0;
  /* What it has refused by itself it knows by its name, too. */
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_REGISTER, none), !=, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_UNREGISTER, none), ==, 0);
  g_assert_cmpuint (ask (&peer, PTO_REQUEST_TASK, none), !=, 0);
  object_test_assert_contains (peer.failure.text, "the registration of \"none\" was taken back");
  g_assert_cmpuint (n_calls, ==, 0);

  pto_registration_unref (one);
  pto_registration_unref (none);
  pto_child_free (peer.child);
  free (peer.mailbox);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/pto/late-task/unregistered", Fixture, NULL, set_up, test_late, tear_down);
  g_test_add ("/pto/late-task/taken-back", Fixture, NULL, set_up, test_taken_back, tear_down);
  return g_test_run ();
}
