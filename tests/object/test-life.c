/* test-life.c: does what starts, registers and closes a worker beside a main loop end as it should?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each test is made with a chip, a chip in a process of its own, and levels 3 and 4.
 */
#include "level-test.h"

#include <string.h>
#include <unistd.h>

typedef enum
{
  CHIP,
  ISOLATED,
  LEVEL_3,
  LEVEL_4
} Machine;

typedef struct
{
  LevelTestState state;
  LevelTestBoard board;
  GMainContext *context;
  GThread *thread;
  char *dir;
  PtoWorker *worker;
  PtoCallable *callable; /* what its tasks are, and can be registered */
  PtoCallableHandle *sub;
  GCancellable *cancellable;
  guint changes;
  _Atomic guint forks; /* that were asked for, and are held */
  _Atomic guint go;    /* they are held no longer */
} Fixture;

/* How a call ended. */
typedef struct
{
  Fixture *fixture;
  guint n; /* callbacks */
  GError *error;
  PtoCallableHandle *handle;
} Outcome;

enum
{
  WORD_BEGUN,
  WORD_GO,
  WORD_DONE
};

static gboolean
count (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);

  atomic_store (&words[WORD_BEGUN], 1);
  if (pto_task_args_get_scalar (args, 1) != 0
      && !level_test_wait_in_task (args, &words[WORD_GO], 1))
    return FALSE;
  atomic_fetch_add (&words[WORD_DONE], 1);
  return TRUE;
}

static void
state_changed (GObject *object, GParamSpec *pspec, gpointer data)
{
  Fixture *fixture = data;

  g_assert_true (g_thread_self () == fixture->thread);
  fixture->changes++;
}

static PtoWorker *
make_worker (Machine machine)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) below = NULL;
  PtoWorker *worker;

  if (machine == CHIP || machine == ISOLATED)
    return g_object_new (PTO_TYPE_WORKER, "isolate", machine == ISOLATED, NULL);
  worker = level_test_host (machine == LEVEL_3 ? 3 : 4, machine == LEVEL_3 ? 1 : 0, 1);
  if (machine == LEVEL_4)
    {
      below = level_test_host (3, 0, 1);
      g_assert_true (pto_worker_add_worker (worker, below, &error));
    }
  return worker;
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  Machine machine = (Machine) GPOINTER_TO_INT (data);

  level_test_begin (&fixture->state);
  fixture->context = g_main_context_new ();
  g_main_context_push_thread_default (fixture->context);
  fixture->thread = g_thread_self ();
  level_test_board_init (&fixture->board);
  fixture->dir = object_test_make_dir ();
  fixture->worker = make_worker (machine);
  fixture->callable = machine >= LEVEL_3
                          ? pto_sub_function_new ("count", count, NULL, NULL)
                          : object_test_kernel (fixture->dir, "fill.c", object_test_fill);
  fixture->cancellable = g_cancellable_new ();
  g_signal_connect (fixture->worker, "notify::state", G_CALLBACK (state_changed), fixture);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  while (g_main_context_iteration (fixture->context, FALSE))
    ;
  if (fixture->worker != NULL)
    {
      g_object_add_weak_pointer (G_OBJECT (fixture->worker), (gpointer *) &fixture->worker);
      g_object_unref (fixture->worker);
      g_assert_null (fixture->worker);
    }
  g_object_unref (fixture->callable);
  g_object_unref (fixture->cancellable);
  g_clear_pointer (&fixture->sub, pto_callable_handle_unref);
  object_test_remove_dir (fixture->dir);
  level_test_board_clear (&fixture->board);
  g_main_context_pop_thread_default (fixture->context);
  g_main_context_unref (fixture->context);
  level_test_end (&fixture->state);
}

/* --- calls and what they come to --- */

static void
wait_for (Outcome *outcome, guint n)
{
  while (outcome->n < n)
    g_main_context_iteration (outcome->fixture->context, TRUE);
}

static Outcome *
outcome_new (Fixture *fixture)
{
  Outcome *outcome = g_new0 (Outcome, 1);

  outcome->fixture = fixture;
  return outcome;
}

static void
outcome_free (Outcome *outcome)
{
  g_assert_cmpuint (outcome->n, ==, 1);
  g_clear_error (&outcome->error);
  g_clear_pointer (&outcome->handle, pto_callable_handle_unref);
  g_free (outcome);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Outcome, outcome_free)

static void
begin_callback (Outcome *outcome)
{
  g_assert_true (g_thread_self () == outcome->fixture->thread);
  outcome->n++;
}

static void
started (GObject *object, GAsyncResult *result, gpointer data)
{
  Outcome *outcome = data;
  gboolean ok;

  begin_callback (outcome);
  ok = pto_worker_start_finish (PTO_WORKER (object), result, &outcome->error);
  g_assert_true (ok == (outcome->error == NULL));
}

static void
closed (GObject *object, GAsyncResult *result, gpointer data)
{
  Outcome *outcome = data;

  begin_callback (outcome);
  g_assert_true (pto_worker_close_finish (PTO_WORKER (object), result, &outcome->error));
  g_assert_no_error (outcome->error);
  /* Nothing is left of it by now. */
  g_assert_cmpint (pto_worker_get_state (PTO_WORKER (object)), ==, PTO_WORKER_STATE_CLOSED);
}

static void
registered (GObject *object, GAsyncResult *result, gpointer data)
{
  Outcome *outcome = data;

  begin_callback (outcome);
  outcome->handle = pto_worker_register_finish (PTO_WORKER (object), result, &outcome->error);
  g_assert_true ((outcome->handle != NULL) == (outcome->error == NULL));
}

static void
has_run (GObject *object, GAsyncResult *result, gpointer data)
{
  Outcome *outcome = data;

  begin_callback (outcome);
  pto_worker_run_finish (PTO_WORKER (object), result, &outcome->error);
}

/* One task, which at levels 3 and 4 waits for a word when data is not NULL. */
static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Fixture *fixture = data;
  g_autoptr (PtoBuffer) memory = NULL;
  g_autoptr (PtoTensor) f = NULL;

  if (fixture->sub != NULL)
    return level_test_submit (orchestrator, fixture->sub, fixture->board.tensor,
                              PTO_DIRECTION_INOUT, args != NULL, -1, error);
  memory = pto_buffer_new (1000 * sizeof (float), NULL);
  f = object_test_vector (memory);
  return pto_orchestrator_submit_full (orchestrator, fixture->callable, error, PTO_OUT_EXISTING (f),
                                       PTO_SCALAR (7), NULL);
}

static void
register_sub (Fixture *fixture, gconstpointer machine)
{
  if (GPOINTER_TO_INT (machine) >= LEVEL_3)
    fixture->sub = level_test_register (fixture->worker, "count", count);
}

static void
assert_runs (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;

  pto_worker_run (fixture->worker, graph, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

/* The first fork is held, whatever thread makes it. */
static int
held_fork (gpointer data)
{
  Fixture *fixture = data;

  atomic_fetch_add (&fixture->forks, 1);
  while (atomic_load (&fixture->go) == 0)
    g_usleep (50);
  return fork ();
}

/* Until a start is in the middle: its main loop goes on, or this would not return. */
static void
wait_for_fork (Fixture *fixture)
{
  while (atomic_load (&fixture->forks) == 0)
    {
      g_main_context_iteration (fixture->context, FALSE);
      g_usleep (50);
    }
}

/* Until somebody is closing the worker. */
static void
wait_for_closing (Fixture *fixture)
{
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  gboolean is_closing = FALSE;

  g_cancellable_cancel (cancelled);
  while (!is_closing)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (pto_worker_register (fixture->worker, fixture->callable, cancelled, &error));
      is_closing = g_error_matches (error, PTO_ERROR, PTO_ERROR_CLOSED);
      g_usleep (50);
    }
}

/* --- starts --- */

static void
test_start (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (Outcome) outcome = outcome_new (fixture);
  g_autoptr (Outcome) again = outcome_new (fixture);

  register_sub (fixture, machine);
  pto_worker_start_async (fixture->worker, NULL, started, outcome);
  g_assert_cmpuint (outcome->n, ==, 0);
  wait_for (outcome, 1);
  g_assert_no_error (outcome->error);
  g_assert_cmpint (pto_worker_get_state (fixture->worker), ==, PTO_WORKER_STATE_READY);
  pto_worker_start_async (fixture->worker, NULL, started, again);
  wait_for (again, 1);
  g_assert_no_error (again->error);
  g_assert_cmpuint (fixture->changes, ==, 1);
  assert_runs (fixture);
}

static void
test_two_starts (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (Outcome) first = outcome_new (fixture);
  g_autoptr (Outcome) second = outcome_new (fixture);
  g_autoptr (GError) error = NULL;

  register_sub (fixture, machine);
  pto_worker_start_async (fixture->worker, NULL, started, first);
  pto_worker_start_async (fixture->worker, NULL, started, second);
  pto_worker_start (fixture->worker, NULL, &error);
  g_assert_no_error (error);
  wait_for (first, 1);
  wait_for (second, 1);
  g_assert_no_error (first->error);
  g_assert_no_error (second->error);
  g_assert_cmpuint (fixture->changes, ==, 1);
  assert_runs (fixture);
}

/* One is cancelled while it is in the middle; the other one takes over. */
static void
test_cancelled_start (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (Outcome) early = outcome_new (fixture);
  g_autoptr (Outcome) first = outcome_new (fixture);
  g_autoptr (Outcome) second = outcome_new (fixture);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();

  g_cancellable_cancel (cancelled);
  pto_worker_start_async (fixture->worker, cancelled, started, early);
  wait_for (early, 1);
  g_assert_error (early->error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpint (pto_worker_get_state (fixture->worker), ==, PTO_WORKER_STATE_NEW);
  register_sub (fixture, machine);

  if (GPOINTER_TO_INT (machine) != CHIP)
    {
      pto_worker_set_fork_func (fixture->worker, held_fork, fixture, NULL);
      pto_worker_start_async (fixture->worker, fixture->cancellable, started, first);
      wait_for_fork (fixture);
      g_cancellable_cancel (fixture->cancellable);
      pto_worker_start_async (fixture->worker, NULL, started, second);
      atomic_store (&fixture->go, 1);
      wait_for (first, 1);
      g_assert_error (first->error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    }
  else
    {
      first->n = 1;
      pto_worker_start_async (fixture->worker, NULL, started, second);
    }
  wait_for (second, 1);
  g_assert_no_error (second->error);
  assert_runs (fixture);
}

/* A run beside it waits for the machine, whatever its kind. */
static void
test_start_and_run (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (Outcome) start = outcome_new (fixture);
  g_autoptr (Outcome) run = outcome_new (fixture);

  register_sub (fixture, machine);
  pto_worker_start_async (fixture->worker, NULL, started, start);
  assert_runs (fixture);
  pto_worker_run_async (fixture->worker, graph, fixture, NULL, NULL, NULL, NULL, has_run, run);
  wait_for (start, 1);
  wait_for (run, 1);
  g_assert_no_error (start->error);
  g_assert_no_error (run->error);
}

/* A run starts a worker that was not started, in its own thread or another one. */
static void
test_run_starts (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (Outcome) first = outcome_new (fixture);
  g_autoptr (Outcome) second = outcome_new (fixture);

  register_sub (fixture, machine);
  pto_worker_run_async (fixture->worker, graph, fixture, NULL, NULL, NULL, NULL, has_run, first);
  pto_worker_run_async (fixture->worker, graph, fixture, NULL, NULL, NULL, NULL, has_run, second);
  wait_for (first, 1);
  wait_for (second, 1);
  g_assert_no_error (first->error);
  g_assert_no_error (second->error);
  g_assert_cmpuint (fixture->changes, ==, 1);
  if (fixture->sub != NULL)
    g_assert_cmpuint (atomic_load (&fixture->board.words[WORD_DONE]), ==, 2);
}

/* A close ends it; on a chip it may have been faster. */
static void
test_start_and_close (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (Outcome) start = outcome_new (fixture);
  g_autoptr (Outcome) first = outcome_new (fixture);
  g_autoptr (Outcome) second = outcome_new (fixture);
  g_autoptr (Outcome) late = outcome_new (fixture);
  gboolean forks = GPOINTER_TO_INT (machine) != CHIP;

  pto_worker_set_fork_func (fixture->worker, held_fork, fixture, NULL);
  pto_worker_start_async (fixture->worker, NULL, started, start);
  if (forks)
    wait_for_fork (fixture);
  pto_worker_close_async (fixture->worker, closed, first);
  pto_worker_close_async (fixture->worker, closed, second);
  wait_for_closing (fixture);
  atomic_store (&fixture->go, 1);
  wait_for (first, 1);
  wait_for (second, 1);
  wait_for (start, 1);
  if (forks || start->error != NULL)
    g_assert_error (start->error, PTO_ERROR, PTO_ERROR_CLOSED);
  pto_worker_start_async (fixture->worker, NULL, started, late);
  wait_for (late, 1);
  g_assert_error (late->error, PTO_ERROR, PTO_ERROR_CLOSED);
}

/* Whoever lets go of it before it has started has it closed when the callback has returned. */
static void
test_kept (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (Outcome) outcome = outcome_new (fixture);

  g_object_add_weak_pointer (G_OBJECT (fixture->worker), (gpointer *) &fixture->worker);
  pto_worker_start_async (fixture->worker, NULL, started, outcome);
  g_object_unref (fixture->worker);
  g_assert_nonnull (fixture->worker);
  wait_for (outcome, 1);
  g_assert_no_error (outcome->error);
  while (fixture->worker != NULL)
    g_main_context_iteration (fixture->context, TRUE);
}

/* --- registrations --- */

static void
test_register (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (Outcome) first = outcome_new (fixture);
  g_autoptr (Outcome) second = outcome_new (fixture);
  g_autoptr (Outcome) start = outcome_new (fixture);
  g_autoptr (Outcome) third = outcome_new (fixture);
  g_autoptr (Outcome) cancelled = outcome_new (fixture);
  g_autoptr (GError) error = NULL;

#ifdef __SANITIZE_ADDRESS__
  /* Locks of the sanitizer's allocator would be copied as they are by a fork beside other threads.
   */
  g_assert_true (pto_worker_start (fixture->worker, NULL, NULL));
#endif
  pto_worker_register_async (fixture->worker, fixture->callable, NULL, registered, first);
  pto_worker_start_async (fixture->worker, NULL, started, start);
  pto_worker_register_async (fixture->worker, fixture->callable, NULL, registered, second);
  g_assert_cmpuint (first->n, ==, 0);
  wait_for (first, 1);
  wait_for (second, 1);
  wait_for (start, 1);
  g_assert_no_error (first->error);
  g_assert_no_error (second->error);
  g_assert_no_error (start->error);
  g_assert_true (pto_callable_handle_equal (first->handle, second->handle));
  pto_worker_register_async (fixture->worker, fixture->callable, NULL, registered, third);
  wait_for (third, 1);
  g_assert_no_error (third->error);
  if (GPOINTER_TO_INT (machine) >= LEVEL_3)
    fixture->sub = pto_callable_handle_ref (first->handle);
  assert_runs (fixture);

  /* It was counted three times. */
  for (guint i = 0; i < 3; i++)
    g_assert_true (pto_worker_unregister (fixture->worker, first->handle, &error));
  g_assert_false (pto_worker_unregister (fixture->worker, first->handle, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_FOUND);

  g_cancellable_cancel (fixture->cancellable);
  pto_worker_register_async (fixture->worker, fixture->callable, fixture->cancellable, registered,
                             cancelled);
  wait_for (cancelled, 1);
  g_assert_error (cancelled->error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* --- closes --- */

/* Beside a run that does not end by itself. */
static void
test_close_and_run (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (Outcome) run = outcome_new (fixture);
  g_autoptr (Outcome) queued = outcome_new (fixture);
  g_autoptr (Outcome) first = outcome_new (fixture);
  g_autoptr (Outcome) second = outcome_new (fixture);
  g_autoptr (Outcome) late = outcome_new (fixture);
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  register_sub (fixture, machine);
  pto_worker_run_async (fixture->worker, graph, fixture, NULL, args, NULL, NULL, has_run, run);
  while (fixture->sub != NULL && atomic_load (&fixture->board.words[WORD_BEGUN]) == 0)
    g_main_context_iteration (fixture->context, FALSE);
  pto_worker_run_async (fixture->worker, graph, fixture, NULL, args, NULL, NULL, has_run, queued);
  pto_worker_close_async (fixture->worker, closed, first);
  pto_worker_close_async (fixture->worker, closed, second);
  wait_for (first, 1);
  wait_for (second, 1);
  wait_for (run, 1);
  wait_for (queued, 1);
  if (fixture->sub != NULL)
    {
      g_assert_error (run->error, PTO_ERROR, PTO_ERROR_CLOSED);
      g_assert_error (queued->error, PTO_ERROR, PTO_ERROR_CLOSED);
      g_assert_cmpuint (atomic_load (&fixture->board.words[WORD_DONE]), ==, 0);
    }
  pto_worker_close (fixture->worker);
  pto_worker_close_async (fixture->worker, closed, late);
  wait_for (late, 1);
}

/* A worker that was never started. */
static void
test_close_new (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (Outcome) outcome = outcome_new (fixture);
  g_autoptr (Outcome) late = outcome_new (fixture);

  pto_worker_close_async (fixture->worker, closed, outcome);
  wait_for (outcome, 1);
  pto_worker_register_async (fixture->worker, fixture->callable, NULL, registered, late);
  wait_for (late, 1);
  g_assert_error (late->error, PTO_ERROR, PTO_ERROR_CLOSED);
}

/* --- inside its own function --- */

static void
not_closed (GObject *object, GAsyncResult *result, gpointer data)
{
  Outcome *outcome = data;

  begin_callback (outcome);
  g_assert_false (pto_worker_close_finish (PTO_WORKER (object), result, &outcome->error));
}

static void
graph_has_run (GObject *object, GAsyncResult *result, gpointer data)
{
  Outcome *outcome = data;

  begin_callback (outcome);
  pto_worker_run_graph_finish (PTO_WORKER (object), result, &outcome->error);
}

/* Each is waited for in here, which must not take longer than it takes to say no. */
static gboolean
wait_inside (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Fixture *fixture = data;
  g_autoptr (Outcome) run = outcome_new (fixture);
  g_autoptr (Outcome) launch = outcome_new (fixture);
  g_autoptr (Outcome) close = outcome_new (fixture);
  g_autoptr (Outcome) registration = outcome_new (fixture);
  g_autoptr (PtoGraph) empty = pto_graph_new ();

  pto_worker_run_async (fixture->worker, graph, fixture, NULL, NULL, NULL, NULL, has_run, run);
  wait_for (run, 1);
  g_assert_error (run->error, PTO_ERROR, PTO_ERROR_BUSY);
  g_assert_cmpstr (run->error->message, ==,
                   "an orchestration function can not use its own worker for another run");
  pto_worker_run_graph_async (fixture->worker, empty, NULL, NULL, NULL, graph_has_run, launch);
  wait_for (launch, 1);
  g_assert_error (launch->error, PTO_ERROR, PTO_ERROR_BUSY);
  pto_worker_close_async (fixture->worker, not_closed, close);
  wait_for (close, 1);
  g_assert_error (close->error, PTO_ERROR, PTO_ERROR_BUSY);
  g_assert_nonnull (strstr (close->error->message, "close() ends the run"));
  g_assert_cmpint (pto_worker_get_state (fixture->worker), ==, PTO_WORKER_STATE_READY);
  /* What the children were forked without. */
  pto_worker_register_async (fixture->worker, fixture->callable, NULL, registered, registration);
  wait_for (registration, 1);
  g_assert_no_error (registration->error);
  return graph (orchestrator, args, config, data, error);
}

static void
test_inside (Fixture *fixture, gconstpointer machine)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Outcome) run = outcome_new (fixture);

  register_sub (fixture, machine);
  pto_worker_run (fixture->worker, wait_inside, fixture, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  pto_worker_run_async (fixture->worker, wait_inside, fixture, NULL, NULL, NULL, NULL, has_run,
                        run);
  wait_for (run, 1);
  g_assert_no_error (run->error);
}

int
main (int argc, char **argv)
{
  static const char *const machines[] = { "chip", "isolated", "level-3", "level-4" };
  static const struct
  {
    const char *name;
    void (*func) (Fixture *fixture, gconstpointer machine);
  } tests[] = { { "start", test_start },
                { "two-starts", test_two_starts },
                { "cancelled-start", test_cancelled_start },
                { "start-and-run", test_start_and_run },
                { "run-starts", test_run_starts },
                { "start-and-close", test_start_and_close },
                { "kept", test_kept },
                { "register", test_register },
                { "close-and-run", test_close_and_run },
                { "close-new", test_close_new },
                { "inside", test_inside } };

  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (tests); i++)
    for (guint machine = CHIP; machine <= LEVEL_4; machine++)
      {
        g_autofree char *path
            = g_strdup_printf ("/pto/life/%s/%s", tests[i].name, machines[machine]);

        g_test_add (path, Fixture, GUINT_TO_POINTER (machine), set_up, tests[i].func, tear_down);
      }
  return g_test_run ();
}
