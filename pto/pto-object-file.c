/* pto-object-file.c: is a file a shared object for this machine?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-object-file-private.h"

#include "pto-error-private.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gboolean
read_at (int fd, gpointer data, gsize size, guint64 offset)
{
  gssize n;

  do
    n = pread (fd, data, size, (off_t) offset);
  while (n < 0 && errno == EINTR);
  return n >= 0 && (gsize) n == size;
}

static gboolean
read_elf_header (int fd, ElfW (Ehdr) * header)
{
  return read_at (fd, header, sizeof *header, 0) && memcmp (header->e_ident, ELFMAG, SELFMAG) == 0;
}

/* All that is to be mapped lies within the file: behind its end there is a fault. */
static gboolean
is_whole (int fd, const ElfW (Ehdr) * header)
{
  struct stat status;
  guint64 size;

  if (fstat (fd, &status) != 0 || header->e_phentsize != sizeof (ElfW (Phdr)))
    return FALSE;
  size = (guint64) status.st_size;
  for (guint i = 0; i < header->e_phnum; i++)
    {
      ElfW (Phdr) part;

      if (!read_at (fd, &part, sizeof part, header->e_phoff + i * sizeof part))
        return FALSE;
      if (part.p_type == PT_LOAD && (part.p_filesz > size || part.p_offset > size - part.p_filesz))
        return FALSE;
    }
  return TRUE;
}

/* e_type and e_machine lie at the same place in both word sizes. */
static const char *
find_flaw (int fd)
{
  ElfW (Ehdr) own = { 0 };
  ElfW (Ehdr) header = { 0 };
  int own_fd;
  gboolean has_own;

  if (!read_elf_header (fd, &header))
    return "it is no ELF file";
  if (header.e_type != ET_DYN)
    return "it is an ELF file, but no shared object";
  own_fd = g_open ("/proc/self/exe", O_RDONLY | O_CLOEXEC, 0);
  has_own = own_fd >= 0 && read_elf_header (own_fd, &own);
  if (own_fd >= 0)
    close (own_fd);
  if (has_own
      && (own.e_machine != header.e_machine || own.e_ident[EI_CLASS] != header.e_ident[EI_CLASS]
          || own.e_ident[EI_DATA] != header.e_ident[EI_DATA]))
    return "it was built for another machine";
  return is_whole (fd, &header) ? NULL : "it is cut off";
}

gboolean
pto_object_file_check (const char *path, GError **error)
{
  int fd = g_open (path, O_RDONLY | O_CLOEXEC, 0);
  const char *flaw = fd >= 0 ? find_flaw (fd) : g_strerror (errno);

  if (fd >= 0)
    close (fd);
  if (flaw == NULL)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD,
               "%s: not a shared object that can be loaded here: %s", path, flaw);
  return FALSE;
}
