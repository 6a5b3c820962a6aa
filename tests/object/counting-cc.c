/* counting-cc.c: how often is a compiler run? A byte in the file PTO_TEST_COUNT each time.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int
main (int argc, char **argv)
{
  const char *path = getenv ("PTO_TEST_COUNT");
  int fd = path != NULL ? open (path, O_WRONLY | O_APPEND) : -1;

  (void) argc;
  if (fd < 0 || write (fd, ".", 1) != 1)
    return 1;
  close (fd);
  argv[0] = (char *) "cc";
  execvp (argv[0], argv);
  return 127;
}
