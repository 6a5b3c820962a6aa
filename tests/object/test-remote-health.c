/* test-remote-health.c: is it told when nothing is heard of the other end, and only then?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The other end is the test: it answers what it is asked, or does not. Nothing here depends on how
 * fast that is: where silence would be wrong it takes minutes, where it is waited for, moments.
 */
#include "config.h"

#include "../../pto/remote/wire/liveness.h"

#include <sys/socket.h>
#include <unistd.h>

#define WATCHDOG_S 60
#define WAIT_MS 30000
#define LONG_MS 600000
#define SIGNS 8

typedef struct
{
  PtoRemoteStream *near;
  PtoRemoteStream *far;
  PtoRemoteHealth *health;
  GAsyncQueue *signs; /* milliseconds * SIGNS + 1 + PtoRemoteSign */
} Test;

static void
note (gpointer data, PtoRemoteSign sign, guint64 ms)
{
  Test *test = data;

  g_async_queue_push (test->signs, GSIZE_TO_POINTER (ms * SIGNS + 1 + (guint) sign));
}

static void
begin (Test *test, guint ping_ms, guint suspect_ms, guint lease_ms)
{
  PtoRemoteHealthConfig config
      = { .ping_ms = ping_ms, .suspect_ms = suspect_ms, .lease_ms = lease_ms, note, test };
  GError *error = NULL;
  int ends[2];

  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), ==, 0);
  test->near = pto_remote_stream_new (ends[0], ends[0]);
  test->far = pto_remote_stream_new (ends[1], ends[1]);
  test->signs = g_async_queue_new ();
  test->health = pto_remote_health_new (test->near, &config, &error);
  g_assert_no_error (error);
}

static void
end (Test *test)
{
  pto_remote_health_free (test->health);
  g_assert_null (g_async_queue_try_pop (test->signs));
  g_async_queue_unref (test->signs);
  pto_remote_stream_free (test->near);
  if (test->far != NULL)
    pto_remote_stream_free (test->far);
}

/* The next one, after so much silence at least. */
static void
assert_sign (Test *test, PtoRemoteSign sign, gsize least_ms)
{
  gsize found = GPOINTER_TO_SIZE (g_async_queue_timeout_pop (test->signs, WAIT_MS * 1000));

  g_assert_cmpuint (found % SIGNS, ==, 1 + (guint) sign);
  g_assert_cmpuint (found / SIGNS, >=, least_ms);
}

/* The question, whatever it takes. */
static GDBusMessage *
take_question (Test *test)
{
  g_autoptr (GError) error = NULL;
  GDBusMessage *message = pto_remote_stream_receive (test->far, WAIT_MS, &error);

  g_assert_no_error (error);
  g_assert_nonnull (message);
  g_assert_cmpstr (g_dbus_message_get_member (message), ==, "Progress");
  return message;
}

static void
answer (Test *test)
{
  g_autoptr (GDBusMessage) question = take_question (test);
  g_autoptr (GDBusMessage) message = g_dbus_message_new_method_reply (question);
  g_autoptr (GError) error = NULL;

  g_dbus_message_set_body (message, g_variant_new ("(u)", 7));
  g_assert_true (pto_remote_stream_send (test->far, message, NULL, &error));
  g_assert_no_error (error);
}

/* While nobody reads it is asked, once each time, and the answer taken. */
static void
test_asked (void)
{
  Test test = { NULL };

  begin (&test, 10, LONG_MS, LONG_MS);
  pto_remote_health_end_reading (test.health);
  pto_remote_health_begin_to_tell (test.health);
  for (guint i = 0; i < 5; i++)
    answer (&test);
  pto_remote_health_begin_reading (test.health);
  end (&test);
}

/* Who reads has what comes to itself, answers to questions of others among it. */
static void
test_reading (void)
{
  Test test = { NULL };

  begin (&test, 10, LONG_MS, LONG_MS);
  pto_remote_health_begin_to_tell (test.health);
  for (guint i = 0; i < 5; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GDBusMessage) reply = NULL;

      answer (&test);
      reply = pto_remote_stream_receive (test.near, WAIT_MS, &error);
      g_assert_no_error (error);
      g_assert_cmpint (g_dbus_message_get_message_type (reply), ==,
                       G_DBUS_MESSAGE_TYPE_METHOD_RETURN);
    }
  end (&test);
}

/* Silent, heard of, silent, lost: each is told once, in that order. */
static void
test_silent (void)
{
  Test test = { NULL };

  begin (&test, 10, 40, 0);
  pto_remote_health_end_reading (test.health);
  pto_remote_health_begin_to_tell (test.health);
  for (guint i = 0; i < 2; i++)
    {
      assert_sign (&test, PTO_REMOTE_SIGN_SILENT, 40);
      answer (&test);
      assert_sign (&test, PTO_REMOTE_SIGN_HEARD, 40);
    }
  assert_sign (&test, PTO_REMOTE_SIGN_SILENT, 40);
  pto_remote_health_begin_reading (test.health);
  end (&test);
}

static void
test_lease (void)
{
  Test test = { NULL };

  begin (&test, 10, 40, 120);
  pto_remote_health_begin_to_tell (test.health);
  assert_sign (&test, PTO_REMOTE_SIGN_SILENT, 40);
  assert_sign (&test, PTO_REMOTE_SIGN_EXPIRED, 120);
  end (&test);
}

/* Long before it is told of anything it is asked; and what was silent until then is forgiven. */
static void
test_not_told (void)
{
  Test test = { NULL };

  begin (&test, 10, 20, 30);
  pto_remote_health_end_reading (test.health);
  for (guint i = 0; i < 5; i++)
    answer (&test);
  /* The next one is not answered. */
  g_object_unref (take_question (&test));
  g_usleep (60000);
  g_assert_null (g_async_queue_try_pop (test.signs));
  pto_remote_health_begin_to_tell (test.health);
  assert_sign (&test, PTO_REMOTE_SIGN_SILENT, 20);
  assert_sign (&test, PTO_REMOTE_SIGN_EXPIRED, 30);
  pto_remote_health_begin_reading (test.health);
  end (&test);
}

/* The end of the connection: whoever asks is told, unless it is the end that was wanted. */
static void
test_ended (void)
{
  for (guint wanted = 0; wanted < 2; wanted++)
    {
      Test test = { NULL };

      begin (&test, 10, LONG_MS, LONG_MS);
      if (wanted == 0)
        pto_remote_health_begin_to_tell (test.health);
      g_clear_pointer (&test.far, pto_remote_stream_free);
      if (wanted == 0)
        assert_sign (&test, PTO_REMOTE_SIGN_ENDED, 0);
      end (&test);
    }
}

/* The other end asks nothing, and needs no answer: it counts from what it has read last. */
static void
test_other_end (void)
{
  Test test = { NULL };

  begin (&test, 0, 0, 100);
  pto_remote_health_begin_to_tell (test.health);
  assert_sign (&test, PTO_REMOTE_SIGN_EXPIRED, 100);
  g_assert_null (pto_remote_stream_receive (test.far, 0, NULL));
  end (&test);
}

static gpointer
send_much (gpointer data)
{
  Test *test = data;
  g_autoptr (GDBusMessage) message = pto_remote_make_call (
      "Put", g_variant_new ("(ttt)", G_GUINT64_CONSTANT (1), G_GUINT64_CONSTANT (0), 8 << 20),
      FALSE);
  g_autofree guint8 *bytes = g_malloc0 (8 << 20);

  g_assert_true (pto_remote_stream_send_with (test->near, message, bytes, 8 << 20, NULL, NULL));
  return NULL;
}

/* What is long is taken in parts, and each part is a sign, before there is an answer; nothing is
 * asked in the middle of it. */
static void
test_parts (void)
{
  Test test = { NULL };
  g_autofree guint8 *bytes = g_malloc (1 << 20);
  g_autoptr (GError) error = NULL;
  g_autoptr (GDBusMessage) put = NULL;
  GThread *thread;
  guint before;

  begin (&test, LONG_MS, LONG_MS, LONG_MS);
  before = pto_remote_stream_get_signs (test.near);
  thread = g_thread_new ("sender", send_much, &test);
  put = pto_remote_stream_receive (test.far, WAIT_MS, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 8; i++)
    {
      g_assert_true (pto_remote_stream_read (test.far, bytes, 1 << 20, &error));
      if (i == 0)
        {
          g_autoptr (GDBusMessage) question = pto_remote_make_call ("Progress", NULL, TRUE);

          g_assert_false (pto_remote_stream_try_send (test.near, question, &error));
          g_assert_no_error (error);
        }
    }
  g_thread_join (thread);
  g_assert_cmpuint (pto_remote_stream_get_signs (test.near) - before, >=, 31);
  end (&test);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (WATCHDOG_S);
  g_test_add_func ("/pto/remote-health/asked", test_asked);
  g_test_add_func ("/pto/remote-health/reading", test_reading);
  g_test_add_func ("/pto/remote-health/silent", test_silent);
  g_test_add_func ("/pto/remote-health/lease", test_lease);
  g_test_add_func ("/pto/remote-health/not-told", test_not_told);
  g_test_add_func ("/pto/remote-health/ended", test_ended);
  g_test_add_func ("/pto/remote-health/other-end", test_other_end);
  g_test_add_func ("/pto/remote-health/parts", test_parts);
  return g_test_run ();
}
