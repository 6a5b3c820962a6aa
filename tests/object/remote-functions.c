/* remote-functions.c: what do the remote workers of test-remote.c run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Orchestrations of a worker of level 3, and what they submit there, by "library:symbol". Elements
 * are int64.
 */
#include <pto/pto.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__ ((visibility ("default")))

EXPORTED gboolean add_sub (PtoTaskArgs *args, gpointer user_data, GError **error);
EXPORTED gboolean wait_sub (PtoTaskArgs *args, gpointer user_data, GError **error);
EXPORTED gboolean add (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                       gpointer user_data, GError **error);
EXPORTED gboolean overlap (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                           gpointer user_data, GError **error);
EXPORTED gboolean increase (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                            gpointer user_data, GError **error);
EXPORTED gboolean fill_chip (PtoOrchestrator *orchestrator, PtoTaskArgs *args,
                             PtoCallConfig *config, gpointer user_data, GError **error);
EXPORTED gboolean tell (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                        gpointer user_data, GError **error);
EXPORTED gboolean fail (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                        gpointer user_data, GError **error);
EXPORTED gboolean meet (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                        gpointer user_data, GError **error);
EXPORTED gboolean die (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                       gpointer user_data, GError **error);
EXPORTED gboolean wait_for_cancel (PtoOrchestrator *orchestrator, PtoTaskArgs *args,
                                   PtoCallConfig *config, gpointer user_data, GError **error);

static gint64 *
words_of (PtoTaskArgs *args, guint index)
{
  return (gint64 *) (guintptr) pto_tensor_get_address (pto_task_args_get_tensor (args, index));
}

/* x, y, a: y = x + a. */
gboolean
add_sub (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  guint64 n = pto_tensor_get_n_elements (pto_task_args_get_tensor (args, 0));
  gint64 *x = words_of (args, 0);
  gint64 *y = words_of (args, 1);

  for (guint64 i = 0; i < n; i++)
    y[i] = x[i] + (gint64) pto_task_args_get_scalar (args, 2);
  return TRUE;
}

/* That it has begun, a file says: there is no memory that the test sees. */
gboolean
wait_sub (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  if (!g_file_set_contents (g_getenv ("PTO_TEST_MARK"), "", 0, error))
    return FALSE;
  while (!pto_task_args_is_cancelled (args))
    g_usleep (200);
  return TRUE;
}

static gboolean
submit (PtoOrchestrator *orchestrator, const char *name, PtoTaskArgs *args, GError **error)
{
  g_autoptr (PtoCallableHandle) handle
      = pto_worker_lookup (pto_orchestrator_get_worker (orchestrator), name, error);

  return handle != NULL && pto_orchestrator_submit_sub (orchestrator, handle, args, -1, error);
}

/* x, y, a: by two tasks, of which the second needs the first: y = x + 2 * a. */
gboolean
add (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
     GError **error)
{
  g_autoptr (PtoTaskArgs) first = pto_task_args_new ();
  g_autoptr (PtoTaskArgs) second = pto_task_args_new ();
  PtoTensor *x = pto_task_args_get_tensor (args, 0);
  PtoTensor *y = pto_task_args_get_tensor (args, 1);
  guint64 a = pto_task_args_get_scalar (args, 2);

  pto_task_args_add_tensor (first, x, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (first, y, PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (first, a);
  pto_task_args_add_tensor (second, y, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (second, y, PTO_DIRECTION_INOUT);
  pto_task_args_add_scalar (second, a);
  return submit (orchestrator, "add_sub", first, error)
         && submit (orchestrator, "add_sub", second, error);
}

/* all, part: do they lie in the same memory here, too? part[0] += all[1]. */
gboolean
overlap (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
         gpointer user_data, GError **error)
{
  gint64 *all = words_of (args, 0);
  gint64 *part = words_of (args, 1);

  if (part != all + 2)
    {
      g_set_error (error, PTO_ERROR, PTO_ERROR_EXPLICIT, "they are %td apart", part - all);
      return FALSE;
    }
  part[0] += all[1];
  return TRUE;
}

/* x, y: y[0] += x[1]. */
gboolean
increase (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
          gpointer user_data, GError **error)
{
  words_of (args, 1)[0] += words_of (args, 0)[1];
  return TRUE;
}

/* y, value, n: on a chip. */
gboolean
fill_chip (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
           gpointer user_data, GError **error)
{
  g_autoptr (PtoTaskArgs) chip_args = pto_task_args_new ();
  g_autoptr (PtoCallableHandle) handle
      = pto_worker_lookup (pto_orchestrator_get_worker (orchestrator), "fill_orch", error);

  if (handle == NULL)
    return FALSE;
  pto_task_args_add_tensor (chip_args, pto_task_args_get_tensor (args, 0),
                            PTO_DIRECTION_OUTPUT_EXISTING);
  pto_task_args_add_scalar (chip_args, pto_task_args_get_scalar (args, 1));
  pto_task_args_add_scalar (chip_args, pto_task_args_get_scalar (args, 2));
  return pto_orchestrator_submit_next_level (orchestrator, handle, chip_args, NULL, -1, error);
}

/* y: the process, and its parent, which is the bridge. */
gboolean
tell (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
      GError **error)
{
  words_of (args, 1)[0] = getpid ();
  words_of (args, 1)[1] = getppid ();
  return TRUE;
}

gboolean
fail (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
      GError **error)
{
  g_set_error_literal (error, PTO_ERROR, PTO_ERROR_EXPLICIT, "nothing of it");
  return FALSE;
}

gboolean
die (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
     GError **error)
{
  kill (getpid (), SIGKILL);
  return TRUE;
}

gboolean
wait_for_cancel (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer user_data, GError **error)
{
  return submit (orchestrator, "wait_sub", args, error);
}

/* A byte of the file for everybody who was here. y, n: waits for so many of them, y is 1; 0: for
 * nobody. */
gboolean
meet (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer user_data,
      GError **error)
{
  gint64 until = g_get_monotonic_time () + 20 * G_TIME_SPAN_SECOND;
  gint64 n = (gint64) pto_task_args_get_scalar (args, 1);
  int file = open (g_getenv ("PTO_TEST_MARK"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  struct stat so_far = { .st_size = 0 };
  gboolean ok = file >= 0;

  while (ok && n > 0 && so_far.st_size < n && g_get_monotonic_time () < until)
    {
      g_usleep (200);
      ok = fstat (file, &so_far) == 0;
    }
  ok = ok && so_far.st_size >= n && write (file, "", 1) == 1;
  if (file >= 0)
    close (file);
  words_of (args, 0)[0] = 1;
  if (!ok)
    g_set_error_literal (error, PTO_ERROR, PTO_ERROR_EXPLICIT, "nobody came");
  return ok;
}
