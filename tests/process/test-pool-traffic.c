/* test-pool-traffic.c: does a run have what its children say that they have moved, and its record?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pool-bench.h"

#include "../../pto/core/trace.h"

#include <glib.h>
#include <string.h>

static void
count_moved (struct bench *bench, uint32_t child, uint64_t sent, uint64_t received, uint64_t saved)
{
  struct pto_traffic *traffic = pto_writes_traffic (bench->writes, child);

  atomic_fetch_add (&traffic->sent, sent);
  atomic_fetch_add (&traffic->received, received);
  atomic_fetch_add (&traffic->saved, saved);
}

/* "0 sent 5 (6), - received 7 (0)": task, bytes, and what was there, of all transfers of a child.
 */
static void
assert_transfers (const struct pto_trace_buffer *buffer, const char *wanted)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (uint64_t i = 0; i < buffer->count; i++)
    {
      const struct pto_trace_record *record = &buffer->records[i];
      bool back = (record->detail & PTO_TRACE_TRANSFER_BACK) != 0;

      if (record->kind != PTO_TRACE_TRANSFER)
        continue;
      g_assert_cmpuint (record->time, <=, record->extra);
      g_assert_cmpuint (i + 1, <, buffer->count);
      g_assert_cmpuint (record[1].kind, ==, PTO_TRACE_BYTES);
      g_string_append (text, text->len > 0 ? ", " : "");
      if (record->task == PTO_TASK_NONE)
        g_string_append_c (text, '-');
      else
        g_string_append_printf (text, "%u", PTO_TASK_LOCAL (record->task));
      g_string_append_printf (text, " %s %" G_GUINT64_FORMAT " (%" G_GUINT64_FORMAT ")",
                              back ? "received" : "sent", record[1].time, record[1].extra);
    }
  g_assert_cmpstr (text->str, ==, wanted);
}

/* A run has what its children have counted in it, and its record has just that: of each task what
 * is said of it, as far as it was counted, and the rest of none. */
static void
test_traffic (void)
{
  struct bench *bench = bench_known (1000);
  struct pto_trace *trace = pto_trace_new (CHILDREN + 1, 64);
  struct pto_call call = { .mailbox = bench->own.children[0].link.mailbox };
  struct pto_stamps stamps = { 0 };
  struct pto_moved moved;

  for (uint32_t i = 0; i <= CHILDREN; i++)
    trace->buffers[i].level = PTO_TRACE_LEVEL_RUNS;
  /* Before the run, and in one that is not recorded. */
  count_moved (bench, 0, 1000, 2000, 3000);
  end_run (bench, 3, 0);
  moved = pto_pool_end_traffic (bench->own.pool);
  g_assert_cmpuint (moved.sent, ==, 1000);
  g_assert_cmpuint (moved.received, ==, 2000);
  g_assert_cmpuint (moved.saved, ==, 3000);
  pto_pool_record (bench->own.pool, &trace->buffers[CHILDREN], trace->buffers, 9);
  count_moved (bench, 1, 1, 1, 1);
  begin_run (bench);

  /* Two tasks of one message, and what was moved besides. */
  submit_to (bench, 0, 0);
  submit_to (bench, 1, 0);
  submit_to (bench, 2, 0);
  call.mailbox->n_stamps = 0;
  stamps = (struct pto_stamps){ .sent = 10, .saved = 20, .received = 30 };
  pto_call_tell_stamps (&call, 0, &stamps);
  count_moved (bench, 0, 10, 30, 20);
  answer_tasks (bench, 0, 0, 1000);
  assert_transfers (&trace->buffers[0], "0 sent 10 (20), 0 received 30 (0)");
  assert_has (bench, 0, 1, 2);
  call.mailbox->n_stamps = 0;
  stamps = (struct pto_stamps){ .sent = 1, .received = 2, .sent_from = UINT64_MAX, .sent_to = 1 };
  pto_call_tell_stamps (&call, 0, &stamps);
  stamps = (struct pto_stamps){ .saved = 4 };
  pto_call_tell_stamps (&call, 1, &stamps);
  count_moved (bench, 0, 1, 2 + 5, 4);
  answer_tasks (bench, 0, 0, 1000);
  assert_transfers (&trace->buffers[0], "0 sent 10 (20), 0 received 30 (0), 1 sent 1 (0), "
                                        "1 received 2 (0), 2 sent 0 (4), - received 5 (0)");

  /* A child that says more than it has counted, one that says nothing, and one that dies. */
  trace->buffers[0].count = 0;
  submit_to (bench, 3, 0);
  call.mailbox->n_stamps = 0;
  stamps = (struct pto_stamps){ .sent = UINT64_MAX, .saved = 8, .received = 9 };
  pto_call_tell_stamps (&call, 0, &stamps);
  count_moved (bench, 0, 7, 3, 0);
  answer_tasks (bench, 0, 0, 1000);
  assert_transfers (&trace->buffers[0], "3 sent 7 (0), 3 received 3 (0)");
  trace->buffers[0].count = 0;
  submit_to (bench, 4, 0);
  call.mailbox->n_stamps = UINT64_MAX;
  memset (call.mailbox->body, 0, sizeof call.mailbox->body);
  count_moved (bench, 0, 6, 0, 1);
  answer_tasks (bench, 0, 0, 1000);
  assert_transfers (&trace->buffers[0], "- sent 6 (1)");
  trace->buffers[0].count = 0;
  submit_to (bench, 5, 0);
  take (bench, 0);
  count_moved (bench, 0, 11, 0, 0);
  die (bench, 0);
  assert_transfers (&trace->buffers[0], "- sent 11 (0)");
  revive (bench, 0);
  answer (bench, 0);

  /* What is counted when all tasks are over is of the run, as long as that has not ended. */
  trace->buffers[0].count = 0;
  end_run (bench, 6, 1);
  count_moved (bench, 1, 0, 100, 0);
  moved = pto_pool_end_traffic (bench->own.pool);
  assert_transfers (&trace->buffers[1], "- received 100 (0)");
  g_assert_cmpuint (moved.sent, ==, 10 + 1 + 7 + 6 + 11);
  g_assert_cmpuint (moved.received, ==, 30 + 2 + 5 + 3 + 100);
  g_assert_cmpuint (moved.saved, ==, 20 + 4 + 1);
  for (uint32_t i = 0; i <= CHILDREN; i++)
    g_assert_cmpuint (trace->buffers[i].dropped, ==, 0);
  pto_pool_record (bench->own.pool, NULL, NULL, 0);
  pto_trace_free (trace);
  bench_free (bench);
}

static void
add_tests (void)
{
  g_test_add_func ("/pto/pool/traffic", test_traffic);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
