/* test-check-bytes.c: is it found that no kernel has written a byte?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "check-test.h"

#include <string.h>

/* Half of a new tensor is written; the other half is read, updated, or written and read then. */
static int
leave_half (PTO2Runtime *rt, void *data)
{
  const int how = *(const int *) data;
  const uint64_t n = 64;
  Tensor x = pto2_rt_make_tensor (rt, &n, 1, PTO_DTYPE_UINT8);

  SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_WRITE, 0, 0, how == 4 ? 64 : 32)));
  if (how == 3)
    SUBMIT (rt, TOUCH_1, make_inout_param (x), S (DO (DO_WRITE, 0, 32, 32)));
  if (how == 1)
    SUBMIT (rt, TOUCH_1, make_inout_param (x), S (DO (DO_READ, 0, 40, 4)),
            S (DO (DO_WRITE, 0, 40, 4)));
  else if (how == 2)
    SUBMIT (rt, TOUCH_1, make_inout_param (x), S (DO (DO_WRITE, 0, 40, 4)),
            S (DO (DO_READ, 0, 0, 32)), S (DO (DO_READ, 0, 40, 4)));
  else
    SUBMIT (rt, TOUCH_1, make_input_param (x), S (DO (DO_READ, 0, 0, 64)));
  return 0;
}

#define VOID(bytes, element, type)                                                               \
  "task 1 of ring 0 (one), submitted, read bytes " bytes " of its argument 0 (" type             \
  ", uint8, from element " element "), which no task has written: task 0 of ring 0 (one), "      \
  "submitted, has it as bytes " bytes " of its argument 0 (OUTPUT, uint8, from element " element \
  "): write all of it there, or read only what is written"

static void
test_void (enum pto_backend on)
{
  static const int reads = 0, updates = 1, writes = 2, completes = 3, is_whole = 4;
  static const char *const windows[] = { "", "task-window=16 heap=16K" };

  check_backend = on;
  for (guint w = 0; w < G_N_ELEMENTS (windows); w++)
    {
      check_settings = windows[w];
      fails (leave_half, (void *) &reads, VOID ("32 to 63", "32", "INPUT"));
      fails (leave_half, (void *) &updates, VOID ("40 to 43", "40", "INOUT"));
      passes (leave_half, (void *) &writes);
      passes (leave_half, (void *) &completes);
      passes (leave_half, (void *) &is_whole);
    }
  check_settings = NULL;
}

/* Kernels write to a new tensor, and tell nothing of it, or not of all. */
struct unseen
{
  int how;
  DataType dtype;
};

static int
write_unseen (PTO2Runtime *rt, void *data)
{
  const struct unseen *unseen = data;
  const uint64_t n = 64 / pto_dtype_size (unseen->dtype);
  Tensor x = pto2_rt_make_tensor (rt, &n, 1, unseen->dtype);
  PTOParam blocks[] = { make_output_param (x), S (DO (DO_ALL, 0, 0, 0)),
                        S (DO_BY_BLOCK (DO_LIBRARY, 0, 16)), S (0) };

  switch (unseen->how)
    {
    case 0: /* all of it */
      SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_ALL, 0, 0, 0)),
              S (DO (DO_LIBRARY, 0, 0, 64)), S (DO (DO_READ, 0, 0, 64)));
      break;
    case 1:
      SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_ALL, 0, 0, 0)),
              S (DO (DO_THREAD, 0, 0, 64)), S (DO (DO_READ, 0, 3, 60)));
      break;
    case 2:
      pto2_rt_submit_block_task (rt, TOUCH_1, AIV, blocks, 4, 4);
      break;
    case 3: /* by two tasks */
      SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_WRITE, 0, 0, 30)));
      SUBMIT (rt, TOUCH_1, make_inout_param (x), S (DO (DO_THREAD, 0, 30, 34)));
      break;
    case 4: /* in a scope inside of that of the tensor */
      PTO2_SCOPE (rt)
      SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_LIBRARY, 0, 0, 64)),
              S (DO (DO_READ, 0, 0, 64)));
      break;
    case 5: /* half of it */
      SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_LIBRARY, 0, 0, 32)));
      break;
    case 6: /* what a kernel tells of says nothing of the bytes beside it */
      SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_WRITE, 0, 0, 30)));
      break;
    case 7: /* read first */
      SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_READ, 0, 32, 32)),
              S (DO (DO_THREAD, 0, 0, 64)));
      break;
    case 8: /* written by parts of the kernel, of which the first has told of the other bytes */
      SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_WRITE, 0, 0, 30)),
              S (DO (DO_ATOMIC, 0, 0, 4)), S (DO (DO_READ, 0, 30, 2)),
              S (DO (DO_WRITE, 0, 30, 34)));
      break;
    default: /* all is said */
      SUBMIT (rt, TOUCH_1, make_output_param (x), S (DO (DO_ALL, 0, 0, 0)),
              S (DO (DO_LIBRARY, 0, 0, 32)));
      SUBMIT (rt, TOUCH_1, make_inout_param (x), S (DO (DO_WRITE, 0, 32, 32)));
      break;
    }
  SUBMIT (rt, TOUCH_1, make_input_param (x), S (DO (DO_READ, 0, 0, 64)));
  return 0;
}

static void
test_unseen (enum pto_backend on)
{
  static const DataType dtypes[]
      = { PTO_DTYPE_UINT8, PTO_DTYPE_INT16, PTO_DTYPE_FLOAT32, PTO_DTYPE_INT64 };

  check_backend = on;
  for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (int how = 0; how < 5; how++)
      passes (write_unseen, &(struct unseen){ how, dtypes[d] });
  fails (write_unseen, &(struct unseen){ 5, PTO_DTYPE_UINT8 }, VOID ("32 to 63", "32", "INPUT"));
  fails (write_unseen, &(struct unseen){ 6, PTO_DTYPE_UINT8 }, VOID ("30 to 63", "30", "INPUT"));
  fails (write_unseen, &(struct unseen){ 7, PTO_DTYPE_UINT8 },
         "task 0 of ring 0 (one), submitted, read bytes 32 to 63 of its argument 0 (OUTPUT, uint8, "
         "from element 32) before it had written there: give it as INOUT, or write it first");
  fails (write_unseen, &(struct unseen){ 8, PTO_DTYPE_UINT8 },
         "task 0 of ring 0 (one), submitted, read bytes 30 to 31 of its argument 0 (OUTPUT, uint8, "
         "from element 30) before it had written there: give it as INOUT, or write it first");
  fails (write_unseen, &(struct unseen){ 9, PTO_DTYPE_UINT8 },
         "task 0 of ring 0 (one), submitted, has not written bytes 32 to 63 of its argument 0 "
         "(OUTPUT, uint8, from element 32), though its kernel writes all (pto_writes_all())");
}

/* Blocks have bytes of the same word of a new tensor. They meet, so that one of them
 * reads afterwards what another one has written, or what no block has. */
struct shared_word
{
  DataType dtype;
  uint64_t what[5];
  const char *read; /* what is read too early; NULL: nothing */
};

static int
share_word (PTO2Runtime *rt, void *data)
{
  const struct shared_word *word = data;
  const uint64_t n = 64 / pto_dtype_size (word->dtype);
  PTOParam params[7] = { make_output_param (pto2_rt_make_tensor (rt, &n, 1, word->dtype)) };
  int32_t n_params = 1;

  for (uint32_t i = 0; i < G_N_ELEMENTS (word->what) && word->what[i] != 0; i++)
    params[n_params++] = S (word->what[i]);
  params[n_params++] = S (0);
  pto2_rt_submit_sync_task (rt, TOUCH_1, AIV, params, n_params, 2);
  return 0;
}

static void
test_shared_word (enum pto_backend on)
{
#define MEET_HERE DO (DO_SYNC, 0, 0, 0)
#define FIRST(what) DO_ONLY (0, what)
#define SECOND(what) DO_ONLY (1, what)
  static const struct shared_word words[] = {
    { PTO_DTYPE_UINT8,
      { FIRST (DO (DO_WRITE, 0, 4, 1)), MEET_HERE, SECOND (DO (DO_READ, 0, 5, 1)) },
      "byte 5 of its argument 0 (OUTPUT, uint8, from element 5)" },
    { PTO_DTYPE_INT16,
      { FIRST (DO (DO_WRITE, 0, 0, 2)), SECOND (DO (DO_WRITE, 0, 4, 2)), MEET_HERE,
        SECOND (DO (DO_READ, 0, 0, 4)) },
      "bytes 2 to 3 of its argument 0 (OUTPUT, int16, from element 1)" },
    /* The neighbour's bytes, and its own, which it writes later. */
    { PTO_DTYPE_UINT8,
      { FIRST (DO (DO_WRITE, 0, 0, 1)), MEET_HERE, SECOND (DO (DO_READ, 0, 0, 2)),
        SECOND (DO (DO_WRITE, 0, 1, 1)) },
      "byte 1 of its argument 0 (OUTPUT, uint8, from element 1)" },
    { PTO_DTYPE_UINT8, { DO_BY_BLOCK (DO_WRITE, 0, 2), MEET_HERE, DO (DO_READ, 0, 0, 4) }, NULL },
    /* Stores that are not seen: of the neighbour, and of the kernel itself before it overwrites. */
    { PTO_DTYPE_UINT8,
      { FIRST (DO (DO_LIBRARY, 0, 0, 16)), MEET_HERE, SECOND (DO (DO_READ, 0, 0, 16)) },
      NULL },
    { PTO_DTYPE_INT16,
      { FIRST (DO (DO_WRITE, 0, 0, 2)), MEET_HERE, SECOND (DO (DO_LIBRARY, 0, 2, 16)),
        SECOND (DO (DO_READ, 0, 0, 18)), SECOND (DO (DO_WRITE, 0, 2, 16)) },
      NULL },
  };

  check_backend = on;
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    {
      g_autofree char *expected
          = g_strdup_printf ("task 0 of ring 0 (one), submitted, read %s before it had written "
                             "there: give it as INOUT, or write it first",
                             words[i].read);

      if (words[i].read == NULL)
        passes (share_word, (void *) &words[i]);
      else
        fails (share_word, (void *) &words[i], expected);
    }
}

/* A kernel that says that it writes all: of a tile, and by blocks. */
static int
write_all (PTO2Runtime *rt, void *data)
{
  const uint64_t less = *(const int *) data;
  PTOParam params[] = { make_output_existing_param (part (0, 64)), S (DO (DO_ALL, 0, 0, 0)),
                        S (DO_BY_BLOCK (DO_WRITE, 0, 16 - less)), S (0) };

  SUBMIT (rt, TOUCH_1, make_output_existing_param (tile (0, 0, 2, 4)), S (DO (DO_ALL, 0, 0, 0)),
          S (DO (DO_WRITE, 0, 0, 4)), S (DO (DO_WRITE, 0, SIDE, 4 - less)));
  pto2_rt_submit_block_task (rt, TOUCH_1, AIV, params, 4, 4);
  return 0;
}

static void
test_all (enum pto_backend on)
{
  static const int nothing = 0, something = 1;

  check_backend = on;
  passes (write_all, (void *) &nothing);
  fails (write_all, (void *) &something,
         "task 0 of ring 0 (one), submitted, has not written byte 35 of its argument 0 "
         "(OUTPUT_EXISTING, uint8), though its kernel writes all (pto_writes_all())\n"
         "task 1 of ring 0 (one), submitted, has not written bytes 60 to 63 of its argument 0 "
         "(OUTPUT_EXISTING, uint8, from element 60), though its kernel writes all "
         "(pto_writes_all())");
}

/* A kernel that may write without saying so. Memory of the program is not filled. */
static int
hide (PTO2Runtime *rt, void *data)
{
  const int how = *(const int *) data;
  Tensor x = part (0, 64);

  switch (how)
    {
    case 0: /* all of it, again and again */
      for (int i = 0; i < 2; i++)
        SUBMIT (rt, HIDES, make_output_existing_param (x), S (DO (DO_ALL, 0, 0, 0)),
                S (DO (DO_LIBRARY, 0, 0, 64)), S (DO (DO_READ, 0, 0, 64)));
      break;
    case 1:
      SUBMIT (rt, HIDES, make_output_existing_param (x), S (DO (DO_THREAD, 0, 8, 56)),
              S (DO (DO_READ, 0, 3, 60)));
      break;
    case 2: /* what other lies are is found as ever */
      SUBMIT (rt, HIDES, make_input_param (x), S (DO (DO_WRITE, 0, 4, 4)));
      break;
    default: /* another kernel, which hides nothing */
      SUBMIT (rt, TOUCH_1, make_output_existing_param (x), S (DO (DO_ALL, 0, 0, 0)),
              S (DO (DO_READ, 0, 0, 4)), S (DO (DO_WRITE, 0, 0, 60)));
      break;
    }
  return 0;
}

static void
test_hidden (enum pto_backend on)
{
  static const int library = 0, thread = 1, input = 2, tells = 3;

  check_backend = on;
  passes (hide, (void *) &library);
  passes (hide, (void *) &thread);
  fails (hide, (void *) &input,
         "task 0 of ring 0 (hides), submitted, wrote to bytes 4 to 7 of its argument 0 (INPUT, "
         "uint8, from element 4): give it as INOUT, or as OUTPUT_EXISTING if it is not read");
  fails (hide, (void *) &tells,
         "task 0 of ring 0 (one), submitted, read bytes 0 to 3 of its argument 0 "
         "(OUTPUT_EXISTING, uint8, from element 0) before it had written there: give it as INOUT, "
         "or write it first\n"
         "task 0 of ring 0 (one), submitted, has not written bytes 60 to 63 of its argument 0 "
         "(OUTPUT_EXISTING, uint8, from element 60), though its kernel writes all "
         "(pto_writes_all())");
}

#define DOTS 4u

struct leaver
{
  DataType dtype;
  bool stains;
};

/* The tensor that the runtime makes for the first task lies where that of the run before did. */
static int
leave_out (PTO2Runtime *rt, void *data)
{
  const struct leaver *leaver = data;
  uint64_t n = MADE / pto_dtype_size (leaver->dtype);
  Tensor made;
  PTOParam params[1];

  pto2_rt_init_tensor_pool (rt);
  made = make_tensor (&n, 1, leaver->dtype);
  params[0] = make_output_param (made);
  if (leaver->stains)
    pto2_rt_submit_task (rt, STAIN, AIV, params, 1);
  else
    pto2_rt_submit_block_task (rt, DOT, AIV, params, 1, DOTS);
  SUBMIT (rt, SHOW, make_input_param (made), make_output_existing_param (part (0, MADE)));
  SUBMIT (rt, PLAIN, make_output_existing_param (part (MADE, MADE)));
  return 0;
}

/* Memory of the runtime is filled once a task, in checked runs only; that of the program never. */
static void
test_unwritten (enum pto_backend on)
{
  struct pto_chip *chip = sim_chip (on, NULL);
  struct pto_chip_arg args[1] = { { .tensor = bytes_of (memory, sizeof memory) } };

  args[0].word = args[0].tensor.buffer.addr;
  for (uint32_t dtype = 0; dtype < PTO_DTYPE_COUNT; dtype++)
    for (guint way = 0; way < 4; way++)
      {
        bool checks = way % 2 == 1;
        struct leaver leaver = { (DataType) dtype, true };
        struct pto_plan *graph = way >= 2 ? pto_plan_new () : NULL;
        struct pto_run_config config = { .args = args, .n_args = 1, .capture = graph };
        struct pto_report report = { 0 };
        uint8_t left = !checks ? 0x11 : pto_dtype_is_float (leaver.dtype) ? 0xff : 0xa5;

        sim_run (chip, &program, leave_out, &leaver, NULL);
        leaver.stains = false;
        if (graph != NULL)
          g_assert_cmpint (
              pto_chip_run (chip, &program, &config, leave_out, &leaver, NULL, &report), ==,
              PTO_OK);
        memset (memory, 0x33, sizeof memory);
        config.capture = NULL;
        config.checks = checks;
        g_assert_cmpint (pto_chip_run (chip, &program, &config, graph != NULL ? launch : leave_out,
                                       graph != NULL ? (void *) graph : &leaver, NULL, &report),
                         ==, PTO_OK);
        for (guint i = 0; i < MADE; i++)
          g_assert_cmphex (memory[i], ==, i < DOTS ? 0x22 : left);
        for (guint i = 0; i < MADE; i++)
          g_assert_cmphex (memory[MADE + i], ==, i == 0 ? 5 : 0x33);
        if (graph != NULL)
          pto_plan_free (graph);
      }
  pto_chip_free (chip);
}

void
check_add_bytes_tests (void)
{
  sim_add ("check/never-written", test_void);
  sim_add ("check/unseen", test_unseen);
  sim_add ("check/writes-all", test_all);
  sim_add ("check/hidden-stores", test_hidden);
  sim_add ("check/shared-word", test_shared_word);
  sim_add ("check/unwritten", test_unwritten);
}
