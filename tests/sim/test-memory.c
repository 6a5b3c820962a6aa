/* test-memory.c: where does a run's memory come from, when is it free, and what if there is none?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../sim/chip-private.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (UINT64_C (1) << 20)

/* What kernels share with their test. W: kernels, R: the test after the run. */
static struct
{
  struct pto_chip *chip;
  _Atomic uint64_t wrong; /* elements with another value, buffers outside of their heap */
  _Atomic uint64_t runs;
} shared;

/* --- kernels --- */

/* args: tensor of uint64, ring, value. Writes the value everywhere; the buffer must lie in one
 * piece in its heap. */
static void
kernel_fill (int64_t *args)
{
  const TensorData *t = sim_tensor (args, 0);
  const struct pto_circle *heap = &shared.chip->machine.engine.rings[args[1]].heap;
  uint64_t base = (uint64_t) (uintptr_t) heap->base;
  uint64_t *data = sim_data (args, 0);

  if (t->buffer.addr < base || t->buffer.addr + t->buffer.size > base + heap->size
      || t->buffer.addr % 1024 != 0)
    atomic_fetch_add (&shared.wrong, 1);
  for (uint64_t i = 0; i < t->shapes[0]; i++)
    data[i] = (uint64_t) args[2] + i;
  atomic_fetch_add (&shared.runs, 1);
}

/* args: tensor, value */
static void
kernel_check (int64_t *args)
{
  const uint64_t *data = sim_data (args, 0);

  for (uint64_t i = 0; i < sim_tensor (args, 0)->shapes[0]; i++)
    if (data[i] != (uint64_t) args[1] + i)
      atomic_fetch_add (&shared.wrong, 1);
  atomic_fetch_add (&shared.runs, 1);
}

static void
kernel_none (int64_t *args)
{
  atomic_fetch_add (&shared.runs, 1);
}

/* Returns once the submitter waits: for room, or for the end of the run. On det the submitter waits
 * because this takes a millisecond of its time. */
static void
kernel_gate (int64_t *args)
{
  if (shared.chip->virtual_clock)
    return;
  while (atomic_load (&shared.chip->machine.engine.waiting) == 0)
    sched_yield ();
}

enum
{
  FILL,
  CHECK,
  NONE,
  GATE
};

static const struct pto_kernel kernels[] = {
  [FILL] = { "fill", kernel_fill, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [CHECK] = { "check", kernel_check, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [NONE] = { "none", kernel_none, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [GATE] = { "gate", kernel_gate, PTO_CORE_TYPE_AIV, { .base_ns = 1000000 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static struct pto_chip *
new_chip (enum pto_backend backend, const char *settings)
{
  shared.chip = sim_chip (backend, settings);
  atomic_store (&shared.wrong, 0);
  atomic_store (&shared.runs, 0);
  return shared.chip;
}

static void
end_chip (void)
{
  g_assert_cmpuint (atomic_load (&shared.wrong), ==, 0);
  pto_chip_free (shared.chip);
  shared.chip = NULL;
}

static Tensor
words (uint64_t bytes)
{
  uint64_t shape[] = { bytes / 8 };

  return make_tensor (shape, 1, PTO_DTYPE_UINT64);
}

static void
submit_fill (PTO2Runtime *rt, Tensor t, uint64_t ring, uint64_t value)
{
  PTOParam params[]
      = { make_output_param (t), make_scalar_param (ring), make_scalar_param (value) };

  pto2_rt_submit_task (rt, FILL, AIV, params, 3);
}

static void
submit_check (PTO2Runtime *rt, Tensor t, uint64_t value)
{
  PTOParam params[] = { make_input_param (t), make_scalar_param (value) };

  pto2_rt_submit_task (rt, CHECK, AIV, params, 2);
}

static void
submit_gate (PTO2Runtime *rt, uint64_t *word)
{
  uint64_t shape[] = { 1 };
  PTOParam params[]
      = { make_inout_param (make_tensor_external (word, shape, 1, PTO_DTYPE_UINT64)) };

  pto2_rt_submit_task (rt, GATE, AIV, params, 1);
}

/* --- A4: the empty ring begins anew; nothing straddles the wrap; an exact fit --- */

struct passing
{
  uint32_t scopes;
  uint32_t per_scope;
  uint64_t bytes; /* of an output */
};

static int
pass_scopes (PTO2Runtime *rt, void *data)
{
  const struct passing *p = data;

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t s = 0; s < p->scopes; s++)
    PTO2_SCOPE (rt)
    {
      for (uint32_t i = 0; i < p->per_scope; i++)
        {
          Tensor t = words (p->bytes);

          submit_fill (rt, t, 1, s * 1000 + i);
          submit_check (rt, t, s * 1000 + i);
        }
    }
  return 0;
}

static void
test_scopes_of_most_of_the_heap (enum pto_backend backend)
{
  struct passing p = { .scopes = 60, .per_scope = 1, .bytes = MIB };
  struct pto_run_stats stats;

  new_chip (backend, "heap=1536K");
  sim_run (shared.chip, &program, pass_scopes, &p, &stats);
  g_assert_cmpuint (atomic_load (&shared.runs), ==, 120);
  g_assert_cmpuint (stats.heap_peak[1], <=, 1536 * 1024);
  g_assert_cmpuint (stats.heap_peak[1], >=, MIB);
  g_assert_cmpuint (stats.heap_peak[0], ==, 0);
  /* Sizes that come round at another place each time. */
  p = (struct passing){ .scopes = 200, .per_scope = 3, .bytes = 200 * 1024 };
  sim_run (shared.chip, &program, pass_scopes, &p, &stats);
  p = (struct passing){ .scopes = 200, .per_scope = 2, .bytes = 7 * 1024 };
  sim_run (shared.chip, &program, pass_scopes, &p, &stats);
  end_chip ();
}

static void
test_exact_fit (enum pto_backend backend)
{
  struct passing p = { .scopes = 20, .per_scope = 1, .bytes = MIB };
  struct pto_run_stats stats;

  new_chip (backend, "heap=1M guard=0");
  sim_run (shared.chip, &program, pass_scopes, &p, &stats);
  g_assert_cmpuint (stats.heap_peak[1], ==, MIB);
  end_chip ();
}

/* Small scopes, then a scope of many more tasks, while tasks of the small ones are alive: all of
 * the ring is there for it, wherever in the ring it begins. */
static int
grow (PTO2Runtime *rt, void *data)
{
  const uint32_t *small = data;

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t i = 0; i < *small; i++)
    PTO2_SCOPE (rt)
    {
      submit_fill (rt, words (512), 1, 0);
    }
  PTO2_SCOPE (rt)
  {
    for (uint32_t i = 0; i < 200; i++)
      submit_fill (rt, words (512), 1, 0);
  }
  return 0;
}

static void
test_large_after_small (enum pto_backend backend)
{
  new_chip (backend, NULL);
  for (uint32_t small = 60; small < 70; small++)
    sim_run (shared.chip, &program, grow, &small, NULL);
  end_chip ();
}

/* --- A5 --- */

static int
flow_through_inner_scope (PTO2Runtime *rt, void *data)
{
  const uint32_t *n = data;

  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt)
  {
    Tensor outer = words (16 * 1024);

    submit_fill (rt, outer, 1, 77);
    for (uint32_t i = 0; i < *n; i++)
      PTO2_SCOPE (rt)
      {
        Tensor inner = words (12 * 1024);

        submit_fill (rt, inner, 2, i);
        submit_check (rt, inner, i);
        if (i % 100 == 0)
          submit_check (rt, outer, 77);
      }
    submit_check (rt, outer, 77);
  }
  return 0;
}

static void
test_flow_through_inner_scope (enum pto_backend backend)
{
  /* 13 KiB each with the guard, a heap of 64 KiB: 100 times the heap. */
  uint32_t n = 100 * 64 / 13 + 1;
  struct pto_run_stats stats;

  new_chip (backend, "heap=64K");
  sim_run (shared.chip, &program, flow_through_inner_scope, &n, &stats);
  g_assert_cmpuint (stats.heap_peak[2], <=, 64 * 1024);
  g_assert_cmpuint (stats.heap_peak[1], ==, 17 * 1024);
  g_assert_cmpuint (atomic_load (&shared.runs), ==, stats.tasks);
  end_chip ();
}

/* --- A6: the consumer is in another ring: only its reference holds the producer --- */

static int
outlive_scope (PTO2Runtime *rt, void *data)
{
  uint64_t *word = data;
  uint64_t shape[] = { 1 };
  Tensor gate = make_tensor_external (word, shape, 1, PTO_DTYPE_UINT64);

  pto2_rt_init_tensor_pool (rt);
  submit_gate (rt, word);
  PTO2_SCOPE (rt)
  {
    Tensor t = words (4096);

    submit_fill (rt, t, 1, 5);
    PTO2_SCOPE (rt)
    {
      PTOParam params[] = { make_input_param (t), make_scalar_param (5), make_input_param (gate) };

      pto2_rt_submit_task (rt, CHECK, AIV, params, 3);
    }
  }
  for (int i = 0; i < 20; i++)
    PTO2_SCOPE (rt)
    {
      submit_fill (rt, words (4096), 1, 1000);
    }
  return 0;
}

static void
test_consumer_keeps_buffer (enum pto_backend backend)
{
  struct pto_run_stats stats;
  uint64_t word = 0;

  new_chip (backend, "heap=16K");
  sim_run (shared.chip, &program, outlive_scope, &word, &stats);
  /* The submitter had to wait until the consumer had read. */
  g_assert_cmpuint (stats.stalls, >=, 1);
  g_assert_cmpuint (atomic_load (&shared.runs), ==, 22);
  end_chip ();
}

/* --- A11: each resource, at each depth --- */

enum resource
{
  TASK_RING,
  HEAP_RING,
  DEP_POOL,
  MAP_POOL
};

struct shortage
{
  enum resource what;
  uint32_t depth;
  uint64_t words[64];
};

static int
run_short (PTO2Runtime *rt, void *data)
{
  struct shortage *s = data;
  uint64_t shape[] = { 1 };

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t d = 1; d < s->depth; d++)
    pto2_rt_scope_begin (rt);
  for (uint32_t i = 0; i < 64; i++)
    {
      pto2_rt_scope_begin (rt);
      if (i == 0)
        submit_gate (rt, &s->words[0]);
      else if (s->what == HEAP_RING)
        submit_fill (rt, words (1000), s->depth, i);
      else
        {
          uint32_t word = s->what == MAP_POOL ? i : 0;
          PTOParam params[] = { make_inout_param (
              make_tensor_external (&s->words[word], shape, 1, PTO_DTYPE_UINT64)) };

          pto2_rt_submit_task (rt, NONE, AIV, params, 1);
        }
      pto2_rt_scope_end (rt);
    }
  for (uint32_t d = 1; d < s->depth; d++)
    pto2_rt_scope_end (rt);
  return 0;
}

struct stalls
{
  uint32_t ring;
  uint32_t of_kind[4];
};

static void
note_stall (const struct pto_trace_record *record, void *data)
{
  struct stalls *stalls = data;

  g_assert_cmpuint (record->detail & 0xff, ==, stalls->ring);
  g_assert_cmpuint (record->detail >> 8, <, 4);
  g_assert_cmpuint (record->extra, >=, record->time);
  stalls->of_kind[record->detail >> 8]++;
}

static void
test_shortage (enum pto_backend backend)
{
  static const char *const settings[] = { [TASK_RING] = "task-window=4",
                                          [HEAP_RING] = "heap=8K",
                                          [DEP_POOL] = "dep-pool=16",
                                          [MAP_POOL] = "map-pool=16" };

  for (uint32_t what = TASK_RING; what <= MAP_POOL; what++)
    for (uint32_t depth = 1; depth <= 3; depth++)
      {
        struct shortage s = { .what = (enum resource) what, .depth = depth };
        struct stalls stalls = { .ring = depth };
        struct pto_run_stats stats;
        const struct pto_trace *trace;

        new_chip (backend, settings[what]);
        trace = sim_record (shared.chip, &program, run_short, &s, &stats);
        sim_trace_each (trace, PTO_TRACE_STALL, note_stall, &stalls);
        g_assert_cmpuint (stats.tasks, ==, 64);
        g_assert_cmpuint (atomic_load (&shared.runs), ==, 63);
        g_assert_cmpuint (stats.stalls, ==, sim_trace_count (trace, PTO_TRACE_STALL));
        g_assert_cmpuint (stalls.of_kind[what], >=, 1);
        sim_assert_trace (shared.chip, &stats);
        end_chip ();
      }
}

static int
one_task (PTO2Runtime *rt, void *data)
{
  pto2_rt_init_tensor_pool (rt);
  submit_fill (rt, words (64), 0, 0);
  return 0;
}

/* --- A12: a scope that holds more than there is --- */

struct holding
{
  enum resource what;
  bool outermost; /* no scope but the orchestration itself */
  uint64_t words[40];
  int line;
};

static void
hold (PTO2Runtime *rt, struct holding *h)
{
  uint64_t shape[] = { 1 };

  for (uint32_t i = 0; i < 40; i++)
    if (h->what == HEAP_RING)
      submit_fill (rt, words (1000), h->outermost ? 0 : 1, i);
    else
      {
        uint32_t word = h->what == MAP_POOL ? i : 0;
        PTOParam params[] = { make_inout_param (
            make_tensor_external (&h->words[word], shape, 1, PTO_DTYPE_UINT64)) };

        pto2_rt_submit_task (rt, NONE, AIV, params, 1);
      }
}

static int
hold_in_scope (PTO2Runtime *rt, void *data)
{
  struct holding *h = data;

  pto2_rt_init_tensor_pool (rt);
  if (h->outermost)
    {
      hold (rt, h);
      return 0;
    }
  h->line = __LINE__ + 1;
  PTO2_SCOPE (rt)
  {
    hold (rt, h);
  }
  return 0;
}

static void
test_deadlock (enum pto_backend backend)
{
  static const struct
  {
    const char *knob;
    const char *too_little;
    enum pto_status status;
    const char *says;
    const char *size;
  } rows[] = {
    [TASK_RING] = { "task-window", "16", PTO_STATUS_TASK_RING, "task ring", "window 16" },
    [HEAP_RING] = { "heap", "16384", PTO_STATUS_HEAP_RING, "heap ring", "16384 of 16384 bytes" },
    [DEP_POOL] = { "dep-pool", "16", PTO_STATUS_DEP_POOL, "dependency pool", "16 of 16 edges" },
    [MAP_POOL] = { "map-pool", "16", PTO_STATUS_MAP_OVERFLOW, "TensorMap", "16 of 16 nodes" },
  };

  for (uint32_t what = TASK_RING; what <= MAP_POOL; what++)
    for (int outermost = 0; outermost < 2; outermost++)
      {
        struct holding h = { .what = (enum resource) what, .outermost = outermost != 0 };
        char *text = g_strdup_printf ("%s=%s", rows[what].knob, rows[what].too_little);
        struct pto_report report = { 0 };
        char *place, *set, *advice;
        uint64_t value;

        new_chip (backend, text);
        g_assert_cmpint (
            pto_chip_run (shared.chip, &program, NULL, hold_in_scope, &h, NULL, &report), ==,
            rows[what].status);
        place = outermost ? g_strdup ("the outermost scope")
                          : g_strdup_printf ("test-memory.c:%d", h.line);
        set = g_strdup_printf ("Set %s to ", rows[what].knob);
        sim_assert_says (&report, rows[what].status, rows[what].says, rows[what].size, place, set,
                         "Oldest task 0",
                         what == MAP_POOL ? "deadlock"
                         : outermost      ? " 0: "
                                          : " 1: ",
                         NULL);
        /* What it says works, on a chip of that setting; this chip works, too. */
        sim_run (shared.chip, &program, one_task, NULL, NULL);
        advice = strstr (report.message, set) + strlen (set);
        value = g_ascii_strtoull (advice, NULL, 10);
        end_chip ();
        g_free (text);
        text = g_strdup_printf ("%s=%" G_GUINT64_FORMAT, rows[what].knob, value);
        new_chip (backend, text);
        sim_run (shared.chip, &program, hold_in_scope, &h, NULL);
        g_assert_cmpuint (atomic_load (&shared.runs), ==, 40);
        end_chip ();
        g_free (text);
        g_free (place);
        g_free (set);
      }
}

/* What can never be: one task that needs more than there is of anything. */
static int
one_too_large (PTO2Runtime *rt, void *data)
{
  pto2_rt_init_tensor_pool (rt);
  submit_fill (rt, words (100 * 1024), 0, 0);
  return 0;
}

static void
test_task_larger_than_heap (enum pto_backend backend)
{
  new_chip (backend, "heap=64K");
  sim_run_fails (shared.chip, &program, one_too_large, NULL, PTO_STATUS_HEAP_RING, "task 0",
                 "needs 103424 bytes", "heap ring 0 has 65536", "set heap to 131072 or more", NULL);
  sim_run_fails (shared.chip, &program, one_too_large, NULL, PTO_STATUS_HEAP_RING,
                 "set heap to 131072", NULL);
  end_chip ();
  new_chip (backend, "heap=131072");
  sim_run (shared.chip, &program, one_too_large, NULL, NULL);
  g_assert_cmpuint (atomic_load (&shared.runs), ==, 1);
  end_chip ();
}

/* --- A14: pages touched, not time --- */

static void
pages_of_runs (enum pto_backend backend, const char *settings, uint64_t *resident, uint64_t *faults)
{
  uint64_t before = sim_resident_bytes ();

  new_chip (backend, settings);
  sim_run (shared.chip, &program, one_task, NULL, NULL);
  *resident = sim_resident_bytes () - before;
  /* det makes a machine anew for each run; that is the same for every size. */
  *faults = sim_page_faults ();
  for (int i = 0; i < 20; i++)
    sim_run (shared.chip, &program, one_task, NULL, NULL);
  *faults = sim_page_faults () - *faults;
  end_chip ();
}

static void
test_size_costs_nothing (enum pto_backend backend)
{
  uint64_t resident[3], faults[3];

#ifdef SIM_SANITIZED
  g_test_skip ("shadow memory is memory, too");
  return;
#endif
  /* The first one pays for what the process makes once. */
  pages_of_runs (backend, NULL, &resident[0], &faults[0]);
  pages_of_runs (backend, "task-window=64 heap=64K dep-pool=64 map-pool=64", &resident[1],
                 &faults[1]);
  pages_of_runs (backend, "task-window=4194304 heap=64G dep-pool=16777216 map-pool=4194304",
                 &resident[2], &faults[2]);
  g_test_message ("resident %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT
                  ", faults %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT,
                  resident[1], resident[2], faults[1], faults[2]);
  g_assert_cmpint ((gint64) (resident[2] - resident[1]), <, 1024 * 1024);
  g_assert_cmpint ((gint64) (faults[2] - faults[1]), <, 100);
}

/* --- device memory --- */

static void
test_device_memory (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_report report = { 0 };
  uint64_t blocks[100];
  char out[256];
  char in[256];

  for (uint32_t i = 0; i < 100; i++)
    {
      blocks[i] = pto_device_memory_malloc (pto_chip_memory (chip), 256, &report);
      g_assert_cmpuint (blocks[i], !=, 0);
      g_assert_cmpuint (blocks[i] % 64, ==, 0);
      memset (out, (int) i, sizeof out);
      g_assert_cmpint (
          pto_device_memory_copy_to (pto_chip_memory (chip), blocks[i], out, sizeof out, &report),
          ==, PTO_OK);
    }
  for (uint32_t i = 0; i < 100; i++)
    {
      memset (out, (int) i, sizeof out);
      g_assert_cmpint (
          pto_device_memory_copy_from (pto_chip_memory (chip), in, blocks[i], sizeof in, &report),
          ==, PTO_OK);
      g_assert_cmpmem (in, sizeof in, out, sizeof out);
    }
  /* A part, up to the very end, and nothing at all. */
  g_assert_cmpint (pto_device_memory_copy_to (pto_chip_memory (chip), blocks[3] + 200, "0123456789",
                                              10, &report),
                   ==, PTO_OK);
  g_assert_cmpint (
      pto_device_memory_copy_from (pto_chip_memory (chip), in, blocks[3] + 195, 61, &report), ==,
      PTO_OK);
  g_assert_cmpmem (in, 15,
                   "\3\3\3\3\3"
                   "0123456789",
                   15);
  g_assert_cmpint (
      pto_device_memory_copy_from (pto_chip_memory (chip), in, blocks[3] + 255, 1, &report), ==,
      PTO_OK);
  g_assert_cmpint (pto_device_memory_copy_from (pto_chip_memory (chip), in, blocks[3], 0, &report),
                   ==, PTO_OK);
  g_assert_cmpstr (report.message, ==, "");

  g_assert_cmpint (
      pto_device_memory_copy_from (pto_chip_memory (chip), in, blocks[3] + 1, 256, &report), ==,
      PTO_STATUS_INVALID_ARGS);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "256 bytes", "beyond", "buffer of 256 bytes",
                   NULL);
  memset (&report, 0, sizeof report);
  g_assert_cmpint (
      pto_device_memory_copy_to (pto_chip_memory (chip), blocks[3], in, UINT64_MAX, &report), ==,
      PTO_STATUS_INVALID_ARGS);
  memset (&report, 0, sizeof report);
  g_assert_cmpint (pto_device_memory_copy_to (pto_chip_memory (chip), 4096, in, 1, &report), ==,
                   PTO_STATUS_INVALID_ARGS);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "0x1000 lies in no device buffer", NULL);
  memset (&report, 0, sizeof report);
  g_assert_cmpint (pto_device_memory_free (pto_chip_memory (chip), blocks[3] + 8, &report), ==,
                   PTO_STATUS_INVALID_ARGS);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "is not the address of a device buffer", NULL);
  memset (&report, 0, sizeof report);
  for (uint32_t i = 0; i < 100; i += 2)
    g_assert_cmpint (pto_device_memory_free (pto_chip_memory (chip), blocks[i], &report), ==,
                     PTO_OK);
  g_assert_cmpint (pto_device_memory_free (pto_chip_memory (chip), blocks[4], &report), ==,
                   PTO_STATUS_INVALID_ARGS);
  memset (&report, 0, sizeof report);
  g_assert_cmpint (pto_device_memory_copy_from (pto_chip_memory (chip), in, blocks[4], 1, &report),
                   ==, PTO_STATUS_INVALID_ARGS);
  memset (&report, 0, sizeof report);
  memset (out, 5, sizeof out);
  g_assert_cmpint (
      pto_device_memory_copy_from (pto_chip_memory (chip), in, blocks[5], sizeof in, &report), ==,
      PTO_OK);
  g_assert_cmpmem (in, sizeof in, out, sizeof out);
  g_assert_cmpuint (pto_device_memory_malloc (pto_chip_memory (chip), 0, &report), ==, 0);
  sim_assert_says (&report, PTO_STATUS_INVALID_ARGS, "0 bytes", NULL);
  memset (&report, 0, sizeof report);
  g_assert_cmpuint (pto_device_memory_malloc (pto_chip_memory (chip), UINT64_MAX - 32, &report), ==,
                    0);
  sim_assert_says (&report, PTO_STATUS_NO_MEMORY, "no device memory", NULL);
  pto_chip_free (chip); /* with 50 buffers, which are its own to free */
}

/* --- whose books are anybody's: what was taken is given back, as much and once --- */

#define PIECES 40

static struct
{
  uint64_t address[PIECES];
  uint64_t bytes[PIECES];
  uint64_t sum;
  bool none_left;
} taken;

static uint64_t
take_counted (uint64_t bytes)
{
  void *memory = NULL;
  int i = 0;

  if (taken.none_left)
    return 0;
  while (taken.address[i] != 0)
    i++;
  g_assert_cmpint (posix_memalign (&memory, 64, bytes), ==, 0);
  taken.address[i] = (uint64_t) (uintptr_t) memory;
  taken.bytes[i] = bytes;
  taken.sum += bytes;
  return taken.address[i];
}

static void
give_counted (uint64_t address, uint64_t bytes)
{
  int i = 0;

  while (taken.address[i] != address)
    g_assert_cmpint (++i, <, PIECES);
  g_assert_cmpuint (taken.bytes[i], ==, bytes);
  taken.address[i] = 0;
  taken.sum -= bytes;
  free ((void *) (uintptr_t) address);
}

static void
test_device_books (enum pto_backend backend)
{
  static const uint32_t guards[] = { 0, 64, 100 };
  g_autoptr (GRand) random = g_rand_new_with_seed (7);

  for (gsize g = 0; g < G_N_ELEMENTS (guards); g++)
    {
      uint64_t address[PIECES] = { 0 }, bytes[PIECES] = { 0 };
      struct pto_device_memory memory;
      struct pto_report report = { 0 };
      struct pto_fence found;
      /* Before the memory there are 64 bytes, or 128. */
      uint64_t around = guards[g] + (guards[g] + 63) / 64 * 64;
      uint64_t sum = 0;
      char in[300], out[300];

      pto_device_memory_init (&memory, guards[g], take_counted, give_counted);
      for (int step = 0; step < 2000; step++)
        {
          int i = g_rand_int_range (random, 0, PIECES);

          if (address[i] == 0)
            {
              uint64_t n = (uint64_t) g_rand_int_range (random, 1, sizeof in);

              taken.none_left = g_rand_int_range (random, 0, 8) == 0;
              address[i] = pto_device_memory_malloc (&memory, n, &report);
              g_assert_true ((address[i] == 0) == taken.none_left);
              if (taken.none_left)
                sim_assert_says (&report, PTO_STATUS_NO_MEMORY, "no device memory for", NULL);
              memset (&report, 0, sizeof report);
              if (address[i] == 0)
                continue;
              bytes[i] = n;
              sum += n + around;
              memset (out, i, n);
              g_assert_cmpint (pto_device_memory_copy_to (&memory, address[i], out, n, &report), ==,
                               PTO_OK);
              g_assert_true (pto_fence_find (address[i], &found) == (guards[g] > 0));
            }
          else
            {
              memset (out, i, bytes[i]);
              g_assert_cmpint (
                  pto_device_memory_copy_from (&memory, in, address[i], bytes[i], &report), ==,
                  PTO_OK);
              g_assert_cmpmem (in, bytes[i], out, bytes[i]);
              g_assert_cmpint (pto_device_memory_free (&memory, address[i], &report), ==, PTO_OK);
              g_assert_false (pto_fence_find (address[i], &found));
              g_assert_cmpint (pto_device_memory_free (&memory, address[i], &report), ==,
                               PTO_STATUS_INVALID_ARGS);
              memset (&report, 0, sizeof report);
              sum -= bytes[i] + around;
              address[i] = 0;
            }
          g_assert_cmpuint (taken.sum, ==, sum);
          g_assert_cmpint (pto_device_memory_check (&memory, &report), ==, PTO_OK);
        }
      g_assert_cmpuint (sum, >, 0);
      pto_device_memory_clear (&memory);
      g_assert_cmpuint (taken.sum, ==, 0);
      for (int i = 0; i < PIECES; i++)
        g_assert_false (address[i] != 0 && pto_fence_find (address[i], &found));
    }
}

/* Whether the page of the address has memory. */
static bool
has_memory (uint64_t address)
{
  uint64_t page = (uint64_t) sysconf (_SC_PAGESIZE);
  unsigned char is_there = 0;

  g_assert_cmpint (mincore ((void *) (uintptr_t) (address / page * page), page, &is_there), ==, 0);
  return (is_there & 1) != 0;
}

/* What lies aside is little memory, and there for other memory that finds no room. The larger ones
 * keep their addresses alone. */
static void
test_laid_aside (enum pto_backend backend)
{
  static const uint64_t sizes[4]
      = { PTO_DEVICE_GONE_SPACE_MAX / 2, 8, UINT64_C (100) << 20, PTO_DEVICE_GONE_SPACE_MAX / 2 };
  struct pto_device_memory memory;
  struct pto_report report = { 0 };
  struct pto_fence found;
  uint64_t address[4];

  pto_device_memory_init (&memory, 64, take_counted, give_counted);
  memory.space_max = PTO_DEVICE_GONE_SPACE_MAX;
  for (int i = 0; i < 4; i++)
    address[i] = pto_device_memory_malloc (&memory, sizes[i], &report);
  *(volatile uint8_t *) (uintptr_t) (address[2] + sizes[2] / 2) = 1;
  g_assert_true (has_memory (address[2] + sizes[2] / 2));
  for (int i = 0; i < 4; i++)
    g_assert_cmpint (pto_device_memory_free (&memory, address[i], &report), ==, PTO_OK);
  g_assert_false (has_memory (address[2] + sizes[2] / 2));
  g_assert_cmpuint (memory.gone_bytes, <, PTO_DEVICE_EMPTIED_BYTES);
  /* The last one had no room beside the first one. */
  g_assert_cmpuint (taken.sum, ==, sizes[1] + sizes[2] + sizes[3] + 3 * 128);
  for (int i = 0; i < 4; i++)
    {
      g_assert_true (pto_fence_find (address[i], &found) == (i > 0));
      g_assert_true (i == 0 || found.guard == PTO_FENCE_GONE);
    }
  /* One that is too large for that is given back at once, and drives nothing out. */
  address[0] = pto_device_memory_malloc (&memory, PTO_DEVICE_GONE_SPACE_MAX + 1, &report);
  g_assert_cmpint (pto_device_memory_free (&memory, address[0], &report), ==, PTO_OK);
  g_assert_cmpuint (taken.sum, ==, sizes[1] + sizes[2] + sizes[3] + 3 * 128);
  taken.none_left = true;
  g_assert_cmpuint (pto_device_memory_malloc (&memory, 8, &report), ==, 0);
  g_assert_cmpuint (taken.sum, ==, 0);
  for (int i = 0; i < 4; i++)
    g_assert_false (pto_fence_find (address[i], &found));
  taken.none_left = false;
  address[0] = pto_device_memory_malloc (&memory, 8, &report);
  g_assert_cmpint (pto_device_memory_free (&memory, address[0], &report), ==, PTO_OK);
  pto_device_memory_clear (&memory);
  g_assert_cmpuint (taken.sum, ==, 0);
  g_assert_false (pto_fence_find (address[0], &found));
}

/* A chip takes the fences of its buffers with it: whoever has that memory next is not blamed. */
static void
test_device_fences_end (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_report report = { 0 };
  struct pto_fence found;
  uint64_t blocks[20];

  for (int i = 0; i < 20; i++)
    {
      blocks[i] = pto_device_memory_malloc (pto_chip_memory (chip), 100, &report);
      g_assert_true (pto_fence_find (blocks[i], &found));
      g_assert_cmpuint (found.bytes, ==, 100);
    }
  pto_chip_free (chip);
  for (int i = 0; i < 20; i++)
    g_assert_false (pto_fence_find (blocks[i], &found));
}

/* Given back, it is as new: for whoever closes and begins again. */
static void
test_device_memory_again (enum pto_backend backend)
{
  struct pto_device_memory memory;
  struct pto_report report = { 0 };

  pto_device_memory_init (&memory, 64, NULL, NULL);
  for (uint32_t round = 0; round < 3; round++)
    {
      for (uint64_t i = 0; i < 20; i++)
        g_assert_cmpuint (pto_device_memory_malloc (&memory, 100 + i, &report), !=, 0);
      g_assert_cmpuint (memory.n_blocks, ==, 20);
      pto_device_memory_clear (&memory);
      g_assert_cmpuint (memory.n_blocks, ==, 0);
    }
  pto_device_memory_clear (&memory);
}

static int
fill_device (PTO2Runtime *rt, void *data)
{
  uint64_t shape[] = { 32 };
  Tensor t
      = make_tensor_external ((void *) (uintptr_t) * (uint64_t *) data, shape, 1, PTO_DTYPE_UINT64);
  PTOParam params[] = { make_input_param (t), make_scalar_param (900) };

  pto2_rt_submit_task (rt, CHECK, AIV, params, 2);
  return 0;
}

static void
test_kernels_see_device_memory (enum pto_backend backend)
{
  struct pto_report report = { 0 };
  uint64_t host[32];
  uint64_t device;

  new_chip (backend, NULL);
  device = pto_device_memory_malloc (pto_chip_memory (shared.chip), sizeof host, &report);
  for (uint64_t i = 0; i < 32; i++)
    host[i] = 900 + i;
  g_assert_cmpint (
      pto_device_memory_copy_to (pto_chip_memory (shared.chip), device, host, sizeof host, &report),
      ==, PTO_OK);
  sim_run (shared.chip, &program, fill_device, &device, NULL);
  g_assert_cmpuint (atomic_load (&shared.runs), ==, 1);
  end_chip ();
}

/* --- device memory that was given back --- */

struct gone
{
  uint64_t address;
  bool is_of_run;
};

static int
use_gone (PTO2Runtime *rt, void *data)
{
  struct gone *gone = data;

  if (gone->is_of_run && gone->address == 0)
    gone->address = (uint64_t) (uintptr_t) rt->ops->device_malloc (rt, 256);
  {
    const uint64_t shape = 32;
    PTOParam params[] = { make_input_param (
        make_tensor_external ((void *) (uintptr_t) gone->address, &shape, 1, PTO_DTYPE_UINT64)) };

    pto2_rt_submit_task (rt, NONE, AIV, params, 1);
  }
  return 0;
}

static uint64_t
make_device (void)
{
  struct pto_report report = { 0 };

  return pto_device_memory_malloc (pto_chip_memory (shared.chip), 256, &report);
}

static void
free_device (uint64_t device)
{
  struct pto_report report = { 0 };

  g_assert_cmpint (pto_device_memory_free (pto_chip_memory (shared.chip), device, &report), ==,
                   PTO_OK);
}

/* A task that is given memory which was given back before the run is named, and does not run. */
static void
test_device_memory_is_gone (enum pto_backend backend)
{
  struct gone gone = { 0 };
  struct pto_fence found;

  new_chip (backend, NULL);
  for (int way = 0; way < 2; way++)
    {
      gone = (struct gone){ .is_of_run = way == 0 };
      if (!gone.is_of_run)
        gone.address = make_device ();
      sim_run (shared.chip, &program, use_gone, &gone, NULL);
      g_assert_cmpuint (atomic_exchange (&shared.runs, 0), ==, 1);
      if (!gone.is_of_run)
        free_device (gone.address);
      sim_run_fails (shared.chip, &program, use_gone, &gone, PTO_STATUS_INVALID_ARGS,
                     "task 0 of ring 0 (none)",
                     ": the buffer of 256 bytes of argument 0 (declared uint64 [32]) was freed "
                     "before the task had run: keep it until the run has ended",
                     NULL);
      g_assert_cmpuint (atomic_load (&shared.runs), ==, 0);
    }
  /* Other memory is not where it was, until much more has been given back. */
  for (guint i = 0; i < PTO_DEVICE_GONE_MAX; i++)
    {
      uint64_t device = make_device ();

      g_assert_cmpuint (device, !=, gone.address);
      g_assert_true (pto_fence_find (gone.address, &found));
      g_assert_cmphex (found.guard, ==, PTO_FENCE_GONE);
      free_device (device);
    }
  g_assert_false (pto_fence_find (gone.address, &found));
  end_chip ();
}

/* Sizes whose sum, or whose rounding, is beyond 64 bits are too large like any other. */
static int
ask_for_more_than_there_is (PTO2Runtime *rt, void *data)
{
  static const uint64_t shapes[3][1]
      = { { (UINT64_C (1) << 61) - 1 }, { (UINT64_C (1) << 61) - 9 }, { 1 << 30 } };
  uint32_t which = *(uint32_t *) data;
  DataType dtype = which == 1 ? PTO_DTYPE_FLOAT64 : PTO_DTYPE_FLOAT32;
  Tensor a = pto2_rt_make_tensor (rt, shapes[which], 1, dtype);
  Tensor b = pto2_rt_make_tensor (rt, shapes[which], 1, dtype);
  PTOParam params[] = { make_output_param (a), make_output_param (b), make_scalar_param (0) };
  PTOParam scratch[] = { make_scratch_param (shapes[which], 1, dtype),
                         make_scratch_param (shapes[which], 1, dtype), make_scalar_param (0) };

  pto2_rt_submit_task (rt, 0, AIV, params, 3);
  pto2_rt_submit_task (rt, 0, AIV, scratch, 3);
  return 0;
}

static void
nothing (int64_t *args)
{
  (void) args;
}

static void
test_sizes (enum pto_backend backend)
{
  static const struct pto_kernel kernel = { "nothing", nothing, PTO_CORE_TYPE_AIV, { 0 } };
  static const struct pto_program one = { &kernel, 1 };
  struct pto_chip *chip = sim_chip (backend, NULL);

  for (uint32_t which = 0; which < 3; which++)
    sim_run_fails (chip, &one, ask_for_more_than_there_is, &which, PTO_STATUS_HEAP_RING,
                   which < 2 ? "task 0 needs more than the largest heap" : "outputs", "heap", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("memory/sizes", test_sizes);
  sim_add ("memory/scopes-of-most-of-the-heap", test_scopes_of_most_of_the_heap);
  sim_add ("memory/exact-fit", test_exact_fit);
  sim_add ("memory/large-after-small", test_large_after_small);
  sim_add ("memory/flow-through-inner-scope", test_flow_through_inner_scope);
  sim_add ("memory/consumer-keeps-buffer", test_consumer_keeps_buffer);
  sim_add ("memory/shortage", test_shortage);
  sim_add ("memory/deadlock", test_deadlock);
  sim_add ("memory/task-larger-than-heap", test_task_larger_than_heap);
  sim_add ("memory/size-costs-nothing", test_size_costs_nothing);
  sim_add_once ("memory/device", test_device_memory);
  sim_add_once ("memory/device-books", test_device_books);
  sim_add_once ("memory/device-fences-end", test_device_fences_end);
  sim_add_once ("memory/device-memory-again", test_device_memory_again);
  sim_add ("memory/kernels-see-device-memory", test_kernels_see_device_memory);
  sim_add ("memory/device-memory-is-gone", test_device_memory_is_gone);
  sim_add_once ("memory/laid-aside", test_laid_aside);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
