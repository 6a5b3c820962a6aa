/* test-trace.c: does a trace keep what is added, count what is not, and give back its memory?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/core/record-run.h"
#include "../../pto/core/trace.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum
{
  N = 5,
  CAPACITY = 100
};

static const struct pto_trace_record empty = { 0 };

static void
add_numbered (struct pto_trace_buffer *buffer, uint64_t number)
{
  pto_trace_add (buffer, PTO_TRACE_READY, 1000 + number, PTO_TASK_ID (1, number),
                 (uint32_t) (7 * number), 9 * number);
}

static void
assert_numbered (const struct pto_trace_record *record, uint64_t number)
{
  g_assert_cmpuint (record->kind, ==, PTO_TRACE_READY);
  g_assert_cmpuint (record->time, ==, 1000 + number);
  g_assert_cmpuint (record->task, ==, PTO_TASK_ID (1, number));
  g_assert_cmpuint (record->detail, ==, 7 * number);
  g_assert_cmpuint (record->extra, ==, 9 * number);
}

/* Every buffer its own count: full, half full, more than full, empty. */
static void
test_counts (void)
{
  static const uint64_t produced[N] = { CAPACITY, CAPACITY / 2, CAPACITY + 33, 0, 1 };
  struct pto_trace *trace = pto_trace_new (N, CAPACITY);

  g_assert_nonnull (trace);
  g_assert_cmpuint (trace->n_buffers, ==, N);
  for (uint32_t round = 0; round < 3; round++)
    {
      for (uint32_t b = 0; b < N; b++)
        {
          struct pto_trace_buffer *buffer = &trace->buffers[b];

          g_assert_cmpuint ((guintptr) buffer % 64, ==, 0);
          g_assert_cmpuint (buffer->capacity, ==, CAPACITY);
          g_assert_cmpuint (buffer->count, ==, 0);
          g_assert_cmpuint (buffer->dropped, ==, 0);
          if (round == 0)
            for (uint32_t i = 0; i < CAPACITY; i++)
              g_assert_cmpmem (&buffer->records[i], sizeof empty, &empty, sizeof empty);
          for (uint64_t i = 0; i < produced[b]; i++)
            add_numbered (buffer, 1000 * b + i);
        }
      for (uint32_t b = 0; b < N; b++)
        {
          const struct pto_trace_buffer *buffer = &trace->buffers[b];

          g_assert_cmpuint (buffer->count, ==, MIN (produced[b], CAPACITY));
          g_assert_cmpuint (buffer->count + buffer->dropped, ==, produced[b]);
          for (uint64_t i = 0; i < buffer->count; i++)
            assert_numbered (&buffer->records[i], 1000 * b + i);
        }
      pto_trace_clear (trace);
    }
  pto_trace_free (trace);
  pto_trace_free (NULL);
}

/* All times, and nothing but times. */
static void
test_scale (void)
{
  static const struct
  {
    struct pto_scale scale;
    uint64_t time, scaled;
  } rows[] = {
    { { 3, 3 }, 1234567, 1234567 },
    { { 2, 3 }, 1000, 1500 },
    { { 3, 1 }, 1000, 333 },
    { { 0, 5 }, 1000, 1000 },                             /* nothing is known of the clock */
    { { UINT64_C (1) << 62, UINT64_C (1) << 61 }, 7, 3 }, /* no overflow on the way */
    { { 1000, 999 }, UINT64_C (1) << 63, UINT64_C (9214148664817921032) },
  };

  for (uint32_t r = 0; r < G_N_ELEMENTS (rows); r++)
    {
      struct pto_trace *trace = pto_trace_new (2, CAPACITY);
      uint64_t time = rows[r].time;

      g_assert_cmpuint (pto_scale (time, &rows[r].scale), ==, rows[r].scaled);
      for (uint32_t b = 0; b < 2; b++)
        for (uint32_t kind = PTO_TRACE_SUBMIT; kind <= PTO_TRACE_STALL; kind++)
          for (uint32_t i = 0; i < 2; i++)
            pto_trace_add (&trace->buffers[b], kind, time, 12 + b, 34, time);
      pto_trace_scale (trace, &rows[r].scale);
      for (uint32_t b = 0; b < 2; b++)
        {
          g_assert_cmpuint (trace->buffers[b].count, ==, 2 * PTO_TRACE_STALL);
          for (uint32_t i = 0; i < trace->buffers[b].count; i++)
            {
              const struct pto_trace_record *record = &trace->buffers[b].records[i];
              bool has_end = record->kind == PTO_TRACE_RUN || record->kind == PTO_TRACE_STALL;

              g_assert_cmpuint (record->kind, ==, PTO_TRACE_SUBMIT + i / 2);
              g_assert_cmpuint (record->time, ==, rows[r].scaled);
              g_assert_cmpuint (record->extra, ==, has_end ? rows[r].scaled : time);
              g_assert_cmpuint (record->task, ==, 12 + b);
              g_assert_cmpuint (record->detail, ==, 34);
            }
        }
      pto_trace_free (trace);
    }
}

/* Of this process, in bytes. */
static uint64_t
address_space (void)
{
  unsigned long pages = 0;
  FILE *file = fopen ("/proc/self/statm", "r");

  g_assert_nonnull (file);
  g_assert_cmpint (fscanf (file, "%lu", &pages), ==, 1);
  fclose (file);
  return pages * (uint64_t) sysconf (_SC_PAGESIZE);
}

static void
test_memory (void)
{
  enum
  {
    LARGE = 1 << 20
  };
  uint64_t buffer = LARGE * sizeof (struct pto_trace_record);
  uint64_t before;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  g_test_skip ("the sanitizer has an address space of its own");
  return;
#endif
  pto_trace_free (pto_trace_new (N, LARGE));
  before = address_space ();
  for (uint32_t i = 0; i < 10; i++)
    {
      struct pto_trace *trace = pto_trace_new (N, LARGE);

      g_assert_nonnull (trace);
      g_assert_cmpuint (address_space (), >=, before + N * buffer);
      pto_trace_free (trace);
      g_assert_cmpuint (address_space (), <, before + buffer / 2);
      /* More than there is: what it had got by then is given back. */
      g_assert_null (pto_trace_new (N, UINT64_C (1) << 41));
      g_assert_cmpuint (address_space (), <, before + buffer / 2);
    }
}

/* One recorder for run after run: the same buffers as long as there are as many actors, others when
 * not; what was recorded is scaled once, however often it is asked for. */
static void
test_recorder (void)
{
  struct pto_recorder recorder = { .trace = NULL };
  struct pto_report report = { 0 };
  const struct pto_trace_record *first;

  g_assert_cmpint (pto_recorder_choose (&recorder, 0, N, CAPACITY, &report), ==, PTO_OK);
  g_assert_null (pto_recorder_trace (&recorder));
  g_assert_cmpint (pto_recorder_choose (&recorder, PTO_TRACE_LEVEL_GRAPH, N, CAPACITY, &report), ==,
                   PTO_OK);
  first = recorder.trace->buffers[0].records;
  add_numbered (&recorder.trace->buffers[0], 5);
  recorder.scale = (struct pto_scale){ .from = 1, .to = 2 };
  for (uint32_t i = 0; i < 2; i++)
    {
      const struct pto_trace *trace = pto_recorder_trace (&recorder);

      g_assert_cmpuint (trace->n_buffers, ==, N);
      g_assert_cmpuint (trace->buffers[0].count, ==, 1);
      g_assert_cmpuint (trace->buffers[0].records[0].time, ==, 2 * 1005);
    }

  g_assert_cmpint (pto_recorder_choose (&recorder, PTO_TRACE_LEVEL_GRAPH, N, CAPACITY, &report), ==,
                   PTO_OK);
  g_assert_true (recorder.trace->buffers[0].records == first);
  g_assert_cmpuint (recorder.trace->buffers[0].count, ==, 0);
  g_assert_cmpint (pto_recorder_choose (&recorder, PTO_TRACE_LEVEL_GRAPH, N + 2, CAPACITY, &report),
                   ==, PTO_OK);
  g_assert_cmpuint (recorder.trace->n_buffers, ==, N + 2);
  g_assert_cmpint (pto_recorder_choose (&recorder, 0, N + 2, CAPACITY, &report), ==, PTO_OK);
  g_assert_null (pto_recorder_trace (&recorder));

  /* More than any address space has. */
  pto_recorder_clear (&recorder);
  g_assert_null (recorder.trace);
  g_assert_cmpint (
      pto_recorder_choose (&recorder, PTO_TRACE_LEVEL_GRAPH, N, UINT64_C (1) << 58, &report), ==,
      PTO_STATUS_NO_MEMORY);
  g_assert_nonnull (strstr (report.message, "trace-records"));
  g_assert_null (pto_recorder_trace (&recorder));
  pto_recorder_clear (&recorder);
}

int
main (int argc, char **argv)
{
  alarm (60);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/trace/counts", test_counts);
  g_test_add_func ("/pto/trace/scale", test_scale);
  g_test_add_func ("/pto/trace/memory", test_memory);
  g_test_add_func ("/pto/trace/recorder", test_recorder);
  return g_test_run ();
}
