/* test-blocked.c: does the program hear of a submit that waits for room, or that finds none,
 * whatever its worker is?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The handler of the library's log ends the wait: without a warning there would be no end.
 */
#include "level-test.h"

#include <string.h>

#define BEHIND 10u

typedef struct
{
  const char *name;
  guint level;
  gboolean isolate;
  PtoChildMode mode;
} Kind;

static const Kind kinds[] = { { "chip", 2, FALSE, 0 },
                              { "isolated", 2, TRUE, 0 },
                              { "level-3/processes", 3, FALSE, PTO_CHILD_MODE_PROCESS },
                              { "level-3/threads", 3, FALSE, PTO_CHILD_MODE_THREAD },
                              { "level-4/threads", 4, FALSE, PTO_CHILD_MODE_THREAD } };

static const char hold_kernel[] = "#include \"tensor.h\"\n"
                                  "#include <unistd.h>\n"
                                  "void kernel_entry (int64_t *args)\n"
                                  "{\n"
                                  "  const TensorData *tensor = (const TensorData *) args[0];\n"
                                  "  volatile uint64_t *word = (uint64_t *) tensor->buffer.addr;\n"
                                  "  while (args[1] == 0 && *word == 0)\n"
                                  "    usleep (100);\n"
                                  "}\n";

typedef struct
{
  const Kind *kind;
  LevelTestBoard board;
  PtoCallable *kernel;
  PtoCallableHandle *handle;
  guint n_lines;
} Test;

static gboolean
hold (PtoTaskArgs *args, gpointer data, GError **error)
{
  return pto_task_args_get_scalar (args, 1) != 0
         || level_test_wait_in_task (args, level_test_words (args, 0), 1);
}

static void
hear (const char *domain, GLogLevelFlags flags, const char *message, gpointer data)
{
  Test *test = data;

  g_assert_cmpint (flags & G_LOG_LEVEL_MASK, ==, G_LOG_LEVEL_WARNING);
  g_test_message ("%s", message);
  /* On a slow machine those that come behind it are told of, too. */
  object_test_assert_contains (
      message, test->n_lines == 0 ? "[TaskRing] BLOCKED (Flow Control): ring=1, current=3, "
                                    "last_alive=0, active=3/3 (100.0%), waited="
                                  : "[TaskRing] BLOCKED (Flow Control): ring=1, current=");
  object_test_assert_contains (message, "set task-window to 8 or more");
  test->n_lines++;
  atomic_store (&test->board.words[0], 1);
}

static gboolean
submit_one (Test *test, PtoOrchestrator *orchestrator, gboolean passes, GError **error)
{
  g_autoptr (PtoTaskArgs) args = pto_task_args_new ();

  pto_task_args_add_tensor (args, test->board.tensor, PTO_DIRECTION_NO_DEP);
  pto_task_args_add_scalar (args, passes);
  return pto_orchestrator_begin_scope (orchestrator, error)
         && (test->kind->level == 2
                 ? pto_orchestrator_submit (orchestrator, test->kernel, args, error)
                 : pto_orchestrator_submit_sub (orchestrator, test->handle, args, -1, error))
         && pto_orchestrator_end_scope (orchestrator, error);
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  gboolean ok = submit_one (data, orchestrator, FALSE, error);

  for (guint i = 0; i < BEHIND && ok; i++)
    ok = submit_one (data, orchestrator, TRUE, error);
  return ok;
}

static void
test_kind (gconstpointer data)
{
  Test test = { .kind = data };
  g_autoptr (PtoWorker) worker
      = test.kind->level == 2
            ? g_object_new (PTO_TYPE_WORKER, "isolate", test.kind->isolate, NULL)
            : g_object_new (PTO_TYPE_WORKER, "level", test.kind->level, "n-sub-workers", 2,
                            "child-mode", test.kind->mode, NULL);
  char *dir = object_test_make_dir ();
  g_autoptr (PtoRunStatistics) statistics = NULL;
  GError *error = NULL;
  guint handler;

  level_test_board_init (&test.board);
  /* On par the thread that hears might be the one that sleeps in the kernel. */
  if (test.kind->level == 2)
    pto_worker_set_parameter (worker, "backend", "threads", &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (worker, "task-window", "4", &error);
  g_assert_no_error (error);
  pto_worker_set_parameter (worker, "blocked-notice", "10", &error);
  g_assert_no_error (error);
  if (test.kind->level == 2)
    {
      test.kernel = object_test_kernel (dir, "hold.c", hold_kernel);
      test.handle = pto_worker_register (worker, test.kernel, NULL, &error);
      g_assert_no_error (error);
    }
  else
    test.handle = level_test_register (worker, "hold", hold);
  handler = g_log_set_handler ("Pto", G_LOG_LEVEL_MASK, hear, &test);
  pto_worker_run (worker, graph, &test, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  statistics = pto_worker_dup_statistics (worker);
  g_assert_cmpuint (pto_run_statistics_get_completed (statistics), ==, BEHIND + 1);
  g_assert_cmpuint (test.n_lines, >=, 1);
  pto_worker_close (worker);
  g_log_remove_handler ("Pto", handler);
  pto_callable_handle_unref (test.handle);
  g_clear_object (&test.kernel);
  level_test_board_clear (&test.board);
  object_test_remove_dir (dir);
}

/* --- a ring that is too small --- */

#define N_HELD 100u
#define N_BYTES 65536u

typedef struct
{
  gboolean allocates; /* or orders */
  gboolean goes_on;   /* after it was told */
  guint n_told;
} Held;

/* All of it is held by the outermost scope, so no ring is too large. */
static gboolean
hold_all (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
          GError **error)
{
  const guint64 shape[] = { N_BYTES - 1024 };
  Held *held = data;

  for (guint i = 0; i < N_HELD; i++)
    {
      g_autoptr (PtoTensor) tensor = NULL;
      GError *local = NULL;

      if (held->allocates)
        tensor = pto_orchestrator_alloc (orchestrator, PTO_DTYPE_UINT8, 1, shape, &local);
      else
        pto_orchestrator_submit_order (orchestrator, NULL, &local);
      if (local == NULL)
        continue;
      held->n_told++;
      if (!held->goes_on)
        {
          g_propagate_error (error, local);
          return FALSE;
        }
      g_error_free (local);
    }
  return TRUE;
}

/* The number behind some words. */
static guint64
number_behind (const char *message, const char *words)
{
  const char *at = strstr (message, words);

  g_assert_nonnull (at);
  return g_ascii_strtoull (at + strlen (words), NULL, 10);
}

/* What is said is true of what was submitted by then, and what is advised leads somewhere. */
static void
try_sizes (const Kind *kind, gboolean allocates, gboolean goes_on)
{
  const char *knob = allocates ? "heap" : "task-window";
  g_autofree char *words = g_strdup_printf ("Set %s to ", knob);
  guint64 size = allocates ? 2 * N_BYTES : 8;
  guint n_runs = 0;
  gboolean ok = FALSE;

  for (; !ok; n_runs++)
    {
      g_autoptr (PtoWorker) worker
          = kind->level == 2 ? g_object_new (PTO_TYPE_WORKER, "isolate", kind->isolate, NULL)
                             : g_object_new (PTO_TYPE_WORKER, "level", kind->level, "n-sub-workers",
                                             1, "child-mode", kind->mode, NULL);
      g_autofree char *value = g_strdup_printf ("%" G_GUINT64_FORMAT, size);
      g_autoptr (GError) error = NULL;
      Held held = { .allocates = allocates, .goes_on = goes_on };

      pto_worker_set_parameter (worker, knob, value, &error);
      g_assert_no_error (error);
      ok = pto_worker_run (worker, hold_all, &held, NULL, NULL, NULL, &error);
      pto_worker_close (worker);
      if (ok)
        break;
      g_assert_nonnull (error);
      g_assert_cmpint (error->code, ==, allocates ? PTO_ERROR_HEAP_RING : PTO_ERROR_TASK_RING);
      /* Of a chip in another process it may have said all before it could hear. */
      g_assert_true (held.n_told > 0 || kind->isolate);
      object_test_assert_contains (error->message, "(this run holds at least ");
      g_assert_cmpuint (number_behind (error->message, "this run holds at least "), >, size / 2);
      g_assert_cmpuint (number_behind (error->message, "this run holds at least "), <=,
                        allocates ? N_HELD * N_BYTES : N_HELD);
      g_assert_cmpuint (number_behind (error->message, words), >=, 2 * size);
      size = number_behind (error->message, words);
    }
  g_assert_cmpuint (n_runs, >=, 1);
  g_assert_cmpuint (n_runs, <=, 8);
}

static void
test_too_small (gconstpointer data)
{
  for (guint allocates = 0; allocates < 2; allocates++)
    for (guint goes_on = 0; goes_on < 2; goes_on++)
      try_sizes (data, allocates != 0, goes_on != 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  /* Warnings are what is asked for. */
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_autofree char *path = g_strconcat ("/pto/blocked/", kinds[i].name, NULL);

      g_autofree char *too_small = g_strconcat ("/pto/too-small/", kinds[i].name, NULL);

      g_test_add_data_func (path, &kinds[i], test_kind);
      g_test_add_data_func (too_small, &kinds[i], test_too_small);
    }
  return g_test_run ();
}
