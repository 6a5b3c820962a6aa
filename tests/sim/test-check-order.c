/* test-check-order.c: are two tasks in no order found?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-test.h"

#include <string.h>

static int
hide (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_no_dep_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));
  SUBMIT (rt, TOUCH_1, make_input_param (part (63, 64)), S (DO (DO_READ, 0, 0, 64)));
  return 0;
}

static int
hide_but_say (PTO2Runtime *rt, void *data)
{
  PTO2TaskId task
      = SUBMIT (rt, TOUCH_1, make_no_dep_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));

  AFTER (rt, TOUCH_1, task, make_input_param (part (63, 64)), S (DO (DO_READ, 0, 0, 64)));
  return 0;
}

static void
test_pair (enum pto_backend on)
{
  static const char *const windows[] = { "", "task-window=4", "clusters=1 aicpu-threads=2" };

  check_backend = on;
  for (guint i = 0; i < G_N_ELEMENTS (windows); i++)
    {
      check_settings = windows[i];
      fails (hide, NULL,
             "task 0 of ring 0 (one), submitted, and task 1 of ring 0 (one), submitted, are in no "
             "order and touch the same bytes: the first writes byte 63 of its argument 0 (NO_DEP, "
             "uint8, from element 63), the second reads byte 0 of its argument 0 (INPUT, uint8, "
             "from element 0): give argument 0 of task 0 of ring 0 as INOUT (OUTPUT_EXISTING if it "
             "is not read)");
      fails (
          hide_long_ago, NULL,
          "task 0 of ring 1 (one), submitted, and task 101 of ring 1 (one), submitted, are in no "
          "order and touch the same bytes: the first writes byte 63 of its argument 0 "
          "(OUTPUT_EXISTING, uint8, from element 63), the second reads byte 3 of its argument 0 "
          "(NO_DEP, uint8, from element 3): give argument 0 of task 101 of ring 1 as INPUT");
      passes (hide_but_say, NULL);
      passes (follow_long_ago, NULL);
    }
  check_settings = NULL;
}

/* Both have the same number. hand: the second is added by hand. */
static int
hide_in_two_rings (PTO2Runtime *rt, void *data)
{
  bool hand = *(bool *) data;

  SUBMIT (rt, TOUCH_1, make_no_dep_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));
  if (hand)
    PTO2_MANUAL_SCOPE (rt)
  SUBMIT (rt, TOUCH_1, make_input_param (part (63, 64)), S (DO (DO_READ, 0, 0, 64)));
  else PTO2_SCOPE (rt)
      SUBMIT (rt, TOUCH_1, make_no_dep_param (part (63, 64)), S (DO (DO_READ, 0, 0, 64)));
  return 0;
}

static void
test_two_rings (enum pto_backend on)
{
  bool is_by_hand = true;
  bool is_looked_up = false;

  check_backend = on;
  fails_saying (hide_in_two_rings, &is_looked_up,
                "give argument 0 of task 0 of ring 0 as INOUT (OUTPUT_EXISTING if it is not read), "
                "and give argument 0 of task 0 of ring 1 as INPUT");
  fails_saying (hide_in_two_rings, &is_by_hand,
                "name task 0 of ring 0 among those that task 0 of ring 1 comes after");
}

static int
by_hand (PTO2Runtime *rt, void *data)
{
  bool says = *(bool *) data;

  PTO2_MANUAL_SCOPE (rt)
  {
    PTO2TaskId task = SUBMIT (rt, TOUCH_1, make_output_existing_param (part (0, 8)),
                              S (DO (DO_WRITE, 0, 0, 8)));

    if (says)
      AFTER (rt, TOUCH_1, task, make_inout_param (part (4, 8)), S (DO (DO_WRITE, 0, 0, 8)));
    else
      SUBMIT (rt, TOUCH_1, make_inout_param (part (4, 8)), S (DO (DO_WRITE, 0, 0, 8)));
  }
  return 0;
}

static void
test_manual (enum pto_backend on)
{
  bool says = true;

  check_backend = on;
  passes (by_hand, &says);
  says = false;
  fails (
      by_hand, &says,
      "task 0 of ring 1 (one), submitted, and task 1 of ring 1 (one), submitted, are in no order "
      "and touch the same bytes: the first writes bytes 4 to 7 of its argument 0 "
      "(OUTPUT_EXISTING, uint8, from element 4), the second writes bytes 0 to 3 of its argument "
      "0 (INOUT, uint8, from element 0): name task 0 of ring 1 among those that task 1 of ring 1 "
      "comes after");
}

static int
read_then_write (PTO2Runtime *rt, void *data)
{
  SUBMIT (rt, TOUCH_1, make_input_param (tile (0, 0, 4, 4)), S (DO (DO_READ, 0, 0, 4)),
          S (DO (DO_READ, 0, SIDE, 4)));
  SUBMIT (rt, TOUCH_1, make_output_existing_param (tile (1, 0, 1, 4)), S (DO (DO_SET, 0, 0, 4)));
  return 0;
}

static void
test_hazards (enum pto_backend on)
{
  check_backend = on;
  passes (read_then_write, NULL);
  check_settings = "hazards=raw,waw";
  fails (
      read_then_write, NULL,
      "task 0 of ring 0 (one), submitted, and task 1 of ring 0 (one), submitted, are in no order "
      "and touch the same bytes: the first reads bytes 32 to 35 of its argument 0 (INPUT, uint8), "
      "the second writes bytes 0 to 3 of its argument 0 (OUTPUT_EXISTING, uint8, from element "
      "0): set hazards to raw,waw,war, or name task 0 of ring 0 among those that task 1 of ring 0 "
      "comes after");
  check_settings = NULL;
}

/* The orchestration waits for the first one. */
static int
ask_between (PTO2Runtime *rt, void *data)
{
  const uint64_t at[1] = { 0 };
  Tensor flag = part (512, 1);
  uint8_t value;

  SUBMIT (rt, TOUCH_2, make_no_dep_param (part (0, 64)), make_output_existing_param (flag),
          S (DO (DO_WRITE, 0, 0, 64)), S (DO (DO_WRITE, 1, 0, 1)));
  if (*(bool *) data)
    pto2_rt_get_element (rt, &flag, at, &value);
  SUBMIT (rt, TOUCH_1, make_no_dep_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));
  return 0;
}

static void
test_waits (enum pto_backend on)
{
  bool asks = true;
  struct pto_chip *chip;
  struct pto_report report = { 0 };

  check_backend = on;
  passes (ask_between, &asks);
  asks = false;
  chip = chip_of (on, NULL);
  g_assert_cmpint (pto_chip_run (chip, &program, NULL, ask_between, &asks, NULL, &report), ==,
                   PTO_STATUS_ACCESS);
  sim_assert_says (
      &report, PTO_STATUS_ACCESS, "are in no order",
      "give argument 0 of task 0 of ring 0 as INOUT (OUTPUT_EXISTING if it is not read), and give "
      "argument 0 of task 1 of ring 0 as INOUT",
      NULL);
  pto_chip_free (chip);
}

/* Task 0 writes, and says nothing of it; then the element is read, written, or a condition. */
enum
{
  ELEMENT_READ,
  ELEMENT_WRITTEN,
  ELEMENT_DECIDES,
  ELEMENT_OVERWRITTEN
};

struct element
{
  int how;
  bool says;
};

static int
use_element (PTO2Runtime *rt, void *data)
{
  const struct element *element = data;
  const uint64_t at[1] = { 5 };
  Tensor x = part (0, 8);
  uint8_t value = 1;
  PTOParam params[] = { make_inout_param (part (100, 8)),
                        S (element->how == ELEMENT_OVERWRITTEN ? DO (DO_WRITE, 0, 5 - 100, 1)
                                                               : DO (DO_WRITE, 0, 0, 8)),
                        S (0) };

  SUBMIT (rt, TOUCH_1, element->says ? make_inout_param (x) : make_no_dep_param (x),
          S (DO (DO_WRITE, 0, 0, 8)));
  if (element->how == ELEMENT_READ)
    pto2_rt_get_element (rt, &x, at, &value);
  else if (element->how == ELEMENT_WRITTEN)
    pto2_rt_set_element (rt, &x, at, &value);
  else
    pto2_rt_submit_task_if (rt, TOUCH_1, AIV, params, 3, &x, at);
  /* What comes later comes after what the orchestration has done. */
  if (element->says && element->how < ELEMENT_DECIDES)
    SUBMIT (rt, TOUCH_1, make_no_dep_param (part (5, 1)), S (DO (DO_WRITE, 0, 0, 1)));
  return 0;
}

static void
test_element (enum pto_backend on)
{
  static const char *const does[] = {
    "reads byte 0 of its argument 0 (", "writes byte 0 of its argument 0 (",
    "reads byte 0 of its condition (uint8, from element 0): give argument 0 of task 0 of ring 0 "
    "as"
  };

  check_backend = on;
  for (int how = ELEMENT_READ; how <= ELEMENT_DECIDES; how++)
    {
      struct element element = { how, true };
      g_autofree char *words = g_strdup_printf (
          "are in no order and touch the same bytes: the first writes byte 5 of its argument 0 "
          "(NO_DEP, uint8, from element 5), the second %s",
          does[how]);

      passes (use_element, &element);
      element.says = false;
      fails_saying (use_element, &element, words);
    }
  fails (use_element, &(struct element){ ELEMENT_OVERWRITTEN, true },
         "task 1 of ring 0 (one), submitted, wrote to byte 0 of its condition (uint8, from element "
         "0): give it as an argument as well, as INOUT");
}

/* A task reads bytes that others update in turns, and does not declare it. */
static int
look_between (PTO2Runtime *rt, void *data)
{
  for (int i = 0; i < 2; i++)
    SUBMIT (rt, TOUCH_1, make_commutative_param (part (0, 64)), S (DO (DO_WRITE, 0, 0, 64)));
  SUBMIT (rt, TOUCH_1, make_no_dep_param (part (0, 64)), S (DO (DO_READ, 0, 9, 1)));
  return 0;
}

static void
test_turns (enum pto_backend on)
{
  struct pto_chip *chip = chip_of (on, NULL);
  struct pto_report report = { 0 };

  pto_chip_run (chip, &program, NULL, look_between, NULL, NULL, &report);
  sim_assert_says (&report, PTO_STATUS_ACCESS, "task 1 of ring 0 (one), submitted at",
                   "\ntask 0 of ring 0 (one), submitted at",
                   "the second reads byte 9 of its argument 0 (NO_DEP", NULL);
  g_assert_cmpuint (strlen (report.message), <, 1200);
  pto_chip_free (chip);
}

/* Task 0 looks, or writes, and says nothing of it; one update comes after it, the other does not.
 */
static int
hide_behind_turns (PTO2Runtime *rt, void *data)
{
  const int how = *(const int *) data;
  const uint64_t what = how == 1 ? DO (DO_READ, 0, 0, 8) : DO (DO_WRITE, 0, 0, 8);
  const uint64_t update = how == 2 ? DO (DO_ATOMIC, 0, 0, 0) : DO (DO_WRITE, 0, 0, 8);
  Tensor x = part (0, 8), y = part (100, 8);

  SUBMIT (rt, TOUCH_2, make_no_dep_param (x), make_output_existing_param (y), S (what),
          S (DO (DO_WRITE, 1, 0, 8)));
  if (how == 2)
    SUBMIT (rt, TOUCH_2, make_no_dep_param (x), make_input_param (y), S (update));
  else
    SUBMIT (rt, TOUCH_2, make_commutative_param (x), make_input_param (y), S (update));
  if (how == 3)
    SUBMIT (rt, TOUCH_2, make_commutative_param (x), make_input_param (y), S (update));
  else if (how == 2)
    SUBMIT (rt, TOUCH_1, make_no_dep_param (x), S (update));
  else
    SUBMIT (rt, TOUCH_1, make_commutative_param (x), S (update));
  return 0;
}

#define HIDDEN(does, bytes, type, remedy)                                                          \
  "task 0 of ring 0 (two), submitted, and task 2 of ring 0 (one), submitted, are in no order and " \
  "touch the same bytes: the first " does " bytes 0 to " bytes " of its argument 0 (NO_DEP, "      \
  "uint8, from element 0), the second writes bytes 0 to " bytes " of its argument 0 (" type        \
  ", uint8, from element 0): give argument 0 of task 0 of ring 0 as " remedy
#define INOUT_TEXT "INOUT (OUTPUT_EXISTING if it is not read)"

static void
test_hidden (enum pto_backend on)
{
  static const int reads = 1, adds = 2, follows = 3, writes = 4;

  check_backend = on;
  fails (hide_behind_turns, (void *) &reads, HIDDEN ("reads", "7", "COMMUTATIVE", "INPUT"));
  fails (hide_behind_turns, (void *) &writes, HIDDEN ("writes", "7", "COMMUTATIVE", INOUT_TEXT));
  fails (hide_behind_turns, (void *) &adds,
         HIDDEN ("writes", "3", "NO_DEP",
                 INOUT_TEXT ", and give argument 0 of task 2 of ring 0 as " INOUT_TEXT));
  passes (hide_behind_turns, (void *) &follows);
}

void
check_add_order_tests (void)
{
  sim_add ("check/two-rings", test_two_rings);
  sim_add ("check/pair", test_pair);
  sim_add ("check/manual-scope", test_manual);
  sim_add ("check/hazards-off", test_hazards);
  sim_add ("check/waits", test_waits);
  sim_add ("check/elements", test_element);
  sim_add ("check/turns", test_turns);
  sim_add ("check/hidden", test_hidden);
}
