/* test-exception-wire.c: what is left of an exception in as much room as there is?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "object-test.h"

#include "../../pto/values/exception.h"

#include <string.h>

#define ROOM 2944

static PtoException *
make (gsize trace_bytes, gsize contents_bytes)
{
  g_autofree char *trace = g_strnfill (trace_bytes, 't');
  g_autofree char *data = g_strnfill (contents_bytes, 'c');
  g_autoptr (GBytes) contents = g_bytes_new (data, contents_bytes);

  return pto_exception_new_with_contents ("Error", "why", trace, NULL, 0, contents);
}

static PtoException *
send (PtoException *exception, gsize room)
{
  guint64 bytes[ROOM / sizeof (guint64)];
  gsize size;

  g_assert_cmpuint (room, <=, sizeof bytes);
  size = pto_exception_pack (exception, TRUE, (guint8 *) bytes, room);
  g_assert_cmpuint (size, >, 0);
  g_assert_cmpuint (size, <=, room);
  return pto_exception_unpack ((const guint8 *) bytes, size);
}

static gsize
count_contents (PtoException *exception)
{
  GBytes *contents = pto_exception_get_contents (exception);

  return contents != NULL ? g_bytes_get_size (contents) : 0;
}

static void
test_contents (void)
{
  static const struct
  {
    gsize trace;
    gsize contents;
    gsize trace_left;
    gsize contents_left;
  } cases[] = {
    { 100, 500, 100, 500 },        { 100, 0, 100, 0 },
    { 10000, 100, ROOM / 2, 100 }, { 10000, 2000, ROOM / 8, 2000 },
    { 10000, 2700, 0, 2700 },      { 100, 2800, 0, 2800 },
    { 1000, 3000, 1000, 0 },       { 10000, 10000, ROOM / 2, 0 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (PtoException) exception = make (cases[i].trace, cases[i].contents);
      g_autoptr (PtoException) there = send (exception, ROOM);
      const char *trace = pto_exception_get_trace (there);

      g_test_message ("%u", i);
      g_assert_cmpstr (pto_exception_get_message (there), ==, "why");
      g_assert_cmpuint (trace != NULL ? strlen (trace) : 0, ==, cases[i].trace_left);
      g_assert_cmpuint (count_contents (there), ==, cases[i].contents_left);
    }
}

/* Each member has its own. */
static void
test_members (void)
{
  g_autoptr (PtoException) first = make (10, 20);
  g_autoptr (PtoException) second = pto_exception_new ("Plain", "two", NULL, NULL, 0);
  PtoException *members[] = { first, second };
  g_autoptr (PtoException) group = pto_exception_new ("Group", "both", NULL, members, 2);
  g_autoptr (PtoException) there = send (group, ROOM);

  g_assert_null (pto_exception_get_contents (there));
  g_assert_cmpuint (count_contents (pto_exception_get_member (there, 0)), ==, 20);
  g_assert_null (pto_exception_get_contents (pto_exception_get_member (there, 1)));
}

/* Words alone, which have the room of the contents then. */
static void
test_words (void)
{
  g_autofree char *text = g_strnfill (2000, 'w');
  g_autoptr (GBytes) contents = g_bytes_new (text, 2000);
  g_autoptr (PtoException) member = make (10, 20);
  g_autoptr (PtoException) group
      = pto_exception_new_with_contents ("Group", text, "there", &member, 1, contents);
  guint64 bytes[ROOM / sizeof (guint64)];
  gsize size = pto_exception_pack (group, FALSE, (guint8 *) bytes, sizeof bytes);
  g_autoptr (PtoException) there = pto_exception_unpack ((const guint8 *) bytes, size);

  g_assert_cmpstr (pto_exception_get_message (there), ==, text);
  g_assert_cmpstr (pto_exception_get_trace (there), ==, "there");
  g_assert_null (pto_exception_get_contents (there));
  g_assert_cmpuint (pto_exception_get_n_members (there), ==, 1);
  g_assert_null (pto_exception_get_contents (pto_exception_get_member (there, 0)));
}

/* Whatever was written over them, they are what was packed, or they are not there. */
static void
test_overwritten (void)
{
  g_autoptr (PtoException) exception = make (10, 64);
  guint64 words[ROOM / sizeof (guint64)] = { 0 };
  guint8 *bytes = (guint8 *) words;
  gsize size = pto_exception_pack (exception, TRUE, bytes, ROOM);
  guint n_dropped = 0;

  for (gsize i = 0; i < size; i++)
    {
      g_autoptr (PtoException) there = NULL;

      bytes[i] ^= 0x20;
      there = pto_exception_unpack (bytes, size);
      bytes[i] ^= 0x20;
      if (there == NULL || pto_exception_get_contents (there) == NULL)
        n_dropped++;
      else
        g_assert_true (g_bytes_equal (pto_exception_get_contents (there),
                                      pto_exception_get_contents (exception)));
    }
  g_assert_cmpuint (n_dropped, >=, 64 + 32);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/exception-wire/contents", test_contents);
  g_test_add_func ("/pto/exception-wire/members", test_members);
  g_test_add_func ("/pto/exception-wire/words", test_words);
  g_test_add_func ("/pto/exception-wire/overwritten", test_overwritten);
  return g_test_run ();
}
