/* library.c: which library does a program run with?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "pto-library.h"
#include "pto-version.h"

/**
 * pto_get_major_version:
 *
 * Gives the first number of the version of the library that the program runs with.
 *
 * %PTO_MAJOR_VERSION is that of the library that it was built with.
 *
 * Thread safety: any thread.
 *
 * Returns: a number
 *
 * Since: 0.1
 */
guint
pto_get_major_version (void)
{
  return PTO_MAJOR_VERSION;
}

/**
 * pto_get_minor_version:
 *
 * Gives the second number of the version of the library that the program runs with.
 *
 * %PTO_MINOR_VERSION is that of the library that it was built with.
 *
 * Thread safety: any thread.
 *
 * Returns: a number
 *
 * Since: 0.1
 */
guint
pto_get_minor_version (void)
{
  return PTO_MINOR_VERSION;
}

/**
 * pto_get_micro_version:
 *
 * Gives the third number of the version of the library that the program runs with.
 *
 * %PTO_MICRO_VERSION is that of the library that it was built with.
 *
 * Thread safety: any thread.
 *
 * Returns: a number
 *
 * Since: 0.1
 */
guint
pto_get_micro_version (void)
{
  return PTO_MICRO_VERSION;
}

/**
 * pto_check_version:
 * @major: the first number of a version
 * @minor: the second
 * @micro: the third
 *
 * Says whether the library that the program runs with is of that version or a later one.
 *
 * Thread safety: any thread.
 *
 * Returns: whether it is
 *
 * Since: 0.1
 */
gboolean
pto_check_version (guint major, guint minor, guint micro)
{
  const guint runs[] = { PTO_MAJOR_VERSION, PTO_MINOR_VERSION, PTO_MICRO_VERSION };
  const guint asked[] = { major, minor, micro };

  for (gsize i = 0; i < G_N_ELEMENTS (runs); i++)
    if (runs[i] != asked[i])
      return runs[i] > asked[i];
  return TRUE;
}
