/* task-thread.h: on which threads does work run whose result is waited for elsewhere?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Like g_thread_try_new(), which ends the program where a filter refuses the thread. */
GThread *pto_thread_try_new (const char *name, GThreadFunc func, gpointer data, GError **error);

/* Returns the result of the task. */
typedef void (*PtoTaskWork) (GTask *task);

/* Like g_task_run_in_thread(), whose threads end the program where the system refuses one: here the
 * task fails. */
void pto_task_run (GTask *task, PtoTaskWork work);

G_END_DECLS
