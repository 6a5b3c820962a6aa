/* object-file.c: is a file a shared object for this machine, and of what?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "object-file.h"

#include "base/error.h"
#include "common/text.h"

#include <dlfcn.h>
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
find_flaw (int fd, int *code)
{
  ElfW (Ehdr) own = { 0 };
  ElfW (Ehdr) header = { 0 };
  int own_fd;
  gboolean has_own;

  errno = 0;
  if (!read_elf_header (fd, &header))
    {
      *code = errno;
      return _ ("it is no ELF file");
    }
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
  int code = 0; /* of a read that failed */
  const char *flaw = fd >= 0 ? find_flaw (fd, &code) : g_strerror (errno);

  if (fd >= 0)
    close (fd);
  if (flaw == NULL)
    return TRUE;
  if (code != 0)
    g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM, "%s: %s: %s", path, "pread",
                 g_strerror (code));
  else
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

/* A table of sections of one type, with the texts that it names. */
typedef struct
{
  gconstpointer items;
  gsize bytes;
  const char *strings;
  gsize n_strings;
} Table;

/* Calls visit for each table of the type until it gives TRUE. FALSE: it never did. */
static gboolean
visit_tables (const char *data, gsize size, guint type,
              gboolean (*visit) (const Table *table, gpointer user_data), gpointer user_data)
{
  const ElfW (Ehdr) *header = find_part (data, size, 0, sizeof *header);
  const ElfW (Shdr) *sections
      = header != NULL && header->e_shentsize == sizeof *sections
            ? find_part (data, size, header->e_shoff, header->e_shnum * sizeof *sections)
            : NULL;

  for (guint i = 0; sections != NULL && i < header->e_shnum; i++)
    {
      const ElfW (Shdr) *section = &sections[i];
      const ElfW (Shdr) * strings;
      Table table;

      if (section->sh_type != type || section->sh_link >= header->e_shnum)
        continue;
      strings = &sections[section->sh_link];
      table
          = (Table){ find_part (data, size, section->sh_offset, section->sh_size), section->sh_size,
                     find_part (data, size, strings->sh_offset, strings->sh_size),
                     strings->sh_size };
      if (table.items != NULL && table.strings != NULL && visit (&table, user_data))
        return TRUE;
    }
  return FALSE;
}

/* NULL: it does not lie within the table. */
static const char *
get_text (const Table *table, gsize offset)
{
  return offset < table->n_strings
                 && memchr (table->strings + offset, '\0', table->n_strings - offset) != NULL
             ? table->strings + offset
             : NULL;
}

typedef struct
{
  const char *symbol;
  gboolean is_defined; /* wanted: here, or in another object */
  gboolean has_tables;
} Search;

static gboolean
has_symbol (const Table *table, gpointer data)
{
  const ElfW (Sym) *symbols = table->items;
  Search *search = data;

  search->has_tables = TRUE;
  for (gsize i = 0; i < table->bytes / sizeof *symbols; i++)
    if ((symbols[i].st_shndx != SHN_UNDEF) == search->is_defined
        && g_strcmp0 (get_text (table, symbols[i].st_name), search->symbol) == 0)
      return TRUE;
  return FALSE;
}

gboolean
pto_object_file_exports (const char *path, const char *symbol)
{
  Search search = { symbol, TRUE, FALSE };
  g_autofree char *data = NULL;
  gsize size;

  return !g_file_get_contents (path, &data, &size, NULL)
         || visit_tables (data, size, SHT_DYNSYM, has_symbol, &search) || !search.has_tables;
}

static gboolean
has_import (const Table *table, gpointer data)
{
  gboolean (*const *is_one) (const char *) = data;
  const ElfW (Sym) *symbols = table->items;

  for (gsize i = 1; i < table->bytes / sizeof *symbols; i++)
    {
      const char *name = get_text (table, symbols[i].st_name);
      guint type = symbols[i].st_info & 0xf;

      if (symbols[i].st_shndx == SHN_UNDEF && type != STT_OBJECT && type != STT_TLS && name != NULL
          && (*is_one) (name))
        return TRUE;
    }
  return FALSE;
}

gboolean
pto_object_file_imports (const char *data, gsize size, gboolean (*is_one) (const char *function))
{
  return visit_tables (data, size, SHT_DYNSYM, has_import, &is_one);
}

/* --- sanitizers --- */

/* Runtimes that must be in a program from its beginning: two of them end it when they are loaded
 * later. */
static const struct
{
  const char *flag;
  const char *library; /* how the file of GCC's begins */
  const char *symbol;  /* that objects take from it; NULL: none */
  const char *options; /* NULL: it does not work in a program that has fibers */
} sanitizers[] = {
  { "address", "libasan.so", "__asan_init", "ASAN_OPTIONS" },
  { "leak", "liblsan.so", NULL, "LSAN_OPTIONS" },
  { "thread", "libtsan.so", "__tsan_init", NULL },
  { "memory", "libmsan.so", "__msan_init", NULL },
  { "hwaddress", "libhwasan.so", "__hwasan_init", NULL },
};

typedef struct
{
  const char *library; /* how its name begins */
  const char *found;
} Need;

static gboolean
is_needed (const Table *table, gpointer data)
{
  const ElfW (Dyn) *entries = table->items;
  Need *need = data;

  for (gsize i = 0; i < table->bytes / sizeof *entries && entries[i].d_tag != DT_NULL; i++)
    {
      const char *name
          = entries[i].d_tag == DT_NEEDED ? get_text (table, entries[i].d_un.d_val) : NULL;

      if (name == NULL || !g_str_has_prefix (name, need->library))
        continue;
      need->found = name;
      return TRUE;
    }
  return FALSE;
}

static gboolean
is_loaded (const char *library)
{
  gpointer handle = dlopen (library, RTLD_LAZY | RTLD_NOLOAD);

  if (handle != NULL)
    dlclose (handle);
  return handle != NULL;
}

char *
pto_object_file_explain_sanitizer (const char *data, gsize size)
{
  for (guint i = 0; i < G_N_ELEMENTS (sanitizers); i++)
    {
      const char *flag = sanitizers[i].flag;
      Search search = { sanitizers[i].symbol, FALSE, FALSE };
      Need need = { sanitizers[i].library, NULL };
      gboolean takes
          = search.symbol != NULL && visit_tables (data, size, SHT_DYNSYM, has_symbol, &search);

      /* clang names no library. */
      if (visit_tables (data, size, SHT_DYNAMIC, is_needed, &need) ? is_loaded (need.found)
          : takes ? dlsym (RTLD_DEFAULT, search.symbol) != NULL
                  : TRUE)
        continue;
      if (sanitizers[i].options == NULL)
        return g_strdup_printf (
            _ ("it was built with -fsanitize=%s, whose runtime does not work in "
               "this program: build it without"),
            flag);
      return g_strdup_printf (
          _ ("it was built with -fsanitize=%s, whose runtime must be in the program from its "
             "beginning: start the program with %s=detect_leaks=0 LD_PRELOAD=%s, or build it "
             "without"),
          flag, sanitizers[i].options,
          need.found != NULL ? need.found : "$(clang -print-file-name=libclang_rt.asan.so)");
    }
  return NULL;
}
