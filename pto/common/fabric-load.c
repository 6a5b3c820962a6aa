/* fabric-load.c: where is the module of a fabric, and is it one of this version?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of the library, and of the program that tells what a machine lacks.
 */
#include "config.h"

#include "fabric-module.h"

#include "text.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct
{
  const char *name;
  /* Its own handlers of signals would be in the way of those of who runs tasks. */
  const char *variable;
  const char *value;
} engines[] = { { "ucx", "UCX_HANDLE_ERRORS", "none" } };

gboolean
pto_fabric_is_known (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (engines); i++)
    if (strcmp (engines[i].name, name) == 0)
      return TRUE;
  return FALSE;
}

/* As the environment says, or what was installed with the library. */
static char *
dup_path (const char *name, gconstpointer in_library)
{
  g_autofree char *file = g_strconcat ("pto-", name, ".so", NULL);
  const char *variable = g_getenv ("PTO_MODULE_DIR");
  g_autofree char *real = NULL;
  g_autofree char *libdir = NULL;
  Dl_info info;

  if (variable != NULL && *variable != '\0')
    return g_build_filename (variable, file, NULL);
  if (dladdr (in_library, &info) == 0 || info.dli_fname == NULL)
    return g_steal_pointer (&file);
  real = realpath (info.dli_fname, NULL);
  libdir = g_path_get_dirname (real != NULL ? real : info.dli_fname);
  return g_build_filename (libdir, PTO_MODULE_DIR_FROM_LIBDIR, file, NULL);
}

const PtoFabricEngine *
pto_fabric_load (const char *name, gconstpointer in_library, char **cause)
{
  g_autofree char *path = dup_path (name, in_library);
  const PtoFabricEngine *engine = NULL;
  gpointer module;

  for (guint i = 0; i < G_N_ELEMENTS (engines); i++)
    if (strcmp (engines[i].name, name) == 0)
      g_setenv (engines[i].variable, engines[i].value, FALSE);
  if (g_path_is_absolute (path) && access (path, F_OK) != 0)
    {
      *cause = g_strdup_printf (_ ("there is no %s"), path);
      return NULL;
    }
  module = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (module != NULL)
    engine = dlsym (module, PTO_FABRIC_SYMBOL);
  if (engine != NULL && engine->size == sizeof *engine)
    return engine;
  *cause = engine != NULL ? g_strdup_printf (_ ("%s is of another version of libpto"), path)
                          : g_strdup (dlerror ());
  return NULL;
}
