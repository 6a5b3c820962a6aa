/* engine-explore.c: how is every interleaving of an engine's submitter and schedulers run?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "engine-explore.h"

#include "../weak/sides.h"

#include "../../pto/exec/exec-private.h"
#include "../../pto/exec/pto-atomic.h"

#include <string.h>

/* The engine's pto_park() is explorer_park() in this build, which looks at what it gives, and its
 * pto_yield() explorer_yield(). */
#undef pto_park
#undef pto_yield
enum pto_park_result pto_park (struct pto_exec *exec, struct pto_word *word, uint32_t expected,
                               uint64_t deadline);
void pto_yield (struct pto_exec *exec);

/* The submitter gets over a wake-up that was lost, since det proves that nobody can run: here it is
 * an error. */
enum pto_park_result
explorer_park (struct pto_exec *exec, struct pto_word *word, uint32_t expected, uint64_t deadline)
{
  enum pto_park_result result = pto_park (exec, word, expected, deadline);

  if (result == PTO_PARK_DEADLOCK)
    g_error ("schedule %" G_GUINT64_FORMAT ": nobody can run and the submitter waits",
             explorer.schedules);
  return result;
}

bool yields_on;

/* Who yields in a loop waits for another to go on: here it is the one that has waited longest. */
void
explorer_yield (struct pto_exec *exec)
{
  if (explorer.on && yields_on)
    explorer_point ();
  else if (explorer.on)
    explorer_pause ();
  else
    pto_yield (exec);
}

static void (*other) (void *data);

/* The guest, one thread for each scheduler and its endpoints, as on par, and the other. */
static uint32_t
self (void)
{
  const struct pto_actor *actor = pto_thread_self ()->current;

  if (actor == NULL || actor == &explorer.exec->guest)
    return 0;
  return actor->fn == other ? 1 + MACHINE_SCHEDULERS_MAX : 1 + actor->domain;
}

void
spawn_other (struct machine *machine, const char *name, void (*fn) (void *data))
{
  char error[128];

  other = fn;
  g_assert_cmpint (pto_exec_spawn (machine->exec, 0, name, fn, machine, error, sizeof error), ==,
                   0);
}

void
start (void)
{
  explorer_start (self);
}

static void
settle (struct machine *machine)
{
  while (pto_exec_help (machine->exec))
    ;
}

bool ended_well;

void
explore (const struct scenario *scenario)
{
  struct machine_config config = scenario->config;
  struct machine *machine;

  explorer_init (BOUND (scenario->bound), STALE);
  config.backend = PTO_BACKEND_DET;
  config.seed = 1;
  config.shards = 1;
  config.choose = explorer_choose;
  machine = machine_new (&config);
  explorer.exec = machine->exec;
  machine_record (machine);
  pto_exec_enter (machine->exec);
  settle (machine);
  pto_exec_leave (machine->exec);
  do
    {
      enum pto_status status;
      const char *message;

      /* What decisions depend on and a run does not begin with. */
      for (uint32_t s = 0; s < machine->config.schedulers; s++)
        {
          machine->schedulers[s]->run_through = 0;
          memset (machine->schedulers[s]->places.lately, 0,
                  sizeof machine->schedulers[s]->places.lately);
        }
      atomic_store (&machine->engine->turn, 0);
      atomic_store (&machine->engine->task_ns, 0);
      for (uint32_t queue = 0; queue < machine->engine->config.n_queues; queue++)
        atomic_store (&machine->engine->ready[queue][0].head,
                      atomic_load (&machine->engine->ready[queue][0].tail));
      if (scenario->before != NULL)
        scenario->before (machine);
      machine_begin (machine);
      scenario->body (machine);
      status = machine_end (machine, &message);
      explorer_stop ();
      ended_well = status == PTO_OK;
      if (!ended_well && status != scenario->may_end_as)
        g_error ("schedule %" G_GUINT64_FORMAT ": %s", explorer.schedules, message);
      /* Nothing of the path is left over, or the runs differ by something else than the choices. */
      g_assert_cmpuint (explorer.depth, ==, explorer.length);
      g_assert_cmpuint (pto_engine_completed (machine->engine), ==, machine->engine->submitted);
      for (uint32_t r = 0; r < PTO_RINGS; r++)
        g_assert_cmpuint (machine->engine->tails[r], ==, machine->engine->rings[r].head);
      scenario->check (machine);
      pto_exec_enter (machine->exec);
      settle (machine);
      pto_exec_leave (machine->exec);
    }
  while (explorer_advance ());
  g_test_message ("%" G_GUINT64_FORMAT " schedules", explorer.schedules);
  explorer_assert_cmpuint (explorer.schedules, >=, AT_LEAST (scenario->at_least));
  machine_free (machine);
}

/* --- a cancel --- */

bool was_told;
uint32_t n_noted_then;
_Atomic uint32_t asked;

static void
cancel (void *data)
{
  struct machine *machine = data;

  weak_add (&asked, 1);
  was_told = pto_engine_cancel (machine->engine);
  n_noted_then = n_order;
}

void
begin_to_cancel (struct machine *machine)
{
  n_order = 0;
  atomic_store (&asked, 0);
  was_told = false;
  n_noted_then = UINT32_MAX;
  spawn_other (machine, "cancel", cancel);
  start ();
}

/* --- what happened --- */

uint32_t order[16];
uint32_t n_order;

/* Writes its number down, and does to its tensors what it says. */
static void
kernel_note (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  uint32_t number = (uint32_t) args[slot->payload->n_args - 1];
  const TensorData *tensor;
  uint32_t at = 0;

  weak_read (&slot->id, offsetof (struct pto_slot, mark) - offsetof (struct pto_slot, id));
  weak_read (slot->payload, sizeof *slot->payload);
  weak_read (args, slot->payload->n_args * sizeof *args);
  for (uint32_t i = 0;
       (tensor = pto_payload_next_tensor (slot->payload, &machine->engine->shared, &at)) != NULL;
       i++)
    {
      weak_read (tensor, sizeof *tensor);
      if ((number & WRITES (i)) != 0)
        weak_write ((void *) (uintptr_t) tensor->buffer.addr, 8);
      else if (i > 0 || (number & LEAVES) == 0)
        weak_read ((void *) (uintptr_t) tensor->buffer.addr, 8);
    }
  g_assert_cmpuint (n_order, <, G_N_ELEMENTS (order));
  order[n_order++] = number % LEAVES;
}

static void
kernel_note_and_fail (struct machine *machine, const struct pto_slot *slot, int64_t *args,
                      bool *failed)
{
  kernel_note (machine, slot, args, failed);
  *failed = true;
}

static void
kernel_end_run (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  pto_engine_fail (machine->engine, PTO_STATUS_EXPLICIT, "the end");
  *failed = true;
}

/* Combines: reads its second tensor, writes its first one. */
static void
kernel_take_in (struct machine *machine, const struct pto_slot *slot, int64_t *args, bool *failed)
{
  weak_read ((void *) (uintptr_t) ((const TensorData *) (uintptr_t) args[1])->buffer.addr, 8);
  weak_write ((void *) (uintptr_t) ((const TensorData *) (uintptr_t) args[0])->buffer.addr, 8);
}

const machine_kernel explored_kernels[]
    = { kernel_note, kernel_note_and_fail, kernel_end_run, kernel_take_in };

void
assert_ran (uint32_t number, uint32_t times)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < n_order; i++)
    n += order[i] == number;
  g_assert_cmpuint (n, ==, times);
}

void
assert_once (uint32_t n)
{
  uint32_t seen = 0;

  g_assert_cmpuint (n_order, ==, n);
  for (uint32_t i = 0; i < n; i++)
    seen |= 1u << order[i];
  g_assert_cmphex (seen, ==, (1u << n) - 1);
}

uint32_t
place (uint32_t number)
{
  for (uint32_t i = 0; i < n_order; i++)
    if (order[i] == number)
      return i;
  g_assert_not_reached ();
}

bool
was_ready_at_submit (struct machine *machine, pto_task_id task)
{
  const struct pto_trace_buffer *buffer = &machine->trace->buffers[0];

  for (uint64_t i = 0; i < buffer->count; i++)
    if (buffer->records[i].kind == PTO_TRACE_READY && buffer->records[i].task == task)
      return true;
  return false;
}

uint8_t memory[64];
uint64_t early, late;
