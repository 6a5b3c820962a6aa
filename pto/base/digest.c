/* digest.c: by what are contents known?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "digest.h"

#include <string.h>

void
pto_digest_to_string (const guint8 *digest, char *text)
{
  static const char digits[] = "0123456789abcdef";

  for (guint i = 0; i < PTO_DIGEST_SIZE; i++)
    {
      text[2 * i] = digits[digest[i] >> 4];
      text[2 * i + 1] = digits[digest[i] & 15];
    }
  text[2 * PTO_DIGEST_SIZE] = '\0';
}

void
pto_digest_data (gconstpointer data, gsize size, guint8 *digest)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  gsize n = PTO_DIGEST_SIZE;

  g_checksum_update (checksum, data, (gssize) size);
  g_checksum_get_digest (checksum, digest, &n);
}

guint
pto_digest_hash (gconstpointer key)
{
  guint hash;

  memcpy (&hash, key, sizeof hash);
  return hash;
}

gboolean
pto_digest_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, PTO_DIGEST_SIZE) == 0;
}
