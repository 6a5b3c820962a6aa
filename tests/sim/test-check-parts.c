/* test-check-parts.c: are kernels of one task found that are in no order?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-test.h"

#include <string.h>

/* The third block is beyond its task's view. */
static int
go_beyond (PTO2Runtime *rt, void *data)
{
  PTOParam params[]
      = { make_output_existing_param (part (0, 32)), S (DO_BY_BLOCK (DO_WRITE, 0, 16)), S (0) };

  pto2_rt_submit_block_task (rt, TOUCH_1, AIV, params, 3, 3);
  return 0;
}

static int
mix (PTO2Runtime *rt, void *data)
{
  PTOParam params[] = { make_inout_param (part (0, 32)), S (DO (DO_READ, 0, 32, 1)), S (0) };

  pto2_rt_submit_mixed_task (rt, CUBE, TOUCH_1, TOUCH_1, params, 3, 1);
  return 0;
}

static int
group (PTO2Runtime *rt, void *data)
{
  static const int32_t both[] = { TOUCH_1, CUBE };
  PTOParam params[] = { make_input_param (part (0, 32)), S (DO (DO_WRITE, 0, 0, 4)), S (0) };

  pto2_rt_submit_group_task (rt, both, 2, params, 3);
  return 0;
}

static void
test_parts (enum pto_backend on)
{
  check_backend = on;
  passes (meet, NULL);
  fails (
      go_beyond, NULL,
      "task 0 of ring 0 (one), submitted, wrote to bytes 32 to 47 of the memory of its argument 0 "
      "(OUTPUT_EXISTING), whose view has only bytes 0 to 31: give the task a view that has them, "
      "or mend the kernel");
  {
    struct pto_chip *chip = chip_of (on, NULL);
    struct pto_report report = { 0 };

    pto_chip_run (chip, &program, NULL, mix, NULL, NULL, &report);
    sim_assert_says (&report, PTO_STATUS_ACCESS, "read byte 32 of the memory of its argument 0",
                     NULL);
    memset (&report, 0, sizeof report);
    pto_chip_run (chip, &program, NULL, group, NULL, NULL, &report);
    sim_assert_says (&report, PTO_STATUS_ACCESS, "wrote to bytes 0 to 3 of its argument 0 (INPUT",
                     NULL);
    pto_chip_free (chip);
  }
}

/* Kernels of one task: how many blocks, at once or not, and what each of them does. */
struct crowd
{
  uint32_t n_blocks;
  bool at_once;
  uint64_t what[8];
  const char *expected; /* NULL: all is well */
};

static int
submit_crowd (PTO2Runtime *rt, void *data)
{
  const struct crowd *crowd = data;
  PTOParam params[10] = { make_inout_param (part (0, 64)) };
  int32_t n = 1;

  for (uint32_t i = 0; i < G_N_ELEMENTS (crowd->what) && crowd->what[i] != 0; i++)
    params[n++] = S (crowd->what[i]);
  params[n++] = S (0);
  if (crowd->at_once)
    pto2_rt_submit_sync_task (rt, TOUCH_1, AIV, params, n, crowd->n_blocks);
  else
    pto2_rt_submit_block_task (rt, TOUCH_1, AIV, params, n, crowd->n_blocks);
  return 0;
}

/* Kernels that wait for each other in loops of their own. */
static int
submit_waiting_crowd (PTO2Runtime *rt, void *data)
{
  const struct crowd *crowd = data;
  PTOParam params[10] = { make_inout_param (part (0, 64)) };
  int32_t n = 1;

  memset (memory, 0, sizeof memory);
  for (uint32_t i = 0; i < G_N_ELEMENTS (crowd->what) && crowd->what[i] != 0; i++)
    params[n++] = S (crowd->what[i]);
  params[n++] = S (0);
  pto2_rt_submit_sync_task (rt, WAIT_1, AIV, params, n, crowd->n_blocks);
  return 0;
}

#define CLASH_OF(kernel)                                                                           \
  "task 0 of ring 0 (" kernel "), submitted, has kernels that are in no order and touch the same " \
  "bytes: block 0 of "
#define CLASH CLASH_OF ("one")
#define OF " of its argument 0 (INOUT, uint8, from element "
#define MEET "let them meet between the two (pto_sync_all(), sync_start)"
#define TOGETHER "let them meet between the two (pto_sync_all())"
#define GIVE_OR ": give each element to one of them, add with an atomic operation, or "
#define GIVE GIVE_OR MEET

static void
test_crowd (enum pto_backend on)
{
  static const struct crowd crowds[] = {
    /* Each has its piece; a piece is one byte too long. */
    { 4, false, { DO_BY_BLOCK (DO_READ, 0, 16), DO_BY_BLOCK (DO_WRITE, 0, 16) }, NULL },
    { 4,
      false,
      { DO_BY_BLOCK (DO_WRITE, 0, 8), DO (DO_WRITE, 0, 8, 1) },
      CLASH "4 writes byte 8" OF "8), block 1 of 4 writes them, and so do others, 3 times in "
            "all" GIVE },
    /* All add to one element; atomically they may. */
    { 8,
      false,
      { DO (DO_READ, 0, 4, 4), DO (DO_WRITE, 0, 4, 4) },
      CLASH "8 writes bytes 4 to 7" OF "4), block 1 of 8 writes them, and so do others, 7 times in "
            "all" GIVE },
    { 8, false, { DO (DO_ATOMIC, 0, 4, 0), DO (DO_ATOMIC, 0, 4, 0) }, NULL },
    { 2,
      false,
      { DO (DO_ATOMIC, 0, 4, 0), DO (DO_READ, 0, 4, 4) },
      CLASH "2 writes bytes 4 to 7" OF "4), block 1 of 2 writes them" GIVE },
    /* What all read, unless one of them writes it. */
    { 4, false, { DO (DO_READ, 0, 0, 64) }, NULL },
    { 2,
      false,
      { DO (DO_READ, 0, 0, 20), DO_BY_BLOCK (DO_WRITE, 0, 16) },
      CLASH "2 writes bytes 0 to 15" OF "0), block 1 of 2 reads them: " MEET "\n" CLASH
            "2 reads bytes 16 to 19" OF "16), block 1 of 2 writes them: " MEET },
    /* With a meeting, without the second one, and before the first one. */
    { 4,
      true,
      { DO_BY_BLOCK (DO_WRITE, 0, 16), DO (DO_SYNC, 0, 0, 0), DO (DO_READ, 0, 0, 64) },
      NULL },
    { 4,
      true,
      { DO_BY_BLOCK (DO_WRITE, 0, 16), DO (DO_SYNC, 0, 0, 0), DO (DO_READ, 0, 0, 64),
        DO (DO_SYNC, 0, 0, 0), DO_BY_BLOCK (DO_WRITE, 0, 16) },
      NULL },
    { 2,
      true,
      { DO_BY_BLOCK (DO_WRITE, 0, 16), DO (DO_SYNC, 0, 0, 0), DO (DO_READ, 0, 0, 17),
        DO_BY_BLOCK (DO_WRITE, 0, 16) },
      CLASH "2 writes bytes 0 to 15" OF "0), block 1 of 2 reads them: " TOGETHER "\n" CLASH
            "2 reads byte 16" OF "16), block 1 of 2 writes them: " TOGETHER },
    { 2,
      true,
      { DO (DO_SYNC, 0, 0, 0), DO_BY_BLOCK (DO_WRITE, 0, 16), DO (DO_READ, 0, 15, 1) },
      CLASH "2 writes byte 15" OF "15), block 1 of 2 reads them: " TOGETHER },
  };

  check_backend = on;
  for (guint i = 0; i < G_N_ELEMENTS (crowds); i++)
    if (crowds[i].expected == NULL)
      passes (submit_crowd, (void *) &crowds[i]);
    else
      fails (submit_crowd, (void *) &crowds[i], crowds[i].expected);
}

/* Block 0 has something for the others; what says so is at byte 60. Whether they come too early or
 * too late to have to wait, it is the same. */
static void
test_waiting (enum pto_backend on)
{
#define WRITE_IT DO_ONLY (0, DO (DO_WRITE, 0, 0, 16))
#define READ_IT DO_ONLY (1, DO (DO_READ, 0, 0, 16))
  static const struct crowd crowds[] = {
    { 2,
      true,
      { WRITE_IT, DO_ONLY (0, DO (DO_RAISE, 0, 60, 0)), DO_ONLY (1, DO (DO_AWAIT, 0, 60, 0)),
        READ_IT },
      NULL },
    { 2,
      true,
      { WRITE_IT, DO_ONLY (0, DO (DO_PUBLISH, 0, 60, 0)),
        DO_ONLY (1, DO (DO_AWAIT_ATOMIC, 0, 60, 0)), READ_IT },
      NULL },
    { 2,
      true,
      { WRITE_IT, DO_ONLY (0, DO (DO_PUBLISH, 0, 60, 0)), DO_ONLY (1, DO (DO_AWAIT, 0, 60, 0)),
        READ_IT },
      NULL },
    /* A barrier of the kernel's own. */
    { 4,
      true,
      { DO_BY_BLOCK (DO_WRITE, 0, 8), DO (DO_ATOMIC, 0, 56, 1), DO (DO_AWAIT_COUNT, 0, 56, 0),
        DO (DO_READ, 0, 0, 32) },
      NULL },
    /* What comes before the wait, or behind what was published, is not in order. */
    { 2,
      true,
      { WRITE_IT, DO_ONLY (0, DO (DO_PUBLISH, 0, 60, 0)), READ_IT,
        DO_ONLY (1, DO (DO_AWAIT_ATOMIC, 0, 60, 0)) },
      CLASH_OF ("wait") "2 writes bytes 0 to 15" OF "0), block 1 of 2 reads them: " TOGETHER },
    { 2,
      true,
      { DO_ONLY (0, DO (DO_PUBLISH, 0, 60, 0)), WRITE_IT,
        DO_ONLY (1, DO (DO_AWAIT_ATOMIC, 0, 60, 0)), READ_IT },
      CLASH_OF ("wait") "2 writes bytes 0 to 15" OF "0), block 1 of 2 reads them: " TOGETHER },
    { 4,
      true,
      { DO_BY_BLOCK (DO_WRITE, 0, 8), DO (DO_ATOMIC, 0, 56, 0),
        DO_ONLY (1, DO (DO_READ, 0, 0, 1)) },
      CLASH_OF ("wait") "4 writes byte 0" OF "0), block 1 of 4 reads them: " TOGETHER },
  };

  check_backend = on;
  for (guint again = 0; again < 5; again++)
    for (guint i = 0; i < G_N_ELEMENTS (crowds); i++)
      if (crowds[i].expected == NULL)
        passes (submit_waiting_crowd, (void *) &crowds[i]);
      else
        fails (submit_waiting_crowd, (void *) &crowds[i], crowds[i].expected);
}

/* The first kernel pushes when memory is written, the second one reads it when it has popped; or
 * one of them is too early. */
enum
{
  IN_TIME,
  PUSHES_EARLY,
  READS_EARLY
};

static int
mix_with_pipe (PTO2Runtime *rt, void *data)
{
  const int how = *(const int *) data;
  const uint64_t write_it = DO_ONLY_SUB (0, DO (DO_WRITE, 0, 0, 16));
  const uint64_t push_it = DO_ONLY_SUB (0, DO (DO_PUSH, 0, 32, 4));
  const uint64_t pop_it = DO_ONLY_SUB (1, DO (DO_POP, 0, 40, 4));
  const uint64_t read_it = DO_ONLY_SUB (1, DO (DO_READ, 0, 0, 16));
  PTOParam params[] = { make_inout_param (part (0, 64)),
                        S (how == PUSHES_EARLY ? push_it : write_it),
                        S (how == PUSHES_EARLY ? write_it : push_it),
                        S (how == READS_EARLY ? read_it : pop_it),
                        S (how == READS_EARLY ? pop_it : read_it),
                        S (0) };

  pto2_rt_submit_mixed_task (rt, PTO2_KERNEL_NONE, TOUCH_1, TOUCH_1, params, 6, 1);
  return 0;
}

/* The same of two tasks in a cluster. */
static int
share_pipe (PTO2Runtime *rt, void *data)
{
  const int how = *(const int *) data;
  const uint64_t write_it = DO (DO_WRITE, 0, 0, 16);
  const uint64_t push_it = DO (DO_PUSH, 0, 32, 4);
  const uint64_t pop_it = DO (DO_POP, 0, 40, 4);
  const uint64_t read_it = DO (DO_READ, 0, 0, 16);
  int32_t cluster = pto2_rt_allocate_cluster (rt);
  PTOParam first[]
      = { make_no_dep_param (part (0, 64)), S (how == PUSHES_EARLY ? push_it : write_it),
          S (how == PUSHES_EARLY ? write_it : push_it), S (0) };
  PTOParam second[] = { make_no_dep_param (part (0, 64)), S (how == READS_EARLY ? read_it : pop_it),
                        S (how == READS_EARLY ? pop_it : read_it), S (0) };

  pto2_rt_submit_task_clustered (rt, TOUCH_1, AIV, first, 4, cluster);
  pto2_rt_submit_task_clustered (rt, CUBE, AIC, second, 4, cluster);
  pto2_rt_free_cluster (rt, cluster);
  return 0;
}

/* The same of two tasks anywhere, one of which waits in a loop. */
static int
share_flag (PTO2Runtime *rt, void *data)
{
  const int how = *(const int *) data;
  const uint64_t write_it = DO (DO_WRITE, 0, 0, 16);
  const uint64_t raise_it = DO (DO_PUBLISH, 0, 32, 0);
  const uint64_t await_it = DO (DO_AWAIT_ATOMIC, 0, 32, 0);
  const uint64_t read_it = DO (DO_READ, 0, 0, 16);

  memset (memory, 0, sizeof memory);
  SUBMIT (rt, TOUCH_1, make_no_dep_param (part (0, 64)),
          S (how == PUSHES_EARLY ? raise_it : write_it),
          S (how == PUSHES_EARLY ? write_it : raise_it));
  SUBMIT (rt, WAIT_1, make_no_dep_param (part (0, 64)), S (how == READS_EARLY ? read_it : await_it),
          S (how == READS_EARLY ? await_it : read_it));
  return 0;
}

static void
test_pipes (enum pto_backend on)
{
  static const int hows[] = { IN_TIME, PUSHES_EARLY, READS_EARLY };

  check_backend = on;
  for (guint again = 0; again < 5; again++)
    for (guint i = 0; i < G_N_ELEMENTS (hows); i++)
      if (hows[i] == IN_TIME)
        {
          passes (mix_with_pipe, (void *) &hows[i]);
          passes (share_pipe, (void *) &hows[i]);
          passes (share_flag, (void *) &hows[i]);
        }
      else
        {
          fails_saying (mix_with_pipe, (void *) &hows[i],
                        "block 0 of 1 (one) reads them: " TOGETHER);
          fails_saying (share_pipe, (void *) &hows[i],
                        "the second reads bytes 0 to 15 of its argument 0 (NO_DEP");
          fails_saying (share_flag, (void *) &hows[i],
                        "the second reads bytes 0 to 15 of its argument 0 (NO_DEP");
        }
}

/* A task has two views that lie next to each other, and waits for another one, which it is in no
 * order with. Both ends in a checked run as well. */
struct exchange
{
  int32_t kernel; /* of the first task */
  int32_t other;
  bool in_cluster;
  uint32_t n_blocks;
  uint64_t what[4];
  uint64_t answer[4]; /* of the other task */
};

static void
submit_part (PTO2Runtime *rt, const struct exchange *exchange, bool is_first, int32_t cluster)
{
  const uint64_t *what = is_first ? exchange->what : exchange->answer;
  int32_t kernel = is_first ? exchange->kernel : exchange->other;
  int32_t type = kernel == WAIT_CUBE ? AIC : AIV;
  PTOParam params[7] = { make_no_dep_param (part (256, 64)) };
  int32_t n = 1;

  if (is_first)
    {
      params[0] = make_inout_param (part (256, 32));
      params[n++] = make_inout_param (part (288, 32));
    }
  for (uint32_t i = 0; i < G_N_ELEMENTS (exchange->what) && what[i] != 0; i++)
    params[n++] = S (what[i]);
  params[n++] = S (0);
  if (exchange->in_cluster)
    pto2_rt_submit_task_clustered (rt, kernel, type, params, n, cluster);
  else if (is_first)
    pto2_rt_submit_sync_task (rt, kernel, type, params, n, exchange->n_blocks);
  else
    pto2_rt_submit_task (rt, kernel, type, params, n);
}

static int
exchange_both (PTO2Runtime *rt, void *data)
{
  const struct exchange *exchange = data;
  int32_t cluster = exchange->in_cluster ? pto2_rt_allocate_cluster (rt) : -1;

  memset (memory, 0, sizeof memory);
  submit_part (rt, exchange, true, cluster);
  submit_part (rt, exchange, false, cluster);
  if (exchange->in_cluster)
    pto2_rt_free_cluster (rt, cluster);
  return 0;
}

static void
test_waiting_neighbours (enum pto_backend on)
{
  static const struct exchange exchanges[] = {
    { WAIT_2, TOUCH_1, false, 1, { DO (DO_AWAIT, 0, 0, 0) }, { DO (DO_RAISE, 0, 0, 0) } },
    { WAIT_2,
      TOUCH_1,
      false,
      1,
      { DO (DO_AWAIT_ATOMIC, 1, 0, 0), DO (DO_READ, 1, 4, 4) },
      { DO (DO_WRITE, 0, 36, 4), DO (DO_PUBLISH, 0, 32, 0) } },
    { WAIT_2,
      TOUCH_1,
      false,
      2,
      { DO_ONLY (0, DO (DO_ATOMIC, 0, 8, 1)), DO (DO_AWAIT_COUNT, 0, 8, 0) },
      { DO (DO_ATOMIC, 0, 8, 1) } },
    { WAIT_2,
      WAIT_1,
      false,
      1,
      { DO (DO_RAISE, 0, 0, 0), DO (DO_AWAIT, 1, 0, 0) },
      { DO (DO_AWAIT, 0, 0, 0), DO (DO_RAISE, 0, 32, 0) } },
    /* The first kernel waits for memory nowhere, but for a task that does. */
    { TOUCH_2,
      WAIT_CUBE,
      true,
      1,
      { DO (DO_RAISE, 0, 0, 0), DO (DO_POP, 1, 0, 4) },
      { DO (DO_AWAIT, 0, 0, 0), DO (DO_PUSH, 0, 8, 4) } },
    { TOUCH_2, WAIT_1, false, 1, { DO (DO_RAISE, 0, 0, 0) }, { DO (DO_AWAIT, 0, 0, 0) } },
  };

  check_backend = on;
  check_settings = "timeout=30000";
  for (guint again = 0; again < 3; again++)
    for (guint i = 0; i < G_N_ELEMENTS (exchanges); i++)
      passes (exchange_both, (void *) &exchanges[i]);
  check_settings = NULL;
}

/* Members have arguments of their own: one of them writes what only the other one was given. */
static int
stray (PTO2Runtime *rt, void *data)
{
  static const int32_t both[] = { TOUCH_1, TOUCH_1 };
  const bool strays = *(const bool *) data;
  PTOParam first[]
      = { make_inout_param (part (0, 16)), S (DO (DO_WRITE, 0, 0, strays ? 17 : 16)), S (0) };
  PTOParam second[] = { make_inout_param (part (16, 16)), S (DO (DO_WRITE, 0, 0, 16)), S (0) };
  PTOParam params[6];
  const int32_t n_params[] = { 3, 3 };

  memcpy (params, first, sizeof first);
  memcpy (params + 3, second, sizeof second);
  pto2_rt_submit_group_members (rt, both, 2, params, n_params, NULL);
  return 0;
}

static void
test_members (enum pto_backend on)
{
  bool strays = false;

  check_backend = on;
  passes (stray, &strays);
  strays = true;
  fails (stray, &strays,
         "task 0 of ring 0 (one), submitted, wrote to byte 16 of the memory of its argument 0 of "
         "member 0 (INOUT), whose view has only bytes 0 to 15: give the task a view that has them, "
         "or mend the kernel\n" CLASH "2 writes byte 0 of its argument 0 of member 1 (INOUT, "
         "uint8, from element 0), block 1 of 2 writes them" GIVE_OR TOGETHER);
}

void
check_add_parts_tests (void)
{
  sim_add ("check/parts", test_parts);
  sim_add ("check/blocks", test_crowd);
  sim_add ("check/members", test_members);
  sim_add ("check/waiting", test_waiting);
  sim_add ("check/pipes", test_pipes);
  sim_add ("check/waiting-neighbours", test_waiting_neighbours);
}
