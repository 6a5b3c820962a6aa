/* binding.c: is a language here that has the library without its override?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A language finds introspection data and overrides in different places, and does without an
 * override in silence. So an override says that it is there, by a quark, before it touches a type;
 * whoever touches one and has not said so is told where the override is.
 */
#include "config.h"

#include "binding.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef struct
{
  const char *name;
  const char *quark;       /* what its override says; also in the override */
  const char *file;        /* below the directory */
  const char *from_libdir; /* the installed directory; empty when there is none */
  const char *variable;    /* names directories that are searched */
  const char *otherwise;   /* what they are without the variable; or NULL */
  const char *without;     /* what a program meets */
} Language;

static const Language python = {
  .name = "Python",
  .quark = "pto-python-override",
  .file = "gi/overrides/Pto.py",
  .from_libdir = PTO_PYTHON_DIR_FROM_LIBDIR,
  .variable = "PYTHONPATH",
  .without = "arrays are no tensors, exceptions are lost, Ctrl-C is not heard and misspelt "
             "attributes are accepted",
};

static const Language javascript = {
  .name = "JavaScript",
  .quark = "pto-javascript-override",
  .file = "gjs-1.0/overrides/Pto.js",
  .from_libdir = PTO_DATADIR_FROM_LIBDIR,
  .variable = "XDG_DATA_DIRS",
  .otherwise = "/usr/local/share:/usr/share",
  .without = "async functions pass for orchestrations and misspelt attributes are accepted",
};

/* A program that is not introspected may contain an interpreter, too. */
static gboolean
is_introspected (void)
{
  gboolean (*is_registered) (gpointer repository, const char *name, const char *version);
  gpointer repository = dlopen ("libgirepository-1.0.so.1", RTLD_LAZY | RTLD_NOLOAD);
  gboolean is = FALSE;

  if (repository == NULL)
    return FALSE;
  is_registered = dlsym (repository, "g_irepository_is_registered");
  if (is_registered != NULL)
    is = is_registered (NULL, "Pto", NULL);
  dlclose (repository);
  return is;
}

gboolean
pto_override_is_javascript (void)
{
  gpointer (*get_javascript) (void) = dlsym (RTLD_DEFAULT, "gjs_context_get_current");

  return get_javascript != NULL && get_javascript () != NULL;
}

static const Language *
find_language (void)
{
  int (*python_is_up) (void) = dlsym (RTLD_DEFAULT, "Py_IsInitialized");

  if (python_is_up != NULL && python_is_up ())
    return &python;
  return pto_override_is_javascript () ? &javascript : NULL;
}

/* Where it was installed with this library, wherever both have been moved; or NULL. */
static char *
find_directory (const Language *language)
{
  g_autofree char *real = NULL;
  g_autofree char *libdir = NULL;
  g_autofree char *directory = NULL;
  g_autofree char *file = NULL;
  Dl_info info;

  if (language->from_libdir[0] == '\0' || dladdr ((void *) pto_override_look, &info) == 0
      || info.dli_fname == NULL)
    return NULL;
  real = realpath (info.dli_fname, NULL);
  libdir = g_path_get_dirname (real != NULL ? real : info.dli_fname);
  directory = g_canonicalize_filename (language->from_libdir, libdir);
  file = g_build_filename (directory, language->file, NULL);
  return g_file_test (file, G_FILE_TEST_IS_REGULAR) ? g_steal_pointer (&directory) : NULL;
}

static void
say_what_is_missing (const Language *language)
{
  g_autofree char *directory = find_directory (language);
  const char *of = language->variable;

  if (directory == NULL)
    g_message ("%s has found libpto, but not its override %s, without which %s: %s must name the "
               "directory above",
               language->name, language->file, language->without, of);
  else if (language->otherwise == NULL)
    g_message ("%s has found libpto, but not its override %s, without which %s. Before the "
               "program, in a shell:\n    export %s=\"%s${%s:+:$%s}\"",
               language->name, language->file, language->without, of, directory, of, of);
  else
    g_message ("%s has found libpto, but not its override %s, without which %s. Before the "
               "program, in a shell:\n    export %s=\"%s:${%s:-%s}\"",
               language->name, language->file, language->without, of, directory, of,
               language->otherwise);
}

void
pto_override_look (void)
{
  static gsize has_looked;
  const Language *language;

  if (!g_once_init_enter (&has_looked))
    return;
  language = is_introspected () ? find_language () : NULL;
  if (language != NULL && g_quark_try_string (language->quark) == 0)
    say_what_is_missing (language);
  g_once_init_leave (&has_looked, 1);
}
