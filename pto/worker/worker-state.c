/* worker-state.c: what does one worker say of what it does just now?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "worker.h"

#include "monitor/answer.h"

static char *
print_worker (PtoWorker *worker, PtoAnswerFormat format)
{
  /* Without a machine it is nobody's. */
  return pto_answer_tell (worker->node.machine != NULL ? worker->node.machine : (gpointer) worker,
                          format);
}

/**
 * pto_worker_describe_state:
 * @worker: a worker
 *
 * Tells in some lines what it does just now and what it waits for: its run, the submitter, each
 * scheduler, core or child that is busy, and the tasks that wait, with those that they wait for.
 * One that has not started, or is closed, says nothing of that. Source: doc/asking.md.
 *
 * Nobody is waited for who runs. Thread safety: any thread.
 *
 * Returns: (transfer full): lines that end in a newline each
 *
 * Since: 0.1
 */
char *
pto_worker_describe_state (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  return print_worker (worker, PTO_ANSWER_FORMAT_TEXT);
}

/**
 * pto_worker_describe_state_json:
 * @worker: a worker
 *
 * Tells as JSON what [method@Pto.Worker.describe_state] tells as text, and more: an object whose
 * member `workers` has the worker; members that end in `_ns` are nanoseconds; a task is named as
 * `pto trace why` takes it. doc/asking.md lists them.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): an object of JSON
 *
 * Since: 0.1
 */
char *
pto_worker_describe_state_json (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  return print_worker (worker, PTO_ANSWER_FORMAT_JSON);
}

/**
 * pto_worker_dup_metrics:
 * @worker: a worker
 *
 * Tells what it has counted since its start and what it holds just now as OpenMetrics text: tasks,
 * edges, waits for room, rings and their high water, queues of ready tasks, and, where kernels are
 * timed, how long each core was busy; of the workers below it, too. doc/asking.md lists the
 * metrics.
 *
 * Thread safety: any thread.
 *
 * Returns: (transfer full): lines, the last of which is `# EOF`
 *
 * Since: 0.1
 */
char *
pto_worker_dup_metrics (PtoWorker *worker)
{
  g_return_val_if_fail (PTO_IS_WORKER (worker), NULL);

  return print_worker (worker, PTO_ANSWER_FORMAT_METRICS);
}
