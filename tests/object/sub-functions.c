/* sub-functions.c: what can children load by "library:symbol"?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <pto/pto.h>

#include <string.h>

__attribute__ ((visibility ("default"))) gboolean count_call (PtoTaskArgs *args, gpointer user_data,
                                                              GError **error);

/* Its last digit is what a call counts: a test writes another one into the file. */
static const char *volatile version = "sub-functions version 1";

/* args: words; which one. */
gboolean
count_call (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  guint64 *words
      = (guint64 *) (guintptr) pto_tensor_get_address (pto_task_args_get_tensor (args, 0));

  words[pto_task_args_get_scalar (args, 1)] += (guint64) (version[strlen (version) - 1] - '0');
  return TRUE;
}
