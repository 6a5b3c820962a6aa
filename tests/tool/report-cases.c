/* report-cases.c: which pages does a browser look at?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * usage: report-cases DIRECTORY [NAME...]
 * Writes reports and pictures of runs on paper: small, large (100 000 tasks), evil (names that are
 * markup elsewhere), tree (a level), blocks, given (all that can be recorded of two tasks), moved
 * (tensors that travel), dropped and empty; those that are named, or all.
 */
#include "config.h"

#include "synthetic-trace.h"

#include <string.h>

#define SECOND G_GUINT64_CONSTANT (1000000000)

static char **wanted;

static gboolean
is_wanted (const char *name)
{
  return wanted[0] == NULL || g_strv_contains ((const char *const *) wanted, name);
}

/* Also as a picture, to which colours are compared. */
static void
save (PtoTrace *trace, const char *directory, const char *name)
{
  static const char *const suffixes[] = { ".html", ".svg" };

  for (guint i = 0; i < G_N_ELEMENTS (suffixes) && is_wanted (name); i++)
    {
      g_autofree char *file = g_strconcat (name, suffixes[i], NULL);
      g_autofree char *path = g_build_filename (directory, file, NULL);
      g_autoptr (GError) error = NULL;

      g_assert_true (pto_trace_save (trace, path, &error));
      g_assert_no_error (error);
    }
}

/* lost: this many records of the orchestrator are missing, the first ones. */
static PtoTrace *
run_attention (guint chunks, guint n_clusters, const char *const *kernels, const char *title,
               guint lost)
{
  struct pto_trace_topology topology;
  g_autoptr (SyntheticGraph) graph = synthetic_graph_new_attention (chunks, 3);
  struct pto_trace *records;
  PtoTrace *trace;

  synthetic_topology (&topology, n_clusters);
  records = synthetic_graph_run (graph, &topology, 1024);
  if (lost > 0)
    {
      struct pto_trace_buffer *buffer = &records->buffers[0];

      buffer->dropped = lost;
      buffer->count -= lost;
      memmove (buffer->records, buffer->records + lost, buffer->count * sizeof *buffer->records);
    }
  trace = pto_trace_new_from_run (records, &topology, kernels, 5, title);
  synthetic_records_free (records);
  return trace;
}

static void
save_attention (const char *directory, const char *name, guint chunks, guint n_clusters,
                const char *const *kernels, const char *title, guint lost)
{
  g_autoptr (PtoTrace) trace = NULL;

  if (!is_wanted (name))
    return;
  trace = run_attention (chunks, n_clusters, kernels, title, lost);
  save (trace, directory, name);
}

/* A level with two chips and a SUB worker: each chip runs all of an attention inside of its tasks.
 */
static void
save_tree (const char *directory)
{
  static const char *const names[] = { "decode", "reduce" };
  static const char *const rows[] = { "L2/0", "L2/1", "sub0", NULL };
  struct pto_trace_topology topology = { .n_schedulers = 1,
                                         .n_cores = 3,
                                         .level = 3,
                                         .n_workers = 2,
                                         .begin_ns = 100 * SECOND,
                                         .end_ns = 100 * SECOND + 1000000,
                                         .run_ns = 1000000 };
  struct pto_trace_record submits[16];
  struct pto_trace_record of_rows[3][4];
  struct pto_trace_buffer buffers[5] = { 0 };
  struct pto_trace records = { buffers, 5 };
  g_autoptr (PtoTrace) trace = NULL;

  buffers[0].records = submits;
  for (guint c = 0; c < 3; c++)
    buffers[2 + c].records = of_rows[c];
  for (guint i = 0; i < 6; i++)
    {
      guint row = i % 3;
      guint64 start = 20000 + i / 3 * 400000 + (row == 2 ? 350000 : 0);
      struct pto_trace_buffer *buffer = &buffers[2 + row];

      submits[buffers[0].count++]
          = (struct pto_trace_record){ 1000 + 200 * i, i, PTO_TRACE_SUBMIT, row == 2, 0 };
      for (guint k = 0; row == 2 && k < 2; k++)
        submits[buffers[0].count++] = (struct pto_trace_record){ 1010 + 200 * i, i, PTO_TRACE_DEP,
                                                                 PTO_HAZARD_RAW, i - 2 + k };
      buffer->records[buffer->count++]
          = (struct pto_trace_record){ start, i, PTO_TRACE_RUN, row,
                                       start + (row == 2 ? 30000 : 330000) };
    }
  trace = pto_trace_new_from_run (&records, &topology, names, 2, "two chips");
  pto_trace_take_names (trace, g_strdup ("L3/0"), g_strdupv ((char **) rows));
  for (guint i = 0; i < 6; i++)
    if (i % 3 != 2)
      {
        PtoTrace *chip = run_attention (6, 2, synthetic_attention_kernels, "chip", 0);
        guint64 begin = 100 * SECOND + 20000 + i / 3 * 400000;

        /* From 0 on its own clock, whose first record is later. */
        chip->topology.begin_ns = begin;
        chip->topology.end_ns = begin + 320000;
        chip->topology.run_ns = 1000000 + pto_trace_get_elapsed_ns (chip);
        pto_trace_pieces_take (&trace->pieces, i % 3, i, chip);
      }
  pto_trace_settle (trace);
  save (trace, directory, "tree");
}

/* One task in three blocks on two cores, the second core with two blocks of one dispatch, and a
 * task that ran nothing behind it. */
static void
save_blocks (const char *directory)
{
  static const char *const names[] = { "spread" };
  struct pto_trace_topology topology = {
    .n_schedulers = 1, .n_cores = 2, .n_clusters = 1, .aiv_per_cluster = 2, .virtual_clock = true
  };
  struct pto_trace_record submits[] = { { 100, 0, PTO_TRACE_SUBMIT, 0, PTO_CORE_TYPE_AIV },
                                        { 100, 0, PTO_TRACE_READY, 0, 0 },
                                        { 110, 1, PTO_TRACE_SUBMIT, G_MAXUINT32, 0 },
                                        { 110, 1, PTO_TRACE_DEP, PTO_HAZARD_EXPLICIT, 0 } };
  struct pto_trace_record dispatches[] = { { 120, 0, PTO_TRACE_DISPATCH, 0, 1 },
                                           { 130, 0, PTO_TRACE_DISPATCH, 1, 1 },
                                           { 480, 0, PTO_TRACE_COMPLETE, 1, 1 },
                                           { 480, 1, PTO_TRACE_COMPLETE, 0, 0 } };
  struct pto_trace_record first[] = { { 150, 0, PTO_TRACE_PART, 0, 0 },
                                      { 150, 0, PTO_TRACE_WAIT, 0, 30 },
                                      { 150, 0, PTO_TRACE_RUN, 0, 250 } };
  struct pto_trace_record second[] = { { 160, 0, PTO_TRACE_PART, 0, 1 },
                                       { 160, 0, PTO_TRACE_RUN, 1, 300 },
                                       { 310, 0, PTO_TRACE_PART, 0, 2 },
                                       { 310, 0, PTO_TRACE_RUN, 1, 470 } };
  struct pto_trace_buffer buffers[] = { { submits, G_N_ELEMENTS (submits) },
                                        { dispatches, G_N_ELEMENTS (dispatches) },
                                        { first, G_N_ELEMENTS (first) },
                                        { second, G_N_ELEMENTS (second) } };
  struct pto_trace records = { buffers, G_N_ELEMENTS (buffers) };
  g_autoptr (PtoTrace) trace = NULL;

  trace = pto_trace_new_from_run (&records, &topology, names, 1, "blocks");
  save (trace, directory, "blocks");
}

/* So many runs that each is a fraction of a pixel: of every 100 ns the cores are busy for 8, 40 and
 * 90; the first in two kernels, which take 2 and 6 of these. */
static void
save_short (const char *directory)
{
  enum
  {
    N = 8000
  };
  static const char *const names[] = { "brief", "long" };
  static const guint64 took[] = { 6, 40, 90 };
  struct pto_trace_topology topology = {
    .n_schedulers = 1, .n_cores = 3, .n_clusters = 1, .aiv_per_cluster = 3, .virtual_clock = true
  };
  g_autofree struct pto_trace_record *submits = g_new0 (struct pto_trace_record, 4 * N);
  g_autofree struct pto_trace_record *runs = g_new0 (struct pto_trace_record, 4 * N);
  struct pto_trace_buffer buffers[5] = { { submits, 4 * N } };
  struct pto_trace records = { buffers, G_N_ELEMENTS (buffers) };
  g_autoptr (PtoTrace) trace = NULL;

  buffers[2].records = runs;
  buffers[2].count = 2 * N;
  for (guint c = 1; c < 3; c++)
    buffers[2 + c] = (struct pto_trace_buffer){ runs + (1 + c) * N, N };
  for (guint i = 0; i < N; i++)
    {
      guint64 now = 100 * i;

      for (guint k = 0; k < 4; k++)
        submits[4 * i + k] = (struct pto_trace_record){ now, 4 * i + k, PTO_TRACE_SUBMIT, k == 0,
                                                        PTO_CORE_TYPE_AIV };
      runs[2 * i] = (struct pto_trace_record){ now, 4 * i, PTO_TRACE_RUN, 0, now + took[0] };
      runs[2 * i + 1]
          = (struct pto_trace_record){ now + 50, 4 * i + 1, PTO_TRACE_RUN, 0, now + 52 };
      for (guint c = 1; c < 3; c++)
        runs[(1 + c) * N + i]
            = (struct pto_trace_record){ now, 4 * i + 1 + c, PTO_TRACE_RUN, c, now + took[c] };
    }
  trace = pto_trace_new_from_run (&records, &topology, names, 2, "short");
  save (trace, directory, "short");
}

/* One task writes a tensor of 4 by 8, another reads its left half; each of another line, in a scope
 * of line 7. */
static void
save_given (const char *directory)
{
  enum
  {
    FILE = 1 << 16,
    TENSOR = 2 << 16 | PTO_DTYPE_FLOAT32 << 8
  };
  static const char *const names[] = { "make", "use" };
  const guint64 line = G_GUINT64_CONSTANT (1) << 32;
  const guint64 address = G_GUINT64_CONSTANT (0xffff800012345000);
  const guint64 first = PTO_TASK_ID (1, 0);
  const guint64 second = PTO_TASK_ID (1, 1);
  struct pto_trace_topology topology = {
    .n_schedulers = 1, .n_cores = 1, .n_clusters = 1, .aiv_per_cluster = 1, .virtual_clock = true
  };
  struct pto_trace_record orchestrator[] = {
    { 1000, PTO_TASK_NONE, PTO_TRACE_SCOPE, 1, 7 * line | FILE | 1 },
    { address, first, PTO_TRACE_ARG, 0, TENSOR | PTO_PARAM_OUTPUT },
    { 8 * line | 4, line | 8, PTO_TRACE_SHAPE, 0, 0 },
    { (guint64) -5, first, PTO_TRACE_ARG, 1, PTO_PARAM_SCALAR },
    { 1100, first, PTO_TRACE_SUBMIT, 0, 12 * line | FILE | 1 << 8 | PTO_CORE_TYPE_AIV },
    { 1110, first, PTO_TRACE_READY, 0, 0 },
    { 1100, 4096, PTO_TRACE_OCCUPANCY, 1, 1 },
    { address, second, PTO_TRACE_ARG, 0, TENSOR | PTO_PARAM_INPUT },
    { 4 * line | 4, line | 8, PTO_TRACE_SHAPE, 0, 0 },
    { address, second, PTO_TRACE_ARG, 1, TENSOR | PTO_PARAM_INOUT },
    { 8 * line | 4, line | 8, PTO_TRACE_SHAPE, 0, 0 },
    { 1200, second, PTO_TRACE_SUBMIT, 1,
      13 * line | 2 << 28 | FILE | 1 << 8 | PTO_CORE_TYPE_AIV }, /* of priority 2 */
    { 1200, second, PTO_TRACE_DEP, PTO_HAZARD_RAW | PTO_HAZARD_WAW, first },
    { 1200, 2 * 4096, PTO_TRACE_OCCUPANCY, 1, line | 3 },
    { 1300, PTO_TASK_NONE, PTO_TRACE_SCOPE, 1, 0 },
    { 3000, 0, PTO_TRACE_OCCUPANCY, 1, 3 },
  };
  struct pto_trace_record scheduler[] = { { 1120, first, PTO_TRACE_DISPATCH, 0, 1 },
                                          { 2010, first, PTO_TRACE_COMPLETE, 0, 0 },
                                          { 2010, second, PTO_TRACE_READY, 1, first },
                                          { 2020, second, PTO_TRACE_DISPATCH, 0, 2 },
                                          { 2800, second, PTO_TRACE_COMPLETE, 0, 0 } };
  struct pto_trace_record core[]
      = { { 1150, first, PTO_TRACE_RUN, 0, 2000 }, { 2050, second, PTO_TRACE_RUN, 0, 2750 } };
  struct pto_trace_buffer buffers[] = { { orchestrator, G_N_ELEMENTS (orchestrator) },
                                        { scheduler, G_N_ELEMENTS (scheduler) },
                                        { core, G_N_ELEMENTS (core) } };
  struct pto_trace records = { buffers, G_N_ELEMENTS (buffers) };
  g_autofree char *file = g_strdup ("/somewhere/<graph>.c");
  g_autoptr (PtoTrace) trace = NULL;

  records.files.names[0] = file;
  records.files.n = 1;
  trace = pto_trace_new_from_run (&records, &topology, names, 2, "given");
  save (trace, directory, "given");
}

/* A level whose worker shares no memory: what one task reads and writes travels, and what is for
 * nobody comes back. Times are us from the first record on. */
static void
save_moved (const char *directory)
{
  static const char *const names[] = { "step" };
  static const char *const rows[] = { "L3/0", NULL };
  struct pto_trace_topology topology
      = { .n_schedulers = 1, .n_cores = 1, .level = 4, .n_workers = 1, .run_ns = 100000 };
  struct pto_trace_record submits[] = { { 0, 0, PTO_TRACE_SUBMIT, 0, 0 } };
  struct pto_trace_record of_row[]
      = { { 10000, 0, PTO_TRACE_TRANSFER, 0, 30000 },
          { 3 << 20, 0, PTO_TRACE_BYTES, 0, 512 },
          { 30000, 0, PTO_TRACE_RUN, 0, 50000 },
          { 50000, 0, PTO_TRACE_TRANSFER, PTO_TRACE_TRANSFER_BACK, 60000 },
          { 2048, 0, PTO_TRACE_BYTES, PTO_TRACE_TRANSFER_BACK, 0 },
          { 80000, PTO_TASK_NONE, PTO_TRACE_TRANSFER, PTO_TRACE_TRANSFER_BACK, 100000 },
          { 7, PTO_TASK_NONE, PTO_TRACE_BYTES, PTO_TRACE_TRANSFER_BACK, 0 } };
  struct pto_trace_buffer buffers[]
      = { { submits, G_N_ELEMENTS (submits) }, { NULL }, { of_row, G_N_ELEMENTS (of_row) } };
  struct pto_trace records = { buffers, G_N_ELEMENTS (buffers) };
  g_autoptr (PtoTrace) trace = pto_trace_new_from_run (&records, &topology, names, 1, "moved");

  pto_trace_take_names (trace, g_strdup ("L4/0"), g_strdupv ((char **) rows));
  save (trace, directory, "moved");
}

int
main (int argc, char **argv)
{
  static const char *const evil[]
      = { "</script><b>bold</b>", "\"quoted\\\"", "<img src=x onerror=document.title='broken'>",
          "{{data}}\n\t\342\200\250", "&lt;&amp;\302\240\360\237\246\212" };
  g_autoptr (PtoTrace) empty = g_object_new (PTO_TYPE_TRACE, NULL);

  if (argc < 2)
    {
      g_printerr ("usage: report-cases DIRECTORY [NAME...]\n");
      return 2;
    }
  wanted = argv + 2;
  save_attention (argv[1], "small", 4, 2, synthetic_attention_kernels, "attention, small", 0);
  save_attention (argv[1], "few", 1, 24, synthetic_attention_kernels, "attention, few clusters", 0);
  save_attention (argv[1], "large", 7693, 24, synthetic_attention_kernels, "attention", 0);
  save_attention (argv[1], "evil", 2, 1, evil,
                  "</title><script>document.title='broken'</script>{{style.css}}", 0);
  save_attention (argv[1], "dropped", 4, 2, synthetic_attention_kernels, "dropped", 20);
  save_tree (argv[1]);
  save_blocks (argv[1]);
  save_given (argv[1]);
  save_moved (argv[1]);
  save_short (argv[1]);
  save (empty, argv[1], "empty");
  return 0;
}
