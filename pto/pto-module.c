/* pto-module.c: is a shared object that was loaded the one that was hashed?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The loader takes a path, and knows what it has loaded by that path. (A descriptor's path would be
 * no better: its number comes again, and the object would not find what lies beside it.) So the
 * file is hashed once more when it is loaded, and what of the image can not have changed is
 * compared with it: notes, symbols and constants.
 */
#include "config.h"

#include "pto-identity-private.h"

#include "pto-error-private.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

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
pto_registration_check_module (PtoRegistration *registration, guint object, gpointer module,
                               GError **error)
{
  const char *path = g_ptr_array_index (registration->objects, object);
  const guint8 *expected = registration->contents->data + object * PTO_DIGEST_SIZE;
  g_autoptr (GMappedFile) file = g_mapped_file_new (path, FALSE, NULL);
  Comparison comparison = { 0 };
  guint8 digest[PTO_DIGEST_SIZE];

  if (file != NULL)
    {
      comparison.data = g_mapped_file_get_contents (file);
      comparison.size = g_mapped_file_get_length (file);
      pto_digest_data (comparison.data, comparison.size, digest);
    }
  if (file == NULL || memcmp (digest, expected, PTO_DIGEST_SIZE) != 0)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_TAMPERED,
                   "\"%s\": %s has changed while it was loaded: register it again",
                   registration->name, path);
      return FALSE;
    }
  if (dlinfo (module, RTLD_DI_LINKMAP, &comparison.map) == 0)
    dl_iterate_phdr (compare_image, &comparison);
  if (!comparison.differs)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_LOAD,
               "\"%s\": this process has loaded %s as it was before it was changed, and still uses "
               "that: unregister what uses it, or give the new one another name",
               registration->name, path);
  return FALSE;
}
