/* recursion.c: how does a worker of level 4 run an orchestration on a worker of level 3?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Two levels, three processes, one SUB function at the bottom. That function notes which process it
 * ran in; the reference is that it ran once, and in no process of ours. Build and run:
 *
 *   cc recursion.c -o recursion $(pkg-config --cflags --libs pto-1) && ./recursion
 */
#include <pto/pto.h>

#include <stdio.h>
#include <unistd.h>

/* In a buffer: all processes see it. */
typedef struct Notes
{
  gint64 times;
  gint64 process;
} Notes;

static gboolean
verify_result (PtoTaskArgs *args, gpointer user_data, GError **error)
{
  Notes *notes = user_data;

  notes->times++;
  notes->process = getpid ();
  return TRUE;
}

/* Runs in the process of the worker of level 3. */
static gboolean
my_l3_orch (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
            gpointer user_data, GError **error)
{
  PtoCallableHandle *sub = user_data;

  return pto_orchestrator_submit_sub (orchestrator, sub, NULL, -1, error);
}

static gboolean
my_l4_orch (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
            gpointer user_data, GError **error)
{
  PtoCallableHandle *l3_handle = user_data;

  return pto_orchestrator_submit_next_level (orchestrator, l3_handle, NULL, NULL, -1, error);
}

static gboolean
run (gboolean *passed, GError **error)
{
  g_autoptr (PtoBuffer) buffer = NULL;
  g_autoptr (PtoWorker) l3 = NULL;
  g_autoptr (PtoWorker) w4 = NULL;
  g_autoptr (PtoCallable) verify = NULL;
  g_autoptr (PtoCallable) l3_orch = NULL;
  g_autoptr (PtoCallableHandle) l3_sub_handle = NULL;
  g_autoptr (PtoCallableHandle) l3_handle = NULL;
  Notes *notes;

  if ((buffer = pto_buffer_new (sizeof (Notes), error)) == NULL
      || (l3 = pto_worker_new_host (3, 0, 1, NULL, error)) == NULL
      || (w4 = pto_worker_new_host (4, 0, 0, NULL, error)) == NULL)
    return FALSE;
  notes = (Notes *) (guintptr) pto_buffer_get_address (buffer);

  /* Each worker knows what it runs itself; what is registered before init goes along in the fork.
   */
  verify = pto_sub_function_new ("verify_result", verify_result, notes, NULL);
  l3_sub_handle = pto_worker_register (l3, verify, NULL, error);
  if (l3_sub_handle == NULL)
    return FALSE;
  l3_orch = pto_orchestration_function_new ("my_l3_orch", my_l3_orch, l3_sub_handle, NULL);
  l3_handle = pto_worker_register (w4, l3_orch, NULL, error);
  if (l3_handle == NULL || !pto_worker_add_worker (w4, l3, error)
      || !pto_worker_start (w4, NULL, error)
      || !pto_worker_run (w4, my_l4_orch, l3_handle, NULL, NULL, NULL, error))
    return FALSE;
  pto_worker_close (w4);

  *passed = notes->times == 1 && notes->process != 0 && notes->process != getpid ();
  printf ("L4 -> L3 -> SUB: the function ran %d time, in another process: %s\n", (int) notes->times,
          *passed ? "PASS" : "FAIL");
  return TRUE;
}

int
main (void)
{
  g_autoptr (GError) error = NULL;
  gboolean passed = FALSE;

  if (!run (&passed, &error))
    fprintf (stderr, "recursion: %s\n", error->message);
  return passed ? 0 : 1;
}
