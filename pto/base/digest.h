/* digest.h: by what are contents known?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The SHA-256 of them. Thread safety: any thread.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define PTO_DIGEST_SIZE 32

void pto_digest_data (gconstpointer data, gsize size, guint8 *digest);
/* 64 hexadecimal digits and a 0. */
void pto_digest_to_string (const guint8 *digest, char *text);
/* For hash tables whose keys are digests. */
guint pto_digest_hash (gconstpointer key);
gboolean pto_digest_equal (gconstpointer a, gconstpointer b);

G_END_DECLS
