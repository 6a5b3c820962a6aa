/* save-file.c: how does a file get there as a whole or not at all?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "save-file.h"

#include "exec/quiet-write.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file behind a symbolic link, so that saving replaces the file, not the link. */
static char *
resolve (const char *path)
{
  char *real = realpath (path, NULL);
  char *copy = g_strdup (real != NULL ? real : path);

  free (real);
  return copy;
}

static gboolean
fail (const char *path, int code, GError **error)
{
  g_autofree char *name = g_filename_display_name (path);

  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (code), _ ("%s: can not be written: %s"),
               name, g_strerror (code));
  return FALSE;
}

static gboolean
check (const char *path, const char *target, const GStatBuf *status, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (target);
  g_autofree char *name = g_filename_display_name (path);
  g_autofree char *place = g_filename_display_name (directory);

  if (status != NULL && S_ISDIR (status->st_mode))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_IS_DIRECTORY,
                 _ ("%s: can not be written: it is a directory"), name);
  else if (!g_file_test (directory, G_FILE_TEST_IS_DIR))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                 _ ("%s: can not be written: there is no directory %s"), name, place);
  else if (status != NULL && !S_ISREG (status->st_mode))
    return g_access (target, W_OK) == 0 || fail (path, errno, error);
  else if (g_access (directory, W_OK | X_OK) != 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
                 _ ("%s: can not be written: no permission to make files in %s"), name, place);
  else
    return TRUE;
  return FALSE;
}

/* 0, or why not. */
static int
write_all (int fd, const char *data, gsize length)
{
  while (length > 0)
    {
      gssize n = write (fd, data, length);

      if (n < 0 && errno != EINTR)
        return errno;
      if (n > 0)
        {
          data += n;
          length -= (gsize) n;
        }
    }
  return 0;
}

static int
write_into (const char *target, const char *data, gsize length)
{
  int fd = g_open (target, O_WRONLY | O_CLOEXEC, 0);
  int code = fd >= 0 ? write_all (fd, data, length) : errno;

  if (fd >= 0 && close (fd) != 0 && code == 0)
    code = errno;
  return code;
}

/* fsync() and close(): some file systems say only then that there is no room. */
static int
replace (const char *target, const char *data, gsize length, int mode, gboolean exists)
{
  g_autofree char *temporary = g_strconcat (target, ".XXXXXX", NULL);
  int fd = g_mkstemp_full (temporary, O_WRONLY | O_CLOEXEC, mode);
  int code = fd >= 0 ? write_all (fd, data, length) : errno;

  if (fd < 0)
    return code;
  if (code == 0 && ((exists && fchmod (fd, (mode_t) mode) != 0) || fsync (fd) != 0))
    code = errno;
  if (close (fd) != 0 && code == 0)
    code = errno;
  if (code == 0 && g_rename (temporary, target) != 0)
    code = errno;
  if (code != 0)
    g_unlink (temporary);
  return code;
}

const char *
pto_save_explain_read (const GError *error)
{
  static const int codes[] = { ENOENT,       EISDIR, EACCES, EPERM, ENOTDIR, ELOOP,
                               ENAMETOOLONG, EMFILE, ENFILE, EIO,   ENOMEM };

  for (gsize i = 0; error->domain == G_FILE_ERROR && i < G_N_ELEMENTS (codes); i++)
    if (error->code == (int) g_file_error_from_errno (codes[i]))
      return g_strerror (codes[i]);
  return error->message;
}

gboolean
pto_save_check (const char *path, GError **error)
{
  g_autofree char *target = resolve (path);
  GStatBuf status;
  gboolean exists = g_stat (target, &status) == 0;

  return check (path, target, exists ? &status : NULL, error);
}

gboolean
pto_save (const char *path, const char *data, gsize length, int mode, GError **error)
{
  g_autofree char *target = resolve (path);
  GStatBuf status;
  gboolean exists = g_stat (target, &status) == 0;
  struct pto_quiet quiet;
  int code;

  if (!check (path, target, exists ? &status : NULL, error))
    return FALSE;
  pto_quiet_begin (&quiet);
  if (exists && !S_ISREG (status.st_mode))
    code = write_into (target, data, length);
  else
    code = replace (target, data, length, exists ? (int) (status.st_mode & 0777) : mode, exists);
  pto_quiet_end (&quiet);
  return code == 0 || fail (path, code, error);
}
