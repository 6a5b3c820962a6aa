/* preinit.c: what must a program do before the constructors of its libraries run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A preloaded runtime of a sanitizer (libasan) begins when memory is allocated first. It asks the
 * loader for functions that are not there, and the loader's message is translated under the C
 * library's lock of locales. Where the first allocation is one within newlocale(), which p11-kit
 * (GnuTLS) calls in its constructor, the same thread holds that lock: the lock is spoilt, and
 * the next setlocale() waits for ever. So a program allocates before. Part of each program that
 * links with GnuTLS; a library cannot have such functions.
 */
#include <stdlib.h>

#if defined(__ELF__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void
allocate (int argc, char **argv, char **envp)
{
  /* Volatile: the compiler leaves out an allocation that nothing uses. */
  void *volatile memory = malloc (1);

  (void) argc;
  (void) argv;
  (void) envp;
  free (memory);
}

__attribute__ ((section (".preinit_array"),
                used)) static void (*const preinit) (int argc, char **argv, char **envp)
    = allocate;
#endif
