/* object-cache.h: where are shared objects kept, and how is what was kept trusted again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Objects lie in the user's cache directory, each named by the SHA-256 of its contents. A key, the
 * digest of all that an object is made from, is a file beside them that says the name of the
 * object. Files are written under another name and renamed: half of one is never seen, and several
 * processes can write the same. What is found is believed only when nobody but its owner could have
 * written it and its contents hash to its name; otherwise it is as if it was not there.
 *
 * Thread safety: any thread.
 */
#pragma once

#include "base/digest.h"
#include "pto-types.h"

G_BEGIN_DECLS

/* The directory, made if it is not there. Refuses one that others may write to, or put another in
 * the place of: PTO_ERROR_SYSTEM. Where it cannot be written, a directory of this process alone
 * takes what is added, is looked into as well, and is removed when the process ends. */
char *pto_cache_dup_dir (GError **error);
/* Makes a directory in it for what is being built. The caller removes it. */
char *pto_cache_make_scratch (const char *dir, GError **error);
/* The object that was kept for a key (of hexadecimal digits). FALSE: there is none. */
gboolean pto_cache_find (const char *dir, const char *key, char **object, guint8 *digest);
/* The object with these contents. FALSE: there is none. */
gboolean pto_cache_find_contents (const char *dir, const guint8 *digest, char **object);
/* Keeps an object for a key; NULL: it will be looked for by its contents. */
gboolean pto_cache_add (const char *dir, const char *key, gconstpointer data, gsize size,
                        char **object, guint8 *digest, GError **error);
/* A text that was kept under a name (of hexadecimal digits). NULL: there is none. */
char *pto_cache_find_manifest (const char *dir, const char *name);
/* Keeps it if it can: without it something takes longer. */
void pto_cache_add_manifest (const char *dir, const char *name, const char *text);

G_END_DECLS
