/* call-foreign.c: how does a program call code that may crash?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "call-foreign.h"

#include "pto-compile.h"

#include "base/error.h"
#include "base/locks.h"
#include "exec/libc-hooks.h"

#include <dlfcn.h>
#include <fenv.h>
#include <stdio.h>
#include <unistd.h>

/**
 * PtoForeignFunc:
 * @user_data: what pto_call_foreign() was given
 *
 * Foreign code, or a function that calls it.
 *
 * Since: 0.1
 */

/**
 * pto_call_foreign: (skip)
 * @module: (nullable): the shared object with the code, as `dlopen()` gave it
 * @func: (scope call) (closure user_data): a function in C
 * @user_data: for @func
 * @error: where to say why it did not return
 *
 * Calls a function in C so that what it does wrong is an error.
 *
 * A crash, an exception of C++, a stack used up, and calls of `exit()`, `pthread_exit()` and the
 * like by @module itself end the call: its frames are dropped and %PTO_ERROR_KERNEL_FAULT says what
 * it did, to go on a sentence: "crashed: Segmentation fault (signal 11) at address 0x8". What it
 * held (memory, a lock) stays held. It is waited for as long as it takes. This is how kernels and
 * orchestrations are called. Not for functions of other languages. Thread safety: any thread.
 *
 * Returns: %TRUE if it returned
 *
 * Since: 0.1
 */
gboolean
pto_call_foreign (gpointer module, PtoForeignFunc func, gpointer user_data, GError **error)
{
  char why[256];

  g_return_val_if_fail (func != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (module != NULL)
    pto_foreign_adopt (module);
  if (pto_foreign_call (func, user_data, why, sizeof why))
    return TRUE;
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_KERNEL_FAULT, why);
  return FALSE;
}

gboolean
pto_function_is_native (GCallback func)
{
  Dl_info info;

  return dladdr ((gconstpointer) func, &info) != 0;
}

/* Ends the process if the function, called after so many forks, made it: its caller goes on in the
 * other process alone. why: what it did, or NULL. */
static void
refuse_copy (guint forks, const char *what, const char *why)
{
  if (G_LIKELY (forks == pto_count_forks ()))
    return;
  if (why != NULL)
    dprintf (STDERR_FILENO, "pto: %s: %s\n", what, why);
  pto_foreign_end_copy (what);
}

gboolean
pto_call_native (void (*func) (gpointer data), gpointer data, const char *what,
                 GError *const *failure, GError **error)
{
  guint forks = pto_count_forks ();
  char why[256];
  gboolean returned = pto_foreign_catch (func, data, why, sizeof why);

  refuse_copy (forks, what, !returned ? why : *failure != NULL ? (*failure)->message : NULL);
  if (returned)
    return TRUE;
  g_set_error (error, PTO_ERROR, PTO_ERROR_KERNEL_FAULT, "%s %s", what, why);
  return FALSE;
}

void
pto_call_other (void (*func) (gpointer data), gpointer data, const char *what)
{
  guint forks = pto_count_forks ();
  fenv_t environment;

  fegetenv (&environment);
  func (data);
  fesetenv (&environment);
  refuse_copy (forks, what, NULL);
}
