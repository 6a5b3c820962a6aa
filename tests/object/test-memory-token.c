/* test-memory-token.c: does a token say what it was made of, and only if it was made so?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "../../pto/values/memory-token.h"

#include "pto-error.h"

#include "object-test.h"

#include <string.h>

/* Nothing random: what it gives is known. */
static PtoTokenSeal
make_seal (guint8 first)
{
  PtoTokenSeal seal;

  for (guint i = 0; i < sizeof seal.name; i++)
    seal.name[i] = (guint8) (first + i);
  for (guint i = 0; i < sizeof seal.key; i++)
    seal.key[i] = (guint8) (first + 16 + i);
  return seal;
}

static char *
make (const PtoTokenSeal *seal)
{
  PtoMemoryToken token = { .path = (char *) "L4/0/L3/7",
                           .life = G_MAXUINT32,
                           .number = G_MAXUINT64,
                           .offset = G_GUINT64_CONSTANT (1) << 40,
                           .size = 1 };

  return pto_memory_token_to_string (&token, seal);
}

static void
test_round (void)
{
  g_autoptr (GError) error = NULL;
  PtoTokenSeal seal = make_seal (0);
  g_autofree char *text = make (&seal);
  PtoMemoryToken token;

  /* The seal was computed by another program: HMAC-SHA-256 of what is before it. */
  g_assert_cmpstr (text, ==,
                   "memory1:000102030405060708090a0b0c0d0e0f:L4/0/L3/7:4294967295:"
                   "18446744073709551615:1099511627776:1:77e89b2bc037b69a6e9f7cf4134dcb55");
  g_assert_true (pto_memory_token_from_string (text, &seal, "here", &token, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (token.path, ==, "L4/0/L3/7");
  g_assert_cmpuint (token.life, ==, G_MAXUINT32);
  g_assert_cmpuint (token.number, ==, G_MAXUINT64);
  g_assert_cmpuint (token.offset, ==, G_GUINT64_CONSTANT (1) << 40);
  g_assert_cmpuint (token.size, ==, 1);
  g_free (token.path);
}

static void
assert_refused (const char *text, const PtoTokenSeal *seal, const char *words)
{
  g_autoptr (GError) error = NULL;
  PtoMemoryToken token;

  g_assert_false (pto_memory_token_from_string (text, seal, "L4/0/L3/1", &token, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  g_assert_null (token.path);
  if (words != NULL)
    object_test_assert_contains (error->message, words);
}

/* Each bit turned over, each end cut off, each byte twice. */
static void
test_changed (void)
{
  PtoTokenSeal seal = make_seal (0);
  g_autofree char *text = make (&seal);
  gsize size = strlen (text);

  for (gsize i = 0; i < size; i++)
    {
      g_autofree char *shorter = g_strndup (text, i);
      g_autofree char *twice = g_strdup_printf ("%.*s%s", (int) i + 1, text, text + i);

      assert_refused (shorter, &seal, NULL);
      assert_refused (twice, &seal, NULL);
      assert_refused (text + i + 1, &seal, NULL);
      for (guint bit = 0; bit < 8; bit++)
        {
          g_autofree char *changed = g_strdup (text);

          changed[i] = (char) (changed[i] ^ (1 << bit));
          assert_refused (changed, &seal, NULL);
        }
    }
}

/* Whoever made it, and knows all that it says. */
static void
test_others (void)
{
  PtoTokenSeal seal = make_seal (0);
  PtoTokenSeal other = make_seal (1);
  PtoTokenSeal thief = make_seal (1);
  g_autofree char *text = make (&seal);
  g_autofree char *stolen = NULL;
  g_autofree char *longest = g_strnfill (512, ':');
  g_autofree char *longer = g_strnfill (513, ':');
  g_autofree char *strange = g_strdup_printf ("memory1:0:\xff\xfe:1:1:1:1:%032d", 0);

  assert_refused (text, &other, "of memory of L4/0/L3/7 of another program, or of another tree");
  assert_refused (text, NULL, "which L4/0/L3/1 has not");
  memcpy (thief.name, seal.name, sizeof seal.name);
  stolen = make (&thief);
  assert_refused (stolen, &seal, "its seal does not fit");
  assert_refused (longest, &seal, "is no token of a buffer");
  assert_refused (longer, &seal, "is no token of a buffer");
  assert_refused (strange, &seal, "another program");
}

/* No two of them are alike. */
static void
test_random (void)
{
  g_autoptr (GError) error = NULL;
  PtoTokenSeal a, b;

  g_assert_true (pto_token_seal_make (&a, &error));
  g_assert_no_error (error);
  g_assert_true (pto_token_seal_make (&b, &error));
  g_assert_no_error (error);
  g_assert_cmpint (memcmp (a.name, b.name, sizeof a.name), !=, 0);
  g_assert_cmpint (memcmp (a.key, b.key, sizeof a.key), !=, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/memory-token/round", test_round);
  g_test_add_func ("/pto/memory-token/changed", test_changed);
  g_test_add_func ("/pto/memory-token/others", test_others);
  g_test_add_func ("/pto/memory-token/random", test_random);
  return g_test_run ();
}
