/* test-schedule.c: does a text say what it says of the order of tasks, and is what is garbled
 * named?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "../../pto/core/forced-order-text.h"

#include <glib.h>
#include <string.h>

static struct pto_schedule
read_well (const char *text)
{
  struct pto_report report = { 0 };
  struct pto_schedule schedule;

  g_test_message ("%s", text);
  g_assert_cmpint (pto_schedule_parse (&schedule, text, "schedule", &report), ==, PTO_OK);
  g_assert_cmpstr (report.message, ==, "");
  return schedule;
}

static void
assert_delay (const struct pto_delay *delay, pto_task_id task, pto_task_id until)
{
  g_assert_cmphex (delay->task, ==, task);
  g_assert_cmphex (delay->until, ==, until);
}

static void
test_delays (void)
{
  struct pto_schedule schedule = read_well ("1:7-after-1:9,0:2-last,3:4294967295-after-2:0");
  const struct pto_delay *delays;

  g_assert_cmpuint (schedule.n_delays, ==, 3);
  g_assert_false (schedule.random);
  g_assert_cmpuint (schedule.without, ==, 0);
  /* In the order of tasks. */
  assert_delay (&schedule.delays[0], PTO_TASK_ID (0, 2), PTO_TASK_NONE);
  assert_delay (&schedule.delays[1], PTO_TASK_ID (1, 7), PTO_TASK_ID (1, 9));
  assert_delay (&schedule.delays[2], PTO_TASK_ID (3, UINT32_MAX), PTO_TASK_ID (2, 0));
  g_assert_cmpuint (pto_schedule_find (&schedule, PTO_TASK_ID (1, 7), &delays), ==, 1);
  assert_delay (delays, PTO_TASK_ID (1, 7), PTO_TASK_ID (1, 9));
  g_assert_cmpuint (pto_schedule_find (&schedule, PTO_TASK_ID (1, 9), &delays), ==, 0);
  pto_schedule_clear (&schedule);
  g_assert_null (schedule.delays);
}

/* Each of a task's delays is found, among many. */
static void
test_many (void)
{
  GString *text = g_string_new (NULL);
  struct pto_schedule schedule;

  for (guint t = 200; t-- > 0;)
    for (guint k = 0; k <= t % 3; k++)
      g_string_append_printf (text, "%s1:%u-after-2:%u", text->len > 0 ? "," : "", t, k);
  schedule = read_well (text->str);
  for (guint t = 0; t < 200; t++)
    {
      const struct pto_delay *delays;

      g_assert_cmpuint (pto_schedule_find (&schedule, PTO_TASK_ID (1, t), &delays), ==, t % 3 + 1);
      for (guint k = 0; k <= t % 3; k++)
        assert_delay (&delays[k], PTO_TASK_ID (1, t), PTO_TASK_ID (2, k));
    }
  pto_schedule_clear (&schedule);
  g_string_free (text, TRUE);
}

static void
test_words (void)
{
  const struct pto_delay *delays;
  struct pto_schedule schedule = read_well ("in-order");

  g_assert_cmpuint (schedule.n_delays, ==, 0);
  g_assert_false (schedule.random);
  g_assert_cmpuint (pto_schedule_find (&schedule, 0, &delays), ==, 0);
  schedule = read_well ("without-war,without-raw");
  g_assert_cmpuint (schedule.without, ==, PTO_HAZARD_RAW | PTO_HAZARD_WAR);
  schedule = read_well ("random-18446744073709551615,without-waw");
  g_assert_true (schedule.random);
  g_assert_cmpuint (schedule.seed, ==, G_MAXUINT64);
  g_assert_cmpuint (schedule.without, ==, PTO_HAZARD_WAW);
  schedule = read_well ("without-waw,1:0-last");
  g_assert_cmpuint (schedule.n_delays, ==, 1);
  pto_schedule_clear (&schedule);
}

/* One line that quotes the item, and says what is wanted there. */
static void
test_garbled (void)
{
  static const struct
  {
    const char *text;
    const char *item;
    const char *wanted;
  } bad[] = {
    { "", "\"\"", "TASK-after-TASK" },
    { "1:7", "\"1:7\"", "-after-TASK or -last" },
    { "1:7-later", "\"1:7-later\"", "-after-TASK or -last" },
    { "1:7-last,", "\"1:7-last,\"", "at one side of a comma" },
    { ",1:7-last", "\",1:7-last\"", "at one side of a comma" },
    { "1:7-last,,1:8-last", "\"1:7-last,,1:8-last\"", "at one side of a comma" },
    { "1:7-after-1:9 ", "\"1:7-after-1:9 \"", "one task" },
    { " 1:7-after-1:9", "\" 1:7-after-1:9\"", "TASK-after-TASK" },
    { "1:7-after-", "\"1:7-after-\"", "one task" },
    { "1:7-after-9", "\"1:7-after-9\"", "one task" },
    { "1:7-after-1:9-last", "\"1:7-after-1:9-last\"", "one task" },
    { "1:7-lastly", "\"1:7-lastly\"", "-last" },
    { "1:7-after-1:7", "\"1:7-after-1:7\"", "itself" },
    { "7-last", "\"7-last\"", "RING:POSITION" },
    { "1:-last", "\"1:-last\"", "RING:POSITION" },
    { "4:1-last", "\"4:1-last\"", "rings from 0 to 3" },
    { "99999999999999999999:1-last", "\"99999999999999999999:1-last\"", "rings from 0 to 3" },
    { "1:4294967296-last", "\"1:4294967296-last\"", "below 2^32" },
    { "1:1-after-1:4294967296", "\"1:1-after-1:4294967296\"", "below 2^32" },
    { "in-order,1:7-last", "in-order", "stands alone" },
    { "in-order,in-order", "in-order", "stands alone" },
    { "IN-ORDER", "\"IN-ORDER\"", "in-order" },
    { "random", "\"random\"", "random-SEED" },
    { "random-", "\"random-\"", "random-SEED wanted" },
    { "random--1", "\"random--1\"", "random-SEED wanted" },
    { "random-18446744073709551616", "\"random-18446744073709551616\"", "below 2^64" },
    { "random-1,random-2", "\"random-2\"", "one seed" },
    { "random-3,1:7-last", "random-3", "one or the other" },
    { "without-", "\"without-\"", "without-raw" },
    { "without-rawr", "\"without-rawr\"", "without-raw" },
    { "without-raw;war", "\"without-raw;war\"", "without-raw" },
    { "1:7\xff-last", "\"1:7\xff-last\"", "-last" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autofree char *shown = g_strescape (bad[i].text, NULL);
      struct pto_report report = { 0 };
      struct pto_schedule schedule;

      g_test_message ("%s", shown);
      g_assert_cmpint (pto_schedule_parse (&schedule, bad[i].text, "PTO_SCHEDULE", &report), ==,
                       PTO_STATUS_INVALID_ARGS);
      g_assert_true (g_str_has_prefix (report.message, "PTO_SCHEDULE: "));
      g_assert_nonnull (strstr (report.message, bad[i].item));
      g_assert_nonnull (strstr (report.message, bad[i].wanted));
      g_assert_null (strchr (report.message, '\n'));
      g_assert_null (schedule.delays);
    }
}

/* What is very long is quoted in part. */
static void
test_long (void)
{
  g_autofree char *text = g_strnfill (100000, 'x');
  struct pto_report report = { 0 };
  struct pto_schedule schedule;

  g_assert_cmpint (pto_schedule_parse (&schedule, text, "schedule", &report), ==,
                   PTO_STATUS_INVALID_ARGS);
  g_assert_nonnull (strstr (report.message, "xxxx...\": wanted"));
  g_assert_cmpuint (strlen (report.message), <, 400);
}

/* Whatever stands there: read, or refused in one line. */
static void
test_noise (void)
{
  static const char letters[] = "0123:-,afterlsdom=1:2-after-1:3";
  guint n_read = 0;

  for (guint i = 0; i < 200000; i++)
    {
      struct pto_report report = { 0 };
      struct pto_schedule schedule;
      char text[24];
      int n = g_test_rand_int_range (0, (int) sizeof text);

      for (int c = 0; c < n; c++)
        text[c] = letters[g_test_rand_int_range (0, (int) sizeof letters - 1)];
      text[n] = '\0';
      if (pto_schedule_parse (&schedule, text, "schedule", &report) == PTO_OK)
        n_read++;
      else
        g_assert_nonnull (strstr (report.message, "schedule: "));
      pto_schedule_clear (&schedule);
    }
  g_test_message ("%u were schedules", n_read);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/schedule/delays", test_delays);
  g_test_add_func ("/pto/schedule/many", test_many);
  g_test_add_func ("/pto/schedule/words", test_words);
  g_test_add_func ("/pto/schedule/garbled", test_garbled);
  g_test_add_func ("/pto/schedule/long", test_long);
  g_test_add_func ("/pto/schedule/noise", test_noise);
  return g_test_run ();
}
