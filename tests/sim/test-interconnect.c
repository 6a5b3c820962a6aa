/* test-interconnect.c: do kernels that wait for each other get on, and is it told when they do not?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sim-test.h"

#include <stdatomic.h>
#include <string.h>

#define BLOCKS 48u
#define ENTRIES 100u

enum
{
  SYNC,      /* cells of args[0]: its own, a barrier, all of them; args[1] rounds */
  SYNC_CUBE, /* the same on a cube core */
  SPIN,      /* the same with a barrier of its own at args[1], and pto_relax() */
  FEED,      /* AIC: i, 2 i, ... to pipes 0 and 1, and what comes back on 2 and 3 to args[0] */
  WORK,      /* AIV: adds 1 to what comes on pipe 0 or 1, and sends it on 2 or 3 */
  PUSH,      /* args[0] entries to pipe args[1], from args[2] on */
  POP,       /* args[0] entries from pipe args[1] to cells of args[2] */
  POP_CUBE,  /* the same on a cube core */
  NOTHING,   /* on a cube core */
  LINGER,    /* on a cube core */
  CRASH,     /* on a cube core */
  STARE,     /* waits for a cell of args[0] that nobody writes, with pto_relax() if args[1] */
  POP_WIDE,  /* 8 bytes of what has 4 */
  LATE,      /* block 0 comes to a barrier args[0] times pto_relax() later */
};

static int32_t *
data_of (int64_t arg)
{
  const TensorData *tensor = (const TensorData *) (uintptr_t) arg;

  return (int32_t *) (uintptr_t) tensor->buffer.addr + tensor->start_offset;
}

static _Atomic uint32_t wrong;

/* Which of the kernels that meet it is, and how many there are: vector cores alone, or three a
 * block, the cube core first. */
static uint32_t
number (const int64_t *args, uint32_t *n, bool cube)
{
  bool mixed = args[2] != 0;

  *n = get_block_num (args) * (mixed ? 3 : 1);
  return mixed ? get_block_idx (args) * 3 + (cube ? 0 : 1 + get_sub_block_id (args))
               : get_block_idx (args);
}

static void
meet (int64_t *args, bool cube)
{
  int32_t *cells = data_of (args[0]);
  uint32_t n;
  uint32_t own = number (args, &n, cube);

  for (int32_t round = 1; round <= args[1]; round++)
    {
      cells[own] = round;
      pto_sync_all (args);
      for (uint32_t i = 0; i < n; i++)
        if (cells[i] != round)
          atomic_fetch_add (&wrong, 1);
      pto_sync_all (args);
    }
}

static void
kernel_sync (int64_t *args)
{
  meet (args, false);
}

static void
kernel_late (int64_t *args)
{
  for (int64_t i = 0; i < args[0] && get_block_idx (args) == 0; i++)
    pto_relax (args);
  pto_sync_all (args);
}

static void
kernel_sync_cube (int64_t *args)
{
  meet (args, true);
}

static void
kernel_spin (int64_t *args)
{
  _Atomic int32_t *arrived = (_Atomic int32_t *) data_of (args[0]);

  atomic_fetch_add (arrived, 1);
  while (atomic_load (arrived) < (int32_t) get_block_num (args))
    pto_relax (args);
}

static void
kernel_stare (int64_t *args)
{
  _Atomic int32_t *cell = (_Atomic int32_t *) data_of (args[0]);

  while (atomic_load (cell) == 0)
    if (args[1] != 0)
      pto_relax (args);
}

static void
kernel_feed (int64_t *args)
{
  int32_t *out = data_of (args[0]) + get_block_idx (args) * 2 * ENTRIES;

  for (int32_t i = 0; i < (int32_t) ENTRIES; i++)
    {
      int32_t twice = 2 * i;

      TPUSH (args, 0, &i, sizeof i);
      TPUSH (args, 1, &twice, sizeof twice);
      TPOP (args, 2, &out[2 * i], sizeof *out);
      TPOP (args, 3, &out[2 * i + 1], sizeof *out);
    }
}

static void
kernel_work (int64_t *args)
{
  uint32_t sub = get_sub_block_id (args);

  for (uint32_t i = 0; i < ENTRIES; i++)
    {
      int32_t value;

      TPOP (args, sub, &value, sizeof value);
      value++;
      TPUSH (args, 2 + sub, &value, sizeof value);
    }
}

static void
kernel_push (int64_t *args)
{
  for (int64_t i = 0; i < args[0]; i++)
    {
      int32_t value = (int32_t) (args[2] + i);

      TPUSH (args, (uint32_t) args[1], &value, sizeof value);
    }
}

static void
kernel_pop (int64_t *args)
{
  for (int64_t i = 0; i < args[0]; i++)
    TPOP (args, (uint32_t) args[1], &data_of (args[2])[i], sizeof (int32_t));
}

static void
kernel_nothing (int64_t *args)
{
}

/* Until the run is given up. */
static void
kernel_linger (int64_t *args)
{
  for (;;)
    pto_relax (args);
}

static NOT_SANITIZED void
kernel_crash (int64_t *args)
{
  volatile int *volatile nowhere = NULL;

  *nowhere = 1;
}

static void
kernel_pop_wide (int64_t *args)
{
  int64_t wide;

  TPOP (args, (uint32_t) args[1], &wide, sizeof wide);
}

static const struct pto_kernel kernels[] = {
  [SYNC] = { "sync", kernel_sync, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [SYNC_CUBE] = { "sync_cube", kernel_sync_cube, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [SPIN] = { "spin", kernel_spin, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [FEED] = { "feed", kernel_feed, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [WORK] = { "work", kernel_work, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [PUSH] = { "push", kernel_push, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [POP] = { "pop", kernel_pop, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [POP_CUBE] = { "pop_cube", kernel_pop, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [NOTHING] = { "nothing", kernel_nothing, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [LINGER] = { "linger", kernel_linger, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [CRASH] = { "crash", kernel_crash, PTO_CORE_TYPE_AIC, { .base_ns = 1000 } },
  [STARE] = { "stare", kernel_stare, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [POP_WIDE] = { "pop_wide", kernel_pop_wide, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
  [LATE] = { "late", kernel_late, PTO_CORE_TYPE_AIV, { .base_ns = 1000 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static Tensor
cells (int32_t *values, uint64_t n)
{
  return make_tensor_external (values, &n, 1, PTO_DTYPE_INT32);
}

/* --- barriers --- */

struct meeting
{
  int32_t cells[3 * BLOCKS];
  int32_t blocks;
  int32_t rounds;
  bool mixed;
  bool spins;
};

static int
submit_meeting (PTO2Runtime *rt, void *data)
{
  static const int32_t three[3] = { SYNC_CUBE, SYNC, SYNC };
  struct meeting *meeting = data;
  PTOParam params[] = { make_inout_param (cells (meeting->cells, 3 * BLOCKS)),
                        make_signed_param (meeting->rounds), make_scalar_param (meeting->mixed) };
  PTO2Submit submit = pto2_make_submit (meeting->mixed   ? PTO2_KERNEL_NONE
                                        : meeting->spins ? SPIN
                                                         : SYNC,
                                        AIV, params, 3);

  submit.block_dim = meeting->blocks;
  submit.sync_start = 1;
  submit.mixed = meeting->mixed ? three : NULL;
  pto2_rt_submit (rt, &submit);
  return 0;
}

static void
test_meeting (enum pto_backend backend)
{
  static const int32_t blocks[] = { 1, 2, 7, 48 };
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct meeting meeting;

  wrong = 0;
  for (uint32_t round = 0; round < SCALE (100) + 2; round++)
    for (uint32_t b = 0; b < G_N_ELEMENTS (blocks); b++)
      for (uint32_t mixed = 0; mixed < 2; mixed++)
        {
          memset (&meeting, 0, sizeof meeting);
          meeting.mixed = mixed != 0;
          meeting.blocks = mixed != 0 ? (blocks[b] + 1) / 2 : blocks[b];
          meeting.rounds = 3;
          sim_run (chip, &program, submit_meeting, &meeting, NULL);
          for (uint32_t i = 0; i < 3 * BLOCKS; i++)
            g_assert_cmpint (meeting.cells[i], ==,
                             i < (uint32_t) meeting.blocks * (mixed != 0 ? 3 : 1) ? meeting.rounds
                                                                                  : 0);
        }
  g_assert_cmpuint (wrong, ==, 0);
  pto_chip_free (chip);
}

/* A core that waits at a barrier is not busy: 40 us of one block are a wait of the other. */
static int
submit_late (PTO2Runtime *rt, void *data)
{
  PTOParam params[] = { make_scalar_param (*(uint64_t *) data) };

  pto2_rt_submit_sync_task (rt, LATE, AIV, params, 1, 2);
  return 0;
}

struct times
{
  uint64_t in_kernels;
  uint64_t waited;
};

static void
see_times (const struct pto_trace_record *record, void *data)
{
  struct times *times = data;

  if (record->kind == PTO_TRACE_RUN)
    times->in_kernels += record->extra - record->time;
  else
    times->waited += record->extra;
}

static void
test_waits (enum pto_backend backend)
{
  const uint64_t n = 400;

  for (uint64_t pauses = 0; pauses <= n; pauses += n)
    {
      struct pto_chip *chip = sim_chip (backend, NULL);
      struct times times = { 0 };
      struct pto_run_stats stats;
      const struct pto_trace *trace
          = sim_record (chip, &program, submit_late, (void *) &pauses, &stats);

      sim_assert_trace (chip, &stats);
      sim_trace_each (trace, PTO_TRACE_RUN, see_times, &times);
      sim_trace_each (trace, PTO_TRACE_WAIT, see_times, &times);
      g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIC] + stats.waited_ns[PTO_CORE_TYPE_AIC], ==,
                        0);
      if (backend == PTO_BACKEND_DET)
        {
          g_assert_cmpuint (stats.busy_ns[PTO_CORE_TYPE_AIV], ==, 2 * 1000 + pauses * 100);
          g_assert_cmpuint (stats.waited_ns[PTO_CORE_TYPE_AIV], ==, times.waited);
          g_assert_cmpuint (times.in_kernels - times.waited, ==, stats.busy_ns[PTO_CORE_TYPE_AIV]);
          /* But for what one was told to begin later than the other. */
          g_assert_cmpuint (times.waited + 1000, >=, pauses * 100);
          g_assert_cmpuint (times.waited, <=, pauses * 100 + 1000);
        }
      else
        g_assert_cmpuint (times.in_kernels, >=, times.waited);
      pto_chip_free (chip);
    }
}

/* A group: a block each, of cube and vector kernels, up to all cores of the chip. */
static int
submit_group (PTO2Runtime *rt, void *data)
{
  struct meeting *meeting = data;
  PTOParam params[] = { make_inout_param (cells (meeting->cells, 3 * BLOCKS)),
                        make_signed_param (meeting->rounds), make_scalar_param (0) };
  int32_t named[80];

  for (int32_t i = 0; i < meeting->blocks; i++)
    named[i] = i % 3 == 1 ? SYNC_CUBE : SYNC;
  pto2_rt_submit_group_task (rt, named, meeting->blocks, params, 3);
  return 0;
}

static int
submit_nobody (PTO2Runtime *rt, void *data)
{
  PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_NONE, AIV, NULL, 0);

  submit.n_group = *(int32_t *) data;
  pto2_rt_submit (rt, &submit);
  return 0;
}

static void
test_group (enum pto_backend backend)
{
  static const int32_t sizes[] = { 1, 2, 3, 17, 72 };
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct pto_run_stats stats;
  struct meeting meeting;

  wrong = 0;
  for (uint32_t round = 0; round < SCALE (100) + 2; round++)
    for (uint32_t s = 0; s < G_N_ELEMENTS (sizes); s++)
      {
        memset (&meeting, 0, sizeof meeting);
        meeting.blocks = sizes[s];
        meeting.rounds = 3;
        sim_run (chip, &program, submit_group, &meeting, &stats);
        g_assert_cmpuint (stats.tasks, ==, 1);
        for (int32_t i = 0; i < (int32_t) (3 * BLOCKS); i++)
          g_assert_cmpint (meeting.cells[i], ==, i < sizes[s] ? meeting.rounds : 0);
      }
  g_assert_cmpuint (wrong, ==, 0);
  meeting.blocks = 73;
  sim_run_fails (chip, &program, submit_group, &meeting, PTO_STATUS_SYNC_START, "task 0",
                 "this machine has 48: set clusters to more, at least 25", NULL);
  for (int32_t n = 1; n <= 2; n++)
    sim_run_fails (chip, &program, submit_nobody, &n, PTO_STATUS_INVALID_ARGS, "task 0",
                   n == 1 ? "a group of 1 kernels at (nil)" : "a group of 2 kernels at (nil)",
                   NULL);
  meeting.blocks = -4;
  sim_run_fails (chip, &program, submit_group, &meeting, PTO_STATUS_INVALID_ARGS, "task 0",
                 "it has at least one", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* A barrier that the kernels have made themselves. */
static void
test_own_barrier (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);
  struct meeting meeting;

  for (uint32_t round = 0; round < SCALE (100) + 2; round++)
    {
      memset (&meeting, 0, sizeof meeting);
      meeting.blocks = BLOCKS;
      meeting.spins = true;
      sim_run (chip, &program, submit_meeting, &meeting, NULL);
      g_assert_cmpint (meeting.cells[0], ==, BLOCKS);
    }
  pto_chip_free (chip);
}

/* --- pipes --- */

struct stream
{
  int32_t blocks;
  int32_t *out;
};

static int
submit_stream (PTO2Runtime *rt, void *data)
{
  struct stream *stream = data;
  PTOParam param = make_output_param (cells (stream->out, (uint64_t) stream->blocks * 2 * ENTRIES));

  pto2_rt_submit_mixed_task (rt, FEED, WORK, WORK, &param, 1, stream->blocks);
  return 0;
}

static void
test_stream (enum pto_backend backend)
{
  static const int32_t blocks[] = { 1, 24, 200 };
  static const char *const depths[] = { "pipe-depth=1", "pipe-depth=8", "clusters=3" };

  for (uint32_t d = 0; d < G_N_ELEMENTS (depths); d++)
    {
      struct pto_chip *chip = sim_chip (backend, depths[d]);

      for (uint32_t b = 0; b < G_N_ELEMENTS (blocks); b++)
        {
          struct stream stream = { .blocks = blocks[b] };
          uint32_t n = (uint32_t) blocks[b] * ENTRIES;

          stream.out = g_new0 (int32_t, 2 * n);
          sim_run (chip, &program, submit_stream, &stream, NULL);
          for (uint32_t i = 0; i < n; i++)
            {
              g_assert_cmpint (stream.out[2 * i], ==, (int32_t) (i % ENTRIES) + 1);
              g_assert_cmpint (stream.out[2 * i + 1], ==, (int32_t) (i % ENTRIES) * 2 + 1);
            }
          g_free (stream.out);
        }
      sim_assert_well (chip);
      pto_chip_free (chip);
    }
}

/* One task of a cluster leaves entries for the next. */
static int
submit_relay (PTO2Runtime *rt, void *data)
{
  int32_t *seen = data;

  for (uint32_t g = 0; g < 20; g++)
    {
      int32_t cluster = pto2_rt_allocate_cluster (rt);
      Tensor pipe = pto2_rt_make_pipe (rt);
      PTOParam first[] = { make_scalar_param (4), make_scalar_param (3), make_scalar_param (10 * g),
                           make_pipe_out_param (pipe) };
      PTOParam second[]
          = { make_scalar_param (4), make_scalar_param (3),
              make_output_param (cells (seen + 4 * g, 4)), make_pipe_in_param (pipe) };

      pto2_rt_submit_task_clustered (rt, PUSH, AIV, first, 4, cluster);
      pto2_rt_submit_task_clustered (rt, POP_CUBE, AIC, second, 4, cluster);
      pto2_rt_free_cluster (rt, cluster);
    }
  return 0;
}

static void
test_relay (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=3 aicpu-threads=3");
  int32_t seen[80] = { 0 };

  for (uint32_t round = 0; round < 10; round++)
    {
      memset (seen, 0, sizeof seen);
      sim_run (chip, &program, submit_relay, seen, NULL);
      for (int32_t i = 0; i < 80; i++)
        g_assert_cmpint (seen[i], ==, i / 4 * 10 + i % 4);
    }
  pto_chip_free (chip);
}

/* --- what never ends, and what is no use --- */

struct pair
{
  int32_t kernels[3];
  int64_t n;
  int64_t pipe;
  int32_t blocks;
  bool sync;
  bool plain; /* the second kernel alone */
  int32_t out[16];
};

static int
submit_pair (PTO2Runtime *rt, void *data)
{
  struct pair *pair = data;
  bool pushes = pair->kernels[1] == PUSH;
  PTOParam params[] = { make_signed_param (pair->n), make_signed_param (pair->pipe),
                        pushes ? make_scalar_param (0) : make_inout_param (cells (pair->out, 16)) };
  PTO2Submit submit
      = pto2_make_submit (pair->plain ? pair->kernels[1] : PTO2_KERNEL_NONE, AIV, params, 3);

  if (pair->kernels[1] == SYNC)
    {
      params[0] = make_inout_param (cells (pair->out, 16));
      params[1] = make_scalar_param (1);
      params[2] = make_scalar_param (0);
    }
  submit.block_dim = pair->blocks;
  submit.sync_start = pair->sync;
  submit.mixed = pair->plain ? NULL : pair->kernels;
  pto2_rt_submit (rt, &submit);
  return 0;
}

static void
test_for_ever (enum pto_backend backend)
{
  /* Elsewhere one may not have begun when the time is over, on a busy machine. */
  bool proved = backend == PTO_BACKEND_DET;
  struct pto_chip *chip = sim_chip (backend, "timeout=1000 clusters=2 aicpu-threads=2");
  struct pair pops = { .kernels = { NOTHING, POP, -1 }, .n = 1, .pipe = 2, .blocks = 1 };
  struct pair waits = { .kernels = { LINGER, POP, -1 }, .n = 1, .pipe = 2, .blocks = 1 };
  struct pair pushes = { .kernels = { NOTHING, PUSH, -1 }, .n = 9, .pipe = 5, .blocks = 1 };
  struct pair both = { .kernels = { POP_CUBE, POP, -1 }, .n = 1, .pipe = 7, .blocks = 1 };
  struct pair few = { .kernels = { NOTHING, SYNC, -1 }, .blocks = 2, .sync = true };

  for (uint32_t i = 0; i < 2; i++)
    {
      /* Who began with it, and what has become of him; det has waited for all that there was. */
      sim_run_fails (chip, &program, submit_pair, &pops, PTO_STATUS_KERNEL_HANG,
                     "task 0 of ring 0 (pop) on core AIV",
                     "in TPOP() from pipe 2, which is empty (0 of 8 entries)",
                     proved ? ": nobody will end that" : ": nobody ",
                     proved ? ". Of its block (nothing) on core AIC" : ". Of its block (nothing) ",
                     proved ? " has ended" : "has ", NULL);
      sim_run_fails (chip, &program, submit_pair, &pushes, PTO_STATUS_KERNEL_HANG,
                     "(push) on core AIV", "in TPUSH() to pipe 5, which is full (8 of 8 entries)",
                     "set pipe-depth to more", ". Of its block (nothing) ", " has ", NULL);
      /* He runs: the words are about one that waits for him, or about him. */
      if (!proved)
        sim_run_fails (chip, &program, submit_pair, &waits, PTO_STATUS_KERNEL_HANG, "(linger)",
                       NULL);
      sim_run_fails (chip, &program, submit_pair, &both, PTO_STATUS_KERNEL_HANG,
                     proved ? "(pop_cube) on core AIC" : "(pop_cube)",
                     proved ? "(pop) on core AIV" : "(pop)", proved ? "; and " : " on core AI",
                     " (0 of 8 entries)", "nobody", NULL);
      sim_run_fails (chip, &program, submit_pair, &few, PTO_STATUS_KERNEL_HANG, "(sync)",
                     proved ? "in pto_sync_all(), where 2 of 4 have come"
                            : "in pto_sync_all(), where ",
                     proved ? ". Not there: block 0 (nothing), block 1 (nothing)"
                            : ". Not there: block 0 (nothing)",
                     NULL);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

/* A cluster that is allocated: whoever waits is told, and who was last on the other side of the
 * pipe. Both tasks begin, for the one that pops waits for nothing but entries. */
struct guests
{
  int32_t pushed; /* by one task, in pipe 3; 0: there is none */
  int32_t popped;
  int32_t seen[16];
};

static int
submit_guests (PTO2Runtime *rt, void *data)
{
  struct guests *guests = data;
  int32_t cluster = pto2_rt_allocate_cluster (rt);
  PTOParam pushes[]
      = { make_signed_param (guests->pushed), make_scalar_param (3), make_scalar_param (0) };
  PTOParam pops[] = { make_signed_param (guests->popped), make_scalar_param (3),
                      make_inout_param (cells (guests->seen, 16)) };

  if (guests->pushed > 0)
    pto2_rt_submit_task_clustered (rt, PUSH, AIV, pushes, 3, cluster);
  if (guests->popped > 0)
    pto2_rt_submit_task_clustered (rt, POP_CUBE, AIC, pops, 3, cluster);
  return 0;
}

static void
test_guests_for_ever (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "timeout=1000 clusters=2 aicpu-threads=2");
  struct guests too_few = { .pushed = 3, .popped = 4 };
  struct guests too_many = { .pushed = 13, .popped = 4 };
  struct guests alone = { .popped = 1 };
  struct guests full = { .pushed = 9 };

  sim_run_fails (chip, &program, submit_guests, &too_few, PTO_STATUS_KERNEL_HANG,
                 "task 1 of ring 0 (pop_cube) on core AIC",
                 "in TPOP() from pipe 3, which is empty (0 of 8 entries)", ". In cluster ",
                 " task 0 of ring 0 (push) on core AIV", " was the last to push to it", NULL);
  sim_run_fails (chip, &program, submit_guests, &too_many, PTO_STATUS_KERNEL_HANG,
                 "task 0 of ring 0 (push) on core AIV",
                 "in TPUSH() to pipe 3, which is full (8 of 8 entries)",
                 " task 1 of ring 0 (pop_cube) on core AIC", " was the last to pop from it", NULL);
  /* What others have pushed before is not theirs. */
  sim_run_fails (chip, &program, submit_guests, &alone, PTO_STATUS_KERNEL_HANG,
                 "(pop_cube) on core AIC", " nobody has pushed to it", NULL);
  sim_run_fails (chip, &program, submit_guests, &full, PTO_STATUS_KERNEL_HANG, "(push) on core AIV",
                 " nobody has popped from it", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static void
test_refused (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=2 aicpu-threads=2");
  struct pair alone = { .kernels = { -1, POP, -1 }, .n = 1, .plain = true };
  struct pair blocks = { .kernels = { -1, POP, -1 }, .n = 1, .plain = true, .blocks = 4 };
  struct pair unknown = { .kernels = { NOTHING, POP, -1 }, .n = 1, .pipe = 8, .blocks = 1 };
  struct pair early = { .kernels = { -1, SYNC, -1 }, .plain = true, .blocks = 4 };
  struct pair wide = { .kernels = { POP_CUBE, POP_WIDE, PUSH }, .n = 1, .pipe = 1, .blocks = 1 };

  for (uint32_t i = 0; i < 2; i++)
    {
      sim_run_fails (chip, &program, submit_pair, &alone, PTO_STATUS_INVALID_ARGS,
                     "task 0 of ring 0 (pop) on core AIV", "TPOP(): the kernel is alone", NULL);
      sim_run_fails (chip, &program, submit_pair, &blocks, PTO_STATUS_INVALID_ARGS, "block ",
                     " of 4", "TPOP(): the kernel is alone", NULL);
      sim_run_fails (chip, &program, submit_pair, &unknown, PTO_STATUS_INVALID_ARGS,
                     "there is no pipe 8: a cluster has 8", NULL);
      sim_run_fails (chip, &program, submit_pair, &early, PTO_STATUS_INVALID_ARGS, "pto_sync_all()",
                     "submit it with sync_start", NULL);
      wide.kernels[0] = NOTHING;
      sim_run_fails (chip, &program, submit_pair, &wide, PTO_STATUS_INVALID_ARGS,
                     "8 bytes from pipe 1, whose next entry has 4", NULL);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

#ifndef SIM_SANITIZED
static int
submit_stare (PTO2Runtime *rt, void *data)
{
  static int32_t zero[4];
  PTOParam params[] = { make_inout_param (cells (zero, 4)), make_signed_param (*(int32_t *) data) };
  PTO2Submit submit = { .size = sizeof submit,
                        .kernel_id = STARE,
                        .worker_type = AIV,
                        .params = params,
                        .n_params = 2,
                        .block_dim = 2,
                        .sync_start = 1 };

  pto2_rt_submit (rt, &submit);
  return 0;
}

/* Kernels that look at memory until another has written there: the time-out says how that is done,
 * and who may have been waited for. */
static void
test_stare (enum pto_backend backend)
{
  static const char *const says[]
      = { "and call pto_relax() in a loop that waits for another kernel",
          "it waited for another kernel, in a loop with pto_relax()" };
  struct pto_chip *chip = sim_chip (backend, "clusters=1 aicpu-threads=2 timeout=200");

  for (int32_t relaxes = 0; relaxes < 2; relaxes++)
    sim_run_fails (chip, &program, submit_stare, &relaxes, PTO_STATUS_KERNEL_HANG,
                   "task 0 of ring 0 (stare), block ", " of 2, on core AIV",
                   "no other task finished for 200 ms", says[relaxes], ". With it began block ",
                   " (stare) on core AIV", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

/* Whoever waits for one that has crashed is given up, long before any time is over, and the crash
 * is told. */
static void
test_crash (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=2 aicpu-threads=2 timeout=10000000");
  struct pair pair = { .kernels = { CRASH, POP, POP }, .n = 1, .pipe = 0, .blocks = 1 };

  for (uint32_t i = 0; i < 20; i++)
    sim_run_fails (chip, &program, submit_pair, &pair, PTO_STATUS_KERNEL_FAULT, "(crash)",
                   "Segmentation fault", NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}
#endif

struct left
{
  int32_t pushed;
  int32_t popped;
  bool again; /* the clusters are allocated once more */
};

static int
submit_left (PTO2Runtime *rt, void *data)
{
  const struct left *left = data;
  static int32_t seen[16];

  for (uint32_t g = 0; g < (left->again ? 4 : 2); g++)
    {
      int32_t cluster = pto2_rt_allocate_cluster (rt);
      PTOParam first[]
          = { make_signed_param (left->pushed), make_scalar_param (3), make_scalar_param (0) };
      PTOParam second[] = { make_signed_param (left->popped), make_scalar_param (3),
                            make_inout_param (cells (seen, 16)) };

      if (cluster < 0)
        return 0;
      pto2_rt_submit_task_clustered (rt, PUSH, AIV, first, 3, cluster);
      pto2_rt_submit_task_clustered (rt, POP_CUBE, AIC, second, 3, cluster);
      pto2_rt_free_cluster (rt, cluster);
    }
  return 0;
}

/* What nobody pops is told when nobody can pop it any more: at the end of a block, and when a
 * cluster is given back. */
static void
test_left (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=2 aicpu-threads=2");
  struct pair one = { .kernels = { NOTHING, PUSH, -1 }, .n = 1, .pipe = 5, .blocks = 1 };
  struct pair some = { .kernels = { NOTHING, PUSH, -1 }, .n = 3, .pipe = 0, .blocks = 7 };
  struct pair none = { .kernels = { NOTHING, PUSH, -1 }, .n = 0, .pipe = 0, .blocks = 7 };
  struct left left = { .pushed = 5, .popped = 3 };
  struct left well = { .pushed = 5, .popped = 5, .again = true };

  for (uint32_t i = 0; i < 2; i++)
    {
      sim_run_fails (chip, &program, submit_pair, &one, PTO_STATUS_INVALID_ARGS,
                     "task 0 of ring 0 (push) on core AIV", "1 entry is left in pipe 5",
                     "all kernels of the block have ended", NULL);
      sim_run_fails (chip, &program, submit_pair, &some, PTO_STATUS_INVALID_ARGS,
                     "task 0 of ring 0 (push), block ", " of 7, on core AIV",
                     "3 entries are left in pipe 0", "pop (TPOP()) as many as are pushed", NULL);
      sim_run (chip, &program, submit_pair, &none, NULL);
      left.again = i > 0;
      sim_run_fails (chip, &program, submit_left, &left, PTO_STATUS_INVALID_ARGS,
                     " of ring 0 (push) on core AIV", "2 entries are left in pipe 3",
                     "is given back", NULL);
      sim_run (chip, &program, submit_left, &well, NULL);
      sim_assert_well (chip);
    }
  pto_chip_free (chip);
}

struct pushes
{
  uint64_t ns[2]; /* of the first task of each cluster */
  uint32_t n;
};

static void
see_push (const struct pto_trace_record *record, void *data)
{
  struct pushes *pushes = data;

  if (PTO_TASK_LOCAL (record->task) % 2 != 0)
    return;
  g_assert_cmpuint (pushes->n, <, 2);
  pushes->ns[pushes->n++] = record->extra - record->time;
}

/* Each entry costs what the platform says, on either side: a kernel of 1000 ns that pushes so many
 * takes that much longer, and who pops the last one ends behind it. */
static void
test_pipe_costs (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (PTO_BACKEND_DET, "clusters=2 aicpu-threads=2");

  for (int32_t n = 0; n <= 8; n += 4)
    {
      struct left left = { .pushed = n, .popped = n };
      struct pushes pushes = { .n = 0 };
      struct pto_run_stats stats;

      sim_trace_each (sim_record (chip, &program, submit_left, &left, &stats), PTO_TRACE_RUN,
                      see_push, &pushes);
      g_assert_cmpuint (pushes.n, ==, 2);
      for (uint32_t i = 0; i < 2; i++)
        g_assert_cmpuint (pushes.ns[i], ==, 1000 + (uint64_t) n * 50);
    }
  pto_chip_free (chip);
}

struct cancelled
{
  struct pto_chip *chip;
  struct pair pair;
};

static int
submit_and_cancel (PTO2Runtime *rt, void *data)
{
  struct cancelled *cancelled = data;

  submit_pair (rt, &cancelled->pair);
  for (uint32_t i = 0; i < 1000 && pto_chip_progress (cancelled->chip) < 1; i++)
    sim_spend_ns (1000);
  pto_chip_cancel (cancelled->chip);
  return 0;
}

static void
test_cancel (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "clusters=2 aicpu-threads=2");
  struct cancelled cancelled
      = { .chip = chip,
          .pair = { .kernels = { POP_CUBE, POP, -1 }, .n = 1, .pipe = 0, .blocks = 1 } };

  for (uint32_t i = 0; i < 10; i++)
    sim_run_fails (chip, &program, submit_and_cancel, &cancelled, PTO_STATUS_CANCELLED, NULL);
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static void
add (void)
{
  sim_add ("interconnect/meeting", test_meeting);
  sim_add ("interconnect/waits", test_waits);
  sim_add ("interconnect/group", test_group);
  sim_add ("interconnect/own-barrier", test_own_barrier);
  sim_add ("interconnect/stream", test_stream);
  sim_add ("interconnect/relay", test_relay);
  sim_add ("interconnect/for-ever", test_for_ever);
  sim_add ("interconnect/guests-for-ever", test_guests_for_ever);
  sim_add_once ("interconnect/pipe-costs", test_pipe_costs);
  sim_add ("interconnect/refused", test_refused);
  sim_add ("interconnect/left", test_left);
#ifndef SIM_SANITIZED
  sim_add ("interconnect/stare", test_stare);
  sim_add ("interconnect/crash", test_crash);
#endif
  sim_add ("interconnect/cancel", test_cancel);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add);
}
