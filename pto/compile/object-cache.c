/* object-cache.c: where are shared objects kept, and how is what was kept trusted again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "object-cache.h"

#include "base/error.h"
#include "base/locks.h"
#include "base/log.h"
#include "common/save-file.h"
#include "common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the directory --- */

static gboolean
is_trusted_owner (const struct stat *status)
{
  return status->st_uid == geteuid () || status->st_uid == 0;
}

/* Of the directory itself only its owner may write. Where it lies somebody else may add files
 * (in /tmp), but not rename it; its owner's group is often the owner alone. */
static gboolean
check_dir (const char *dir, const char *asked_for, gboolean is_above, GError **error)
{
  struct stat status;

  if (stat (dir, &status) != 0)
    g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, "%s: %s", dir, g_strerror (errno));
  else if (!is_trusted_owner (&status))
    g_set_error (
        error, PTO_ERROR, PTO_ERROR_SYSTEM,
        _ ("%s: the cache of kernels is not used, since %s belongs to somebody else (user "
           "%u), who could replace what is run from there: name a directory of your own in "
           "XDG_CACHE_HOME"),
        asked_for, dir, (guint) status.st_uid);
  else if ((status.st_mode & S_IWOTH) != 0 ? !is_above || (status.st_mode & S_ISVTX) == 0
                                           : !is_above && (status.st_mode & S_IWGRP) != 0)
    g_set_error (
        error, PTO_ERROR, PTO_ERROR_SYSTEM,
        _ ("%s: the cache of kernels is not used, since others may write to %s and replace "
           "what is run from there: chmod go-w it, or name a directory of your own in "
           "XDG_CACHE_HOME"),
        asked_for, dir);
  else
    return TRUE;
  return FALSE;
}

/* --- the directory of a process that can write to no other --- */

/* Under PTO_LOCK_CACHE. Copies of a fork use that of the process that made it. */
static char *private_dir;
static pid_t private_owner;

static int
remove_one (const char *path, const struct stat *status, int type, struct FTW *walk)
{
  (void) status;
  (void) type;
  (void) walk;
  remove (path);
  return 0;
}

/* At the end of the process: what is loaded from there stays loaded. */
static void
remove_private (void)
{
  if (private_dir != NULL && private_owner == getpid ())
    nftw (private_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static char *
dup_private (void)
{
  char *dir;

  pto_lock (PTO_LOCK_CACHE);
  dir = g_strdup (private_dir);
  pto_unlock (PTO_LOCK_CACHE);
  return dir;
}

/* why: an errno. */
static char *
make_private (const char *asked_for, int why, GError **error)
{
  g_autofree char *made = g_build_filename (g_get_tmp_dir (), "libpto-XXXXXX", NULL);
  char *dir;
  gboolean is_new = FALSE;
  int failure = 0;

  pto_lock (PTO_LOCK_CACHE);
  if (private_dir == NULL && g_mkdtemp_full (made, 0700) == NULL)
    failure = errno;
  else if (private_dir == NULL)
    {
      private_dir = g_strdup (made);
      private_owner = getpid ();
      is_new = TRUE;
    }
  dir = g_strdup (private_dir);
  pto_unlock (PTO_LOCK_CACHE);
  if (is_new && atexit (remove_private) != 0)
    pto_log (G_LOG_LEVEL_WARNING, _ ("%s stays when this process has ended"), dir);
  if (is_new)
    pto_log (G_LOG_LEVEL_WARNING,
             _ ("%s can not be written: %s: what is built is kept in %s and removed when this "
                "process ends; name a directory of your own in XDG_CACHE_HOME"),
             asked_for, g_strerror (why), dir);
  if (dir == NULL)
    g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM,
                 _ ("%s can not be written: %s; nor can a directory be made in %s: %s: name a "
                    "directory of your own in XDG_CACHE_HOME, or another one in TMPDIR"),
                 asked_for, g_strerror (why), g_get_tmp_dir (), g_strerror (failure));
  return dir;
}

char *
pto_cache_dup_dir (GError **error)
{
  g_autofree char *dir = g_build_filename (g_get_user_cache_dir (), "libpto", NULL);
  g_autofree char *real = NULL;
  g_autofree char *above = NULL;

  if (g_mkdir_with_parents (dir, 0700) == 0)
    real = realpath (dir, NULL);
  if (real == NULL)
    return make_private (dir, errno, error);
  above = g_path_get_dirname (real);
  if (!check_dir (real, dir, FALSE, error) || !check_dir (above, dir, TRUE, error))
    return NULL;
  return g_steal_pointer (&real);
}

/* --- files --- */

/* A file that only its owner could have written, and who that is. */
static gboolean
read_trusted (const char *path, GByteArray *data)
{
  int fd = g_open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
  struct stat status;
  guint8 bytes[16384];
  gssize n = -1;

  if (fd < 0)
    return FALSE;
  if (fstat (fd, &status) == 0 && S_ISREG (status.st_mode) && is_trusted_owner (&status)
      && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
    do
      {
        n = read (fd, bytes, sizeof bytes);
        if (n > 0)
          g_byte_array_append (data, bytes, (guint) n);
      }
    while (n > 0 || (n < 0 && errno == EINTR));
  close (fd);
  return n == 0;
}

char *
pto_cache_make_scratch (const char *dir, GError **error)
{
  char *scratch = g_build_filename (dir, "building-XXXXXX", NULL);
  g_autofree char *other = NULL;
  int why;

  if (g_mkdtemp_full (scratch, 0700) != NULL)
    return scratch;
  why = errno;
  g_free (scratch);
  other = make_private (dir, why, error);
  if (other == NULL)
    return NULL;
  scratch = g_build_filename (other, "building-XXXXXX", NULL);
  if (g_mkdtemp_full (scratch, 0700) != NULL)
    return scratch;
  g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, _ ("%s: can not be written: %s"), other,
               g_strerror (errno));
  g_free (scratch);
  return NULL;
}

/* What is there is replaced in one step, since another process may have just put it there; but
 * neither its permissions nor a link stay. */
static gboolean
write_file (const char *path, gconstpointer data, gsize size, GError **error)
{
  g_autoptr (GError) local = NULL;
  struct stat status;

  if (lstat (path, &status) == 0
      && (!S_ISREG (status.st_mode) || !is_trusted_owner (&status) || g_chmod (path, 0600) != 0))
    g_unlink (path);
  if (pto_save (path, data, size, 0600, &local))
    return TRUE;
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_SYSTEM, local->message);
  return FALSE;
}

/* --- objects and keys --- */

static char *
make_object_path (const char *dir, const char *digest)
{
  g_autofree char *name = g_strconcat (digest, ".so", NULL);

  return g_build_filename (dir, name, NULL);
}

static char *
make_key_path (const char *dir, const char *key)
{
  g_autofree char *name = g_strconcat (key, ".key", NULL);

  return g_build_filename (dir, name, NULL);
}

/* name: the digest that its contents must have. */
static gboolean
find_object (const char *dir, const char *name, char **object, guint8 *digest)
{
  g_autofree char *path = make_object_path (dir, name);
  g_autoptr (GByteArray) data = g_byte_array_new ();
  char found[2 * PTO_DIGEST_SIZE + 1];

  if (!read_trusted (path, data))
    return FALSE;
  pto_digest_data (data->data, data->len, digest);
  pto_digest_to_string (digest, found);
  if (strcmp (found, name) != 0)
    return FALSE;
  *object = g_steal_pointer (&path);
  return TRUE;
}

static gboolean
find (const char *dir, const char *key, char **object, guint8 *digest)
{
  g_autofree char *path = make_key_path (dir, key);
  g_autoptr (GByteArray) data = g_byte_array_new ();
  char name[2 * PTO_DIGEST_SIZE + 1];

  if (!read_trusted (path, data) || data->len != sizeof name - 1)
    return FALSE;
  memcpy (name, data->data, sizeof name - 1);
  name[sizeof name - 1] = '\0';
  return strspn (name, "0123456789abcdef") == sizeof name - 1
         && find_object (dir, name, object, digest);
}

gboolean
pto_cache_find (const char *dir, const char *key, char **object, guint8 *digest)
{
  g_autofree char *other = dup_private ();

  return find (dir, key, object, digest) || (other != NULL && find (other, key, object, digest));
}

gboolean
pto_cache_find_contents (const char *dir, const guint8 *digest, char **object)
{
  g_autofree char *other = dup_private ();
  char name[2 * PTO_DIGEST_SIZE + 1];
  guint8 found[PTO_DIGEST_SIZE];

  pto_digest_to_string (digest, name);
  return find_object (dir, name, object, found)
         || (other != NULL && find_object (other, name, object, found));
}

static gboolean
add (const char *dir, const char *key, gconstpointer data, gsize size, char **object,
     guint8 *digest, GError **error)
{
  char name[2 * PTO_DIGEST_SIZE + 1];
  guint8 found[PTO_DIGEST_SIZE];

  pto_digest_data (data, size, digest);
  pto_digest_to_string (digest, name);
  if (!find_object (dir, name, object, found))
    {
      g_autofree char *path = make_object_path (dir, name);

      if (!write_file (path, data, size, error))
        return FALSE;
      *object = g_steal_pointer (&path);
    }
  if (key != NULL)
    {
      g_autofree char *path = make_key_path (dir, key);

      if (!write_file (path, name, sizeof name - 1, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
pto_cache_add (const char *dir, const char *key, gconstpointer data, gsize size, char **object,
               guint8 *digest, GError **error)
{
  g_autofree char *other = NULL;
  g_autoptr (GError) local = NULL;

  if (add (dir, key, data, size, object, digest, &local))
    return TRUE;
  g_clear_pointer (object, g_free);
  /* Its contents are known: the system says why it is not written. */
  if (access (dir, W_OK | X_OK) == 0)
    {
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
  other = make_private (dir, errno, error);
  return other != NULL && add (other, key, data, size, object, digest, error);
}

/* --- manifests --- */

static char *
make_manifest_path (const char *dir, const char *name)
{
  g_autofree char *file = g_strconcat (name, ".manifest", NULL);

  return g_build_filename (dir, file, NULL);
}

char *
pto_cache_find_manifest (const char *dir, const char *name)
{
  g_autofree char *path = make_manifest_path (dir, name);
  g_autoptr (GByteArray) data = g_byte_array_new ();

  if (!read_trusted (path, data))
    return NULL;
  return g_strndup ((const char *) data->data, data->len);
}

void
pto_cache_add_manifest (const char *dir, const char *name, const char *text)
{
  g_autofree char *path = make_manifest_path (dir, name);

  write_file (path, text, strlen (text), NULL);
}
