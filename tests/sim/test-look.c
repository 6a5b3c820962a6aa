/* test-look.c: is what somebody sees who has no part in a run never made of two tasks?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tasks are such that each of their words says which one they are: the kernel by the number's
 * parity, the argument's address by the number, the producer is the task before. A thread looks all
 * the time, at rings so small that slots and storage are written anew again and again; and is held
 * up again and again wherever it stands, by a signal, so that what it reads changes meanwhile.
 */
#include "sim-test.h"

#include "../../pto/core/run-machine.h"
#include "../../sim/chip-private.h"
#include "../../sim/chip-inspect.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#define TASKS SCALE (20000u)
#define CELLS 64u
#define KERNEL_NS 500u
#define HELD_UP_NS 20000u

static int32_t cells[CELLS];
static int32_t chain;
static _Atomic uint32_t held; /* a kernel waits while it is not 0 */
static _Atomic uint32_t over;
static uint64_t n_rows, n_waiting, n_looks;

static void
kernel_even (int64_t *args)
{
  sim_spend_ns (KERNEL_NS);
  *(int32_t *) sim_data (args, 0) += 1;
}

static void
kernel_odd (int64_t *args)
{
  sim_spend_ns (KERNEL_NS);
  *(int32_t *) sim_data (args, 0) += 1;
}

static void
kernel_hold (int64_t *args)
{
  while (atomic_load (&held) != 0)
    sched_yield ();
}

static const struct pto_kernel kernels[] = {
  { .name = "even", .entry = kernel_even, .core_type = PTO_CORE_TYPE_AIV },
  { .name = "odd", .entry = kernel_odd, .core_type = PTO_CORE_TYPE_AIV },
  { .name = "hold", .entry = kernel_hold, .core_type = PTO_CORE_TYPE_AIV },
};
static const struct pto_program program = { kernels, 3 };

static const uint64_t one[1] = { 1 };

static void
submit (PTO2Runtime *rt, uint32_t i)
{
  Tensor cell = make_tensor_external (&cells[i % CELLS], one, 1, PTO_DTYPE_INT32);
  Tensor all = make_tensor_external (&chain, one, 1, PTO_DTYPE_INT32);
  PTOParam params[] = { make_inout_param (cell), make_inout_param (all) };

  pto2_rt_submit_task (rt, (int32_t) (i % 2), AIV, params, 2);
}

/* Each in a scope of its own, so that its ring goes round: tasks of ring 1 are numbered as they are
 * submitted. */
static int
orchestrate (PTO2Runtime *rt, void *data)
{
  for (uint32_t i = 0; i < TASKS; i++)
    PTO2_SCOPE (rt)
  submit (rt, i);
  return 0;
}

static void
assert_name (const struct pto_look_task *task)
{
  g_assert_cmpuint (PTO_TASK_RING (task->id), ==, 1);
  g_assert_cmpstr (task->kernel, ==, PTO_TASK_LOCAL (task->id) % 2 == 0 ? "even" : "odd");
}

static void
look_once (struct pto_chip *chip)
{
  struct pto_chip_look *look = pto_chip_look (chip);

  if (look == NULL)
    return;
  n_looks++;
  g_assert_cmpuint (look->run.completed, <=, TASKS);
  for (uint32_t c = 0; c < look->n_cores; c++)
    {
      const struct pto_core_look *core = &look->cores[c];

      if (core->doing <= PTO_CORE_CHANGING)
        continue;
      n_rows++;
      assert_name (&core->task);
      g_assert_cmpuint (core->n_args, ==, 2);
      g_assert_cmpuint (core->n_tensors, ==, 2);
      g_assert_cmpuint (core->tensors[0].address, ==,
                        (uintptr_t) &cells[PTO_TASK_LOCAL (core->task.id) % CELLS]);
      g_assert_cmpuint (core->tensors[1].address, ==, (uintptr_t) &chain);
      g_assert_cmpuint (core->tensors[1].ndims, ==, 1);
      g_assert_cmpuint (core->tensors[1].shapes[0], ==, 1);
    }
  for (uint32_t w = 0; w < look->run.n_waiting; w++)
    {
      const struct pto_look_waiting *waiting = &look->run.waiting[w];

      n_waiting++;
      assert_name (&waiting->task);
      g_assert_cmpuint (waiting->n_producers, <=, 1);
      for (uint32_t i = 0; i < waiting->n_causes; i++)
        {
          assert_name (&waiting->causes[i]);
          g_assert_cmpuint (PTO_TASK_LOCAL (waiting->causes[i].id), ==,
                            PTO_TASK_LOCAL (waiting->task.id) - 1);
        }
    }
  pto_chip_look_free (look);
}

static void
hold_up (int number)
{
  sim_spend_ns (HELD_UP_NS);
}

static void *
disturb (void *looker)
{
  while (atomic_load (&over) == 0)
    {
      pthread_kill (*(pthread_t *) looker, SIGUSR1);
      sim_spend_ns (HELD_UP_NS / 4);
    }
  return NULL;
}

static void *
look_all_the_time (void *chip)
{
  while (atomic_load (&over) == 0)
    look_once (chip);
  return NULL;
}

static void
test_rows (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "task-window=8");
  struct sigaction action = { .sa_handler = hold_up, .sa_flags = SA_RESTART };
  struct pto_run_stats stats;
  pthread_t thread, disturber;

  sigaction (SIGUSR1, &action, NULL);
  n_looks = n_rows = n_waiting = 0;
  chain = 0;
  memset (cells, 0, sizeof cells);
  atomic_store (&over, 0);
  g_assert_cmpint (pthread_create (&thread, NULL, look_all_the_time, chip), ==, 0);
  g_assert_cmpint (pthread_create (&disturber, NULL, disturb, &thread), ==, 0);
  for (uint32_t i = 0; i < 3; i++)
    {
      sim_run (chip, &program, orchestrate, NULL, &stats);
      g_assert_cmpuint (stats.tasks, ==, TASKS);
    }
  atomic_store (&over, 1);
  g_assert_cmpint (pthread_join (disturber, NULL), ==, 0);
  g_assert_cmpint (pthread_join (thread, NULL), ==, 0);
  for (uint32_t i = 0; i < CELLS; i++)
    g_assert_cmpint (cells[i], ==, 3 * ((int32_t) (TASKS / CELLS) + (i < TASKS % CELLS)));
  g_test_message ("%" G_GUINT64_FORMAT " looks, %" G_GUINT64_FORMAT " cores, %" G_GUINT64_FORMAT
                  " tasks that wait",
                  n_looks, n_rows, n_waiting);
  pto_chip_free (chip);
}

static int
hold_orchestration (PTO2Runtime *rt, void *data)
{
  Tensor cell = make_tensor_external (&cells[0], one, 1, PTO_DTYPE_INT32);
  PTOParam params[] = { make_inout_param (cell) };

  pto2_rt_submit_task (rt, 2, AIV, params, 1);
  for (uint32_t i = 0; i < 3; i++)
    pto2_rt_submit_task (rt, 0, AIV, params, 1);
  return 0;
}

static void *
run_hold (void *chip)
{
  sim_run (chip, &program, hold_orchestration, NULL, NULL);
  return NULL;
}

/* What a run that hangs looks like, to the number; and one that is over. */
static void
test_hang (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, "timeout=600000");
  bool is_det = backend == PTO_BACKEND_DET;
  struct pto_chip_look *look = NULL;
  uint32_t core = 0;
  pthread_t thread;

  atomic_store (&held, 1);
  cells[0] = 0;
  g_assert_cmpint (pthread_create (&thread, NULL, run_hold, chip), ==, 0);
  for (;;)
    {
      look = pto_chip_look (chip);
      for (core = 0; look != NULL && core < look->n_cores; core++)
        if (look->cores[core].doing == PTO_CORE_RUNS && look->cores[core].for_ns > 0)
          break;
      if (look != NULL && core < look->n_cores
          && look->run.submitter.doing == (is_det ? PTO_DOING_TURN : PTO_DOING_END))
        break;
      pto_chip_look_free (look);
      sched_yield ();
    }
  g_assert_true (look->run.running);
  g_assert_cmpstr (look->cores[core].task.kernel, ==, "hold");
  g_assert_cmpuint (look->cores[core].task.id, ==, PTO_TASK_ID (0, 0));
  g_assert_cmpuint (look->run.n_running, ==, 1);
  g_assert_cmpuint (look->run.n_ready, ==, 0);
  g_assert_cmpuint (look->run.n_pending, ==, is_det ? 0 : 3);
  g_assert_cmpuint (look->run.submitted, ==, is_det ? 1 : 4);
  g_assert_cmpuint (look->run.n_waiting, ==, is_det ? 0 : 3);
  for (uint32_t w = 0; w < look->run.n_waiting; w++)
    {
      g_assert_cmpuint (look->run.waiting[w].task.id, ==, PTO_TASK_ID (0, w + 1));
      g_assert_cmpuint (look->run.waiting[w].n_producers, ==, 1);
      g_assert_cmpuint (look->run.waiting[w].causes[0].id, ==, PTO_TASK_ID (0, w));
      g_assert_cmpstr (look->run.waiting[w].causes[0].state_name, ==,
                       w == 0 ? "running" : "waiting for its producers");
    }
  pto_chip_look_free (look);
  atomic_store (&held, 0);
  g_assert_cmpint (pthread_join (thread, NULL), ==, 0);
  g_assert_cmpint (cells[0], ==, 3);
  look = pto_chip_look (chip);
  g_assert_false (look->run.running);
  g_assert_cmpuint (look->run.totals.runs, ==, 1);
  g_assert_cmpuint (look->run.totals.submitted, ==, 4);
  g_assert_cmpuint (look->run.totals.completed, ==, 4);
  for (uint32_t c = 0; c < look->n_cores; c++)
    g_assert_cmpint (look->cores[c].doing, ==, PTO_CORE_IDLE);
  pto_chip_look_free (look);
  pto_chip_free (chip);
}

/* Somebody else holds the door: it is given up, and nobody waits for long. */
static void
test_door (enum pto_backend backend)
{
  struct pto_chip *chip = sim_chip (backend, NULL);

  g_assert_true (pto_look_begin (&chip->machine));
  g_assert_null (pto_chip_look (chip));
  pto_look_end (&chip->machine);
  pthread_mutex_lock (&chip->watch_lock);
  g_assert_null (pto_chip_look (chip));
  pthread_mutex_unlock (&chip->watch_lock);
  pto_chip_look_free (pto_chip_look (chip));
  sim_assert_well (chip);
  pto_chip_free (chip);
}

static void
add (void)
{
  sim_add ("look/rows", test_rows);
  sim_add ("look/hang", test_hang);
  sim_add_once ("look/door", test_door);
}

int
main (int argc, char **argv)
{
  return sim_main (argc, argv, add);
}
