/* remote_interrupted.c: what does a C program whose run is cancelled by Ctrl-C leave behind?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Arguments: root, interpreter, pto-remote, elements of the tensor. A remote worker runs a function
 * that never ends.
 */
#include <pto/pto.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

typedef struct
{
  PtoCallableHandle *far;
  PtoTensor *x;
} Program;

static gpointer
await_signal (gpointer data)
{
  sigset_t set;
  int number;

  sigemptyset (&set);
  sigaddset (&set, SIGINT);
  sigwait (&set, &number);
  g_cancellable_cancel (data);
  return NULL;
}

static gboolean
submit (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  Program *program = data;
  g_autoptr (PtoTaskArgs) given = pto_task_args_new ();

  pto_task_args_add_tensor (given, program->x, PTO_DIRECTION_INPUT);
  return pto_orchestrator_submit_next_level (orchestrator, program->far, given, NULL, -1, error);
}

int
main (int argc, char **argv)
{
  g_autoptr (PtoWorker) host = g_object_new (PTO_TYPE_WORKER, "level", 4, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  const char *roots[] = { argv[1], NULL };
  const guint64 shape[] = { argc == 5 ? g_ascii_strtoull (argv[4], NULL, 10) : 0 };
  GVariantBuilder options;
  g_autoptr (PtoBuffer) buffer = NULL;
  PtoCallable *function;
  Program program;
  sigset_t set;

  /* Before there is a thread, so that none of them is interrupted. */
  sigemptyset (&set);
  sigaddset (&set, SIGINT);
  pthread_sigmask (SIG_BLOCK, &set, NULL);
  g_thread_unref (g_thread_new ("signals", await_signal, cancellable));
  g_variant_builder_init (&options, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&options, "{sv}", "roots", g_variant_new_strv (roots, -1));
  g_variant_builder_add (&options, "{sv}", "python", g_variant_new_string (argv[2]));
  g_variant_builder_add (&options, "{sv}", "program", g_variant_new_string (argv[3]));
  g_variant_builder_add (&options, "{sv}", "sub-workers", g_variant_new_uint32 (1));
  function = pto_imported_function_new (PTO_CALLABLE_ORCHESTRATION, "remote_steps:hold_for_ever",
                                        &error);
  if (error == NULL && (buffer = pto_buffer_new (8 * shape[0], &error)) != NULL)
    program.x = pto_tensor_new_for_buffer (buffer, 0, PTO_DTYPE_INT64, 1, shape, &error);
  if (error == NULL
      && pto_worker_add_remote_worker (host, "local:", g_variant_builder_end (&options), &error)
             != NULL
      && (program.far = pto_worker_register (host, function, NULL, &error)) != NULL
      && pto_worker_start (host, cancellable, &error))
    pto_worker_run (host, submit, &program, NULL, NULL, cancellable, &error);
  if (error != NULL)
    g_printerr ("%s\n", error->message);
  pto_worker_close (host);
  return g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED) ? 130 : EXIT_FAILURE;
}
