/* pto-object-file.c: is a file a shared object for this machine, and of what?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-object-file-private.h"

#include "pto-error-private.h"
#include "pto-text-private.h"

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
    return _ ("it is no ELF file");
  if (header.e_type != ET_DYN)
    return _ ("it is an ELF file, but no shared object");
  own_fd = g_open ("/proc/self/exe", O_RDONLY | O_CLOEXEC, 0);
  has_own = own_fd >= 0 && read_elf_header (own_fd, &own);
  if (own_fd >= 0)
    close (own_fd);
  if (has_own
      && (own.e_machine != header.e_machine || own.e_ident[EI_CLASS] != header.e_ident[EI_CLASS]
          || own.e_ident[EI_DATA] != header.e_ident[EI_DATA]))
    return _ ("it was built for another machine");
  return is_whole (fd, &header) ? NULL : _ ("it is cut off");
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
               _ ("%s: not a shared object that can be loaded here: %s"), path, flaw);
  return FALSE;
}

/* A part of the file, or NULL. */
static gconstpointer
find_part (const char *data, gsize size, guint64 offset, guint64 bytes)
{
  return bytes <= size && offset <= size - bytes ? data + offset : NULL;
}

static gboolean
names (const ElfW (Sym) * symbols, gsize n_symbols, const char *strings, gsize n_strings,
       const char *symbol)
{
  gsize length = strlen (symbol) + 1;

  for (gsize i = 0; i < n_symbols; i++)
    if (symbols[i].st_shndx != SHN_UNDEF && symbols[i].st_name < n_strings
        && length <= n_strings - symbols[i].st_name
        && memcmp (strings + symbols[i].st_name, symbol, length) == 0)
      return TRUE;
  return FALSE;
}

gboolean
pto_object_file_exports (const char *path, const char *symbol)
{
  g_autofree char *data = NULL;
  const ElfW (Ehdr) * header;
  const ElfW (Shdr) * sections;
  gboolean has_tables = FALSE;
  gboolean found = FALSE;
  gsize size;

  if (!g_file_get_contents (path, &data, &size, NULL))
    return TRUE;
  header = find_part (data, size, 0, sizeof *header);
  sections = header != NULL && header->e_shentsize == sizeof *sections
                 ? find_part (data, size, header->e_shoff, header->e_shnum * sizeof *sections)
                 : NULL;
  for (guint i = 0; sections != NULL && i < header->e_shnum && !found; i++)
    {
      const ElfW (Shdr) *table = &sections[i];
      const ElfW (Shdr) * strings;
      const ElfW (Sym) * symbols;
      const char *text;

      if (table->sh_type != SHT_DYNSYM || table->sh_link >= header->e_shnum)
        continue;
      strings = &sections[table->sh_link];
      symbols = find_part (data, size, table->sh_offset, table->sh_size);
      text = find_part (data, size, strings->sh_offset, strings->sh_size);
      if (symbols == NULL || text == NULL)
        continue;
      has_tables = TRUE;
      found = names (symbols, table->sh_size / sizeof *symbols, text, strings->sh_size, symbol);
    }
  return found || !has_tables;
}
