/* sub-functions.c: what can children load by "library:symbol"?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <pto/pto.h>

#include <string.h>

__attribute__ ((visibility ("default"))) gboolean count_call (PtoTaskArgs *args, gpointer user_data,
                                                              GError **error);

__attribute__ ((visibility ("default"))) gboolean throw_group (PtoTaskArgs *args,
                                                               gpointer user_data, GError **error);

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

/* What a language's binding does with a group of exceptions. */
gboolean
throw_group (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  g_autoptr (PtoException) first = pto_exception_new ("ValueError", "one", NULL, NULL, 0);
  g_autoptr (PtoException) second = pto_exception_new ("KeyError", "two", "at home", NULL, 0);
  g_autoptr (PtoException) group = pto_exception_new ("ExceptionGroup", "both", "line 1\nline 2",
                                                      (PtoException *[]){ first, second }, 2);

  pto_exception_throw (group);
  g_set_error_literal (error, PTO_EXCEPTION, 0, "ExceptionGroup: both");
  return FALSE;
}
