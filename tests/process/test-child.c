/* test-child.c: how long is a child waited for, and how soon does it live again?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The carrier's view of one child that is nobody: its clock and its deaths are the test's.
 */
#include "../../pto/process/child.h"
#include "../../pto/process/mailbox.h"

#include <glib.h>
#include <string.h>

#define NS UINT64_C (1000000)

static alignas (64) uint8_t mailbox[sizeof (struct pto_mailbox)];
static guint n_killed;

static void
note_kill (struct pto_child *child, const char *why)
{
  n_killed++;
}

static void
change (struct pto_child *child)
{
}

static const struct pto_child_ops ops = { .kill = note_kill, .changed = change };

/* Has started, and has nothing to do. */
static void
make_child (struct pto_child *child, uint32_t level)
{
  memset (mailbox, 0, sizeof mailbox);
  *child = (struct pto_child){ .ops = &ops, .level = level, .restart = true };
  pto_mailbox_link (&child->link, (struct pto_mailbox *) (void *) mailbox);
  pto_child_init (child);
  pto_child_started (child);
  n_killed = 0;
}

/* Who has children of its own gives each of them its time, so that it can name the one to blame:
 * once more for each level. A task has the time that was asked for. */
static void
test_limits (void)
{
  static const struct pto_child_limits limits
      = { .task_ns = 7 * NS, .start_ns = 100 * NS, .close_ns = 30 * NS, .stop_ns = PTO_NEVER };
  static const struct
  {
    uint32_t level;
    enum pto_request request;
    bool closing;
    uint64_t limit;
  } cases[] = {
    { 0, PTO_REQUEST_REGISTER, false, 100 * NS }, { 2, PTO_REQUEST_REGISTER, false, 100 * NS },
    { 3, PTO_REQUEST_REGISTER, false, 200 * NS }, { 4, PTO_REQUEST_REGISTER, false, 300 * NS },
    { 2, PTO_REQUEST_CLOSE, true, 30 * NS },      { 3, PTO_REQUEST_CLOSE, true, 60 * NS },
    { 3, PTO_REQUEST_REGISTER, true, 60 * NS },   { 2, PTO_REQUEST_TASK, false, 7 * NS },
    { 3, PTO_REQUEST_TASK, false, 7 * NS },       { 3, PTO_REQUEST_TASK, true, 60 * NS },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      struct pto_child child;

      make_child (&child, cases[i].level);
      pto_child_set_life (&child, PTO_LIFE_BUSY);
      child.request = cases[i].request;
      child.since = 5 * NS;
      pto_child_look_after (&child, &limits, cases[i].closing, 5 * NS + cases[i].limit, NS);
      g_assert_cmpuint (n_killed, ==, 0);
      pto_child_look_after (&child, &limits, cases[i].closing, 6 * NS + cases[i].limit, NS);
      g_assert_cmpuint (n_killed, ==, 1);
      g_assert_cmpint (pto_child_life (&child), ==, PTO_LIFE_KILLED);
    }
}

/* One that dies by itself, without having done anything, waits longer each time; one that was not
 * wanted any more is back at once, however often. */
static void
test_back_off (void)
{
  struct pto_child child;
  uint64_t last = 0;

  make_child (&child, 2);
  for (guint i = 0; i < 12; i++)
    {
      uint64_t now = 1000 * NS + i;

      child.why = PTO_WHY_UNWANTED;
      pto_child_bury (&child, now, false, false, false);
      g_assert_cmpuint (child.deaths, ==, 0);
      g_assert_true (pto_child_is_due (&child, now));
    }
  for (guint i = 0; i < 12; i++)
    {
      uint64_t now = 2000 * NS;

      child.why = PTO_WHY_FAULT;
      child.begun_at = now;
      pto_child_bury (&child, now, false, false, false);
      g_assert_cmpint (pto_child_is_due (&child, now), ==, i == 0);
      g_assert_cmpuint (child.begin_at, >=, last);
      g_assert_cmpuint (child.begin_at, <=, now + 1000 * NS);
      last = child.begin_at;
    }
  /* It got on, however badly. */
  pto_child_bury (&child, 3000 * NS, false, false, true);
  g_assert_true (pto_child_is_due (&child, 3000 * NS));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pto/child/limits", test_limits);
  g_test_add_func ("/pto/child/back-off", test_back_off);
  return g_test_run ();
}
