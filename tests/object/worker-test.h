/* worker-test.h: what do the tests of a worker and its refusals share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "object-test.h"

typedef struct
{
  char *dir;
  PtoWorker *worker;
  PtoCallable *add;
  PtoCallable *add_scalar;
  PtoCallable *fill;
  PtoBuffer *a;
  PtoBuffer *b;
  PtoBuffer *f;
} WorkerTest;

void worker_test_set_up (WorkerTest *fixture, gconstpointer data);
void worker_test_tear_down (WorkerTest *fixture, gconstpointer data);

/* f = (a + b) + 1, with a tensor in between that the runtime allocates. */
gboolean worker_test_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                            gpointer data, GError **error);
void worker_test_check_graph (WorkerTest *fixture);
/* Its kernel 0 is fill. */
PtoCallable *worker_test_new_chip (WorkerTest *fixture, const char *name, const char *text,
                                   const char *function);
/* For object_test_orchestration: f. */
PtoTaskArgs *worker_test_chip_args (WorkerTest *fixture);
gboolean worker_test_fail_silently (PtoOrchestrator *orchestrator, PtoTaskArgs *args,
                                    PtoCallConfig *config, gpointer data, GError **error);

#define WORKER_TEST_ADD(name, function) \
  g_test_add (name, WorkerTest, NULL, worker_test_set_up, function, worker_test_tear_down)
