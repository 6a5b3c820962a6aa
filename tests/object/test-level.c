/* test-level.c: does a worker of level 3 run chips and SUB functions as it says?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- SUB functions, each with the board as its first argument --- */

enum
{
  WORD_COUNT, /* calls */
  WORD_PID,
  WORD_STARTED,
  WORD_GO,
  WORD_RESULT,
  WORD_MET = 16 /* a word a member */
};

/* words[number]++ */
static gboolean
count (PtoTaskArgs *args, gpointer data, GError **error)
{
  atomic_fetch_add (&level_test_words (args, 0)[pto_task_args_get_scalar (args, 1)], 1);
  return TRUE;
}

static gboolean
note_pid (PtoTaskArgs *args, gpointer data, GError **error)
{
  atomic_store (&level_test_words (args, 0)[WORD_PID], (guint64) getpid ());
  return TRUE;
}

/* Says that it runs, and who it is; then hangs. number 0: until it is cancelled; 1: for ever. */
static gboolean
hang (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);
  gboolean for_ever = pto_task_args_get_scalar (args, 1) == 1;

  atomic_store (&words[WORD_PID], (guint64) getpid ());
  atomic_store (&words[WORD_STARTED], 1);
  for (;;)
    {
      if (!for_ever && pto_task_args_is_cancelled (args))
        {
          g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "asked to stop");
          return FALSE;
        }
      g_usleep (100);
    }
}

static gboolean
fail (PtoTaskArgs *args, gpointer data, GError **error)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_EMPTY, "my own words");
  return FALSE;
}

static gboolean
fail_silently (PtoTaskArgs *args, gpointer data, GError **error)
{
  return FALSE;
}

/* number: 0 SIGKILL, 1 abort, 2 exit status 3 with last words, 3 SIGSEGV */
static gboolean
die (PtoTaskArgs *args, gpointer data, GError **error)
{
  switch (pto_task_args_get_scalar (args, 1))
    {
    case 0:
      kill (getpid (), SIGKILL);
      break;
    case 1:
      signal (SIGABRT, SIG_DFL);
      abort ();
    case 2:
      fprintf (stderr, "these are my last words\n");
      _exit (3);
    default:
      signal (SIGSEGV, SIG_DFL);
      raise (SIGSEGV);
    }
  for (;;)
    pause ();
}

/* --- graphs --- */

typedef struct
{
  LevelTestState state;
  LevelTestBoard board;
  PtoWorker *host;
  PtoCallableHandle *handles[4];
  guint64 number;
  gboolean more; /* ends with a count by an independent and by a dependent task */
} Test;

static void
begin (Test *test, guint n_devices, guint n_subs)
{
  memset (test, 0, sizeof *test);
  level_test_begin (&test->state);
  level_test_board_init (&test->board);
  test->host = level_test_host (3, n_devices, n_subs);
}

static void
end (Test *test)
{
  for (guint i = 0; i < G_N_ELEMENTS (test->handles); i++)
    g_clear_pointer (&test->handles[i], pto_callable_handle_unref);
  pto_worker_close (test->host);
  g_assert_finalize_object (test->host);
  level_test_board_clear (&test->board);
  level_test_end (&test->state);
}

/* Handle 0 with the test's number on the board. With more: count (handle 1) of word 1 that needs
 * it, and of word 0 through NO_DEP, which does not. */
static gboolean
one_task (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
          GError **error)
{
  Test *test = data;
  PtoTensor *board = test->board.tensor;

  if (!level_test_submit (orchestrator, test->handles[0], board, PTO_DIRECTION_INOUT, test->number,
                          0, error))
    return FALSE;
  return !test->more
         || (level_test_submit (orchestrator, test->handles[1], board, PTO_DIRECTION_INOUT, 100, 1,
                                error)
             && level_test_submit (orchestrator, test->handles[1], board, PTO_DIRECTION_NO_DEP, 101,
                                   1, error));
}

static void
run_well (Test *test, PtoOrchestrationFunc graph)
{
  g_autoptr (GError) error = NULL;
  gboolean ok = pto_worker_run (test->host, graph, test, NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  g_assert_true (ok);
}

static GError *
run_badly (Test *test, PtoOrchestrationFunc graph)
{
  GError *error = NULL;

  g_assert_false (pto_worker_run (test->host, graph, test, NULL, NULL, NULL, &error));
  g_assert_nonnull (error);
  return error;
}

/* --- tests --- */

static gboolean
two_chips_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                 gpointer data, GError **error)
{
  Test *test = data;

  for (guint64 i = 0; i < 2; i++)
    {
      guint64 shape = 128, offset = i * 128;
      g_autoptr (PtoTensor) half = pto_tensor_view (test->board.tensor, 1, &shape, &offset, error);

      if (!level_test_submit (orchestrator, test->handles[0], half, PTO_DIRECTION_OUTPUT, 20 + i,
                              (int) i, error))
        return FALSE;
    }
  return level_test_submit (orchestrator, test->handles[1], test->board.tensor, PTO_DIRECTION_INOUT,
                            0, -1, error);
}

/* words[256] = sum of the 256 before it */
static gboolean
sum (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);

  for (int i = 0; i < 256; i++)
    words[256] += words[i];
  return TRUE;
}

static void
test_two_chips (gconstpointer mode)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) fill = NULL;
  g_autoptr (PtoRunStatistics) statistics = NULL;
  char *dir = object_test_make_dir ();
  Test test;

  begin (&test, 0, 0);
  g_object_unref (test.host);
  test.host = g_object_new (PTO_TYPE_WORKER, "level", 3, "device-ids",
                            g_variant_new_parsed ("[uint32 4, 5]"), "n-sub-workers", 1,
                            "child-mode", GPOINTER_TO_INT (mode), NULL);
  fill = level_test_fill (dir);
  test.handles[0] = pto_worker_register (test.host, fill, NULL, &error);
  g_assert_no_error (error);
  test.handles[1] = level_test_register (test.host, "sum", sum);
  for (guint64 i = 1; i <= 3; i++)
    {
      run_well (&test, two_chips_graph);
      g_assert_cmpuint (test.board.words[256], ==, i * 128 * (20 + 21));
    }
  statistics = pto_worker_dup_statistics (test.host);
  g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 3);
  g_assert_cmpuint (pto_run_statistics_get_edges (statistics), ==, 2);
  g_assert_cmpuint (pto_worker_get_n_workers (test.host), ==, 2);
  g_assert_cmpuint (pto_worker_get_device_id (pto_worker_get_child (test.host, 1)), ==, 5);
  g_assert_null (pto_worker_get_child (test.host, 2));
  g_assert_null (pto_worker_ref_trace (test.host));
  end (&test);
  object_test_remove_dir (dir);
}

typedef struct
{
  Test *test;
  PtoDirection first;
  PtoDirection second;
} Pair;

static gboolean
pair_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  Pair *pair = data;
  Test *test = pair->test;

  return level_test_submit (orchestrator, test->handles[0], test->board.tensor, pair->first, 0, 0,
                            error)
         && level_test_submit (orchestrator, test->handles[0], test->board.tensor, pair->second, 0,
                               1, error);
}

/* Which pairs of tags on the same tensor order two tasks: seed 002's table, and WAR. */
static void
test_tags (void)
{
  static const char *const expected[] = {
    /* second: in, out, inout, out-existing, no-dep */
    "01110", /* first: in */
    "11110", /* out */
    "11110", /* inout */
    "11110", /* out-existing */
    "00000", /* no-dep */
  };
  Test test;

  begin (&test, 0, 2);
  test.handles[0] = level_test_register (test.host, "count", count);
  for (guint first = 0; first < 5; first++)
    for (guint second = 0; second < 5; second++)
      {
        Pair pair = { &test, (PtoDirection) first, (PtoDirection) second };
        g_autoptr (GError) error = NULL;
        g_autoptr (PtoRunStatistics) statistics = NULL;

        g_assert_true (pto_worker_run (test.host, pair_graph, &pair, NULL, NULL, NULL, &error));
        g_assert_no_error (error);
        statistics = pto_worker_dup_statistics (test.host);
        g_assert_cmpuint (pto_run_statistics_get_edges (statistics), ==,
                          (guint64) (expected[first][second] - '0'));
      }
  g_assert_cmpuint (test.board.words[0], ==, 50);
  end (&test);
}

/* args: board, out, out2; notes their addresses */
static gboolean
note_addresses (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);

  for (guint i = 1; i < pto_task_args_get_n_tensors (args); i++)
    {
      words[i] = pto_tensor_get_address (pto_task_args_get_tensor (args, i));
      *level_test_words (args, i) = 40 + i;
    }
  return TRUE;
}

/* args: board, a, b, c */
static gboolean
add_up (PtoTaskArgs *args, gpointer data, GError **error)
{
  level_test_words (args, 0)[WORD_RESULT]
      = *level_test_words (args, 1) + *level_test_words (args, 2) + *level_test_words (args, 3);
  return TRUE;
}

static gboolean
memory_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
              gpointer data, GError **error)
{
  Test *test = data;
  guint64 shape = 10;
  g_autoptr (PtoTensor) a
      = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_UINT64, 1, &shape, error);
  g_autoptr (PtoTensor) b
      = pto_orchestrator_make_tensor (orchestrator, PTO_DTYPE_UINT64, 1, &shape, error);
  g_autoptr (PtoTensor) c
      = pto_orchestrator_alloc (orchestrator, PTO_DTYPE_UINT64, 1, &shape, error);
  g_autoptr (PtoTaskArgs) task = pto_task_args_new ();
  guint64 *memory;

  if (a == NULL || b == NULL || c == NULL)
    return FALSE;
  g_assert_cmpuint (pto_tensor_get_address (a), ==, 0);
  memory = (guint64 *) (guintptr) pto_tensor_get_address (c);
  g_assert_nonnull (memory);
  g_assert_cmpuint ((guintptr) memory % 1024, ==, 0);
  memory[0] = 1000;
  pto_task_args_add_tensor (task, test->board.tensor, PTO_DIRECTION_INOUT);
  pto_task_args_add_tensor (task, a, PTO_DIRECTION_OUTPUT);
  pto_task_args_add_tensor (task, b, PTO_DIRECTION_OUTPUT);
  if (!pto_orchestrator_submit_sub (orchestrator, test->handles[0], task, -1, error))
    return FALSE;
  pto_task_args_reset (task);
  pto_task_args_add_tensor (task, test->board.tensor, PTO_DIRECTION_INOUT);
  pto_task_args_add_tensor (task, a, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (task, b, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (task, c, PTO_DIRECTION_INPUT);
  return pto_orchestrator_submit_sub (orchestrator, test->handles[1], task, -1, error);
}

static void
test_memory (void)
{
  Test test;

  begin (&test, 0, 2);
  test.handles[0] = level_test_register (test.host, "note", note_addresses);
  test.handles[1] = level_test_register (test.host, "add-up", add_up);
  for (int i = 0; i < 3; i++)
    {
      run_well (&test, memory_graph);
      g_assert_cmpuint (test.board.words[WORD_RESULT], ==, 41 + 42 + 1000);
      g_assert_cmpuint (test.board.words[1] % 1024, ==, 0);
      /* One slab for both outputs of a submit. */
      g_assert_cmpuint (test.board.words[2], ==, test.board.words[1] + 1024);
    }
  end (&test);
}

/* --- a tensor without memory that two workers use at the same time --- */

typedef struct
{
  Test *test;
  PtoTensor *tensor;
  PtoWorker *worker;
  PtoCallableHandle *write;
  PtoCallableHandle *read;
  guint number;
  GError *error;
} Sharer;

/* args: tensor; number */
static gboolean
write_number (PtoTaskArgs *args, gpointer data, GError **error)
{
  *level_test_words (args, 0) = pto_task_args_get_scalar (args, 1);
  return TRUE;
}

/* args: tensor, board; number. Into the word of that number. */
static gboolean
read_number (PtoTaskArgs *args, gpointer data, GError **error)
{
  level_test_words (args, 1)[pto_task_args_get_scalar (args, 2)] = *level_test_words (args, 0);
  return TRUE;
}

static gboolean
write_and_read (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config,
                gpointer data, GError **error)
{
  Sharer *sharer = data;
  g_autoptr (PtoTaskArgs) task = pto_task_args_new ();

  if (!level_test_submit (orchestrator, sharer->write, sharer->tensor, PTO_DIRECTION_OUTPUT,
                          sharer->number, -1, error))
    return FALSE;
  /* The other one has submitted its output, too. */
  atomic_fetch_add (&sharer->test->board.words[WORD_STARTED], 1);
  level_test_wait (&sharer->test->board.words[WORD_STARTED], 2);
  pto_task_args_add_tensor (task, sharer->tensor, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (task, sharer->test->board.tensor, PTO_DIRECTION_NO_DEP);
  pto_task_args_add_scalar (task, sharer->number);
  return pto_orchestrator_submit_sub (orchestrator, sharer->read, task, -1, error);
}

static gpointer
share (gpointer data)
{
  Sharer *sharer = data;

  pto_worker_run (sharer->worker, write_and_read, sharer, NULL, NULL, NULL, &sharer->error);
  return NULL;
}

/* Each run has memory of its own for it: the first runs of both workers, and later ones. */
static void
test_shared_tensor (void)
{
  g_autoptr (PtoWorker) other = level_test_host (3, 0, 1);
  g_autoptr (PtoTensor) tensor = NULL;
  guint64 shape = 16;
  Sharer sharers[2];
  Test test;

  begin (&test, 0, 1);
  tensor = pto_tensor_new (PTO_DTYPE_UINT64, 1, &shape);
  for (guint i = 0; i < 2; i++)
    {
      PtoWorker *worker = i == 0 ? test.host : other;

      sharers[i] = (Sharer){ .test = &test, .tensor = tensor, .worker = worker, .number = 20 + i };
      sharers[i].write = test.handles[2 * i] = level_test_register (worker, "write", write_number);
      sharers[i].read = test.handles[2 * i + 1] = level_test_register (worker, "read", read_number);
      g_assert_true (pto_worker_start (worker, NULL, NULL));
    }
  for (guint round = 0; round < 3; round++)
    {
      GThread *thread = g_thread_new ("share", share, &sharers[1]);

      share (&sharers[0]);
      g_thread_join (thread);
      for (guint i = 0; i < 2; i++)
        {
          g_assert_no_error (sharers[i].error);
          g_assert_cmpuint (test.board.words[20 + i], ==, 20 + i);
          test.board.words[20 + i] = 0;
        }
      test.board.words[WORD_STARTED] = 0;
    }
  pto_worker_close (other);
  end (&test);
}

/* args: board; number of the member, of members. All of them must be here at one time. */
static gboolean
meet (PtoTaskArgs *args, gpointer data, GError **error)
{
  _Atomic guint64 *words = level_test_words (args, 0);
  guint64 members = pto_task_args_get_scalar (args, 2);

  atomic_store (&words[WORD_MET + pto_task_args_get_scalar (args, 1)], 1);
  for (guint64 i = 0; i < members; i++)
    if (!level_test_wait_in_task (args, &words[WORD_MET + i], 1))
      return FALSE;
  atomic_fetch_add (&words[WORD_COUNT], 1);
  return TRUE;
}

static gboolean
submit_group (Test *test, PtoOrchestrator *orchestrator, guint members, const int *workers,
              guint n_workers, GError **error)
{
  PtoTaskArgs *list[8] = { NULL };
  gboolean ok;

  for (guint i = 0; i < members; i++)
    {
      list[i] = pto_task_args_new ();
      pto_task_args_add_tensor (list[i], test->board.tensor, PTO_DIRECTION_NO_DEP);
      pto_task_args_add_scalar (list[i], i);
      pto_task_args_add_scalar (list[i], members);
    }
  ok = pto_orchestrator_submit_sub_group (orchestrator, test->handles[0], list, members, workers,
                                          n_workers, error);
  for (guint i = 0; i < members; i++)
    pto_task_args_unref (list[i]);
  return ok;
}

static gboolean
group_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  static const struct
  {
    guint members;
    int workers[4];
    guint n_workers;
    int code;
    const char *text;
  } refused[] = {
    { 5, { 0 }, 0, PTO_ERROR_INVALID_ARGS, "L3/0" },
    { 2, { 1, 1 }, 2, PTO_ERROR_INVALID_ARGS, "worker 1 is named twice" },
    { 2, { 0, 7 }, 2, PTO_ERROR_NOT_FOUND, "worker 7" },
    { 2, { 0 }, 1, PTO_ERROR_INVALID_ARGS, "2 members and names 1 workers" },
    { 2, { 0, -2 }, 2, PTO_ERROR_INVALID_ARGS, "no worker -2" },
  };
  Test *test = data;

  for (guint i = 0; i < G_N_ELEMENTS (refused); i++)
    {
      g_autoptr (GError) refusal = NULL;

      g_assert_false (submit_group (test, orchestrator, refused[i].members, refused[i].workers,
                                    refused[i].n_workers, &refusal));
      g_assert_error (refusal, PTO_ERROR, refused[i].code);
      object_test_assert_contains (refusal->message, refused[i].text);
    }
  /* What was refused has not hurt. */
  return submit_group (test, orchestrator, 4, NULL, 0, error)
         && submit_group (test, orchestrator, 2, (int[]){ 3, 1 }, 2, error)
         && submit_group (test, orchestrator, 3, (int[]){ -1, 2, -1 }, 3, error);
}

static void
test_group (void)
{
  Test test;
  g_autoptr (PtoRunStatistics) statistics = NULL;

  begin (&test, 0, 4);
  test.handles[0] = level_test_register (test.host, "meet", meet);
  run_well (&test, group_graph);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 4 + 2 + 3);
  statistics = pto_worker_dup_statistics (test.host);
  g_assert_cmpuint (pto_run_statistics_get_tasks (statistics), ==, 3);
  end (&test);
}

/* --- refusals --- */

static void
assert_refused (GError **error, int code, const char *text)
{
  g_assert_error (*error, PTO_ERROR, code);
  object_test_assert_contains ((*error)->message, text);
  g_clear_error (error);
}

static gboolean
refusal_graph (PtoOrchestrator *o, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
               GError **error)
{
  Test *test = data;
  PtoTensor *board = test->board.tensor;
  PtoCallableHandle *sub = test->handles[0];
  PtoCallableHandle *chip = test->handles[1];
  g_autoptr (GError) refusal = NULL;
  g_autoptr (PtoTaskArgs) list = pto_task_args_new ();
  guint64 shape = 8, none[] = { 0, 0 }, part[] = { 4, 4 };
  g_autofree guint64 *memory = g_new0 (guint64, shape);
  g_autoptr (PtoTensor) private
      = pto_tensor_new_external ((guint64) (guintptr) memory, PTO_DTYPE_UINT64, 1, &shape);
  g_autoptr (PtoTensor) matrix
      = pto_tensor_reshape (board, 2, (guint64[]){ LEVEL_TEST_WORDS / 16, 16 }, NULL);
  g_autoptr (PtoTensor) gaps = pto_tensor_view (matrix, 2, part, none, NULL);

  g_assert_false (pto_orchestrator_submit_next_level (o, sub, NULL, NULL, -1, &refusal));
  assert_refused (&refusal, PTO_ERROR_INVALID_ARGS, "\"count\" is a SUB function: use submit_sub");
  g_assert_false (pto_orchestrator_submit_sub (o, chip, NULL, -1, &refusal));
  assert_refused (&refusal, PTO_ERROR_INVALID_ARGS, "use submit_next_level");
  g_assert_false (pto_orchestrator_submit_sub (o, sub, NULL, -7, &refusal));
  assert_refused (&refusal, PTO_ERROR_INVALID_ARGS, "no worker -7");
  g_assert_false (level_test_submit (o, sub, board, PTO_DIRECTION_INPUT, 0, 9, &refusal));
  g_assert_nonnull (refusal);
  object_test_assert_contains (refusal->message, "L3/0 has no");
  object_test_assert_contains (refusal->message, "9");
  g_clear_error (&refusal);
  g_assert_false (level_test_submit (o, sub, private, PTO_DIRECTION_INPUT, 0, -1, &refusal));
  assert_refused (&refusal, PTO_ERROR_NOT_SHARED, "argument 0 lies in private memory");
  g_assert_false (level_test_submit (o, sub, gaps, PTO_DIRECTION_INPUT, 0, -1, &refusal));
  assert_refused (&refusal, PTO_ERROR_INVALID_ARGS, "argument 0");
  pto_task_args_add_scalar (list, 1);
  pto_task_args_add_tensor (list, board, PTO_DIRECTION_INPUT);
  g_assert_false (pto_orchestrator_submit_sub (o, sub, list, -1, &refusal));
  assert_refused (&refusal, PTO_ERROR_INVALID_ARGS, "argument 1 is a tensor behind a scalar");
  g_assert_false (pto_orchestrator_submit_sub (o, test->handles[2], NULL, -1, &refusal));
  assert_refused (&refusal, PTO_ERROR_NOT_FOUND, "count");
  g_assert_false (pto_orchestrator_submit (
      o,
      pto_chip_orchestration_get_kernel (
          PTO_CHIP_ORCHESTRATION (pto_callable_handle_get_callable (chip)), 0),
      NULL, &refusal));
  assert_refused (&refusal, PTO_ERROR_NOT_SUPPORTED, "use submit_next_level or submit_sub");
  g_assert_null (pto_orchestrator_alloc (o, PTO_DTYPE_UINT64, 2, none, &refusal));
  assert_refused (&refusal, PTO_ERROR_INVALID_ARGS, "the shape is refused");

  return level_test_submit (o, sub, board, PTO_DIRECTION_INOUT, WORD_COUNT, -1, error);
}

static gboolean
chip_graph (PtoOrchestrator *o, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
            GError **error)
{
  Test *test = data;
  g_autoptr (GError) refusal = NULL;

  g_assert_false (pto_orchestrator_submit_sub (o, test->handles[0], NULL, -1, &refusal));
  assert_refused (&refusal, PTO_ERROR_NOT_SUPPORTED, "submit_sub is for workers of level 3");
  return TRUE;
}

static void
test_refusals (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoCallable) fill = NULL;
  g_autoptr (PtoWorker) other = level_test_host (3, 0, 1);
  g_autoptr (PtoWorker) chip = NULL;
  char *dir = object_test_make_dir ();
  Test test;

  begin (&test, 0, 2);
  fill = level_test_fill (dir);
  test.handles[0] = level_test_register (test.host, "count", count);
  test.handles[1] = pto_worker_register (test.host, fill, NULL, &error);
  g_assert_no_error (error);
  test.handles[2] = level_test_register (other, "count", count);
  run_well (&test, refusal_graph);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);

  chip = object_test_worker ();
  g_assert_true (pto_worker_run (chip, chip_graph, &test, NULL, NULL, NULL, &error));
  g_assert_no_error (error);
  g_clear_object (&chip);
  end (&test);
  object_test_remove_dir (dir);
}

static void
test_construction (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoWorker) host = NULL;
  g_autoptr (PtoWorker) l3 = level_test_host (3, 1, 0);
  g_autoptr (PtoWorker) l4 = level_test_host (4, 0, 0);
  g_autoptr (PtoWorker) second = level_test_host (4, 0, 0);
  g_autoptr (PtoWorker) chip = NULL;
  g_autofree char *path = NULL;

  g_assert_null (pto_worker_new_host (4, 2, 0, NULL, &error));
  assert_refused (&error, PTO_ERROR_INVALID_ARGS,
                  "level 4 has no devices of its own: add workers of level 3");
  g_assert_null (pto_worker_new_host (2, 0, 0, NULL, &error));
  assert_refused (&error, PTO_ERROR_NOT_SUPPORTED, "level 2 is no host");
  g_assert_null (pto_worker_new_host (3, 500, 0, NULL, &error));
  assert_refused (&error, PTO_ERROR_INVALID_ARGS, "at most 256");
  g_assert_null (pto_worker_new_host (3, 1, 0, "a9sim", &error));
  assert_refused (&error, PTO_ERROR_NOT_FOUND, "a9sim");
  host = g_object_new (PTO_TYPE_WORKER, "level", 2, "n-sub-workers", 1, NULL);
  g_assert_false (pto_worker_start (host, NULL, &error));
  assert_refused (&error, PTO_ERROR_INVALID_ARGS, "level 2 has no SUB workers");
  g_clear_object (&host);

  chip = pto_worker_new_chip (NULL, NULL);
  g_assert_false (pto_worker_add_worker (chip, l3, &error));
  assert_refused (&error, PTO_ERROR_INVALID_ARGS, "level 3 can not be below one of level 2");
  g_assert_false (pto_worker_add_worker (l4, second, &error));
  assert_refused (&error, PTO_ERROR_INVALID_ARGS, "level 4 can not be below one of level 4");
  g_assert_true (pto_worker_add_worker (l4, l3, &error));
  g_assert_no_error (error);
  g_assert_false (pto_worker_add_worker (second, l3, &error));
  assert_refused (&error, PTO_ERROR_INVALID_ARGS, "it is below a worker already");
  g_assert_false (pto_worker_start (l3, NULL, &error));
  assert_refused (&error, PTO_ERROR_BUSY, "L4/0/L3/0 is brought up by the worker above it");
  path = pto_worker_dup_path (pto_worker_get_child (l3, 0));
  g_assert_cmpstr (path, ==, "L4/0/L3/0/L2/0");

  host = g_object_new (PTO_TYPE_WORKER, "level", 3, "heap-ring-size", (guint64) 1 << 20, NULL);
  g_assert_cmpuint (pto_worker_get_heap_ring_size (host), ==, 1 << 20);
}

/* --- failures --- */

static void
test_failure (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (PtoRunStatistics) statistics = NULL;
  Test test;

  begin (&test, 0, 2);
  test.handles[0] = level_test_register (test.host, "fail", fail);
  test.handles[1] = level_test_register (test.host, "count", count);
  test.more = TRUE;
  error = run_badly (&test, one_task);
  /* The function's own error, and where it comes from. */
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_EMPTY);
  object_test_assert_contains (error->message, "task 0 (\"fail\"), submitted at level-test.c:");
  object_test_assert_contains (error->message, ", on L3/0/sub0 failed: ");
  object_test_assert_contains (error->message, "my own words");
  g_assert_cmpuint (test.board.words[100], ==, 0);
  g_assert_cmpuint (test.board.words[101], ==, 1);
  statistics = pto_worker_dup_statistics (test.host);
  g_assert_cmpuint (pto_run_statistics_get_failed (statistics), ==, 2);
  g_assert_cmpuint (pto_run_statistics_get_completed (statistics), ==, 3);

  g_clear_pointer (&test.handles[0], pto_callable_handle_unref);
  test.handles[0] = level_test_register (test.host, "fail-silently", fail_silently);
  test.more = FALSE;
  g_clear_error (&error);
  error = run_badly (&test, one_task);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_TASK_FAILED);
  object_test_assert_contains (error->message, "fail-silently");

  g_clear_pointer (&test.handles[0], pto_callable_handle_unref);
  test.handles[0] = pto_callable_handle_ref (test.handles[1]);
  test.number = WORD_COUNT;
  run_well (&test, one_task);
  g_assert_cmpuint (test.board.words[WORD_COUNT], ==, 1);
  end (&test);
}

/* Where it was submitted, of a run, and of a graph that is launched later; without a place, and
 * with one that the program says. */
static guint place_line;

static gboolean
place_graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
             GError **error)
{
  Test *test = data;
  g_autoptr (PtoTaskArgs) none = pto_task_args_new ();
  PtoTaskArgs *const members[] = { none, none };
  PtoCallableHandle *handle = test->handles[0];

  switch (test->number)
    {
    case 0:
      place_line = __LINE__ + 1;
      return pto_orchestrator_submit_sub (orchestrator, handle, NULL, -1, error);
    case 1:
      place_line = __LINE__ + 1;
      return pto_orchestrator_submit_sub_group (orchestrator, handle, members, 2, NULL, 0, error);
    case 2:
      pto_orchestrator_set_place (orchestrator, "/elsewhere/program.x", 7);
      return (pto_orchestrator_submit_sub) (orchestrator, handle, NULL, -1, error);
    default:
      pto_orchestrator_set_place (orchestrator, NULL, 0);
      return (pto_orchestrator_submit_sub) (orchestrator, handle, NULL, -1, error);
    }
}

static void
test_place (void)
{
  g_autoptr (PtoGraph) graph = NULL;
  g_autoptr (GError) error = NULL;
  Test test;

  begin (&test, 0, 2);
  test.handles[0] = level_test_register (test.host, "fail", fail);
  for (test.number = 0; test.number < 4; test.number++)
    {
      g_autofree char *place = NULL;

      error = run_badly (&test, place_graph);
      place = test.number < 2
                  ? g_strdup_printf (", submitted at test-level.c:%u, on L3/0/", place_line)
              : test.number == 2 ? g_strdup (", submitted at program.x:7, on L3/0/")
                                 : g_strdup ("task 0 (\"fail\") on L3/0/");
      object_test_assert_contains (error->message, place);
      g_clear_error (&error);
    }
  test.number = 0;
  graph = pto_worker_capture (test.host, place_graph, &test, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 2; i++)
    {
      g_autofree char *place
          = g_strdup_printf (", submitted at test-level.c:%u, on L3/0/", place_line);

      g_assert_false (pto_worker_run_graph (test.host, graph, NULL, NULL, NULL, &error));
      object_test_assert_contains (error->message, place);
      g_clear_error (&error);
    }
  end (&test);
}

static void
test_death (void)
{
  static const char *const texts[] = {
    "L3/0/sub0 died (signal 9, Killed) while running \"die\", submitted at level-test.c:",
    "L3/0/sub0 died (signal 6, Aborted",
    "L3/0/sub0 exited with status 3 while running \"die\"",
    "L3/0/sub0 died (signal 11, Segmentation fault",
  };

  for (guint restart = 0; restart < 2; restart++)
    for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
      {
        g_autoptr (GError) error = NULL;
        Test test;

        begin (&test, 0, 0);
        g_object_unref (test.host);
        test.host = g_object_new (PTO_TYPE_WORKER, "level", 3, "n-sub-workers", 2, "restart",
                                  restart, NULL);
        test.handles[0] = level_test_register (test.host, "die", die);
        test.handles[1] = level_test_register (test.host, "count", count);
        test.number = i;
        test.more = TRUE;
        error = run_badly (&test, one_task);
        g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
        object_test_assert_contains (error->message, texts[i]);
        if (i == 2)
          object_test_assert_contains (error->message, "these are my last words");
        g_assert_cmpuint (test.board.words[100], ==, 0);
        g_assert_cmpuint (test.board.words[101], ==, 1);

        /* The same child again: either it is back, or that is said at once. */
        g_clear_error (&error);
        g_clear_pointer (&test.handles[0], pto_callable_handle_unref);
        test.handles[0] = pto_callable_handle_ref (test.handles[1]);
        test.number = WORD_COUNT;
        test.more = FALSE;
        if (restart)
          run_well (&test, one_task);
        else
          {
            error = run_badly (&test, one_task);
            g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
            object_test_assert_contains (error->message, "L3/0/sub0");
            object_test_assert_contains (error->message, "on-failure");
          }
        g_assert_cmpuint (test.board.words[WORD_COUNT], ==, restart);
        end (&test);
      }
}

/* --- cancelling --- */

typedef struct
{
  GCancellable *cancellable;
  PtoWorker *worker; /* to be closed instead */
  _Atomic guint64 *word;
} Canceller;

static gpointer
cancel_when_started (gpointer data)
{
  Canceller *canceller = data;

  level_test_wait (canceller->word, 1);
  if (canceller->worker != NULL)
    pto_worker_close (canceller->worker);
  else
    g_cancellable_cancel (canceller->cancellable);
  return NULL;
}

static void
test_cancel (void)
{
  for (guint64 for_ever = 0; for_ever < 2; for_ever++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      Canceller canceller = { cancellable, NULL, NULL };
      GThread *thread;
      guint64 pid;
      Test test;

      begin (&test, 0, 2);
      test.handles[0] = level_test_register (test.host, "hang", hang);
      test.handles[1] = level_test_register (test.host, "note-pid", note_pid);
      pto_worker_start (test.host, NULL, &error);
      g_assert_no_error (error);
      test.number = for_ever;
      canceller.word = &test.board.words[WORD_STARTED];
      thread = g_thread_new ("cancel", cancel_when_started, &canceller);
      g_assert_false (pto_worker_run (test.host, one_task, &test, NULL, NULL, cancellable, &error));
      g_thread_join (thread);
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      pid = test.board.words[WORD_PID];

      /* One that stops when it is asked lives on; another one was ended, and is back. */
      g_clear_pointer (&test.handles[0], pto_callable_handle_unref);
      test.handles[0] = pto_callable_handle_ref (test.handles[1]);
      run_well (&test, one_task);
      if (for_ever)
        g_assert_cmpuint (test.board.words[WORD_PID], !=, pid);
      g_assert_cmpuint (test.board.words[WORD_PID], !=, (guint64) getpid ());
      end (&test);
    }
}

static void
test_close_while_running (void)
{
  g_autoptr (GError) error = NULL;
  Canceller canceller = { 0 };
  GThread *thread;
  Test test;

  begin (&test, 0, 1);
  test.handles[0] = level_test_register (test.host, "hang", hang);
  pto_worker_start (test.host, NULL, &error);
  g_assert_no_error (error);
  test.number = 1;
  canceller.worker = test.host;
  canceller.word = &test.board.words[WORD_STARTED];
  thread = g_thread_new ("close", cancel_when_started, &canceller);
  error = run_badly (&test, one_task);
  g_thread_join (thread);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  g_clear_error (&error);
  error = run_badly (&test, one_task);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  end (&test);
}

/* --- life --- */

static PtoWorker *worker_of_parent;

/* In the child, on the copy of the worker that it is a child of. */
static gboolean
use_copy (PtoTaskArgs *args, gpointer data, GError **error)
{
  g_autoptr (PtoCallable) callable = pto_sub_function_new ("x", count, NULL, NULL);
  g_autoptr (GError) refusal = NULL;
  g_autoptr (PtoCallableHandle) handle = NULL;

  if (pto_worker_run (worker_of_parent, one_task, NULL, NULL, NULL, NULL, &refusal)
      || !g_error_matches (refusal, PTO_ERROR, PTO_ERROR_BUSY)
      || strstr (refusal->message, "L3/0 belongs to process") == NULL)
    return FALSE;
  handle = pto_worker_register (worker_of_parent, callable, NULL, NULL);
  if (handle != NULL)
    return FALSE;
  pto_worker_close (worker_of_parent);
  return TRUE;
}

static void
test_copies (void)
{
  Test test;

  begin (&test, 0, 2);
  worker_of_parent = test.host;
  test.handles[0] = level_test_register (test.host, "use-copy", use_copy);
  run_well (&test, one_task);
  run_well (&test, one_task);
  end (&test);
}

static void
test_life (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Test test;

  begin (&test, 0, 3);
  test.handles[0] = level_test_register (test.host, "count", count);
  g_cancellable_cancel (cancellable);
  g_assert_false (pto_worker_start (test.host, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_true (pto_worker_start (test.host, NULL, &error));
  g_assert_true (pto_worker_start (test.host, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpint (pto_worker_get_state (test.host), ==, PTO_WORKER_STATE_READY);
  run_well (&test, one_task);
  g_assert_cmpuint (pto_worker_malloc (test.host, 64, &error), ==, 0);
  g_assert_error (error, PTO_ERROR, PTO_ERROR_NOT_SUPPORTED);
  pto_worker_close (test.host);
  pto_worker_close (test.host);
  g_assert_cmpuint (test.board.words[0], ==, 1);
  end (&test);

  /* Never initialized, or never used, and not closed: nothing stays. */
  begin (&test, 2, 3);
  end (&test);
  begin (&test, 0, 3);
  pto_worker_start (test.host, NULL, NULL);
  end (&test);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_data_func ("/pto/level/two-chips/process", GINT_TO_POINTER (PTO_CHILD_MODE_PROCESS),
                        test_two_chips);
  g_test_add_data_func ("/pto/level/two-chips/thread", GINT_TO_POINTER (PTO_CHILD_MODE_THREAD),
                        test_two_chips);
  g_test_add_func ("/pto/level/tags", test_tags);
  g_test_add_func ("/pto/level/memory", test_memory);
  g_test_add_func ("/pto/level/shared-tensor", test_shared_tensor);
  g_test_add_func ("/pto/level/group", test_group);
  g_test_add_func ("/pto/level/refusals", test_refusals);
  g_test_add_func ("/pto/level/construction", test_construction);
  g_test_add_func ("/pto/level/failure", test_failure);
  g_test_add_func ("/pto/level/place", test_place);
  g_test_add_func ("/pto/level/death", test_death);
  g_test_add_func ("/pto/level/cancel", test_cancel);
  g_test_add_func ("/pto/level/close-while-running", test_close_while_running);
  g_test_add_func ("/pto/level/copies", test_copies);
  g_test_add_func ("/pto/level/life", test_life);
  return g_test_run ();
}
