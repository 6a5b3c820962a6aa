/* loaded-object.c: how does a shared object get into this process, and is it the right one?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The loader takes a path, and knows what it has loaded by that path. The path of a private copy is
 * that of a descriptor, which stays open as long as the object has a user, so that a debugger finds
 * the object by it. No two paths are spelled alike: a number may come back, the object stays.
 *
 * An object is never unloaded. Its threads (OpenMP keeps them), its thread-specific data with their
 * destructors and its handlers may live longer than the last worker that uses it.
 */
#include "config.h"

#include "loaded-object.h"

#include "sim/check-connect.h"

#include "exec/libc-hooks.h"

#include "base/error.h"
#include "base/locks.h"
#include "common/save-file.h"
#include "common/text.h"
#include "hidden-stores.h"
#include "object-file.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct _PtoModule
{
  guint8 digest[PTO_DIGEST_SIZE];
  guint users; /* PTO_LOCK_MODULES */
  gboolean hides_stores;
  gboolean talks;
  gpointer handle;
  char *path; /* of fd */
  int fd;     /* -1: it is closed. PTO_LOCK_MODULES */
  /* The file behind fd: somebody may have closed what is not theirs, and opened another. */
  dev_t device;
  ino_t inode;
};

static GPtrArray *modules; /* PtoModule, all that were loaded; PTO_LOCK_MODULES */

/* --- what was built --- */

static gboolean
write_all (int fd, const char *data, gsize size)
{
  while (size > 0)
    {
      gssize n = write (fd, data, size);

      if (n < 0 && errno != EINTR)
        return FALSE;
      if (n > 0)
        {
          data += n;
          size -= (gsize) n;
        }
    }
  return TRUE;
}

/* Returns a descriptor of a file without a name that cannot be changed; -1: errno, of that call. */
static int
make_copy (gconstpointer data, gsize size, const char **call)
{
  struct rlimit limit;
  int fd = -1;
  int saved;

  *call = "memfd_create";
  /* Otherwise it would be told by a signal. */
  if (getrlimit (RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size)
    errno = EFBIG;
  else
    fd = memfd_create ("libpto-object", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return -1;
  *call = "write";
  if (write_all (fd, data, size))
    {
      *call = "fcntl";
      if (fcntl (fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
        {
          *call = "fstat";
          return fd;
        }
    }
  saved = errno;
  close (fd);
  errno = saved;
  return -1;
}

/* As debuggers have to write it, too. This process may have another number where /proc is. The
 * loader compares paths as they are written: behind the directory each path has a number of its
 * own, in base 2, "./" for 1 and "/" for 0. The first one has none. */
static char *
dup_path_of (int fd)
{
  static guint n_paths; /* atomic */
  guint number = (guint) g_atomic_int_add (&n_paths, 1);
  g_autofree char *self = g_file_read_link ("/proc/self", NULL);
  GString *path = g_string_new ("/proc/");

  g_string_append_printf (path, "%s/fd/", self != NULL ? self : "self");
  for (guint bit = g_bit_storage (number); number != 0 && bit-- > 0;)
    g_string_append (path, (number >> bit & 1) != 0 ? "./" : "/");
  g_string_append_printf (path, "%d", fd);
  return g_string_free (path, FALSE);
}

/* With the lock. */
static PtoModule *
find_loaded (const guint8 *digest)
{
  for (guint i = 0; modules != NULL && i < modules->len; i++)
    {
      PtoModule *module = g_ptr_array_index (modules, i);

      if (memcmp (module->digest, digest, PTO_DIGEST_SIZE) == 0)
        return module;
    }
  return NULL;
}

/* What was loaded has a user; another thread may have loaded the same: then that is used. */
static PtoModule *
use_loaded (const guint8 *digest, PtoModule *loaded)
{
  PtoModule *module;

  pto_lock (PTO_LOCK_MODULES);
  module = find_loaded (digest);
  if (module == NULL && loaded != NULL)
    {
      if (modules == NULL)
        modules = g_ptr_array_new ();
      g_ptr_array_add (modules, loaded);
      module = loaded;
    }
  if (module != NULL)
    module->users++;
  pto_unlock (PTO_LOCK_MODULES);
  return module;
}

static void
close_copy (PtoModule *module)
{
  struct stat status;

  if (module->fd >= 0 && fstat (module->fd, &status) == 0 && status.st_dev == module->device
      && status.st_ino == module->inode)
    close (module->fd);
  module->fd = -1;
}

static void
module_free (PtoModule *module)
{
  close_copy (module);
  g_free (module->path);
  g_free (module);
}

static void
set_refused (const PtoCompilerJob *job, const char *why, GError **error)
{
  g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, _ ("%s: %s: can not be loaded: %s"), job->label,
               job->path, why);
}

static gboolean
open_copy (PtoModule *module, const PtoCompilerJob *job, GError **error)
{
  g_autofree char *prefix = NULL;
  const char *why;

  module->path = dup_path_of (module->fd);
  module->handle = pto_foreign_load (module->path, RTLD_NOW | RTLD_LOCAL);
  if (module->handle != NULL)
    {
      gpointer table = dlsym (module->handle, PTO_MODULE_ACCESS_SYMBOL);

      if (table != NULL)
        pto_check_connect (table);
      module->hides_stores
          = module->hides_stores || dlsym (module->handle, PTO_HIDDEN_STORES_SYMBOL) != NULL;
      module->talks = module->talks || dlsym (module->handle, PTO_TALKS_SYMBOL) != NULL;
      pto_foreign_adopt (module->handle);
      return TRUE;
    }
  why = dlerror ();
  if (access (module->path, R_OK) != 0)
    why = _ ("/proc is not there, through which objects are loaded: mount it");
  /* The loader names the copy, which says nothing to the user. */
  prefix = g_strconcat (module->path, ": ", NULL);
  if (why != NULL && g_str_has_prefix (why, prefix))
    why += strlen (prefix);
  if (why != NULL && strstr (why, "__ubsan_") != NULL)
    why = _ ("it was built with -fsanitize=undefined by a compiler that links no runtime of it: "
             "build it with GCC, with -fsanitize-trap=undefined, or without");
  set_refused (job, why != NULL ? why : _ ("no reason given"), error);
  return FALSE;
}

static PtoModule *
load_bytes (const PtoCompilerJob *job, gconstpointer data, gsize size, GError **error)
{
  g_autofree char *refusal = pto_object_file_explain_sanitizer (data, size);
  PtoModule *module;
  PtoModule *used = NULL;
  const char *call;
  struct stat status;

  if (refusal != NULL)
    {
      set_refused (job, refusal, error);
      return NULL;
    }
  module = g_new0 (PtoModule, 1);
  memcpy (module->digest, job->digest, PTO_DIGEST_SIZE);
  module->hides_stores = pto_object_file_imports (data, size, pto_hidden_stores_may_come_from);
  module->talks = pto_object_file_imports (data, size, pto_hidden_stores_may_talk);
  module->fd = make_copy (data, size, &call);
  if (module->fd < 0 || fstat (module->fd, &status) != 0)
    g_set_error (error, PTO_ERROR, PTO_ERROR_SYSTEM,
                 _ ("%s: %s: no copy of it can be made in memory: %s: %s"), job->label, job->path,
                 call, g_strerror (errno));
  else
    {
      module->device = status.st_dev;
      module->inode = status.st_ino;
      /* One that another thread has loaded meanwhile is used, and this one stays as well: its
       * constructors have run. */
      if (open_copy (module, job, error))
        used = use_loaded (job->digest, module);
    }
  if (used != module)
    module_free (module);
  return used;
}

PtoModule *
pto_module_load (const PtoCompilerJob *job, GError **error)
{
  PtoModule *module = use_loaded (job->digest, NULL);
  g_autoptr (GError) local = NULL;
  g_autofree char *data = NULL;
  guint8 digest[PTO_DIGEST_SIZE];
  gsize size;

  if (module != NULL)
    return module;
  if (!g_file_get_contents (job->object, &data, &size, &local))
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND, _ ("%s: %s: can not be read: %s"),
                   job->label, job->object, pto_save_explain_read (local));
      return NULL;
    }
  pto_digest_data (data, size, digest);
  if (memcmp (digest, job->digest, PTO_DIGEST_SIZE) != 0)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_TAMPERED,
                   _ ("%s: %s has changed since it was built: register it again"), job->label,
                   job->object);
      return NULL;
    }
  return load_bytes (job, data, size, error);
}

void
pto_module_release (PtoModule *module)
{
  pto_lock (PTO_LOCK_MODULES);
  if (--module->users == 0)
    close_copy (module);
  pto_unlock (PTO_LOCK_MODULES);
}

guint
pto_module_count_loaded (void)
{
  guint n;

  pto_lock (PTO_LOCK_MODULES);
  n = modules != NULL ? modules->len : 0;
  pto_unlock (PTO_LOCK_MODULES);
  return n;
}

gpointer
pto_module_look_up (PtoModule *module, const char *symbol)
{
  return dlsym (module->handle, symbol);
}

gboolean
pto_module_hides_stores (PtoModule *module)
{
  return module->hides_stores;
}

gboolean
pto_module_talks (PtoModule *module)
{
  return module->talks;
}

gboolean
pto_module_needs_thread (PtoModule *module)
{
  return pto_foreign_has_thread_locals (module->handle)
         && !pto_foreign_keep_locals (module->handle);
}

void
pto_module_set_missing (const PtoCompilerJob *job, const char *symbol, const char *signature,
                        GError **error)
{
  g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD, _ ("%s: %s: exports no function %s %s%s"),
               job->label, job->path, symbol, signature,
               job->language == PTO_LANGUAGE_CXX ? _ (" (is extern \"C\" missing?)") : "");
}

gpointer
pto_module_find_symbol (PtoModule *module, const PtoCompilerJob *job, const char *symbol,
                        const char *signature, GError **error)
{
  gpointer address = pto_module_look_up (module, symbol);

  if (address == NULL)
    pto_module_set_missing (job, symbol, signature, error);
  return address;
}

/* --- libraries of the program --- */

typedef struct
{
  const struct link_map *map;
  const char *data; /* of the file */
  gsize size;
  gboolean differs;
} Comparison;

/* Not memcmp(): where objects are built with the address sanitizer it refuses to look between their
 * variables. */
__attribute__ ((no_sanitize ("address"))) static gboolean
is_equal (const char *a, const char *b, gsize size)
{
  gsize i = 0;

  while (i < size && a[i] == b[i])
    i++;
  return i == size;
}

/* Notes, symbols and constants, which can not have changed. */
static int
compare_image (struct dl_phdr_info *info, size_t size, void *data)
{
  Comparison *comparison = data;

  if (info->dlpi_addr != comparison->map->l_addr
      || strcmp (info->dlpi_name, comparison->map->l_name) != 0)
    return 0;
  for (guint i = 0; i < info->dlpi_phnum; i++)
    {
      const ElfW (Phdr) *part = &info->dlpi_phdr[i];

      /* A debugger writes into code. */
      if (part->p_type != PT_LOAD || (part->p_flags & (PF_W | PF_X)) != 0)
        continue;
      if (part->p_offset > comparison->size || part->p_filesz > comparison->size - part->p_offset
          || !is_equal ((const char *) info->dlpi_addr + part->p_vaddr,
                        comparison->data + part->p_offset, part->p_filesz))
        comparison->differs = TRUE;
    }
  return 1;
}

gboolean
pto_module_check_library (const char *path, const guint8 *digest, const char *name,
                          gpointer library, GError **error)
{
  g_autofree char *data = NULL;
  Comparison comparison = { 0 };
  guint8 found[PTO_DIGEST_SIZE];

  if (g_file_get_contents (path, &data, &comparison.size, NULL))
    pto_digest_data (data, comparison.size, found);
  if (data == NULL || memcmp (found, digest, PTO_DIGEST_SIZE) != 0)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_TAMPERED,
                   _ ("\"%s\": %s has changed while it was loaded: register it again"), name, path);
      return FALSE;
    }
  comparison.data = data;
  if (dlinfo (library, RTLD_DI_LINKMAP, &comparison.map) == 0)
    dl_iterate_phdr (compare_image, &comparison);
  if (!comparison.differs)
    return TRUE;
  g_set_error (
      error, PTO_ERROR, PTO_ERROR_LOAD,
      _ ("\"%s\": this process has loaded %s as it was before it was changed, and still uses "
         "that: unregister what uses it, or give the new one another name"),
      name, path);
  return FALSE;
}
