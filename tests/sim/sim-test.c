/* sim-test.c: what do the tests of the simulated chip share?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

const char *const sim_backend_names[3] = { "par", "det", "threads" };

/* --- tests --- */

struct registered
{
  SimTest test;
  enum pto_backend backend;
};

static void
run_test (gconstpointer data)
{
  const struct registered *r = data;

  alarm (RUN_SHORT ? 5 * DEADLINE_S : DEADLINE_S);
  r->test (r->backend);
  alarm (0);
}

static void
add (const char *path, SimTest test, enum pto_backend backend)
{
  struct registered *r = g_new (struct registered, 1);

  r->test = test;
  r->backend = backend;
  g_test_add_data_func_full (path, r, run_test, g_free);
}

void
sim_add (const char *name, SimTest test)
{
  for (int i = 0; i < 3; i++)
    if (!SHOWS_NOTHING (i))
      {
        char *path = g_strdup_printf ("/pto/%s/%s", name, sim_backend_names[i]);

        add (path, test, (enum pto_backend) i);
        g_free (path);
      }
}

void
sim_add_once (const char *name, SimTest test)
{
  char *path = g_strdup_printf ("/pto/%s", name);

  add (path, test, PTO_BACKEND_DET);
  g_free (path);
}

int
sim_main (int argc, char **argv, void (*add_tests) (void))
{
  g_test_init (&argc, &argv, NULL);
  add_tests ();
  return g_test_run ();
}

/* --- chips and runs --- */

struct pto_chip *
sim_chip_on (const struct pto_platform *platform, enum pto_backend backend, const char *settings)
{
  char **list = g_strsplit (settings != NULL ? settings : "", " ", -1);
  struct pto_report report = { 0 };
  struct pto_params params;
  struct pto_chip *chip;

  pto_params_init (&params, 2);
  pto_params_set (&params, "backend", sim_backend_names[backend], &report);
  for (char **s = list; *s != NULL; s++)
    if (**s != '\0')
      {
        char **pair = g_strsplit (*s, "=", 2);

        pto_params_set (&params, pair[0], pair[1], &report);
        g_strfreev (pair);
      }
  g_strfreev (list);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_nonnull (platform);
  chip = pto_chip_new (platform, &params, &report);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_nonnull (chip);
  return chip;
}

struct pto_chip *
sim_chip (enum pto_backend backend, const char *settings)
{
  return sim_chip_on (pto_platform_find ("a2a3sim"), backend, settings);
}

static void
run (struct pto_chip *chip, const struct pto_program *program, bool trace,
     SimOrchestration orchestrate, void *data, struct pto_run_stats *stats)
{
  struct pto_run_config config = { .record = trace ? PTO_TRACE_LEVEL_GRAPH : 0 };
  struct pto_report report = { 0 };
  struct pto_run_stats own;
  enum pto_status status;

  if (stats == NULL)
    stats = &own;
  status = pto_chip_run (chip, program, &config, orchestrate, data, stats, &report);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_cmpint (status, ==, PTO_OK);
  g_assert_cmpuint (stats->completed, ==, stats->tasks);
  g_assert_cmpuint (stats->failed, ==, 0);
}

void
sim_run (struct pto_chip *chip, const struct pto_program *program, SimOrchestration orchestrate,
         void *data, struct pto_run_stats *stats)
{
  run (chip, program, false, orchestrate, data, stats);
}

const struct pto_trace *
sim_record (struct pto_chip *chip, const struct pto_program *program, SimOrchestration orchestrate,
            void *data, struct pto_run_stats *stats)
{
  run (chip, program, true, orchestrate, data, stats);
  g_assert_nonnull (pto_chip_trace (chip));
  return pto_chip_trace (chip);
}

static void
assert_says (const struct pto_report *report, enum pto_status status, va_list words)
{
  const char *word;

  g_test_message ("%s", report->message);
  g_assert_cmpint (report->status, ==, status);
  while ((word = va_arg (words, const char *)) != NULL)
    if (strstr (report->message, word) == NULL)
      g_error ("\"%s\" does not say \"%s\"", report->message, word);
}

void
sim_assert_says (const struct pto_report *report, enum pto_status status, ...)
{
  va_list words;

  va_start (words, status);
  assert_says (report, status, words);
  va_end (words);
}

void
sim_run_fails (struct pto_chip *chip, const struct pto_program *program,
               SimOrchestration orchestrate, void *data, enum pto_status status, ...)
{
  struct pto_report report = { 0 };
  va_list words;

  g_assert_cmpint (pto_chip_run (chip, program, NULL, orchestrate, data, NULL, &report), ==,
                   status);
  va_start (words, status);
  assert_says (&report, status, words);
  va_end (words);
}

/* --- the vector example --- */

static void
kernel_add (int64_t *args)
{
  const float *a = sim_data (args, 0);
  const float *b = sim_data (args, 1);
  float *c = sim_data (args, 2);

  for (uint64_t i = 0; i < sim_tensor (args, 2)->shapes[0]; i++)
    c[i] = a[i] + b[i];
}

static void
kernel_add_scalar (int64_t *args)
{
  const float *a = sim_data (args, 0);
  float *b = sim_data (args, 1);
  float c;

  memcpy (&c, &args[2], sizeof c);
  for (uint64_t i = 0; i < sim_tensor (args, 1)->shapes[0]; i++)
    b[i] = a[i] + c;
}

static void
kernel_mul (int64_t *args)
{
  const float *a = sim_data (args, 0);
  const float *b = sim_data (args, 1);
  float *c = sim_data (args, 2);

  for (uint64_t i = 0; i < sim_tensor (args, 2)->shapes[0]; i++)
    c[i] = a[i] * b[i];
}

static const struct pto_kernel vector_kernels[] = {
  { "add", kernel_add, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  { "add_scalar", kernel_add_scalar, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  { "mul", kernel_mul, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
};
const struct pto_program sim_vector_program = { vector_kernels, G_N_ELEMENTS (vector_kernels) };

int
sim_vector (PTO2Runtime *rt, void *data)
{
  struct sim_vector *v = data;
  uint64_t shape[] = { SIM_VECTOR_N };
  Tensor a = make_tensor_external (v->a, shape, 1, PTO_DTYPE_FLOAT32);
  Tensor b = make_tensor_external (v->b, shape, 1, PTO_DTYPE_FLOAT32);
  Tensor f = make_tensor_external (v->f, shape, 1, PTO_DTYPE_FLOAT32);
  Tensor c, d, e, g;

  pto2_rt_init_tensor_pool (rt);
  c = make_tensor (shape, 1, PTO_DTYPE_FLOAT32);
  d = make_tensor (shape, 1, PTO_DTYPE_FLOAT32);
  e = make_tensor (shape, 1, PTO_DTYPE_FLOAT32);
  g = v->four ? f : make_tensor (shape, 1, PTO_DTYPE_FLOAT32);
  {
    PTOParam t0[] = { make_input_param (a), make_input_param (b), make_output_param (c) };
    PTOParam t1[]
        = { make_input_param (c), make_output_param (d), make_scalar_param (sim_float_bits (1)) };
    PTOParam t2[]
        = { make_input_param (c), make_output_param (e), make_scalar_param (sim_float_bits (2)) };
    PTOParam t3[] = { make_input_param (d), make_input_param (e), make_output_param (g) };
    PTOParam t4[] = { make_input_param (g), make_input_param (c), make_output_param (f) };

    pto2_rt_submit_task (rt, 0, AIV, t0, 3);
    pto2_rt_submit_task (rt, 1, AIV, t1, 3);
    pto2_rt_submit_task (rt, 1, AIV, t2, 3);
    pto2_rt_submit_task (rt, 2, AIV, t3, 3);
    if (!v->four)
      pto2_rt_submit_task (rt, 0, AIV, t4, 3);
  }
  return 0;
}

void
sim_assert_well (struct pto_chip *chip)
{
  struct sim_vector *v = g_new0 (struct sim_vector, 1);
  struct pto_run_stats stats;

  for (int i = 0; i < SIM_VECTOR_N; i++)
    {
      v->a[i] = 2;
      v->b[i] = 3;
    }
  sim_run (chip, &sim_vector_program, sim_vector, v, &stats);
  g_assert_cmpuint (stats.tasks, ==, 5);
  for (int i = 0; i < SIM_VECTOR_N; i++)
    if (v->f[i] != 47)
      g_error ("element %d is %g", i, (double) v->f[i]);
  g_free (v);
}

/* --- traces --- */

void
sim_trace_each (const struct pto_trace *trace, uint32_t kind,
                void (*see) (const struct pto_trace_record *record, void *data), void *data)
{
  for (uint32_t b = 0; b < trace->n_buffers; b++)
    for (uint64_t i = 0; i < trace->buffers[b].count; i++)
      if (trace->buffers[b].records[i].kind == kind)
        see (&trace->buffers[b].records[i], data);
}

static void
count_one (const struct pto_trace_record *record, void *data)
{
  *(uint64_t *) data += pto_trace_n_tasks (record);
}

uint64_t
sim_trace_count (const struct pto_trace *trace, uint32_t kind)
{
  uint64_t n = 0;

  sim_trace_each (trace, kind, count_one, &n);
  return n;
}

bool
sim_trace_equal (const struct pto_trace *a, const struct pto_trace *b)
{
  if (a->n_buffers != b->n_buffers)
    return false;
  for (uint32_t i = 0; i < a->n_buffers; i++)
    if (a->buffers[i].count != b->buffers[i].count
        || memcmp (a->buffers[i].records, b->buffers[i].records,
                   a->buffers[i].count * sizeof *a->buffers[i].records)
               != 0)
      return false;
  return true;
}

#define KINDS (PTO_TRACE_WAIT + 1)

/* What the records say of one task: where there are several of a kind, of its parts, the first. */
struct life
{
  uint64_t times[KINDS];
  uint32_t counts[KINDS];
  uint64_t last_ack;
  uint64_t end; /* of the last RUN */
};

/* What a core was told to do. */
struct order
{
  pto_task_id task;
  uint64_t time;
  uint64_t what; /* member and sequence number */
};

struct core_state
{
  GArray *orders;
  uint32_t dispatched; /* sequence number last seen; 0: none */
  uint32_t answered;   /* of the orders */
  uint64_t completed_at;
  uint64_t busy_until;
};

struct lives
{
  struct life *of[PTO_RINGS];
  uint64_t n[PTO_RINGS];
};

static struct life *
life_of (struct lives *lives, pto_task_id id)
{
  g_assert_cmpuint (PTO_TASK_RING (id), <, PTO_RINGS);
  g_assert_cmpuint (PTO_TASK_LOCAL (id), <, lives->n[PTO_TASK_RING (id)]);
  return &lives->of[PTO_TASK_RING (id)][PTO_TASK_LOCAL (id)];
}

static const struct order *
order_of (const struct core_state *core, uint32_t n)
{
  g_assert_cmpuint (n, <, core->orders->len);
  return &g_array_index (core->orders, struct order, n);
}

static void
check_on_core (struct life *life, struct core_state *core, const struct pto_trace_record *r)
{
  const struct order *order;

  switch (r->kind)
    {
    case PTO_TRACE_DISPATCH:
      /* A scheduler's records of a core come in order: a task is handed over after the one before
       * was seen to end. A chip counts on from run to run. */
      if (core->dispatched != 0)
        g_assert_cmpuint ((uint32_t) r->extra, ==, core->dispatched + 1);
      g_assert_cmpuint ((uint32_t) r->extra, !=, 0);
      g_assert_cmpuint ((uint32_t) r->extra, !=, UINT32_MAX);
      g_assert_cmpuint (r->time, >=, core->completed_at);
      core->dispatched = (uint32_t) r->extra;
      g_array_append_vals (core->orders, &(struct order){ r->task, r->time, r->extra }, 1);
      break;
    case PTO_TRACE_ACK:
      order = order_of (core, core->answered++);
      g_assert_cmpuint (r->task, ==, order->task);
      g_assert_cmpuint (r->extra, ==, order->what);
      g_assert_cmpuint (r->time, >=, order->time);
      g_assert_cmpuint (r->time, >=, core->busy_until);
      life->last_ack = MAX (life->last_ack, r->time);
      core->busy_until = r->time;
      break;
    case PTO_TRACE_RUN:
      order = order_of (core, core->answered - 1);
      g_assert_cmpuint (r->task, ==, order->task);
      g_assert_cmpuint (r->time, >=, core->busy_until);
      g_assert_cmpuint (r->extra, >=, r->time);
      core->busy_until = r->extra;
      life->end = MAX (life->end, r->extra);
      break;
    default:
      /* The last part to end was told to run here, and nothing was since. */
      order = order_of (core, core->orders->len - 1);
      g_assert_cmpuint (r->task, ==, order->task);
      g_assert_cmpuint (r->extra, ==, 0);
      core->completed_at = r->time;
      break;
    }
}

static void
check_record (struct lives *lives, struct core_state *cores,
              const struct pto_trace_topology *topology, const struct pto_trace_record *r)
{
  if (r->kind == PTO_TRACE_SCOPE || r->kind == PTO_TRACE_STALL || r->kind == PTO_TRACE_DEP
      || r->kind == PTO_TRACE_OCCUPANCY || PTO_TRACE_IS_WORDS (r->kind))
    return;
  for (uint32_t i = 0; i < pto_trace_n_tasks (r); i++)
    {
      struct life *life = life_of (lives, PTO_TRACE_RETIRED (r->task, i));

      if (life->counts[r->kind]++ == 0 || r->time < life->times[r->kind])
        life->times[r->kind] = r->time;
    }
  if (r->kind < PTO_TRACE_DISPATCH || r->kind > PTO_TRACE_COMPLETE)
    return;
  g_assert_cmpuint (r->detail, <, topology->n_cores);
  check_on_core (life_of (lives, r->task), &cores[r->detail], r);
}

static void
check_order (struct life *life)
{
  static const uint32_t once[]
      = { PTO_TRACE_SUBMIT, PTO_TRACE_READY, PTO_TRACE_COMPLETE, PTO_TRACE_RETIRE };
  static const uint32_t in_order[]
      = { PTO_TRACE_SUBMIT, PTO_TRACE_READY,    PTO_TRACE_DISPATCH, PTO_TRACE_ACK,
          PTO_TRACE_RUN,    PTO_TRACE_COMPLETE, PTO_TRACE_RETIRE };
  uint32_t n = life->counts[PTO_TRACE_DISPATCH];

  for (gsize i = 0; i < G_N_ELEMENTS (once); i++)
    g_assert_cmpuint (life->counts[once[i]], ==, 1);
  for (gsize i = 1; i < G_N_ELEMENTS (in_order); i++)
    g_assert_cmpuint (life->times[in_order[i]], >=, life->times[in_order[i - 1]]);
  g_assert_cmpuint (life->counts[PTO_TRACE_ACK], ==, n);
  if (life->counts[PTO_TRACE_PART] == 0)
    {
      g_assert_cmpuint (n, ==, 1);
      g_assert_cmpuint (life->counts[PTO_TRACE_RUN], ==, 1);
    }
  else
    {
      /* Blocks in a row that one core was told at once are a RUN each. */
      g_assert_cmpuint (n, >=, 1);
      g_assert_cmpuint (life->counts[PTO_TRACE_RUN], >=, n);
      g_assert_cmpuint (life->counts[PTO_TRACE_RUN], ==, life->counts[PTO_TRACE_PART]);
    }
  g_assert_cmpuint (life->times[PTO_TRACE_COMPLETE], >=, life->last_ack);
  g_assert_cmpuint (life->times[PTO_TRACE_COMPLETE], >=, life->end);
}

static void
check_dependency (const struct pto_trace_record *r, void *data)
{
  struct lives *lives = data;
  struct life *consumer = life_of (lives, r->task);
  struct life *producer = life_of (lives, r->extra);

  g_assert_cmpuint (r->detail & (7 | PTO_HAZARD_EXPLICIT), !=, 0);
  g_assert_true (consumer != producer);
  /* The first part of one behind the last part of the other. */
  g_assert_cmpuint (consumer->times[PTO_TRACE_RUN], >=, producer->end);
}

void
sim_assert_trace (struct pto_chip *chip, const struct pto_run_stats *stats)
{
  const struct pto_trace *trace = pto_chip_trace (chip);
  struct pto_trace_topology topology;
  struct core_state *cores;
  struct lives lives;

  pto_chip_trace_topology (chip, &topology);
  g_assert_cmpuint (trace->n_buffers, ==, 1 + topology.n_schedulers + topology.n_cores);
  cores = g_new0 (struct core_state, topology.n_cores);
  for (uint32_t c = 0; c < topology.n_cores; c++)
    cores[c].orders = g_array_new (FALSE, FALSE, sizeof (struct order));
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    {
      lives.n[ring] = stats->ring_tasks[ring];
      lives.of[ring] = g_new0 (struct life, lives.n[ring] + 1);
      g_assert_cmpuint (stats->last_task_alive[ring], ==, stats->ring_tasks[ring]);
    }
  /* Submitter, schedulers, cores: orders come before what becomes of them. */
  for (uint32_t b = 0; b < trace->n_buffers; b++)
    {
      g_assert_cmpuint (trace->buffers[b].dropped, ==, 0);
      for (uint64_t i = 0; i < trace->buffers[b].count; i++)
        check_record (&lives, cores, &topology, &trace->buffers[b].records[i]);
    }
  for (uint32_t c = 0; c < topology.n_cores; c++)
    {
      g_assert_cmpuint (cores[c].answered, ==, cores[c].orders->len);
      g_array_unref (cores[c].orders);
    }
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    for (uint64_t i = 0; i < lives.n[ring]; i++)
      check_order (&lives.of[ring][i]);
  sim_trace_each (trace, PTO_TRACE_DEP, check_dependency, &lives);
  g_assert_cmpuint (sim_trace_count (trace, PTO_TRACE_DEP), ==, stats->edges);
  for (uint32_t ring = 0; ring < PTO_RINGS; ring++)
    g_free (lives.of[ring]);
  g_free (cores);
}

/* --- this process --- */

uint64_t
sim_resident_bytes (void)
{
  FILE *file = fopen ("/proc/self/statm", "r");
  unsigned long size, resident;

  g_assert_nonnull (file);
  g_assert_cmpint (fscanf (file, "%lu %lu", &size, &resident), ==, 2);
  fclose (file);
  return (uint64_t) resident * (uint64_t) sysconf (_SC_PAGESIZE);
}

uint64_t
sim_page_faults (void)
{
  struct rusage usage;

  g_assert_cmpint (getrusage (RUSAGE_SELF, &usage), ==, 0);
  return (uint64_t) usage.ru_minflt + (uint64_t) usage.ru_majflt;
}

static unsigned int
count_entries (const char *path)
{
  DIR *dir = opendir (path);
  unsigned int n = 0;

  g_assert_nonnull (dir);
  for (struct dirent *e = readdir (dir); e != NULL; e = readdir (dir))
    n += e->d_name[0] != '.';
  closedir (dir);
  return n;
}

unsigned int
sim_count_threads (void)
{
  return count_entries ("/proc/self/task");
}

void
sim_assert_threads (unsigned int before)
{
  unsigned int now = sim_count_threads ();

  for (int i = 0; i < 10000 && !SAME_THREADS (now, before); i++)
    {
      g_usleep (1000);
      now = sim_count_threads ();
    }
  if (!SAME_THREADS (now, before))
    g_assert_cmpuint (now, ==, before);
}

unsigned int
sim_count_descriptors (void)
{
  return count_entries ("/proc/self/fd");
}

unsigned int
sim_count_mappings (void)
{
  FILE *file = fopen ("/proc/self/maps", "r");
  unsigned int n = 0;
  int c;

  g_assert_nonnull (file);
  while ((c = fgetc (file)) != EOF)
    n += c == '\n';
  fclose (file);
  return n;
}

void
sim_spend_ns (uint64_t ns)
{
  struct timespec t;
  uint64_t end = 0;
  uint64_t now;

  do
    {
      clock_gettime (CLOCK_MONOTONIC, &t);
      now = (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
      if (end == 0)
        end = now + ns;
    }
  while (now < end);
}
