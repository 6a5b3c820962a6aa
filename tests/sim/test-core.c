/* test-core.c: how do a scheduler and a core talk to each other?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include "../../sim/chip-private.h"

#include <stdatomic.h>
#include <string.h>

static uint64_t words[8];

static PTOParam
inout (int word)
{
  static const uint64_t one[] = { 1 };

  return make_inout_param (make_tensor_external (&words[word], one, 1, PTO_DTYPE_UINT64));
}

static void
kernel_count (int64_t *args)
{
  ++*(uint64_t *) sim_data (args, 0);
}

static const struct pto_kernel kernels[] = {
  { "vector", kernel_count, PTO_CORE_TYPE_AIV, { .base_ns = 700 } },
  { "cube", kernel_count, PTO_CORE_TYPE_AIC, { .base_ns = 900 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

/* Tasks with equal numbers in four rings, on as few cores as there are: chains in each ring, so
 * that all are alive at once and take turns. */
static int
four_rings (PTO2Runtime *rt, void *data)
{
  int n = *(int *) data;

  for (int depth = 0; depth < 4; depth++)
    {
      if (depth > 0)
        pto2_rt_scope_begin (rt);
      for (int i = 0; i < n; i++)
        {
          PTOParam params[] = { inout (2 * depth + i % 2) };

          pto2_rt_submit_task (rt, i % 2, i % 2 == 0 ? AIV : AIC, params, 1);
        }
    }
  for (int depth = 1; depth < 4; depth++)
    pto2_rt_scope_end (rt);
  return 0;
}

static void
test_rings_do_not_collide (enum pto_backend backend)
{
  static const char *const settings[]
      = { "clusters=1 aicpu-threads=2", "clusters=2 aicpu-threads=3", NULL };

  for (gsize s = 0; s < G_N_ELEMENTS (settings); s++)
    {
      struct pto_chip *chip = sim_chip (backend, settings[s]);

      for (int run = 0; run < 5; run++)
        {
          struct pto_run_stats stats;
          int n = 50;

          memset (words, 0, sizeof words);
          sim_record (chip, &program, four_rings, &n, &stats);
          sim_assert_trace (chip, &stats);
          for (int ring = 0; ring < 4; ring++)
            g_assert_cmpuint (stats.ring_tasks[ring], ==, 50);
          for (int w = 0; w < 8; w++)
            g_assert_cmpuint (words[w], ==, 25);
        }
      pto_chip_free (chip);
    }
}

/* --- the registers, from inside of a kernel --- */

static struct
{
  struct pto_chip *chip;
  uint32_t seen;
  uint32_t data_main_base[64];
  uint32_t cond[64];
  uint32_t core[64];
  pto_task_id task[64];
  uint32_t num_args[64];
  bool right_entry;
} inside;

static void
kernel_look (int64_t *args)
{
  for (uint32_t c = 0; c < inside.chip->n_cores; c++)
    {
      const struct pto_core *core = &inside.chip->cores[c];
      const struct pto_dispatch_payload *payload = core->handshake.task;
      uint32_t n = inside.seen;

      if (payload->args != args || (atomic_load (&core->guard.call) & 1) == 0)
        continue;
      inside.data_main_base[n] = atomic_load (&core->registers.data_main_base.value);
      inside.cond[n] = atomic_load (&core->registers.cond);
      inside.core[n] = c;
      inside.task[n] = payload->task_id;
      inside.num_args[n] = payload->num_args;
      inside.right_entry &= payload->function_bin_addr == kernel_look && payload->kernel_id == 0;
      inside.seen++;
      return;
    }
}

static const struct pto_kernel look_kernels[]
    = { { "look", kernel_look, PTO_CORE_TYPE_AIV, { .base_ns = 100 } } };
static const struct pto_program look_program = { look_kernels, 1 };

static int
look (PTO2Runtime *rt, void *data)
{
  for (int i = 0; i < *(int *) data; i++)
    {
      PTOParam params[] = { inout (0), make_scalar_param (1), make_scalar_param (2) };

      pto2_rt_submit_task (rt, 0, AIV, params, 3);
    }
  return 0;
}

static struct pto_core *
core_named (struct pto_chip *chip, const char *name)
{
  for (uint32_t c = 0; c < chip->n_cores; c++)
    if (strcmp (chip->cores[c].name, name) == 0)
      return &chip->cores[c];
  return NULL;
}

static void
test_registers (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=1 aicpu-threads=2");
  uint32_t last[3] = { 0 };
  uint32_t used = 0;
  int n = 20;

  /* After the greeting, before any task. */
  g_assert_cmpuint (chip->n_cores, ==, 3);
  for (uint32_t c = 0; c < 3; c++)
    {
      const struct pto_core *core = &chip->cores[c];

      g_assert_cmpuint (atomic_load (&core->handshake.aicpu_ready.value), ==, 1);
      g_assert_cmpuint (atomic_load (&core->handshake.aicore_done.value), ==, 1);
      g_assert_true (core->handshake.task == &core->payload);
      g_assert_cmpuint (atomic_load (&core->registers.data_main_base.value), ==, PTO_REG_IDLE);
      g_assert_cmpuint (atomic_load (&core->registers.cond), ==, 0);
    }
  memset (&inside, 0, sizeof inside);
  inside.chip = chip;
  inside.right_entry = true;
  sim_run (chip, &look_program, look, &n, NULL);
  g_assert_cmpuint (inside.seen, ==, 20);
  g_assert_true (inside.right_entry);
  for (uint32_t i = 0; i < inside.seen; i++)
    {
      uint32_t c = inside.core[i];

      g_assert_cmpint (chip->cores[c].type, ==, PTO_CORE_TYPE_AIV);
      g_assert_cmpuint (inside.task[i], ==, PTO_TASK_ID (0, i));
      g_assert_cmpuint (inside.num_args[i], ==, 3);
      /* The number counts up on each core, whatever the task's; ACK is the number with the state
       * bit clear. */
      g_assert_cmpuint (inside.data_main_base[i], ==, last[c] + 1);
      g_assert_cmpuint (inside.cond[i], ==, inside.data_main_base[i]);
      last[c] = inside.data_main_base[i];
    }
  for (uint32_t c = 0; c < 3; c++)
    {
      const struct pto_core *core = &chip->cores[c];

      used += last[c];
      g_assert_cmpuint (atomic_load (&core->registers.data_main_base.value), ==, last[c]);
      /* FIN: the number with the state bit set; 0 on a core that had nothing to do. */
      g_assert_cmpuint (atomic_load (&core->registers.cond), ==,
                        last[c] > 0 ? last[c] | PTO_COND_FIN : 0);
      g_assert_cmpuint (core->sequence, ==, last[c]);
    }
  g_assert_cmpuint (used, ==, 20);
  pto_chip_free (chip);
}

/* The number never is IDLE, EXIT, or one that would look like FIN. */
static void
test_sequence_wraps (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=1 aicpu-threads=2");
  bool highest = false, lowest = false;
  int n = 20;

  for (uint32_t c = 0; c < chip->n_cores; c++)
    chip->cores[c].sequence = PTO_COND_SEQUENCE - 4;
  memset (&inside, 0, sizeof inside);
  inside.chip = chip;
  sim_run (chip, &look_program, look, &n, NULL);
  g_assert_cmpuint (inside.seen, ==, 20);
  for (uint32_t i = 0; i < inside.seen; i++)
    {
      g_assert_cmpuint (inside.data_main_base[i], !=, PTO_REG_IDLE);
      g_assert_cmpuint (inside.data_main_base[i], !=, PTO_REG_EXIT);
      g_assert_cmpuint (inside.data_main_base[i] & PTO_COND_FIN, ==, 0);
      g_assert_cmpuint (inside.data_main_base[i], !=, PTO_COND_SEQUENCE);
      highest |= inside.data_main_base[i] == PTO_COND_SEQUENCE - 1;
      lowest |= inside.data_main_base[i] == 1;
    }
  g_assert_true (highest);
  g_assert_true (lowest);
  pto_chip_free (chip);
}

/* Names and places: first the AICs of a cluster, then its AIVs; neighbours share a scheduler. */
static void
test_layout (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  g_assert_cmpuint (chip->n_cores, ==, 72);
  g_assert_cmpuint (chip->machine.engine.config.n_schedulers, ==, 3);
  for (uint32_t c = 0; c < 72; c++)
    {
      const struct pto_core *core = &chip->cores[c];

      g_assert_cmpuint (core->endpoint.number, ==, c);
      g_assert_cmpuint (core->cluster, ==, c / 3);
      g_assert_cmpint (core->type, ==, c % 3 == 0 ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV);
      g_assert_cmpuint (core->endpoint.scheduler->config.index, ==, c / 24);
    }
  g_assert_true (core_named (chip, "AIC0") == &chip->cores[0]);
  g_assert_true (core_named (chip, "AIC23") == &chip->cores[69]);
  g_assert_true (core_named (chip, "AIV0") == &chip->cores[1]);
  g_assert_true (core_named (chip, "AIV1") == &chip->cores[2]);
  g_assert_true (core_named (chip, "AIV2") == &chip->cores[4]);
  g_assert_true (core_named (chip, "AIV47") == &chip->cores[71]);
  g_assert_null (core_named (chip, "AIC24"));
  pto_chip_free (chip);
}

/* A platform may have more of each: every name is one core's. */
static void
test_layout_of_wide_clusters (enum pto_backend backend)
{
  struct pto_platform wide = *pto_platform_find ("a2a3sim");
  struct pto_chip *chip;

  wide.aic_per_cluster = 2;
  wide.aiv_per_cluster = 3;
  chip = sim_chip_on (&wide, backend, "clusters=4 aicpu-threads=3");
  g_assert_cmpuint (chip->n_cores, ==, 20);
  for (uint32_t c = 0; c < 20; c++)
    {
      const struct pto_core *core = &chip->cores[c];
      bool is_aic = c % 5 < 2;
      g_autofree char *name = is_aic ? g_strdup_printf ("AIC%u", c / 5 * 2 + c % 5)
                                     : g_strdup_printf ("AIV%u", c / 5 * 3 + c % 5 - 2);

      g_assert_cmpstr (core->name, ==, name);
      g_assert_cmpuint (core->endpoint.number, ==, c);
      g_assert_cmpuint (core->cluster, ==, c / 5);
      g_assert_cmpint (core->type, ==, is_aic ? PTO_CORE_TYPE_AIC : PTO_CORE_TYPE_AIV);
      g_assert_cmpuint (core->endpoint.scheduler->config.index, ==, c / 10);
    }
  pto_chip_free (chip);
}

/* --- notes --- */

#define NOTES 16u

static struct
{
  struct pto_core_note notes[NOTES];
  uint32_t busy; /* notes of which a kernel saw that its task runs there */
} noted;

/* args: number of the task */
static void
kernel_noted (int64_t *args)
{
  for (uint32_t c = 0; c < NOTES; c++)
    if (atomic_load (&noted.notes[c].calls) % 2 == 1
        && atomic_load (&noted.notes[c].task) == (uint64_t) args[0])
      noted.busy++;
}

static const struct pto_kernel noted_kernels[]
    = { { "noted", kernel_noted, PTO_CORE_TYPE_AIV, { .base_ns = 100 } } };
static const struct pto_program noted_program = { noted_kernels, 1 };

static int
submit_noted (PTO2Runtime *rt, void *data)
{
  for (uint64_t i = 0; i < 20; i++)
    {
      PTOParam params[] = { make_scalar_param (i), inout (0) };

      pto2_rt_submit_task (rt, 0, AIV, params, 2);
    }
  return 0;
}

/* Runs on 1 or 3 clusters. Gives the calls that the notes tell of. */
static uint32_t
run_noted (struct pto_chip *chip, uint32_t clusters, uint32_t n_notes)
{
  struct pto_run_config config = { .block_dim = clusters, .aicpu_threads = 2 };
  struct pto_report report = { 0 };
  uint32_t calls = 0;

  noted.busy = 0;
  g_assert_cmpint (pto_chip_run (chip, &noted_program, &config, submit_noted, NULL, NULL, &report),
                   ==, PTO_OK);
  g_assert_cmpuint (chip->machine.engine.config.n_carriers, ==,
                    pto_exec_carriers (chip->machine.engine.exec));
  for (uint32_t c = 0; c < NOTES; c++)
    {
      uint32_t n = atomic_load (&noted.notes[c].calls);

      if (c < n_notes && c < chip->n_cores)
        g_assert_cmpstr (noted.notes[c].name, ==, chip->cores[c].name);
      else
        g_assert_cmpuint (n, ==, 0);
      if (c >= n_notes)
        g_assert_cmpstr (noted.notes[c].name, ==, "");
      g_assert_cmpuint (n % 2, ==, 0);
      calls += n / 2;
    }
  return calls;
}

/* Every core that there is a note for keeps it, on whatever machine a run gets; no other note is
 * touched. */
static void
test_notes (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=3 aicpu-threads=2");
  uint32_t calls;

  for (uint32_t round = 0; round < 4; round++)
    {
      uint32_t clusters = round % 2 == 0 ? 3 : 1;

      memset (&noted, 0, sizeof noted);
      pto_chip_set_notes (chip, noted.notes, NOTES);
      g_assert_cmpuint (run_noted (chip, clusters, NOTES), ==, 20);
      g_assert_cmpuint (noted.busy, ==, 20);
      /* Fewer than cores. */
      memset (&noted, 0, sizeof noted);
      pto_chip_set_notes (chip, noted.notes, 2);
      calls = run_noted (chip, clusters, 2);
      g_assert_cmpuint (calls, <=, 20);
      g_assert_cmpuint (noted.busy, ==, calls);
      /* On a machine that is made after they were given. */
      memset (&noted, 0, sizeof noted);
      pto_chip_set_notes (chip, noted.notes, NOTES);
      memset (&noted, 0, sizeof noted);
      g_assert_cmpuint (run_noted (chip, 4 - clusters, NOTES), ==, 20);
      g_assert_cmpuint (noted.busy, ==, 20);
      /* Nobody asks any more, however many he says. */
      memset (&noted, 0, sizeof noted);
      pto_chip_set_notes (chip, NULL, NOTES);
      g_assert_cmpuint (run_noted (chip, clusters, 0), ==, 0);
    }
  pto_chip_free (chip);
}

static void
add_tests (void)
{
  sim_add ("core/rings-do-not-collide", test_rings_do_not_collide);
  sim_add_once ("core/registers", test_registers);
  sim_add_once ("core/sequence-wraps", test_sequence_wraps);
  sim_add_once ("core/layout", test_layout);
  sim_add_once ("core/layout-of-wide-clusters", test_layout_of_wide_clusters);
  sim_add ("core/notes", test_notes);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
