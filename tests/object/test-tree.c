/* test-tree.c: do workers of workers run, fail and end as one tree?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  WORD_COUNT,
  WORD_READY,
  WORD_PIDS = 16,   /* of whoever has run a task, by its number */
  WORD_FILLED = 256 /* by chips */
};

/* L4/0 with L3/0 and L3/1 below it, each with one chip and one SUB worker. */
typedef struct
{
  LevelTestBoard board;
  PtoWorker *l4;
  PtoWorker *l3[2];
  PtoCallableHandle *sub[2];  /* on l3 */
  PtoCallableHandle *chip[2]; /* on l3, or NULL */
  PtoCallableHandle *walk[2]; /* on l4 */
  PtoCallableHandle *direct;  /* for a chip below l4, or NULL */
  guint64 number;
} Tree;

static gboolean
count (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);

  atomic_store (&words[WORD_PIDS + pto_task_args_get_scalar (args, 1)], (guint64) getpid ());
  atomic_fetch_add (&words[WORD_COUNT], 1);
  return TRUE;
}

static gboolean
exit_here (PtoTaskArgs *args, gpointer data, GError **error)
{
  _exit (3);
}

static gboolean
fail (PtoTaskArgs *args, gpointer data, GError **error)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE, "my own words");
  return FALSE;
}

/* In a process of level 3: what it was given goes on to its SUB worker, and to its chip. */
static gboolean
walk (Tree *tree, guint id, PtoOrchestrator *orchestrator, PtoTaskArgs *args, GError **error)
{
  PtoTensor *board = pto_task_args_get_tensor (args, 0);
  guint64 number = pto_task_args_get_scalar (args, 1);
  guint64 shape = 4, offset = WORD_FILLED + 4 * id;
  g_autoptr (PtoTensor) part = pto_tensor_view (board, 1, &shape, &offset, error);

  if (part == NULL
      || !level_test_submit (orchestrator, tree->sub[id], board, PTO_DIRECTION_INOUT, number, -1,
                             error))
    return FALSE;
  return tree->chip[id] == NULL
         || level_test_submit (orchestrator, tree->chip[id], part, PTO_DIRECTION_OUTPUT,
                               700 + number, 0, error);
}

static gboolean
walk_0 (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  return walk (data, 0, orchestrator, args, error);
}

static gboolean
walk_1 (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
        GError **error)
{
  return walk (data, 1, orchestrator, args, error);
}

/* In this process. */
static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Tree *tree = data;

  for (guint i = 0; i < 2; i++)
    if (!level_test_submit (orchestrator, tree->walk[i], tree->board.tensor, PTO_DIRECTION_NO_DEP,
                            tree->number + i, (int) i, error))
      return FALSE;
  return TRUE;
}

static void
build_of (Tree *tree, PtoChildMode mode, PtoSubFunc func, PtoCallable *chip, PtoRestart restart)
{
  g_autoptr (GError) error = NULL;

  memset (tree, 0, sizeof *tree);
  level_test_board_init (&tree->board);
  tree->l4
      = g_object_new (PTO_TYPE_WORKER, "level", 4, "restart", restart, "child-mode", mode, NULL);
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (PtoCallable) callable = pto_orchestration_function_new (
          i == 0 ? "walk-0" : "walk-1", i == 0 ? walk_0 : walk_1, tree, NULL);

      tree->l3[i] = chip != NULL ? level_test_host (3, 1, 1)
                                 : g_object_new (PTO_TYPE_WORKER, "level", 3, "n-sub-workers", 1,
                                                 "child-mode", mode, NULL);
      tree->sub[i] = level_test_register (tree->l3[i], "bottom", func);
      if (chip != NULL)
        tree->chip[i] = pto_worker_register (tree->l3[i], chip, NULL, &error);
      g_assert_no_error (error);
      tree->walk[i] = pto_worker_register (tree->l4, callable, NULL, &error);
      g_assert_no_error (error);
      pto_worker_add_worker (tree->l4, tree->l3[i], &error);
      g_assert_no_error (error);
    }
}

static void
build (Tree *tree, PtoSubFunc func, PtoCallable *chip, PtoRestart restart)
{
  build_of (tree, PTO_CHILD_MODE_PROCESS, func, chip, restart);
}

static void
take_apart (Tree *tree)
{
  pto_worker_close (tree->l4);
  for (guint i = 0; i < 2; i++)
    {
      pto_callable_handle_unref (tree->sub[i]);
      pto_callable_handle_unref (tree->walk[i]);
      g_clear_pointer (&tree->chip[i], pto_callable_handle_unref);
      g_object_unref (tree->l3[i]);
    }
  g_assert_finalize_object (tree->l4);
  level_test_board_clear (&tree->board);
}

static void
test_recursion (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) chip = NULL;
  char *dir = object_test_make_dir ();
  LevelTestState state;
  Tree tree;

  chip = level_test_fill (dir);
  level_test_begin (&state);
  build (&tree, count, chip, PTO_RESTART_NEVER);
  g_assert_true (pto_worker_start (tree.l4, NULL, &error));
  g_assert_no_error (error);
  for (guint64 i = 1; i <= 5; i++)
    {
      tree.number = 10 * i;
      g_assert_true (pto_worker_run (tree.l4, graph, &tree, NULL, NULL, NULL, &error));
      g_assert_no_error (error);
      g_assert_cmpuint (tree.board.words[WORD_COUNT], ==, 2 * i);
      for (guint k = 0; k < 8; k++)
        g_assert_cmpuint (tree.board.words[WORD_FILLED + k], ==, 700 + 10 * i + k / 4);
    }
  g_assert_cmpuint (tree.board.words[WORD_PIDS + 10], !=, tree.board.words[WORD_PIDS + 11]);
  g_assert_cmpuint (tree.board.words[WORD_PIDS + 10], !=, (guint64) getpid ());
  /* Both kinds of task above the chips have gone where they belong. */
  take_apart (&tree);
  level_test_end (&state);
  object_test_remove_dir (dir);
}

/* What failed at the bottom is told at the top, with every step of the way. */
static void
test_chain (void)
{
  g_autoptr (GError) error = NULL;
  LevelTestState state;
  Tree tree;

  level_test_begin (&state);
  build (&tree, fail, NULL, PTO_RESTART_NEVER);
  g_assert_false (pto_worker_run (tree.l4, graph, &tree, NULL, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE);
  object_test_assert_contains (error->message, "on L4/0/L3/");
  object_test_assert_contains (error->message, "task 0 (\"bottom\"), submitted at ");
  object_test_assert_contains (error->message, ", on L4/0/L3/");
  object_test_assert_contains (error->message, "/sub0 failed");
  object_test_assert_contains (error->message, "my own words");
  take_apart (&tree);
  level_test_end (&state);
}

static void
test_death_at_the_bottom (void)
{
  g_autoptr (GError) error = NULL;
  LevelTestState state;
  Tree tree;

  level_test_begin (&state);
  build (&tree, exit_here, NULL, PTO_RESTART_NEVER);
  g_assert_false (pto_worker_run (tree.l4, graph, &tree, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  object_test_assert_contains (error->message,
                               "/sub0 exited with status 3 while running \"bottom\"");
  take_apart (&tree);
  level_test_end (&state);
}

/* A worker in the middle dies: everything below it goes, and it comes back with everything. */
static gboolean
walk_into_death (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  kill (getpid (), SIGKILL);
  return TRUE;
}

static gboolean
deadly_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Tree *tree = data;

  return level_test_submit (orchestrator, tree->walk[0], tree->board.tensor, PTO_DIRECTION_NO_DEP,
                            0, 0, error);
}

static gboolean
is_gone (guint64 pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%" G_GUINT64_FORMAT "/stat", pid);
  g_autofree char *stat = NULL;
  const char *state;

  if (!g_file_get_contents (path, &stat, NULL, NULL))
    return TRUE;
  /* Dead, and whoever has inherited it has not looked yet. */
  state = strrchr (stat, ')');
  return state != NULL && (state[2] == 'Z' || state[2] == 'X');
}

static void
wait_until_gone (guint64 pid)
{
  while (!is_gone (pid))
    g_usleep (500);
}

static void
test_death_in_the_middle (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) deadly = NULL;
  PtoCallableHandle *walk_before;
  guint64 bottom;
  LevelTestState state;
  Tree tree;

  level_test_begin (&state);
  build (&tree, count, NULL, PTO_RESTART_ON_FAILURE);
  deadly = pto_orchestration_function_new ("deadly", walk_into_death, NULL, NULL);
  g_assert_true (pto_worker_run (tree.l4, graph, &tree, NULL, NULL, NULL, &error));
  g_assert_no_error (error);
  bottom = tree.board.words[WORD_PIDS];
  g_assert_false (is_gone (bottom));

  walk_before = tree.walk[0];
  tree.walk[0] = pto_worker_register (tree.l4, deadly, NULL, &error);
  g_assert_no_error (error);
  bottom = tree.board.words[WORD_PIDS];
  g_assert_false (pto_worker_run (tree.l4, deadly_graph, &tree, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  object_test_assert_contains (error->message,
                               "L4/0/L3/0 died (signal 9, Killed) while running \"deadly\"");
  g_clear_error (&error);
  wait_until_gone (bottom);
  pto_callable_handle_unref (tree.walk[0]);
  tree.walk[0] = walk_before;
  g_assert_true (pto_worker_run (tree.l4, graph, &tree, NULL, NULL, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (tree.board.words[WORD_COUNT], ==, 4);
  g_assert_cmpuint (tree.board.words[WORD_PIDS], !=, bottom);
  take_apart (&tree);
  level_test_end (&state);
}

/* A program with three levels is killed: nobody below it stays. */
static void
test_killed (void)
{
  guint64 *shared = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t pid;

  g_assert_true (shared != MAP_FAILED);
  pid = fork ();
  if (pid == 0)
    {
      Tree tree;

      build (&tree, count, NULL, PTO_RESTART_NEVER);
      if (!pto_worker_run (tree.l4, graph, &tree, NULL, NULL, NULL, NULL))
        _exit (1);
      shared[1] = tree.board.words[WORD_PIDS];
      shared[2] = tree.board.words[WORD_PIDS + 1];
      atomic_store ((_Atomic guint64 *) &shared[0], 1);
      for (;;)
        pause ();
    }
  g_assert_cmpint (pid, >, 0);
  level_test_wait ((_Atomic guint64 *) &shared[0], 1);
  g_assert_false (is_gone (shared[1]));
  g_assert_cmpint (kill (pid, SIGKILL), ==, 0);
  g_assert_cmpint (waitpid (pid, NULL, 0), ==, pid);
  wait_until_gone (shared[1]);
  wait_until_gone (shared[2]);
  g_assert_cmpint (munmap (shared, 4096), ==, 0);
}

/* A chip and a worker of level 3 below one of level 4: each gets what is for it. */
static gboolean
mixed_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Tree *tree = data;
  g_autoptr (GError) refusal = NULL;
  guint64 shape = 4, offset = WORD_FILLED;
  g_autoptr (PtoTensor) part = pto_tensor_view (tree->board.tensor, 1, &shape, &offset, error);

  g_assert_false (
      level_test_submit (orchestrator, tree->direct, part, PTO_DIRECTION_OUTPUT, 5, 0, &refusal));
  g_assert_error (refusal, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (refusal->message,
                               "\"fill_orch\" is for chips, worker 0 of L4/0 is of level 3");
  g_clear_error (&refusal);
  g_assert_false (
      level_test_submit (orchestrator, tree->walk[0], part, PTO_DIRECTION_OUTPUT, 5, 2, &refusal));
  g_assert_error (refusal, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
  object_test_assert_contains (refusal->message, "worker 2 of L4/0 is of level 2");
  return level_test_submit (orchestrator, tree->direct, part, PTO_DIRECTION_OUTPUT, 5, -1, error)
         && level_test_submit (orchestrator, tree->walk[0], tree->board.tensor,
                               PTO_DIRECTION_NO_DEP, 0, 0, error);
}

static void
test_mixed (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) chip = pto_worker_new_chip (NULL, NULL);
  g_autoptr (PtoCallable) fill = NULL;
  char *dir = object_test_make_dir ();
  LevelTestState state;
  Tree tree;

  fill = level_test_fill (dir);
  level_test_begin (&state);
  build (&tree, count, NULL, PTO_RESTART_NEVER);
  tree.direct = pto_worker_register (tree.l4, fill, NULL, &error);
  g_assert_no_error (error);
  pto_worker_add_worker (tree.l4, chip, &error);
  g_assert_no_error (error);
  g_assert_true (pto_worker_run (tree.l4, mixed_graph, &tree, NULL, NULL, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (tree.board.words[WORD_FILLED], ==, 5);
  g_assert_cmpuint (tree.board.words[WORD_COUNT], ==, 1);
  pto_callable_handle_unref (tree.direct);
  take_apart (&tree);
  level_test_end (&state);
  object_test_remove_dir (dir);
}

static gboolean
end_thread (PtoTaskArgs *args, gpointer data, GError **error)
{
  if (pto_task_args_get_scalar (args, 1) % 10 == 0)
    pthread_exit (NULL);
  return count (args, data, error);
}

static gboolean
end_thread_up_here (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                    gpointer data, GError **error)
{
  Tree *tree = data;

  if (!level_test_submit (orchestrator, tree->sub[0], pto_task_args_get_tensor (args, 0),
                          PTO_DIRECTION_INOUT, 1, -1, error))
    return FALSE;
  pthread_exit (NULL);
}

/* Workers that are threads outlive what a function does to theirs, and so do all that they have:
 * the task's error says what it was. */
static void
test_ended_threads (void)
{
  g_autoptr (GError) error = NULL;
  LevelTestState state;
  Tree tree;

  level_test_begin (&state);
  build_of (&tree, PTO_CHILD_MODE_THREAD, end_thread, NULL, PTO_RESTART_NEVER);
  pto_callable_handle_unref (tree.walk[0]);
  {
    g_autoptr (PtoCallable) callable
        = pto_orchestration_function_new ("up-here", end_thread_up_here, &tree, NULL);

    tree.walk[0] = pto_worker_register (tree.l4, callable, NULL, &error);
    g_assert_no_error (error);
  }
  g_assert_true (pto_worker_start (tree.l4, NULL, &error));
  g_assert_no_error (error);
  for (guint round = 1; round <= 3; round++)
    {
      tree.number = 8 + round;
      g_assert_false (pto_worker_run (tree.l4, graph, &tree, NULL, NULL, NULL, &error));
      /* Either may be the first. */
      if (round != 1 || strstr (error->message, "up-here") != NULL)
        object_test_assert_contains (error->message,
                                     ", on L4/0/L3/0 failed: the orchestration ended "
                                     "its thread (pthread_exit)");
      else
        object_test_assert_contains (error->message, "bottom ended its thread (pthread_exit)");
      g_clear_error (&error);
      g_assert_cmpuint (tree.board.words[WORD_COUNT], ==, round + (round > 1 ? round - 1 : 0));
    }
  take_apart (&tree);
  level_test_end (&state);
}

/* --- the list of those below --- */

typedef struct
{
  PtoWorker *above;
  PtoWorker *below;
  GThread *thread;
  GString *changes;
} List;

static void
items_changed (GListModel *model, guint position, guint removed, guint added, gpointer data)
{
  List *list = data;

  g_assert_true (g_thread_self () == list->thread);
  g_string_append_printf (list->changes, "%u-%u+%u ", position, removed, added);
}

static gpointer
add_elsewhere (gpointer data)
{
  List *list = data;

  g_assert_true (pto_worker_add_worker (list->above, list->below, NULL));
  return NULL;
}

/* It changes in the owner's context, and holds nothing once the worker is closed. */
static void
test_list (void)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  g_autoptr (PtoWorker) above = NULL;
  g_autoptr (PtoWorker) first = level_test_host (3, 2, 0);
  g_autoptr (PtoWorker) second = level_test_host (3, 0, 1);
  g_autoptr (GListModel) model = NULL;
  List list = { .thread = g_thread_self (), .changes = g_string_new (NULL) };

  g_main_context_push_thread_default (context);
  list.above = above = level_test_host (4, 0, 1);
  g_assert_true (g_list_model_get_item_type (pto_worker_get_children (above)) == PTO_TYPE_WORKER);
  g_object_get (above, "children", &model, NULL);
  g_assert_true (model == pto_worker_get_children (above));
  g_signal_connect (model, "items-changed", G_CALLBACK (items_changed), &list);
  g_assert_cmpuint (g_list_model_get_n_items (pto_worker_get_children (first)), ==, 2);

  g_assert_true (pto_worker_add_worker (above, first, NULL));
  g_assert_cmpstr (list.changes->str, ==, "0-0+1 ");
  list.below = second;
  g_thread_join (g_thread_new ("elsewhere", add_elsewhere, &list));
  g_assert_cmpuint (pto_worker_get_n_workers (above), ==, 2);
  g_assert_cmpuint (g_list_model_get_n_items (model), ==, 1);
  while (g_main_context_iteration (context, FALSE))
    ;
  g_assert_cmpstr (list.changes->str, ==, "0-0+1 1-0+1 ");
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (PtoWorker) child = g_list_model_get_item (model, i);

      g_assert_true (child == pto_worker_get_child (above, i));
    }

  pto_worker_close (above);
  g_assert_cmpstr (list.changes->str, ==, "0-0+1 1-0+1 0-2+0 ");
  g_assert_cmpint (pto_worker_get_state (first), ==, PTO_WORKER_STATE_CLOSED);
  g_assert_cmpint (pto_worker_get_state (pto_worker_get_child (first, 1)), ==,
                   PTO_WORKER_STATE_CLOSED);
  g_main_context_pop_thread_default (context);
  g_string_free (list.changes, TRUE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/pto/tree/recursion", test_recursion);
  g_test_add_func ("/pto/tree/chain", test_chain);
  g_test_add_func ("/pto/tree/death-at-the-bottom", test_death_at_the_bottom);
  g_test_add_func ("/pto/tree/death-in-the-middle", test_death_in_the_middle);
  g_test_add_func ("/pto/tree/killed", test_killed);
  g_test_add_func ("/pto/tree/mixed", test_mixed);
  g_test_add_func ("/pto/tree/ended-threads", test_ended_threads);
  g_test_add_func ("/pto/tree/list", test_list);
  return g_test_run ();
}
