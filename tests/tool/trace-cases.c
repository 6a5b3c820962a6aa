/* trace-cases.c: what do the exports of a trace make of given records, and of runs?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Reads cases from standard input, prints a JSON object for each: everything that the library says
 * of the trace. test_trace_truth.py makes the cases and knows what is to come out.
 *
 * Records by hand:                            A run, recorded:
 *   topology SCHEDULERS CLUSTERS AIC AIV VIRTUAL  run BACKEND SEED WINDOW CLUSTERS
 *   title TEXT / kernel TEXT (with C escapes)     scope 1 / scope 0 (begin, end)
 *   buffer DROPPED                                task KERNEL TYPE BYTES {r|w|b}CELL...
 *   record TIME TASK KIND DETAIL EXTRA        and both: end
 */
#include "config.h"

#include "../../pto/trace/model/trace.h"

#include <json-glib/json-glib.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum
{
  N_CELLS = 64,
  CELL = 64,
  MAX_TASKS = 4096,
  MAX_WORDS = 32
};

/* --- what the library says --- */

static void
add_string (JsonBuilder *builder, const char *name, const char *value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, value);
}

static void
add_int (JsonBuilder *builder, const char *name, guint64 value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_int_value (builder, (gint64) value);
}

static void
add_trace (JsonBuilder *builder, PtoTrace *trace)
{
  g_autofree char *json = pto_trace_to_json (trace);
  g_autofree char *svg = pto_trace_to_svg (trace);
  g_autofree char *html = pto_trace_to_html (trace);
  g_autofree char *summary = pto_trace_summarize (trace);
  g_autoptr (GBytes) perfetto = pto_trace_to_perfetto (trace);
  g_autofree char *encoded
      = g_base64_encode (g_bytes_get_data (perfetto, NULL), g_bytes_get_size (perfetto));
  g_autofree guint64 *path = NULL;
  gsize n_path;

  path = pto_trace_dup_critical_path (trace, &n_path);
  add_string (builder, "json", json);
  add_string (builder, "svg", svg);
  add_string (builder, "html", html);
  add_string (builder, "perfetto", encoded);
  add_string (builder, "summary", summary);
  add_string (builder, "title", pto_trace_get_title (trace));
  add_string (builder, "sha256", pto_trace_get_sha256 (trace));
  add_int (builder, "virtual", (guint64) pto_trace_is_virtual (trace));
  add_int (builder, "recorded", pto_trace_get_recorded (trace));
  add_int (builder, "dropped", pto_trace_get_dropped (trace));
  add_int (builder, "tasks", pto_trace_get_n_tasks (trace));
  add_int (builder, "edges", pto_trace_get_n_edges (trace));
  add_int (builder, "elapsed", pto_trace_get_elapsed_ns (trace));
  add_int (builder, "critical_ns", pto_trace_get_critical_path_ns (trace));
  json_builder_set_member_name (builder, "critical");
  json_builder_begin_array (builder);
  for (gsize i = 0; i < n_path; i++)
    json_builder_add_int_value (builder, (gint64) path[i]);
  json_builder_end_array (builder);
  json_builder_set_member_name (builder, "cores");
  json_builder_begin_array (builder);
  for (guint c = 0; c < pto_trace_get_n_cores (trace); c++)
    {
      g_autofree char *name = pto_trace_dup_core_name (trace, c);

      json_builder_begin_array (builder);
      json_builder_add_string_value (builder, name);
      json_builder_add_double_value (builder, pto_trace_get_core_utilization (trace, c));
      json_builder_end_array (builder);
    }
  json_builder_end_array (builder);
}

static void
print (JsonBuilder *builder)
{
  g_autoptr (JsonNode) root = json_builder_get_root (builder);
  g_autofree char *text = json_to_string (root, FALSE);

  puts (text);
  fflush (stdout);
}

static guint64
number (char **words, guint i)
{
  guint64 value = 0;

  g_assert_cmpuint (g_strv_length (words), >, i);
  g_assert_true (g_ascii_string_to_unsigned (words[i], 10, 0, G_MAXUINT64, &value, NULL));
  return value;
}

/* The next line in words; NULL after "end". */
static char **
next_line (void)
{
  char line[4096];

  if (fgets (line, sizeof line, stdin) == NULL)
    return NULL;
  line[strcspn (line, "\n")] = '\0';
  return strcmp (line, "end") == 0 ? NULL : g_strsplit (line, " ", MAX_WORDS);
}

/* --- records by hand --- */

static void
case_records (char **first)
{
  struct pto_trace_topology topology = { .n_schedulers = (guint32) number (first, 1),
                                         .n_clusters = (guint32) number (first, 2),
                                         .aic_per_cluster = (guint32) number (first, 3),
                                         .aiv_per_cluster = (guint32) number (first, 4),
                                         .virtual_clock = number (first, 5) != 0,
                                         .counter_hz = 50000000 };
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *title = NULL;
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  g_autoptr (PtoTrace) trace = NULL;
  GArray *records[128];
  struct pto_trace_buffer buffers[G_N_ELEMENTS (records)] = { 0 };
  struct pto_trace all = { buffers, 0 };
  char **words;

  topology.n_cores = topology.n_clusters * (topology.aic_per_cluster + topology.aiv_per_cluster);
  while ((words = next_line ()) != NULL)
    {
      g_autofree char *rest = words[1] != NULL ? g_strjoinv (" ", words + 1) : g_strdup ("");

      if (strcmp (words[0], "title") == 0)
        title = g_strcompress (rest);
      else if (strcmp (words[0], "kernel") == 0)
        g_ptr_array_add (names, rest[0] != '\0' ? g_strcompress (rest) : NULL);
      else if (strcmp (words[0], "buffer") == 0)
        {
          g_assert_cmpuint (all.n_buffers, <, G_N_ELEMENTS (records));
          buffers[all.n_buffers].dropped = number (words, 1);
          records[all.n_buffers++] = g_array_new (FALSE, FALSE, sizeof (struct pto_trace_record));
        }
      else
        {
          struct pto_trace_record record
              = { number (words, 1), number (words, 2), (guint32) number (words, 3),
                  (guint32) number (words, 4), number (words, 5) };

          g_array_append_val (records[all.n_buffers - 1], record);
        }
      g_strfreev (words);
    }
  for (guint b = 0; b < all.n_buffers; b++)
    {
      buffers[b].records = (struct pto_trace_record *) (void *) records[b]->data;
      buffers[b].count = buffers[b].capacity = records[b]->len;
    }
  trace = pto_trace_new_from_run (&all, &topology, (const char *const *) names->pdata, names->len,
                                  title);
  /* A trace is a copy. */
  for (guint b = 0; b < all.n_buffers; b++)
    {
      if (records[b]->len > 0)
        memset (records[b]->data, 0xff, records[b]->len * sizeof (struct pto_trace_record));
      g_array_unref (records[b]);
    }
  json_builder_begin_object (builder);
  add_trace (builder, trace);
  json_builder_end_object (builder);
  print (builder);
}

/* --- a run --- */

typedef struct
{
  int kernel;
  int type;
  gboolean is_scope; /* kernel: begins */
  guint64 bytes;     /* of memory that the runtime allocates for it; 0: none */
  guint n_cells;
  int cells[MAX_WORDS];
  PTOParamType access[MAX_WORDS];
} Step;

typedef struct
{
  GArray *steps;
} Program;

static char memory[N_CELLS][CELL];
/* What kernels saw: which task ran as what, and in which order. */
static atomic_uint order;
static struct
{
  atomic_uint runs;
  guint kernel;
  guint begin;
  guint end;
} seen[MAX_TASKS];

static void
saw (int64_t *args, guint kernel)
{
  guint task = (guint) args[0];

  seen[task].begin = atomic_fetch_add (&order, 1);
  atomic_fetch_add (&seen[task].runs, 1);
  seen[task].kernel = kernel;
  seen[task].end = atomic_fetch_add (&order, 1);
}

static void
kernel_mul (int64_t *args)
{
  saw (args, 0);
}

static void
kernel_add (int64_t *args)
{
  saw (args, 1);
}

static void
kernel_sub (int64_t *args)
{
  saw (args, 2);
}

static const struct pto_kernel kernels[]
    = { { "mul", kernel_mul, PTO_CORE_TYPE_AIC, { .base_ns = 3000 } },
        { "add", kernel_add, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
        { "sub", kernel_sub, PTO_CORE_TYPE_AIV, { .base_ns = 1700 } } };

static int
orchestrate (PTO2Runtime *rt, void *data)
{
  const Program *program = data;
  guint64 cell[1] = { CELL };
  guint task = 0;

  pto2_rt_init_tensor_pool (rt);
  for (guint i = 0; i < program->steps->len; i++)
    {
      const Step *step = &g_array_index (program->steps, Step, i);
      PTOParam params[MAX_WORDS + 2];
      int n = 0;

      if (step->is_scope && step->kernel != 0)
        pto2_rt_scope_begin (rt);
      else if (step->is_scope)
        pto2_rt_scope_end (rt);
      if (step->is_scope)
        continue;
      params[n++] = make_scalar_param (task++);
      for (guint k = 0; k < step->n_cells; k++)
        {
          params[n].type = step->access[k];
          params[n++].tensor
              = make_tensor_external (memory[step->cells[k]], cell, 1, PTO_DTYPE_UINT8);
        }
      if (step->bytes > 0)
        params[n++]
            = make_output_param (make_tensor (&(uint64_t){ step->bytes }, 1, PTO_DTYPE_UINT8));
      pto2_rt_submit_task (rt, step->kernel, step->type, params, n);
    }
  return 0;
}

static void
add_records (JsonBuilder *builder, const struct pto_trace *records)
{
  json_builder_set_member_name (builder, "buffers");
  json_builder_begin_array (builder);
  for (guint b = 0; b < records->n_buffers; b++)
    {
      json_builder_begin_array (builder);
      for (guint64 i = 0; i < records->buffers[b].count; i++)
        {
          const struct pto_trace_record *record = &records->buffers[b].records[i];

          json_builder_begin_array (builder);
          json_builder_add_int_value (builder, (gint64) record->time);
          json_builder_add_int_value (builder, (gint64) record->task);
          json_builder_add_int_value (builder, record->kind);
          json_builder_add_int_value (builder, record->detail);
          json_builder_add_int_value (builder, (gint64) record->extra);
          json_builder_end_array (builder);
        }
      json_builder_end_array (builder);
    }
  json_builder_end_array (builder);
}

static void
add_topology (JsonBuilder *builder, const struct pto_trace_topology *topology)
{
  const guint64 values[]
      = { topology->n_schedulers, topology->n_clusters, topology->aic_per_cluster,
          topology->aiv_per_cluster, (guint64) topology->virtual_clock };

  json_builder_set_member_name (builder, "topology");
  json_builder_begin_array (builder);
  for (guint i = 0; i < G_N_ELEMENTS (values); i++)
    json_builder_add_int_value (builder, (gint64) values[i]);
  json_builder_end_array (builder);
  g_assert_cmpuint (topology->n_cores, ==, values[1] * (values[2] + values[3]));
}

static void
case_run (char **first)
{
  static const char *const names[] = { "mul", "add", "sub" };
  static const char *const settings[] = { "backend", "seed", "task-window", "clusters" };
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  g_autoptr (PtoTrace) trace = NULL;
  Program steps = { g_array_new (FALSE, FALSE, sizeof (Step)) };
  struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };
  struct pto_run_config config = { .record = PTO_TRACE_LEVEL_GRAPH };
  struct pto_trace_topology topology;
  struct pto_report report = { 0 };
  struct pto_chip *chip;
  struct pto_params params;
  guint n_tasks = 0;
  char **words;

  pto_params_init (&params, 2);
  for (guint i = 0; i < G_N_ELEMENTS (settings); i++)
    pto_params_set (&params, settings[i], first[1 + i], &report);
  while ((words = next_line ()) != NULL)
    {
      Step step = { .is_scope = strcmp (words[0], "scope") == 0 };

      step.kernel = (int) number (words, 1);
      if (!step.is_scope)
        {
          step.type = (int) number (words, 2);
          step.bytes = number (words, 3);
          for (char **word = words + 4; *word != NULL; word++)
            {
              step.access[step.n_cells] = **word == 'r'   ? PTO_PARAM_INPUT
                                          : **word == 'w' ? PTO_PARAM_OUTPUT_EXISTING
                                                          : PTO_PARAM_INOUT;
              step.cells[step.n_cells++] = atoi (*word + 1);
            }
          n_tasks++;
        }
      g_array_append_val (steps.steps, step);
      g_strfreev (words);
    }
  g_assert_cmpuint (n_tasks, <=, MAX_TASKS);
  memset (seen, 0, sizeof seen);
  atomic_store (&order, 0);

  chip = pto_chip_new (pto_platform_find ("a2a3sim"), &params, &report);
  g_assert_cmpstr (report.message, ==, "");
  pto_chip_run (chip, &program, &config, orchestrate, &steps, NULL, &report);
  g_assert_cmpstr (report.message, ==, "");
  pto_chip_trace_topology (chip, &topology);
  trace = pto_trace_new_from_run (pto_chip_trace (chip), &topology, names, G_N_ELEMENTS (names),
                                  "a run");

  json_builder_begin_object (builder);
  add_trace (builder, trace);
  add_topology (builder, &topology);
  add_records (builder, pto_chip_trace (chip));
  json_builder_set_member_name (builder, "seen");
  json_builder_begin_array (builder);
  for (guint i = 0; i < n_tasks; i++)
    {
      json_builder_begin_array (builder);
      json_builder_add_int_value (builder, atomic_load (&seen[i].runs));
      json_builder_add_int_value (builder, seen[i].kernel);
      json_builder_add_int_value (builder, seen[i].begin);
      json_builder_add_int_value (builder, seen[i].end);
      json_builder_end_array (builder);
    }
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  print (builder);
  pto_chip_free (chip);
  g_array_unref (steps.steps);
}

int
main (void)
{
  char **words;

  while ((words = next_line ()) != NULL)
    {
      if (strcmp (words[0], "run") == 0)
        case_run (words);
      else
        case_records (words);
      g_strfreev (words);
    }
  return 0;
}
