/* memory-token.c: how is memory of a remote worker named in a text?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * memory1:TREE:WORKER:LIFE:NUMBER:OFFSET:SIZE:SEAL, the first and the last of 32 hexadecimal
 * digits; the seal is HMAC-SHA-256 of all before it, its first half.
 */
#include "config.h"

#include "memory-token.h"

#include "base/error.h"
#include "common/text.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define PREFIX "memory1"
#define N_WORDS 8
#define SEAL_DIGITS 32u
/* No path of a worker makes one longer. */
#define TOKEN_MAX 512u

gboolean
pto_token_seal_make (PtoTokenSeal *seal, GError **error)
{
  gssize n;

  do
    n = getrandom (seal, sizeof *seal, 0);
  while (n < 0 && errno == EINTR);
  if (n == (gssize) sizeof *seal)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, _ ("the system has no random bytes: %s"),
               g_strerror (n < 0 ? errno : EIO));
  return FALSE;
}

static char *
make_name (const PtoTokenSeal *seal)
{
  GString *name = g_string_new (NULL);

  for (guint i = 0; i < sizeof seal->name; i++)
    g_string_append_printf (name, "%02x", seal->name[i]);
  return g_string_free (name, FALSE);
}

static char *
make_seal (const PtoTokenSeal *seal, const char *text, gsize size)
{
  char *digits = g_compute_hmac_for_data (G_CHECKSUM_SHA256, seal->key, sizeof seal->key,
                                          (const guchar *) text, size);

  digits[SEAL_DIGITS] = '\0';
  return digits;
}

char *
pto_memory_token_to_string (const PtoMemoryToken *token, const PtoTokenSeal *seal)
{
  g_autofree char *name = make_name (seal);
  g_autofree char *body
      = g_strdup_printf (PREFIX ":%s:%s:%" PRIu32 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64, name,
                         token->path, token->life, token->number, token->offset, token->size);
  g_autofree char *digits = make_seal (seal, body, strlen (body));

  return g_strconcat (body, ":", digits, NULL);
}

/* All of both, however soon they differ: how long it takes says nothing. Of the same length. */
static gboolean
is_equal (const char *a, const char *b)
{
  guint8 difference = 0;

  for (guint i = 0; i < SEAL_DIGITS; i++)
    difference |= (guint8) (a[i] ^ b[i]);
  return difference == 0;
}

static gboolean
fail_format (const char *text, GError **error)
{
  g_autofree char *shown = g_utf8_make_valid (text, (gssize) MIN (strlen (text), 40));

  return pto_refuse (
      error, PTO_ERROR_INVALID_ARGS,
      _ ("\"%s\"%s is no token of a buffer: Buffer.export() gives one, to be kept as it "
         "is"),
      shown, strlen (text) > 40 ? "..." : "");
}

gboolean
pto_memory_token_from_string (const char *text, const PtoTokenSeal *seal, const char *path,
                              PtoMemoryToken *token, GError **error)
{
  g_auto (GStrv) words = NULL;
  g_autofree char *name = seal != NULL ? make_name (seal) : NULL;
  g_autofree char *digits = NULL;

  memset (token, 0, sizeof *token);
  if (strnlen (text, TOKEN_MAX + 1) <= TOKEN_MAX)
    words = g_strsplit (text, ":", N_WORDS + 1);
  if (words == NULL || g_strv_length (words) != N_WORDS || strcmp (words[0], PREFIX) != 0
      || strlen (words[N_WORDS - 1]) != SEAL_DIGITS)
    return fail_format (text, error);
  if (g_strcmp0 (words[1], name) != 0)
    {
      g_autofree char *other = g_utf8_make_valid (words[2], -1);

      return pto_refuse (
          error, PTO_ERROR_INVALID_ARGS,
          _ ("the token is of memory of %s of another program, or of another tree of this "
             "one, which %s has not: only the tree that has exported it can import it"),
          other, path);
    }
  digits = make_seal (seal, text, strlen (text) - SEAL_DIGITS - 1);
  if (!is_equal (digits, words[N_WORDS - 1]))
    return pto_refuse (error, PTO_ERROR_INVALID_ARGS,
                       _ ("the token was changed, or made up: its seal does not fit"));
  /* Numbers are those that were sealed. */
  token->path = g_strdup (words[2]);
  token->life = (guint32) g_ascii_strtoull (words[3], NULL, 10);
  token->number = g_ascii_strtoull (words[4], NULL, 10);
  token->offset = g_ascii_strtoull (words[5], NULL, 10);
  token->size = g_ascii_strtoull (words[6], NULL, 10);
  return TRUE;
}
