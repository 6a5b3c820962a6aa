/* test-remote-memory.c: is memory of a remote worker one memory, by whatever buffer it is used?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "level-test.h"

#include <string.h>

#define WORDS 300000u /* of which several parts travel */
#define BYTES (WORDS * sizeof (gint64))

/* L4/0 with two remote workers below it. */
typedef struct
{
  LevelTestState state;
  PtoWorker *host;
  PtoWorker *remotes[2];
  PtoCallableHandle *overlap;
  PtoCallableHandle *increase;
  PtoCallableHandle *die;
  /* Of the next run, on the first worker. */
  PtoCallableHandle *handle;
  PtoBuffer *all; /* or NULL */
  PtoBuffer *part;
} Test;

static PtoCallableHandle *
use (PtoWorker *host, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *symbol = g_strdup_printf ("%s:%s", g_getenv ("PTO_TEST_REMOTE_FUNCTIONS"), name);
  g_autoptr (PtoCallable) callable
      = pto_imported_function_new_for_symbol (PTO_CALLABLE_ORCHESTRATION, symbol, &error);
  PtoCallableHandle *handle;

  g_assert_no_error (error);
  handle = pto_worker_register (host, callable, NULL, &error);
  g_assert_no_error (error);
  return handle;
}

static void
test_begin (Test *test)
{
  g_autoptr (GError) error = NULL;

  memset (test, 0, sizeof *test);
  level_test_begin (&test->state);
  test->host = g_object_new (PTO_TYPE_WORKER, "level", 4, "restart", PTO_RESTART_ON_FAILURE, NULL);
  for (guint i = 0; i < 2; i++)
    {
      test->remotes[i] = pto_worker_add_remote_worker (test->host, "local:", NULL, &error);
      g_assert_no_error (error);
    }
  test->overlap = use (test->host, "overlap");
  test->increase = use (test->host, "increase");
  test->die = use (test->host, "die");
}

static void
test_end (Test *test)
{
  pto_worker_close (test->host);
  pto_callable_handle_unref (test->overlap);
  pto_callable_handle_unref (test->increase);
  pto_callable_handle_unref (test->die);
  g_assert_finalize_object (test->host);
  level_test_end (&test->state);
}

/* 0, 1, 2, ... */
static GBytes *
numbers (void)
{
  gint64 *words = g_new (gint64, WORDS);

  for (guint i = 0; i < WORDS; i++)
    words[i] = i;
  return g_bytes_new_take (words, BYTES);
}

static PtoBuffer *
take (PtoWorker *worker, guint64 size)
{
  g_autoptr (GError) error = NULL;
  PtoBuffer *buffer = pto_worker_alloc_buffer (worker, size, &error);

  g_assert_no_error (error);
  return buffer;
}

static PtoBuffer *
take_numbers (PtoWorker *worker)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = numbers ();
  PtoBuffer *buffer = take (worker, BYTES);

  pto_buffer_write (buffer, 0, bytes, &error);
  g_assert_no_error (error);
  return buffer;
}

static gint64
word_of (PtoBuffer *buffer, guint i)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = pto_buffer_read (buffer, i * sizeof (gint64), sizeof (gint64), &error);
  gint64 word;

  g_assert_no_error (error);
  memcpy (&word, g_bytes_get_data (bytes, NULL), sizeof word);
  return word;
}

static char *export(PtoBuffer *buffer, guint64 offset, guint64 size)
{
  g_autoptr (GError) error = NULL;
  char *token = pto_buffer_export (buffer, offset, size, &error);

  g_assert_no_error (error);
  g_assert_nonnull (token);
  return token;
}

static PtoBuffer *
import (PtoWorker *worker, const char *token)
{
  g_autoptr (GError) error = NULL;
  PtoBuffer *buffer = pto_worker_import_buffer (worker, token, &error);

  g_assert_no_error (error);
  return buffer;
}

static void
assert_not_imported (PtoWorker *worker, const char *token, int code, const char *words)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (pto_worker_import_buffer (worker, token, &error));
  g_assert_error (error, PTO_ERROR, code);
  object_test_assert_contains (error->message, words);
}

static gboolean
graph (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Test *test = data;
  g_autoptr (PtoTaskArgs) task = pto_task_args_new ();
  const guint64 shapes[] = { WORDS, 1 };

  if (test->all != NULL)
    {
      g_autoptr (PtoTensor) all
          = pto_tensor_new_for_buffer (test->all, 0, PTO_DTYPE_INT64, 1, &shapes[0], error);
      g_autoptr (PtoTensor) part
          = pto_tensor_new_for_buffer (test->part, 0, PTO_DTYPE_INT64, 1, &shapes[1], error);

      pto_task_args_add_tensor (task, all, PTO_DIRECTION_INPUT);
      pto_task_args_add_tensor (task, part, PTO_DIRECTION_INOUT);
    }
  return pto_orchestrator_submit_next_level (orchestrator, test->handle, task, NULL, 0, error);
}

static gboolean
run (Test *test, PtoCallableHandle *handle, GError **error)
{
  test->handle = handle;
  return pto_worker_run (test->host, graph, test, NULL, NULL, NULL, error);
}

/* A part of it by a token: tasks find both in one memory, and nothing of it travels. */
static void
test_token (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *whole = NULL;
  g_autofree char *token = NULL;
  Test test;

  test_begin (&test);
  test.all = take_numbers (test.remotes[0]);
  token = export(test.all, 2 * sizeof (gint64), sizeof (gint64));
  whole = export(test.all, 0, BYTES);
  test.part = import (test.remotes[0], token);
  g_assert_cmpuint (pto_buffer_get_size (test.part), ==, sizeof (gint64));
  g_assert_true (pto_buffer_get_worker (test.part) == test.remotes[0]);
  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (PtoRunStatistics) statistics = NULL;

      run (&test, test.overlap, &error); /* part[0] += all[1] */
      g_assert_no_error (error);
      statistics = pto_worker_dup_statistics (test.host);
      g_assert_cmpuint (pto_run_statistics_get_bytes_sent (statistics), ==, 0);
      g_assert_cmpuint (pto_run_statistics_get_bytes_received (statistics), ==, 0);
      g_assert_cmpint (word_of (test.part, 0), ==, 3 + i);
      g_assert_cmpint (word_of (test.all, 2), ==, 3 + i);
    }
  /* It outlives the buffer that it is a part of, and no longer. */
  pto_buffer_unref (test.all);
  test.all = import (test.remotes[0], whole);
  g_assert_cmpint (word_of (test.all, WORDS - 1), ==, WORDS - 1);
  pto_buffer_unref (test.all);
  g_assert_cmpint (word_of (test.part, 0), ==, 5);
  pto_buffer_unref (test.part);
  assert_not_imported (test.remotes[0], token, PTO_ERROR_INVALID_ARGS, "was given back");
  assert_not_imported (test.remotes[1], token, PTO_ERROR_INVALID_ARGS,
                       "memory of L4/0/L3/0, which L4/0/L3/1 does not share");
  assert_not_imported (test.host, token, PTO_ERROR_NOT_SUPPORTED, "L4/0 is no remote worker");
  assert_not_imported (test.remotes[0], "memory1", PTO_ERROR_INVALID_ARGS, "is no token");
  test_end (&test);
}

/* When the worker is closed its buffers stay what they are, and are let go of in any order. */
static void
test_closed (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *token = NULL;
  PtoBuffer *a, *b;
  Test test;

  test_begin (&test);
  a = take_numbers (test.remotes[0]);
  token = export(a, 0, 64);
  b = import (test.remotes[0], token);
  pto_worker_close (test.host);
  assert_not_imported (test.remotes[0], token, PTO_ERROR_CLOSED, "closed");
  g_assert_null (pto_buffer_export (a, 0, 64, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_CLOSED);
  pto_buffer_unref (a);
  g_assert_true (pto_buffer_is_remote (b));
  pto_buffer_unref (b);
  test_end (&test);
}

/* A token is of one life. */
static void
test_life (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *token = NULL;
  g_autofree char *next = NULL;
  PtoBuffer *a, *b;
  Test test;

  test_begin (&test);
  a = take_numbers (test.remotes[0]);
  token = export(a, 0, 64);
  g_assert_false (run (&test, test.die, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  g_clear_error (&error);
  /* The next life has begun when it gives some. */
  b = take (test.remotes[0], 64);
  assert_not_imported (test.remotes[0], token, PTO_ERROR_WORKER_LOST,
                       "memory of life 1 of L4/0/L3/0, which was lost, and all of its memory with "
                       "it; this is its life 2");
  g_assert_null (pto_buffer_export (a, 0, 64, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  g_clear_error (&error);
  g_assert_false (pto_buffer_copy_to (a, b, 0, 0, 8, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  next = export(b, 0, 64);
  pto_buffer_unref (b);
  pto_buffer_unref (a);
  assert_not_imported (test.remotes[0], next, PTO_ERROR_INVALID_ARGS, "was given back");
  test_end (&test);
}

static PtoGraph *
capture_kept (Test *test)
{
  g_autoptr (GError) error = NULL;
  PtoGraph *captured;

  test->handle = test->overlap;
  captured = pto_worker_capture (test->host, graph, test, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (pto_graph_get_n_arguments (captured), ==, 0);
  return captured;
}

/* What a graph was captured with is its own as long as it is there: nothing else need have it. */
static void
test_kept_by_graph (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *whole = NULL;
  g_autofree char *token = NULL;
  PtoGraph *captured;
  Test test;

  test_begin (&test);
  test.all = take_numbers (test.remotes[0]);
  whole = export(test.all, 0, BYTES);
  token = export(test.all, 2 * sizeof (gint64), sizeof (gint64));
  test.part = import (test.remotes[0], token);
  captured = capture_kept (&test);
  pto_buffer_unref (test.all);
  pto_buffer_unref (test.part);
  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (PtoBuffer) all = NULL;

      pto_worker_run_graph (test.host, captured, NULL, NULL, NULL, &error); /* part[0] += all[1] */
      g_assert_no_error (error);
      all = import (test.remotes[0], whole);
      g_assert_cmpint (word_of (all, 1), ==, 1);
      g_assert_cmpint (word_of (all, 2), ==, 3 + i);
    }
  g_assert_finalize_object (captured);
  assert_not_imported (test.remotes[0], whole, PTO_ERROR_INVALID_ARGS, "was given back");

  test.all = take_numbers (test.remotes[0]);
  test.part = take_numbers (test.remotes[0]);
  captured = capture_kept (&test);
  g_assert_false (run (&test, test.die, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  g_clear_error (&error);
  pto_buffer_unref (take (test.remotes[0], 64)); /* of its next life */
  g_assert_false (pto_worker_run_graph (test.host, captured, NULL, NULL, NULL, &error));
  g_assert_error (error, PTO_ERROR, PTO_ERROR_WORKER_LOST);
  object_test_assert_contains (error->message,
                               "task 0 of the graph (\"overlap\"): it was captured with memory "
                               "that is lost, so capture anew");
  pto_buffer_unref (test.all);
  pto_buffer_unref (test.part);
  g_assert_finalize_object (captured);
  test_end (&test);
}

/* Both are arguments. */
static gboolean
given (PtoOrchestrator *orchestrator, PtoTaskArgs *args, PtoCallConfig *config, gpointer data,
       GError **error)
{
  Test *test = data;
  g_autoptr (PtoTaskArgs) task = pto_task_args_new ();

  pto_task_args_add_tensor (task, pto_task_args_get_tensor (args, 0), PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (task, pto_task_args_get_tensor (args, 1), PTO_DIRECTION_INOUT);
  return pto_orchestrator_submit_next_level (orchestrator, test->increase, task, NULL, 0, error);
}

static PtoTaskArgs *
give (PtoBuffer *all, PtoBuffer *part, guint i)
{
  g_autoptr (GError) error = NULL;
  PtoTaskArgs *args = pto_task_args_new ();
  const guint64 shapes[] = { 2, 1 };
  g_autoptr (PtoTensor) first
      = pto_tensor_new_for_buffer (all, 0, PTO_DTYPE_INT64, 1, &shapes[0], &error);
  g_autoptr (PtoTensor) second = NULL;

  g_assert_no_error (error);
  second = pto_tensor_new_for_buffer (part, i * sizeof (gint64), PTO_DTYPE_INT64, 1, &shapes[1],
                                      &error);
  g_assert_no_error (error);
  pto_task_args_add_tensor (args, first, PTO_DIRECTION_INPUT);
  pto_task_args_add_tensor (args, second, PTO_DIRECTION_INOUT);
  return args;
}

static gboolean
launch (Test *test, PtoGraph *captured, PtoBuffer *all, PtoBuffer *part, guint i, GError **error)
{
  g_autoptr (PtoTaskArgs) args = give (all, part, i);

  return pto_worker_run_graph (test->host, captured, args, NULL, NULL, error);
}

/* Any memory of the worker that the task is for, or any here, whatever it was captured with. */
static void
test_given_to_graph (void)
{
  g_autoptr (GError) error = NULL;
  Test test;
  PtoBuffer *a, *b, *other, *here;

  test_begin (&test);
  a = take_numbers (test.remotes[0]);
  b = take_numbers (test.remotes[0]);
  other = take_numbers (test.remotes[1]);
  here = pto_buffer_new (64, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 2; i++)
    {
      PtoBuffer *with = i == 0 ? a : here;
      g_autoptr (PtoTaskArgs) args = give (with, with, 4);
      PtoGraph *captured = pto_worker_capture (test.host, given, &test, args, NULL, NULL, &error);

      g_assert_no_error (error);
      g_assert_cmpuint (pto_graph_get_n_arguments (captured), ==, 2);
      launch (&test, captured, a, a, 4, &error);
      g_assert_no_error (error);
      launch (&test, captured, b, a, 5, &error);
      g_assert_no_error (error);
      launch (&test, captured, a, here, 6, &error);
      g_assert_no_error (error);
      g_assert_cmpint (word_of (a, 4), ==, 5 + i); /* += 1, as much as a[1] and b[1] */
      g_assert_cmpint (word_of (a, 5), ==, 6 + i);
      g_assert_cmpint (word_of (here, 6), ==, 1 + i);
      g_assert_false (launch (&test, captured, a, other, 0, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message,
                                   "task 0 of the graph (\"increase\"): argument 1 of the graph is "
                                   "memory of L4/0/L3/1, which no other worker sees");
      g_clear_error (&error);
      g_assert_false (launch (&test, captured, a, a, 1, &error));
      g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
      object_test_assert_contains (error->message, "arguments 0 and 1 of the graph overlap");
      g_clear_error (&error);
      g_assert_cmpint (word_of (other, 0), ==, 0);
      g_assert_finalize_object (captured);
    }
  pto_buffer_unref (a);
  pto_buffer_unref (b);
  pto_buffer_unref (other);
  pto_buffer_unref (here);
  test_end (&test);
}

/* All but the ends was one word further once, and still is, or what of it went back. */
static void
assert_moved (PtoBuffer *buffer, gboolean moved)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = pto_buffer_read (buffer, 0, BYTES, &error);
  const gint64 *words;

  g_assert_no_error (error);
  words = g_bytes_get_data (bytes, NULL);
  for (guint i = 0; i < WORDS; i++)
    if (i < 2 || i == WORDS - 1)
      g_assert_cmpint (words[i], ==, i);
    else if (i == WORDS - 2)
      g_assert_cmpint (words[i], ==, i - 1);
    else
      g_assert_cmpint (words[i], ==, moved ? i - 1 : i);
}

/* From each kind of memory to each, with what is overwritten beside it. */
static void
test_copies (void)
{
  enum
  {
    HERE,
    CHIP,
    ONE,
    SAME,
    OTHER,
    N
  };
  g_autoptr (GError) error = NULL;
  PtoBuffer *buffers[N];
  PtoWorker *chip;
  Test test;

  test_begin (&test);
  chip = g_object_new (PTO_TYPE_WORKER, NULL);
  buffers[HERE] = pto_buffer_new (BYTES, &error);
  g_assert_no_error (error);
  buffers[CHIP] = take (chip, BYTES);
  buffers[ONE] = take (test.remotes[0], BYTES);
  buffers[SAME] = take (test.remotes[0], BYTES);
  buffers[OTHER] = take (test.remotes[1], BYTES);
  for (guint from = 0; from < N; from++)
    for (guint to = 0; to < N; to++)
      {
        g_autoptr (GBytes) bytes = numbers ();
        gboolean is_one = from == to;
        gboolean ok;

        pto_buffer_write (buffers[to], 0, bytes, &error);
        g_assert_no_error (error);
        pto_buffer_write (buffers[from], 0, bytes, &error);
        g_assert_no_error (error);
        /* All but the ends, one further, and then to where it was. */
        for (guint back = 0; back < 2; back++)
          {
            ok = pto_buffer_copy_to (buffers[from], buffers[to], 8, 8 + 8 * !back, BYTES - 24,
                                     &error);
            g_assert_no_error (error);
            g_assert_true (ok);
            assert_moved (buffers[to], is_one || !back);
          }
        /* And too far. */
        g_assert_false (pto_buffer_copy_to (buffers[from], buffers[to], 8, 0, BYTES - 7, &error));
        g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
        g_clear_error (&error);
        g_assert_false (pto_buffer_copy_to (buffers[from], buffers[to], 0, BYTES + 1, 0, &error));
        g_assert_error (error, PTO_ERROR, PTO_ERROR_INVALID_ARGS);
        g_clear_error (&error);
      }
  for (guint i = 0; i < N; i++)
    pto_buffer_unref (buffers[i]);
  pto_worker_close (chip);
  g_assert_finalize_object (chip);
  test_end (&test);
}

/* More than is copied at once at the other end: in an order in which nothing is lost, either way.
 */
static void
test_large (void)
{
  enum
  {
    SIZE = 40 << 20
  };
  static const guint64 marks[] = { 0, 16 << 20, (16 << 20) + 8, 24 << 20, 32 << 20, SIZE - 16 };
  g_autoptr (GError) error = NULL;
  PtoBuffer *buffer;
  Test test;

  test_begin (&test);
  buffer = take (test.remotes[0], SIZE);
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    {
      gint64 word = 100 + (gint64) i;
      g_autoptr (GBytes) bytes = g_bytes_new (&word, sizeof word);

      pto_buffer_write (buffer, marks[i], bytes, &error);
      g_assert_no_error (error);
    }
  for (guint round = 0; round < 4; round++)
    {
      gboolean is_back = round % 2 == 1;

      pto_buffer_copy_to (buffer, buffer, 8 * is_back, 8 * !is_back, SIZE - 8, &error);
      g_assert_no_error (error);
      for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
        g_assert_cmpint (word_of (buffer, (guint) (marks[i] / 8) + !is_back), ==, 100 + i);
      /* Beside those that have one there is nothing. */
      g_assert_cmpint (word_of (buffer, (12 << 20) / 8), ==, 0);
      g_assert_cmpint (word_of (buffer, (28 << 20) / 8 + 1), ==, 0);
    }
  pto_buffer_unref (buffer);
  test_end (&test);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/remote-memory/token", test_token);
  g_test_add_func ("/pto/remote-memory/closed", test_closed);
  g_test_add_func ("/pto/remote-memory/life", test_life);
  g_test_add_func ("/pto/remote-memory/kept-by-graph", test_kept_by_graph);
  g_test_add_func ("/pto/remote-memory/given-to-graph", test_given_to_graph);
  g_test_add_func ("/pto/remote-memory/copies", test_copies);
  g_test_add_func ("/pto/remote-memory/large", test_large);
  return g_test_run ();
}
