/* test-weak.c: does a chip ask for every order that it needs, between orchestrator, schedulers and
 * cores?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Chip and engine run on the machine of weak.h, each core and each scheduler a thread of its own as
 * on the back end threads, and at every atomic operation somebody else may go on. Each seed is a
 * graph, an interleaving, and a choice of old values.
 */
#include "sim-test.h"

#include "../../pto/exec/exec-private.h"
#include "../../sim/chip-private.h"
#include "../weak/weak.h"

#define SEEDS 300u
#define TASKS 40u
#define WORDS 6u
#define QUESTIONS 6u
#define PIPE_DEPTH 2u

static uint64_t random_state;
static const struct pto_actor *actors[WEAK_THREADS];
static uint32_t n_actors;
static struct pto_exec *exec;
static uint64_t words[WORDS];
static uint32_t met_well; /* of the test, as the machine has it run: one kernel at a time */

static uint32_t
below (uint32_t n)
{
  random_state = random_state * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
  return (uint32_t) ((random_state >> 33) % n);
}

static uint32_t
self (void)
{
  const struct pto_actor *actor = pto_thread_self ()->current;

  if (actor == NULL || actor == &exec->guest)
    return 0;
  for (uint32_t i = 0; i < n_actors; i++)
    if (actors[i] == actor)
      return i + 1;
  actors[n_actors++] = actor;
  return n_actors;
}

static void
point (void)
{
  /* Before a run begins there is no other actor. */
  if (pto_thread_self ()->current != NULL && below (3) == 0)
    pto_yield (exec);
}

/* The engine's waits by these names, which its own explorers watch. */
enum pto_park_result explorer_park (struct pto_exec *on, struct pto_word *word, uint32_t expected,
                                    uint64_t deadline);
void explorer_yield (struct pto_exec *on);

enum pto_park_result
explorer_park (struct pto_exec *on, struct pto_word *word, uint32_t expected, uint64_t deadline)
{
  return pto_park (on, word, expected, deadline);
}

void
explorer_yield (struct pto_exec *on)
{
  pto_yield (on);
}

static uint32_t
choose (uint32_t n)
{
  return below (3) == 0 ? below (n) : 0;
}

/* Writes its first n tensors and reads the others; (how many to write, how many there are, number).
 */
static void
kernel_use (int64_t *args)
{
  int n = (int) args[1];

  weak_read (args, (uint64_t) (n + 3) * sizeof *args);
  for (int i = 0; i < n; i++)
    {
      const TensorData *tensor = sim_tensor (args, 3 + i);

      weak_read (tensor, sizeof *tensor);
      if (i < args[0])
        {
          weak_write (sim_data (args, 3 + i), sizeof (uint64_t));
          *(uint64_t *) sim_data (args, 3 + i) += (uint64_t) args[2];
        }
      else
        weak_read (sim_data (args, 3 + i), sizeof (uint64_t));
    }
}

/* Each block has a word, and reads all of them when all have come. */
static void
kernel_meet (int64_t *args)
{
  uint32_t n = get_block_num (args);

  for (uint64_t round = 1; round <= 3; round++)
    {
      uint64_t *own = &words[get_block_idx (args)];

      weak_write (own, sizeof *own);
      *own += round;
      pto_sync_all (args);
      for (uint32_t i = 0; i < n; i++)
        {
          weak_read (&words[i], sizeof words[i]);
          met_well += words[i] == round * (round + 1) / 2;
        }
      pto_sync_all (args);
    }
}

/* Two of a cluster: what one asks the other answers. More than a pipe holds is under way. */
static void
kernel_ask (int64_t *args)
{
  for (uint64_t asked = 0, heard = 0; heard < QUESTIONS;)
    if (asked < QUESTIONS && asked < heard + PIPE_DEPTH + 2)
      {
        TPUSH (args, 0, &asked, sizeof asked);
        asked++;
      }
    else
      {
        uint64_t answer;

        TPOP (args, 1, &answer, sizeof answer);
        met_well += answer == heard + 100;
        heard++;
      }
}

static void
kernel_answer (int64_t *args)
{
  for (uint32_t i = 0; i < QUESTIONS; i++)
    {
      uint64_t value;

      TPOP (args, 0, &value, sizeof value);
      value += 100;
      TPUSH (args, 1, &value, sizeof value);
    }
}

static struct pto_chip *failing;

static void
kernel_fail (int64_t *args)
{
  pto_engine_fail (&failing->machine.engine, PTO_STATUS_EXPLICIT, "as it was told");
}

static const struct pto_kernel kernels[] = {
  { "vector", kernel_use, PTO_CORE_TYPE_AIV, { .base_ns = 700 } },
  { "cube", kernel_use, PTO_CORE_TYPE_AIC, { .base_ns = 900 } },
  { "meet", kernel_meet, PTO_CORE_TYPE_AIV, { .base_ns = 500 } },
  { "ask", kernel_ask, PTO_CORE_TYPE_AIC, { .base_ns = 500 } },
  { "answer", kernel_answer, PTO_CORE_TYPE_AIV, { .base_ns = 500 } },
  { "fail", kernel_fail, PTO_CORE_TYPE_AIV, { .base_ns = 500 } },
};
static const struct pto_program program = { kernels, G_N_ELEMENTS (kernels) };

static void
submit (PTO2Runtime *rt, int64_t number, int n_written, const PTOParam *tensors, int n)
{
  PTOParam params[8] = { make_scalar_param ((uint64_t) n_written), make_scalar_param ((uint64_t) n),
                         make_scalar_param ((uint64_t) number) };
  uint32_t core = below (2);

  memcpy (params + 3, tensors, (size_t) n * sizeof *tensors);
  pto2_rt_submit_task (rt, (int32_t) core, core == 0 ? AIV : AIC, params, 3 + n);
}

/* Words of the caller, and buffers of a heap ring that is always full. */
static int
orchestrate (PTO2Runtime *rt, void *data)
{
  static const uint64_t one[] = { 1 };
  uint64_t *expected = data;
  int64_t number = 0;

  pto2_rt_init_tensor_pool (rt);
  for (uint32_t i = 0; i < TASKS / 2; i++)
    {
      uint32_t a = below (WORDS), b = (a + 1 + below (WORDS - 1)) % WORDS;
      Tensor first = make_tensor_external (&words[a], one, 1, PTO_DTYPE_UINT64);
      Tensor second = make_tensor_external (&words[b], one, 1, PTO_DTYPE_UINT64);

      pto2_rt_scope_begin (rt);
      {
        Tensor buffer = make_tensor (one, 1, PTO_DTYPE_UINT64);
        PTOParam produce[] = { make_output_param (buffer), make_input_param (second) };
        PTOParam consume[] = { make_inout_param (first), make_input_param (buffer) };

        submit (rt, ++number, 1, produce, 2);
        submit (rt, ++number, 1, consume, 2);
      }
      expected[a] += (uint64_t) number;
      pto2_rt_scope_end (rt);
    }
  return 0;
}

static void
begin (struct pto_chip *chip, uint32_t seed)
{
  static struct weak_machine machine;

  random_state = seed;
  n_actors = 0;
  exec = chip->machine.engine.exec;
  /* Cores run beside their schedulers here. */
  for (uint32_t s = 0; s < chip->n_schedulers; s++)
    chip->aicpus[s].scheduler.config.concurrent = true;
  /* det has one thread for all, and what it keeps for itself. */
  machine = (struct weak_machine){ .self = self,
                                   .point = point,
                                   .choose = choose,
                                   .own = { { pto_thread_self (), sizeof (struct pto_thread) },
                                            { exec, exec->ops->size } } };
  weak_begin (&machine);
}

static void
test_seeds (enum pto_backend backend)
{
  for (uint32_t seed = 1; seed <= SEEDS; seed++)
    {
      char *settings = g_strdup_printf ("clusters=%u aicpu-threads=%u task-window=16 heap=4K "
                                        "seed=%u trace=%u",
                                        1 + seed % 2, 2 + seed % 2, seed, seed / 2 % 2);
      struct pto_chip *chip = sim_chip (backend, settings);
      uint64_t expected[WORDS] = { 0 };
      struct pto_report report = { 0 };

      memset (words, 0, sizeof words);
      begin (chip, seed);
      pto_chip_run (chip, &program, NULL, orchestrate, expected, NULL, &report);
      for (uint32_t w = 0; w < WORDS; w++)
        weak_read (&words[w], sizeof words[w]);
      weak_end ();
      g_assert_cmpstr (report.message, ==, "");
      for (uint32_t w = 0; w < WORDS; w++)
        g_assert_cmpuint (words[w], ==, expected[w]);
      pto_chip_free (chip);
      g_free (settings);
    }
  g_test_message ("%" G_GUINT64_FORMAT " old values, %" G_GUINT64_FORMAT " accesses", weak_n_stale,
                  weak_n_checked);
  g_assert_cmpuint (weak_n_stale, >, 1000);
}

static int
submit_meeting (PTO2Runtime *rt, void *data)
{
  PTO2Submit submit = pto2_make_submit (2, AIV, NULL, 0);

  submit.block_dim = 4;
  submit.sync_start = 1;
  g_assert_cmpuint (pto2_rt_submit (rt, &submit), !=, PTO2_TASK_NONE);
  return 0;
}

/* What blocks wrote before they met can be read behind it. */
static void
test_meetings (enum pto_backend backend)
{
  for (uint32_t seed = 1; seed <= SEEDS / 3; seed++)
    {
      struct pto_chip *chip = sim_chip (backend, "clusters=2 aicpu-threads=3");
      struct pto_report report = { 0 };

      memset (words, 0, sizeof words);
      met_well = 0;
      begin (chip, seed);
      pto_chip_run (chip, &program, NULL, submit_meeting, NULL, NULL, &report);
      weak_end ();
      g_assert_cmpstr (report.message, ==, "");
      g_assert_cmpuint (met_well, ==, 3 * 4 * 4);
      pto_chip_free (chip);
    }
}

static int
submit_talk (PTO2Runtime *rt, void *data)
{
  static const int32_t pair[3] = { 3, 4, -1 };
  PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, NULL, 0);

  submit.mixed = pair;
  submit.block_dim = 1;
  g_assert_cmpuint (pto2_rt_submit (rt, &submit), !=, PTO2_TASK_NONE);
  return 0;
}

/* Both ends of a pipe wait for each other, and what is taken out is what was put in. */
static void
test_pipes (enum pto_backend backend)
{
  for (uint32_t seed = 1; seed <= SEEDS / 3; seed++)
    {
      struct pto_chip *chip = sim_chip (backend, "clusters=1 aicpu-threads=2 pipe-depth=2");
      struct pto_report report = { 0 };

      met_well = 0;
      begin (chip, seed);
      pto_chip_run (chip, &program, NULL, submit_talk, NULL, NULL, &report);
      weak_end ();
      g_assert_cmpstr (report.message, ==, "");
      g_assert_cmpuint (met_well, ==, QUESTIONS);
      pto_chip_free (chip);
    }
}

/* Asks as long as it is told nothing. */
static int
ask_for_failure (PTO2Runtime *rt, void *data)
{
  const char *why;

  pto2_rt_submit_task (rt, 5, AIV, NULL, 0);
  while ((why = pto_runtime_tell_failure (rt)) == NULL)
    pto_charge (exec, 100);
  weak_read (&failing->machine.engine.report.status, sizeof (enum pto_status));
  g_assert_cmpint (failing->machine.engine.report.status, ==, PTO_STATUS_EXPLICIT);
  g_assert_cmpstr (why, ==, "as it was told");
  return 0;
}

/* An orchestration that is told of a failure while the run goes on is told all of it. */
static void
test_failure (enum pto_backend backend)
{
  for (uint32_t seed = 1; seed <= SEEDS / 3; seed++)
    {
      struct pto_report report = { 0 };

      failing = sim_chip (backend, "clusters=1 aicpu-threads=2");
      begin (failing, seed);
      g_assert_cmpint (pto_chip_run (failing, &program, NULL, ask_for_failure, NULL, NULL, &report),
                       ==, PTO_STATUS_EXPLICIT);
      weak_end ();
      g_assert_cmpstr (report.message, ==, "as it was told");
      pto_chip_free (failing);
    }
}

/* The registers alone, as a scheduler would use them that looks at them all the time: what a core
 * did is known with FIN, before its signal. */
static void
test_registers (enum pto_backend backend)
{
  for (uint32_t seed = 1; seed <= SEEDS; seed++)
    {
      struct pto_chip *chip = sim_chip (backend, "clusters=1 aicpu-threads=2");
      struct pto_endpoint *endpoint = &chip->cores[0].endpoint;
      uint64_t word = 0;
      /* As a submit lays it out. */
      struct
      {
        struct pto_payload payload;
        int64_t args[4];
        TensorData tensor;
        uint64_t guards[1];
      } storage = { .payload = { .n_args = 4, .guards = storage.guards },
                    .args = { 1, 1, 7, (int64_t) (uintptr_t) &storage.tensor },
                    .tensor = { .buffer = { (uint64_t) (uintptr_t) &word, sizeof word },
                                .shapes = { 1 },
                                .ndims = 1,
                                .dtype = PTO_DTYPE_UINT64 } };
      struct pto_slot slot = { .payload = &storage.payload };

      chip->program = &program;
      pto_exec_enter (chip->machine.engine.exec);
      begin (chip, seed);
      for (uint32_t i = 1; i <= 5; i++)
        {
          struct pto_outcome outcome = { .failed = true };

          weak_write (&storage, sizeof storage);
          endpoint->ops->dispatch (endpoint, &slot);
          while (!endpoint->ops->poll (endpoint, &outcome))
            pto_charge (chip->machine.engine.exec, 1);
          g_assert_false (outcome.failed);
          weak_read (&word, sizeof word);
          g_assert_cmpuint (word, ==, 7 * i);
        }
      weak_end ();
      pto_exec_leave (chip->machine.engine.exec);
      pto_chip_free (chip);
    }
}

static void
add (void)
{
  sim_add_once ("weak/registers", test_registers);
  sim_add_once ("weak/seeds", test_seeds);
  sim_add_once ("weak/meetings", test_meetings);
  sim_add_once ("weak/pipes", test_pipes);
  sim_add_once ("weak/failure", test_failure);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add);
}
