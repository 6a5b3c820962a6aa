/* test-scarce.c: what if there is no address space left while a chip begins?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each test is a process of its own, with a little more address space from one try to the next, so
 * that every mapping of a chip's start is once the one that is refused.
 */
#include "sim-test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STEP ((rlim_t) 384 << 10)
#define STEPS 1200

#ifndef SIM_SANITIZED
static uint64_t
address_space (void)
{
  char text[64] = "";
  FILE *file = fopen ("/proc/self/statm", "r");
  size_t n = fread (text, 1, sizeof text - 1, file);

  fclose (file);
  g_assert_cmpuint (n, >, 0);
  return strtoull (text, NULL, 10) * (uint64_t) sysconf (_SC_PAGESIZE);
}

static void
sweep (enum pto_backend backend)
{
  struct pto_params params;
  struct rlimit limit, small;
  uint64_t begin = address_space ();
  unsigned int threads = sim_count_threads ();
  unsigned int refused = 0;
  unsigned int in_a_row = 0;
  unsigned int without_stack = 0;
  struct pto_report refusal = { 0 };
  static const char *const settings[][2]
      = { { "heap", "65536" },      { "task-window", "16" }, { "dep-pool", "64" },
          { "map-pool", "64" },     { "clusters", "2" },     { "aicpu-threads", "3" },
          { "trace-records", "64" } };

  pto_params_init (&params, 2);
  for (gsize i = 0; i < G_N_ELEMENTS (settings); i++)
    g_assert_cmpint (pto_params_set (&params, settings[i][0], settings[i][1], &refusal), ==,
                     PTO_OK);
  params.values[PTO_PARAMETER_BACKEND] = (uint64_t) backend;
  g_assert_cmpint (getrlimit (RLIMIT_AS, &limit), ==, 0);
  small = limit;
  for (rlim_t step = 0; step < STEPS && in_a_row < 4; step++)
    {
      struct pto_report report = { 0 };
      struct pto_chip *chip;

      small.rlim_cur = begin + step * STEP;
      g_assert_cmpint (setrlimit (RLIMIT_AS, &small), ==, 0);
      chip = pto_chip_new (pto_platform_find ("a2a3sim"), &params, &report);
      g_assert_cmpint (setrlimit (RLIMIT_AS, &limit), ==, 0);
      if (chip == NULL)
        {
          g_assert_cmpint (report.status, !=, PTO_OK);
          g_assert_cmpuint (strlen (report.message), >, 0);
          without_stack += strstr (report.message, "No stack of") != NULL;
          refused++;
          in_a_row = 0;
        }
      else
        {
          in_a_row++;
          pto_chip_free (chip);
        }
      sim_assert_threads (threads);
    }
  g_test_message ("refused %u times, %u times for a stack", refused, without_stack);
  g_assert_cmpuint (refused, >, 0);
  g_assert_cmpuint (in_a_row, ==, 4);
  /* 8 actors, each with a stack larger than a step. */
  g_assert_cmpuint (without_stack, >=, 8);
}

/* Halves the setting that the message says is to be less. */
static void
follow (struct pto_params *params, const char *message)
{
  static const enum pto_param settings[] = { PTO_PARAMETER_TASK_WINDOW, PTO_PARAMETER_HEAP,
                                             PTO_PARAMETER_DEP_POOL, PTO_PARAMETER_MAP_POOL };
  const char *advice = strstr (message, ": set ");
  struct pto_report report = { 0 };

  if (advice == NULL)
    g_error ("it names no setting: %s", message);
  for (gsize i = 0; i < G_N_ELEMENTS (settings); i++)
    {
      const char *name = pto_param_name (settings[i]);
      char value[32];

      if (!g_str_has_prefix (advice + strlen (": set "), name))
        continue;
      g_snprintf (value, sizeof value, "%" PRIu64, params->values[settings[i]] / 2);
      /* It may be as small. */
      g_assert_cmpint (pto_params_set (params, name, value, &report), ==, PTO_OK);
      return;
    }
  g_error ("it names no setting: %s", message);
}

/* With half a gigabyte more than there is, a chip of the default settings starts once what the
 * messages name is less; with 48 MiB also. */
static void
follow_advice (enum pto_backend backend)
{
  static const rlim_t rooms[] = { (rlim_t) 512 << 20, (rlim_t) 48 << 20 };

  for (gsize i = 0; i < G_N_ELEMENTS (rooms); i++)
    {
      struct pto_params params;
      struct rlimit limit, small;
      struct pto_chip *chip = NULL;
      unsigned int steps = 0;

      pto_params_init (&params, 2);
      params.values[PTO_PARAMETER_BACKEND] = (uint64_t) backend;
      params.values[PTO_PARAMETER_CLUSTERS] = 2;
      params.values[PTO_PARAMETER_AICPU_THREADS] = 3;
      g_assert_cmpint (getrlimit (RLIMIT_AS, &limit), ==, 0);
      small = limit;
      small.rlim_cur = address_space () + rooms[i];
      while (chip == NULL)
        {
          struct pto_report report = { 0 };

          g_assert_cmpint (setrlimit (RLIMIT_AS, &small), ==, 0);
          chip = pto_chip_new (pto_platform_find ("a2a3sim"), &params, &report);
          g_assert_cmpint (setrlimit (RLIMIT_AS, &limit), ==, 0);
          if (chip == NULL)
            follow (&params, report.message);
          g_assert_cmpuint (++steps, <=, 60);
        }
      g_assert_cmpuint (steps, >, 1);
      pto_chip_free (chip);
    }
}

static const struct pto_program program = { NULL, 0 };

static int
nothing (PTO2Runtime *rt, void *data)
{
  return 0;
}

/* A chip that can not be made anew stays what it is, with its memory; once it can, it is the fresh
 * one's. */
static void
refuse_fresh (struct pto_chip *chip)
{
  struct pto_report report = { 0 };
  uint64_t address = pto_device_memory_malloc (pto_chip_memory (chip), sizeof (int), &report);
  struct rlimit limit, small;
  int value = 17;

  g_assert_cmpint (
      pto_device_memory_copy_to (pto_chip_memory (chip), address, &value, sizeof value, &report),
      ==, PTO_OK);
  g_assert_cmpint (getrlimit (RLIMIT_AS, &limit), ==, 0);
  small = limit;
  small.rlim_cur = address_space ();
  g_assert_cmpint (setrlimit (RLIMIT_AS, &small), ==, 0);
  g_assert_null (pto_chip_renew (chip, &report));
  g_assert_cmpint (setrlimit (RLIMIT_AS, &limit), ==, 0);
  g_assert_cmpint (report.status, !=, PTO_OK);
  report.status = PTO_OK;
  for (int i = 0; i < 2; i++)
    {
      struct pto_chip *fresh;

      value = 0;
      g_assert_cmpint (pto_device_memory_copy_from (pto_chip_memory (chip), &value, address,
                                                    sizeof value, &report),
                       ==, PTO_OK);
      g_assert_cmpint (value, ==, 17);
      sim_run (chip, &program, nothing, NULL, NULL);
      fresh = pto_chip_renew (chip, &report);
      g_assert_nonnull (fresh);
      pto_chip_free (chip);
      chip = fresh;
    }
  pto_chip_free (chip);
}

/* A chip whose machine can not be made larger has none, and says so; once it can, it works. The
 * stacks of the larger one are more than all that the smaller one gives back. */
static void
refuse_larger (enum pto_backend backend)
{
  struct pto_chip *chip
      = sim_chip (backend, "clusters=64 stack=8M task-window=16 heap=65536 aicpu-threads=3");
  struct pto_run_config one = { .block_dim = 1 };
  struct pto_core_note *notes = g_new0 (struct pto_core_note, 256);
  struct pto_trace_topology topology;
  struct rlimit limit, small;

  g_assert_cmpint (getrlimit (RLIMIT_AS, &limit), ==, 0);
  small = limit;
  for (uint32_t round = 0; round < 3; round++)
    {
      struct pto_report report = { 0 };

      g_assert_cmpint (pto_chip_run (chip, &program, &one, nothing, NULL, NULL, &report), ==,
                       PTO_OK);
      pto_chip_trace_topology (chip, &topology);
      g_assert_cmpuint (topology.n_cores, ==, 3);
      small.rlim_cur = address_space () + ((rlim_t) 8 << 20);
      g_assert_cmpint (setrlimit (RLIMIT_AS, &small), ==, 0);
      g_assert_cmpint (pto_chip_run (chip, &program, NULL, nothing, NULL, NULL, &report), ==,
                       PTO_STATUS_SYSTEM);
      g_assert_cmpint (setrlimit (RLIMIT_AS, &limit), ==, 0);
      g_assert_nonnull (strstr (report.message, "a chip of 64 clusters cannot be started"));
      pto_chip_trace_topology (chip, &topology);
      g_assert_cmpuint (topology.n_cores, ==, 0);
      g_assert_cmpuint (topology.n_clusters, ==, 0);
      g_assert_cmpuint (topology.n_schedulers, ==, 0);
      pto_chip_set_notes (chip, notes, 256);
    }
  sim_run (chip, &program, nothing, NULL, NULL);
  pto_chip_trace_topology (chip, &topology);
  g_assert_cmpuint (topology.n_cores, ==, 192);
  refuse_fresh (chip);
  g_free (notes);
}
#endif

static void
test_larger_machine (enum pto_backend backend)
{
#ifdef SIM_SANITIZED
  g_test_skip ("sanitizers need all the address space that there is");
#else
  if (g_test_subprocess ())
    {
      refuse_larger (backend);
      return;
    }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_test_trap_assert_passed ();
#endif
}

static void
test_address_space (enum pto_backend backend)
{
#ifdef SIM_SANITIZED
  g_test_skip ("sanitizers need all the address space that there is");
#else
  if (g_test_subprocess ())
    {
      sweep (backend);
      return;
    }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_test_trap_assert_passed ();
#endif
}

static void
test_advice (enum pto_backend backend)
{
#ifdef SIM_SANITIZED
  g_test_skip ("sanitizers need all the address space that there is");
#else
  if (g_test_subprocess ())
    {
      follow_advice (backend);
      return;
    }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_test_trap_assert_passed ();
#endif
}

static void
add_tests (void)
{
  sim_add ("scarce/address-space", test_address_space);
  sim_add ("scarce/advice", test_advice);
  sim_add ("scarce/larger-machine", test_larger_machine);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add_tests);
}
