/* foreign-module.c: a module that calls much of what foreign code must not do by itself.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Linked so that the loader seals its table of functions.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__ ((visibility ("default"))) void leave (int way);

void
leave (int way)
{
  if (way == 0)
    exit (3);
  if (way == 1)
    _exit (3);
  if (way == 2)
    quick_exit (3);
  signal (SIGUSR1, SIG_IGN);
}
