/* cluster-paths.c: by what is the process found that keeps a cluster?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A socket and a lock, where those of one login lie, and a log, where it outlives that. Whoever
 * could put something there could be asked in the keeper's place: so both directories are this
 * user's, and nobody else may write there or look in.
 */
#include "config.h"

#include "cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The same for all names of a file; of one that is gone as far as there is something. */
static char *
dup_real_path (const char *file)
{
  g_autofree char *real = realpath (file, NULL);
  g_autofree char *directory = g_path_get_dirname (file);
  g_autofree char *base = g_path_get_basename (file);
  g_autofree char *above = real == NULL ? realpath (directory, NULL) : NULL;

  if (real != NULL)
    return g_strdup (real);
  return above != NULL ? g_build_filename (above, base, NULL)
                       : g_canonicalize_filename (file, NULL);
}

static char *
make_directory (const char *above, GError **error)
{
  g_autofree char *path = g_build_filename (above, "pto-cluster", NULL);
  struct stat found;

  if (g_mkdir_with_parents (path, 0700) != 0 || lstat (path, &found) != 0)
    tool_fail (error, _ ("%s: can not be made: %s"), path, g_strerror (errno));
  else if (!S_ISDIR (found.st_mode))
    tool_fail (error, _ ("%s: this has to be a directory, and no link to one"), path);
  else if (found.st_uid != geteuid ())
    tool_fail (error, _ ("%s: this is the directory of user %u, and not of user %u"), path,
               found.st_uid, geteuid ());
  else if ((found.st_mode & 077) != 0)
    tool_fail (error, _ ("%s: others may look in (mode %03o): chmod 700"), path,
               found.st_mode & 0777);
  else
    return g_steal_pointer (&path);
  return NULL;
}

static char *
dup_path (const char *directory, const char *name, const char *suffix)
{
  g_autofree char *whole = g_strjoin (".", name, suffix, NULL);

  return g_build_filename (directory, whole, NULL);
}

gboolean
cluster_paths_init (ClusterPaths *paths, const char *file, GError **error)
{
  g_autofree char *real = dup_real_path (file);
  g_autofree char *digest = g_compute_checksum_for_string (G_CHECKSUM_SHA256, real, -1);
  g_autofree char *running = make_directory (g_get_user_runtime_dir (), error);
  g_autofree char *kept = running != NULL ? make_directory (g_get_user_state_dir (), error) : NULL;

  if (kept == NULL)
    return FALSE;
  digest[16] = '\0';
  paths->file = g_strdup (file);
  paths->real = g_strdup (real);
  paths->log = dup_path (kept, digest, "log");
  paths->lock = dup_path (running, digest, "lock");
  paths->socket = dup_path (running, digest, "socket");
  if (strlen (paths->socket) < sizeof ((struct sockaddr_un *) NULL)->sun_path)
    return TRUE;
  return tool_fail (
      error,
      _ ("%s is too long for the name of a socket: XDG_RUNTIME_DIR has to be a shorter "
         "one"),
      paths->socket);
}

void
cluster_paths_clear (ClusterPaths *paths)
{
  g_free (paths->file);
  g_free (paths->real);
  g_free (paths->log);
  g_free (paths->socket);
  g_free (paths->lock);
}

int
cluster_open_log (const ClusterPaths *paths, GError **error)
{
  int fd = open (paths->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

  if (fd < 0)
    tool_fail (error, "%s: %s", paths->log,
               errno == ELOOP ? _ ("it is a link") : g_strerror (errno));
  return fd;
}

/* Is it still what others would open? Whoever has released it took its name away. */
static gboolean
is_named (int fd, const char *path)
{
  struct stat held, named;

  return fstat (fd, &held) == 0 && lstat (path, &named) == 0 && held.st_dev == named.st_dev
         && held.st_ino == named.st_ino;
}

int
cluster_take_lock (const ClusterPaths *paths, GError **error)
{
  for (;;)
    {
      int fd = open (paths->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
      gboolean is_held = fd >= 0 && flock (fd, LOCK_EX | LOCK_NB) != 0;

      if (fd >= 0 && !is_held && is_named (fd, paths->lock))
        return fd;
      if (is_held)
        tool_fail (error, _ ("%s is up already, or comes up"), paths->file);
      else if (fd < 0)
        tool_fail (error, "%s: %s", paths->lock,
                   errno == ELOOP ? _ ("it is a link") : g_strerror (errno));
      if (fd >= 0)
        close (fd);
      if (is_held || fd < 0)
        return -1;
    }
}

void
cluster_release_lock (const ClusterPaths *paths, int lock)
{
  unlink (paths->socket);
  unlink (paths->lock);
  close (lock);
}
