/* text.c: where are the translations, and what keeps them whole when a process forks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "text.h"

#include <dlfcn.h>
#include <libintl.h>
#include <pthread.h>
#include <stdlib.h>

/* gettext has locks of its own, which no child of a fork gets back that another thread held. This
 * one is around every look-up of ours, and a fork waits for it. Innermost: nothing is locked under
 * it. */
static GMutex lock;

static void
hold (void)
{
  g_mutex_lock (&lock);
}

static void
let_go (void)
{
  g_mutex_unlock (&lock);
}

/* The directory that PTO_LOCALE_DIR names, or that was installed with this library, or the program
 * that this is a part of, wherever both have been moved. */
static char *
find_directory (void)
{
  const char *variable = g_getenv ("PTO_LOCALE_DIR");
  g_autofree char *real = NULL;
  g_autofree char *directory = NULL;
  Dl_info info;

  if (variable != NULL && variable[0] != '\0')
    return g_canonicalize_filename (variable, NULL);
  if (dladdr ((void *) pto_text_bind, &info) == 0 || info.dli_fname == NULL)
    return NULL;
  /* The library may have been found through a link, and a program by PATH. */
  real = realpath (g_path_is_absolute (info.dli_fname) ? info.dli_fname : "/proc/self/exe", NULL);
  if (real == NULL)
    return NULL;
  directory = g_path_get_dirname (real);
  return g_canonicalize_filename (PTO_LOCALE_DIR_FROM_HERE, directory);
}

/* The process's locale is the program's affair, as is its own domain. */
void
pto_text_bind (void)
{
  static gsize bound;

  if (g_once_init_enter (&bound))
    {
      g_autofree char *directory = find_directory ();

      if (directory != NULL)
        bindtextdomain (GETTEXT_PACKAGE, directory);
      bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
      pthread_atfork (hold, let_go, let_go);
      g_once_init_leave (&bound, 1);
    }
}

const char *
pto_gettext (const char *text)
{
  const char *translated;

  pto_text_bind ();
  hold ();
  translated = g_dgettext (GETTEXT_PACKAGE, text);
  let_go ();
  return translated;
}

const char *
pto_ngettext (const char *one, const char *many, gulong n)
{
  const char *translated;

  pto_text_bind ();
  hold ();
  translated = g_dngettext (GETTEXT_PACKAGE, one, many, n);
  let_go ();
  return translated;
}

const char *
pto_pgettext (const char *text_in_context, gsize offset)
{
  const char *translated;

  pto_text_bind ();
  hold ();
  translated = g_dpgettext (GETTEXT_PACKAGE, text_in_context, offset);
  let_go ();
  return translated;
}
