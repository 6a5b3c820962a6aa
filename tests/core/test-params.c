/* test-params.c: does every knob take what it says it takes, and name itself when it refuses?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/core/parameters.h"

#include "../../pto/core/tensor-map.h"
#include "../../pto/exec/pto-exec.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct range
{
  enum pto_param param;
  const char *min;
  const char *max;
  const char *below; /* NULL: there is none */
  const char *above;
};

/* The table of the header, once more. */
static const struct range ranges[] = {
  { PTO_PARAMETER_SEED, "0", "18446744073709551615", NULL, "18446744073709551616" },
  { PTO_PARAMETER_TASK_WINDOW, "4", "16777216", "2", "33554432" },
  { PTO_PARAMETER_HEAP, "1024", "1024G", "1023", "1099511627777" },
  { PTO_PARAMETER_DEP_POOL, "16", "268435456", "15", "268435457" },
  { PTO_PARAMETER_MAP_POOL, "16", "268435456", "15", "268435457" },
  { PTO_PARAMETER_READY_SHARDS, "1", "16", "0", "17" },
  { PTO_PARAMETER_AICPU_THREADS, "0", "64", NULL, "65" },
  { PTO_PARAMETER_CLUSTERS, "0", "1024", NULL, "1025" },
  { PTO_PARAMETER_CARRIERS, "0", "256", NULL, "257" },
  { PTO_PARAMETER_TIMEOUT, "1", "86400000", "0", "86400001" },
  { PTO_PARAMETER_STACK, "16384", "1G", "16383", "1073741825" },
  { PTO_PARAMETER_GUARD, "0", "4096", NULL, "4104" },
  { PTO_PARAMETER_TRACE, "0", "1", NULL, "2" },
  { PTO_PARAMETER_TRACE_LEVEL, "1", "4", "0", "5" },
  { PTO_PARAMETER_TRACE_RECORDS, "16", "268435456", "15", "268435457" },
  { PTO_PARAMETER_UTILIZATION, "0", "1", NULL, "2" },
  { PTO_PARAMETER_TASK_TIMEOUT, "0", "86400000", NULL, "86400001" },
  { PTO_PARAMETER_STOP_TIMEOUT, "0", "86400000", NULL, "86400001" },
  { PTO_PARAMETER_REMOTE_PING, "10", "3600000", "9", "3600001" },
  { PTO_PARAMETER_REMOTE_SUSPECT, "0", "86400000", NULL, "86400001" },
  { PTO_PARAMETER_REMOTE_LEASE, "0", "86400000", NULL, "86400001" },
  { PTO_PARAMETER_REMOTE_LEAVE, "1", "1024G", "0", "1099511627777" },
  { PTO_PARAMETER_RETRIES, "0", "1000", NULL, "1001" },
  { PTO_PARAMETER_PIPE_DEPTH, "1", "65536", "0", "65537" },
  { PTO_PARAMETER_BUILD_MODE, "0", "1", "-1", "2" },
  { PTO_PARAMETER_JITTER, "0", "1000", NULL, "1001" },
  { PTO_PARAMETER_RENAME, "0", "1", NULL, "2" },
  { PTO_PARAMETER_BLOCKED_NOTICE, "0", "86400000", NULL, "86400001" },
  { PTO_PARAMETER_ARENA, "1048576", "1024G", "1048575", "1099511627777" },
};

static void
accept (enum pto_param param, const char *value, uint64_t expected)
{
  struct pto_params params;
  struct pto_report report = { 0 };

  pto_params_init (&params, 2);
  params.values[param] = ~expected;
  g_test_message ("%s=%s", pto_param_name (param), value);
  g_assert_cmpint (pto_params_set (&params, pto_param_name (param), value, &report), ==, PTO_OK);
  g_assert_cmpstr (report.message, ==, "");
  g_assert_cmpuint (params.values[param], ==, expected);
}

/* Refused: the message names the knob and the value, the parameters stay as they were. */
static char *
refuse (enum pto_param param, const char *value)
{
  struct pto_params params;
  struct pto_params before;
  struct pto_report report = { 0 };

  pto_params_init (&params, 2);
  before = params;
  g_test_message ("%s=%s", pto_param_name (param), value);
  g_assert_cmpint (pto_params_set (&params, pto_param_name (param), value, &report), ==,
                   PTO_STATUS_INVALID_ARGS);
  g_assert_cmpint (report.status, ==, PTO_STATUS_INVALID_ARGS);
  g_assert_cmpmem (&params, sizeof params, &before, sizeof before);
  g_assert_nonnull (strstr (report.message, pto_param_name (param)));
  g_assert_nonnull (strstr (report.message, value));
  return g_strdup (report.message);
}

static uint64_t
number (const char *text)
{
  uint64_t value = strtoull (text, NULL, 10);

  return strchr (text, 'G') != NULL ? value << 30 : value;
}

static void
test_ranges (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (ranges); i++)
    {
      const struct range *range = &ranges[i];
      bool boolean = range->param == PTO_PARAMETER_TRACE
                     || range->param == PTO_PARAMETER_UTILIZATION
                     || range->param == PTO_PARAMETER_RENAME;
      const char *outside[]
          = { range->below, range->above, "-1", "", "x", "4x", " 4", "0x10", "1e3" };

      accept (range->param, range->min, number (range->min));
      accept (range->param, range->max, number (range->max));
      for (gsize o = 0; o < G_N_ELEMENTS (outside); o++)
        if (outside[o] != NULL)
          {
            char *message = refuse (range->param, outside[o]);
            char *limits = g_strdup_printf ("from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
                                            number (range->min), number (range->max));

            g_assert_nonnull (strstr (message, boolean ? "0 or 1" : limits));
            g_free (limits);
            g_free (message);
          }
    }
}

/* A number for all rings, or one for each; the last that was said holds. */
static void
test_rings (void)
{
  static const enum pto_param params_of_rings[]
      = { PTO_PARAMETER_TASK_WINDOW, PTO_PARAMETER_HEAP, PTO_PARAMETER_DEP_POOL };
  static const uint64_t expected[] = { 4096, 65536, 1024, 16384 };
  static const char *const bad[] = { "4096,8192",
                                     "4096,4096,4096,",
                                     "4096,4096,4096,4096,4096",
                                     "4096,4096,,4096",
                                     "4096,x,64,4096",
                                     ",,,",
                                     "4096,4096,4096,99999999999999999999999999999999999",
                                     "1,1,1,1" };

  for (gsize i = 0; i < G_N_ELEMENTS (params_of_rings); i++)
    {
      enum pto_param param = params_of_rings[i];
      const char *name = pto_param_name (param);
      struct pto_report report = { 0 };
      struct pto_params params;
      char text[128];

      pto_params_init (&params, 2);
      g_assert_false (pto_params_differ (&params, param));
      g_assert_cmpint (pto_params_set (&params, name, "4096,64K,1024,16384", &report), ==, PTO_OK);
      g_assert_true (pto_params_differ (&params, param));
      for (uint32_t r = 0; r < PTO_N_RINGS; r++)
        g_assert_cmpuint (pto_params_of_ring (&params, param, r), ==, expected[r]);
      g_assert_cmpuint (params.values[param], ==, 65536);
      g_assert_true (pto_params_get (&params, name, text, sizeof text));
      g_assert_cmpstr (text, ==, "4096,65536,1024,16384");
      g_assert_cmpint (pto_params_set (&params, name, "2048", &report), ==, PTO_OK);
      g_assert_false (pto_params_differ (&params, param));
      for (uint32_t r = 0; r < PTO_N_RINGS; r++)
        g_assert_cmpuint (pto_params_of_ring (&params, param, r), ==, 2048);
      g_assert_true (pto_params_get (&params, name, text, sizeof text));
      g_assert_cmpstr (text, ==, "2048");
      for (gsize b = 0; b < G_N_ELEMENTS (bad); b++)
        {
          struct pto_params before = params;

          report = (struct pto_report){ 0 };
          g_assert_cmpint (pto_params_set (&params, name, bad[b], &report), ==,
                           PTO_STATUS_INVALID_ARGS);
          g_assert_cmpmem (&params, sizeof params, &before, sizeof before);
          g_assert_nonnull (strstr (report.message, name));
        }
      report = (struct pto_report){ 0 };
      g_assert_cmpint (pto_params_set (&params, name, "64,64", &report), ==,
                       PTO_STATUS_INVALID_ARGS);
      g_assert_nonnull (strstr (
          report.message, "\"64,64\" is 2 numbers: one for all rings wanted, or 4, one for each"));
    }
  /* Others take one. */
  g_free (refuse (PTO_PARAMETER_MAP_POOL, "64,64,64,64"));
}

static void
test_suffixes (void)
{
  accept (PTO_PARAMETER_HEAP, "4K", 4096);
  accept (PTO_PARAMETER_HEAP, "4k", 4096);
  accept (PTO_PARAMETER_HEAP, "3M", UINT64_C (3) << 20);
  accept (PTO_PARAMETER_HEAP, "3m", UINT64_C (3) << 20);
  accept (PTO_PARAMETER_HEAP, "2G", UINT64_C (2) << 30);
  accept (PTO_PARAMETER_HEAP, "2g", UINT64_C (2) << 30);
  accept (PTO_PARAMETER_TASK_WINDOW, "64K", 65536);
  accept (PTO_PARAMETER_STACK, "256K", 262144);
  accept (PTO_PARAMETER_ARENA, "32G", UINT64_C (32) << 30);
  g_free (refuse (PTO_PARAMETER_HEAP, "4T"));
  g_free (refuse (PTO_PARAMETER_HEAP, "4KB"));
  g_free (refuse (PTO_PARAMETER_HEAP, "K"));
  g_free (refuse (PTO_PARAMETER_HEAP, "4 K"));
  /* Not around the corner of 64 bits. */
  g_free (refuse (PTO_PARAMETER_HEAP, "17179869185G"));
  g_free (refuse (PTO_PARAMETER_HEAP, "18446744073709551615K"));
  /* A seed is no size. */
  g_free (refuse (PTO_PARAMETER_SEED, "4K"));
}

static void
test_powers_of_two (void)
{
  char *message = refuse (PTO_PARAMETER_TASK_WINDOW, "12");

  g_assert_nonnull (strstr (message, "power of two from 4 to 16777216"));
  g_free (message);
  for (uint64_t window = 4; window <= 16777216; window *= 2)
    {
      char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, window);

      accept (PTO_PARAMETER_TASK_WINDOW, text, window);
      g_free (text);
    }
}

static void
test_odd_values (void)
{
  char *message = refuse (PTO_PARAMETER_GUARD, "12");

  g_assert_nonnull (strstr (message, "a multiple of 8"));
  g_free (message);
  /* An orchestrator needs a scheduler beside it. */
  message = refuse (PTO_PARAMETER_AICPU_THREADS, "1");
  g_assert_nonnull (strstr (message, "0 or at least 2"));
  g_free (message);
  accept (PTO_PARAMETER_AICPU_THREADS, "2", 2);
}

static void
test_choices (void)
{
  char *message;

  accept (PTO_PARAMETER_BACKEND, "par", PTO_BACKEND_PAR);
  accept (PTO_PARAMETER_BACKEND, "det", PTO_BACKEND_DET);
  accept (PTO_PARAMETER_BACKEND, "threads", PTO_BACKEND_THREADS);
  message = refuse (PTO_PARAMETER_BACKEND, "fast");
  g_assert_nonnull (strstr (message, "par, det or threads"));
  g_free (message);
  accept (PTO_PARAMETER_CHECK, "none", PTO_CHECK_NOTHING);
  accept (PTO_PARAMETER_CHECK, "access", PTO_CHECK_ACCESS);
  message = refuse (PTO_PARAMETER_CHECK, "par");
  g_assert_nonnull (strstr (message, "none or access"));
  g_free (message);
  accept (PTO_PARAMETER_COSTS, "own", PTO_COSTS_OWN);
  accept (PTO_PARAMETER_COSTS, "chip", PTO_COSTS_OF_CHIP);
  accept (PTO_PARAMETER_COSTS, "cpu", PTO_COSTS_OF_CPU);
  accept (PTO_PARAMETER_COSTS, "virtual", PTO_COSTS_OF_VIRTUAL);
  message = refuse (PTO_PARAMETER_COSTS, "wall");
  g_assert_nonnull (strstr (message, "own, chip, cpu or virtual"));
  g_free (message);
  accept (PTO_PARAMETER_HAZARDS, "raw", PTO_HAZARD_RAW);
  accept (PTO_PARAMETER_HAZARDS, "raw,waw", PTO_HAZARD_RAW | PTO_HAZARD_WAW);
  accept (PTO_PARAMETER_HAZARDS, "war,waw,raw", PTO_HAZARD_RAW | PTO_HAZARD_WAW | PTO_HAZARD_WAR);
  message = refuse (PTO_PARAMETER_HAZARDS, "waw");
  g_assert_nonnull (strstr (message, "raw, waw, war with at least raw"));
  g_free (message);
  g_free (refuse (PTO_PARAMETER_HAZARDS, "raw,raww"));
  g_free (refuse (PTO_PARAMETER_HAZARDS, "raw;waw"));
  g_free (refuse (PTO_PARAMETER_HAZARDS, "raw,,waw"));
  g_free (refuse (PTO_PARAMETER_HAZARDS, ""));
  /* Its text is kept elsewhere. */
  accept (PTO_PARAMETER_SCHEDULE, "", 0);
  accept (PTO_PARAMETER_SCHEDULE, "1:3-after-1:7,without-war", 1);
  message = refuse (PTO_PARAMETER_SCHEDULE, "1:3-after-1:x");
  g_assert_nonnull (strstr (message, "one task wanted"));
  g_free (message);
  for (gsize i = 0; i < 3; i++)
    {
      accept (PTO_PARAMETER_TRACE, ((const char *[]){ "1", "true", "yes" })[i], 1);
      accept (PTO_PARAMETER_TRACE, ((const char *[]){ "0", "false", "no" })[i], 0);
    }
}

/* What was chosen, by its name. */
static void
test_choice (void)
{
  struct pto_params params;
  struct pto_report report = { 0 };

  pto_params_init (&params, 2);
  g_assert_cmpstr (pto_params_choice (&params, PTO_PARAMETER_BACKEND), ==, "par");
  g_assert_cmpint (pto_params_set (&params, "backend", "det", &report), ==, PTO_OK);
  g_assert_cmpstr (pto_params_choice (&params, PTO_PARAMETER_BACKEND), ==, "det");
  g_assert_null (pto_params_choice (&params, PTO_PARAMETER_SEED));
}

static void
test_unknown_name (void)
{
  struct pto_params params;
  struct pto_report report = { 0 };
  char text[32];

  pto_params_init (&params, 2);
  g_assert_cmpint (pto_params_set (&params, "window", "4", &report), ==, PTO_STATUS_INVALID_ARGS);
  g_assert_nonnull (strstr (report.message, "\"window\""));
  g_assert_false (pto_params_get (&params, "window", text, sizeof text));
}

/* What get gives, set takes. */
static void
test_text_and_back (void)
{
  struct pto_params params;

  pto_params_init (&params, 2);
  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    {
      struct pto_params other;
      char text[64];
      const char *name = pto_param_name ((enum pto_param) i);

      g_assert_true (pto_params_get (&params, name, text, sizeof text));
      pto_params_init (&other, 2);
      other.values[i] = 99;
      g_assert_cmpint (pto_params_set (&other, name, text, NULL), ==, PTO_OK);
      g_assert_cmpuint (other.values[i], ==, params.values[i]);
      /* Every default is in its range, every knob says what it is for. */
      g_assert_cmpuint (strlen (pto_param_description ((enum pto_param) i)), >, 8);
      for (int j = 0; j < i; j++)
        {
          g_assert_cmpstr (name, !=, pto_param_name ((enum pto_param) j));
          g_assert_cmpstr (pto_param_variable ((enum pto_param) i), !=,
                           pto_param_variable ((enum pto_param) j));
        }
    }
}

static void
test_environment (void)
{
  static const struct
  {
    const char *variable;
    enum pto_param param;
    const char *value;
    uint64_t expected;
  } variables[] = {
    { "PTO2_RING_TASK_WINDOW", PTO_PARAMETER_TASK_WINDOW, "16", 16 },
    { "PTO2_RING_HEAP", PTO_PARAMETER_HEAP, "8M", UINT64_C (8) << 20 },
    { "PTO2_RING_DEP_POOL", PTO_PARAMETER_DEP_POOL, "100", 100 },
    { "PTO2_READY_QUEUE_SHARDS", PTO_PARAMETER_READY_SHARDS, "5", 5 },
    { "PTO_HAZARDS", PTO_PARAMETER_HAZARDS, "raw,waw", PTO_HAZARD_RAW | PTO_HAZARD_WAW },
    { "PTO_BACKEND", PTO_PARAMETER_BACKEND, "det", PTO_BACKEND_DET },
    { "PTO_SEED", PTO_PARAMETER_SEED, "77", 77 },
    { "PTO_TASK_TIMEOUT", PTO_PARAMETER_TASK_TIMEOUT, "1500", 1500 },
    { "PTO_STOP_TIMEOUT", PTO_PARAMETER_STOP_TIMEOUT, "250", 250 },
    { "PTO_ARENA", PTO_PARAMETER_ARENA, "64M", UINT64_C (64) << 20 },
  };
  struct pto_params params;
  struct pto_params defaults;
  struct pto_report report = { 0 };

  pto_params_init (&defaults, 2);
  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    unsetenv (pto_param_variable ((enum pto_param) i));
  params = defaults;
  g_assert_cmpint (pto_params_from_environment (&params, &report), ==, PTO_OK);
  g_assert_cmpmem (&params, sizeof params, &defaults, sizeof defaults);
  for (gsize i = 0; i < G_N_ELEMENTS (variables); i++)
    setenv (variables[i].variable, variables[i].value, 1);
  g_assert_cmpint (pto_params_from_environment (&params, &report), ==, PTO_OK);
  for (gsize i = 0; i < G_N_ELEMENTS (variables); i++)
    {
      g_assert_cmpuint (params.values[variables[i].param], ==, variables[i].expected);
      unsetenv (variables[i].variable);
    }
  /* Every knob has a variable, and a bad value is told by that name. */
  for (int i = 0; i < PTO_N_PARAMETERS; i++)
    {
      const char *variable = pto_param_variable ((enum pto_param) i);

      setenv (variable, "bad", 1);
      params = defaults;
      report = (struct pto_report){ 0 };
      g_assert_cmpint (pto_params_from_environment (&params, &report), ==, PTO_STATUS_INVALID_ARGS);
      g_assert_true (g_str_has_prefix (report.message, variable));
      g_assert_nonnull (strstr (report.message, "\"bad\""));
      unsetenv (variable);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (60);
  g_test_add_func ("/pto/params/ranges", test_ranges);
  g_test_add_func ("/pto/params/suffixes", test_suffixes);
  g_test_add_func ("/pto/params/rings", test_rings);
  g_test_add_func ("/pto/params/powers-of-two", test_powers_of_two);
  g_test_add_func ("/pto/params/odd-values", test_odd_values);
  g_test_add_func ("/pto/params/choices", test_choices);
  g_test_add_func ("/pto/params/choice", test_choice);
  g_test_add_func ("/pto/params/unknown-name", test_unknown_name);
  g_test_add_func ("/pto/params/text-and-back", test_text_and_back);
  g_test_add_func ("/pto/params/environment", test_environment);
  return g_test_run ();
}
