/* test-trace.c: does the record of a level's run say which child had which task, when, and after
 * whom?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every function is a witness: it writes down who it is, what it was told and when it was there, by
 * the clock that all processes share.
 */
#include "level-test.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

/* The processor's counter, by which records are made, and the system's clock may drift apart. */
#define SLACK_NS MS

enum
{
  WITNESS, /* any tensors; scalar: number */
  DIE      /* the same, and then it is killed */
};

/* What witness n wrote, in the board's words. */
struct testimony
{
  uint64_t begin;
  uint64_t end;
  uint64_t task;
  uint64_t record;
};

static struct testimony *
testimony (const struct rig *rig, uint64_t number)
{
  return (struct testimony *) rig->board->words + number;
}

static uint32_t
witness (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  /* A member of a group has its own number behind the group's. */
  uint64_t number
      = call_scalar (call, 0) + (call->args.scalar_count > 1 ? call_scalar (call, 1) : 0);
  struct testimony *mine = testimony (rig, number);

  mine->begin = pto_wall_clock ();
  mine->record = pto_call_record (call, &mine->task);
  g_usleep (200);
  mine->end = pto_wall_clock ();
  return 0;
}

static uint32_t
die (struct rig *rig, const struct pto_call *call, struct pto_failure *failure)
{
  witness (rig, call, failure);
  raise (SIGKILL);
  return 0;
}

static const rig_function functions[] = { witness, die };

static struct rig *
new_rig (gconstpointer threads, uint32_t chips, uint32_t subs, const char *const *parameters)
{
  struct rig *rig = rig_new (&(struct rig_config){ .chips = chips,
                                                   .subs = subs,
                                                   .threads = GPOINTER_TO_INT (threads) != 0,
                                                   .quiet = true,
                                                   .parameters = parameters,
                                                   .functions = functions });

  rig->record = PTO_TRACE_LEVEL_GRAPH;
  return rig;
}

static PTOParam
scalar (uint64_t value)
{
  return make_scalar_param (value);
}

/* The only record of that kind that is about a task, in these buffers. */
static const struct pto_trace_record *
find (const struct pto_trace *trace, uint32_t from, uint32_t to, uint32_t kind, uint64_t task)
{
  const struct pto_trace_record *found = NULL;

  for (uint32_t b = from; b < to; b++)
    for (uint64_t i = 0; i < trace->buffers[b].count; i++)
      if (trace->buffers[b].records[i].kind == kind && trace->buffers[b].records[i].task == task)
        {
          g_assert_null (found);
          found = &trace->buffers[b].records[i];
        }
  g_assert_nonnull (found);
  return found;
}

static uint64_t
count_kind (const struct pto_trace *trace, uint32_t buffer, uint32_t kind)
{
  uint64_t n = 0;

  for (uint64_t i = 0; i < trace->buffers[buffer].count; i++)
    if (trace->buffers[buffer].records[i].kind == kind)
      n += pto_trace_n_tasks (&trace->buffers[buffer].records[i]);
  return n;
}

/* The witness's time lies in its child's row, and all of its life is in order. */
static void
check_life (struct rig *rig, uint64_t number, uint32_t child)
{
  const struct pto_trace *trace = pto_level_trace (rig->level);
  const struct testimony *seen = testimony (rig, number);
  const struct pto_trace_record *run, *dispatch, *submit, *ready, *complete;
  struct pto_trace_topology topology;

  pto_level_trace_topology (rig->level, &topology);
  run = find (trace, 2 + child, 3 + child, PTO_TRACE_RUN, seen->task);
  g_assert_cmpuint (run->detail, ==, child);
  g_assert_cmpuint (topology.begin_ns + run->time, <=, seen->begin + SLACK_NS);
  g_assert_cmpuint (topology.begin_ns + run->extra + SLACK_NS, >=, seen->end);
  g_assert_cmpuint (run->extra - run->time + SLACK_NS, >=, seen->end - seen->begin);
  g_assert_cmpuint (find (trace, 2 + child, 3 + child, PTO_TRACE_ACK, seen->task)->time, ==,
                    run->time);
  dispatch = find (trace, 1, 2, PTO_TRACE_DISPATCH, seen->task);
  submit = find (trace, 0, 1, PTO_TRACE_SUBMIT, seen->task);
  ready = find (trace, 0, 2, PTO_TRACE_READY, seen->task);
  complete = find (trace, 1, 2, PTO_TRACE_COMPLETE, seen->task);
  g_assert_cmpuint (dispatch->detail, ==, child);
  g_assert_cmpuint (submit->time, <=, ready->time);
  g_assert_cmpuint (ready->time, <=, dispatch->time);
  g_assert_cmpuint (dispatch->time, <=, run->time);
  g_assert_cmpuint (run->extra, <=, complete->time);
  g_assert_cmpuint (complete->time, <=, topology.run_ns);
  g_assert_cmpuint (complete->extra, ==, 0);
}

/* --- rows, times, edges --- */

enum
{
  ON_CHIPS = 6,
  ON_ALL = 9
};

/* Three pairs for two chips, and a SUB task after each pair. */
static void
pairs (struct rig *rig, void *data)
{
  for (uint32_t i = 0; i < ON_CHIPS; i++)
    {
      Tensor part = rig_words (rig, 1000 + i, 1);

      CHIP (rig, WITNESS, i % 2, make_output_existing_param (part), scalar (i));
    }
  for (uint32_t i = ON_CHIPS; i < ON_ALL; i++)
    {
      Tensor both = rig_words (rig, 1000 + 2 * (i - ON_CHIPS), 2);

      SUB (rig, WITNESS, 0, make_input_param (both), scalar (i));
    }
}

static void
test_rows (gconstpointer threads)
{
  struct rig *rig = new_rig (threads, 2, 1, NULL);
  struct holdings before = holdings_now ();

  for (uint64_t round = 1; round <= 3; round++)
    {
      const struct pto_trace *trace;
      struct pto_trace_topology topology;
      uint64_t wall = pto_wall_clock ();

      rig_run_ok (rig, pairs, NULL);
      trace = pto_level_trace (rig->level);
      pto_level_trace_topology (rig->level, &topology);
      g_assert_nonnull (trace);
      g_assert_cmpuint (trace->n_buffers, ==, 5);
      g_assert_cmpuint (topology.level, ==, 3);
      g_assert_cmpuint (topology.n_schedulers, ==, 1);
      g_assert_cmpuint (topology.n_cores, ==, 3);
      g_assert_cmpuint (topology.n_workers, ==, 2);
      g_assert_false (topology.virtual_clock);
      g_assert_cmpuint (topology.begin_ns, >=, wall);
      g_assert_cmpuint (topology.end_ns, ==, topology.begin_ns + topology.run_ns);
      g_assert_cmpuint (topology.end_ns, <=, pto_wall_clock ());
      for (uint64_t i = 0; i < ON_ALL; i++)
        {
          g_assert_cmpuint (testimony (rig, i)->record, ==,
                            PTO_RECORD (round, PTO_TRACE_LEVEL_GRAPH));
          g_assert_cmpuint (testimony (rig, i)->task, ==, i);
          check_life (rig, i, i < ON_CHIPS ? i % 2 : 2);
        }
      for (uint32_t b = 2; b < 5; b++)
        {
          g_assert_cmpuint (count_kind (trace, b, PTO_TRACE_RUN), ==, 3);
          g_assert_cmpuint (trace->buffers[b].count, ==, 6);
          g_assert_cmpuint (trace->buffers[b].dropped, ==, 0);
        }
      g_assert_cmpuint (count_kind (trace, 0, PTO_TRACE_DEP), ==, ON_CHIPS);
      for (uint64_t k = 0, i = 0; k < trace->buffers[0].count; k++)
        {
          const struct pto_trace_record *record = &trace->buffers[0].records[k];

          if (record->kind != PTO_TRACE_DEP)
            continue;
          g_assert_cmpuint (record->task, ==, ON_CHIPS + i / 2);
          g_assert_cmpuint (record->extra / 2, ==, i / 2);
          g_assert_cmpuint (record->detail, ==, PTO_HAZARD_RAW);
          i++;
        }
    }
  /* A run that is not recorded tells nobody, and leaves no record. */
  rig->record = 0;
  rig_run_ok (rig, pairs, NULL);
  g_assert_null (pto_level_trace (rig->level));
  for (uint64_t i = 0; i < ON_ALL; i++)
    g_assert_cmpuint (testimony (rig, i)->record, ==, 0);
  g_assert_cmpuint (holdings_now ().descriptors, ==, before.descriptors);
  rig_free (rig);
}

/* --- groups --- */

static void
one_group (struct rig *rig, void *data)
{
  static const uint32_t workers[] = { 2, 0, 1 };

  rig_group (rig, WITNESS, 3, workers, NULL, 10);
}

static void
test_group (gconstpointer threads)
{
  static const uint32_t children[] = { 2, 0, 1 };
  struct rig *rig = new_rig (threads, 0, 3, NULL);
  const struct pto_trace *trace;

  rig_run_ok (rig, one_group, NULL);
  trace = pto_level_trace (rig->level);
  g_assert_cmpuint (count_kind (trace, 1, PTO_TRACE_DISPATCH), ==, 3);
  g_assert_cmpuint (count_kind (trace, 1, PTO_TRACE_COMPLETE), ==, 1);
  for (uint64_t m = 0; m < 3; m++)
    {
      uint32_t b = 2 + children[m];
      const struct pto_trace_record *run = find (trace, b, b + 1, PTO_TRACE_RUN, 0);

      g_assert_cmpuint (run->extra - run->time + SLACK_NS, >=,
                        testimony (rig, 10 + m)->end - testimony (rig, 10 + m)->begin);
      g_assert_cmpuint (find (trace, b, b + 1, PTO_TRACE_ACK, 0)->extra, ==, m);
    }
  rig_free (rig);
}

/* --- death --- */

static void
killed_graph (struct rig *rig, void *data)
{
  Tensor word = rig_words (rig, 1000, 1);

  SUB (rig, WITNESS, 0, scalar (0));
  SUB (rig, DIE, 1, make_output_existing_param (word), scalar (1));
  SUB (rig, WITNESS, 0, make_input_param (word), scalar (2));
}

/* It has a row up to its death; who needed it has none. */
static void
test_death (void)
{
  struct rig *rig = new_rig (GINT_TO_POINTER (0), 0, 2, NULL);
  const struct pto_trace *trace;
  const struct pto_trace_record *run;
  struct pto_trace_topology topology;

  g_assert_cmpint (rig_run (rig, killed_graph, NULL), !=, PTO_OK);
  trace = pto_level_trace (rig->level);
  pto_level_trace_topology (rig->level, &topology);
  check_life (rig, 0, 0);
  run = find (trace, 3, 4, PTO_TRACE_RUN, 1);
  g_assert_cmpuint (topology.begin_ns + run->time, <=, testimony (rig, 1)->begin + SLACK_NS);
  g_assert_cmpuint (topology.begin_ns + run->extra + SLACK_NS, >=, testimony (rig, 1)->end);
  g_assert_cmpuint (find (trace, 1, 2, PTO_TRACE_COMPLETE, 1)->extra, ==, 1);
  g_assert_cmpuint (count_kind (trace, 2, PTO_TRACE_RUN), ==, 1);
  rig_free (rig);
}

/* --- limits --- */

static void
many (struct rig *rig, void *data)
{
  for (uint64_t i = 0; i < 100; i++)
    SUB (rig, WITNESS, i % 2, scalar (i));
}

/* Two records a task on its row, of which 16 fit. */
static void
test_full (gconstpointer threads)
{
  static const char *const parameters[] = { "trace-records", "16", NULL };
  struct rig *rig = new_rig (threads, 0, 2, parameters);
  const struct pto_trace *trace;

  rig_run_ok (rig, many, NULL);
  trace = pto_level_trace (rig->level);
  for (uint32_t b = 2; b < 4; b++)
    {
      g_assert_cmpuint (trace->buffers[b].count, ==, 16);
      g_assert_cmpuint (trace->buffers[b].dropped, ==, 2 * 50 - 16);
    }
  rig_free (rig);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void
one_sub (struct rig *rig, void *data)
{
  SUB (rig, WITNESS, 0, scalar (0));
}
#endif

static void
test_no_room (void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  g_test_skip ("a sanitizer needs more address space than this leaves");
#else
  static const char *const parameters[] = { "trace-records", "268435456", NULL };
  struct rig *rig = new_rig (GINT_TO_POINTER (1), 0, 1, parameters);
  struct rlimit before, small;

  g_assert_cmpint (getrlimit (RLIMIT_AS, &before), ==, 0);
  small = before;
  small.rlim_cur = UINT64_C (4) << 30;
  g_assert_cmpint (setrlimit (RLIMIT_AS, &small), ==, 0);
  g_assert_cmpint (rig_run (rig, one_sub, NULL), ==, PTO_STATUS_NO_MEMORY);
  assert_says (rig->report.message, "set trace-records to less");
  assert_says (rig->failure.text, "set trace-records to less");
  g_assert_null (pto_level_trace (rig->level));
  g_assert_cmpint (setrlimit (RLIMIT_AS, &before), ==, 0);
  rig->record = 0;
  rig_run_ok (rig, one_sub, NULL);
  rig_free (rig);
#endif
}

/* Each level has what those below it have, and its children are told which it is. */
static void
test_levels (gconstpointer threads)
{
  static const struct
  {
    uint32_t level;
    uint32_t kind;
    uint64_t n;
  } rows[] = { { 1, PTO_TRACE_SUBMIT, ON_ALL },  { 1, PTO_TRACE_RUN, ON_ALL },
               { 2, PTO_TRACE_READY, ON_ALL },   { 2, PTO_TRACE_DISPATCH, ON_ALL },
               { 2, PTO_TRACE_ACK, ON_ALL },     { 2, PTO_TRACE_COMPLETE, ON_ALL },
               { 3, PTO_TRACE_DEP, ON_CHIPS },   { 3, PTO_TRACE_RETIRE, ON_ALL },
               { 4, PTO_TRACE_ARG, 2 * ON_ALL }, { 4, PTO_TRACE_SHAPE, ON_ALL } };
  struct rig *rig = new_rig (threads, 2, 1, NULL);

  for (uint32_t level = 1; level <= 4; level++)
    {
      const struct pto_trace *trace;

      rig->record = level;
      rig_run_ok (rig, pairs, NULL);
      trace = pto_level_trace (rig->level);
      for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
        {
          uint64_t n = 0;

          for (uint32_t b = 0; b < trace->n_buffers; b++)
            n += count_kind (trace, b, rows[i].kind);
          g_test_message ("level %u, kind %u: %u", level, rows[i].kind, (guint) n);
          g_assert_cmpuint (n, ==, level >= rows[i].level ? rows[i].n : 0);
        }
      for (uint64_t i = 0; i < ON_ALL; i++)
        g_assert_cmpuint (testimony (rig, i)->record, ==, PTO_RECORD (level, level));
    }
  rig_free (rig);
}

static void
add_tests (void)
{
  g_test_add_data_func ("/pto/trace/levels/processes", GINT_TO_POINTER (0), test_levels);
  g_test_add_data_func ("/pto/trace/levels/threads", GINT_TO_POINTER (1), test_levels);
  g_test_add_data_func ("/pto/trace/rows/processes", GINT_TO_POINTER (0), test_rows);
  g_test_add_data_func ("/pto/trace/rows/threads", GINT_TO_POINTER (1), test_rows);
  g_test_add_data_func ("/pto/trace/group/processes", GINT_TO_POINTER (0), test_group);
  g_test_add_data_func ("/pto/trace/group/threads", GINT_TO_POINTER (1), test_group);
  g_test_add_func ("/pto/trace/death", test_death);
  g_test_add_data_func ("/pto/trace/full/processes", GINT_TO_POINTER (0), test_full);
  g_test_add_data_func ("/pto/trace/full/threads", GINT_TO_POINTER (1), test_full);
  g_test_add_func ("/pto/trace/no-room", test_no_room);
}

int
main (int argc, char **argv)
{
  return level_test_main (argc, argv, add_tests);
}
